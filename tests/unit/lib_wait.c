// SPDX-License-Identifier: MIT
/*
 * lib_wait.c - sleeping for the moves of others: nobody sleeps for ever
 */
#include "embed.h"
#include "libfixture.h"

static struct embed e;

static int setup(void **state)
{
	(void)state;
	memset(&e, 0, sizeof(e));
	return wait_init(&e);
}

static int teardown(void **state)
{
	(void)state;
	wait_fini(&e);
	return 0;
}

static void nobody_at_work(void **state)
{
	(void)state;
	planner_enter(&e);
	assert_int_equal(moved_wait(&e, moved_count(&e), 0), -EAGAIN);
	planner_leave(&e);
}

static void deadline(void **state)
{
	uint64_t end = fx_now() + 10000000;

	(void)state;
	planner_enter(&e);
	planner_enter(&e);	/* another one that does not move anything */
	assert_int_equal(moved_wait(&e, moved_count(&e), end), -ETIME);
	assert_true(fx_now() >= end);
	planner_leave(&e);
	planner_leave(&e);
}

/* A move that completed before the sleep is not slept over. */
static void moved_before(void **state)
{
	u32 seen = moved_count(&e);

	(void)state;
	planner_enter(&e);
	planner_enter(&e);
	moved_note(&e);
	assert_int_equal(moved_wait(&e, seen, 0), 0);
	planner_leave(&e);
	planner_leave(&e);
}

static void *sleeper(void *arg)
{
	*(int *)arg = moved_wait(&e, moved_count(&e), 0);
	planner_leave(&e);
	return NULL;
}

static void await_waiters(u32 n)
{
	while (__atomic_load_n(&e.waiters, __ATOMIC_SEQ_CST) != n)
		sched_yield();
}

static void woken_by_move(void **state)
{
	pthread_t t;
	int ret = 1;

	(void)state;
	planner_enter(&e);
	planner_enter(&e);
	assert_int_equal(pthread_create(&t, NULL, sleeper, &ret), 0);
	await_waiters(1);
	moved_note(&e);
	pthread_join(t, NULL);
	assert_int_equal(ret, 0);
	planner_leave(&e);
}

/* The last one awake goes away: the sleepers must look again. */
static void woken_by_leaving(void **state)
{
	pthread_t t;
	int ret = 1;

	(void)state;
	planner_enter(&e);
	planner_enter(&e);
	assert_int_equal(pthread_create(&t, NULL, sleeper, &ret), 0);
	await_waiters(1);
	planner_leave(&e);
	pthread_join(t, NULL);
	assert_int_equal(ret, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_at_work, setup, teardown),
		cmocka_unit_test_setup_teardown(deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(moved_before, setup, teardown),
		cmocka_unit_test_setup_teardown(woken_by_move, setup, teardown),
		cmocka_unit_test_setup_teardown(woken_by_leaving, setup, teardown),
	};

	return cmocka_run_group_tests_name("lib_wait", tests, NULL, NULL);
}
