// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * rows.c - how much may be gathered for the next group of layers
 *
 * While group g computes, the blocks for group g + 1 are fetched.  If that takes longer
 * the computation waits, so lists are cut to what comes in time.  Whole numbers only:
 * each block's time is rounded up and the number of blocks down.
 */
#include "gather.h"
#include "priv.h"

#define SHARE	1024	/* hawk_gather_load.share of all blocks */

/* Time of one block, nanoseconds, times SHARE. */
static u64 block_time(const struct hawk_gather_load *l)
{
	u64 sum = 0, slowest = 0, ns;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!l->mb_per_s[t])
			continue;
		ns = ((u64)l->block_bytes * 1000 + l->mb_per_s[t] - 1) / l->mb_per_s[t];
		slowest = ns > slowest ? ns : slowest;
		sum += ns * l->share[t];
	}
	return sum ? sum : slowest * SHARE;
}

u32 hawk_gather_rows(const struct hawk_gather_load *l)
{
	u64 each = block_time(l), time, blocks = HAWK_BATCH_MAX;

	if (!each || !l->group || l->compute_ns <= l->setup_ns)
		return 0;
	time = l->compute_ns - l->setup_ns;
	if (time < blocks * (each / SHARE + 1))	/* else it cannot be less */
		blocks = time * SHARE / each;
	if (blocks > HAWK_BATCH_MAX)
		blocks = HAWK_BATCH_MAX;
	return blocks / l->group;
}

u32 hawk_gather_cap(struct hawk_gather_key *k, u32 n, u32 max)
{
	u32 i, rank, sum, last = HAWK_NONE, count = 0;

	if (hawk_gather_union(k, n) <= max)
		return HAWK_NONE;
	/* by key and then by rank: a key's first entry is where it is named first */
	for (i = 0; i < n; i++) {
		if (k[i].at == last)
			continue;
		last = k[i].at;
		k[count++] = (struct hawk_gather_key) { .key = k[i].row };
	}
	hawk_gather_union(k, count);
	/* keys that are first named at each rank or before; the first rank that is too many */
	for (rank = HAWK_NONE, sum = 0, i = 0; i < count; i++) {
		rank = k[i].key;
		if (++sum > max)
			break;
	}
	return rank;
}
