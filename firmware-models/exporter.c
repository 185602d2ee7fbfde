// SPDX-License-Identifier: GPL-2.0
/*
 * exporter.c - hawk_exporter.ko: a driver whose memory others import
 *
 * Stands in for a GPU driver: it moves its buffers while others have them, and takes
 * them away.  Memory that a buffer has left is filled with a pattern, as if it were
 * another's by now: who still reads it reads that, and what is written there is lost.
 *
 * Locks: hawk_exp_file.lock > dma_resv > hawk_exp.lock.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/highmem.h>
#include <linux/iosys-map.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../kmod/compat.h"
#include "device.h"

/**
 * struct hawk_exp_pages - where a buffer is, or was
 * @ref: the buffer that is there; a kernel mapping
 * @left: the buffer is not there any more
 * @n: pages
 * @page: the pages
 */
struct hawk_exp_pages {
	struct kref ref;
	bool left;
	u32 n;
	struct page *page[];
};

/**
 * struct hawk_exp - a buffer; it ends with its dma-buf
 * @lock: guards @pages and @mapped
 * @pages: where it is
 * @mapped: what the kernel mapping leads to, or NULL; referenced
 * @revoked: taken away; guarded by dma_resv
 * @pins: importers that want it to stay; guarded by dma_resv
 * @moves: how often it was moved; guarded by dma_resv
 * @fail: errno that the next CPU access fails with, or 0; HAWK_EXP_FAIL_ALL; guarded by
 *	dma_resv
 * @fails: CPU accesses that failed; guarded by dma_resv
 */
struct hawk_exp {
	struct mutex lock;
	struct hawk_exp_pages *pages;
	struct hawk_exp_pages *mapped;
	bool revoked;
	u32 pins;
	u32 moves;
	int fail;
	u32 fails;
};

/**
 * struct hawk_exp_file - an open file
 * @lock: serialises calls; guards @buf
 * @buf: its dma-buf, referenced, or NULL
 */
struct hawk_exp_file {
	struct mutex lock;
	struct dma_buf *buf;
};

static ulong spoilt;
module_param(spoilt, ulong, 0444);
MODULE_PARM_DESC(spoilt, "pages that were written to when a buffer had left them");

/* ---- pages ---- */

static bool hawk_exp_page_is(struct page *page, u8 byte)
{
	void *p = kmap_local_page(page);
	bool ret = !memchr_inv(p, byte, PAGE_SIZE);

	kunmap_local(p);
	return ret;
}

static void hawk_exp_pages_free(struct kref *ref)
{
	struct hawk_exp_pages *p = container_of(ref, struct hawk_exp_pages, ref);
	u32 i;

	for (i = 0; i < p->n; i++) {
		if (p->left && !hawk_exp_page_is(p->page[i], HAWK_EXP_OTHER))
			WRITE_ONCE(spoilt, spoilt + 1);
		__free_page(p->page[i]);
	}
	kvfree(p);
}

static void hawk_exp_pages_put(struct hawk_exp_pages *p)
{
	kref_put(&p->ref, hawk_exp_pages_free);
}

static struct hawk_exp_pages *hawk_exp_pages_alloc(u32 n)
{
	struct hawk_exp_pages *p = kvzalloc(struct_size(p, page, n), GFP_KERNEL);

	if (!p)
		return NULL;
	kref_init(&p->ref);
	for (; p->n < n; p->n++) {
		p->page[p->n] = alloc_page(GFP_KERNEL | __GFP_NORETRY);
		if (!p->page[p->n]) {
			hawk_exp_pages_put(p);
			return NULL;
		}
	}
	return p;
}

static void hawk_exp_pages_fill(struct hawk_exp_pages *p, u8 byte)
{
	u32 i;

	for (i = 0; i < p->n; i++) {
		void *to = kmap_local_page(p->page[i]);

		memset(to, byte, PAGE_SIZE);
		kunmap_local(to);
	}
}

/* They are another's now. */
static void hawk_exp_pages_leave(struct hawk_exp_pages *p)
{
	hawk_exp_pages_fill(p, HAWK_EXP_OTHER);
	p->left = true;
}

/* ---- what importers do ---- */

