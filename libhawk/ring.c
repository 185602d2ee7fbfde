// SPDX-License-Identifier: MIT
/*
 * ring.c - taking completions from the mapped ring
 *
 * The ring is the same on both backends; what differs is the descriptor to
 * poll.  The kernel's file is readable while the ring has entries.  The embedded
 * backend has an eventfd; it is lowered when the ring was found empty, and raised
 * again if an entry came in between, so that it too is readable while there is
 * something to take.
 */
#include <errno.h>
#include <sys/eventfd.h>

#include "priv.h"

uint64_t hawk_ring_bytes(unsigned int entries)
{
	return sizeof(struct hawk_ring) + (uint64_t)entries * sizeof(struct hawk_cqe);
}

int hawk_ring_open(struct hawk_kv *kv, unsigned int entries, int efd)
{
	if (!entries || entries > HAWK_RING_MAX || entries & (entries - 1))
		return hawk_fail(-EINVAL, "ring of %u entries: a power of two up to %u",
				 entries, HAWK_RING_MAX);
	if (efd < -1)
		return hawk_fail(-EINVAL, "ring: eventfd %d", efd);
	if (kv->ring)
		return hawk_fail(-EBUSY, "this handle has a ring already");
	return kv->h->ops->ring_open(kv, entries, efd);
}

int hawk_ring_fd(struct hawk_kv *kv)
{
	if (!kv->ring)
		return hawk_fail(-ENXIO, "this handle has no ring");
	return kv->ring_fd;
}

int hawk_cancel(struct hawk_kv *kv, uint64_t user_data, uint32_t flags)
{
	struct hawk_cancel c = { .size = sizeof(c), .flags = flags, .user_data = user_data };
	int ret;

	if (flags & ~HAWK_CANCEL_ALL)
		return hawk_fail(-EOPNOTSUPP, "unknown flags 0x%x", flags & ~HAWK_CANCEL_ALL);
	if (flags && user_data)
		return hawk_fail(-EINVAL, "canceling all batches: user_data must be 0");
	ret = kv->h->ops->cancel(kv, &c);
	return ret ? ret : (int)c.batches;
}

static unsigned int take(struct hawk_ring *r, struct hawk_cqe *cqe, unsigned int n)
{
	uint32_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
	uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	unsigned int i;

	for (i = 0; i < n && head != tail; i++, head++)
		cqe[i] = r->cqe[head & r->mask];
	__atomic_store_n(&r->head, head, __ATOMIC_RELEASE);
	return i;
}

static bool empty(struct hawk_ring *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
}

int hawk_reap(struct hawk_kv *kv, struct hawk_cqe *cqe, unsigned int n)
{
	struct hawk_ring *r = kv->ring;
	unsigned int got;
	eventfd_t count;

	if (!r)
		return hawk_fail(-ENXIO, "this handle has no ring");
	got = take(r, cqe, n);
	if (kv->ring_efd && empty(r)) {
		eventfd_read(kv->ring_fd, &count);
		if (!empty(r))
			eventfd_write(kv->ring_fd, 1);
	}
	return (int)got;
}
