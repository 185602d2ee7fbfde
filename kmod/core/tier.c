// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * tier.c - tiers and the states of their chunks
 *
 * FREE -> OWNED (a space grows) -> DIRTY (the space ended, or the chunk was taken from
 * it) -> FREE (the host zeroed it).  A chunk whose memory the host could not provide
 * goes from OWNED back to FREE.  Who may have a free chunk is told in grow.c; persistent
 * tiers have one state more (pool.c).
 */
#include "admit.h"

struct hawk_engine *hawk_engine_create(void)
{
	struct hawk_engine *e = hawk_table_alloc(1, sizeof(*e));
	u32 i;

	if (!e)
		return NULL;
	hawk_pace_init(&e->pace);
	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		hawk_lock_init(&e->tier[i].lock);
		hawk_lock_name(&e->tier[i].lock, HAWK_LOCK_TIER);
		hawk_lock_init(&e->tier[i].budget.lock);
		hawk_lock_name(&e->tier[i].budget.lock, HAWK_LOCK_BUDGET);
	}
	return e;
}

void hawk_engine_destroy(struct hawk_engine *e)
{
	u32 i;

	if (!e)
		return;
	hawk_pace_fini(&e->pace);
	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		hawk_assert(!e->tier[i].nspaces);
		hawk_pool_free(&e->tier[i], e->tier[i].nchunks);
		hawk_table_free(e->tier[i].chunk, e->tier[i].nchunks, sizeof(struct hawk_chunk));
		hawk_lock_fini(&e->tier[i].lock);
		hawk_lock_fini(&e->tier[i].budget.lock);
	}
	hawk_table_free(e, 1, sizeof(*e));
}

u32 hawk_chunks(u64 bytes)
{
	u64 n = bytes / HAWK_CHUNK_BYTES;

	return n > 0x7fffffff ? 0x7fffffff : n;
}

