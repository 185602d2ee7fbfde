// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * plan.c - moves, and what their completion means
 */
#include "admit.h"

bool hawk_plan_full(const struct hawk_plan *p)
{
	return p->n >= p->max;
}

static struct hawk_move *plan_next(struct hawk_plan *p, struct hawk_space *s,
				   struct hawk_block *blk, u32 kind)
{
	struct hawk_move *m = &p->move[p->n++];

	memset(m, 0, sizeof(*m));
	m->space = s;
	m->block = hawk_block_nr(s, blk);
	m->gen = blk->gen;
	m->kind = kind;
	m->result = -ECANCELED;
	return m;
}

static void move_place(struct hawk_space *s, struct hawk_move *m)
{
	m->src_off = hawk_frame_off(s, m->src_tier, m->src_frame);
	m->dst_off = hawk_frame_off(s, m->dst_tier, m->dst_frame);
}

/* A WRITE or READ between the block's own two frames. */
void hawk_plan_add(struct hawk_plan *p, struct hawk_space *s, struct hawk_block *blk,
		   u32 kind, u8 flags)
{
	struct hawk_move *m = plan_next(p, s, blk, kind);
	bool read = kind == HAWK_MOVE_READ;

	m->flags = flags;
	m->src_tier = read ? blk->ftier : blk->htier;
	m->src_frame = read ? blk->fframe : blk->hframe;
	m->dst_tier = read ? blk->htier : blk->ftier;
	m->dst_frame = read ? blk->hframe : blk->fframe;
	m->crc = blk->crc;
	blk->flags |= HAWK_BF_MOVING;
	hawk_bucket_of(s, blk)->moving[blk->htier]++;
	move_place(s, m);
}

/* A copy between the host frames of two blocks; both stay pinned until it ends. */
void hawk_plan_copy(struct hawk_plan *p, struct hawk_space *s, struct hawk_block *from,
		    struct hawk_block *to)
{
	struct hawk_move *m = plan_next(p, s, to, HAWK_MOVE_COPY);

	m->src_tier = from->htier;
	m->src_frame = from->hframe;
	m->dst_tier = to->htier;
	m->dst_frame = to->hframe;
	move_place(s, m);
}

static void write_done(struct hawk_space *s, struct hawk_block *blk, const struct hawk_move *m)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	bool keep = m->flags & HAWK_MF_KEEP;

	b->moving[m->src_tier]--;
	blk->flags &= ~HAWK_BF_MOVING;
	if (m->result == -ECANCELED)
		hawk_admit_refund(&s->engine->tier[m->dst_tier], s->block_bytes);
	if (blk->state == HAWK_BLOCK_DYING) {
		if (!hawk_block_in_use(blk))
			hawk_block_bury(s, blk);
		return;
	}
	if (m->result) {
		hawk_block_drop_flash(s, blk);
	} else {
		blk->flags |= HAWK_BF_FLASH | HAWK_BF_CRC;
		hawk_store(&blk->hint, (blk->hint | HAWK_BH_COPY) & ~HAWK_BH_READ);
		blk->crc = m->crc;
		b->count[HAWK_N_EVICT_WRITE]++;
		hawk_keep_wrote(s, blk);
	}
	if (!m->result && !keep && !blk->pins) {
		hawk_block_event(blk, HAWK_EV_WRITTEN);
		hawk_block_publish(s, blk);
		hawk_block_drop_host(s, blk);
		hawk_lru_add(s, blk);
		return;
	}
	hawk_block_event(blk, HAWK_EV_KEPT);
	if (blk->pins)
		return;
	if (!m->result || m->result == -ECANCELED || keep) {
		hawk_lru_restore(s, blk);
	} else if (blk->leases) {
		hawk_lru_add(s, blk);	/* not the next to be tried */
	} else {
		/* a drive that fails must not stop those who need the frame */
		hawk_note(s, blk, HAWK_FATE_DROP, HAWK_WHY_FAILED, NULL);
		b->count[HAWK_N_EVICT_DROP]++;
		hawk_block_end(s, blk);
	}
}

static void read_done(struct hawk_space *s, struct hawk_block *blk, const struct hawk_move *m)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);

	b->moving[m->dst_tier]--;
	hawk_reads_add(s, m->src_tier, ~0ull);
	blk->flags &= ~HAWK_BF_MOVING;
	if (blk->state == HAWK_BLOCK_DYING) {
		if (!hawk_block_in_use(blk))
			hawk_block_bury(s, blk);
	} else if (!m->result) {
		b->count[m->flags & HAWK_MF_PROMOTE ? HAWK_N_PROMOTED : HAWK_N_RELOADS]++;
		hawk_block_event(blk, HAWK_EV_LOADED);
		hawk_block_publish(s, blk);
		hawk_lru_add(s, blk);
	} else if (m->result == -ECANCELED) {
		b->count[HAWK_N_PROMOTE_CANCELED] += !!(m->flags & HAWK_MF_PROMOTE);
		hawk_block_event(blk, HAWK_EV_CANCELED);
		hawk_block_drop_host(s, blk);
		hawk_lru_add(s, blk);
	} else {
		/* a block that cannot be read, or not trusted, is a miss */
		b->count[HAWK_N_RELOAD_ERRORS]++;
		hawk_block_end(s, blk);
	}
}

static void copy_done(struct hawk_space *s, const struct hawk_move *m)
{
	u32 nr[2] = { m->block, s->win[m->src_tier].frame[m->src_frame].block };
	struct hawk_block *blk;
	u32 i, home;

	for (i = 0; i < 2; i++) {
		blk = &s->block[nr[i]];
		home = blk->home;	/* the pin holds it still */
		hawk_lock(&s->bucket[home].lock);
		hawk_block_put_pin(s, blk);
		hawk_unlock(&s->bucket[home].lock);
		hawk_map_reap(s, home);
	}
	hawk_note_spares(s);	/* a block that nobody waited for is gone */
}

void hawk_move_complete(struct hawk_move *m)
{
	struct hawk_space *s = m->space;
	struct hawk_block *blk = &s->block[m->block];
	u32 home = blk->home;	/* the move in flight holds it still */

	if (m->kind == HAWK_MOVE_COPY) {
		copy_done(s, m);
		return;
	}
	hawk_lock(&s->bucket[home].lock);
	hawk_assert(blk->gen == m->gen && (blk->flags & HAWK_BF_MOVING));
	if (m->kind == HAWK_MOVE_WRITE)
		write_done(s, blk, m);
	else
		read_done(s, blk, m);
	hawk_unlock(&s->bucket[home].lock);
	hawk_map_reap(s, home);
	hawk_note_spares(s);
}
