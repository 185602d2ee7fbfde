// SPDX-License-Identifier: GPL-2.0
/*
 * importer.c - hawk_importer.ko: a driver that uses other drivers' dma-bufs
 *
 * Stands in for a GPU or NIC driver.  It reaches the bytes by the DMA addresses of
 * its sg table, as a device would, or by a kernel mapping; it never looks at the
 * pages of an sg table, which are the exporter's.
 *
 * Locks: hawk_imp.lock > dma_resv.  move_notify comes with dma_resv held, so
 * @sgt is guarded by that alone once attached.
 */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../kmod/compat.h"
#include "device.h"

/**
 * struct hawk_imp - an open file: at most one attachment
 * @lock: serialises calls; guards all but @sgt and @notifies
 * @buf: the dma-buf, NULL if none is attached
 * @at: the attachment
 * @sgt: its mapping or NULL
 * @dir: of @sgt
 * @flags: HAWK_IMP_*
 * @pins: pins taken
 * @notifies: move_notify calls
 * @fence: of the DMA that it says to do, or NULL
 */
struct hawk_imp {
	struct mutex lock;
	struct dma_buf *buf;
	struct dma_buf_attachment *at;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	u32 flags;
	u32 pins;
	atomic_t notifies;
	struct dma_fence *fence;
};

static struct platform_device *hawk_imp_device;

/* ---- a fence that ends when the test says so ---- */

static DEFINE_SPINLOCK(hawk_imp_fence_lock);	/* of all our fences, leaf */

static const char *hawk_imp_fence_name(struct dma_fence *fence)
{
	return "hawk-importer";
}

static const struct dma_fence_ops hawk_imp_fence_ops = {
	.get_driver_name = hawk_imp_fence_name,
	.get_timeline_name = hawk_imp_fence_name,
};

static void hawk_imp_fence_end(struct hawk_imp *imp)
{
	if (!imp->fence)
		return;
	dma_fence_signal(imp->fence);
	dma_fence_put(imp->fence);
	imp->fence = NULL;
}

static int hawk_imp_fence_start(struct hawk_imp *imp)
{
	struct dma_fence *fence;
	int ret;

	if (imp->fence)
		return -EBUSY;
	fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	if (!fence)
		return -ENOMEM;
	dma_fence_init(fence, &hawk_imp_fence_ops, &hawk_imp_fence_lock,
		       dma_fence_context_alloc(1), 1);
	dma_resv_lock(imp->buf->resv, NULL);
	ret = dma_resv_reserve_fences(imp->buf->resv, 1);
	if (!ret)
		dma_resv_add_fence(imp->buf->resv, fence, DMA_RESV_USAGE_BOOKKEEP);
	dma_resv_unlock(imp->buf->resv);
	imp->fence = fence;
	if (ret)
		hawk_imp_fence_end(imp);
	return ret;
}

/* ---- mapping ---- */

static void hawk_imp_move_notify(struct dma_buf_attachment *at)
{
	struct hawk_imp *imp = at->importer_priv;

	dma_resv_assert_held(at->dmabuf->resv);
	atomic_inc(&imp->notifies);
	if (!imp->sgt || (imp->flags & HAWK_IMP_HOLD))
		return;
	dma_buf_unmap_attachment(at, imp->sgt, imp->dir);
	imp->sgt = NULL;
}

static const struct dma_buf_attach_ops hawk_imp_attach_ops = {
	.HAWK_MOVE_NOTIFY = hawk_imp_move_notify,
};

static int hawk_imp_map(struct hawk_imp *imp, unsigned long arg)
{
	enum dma_data_direction dir = arg == HAWK_IMP_READ ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
	struct sg_table *sgt;
	int ret = 0;

	if (arg > HAWK_IMP_BOTH)
		return -EINVAL;
	dma_resv_lock(imp->buf->resv, NULL);
	if (imp->sgt) {
		ret = -EBUSY;
		goto out_unlock;
	}
	sgt = dma_buf_map_attachment(imp->at, dir);
	if (IS_ERR(sgt)) {
		ret = PTR_ERR(sgt);
		goto out_unlock;
	}
	imp->sgt = sgt;
	imp->dir = dir;
out_unlock:
	dma_resv_unlock(imp->buf->resv);
	return ret;
}

