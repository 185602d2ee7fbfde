// SPDX-License-Identifier: GPL-2.0
/*
 * reclaim.c - who has to give chunks back, and to whom
 *
 *	to a space	that had to evict because the tier was full: from the one that
 *			has most above its minimum, as long as that is 2 more than
 *			the one that gets it has
 *	to a new space	whose minimum is not free: lent.c
 *	to the system	when it needs memory: the shrinker of host tiers
 *	to nobody	when a tier leaves, by order or because it is lost
 *
 * One worker does the first, the third and tiers that are lost; the callers of
 * HAWK_IOC_SPACE_CREATE and HAWK_IOC_TIER_REMOVE wait for what they have ordered.  All of
 * it happens under drain_lock: at most one chunk of the device is being drained.
 */
#include "move.h"

#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#define HAWK_RECLAIM_MS	1000	/* how often what may become possible is looked at */
#define HAWK_CLAIM_MS	5000	/* how long a chunk is kept for a space that starved */

/**
 * hawk_mutex_wait() - take a mutex that is held for long, in a call from user space
 * @lock: the mutex
 * @wait: woken by whoever unlocks it
 *
 * Whoever has it may wait for moves, also while the system goes to sleep and until it
 * is awake again: so who waits for it can be killed, and be frozen, which a waiter in
 * mutex_lock() cannot.
 *
 * Return: 0 or -EINTR.
 */
int hawk_mutex_wait(struct mutex *lock, wait_queue_head_t *wait)
{
	return wait_event_state(*wait, mutex_trylock(lock),
				(TASK_KILLABLE | TASK_FREEZABLE)) ? -EINTR : 0;
}

/**
 * hawk_drain_lock() - take hawk_device.drain_lock, in a call from user space
 *
 * Return: 0 or -EINTR.
 */
int hawk_drain_lock(void)
{
	return hawk_mutex_wait(&hawk_dev.drain_lock, &hawk_dev.drain_wait);
}

/* Context: hawk_device.drain_lock held. */
void hawk_drain_unlock(void)
{
	mutex_unlock(&hawk_dev.drain_lock);
	wake_up_all(&hawk_dev.drain_wait);
}

/* ---- the worker ---- */

static void hawk_reclaim_soon(void)
{
	mod_delayed_work(hawk_dev.reclaim_wq, &hawk_dev.reclaim, 0);
}

/**
 * hawk_reclaim_starved() - has the space wanted a chunk that a tier had not?
 * @as: the space
 *
 * Asked after each round of a batch.
 * Context: any.
 */
void hawk_reclaim_starved(struct hawk_as *as)
{
	bool any = false;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!as->mem[t] || !hawk_space_starved(as->space, t))
			continue;
		set_bit(t, &as->starved_tiers);
		any = true;
	}
	if (any)
		hawk_reclaim_soon();
}

/**
 * hawk_reclaim_want() - a batch found no room: the space wants a chunk of a host tier
 * @as: the space; hawk_as.starved_tiers tells when it has been seen to
 *
 * Unlike hawk_reclaim_starved() it does not depend on who has asked the engine first:
 * another batch may have, and not have told the worker yet.
 *
 * Context: any.
 */
void hawk_reclaim_want(struct hawk_as *as)
{
	bool any = false;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!as->mem[t] || as->mem[t]->kind == HAWK_TIER_BLK ||
		    !hawk_space_wants(as->space, t))
			continue;
		set_bit(t, &as->starved_tiers);
		any = true;
	}
	if (any)
		hawk_reclaim_soon();
}

/**
 * hawk_reclaim_stuck() - a space could not grow for want of memory
 * @as: the space; it may try again after a while
 *
 * Context: any.
 */
void hawk_reclaim_stuck(struct hawk_as *as)
{
	WRITE_ONCE(as->unstick_at, jiffies + msecs_to_jiffies(HAWK_RECLAIM_MS));
	smp_store_release(&as->stuck, true);
	queue_delayed_work(hawk_dev.reclaim_wq, &hawk_dev.reclaim,
			   msecs_to_jiffies(HAWK_RECLAIM_MS));
}

