// SPDX-License-Identifier: GPL-2.0
/*
 * pm.c - suspend and hibernation
 *
 * Before the system sleeps no move may be in flight: drives are about to lose their
 * queues, and a hibernation image must not be older than what is on flash.  So new
 * rounds wait, moves in flight are waited for, and only then the system goes on.
 * Callers are frozen where they wait and go on after resume; only their deadlines
 * may have passed.  The freezer wakes those that a signal could wake, and leaves them the mark
 * of one (hawk_pm_thawed()).
 *
 *	hawk_round_begin()		hawk_pm_quiesce()
 *	 active++			 quiesced = true
 *	 quiesced? active--, wait	 wait for !active, space by space
 *
 * Full barriers between the two steps of each make one of them see the other.
 *
 * A delivery that waits for the pace is within a round, for as long as it takes.  It stops
 * where it is (hawk_pm_pause()): what it has not begun stays active, so that nobody takes the
 * space for idle, but is paused too, and quiescing waits for what is active and not paused.
 */
#include "pm.h"

#include <linux/freezer.h>
#include <linux/jiffies.h>
#include <linux/notifier.h>
#include <linux/sched/signal.h>
#include <linux/suspend.h>

#define HAWK_PM_TIMEOUT_MS	10000	/* a device that is stuck must not keep the lid open */

static void hawk_pm_resume(void)
{
	WRITE_ONCE(hawk_dev.quiesced, false);
	wake_up_all(&hawk_dev.pm_wait);
}

static bool hawk_pm_quiet(const struct hawk_as *as)
{
	return hawk_pm_settled(as, atomic_read(&as->active));
}

static int hawk_pm_quiesce(void)
{
	unsigned long end = jiffies + msecs_to_jiffies(HAWK_PM_TIMEOUT_MS);
	struct hawk_as *as = NULL;

	WRITE_ONCE(hawk_dev.quiesced, true);
	smp_mb();	/* pairs with hawk_pm_enter() */
	while ((as = hawk_as_next(as))) {
		long left = max_t(long, end - jiffies, 1);

		wake_up_all(&as->wait);	/* those that wait for the pace: hawk_pm_soon() */
		if (wait_event_timeout(as->wait, hawk_pm_quiet(as), left))
			continue;
		pr_err("space %llu still has moves in flight after %u s: no suspend\n", as->id,
		       HAWK_PM_TIMEOUT_MS / 1000);
		hawk_as_put(as);
		hawk_pm_resume();
		return -EBUSY;
	}
	return 0;
}

/**
 * hawk_pm_enter() - the caller has just said that its space is active: may it be?
 *
 * Context: any.
 * Return: false: the system is about to sleep; take it back, hawk_pm_wait(), try again.
 */
bool hawk_pm_enter(void)
{
	smp_mb__after_atomic();	/* pairs with hawk_pm_quiesce() */
	return likely(!READ_ONCE(hawk_dev.quiesced));
}

static void hawk_pm_unmark(void)
{
	struct sighand_struct *sighand = rcu_dereference_raw(current->sighand);	/* our own */

	spin_lock_irq(&sighand->siglock);
	recalc_sigpending();
	spin_unlock_irq(&sighand->siglock);
}

/**
 * hawk_pm_thawed() - a wait was interrupted: by the freezer only?
 *
 * Freezes the caller, if that is why.
 *
 * Context: a call from user space, or a worker; no lock held, no round begun.
 * Return: true: there is no signal, wait again.
 */
bool hawk_pm_thawed(void)
{
	do {
		try_to_freeze();
		hawk_pm_unmark();
	} while (freezing(current));
	return !signal_pending(current);
}

/*
 * Wait until the system is awake.  Nothing to interrupt it for: it is asleep itself
 * but for moments.  UNSAFE: the removal of a tier, and the making of a space that takes
 * its minimum back from others, wait here with drain_lock held.  Who waits for that can be
 * frozen too, see hawk_drain_lock(), or is a worker, which is not.
 */
void hawk_pm_wait(void)
{
	wait_event_state(hawk_dev.pm_wait, !READ_ONCE(hawk_dev.quiesced),
			 (TASK_UNINTERRUPTIBLE | TASK_FREEZABLE_UNSAFE));
	if (signal_pending(current))
		hawk_pm_unmark();
}

/**
 * hawk_pm_pause() - a delivery that waits for the pace lets the system sleep meanwhile
 * @as: its space
 * @n: how much of hawk_as.active it is itself: its round and what it has not begun
 *
 * Context: as hawk_pm_wait(); nothing of these @n is begun or given up meanwhile.
 */
void hawk_pm_pause(struct hawk_as *as, int n)
{
	do {
		atomic_add(n, &as->paused);
		smp_mb__after_atomic();	/* pairs with prepare_to_wait() of hawk_pm_quiesce() */
		wake_up_all(&as->wait);
		hawk_pm_wait();
		atomic_sub(n, &as->paused);
	} while (!hawk_pm_enter());
}

static int hawk_pm_notify(struct notifier_block *nb, unsigned long event, void *unused)
{
	switch (event) {
	case PM_HIBERNATION_PREPARE:
	case PM_SUSPEND_PREPARE:
	case PM_RESTORE_PREPARE:
		return notifier_from_errno(hawk_pm_quiesce());
	case PM_POST_HIBERNATION:
	case PM_POST_SUSPEND:
	case PM_POST_RESTORE:
		hawk_pm_resume();
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

static struct notifier_block hawk_pm_nb = {
	.notifier_call = hawk_pm_notify,
};

int hawk_pm_init(void)
{
	init_waitqueue_head(&hawk_dev.pm_wait);
	return register_pm_notifier(&hawk_pm_nb);
}

void hawk_pm_exit(void)
{
	unregister_pm_notifier(&hawk_pm_nb);
}
