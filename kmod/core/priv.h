/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * priv.h - the engine's own structures
 *
 * Locks, in the order in which they may be taken:
 *
 *	sequences (hawk_seqs.lock)
 *	bucket (two at most, by rising index)  >  index shard, budget of a flash tier,
 *						  queue of promotions
 *	tier
 *
 * A tier lock, that of the sequences and that of the pace (hawk_pace.lock) are never taken
 * with another lock held, nor is any other taken with them.  README.md tells more.
 */
#ifndef HAWK_CORE_PRIV_H
#define HAWK_CORE_PRIV_H

#include "budget.h"
#include "health.h"
#include "pace.h"
#include "pool.h"
#include "reuse.h"

#define HAWK_BUCKETS_DEFAULT	64
#define HAWK_BUCKETS_MAX	512
#define HAWK_INDEX_SHARDS	64	/* a power of two */
#define HAWK_SCAN_MAX		16	/* entries looked at for a victim */
#define HAWK_PASS_MAX		256	/* that are leased, beside those, see evict.c */
#define HAWK_PASS_HELD		64	/* the same if blocks may be held, too */
#define HAWK_STEAL_MAX		16	/* items that move in one theft */
#define HAWK_PEEK		2	/* neighbours asked before an eviction */
#define HAWK_ALIAS_MAX		4096	/* LIDs of one block */
#define HAWK_PINS_MAX		0x7fffffffu	/* pins of one block */
#define HAWK_READS_MAX		0xffffu		/* readers of one block on flash */
#define HAWK_NO_TIER		0xff
#define HAWK_TIER_SLICE		1024	/* chunks looked at while others wait for a tier's lock */

/* ---- tiers: chunks and who owns them (tier.c, grow.c, pool.c) ---- */

enum hawk_chunk_state {
	HAWK_CHUNK_FREE,	/* zeroed, on the free list */
	HAWK_CHUNK_OWNED,	/* belongs to a space */
	HAWK_CHUNK_DIRTY,	/* left its owner, the host must zero it */
	HAWK_CHUNK_ORPHAN,	/* has blocks of a space that is not there, see pool.c */
	HAWK_CHUNK_SUSPECT,	/* its record could not be read or written, likewise */
};

struct hawk_chunk {
	u32 next;		/* free list */
	u8 state;
};

/* A chunk of a persistent pool. */
struct hawk_pool_chunk {
	u64 epoch;		/* of its record on flash */
	u64 space;		/* hawk_identity_hash() of the space it is kept for, or 0 */
	u32 prev;		/* orphans, the oldest first */
	u32 next;
};

/* What makes a flash tier outlive its device.  Guarded by the tier's lock, but @clock. */
struct hawk_pool {
	u64 id;
	u64 clock;		/* last epoch or generation that was given; atomic */
	u64 header_off;		/* bytes */
	u32 slot_bytes;
	u32 norphans;
	u32 oldest;		/* orphans, HAWK_NONE: none */
	u32 youngest;
	u32 suspect;		/* first and last of those, HAWK_NONE: none */
	u32 suspect_end;
	struct hawk_pool_chunk *chunk;
};

/* Of a flash tier, see health.c.  Guarded by the tier's lock. */
struct hawk_health {
	u32 state;		/* enum hawk_tier_health; read without the lock */
	u32 bad_reads;		/* in a row; likewise */
	u64 retry_at;		/* FAILING: when it gets a trial write, ns; atomic */
	u64 pause;		/* until then, of the last one, ns */
	u64 changed;		/* when @state last changed or a trial failed, ns */
	bool stalled;		/* FAILING because nothing ended */
};

struct hawk_tier {
	struct hawk_lock lock;	/* guards all below, and what the windows name it for */
	bool present;
	bool leaving;		/* no grant any more */
	bool lost;		/* no block comes here any more; read without the lock */
	u32 kind;
	u32 nchunks;
	u32 nfree;		/* chunks that a space may be given, orphans among them */
	u32 ndirty;
	u32 avail;		/* nfree, 0 if leaving; read without the lock as a hint */
	u32 minima;		/* chunks of the minima of all spaces, at most nchunks */
	u32 reserved;		/* of these those that their spaces do not use yet; hint */
	u32 claimed;		/* chunks kept back for starved spaces; hint */
	u32 insisting;		/* spaces whose minimum is not free yet, see grow.c */
	u32 nspaces;		/* spaces with a quota here */
	u32 free;		/* head of the free list */
	struct hawk_chunk *chunk;
	struct hawk_pool *pool;	/* persistent, or NULL; constant while a space is there */
	u32 admit;		/* enum hawk_admit_mode; with the budget's lock */
	u64 rated;		/* bytes per day that the drive stands, 0: not told; likewise */
	struct hawk_health health;
	struct hawk_budget budget;
};

struct hawk_engine {
	bool learn;		/* some tier does not admit everything (hint) */
	struct hawk_pace pace;
	struct hawk_tier tier[HAWK_TIERS_MAX];
};

/* ---- spaces ---- */

/*
 * A block-sized place in a chunk.  Guarded by the bucket that lists or uses it;
 * drain.c looks at @block and at HAWK_PARKED without the lock.
 */
