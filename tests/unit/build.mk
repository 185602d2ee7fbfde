# SPDX-License-Identifier: MIT
#
# Unit tests of the engine, core_*.c.  Tests of other parts live here too and are
# added by the build.mk of the part that they test.

CORE_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard kmod/core/*.c) libhawk/port_user.c)
CORE_TESTS := $(addprefix $(BUILD)/tests/,core_hash core_lid core_life core_lock core_policy core_random core_state \
					 core_threads)

$(CORE_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o \
				 $(BUILD)/obj/tests/unit/core_host.o $(CORE_OBJS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka -lm

# core_state watches the engine's assertions
$(BUILD)/tests/core_state: LDFLAGS += -Wl,--wrap=hawk_assert_fail

TESTS_UNIT += $(CORE_TESTS)
