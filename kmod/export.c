// SPDX-License-Identifier: GPL-2.0
/*
 * export.c - exports are made, give way, end
 *
 * export.h has the states.  The order of a revocation: marked under dma_resv, so
 * that nobody can begin to use the memory; importers told; mappings of processes
 * zapped; then, when the last user has gone and the fences have signalled, the
 * blocks are unpinned.  Nobody needs to wait for that: a revoker that gives up, or
 * has died, leaves an export that ends by itself.
 */
#include "export.h"

#include <linux/bsearch.h>
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>

/* ---- the end ---- */

static void hawk_dmabuf_free(struct kref *ref)
{
	struct hawk_dmabuf *x = container_of(ref, struct hawk_dmabuf, ref);

	if (x->inode)
		iput(x->inode);
	dma_resv_fini(&x->resv);
	kvfree(x->pages);
	kvfree(x->refs);
	kfree(x);
}

static void hawk_dmabuf_put(struct hawk_dmabuf *x)
{
	kref_put(&x->ref, hawk_dmabuf_free);
}

/*
 * Give the memory back; no user is left and none can come.  Pages first: a page of
 * an unpinned block must have no reference of ours.
 */
static void hawk_dmabuf_end(struct hawk_dmabuf *x)
{
	struct hawk_as *as = x->as;
	u32 i;

	dma_resv_wait_timeout(&x->resv, DMA_RESV_USAGE_BOOKKEEP, false, MAX_SCHEDULE_TIMEOUT);
	if (x->id)
		xa_erase(&as->exports, x->id);
	for (i = 0; i < x->npages; i++)
		put_page(x->pages[i]);
	for (i = 0; i < x->n; i++) {
		hawk_block_unpin(as->space, x->refs[i]);
		cond_resched();
	}
	hawk_tidy_waiting(as);
	if (x->id)
		atomic64_sub(x->bytes, &as->mem[x->tier]->exported_bytes);
	if (x->user) {
		atomic_long_sub(x->bytes >> PAGE_SHIFT, &x->user->locked_vm);
		free_uid(x->user);
	}
	x->as = NULL;
	WRITE_ONCE(x->ended, true);
	wake_up_all(&x->wait);
	hawk_as_put(as);
}

static void hawk_dmabuf_end_work(struct work_struct *work)
{
	struct hawk_dmabuf *x = container_of(work, struct hawk_dmabuf, end_work);

	hawk_dmabuf_end(x);
	hawk_dmabuf_put(x);
}

/* Shall the caller see to the end? */
static bool hawk_dmabuf_begin_end(struct hawk_dmabuf *x)
{
	bool end;

	spin_lock(&x->lock);
	end = x->revoked && !x->users && !x->ending;
	WRITE_ONCE(x->ending, x->ending || end);
	spin_unlock(&x->lock);
	return end;
}

/* Fences may take their time and callers hold dma_resv: a workqueue ends it. */
static void hawk_dmabuf_end_soon(struct hawk_dmabuf *x)
{
	if (!hawk_dmabuf_begin_end(x))
		return;
	kref_get(&x->ref);
	queue_work(hawk_dev.export_wq, &x->end_work);
}

/* Return: 0 or -ENODEV: it has been revoked. */
int hawk_dmabuf_get_user(struct hawk_dmabuf *x)
{
	int ret = -ENODEV;

	spin_lock(&x->lock);
	if (!x->revoked) {
		x->users++;
		ret = 0;
	}
	spin_unlock(&x->lock);
	return ret;
}

void hawk_dmabuf_put_user(struct hawk_dmabuf *x)
{
	spin_lock(&x->lock);
	x->users--;
	spin_unlock(&x->lock);
	hawk_dmabuf_end_soon(x);
}

/*
 * No new user, and no mapping of a process.  What importers hold ends by them.  The
 * revoker is a user itself until the mappings are gone: an importer that unmaps before
 * that must not be the last.  Return: whether it was not revoked before.
 */
static bool hawk_dmabuf_revoke(struct hawk_dmabuf *x)
{
	bool first;

	dma_resv_lock(&x->resv, NULL);
	spin_lock(&x->lock);
	first = !x->revoked;
	x->revoked = true;
	x->users++;
	spin_unlock(&x->lock);
	if (first && x->buf)
		dma_buf_invalidate_mappings(x->buf);
	dma_resv_unlock(&x->resv);
	unmap_mapping_range(x->inode->i_mapping, 0, 0, 1);
	hawk_dmabuf_put_user(x);
	return first;
}

