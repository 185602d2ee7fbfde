// SPDX-License-Identifier: GPL-2.0
/*
 * dmabuf.c - what importers and processes do with an exported dma-buf
 *
 * The memory never moves while it is exported: the blocks are pinned.  So pinning
 * by an importer needs nothing, and move_notify is only sent to take it back.
 * Kernels without CONFIG_DMABUF_MOVE_NOTIFY pin for dynamic importers; those unmap
 * when they are done, as fixed ones do.
 */
#include "export.h"

#include <linux/dma-mapping.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

/**
 * struct hawk_dmabuf_map - an sg table that an importer has
 * @sgt: the table
 * @node: in hawk_dmabuf.maps
 * @dev: the importer's device
 * @dir: direction of its transfers
 */
struct hawk_dmabuf_map {
	struct sg_table sgt;
	struct list_head node;
	struct device *dev;
	enum dma_data_direction dir;
};

static int hawk_dmabuf_attach(struct dma_buf *buf, struct dma_buf_attachment *at)
{
	struct hawk_dmabuf *x = buf->priv;

	return READ_ONCE(x->revoked) ? -ENODEV : 0;
}

/* Blocks are pinned from the start: only one that has been revoked is refused. */
static int hawk_dmabuf_pin(struct dma_buf_attachment *at)
{
	struct hawk_dmabuf *x = at->dmabuf->priv;

	dma_resv_assert_held(&x->resv);
	return x->revoked ? -ENODEV : 0;
}

static void hawk_dmabuf_unpin(struct dma_buf_attachment *at)
{
	dma_resv_assert_held(at->dmabuf->resv);
}

static int hawk_dmabuf_map_sgt(struct hawk_dmabuf *x, struct hawk_dmabuf_map *map)
{
	int ret = sg_alloc_table_from_pages_segment(&map->sgt, x->pages, x->npages, 0, x->bytes,
						    dma_get_max_seg_size(map->dev), GFP_KERNEL);

	if (ret)
		return ret;
	/* Several importers may map the same pages; each is synchronised by itself. */
	ret = dma_map_sgtable(map->dev, &map->sgt, map->dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (ret) {
		sg_free_table(&map->sgt);
		return ret;
	}
	dma_sync_sgtable_for_device(map->dev, &map->sgt, map->dir);
	return 0;
}

static struct sg_table *hawk_dmabuf_map(struct dma_buf_attachment *at,
					enum dma_data_direction dir)
{
	struct hawk_dmabuf *x = at->dmabuf->priv;
	struct hawk_dmabuf_map *map;
	int ret;

	dma_resv_assert_held(&x->resv);
	if (x->read_only && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	ret = hawk_dmabuf_get_user(x);
	if (ret)
		return ERR_PTR(ret);
	ret = -ENOMEM;
	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		goto err_put_user;
	map->dev = at->dev;
	map->dir = dir;
	ret = hawk_dmabuf_map_sgt(x, map);
	if (ret)
		goto err_free;
	list_add(&map->node, &x->maps);
	return &map->sgt;

err_free:
	kfree(map);
err_put_user:
	hawk_dmabuf_put_user(x);
	return ERR_PTR(ret);
}

static void hawk_dmabuf_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			      enum dma_data_direction dir)
{
	struct hawk_dmabuf_map *map = container_of(sgt, struct hawk_dmabuf_map, sgt);
	struct hawk_dmabuf *x = at->dmabuf->priv;

	dma_resv_assert_held(&x->resv);
	list_del(&map->node);
	dma_sync_sgtable_for_cpu(map->dev, sgt, map->dir);
	dma_unmap_sgtable(map->dev, sgt, map->dir, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(map);
	hawk_dmabuf_put_user(x);
}

static void hawk_dmabuf_release(struct dma_buf *buf)
{
	hawk_dmabuf_released(buf->priv);
}

/* ---- the CPU ---- */

static bool hawk_dmabuf_may_access(const struct hawk_dmabuf *x, enum dma_data_direction dir)
{
	return !x->read_only || dir == DMA_FROM_DEVICE;	/* the CPU reads */
}

static int hawk_dmabuf_begin_cpu_access(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct hawk_dmabuf *x = buf->priv;
	struct hawk_dmabuf_map *map;
	int ret = 0;

	if (!hawk_dmabuf_may_access(x, dir))
		return -EACCES;
	dma_resv_lock(&x->resv, NULL);
	if (x->revoked)
		ret = -ENODEV;
	else
		list_for_each_entry(map, &x->maps, node)
			dma_sync_sgtable_for_cpu(map->dev, &map->sgt, map->dir);
	dma_resv_unlock(&x->resv);
	return ret;
}

static int hawk_dmabuf_end_cpu_access(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct hawk_dmabuf *x = buf->priv;
	struct hawk_dmabuf_map *map;

	if (!hawk_dmabuf_may_access(x, dir))
		return -EACCES;
	dma_resv_lock(&x->resv, NULL);
	list_for_each_entry(map, &x->maps, node)
		dma_sync_sgtable_for_device(map->dev, &map->sgt, map->dir);
	dma_resv_unlock(&x->resv);
	return 0;
}

/*
 * It has been revoked, which begin_cpu_access tells; but drivers map before they ask,
 * and the kernel warns of a mapping that fails.  They get a page of zeroes, over and
 * over: bytes of nobody, and what they write is lost.
 */
static int hawk_dmabuf_vmap_gone(struct hawk_dmabuf *x, struct iosys_map *map)
{
	struct page **pages = kvmalloc_array(x->npages, sizeof(*pages), GFP_KERNEL);
	void *p = NULL;
	u32 i;

	x->gone = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (pages && x->gone) {
		for (i = 0; i < x->npages; i++)
			pages[i] = x->gone;
		p = vmap(pages, x->npages, VM_MAP, PAGE_KERNEL);
	}
	kvfree(pages);
	if (p) {
		iosys_map_set_vaddr(map, p);
		return 0;
	}
	if (x->gone)
		__free_page(x->gone);
	x->gone = NULL;
	return -ENOMEM;
}

/* Newer kernels call with dma_resv held, older ones without; one at a time. */
static int hawk_dmabuf_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct hawk_dmabuf *x = buf->priv;
	void *p;

	if (hawk_dmabuf_get_user(x))
		return hawk_dmabuf_vmap_gone(x, map);
	p = vmap(x->pages, x->npages, VM_MAP, x->read_only ? PAGE_KERNEL_RO : PAGE_KERNEL);
	if (!p) {
		hawk_dmabuf_put_user(x);
		return -ENOMEM;
	}
	iosys_map_set_vaddr(map, p);
	return 0;
}

static void hawk_dmabuf_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct hawk_dmabuf *x = buf->priv;

	vunmap(map->vaddr);
	if (!x->gone) {
		hawk_dmabuf_put_user(x);
		return;
	}
	__free_page(x->gone);
	x->gone = NULL;
}

