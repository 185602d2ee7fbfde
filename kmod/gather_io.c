// SPDX-License-Identifier: GPL-2.0
/*
 * gather_io.c - the transfers of a gather
 *
 * A transfer is a run of blocks that are neighbours in their tier and in the buffer:
 *
 *	flash		read with O_DIRECT into the buffer's pages
 *	a driver's	the driver copies into the buffer's pages
 *	host memory	the CPU copies, a slice at a time
 *
 * All together they are one delivery (deliver.c), and begin as the engine's pace lets them:
 * those from flash first, at full depth, copies between; who has to wait sleeps.  What a
 * driver has in its own memory does not come through the link, and does not wait.
 *
 * The checksum of each block from flash is compared in the buffer.  That is its owner's
 * memory, who may write to it meanwhile, or it may be of a kind that the drive cannot
 * reach: so neither a wrong sum nor an error tells yet that the block is bad.  Such
 * blocks are read again one by one, through staging pages (stage.c), and what is found
 * there is final.  So nobody can make others lose a block, and one bad block of a
 * transfer is no more than one.
 *
 *	start -> hawk_io_end() -> hawk_gather_io_end() -> done
 *	              ^                  |
 *	              +------ again -----+
 */
#include "gather.h"
#include "pm.h"
#include "submit.h"

#include <linux/crc32c.h>
#include <linux/highmem.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#define HAWK_GATHER_RUN_BYTES	(16u << 20)	/* of a transfer, at most */
#define HAWK_GATHER_LINK_SHIFT	4		/* or this part of the link's window */
#define HAWK_GATHER_SLICE_BYTES	(256u << 10)	/* of a copy, or one block */

static struct hawk_mem *hawk_gather_mem(const struct hawk_gather_call *c, u32 at)
{
	return c->as->mem[hawk_gather_tier(&c->set, at)];
}

static struct bio_vec *hawk_gather_bv(const struct hawk_gather_call *c, u32 at)
{
	return c->bv + at * (c->as->info.block_bytes >> PAGE_SHIFT);
}

static void hawk_gather_io_end(struct hawk_io *io);

static void hawk_gather_run_init(struct hawk_gather_call *c, struct hawk_gather_io *gio, u32 at,
				 u32 n)
{
	gio->c = c;
	gio->at = at;
	gio->n = n;
	gio->again = HAWK_NONE;
	gio->io.as = c->as;
	gio->io.move.kind = HAWK_MOVE_READ;
	gio->io.end = hawk_gather_io_end;
}

/* Blocks of a transfer at most: it passes the link as a whole. */
static u32 hawk_gather_most(u32 block)
{
	struct hawk_pace_measured m;
	struct hawk_pace_tune t;
	u64 bytes = HAWK_GATHER_RUN_BYTES;

	hawk_pace_tuned(hawk_deliver_pace(), &t, &m);
	if (t.on && m.link_window_bytes)
		bytes = min(bytes, m.link_window_bytes >> HAWK_GATHER_LINK_SHIFT);
	return max_t(u32, bytes / block, 1);
}

/**
 * hawk_gather_runs() - which transfers there will be
 * @c: the gather, its places known
 * @arg: out, what comes from which tier
 *
 * Return: 0 or -ENOMEM.
 */
int hawk_gather_runs(struct hawk_gather_call *c, struct hawk_gather *arg)
{
	u32 block = c->as->info.block_bytes, max = hawk_gather_most(block), at, n;
	struct hawk_gather_set *g = &c->set;

	memset(arg->tier, 0, sizeof(arg->tier));
	for (at = 0; at < g->n; at += n, c->nruns++) {
		struct hawk_gather_tier *t = &arg->tier[hawk_gather_tier(g, at)];

		n = hawk_gather_run(g->key, at, g->n, block, max);
		t->blocks += n;
		t->transfers++;
	}
	c->run = kvcalloc(max(c->nruns, 1u), sizeof(*c->run), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!c->run)
		return -ENOMEM;
	for (at = 0, c->nruns = 0; at < g->n; at += n) {
		n = hawk_gather_run(g->key, at, g->n, block, max);
		hawk_gather_run_init(c, &c->run[c->nruns++], at, n);
	}
	return 0;
}

/* ---- the end of a block, of a transfer ---- */

