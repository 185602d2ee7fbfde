// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * block.c - the life of a block
 *
 * All state changes go through hawk_block_event(), which knows this table and
 * nothing else:
 *
 *	state      event        -> next       who
 *	FREE       ALLOC           FILLING    alloc, unshare
 *	FREE       RESTORE         FLASH      found on flash when the space was made
 *	FILLING    PUT             READY      put
 *	READY      REWRITE         FILLING    unshare of a private block
 *	READY      EVICT           EVICTING   alloc, reload, writeback
 *	READY      EVICT_CLEAN     FLASH      alloc, reload
 *	EVICTING   WRITTEN         FLASH      completion
 *	EVICTING   KEPT            READY      completion: failed, written ahead or
 *	                                      pinned meanwhile
 *	FLASH      RELOAD          RELOADING  reload
 *	RELOADING  LOADED          READY      completion
 *	RELOADING  CANCELED        FLASH      completion
 *	FILLING, READY, EVICTING, FLASH, RELOADING
 *	           END             DYING      free, drop, owner gone, reload failed
 *	DYING      BURY            FREE       no move or reader, no LID left
 *
 * Pins exist in FILLING, READY and EVICTING only.  A block with a move in flight
 * (HAWK_BF_MOVING) keeps both frames until the move completes, also when DYING, and
 * one whose flash copy is being read by a gather (reads) keeps that likewise.
 */
#include "priv.h"

/* The next state plus one; 0 refuses the event. */
#define TO(state)	(HAWK_BLOCK_##state + 1)

const u8 hawk_block_next[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS] = {
	[HAWK_BLOCK_FREE] = {
		[HAWK_EV_ALLOC] = TO(FILLING),
		[HAWK_EV_RESTORE] = TO(FLASH),
	},
	[HAWK_BLOCK_FILLING] = {
		[HAWK_EV_PUT] = TO(READY),
		[HAWK_EV_END] = TO(DYING),
	},
	[HAWK_BLOCK_READY] = {
		[HAWK_EV_REWRITE] = TO(FILLING),
		[HAWK_EV_EVICT] = TO(EVICTING),
		[HAWK_EV_EVICT_CLEAN] = TO(FLASH),
		[HAWK_EV_END] = TO(DYING),
	},
	[HAWK_BLOCK_EVICTING] = {
		[HAWK_EV_WRITTEN] = TO(FLASH),
		[HAWK_EV_KEPT] = TO(READY),
		[HAWK_EV_END] = TO(DYING),
	},
	[HAWK_BLOCK_FLASH] = {
		[HAWK_EV_RELOAD] = TO(RELOADING),
		[HAWK_EV_END] = TO(DYING),
	},
	[HAWK_BLOCK_RELOADING] = {
		[HAWK_EV_LOADED] = TO(READY),
		[HAWK_EV_CANCELED] = TO(FLASH),
		[HAWK_EV_END] = TO(DYING),
	},
	[HAWK_BLOCK_DYING] = {
		[HAWK_EV_BURY] = TO(FREE),
	},
};

bool hawk_block_event_ok(enum hawk_block_state state, enum hawk_block_event ev)
{
	return hawk_block_next[state][ev];
}

const char *hawk_state_name(u32 state)
{
	static const char * const name[HAWK_BLOCK_STATES] = {
		"free", "filling", "ready", "evicting", "flash", "reloading", "dying",
	};

	return state < HAWK_BLOCK_STATES ? name[state] : "?";
}

/* Where a reader finds the bytes: the host frame if it is good, else flash. */
u64 hawk_block_vt(struct hawk_space *s, const struct hawk_block *blk)
{
	if (hawk_block_in_host(blk))
		return hawk_vt(blk->htier, s->win[blk->htier].frame[blk->hframe].gen,
			       blk->hframe);
	if (blk->flags & HAWK_BF_FLASH)
		return hawk_vt(blk->ftier, s->win[blk->ftier].frame[blk->fframe].gen,
			       blk->fframe);
	return 0;
}

/* Tell the vTLB where the block is now, for each of its LIDs. */
void hawk_block_publish(struct hawk_space *s, struct hawk_block *blk)
{
	u64 vt = hawk_block_vt(s, blk);
	u32 m;

	for (m = blk->maps; m != HAWK_NONE; m = s->map[m].alias)
		hawk_vtlb_set(s, &s->map[m], vt);
}

static void frame_take(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame)
{
	struct hawk_frame *f = &s->win[tier].frame[frame];

	hawk_assert(f->block == HAWK_NONE);
	/*
	 * From here on new bytes may be written: not before readers can see that
	 * the frame is no longer where the vTLB said.  Pairs with the barrier of
	 * the readers' second look (uapi/hawk.h).  And drain.c finds the home of
	 * the block through it.
	 */
	hawk_wmb();
	hawk_store(&f->block, hawk_block_nr(s, blk));
	f->gen = (f->gen + 1) & 0xffffff;
}

