// SPDX-License-Identifier: GPL-2.0
/*
 * lease.c - leases: blocks that a LOOKUP found and that stay until used
 *
 * A lease ends once, by release, by expiry or with its file.  Whoever takes it
 * out of hawk_file.leases has it and frees it.
 */
#include "hawk.h"

#include <linux/ktime.h>
#include <linux/slab.h>

/* Gives the blocks back and frees the lease; it is in no xarray. */
void hawk_lease_end(struct hawk_lease *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		hawk_block_unlease(l->f->as->space, l->ref[i]);
	hawk_tidy_waiting(l->f->as);
	hawk_file_put(l->f);
	kvfree(l);
}

static u64 hawk_lease_left(const struct hawk_lease *l)
{
	u64 now = ktime_get_ns();

	return l->deadline_ns > now ? l->deadline_ns - now : 0;
}

static void hawk_lease_expire(struct work_struct *work)
{
	struct hawk_lease *l = container_of(to_delayed_work(work), struct hawk_lease, expire);
	u64 left = hawk_lease_left(l);

	/* jiffies may have stood still when it was queued: then it comes too early */
	if (left)
		queue_delayed_work(hawk_dev.wq, &l->expire, hawk_delay(left));
	else if (xa_cmpxchg(&l->f->leases, l->id, l, NULL, 0) == l)
		hawk_lease_end(l);
}

/* Room for @max blocks; the caller fills in @n and @ref. */
struct hawk_lease *hawk_lease_alloc(struct hawk_file *f, u32 max)
{
	struct hawk_lease *l = kvmalloc(struct_size(l, ref, max),
					GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	if (!l)
		return NULL;
	kref_get(&f->ref);
	l->f = f;
	l->id = 0;
	l->n = 0;
	INIT_DELAYED_WORK(&l->expire, hawk_lease_expire);
	return l;
}

/**
 * hawk_lease_start() - make a filled lease known under an id
 * @l: the lease
 * @deadline_ns: CLOCK_MONOTONIC, nanoseconds
 *
 * Return: its id, or a negative errno (the lease is still the caller's).
 */
int hawk_lease_start(struct hawk_lease *l, u64 deadline_ns)
{
	struct hawk_file *f = l->f;
	int ret;

	l->deadline_ns = deadline_ns;
	/* Another thread may guess the id, but not end it before its timer runs. */
	mutex_lock(&f->lock);
	ret = xa_alloc_cyclic(&f->leases, &l->id, l, XA_LIMIT(1, INT_MAX), &f->lease_next,
			      GFP_KERNEL);
	if (ret >= 0) {
		ret = l->id;
		queue_delayed_work(hawk_dev.wq, &l->expire, hawk_delay(hawk_lease_left(l)));
	}
	mutex_unlock(&f->lock);
	return ret;
}

/* @l has been taken out of the xarray by the caller. */
static void hawk_lease_cancel(struct hawk_lease *l)
{
	cancel_delayed_work_sync(&l->expire);
	hawk_lease_end(l);
}

int hawk_lease_release(struct hawk_file *f, u64 id)
{
	struct hawk_lease *l;

	if (id > INT_MAX)
		return -ENOENT;
	mutex_lock(&f->lock);
	l = xa_erase(&f->leases, id);
	mutex_unlock(&f->lock);
	if (!l)
		return -ENOENT;
	hawk_lease_cancel(l);
	return 0;
}

void hawk_lease_release_all(struct hawk_file *f)
{
	struct hawk_lease *l;
	unsigned long id;

	xa_for_each(&f->leases, id, l)
		if (xa_cmpxchg(&f->leases, id, l, NULL, 0) == l)
			hawk_lease_cancel(l);
}
