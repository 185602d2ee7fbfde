// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * space.c - a space begins and ends
 */
#include "priv.h"

static u32 log2_ceil(u64 n)
{
	u32 l = 0;

	while ((1ull << l) < n)
		l++;
	return l;
}

static int params_check(struct hawk_engine *e, const struct hawk_space_params *p)
{
	u32 t, buckets = p->buckets ?: HAWK_BUCKETS_DEFAULT;

	if (!p->block_bytes || p->block_bytes % HAWK_FRAME_ALIGN ||
	    p->block_bytes > HAWK_CHUNK_BYTES ||
	    !p->block_tokens || p->block_tokens > 65536 ||
	    !p->max_blocks || p->max_blocks > HAWK_BLOCKS_MAX ||
	    buckets > HAWK_BUCKETS_MAX || (buckets & (buckets - 1)) || !p->vtlb)
		return -EINVAL;
	if (p->seqs > HAWK_SEQS_MAX || p->segs > HAWK_SEGS_MAX || (p->segs && !p->seqs))
		return -EINVAL;
	if (p->seqs && (!p->layers || p->layers - 1 > HAWK_LID_LAYER_MAX ||
			!p->head_groups || p->head_groups - 1 > HAWK_LID_HEAD_MAX ||
			!hawk_slice_fits(p->tp_rank, p->tp_degree, p->head_groups)))
		return -EINVAL;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (p->quota_min[t] > p->quota_max[t])
			return -EINVAL;
		if (p->quota_max[t] && (!e->tier[t].present || e->tier[t].leaving))
			return -ENOENT;
	}
	return 0;
}

/* The space's part of a tier. */
static int window_init(struct hawk_space *s, const struct hawk_space_params *p, u32 tier)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 i, fpc = s->frames_per_chunk, n = (s->max_blocks + fpc - 1) / fpc + 1;
	u32 nslots = p->quota_max[tier];

	/* a block has at most one frame per tier: more chunks are of no use */
	nslots = nslots < n ? nslots : n;
	w->quota_max = p->quota_max[tier];
	w->quota_min = p->quota_min[tier] < nslots ? p->quota_min[tier] : nslots;
	nslots = nslots < t->nchunks ? nslots : t->nchunks;
	if ((u64)nslots * fpc >= HAWK_NONE)
		return -EINVAL;
	w->slot = hawk_table_alloc(nslots, sizeof(*w->slot));
	w->frame = hawk_table_alloc((size_t)nslots * fpc, sizeof(*w->frame));
	w->nslots = nslots;
	if (!w->slot || !w->frame)
		return -ENOMEM;
	for (i = 0; i < nslots * fpc; i++) {
		w->frame[i].block = HAWK_NONE;
		w->frame[i].next = HAWK_NONE;
	}
	for (i = 0; i < nslots; i++)
		w->slot[i] = HAWK_SLOT_FREE | (i + 1 < nslots ? i + 1 : HAWK_SLOT_END);
	if (s->identity && t->pool) {
		if (s->block_bytes < t->pool->slot_bytes)
			return -EINVAL;
		if (hawk_keep_create(s, tier))
			return -ENOMEM;
	}
	return hawk_window_join(s, tier, p->insist);
}

static void buckets_init(struct hawk_space *s)
{
	u32 i, r;

	for (i = 0; i < s->nbuckets; i++) {
		struct hawk_bucket *b = &s->bucket[i];

		hawk_lock_init(&b->lock);
		hawk_lock_name(&b->lock, HAWK_LOCK_BUCKET);
		b->dying = HAWK_NONE;
		for (r = 0; r < HAWK_RES_COUNT; r++)
			b->fl[r].head = HAWK_NONE;
		for (r = 0; r < HAWK_TIERS_MAX; r++) {
			b->lru[r].mru = HAWK_NONE;
			b->lru[r].lru = HAWK_NONE;
		}
	}
	for (i = 0; i < HAWK_INDEX_SHARDS; i++) {
		hawk_lock_init(&s->shard[i].lock);
		hawk_lock_name(&s->shard[i].lock, HAWK_LOCK_SHARD);
	}
}

