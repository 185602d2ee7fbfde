// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * check.c - every invariant of a space, verified
 *
 * For tests and debugfs.  The space must be quiet; nothing of it is locked, time is
 * linear in its size.
 */
#include "seqpriv.h"

#define FAIL(text)				\
	do {					\
		found(c, text, sizeof(text));	\
		return -EUCLEAN;		\
	} while (0)

struct check {
	struct hawk_space *s;
	char *why;
	size_t len;
	u64 sum[HAWK_N_PINNED + 1];	/* the gauges, counted anew */
	u32 moving[HAWK_TIERS_MAX];	/* moves in flight, likewise */
	u32 nfree;			/* free block slots */
};

/* @size: of the text, its end included. */
static void found(struct check *c, const char *text, size_t size)
{
	size = size < c->len ? size : c->len;
	if (size) {
		memcpy(c->why, text, size);
		c->why[size - 1] = 0;
	}
}

/*
 * All minima can be had at one time.  What is kept back for them and not free, nor waits
 * to be zeroed, is lent: used by spaces beyond their minima.  And it is only while a new
 * space insists on its own.
 */
static const char *tier_broken(const struct hawk_tier *t)
{
	u64 left = (u64)t->nfree + t->ndirty;

	hawk_assert_held(&t->lock);
	if (left > t->nchunks || t->minima > t->nchunks)
		return "minima are more than the tier has";
	if (t->reserved > t->minima || t->minima - t->reserved > t->nchunks - left)
		return "minima in use are more than is in use";
	if (!t->insisting && (u64)t->reserved + t->claimed > left)
		return "what is kept back is not there";
	return NULL;
}

/* Other spaces may be using it. */
static int check_tier(struct check *c, struct hawk_tier *t)
{
	const char *broken;

	hawk_lock(&t->lock);
	broken = tier_broken(t);
	hawk_unlock(&t->lock);
	if (!broken)
		return 0;
	found(c, broken, strlen(broken) + 1);
	return -EUCLEAN;
}

/* Slots with a chunk are counted, those without are listed; nothing else is kept back. */
static int check_window(struct check *c, u32 tier)
{
	struct hawk_space *s = c->s;
	struct hawk_window *w = &s->win[tier];
	const struct hawk_tier *t = &s->engine->tier[tier];
	u32 i, n, owned = 0, unused;

	for (i = 0; i < w->nslots; i++)
		owned += !(w->slot[i] & HAWK_SLOT_FREE) || w->slot[i] == HAWK_SLOT_GROWS;
	for (i = w->free_slot, n = 0; i != HAWK_SLOT_END; i = w->slot[i] & ~HAWK_SLOT_FREE)
		if (i >= w->nslots || w->slot[i] == HAWK_SLOT_GROWS ||
		    !(w->slot[i] & HAWK_SLOT_FREE) || ++n > w->nslots)
			FAIL("list of free slots broken");
	if (owned != w->owned || n + owned != w->nslots || owned > w->nslots)
		FAIL("slots miscounted");
	if (w->drain != HAWK_NONE && hawk_slot_chunk(w, w->drain) == HAWK_NONE)
		FAIL("drain of a slot without a chunk");
	unused = w->owned < w->quota_min ? w->quota_min - w->owned : 0;
	if (unused > t->reserved || w->claims > t->claimed)
		FAIL("minimum or claim not kept back");
	if (w->quota_min > t->minima)
		FAIL("minimum not counted");
	if (!w->quota_max && (w->owned || w->limit || w->claims))
		FAIL("part in a tier without a quota");
	for (i = 0; i < w->nslots; i++)
		if (!(w->slot[i] & HAWK_SLOT_FREE) &&
		    (w->slot[i] >= t->nchunks ||
		     t->chunk[w->slot[i]].state != HAWK_CHUNK_OWNED))
			FAIL("chunk of a slot is not owned");
	return 0;
}

