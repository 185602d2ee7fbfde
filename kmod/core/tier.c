// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * tier.c - tiers, and which space owns which chunk
 *
 * FREE -> OWNED (grant) -> DIRTY (the space ended) -> FREE (the host zeroed it).
 * A space's minimum is honoured by keeping as many chunks back from the others
 * as it has not used of it (hawk_tier.reserved).
 */
#include "priv.h"

#define HAWK_TIER_SLICE	1024	/* chunks looked at while others wait for the lock */

struct hawk_engine *hawk_engine_create(void)
{
	struct hawk_engine *e = hawk_table_alloc(1, sizeof(*e));
	u32 i;

	if (!e)
		return NULL;
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		hawk_lock_init(&e->tier[i].lock);
	return e;
}

void hawk_engine_destroy(struct hawk_engine *e)
{
	u32 i;

	if (!e)
		return;
	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		hawk_assert(!e->tier[i].nspaces);
		hawk_table_free(e->tier[i].chunk, e->tier[i].nchunks, sizeof(struct hawk_chunk));
		hawk_lock_fini(&e->tier[i].lock);
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
	    (kind != HAWK_TIER_HOST && kind != HAWK_TIER_BLK))
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

	t = &e->tier[id];
	hawk_lock(&t->lock);
	t->chunk = chunk;
	t->kind = kind;
	t->nchunks = chunks;
	hawk_store(&t->nfree, chunks);
	t->ndirty = 0;
	hawk_store(&t->reserved, 0);
	t->free = 0;
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
	hawk_store(&t->nfree, 0);
	t->present = false;
	hawk_unlock(&t->lock);
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

	if (tier >= HAWK_TIERS_MAX)
		return;
	t = &e->tier[tier];
	hawk_lock(&t->lock);
	if (chunk < t->nchunks && t->chunk[chunk].state == HAWK_CHUNK_DIRTY) {
		t->chunk[chunk].state = HAWK_CHUNK_FREE;
		t->chunk[chunk].next = t->free;
		t->free = chunk;
		hawk_store(&t->nfree, t->nfree + 1);
		t->ndirty--;
	}
	hawk_unlock(&t->lock);
}

/* Without the lock: may a grant succeed?  Asked by every allocation of a full space. */
bool hawk_tier_has_room(struct hawk_space *s, u32 tier)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 owned = hawk_load(&w->owned);

	return owned < w->nslots &&
	       hawk_load(&t->nfree) > (owned < w->quota_min ? 0 : hawk_load(&t->reserved));
}

/*
 * Give the space one more chunk.
 * Return: the slot that it fills, or HAWK_NONE.
 */
u32 hawk_tier_grant(struct hawk_space *s, u32 tier)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 c, slot = HAWK_NONE;

	hawk_lock(&t->lock);
	if (w->owned >= w->nslots)
		goto out_unlock;
	/* within its minimum a space draws on what was kept back for it */
	if (t->nfree <= (w->owned < w->quota_min ? 0 : t->reserved))
		goto out_unlock;
	c = t->free;
	t->free = t->chunk[c].next;
	t->chunk[c].state = HAWK_CHUNK_OWNED;
	hawk_store(&t->nfree, t->nfree - 1);
	if (w->owned < w->quota_min)
		hawk_store(&t->reserved, t->reserved - 1);
	slot = w->owned;
	w->slot[slot] = c;
	hawk_store_release(&w->owned, slot + 1);	/* pairs with hawk_frame_off() */
out_unlock:
	hawk_unlock(&t->lock);
	return slot;
}

/* The space ends: its chunks must be cleaned before somebody else has them. */
void hawk_tier_return(struct hawk_space *s, u32 tier)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 i;

	hawk_lock(&t->lock);
	if (w->owned < w->quota_min)
		hawk_store(&t->reserved, t->reserved - (w->quota_min - w->owned));
	for (i = 0; i < w->owned; i++) {
		t->chunk[w->slot[i]].state = HAWK_CHUNK_DIRTY;
		t->ndirty++;
		if (i % HAWK_TIER_SLICE == HAWK_TIER_SLICE - 1) {
			hawk_unlock(&t->lock);
			hawk_relax();
			hawk_lock(&t->lock);
		}
	}
	hawk_store(&w->owned, 0);
	t->nspaces--;
	hawk_unlock(&t->lock);
}
