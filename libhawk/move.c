// SPDX-License-Identifier: MIT
/*
 * move.c - executing plans
 */
#include <stdlib.h>

#include "crc32c.h"
#include "embed.h"

static void complete(struct embed *e, struct hawk_move *m)
{
	hawk_move_complete(m);
	moved_note(e);
}

/* The moves of a plan: see eio_kind. */
struct moves {
	struct eio_kind kind;
	bool paced;
	struct hawk_delivery d;	/* its reads, if @paced: somebody waits for them */
	struct hawk_move move[];	/* the plan is its caller's, who may leave */
};

static struct espace *space_of(const struct eio_kind *k)
{
	return k->sp;
}

static void move_place(const struct eio_kind *k, void *what, struct eio_place *p)
{
	const struct espace *sp = space_of(k);
	const struct hawk_move *m = what;
	const struct etier *src = &sp->e->tier[m->src_tier], *dst = &sp->e->tier[m->dst_tier];

	p->write = m->kind == HAWK_MOVE_WRITE;
	p->t = &sp->e->tier[p->write ? m->dst_tier : m->src_tier];
	p->mem = p->write ? src->base + m->src_off : dst->base + m->dst_off;
	p->off = p->write ? dst->data_off + m->dst_off : src->data_off + m->src_off;
	p->bytes = sp->geo.block_bytes;
}

/* A transfer has ended: check what was read, count, tell the engine. */
static void move_done(const struct eio_kind *k, void *what, s32 res)
{
	u32 bytes = space_of(k)->geo.block_bytes;
	struct embed *e = space_of(k)->e;
	struct hawk_move *m = what;
	bool read = m->kind == HAWK_MOVE_READ;
	struct etier *flash = &e->tier[read ? m->src_tier : m->dst_tier];

	if (read && ((struct moves *)k)->paced)
		hawk_pace_done(hawk_engine_pace(e->engine), &((struct moves *)k)->d,
			       HAWK_PACE_FLASH, m->src_tier, bytes, now_ns());
	m->result = res;
	if (!m->result && read && m->crc !=
	    hawk_crc32c(e->tier[m->dst_tier].base + m->dst_off, bytes))
		m->result = -EILSEQ;
	if (m->result == -ECANCELED)
		;	/* it was not made */
	else if (m->result)
		flash_failed(flash, !read, m->result);
	else
		flash_works(flash, !read, bytes);
	complete(e, m);
}

static void copy(struct embed *e, struct hawk_move *m, u32 bytes)
{
	memcpy(e->tier[m->dst_tier].base + m->dst_off, e->tier[m->src_tier].base + m->src_off,
	       bytes);
	m->result = 0;
	complete(e, m);
}

/*
 * What comes before any transfer: copies, checksums, and mapping the frames that
 * are read into, since the engine publishes their translations.
 * Return: false if the move has ended here.
 */
static bool prepare(struct espace *sp, struct hawk_move *m)
{
	struct embed *e = sp->e;
	u32 bytes = sp->geo.block_bytes;

	hawk_assert(m->space == sp->space);
	switch (m->kind) {
	case HAWK_MOVE_COPY:
		copy(e, m, bytes);
		return false;
	case HAWK_MOVE_WRITE:
		m->crc = hawk_crc32c(e->tier[m->src_tier].base + m->src_off, bytes);
		return true;
	default:
		if (!window_map(sp, m->dst_tier, m->dst_frame))
			return true;
		m->result = -ECANCELED;
		complete(e, m);
		return false;
	}
}

static bool to_pool(const struct espace *sp, const struct hawk_move *m)
{
	return m->kind == HAWK_MOVE_WRITE && sp->e->tier[m->dst_tier].pool;
}

