// SPDX-License-Identifier: GPL-2.0
/*
 * lent.c - a new space has its minimum, whoever owns the memory
 *
 * What a space owns above its minimum is lent to it.  Who makes a space takes back what
 * is missing of its minima, before anybody can use it; the engine keeps them back from
 * that moment on (hawk_space_params.insist), so nobody above his own gets a chunk that
 * comes free.  lent_lock is the maker's for all that time, so that no two get half of
 * what both need; drain_lock is taken for a few chunks at a time, as others need it.
 */
#include "hawk.h"

#include <linux/sched/signal.h>

#define HAWK_LENT_BATCH	16	/* chunks taken while others wait for drain_lock */
#define HAWK_LENT_TRIES	3	/* rounds that bring nothing, before it is given up */

/**
 * hawk_lent_lock() - be the one that makes a space by taking back from others
 *
 * Context: taken before hawk_device.drain_lock; in a call from user space.
 * Return: 0 or -EINTR.
 */
int hawk_lent_lock(void)
{
	return hawk_mutex_wait(&hawk_dev.lent_lock, &hawk_dev.lent_wait);
}

/* Context: hawk_device.lent_lock held. */
void hawk_lent_unlock(void)
{
	mutex_unlock(&hawk_dev.lent_lock);
	wake_up_all(&hawk_dev.lent_wait);
}

/* Minima go before what is kept for the starved. */
static void hawk_lent_unclaim(u32 tier)
{
	struct hawk_as *as = NULL;

	lockdep_assert_held(&hawk_dev.drain_lock);
	while ((as = hawk_as_next(as))) {
		as->unclaim_at[tier] = 0;
		hawk_space_unclaim(as->space, tier);
	}
}

/*
 * Up to @want chunks from who has most, and those that spaces have left are made fit for
 * others; one that somebody outside holds stays in quarantine.
 * Return: 0, whatever has come of it; -EINTR.
 */
static int hawk_lent_round(struct hawk_mem *m, u32 want)
{
	u32 n = min_t(u32, want, HAWK_LENT_BATCH);
	int ret = hawk_drain_lock();

	if (ret)
		return ret;
	hawk_lent_unclaim(m->id);
	hawk_dev.reclaim_pass++;
	while (n-- && !fatal_signal_pending(current) && hawk_reclaim_one(m, 1, NULL))
		cond_resched();
	hawk_drain_unlock();
	if (fatal_signal_pending(current))
		return -EINTR;
	ret = hawk_as_wait_dying(m);
	return ret ?: hawk_clean_wait(m);
}

static int hawk_lent_refused(const struct hawk_as *as, u32 tier, u32 lacks)
{
	pr_warn_ratelimited("space %llu of uid %u is not made: %u MiB of its minimum of tier %u cannot be taken back from others: pinned, leased, held by devices, in use all the time, or not zeroed yet\n",
			    as->id, from_kuid(&init_user_ns, as->uid),
			    lacks << (HAWK_CHUNK_SHIFT - 20), tier);
	hawk_trace_refuse_lent(as, tier, lacks);
	return -ENOSPC;
}

static int hawk_lent_tier(struct hawk_as *as, struct hawk_mem *m)
{
	int ret, lacks, least = INT_MAX, vain = 0;

	while ((lacks = hawk_space_lacks(as->space, m->id)) > 0) {
		if (lacks < least) {
			least = lacks;
			vain = 0;
		} else if (++vain == HAWK_LENT_TRIES) {
			return hawk_lent_refused(as, m->id, lacks);
		}
		/* If it was in vain, taking many more would be so too. */
		ret = hawk_lent_round(m, vain ? 1 : lacks);
		if (ret)
			return ret;
	}
	return lacks;
}

/**
 * hawk_lent_take_back() - others give back what they own of a new space's minima
 * @as: the space, in the list, made with &struct hawk_space_params.insist
 *
 * The log tells if they cannot; what has been taken by then is free.
 *
 * Context: hawk_device.lent_lock held; waits for moves.
 * Return: 0; -ENOSPC: they cannot; -ENOENT: a tier is lost, or was left; -EINTR: the
 * caller is being killed.
 */
int hawk_lent_take_back(struct hawk_as *as)
{
	int ret = 0;
	u32 t;

	lockdep_assert_held(&hawk_dev.lent_lock);
	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++)
		if (as->mem[t])
			ret = hawk_lent_tier(as, as->mem[t]);
	return ret;
}
