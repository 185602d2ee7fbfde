// SPDX-License-Identifier: GPL-2.0
/*
 * gather.c - HAWK_IOC_GATHER: blocks of several lists, each once, to one buffer
 *
 *	check, copy in		all that can be refused is, and all memory is taken
 *	hawk_gather_open()	the engine finds the blocks, keeps them, orders them
 *	pin the buffer		only as much of it as they take
 *	transfers		gather_io.c, here or on a work queue
 *	results			remap and status, or completions
 *
 * What a gather holds - the engine's pins and readers, the buffer's pages, their charge,
 * its file - goes with its last transfer, so a client that dies or gives up leaves
 * nothing but transfers that end by themselves.
 */
#include "gather.h"
#include "trace.h"

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

static int hawk_gather_check(struct hawk_file *f, const struct hawk_gather *arg)
{
	if (arg->reserved)
		return -EOPNOTSUPP;
	if (!arg->rows || !arg->lists)
		return -EINVAL;
	if (arg->rows > HAWK_BATCH_MAX || arg->lists > HAWK_GATHER_LISTS)
		return -E2BIG;
	if (arg->buf % HAWK_FRAME_ALIGN || arg->deadline_ns > KTIME_MAX)
		return -EINVAL;
	if ((arg->flags & HAWK_BATCH_IN_TIME) && !arg->deadline_ns)
		return -EINVAL;
	if ((arg->flags & HAWK_BATCH_ASYNC) && !hawk_file_cq(f))
		return -EINVAL;
	return 0;
}

/* The lists' lengths must add up to the rows. */
static int hawk_gather_check_counts(const struct hawk_gather *arg)
{
	u32 count[HAWK_GATHER_LISTS], i;
	u64 sum = 0;

	if (copy_from_user(count, u64_to_user_ptr(arg->counts), arg->lists * sizeof(*count)))
		return -EFAULT;
	for (i = 0; i < arg->lists; i++)
		sum += count[i];
	return sum == arg->rows ? 0 : -EINVAL;
}

static void hawk_gather_unpin(struct hawk_gather_call *c)
{
	unpin_user_pages_dirty_lock(c->page, c->npages, true);
	hawk_memlock_uncharge(c->f, c->charged);
	c->npages = 0;
	c->charged = 0;
}

static void hawk_gather_free(struct kref *ref)
{
	struct hawk_gather_call *c = container_of(ref, struct hawk_gather_call, ref);

	kvfree(c->run);
	kvfree(c->bv);
	kvfree(c->page);
	kvfree(c->set.blk);
	kvfree(c->set.key);
	kvfree(c->set.status);
	kvfree(c->set.remap);
	kvfree(c->set.lid);
	hawk_file_put(c->f);
	kfree(c);
}

void hawk_gather_put(struct hawk_gather_call *c)
{
	kref_put(&c->ref, hawk_gather_free);
}

static int hawk_gather_alloc(struct hawk_gather_call *c, u32 rows)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	struct hawk_gather_set *g = &c->set;

	g->remap = kvmalloc_array(rows, sizeof(*g->remap), gfp);
	g->status = kvmalloc_array(rows, sizeof(*g->status), gfp);
	g->key = kvmalloc_array(rows, sizeof(*g->key), gfp);
	g->blk = kvmalloc_array(rows, sizeof(*g->blk), gfp);
	return g->remap && g->status && g->key && g->blk ? 0 : -ENOMEM;
}

