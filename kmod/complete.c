// SPDX-License-Identifier: GPL-2.0
/*
 * complete.c - the mapped completion ring, its eventfd and poll()
 *
 * User space owns head, the kernel owns tail.  The page is writable by user
 * space, so the kernel keeps its own tail and takes head as a hint: whoever
 * writes nonsense there loses completions of his own file and nothing else.
 */
#include "hawk.h"

#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

static struct hawk_cq *hawk_cq_create(u32 entries, struct eventfd_ctx *eventfd)
{
	struct hawk_cq *cq = kzalloc(sizeof(*cq), GFP_KERNEL_ACCOUNT);

	if (!cq)
		return NULL;
	cq->bytes = PAGE_ALIGN(struct_size(cq->ring, cqe, entries));
	/* the cgroup of who sets it up pays; at its limit that is an error, no reason to kill */
	cq->ring = __vmalloc(cq->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
					    __GFP_RETRY_MAYFAIL);
	if (!cq->ring) {
		kfree(cq);
		return NULL;
	}
	spin_lock_init(&cq->lock);
	cq->entries = entries;
	cq->ring->mask = entries - 1;
	cq->eventfd = eventfd;
	return cq;
}

void hawk_cq_destroy(struct hawk_cq *cq)
{
	if (cq->eventfd)
		eventfd_ctx_put(cq->eventfd);
	vfree(cq->ring);
	kfree(cq);
}

int hawk_cq_setup(struct hawk_file *f, struct hawk_ring_setup *arg)
{
	struct eventfd_ctx *eventfd = NULL;
	struct hawk_cq *cq;
	int ret = 0;

	if (!is_power_of_2(arg->entries) || arg->entries > HAWK_RING_MAX || arg->eventfd < -1)
		return -EINVAL;
	if (arg->eventfd >= 0) {
		eventfd = eventfd_ctx_fdget(arg->eventfd);
		if (IS_ERR(eventfd))
			return -EBADF;
	}
	cq = hawk_cq_create(arg->entries, eventfd);
	if (!cq) {
		if (eventfd)
			eventfd_ctx_put(eventfd);
		return -ENOMEM;
	}
	arg->ring_bytes = cq->bytes;

	mutex_lock(&f->lock);
	if (f->cq)
		ret = -EBUSY;
	else
		smp_store_release(&f->cq, cq);
	mutex_unlock(&f->lock);
	if (ret)
		hawk_cq_destroy(cq);
	return ret;
}

/* Entries that user space has not read yet. */
static u32 hawk_cq_used(struct hawk_cq *cq)
{
	return min(cq->tail - smp_load_acquire(&cq->ring->head), cq->entries);
}

int hawk_cq_reserve(struct hawk_cq *cq, u32 n)
{
	int ret = 0;

	spin_lock(&cq->lock);
	if (n > cq->entries - min(hawk_cq_used(cq) + cq->reserved, cq->entries))
		ret = -EBUSY;
	else
		cq->reserved += n;
	spin_unlock(&cq->lock);
	return ret;
}

/* Uses one reserved entry of the file's ring. */
void hawk_cq_post(struct hawk_file *f, const struct hawk_cqe *cqe)
{
	struct hawk_cq *cq = f->cq;

	spin_lock(&cq->lock);
	cq->ring->cqe[cq->tail & (cq->entries - 1)] = *cqe;
	cq->tail++;
	cq->reserved--;
	/* pairs with user space's acquire of tail: the entry is there first */
	smp_store_release(&cq->ring->tail, cq->tail);
	spin_unlock(&cq->lock);
	if (cq->eventfd)
		eventfd_signal(cq->eventfd);
	wake_up_interruptible_poll(&f->wait, EPOLLIN | EPOLLRDNORM);
}

bool hawk_cq_readable(struct hawk_cq *cq)
{
	return READ_ONCE(cq->tail) != READ_ONCE(cq->ring->head);
}
