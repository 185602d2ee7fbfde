// SPDX-License-Identifier: GPL-2.0
/*
 * tier_dmabuf.c - the memory of another driver's dma-buf as a tier
 *
 * Bytes are moved by the CPU, through a kernel mapping of the whole buffer (vmap),
 * by one worker per tier.  An access is
 *
 *	begin_cpu_access	the exporter's caches; waits for its fences
 *	vmap			unless there is a mapping that is good
 *	dma_resv_lock		from here on the buffer cannot be moved
 *	copy or zero, if it was not moved since before begin_cpu_access, else again
 *	dma_resv_unlock, end_cpu_access
 *
 * The exporter moves the buffer, or takes it away for good, with dma_resv held and
 * calls move_notify() before it lets go.  That only counts: the mapping made before
 * is used no more, and a worker unmaps it.  So a copy sees the buffer before or after
 * a move, never in between.  An idle tier has no mapping: exporters may keep a buffer
 * where it is while it has one.
 *
 * No callback tells that a buffer is gone for good.  It is when an access fails with
 * -ENODEV; the worker that move_notify() starts tries one, so this is noticed at
 * once.  The tier is lost then (hawk_mem_lost()).
 *
 * The buffer is zeroed when it is imported and a chunk when it has left its owner,
 * also before the exporter gets the buffer back.
 *
 * Whether the buffer is still there is asked by begin_cpu_access: the kernel warns of a
 * vmap that fails.  It does so all the same if the exporter takes the buffer away between
 * the two and refuses the vmap: nothing here can prevent that, and the access fails.
 *
 * Order of locks: hawk_import.access > what the exporter takes, and dma_resv.  Under
 * dma_resv nothing of hawk.ko is taken but the locks of work queues.
 */
#include "export.h"
#include "move.h"

#include <linux/iosys-map.h>
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#define HAWK_IMPORT_IDLE_MS	1000	/* without an access: the mapping goes */
#define HAWK_IMPORT_TRIES	1000	/* that find the buffer moved: the exporter has gone mad */

/**
 * struct hawk_import - a dma-buf that is a tier
 * @mem: the tier's memory
 * @buf: the dma-buf, referenced
 * @at: our attachment; it never maps for DMA, it is for move_notify
 * @node: in hawk_imports
 * @access: serialises accesses and unmapping; guards @map, @mapped, @map_moves, @used
 * @map: kernel mapping of the buffer
 * @mapped: there is one
 * @map_moves: @moves as it was when @map was made; another value: it is stale
 * @used: when the last access was, jiffies
 * @moves: move_notify calls; changed under dma_resv
 * @check: @tidy has to find out whether the buffer is still there
 * @tidy: drops a mapping that is stale or idle
 * @lock: guards @queue; taken with no other held
 * @queue: transfers to be made, hawk_provider_xfer.node
 * @work: makes them
 */
struct hawk_import {
	struct hawk_mem *mem;
	struct dma_buf *buf;
	struct dma_buf_attachment *at;
	struct list_head node;
	struct mutex access;
	struct iosys_map map;
	bool mapped;
	u64 map_moves;
	unsigned long used;
	u64 moves;
	bool check;
	struct delayed_work tidy;
	spinlock_t lock;
	struct list_head queue;
	struct work_struct work;
};

static DEFINE_SPINLOCK(hawk_imports_lock);	/* guards hawk_imports; leaf */
static LIST_HEAD(hawk_imports);
static DECLARE_WAIT_QUEUE_HEAD(hawk_imports_wait);	/* for one to leave the list */
static struct workqueue_struct *hawk_import_wq;
static bool hawk_import_ends;	/* the module goes: nobody has to hear of a lost tier */

/* ---- access ---- */

static void hawk_import_unmap(struct hawk_import *d)
{
	lockdep_assert_held(&d->access);
	if (d->mapped)
		dma_buf_vunmap_unlocked(d->buf, &d->map);
	d->mapped = false;
}

static int hawk_import_map(struct hawk_import *d, u64 moves)
{
	int ret;

	lockdep_assert_held(&d->access);
	if (d->mapped && d->map_moves == moves)
		return 0;
	hawk_import_unmap(d);
	ret = dma_buf_vmap_unlocked(d->buf, &d->map);
	if (ret)
		return ret;
	d->mapped = true;
	d->map_moves = moves;
	return 0;
}

/*
 * One try.  Return: 0: @d->map is good until the end; -EAGAIN: it has been moved.
 */
