// SPDX-License-Identifier: MIT
/*
 * gpu.c - memory of a GPU through the CUDA driver API (gpu.h)
 *
 * Locks: gpu.area_lock, guards the free areas; gpu.now_lock, guards the area of the
 * functions that copy at once.  Neither is taken under the other.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"
#include "priv.h"

#define NS	1000000000ull

struct gpu {
	const struct cuda_api *cu;
	CUdevice dev;
	CUcontext ctx;
	CUdeviceptr base;
	CUmemGenericAllocationHandle mem;
	uint64_t bytes;
	uint64_t granularity;
	int ordinal;
	int version;		/* of the driver's API */
	unsigned int peer;	/* enum hawk_device_peer */
	char name[HAWK_DEVICE_NAME];
	char pci[16];
	int lost;		/* 0 or -errno; atomic */
	void (*on_loss)(void *arg);
	void *loss_arg;
	pthread_mutex_t area_lock;
	pthread_cond_t area_cond;	/* one was given back */
	struct gpu_area *area_free;
	pthread_mutex_t now_lock;
	struct gpu_area area[GPU_AREAS + 1];	/* the last one: of now_lock */
	uint32_t areas;		/* that have been made */
};

/* ---- errors ---- */

/* Notes why @what did not work.  Return: negative errno. */
static int refused(const struct gpu *g, CUresult r, const char *what)
{
	return hawk_fail(cuda_errno(r), "GPU cuda:%d: %s: %s", g->ordinal, what,
			 cuda_error(g->cu, r));
}

