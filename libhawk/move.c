// SPDX-License-Identifier: MIT
/*
 * move.c - executing plans
 *
 * A plan's transfers go together.  Those between flash and memory of a GPU pass through an
 * area of pinned memory: first all that is written is copied out of the GPU, and while
 * that is under way what has come is checksummed; then comes flash; what has been read is
 * checked, and copied into the GPU while more is being read.  An area is as much as one
 * plan may have in flight: a plan with more goes in pieces.
 */
#include <stdlib.h>
#include <time.h>

#include "crc32c.h"
#include "embed.h"
#include "gpu.h"

#define TURN_NS	500000	/* to wait for one who is urgent, before looking again */

static void complete(struct embed *e, struct hawk_move *m)
{
	hawk_move_complete(m);
	moved_note(e);
}

/* A move: where its bytes are on their way to or from a GPU. */
struct leg {
	struct hawk_move m;	/* the plan is its caller's, who may leave */
	u8 *stage;		/* in the area, or NULL */
	bool landing;		/* being copied into the GPU */
};

/* The moves of a plan: see eio_kind. */
struct moves {
	struct eio_kind kind;
	bool paced;
	struct hawk_delivery d;	/* its reads, if @paced: somebody waits for them */
	struct gpu_area *area;	/* or NULL */
	u32 n;
	struct leg leg[];
};

static struct espace *space_of(const struct eio_kind *k)
{
	return k->sp;
}

static void move_place(const struct eio_kind *k, void *what, struct eio_place *p)
{
	const struct espace *sp = space_of(k);
	const struct leg *leg = what;
	const struct hawk_move *m = &leg->m;
	const struct etier *src = &sp->e->tier[m->src_tier], *dst = &sp->e->tier[m->dst_tier];

	p->write = m->kind == HAWK_MOVE_WRITE;
	p->t = &sp->e->tier[p->write ? m->dst_tier : m->src_tier];
	if (leg->stage)
		p->mem = leg->stage;
	else
		p->mem = p->write ? src->base + m->src_off : dst->base + m->dst_off;
	p->off = p->write ? dst->data_off + m->dst_off : src->data_off + m->src_off;
	p->bytes = sp->geo.block_bytes;
}

static bool good(const struct embed *e, const struct leg *leg, u32 bytes)
{
	const struct hawk_move *m = &leg->m;

	return m->crc == hawk_crc32c(leg->stage ? leg->stage :
				     e->tier[m->dst_tier].base + m->dst_off, bytes);
}

/* A transfer has ended: check what was read, count, tell the engine. */
static void move_done(const struct eio_kind *k, void *what, s32 res)
{
	struct moves *moves = (struct moves *)k;
	u32 bytes = space_of(k)->geo.block_bytes;
	struct embed *e = space_of(k)->e;
	struct leg *leg = what;
	struct hawk_move *m = &leg->m;
	bool read = m->kind == HAWK_MOVE_READ;
	struct etier *flash = &e->tier[read ? m->src_tier : m->dst_tier];

	if (read && moves->paced)
		hawk_pace_done(hawk_engine_pace(e->engine), &moves->d, HAWK_PACE_FLASH,
			       m->src_tier, bytes, now_ns());
	m->result = res;
	if (!m->result && read && !good(e, leg, bytes))
		m->result = -EILSEQ;
	if (m->result == -ECANCELED)
		;	/* it was not made */
	else if (m->result)
		flash_failed(flash, !read, m->result);
	else
		flash_works(flash, !read, bytes);
	leg->landing = !m->result && read && leg->stage;
	if (!leg->landing)
		complete(e, m);
	else if (gpu_area_in(moves->area, (u32)(leg->stage - moves->area->mem), m->dst_off, bytes))
		m->result = -ECANCELED;	/* on flash it is good */
}

/* What was read is in the GPU, or never will be. */
static void land(struct moves *moves)
{
	struct leg *leg;
	int ret;

	if (!moves->area)
		return;
	ret = gpu_area_settle(moves->area);
	for (leg = moves->leg; leg < moves->leg + moves->n; leg++) {
		if (!leg->landing)
			continue;
		leg->landing = false;
		if (ret)
			leg->m.result = -ECANCELED;
		complete(moves->kind.sp->e, &leg->m);
	}
	gpu_area_give(moves->area);
	moves->area = NULL;
}