/* The last reference to the dma-buf is gone, and with it every user but revokers. */
void hawk_dmabuf_released(struct hawk_dmabuf *x)
{
	dma_resv_lock(&x->resv, NULL);
	x->buf = NULL;
	spin_lock(&x->lock);
	x->revoked = true;
	spin_unlock(&x->lock);
	dma_resv_unlock(&x->resv);
	if (hawk_dmabuf_begin_end(x))
		hawk_dmabuf_end(x);
	hawk_dmabuf_put(x);
}

/* Return: 0; -EBUSY: importers still use it at the deadline; -EINTR. */
static int hawk_dmabuf_wait(struct hawk_dmabuf *x, u64 deadline_ns)
{
	ktime_t timeout = KTIME_MAX;
	int ret;

	if (deadline_ns)
		timeout = max_t(ktime_t, 0, ktime_sub(ns_to_ktime(deadline_ns), ktime_get()));
	ret = wait_event_interruptible_hrtimeout(x->wait, READ_ONCE(x->ended), timeout);
	if (ret == -ETIME)
		return -EBUSY;
	return ret ? -EINTR : 0;
}

/* ---- giving way ---- */

static int hawk_ref_cmp(const void *a, const void *b)
{
	u32 x = ((const struct hawk_ref *)a)->block, y = ((const struct hawk_ref *)b)->block;

	return x < y ? -1 : x > y;
}

/* What to look for among the exports of a space. */
struct hawk_export_filter {
	const struct hawk_file *owner;	/* of this file */
	const struct hawk_ref *ref;	/* with this block */
	u32 tier;			/* in this tier, or HAWK_TIER_ANY */
	bool all;			/* also those that are not revocable */
};

static bool hawk_export_match(const struct hawk_dmabuf *x, const struct hawk_export_filter *want)
{
	if (!x->revocable && !want->all)
		return false;
	if (want->owner && x->owner != want->owner)
		return false;
	if (want->tier != HAWK_TIER_ANY && x->tier != want->tier)
		return false;
	return !want->ref ||
	       bsearch(want->ref, x->refs, x->n, sizeof(*x->refs), hawk_ref_cmp);
}

/* The next export from @id on, referenced, or NULL; @id is where to go on. */
static struct hawk_dmabuf *hawk_export_next(struct hawk_as *as, unsigned long *id,
					    const struct hawk_export_filter *want)
{
	struct hawk_dmabuf *x, *found = NULL;

	xa_lock(&as->exports);
	xa_for_each_start(&as->exports, *id, x, *id) {
		if (hawk_export_match(x, want)) {
			kref_get(&x->ref);
			found = x;
			break;
		}
	}
	xa_unlock(&as->exports);
	(*id)++;
	return found;
}

/**
 * hawk_export_yield() - revoke the exports of a block
 * @as: the space
 * @lid: a LID of the block
 * @deadline_ns: how long to wait for importers, CLOCK_MONOTONIC nanoseconds
 *
 * Return: whether one has ended: the caller may try again.
 */
bool hawk_export_yield(struct hawk_as *as, u64 lid, u64 deadline_ns)
{
	struct hawk_export_filter want = { .tier = HAWK_TIER_ANY };
	unsigned long id = 0;
	struct hawk_dmabuf *x;
	struct hawk_ref ref;
	bool any = false;
	u64 vt;

	if (xa_empty(&as->exports) || hawk_block_ref(as->space, lid, &vt, &ref))
		return false;
	want.ref = &ref;
	while ((x = hawk_export_next(as, &id, &want))) {
		hawk_dmabuf_revoke(x);
		any |= !hawk_dmabuf_wait(x, deadline_ns);
		hawk_dmabuf_put(x);
	}
	return any;
}

/**
 * hawk_export_relieve() - there is no room: revoke the oldest export that is not yet
 * @f: file of a space; if it may not write, only exports of its own give way: who may
 *	only read does not take from others what they made
 * @deadline_ns: how long to wait for importers, CLOCK_MONOTONIC nanoseconds
 *
 * Return: whether one has ended: the caller may try again.
 */
bool hawk_export_relieve(struct hawk_file *f, u64 deadline_ns)
{
	struct hawk_export_filter want = {
		.tier = HAWK_TIER_ANY, .owner = f->writable ? NULL : f,
	};
	struct hawk_as *as = f->as;
	unsigned long id = 0;
	struct hawk_dmabuf *x;
	bool first = false;
	int ret = -EBUSY;

	if (xa_empty(&as->exports))
		return false;
	/* One more at a time: importers may be slow, which is no reason to end them all. */
	while (!first && (x = hawk_export_next(as, &id, &want))) {
		first = hawk_dmabuf_revoke(x);
		if (first)
			ret = hawk_dmabuf_wait(x, deadline_ns);
		hawk_dmabuf_put(x);
	}
	/* All are revoked: some of them may be just ending. */
	for (id = 0; !first && ret == -EBUSY && (x = hawk_export_next(as, &id, &want));) {
		ret = hawk_dmabuf_wait(x, deadline_ns);
		hawk_dmabuf_put(x);
	}
	return !ret;
}

