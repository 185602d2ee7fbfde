// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * pool.c - chunks of a persistent flash tier, and whose they are
 *
 * Beside the states of tier.c a chunk of a pool can be an orphan: it holds blocks of a space
 * that is not there, because it has ended or because the device has just been opened.
 *
 *	FREE    -> OWNED   a space grows: a new epoch
 *	OWNED   -> ORPHAN  the space ends, and its blocks are kept
 *	OWNED   -> DIRTY   it ends or gives the chunk up, and they are not
 *	ORPHAN  -> OWNED   the space is made again and adopts it: the epoch stays;
 *	                   or another space gets it, as nothing is FREE: a new epoch
 *	(load)  -> ORPHAN  its record says that it is kept
 *	(load)  -> SUSPECT its record could not be read
 *	OWNED   -> SUSPECT its record could not be written, so it has no owner
 *	SUSPECT -> OWNED   there is nothing else: tried once more, the longest waiting first
 *
 * One bad sector of records thus costs sixteen chunks: they are tried when all others are in
 * use, and each failure ends the growth of one space until its host tries again
 * (hawk_space_unstick()).  What they hold is found again when the record can be read.
 *
 * Orphans and suspects count as free (hawk_tier.nfree): minima and growth reckon with them.  The oldest
 * one is given away first: when loaded, the one with the smallest epoch; later the one whose
 * space ended first.
 */
#include "admit.h"

static struct hawk_pool *pool_of(struct hawk_engine *e, u32 tier)
{
	return tier < HAWK_TIERS_MAX ? e->tier[tier].pool : NULL;
}

/* Numbers that are never given twice in the life of the pool. */
u64 hawk_pool_tick(struct hawk_pool *p)
{
	u64 old;

	do
		old = hawk_load(&p->clock);
	while (!hawk_cas64(&p->clock, old, old + 1));
	return old + 1;
}

bool hawk_pool_worn(struct hawk_engine *e, u32 tier)
{
	struct hawk_pool *p = pool_of(e, tier);

	return p && hawk_load(&p->clock) >> (HAWK_EPOCH_SHIFT - 1) & 1;
}

void hawk_pool_renew(struct hawk_engine *e, u32 tier, const struct hawk_super *s)
{
	struct hawk_pool *p = pool_of(e, tier);
	u64 old, clock = s->seq << HAWK_EPOCH_SHIFT;

	do
		old = p ? hawk_load(&p->clock) : clock;
	while (old < clock && !hawk_cas64(&p->clock, old, clock));
}

int hawk_pool_open(struct hawk_engine *e, u32 tier, const struct hawk_super *s, u64 now)
{
	struct hawk_tier_admit rated = {
		.flags = HAWK_ADMIT_SET, .tier = tier, .rated_bytes = s->rated,
	};
	struct hawk_tier *t;
	struct hawk_pool *p;

	if (tier >= HAWK_TIERS_MAX || !e->tier[tier].present)
		return -ENOENT;
	t = &e->tier[tier];
	if (t->kind != HAWK_TIER_BLK || t->nchunks != s->chunks || t->pool || t->nspaces)
		return -EINVAL;
	p = hawk_table_alloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->chunk = hawk_table_alloc(s->chunks, sizeof(*p->chunk));
	if (!p->chunk) {
		hawk_table_free(p, 1, sizeof(*p));
		return -ENOMEM;
	}
	p->id = hawk_pool_id(s);
	p->clock = s->seq << HAWK_EPOCH_SHIFT;
	p->header_off = s->header_off;
	p->slot_bytes = s->slot_bytes;
	p->oldest = HAWK_NONE;
	p->youngest = HAWK_NONE;
	p->suspect = HAWK_NONE;
	t->pool = p;
	return s->rated ? hawk_tier_admit(e, &rated, now) : 0;
}

/* The tier goes. */
void hawk_pool_free(struct hawk_tier *t, u32 nchunks)
{
	struct hawk_pool *p = t->pool;

	if (!p)
		return;
	hawk_table_free(p->chunk, nchunks, sizeof(*p->chunk));
	hawk_table_free(p, 1, sizeof(*p));
	t->pool = NULL;
}

