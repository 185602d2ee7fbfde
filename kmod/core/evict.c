// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * evict.c - making room in a bucket
 *
 * The order of preference for a host frame: one that is free here; a new chunk or
 * a neighbour's spare (any bucket's, if there is no flash to evict to); that of the
 * coldest block, at once if it has a good flash copy, after a write to flash if not,
 * and by forgetting the block if flash has no room; any bucket's spare; what any
 * other bucket can evict in the same way.
 *
 * Functions here run with the bucket locked.  -ENOBUFS means: let go of the lock,
 * call hawk_map_reap() and hawk_want_fetch(), start again.  Each thing is asked for
 * once per operation and reach, so the rounds are bounded.  A search looks at one
 * bucket after the other, so it can miss a frame that others move, or free in one and
 * take in another, meanwhile.  Whatever is taken or moved is counted (taken()): if the
 * count is another at the end the search begins anew, at most HAWK_WANT_ROUNDS times,
 * and then gives -EAGAIN.  So -ENOSPC is never said while there was room all the time.
 * hawk_want_fetch() itself
 * says -ENOBUFS when the host must provide a chunk: the operation ends with that, and
 * the host calls it anew.
 *
 * Held blocks (elastic.c) are taken when all of that has failed, sinks and window when
 * that has failed too.
 *
 * A frame given up in a chunk that is being emptied (drain.c) is nobody's: then the
 * search for a victim goes on, which is no more than the frames of that chunk.
 */
#include "admit.h"

#define HAWK_WANT_ROUNDS	8	/* searches of all buckets by one operation */

/* Return: -ENOBUFS if @res should be refilled first, else 0. */
int hawk_want_ask(struct hawk_space *s, struct hawk_want *w, u32 home, u32 res,
		  enum hawk_reach reach)
{
	if (w->asked[reach] & (1u << res))
		return 0;
	w->asked[reach] |= 1u << res;
	if (reach == HAWK_REACH_NEAR && !hawk_res_hint(s, home, res))
		return 0;
	w->res = res;
	w->reach = reach;
	return -ENOBUFS;
}

/*
 * How many blocks that cannot be taken one search passes over.  Whoever looks up a long
 * prefix leases thousands of blocks at one time, which then grow old side by side.  The
 * bucket is locked meanwhile: to find that 64 blocks of four LIDs each are held takes
 * 70 us if none of it is in the CPU's caches (256: 250 us); 256 leased ones take 100 us.
 */
static u32 pass_budget(const struct hawk_space *s, const struct hawk_bucket *b, u32 tier)
{
	u32 max = hawk_load(&s->hold) ? HAWK_PASS_HELD : HAWK_PASS_MAX;

	return b->lru[tier].n < max ? b->lru[tier].n : max;
}

/* A block that is leased, being read, or held is not taken: let the next search not meet it. */
static void pass_over(struct hawk_space *s, struct hawk_block *blk)
{
	hawk_lru_del(s, blk);
	hawk_lru_add(s, blk);
}

static bool held(const struct hawk_space *s, const struct hawk_block *blk,
		 const struct hawk_want *w)
{
	return hawk_block_held(s, blk, w->held);
}

/* The coldest block of a tier that may be forgotten. */
static struct hawk_block *victim(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
				 const struct hawk_want *w)
{
	u32 nr, prev, left = pass_budget(s, b, tier);

	for (nr = b->lru[tier].lru; nr != HAWK_NONE && left; nr = prev, left--) {
		prev = s->block[nr].lru_prev;
		if (!s->block[nr].leases && !s->block[nr].reads && !held(s, &s->block[nr], w))
			return &s->block[nr];
		pass_over(s, &s->block[nr]);
	}
	return NULL;
}

/*
 * The block of a flash tier that may be forgotten: the coldest, or where admission is
 * decided, that of the coldest ones that is worth least, if that is less than @w->score.
 */
static struct hawk_block *flash_victim(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
				       struct hawk_want *w)
{
	struct hawk_block *least = victim(s, b, tier, w), *blk;
	u64 worth, min = HAWK_FX_MAX;
	u32 nr, n = 0;

	if (!least || !w->score)
		return least;
	for (nr = hawk_block_nr(s, least); nr != HAWK_NONE && n < HAWK_SCAN_MAX; n++) {
		blk = &s->block[nr];
		nr = blk->lru_prev;
		if (blk->leases || blk->reads || held(s, blk, w))
			continue;
		worth = hawk_flash_worth(s, blk, w->now);
		if (worth < min) {
			min = worth;
			least = blk;
		}
	}
	if (min <= w->score)
		return least;
	w->why = HAWK_WHY_WARMER;
	return NULL;
}