static void hawk_gather_post(struct hawk_gather_call *c, u32 at, u64 vt, int status)
{
	struct hawk_cqe cqe = {
		.user_data = c->task.user_data,
		.lid = hawk_gather_at(&c->set, at)->lid,
		.vt = status ? 0 : vt,
		.index = at,
		.status = status,
		.flags = HAWK_CQE_ITEM,
	};

	hawk_cq_post(c->f, &cqe);
}

/* @status: 0 or a negative errno; @bad: it is the block's fault */
static void hawk_gather_end(struct hawk_gather_call *c, u32 at, int status, bool bad)
{
	u64 vt = hawk_gather_at(&c->set, at)->read.vt;

	if (!status)
		atomic_inc(&c->moved);
	else
		WRITE_ONCE(c->error, status);
	hawk_gather_done(c->as->space, &c->set, at, status, bad);
	if (c->async)
		hawk_gather_post(c, at, vt, status);
}

/* One transfer less.  The last one ends the gather. */
static void hawk_gather_left(struct hawk_gather_call *c)
{
	struct hawk_as *as = hawk_as_get(c->as);

	if (atomic_dec_and_test(&c->left)) {
		hawk_deliver_end(&c->deliver);
		hawk_gather_over(c);
		hawk_tidy_waiting(as);	/* what has been read may have been dropped */
	}
	hawk_gather_put(c);
	atomic64_inc(&as->events);
	atomic_dec(&as->active);
	wake_up_all(&as->wait);
	hawk_as_put(as);
}

static void hawk_gather_run_end(struct hawk_gather_io *gio)
{
	struct hawk_gather_call *c = gio->c;

	WRITE_ONCE(c->end[hawk_gather_tier(&c->set, gio->at)], ktime_get_ns());
	hawk_gather_left(c);
}

/* Does the pace count what comes from there? */
static bool hawk_gather_paced(const struct hawk_mem *m)
{
	return m->ops->submit || !m->ops->xfer;
}

/* What has not begun of it will not. */
static void hawk_gather_skip(struct hawk_gather_io *gio, int status)
{
	struct hawk_mem *m = hawk_gather_mem(gio->c, gio->at);
	u32 i;

	if (hawk_gather_paced(m))
		hawk_deliver_skip(&gio->c->deliver, m,
				  (u64)(gio->n - gio->copied) * gio->io.as->info.block_bytes, status);
	for (i = gio->copied; i < gio->n; i++)
		hawk_gather_end(gio->c, gio->at + i, status, false);
	hawk_gather_run_end(gio);
}

/* ---- the start of a transfer ---- */

/* Places from @at on, to the pages of @gio->io.  @batch: takes it, if it is for a drive */
static void hawk_gather_submit(struct hawk_gather_io *gio, u32 at, u32 n,
			       struct list_head *batch)
{
	struct hawk_mem *m = hawk_gather_mem(gio->c, at);
	struct hawk_io *io = &gio->io;

	io->bytes = n * io->as->info.block_bytes;
	io->move.src_off = hawk_gather_off(&gio->c->set, at);
	if (READ_ONCE(m->lost))
		hawk_io_end(io, -ENODEV);
	else if (m->ops->submit && batch)
		hawk_submit_add(batch, m, io);
	else if (m->ops->submit)
		hawk_submit_next(m, io);
	else
		m->ops->xfer(m, io, io->move.src_off, false);
}

static void hawk_gather_send(struct hawk_gather_io *gio, struct list_head *batch)
{
	gio->io.bv = hawk_gather_bv(gio->c, gio->at);
	gio->io.nbv = hawk_gather_bv(gio->c, gio->at + gio->n) - gio->io.bv;
	hawk_gather_submit(gio, gio->at, gio->n, batch);
}

/* The next @n blocks; the CPU reaches both sides. */
static void hawk_gather_copy(struct hawk_gather_io *gio, u32 n)
{
	u32 at = gio->at + gio->copied, block = gio->io.as->info.block_bytes, i;
	struct hawk_mem *m = hawk_gather_mem(gio->c, at);
	u64 off = hawk_gather_off(&gio->c->set, at);
	struct bio_vec *bv = hawk_gather_bv(gio->c, at);
	struct bio_vec *end = hawk_gather_bv(gio->c, at + n);
	struct hawk_cpu_time t = hawk_cpu_begin();

	for (; bv < end; bv++, off += PAGE_SIZE) {
		copy_highpage(bv->bv_page, m->ops->page(m, off));
		cond_resched();
	}
	this_cpu_add(m->count->copy_ns, hawk_cpu_ns(&t));
	hawk_deliver_done(&gio->c->deliver, m, (u64)n * block);
	for (i = 0; i < n; i++)
		hawk_gather_end(gio->c, at + i, 0, false);
	gio->copied += n;
	if (gio->copied == gio->n)
		hawk_gather_run_end(gio);
}

