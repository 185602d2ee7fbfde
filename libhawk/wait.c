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
 * in flight: whoever would be the last to sleep is told -EAGAIN instead.  A thread that
 * has been woken does not sleep any more, even if it has not run yet: only those count
 * that sleep on the present number of completions.
 *
 * One chunk is emptied at a time: the drain.  Who finds it taken waits as for a move, so
 * whoever has it is counted all the time that he has it: the two change together under
 * wait_lock, and its end is noted before it is counted no more.
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
	pthread_cond_init(&e->drain_cond, NULL);
	pthread_mutex_init(&e->keeper_lock, NULL);
	return 0;
}

void wait_fini(struct embed *e)
{
	pthread_cond_destroy(&e->wait_cond);
	pthread_cond_destroy(&e->drain_cond);
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

	pthread_mutex_lock(&e->wait_lock);
	__atomic_fetch_add(&e->waiters, 1, __ATOMIC_SEQ_CST);
	while (!ret && moved_count(e) == seen) {
		if (e->asleep_at != seen)
			e->asleep = 0;
		e->asleep_at = seen;
		e->asleep++;
		if (e->asleep >= __atomic_load_n(&e->planners, __ATOMIC_SEQ_CST))
			ret = -EAGAIN;
		else if (!deadline)
			pthread_cond_wait(&e->wait_cond, &e->wait_lock);
		else if (pthread_cond_timedwait(&e->wait_cond, &e->wait_lock, &ts) == ETIMEDOUT)
			ret = -ETIME;
		if (e->asleep_at == seen)
			e->asleep--;
	}
	__atomic_fetch_sub(&e->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&e->wait_lock);
	return ret;
}

/* ---- one chunk is emptied at a time ---- */

/**
 * drain_begin() - wait for the drain, take it and be a planner
 *
 * Not for a thread that is one already: others may sleep until its moves are done.
 */
void drain_begin(struct embed *e)
{
	pthread_mutex_lock(&e->wait_lock);
	while (e->draining)
		pthread_cond_wait(&e->drain_cond, &e->wait_lock);
	e->draining = true;
	planner_enter(e);
	pthread_mutex_unlock(&e->wait_lock);
}

/* drain_end() - what drain_begin() began is over */
void drain_end(struct embed *e)
{
	drain_leave(e);
	planner_leave(e);
}

/**
 * drain_try() - take the drain if it can be had now; the caller is a planner
 * @keeper: if not, share_all() is called again when it can
 * Return: whether it is his until drain_leave(); if not, moved_wait() sees its end.
 */
bool drain_try(struct embed *e, bool keeper)
{
	bool mine;

	pthread_mutex_lock(&e->wait_lock);
	mine = !e->draining;
	e->draining = true;
	e->drain_share |= keeper && !mine;
	pthread_mutex_unlock(&e->wait_lock);
	return mine;
}

/* drain_leave() - those whom drain_try() sent away look again */
void drain_leave(struct embed *e)
{
	bool share;

	pthread_mutex_lock(&e->wait_lock);
	e->draining = false;
	share = e->drain_share;
	e->drain_share = false;
	pthread_cond_signal(&e->drain_cond);
	pthread_mutex_unlock(&e->wait_lock);
	moved_note(e);
	if (share)
		keeper_kick_share(e);
}
