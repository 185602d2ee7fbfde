// SPDX-License-Identifier: MIT
/*
 * stats.c - statistics of a space: counters, a page of histograms, quantiles
 */
#include <errno.h>
#include <string.h>

#include "priv.h"

int hawk_kv_stats(struct hawk_kv *kv, struct hawk_stats *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	return kv->h->ops->kv_stats(kv, st);
}

int hawk_kv_stats_page(struct hawk_kv *kv, struct hawk_stats_page *page)
{
	memset(page, 0, sizeof(*page));
	return kv->h->ops->kv_stats_page(kv, page);
}

/**
 * hawk_stats_copy() - a copy of one moment of a page that somebody else writes
 * @page: the page
 * @bytes: that may be read there
 * @copy: out; what the page does not have is 0
 *
 * The writer only holds a reader up while it writes.
 */
void hawk_stats_copy(const struct hawk_stats_page *page, size_t bytes,
		     struct hawk_stats_page *copy)
{
	size_t n = bytes < sizeof(*copy) ? bytes : sizeof(*copy);
	__u32 seq;

	do {
		do {
			seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE);
		} while (seq & 1);
		memcpy(copy, page, n);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&page->seq, __ATOMIC_RELAXED) != seq);
}

/* Within a bucket the times are taken to be spread evenly. */
uint64_t hawk_hist_quantile(const struct hawk_hist *h, unsigned int permille)
{
	uint64_t all = 0, before = 0, rank, low;
	unsigned int i;

	for (i = 0; i < HAWK_STATS_BUCKETS; i++)
		all += h->bucket[i];
	if (!all)
		return 0;
	if (permille > 1000)
		permille = 1000;
	rank = (uint64_t)((double)all * permille / 1000 + 0.5);
	if (!rank)
		rank = 1;
	for (i = 0; before + h->bucket[i] < rank; i++)
		before += h->bucket[i];
	low = i ? 1ull << i : 0;
	return low + (uint64_t)((double)((2ull << i) - low) * (rank - before) / h->bucket[i]);
}
