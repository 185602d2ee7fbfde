/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * core.h - what the engine offers its hosts (hawk.ko and libhawk)
 *
 * The engine owns names, places and recency; it never touches the bytes of a
 * block, does no I/O and has no clock.  A call that needs bytes moved returns a
 * plan of moves; the host copies and hands each move back with its result.
 *
 * Unless told otherwise a function may be called from any thread, takes only the
 * spinning locks of README.md, does bounded work and does not sleep.  @now is
 * the host's monotonic time in nanoseconds.
 */
#ifndef HAWK_CORE_H
#define HAWK_CORE_H

#include "lid.h"

struct hawk_engine;
struct hawk_identity;
struct hawk_space;

/* ---- moves ---- */

enum hawk_move_kind {
	HAWK_MOVE_WRITE,	/* host frame -> flash frame (eviction) */
	HAWK_MOVE_READ,		/* flash frame -> host frame (reload) */
	HAWK_MOVE_COPY,		/* host frame -> host frame (unshare) */
};

/**
 * struct hawk_move - one block to be copied by the host
 * @space: space of the block
 * @src_off: byte offset of the source frame in its tier
 * @dst_off: byte offset of the destination frame in its tier
 * @block: engine's number of the block
 * @gen: its generation, checked on completion
 * @src_frame: source frame number
 * @dst_frame: destination frame number
 * @crc: CRC32C of the bytes: for WRITE set by the host before completion; for
 *	READ what the host must find (a difference is -EILSEQ)
 * @src_tier: source tier id
 * @dst_tier: destination tier id
 * @kind: enum hawk_move_kind
 * @flags: engine's
 * @result: set by the host: 0 or a negative errno
 */
struct hawk_move {
	struct hawk_space *space;
	u64 src_off;
	u64 dst_off;
	u32 block;
	u32 gen;
	u32 src_frame;
	u32 dst_frame;
	u32 crc;
	u8 src_tier;
	u8 dst_tier;
	u8 kind;
	u8 flags;
	s32 result;
};

/**
 * struct hawk_plan - moves to execute, room given by the host
 * @n: moves in the plan
 * @max: room
 * @move: array of @max moves
 * @caller: the host's, on whose behalf room is made; comes back in &struct hawk_note
 *
 * A call that finds the plan full returns -EAGAIN without a further move.
 */
struct hawk_plan {
	u32 n;
	u32 max;
	struct hawk_move *move;
	const void *caller;
};

/**
 * hawk_move_complete() - tell the engine that a move has ended
 * @m: the move, with @result (and @crc for WRITE) set
 *
 * Each move of a plan must be completed exactly once, whether it was tried or
 * not (-ECANCELED).  Afterwards waiters for the block should look again.
 *
 * After a COPY with a @result other than 0 the bytes of the new block are nothing: the
 * host drops the pin that hawk_block_unshare() gave, which ends the block and its LID.
 */
void hawk_move_complete(struct hawk_move *m);

/* ---- notes: what becomes of blocks when room is made ---- */

enum hawk_fate {
	HAWK_FATE_CLEAN,	/* gives its host frame up, is on flash already */
	HAWK_FATE_WRITE,	/* is written to flash and then gives its host frame up */
	HAWK_FATE_AHEAD,	/* is written to flash and stays in its host frame */
	HAWK_FATE_DROP,		/* in a host tier: is forgotten */
	HAWK_FATE_FLASH_DROP,	/* on flash only: is forgotten */
};

