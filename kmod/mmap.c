// SPDX-License-Identifier: GPL-2.0
/*
 * mmap.c - the vTLB, the completion ring, statistics and the windows of host tiers;
 * draft rings are mapped by draft.c
 *
 * All are pages that user space maps one by one on first touch.  Frames are
 * ordinary pages on a VM_MIXEDMAP mapping, so that they can be pinned
 * (ibv_reg_mr(), io_uring); those of a PCI BAR have no page and cannot.  Mappings are not inherited by fork(): the child of
 * a client would otherwise hold frames that its parent has given back.
 *
 * A window is as large as what the space may ever own, and a chunk that the space
 * owns may be taken back.  A reader of the vTLB may come too late: it finds the
 * void page of the space, whose content means nothing, and learns from the vTLB
 * that its block has moved.  The void page is mapped as a special one, so that it
 * cannot be pinned, and only for a program's own loads and stores: DMA or a system
 * call into a frame that the space does not own is an error that must show.
 *
 * map_lock makes the look-up of a frame and its mapping one: who takes a chunk
 * changes its owner under the lock, unmaps, and knows that no page table leads to
 * it any more.  Who gives a chunk unmaps the void page first.
 */
#include "export.h"

#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/vmalloc.h>

#define HAWK_AREA_SHIFT		40	/* an area of mmap offsets: HAWK_MMAP_* */
#define HAWK_AREA_MASK		((1ull << HAWK_AREA_SHIFT) - 1)
#define HAWK_AREA_VTLB		(HAWK_MMAP_VTLB >> HAWK_AREA_SHIFT)
#define HAWK_AREA_RING		(HAWK_MMAP_RING >> HAWK_AREA_SHIFT)
#define HAWK_AREA_STATS		(HAWK_MMAP_STATS >> HAWK_AREA_SHIFT)
#define HAWK_AREA_DRAFT		(HAWK_MMAP_DRAFT(0) >> HAWK_AREA_SHIFT)
#define HAWK_AREA_TIER		(HAWK_MMAP_TIER(0) >> HAWK_AREA_SHIFT)
#define HAWK_FAULT_PAGES	16u	/* pages mapped by one fault */

static u64 hawk_offset(const struct vm_area_struct *vma, unsigned long addr)
{
	return ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start);
}

/* What lies at an mmap offset: a page, or a page frame number without one. */
struct hawk_mapped {
	struct page *page;
	unsigned long pfn;
};

/* Return: 0; -ENOENT: the space owns nothing there; -ENODEV: it is lost. */
static int hawk_mmap_frame(struct hawk_as *as, u32 tier, u64 off, struct hawk_mapped *at)
{
	struct hawk_mem *m = as->mem[tier];
	u64 pos;

	lockdep_assert_held(&as->map_lock);
	pos = hawk_frame_off(as->space, tier, off / as->info.block_bytes);
	if (pos == ~0ull)
		return -ENOENT;
	if (READ_ONCE(m->lost))
		return -ENODEV;
	pos += off % as->info.block_bytes;
	if (m->ops->page)
		at->page = m->ops->page(m, pos);
	else
		at->pfn = m->ops->pfn(m, pos);
	return 0;
}

static int hawk_mmap_at(struct hawk_file *f, u64 offset, struct hawk_mapped *at)
{
	u32 area = offset >> HAWK_AREA_SHIFT;
	u64 off = offset & HAWK_AREA_MASK;
	struct hawk_as *as = f->as;

	*at = (struct hawk_mapped){ };

	if (area == HAWK_AREA_VTLB)
		at->page = vmalloc_to_page(as->vtlb + off);
	else if (area == HAWK_AREA_RING)
		at->page = vmalloc_to_page((void *)f->cq->ring + off);
	else if (area == HAWK_AREA_STATS)
		at->page = vmalloc_to_page((void *)as->stats.page + off);
	else
		return hawk_mmap_frame(as, area - HAWK_AREA_TIER, off, at);
	return 0;
}

static vm_fault_t hawk_vm_insert(struct vm_area_struct *vma, unsigned long addr,
				 const struct hawk_mapped *at)
{
	if (at->page)
		return vmf_insert_page(vma, addr, at->page);
	return vmf_insert_pfn_prot(vma, addr, at->pfn, pgprot_writecombine(vma->vm_page_prot));
}

static struct page *hawk_as_void_page(struct hawk_as *as)
{
	struct page *page = READ_ONCE(as->void_page), *raced;

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!page)
		return NULL;
	raced = cmpxchg(&as->void_page, NULL, page);
	if (!raced)
		return page;
	__free_page(page);
	return raced;
}

/* The space owns no frame here: a window's only. */
static vm_fault_t hawk_vm_fault_void(struct vm_fault *vmf, struct hawk_as *as)
{
	u32 tier = (hawk_offset(vmf->vma, vmf->address) >> HAWK_AREA_SHIFT) - HAWK_AREA_TIER;
	struct page *page;

	lockdep_assert_held(&as->map_lock);
	if (!(vmf->flags & FAULT_FLAG_USER))
		return VM_FAULT_SIGBUS;
	page = hawk_as_void_page(as);
	if (!page)
		return VM_FAULT_OOM;
	set_bit(tier, &as->void_tiers);
	return vmf_insert_mixed(vmf->vma, vmf->address & PAGE_MASK, page_to_pfn(page));
}

