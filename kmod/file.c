// SPDX-License-Identifier: GPL-2.0
/*
 * file.c - open files
 *
 * A file ends in two steps.  Its last descriptor and mapping gone, it is closed:
 * leases end, batches under way give up.  When the last of those is gone too,
 * its pins are dropped, which ends blocks that it was filling, its sequences end,
 * and its space is put.  Without batches under way both happen before close() returns.
 *
 * All of this belongs to the open file, not to a process: after fork() or when the
 * descriptor has been passed on, every holder uses the same pins, leases and ring,
 * and the file ends with the last of them.
 */
#include "hawk.h"
#include "uring.h"

#include <linux/slab.h>

static atomic64_t hawk_file_ids = ATOMIC64_INIT(0);

static int hawk_open(struct inode *inode, struct file *file)
{
	struct hawk_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!f)
		return -ENOMEM;
	ret = hawk_inode_attach(f, file);
	if (ret) {
		kfree(f);
		return ret;
	}
	kref_init(&f->ref);
	f->id = atomic64_inc_return(&hawk_file_ids);
	mutex_init(&f->lock);
	xa_init_flags(&f->pins, XA_FLAGS_ACCOUNT);
	xa_init_flags(&f->leases, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	xa_init_flags(&f->drafts, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	spin_lock_init(&f->jobs_lock);
	INIT_LIST_HEAD(&f->jobs);
	init_waitqueue_head(&f->wait);
	hawk_memlock_open(f);
	f->writable = file->f_mode & FMODE_WRITE;
	file->private_data = f;
	return nonseekable_open(inode, file);
}

static void hawk_file_free(struct kref *ref)
{
	struct hawk_file *f = container_of(ref, struct hawk_file, ref);

	if (f->as) {
		hawk_pin_drop_all(f);
		hawk_draft_close_all(f);
		hawk_seq_close(f);	/* what it shows is pinned by others only now */
		hawk_file_unlink(f);
	}
	/* Before the space is put: that is what the module's exit waits for. */
	iput(f->inode);
	if (f->as)
		hawk_as_put(f->as);
	if (f->cq)
		hawk_cq_destroy(f->cq);
	xa_destroy(&f->drafts);
	xa_destroy(&f->leases);
	xa_destroy(&f->pins);
	hawk_memlock_close(f);
	kfree(f);
}

void hawk_file_put(struct hawk_file *f)
{
	kref_put(&f->ref, hawk_file_free);
}

static int hawk_release(struct inode *inode, struct file *file)
{
	struct hawk_file *f = file->private_data;

	WRITE_ONCE(f->closed, true);
	if (f->as) {
		wake_up_all(&f->as->wait);
		hawk_lease_release_all(f);
		hawk_export_close(f);
		hawk_as_closed(f->as);
	}
	hawk_file_put(f);
	return 0;
}

static __poll_t hawk_poll(struct file *file, poll_table *wait)
{
	struct hawk_file *f = file->private_data;
	struct hawk_cq *cq;

	poll_wait(file, &f->wait, wait);
	cq = hawk_file_cq(f);
	if (!cq)
		return EPOLLERR;	/* without a ring nothing will ever arrive */
	return hawk_cq_readable(cq) ? EPOLLIN | EPOLLRDNORM : 0;
}

const struct file_operations hawk_fops = {
	.owner = THIS_MODULE,
	.open = hawk_open,
	.release = hawk_release,
	.unlocked_ioctl = hawk_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = hawk_mmap,
	.poll = hawk_poll,
#ifdef HAWK_URING
	.uring_cmd = hawk_uring_cmd,
#endif
	.llseek = noop_llseek,
};
