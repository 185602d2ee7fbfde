// SPDX-License-Identifier: MIT
/*
 * cuda.c - the driver's library, if there is one
 *
 * It is opened once and stays: it cannot be unloaded while any context lives.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "gpu.h"
#include "priv.h"

#define LIBRARY		"libcuda.so.1"
#define VERSION_MIN	11070	/* cuMemGetHandleForAddressRange */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards api, opened */
static struct cuda_api api;
static bool opened;

static const char *const name[] = {
#define CUDA_NAME(func, args)	#func,
	CUDA_FUNCS(CUDA_NAME)
};

/* The names and the members of api come from the same list. */
static int find_all(void *lib)
{
	void **func = (void **)&api;
	size_t i;

	_Static_assert(sizeof(api) == sizeof(name), "one pointer each");
	for (i = 0; i < sizeof(name) / sizeof(*name); i++) {
		func[i] = dlsym(lib, name[i]);
		if (!func[i])
			return hawk_fail(-ENOSYS, LIBRARY " has no %s: install a newer driver", name[i]);
	}
	return 0;
}

const char *cuda_error(const struct cuda_api *cu, CUresult r)
{
	const char *text = NULL;

	cu->cuGetErrorName(r, &text);
	return text ? text : "an unknown error";
}

static int load(void)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int ret, version = 0;
	CUresult r;

	if (!lib)
		return hawk_fail(-ENODEV, "%s: no driver of NVIDIA is installed", dlerror());
	ret = find_all(lib);
	if (ret)
		return ret;
	r = api.cuInit(0);
	if (r != CUDA_SUCCESS)
		return hawk_fail(cuda_errno(r), LIBRARY ": cuInit: %s; see nvidia-smi",
				 cuda_error(&api, r));
	r = api.cuDriverGetVersion(&version);
	if (r != CUDA_SUCCESS || version < VERSION_MIN)
		return hawk_fail(-ENOSYS, LIBRARY " is of CUDA %d.%d, 11.7 or later is needed",
				 version / 1000, version % 1000 / 10);
	opened = true;
	return 0;
}

int cuda_open(const struct cuda_api **cu)
{
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!opened)
		ret = load();
	pthread_mutex_unlock(&lock);
	*cu = &api;
	return ret;
}

int cuda_errno(CUresult r)
{
	switch (r) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_INVALID_VALUE:
		return -EINVAL;
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_NOT_INITIALIZED:
		return -ENODEV;
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
	case CUDA_ERROR_SYSTEM_NOT_READY:
		return -EBUSY;
	case CUDA_ERROR_NOT_PERMITTED:
		return -EPERM;
	case CUDA_ERROR_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case CUDA_ERROR_LAUNCH_TIMEOUT:
		return -ETIMEDOUT;
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
		return -EIO;
	default:
		return -EREMOTEIO;	/* the context is dead, for what somebody else did in it */
	}
}
