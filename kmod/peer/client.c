// SPDX-License-Identifier: GPL-2.0
/*
 * client.c - hawk_peer.ko: blocks in mapped windows for RDMA stacks with peer memory clients
 *
 * ibv_reg_mr() on a window registers pages wherever the stack is the kernel's.  A stack with
 * peer memory clients (peer_mem.h) asks this one first: it exports the blocks as a dma-buf
 * (hawk_window_export()) and is its importer on the stack's behalf.  So the blocks have
 * pins of their own, and can be taken back: a tier that is removed does not wait for who
 * has registered memory of it.  Addresses with a block that is not pinned are refused.
 *
 * A registration
 *	NEW --get_pages--> EXPORTED --dma_map--> MAPPED --dma_unmap--> EXPORTED --put_pages--> NEW
 * Calls for one come one after the other; move_notify, at any time while it is MAPPED,
 * with dma_resv held.  The stack answers an invalidation by dma_unmap, which takes
 * dma_resv, so a work asks for it.  The revoker waits for that as for any importer.
 *
 * A work may come after the registration has ended: it holds the memory of @hawk_peer, and
 * the stack looks its number up.  When the module goes, works are stopped before the
 * client is unregistered: nobody asks a stack that does not know us.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../compat.h"
#include "../window.h"
#include "peer_mem.h"

/**
 * struct hawk_peer - a registration
 * @ref: the stack's, and the work's while it is queued or runs
 * @addr: first address
 * @size: bytes
 * @core_context: the stack's number for it
 * @buf: the blocks, NULL while NEW
 * @write: the NIC writes too
 * @offset: of @addr in @buf, bytes
 * @at: the stack's device, NULL unless MAPPED
 * @sgt: of @at, guarded by dma_resv
 * @work: takes it back
 */
struct hawk_peer {
	struct kref ref;
	unsigned long addr;
	size_t size;
	u64 core_context;
	struct dma_buf *buf;
	bool write;
	u64 offset;
	struct dma_buf_attachment *at;
	struct sg_table *sgt;
	struct work_struct work;
};

static struct workqueue_struct *hawk_peer_wq;
static invalidate_peer_memory hawk_peer_invalidate;
static void *hawk_peer_handle;
static bool hawk_peer_stopping;		/* no work calls the stack any more */

/* ---- taking back ---- */

static void hawk_peer_free(struct kref *ref)
{
	kfree(container_of(ref, struct hawk_peer, ref));
}

static void hawk_peer_work(struct work_struct *work)
{
	struct hawk_peer *p = container_of(work, struct hawk_peer, work);

	if (!READ_ONCE(hawk_peer_stopping))
		hawk_peer_invalidate(hawk_peer_handle, p->core_context);
	kref_put(&p->ref, hawk_peer_free);
}

static void hawk_peer_notify(struct dma_buf_attachment *at)
{
	struct hawk_peer *p = at->importer_priv;

	dma_resv_assert_held(at->dmabuf->resv);
	kref_get(&p->ref);
	if (!queue_work(hawk_peer_wq, &p->work))
		kref_put(&p->ref, hawk_peer_free);
}

static const struct dma_buf_attach_ops hawk_peer_attach_ops = {
	.HAWK_MOVE_NOTIFY = hawk_peer_notify,
};

/* ---- what the stack asks for ---- */

static int hawk_peer_acquire(unsigned long addr, size_t size, void *peer_mem_private_data,
			     char *peer_mem_name, void **client_context)
{
	struct hawk_peer *p;

	if (!hawk_window_has(addr, size) || !try_module_get(THIS_MODULE))
		return 0;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p) {
		module_put(THIS_MODULE);
		return 0;
	}
	kref_init(&p->ref);
	INIT_WORK(&p->work, hawk_peer_work);
	p->addr = addr;
	p->size = size;
	*client_context = p;
	return 1;
}

static int hawk_peer_get_pages(unsigned long addr, size_t size, int write, int force,
			       struct sg_table *sg_head, void *client_context, u64 core_context)
{
	struct hawk_peer *p = client_context;
	struct dma_buf *buf;

	if (p->buf || addr != p->addr || size != p->size)
		return -EINVAL;
	buf = hawk_window_export(addr, size, write, &p->offset);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	p->buf = buf;
	p->write = write;
	p->core_context = core_context;
	return 0;
}

static int hawk_peer_attach(struct hawk_peer *p, struct device *dev)
{
	struct dma_buf_attachment *at;
	struct sg_table *sgt;

	at = dma_buf_dynamic_attach(p->buf, dev, &hawk_peer_attach_ops, p);
	if (IS_ERR(at))
		return PTR_ERR(at);
	dma_resv_lock(p->buf->resv, NULL);
	sgt = dma_buf_map_attachment(at, p->write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE);
	if (!IS_ERR(sgt))
		p->sgt = sgt;
	dma_resv_unlock(p->buf->resv);
	if (IS_ERR(sgt)) {
		dma_buf_detach(p->buf, at);
		return PTR_ERR(sgt);
	}
	p->at = at;
	return 0;
}