/* ---- what was found on flash ---- */

int hawk_pool_load(struct hawk_engine *e, u32 tier, const struct hawk_record *r)
{
	struct hawk_pool *p = pool_of(e, tier);
	struct hawk_tier *t = &e->tier[tier];

	if (!p || r->chunk >= t->nchunks || r->epoch > p->clock)
		return -EINVAL;
	if (!r->kept)
		return 0;
	p->chunk[r->chunk].epoch = r->epoch;
	p->chunk[r->chunk].space = r->space;
	t->chunk[r->chunk].state = HAWK_CHUNK_ORPHAN;
	return 0;
}

void hawk_pool_unread(struct hawk_engine *e, u32 tier, u32 first, u32 n)
{
	struct hawk_tier *t = &e->tier[tier];
	u32 i;

	if (!pool_of(e, tier))
		return;
	for (i = first; i < t->nchunks && i - first < n; i++)
		hawk_pool_suspect(t, i);
}

/* Two lists of rising epochs become one. */
static u32 merge(struct hawk_pool_chunk *c, u32 a, u32 b)
{
	u32 head = HAWK_NONE, *end = &head;

	while (a != HAWK_NONE && b != HAWK_NONE) {
		u32 *first = c[b].epoch < c[a].epoch ? &b : &a;

		*end = *first;
		end = &c[*first].next;
		*first = *end;
	}
	*end = a != HAWK_NONE ? a : b;
	return head;
}

/* Merge sort: bin i has a list of 2^i chunks or none. */
static u32 sort(struct hawk_tier *t, struct hawk_pool_chunk *c)
{
	u32 bin[32], i, k, list;

	for (k = 0; k < ARRAY_SIZE(bin); k++)
		bin[k] = HAWK_NONE;
	for (i = 0; i < t->nchunks; i++) {
		if (t->chunk[i].state != HAWK_CHUNK_ORPHAN)
			continue;
		list = i;
		c[i].next = HAWK_NONE;
		for (k = 0; bin[k] != HAWK_NONE; k++) {
			list = merge(c, bin[k], list);
			bin[k] = HAWK_NONE;
		}
		bin[k] = list;
		if (!(i % HAWK_TIER_SLICE))
			hawk_relax();
	}
	for (k = 0, list = HAWK_NONE; k < ARRAY_SIZE(bin); k++)
		list = merge(c, bin[k], list);
	return list;
}

void hawk_pool_loaded(struct hawk_engine *e, u32 tier)
{
	struct hawk_pool *p = pool_of(e, tier);
	struct hawk_tier *t = &e->tier[tier];
	u32 i, prev, *end = &t->free;

	if (!p)
		return;
	for (i = 0; i < t->nchunks; i++)
		if (t->chunk[i].state == HAWK_CHUNK_FREE) {
			*end = i;
			end = &t->chunk[i].next;
		}
	*end = HAWK_NONE;
	p->oldest = sort(t, p->chunk);
	for (prev = HAWK_NONE, i = p->oldest; i != HAWK_NONE; prev = i, i = p->chunk[i].next) {
		p->chunk[i].prev = prev;
		p->norphans++;
	}
	p->youngest = prev;
}

/* ---- orphans ---- */

u32 hawk_pool_slot_bytes(struct hawk_engine *e, u32 tier)
{
	struct hawk_pool *p = pool_of(e, tier);

	return p ? p->slot_bytes : 0;
}

u32 hawk_pool_orphans(struct hawk_engine *e, u32 tier)
{
	struct hawk_pool *p = pool_of(e, tier);

	return p ? hawk_load(&p->norphans) : 0;
}

bool hawk_pool_chunk_kept(struct hawk_engine *e, u32 tier, u32 chunk)
{
	struct hawk_pool *p = pool_of(e, tier);

	return p && chunk < e->tier[tier].nchunks && p->chunk[chunk].space;
}