/* All reads of a plan are started at once: they go to memory, and pass no link. */
static void reads_begin(struct espace *sp, const struct hawk_plan *plan, struct hawk_delivery *d)
{
	struct hawk_pace *p = hawk_engine_pace(sp->e->engine);
	u64 wait, bytes = sp->geo.block_bytes;
	struct hawk_pace_load load = { 0 };
	u32 i, t;

	for (i = 0; i < plan->n; i++)
		if (plan->move[i].kind == HAWK_MOVE_READ)
			load.flash[plan->move[i].src_tier] += bytes;
	hawk_pace_begin(p, d, &load, hawk_space_paced(sp->space), now_ns());
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (load.flash[t])
			hawk_pace_take(p, d, HAWK_PACE_FLASH, t, bytes, load.flash[t], now_ns(),
				       &wait);
}

static bool has_reads(const struct hawk_plan *plan)
{
	u32 i;

	for (i = 0; i < plan->n; i++)
		if (plan->move[i].kind == HAWK_MOVE_READ)
			return true;
	return false;
}

static void moves_over(const struct eio_kind *k)
{
	struct moves *moves = (struct moves *)k;

	if (moves->paced)
		hawk_pace_end(hawk_engine_pace(k->sp->e->engine), &moves->d, now_ns());
	free(moves);
}

/* The moves go one by one where there is no memory for more. */
static void run_singly(struct espace *sp, struct hawk_plan *plan)
{
	struct moves one = { .kind = { move_place, move_done, NULL, sp } };
	u32 i;

	for (i = 0; i < plan->n; i++)
		if (prepare(sp, &plan->move[i]))
			eio_queue(NULL, &one.kind, &plan->move[i]);
}

static int run_together(struct espace *sp, struct hawk_plan *plan, struct eio *io,
			struct moves *moves, u64 deadline)
{
	u32 i, n = plan->n;
	int ret;

	memcpy(moves->move, plan->move, n * sizeof(*plan->move));
	for (i = 0; i < n; i++)
		if (prepare(sp, &moves->move[i]))
			eio_queue(io, &moves->kind, &moves->move[i]);
	ret = eio_finish(io, &moves->kind, deadline);
	if (ret)
		return ret;
	for (i = 0; i < n; i++)
		plan->move[i].result = moves->move[i].result;
	moves_over(&moves->kind);
	return 0;
}

static int run(struct espace *sp, struct hawk_plan *plan, bool paced, u64 deadline)
{
	struct moves *moves;
	struct eio *io;
	bool wrote = false;
	int ret = 0;
	u32 i;

	if (!plan->n)
		return 0;
	for (i = 0; i < plan->n; i++)
		wrote |= to_pool(sp, &plan->move[i]);
	io = eio_take(sp->e);
	moves = io ? malloc(sizeof(*moves) + plan->n * sizeof(*plan->move)) : NULL;
	if (moves) {
		*moves = (struct moves){ .kind = { move_place, move_done, moves_over, sp },
					 .paced = paced && has_reads(plan) };
		if (moves->paced)
			reads_begin(sp, plan, &moves->d);
		ret = run_together(sp, plan, io, moves, deadline);
	} else {
		if (io)
			eio_finish(io, NULL, 0);
		run_singly(sp, plan);
	}
	if (wrote)
		keeper_kick_commit(sp->e);
	plan->n = 0;
	return ret;
}

/**
 * plan_run() - make the moves of a plan of @sp and empty it
 * @deadline: when to wait no longer, CLOCK_MONOTONIC ns, 0: never
 *
 * Return: 0: the moves keep their results until the plan is filled again; -ETIME: some are
 * still under way.
 */
int plan_run(struct espace *sp, struct hawk_plan *plan, u64 deadline)
{
	return run(sp, plan, true, deadline);
}

/* The same of moves that nobody waits for: others need not keep off the drive. */
void plan_run_idle(struct espace *sp, struct hawk_plan *plan)
{
	run(sp, plan, false, 0);
}

/* Hands the moves back untried. */
void plan_cancel(struct embed *e, struct hawk_plan *plan)
{
	u32 i;

	for (i = 0; i < plan->n; i++) {
		plan->move[i].result = -ECANCELED;
		complete(e, &plan->move[i]);
	}
	plan->n = 0;
}
