// SPDX-License-Identifier: MIT
/*
 * get.c - GET and RELOAD: bring blocks into a host tier
 *
 * A block named by key is leased while it is brought in, so that its LID cannot
 * come to mean another block meanwhile.  All reads of a pass are in flight
 * together.
 */
#include <stdlib.h>

#include "embed.h"

#define TRIES	3	/* a block can be evicted between its reload and its pin */

struct gitem {
	struct hawk_ref lease;
	u32 move;		/* its READ in the plan, HAWK_NONE */
	bool leased;
	bool reading;		/* a READ of it was seen under way */
};

struct get {
	struct run r;
	bool pin;		/* GET */
	u32 n;			/* items not cut off by HAWK_BATCH_PREFIX */
	struct gitem *gi;
};

static struct hawk_space *space_of(struct get *g)
{
	return g->r.kv->sp->space;
}

static void unlease(struct get *g, u32 i)
{
	if (g->gi[i].leased)
		hawk_block_unlease(space_of(g), g->gi[i].lease);
	g->gi[i].leased = false;
}

/* By key: find the block's LID and lease it. */
static int resolve(struct get *g, u32 i, u64 now)
{
	struct hawk_item *it = &g->r.it[i];
	u64 lid, vt;
	int ret;

	if (!(it->flags & HAWK_ITEM_BY_KEY) || g->gi[i].leased)
		return 0;
	ret = hawk_block_find(space_of(g), it->key, true, now, &lid, &vt, &g->gi[i].lease);
	g->gi[i].leased = !ret;
	if (!ret)
		it->lid = lid;
	return ret;
}

/* Into a host tier: 0, RUN_PENDING or an error. */
static int bring_in(struct get *g, u32 i, u64 now)
{
	struct gitem *gi = &g->gi[i];
	struct run *r = &g->r;
	u32 before = r->plan.n;
	int ret;

	if (r->b->flags & HAWK_BATCH_NOWAIT)
		return 0;
	do {
		ret = hawk_block_reload(space_of(g), r->it[i].lid, r->b->tier, now, &r->plan);
	} while (espace_grew(r->kv->sp, ret));
	if (ret == -EINPROGRESS) {
		gi->reading = true;
		if (r->plan.n > before)
			gi->move = r->plan.n - 1;
		return RUN_PENDING;
	}
	if (ret == -ENOSPC && run_more(r))
		return RUN_PENDING;
	return ret == -EAGAIN ? RUN_PENDING : ret;
}

static int pin(struct get *g, u32 i, u64 now)
{
	struct hawk_item *it = &g->r.it[i];
	struct gitem *gi = &g->gi[i];
	struct hawk_ref ref;
	u64 vt;
	int ret;

	ret = hawk_block_pin(space_of(g), it->lid, now, &vt, &ref);
	if (ret)
		return ret;
	it->vt = vt;
	if (gi->leased && (ref.block != gi->lease.block || ref.gen != gi->lease.gen)) {
		hawk_block_unpin(space_of(g), ref);	/* the LID moved on to another block */
		unlease(g, i);
		return -EAGAIN;
	}
	return run_pin(g->r.kv, vt, ref);
}

/* One try for one item: 0, RUN_PENDING or an error. */
static int get_one(struct get *g, u32 i, u64 now)
{
	bool nowait = g->r.b->flags & HAWK_BATCH_NOWAIT;
	int ret, tries;

	for (tries = 0; tries < TRIES; tries++) {
		ret = resolve(g, i, now);
		if (!ret)
			ret = bring_in(g, i, now);
		if (ret == -ENOENT && g->gi[i].reading)
			return -EIO;	/* what another thread read was bad */
		if (ret)
			return ret;
		if (!g->pin) {
			g->r.it[i].vt = hawk_space_translate(space_of(g), g->r.it[i].lid);
			return 0;
		}
		ret = pin(g, i, now);
		if (ret != -EAGAIN || nowait)
			return ret;
	}
	return -EAGAIN;
}

static void cut_off(struct get *g, u32 from)
{
	struct run *r = &g->r;
	u32 i;

	for (i = from; i < g->n; i++) {
		if (!r->it[i].status && g->pin)
			pins_drop(r->kv, r->it[i].lid, r->it[i].vt);
		unlease(g, i);
		r->it[i].status = -ECANCELED;
	}
	g->n = from;
}

