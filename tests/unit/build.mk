# SPDX-License-Identifier: MIT
#
# Unit tests of the engine, core_*.c.  Tests of other parts live here too and are
# added by the build.mk of the part that they test.

CORE_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard kmod/core/*.c) libhawk/port_user.c)
CORE_TESTS := $(addprefix $(BUILD)/tests/,core_life core_random)

$(CORE_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o \
				 $(BUILD)/obj/tests/unit/core_host.o $(CORE_OBJS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka -lm

TESTS_UNIT += $(CORE_TESTS)
