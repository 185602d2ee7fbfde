// SPDX-License-Identifier: GPL-2.0
/*
 * async.c - batches that run on a work queue: to the ring, to io_uring, canceled
 *
 * An asynchronous batch, or gather, holds its file and is on hawk_file.jobs from its
 * start until it has run.  Canceling only tells it to stop: its completions come from
 * where they always do, so none is lost and none comes twice.
 */
#include "job.h"

/* It is under way: HAWK_IOC_CANCEL finds it. */
void hawk_task_begin(struct hawk_file *f, struct hawk_task *task, u64 user_data)
{
	task->user_data = user_data;
	spin_lock(&f->jobs_lock);
	list_add_tail(&task->node, &f->jobs);
	spin_unlock(&f->jobs_lock);
}

void hawk_task_end(struct hawk_file *f, struct hawk_task *task)
{
	spin_lock(&f->jobs_lock);
	list_del(&task->node);
	spin_unlock(&f->jobs_lock);
}

static void hawk_async_work(struct work_struct *work)
{
	struct hawk_job *job = container_of(work, struct hawk_job, work);

	hawk_job_run(job);
	hawk_task_end(job->f, &job->task);
	job->done(job);
}

/**
 * hawk_async_start() - run a batch on the work queue
 * @job: the batch; the caller's reference is @done's from now on
 * @done: called when it has run; ends with hawk_async_end()
 */
void hawk_async_start(struct hawk_job *job, void (*done)(struct hawk_job *job))
{
	struct hawk_file *f = job->f;

	kref_get(&f->ref);
	job->done = done;
	INIT_WORK(&job->work, hawk_async_work);
	hawk_task_begin(f, &job->task, job->arg.user_data);
	queue_work(hawk_dev.batch_wq, &job->work);
}

/* The batch has been reported. */
void hawk_async_end(struct hawk_job *job)
{
	struct hawk_file *f = job->f;

	hawk_job_put(job);
	hawk_file_put(f);
}

/* Tell a batch to stop.  It is under way, or has ended but not been freed. */
void hawk_async_cancel(struct hawk_job *job)
{
	WRITE_ONCE(job->task.canceled, true);
	wake_up_all(&job->as->wait);
}

/* ---- results to the ring ---- */

static void hawk_async_ring_done(struct hawk_job *job)
{
	struct hawk_cqe cqe = {
		.user_data = job->arg.user_data,
		.flags = HAWK_CQE_BATCH,
	};
	u32 i;

	for (i = 0; i < job->arg.count; i++)
		cqe.index += !job->items[i].status;
	hawk_cq_post(job->f, &cqe);
	hawk_async_end(job);
}

/**
 * hawk_async_ring() - start a batch whose results go to the file's ring
 * @job: the batch; the caller's reference is used up
 * @arg: out, no results yet
 *
 * Return: 0 or -EBUSY: no room for its completions.
 */
int hawk_async_ring(struct hawk_job *job, struct hawk_batch *arg)
{
	int ret = hawk_cq_reserve(job->f->cq, arg->count + 1);

	if (ret) {
		hawk_job_put(job);
		return ret;
	}
	arg->done = 0;
	arg->prefix = 0;
	arg->lease = 0;
	hawk_async_start(job, hawk_async_ring_done);
	return 0;
}

/* ---- HAWK_IOC_CANCEL ---- */

int hawk_ioc_cancel(struct hawk_file *f, void *arg)
{
	struct hawk_cancel *c = arg;
	bool all = c->flags & HAWK_CANCEL_ALL;
	struct hawk_task *task;

	if (c->reserved)
		return -EOPNOTSUPP;
	if (all && c->user_data)
		return -EINVAL;
	c->batches = 0;
	spin_lock(&f->jobs_lock);
	list_for_each_entry(task, &f->jobs, node) {
		if (!all && task->user_data != c->user_data)
			continue;
		c->batches++;
		WRITE_ONCE(task->canceled, true);
	}
	spin_unlock(&f->jobs_lock);
	if (!c->batches)
		return -ENOENT;
	wake_up_all(&f->as->wait);
	return 0;
}