enum hawk_reason {
	HAWK_WHY_COPY,		/* flash has a good copy */
	HAWK_WHY_ROOM,		/* flash has room for it */
	HAWK_WHY_NO_FLASH,	/* the space has no flash tier */
	HAWK_WHY_FULL,		/* flash is full and nothing on it may be forgotten */
	HAWK_WHY_COLDER,	/* colder than the one that wants its place on flash */
	HAWK_WHY_SLOT,		/* a new block or LID wants its slot */
	HAWK_WHY_FAILED,	/* the write failed, or all flash tiers do (health.c) */
	HAWK_WHY_DRAIN,		/* its chunk is taken away and no other has room */
	/* it may not be written to flash: */
	HAWK_WHY_SCORE,		/* others are more likely to come back, and the budget is tight */
	HAWK_WHY_BUDGET,	/* what may be written now has been */
	HAWK_WHY_PARENT,	/* the block before it was forgotten, or would be */
	HAWK_WHY_RULE,		/* the rule that the host has chosen */
	HAWK_WHY_WARMER,	/* flash is full of blocks more likely to come back */
};

/**
 * struct hawk_note - one block and what becomes of it
 * @lid: one of its LIDs, 0 if it has none left
 * @atime: its last access, the host's time, nanoseconds
 * @caller: hawk_plan.caller of who wants room; NULL: no plan was given
 * @block: engine's number of the block
 * @gen: its generation
 * @fate: enum hawk_fate
 * @reason: enum hawk_reason
 * @state: its state until now, for hawk_state_name()
 * @tier: tier that it leaves, or stays in (%HAWK_FATE_AHEAD)
 * @to: flash tier that it is or will be on, HAWK_TIER_ANY: none
 */
struct hawk_note {
	u64 lid;
	u64 atime;
	const void *caller;
	u32 block;
	u32 gen;
	u32 fate;
	u32 reason;
	u32 state;
	u32 tier;
	u32 to;
};

/**
 * typedef hawk_note_fn - the host's, told of each note as it happens
 * @owner: of the space
 * @note: what became of which block
 *
 * @owner is that of the block's space. Runs with a lock of the engine held: it
 * must neither sleep nor call the engine.
 */
typedef void hawk_note_fn(void *owner, const struct hawk_note *note);

/* ---- engine and tiers ---- */

/**
 * hawk_engine_create() - make an empty engine
 * Return: the engine or NULL. May sleep.
 */
struct hawk_engine *hawk_engine_create(void);

/**
 * hawk_engine_destroy() - end it; all spaces are gone. May sleep.
 * @e: the engine
 */
void hawk_engine_destroy(struct hawk_engine *e);

/**
 * hawk_tier_add() - add a tier
 * @e: engine
 * @kind: enum hawk_tier_kind; blocks of a BLK tier have to be reloaded before use,
 *	the others are host tiers
 * @chunks: capacity in chunks of HAWK_CHUNK_BYTES, at least 1
 * @tier: out, its id
 *
 * All chunks are taken to be zeroed. May sleep; the host serialises tier and
 * space creation and removal.
 * Return: 0, -EINVAL, -ENOSPC (no free id), -ENOMEM.
 */
int hawk_tier_add(struct hawk_engine *e, u32 kind, u32 chunks, u32 *tier);

/**
 * hawk_tier_remove() - remove a tier
 * @e: the engine
 * @tier: tier id
 *
 * Return: 0, -ENOENT, -EBUSY (a space owns or may own chunks, or chunks wait to
 * be cleaned). May sleep; serialised by the host.
 */
int hawk_tier_remove(struct hawk_engine *e, u32 tier);

/**
 * hawk_tier_usage() - chunks of a tier by state
 * @e: the engine
 * @tier: tier id
 * @total: out, chunks of the tier, or NULL
 * @free: out, of these without owner and clean, or NULL
 * @dirty: out, of these that wait to be cleaned, or NULL
 *
 * Return: 0 or -ENOENT.
 */
int hawk_tier_usage(struct hawk_engine *e, u32 tier, u32 *total, u32 *free, u32 *dirty);

/**
 * hawk_tier_minima() - how much of a tier its spaces are sure of
 * @e: the engine
 * @tier: tier id
 *
 * Return: the sum of their minima, chunks; 0 if there is no such tier.
 */
u32 hawk_tier_minima(struct hawk_engine *e, u32 tier);