/* From memory to memory, either of which may be a GPU's. */
static int copy_bytes(const struct etier *dst, u64 to, const struct etier *src, u64 from, u32 bytes)
{
	u8 *mem;
	int ret;

	if (dst->base && src->base) {
		memcpy(dst->base + to, src->base + from, bytes);
		return 0;
	}
	if (dst->gpu && dst->gpu == src->gpu)
		return gpu_copy(dst->gpu, to, from, bytes);
	if (dst->base)
		return gpu_read(src->gpu, from, dst->base + to, bytes);
	if (src->base)
		return gpu_write(dst->gpu, to, src->base + from, bytes);
	mem = malloc(bytes);	/* one GPU to another: passes through the host */
	if (!mem)
		return -ENOMEM;
	ret = gpu_read(src->gpu, from, mem, bytes);
	ret = ret ? ret : gpu_write(dst->gpu, to, mem, bytes);
	free(mem);
	return ret;
}

static void copy(struct embed *e, struct hawk_move *m, u32 bytes)
{
	m->result = copy_bytes(&e->tier[m->dst_tier], m->dst_off, &e->tier[m->src_tier], m->src_off,
			       bytes);
	complete(e, m);
}

/*
 * What comes before any transfer: copies, checksums, and mapping the frames that
 * are read into, since the engine publishes their translations.
 * Return: false if the move has ended here.
 */
