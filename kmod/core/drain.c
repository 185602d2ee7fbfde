// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * drain.c - a chunk is taken from a living space
 *
 * While hawk_window.drain names a slot, a frame of it that is given up is parked
 * instead of pushed on a free list.  hawk_space_drain() looks at each frame of the
 * slot in turn: it takes a free one off its list and parks it, and makes the block
 * of a used one give it up.  When all are parked the chunk can go.
 *
 * Why nobody can have a frame of the slot then: the number of a frame is always in
 * exactly one place, and only there can it be had:
 *
 *	a free list	hawk_frame.block says which; that bucket's lock
 *	a block		hawk_frame.block says which; its home's lock
 *	a thread	which popped it: in one locked section (a frame for a block),
 *			or between two of them (hawk_res_steal(), deal())
 *	parked		block is HAWK_NONE and next HAWK_PARKED
 *
 * A thread that holds a number passes it on to one of the others and never keeps a
 * copy; parked is where only this file takes it from.  So it does no harm if somebody
 * misses that a drain has begun and pushes a frame: the next look finds it on its
 * list.  And a chunk with a frame in a thread's hands is not empty, as that frame is
 * not parked yet.  Moves in flight keep both frames of their block, and gathers those that
 * they read, so no I/O is under way to or from an empty chunk.
 *
 * Frame.block and next are read here without a lock to find the lock to take, and
 * looked at again under it.  A parked mark is written with release and read with
 * acquire: what its writer did to the frame is seen by the next owner of the chunk.
 *
 * Cancelling is different: somebody who still sees the drain could park a frame behind
 * our back.  So after @drain is cleared every bucket lock is passed once before the
 * parked frames are collected: then all who saw it have parked, and later ones do not.
 */
#include "priv.h"

/* Called by hawk_res_push().  Return: false: the frame is of another slot. */
bool hawk_frame_park(struct hawk_space *s, u32 tier, u32 nr)
{
	struct hawk_window *w = &s->win[tier];

	if (nr / s->frames_per_chunk != hawk_load(&w->drain))
		return false;
	hawk_store(&w->frame[nr].block, HAWK_NONE);
	hawk_store_release(&w->frame[nr].next, HAWK_PARKED);
	return true;
}

static bool parked(const struct hawk_frame *f)
{
	return hawk_load_acquire(&f->next) == HAWK_PARKED;
}

/* A frame that was seen on the free list of bucket @home. */
static int take_free(struct hawk_space *s, u32 tier, u32 frame, u32 home)
{
	struct hawk_bucket *b = &s->bucket[home];
	int ret = -EAGAIN;

	hawk_lock(&b->lock);
	if (hawk_load(&s->win[tier].frame[frame].block) == (HAWK_FRAME_FREE | home)) {
		hawk_frame_unlink(s, b, tier, frame);
		hawk_frame_park(s, tier, frame);
		ret = 0;
	}
	hawk_unlock(&b->lock);
	return ret;
}

int hawk_space_drain_start(struct hawk_space *s, u32 tier, u32 slot)
{
	u32 i, nr, first = slot * s->frames_per_chunk;
	struct hawk_window *w;
	int ret = 0;

	if (tier >= HAWK_TIERS_MAX)
		return -ENOENT;
	w = &s->win[tier];
	hawk_lock(&s->engine->tier[tier].lock);
	if (w->drain != HAWK_NONE)
		ret = -EBUSY;
	else if (hawk_slot_chunk(w, slot) == HAWK_NONE)
		ret = -ENOENT;
	else
		hawk_store(&w->drain, slot);
	hawk_unlock(&s->engine->tier[tier].lock);
	/* at once, so that nobody takes a free one for a new block */
	for (i = first; !ret && i < first + s->frames_per_chunk; i++) {
		nr = hawk_load(&w->frame[i].block);
		if (nr != HAWK_NONE && nr & HAWK_FRAME_FREE)
			take_free(s, tier, i, nr & ~HAWK_FRAME_FREE);
	}
	return ret;
}