struct hawk_frame {
	u32 block;		/* its block; HAWK_FRAME_FREE | bucket: on that free list;
				 * HAWK_NONE: neither
				 */
	u32 next;		/* free list; HAWK_PARKED: see drain.c */
	u32 prev;		/* free list */
	u32 gen;		/* 24 bits, one more each time it is taken */
};

#define HAWK_FRAME_FREE	0x80000000u	/* never set in a block number */
#define HAWK_PARKED	(HAWK_NONE - 1)

/*
 * What a space keeps in a persistent tier (keep.c).  @gen is guarded as the block is that
 * has the frame; @dirty, @due and @again are atomic.
 */
struct hawk_keep {
	u64 *gen;		/* by frame: generation of the block in it, 0: none to be kept */
	u64 *dirty;		/* bit per page of headers: to be written */
	u64 space;		/* hawk_identity_hash(); constant */
	u32 chunk_pages;	/* pages of a chunk that are used; constant */
	u32 due;		/* hint: a bit is set, and the host has been told */
	u32 again;		/* hint: a bit is set for a page that could not be written */
	bool forget;		/* its chunks are nobody's when it ends */
};

/*
 * What a space has of one tier.  Guarded by the tier's lock; all but the links of
 * free slots are read without it, as hints or as told in grow.c and drain.c.
 */
struct hawk_window {
	struct hawk_frame *frame;	/* nslots * frames_per_chunk */
	struct hawk_keep *keep;	/* what it keeps there, or NULL */
	u64 reads;		/* blocks on their way from here to host frames; atomic */
	u32 *slot;		/* chunk number by slot, or as below */
	u32 nslots;		/* chunks it can make use of; constant */
	u32 limit;		/* chunks it may own now: nslots, or 0 */
	u32 owned;		/* chunks owned, those on their way included */
	u32 growing;		/* of these on their way, until their frames are dealt */
	u32 drain;		/* slot being emptied, or HAWK_NONE */
	u32 hungry;		/* a bucket that asks for a chunk, plus one */
	u32 claims;		/* chunks kept back for it beyond its minimum */
	u32 quota_min;		/* chunks */
	u32 quota_max;		/* chunks; 0: no part in the tier, or no more */
	u32 free_slot;		/* first slot without a chunk, or HAWK_SLOT_END */
	u32 pick;		/* slot where hawk_space_drain_pick() goes on */
	u8 starved;		/* see hawk_space_starved() */
	bool insists;		/* counted in hawk_tier.insisting */
};

#define HAWK_SLOT_FREE	0x80000000u	/* slot without a chunk; the rest links them */
#define HAWK_SLOT_END	0x7ffffffeu	/* end of that list */
#define HAWK_SLOT_GROWS	HAWK_NONE	/* its chunk is on its way */

/* The chunk of a slot, or HAWK_NONE.  Pairs with hawk_space_grown(). */
static inline u32 hawk_slot_chunk(const struct hawk_window *w, u32 slot)
{
	u32 c = slot < w->nslots ? hawk_load_acquire(&w->slot[slot]) : HAWK_NONE;

	return c & HAWK_SLOT_FREE ? HAWK_NONE : c;
}

enum hawk_block_state {
	HAWK_BLOCK_FREE,
	HAWK_BLOCK_FILLING,	/* its owner writes the bytes */
	HAWK_BLOCK_READY,	/* in a host tier */
	HAWK_BLOCK_EVICTING,	/* in a host tier, being written to flash */
	HAWK_BLOCK_FLASH,	/* on flash only */
	HAWK_BLOCK_RELOADING,	/* on flash, being read into a host frame */
	HAWK_BLOCK_DYING,	/* unfindable; a move or LIDs in other buckets remain */
	HAWK_BLOCK_STATES,
};

enum hawk_block_event {
	HAWK_EV_ALLOC,
	HAWK_EV_RESTORE,	/* found on flash */
	HAWK_EV_PUT,
	HAWK_EV_REWRITE,	/* unshare of a private block */
	HAWK_EV_EVICT,		/* a write to flash starts */
	HAWK_EV_EVICT_CLEAN,	/* the flash copy is good: give the host frame up */
	HAWK_EV_WRITTEN,	/* written, nobody wants the host frame */
	HAWK_EV_KEPT,		/* written or failed, and the host frame stays */
	HAWK_EV_RELOAD,
	HAWK_EV_LOADED,
	HAWK_EV_CANCELED,	/* the reload was not tried */
	HAWK_EV_END,		/* freed, dropped, aborted or lost */
	HAWK_EV_BURY,		/* nothing refers to it any more */
	HAWK_BLOCK_EVENTS,
};

#define HAWK_BF_KEY		(1u << 0)	/* key is set and in the index */
#define HAWK_BF_FLASH		(1u << 1)	/* fframe holds a good copy */
#define HAWK_BF_MOVING		(1u << 2)	/* a WRITE or READ is in flight */
#define HAWK_BF_LRU		(1u << 3)	/* on an LRU list of its bucket */
#define HAWK_BF_CRC		(1u << 4)	/* crc is that of the flash copy */
#define HAWK_BF_PROMOTE		(1u << 5)	/* in the queue of promote.c */

