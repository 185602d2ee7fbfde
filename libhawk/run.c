// SPDX-License-Identifier: MIT
/*
 * run.c - a batch that may have to move blocks
 *
 * A verb goes over its unfinished items and asks the engine for each; what the
 * engine wants moved gathers in a plan.  run_step() then makes the moves, or
 * waits for those of others, and the verb goes over what is left again.
 */
#include "embed.h"

void run_start(struct run *r, struct ekv *kv, struct hawk_batch *b)
{
	r->kv = kv;
	r->b = b;
	r->it = (struct hawk_item *)(uintptr_t)b->items;
	r->plan = (struct hawk_plan) { .max = EMBED_PLAN_MAX, .move = r->move };
	r->item_done = NULL;
	r->stop = NULL;
	planner_enter(kv->sp->e);
}

void run_end(struct run *r)
{
	planner_leave(r->kv->sp->e);
	share_note(r->kv->sp);
}

/* A pass over the items begins. */
void run_pass(struct run *r)
{
	r->seen = moved_count(r->kv->sp->e);
	r->claims = share_count(r->kv->sp);
}

/**
 * run_step() - after a pass that left items unfinished
 * Return: 0: look again; -ETIME: the deadline has passed, moves may be under way;
 * -EAGAIN: there is nothing to move and nothing to wait for.
 */
int run_step(struct run *r)
{
	struct embed *e = r->kv->sp->e;
	int ret;

	if (r->plan.n) {
		if (r->b->deadline_ns && now_ns() >= r->b->deadline_ns) {
			plan_cancel(e, &r->plan);
			return -ETIME;
		}
		return plan_run_batch(r->kv->sp, &r->plan, r->b);
	}
	ret = moved_wait(e, r->seen, r->b->deadline_ns);
	if (ret == -EAGAIN && embed_clean(e))
		return 0;
	return ret;
}

/* The engine says there is no room.  Return: whether to look again. */
bool run_more(struct run *r)
{
	struct espace *sp = r->kv->sp;

	return embed_clean(sp->e) || r->plan.n || share_now(sp, r->claims);
}

/* Notes a pin that the engine has given; drops it if that fails. */
int run_pin(struct ekv *kv, u64 vt, struct hawk_ref ref)
{
	struct espace *sp = kv->sp;
	int ret;

	ret = window_map(sp, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt));
	ret = ret ? ret : egpu_lost(sp, HAWK_VT_TIER(vt));
	if (!ret)
		ret = pins_add(kv, ref);
	if (ret)
		hawk_block_unpin(sp->space, ref);
	return ret;
}

/* What every item must obey; @flags: HAWK_ITEM_* that the call knows. */
int item_check(const struct hawk_item *it, u32 flags)
{
	if (it->flags & ~flags)
		return -EOPNOTSUPP;
	if (flags & HAWK_ITEM_PARENT ? !hawk_hints_ok(it->flags, it->arg) : !!it->arg)
		return -EINVAL;
	if ((it->flags & HAWK_ITEM_BY_KEY) && hawk_key_is_zero(it->key))
		return -EINVAL;
	return 0;
}

/* Counts the results; what failed has no translation. */
void batch_finish(struct hawk_batch *b)
{
	struct hawk_item *it = (struct hawk_item *)(uintptr_t)b->items;
	u32 i;

	b->done = 0;
	b->prefix = 0;
	for (i = 0; i < b->count; i++) {
		if (it[i].status) {
			it[i].vt = 0;
			continue;
		}
		b->done++;
		if (b->prefix == i)
			b->prefix++;
	}
}
