// SPDX-License-Identifier: MIT
/*
 * core_seq_host.c - see core_seq_host.h
 */
#include "core_seq_host.h"

void seqs_init(struct seqs *x, u32 seqs, u32 segs, u64 seed)
{
	struct hawk_space_params p = {
		.block_bytes = 4096, .block_tokens = SEQ_BT, .max_blocks = 1 << 13, .buckets = 8,
		.layers = SEQ_LAYERS, .head_groups = SEQ_HEADS, .seqs = seqs, .segs = segs,
		.shift = true,
	};

	memset(x, 0, sizeof(*x));
	host_init(&x->h, seed);
	p.quota_max[host_tier(&x->h, HAWK_TIER_HOST, 17)] = 17;
	x->s = host_space(&x->h, &p);
}

void seqs_fini(struct seqs *x)
{
	host_space_end(&x->h, x->s);
	host_fini(&x->h);
}

int seqs_do(struct seqs *x, struct hawk_seq_op op)
{
	x->op = op;
	hawk_seq_do(x->s, SEQ_OWNER, &x->op);
	assert_int_not_equal(x->op.status, -EAGAIN);	/* all is reaped after each operation */
	/* rows are freed in pieces, small or large */
	while (hawk_seq_reap(x->s, 1 + host_below(&x->h.rng, 2) * host_below(&x->h.rng, 100),
			     &x->op.frames))
		;
	return x->op.status;
}

u32 seqs_new(struct seqs *x)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_NEW }) ? 0 : x->op.seq;
}

u32 seqs_fork(struct seqs *x, u32 src)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FORK, .src = src };

	return seqs_do(x, op) ? 0 : x->op.seq;
}

int seqs_free(struct seqs *x, u32 seq)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = seq });
}

int seqs_drop(struct seqs *x, u32 seq, u32 start, u32 end)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_DROP, .seq = seq, .start = start,
						.end = end });
}

int seqs_repos(struct seqs *x, u32 seq, u32 start, u32 end, s32 shift)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_REPOS, .seq = seq, .start = start,
						.end = end, .shift = shift });
}

int seqs_truncate(struct seqs *x, u32 seq, u32 len)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_TRUNCATE, .seq = seq,
						.len = len });
}

int seqs_advance(struct seqs *x, u32 seq, u32 len)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_ADVANCE, .seq = seq, .len = len });
}

int seqs_compose(struct seqs *x, u32 seq, u32 src, u32 start, u32 end, s32 shift)
{
	return seqs_do(x, (struct hawk_seq_op){ .op = HAWK_SEQ_COMPOSE, .seq = seq, .src = src,
						.start = start, .end = end, .shift = shift });
}

/* ---- bytes ---- */

/* A block of its own under @lid, which exists: pinned and FILLING. */
static u64 make_private(struct seqs *x, u64 lid)
{
	struct hawk_ref ref;
	u64 vt;
	int ret;

	assert_int_equal(hawk_block_pin(x->s, lid, x->now, &vt, &ref), 0);
	for (;;) {
		ret = host_block_unshare(x->s, lid, x->now, host_plan(&x->h, HOST_PLAN), &vt,
					 &ref);
		host_run(&x->h);
		if (ret != -EAGAIN)
			break;
	}
	assert_int_equal(ret, 0);
	return vt;
}

/* Put the tokens of one block. */
static void block_write(struct seqs *x, u64 lid, u32 slot, u32 len, const u16 *ids, bool fresh)
{
	u32 salt = hawk_lid_layer(lid) * SEQ_HEADS + hawk_lid_head(lid), i;
	u64 vt, tag = 0;

	lid = hawk_lid_block(lid, SEQ_BT);
	if (fresh) {
		assert_int_equal(host_alloc(&x->h, x->s, lid, NULL, x->now, &vt), 0);
	} else {
		vt = make_private(x, lid);
		tag = host_read(&x->h, x->s, vt);
	}
	for (i = 0; i < len; i++) {
		tag &= ~(0xffffull << 16 * (slot + i));
		tag |= (u64)(u16)(ids[i] * 4 + salt) << 16 * (slot + i);
	}
	host_write(&x->h, x->s, vt, tag);
	assert_int_equal(hawk_block_put(x->s, lid, NULL, false, x->now), 0);
}

