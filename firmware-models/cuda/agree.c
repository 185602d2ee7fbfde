// SPDX-License-Identifier: GPL-2.0
/*
 * agree.c - does libhawk/cuda_api.h say what the toolkit's cuda.h says?
 *
 * Compiled only where there is one.  Each function is declared again, with the types of
 * cuda.h, and each value compared: a difference does not compile.
 */
#include <cuda.h>

#include "../../libhawk/cuda_api.h"

#define DECLARE(name, args)	CUresult CUDAAPI name args;
CUDA_FUNCS(DECLARE)

#define COMPARE(name, value)	_Static_assert((long)name == (value), #name);
CUDA_VALUES(COMPARE)
