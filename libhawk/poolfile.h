/* SPDX-License-Identifier: MIT */
/*
 * poolfile.h - a persistent pool on its device or file: made, opened, read
 *
 * For the embedded backend and hawkctl.  kmod/core/flashfmt.h has the format.
 */
#ifndef HAWK_POOLFILE_H
#define HAWK_POOLFILE_H

#include "../kmod/core/flashfmt.h"

/**
 * struct poolfile_params - a pool that is to be made
 * @bytes: of the pool
 * @slot_bytes: smallest block kept
 * @rated: rated endurance, bytes per day, or 0
 * @sparse: do not reserve the room of a file
 */
struct poolfile_params {
	u64 bytes;
	u32 slot_bytes;
	u64 rated;
	bool sparse;
};

/**
 * poolfile_size() - bytes of a device or file
 * Return: 0 or a negative errno.
 */
int poolfile_size(int fd, u64 *bytes);

/**
 * poolfile_supers() - read both superblocks
 * @fd: device or file
 * @s: out, both
 * @err: out, what hawk_super_decode() said of each, or the errno of reading it
 *
 * What is marked as plain flash has none.
 */
void poolfile_supers(int fd, struct hawk_super s[2], int err[2]);

/**
 * poolfile_make() - make an empty pool; what is there is lost
 * @fd: device or file, open for writing
 * @p: what is wanted
 * @s: out, its superblock
 *
 * Return: 0; -EINVAL (slot size), -ENOSPC (too small, or no room); others of writing.
 */
int poolfile_make(int fd, const struct poolfile_params *p, struct hawk_super *s);

/**
 * poolfile_plain() - use a device or file that is no pool as plain flash
 * @fd: open for writing, locked
 * @bytes: wanted, 0: all; no more than it has
 * @chunks: out; 0: it is too small, and nothing was written
 *
 * See to it that nobody takes its payload for a pool.
 * Return: 0 or a negative errno.
 */
int poolfile_plain(int fd, u64 bytes, u32 *chunks);

/** poolfile_sparse() - is it a file whose first @bytes do not all have room of their own? */
bool poolfile_sparse(int fd, u64 bytes);

/**
 * poolfile_discard() - what is there is not needed any more
 * @sparse: poolfile_sparse(); a file that has its room keeps it
 *
 * Advice: a drive or file system that cannot keeps the old bytes.
 */
void poolfile_discard(int fd, u64 off, u64 bytes, bool sparse);

/** poolfile_write_supers() - both, each durable before the next: 0 or a negative errno */
int poolfile_write_supers(int fd, const struct hawk_super *s);

/**
 * poolfile_read() - read all of something
 * @buf: aligned to HAWK_POOL_PAGE, as @off and @bytes are
 *
 * Return: 0; -EIO also if the file ends before.
 */
int poolfile_read(int fd, u64 off, void *buf, size_t bytes);

/** poolfile_write() - likewise; @flags: RWF_DSYNC or 0 */
int poolfile_write(int fd, u64 off, const void *buf, size_t bytes, int flags);

#endif /* HAWK_POOLFILE_H */