void seqs_rows(struct seqs *x, u32 run, u32 tok, u32 len, const u16 *ids, bool copy,
	       u32 from_run, u32 from_tok)
{
	u32 layer, head, at, n, slot;
	u64 lid;

	for (layer = 0; layer < SEQ_LAYERS; layer++)
		for (head = 0; head < SEQ_HEADS; head++)
			for (at = 0; at < len; at += n) {
				slot = (tok + at) % SEQ_BT;
				n = SEQ_BT - slot < len - at ? SEQ_BT - slot : len - at;
				lid = HAWK_LID(run, layer, head, tok + at);
				if (copy && !at)
					assert_int_equal(hawk_block_fork(x->s,
						HAWK_LID(from_run, layer, head, from_tok), lid), 0);
				block_write(x, lid, slot, n, ids + at, !slot);
			}
}

int seqs_append(struct seqs *x, u32 code, u32 seq, u32 len, u32 pos, const u16 *ids)
{
	struct hawk_seq_op *op = &x->op;
	u16 *next = NULL;
	u32 i;

	if (seqs_do(x, (struct hawk_seq_op){ .op = code, .seq = seq, .len = len, .pos = pos }))
		return op->status;
	if (op->cow_len)
		assert_int_equal(op->cow_len, op->tok % SEQ_BT);
	if (!ids) {
		next = test_malloc(len * sizeof(*next));
		for (i = 0; i < len; i++)
			next[i] = x->ids++ % ID_MAX + 1;
		ids = next;
	}
	seqs_rows(x, op->run, op->tok, len, ids, op->cow_len, op->cow_run, op->cow_tok);
	test_free(next);
	return 0;
}

u16 seqs_id(struct seqs *x, u32 run, u32 tok)
{
	u32 layer, head;
	u16 got, id = 0;
	struct hawk_ref ref;
	u64 vt;

	for (layer = 0; layer < SEQ_LAYERS; layer++)
		for (head = 0; head < SEQ_HEADS; head++) {
			u64 lid = hawk_lid_block(HAWK_LID(run, layer, head, tok), SEQ_BT);

			if (hawk_block_ref(x->s, lid, &vt, &ref))
				return 0;
			got = host_read(&x->h, x->s, vt) >> 16 * (tok % SEQ_BT);
			got -= layer * SEQ_HEADS + head;
			if (got % 4 || (id && got != id))
				return 0;
			id = got;
		}
	return id / 4;
}

void seqs_compact_copy(struct seqs *x, const struct hawk_compact *c)
{
	u32 i, j, n = 0;
	u16 *ids = test_malloc(c->rows * SEQ_BT * sizeof(*ids));

	for (i = 0; i < c->n; i++)
		for (j = 0; j < c->src[i].len; j++)
			ids[n++] = seqs_id(x, c->src[i].run, c->src[i].tok + j);
	assert_in_range(n, (c->rows - 1) * SEQ_BT + 1, c->rows * SEQ_BT);
	seqs_rows(x, c->run, 0, n, ids, false, 0, 0);
	test_free(ids);
}

/* ---- checks ---- */

u32 seqs_lids(struct seqs *x)
{
	u32 i, n = 0;

	for (i = 0; i < 2 * x->s->seqs->max; i++)
		n += x->s->seqs->run[i].lids;
	return n;
}

/* Does a node of the run cover the row, or does it wait? */
static bool row_known(const struct hawk_seqs *q, const struct hawk_run *r, u32 row)
{
	u32 i;

	if (hawk_run_rows_node(q, r, row, row + 1))
		return true;
	for (i = 0; i < r->n; i++)
		if (r->range[i].row <= row && row < r->range[i].end)
			return true;
	return r->kept;
}

void seqs_check(struct seqs *x)
{
	struct hawk_space *s = x->s;
	u32 i, m;

	host_check(s);
	for (i = 0; i < s->max_blocks; i++) {
		if (s->block[i].state == HAWK_BLOCK_FREE)
			continue;
		for (m = s->block[i].maps; m != HAWK_NONE; m = s->map[m].alias) {
			u64 lid = s->map[m].lid;

			if (hawk_lid_is_run(s, lid))
				assert_true(row_known(s->seqs,
						      &s->seqs->run[hawk_lid_seq(lid) - s->run_base],
						      hawk_lid_tok(lid) / SEQ_BT));
		}
	}
}