/* What is known of the block, from its maker (HAWK_ITEM_*) */
#define HAWK_BH_PARENT		(1u << 0)	/* hawk_life.parent is set */
#define HAWK_BH_TRANSIENT	(1u << 1)
#define HAWK_BH_PERSIST		(1u << 2)
#define HAWK_BH_TAIL		(1u << 3)
#define HAWK_BH_ROOT		(1u << 4)
#define HAWK_BH_TOLD		0x1fu		/* all of these */
#define HAWK_BH_COPY		(1u << 5)	/* as HAWK_BF_FLASH, to be read without the lock */
#define HAWK_BH_READ		(1u << 6)	/* was read from flash since it was written */

/* Guarded, key included, by the lock of its home bucket; key_next by the index shard. */
struct hawk_block {
	u64 atime;		/* last access, ns */
	u32 gen;		/* its life: one more each time it is buried */
	u32 maps;		/* its LIDs, through hawk_map.alias */
	u32 nmaps;
	u32 lru_prev;
	u32 lru_next;		/* also links the free list and the dying list */
	u32 key_next;
	u32 pins;
	u32 leases;
	u32 hframe;		/* host frame, HAWK_NONE if none */
	u32 fframe;		/* flash frame, HAWK_NONE if none */
	u32 crc;
	u16 home;		/* its bucket, from its first LID */
	u8 htier;
	u8 ftier;
	u8 state;
	u8 flags;
	u16 reads;		/* readers of fframe, which the block keeps meanwhile */
	u8 hold;		/* not to be evicted while others can be, see elastic.c */
	/* admit.c looks at these of a block's parent, and at its atime and state, unlocked */
	u8 hint;		/* HAWK_BH_* */
	u8 turn;		/* of its conversation, saturating; 0: not known */
	u8 uses;		/* how often it was used, saturating */
} __attribute__((aligned(64)));	/* one cache line: the key is kept apart */

struct hawk_key {
	u8 b[HAWK_KEY_BYTES];
};

/*
 * What only the flash tier wants to know of a block: kept apart, so that hits need not
 * touch it.  Guarded as the block is.
 */
struct hawk_life {
	u8 parent[HAWK_KEY_BYTES];	/* key of the block before it, with HAWK_BH_PARENT */
	u64 since;			/* when it came to host memory; away: its last use there */
	u32 lot;			/* of its segment, as the upper half of a Q32.32; reuse.c */
	u16 class;			/* when it left host memory, see reuse.h */
	u8 depth;			/* of its segment, likewise */
	bool away;			/* it left, and has not been asked for since */
	bool came;			/* it came back after it had left as @class */
};

/*
 * A LID.  Guarded by the bucket of the LID, alias also by the block's home, way by
 * the latter alone.  What was found by hashing the LID is kept: an eviction need not
 * search again.
 */
struct hawk_map {
	u64 lid;
	u32 block;
	u32 next;		/* hash chain, free list */
	u32 prev;		/* hash chain, HAWK_NONE for the first (read without as a hint) */
	u32 alias;		/* next LID of the same block */
	u32 chain;		/* the chain it is on */
	u32 way;		/* its vTLB entry, HAWK_NONE if it has none */
};

/* Things that buckets keep free lists of: frames of tier t are number t. */
#define HAWK_RES_BLOCK	HAWK_TIERS_MAX
#define HAWK_RES_MAP	(HAWK_TIERS_MAX + 1)
#define HAWK_RES_COUNT	(HAWK_TIERS_MAX + 2)

struct hawk_freelist {
	u32 head;		/* both are read without the lock as hints */
	u32 n;
};

struct hawk_lru {
	u32 mru;
	u32 lru;
	u32 n;
};

/* Those that a full cache counts all the time come first: one cache line of a bucket. */
enum hawk_counter {
	HAWK_N_BLOCKS, HAWK_N_RESIDENT, HAWK_N_FLASH, HAWK_N_PINNED,
	HAWK_N_ALLOCS, HAWK_N_PUTS, HAWK_N_HITS, HAWK_N_EVICT_DROP,
	HAWK_N_EVICT_CLEAN, HAWK_N_EVICT_WRITE, HAWK_N_INFLIGHT, HAWK_N_FLASH_DROP,
	HAWK_N_RELOADS, HAWK_N_RELOAD_ERRORS, HAWK_N_STEALS, HAWK_N_NOSPACE,
	HAWK_N_QUOTA,
	HAWK_N_LENT,		/* popped here to be pushed elsewhere, where N_STEALS counts it */
	HAWK_N_READS,		/* host frames taken for reloads */
	HAWK_N_REFUSED,		/* may not go to flash, by HAWK_WHY_SCORE to _WARMER */
	HAWK_N_FLASH_READ = HAWK_N_REFUSED + HAWK_WHY_WARMER - HAWK_WHY_SCORE + 1,
				/* written blocks that were read, once each */
	HAWK_N_UNREAD_DROP,	/* gone from flash without having been read */
	HAWK_N_PROMOTED,	/* brought to memory by hawk_promote_next() */
	HAWK_N_PROMOTE_CANCELED,	/* not brought, for want of room or because others wait */
	HAWK_COUNTERS,
};