/* ---- a block is read again ---- */

/* The next place from @at on that is not done.  Return: whether there is one. */
static bool hawk_gather_again(struct hawk_gather_io *gio, u32 at)
{
	struct hawk_gather_set *g = &gio->c->set;

	for (; at < gio->at + gio->n; at++) {
		if (hawk_gather_at(g, at)->done)
			continue;
		if (gio->again == HAWK_NONE)
			hawk_stage_alloc(&gio->io);
		gio->again = at;
		hawk_gather_submit(gio, at, 1, NULL);
		return true;
	}
	return false;
}

static u32 hawk_gather_crc(struct hawk_gather_io *gio, const struct bio_vec *bv, u32 nbv)
{
	struct hawk_cpu_time t = hawk_cpu_begin();
	u32 crc = ~0u, i;

	for (i = 0; i < nbv; i++) {
		void *p = kmap_local_page(bv[i].bv_page);

		crc = crc32c(crc, p, PAGE_SIZE);
		kunmap_local(p);
	}
	gio->crc_ns += hawk_cpu_ns(&t);
	return ~crc;
}

static bool hawk_gather_good(struct hawk_gather_io *gio, u32 at, const struct bio_vec *bv)
{
	const struct hawk_read *r = &hawk_gather_at(&gio->c->set, at)->read;

	return !r->flash ||
	       hawk_gather_crc(gio, bv, gio->io.as->info.block_bytes >> PAGE_SHIFT) == r->crc;
}

static void hawk_gather_read_bytes(struct hawk_gather_call *c, u32 at)
{
	struct hawk_mem *m = hawk_gather_mem(c, at);

	if (m->kind != HAWK_TIER_BLK)
		return;
	this_cpu_add(m->count->read, c->as->info.block_bytes);
	hawk_health_works(m, false);
}

static void hawk_gather_came(struct hawk_gather_call *c, u32 at)
{
	hawk_gather_read_bytes(c, at);
	hawk_gather_end(c, at, 0, false);
}

/* Into staging pages: what is wrong now is the block's fault. */
static void hawk_gather_staged(struct hawk_gather_io *gio)
{
	struct hawk_gather_call *c = gio->c;
	u32 at = gio->again, block = c->as->info.block_bytes, i;
	struct bio_vec *bv = hawk_gather_bv(c, at);
	struct hawk_io *io = &gio->io;
	int ret = 0;

	if (io->ret == -ENOMEM || io->ret == -EAGAIN) {
		hawk_gather_end(c, at, -EAGAIN, false);	/* nobody's fault: ask again */
		return;
	}
	if (io->ret < 0)
		ret = io->ret == -ENODEV ? -ENODEV : -EIO;
	else if (io->ret != block)
		ret = -EIO;
	else if (!hawk_gather_good(gio, at, io->bv))
		ret = -EILSEQ;
	if (ret) {
		hawk_io_failed(hawk_gather_mem(c, at), false, block, io->move.src_off,
			       io->ret < 0 ? io->ret : ret);
		hawk_gather_end(c, at, ret, true);
		return;
	}
	for (i = 0; i < io->nbv; i++)
		copy_highpage(bv[i].bv_page, io->bv[i].bv_page);
	hawk_gather_came(c, at);
}

static void hawk_gather_unstage(struct hawk_gather_io *gio)
{
	if (gio->again == HAWK_NONE)
		return;
	hawk_stage_free(&gio->io);
	kfree(gio->io.bv);
}

static void hawk_gather_delivered(struct hawk_gather_io *gio)
{
	struct hawk_mem *m = hawk_gather_mem(gio->c, gio->at);

	if (hawk_gather_paced(m))
		hawk_deliver_done(&gio->c->deliver, m, (u64)gio->n * gio->io.as->info.block_bytes);
}

static void hawk_gather_cpu(struct hawk_gather_io *gio, const struct hawk_cpu_time *t)
{
	struct hawk_mem_count __percpu *count = hawk_gather_mem(gio->c, gio->at)->count;
	u64 ns = hawk_cpu_ns(t);

	this_cpu_add(count->checksum_ns, gio->crc_ns);
	this_cpu_add(count->complete_ns, ns > gio->crc_ns ? ns - gio->crc_ns : 0);
	gio->crc_ns = 0;
}