static int hawk_import_try(struct hawk_import *d, enum dma_data_direction dir)
{
	u64 moves = READ_ONCE(d->moves);
	int ret;

	/* The exporter says here that the buffer is gone: a vmap that fails is a warning. */
	ret = dma_buf_begin_cpu_access(d->buf, dir);
	if (ret)
		return ret;
	ret = READ_ONCE(d->moves) == moves ? hawk_import_map(d, moves) : -EAGAIN;
	if (ret)
		goto err_end;
	dma_resv_lock(d->buf->resv, NULL);
	if (d->moves == moves)
		return 0;
	dma_resv_unlock(d->buf->resv);
	ret = -EAGAIN;
err_end:
	dma_buf_end_cpu_access(d->buf, dir);
	return ret;
}

/*
 * Return: 0: @d->map may be used until hawk_import_end(), and dma_resv is held; else a
 * negative errno, -ENODEV: the buffer is gone.
 */
static int hawk_import_begin(struct hawk_import *d, enum dma_data_direction dir)
{
	int ret, tries = HAWK_IMPORT_TRIES;

	mutex_lock(&d->access);
	while ((ret = hawk_import_try(d, dir)) == -EAGAIN && --tries)
		cond_resched();
	if (!ret)
		return 0;
	mutex_unlock(&d->access);
	return ret == -EAGAIN ? -EBUSY : ret;
}

static int hawk_import_end(struct hawk_import *d, enum dma_data_direction dir)
{
	int ret;

	dma_resv_unlock(d->buf->resv);
	ret = dma_buf_end_cpu_access(d->buf, dir);
	d->used = jiffies;
	mutex_unlock(&d->access);
	queue_delayed_work(hawk_import_wq, &d->tidy, msecs_to_jiffies(HAWK_IMPORT_IDLE_MS));
	return ret;
}

/* Is it still there?  Context: any. */
static void hawk_import_check_soon(struct hawk_import *d)
{
	WRITE_ONCE(d->check, true);
	mod_delayed_work(hawk_import_wq, &d->tidy, 0);
}

static int hawk_import_zero(struct hawk_import *d, u32 chunk)
{
	int ret = hawk_import_begin(d, DMA_BIDIRECTIONAL);

	if (ret)
		return ret;
	iosys_map_memset(&d->map, (u64)chunk << HAWK_CHUNK_SHIFT, 0, HAWK_CHUNK_BYTES);
	return hawk_import_end(d, DMA_BIDIRECTIONAL);
}

/* ---- the exporter moves it, or takes it away ---- */

/* dma_resv is held: nothing is waited for here. */
static void hawk_import_move_notify(struct dma_buf_attachment *at)
{
	struct hawk_import *d = at->importer_priv;

	dma_resv_assert_held(d->buf->resv);
	WRITE_ONCE(d->moves, d->moves + 1);
	hawk_import_check_soon(d);
}

static const struct dma_buf_attach_ops hawk_import_attach_ops = {
	.HAWK_MOVE_NOTIFY = hawk_import_move_notify,
};

static bool hawk_import_is_idle(const struct hawk_import *d)
{
	return time_after_eq(jiffies, d->used + msecs_to_jiffies(HAWK_IMPORT_IDLE_MS));
}

static bool hawk_import_is_there(struct hawk_import *d)
{
	int ret;

	lockdep_assert_held(&d->access);
	ret = dma_buf_begin_cpu_access(d->buf, DMA_FROM_DEVICE);
	if (!ret)
		dma_buf_end_cpu_access(d->buf, DMA_FROM_DEVICE);
	return ret != -ENODEV;
}

/* Return: false: it is no tier yet, or not any more. */
static bool hawk_import_published(const struct hawk_import *d)
{
	bool ret;

	hawk_dev_lock();
	ret = hawk_dev.mem[d->mem->id] == d->mem;
	mutex_unlock(&hawk_dev.lock);
	return ret;
}

static void hawk_import_tidy(struct work_struct *work)
{
	struct hawk_import *d = container_of(to_delayed_work(work), struct hawk_import, tidy);
	bool lost;

	mutex_lock(&d->access);
	if (d->map_moves != READ_ONCE(d->moves) || hawk_import_is_idle(d))
		hawk_import_unmap(d);
	lost = xchg(&d->check, false) && !hawk_import_is_there(d);
	if (d->mapped || lost)
		queue_delayed_work(hawk_import_wq, &d->tidy,
				   msecs_to_jiffies(HAWK_IMPORT_IDLE_MS));
	mutex_unlock(&d->access);
	if (!lost)
		return;
	if (hawk_import_published(d) && !READ_ONCE(hawk_import_ends))
		hawk_mem_lost(d->mem);
	else
		WRITE_ONCE(d->check, true);	/* maybe not yet: look again */
}

/* ---- transfers ---- */

