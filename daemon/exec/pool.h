/* SPDX-License-Identifier: MIT */
/*
 * pool.h - threads that run one function together, in step with each other.
 *
 * A job is one call of a function by every thread; inside it pool_barrier()
 * separates phases. Waiters spin briefly, because phases last microseconds,
 * then sleep on a futex, because the machine has other work too.
 */
#ifndef HAWK_POOL_H
#define HAWK_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct pool;

/**
 * pool_create() - start @n - 1 threads; the caller of pool_run() is the other
 * @n: threads, at least 1
 * @pin: bind each started thread to one CPU of this process's affinity mask
 *
 * Return: 0; -ENOMEM; -EAGAIN when a thread cannot be started.
 */
int pool_create(uint32_t n, bool pin, struct pool **out);

/** pool_destroy() - stop and join the threads; NULL is ignored */
void pool_destroy(struct pool *p);

/**
 * pool_run() - run fn(arg, tid) and return when it is done
 * @parallel: on all threads, tid 0..n-1; else on the caller only, tid 0
 */
void pool_run(struct pool *p, bool parallel, void (*fn)(void *, uint32_t), void *arg);

/** pool_barrier() - inside a job: wait for all threads that run it */
void pool_barrier(struct pool *p);

/** pool_size() - number of threads */
uint32_t pool_size(const struct pool *p);

/** pool_cpus() - CPUs this process may run on */
uint32_t pool_cpus(void);

#endif