/* Block and LID slots are dealt evenly; the hash fills buckets evenly too. */
static void slots_deal(struct hawk_space *s)
{
	u32 i;

	for (i = s->max_blocks; i-- > 0;) {
		struct hawk_block *blk = &s->block[i];
		struct hawk_bucket *b = &s->bucket[i & (s->nbuckets - 1)];

		blk->hframe = HAWK_NONE;
		blk->fframe = HAWK_NONE;
		blk->htier = HAWK_NO_TIER;
		blk->ftier = HAWK_NO_TIER;
		blk->maps = HAWK_NONE;
		blk->lru_next = b->fl[HAWK_RES_BLOCK].head;
		b->fl[HAWK_RES_BLOCK].head = i;
		b->fl[HAWK_RES_BLOCK].n++;
	}
	for (i = s->max_maps; i-- > 0;) {
		struct hawk_bucket *b = &s->bucket[i & (s->nbuckets - 1)];

		s->map[i].next = b->fl[HAWK_RES_MAP].head;
		b->fl[HAWK_RES_MAP].head = i;
		b->fl[HAWK_RES_MAP].n++;
	}
	memset(s->head, 0xff, sizeof(*s->head) << s->log2_heads);
	memset(s->key_head, 0xff, sizeof(*s->key_head) * ((size_t)s->key_mask + 1));
}

static int tables_alloc(struct hawk_space *s, bool flash)
{
	s->bucket = hawk_table_alloc(s->nbuckets, sizeof(*s->bucket));
	s->block = hawk_table_alloc(s->max_blocks, sizeof(*s->block));
	s->key = hawk_table_alloc(s->max_blocks, sizeof(*s->key));
	s->map = hawk_table_alloc(s->max_maps, sizeof(*s->map));
	s->head = hawk_table_alloc(1u << s->log2_heads, sizeof(*s->head));
	s->key_head = hawk_table_alloc((size_t)s->key_mask + 1, sizeof(*s->key_head));
	s->shard = hawk_table_alloc(HAWK_INDEX_SHARDS, sizeof(*s->shard));
	if (!s->bucket || !s->block || !s->key || !s->map || !s->head || !s->key_head || !s->shard)
		return -ENOMEM;
	if (!flash)
		return 0;
	s->life = hawk_table_alloc(s->max_blocks, sizeof(*s->life));
	return s->life ? hawk_reuse_create(s) ?: hawk_promote_create(s) : -ENOMEM;
}

static void tables_free(struct hawk_space *s)
{
	u32 t, i;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_window *w = &s->win[t];

		hawk_keep_destroy(s, t);
		hawk_table_free(w->slot, w->nslots, sizeof(*w->slot));
		hawk_table_free(w->frame, (size_t)w->nslots * s->frames_per_chunk,
				sizeof(*w->frame));
	}
	hawk_ancestor_destroy(s);
	for (i = 0; s->bucket && i < s->nbuckets; i++)
		hawk_lock_fini(&s->bucket[i].lock);
	for (i = 0; s->shard && i < HAWK_INDEX_SHARDS; i++)
		hawk_lock_fini(&s->shard[i].lock);
	hawk_seqs_destroy(s);
	hawk_table_free(s->identity, 1, sizeof(*s->identity));
	hawk_table_free(s->bucket, s->nbuckets, sizeof(*s->bucket));
	hawk_table_free(s->block, s->max_blocks, sizeof(*s->block));
	hawk_table_free(s->key, s->max_blocks, sizeof(*s->key));
	hawk_table_free(s->life, s->max_blocks, sizeof(*s->life));
	hawk_reuse_destroy(s);
	hawk_promote_destroy(s);
	hawk_table_free(s->map, s->max_maps, sizeof(*s->map));
	hawk_table_free(s->head, 1u << s->log2_heads, sizeof(*s->head));
	hawk_table_free(s->key_head, (size_t)s->key_mask + 1, sizeof(*s->key_head));
	hawk_table_free(s->shard, HAWK_INDEX_SHARDS, sizeof(*s->shard));
	hawk_table_free(s, 1, sizeof(*s));
}