/**
 * hawk_tier_next_dirty() - a chunk that left its owner and must be cleaned
 * @e: the engine
 * @tier: tier id
 * @after: chunk to start behind, HAWK_NONE to start at 0
 *
 * The host zeroes it (once nobody else holds its pages) and calls
 * hawk_tier_clean().  One caller at a time per tier.
 * Return: chunk number or HAWK_NONE.
 */
u32 hawk_tier_next_dirty(struct hawk_engine *e, u32 tier, u32 after);

/** hawk_tier_clean() - chunk is zeroed and may be owned again */
void hawk_tier_clean(struct hawk_engine *e, u32 tier, u32 chunk);

/**
 * hawk_tier_admit() - what HAWK_IOC_TIER_ADMIT does: set if that is wanted, tell
 * @e: the engine
 * @arg: as &struct hawk_tier_admit says
 * @now: present time, nanoseconds
 *
 * Who may set is for the host to know.
 * Return: 0; -ENOENT; -EINVAL.
 */
int hawk_tier_admit(struct hawk_engine *e, struct hawk_tier_admit *arg, u64 now);

/**
 * hawk_tier_leave() - no space gets a chunk of it any more, or again
 * @e: the engine
 * @tier: tier id
 * @leaving: true: takes no more; false: it stays after all
 *
 * The host drains the spaces that own chunks there, ends their part in the tier
 * (hawk_space_leave()) and then removes it.
 * Return: 0 or -ENOENT.
 */
int hawk_tier_leave(struct hawk_engine *e, u32 tier, bool leaving);

/**
 * hawk_tier_lost() - the memory of a tier is gone: no block comes there any more
 * @e: the engine
 * @tier: tier id
 *
 * Blocks in its frames stay until the host drains the spaces; it is to do so, and to
 * remove the tier.  A reload into it that is in flight has nowhere to go: it is ended
 * with -ECANCELED, so that the block stays on flash.
 */
void hawk_tier_lost(struct hawk_engine *e, u32 tier);

/* ---- spaces ---- */

/**
 * struct hawk_space_params - see &struct hawk_space_create
 * @block_bytes: bytes of a block
 * @block_tokens: tokens of a block
 * @max_blocks: blocks at one time
 * @buckets: PB-LRU buckets, a power of two 1..512; 0: 64
 * @quota_min: chunks per tier kept for the space
 * @quota_max: chunks per tier it may own
 * @layers: layers of the model; for sequences
 * @head_groups: head groups; likewise
 * @tp_rank: of these it keeps the equal share of this rank; likewise
 * @tp_degree: of so many ranks, 0: it keeps all
 * @seqs: sequences at one time, 0: none
 * @segs: segments of all of them, 0: eight times @seqs
 * @shift: keys may be read shifted
 * @insist: its minima are kept back although others have the chunks, above their own;
 *	the host takes them back: hawk_space_lacks()
 * @vtlb: memory of hawk_vtlb_bytes(@max_blocks), zeroed, line-aligned (64); the
 *	host owns it, maps it to clients and frees it after destroy
 * @identity: blocks in persistent tiers are kept for whoever has it (pool.h), NULL: not
 * @note: told what becomes of the space's blocks, or NULL
 * @due: told that a header has changed and none had since the last hawk_keep_collect(), or
 *	NULL; a bucket may be locked
 * @owner: the host's, given to @note and @due
 */
struct hawk_space_params {
	u32 block_bytes;
	u32 block_tokens;
	u32 max_blocks;
	u32 buckets;
	u32 quota_min[HAWK_TIERS_MAX];
	u32 quota_max[HAWK_TIERS_MAX];
	u32 layers;
	u32 head_groups;
	u32 tp_rank;
	u32 tp_degree;
	u32 seqs;
	u32 segs;
	bool shift;
	bool insist;
	struct hawk_vtlb_entry *vtlb;
	const struct hawk_identity *identity;
	hawk_note_fn *note;
	void (*due)(void *owner);
	void *owner;
};

