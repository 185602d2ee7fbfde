/* SPDX-License-Identifier: MIT */
/*
 * kern.h - the arithmetic of the executor, one table per instruction set.
 *
 * Every result below has one fixed order of floating-point operations per
 * output element. It depends on the sizes of that output's own operands, never
 * on how many rows or outputs a call covers. That is what makes the executor
 * batch-invariant; a change that breaks it fails tests/unit/daemon_exec.
 *
 * Activation rows are padded with zeros to a multiple of KERN_PAD floats, so
 * that a kernel may read (not write) up to that boundary.
 */
#ifndef HAWK_KERN_H
#define HAWK_KERN_H

#include "exec/exec.h"
#include "exec/turn.h"

#define KERN_PAD       16u /* floats; the widest vector in use */
#define KERN_PACK_OUTS 16u /* outputs unpacked to f32 at a time */

static inline size_t kern_pad(size_t n)
{
	return (n + KERN_PAD - 1) & ~(size_t)(KERN_PAD - 1);
}

/**
 * struct kern_mm - operands of a matrix product
 * @x: activations, @n_rows rows of @ldx floats, padded
 * @y: results, @ldy floats from row to row; y[0] is output @begin
 * @begin: first output (row of the weight matrix)
 * @end: one past the last output
 * @add: add to @y instead of overwriting it
 * @pack: scratch of KERN_PACK_OUTS * kern_pad(n_in) floats
 */
struct kern_mm {
	const float *x;
	float *y;
	size_t ldx, ldy;
	uint32_t n_rows;
	uint32_t begin, end;
	bool add;
	float *pack;
};

/**
 * struct kern_attn - attention of some queries over one key/value head
 *
 * The queries are the @group heads of @n_rows rows of one sequence at
 * consecutive visible indices from @at; they share the key/value head. Tokens
 * are visited in spans of block_tokens by visible index, each query folding one
 * span after the other into its running maximum, sum and weighted values.
 *
 * @q: [n_rows * group][ldq], scaled by 1/sqrt(head_dim), padded
 * @out: result; query (r, g) goes to out + r * ld_out + g * head_dim
 * @segs: the visible tokens of the sequence; those up to @at + @n_rows - 1
 *        are there
 * @k_off: byte offset in a block of this head's keys [block_tokens][head_dim]
 * @v_off: the same for the values
 * @kv_type: GGUF_T_F16 or GGUF_T_F32
 * @scores: scratch [n_rows * group][kern_pad(block_tokens)]
 * @state: scratch, 2 floats per query
 * @planes: scratch of 2 * block_tokens * head_dim floats
 * @turn: this thread's rotations for shifted segments
 */
struct kern_attn {
	const float *q;
	float *out;
	const struct exec_seg *segs;
	size_t ldq, ld_out;
	size_t k_off, v_off;
	uint32_t n_rows, group, at;
	uint32_t head_dim, block_tokens;
	enum gguf_type kv_type;
	float *scores;
	float *state;
	float *planes;
	struct turn_cache *turn;
};

/**
 * struct kern_ops - kernels of one instruction set
 * @name: as in $HAWK_ISA
 * @matmul: y[r][o] (+)= dot(w[begin + o], x[r])
 * @attend: see struct kern_attn
 * @dot_i8: sum of q[i] * z[i], @n a multiple of KERN_PAD
 * @turn_key: rotate one key of head_dim floats by a table of @t
 * @rmsnorm: dst = x / sqrt(mean(x^2) + eps) * w; dst and x padded
 * @silu_mul: g = g / (1 + exp(-g)) * u
 * @unpack: n consecutive elements of any type to f32
 * @to_f16: n floats to f16, round to nearest even
 */
struct kern_ops {
	const char *name;
	void (*matmul)(const struct model_mat *w, const struct kern_mm *mm);
	void (*attend)(const struct kern_attn *a);
	float (*dot_i8)(const float *q, const int8_t *z, uint32_t n);
	void (*turn_key)(float *k, const struct turn_cache *t, const struct turn_table *tt);
	void (*rmsnorm)(float *dst, const float *x, const float *w, uint32_t n, float eps);
	void (*silu_mul)(float *g, const float *u, uint32_t n);
	void (*unpack)(float *dst, enum gguf_type type, const void *src, uint32_t n);
	void (*to_f16)(uint16_t *dst, const float *src, uint32_t n);
};

extern const struct kern_ops kern_ops_c;
#ifdef __x86_64__
extern const struct kern_ops kern_ops_avx2;
extern const struct kern_ops kern_ops_avx512;
#endif

/**
 * kern_select() - pick the kernels for this CPU
 * @isa: a name, or NULL for $HAWK_ISA, or else the best available
 * @ops: set on success
 *
 * Return: 0; -EINVAL unknown name; -EOPNOTSUPP this CPU lacks it.
 */
int kern_select(const char *isa, const struct kern_ops **ops, char err[GGUF_ERR_LEN]);

#endif
