// SPDX-License-Identifier: GPL-2.0
/*
 * ends.c - walks over all spaces; spaces that are about to end
 *
 * A space nobody can use any more lives on for as long as a walk, a transfer or the end
 * of an export refers to it (ending), then without a reference until the engine has let
 * it go (dying).  Both take moments, and both keep its chunks: who wants those waits
 * here, rather than being refused.
 */
#include "hawk.h"

#include <linux/jiffies.h>

#define HAWK_DYING_MS	1000

/**
 * hawk_as_next() - walk all spaces
 * @prev: the last one, whose reference is put, or NULL
 *
 * Those whose makers still look for their blocks are passed over.
 *
 * Return: the next one, referenced, or NULL at the end.  May sleep.
 */
struct hawk_as *hawk_as_next(struct hawk_as *prev)
{
	struct hawk_as *as = prev, *found = NULL;

	spin_lock(&hawk_dev.spaces_lock);
	as = list_prepare_entry(as, &hawk_dev.spaces, node);
	list_for_each_entry_continue(as, &hawk_dev.spaces, node) {
		if (!as->finding && kref_get_unless_zero(&as->ref)) {
			found = as;
			break;
		}
	}
	spin_unlock(&hawk_dev.spaces_lock);
	if (prev)
		hawk_as_put(prev);
	return found;
}

/* ---- those that hide ---- */

/* Its maker has found its blocks, or has given it up: from now on walks meet it. */
void hawk_as_found(struct hawk_as *as)
{
	spin_lock(&hawk_dev.spaces_lock);
	as->finding = false;
	spin_unlock(&hawk_dev.spaces_lock);
	wake_up_all(&hawk_dev.ends_wait);
}

static bool hawk_as_stop_finding(const struct hawk_mem *m)
{
	struct hawk_as *as;
	bool any = false;

	spin_lock(&hawk_dev.spaces_lock);
	list_for_each_entry(as, &hawk_dev.spaces, node)
		if (as->finding && as->mem[m->id] == m) {
			WRITE_ONCE(as->find_stop, true);
			any = true;
		}
	spin_unlock(&hawk_dev.spaces_lock);
	return any;
}

/**
 * hawk_as_wait_finding() - have those that look for their blocks stop
 * @m: the tier that they have a part in, which no new space gets
 *
 * Context: sleeps until reads that were started have ended; their makers wait for nothing
 * else meanwhile.
 * Return: 0: all of them are met by walks; -EINTR: the caller is being killed.
 */
int hawk_as_wait_finding(const struct hawk_mem *m)
{
	return wait_event_killable(hawk_dev.ends_wait, !hawk_as_stop_finding(m)) ? -EINTR : 0;
}

/* ---- all of one tier ---- */

/**
 * hawk_as_minima() - chunks of a tier that are the minima of a user's spaces
 * @m: the tier
 * @uid: who made them
 *
 * Context: hawk_device.lock held.
 */
u64 hawk_as_minima(const struct hawk_mem *m, kuid_t uid)
{
	struct hawk_as *as;
	u64 n = 0;

	lockdep_assert_held(&hawk_dev.lock);
	spin_lock(&hawk_dev.spaces_lock);
	list_for_each_entry(as, &hawk_dev.spaces, node)
		if (as->mem[m->id] == m && uid_eq(as->uid, uid))
			n += as->min[m->id];
	spin_unlock(&hawk_dev.spaces_lock);
	return n;
}

/* Spaces with a part in the tier: those that somebody can use, and the others. */
static void hawk_as_count(const struct hawk_mem *m, u32 *lasting, u32 *ending)
{
	struct hawk_as *as;

	*lasting = 0;
	*ending = 0;
	hawk_dev_lock();
	spin_lock(&hawk_dev.spaces_lock);
	list_for_each_entry(as, &hawk_dev.spaces, node) {
		if (as->mem[m->id] != m)
			continue;
		if (as->files || hawk_as_named(as) || hawk_export_lasts(as))
			++*lasting;
		else
			++*ending;
	}
	spin_unlock(&hawk_dev.spaces_lock);
	mutex_unlock(&hawk_dev.lock);
}

/**
 * hawk_as_wait_ends() - wait for spaces that nobody can use any more
 * @m: the tier that they have a part in
 * @seen: @m->ended before the caller found the tier in use
 * @until: when to give up, jiffies
 *
 * To close the last file of a space does not wait for what works on it in the
 * background; who wants the memory then should not be refused for that.
 *
 * Context: sleeps, killable; no lock held.
 * Return: whether to look again: one has ended, and no other lasts.
 */
bool hawk_as_wait_ends(const struct hawk_mem *m, unsigned int seen, unsigned long until)
{
	long left = until - jiffies;
	u32 lasting, ending;

	hawk_as_count(m, &lasting, &ending);
	if (lasting || left <= 0)
		return false;
	if (!ending)
		return READ_ONCE(m->ended) != seen;
	return wait_event_killable_timeout(hawk_dev.ends_wait, READ_ONCE(m->ended) != seen,
					   left) > 0;
}

static bool hawk_as_any_dying(const struct hawk_mem *m)
{
	struct hawk_as *as;
	bool dying = false;

	spin_lock(&hawk_dev.spaces_lock);
	list_for_each_entry(as, &hawk_dev.spaces, node) {
		dying = as->mem[m->id] == m && !kref_read(&as->ref);
		if (dying)
			break;
	}
	spin_unlock(&hawk_dev.spaces_lock);
	return dying;
}

/**
 * hawk_as_wait_dying() - wait for spaces that hawk_as_next() does not find any more
 * @m: the tier that they have a part in
 *
 * Others may follow all the time, so not for long.
 *
 * Context: sleeps; no lock held.
 * Return: 0: what they owned is dirty; or there are more; -EINTR: the caller is being
 * killed.
 */
int hawk_as_wait_dying(const struct hawk_mem *m)
{
	if (wait_event_killable_timeout(hawk_dev.ends_wait, !hawk_as_any_dying(m),
					msecs_to_jiffies(HAWK_DYING_MS)) < 0)
		return -EINTR;
	hawk_dev_lock();	/* the last of them has ended when it is free */
	mutex_unlock(&hawk_dev.lock);
	return 0;
}
