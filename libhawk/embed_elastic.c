// SPDX-License-Identifier: MIT
/*
 * embed_elastic.c - elastic residency of the embedded backend
 *
 * The engine decides what leaves host tiers and what comes back (kmod/core/elastic.c);
 * the keeper asks it in each period, for each space that has it on, and makes the moves,
 * few at once.
 */
#include "../kmod/core/elastic.h"
#include "embed.h"

#define PERIOD_NS	50000000ull
#define STEPS		8	/* of a space in a period */
#define AT_ONCE		64	/* moves in flight: reloads must not queue behind many */

int embed_elastic(struct hawk_kv *base, struct hawk_elastic *arg)
{
	struct espace *sp = to_ekv(base)->sp;
	int ret = hawk_space_elastic(sp->space, arg);

	if (ret == -EOPNOTSUPP && !sp->geo.seqs)
		return hawk_fail(ret, "the space was made without sequences");
	if (ret)
		return hawk_fail(ret, "elastic residency: on is 0 or 1, keep_free below %u, alpha_min at most that",
				 HAWK_ELASTIC_ONE);
	if (arg->flags & HAWK_ELASTIC_SET)
		keeper_kick(sp->e, false);
	return 0;
}

/* One step and its moves.  Return: moves made, or a negative errno. */
static int step(struct espace *sp)
{
	struct hawk_move move[AT_ONCE];
	struct hawk_plan plan = { .max = AT_ONCE, .move = move };
	int ret, moves;

	planner_enter(sp->e);
	do {
		ret = hawk_elastic_step(sp->space, now_ns(), &plan);
	} while (espace_grew(sp, ret));
	moves = (int)plan.n;
	plan_run(sp, &plan, now_ns() + KEEPER_PATIENCE_NS);
	planner_leave(sp->e);
	return ret < 0 ? ret : moves;
}

/**
 * elastic_all() - the keeper: a few steps for each space that has it on
 * Return: when to call it again, CLOCK_MONOTONIC, nanoseconds; 0: none has it on.
 */
u64 elastic_all(struct embed *e, u64 now)
{
	struct espace *sp = NULL;
	bool any = false;
	u32 i;

	while ((sp = espace_next(e, sp))) {
		if (!hawk_space_elastic_on(sp->space))
			continue;
		any = true;
		for (i = 0; i < STEPS && !hawk_load(&sp->ending) && step(sp) > 0; i++)
			;
	}
	return any ? now + PERIOD_NS : 0;
}
