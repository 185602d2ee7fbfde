// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * promote.c - lazy promotion
 *
 * A gather reads blocks on flash past any frame.  Such a block is marked
 * (HAWK_BF_PROMOTE) and noted in a queue of its space, by number and life; when the queue is
 * full it is not.  While the runtime says that prefill runs, the host takes the blocks off
 * the queue and reads them into frames, so that the next turn finds them in memory.
 *
 * That must cost nobody anything: no block is written for it, none that is warmer gives way,
 * and no read is begun while a delivery or reload waits for the drive.  What was promoted
 * has a good copy on flash, so whoever needs its frame takes it at once.  A block that has
 * not ended is marked if, and as long as, the queue holds its present life.
 */
#include "promote.h"
#include "priv.h"

#define LOOK	64	/* blocks looked at per call */

int hawk_promote_create(struct hawk_space *s)
{
	struct hawk_promote *q;

	q = hawk_table_alloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	hawk_lock_init(&q->lock);
	hawk_lock_name(&q->lock, HAWK_LOCK_PROMOTE);
	s->promote = q;
	return 0;
}

void hawk_promote_destroy(struct hawk_space *s)
{
	if (!s->promote)
		return;
	hawk_lock_fini(&s->promote->lock);
	hawk_table_free(s->promote, 1, sizeof(*s->promote));
}

void hawk_promote_note(struct hawk_space *s, struct hawk_block *blk)
{
	struct hawk_promote *q = s->promote;

	hawk_assert_held(&hawk_bucket_of(s, blk)->lock);
	if (!q || (blk->flags & HAWK_BF_PROMOTE))
		return;
	hawk_lock(&q->lock);
	if (q->n < HAWK_PROMOTE_MAX) {
		q->ref[(q->first + q->n) % HAWK_PROMOTE_MAX] = (struct hawk_ref) {
			.block = hawk_block_nr(s, blk),
			.gen = blk->gen,
		};
		hawk_store(&q->n, q->n + 1);
		blk->flags |= HAWK_BF_PROMOTE;
	}
	hawk_unlock(&q->lock);
}

static bool take_first(struct hawk_promote *q, struct hawk_ref *ref)
{
	bool any;

	hawk_lock(&q->lock);
	any = q->n;
	if (any) {
		*ref = q->ref[q->first];
		q->first = (q->first + 1) % HAWK_PROMOTE_MAX;
		hawk_store(&q->n, q->n - 1);
	}
	hawk_unlock(&q->lock);
	return any;
}

/* Deliveries or reloads are to come from a drive of the space. */
static bool busy(const struct hawk_space *s)
{
	u32 t, tiers = hawk_load(&s->flash_tiers);

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if ((tiers & 1u << t) && hawk_pace_busy(&s->engine->pace, t))
			return true;
	return false;
}

/* The block has been taken off the queue. */
static bool promote(struct hawk_space *s, struct hawk_block *blk, u64 now, struct hawk_plan *plan)
{
	struct hawk_bucket *b = hawk_bucket_of(s, blk);
	struct hawk_want w = { .plan = plan, .now = now };
	u32 tier, frame;

	blk->flags &= ~HAWK_BF_PROMOTE;
	if (blk->state != HAWK_BLOCK_FLASH || hawk_load(&s->engine->tier[blk->ftier].lost))
		return false;
	frame = hawk_idle_frame(s, blk, &w, &tier);
	if (frame == HAWK_NONE) {
		b->count[HAWK_N_PROMOTE_CANCELED]++;
		return false;
	}
	hawk_lru_del(s, blk);
	hawk_reload_start(s, blk, tier, frame, HAWK_MF_PROMOTE, plan);
	return true;
}

int hawk_promote_next(struct hawk_space *s, struct hawk_plan *plan, u64 now)
{
	struct hawk_block *blk;
	struct hawk_ref ref;
	int n = 0;
	u32 i, home;

	for (i = 0; i < LOOK && hawk_promote_due(s, now) && !hawk_plan_full(plan); i++) {
		if (busy(s))
			return n ? n : -EBUSY;
		if (!take_first(s->promote, &ref))
			break;
		blk = hawk_ref_lock(s, ref);
		if (!blk)
			continue;
		home = blk->home;
		n += promote(s, blk, now, plan);
		hawk_unlock(&s->bucket[home].lock);
		hawk_map_reap(s, home);
	}
	return n;
}

bool hawk_promote_due(const struct hawk_space *s, u64 now)
{
	const struct hawk_promote *q = s->promote;

	return q && now < hawk_load(&q->until) && hawk_load(&q->n);
}

int hawk_space_phase(struct hawk_space *s, struct hawk_phase *ph, u64 now)
{
	bool prefill = ph->flags & HAWK_PHASE_PREFILL;

	if (prefill ? ph->until_ns > now && ph->until_ns - now > HAWK_PHASE_MAX_NS : !!ph->until_ns)
		return -EINVAL;
	ph->pending = 0;
	if (!s->promote)
		return 0;
	hawk_store(&s->promote->until, ph->until_ns);
	ph->pending = hawk_load(&s->promote->n);
	return 0;
}

/* How many blocks the queue holds that are marked; HAWK_NONE: it holds one that is not. */
u32 hawk_promote_count(struct hawk_space *s)
{
	const struct hawk_promote *q = s->promote;
	const struct hawk_block *blk;
	struct hawk_ref ref;
	u32 i, n = 0;

	for (i = 0; q && i < q->n; i++) {
		ref = q->ref[(q->first + i) % HAWK_PROMOTE_MAX];
		blk = &s->block[ref.block];
		if (blk->gen != ref.gen || blk->state == HAWK_BLOCK_DYING)
			continue;
		if (!(blk->flags & HAWK_BF_PROMOTE))
			return HAWK_NONE;
		n++;
	}
	return n;
}
