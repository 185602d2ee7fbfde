// SPDX-License-Identifier: GPL-2.0
/*
 * inode.c - an address_space of its own for every open file
 *
 * Files of a character device share its inode, and with it one address_space.
 * Then a frame could not be taken out of the page tables of one space without a
 * walk over those of every other.  So each open file gets an inode from a file
 * system that nobody can mount, and a space knows its files.
 */
#include "hawk.h"

#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#define HAWK_FS_MAGIC	0x4861776b	/* "Hawk" */

static struct vfsmount *hawk_mnt;

static int hawk_fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, HAWK_FS_MAGIC) ? 0 : -ENOMEM;
}

/*
 * No owner: the mount lives as long as the module is loaded and would keep it from
 * being unloaded.  hawk_inode_exit() ends the mount before it returns.
 */
static struct file_system_type hawk_fs_type = {
	.name = "hawk",
	.init_fs_context = hawk_fs_init_context,
	.kill_sb = kill_anon_super,
};

int hawk_inode_init(void)
{
	hawk_mnt = kern_mount(&hawk_fs_type);
	return PTR_ERR_OR_ZERO(hawk_mnt);
}

/* All inodes are gone: they end with their struct hawk_file. */
void hawk_inode_exit(void)
{
	kern_unmount(hawk_mnt);
}

/**
 * hawk_inode_attach() - give a file that is being opened its own address_space
 * @f: our side of the file, without an inode
 * @file: the file; its mappings will be found through @f->inode
 *
 * Return: 0 or -ENOMEM.
 */
int hawk_inode_attach(struct hawk_file *f, struct file *file)
{
	struct inode *inode = alloc_anon_inode(hawk_mnt->mnt_sb);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	f->inode = inode;
	file->f_mapping = inode->i_mapping;
	return 0;
}

/* The file is bound to the space: what is taken from the space is unmapped from it. */
void hawk_file_link(struct hawk_file *f, struct hawk_as *as)
{
	down_write(&as->map_lock);
	list_add_tail(&f->node, &as->mappers);
	up_write(&as->map_lock);
}

void hawk_file_unlink(struct hawk_file *f)
{
	down_write(&f->as->map_lock);
	list_del(&f->node);
	up_write(&f->as->map_lock);
}

/**
 * hawk_as_zap() - take a part of a tier's window out of all page tables
 * @as: the space
 * @tier: whose window
 * @off: where in the window, bytes
 * @bytes: how much
 *
 * Context: map_lock held, may sleep.  As long as it is held for writing nobody maps
 * the pages again.
 */
void hawk_as_zap(struct hawk_as *as, u32 tier, u64 off, u64 bytes)
{
	struct hawk_file *f;

	lockdep_assert_held(&as->map_lock);
	list_for_each_entry(f, &as->mappers, node)
		unmap_mapping_range(f->inode->i_mapping, HAWK_MMAP_TIER(tier) + off, bytes, 1);
}
