// SPDX-License-Identifier: GPL-2.0
/*
 * promote.c - lazy promotion: HAWK_IOC_PHASE, and who carries it out
 *
 * Blocks that gathers have read from flash wait in the engine (core/promote.c).  While a
 * runtime says that prefill runs, one worker asks for them, for each space, and starts the
 * moves:
 *
 *	phase -> every HAWK_PROMOTE_MS, while any space is in its phase -> no work any more
 *
 * Nobody waits for these moves, and they are few at a time: none is begun while as many
 * others of the space are in flight, none while the engine knows of deliveries from that
 * drive, none while the system wants memory back or the space has found none.  A phase
 * ends by itself, so a runtime that dies leaves nothing to do.  Each step is a round of its
 * own, so that suspend waits for one plan at most (pm.c).
 */
#include "hawk.h"
#include "core/promote.h"
#include "pace.h"
#include "trace.h"

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define HAWK_PROMOTE_MS		10	/* a period */
#define HAWK_PROMOTE_MOVES	16	/* of a step */
#define HAWK_PROMOTE_STEPS	8	/* of a space in a period */

/* Does the system, or the space itself, lack memory? */
static bool hawk_promote_pressed(const struct hawk_as *as)
{
	u32 t;

	if (READ_ONCE(as->stuck) || READ_ONCE(as->starved_tiers))
		return true;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (as->mem[t] && atomic_long_read(&as->mem[t]->shrink_pages) > 0)
			return true;
	return false;
}

/* Return: moves started, or a negative errno. */
static int hawk_promote_round(struct hawk_as *as, struct hawk_plan *plan)
{
	int ret;

	hawk_round_begin(as);
	ret = hawk_promote_next(as->space, plan, ktime_get_ns());
	trace_hawk_promote(as, plan->n, ret);
	hawk_plan_start(as, NULL, plan, NULL);
	hawk_round_end(as);
	return ret;
}

static void hawk_promote_space(struct hawk_as *as, struct hawk_plan *plan)
{
	u32 i;

	for (i = 0; i < HAWK_PROMOTE_STEPS; i++) {
		if (!hawk_promote_due(as->space, ktime_get_ns()) || hawk_promote_pressed(as) ||
		    atomic_read(&as->active) >= HAWK_PROMOTE_MOVES)
			return;
		if (hawk_promote_round(as, plan) <= 0)
			return;
		cond_resched();
	}
}

static void hawk_promote_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(hawk_promote_later, hawk_promote_work);

static void hawk_promote_work(struct work_struct *work)
{
	struct hawk_plan plan = { .max = HAWK_PROMOTE_MOVES };
	struct hawk_as *as = NULL;
	bool any = false;

	plan.move = kmalloc_array(plan.max, sizeof(*plan.move), GFP_KERNEL | __GFP_NOWARN);
	while ((as = hawk_as_next(as))) {
		if (READ_ONCE(as->phase_until) <= ktime_get_ns())
			continue;
		any = true;
		if (plan.move)	/* else in the next period */
			hawk_promote_space(as, &plan);
	}
	kfree(plan.move);
	if (any)
		queue_delayed_work(hawk_dev.own_wq, &hawk_promote_later,
				   msecs_to_jiffies(HAWK_PROMOTE_MS));
}

/**
 * hawk_ioc_phase() - HAWK_IOC_PHASE
 * @f: caller's file, has a space
 * @data: struct hawk_phase
 *
 * Return: 0 or as &struct hawk_phase tells.
 */
int hawk_ioc_phase(struct hawk_file *f, void *data)
{
	struct hawk_phase *arg = data;
	int ret;

	if (arg->reserved)
		return -EOPNOTSUPP;
	ret = hawk_space_phase(f->as->space, arg, ktime_get_ns());
	if (ret)
		return ret;
	WRITE_ONCE(f->as->phase_until, arg->flags & HAWK_PHASE_PREFILL ? arg->until_ns : 0);
	/* who says so all the time does not make it run more often */
	if (arg->flags & HAWK_PHASE_PREFILL)
		queue_delayed_work(hawk_dev.own_wq, &hawk_promote_later, 0);
	return 0;
}

/* No file is open: nobody says that prefill runs any more. */
void hawk_promote_exit(void)
{
	cancel_delayed_work_sync(&hawk_promote_later);
}
