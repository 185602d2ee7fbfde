# SPDX-License-Identifier: MIT

TESTS_E2E += $(wildcard tests/e2e/*.t)

## abi-dump	enter what is new in uapi/hawk.h into the frozen ABI (tests/e2e/abi.t)
.PHONY: abi-dump
abi-dump:
	@python3 -B tests/e2e/lib/abi.py --add
