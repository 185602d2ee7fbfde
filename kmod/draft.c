// SPDX-License-Identifier: GPL-2.0
/*
 * draft.c - rings of draft slots: pages that a client writes and the kernel does not
 *
 * A ring belongs to a file and ends with it, or by DRAFT_CLOSE while nobody has it
 * mapped.  Its counters and slots are the client's business; the kernel looks at one
 * word, head, and believes nothing of it: the engine when the ring's sequence is used
 * (core/draft.c), and here when the ring ends.  So there is no state that a client
 * could bring out of step by writing to its own pages.
 *
 *	made and in hawk_file.drafts --mmap--> mapped --munmap--> ... --CLOSE--> gone
 *
 * hawk_file.drafts' xa_lock decides between mmap() and CLOSE: a ring that is mapped
 * stays, and a fault, a split and an unmapping need no lock, because they come from
 * a mapping.  The pages are the allocator's when the ring is gone: whoever gets them
 * next gets them zeroed.
 */
#include "hawk.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

/**
 * struct hawk_draft_mem - a draft ring
 * @page: its memory: first the page of counters
 * @bytes: of @page
 * @seq: sequence that it is bound to, or HAWK_DRAFT_NO_SEQ
 * @mapped: mappings of it; from 0 only under the xa_lock of hawk_file.drafts
 */
struct hawk_draft_mem {
	struct hawk_draft *page;
	u64 bytes;
	u32 seq;
	atomic_t mapped;
};

static struct hawk_draft_mem *hawk_draft_alloc(struct hawk_file *f, u64 bytes, u32 slots)
{
	struct hawk_draft_mem *d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);

	if (!d)
		return NULL;
	d->bytes = bytes;
	d->seq = HAWK_DRAFT_NO_SEQ;
	if (hawk_memlock_charge_pages(f, bytes >> PAGE_SHIFT, hawk_memlock_limit()))
		goto err_free;
	/* the cgroup of who opens it pays; at its limit that is an error, no reason to kill */
	d->page = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
				   __GFP_RETRY_MAYFAIL);
	if (!d->page)
		goto err_uncharge;
	d->page->slots = slots;
	return d;

err_uncharge:
	hawk_memlock_uncharge_pages(f, bytes >> PAGE_SHIFT);
err_free:
	kfree(d);
	return NULL;
}

static void hawk_draft_free(struct hawk_file *f, struct hawk_draft_mem *d)
{
	if (d->seq != HAWK_DRAFT_NO_SEQ)
		hawk_draft_unbind(f->as->space, d->seq, &d->page->head);
	hawk_memlock_uncharge_pages(f, d->bytes >> PAGE_SHIFT);
	vfree(d->page);
	kfree(d);
}

static int hawk_draft_bind_to(struct hawk_file *f, struct hawk_draft_mem *d, u32 seq)
{
	int ret;

	if (seq == HAWK_DRAFT_NO_SEQ)
		return 0;
	ret = hawk_draft_bind(f->as->space, seq, &d->page->head);
	if (!ret)
		d->seq = seq;
	return ret;
}

/* HAWK_IOC_DRAFT_OPEN */
int hawk_ioc_draft_open(struct hawk_file *f, void *data)
{
	struct hawk_draft_open *arg = data;
	const struct hawk_space_info *info = &f->as->info;
	struct hawk_draft_layout l = {
		.block_bytes = info->block_bytes,
		.block_tokens = info->block_tokens,
		.layers = info->layers,
		.head_groups = info->head_groups / (info->tp_degree ?: 1),
		.slots = arg->slots,
	};
	struct hawk_draft_mem *d;
	u32 id;
	int ret;

	if (!f->writable)
		return -EACCES;
	ret = hawk_draft_layout(&l);
	if (ret)
		return ret;
	d = hawk_draft_alloc(f, l.bytes, l.slots);
	if (!d)
		return -ENOMEM;
	ret = hawk_draft_bind_to(f, d, arg->seq);
	if (ret)
		goto err_free;
	/* from here on another thread may close it */
	ret = xa_alloc(&f->drafts, &id, d, XA_LIMIT(0, HAWK_DRAFTS_MAX - 1), GFP_KERNEL_ACCOUNT);
	if (ret) {
		ret = ret == -EBUSY ? -ENOSPC : ret;
		goto err_free;
	}
	arg->slots = l.slots;
	arg->id = id;
	arg->row_blocks = l.row_blocks;
	arg->offset = HAWK_MMAP_DRAFT(id);
	arg->bytes = l.bytes;
	return 0;

err_free:
	hawk_draft_free(f, d);
	return ret;
}

