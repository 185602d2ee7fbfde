# SPDX-License-Identifier: MIT
#
# Unit tests of the engine, core_*.c.  Tests of other parts live here too and are
# added by the build.mk of the part that they test.

CORE_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard kmod/core/*.c) libhawk/port_user.c \
				       libhawk/crc32c.c)
CORE_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%, \
		$(filter-out %_host.c,$(wildcard tests/unit/core_*.c)))

# these watch what the engine counts
COUNTED_TESTS := $(BUILD)/tests/core_state $(BUILD)/tests/core_seq_bound
$(filter-out $(COUNTED_TESTS),$(CORE_TESTS)): $(CORE_OBJS)
$(CORE_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o \
				 $(BUILD)/obj/tests/unit/core_host.o
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka -lm

$(filter $(BUILD)/tests/core_seq% $(BUILD)/tests/core_elastic,$(CORE_TESTS)): \
		$(BUILD)/obj/tests/unit/core_seq_host.o

$(filter $(BUILD)/tests/core_pool%,$(CORE_TESTS)): $(BUILD)/obj/tests/unit/core_pool_host.o

$(COUNTED_TESTS): $(COUNTED_CORE_OBJS) $(BUILD)/obj/libhawk/port_user.o \
		  $(BUILD)/obj/libhawk/crc32c.o

# core_state watches the engine's assertions, too
$(BUILD)/tests/core_state: LDFLAGS_COMMON += -Wl,--wrap=hawk_assert_fail
$(COUNTED_TESTS:$(BUILD)/tests/%=$(BUILD)/obj/tests/unit/%.o): CFLAGS_COMMON += $(COUNTED_CFLAGS)

TESTS_UNIT += $(CORE_TESTS)

## coverage	line coverage of the engine by its unit tests; fails below 90 %
COVERAGE := build/coverage
COVERAGE_MIN := 90
CHECK_LONG += coverage
.PHONY: coverage
coverage:
	@find $(COVERAGE) -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory BUILD=$(COVERAGE) CFLAGS='-O0 -g --coverage' \
		LDFLAGS=--coverage HAWK_OPS=200000 UNIT=core_% check-unit
	@gcov -n $(COVERAGE)/obj/kmod/core/*.o | awk -v min=$(COVERAGE_MIN) -F"[:%' ]+" ' \
		/^File/ { f = $$2 } \
		/^Lines/ && f ~ /core\/[a-z]+\.c$$/ { printf "%-24s %6.2f %% of %d lines\n", f, $$3, $$5; \
			hit += $$3 * $$5 / 100; all += $$5 } \
		/^Lines/ { f = "" } \
		END { total = all ? 100 * hit / all : 0; \
			printf "%-24s %6.2f %% of %d lines\n", "all", total, all; \
			if (total < min) { printf "less than %d %%\n", min; exit 1 } }'