/* A chunk joins the orphans as the youngest. */
void hawk_pool_orphan(struct hawk_tier *t, u32 chunk)
{
	struct hawk_pool *p = t->pool;
	struct hawk_pool_chunk *c = &p->chunk[chunk];

	hawk_assert_held(&t->lock);
	t->chunk[chunk].state = HAWK_CHUNK_ORPHAN;
	c->next = HAWK_NONE;
	c->prev = p->youngest;
	if (p->youngest != HAWK_NONE)
		p->chunk[p->youngest].next = chunk;
	else
		p->oldest = chunk;
	p->youngest = chunk;
	hawk_store(&p->norphans, p->norphans + 1);
}

/* It is no orphan any more. */
void hawk_pool_unlist(struct hawk_pool *p, u32 chunk)
{
	struct hawk_pool_chunk *c = &p->chunk[chunk];

	*(c->prev == HAWK_NONE ? &p->oldest : &p->chunk[c->prev].next) = c->next;
	*(c->next == HAWK_NONE ? &p->youngest : &p->chunk[c->next].prev) = c->prev;
	hawk_store(&p->norphans, p->norphans - 1);
}

u32 hawk_pool_next_orphan(struct hawk_space *s, u32 tier, u32 after)
{
	u32 i = after == HAWK_NONE ? 0 : after + 1, end, found = HAWK_NONE;
	struct hawk_pool *p = pool_of(s->engine, tier);
	struct hawk_tier *t = &s->engine->tier[tier];
	u64 space;

	if (!p || !s->win[tier].keep)
		return HAWK_NONE;
	space = s->win[tier].keep->space;
	while (found == HAWK_NONE && i < t->nchunks && hawk_load(&p->norphans)) {
		hawk_lock(&t->lock);
		end = t->nchunks - i < HAWK_TIER_SLICE ? t->nchunks : i + HAWK_TIER_SLICE;
		for (; i < end && found == HAWK_NONE; i++)
			if (t->chunk[i].state == HAWK_CHUNK_ORPHAN && p->chunk[i].space == space)
				found = i;
		hawk_unlock(&t->lock);
		hawk_relax();
	}
	return found;
}

/* ---- suspects ---- */

/* Nobody's, and the last one that anybody gets; the tier is locked, or being made. */
void hawk_pool_suspect(struct hawk_tier *t, u32 chunk)
{
	struct hawk_pool *p = t->pool;

	t->chunk[chunk].state = HAWK_CHUNK_SUSPECT;
	t->chunk[chunk].next = HAWK_NONE;
	if (p->suspect == HAWK_NONE)
		p->suspect = chunk;
	else
		t->chunk[p->suspect_end].next = chunk;
	p->suspect_end = chunk;
}

/* No chunk is free: the oldest orphan, or if there is none a suspect; there is one. */
u32 hawk_pool_spare(struct hawk_tier *t)
{
	struct hawk_pool *p = t->pool;
	u32 chunk = p->oldest;

	hawk_assert_held(&t->lock);
	if (chunk != HAWK_NONE) {
		hawk_pool_unlist(p, chunk);
		return chunk;
	}
	chunk = p->suspect;
	p->suspect = t->chunk[chunk].next;
	return chunk;
}

/* ---- growth ---- */

/* A space has been given a chunk: a new time begins for it. */
void hawk_pool_granted(struct hawk_space *s, u32 tier, u32 chunk)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_pool *p = t->pool;

	hawk_assert_held(&t->lock);
	hawk_store(&p->chunk[chunk].epoch, hawk_pool_tick(p));
	p->chunk[chunk].space = s->win[tier].keep ? s->win[tier].keep->space : 0;
}

bool hawk_grant_record(struct hawk_space *s, const struct hawk_grant *g, struct hawk_record *r)
{
	struct hawk_pool *p = pool_of(s->engine, g->tier);

	if (!p)
		return false;
	memset(r, 0, sizeof(*r));
	r->chunk = g->chunk;
	r->epoch = p->chunk[g->chunk].epoch;	/* the grant is the caller's */
	r->space = p->chunk[g->chunk].space;
	r->kept = s->win[g->tier].keep;
	if (r->kept)
		r->owner = *s->identity;
	hawk_admit_charge(&s->engine->tier[g->tier], HAWK_POOL_PAGE);
	return true;
}
