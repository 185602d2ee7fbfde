// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * restore.c - blocks found on flash are a space's again
 *
 * Runs while the space is being made: nobody but those who adopt its chunks uses it.  They may
 * be several, each with chunks of his own; other spaces of the tier may grow meanwhile, even
 * into an orphan that was about to be adopted.
 *
 * A block is entries in eight tables, most of them in no cache.  So the headers of a chunk are
 * taken in batches.  Those of a batch are verified, with no lock held, and the heads of the
 * chains that they will be on are fetched; when the batch before has become blocks, what is
 * first on those chains and on free lists is fetched; and while that comes, the next batch is
 * verified.
 */
#include "priv.h"

#define RESTORE_BATCH	16u	/* headers: some misses each, as many as a CPU has under way */

/* A header that is whole. */
struct restore_item {
	u64 lid;		/* that it will have, 0: none is left */
	u32 chain;		/* of the LID */
	u32 slot;		/* in the chunk */
};

struct restore_batch {
	u32 n;
	struct restore_item item[RESTORE_BATCH];
	u64 hash[RESTORE_BATCH];	/* of their keys */
};

/* A chunk whose headers become blocks. */
struct restore {
	struct hawk_space *s;
	u32 tier;
	u32 frame;		/* of its first slot */
	const struct hawk_record *r;
	const u8 *headers;
	u64 now;
	struct hawk_recovery found;
	struct restore_batch batch[2];
};

void hawk_space_recovery(const struct hawk_space *s, struct hawk_recovery *r)
{
	*r = s->found;
}

/* Return: what it was before. */
static u64 count(u64 *counter, u64 n)
{
	u64 old;

	do
		old = hawk_load(counter);
	while (!hawk_cas64(counter, old, old + n));
	return old;
}

/* ---- one block ---- */

/*
 * A LID that no block has: layer and head group are its own, tokens are counted through.
 * Never 0, which would be no LID.  Return: 0: they are used up.
 */
static u64 lid_of(const struct hawk_space *s, const struct hawk_header *h, u64 number)
{
	u64 tok = number * s->block_tokens;

	return tok >> 32 ? 0 : HAWK_LID(0, h->layer, h->head, tok);
}

/*
 * Another block has the key already.  In one pool the younger one stays.  Each pool has a
 * clock of its own, so of two pools that cannot be told: if both have the same bytes either
 * will do, else neither is to be trusted.
 * Return: whether the block that @h tells of stays out; the other may be gone.
 */
static bool stays_out(struct restore *c, const struct hawk_header *h)
{
	struct hawk_space *s = c->s;
	struct hawk_block *blk = hawk_index_peek(s, h->key);
	bool stays, out = true;
	u32 home;

	if (!blk)
		return false;
	home = blk->home;
	if (blk->ftier == c->tier)
		out = stays = s->win[c->tier].keep->gen[blk->fframe] >= h->gen;
	else
		stays = blk->crc == h->crc;
	if (!stays) {
		hawk_block_end(s, blk);
		c->found.blocks--;
		c->found.stale++;
	}
	hawk_unlock(&s->bucket[home].lock);
	hawk_map_reap(s, home);
	return out;
}

/* See that bucket @b has a slot for a block and one for a LID. */
static bool slots_there(struct hawk_space *s, u32 b)
{
	u32 res;

	for (res = HAWK_RES_BLOCK; res <= HAWK_RES_MAP; res++)
		if (!hawk_load(&s->bucket[b].fl[res].n) &&
		    !hawk_res_refill(s, b, res, s->nbuckets))
			return false;
	return true;
}

static void block_fill(struct restore *c, struct hawk_block *blk, const struct hawk_header *h,
		       const struct restore_item *it)
{
	struct hawk_space *s = c->s;
	struct hawk_life *life = &s->life[hawk_block_nr(s, blk)];
	u32 frame = c->frame + it->slot;

	blk->maps = HAWK_NONE;
	blk->nmaps = 0;
	blk->hold = 0;
	hawk_store(&blk->hint, (h->hints & HAWK_BH_TOLD) | HAWK_BH_COPY);
	hawk_store(&blk->turn, h->turn);
	hawk_store(&blk->uses, 1);
	hawk_store(&blk->atime, c->now);
	blk->crc = h->crc;
	memcpy(life->parent, h->parent, HAWK_KEY_BYTES);
	life->since = c->now;
	life->away = false;
	life->came = false;
	hawk_store(&life->depth, hawk_depth_bin(h->tok));
	hawk_store(&life->lot, hawk_mix(s->hash_seed + hawk_lid_tok(it->lid) / s->block_tokens));
	hawk_block_event(blk, HAWK_EV_RESTORE);
	hawk_block_take_flash(s, blk, c->tier, frame);
	blk->flags |= HAWK_BF_FLASH | HAWK_BF_CRC;
	hawk_vtlb_set(s, hawk_map_insert(s, it->lid, it->chain, blk), hawk_block_vt(s, blk));
	hawk_lru_add(s, blk);
	s->win[c->tier].keep->gen[frame] = h->gen;
}