static int identity_set(struct hawk_space *s, const struct hawk_identity *id)
{
	s->identity = hawk_table_alloc(1, sizeof(*s->identity));
	if (!s->identity)
		return -ENOMEM;
	*s->identity = *id;
	return 0;
}

static bool has_flash(const struct hawk_engine *e, const struct hawk_space_params *p)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (p->quota_max[t] && e->tier[t].kind == HAWK_TIER_BLK)
			return true;
	return false;
}

static void windows_return(struct hawk_space *s)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if ((s->host_tiers | s->flash_tiers) & (1u << t))
			hawk_window_return(s, t);
}

int hawk_space_create(struct hawk_engine *e, const struct hawk_space_params *p,
		      struct hawk_space **space)
{
	struct hawk_space *s;
	u32 t;
	int ret;

	ret = params_check(e, p);
	if (ret)
		return ret;
	s = hawk_table_alloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->engine = e;
	s->block_bytes = p->block_bytes;
	s->block_tokens = p->block_tokens;
	s->frames_per_chunk = HAWK_CHUNK_BYTES / p->block_bytes;
	s->max_blocks = p->max_blocks;
	s->max_maps = 2 * p->max_blocks;
	s->nbuckets = p->buckets ?: HAWK_BUCKETS_DEFAULT;
	s->log2_buckets = log2_ceil(s->nbuckets);
	s->log2_heads = log2_ceil(2ull * s->max_maps);	/* each LID passed is a cache miss */
	if (s->log2_heads < s->log2_buckets)
		s->log2_heads = s->log2_buckets;
	s->key_mask = (1u << log2_ceil(2ull * p->max_blocks)) - 1;	/* likewise */
	s->hash_seed = hawk_random();
	s->vtlb = p->vtlb;
	s->note = p->note;
	s->due = p->due;
	s->owner = p->owner;
	s->vtlb_mask = hawk_vtlb_bytes(p->max_blocks) /
		       (HAWK_VT_WAYS * sizeof(struct hawk_vtlb_entry)) - 1;

	s->run_base = HAWK_NONE;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		s->win[t].drain = HAWK_NONE;
	if (p->identity) {
		ret = identity_set(s, p->identity);
		if (ret)
			goto err_return;
	}
	/* first, so that who is refused has not had the large tables made in vain */
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		ret = p->quota_max[t] ? window_init(s, p, t) : 0;
		if (ret)
			goto err_return;
	}
	ret = tables_alloc(s, has_flash(e, p));
	if (!ret && p->seqs)
		ret = hawk_seqs_create(s, p);
	if (ret)
		goto err_return;
	buckets_init(s);
	slots_deal(s);
	*space = s;
	return 0;

err_return:
	windows_return(s);
	tables_free(s);
	return ret;
}

void hawk_space_destroy(struct hawk_space *s)
{
	windows_return(s);
	tables_free(s);
}

u32 hawk_space_frames(const struct hawk_space *s, u32 tier)
{
	return tier < HAWK_TIERS_MAX ? s->win[tier].nslots * s->frames_per_chunk : 0;
}

u32 hawk_space_buckets(const struct hawk_space *s)
{
	return s->nbuckets;
}

u64 hawk_frame_off(struct hawk_space *s, u32 tier, u32 frame)
{
	u32 chunk = HAWK_NONE;

	if (tier < HAWK_TIERS_MAX)
		chunk = hawk_slot_chunk(&s->win[tier], frame / s->frames_per_chunk);
	if (chunk == HAWK_NONE)
		return ~0ull;
	return (u64)chunk * HAWK_CHUNK_BYTES +
	       (u64)(frame % s->frames_per_chunk) * s->block_bytes;
}
