/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mem.h - memory of a tier: what each kind of it does, and what is known of one
 *
 * tier.c has what all kinds have in common; a kind is a struct hawk_mem_ops: pages of a
 * NUMA node (tier_host.c), a drive or file (tier_blk.c), another driver's dma-buf
 * (tier_dmabuf.c), a provider's (provider.c).
 */
#ifndef HAWK_MEM_H
#define HAWK_MEM_H

#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/types.h>

#include "clean.h"
#include "health.h"
#include "provider.h"

#define HAWK_CHUNK_SHIFT	21
#define HAWK_CHUNK_ORDER	(HAWK_CHUNK_SHIFT - PAGE_SHIFT)
#define HAWK_CHUNK_PAGES	(1u << HAWK_CHUNK_ORDER)

struct hawk_import;
struct hawk_io;
struct hawk_mem;
struct hawk_pool_file;
struct hawk_submit_queue;
struct hawk_tier_add;

/**
 * struct hawk_mem_ops - what a kind of memory does
 * @release: give the memory back; the tier is in no use
 * @populate: give chunk @chunk its memory, zeroed; 0 or -ENOMEM.  May sleep.  NULL:
 *	chunks always have it
 * @clean: chunk @chunk has left its owner: take its memory away or make it fit for
 *	another; false: not now, somebody outside still holds its pages.  May sleep.
 * @held: does somebody outside hold pages of chunk @chunk?  @mapped: page tables may
 *	lead to it, look only for what holds pages for long.  NULL for kinds without
 *	pages
 * @page: the page at byte offset @off; NULL for kinds without pages
 * @pfn: of a kind without pages whose memory the CPU can map: the page frame number at
 *	byte offset @off, to be mapped write-combining
 * @submit: start the I/O of a move from or to this tier; ends in
 *	hawk_io_end(), maybe before it returns.  May sleep.  NULL for host memory
 * @xfer: move a frame's bytes between offset @off and the pages of @io, into the
 *	memory or out of it; ends as @submit.  NULL: the CPU may do it by @page
 */
struct hawk_mem_ops {
	void (*release)(struct hawk_mem *m);
	int (*populate)(struct hawk_mem *m, u32 chunk);
	bool (*held)(struct hawk_mem *m, u32 chunk, bool mapped);
	bool (*clean)(struct hawk_mem *m, u32 chunk);
	struct page *(*page)(struct hawk_mem *m, u64 off);
	unsigned long (*pfn)(struct hawk_mem *m, u64 off);
	void (*submit)(struct hawk_mem *m, struct hawk_io *io);
	void (*xfer)(struct hawk_mem *m, struct hawk_io *io, u64 off, bool write);
};

/**
 * struct hawk_host_chunk - pages of one chunk of a host tier, none if it has no owner
 * @base: first page, if the chunk is physically contiguous
 * @table: else its HAWK_CHUNK_PAGES pages
 */
struct hawk_host_chunk {
	struct page *base;
	struct page **table;
};

/**
 * struct hawk_mem_count - bytes moved and the CPU time it took, of one CPU
 * @read: by reloads
 * @write: by evictions and writing ahead
 * @submit_ns: transfers given to the drive, nanoseconds
 * @complete_ns: ends of transfers but for @checksum_ns
 * @checksum_ns: checksums of blocks
 * @copy_ns: copies out of the tier to who asked for its blocks
 */
struct hawk_mem_count {
	u64 read;
	u64 write;
	u64 submit_ns;
	u64 complete_ns;
	u64 checksum_ns;
	u64 copy_ns;
};

/**
 * struct hawk_mem - memory of one tier
 * @kobj: its sysfs folder; owns this structure
 * @ops: what this kind does
 * @id: tier id
 * @kind: enum hawk_tier_kind
 * @node: NUMA node or NUMA_NO_NODE
 * @chunks: capacity in chunks
 * @chunk: pages by chunk (host)
 * @file: device or file (blk)
 * @pool: what makes it persistent, or NULL (blk)
 * @submit: its submission threads (blk)
 * @data_off: bytes in the file before the first chunk (blk)
 * @provider: the provider's own (model, bar)
 * @provider_ops: what it does (model, bar)
 * @import: the dma-buf (dmabuf)
 * @count: bytes read by reloads and written by evictions, and CPU time, per CPU
 * @io_errors: failed or corrupt transfers
 * @exported_bytes: pinned by exports
 * @reclaimed_bytes: taken from spaces that went on living
 * @shrink_pages: pages that the shrinker has asked for and not got yet
 * @ended: spaces with a part in it that are gone, ever; written under hawk_device.lock
 * @lost: the memory is gone by surprise: no transfer, no page of it any more
 * @gone: removed: its id may be another tier's.  Spaces that had a quota in it keep
 *	this structure
 * @released: @ops->release has been called
 * @writeback_permille: clean or free frames wanted per 1024 (sysfs, host)
 * @cleaner: takes care of chunks that left their owner
 * @watch: for drives that fail (blk)
 */
struct hawk_mem {
	struct kobject kobj;
	const struct hawk_mem_ops *ops;
	u32 id;
	u32 kind;
	s32 node;
	u32 chunks;
	struct hawk_host_chunk *chunk;
	struct file *file;
	struct hawk_pool_file *pool;
	struct hawk_submit_queue *submit;
	u64 data_off;
	void *provider;
	const struct hawk_provider_ops *provider_ops;
	struct hawk_import *import;
	struct hawk_mem_count __percpu *count;
	atomic64_t io_errors;
	atomic64_t exported_bytes;
	atomic64_t reclaimed_bytes;
	atomic_long_t shrink_pages;
	unsigned int ended;
	bool lost;
	bool gone;
	bool released;
	unsigned int writeback_permille;
	struct hawk_cleaner cleaner;
	struct hawk_watch watch;
};

void hawk_mem_remove_all(void);
struct hawk_mem *hawk_mem_find(u32 tier);
int hawk_mem_remove(struct hawk_mem *m);
void hawk_mem_release(struct hawk_mem *m);
struct hawk_mem *hawk_mem_create_host(const struct hawk_tier_add *arg);
struct hawk_mem *hawk_mem_create_blk(const struct hawk_tier_add *arg);
struct hawk_mem *hawk_mem_create_dmabuf(const struct hawk_tier_add *arg);
struct hawk_mem *hawk_mem_alloc(const struct hawk_mem_ops *ops, u32 kind, u32 chunks);
int hawk_mem_publish(struct hawk_mem *m);
int hawk_mem_usage(struct hawk_mem *m, u64 *free_bytes, u64 *quarantine_bytes);
int hawk_import_init(void);
void hawk_import_stop(void);
void hawk_import_exit(void);

struct hawk_mem_count hawk_mem_counted(const struct hawk_mem *m);

#endif /* HAWK_MEM_H */
