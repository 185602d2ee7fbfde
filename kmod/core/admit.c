// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * admit.c - which blocks are worth a write to flash
 *
 * Asked for each block that leaves host memory and has no copy on flash.  Without a budget
 * (budget.c) all are admitted and nothing here costs anything.  With one:
 *
 *	score = P(comes back) * exp(-idle / decay) * (1 to 5/4)
 *
 * P is what was learnt of blocks of its class (reuse.c).  The last factor breaks ties for
 * blocks whose parent is on flash: a class that fits in part is then admitted chain by chain
 * rather than block by block, as a prefix with a hole is of no use.  Which chains is decided
 * by the key of their first block.  A block is admitted when its score reaches the
 * threshold, which is 0 as long as the budget has room, unless it is known that blocks of
 * its class hardly ever come back (reuse.c).
 *
 * Prefix closure: a block whose parent was forgotten is not written.  If the parent is in
 * host memory only, and would be refused, so is the block.  But a block that was used long
 * after its parent was last is evidently used without it (akv drops what lies before it),
 * and stands for itself.
 *
 * A block at the cold end of its list has outlived the mean life in host memory: that it
 * will be used again before it leaves is ruled out, so nothing is predicted about that.
 *
 * For comparison the host may choose other rules: everything; only what was used twice; and
 * the formula of the scheme's authors, as they give it.
 */
#include "admit.h"

#define HAWK_DECAY_TIMES	8	/* decay time: so many mean times of absence */
#define HAWK_ALONE_SHARE	8	/* used without its parent: 1/8 of a mean stay later */
#define HAWK_ALONE_MIN_NS	1000000000ull

/* The authors': 100 * reuse / residency (s) * exp(-0.05 * idle / stay) >= 1.85 */
#define FORMULA_SCALE		(100 * 1000000000ull)
#define FORMULA_LAMBDA		214748365ull
#define FORMULA_THRESHOLD	7945689498ull

enum parent {
	PARENT_FINE,		/* there is none, or it is on flash */
	PARENT_UNKNOWN,
	PARENT_HOST,		/* in host memory only */
	PARENT_GONE,		/* was forgotten */
};

#ifdef HAWK_COUNT_EVENTS
bool (*hawk_admit_hook)(struct hawk_space *s, struct hawk_block *blk);
#endif

/* ---- what a block is worth ---- */

static u64 decayed(const struct hawk_space *s, u64 value, u64 atime, u64 now)
{
	u64 mean = hawk_reuse_mean(s->reuse);

	if (!mean || now <= atime)
		return value;
	return hawk_fx_mul(value, hawk_fx_exp_neg(hawk_fx_ratio(now - atime, mean) /
						  HAWK_DECAY_TIMES));
}

/* What a block on flash is worth, Q32.32. */
u64 hawk_flash_worth(struct hawk_space *s, const struct hawk_block *blk, u64 now)
{
	return decayed(s, hawk_class_worth(s->reuse, hawk_class_of(s, blk), now), blk->atime, now);
}

static bool alone(const struct hawk_space *s, const struct hawk_block *blk, u64 parent_atime)
{
	u64 gap = hawk_load(&s->reuse->stay_ns) / HAWK_ALONE_SHARE;

	return blk->atime > parent_atime + (gap > HAWK_ALONE_MIN_NS ? gap : HAWK_ALONE_MIN_NS);
}

/*
 * Up to a quarter more, so that equals can be told apart: half of it by lot, the same for a
 * whole segment, half for those that have a parent on flash.
 */
static u64 tie(u64 score, u32 lot, bool fine)
{
	return score + hawk_fx_mul(score / 4, (lot >> 1) + (fine ? 1u << 31 : 0));
}

/* @worth: out, of a parent in host memory, with all that speaks for it */
static enum parent parent_of(struct hawk_space *s, const struct hawk_block *blk, u64 now,
			     u64 *worth)
{
	const struct hawk_block *p;
	struct hawk_ghost g;
	u32 nr, uses, class;
	u64 atime;

	if (!(blk->hint & HAWK_BH_PARENT))
		return blk->hint & HAWK_BH_ROOT ? PARENT_FINE : PARENT_UNKNOWN;
	g.uses = 0;
	nr = hawk_index_about(s, s->life[hawk_block_nr(s, blk)].parent, now, &g);
	if (nr == HAWK_NONE)
		return g.uses && !alone(s, blk, g.atime) ? PARENT_GONE : PARENT_UNKNOWN;
	/* its home is not locked: a racing look will do */
	p = &s->block[nr];
	if (hawk_load(&p->hint) & HAWK_BH_COPY || hawk_load(&p->state) == HAWK_BLOCK_EVICTING)
		return PARENT_FINE;
	atime = hawk_load(&p->atime);
	if (alone(s, blk, atime))
		return PARENT_UNKNOWN;
	uses = hawk_load(&p->uses);
	class = hawk_class(hawk_load(&p->hint), uses, hawk_load(&p->turn),
			   hawk_load(&s->life[nr].depth));
	if (hawk_class_worthless(s->reuse, class, now))
		return PARENT_GONE;	/* as good as */
	*worth = decayed(s, hawk_class_worth(s->reuse, class, now), atime, now);
	*worth = tie(*worth, hawk_load(&s->life[nr].lot), true);
	return PARENT_HOST;
}

