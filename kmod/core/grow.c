// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * grow.c - a space's part in a tier: it joins, grows, is starved, and leaves
 *
 * Who may have a free chunk:
 *	a space below its minimum: always, as the minima that are not used yet
 *		(hawk_tier.reserved) are kept back from all others;
 *	a space with claims: unless it is kept back for a minimum;
 *	all others: unless it is kept back for a minimum or a claim (hawk_tier.claimed).
 * A claim is a chunk taken from a space that had more than its share, kept for the
 * one it was taken for.  While it waits to be zeroed it is not among the free ones,
 * so there may be fewer of those than are kept back.
 *
 * Who may join: a space whose minimum and those of all others (hawk_tier.minima) are
 * no more than the tier has, so that all of them can be had at one time.  What is free
 * decides nothing: others may have grown above their minima, which is a loan.  If they
 * have, the host may insist (hawk_space_params.insist): the new minimum is kept back at
 * once, although the chunks are not there, so nobody above its own gets one of those
 * that come free; the host takes as many as hawk_space_lacks() says from those above
 * theirs, and if that cannot be done ends the space.  hawk_tier.insisting counts those
 * that are at it: without them, what is kept back is free or waits to be zeroed.
 *
 * Growth has two steps, because the host may have to sleep for the memory:
 *	grow	the chunk is OWNED and counted, its slot is HAWK_SLOT_GROWS
 *	grown	the slot names the chunk, its frames are dealt to the buckets
 * A frame number is learnt under a bucket's lock only after that, so whoever knows
 * one may read its slot without a lock.  Who finds nothing in between waits for the
 * frames (hawk_window.growing): there is room, it is only not there yet.
 */
#include "priv.h"

/* Free chunks that @w must leave to others. */
static u32 kept_back(const struct hawk_tier *t, const struct hawk_window *w)
{
	if (w->owned < w->quota_min)
		return 0;
	return w->claims ? t->reserved : t->reserved + t->claimed;
}

/* Without the lock: may it grow?  Asked by every allocation of a full space. */
bool hawk_window_has_room(struct hawk_space *s, u32 tier)
{
	const struct hawk_tier *t = &s->engine->tier[tier];
	const struct hawk_window *w = &s->win[tier];
	u32 owned = hawk_load(&w->owned), avail;

	if (owned >= hawk_load(&w->limit))
		return false;
	avail = hawk_load(&t->avail);
	if (!avail || owned < hawk_load(&w->quota_min))
		return avail;
	return avail > hawk_load(&t->reserved) +
		       (hawk_load(&w->claims) ? 0 : hawk_load(&t->claimed));
}

/* Without the lock: chunks that it owns, and that it could own now. */
u32 hawk_window_reach(struct hawk_space *s, u32 tier)
{
	const struct hawk_tier *t = &s->engine->tier[tier];
	const struct hawk_window *w = &s->win[tier];
	u32 owned = hawk_load(&w->owned), limit = hawk_load(&w->limit), min, kept, more;
	u32 avail = hawk_load(&t->avail);

	if (owned >= limit)
		return owned;
	min = hawk_load(&w->quota_min);
	more = owned < min ? min - owned : 0;
	kept = hawk_load(&t->reserved) + (hawk_load(&w->claims) ? 0 : hawk_load(&t->claimed));
	more += avail > kept ? avail - kept : 0;
	more = more < avail ? more : avail;
	return more < limit - owned ? owned + more : limit;
}

/* Bucket @home wants a chunk: what hawk_space_grow() shall look for. */
void hawk_window_ask(struct hawk_space *s, u32 tier, u32 home)
{
	hawk_store(&s->win[tier].hungry, home + 1);
}

/* It evicts: is that because others have all chunks? */
void hawk_window_starve(struct hawk_space *s, u32 tier)
{
	struct hawk_window *w = &s->win[tier];

	if (!hawk_load(&w->starved) && hawk_load(&w->owned) < hawk_load(&w->limit))
		hawk_store(&w->starved, 1);
}

/* May it join?  The tier is locked.  Return: as hawk_space_create(). */
static int join_check(const struct hawk_tier *t, const struct hawk_window *w)
{
	if (w->quota_min > t->nchunks - t->minima)
		return -ENOSPC;
	if (w->quota_min && (u64)t->reserved + t->claimed + w->quota_min > t->avail)
		return -EAGAIN;
	return 0;
}

/* Its minimum is kept back from the others from now on. */
int hawk_window_join(struct hawk_space *s, u32 tier, bool insist)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	int ret;

	hawk_lock(&t->lock);
	ret = join_check(t, w);
	if (ret == -EAGAIN && insist) {
		w->insists = true;
		t->insisting++;
		ret = 0;
	}
	if (ret) {
		hawk_unlock(&t->lock);
		return ret;
	}
	t->minima += w->quota_min;
	hawk_store(&t->reserved, t->reserved + w->quota_min);
	t->nspaces++;
	hawk_store(&w->limit, w->nslots);
	if (t->kind == HAWK_TIER_BLK)
		hawk_store(&s->flash_tiers, s->flash_tiers | 1u << tier);
	else
		hawk_store(&s->host_tiers, s->host_tiers | 1u << tier);
	hawk_unlock(&t->lock);
	return 0;
}

