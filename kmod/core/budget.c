// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * budget.c - the controller: a budget of bytes written per period is held
 *
 * A period (a day) has 128 control periods.  Three things are kept:
 *
 *	what was written in each of the last 128 of them.  Their sum never exceeds the
 *	budget, so what is written between any two moments a period apart exceeds it by no
 *	more than what fits into the one control period that is cut in two.
 *
 *	a credit, which grows by 1/128 of the budget per control period and shrinks by what
 *	is written.  What a quiet night leaves may be spent in the morning.
 *
 *	how many bytes of which score wanted to be written, fading with a time constant of
 *	half a period.  Conversations leave host memory one by one, all good or all bad: a
 *	shorter memory would take the best part of each, instead of the best ones.
 *
 * Each control period, and after HAWK_BUDGET_ASKED decisions, the threshold is set anew:
 * the score above which, judging by what wanted to be written lately, just as much is
 * written as the budget gives per control period plus a share of the credit.  As the
 * distribution of scores does not depend on what was admitted, nothing swings: what the
 * forecast misses ends up in the credit, and that decays with a time constant of
 * HAWK_BUDGET_PAYBACK control periods: most of a day, as a shorter time would sell what was
 * saved to whoever comes next.  A new budget begins with a quarter of it saved, the share that
 * the default budget of a drive keeps for surges.  As long as all that wants to be written is
 * less than that the threshold is 0: everything is admitted while the budget has room (but for
 * what is known to be next to worthless, admit.c).
 */
#include "budget.h"

#define HAWK_BUDGET_ASKED	256
#define HAWK_BUDGET_SPARE	32
#define HAWK_BUDGET_KNOWN	32	/* control periods until the mean is trusted */
#define HAWK_BUDGET_LANDING	4	/* control periods looked ahead at least */
#define HAWK_BUDGET_NEAR	16	/* and at most */
#define HAWK_BUDGET_RECENT	8
#define HAWK_BUDGET_FADE	64	/* control periods that scores are remembered */
#define HAWK_BUDGET_PAYBACK	96
#define HAWK_BUDGET_START	4	/* share of the budget that may be used at once */

/* No limit, and nothing is known.  With the lock held, as all here. */
void hawk_budget_clear(struct hawk_budget *b)
{
	hawk_store(&b->bytes, 0);
	b->period = 0;
	b->tick_ns = 0;
	b->next = 0;
	b->credit = 0;
	b->threshold = 0;
	b->asked = 0;
	b->at = 0;
	b->spent = 0;
	b->ticks = 0;
	b->passed = 0;
	b->taken = 0;
	b->wanted = 0;
	b->recent = 0;
	memset(b->tick, 0, sizeof(b->tick));
	memset(b->bin, 0, sizeof(b->bin));
}

void hawk_budget_set(struct hawk_budget *b, u64 bytes, u64 period, u64 now)
{
	hawk_budget_clear(b);
	hawk_store(&b->bytes, bytes);
	b->period = period;
	b->tick_ns = div_u64(period, HAWK_BUDGET_TICKS) ?: 1;
	b->next = now + b->tick_ns;
	b->credit = bytes / HAWK_BUDGET_START;
}

/* Bytes of credit per control period; a little is kept back for what is not foreseen. */
static u64 accrues(const struct hawk_budget *b)
{
	return (b->bytes - b->bytes / HAWK_BUDGET_SPARE) / HAWK_BUDGET_TICKS;
}

/* Bytes for the next control period. */
static u64 target(const struct hawk_budget *b)
{
	s64 t = (s64)accrues(b) + b->credit / HAWK_BUDGET_PAYBACK;

	return t > 0 ? t : 0;
}

/*
 * Bytes per control period that leave room for as much in each of those to come: those
 * written long ago fall out of the sum as time goes on.
 */
static u64 landing(const struct hawk_budget *b)
{
	u64 left = b->bytes > b->spent ? b->bytes - b->spent : 0, least = HAWK_FX_MAX, t;
	u32 k;

	for (k = 1; k <= HAWK_BUDGET_NEAR; k++) {
		t = k >= HAWK_BUDGET_LANDING ? div_u64(left, k) : least;
		least = t < least ? t : least;
		left += b->tick[(b->at + k) % HAWK_BUDGET_TICKS];
	}
	return least;
}