/** hawk_vtlb_bytes() - bytes of the vTLB of a space of @max_blocks blocks */
u64 hawk_vtlb_bytes(u32 max_blocks);

/** hawk_chunks() - whole chunks in @bytes, saturating at 2^31 - 1 */
u32 hawk_chunks(u64 bytes);

/**
 * hawk_space_create() - make a space
 * @e: the engine
 * @p: geometry and quotas
 * @space: out, the space
 *
 * Return: 0; -EINVAL (parameters; blocks smaller than the slots of a persistent tier that
 * they are kept in); -ENOENT (quota for a tier that is not there or is leaving); -ENOSPC (a
 * minimum and those of all other spaces are more than the tier has); -EAGAIN (they are not,
 * but chunks have to be cleaned or taken from others first; not with @p->insist); -ENOMEM.
 * May sleep; serialised by the host.
 */
int hawk_space_create(struct hawk_engine *e, const struct hawk_space_params *p,
		      struct hawk_space **space);

/**
 * hawk_space_lacks() - chunks that are missing until the minimum of a new space is free
 * @s: the space, made with &struct hawk_space_params.insist; nobody uses it yet
 * @tier: tier id
 *
 * While this is more than 0 the host cleans what is dirty, gives up all claims
 * (hawk_space_unclaim()) and takes chunks from spaces with hawk_space_excess() of at
 * least 1 (hawk_space_drain_pick() and so on, with no claim), of which nobody above its
 * minimum gets one.  If none has one to give the host ends the space.  One such space at
 * a time: who insists is told what all of them lack.
 *
 * Return: the number; 0: the minimum can be had from now on, as any other's; -ENOENT: the
 * tier leaves, is lost, or the space has left it.
 */
int hawk_space_lacks(struct hawk_space *s, u32 tier);

/**
 * hawk_space_destroy() - end a space
 * @s: the space
 *
 * Nobody else uses it and no move of it is in flight.  Its chunks become dirty
 * (hawk_tier_next_dirty()). May sleep; serialised by the host.
 */
void hawk_space_destroy(struct hawk_space *s);

/** hawk_space_quota() - chunks of tier @tier that the space owns, and may own */
void hawk_space_quota(const struct hawk_space *s, u32 tier, u32 *owned, u32 *max);

/** hawk_space_frames() - frames of tier @tier that the space may ever own */
u32 hawk_space_frames(const struct hawk_space *s, u32 tier);

/**
 * hawk_frame_off() - where a frame lies
 * @s: the space
 * @tier: tier id
 * @frame: frame number in the space
 * Return: byte offset in the tier, or ~0ull if the space owns no such frame.
 */
u64 hawk_frame_off(struct hawk_space *s, u32 tier, u32 frame);

/** hawk_space_buckets() - number of buckets in force */
u32 hawk_space_buckets(const struct hawk_space *s);

/* ---- a space grows (grow.c) ---- */

/**
 * struct hawk_grant - a chunk on its way to a space
 * @tier: tier id
 * @slot: its place in the space: frames from @slot * frames per chunk on
 * @chunk: its number in the tier
 * @home: engine's
 */
struct hawk_grant {
	u32 tier;
	u32 slot;
	u32 chunk;
	u32 home;
};

/**
 * hawk_space_grow() - one more chunk, after a call has returned -ENOBUFS
 * @s: the space
 * @g: out; the chunk is the space's but not yet in use
 *
 * The host provides its memory, may sleep for that, and calls hawk_space_grown().
 * Several threads may grow a space at the same time.
 * Return: 0; -ENOENT: nothing to grow any more, call again what returned -ENOBUFS.
 */
int hawk_space_grow(struct hawk_space *s, struct hawk_grant *g);

/**
 * hawk_space_grown() - the memory of a grant is there, or is not to be had
 * @s: the space
 * @g: what hawk_space_grow() gave
 * @ok: use it; false: the chunk goes back and the space is stuck in this tier: it
 *	evicts instead of growing until hawk_space_unstick()
 */
