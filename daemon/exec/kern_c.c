// SPDX-License-Identifier: MIT
/* Kernels in portable C: four lanes of the compiler's own vectors. */
#include "exec/kern.h"
#include "exec/kern_half.h"

#include <math.h>

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef int8_t vi8 __attribute__((vector_size(4)));

#define VL	  4
#define MK_ROWS	  2
#define KERN_OPS  kern_ops_c
#define KERN_NAME "c"

static inline vf v_set1(float f)
{
	return (vf){ f, f, f, f };
}

static inline vf v_load(const float *p)
{
	vf v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void v_store(float *p, vf v)
{
	memcpy(p, &v, sizeof(v));
}

static inline vf v_load_f16(const uint16_t *p)
{
	return (vf){ f16_to_f32(p[0]), f16_to_f32(p[1]), f16_to_f32(p[2]), f16_to_f32(p[3]) };
}

static inline void v_store_f16(uint16_t *p, vf v)
{
	int i;

	for (i = 0; i < VL; i++)
		p[i] = f32_to_f16(v[i]);
}

static inline vf v_load_bf16(const uint16_t *p)
{
	return (vf){ bits_to_float((uint32_t)p[0] << 16), bits_to_float((uint32_t)p[1] << 16),
		     bits_to_float((uint32_t)p[2] << 16), bits_to_float((uint32_t)p[3] << 16) };
}

static inline vf v_load_i8(const int8_t *p)
{
	vi8 v;

	memcpy(&v, p, sizeof(v));
	return __builtin_convertvector(v, vf);
}

/* An f16 in memory, in all lanes */
static inline vf v_set1_f16(const void *p)
{
	uint16_t h;

	memcpy(&h, p, sizeof(h));
	return v_set1(f16_to_f32(h));
}

static inline vf v_fma(vf a, vf b, vf c)
{
	return a * b + c;
}

static inline vf v_mul(vf a, vf b)
{
	return a * b;
}

static inline vf v_add(vf a, vf b)
{
	return a + b;
}

static inline vf v_div(vf a, vf b)
{
	return a / b;
}

static inline vf v_max(vf a, vf b)
{
	vi m = a > b;

	return (vf)(((vi)a & m) | ((vi)b & ~m));
}

static inline vf v_min(vf a, vf b)
{
	vi m = a < b;

	return (vf)(((vi)a & m) | ((vi)b & ~m));
}

/* r where x >= lim, else 0 */
static inline vf v_keep_ge(vf x, vf lim, vf r)
{
	return (vf)((vi)r & (x >= lim));
}

/* nearest whole number of |x| < 2^22 */
static inline vf v_round(vf x)
{
	const vf magic = v_set1(0x1.8p23f);

	return (x + magic) - magic;
}

/* x * 2^n for whole n, -126 <= n <= 127 */
static inline vf v_scale2(vf x, vf n)
{
	return x * (vf)((__builtin_convertvector(n, vi) + 127) << 23);
}

/* Elements 2i and 2i + 1 change places. */
static inline vf v_swap_pairs(vf v)
{
	return (vf){ v[1], v[0], v[3], v[2] };
}

static inline float v_hmax(vf v)
{
	float a = v[0] > v[1] ? v[0] : v[1];
	float b = v[2] > v[3] ? v[2] : v[3];

	return a > b ? a : b;
}

static inline float v_sum(vf v)
{
	return (v[0] + v[1]) + (v[2] + v[3]);
}

static inline void v_sum4(float out[4], vf a, vf b, vf c, vf d)
{
	out[0] = v_sum(a);
	out[1] = v_sum(b);
	out[2] = v_sum(c);
	out[3] = v_sum(d);
}

#include "exec/kern_body.h"
