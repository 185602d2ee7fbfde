// SPDX-License-Identifier: GPL-2.0
/*
 * writeback.c - writes cold blocks to flash ahead of need
 *
 * Off until a tier's writeback_permille is set.  Then a few buckets of every
 * space are looked at in each period, so that an eviction finds clean blocks and
 * costs no write.
 */
#include "move.h"

#include <linux/jiffies.h>
#include <linux/slab.h>

#define HAWK_WRITEBACK_MS	100	/* a period */

static void hawk_writeback_space(struct hawk_as *as, struct hawk_plan *plan)
{
	u32 t;

	hawk_round_begin(as);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		u32 want = as->mem[t] ? READ_ONCE(as->mem[t]->writeback_permille) : 0;

		if (!want)
			continue;
		while (hawk_as_grew(as, hawk_space_writeback(as->space, t, want,
							      ktime_get_ns(), plan)))
			;
		hawk_plan_start(as, NULL, plan, NULL);
	}
	hawk_round_end(as);
}

static bool hawk_writeback_wanted(void)
{
	bool wanted = false;
	u32 t;

	hawk_dev_lock();
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		wanted |= hawk_dev.mem[t] && READ_ONCE(hawk_dev.mem[t]->writeback_permille);
	mutex_unlock(&hawk_dev.lock);
	return wanted;
}

static void hawk_writeback_work(struct work_struct *work)
{
	struct hawk_plan plan = { .max = HAWK_PLAN_MOVES };
	struct hawk_as *as = NULL;

	if (!hawk_writeback_wanted())
		return;
	plan.move = kmalloc_array(plan.max, sizeof(*plan.move), GFP_KERNEL);
	if (plan.move)
		while ((as = hawk_as_next(as)))
			hawk_writeback_space(as, &plan);
	kfree(plan.move);
	queue_delayed_work(hawk_dev.own_wq, &hawk_dev.writeback,
			   msecs_to_jiffies(HAWK_WRITEBACK_MS));
}

void hawk_writeback_init(void)
{
	INIT_DELAYED_WORK(&hawk_dev.writeback, hawk_writeback_work);
}

/* A tunable has changed. */
void hawk_writeback_kick(void)
{
	mod_delayed_work(hawk_dev.own_wq, &hawk_dev.writeback, 0);
}

void hawk_writeback_exit(void)
{
	cancel_delayed_work_sync(&hawk_dev.writeback);
}