void hawk_space_grown(struct hawk_space *s, const struct hawk_grant *g, bool ok);

/** hawk_space_unstick() - try to grow again where the host had no memory */
void hawk_space_unstick(struct hawk_space *s);

/* ---- a space shrinks (drain.c, grow.c) ---- */

/**
 * hawk_space_excess() - chunks above its minimum, kept back ones (@claim) included
 * @s: the space
 * @tier: tier id
 *
 * Return: less than 0 below the minimum.
 */
s64 hawk_space_excess(struct hawk_space *s, u32 tier);

/**
 * hawk_space_starved() - test and clear: was it kept from growing by others?
 * @s: the space
 * @tier: tier id
 *
 * True if it had to evict although its quota has not been reached, because the tier
 * had no free chunk.
 *
 * The host then takes a chunk from the space with the largest excess, if that is at
 * least 2 more than the excess of this one, and more than 0: a minimum is its owner's.
 */
bool hawk_space_starved(struct hawk_space *s, u32 tier);

/**
 * hawk_space_wants() - would it own one more chunk if there was one?
 * @s: the space
 * @tier: tier id
 *
 * For a host that found no room, whoever has asked hawk_space_starved() meanwhile.
 * Return: true: it has a part in the tier, below its quota, and is not stuck; a chunk
 * that is kept back for it counts as one that it has.
 */
bool hawk_space_wants(struct hawk_space *s, u32 tier);

/** hawk_space_unclaim() - give up chunks kept back by hawk_space_drain_finish() */
void hawk_space_unclaim(struct hawk_space *s, u32 tier);

/**
 * hawk_space_drain_pick() - the owned chunk whose loss costs least
 * @s: the space
 * @tier: tier id
 * @now: present time, nanoseconds
 *
 * Free frames cost nothing, cold and clean blocks little, dirty, warm or leased ones
 * more; a chunk with leased blocks that have nowhere to go is the last choice.  Looks at
 * a part of a large space per call and goes on from there the next time. May sleep.
 * Return: its slot, or HAWK_NONE: every chunk has pinned frames, or none is owned.
 */
u32 hawk_space_drain_pick(struct hawk_space *s, u32 tier, u64 now);

/**
 * hawk_space_drain_start() - begin to empty a chunk
 * @s: the space
 * @tier: tier id
 * @slot: its slot
 *
 * One at a time per space and tier, serialised by the host, until
 * hawk_space_drain_finish() or hawk_space_drain_cancel().  Others go on using the
 * space; a frame given up stays unused from now on.
 * Return: 0; -ENOENT (no chunk there); -EBUSY (another drain is under way).
 */
int hawk_space_drain_start(struct hawk_space *s, u32 tier, u32 slot);

#define HAWK_DRAIN_DROP	1	/* drop leased blocks too, rather than be busy */

/**
 * hawk_space_drain() - empty the chunk as far as it goes
 * @s: the space
 * @tier: tier id
 * @flags: HAWK_DRAIN_*
 * @now: present time, nanoseconds
 * @plan: receives moves: writes of dirty blocks, reloads of blocks on flash
 * @busy: out: frames that are pinned or FILLING, leased with nowhere to go, or read by
 *	a gather
 *
 * A resident block goes to flash; if that has no room it is dropped.  A block on
 * flash is reloaded into a free host frame; if there is none it is dropped.
 * Return: 0: no frame of the chunk is in use, finish may be called; -EAGAIN: execute
 * the plan, or if it got no move wait for moves and gathers in flight, then call again:
 * if none is and @busy is not 0, somebody has not begun to read yet, and may not for long;
 * -EBUSY: nothing to do or to wait for but @busy; -ENOBUFS: as for alloc; -ENOENT: no drain.
 */
int hawk_space_drain(struct hawk_space *s, u32 tier, u32 flags, u64 now, struct hawk_plan *plan,
		     u32 *busy);

/** hawk_space_drain_cancel() - the frames may be used again; without a drain: nothing */
void hawk_space_drain_cancel(struct hawk_space *s, u32 tier);

