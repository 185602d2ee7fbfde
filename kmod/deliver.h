/* SPDX-License-Identifier: GPL-2.0 */
/*
 * deliver.h - a delivery of blocks under way, paced by the engine (deliver.c)
 */
#ifndef HAWK_DELIVER_H
#define HAWK_DELIVER_H

#include "core/pace.h"

struct hawk_as;
struct hawk_io;
struct hawk_job;
struct hawk_mem;
struct hawk_plan;

/**
 * struct hawk_deliver - a delivery, from its begin to its end
 * @d: the engine's
 * @space: number of the space, for traces
 * @load: what it brings
 * @begin: when it began, nanoseconds
 * @end: when the last bytes of a kind came, or 0, by enum hawk_pace_kind
 * @wait_ns: how long it has waited for the pace
 * @pid: the process that asked
 * @left: reloads: moves that have not ended, and one while they are being started
 * @error: why bytes did not come, a negative errno; 0: all did until now
 */
struct hawk_deliver {
	struct hawk_delivery d;
	u64 space;
	struct hawk_pace_load load;
	u64 begin;
	u64 end[HAWK_PACE_KINDS];
	u64 wait_ns;
	u32 pid;
	atomic_t left;
	int error;
};

struct hawk_pace *hawk_deliver_pace(void);
bool hawk_deliver_in_time(struct hawk_as *as, const struct hawk_pace_load *load);
void hawk_deliver_begin(struct hawk_deliver *v, struct hawk_as *as,
			const struct hawk_pace_load *load, u32 pid);
u64 hawk_deliver_take(struct hawk_deliver *v, const struct hawk_mem *m, u64 unit, u64 want,
		      u64 *wait_ns);
void hawk_deliver_done(struct hawk_deliver *v, const struct hawk_mem *m, u64 bytes);
void hawk_deliver_skip(struct hawk_deliver *v, const struct hawk_mem *m, u64 bytes, int error);
void hawk_deliver_waited(struct hawk_deliver *v, u64 since);
void hawk_deliver_end(struct hawk_deliver *v);

/* ---- reloads ---- */

struct hawk_deliver *hawk_deliver_plan(struct hawk_as *as, struct hawk_job *job,
				       const struct hawk_plan *plan);
void hawk_deliver_submit(struct hawk_deliver *v, struct hawk_job *job, struct list_head *batch);
void hawk_deliver_put(struct hawk_deliver *v);
int hawk_deliver_check(struct hawk_job *job);

#endif /* HAWK_DELIVER_H */
