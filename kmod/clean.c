// SPDX-License-Identifier: GPL-2.0
/*
 * clean.c - chunks that left their owner are made fit for another
 *
 * Chunks that a space has left are dirty: the cleaner of the tier frees or zeroes their
 * memory and gives them back to the engine.  A page that a NIC or another process still
 * holds keeps its chunk in quarantine; the cleaner looks again later.  So does one that
 * could not be zeroed, but that is tried less and less often: whoever has the memory is
 * broken or busy, and may be so for long.
 *
 * Who wants a chunk that is on its way waits for a pass of the cleaner that begins after he
 * has asked for it, as long as he likes: a pass may take long, since a driver or a drive
 * has to do with it.  hawk_as.wait is woken at its end, and hawk_device.ends_wait.
 */
#include "hawk.h"
#include "pool.h"

#define HAWK_CLEAN_RETRY_MS	500	/* how often quarantined chunks are looked at */
#define HAWK_CLEAN_SLOWER	7	/* times that this is doubled at most: 64 s */

/*
 * When to look again at what is left.  Spaces that end make the cleaner look before a
 * pause is over: that makes the next one no longer.
 */
static unsigned long hawk_clean_delay(struct hawk_cleaner *c)
{
	unsigned long now = jiffies;

	if (!c->unclean)
		return msecs_to_jiffies(HAWK_CLEAN_RETRY_MS);
	c->unclean = false;
	if (!c->slower || time_after_eq(now, c->at)) {
		c->slower = min(c->slower + 1, HAWK_CLEAN_SLOWER + 1);
		c->at = now + msecs_to_jiffies(HAWK_CLEAN_RETRY_MS << (c->slower - 1));
	}
	return c->at - now;
}

static void hawk_clean_work(struct work_struct *work)
{
	struct hawk_cleaner *cl = container_of(to_delayed_work(work), struct hawk_cleaner, work);
	struct hawk_mem *m = container_of(cl, struct hawk_mem, cleaner);
	u32 c = HAWK_NONE, held = 0;
	int nr = atomic_read(&cl->asked);

	while (!READ_ONCE(m->gone) &&
	       (c = hawk_tier_next_dirty(hawk_dev.engine, m->id, c)) != HAWK_NONE) {
		if (m->ops->clean(m, c))
			hawk_tier_clean(hawk_dev.engine, m->id, c);
		else
			held++;
		cond_resched();
	}
	hawk_pool_sync(m);
	if (cl->slower && !cl->unclean && !READ_ONCE(m->gone) && !READ_ONCE(m->lost)) {
		cl->slower = 0;
		pr_info_ratelimited("tier %u: its chunks could be zeroed now\n", m->id);
	}
	if (held)
		queue_delayed_work(hawk_dev.clean_wq, &cl->work, hawk_clean_delay(cl));
	smp_store_release(&cl->made, nr);	/* pairs with hawk_clean_made() */
	hawk_clean_told(m);
}

void hawk_clean_init(struct hawk_mem *m)
{
	INIT_DELAYED_WORK(&m->cleaner.work, hawk_clean_work);
}

/**
 * hawk_mem_unclean() - a chunk could not be made fit for another owner
 * @m: the memory
 * @chunk: the chunk; stays dirty, and is tried again
 * @err: why, negative errno
 *
 * The log has the first of a row of failures.
 *
 * Context: in hawk_mem_ops.clean only.
 */
void hawk_mem_unclean(struct hawk_mem *m, u32 chunk, int err)
{
	if (!m->cleaner.slower && !m->cleaner.unclean)
		pr_err_ratelimited("tier %u: chunk %u cannot be zeroed: %d; nobody gets it until it can, quarantine_bytes tells how much waits for that\n",
				   m->id, chunk, err);
	m->cleaner.unclean = true;
}

/* Chunks may have become dirty.  The caller has a reference. */
void hawk_mem_clean_soon(struct hawk_mem *m)
{
	mod_delayed_work(hawk_dev.clean_wq, &m->cleaner.work, 0);
}

/* ---- waiting for it ---- */

/* A pass has ended, or none will be made any more: wakes who waits for one. */
void hawk_clean_told(struct hawk_mem *m)
{
	struct hawk_as *as;

	wake_up_all(&hawk_dev.ends_wait);
	spin_lock(&hawk_dev.spaces_lock);
	list_for_each_entry(as, &hawk_dev.spaces, node)
		if (as->mem[m->id] == m)
			wake_up_all(&as->wait);
	spin_unlock(&hawk_dev.spaces_lock);
}

/* Is there something to wait for?  Then a pass begins, and @nr is its number. */
static bool hawk_clean_ask(struct hawk_mem *m, int *nr)
{
	if (!work_busy(&m->cleaner.work.work))
		return false;
	*nr = atomic_inc_return(&m->cleaner.asked);
	hawk_mem_clean_soon(m);
	return true;
}

static bool hawk_clean_made(const struct hawk_mem *m, int nr)
{
	return smp_load_acquire(&m->cleaner.made) - nr >= 0 || READ_ONCE(m->gone);
}

/**
 * hawk_clean_wait() - wait until the cleaner has done what it could at this moment
 * @m: the tier
 *
 * Chunks in quarantine stay.
 *
 * Context: a call from user space, or a worker.  UNSAFE: it may have hawk_device.lent_lock or
 * .drain_lock, which can be waited for frozen.
 * Return: 0 or -EINTR: the caller is being killed.
 */
int hawk_clean_wait(struct hawk_mem *m)
{
	int nr;

	if (!hawk_clean_ask(m, &nr))
		return 0;
	return wait_event_state(hawk_dev.ends_wait, hawk_clean_made(m, nr),
				(TASK_KILLABLE | TASK_FREEZABLE_UNSAFE)) ? -EINTR : 0;
}

/**
 * hawk_settle_begin() - have chunks left by ended spaces zeroed
 * @as: look at the tiers that it may use
 * @s: out, what hawk_settle_over() waits for, at hawk_as.wait
 *
 * Return: whether there is something to wait for.
 */
bool hawk_settle_begin(struct hawk_as *as, struct hawk_settle *s)
{
	u32 t;

	s->tiers = 0;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (as->mem[t] && hawk_clean_ask(as->mem[t], &s->nr[t]))
			s->tiers |= BIT(t);
	return s->tiers;
}

/* Have they been?  Chunks in quarantine stay. */
bool hawk_settle_over(const struct hawk_as *as, const struct hawk_settle *s)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if ((s->tiers & BIT(t)) && !hawk_clean_made(as->mem[t], s->nr[t]))
			return false;
	return true;
}

/**
 * hawk_as_settle() - wait until chunks left by ended spaces have been zeroed
 * @as: look at the tiers that it may use; need not be known to anybody
 *
 * Context: a call from user space, no lock held.
 * Return: whether there was something to wait for; false, too, if the caller is being
 * killed.
 */
bool hawk_as_settle(struct hawk_as *as)
{
	struct hawk_settle s;

	return hawk_settle_begin(as, &s) &&
	       !wait_event_state(hawk_dev.ends_wait, hawk_settle_over(as, &s),
				 (TASK_KILLABLE | TASK_FREEZABLE));
}