/*
 * The frame of the flash copy of a block that stays in host memory, the warmest first.
 * @before: also of those that come before blocks that are kept (ancestor.c)
 */
static u32 copy_reclaim(struct hawk_space *s, struct hawk_bucket *b, u32 tier, u32 htier,
			bool before)
{
	struct hawk_block *blk;
	u32 nr, next, frame, n = 0;

	for (nr = b->lru[htier].mru; nr != HAWK_NONE && n < HAWK_SCAN_MAX; nr = next) {
		blk = &s->block[nr];
		next = blk->lru_next;
		if (!(blk->flags & HAWK_BF_FLASH) || blk->ftier != tier || blk->reads ||
		    (!before && hawk_ancestor_is(s, blk))) {
			n++;
			continue;
		}
		hawk_lru_del(s, blk);
		hawk_block_drop_flash(s, blk);
		hawk_lru_add(s, blk);
		frame = hawk_res_pop(s, b, tier);
		if (likely(frame != HAWK_NONE))
			return frame;
	}
	return HAWK_NONE;
}

/*
 * A flash frame taken from a colder use: forget the coldest block that is on flash only; or
 * if there is none such, drop a copy of what is in host memory as well.  If all that is on
 * flash only is worth more, the copies stay: they were written for good reasons, too.
 * @must: the block that wants it cannot be forgotten
 */
static u32 flash_reclaim(struct hawk_space *s, struct hawk_bucket *b, u32 tier, u32 htier,
			 bool must, struct hawk_want *w)
{
	u32 frame, why = w->why;
	struct hawk_block *blk;

	w->why = HAWK_WHY_ROOM;
	while ((blk = flash_victim(s, b, tier, w))) {
		hawk_index_forget(s, blk);
		hawk_note(s, blk, HAWK_FATE_FLASH_DROP, HAWK_WHY_COLDER, w->plan);
		b->count[HAWK_N_FLASH_DROP]++;
		hawk_block_end(s, blk);
		frame = hawk_res_pop(s, b, tier);
		if (likely(frame != HAWK_NONE))
			return frame;
	}
	if (w->why == HAWK_WHY_WARMER && !must)
		return HAWK_NONE;
	w->why = why;
	frame = copy_reclaim(s, b, tier, htier, false);
	if (frame == HAWK_NONE && must && !w->ancestor)
		frame = copy_reclaim(s, b, tier, htier, true);
	return frame;
}

/* Take the next tier out of @left: @first before the others. */
static u32 tier_next(u32 *left, u32 first)
{
	u32 t = first < HAWK_TIERS_MAX && *left & (1u << first) ?
		first : (u32)__builtin_ctz(*left);

	*left &= ~(1u << t);
	return t;
}

/* @tiers: flash tiers that take it */
static int flash_frame(struct hawk_space *s, const struct hawk_block *blk, u32 tiers,
		       struct hawk_want *w, u32 *tier, u32 *frame)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	u32 t, left, first, home = blk->home;
	bool grows = false;
	int ret;

	if (!w->flash)
		w->flash = hawk_stripe_pick(s, tiers, w->now) + 1;
	first = w->flash - 1;
	for (left = tiers; left;) {
		t = tier_next(&left, first);
		*tier = t;
		/* before the search: what is dealt during it may be missed */
		grows |= !!hawk_load(&s->win[t].growing);
		*frame = hawk_res_pop(s, b, t);
		if (*frame != HAWK_NONE)
			return 0;
		ret = hawk_want_ask(s, w, home, t, HAWK_REACH_NEAR);
		if (ret)
			return ret;
	}
	/* Nothing is dropped for want of frames that are on their way. */
	if (grows)
		return -EAGAIN;
	for (left = w->ahead ? 0 : tiers; left;) {
		t = tier_next(&left, first);
		/* a search of all buckets costs less than what the dropped block took */
		ret = hawk_want_ask(s, w, home, t, HAWK_REACH_ALL);
		if (ret)
			return ret;
		*tier = t;
		hawk_window_starve(s, t);
		*frame = flash_reclaim(s, b, t, blk->htier, blk->leases, w);
		if (*frame != HAWK_NONE)
			return 0;
	}
	return w->why == HAWK_WHY_WARMER ? -EDQUOT : -ENOSPC;
}

