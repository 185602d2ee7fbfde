// SPDX-License-Identifier: MIT
/*
 * move.c - executing plans
 */
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
	struct espace *sp;
	struct hawk_delivery *d;	/* its reads, or NULL: nobody waits for them */
};

static struct espace *space_of(const struct eio_kind *k)
{
	return ((const struct moves *)k)->sp;
}

static void move_place(const struct eio_kind *k, void *what, struct eio_place *p)
{
	const struct espace *sp = space_of(k);
	const struct hawk_move *m = what;
	const struct etier *src = &sp->e->tier[m->src_tier], *dst = &sp->e->tier[m->dst_tier];

	p->write = m->kind == HAWK_MOVE_WRITE;
	p->fd = p->write ? dst->fd : src->fd;
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

	if (read && ((const struct moves *)k)->d)
		hawk_pace_done(hawk_engine_pace(e->engine), ((const struct moves *)k)->d,
			       HAWK_PACE_FLASH, m->src_tier, bytes, now_ns());
	m->result = res;
	if (!m->result && read && m->crc !=
	    hawk_crc32c(e->tier[m->dst_tier].base + m->dst_off, bytes))
		m->result = -EILSEQ;
	if (m->result)
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

static void run(struct espace *sp, struct hawk_plan *plan, struct hawk_delivery *d)
{
	struct moves moves = { { move_place, move_done }, sp, d };
	struct eio *io = NULL;
	bool wrote = false;
	u32 i;

	for (i = 0; i < plan->n; i++) {
		wrote |= to_pool(sp, &plan->move[i]);
		if (!prepare(sp, &plan->move[i]))
			continue;
		if (!io)
			io = eio_take(sp->e);
		eio_queue(io, &moves.kind, &plan->move[i]);
	}
	eio_finish(sp->e, io, &moves.kind);
	if (wrote)
		keeper_kick_commit(sp->e);
	plan->n = 0;
}

/**
 * plan_run() - make the moves of a plan of @sp and empty it
 *
 * The moves keep their results until the plan is filled again.
 */
void plan_run(struct espace *sp, struct hawk_plan *plan)
{
	struct hawk_delivery d;
	bool reads = false;
	u32 i;

	for (i = 0; i < plan->n; i++)
		reads |= plan->move[i].kind == HAWK_MOVE_READ;
	if (!reads) {
		run(sp, plan, NULL);
		return;
	}
	reads_begin(sp, plan, &d);
	run(sp, plan, &d);
	hawk_pace_end(hawk_engine_pace(sp->e->engine), &d, now_ns());
}

/* The same of moves that nobody waits for: others need not keep off the drive. */
void plan_run_idle(struct espace *sp, struct hawk_plan *plan)
{
	run(sp, plan, NULL);
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
