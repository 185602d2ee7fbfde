/* SPDX-License-Identifier: MIT */
/*
 * kern_body.h - the kernels, written once over a vector type.
 *
 * Included by kern_<isa>.c, which defines
 *	vf, VL		vector of VL floats
 *	MK_ROWS		activation rows per register block
 *	v_*		operations on vectors
 *	KERN_OPS, KERN_NAME
 *	KERN_HAS_MASKS	if it brings its own v_*_part
 *
 * Matrix product. A register block holds MK_ROWS x MK_OUTS accumulators, one
 * vector for each (row, output): lane i sums the products of elements i,
 * i + VL, i + 2 VL, ... in that order, then v_sum() adds the lanes. The order
 * is the same in every block shape, so it does not matter which one computes
 * an element. Weights are unpacked to f32 exactly (an f16 scale times an int8
 * fits in 24 bits), so unpacking them beforehand changes nothing either: with
 * more than MK_ROWS rows, KERN_PACK_OUTS outputs at a time are unpacked once
 * and used for all rows.
 */

#define MK_OUTS	      4
#define WEIGH_VECS    4 /* vectors of a head weighed together */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define LOG2E	0x1.715476p+0f
#define LN2_HI	0x1.62e4p-1f /* LN2_HI + LN2_LO = ln 2 */
#define LN2_LO	0x1.7f7d1cp-20f
#define EXP_MIN -87.0f /* below: 0 */
#define EXP_MAX 88.0f

#ifndef KERN_HAS_MASKS
/* The first @n < VL elements, by way of a full vector; lanes beyond are zero. */
static inline vf v_load_part(const float *p, size_t n)
{
	float tmp[VL] = { 0 };

	memcpy(tmp, p, n * sizeof(*p));
	return v_load(tmp);
}

static inline vf v_load_f16_part(const uint16_t *p, size_t n)
{
	uint16_t tmp[VL] = { 0 };

	memcpy(tmp, p, n * sizeof(*p));
	return v_load_f16(tmp);
}

static inline vf v_load_bf16_part(const uint16_t *p, size_t n)
{
	uint16_t tmp[VL] = { 0 };

	memcpy(tmp, p, n * sizeof(*p));
	return v_load_bf16(tmp);
}

static inline void v_store_part(float *p, vf v, size_t n)
{
	float tmp[VL];

	v_store(tmp, v);
	memcpy(p, tmp, n * sizeof(*p));
}
#endif

/* exp(x) to about 1e-7 relative; the coefficients are 1/n!. */
ALWAYS_INLINE vf v_exp(vf x)
{
	vf c = v_min(v_max(x, v_set1(EXP_MIN)), v_set1(EXP_MAX));
	vf n = v_round(v_mul(c, v_set1(LOG2E)));
	vf r = v_fma(n, v_set1(-LN2_HI), c);
	vf p = v_set1(1.0f / 5040);

	r = v_fma(n, v_set1(-LN2_LO), r);
	p = v_fma(p, r, v_set1(1.0f / 720));
	p = v_fma(p, r, v_set1(1.0f / 120));
	p = v_fma(p, r, v_set1(1.0f / 24));
	p = v_fma(p, r, v_set1(1.0f / 6));
	p = v_fma(p, r, v_set1(0.5f));
	p = v_fma(p, r, v_set1(1.0f));
	p = v_fma(p, r, v_set1(1.0f));
	return v_keep_ge(x, v_set1(EXP_MIN), v_scale2(p, n));
}

/* Byte offset of element @k in a row, k a multiple of 32 for Q8_0 */
ALWAYS_INLINE size_t w_offset(enum gguf_type type, size_t k)
{
	return type == GGUF_T_Q8_0 ? k / GGUF_Q8_0_ELEMS * GGUF_Q8_0_BYTES :
				     k * (type == GGUF_T_F32 ? 4 : 2);
}

/* The scale of the Q8_0 block of element @k */
ALWAYS_INLINE vf q8_scale(const uint8_t *row, size_t k)
{
	return v_set1_f16(row + k / GGUF_Q8_0_ELEMS * GGUF_Q8_0_BYTES);
}

