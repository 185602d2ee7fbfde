# SPDX-License-Identifier: MIT
#
# Benchmarks: one program per comparison, run and compared by bench.py.

BENCH_DIR   := $(BUILD)/bench
BENCH_PROGS := $(addprefix $(BENCH_DIR)/,translate alloc hitrate reload get decode)
BENCH_OBJ   := $(BUILD)/obj/tests/bench
BENCH_ARGS  ?=

$(BENCH_DIR)/%: $(BENCH_OBJ)/%.o $(BENCH_OBJ)/bench.o
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(BENCH_LDLIBS) $(LIBHAWK_LDLIBS)

$(addprefix $(BENCH_DIR)/,alloc hitrate): $(BENCH_OBJ)/lru.o
$(addprefix $(BENCH_DIR)/,translate reload get decode): $(BENCH_OBJ)/space.o
$(BENCH_DIR)/decode: $(BUILD)/daemon/libhawkexec.a
$(BENCH_PROGS): $(BUILD)/lib/libhawk.a

$(BENCH_OBJ)/decode.o: CFLAGS_COMMON += -Idaemon
$(BENCH_DIR)/translate: BENCH_LDLIBS := -lurcu-qsbr -lurcu-cds
$(BENCH_DIR)/get: BENCH_LDLIBS := -lhiredis
$(BENCH_DIR)/decode: BENCH_LDLIBS = $(HAWKEXEC_LDLIBS)

## make bench	measure Hawk beside its peers (BENCH_ARGS=--help for options)
.PHONY: bench bench-build
bench-build: $(BENCH_PROGS)
bench:
	@tools/setup/install-deps build module bench lab
	@$(MAKE) --no-print-directory bench-build
	@tests/bench/bench.py --build $(BUILD) $(BENCH_ARGS)
