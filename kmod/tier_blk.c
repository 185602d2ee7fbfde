// SPDX-License-Identifier: GPL-2.0
/*
 * tier_blk.c - a block device or a regular file, read and written with O_DIRECT
 *
 * The pages of the host frame are given to the file as they are (ITER_BVEC), so
 * the drive transfers straight from and to them.  Both kinds of file take the
 * same call; a block device is opened exclusively, so that a mounted one is
 * refused.  All contact with file systems and block devices is in this file.
 */
#include "hawk.h"
#include "pool.h"
#include "submit.h"

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

static void hawk_blk_release(struct hawk_mem *m)
{
	hawk_submit_stop(m);
	hawk_pool_stop(m);
	if (m->file)
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
	hawk_io_end(io, ret);
}

static void hawk_blk_submit(struct hawk_mem *m, struct hawk_io *io)
{
	bool write = io->move.kind == HAWK_MOVE_WRITE;
	struct iov_iter iter;
	ssize_t ret;

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
	ret = hawk_blk_check(file, path) ?: hawk_submit_start(m, hawk_blk_node(file));
	if (ret)
		return ret;
	size = i_size_read(file->f_mapping->host);
	ret = hawk_blk_open_pool(m, path, size, persist);
	if (ret || persist)
		return ret;
	m->chunks = hawk_chunks(bytes ? bytes : size);
	if (!m->chunks || size < (u64)m->chunks << HAWK_CHUNK_SHIFT) {
		pr_err_ratelimited("%s: has %llu bytes, needed are %llu\n", path, size,
				   max_t(u64, bytes, HAWK_CHUNK_BYTES));
		return -ENOSPC;
	}
	return 0;
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

/**
 * hawk_blk_check_unused() - is the file no tier yet, under any of its names?
 * @m: memory of any kind, not published yet
 *
 * Two tiers on one file would overwrite each other's blocks.  A device cannot get
 * here twice: it is opened exclusively.
 *
 * Context: under hawk_device.lock.
 * Return: 0 or -EBUSY.
 */
int hawk_blk_check_unused(const struct hawk_mem *m)
{
	u32 t;

	lockdep_assert_held(&hawk_dev.lock);
	if (!m->file)
		return 0;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		const struct hawk_mem *other = hawk_dev.mem[t];

		if (!other || !other->file ||
		    other->file->f_mapping->host != m->file->f_mapping->host)
			continue;
		pr_err_ratelimited("%pD4: is tier %u already\n", m->file, t);
		return -EBUSY;
	}
	return 0;
}