static int hawk_exp_attach(struct dma_buf *buf, struct dma_buf_attachment *at)
{
	struct hawk_exp *exp = buf->priv;

	return READ_ONCE(exp->revoked) ? -ENODEV : 0;
}

static int hawk_exp_pin(struct dma_buf_attachment *at)
{
	struct hawk_exp *exp = at->dmabuf->priv;

	dma_resv_assert_held(at->dmabuf->resv);
	if (exp->revoked)
		return -ENODEV;
	exp->pins++;
	return 0;
}

static void hawk_exp_unpin(struct dma_buf_attachment *at)
{
	struct hawk_exp *exp = at->dmabuf->priv;

	dma_resv_assert_held(at->dmabuf->resv);
	exp->pins--;
}

static struct sg_table *hawk_exp_map(struct dma_buf_attachment *at, enum dma_data_direction dir)
{
	struct hawk_exp *exp = at->dmabuf->priv;
	struct sg_table *sgt;
	int ret = -ENODEV;

	if (READ_ONCE(exp->revoked))
		return ERR_PTR(ret);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&exp->lock);
	ret = sg_alloc_table_from_pages(sgt, exp->pages->page, exp->pages->n, 0,
					(u64)exp->pages->n << PAGE_SHIFT, GFP_KERNEL);
	mutex_unlock(&exp->lock);
	if (ret)
		goto err_free;
	ret = dma_map_sgtable(at->dev, sgt, dir, 0);
	if (ret)
		goto err_free_table;
	return sgt;

err_free_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void hawk_exp_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			   enum dma_data_direction dir)
{
	dma_unmap_sgtable(at->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

/* The failure that this access is to have, negative, or 0. */
static int hawk_exp_fail_take(struct hawk_exp *exp)
{
	int fail = exp->fail;

	if (!(fail & HAWK_EXP_FAIL_ALL))
		exp->fail = 0;
	return -(fail & (HAWK_EXP_FAIL_ALL - 1));
}

static int hawk_exp_begin_cpu_access(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct hawk_exp *exp = buf->priv;
	int ret;

	dma_resv_lock(buf->resv, NULL);
	ret = exp->revoked ? -ENODEV : hawk_exp_fail_take(exp);
	exp->fails += !!ret;
	dma_resv_unlock(buf->resv);
	return ret;
}

/*
 * Does not fail when the buffer is gone: the kernel takes that for a bug.  What is
 * mapped then is somebody else's bytes, which nobody may look at.  Nor does it for the
 * one allocation that a test makes fail.
 */
static int hawk_exp_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct hawk_exp *exp = buf->priv;
	void *p = NULL;
	int tries;

	mutex_lock(&exp->lock);
	for (tries = 0; !p && tries < 2; tries++)
		p = vmap(exp->pages->page, exp->pages->n, VM_MAP, PAGE_KERNEL);
	if (p) {
		kref_get(&exp->pages->ref);
		exp->mapped = exp->pages;
		iosys_map_set_vaddr(map, p);
	}
	mutex_unlock(&exp->lock);
	return p ? 0 : -ENOMEM;
}

static void hawk_exp_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct hawk_exp *exp = buf->priv;

	vunmap(map->vaddr);
	mutex_lock(&exp->lock);
	hawk_exp_pages_put(exp->mapped);
	exp->mapped = NULL;
	mutex_unlock(&exp->lock);
}

static void hawk_exp_release(struct dma_buf *buf)
{
	struct hawk_exp *exp = buf->priv;

	hawk_exp_pages_put(exp->pages);
	mutex_destroy(&exp->lock);
	kfree(exp);
}

#define HAWK_EXP_OPS						\
	.attach = hawk_exp_attach,				\
	.map_dma_buf = hawk_exp_map,				\
	.unmap_dma_buf = hawk_exp_unmap,			\
	.begin_cpu_access = hawk_exp_begin_cpu_access,		\
	.release = hawk_exp_release

static const struct dma_buf_ops hawk_exp_ops = {
	HAWK_EXP_OPS,
	.pin = hawk_exp_pin,
	.unpin = hawk_exp_unpin,
	.vmap = hawk_exp_vmap,
	.vunmap = hawk_exp_vunmap,
};