/* VL int8 of the Q8_0 block of element @k, from the block's element @j */
ALWAYS_INLINE vf q8_load(const uint8_t *row, size_t k, size_t j)
{
	return v_load_i8((const int8_t *)row + 2 + j + k / GGUF_Q8_0_ELEMS * GGUF_Q8_0_BYTES);
}

/* VL weights from element @k of a row, k a multiple of VL */
ALWAYS_INLINE vf w_load(enum gguf_type type, const uint8_t *row, size_t k)
{
	switch (type) {
	case GGUF_T_F32: return v_load((const float *)row + k);
	case GGUF_T_F16: return v_load_f16((const uint16_t *)row + k);
	case GGUF_T_BF16: return v_load_bf16((const uint16_t *)row + k);
	case GGUF_T_Q8_0: return v_mul(q8_scale(row, k), q8_load(row, k, k % GGUF_Q8_0_ELEMS));
	}
	__builtin_unreachable();
}

/* The same for the last, incomplete vector: @n < VL weights, then zeros */
ALWAYS_INLINE vf w_load_part(enum gguf_type type, const uint8_t *row, size_t k, size_t n)
{
	switch (type) {
	case GGUF_T_F32: return v_load_part((const float *)row + k, n);
	case GGUF_T_F16: return v_load_f16_part((const uint16_t *)row + k, n);
	case GGUF_T_BF16: return v_load_bf16_part((const uint16_t *)row + k, n);
	case GGUF_T_Q8_0: /* rows are whole blocks */ break;
	}
	__builtin_unreachable();
}

/* Add the products of elements [0, n) to the accumulators; n = j * step. */
ALWAYS_INLINE void mk_sum(vf acc[MK_ROWS][MK_OUTS], const int nr, const int no,
			  const enum gguf_type type, const uint8_t *w, size_t row_bytes, size_t n,
			  const float *x, size_t ldx)
{
	const bool q8 = type == GGUF_T_Q8_0;
	const size_t step = q8 ? GGUF_Q8_0_ELEMS : VL;
	vf xv[MK_ROWS], scale[MK_OUTS], wv;
	size_t k, j;
	int r, o;

	for (k = 0; k < n; k += step) {
		/* rows are too short for the hardware to get into its stride */
#pragma GCC unroll 8
		for (o = 0; nr == 1 && o < no; o++)
			__builtin_prefetch(w + (o + no) * row_bytes + w_offset(type, k));
#pragma GCC unroll 8
		for (o = 0; q8 && o < no; o++)
			scale[o] = q8_scale(w + o * row_bytes, k);
#pragma GCC unroll 8
		for (j = 0; j < step; j += VL) {
#pragma GCC unroll 8
			for (r = 0; r < nr; r++)
				xv[r] = v_load(x + r * ldx + k + j);
#pragma GCC unroll 8
			for (o = 0; o < no; o++) {
				wv = q8 ? v_mul(scale[o], q8_load(w + o * row_bytes, k, j)) :
					  w_load(type, w + o * row_bytes, k);
#pragma GCC unroll 8
				for (r = 0; r < nr; r++)
					acc[r][o] = v_fma(wv, xv[r], acc[r][o]);
			}
		}
	}
}

/* The same for the incomplete vector at element @k. */
ALWAYS_INLINE void mk_sum_part(vf acc[MK_ROWS][MK_OUTS], const int nr, const int no,
			       const enum gguf_type type, const uint8_t *w, size_t row_bytes,
			       size_t k, size_t n, const float *x, size_t ldx)
{
	vf wv;
	int r, o;

#pragma GCC unroll 8
	for (o = 0; o < no; o++) {
		wv = w_load_part(type, w + o * row_bytes, k, n);
#pragma GCC unroll 8
		for (r = 0; r < nr; r++)
			acc[r][o] = v_fma(wv, v_load(x + r * ldx + k), acc[r][o]);
	}
}