static int hawk_imp_unmap(struct hawk_imp *imp)
{
	int ret = -EINVAL;

	dma_resv_lock(imp->buf->resv, NULL);
	if (imp->sgt) {
		dma_buf_unmap_attachment(imp->at, imp->sgt, imp->dir);
		imp->sgt = NULL;
		ret = 0;
	}
	dma_resv_unlock(imp->buf->resv);
	return ret;
}

/* Only an importer that takes move_notify can pin: another is pinned all the time. */
static int hawk_imp_pin(struct hawk_imp *imp)
{
	int ret;

	if (!(imp->flags & HAWK_IMP_DYNAMIC))
		return -EINVAL;
	dma_resv_lock(imp->buf->resv, NULL);
	ret = dma_buf_pin(imp->at);
	dma_resv_unlock(imp->buf->resv);
	imp->pins += !ret;
	return ret;
}

static int hawk_imp_unpin(struct hawk_imp *imp)
{
	if (!imp->pins)
		return -EINVAL;
	dma_resv_lock(imp->buf->resv, NULL);
	dma_buf_unpin(imp->at);
	dma_resv_unlock(imp->buf->resv);
	imp->pins--;
	return 0;
}

static int hawk_imp_attach(struct hawk_imp *imp, void __user *uarg)
{
	struct hawk_imp_attach arg;
	struct dma_buf_attachment *at;
	struct dma_buf *buf;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.flags & ~(HAWK_IMP_DYNAMIC | HAWK_IMP_HOLD))
		return -EINVAL;
	buf = dma_buf_get(arg.fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	imp->flags = arg.flags;
	at = dma_buf_dynamic_attach(buf, &hawk_imp_device->dev, arg.flags & HAWK_IMP_DYNAMIC ?
				    &hawk_imp_attach_ops : NULL, imp);
	if (IS_ERR(at)) {
		dma_buf_put(buf);
		return PTR_ERR(at);
	}
	imp->buf = buf;
	imp->at = at;
	return 0;
}

static void hawk_imp_detach(struct hawk_imp *imp)
{
	if (!imp->buf)
		return;
	hawk_imp_unmap(imp);
	while (imp->pins)
		hawk_imp_unpin(imp);
	hawk_imp_fence_end(imp);
	dma_buf_detach(imp->buf, imp->at);
	dma_buf_put(imp->buf);
	imp->buf = NULL;
	imp->at = NULL;
}

/* ---- bytes ---- */

static int hawk_imp_by_dma(struct hawk_imp *imp, const struct hawk_imp_rw *rw, void *buf)
{
	bool write = rw->flags & HAWK_IMP_RW_WRITE;
	int ret = -ENXIO;

	dma_resv_lock(imp->buf->resv, NULL);
	if (imp->sgt)
		ret = write && imp->dir == DMA_TO_DEVICE ? -EACCES :
		      hawk_model_dma(imp->at->dev, imp->sgt, rw->offset, buf, rw->len, write);
	dma_resv_unlock(imp->buf->resv);
	return ret;
}

static int hawk_imp_by_vmap(struct hawk_imp *imp, const struct hawk_imp_rw *rw, void *buf)
{
	bool write = rw->flags & HAWK_IMP_RW_WRITE, bare = rw->flags & HAWK_IMP_RW_BARE;
	enum dma_data_direction dir = write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	struct iosys_map map;
	int ret;

	if (rw->offset > imp->buf->size || rw->len > imp->buf->size - rw->offset)
		return -EINVAL;
	ret = bare ? 0 : dma_buf_begin_cpu_access(imp->buf, dir);
	if (ret)
		return ret;
	ret = dma_buf_vmap_unlocked(imp->buf, &map);
	if (ret)
		return ret;
	if (write)
		iosys_map_memcpy_to(&map, rw->offset, buf, rw->len);
	else
		iosys_map_memcpy_from(buf, &map, rw->offset, rw->len);
	dma_buf_vunmap_unlocked(imp->buf, &map);
	return bare ? 0 : dma_buf_end_cpu_access(imp->buf, dir);
}

