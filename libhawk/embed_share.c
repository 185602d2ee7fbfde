// SPDX-License-Identifier: MIT
/*
 * embed_share.c - chunks are taken from spaces, for others or because a tier goes
 *
 * A new space has its minimum before anybody uses it: its creator takes as many chunks as
 * that lacks from those that have more than theirs, or there is no new space.
 *
 * A space that had to evict although it may own more is starved (run_end() notes
 * it).  The keeper then takes one chunk from the space that has most above its
 * minimum, if that is at least two more than the starved one has: its blocks move to
 * flash, or are dropped if that is full, the chunk is zeroed and kept for the one
 * it was taken for.  Who cannot go on without room does this himself.
 *
 * One chunk is emptied at a time: the drain (wait.c).  It is held while blocks are
 * moved and while waiting for the moves of others, so a thread that may have moves
 * of its own ahead of it must not wait for it; nor does the keeper, who has leases to end.
 */
#include "embed.h"

#define AT_ONCE		64	/* moves in flight */
#define ROUNDS		64	/* then the drive or the users of the blocks do not let it */
#define CLAIM_NS	5000000000ull	/* for so long a chunk is kept for a starved space */
#define WAIT_NS		100000000ull	/* for moves of others, at a time */
#define TAKE_SCAN	64	/* chunks tried when the best one cannot be had */

/* Run the drain that has been started.  Return: whether the chunk is empty. */
static bool drain_run(struct espace *sp, u32 tier, u32 flags)
{
	struct embed *e = sp->e;
	struct hawk_move move[AT_ONCE];
	struct hawk_plan plan = { .max = AT_ONCE, .move = move };
	u32 round, busy, seen, n;
	int ret;

	for (round = 0; round < ROUNDS; round++) {
		if (hawk_load(&sp->ending))
			return false;
		seen = moved_count(e);
		ret = hawk_space_drain(sp->space, tier, flags, now_ns(), &plan, &busy);
		n = plan.n;
		plan_run(sp, &plan, 0);
		if (espace_grew(sp, ret))
			continue;
		if (ret != -EAGAIN)
			return !ret;
		if (!n && moved_wait(e, seen, now_ns() + WAIT_NS) == -EAGAIN)
			return false;
	}
	return false;
}

/* As take_chunk(), this one. */
static bool take_slot(struct espace *sp, u32 tier, u32 slot, u32 flags,
		      struct hawk_space *claim)
{
	if (hawk_space_drain_start(sp->space, tier, slot))
		return false;
	if (!drain_run(sp, tier, flags)) {
		hawk_space_drain_cancel(sp->space, tier);
		return false;
	}
	hawk_space_drain_finish(sp->space, tier, claim);
	embed_clean(sp->e);
	return true;
}

/*
 * Take one chunk of @tier from a space; the caller has the drain.
 * Return: whether it could be had.
 */
static bool take_chunk(struct espace *sp, u32 tier, u32 flags, struct hawk_space *claim)
{
	u32 slot = hawk_space_drain_pick(sp->space, tier, now_ns());

	return slot != HAWK_NONE && take_slot(sp, tier, slot, flags, claim);
}

/*
 * The space that can spare a chunk for @asker and has not refused one in this pass.  It
 * stays until donor_put(); or NULL.
 */
static struct espace *donor_get(struct embed *e, const struct espace *asker, u32 tier, u64 now)
{
	struct espace *sp, *donor = NULL;
	s64 excess, most = hawk_space_excess(asker->space, tier) + 2;

	most = most > 0 ? most : 1;	/* a minimum is its owner's */
	pthread_mutex_lock(&e->admin);
	for (sp = e->spaces; sp; sp = sp->next) {
		if (sp == asker || !sp->refs || sp->refused == e->pass)
			continue;
		/* what it has not come for in all this time is free for others */
		if (now - sp->claimed[tier] > CLAIM_NS)
			hawk_space_unclaim(sp->space, tier);
		excess = hawk_space_excess(sp->space, tier);
		if (excess < most)
			continue;
		most = excess;
		donor = sp;
	}
	if (donor)
		donor->walkers++;
	pthread_mutex_unlock(&e->admin);
	return donor;
}

