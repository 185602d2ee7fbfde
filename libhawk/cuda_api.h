/* SPDX-License-Identifier: MIT */
/*
 * cuda_api.h - what of the CUDA driver API is used here
 *
 * libcuda.so.1 comes with the driver of the GPU and is opened at run time: nothing is needed
 * to build.  Names, values and layouts are those of the API, which stays compatible from
 * version 11.7 on.  Where a toolkit is installed the build compares them with its cuda.h
 * (firmware-models/cuda/agree.c), and whoever includes that first gets its types.
 *
 * CUDA_FUNCS lists the functions under the names that the library exports, so what cuda.h
 * calls cuMemcpyHtoDAsync is cuMemcpyHtoDAsync_v2.
 */
#ifndef HAWK_CUDA_API_H
#define HAWK_CUDA_API_H

#include <stddef.h>

#define CUDA_VALUES(X)							\
	X(CUDA_SUCCESS, 0)						\
	X(CUDA_ERROR_INVALID_VALUE, 1)					\
	X(CUDA_ERROR_OUT_OF_MEMORY, 2)					\
	X(CUDA_ERROR_NOT_INITIALIZED, 3)				\
	X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)				\
	X(CUDA_ERROR_NO_DEVICE, 100)					\
	X(CUDA_ERROR_INVALID_DEVICE, 101)				\
	X(CUDA_ERROR_INVALID_CONTEXT, 201)				\
	X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)				\
	X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)				\
	X(CUDA_ERROR_CONTAINED, 226)					\
	X(CUDA_ERROR_INVALID_HANDLE, 400)				\
	X(CUDA_ERROR_NOT_READY, 600)					\
	X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)				\
	X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)				\
	X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)				\
	X(CUDA_ERROR_ASSERT, 710)					\
	X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)				\
	X(CUDA_ERROR_INVALID_PC, 718)					\
	X(CUDA_ERROR_LAUNCH_FAILED, 719)				\
	X(CUDA_ERROR_NOT_PERMITTED, 800)				\
	X(CUDA_ERROR_NOT_SUPPORTED, 801)				\
	X(CUDA_ERROR_SYSTEM_NOT_READY, 802)				\
	X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)			\
	X(CUDA_ERROR_EXTERNAL_DEVICE, 911)				\
	X(CUDA_ERROR_UNKNOWN, 999)					\
	X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)	\
	X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110) \
	X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116)		\
	X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124)			\
	X(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1)			\
	X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)				\
	X(CU_MEM_HANDLE_TYPE_NONE, 0)					\
	X(CU_MEM_LOCATION_TYPE_DEVICE, 1)				\
	X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)			\
	X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)			\
	X(CU_STREAM_NON_BLOCKING, 1)					\
	X(CU_EVENT_DISABLE_TIMING, 2)

#ifndef CUDA_VERSION	/* of cuda.h */

typedef unsigned int CUresult;
typedef int CUdevice;
typedef unsigned int CUdevice_attribute;
typedef unsigned int CUmemRangeHandleType;
typedef unsigned int CUmemAllocationGranularity_flags;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

typedef struct {
	unsigned int type;	/* CU_MEM_LOCATION_TYPE_ */
	int id;			/* ordinal of the device */
} CUmemLocation;

typedef struct {
	unsigned int type;	/* CU_MEM_ALLOCATION_TYPE_ */
	unsigned int requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	unsigned int flags;	/* CU_MEM_ACCESS_FLAGS_ */
} CUmemAccessDesc;

#define CUDA_ENUM(name, value)	name = value,
enum cuda_values { CUDA_VALUES(CUDA_ENUM) };
#undef CUDA_ENUM

#endif /* CUDA_VERSION */

_Static_assert(sizeof(CUmemAllocationProp) == 32, "layout");
_Static_assert(offsetof(CUmemAllocationProp, location) == 8, "layout");
_Static_assert(offsetof(CUmemAllocationProp, allocFlags) == 24, "layout");
_Static_assert(offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable) == 25, "layout");
_Static_assert(sizeof(CUmemAccessDesc) == 12 && offsetof(CUmemAccessDesc, flags) == 8, "layout");
_Static_assert(sizeof(CUdeviceptr) == 8 && sizeof(CUmemGenericAllocationHandle) == 8, "layout");
_Static_assert(sizeof(CUresult) == 4 && sizeof(CUdevice) == 4, "layout");

#define CUDA_FUNCS(X)							\
	X(cuInit, (unsigned int flags))					\
	X(cuDriverGetVersion, (int *version))				\
	X(cuGetErrorName, (CUresult error, const char **name))		\
	X(cuDeviceGetCount, (int *count))				\
	X(cuDeviceGet, (CUdevice *dev, int ordinal))			\
	X(cuDeviceGetName, (char *name, int len, CUdevice dev))		\
	X(cuDeviceGetPCIBusId, (char *id, int len, CUdevice dev))	\
	X(cuDeviceGetAttribute, (int *value, CUdevice_attribute a, CUdevice dev)) \
	X(cuDevicePrimaryCtxRetain, (CUcontext *ctx, CUdevice dev))	\
	X(cuDevicePrimaryCtxRelease_v2, (CUdevice dev))			\
	X(cuCtxPushCurrent_v2, (CUcontext ctx))				\
	X(cuCtxPopCurrent_v2, (CUcontext *ctx))				\
	X(cuMemGetAllocationGranularity, (size_t *bytes, const CUmemAllocationProp *prop, \
					  CUmemAllocationGranularity_flags option)) \
	X(cuMemCreate, (CUmemGenericAllocationHandle *mem, size_t bytes, \
			const CUmemAllocationProp *prop, unsigned long long flags)) \
	X(cuMemRelease, (CUmemGenericAllocationHandle mem))		\
	X(cuMemAddressReserve, (CUdeviceptr *ptr, size_t bytes, size_t align, CUdeviceptr at, \
				unsigned long long flags))		\
	X(cuMemAddressFree, (CUdeviceptr ptr, size_t bytes))		\
	X(cuMemMap, (CUdeviceptr ptr, size_t bytes, size_t offset,	\
		     CUmemGenericAllocationHandle mem, unsigned long long flags)) \
	X(cuMemUnmap, (CUdeviceptr ptr, size_t bytes))			\
	X(cuMemSetAccess, (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, \
			   size_t count))				\
	X(cuMemGetHandleForAddressRange, (void *handle, CUdeviceptr ptr, size_t bytes, \
					  CUmemRangeHandleType type, unsigned long long flags)) \
	X(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned int flags)) \
	X(cuMemHostUnregister, (void *p))				\
	X(cuStreamCreate, (CUstream *stream, unsigned int flags))	\
	X(cuStreamDestroy_v2, (CUstream stream))			\
	X(cuStreamSynchronize, (CUstream stream))			\
	X(cuEventCreate, (CUevent *event, unsigned int flags))		\
	X(cuEventRecord, (CUevent event, CUstream stream))		\
	X(cuEventSynchronize, (CUevent event))				\
	X(cuEventDestroy_v2, (CUevent event))				\
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)) \
	X(cuMemsetD8Async, (CUdeviceptr dst, unsigned char byte, size_t n, CUstream stream))

#define CUDA_MEMBER(name, args)	CUresult (*name) args;
/* The library's functions. */
struct cuda_api { CUDA_FUNCS(CUDA_MEMBER) };
#undef CUDA_MEMBER

#endif /* HAWK_CUDA_API_H */