/*
 * Start writing an unpinned READY block to flash; if it fails no list changes.
 * Return: 0; -EAGAIN; -ENOBUFS; -ENOSPC: flash is full; -EDQUOT: it may not, see @w->why.
 */
int hawk_write_start(struct hawk_space *s, struct hawk_block *blk, u8 flags,
		     struct hawk_want *w)
{
	u32 tier, frame, tiers;
	int ret;

	if (!w->plan || hawk_plan_full(w->plan))
		return -EAGAIN;
	w->why = HAWK_WHY_ROOM;
	tiers = hawk_admit_ask(s, blk, w);
	if (!tiers)
		return -EDQUOT;
	w->why = HAWK_WHY_ROOM;
	ret = flash_frame(s, blk, tiers, w, &tier, &frame);
	if (ret)
		return ret;
	hawk_admit_written(s, tier, w);
	hawk_health_wrote(&s->engine->tier[tier].health, w->now);
	w->flash = 0;	/* the next one has another's turn */
	if (!(flags & HAWK_MF_KEEP))
		hawk_reuse_leave(s, blk, w->now);
	hawk_lru_del(s, blk);
	hawk_block_take_flash(s, blk, tier, frame);
	hawk_note(s, blk, flags & HAWK_MF_KEEP ? HAWK_FATE_AHEAD : HAWK_FATE_WRITE,
		  HAWK_WHY_ROOM, w->plan);
	hawk_block_event(blk, HAWK_EV_EVICT);
	hawk_plan_add(w->plan, s, blk, HAWK_MOVE_WRITE, flags);
	return 0;
}

/* Forget an unpinned READY block for @why. */
void hawk_evict_drop(struct hawk_space *s, struct hawk_block *blk, u32 why,
		     const struct hawk_want *w)
{
	if (why >= HAWK_WHY_SCORE)
		hawk_admit_refused(s, blk, w);
	hawk_reuse_leave(s, blk, w->now);
	hawk_index_forget(s, blk);
	hawk_note(s, blk, HAWK_FATE_DROP, why, w->plan);
	hawk_bucket_of(s, blk)->count[HAWK_N_EVICT_DROP]++;
	hawk_block_end(s, blk);
}

void hawk_evict_clean(struct hawk_space *s, struct hawk_block *blk, const struct hawk_want *w)
{
	hawk_reuse_leave(s, blk, w->now);
	hawk_note(s, blk, HAWK_FATE_CLEAN, HAWK_WHY_COPY, w->plan);
	hawk_bucket_of(s, blk)->count[HAWK_N_EVICT_CLEAN]++;
	hawk_lru_del(s, blk);
	hawk_block_event(blk, HAWK_EV_EVICT_CLEAN);
	hawk_block_publish(s, blk);
	hawk_block_drop_host(s, blk);
	hawk_lru_add(s, blk);
}

/*
 * An allocation in a full bucket evicts its coldest block.  That is some random
 * cache lines one behind the other, unless they are asked for ahead.  Each eviction
 * asks for one more step of the next three: for the third its block, for the second
 * its LID and frame, for the first what is found by its LID.
 */
static void prefetch_coldest(struct hawk_space *s, const struct hawk_bucket *b, u32 tier)
{
	u32 nr = b->lru[tier].lru;
	const struct hawk_block *blk;
	const struct hawk_map *m;
	u32 prev;

	if (nr == HAWK_NONE)
		return;
	blk = &s->block[nr];
	m = &s->map[blk->maps];
	prev = hawk_load(&m->prev);	/* the LID may be of another bucket */
	hawk_prefetch(prev == HAWK_NONE ? (void *)&s->head[m->chain] : &s->map[prev]);
	if (m->way != HAWK_NONE)
		hawk_prefetch(&s->vtlb[m->way]);
	if (blk->lru_prev == HAWK_NONE)
		return;
	blk = &s->block[blk->lru_prev];
	hawk_prefetch(&s->map[blk->maps]);
	hawk_prefetch(&s->win[tier].frame[blk->hframe]);
	if (blk->lru_prev != HAWK_NONE)
		hawk_prefetch(&s->block[blk->lru_prev]);
}

