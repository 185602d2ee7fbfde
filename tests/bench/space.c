// SPDX-License-Identifier: MIT
/*
 * space.c - devices and spaces for the programs that use libhawk
 */
#include <string.h>

#include "bench.h"
#include "space.h"

#define FILL	64u	/* blocks per batch */

void space_open(struct bench_space *s, const char *url, uint64_t dram, const char *blk,
		uint64_t flash)
{
	memset(s, 0, sizeof(*s));
	bench_check(hawk_open(url, &s->h), hawk_strerror_last());
	if (!space_is_dev(s))
		return;
	bench_check(hawk_tier_add_host(s->h, -1, dram, &s->tier[s->n_tiers++]),
		    hawk_strerror_last());
	if (blk)
		bench_check(hawk_tier_add_blk(s->h, blk, flash, &s->tier[s->n_tiers++]),
			    hawk_strerror_last());
}

void space_create(struct bench_space *s, uint32_t block_bytes, uint32_t max_blocks,
		  const char *name)
{
	struct hawk_kv_params p = {
		.block_bytes = block_bytes,
		.block_tokens = SPACE_TOKENS,
		.layers = 1,
		.head_groups = 1,
		.max_blocks = max_blocks,
		.mode = name ? 0600 : 0,
		.quota_all = 1,
		.name = name,
	};

	bench_check(hawk_kv_create(s->h, &p, &s->kv), hawk_strerror_last());
}

bool space_is_dev(const struct bench_space *s)
{
	return !strcmp(hawk_backend(s->h), "dev");
}

void space_key(uint32_t n, uint8_t key[HAWK_KEY_BYTES])
{
	uint64_t state = 0x9e3779b97f4a7c15ull * (n + 1), word;
	unsigned int i;

	for (i = 0; i < HAWK_KEY_BYTES; i += sizeof(word)) {
		word = bench_rand(&state);
		memcpy(key + i, &word, sizeof(word));
	}
}

static void write_block(struct bench_space *s, const struct hawk_item *it, uint32_t n,
			uint32_t bytes)
{
	uint64_t *w = hawk_addr(s->kv, it->vt);
	uint32_t i;

	if (!w)
		bench_die("block %u has no address", n);
	for (i = 0; i < bytes / sizeof(*w); i++)
		w[i] = (uint64_t)n + i;
}

uint64_t space_block_sum(uint32_t n, uint32_t block_bytes)
{
	uint64_t words = block_bytes / sizeof(uint64_t);

	return words * n + words * (words - 1) / 2;
}

void space_fill(struct bench_space *s, uint32_t n, uint32_t bytes)
{
	struct hawk_stats st = { 0 };
	struct hawk_item it[FILL];
	uint32_t i, j, m;
	int ret;

	for (i = 0; i < n; i += m) {
		m = n - i < FILL ? n - i : FILL;
		memset(it, 0, sizeof(it));
		for (j = 0; j < m; j++)
			it[j].lid = space_lid(i + j);
		ret = hawk_alloc(s->kv, it, m, NULL);
		if (ret != (int)m)
			bench_die("alloc: %d of %u blocks: %s", ret, m, hawk_strerror_last());
		for (j = 0; j < m; j++) {
			write_block(s, &it[j], i + j, bytes);
			it[j].vt = 0;
			space_key(i + j, it[j].key);
		}
		ret = hawk_put(s->kv, it, m, NULL);
		if (ret != (int)m)
			bench_die("put: %d of %u blocks: %s", ret, m, hawk_strerror_last());
	}
	bench_check(hawk_kv_stats(s->kv, &st), hawk_strerror_last());
	if (st.blocks != n)
		bench_die("%u blocks were put, %llu are there", n, (unsigned long long)st.blocks);
}

void space_close(struct bench_space *s)
{
	if (s->kv)
		hawk_kv_close(s->kv);
	while (s->n_tiers)
		bench_check(hawk_tier_del(s->h, s->tier[--s->n_tiers]), hawk_strerror_last());
	hawk_close(s->h);
}
