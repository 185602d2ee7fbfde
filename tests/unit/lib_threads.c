// SPDX-License-Identifier: MIT
/*
 * lib_threads.c - threads that allocate, put, get, fork and free in one space
 *
 * Each thread owns a range of block numbers, so it knows what must be there; the
 * threads share frames, flash and, in the second test, every block.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)
#define THREADS	4
#define RANGE	160u		/* blocks of a thread */
#define STEPS	1500u

static struct fx fx;
static uint64_t seed;

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33);
}

/* Publishes version @ver of block @n; 0 or the item's status. */
static int publish(uint32_t n, uint32_t ver)
{
	struct hawk_item it = { .lid = fx_lid(n) };

	if (hawk_alloc(fx.kv, &it, 1, NULL) != 1)
		return it.status;
	fx_fill(hawk_addr(fx.kv, it.vt), n, ver);
	fx_key(&it, n, ver);
	return hawk_put(fx.kv, &it, 1, NULL) == 1 ? 0 : it.status;
}

static void *own_blocks(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg, n, i;
	uint32_t version[RANGE] = { 0 };
	uint64_t s = seed + me;
	struct hawk_item it;

	for (i = 0; i < STEPS; i++) {
		n = rnd(&s) % RANGE;
		if (!version[n]) {
			version[n] = i + 1;
			assert_int_equal(publish(me * RANGE + n, version[n]), 0);
		} else if (rnd(&s) % 8) {
			assert_int_equal(fx_get(fx.kv, me * RANGE + n, version[n]), 0);
		} else {
			it = (struct hawk_item) { .lid = fx_lid(me * RANGE + n) };
			assert_int_equal(hawk_free(fx.kv, &it, 1), 1);
			assert_int_equal(fx_get(fx.kv, me * RANGE + n, version[n]), -ENOENT);
			version[n] = 0;
		}
	}
	return NULL;
}

static void run(void *(*fn)(void *))
{
	pthread_t t[THREADS];
	uintptr_t i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fn, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* Five times more blocks than frames: everything is found again, whole. */
static void ranges(void **state)
{
	struct hawk_stats st;

	(void)state;
	fx_open_buckets(&fx, 2 * MIB, 24 * MIB, 16);
	run(own_blocks);
	assert_ok(hawk_kv_stats(fx.kv, &st));
	assert_int_equal(st.pinned, 0);
	assert_int_equal(st.reload_errors, 0);
	assert_true(st.reloads > 0);
	fx_close(&fx);
}

/* A get by key of a block that others free and publish anew at the same time. */
static void *shared_blocks(void *arg)
{
	uint64_t s = seed + 100 + (uintptr_t)arg;
	struct hawk_item it;
	uint32_t n, i;
	int ret;

	for (i = 0; i < STEPS; i++) {
		n = rnd(&s) % RANGE;
		ret = fx_get(fx.kv, n, 1);	/* wrong bytes fail in there */
		if (ret == -ENOENT) {
			ret = publish(n, 1);
			assert_true(!ret || ret == -EEXIST || ret == -EAGAIN);
		} else if (!ret && !(rnd(&s) % 4)) {
			it = (struct hawk_item) { .lid = fx_lid(n) };
			if (!hawk_free(fx.kv, &it, 1))
				assert_true(it.status == -ENOENT || it.status == -EBUSY);
		} else {
			assert_true(!ret || ret == -EAGAIN);
		}
	}
	return NULL;
}

static void contended(void **state)
{
	struct hawk_stats st;

	(void)state;
	fx_open_buckets(&fx, 2 * MIB, 8 * MIB, 16);
	run(shared_blocks);
	assert_ok(hawk_kv_stats(fx.kv, &st));
	assert_int_equal(st.pinned, 0);
	fx_close(&fx);
}

/*
 * A reader without a pin: what hawk_translate() gave stays valid to read, and if
 * it is unchanged afterwards the bytes were the block's.
 */
static bool stop;

static void *optimistic(void *arg)
{
	uint64_t s = seed + 200, vt, first, sum, *w;
	unsigned long good = 0;
	uint32_t n;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		n = rnd(&s) % (3 * RANGE);
		vt = hawk_translate(fx.kv, fx_lid(n));
		w = hawk_addr(fx.kv, vt);
		if (!w)
			continue;
		first = __atomic_load_n(&w[0], __ATOMIC_RELAXED);
		sum = __atomic_load_n(&w[FX_BLOCK / 8 - 1], __ATOMIC_ACQUIRE);
		if (hawk_translate(fx.kv, fx_lid(n)) != vt)
			continue;
		assert_int_equal(first, ((uint64_t)n << 32 | 1) * 0x9e3779b97f4a7c15ull);
		assert_int_equal(sum, first + (FX_BLOCK / 8 - 1) * 0xbf58476d1ce4e5b9ull);
		good++;
	}
	*(unsigned long *)arg = good;
	return NULL;
}

static void translate_races(void **state)
{
	unsigned long good = 0;
	pthread_t t;
	uint32_t i;
	uint64_t s = seed;

	(void)state;
	fx_open(&fx, 2 * MIB, 24 * MIB);
	fx_put(fx.kv, 0, 3 * RANGE, 1);
	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	assert_int_equal(pthread_create(&t, NULL, optimistic, &good), 0);
	for (i = 0; i < 2 * STEPS; i++)
		assert_int_equal(fx_get(fx.kv, rnd(&s) % (3 * RANGE), 1), 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	assert_true(good > 0);
	fx_close(&fx);
}

/* Signals that a thread of this process has blocked. */
static uint64_t blocked_by(const char *tid)
{
	unsigned long long mask = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "SigBlk: %llx", &mask) != 1)
		;
	fclose(f);
	return mask;
}

/* No thread of ours takes a signal of the application's. */
static void signals_are_the_applications(void **state)
{
	struct dirent *d;
	uint32_t n = 0;
	DIR *dir;

	(void)state;
	fx_open(&fx, 4 * MIB, 8 * MIB);
	assert_int_equal(hawk_ring_open(fx.kv, 64, -1), 0);
	dir = opendir("/proc/self/task");
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || atoi(d->d_name) == getpid())
			continue;
		n++;
		assert_true(blocked_by(d->d_name) & 1ull << (SIGTERM - 1));
		assert_true(blocked_by(d->d_name) & 1ull << (SIGUSR1 - 1));
	}
	closedir(dir);
	assert_true(n || fx.dev);
	fx_close(&fx);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
		cmocka_unit_test(contended),
		cmocka_unit_test(translate_races),
		cmocka_unit_test(signals_are_the_applications),
	};
	const char *env = getenv("HAWK_SEED");

	seed = env ? strtoull(env, NULL, 0) : 1;
	printf("# seed %llu (HAWK_SEED)\n", (unsigned long long)seed);
	return cmocka_run_group_tests_name("lib_threads", tests, NULL, NULL);
}