static struct hawk_gather_call *hawk_gather_create(struct hawk_file *f,
						   const struct hawk_gather *arg)
{
	struct hawk_gather_call *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	u32 block = f->as->info.block_bytes;
	int ret;

	if (!c)
		return ERR_PTR(-ENOMEM);
	kref_init(&c->ref);
	kref_get(&f->ref);
	c->f = f;
	c->as = f->as;
	c->lists = arg->lists;
	c->pid = current->tgid;
	c->called = ktime_get_ns();
	c->async = arg->flags & HAWK_BATCH_ASYNC;
	c->deadline_ns = arg->deadline_ns;
	c->urgent = arg->flags & HAWK_BATCH_URGENT;
	c->set.rows = arg->rows;
	c->set.room = min_t(u64, arg->buf_bytes / block, arg->rows);
	ret = hawk_gather_alloc(c, arg->rows);
	if (ret)
		goto err_put;
	c->set.lid = vmemdup_user(u64_to_user_ptr(arg->lids),
				  array_size(arg->rows, sizeof(*c->set.lid)));
	if (IS_ERR(c->set.lid)) {
		ret = PTR_ERR(c->set.lid);
		c->set.lid = NULL;
		goto err_put;
	}
	return c;

err_put:
	hawk_gather_put(c);
	return ERR_PTR(ret);
}

