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

# The harness is the kernel's: its own warnings are not ours to mend.
$(BUILD)/tests/kselftest/%: $(KSELFTEST_DIR)/%.c $(KSELFTEST_DIR)/hawk_test.c \
		$(wildcard $(KSELFTEST_DIR)/*.h) $(BUILD)/include/linux/hawk.h \
		| $(BUILD)/tests/kselftest/harness
	@echo "  CC      $<"
	@$(CC) $(filter-out -MMD -MP,$(CFLAGS_COMMON)) $(CFLAGS) -Wno-unused-parameter \
		-Wno-sign-compare -Wno-missing-prototypes \
		-Wno-missing-field-initializers -isystem $(BUILD)/tests/kselftest/harness \
		-o $@ $< $(KSELFTEST_DIR)/hawk_test.c $(LDFLAGS_COMMON) $(LDFLAGS) \
		$(KSELFTEST_LIBS_$(*F))

KSELFTEST_LIBS_hawk_rdma := -libverbs

## kselftests	the tests of /dev/hawk; tests/e2e/kselftest.t runs them in the VM
.PHONY: kselftests
kselftests: $(KSELFTESTS)