/* Free the host frame of a block that has a good copy on flash, or is forgotten, and take it. */
static u32 take_frame(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		      struct hawk_block *blk, u32 why, const struct hawk_want *w)
{
	if (blk->flags & HAWK_BF_FLASH)
		hawk_evict_clean(s, blk, w);
	else
		hawk_evict_drop(s, blk, why, w);
	prefetch_coldest(s, b, tier);
	return hawk_res_pop(s, b, tier);
}

/*
 * Take the host frame of the coldest block of the bucket.
 * Return: 0; -EAGAIN (a move was started, is in flight, or has no plan); -ENOBUFS;
 * -ENOSPC.
 */
static int evict_one(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		     struct hawk_want *w, u32 *frame)
{
	struct hawk_block *blk;
	bool clean, flash = hawk_load(&s->flash_tiers);
	u32 nr, prev, n = 0, left = pass_budget(s, b, tier);
	int ret = -ENOSPC, refused;

	for (nr = b->lru[tier].lru; nr != HAWK_NONE && n < HAWK_SCAN_MAX && left; nr = prev) {
		blk = &s->block[nr];
		prev = blk->lru_prev;
		if (held(s, blk, w)) {
			pass_over(s, blk);
			left--;
			continue;
		}
		refused = -ENOSPC;
		clean = blk->flags & HAWK_BF_FLASH;
		if (flash && !clean) {
			ret = hawk_write_start(s, blk, 0, w);
			if (!ret)
				return -EAGAIN;
			prev = blk->lru_prev;	/* others may have lost their copies */
			if (ret == -EAGAIN && !w->plan) {
				n++;
				continue;	/* look for a clean one */
			}
			if (ret != -ENOSPC && ret != -EDQUOT)
				return ret;
			refused = ret;
			if (ret == -ENOSPC)
				flash = false;	/* nor is there room for a warmer one */
			ret = -ENOSPC;
		}
		if (blk->leases && !clean) {
			pass_over(s, blk);
			left--;
			continue;
		}
		*frame = take_frame(s, b, tier, blk, refused == -EDQUOT ? w->why :
				    s->flash_tiers ? HAWK_WHY_FULL : HAWK_WHY_NO_FLASH, w);
		if (likely(*frame != HAWK_NONE))
			return 0;
	}
	return b->moving[tier] ? -EAGAIN : ret;
}

/*
 * A host frame for @blk, which nobody waits for: a free one of its bucket, or that of a
 * colder block there with a good copy; one of these is left for others.
 * Return: the frame, of *@tier; HAWK_NONE: there is none.
 */
u32 hawk_idle_frame(struct hawk_space *s, const struct hawk_block *blk, const struct hawk_want *w,
		    u32 *tier)
{
	u32 t, nr, n, left, tiers = hawk_good_tiers(s);
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	struct hawk_block *cold;

	for (left = tiers; left;) {
		t = tier_next(&left, HAWK_TIER_ANY);
		if (b->fl[t].n + b->clean[t] < 2)
			continue;
		*tier = t;
		nr = hawk_res_pop(s, b, t);
		if (nr != HAWK_NONE)
			return nr;
		for (nr = b->lru[t].lru, n = 0; nr != HAWK_NONE && n < HAWK_SCAN_MAX; n++) {
			cold = &s->block[nr];
			if (cold->atime >= blk->atime)
				break;
			nr = cold->lru_prev;
			if (!(cold->flags & HAWK_BF_FLASH) || cold->leases || held(s, cold, w))
				continue;
			hawk_evict_clean(s, cold, w);
			/* it may have been of a chunk that drains */
			return hawk_res_pop(s, b, t);
		}
	}
	return HAWK_NONE;
}

/* Nothing else is left: start anew, more blocks are like others from now on. */
static bool take_held(const struct hawk_space *s, struct hawk_want *w)
{
	if (w->held == HAWK_TAKE_ALL || !hawk_load(&s->hold))
		return false;
	w->held++;
	memset(w->asked, 0, sizeof(w->asked));
	return true;
}

/*
 * A host frame for a block at home in @b, from tier @tier if it can be.
 * Return: 0; -EAGAIN; -ENOBUFS; -ENOSPC.
 */