/* The share of what wants to be written that may be, Q32.32. */
static u64 share(const struct hawk_budget *b)
{
	u64 fast = b->recent > b->wanted ? b->recent : b->wanted, mean, far, near;
	u32 ticks = (b->ticks >> 32) + 1;

	/* as long as little is known the rest of the day is taken to be like the last moments */
	if (ticks < HAWK_BUDGET_KNOWN)
		mean = b->sum + b->wanted + (HAWK_BUDGET_KNOWN - ticks) * fast;
	else
		mean = b->sum + b->wanted;
	mean = div_u64(mean, ticks < HAWK_BUDGET_KNOWN ? HAWK_BUDGET_KNOWN : ticks);
	far = hawk_fx_ratio(target(b), mean);
	near = hawk_fx_ratio(landing(b), fast > mean ? fast : mean);

	far = far < near ? far : near;
	/* not all that reach the threshold are written; but be careful */
	if (b->taken >= b->passed)
		return far;
	return hawk_fx_mul(far, hawk_fx_ratio(b->passed, b->taken > b->passed / 4 ? b->taken : b->passed / 4));
}

static void threshold_set(struct hawk_budget *b)
{
	u64 room, sum = 0, all = 0, low, width, part;
	u32 i;

	b->asked = 0;
	for (i = 0; i < HAWK_BUDGET_BINS; i++)
		all += b->bin[i];
	room = hawk_fx_mul(all, share(b));
	while (i && sum + b->bin[i - 1] <= room)
		sum += b->bin[--i];
	if (!i) {
		b->threshold = 0;
		return;
	}
	/* of the bin that does not fit as a whole, its upper part */
	low = hawk_fx_from8(HAWK_BUDGET_LOWEST + i - 1);
	width = hawk_fx_from8(HAWK_BUDGET_LOWEST + i) - low;
	part = hawk_fx_ratio(room - sum, b->bin[i - 1]);
	b->threshold = low + width - hawk_fx_mul(width, part);
}

static void tick_end(struct hawk_budget *b)
{
	u32 i;

	b->at = (b->at + 1) % HAWK_BUDGET_TICKS;
	b->spent -= b->tick[b->at];
	b->tick[b->at] = 0;
	b->credit += accrues(b);
	if (b->credit > (s64)b->bytes)
		b->credit = b->bytes;
	b->recent = b->recent / 2 + b->wanted / 2;
	b->sum += b->wanted - b->sum / HAWK_BUDGET_TICKS;
	b->ticks += HAWK_FX_ONE - b->ticks / HAWK_BUDGET_TICKS;
	b->wanted = 0;
	b->next += b->tick_ns;
	for (i = 0; i < HAWK_BUDGET_BINS; i++)
		b->bin[i] -= b->bin[i] / HAWK_BUDGET_FADE;
}

/* Time goes on: at most a period's worth of control periods ends. */
void hawk_budget_advance(struct hawk_budget *b, u64 now)
{
	u32 n;

	if (now < b->next)
		return;
	for (n = 0; n < HAWK_BUDGET_TICKS && now >= b->next; n++)
		tick_end(b);
	if (now >= b->next)
		b->next = now + b->tick_ns;
	threshold_set(b);
}

/* May @bytes more be written in this control period? */
bool hawk_budget_fits(const struct hawk_budget *b, u64 bytes)
{
	return b->spent + bytes <= b->bytes;
}

/* Has no more been written than was accrued? */
bool hawk_budget_on_pace(const struct hawk_budget *b)
{
	return b->credit > 0;
}

/* A block of this score wants to be written. */
void hawk_budget_want(struct hawk_budget *b, u64 score, u64 bytes, bool written)
{
	u32 i;

	if (score >= b->threshold) {
		b->passed += bytes;
		b->taken += written ? bytes : 0;
	}
	i = hawk_fx_octave8(score);
	i = i > HAWK_BUDGET_LOWEST ? i - HAWK_BUDGET_LOWEST : 0;
	b->bin[i < HAWK_BUDGET_BINS ? i : HAWK_BUDGET_BINS - 1] += bytes;
	b->wanted += bytes;
	if (++b->asked < HAWK_BUDGET_ASKED)
		return;
	threshold_set(b);
	b->passed -= b->passed / HAWK_BUDGET_RECENT;
	b->taken -= b->taken / HAWK_BUDGET_RECENT;
}

void hawk_budget_spend(struct hawk_budget *b, u64 bytes)
{
	b->tick[b->at] += bytes;
	b->spent += bytes;
	b->credit -= bytes;
}

/* What was spent lately was not written after all. */
void hawk_budget_refund(struct hawk_budget *b, u64 bytes)
{
	u32 n, at = b->at;
	u64 part;

	for (n = 0; n < HAWK_BUDGET_TICKS && bytes; n++) {
		part = bytes < b->tick[at] ? bytes : b->tick[at];
		b->tick[at] -= part;
		b->spent -= part;
		b->credit += part;
		bytes -= part;
		at = (at ?: HAWK_BUDGET_TICKS) - 1;
	}
}
