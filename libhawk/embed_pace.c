// SPDX-License-Identifier: MIT
/*
 * embed_pace.c - paced delivery of the embedded backend: what the URL sets, estimates, and
 * promotion, which is the keeper's work
 */
#include "embed.h"

#define AT_ONCE		16		/* promotions in flight: whoever needs a frame may meet one */
#define LATER_NS	1000000u	/* when deliveries have the drive */

int epace_tune(struct embed *e, const struct hawk_url *u)
{
	struct hawk_pace *p = hawk_engine_pace(e->engine);
	struct hawk_pace_tune t;

	hawk_pace_tuned(p, &t, NULL);
	t.on = u->pace;
	t.link_mb_per_s = u->link_mb;
	if (u->cap)
		t.cap_percent = u->cap;
	if (hawk_pace_tune(p, &t))
		return hawk_fail(-EINVAL, "URL: link_mb_s up to %u, cap 1 to 100", HAWK_PACE_MB_MAX);
	return 0;
}

/* @flags: HAWK_BATCH_*.  Return: false: it would be late, and is not wanted then. */
bool epace_in_time(struct espace *sp, struct hawk_pace_load *load, u32 flags, u64 deadline)
{
	load->deadline = deadline;
	load->urgent = flags & HAWK_BATCH_URGENT;
	return !(flags & HAWK_BATCH_IN_TIME) ||
	       hawk_pace_in_time(hawk_engine_pace(sp->e->engine), load,
				 hawk_space_paced(sp->space), now_ns());
}

int embed_estimate(struct hawk_kv *base, struct hawk_estimate *est)
{
	struct espace *sp = to_ekv(base)->sp;
	int ret = hawk_space_estimate(sp->space, est, (void *)(uintptr_t)est->items, now_ns());

	return ret ? hawk_fail(ret, "an estimate of %u items in rows of %u: whole rows, no hints",
			       est->count, est->row) : 0;
}

int embed_phase(struct hawk_kv *base, struct hawk_phase *ph)
{
	struct espace *sp = to_ekv(base)->sp;
	int ret = hawk_space_phase(sp->space, ph, now_ns());

	if (ret)
		return hawk_fail(ret, "a phase ends at most %llu ns from now",
				 (unsigned long long)HAWK_PHASE_MAX_NS);
	promote_note(sp);
	return 0;
}

/* Prefill has begun, or a gather has read blocks during it. */
void promote_note(struct espace *sp)
{
	if (hawk_promote_due(sp->space, now_ns()))
		keeper_kick(sp->e, false);
}

/* Return: whether the space is to be looked at again soon. */
static bool promote(struct espace *sp)
{
	struct hawk_move move[AT_ONCE];
	struct hawk_plan plan = { .max = AT_ONCE, .move = move };
	int ret;

	planner_enter(sp->e);
	do {
		ret = hawk_promote_next(sp->space, &plan, now_ns());
		plan_run_idle(sp, &plan);
	} while (ret > 0 && !hawk_load(&sp->ending) && !hawk_load(&sp->e->keeper_stop));
	planner_leave(sp->e);
	return ret == -EBUSY;
}

/**
 * promote_all() - the keeper: what gathers have read from flash comes to memory
 * Return: when to call it again, CLOCK_MONOTONIC, nanoseconds; 0: when it is kicked.
 */
u64 promote_all(struct embed *e)
{
	struct espace *sp = NULL;
	bool later = false;

	while ((sp = espace_next(e, sp)))
		if (hawk_promote_due(sp->space, now_ns()))
			later |= promote(sp);
	return later ? now_ns() + LATER_NS : 0;
}
