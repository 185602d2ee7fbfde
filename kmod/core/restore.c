// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * restore.c - blocks found on flash are a space's again
 *
 * Runs while the space is being made: nobody else uses it, so blocks and frames hold still
 * between two locked sections.  Other spaces of the tier may grow meanwhile, even into an
 * orphan that was about to be adopted.
 */
#include "priv.h"

#define RESTORE_AHEAD	4	/* slots whose keys are prefetched */
#define SETTLE_AHEAD	8	/* blocks whose parents are */

void hawk_space_recovery(const struct hawk_space *s, struct hawk_recovery *r)
{
	*r = s->found;
}

/* ---- one block ---- */

/*
 * A LID that no block has: layer and head group are its own, tokens are counted through.
 * Never 0, which would be no LID.  Return: 0: they are used up.
 */
static u64 new_lid(struct hawk_space *s, const struct hawk_header *h)
{
	u64 tok = ++s->restored * s->block_tokens;

	return tok >> 32 ? 0 : HAWK_LID(0, h->layer, h->head, tok);
}

/*
 * Another block has the key already.  In one pool the younger one stays.  Each pool has a
 * clock of its own, so of two pools that cannot be told: if both have the same bytes either
 * will do, else neither is to be trusted.
 * Return: whether the block that @h tells of stays out; the other may be gone.
 */
