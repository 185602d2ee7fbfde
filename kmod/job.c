// SPDX-License-Identifier: GPL-2.0
/*
 * job.c - works a batch off: steps, rounds, waiting
 *
 * Each item is stepped until it has a final status.  A step that needs bytes
 * moved adds moves to the plan and asks to be stepped again.  Steps are made in
 * rounds over all items that can go on, so the reads of a whole batch are in
 * flight together:
 *
 *	todo -> step -> done
 *	             -> its own moves started -> (they end) ready -> todo
 *	             -> waits for a move of somebody else: blocked -> todo, when
 *	                moves of the space have ended
 *
 * If items are blocked and nothing at all is in flight in the space, nothing will
 * change by itself: they get -EAGAIN.
 */
#include "hawk.h"
#include "pm.h"
#include "trace.h"

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#define HAWK_UNBLOCK_MIN	16	/* blocked items looked at after a move */
#define HAWK_STALLED		1	/* hawk_job_wait(): nothing is in flight */

static u32 hawk_item_index(struct hawk_job *job, struct hawk_item_state *st)
{
	return st - job->st;
}

static void hawk_job_post(struct hawk_job *job, u32 i)
{
	const struct hawk_item *it = &job->items[i];
	struct hawk_cqe cqe = {
		.user_data = job->arg.user_data,
		.lid = it->lid,
		.vt = it->vt,
		.index = i,
		.status = it->status,
		.flags = HAWK_CQE_ITEM,
	};

	hawk_cq_post(job->f, &cqe);
}

/* A completion cannot be taken back, so PREFIX posts them in order. */
static void hawk_job_post_prefix(struct hawk_job *job)
{
	while (job->posted < job->arg.count && job->st[job->posted].done)
		hawk_job_post(job, job->posted++);
}

/* Room was refused: why? */
static void hawk_item_refused(struct hawk_job *job, u32 i, int status)
{
	if (status == -ENOSPC || status == -EDQUOT)
		hawk_trace_refusal(job, &job->items[i], status);
}

static void hawk_item_finish(struct hawk_job *job, u32 i, int status)
{
	struct hawk_item_state *st = &job->st[i];

	hawk_item_refused(job, i, status);
	if (st->leased)
		hawk_block_unlease(job->as->space, st->ref);
	st->leased = false;
	st->done = true;
	job->items[i].status = status;
	if (status)
		job->items[i].vt = 0;
	job->pending--;
	if (!job->async)
		return;
	if (job->arg.flags & HAWK_BATCH_PREFIX)
		hawk_job_post_prefix(job);
	else
		hawk_job_post(job, i);
}

/* PREFIX: item @i is missing, so what lies behind it is not wanted. */
static void hawk_job_cut(struct hawk_job *job, u32 i)
{
	u32 k, limit = job->limit;

	job->limit = i;
	for (k = i + 1; k < limit; k++) {
		if (!job->st[k].done || job->items[k].status)
			continue;
		job->op->undo(job, k);
		job->items[k].status = -ECANCELED;
		job->items[k].vt = 0;
	}
}

/* One step of an item: it is on no list. */
static void hawk_item_step(struct hawk_job *job, u32 i)
{
	struct hawk_item_state *st = &job->st[i];
	u32 before = job->plan.n, k;
	int ret = i >= job->limit ? -ECANCELED : job->op->step(job, i);

	for (k = before; k < job->plan.n; k++)
		job->plan_item[k] = i;
	if (ret == HAWK_STEP_WAIT) {
		if (job->plan.n == before)
			list_add_tail(&st->node, &job->blocked);
		return;
	}
	if (ret && (job->arg.flags & HAWK_BATCH_PREFIX) && i < job->limit)
		hawk_job_cut(job, i);
	hawk_item_finish(job, i, ret);
}

