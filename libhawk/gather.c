// SPDX-License-Identifier: MIT
/*
 * gather.c - blocks of several lists to one buffer; how many come in time
 */
#include <errno.h>

#include "priv.h"
#include "../kmod/core/gather.h"

static int check_lists(const struct hawk_gather_lists *l, unsigned int *rows)
{
	uint64_t sum = 0;
	unsigned int i;

	if (!l->lists || !l->count || !l->lid || !l->remap || !l->status)
		return hawk_fail(-EINVAL, "a gather of no list, or without its arrays");
	if (l->lists > HAWK_GATHER_LISTS)
		return hawk_fail(-E2BIG, "a gather of %u lists, at most %u", l->lists,
				 HAWK_GATHER_LISTS);
	for (i = 0; i < l->lists; i++)
		sum += l->count[i];
	if (!sum)
		return hawk_fail(-EINVAL, "a gather of no row");
	if (sum > HAWK_BATCH_MAX)
		return hawk_fail(-E2BIG, "a gather of %llu rows, at most %u",
				 (unsigned long long)sum, HAWK_BATCH_MAX);
	if ((uintptr_t)l->buf % HAWK_FRAME_ALIGN || (!l->buf && l->buf_bytes))
		return hawk_fail(-EINVAL, "buffer %p: a multiple of %u", l->buf, HAWK_FRAME_ALIGN);
	*rows = (unsigned int)sum;
	return 0;
}

static int check_opts(const struct hawk_opts *o)
{
	uint32_t known = HAWK_BATCH_ASYNC | HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME;

	if (o->flags & ~known)
		return hawk_fail(-EOPNOTSUPP, "flags 0x%x do not go with a gather", o->flags);
	if (o->flags & HAWK_BATCH_IN_TIME && !o->deadline_ns)
		return hawk_fail(-EINVAL, "in time for what? HAWK_BATCH_IN_TIME needs a deadline");
	if (o->tier)
		return hawk_fail(-EINVAL, "a gather goes to a buffer, to no tier");
	if (o->deadline_ns > INT64_MAX)
		return hawk_fail(-EINVAL, "deadline %llu is beyond the end of time",
				 (unsigned long long)o->deadline_ns);
	return 0;
}

int hawk_gather(struct hawk_kv *kv, const struct hawk_gather_lists *l, const struct hawk_opts *o,
		struct hawk_gather *g)
{
	struct hawk_opts none = { 0 };
	struct hawk_gather local;
	unsigned int rows = 0;
	int ret;

	o = o ? o : &none;
	g = g ? g : &local;
	ret = check_lists(l, &rows);
	if (!ret)
		ret = check_opts(o);
	if (ret)
		return ret;
	*g = (struct hawk_gather) {
		.size = sizeof(*g),
		.flags = o->flags,
		.lists = l->lists,
		.rows = rows,
		.counts = (uintptr_t)l->count,
		.lids = (uintptr_t)l->lid,
		.remap = (uintptr_t)l->remap,
		.status = (uintptr_t)l->status,
		.buf = (uintptr_t)l->buf,
		.buf_bytes = l->buf_bytes,
		.deadline_ns = o->deadline_ns,
		.user_data = o->user_data,
	};
	ret = kv->h->ops->gather(kv, g);
	return ret ? ret : (int)g->done;
}

/* ---- reload or recompute, phases ---- */

int hawk_estimate(struct hawk_kv *kv, const struct hawk_item *it, unsigned int n,
		  struct hawk_estimate *e)
{
	if (!n || !it)
		return hawk_fail(-EINVAL, "an estimate of no items");
	if (n > HAWK_BATCH_MAX)
		return hawk_fail(-E2BIG, "an estimate of %u items, at most %u", n, HAWK_BATCH_MAX);
	if (e->flags & ~(uint32_t)HAWK_ESTIMATE_GATHER)
		return hawk_fail(-EOPNOTSUPP, "flags 0x%x do not go with an estimate", e->flags);
	e->size = sizeof(*e);
	e->count = n;
	e->items = (uintptr_t)it;
	e->reserved = 0;
	return kv->h->ops->estimate(kv, e);
}

int hawk_phase(struct hawk_kv *kv, uint64_t until_ns)
{
	struct hawk_phase ph = { .size = sizeof(ph), .until_ns = until_ns };
	int ret;

	ph.flags = until_ns ? HAWK_PHASE_PREFILL : 0;
	ret = kv->h->ops->phase(kv, &ph);
	return ret ? ret : (int)ph.pending;
}

/* ---- how many rows come in time ---- */

unsigned int hawk_gather_rows_max(const struct hawk_gather_budget *b)
{
	struct hawk_gather_load l = {
		.block_bytes = b->block_bytes,
		.group = b->group ? b->group : HAWK_GROUP_PCIE,
		.compute_ns = b->compute_ns,
		.setup_ns = b->setup_ns,
	};
	unsigned int t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		l.mb_per_s[t] = b->mb_per_s[t];
		l.share[t] = b->share[t] < 1024 ? b->share[t] : 1024;
	}
	return hawk_gather_rows(&l);
}

/* 10^6 bytes per second, at least 1: 0 would say that there is nothing. */
static uint32_t rate(uint64_t bytes, uint64_t ns)
{
	uint64_t mb = bytes * 1000 / ns;

	return mb > UINT32_MAX ? UINT32_MAX : mb ? (uint32_t)mb : 1;
}

void hawk_gather_measure(struct hawk_gather_budget *b, const struct hawk_gather *g)
{
	uint32_t now, *mb;
	unsigned int t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		const struct hawk_gather_tier *got = &g->tier[t];

		b->share[t] = g->unique ? (uint32_t)((uint64_t)got->blocks * 1024 / g->unique) : 0;
		if (!got->ns || !got->blocks)
			continue;
		mb = &b->mb_per_s[t];
		now = rate((uint64_t)got->blocks * b->block_bytes, got->ns);
		/* slower: at once; faster: by and by */
		*mb = !*mb || now < *mb ? now : *mb + (now - *mb) / 4;
	}
}
