// SPDX-License-Identifier: MIT
/*
 * wait.c - sleeping until moves have completed
 *
 * A thread that finds no room and no move to make itself waits for the moves of
 * others.  It counts completions before it asks the engine, so that one between
 * the answer and the sleep is not lost; completers look at the number of sleepers
 * after they have counted, sleepers at the count after they have announced
 * themselves, all sequentially consistent.
 *
 * Threads that plan or move are counted too.  When all of them sleep nothing is
 * in flight: whoever would be the last to sleep is told -EAGAIN instead.
 */
#include <time.h>

#include "embed.h"

#define NS	1000000000ull

u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NS + (u64)ts.tv_nsec;
}

int wait_init(struct embed *e)
{
	pthread_condattr_t attr;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	ret = -pthread_cond_init(&e->wait_cond, &attr);
	if (!ret) {
		ret = -pthread_cond_init(&e->keeper_cond, &attr);
		if (ret)
			pthread_cond_destroy(&e->wait_cond);
	}
	pthread_condattr_destroy(&attr);
	if (ret)
		return ret;
	pthread_mutex_init(&e->wait_lock, NULL);
	pthread_mutex_init(&e->keeper_lock, NULL);
	return 0;
}

void wait_fini(struct embed *e)
{
	pthread_cond_destroy(&e->wait_cond);
	pthread_cond_destroy(&e->keeper_cond);
	pthread_mutex_destroy(&e->wait_lock);
	pthread_mutex_destroy(&e->keeper_lock);
}

static void wake(struct embed *e)
{
	__atomic_fetch_add(&e->moved, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&e->waiters, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&e->wait_lock);
	pthread_cond_broadcast(&e->wait_cond);
	pthread_mutex_unlock(&e->wait_lock);
}

void planner_enter(struct embed *e)
{
	__atomic_fetch_add(&e->planners, 1, __ATOMIC_SEQ_CST);
}

void planner_leave(struct embed *e)
{
	__atomic_fetch_sub(&e->planners, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&e->waiters, __ATOMIC_SEQ_CST))
		wake(e);	/* it may have been the last one awake */
}

u32 moved_count(struct embed *e)
{
	return __atomic_load_n(&e->moved, __ATOMIC_SEQ_CST);
}

/* A move has completed. */
void moved_note(struct embed *e)
{
	wake(e);
}

/**
 * moved_wait() - sleep until a move completes that is not in @seen
 * @deadline: CLOCK_MONOTONIC ns, 0 for none
 * Return: 0; -ETIME; -EAGAIN (no other thread is at work).
 */
int moved_wait(struct embed *e, u32 seen, u64 deadline)
{
	struct timespec ts = { (time_t)(deadline / NS), (long)(deadline % NS) };
	int ret = 0;
	u32 asleep;

	pthread_mutex_lock(&e->wait_lock);
	asleep = __atomic_add_fetch(&e->waiters, 1, __ATOMIC_SEQ_CST);
	while (!ret && moved_count(e) == seen) {
		if (asleep >= __atomic_load_n(&e->planners, __ATOMIC_SEQ_CST))
			ret = -EAGAIN;
		else if (!deadline)
			pthread_cond_wait(&e->wait_cond, &e->wait_lock);
		else if (pthread_cond_timedwait(&e->wait_cond, &e->wait_lock, &ts) == ETIMEDOUT)
			ret = -ETIME;
		asleep = __atomic_load_n(&e->waiters, __ATOMIC_SEQ_CST);
	}
	__atomic_fetch_sub(&e->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&e->wait_lock);
	return ret;
}
