// SPDX-License-Identifier: GPL-2.0
/*
 * deliver.c - deliveries of blocks, as fast as the engine's pace lets them
 *
 * A gather is one delivery (gather_io.c), and so are the reloads that a batch starts
 * together, here:
 *
 *	hawk_deliver_plan()	before the moves of a plan are made
 *	hawk_deliver_submit()	those that the pace lets, then waits for it, and again
 *	hawk_deliver_done()	each that has ended
 *	hawk_deliver_put()	with the last one it ends
 *
 * Reloads into memory of an accelerator pass its link, for which they may have to wait;
 * others do only while somebody urgent has the drive, but what the drives bring is measured
 * and what is asked of them known.
 * Who waits sleeps, by a high-resolution timer, and is woken by each transfer that ends,
 * by a cancellation, a signal, the end of its file, and at its deadline.
 */
#include "hawk.h"
#include "deliver.h"
#include "pm.h"
#include "submit.h"
#include "trace.h"

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

struct hawk_pace *hawk_deliver_pace(void)
{
	return hawk_engine_pace(hawk_dev.engine);
}

static u32 hawk_deliver_kind(const struct hawk_mem *m)
{
	return m->kind == HAWK_TIER_BLK ? HAWK_PACE_FLASH : HAWK_PACE_DRAM;
}

/* Would it end by its deadline, as far as anybody can tell?  A refusal is counted. */
bool hawk_deliver_in_time(struct hawk_as *as, const struct hawk_pace_load *load)
{
	return hawk_pace_in_time(hawk_deliver_pace(), load, hawk_space_paced(as->space),
				 ktime_get_ns());
}

/**
 * hawk_deliver_begin() - a delivery begins
 * @v: the delivery, need not be initialised
 * @as: the space; outlives it
 * @load: what it brings
 * @pid: the process that asks for it
 */
void hawk_deliver_begin(struct hawk_deliver *v, struct hawk_as *as,
			const struct hawk_pace_load *load, u32 pid)
{
	v->space = as->id;
	v->load = *load;
	v->begin = ktime_get_ns();
	v->end[HAWK_PACE_FLASH] = 0;
	v->end[HAWK_PACE_DRAM] = 0;
	v->wait_ns = 0;
	v->pid = pid;
	v->error = 0;
	hawk_pace_begin(hawk_deliver_pace(), &v->d, load, hawk_space_paced(as->space), v->begin);
	trace_hawk_deliver_begin(v);
}

/* See hawk_pace_take(); @wait_ns becomes less if this says so. */
u64 hawk_deliver_take(struct hawk_deliver *v, const struct hawk_mem *m, u64 unit, u64 want,
		      u64 *wait_ns)
{
	u64 wait = 0, got;

	got = hawk_pace_take(hawk_deliver_pace(), &v->d, hawk_deliver_kind(m), m->id, unit, want,
			     ktime_get_ns(), &wait);
	if (!got)
		*wait_ns = min(*wait_ns, wait);
	return got;
}

/* @bytes that were taken have come from @m, or failed. */
void hawk_deliver_done(struct hawk_deliver *v, const struct hawk_mem *m, u64 bytes)
{
	u32 kind = hawk_deliver_kind(m);
	u64 now = ktime_get_ns();

	WRITE_ONCE(v->end[kind], now);
	hawk_pace_done(hawk_deliver_pace(), &v->d, kind, m->id, bytes, now);
	trace_hawk_deliver_part(v, m->id, kind, bytes, now);
}

/* @bytes of @m that were not taken will not come, because of @error. */
void hawk_deliver_skip(struct hawk_deliver *v, const struct hawk_mem *m, u64 bytes, int error)
{
	WRITE_ONCE(v->error, error);
	hawk_pace_skip(hawk_deliver_pace(), &v->d, hawk_deliver_kind(m), m->id, bytes, false,
		       ktime_get_ns());
}

/* It has waited for the pace since @since. */
void hawk_deliver_waited(struct hawk_deliver *v, u64 since)
{
	u64 ns = ktime_get_ns() - since;

	v->wait_ns += ns;
	trace_hawk_pace_wait(v, ns);
}

/* All has come, or will not. */
void hawk_deliver_end(struct hawk_deliver *v)
{
	trace_hawk_deliver_end(v);
	hawk_pace_end(hawk_deliver_pace(), &v->d, ktime_get_ns());
}

/* ---- reloads ---- */

/* Memory behind an accelerator's link. */
static bool hawk_deliver_link(const struct hawk_mem *m)
{
	return m->kind == HAWK_TIER_MODEL || m->kind == HAWK_TIER_DMABUF ||
	       m->kind == HAWK_TIER_BAR;
}

static void hawk_deliver_terms(const struct hawk_job *job, struct hawk_pace_load *load)
{
	load->deadline = job->arg.deadline_ns;
	load->urgent = job->arg.flags & HAWK_BATCH_URGENT;
}

/**
 * hawk_deliver_plan() - the reloads of a plan become a delivery
 * @as: the space
 * @job: the batch that waits for them
 * @plan: its moves
 *
 * Return: it; each reload holds it with hawk_deliver.left, and so does the caller.  NULL:
 * there is none, or no memory, for want of which nothing may fail: then they are not paced.
 */
