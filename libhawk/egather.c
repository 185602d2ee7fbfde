// SPDX-License-Identifier: MIT
/*
 * egather.c - a gather of the embedded backend: blocks to a buffer, each once
 *
 * The engine finds the blocks, keeps them and orders them.  What lies on flash is read
 * straight into the buffer, neighbours by one read, while this thread copies what lies
 * in memory: in slices, no faster than its share of the drives lets both end together
 * (kmod/core/pace.c).  Between slices it sleeps until a read has ended.  What was read and
 * is not what was written is read again, block by block, into memory of our own: the caller
 * may write to his buffer meanwhile, and nobody shall lose a block for that.
 *
 * At its deadline a gather leaves what a drive has not answered (estray.c): it stays until
 * that has ended, and nobody looks at the buffer any more, which may have been unmapped.
 *
 * An asynchronous gather is found here and made by a mover (async.c).  It posts all of
 * its completions itself, the last one when it holds nothing any more.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "crc32c.h"
#include "embed.h"
#include "gpu.h"

#define RUN_BYTES	(16u << 20)	/* of a transfer, at most */
#define SLICE_BYTES	(256u << 10)	/* that are copied at once, or one block */

/* A transfer: places that are neighbours in their tier. */
struct erun {
	u32 at;
	u32 n;
	bool sent;		/* its read has begun */
	bool ended;
};

struct egather {
	struct eio_kind kind;	/* of its reads; first */
	struct ekv *kv;		/* not when it has been left */
	u32 refs;		/* its caller, and reads that he has left; atomic */
	struct hawk_gather arg;
	struct hawk_gather_set set;
	struct hawk_pace_load load;
	struct hawk_delivery paced;
	u64 *lid;
	struct erun *run;
	u32 nruns;
	u32 moved;		/* blocks that came */
	u64 called;		/* when, ns */
	u64 start;		/* of the first transfer, ns */
	u64 end[HAWK_TIERS_MAX];
	u8 *spare;		/* a block read again, or NULL */
};

static void gather_free(struct egather *g)
{
	free(g->spare);
	free(g->run);
	free(g->set.blk);
	free(g->set.key);
	free(g->set.status);
	free(g->set.remap);
	free(g->lid);
	free(g);
}

