// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * alloc.c - blocks come, are published, shared, made private, and go
 */
#include "seqpriv.h"

static int lid_check(struct hawk_space *s, u64 *lid)
{
	*lid = hawk_lid_block(*lid, s->block_tokens);
	return *lid ? 0 : -EINVAL;
}

/* Of sequence number 0 are only blocks that were found on flash (restore.c). */
static int new_lid_check(struct hawk_space *s, u64 *lid)
{
	return hawk_lid_seq(*lid) ? lid_check(s, lid) : -EINVAL;
}

/* Return: 0 if the LID is free; -EEXIST; -EAGAIN: its block is about to go. */
static int lid_taken(struct hawk_space *s, u64 lid, u32 chain)
{
	struct hawk_map *m = hawk_map_find(s, lid, chain);

	if (!m)
		return 0;
	/* the block may be at home elsewhere: a racing look at its state will do */
	return hawk_load(&s->block[m->block].state) == HAWK_BLOCK_DYING ? -EAGAIN : -EEXIST;
}

/* Start a life: FILLING, in host frame @frame, at home in @b. */
static struct hawk_block *block_start(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
				      u32 frame, u64 now)
{
	struct hawk_block *blk = &s->block[hawk_res_pop(s, b, HAWK_RES_BLOCK)];

	hawk_store(&blk->home, b - s->bucket);
	blk->maps = HAWK_NONE;
	blk->nmaps = 0;
	blk->hold = 0;
	hawk_store(&blk->hint, 0);
	hawk_store(&blk->turn, 0);
	hawk_store(&blk->uses, 1);
	hawk_store(&blk->atime, now);
	hawk_block_event(blk, HAWK_EV_ALLOC);
	hawk_block_take_host(s, blk, tier, frame);
	hawk_block_get_pin(s, blk);
	if (s->life)
		s->life[hawk_block_nr(s, blk)].came = false;
	b->count[HAWK_N_BLOCKS]++;
	b->count[HAWK_N_ALLOCS]++;
	return blk;
}

/*
 * A host frame for a new block and the slots it needs, or nothing.  The frame first:
 * a block dropped for its frame leaves its slots too, which saves a search for them.
 */
static int take_room(struct hawk_space *s, struct hawk_bucket *b, u32 tier,
		     struct hawk_want *w, bool map, u32 *got, u32 *frame)
{
	int ret = hawk_host_frame(s, b, tier, w, got, frame);

	if (ret)
		return ret;
	ret = hawk_spare_slot(s, b, HAWK_RES_BLOCK, w);
	if (!ret && map)
		ret = hawk_spare_slot(s, b, HAWK_RES_MAP, w);
	if (ret)
		hawk_res_push(s, b, *got, *frame);
	return ret;
}

static int alloc_locked(struct hawk_space *s, u64 lid, u32 chain, const u8 *key, u32 tier,
			u64 now, struct hawk_want *w, u64 *vt)
{
	struct hawk_bucket *b = &s->bucket[hawk_chain_home(s, chain)];
	struct hawk_block *blk;
	u32 frame;
	int ret;

	ret = lid_taken(s, lid, chain);
	if (ret)
		return ret;
	ret = take_room(s, b, tier, w, true, &tier, &frame);
	if (ret)
		return ret;

	blk = block_start(s, b, tier, frame, now);
	if (key && hawk_index_insert(s, blk, key)) {
		hawk_block_put_pin(s, blk);	/* ends it */
		return -EEXIST;
	}
	*vt = hawk_block_vt(s, blk);
	if (hawk_lid_is_run(s, lid))
		blk->hold = hawk_load(&s->hold);
	hawk_vtlb_set(s, hawk_map_insert(s, lid, chain, blk), *vt);
	return 0;
}

static int block_alloc(struct hawk_space *s, u64 lid, const u8 *key, u32 tier, u64 now,
		       struct hawk_plan *plan, u64 *vt)
{
	struct hawk_want w = { .plan = plan, .now = now };
	struct hawk_bucket *b;
	u32 chain;
	int ret;

