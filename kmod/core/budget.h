/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * budget.h - how many bytes may be written to a flash tier, and from which score on
 */
#ifndef HAWK_CORE_BUDGET_H
#define HAWK_CORE_BUDGET_H

#include "fixed.h"

#define HAWK_BUDGET_TICKS	128	/* control periods of a budget period */
#define HAWK_BUDGET_BINS	176	/* eighths of octaves of scores, from 2^-16 to 64 */
#define HAWK_BUDGET_LOWEST	(16 * 8)	/* the eighth that is bin 0 */

/*
 * One flash tier's.  Guarded by @lock, which is taken within a bucket's and with none
 * taken inside; @bytes is read without it as a hint.
 */
struct hawk_budget {
	struct hawk_lock lock;
	u64 bytes;		/* that may be written per period; 0: no limit */
	u64 period;		/* ns */
	u64 tick_ns;		/* length of a control period */
	u64 next;		/* end of the present one */
	s64 credit;		/* bytes accrued and not written; less than 0: overdrawn */
	u64 threshold;		/* score from which on blocks are admitted, Q32.32 */
	u32 asked;		/* decisions since the threshold was set */
	u32 at;			/* present control period, in @tick */
	u64 spent;		/* sum of @tick */
	u64 tick[HAWK_BUDGET_TICKS];	/* bytes written */
	u64 bin[HAWK_BUDGET_BINS];	/* bytes that wanted to be, by score, lately */
	u64 passed;		/* of @bin's: those that reached the threshold */
	u64 taken;		/* of these, those written: others had lost their parent */
	u64 wanted;		/* bytes that wanted to be written in the present control period */
	u64 sum;		/* the same of those before, fading */
	u64 ticks;		/* how many of them that are, fading alike; Q32.32 */
	u64 recent;		/* the same of the last few, mean */
};

void hawk_budget_clear(struct hawk_budget *b);
void hawk_budget_set(struct hawk_budget *b, u64 bytes, u64 period, u64 now);
void hawk_budget_advance(struct hawk_budget *b, u64 now);
bool hawk_budget_fits(const struct hawk_budget *b, u64 bytes);
bool hawk_budget_on_pace(const struct hawk_budget *b);
void hawk_budget_want(struct hawk_budget *b, u64 score, u64 bytes, bool written);
void hawk_budget_spend(struct hawk_budget *b, u64 bytes);
void hawk_budget_refund(struct hawk_budget *b, u64 bytes);

#endif /* HAWK_CORE_BUDGET_H */