static void donor_put(struct espace *sp)
{
	struct embed *e = sp->e;

	pthread_mutex_lock(&e->admin);
	sp->walkers--;
	pthread_cond_broadcast(&e->walked);
	pthread_mutex_unlock(&e->admin);
}

/* One chunk of @tier for @asker; the caller has the drain. */
static bool share(struct espace *asker, u32 tier)
{
	struct embed *e = asker->e;
	u64 now = now_ns();
	struct espace *donor;
	bool got;

	e->pass++;
	donor = donor_get(e, asker, tier, now);
	if (!donor)
		return false;
	asker->claimed[tier] = now;
	got = take_chunk(donor, tier, 0, asker->space);
	if (got)
		__atomic_fetch_add(&asker->claims, 1, __ATOMIC_RELEASE);
	donor_put(donor);
	return got;
}

/**
 * share_note() - after a batch: has it been short of chunks?
 *
 * If so the keeper is told.
 */
void share_note(struct espace *sp)
{
	u32 t, starved = 0;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (hawk_space_starved(sp->space, t))
			starved |= 1u << t;
	if (!starved)
		return;
	__atomic_fetch_or(&sp->starved, starved, __ATOMIC_RELAXED);
	keeper_kick_share(sp->e);
}

/* share_all() - the keeper: a chunk for each space that is starved, or he is called again */
void share_all(struct embed *e)
{
	struct espace *sp = NULL;
	u32 t, starved;

	planner_enter(e);
	if (!drain_try(e, true))
		goto out;
	while ((sp = espace_next(e, sp))) {
		starved = __atomic_exchange_n(&sp->starved, 0, __ATOMIC_RELAXED);
		for (t = 0; t < HAWK_TIERS_MAX; t++)
			if (starved & 1u << t)
				share(sp, t);
	}
	drain_leave(e);
out:
	planner_leave(e);
}

/* Chunks that have been taken for a space so far. */
u32 share_count(struct espace *sp)
{
	return __atomic_load_n(&sp->claims, __ATOMIC_ACQUIRE);
}

/**
 * share_now() - a batch that has no move ahead of it finds no room at all
 * @seen: share_count() before it looked
 *
 * hawk_space_starved() is not believed: another batch, or the keeper, may have asked it
 * and got the chunk meanwhile.
 * Return: whether to look again: a chunk was taken for the space, or others are at it.
 */
bool share_now(struct espace *sp, u32 seen)
{
	struct embed *e = sp->e;
	bool again;
	u32 t;

	if (!drain_try(e, false))
		return true;
	again = share_count(sp) != seen;
	/* what is noted for the keeper is seen to here */
	__atomic_store_n(&sp->starved, 0, __ATOMIC_RELAXED);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		hawk_space_starved(sp->space, t);
		if (!again && sp->win[t].frames && hawk_space_wants(sp->space, t))
			again = share(sp, t);
	}
	drain_leave(e);
	return again;
}

/* ---- a new space has its minimum ---- */

/* Minima go before what is kept for the starved. */
static void unclaim_all(struct embed *e, u32 tier)
{
	struct espace *sp;

	pthread_mutex_lock(&e->admin);
	for (sp = e->spaces; sp; sp = sp->next)
		hawk_space_unclaim(sp->space, tier);
	pthread_mutex_unlock(&e->admin);
}

/* The cheapest chunk, or if it cannot be had after all one of the others. */
static bool take_any(struct espace *sp, u32 tier)
{
	u32 i, slot, n = hawk_space_frames(sp->space, tier) / sp->frames_per_chunk;
	u32 best = hawk_space_drain_pick(sp->space, tier, now_ns()), tried = 0;

	if (best == HAWK_NONE)
		return false;	/* all are pinned */
	for (i = 0; i < n && tried < TAKE_SCAN; i++) {
		slot = (best + i) % n;
		if (hawk_frame_off(sp->space, tier, slot * sp->frames_per_chunk) == ~0ull)
			continue;	/* no chunk there */
		if (take_slot(sp, tier, slot, 0, NULL))
			return true;
		tried++;
	}
	return false;
}

/* A space that is ending has chunks of the tier: wait until it is gone.  false: none has. */
static bool wait_ending(struct embed *e, u32 tier)
{
	struct espace *sp;

	pthread_mutex_lock(&e->admin);
	for (sp = e->spaces; sp; sp = sp->next)
		if (!sp->refs && hawk_space_excess(sp->space, tier) > 0)
			break;
	if (sp)
		pthread_cond_wait(&e->walked, &e->admin);
	pthread_mutex_unlock(&e->admin);
	return sp;
}

