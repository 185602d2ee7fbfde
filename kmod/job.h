/* SPDX-License-Identifier: GPL-2.0 */
/*
 * job.h - a batch being worked on: its items, its rounds, how it is told to stop
 *
 * batch.c makes one of a call and hands its items back, job.c runs it, batch_ops.c has
 * what each call does with one item, async.c and uring.c run it behind the caller's back.
 */
#ifndef HAWK_JOB_H
#define HAWK_JOB_H

#include "move.h"

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/workqueue.h>

struct io_uring_cmd;

/* ---- asynchronous work of a file (async.c) ---- */

/**
 * struct hawk_task - a batch or gather that runs on a work queue and can be canceled
 * @node: in hawk_file.jobs
 * @user_data: by which HAWK_IOC_CANCEL finds it
 * @canceled: told to stop
 */
struct hawk_task {
	struct list_head node;
	u64 user_data;
	bool canceled;
};

void hawk_task_begin(struct hawk_file *f, struct hawk_task *task, u64 user_data);
void hawk_task_end(struct hawk_file *f, struct hawk_task *task);

/* The caller does not want the rest of it any more. */
static inline bool hawk_task_stopped(const struct hawk_file *f, const struct hawk_task *task)
{
	return READ_ONCE(task->canceled) || READ_ONCE(f->closed);
}

/* ---- batches (batch.c, batch_ops.c, job.c, async.c, uring.c) ---- */

#define HAWK_STEP_WAIT		1	/* a step's answer: look again after a move */

/**
 * struct hawk_batch_op - one of the batch calls
 * @nr: its ioctl's number
 * @flags: HAWK_BATCH_* that it knows
 * @item_flags: HAWK_ITEM_* that it knows
 * @writes: it changes the space: not for read-only files
 * @waits: it may need moves: it has a plan, a deadline and a tier
 * @yields: it needs none, but may wait for importers of revoked exports
 * @arg: items use @arg
 * @step: try item @i; 0, a negative errno (both final) or HAWK_STEP_WAIT
 * @undo: give back the pin of a finished item that its caller will not learn of,
 *	NULL if it takes none
 */
struct hawk_batch_op {
	u32 nr;
	u32 flags;
	u32 item_flags;
	bool writes;
	bool waits;
	bool yields;
	bool arg;
	int (*step)(struct hawk_job *job, u32 i);
	void (*undo)(struct hawk_job *job, u32 i);
};

/**
 * struct hawk_item_state - an item of a waiting batch between its steps
 * @node: in hawk_job.todo or .blocked
 * @ready: in hawk_job.ready when the last of its moves has ended
 * @moves: its moves in flight
 * @read_error: result of its own reload or copy if that failed, else 0
 * @ref: its block (lease of a GET by key)
 * @done: it has its final status
 * @leased: @ref is leased
 * @copied: UNSHARE has its new block and waits for the copy
 */
struct hawk_item_state {
	struct list_head node;
	struct llist_node ready;
	atomic_t moves;
	int read_error;
	struct hawk_ref ref;
	bool done;
	bool leased;
	bool copied;
};

/**
 * struct hawk_job - a batch being worked on
 * @ref: its runner and the moves that it started
 * @op: what to do with each item
 * @f: caller; an asynchronous job holds a reference
 * @as: caller's space
 * @arg: the call's argument
 * @items: kernel's copy of the items
 * @parent: keys that items with HAWK_ITEM_PARENT point to, NULL if none does
 * @st: state per item, NULL if the call never waits
 * @plan: room for moves, NULL if the call never waits
 * @plan_item: item that each move of @plan is for
 * @asker: caller's space and process; the plan's caller
 * @start: when the call was made, nanoseconds
 * @memlock: RLIMIT_MEMLOCK of the caller, pages
 * @now: time of the present round, nanoseconds
 * @pending: items without final status
 * @limit: PREFIX: items from here on are cut off
 * @posted: asynchronous PREFIX: completions posted so far, in order
 * @todo: items to step, runner only
 * @blocked: items that wait for somebody else's move, runner only
 * @ready: items whose own moves have ended, filled by completions
 * @lease: lease of a LOOKUP under way
 * @settle: an item found no room; chunks on their way are to be waited for
 * @settled: they have been, and none has come since @claims was read: no room is final
 * @claims: hawk_as.claims when the present round began, before anything was looked at
 * @async: results go to the ring
 * @cut: reloads were not begun because of the deadline, a signal, a cancellation
 * @task: how it is told to stop
 * @done: of an asynchronous job: reports its end, called once
 * @uring: io_uring command that it answers, or NULL
 * @work: runs an asynchronous job
 */
struct hawk_job {
	struct kref ref;
	const struct hawk_batch_op *op;
	struct hawk_file *f;
	struct hawk_as *as;
	struct hawk_batch arg;
	struct hawk_item *items;
	u8 (*parent)[HAWK_KEY_BYTES];
	struct hawk_item_state *st;
	struct hawk_plan plan;
	u32 *plan_item;
	struct hawk_asker asker;
	u64 start;
	unsigned long memlock;
	u64 now;
	u32 pending;
	u32 limit;
	u32 posted;
	struct list_head todo;
	struct list_head blocked;
	struct llist_head ready;
	struct hawk_lease *lease;
	bool settle;
	bool settled;
	s64 claims;
	bool async;
	bool cut;
	struct hawk_task task;
	void (*done)(struct hawk_job *job);
	struct io_uring_cmd *uring;
	struct work_struct work;
};

/* An all-zero key is no key. */
static inline const u8 *hawk_item_key(const struct hawk_item *it)
{
	return memchr_inv(it->key, 0, HAWK_KEY_BYTES) ? it->key : NULL;
}

int hawk_batch(struct hawk_file *f, unsigned int nr, struct hawk_batch *arg);
struct hawk_job *hawk_batch_prepare(struct hawk_file *f, unsigned int nr,
				    struct hawk_batch *arg);
int hawk_batch_finish(struct hawk_job *job, struct hawk_batch *arg);
void hawk_batch_undo(struct hawk_job *job);
const struct hawk_batch_op *hawk_batch_op(unsigned int nr);

int hawk_job_run(struct hawk_job *job);
void hawk_job_put(struct hawk_job *job);

void hawk_async_start(struct hawk_job *job, void (*done)(struct hawk_job *job));
void hawk_async_end(struct hawk_job *job);
void hawk_async_cancel(struct hawk_job *job);
int hawk_async_ring(struct hawk_job *job, struct hawk_batch *arg);

/* Its caller does not want the rest of it any more. */
static inline bool hawk_job_stopped(const struct hawk_job *job)
{
	return hawk_task_stopped(job->f, &job->task);
}

#endif /* HAWK_JOB_H */