/* Maps the page that is wanted and, as long as they are there, those behind it. */
static vm_fault_t hawk_vm_fault_pages(struct vm_fault *vmf, struct hawk_file *f)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long end = min(vma->vm_end, addr + HAWK_FAULT_PAGES * PAGE_SIZE);
	vm_fault_t ret = VM_FAULT_NOPAGE;
	bool first = true;

	for (; addr < end; addr += PAGE_SIZE, first = false) {
		struct hawk_mapped at;
		int err = hawk_mmap_at(f, hawk_offset(vma, addr), &at);
		vm_fault_t got;

		if (err == -ENOENT)
			return first ? hawk_vm_fault_void(vmf, f->as) : ret;
		if (err)
			return first ? VM_FAULT_SIGBUS : ret;
		got = hawk_vm_insert(vma, addr, &at);
		if (first)
			ret = got;
		if (got != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

/* The ring has no space to lock, nor have its pages and those of the vTLB other owners. */
static vm_fault_t hawk_vm_fault(struct vm_fault *vmf)
{
	struct hawk_file *f = vmf->vma->vm_file->private_data;
	bool window = hawk_offset(vmf->vma, vmf->address) >= HAWK_MMAP_TIER(0);
	vm_fault_t ret;

	if (window)
		down_read(&f->as->map_lock);
	ret = hawk_vm_fault_pages(vmf, f);
	if (window)
		up_read(&f->as->map_lock);
	return ret;
}

static const struct vm_operations_struct hawk_vm_ops = {
	.fault = hawk_vm_fault,
};

/**
 * hawk_vma_is_window() - is this a mapping of a tier's window?
 * @vma: any mapping; its mm is locked
 *
 * Return: whether it is: its file is an open /dev/hawk then, and has a space.
 */
bool hawk_vma_is_window(const struct vm_area_struct *vma)
{
	return vma->vm_ops == &hawk_vm_ops &&
	       hawk_offset(vma, vma->vm_start) >= HAWK_MMAP_TIER(0);
}

static struct hawk_as *hawk_vma_as(const struct vm_area_struct *vma)
{
	struct hawk_file *f = vma->vm_file->private_data;

	return f->as;
}

/* A mapping has been split, or a part of one goes. */
static void hawk_stats_vm_open(struct vm_area_struct *vma)
{
	atomic_inc(&hawk_vma_as(vma)->stats.mapped);
}

static void hawk_stats_vm_close(struct vm_area_struct *vma)
{
	hawk_stats_unmap(hawk_vma_as(vma));
}

static const struct vm_operations_struct hawk_stats_vm_ops = {
	.open = hawk_stats_vm_open,
	.close = hawk_stats_vm_close,
	.fault = hawk_vm_fault,
};

/* Bytes of an area that the file may map; 0: none. */
static u64 hawk_area_bytes(struct hawk_file *f, u32 area)
{
	struct hawk_as *as = hawk_file_as(f);
	struct hawk_cq *cq;
	u32 tier;

	if (area == HAWK_AREA_RING) {
		cq = hawk_file_cq(f);
		return cq ? cq->bytes : 0;
	}
	if (!as)
		return 0;
	if (area == HAWK_AREA_VTLB)
		return as->info.vtlb_bytes;
	if (area == HAWK_AREA_STATS)
		return PAGE_ALIGN(sizeof(struct hawk_stats_page));
	if (area < HAWK_AREA_TIER || area >= HAWK_AREA_TIER + HAWK_TIERS_MAX)
		return 0;
	tier = array_index_nospec(area - HAWK_AREA_TIER, HAWK_TIERS_MAX);
	if (!as->mem[tier] || (!as->mem[tier]->ops->page && !as->mem[tier]->ops->pfn))
		return 0;
	return (u64)as->info.frames[tier] * as->info.block_bytes;
}

/* What holds for all of them. */
static void hawk_vma_flags(struct vm_area_struct *vma)
{
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
}

/**
 * hawk_mmap() - map an area or a part of it
 * @file: an open file
 * @vma: the mapping, its offset is one of HAWK_MMAP_*
 *
 * Return: 0; -EINVAL: not MAP_SHARED, or beyond the area; -ENXIO: the file has no
 * such area (yet); -EACCES: writing what may only be read; -ENOMEM.
 */
int hawk_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct hawk_file *f = file->private_data;
	u64 offset = hawk_offset(vma, vma->vm_start);
	u32 area = offset >> HAWK_AREA_SHIFT;
	u64 off = offset & HAWK_AREA_MASK;
	u64 bytes = hawk_area_bytes(f, area);
	bool readonly;

	if (!bytes && area != HAWK_AREA_DRAFT)
		return -ENXIO;
	/* VM_MAYSHARE: VM_SHARED is off when the file is open for reading only */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (area == HAWK_AREA_DRAFT) {
		hawk_vma_flags(vma);
		return hawk_draft_mmap(f, vma, off);
	}
	if (off >= bytes || vma->vm_end - vma->vm_start > bytes - off)
		return -EINVAL;

	readonly = area == HAWK_AREA_VTLB || area == HAWK_AREA_STATS ||
		   (area != HAWK_AREA_RING && !f->writable);
	if (readonly) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	hawk_vma_flags(vma);
	vma->vm_ops = area == HAWK_AREA_STATS ? &hawk_stats_vm_ops : &hawk_vm_ops;
	return area == HAWK_AREA_STATS ? hawk_stats_map(f->as) : 0;
}