int hawk_tier_add(struct hawk_engine *e, u32 kind, u32 chunks, u32 *tier)
{
	struct hawk_chunk *chunk;
	struct hawk_tier *t;
	u32 id, i;

	if (!chunks || chunks > 0x7fffffff ||
	    (kind != HAWK_TIER_HOST && kind != HAWK_TIER_BLK &&
	     kind != HAWK_TIER_DMABUF && kind != HAWK_TIER_MODEL && kind != HAWK_TIER_USER &&
	     kind != HAWK_TIER_BAR))
		return -EINVAL;
	for (id = 0; id < HAWK_TIERS_MAX; id++)
		if (!e->tier[id].present)
			break;
	if (id == HAWK_TIERS_MAX)
		return -ENOSPC;
	chunk = hawk_table_alloc(chunks, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	for (i = 0; i < chunks; i++)
		chunk[i].next = i + 1 < chunks ? i + 1 : HAWK_NONE;

	hawk_pace_new_tier(&e->pace, id);
	t = &e->tier[id];
	hawk_lock(&t->lock);
	t->chunk = chunk;
	t->kind = kind;
	t->nchunks = chunks;
	t->nfree = chunks;
	t->ndirty = 0;
	hawk_store(&t->leaving, false);
	hawk_store(&t->lost, false);
	hawk_store(&t->avail, chunks);
	t->minima = 0;
	hawk_store(&t->reserved, 0);
	hawk_store(&t->claimed, 0);
	t->insisting = 0;
	t->free = 0;
	t->admit = HAWK_ADMIT_REUSE;
	t->rated = 0;
	hawk_budget_clear(&t->budget);
	hawk_health_clear(&t->health);
	t->present = true;
	hawk_unlock(&t->lock);
	*tier = id;
	return 0;
}

int hawk_tier_remove(struct hawk_engine *e, u32 tier)
{
	struct hawk_chunk *chunk;
	struct hawk_tier *t;
	u32 n;

	if (tier >= HAWK_TIERS_MAX)
		return -ENOENT;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	if (!t->present || t->nspaces || t->nfree != t->nchunks) {
		int ret = t->present ? -EBUSY : -ENOENT;

		hawk_unlock(&t->lock);
		return ret;
	}
	chunk = t->chunk;
	n = t->nchunks;
	t->chunk = NULL;
	t->nchunks = 0;
	t->nfree = 0;
	hawk_store(&t->avail, 0);
	t->present = false;
	hawk_unlock(&t->lock);
	hawk_pool_free(t, n);
	hawk_table_free(chunk, n, sizeof(*chunk));
	return 0;
}

int hawk_tier_usage(struct hawk_engine *e, u32 tier, u32 *total, u32 *free, u32 *dirty)
{
	struct hawk_tier *t;
	int ret = -ENOENT;

	if (tier >= HAWK_TIERS_MAX)
		return -ENOENT;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	if (t->present) {
		if (total)
			*total = t->nchunks;
		if (free)
			*free = t->nfree;
		if (dirty)
			*dirty = t->ndirty;
		ret = 0;
	}
	hawk_unlock(&t->lock);
	return ret;
}

u32 hawk_tier_minima(struct hawk_engine *e, u32 tier)
{
	u32 n;

	if (tier >= HAWK_TIERS_MAX)
		return 0;
	hawk_lock(&e->tier[tier].lock);
	n = e->tier[tier].minima;
	hawk_unlock(&e->tier[tier].lock);
	return n;
}

u32 hawk_tier_next_dirty(struct hawk_engine *e, u32 tier, u32 after)
{
	u32 i = after == HAWK_NONE ? 0 : after + 1, end = 0, found = HAWK_NONE;
	struct hawk_tier *t;
	bool more;

	if (tier >= HAWK_TIERS_MAX)
		return HAWK_NONE;
	t = &e->tier[tier];
	do {
		hawk_lock(&t->lock);
		end = t->nchunks - i < HAWK_TIER_SLICE ? t->nchunks : i + HAWK_TIER_SLICE;
		more = t->ndirty && i < t->nchunks;
		for (; more && i < end; i++)
			if (t->chunk[i].state == HAWK_CHUNK_DIRTY) {
				found = i;
				break;
			}
		hawk_unlock(&t->lock);
	} while (more && found == HAWK_NONE);
	return found;
}

void hawk_tier_clean(struct hawk_engine *e, u32 tier, u32 chunk)
{
	struct hawk_tier *t;
	bool kept = false;

	if (tier >= HAWK_TIERS_MAX)
		return;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	if (chunk < t->nchunks && t->chunk[chunk].state == HAWK_CHUNK_DIRTY) {
		t->ndirty--;
		if (t->pool) {
			kept = t->pool->chunk[chunk].space;
			t->pool->chunk[chunk].space = 0;
		}
		hawk_chunk_free(t, chunk);
	}
	hawk_unlock(&t->lock);
	if (kept)
		hawk_admit_charge(t, HAWK_POOL_PAGE);	/* its record said so, until now */
}

int hawk_tier_leave(struct hawk_engine *e, u32 tier, bool leaving)
{
	struct hawk_tier *t;
	int ret = -ENOENT;

	if (tier >= HAWK_TIERS_MAX)
		return -ENOENT;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	if (t->present) {
		hawk_store(&t->leaving, leaving);
		hawk_store(&t->avail, leaving ? 0 : t->nfree);
		if (!leaving && !t->lost)
			hawk_health_clear(&t->health);
		ret = 0;
	}
	hawk_unlock(&t->lock);
	return ret;
}

void hawk_tier_lost(struct hawk_engine *e, u32 tier)
{
	struct hawk_tier *t;

	if (tier >= HAWK_TIERS_MAX)
		return;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	hawk_store(&t->lost, t->present);
	if (t->present)
		hawk_store(&t->health.state, HAWK_HEALTH_LOST);
	hawk_unlock(&t->lock);
}

/* Bit per host tier of the space that can take a block. */
u32 hawk_good_tiers(const struct hawk_space *s)
{
	u32 all = hawk_load(&s->host_tiers), good = all, t;

	for (t = 0; all >> t; t++)
		if (all & 1u << t && hawk_load(&s->engine->tier[t].lost))
			good &= ~(1u << t);
	return good;
}

/* ---- states of a chunk; the tier is locked ---- */

void hawk_chunk_free(struct hawk_tier *t, u32 chunk)
{
	hawk_assert_held(&t->lock);
	t->chunk[chunk].state = HAWK_CHUNK_FREE;
	t->chunk[chunk].next = t->free;
	t->free = chunk;
	t->nfree++;
	hawk_store(&t->avail, t->leaving ? 0 : t->nfree);
}

/*
 * Orphan @orphan; or HAWK_NONE: a free one, or if there is none what a pool has (pool.c).
 * There is one, and the tier does not leave.
 */
u32 hawk_chunk_take(struct hawk_tier *t, u32 orphan)
{
	u32 chunk = t->free;

	hawk_assert_held(&t->lock);
	if (orphan != HAWK_NONE) {
		chunk = orphan;
		hawk_pool_unlist(t->pool, chunk);
	} else if (chunk != HAWK_NONE) {
		t->free = t->chunk[chunk].next;
	} else {
		chunk = hawk_pool_spare(t);
	}
	t->chunk[chunk].state = HAWK_CHUNK_OWNED;
	t->nfree--;
	hawk_store(&t->avail, t->nfree);
	return chunk;
}

void hawk_chunk_dirty(struct hawk_tier *t, u32 chunk)
{
	hawk_assert_held(&t->lock);
	t->chunk[chunk].state = HAWK_CHUNK_DIRTY;
	t->ndirty++;
}
