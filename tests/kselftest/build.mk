# SPDX-License-Identifier: GPL-2.0
#
# kselftests of /dev/hawk.  They need the kernel's harness, which get-harness
# fetches, and run in the VM (tests/e2e/kselftest.t).

KSELFTEST_DIR	:= tests/kselftest
KSELFTEST_SRCS	:= $(filter-out $(KSELFTEST_DIR)/hawk_test.c,$(wildcard $(KSELFTEST_DIR)/hawk_*.c))
KSELFTESTS	:= $(patsubst $(KSELFTEST_DIR)/%.c,$(BUILD)/tests/kselftest/%,$(KSELFTEST_SRCS))

$(BUILD)/tests/kselftest/harness: $(KSELFTEST_DIR)/get-harness
	@mkdir -p $(@D)
	@dir=$$($<) && ln -sfn "$$dir" $@

# The commands of the header, for hawk_abi.c
$(BUILD)/tests/kselftest/include/hawk_calls.h: uapi/hawk.h
	@mkdir -p $(@D)
	@sed -n 's/^#define \(HAWK_IOC_[A-Z_]*\)[ \t]*_IO(.*/HEADER_CALL(\1)/p' $< >$@

KSELFTEST_DEPS := $(KSELFTEST_DIR)/hawk_test.c $(wildcard $(KSELFTEST_DIR)/*.h) \
		  $(BUILD)/include/linux/hawk.h $(BUILD)/tests/kselftest/include/hawk_calls.h \
		  | $(BUILD)/tests/kselftest/harness

# The harness is the kernel's: its own warnings are not ours to mend.
KSELFTEST_CC = $(CC) $(filter-out -MMD -MP,$(CFLAGS_COMMON)) $(CFLAGS) -Wno-unused-parameter \
	-Wno-sign-compare -Wno-missing-prototypes \
	-Wno-missing-field-initializers -isystem $(BUILD)/tests/kselftest/harness \
	-I$(BUILD)/tests/kselftest/include -o $@ $< $(KSELFTEST_DIR)/hawk_test.c

$(BUILD)/tests/kselftest/%: $(KSELFTEST_DIR)/%.c $(KSELFTEST_DEPS)
	@echo "  CC      $<"
	@$(KSELFTEST_CC) $(LDFLAGS_COMMON) $(LDFLAGS) $(KSELFTEST_LIBS_$(*F))

# 32-bit programs on the 64-bit kernel, where the compiler can build them
KSELFTESTS_32 := $(addprefix $(BUILD)/tests/kselftest/,hawk_abi32 hawk_batch32 hawk_ioctl32 \
						       hawk_life32 hawk_mmap32 hawk_ring32)
$(KSELFTESTS_32): $(BUILD)/tests/kselftest/%32: $(KSELFTEST_DIR)/%.c $(KSELFTEST_DEPS)
	@echo "  CC32    $<"
	@$(KSELFTEST_CC) -m32 -static -D_FILE_OFFSET_BITS=64 $(LDFLAGS_COMMON) $(LDFLAGS)

can-build-32 := $(shell echo 'int main(void) { return 0; }' | \
			$(CC) -m32 -static -x c -o /dev/null - 2>/dev/null && echo yes)

KSELFTEST_LIBS_hawk_fail_batch := -luring
KSELFTEST_LIBS_hawk_gather := -pthread
KSELFTEST_LIBS_hawk_pace := -pthread
KSELFTEST_LIBS_hawk_npu_ops := -lm
KSELFTEST_LIBS_hawk_rdma := -libverbs
KSELFTEST_LIBS_hawk_draft := -pthread
KSELFTEST_LIBS_hawk_stats := -pthread
KSELFTEST_LIBS_hawk_trace := -pthread
KSELFTEST_LIBS_hawk_uring := -luring

## kselftests	the tests of /dev/hawk; tests/e2e/kselftest.t runs them in the VM
.PHONY: kselftests
kselftests: $(KSELFTESTS) $(if $(can-build-32),$(KSELFTESTS_32))

# Ten thousand deaths, and as many races as take about as long
CHECK_LONG += kill-long
.PHONY: kill-long
kill-long:
	@tools/setup/install-deps build module lab
	@$(MAKE) --no-print-directory kselftests
	@tools/lab/build-module --kernel 6.1 >/dev/null
	@tools/lab/hawk-lab run --kernel 6.1 --check-log --quiet --timeout 7200 \
		--env HAWK_KILL_N=10000 --env HAWK_RACE_N=50000 -- \
		sh tests/kselftest/in-guest $(BUILD)/tests/kselftest/hawk_kill \
		$(BUILD)/tests/kselftest/hawk_race

# The module a thousand times
CHECK_LONG += cycle-long
.PHONY: cycle-long
cycle-long:
	@tools/setup/install-deps build module lab
	@$(MAKE) --no-print-directory kselftests
	@tools/lab/build-module --kernel 6.1 >/dev/null
	@tools/lab/hawk-lab run --kernel 6.1 --check-log --quiet --timeout 7200 \
		--env HAWK_CYCLES=1000 -- \
		sh tests/kselftest/in-guest $(BUILD)/tests/kselftest/hawk_cycle
