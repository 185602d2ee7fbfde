// SPDX-License-Identifier: GPL-2.0
/*
 * compact.c - looks after sequences when nobody waits for it
 *
 * Blocks that nobody sees any more but that were pinned or leased are given back when
 * that has ended, and sequences with many partly empty blocks are compacted:
 *
 *	pick	the engine names a sequence, the tokens to copy and a fresh run
 *	build	block by block of that run: alloc, copy rows of tokens, put
 *	end	the engine lets the sequence show the new blocks, if nothing but
 *		appending has happened to it meanwhile, and forgets the old ones
 *
 * The sequence goes on all the time: until the end it shows its old blocks, which
 * change no more, and a reader that has pinned one keeps it.  Each source is pinned
 * while it is copied.  What would need I/O or the eviction of a block that is not on
 * flash yet is given up: compaction is to save room, not to cost any.
 */
#include "hawk.h"
#include "core/seq.h"
#include "trace.h"

#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#define HAWK_TIDY_MS		100	/* after a change */
#define HAWK_COMPACT_SEGS	1024u	/* copies of one compaction */
#define HAWK_TURN_COMPACT	16	/* compactions of one space before the next has its turn */
#define HAWK_TURN_REAP		256	/* likewise, looks for blocks that nobody sees */

/**
 * struct hawk_build - a block of a new run
 * @as: the space
 * @c: the plan
 * @i: its layer and head group: see hawk_lid_of()
 * @seg: of @c->src: where its first token comes from
 * @off: token of that
 */
struct hawk_build {
	struct hawk_as *as;
	const struct hawk_compact *c;
	u32 i;
	u32 seg;
	u32 off;
};

/* Head groups that the space keeps. */
static u32 hawk_as_heads(const struct hawk_as *as)
{
	return as->info.head_groups / (as->info.tp_degree ?: 1);
}

/* LID of block @i of those at token @tok of a run. */
static u64 hawk_lid_of(const struct hawk_as *as, u32 run, u32 i, u32 tok)
{
	u32 heads = hawk_as_heads(as);

	return HAWK_LID(run, i / heads, as->info.tp_rank * heads + i % heads,
			tok - tok % as->info.block_tokens);
}

/* Where a pinned block lies; NULL: not in memory that the CPU may copy. */
static struct hawk_mem *hawk_block_mem(struct hawk_as *as, u64 vt, u64 *off)
{
	u32 tier = HAWK_VT_TIER(vt);
	struct hawk_mem *m = as->mem[tier];

	*off = hawk_frame_off(as->space, tier, HAWK_VT_FRAME(vt));
	if (!m->ops->page || m->ops->xfer || READ_ONCE(m->lost) || *off == ~0ull)
		return NULL;
	return m;
}

static void hawk_copy_bytes(struct hawk_mem *dst, u64 to, struct hawk_mem *src, u64 from,
			    u32 bytes)
{
	u32 n;

	for (; bytes; bytes -= n, to += n, from += n) {
		n = min_t(u32, bytes, PAGE_SIZE - max(offset_in_page(to), offset_in_page(from)));
		memcpy_page(dst->ops->page(dst, round_down(to, PAGE_SIZE)), offset_in_page(to),
			    src->ops->page(src, round_down(from, PAGE_SIZE)),
			    offset_in_page(from), n);
	}
}

/* @n tokens from slot @from of block @lid to slot @to of the block at @dst. */
static int hawk_copy_tokens(struct hawk_as *as, u64 dst_vt, u32 to, u64 lid, u32 from, u32 n)
{
	const struct hawk_space_info *info = &as->info;
	struct hawk_mem *src, *dst;
	u64 vt, src_off, dst_off;
	struct hawk_ref ref;
	u32 p, row;
	int ret = hawk_block_pin(as->space, lid, ktime_get_ns(), &vt, &ref);

	if (ret)
		return ret;
	src = hawk_block_mem(as, vt, &src_off);
	dst = hawk_block_mem(as, dst_vt, &dst_off);
	for (p = 0; src && dst && p < info->planes; p++) {
		row = p * info->block_tokens;
		hawk_copy_bytes(dst, dst_off + (u64)(row + to) * info->token_bytes,
				src, src_off + (u64)(row + from) * info->token_bytes,
				n * info->token_bytes);
	}
	hawk_block_unpin(as->space, ref);
	return src && dst ? 0 : -EOPNOTSUPP;
}

