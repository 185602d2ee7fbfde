/* SPDX-License-Identifier: MIT */
/*
 * tally.h - what happened in a run, so that one that never met the hard cases shows
 */
#ifndef HAWK_SIM_TALLY_H
#define HAWK_SIM_TALLY_H

#include "../../kmod/core/priv.h"

/*
 * Situations that a torture must meet: name, and what it means.  One that stays at 0
 * is reported, and refused with --expect-all.
 */
#define SIM_SITUATIONS(X)							\
	X(key_race, "put or alloc lost its key to another block")		\
	X(key_announced, "a look-up met a key that is being filled")		\
	X(filling_died, "a client died while it filled a block")		\
	X(pinned_died, "a client died with a block pinned")			\
	X(leased_died, "a client died with a lease")				\
	X(copying_died, "a client died while its private copy was made")	\
	X(repin_filling, "a second pin on a block that is being filled")	\
	X(lease_expired, "a lease ended by the clock")				\
	X(lease_late, "a lease was released after it had expired")		\
	X(lease_lost, "a leased block was lost")				\
	X(lease_kept, "a leased block could not be written and stayed")		\
	X(write_freed, "a block was freed while it was written")		\
	X(write_pinned, "a block was pinned while it was written")		\
	X(write_ahead, "a block was written ahead and stayed in memory")	\
	X(read_freed, "a block was freed while it was read")			\
	X(move_io, "a move failed")						\
	X(move_short, "a move stopped half-way")				\
	X(move_rot, "a block read back differed from its checksum")		\
	X(move_canceled, "a move was not tried")				\
	X(move_stuck, "a move took very long")					\
	X(drive_fails, "a drive began to fail")					\
	X(drive_works, "a failing drive took blocks again")			\
	X(drive_stalls, "a drive stalled")					\
	X(drive_trial, "a failing drive got a trial write")			\
	X(drives_differ, "a block went to a drive while another one failed")	\
	X(promoted, "a block that a gather had read went to memory")		\
	X(move_overtaken, "a move ended before an older one")			\
	X(rewritten, "a private block was made writable where it was")		\
	X(split, "a shared block was copied for a writer")			\
	X(unshare_busy, "a writer was refused: others use the block")		\
	X(free_busy, "a free was refused: the block is in use")			\
	X(alias_freed, "one of several LIDs of a block was freed")		\
	X(lid_lingers, "a LID was refused: its last block has a move in flight")	\
	X(vanished, "a block that nothing held was dropped")			\
	X(no_room, "no room in the tier")					\
	X(no_quota, "no room within the quota")					\
	X(no_block_slot, "all block slots in use")				\
	X(no_lid_slot, "all LID slots in use, and nothing to forget for them")	\
	X(vt_table, "a LID without room in the vTLB")				\
	X(vt_moved, "an optimistic reader saw its block move")			\
	X(vt_held, "an optimistic reader's bytes were good")			\
	X(space_created, "a space was created")					\
	X(space_minima, "a space was refused: the minima do not fit")		\
	X(space_lent, "a space was made though others had its minimum")		\
	X(space_repaid, "and they gave it back")				\
	X(space_unpaid, "and it was given up, as they did not")			\
	X(space_orphan, "and it was given up, as the tier left")		\
	X(space_nomem, "a space was refused: no memory for its tables")		\
	X(space_ended, "a space ended with blocks")				\
	X(progress, "there was room again when nothing was held any more")	\
	X(space_waited, "a space waited for its moves to end")			\
	X(chunk_cleaned, "a chunk was zeroed")					\
	X(chunk_reused, "a chunk went to another space")			\
	X(tier_added, "a tier was added")					\
	X(tier_removed, "a tier was removed")					\
	X(tier_busy, "the removal of a tier was refused")			\
	X(tier_stayed, "a tier that was being taken away stayed")		\
	X(space_leaving, "a space was refused: it wants a tier that leaves")	\
	X(space_left, "a space has no more part in a tier")			\
	X(grown, "a space grew by a chunk")					\
	X(grow_failed, "the host had no memory for a chunk")			\
	X(grow_nothing, "another had taken the chunk that a space wanted")	\
	X(starved, "a space had to evict though its quota had room")		\
	X(claimed, "a chunk was kept back for the space that starved")		\
	X(drained, "a chunk was taken from a living space")			\
	X(drained_flash, "of these on flash")					\
	X(drain_busy, "a chunk could not be emptied: its blocks are in use")	\
	X(drain_canceled, "a drain was given up")				\
	X(lease_dropped, "a leased block was dropped: its tier has to go")	\
	X(seq_cow, "a partly filled block was copied for a sequence")		\
	X(seq_forked, "a block of a sequence got a second LID")			\
	X(seq_reaped, "blocks went because no sequence saw them")		\
	X(seq_waits, "blocks that no sequence sees waited for the end of a pin")	\
	X(seq_nospace, "no room for one more sequence, segment or run")		\
	X(seq_died, "a sequence ended with its client")				\
	X(seq_dropped, "a block of a sequence was dropped")			\
	X(seq_elastic, "elastic residency moved blocks")			\
	X(gather_flash, "a gather read a block on flash")			\
	X(gather_evicting, "a gather read a block that was being written")	\
	X(gather_busy, "a gather met a block that is being filled or reloaded")	\
	X(gather_shared, "rows of a gather with different LIDs were one block")	\
	X(gather_merged, "a transfer of a gather had several blocks")		\
	X(gather_full, "the buffer of a gather was too small")			\
	X(gather_again, "a block of a failed transfer came when it was read again") \
	X(gather_bad, "a block on flash was lost because a gather could not read it") \
	X(gather_reloaded, "a block was reloaded while a gather read it on flash") \
	X(gather_ended, "a block ended while a gather read it on flash")	\
	X(gather_died, "a client died with a gather under way")		\
	X(gather_late, "a client gave up a gather under way")			\
	X(gather_seq, "a gather read a block of a sequence")			\
	X(gather_unseen, "a block that no sequence sees waited for a gather")