/* ---- one tier's answer; its budget is locked ---- */

static bool formula_admits(struct hawk_space *s, const struct hawk_block *blk, u64 now)
{
	u64 stay = hawk_load(&s->reuse->stay_ns), since = s->life[hawk_block_nr(s, blk)].since;
	u64 residency = now > since ? now - since : 1, a;

	if (!stay || div_u64(residency, blk->uses ?: 1) <= stay)
		return false;
	a = hawk_fx_ratio(blk->uses * FORMULA_SCALE, residency);
	a = hawk_fx_mul(a, hawk_fx_exp_neg(hawk_fx_mul(hawk_fx_ratio(now - blk->atime, stay),
						       FORMULA_LAMBDA)));
	return a >= FORMULA_THRESHOLD;
}

static bool rule_admits(struct hawk_space *s, const struct hawk_block *blk, u32 mode,
			struct hawk_want *w)
{
	if (mode == HAWK_ADMIT_SECOND)
		return blk->uses >= 2;
	return mode != HAWK_ADMIT_FORMULA || formula_admits(s, blk, w->now);
}

/* Return: HAWK_WHY_ROOM or why not. */
static u32 tier_asked(struct hawk_space *s, const struct hawk_block *blk, struct hawk_tier *t,
		      enum parent parent, u64 parent_worth, struct hawk_want *w)
{
	struct hawk_budget *b = &t->budget;
	u64 price = b->threshold;

	if (t->admit != HAWK_ADMIT_REUSE) {
		if (!rule_admits(s, blk, t->admit, w))
			return HAWK_WHY_RULE;
		return b->bytes && !(hawk_budget_on_pace(b) &&
				     hawk_budget_fits(b, s->block_bytes)) ?
			HAWK_WHY_BUDGET : HAWK_WHY_ROOM;
	}
	if (parent == PARENT_GONE || (parent == PARENT_HOST && parent_worth < price))
		return HAWK_WHY_PARENT;
	if (w->score < price ||
	    hawk_class_worthless(s->reuse, hawk_class_of(s, blk), w->now))
		return HAWK_WHY_SCORE;
	return hawk_budget_fits(b, s->block_bytes) ? HAWK_WHY_ROOM : HAWK_WHY_BUDGET;
}

/* ---- what evict.c asks; the block's home is locked ---- */

/* Time that a budget is asked at: not before what it knows. */
static u64 time_of(const struct hawk_budget *b, u64 now)
{
	return now + b->tick_ns > b->next ? now : b->next - b->tick_ns;
}

/**
 * hawk_admit_ask() - may the block be written to flash?
 * @s: the space
 * @blk: READY, without a copy on flash
 * @w: @now in, 0: not told, which is the block's last use then; out: @score, @why the last
 *	tier refused
 *
 * Return: bit mask of flash tiers that take it.
 */
u32 hawk_admit_ask(struct hawk_space *s, struct hawk_block *blk, struct hawk_want *w)
{
	u32 t, tiers = hawk_flash_takes(s, w->now), admits = 0;
	enum parent parent;
	u64 worth = 0;

	if (!tiers) {
		w->why = HAWK_WHY_FAILED;
		return 0;
	}
	if (!hawk_learns(s))
		return tiers;
	w->now = w->now > blk->atime ? w->now : blk->atime;
#ifdef HAWK_COUNT_EVENTS
	if (hawk_admit_hook) {
		w->why = HAWK_WHY_RULE;
		return hawk_admit_hook(s, blk) ? tiers : 0;
	}
#endif
	parent = parent_of(s, blk, w->now, &worth);
	w->score = tie(hawk_flash_worth(s, blk, w->now), s->life[hawk_block_nr(s, blk)].lot, parent == PARENT_FINE);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_tier *tier = &s->engine->tier[t];
		u32 why;

		if (!(tiers & 1u << t))
			continue;
		hawk_lock(&tier->budget.lock);
		if (tier->budget.bytes) {
			w->now = time_of(&tier->budget, w->now);
			hawk_budget_advance(&tier->budget, w->now);
		}
		if (!tier->budget.bytes && tier->admit < HAWK_ADMIT_SECOND)
			why = HAWK_WHY_ROOM;
		else
			why = tier_asked(s, blk, tier, parent, worth, w);
		hawk_unlock(&tier->budget.lock);
		if (why == HAWK_WHY_ROOM)
			admits |= 1u << t;
		else
			w->why = why;
	}
	return admits;
}

