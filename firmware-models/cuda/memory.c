// SPDX-License-Identifier: GPL-2.0
/*
 * memory.c - memory of the model's GPUs: allocations, addresses, mappings, pinned host memory
 *
 * An allocation is a memfd that only the model has mapped.  Reserved addresses are a mapping
 * that nobody may touch: a CPU that follows a device pointer dies, as on a GPU without such
 * access.  A descriptor of a range is a dma-buf where the kernel makes one of a memfd
 * (/dev/udmabuf), else the memfd: the same bytes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"

#define MAX	64	/* of each kind */

/* An allocation; its handle is its number plus one. */
static struct alloc {
	uint8_t *mem;
	uint64_t bytes;
	int fd;
	int dev;
	unsigned int refs;	/* the handle's and the mappings' */
	bool released;
} alloc[MAX];

/* Reserved addresses and what is mapped there. */
static struct range {
	CUdeviceptr ptr;
	uint64_t bytes;
	struct alloc *alloc;	/* NULL: nothing */
	uint64_t offset;
	bool access;
} range[MAX];

static struct pinned {
	const uint8_t *p;
	uint64_t bytes;
} pinned[MAX];

/* ---- finding; the lock is held or the caller's allocation keeps it ---- */

/*
 * Where the bytes at a device address are, or NULL.  The range is not unmapped while
 * somebody copies: that is the API's rule.
 */
uint8_t *memory_at(CUdeviceptr ptr, uint64_t bytes, int *dev, uint64_t *offset)
{
	uint8_t *p = NULL;
	struct range *r;

	pthread_mutex_lock(&model.lock);
	for (r = range; r < range + MAX; r++) {
		if (!r->alloc || !r->access || ptr < r->ptr || ptr - r->ptr >= r->bytes ||
		    bytes > r->bytes - (ptr - r->ptr))
			continue;
		*offset = r->offset + (ptr - r->ptr);
		*dev = r->alloc->dev;
		p = r->alloc->mem + *offset;
	}
	pthread_mutex_unlock(&model.lock);
	return p;
}

bool memory_pinned(const void *p, uint64_t bytes)
{
	const uint8_t *at = p;
	bool yes = false;
	int i;

	pthread_mutex_lock(&model.lock);
	for (i = 0; i < MAX; i++)
		yes |= pinned[i].p && at >= pinned[i].p &&
		       at + bytes <= pinned[i].p + pinned[i].bytes;
	pthread_mutex_unlock(&model.lock);
	return yes;
}

static struct range *range_at(CUdeviceptr ptr, uint64_t bytes)
{
	struct range *r;

	for (r = range; r < range + MAX; r++)
		if (r->bytes && ptr == r->ptr && bytes == r->bytes)
			return r;
	return NULL;
}

static struct alloc *alloc_of(CUmemGenericAllocationHandle h)
{
	return h && h <= MAX && alloc[h - 1].refs && !alloc[h - 1].released ? &alloc[h - 1] : NULL;
}

static void alloc_put(struct alloc *a)
{
	if (--a->refs)
		return;
	munmap(a->mem, a->bytes);
	close(a->fd);
	model.used[a->dev] -= a->bytes;
	model.handles--;
}

/* ---- allocations ---- */

static bool whole(uint64_t bytes)
{
	return bytes && !(bytes % model.gran);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
					   CUmemAllocationGranularity_flags option)
{
	(void)option;
	*bytes = cuda_model_get("gran");
	return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS :
								     CUDA_ERROR_INVALID_VALUE;
}

