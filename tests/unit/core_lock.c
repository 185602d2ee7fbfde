// SPDX-License-Identifier: MIT
/*
 * core_lock.c - the lock of the user-space port: exclusive, fair, loses no wake-up
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "core_host.h"

#define THREADS		32	/* many more than cores, so that waiters sleep */
#define ROUNDS		2000

struct shared {
	struct hawk_lock lock;
	u64 plain[2];		/* guarded by @lock; equal whenever it is free */
	u32 order[THREADS];	/* in which they got the lock */
	u32 norder;
	u32 go;
};

struct worker {
	pthread_t thread;
	struct shared *sh;
	u32 nr;
};

static void start(struct shared *sh, struct worker *w, void *(*run)(void *))
{
	u32 i;

	hawk_lock_init(&sh->lock);
	for (i = 0; i < THREADS; i++) {
		w[i].sh = sh;
		w[i].nr = i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, run, &w[i]), 0);
	}
}

static void join(struct shared *sh, struct worker *w)
{
	u32 i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
	hawk_lock_fini(&sh->lock);
}

static void *count(void *arg)
{
	struct worker *w = arg;
	struct shared *sh = w->sh;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		hawk_lock(&sh->lock);
		if (sh->plain[0] != sh->plain[1])
			abort();
		sh->plain[0]++;
		if (i % 64 == 0)
			sched_yield();	/* lose the core with the lock held */
		sh->plain[1]++;
		hawk_unlock(&sh->lock);
		if (i % 256 == w->nr)
			sched_yield();
	}
	return NULL;
}

/* If a wake-up were lost this test would not end; if two held the lock, it counts less. */
static void one_at_a_time(void **state)
{
	struct shared sh = { 0 };
	struct worker w[THREADS];

	(void)state;
	start(&sh, w, count);
	join(&sh, w);
	assert_int_equal(sh.plain[0], (u64)THREADS * ROUNDS);
	assert_int_equal(sh.plain[1], (u64)THREADS * ROUNDS);
}

/* Threads queue up one after the other behind an owner. */
static void *queue_up(void *arg)
{
	struct worker *w = arg;
	struct shared *sh = w->sh;

	/* the tickets say who has queued: thread n comes when n + 1 are out */
	while (hawk_load(&sh->lock.ticket) != w->nr + 1 || !hawk_load(&sh->go))
		sched_yield();
	hawk_lock(&sh->lock);
	sh->order[sh->norder++] = w->nr;
	hawk_unlock(&sh->lock);
	return NULL;
}

static void first_come_first_served(void **state)
{
	struct shared sh = { 0 };
	struct worker w[THREADS];
	u32 i;

	(void)state;
	start(&sh, w, queue_up);
	hawk_lock(&sh.lock);
	hawk_store(&sh.go, 1);
	while (hawk_load(&sh.lock.ticket) != THREADS + 1)
		sched_yield();
	hawk_unlock(&sh.lock);
	join(&sh, w);
	assert_int_equal(sh.norder, THREADS);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(sh.order[i], i);
}

/* The tickets are 32 bits wide and wrap. */
static void tickets_wrap(void **state)
{
	struct shared sh = { 0 };
	struct worker w[THREADS];
	u32 i;

	(void)state;
	hawk_lock_init(&sh.lock);
	sh.lock.ticket = -(u32)(THREADS * ROUNDS / 2);
	sh.lock.serving = sh.lock.ticket;
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .sh = &sh, .nr = i };
		assert_int_equal(pthread_create(&w[i].thread, NULL, count, &w[i]), 0);
	}
	join(&sh, w);
	assert_int_equal(sh.plain[0], (u64)THREADS * ROUNDS);
	assert_int_equal(sh.lock.ticket, THREADS * ROUNDS / 2);
}

/* Tables are zeroed and line-aligned, small and large, and refuse to overflow. */
static void tables(void **state)
{
	static const size_t bytes[] = { 1, 64, 4096, 5 << 20 };
	u32 i, k;
	u8 *p;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		p = hawk_table_alloc(3, bytes[i]);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		for (k = 0; k < 3 * bytes[i]; k += 61)
			assert_int_equal(p[k], 0);
		memset(p, 1, 3 * bytes[i]);
		hawk_table_free(p, 3, bytes[i]);
	}
	assert_null(hawk_table_alloc(SIZE_MAX / 2, 3));
	assert_null(hawk_table_alloc(SIZE_MAX, 1));
	hawk_table_free(NULL, 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(tickets_wrap),
		cmocka_unit_test(tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