/**
 * hawk_space_drain_finish() - take the empty chunk away; hawk_space_drain() gave 0
 * @s: the space
 * @tier: tier id
 * @claim: keep a chunk back for this space until it grows, or NULL; not if @s falls
 *	below its own minimum
 *
 * The chunk is dirty now (hawk_tier_next_dirty()).
 * Return: its number.
 */
u32 hawk_space_drain_finish(struct hawk_space *s, u32 tier, struct hawk_space *claim);

/**
 * hawk_space_leave() - end the space's part in a tier where it owns no chunk
 * @s: the space
 * @tier: tier id
 *
 * Its quota there is 0 from now on.  Without a host tier left alloc gives -ENOSPC.
 * Serialised by the host per space.
 * Return: 0 (also if it had no part); -EBUSY: it owns chunks, or is growing.
 */
int hawk_space_leave(struct hawk_space *s, u32 tier);

/* ---- blocks; LIDs may name any token of the block ---- */

/**
 * hawk_block_alloc() - a new block, FILLING, pinned once
 * @s: the space
 * @lid: its LID, free
 * @key: announced key or NULL; LOOKUP of others says -EAGAIN until put
 * @tier: host tier to prefer or HAWK_TIER_ANY
 * @now: present time, nanoseconds
 * @plan: receives the evictions needed to make room; NULL: start no write (without flash
 *	the coldest block is forgotten, plan or not)
 * @vt: out, its translation
 *
 * Return: 0; -EINVAL (LID); -EEXIST (LID, or key); -EAGAIN (execute the plan, or
 * if it got no move wait for moves in flight or for chunks on their way, then call
 * again); -ENOBUFS (the space may have one more chunk: hawk_space_grow(), then call
 * again); -ENOSPC (nothing may be evicted); -EDQUOT (the same, at the quota).
 */
int hawk_block_alloc(struct hawk_space *s, u64 lid, const u8 *key, u32 tier, u64 now,
		     struct hawk_plan *plan, u64 *vt);

/**
 * hawk_block_put() - FILLING -> READY
 * @s: the space
 * @lid: its LID
 * @key: key or NULL; must equal an announced one
 * @keep_pin: do not drop the pin of alloc
 * @now: present time, nanoseconds
 *
 * Return: 0; -ENOENT; -EINVAL (not FILLING, or another key was announced);
 * -EEXIST (another block has the key: READY without key, pin handled as told).
 */
int hawk_block_put(struct hawk_space *s, u64 lid, const u8 *key, bool keep_pin, u64 now);

/**
 * hawk_block_hint() - what its maker knows of a block, for admission to flash
 * @s: the space
 * @lid: its LID
 * @hints: HAWK_ITEM_PARENT to HAWK_ITEM_TURN(), checked by the host; 0: leave as it is
 * @parent: with HAWK_ITEM_PARENT: key of the block that holds the tokens before
 *
 * Between hawk_block_alloc() and hawk_block_put(), by who fills it; replaces what was told
 * before.
 * Return: 0; -ENOENT; -EINVAL (not FILLING).
 */
int hawk_block_hint(struct hawk_space *s, u64 lid, u32 hints, const u8 *parent);

/**
 * struct hawk_ref - names one life of a block, for pins and leases
 * @block: number of the block in its space
 * @gen: generation: which life of that number
 */
struct hawk_ref {
	u32 block;
	u32 gen;
};

/**
 * hawk_block_find() - by key
 * @s: the space
 * @key: its key
 * @lease: take a lease (a reference that keeps the block from being dropped)
 * @now: present time, nanoseconds
 * @lid: out, a LID of the block
 * @vt: out, its translation
 * @ref: out, needed to end the lease
 *
 * Return: 0, -ENOENT, -EAGAIN (announced or being replaced, ask again).
 */
int hawk_block_find(struct hawk_space *s, const u8 *key, bool lease, u64 now,
		    u64 *lid, u64 *vt, struct hawk_ref *ref);