	chain = hawk_map_chain(s, lid);
	hawk_prefetch(&s->head[chain]);
	hawk_vtlb_prefetch(s, lid);
	b = &s->bucket[hawk_chain_home(s, chain)];
	for (;;) {
		hawk_lock(&b->lock);
		ret = alloc_locked(s, lid, chain, key, tier, now, &w, vt);
		if (ret != -ENOBUFS)
			ret = hawk_room_error(s, b, ret);
		hawk_unlock(&b->lock);
		hawk_map_reap(s, b - s->bucket);
		if (ret != -ENOBUFS)
			return ret;
		ret = hawk_want_fetch(s, &w, b - s->bucket);
		if (ret)
			return ret;
	}
}

int hawk_block_alloc(struct hawk_space *s, u64 lid, const u8 *key, u32 tier, u64 now,
		     struct hawk_plan *plan, u64 *vt)
{
	int ret;

	if (new_lid_check(s, &lid) || !hawk_run_enter(s, lid))
		return -EINVAL;
	ret = block_alloc(s, lid, key, tier, now, plan, vt);
	hawk_run_leave(s, lid);
	return ret;
}

int hawk_block_put(struct hawk_space *s, u64 lid, const u8 *key, bool keep_pin, u64 now)
{
	struct hawk_bucket *b;
	struct hawk_block *blk;
	int ret = 0;

	if (lid_check(s, &lid))
		return -EINVAL;
	blk = hawk_lid_lock(s, lid);
	if (!blk)
		return -ENOENT;
	b = hawk_bucket_of(s, blk);
	if (blk->state != HAWK_BLOCK_FILLING ||
	    ((blk->flags & HAWK_BF_KEY) &&
	     (!key || memcmp(hawk_block_key(s, blk), key, HAWK_KEY_BYTES)))) {
		ret = -EINVAL;
		goto out_unlock;
	}
	if (key && !(blk->flags & HAWK_BF_KEY))
		ret = hawk_index_insert(s, blk, key);
	hawk_block_event(blk, HAWK_EV_PUT);
	b->count[HAWK_N_PUTS]++;
	hawk_store(&blk->atime, now);
	if (s->life) {
		s->life[hawk_block_nr(s, blk)].since = now;
		s->life[hawk_block_nr(s, blk)].away = false;
	}
	if (!keep_pin)
		hawk_block_put_pin(s, blk);
out_unlock:
	hawk_unlock(&b->lock);
	return ret;
}

static u8 hint_bits(u32 hints)
{
	return (hints & HAWK_ITEM_PARENT ? HAWK_BH_PARENT : 0) |
	       (hints & HAWK_ITEM_TRANSIENT ? HAWK_BH_TRANSIENT : 0) |
	       (hints & HAWK_ITEM_PERSIST ? HAWK_BH_PERSIST : 0) |
	       (hints & HAWK_ITEM_TAIL ? HAWK_BH_TAIL : 0) |
	       (hints & HAWK_ITEM_ROOT ? HAWK_BH_ROOT : 0);
}


static void hint_set(struct hawk_space *s, struct hawk_block *blk, u32 hints, const u8 *parent)
{
	u32 turn = hints >> HAWK_ITEM_TURN_SHIFT;
	u8 hint = hint_bits(hints);

	if (s->life && hint & HAWK_BH_PARENT)
		memcpy(s->life[hawk_block_nr(s, blk)].parent, parent, HAWK_KEY_BYTES);
	else
		hint &= ~HAWK_BH_PARENT;
	hawk_store(&blk->hint, hint);
	if (turn)
		hawk_store(&blk->turn, turn < U8_MAX ? turn : U8_MAX);
	if (hawk_learns(s))
		hawk_reuse_born(s, blk);
}

int hawk_block_hint(struct hawk_space *s, u64 lid, u32 hints, const u8 *parent)
{
	struct hawk_block *blk;
	int ret = 0;

	if (!(hints & HAWK_ITEM_HINTS))
		return 0;
	if (lid_check(s, &lid))
		return -EINVAL;
	blk = hawk_lid_lock(s, lid);
	if (!blk)
		return -ENOENT;
	if (blk->state == HAWK_BLOCK_FILLING)
		hint_set(s, blk, hints, parent);
	else
		ret = -EINVAL;
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return ret;
}