/* A transfer has ended. */
static void hawk_gather_io_end(struct hawk_io *io)
{
	struct hawk_gather_io *gio = container_of(io, struct hawk_gather_io, io);
	struct hawk_cpu_time t = hawk_cpu_begin();
	struct hawk_gather_call *c = gio->c;
	u32 at = gio->at;

	if (gio->again != HAWK_NONE) {
		at = gio->again + 1;
		hawk_gather_staged(gio);
	} else if (gio->io.ret == gio->io.bytes) {
		for (; at < gio->at + gio->n; at++)
			if (hawk_gather_good(gio, at, hawk_gather_bv(c, at)))
				hawk_gather_came(c, at);
		at = gio->at;
	}
	hawk_gather_cpu(gio, &t);
	if (hawk_gather_again(gio, at))
		return;
	hawk_gather_unstage(gio);
	hawk_gather_delivered(gio);
	hawk_gather_run_end(gio);
}

/* ---- all transfers ---- */

/* Why no transfer may begin any more, or 0. */
static int hawk_gather_stop(const struct hawk_gather_call *c)
{
	if (hawk_task_stopped(c->f, &c->task) || (!c->async && signal_pending(current)))
		return -ECANCELED;
	return c->deadline_ns && ktime_get_ns() >= c->deadline_ns ? -ETIME : 0;
}

static bool hawk_gather_by_cpu(const struct hawk_gather_io *gio)
{
	const struct hawk_mem_ops *ops = hawk_gather_mem(gio->c, gio->at)->ops;

	return !ops->submit && !ops->xfer;
}

/* Transfers that have not begun: the next one of drives and drivers, of the CPU. */
struct hawk_gather_next {
	u32 drive;
	u32 cpu;
};

static void hawk_gather_skip_to(struct hawk_gather_call *c, u32 *next, bool by_cpu)
{
	while (*next < c->nruns && hawk_gather_by_cpu(&c->run[*next]) != by_cpu)
		(*next)++;
}

/* All that the pace lets now.  @wait_ns: becomes less if it says when it lets more */
static void hawk_gather_send_some(struct hawk_gather_call *c, u32 *next, u64 *wait_ns)
{
	LIST_HEAD(batch);

	for (;; (*next)++) {
		struct hawk_gather_io *gio;
		struct hawk_mem *m;
		u64 bytes;

		hawk_gather_skip_to(c, next, false);
		if (*next == c->nruns)
			break;
		gio = &c->run[*next];
		m = hawk_gather_mem(c, gio->at);
		bytes = (u64)gio->n * c->as->info.block_bytes;
		if (hawk_gather_paced(m) &&
		    !hawk_deliver_take(&c->deliver, m, bytes, bytes, wait_ns))
			break;
		hawk_gather_send(gio, &batch);
	}
	hawk_submit(&batch);
}

/* A slice, if the pace lets it.  Return: whether it did. */
static bool hawk_gather_copy_some(struct hawk_gather_call *c, u32 *next, u64 *wait_ns)
{
	u32 block = c->as->info.block_bytes, n;
	struct hawk_gather_io *gio;
	struct hawk_mem *m;
	u64 got;

	hawk_gather_skip_to(c, next, true);
	if (*next == c->nruns)
		return false;
	gio = &c->run[*next];
	m = hawk_gather_mem(c, gio->at);
	if (READ_ONCE(m->lost)) {
		(*next)++;
		hawk_gather_skip(gio, -ENODEV);
		return true;
	}
	n = min(gio->n - gio->copied, max(HAWK_GATHER_SLICE_BYTES / block, 1u));
	got = hawk_deliver_take(&c->deliver, m, block, (u64)n * block, wait_ns);
	if (!got)
		return false;
	n = div_u64(got, block);
	if (gio->copied + n == gio->n)
		(*next)++;
	hawk_gather_copy(gio, n);
	return true;
}

static void hawk_gather_skip_rest(struct hawk_gather_call *c, struct hawk_gather_next *next,
				  int status)
{
	for (;; next->drive++) {
		hawk_gather_skip_to(c, &next->drive, false);
		if (next->drive == c->nruns)
			break;
		hawk_gather_skip(&c->run[next->drive], status);
	}
	for (;; next->cpu++) {
		hawk_gather_skip_to(c, &next->cpu, true);
		if (next->cpu == c->nruns)
			break;
		hawk_gather_skip(&c->run[next->cpu], status);
	}
}

