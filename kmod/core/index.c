// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * index.c - key -> block, within one space
 *
 * Chains in shards, each with its lock.  Insertion and removal happen with the
 * block's home bucket locked (bucket > shard); a look-up takes the shard first,
 * lets it go, locks the bucket and checks that the block still has the key.
 */
#include "priv.h"

/* Keys are hashes, but nothing obliges a caller to choose good ones. */
u64 hawk_index_hash(const struct hawk_space *s, const u8 *key)
{
	u64 h = s->hash_seed, w;
	u32 i;

	for (i = 0; i < HAWK_KEY_BYTES; i += sizeof(w)) {
		memcpy(&w, key + i, sizeof(w));
		h = hawk_mix(h ^ w);
	}
	return h;
}

static struct hawk_shard *key_shard(struct hawk_space *s, u64 hash)
{
	return &s->shard[(hash & s->key_mask) & (HAWK_INDEX_SHARDS - 1)];
}

static u32 chain_find(struct hawk_space *s, u64 hash, const u8 *key)
{
	u32 nr;

	for (nr = s->key_head[hash & s->key_mask]; nr != HAWK_NONE; nr = s->block[nr].key_next)
		if (!memcmp(s->key[nr].b, key, HAWK_KEY_BYTES))
			return nr;
	return HAWK_NONE;
}

/* Keys with hashes @hash[0..n) will be looked for: where their chains begin. */
void hawk_index_prefetch(const struct hawk_space *s, const u64 *hash, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		hawk_prefetch(&s->key_head[hash[i] & s->key_mask]);
}

/* That has come: what is first on them. */
void hawk_index_prefetch_first(const struct hawk_space *s, const u64 *hash, u32 n)
{
	u32 i, nr;

	for (i = 0; i < n; i++) {
		nr = hawk_load(&s->key_head[hash[i] & s->key_mask]);
		if (nr == HAWK_NONE)
			continue;
		hawk_prefetch(&s->key[nr]);
		hawk_prefetch(&s->block[nr]);
	}
}

/* @hash is that of @key.  Return: 0 or -EEXIST. */
int hawk_index_insert_hash(struct hawk_space *s, struct hawk_block *blk, const u8 *key, u64 hash)
{
	struct hawk_shard *sh = key_shard(s, hash);
	u32 *head = &s->key_head[hash & s->key_mask];
	int ret = 0;

	hawk_assert_held(&hawk_bucket_of(s, blk)->lock);
	hawk_lock(&sh->lock);
	if (chain_find(s, hash, key) != HAWK_NONE) {
		ret = -EEXIST;
	} else {
		if (hawk_learns(s))
			hawk_ghost_back(s, blk, hash);
		memcpy(hawk_block_key(s, blk), key, HAWK_KEY_BYTES);
		blk->key_next = *head;
		hawk_store(head, hawk_block_nr(s, blk));
		blk->flags |= HAWK_BF_KEY;
	}
	hawk_unlock(&sh->lock);
	return ret;
}

/* Return: 0 or -EEXIST. */
int hawk_index_insert(struct hawk_space *s, struct hawk_block *blk, const u8 *key)
{
	return hawk_index_insert_hash(s, blk, key, hawk_index_hash(s, key));
}

void hawk_index_remove(struct hawk_space *s, struct hawk_block *blk)
{
	struct hawk_shard *sh;
	u32 nr = hawk_block_nr(s, blk), *p;
	u64 hash;

	hawk_assert_held(&hawk_bucket_of(s, blk)->lock);
	if (!(blk->flags & HAWK_BF_KEY))
		return;
	hash = hawk_index_hash(s, hawk_block_key(s, blk));
	sh = key_shard(s, hash);
	hawk_lock(&sh->lock);
	for (p = &s->key_head[hash & s->key_mask]; *p != nr; p = &s->block[*p].key_next)
		;
	hawk_store(p, blk->key_next);
	hawk_unlock(&sh->lock);
	blk->flags &= ~HAWK_BF_KEY;
}

/* @hash is that of @key.  Return: number of the block with that key, or HAWK_NONE. */
u32 hawk_index_find(struct hawk_space *s, const u8 *key, u64 hash)
{
	struct hawk_shard *sh = key_shard(s, hash);
	u32 nr;

	hawk_lock(&sh->lock);
	nr = chain_find(s, hash, key);
	hawk_unlock(&sh->lock);
	return nr;
}

/*
 * What is known of the block with a key, without its lock.
 * @g: out, if there is none: its ghost, if there is one
 * Return: its number or HAWK_NONE.
 */
u32 hawk_index_about(struct hawk_space *s, const u8 *key, u64 now, struct hawk_ghost *g)
{
	u64 hash = hawk_index_hash(s, key);
	struct hawk_shard *sh = key_shard(s, hash);
	u32 nr;

	hawk_lock(&sh->lock);
	nr = chain_find(s, hash, key);
	if (nr == HAWK_NONE)
		hawk_ghost_get(s->reuse, hash, now, g);
	hawk_unlock(&sh->lock);
	return nr;
}

/* A block is about to be forgotten: what was learnt of it is kept under its key. */
void hawk_index_forget(struct hawk_space *s, struct hawk_block *blk)
{
	struct hawk_shard *sh;
	u64 hash;

	if (!hawk_learns(s) || !(blk->flags & HAWK_BF_KEY))
		return;
	hash = hawk_index_hash(s, hawk_block_key(s, blk));
	sh = key_shard(s, hash);
	hawk_lock(&sh->lock);
	hawk_ghost_put(s, blk, hash);
	hawk_unlock(&sh->lock);
}

static struct hawk_block *index_lock(struct hawk_space *s, const u8 *key, bool count)
{
	u64 hash = hawk_index_hash(s, key);
	struct hawk_shard *sh = key_shard(s, hash);
	struct hawk_bucket *b = NULL;
	struct hawk_block *blk = NULL;
	u32 nr, gen = 0;

	hawk_lock(&sh->lock);
	nr = chain_find(s, hash, key);
	if (nr != HAWK_NONE) {
		/* a block in the index is not buried: home and gen hold still */
		blk = &s->block[nr];
		gen = blk->gen;
		b = hawk_bucket_of(s, blk);
	} else {
		sh->misses += count;
	}
	hawk_unlock(&sh->lock);
	if (!blk)
		return NULL;
	hawk_lock(&b->lock);
	if (hawk_load(&blk->gen) == gen && hawk_bucket_of(s, blk) == b &&
	    (blk->flags & HAWK_BF_KEY) && !memcmp(hawk_block_key(s, blk), key, HAWK_KEY_BYTES))
		return blk;
	hawk_unlock(&b->lock);
	return NULL;
}

/*
 * Find a block by key.
 * Return: the block with its home bucket locked, or NULL with nothing locked.
 */
struct hawk_block *hawk_index_lock(struct hawk_space *s, const u8 *key)
{
	return index_lock(s, key, true);
}

/* The same for the engine's own look-ups: no client has missed anything. */
struct hawk_block *hawk_index_peek(struct hawk_space *s, const u8 *key)
{
	return index_lock(s, key, false);
}