/* Free frames are listed once and know where. */
static int check_free_frames(struct check *c, u32 tier, u32 *nfree)
{
	struct hawk_space *s = c->s;
	struct hawk_window *w = &s->win[tier];
	u32 i, nr, prev, n, total = w->nslots * s->frames_per_chunk;

	for (i = 0; i < s->nbuckets; i++) {
		n = 0;
		for (prev = HAWK_NONE, nr = s->bucket[i].fl[tier].head; nr != HAWK_NONE;
		     prev = nr, nr = w->frame[nr].next) {
			if (nr >= total ||
			    hawk_slot_chunk(w, nr / s->frames_per_chunk) == HAWK_NONE)
				FAIL("free frame outside the owned chunks");
			if (w->frame[nr].block != (HAWK_FRAME_FREE | i) ||
			    w->frame[nr].prev != prev)
				FAIL("free frame is not where it says");
			n++;	/* a loop has a frame with two before it */
		}
		if (n != s->bucket[i].fl[tier].n)
			FAIL("free frames miscounted");
		*nfree += n;
	}
	return 0;
}

/* Each frame of an owned chunk is free in one bucket, one block's, or parked. */
static int check_frames(struct check *c, u32 tier)
{
	struct hawk_space *s = c->s;
	struct hawk_window *w = &s->win[tier];
	u32 i, nr, slot, nfree = 0, used = 0, parked = 0, total = 0;
	int ret = check_free_frames(c, tier, &nfree);

	for (i = 0; !ret && i < w->nslots * s->frames_per_chunk; i++) {
		struct hawk_block *blk;

		slot = i / s->frames_per_chunk;
		nr = w->frame[i].block;
		total += hawk_slot_chunk(w, slot) != HAWK_NONE;
		if (nr == HAWK_NONE && w->frame[i].next == HAWK_PARKED) {
			if (slot != w->drain)
				FAIL("frame parked outside a drain");
			parked++;
		}
		if (nr & HAWK_FRAME_FREE) {
			if (w->keep && w->keep->gen[i])
				FAIL("frame of no block has a generation");
			continue;
		}
		used++;
		if (hawk_slot_chunk(w, slot) == HAWK_NONE)
			FAIL("frame in use outside the owned chunks");
		if (nr >= s->max_blocks)
			FAIL("frame of no block");
		blk = &s->block[nr];
		if (w->keep && w->keep->gen[i] && !(blk->flags & HAWK_BF_FLASH))
			FAIL("frame with a generation has no good copy");
		if (!(blk->htier == tier && blk->hframe == i) &&
		    !(blk->ftier == tier && blk->fframe == i))
			FAIL("frame's block does not know it");
	}
	if (!ret && nfree + used + parked != total)
		FAIL("frames lost or listed twice");
	return ret;
}

static int check_place(struct check *c, const struct hawk_block *blk)
{
	struct hawk_space *s = c->s;
	u32 nr = hawk_block_nr(s, blk);
	bool host = blk->hframe != HAWK_NONE, flash = blk->fframe != HAWK_NONE;
	bool moving = blk->flags & HAWK_BF_MOVING;

	if (host && (s->win[blk->htier].frame[blk->hframe].block != nr))
		FAIL("host frame is another's");
	if (flash && (s->win[blk->ftier].frame[blk->fframe].block != nr))
		FAIL("flash frame is another's");
	if (hawk_block_in_host(blk) && !host)
		FAIL("resident block without host frame");
	if (blk->state == HAWK_BLOCK_FLASH && (host || !(blk->flags & HAWK_BF_FLASH)))
		FAIL("flash block without flash copy, or with a host frame");
	if (blk->state == HAWK_BLOCK_RELOADING && !(host && flash && moving))
		FAIL("reloading block without frames or move");
	if (blk->state == HAWK_BLOCK_EVICTING && !(flash && moving))
		FAIL("evicting block without flash frame or move");
	if ((blk->flags & HAWK_BF_FLASH) && !flash)
		FAIL("flash copy without frame");
	if (blk->reads && !(blk->flags & HAWK_BF_FLASH))
		FAIL("block being read has no flash copy");
	if (blk->pins && !hawk_block_in_host(blk))
		FAIL("pinned block is not in a host frame");
	if (blk->state == HAWK_BLOCK_FILLING && !blk->pins)
		FAIL("filling block without owner");
	if (!!(blk->flags & HAWK_BF_LRU) !=
	    (blk->state == HAWK_BLOCK_FLASH || (blk->state == HAWK_BLOCK_READY && !blk->pins)))
		FAIL("block on an LRU list that should not be, or missing");
	return 0;
}