/* @deadline_ns: how long to wait for importers; in the past: not at all */
static void hawk_export_revoke_all(struct hawk_as *as, const struct hawk_export_filter *want,
				   u64 deadline_ns)
{
	unsigned long id = 0;
	struct hawk_dmabuf *x;

	while ((x = hawk_export_next(as, &id, want))) {
		hawk_dmabuf_revoke(x);
		if (deadline_ns > ktime_get_ns())
			hawk_dmabuf_wait(x, deadline_ns);
		hawk_dmabuf_put(x);
	}
}

/**
 * hawk_export_revoke_mem() - revoke the exports of a tier
 * @m: its memory
 * @all: also those that are not revocable: the memory is lost
 * @deadline_ns: how long to wait for importers, CLOCK_MONOTONIC nanoseconds; in the
 *	past: not at all
 *
 * Context: may sleep and end a space: hawk_device.lock is not held.
 */
void hawk_export_revoke_mem(struct hawk_mem *m, bool all, u64 deadline_ns)
{
	struct hawk_export_filter want = { .tier = m->id, .all = all };
	struct hawk_as *as = NULL;

	while ((as = hawk_as_next(as)))
		if (as->mem[m->id] == m)
			hawk_export_revoke_all(as, &want, deadline_ns);
}

/**
 * hawk_export_lasts() - has the space an export that does not come to its end just now?
 * @as: the space
 *
 * Context: process; hawk_device.spaces_lock may be held.
 */
bool hawk_export_lasts(struct hawk_as *as)
{
	struct hawk_dmabuf *x;
	unsigned long id;
	bool lasts = false;

	xa_lock(&as->exports);
	xa_for_each(&as->exports, id, x) {
		lasts = !READ_ONCE(x->ending);
		if (lasts)
			break;
	}
	xa_unlock(&as->exports);
	return lasts;
}

/* The file is closed: its revocable exports end, the others are nobody's. */
void hawk_export_close(struct hawk_file *f)
{
	struct hawk_export_filter want = { .tier = HAWK_TIER_ANY, .owner = f };
	struct hawk_as *as = f->as;
	struct hawk_dmabuf *x;
	unsigned long id;

	if (xa_empty(&as->exports))
		return;
	hawk_export_revoke_all(as, &want, 0);
	xa_lock(&as->exports);
	xa_for_each(&as->exports, id, x)
		if (x->owner == f)
			x->owner = NULL;
	xa_unlock(&as->exports);
}

int hawk_ioc_export_revoke(struct hawk_file *f, void *arg)
{
	const struct hawk_export_revoke *rev = arg;
	struct hawk_as *as = f->as;
	struct hawk_dmabuf *x;
	int ret = -ENOENT;

	if (rev->deadline_ns > KTIME_MAX)
		return -EINVAL;
	if (!rev->export_id || rev->export_id > U32_MAX)
		return -ENOENT;
	xa_lock(&as->exports);
	x = xa_load(&as->exports, rev->export_id);
	if (x) {
		ret = x->owner != f && !f->writable ? -EACCES : x->revocable ? 0 : -EOPNOTSUPP;
		if (!ret)
			kref_get(&x->ref);
	}
	xa_unlock(&as->exports);
	if (ret)
		return ret;
	hawk_dmabuf_revoke(x);
	ret = hawk_dmabuf_wait(x, rev->deadline_ns);
	hawk_dmabuf_put(x);
	return ret;
}

/* ---- the start ---- */

/* It never became a dma-buf. */
static void hawk_dmabuf_discard(struct hawk_dmabuf *x)
{
	hawk_dmabuf_end(x);
	hawk_dmabuf_put(x);
}

