// SPDX-License-Identifier: GPL-2.0
/*
 * model.c - settings and counters of the stand-in, its devices and contexts
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

struct CUctx_st {
	int dev;
	unsigned int refs;
};

struct model model = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.cond = PTHREAD_COND_INITIALIZER,
	.devices = 1, .mem = 256ull << 20, .gran = 2ull << 20,
	.dmabuf = 1, .rdma = 1, .vmm = 1, .version = 12040, .ecc = ~0ull,
};

static struct CUctx_st context[DEVICES_MAX];

#define STACK	8	/* contexts that a thread has pushed */
static __thread struct {
	CUcontext ctx[STACK];
	unsigned int n;
} current;

/* ---- settings and counters ---- */

static const struct {
	const char *name;
	uint64_t *value;
	bool counter;
} key[] = {
	{ "devices", &model.devices, false },
	{ "mem", &model.mem, false },
	{ "gran", &model.gran, false },
	{ "to_device_mb_s", &model.mb_s[TO_DEVICE], false },
	{ "to_host_mb_s", &model.mb_s[TO_HOST], false },
	{ "within_mb_s", &model.mb_s[WITHIN], false },
	{ "latency_us", &model.latency_us, false },
	{ "dmabuf", &model.dmabuf, false },
	{ "rdma", &model.rdma, false },
	{ "vmm", &model.vmm, false },
	{ "version", &model.version, false },
	{ "fail", &model.fail, false },
	{ "after", &model.after, false },
	{ "ecc", &model.ecc, false },
	{ "hold", &model.hold, false },
	{ "copies", &model.copies, true },
	{ "pageable", &model.pageable, true },
	{ "to_device_bytes", &model.bytes[TO_DEVICE], true },
	{ "to_host_bytes", &model.bytes[TO_HOST], true },
	{ "within_bytes", &model.bytes[WITHIN], true },
	{ "flying", &model.flying, true },
	{ "flying_max", &model.flying_max, true },
	{ "handles", &model.handles, true },
	{ "contexts", &model.contexts, true },
	{ "streams", &model.streams, true },
};

static uint64_t *find(const char *name, size_t len, bool counters)
{
	size_t i;

	for (i = 0; i < sizeof(key) / sizeof(*key); i++)
		if (strlen(key[i].name) == len && !memcmp(key[i].name, name, len) &&
		    (counters || !key[i].counter))
			return key[i].value;
	return NULL;
}

/**
 * cuda_model_set() - change settings
 * @settings: "KEY=NUMBER[,KEY=NUMBER]..."
 *
 * Return: 0, or -1 at the first one that is not understood.
 */
int cuda_model_set(const char *settings)
{
	int ret = 0;

	pthread_mutex_lock(&model.lock);
	while (!ret && *settings) {
		size_t len = strcspn(settings, "=");
		uint64_t *value = find(settings, len, false);
		char *end = NULL;

		if (value && settings[len])
			*value = strtoull(settings + len + 1, &end, 0);
		ret = !end || end == settings + len + 1 || (*end && *end != ',') ? -1 : 0;
		settings = ret ? settings : end + (*end == ',');
	}
	if (model.devices > DEVICES_MAX)
		model.devices = DEVICES_MAX;
	pthread_cond_broadcast(&model.cond);
	pthread_mutex_unlock(&model.lock);
	return ret;
}

/* cuda_model_get() - a setting or counter, ~0: there is no such one */
uint64_t cuda_model_get(const char *name)
{
	uint64_t *value = find(name, strlen(name), true), v = ~0ull;

	pthread_mutex_lock(&model.lock);
	if (value)
		v = *value;
	pthread_mutex_unlock(&model.lock);
	return v;
}

/* cuda_model_revive() - contexts that have died are as new; counters are 0 */
void cuda_model_revive(void)
{
	int dev;

	for (dev = 0; dev < DEVICES_MAX; dev++)
		__atomic_store_n(&model.dead[dev], CUDA_SUCCESS, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&model.lock);
	model.fail = 0;
	model.after = 0;
	model.ecc = ~0ull;
	model.copies = 0;
	model.pageable = 0;
	model.flying_max = 0;
	memset(model.bytes, 0, sizeof(model.bytes));
	pthread_mutex_unlock(&model.lock);
}

/* The error of a device's context, with the lock held or not: it is set once. */
CUresult model_dead(int dev)
{
	return dev < 0 ? CUDA_ERROR_INVALID_CONTEXT : __atomic_load_n(&model.dead[dev],
								       __ATOMIC_SEQ_CST);
}

void model_kill(int dev, CUresult error)
{
	CUresult none = CUDA_SUCCESS;

	__atomic_compare_exchange_n(&model.dead[dev], &none, error, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
}

/* The device of the thread's context, -1: it has none. */
int model_device(void)
{
	return current.n ? current.ctx[current.n - 1]->dev : -1;
}

/* ---- the library and its devices ---- */

CUresult cuInit(unsigned int flags)
{
	const char *settings = getenv("HAWK_CUDA_MODEL");

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!model.ready && settings && cuda_model_set(settings)) {
		fprintf(stderr, "HAWK_CUDA_MODEL: cannot read '%s'\n", settings);
		return CUDA_ERROR_INVALID_VALUE;
	}
	__atomic_store_n(&model.ready, true, __ATOMIC_SEQ_CST);
	return cuda_model_get("devices") ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = (int)cuda_model_get("version");
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
#define NAME(id, value)	{ #id, value },
	static const struct { const char *name; unsigned int value; } all[] = { CUDA_VALUES(NAME) };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].value == error && !strncmp(all[i].name, "CUDA_", 5)) {
			*name = all[i].name;
			return CUDA_SUCCESS;
		}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(CUdevice dev)
{
	if (!model.ready)
		return CUDA_ERROR_NOT_INITIALIZED;
	return dev < 0 || (uint64_t)dev >= cuda_model_get("devices") ? CUDA_ERROR_INVALID_DEVICE :
								       CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = (int)cuda_model_get("devices");
	return model.ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	*dev = ordinal;
	return check(ordinal);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	snprintf(name, (size_t)len, "Hawk model GPU %d", dev);
	return check(dev);
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	snprintf(id, (size_t)len, "0000:%02x:00.0", 0x10 + dev);
	return check(dev);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute a, CUdevice dev)
{
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		*value = (int)cuda_model_get("vmm");
		break;
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		*value = (int)cuda_model_get("dmabuf");
		break;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
		*value = (int)cuda_model_get("rdma");
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return check(dev);
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	CUresult r = check(dev);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&model.lock);
	context[dev].dev = dev;
	if (!context[dev].refs++)
		model.contexts++;
	pthread_mutex_unlock(&model.lock);
	*ctx = &context[dev];
	return model_dead(dev);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult r = check(dev);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&model.lock);
	if (!context[dev].refs)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--context[dev].refs)
		model.contexts--;
	pthread_mutex_unlock(&model.lock);
	return r;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	if (!ctx || current.n == STACK)
		return CUDA_ERROR_INVALID_VALUE;
	current.ctx[current.n++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (!current.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctx = current.ctx[--current.n];
	return CUDA_SUCCESS;
}