static void hawk_import_copy(struct hawk_import *d, const struct hawk_provider_xfer *x)
{
	u64 off = x->off;
	u32 i;

	for (i = 0; i < x->nbv; i++) {
		void *p = bvec_virt(&x->bv[i]);

		if (x->write)
			iosys_map_memcpy_to(&d->map, off, p, x->bv[i].bv_len);
		else
			iosys_map_memcpy_from(p, &d->map, off, x->bv[i].bv_len);
		off += x->bv[i].bv_len;
	}
}

static int hawk_import_serve(struct hawk_import *d, const struct hawk_provider_xfer *x)
{
	enum dma_data_direction dir = x->write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	int ret = READ_ONCE(d->mem->lost) ? -ENODEV : hawk_import_begin(d, dir);

	if (ret)
		return ret;
	hawk_import_copy(d, x);
	return hawk_import_end(d, dir);
}

static struct hawk_provider_xfer *hawk_import_next(struct hawk_import *d)
{
	struct hawk_provider_xfer *x;

	spin_lock(&d->lock);
	x = list_first_entry_or_null(&d->queue, struct hawk_provider_xfer, node);
	if (x)
		list_del(&x->node);
	spin_unlock(&d->lock);
	return x;
}

/* Memory may wait for an eviction: it must not wait for memory in turn. */
static void hawk_import_work(struct work_struct *work)
{
	struct hawk_import *d = container_of(work, struct hawk_import, work);
	unsigned int noio = memalloc_noio_save();
	struct hawk_provider_xfer *x;

	while ((x = hawk_import_next(d))) {
		int ret = hawk_import_serve(d, x);

		if (ret == -ENODEV)
			hawk_import_check_soon(d);
		hawk_provider_done(x, ret);
		cond_resched();
	}
	memalloc_noio_restore(noio);
}

/* Not by the caller: the exporter may take its time, and batches have deadlines. */
static void hawk_import_xfer(struct hawk_mem *m, struct hawk_io *io, u64 off, bool write)
{
	struct hawk_provider_xfer *x = hawk_io_xfer(io, off, write);
	struct hawk_import *d = m->import;

	spin_lock(&d->lock);
	list_add_tail(&x->node, &d->queue);
	spin_unlock(&d->lock);
	queue_work(hawk_import_wq, &d->work);
}

static bool hawk_import_clean(struct hawk_mem *m, u32 chunk)
{
	int ret;

	if (READ_ONCE(m->lost))
		return true;	/* its bytes are nobody's to reach */
	ret = hawk_import_zero(m->import, chunk);
	if (!ret)
		return true;
	hawk_mem_unclean(m, chunk, ret);
	if (ret == -ENODEV)
		hawk_import_check_soon(m->import);
	return false;
}

/* ---- the end ---- */

/* No transfer is queued, and no chunk is being cleaned: nothing maps it any more. */
static void hawk_import_release(struct hawk_mem *m)
{
	struct hawk_import *d = m->import;

	if (!d)
		return;
	cancel_work_sync(&d->work);
	mutex_lock(&d->access);
	hawk_import_unmap(d);
	mutex_unlock(&d->access);
	if (d->at)
		dma_buf_detach(d->buf, d->at);
	cancel_delayed_work_sync(&d->tidy);	/* after the last move_notify() */
	spin_lock(&hawk_imports_lock);
	list_del(&d->node);
	spin_unlock(&hawk_imports_lock);
	wake_up_all(&hawk_imports_wait);
	dma_buf_put(d->buf);
	mutex_destroy(&d->access);
	kfree(d);
	m->import = NULL;
}

static const struct hawk_mem_ops hawk_import_ops = {
	.release = hawk_import_release,
	.clean = hawk_import_clean,
	.xfer = hawk_import_xfer,
};

/* ---- the start ---- */

/*
 * Two tiers in one buffer would overwrite each other's blocks.
 * Return: 0; -EBUSY; -EAGAIN: it was a tier and is about to be let go.
 */
static int hawk_import_claim(struct hawk_import *d)
{
	struct hawk_import *other;
	int ret = 0;

	spin_lock(&hawk_imports_lock);
	list_for_each_entry(other, &hawk_imports, node)
		if (other->buf == d->buf)
			ret = READ_ONCE(other->mem->gone) ? -EAGAIN : -EBUSY;
	if (!ret)
		list_add(&d->node, &hawk_imports);
	spin_unlock(&hawk_imports_lock);
	return ret;
}

/* Return: 0, -EBUSY, or -EINTR: the caller is being killed. */
static int hawk_import_claim_wait(struct hawk_import *d)
{
	int ret = -EAGAIN, err;

	err = wait_event_killable(hawk_imports_wait,
				  ({ ret = hawk_import_claim(d); ret != -EAGAIN; }));
	return err ? -EINTR : ret;
}