/*
 * Lock the home of a block together with the bucket of @other, once more after the
 * look-up that gave @ref let its lock go.
 * Return: the block, or NULL with nothing locked: that life is over.
 */
static struct hawk_block *ref_lock_pair(struct hawk_space *s, struct hawk_ref ref, u32 home,
					u64 other)
{
	struct hawk_block *blk = &s->block[ref.block];

	hawk_pair_lock(s, home, hawk_home(s, other));
	if (hawk_load(&blk->gen) == ref.gen && blk->home == home &&
	    blk->state != HAWK_BLOCK_DYING && blk->state != HAWK_BLOCK_FREE)
		return blk;
	hawk_pair_unlock(s, home, hawk_home(s, other));
	return NULL;
}

/* Return: true and what ref_lock_pair() needs, with nothing locked. */
static bool lid_to_ref(struct hawk_space *s, u64 lid, struct hawk_ref *ref, u32 *home)
{
	struct hawk_block *blk = hawk_lid_lock(s, lid);

	if (!blk)
		return false;
	ref->block = hawk_block_nr(s, blk);
	ref->gen = blk->gen;
	*home = blk->home;
	hawk_unlock(&s->bucket[*home].lock);
	return true;
}

static int fork_locked(struct hawk_space *s, struct hawk_block *blk, u64 new_lid,
		       struct hawk_want *w)
{
	u32 chain = hawk_map_chain(s, new_lid), there = hawk_chain_home(s, chain);
	int ret = lid_taken(s, new_lid, chain);

	if (ret)
		return ret;
	if (blk->state == HAWK_BLOCK_FILLING)
		return -EAGAIN;
	if (blk->nmaps >= HAWK_ALIAS_MAX)
		return -ENOSPC;
	ret = hawk_spare_slot(s, &s->bucket[there], HAWK_RES_MAP, w);
	if (ret)
		return ret;
	hawk_vtlb_set(s, hawk_map_insert(s, new_lid, chain, blk), hawk_block_vt(s, blk));
	return 0;
}

static int block_fork(struct hawk_space *s, u64 lid, u64 new_lid)
{
	struct hawk_want w = { .plan = NULL };
	bool leased = false;
	struct hawk_block *blk;
	struct hawk_ref ref;
	u32 home;
	int ret;

	if (!lid_to_ref(s, lid, &ref, &home))
		return -ENOENT;
	for (;;) {
		blk = ref_lock_pair(s, ref, home, new_lid);
		if (!blk)
			return -ENOENT;
		/* or it might be forgotten to make room for its own LID */
		blk->leases += !leased;
		leased = true;
		ret = fork_locked(s, blk, new_lid, &w);
		blk->leases -= ret != -ENOBUFS;
		hawk_seq_unbusy(s);
		hawk_pair_unlock(s, home, hawk_home(s, new_lid));
		hawk_map_reap(s, hawk_home(s, new_lid));
		if (ret != -ENOBUFS)
			return ret;
		hawk_want_fetch(s, &w, hawk_home(s, new_lid));
	}
}

int hawk_block_fork(struct hawk_space *s, u64 lid, u64 new_lid)
{
	int ret;

	if (lid_check(s, &lid) || new_lid_check(s, &new_lid) || !hawk_run_enter(s, new_lid))
		return -EINVAL;
	ret = block_fork(s, lid, new_lid);
	hawk_run_leave(s, new_lid);
	return ret;
}

/* @ended: set when it was the last LID of its block. */
int hawk_lid_free(struct hawk_space *s, u64 lid, bool *ended)
{
	struct hawk_block *blk;
	struct hawk_map *m;
	struct hawk_ref ref;
	u32 home;
	int ret = 0;

	if (lid_check(s, &lid))
		return -EINVAL;
again:
	if (!lid_to_ref(s, lid, &ref, &home))
		return -ENOENT;
	blk = ref_lock_pair(s, ref, home, lid);
	if (!blk)
		goto again;
	m = hawk_map_find(s, lid, hawk_map_chain(s, lid));
	if (!m || m->block != ref.block) {
		hawk_pair_unlock(s, home, hawk_home(s, lid));
		goto again;	/* gone, or an unshare gave it another block meanwhile */
	}
	if (blk->nmaps > 1) {
		hawk_vtlb_del(s, m);
		hawk_map_remove(s, m);
	} else if (blk->pins || blk->leases || blk->reads) {
		ret = -EBUSY;
	} else {
		hawk_block_end(s, blk);
		*ended = true;
	}
	hawk_pair_unlock(s, home, hawk_home(s, lid));
	hawk_map_reap(s, home);
	hawk_note_spares(s);
	return ret;
}

