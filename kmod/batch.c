// SPDX-License-Identifier: GPL-2.0
/*
 * batch.c - the batch calls: check, copy in, run or queue, copy out
 *
 * A batch fails as a whole only for what concerns all of it (its structure, its
 * memory, a signal before anything was done).  Else it returns 0 and every item
 * has a status.  Items are copied once on the way in and once on the way out:
 * what a client changes meanwhile does not matter.  If they cannot be handed
 * back, the pins and the lease that the client would not know of are given back.
 */
#include "hawk.h"
#include "deliver.h"
#include "job.h"

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

static int hawk_batch_check_tier(struct hawk_as *as, const struct hawk_batch_op *op, u32 tier)
{
	if (tier == HAWK_TIER_ANY)
		return 0;
	if (!op->waits)
		return tier ? -EINVAL : 0;
	if (tier >= HAWK_TIERS_MAX)
		return -EINVAL;
	tier = array_index_nospec(tier, HAWK_TIERS_MAX);
	return !as->mem[tier] || as->mem[tier]->kind == HAWK_TIER_BLK ? -EINVAL : 0;
}

static int hawk_batch_check_lease(struct hawk_batch *arg)
{
	u64 now = ktime_get_ns();

	if (!arg->deadline_ns)
		arg->deadline_ns = now + HAWK_LEASE_DEFAULT_NS;
	if (arg->deadline_ns <= now || arg->deadline_ns - now > HAWK_LEASE_MAX_NS)
		return -EINVAL;
	return 0;
}

static int hawk_batch_check(struct hawk_file *f, const struct hawk_batch_op *op,
			    struct hawk_batch *arg)
{
	if (arg->flags & ~op->flags)
		return -EOPNOTSUPP;
	if (!arg->count)
		return -EINVAL;
	if (arg->count > HAWK_BATCH_MAX)
		return -E2BIG;
	if (op->writes && !f->writable)
		return -EACCES;
	if (arg->flags & HAWK_BATCH_LEASE) {
		if (hawk_batch_check_lease(arg))
			return -EINVAL;
	} else if (arg->deadline_ns && !op->waits) {
		return -EINVAL;
	}
	if ((arg->flags & HAWK_BATCH_IN_TIME) && !arg->deadline_ns)
		return -EINVAL;
	if (arg->deadline_ns > KTIME_MAX)
		return -EINVAL;
	if ((arg->flags & HAWK_BATCH_ASYNC) && !hawk_file_cq(f))
		return -EINVAL;
	return hawk_batch_check_tier(f->as, op, arg->tier);
}

static int hawk_job_alloc_state(struct hawk_job *job)
{
	u32 n = job->arg.count, i;

	job->plan.max = HAWK_PLAN_MOVES;
	job->plan.move = kmalloc_array(HAWK_PLAN_MOVES, sizeof(*job->plan.move),
				       GFP_KERNEL_ACCOUNT);
	job->plan_item = kmalloc_array(HAWK_PLAN_MOVES, sizeof(*job->plan_item),
				       GFP_KERNEL_ACCOUNT);
	job->st = kvcalloc(n, sizeof(*job->st), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!job->plan.move || !job->plan_item || !job->st)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		list_add_tail(&job->st[i].node, &job->todo);
	return 0;
}

static void hawk_job_free(struct kref *ref)
{
	struct hawk_job *job = container_of(ref, struct hawk_job, ref);

	if (job->lease)
		hawk_lease_end(job->lease);
	kvfree(job->st);
	kfree(job->plan_item);
	kfree(job->plan.move);
	kvfree(job->parent);
	kvfree(job->items);
	kfree(job);
}

void hawk_job_put(struct hawk_job *job)
{
	kref_put(&job->ref, hawk_job_free);
}

/* Keys of parents: the step of an item may run where the caller's memory is not. */
static int hawk_job_copy_parents(struct hawk_job *job)
{
	const struct hawk_item *it;
	u32 i;

	for (i = 0; i < job->arg.count; i++) {
		it = &job->items[i];
		if (!(it->flags & HAWK_ITEM_PARENT) || !it->arg)
			continue;
		if (!job->parent)
			job->parent = kvcalloc(job->arg.count, sizeof(*job->parent),
					       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!job->parent)
			return -ENOMEM;
		if (copy_from_user(job->parent[i], u64_to_user_ptr(it->arg), HAWK_KEY_BYTES))
			return -EFAULT;
	}
	return 0;
}