/** hawk_block_unlease() - end a lease taken by hawk_block_find() */
void hawk_block_unlease(struct hawk_space *s, struct hawk_ref ref);

/**
 * hawk_block_pin() - keep it where it is, in a host tier
 * @s: the space
 * @lid: a LID of the block
 * @now: present time, nanoseconds
 * @vt: out, its translation
 * @ref: out, for hawk_block_unpin()
 *
 * Return: 0, -ENOENT, -EAGAIN (not in a host tier: reload first; or in flight),
 * -EOVERFLOW (it has as many pins as can be counted).
 */
int hawk_block_pin(struct hawk_space *s, u64 lid, u64 now, u64 *vt, struct hawk_ref *ref);

/**
 * hawk_block_repin() - one more pin on a block that the caller has pinned
 * @s: the space
 * @ref: the block, as hawk_block_pin() gave it
 *
 * Also while it is FILLING.
 * Return: 0; -ESTALE (no such life, or not pinned); -EOVERFLOW.
 */
int hawk_block_repin(struct hawk_space *s, struct hawk_ref ref);

/**
 * hawk_block_unpin() - drop one pin
 * @s: the space
 * @ref: the block, as hawk_block_pin() gave it
 *
 * The last pin of a FILLING block ends it (its owner died or gave up).
 * Return: 0 or -ESTALE (no such life, or not pinned).
 */
int hawk_block_unpin(struct hawk_space *s, struct hawk_ref ref);

/** hawk_block_ref() - the present block of a LID: 0 or -ENOENT */
int hawk_block_ref(struct hawk_space *s, u64 lid, u64 *vt, struct hawk_ref *ref);

/**
 * hawk_block_at() - the block that lies at a translation
 * @s: the space
 * @vt: what a call said of the block; a pin keeps it true
 * @ref: out, the block
 *
 * Return: 0 or -ESTALE (another block or none lies there by now).
 */
int hawk_block_at(struct hawk_space *s, u64 vt, struct hawk_ref *ref);

/* hawk_block_in() - likewise, whichever block lies in a frame; @vt: out, its translation */
int hawk_block_in(struct hawk_space *s, u32 tier, u32 frame, u64 *vt, struct hawk_ref *ref);

/**
 * struct hawk_read - a block that is being read where it lies
 * @ref: the block
 * @vt: its translation: tier and frame
 * @off: byte offset of the frame in its tier
 * @crc: CRC32C that the bytes must have, if @flash
 * @flash: it is on flash only; else it is pinned in a host tier
 */
struct hawk_read {
	struct hawk_ref ref;
	u64 vt;
	u64 off;
	u32 crc;
	bool flash;
};

/**
 * hawk_block_read() - keep a block where it is, in any tier, while it is read
 * @s: the space
 * @lid: a LID of the block
 * @now: present time, nanoseconds
 * @r: out, for hawk_block_read_end()
 *
 * No block moves and no frame is taken for it.  On flash it keeps its frame until then
 * whatever becomes of it; it may be reloaded meanwhile, but not be forgotten or freed.
 *
 * Return: 0; -ENOENT; -EAGAIN (FILLING, or being reloaded); -EOVERFLOW (it has as many
 * pins or readers as can be counted).
 */
int hawk_block_read(struct hawk_space *s, u64 lid, u64 now, struct hawk_read *r);

/**
 * hawk_block_read_end() - it has been read, or will not be
 * @s: the space
 * @r: as hawk_block_read() gave it; exactly once
 * @bad: its bytes on flash could not be read or are not those with @r->crc: unless it
 *	has been reloaded meanwhile it is a miss from now on
 *
 * Afterwards waiters for moves of the space should look again.
 */
void hawk_block_read_end(struct hawk_space *s, const struct hawk_read *r, bool bad);