int hawk_host_frame(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		    struct hawk_want *w, u32 *got, u32 *frame)
{
	u32 t, left, home = b - s->bucket, tiers = hawk_good_tiers(s);
	int ret = -ENOSPC;

	for (left = tiers; left;) {
		t = tier_next(&left, tier);
		*got = t;
		/* before the search: what is dealt during it may be missed */
		w->again |= !!hawk_load(&s->win[t].growing);
		*frame = hawk_res_pop(s, b, t);
		if (*frame != HAWK_NONE)
			return 0;
		if (hawk_load(&s->dry[t]) && !hawk_window_has_room(s, t))
			continue;
		/* without flash an eviction loses the block: look at every bucket first */
		if (hawk_want_ask(s, w, home, t, hawk_load(&s->flash_tiers) ?
				  HAWK_REACH_NEAR : HAWK_REACH_ALL))
			return -ENOBUFS;
	}
	for (left = tiers; left;) {
		t = tier_next(&left, tier);
		*got = t;
		hawk_window_starve(s, t);
		ret = evict_one(s, b, t, w, frame);
		if (!ret || ret == -ENOBUFS || (ret == -EAGAIN && w->plan))
			return ret;
		w->again |= ret == -EAGAIN;
		if (hawk_want_ask(s, w, home, t, HAWK_REACH_ALL) ||
		    hawk_want_ask(s, w, home, t, HAWK_REACH_EVICT))
			return -ENOBUFS;
	}
	if (!w->again && take_held(s, w))
		return hawk_host_frame(s, b, tier, w, got, frame);
	if (ret == -ENOSPC && !w->again && w->counted &&
	    hawk_want_ask(s, w, home, *got, HAWK_REACH_AGAIN))
		return -ENOBUFS;
	return w->again ? -EAGAIN : ret;
}

/* Forget the coldest block of some tiers, for its slot. */
static bool forget(struct hawk_space *s, struct hawk_bucket *b, u32 tiers,
		   const struct hawk_want *w)
{
	struct hawk_block *blk;
	bool flash;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		blk = tiers & (1u << t) ? victim(s, b, t, w) : NULL;
		if (!blk)
			continue;
		flash = hawk_load(&s->flash_tiers) & (1u << t);
		if (!flash)
			hawk_reuse_leave(s, blk, w->now);
		hawk_index_forget(s, blk);
		hawk_note(s, blk, flash ? HAWK_FATE_FLASH_DROP : HAWK_FATE_DROP, HAWK_WHY_SLOT,
			  w->plan);
		b->count[flash ? HAWK_N_FLASH_DROP : HAWK_N_EVICT_DROP]++;
		hawk_block_end(s, blk);
		return true;
	}
	return false;
}

/* Best one that is on flash only. */
static bool forget_any(struct hawk_space *s, struct hawk_bucket *b, const struct hawk_want *w)
{
	return forget(s, b, hawk_load(&s->flash_tiers), w) ||
	       forget(s, b, hawk_load(&s->host_tiers), w);
}

/* A block that is being written or read can be forgotten when that has ended. */
static bool moving(const struct hawk_bucket *b)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (b->moving[t])
			return true;
	return false;
}

/*
 * See that a slot for a block or a LID (@res) is free, if need be by forgetting a
 * block: one here, then one in another bucket.
 * Return: 0; -EAGAIN; -ENOBUFS; -ENOSPC.
 */
int hawk_spare_slot(struct hawk_space *s, struct hawk_bucket *b, u32 res, struct hawk_want *w)
{
	u32 home = b - s->bucket;

	if (b->fl[res].n)
		return 0;
	if (hawk_want_ask(s, w, home, res, HAWK_REACH_NEAR))
		return -ENOBUFS;
	if (hawk_want_ask(s, w, home, res, HAWK_REACH_ALL))
		return -ENOBUFS;
	if (forget_any(s, b, w)) {
		if (b->fl[res].n)
			return 0;
		return hawk_want_ask(s, w, home, res, HAWK_REACH_REAP) ?: -ENOSPC;
	}
	w->again |= moving(b);
	if (hawk_want_ask(s, w, home, res, HAWK_REACH_EVICT))
		return -ENOBUFS;
	if (!w->again && take_held(s, w))
		return hawk_spare_slot(s, b, res, w);
	if (!w->again && w->counted && hawk_want_ask(s, w, home, res, HAWK_REACH_AGAIN))
		return -ENOBUFS;
	return w->again ? -EAGAIN : -ENOSPC;
}

/* Make a spare in bucket @b.  Return: as evict_one(). */
static int evict_spare(struct hawk_space *s, struct hawk_bucket *b, u32 res,
		       struct hawk_want *w)
{
	u32 frame;
	int ret;

