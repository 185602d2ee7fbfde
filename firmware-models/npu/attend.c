// SPDX-License-Identifier: GPL-2.0
/*
 * attend.c - attention of one token to paged blocks in tiles of 16 x 16
 *
 * Keys, values and queries are 16-bit floats, everything that is summed is a 32-bit one.
 * A head's tokens are walked once: the softmax keeps the largest score so far and scales
 * what it has summed when a larger one comes.
 */
#include <math.h>
#include <string.h>

#include "npu.h"

#define TILE	16u

static float half(uint16_t h)
{
	uint32_t exp = h >> 10 & 0x1f, frac = h & 0x3ff, bits = (uint32_t)(h & 0x8000) << 16;
	float f;

	if (!exp)
		return (h & 0x8000 ? -1.0f : 1.0f) * ldexpf(frac, -24);
	bits |= exp == 31 ? 0xffu << 23 : (exp + 127 - 15) << 23;
	bits |= frac << 13;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

static float half_at(const uint8_t *p, uint64_t i)
{
	uint16_t h;

	memcpy(&h, p + 2 * i, sizeof(h));
	return half(h);
}

/* Element (t, d) of a matrix in tiles. */
static uint64_t place(uint32_t dim, uint32_t t, uint32_t d)
{
	return ((t / TILE * (dim / TILE) + d / TILE) * TILE + t % TILE) * TILE + d % TILE;
}

/*
 * struct head - a query head on its way through the tokens
 * @q: the query, scaled
 * @out: sum of weighted values
 * @max: largest score
 * @sum: of weights
 */
struct head {
	float q[HAWK_NPU_QUERY_MAX];
	float *out;
	float max;
	float sum;
};

static void see_token(struct head *h, uint32_t dim, const uint8_t *k, const uint8_t *v, uint32_t t)
{
	float score = 0, w;
	uint32_t d;

	for (d = 0; d < dim; d++)
		score += h->q[d] * half_at(k, place(dim, t, d));
	if (score > h->max) {
		w = expf(h->max - score);
		for (d = 0; d < dim; d++)
			h->out[d] *= w;
		h->sum *= w;
		h->max = score;
	}
	w = expf(score - h->max);
	h->sum += w;
	for (d = 0; d < dim; d++)
		h->out[d] += w * half_at(v, place(dim, t, d));
}

/* Head @i of the query, to @out. */
static void attend_head(const struct npu *n, const struct hawk_npu_attend *a,
			const uint64_t *block, const uint8_t *query, uint32_t i, float *out)
{
	uint64_t kv = i / (a->heads / a->kv_heads);
	uint64_t at = kv * a->block_tokens * a->dim * 2;
	static struct head h;
	float scale;
	uint32_t d, t;

	memcpy(&scale, &a->scale, sizeof(scale));
	for (d = 0; d < a->dim; d++) {
		h.q[d] = scale * half_at(query, (uint64_t)i * a->dim + d);
		out[d] = 0;
	}
	h.out = out;
	h.max = -INFINITY;
	h.sum = 0;
	for (t = 0; t < a->tokens; t++) {
		const uint8_t *b = n->mem + block[t / a->block_tokens];

		see_token(&h, a->dim, b + a->k_off + at, b + a->v_off + at, t % a->block_tokens);
	}
	for (d = 0; d < a->dim; d++)
		out[d] /= h.sum;
}

static bool is_good(const struct hawk_npu_attend *a, uint64_t block_bytes, uint32_t blocks)
{
	uint64_t matrices;

	if (!a->kv_heads || !a->heads || a->heads % a->kv_heads || !a->dim || a->dim % TILE ||
	    (uint32_t)a->heads * a->dim > HAWK_NPU_QUERY_MAX)
		return false;
	if (!a->block_tokens || a->block_tokens % TILE || !a->tokens ||
	    (a->tokens - 1) / a->block_tokens != blocks - 1)
		return false;
	matrices = (uint64_t)a->kv_heads * a->block_tokens * a->dim * 2;
	return matrices <= block_bytes && a->k_off <= block_bytes - matrices &&
	       a->v_off <= block_bytes - matrices;
}

uint32_t npu_op_attend(struct npu *n, const struct hawk_npu_sqe *cmd)
{
	uint8_t *scratch = n->mem + HAWK_NPU_SCRATCH_OFF + cmd->slot * HAWK_NPU_SCRATCH_BYTES;
	static uint8_t query[HAWK_NPU_SCRATCH_OUT];
	static float out[HAWK_NPU_QUERY_MAX];
	uint64_t block[HAWK_NPU_BLOCKS];
	struct hawk_npu_attend a;
	uint32_t i;

	memcpy(&a, cmd->arg, sizeof(a));
	if (!cmd->nlist || cmd->nlist > HAWK_NPU_BLOCKS || !is_good(&a, cmd->len, cmd->nlist))
		return HAWK_NPU_ERR_RANGE;
	memcpy(block, n->mem + HAWK_NPU_LIST_OFF + cmd->slot * HAWK_NPU_LIST_BYTES,
	       sizeof(block));
	for (i = 0; i < cmd->nlist; i++) {
		if (!npu_in_memory(n, block[i], cmd->len))
			return HAWK_NPU_ERR_RANGE;
		if (npu_is_damaged(n, block[i], cmd->len))
			return HAWK_NPU_ERR_ECC;
	}
	memcpy(query, scratch, sizeof(query));
	for (i = 0; i < a.heads; i++)
		attend_head(n, &a, block, query, i, out + (size_t)i * a.dim);
	memcpy(scratch + HAWK_NPU_SCRATCH_OUT, out, (size_t)a.heads * a.dim * sizeof(*out));
	return HAWK_NPU_OK;
}
