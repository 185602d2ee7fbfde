// SPDX-License-Identifier: MIT
/*
 * estats.c - histograms of the embedded backend's batch calls
 *
 * Kept in a few shards, so that threads seldom write to a line of each other; a
 * thread keeps the shard that it is dealt at its first call.
 */
#include <stdlib.h>

#include "embed.h"

static u32 estats_next;
static __thread u32 estats_shard;	/* plus one, 0: none yet */

static void add(__u64 *counter, u64 n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/**
 * estats_batch() - a batch has ended
 * @op: HAWK_IOC_*
 * @start: when it was called, now_ns()
 */
void estats_batch(struct espace *sp, unsigned int op, const struct hawk_batch *b, u64 start)
{
	u64 ns = now_ns() - start;
	u32 bucket = ns ? 63 - __builtin_clzll(ns) : 0;
	struct hawk_hist *h;

	if (!estats_shard)
		estats_shard = __atomic_fetch_add(&estats_next, 1, __ATOMIC_RELAXED) %
			       EMBED_STAT_SHARDS + 1;
	h = &sp->count[estats_shard - 1].op[HAWK_STATS_OP(op)];
	if (bucket >= HAWK_STATS_BUCKETS)
		bucket = HAWK_STATS_BUCKETS - 1;
	add(&h->bucket[bucket], 1);
	add(&h->ns, ns);
	add(&h->items, b->count);
	if (b->count != b->done)
		add(&h->failed, b->count - b->done);
	add(&h->count, 1);
}

int embed_kv_stats_page(struct hawk_kv *kv, struct hawk_stats_page *page)
{
	const size_t words = HAWK_STATS_OPS * (sizeof(page->op[0]) / sizeof(__u64));
	const struct espace *sp = to_ekv(kv)->sp;
	struct hawk_stats st = { .size = sizeof(st) };
	size_t i;
	u32 shard;

	page->size = sizeof(*page);
	page->version = HAWK_STATS_VERSION;
	page->time_ns = now_ns();
	embed_kv_stats(kv, &st);
	for (shard = 0; shard < EMBED_STAT_SHARDS; shard++) {
		const __u64 *from = &sp->count[shard].op[0].count;

		for (i = 0; i < words; i++)
			(&page->op[0].count)[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	}
	memcpy(page->stats, &st, sizeof(st));
	return 0;
}
