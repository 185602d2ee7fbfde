// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * access.c - blocks are found, leased, pinned, read where they lie, reloaded
 */
#include "priv.h"

#define READS_MIN	16	/* blocks that may always come from a drive together */

static void block_ref(struct hawk_space *s, const struct hawk_block *blk, struct hawk_ref *ref)
{
	ref->block = hawk_block_nr(s, blk);
	ref->gen = blk->gen;
}

/*
 * Lock the block that a reference names.
 * Return: the block with its home locked, or NULL: that life is over.
 */
struct hawk_block *hawk_ref_lock(struct hawk_space *s, struct hawk_ref ref)
{
	struct hawk_block *blk;
	struct hawk_bucket *b;

	if (ref.block >= s->max_blocks)
		return NULL;
	blk = &s->block[ref.block];
	b = &s->bucket[hawk_load(&blk->home)];
	hawk_lock(&b->lock);
	if (hawk_load(&blk->gen) == ref.gen && hawk_bucket_of(s, blk) == b &&
	    blk->state != HAWK_BLOCK_FREE && blk->state != HAWK_BLOCK_DYING)
		return blk;
	hawk_unlock(&b->lock);
	return NULL;
}

int hawk_block_find(struct hawk_space *s, const u8 *key, bool lease, u64 now,
		    u64 *lid, u64 *vt, struct hawk_ref *ref)
{
	struct hawk_block *blk = hawk_index_lock(s, key);
	struct hawk_bucket *b;
	int ret = 0;

	if (!blk)
		return -ENOENT;
	b = hawk_bucket_of(s, blk);
	if (blk->state == HAWK_BLOCK_FILLING) {
		b->count[HAWK_N_INFLIGHT]++;
		ret = -EAGAIN;
	} else {
		b->count[HAWK_N_HITS]++;
		hawk_lru_touch(s, blk, now);
		*lid = s->map[blk->maps].lid;
		*vt = hawk_block_vt(s, blk);
		block_ref(s, blk, ref);
		if (lease)
			blk->leases++;
	}
	hawk_unlock(&b->lock);
	return ret;
}

void hawk_block_unlease(struct hawk_space *s, struct hawk_ref ref)
{
	struct hawk_block *blk = hawk_ref_lock(s, ref);

	if (!blk)
		return;	/* it was lost while leased; the lease went with it */
	if (blk->leases)
		blk->leases--;
	hawk_seq_unbusy(s);
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
}

int hawk_block_pin(struct hawk_space *s, u64 lid, u64 now, u64 *vt, struct hawk_ref *ref)
{
	struct hawk_block *blk = hawk_lid_lock(s, hawk_lid_block(lid, s->block_tokens));
	struct hawk_bucket *b;
	int ret = -EAGAIN;

	if (!blk)
		return -ENOENT;
	b = hawk_bucket_of(s, blk);
	if (blk->pins >= HAWK_PINS_MAX) {
		ret = -EOVERFLOW;
	} else if (blk->state == HAWK_BLOCK_READY || blk->state == HAWK_BLOCK_EVICTING) {
		hawk_block_used(blk, now);
		hawk_block_get_pin(s, blk);
		*vt = hawk_block_vt(s, blk);
		block_ref(s, blk, ref);
		ret = 0;
	}
	hawk_unlock(&b->lock);
	return ret;
}

int hawk_block_repin(struct hawk_space *s, struct hawk_ref ref)
{
	struct hawk_block *blk = hawk_ref_lock(s, ref);
	int ret = -ESTALE;

	if (!blk)
		return -ESTALE;
	if (blk->pins >= HAWK_PINS_MAX) {
		ret = -EOVERFLOW;
	} else if (blk->pins) {
		hawk_block_get_pin(s, blk);
		ret = 0;
	}
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return ret;
}

int hawk_block_unpin(struct hawk_space *s, struct hawk_ref ref)
{
	struct hawk_block *blk = hawk_ref_lock(s, ref);
	bool filling;
	u32 home;
	int ret = -ESTALE;

	if (!blk)
		return -ESTALE;
	home = blk->home;
	filling = blk->state == HAWK_BLOCK_FILLING;
	if (blk->pins) {
		hawk_block_put_pin(s, blk);
		ret = 0;
	}
	hawk_unlock(&s->bucket[home].lock);
	hawk_map_reap(s, home);
	if (filling)
		hawk_note_spares(s);
	return ret;
}