/*
 * The space that has most chunks above its minimum, at least @least, and has not
 * failed to give one in this pass.  Return: referenced, or NULL.
 */
static struct hawk_as *hawk_reclaim_donor(struct hawk_mem *m, s64 least)
{
	struct hawk_as *as = NULL, *best = NULL;

	while ((as = hawk_as_next(as))) {
		s64 excess;

		if (as->mem[m->id] != m || as->refused == hawk_dev.reclaim_pass)
			continue;
		excess = hawk_space_excess(as->space, m->id);
		if (excess < least)
			continue;
		if (best)
			hawk_as_put(best);
		best = hawk_as_get(as);
		least = excess + 1;
	}
	return best;
}

/**
 * hawk_reclaim_one() - take one chunk of a tier from whoever has most above his minimum
 * @m: the tier
 * @least: that is at least this many
 * @claim: keep it for this space, or NULL
 *
 * Who cannot give one is not asked again in this hawk_device.reclaim_pass.
 *
 * Context: hawk_device.drain_lock held; waits for moves.
 * Return: false: nobody can give one.
 */
bool hawk_reclaim_one(struct hawk_mem *m, s64 least, struct hawk_as *claim)
{
	struct hawk_as *donor;
	int ret;

	while ((donor = hawk_reclaim_donor(m, least))) {
		ret = hawk_as_take_any(donor, m->id, claim);
		if (ret)
			donor->refused = hawk_dev.reclaim_pass;
		hawk_as_put(donor);
		if (!ret)
			return true;
	}
	return false;
}

/*
 * Each space that has starved gets one chunk; if that is not enough it starves again.
 * @m: the tier with this id now, or NULL.
 */
static void hawk_reclaim_share(struct hawk_mem *m, u32 tier)
{
	struct hawk_as *as = NULL;
	s64 least;

	while ((as = hawk_as_next(as))) {
		if (!test_bit(tier, &as->starved_tiers))
			continue;
		/* A minimum is its owner's, also if this one is far below its own. */
		least = max_t(s64, hawk_space_excess(as->space, tier) + 2, 1);
		if (m && as->mem[tier] == m && !READ_ONCE(m->lost) &&
		    hawk_reclaim_one(m, least, as)) {
			as->unclaim_at[tier] = (jiffies + msecs_to_jiffies(HAWK_CLAIM_MS)) | 1;
			atomic64_inc(&as->claims);
		}
		clear_bit(tier, &as->starved_tiers);
		wake_up_all(&as->wait);
	}
}

/* What the shrinker wants back. */
static void hawk_reclaim_shrink(struct hawk_mem *m)
{
	while (atomic_long_read(&m->shrink_pages) > 0) {
		if (!hawk_reclaim_one(m, 1, NULL)) {
			atomic_long_set(&m->shrink_pages, 0);
			return;
		}
		atomic_long_sub(HAWK_CHUNK_PAGES, &m->shrink_pages);
		cond_resched();
	}
}

/* What waits for its time.  Return: true: look at this space again after a while. */
static bool hawk_reclaim_timers(struct hawk_as *as)
{
	bool again = false;
	u32 t;

	if (smp_load_acquire(&as->stuck)) {
		if (time_after_eq(jiffies, READ_ONCE(as->unstick_at))) {
			WRITE_ONCE(as->stuck, false);
			hawk_space_unstick(as->space);
		} else {
			again = true;
		}
	}
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!as->unclaim_at[t])
			continue;
		if (time_after_eq(jiffies, as->unclaim_at[t])) {
			as->unclaim_at[t] = 0;
			hawk_space_unclaim(as->space, t);
		} else {
			again = true;
		}
	}
	return again;
}

