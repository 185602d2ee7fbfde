/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * elastic.h - elastic residency: structures (elastic.c)
 */
#ifndef HAWK_CORE_ELASTIC_H
#define HAWK_CORE_ELASTIC_H

#include "seq.h"

#define HAWK_AGE_BINS	64	/* of ages: two for each power of two from 2^20 ns on */

/*
 * @p, @alpha and how it changes are guarded by hawk_seqs.lock; the rest is the one
 * caller's of hawk_elastic_step(), which lets others read the last three.
 */
struct hawk_elastic_state {
	struct hawk_elastic_params p;
	struct hawk_elastic_params now;	/* of the walk: @p when it began with the sequence */
	u32 share;		/* likewise @alpha */
	u32 alpha;		/* in force; 16 bits behind the point, like all shares */
	u32 target;		/* what the formula said last */
	u32 step;		/* most that alpha changes at a time */
	u32 same;		/* changes in the same direction, one after the other */
	s8 dir;			/* of the last change */
	u8 cycle;		/* all sequences looked at, modulo 3 */
	bool act;		/* second pass over a sequence */
	bool walking;		/* @handle is being looked at */
	u32 seq;		/* index of the sequence, or where to go on */
	u32 handle;
	u32 tokens;		/* it shows */
	u32 at;			/* of these, that have been passed */
	/* first pass: rows, by a sample of one block each */
	u32 base;		/* of sinks and window */
	u32 resident;		/* others, in a host tier */
	u32 flash;		/* others, on flash only */
	u32 age[HAWK_AGE_BINS];	/* of those resident */
	/* second pass */
	u64 room;		/* blocks that fit into free frames, some left for others */
	u64 evict;		/* blocks to evict */
	u64 reload;		/* blocks to reload */
	u32 bin;		/* of the youngest that are evicted */
	u32 skip;		/* rows on flash to pass over, before those to reload */
	u64 evicted;
	u64 reloaded;
	u64 cycles;
};

void hawk_elastic_init(struct hawk_elastic_state *el);
void hawk_elastic_settle(struct hawk_elastic_state *el, u32 target);

#endif /* HAWK_CORE_ELASTIC_H */
