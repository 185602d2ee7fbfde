// SPDX-License-Identifier: GPL-2.0
/*
 * memlock.c - pinned blocks and draft rings count against RLIMIT_MEMLOCK
 *
 * A pinned block cannot be moved, so it is locked memory like a registered
 * buffer of io_uring or an RDMA memory region, and is charged to the same
 * account, user_struct.locked_vm: that of the user who opened the file, once per
 * block and file, and once per block and export.  So is the memory of draft rings.
 * A file opened with CAP_IPC_LOCK is not charged.
 *
 * One atomic operation per block that a file pins for the first time or gives up:
 * no lock, and no charge in advance that another thread at the limit would feel.
 */
#include "hawk.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/uaccess.h>

#define HAWK_LIDS_AT_ONCE	32	/* copied in by a query */

void hawk_memlock_open(struct hawk_file *f)
{
	f->user = get_uid(current_user());
	f->memlock_exempt = capable(CAP_IPC_LOCK);
}

void hawk_memlock_close(struct hawk_file *f)
{
	free_uid(f->user);
}

static unsigned long hawk_block_pages(const struct hawk_file *f)
{
	return f->as->info.block_bytes >> PAGE_SHIFT;
}

/* Once per file: who reads it knows what to raise, and to what. */
static void hawk_memlock_tell(struct hawk_file *f, unsigned long pages, unsigned long limit,
			      unsigned long used)
{
	if (xchg(&f->memlock_told, true))
		return;
	pr_warn_ratelimited("pin refused: needs %lu KiB, RLIMIT_MEMLOCK is %lu KiB, user %u has %lu KiB in use; raise it (ulimit -l, LimitMEMLOCK=) or open the device with CAP_IPC_LOCK\n",
			    pages << (PAGE_SHIFT - 10), limit << (PAGE_SHIFT - 10),
			    from_kuid(&init_user_ns, f->user->uid), used << (PAGE_SHIFT - 10));
}

/**
 * hawk_memlock_limit() - the caller's RLIMIT_MEMLOCK
 *
 * Return: pages; ULONG_MAX >> PAGE_SHIFT or more for none.
 */
unsigned long hawk_memlock_limit(void)
{
	return rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

/**
 * hawk_memlock_charge_pages() - pages more that this file keeps from being reclaimed
 * @f: the file
 * @pages: how many
 * @limit: RLIMIT_MEMLOCK of the caller, pages
 *
 * Context: any.
 * Return: 0 or -ENOMEM.
 */
int hawk_memlock_charge_pages(struct hawk_file *f, unsigned long pages, unsigned long limit)
{
	long used;

	if (f->memlock_exempt)
		return 0;
	used = atomic_long_read(&f->user->locked_vm);
	do {
		if (pages > limit || used > limit - pages) {
			hawk_memlock_tell(f, pages, limit, used);
			hawk_trace_refuse_memlock(f, pages, limit, used);
			return -ENOMEM;
		}
	} while (!atomic_long_try_cmpxchg(&f->user->locked_vm, &used, used + pages));
	return 0;
}

void hawk_memlock_uncharge_pages(struct hawk_file *f, unsigned long pages)
{
	if (!f->memlock_exempt && pages)
		atomic_long_sub(pages, &f->user->locked_vm);
}

/**
 * hawk_memlock_charge() - blocks more that this file, or its export, has pinned
 * @f: the file
 * @blocks: how many
 * @limit: RLIMIT_MEMLOCK of the caller, pages
 *
 * Context: any.
 * Return: 0 or -ENOMEM.
 */
int hawk_memlock_charge(struct hawk_file *f, unsigned long blocks, unsigned long limit)
{
	return hawk_memlock_charge_pages(f, blocks * hawk_block_pages(f), limit);
}

void hawk_memlock_uncharge(struct hawk_file *f, unsigned long blocks)
{
	hawk_memlock_uncharge_pages(f, blocks * hawk_block_pages(f));
}

/* How many of @n LIDs name a block that this file has not pinned? */
static long hawk_lids_unpinned(struct hawk_file *f, const u64 __user *lids, u32 n)
{
	u64 lid[HAWK_LIDS_AT_ONCE];
	u32 got, i;
	long sum = 0;

	for (; n; n -= got, lids += got) {
		got = min_t(u32, n, HAWK_LIDS_AT_ONCE);
		if (copy_from_user(lid, lids, got * sizeof(*lid)))
			return -EFAULT;
		for (i = 0; i < got; i++)
			sum += !hawk_pin_has(f, lid[i]);
		cond_resched();
	}
	return sum;
}

int hawk_ioc_pin_query(struct hawk_file *f, void *arg)
{
	struct hawk_pin_query *q = arg;
	unsigned long limit = rlimit(RLIMIT_MEMLOCK);
	long blocks;

	if (q->reserved)
		return -EOPNOTSUPP;
	if (!q->count)
		return -EINVAL;
	if (q->count > HAWK_BATCH_MAX)
		return -E2BIG;
	blocks = q->lids ? hawk_lids_unpinned(f, u64_to_user_ptr(q->lids), q->count) : q->count;
	if (blocks < 0)
		return blocks;
	q->need_bytes = (u64)blocks * f->as->info.block_bytes;
	q->used_bytes = (u64)atomic_long_read(&f->user->locked_vm) << PAGE_SHIFT;
	q->limit_bytes = f->memlock_exempt || limit == RLIM_INFINITY ? HAWK_NO_LIMIT : limit;
	return 0;
}
