/* SPDX-License-Identifier: GPL-2.0 */
/*
 * submit.h - transfers are given to a drive: here, or by its submission threads
 */
#ifndef HAWK_SUBMIT_H
#define HAWK_SUBMIT_H

#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>

struct hawk_io;
struct hawk_mem;

int hawk_submit_start(struct hawk_mem *m, int node);
void hawk_submit_stop(struct hawk_mem *m);
void hawk_submit_add(struct list_head *batch, struct hawk_mem *m, struct hawk_io *io);
void hawk_submit(struct list_head *batch);
void hawk_submit_next(struct hawk_mem *m, struct hawk_io *io);

/* ---- CPU time of a stretch of code ---- */

/**
 * struct hawk_cpu_time - when a stretch of code began
 * @clock: local_clock()
 * @exec: run time of the thread, as the scheduler knew it
 * @switches: how often the thread had been switched from
 */
struct hawk_cpu_time {
	u64 clock;
	u64 exec;
	unsigned long switches;
};

static inline struct hawk_cpu_time hawk_cpu_begin(void)
{
	return (struct hawk_cpu_time){
		.clock = local_clock(),
		.exec = current->se.sum_exec_runtime,
		.switches = current->nvcsw + current->nivcsw,
	};
}

/*
 * CPU time of the thread since @t, nanoseconds.  Exact if it was not switched from; else
 * what the scheduler has added up, which errs by a tick at most, up as often as down, so
 * that sums are good.  Interrupts that came meanwhile count.
 */
static inline u64 hawk_cpu_ns(const struct hawk_cpu_time *t)
{
	if (t->switches == current->nvcsw + current->nivcsw)
		return local_clock() - t->clock;
	return current->se.sum_exec_runtime - t->exec;
}

#endif /* HAWK_SUBMIT_H */
