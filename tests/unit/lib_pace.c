// SPDX-License-Identifier: MIT
/*
 * lib_pace.c - paced delivery as a program sees it: estimates, deadlines, phases
 *
 * The same on both backends, but for what the embedded one's URL sets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfixture.h"

#define N	(2 * FX_CHUNK_FRAMES)	/* twice what memory holds */
#define SECOND	1000000000ull

static bool can(struct fx *f, uint64_t feature)
{
	struct hawk_query q = { .size = sizeof(q) };

	assert_ok(hawk_device_query(f->h, &q));
	return q.features & feature;
}

static bool start(struct fx *f)
{
	fx_open(f, HAWK_CHUNK_BYTES, 8 * HAWK_CHUNK_BYTES);
	if (can(f, HAWK_FEAT_PACE | HAWK_FEAT_PROMOTE))
		return true;
	fx_close(f);
	return false;
}

static struct hawk_stats stats(struct fx *f)
{
	struct hawk_stats st = { 0 };

	assert_ok(hawk_kv_stats(f->kv, &st));
	return st;
}

static void by_key(struct hawk_item *it, uint32_t from, uint32_t n)
{
	uint32_t i;

	memset(it, 0, n * sizeof(*it));
	for (i = 0; i < n; i++) {
		fx_key(&it[i], from + i, 1);
		it[i].flags = HAWK_ITEM_BY_KEY;
	}
}

/* A gather of blocks @from to @from + @n - 1, all of which must be right. */
static int gather(struct fx *f, uint32_t from, uint32_t n, const struct hawk_opts *o)
{
	uint32_t count = n, *remap = calloc(n, sizeof(*remap)), i;
	uint64_t *lid = calloc(n, sizeof(*lid));
	int32_t *status = calloc(n, sizeof(*status));
	struct hawk_gather_lists l = {
		.lists = 1, .count = &count, .lid = lid, .remap = remap, .status = status,
		.buf_bytes = (uint64_t)n * FX_BLOCK,
	};
	int ret;

	assert_int_equal(posix_memalign(&l.buf, 4096, l.buf_bytes), 0);
	for (i = 0; i < n; i++)
		lid[i] = fx_lid(from + i);
	ret = hawk_gather(f->kv, &l, o, NULL);
	for (i = 0; ret == (int)n && i < n; i++) {
		assert_int_equal(status[i], 0);
		assert_true(fx_is((uint8_t *)l.buf + (size_t)remap[i] * FX_BLOCK, from + i, 1));
	}
	free(l.buf);
	free(status);
	free(lid);
	free(remap);
	return ret;
}

static void where_blocks_are(void **state)
{
	struct hawk_estimate e = { .tokens_per_s = 1000000 };
	struct hawk_item it[N + 4];
	struct hawk_stats before, after;
	struct fx f;

	(void)state;
	if (!start(&f))
		skip();
	fx_put(f.kv, 0, N, 1);
	before = stats(&f);
	by_key(it, 0, N + 4);
	assert_ok(hawk_estimate(f.kv, it, N + 4, &e));
	assert_int_equal(e.missing, 4);
	assert_int_equal(e.dram + e.flash, N);
	assert_true(e.flash >= N / 2);
	assert_int_equal(e.prefix, N);
	assert_true(e.dram_bytes == (uint64_t)e.dram * FX_BLOCK);
	assert_true(e.flash_bytes == (uint64_t)e.flash * FX_BLOCK);
	assert_true(e.recompute_ns == (uint64_t)(N + 4) * FX_TOKENS * 1000);
	assert_int_equal(e.split, N);	/* no read has been measured: they cost nothing */
	assert_true(e.split_ns == 4ull * FX_TOKENS * 1000);
	after = stats(&f);
	assert_int_equal(before.hits, after.hits);
	assert_int_equal(before.misses, after.misses);
	/* rows of four: the last one is not whole */
	e.row = 4;
	by_key(&it[N - 2], N + 10, 6);
	assert_ok(hawk_estimate(f.kv, it, N + 4, &e));
	assert_int_equal(e.prefix, N - 4);
	e.row = 7;
	assert_int_equal(hawk_estimate(f.kv, it, N + 4, &e), -EINVAL);
	e.row = 1;
	assert_int_equal(hawk_estimate(f.kv, it, 0, &e), -EINVAL);
	assert_int_equal(hawk_estimate(f.kv, it, HAWK_BATCH_MAX + 1, &e), -E2BIG);
	e.flags = 1u << 31;
	assert_int_equal(hawk_estimate(f.kv, it, N, &e), -EOPNOTSUPP);
	e.flags = 0;
	it[0].flags = HAWK_ITEM_TAIL;
	assert_int_equal(hawk_estimate(f.kv, it, N, &e), -EOPNOTSUPP);
	fx_close(&f);
}