static int hawk_imp_move(void *who, const struct hawk_imp_rw *rw, void *buf)
{
	if (rw->flags & HAWK_IMP_RW_VMAP)
		return hawk_imp_by_vmap(who, rw, buf);
	return rw->flags & HAWK_IMP_RW_BARE ? -EINVAL : hawk_imp_by_dma(who, rw, buf);
}

static int hawk_imp_info(struct hawk_imp *imp, void __user *uarg)
{
	struct hawk_imp_info info = {
		.notifies = atomic_read(&imp->notifies),
		.pinned = imp->pins,
		.move_notify = IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY),
	};

	if (imp->buf) {
		dma_resv_lock(imp->buf->resv, NULL);
		info.mapped = imp->sgt != NULL;
		dma_resv_unlock(imp->buf->resv);
	}
	return copy_to_user(uarg, &info, sizeof(info)) ? -EFAULT : 0;
}

/* ---- the file ---- */

static int hawk_imp_open(struct inode *inode, struct file *file)
{
	struct hawk_imp *imp = kzalloc(sizeof(*imp), GFP_KERNEL);

	if (!imp)
		return -ENOMEM;
	mutex_init(&imp->lock);
	file->private_data = imp;
	return nonseekable_open(inode, file);
}

static int hawk_imp_release(struct inode *inode, struct file *file)
{
	struct hawk_imp *imp = file->private_data;

	hawk_imp_detach(imp);
	kfree(imp);
	return 0;
}

/* @imp->lock is held; calls but ATTACH and INFO need an attachment. */
static int hawk_imp_call(struct hawk_imp *imp, unsigned int cmd, unsigned long arg)
{
	void __user *uarg = (void __user *)arg;

	if (cmd == HAWK_IMP_IOC_INFO)
		return hawk_imp_info(imp, uarg);
	if (cmd == HAWK_IMP_IOC_ATTACH)
		return imp->buf ? -EBUSY : hawk_imp_attach(imp, uarg);
	if (!imp->buf)
		return -ENXIO;
	switch (cmd) {
	case HAWK_IMP_IOC_DETACH:
		hawk_imp_detach(imp);
		return 0;
	case HAWK_IMP_IOC_MAP:
		return hawk_imp_map(imp, arg);
	case HAWK_IMP_IOC_UNMAP:
		return hawk_imp_unmap(imp);
	case HAWK_IMP_IOC_PIN:
		return hawk_imp_pin(imp);
	case HAWK_IMP_IOC_UNPIN:
		return hawk_imp_unpin(imp);
	case HAWK_IMP_IOC_RW:
		return hawk_model_rw(uarg, HAWK_IMP_RW_WRITE | HAWK_IMP_RW_VMAP | HAWK_IMP_RW_BARE,
				     hawk_imp_move, imp);
	case HAWK_IMP_IOC_FENCE:
		if (arg)
			return hawk_imp_fence_start(imp);
		hawk_imp_fence_end(imp);
		return 0;
	default:
		return -ENOTTY;
	}
}

static long hawk_imp_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct hawk_imp *imp = file->private_data;
	int ret;

	mutex_lock(&imp->lock);
	ret = hawk_imp_call(imp, cmd, arg);
	mutex_unlock(&imp->lock);
	return ret;
}

static const struct file_operations hawk_imp_fops = {
	.owner = THIS_MODULE,
	.open = hawk_imp_open,
	.release = hawk_imp_release,
	.unlocked_ioctl = hawk_imp_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice hawk_imp_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "hawk-importer",
	.mode = 0600,
	.fops = &hawk_imp_fops,
};

static int __init hawk_imp_init(void)
{
	return hawk_model_start(&hawk_imp_misc, &hawk_imp_device);
}

static void __exit hawk_imp_exit(void)
{
	hawk_model_stop(&hawk_imp_misc, hawk_imp_device);
}

module_init(hawk_imp_init);
module_exit(hawk_imp_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("Lab model: a driver that imports dma-bufs");
MODULE_LICENSE("GPL");
MODULE_INFO(test, "Y");
HAWK_IMPORT_NS(DMA_BUF);
