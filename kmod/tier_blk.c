// SPDX-License-Identifier: GPL-2.0
/*
 * tier_blk.c - a block device or a regular file, read and written with O_DIRECT
 *
 * The pages of the host frame are given to the file as they are (ITER_BVEC), so
 * the drive transfers straight from and to them.  Both kinds of file take the
 * same call; a block device is opened exclusively, so that a mounted one is
 * refused.  A regular file is locked with flock(2) from before it is looked at until
 * its tier is gone: no two tiers, here or of a process with the embedded backend, use
 * one, and hawkctl flash leaves it alone.  All contact with file systems and block devices is in this file.
 */
#include "hawk.h"
#include "move.h"
#include "pool.h"
#include "submit.h"

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

/* @type: F_WRLCK or F_UNLCK.  Return: 0; -EAGAIN: another has it; others. */
static int hawk_blk_flock(struct file *file, int type)
{
	struct file_lock fl;

	locks_init_lock(&fl);
	fl.fl_end = OFFSET_MAX;
	HAWK_FILE_LOCK(&fl, file) = file;
	HAWK_FILE_LOCK(&fl, owner) = (fl_owner_t)file;
	HAWK_FILE_LOCK(&fl, pid) = current->tgid;
	HAWK_FILE_LOCK(&fl, flags) = FL_FLOCK;
	HAWK_FILE_LOCK(&fl, type) = type;
	if (file->f_op->flock)
		return file->f_op->flock(file, F_SETLK, &fl);
	return locks_lock_file_wait(file, &fl);
}

static void hawk_blk_release(struct hawk_mem *m)
{
	hawk_submit_stop(m);
	hawk_pool_stop(m);	/* the last commit may still fail, which health is told */
	hawk_health_stop(m);
	if (!m->file)
		return;
	/* the last fput() may come later than the next one who wants it */
	if (S_ISREG(m->file->f_mapping->host->i_mode))
		hawk_blk_flock(m->file, F_UNLCK);
	fput(m->file);
}

/* Nobody can read a flash frame that its present owner has not written before. */
static bool hawk_blk_clean(struct hawk_mem *m, u32 chunk)
{
	hawk_pool_clean(m, chunk);
	return true;
}

static void hawk_blk_end(struct kiocb *iocb, long ret)
{
	struct hawk_io *io = container_of(iocb, struct hawk_io, iocb);

	if ((iocb->ki_flags & IOCB_WRITE) && S_ISREG(file_inode(iocb->ki_filp)->i_mode))
		kiocb_end_write(iocb);
	hawk_health_end(io->flash);
	hawk_io_end(io, ret);
}

static void hawk_blk_submit(struct hawk_mem *m, struct hawk_io *io)
{
	bool write = io->move.kind == HAWK_MOVE_WRITE;
	struct iov_iter iter;
	ssize_t ret;

	io->flash = m;
	hawk_health_begin(m);
	iov_iter_bvec(&iter, write ? ITER_SOURCE : ITER_DEST, io->bv, io->nbv,
		      io->bytes);
	init_sync_kiocb(&io->iocb, m->file);
	io->iocb.ki_pos = m->data_off + (write ? io->move.dst_off : io->move.src_off);
	io->iocb.ki_complete = hawk_blk_end;
	if (write) {
		io->iocb.ki_flags |= IOCB_WRITE;
		if (S_ISREG(file_inode(m->file)->i_mode))
			kiocb_start_write(&io->iocb);
		ret = m->file->f_op->write_iter(&io->iocb, &iter);
	} else {
		ret = m->file->f_op->read_iter(&io->iocb, &iter);
	}
	if (ret != -EIOCBQUEUED)
		hawk_blk_end(&io->iocb, ret);
}

static const struct hawk_mem_ops hawk_blk_ops = {
	.release = hawk_blk_release,
	.clean = hawk_blk_clean,
	.submit = hawk_blk_submit,
};

/* Return: the path, to be freed by the caller, or an ERR_PTR. */
static char *hawk_blk_path(const struct hawk_tier_add *arg)
{
	char *path = memdup_user(u64_to_user_ptr(arg->path), arg->path_len);

	if (IS_ERR(path))
		return path;
	if (strnlen(path, arg->path_len) != arg->path_len - 1) {
		kfree(path);
		return ERR_PTR(-EINVAL);
	}
	return path;
}

/* Other kinds refuse O_DIRECT with an error that tells nobody why. */
static int hawk_blk_check_path(const char *name)
{
	struct path path;
	umode_t mode;
	int ret = kern_path(name, LOOKUP_FOLLOW, &path);

	if (ret)
		return ret;
	mode = d_backing_inode(path.dentry)->i_mode;
	path_put(&path);
	return S_ISBLK(mode) || S_ISREG(mode) ? 0 : -ENOTBLK;
}

