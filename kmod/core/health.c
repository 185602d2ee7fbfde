// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * health.c - is a drive to be trusted with more blocks?
 *
 *	OK      -> FAILING  a write failed; HAWK_BAD_READS reads in a row did; or none of the
 *	                    transfers under way ends any more (the host tells)
 *	FAILING -> OK       a trial write came out well; after a stall in which none failed:
 *	                    any transfer did; or
 *	                    the operator opens the tier again (hawk_tier_leave())
 *	any     -> LOST     the host says that the drive is gone (hawk_tier_lost())
 *
 * A failing tier gets no chunk and no block, but one trial write after each pause, the first
 * a second long, each later one twice as long as the one before up to HAWK_PAUSE_MAX_NS.  A
 * drive that fails again soon after it came back goes on where it was, and a stall that lasts
 * is a trial that came to nothing: each would keep a block for as long.  What a failing tier
 * holds is read as ever: a block whose read fails is a miss from then on, the others are
 * served.  A lost one holds nothing that could be read.
 *
 * All is guarded by the tier's lock; state and end of the pause are read without it by those
 * who look for room with a bucket locked.  They may see them a moment late: then one block
 * more goes to the drive, or one less.
 */
#include "priv.h"

#define HAWK_BAD_READS		8
#define HAWK_PAUSE_MIN_NS	1000000000ull
#define HAWK_PAUSE_MAX_NS	64000000000ull

/* Runs while the tier is being made. */
void hawk_health_clear(struct hawk_health *h)
{
	hawk_store(&h->state, HAWK_HEALTH_OK);
	hawk_store(&h->bad_reads, 0);
	hawk_store(&h->retry_at, 0);
	h->pause = 0;
	h->changed = 0;
	h->stalled = false;
}

/* The pause until the next trial; the tier is locked. */
static void pause_begin(struct hawk_health *h, u64 now)
{
	bool again = h->pause && now - h->changed < 2 * h->pause;

	h->pause = again ? 2 * h->pause : HAWK_PAUSE_MIN_NS;
	if (h->pause > HAWK_PAUSE_MAX_NS)
		h->pause = HAWK_PAUSE_MAX_NS;
	h->changed = now;
	hawk_store(&h->retry_at, now + h->pause);
}

static enum hawk_health_change fails(struct hawk_health *h, enum hawk_fault fault, u64 now)
{
	if (fault == HAWK_FAULT_READ) {
		if (h->bad_reads < HAWK_BAD_READS)
			hawk_store(&h->bad_reads, h->bad_reads + 1);
		if (h->bad_reads < HAWK_BAD_READS)
			return HAWK_HEALTH_SAME;
	}
	if (h->state == HAWK_HEALTH_OK) {
		h->stalled = fault == HAWK_FAULT_STALL;
		pause_begin(h, now);
		hawk_store(&h->state, HAWK_HEALTH_FAILING);
		return HAWK_HEALTH_FAILS;
	}
	if (h->state != HAWK_HEALTH_FAILING || fault == HAWK_FAULT_READ)
		return HAWK_HEALTH_SAME;
	if (fault == HAWK_FAULT_WRITE)
		h->stalled = false;	/* it ends them, but not well */
	/* the trial came to nothing; those that were under way before it say nothing new */
	if (now - h->changed >= h->pause)
		pause_begin(h, now);
	return HAWK_HEALTH_SAME;
}

enum hawk_health_change hawk_tier_fault(struct hawk_engine *e, u32 tier, enum hawk_fault fault,
					u64 now)
{
	enum hawk_health_change ret = HAWK_HEALTH_SAME;
	struct hawk_tier *t;

	if (tier >= HAWK_TIERS_MAX)
		return ret;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	if (t->present && t->kind == HAWK_TIER_BLK)
		ret = fails(&t->health, fault, now);
	hawk_unlock(&t->lock);
	return ret;
}

enum hawk_health_change hawk_tier_works(struct hawk_engine *e, u32 tier, bool write, u64 now)
{
	enum hawk_health_change ret = HAWK_HEALTH_SAME;
	struct hawk_health *h;
	struct hawk_tier *t;

	if (tier >= HAWK_TIERS_MAX)
		return ret;
	t = &e->tier[tier];
	h = &t->health;
	if (hawk_load(&h->state) == HAWK_HEALTH_OK && !hawk_load(&h->bad_reads))
		return ret;
	hawk_lock(&t->lock);
	if (!write)
		hawk_store(&h->bad_reads, 0);
	if (h->state == HAWK_HEALTH_FAILING && (write || h->stalled)) {
		h->changed = now;
		hawk_store(&h->bad_reads, 0);
		hawk_store(&h->state, HAWK_HEALTH_OK);
		ret = HAWK_HEALTH_WORKS;
	}
	hawk_unlock(&t->lock);
	return ret;
}

u32 hawk_tier_health(struct hawk_engine *e, u32 tier)
{
	return tier < HAWK_TIERS_MAX ? hawk_load(&e->tier[tier].health.state) : HAWK_HEALTH_OK;
}

/* ---- those who look for room; a bucket may be locked ---- */

/* Is the pause of a failing tier over?  Who does not know the time tries nothing. */
bool hawk_health_trial(const struct hawk_health *h, u64 now)
{
	return hawk_load(&h->state) == HAWK_HEALTH_FAILING && now >= hawk_load(&h->retry_at);
}

/* A write to the tier starts: if that is the trial there is no other for a while. */
void hawk_health_wrote(struct hawk_health *h, u64 now)
{
	u64 old = hawk_load(&h->retry_at);

	if (hawk_health_trial(h, now))
		(void)hawk_cas64(&h->retry_at, old, now + HAWK_PAUSE_MIN_NS);
}
