// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * evict.c - making room in a bucket
 *
 * The order of preference for a host frame: one that is free here; a new chunk or
 * a neighbour's spare; that of the coldest block, at once if it has a good flash
 * copy, after a write to flash if not, and by forgetting the block if flash has
 * no room; any neighbour's spare.
 *
 * Functions here run with the bucket locked.  -ENOBUFS means: let go of the lock,
 * call hawk_res_refill(want->res, want->probes), start again.  Each thing is
 * asked for once per operation, so the rounds are bounded.
 */
#include "priv.h"

/* Return: -ENOBUFS if @res should be refilled first, else 0. */
int hawk_want_ask(struct hawk_space *s, struct hawk_want *w, u32 home, u32 res, bool full)
{
	u32 *asked = full ? &w->full : &w->cheap;

	if (*asked & (1u << res))
		return 0;
	*asked |= 1u << res;
	if (!full && !hawk_res_hint(s, home, res))
		return 0;
	w->res = res;
	w->probes = full ? s->nbuckets : HAWK_PEEK;
	return -ENOBUFS;
}

/* The coldest block of a tier that may be forgotten. */
static struct hawk_block *victim(struct hawk_space *s, struct hawk_bucket *b, u32 tier)
{
	u32 nr, n = 0;

	for (nr = b->lru[tier].lru; nr != HAWK_NONE && n < HAWK_SCAN_MAX;
	     nr = s->block[nr].lru_prev, n++)
		if (!s->block[nr].leases)
			return &s->block[nr];
	return NULL;
}

/*
 * A flash frame taken from a colder use: forget the coldest block that is on
 * flash only, or the flash copy of the warmest resident ones.
 */
static u32 flash_reclaim(struct hawk_space *s, struct hawk_bucket *b, u32 tier, u32 htier)
{
	struct hawk_block *blk = victim(s, b, tier);
	u32 nr, n = 0;

	if (blk) {
		b->count[HAWK_N_FLASH_DROP]++;
		hawk_block_end(s, blk);
		return hawk_res_pop(s, b, tier);
	}
	for (nr = b->lru[htier].mru; nr != HAWK_NONE && n < HAWK_SCAN_MAX;
	     nr = s->block[nr].lru_next, n++) {
		blk = &s->block[nr];
		if (!(blk->flags & HAWK_BF_FLASH) || blk->ftier != tier)
			continue;
		hawk_lru_del(s, blk);
		hawk_block_drop_flash(s, blk);
		hawk_lru_add(s, blk, false);
		return hawk_res_pop(s, b, tier);
	}
	return HAWK_NONE;
}

static int flash_frame(struct hawk_space *s, struct hawk_bucket *b, u32 htier,
		       struct hawk_want *w, u32 *tier, u32 *frame)
{
	u32 t, home = b - s->bucket;
	int ret;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(s->flash_tiers & (1u << t)))
			continue;
		*tier = t;
		*frame = hawk_res_pop(s, b, t);
		if (*frame != HAWK_NONE)
			return 0;
		ret = hawk_want_ask(s, w, home, t, false);
		if (ret)
			return ret;
	}
	for (t = 0; t < HAWK_TIERS_MAX && !w->ahead; t++) {
		if (!(s->flash_tiers & (1u << t)))
			continue;
		*tier = t;
		*frame = flash_reclaim(s, b, t, htier);
		if (*frame != HAWK_NONE)
			return 0;
		ret = hawk_want_ask(s, w, home, t, true);
		if (ret)
			return ret;
	}
	return -ENOSPC;
}

/* Start writing an unpinned READY block to flash. */
static int write_start(struct hawk_space *s, struct hawk_block *blk, u8 flags,
		       struct hawk_want *w)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	u32 tier, frame;
	int ret;

	if (!w->plan || hawk_plan_full(w->plan))
		return -EAGAIN;
	hawk_lru_del(s, blk);	/* or it might be reclaimed for its own sake */
	ret = flash_frame(s, b, blk->htier, w, &tier, &frame);
	if (ret) {
		hawk_lru_add(s, blk, true);
		return ret;
	}
	hawk_block_take_flash(s, blk, tier, frame);
	hawk_block_event(blk, HAWK_EV_EVICT);
	if (!(flags & HAWK_MF_KEEP))
		b->evicting[blk->htier]++;
	hawk_plan_add(w->plan, s, blk, HAWK_MOVE_WRITE, flags);
	return 0;
}

static void evict_clean(struct hawk_space *s, struct hawk_block *blk)
{
	hawk_bucket_of(s, blk)->count[HAWK_N_EVICT_CLEAN]++;
	hawk_lru_del(s, blk);
	hawk_block_event(blk, HAWK_EV_EVICT_CLEAN);
	hawk_block_publish(s, blk);
	hawk_block_drop_host(s, blk);
	hawk_lru_add(s, blk, false);
}

/*
 * Take the host frame of the coldest block of the bucket.
 * Return: 0; -EAGAIN (a write was started or is in flight); -ENOBUFS; -ENOSPC.
 */