/* Return: 0, or what &struct hawk_tier_add tells. */
static int hawk_import_check(const struct dma_buf *buf, u64 bytes)
{
	if (buf->ops == &hawk_dmabuf_ops) {
		pr_err_ratelimited("dma-buf: it is an export of ours: no tier in a tier\n");
		return -EINVAL;
	}
	if (!buf->ops->vmap) {
		pr_err_ratelimited("dma-buf of %s: its exporter cannot map it for the CPU\n",
				   buf->exp_name);
		return -EOPNOTSUPP;
	}
	if (!hawk_chunks(bytes ?: buf->size) || bytes > buf->size) {
		pr_err_ratelimited("dma-buf of %s: has %zu bytes, needed are %llu\n",
				   buf->exp_name, buf->size,
				   max_t(u64, bytes, HAWK_CHUNK_BYTES));
		return -ENOSPC;
	}
	return 0;
}

/* @m->import has the caller's reference to @buf if this succeeds. */
static int hawk_import_alloc(struct hawk_mem *m, struct dma_buf *buf)
{
	struct hawk_import *d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!d)
		return -ENOMEM;
	d->mem = m;
	d->buf = buf;
	mutex_init(&d->access);
	INIT_DELAYED_WORK(&d->tidy, hawk_import_tidy);
	spin_lock_init(&d->lock);
	INIT_LIST_HEAD(&d->queue);
	INIT_WORK(&d->work, hawk_import_work);
	ret = hawk_import_claim(d);
	if (ret == -EAGAIN)
		ret = hawk_import_claim_wait(d);
	if (ret == -EBUSY)
		pr_err_ratelimited("dma-buf of %s: is a tier already\n", buf->exp_name);
	if (ret)
		kfree(d);
	else
		m->import = d;
	return ret;
}

/*
 * Only an exporter that pins for DMA moves a buffer that is not pinned.  Another
 * would have to map it for an importer that takes move_notify.
 */
static int hawk_import_attach(struct hawk_import *d)
{
	const struct dma_buf_attach_ops *ops = d->buf->ops->pin ? &hawk_import_attach_ops : NULL;
	struct dma_buf_attachment *at;

	at = dma_buf_dynamic_attach(d->buf, hawk_dev.misc.this_device, ops, d);
	if (IS_ERR(at))
		return PTR_ERR(at);
	d->at = at;
	return 0;
}

/* Whatever the buffer held, no space is to see it. */
static int hawk_import_zero_all(struct hawk_import *d)
{
	u32 c;

	for (c = 0; c < d->mem->chunks; c++) {
		int ret = fatal_signal_pending(current) ? -EINTR : hawk_import_zero(d, c);

		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/**
 * hawk_mem_create_dmabuf() - import a dma-buf as memory
 * @arg: checked argument of the call
 *
 * Return: the memory or an ERR_PTR of what &struct hawk_tier_add tells.
 */
struct hawk_mem *hawk_mem_create_dmabuf(const struct hawk_tier_add *arg)
{
	struct dma_buf *buf = dma_buf_get(arg->fd);
	struct hawk_mem *m;
	int ret;

	if (IS_ERR(buf))
		return ERR_CAST(buf);
	ret = hawk_import_check(buf, arg->bytes);
	if (ret)
		goto err_put_buf;
	m = hawk_mem_alloc(&hawk_import_ops, HAWK_TIER_DMABUF,
			   hawk_chunks(arg->bytes ?: buf->size));
	ret = m ? hawk_import_alloc(m, buf) : -ENOMEM;
	if (ret)
		goto err_put_mem;
	ret = hawk_import_attach(m->import) ?: hawk_import_zero_all(m->import);
	if (!ret)
		return m;
	if (ret != -EINTR && ret != -ERESTARTSYS)
		pr_err_ratelimited("dma-buf of %s: cannot be attached to and zeroed: %d\n",
				   buf->exp_name, ret);
	kobject_put(&m->kobj);	/* puts the buffer as well */
	return ERR_PTR(ret);

err_put_mem:
	if (m)
		kobject_put(&m->kobj);
err_put_buf:
	dma_buf_put(buf);
	return ERR_PTR(ret);
}

int hawk_import_init(void)
{
	hawk_import_wq = alloc_workqueue("hawk-import", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return hawk_import_wq ? 0 : -ENOMEM;
}

/* No space is left.  After this no tier is declared lost. */
void hawk_import_stop(void)
{
	WRITE_ONCE(hawk_import_ends, true);
	flush_workqueue(hawk_import_wq);
}

void hawk_import_exit(void)
{
	destroy_workqueue(hawk_import_wq);
}