/* Once reads have been measured they take time, and who computes faster does not reload. */
static void reload_or_recompute(void **state)
{
	struct hawk_estimate e = { .tokens_per_s = 1 };
	struct hawk_item it[N];
	struct fx f;

	(void)state;
	if (!start(&f))
		skip();
	fx_put(f.kv, 0, N, 1);
	assert_int_equal(gather(&f, 0, N, NULL), N);
	by_key(it, 0, N);
	assert_ok(hawk_estimate(f.kv, it, N, &e));
	assert_true(e.reload_ns > 0);
	assert_int_equal(e.split, N);
	e.tokens_per_s = 4000000000u;
	assert_ok(hawk_estimate(f.kv, it, N / 2, &e));
	assert_true(e.split < N / 2 && e.split_ns < e.reload_ns);
	fx_close(&f);
}

static void in_time(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_IN_TIME };
	struct hawk_item it[N];
	struct hawk_stats st;
	uint64_t read;
	struct fx f;
	struct hawk_tier_info info = { .size = sizeof(info) };

	(void)state;
	if (!start(&f))
		skip();
	fx_put(f.kv, 0, N, 1);
	by_key(it, 0, N);
	assert_int_equal(hawk_reload(f.kv, it, N, &o), -EINVAL);	/* in time for what? */
	assert_int_equal(gather(&f, 0, N, &o), -EINVAL);
	assert_int_equal(gather(&f, 0, N, NULL), N);
	assert_ok(hawk_tier_stat(f.h, f.flash, &info));
	read = info.read_bytes;
	o.deadline_ns = fx_now() + 1;
	assert_int_equal(gather(&f, 0, N, &o), -ETIME);
	assert_int_equal(hawk_reload(f.kv, it, N / 2, &o), -ETIME);
	assert_ok(hawk_tier_stat(f.h, f.flash, &info));
	assert_int_equal(info.read_bytes, read);
	st = stats(&f);
	assert_int_equal(st.refused_late, 2);
	/* an hour is enough */
	o.deadline_ns = fx_now() + 3600 * SECOND;
	o.flags |= HAWK_BATCH_URGENT;
	assert_int_equal(gather(&f, 0, N, &o), N);
	assert_int_equal(hawk_reload(f.kv, it, N / 4, &o), N / 4);
	assert_int_equal(stats(&f).refused_late, 2);
	fx_close(&f);
}

/* What gathers have read from flash is in memory at the next turn. */
static void promotion(void **state)
{
	struct hawk_estimate e = { 0 };
	struct hawk_item it[FX_CHUNK_FRAMES / 8];
	uint32_t n = FX_CHUNK_FRAMES / 8, i;
	struct fx f;

	(void)state;
	if (!start(&f))
		skip();
	assert_int_equal(hawk_phase(f.kv, fx_now() + HAWK_PHASE_MAX_NS + SECOND), -EINVAL);
	fx_put(f.kv, 0, N, 1);
	/* frames that are free or have a copy: what is written ahead, or freed */
	by_key(it, N - 2 * n, n);
	for (i = 0; i < n; i++) {
		it[i].lid = fx_lid(N - 2 * n + i);
		it[i].flags = 0;
	}
	assert_int_equal(hawk_free(f.kv, it, n), n);
	by_key(it, 0, n);
	assert_ok(hawk_estimate(f.kv, it, n, &e));
	assert_int_equal(e.flash, n);
	assert_int_equal(gather(&f, 0, n, NULL), n);
	assert_true(hawk_phase(f.kv, fx_now() + 60 * SECOND) >= 0);
	while (stats(&f).promoted < n / 2 && stats(&f).promoted + stats(&f).promote_canceled < n)
		usleep(1000);
	assert_true(stats(&f).promoted > 0);
	assert_ok(hawk_estimate(f.kv, it, n, &e));
	assert_true(e.dram > 0);
	assert_true(hawk_phase(f.kv, 0) >= 0);
	assert_int_equal(gather(&f, 0, n, NULL), n);
	for (i = 0; i < n; i++)
		assert_int_equal(fx_get(f.kv, i, 1), 0);
	fx_close(&f);
}

/* Through a link so slow that it has to be waited for, all bytes come. */
static void slow_link(void **state)
{
	char url[400];
	struct fx f;
	struct hawk_kv_params p;

	(void)state;
	fx_open(&f, HAWK_CHUNK_BYTES, 8 * HAWK_CHUNK_BYTES);
	if (f.dev) {
		fx_close(&f);
		skip();
	}
	p = fx_params(&f);
	hawk_kv_close(f.kv);
	hawk_close(f.h);
	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s&flash_size=16M&link_mb_s=100&cap=50",
		 f.file);
	assert_ok(hawk_open(url, &f.h));
	assert_ok(hawk_kv_create(f.h, &p, &f.kv));
	fx_put(f.kv, 0, N, 1);
	assert_int_equal(gather(&f, 0, N, NULL), N);
	assert_true(stats(&f).link_waits > 0 && stats(&f).paced_wait_ns > 0);
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_blocks_are),
		cmocka_unit_test(reload_or_recompute),
		cmocka_unit_test(in_time),
		cmocka_unit_test(promotion),
		cmocka_unit_test(slow_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