static bool prepare(struct espace *sp, struct leg *leg)
{
	struct hawk_move *m = &leg->m;
	struct embed *e = sp->e;
	u32 bytes = sp->geo.block_bytes;

	hawk_assert(m->space == sp->space);
	switch (m->kind) {
	case HAWK_MOVE_COPY:
		copy(e, m, bytes);
		return false;
	case HAWK_MOVE_WRITE:
		m->crc = hawk_crc32c(leg->stage ? leg->stage :
				     e->tier[m->src_tier].base + m->src_off, bytes);
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

/*
 * The reads of a plan become a delivery.  They go to memory, and pass no link that has a cap,
 * so all are started at once, unless somebody else is urgent.
 * Return: how many moves, from the first on, may begin.
 */
static u32 reads_begin(struct espace *sp, const struct hawk_plan *plan,
		       const struct hawk_batch *b, struct hawk_delivery *d)
{
	struct hawk_pace *p = hawk_engine_pace(sp->e->engine);
	u64 got[HAWK_TIERS_MAX] = { 0 }, wait, bytes = sp->geo.block_bytes;
	struct hawk_pace_load load = {
		.deadline = b ? b->deadline_ns : 0,
		.urgent = b && b->flags & HAWK_BATCH_URGENT,
	};
	u32 i, k, t;

	for (i = 0; i < plan->n; i++)
		if (plan->move[i].kind == HAWK_MOVE_READ)
			load.flash[plan->move[i].src_tier] += bytes;
	hawk_pace_begin(p, d, &load, hawk_space_paced(sp->space), now_ns());
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (load.flash[t])
			got[t] = hawk_pace_take(p, d, HAWK_PACE_FLASH, t, bytes, load.flash[t],
						now_ns(), &wait);
	for (i = 0; i < plan->n; i++) {
		t = plan->move[i].src_tier;
		if (plan->move[i].kind != HAWK_MOVE_READ)
			continue;
		if (got[t] < bytes)
			break;
		got[t] -= bytes;
	}
	/* the rest is another delivery, later */
	for (k = i; k < plan->n; k++) {
		t = plan->move[k].src_tier;
		if (plan->move[k].kind != HAWK_MOVE_READ)
			continue;
		hawk_pace_skip(p, d, HAWK_PACE_FLASH, t, bytes, got[t], now_ns());
		got[t] -= got[t] ? bytes : 0;
	}
	return i;
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

	land(moves);
	if (moves->paced)
		hawk_pace_end(hawk_engine_pace(k->sp->e->engine), &moves->d, now_ns());
	free(moves);
}

/* ---- pieces ---- */

/* The GPU that a move goes from or to flash, or NULL. */
static struct gpu *gpu_of(const struct espace *sp, const struct hawk_move *m)
{
	return m->kind == HAWK_MOVE_COPY ? NULL :
	       sp->e->tier[m->kind == HAWK_MOVE_WRITE ? m->src_tier : m->dst_tier].gpu;
}

/* Moves from @first on that go together: of one GPU, as many as an area has room for. */
static u32 piece(const struct espace *sp, const struct hawk_plan *plan, u32 first, struct gpu **g)
{
	u32 i, n = 0, room = GPU_AREA_BYTES / sp->geo.block_bytes;
	struct gpu *one;

	*g = NULL;
	for (i = first; i < plan->n; i++) {
		one = gpu_of(sp, &plan->move[i]);
		if (!one)
			continue;
		if ((*g && one != *g) || n == room)
			break;
		*g = one;
		n++;
	}
	return i - first;
}

/* Legs that begin in the GPU. */
static u32 outs(const struct moves *moves)
{
	u32 i, n = 0;

	for (i = 0; i < moves->n; i++)
		n += moves->leg[i].m.kind == HAWK_MOVE_WRITE && gpu_of(moves->kind.sp,
								       &moves->leg[i].m);
	return n;
}

/* The mark behind copy @i of @n. */
static u32 mark_of(u32 i, u32 n)
{
	return i * GPU_MARKS / n;
}

/*
 * Give the legs their places in the area, and begin to copy out of the GPU.
 * Return: 0 or why not all are on their way.
 */
static int take_off(struct moves *moves, u32 n)
{
	u32 bytes = moves->kind.sp->geo.block_bytes, i, at = 0, out = 0;
	struct leg *leg;
	int ret = 0;

	for (i = 0; i < moves->n; i++) {
		leg = &moves->leg[i];
		if (!gpu_of(moves->kind.sp, &leg->m))
			continue;
		leg->stage = moves->area->mem + at;
		if (leg->m.kind == HAWK_MOVE_WRITE) {
			ret = ret ? ret : gpu_area_out(moves->area, at, leg->m.src_off, bytes);
			if (!ret && mark_of(out + 1, n) != mark_of(out, n))
				ret = gpu_area_mark(moves->area, mark_of(out, n));
			out++;
		}
		at += bytes;
	}
	return ret;
}

/*
 * Queues what goes between memory and flash; what comes out of the GPU as it comes.  A copy
 * that failed has failed all: what is waited for is not there.
 */
static void queue_all(struct moves *moves, struct eio *io)
{
	u32 i, out = 0, n = outs(moves), mark = GPU_MARKS;
	int ret = moves->area ? take_off(moves, n) : 0;

	for (i = 0; i < moves->n; i++) {
		struct leg *leg = &moves->leg[i];

		if (leg->stage && leg->m.kind == HAWK_MOVE_WRITE) {
			if (!ret && mark_of(out, n) != mark)
				ret = gpu_area_wait(moves->area, mark_of(out, n));
			mark = mark_of(out++, n);
			if (ret) {
				leg->m.result = ret;
				complete(moves->kind.sp->e, &leg->m);
				continue;
			}
		}
		if (prepare(moves->kind.sp, leg))
			eio_queue(io, &moves->kind, leg);
	}
}

/* The moves go one by one where there is no memory for more; those of a GPU do not. */
static void run_singly(struct espace *sp, struct hawk_plan *plan)
{
	struct {
		struct moves moves;
		struct leg leg;
	} one = { .moves = { .kind = { move_place, move_done, NULL, sp } } };
	u32 i;

	for (i = 0; i < plan->n; i++) {
		one.leg = (struct leg){ .m = plan->move[i] };
		if (gpu_of(sp, &one.leg.m)) {
			one.leg.m.result = one.leg.m.kind == HAWK_MOVE_WRITE ? -ENOMEM : -ECANCELED;
			complete(sp->e, &one.leg.m);
		} else if (prepare(sp, &one.leg)) {
			eio_queue(NULL, &one.moves.kind, &one.leg);
		}
		plan->move[i].result = one.leg.m.result;
	}
}

static int run_together(struct hawk_plan *plan, struct eio *io, struct moves *moves, u64 deadline)
{
	u32 i, n = plan->n;
	int ret;

	queue_all(moves, io);
	ret = eio_finish(io, &moves->kind, deadline);
	if (ret)
		return ret;
	land(moves);
	for (i = 0; i < n; i++)
		plan->move[i].result = moves->leg[i].m.result;
	moves_over(&moves->kind);
	return 0;
}

/* Of @plan as many moves, from the first on, as may begin; maybe none. */
static struct moves *moves_new(struct espace *sp, struct hawk_plan *plan, bool paced,
			       const struct hawk_batch *b)
{
	struct moves *moves = malloc(sizeof(*moves) + plan->n * sizeof(*moves->leg));
	u32 i;

	if (!moves)
		return NULL;
	*moves = (struct moves){ .kind = { move_place, move_done, moves_over, sp },
				 .paced = paced && has_reads(plan) };
	if (moves->paced)
		plan->n = reads_begin(sp, plan, b, &moves->d);
	moves->n = plan->n;
	for (i = 0; i < plan->n; i++)
		moves->leg[i] = (struct leg){ .m = plan->move[i] };
	return moves;
}

/*
 * @plan->n becomes how many moves that was, from the first on: fewer while others are urgent.
 * Return: 0, or -ETIME: some moves are still under way, or none was begun.
 */
static int run_piece(struct espace *sp, struct hawk_plan *plan, struct gpu *g, bool paced,
		     const struct hawk_batch *b, u64 deadline)
{
	struct gpu_area *area = NULL;
	struct moves *moves;
	u32 n = plan->n;
	struct eio *io;

	if (g) {
		area = gpu_area_take(g, deadline);
		if (!area) {
			plan_cancel(sp->e, plan);
			plan->n = n;
			return -ETIME;
		}
	}
	io = eio_take(sp->e);
	moves = io ? moves_new(sp, plan, paced, b) : NULL;
	if (moves) {
		moves->area = area;
		return run_together(plan, io, moves, deadline);
	}
	if (io)
		eio_finish(io, NULL, 0);
	run_singly(sp, plan);
	if (area)
		gpu_area_give(area);
	return 0;
}

/* Somebody urgent has the drive. */
static int wait_turn(u64 deadline)
{
	const struct timespec ts = { 0, TURN_NS };

	nanosleep(&ts, NULL);	/* no wait for moves of others: there are own ones to make */
	return deadline && now_ns() >= deadline ? -ETIME : 0;
}

static int run(struct espace *sp, struct hawk_plan *plan, bool paced,
	       const struct hawk_batch *b, u64 deadline)
{
	struct hawk_plan part;
	bool wrote = false;
	struct gpu *g;
	int ret = 0;
	u32 i, n;

	for (i = 0; i < plan->n; i++)
		wrote |= to_pool(sp, &plan->move[i]);
	for (i = 0; i < plan->n; i += n) {
		n = piece(sp, plan, i, &g);
		part = (struct hawk_plan){ .n = n, .max = n, .move = plan->move + i };
		if (ret) {
			plan_cancel(sp->e, &part);
			continue;
		}
		ret = run_piece(sp, &part, g, paced, b, deadline);
		n = part.n;
		if (!n && !ret)
			ret = wait_turn(deadline);
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
	return run(sp, plan, true, NULL, deadline);
}

/* The same of a batch that waits: its deadline, and whether it is urgent, count. */
int plan_run_batch(struct espace *sp, struct hawk_plan *plan, const struct hawk_batch *b)
{
	return run(sp, plan, true, b, b->deadline_ns);
}

/* The same of moves that nobody waits for: others need not keep off the drive. */
void plan_run_idle(struct espace *sp, struct hawk_plan *plan)
{
	run(sp, plan, false, NULL, 0);
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
