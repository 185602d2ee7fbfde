# SPDX-License-Identifier: MIT
#
# Benchmarks: one program per comparison, run and compared by bench.py.

BENCH_DIR   := $(BUILD)/bench
BENCH_PROGS := $(addprefix $(BENCH_DIR)/,translate alloc hitrate reload recovery get decode rollback gather fork transform \
		 handoff pace transport)
BENCH_OBJ   := $(BUILD)/obj/tests/bench
BENCH_ARGS  ?=
BENCH_TOOLS := $(addprefix $(BENCH_DIR)/,random_model drop_diff)

$(BENCH_DIR)/%: $(BENCH_OBJ)/%.o $(BENCH_OBJ)/bench.o
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(BENCH_LDLIBS) $(LIBHAWK_LDLIBS)

$(addprefix $(BENCH_DIR)/,alloc hitrate): $(BENCH_OBJ)/lru.o
$(addprefix $(BENCH_DIR)/,translate reload recovery get decode rollback gather fork handoff pace): $(BENCH_OBJ)/space.o
$(BENCH_DIR)/decode: $(BUILD)/daemon/libhawkexec.a
$(BENCH_PROGS): $(BUILD)/lib/libhawk.a

# What is no comparison: a model for turn.py; how much dropping changes what is said
$(BENCH_DIR)/random_model: $(BUILD)/obj/tests/unit/daemon_fixture.o
$(BENCH_DIR)/drop_diff: $(BUILD)/obj/daemon/kv/hist.o
$(BENCH_TOOLS): $(BUILD)/daemon/libhawkexec.a
$(BENCH_OBJ)/random_model.o $(BENCH_OBJ)/drop_diff.o: CFLAGS_COMMON += -Idaemon -D_GNU_SOURCE
$(BENCH_TOOLS): BENCH_LDLIBS = $(HAWKEXEC_LDLIBS)

$(BENCH_OBJ)/decode.o: CFLAGS_COMMON += -Idaemon
$(BENCH_DIR)/translate: BENCH_LDLIBS := -lurcu-qsbr -lurcu-cds
$(BENCH_DIR)/get: BENCH_LDLIBS := -lhiredis
$(BENCH_DIR)/decode: BENCH_LDLIBS = $(HAWKEXEC_LDLIBS)

## make bench	measure Hawk beside its peers (BENCH_ARGS=--help for options)
.PHONY: bench bench-build
bench-build: $(BENCH_PROGS) $(BENCH_TOOLS) $(BUILD)/bin/hawkd
bench:
	@tools/setup/install-deps build module bench lab
	@$(MAKE) --no-print-directory bench-build
	@tests/bench/bench.py --build $(BUILD) $(BENCH_ARGS)

## make lab-pace	paced reload in the VM, on a throttled drive (PACE_ARGS, see tests/bench/pace.py)
PACE_ARGS ?= --flash 33554432
.PHONY: lab-pace
lab-pace: $(BENCH_DIR)/pace
	@tools/lab/build-module --kernel 6.1 >/dev/null
	@tools/lab/hawk-lab run --kernel 6.1 --nvme-bps 32M --out $(abspath $(BENCH_DIR)) -- \
		$(CURDIR)/tests/bench/pace.py --build $(abspath $(BUILD)) \
		--json $(abspath $(BENCH_DIR))/pace.json $(PACE_ARGS)

## make drop-diff	how much dropping tokens changes what the model says (TEXTS=...)
TEXTS ?= $(wildcard *.md */*.md */*/*.md)
.PHONY: drop-diff
drop-diff: $(BENCH_DIR)/drop_diff
	@$< tests/data/hawk-tiny.gguf $(TEXTS)
