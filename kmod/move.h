/* SPDX-License-Identifier: GPL-2.0 */
/*
 * move.h - moves of blocks between tiers: started by plans, ended from any context
 *
 * move.c starts and ends them; stage.c has those that go through staging pages.
 */
#ifndef HAWK_MOVE_H
#define HAWK_MOVE_H

#include "hawk.h"

#include <linux/bvec.h>
#include <linux/llist.h>

struct hawk_deliver;

#define HAWK_PLAN_MOVES	64	/* moves gathered before they are started */

/**
 * struct hawk_asker - on whose behalf the engine makes room, for traces
 * @space: number of the space
 * @pid: process, 0: the device itself
 */
struct hawk_asker {
	u64 space;
	u32 pid;
};

/* What a move through staging pages is doing (stage.c). */
enum hawk_stage {
	HAWK_STAGE_NONE,	/* it needs none */
	HAWK_STAGE_FETCH,	/* out of the source frame */
	HAWK_STAGE_FLASH,	/* from or to flash */
	HAWK_STAGE_STORE,	/* into the destination frame */
};

/**
 * struct hawk_io - one move
 * @move: what the engine asked for
 * @as: its space, referenced
 * @job: the batch that waits for it, referenced, or NULL
 * @item: of @job
 * @bytes: to be moved: those of a block, or of several by a gather
 * @ret: bytes moved or a negative errno, set by the one who ends the I/O
 * @start: when it began, nanoseconds
 * @ended: in the list of those whose I/O is over
 * @end: ends it where sleeping is allowed
 * @iocb: of the block tier
 * @node: in a batch of transfers to be submitted
 * @flash: to this tier
 * @deliver: the delivery that it is part of, or NULL
 * @taken: it has begun, as @deliver counts
 * @stage: enum hawk_stage
 * @xfer: what a provider, or the importer of a dma-buf, is asked for
 * @bv: pages of the host frame, or staging pages
 * @nbv: entries of @bv
 * @bv_one: @bv of a contiguous frame
 */
struct hawk_io {
	struct hawk_move move;
	struct hawk_as *as;
	struct hawk_job *job;
	u32 item;
	u32 bytes;
	long ret;
	u64 start;
	struct llist_node ended;
	void (*end)(struct hawk_io *io);
	struct kiocb iocb;
	struct list_head node;
	struct hawk_mem *flash;
	struct hawk_deliver *deliver;
	bool taken;
	u32 stage;
	struct hawk_provider_xfer xfer;
	struct bio_vec *bv;
	u32 nbv;
	struct bio_vec bv_one;
};

int hawk_move_init(void);
void hawk_move_exit(void);
bool hawk_round_try(struct hawk_as *as);
void hawk_round_begin(struct hawk_as *as);
void hawk_round_end(struct hawk_as *as);
void hawk_plan_start(struct hawk_as *as, struct hawk_job *job, struct hawk_plan *plan,
		     const u32 *item);
void hawk_io_end(struct hawk_io *io, long ret);
bool hawk_stage_wanted(const struct hawk_io *io);
void hawk_stage_start(struct hawk_io *io, struct list_head *batch);
bool hawk_stage_next(struct hawk_io *io);
void hawk_stage_alloc(struct hawk_io *io);
void hawk_stage_free(struct hawk_io *io);
struct hawk_provider_xfer *hawk_io_xfer(struct hawk_io *io, u64 off, bool write);
void hawk_io_failed(struct hawk_mem *m, bool write, u32 bytes, u64 off, int ret);

#endif /* HAWK_MOVE_H */
