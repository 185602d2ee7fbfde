# SPDX-License-Identifier: GPL-2.0
#
# The models that are modules are built with hawk.ko, whose symbols they use; that of the
# NPU is a program.

## models	hawk_*.ko of firmware-models for both lab kernels, in build/kmod-KERNEL
.PHONY: models
models: modules

# A libcuda.so.1 that needs no GPU, for tests: never on the way of the linker or of dlopen()
CUDA_MODEL	:= $(BUILD)/lib/cuda/libcuda.so.1
CUDA_MODEL_OBJS := $(patsubst %,$(BUILD)/obj/firmware-models/cuda/%.o,memory model stream)
CUDA_TOOLKIT	?= $(firstword $(wildcard /usr/local/cuda /usr/lib/cuda))

$(CUDA_MODEL_OBJS): CFLAGS_COMMON += -fvisibility=hidden

$(CUDA_MODEL): $(CUDA_MODEL_OBJS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) -shared $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -Wl,-soname,libcuda.so.1 -o $@ $^

tests: $(CUDA_MODEL)

# Where a toolkit is installed its cuda.h has the last word on libhawk/cuda_api.h
ifneq ($(wildcard $(CUDA_TOOLKIT)/include/cuda.h),)
$(BUILD)/obj/firmware-models/cuda/agree.o: CFLAGS_COMMON += -isystem $(CUDA_TOOLKIT)/include
$(CUDA_MODEL): | $(BUILD)/obj/firmware-models/cuda/agree.o
endif

NPU_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard firmware-models/npu/*.c))
$(NPU_OBJS): CFLAGS_COMMON += -D_GNU_SOURCE

$(BUILD)/bin/hawk-npu: $(NPU_OBJS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lm

PROGS	 += $(BUILD)/bin/hawk-npu
MANPAGES += firmware-models/npu/hawk-npu.1

# Its parts as a test sees them
$(BUILD)/tests/npu_fw: $(BUILD)/obj/tests/unit/npu_fw.o \
		       $(filter-out %/main.o %/board.o,$(NPU_OBJS))
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka -lm

TESTS_UNIT += $(BUILD)/tests/npu_fw