struct hawk_bucket {
	struct hawk_lock lock;	/* guards all below and the blocks at home here */
	u32 dying;		/* ended blocks with LIDs in other buckets */
	struct hawk_freelist fl[HAWK_RES_COUNT];
	struct hawk_lru lru[HAWK_TIERS_MAX];	/* unpinned blocks by tier */
	u32 moving[HAWK_TIERS_MAX];	/* host frames of writes and reads in flight */
	u32 clean[HAWK_TIERS_MAX];	/* on the LRU list with a good flash copy */
	u64 count[HAWK_COUNTERS];
} __attribute__((aligned(64)));

struct hawk_shard {
	struct hawk_lock lock;	/* guards the chains of this shard */
	u64 misses;
} __attribute__((aligned(64)));

struct hawk_seqs;

#define HAWK_PROMOTE_MAX	4096u	/* blocks in the queue */

/* Blocks that were read from flash, see promote.c. */
struct hawk_promote {
	struct hawk_lock lock;	/* guards all below; within a bucket's, with none inside */
	u64 until;		/* prefill runs so long, ns; read without it */
	u32 first;
	u32 n;			/* read without the lock as a hint */
	struct hawk_ref ref[HAWK_PROMOTE_MAX];
};

struct hawk_space {
	struct hawk_engine *engine;
	u32 block_bytes;
	u32 block_tokens;
	u32 frames_per_chunk;
	u32 max_blocks;
	u32 max_maps;
	u32 log2_buckets;
	u32 nbuckets;
	u32 log2_heads;		/* LID chains: two per LID, at least one per bucket */
	u32 key_mask;		/* key chains - 1 */
	u64 hash_seed;		/* so that nobody can choose LIDs or keys that collide */
	u32 vtlb_mask;		/* vTLB lines - 1 */
	u32 wb_cursor;		/* bucket where writeback goes on (hint) */
	u32 host_tiers;		/* bit mask: quota_max > 0, not blk; cleared by leave */
	u32 flash_tiers;	/* bit mask: quota_max > 0, blk; likewise */
	hawk_note_fn *note;	/* the host's, or NULL */
	void (*due)(void *owner);	/* likewise */
	void *owner;		/* for both */
	u8 dry[HAWK_TIERS_MAX];	/* no bucket has a spare frame (hint) */
	u32 stripe[HAWK_TIERS_MAX];	/* sums of strides, see stripe.c; atomic */
	u32 stripe_at;		/* the least of them; likewise */
	struct hawk_window win[HAWK_TIERS_MAX];
	struct hawk_vtlb_entry *vtlb;
	struct hawk_bucket *bucket;
	struct hawk_block *block;
	struct hawk_key *key;	/* by block, with HAWK_BF_KEY */
	struct hawk_life *life;	/* by block; NULL in a space that had no flash when it was made */
	struct hawk_reuse *reuse;	/* likewise */
	struct hawk_map *map;
	u32 *head;		/* LID chains; chain h is guarded by its bucket */
	u32 *key_head;		/* key chains; guarded by their shard */
	struct hawk_shard *shard;
	u8 hold;		/* bit to hold new blocks of sequences with; 0: none are held */
	u32 sinks;		/* of elastic residency, read without a lock */
	u32 window;		/* likewise */
	struct hawk_identity *identity;	/* whom chunks of pools are kept for, NULL: nobody */
	u64 *before;		/* ancestor.c: bit per block, atomic; NULL: nothing is kept */
	u64 *lacking;		/* likewise */
	u32 lacks;		/* hint: a bit of @lacking is set */
	bool lacking_round;	/* hint: a round has begun and not ended */
	u32 lacking_at;		/* word where the next round goes on (hint) */
	u64 restored;		/* LIDs given to blocks found on flash */
	struct hawk_recovery found;	/* both: written while nobody else uses the space */
	struct hawk_promote *promote;	/* NULL: it has no flash */
	struct hawk_pace_counts paced;	/* its deliveries; guarded by the pace's lock */
	u32 run_base;		/* sequence numbers of LIDs from here on are runs (seqpriv.h) */
	struct hawk_seqs *seqs;	/* NULL: none */
};

static inline u32 hawk_home(const struct hawk_space *s, u64 lid)
{
	return hawk_lid_bucket(lid, s->log2_buckets);
}

/* The chain of a LID; the high bits are its bucket, so one lock guards it. */
static inline u32 hawk_map_chain(const struct hawk_space *s, u64 lid)
{
	u32 low = s->log2_heads - s->log2_buckets;

	return hawk_home(s, lid) << low | (hawk_mix(lid ^ s->hash_seed) & ((1u << low) - 1));
}

/* The bucket of a chain. */
static inline u32 hawk_chain_home(const struct hawk_space *s, u32 chain)
{
	return chain >> (s->log2_heads - s->log2_buckets);
}

static inline struct hawk_bucket *hawk_bucket_of(struct hawk_space *s,
						 const struct hawk_block *blk)
{
	return &s->bucket[blk->home];
}

/* Frames may have become spare other than by an eviction, which uses them at once. */
static inline void hawk_note_spares(struct hawk_space *s)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (hawk_load(&s->dry[t]))
			hawk_store(&s->dry[t], 0);
}

