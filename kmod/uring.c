// SPDX-License-Identifier: GPL-2.0
/*
 * uring.c - batch calls submitted through io_uring
 *
 * The argument and the items are checked and copied in when the command is issued,
 * by the functions that the ioctls use.  A call that never waits is done at once; one
 * that waits for importers only (FREE, for at most HAWK_YIELD_NS) in a thread of
 * io_uring's when the space has exports.
 * Another runs as an asynchronous batch; when it has, a task work in the submitter
 * copies the results out and posts the completion:
 *
 *	issue -> hawk_batch_wq -> task work -> completion
 *
 * The request holds its file.  The batch stays until the command is done, so a
 * cancellation, which io_uring makes before that, finds it.  When the submitter is
 * gone the task work runs in a kernel thread without its memory: what cannot be
 * handed back is undone.
 */
#include "hawk.h"
#include "job.h"
#include "uring.h"

#ifdef HAWK_URING

#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

/**
 * struct hawk_uring - what a command under way keeps, in io_uring_cmd.pdu
 * @job: its batch
 * @mm: the submitter's memory, to be compared only
 * @uarg: where struct hawk_batch goes
 * @usize: bytes of it that the caller knows
 */
struct hawk_uring {
	struct hawk_job *job;
	struct mm_struct *mm;
	void __user *uarg;
	u32 usize;
};

static struct hawk_uring *hawk_uring_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct hawk_uring) > sizeof(cmd->pdu));
	return (struct hawk_uring *)cmd->pdu;
}

/* In the submitter's context. */
static int hawk_uring_results(struct hawk_job *job, void __user *uarg, u32 usize)
{
	struct hawk_batch arg = job->arg;
	int ret = hawk_batch_finish(job, &arg);

	return ret ? ret : hawk_batch_arg_put(&arg, uarg, usize);
}

/* Task work: in the submitter, or in a kernel thread when that is gone. */
static void hawk_uring_end(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct hawk_uring u = *hawk_uring_of(cmd);
	int ret = -ECANCELED;

	if (current->mm == u.mm)
		ret = hawk_uring_results(u.job, u.uarg, u.usize);
	else
		hawk_batch_undo(u.job);
	io_uring_cmd_done(cmd, ret, issue_flags);
	mmdrop(u.mm);
	hawk_async_end(u.job);
}

HAWK_URING_TASK_WORK(hawk_uring_task_work, hawk_uring_end)

static void hawk_uring_done(struct hawk_job *job)
{
	io_uring_cmd_complete_in_task(job->uring, hawk_uring_task_work);
}

static int hawk_uring_start(struct io_uring_cmd *cmd, unsigned int issue_flags,
			    struct hawk_job *job, void __user *uarg, u32 usize)
{
	mmgrab(current->mm);
	*hawk_uring_of(cmd) = (struct hawk_uring) {
		.job = job,
		.mm = current->mm,
		.uarg = uarg,
		.usize = usize,
	};
	job->uring = cmd;
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	hawk_async_start(job, hawk_uring_done);
	return -EIOCBQUEUED;
}

/**
 * hawk_uring_cmd() - a batch call through io_uring
 * @cmd: cmd_op is HAWK_IOC_* of a batch call, the entry holds struct hawk_uring_cmd
 * @issue_flags: of io_uring
 *
 * Return: what the ioctl would, -EIOCBQUEUED: it comes with the completion; or
 * -EINVAL: HAWK_BATCH_ASYNC.
 */
int hawk_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct hawk_uring_cmd *sqe = hawk_uring_sqe_cmd(cmd);
	struct hawk_file *f = cmd->file->private_data;
	void __user *uarg;
	struct hawk_batch arg;
	struct hawk_job *job;
	u32 usize;
	int ret;

	if (issue_flags & IO_URING_F_CANCEL) {
		hawk_async_cancel(hawk_uring_of(cmd)->job);
		return 0;
	}
	uarg = u64_to_user_ptr(READ_ONCE(sqe->batch));
	if (READ_ONCE(sqe->reserved))
		return -EOPNOTSUPP;
	ret = hawk_batch_arg_get(f, cmd->cmd_op, &arg, uarg, &usize);
	if (ret)
		return ret;
	if (arg.flags & HAWK_BATCH_ASYNC)
		return -EINVAL;
	job = hawk_batch_prepare(f, _IOC_NR(cmd->cmd_op), &arg);
	if (IS_ERR(job))
		return PTR_ERR(job);
	/* Exports of what is freed may have to give way first: not in the submitter. */
	if (job->op->yields && (issue_flags & IO_URING_F_NONBLOCK) && !xa_empty(&f->as->exports)) {
		hawk_job_put(job);
		return -EAGAIN;
	}
	if (job->op->waits)
		return hawk_uring_start(cmd, issue_flags, job, uarg, usize);
	ret = hawk_job_run(job) ?: hawk_uring_results(job, uarg, usize);
	hawk_job_put(job);
	return ret;
}

#endif /* HAWK_URING */