/* Charged, and with nothing pinned yet; NULL: no memory, or RLIMIT_MEMLOCK. */
static struct hawk_dmabuf *hawk_dmabuf_alloc(struct hawk_file *f, const struct hawk_export *arg)
{
	struct hawk_dmabuf *x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);

	if (!x)
		return NULL;
	kref_init(&x->ref);
	dma_resv_init(&x->resv);
	spin_lock_init(&x->lock);
	init_waitqueue_head(&x->wait);
	INIT_WORK(&x->end_work, hawk_dmabuf_end_work);
	INIT_LIST_HEAD(&x->maps);
	x->as = hawk_as_get(f->as);
	x->owner = f;
	x->revocable = arg->flags & HAWK_EXPORT_REVOCABLE;
	x->read_only = !f->writable || (arg->flags & HAWK_EXPORT_READ_ONLY);
	x->tier = HAWK_TIER_ANY;
	x->bytes = (u64)arg->count * f->as->info.block_bytes;
	if (!f->memlock_exempt) {
		if (hawk_memlock_charge(f, arg->count, hawk_memlock_limit()))
			goto err_put;
		x->user = get_uid(f->user);
	}
	x->refs = kvmalloc_array(arg->count, sizeof(*x->refs),
				 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	x->pages = kvmalloc_array(x->bytes >> PAGE_SHIFT, sizeof(*x->pages),
				  GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (x->refs && x->pages)
		return x;

err_put:
	hawk_dmabuf_discard(x);
	return NULL;
}

static int hawk_export_item_check(const struct hawk_item *it)
{
	if (it->flags)
		return -EOPNOTSUPP;
	return it->arg || memchr_inv(it->key, 0, HAWK_KEY_BYTES) ? -EINVAL : 0;
}

/* The pages of a pinned block; all blocks are in the tier of the first. */
static int hawk_export_add_pages(struct hawk_dmabuf *x, u64 vt)
{
	struct hawk_as *as = x->as;
	u32 bytes = as->info.block_bytes, tier = HAWK_VT_TIER(vt), i;
	struct hawk_mem *m = as->mem[tier];
	u64 off;

	if (x->tier == HAWK_TIER_ANY)
		x->tier = tier;
	if (tier != x->tier)
		return -EXDEV;
	if (!m->ops->page)
		return -EOPNOTSUPP;
	off = hawk_frame_off(as->space, tier, HAWK_VT_FRAME(vt));
	for (i = 0; i < bytes; i += PAGE_SIZE) {
		struct page *page = m->ops->page(m, off + i);

		if (!page)
			return -ENOMEM;
		get_page(page);
		x->pages[x->npages++] = page;
	}
	return 0;
}

static int hawk_export_item(struct hawk_dmabuf *x, struct hawk_file *f, struct hawk_item *it)
{
	int ret = hawk_export_item_check(it);

	if (ret)
		return ret;
	ret = hawk_pin_extra(f, it->lid, ktime_get_ns(), &it->vt, &x->refs[x->n]);
	if (ret)
		return ret;
	x->n++;
	it->lid = hawk_lid_block(it->lid, x->as->info.block_tokens);
	return hawk_export_add_pages(x, it->vt);
}

/* Pins all blocks; the items have their status in any case. */
static int hawk_export_items(struct hawk_dmabuf *x, struct hawk_file *f,
			     const struct hawk_export *arg)
{
	size_t bytes = array_size(arg->count, sizeof(struct hawk_item));
	struct hawk_item *items = vmemdup_user(u64_to_user_ptr(arg->items), bytes);
	int ret = 0;
	u32 i;

	if (IS_ERR(items))
		return PTR_ERR(items);
	for (i = 0; i < arg->count; i++) {
		if (ret) {
			items[i].status = -ECANCELED;
			continue;
		}
		ret = fatal_signal_pending(current) ? -EINTR : hawk_export_item(x, f, &items[i]);
		items[i].status = ret;
		cond_resched();
	}
	if (copy_to_user(u64_to_user_ptr(arg->items), items, bytes) && !ret)
		ret = -EFAULT;
	kvfree(items);
	sort(x->refs, x->n, sizeof(*x->refs), hawk_ref_cmp, NULL);
	return ret;
}

/* The dma-buf and its place in the table; after this the dma-buf has @x. */
static int hawk_export_publish(struct hawk_dmabuf *x)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct hawk_as *as = x->as;
	struct dma_buf *buf;
	u32 id;
	int ret;

	info.exp_name = "hawk";
	info.ops = &hawk_dmabuf_ops;
	info.size = x->bytes;
	info.flags = x->read_only ? O_RDONLY : O_RDWR;
	info.resv = &x->resv;
	info.priv = x;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		hawk_dmabuf_discard(x);
		return PTR_ERR(buf);
	}
	x->buf = buf;
	x->inode = file_inode(buf->file);
	ihold(x->inode);
	/* Other threads may find it from here on. */
	xa_lock(&as->exports);
	ret = __xa_alloc_cyclic(&as->exports, &id, x, XA_LIMIT(1, INT_MAX), &as->export_next,
				GFP_KERNEL);
	if (ret >= 0) {
		x->id = id;
		atomic64_add(x->bytes, &as->mem[x->tier]->exported_bytes);
	}
	xa_unlock(&as->exports);
	if (ret < 0) {
		dma_buf_put(buf);
		return ret;
	}
	return 0;
}

