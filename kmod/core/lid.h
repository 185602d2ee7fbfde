/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * lid.h - logical ids: fields, rounding, hashing
 */
#ifndef HAWK_CORE_LID_H
#define HAWK_CORE_LID_H

#include "port.h"
#include "../../uapi/hawk.h"

static inline u32 hawk_lid_seq(u64 lid)
{
	return lid >> HAWK_LID_SEQ_SHIFT;
}

static inline u32 hawk_lid_layer(u64 lid)
{
	return (lid >> HAWK_LID_LAYER_SHIFT) & HAWK_LID_LAYER_MAX;
}

static inline u32 hawk_lid_head(u64 lid)
{
	return (lid >> HAWK_LID_HEAD_SHIFT) & HAWK_LID_HEAD_MAX;
}

static inline u32 hawk_lid_tok(u64 lid)
{
	return (u32)lid;
}

/* Whether a space of @layers and @head_groups may have such a block. */
static inline bool hawk_lid_fits(u64 lid, u32 layers, u32 head_groups)
{
	return hawk_lid_seq(lid) && hawk_lid_layer(lid) < layers &&
	       hawk_lid_head(lid) < head_groups;
}

/*
 * May a space make such a block?  Rank @rank of @degree keeps an equal share of the head
 * groups, one behind the other; @degree 0: it keeps all.
 * Return: 0; -EINVAL: not of this geometry; -EREMOTE: another rank's.
 */
static inline int hawk_lid_check(u64 lid, u32 layers, u32 head_groups, u32 rank, u32 degree)
{
	if (!hawk_lid_fits(lid, layers, head_groups))
		return -EINVAL;
	if (degree && hawk_lid_head(lid) / (head_groups / degree) != rank)
		return -EREMOTE;
	return 0;
}

/* Whether @rank and @degree make sense for a space of @head_groups. */
static inline bool hawk_slice_fits(u32 rank, u32 degree, u32 head_groups)
{
	return degree ? rank < degree && !(head_groups % degree) : !rank;
}

/* The LID of the block that holds token tok of @lid. */
static inline u64 hawk_lid_block(u64 lid, u32 block_tokens)
{
	return lid - hawk_lid_tok(lid) % block_tokens;
}

/* Hints of an item that contradict each other, and @arg without a reason for it. */
static inline bool hawk_hints_ok(u32 flags, u64 arg)
{
	return !!(flags & HAWK_ITEM_PARENT) == !!arg &&
	       (flags & (HAWK_ITEM_PARENT | HAWK_ITEM_ROOT)) !=
		       (HAWK_ITEM_PARENT | HAWK_ITEM_ROOT) &&
	       (flags & (HAWK_ITEM_TRANSIENT | HAWK_ITEM_PERSIST)) !=
		       (HAWK_ITEM_TRANSIENT | HAWK_ITEM_PERSIST);
}

/* The full mixer (spec: a lone multiplication clusters on structured LIDs). */
static inline u64 hawk_mix(u64 x)
{
	x ^= x >> 33;
	x *= HAWK_MIX_A;
	x ^= x >> 33;
	x *= HAWK_MIX_B;
	x ^= x >> 33;
	return x;
}

/*
 * The PB-LRU bucket of a LID, 2^@log2_buckets of them: Fibonacci hashing, the
 * high bits of lid * 2^64/phi (unsigned: a signed shift would smear the sign).
 */
static inline u32 hawk_lid_bucket(u64 lid, u32 log2_buckets)
{
	if (!log2_buckets)
		return 0;
	return (lid * 11400714819323198485ull) >> (64 - log2_buckets);
}

#endif /* HAWK_CORE_LID_H */