/* What a copy returned.  Anything but a lack of memory is the end. */
static int copied(struct gpu *g, CUresult r, const char *what)
{
	int err = cuda_errno(r), none = 0;

	if (!err || err == -ENOMEM)
		return err;
	if (!__atomic_compare_exchange_n(&g->lost, &none, err, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return none;
	fprintf(stderr, "hawk: GPU cuda:%d (%s, %s): %s: %s: its memory is lost and the blocks in it "
		"are misses; see dmesg for Xid, then open the device again\n", g->ordinal, g->name,
		g->pci, what, cuda_error(g->cu, r));
	if (g->on_loss)
		g->on_loss(g->loss_arg);
	return err;
}

int gpu_lost(const struct gpu *g)
{
	return __atomic_load_n(&g->lost, __ATOMIC_SEQ_CST);
}

void gpu_on_loss(struct gpu *g, void (*fn)(void *arg), void *arg)
{
	g->loss_arg = arg;
	g->on_loss = fn;
}

/* The calls of this thread are for the GPU until leave().  Return: 0 or why not. */
static int enter(struct gpu *g)
{
	int ret = gpu_lost(g);

	return ret ? ret : copied(g, g->cu->cuCtxPushCurrent_v2(g->ctx), "cuCtxPushCurrent");
}

static int leave(struct gpu *g, CUresult r, const char *what)
{
	CUcontext old;

	g->cu->cuCtxPopCurrent_v2(&old);
	return copied(g, r, what);
}

/* ---- areas ---- */

static void area_fini(struct gpu *g, struct gpu_area *a)
{
	unsigned int i;

	for (i = 0; i < GPU_MARKS && a->mark[i]; i++)
		g->cu->cuEventDestroy_v2(a->mark[i]);
	if (a->stream)
		g->cu->cuStreamDestroy_v2(a->stream);
	g->cu->cuMemHostUnregister(a->mem);
	munmap(a->mem, GPU_AREA_BYTES);
}

static int area_init(struct gpu *g, struct gpu_area *a)
{
	unsigned int i;
	CUresult r;

	a->g = g;
	a->mem = mmap(NULL, GPU_AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (a->mem == MAP_FAILED)
		return hawk_fail(-ENOMEM, "GPU cuda:%d: memory for transfers", g->ordinal);
	r = g->cu->cuMemHostRegister_v2(a->mem, GPU_AREA_BYTES, 0);
	if (r != CUDA_SUCCESS) {
		munmap(a->mem, GPU_AREA_BYTES);
		return refused(g, r, "pinning memory for transfers");
	}
	g->areas++;
	r = g->cu->cuStreamCreate(&a->stream, CU_STREAM_NON_BLOCKING);
	for (i = 0; r == CUDA_SUCCESS && i < GPU_MARKS; i++)
		r = g->cu->cuEventCreate(&a->mark[i], CU_EVENT_DISABLE_TIMING);
	return r == CUDA_SUCCESS ? 0 : refused(g, r, "making a stream");
}

static int areas_init(struct gpu *g)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < GPU_AREAS + 1; i++) {
		ret = area_init(g, &g->area[i]);
		if (ret || i == GPU_AREAS)
			continue;
		g->area[i].next = g->area_free;
		g->area_free = &g->area[i];
	}
	return ret;
}

struct gpu_area *gpu_area_take(struct gpu *g, uint64_t deadline)
{
	struct timespec ts = { (time_t)(deadline / NS), (long)(deadline % NS) };
	struct gpu_area *a;
	int ret = 0;

	pthread_mutex_lock(&g->area_lock);
	while (!g->area_free && ret != ETIMEDOUT)
		ret = deadline ? pthread_cond_timedwait(&g->area_cond, &g->area_lock, &ts) :
				 pthread_cond_wait(&g->area_cond, &g->area_lock);
	a = g->area_free;
	if (a)
		g->area_free = a->next;
	pthread_mutex_unlock(&g->area_lock);
	return a;
}

void gpu_area_give(struct gpu_area *a)
{
	struct gpu *g = a->g;

	pthread_mutex_lock(&g->area_lock);
	a->next = g->area_free;
	g->area_free = a;
	pthread_cond_signal(&g->area_cond);
	pthread_mutex_unlock(&g->area_lock);
}

int gpu_area_out(struct gpu_area *a, uint32_t at, uint64_t off, uint32_t bytes)
{
	struct gpu *g = a->g;
	int ret = enter(g);

	return ret ? ret : leave(g, g->cu->cuMemcpyDtoHAsync_v2(a->mem + at, g->base + off, bytes,
								a->stream), "copying from it");
}

int gpu_area_in(struct gpu_area *a, uint32_t at, uint64_t off, uint32_t bytes)
{
	struct gpu *g = a->g;
	int ret = enter(g);

	return ret ? ret : leave(g, g->cu->cuMemcpyHtoDAsync_v2(g->base + off, a->mem + at, bytes,
								a->stream), "copying to it");
}

int gpu_area_mark(struct gpu_area *a, uint32_t mark)
{
	int ret = enter(a->g);

	return ret ? ret : leave(a->g, a->g->cu->cuEventRecord(a->mark[mark], a->stream),
				 "cuEventRecord");
}

int gpu_area_wait(struct gpu_area *a, uint32_t mark)
{
	int ret = enter(a->g);

	return ret ? ret : leave(a->g, a->g->cu->cuEventSynchronize(a->mark[mark]),
				 "waiting for a copy");
}

int gpu_area_settle(struct gpu_area *a)
{
	int ret = enter(a->g);

	return ret ? ret : leave(a->g, a->g->cu->cuStreamSynchronize(a->stream),
				 "waiting for copies");
}

/* ---- at once ---- */

static int read_part(struct gpu_area *a, uint64_t off, uint8_t *dst, uint32_t n)
{
	int ret = gpu_area_out(a, 0, off, n);

	ret = ret ? ret : gpu_area_settle(a);
	if (!ret)
		memcpy(dst, a->mem, n);
	return ret;
}

static int write_part(struct gpu_area *a, uint64_t off, const uint8_t *src, uint32_t n)
{
	int ret;

	memcpy(a->mem, src, n);
	ret = gpu_area_in(a, 0, off, n);
	return ret ? ret : gpu_area_settle(a);
}

static uint32_t part(uint64_t bytes)
{
	return bytes < GPU_AREA_BYTES ? (uint32_t)bytes : GPU_AREA_BYTES;
}

int gpu_read(struct gpu *g, uint64_t off, void *dst, uint64_t bytes)
{
	uint64_t at;
	int ret = 0;

	pthread_mutex_lock(&g->now_lock);
	for (at = 0; !ret && at < bytes; at += GPU_AREA_BYTES)
		ret = read_part(&g->area[GPU_AREAS], off + at, (uint8_t *)dst + at, part(bytes - at));
	pthread_mutex_unlock(&g->now_lock);
	return ret;
}

int gpu_write(struct gpu *g, uint64_t off, const void *src, uint64_t bytes)
{
	uint64_t at;
	int ret = 0;

	pthread_mutex_lock(&g->now_lock);
	for (at = 0; !ret && at < bytes; at += GPU_AREA_BYTES)
		ret = write_part(&g->area[GPU_AREAS], off + at, (const uint8_t *)src + at,
				 part(bytes - at));
	pthread_mutex_unlock(&g->now_lock);
	return ret;
}

int gpu_copy(struct gpu *g, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct gpu_area *a = &g->area[GPU_AREAS];
	int ret;

	pthread_mutex_lock(&g->now_lock);
	ret = enter(g);
	if (!ret)
		ret = leave(g, g->cu->cuMemcpyDtoDAsync_v2(g->base + dst, g->base + src, bytes,
							   a->stream), "copying within it");
	ret = ret ? ret : gpu_area_settle(a);
	pthread_mutex_unlock(&g->now_lock);
	return ret;
}

int gpu_zero(struct gpu *g, uint64_t off, uint64_t bytes)
{
	struct gpu_area *a = &g->area[GPU_AREAS];
	int ret;

	pthread_mutex_lock(&g->now_lock);
	ret = enter(g);
	if (!ret)
		ret = leave(g, g->cu->cuMemsetD8Async(g->base + off, 0, bytes, a->stream),
			    "zeroing it");
	ret = ret ? ret : gpu_area_settle(a);
	pthread_mutex_unlock(&g->now_lock);
	return ret;
}

/* ---- other drivers ---- */

unsigned int gpu_peer_way(int dmabuf, int rdma, const char *sys)
{
	char path[256];

	if (dmabuf)
		return HAWK_DEVICE_DMABUF;
	snprintf(path, sizeof(path), "%s/module/nvidia_peermem", sys);
	return rdma && !access(path, F_OK) ? HAWK_DEVICE_PEERMEM : HAWK_DEVICE_NO_PEER;
}

int gpu_dmabuf(struct gpu *g)
{
	int fd = -1, ret = gpu_lost(g);
	CUcontext old;
	CUresult r;

	if (ret)
		return hawk_fail(ret, "GPU cuda:%d: its memory is lost", g->ordinal);
	if (g->peer != HAWK_DEVICE_DMABUF)
		return hawk_fail(-EOPNOTSUPP, "GPU cuda:%d has no dma-buf: %s", g->ordinal,
				 g->peer == HAWK_DEVICE_PEERMEM ?
				 "register its addresses, nvidia-peermem is loaded" :
				 "install the open kernel modules of the driver, or load nvidia-peermem");
	r = g->cu->cuCtxPushCurrent_v2(g->ctx);
	if (r == CUDA_SUCCESS) {
		r = g->cu->cuMemGetHandleForAddressRange(&fd, g->base, g->bytes,
							 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
		g->cu->cuCtxPopCurrent_v2(&old);
	}
	return r == CUDA_SUCCESS ? fd : refused(g, r, "exporting it as a dma-buf");
}

void gpu_describe(const struct gpu *g, struct hawk_device *d)
{
	memset(d, 0, sizeof(*d));
	memcpy(d->name, g->name, sizeof(d->name));
	memcpy(d->pci, g->pci, sizeof(d->pci));
	d->address = g->base;
	d->bytes = g->bytes;
	d->granularity = g->granularity;
	d->peer = g->peer;
	d->version = g->version;
	d->error = gpu_lost(g);
}

/* ---- opening and closing ---- */

static int attribute(const struct gpu *g, CUdevice_attribute a)
{
	int value = 0;

	return g->cu->cuDeviceGetAttribute(&value, a, g->dev) == CUDA_SUCCESS && value;
}

static int find_device(struct gpu *g)
{
	int n = 0;
	CUresult r = g->cu->cuDeviceGetCount(&n);

	if (r != CUDA_SUCCESS)
		return refused(g, r, "cuDeviceGetCount");
	if (g->ordinal >= n)
		return hawk_fail(-ENODEV, "GPU cuda:%d: there are %d", g->ordinal, n);
	r = g->cu->cuDeviceGet(&g->dev, g->ordinal);
	if (r == CUDA_SUCCESS)
		r = g->cu->cuDeviceGetName(g->name, sizeof(g->name), g->dev);
	if (r == CUDA_SUCCESS)
		r = g->cu->cuDeviceGetPCIBusId(g->pci, sizeof(g->pci), g->dev);
	if (r != CUDA_SUCCESS)
		return refused(g, r, "asking who it is");
	g->cu->cuDriverGetVersion(&g->version);
	if (!attribute(g, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		return hawk_fail(-EOPNOTSUPP, "GPU cuda:%d (%s): no virtual memory management",
				 g->ordinal, g->name);
	g->peer = gpu_peer_way(attribute(g, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED),
			       attribute(g, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED), "/sys");
	return 0;
}

/* Whole chunks and whole pages of the GPU; both are powers of two. */
static int round_bytes(struct gpu *g, const CUmemAllocationProp *prop, uint64_t bytes)
{
	size_t gran = 0;
	CUresult r = g->cu->cuMemGetAllocationGranularity(&gran, prop,
							  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

	if (r != CUDA_SUCCESS)
		return refused(g, r, "cuMemGetAllocationGranularity");
	if (!gran || gran & (gran - 1))
		return hawk_fail(-EPROTO, "GPU cuda:%d: granularity %zu", g->ordinal, gran);
	g->granularity = gran > HAWK_CHUNK_BYTES ? gran : HAWK_CHUNK_BYTES;
	g->bytes = bytes - bytes % g->granularity;
	return g->bytes ? 0 : hawk_fail(-EINVAL, "GPU cuda:%d: at least %llu bytes", g->ordinal,
					(unsigned long long)g->granularity);
}

static int memory_init(struct gpu *g, uint64_t bytes)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, g->ordinal },
	};
	CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const char *what = "reserving addresses";
	int ret;
	CUresult r;

	prop.allocFlags.gpuDirectRDMACapable =
		attribute(g, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
	ret = round_bytes(g, &prop, bytes);
	if (ret)
		return ret;
	r = g->cu->cuMemAddressReserve(&g->base, g->bytes, g->granularity, 0, 0);
	if (r != CUDA_SUCCESS)
		goto err;
	what = "taking memory, is so much free? See nvidia-smi";
	r = g->cu->cuMemCreate(&g->mem, g->bytes, &prop, 0);
	if (r != CUDA_SUCCESS)
		goto err_free;
	what = "mapping its memory";
	r = g->cu->cuMemMap(g->base, g->bytes, 0, g->mem, 0);
	if (r != CUDA_SUCCESS)
		goto err_release;
	r = g->cu->cuMemSetAccess(g->base, g->bytes, &access, 1);
	if (r == CUDA_SUCCESS)
		return 0;
	g->cu->cuMemUnmap(g->base, g->bytes);
err_release:
	g->cu->cuMemRelease(g->mem);
err_free:
	g->cu->cuMemAddressFree(g->base, g->bytes);
err:
	g->base = 0;
	return refused(g, r, what);
}

/* What of a GPU has been made; its context may be dead, then the driver has it already. */
static void fini(struct gpu *g)
{
	uint32_t i;

	for (i = 0; i < g->areas; i++)
		area_fini(g, &g->area[i]);
	if (!g->base)
		return;
	g->cu->cuMemUnmap(g->base, g->bytes);
	g->cu->cuMemRelease(g->mem);
	g->cu->cuMemAddressFree(g->base, g->bytes);
}

static struct gpu *gpu_new(const struct cuda_api *cu, int ordinal)
{
	struct gpu *g = calloc(1, sizeof(*g));
	pthread_condattr_t attr;

	if (!g)
		return NULL;
	g->cu = cu;
	g->ordinal = ordinal;
	pthread_mutex_init(&g->area_lock, NULL);
	pthread_mutex_init(&g->now_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->area_cond, &attr);
	pthread_condattr_destroy(&attr);
	return g;
}

static void gpu_free(struct gpu *g)
{
	pthread_mutex_destroy(&g->area_lock);
	pthread_mutex_destroy(&g->now_lock);
	pthread_cond_destroy(&g->area_cond);
	free(g);
}

void gpu_close(struct gpu *g)
{
	CUresult r = g->cu->cuCtxPushCurrent_v2(g->ctx);
	CUcontext old;

	fini(g);
	if (r == CUDA_SUCCESS)	/* else it would be the caller's own */
		g->cu->cuCtxPopCurrent_v2(&old);
	g->cu->cuDevicePrimaryCtxRelease_v2(g->dev);
	gpu_free(g);
}

/* "cuda:0" -> 0 */
static int parse(const char *path, int *ordinal)
{
	char *end;
	long n;

	if (strncmp(path, "cuda:", 5) || path[5] < '0' || path[5] > '9')
		return -EINVAL;
	n = strtol(path + 5, &end, 10);
	*ordinal = (int)n;
	return *end || n > 1023 ? -EINVAL : 0;
}

int gpu_open(const char *path, uint64_t *bytes, struct gpu **gp)
{
	const struct cuda_api *cu;
	int ordinal, ret = parse(path, &ordinal);
	struct gpu *g;
	CUcontext old;
	CUresult r;

	if (ret)
		return hawk_fail(ret, "GPU '%s': it is called cuda:0, cuda:1, ...", path);
	ret = cuda_open(&cu);
	if (ret)
		return ret;
	g = gpu_new(cu, ordinal);
	if (!g)
		return hawk_fail(-ENOMEM, "GPU cuda:%d", ordinal);
	ret = find_device(g);
	if (ret)
		goto err_free;
	r = cu->cuDevicePrimaryCtxRetain(&g->ctx, g->dev);
	if (r != CUDA_SUCCESS) {
		ret = refused(g, r, "making a context");
		goto err_free;
	}
	r = cu->cuCtxPushCurrent_v2(g->ctx);
	ret = r == CUDA_SUCCESS ? 0 : refused(g, r, "entering its context");
	if (!ret) {
		ret = memory_init(g, *bytes);
		ret = ret ? ret : areas_init(g);
		cu->cuCtxPopCurrent_v2(&old);
	}
	if (!ret) {
		ret = gpu_zero(g, 0, g->bytes);
		if (ret)
			hawk_fail(ret, "GPU cuda:%d: zeroing its memory", ordinal);
	}
	if (ret) {
		gpu_close(g);
		return ret;
	}
	*bytes = g->bytes;
	*gp = g;
	return 0;

err_free:
	gpu_free(g);
	return ret;
}