int hawk_block_free(struct hawk_space *s, u64 lid)
{
	bool ended;

	return hawk_lid_free(s, lid, &ended);
}

int hawk_key_free(struct hawk_space *s, const u8 *key)
{
	struct hawk_block *blk = hawk_index_lock(s, key);

	if (!blk)
		return -ENOENT;
	hawk_index_remove(s, blk);
	if (blk->fframe != HAWK_NONE)
		hawk_keep_lost(s, blk);
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return 0;
}

/* A private block: write where it is. What was published of it is no longer true. */
static int rewrite(struct hawk_space *s, struct hawk_block *blk)
{
	if (blk->state != HAWK_BLOCK_READY)
		return -EAGAIN;
	if (blk->pins > 1 || blk->leases || blk->reads)
		return -EBUSY;
	hawk_index_remove(s, blk);
	hawk_block_drop_flash(s, blk);
	hawk_block_event(blk, HAWK_EV_REWRITE);
	return 0;
}

/* @old is shared: a new block in the LID's own bucket takes @m over. */
static int split(struct hawk_space *s, struct hawk_block **pblk, struct hawk_map *m, u64 now,
		 struct hawk_want *w)
{
	struct hawk_block *blk, *old = *pblk;
	u32 tier, frame, chain = m->chain, way = m->way;
	struct hawk_bucket *b = &s->bucket[hawk_chain_home(s, chain)];
	u64 lid = m->lid;
	int ret;

	if (!w->plan || hawk_plan_full(w->plan))
		return -EAGAIN;
	ret = take_room(s, b, old->htier, w, false, &tier, &frame);
	if (ret)
		return ret;
	blk = block_start(s, b, tier, frame, now);
	blk->hold = old->hold;
	hawk_map_remove(s, m);
	hawk_map_insert(s, lid, chain, blk)->way = way;	/* readers never miss it */
	hawk_block_publish(s, blk);
	/* the caller's pin moves; that on the old block is the copy's until it ends */
	hawk_block_get_pin(s, blk);
	hawk_plan_copy(w->plan, s, old, blk);
	*pblk = blk;
	return 0;
}

int hawk_block_unshare(struct hawk_space *s, u64 lid, u64 now, struct hawk_plan *plan,
		       u64 *vt, struct hawk_ref *ref)
{
	struct hawk_want w = { .plan = plan, .now = now };
	struct hawk_block *blk;
	struct hawk_map *m;
	struct hawk_ref at;
	u32 home;
	int ret;

	if (lid_check(s, &lid))
		return -EINVAL;
	if (!lid_to_ref(s, lid, &at, &home))
		return -ENOENT;
	if (at.block != ref->block || at.gen != ref->gen)
		return -ESTALE;
	for (;;) {
		blk = ref_lock_pair(s, at, home, lid);
		if (!blk)
			return -ENOENT;
		m = hawk_map_find(s, lid, hawk_map_chain(s, lid));
		if (!m || m->block != at.block)
			ret = -ENOENT;
		else if (!blk->pins)
			ret = -ESTALE;
		else if (blk->nmaps == 1)
			ret = rewrite(s, blk);
		else
			ret = split(s, &blk, m, now, &w);
		if (!ret) {
			*vt = hawk_block_vt(s, blk);
			ref->block = hawk_block_nr(s, blk);
			ref->gen = blk->gen;
		} else if (ret != -ENOBUFS) {
			ret = hawk_room_error(s, &s->bucket[hawk_home(s, lid)], ret);
		}
		hawk_pair_unlock(s, home, hawk_home(s, lid));
		hawk_map_reap(s, hawk_home(s, lid));
		if (ret != -ENOBUFS)
			return ret;
		ret = hawk_want_fetch(s, &w, hawk_home(s, lid));
		if (ret)
			return ret;
	}
}