static struct hawk_job *hawk_job_create(struct hawk_file *f, const struct hawk_batch_op *op,
					const struct hawk_batch *arg)
{
	struct hawk_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	int ret = -ENOMEM;

	if (!job)
		return ERR_PTR(-ENOMEM);
	kref_init(&job->ref);
	job->op = op;
	job->f = f;
	job->as = f->as;
	job->arg = *arg;
	job->start = ktime_get_ns();
	job->asker.space = f->as->id;
	job->asker.pid = current->tgid;
	job->plan.caller = &job->asker;
	job->pending = arg->count;
	job->limit = arg->count;
	job->async = arg->flags & HAWK_BATCH_ASYNC;
	job->memlock = hawk_memlock_limit();
	INIT_LIST_HEAD(&job->todo);
	INIT_LIST_HEAD(&job->blocked);
	init_llist_head(&job->ready);
	job->items = kvmalloc_array(arg->count, sizeof(*job->items),
				    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!job->items)
		goto err_put;
	ret = -EFAULT;
	if (copy_from_user(job->items, u64_to_user_ptr(arg->items),
			   array_size(arg->count, sizeof(*job->items))))
		goto err_put;
	ret = op->item_flags & HAWK_ITEM_PARENT ? hawk_job_copy_parents(job) : 0;
	if (!ret && op->waits)
		ret = hawk_job_alloc_state(job);
	if (ret)
		goto err_put;
	if (arg->flags & HAWK_BATCH_LEASE) {
		job->lease = hawk_lease_alloc(f, arg->count);
		ret = job->lease ? 0 : -ENOMEM;
		if (ret)
			goto err_put;
	}
	return job;

err_put:
	hawk_job_put(job);
	return ERR_PTR(ret);
}

/* The lease becomes known under its id; one without blocks ends. */
static int hawk_batch_finish_lease(struct hawk_job *job, struct hawk_batch *arg)
{
	struct hawk_lease *l = job->lease;
	int id;

	arg->lease = 0;
	if (!l)
		return 0;
	job->lease = NULL;
	id = l->n ? hawk_lease_start(l, job->arg.deadline_ns) : 0;
	if (id <= 0) {
		hawk_lease_end(l);
		return id;
	}
	arg->lease = id;
	return 0;
}

/**
 * hawk_batch_undo() - the caller will not learn the results
 * @job: the batch, run
 */
void hawk_batch_undo(struct hawk_job *job)
{
	u32 i;

	for (i = 0; job->op->undo && i < job->arg.count; i++)
		if (!job->items[i].status)
			job->op->undo(job, i);
}

/**
 * hawk_batch_finish() - count the results into the argument, hand the items back
 * @job: the batch, run
 * @arg: out, the results
 *
 * Context: the caller's, as user memory is written.
 * Return: 0, -EFAULT or -ENOMEM: pins and lease have been given back then.
 */
int hawk_batch_finish(struct hawk_job *job, struct hawk_batch *arg)
{
	u32 n = job->arg.count, i;
	int ret;

	for (i = 0; i < n && !job->items[i].status; i++)
		;
	arg->prefix = i;
	for (arg->done = i; i < n; i++)
		arg->done += !job->items[i].status;
	if (copy_to_user(u64_to_user_ptr(arg->items), job->items,
			 array_size(n, sizeof(*job->items))))
		ret = -EFAULT;
	else
		ret = hawk_batch_finish_lease(job, arg);
	if (ret)
		hawk_batch_undo(job);
	return ret;
}

/**
 * hawk_batch_prepare() - check a batch call and copy it in
 * @f: caller's file, has a space
 * @nr: number of the call
 * @arg: its argument
 *
 * Context: the caller's, as user memory is read.
 * Return: the batch, not begun, or an error as hawk_batch().
 */
struct hawk_job *hawk_batch_prepare(struct hawk_file *f, unsigned int nr,
				    struct hawk_batch *arg)
{
	const struct hawk_batch_op *op = hawk_batch_op(nr);
	int ret = hawk_batch_check(f, op, arg);
	struct hawk_job *job;

	if (ret)
		return ERR_PTR(ret);
	job = hawk_job_create(f, op, arg);
	if (IS_ERR(job) || !(arg->flags & HAWK_BATCH_IN_TIME))
		return job;
	ret = hawk_deliver_check(job);
	if (!ret)
		return job;
	hawk_job_put(job);
	return ERR_PTR(ret);
}

/**
 * hawk_batch() - do a batch call
 * @f: caller's file, has a space
 * @nr: number of the call
 * @arg: its argument; the results are written into it
 *
 * Return: 0; -EOPNOTSUPP, -EINVAL, -E2BIG: the argument; -EACCES: the file may not
 * write; -EBUSY: no room in the ring; -ETIME: it would end too late; -EFAULT; -ENOMEM;
 * -EINTR: nothing was done.
 */
int hawk_batch(struct hawk_file *f, unsigned int nr, struct hawk_batch *arg)
{
	struct hawk_job *job = hawk_batch_prepare(f, nr, arg);
	int ret;

	if (IS_ERR(job))
		return PTR_ERR(job);
	if (job->async)
		return hawk_async_ring(job, arg);
	ret = hawk_job_run(job);
	if (!ret)
		ret = hawk_batch_finish(job, arg);
	hawk_job_put(job);
	return ret;
}
