// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * pacefirst.c - urgent deliveries have the drives first
 *
 * A drive makes what it has been asked for in its own order, so whoever is urgent waits
 * behind all that is under way.  Therefore:
 *
 *	lately somebody urgent read from	each other delivery has no more under way there
 *	this drive (FIRST_NS)			than keeps it busy: DEPTH_NS at its measured
 *						rate, but DEPTH_UNITS and DEPTH_BYTES at least
 *	somebody urgent has bytes to come	others begin a seventh of what has ended of
 *	from this drive				these, so that they do not starve
 *
 * Without anybody urgent nothing waits, and all is asked for at once; nor does it for reads that
 * have not come in FIRST_NS, after which a drive counts as stalled.  A delivery is urgent
 * if it says so, or from when on it would miss its deadline beside all others; it stays so.
 * All is guarded by hawk_pace.lock.
 */
#include "priv.h"

#define FIRST_NS	2000000000u
#define DEPTH_NS	10000000u
#define DEPTH_UNITS	32
#define DEPTH_BYTES	(4u << 20)
#define OTHERS		7		/* bytes of urgent ones for one of others */
#define SHARE_MAX	((u64)OTHERS << 24)	/* that others may save up, of theirs 16 MiB */

static u64 ns_for(u64 bytes, u64 rate)
{
	return rate && bytes ? hawk_fx_ratio(bytes, rate) : 0;
}

static bool late_beside_others(const struct hawk_pace *p, const struct hawk_delivery *d)
{
	u64 ns, now;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		ns = ns_for(d->open_tier[t], hawk_pace_tier_rate(p, t));
		if (check_mul_overflow(ns, (u64)p->active, &ns) ||
		    check_add_overflow(p->now, ns, &now) || now > d->load.deadline)
			return true;
	}
	return false;
}

/* hawk_first_look() - is @d urgent now? */
void hawk_first_look(struct hawk_pace *p, struct hawk_delivery *d)
{
	u32 t;

	hawk_assert_held(&p->lock);
	if (!d->ahead && !d->load.urgent && (!d->load.deadline || !late_beside_others(p, d)))
		return;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (d->left_tier[t])
			p->first_at[t] = p->now;
		p->first_tier[t] += d->ahead ? 0 : d->open_tier[t];
	}
	d->ahead = true;
}

/* hawk_first_less() - @bytes of @d will not be waited for any more; @ended: they have come */
void hawk_first_less(struct hawk_pace *p, const struct hawk_delivery *d, u32 tier, u64 bytes,
		     bool ended)
{
	hawk_assert_held(&p->lock);
	if (!d->ahead)
		return;
	p->first_tier[tier] -= bytes;
	if (ended)
		p->first_at[tier] = p->now;
	p->first_share[tier] += ended ? bytes : 0;
	if (p->first_share[tier] > SHARE_MAX)
		p->first_share[tier] = SHARE_MAX;
	if (!p->first_tier[tier])
		p->first_share[tier] = 0;
}

/* hawk_first_allowed() - bytes that @d may begin to read from a drive now */
u64 hawk_first_allowed(const struct hawk_pace *p, const struct hawk_delivery *d, u32 tier,
		       u64 unit)
{
	u64 out = d->open_tier[tier] - d->left_tier[tier], depth, share;

	hawk_assert_held(&p->lock);
	if (d->ahead || !p->first_at[tier] || p->now - p->first_at[tier] > FIRST_NS)
		return HAWK_FX_MAX;
	depth = hawk_fx_mul(hawk_pace_tier_rate(p, tier), DEPTH_NS);
	depth = depth > DEPTH_BYTES ? depth : DEPTH_BYTES;
	if (depth < unit * DEPTH_UNITS)
		depth = unit * DEPTH_UNITS;
	depth = depth > out ? depth - out : 0;
	if (!p->first_tier[tier])
		return depth;
	share = div_u64(p->first_share[tier], OTHERS);
	return share < depth ? share : depth;
}

/* hawk_first_took() - it has begun so much */
void hawk_first_took(struct hawk_pace *p, const struct hawk_delivery *d, u32 tier, u64 bytes)
{
	u64 share = bytes * OTHERS;

	hawk_assert_held(&p->lock);
	if (d->ahead || !p->first_tier[tier])
		return;
	p->first_share[tier] -= share < p->first_share[tier] ? share : p->first_share[tier];
}