/* Return: 0; -EEXIST: another one has the key; -ENOBUFS: its bucket has no slots. */
static int block_place(struct restore *c, const struct hawk_header *h,
		       const struct restore_item *it, u64 hash)
{
	struct hawk_space *s = c->s;
	struct hawk_bucket *b = &s->bucket[hawk_chain_home(s, it->chain)];
	struct hawk_block *blk;
	int ret = -ENOBUFS;

	hawk_lock(&b->lock);
	if (b->fl[HAWK_RES_BLOCK].n && b->fl[HAWK_RES_MAP].n) {
		blk = &s->block[hawk_res_pop(s, b, HAWK_RES_BLOCK)];
		hawk_store(&blk->home, b - s->bucket);
		ret = hawk_index_insert_hash(s, blk, h->key, hash);
		if (ret) {
			hawk_res_push(s, b, HAWK_RES_BLOCK, hawk_block_nr(s, blk));
		} else {
			b->count[HAWK_N_BLOCKS]++;
			block_fill(c, blk, h, it);
		}
	}
	hawk_unlock(&b->lock);
	return ret;
}

/* Return: 0; -EEXIST: a younger one is there; -ENOSPC. */
static int block_restore(struct restore *c, const struct hawk_header *h,
			 const struct restore_item *it, u64 hash)
{
	int ret = it->lid ? block_place(c, h, it, hash) : -ENOBUFS;

	while (ret) {
		if (stays_out(c, h))
			return -EEXIST;
		if (ret == -ENOBUFS &&
		    (!it->lid || !slots_there(c->s, hawk_chain_home(c->s, it->chain))))
			return -ENOSPC;
		ret = block_place(c, h, it, hash);
	}
	return 0;
}

/* ---- a batch of headers ---- */

/* A header that names no block is written anew as empty. */
static void touch(struct restore *c, u32 slot)
{
	hawk_keep_touch(c->s, c->tier, c->frame + slot);
}

static const u8 *header_at(const struct restore *c, u32 slot)
{
	return c->headers + (size_t)slot * HAWK_HEADER_BYTES;
}

/* Those of the next RESTORE_BATCH slots from @at on that are whole. */
static void batch_verify(struct restore *c, struct restore_batch *b, u32 at)
{
	struct hawk_pool *pool = c->s->engine->tier[c->tier].pool;
	u32 end = at + RESTORE_BATCH;
	struct hawk_header h;
	int ret;

	b->n = 0;
	for (; at < end && at < c->s->frames_per_chunk; at++) {
		ret = hawk_header_decode(header_at(c, at), pool->id, c->r, at, &h);
		c->found.slots++;
		/* what nobody can have written yet */
		if (!ret && h.gen > hawk_load(&pool->clock))
			ret = -EILSEQ;
		c->found.corrupt += ret == -EILSEQ;
		if (!ret) {
			b->item[b->n].slot = at;
			b->hash[b->n++] = hawk_index_hash(c->s, h.key);
		} else if (ret != -ENOENT) {
			touch(c, at);
		}
	}
}

/* They get LIDs. */
static void batch_name(struct restore *c, struct restore_batch *b)
{
	u64 number = count(&c->s->restored, b->n);
	struct hawk_space *s = c->s;
	struct hawk_header h;
	u32 i;

	for (i = 0; i < b->n; i++) {
		struct restore_item *it = &b->item[i];

		hawk_header_read(header_at(c, it->slot), &h);
		it->lid = lid_of(s, &h, ++number);
		it->chain = hawk_map_chain(s, it->lid);
		hawk_prefetch(&s->head[it->chain]);
		hawk_vtlb_prefetch(s, it->lid);
	}
	hawk_index_prefetch(s, b->hash, b->n);
}

