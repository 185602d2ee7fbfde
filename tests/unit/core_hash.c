// SPDX-License-Identifier: MIT
/*
 * core_hash.c - hashing on LIDs as models make them: dense token numbers under few
 * or many layers, one or many sequences
 *
 * PB-LRU buckets must fill at least as evenly as by chance: Pearson's chi-square
 * with B - 1 degrees of freedom (mean B - 1, variance 2(B - 1)) stays below its mean
 * plus four standard deviations.  The vTLB must find room for all but one LID in a
 * thousand when it is half full, which is the most that blocks without second LIDs
 * make of it.
 */
#include <math.h>

#include "core_host.h"
#include "../../kmod/core/priv.h"

static const struct pattern {
	const char *name;
	u32 seqs, layers, heads, blocks, tokens;
} patterns[] = {
	{ "one long sequence, one layer", 1, 1, 1, 65536, 16 },
	{ "one short sequence, one layer", 1, 1, 1, 256, 16 },
	{ "one sequence, 4 layers", 1, 4, 1, 16384, 16 },
	{ "one sequence, 80 layers, 8 head groups", 1, 80, 8, 128, 16 },
	{ "64 sequences, 32 layers", 64, 32, 1, 32, 16 },
	{ "1000 sequences, one layer", 1000, 1, 1, 64, 16 },
	{ "100000 sequences of one block", 100000, 1, 1, 1, 16 },
	{ "256 layers, 16 head groups, first block", 1, 256, 16, 1, 16 },
	{ "blocks of 64 tokens", 4, 32, 1, 512, 64 },
	{ "blocks of 65536 tokens", 1, 32, 1, 2048, 65536 },
};

static u32 count(const struct pattern *p)
{
	return p->seqs * p->layers * p->heads * p->blocks;
}

static u64 nth(const struct pattern *p, u32 i)
{
	u32 block = i % p->blocks, head = i / p->blocks % p->heads;
	u32 layer = i / p->blocks / p->heads % p->layers;
	u32 seq = i / p->blocks / p->heads / p->layers;

	return HAWK_LID(1 + seq, layer, head, block * p->tokens);
}

static double chi_square(const struct pattern *p, u32 log2_buckets)
{
	u32 i, n[HAWK_BUCKETS_MAX] = { 0 }, buckets = 1u << log2_buckets;
	double sum = 0, mean = (double)count(p) / buckets;

	for (i = 0; i < count(p); i++)
		n[hawk_lid_bucket(nth(p, i), log2_buckets)]++;
	for (i = 0; i < buckets; i++)
		sum += (n[i] - mean) * (n[i] - mean) / mean;
	return sum;
}

static void buckets_fill_evenly(void **state)
{
	static const u32 log2_buckets[] = { 5, 6, 9 };
	u32 i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(patterns); i++)
		for (k = 0; k < ARRAY_SIZE(log2_buckets); k++) {
			double df = (1u << log2_buckets[k]) - 1;
			double chi = chi_square(&patterns[i], log2_buckets[k]);

			if (chi > df + 4 * sqrt(2 * df))
				fail_msg("%s, %u buckets: chi-square %.1f", patterns[i].name,
					 1u << log2_buckets[k], chi);
		}
}

/* A space just large enough for the vTLB of @n blocks at half load. */
static double overflow_share(const struct pattern *p)
{
	struct hawk_space s = { 0 };
	struct hawk_map *map;
	u32 i, n = count(p), missing = 0, blocks = 1;
	u64 bytes, entries;

	while (2 * blocks <= n)
		blocks *= 2;	/* hawk_vtlb_bytes() doubles it: half full exactly */
	bytes = hawk_vtlb_bytes(blocks);
	entries = bytes / sizeof(struct hawk_vtlb_entry);
	if (n > entries / 2)
		n = entries / 2;
	s.vtlb = aligned_alloc(64, bytes);
	map = calloc(n, sizeof(*map));
	assert_true(s.vtlb && map);
	memset(s.vtlb, 0, bytes);
	s.vtlb_mask = entries / HAWK_VT_WAYS - 1;
	for (i = 0; i < n; i++) {
		map[i].lid = nth(p, i);
		map[i].way = HAWK_NONE;
		hawk_vtlb_set(&s, &map[i], hawk_vt(0, 1, i));
	}
	for (i = 0; i < n; i++) {
		u64 val = hawk_vtlb_get(&s, nth(p, i));

		missing += !val;
		assert_true(!val || val == hawk_vt(0, 1, i));
	}
	/* what went away leaves room, and nothing of itself */
	for (i = 0; i < n; i++)
		hawk_vtlb_del(&s, &map[i]);
	for (i = 0; i < entries; i++)
		assert_true(!s.vtlb[i].val);
	free(map);
	free(s.vtlb);
	return (double)missing / n;
}

static void vtlb_has_room_at_half_load(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		double share = overflow_share(&patterns[i]);

		if (share >= 0.001)
			fail_msg("%s: %.5f of the LIDs found no room", patterns[i].name, share);
	}
}

/* A LID that found no room is still translated, by the tables. */
static void overflow_is_only_slower(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 4096, .block_tokens = 16, .max_blocks = 512,
	};
	struct hawk_space *s;
	struct host h;
	u32 i;

	(void)state;
	host_init(&h, 1);
	p.quota_max[host_tier(&h, HAWK_TIER_HOST, 1)] = 1;
	s = host_space(&h, &p);
	for (i = 0; i < s->vtlb_mask * HAWK_VT_WAYS + HAWK_VT_WAYS; i++)
		s->vtlb[i].val = HAWK_VT_BUSY;	/* somebody is inserting everywhere */
	assert_int_equal(host_fill(&h, s, HAWK_LID(1, 0, 0, 0), NULL, 1, 1), 0);
	assert_true(!hawk_vtlb_get(s, HAWK_LID(1, 0, 0, 0)));
	assert_int_equal(host_read(&h, s, hawk_space_translate(s, HAWK_LID(1, 0, 0, 3))), 1);
	host_space_end(&h, s);
	host_fini(&h);
}

/*
 * T threads that each hold a random one of B locks: one of them meets a held lock
 * with probability 1 - (1 - 1/B)^(T - 1).  The formula is checked against counting.
 */
static void lock_collisions(void **state)
{
	static const struct {
		u32 threads, buckets;
		double p;
	} v[] = { { 2, 64, 0.0156 }, { 64, 64, 0.6292 }, { 8, 64, 0.1044 }, { 64, 512, 0.1159 } };
	u64 rng = 11;
	u32 i, k, n, hit;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		double p = 1 - pow(1 - 1.0 / v[i].buckets, v[i].threads - 1);

		assert_true(fabs(p - v[i].p) < 0.0001);
		for (n = 0, hit = 0; n < 100000; n++) {
			bool met = false;

			for (k = 1; k < v[i].threads; k++)
				met |= host_below(&rng, v[i].buckets) == 0;
			hit += met;
		}
		assert_true(fabs(hit / 100000.0 - p) < 0.01);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_fill_evenly),
		cmocka_unit_test(vtlb_has_room_at_half_load),
		cmocka_unit_test(overflow_is_only_slower),
		cmocka_unit_test(lock_collisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