/* ---- what becomes of a block; its home is locked ---- */

/* Return: 0: it gave its host frame up; -EAGAIN; -EBUSY; -ENOBUFS. */
static int give_up_host(struct hawk_space *s, struct hawk_block *blk, u32 flags,
			struct hawk_want *w)
{
	int ret = -ENOSPC;

	if (blk->pins)
		return -EBUSY;
	if (blk->flags & HAWK_BF_FLASH) {
		hawk_evict_clean(s, blk, w);
		return 0;
	}
	if (hawk_load(&s->flash_tiers))
		ret = hawk_write_start(s, blk, 0, w);
	if (!ret)
		return -EAGAIN;	/* until it is written */
	if (ret != -ENOSPC && ret != -EDQUOT)
		return ret;
	if (blk->leases && !(flags & HAWK_DRAIN_DROP))
		return -EBUSY;
	hawk_evict_drop(s, blk, ret == -EDQUOT ? w->why : HAWK_WHY_DRAIN, w);
	return 0;
}

/*
 * A block on flash only comes to host memory that nobody uses; its home is locked.
 * Return: -EAGAIN: it is on its way, or the plan is full; -ENOBUFS; -ENOSPC.
 */
int hawk_move_in(struct hawk_space *s, struct hawk_block *blk, struct hawk_want *w)
{
	u32 t, frame, tiers = hawk_good_tiers(s);

	if (hawk_plan_full(w->plan))
		return -EAGAIN;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(tiers & 1u << t))
			continue;
		frame = hawk_res_pop(s, hawk_bucket_of(s, blk), t);
		if (frame != HAWK_NONE) {
			hawk_lru_del(s, blk);
			hawk_reload_start(s, blk, t, frame, 0, w->plan);
			return -EAGAIN;
		}
		if (hawk_want_ask(s, w, blk->home, t, HAWK_REACH_ALL))
			return -ENOBUFS;
	}
	return -ENOSPC;
}

static int give_up_flash(struct hawk_space *s, struct hawk_block *blk, u32 flags,
			 struct hawk_want *w)
{
	bool listed = blk->flags & HAWK_BF_LRU;
	int ret;

	if (blk->reads)
		return -EINPROGRESS;
	if (blk->state != HAWK_BLOCK_FLASH) {
		hawk_lru_del(s, blk);
		hawk_block_drop_flash(s, blk);
		if (listed)
			hawk_lru_restore(s, blk);	/* no younger, also if it was moved in */
		return 0;
	}
	/* where nothing can be read any more it is not tried */
	ret = hawk_load(&s->engine->tier[blk->ftier].lost) ? -ENOSPC : hawk_move_in(s, blk, w);
	if (ret != -ENOSPC)
		return ret;
	if (blk->leases && !(flags & HAWK_DRAIN_DROP))
		return -EBUSY;
	hawk_note(s, blk, HAWK_FATE_FLASH_DROP, HAWK_WHY_DRAIN, w->plan);
	hawk_bucket_of(s, blk)->count[HAWK_N_FLASH_DROP]++;
	hawk_block_end(s, blk);
	return 0;
}

/* ---- one frame ---- */

/*
 * A frame that was seen to be of block @nr.
 * Return: as hawk_space_drain(), or -EINPROGRESS: a gather reads it, or is about to.
 */
static int take_used(struct hawk_space *s, u32 tier, u32 frame, u32 nr, u32 flags,
		     struct hawk_want *w)
{
	struct hawk_block *blk = &s->block[nr];
	u32 home = hawk_load(&blk->home);	/* as of this life: see frame_take() */
	struct hawk_bucket *b = &s->bucket[home];
	int ret = -EAGAIN;

