/* SPDX-License-Identifier: GPL-2.0 */
/*
 * gather.h - a gather under way, as gather.c and gather_io.c share it
 */
#ifndef HAWK_GATHER_H
#define HAWK_GATHER_H

#include "job.h"
#include "deliver.h"

struct hawk_gather_call;

/**
 * struct hawk_gather_io - one transfer of a gather
 * @io: how it is made; its move tells the driver where
 * @c: the gather, referenced
 * @at: first place in the buffer
 * @n: places, neighbours in their tier
 * @copied: of these, by the CPU until now
 * @again: place that is being read again, through staging pages
 * @crc_ns: CPU time of checksums in its present step
 */
struct hawk_gather_io {
	struct hawk_io io;
	struct hawk_gather_call *c;
	u32 at;
	u32 n;
	u32 copied;
	u32 again;
	u64 crc_ns;
};

/**
 * struct hawk_gather_call - a gather under way
 * @ref: the caller or the work queue, and every transfer
 * @f: the file, referenced
 * @as: its space
 * @task: how it is told to stop
 * @set: rows, blocks, places
 * @deadline_ns: when no transfer begins any more, 0: none
 * @urgent: before others
 * @deliver: its delivery, from the first transfer to the last
 * @lists: lists that the rows are of
 * @pid: the process that asked, for traces
 * @called: when it did, nanoseconds
 * @async: results go to the ring
 * @left: transfers not ended, and one while they are being started
 * @over: @left is 0 and the buffer has been let go (release); its caller waits for it
 * @page: the buffer's pages, pinned until @left is 0
 * @bv: the same for drivers
 * @npages: how many
 * @charged: blocks charged to RLIMIT_MEMLOCK for them
 * @run: the transfers
 * @nruns: how many
 * @start: when the first began, nanoseconds
 * @end: when the last one of a tier ended, nanoseconds
 * @moved: blocks that came
 * @error: why one did not, a negative errno; 0: all did until now
 * @work: runs an asynchronous one
 */
struct hawk_gather_call {
	struct kref ref;
	struct hawk_file *f;
	struct hawk_as *as;
	struct hawk_task task;
	struct hawk_gather_set set;
	u64 deadline_ns;
	bool urgent;
	struct hawk_deliver deliver;
	u32 lists;
	u32 pid;
	u64 called;
	bool async;
	atomic_t left;
	bool over;
	struct page **page;
	struct bio_vec *bv;
	u32 npages;
	u32 charged;
	struct hawk_gather_io *run;
	u32 nruns;
	u64 start;
	u64 end[HAWK_TIERS_MAX];
	atomic_t moved;
	int error;
	struct work_struct work;
};

void hawk_gather_put(struct hawk_gather_call *c);
void hawk_gather_over(struct hawk_gather_call *c);
int hawk_gather_runs(struct hawk_gather_call *c, struct hawk_gather *arg);
bool hawk_gather_in_time(struct hawk_gather_call *c);
void hawk_gather_start(struct hawk_gather_call *c);
int hawk_gather_wait(struct hawk_gather_call *c);

#endif /* HAWK_GATHER_H */
