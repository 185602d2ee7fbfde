/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * gather.h - many rows are read at once, each block once (gather.c, rows.c)
 *
 * What core.h says of its functions holds for these.
 */
#ifndef HAWK_CORE_GATHER_H
#define HAWK_CORE_GATHER_H

#include "core.h"

#define HAWK_GATHER_TIER_SHIFT	56	/* of a place: tier above, byte offset below */

/**
 * struct hawk_gather_key - one row while rows are sorted
 * @key: what is sorted by
 * @row: the row's index
 * @at: hawk_gather_union(): number of @key among the different ones
 */
struct hawk_gather_key {
	u64 key;
	u32 row;
	u32 at;
};

/**
 * hawk_gather_union() - sort rows and number the different keys
 * @k: @n rows
 * @n: how many
 *
 * In place, by key and then by row.  At most n log2 n steps, whatever the keys are.
 * Return: number of different keys.
 */
u32 hawk_gather_union(struct hawk_gather_key *k, u32 n);

/**
 * hawk_gather_run() - entries that lie one behind the other: one transfer
 * @k: @n entries, sorted, keys all different
 * @at: the first
 * @n: entries of @k
 * @step: what one key is more than the one before it, if they are neighbours
 * @max: most entries of a transfer, 1 or more
 *
 * Return: how many from @at on, 1 or more.
 */
u32 hawk_gather_run(const struct hawk_gather_key *k, u32 at, u32 n, u32 step, u32 max);

/**
 * struct hawk_gather_block - one block of a gather
 * @read: where it lies
 * @lid: its LID, or one of them
 * @status: 0 or a negative errno, once @done
 * @same: the first of those with other LIDs that turned out to be this block, itself
 * @at: its place in the buffer, in blocks, HAWK_NONE: none
 * @done: @status is final; written with release
 */
struct hawk_gather_block {
	struct hawk_read read;
	u64 lid;
	s32 status;
	u32 same;
	u32 at;
	u32 done;
};

/**
 * struct hawk_gather_set - rows, the blocks that they name, and their order
 * @rows: rows
 * @room: blocks that the buffer has room for
 * @n: blocks that get a place in the buffer, by hawk_gather_open()
 * @lid: LID by row
 * @remap: out, place in the buffer by row, HAWK_NONE: none
 * @status: out, by row
 * @key: room for @rows; @n places in the order of the buffer: key is tier and byte
 *	offset, row is the index in @blk
 * @blk: room for @rows
 *
 * The host owns the arrays.
 */
struct hawk_gather_set {
	u32 rows;
	u32 room;
	u32 n;
	const u64 *lid;
	u32 *remap;
	s32 *status;
	struct hawk_gather_key *key;
	struct hawk_gather_block *blk;
};

/** hawk_gather_tier() - the tier of place @at of a gather */
static inline u32 hawk_gather_tier(const struct hawk_gather_set *g, u32 at)
{
	return g->key[at].key >> HAWK_GATHER_TIER_SHIFT;
}

/** hawk_gather_off() - byte offset of place @at of a gather in its tier */
static inline u64 hawk_gather_off(const struct hawk_gather_set *g, u32 at)
{
	return g->key[at].key & ((1ull << HAWK_GATHER_TIER_SHIFT) - 1);
}

/** hawk_gather_at() - the block at place @at of a gather */
static inline struct hawk_gather_block *hawk_gather_at(const struct hawk_gather_set *g, u32 at)
{
	return &g->blk[g->key[at].row];
}

/**
 * hawk_gather_open() - find the blocks of all rows and keep them for reading
 * @s: the space
 * @g: rows and memory; out: the order of the buffer
 * @now: present time, nanoseconds
 *
 * Each block once, whatever rows and LIDs name it, in the order of tier and byte
 * offset.  What has no place in the buffer is done: not there, in flight, or no room
 * (-ENOSPC).  Work grows as rows log2 rows. May sleep.
 */
void hawk_gather_open(struct hawk_space *s, struct hawk_gather_set *g, u64 now);

/**
 * hawk_gather_done() - the block at a place has been read, or will not be
 * @s: the space
 * @g: the gather
 * @at: place in the buffer; once for each
 * @status: 0 or a negative errno
 * @bad: see hawk_block_read_end()
 *
 * Several threads may end places at the same time.
 */
void hawk_gather_done(struct hawk_space *s, struct hawk_gather_set *g, u32 at, s32 status,
		      bool bad);

/**
 * hawk_gather_results() - remap and status of each row
 * @g: the gather, open
 * @undone: status of blocks that are not done
 * @busy: out: blocks that are not done
 *
 * A row whose status is neither 0 nor -EINPROGRESS has no place.
 * Return: number of rows with status 0.
 */
u32 hawk_gather_results(struct hawk_gather_set *g, s32 undone, u32 *busy);

/**
 * hawk_gather_row() - a row's status
 * @g: the gather; hawk_gather_results() has been called and nothing is under way
 * @row: number of the row, below what was asked for
 *
 * Return: 0 or a negative errno.
 */
static inline s32 hawk_gather_row(const struct hawk_gather_set *g, u32 row)
{
	return g->status[row] == -EINPROGRESS ? hawk_gather_at(g, g->remap[row])->status :
						g->status[row];
}

/* ---- how much may be gathered ahead (rows.c) ---- */

/**
 * struct hawk_gather_load - what fetching blocks for a group of layers takes
 * @block_bytes: bytes of a block
 * @group: layers of a group
 * @compute_ns: time in which the blocks of the next group must have come, nanoseconds
 * @setup_ns: of it what a gather takes whatever its size, nanoseconds
 * @mb_per_s: measured by tier, 10^6 bytes per second; 0: no block is there
 * @share: of 1024 blocks as many are in that tier; all 0: all in the slowest one
 */
struct hawk_gather_load {
	u32 block_bytes;
	u32 group;
	u64 compute_ns;
	u64 setup_ns;
	u32 mb_per_s[HAWK_TIERS_MAX];
	u32 share[HAWK_TIERS_MAX];
};

/**
 * hawk_gather_rows() - rows per layer that come while a group computes
 * @l: the load; tiers are taken to work one after the other
 *
 * Rounded down, and each time up: fetching so many blocks for each layer of a group
 * takes @l->compute_ns at most.
 * Return: rows, at most HAWK_BATCH_MAX / @l->group; 0: not one comes in time, or nothing
 * is known of any tier.
 */
u32 hawk_gather_rows(const struct hawk_gather_load *l);

/**
 * hawk_gather_cap() - how long may lists be, so that their union is no larger
 * @k: @n entries: key is what is named, row its place in its own list, from 0
 * @n: how many; they are sorted
 * @max: largest union wanted
 *
 * Return: length to which every list must be cut; HAWK_NONE: none must.
 */
u32 hawk_gather_cap(struct hawk_gather_key *k, u32 n, u32 max);

#endif /* HAWK_CORE_GATHER_H */