static CUresult create(struct alloc *a, size_t bytes, int dev)
{
	if (bytes > model.mem - model.used[dev])
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->fd = memfd_create("cuda-model", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (a->fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->mem = MAP_FAILED;
	if (!ftruncate(a->fd, (off_t)bytes) && !fcntl(a->fd, F_ADD_SEALS, F_SEAL_SHRINK))
		a->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (a->mem == MAP_FAILED) {
		close(a->fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->mem[0] = 0xaa;	/* it is not zeroed */
	a->mem[bytes - 1] = 0xaa;
	a->bytes = bytes;
	a->dev = dev;
	a->refs = 1;
	a->released = false;
	model.used[dev] += bytes;
	model.handles++;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *mem, size_t bytes,
			 const CUmemAllocationProp *prop, unsigned long long flags)
{
	int i, dev = prop->location.id;
	CUresult r;

	if (flags || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || dev < 0 || dev >= DEVICES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	r = model_dead(dev);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&model.lock);
	for (i = 0; i < MAX && alloc[i].refs; i++)
		;
	if (!whole(bytes) || (uint64_t)dev >= model.devices)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = i == MAX ? CUDA_ERROR_OUT_OF_MEMORY : create(&alloc[i], bytes, dev);
	*mem = (CUmemGenericAllocationHandle)i + 1;
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle mem)
{
	struct alloc *a;

	pthread_mutex_lock(&model.lock);
	a = alloc_of(mem);
	if (a) {
		a->released = true;
		alloc_put(a);
	}
	pthread_mutex_unlock(&model.lock);
	return a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t align, CUdeviceptr at,
				 unsigned long long flags)
{
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	uint8_t *p;
	int i;

	if (flags || at || align & (align - 1))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&model.lock);
	for (i = 0; i < MAX && range[i].bytes; i++)
		;
	p = i < MAX && whole(bytes) ? mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
					   MAP_NORESERVE, -1, 0) : MAP_FAILED;
	if (p != MAP_FAILED) {
		range[i] = (struct range){ .ptr = (uintptr_t)p, .bytes = bytes };
		*ptr = range[i].ptr;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct range *at;

	pthread_mutex_lock(&model.lock);
	at = range_at(ptr, bytes);
	if (at && !at->alloc) {
		munmap((void *)(uintptr_t)ptr, bytes);
		at->bytes = 0;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

/* The model maps whole reservations only. */
CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
		      CUmemGenericAllocationHandle mem, unsigned long long flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct alloc *a;
	struct range *at;

	pthread_mutex_lock(&model.lock);
	a = alloc_of(mem);
	at = range_at(ptr, bytes);
	if (!flags && a && at && !at->alloc && offset <= a->bytes && bytes <= a->bytes - offset) {
		at->alloc = a;
		at->offset = offset;
		at->access = false;
		a->refs++;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct range *at;

	pthread_mutex_lock(&model.lock);
	at = range_at(ptr, bytes);
	if (at && at->alloc) {
		alloc_put(at->alloc);
		at->alloc = NULL;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc,
			    size_t count)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct range *at;

	pthread_mutex_lock(&model.lock);
	at = range_at(ptr, bytes);
	if (at && at->alloc && count == 1 && desc->location.id == at->alloc->dev) {
		at->access = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

/* ---- for others ---- */

static int descriptor(const struct alloc *a, uint64_t offset, uint64_t bytes)
{
	struct udmabuf_create c = { .memfd = (__u32)a->fd, .flags = UDMABUF_FLAGS_CLOEXEC,
				    .offset = offset, .size = bytes };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (dev < 0)
		return fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
	fd = ioctl(dev, UDMABUF_CREATE, &c);
	close(dev);
	return fd;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t bytes,
					   CUmemRangeHandleType type, unsigned long long flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct range *at;
	int fd;

	if (flags || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&model.lock);
	at = range_at(ptr, bytes);
	if (at && at->alloc)
		r = model.dmabuf ? model_dead(at->alloc->dev) : CUDA_ERROR_NOT_SUPPORTED;
	if (r == CUDA_SUCCESS) {
		fd = descriptor(at->alloc, at->offset, bytes);
		if (fd < 0)
			r = CUDA_ERROR_UNKNOWN;
		*(int *)handle = fd;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags)
{
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	int i;

	if (flags || !bytes || (uintptr_t)p % 4096)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&model.lock);
	for (i = 0; i < MAX && pinned[i].p; i++)
		;
	if (i < MAX) {
		pinned[i] = (struct pinned){ p, bytes };
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuMemHostUnregister(void *p)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	int i;

	pthread_mutex_lock(&model.lock);
	for (i = 0; i < MAX; i++)
		if (pinned[i].p == p) {
			pinned[i].p = NULL;
			r = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&model.lock);
	return r;
}
