// SPDX-License-Identifier: MIT
/*
 * lib_stats.c - counters and histograms of a space, through the library
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB (1ull << 20)

static const struct hawk_hist *op(const struct hawk_stats_page *p, unsigned long cmd)
{
	return &p->op[HAWK_STATS_OP(cmd)];
}

static uint64_t sum(const struct hawk_hist *h)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < HAWK_STATS_BUCKETS; i++)
		n += h->bucket[i];
	return n;
}

/* Of now: on the kernel's device hawk_kv_stats() brings the page up to date. */
static void page_of(struct hawk_kv *kv, struct hawk_stats_page *p)
{
	struct hawk_stats st;

	assert_ok(hawk_kv_stats_page(kv, p));
	assert_ok(hawk_kv_stats(kv, &st));
	assert_ok(hawk_kv_stats_page(kv, p));
	assert_memory_equal(&st, p->stats, sizeof(st));
}

static void calls_are_counted(void **state)
{
	struct hawk_item it[3] = { 0 };
	struct hawk_stats_page p;
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 4 * MIB, 8 * MIB);
	page_of(f.kv, &p);
	assert_int_equal(p.size, sizeof(p));
	assert_int_equal(p.version, HAWK_STATS_VERSION);
	for (i = 0; i < HAWK_STATS_OPS; i++)
		assert_int_equal(p.op[i].count, 0);
	fx_put(f.kv, 0, 20, 1);
	for (i = 0; i < 3; i++)
		fx_key(&it[i], 18 + i, 1);	/* the last one is not there */
	assert_int_equal(hawk_lookup(f.kv, it, 3, NULL, NULL), 2);
	assert_int_equal(fx_get(f.kv, 3, 1), 0);
	page_of(f.kv, &p);
	assert_int_equal(op(&p, HAWK_IOC_ALLOC)->items, 20);
	assert_int_equal(op(&p, HAWK_IOC_ALLOC)->failed, 0);
	assert_int_equal(op(&p, HAWK_IOC_PUT)->items, 20);
	assert_int_equal(op(&p, HAWK_IOC_LOOKUP)->count, 1);
	assert_int_equal(op(&p, HAWK_IOC_LOOKUP)->items, 3);
	assert_int_equal(op(&p, HAWK_IOC_LOOKUP)->failed, 1);
	assert_int_equal(op(&p, HAWK_IOC_GET)->count, 1);
	assert_int_equal(op(&p, HAWK_IOC_UNPIN)->count, 1);
	for (i = 0; i < HAWK_STATS_OPS; i++)
		assert_int_equal(sum(&p.op[i]), p.op[i].count);
	assert_true(hawk_hist_quantile(op(&p, HAWK_IOC_GET), 500) > 0);
	fx_close(&f);
}

#define ROWS 4u

/* Gathers by their rows, asynchronous ones when they have ended. */
static void gathers_are_counted(void **state)
{
	uint32_t count = ROWS, remap[ROWS], i;
	uint64_t lid[ROWS];
	int32_t status[ROWS];
	struct hawk_gather_lists l = {
		.lid = lid, .count = &count, .lists = 1, .remap = remap, .status = status,
		.buf = aligned_alloc(HAWK_FRAME_ALIGN, ROWS * FX_BLOCK),
		.buf_bytes = ROWS * FX_BLOCK,
	};
	struct hawk_opts async = { .flags = HAWK_BATCH_ASYNC };
	struct hawk_cqe cqe = { .flags = 0 };
	struct hawk_stats_page p;
	struct fx f;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	assert_ok(hawk_ring_open(f.kv, 16, -1));
	fx_put(f.kv, 0, ROWS - 1, 1);
	for (i = 0; i < ROWS; i++)
		lid[i] = fx_lid(i);	/* the last one is not there */
	page_of(f.kv, &p);
	assert_int_equal(p.gather.count, 0);
	assert_int_equal(hawk_gather(f.kv, &l, NULL, NULL), ROWS - 1);
	assert_int_equal(hawk_gather(f.kv, &l, &async, NULL), 0);
	while (cqe.flags != HAWK_CQE_BATCH)
		if (hawk_reap(f.kv, &cqe, 1) != 1)
			poll(&(struct pollfd){ .fd = hawk_ring_fd(f.kv), .events = POLLIN }, 1, 1000);
	page_of(f.kv, &p);
	assert_int_equal(p.gather.count, 2);
	assert_int_equal(p.gather.items, 2 * ROWS);
	assert_int_equal(p.gather.failed, 2);
	assert_int_equal(sum(&p.gather), 2);
	assert_true(p.gather.ns && hawk_hist_quantile(&p.gather, 500));
	free(l.buf);
	fx_close(&f);
}