static void hawk_job_round(struct hawk_job *job)
{
	struct hawk_item_state *st;

	hawk_round_begin(job->as);
	job->claims = atomic64_read(&job->as->claims);
	job->now = ktime_get_ns();
	while (!hawk_job_stopped(job)) {
		st = list_first_entry_or_null(&job->todo, struct hawk_item_state, node);
		if (!st)
			break;
		list_del_init(&st->node);
		hawk_item_step(job, hawk_item_index(job, st));
		/* A step may need several moves; a full plan would block it. */
		if (job->plan.n > job->plan.max / 2)
			hawk_plan_start(job->as, job, &job->plan, job->plan_item);
		cond_resched();
	}
	hawk_plan_start(job->as, job, &job->plan, job->plan_item);
	hawk_round_end(job->as);
	hawk_reclaim_starved(job->as);
}

static bool hawk_job_may_go_on(struct hawk_job *job, s64 events)
{
	if (!llist_empty(&job->ready) || hawk_job_stopped(job))
		return true;
	if (list_empty(&job->blocked))
		return false;
	return atomic64_read(&job->as->events) != events || !atomic_read(&job->as->active);
}

/* Time left until the deadline; not more than 0: it has passed. */
static ktime_t hawk_job_timeout(const struct hawk_job *job)
{
	if (!job->arg.deadline_ns)
		return KTIME_MAX;
	return ktime_sub(ns_to_ktime(job->arg.deadline_ns), ktime_get());
}

/*
 * Wait at hawk_as.wait for a condition.  Who is frozen meanwhile goes on.
 * Result: 0; -ETIME: the deadline has passed; -ERESTARTSYS: a signal.
 */
#define hawk_job_wait_event(_job, _cond)						\
({											\
	ktime_t _left;									\
	int _ret;									\
											\
	do {										\
		_left = hawk_job_timeout(_job);						\
		_ret = _left <= 0 ? -ETIME :						\
		       wait_event_interruptible_hrtimeout((_job)->as->wait, _cond, _left);	\
	} while (_ret == -ERESTARTSYS && hawk_pm_thawed());				\
	_ret;										\
})

/*
 * Return: 0: something may go on; HAWK_STALLED; -ETIME; -ERESTARTSYS;
 * -ECANCELED: nobody wants the rest.
 */
static int hawk_job_wait(struct hawk_job *job, s64 events)
{
	int ret;

	/* Their items are ready to be stepped, and would ask for them again and again. */
	if (job->cut && !job->async && signal_pending(current) && !hawk_pm_thawed())
		return -ERESTARTSYS;
	ret = hawk_job_wait_event(job, hawk_job_may_go_on(job, events));
	if (ret)
		return ret;
	if (hawk_job_stopped(job))
		return -ECANCELED;
	if (llist_empty(&job->ready) && atomic64_read(&job->as->events) == events &&
	    !atomic_read(&job->as->active))
		return HAWK_STALLED;
	return 0;
}

/* Put what can go on back on the list; @max blocked items at most. */
static void hawk_job_unblock(struct hawk_job *job, u64 max)
{
	struct llist_node *ready = llist_reverse_order(llist_del_all(&job->ready));
	struct hawk_item_state *st, *next;

	/* An item may have got what it needed before a move that it asked for ended. */
	llist_for_each_entry_safe(st, next, ready, ready)
		if (!st->done)
			list_add_tail(&st->node, &job->todo);
	while (max-- && !list_empty(&job->blocked))
		list_move_tail(job->blocked.next, &job->todo);
}

/*
 * There was no room.  A chunk may be on its way: that of a space that has ended, or
 * one taken from a space that has more.  As long as one comes it is worth the wait.
 * Return: 0; -ERESTARTSYS: a signal, which says nothing of whether one does.
 */