/* Fills the block at @vt. */
static int hawk_build_fill(struct hawk_build *b, u64 vt)
{
	u32 bt = b->as->info.block_tokens, slot, tok, n;
	int ret = 0;

	for (slot = 0; !ret && slot < bt && b->seg < b->c->n; slot += n) {
		const struct hawk_seg *src = &b->c->src[b->seg];

		tok = src->tok + b->off;
		n = min3(bt - slot, bt - tok % bt, src->len - b->off);
		ret = hawk_copy_tokens(b->as, vt, slot,
				       hawk_lid_of(b->as, src->run, b->i, tok), tok % bt, n);
		b->off += n;
		if (b->off == src->len) {
			b->seg++;
			b->off = 0;
		}
	}
	return ret;
}

/* The block of row @row of the new run.  @b goes on to what lies behind it. */
static int hawk_build_block(struct hawk_build *b, u32 row)
{
	u64 lid = hawk_lid_of(b->as, b->c->run, b->i, row * b->as->info.block_tokens);
	struct hawk_space *s = b->as->space;
	struct hawk_ref ref;
	u64 vt;
	int ret;

	do {
		ret = hawk_block_alloc(s, lid, NULL, HAWK_TIER_ANY, ktime_get_ns(), NULL, &vt);
	} while (hawk_as_grew(b->as, ret));
	if (ret)
		return ret;
	ret = hawk_block_ref(s, lid, &vt, &ref);
	if (ret)
		return ret;
	ret = hawk_build_fill(b, vt);
	if (!ret)
		ret = hawk_block_put(s, lid, NULL, false, ktime_get_ns());
	if (ret)
		hawk_block_unpin(s, ref);	/* ends it */
	return ret;
}

/*
 * It is a round with an event: who finds no room meanwhile - the space is growing, or the
 * last frames are those of the copy - waits for that to end, and then looks again.
 */
static int hawk_build_round(struct hawk_build *b, u32 row)
{
	int ret;

	hawk_round_begin(b->as);
	ret = hawk_build_block(b, row);
	atomic64_inc(&b->as->events);
	hawk_round_end(b->as);
	return ret;
}

/* Nobody wants it any more: it is switched off, or the space is only ours. */
static bool hawk_compact_stopped(const struct hawk_as *as)
{
	return !READ_ONCE(hawk_dev.seq_compact) || kref_read(&as->ref) == 1;
}

/* All blocks of the new run. */
static int hawk_compact_build(struct hawk_as *as, const struct hawk_compact *c)
{
	u32 blocks = as->info.layers * hawk_as_heads(as), row, i;
	struct hawk_build b, next = { .as = as, .c = c };
	int ret = 0;

	for (row = 0; row < c->rows; row++) {
		b = next;
		for (i = 0; !ret && i < blocks; i++) {
			next.seg = b.seg;
			next.off = b.off;
			next.i = i;
			ret = hawk_compact_stopped(as) ? -ECANCELED : hawk_build_round(&next, row);
			cond_resched();
		}
		if (ret)
			break;
	}
	return ret;
}

