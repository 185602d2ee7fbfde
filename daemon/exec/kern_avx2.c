// SPDX-License-Identifier: MIT
/* Kernels for AVX2 with FMA and F16C: eight lanes. */
#include "exec/kern.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

typedef __m256 vf;

#define VL	  8
#define MK_ROWS	  3
#define KERN_OPS  kern_ops_avx2
#define KERN_NAME "avx2"

#define v_set1(f)      _mm256_set1_ps(f)
#define v_load(p)      _mm256_loadu_ps(p)
#define v_store(p, v)  _mm256_storeu_ps(p, v)
#define v_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define v_mul(a, b)    _mm256_mul_ps(a, b)
#define v_add(a, b)    _mm256_add_ps(a, b)
#define v_div(a, b)    _mm256_div_ps(a, b)
#define v_max(a, b)    _mm256_max_ps(a, b)
#define v_min(a, b)    _mm256_min_ps(a, b)
#define v_round(x)     _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

static inline vf v_load_f16(const uint16_t *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline void v_store_f16(uint16_t *p, vf v)
{
	_mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline vf v_load_bf16(const uint16_t *p)
{
	__m128i h = _mm_loadu_si128((const __m128i *)p);

	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

static inline vf v_load_i8(const int8_t *p)
{
	__m128i b = _mm_loadl_epi64((const __m128i *)p);

	return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));
}

/* An f16 in memory, in all lanes */
static inline vf v_set1_f16(const void *p)
{
	int16_t h;

	memcpy(&h, p, sizeof(h));
	return _mm256_cvtph_ps(_mm_set1_epi16(h));
}

/* r where x >= lim, else 0 */
static inline vf v_keep_ge(vf x, vf lim, vf r)
{
	return _mm256_and_ps(_mm256_cmp_ps(x, lim, _CMP_GE_OQ), r);
}

/* x * 2^n for whole n, -126 <= n <= 127 */
static inline vf v_scale2(vf x, vf n)
{
	__m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));

	return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
}

/* Elements 2i and 2i + 1 change places. */
static inline vf v_swap_pairs(vf v)
{
	return _mm256_permute_ps(v, 0xb1);
}

static inline __m128 v_fold(vf v)
{
	return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

static inline float v_hmax(vf v)
{
	__m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* Four sums, each in the order of v_sum(). */
static inline void v_sum4(float out[4], vf a, vf b, vf c, vf d)
{
	__m128 ab = _mm_hadd_ps(v_fold(a), v_fold(b));
	__m128 cd = _mm_hadd_ps(v_fold(c), v_fold(d));

	_mm_storeu_ps(out, _mm_hadd_ps(ab, cd));
}

static inline float v_sum(vf v)
{
	__m128 s = v_fold(v);

	s = _mm_hadd_ps(s, s);
	return _mm_cvtss_f32(_mm_hadd_ps(s, s));
}

#include "exec/kern_body.h"
