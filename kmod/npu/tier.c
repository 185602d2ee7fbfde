// SPDX-License-Identifier: GPL-2.0
/*
 * tier.c - the NPU's memory as a tier of kind "bar"
 *
 * Bytes of blocks are moved by the firmware, which reads and writes the host's pages
 * itself, or by the CPU: if the NPU does not reach the host's memory, and while there is no
 * firmware.  A command that ended with the firmware is done over by the CPU: nobody is
 * writing to the pages any more (state.c).  Only bytes that the memory has lost (ECC) are
 * lost, and the block with them.
 */
#include "hawk_npu.h"

#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>

#define HAWK_NPU_ZERO_STEP	(64u << 10)	/* bytes zeroed by the CPU at one time */

/* ---- by the firmware ---- */

static enum dma_data_direction hawk_npu_dir(bool write)
{
	return write ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

static void hawk_npu_unmap(struct hawk_npu_engine *e, u32 n, bool write)
{
	while (n--)
		dma_unmap_page(&e->npu->pdev->dev, e->seg[n].addr, e->seg[n].len,
			       hawk_npu_dir(write));
}

/* Return: segments mapped, or -EFAULT. */
static int hawk_npu_map(struct hawk_npu_engine *e, const struct bio_vec *bv, u32 n, bool write)
{
	struct device *dev = &e->npu->pdev->dev;
	u32 i;

	for (i = 0; i < n; i++) {
		dma_addr_t addr = dma_map_page(dev, bv[i].bv_page, bv[i].bv_offset, bv[i].bv_len,
					       hawk_npu_dir(write));

		if (dma_mapping_error(dev, addr)) {
			hawk_npu_unmap(e, i, write);
			return -EFAULT;
		}
		e->seg[i] = (struct hawk_npu_seg){ .addr = addr, .len = bv[i].bv_len };
	}
	return n;
}

/* As many pieces as one command can have. */
static int hawk_npu_move_some(struct hawk_npu_engine *e, const struct bio_vec *bv, u32 n, u64 off,
			      u32 bytes, bool write)
{
	struct hawk_npu_cmd cmd = {
		.sqe.op = write ? HAWK_NPU_OP_WRITE : HAWK_NPU_OP_READ,
		.sqe.addr = HAWK_NPU_MEM_OFF + off,
		.sqe.len = bytes,
		.sqe.nlist = n,
		.list = e->seg,
		.list_bytes = n * sizeof(*e->seg),
	};
	int ret = hawk_npu_map(e, bv, n, write);

	if (ret < 0)
		return ret;
	ret = hawk_npu_exec(e->npu, &cmd);
	hawk_npu_unmap(e, n, write);
	return ret;
}

static int hawk_npu_move_dma(struct hawk_npu_engine *e, const struct hawk_provider_xfer *x)
{
	u32 i, n, bytes;
	u64 off = x->off;
	int ret;

	if (!(READ_ONCE(e->npu->features) & HAWK_NPU_FEAT_DMA))
		return -EFAULT;
	for (i = 0; i < x->nbv; i += n, off += bytes) {
		for (n = bytes = 0; i + n < x->nbv && n < HAWK_NPU_SEGS; n++)
			bytes += x->bv[i + n].bv_len;
		ret = hawk_npu_move_some(e, x->bv + i, n, off, bytes, x->write);
		if (ret)
			return ret;
	}
	atomic64_add(x->len, &e->npu->moved_dma);
	return 0;
}

/* ---- by the CPU ---- */

static int hawk_npu_move_cpu(struct hawk_npu *npu, const struct hawk_provider_xfer *x)
{
	u64 off = x->off;
	u32 i;

	for (i = 0; i < x->nbv; i++) {
		void *p = bvec_virt(&x->bv[i]);

		if (x->write)
			memcpy_toio(npu->mem + off, p, x->bv[i].bv_len);
		else
			memcpy_fromio(p, npu->mem + off, x->bv[i].bv_len);
		off += x->bv[i].bv_len;
	}
	wmb();	/* write-combining buffers: the next reader may be the firmware */
	atomic64_add(x->len, &npu->moved_cpu);
	return 0;
}

/* Errors that are the firmware's, not the bytes'. */
static bool hawk_npu_cpu_can(int err)
{
	return err && err != -EBADMSG && err != -ENODEV;
}

static int hawk_npu_move(struct hawk_npu_engine *e, const struct hawk_provider_xfer *x)
{
	struct hawk_npu *npu = e->npu;
	u32 gen = READ_ONCE(npu->mem_gen);
	int ret;

	if (!hawk_npu_enter(npu))
		return -ENODEV;
	ret = hawk_npu_move_dma(e, x);
	if (hawk_npu_cpu_can(ret))
		ret = hawk_npu_move_cpu(npu, x);
	if (!ret && hawk_npu_board_read(npu, mem_gen) != gen)
		ret = -EIO;	/* what was read is not what was written once */
	hawk_npu_leave(npu);
	return ret;
}

/* ---- engines ---- */

static void hawk_npu_engine_work(struct work_struct *work)
{
	struct hawk_npu_engine *e = container_of(work, struct hawk_npu_engine, work);
	struct hawk_npu *npu = e->npu;
	struct hawk_provider_xfer *x;

	for (;;) {
		spin_lock(&npu->xfer_lock);
		x = list_first_entry_or_null(&npu->xfers, struct hawk_provider_xfer, node);
		if (x)
			list_del(&x->node);
		spin_unlock(&npu->xfer_lock);
		if (!x)
			return;
		hawk_provider_done(x, hawk_npu_move(e, x));
	}
}

/* Queued in any case: an engine finds out that the device is gone. */
static void hawk_npu_xfer(void *provider, struct hawk_provider_xfer *x)
{
	struct hawk_npu *npu = provider;
	u32 i;

	spin_lock(&npu->xfer_lock);
	list_add_tail(&x->node, &npu->xfers);
	spin_unlock(&npu->xfer_lock);
	for (i = 0; i < HAWK_NPU_ENGINES; i++)
		queue_work(npu->wq, &npu->engine[i].work);
}

/* ---- the tier ---- */

static unsigned long hawk_npu_pfn(void *provider, u64 off)
{
	struct hawk_npu *npu = provider;

	return PHYS_PFN(npu->mem_phys + off);
}

static void hawk_npu_zero_cpu(struct hawk_npu *npu, u64 off, u64 len)
{
	u64 at;

	for (at = off; at < off + len; at += HAWK_NPU_ZERO_STEP) {
		memset_io(npu->mem + at, 0, min_t(u64, HAWK_NPU_ZERO_STEP, off + len - at));
		cond_resched();
	}
	wmb();	/* write-combining buffers: the next reader may be the firmware */
}

static int hawk_npu_zero(void *provider, u64 off, u64 len)
{
	struct hawk_npu_cmd cmd = {
		.sqe.op = HAWK_NPU_OP_FILL,
		.sqe.addr = HAWK_NPU_MEM_OFF + off,
		.sqe.len = len,
	};
	struct hawk_npu *npu = provider;
	int ret;

	if (!hawk_npu_enter(npu))
		return -ENODEV;
	ret = hawk_npu_exec(npu, &cmd);
	if (hawk_npu_cpu_can(ret)) {
		hawk_npu_zero_cpu(npu, off, len);
		ret = 0;
	}
	hawk_npu_leave(npu);
	return ret;
}

static void hawk_npu_release(void *provider)
{
	struct hawk_npu *npu = provider;

	WRITE_ONCE(npu->tier, -1);
	/* remove cancels it once nobody enters any more. */
	if (hawk_npu_enter(npu)) {
		if (READ_ONCE(npu->tier_again))
			queue_work(npu->watch_wq, &npu->tier_work);
		hawk_npu_leave(npu);
	}
	hawk_npu_put(npu);
}

static const struct hawk_provider_ops hawk_npu_ops = {
	.owner = THIS_MODULE,
	.xfer = hawk_npu_xfer,
	.pfn = hawk_npu_pfn,
	.zero = hawk_npu_zero,
	.release = hawk_npu_release,
};

/**
 * hawk_npu_tier_add() - make the memory a tier, zeroed
 * @npu: the device
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int hawk_npu_tier_add(struct hawk_npu *npu)
{
	u64 off;
	int ret;

	for (off = 0; off < npu->mem_bytes; off += HAWK_NPU_MEM_OFF) {
		ret = hawk_npu_zero(npu, off, HAWK_NPU_MEM_OFF);
		if (ret)
			return ret;
	}
	kref_get(&npu->ref);
	ret = hawk_provider_add(&hawk_npu_ops, npu, npu->mem_bytes);
	if (ret < 0) {
		hawk_npu_put(npu);
		return ret;
	}
	WRITE_ONCE(npu->tier, ret);
	dev_info(&npu->pdev->dev, "tier %d, %llu MiB\n", ret, npu->mem_bytes >> 20);
	return 0;
}

static void hawk_npu_tier_work(struct work_struct *work)
{
	struct hawk_npu *npu = container_of(work, struct hawk_npu, tier_work);
	int ret;

	WRITE_ONCE(npu->tier_again, false);
	ret = hawk_npu_tier_add(npu);
	if (ret && ret != -ENODEV)
		pr_err("hawk_npu%d: no tier any more: %d\n", npu->id, ret);
}

/* The tier's content is lost; its release brings a new one.  Context: the watch. */
void hawk_npu_tier_lost(struct hawk_npu *npu)
{
	WRITE_ONCE(npu->tier_again, true);
	hawk_provider_lost(npu);
}

/* Return: 0 or -ENOMEM; hawk_npu_tier_exit() in any case. */
int hawk_npu_tier_init(struct hawk_npu *npu)
{
	u32 i;

	npu->tier = -1;
	spin_lock_init(&npu->xfer_lock);
	INIT_LIST_HEAD(&npu->xfers);
	INIT_WORK(&npu->tier_work, hawk_npu_tier_work);
	for (i = 0; i < HAWK_NPU_ENGINES; i++) {
		struct hawk_npu_engine *e = &npu->engine[i];

		e->npu = npu;
		INIT_WORK(&e->work, hawk_npu_engine_work);
		e->seg = kmalloc(HAWK_NPU_LIST_BYTES, GFP_KERNEL);
		if (!e->seg)
			return -ENOMEM;
	}
	npu->wq = alloc_workqueue("hawk-npu", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return npu->wq ? 0 : -ENOMEM;
}

/* No tier, and no transfer is left. */
void hawk_npu_tier_exit(struct hawk_npu *npu)
{
	u32 i;

	if (npu->wq)
		destroy_workqueue(npu->wq);
	for (i = 0; i < HAWK_NPU_ENGINES; i++)
		kfree(npu->engine[i].seg);
}