/* One register block: nr <= MK_ROWS rows, no <= MK_OUTS outputs. */
ALWAYS_INLINE void mk_block(const int nr, const int no, const enum gguf_type type, const uint8_t *w,
			    size_t row_bytes, size_t n_in, const float *x, size_t ldx, float *y,
			    size_t ldy, bool add)
{
	const size_t rest = n_in % VL;
	vf acc[MK_ROWS][MK_OUTS];
	float sum[MK_OUTS];
	int r, o;

#pragma GCC unroll 8
	for (r = 0; r < MK_ROWS; r++)
#pragma GCC unroll 8
		for (o = 0; o < MK_OUTS; o++)
			acc[r][o] = v_set1(0.0f);
	mk_sum(acc, nr, no, type, w, row_bytes, n_in - rest, x, ldx);
	if (type != GGUF_T_Q8_0 && rest)
		mk_sum_part(acc, nr, no, type, w, row_bytes, n_in - rest, rest, x, ldx);
#pragma GCC unroll 8
	for (r = 0; r < nr; r++) {
		v_sum4(sum, acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
		for (o = 0; o < no; o++)
			y[r * ldy + o] = add ? y[r * ldy + o] + sum[o] : sum[o];
	}
}

#define MK_CASE(n) \
	case n: mk_block(n, MK_OUTS, type, w, row_bytes, n_in, x, ldx, y, ldy, add); break

/* nr <= MK_ROWS rows, no outputs: MK_OUTS or 1. */
ALWAYS_INLINE void mk_shape(int nr, int no, const enum gguf_type type, const uint8_t *w,
			    size_t row_bytes, size_t n_in, const float *x, size_t ldx, float *y,
			    size_t ldy, bool add)
{
	int r;

	if (no == 1) {
		for (r = 0; r < nr; r++)
			mk_block(1, 1, type, w, row_bytes, n_in, x + r * ldx, ldx, y + r * ldy, ldy,
				 add);
		return;
	}
	switch (nr) {
		MK_CASE(1);
		MK_CASE(2);
#if MK_ROWS >= 3
		MK_CASE(3);
#endif
#if MK_ROWS >= 6
		MK_CASE(4);
		MK_CASE(5);
		MK_CASE(6);
#endif
	}
}

/* All rows x outputs [0, n_out) of weights of one type. */
ALWAYS_INLINE void mm_typed(const enum gguf_type type, const uint8_t *w, size_t row_bytes,
			    size_t n_in, uint32_t n_out, const struct kern_mm *mm, float *y)
{
	uint32_t r, o, nr, no;

	for (r = 0; r < mm->n_rows; r += nr) {
		nr = mm->n_rows - r < MK_ROWS ? mm->n_rows - r : MK_ROWS;
		for (o = 0; o < n_out; o += no) {
			no = n_out - o < MK_OUTS ? 1 : MK_OUTS;
			mk_shape(nr, no, type, w + o * row_bytes, row_bytes, n_in,
				 mm->x + r * mm->ldx, mm->ldx, y + r * mm->ldy + o, mm->ldy,
				 mm->add);
		}
	}
}

/* Not inlined into each other: one copy per type. */
#define MM_TYPED(suffix, type)                                                                \
	static __attribute__((noinline)) void mm_##suffix(const uint8_t *w, size_t row_bytes, \
							  size_t n_in, uint32_t n_out,        \
							  const struct kern_mm *mm, float *y) \
	{                                                                                     \
		mm_typed(type, w, row_bytes, n_in, n_out, mm, y);                             \
	}

MM_TYPED(f32, GGUF_T_F32)
MM_TYPED(f16, GGUF_T_F16)
MM_TYPED(bf16, GGUF_T_BF16)
MM_TYPED(q8_0, GGUF_T_Q8_0)

static void mm_direct(enum gguf_type type, const uint8_t *w, size_t row_bytes, size_t n_in,
		      uint32_t n_out, const struct kern_mm *mm, float *y)
{
	switch (type) {
	case GGUF_T_F32: return mm_f32(w, row_bytes, n_in, n_out, mm, y);
	case GGUF_T_F16: return mm_f16(w, row_bytes, n_in, n_out, mm, y);
	case GGUF_T_BF16: return mm_bf16(w, row_bytes, n_in, n_out, mm, y);
	case GGUF_T_Q8_0: return mm_q8_0(w, row_bytes, n_in, n_out, mm, y);
	}
}

