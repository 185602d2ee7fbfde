// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * estimate.c - reload or recompute: how many blocks of a prompt are best brought
 *
 * The blocks are only looked at.  For each row of the prefix the time to bring all up to it
 * is estimated, and the time to compute the rest is added: the least sum is the answer.  The
 * two are taken to happen one after the other, since computing needs what is brought.
 */
#include "priv.h"

/* Where a block is that could be brought: its tier; HAWK_NONE: nowhere. */
static u32 place_of(struct hawk_space *s, const struct hawk_item *it, bool *flash)
{
	bool by_key = it->flags & HAWK_ITEM_BY_KEY;
	struct hawk_block *blk;
	u32 tier = HAWK_NONE;

	blk = by_key ? hawk_index_peek(s, it->key) :
		       hawk_lid_lock(s, hawk_lid_block(it->lid, s->block_tokens));
	if (!blk)
		return HAWK_NONE;
	*flash = blk->state == HAWK_BLOCK_FLASH || blk->state == HAWK_BLOCK_RELOADING;
	if (*flash)
		tier = blk->ftier;
	else if (blk->state == HAWK_BLOCK_READY || blk->state == HAWK_BLOCK_EVICTING)
		tier = blk->htier;
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return tier;
}

void hawk_space_load(struct hawk_space *s, const struct hawk_item *items, u32 n,
		     struct hawk_pace_load *load)
{
	bool flash = false;
	u32 i, tier;

	for (i = 0; i < n; i++) {
		tier = place_of(s, &items[i], &flash);
		if (tier != HAWK_NONE && flash)
			load->flash[tier] += s->block_bytes;
		else if (tier != HAWK_NONE && load->link)
			load->dram += s->block_bytes;
		if (!(i % 64))
			hawk_relax();
	}
}

/* Time to compute @rows rows, 0 if the rate is not known. */
static u64 compute_ns(const struct hawk_space *s, const struct hawk_estimate *e, u64 rows)
{
	u64 tokens = rows * s->block_tokens;

	return e->tokens_per_s ? div_u64(tokens * 1000000000, e->tokens_per_s) : 0;
}

/* All up to item @i are there: is it better to bring them and compute the rest? */
static void try_split(struct hawk_space *s, struct hawk_estimate *e,
		      const struct hawk_pace_load *load, u32 n, u64 now)
{
	u64 sum, ns = hawk_pace_estimate(&s->engine->pace, load, now);

	e->prefix = n;
	e->reload_ns = ns;
	if (check_add_overflow(ns, compute_ns(s, e, (e->count - n) / e->row), &sum))
		return;
	if (sum > e->split_ns && e->tokens_per_s)
		return;
	e->split = n;
	e->split_ns = sum;
}

int hawk_space_estimate(struct hawk_space *s, struct hawk_estimate *e,
			const struct hawk_item *items, u64 now)
{
	struct hawk_pace_load load = { .link = e->flags & HAWK_ESTIMATE_GATHER };
	bool gather = e->flags & HAWK_ESTIMATE_GATHER, whole = true, flash = false;
	u32 i, tier;

	e->row = e->row ? e->row : 1;
	if (!e->count || e->row > e->count || e->count % e->row)
		return -EINVAL;
	for (i = 0; i < e->count; i++)
		if (items[i].flags & ~HAWK_ITEM_BY_KEY)
			return -EOPNOTSUPP;
	e->dram = 0;
	e->flash = 0;
	e->missing = 0;
	e->prefix = 0;
	e->split = 0;
	e->reload_ns = 0;
	e->recompute_ns = compute_ns(s, e, e->count / e->row);
	e->split_ns = e->recompute_ns;
	for (i = 0; i < e->count; i++) {
		tier = place_of(s, &items[i], &flash);
		if (tier == HAWK_NONE) {
			e->missing++;
			whole = false;
		} else if (flash) {
			e->flash++;
			load.flash[tier] += s->block_bytes;
		} else {
			e->dram++;
			load.dram += gather ? s->block_bytes : 0;
		}
		if (whole && !((i + 1) % e->row))
			try_split(s, e, &load, i + 1, now);
		if (!(i % 64))
			hawk_relax();
	}
	e->dram_bytes = (u64)e->dram * s->block_bytes;
	e->flash_bytes = (u64)e->flash * s->block_bytes;
	return 0;
}

struct hawk_pace_counts *hawk_space_paced(struct hawk_space *s)
{
	return &s->paced;
}
