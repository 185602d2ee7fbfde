/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * health.h - is a drive to be trusted with more blocks?
 *
 * Hosts tell the engine how transfers of flash tiers end; what follows from that is told in
 * health.c.
 */
#ifndef HAWK_CORE_HEALTH_H
#define HAWK_CORE_HEALTH_H

#include "core.h"

enum hawk_fault {
	HAWK_FAULT_READ,	/* a block could not be read, or its bytes are not those written */
	HAWK_FAULT_WRITE,	/* a write of a block, a header or a record failed */
	HAWK_FAULT_STALL,	/* transfers are under way and none of them ends */
};

/* What has changed: the host logs it, once each. */
enum hawk_health_change {
	HAWK_HEALTH_SAME,
	HAWK_HEALTH_FAILS,	/* it takes no block any more */
	HAWK_HEALTH_WORKS,	/* and again it does */
};

/**
 * hawk_tier_fault() - a transfer has failed, or does not end
 * @e: the engine
 * @tier: tier id; one that is no flash tier has no health
 * @fault: which way
 * @now: present time, nanoseconds
 *
 * Return: whether the tier begins to fail with that.
 */
enum hawk_health_change hawk_tier_fault(struct hawk_engine *e, u32 tier, enum hawk_fault fault,
					u64 now);

/**
 * hawk_tier_works() - a transfer has ended well
 * @e: the engine
 * @tier: tier id
 * @write: it was a write
 * @now: present time, nanoseconds
 *
 * Costs a look at one line as long as the tier is healthy.
 * Return: whether the tier takes blocks again from now on.
 */
enum hawk_health_change hawk_tier_works(struct hawk_engine *e, u32 tier, bool write, u64 now);

/**
 * hawk_tier_health() - of a tier
 * @e: the engine
 * @tier: tier id
 *
 * Return: enum hawk_tier_health.
 */
u32 hawk_tier_health(struct hawk_engine *e, u32 tier);

#endif /* HAWK_CORE_HEALTH_H */
