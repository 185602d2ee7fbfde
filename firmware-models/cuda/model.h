/* SPDX-License-Identifier: GPL-2.0 */
/*
 * model.h - what the files of the stand-in for libcuda.so.1 share
 *
 * The model's GPUs have memory that the CPU cannot reach: device addresses are reserved
 * without access, the bytes lie elsewhere (memory.c).  Streams are threads (stream.c), so
 * that copies happen when those of a GPU could and not before they have been waited for.
 *
 * Settings are KEY=VALUE, several with commas between, in $HAWK_CUDA_MODEL when the library
 * is first used and by cuda_model_set() at any time; README.md has the keys.
 */
#ifndef HAWK_CUDA_MODEL_H
#define HAWK_CUDA_MODEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../libhawk/cuda_api.h"

#define API	__attribute__((visibility("default")))
#define DEVICES_MAX	8

/* Kinds of copies; one engine of a GPU makes those of a kind one after the other. */
enum engine { TO_DEVICE, TO_HOST, WITHIN, ENGINES };

struct model {
	pthread_mutex_t lock;	/* guards all but @ready, @dead */
	pthread_cond_t cond;	/* @hold has changed */
	bool ready;		/* cuInit() was called; atomic to write */
	/* settings */
	uint64_t devices, mem, gran, mb_s[ENGINES], latency_us, dmabuf, rdma, vmm, version;
	uint64_t fail, after;	/* that error, once so many copies have been made */
	uint64_t ecc;		/* offset in an allocation whose memory is bad; ~0: none */
	uint64_t hold;		/* streams stand still */
	/* state */
	CUresult dead[DEVICES_MAX];	/* the error of a context that is no more; atomic */
	uint64_t used[DEVICES_MAX];	/* bytes of memory */
	/* counters, for tests */
	uint64_t copies, pageable, bytes[ENGINES], flying, flying_max, handles, contexts, streams;
};

extern struct model model;

#define DECLARE(name, args)	API CUresult name args;
CUDA_FUNCS(DECLARE)
#undef DECLARE

/* model.c; the first three are for tests, by dlsym() */
API int cuda_model_set(const char *settings);
API uint64_t cuda_model_get(const char *name);
API void cuda_model_revive(void);
CUresult model_dead(int dev);
void model_kill(int dev, CUresult error);
int model_device(void);

/* memory.c */
uint8_t *memory_at(CUdeviceptr ptr, uint64_t bytes, int *dev, uint64_t *offset);
bool memory_pinned(const void *p, uint64_t bytes);

#endif /* HAWK_CUDA_MODEL_H */
