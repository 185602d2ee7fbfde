/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - the newest kernel API, also on older kernels
 *
 * The code uses the newest names; here they are made from what an older kernel
 * has.  HAVE_* come from the compile probes (Kbuild, probe/), never from a
 * version: distributions backport.
 */
#ifndef HAWK_COMPAT_H
#define HAWK_COMPAT_H

#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "hawk-probes.h"

/* One argument since 6.8; drop when 6.8 is the oldest kernel. */
#ifndef HAVE_EVENTFD_SIGNAL_1ARG
#define eventfd_signal(ctx)	((void)eventfd_signal(ctx, 1))
#endif

/* Since 6.3, vm_flags const; drop when 6.3 is the oldest kernel. */
#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* Allocated by the kernel since 6.7; drop when 6.7 is the oldest kernel. */
#ifndef HAVE_SHRINKER_ALLOC
#define SHRINKER_NAME	"hawk"	/* shrinkers are named when they are registered */

static inline struct shrinker *hawk_shrinker_alloc(unsigned int flags)
{
	struct shrinker *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (s) {
		s->flags = flags;
		s->seeks = DEFAULT_SEEKS;
	}
	return s;
}
#define shrinker_alloc(flags, name)	hawk_shrinker_alloc(flags)

static inline void shrinker_register(struct shrinker *s)
{
	if (register_shrinker(s, SHRINKER_NAME))
		pr_warn("no memory for the shrinker: host tiers give nothing back\n");
}

static inline void shrinker_free(struct shrinker *s)
{
	unregister_shrinker(s);
	kfree(s);
}
#endif

/* A plain number since 6.17, pfn_t before; drop when 6.17 is the oldest kernel. */
#ifndef HAVE_VMF_INSERT_MIXED_PFN
#include <linux/pfn_t.h>
#define vmf_insert_mixed(vma, addr, pfn) vmf_insert_mixed(vma, addr, pfn_to_pfn_t(pfn))
#endif

/*
 * Since 6.6; drop when 6.6 is the oldest kernel.  The write ends in another
 * thread than it starts in, so lockdep is told that the lock was handed over.
 */
#ifndef HAVE_KIOCB_START_WRITE
static inline void kiocb_start_write(struct kiocb *iocb)
{
	struct super_block *sb = file_inode(iocb->ki_filp)->i_sb;

	sb_start_write(sb);
	__sb_writers_release(sb, SB_FREEZE_WRITE);
}

static inline void kiocb_end_write(struct kiocb *iocb)
{
	struct super_block *sb = file_inode(iocb->ki_filp)->i_sb;

	__sb_writers_acquired(sb, SB_FREEZE_WRITE);
	sb_end_write(sb);
}
#endif

/* In fs.h until 6.3; drop when 6.3 is the oldest kernel. */
#ifdef HAVE_FILELOCK_H
#include <linux/filelock.h>
#endif

/* One level down since 6.9; drop when 6.9 is the oldest kernel. */
#ifdef HAVE_FILE_LOCK_CORE
#define HAWK_FILE_LOCK(fl, field)	((fl)->c.flc_##field)
#else
#define HAWK_FILE_LOCK(fl, field)	((fl)->fl_##field)
#endif

/* Namespaces of symbols are strings since 6.13; drop when 6.13 is the oldest kernel. */
#ifdef HAVE_IMPORT_NS_TOKEN
#define HAWK_IMPORT_NS(ns)	MODULE_IMPORT_NS(ns)
#define HAWK_EXPORT_SYMBOL(sym)	EXPORT_SYMBOL_NS_GPL(sym, HAWK)
#else
#define HAWK_IMPORT_NS(ns)	MODULE_IMPORT_NS(#ns)
#define HAWK_EXPORT_SYMBOL(sym)	EXPORT_SYMBOL_NS_GPL(sym, "HAWK")
#endif

/*
 * Until 7.1 exporters call dma_buf_move_notify(), importers have .move_notify; drop
 * when 7.1 is the oldest kernel.
 */
#ifdef HAVE_DMA_BUF_INVALIDATE_MAPPINGS
#define HAWK_MOVE_NOTIFY	invalidate_mappings
#else
#define HAWK_MOVE_NOTIFY	move_notify
#define dma_buf_invalidate_mappings(buf)	dma_buf_move_notify(buf)
#endif

/* Since 6.2 dma_buf_vmap() wants dma_resv held; drop when 6.2 is the oldest kernel. */
#ifndef HAVE_DMA_BUF_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked(buf, map)		dma_buf_vmap(buf, map)
#define dma_buf_vunmap_unlocked(buf, map)	dma_buf_vunmap(buf, map)
#endif

#endif /* HAWK_COMPAT_H */
