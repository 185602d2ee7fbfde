// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * stats.c - counters are kept per bucket, under its lock, and summed when read
 */
#include "priv.h"

void hawk_space_quota(const struct hawk_space *s, u32 tier, u32 *owned, u32 *max)
{
	*owned = hawk_load(&s->win[tier].owned);
	*max = hawk_load(&s->win[tier].quota_max);
}

void hawk_space_stats(struct hawk_space *s, struct hawk_stats *st)
{
	u64 sum[HAWK_COUNTERS] = { 0 };
	u32 i, c;

	for (i = 0; i < s->nbuckets; i++) {
		hawk_lock(&s->bucket[i].lock);
		for (c = 0; c < HAWK_COUNTERS; c++)
			sum[c] += s->bucket[i].count[c];
		hawk_unlock(&s->bucket[i].lock);
	}
	st->blocks = sum[HAWK_N_BLOCKS];
	st->resident = sum[HAWK_N_RESIDENT];
	st->flash = sum[HAWK_N_FLASH];
	st->pinned = sum[HAWK_N_PINNED];
	st->allocs = sum[HAWK_N_ALLOCS];
	st->puts = sum[HAWK_N_PUTS];
	st->hits = sum[HAWK_N_HITS];
	st->inflight = sum[HAWK_N_INFLIGHT];
	st->evict_clean = sum[HAWK_N_EVICT_CLEAN];
	st->evict_write = sum[HAWK_N_EVICT_WRITE];
	st->evict_drop = sum[HAWK_N_EVICT_DROP];
	st->flash_drop = sum[HAWK_N_FLASH_DROP];
	st->reloads = sum[HAWK_N_RELOADS];
	st->reload_errors = sum[HAWK_N_RELOAD_ERRORS];
	st->steals = sum[HAWK_N_STEALS];
	st->nospace = sum[HAWK_N_NOSPACE];
	st->quota = sum[HAWK_N_QUOTA];
	st->refused_score = sum[HAWK_N_REFUSED];
	st->refused_budget = sum[HAWK_N_REFUSED + HAWK_WHY_BUDGET - HAWK_WHY_SCORE];
	st->refused_parent = sum[HAWK_N_REFUSED + HAWK_WHY_PARENT - HAWK_WHY_SCORE];
	st->refused_rule = sum[HAWK_N_REFUSED + HAWK_WHY_RULE - HAWK_WHY_SCORE];
	st->refused_full = sum[HAWK_N_REFUSED + HAWK_WHY_WARMER - HAWK_WHY_SCORE];
	st->flash_read = sum[HAWK_N_FLASH_READ];
	st->flash_unread = sum[HAWK_N_UNREAD_DROP];
	st->misses = 0;
	for (i = 0; i < HAWK_INDEX_SHARDS; i++) {
		hawk_lock(&s->shard[i].lock);
		st->misses += s->shard[i].misses;
		hawk_unlock(&s->shard[i].lock);
	}
	st->paced_waits = hawk_load(&s->paced.waits);
	st->paced_wait_ns = hawk_load(&s->paced.wait_ns);
	st->link_waits = hawk_load(&s->paced.link_waits);
	st->late = hawk_load(&s->paced.late);
	st->refused_late = hawk_load(&s->paced.refused);
	st->promoted = sum[HAWK_N_PROMOTED];
	st->promote_canceled = sum[HAWK_N_PROMOTE_CANCELED];
	st->recovered = s->found.blocks;
	st->recover_corrupt = s->found.corrupt;
	st->recover_stale = s->found.stale;
	st->recover_no_parent = s->found.no_parent;
	st->recover_no_room = s->found.no_room;
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		st->chunks[i] = hawk_load(&s->win[i].owned);
}
