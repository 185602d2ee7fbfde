# SPDX-License-Identifier: MIT
#
# The fuzzer of /dev/hawk runs in the VM (tests/kselftest/debug.t); fuzz_gguf is
# built by the daemon's part.

HAWK_FUZZ_OBJS := $(patsubst %,$(BUILD)/obj/tests/fuzz/%.o,hawk_fuzz fuzz_prog fuzz_build \
						      fuzz_exec fuzz_cov)

## hawk-fuzz	the fuzzer of /dev/hawk; tests/kselftest/debug.t runs it in the VM
.PHONY: hawk-fuzz
hawk-fuzz: $(BUILD)/fuzz/hawk_fuzz
$(BUILD)/fuzz/hawk_fuzz: $(HAWK_FUZZ_OBJS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^

# A million calls on the debug kernel
.PHONY: fuzz-long
fuzz-long:
	@HAWK_FUZZ_CALLS=1000000 HAWK_FUZZ_TIMEOUT=36000 $(PROVE) tests/kselftest/debug.t
CHECK_LONG += fuzz-long
