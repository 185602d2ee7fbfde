// SPDX-License-Identifier: MIT
/*
 * estats.c - histograms of the embedded backend's batch calls and gathers
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

static struct estat_shard *shard_of(struct espace *sp)
{
	if (!estats_shard)
		estats_shard = __atomic_fetch_add(&estats_next, 1, __ATOMIC_RELAXED) %
			       EMBED_STAT_SHARDS + 1;
	return &sp->count[estats_shard - 1];
}

static void hist_add(struct hawk_hist *h, u64 ns, u32 items, u32 failed)
{
	u32 bucket = ns ? 63 - __builtin_clzll(ns) : 0;

	if (bucket >= HAWK_STATS_BUCKETS)
		bucket = HAWK_STATS_BUCKETS - 1;
	add(&h->bucket[bucket], 1);
	add(&h->ns, ns);
	add(&h->items, items);
	if (failed)
		add(&h->failed, failed);
	add(&h->count, 1);
}

/**
 * estats_batch() - a batch has ended
 * @op: HAWK_IOC_*
 * @start: when it was called, now_ns()
 */
void estats_batch(struct espace *sp, unsigned int op, const struct hawk_batch *b, u64 start)
{
	hist_add(&shard_of(sp)->op[HAWK_STATS_OP(op)], now_ns() - start, b->count,
		 b->count - b->done);
}

/**
 * estats_gather() - a gather has ended
 * @set: its rows have their status
 * @start: when it was called, now_ns()
 */
void estats_gather(struct espace *sp, const struct hawk_gather_set *set, u64 start)
{
	u32 i, failed = 0;

	for (i = 0; i < set->rows; i++)
		failed += !!hawk_gather_row(set, i);
	hist_add(&shard_of(sp)->gather, now_ns() - start, set->rows, failed);
}

/* Adds what one shard counted. */
static void hist_sum(struct hawk_hist *to, const struct hawk_hist *from, size_t n)
{
	const size_t words = n * (sizeof(*from) / sizeof(__u64));
	size_t i;

	for (i = 0; i < words; i++)
		(&to->count)[i] += __atomic_load_n(&(&from->count)[i], __ATOMIC_RELAXED);
}

int embed_kv_stats_page(struct hawk_kv *kv, struct hawk_stats_page *page)
{
	const struct espace *sp = to_ekv(kv)->sp;
	struct hawk_stats st = { .size = sizeof(st) };
	u32 i;

	page->size = sizeof(*page);
	page->version = HAWK_STATS_VERSION;
	page->time_ns = now_ns();
	embed_kv_stats(kv, &st);
	for (i = 0; i < EMBED_STAT_SHARDS; i++) {
		hist_sum(page->op, sp->count[i].op, HAWK_STATS_OPS);
		hist_sum(&page->gather, &sp->count[i].gather, 1);
	}
	memcpy(page->stats, &st, sizeof(st));
	return 0;
}