/* For the device only. */
static const struct dma_buf_ops hawk_exp_no_cpu_ops = {
	HAWK_EXP_OPS,
	.pin = hawk_exp_pin,
	.unpin = hawk_exp_unpin,
};

/* ---- calls ---- */

static struct dma_buf *hawk_exp_export(struct hawk_exp *exp, bool no_cpu)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	info.exp_name = "hawk-exporter";
	info.ops = no_cpu ? &hawk_exp_no_cpu_ops : &hawk_exp_ops;
	info.size = (u64)exp->pages->n << PAGE_SHIFT;
	info.flags = O_RDWR;
	info.priv = exp;
	return dma_buf_export(&info);
}

static struct dma_buf *hawk_exp_create(const struct hawk_exp_make *arg)
{
	struct hawk_exp *exp = kzalloc(sizeof(*exp), GFP_KERNEL);
	struct dma_buf *buf = ERR_PTR(-ENOMEM);

	if (!exp)
		return buf;
	mutex_init(&exp->lock);
	exp->pages = hawk_exp_pages_alloc(arg->mib << (20 - PAGE_SHIFT));
	if (!exp->pages)
		goto err_free;
	hawk_exp_pages_fill(exp->pages, HAWK_EXP_FILL);
	buf = hawk_exp_export(exp, arg->flags & HAWK_EXP_NO_CPU);
	if (!IS_ERR(buf))
		return buf;
	hawk_exp_pages_put(exp->pages);
err_free:
	kfree(exp);
	return buf;
}

