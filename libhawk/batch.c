// SPDX-License-Identifier: MIT
/*
 * batch.c - the batch calls
 */
#include <errno.h>
#include <string.h>

#include "priv.h"

/* Fills @b, lets the backend work on it; returns the number of items done. */
static int submit(struct hawk_kv *kv, unsigned int op, struct hawk_item *it, unsigned int n,
		  const struct hawk_opts *o, struct hawk_batch *b)
{
	int ret;

	*b = (struct hawk_batch) {
		.size = sizeof(*b),
		.count = n,
		.items = (uintptr_t)it,
		.tier = HAWK_TIER_ANY,
	};
	if (o) {
		b->flags = o->flags;
		b->deadline_ns = o->deadline_ns;
		b->user_data = o->user_data;
		if (o->tier)
			b->tier = o->tier - 1;
	}
	ret = hawk_check_batch(op, b);
	if (!ret)
		ret = kv->h->ops->batch(kv, op, b);
	return ret ? ret : (int)b->done;
}

int hawk_alloc(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_ALLOC, it, n, o, &b);
}

int hawk_put(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_PUT, it, n, o, &b);
}

int hawk_pin(struct hawk_kv *kv, struct hawk_item *it, unsigned int n)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_PIN, it, n, NULL, &b);
}

int hawk_unpin(struct hawk_kv *kv, struct hawk_item *it, unsigned int n)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_UNPIN, it, n, NULL, &b);
}

int hawk_reload(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_RELOAD, it, n, o, &b);
}

int hawk_fork(struct hawk_kv *kv, struct hawk_item *it, unsigned int n)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_FORK, it, n, NULL, &b);
}

int hawk_unshare(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
		 const struct hawk_opts *o)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_UNSHARE, it, n, o, &b);
}

int hawk_free(struct hawk_kv *kv, struct hawk_item *it, unsigned int n)
{
	struct hawk_batch b;

	return submit(kv, HAWK_IOC_FREE, it, n, NULL, &b);
}

int hawk_lookup(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
		const struct hawk_opts *o, uint64_t *lease)
{
	struct hawk_batch b;
	int ret;

	if (lease)
		*lease = 0;
	else if (o && o->flags & HAWK_BATCH_LEASE)
		return hawk_fail(-EINVAL, "hawk_lookup: no place for the lease");
	ret = submit(kv, HAWK_IOC_LOOKUP, it, n, o, &b);
	if (ret < 0)
		return ret;
	if (lease)
		*lease = b.lease;
	return (int)b.prefix;
}

int hawk_lease_end(struct hawk_kv *kv, uint64_t lease)
{
	return kv->h->ops->lease_end(kv, lease);
}

int hawk_get(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
	     const struct hawk_opts *o, unsigned int *prefix)
{
	struct hawk_batch b;
	int ret = submit(kv, HAWK_IOC_GET, it, n, o, &b);

	if (prefix)
		*prefix = ret < 0 ? 0 : b.prefix;
	return ret;
}

uint64_t hawk_translate_slow(struct hawk_kv *kv, uint64_t lid)
{
	struct hawk_item it = { .lid = lid };
	struct hawk_batch b;
	uint64_t vt = hawk_translate(kv, lid);

	if (vt)
		return vt;
	return submit(kv, HAWK_IOC_TRANSLATE, &it, 1, NULL, &b) == 1 ? it.vt : 0;
}

int hawk_pin_cost(struct hawk_kv *kv, const uint64_t *lid, unsigned int n,
		  struct hawk_pin_query *q)
{
	*q = (struct hawk_pin_query) {
		.size = sizeof(*q),
		.count = n,
		.lids = (uintptr_t)lid,
	};
	if (!n)
		return hawk_fail(-EINVAL, "the cost of no blocks");
	if (n > HAWK_BATCH_MAX)
		return hawk_fail(-E2BIG, "the cost of %u blocks, at most %u", n, HAWK_BATCH_MAX);
	return kv->h->ops->pin_query(kv, q);
}