	for (;;) {
		hawk_lock(&b->lock);
		if (hawk_load(&s->win[tier].frame[frame].block) != nr ||
		    hawk_load(&blk->home) != home || (blk->flags & HAWK_BF_MOVING))
			ret = -EAGAIN;
		else if (blk->state == HAWK_BLOCK_DYING)	/* who uses it last buries it */
			ret = blk->reads ? -EINPROGRESS : -EAGAIN;
		else if (blk->htier == tier && blk->hframe == frame)
			ret = give_up_host(s, blk, flags, w);
		else
			ret = give_up_flash(s, blk, flags, w);
		hawk_unlock(&b->lock);
		hawk_map_reap(s, home);
		if (ret != -ENOBUFS)
			return ret;
		ret = hawk_want_fetch(s, w, home);
		if (ret)
			return ret;
	}
}

#define HAWK_DRAIN_LOOKS	4	/* at a frame that changes hands meanwhile */

static int drain_frame(struct hawk_space *s, u32 tier, u32 frame, u32 flags, u64 now,
		       struct hawk_plan *plan)
{
	struct hawk_frame *f = &s->win[tier].frame[frame];
	struct hawk_want w = { .plan = plan, .now = now, .spare = true };
	u32 nr, n;
	int ret;

	for (n = 0; n < HAWK_DRAIN_LOOKS; n++) {
		nr = hawk_load_acquire(&f->block);	/* pairs with frame_take() */
		if (nr == HAWK_NONE)
			return parked(f) ? 0 : -EAGAIN;
		if (nr & HAWK_FRAME_FREE)
			ret = take_free(s, tier, frame, nr & ~HAWK_FRAME_FREE);
		else
			ret = take_used(s, tier, frame, nr, flags, &w);
		if (ret != -EAGAIN || hawk_load(&f->block) == nr)
			return ret;
	}
	return -EAGAIN;
}

int hawk_space_drain(struct hawk_space *s, u32 tier, u32 flags, u64 now, struct hawk_plan *plan,
		     u32 *busy)
{
	u32 i, slot = tier < HAWK_TIERS_MAX ? s->win[tier].drain : HAWK_NONE;
	bool wait = false;
	int ret;

	*busy = 0;
	if (slot == HAWK_NONE)
		return -ENOENT;
	for (i = 0; i < s->frames_per_chunk; i++) {
		ret = drain_frame(s, tier, slot * s->frames_per_chunk + i, flags, now,
				  plan);
		if (ret == -ENOBUFS)
			return ret;
		wait |= ret == -EAGAIN || ret == -EINPROGRESS;
		*busy += ret == -EBUSY || ret == -EINPROGRESS;
	}
	if (wait)
		return -EAGAIN;
	return *busy ? -EBUSY : 0;
}

/* ---- the end of a drain ---- */

void hawk_space_drain_cancel(struct hawk_space *s, u32 tier)
{
	u32 i, b, fpc = s->frames_per_chunk, slot;
	struct hawk_window *w;

	if (tier >= HAWK_TIERS_MAX)
		return;
	w = &s->win[tier];
	slot = w->drain;
	if (slot == HAWK_NONE)
		return;
	hawk_store(&w->drain, HAWK_NONE);
	for (b = 0; b < s->nbuckets; b++) {
		hawk_lock(&s->bucket[b].lock);
		hawk_unlock(&s->bucket[b].lock);
	}
	for (i = slot * fpc; i < (slot + 1) * fpc; i++) {
		if (!parked(&w->frame[i]))
			continue;
		b = i & (s->nbuckets - 1);
		hawk_lock(&s->bucket[b].lock);
		hawk_res_push(s, &s->bucket[b], tier, i);
		hawk_unlock(&s->bucket[b].lock);
	}
	hawk_note_spares(s);
}

static void keep_claim(struct hawk_tier *t, struct hawk_window *w)
{
	if (w->owned + w->claims >= w->limit)
		return;
	hawk_store(&w->claims, w->claims + 1);
	hawk_store(&t->claimed, t->claimed + 1);
}