static void hawk_peer_detach(struct hawk_peer *p)
{
	dma_resv_lock(p->buf->resv, NULL);
	dma_buf_unmap_attachment(p->at, p->sgt, p->write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE);
	p->sgt = NULL;
	dma_resv_unlock(p->buf->resv);
	dma_buf_detach(p->buf, p->at);
	p->at = NULL;
}

/* What of an entry lies within the registration: its length, and where that begins. */
static u64 hawk_peer_part(const struct hawk_peer *p, u64 at, const struct scatterlist *sg,
			  u64 *from)
{
	u64 end = min_t(u64, at + sg_dma_len(sg), p->offset + p->size);

	*from = max(at, p->offset);
	return end > *from ? end - *from : 0;
}

/* The entries of the dma-buf, cut to the addresses that were registered. */
static int hawk_peer_fill(const struct hawk_peer *p, struct sg_table *out, int *nmap)
{
	struct scatterlist *sg, *to;
	unsigned int n = 0;
	u64 at = 0, from;
	int i, ret;

	for_each_sgtable_dma_sg(p->sgt, sg, i) {
		n += hawk_peer_part(p, at, sg, &from) != 0;
		at += sg_dma_len(sg);
	}
	ret = sg_alloc_table(out, n, GFP_KERNEL);
	if (ret)
		return ret;
	to = out->sgl;
	at = 0;
	for_each_sgtable_dma_sg(p->sgt, sg, i) {
		u64 len = hawk_peer_part(p, at, sg, &from);

		if (len) {
			sg_set_page(to, NULL, len, 0);
			sg_dma_address(to) = sg_dma_address(sg) + (from - at);
			sg_dma_len(to) = len;
			to = sg_next(to);
		}
		at += sg_dma_len(sg);
	}
	*nmap = n;
	return 0;
}

static int hawk_peer_dma_map(struct sg_table *sg_head, void *client_context,
			     struct device *dma_device, int dmasync, int *nmap)
{
	struct hawk_peer *p = client_context;
	int ret;

	if (!p->buf || p->at)
		return -EINVAL;
	ret = hawk_peer_attach(p, dma_device);
	if (ret)
		return ret;
	ret = hawk_peer_fill(p, sg_head, nmap);
	if (ret)
		hawk_peer_detach(p);
	return ret;
}

static int hawk_peer_dma_unmap(struct sg_table *sg_head, void *client_context,
			       struct device *dma_device)
{
	struct hawk_peer *p = client_context;

	if (!p->at)
		return -EINVAL;
	sg_free_table(sg_head);
	hawk_peer_detach(p);
	return 0;
}

static void hawk_peer_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct hawk_peer *p = client_context;

	if (!p->buf)
		return;
	dma_buf_put(p->buf);
	p->buf = NULL;
}

static unsigned long hawk_peer_page_size(void *client_context)
{
	return PAGE_SIZE;
}

static void hawk_peer_release(void *client_context)
{
	struct hawk_peer *p = client_context;

	kref_put(&p->ref, hawk_peer_free);
	module_put(THIS_MODULE);
}

static const struct peer_memory_client hawk_peer_client = {
	.name = "hawk",
	.version = "1",
	.acquire = hawk_peer_acquire,
	.get_pages = hawk_peer_get_pages,
	.dma_map = hawk_peer_dma_map,
	.dma_unmap = hawk_peer_dma_unmap,
	.put_pages = hawk_peer_put_pages,
	.get_page_size = hawk_peer_page_size,
	.release = hawk_peer_release,
};

static int __init hawk_peer_init(void)
{
	hawk_peer_wq = alloc_workqueue("hawk-peer", WQ_UNBOUND, 0);
	if (!hawk_peer_wq)
		return -ENOMEM;
	hawk_peer_handle = ib_register_peer_memory_client(&hawk_peer_client, &hawk_peer_invalidate);
	if (hawk_peer_handle)
		return 0;
	pr_err("hawk_peer: the RDMA stack takes no client\n");
	destroy_workqueue(hawk_peer_wq);
	return -EINVAL;
}

static void __exit hawk_peer_exit(void)
{
	WRITE_ONCE(hawk_peer_stopping, true);
	destroy_workqueue(hawk_peer_wq);
	ib_unregister_peer_memory_client(hawk_peer_handle);
}

module_init(hawk_peer_init);
module_exit(hawk_peer_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("Hawk's KV blocks as peer memory of an RDMA stack");
MODULE_LICENSE("GPL");
HAWK_IMPORT_NS(HAWK);
HAWK_IMPORT_NS(DMA_BUF);