/* Its write to @tier starts. */
void hawk_admit_written(struct hawk_space *s, u32 tier, const struct hawk_want *w)
{
	struct hawk_budget *b = &s->engine->tier[tier].budget;

	if (!hawk_load(&b->bytes))
		return;
	hawk_lock(&b->lock);
	hawk_budget_spend(b, s->block_bytes);
	hawk_budget_want(b, w->score, s->block_bytes, true);
	hawk_unlock(&b->lock);
}

/* Bytes that are written whether or not there is room: headers and records of a pool. */
void hawk_admit_charge(struct hawk_tier *t, u64 bytes)
{
	if (!hawk_load(&t->budget.bytes))
		return;
	hawk_lock(&t->budget.lock);
	hawk_budget_spend(&t->budget, bytes);
	hawk_unlock(&t->budget.lock);
}

/* Bytes that were not written after all. */
void hawk_admit_refund(struct hawk_tier *t, u64 bytes)
{
	if (!hawk_load(&t->budget.bytes))
		return;
	hawk_lock(&t->budget.lock);
	hawk_budget_refund(&t->budget, bytes);
	hawk_unlock(&t->budget.lock);
}

/* It is forgotten for @w->why. */
void hawk_admit_refused(struct hawk_space *s, struct hawk_block *blk,
			const struct hawk_want *w)
{
	u32 t, tiers = hawk_load(&s->flash_tiers);
	struct hawk_budget *b;

	hawk_bucket_of(s, blk)->count[HAWK_N_REFUSED + w->why - HAWK_WHY_SCORE]++;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		b = &s->engine->tier[t].budget;
		if (!(tiers & 1u << t) || !hawk_load(&b->bytes))
			continue;
		hawk_lock(&b->lock);
		hawk_budget_want(b, w->score, s->block_bytes, false);
		hawk_unlock(&b->lock);
	}
}

/* ---- the host's calls ---- */

static void learn_set(struct hawk_engine *e)
{
	bool learn = false;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		learn |= hawk_load(&e->tier[t].budget.bytes) ||
			 hawk_load(&e->tier[t].admit) >= HAWK_ADMIT_SECOND;
	hawk_store(&e->learn, learn);
}

static int flash_tier(struct hawk_engine *e, u32 tier)
{
	int ret = -ENOENT;

	if (tier >= HAWK_TIERS_MAX)
		return -ENOENT;
	hawk_lock(&e->tier[tier].lock);
	if (e->tier[tier].present)
		ret = e->tier[tier].kind == HAWK_TIER_BLK ? 0 : -EINVAL;
	hawk_unlock(&e->tier[tier].lock);
	return ret;
}

static void admit_tell(struct hawk_engine *e, struct hawk_tier_admit *arg)
{
	struct hawk_tier *t = &e->tier[arg->tier];
	struct hawk_budget *b = &t->budget;

	hawk_lock(&b->lock);
	arg->mode = t->admit;
	arg->rated_bytes = t->rated;
	arg->budget_bytes = b->bytes;
	arg->period_ns = b->period;
	arg->spent_bytes = b->spent;
	arg->credit_bytes = b->credit > 0 ? b->credit : 0;
	arg->threshold = b->threshold;
	hawk_unlock(&b->lock);
}

/* Three quarters of what the drive stands; the rest is kept for surges. */
static u64 rated_budget(u64 rated, u64 period)
{
	return hawk_fx_mul(rated / 4 * 3, hawk_fx_ratio(period, HAWK_DAY_NS));
}

int hawk_tier_admit(struct hawk_engine *e, struct hawk_tier_admit *arg, u64 now)
{
	struct hawk_tier *t;
	u64 period, bytes;
	int ret = flash_tier(e, arg->tier);

	if (ret)
		return ret;
	t = &e->tier[arg->tier];
	if (arg->flags & HAWK_ADMIT_SET) {
		period = arg->period_ns ?: HAWK_DAY_NS;
		if (arg->mode > HAWK_ADMIT_FORMULA || period > HAWK_ADMIT_PERIOD_MAX_NS ||
		    period < HAWK_BUDGET_TICKS)
			return -EINVAL;
		bytes = arg->budget_bytes ?: rated_budget(arg->rated_bytes, period);
		if (bytes > S64_MAX / 4)
			return -EINVAL;
		hawk_lock(&t->budget.lock);
		hawk_store(&t->admit, arg->mode);
		t->rated = arg->rated_bytes;
		hawk_budget_set(&t->budget, bytes, period, now);
		hawk_unlock(&t->budget.lock);
		learn_set(e);
	}
	admit_tell(e, arg);
	return 0;
}