/**
 * hawk_block_reload() - bring it into a host tier
 * @s: the space
 * @lid: a LID of the block
 * @tier: host tier to prefer or HAWK_TIER_ANY
 * @now: present time, nanoseconds
 * @plan: receives the moves to execute
 *
 * Return: 0 (it is there); -EINPROGRESS (a READ was added to @plan, or one is
 * already in flight); -EAGAIN, -ENOBUFS (as for alloc); -ENOENT; -ENOSPC; -EDQUOT.
 */
int hawk_block_reload(struct hawk_space *s, u64 lid, u32 tier, u64 now, struct hawk_plan *plan);

/**
 * hawk_block_fork() - @new_lid becomes another LID of @lid's block
 * @s: the space
 * @lid: a LID of the block
 * @new_lid: its further LID, free
 *
 * Return: 0, -ENOENT, -EEXIST, -EINVAL, -EAGAIN (FILLING, or the last block of
 * @new_lid or one that may be forgotten for its LIDs has a move in flight), -ENOSPC (no
 * LID slot and nothing may be forgotten, or the block has 4096 LIDs).
 */
int hawk_block_fork(struct hawk_space *s, u64 lid, u64 new_lid);

/**
 * hawk_block_unshare() - make @lid's block private and writable
 * @s: the space
 * @lid: the LID to get a block of its own
 * @now: present time, nanoseconds
 * @plan: receives the copy and what makes room for it
 * @vt: out, its translation
 * @ref: in: the caller's pin on @lid; out: the pin on the block that @lid has now
 *
 * If it has other LIDs, a new FILLING block takes this one over and a COPY is added
 * to @plan; when it has completed, write.  A block with one LID becomes FILLING
 * where it is and loses its key and flash copy.
 * Return: 0; -ENOENT; -ESTALE (@ref is not @lid's); -EBUSY (a block with one LID
 * that others have pinned or leased); -EAGAIN, -ENOBUFS, -ENOSPC, -EDQUOT as for
 * alloc.
 */
int hawk_block_unshare(struct hawk_space *s, u64 lid, u64 now, struct hawk_plan *plan,
		       u64 *vt, struct hawk_ref *ref);

/**
 * hawk_block_free() - forget a LID, and the block with its last LID
 * @s: the space
 * @lid: a LID of the block
 *
 * Return: 0, -ENOENT, -EBUSY (last LID of a pinned or leased block).
 */
int hawk_block_free(struct hawk_space *s, u64 lid);

/** hawk_key_free() - forget a key; the block stays under its LID: 0, -ENOENT */
int hawk_key_free(struct hawk_space *s, const u8 *key);

/** hawk_translate() - what the mapped vTLB says, or 0; falls back to the tables */
u64 hawk_space_translate(struct hawk_space *s, u64 lid);

/**
 * hawk_space_writeback() - write cold blocks ahead, so that eviction is free
 * @s: the space
 * @tier: host tier
 * @want: clean or free frames wanted per 1024
 * @now: present time, nanoseconds
 * @plan: receives the writes
 *
 * Bounded: looks at a few buckets per call and goes on from there the next time.
 * Return: number of moves added; -ENOBUFS: as for alloc, the plan may have moves.
 */
int hawk_space_writeback(struct hawk_space *s, u32 tier, u32 want, u64 now,
			 struct hawk_plan *plan);

/* ---- statistics ---- */

/** hawk_space_stats() - sums the buckets' counters into @st (size, flags kept) */
void hawk_space_stats(struct hawk_space *s, struct hawk_stats *st);

/**
 * hawk_space_check() - verify every invariant of a space (tests, debugfs)
 * @s: the space
 * @why: out, text of the first one broken
 * @why_len: bytes at @why
 *
 * The space must be quiet.  Takes time linear in its size.
 * Return: 0 or -EUCLEAN.
 */
int hawk_space_check(struct hawk_space *s, char *why, size_t why_len);

/* ---- block states, for tracing ---- */

/** hawk_state_name() - name of a block state */
const char *hawk_state_name(u32 state);

#endif /* HAWK_CORE_H */