struct hawk_deliver *hawk_deliver_plan(struct hawk_as *as, struct hawk_job *job,
				       const struct hawk_plan *plan)
{
	struct hawk_pace_load load = { 0 };
	struct hawk_deliver *v;
	u32 i, n = 0;

	for (i = 0; i < plan->n; i++) {
		const struct hawk_move *mv = &plan->move[i];

		if (mv->kind != HAWK_MOVE_READ)
			continue;
		load.flash[mv->src_tier] += as->info.block_bytes;
		load.link |= hawk_deliver_link(as->mem[mv->dst_tier]);
		n++;
	}
	v = n ? kmalloc(sizeof(*v), GFP_NOIO | __GFP_NOWARN) : NULL;
	if (!v)
		return NULL;
	atomic_set(&v->left, n + 1);
	hawk_deliver_terms(job, &load);
	hawk_deliver_begin(v, as, &load, job->asker.pid);
	return v;
}

void hawk_deliver_put(struct hawk_deliver *v)
{
	if (!atomic_dec_and_test(&v->left))
		return;
	hawk_deliver_end(v);
	kfree(v);
}

/* Why no reload may begin any more, or 0. */
static int hawk_deliver_stop(const struct hawk_job *job)
{
	if (hawk_job_stopped(job) || (!job->async && signal_pending(current)))
		return -ECANCELED;
	return job->arg.deadline_ns && ktime_get_ns() >= job->arg.deadline_ns ? -ETIME : 0;
}

/* Moves from @batch to @go what may be submitted now. */
static void hawk_deliver_some(struct hawk_deliver *v, struct list_head *batch,
			      struct list_head *go, u64 *wait_ns)
{
	struct hawk_io *io, *next;
	u32 held = 0;	/* drives that give no more now, bit t for tier t */

	list_for_each_entry_safe(io, next, batch, node) {
		if (io->deliver && ((held & BIT(io->flash->id)) ||
				    !hawk_deliver_take(v, io->flash, io->bytes, io->bytes,
						       wait_ns))) {
			held |= BIT(io->flash->id);
			continue;
		}
		io->taken = true;
		list_move_tail(&io->node, go);
	}
}

static void hawk_deliver_sleep(struct hawk_deliver *v, const struct hawk_job *job, int left,
			       u64 wait_ns)
{
	u64 since = ktime_get_ns(), deadline = job->arg.deadline_ns;

	if (deadline)
		wait_ns = min(wait_ns, deadline > since ? deadline - since : 1);
	wait_event_interruptible_hrtimeout(job->as->wait, hawk_deliver_stop(job) ||
					   hawk_pm_soon() || atomic_read(&v->left) != left,
					   ns_to_ktime(wait_ns));
	hawk_deliver_waited(v, since);
}

/* The system sleeps meanwhile: the round of the batch, and the transfers that wait. */
static void hawk_deliver_pause(struct hawk_job *job, struct list_head *batch)
{
	struct list_head *at;
	int n = 1;

	list_for_each(at, batch)
		n++;
	hawk_pm_pause(job->as, n);
}

/**
 * hawk_deliver_submit() - submit a batch of transfers as the pace lets them
 * @v: the delivery of the reloads among them, or NULL
 * @job: the batch call that waits for it, if there is @v
 * @batch: the transfers
 *
 * What may not begin any more - deadline, signal, cancellation - has ended with
 * -ECANCELED: a block that was not read stays on flash.
 *
 * Context: may sleep.
 */
void hawk_deliver_submit(struct hawk_deliver *v, struct hawk_job *job, struct list_head *batch)
{
	struct hawk_io *io, *next;
	LIST_HEAD(go);

	while (v && !list_empty(batch)) {
		int left = atomic_read(&v->left);
		u64 wait_ns = KTIME_MAX;

		hawk_deliver_some(v, batch, &go, &wait_ns);
		hawk_submit(&go);
		if (list_empty(batch))
			return;
		if (hawk_deliver_stop(job))
			break;
		hawk_deliver_sleep(v, job, left, wait_ns);
		if (hawk_pm_soon())
			hawk_deliver_pause(job, batch);
	}
	if (!v) {
		hawk_submit(batch);
		return;
	}
	job->cut = true;
	list_for_each_entry_safe(io, next, batch, node)
		hawk_io_end(io, -ECANCELED);
	INIT_LIST_HEAD(batch);
}

/**
 * hawk_deliver_check() - HAWK_BATCH_IN_TIME: will a batch of reloads end by its deadline
 * @job: the batch, not begun
 *
 * Return: 0 or -ETIME.
 */
int hawk_deliver_check(struct hawk_job *job)
{
	struct hawk_pace_load load = { 0 };
	struct hawk_as *as = job->as;

	hawk_deliver_terms(job, &load);
	hawk_space_load(as->space, job->items, job->arg.count, &load);
	/* what is in memory stays where it is */
	load.link = job->arg.tier != HAWK_TIER_ANY && hawk_deliver_link(as->mem[job->arg.tier]);
	return hawk_deliver_in_time(as, &load) ? 0 : -ETIME;
}
