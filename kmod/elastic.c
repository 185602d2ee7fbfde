// SPDX-License-Identifier: GPL-2.0
/*
 * elastic.c - elastic residency: HAWK_IOC_ELASTIC, and who carries it out
 *
 * The engine decides what leaves host tiers and what comes back (core/elastic.c).  One
 * worker asks it, for each space that has it on, and starts the moves:
 *
 *	set -> every HAWK_ELASTIC_MS, while any space has it on -> no work any more
 *
 * In a period a space gets a few steps, which end with the first that finds nothing to
 * move.  No step is begun while more moves of the space than one plan has are in flight:
 * a reload that somebody waits for must not queue behind many of these.  Each step is a
 * round of its own, so that suspend waits for one plan at most (pm.c), and nothing is
 * held between them that the removal of a tier could want.
 */
#include "move.h"
#include "core/elastic.h"

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define HAWK_ELASTIC_MS		50	/* a period */
#define HAWK_ELASTIC_STEPS	8	/* of a space in it */

/* Return: moves started, or a negative errno. */
static int hawk_elastic_round(struct hawk_as *as, struct hawk_plan *plan)
{
	int ret, moves;

	hawk_round_begin(as);
	do {
		ret = hawk_elastic_step(as->space, ktime_get_ns(), plan);
	} while (hawk_as_grew(as, ret));
	moves = plan->n;
	hawk_plan_start(as, NULL, plan, NULL);
	hawk_round_end(as);
	return ret < 0 ? ret : moves;
}

static void hawk_elastic_space(struct hawk_as *as, struct hawk_plan *plan)
{
	u32 i;

	for (i = 0; i < HAWK_ELASTIC_STEPS; i++) {
		if (atomic_read(&as->active) > plan->max)
			break;
		if (hawk_elastic_round(as, plan) <= 0)
			break;
		cond_resched();
	}
}

static void hawk_elastic_work(struct work_struct *work)
{
	struct hawk_plan plan = { .max = HAWK_PLAN_MOVES };
	struct hawk_as *as = NULL;
	bool any = false;

	plan.move = kmalloc_array(plan.max, sizeof(*plan.move), GFP_KERNEL);
	while ((as = hawk_as_next(as))) {
		if (!hawk_space_elastic_on(as->space))
			continue;
		any = true;
		if (plan.move)	/* else in the next period */
			hawk_elastic_space(as, &plan);
	}
	kfree(plan.move);
	if (any)
		queue_delayed_work(hawk_dev.own_wq, &hawk_dev.elastic,
				   msecs_to_jiffies(HAWK_ELASTIC_MS));
}

/**
 * hawk_ioc_elastic() - HAWK_IOC_ELASTIC
 * @f: caller's file, has a space
 * @arg: &struct hawk_elastic
 *
 * Return: 0; -EACCES: to set, the file must be open for writing; -EINVAL;
 * -EOPNOTSUPP: a space without sequences.
 */
int hawk_ioc_elastic(struct hawk_file *f, void *arg)
{
	struct hawk_elastic *e = arg;
	bool set = e->flags & HAWK_ELASTIC_SET;
	int ret;

	if (set && !f->writable)
		return -EACCES;
	ret = hawk_space_elastic(f->as->space, e);
	if (!ret && set && e->on)
		mod_delayed_work(hawk_dev.own_wq, &hawk_dev.elastic, 0);
	return ret;
}

void hawk_elastic_work_init(void)
{
	INIT_DELAYED_WORK(&hawk_dev.elastic, hawk_elastic_work);
}

/* No file is open: nobody turns it on any more. */
void hawk_elastic_work_exit(void)
{
	cancel_delayed_work_sync(&hawk_dev.elastic);
}
