/* SPDX-License-Identifier: GPL-2.0 */
/*
 * provider.h - how another module gives hawk.ko a tier (namespace HAWK)
 *
 * For memory that a device has and its driver moves bytes to and from.  Blocks live in
 * it, windows map it, and what goes to flash and comes back passes through pages that
 * hawk.ko lends to the provider.  Memory made of pages is a HAWK_TIER_MODEL to clients;
 * that of a PCI BAR has none and is a HAWK_TIER_BAR: windows map it write-combining, and
 * nobody can pin it (ibv_reg_mr(), io_uring) or export it.
 *
 * The life of a tier: hawk_provider_add(); then it is an admin's to remove
 * (HAWK_IOC_TIER_REMOVE), which ends with @release.  hawk.ko holds the provider's
 * module until then, and the provider's module holds hawk.ko.
 */
#ifndef HAWK_PROVIDER_H
#define HAWK_PROVIDER_H

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/types.h>

struct module;

/**
 * struct hawk_provider_xfer - bytes to be moved between the tier and pages
 * @off: byte offset in the tier, page-aligned
 * @len: bytes, whole pages: one block, or several that are neighbours
 * @write: into the tier
 * @bv: the pages; they stay until hawk_provider_done()
 * @nbv: entries of @bv
 * @node: for the provider's queue
 */
struct hawk_provider_xfer {
	u64 off;
	u32 len;
	bool write;
	struct bio_vec *bv;
	u32 nbv;
	struct list_head node;
};

/**
 * struct hawk_provider_ops - what a provider does
 * @owner: its module
 * @xfer: start a transfer; it ends by hawk_provider_done(), exactly once and maybe
 *	before @xfer returns, in any context.  It may take as long as the device
 *	takes: callers have deadlines.  May sleep
 * @page: the page at byte offset @off.  It must stay valid memory, also when the
 *	device is gone, until @release.  NULL: there are none, it is a BAR
 * @pfn: of a BAR: the page frame number at byte offset @off.  It is mapped by windows
 *	until hawk_provider_lost() returns, or until @release
 * @zero: of a BAR: zero a range of whole pages, before another owner gets it; 0 or a
 *	negative errno, it is asked again later then.  May sleep.  Needed if @page is NULL
 * @release: the tier is gone; no transfer is in flight and no page is used.
 *	May sleep
 *
 * No lock of hawk.ko is held in any of them that the provider could need.
 */
struct hawk_provider_ops {
	struct module *owner;
	void (*xfer)(void *provider, struct hawk_provider_xfer *x);
	struct page *(*page)(void *provider, u64 off);
	unsigned long (*pfn)(void *provider, u64 off);
	int (*zero)(void *provider, u64 off, u64 len);
	void (*release)(void *provider);
};

/**
 * hawk_provider_add() - make memory a tier
 * @ops: what it does; static
 * @provider: given to each of @ops
 * @bytes: size, rounded down to whole chunks of 2 MiB; all zero
 *
 * Context: may sleep.
 * Return: the tier's id; -EINVAL less than a chunk; -ENOSPC no free tier id; -ENOMEM;
 * -ENODEV @ops->owner is going.  On an error @ops->release is not called.
 */
int hawk_provider_add(const struct hawk_provider_ops *ops, void *provider, u64 bytes);

/**
 * hawk_provider_done() - a transfer has ended
 * @x: the transfer; not the provider's any more
 * @ret: 0 or a negative errno: the block is a miss then
 *
 * Context: any.
 */
void hawk_provider_done(struct hawk_provider_xfer *x, int ret);

/**
 * hawk_provider_lost() - the device has gone by surprise
 * @provider: as given to hawk_provider_add()
 *
 * Its blocks become misses, mappings of windows give SIGBUS, exports are revoked;
 * then the tier is removed.  Transfers in flight must still be ended.
 * Context: may sleep; @ops->release may run before it returns, or may have run
 * before.
 */
void hawk_provider_lost(const void *provider);

/**
 * struct hawk_provider_block - a block that is held
 * @off: byte offset of its frame in the tier
 * @block: hawk.ko's
 * @gen: hawk.ko's
 */
struct hawk_provider_block {
	u64 off;
	u32 block;
	u32 gen;
};

/**
 * struct hawk_provider_hold - blocks of a client that stay where they are
 * @file: the client's file of /dev/hawk; hawk.ko's
 * @block_bytes: size of each
 * @n: entries of @at
 * @at: the blocks, in the order in which they were asked for
 */
struct hawk_provider_hold {
	struct file *file;
	u32 block_bytes;
	u32 n;
	struct hawk_provider_block at[];
};

/**
 * hawk_provider_hold() - find and hold blocks that a client names
 * @fd: descriptor of a file of /dev/hawk, of the calling process
 * @provider: as given to hawk_provider_add()
 * @lids: names of the blocks, in the space of that file
 * @n: how many; the caller bounds it
 * @write: they are to be written
 *
 * They stay in their frames until hawk_provider_unhold(), which must not take long: they
 * are charged to nobody.  The memory itself may be lost meanwhile.
 *
 * Context: process, may sleep.
 * Return: the blocks, or an ERR_PTR: -EBADF: @fd is no file of /dev/hawk; -ENXIO: it has
 * no space; -EACCES: it may not be read, or, for @write, written; -ENOENT: no such block;
 * -EAGAIN: a block is not in memory, or is being filled by another; -EXDEV: it is in
 * another tier; -ENODEV: the tier is lost; -EOVERFLOW: it has too many pins; -ENOMEM.
 */
struct hawk_provider_hold *hawk_provider_hold(int fd, const void *provider, const u64 *lids,
					      u32 n, bool write);

/**
 * hawk_provider_unhold() - let them go
 * @h: from hawk_provider_hold(); freed
 *
 * Context: may sleep.
 */
void hawk_provider_unhold(struct hawk_provider_hold *h);

#endif /* HAWK_PROVIDER_H */