static void hawk_reclaim_work(struct work_struct *work)
{
	struct hawk_as *as = NULL;
	bool again = false;
	u32 t;

	mutex_lock(&hawk_dev.drain_lock);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_mem *m = hawk_mem_find(t);

		hawk_dev.reclaim_pass++;
		hawk_reclaim_share(m, t);
		if (!m)
			continue;
		if (READ_ONCE(m->lost))
			again |= hawk_mem_force_out(m, false) == -EBUSY;
		else
			hawk_reclaim_shrink(m);
		kobject_put(&m->kobj);
	}
	while ((as = hawk_as_next(as)))
		again |= hawk_reclaim_timers(as);
	hawk_drain_unlock();
	if (again)
		queue_delayed_work(hawk_dev.reclaim_wq, &hawk_dev.reclaim,
				   msecs_to_jiffies(HAWK_RECLAIM_MS));
}

/* ---- the system wants memory ---- */

/*
 * The shrinker knows nodes but not memory cgroups, although chunks are charged to one:
 * the kernel calls a SHRINKER_MEMCG_AWARE shrinker only for cgroups whose bit is set in
 * a map that no module can write to, other than through a list_lru of slab objects.
 * Nothing is lost to the system: its own shortage is answered here, wherever the chunks
 * are charged.  A cgroup at its limit is not relieved by its chunks: a space of it that
 * wants one more finds no memory and evicts within what it has (hawk_as_grew()), and
 * who wants the rest of the group to have room gives the space a smaller quota.
 */

/*
 * Pages that the host tiers of a node could give back; if @want, so many of them are
 * ordered from the tier that has most.  Takes spinning locks only: this is called
 * wherever memory is allocated.
 */
static unsigned long hawk_shrink_node(int nid, unsigned long want)
{
	unsigned long pages[HAWK_TIERS_MAX] = { 0 }, all = 0, left;
	struct hawk_mem *best = NULL;
	struct hawk_as *as;
	u32 t;

	spin_lock(&hawk_dev.spaces_lock);
	list_for_each_entry(as, &hawk_dev.spaces, node) {
		for (t = 0; t < HAWK_TIERS_MAX; t++) {
			struct hawk_mem *m = as->mem[t];
			s64 excess;

			if (!m || m->kind != HAWK_TIER_HOST || m->node != nid)
				continue;
			excess = hawk_space_excess(as->space, t);
			if (excess <= 0)
				continue;
			pages[t] += excess * HAWK_CHUNK_PAGES;
			if (!best || pages[t] > pages[best->id])
				best = m;
		}
	}
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		all += pages[t];
	if (want && best) {
		left = pages[best->id] - min_t(unsigned long, pages[best->id],
					       atomic_long_read(&best->shrink_pages));
		atomic_long_add(min(want, left), &best->shrink_pages);
	}
	spin_unlock(&hawk_dev.spaces_lock);
	return all;
}

static unsigned long hawk_shrink_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return hawk_shrink_node(sc->nid, 0) ?: SHRINK_EMPTY;
}

/*
 * A chunk may have to be written to flash first, which cannot be waited for here: the
 * worker does it, and what it frees helps the next who looks.
 */
static unsigned long hawk_shrink_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	if (!hawk_shrink_node(sc->nid, sc->nr_to_scan))
		return SHRINK_STOP;
	hawk_reclaim_soon();
	return 0;
}

/* ---- a tier leaves ---- */

/**
 * hawk_mem_force_out() - remove a tier with all that is in it
 * @m: the tier
 * @tell: log why it cannot be done
 *
 * Blocks go to flash or into another host tier, or are dropped as misses.  What fails
 * may be tried again; meanwhile no space gets a chunk of the tier.
 *
 * Context: hawk_device.drain_lock held, waits for moves.
 * Return: 0; -ENOENT: it has been removed; -EBUSY: pinned frames or held pages remain;
 * -EINTR: the caller is being killed.
 */