static int evict_one(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		     struct hawk_want *w, u32 *frame)
{
	struct hawk_block *blk;
	u32 nr, prev, n;
	int ret = -ENOSPC;

	for (nr = b->lru[tier].lru, n = 0; nr != HAWK_NONE && n < HAWK_SCAN_MAX; nr = prev, n++) {
		blk = &s->block[nr];
		prev = blk->lru_prev;
		if (blk->flags & HAWK_BF_FLASH) {
			evict_clean(s, blk);
			*frame = hawk_res_pop(s, b, tier);
			return 0;
		}
		if (s->flash_tiers) {
			ret = write_start(s, blk, 0, w);
			if (!ret)
				return -EAGAIN;
			if (ret == -EAGAIN && !w->plan)
				continue;	/* look for a clean one */
			if (ret != -ENOSPC)
				return ret;
			prev = blk->lru_prev;	/* it was put back */
		}
		if (blk->leases)
			continue;
		b->count[HAWK_N_EVICT_DROP]++;
		hawk_block_end(s, blk);
		*frame = hawk_res_pop(s, b, tier);
		return *frame == HAWK_NONE ? -EAGAIN : 0;
	}
	return b->evicting[tier] ? -EAGAIN : ret;
}

/*
 * A host frame for a block at home in @b, from tier @tier if it can be.
 * Return: 0; -EAGAIN; -ENOBUFS; -ENOSPC.
 */
int hawk_host_frame(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		    struct hawk_want *w, u32 *got, u32 *frame)
{
	u32 i, t, first, home = b - s->bucket;
	int ret = -ENOSPC;

	first = tier < HAWK_TIERS_MAX && (s->host_tiers & (1u << tier)) ? tier : 0;
	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		t = (first + i) % HAWK_TIERS_MAX;
		if (!(s->host_tiers & (1u << t)))
			continue;
		*got = t;
		*frame = hawk_res_pop(s, b, t);
		if (*frame != HAWK_NONE)
			return 0;
		if (hawk_want_ask(s, w, home, t, false))
			return -ENOBUFS;
	}
	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		t = (first + i) % HAWK_TIERS_MAX;
		if (!(s->host_tiers & (1u << t)))
			continue;
		*got = t;
		ret = evict_one(s, b, t, w, frame);
		if (ret != -ENOSPC)
			return ret;
		if (hawk_want_ask(s, w, home, t, true))
			return -ENOBUFS;
	}
	return ret;
}

/*
 * See that a block slot is free, at worst by forgetting the coldest block that is
 * on flash only.
 */
int hawk_spare_block(struct hawk_space *s, struct hawk_bucket *b, struct hawk_want *w)
{
	struct hawk_block *blk;
	u32 t;

	if (b->fl[HAWK_RES_BLOCK].n)
		return 0;
	if (hawk_want_ask(s, w, b - s->bucket, HAWK_RES_BLOCK, true))
		return -ENOBUFS;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		blk = (s->flash_tiers | s->host_tiers) & (1u << t) ? victim(s, b, t) : NULL;
		if (!blk)
			continue;
		b->count[s->flash_tiers & (1u << t) ? HAWK_N_FLASH_DROP : HAWK_N_EVICT_DROP]++;
		hawk_block_end(s, blk);
		if (b->fl[HAWK_RES_BLOCK].n)
			return 0;
	}
	return -ENOSPC;
}

/* Nothing more to try: is it the tier that is full, or the space's quota? */
int hawk_room_error(struct hawk_space *s, struct hawk_bucket *b, int ret)
{
	u32 t;

	if (ret != -ENOBUFS && ret != -ENOSPC)
		return ret;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if ((s->host_tiers & (1u << t)) &&
		    hawk_load(&s->win[t].owned) < s->win[t].quota_max) {
			b->count[HAWK_N_NOSPACE]++;
			return -ENOSPC;
		}
	b->count[HAWK_N_QUOTA]++;
	return -EDQUOT;
}

/*
 * Write the coldest dirty blocks of a bucket until enough of it is clean or free.
 * Return: 0 or -ENOBUFS.
 */
static int writeback_bucket(struct hawk_space *s, struct hawk_bucket *b, u32 tier, u32 want,
			    struct hawk_want *w)
{
	u32 nr, prev, n, started = 0;
	struct hawk_block *blk;
	int ret;

	for (nr = b->lru[tier].lru, n = 0; nr != HAWK_NONE && n < HAWK_SCAN_MAX; nr = prev, n++) {
		u64 ready = b->fl[tier].n + b->clean[tier] + started;
		u64 all = b->fl[tier].n + b->lru[tier].n + started;

		blk = &s->block[nr];
		prev = blk->lru_prev;
		if (ready * 1024 >= want * all)
			break;
		if (blk->flags & HAWK_BF_FLASH)
			continue;
		ret = write_start(s, blk, HAWK_MF_KEEP, w);
		if (ret)
			return ret == -ENOBUFS ? ret : 0;
		started++;
	}
	return 0;
}

#define HAWK_WRITEBACK_BUCKETS	8	/* looked at per call */

u32 hawk_space_writeback(struct hawk_space *s, u32 tier, u32 want, struct hawk_plan *plan)
{
	u32 k, home, first = plan->n;
	int ret;

	if (tier >= HAWK_TIERS_MAX || !(s->host_tiers & (1u << tier)) || !s->flash_tiers)
		return 0;
	for (k = 0; k < HAWK_WRITEBACK_BUCKETS && !hawk_plan_full(plan); k++) {
		struct hawk_want w = { .plan = plan, .ahead = true };

		home = hawk_load(&s->wb_cursor);
		hawk_store(&s->wb_cursor, home + 1);
		home &= s->nbuckets - 1;
		do {
			hawk_lock(&s->bucket[home].lock);
			ret = writeback_bucket(s, &s->bucket[home], tier, want, &w);
			hawk_unlock(&s->bucket[home].lock);
		} while (ret && hawk_res_refill(s, home, w.res, w.probes));
	}
	return plan->n - first;
}