enum sim_situation {
#define X(name, text) SIT_##name,
	SIM_SITUATIONS(X)
#undef X
	SITUATIONS
};

/* The calls of core.h whose results are counted. */
#define SIM_CALLS(X)							\
	X(alloc) X(put) X(find) X(unlease) X(reload) X(pin) X(unpin)	\
	X(repin)							\
	X(fork) X(unshare) X(free) X(key_free) X(writeback) X(promote) X(complete)	\
	X(space_create) X(space_destroy) X(tier_add) X(tier_remove)	\
	X(clean) X(grow) X(grown) X(drain_start) X(drain) X(drain_finish)	\
	X(drain_cancel) X(leave) X(tier_leave) X(lacks)		\
	X(seq) X(gather)

enum sim_call {
#define X(name) CALL_##name,
	SIM_CALLS(X)
#undef X
	CALLS
};

#define TALLY_RESULTS	16	/* results that are told apart */

struct sim_tally {
	u64 events;
	u64 checks;
	u64 seeds;
	u64 situation[SITUATIONS];
	u64 call[CALLS][TALLY_RESULTS];
	u64 transition[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];
};

extern struct sim_tally tally;

#define SAW(name)	(tally.situation[SIT_##name]++)
#define CALLED(name, ret)	(tally.call[CALL_##name][tally_slot(ret)]++)

u32 tally_slot(int ret);
/* The engine counts transitions itself (HAWK_COUNT_EVENTS). */
void tally_take_transitions(void);
void tally_add(struct sim_tally *sum, const struct sim_tally *t);
/* Return: situations and legal transitions that were never met. */
u32 tally_missing(const struct sim_tally *t);
void tally_print(const struct sim_tally *t);

struct json_t;
struct json_t *tally_json(const struct sim_tally *t);

#endif /* HAWK_SIM_TALLY_H */