static void frame_drop(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame)
{
	struct hawk_frame *f = &s->win[tier].frame[frame];

	hawk_assert(f->block == hawk_block_nr(s, blk));
	hawk_res_push(s, hawk_bucket_of(s, blk), tier, frame);
}

void hawk_block_take_host(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame)
{
	frame_take(s, blk, tier, frame);
	blk->htier = tier;
	blk->hframe = frame;
	hawk_bucket_of(s, blk)->count[HAWK_N_RESIDENT]++;
}

void hawk_block_take_flash(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame)
{
	frame_take(s, blk, tier, frame);
	blk->ftier = tier;
	blk->fframe = frame;
	hawk_bucket_of(s, blk)->count[HAWK_N_FLASH]++;
}

void hawk_block_drop_host(struct hawk_space *s, struct hawk_block *blk)
{
	if (blk->hframe == HAWK_NONE)
		return;
	frame_drop(s, blk, blk->htier, blk->hframe);
	blk->hframe = HAWK_NONE;
	blk->htier = HAWK_NO_TIER;
	hawk_bucket_of(s, blk)->count[HAWK_N_RESIDENT]--;
}

/* The block is on no LRU list, or its count of clean blocks would be wrong. */
void hawk_block_drop_flash(struct hawk_space *s, struct hawk_block *blk)
{
	hawk_assert(!(blk->flags & HAWK_BF_LRU));
	if (blk->fframe == HAWK_NONE)
		return;
	hawk_keep_lost(s, blk);
	frame_drop(s, blk, blk->ftier, blk->fframe);
	blk->fframe = HAWK_NONE;
	blk->ftier = HAWK_NO_TIER;
	if (blk->flags & HAWK_BF_FLASH && !(blk->hint & HAWK_BH_READ))
		hawk_bucket_of(s, blk)->count[HAWK_N_UNREAD_DROP]++;
	blk->flags &= ~(HAWK_BF_FLASH | HAWK_BF_CRC);
	hawk_store(&blk->hint, blk->hint & ~(HAWK_BH_COPY | HAWK_BH_READ));
	hawk_bucket_of(s, blk)->count[HAWK_N_FLASH]--;
	hawk_ancestor_lost(s, blk);
}

void hawk_block_get_pin(struct hawk_space *s, struct hawk_block *blk)
{
	if (blk->pins++)
		return;
	hawk_bucket_of(s, blk)->count[HAWK_N_PINNED]++;
	hawk_lru_del(s, blk);
}

void hawk_block_put_pin(struct hawk_space *s, struct hawk_block *blk)
{
	hawk_assert(blk->pins);
	if (--blk->pins)
		return;
	hawk_bucket_of(s, blk)->count[HAWK_N_PINNED]--;
	if (blk->state == HAWK_BLOCK_READY)
		hawk_lru_add(s, blk);
	else if (blk->state == HAWK_BLOCK_FILLING)
		hawk_block_end(s, blk);	/* nobody is left to fill it */
	hawk_seq_unbusy(s);
}

/*
 * Make the block unfindable.  What is in flight or named in other buckets goes
 * later: hawk_move_complete(), hawk_block_read_end() and hawk_map_reap() bury it then.
 */
void hawk_block_end(struct hawk_space *s, struct hawk_block *blk)
{
	u32 m;

	hawk_assert_held(&hawk_bucket_of(s, blk)->lock);
	hawk_assert(!blk->pins);
	hawk_lru_del(s, blk);
	hawk_index_remove(s, blk);
	for (m = blk->maps; m != HAWK_NONE; m = s->map[m].alias)
		hawk_vtlb_del(s, &s->map[m]);
	hawk_block_event(blk, HAWK_EV_END);
	blk->leases = 0;
	if (!hawk_block_in_use(blk))
		hawk_block_bury(s, blk);
}

void hawk_block_bury(struct hawk_space *s, struct hawk_block *blk)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);

	hawk_assert_held(&b->lock);
	hawk_block_drop_host(s, blk);
	hawk_block_drop_flash(s, blk);
	hawk_map_remove_home(s, blk);
	if (blk->nmaps) {
		blk->lru_next = b->dying;
		hawk_store(&b->dying, hawk_block_nr(s, blk));
		return;
	}
	hawk_block_event(blk, HAWK_EV_BURY);
	hawk_ancestor_end(s, hawk_block_nr(s, blk));
	blk->flags = 0;
	hawk_store(&blk->gen, blk->gen + 1);
	b->count[HAWK_N_BLOCKS]--;
	hawk_res_push(s, b, HAWK_RES_BLOCK, hawk_block_nr(s, blk));
}
