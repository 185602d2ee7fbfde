// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * map.c - LID -> block
 *
 * Chains of LIDs, each guarded by the bucket that the LID hashes to.  A block
 * lives under its home bucket, that of its first LID; LIDs added by fork may
 * lie in other buckets.
 */
#include "priv.h"

/* The bucket of the LID of @m. */
static inline u32 map_home(const struct hawk_space *s, const struct hawk_map *m)
{
	return hawk_chain_home(s, m->chain);
}

/* @chain is that of @lid. */
struct hawk_map *hawk_map_find(struct hawk_space *s, u64 lid, u32 chain)
{
	u32 m;

	hawk_assert_held(&s->bucket[hawk_chain_home(s, chain)].lock);
	for (m = s->head[chain]; m != HAWK_NONE; m = s->map[m].next)
		if (s->map[m].lid == lid)
			return &s->map[m];
	return NULL;
}

/* Both the LID's bucket and the block's home are locked; a map is free. */
struct hawk_map *hawk_map_insert(struct hawk_space *s, u64 lid, u32 chain,
				 struct hawk_block *blk)
{
	u32 nr = hawk_res_pop(s, &s->bucket[hawk_chain_home(s, chain)], HAWK_RES_MAP);
	struct hawk_map *m = &s->map[nr];

	hawk_store(&m->lid, lid);
	if (hawk_lid_is_run(s, lid))
		hawk_run_count(s, lid, 1);
	m->block = hawk_block_nr(s, blk);
	m->chain = chain;
	m->way = HAWK_NONE;
	hawk_store(&m->prev, HAWK_NONE);
	m->next = s->head[chain];
	if (m->next != HAWK_NONE)
		hawk_store(&s->map[m->next].prev, nr);
	hawk_store(&s->head[chain], nr);
	m->alias = blk->maps;
	blk->maps = nr;
	blk->nmaps++;
	return m;
}

/* Take the LID at *@at, a link of its block's list, away. */
static void map_remove_at(struct hawk_space *s, struct hawk_block *blk, u32 *at)
{
	u32 nr = *at;
	struct hawk_map *m = &s->map[nr];

	*at = m->alias;
	blk->nmaps--;
	if (m->prev != HAWK_NONE)
		s->map[m->prev].next = m->next;
	else
		hawk_store(&s->head[m->chain], m->next);
	if (m->next != HAWK_NONE)
		hawk_store(&s->map[m->next].prev, m->prev);
	if (hawk_lid_is_run(s, m->lid))
		hawk_run_count(s, m->lid, -1);
	hawk_res_push(s, &s->bucket[map_home(s, m)], HAWK_RES_MAP, nr);
}

/* Both the LID's bucket and the block's home are locked. */
void hawk_map_remove(struct hawk_space *s, struct hawk_map *m)
{
	struct hawk_block *blk = &s->block[m->block];
	u32 nr = m - s->map, *at;

	for (at = &blk->maps; *at != nr; at = &s->map[*at].alias)
		;
	map_remove_at(s, blk, at);
}

/* Take away all LIDs of a block that lie in its home bucket, in one pass. */
void hawk_map_remove_home(struct hawk_space *s, struct hawk_block *blk)
{
	u32 *at = &blk->maps;

	while (*at != HAWK_NONE)
		if (map_home(s, &s->map[*at]) == blk->home)
			map_remove_at(s, blk, at);
		else
			at = &s->map[*at].alias;
}

/*
 * Find the live block of a LID.
 * Return: the block with its home bucket locked, or NULL with nothing locked.
 */
struct hawk_block *hawk_lid_lock(struct hawk_space *s, u64 lid)
{
	u32 gen, chain = hawk_map_chain(s, lid);
	struct hawk_bucket *b = &s->bucket[hawk_chain_home(s, chain)];
	struct hawk_block *blk;
	struct hawk_map *m;

	hawk_lock(&b->lock);
	m = hawk_map_find(s, lid, chain);
	if (!m) {
		hawk_unlock(&b->lock);
		return NULL;
	}
	blk = &s->block[m->block];
	if (hawk_bucket_of(s, blk) != b) {
		/* a block with a LID is not buried: home and gen hold still */
		gen = blk->gen;
		hawk_unlock(&b->lock);
		b = hawk_bucket_of(s, blk);
		hawk_lock(&b->lock);
		if (hawk_load(&blk->gen) != gen || hawk_bucket_of(s, blk) != b) {
			hawk_unlock(&b->lock);
			return NULL;
		}
	}
	if (blk->state == HAWK_BLOCK_DYING || blk->state == HAWK_BLOCK_FREE) {
		hawk_unlock(&b->lock);
		return NULL;
	}
	return blk;
}

void hawk_pair_lock(struct hawk_space *s, u32 a, u32 b)
{
	hawk_lock(&s->bucket[a < b ? a : b].lock);
	if (a != b)
		hawk_lock_nested(&s->bucket[a < b ? b : a].lock);
}

void hawk_pair_unlock(struct hawk_space *s, u32 a, u32 b)
{
	hawk_unlock(&s->bucket[a < b ? b : a].lock);
	if (a != b)
		hawk_unlock(&s->bucket[a < b ? a : b].lock);
}

/*
 * Bury ended blocks of bucket @home that still had LIDs in other buckets.  A
 * block taken off the dying list is this thread's alone.  No lock is held.
 */
void hawk_map_reap_all(struct hawk_space *s, u32 home)
{
	struct hawk_bucket *b = &s->bucket[home];
	struct hawk_block *blk;
	struct hawk_map *m;
	u32 other;

	while (hawk_load(&b->dying) != HAWK_NONE) {
		hawk_lock(&b->lock);
		if (b->dying == HAWK_NONE) {
			hawk_unlock(&b->lock);
			return;
		}
		blk = &s->block[b->dying];
		hawk_store(&b->dying, blk->lru_next);
		hawk_unlock(&b->lock);

		while (blk->nmaps) {
			m = &s->map[blk->maps];
			other = map_home(s, m);
			hawk_pair_lock(s, home, other);
			hawk_map_remove(s, m);
			hawk_pair_unlock(s, home, other);
		}
		hawk_lock(&b->lock);
		hawk_block_bury(s, blk);
		hawk_unlock(&b->lock);
	}
}