static bool stays_out(struct hawk_space *s, u32 tier, const struct hawk_header *h)
{
	struct hawk_block *blk = hawk_index_peek(s, h->key);
	bool stays, out = true;
	u32 home;

	if (!blk)
		return false;
	home = blk->home;
	if (blk->ftier == tier)
		out = stays = s->win[tier].keep->gen[blk->fframe] >= h->gen;
	else
		stays = blk->crc == h->crc;
	if (!stays) {
		hawk_block_end(s, blk);
		s->found.blocks--;
		s->found.stale++;
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

static void block_place(struct hawk_space *s, struct hawk_bucket *b, u64 lid, u32 tier,
			u32 frame, const struct hawk_header *h, u64 now)
{
	struct hawk_block *blk = &s->block[hawk_res_pop(s, b, HAWK_RES_BLOCK)];
	u32 nr = hawk_block_nr(s, blk);

	hawk_store(&blk->home, b - s->bucket);
	blk->maps = HAWK_NONE;
	blk->nmaps = 0;
	blk->hold = 0;
	hawk_store(&blk->hint, (h->hints & HAWK_BH_TOLD) | HAWK_BH_COPY);
	hawk_store(&blk->turn, h->turn);
	hawk_store(&blk->uses, 1);
	hawk_store(&blk->atime, now);
	blk->crc = h->crc;
	memcpy(s->life[nr].parent, h->parent, HAWK_KEY_BYTES);
	s->life[nr].since = now;
	s->life[nr].away = false;
	s->life[nr].came = false;
	hawk_store(&s->life[nr].depth, hawk_depth_bin(h->tok));
	hawk_store(&s->life[nr].lot, hawk_mix(s->hash_seed + s->restored));
	hawk_block_event(blk, HAWK_EV_RESTORE);
	hawk_block_take_flash(s, blk, tier, frame);
	blk->flags |= HAWK_BF_FLASH | HAWK_BF_CRC;
	b->count[HAWK_N_BLOCKS]++;
	hawk_index_insert(s, blk, h->key);
	hawk_vtlb_set(s, hawk_map_insert(s, lid, hawk_map_chain(s, lid), blk),
		      hawk_block_vt(s, blk));
	hawk_lru_add(s, blk);
	s->win[tier].keep->gen[frame] = h->gen;
}

/* Return: 0; -EEXIST: a younger one is there; -ENOSPC. */
static int block_restore(struct hawk_space *s, u32 tier, u32 frame, const struct hawk_header *h,
			 u64 now)
{
	u64 lid = new_lid(s, h);
	u32 home = hawk_home(s, lid);

	if (stays_out(s, tier, h))
		return -EEXIST;
	if (!lid || !slots_there(s, home))
		return -ENOSPC;
	hawk_lock(&s->bucket[home].lock);
	block_place(s, &s->bucket[home], lid, tier, frame, h, now);
	hawk_unlock(&s->bucket[home].lock);
	return 0;
}

/* A header that names nothing is written anew as empty. */
static void slot_restore(struct hawk_space *s, u32 tier, u32 frame, const u8 *p,
			 const struct hawk_record *r, u64 now)
{
	struct hawk_pool *pool = s->engine->tier[tier].pool;
	struct hawk_header h;
	int ret = hawk_header_decode(p, pool->id, r, frame % s->frames_per_chunk, &h);

	s->found.slots++;
	/* what nobody can have written yet */
	if (!ret && h.gen > hawk_load(&pool->clock))
		ret = -EILSEQ;
	if (ret == -EILSEQ)
		s->found.corrupt++;
	if (!ret) {
		ret = block_restore(s, tier, frame, &h, now);
		s->found.blocks += !ret;
		s->found.stale += ret == -EEXIST;
		s->found.no_room += ret == -ENOSPC;
	}
	if (ret && ret != -ENOENT)
		hawk_keep_touch(s, tier, frame);
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

int hawk_space_adopt(struct hawk_space *s, u32 tier, const struct hawk_record *r,
		     const u8 *headers, u64 now)
{
	u32 i, fpc = s->frames_per_chunk;
	struct hawk_grant g;
	int ret;

	if (tier >= HAWK_TIERS_MAX || !s->win[tier].keep || !r->kept ||
	    r->chunk >= s->engine->tier[tier].nchunks)
		return -ENOENT;
	ret = chunk_adopt(s, tier, r, &g);
	if (ret)
		return ret;
	g.home = g.slot;
	s->found.chunks++;
	for (i = 0; i < fpc; i++) {
		if (i + RESTORE_AHEAD < fpc)
			hawk_index_prefetch(s, headers + HAWK_HEADER_KEY +
					    (size_t)(i + RESTORE_AHEAD) * HAWK_HEADER_BYTES);
		slot_restore(s, tier, g.slot * fpc + i, headers + (size_t)i * HAWK_HEADER_BYTES,
			     r, now);
	}
	hawk_space_grown(s, &g, true);	/* deals the frames that no block has */
	return 0;
}

/* ---- parents ---- */

/* In the table of parents, beside numbers of blocks */
#define NO_PARENT	HAWK_NONE		/* it needs none */
#define MISSING		(HAWK_NONE - 1)		/* it is not there */
#define ON_WAY		(HAWK_NONE - 2)		/* the search for its end has come by */

static u32 parent_of(struct hawk_space *s, u32 nr)
{
	struct hawk_block *blk = &s->block[nr], *up;
	u32 at;

	if (blk->state != HAWK_BLOCK_FLASH || !(blk->hint & HAWK_BH_PARENT))
		return NO_PARENT;
	up = hawk_index_peek(s, s->life[nr].parent);
	if (!up)
		return MISSING;
	at = hawk_block_nr(s, up);
	hawk_unlock(&hawk_bucket_of(s, up)->lock);
	hawk_ancestor_set(s, at);
	return at;
}

/*
 * Follow the chain from @nr to its end and note that for all on it.  A chain that comes
 * back to itself has no beginning that could be found either.
 */
static void resolve(u32 *up, u32 nr, u32 *path)
{
	u32 n = 0, next;

	while (up[nr] < ON_WAY) {
		next = up[nr];
		path[n++] = nr;
		up[nr] = ON_WAY;
		nr = next;
	}
	next = up[nr] == NO_PARENT ? NO_PARENT : MISSING;
	while (n)
		up[path[--n]] = next;
}

/*
 * The first to go when room is needed.  Not sooner: its parent may be in a chunk that could
 * not be read just now, in a pool that is not added yet or beyond the quota; and if it is
 * gone for good, whoever computes it again has all that follows.
 */
static void demote(struct hawk_space *s, u32 nr)
{
	struct hawk_block *blk = &s->block[nr];
	u32 home = blk->home;

	hawk_lock(&s->bucket[home].lock);
	hawk_lru_del(s, blk);
	hawk_store(&blk->atime, 0);
	hawk_lru_restore(s, blk);
	hawk_unlock(&s->bucket[home].lock);
	s->found.no_parent++;
}

int hawk_space_settle(struct hawk_space *s)
{
	u32 i, n = s->max_blocks, *up, *path;

	if (!s->found.blocks)
		return 0;
	up = hawk_table_alloc(n, sizeof(*up));
	path = hawk_table_alloc(n, sizeof(*path));
	if (up && path) {
		for (i = 0; i < n; i++) {
			if (i + SETTLE_AHEAD < n)
				hawk_index_prefetch(s, s->life[i + SETTLE_AHEAD].parent);
			up[i] = parent_of(s, i);
			hawk_relax();
		}
		for (i = 0; i < n; i++) {
			resolve(up, i, path);
			hawk_relax();
		}
		for (i = 0; i < n; i++) {
			if (up[i] == MISSING)
				demote(s, i);
			hawk_relax();
		}
	}
	i = up && path;
	hawk_table_free(up, n, sizeof(*up));
	hawk_table_free(path, n, sizeof(*path));
	return i ? 0 : -ENOMEM;
}