static int hawk_job_settle(struct hawk_job *job)
{
	struct hawk_settle s;
	int ret;

	job->settle = false;
	if (atomic64_read(&job->as->claims) == job->claims)
		hawk_reclaim_want(job->as);
	/* The deadline is looked at where the job waits for moves. */
	ret = hawk_job_wait_event(job, !READ_ONCE(job->as->starved_tiers) ||
				  hawk_job_stopped(job));
	if (!ret && hawk_settle_begin(job->as, &s))
		ret = hawk_job_wait_event(job, hawk_settle_over(job->as, &s) ||
					  hawk_job_stopped(job));
	if (ret == -ERESTARTSYS)
		return ret;
	job->settled = atomic64_read(&job->as->claims) == job->claims;
	hawk_job_unblock(job, U64_MAX);
	return 0;
}

/*
 * The status of an item that nobody waits for any longer.  UNSHARE may have moved the
 * pin to a copy that is still being made: nobody may take that for good.
 */
static int hawk_item_abandon(struct hawk_job *job, u32 i, int status)
{
	struct hawk_item_state *st = &job->st[i];

	if (!st->copied)
		return status;
	if (!atomic_read_acquire(&st->moves))	/* pairs with hawk_io_tell_job() */
		return job->op->step(job, i);
	hawk_pin_drop(job->f, job->items[i].lid, job->items[i].vt);
	return status;
}

/* Waiting is over: all that is not done gets @status. */
static void hawk_job_give_up(struct hawk_job *job, int status)
{
	u32 i;

	for (i = 0; i < job->arg.count; i++) {
		if (job->st[i].done)
			continue;
		list_del_init(&job->st[i].node);
		if (i < job->limit && (job->arg.flags & HAWK_BATCH_PREFIX))
			hawk_job_cut(job, i);
		hawk_item_finish(job, i, i > job->limit ? -ECANCELED :
						 hawk_item_abandon(job, i, status));
	}
}

/* Items of a call that never waits. */
static void hawk_job_run_now(struct hawk_job *job)
{
	u32 i;

	job->now = ktime_get_ns();
	for (i = 0; i < job->arg.count; i++) {
		struct hawk_item *it = &job->items[i];

		it->status = job->op->step(job, i);
		hawk_item_refused(job, i, it->status);
		if (it->status)
			it->vt = 0;
		if (!(i % 64))
			cond_resched();
	}
}

/* Items of a call that may wait.  Return: as hawk_job_run(). */
static int hawk_job_run_rounds(struct hawk_job *job)
{
	bool all = true;	/* no blocked item was left out of this round */

	for (;;) {
		s64 events = atomic64_read(&job->as->events);
		u64 delta;
		int ret;

		hawk_job_round(job);
		if (!job->pending)
			return 0;
		if (job->settle) {
			ret = hawk_job_settle(job);
			all = true;
			if (!ret)
				continue;
		} else {
			ret = hawk_job_wait(job, events);
		}
		if (ret == HAWK_STALLED && !all)
			ret = 0;	/* look at every one before that is believed */
		if (ret) {
			bool nothing = job->pending == job->arg.count;

			hawk_job_give_up(job, ret == HAWK_STALLED ? -EAGAIN :
					      ret == -ETIME ? -ETIME : -ECANCELED);
			return ret == -ERESTARTSYS && nothing ? ret : 0;
		}
		delta = atomic64_read(&job->as->events) - events;
		all = !delta;
		hawk_job_unblock(job, delta ? delta + HAWK_UNBLOCK_MIN : U64_MAX);
	}
}

/**
 * hawk_job_run() - give every item its status
 * @job: the batch
 *
 * Return: 0, or -ERESTARTSYS if a signal came before anything was done.
 */
int hawk_job_run(struct hawk_job *job)
{
	int ret = 0;

	trace_hawk_batch_begin(job, 0, 0);
	if (job->op->waits)
		ret = hawk_job_run_rounds(job);
	else
		hawk_job_run_now(job);
	hawk_tidy_waiting(job->as);	/* what has been unpinned may have been dropped */
	hawk_stats_batch(job);
	return ret;
}
