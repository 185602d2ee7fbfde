// SPDX-License-Identifier: GPL-2.0
/*
 * window.c - for other modules: what lies at an address of a mapped window (window.h)
 */
#include "export.h"
#include "window.h"

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

/* The file of the window that has the addresses, referenced, or NULL. */
static struct file *hawk_window_find(unsigned long addr, size_t size, bool *writable, u64 *offset)
{
	struct vm_area_struct *vma;
	struct file *file = NULL;

	if (!current->mm || !size || addr + size < addr)
		return NULL;
	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, addr);
	if (vma && addr >= vma->vm_start && addr + size <= vma->vm_end &&
	    hawk_vma_is_window(vma)) {
		file = get_file(vma->vm_file);
		*writable = vma->vm_flags & VM_WRITE;
		*offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (addr - vma->vm_start);
	}
	mmap_read_unlock(current->mm);
	return file;
}

bool hawk_window_has(unsigned long addr, size_t size)
{
	struct file *file;
	bool writable;
	u64 offset;

	file = hawk_window_find(addr, size, &writable, &offset);
	if (file)
		fput(file);
	return file;
}
HAWK_EXPORT_SYMBOL(hawk_window_has);

struct dma_buf *hawk_window_export(unsigned long addr, size_t size, bool write, u64 *offset)
{
	struct dma_buf *buf = ERR_PTR(-EACCES);
	u64 at, first, last;
	struct hawk_file *f;
	struct file *file;
	bool writable;
	u32 block;

	file = hawk_window_find(addr, size, &writable, &at);
	if (!file)
		return ERR_PTR(-ENXIO);
	if (write && !writable)
		goto out_put;
	f = file->private_data;
	block = f->as->info.block_bytes;
	first = HAWK_MMAP_TIER_OFFSET(at);
	last = (first + size - 1) / block;
	*offset = first % block;
	first /= block;
	buf = ERR_PTR(-E2BIG);
	if (last - first < HAWK_BATCH_MAX)
		buf = hawk_export_frames(f, HAWK_MMAP_TIER_ID(at), first, last - first + 1, !write);
out_put:
	fput(file);
	return buf;
}
HAWK_EXPORT_SYMBOL(hawk_window_export);