static inline u32 hawk_block_nr(const struct hawk_space *s, const struct hawk_block *blk)
{
	return blk - s->block;
}

static inline u8 *hawk_block_key(struct hawk_space *s, const struct hawk_block *blk)
{
	return s->key[hawk_block_nr(s, blk)].b;
}

static inline bool hawk_block_in_host(const struct hawk_block *blk)
{
	return blk->state == HAWK_BLOCK_FILLING || blk->state == HAWK_BLOCK_READY ||
	       blk->state == HAWK_BLOCK_EVICTING;
}

/* Its frames are in use: it keeps both, also when it has ended. */
static inline bool hawk_block_in_use(const struct hawk_block *blk)
{
	return blk->flags & HAWK_BF_MOVING || blk->reads;
}

/* The link of a free block or LID slot; inline, as @res is mostly known. */
static inline u32 *hawk_res_next(struct hawk_space *s, u32 res, u32 nr)
{
	return res == HAWK_RES_BLOCK ? &s->block[nr].lru_next : &s->map[nr].next;
}

/* Take a frame off the free list that it is on. */
static inline void hawk_frame_unlink(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
				     u32 nr)
{
	struct hawk_frame *frame = s->win[tier].frame, *f = &frame[nr];
	struct hawk_freelist *fl = &b->fl[tier];

	if (f->prev == HAWK_NONE)
		hawk_store(&fl->head, f->next);
	else
		hawk_store(&frame[f->prev].next, f->next);
	if (f->next != HAWK_NONE)
		frame[f->next].prev = f->prev;
	hawk_store(&f->block, HAWK_NONE);
	hawk_store(&fl->n, fl->n - 1);
}

static inline u32 hawk_res_pop(struct hawk_space *s, struct hawk_bucket *b, u32 res)
{
	struct hawk_freelist *fl = &b->fl[res];
	u32 nr = fl->head;

	hawk_assert_held(&b->lock);
	if (nr == HAWK_NONE)
		return HAWK_NONE;
	if (res < HAWK_TIERS_MAX) {
		hawk_frame_unlink(s, b, res, nr);
		return nr;
	}
	hawk_store(&fl->head, *hawk_res_next(s, res, nr));
	hawk_store(&fl->n, fl->n - 1);
	return nr;
}

/* drain.c */
bool hawk_frame_park(struct hawk_space *s, u32 tier, u32 nr);

/* A frame of a chunk that is being emptied is parked instead: pop what was pushed. */
static inline void hawk_res_push(struct hawk_space *s, struct hawk_bucket *b, u32 res, u32 nr)
{
	struct hawk_freelist *fl = &b->fl[res];

	hawk_assert_held(&b->lock);
	if (res < HAWK_TIERS_MAX) {
		struct hawk_window *w = &s->win[res];

		if (unlikely(hawk_load(&w->drain) != HAWK_NONE) && hawk_frame_park(s, res, nr))
			return;
		hawk_store(&w->frame[nr].next, fl->head);
		w->frame[nr].prev = HAWK_NONE;
		if (fl->head != HAWK_NONE)
			w->frame[fl->head].prev = nr;
		hawk_store(&w->frame[nr].block, HAWK_FRAME_FREE | (u32)(b - s->bucket));
	} else {
		*hawk_res_next(s, res, nr) = fl->head;
	}
	hawk_store(&fl->head, nr);
	hawk_store(&fl->n, fl->n + 1);
}

static inline u64 hawk_vt(u32 tier, u32 gen, u32 frame)
{
	return HAWK_VT_VALID | (u64)tier << 56 | (u64)gen << 32 | frame;
}

/* tier.c */
u32 hawk_good_tiers(const struct hawk_space *s);
/* with the tier's lock */
void hawk_chunk_free(struct hawk_tier *t, u32 chunk);
u32 hawk_chunk_take(struct hawk_tier *t, u32 orphan);
void hawk_chunk_dirty(struct hawk_tier *t, u32 chunk);

/* pool.c: with the tier's lock, of a tier that has a pool, but hawk_pool_tick() */
u64 hawk_pool_tick(struct hawk_pool *p);
void hawk_pool_suspect(struct hawk_tier *t, u32 chunk);
u32 hawk_pool_spare(struct hawk_tier *t);
void hawk_pool_granted(struct hawk_space *s, u32 tier, u32 chunk);
void hawk_pool_orphan(struct hawk_tier *t, u32 chunk);
void hawk_pool_unlist(struct hawk_pool *p, u32 chunk);
void hawk_pool_free(struct hawk_tier *t, u32 nchunks);

/* ancestor.c */
int hawk_ancestor_create(struct hawk_space *s);
void hawk_ancestor_destroy(struct hawk_space *s);
void hawk_ancestor_set(struct hawk_space *s, u32 nr);
void hawk_ancestor_found(struct hawk_space *s, u32 nr);
void hawk_ancestor_after(struct hawk_space *s, const struct hawk_block *blk);
void hawk_ancestor_lost(struct hawk_space *s, const struct hawk_block *blk);
void hawk_ancestor_end(struct hawk_space *s, u32 nr);
bool hawk_ancestor_is(const struct hawk_space *s, const struct hawk_block *blk);