u32 hawk_space_drain_finish(struct hawk_space *s, u32 tier, struct hawk_space *claim)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 i, chunk, slot = w->drain, first = slot * s->frames_per_chunk;

	for (i = first; i < first + s->frames_per_chunk; i++) {
		hawk_assert(parked(&w->frame[i]));
		hawk_store(&w->frame[i].next, HAWK_NONE);
	}
	hawk_lock(&t->lock);
	chunk = hawk_window_release(s, tier, slot);
	hawk_chunk_dirty(t, chunk);
	hawk_store(&w->drain, HAWK_NONE);
	/* below its own minimum the chunk is kept back for @s */
	if (claim && w->owned >= w->quota_min)
		keep_claim(t, &claim->win[tier]);
	hawk_unlock(&t->lock);
	return chunk;
}

/* ---- which chunk ---- */

#define HAWK_PICK_SLOTS	256	/* slots looked at, if one of them will do */
#define HAWK_COST_DIRTY	8	/* a write, as much as being used 2^8 times as recently */
#define HAWK_COST_LEASE	32
#define HAWK_COST_STUCK	(1u << 19)	/* leased and nowhere to go: more than all others of a chunk */

static u32 log2_floor(u64 n)
{
	return 63 - __builtin_clzll(n | 1);
}

/* What it costs to take a frame from its block, or HAWK_NONE: it cannot be had. */
static u32 frame_cost(struct hawk_space *s, const struct hawk_frame *f, u64 now)
{
	u32 nr = hawk_load_acquire(&f->block), home, cost;
	struct hawk_block *blk;

	if (nr & HAWK_FRAME_FREE)
		return 0;	/* or in somebody's hands */
	blk = &s->block[nr];
	home = hawk_load(&blk->home);
	hawk_lock(&s->bucket[home].lock);
	if (hawk_load(&f->block) != nr || hawk_load(&blk->home) != home) {
		cost = HAWK_COST_DIRTY;
	} else if (blk->pins) {
		cost = HAWK_NONE;
	} else {
		/* warmth: one more each time the age halves */
		cost = 64 - log2_floor(now > blk->atime ? now - blk->atime : 1);
		if (!(blk->flags & HAWK_BF_FLASH))
			cost += HAWK_COST_DIRTY;
		if (blk->leases)
			cost += (blk->flags & HAWK_BF_FLASH) || hawk_load(&s->flash_tiers) ?
				HAWK_COST_LEASE : HAWK_COST_STUCK;
	}
	hawk_unlock(&s->bucket[home].lock);
	return cost;
}

static u32 slot_cost(struct hawk_space *s, u32 tier, u32 slot, u64 now)
{
	u32 i, cost, sum = 0, first = slot * s->frames_per_chunk;

	for (i = first; i < first + s->frames_per_chunk; i++) {
		cost = frame_cost(s, &s->win[tier].frame[i], now);
		if (cost == HAWK_NONE)
			return HAWK_NONE;
		sum += cost;
	}
	return sum;
}

u32 hawk_space_drain_pick(struct hawk_space *s, u32 tier, u64 now)
{
	u32 i, slot, cost, seen = 0, best = HAWK_NONE, least = HAWK_NONE;
	struct hawk_window *w;

	if (tier >= HAWK_TIERS_MAX)
		return HAWK_NONE;
	w = &s->win[tier];
	for (i = 0; i < w->nslots && least; i++) {
		slot = w->pick < w->nslots ? w->pick : 0;
		w->pick = slot + 1;
		if (hawk_slot_chunk(w, slot) == HAWK_NONE)
			continue;
		if (seen++ >= HAWK_PICK_SLOTS && best != HAWK_NONE)
			break;
		cost = slot_cost(s, tier, slot, now);
		if (cost < least) {
			least = cost;
			best = slot;
		}
		hawk_relax();
	}
	return best;
}