static void gather_put(struct egather *g)
{
	if (!__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
		gather_free(g);
}

static struct espace *space_of(const struct egather *g)
{
	return g->kind.sp;
}

static u32 block_bytes(const struct egather *g)
{
	return space_of(g)->geo.block_bytes;
}

static struct hawk_pace *pace_of(const struct egather *g)
{
	return hawk_engine_pace(space_of(g)->e->engine);
}

static struct etier *tier_of(const struct egather *g, u32 at)
{
	return &space_of(g)->e->tier[hawk_gather_tier(&g->set, at)];
}

static u8 *place_of(const struct egather *g, u32 at)
{
	return (u8 *)(uintptr_t)g->arg.buf + (u64)at * block_bytes(g);
}

static void end_block(struct egather *g, u32 at, s32 status, bool bad)
{
	u64 vt = hawk_gather_at(&g->set, at)->read.vt;
	struct hawk_cqe cqe = {
		.user_data = g->arg.user_data,
		.lid = hawk_gather_at(&g->set, at)->lid,
		.vt = status ? 0 : vt,
		.index = at,
		.status = status,
		.flags = HAWK_CQE_ITEM,
	};

	if (!status)
		g->moved++;
	hawk_gather_done(space_of(g)->space, &g->set, at, status, bad);
	moved_note(space_of(g)->e);
	if (g->arg.flags & HAWK_BATCH_ASYNC)
		ering_post(g->kv, &cqe);
}

/* ---- flash ---- */

static void run_place(const struct eio_kind *k, void *what, struct eio_place *p)
{
	struct egather *g = (struct egather *)k;
	const struct erun *r = what;

	p->t = tier_of(g, r->at);
	p->mem = place_of(g, r->at);
	p->off = tier_of(g, r->at)->data_off + hawk_gather_off(&g->set, r->at);
	p->bytes = r->n * block_bytes(g);
	p->write = false;
}

static bool good(const struct egather *g, u32 at, const u8 *p)
{
	return hawk_crc32c(p, block_bytes(g)) == hawk_gather_at(&g->set, at)->read.crc;
}

/* One block, into memory of our own.  Return: what is final. */
static s32 read_again(struct egather *g, u32 at)
{
	struct erun one = { .at = at, .n = 1 };
	struct eio_place p;
	ssize_t n;

	if (!g->spare && posix_memalign((void **)&g->spare, HAWK_FRAME_ALIGN, block_bytes(g))) {
		g->spare = NULL;
		return -ENOMEM;
	}
	run_place(&g->kind, &one, &p);
	n = pread(p.t->fd, g->spare, p.bytes, (off_t)p.off);
	if (n != (ssize_t)p.bytes)
		return -EIO;
	if (!good(g, at, g->spare))
		return -EILSEQ;
	memcpy(place_of(g, at), g->spare, p.bytes);
	return 0;
}

static void finish_run(struct egather *g, const struct erun *r, s32 res)
{
	struct etier *t = tier_of(g, r->at);
	s32 ret;
	u32 at;

	for (at = r->at; at < r->at + r->n; at++) {
		ret = !res && good(g, at, place_of(g, at)) ? 0 : read_again(g, at);
		if (ret)
			flash_failed(t, false, ret);
		else
			flash_works(t, false, block_bytes(g));
		end_block(g, at, ret, ret == -EIO || ret == -EILSEQ);
	}
}

/* What has come is checked while the rest is on its way. */
static void run_done(const struct eio_kind *k, void *what, s32 res)
{
	struct egather *g = (struct egather *)k;
	struct erun *r = what;
	u32 at;

	if (res == -ECANCELED) {
		for (at = r->at; at < r->at + r->n; at++)
			end_block(g, at, -ETIME, false);
		return;
	}
	g->end[hawk_gather_tier(&g->set, r->at)] = now_ns();
	r->ended = true;
	hawk_pace_done(pace_of(g), &g->paced, HAWK_PACE_FLASH, hawk_gather_tier(&g->set, r->at),
		       (u64)r->n * block_bytes(g), now_ns());
	finish_run(g, r, res);
}

/* What was left has ended. */
static void reads_over(const struct eio_kind *k)
{
	struct egather *g = (struct egather *)k;

	seqs_waiting(space_of(g));
	gather_put(g);
}

/* Waits for all reads that have begun, until the deadline.  Return: whether they have ended. */
static bool reads_end(struct egather *g, struct eio *io)
{
	__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	if (eio_finish(io, &g->kind, g->arg.deadline_ns))
		return false;
	__atomic_sub_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	return true;
}

/* ---- all transfers ---- */

static s32 stopped(const struct egather *g, const bool *stop)
{
	if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
		return -ECANCELED;
	return g->arg.deadline_ns && now_ns() >= g->arg.deadline_ns ? -ETIME : 0;
}

static bool on_flash(const struct egather *g, const struct erun *r)
{
	return tier_of(g, r->at)->kind == HAWK_TIER_BLK;
}

static void skip_run(struct egather *g, struct erun *r, s32 status)
{
	u32 at;

	for (at = r->at; at < r->at + r->n; at++)
		end_block(g, at, status, false);
	r->ended = true;
}

/* The first @n blocks of a transfer become one of their own. */
static void split_run(struct egather *g, struct erun *r, u32 n)
{
	if (n == r->n)
		return;
	g->run[g->nruns++] = (struct erun){ .at = r->at + n, .n = r->n - n };
	r->n = n;
}

/* How many blocks of a transfer may begin now. */
static u32 take(struct egather *g, const struct erun *r, u32 kind, u32 max, u64 *wait)
{
	u64 unit = block_bytes(g), got;

	got = hawk_pace_take(pace_of(g), &g->paced, kind, hawk_gather_tier(&g->set, r->at), unit,
			     (r->n < max ? r->n : max) * unit, now_ns(), wait);
	return (u32)(got / unit);
}

/* Starts as many reads as may be.  Return: their context, or NULL. */
static struct eio *read_runs(struct egather *g, const bool *stop)
{
	struct eio *io = NULL;
	u64 wait;
	u32 i, n;

	for (i = 0; i < g->nruns; i++) {
		struct erun *r = &g->run[i];

		if (r->sent || r->ended || !on_flash(g, r) || stopped(g, stop))
			continue;
		n = take(g, r, HAWK_PACE_FLASH, r->n, &wait);
		if (!n)
			break;
		split_run(g, r, n);
		if (!io)
			io = eio_take(space_of(g)->e);
		r->sent = true;
		eio_queue(io, &g->kind, r);
	}
	eio_start(io);
	return io;
}

static void copy_slice(struct egather *g, struct erun *r, u32 n)
{
	u64 bytes = (u64)n * block_bytes(g);
	struct etier *t = tier_of(g, r->at);
	s32 ret = 0;
	u32 at;

	if (t->gpu)
		ret = gpu_read(t->gpu, hawk_gather_off(&g->set, r->at), place_of(g, r->at), bytes);
	else
		memcpy(place_of(g, r->at), t->base + hawk_gather_off(&g->set, r->at), bytes);
	hawk_pace_done(pace_of(g), &g->paced, HAWK_PACE_DRAM, 0, bytes, now_ns());
	for (at = r->at; at < r->at + n; at++)
		end_block(g, at, ret, false);
	g->end[hawk_gather_tier(&g->set, r->at)] = now_ns();
	r->at += n;
	r->n -= n;
	r->ended = !r->n;
}

static void doze(u64 ns)
{
	struct timespec ts = { 0, (long)(ns < 999999999 ? ns : 999999999) };

	nanosleep(&ts, NULL);
}

/*
 * Copies what lies in memory while reads are under way, and sleeps until one has ended or it
 * may go on.  @more: there are reads that could not begin yet: look for them soon.
 * Return: whether anything was copied or read.
 */
static bool copy_runs(struct egather *g, struct eio *io, const bool *stop, bool more)
{
	u32 i, n, slice = SLICE_BYTES / block_bytes(g);
	bool reading = io, any = io;
	struct erun *r;
	u64 wait = 0;

	for (i = 0; i < g->nruns; i++) {
		r = &g->run[i];
		while (!r->ended && !on_flash(g, r) && !stopped(g, stop)) {
			n = take(g, r, HAWK_PACE_DRAM, slice ? slice : 1, &wait);
			any |= n;
			if (n)
				copy_slice(g, r, n);
			if (reading)
				reading = eio_wait(io, &g->kind, n ? 0 : wait);
			else if (more)
				return any;
			else if (!n)
				doze(wait);
		}
	}
	return any;
}

/* Transfers that have not begun, from flash or from memory. */
static u32 runs_left(const struct egather *g, bool flash)
{
	u32 i, n = 0;

	for (i = 0; i < g->nruns; i++)
		n += !g->run[i].ended && !g->run[i].sent && on_flash(g, &g->run[i]) == flash;
	return n;
}

/* It was stopped: the deadline has passed, or nobody wants it. */
static void skip_left(struct egather *g, s32 status)
{
	u32 i;

	for (i = 0; i < g->nruns; i++)
		if (!g->run[i].ended && !g->run[i].sent)
			skip_run(g, &g->run[i], status);
}

static void transfer_all(struct egather *g, const bool *stop)
{
	struct eio *io;
	s32 ret = 0;

	g->start = now_ns();
	hawk_pace_begin(pace_of(g), &g->paced, &g->load, hawk_space_paced(space_of(g)->space),
			g->start);
	while (!ret && (runs_left(g, true) || runs_left(g, false))) {
		io = read_runs(g, stop);
		if (!copy_runs(g, io, stop, runs_left(g, true)))
			doze(HAWK_PACE_WAIT_NS);
		ret = reads_end(g, io) ? stopped(g, stop) : -ETIME;
	}
	skip_left(g, ret);
	hawk_pace_end(pace_of(g), &g->paced, now_ns());
	seqs_waiting(space_of(g));	/* what has been read may have been dropped */
	promote_note(space_of(g));
}

/* ---- the call ---- */

/* Which transfers there will be. */
static int make_runs(struct egather *g)
{
	u32 at, n, max = RUN_BYTES / block_bytes(g);
	struct hawk_gather_tier *t;

	g->run = calloc(g->set.n + 1, sizeof(*g->run));
	if (!g->run)
		return -ENOMEM;
	for (at = 0; at < g->set.n; at += n) {
		n = hawk_gather_run(g->set.key, at, g->set.n, block_bytes(g), max);
		g->run[g->nruns++] = (struct erun){ .at = at, .n = n };
		t = &g->arg.tier[hawk_gather_tier(&g->set, at)];
		t->blocks += n;
		t->transfers++;
		*(on_flash(g, &g->run[g->nruns - 1]) ?
		  &g->load.flash[hawk_gather_tier(&g->set, at)] : &g->load.dram) +=
			(u64)n * block_bytes(g);
	}
	g->load.link = true;
	g->arg.unique = g->set.n;
	g->arg.bytes = (u64)g->set.n * block_bytes(g);
	return 0;
}

static struct egather *gather_new(struct ekv *kv, const struct hawk_gather *arg)
{
	struct egather *g = calloc(1, sizeof(*g));
	u32 rows = arg->rows;
	u64 room = arg->buf_bytes / kv->sp->geo.block_bytes;

	if (!g)
		return NULL;
	g->kind = (struct eio_kind){
		.place = run_place, .done = run_done, .sp = kv->sp, .lent = true,
		.over = arg->flags & HAWK_BATCH_ASYNC ? NULL : reads_over,
	};
	g->refs = 1;
	g->kv = kv;
	g->called = now_ns();
	g->arg = *arg;
	g->lid = calloc(rows, sizeof(*g->lid));
	g->set.remap = calloc(rows, sizeof(*g->set.remap));
	g->set.status = calloc(rows, sizeof(*g->set.status));
	g->set.key = calloc(rows, sizeof(*g->set.key));
	g->set.blk = calloc(rows, sizeof(*g->set.blk));
	if (!g->lid || !g->set.remap || !g->set.status || !g->set.key || !g->set.blk) {
		gather_free(g);
		return NULL;
	}
	memcpy(g->lid, (void *)(uintptr_t)arg->lids, rows * sizeof(*g->lid));
	g->set.lid = g->lid;
	g->set.rows = rows;
	g->set.room = room < rows ? (u32)room : rows;
	return g;
}

static void give_back(struct egather *g)
{
	u32 at;

	for (at = 0; at < g->set.n; at++)
		hawk_gather_done(space_of(g)->space, &g->set, at, -ECANCELED, false);
	moved_note(space_of(g)->e);
	seqs_waiting(space_of(g));
}

/* It will not begin. */
void egather_abandon(struct egather *g)
{
	give_back(g);
	gather_free(g);
}

u64 egather_user_data(const struct egather *g)
{
	return g->arg.user_data;
}

static u64 time_of(const struct egather *g, u32 tier)
{
	return g->end[tier] > g->start ? g->end[tier] - g->start : 0;
}

/* A mover makes an asynchronous one. */
void egather_run(struct egather *g, const bool *stop)
{
	struct embed *e = space_of(g)->e;

	planner_enter(e);
	transfer_all(g, stop);
	planner_leave(e);
}

/* The last completion, when it cannot be canceled any more; ends it. */
void egather_end(struct egather *g)
{
	struct hawk_cqe cqe = { .user_data = g->arg.user_data, .flags = HAWK_CQE_BATCH };
	struct ekv *kv = g->kv;
	u32 t;

	cqe.index = g->moved;
	cqe.lid = (u64)g->moved * block_bytes(g);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (time_of(g, t) > cqe.vt)
			cqe.vt = time_of(g, t);
	estats_gather(kv->sp, &g->set, g->called);
	gather_free(g);
	ering_post(kv, &cqe);
}

/* Hands remap, status and figures over. */
static void report(struct egather *g, struct hawk_gather *arg, s32 undone)
{
	size_t n = arg->rows;

	g->arg.done = hawk_gather_results(&g->set, undone, &g->arg.busy);
	memcpy((void *)(uintptr_t)arg->remap, g->set.remap, n * sizeof(*g->set.remap));
	memcpy((void *)(uintptr_t)arg->status, g->set.status, n * sizeof(*g->set.status));
	*arg = g->arg;
}

static int gather_async(struct egather *g, struct hawk_gather *arg)
{
	int ret = 0;

	if (!g->kv->base.ring)
		ret = hawk_fail(-EINVAL, "an asynchronous gather needs a completion ring");
	else if (ering_reserve(g->kv, g->set.n + 1))
		ret = hawk_fail(-EBUSY, "the ring has no room for %u completions", g->set.n + 1);
	if (!ret) {
		report(g, arg, -EINPROGRESS);
		arg->busy = 0;
		ret = async_gather(g->kv, g);
		if (ret)
			ering_unreserve(g->kv, g->set.n + 1);
	}
	if (ret)
		egather_abandon(g);
	return ret;
}

static void gather_now(struct egather *g, struct hawk_gather *arg)
{
	struct embed *e = space_of(g)->e;
	u32 t;

	planner_enter(e);
	transfer_all(g, NULL);
	planner_leave(e);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		g->arg.tier[t].ns = time_of(g, t);
	report(g, arg, -ETIME);
	estats_gather(space_of(g), &g->set, g->called);
	gather_put(g);
}

int embed_gather(struct hawk_kv *base, struct hawk_gather *arg)
{
	struct ekv *kv = to_ekv(base);
	struct egather *g = gather_new(kv, arg);

	if (!g)
		return hawk_fail(-ENOMEM, "a gather of %u rows", arg->rows);
	hawk_gather_open(kv->sp->space, &g->set, now_ns());
	if (make_runs(g)) {
		egather_abandon(g);
		return hawk_fail(-ENOMEM, "a gather of %u rows", arg->rows);
	}
	if (!epace_in_time(kv->sp, &g->load, arg->flags, arg->deadline_ns)) {
		egather_abandon(g);
		return hawk_fail(-ETIME, "a gather of %u rows would end after its deadline",
				 arg->rows);
	}
	if (arg->flags & HAWK_BATCH_ASYNC)
		return gather_async(g, arg);
	gather_now(g, arg);
	return 0;
}