/* What the next block and the next LID of a bucket are kept in. */
static void room_prefetch(struct hawk_space *s, u32 home)
{
	u32 blk = hawk_load(&s->bucket[home].fl[HAWK_RES_BLOCK].head);
	u32 map = hawk_load(&s->bucket[home].fl[HAWK_RES_MAP].head);

	if (blk != HAWK_NONE) {
		hawk_prefetch(&s->block[blk]);
		hawk_prefetch(&s->key[blk]);
		hawk_prefetch(&s->life[blk]);
		hawk_prefetch(&s->life[blk].came);	/* may be in the next line */
	}
	if (map != HAWK_NONE)
		hawk_prefetch(&s->map[map]);
}

/* The heads of their chains have come: what is there next is fetched. */
static void batch_prefetch(struct restore *c, const struct restore_batch *b)
{
	struct hawk_space *s = c->s;
	u32 i, map;

	hawk_index_prefetch_first(s, b->hash, b->n);
	for (i = 0; i < b->n; i++) {
		room_prefetch(s, hawk_chain_home(s, b->item[i].chain));
		map = hawk_load(&s->head[b->item[i].chain]);
		if (map != HAWK_NONE)
			hawk_prefetch(&s->map[map]);
	}
}

static void batch_place(struct restore *c, const struct restore_batch *b)
{
	struct hawk_header h;
	u32 i;
	int ret;

	for (i = 0; i < b->n; i++) {
		hawk_header_read(header_at(c, b->item[i].slot), &h);
		ret = block_restore(c, &h, &b->item[i], b->hash[i]);
		c->found.blocks += !ret;
		c->found.stale += ret == -EEXIST;
		c->found.no_room += ret == -ENOSPC;
		if (ret)
			touch(c, b->item[i].slot);
	}
}

static void headers_restore(struct restore *c)
{
	u32 i, n = (c->s->frames_per_chunk + RESTORE_BATCH - 1) / RESTORE_BATCH;

	for (i = 0; i <= n; i++) {
		struct restore_batch *next = &c->batch[i % 2];

		batch_verify(c, next, i * RESTORE_BATCH);
		batch_name(c, next);
		batch_place(c, &c->batch[(i + 1) % 2]);
		batch_prefetch(c, next);
	}
}

/* ---- a chunk ---- */

/* Take the chunk for the space. */
static int chunk_adopt(struct hawk_space *s, u32 tier, const struct hawk_record *r,
		       struct hawk_grant *g)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_pool *p = t->pool;
	int ret = 0;

	if (!hawk_identity_same(&r->owner, s->identity))
		return -ENOENT;
	hawk_lock(&t->lock);
	if (t->chunk[r->chunk].state != HAWK_CHUNK_ORPHAN || p->chunk[r->chunk].epoch != r->epoch)
		ret = -ENOENT;
	else if (!hawk_window_take(s, tier, r->chunk, g))
		ret = -ENOSPC;
	hawk_unlock(&t->lock);
	return ret;
}

/* What a chunk had is added to what the others had. */
static void found_add(struct hawk_space *s, const struct hawk_recovery *r)
{
	count(&s->found.chunks, 1);
	count(&s->found.slots, r->slots);
	count(&s->found.blocks, r->blocks);
	count(&s->found.corrupt, r->corrupt);
	count(&s->found.stale, r->stale);
	count(&s->found.no_room, r->no_room);
}

int hawk_space_adopt(struct hawk_space *s, u32 tier, const struct hawk_record *r,
		     const u8 *headers, u64 now)
{
	struct restore c = { .s = s, .tier = tier, .r = r, .headers = headers, .now = now };
	struct hawk_grant g;
	int ret;

	if (tier >= HAWK_TIERS_MAX || !s->win[tier].keep || !r->kept ||
	    r->chunk >= s->engine->tier[tier].nchunks)
		return -ENOENT;
	ret = chunk_adopt(s, tier, r, &g);
	if (ret)
		return ret;
	g.home = g.slot;
	c.frame = g.slot * s->frames_per_chunk;
	headers_restore(&c);
	found_add(s, &c.found);
	hawk_space_grown(s, &g, true);	/* deals the frames that no block has */
	return 0;
}