static int hawk_exp_make(struct hawk_exp_file *f, void __user *uarg)
{
	struct hawk_exp_make arg;
	struct dma_buf *buf;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (!arg.mib || arg.mib > HAWK_EXP_MIB_MAX || arg.flags & ~HAWK_EXP_NO_CPU)
		return -EINVAL;
	buf = hawk_exp_create(&arg);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	f->buf = buf;
	get_dma_buf(buf);	/* the descriptor's; the file has the other */
	arg.fd = dma_buf_fd(buf, O_CLOEXEC);
	if (arg.fd < 0) {
		dma_buf_put(buf);
		return arg.fd;
	}
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

/* The bytes go to other pages; where they were is another's from now on. */
static int hawk_exp_move(struct dma_buf *buf)
{
	struct hawk_exp *exp = buf->priv;
	struct hawk_exp_pages *old, *new = hawk_exp_pages_alloc(buf->size >> PAGE_SHIFT);
	int ret;
	u32 i;

	if (!new)
		return -ENOMEM;
	dma_resv_lock(buf->resv, NULL);
	ret = exp->revoked ? -ENODEV : exp->pins ? -EBUSY : 0;
	old = exp->pages;
	if (ret) {
		dma_resv_unlock(buf->resv);
		hawk_exp_pages_put(new);
		return ret;
	}
	for (i = 0; i < new->n; i++)
		copy_highpage(new->page[i], old->page[i]);
	mutex_lock(&exp->lock);
	exp->pages = new;
	mutex_unlock(&exp->lock);
	dma_buf_invalidate_mappings(buf);
	hawk_exp_pages_leave(old);
	exp->moves++;
	dma_resv_unlock(buf->resv);
	hawk_exp_pages_put(old);
	return 0;
}

static void hawk_exp_revoke(struct dma_buf *buf)
{
	struct hawk_exp *exp = buf->priv;

	dma_resv_lock(buf->resv, NULL);
	WRITE_ONCE(exp->revoked, true);
	dma_buf_invalidate_mappings(buf);
	hawk_exp_pages_leave(exp->pages);
	dma_resv_unlock(buf->resv);
}

/* @fail: errno, maybe with HAWK_EXP_FAIL_ALL; 0: none any more */
static int hawk_exp_fail(struct dma_buf *buf, ulong fail)
{
	struct hawk_exp *exp = buf->priv;

	if ((fail & ~(ulong)HAWK_EXP_FAIL_ALL) > MAX_ERRNO)
		return -EINVAL;
	dma_resv_lock(buf->resv, NULL);
	exp->fail = fail;
	dma_resv_unlock(buf->resv);
	return 0;
}

static void hawk_exp_copy(const struct hawk_exp_pages *p, u64 at, void *buf, u32 len, bool write)
{
	while (len) {
		u32 off = at & ~PAGE_MASK, n = min_t(u32, len, PAGE_SIZE - off);
		void *page = kmap_local_page(p->page[at >> PAGE_SHIFT]);

		if (write)
			memcpy(page + off, buf, n);
		else
			memcpy(buf, page + off, n);
		kunmap_local(page);
		at += n;
		buf += n;
		len -= n;
	}
}

/* What the device does, which knows where its memory is. */
static int hawk_exp_rw(void *who, const struct hawk_imp_rw *rw, void *buf)
{
	struct dma_buf *dmabuf = who;
	struct hawk_exp *exp = dmabuf->priv;
	int ret;

	if (rw->offset > dmabuf->size || rw->len > dmabuf->size - rw->offset)
		return -EINVAL;
	dma_resv_lock(dmabuf->resv, NULL);
	ret = exp->revoked ? -ENODEV : 0;
	if (!ret)
		hawk_exp_copy(exp->pages, rw->offset, buf, rw->len,
			      rw->flags & HAWK_IMP_RW_WRITE);
	dma_resv_unlock(dmabuf->resv);
	return ret;
}

static int hawk_exp_info(struct dma_buf *buf, void __user *uarg)
{
	struct hawk_exp *exp = buf->priv;
	struct hawk_exp_info info = { 0 };
	struct dma_buf_attachment *at;

	dma_resv_lock(buf->resv, NULL);
	list_for_each_entry(at, &buf->attachments, node)
		info.attachments++;
	info.moves = exp->moves;
	info.fails = exp->fails;
	mutex_lock(&exp->lock);
	info.mapped = exp->mapped != NULL;
	mutex_unlock(&exp->lock);
	dma_resv_unlock(buf->resv);
	return copy_to_user(uarg, &info, sizeof(info)) ? -EFAULT : 0;
}

/* ---- the file ---- */

static int hawk_exp_open(struct inode *inode, struct file *file)
{
	struct hawk_exp_file *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	mutex_init(&f->lock);
	file->private_data = f;
	return nonseekable_open(inode, file);
}

static int hawk_exp_close(struct inode *inode, struct file *file)
{
	struct hawk_exp_file *f = file->private_data;

	if (f->buf)
		dma_buf_put(f->buf);
	kfree(f);
	return 0;
}

/* @f->lock is held; calls but MAKE need a buffer. */
static int hawk_exp_call(struct hawk_exp_file *f, unsigned int cmd, unsigned long arg)
{
	void __user *uarg = (void __user *)arg;

	if (cmd == HAWK_EXP_IOC_MAKE)
		return f->buf ? -EBUSY : hawk_exp_make(f, uarg);
	if (!f->buf)
		return -ENXIO;
	switch (cmd) {
	case HAWK_EXP_IOC_MOVE:
		return hawk_exp_move(f->buf);
	case HAWK_EXP_IOC_REVOKE:
		hawk_exp_revoke(f->buf);
		return 0;
	case HAWK_EXP_IOC_FAIL:
		return hawk_exp_fail(f->buf, arg);
	case HAWK_EXP_IOC_RW:
		return hawk_model_rw(uarg, HAWK_IMP_RW_WRITE, hawk_exp_rw, f->buf);
	case HAWK_EXP_IOC_INFO:
		return hawk_exp_info(f->buf, uarg);
	default:
		return -ENOTTY;
	}
}

static long hawk_exp_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct hawk_exp_file *f = file->private_data;
	int ret;

	mutex_lock(&f->lock);
	ret = hawk_exp_call(f, cmd, arg);
	mutex_unlock(&f->lock);
	return ret;
}

static const struct file_operations hawk_exp_fops = {
	.owner = THIS_MODULE,
	.open = hawk_exp_open,
	.release = hawk_exp_close,
	.unlocked_ioctl = hawk_exp_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice hawk_exp_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "hawk-exporter",
	.mode = 0600,
	.fops = &hawk_exp_fops,
};

module_misc_device(hawk_exp_misc);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("Lab model: a driver whose memory others import");
MODULE_LICENSE("GPL");
MODULE_INFO(test, "Y");
HAWK_IMPORT_NS(DMA_BUF);
