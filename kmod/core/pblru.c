// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * pblru.c - parallel bucketed LRU: free lists and recency, one lock per bucket
 *
 * Every bucket has its own free frames, block and LID slots, and recency lists
 * of the blocks at home in it.  A dry bucket asks for a chunk, whose frames are
 * dealt to all buckets (grow.c), or if there is none steals from its neighbours:
 * the next two before it evicts (unused memory is better than a cached block), all
 * of them when it has nothing to evict (evict.c tells the whole order).
 */
#include "priv.h"

/*
 * Half of what bucket @from has to spare goes to bucket @home.  No lock is held.
 * Return: how many.
 */
u32 hawk_res_steal(struct hawk_space *s, u32 from, u32 home, u32 res)
{
	struct hawk_bucket *b = &s->bucket[from];
	u32 nr[HAWK_STEAL_MAX], want, n, got;

	if (!hawk_load(&b->fl[res].n))
		return 0;
	hawk_lock(&b->lock);
	want = (b->fl[res].n + 1) / 2;
	if (want > HAWK_STEAL_MAX)
		want = HAWK_STEAL_MAX;
	for (n = 0; n < want; n++)
		nr[n] = hawk_res_pop(s, b, res);
	b->count[HAWK_N_LENT] += n;
	hawk_unlock(&b->lock);
	got = n;
	if (!n)
		return 0;

	b = &s->bucket[home];
	hawk_lock(&b->lock);
	b->count[HAWK_N_STEALS] += n;
	while (n)
		hawk_res_push(s, b, res, nr[--n]);
	hawk_unlock(&b->lock);
	return got;
}

/*
 * Bring things of kind @res to bucket @home from @probes neighbours.  No lock is held.
 * Return: how many.
 */
u32 hawk_res_refill(struct hawk_space *s, u32 home, u32 res, u32 probes)
{
	u32 i, n, mask = s->nbuckets - 1;

	for (i = 1; i <= probes && i <= mask; i++) {
		n = hawk_res_steal(s, (home + i) & mask, home, res);
		if (n)
			return n;
	}
	if (res < HAWK_TIERS_MAX && probes >= mask)
		hawk_store(&s->dry[res], 1);
	return 0;
}

/* Is a cheap refill worth giving up the lock for? */
bool hawk_res_hint(struct hawk_space *s, u32 home, u32 res)
{
	u32 i, mask = s->nbuckets - 1;

	if (res < HAWK_TIERS_MAX && hawk_window_has_room(s, res))
		return true;
	for (i = 1; i <= HAWK_PEEK && i <= mask; i++)
		if (hawk_load(&s->bucket[(home + i) & mask].fl[res].n))
			return true;
	return false;
}

static u32 lru_tier(const struct hawk_block *blk)
{
	return blk->state == HAWK_BLOCK_FLASH ? blk->ftier : blk->htier;
}

/* Link a block behind @warmer; HAWK_NONE: it is the warmest. */
static void lru_link(struct hawk_space *s, struct hawk_block *blk, u32 warmer)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	struct hawk_lru *l = &b->lru[lru_tier(blk)];
	u32 nr = hawk_block_nr(s, blk);

	hawk_assert_held(&b->lock);
	hawk_assert(!(blk->flags & HAWK_BF_LRU));
	blk->lru_prev = warmer;
	blk->lru_next = warmer == HAWK_NONE ? l->mru : s->block[warmer].lru_next;
	if (blk->lru_prev != HAWK_NONE)
		s->block[blk->lru_prev].lru_next = nr;
	else
		l->mru = nr;
	if (blk->lru_next != HAWK_NONE)
		s->block[blk->lru_next].lru_prev = nr;
	else
		l->lru = nr;
	l->n++;
	blk->flags |= HAWK_BF_LRU;
	if (blk->state == HAWK_BLOCK_READY && (blk->flags & HAWK_BF_FLASH))
		b->clean[blk->htier]++;
}

/* An unpinned READY or FLASH block joins its list at the warm end. */
void hawk_lru_add(struct hawk_space *s, struct hawk_block *blk)
{
	lru_link(s, blk, HAWK_NONE);
}

/*
 * A block that left its list to be written comes back to where its last access
 * belongs, as far as that can be found among the coldest; else to the warm end.
 */
void hawk_lru_restore(struct hawk_space *s, struct hawk_block *blk)
{
	u32 nr = hawk_bucket_of(s, blk)->lru[lru_tier(blk)].lru, n = 0;

	while (nr != HAWK_NONE && s->block[nr].atime < blk->atime) {
		nr = s->block[nr].lru_prev;
		if (++n == HAWK_SCAN_MAX)
			nr = HAWK_NONE;
	}
	lru_link(s, blk, nr);
}

void hawk_lru_del(struct hawk_space *s, struct hawk_block *blk)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	struct hawk_lru *l;

	hawk_assert_held(&b->lock);
	if (!(blk->flags & HAWK_BF_LRU))
		return;
	l = &b->lru[lru_tier(blk)];
	if (blk->lru_prev != HAWK_NONE)
		s->block[blk->lru_prev].lru_next = blk->lru_next;
	else
		l->mru = blk->lru_next;
	if (blk->lru_next != HAWK_NONE)
		s->block[blk->lru_next].lru_prev = blk->lru_prev;
	else
		l->lru = blk->lru_prev;
	l->n--;
	blk->flags &= ~HAWK_BF_LRU;
	if (blk->state == HAWK_BLOCK_READY && (blk->flags & HAWK_BF_FLASH))
		b->clean[blk->htier]--;
}

void hawk_lru_touch(struct hawk_space *s, struct hawk_block *blk, u64 now)
{
	hawk_block_used(blk, now);
	if (blk->flags & HAWK_BF_LRU) {
		hawk_lru_del(s, blk);
		hawk_lru_add(s, blk);
	}
}