/* Fit for O_DIRECT transfers of whole pages? */
static int hawk_blk_check(struct file *file, const char *path)
{
	struct inode *inode = file->f_mapping->host;

	if (!S_ISBLK(inode->i_mode) && !S_ISREG(inode->i_mode))
		return -ENOTBLK;	/* it has become another since we looked */
	if (!file->f_op->read_iter || !file->f_op->write_iter) {
		pr_err_ratelimited("%s: its file system has no direct I/O\n", path);
		return -EINVAL;
	}
	if (S_ISBLK(inode->i_mode) &&
	    bdev_logical_block_size(I_BDEV(inode)) > HAWK_FRAME_ALIGN) {
		pr_err_ratelimited("%s: its blocks are larger than %u bytes\n", path,
				   HAWK_FRAME_ALIGN);
		return -EINVAL;
	}
	return 0;
}

/* The NUMA node of the drive that @file is or lies on. */
static int hawk_blk_node(struct file *file)
{
	struct inode *inode = file->f_mapping->host;
	const struct block_device *bdev = inode->i_sb->s_bdev;

	if (S_ISBLK(inode->i_mode))
		bdev = I_BDEV(inode);
	return bdev ? bdev->bd_disk->node_id : NUMA_NO_NODE;
}

static int hawk_blk_lock(struct file *file, const char *path)
{
	int ret = 0;

	if (S_ISREG(file->f_mapping->host->i_mode))
		ret = hawk_blk_flock(file, F_WRLCK);
	if (ret == -EAGAIN) {
		pr_err_ratelimited("%s: is in use, by a tier or by a process\n", path);
		return -EBUSY;
	}
	if (ret)
		pr_err_ratelimited("%s: cannot be locked: %d\n", path, ret);
	return ret;
}

/* A pool is used as one or not at all. */
static int hawk_blk_open_pool(struct hawk_mem *m, const char *path, u64 size, bool persist)
{
	int ret = hawk_pool_attach(m, size);

	if (persist) {
		if (ret)
			pr_err_ratelimited("%s: no pool that can be used: %d; see hawkctl flash\n",
					   path, ret);
		return ret;
	}
	hawk_pool_file_free(m);
	switch (ret) {
	case -ENOENT:
		return 0;
	case 0:
	case -EILSEQ:
	case -EUCLEAN:
	case -EPROTONOSUPPORT:
	case -ENOSPC:
		pr_err_ratelimited("%s: is a pool with blocks that are kept: add it as one, or overwrite it\n",
				   path);
		return -EEXIST;
	default:
		/* blocks that are kept might be overwritten */
		pr_err_ratelimited("%s: cannot tell whether it is a pool: %d\n", path, ret);
		return ret;
	}
}

/* All of it is payload, from its start on. */
static int hawk_blk_open_plain(struct hawk_mem *m, const char *path, u64 size, u64 bytes)
{
	bool reg = S_ISREG(m->file->f_mapping->host->i_mode);
	u64 mark;
	int ret;

	mark = hawk_plain_layout(size, bytes, reg, &m->chunks);
	if (bytes > size || !m->chunks) {
		pr_err_ratelimited("%s: has %llu bytes, needed are %llu\n", path, size,
				   max_t(u64, bytes, HAWK_CHUNK_BYTES));
		return -ENOSPC;
	}
	ret = hawk_pool_mark_plain(m, size, mark);
	if (ret)
		pr_err_ratelimited("%s: cannot be marked as plain flash: %d\n", path, ret);
	return ret;
}

static int hawk_blk_open(struct hawk_mem *m, const char *path, u64 bytes, bool persist)
{
	struct file *file;
	u64 size;
	int ret;

	ret = hawk_blk_check_path(path);
	if (ret) {
		pr_err_ratelimited("%s: no block device or regular file: %d\n", path, ret);
		return ret;
	}
	file = filp_open(path, O_RDWR | O_DIRECT | O_LARGEFILE | O_EXCL | O_NONBLOCK, 0);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		pr_err_ratelimited("%s: cannot be opened for direct reading and writing: %d\n",
				   path, ret);
		return ret;
	}
	m->file = file;
	ret = hawk_blk_check(file, path) ?: hawk_blk_lock(file, path);
	ret = ret ?: hawk_submit_start(m, hawk_blk_node(file));
	if (ret)
		return ret;
	size = i_size_read(file->f_mapping->host);
	ret = hawk_blk_open_pool(m, path, size, persist);
	if (ret || persist)
		return ret;
	return hawk_blk_open_plain(m, path, size, bytes);
}

/**
 * hawk_mem_create_blk() - open a device or file as memory
 * @arg: checked argument of the call
 *
 * Return: the memory or an ERR_PTR of what &struct hawk_tier_add tells.
 */
struct hawk_mem *hawk_mem_create_blk(const struct hawk_tier_add *arg)
{
	struct hawk_mem *m;
	char *path;
	int ret;

	path = hawk_blk_path(arg);
	if (IS_ERR(path))
		return ERR_CAST(path);
	m = hawk_mem_alloc(&hawk_blk_ops, HAWK_TIER_BLK, 0);
	ret = m ? hawk_blk_open(m, path, arg->bytes, arg->flags & HAWK_TIER_PERSIST) : -ENOMEM;
	kfree(path);
	if (ret && m)
		kobject_put(&m->kobj);
	return ret ? ERR_PTR(ret) : m;
}
