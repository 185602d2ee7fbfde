# SPDX-License-Identifier: MIT
#
# hawkd.  The compute half (model files, tokenizers, executor) is a static
# library of its own; it depends on nothing else in this repository.

HAWKEXEC_SRCS := $(wildcard daemon/gguf/*.c daemon/model/*.c daemon/tok/*.c) \
		 $(addprefix daemon/exec/,exec.c plan.c forward.c turn.c pool.c sample.c sparse.c centroid.c \
					  kern.c kern_c.c)
ifneq ($(filter x86_64,$(shell uname -m)),)
HAWKEXEC_SRCS += daemon/exec/kern_avx2.c daemon/exec/kern_avx512.c
endif
HAWKEXEC_OBJS := $(HAWKEXEC_SRCS:%.c=$(BUILD)/obj/%.o)
HAWKEXEC_LIB  := $(BUILD)/daemon/libhawkexec.a
HAWKEXEC_LDLIBS := -lpcre2-8 -lsodium -lm

$(BUILD)/obj/daemon/%.o: CFLAGS_COMMON += -Idaemon

# Contracting a * b + c into one rounding where the compiler likes would make
# results depend on how a kernel was inlined.
$(BUILD)/obj/daemon/exec/%.o: CFLAGS_COMMON += -ffp-contract=off
# Sanitizers are after errors, not speed, and take minutes over -O3
KERN_OPT	   := $(if $(SAN),-O1,-O3)
CFLAGS_kern_c	   := $(KERN_OPT)
CFLAGS_kern_avx2   := $(KERN_OPT) -mavx2 -mfma -mf16c
CFLAGS_kern_avx512 := $(KERN_OPT) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c

$(HAWKEXEC_LIB): $(HAWKEXEC_OBJS)
	@mkdir -p $(@D)
	@echo "  AR      $@"
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/bin/hawk-exec: $(BUILD)/obj/daemon/exec/hawk_exec.o $(HAWKEXEC_LIB)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -ljansson $(HAWKEXEC_LDLIBS)

LIBS  += $(HAWKEXEC_LIB)
PROGS += $(BUILD)/bin/hawk-exec
MANPAGES += daemon/man/hawk-exec.1

# Unit tests: tests/unit/daemon_NAME.c
HAWKEXEC_TESTS := $(addprefix $(BUILD)/tests/,daemon_gguf daemon_tok daemon_exec \
					  daemon_stories daemon_golden daemon_segments \
					  daemon_shift daemon_sparse)
HAWKEXEC_TEST_OBJS := $(addprefix $(BUILD)/obj/tests/unit/,daemon_fixture.o daemon_net.o daemon_run.o \
								     daemon_view.o)
$(BUILD)/obj/tests/unit/daemon_%.o: CFLAGS_COMMON += -Idaemon -D_GNU_SOURCE

$(HAWKEXEC_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(HAWKEXEC_TEST_OBJS) \
				     $(HAWKEXEC_LIB)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka -ljansson $(HAWKEXEC_LDLIBS)

TESTS_UNIT += $(HAWKEXEC_TESTS)

## make fuzz-gguf	the model-file fuzzer (needs clang)
.PHONY: fuzz-gguf
fuzz-gguf: $(BUILD)/fuzz/fuzz_gguf
$(BUILD)/fuzz/fuzz_gguf: tests/fuzz/fuzz_gguf.c $(filter-out daemon/exec/%,$(HAWKEXEC_SRCS))
	@mkdir -p $(@D)
	@echo "  FUZZ    $@"
	@clang -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -Idaemon -o $@ $^ \
		$(HAWKEXEC_LDLIBS)

include daemon/serve.mk
