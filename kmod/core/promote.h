/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * promote.h - blocks that were read from flash come to memory while nobody needs the drive
 */
#ifndef HAWK_CORE_PROMOTE_H
#define HAWK_CORE_PROMOTE_H

#include "core.h"

/**
 * hawk_space_phase() - HAWK_IOC_PHASE
 * @s: the space
 * @ph: in and out, see there; the host has checked reserved members
 * @now: monotonic time, ns
 *
 * Return: 0, or -EINVAL: @ph->until_ns is too far away, or given without a phase.
 */
int hawk_space_phase(struct hawk_space *s, struct hawk_phase *ph, u64 now);

/**
 * hawk_promote_due() - is there anything to promote now
 * @s: the space
 * @now: monotonic time, ns
 *
 * A hint, without a lock.
 * Return: whether hawk_promote_next() is worth a call.
 */
bool hawk_promote_due(const struct hawk_space *s, u64 now);

/**
 * hawk_promote_next() - the next blocks to bring to memory
 * @s: the space
 * @plan: where READ moves are added; room for a few: who needs a frame meanwhile may meet
 *	one of these, and waits no longer than they take
 * @now: monotonic time, ns
 *
 * For the host's background thread, while prefill runs.  A frame is taken that is free, or
 * that of a colder block with a good copy on flash, and never the last one of its bucket.
 * What finds none is given up.  The host may hand any of the moves back with -ECANCELED.
 * Return: moves added; 0: none is left, or prefill has ended; -EBUSY: deliveries wait for
 * flash, call again when they have ended.
 */
int hawk_promote_next(struct hawk_space *s, struct hawk_plan *plan, u64 now);

#endif /* HAWK_CORE_PROMOTE_H */