/**
 * hawk_ioc_export() - HAWK_IOC_EXPORT, without the last step
 * @f: caller's file, has a space
 * @data: struct hawk_export_call; @buf is for hawk_ioc_export_end()
 *
 * Return: 0 or what &struct hawk_export tells.
 */
int hawk_ioc_export(struct hawk_file *f, void *data)
{
	struct hawk_export_call *call = data;
	struct hawk_export *arg = &call->arg;
	struct hawk_dmabuf *x;
	int ret, fd;

	if (arg->reserved)
		return -EOPNOTSUPP;
	if (!arg->count)
		return -EINVAL;
	if (arg->count > HAWK_BATCH_MAX)
		return -E2BIG;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	x = hawk_dmabuf_alloc(f, arg);
	ret = x ? 0 : -ENOMEM;
	if (ret)
		goto err_put_fd;
	ret = hawk_export_items(x, f, arg);
	if (ret) {
		hawk_dmabuf_discard(x);
		goto err_put_fd;
	}
	arg->tier = x->tier;
	arg->bytes = x->bytes;
	ret = hawk_export_publish(x);
	if (ret)
		goto err_put_fd;
	call->buf = x->buf;
	arg->export_id = x->id;
	arg->fd = fd;
	return 0;

err_put_fd:
	put_unused_fd(fd);
	return ret;
}

/* The answer has been copied to the caller, or has not: then nothing was exported. */
void hawk_ioc_export_end(void *data, bool copied)
{
	struct hawk_export_call *call = data;

	if (copied) {
		fd_install(call->arg.fd, call->buf->file);
		return;
	}
	put_unused_fd(call->arg.fd);
	dma_buf_put(call->buf);
}

/**
 * hawk_export_frames() - blocks by their frames, as a revocable dma-buf
 * @f: a file of the space; it has pinned the blocks
 * @tier: tier id
 * @frame: first frame number in the space
 * @n: frames, 1..HAWK_BATCH_MAX
 * @read_only: importers may only read
 *
 * Return: the dma-buf or an error, see hawk_window_export().
 */
struct dma_buf *hawk_export_frames(struct hawk_file *f, u32 tier, u32 frame, u32 n,
				   bool read_only)
{
	struct hawk_export arg = {
		.flags = HAWK_EXPORT_REVOCABLE | (read_only ? HAWK_EXPORT_READ_ONLY : 0),
		.count = n,
	};
	struct hawk_dmabuf *x = hawk_dmabuf_alloc(f, &arg);
	int ret = 0;
	u64 vt;

	if (!x)
		return ERR_PTR(-ENOMEM);
	for (; !ret && n; n--, frame++) {
		ret = fatal_signal_pending(current) ? -EINTR :
		      hawk_pin_frame(f, tier, frame, &vt, &x->refs[x->n]);
		if (ret)
			break;
		x->n++;
		ret = hawk_export_add_pages(x, vt);
		cond_resched();
	}
	if (ret) {
		hawk_dmabuf_discard(x);
		return ERR_PTR(ret);
	}
	sort(x->refs, x->n, sizeof(*x->refs), hawk_ref_cmp, NULL);
	ret = hawk_export_publish(x);
	return ret ? ERR_PTR(ret) : x->buf;
}

int hawk_ioc_frame_info(struct hawk_file *f, void *arg)
{
	struct hawk_frame_info *info = arg;
	struct hawk_as *as = f->as;
	u32 per_chunk = HAWK_CHUNK_BYTES / as->info.block_bytes;
	u64 off;

	if (info->reserved)
		return -EOPNOTSUPP;
	off = hawk_frame_off(as->space, info->tier, info->frame);
	if (off == ~0ull)
		return -ENOENT;
	info->offset = off;
	info->frames = per_chunk - info->frame % per_chunk;
	return 0;
}

int hawk_export_init(void)
{
	hawk_dev.export_wq = alloc_workqueue("hawk-export", WQ_UNBOUND, 0);
	return hawk_dev.export_wq ? 0 : -ENOMEM;
}

void hawk_export_exit(void)
{
	destroy_workqueue(hawk_dev.export_wq);
}

HAWK_IMPORT_NS(DMA_BUF);