/* What readers find for a LID is the entry that it knows of, or nothing. */
static bool translation_ok(const struct hawk_space *s, const struct hawk_map *m, u64 vt)
{
	u64 seen = hawk_vtlb_get(s, m->lid);

	if (m->way == HAWK_NONE)
		return !seen;
	return seen == vt && s->vtlb[m->way].lid == m->lid && s->vtlb[m->way].val == vt;
}

static int check_names(struct check *c, const struct hawk_block *blk)
{
	struct hawk_space *s = c->s;
	u32 nr = hawk_block_nr(s, blk), m, n = 0;
	u64 vt = hawk_block_vt(s, blk);

	for (m = blk->maps; m != HAWK_NONE; m = s->map[m].alias, n++) {
		if (n > s->max_maps || s->map[m].block != nr)
			FAIL("LID of another block");
		if (!translation_ok(s, &s->map[m], vt))
			FAIL("vTLB disagrees with the block");
	}
	if (n != blk->nmaps || (!n && blk->state != HAWK_BLOCK_DYING))
		FAIL("LIDs miscounted");
	return 0;
}

static int check_blocks(struct check *c)
{
	struct hawk_space *s = c->s;
	struct hawk_block *blk;
	u32 i;
	int ret;

	for (i = 0; i < s->max_blocks; i++) {
		blk = &s->block[i];
		if (blk->state == HAWK_BLOCK_FREE) {
			if (blk->hframe != HAWK_NONE || blk->fframe != HAWK_NONE || blk->flags ||
			    blk->reads)
				FAIL("free block holds something");
			c->nfree++;
			continue;
		}
		c->sum[HAWK_N_BLOCKS]++;
		c->sum[HAWK_N_RESIDENT] += blk->hframe != HAWK_NONE;
		c->sum[HAWK_N_FLASH] += blk->fframe != HAWK_NONE;
		c->sum[HAWK_N_PINNED] += !!blk->pins;
		if (blk->flags & HAWK_BF_MOVING)
			c->moving[blk->htier]++;
		ret = check_place(c, blk);
		if (!ret)
			ret = check_names(c, blk);
		if (ret)
			return ret;
	}
	return 0;
}

static int check_lists(struct check *c, struct hawk_bucket *b)
{
	struct hawk_space *s = c->s;
	u32 t, nr, n, clean, warmer;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		n = 0;
		clean = 0;
		warmer = HAWK_NONE;
		for (nr = b->lru[t].mru; nr != HAWK_NONE; nr = s->block[nr].lru_next) {
			struct hawk_block *blk = &s->block[nr];

			if (!(blk->flags & HAWK_BF_LRU) || hawk_bucket_of(s, blk) != b ||
			    (blk->state == HAWK_BLOCK_FLASH ? blk->ftier : blk->htier) != t ||
			    blk->lru_prev != warmer || n++ > s->max_blocks)
				FAIL("LRU list broken");
			clean += blk->state == HAWK_BLOCK_READY && (blk->flags & HAWK_BF_FLASH);
			warmer = nr;
		}
		if (n != b->lru[t].n || b->lru[t].lru != warmer || clean != b->clean[t])
			FAIL("LRU list miscounted");
	}
	return 0;
}