/* keep.c */
int hawk_keep_create(struct hawk_space *s, u32 tier);
void hawk_keep_destroy(struct hawk_space *s, u32 tier);
void hawk_keep_touch(struct hawk_space *s, u32 tier, u32 frame);
void hawk_keep_wrote(struct hawk_space *s, struct hawk_block *blk);
void hawk_keep_lost(struct hawk_space *s, const struct hawk_block *blk);

/* grow.c: a space's part in a tier */
int hawk_window_join(struct hawk_space *s, u32 tier, bool insist);
void hawk_window_return(struct hawk_space *s, u32 tier);
bool hawk_window_has_room(struct hawk_space *s, u32 tier);
bool hawk_window_take(struct hawk_space *s, u32 tier, u32 orphan, struct hawk_grant *g);
u32 hawk_window_reach(struct hawk_space *s, u32 tier);
void hawk_window_ask(struct hawk_space *s, u32 tier, u32 home);
void hawk_window_starve(struct hawk_space *s, u32 tier);
u32 hawk_window_release(struct hawk_space *s, u32 tier, u32 slot);

/* block.c: the state machine and what hangs on a block */
extern const u8 hawk_block_next[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];

/* Tests and hawk-sim count the transitions that are taken. */
#ifdef HAWK_COUNT_EVENTS
extern u64 hawk_event_count[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];
#define hawk_event_counted(state, ev)	(hawk_event_count[state][ev]++)
#else
#define hawk_event_counted(state, ev)	do { } while (0)
#endif

/* The one place where a state changes; a refused event changes nothing. */
static inline void hawk_block_event(struct hawk_block *blk, enum hawk_block_event ev)
{
	u8 next = hawk_block_next[blk->state][ev];

	hawk_assert(next);
	if (!next)
		return;
	hawk_event_counted(blk->state, ev);
	hawk_store(&blk->state, next - 1);
}

bool hawk_block_event_ok(enum hawk_block_state state, enum hawk_block_event ev);
u64 hawk_block_vt(struct hawk_space *s, const struct hawk_block *blk);
void hawk_block_publish(struct hawk_space *s, struct hawk_block *blk);
void hawk_block_end(struct hawk_space *s, struct hawk_block *blk);
void hawk_block_bury(struct hawk_space *s, struct hawk_block *blk);
void hawk_block_take_host(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame);
void hawk_block_take_flash(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame);
void hawk_block_drop_host(struct hawk_space *s, struct hawk_block *blk);
void hawk_block_drop_flash(struct hawk_space *s, struct hawk_block *blk);
void hawk_block_get_pin(struct hawk_space *s, struct hawk_block *blk);
void hawk_block_put_pin(struct hawk_space *s, struct hawk_block *blk);

/* map.c: LID -> block */
struct hawk_map *hawk_map_find(struct hawk_space *s, u64 lid, u32 chain);
struct hawk_map *hawk_map_insert(struct hawk_space *s, u64 lid, u32 chain,
				 struct hawk_block *blk);
void hawk_map_remove_home(struct hawk_space *s, struct hawk_block *blk);
void hawk_map_remove(struct hawk_space *s, struct hawk_map *m);
struct hawk_block *hawk_lid_lock(struct hawk_space *s, u64 lid);
void hawk_pair_lock(struct hawk_space *s, u32 a, u32 b);
void hawk_pair_unlock(struct hawk_space *s, u32 a, u32 b);
void hawk_map_reap_all(struct hawk_space *s, u32 home);

/* Bury what was ended in bucket @home and has LIDs in others.  No lock is held. */
static inline void hawk_map_reap(struct hawk_space *s, u32 home)
{
	if (unlikely(hawk_load(&s->bucket[home].dying) != HAWK_NONE))
		hawk_map_reap_all(s, home);
}

/* pblru.c: free lists, recency, victims */
u32 hawk_res_refill(struct hawk_space *s, u32 home, u32 res, u32 probes);
u32 hawk_res_steal(struct hawk_space *s, u32 from, u32 home, u32 res);
bool hawk_res_hint(struct hawk_space *s, u32 home, u32 res);
void hawk_lru_add(struct hawk_space *s, struct hawk_block *blk);
void hawk_lru_restore(struct hawk_space *s, struct hawk_block *blk);
void hawk_lru_del(struct hawk_space *s, struct hawk_block *blk);
void hawk_lru_touch(struct hawk_space *s, struct hawk_block *blk, u64 now);

/* evict.c: making room */

/* How far an operation goes for a thing that its bucket lacks. */
enum hawk_reach {
	HAWK_REACH_NEAR,	/* a new chunk, spares of two neighbours */
	HAWK_REACH_ALL,		/* spares of every bucket */
	HAWK_REACH_EVICT,	/* what another bucket can evict */
	HAWK_REACH_REAP,	/* what was ended here and has LIDs elsewhere */
	HAWK_REACH_AGAIN,	/* all of it anew, if others took something meanwhile */
	HAWK_REACHES,
};

/* Whom an operation may take something from, as long as blocks are held (elastic.c). */
enum hawk_take {
	HAWK_TAKE_FREE,		/* blocks that nobody holds */
	HAWK_TAKE_HELD,		/* also held ones, but no sinks and window of a run */
	HAWK_TAKE_ALL,
};