static void drop_claims(struct hawk_tier *t, struct hawk_window *w)
{
	hawk_store(&t->claimed, t->claimed - w->claims);
	hawk_store(&w->claims, 0);
}

/* It has what it insisted on, or gives it up. */
static void insist_end(struct hawk_tier *t, struct hawk_window *w)
{
	t->insisting -= w->insists;
	w->insists = false;
}

/* Nothing is kept back for it any more and it gets nothing. */
static void drop_quota(struct hawk_tier *t, struct hawk_window *w)
{
	if (w->owned < w->quota_min)
		hawk_store(&t->reserved, t->reserved - (w->quota_min - w->owned));
	t->minima -= w->quota_min;
	drop_claims(t, w);
	insist_end(t, w);
	hawk_store(&w->quota_min, 0);
	hawk_store(&w->quota_max, 0);
	hawk_store(&w->limit, 0);
}

/* A slot loses its chunk; the tier is locked.  Return: the chunk. */
u32 hawk_window_release(struct hawk_space *s, u32 tier, u32 slot)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 chunk = w->slot[slot];

	hawk_assert_held(&t->lock);
	hawk_store(&w->slot[slot], HAWK_SLOT_FREE | w->free_slot);
	w->free_slot = slot;
	hawk_store(&w->owned, w->owned - 1);
	if (w->owned < w->quota_min)
		hawk_store(&t->reserved, t->reserved + 1);
	return chunk;
}

/* The space ends: what becomes of a chunk of its. */
static void chunk_leave(struct hawk_tier *t, const struct hawk_window *w, u32 chunk)
{
	if (!w->keep || w->keep->forget) {
		hawk_chunk_dirty(t, chunk);
		return;
	}
	hawk_pool_orphan(t, chunk);
	t->nfree++;
	hawk_store(&t->avail, t->leaving ? 0 : t->nfree);
}

/* The space ends: its chunks are kept for it, or cleaned before somebody else has them. */
void hawk_window_return(struct hawk_space *s, u32 tier)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];
	u32 i;

	hawk_lock(&t->lock);
	drop_quota(t, w);
	for (i = 0; i < w->nslots; i++) {
		if (hawk_slot_chunk(w, i) != HAWK_NONE)
			chunk_leave(t, w, hawk_window_release(s, tier, i));
		if (i % HAWK_TIER_SLICE == HAWK_TIER_SLICE - 1) {
			hawk_unlock(&t->lock);
			hawk_relax();
			hawk_lock(&t->lock);
		}
	}
	t->nspaces--;
	hawk_unlock(&t->lock);
}

int hawk_space_leave(struct hawk_space *s, u32 tier)
{
	struct hawk_tier *t;
	struct hawk_window *w;
	int ret = 0;

	if (tier >= HAWK_TIERS_MAX)
		return 0;
	t = &s->engine->tier[tier];
	w = &s->win[tier];
	hawk_lock(&t->lock);
	if (w->owned) {
		ret = -EBUSY;
	} else if ((s->host_tiers | s->flash_tiers) & 1u << tier) {
		drop_quota(t, w);
		hawk_store(&s->host_tiers, s->host_tiers & ~(1u << tier));
		hawk_store(&s->flash_tiers, s->flash_tiers & ~(1u << tier));
		t->nspaces--;
	}
	hawk_unlock(&t->lock);
	return ret;
}

/* ---- growing ---- */

/*
 * A chunk for the space: orphan @orphan, or HAWK_NONE: any; the tier is locked.
 * Return: false: it may not have one.
 */
bool hawk_window_take(struct hawk_space *s, u32 tier, u32 orphan, struct hawk_grant *g)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	struct hawk_window *w = &s->win[tier];

	hawk_assert_held(&t->lock);
	if (w->owned >= w->limit || t->avail <= kept_back(t, w))
		return false;
	if (w->owned < w->quota_min) {
		hawk_store(&t->reserved, t->reserved - 1);
	} else if (w->claims) {
		hawk_store(&w->claims, w->claims - 1);
		hawk_store(&t->claimed, t->claimed - 1);
	}
	g->tier = tier;
	g->slot = w->free_slot;
	g->chunk = hawk_chunk_take(t, orphan);
	w->free_slot = w->slot[g->slot] & ~HAWK_SLOT_FREE;
	hawk_store(&w->slot[g->slot], HAWK_SLOT_GROWS);
	hawk_store(&w->owned, w->owned + 1);
	hawk_store(&w->growing, w->growing + 1);
	if (t->pool && orphan == HAWK_NONE)
		hawk_pool_granted(s, tier, g->chunk);
	return true;
}

static bool grant(struct hawk_space *s, u32 tier, struct hawk_grant *g)
{
	struct hawk_tier *t = &s->engine->tier[tier];
	bool ok;

	hawk_lock(&t->lock);
	ok = hawk_window_take(s, tier, HAWK_NONE, g);
	hawk_unlock(&t->lock);
	return ok;
}