/* Until the pace may let more: a transfer has ended, or the time that it told is over. */
static void hawk_gather_sleep(struct hawk_gather_call *c, int left, u64 wait_ns)
{
	u64 since = ktime_get_ns();

	if (c->deadline_ns)
		wait_ns = min(wait_ns, c->deadline_ns > since ? c->deadline_ns - since : 1);
	wait_event_interruptible_hrtimeout(c->as->wait, hawk_gather_stop(c) || hawk_pm_soon() ||
					   atomic_read(&c->left) != left, ns_to_ktime(wait_ns));
	hawk_deliver_waited(&c->deliver, since);
}

/* The system sleeps meanwhile: our round, the one of hawk_gather_start(), and what waits. */
static void hawk_gather_pause(struct hawk_gather_call *c, const struct hawk_gather_next *next)
{
	int n = 2;
	u32 i;

	for (i = 0; i < c->nruns; i++)
		n += i >= (hawk_gather_by_cpu(&c->run[i]) ? next->cpu : next->drive);
	hawk_pm_pause(c->as, n);
}

static void hawk_gather_feed(struct hawk_gather_call *c)
{
	struct hawk_gather_next next = { 0 };
	int ret;

	for (;;) {
		u64 wait_ns = KTIME_MAX;
		int left;

		if (hawk_pm_soon())
			hawk_gather_pause(c, &next);
		left = atomic_read(&c->left);
		ret = hawk_gather_stop(c);
		if (ret)
			break;
		hawk_gather_send_some(c, &next.drive, &wait_ns);
		if (hawk_gather_copy_some(c, &next.cpu, &wait_ns))
			continue;
		if (next.drive == c->nruns && next.cpu == c->nruns)
			return;
		hawk_gather_sleep(c, left, wait_ns);
	}
	hawk_gather_skip_rest(c, &next, ret);
}

static struct hawk_pace_load hawk_gather_load(const struct hawk_gather_call *c)
{
	struct hawk_pace_load load = {
		.deadline = c->deadline_ns, .link = true, .urgent = c->urgent,
	};
	u32 block = c->as->info.block_bytes, at;

	for (at = 0; at < c->set.n; at++) {
		struct hawk_mem *m = hawk_gather_mem(c, at);

		if (m->kind == HAWK_TIER_BLK)
			load.flash[m->id] += block;
		else if (hawk_gather_paced(m))
			load.dram += block;
	}
	return load;
}

/* HAWK_BATCH_IN_TIME: will it end by its deadline? */
bool hawk_gather_in_time(struct hawk_gather_call *c)
{
	struct hawk_pace_load load = hawk_gather_load(c);

	return hawk_deliver_in_time(c->as, &load);
}

/**
 * hawk_gather_start() - start all transfers
 * @c: the gather
 *
 * As the pace lets them: those of drives and drivers are at full depth while the CPU
 * copies.  May sleep.
 */
void hawk_gather_start(struct hawk_gather_call *c)
{
	struct hawk_pace_load load = hawk_gather_load(c);
	u32 i;

	hawk_round_begin(c->as);
	/* All are counted before the first can end, and one for us. */
	atomic_set(&c->left, c->nruns + 1);
	atomic_add(c->nruns + 1, &c->as->active);
	for (i = 0; i < c->nruns + 1; i++)
		kref_get(&c->ref);
	hawk_deliver_begin(&c->deliver, c->as, &load, c->pid);
	c->start = c->deliver.begin;
	hawk_gather_feed(c);
	hawk_round_end(c->as);
	hawk_gather_left(c);
}

/**
 * hawk_gather_wait() - until all transfers have ended, or nobody wants to wait longer
 * @c: the gather, started by this caller
 *
 * Return: 0; -ETIME: the deadline has passed; -ERESTARTSYS: a signal.
 */
int hawk_gather_wait(struct hawk_gather_call *c)
{
	ktime_t timeout = KTIME_MAX;
	int ret;

	do {
		if (c->deadline_ns)
			timeout = max_t(ktime_t,
					ktime_sub(ns_to_ktime(c->deadline_ns), ktime_get()), 1);
		/* Not before its pages are uncharged: the next gather may need the room. */
		ret = wait_event_interruptible_hrtimeout(c->as->wait, smp_load_acquire(&c->over),
							 timeout);
	} while (ret == -ERESTARTSYS && hawk_pm_thawed());
	if (!ret && signal_pending(current))
		ret = -ERESTARTSYS;	/* it may have kept some from being started */
	return ret;
}
