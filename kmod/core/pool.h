/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * pool.h - flash tiers whose blocks outlive their device
 *
 * The host does the I/O: flashfmt.h says what is where.  What it has to do, and when:
 *
 *	the tier is added	read the superblocks, write both with the next sequence,
 *				hawk_pool_open(); read the records, hawk_pool_load() each
 *				or hawk_pool_unread(), hawk_pool_loaded()
 *	a space is made		for each persistent tier, one after the other, and each
 *				hawk_pool_next_orphan() read record and headers,
 *				hawk_space_adopt(), by any number of threads;
 *				hawk_space_settle()
 *	hawk_space_grow()	if hawk_grant_record() says so, that record is to be durable
 *				before hawk_space_grown()
 *	from time to time	if hawk_keep_lacks(): hawk_keep_ancestors(), carry its moves out;
 *				hawk_keep_collect(); flush; write what it gave
 *				before that, if hawk_pool_worn(): write both superblocks
 *				with the next sequence, hawk_pool_renew()
 *	a chunk is dirty	if hawk_pool_chunk_kept() write its record with @kept false,
 *				discard the chunk, hawk_tier_clean()
 *	a space ends		collect, flush and write once more, hawk_space_destroy()
 *	the tier goes		flush, write both superblocks as clean
 *
 * One thread at a time collects for a tier, and writes what it got before it or another one
 * collects again: what was collected earlier must not overwrite what was later.
 */
#ifndef HAWK_CORE_POOL_H
#define HAWK_CORE_POOL_H

#include "core.h"
#include "flashfmt.h"

/**
 * hawk_pool_open() - a flash tier is persistent from now on
 * @e: the engine
 * @tier: tier id; no space has a part in it yet
 * @s: superblock of its pool, with the sequence of this use; as many chunks as the tier
 * @now: present time, nanoseconds
 *
 * If @s has a rated endurance, three quarters of it are the tier's write budget until
 * hawk_tier_admit() sets another.
 *
 * May sleep; serialised by the host, as all of hawk_pool_load() and hawk_pool_loaded().
 * Return: 0; -ENOENT; -EINVAL (not a flash tier, or chunks differ); -ENOMEM.
 */
int hawk_pool_open(struct hawk_engine *e, u32 tier, const struct hawk_super *s, u64 now);

/**
 * hawk_pool_load() - what the record of a chunk says
 * @e: the engine
 * @tier: tier id
 * @r: the record; the chunk becomes an orphan if it is kept for a space
 *
 * Return: 0; -EINVAL: its epoch is of the future, or there is no such chunk: it is free.
 */
int hawk_pool_load(struct hawk_engine *e, u32 tier, const struct hawk_record *r);

/**
 * hawk_pool_unread() - records that cannot be read
 * @e: the engine
 * @tier: tier id
 * @first: chunk of the first one
 * @n: how many
 *
 * Their chunks are nobody's for now, and used when there is nothing else.
 */
void hawk_pool_unread(struct hawk_engine *e, u32 tier, u32 first, u32 n);

/** hawk_pool_worn() - does this use of the pool run out of numbers?  A hint. */
bool hawk_pool_worn(struct hawk_engine *e, u32 tier);

/**
 * hawk_pool_renew() - go on with the numbers of another use
 * @e: the engine
 * @tier: tier id
 * @s: superblock with the next sequence; it is durable
 */
void hawk_pool_renew(struct hawk_engine *e, u32 tier, const struct hawk_super *s);

/** hawk_pool_loaded() - all records have been told */
void hawk_pool_loaded(struct hawk_engine *e, u32 tier);

/** hawk_pool_slot_bytes() - smallest block that the tier keeps, bytes; 0: not persistent */
u32 hawk_pool_slot_bytes(struct hawk_engine *e, u32 tier);

/** hawk_pool_orphans() - chunks kept for spaces that are not there */
u32 hawk_pool_orphans(struct hawk_engine *e, u32 tier);

/**
 * hawk_pool_next_orphan() - a chunk that may be a space's
 * @s: the space
 * @tier: tier id
 * @after: chunk to go on behind, HAWK_NONE to start at 0
 *
 * Return: chunk number or HAWK_NONE.  hawk_space_adopt() knows whether it is.
 */
u32 hawk_pool_next_orphan(struct hawk_space *s, u32 tier, u32 after);

/**
 * hawk_space_adopt() - give an orphan back to its space, with its blocks
 * @s: the space, which nobody uses yet
 * @tier: tier id
 * @r: record of the chunk, as it is on flash now
 * @headers: the headers of its slots, as many as blocks fit into a chunk
 * @now: present time, nanoseconds
 *
 * Each whole header becomes a block on flash, under its key and a LID of sequence number 0:
 * layer and head group as before, tokens counted on from block to block.  Of two blocks with
 * one key the younger stays.
 *
 * Several threads may call it for one space, each with chunks of its own: what is found is the
 * same as if one had done it.  Which LIDs the blocks get, and which of them have a place if
 * there is not enough for all, is not.  So chunks of another tier wait for those of this one.
 *
 * Return: 0; -ENOENT: it is another space's, or has been given away; -ENOSPC: the quota is
 * reached, or it is needed for a minimum.
 */