int hawk_mem_force_out(struct hawk_mem *m, bool tell)
{
	struct hawk_as *as = NULL;
	int ret = -ENOENT, err;

	lockdep_assert_held(&hawk_dev.drain_lock);
	/* Under the lock: a space that is just being made is in the list, or is refused. */
	hawk_dev_lock();
	if (hawk_dev.mem[m->id] == m)
		ret = hawk_tier_leave(hawk_dev.engine, m->id, true);
	mutex_unlock(&hawk_dev.lock);
	ret = ret ?: hawk_as_wait_finding(m);
	if (ret)
		return ret;
	while ((as = hawk_as_next(as))) {
		if (as->mem[m->id] != m)
			continue;
		err = hawk_as_leave(as, m->id, tell);
		if (err)
			ret = err;
		if (err == -EINTR) {
			hawk_as_put(as);
			return err;
		}
	}
	return ret ?: hawk_mem_remove(m);
}

/**
 * hawk_mem_lost() - the memory of a tier is gone by surprise (a device was pulled)
 * @m: the tier, published
 *
 * Transfers from and to it fail from now on without being submitted; those that have
 * been, or are on their way to @submit at this moment, must be ended by the provider
 * as ever (hawk_io_end(io, -ENODEV)).  Page tables lead to its pages no more: touching
 * a frame that a space still owns gives SIGBUS.  Unpinned blocks are dropped, pinned
 * ones as their pins go; then the tier is removed as by HAWK_IOC_TIER_REMOVE, and
 * @release is the last that the provider hears of it.  Until then the pages that
 * @page has named must stay valid memory: somebody may hold them.  Blocks on flash
 * stay, also those that were on their way into the tier.
 *
 * Context: process context; takes no lock that a transfer needs.  May be called more
 * than once.
 */
void hawk_mem_lost(struct hawk_mem *m)
{
	struct hawk_as *as = NULL;

	if (!xchg(&m->lost, true))
		pr_err("tier %u is lost: its blocks are dropped\n", m->id);
	hawk_dev_lock();
	if (hawk_dev.mem[m->id] == m)
		hawk_tier_lost(hawk_dev.engine, m->id);
	mutex_unlock(&hawk_dev.lock);
	while ((as = hawk_as_next(as))) {
		if (as->mem[m->id] != m)
			continue;
		down_write(&as->map_lock);
		hawk_as_zap(as, m->id, 0, (u64)as->info.frames[m->id] * as->info.block_bytes);
		up_write(&as->map_lock);
	}
	hawk_export_revoke_mem(m, true, 0);
	hawk_reclaim_soon();
}

/* ---- the beginning and the end ---- */

int hawk_reclaim_init(void)
{
	mutex_init(&hawk_dev.drain_lock);
	init_waitqueue_head(&hawk_dev.drain_wait);
	INIT_DELAYED_WORK(&hawk_dev.reclaim, hawk_reclaim_work);
	hawk_dev.drain_plan.max = HAWK_PLAN_MOVES;
	hawk_dev.drain_plan.move = kmalloc_array(HAWK_PLAN_MOVES, sizeof(struct hawk_move),
						 GFP_KERNEL);
	if (!hawk_dev.drain_plan.move)
		return -ENOMEM;
	hawk_dev.reclaim_wq = alloc_workqueue("hawk-reclaim", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	if (!hawk_dev.reclaim_wq)
		goto err_free_plan;
	hawk_dev.shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "hawk");
	if (!hawk_dev.shrinker)
		goto err_destroy_wq;
	hawk_dev.shrinker->count_objects = hawk_shrink_count;
	hawk_dev.shrinker->scan_objects = hawk_shrink_scan;
	hawk_dev.shrinker->batch = HAWK_CHUNK_PAGES;
	shrinker_register(hawk_dev.shrinker);
	return 0;

err_destroy_wq:
	destroy_workqueue(hawk_dev.reclaim_wq);
err_free_plan:
	kfree(hawk_dev.drain_plan.move);
	return -ENOMEM;
}

/* No space is left, so nobody asks for anything any more. */
void hawk_reclaim_exit(void)
{
	shrinker_free(hawk_dev.shrinker);
	cancel_delayed_work_sync(&hawk_dev.reclaim);
	destroy_workqueue(hawk_dev.reclaim_wq);
	kfree(hawk_dev.drain_plan.move);
}
