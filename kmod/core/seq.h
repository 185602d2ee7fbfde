/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * seq.h - sequences: what hosts call (seq.c, seqrun.c, seqcompact.c)
 *
 * Errors are those told at &struct hawk_seq_op.
 */
#ifndef HAWK_CORE_SEQ_H
#define HAWK_CORE_SEQ_H

#include "core.h"

/** hawk_seq_makes() - does the operation make a sequence? */
bool hawk_seq_makes(const struct hawk_seq_op *op);

/** hawk_seq_leaves() - may it leave blocks that hold less than they could, or are pinned? */
bool hawk_seq_leaves(const struct hawk_seq_op *op);

/**
 * hawk_seq_resolve() - what HAWK_SEQ_LAST stands for
 * @op: the operation; its @seq and @src may be HAWK_SEQ_LAST
 * @last: the sequence of the operation before, or HAWK_SEQ_LAST: there is none
 */
void hawk_seq_resolve(struct hawk_seq_op *op, u32 last);

/**
 * hawk_seq_do() - carry out one operation on a sequence
 * @s: the space
 * @owner: who makes a sequence: the host's number of a file, for hawk_seq_end_owner();
 *	0: nobody's
 * @op: the operation; its out members and @op->status are set, @op->frames to 0; its
 *	@seq and @src name sequences, HAWK_SEQ_LAST has been resolved
 *
 * Takes time by the segments of the sequence and of those that share blocks with it.
 * LIDs that nobody sees any more are forgotten by hawk_seq_reap(), which the host
 * calls next.
 * Return: @op->status, of which hosts pass on all but -EAGAIN: there is no LID sequence
 * number, but some wait to be given back. Call hawk_seq_reap(), then this again, as long
 * as another thread is at it too (hawk_seq_reaping()); if pins that end all the time keep
 * it so, -ENOSPC is the answer after a few times.
 */
int hawk_seq_do(struct hawk_space *s, u64 owner, struct hawk_seq_op *op);

/**
 * hawk_seq_map() - what a sequence shows
 * @s: the space
 * @map: @seq and @count (room) in, all but @size, @flags, @segs out
 * @segs: room for @map->count segments
 *
 * Return: 0, -ENOENT, -EOPNOTSUPP (a space without sequences), -E2BIG.
 */
int hawk_seq_map(struct hawk_space *s, struct hawk_seq_map *map, struct hawk_seg *segs);

/**
 * hawk_seq_end_owner() - free the sequences of an owner, a few at a time
 * @s: the space
 * @owner: its number, not 0
 *
 * Return: true: call again, after hawk_seq_reap().
 */
bool hawk_seq_end_owner(struct hawk_space *s, u64 owner);

/**
 * hawk_seq_reap() - forget LIDs that no sequence shows
 * @s: the space
 * @budget: LIDs to look at, about
 * @freed: blocks given back are added to it
 *
 * One row of blocks is looked at even if it has more; a piece of which most LIDs cannot
 * exist takes one pass over the table of LIDs.  May sleep.
 * Return: true: there is more to do now.  Those that are pinned or leased are kept for
 * later: the host calls again when pins or leases have ended, see hawk_seq_due().
 */
bool hawk_seq_reap(struct hawk_space *s, u32 budget, u32 *freed);

/**
 * hawk_seq_dead() - are there LIDs that no sequence shows and nobody was seen to keep?
 * @s: the space
 *
 * Unlike hawk_seq_due() it does not become true again with each pin that ends anywhere in
 * the space: who waits for blocks to be given back goes on as long as it is.  Takes no lock.
 */
bool hawk_seq_dead(const struct hawk_space *s);

/**
 * hawk_seq_reaping() - is somebody in hawk_seq_reap() now?
 * @s: the space
 *
 * What he looks at is nobody else's to give back, and waits for nothing but him: who needs
 * it goes on waiting as long as this is so.  Takes no lock.
 */
bool hawk_seq_reaping(const struct hawk_space *s);

/** hawk_seq_due() - would hawk_seq_reap() find something?  Takes no lock. */
bool hawk_seq_due(const struct hawk_space *s);

/**
 * struct hawk_compact - a sequence is rewritten into full blocks
 * @seq: the sequence
 * @gen: its structure when the plan was made
 * @run: fresh run for the new blocks, from token 0 on
 * @rows: blocks of one layer and head group that are to be made there
 * @n: copies
 * @max: room at @src
 * @src: what is copied, one behind the other in the new run; &hawk_seg.tok is where it
 *	lies now
 */
struct hawk_compact {
	u32 seq;
	u32 gen;
	u32 run;
	u32 rows;
	u32 n;
	u32 max;
	struct hawk_seg *src;
};

/**
 * hawk_seq_compact_pick() - plan the compaction of a sequence that needs it
 * @s: the space
 * @c: @max and @src in, the plan out
 *
 * Candidates have more than 40 % of their blocks partly empty (akv.md), the last one
 * not counted; the last segment of a sequence stays where it is, and so does what other
 * sequences show too, unless they show all that this one does.  Looks at a bounded
 * number of sequences and goes on from there the next time.
 * Return: 0, to be followed by hawk_seq_compact_end(); -ENOENT: none found this time;
 * -ENOSPC: no run, or blocks that are nowhere else would be lost for it.
 */
int hawk_seq_compact_pick(struct hawk_space *s, struct hawk_compact *c);

/**
 * hawk_seq_compact_end() - the new blocks are READY under their LIDs, or are not wanted
 * @s: the space
 * @c: the plan
 * @ok: use them
 *
 * Return: 0: the sequence shows the new blocks; -ESTALE: it was changed in the meantime
 * other than by appending, or @ok is false: the new LIDs go with the next reap.
 */
int hawk_seq_compact_end(struct hawk_space *s, const struct hawk_compact *c, bool ok);

#endif /* HAWK_CORE_SEQ_H */
