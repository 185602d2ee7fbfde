// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * stripe.c - which of a space's flash tiers takes the next block
 *
 * They take turns, so that blocks that leave host memory together can be read together from
 * all drives.  Shares are by the chunks that the space owns there or could own, so that all
 * are full at the same time, and blocks then grow equally old on all.  Equal shares are plain
 * turns.  As long as one of them has a chunk to give, those that have none have no turn.
 *
 * Turns are by stride scheduling: the tier with the least sum of strides is next, a stride
 * being the inverse of a share.  One that had no turn for long does not make up for that.
 * All is read and written without a lock: two who look at the same time may choose the same
 * tier.
 *
 * Tiers that fail (health.c) have no turn; if it is time for a trial, that is next.
 */
#include "priv.h"

#define HAWK_STRIDE	(1u << 28)

/* Bit per flash tier of the space that takes blocks at @now (0: not told). */
u32 hawk_flash_takes(const struct hawk_space *s, u64 now)
{
	u32 all = hawk_load(&s->flash_tiers), good = all, t;

	for (t = 0; all >> t; t++) {
		const struct hawk_tier *tier = &s->engine->tier[t];

		if (!(all & 1u << t))
			continue;
		if (hawk_load(&tier->lost) || (hawk_load(&tier->health.state) != HAWK_HEALTH_OK &&
					       !hawk_health_trial(&tier->health, now)))
			good &= ~(1u << t);
	}
	return good;
}

/* Those of @tiers that have chunks to give, or if there is none, all of them. */
static u32 with_room(struct hawk_space *s, u32 tiers)
{
	u32 t, room = 0;

	for (t = 0; tiers >> t; t++)
		if (tiers & 1u << t && hawk_window_has_room(s, t))
			room |= 1u << t;
	return room ? room : tiers;
}

/**
 * hawk_stripe_pick() - whose turn is it?
 * @s: the space
 * @tiers: bit per flash tier that takes the block, not 0
 * @now: present time, 0: not told
 *
 * Return: the tier; what it has is not looked at.
 */
u32 hawk_stripe_pick(struct hawk_space *s, u32 tiers, u64 now)
{
	u32 t, share, ahead, at = hawk_load(&s->stripe_at), best, best_share = 0, least = ~0u;

	best = __builtin_ctz(tiers);
	if (!(tiers & (tiers - 1)))
		return best;
	for (t = 0; tiers >> t; t++)
		if (tiers & 1u << t && hawk_health_trial(&s->engine->tier[t].health, now))
			return t;
	tiers = with_room(s, tiers);
	for (t = 0; tiers >> t; t++) {
		share = tiers & 1u << t ? hawk_window_reach(s, t) : 0;
		if (!share)
			continue;
		ahead = hawk_load(&s->stripe[t]) - at;
		if (ahead > HAWK_STRIDE)
			ahead = 0;	/* or rather behind */
		if (ahead >= least)
			continue;
		least = ahead;
		best = t;
		best_share = share;
	}
	if (best_share) {
		hawk_store(&s->stripe_at, at + least);
		share = HAWK_STRIDE / best_share;
		hawk_store(&s->stripe[best], at + least + (share ? share : 1));
	}
	return best;
}