/* HAWK_IOC_DRAFT_CLOSE */
int hawk_ioc_draft_close(struct hawk_file *f, void *data)
{
	struct hawk_draft_close *arg = data;
	struct hawk_draft_mem *d;
	int ret = 0;

	if (arg->reserved)
		return -EOPNOTSUPP;
	xa_lock(&f->drafts);
	d = xa_load(&f->drafts, arg->id);
	if (!d)
		ret = -ENOENT;
	else if (atomic_read(&d->mapped))
		ret = -EBUSY;
	else
		__xa_erase(&f->drafts, arg->id);
	xa_unlock(&f->drafts);
	if (ret)
		return ret;
	arg->head = READ_ONCE(d->page->head);
	hawk_draft_free(f, d);
	return 0;
}

/* The file ends: nothing of it is mapped any more.  Its space is still there. */
void hawk_draft_close_all(struct hawk_file *f)
{
	struct hawk_draft_mem *d;
	unsigned long id;

	xa_for_each(&f->drafts, id, d)
		hawk_draft_free(f, d);
}

/* ---- mappings ---- */

static struct hawk_draft_mem *hawk_vma_draft(const struct vm_area_struct *vma)
{
	return vma->vm_private_data;
}

static void hawk_draft_vm_open(struct vm_area_struct *vma)
{
	atomic_inc(&hawk_vma_draft(vma)->mapped);
}

static void hawk_draft_vm_close(struct vm_area_struct *vma)
{
	atomic_dec(&hawk_vma_draft(vma)->mapped);
}

static vm_fault_t hawk_draft_vm_fault(struct vm_fault *vmf)
{
	u64 off = (u64)vmf->pgoff << PAGE_SHIFT;
	void *base = hawk_vma_draft(vmf->vma)->page;

	return vmf_insert_page(vmf->vma, vmf->address & PAGE_MASK,
			       vmalloc_to_page(base + off % HAWK_DRAFT_BYTES_MAX));
}

static const struct vm_operations_struct hawk_draft_vm_ops = {
	.open = hawk_draft_vm_open,
	.close = hawk_draft_vm_close,
	.fault = hawk_draft_vm_fault,
};

/**
 * hawk_draft_mmap() - map a ring or a part of it
 * @f: the file
 * @vma: the mapping, MAP_SHARED
 * @off: its offset in the area of draft rings, bytes
 *
 * Context: under mmap_lock.
 * Return: 0; -ENXIO: no such ring; -EINVAL: beyond its end.
 */
int hawk_draft_mmap(struct hawk_file *f, struct vm_area_struct *vma, u64 off)
{
	u64 at = off % HAWK_DRAFT_BYTES_MAX;
	struct hawk_draft_mem *d;
	int ret = 0;

	xa_lock(&f->drafts);
	d = xa_load(&f->drafts, off / HAWK_DRAFT_BYTES_MAX);
	if (!d)
		ret = -ENXIO;
	else if (at >= d->bytes || vma->vm_end - vma->vm_start > d->bytes - at)
		ret = -EINVAL;
	else
		atomic_inc(&d->mapped);
	xa_unlock(&f->drafts);
	if (ret)
		return ret;
	vma->vm_private_data = d;
	vma->vm_ops = &hawk_draft_vm_ops;
	return 0;
}