/*
 * What an operation still tries: it asks for each thing once, then does without.  When
 * it has looked everywhere, and others have taken or moved something since it began,
 * it may have missed what was there all the time, and begins anew (evict.c).
 */
struct hawk_want {
	struct hawk_plan *plan;	/* NULL: start no write */
	u64 now;		/* of the operation, ns; 0: not told */
	u64 score;		/* of the block asked about last, see admit.c */
	u32 why;		/* enum hawk_reason: it was refused */
	u32 flash;		/* flash tier whose turn it is, plus one; 0: not asked yet */
	bool ahead;		/* writing ahead: displace nothing on flash */
	bool spare;		/* a chunk drains: do not grow for it */
	bool ancestor;		/* for others' sake: take no other ancestor's copy */
	bool again;		/* there will be room after a move */
	u8 held;		/* enum hawk_take: nothing else is left */
	u32 asked[HAWK_REACHES];	/* bit masks of things */
	u32 res;		/* what to fetch now */
	enum hawk_reach reach;
	u32 rounds;		/* times that it began anew */
	bool counted;		/* @taken is set */
	u64 taken;		/* by all, when the search of all buckets began */
	u64 own;		/* of what was counted since then, this operation's */
};

int hawk_want_ask(struct hawk_space *s, struct hawk_want *w, u32 home, u32 res,
		  enum hawk_reach reach);
int hawk_want_fetch(struct hawk_space *s, struct hawk_want *w, u32 home);
int hawk_host_frame(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		    struct hawk_want *w, u32 *got, u32 *frame);
int hawk_spare_slot(struct hawk_space *s, struct hawk_bucket *b, u32 res, struct hawk_want *w);
int hawk_room_error(struct hawk_space *s, struct hawk_bucket *b, int ret);
int hawk_write_start(struct hawk_space *s, struct hawk_block *blk, u8 flags,
		     struct hawk_want *w);
void hawk_evict_drop(struct hawk_space *s, struct hawk_block *blk, u32 why,
		     const struct hawk_want *w);
void hawk_evict_clean(struct hawk_space *s, struct hawk_block *blk, const struct hawk_want *w);
u32 hawk_idle_frame(struct hawk_space *s, const struct hawk_block *blk, const struct hawk_want *w,
		    u32 *tier);

/* health.c */
void hawk_health_clear(struct hawk_health *h);
bool hawk_health_trial(const struct hawk_health *h, u64 now);
void hawk_health_wrote(struct hawk_health *h, u64 now);

/* stripe.c */
u32 hawk_flash_takes(const struct hawk_space *s, u64 now);
u32 hawk_stripe_pick(struct hawk_space *s, u32 tiers, u64 now);

/* drain.c */
int hawk_move_in(struct hawk_space *s, struct hawk_block *blk, struct hawk_want *w);

/* access.c */
void hawk_reads_add(struct hawk_space *s, u32 tier, u64 n);
void hawk_reload_start(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame,
		       u8 flags, struct hawk_plan *plan);
struct hawk_block *hawk_ref_lock(struct hawk_space *s, struct hawk_ref ref);

/* promote.c */
int hawk_promote_create(struct hawk_space *s);
void hawk_promote_destroy(struct hawk_space *s);
void hawk_promote_note(struct hawk_space *s, struct hawk_block *blk);
u32 hawk_promote_count(struct hawk_space *s);

/* pace.c, pacefirst.c: urgent deliveries have the drives first */
u64 hawk_pace_tier_rate(const struct hawk_pace *p, u32 tier);
void hawk_first_look(struct hawk_pace *p, struct hawk_delivery *d);
void hawk_first_less(struct hawk_pace *p, const struct hawk_delivery *d, u32 tier, u64 bytes,
		     bool ended);
u64 hawk_first_allowed(const struct hawk_pace *p, const struct hawk_delivery *d, u32 tier,
		       u64 unit);
void hawk_first_took(struct hawk_pace *p, const struct hawk_delivery *d, u32 tier, u64 bytes);

/* reuse.c: what comes back */
int hawk_reuse_create(struct hawk_space *s);
void hawk_reuse_destroy(struct hawk_space *s);
void hawk_reuse_born(struct hawk_space *s, struct hawk_block *blk);
void hawk_reuse_leave(struct hawk_space *s, struct hawk_block *blk, u64 now);
void hawk_reuse_back(struct hawk_space *s, struct hawk_block *blk, u64 now);
void hawk_block_used(struct hawk_block *blk, u64 now);
u32 hawk_class(u32 hint, u32 uses, u32 turn, u32 depth);
u32 hawk_depth_bin(u32 tok);
u64 hawk_class_worth(const struct hawk_reuse *r, u32 class, u64 now);
void hawk_class_left(struct hawk_reuse *r, u32 class, u64 atime, u64 now);
void hawk_class_came(struct hawk_reuse *r, u32 class, u32 came, u32 more);
bool hawk_class_worthless(const struct hawk_reuse *r, u32 class, u64 now);
bool hawk_ghost_get(struct hawk_reuse *r, u64 hash, u64 now, struct hawk_ghost *g);
void hawk_ghost_put(struct hawk_space *s, const struct hawk_block *blk, u64 hash);
void hawk_ghost_back(struct hawk_space *s, struct hawk_block *blk, u64 hash);

