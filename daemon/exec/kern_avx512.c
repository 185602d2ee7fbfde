// SPDX-License-Identifier: MIT
/* Kernels for AVX-512 (F, BW, DQ, VL): sixteen lanes. */
#include "exec/kern.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

typedef __m512 vf;

#define VL	  16
#define MK_ROWS	  6
#define KERN_OPS  kern_ops_avx512
#define KERN_NAME "avx512"

#define v_set1(f)      _mm512_set1_ps(f)
#define v_load(p)      _mm512_loadu_ps(p)
#define v_store(p, v)  _mm512_storeu_ps(p, v)
#define v_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define v_mul(a, b)    _mm512_mul_ps(a, b)
#define v_add(a, b)    _mm512_add_ps(a, b)
#define v_div(a, b)    _mm512_div_ps(a, b)
#define v_max(a, b)    _mm512_max_ps(a, b)
#define v_min(a, b)    _mm512_min_ps(a, b)
#define v_round(x)     _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define v_scale2(x, n) _mm512_scalef_ps(x, n)

static inline vf v_load_f16(const uint16_t *p)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline void v_store_f16(uint16_t *p, vf v)
{
	_mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline vf v_load_bf16(const uint16_t *p)
{
	__m256i h = _mm256_loadu_si256((const __m256i *)p);

	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

#define KERN_HAS_MASKS
#define MASK(n) ((__mmask16)((1u << (n)) - 1))

static inline vf v_load_part(const float *p, size_t n)
{
	return _mm512_maskz_loadu_ps(MASK(n), p);
}

static inline vf v_load_f16_part(const uint16_t *p, size_t n)
{
	return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(MASK(n), p));
}

static inline vf v_load_bf16_part(const uint16_t *p, size_t n)
{
	__m256i h = _mm256_maskz_loadu_epi16(MASK(n), p);

	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

static inline void v_store_part(float *p, vf v, size_t n)
{
	_mm512_mask_storeu_ps(p, MASK(n), v);
}

static inline vf v_load_i8(const int8_t *p)
{
	__m128i b = _mm_loadu_si128((const __m128i *)p);

	return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b));
}

/* An f16 in memory, in all lanes */
static inline vf v_set1_f16(const void *p)
{
	int16_t h;

	memcpy(&h, p, sizeof(h));
	return _mm512_cvtph_ps(_mm256_set1_epi16(h));
}

/* r where x >= lim, else 0 */
static inline vf v_keep_ge(vf x, vf lim, vf r)
{
	return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, lim, _CMP_GE_OQ), r);
}

/* Elements 2i and 2i + 1 change places. */
static inline vf v_swap_pairs(vf v)
{
	return _mm512_permute_ps(v, 0xb1);
}

static inline __m128 v_fold(vf v)
{
	__m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));

	return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}

static inline float v_hmax(vf v)
{
	return _mm512_reduce_max_ps(v);
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
