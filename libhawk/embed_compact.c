// SPDX-License-Identifier: MIT
/*
 * embed_compact.c - what the keeper does for sequences
 *
 * Blocks that nobody sees any more but that were pinned or leased are given back when
 * that has ended.  Sequences with many partly empty blocks are compacted: the engine
 * picks one and names a fresh run; its blocks are filled there with rows of tokens
 * copied from the old ones; then the engine lets the sequence show the new blocks, if
 * nothing but appending has happened to it meanwhile.  It goes on all the time: what it
 * shows until then does not change.  What would need I/O, or the eviction of a block
 * that is not on flash yet, is given up; spaces with memory of a GPU are not compacted.
 */
#include <errno.h>
#include <stdlib.h>

#include "../kmod/core/seq.h"
#include "embed.h"

#define COPIES	1024u	/* of one compaction */

/* A block of a new run, and where its first token comes from. */
struct build {
	struct espace *sp;
	const struct hawk_compact *c;
	u32 i;		/* layer and head group: see lid_of() */
	u32 seg;	/* of c->src */
	u32 off;	/* token of that */
};

/* Head groups that the space keeps. */
static u32 heads(const struct espace *sp)
{
	return sp->geo.head_groups / (sp->geo.tp_degree ? sp->geo.tp_degree : 1);
}

/* LID of block @i of those at token @tok of a run. */
static u64 lid_of(const struct espace *sp, u32 run, u32 i, u32 tok)
{
	u32 n = heads(sp);

	return HAWK_LID(run, i / n, sp->geo.tp_rank * n + i % n,
			tok - tok % sp->geo.block_tokens);
}

static bool stopping(struct espace *sp)
{
	return __atomic_load_n(&sp->e->keeper_stop, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&sp->ending, __ATOMIC_RELAXED);
}

/* A block that is pinned. */
static u8 *block_at(struct espace *sp, u64 vt)
{
	u32 tier = HAWK_VT_TIER(vt);

	return sp->e->tier[tier].base + hawk_frame_off(sp->space, tier, HAWK_VT_FRAME(vt));
}

/* @n tokens from slot @from of block @lid to slot @to of the one at @dst_vt. */
static int copy_tokens(struct espace *sp, u64 dst_vt, u32 to, u64 lid, u32 from, u32 n)
{
	const struct hawk_space_create *g = &sp->geo;
	u8 *src, *dst = block_at(sp, dst_vt);
	struct hawk_ref ref;
	u64 vt, row;
	u32 p;
	int ret = hawk_block_pin(sp->space, lid, now_ns(), &vt, &ref);

	if (ret)
		return ret;
	src = block_at(sp, vt);
	for (p = 0; p < g->planes; p++) {
		row = (u64)p * g->block_tokens;
		memcpy(dst + (row + to) * g->token_bytes, src + (row + from) * g->token_bytes,
		       (size_t)n * g->token_bytes);
	}
	hawk_block_unpin(sp->space, ref);
	return 0;
}

static int fill(struct build *b, u64 vt)
{
	u32 bt = b->sp->geo.block_tokens, slot, tok, n;
	int ret = 0;

	for (slot = 0; !ret && slot < bt && b->seg < b->c->n; slot += n) {
		const struct hawk_seg *src = &b->c->src[b->seg];

		tok = src->tok + b->off;
		n = bt - (slot > tok % bt ? slot : tok % bt);
		n = n < src->len - b->off ? n : src->len - b->off;
		ret = copy_tokens(b->sp, vt, slot, lid_of(b->sp, src->run, b->i, tok), tok % bt, n);
		b->off += n;
		if (b->off == src->len) {
			b->seg++;
			b->off = 0;
		}
	}
	return ret;
}

/* The block of row @row of the new run.  @b goes on to what lies behind it. */
static int build_block(struct build *b, u32 row)
{
	u64 lid = lid_of(b->sp, b->c->run, b->i, row * b->sp->geo.block_tokens);
	struct hawk_space *s = b->sp->space;
	struct hawk_ref ref;
	u64 vt;
	int ret;

	do {
		ret = hawk_block_alloc(s, lid, NULL, HAWK_TIER_ANY, now_ns(), NULL, &vt);
	} while (espace_grew(b->sp, ret));
	if (!ret)
		ret = hawk_block_ref(s, lid, &vt, &ref);
	if (ret)
		return ret;
	ret = window_map(b->sp, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt));
	if (!ret)
		ret = fill(b, vt);
	if (!ret)
		ret = hawk_block_put(s, lid, NULL, false, now_ns());
	if (ret)
		hawk_block_unpin(s, ref);	/* ends it */
	return ret;
}

static int build_run(struct espace *sp, const struct hawk_compact *c)
{
	u32 blocks = sp->geo.layers * heads(sp), row;
	struct build from, b = { .sp = sp, .c = c };
	int ret = 0;

	for (row = 0; !ret && row < c->rows; row++) {
		from = b;
		for (b.i = 0; !ret && b.i < blocks; b.i++) {
			b.seg = from.seg;
			b.off = from.off;
			ret = stopping(sp) ? -ECANCELED : build_block(&b, row);
		}
	}
	return ret;
}

/* Is this block in host memory?  Only a hint. */
static bool resident(struct espace *sp, u64 lid)
{
	u64 vt = hawk_space_translate(sp->space, lid);

	return vt && sp->e->tier[HAWK_VT_TIER(vt)].kind != HAWK_TIER_BLK;
}

static bool all_resident(struct espace *sp, const struct hawk_compact *c)
{
	u32 bt = sp->geo.block_tokens, blocks = sp->geo.layers * heads(sp), k, i;
	u64 tok;

	for (k = 0; k < c->n; k++) {
		const struct hawk_seg *src = &c->src[k];

		for (tok = src->tok - src->tok % bt; tok < (u64)src->tok + src->len; tok += bt)
			for (i = 0; i < blocks; i++)
				if (!resident(sp, lid_of(sp, src->run, i, (u32)tok)))
					return false;
	}
	return true;
}

/* Return: there may be more to compact. */
static bool compact_one(struct espace *sp, struct hawk_compact *c)
{
	u32 frames = 0;
	int ret;

	if (hawk_seq_compact_pick(sp->space, c))
		return false;
	ret = all_resident(sp, c) ? build_run(sp, c) : -EAGAIN;
	if (hawk_seq_compact_end(sp->space, c, !ret) && !ret)
		ret = -ESTALE;
	seqs_reap(sp, &frames);
	return !ret || ret == -ESTALE;
}

static void compact(struct espace *sp)
{
	struct hawk_compact c = { .max = COPIES };

	if (!sp->geo.planes || !sp->e->compact || egpu_space(sp))
		return;
	c.src = malloc(c.max * sizeof(*c.src));
	while (c.src && !stopping(sp) && compact_one(sp, &c))
		;
	free(c.src);
}

/* The keeper: whatever sequences have given up. */
void tidy_all(struct embed *e)
{
	struct espace *sp = NULL;
	u32 frames = 0;

	while ((sp = espace_next(e, sp))) {
		if (!sp->geo.seqs)
			continue;
		seqs_reap(sp, &frames);
		if (__atomic_exchange_n(&sp->untidy, false, __ATOMIC_RELAXED))
			compact(sp);
	}
}