	if (b->fl[res].n)
		return 0;
	if (res >= HAWK_TIERS_MAX) {
		if (forget_any(s, b, w))
			return 0;
		return moving(b) ? -EAGAIN : -ENOSPC;
	}
	ret = evict_one(s, b, res, w, &frame);
	if (!ret)
		hawk_res_push(s, b, res, frame);
	return ret;
}

/*
 * What has been taken or moved in all buckets so far.  No lock is held.
 * @in_hand: out: some of it has been popped by a theft and not pushed yet
 */
static u64 taken(struct hawk_space *s, bool *in_hand)
{
	u64 put = 0, lent = 0, took = 0;
	struct hawk_bucket *b;
	u32 i;

	/* first, so that for what is counted here the other side is counted below */
	for (i = 0; i < s->nbuckets; i++) {
		b = &s->bucket[i];
		hawk_lock(&b->lock);
		put += b->count[HAWK_N_STEALS];
		hawk_unlock(&b->lock);
	}
	for (i = 0; i < s->nbuckets; i++) {
		b = &s->bucket[i];
		hawk_lock(&b->lock);
		lent += b->count[HAWK_N_LENT];
		took += b->count[HAWK_N_ALLOCS] + b->count[HAWK_N_READS];
		hawk_unlock(&b->lock);
	}
	*in_hand = lent != put;
	return put + lent + took;
}

static void search_begin(struct hawk_space *s, struct hawk_want *w)
{
	bool in_hand;

	w->taken = taken(s, &in_hand);
	w->own = 0;
	w->counted = true;
}

/*
 * All buckets have been looked at in vain.  Have others taken or moved anything since
 * that began, or do they hold something just now?  Then all of it anew.
 */
static void search_again(struct hawk_space *s, struct hawk_want *w)
{
	bool in_hand;
	u32 i;

	if (taken(s, &in_hand) == w->taken + w->own && !in_hand)
		return;
	if (++w->rounds == HAWK_WANT_ROUNDS) {
		w->again = true;
		return;
	}
	for (i = 0; i < HAWK_REACHES; i++)
		w->asked[i] = 0;
	w->counted = false;
}

/* Return: 0; -ENOBUFS: a chunk may be had. */
static int refill(struct hawk_space *s, struct hawk_want *w, u32 home)
{
	u32 probes = w->reach == HAWK_REACH_NEAR ? HAWK_PEEK : s->nbuckets;
	bool host = w->res < HAWK_TIERS_MAX && hawk_load(&s->host_tiers) & 1u << w->res;

	if (w->res < HAWK_TIERS_MAX && !(w->spare && host) &&
	    hawk_window_has_room(s, w->res)) {
		hawk_window_ask(s, w->res, home);
		return -ENOBUFS;
	}
	w->own += 2 * hawk_res_refill(s, home, w->res, probes);
	return 0;
}

/* Make a spare in bucket @from.  No lock is held.  Return: 0; -EAGAIN; -ENOSPC; -ENOBUFS. */
static int evict_from(struct hawk_space *s, u32 from, u32 res, struct hawk_want *w)
{
	int ret;

	for (;;) {
		hawk_lock(&s->bucket[from].lock);
		ret = evict_spare(s, &s->bucket[from], res, w);
		hawk_unlock(&s->bucket[from].lock);
		hawk_map_reap(s, from);
		if (ret != -ENOBUFS)
			return ret;
		ret = refill(s, w, from);
		if (ret)
			return ret;
	}
}

/* What a forgotten block leaves: its LIDs may have been in any bucket, also in @home. */
static bool fetch_left(struct hawk_space *s, struct hawk_want *w, u32 home)
{
	u32 n;

	if (hawk_load(&s->bucket[home].fl[w->res].n))
		return true;
	n = hawk_res_refill(s, home, w->res, s->nbuckets);
	w->own += 2 * n;
	return n;
}

/* Bucket @home has nothing left to evict: let another one evict for it. */
static int fetch_evicted(struct hawk_space *s, struct hawk_want *w, u32 home)
{
	struct hawk_want there = { .plan = w->plan, .now = w->now, .held = w->held };
	u32 i, from, got, n = w->plan ? w->plan->n : 0;
	int ret;

	if (!w->counted)
		search_begin(s, w);
	for (i = 1; i < s->nbuckets; i++) {
		from = (home + i) & (s->nbuckets - 1);
		ret = evict_from(s, from, w->res, &there);
		if (ret == -ENOBUFS)
			return ret;
		got = ret ? 0 : hawk_res_steal(s, from, home, w->res);
		w->own += 2 * got + there.own;
		there.own = 0;
		if (got)
			return 0;
		if (!ret && w->res == HAWK_RES_MAP && fetch_left(s, w, home))
			return 0;
		if (ret == -EAGAIN)
			w->again = true;
		if (w->plan && w->plan->n > n)
			break;	/* one write is enough for one block */
	}
	return 0;
}

