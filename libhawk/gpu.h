/* SPDX-License-Identifier: MIT */
/*
 * gpu.h - memory of a GPU that copy engines move: what embed_gpu.c and move.c see of it
 *
 * A GPU's memory is one range of device addresses (cuMemAddressReserve) with one allocation
 * behind it (cuMemCreate), so that it can be exported as one dma-buf.  The CPU cannot touch
 * it: bytes pass through areas of pinned host memory, each with a stream.  There are few:
 * that bounds what is in flight.  What is asked of one area happens in that order, areas
 * are independent of each other.
 *
 * An error that is not a lack of memory is the end of a context: the API gives it again
 * for every call.  The first one is told to the person and to gpu_on_loss(), and every
 * function returns its errno from then on without calling the driver.
 */
#ifndef HAWK_GPU_H
#define HAWK_GPU_H

#include <stdint.h>

#include "cuda_api.h"

#define GPU_AREA_BYTES	(4u << 20)	/* of pinned memory; two blocks of the largest kind */
#define GPU_AREAS	4u
#define GPU_MARKS	8u		/* events of an area */

struct gpu;

/**
 * struct gpu_area - pinned memory and the order of what is done with it
 * @g: its GPU
 * @mem: GPU_AREA_BYTES, page-aligned
 * @stream: copies go in this order
 * @mark: places in it that can be waited for
 * @next: free areas of the GPU
 */
struct gpu_area {
	struct gpu *g;
	uint8_t *mem;
	CUstream stream;
	CUevent mark[GPU_MARKS];
	struct gpu_area *next;
};

struct hawk_device;

/* cuda.c */

/* cuda_open() - the driver's functions.  Return: 0, -ENODEV (no driver, no GPU), -ENOSYS. */
int cuda_open(const struct cuda_api **cu);
int cuda_errno(CUresult r);
const char *cuda_error(const struct cuda_api *cu, CUresult r);

/* gpu.c */

/**
 * gpu_open() - take memory of a GPU; it is zeroed
 * @path: "cuda:ORDINAL"
 * @bytes: in: wanted, out: had: whole chunks
 * @gp: out
 *
 * Return: 0 or a negative errno, with the cause noted.
 */
int gpu_open(const char *path, uint64_t *bytes, struct gpu **gp);

/* gpu_close() - give it back; nothing is in flight and no area is taken */
void gpu_close(struct gpu *g);

/* gpu_on_loss() - have @fn called once, by any thread, when the memory is lost */
void gpu_on_loss(struct gpu *g, void (*fn)(void *arg), void *arg);

/* gpu_lost() - 0, or the errno that ended it */
int gpu_lost(const struct gpu *g);

/**
 * gpu_area_take() - an area of one's own
 * @deadline: how long to wait for one, CLOCK_MONOTONIC ns, 0: as long as it takes
 *
 * Who has one must not ask for another one.
 * Return: the area, or NULL: @deadline has passed.
 */
struct gpu_area *gpu_area_take(struct gpu *g, uint64_t deadline);

/* gpu_area_give() - back; all that was begun has been waited for */
void gpu_area_give(struct gpu_area *a);

/* Copies begin: @bytes at @off of the GPU's memory to or from @at of the area. */
int gpu_area_out(struct gpu_area *a, uint32_t at, uint64_t off, uint32_t bytes);
int gpu_area_in(struct gpu_area *a, uint32_t at, uint64_t off, uint32_t bytes);

/* gpu_area_mark(), _wait() - remember the place in the stream; wait until all before is done */
int gpu_area_mark(struct gpu_area *a, uint32_t mark);
int gpu_area_wait(struct gpu_area *a, uint32_t mark);

/* gpu_area_settle() - wait for all that was begun.  Return: 0 or why it is not done. */
int gpu_area_settle(struct gpu_area *a);

/* At once; these may be called by who has an area. */
int gpu_read(struct gpu *g, uint64_t off, void *dst, uint64_t bytes);
int gpu_write(struct gpu *g, uint64_t off, const void *src, uint64_t bytes);
int gpu_copy(struct gpu *g, uint64_t dst, uint64_t src, uint64_t bytes);
int gpu_zero(struct gpu *g, uint64_t off, uint64_t bytes);

/* gpu_dmabuf() - a descriptor of all of it, or -EOPNOTSUPP */
int gpu_dmabuf(struct gpu *g);
void gpu_describe(const struct gpu *g, struct hawk_device *d);

/* gpu_peer_way() - enum hawk_device_peer, by what GPU and host can; @sys: "/sys" */
unsigned int gpu_peer_way(int dmabuf, int rdma, const char *sys);

#endif /* HAWK_GPU_H */