ALWAYS_INLINE void unpack_typed(float *dst, const enum gguf_type type, const uint8_t *src,
				uint32_t n)
{
	uint32_t k;

	for (k = 0; k + VL <= n; k += VL)
		v_store(dst + k, w_load(type, src, k));
	if (type != GGUF_T_Q8_0 && k < n)
		v_store_part(dst + k, w_load_part(type, src, k, n - k), n - k);
}

static void op_unpack(float *dst, enum gguf_type type, const void *src, uint32_t n)
{
	switch (type) {
	case GGUF_T_F32: memcpy(dst, src, (size_t)n * sizeof(*dst)); return;
	case GGUF_T_F16: return unpack_typed(dst, GGUF_T_F16, src, n);
	case GGUF_T_BF16: return unpack_typed(dst, GGUF_T_BF16, src, n);
	case GGUF_T_Q8_0: return unpack_typed(dst, GGUF_T_Q8_0, src, n);
	}
}

static void op_matmul(const struct model_mat *w, const struct kern_mm *mm)
{
	const size_t ld = kern_pad(w->n_in);
	uint32_t o, n, i;

	if (w->type == GGUF_T_F32 || mm->n_rows <= MK_ROWS) {
		mm_direct(w->type, w->data + mm->begin * w->row_bytes, w->row_bytes, w->n_in,
			  mm->end - mm->begin, mm, mm->y);
		return;
	}
	for (o = mm->begin; o < mm->end; o += n) {
		n = mm->end - o < KERN_PACK_OUTS ? mm->end - o : KERN_PACK_OUTS;
		for (i = 0; i < n; i++)
			op_unpack(mm->pack + i * ld, w->type, w->data + (o + i) * w->row_bytes,
				  w->n_in);
		mm_f32((const uint8_t *)mm->pack, ld * sizeof(float), w->n_in, n, mm,
		       mm->y + (o - mm->begin));
	}
}

#include "exec/kern_attend.h"

static float op_dot_i8(const float *q, const int8_t *z, uint32_t n)
{
	vf sum = v_set1(0.0f);
	uint32_t i;

	for (i = 0; i < n; i += VL)
		sum = v_fma(v_load(q + i), v_load_i8(z + i), sum);
	return v_sum(sum);
}

static void op_rmsnorm(float *dst, const float *x, const float *w, uint32_t n, float eps)
{
	vf sum = v_set1(0.0f), scale;
	uint32_t k;

	for (k = 0; k < n; k += VL)
		sum = v_fma(v_load(x + k), v_load(x + k), sum);
	scale = v_set1(1.0f / sqrtf(v_sum(sum) / n + eps));
	for (k = 0; k + VL <= n; k += VL)
		v_store(dst + k, v_mul(v_mul(v_load(x + k), scale), v_load(w + k)));
	if (k < n)
		v_store(dst + k, v_mul(v_mul(v_load(x + k), scale), v_load_part(w + k, n - k)));
}

ALWAYS_INLINE vf silu_mul(vf g, vf u)
{
	vf e = v_exp(v_mul(g, v_set1(-1.0f)));

	return v_div(v_mul(g, u), v_add(e, v_set1(1.0f)));
}

static void op_silu_mul(float *g, const float *u, uint32_t n)
{
	uint32_t k;

	for (k = 0; k + VL <= n; k += VL)
		v_store(g + k, silu_mul(v_load(g + k), v_load(u + k)));
	if (k < n)
		v_store_part(g + k, silu_mul(v_load_part(g + k, n - k), v_load_part(u + k, n - k)),
			     n - k);
}

static void op_to_f16(uint16_t *dst, const float *src, uint32_t n)
{
	uint16_t tmp[VL];
	uint32_t k;

	for (k = 0; k + VL <= n; k += VL)
		v_store_f16(dst + k, v_load(src + k));
	if (k < n) {
		v_store_f16(tmp, v_load_part(src + k, n - k));
		memcpy(dst + k, tmp, (n - k) * sizeof(*dst));
	}
}

const struct kern_ops KERN_OPS = {
	.name = KERN_NAME,
	.matmul = op_matmul,
	.attend = op_attend,
	.dot_i8 = op_dot_i8,
	.turn_key = op_turn_key,
	.rmsnorm = op_rmsnorm,
	.silu_mul = op_silu_mul,
	.unpack = op_unpack,
	.to_f16 = op_to_f16,
};