int hawk_space_grow(struct hawk_space *s, struct hawk_grant *g)
{
	u32 t, hungry;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		hungry = hawk_load(&s->win[t].hungry);
		if (!hungry)
			continue;
		hawk_store(&s->win[t].hungry, 0);
		if (grant(s, t, g)) {
			g->home = hungry - 1;
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * Deal the frames of a new chunk, first to the bucket that asked; of an adopted one those
 * that no block has, which are few.
 */
static void deal(struct hawk_space *s, const struct hawk_grant *g)
{
	u32 i, n, mask = s->nbuckets - 1, fpc = s->frames_per_chunk;
	const struct hawk_frame *frame = &s->win[g->tier].frame[g->slot * fpc];

	for (n = 0; n < s->nbuckets && n < fpc; n++) {
		struct hawk_bucket *b = &s->bucket[(g->home + n) & mask];

		for (i = n; i < fpc && hawk_load(&frame[i].block) != HAWK_NONE;)
			i += s->nbuckets;
		if (i >= fpc)
			continue;
		hawk_lock(&b->lock);
		for (; i < fpc; i += s->nbuckets)
			if (hawk_load(&frame[i].block) == HAWK_NONE)
				hawk_res_push(s, b, g->tier, g->slot * fpc + i);
		hawk_unlock(&b->lock);
	}
	hawk_note_spares(s);
}

void hawk_space_grown(struct hawk_space *s, const struct hawk_grant *g, bool ok)
{
	struct hawk_tier *t = &s->engine->tier[g->tier];
	struct hawk_window *w = &s->win[g->tier];

	hawk_lock(&t->lock);
	if (ok) {
		hawk_store_release(&w->slot[g->slot], g->chunk);	/* hawk_slot_chunk() */
	} else {
		hawk_window_release(s, g->tier, g->slot);
		hawk_chunk_free(t, g->chunk);
		if (t->pool) {
			t->free = t->chunk[g->chunk].next;
			hawk_pool_suspect(t, g->chunk);
		}
		drop_claims(t, w);
		hawk_store(&w->limit, 0);
	}
	hawk_unlock(&t->lock);
	if (ok)
		deal(s, g);
	hawk_lock(&t->lock);
	hawk_store(&w->growing, w->growing - 1);
	hawk_unlock(&t->lock);
}

void hawk_space_unstick(struct hawk_space *s)
{
	struct hawk_window *w;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		w = &s->win[t];
		if (hawk_load(&w->limit) == w->nslots)
			continue;
		hawk_lock(&s->engine->tier[t].lock);
		if (w->quota_max)
			hawk_store(&w->limit, w->nslots);
		hawk_unlock(&s->engine->tier[t].lock);
	}
}

/* ---- shares ---- */

int hawk_space_lacks(struct hawk_space *s, u32 tier)
{
	struct hawk_tier *t;
	struct hawk_window *w;
	u64 kept;
	int n = 0;

	if (tier >= HAWK_TIERS_MAX || !s->win[tier].nslots)
		return 0;
	t = &s->engine->tier[tier];
	w = &s->win[tier];
	hawk_lock(&t->lock);
	kept = (u64)t->reserved + t->claimed;
	if (!w->quota_max || t->leaving || t->lost)
		n = -ENOENT;
	else if (w->insists && kept > t->avail)
		n = kept - t->avail;
	else
		insist_end(t, w);
	hawk_unlock(&t->lock);
	return n;
}

s64 hawk_space_excess(struct hawk_space *s, u32 tier)
{
	struct hawk_window *w;
	s64 excess;

	if (tier >= HAWK_TIERS_MAX)
		return 0;
	w = &s->win[tier];
	hawk_lock(&s->engine->tier[tier].lock);
	excess = (s64)w->owned + w->claims - w->quota_min;
	hawk_unlock(&s->engine->tier[tier].lock);
	return excess;
}

bool hawk_space_starved(struct hawk_space *s, u32 tier)
{
	if (tier >= HAWK_TIERS_MAX || !hawk_load(&s->win[tier].starved))
		return false;
	hawk_store(&s->win[tier].starved, 0);
	return !hawk_load(&s->engine->tier[tier].leaving);
}

bool hawk_space_wants(struct hawk_space *s, u32 tier)
{
	struct hawk_window *w;
	bool wants;

	if (tier >= HAWK_TIERS_MAX)
		return false;
	w = &s->win[tier];
	hawk_lock(&s->engine->tier[tier].lock);
	wants = w->owned + w->claims < w->limit && !s->engine->tier[tier].leaving;
	hawk_unlock(&s->engine->tier[tier].lock);
	return wants;
}

void hawk_space_unclaim(struct hawk_space *s, u32 tier)
{
	if (tier >= HAWK_TIERS_MAX)
		return;
	hawk_lock(&s->engine->tier[tier].lock);
	drop_claims(&s->engine->tier[tier], &s->win[tier]);
	hawk_unlock(&s->engine->tier[tier].lock);
}