/* Slots are in use, or free in one bucket; moves in flight are all counted. */
static int check_slots(struct check *c)
{
	struct hawk_space *s = c->s;
	u32 i, t, nr, n, blocks = 0, maps = 0;
	struct hawk_bucket *b;

	for (i = 0; i < s->nbuckets; i++) {
		b = &s->bucket[i];
		n = 0;
		for (nr = b->fl[HAWK_RES_BLOCK].head; nr != HAWK_NONE; nr = s->block[nr].lru_next)
			if (s->block[nr].state != HAWK_BLOCK_FREE || ++n > s->max_blocks)
				FAIL("free block slots broken");
		if (n != b->fl[HAWK_RES_BLOCK].n)
			FAIL("free block slots miscounted");
		blocks += n;
		n = 0;
		for (nr = b->fl[HAWK_RES_MAP].head; nr != HAWK_NONE; nr = s->map[nr].next)
			if (++n > s->max_maps)
				FAIL("loop in free LID slots");
		if (n != b->fl[HAWK_RES_MAP].n)
			FAIL("free LID slots miscounted");
		maps += n;
		for (t = 0; t < HAWK_TIERS_MAX; t++)
			c->moving[t] -= b->moving[t];
	}
	for (i = 0; i < s->max_blocks; i++)
		maps += s->block[i].state == HAWK_BLOCK_FREE ? 0 : s->block[i].nmaps;
	if (blocks != c->nfree || maps != s->max_maps)
		FAIL("block or LID slots lost");
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (c->moving[t])
			FAIL("moves in flight miscounted");
	return 0;
}

/* Every LID can be found, every key leads to its block and back. */
static int check_chains(struct check *c)
{
	struct hawk_space *s = c->s;
	u32 i, nr, prev, maps = 0, keys = 0, want_maps = 0, want_keys = 0;

	for (i = 0; i < 1u << s->log2_heads; i++)
		for (prev = HAWK_NONE, nr = s->head[i]; nr != HAWK_NONE;
		     prev = nr, nr = s->map[nr].next)
			if (++maps > s->max_maps || s->map[nr].prev != prev ||
			    s->map[nr].chain != i || hawk_map_chain(s, s->map[nr].lid) != i)
				FAIL("LID chain broken");
	for (i = 0; i <= s->key_mask; i++)
		for (nr = s->key_head[i]; nr != HAWK_NONE; nr = s->block[nr].key_next)
			if (++keys > s->max_blocks || !(s->block[nr].flags & HAWK_BF_KEY))
				FAIL("key chain broken");
	for (i = 0; i < s->max_blocks; i++) {
		want_maps += s->block[i].state == HAWK_BLOCK_FREE ? 0 : s->block[i].nmaps;
		want_keys += !!(s->block[i].flags & HAWK_BF_KEY);
	}
	if (maps != want_maps || keys != want_keys)
		FAIL("LIDs or keys miscounted");
	return 0;
}

int hawk_space_check(struct hawk_space *s, char *why, size_t why_len)
{
	struct check check = { .s = s, .why = why, .len = why_len }, *c = &check;
	u64 sum[HAWK_N_PINNED + 1] = { 0 };
	const char *seqs = NULL;
	u32 i, k;
	int ret;

	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		if (!s->win[i].frame)
			continue;
		ret = check_tier(c, &s->engine->tier[i]) ?: check_window(c, i) ?:
		      check_frames(c, i);
		if (ret)
			return ret;
	}
	ret = check_blocks(c);
	if (!ret)
		ret = check_slots(c);
	if (!ret)
		ret = check_chains(c);
	for (i = 0; !ret && i < s->nbuckets; i++) {
		ret = check_lists(c, &s->bucket[i]);
		for (k = 0; k <= HAWK_N_PINNED; k++)
			sum[k] += s->bucket[i].count[k];
	}
	if (!ret && memcmp(sum, c->sum, sizeof(sum)))
		FAIL("gauges do not add up");
	for (i = 0, k = 0; i < s->max_blocks; i++)
		k += s->block[i].state != HAWK_BLOCK_DYING &&
		     (s->block[i].flags & HAWK_BF_PROMOTE);
	if (!ret && hawk_promote_count(s) != k)
		FAIL("blocks to be promoted are not in the queue");
	if (!ret) {
		ret = hawk_seqs_check(s, &seqs);
		if (ret)
			found(c, seqs, strlen(seqs) + 1);
	}
	return ret;
}
