/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pool_file.h - what pool.c and pool_scan.c know of the pool of a tier
 */
#ifndef HAWK_POOL_FILE_H
#define HAWK_POOL_FILE_H

#include "pool.h"

/**
 * struct hawk_pool_buf - memory to read and write a pool with
 * @lock: guards it; held over the transfers
 * @mem: @pages pages
 * @bv: room for as many
 * @pages: its size
 */
struct hawk_pool_buf {
	struct mutex lock;
	u8 *mem;
	struct bio_vec *bv;
	u32 pages;
};

/**
 * struct hawk_pool_file - the pool of a tier
 * @m: the tier
 * @super: its superblock
 * @started: both superblocks say that it is in use, and the file is open; guarded by the
 *	lock of @headers but when the tier is added
 * @headers: pages of headers that are collected, or of records when the tier is added
 * @record: a page of records that is changed; may be taken with @headers held
 * @list: what is in @headers; guarded by its lock
 * @header_bytes: headers and records written
 * @scan_left: chunks whose headers spaces that are being made have yet to read
 * @failed: some could not be
 * @torn: hawk_pool_torn()
 * @unflushed: headers or records have been written since the last flush
 * @sparse: a file that had no room for all of it when it was added
 * @kick_lock: guards @commits, and the queueing of @commit against its end; a leaf, taken with
 *	locks of the engine held
 * @commits: @commit may be queued
 * @commit: writes headers that have changed, of all spaces
 */
struct hawk_pool_file {
	struct hawk_mem *m;
	struct hawk_super super;
	bool started;
	struct hawk_pool_buf headers;
	struct hawk_pool_buf record;
	struct hawk_keep_page *list;
	atomic64_t header_bytes;
	atomic_t scan_left;
	bool failed;
	bool torn;
	bool unflushed;
	bool sparse;
	spinlock_t kick_lock;
	bool commits;
	struct delayed_work commit;
};

void hawk_pool_failed(struct hawk_mem *m, bool write, u64 off, int ret);

#endif /* HAWK_POOL_FILE_H */
