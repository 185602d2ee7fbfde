// SPDX-License-Identifier: MIT
/*
 * lib_port.c - the lock, the table memory and the checksum under the engine
 */
#include <pthread.h>
#include <stdlib.h>

#include "../../kmod/core/port.h"
#include "crc32c.h"
#include "libfixture.h"

#define THREADS	8
#define ROUNDS	20000

static struct hawk_lock lock;
static unsigned long counter;

static void *count(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		hawk_lock(&lock);
		counter++;
		hawk_unlock(&lock);
	}
	return arg;
}

/* More threads than cores: nobody is left asleep, no increment is lost. */
static void lock_excludes(void **state)
{
	pthread_t t[THREADS];
	int i;

	(void)state;
	hawk_lock_init(&lock);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(counter, THREADS * ROUNDS);
	hawk_lock_fini(&lock);
}

static int order[THREADS];
static int served;

static void *take_turn(void *arg)
{
	hawk_lock(&lock);
	order[served++] = (int)(intptr_t)arg;
	hawk_unlock(&lock);
	return NULL;
}

/* Waiters get the lock in the order in which they came; tickets may wrap. */
static void lock_is_fair(void **state)
{
	pthread_t t[THREADS];
	u32 first = 0xfffffffcu;
	int i;

	(void)state;
	hawk_lock_init(&lock);
	lock.ticket = first;
	lock.serving = first;
	hawk_lock(&lock);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&t[i], NULL, take_turn, (void *)(intptr_t)i), 0);
		while (__atomic_load_n(&lock.ticket, __ATOMIC_ACQUIRE) != first + 2 + (u32)i)
			sched_yield();
	}
	hawk_unlock(&lock);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(order[i], i);
	hawk_lock_fini(&lock);
}

static void tables(void **state)
{
	static const size_t bytes[] = { 1, 64, 4096, (2u << 20) - 1, 2u << 20, 5u << 20 };
	unsigned char *p;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		p = hawk_table_alloc(bytes[i], 1);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		for (k = 0; k < bytes[i]; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, bytes[i]);
		hawk_table_free(p, bytes[i], 1);
	}
	hawk_table_free(NULL, 1, 1);
	assert_null(hawk_table_alloc(SIZE_MAX / 2, 4));
	assert_null(hawk_table_alloc(SIZE_MAX, 1));
}

/* Check value of the Castagnoli polynomial, vectors of RFC 3720 B.4. */
static void checksum(void **state)
{
	unsigned char buf[32];

	(void)state;
	assert_int_equal(hawk_crc32c("123456789", 9), 0xe3069283);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(hawk_crc32c(buf, sizeof(buf)), 0x8a9136aa);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(hawk_crc32c(buf, sizeof(buf)), 0x62a8ab43);
}

/* All ways that this CPU knows give the same sums, from any place on and of any length. */
static void checksum_ways(void **state)
{
	unsigned char buf[9000];
	u32 way, crc, want;
	size_t n, i;

	(void)state;
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = (unsigned char)(i * 167 + i / 13);
	for (n = 0; n < sizeof(buf) - 8; n += n < 1200 ? 1 : 61) {
		assert_true(hawk_crc32c_by(HAWK_CRC32C_TABLE, buf + n % 8, n, &want));
		assert_int_equal(hawk_crc32c(buf + n % 8, n), want);
		for (way = HAWK_CRC32C_RUNS; way <= HAWK_CRC32C_FOLD; way++)
			if (hawk_crc32c_by(way, buf + n % 8, n, &crc))
				assert_int_equal(crc, want);
		crc = hawk_crc32c_more(hawk_crc32c_more(~0u, buf + n % 8, n / 3),
				       buf + n % 8 + n / 3, n - n / 3);
		assert_int_equal(~crc, want);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_excludes),
		cmocka_unit_test(lock_is_fair),
		cmocka_unit_test(tables),
		cmocka_unit_test(checksum),
		cmocka_unit_test(checksum_ways),
	};

	return cmocka_run_group_tests_name("lib_port", tests, NULL, NULL);
}