/* The pages of the buffer that blocks go to.  Return: 0, -EFAULT or -ENOMEM. */
static int hawk_gather_pin(struct hawk_gather_call *c, u64 buf, unsigned long limit)
{
	u32 n = c->set.n * (c->as->info.block_bytes >> PAGE_SHIFT), i;
	int ret;

	if (!n)
		return 0;
	c->page = kvmalloc_array(n, sizeof(*c->page), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	c->bv = kvmalloc_array(n, sizeof(*c->bv), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!c->page || !c->bv)
		return -ENOMEM;
	ret = hawk_memlock_charge(c->f, c->set.n, limit);
	if (ret)
		return ret;
	c->charged = c->set.n;
	while (c->npages < n) {
		ret = pin_user_pages_fast(buf + ((u64)c->npages << PAGE_SHIFT), n - c->npages,
					  FOLL_WRITE, c->page + c->npages);
		if (ret <= 0)
			return ret == -ENOMEM ? ret : -EFAULT;
		c->npages += ret;
	}
	for (i = 0; i < n; i++)
		c->bv[i] = (struct bio_vec){ .bv_page = c->page[i], .bv_len = PAGE_SIZE };
	return 0;
}

static void hawk_gather_trace(const struct hawk_gather_call *c, int ret)
{
	if (trace_hawk_gather_enabled())
		trace_hawk_gather(c, ktime_get_ns() - c->called, ret);
}

/* It will not begin, because of @why: what the engine keeps is given back. */
static void hawk_gather_abandon(struct hawk_gather_call *c, int why)
{
	u32 i;

	hawk_gather_trace(c, why);
	for (i = 0; i < c->set.n; i++)
		hawk_gather_done(c->as->space, &c->set, i, -ECANCELED, false);
	hawk_tidy_waiting(c->as);
	hawk_gather_unpin(c);
	hawk_gather_put(c);
}

static int hawk_gather_copy_out(const struct hawk_gather_call *c, const struct hawk_gather *arg)
{
	size_t rows = arg->rows;

	if (copy_to_user(u64_to_user_ptr(arg->remap), c->set.remap,
			 rows * sizeof(*c->set.remap)) ||
	    copy_to_user(u64_to_user_ptr(arg->status), c->set.status,
			 rows * sizeof(*c->set.status)))
		return -EFAULT;
	return 0;
}

/* Check, copy in, find the blocks, pin the buffer.  Return: ready to start. */
static struct hawk_gather_call *hawk_gather_prepare(struct hawk_file *f,
						    struct hawk_gather *arg)
{
	struct hawk_gather_call *c;
	int ret = hawk_gather_check(f, arg);

	if (!ret)
		ret = hawk_gather_check_counts(arg);
	if (ret)
		return ERR_PTR(ret);
	c = hawk_gather_create(f, arg);
	if (IS_ERR(c))
		return c;
	hawk_gather_open(c->as->space, &c->set, ktime_get_ns());
	ret = hawk_gather_pin(c, arg->buf, hawk_memlock_limit());
	if (!ret && (arg->flags & HAWK_BATCH_IN_TIME) && !hawk_gather_in_time(c))
		ret = -ETIME;
	if (!ret)
		ret = hawk_gather_runs(c, arg);
	if (ret) {
		hawk_gather_abandon(c, ret);
		return ERR_PTR(ret);
	}
	arg->unique = c->set.n;
	arg->bytes = (u64)c->set.n * c->as->info.block_bytes;
	arg->done = 0;
	arg->busy = 0;
	return c;
}

/* ---- the end ---- */

static u64 hawk_gather_ns(const struct hawk_gather_call *c, u32 tier)
{
	u64 end = READ_ONCE(c->end[tier]);

	return end > c->start ? end - c->start : 0;
}

static void hawk_gather_post_end(struct hawk_gather_call *c)
{
	struct hawk_cqe cqe = {
		.user_data = c->task.user_data,
		.index = atomic_read(&c->moved),
		.flags = HAWK_CQE_BATCH,
	};
	u32 t;

	cqe.lid = (u64)cqe.index * c->as->info.block_bytes;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		cqe.vt = max(cqe.vt, hawk_gather_ns(c, t));
	hawk_cq_post(c->f, &cqe);
}

/* No transfer is left; its caller may still be at work. */
void hawk_gather_over(struct hawk_gather_call *c)
{
	hawk_gather_unpin(c);
	hawk_gather_trace(c, READ_ONCE(c->error));
	if (!c->async) {
		smp_store_release(&c->over, true);	/* pairs with hawk_gather_wait() */
		return;
	}
	hawk_stats_gather(c);	/* who sees its completion sees it counted */
	hawk_task_end(c->f, &c->task);
	hawk_gather_post_end(c);
}

/* ---- both ways ---- */

static void hawk_gather_work(struct work_struct *work)
{
	struct hawk_gather_call *c = container_of(work, struct hawk_gather_call, work);

	hawk_gather_start(c);
	hawk_gather_put(c);
}

static int hawk_gather_async(struct hawk_gather_call *c, struct hawk_gather *arg)
{
	u32 busy;
	int ret;

	arg->done = hawk_gather_results(&c->set, -EINPROGRESS, &busy);
	ret = hawk_gather_copy_out(c, arg);
	if (!ret)
		ret = hawk_cq_reserve(c->f->cq, c->set.n + 1);
	if (ret) {
		hawk_gather_abandon(c, ret);
		return ret;
	}
	INIT_WORK(&c->work, hawk_gather_work);
	hawk_task_begin(c->f, &c->task, arg->user_data);
	/* who is urgent is not behind those that sleep */
	queue_work(c->urgent ? hawk_dev.batch_wq : hawk_dev.gather_wq, &c->work);
	return 0;
}

static int hawk_gather_now(struct hawk_gather_call *c, struct hawk_gather *arg)
{
	int ret;
	u32 t;

	hawk_gather_start(c);
	ret = hawk_gather_wait(c);
	arg->done = hawk_gather_results(&c->set, ret == -ETIME ? -ETIME : -ECANCELED, &arg->busy);
	for (t = 0; t < HAWK_TIERS_MAX && !arg->busy; t++)
		arg->tier[t].ns = hawk_gather_ns(c, t);
	if (ret != -ERESTARTSYS || arg->done || arg->busy) {
		hawk_stats_gather(c);
		ret = hawk_gather_copy_out(c, arg);
	}
	hawk_gather_put(c);
	return ret;
}

/**
 * hawk_ioc_gather() - HAWK_IOC_GATHER
 * @f: caller's file, has a space
 * @data: struct hawk_gather; the results are written into it
 *
 * Return: 0 or as &struct hawk_gather tells.
 */
int hawk_ioc_gather(struct hawk_file *f, void *data)
{
	struct hawk_gather *arg = data;
	struct hawk_gather_call *c = hawk_gather_prepare(f, arg);

	if (IS_ERR(c))
		return PTR_ERR(c);
	return c->async ? hawk_gather_async(c, arg) : hawk_gather_now(c, arg);
}
