# SPDX-License-Identifier: GPL-2.0
#
# hawk.ko is built by kbuild (Kbuild, tools/lab/build-module), here is its man page.

MANPAGES += kmod/man/hawk.4 kmod/man/hawk_ioctl.4 kmod/man/hawk_npu.4

# The engine once more, natively, with its lock assertions and a count of transitions:
# for hawk-sim and for the test of the state machine
COUNTED_CFLAGS := -DHAWK_COUNT_EVENTS -DHAWK_DEBUG
COUNTED_CORE_OBJS := $(patsubst %.c,$(BUILD)/obj/counted/%.o,$(wildcard kmod/core/*.c))
$(COUNTED_CORE_OBJS): $(BUILD)/obj/counted/%.o: %.c | $(BUILD)/.packages \
						      $(BUILD)/include/linux/hawk.h
	@mkdir -p $(@D)
	@echo "  CC      $< (counted)"
	@$(CC) $(CFLAGS_COMMON) $(CFLAGS) $(COUNTED_CFLAGS) -c -o $@ $<

## modules	hawk.ko for both lab kernels, build/kmod-KERNEL/hawk.ko
MODULE_KERNELS := 6.1 6.12
.PHONY: modules $(MODULE_KERNELS:%=module-%)
modules: $(MODULE_KERNELS:%=module-%)
$(MODULE_KERNELS:%=module-%): module-%:
	@echo "  KBUILD  hawk.ko for $*"
	@tools/lab/build-module --kernel $* >$(BUILD)/kmod-$*.log 2>&1 || \
		{ cat $(BUILD)/kmod-$*.log; exit 1; }

include kmod/packaging/packaging.mk
