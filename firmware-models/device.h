/* SPDX-License-Identifier: GPL-2.0 */
/*
 * device.h - what models that are devices with a node in /dev have in common
 *
 * A platform device to do DMA with, and bytes that a test moves through it.  All of it is
 * inline: each model is a module of one file.
 */
#ifndef HAWK_MODELS_DEVICE_H
#define HAWK_MODELS_DEVICE_H

#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/miscdevice.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "models.h"

/**
 * hawk_model_start() - a device that reaches all memory by DMA, and then its node
 * @misc: the node; the device has its name
 * @dev: out, the device, set before anybody can open the node
 *
 * Return: 0 or a negative errno.
 */
static inline int hawk_model_start(struct miscdevice *misc, struct platform_device **dev)
{
	int ret;

	*dev = platform_device_register_simple(misc->name, -1, NULL, 0);
	if (IS_ERR(*dev))
		return PTR_ERR(*dev);
	ret = dma_coerce_mask_and_coherent(&(*dev)->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = misc_register(misc);
	if (ret)
		platform_device_unregister(*dev);
	return ret;
}

/**
 * hawk_model_stop() - undo hawk_model_start()
 * @misc: the node
 * @dev: the device
 */
static inline void hawk_model_stop(struct miscdevice *misc, struct platform_device *dev)
{
	misc_deregister(misc);
	platform_device_unregister(dev);
}

/**
 * hawk_model_dma() - what a device does: it knows bus addresses only
 * @dev: the device
 * @sgt: memory that is mapped for it
 * @offset: first byte in that memory
 * @buf: bytes to write, or room for those read
 * @len: bytes
 * @write: into the memory
 *
 * Return: 0, or -EINVAL: the memory ends before.
 */
static inline int hawk_model_dma(struct device *dev, struct sg_table *sgt, u64 offset, void *buf,
				 u32 len, bool write)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		phys_addr_t phys = dma_to_phys(dev, sg_dma_address(sg));
		u32 n = sg_dma_len(sg);
		void *p;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		p = phys_to_virt(phys + offset);
		n = min_t(u64, len, n - offset);
		if (write)
			memcpy(p, buf, n);
		else
			memcpy(buf, p, n);
		buf += n;
		len -= n;
		offset = 0;
		if (!len)
			return 0;
	}
	return -EINVAL;
}

/**
 * typedef hawk_model_move - a model's own way to move bytes
 * @who: the open file's
 * @rw: offset, length and flags
 * @buf: bytes to write, or room for those read
 *
 * Return: 0 or a negative errno.
 */
typedef int hawk_model_move(void *who, const struct hawk_imp_rw *rw, void *buf);

/**
 * hawk_model_rw() - an ioctl that takes a struct hawk_imp_rw
 * @uarg: its argument
 * @flags: HAWK_IMP_RW_* that the model knows
 * @move: moves the bytes
 * @who: for @move
 *
 * Return: 0; -EINVAL; -ENOMEM; -EFAULT; what @move says.
 */
static inline int hawk_model_rw(void __user *uarg, u32 flags, hawk_model_move *move, void *who)
{
	struct hawk_imp_rw rw;
	void __user *ubuf;
	void *buf;
	int ret;

	if (copy_from_user(&rw, uarg, sizeof(rw)))
		return -EFAULT;
	if (!rw.len || rw.len > HAWK_IMP_RW_MAX || rw.flags & ~flags)
		return -EINVAL;
	ubuf = u64_to_user_ptr(rw.buf);
	buf = kvzalloc(rw.len, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	ret = -EFAULT;
	if ((rw.flags & HAWK_IMP_RW_WRITE) && copy_from_user(buf, ubuf, rw.len))
		goto out_free;
	ret = move(who, &rw, buf);
	if (!ret && !(rw.flags & HAWK_IMP_RW_WRITE) && copy_to_user(ubuf, buf, rw.len))
		ret = -EFAULT;
out_free:
	kvfree(buf);
	return ret;
}

#endif /* HAWK_MODELS_DEVICE_H */