int hawk_block_read(struct hawk_space *s, u64 lid, u64 now, struct hawk_read *r)
{
	struct hawk_block *blk = hawk_lid_lock(s, hawk_lid_block(lid, s->block_tokens));
	struct hawk_bucket *b;
	int ret = 0;

	if (!blk)
		return -ENOENT;
	b = hawk_bucket_of(s, blk);
	r->flash = blk->state == HAWK_BLOCK_FLASH;
	if (blk->pins >= HAWK_PINS_MAX || blk->reads >= HAWK_READS_MAX) {
		ret = -EOVERFLOW;
	} else if (r->flash) {
		blk->reads++;
		hawk_reuse_back(s, blk, now);
		hawk_lru_touch(s, blk, now);
		hawk_promote_note(s, blk);
	} else if (blk->state == HAWK_BLOCK_READY || blk->state == HAWK_BLOCK_EVICTING) {
		hawk_block_used(blk, now);
		hawk_block_get_pin(s, blk);
	} else {
		ret = -EAGAIN;
	}
	if (!ret) {
		block_ref(s, blk, &r->ref);
		r->vt = hawk_block_vt(s, blk);
		r->off = hawk_frame_off(s, HAWK_VT_TIER(r->vt), HAWK_VT_FRAME(r->vt));
		r->crc = blk->crc;
	}
	hawk_unlock(&b->lock);
	return ret;
}

/* A block that is on flash only, and cannot be trusted, is a miss from now on. */
static void read_failed(struct hawk_space *s, struct hawk_block *blk)
{
	hawk_bucket_of(s, blk)->count[HAWK_N_RELOAD_ERRORS]++;
	hawk_block_end(s, blk);
}

void hawk_block_read_end(struct hawk_space *s, const struct hawk_read *r, bool bad)
{
	struct hawk_block *blk = &s->block[r->ref.block];
	u32 home = blk->home;	/* being read holds it still */

	if (!r->flash) {
		hawk_block_unpin(s, r->ref);
		return;
	}
	hawk_lock(&s->bucket[home].lock);
	hawk_assert(blk->gen == r->ref.gen && blk->reads);
	blk->reads--;
	hawk_seq_unbusy(s);
	if (bad && blk->state == HAWK_BLOCK_FLASH)
		read_failed(s, blk);
	else if (blk->state == HAWK_BLOCK_DYING && !hawk_block_in_use(blk))
		hawk_block_bury(s, blk);
	hawk_unlock(&s->bucket[home].lock);
	hawk_map_reap(s, home);
	hawk_note_spares(s);
}

int hawk_block_ref(struct hawk_space *s, u64 lid, u64 *vt, struct hawk_ref *ref)
{
	struct hawk_block *blk = hawk_lid_lock(s, hawk_lid_block(lid, s->block_tokens));

	if (!blk)
		return -ENOENT;
	*vt = hawk_block_vt(s, blk);
	block_ref(s, blk, ref);
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return 0;
}

int hawk_block_in(struct hawk_space *s, u32 tier, u32 frame, u64 *vt, struct hawk_ref *ref)
{
	struct hawk_block *blk;
	int ret = -ESTALE;
	u32 nr;

	if (tier >= HAWK_TIERS_MAX || frame >= hawk_space_frames(s, tier))
		return -ESTALE;
	nr = hawk_load(&s->win[tier].frame[frame].block);	/* a hint, as no lock is held */
	if (nr >= s->max_blocks)
		return -ESTALE;
	blk = hawk_ref_lock(s, (struct hawk_ref){ .block = nr, .gen = hawk_load(&s->block[nr].gen) });
	if (!blk)
		return -ESTALE;
	*vt = hawk_block_vt(s, blk);
	if (HAWK_VT_TIER(*vt) == tier && HAWK_VT_FRAME(*vt) == frame && *vt & HAWK_VT_VALID) {
		block_ref(s, blk, ref);
		ret = 0;
	}
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return ret;
}