/* Moves are told where the backend knows them. */
static void moves_are_counted(void **state)
{
	struct hawk_stats_page p;
	struct hawk_stats st;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, FX_CHUNK_FRAMES + 10, 1);
	assert_int_equal(fx_get(f.kv, 0, 1), 0);
	page_of(f.kv, &p);
	memcpy(&st, p.stats, sizeof(st));
	assert_true(st.reloads && st.evict_write);
	assert_int_equal(p.read[f.flash].count, f.dev ? st.reloads : 0);
	assert_int_equal(p.write[f.flash].count, f.dev ? st.evict_write : 0);
	fx_close(&f);
}

static void *get_all(void *arg)
{
	struct hawk_kv *kv = arg;
	uint32_t i;

	for (i = 0; i < 200; i++)
		assert_int_equal(fx_get(kv, i % 10, 1), 0);
	return NULL;
}

/* By several threads, and by all who have the space. */
static void threads_add_up(void **state)
{
	struct hawk_kv_params params;
	struct hawk_stats_page p;
	struct hawk_kv *a, *b;
	pthread_t thread[4];
	char name[32];
	struct fx f;
	int i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	snprintf(name, sizeof(name), "stats-%d", getpid());
	params = fx_params(&f);
	params.quota[f.dram].max_bytes = 2 * MIB;
	params.name = name;
	params.mode = 0600;
	assert_ok(hawk_kv_create(f.h, &params, &a));
	assert_ok(hawk_kv_attach(f.h, name, &b));
	fx_put(a, 0, 10, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, get_all, i % 2 ? a : b), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	page_of(b, &p);
	assert_int_equal(op(&p, HAWK_IOC_GET)->count, 800);
	assert_int_equal(sum(op(&p, HAWK_IOC_GET)), 800);
	page_of(f.kv, &p);
	assert_int_equal(op(&p, HAWK_IOC_GET)->count, 0);	/* another space */
	hawk_kv_close(a);
	hawk_kv_close(b);
	assert_ok(hawk_kv_destroy(f.h, name));
	fx_close(&f);
}

static void quantiles(void **state)
{
	struct hawk_hist h = { 0 };

	(void)state;
	assert_int_equal(hawk_hist_quantile(&h, 500), 0);
	h.bucket[10] = 100;	/* 1024 to 2047 ns */
	assert_int_equal(hawk_hist_quantile(&h, 500), 1024 + 512);
	assert_int_equal(hawk_hist_quantile(&h, 1000), 2048);
	assert_int_equal(hawk_hist_quantile(&h, 5000), 2048);
	assert_int_equal(hawk_hist_quantile(&h, 0), 1024 + 10);
	h.bucket[20] = 1;	/* one of 101: behind the 99th percentile */
	assert_true(hawk_hist_quantile(&h, 990) <= 2048);
	assert_true(hawk_hist_quantile(&h, 1000) > 1 << 20);
	h.bucket[20] = 2;
	assert_true(hawk_hist_quantile(&h, 990) >= 1 << 20);
	memset(&h, 0, sizeof(h));
	h.bucket[0] = 1;
	assert_int_equal(hawk_hist_quantile(&h, 500), 2);
	h.bucket[HAWK_STATS_BUCKETS - 1] = UINT32_MAX;
	assert_true(hawk_hist_quantile(&h, 500) >= 1ull << (HAWK_STATS_BUCKETS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_counted),
		cmocka_unit_test(gathers_are_counted),
		cmocka_unit_test(moves_are_counted),
		cmocka_unit_test(threads_add_up),
		cmocka_unit_test(quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