static inline u32 hawk_class_of(const struct hawk_space *s, const struct hawk_block *blk)
{
	return hawk_class(blk->hint, blk->uses, blk->turn, s->life[hawk_block_nr(s, blk)].depth);
}

/* How long blocks stay in host memory, or stay away: the longer of the two means, ns. */
static inline u64 hawk_reuse_mean(const struct hawk_reuse *r)
{
	u64 stay = hawk_load(&r->stay_ns), away = hawk_load(&r->away_ns);

	return stay > away ? stay : away;
}

/* Is anything to be decided, so that it pays to learn? */
static inline bool hawk_learns(const struct hawk_space *s)
{
	return s->reuse && hawk_load(&s->engine->learn);
}

/* The simulator's own rule, in its build of the engine. */
#ifdef HAWK_COUNT_EVENTS
extern bool (*hawk_admit_hook)(struct hawk_space *s, struct hawk_block *blk);
#endif

/* index.c: key -> block */
u64 hawk_index_hash(const struct hawk_space *s, const u8 *key);
void hawk_index_prefetch(const struct hawk_space *s, const u64 *hash, u32 n);
void hawk_index_prefetch_first(const struct hawk_space *s, const u64 *hash, u32 n);
int hawk_index_insert(struct hawk_space *s, struct hawk_block *blk, const u8 *key);
int hawk_index_insert_hash(struct hawk_space *s, struct hawk_block *blk, const u8 *key, u64 hash);
u32 hawk_index_find(struct hawk_space *s, const u8 *key, u64 hash);
void hawk_index_remove(struct hawk_space *s, struct hawk_block *blk);
struct hawk_block *hawk_index_lock(struct hawk_space *s, const u8 *key);
struct hawk_block *hawk_index_peek(struct hawk_space *s, const u8 *key);
u32 hawk_index_about(struct hawk_space *s, const u8 *key, u64 now, struct hawk_ghost *g);
void hawk_index_forget(struct hawk_space *s, struct hawk_block *blk);

/* seqrun.c: LIDs of sequences, see there */
void hawk_run_count(struct hawk_space *s, u64 lid, int n);
bool hawk_run_join(struct hawk_space *s, u64 lid);
void hawk_run_part(struct hawk_space *s, u64 lid);

static inline bool hawk_lid_is_run(const struct hawk_space *s, u64 lid)
{
	return unlikely(hawk_lid_seq(lid) >= s->run_base);
}

/* May a block be put under @lid?  If so, hawk_run_leave() follows. */
static inline bool hawk_run_enter(struct hawk_space *s, u64 lid)
{
	return !hawk_lid_is_run(s, lid) || hawk_run_join(s, lid);
}

static inline void hawk_run_leave(struct hawk_space *s, u64 lid)
{
	if (hawk_lid_is_run(s, lid))
		hawk_run_part(s, lid);
}

/* seq.c: sequences */
int hawk_seqs_create(struct hawk_space *s, const struct hawk_space_params *p);
void hawk_seqs_destroy(struct hawk_space *s);
void hawk_seq_unbusy(struct hawk_space *s);

/* elastic.c */
bool hawk_block_base(const struct hawk_space *s, const struct hawk_block *blk);

static inline bool hawk_block_held(const struct hawk_space *s, const struct hawk_block *blk,
				   u8 take)
{
	if (likely(!hawk_load(&s->hold)) || take == HAWK_TAKE_ALL)
		return false;
	return (take == HAWK_TAKE_FREE && blk->hold) || hawk_block_base(s, blk);
}

/* note.c: telling the host what becomes of a block */
void hawk_note_send(struct hawk_space *s, const struct hawk_block *blk, enum hawk_fate fate,
		    enum hawk_reason reason, const struct hawk_plan *plan);

static inline void hawk_note(struct hawk_space *s, const struct hawk_block *blk,
			     enum hawk_fate fate, enum hawk_reason reason,
			     const struct hawk_plan *plan)
{
	if (s->note)
		hawk_note_send(s, blk, fate, reason, plan);
}

/* vtlb.c */
void hawk_vtlb_prefetch(struct hawk_space *s, u64 lid);
void hawk_vtlb_set(struct hawk_space *s, struct hawk_map *m, u64 val);
void hawk_vtlb_del(struct hawk_space *s, struct hawk_map *m);
u64 hawk_vtlb_get(const struct hawk_space *s, u64 lid);

/* plan.c */
#define HAWK_MF_KEEP	1	/* written ahead: the host frame stays */
#define HAWK_MF_PROMOTE	2	/* of a READ: nobody waits for it */
bool hawk_plan_full(const struct hawk_plan *p);
void hawk_plan_add(struct hawk_plan *p, struct hawk_space *s, struct hawk_block *blk,
		   u32 kind, u8 flags);
void hawk_plan_copy(struct hawk_plan *p, struct hawk_space *s, struct hawk_block *from,
		    struct hawk_block *to);

#endif /* HAWK_CORE_PRIV_H */