/*
 * Bring what was asked for to bucket @home.  No lock is held.
 * Return: 0: start again; -ENOBUFS: the host must provide a chunk first.
 */
int hawk_want_fetch(struct hawk_space *s, struct hawk_want *w, u32 home)
{
	switch (w->reach) {
	case HAWK_REACH_EVICT:
		return fetch_evicted(s, w, home);
	case HAWK_REACH_REAP:
		fetch_left(s, w, home);	/* the caller's hawk_map_reap() did the rest */
		return 0;
	case HAWK_REACH_AGAIN:
		search_again(s, w);
		return 0;
	default:
		return refill(s, w, home);
	}
}

/* Nothing more to try: is it the tier that is full, or the space's quota? */
int hawk_room_error(struct hawk_space *s, struct hawk_bucket *b, int ret)
{
	u32 t, tiers = hawk_load(&s->host_tiers);

	if (ret != -ENOBUFS && ret != -ENOSPC)
		return ret;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (!tiers || ((tiers & (1u << t)) && hawk_load(&s->win[t].owned) <
						      hawk_load(&s->win[t].quota_max))) {
			b->count[HAWK_N_NOSPACE]++;
			return -ENOSPC;
		}
	b->count[HAWK_N_QUOTA]++;
	return -EDQUOT;
}

#define HAWK_WRITEBACK_BUCKETS	8	/* looked at per call */
#define HAWK_WRITEBACK_SCAN	128	/* of a bucket's coldest; those done stay there */

/*
 * Write the coldest dirty blocks of a bucket until enough of it is clean or free.
 * Return: 0 or -ENOBUFS.
 */
static int writeback_bucket(struct hawk_space *s, struct hawk_bucket *b, u32 tier, u32 want,
			    struct hawk_want *w)
{
	u32 nr, prev, n;
	struct hawk_block *blk;
	int ret;

	for (nr = b->lru[tier].lru, n = 0; nr != HAWK_NONE && n < HAWK_WRITEBACK_SCAN;
	     nr = prev, n++) {
		u64 ready = b->fl[tier].n + b->clean[tier] + b->moving[tier];
		u64 all = b->fl[tier].n + b->lru[tier].n + b->moving[tier];

		blk = &s->block[nr];
		prev = blk->lru_prev;
		if (ready * 1024 >= want * all)
			break;
		if (blk->flags & HAWK_BF_FLASH)
			continue;
		ret = hawk_write_start(s, blk, HAWK_MF_KEEP, w);
		if (ret == -EDQUOT)
			continue;
		if (ret)
			return ret == -ENOBUFS ? ret : 0;
		w->asked[HAWK_REACH_NEAR] = 0;	/* it used what it got */
	}
	return 0;
}

int hawk_space_writeback(struct hawk_space *s, u32 tier, u32 want, u64 now,
			 struct hawk_plan *plan)
{
	u32 k, home, first = plan->n, n = s->nbuckets;
	int ret;

	if (tier >= HAWK_TIERS_MAX || !(hawk_load(&s->host_tiers) & (1u << tier)) ||
	    !hawk_load(&s->flash_tiers))
		return 0;
	n = n < HAWK_WRITEBACK_BUCKETS ? n : HAWK_WRITEBACK_BUCKETS;
	for (k = 0; k < n && !hawk_plan_full(plan); k++) {
		struct hawk_want w = { .plan = plan, .now = now, .ahead = true };

		home = hawk_load(&s->wb_cursor);
		hawk_store(&s->wb_cursor, home + 1);
		home &= s->nbuckets - 1;
		for (;;) {
			hawk_lock(&s->bucket[home].lock);
			ret = writeback_bucket(s, &s->bucket[home], tier, want, &w);
			hawk_unlock(&s->bucket[home].lock);
			if (!ret)
				break;
			ret = hawk_want_fetch(s, &w, home);
			if (ret) {
				hawk_store(&s->wb_cursor, home);
				return ret;
			}
		}
	}
	return plan->n - first;
}
