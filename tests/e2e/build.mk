# SPDX-License-Identifier: MIT

TESTS_E2E += $(wildcard tests/e2e/*.t)

## make powercut-long	200 power cuts of a VM that writes to a pool; goes on where it was interrupted
.PHONY: powercut-long
powercut-long:
	@tools/setup/install-deps build module lab test
	@$(MAKE) --no-print-directory all tests module-6.1
	@HAWK_POWERCUTS=200 HAWK_POWERCUT_DIR=$(BUILD)/powercut $(PROVE) tests/e2e/powercut-vm.t
	@rm -r $(BUILD)/powercut
CHECK_LONG += powercut-long

## powerlog-long	20,000 power cuts between flushes, made from a log of what a VM wrote
.PHONY: powerlog-long
powerlog-long:
	@tools/setup/install-deps build module lab test
	@$(MAKE) --no-print-directory all tests module-6.1
	@HAWK_POINTS=20000 $(PROVE) tests/e2e/powerlog-vm.t
CHECK_LONG += powerlog-long

## abi-dump	enter what is new in uapi/hawk.h into the frozen ABI (tests/e2e/abi.t)
.PHONY: abi-dump
abi-dump:
	@python3 -B tests/e2e/lib/abi.py --add
