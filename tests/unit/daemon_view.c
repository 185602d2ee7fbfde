// SPDX-License-Identifier: MIT
#include "daemon_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Odd sizes, fewer KV heads than heads, a part of the head rotated. */
const struct fx_model view_part = {
	.n_vocab = 107,
	.n_ctx = 131072,
	.n_embd = 172,
	.n_layer = 2,
	.n_head = 4,
	.n_head_kv = 2,
	.head_dim = 42,
	.n_ff = 301,
	.rope_dim = 38,
	.rope_factors = true,
	.seed = 21,
};

/* The whole head rotated, in halves of full vectors. */
const struct fx_model view_full = {
	.n_vocab = 100,
	.n_ctx = 131072,
	.n_embd = 160,
	.n_layer = 2,
	.n_head = 2,
	.n_head_kv = 1,
	.head_dim = 64,
	.n_ff = 320,
	.rope_dim = 64,
	.tied = true,
	.seed = 22,
};

#ifdef __SANITIZE_THREAD__
const char *const view_isas[VIEW_ISAS] = { NULL };
#else
const char *const view_isas[VIEW_ISAS] = { "c", "avx2", "avx512" };
#endif

void view_run_init(struct view_run *run, const struct model *m, uint32_t bt, uint32_t slots,
		   enum exec_kv_type kv)
{
	uint32_t i;

	run->bt = bt;
	run->n_blocks = (slots + bt - 1) / bt;
	run->block_bytes = exec_kv_block_bytes(&m->cfg, bt, kv);
	assert_true(run->n_blocks <= MAX_BLOCKS);
	for (i = 0; i < run->n_blocks; i++) {
		run->blocks[i] = malloc(run->block_bytes);
		assert_non_null(run->blocks[i]);
		memset(run->blocks[i], 0xff, run->block_bytes); /* NaNs */
	}
}

void view_run_free(struct view_run *run)
{
	uint32_t i;

	for (i = 0; i < run->n_blocks; i++)
		free(run->blocks[i]);
}

void view_add(struct view *v, void *const *blocks, uint32_t tok, uint32_t len, int32_t shift)
{
	assert_true(v->n_segs < MAX_TOK);
	v->segs[v->n_segs++] = (struct exec_seg){
		.blocks = blocks,
		.tok = tok,
		.len = len,
		.shift = shift,
	};
	v->n += len;
}

struct exec_row view_row(const struct view *v, int32_t token, uint32_t pos, uint32_t at)
{
	return (struct exec_row){
		.token = token,
		.pos = pos,
		.at = at,
		.segs = v->segs,
		.n_segs = v->n_segs,
		.want_logits = true,
	};
}

void view_read(const struct view *v, const struct model *m, const struct view_run *run, uint32_t at,
	       uint8_t *out)
{
	const uint32_t planes = m->cfg.n_layer * 2 * m->cfg.n_head_kv;
	const size_t elem = run->block_bytes / planes / run->bt;
	const struct exec_seg *s = v->segs;
	uint32_t i, slot;

	for (; at >= s->len; s++)
		at -= s->len;
	slot = s->tok + at;
	for (i = 0; i < planes; i++)
		memcpy(out + i * elem,
		       (uint8_t *)s->blocks[slot / run->bt] +
			       ((size_t)i * run->bt + slot % run->bt) * elem,
		       elem);
}

void view_compute(struct exec *e, const struct view *v, const int32_t *ids, uint32_t from,
		  uint32_t n, float *logits, uint32_t n_vocab, uint32_t *rnd)
{
	struct exec_row rows[64];
	uint32_t i, c;

	for (; from < n; from += c) {
		c = 1 + fx_rand(rnd) % 33;
		if (c > n - from)
			c = n - from;
		for (i = 0; i < c; i++)
			rows[i] = view_row(v, ids[from + i], from + i, from + i);
		if (exec_step(e, rows, c))
			fail_msg("%s", exec_step_error(e));
		for (i = 0; i < c; i++)
			memcpy(logits + (size_t)(from + i) * n_vocab, exec_logits(e, i),
			       n_vocab * sizeof(float));
	}
}