int hawk_space_adopt(struct hawk_space *s, u32 tier, const struct hawk_record *r,
		     const u8 *headers, u64 now);

/**
 * hawk_space_settle() - tell what was found and is out of reach
 * @s: the space, when all its chunks have been adopted and before it is used
 *
 * A block whose parent is known by key and not there, or out of reach itself, is found by
 * nobody who goes along the chain.  It is the first one to be forgotten when room is needed,
 * and until then stays on flash: the parent may come back, with its pool, when its chunk can
 * be read again, or computed anew.  Time is linear in the blocks of the space.
 * May sleep.
 * Return: 0 or -ENOMEM: nothing was told.
 */
int hawk_space_settle(struct hawk_space *s);

/**
 * struct hawk_recovery - what hawk_space_adopt() and hawk_space_settle() found
 * @chunks: chunks adopted
 * @slots: slots looked at
 * @blocks: blocks that can be used again, those of @no_parent too
 * @corrupt: headers that are not whole or not of their slot
 * @stale: blocks of which a younger one has the key
 * @no_parent: blocks that are out of reach because a parent is missing: the first to go
 * @no_room: blocks dropped for want of a place in the space's tables
 */
struct hawk_recovery {
	u64 chunks;
	u64 slots;
	u64 blocks;
	u64 corrupt;
	u64 stale;
	u64 no_parent;
	u64 no_room;
};

/** hawk_space_recovery() - what was found when the space was made */
void hawk_space_recovery(const struct hawk_space *s, struct hawk_recovery *r);

/**
 * hawk_grant_record() - what has to be on flash before a chunk is used
 * @s: the space
 * @g: what hawk_space_grow() gave
 * @r: out, the record
 *
 * Return: whether @r is to be made durable before hawk_space_grown().
 */
bool hawk_grant_record(struct hawk_space *s, const struct hawk_grant *g, struct hawk_record *r);

/**
 * struct hawk_keep_page - a page of headers to be written
 * @off: where, bytes from the start of the pool
 * @nr: for hawk_keep_again()
 */
struct hawk_keep_page {
	u64 off;
	u32 nr;
};

/** hawk_pool_chunk_kept() - does the record of a chunk on flash name a space? */
bool hawk_pool_chunk_kept(struct hawk_engine *e, u32 tier, u32 chunk);

/** hawk_keep_due() - has a header changed since it was last collected?  A hint. */
bool hawk_keep_due(struct hawk_space *s, u32 tier);

/** hawk_keep_lacks() - is there work for hawk_keep_ancestors()?  A hint. */
bool hawk_keep_lacks(struct hawk_space *s);

/**
 * hawk_keep_ancestors() - have the blocks before those on flash written too
 * @s: the space
 * @cursor: how far this round is; 0 to begin
 * @now: present time, nanoseconds
 * @plan: receives the writes
 *
 * A hot prefix may never leave host memory, and nobody would find what follows it on flash
 * after a restart.  So the blocks before those that are kept are written as well, pinned or
 * not; they stay where they are.  What is refused for want of room or budget is tried again
 * in the next round.  Looks at a bounded number of blocks per call.
 *
 * Return: number of moves added, the round goes on; -ENOBUFS: as for alloc, the plan may have
 * moves; -ENOENT: the round is over, no move was added.
 */
int hawk_keep_ancestors(struct hawk_space *s, u32 *cursor, u64 now, struct hawk_plan *plan);

/**
 * hawk_keep_collect() - headers that have changed
 * @s: the space
 * @tier: tier id
 * @cursor: where to go on; 0 to begin
 * @buf: out, room for @max pages of HAWK_POOL_PAGE bytes
 * @page: out, @max of them, in the order of @buf
 * @max: pages
 *
 * They name payloads that have been written already: the host flushes them before it writes
 * the headers.
 * Return: pages; less than @max: there are no more.
 */
u32 hawk_keep_collect(struct hawk_space *s, u32 tier, u32 *cursor, u8 *buf,
		      struct hawk_keep_page *page, u32 max);

/** hawk_keep_again() - page @nr of hawk_keep_collect() could not be written */
void hawk_keep_again(struct hawk_space *s, u32 tier, u32 nr);

/** hawk_space_kept() - does the space keep blocks in this tier? */
bool hawk_space_kept(const struct hawk_space *s, u32 tier);

/** hawk_keep_forget() - when the space ends, nothing of it is kept */
void hawk_keep_forget(struct hawk_space *s);

#endif /* HAWK_CORE_POOL_H */