/* Are all sources in host memory?  Only a hint: it saves work that would be for nothing. */
static bool hawk_compact_resident(struct hawk_as *as, const struct hawk_compact *c)
{
	u32 bt = as->info.block_tokens, blocks = as->info.layers * hawk_as_heads(as);
	u32 k, i;
	u64 tok;

	for (k = 0; k < c->n; k++) {
		const struct hawk_seg *src = &c->src[k];

		for (tok = src->tok - src->tok % bt; tok < (u64)src->tok + src->len; tok += bt) {
			for (i = 0; i < blocks; i++) {
				u64 vt = hawk_space_translate(as->space,
							      hawk_lid_of(as, src->run, i, tok));

				if (!vt || as->mem[HAWK_VT_TIER(vt)]->kind == HAWK_TIER_BLK)
					return false;
			}
			cond_resched();
		}
	}
	return true;
}

/* Return: there may be more to compact. */
static bool hawk_compact_one(struct hawk_as *as, struct hawk_compact *c)
{
	u32 frames = 0;
	int ret = hawk_seq_compact_pick(as->space, c);

	if (ret)
		return false;
	ret = hawk_compact_resident(as, c) ? hawk_compact_build(as, c) : -EAGAIN;
	if (hawk_seq_compact_end(as->space, c, !ret) && !ret)
		ret = -ESTALE;
	hawk_seq_reap_some(as, HAWK_TURN_REAP, &frames);
	trace_hawk_seq_compact(as->id, c, frames, ret);
	return !ret || ret == -ESTALE;
}

/* Return: whether more is left for the next turn. */
static bool hawk_compact_space(struct hawk_as *as)
{
	struct hawk_compact c = { .max = HAWK_COMPACT_SEGS };
	bool more = true;
	u32 n;

	if (!as->info.planes || hawk_compact_stopped(as))
		return false;
	c.src = kvmalloc_array(c.max, sizeof(*c.src), GFP_KERNEL | __GFP_NOWARN);
	if (!c.src)
		return false;
	for (n = 0; more && n < HAWK_TURN_COMPACT; n++)
		more = hawk_compact_one(as, &c) && !hawk_compact_stopped(as);
	kvfree(c.src);
	return more;
}

/* ---- the worker ---- */

/*
 * One worker looks after all spaces: each has its turn, and what a space wants done
 * without end (its sequences change all the time) does not keep it from the others.
 * What an operation drops is that one's to give back and to count, before it returns.
 * Return: whether more is left for the next turn.
 */
static bool hawk_tidy_space(struct hawk_as *as)
{
	bool more = false;
	u32 frames = 0;

	if (!atomic_read(&as->seq_ops))
		hawk_seq_reap_some(as, HAWK_TURN_REAP, &frames);
	if (xchg(&as->untidy, false) && hawk_compact_space(as)) {
		WRITE_ONCE(as->untidy, true);
		more = true;
	}
	return more || hawk_seq_due(as->space);
}

static void hawk_tidy_work(struct work_struct *work)
{
	struct hawk_as *as = NULL;
	bool more = false;

	while ((as = hawk_as_next(as)))
		if (as->info.seqs)
			more |= hawk_tidy_space(as);
	if (more)
		queue_delayed_work(hawk_dev.own_wq, &hawk_dev.tidy, 1);
}

/* A sequence of the space has given something up.  Context: any. */
void hawk_tidy_soon(struct hawk_as *as)
{
	WRITE_ONCE(as->untidy, true);
	queue_delayed_work(hawk_dev.own_wq, &hawk_dev.tidy, msecs_to_jiffies(HAWK_TIDY_MS));
}

/* Pins or leases of the space have ended.  Context: any. */
void hawk_tidy_waiting(struct hawk_as *as)
{
	if (hawk_seq_due(as->space))
		mod_delayed_work(hawk_dev.own_wq, &hawk_dev.tidy, 0);
}

void hawk_tidy_init(void)
{
	hawk_dev.seq_compact = true;
	INIT_DELAYED_WORK(&hawk_dev.tidy, hawk_tidy_work);
}

void hawk_tidy_exit(void)
{
	WRITE_ONCE(hawk_dev.seq_compact, false);	/* one under way stops */
	cancel_delayed_work_sync(&hawk_dev.tidy);
}