/*
 * The reservation is held until the page is in: a revoker zaps after it had it.  The
 * mapping is a special one: a page of it that could be pinned would show its holder
 * what the space puts there after the revocation.
 */
static vm_fault_t hawk_dmabuf_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct hawk_dmabuf *x = vma->vm_private_data;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	dma_resv_lock(&x->resv, NULL);
	if (!x->revoked && vmf->pgoff < x->npages)
		ret = vmf_insert_mixed(vma, vmf->address & PAGE_MASK,
				       page_to_pfn(x->pages[vmf->pgoff]));
	dma_resv_unlock(&x->resv);
	return ret;
}

static const struct vm_operations_struct hawk_dmabuf_vm_ops = {
	.fault = hawk_dmabuf_fault,
};

static int hawk_dmabuf_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct hawk_dmabuf *x = buf->priv;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (READ_ONCE(x->revoked))
		return -ENODEV;
	if (x->read_only) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = x;
	vma->vm_ops = &hawk_dmabuf_vm_ops;
	return 0;
}

const struct dma_buf_ops hawk_dmabuf_ops = {
	.attach = hawk_dmabuf_attach,
	.pin = hawk_dmabuf_pin,
	.unpin = hawk_dmabuf_unpin,
	.map_dma_buf = hawk_dmabuf_map,
	.unmap_dma_buf = hawk_dmabuf_unmap,
	.release = hawk_dmabuf_release,
	.begin_cpu_access = hawk_dmabuf_begin_cpu_access,
	.end_cpu_access = hawk_dmabuf_end_cpu_access,
	.mmap = hawk_dmabuf_mmap,
	.vmap = hawk_dmabuf_vmap,
	.vunmap = hawk_dmabuf_vunmap,
};