static void item_end(struct get *g, u32 i, int status)
{
	struct run *r = &g->r;
	bool prefix = r->b->flags & HAWK_BATCH_PREFIX;

	unlease(g, i);
	r->it[i].status = status;
	if (status)
		r->it[i].vt = 0;	/* a completion tells it before the batch is done */
	if (status && prefix)
		cut_off(g, i + 1);
	if (r->item_done && !prefix)
		r->item_done(r, i);
}

/* Items whose own READ failed. */
static void collect(struct get *g)
{
	const struct run *r = &g->r;
	u32 i, move;
	s32 res;

	for (i = 0; i < g->n; i++) {
		move = g->gi[i].move;
		if (move == HAWK_NONE)
			continue;
		g->gi[i].move = HAWK_NONE;
		res = g->r.move[move].result;
		if (res == -ECANCELED && egpu_lost(r->kv->sp, r->move[move].dst_tier))
			continue;	/* it is on flash still, and goes elsewhere */
		if (res && g->r.it[i].status == RUN_PENDING)
			item_end(g, i, res == -ECANCELED ? -ENOMEM : -EIO);
	}
}

/* Goes over the unfinished items once; true: some are left. */
static bool pass(struct get *g)
{
	struct run *r = &g->r;
	bool left = false;
	u64 now = now_ns();
	u32 i;
	int ret;

	run_pass(r);
	for (i = 0; i < g->n; i++) {
		if (r->it[i].status != RUN_PENDING)
			continue;
		ret = r->plan.n < r->plan.max ? get_one(g, i, now) : RUN_PENDING;
		if (ret == RUN_PENDING)
			left = true;
		else
			item_end(g, i, ret);
	}
	return left;
}

static void get_all(struct get *g)
{
	struct run *r = &g->r;
	int ret = 0;
	u32 i;

	while (!ret) {
		if (r->stop && __atomic_load_n(r->stop, __ATOMIC_RELAXED)) {
			ret = -ECANCELED;
			break;
		}
		if (!pass(g))
			return;
		ret = run_step(r);
		if (!ret)
			collect(g);
	}
	for (i = 0; i < g->n; i++)
		if (r->it[i].status == RUN_PENDING)
			item_end(g, i, ret);
}

/**
 * embed_get() - GET or RELOAD
 * @item_done: told each item when it is done (in order, at the end, with
 *	HAWK_BATCH_PREFIX), or NULL
 * @stop: atomic, set when the rest is not wanted any more; or NULL
 */
int embed_get(struct ekv *kv, unsigned int op, struct hawk_batch *b,
	      void (*item_done)(struct run *r, u32 i), const bool *stop)
{
	struct get g = { .pin = op == HAWK_IOC_GET, .n = b->count };
	struct hawk_pace_load load = { 0 };
	struct run *r = &g.r;
	int ret;
	u32 i;

	g.gi = calloc(b->count, sizeof(*g.gi));
	if (!g.gi)
		return hawk_fail(-ENOMEM, "a batch of %u items", b->count);
	hawk_space_load(kv->sp->space, (void *)(uintptr_t)b->items,
			b->flags & HAWK_BATCH_IN_TIME ? b->count : 0, &load);
	if (!epace_in_time(kv->sp, &load, b->flags, b->deadline_ns)) {
		free(g.gi);
		return hawk_fail(-ETIME, "a reload of %u items would end after its deadline",
				 b->count);
	}
	run_start(r, kv, b);
	r->item_done = item_done;
	r->stop = stop;
	for (i = 0; i < b->count; i++) {
		g.gi[i].move = HAWK_NONE;
		r->it[i].lid = hawk_lid_block(r->it[i].lid, kv->sp->geo.block_tokens);
		r->it[i].status = RUN_PENDING;
	}
	for (i = 0; i < g.n; i++) {
		ret = item_check(&r->it[i], HAWK_ITEM_BY_KEY);
		if (ret)
			item_end(&g, i, ret);
	}
	get_all(&g);
	run_end(r);
	batch_finish(b);
	if (item_done && b->flags & HAWK_BATCH_PREFIX)
		for (i = 0; i < b->count; i++)
			item_done(r, i);
	free(g.gi);
	return 0;
}
