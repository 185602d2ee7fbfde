/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * reuse.h - what is learnt of blocks that left host memory: which kinds come back
 */
#ifndef HAWK_CORE_REUSE_H
#define HAWK_CORE_REUSE_H

#include "fixed.h"

/* A class is 11 bits: kind:2 | uses:2 | turn:4 | depth:3 */
#define HAWK_CLASS_DEPTH_BITS	3
#define HAWK_CLASS_TURN_BITS	4
#define HAWK_CLASS_BITS		11
#define HAWK_CLASSES		(1u << HAWK_CLASS_BITS)
/* Coarser ones, without depth, and without depth and turn, lie behind them. */
#define HAWK_CLASS_NO_DEPTH	HAWK_CLASSES
#define HAWK_CLASS_NO_TURN	(HAWK_CLASS_NO_DEPTH + (HAWK_CLASSES >> HAWK_CLASS_DEPTH_BITS))
#define HAWK_CLASS_ANY		(HAWK_CLASS_NO_TURN + 16)
#define HAWK_CLASS_COUNT	(HAWK_CLASS_ANY + 1)

#define HAWK_GHOST_WAYS		8	/* of a set; one cache line */
#define HAWK_USE_GAP_NS		(1ull << 27)	/* uses this close to another are one */

/* How many blocks of a class left host memory, and what became of them; see reuse.c */
struct hawk_rate {
	u64 at;			/* time of @out, ns */
	u32 used;		/* last use of those of the last case, HAWK_USE_GAP_NS */
	u32 cases;		/* in how many cases they left */
	u32 left;
	u32 out;		/* of these, how many may yet come back for the first time; 1/256 */
	u32 came;
	u32 more;		/* what those that came were worth when they left again, 1/256 */
};

/* Of a space with flash; no lock: a count that is lost now and then does no harm. */
struct hawk_reuse {
	struct hawk_rate rate[HAWK_CLASS_COUNT];
	u64 stay_ns;		/* time in host memory of those that leave it, mean */
	u64 away_ns;		/* time from the last use until they came back, mean */
	u32 ghost_mask;		/* sets - 1 */
	u64 *ghost;		/* keys of forgotten blocks; a set is guarded by its index shard */
};

/* What is remembered of a forgotten block. */
struct hawk_ghost {
	u64 atime;		/* last use, ns, to a quarter of a second */
	u32 class;
	u32 uses;
	u32 turn;
};

#endif /* HAWK_CORE_REUSE_H */
