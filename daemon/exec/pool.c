// SPDX-License-Identifier: MIT
/*
 * Both waits (a worker for its next job, a thread at a barrier) are on a
 * counter that only grows: struct gate. The waker adds one, and makes the
 * system call only when somebody sleeps. The order "count, then look for
 * sleepers" against "announce the sleep, then re-check the count" (in the
 * kernel) is sequentially consistent, so no wake-up is lost.
 */
#define _GNU_SOURCE
#include "exec/pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POOL_SPINS 500 /* some 10 us */

struct gate {
	_Atomic uint32_t count;
	_Atomic uint32_t sleepers;
} __attribute__((aligned(64)));

struct worker {
	struct pool *pool;
	pthread_t thread;
	uint32_t tid;
};

struct pool {
	uint32_t n;
	uint32_t spins;
	uint32_t n_started;
	bool stop;	   /* read by workers after the job gate opens */
	uint32_t n_active; /* threads in the current job */
	void (*fn)(void *arg, uint32_t tid);
	void *arg;
	struct worker *workers;
	struct gate job;   /* opens once per job */
	struct gate phase; /* opens when all have arrived at a barrier */
	_Atomic uint32_t arrived;
};

static void cpu_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void gate_open(struct gate *g)
{
	atomic_fetch_add(&g->count, 1);
	if (atomic_load(&g->sleepers))
		syscall(SYS_futex, &g->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Wait until the count differs from @seen. */
static void gate_wait(struct gate *g, uint32_t seen, uint32_t spins)
{
	while (spins--) {
		if (atomic_load_explicit(&g->count, memory_order_acquire) != seen)
			return;
		cpu_relax();
	}
	atomic_fetch_add(&g->sleepers, 1);
	while (atomic_load(&g->count) == seen)
		syscall(SYS_futex, &g->count, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	atomic_fetch_sub(&g->sleepers, 1);
}

void pool_barrier(struct pool *p)
{
	/* Read before arriving: afterwards the caller may have begun another job. */
	uint32_t seen, n = p->n_active;

	if (n == 1)
		return;
	seen = atomic_load(&p->phase.count);
	if (atomic_fetch_add(&p->arrived, 1) + 1 == n) {
		atomic_store(&p->arrived, 0);
		gate_open(&p->phase);
	} else {
		gate_wait(&p->phase, seen, p->spins);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;
	uint32_t seen = 0;

	for (;;) {
		gate_wait(&p->job, seen, p->spins);
		seen++;
		if (p->stop)
			return NULL;
		p->fn(p->arg, w->tid);
		pool_barrier(p);
	}
}

void pool_run(struct pool *p, bool parallel, void (*fn)(void *, uint32_t), void *arg)
{
	if (!parallel || p->n == 1) {
		p->n_active = 1;
		fn(arg, 0);
		return;
	}
	p->n_active = p->n;
	p->fn = fn;
	p->arg = arg;
	gate_open(&p->job);
	fn(arg, 0);
	pool_barrier(p);
}

/* Best effort: a thread that cannot be pinned still computes. */
static void pin_thread(pthread_t thread, uint32_t tid)
{
	cpu_set_t all, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	tid %= CPU_COUNT(&all);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || tid--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(thread, sizeof(one), &one);
		return;
	}
}

uint32_t pool_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set);
}

int pool_create(uint32_t n, bool pin, struct pool **out)
{
	struct pool *p = aligned_alloc(64, sizeof(*p));
	uint32_t i;
	int ret;

	if (!p)
		return -ENOMEM;
	*p = (struct pool){ .n = n, .n_active = 1 };
	/* Spinning while another thread waits for the CPU only delays it. */
	p->spins = n > pool_cpus() ? 0 : POOL_SPINS;
	p->workers = calloc(n, sizeof(*p->workers));
	if (!p->workers) {
		free(p);
		return -ENOMEM;
	}
	for (i = 1; i < n; i++) {
		struct worker *w = &p->workers[i];

		w->pool = p;
		w->tid = i;
		ret = pthread_create(&w->thread, NULL, worker_main, w);
		if (ret) {
			pool_destroy(p);
			return -ret;
		}
		p->n_started++;
		if (pin)
			pin_thread(w->thread, i);
	}
	*out = p;
	return 0;
}

void pool_destroy(struct pool *p)
{
	uint32_t i;

	if (!p)
		return;
	p->stop = true;
	gate_open(&p->job);
	for (i = 1; i <= p->n_started; i++)
		pthread_join(p->workers[i].thread, NULL);
	free(p->workers);
	free(p);
}

uint32_t pool_size(const struct pool *p)
{
	return p->n;
}