static int lent_error(u32 lacks, u32 tier)
{
	return hawk_fail(-ENOSPC, "creating a space: %u MiB of its minimum of tier %u are lent to others, who have them pinned or leased",
			 lacks * (HAWK_CHUNK_BYTES >> 20), tier);
}

/* Return: 0, -ENOENT or -ENOSPC. */
static int repay(struct espace *sp, u32 tier)
{
	struct embed *e = sp->e;
	struct espace *donor;
	int lacks, before = 0;

	for (;;) {
		embed_clean(e);
		lacks = hawk_space_lacks(sp->space, tier);
		if (!lacks)
			return 0;
		if (lacks < 0)
			return hawk_fail(lacks, "quota of tier %u: it is being removed", tier);
		unclaim_all(e, tier);
		donor = donor_get(e, sp, tier, now_ns());
		if (donor) {
			leases_expire(e, now_ns());	/* the keeper may be busy */
			if (!take_any(donor, tier))
				donor->refused = e->pass;
			donor_put(donor);
			before = 0;
		} else if (wait_ending(e, tier)) {
			before = 0;
		} else if (lacks != before) {
			before = lacks;	/* who could have given may have ended just now */
		} else {
			return lent_error(lacks, tier);
		}
	}
}

/**
 * share_repay() - others give back what they own of a new space's minima
 * @sp: the space; nobody uses it yet
 *
 * Called between drain_begin() and drain_end(), with no other lock held.
 * Return: 0; -ENOSPC: they have it pinned or leased; -ENOENT: a tier goes.
 */
int share_repay(struct espace *sp)
{
	struct embed *e = sp->e;
	int ret = 0;
	u32 t;

	e->pass++;
	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++)
		if (sp->geo.quota[t].max_bytes)
			ret = repay(sp, t);
	return ret;
}

/* ---- a tier goes ---- */

/* All chunks that a space has of it.  Return: 0 or -EBUSY (some are in use). */
static int leave(struct espace *sp, u32 tier)
{
	while (hawk_space_leave(sp->space, tier))
		if (!take_chunk(sp, tier, HAWK_DRAIN_DROP, NULL))
			return -EBUSY;
	return 0;
}

/**
 * embed_tier_empty() - take all chunks of a tier from the spaces, and their quota
 *
 * Blocks that find no other place are dropped.  On failure no space gets a chunk of
 * it any more: it can be called again, or embed_tier_reopen().
 * Return: 0; -ENOENT; -EBUSY (blocks are pinned or being filled).
 */
int embed_tier_empty(struct embed *e, u32 tier)
{
	struct espace *sp = NULL;
	int ret = hawk_tier_leave(e->engine, tier, true), one;

	if (ret)
		return ret;
	drain_begin(e);
	while ((sp = espace_next(e, sp))) {
		one = leave(sp, tier);
		ret = ret ? ret : one;
	}
	drain_end(e);
	return ret;
}

/**
 * embed_tier_dropped() - as embed_tier_empty(), for the keeper, of a tier that is lost
 *
 * Return: 0; -EBUSY (blocks are pinned or being filled); -EAGAIN (a chunk is being taken from
 * somebody).
 */
int embed_tier_dropped(struct embed *e, u32 tier)
{
	struct espace *sp = NULL;
	int ret = 0, one;

	hawk_tier_leave(e->engine, tier, true);
	planner_enter(e);
	if (drain_try(e, true)) {
		while ((sp = espace_next(e, sp))) {
			one = leave(sp, tier);
			ret = ret ? ret : one;
		}
		drain_leave(e);
	} else {
		ret = -EAGAIN;
	}
	planner_leave(e);
	return ret;
}

/* embed_tier_reopen() - it stays after all.  Return: 0 or -ENOENT. */
int embed_tier_reopen(struct embed *e, u32 tier)
{
	int ret;

	/* not while somebody is emptying it: he would never come to an end */
	drain_begin(e);
	ret = hawk_tier_leave(e->engine, tier, false);
	drain_end(e);
	return ret;
}