int hawk_block_at(struct hawk_space *s, u64 vt, struct hawk_ref *ref)
{
	u64 there;
	int ret = hawk_block_in(s, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt), &there, ref);

	return ret ?: there == vt ? 0 : -ESTALE;
}

u64 hawk_space_translate(struct hawk_space *s, u64 lid)
{
	struct hawk_ref ref;
	u64 vt;

	lid = hawk_lid_block(lid, s->block_tokens);
	vt = hawk_vtlb_get(s, lid);
	if (!vt && hawk_block_ref(s, lid, &vt, &ref))
		return 0;
	return vt;
}

/* More or (~0ull) fewer blocks are on their way from flash tier @tier. */
void hawk_reads_add(struct hawk_space *s, u32 tier, u64 n)
{
	u64 old, *reads = &s->win[tier].reads;

	do
		old = hawk_load(reads);
	while (!hawk_cas64(reads, old, old + n));
}

/*
 * Half of the host frames wait for this drive: one that stalls must not have all of them, or
 * nothing could be filled, or come from another one, until it goes on.
 */
static bool reads_enough(const struct hawk_space *s, u32 tier)
{
	u32 t, tiers = hawk_load(&s->host_tiers);
	u64 frames = 0;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (tiers & 1u << t)
			frames += (u64)hawk_load(&s->win[t].owned) * s->frames_per_chunk;
	return hawk_load(&s->win[tier].reads) >= (frames / 2 > READS_MIN ? frames / 2 : READS_MIN);
}

/* Host frame @frame of tier @tier is the block's now; the block is on no LRU list. */
void hawk_reload_start(struct hawk_space *s, struct hawk_block *blk, u32 tier, u32 frame,
		       u8 flags, struct hawk_plan *plan)
{
	hawk_block_event(blk, HAWK_EV_RELOAD);
	hawk_bucket_of(s, blk)->count[HAWK_N_READS]++;
	hawk_block_take_host(s, blk, tier, frame);
	hawk_reads_add(s, blk->ftier, 1);
	hawk_plan_add(plan, s, blk, HAWK_MOVE_READ, flags);
}

static int reload_locked(struct hawk_space *s, struct hawk_block *blk, u32 tier, u64 now,
			 struct hawk_want *w)
{
	u32 frame;
	int ret;

	if (blk->state == HAWK_BLOCK_RELOADING)
		return -EINPROGRESS;
	if (blk->state != HAWK_BLOCK_FLASH) {
		hawk_lru_touch(s, blk, now);
		return 0;
	}
	if (!w->plan || hawk_plan_full(w->plan) || reads_enough(s, blk->ftier))
		return -EAGAIN;
	hawk_lru_del(s, blk);	/* or it might be dropped to make room for itself */
	ret = hawk_host_frame(s, hawk_bucket_of(s, blk), tier, w, &tier, &frame);
	if (ret) {
		hawk_lru_add(s, blk);
		return ret;
	}
	hawk_reuse_back(s, blk, now);
	hawk_block_used(blk, now);
	hawk_reload_start(s, blk, tier, frame, 0, w->plan);
	return -EINPROGRESS;
}

int hawk_block_reload(struct hawk_space *s, u64 lid, u32 tier, u64 now, struct hawk_plan *plan)
{
	struct hawk_want w = { .plan = plan, .now = now };
	struct hawk_block *blk;
	u32 home;
	int ret;

	lid = hawk_lid_block(lid, s->block_tokens);
	for (;;) {
		blk = hawk_lid_lock(s, lid);
		if (!blk)
			return -ENOENT;
		home = blk->home;
		ret = reload_locked(s, blk, tier, now, &w);
		if (ret != -ENOBUFS)
			ret = hawk_room_error(s, &s->bucket[home], ret);
		hawk_unlock(&s->bucket[home].lock);
		hawk_map_reap(s, home);
		if (ret != -ENOBUFS)
			return ret;
		ret = hawk_want_fetch(s, &w, home);
		if (ret)
			return ret;
	}
}
