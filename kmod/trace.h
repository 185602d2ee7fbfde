/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - tracepoints, system "hawk"
 *
 * Told in Documentation/ABI/testing/tracepoints-hawk.  Fields keep their names and
 * meaning; new ones come at the end, new values of enums after the known ones.
 * space is the number of the space since module load, pid the process that asked
 * (0: the device itself), ret 0 or a negative errno; offsets and sizes are in
 * bytes, times in nanoseconds.  64-bit fields come first, so there are no holes.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hawk

#if !defined(HAWK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HAWK_TRACE_H

#include <linux/tracepoint.h>

#include "gather.h"
#include "core/seq.h"

TRACE_DEFINE_ENUM(HAWK_MOVE_WRITE);
TRACE_DEFINE_ENUM(HAWK_MOVE_READ);
TRACE_DEFINE_ENUM(HAWK_MOVE_COPY);

#define hawk_show_move(kind) \
	__print_symbolic(kind, { HAWK_MOVE_WRITE, "write" }, { HAWK_MOVE_READ, "read" }, \
			 { HAWK_MOVE_COPY, "copy" })

TRACE_DEFINE_ENUM(HAWK_FATE_CLEAN);
TRACE_DEFINE_ENUM(HAWK_FATE_WRITE);
TRACE_DEFINE_ENUM(HAWK_FATE_AHEAD);
TRACE_DEFINE_ENUM(HAWK_FATE_DROP);
TRACE_DEFINE_ENUM(HAWK_FATE_FLASH_DROP);

#define hawk_show_fate(fate) \
	__print_symbolic(fate, { HAWK_FATE_CLEAN, "clean" }, { HAWK_FATE_WRITE, "write" }, \
			 { HAWK_FATE_AHEAD, "ahead" }, { HAWK_FATE_DROP, "drop" }, \
			 { HAWK_FATE_FLASH_DROP, "flash_drop" })

TRACE_DEFINE_ENUM(HAWK_WHY_COPY);
TRACE_DEFINE_ENUM(HAWK_WHY_ROOM);
TRACE_DEFINE_ENUM(HAWK_WHY_NO_FLASH);
TRACE_DEFINE_ENUM(HAWK_WHY_FULL);
TRACE_DEFINE_ENUM(HAWK_WHY_COLDER);
TRACE_DEFINE_ENUM(HAWK_WHY_SLOT);
TRACE_DEFINE_ENUM(HAWK_WHY_FAILED);
TRACE_DEFINE_ENUM(HAWK_WHY_DRAIN);
TRACE_DEFINE_ENUM(HAWK_WHY_SCORE);
TRACE_DEFINE_ENUM(HAWK_WHY_BUDGET);
TRACE_DEFINE_ENUM(HAWK_WHY_PARENT);
TRACE_DEFINE_ENUM(HAWK_WHY_RULE);
TRACE_DEFINE_ENUM(HAWK_WHY_WARMER);

#define hawk_show_reason(reason) \
	__print_symbolic(reason, { HAWK_WHY_COPY, "copy" }, { HAWK_WHY_ROOM, "room" }, \
			 { HAWK_WHY_NO_FLASH, "no_flash" }, { HAWK_WHY_FULL, "full" }, \
			 { HAWK_WHY_COLDER, "colder" }, { HAWK_WHY_SLOT, "slot" }, \
			 { HAWK_WHY_FAILED, "failed" }, { HAWK_WHY_DRAIN, "drain" }, \
			 { HAWK_WHY_SCORE, "score" }, { HAWK_WHY_BUDGET, "budget" }, \
			 { HAWK_WHY_PARENT, "parent" }, { HAWK_WHY_RULE, "rule" }, \
			 { HAWK_WHY_WARMER, "warmer" })

TRACE_DEFINE_ENUM(HAWK_REFUSE_QUOTA);
TRACE_DEFINE_ENUM(HAWK_REFUSE_TIER);
TRACE_DEFINE_ENUM(HAWK_REFUSE_LIDS);
TRACE_DEFINE_ENUM(HAWK_REFUSE_MIN);
TRACE_DEFINE_ENUM(HAWK_REFUSE_LENT);
TRACE_DEFINE_ENUM(HAWK_REFUSE_MEMLOCK);

#define hawk_show_refusal(reason) \
	__print_symbolic(reason, { HAWK_REFUSE_QUOTA, "quota" }, { HAWK_REFUSE_TIER, "tier" }, \
			 { HAWK_REFUSE_LIDS, "lids" }, { HAWK_REFUSE_MIN, "min" }, \
			 { HAWK_REFUSE_LENT, "lent" }, \
			 { HAWK_REFUSE_MEMLOCK, "memlock" })

TRACE_DEFINE_ENUM(HAWK_LOCK_DEVICE);
TRACE_DEFINE_ENUM(HAWK_LOCK_TIER);
TRACE_DEFINE_ENUM(HAWK_LOCK_BUCKET);
TRACE_DEFINE_ENUM(HAWK_LOCK_SHARD);
TRACE_DEFINE_ENUM(HAWK_LOCK_SEQ);
TRACE_DEFINE_ENUM(HAWK_LOCK_BUDGET);
TRACE_DEFINE_ENUM(HAWK_LOCK_PACE);
TRACE_DEFINE_ENUM(HAWK_LOCK_PROMOTE);

#define hawk_show_lock(lock) \
	__print_symbolic(lock, { HAWK_LOCK_DEVICE, "device" }, { HAWK_LOCK_TIER, "tier" }, \
			 { HAWK_LOCK_BUCKET, "bucket" }, { HAWK_LOCK_SHARD, "shard" }, \
			 { HAWK_LOCK_SEQ, "seq" },					\
			 { HAWK_LOCK_BUDGET, "budget" },				\
			 { HAWK_LOCK_PACE, "pace" },					\
			 { HAWK_LOCK_PROMOTE, "promote" })

TRACE_DEFINE_ENUM(HAWK_PACE_FLASH);
TRACE_DEFINE_ENUM(HAWK_PACE_DRAM);

#define hawk_show_kind(kind) \
	__print_symbolic(kind, { HAWK_PACE_FLASH, "flash" }, { HAWK_PACE_DRAM, "dram" })

#ifndef HAWK_TRACE_HELPERS
#define HAWK_TRACE_HELPERS
static inline u64 hawk_trace_flash(const struct hawk_deliver *v)
{
	u64 sum = 0;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		sum += v->load.flash[t];
	return sum;
}

static inline u64 hawk_trace_end(const struct hawk_deliver *v, u32 kind)
{
	u64 end = READ_ONCE(v->end[kind]);

	return end > v->begin ? end - v->begin : 0;
}
#endif

/* The numbers of the batch calls, as in their ioctl numbers. */
#define hawk_show_op(op) \
	__print_symbolic(op, { 0x10, "alloc" }, { 0x11, "put" }, { 0x12, "lookup" }, \
			 { 0x13, "pin" }, { 0x14, "unpin" }, { 0x15, "get" }, { 0x16, "reload" }, \
			 { 0x17, "fork" }, { 0x18, "unshare" }, { 0x19, "free" }, \
			 { 0x1a, "translate" })

/* States of a block, enum hawk_block_state of the engine. */
#define hawk_show_state(state) \
	__print_symbolic(state, { 0, "free" }, { 1, "filling" }, { 2, "ready" }, \
			 { 3, "evicting" }, { 4, "flash" }, { 5, "reloading" }, { 6, "dying" })

/* ---- calls ---- */

/* One item of a batch call, with its final status. */
DECLARE_EVENT_CLASS(hawk_item,
	TP_PROTO(const struct hawk_job *job, const struct hawk_item *it, int ret),
	TP_ARGS(job, it, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(u64, vt)
		__field(u32, pid)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = job->asker.space;
		__entry->lid = it->lid;
		__entry->vt = ret ? 0 : it->vt;
		__entry->pid = job->asker.pid;
		__entry->ret = ret;
	),
	TP_printk("space=%llu lid=%#llx vt=%#llx pid=%u ret=%d", __entry->space, __entry->lid,
		  __entry->vt, __entry->pid, __entry->ret)
);

#define DEFINE_HAWK_ITEM_EVENT(name)						\
	DEFINE_EVENT(hawk_item, name,						\
		TP_PROTO(const struct hawk_job *job, const struct hawk_item *it, int ret), \
		TP_ARGS(job, it, ret))

DEFINE_HAWK_ITEM_EVENT(hawk_alloc);
DEFINE_HAWK_ITEM_EVENT(hawk_put);
DEFINE_HAWK_ITEM_EVENT(hawk_lookup);
DEFINE_HAWK_ITEM_EVENT(hawk_pin);
DEFINE_HAWK_ITEM_EVENT(hawk_unpin);
DEFINE_HAWK_ITEM_EVENT(hawk_get);
DEFINE_HAWK_ITEM_EVENT(hawk_reload);
DEFINE_HAWK_ITEM_EVENT(hawk_unshare);
DEFINE_HAWK_ITEM_EVENT(hawk_free);

/* An item of FORK: @lid's block gets @new_lid too. */
TRACE_EVENT(hawk_fork,
	TP_PROTO(const struct hawk_job *job, const struct hawk_item *it, int ret),
	TP_ARGS(job, it, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(u64, new_lid)
		__field(u64, vt)
		__field(u32, pid)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = job->asker.space;
		__entry->lid = it->lid;
		__entry->new_lid = it->arg;
		__entry->vt = ret ? 0 : it->vt;
		__entry->pid = job->asker.pid;
		__entry->ret = ret;
	),
	TP_printk("space=%llu lid=%#llx new_lid=%#llx vt=%#llx pid=%u ret=%d", __entry->space,
		  __entry->lid, __entry->new_lid, __entry->vt, __entry->pid, __entry->ret)
);

/* A batch call: begun, ended.  latency and done are 0 at its start. */
DECLARE_EVENT_CLASS(hawk_batch,
	TP_PROTO(const struct hawk_job *job, u64 latency, u32 done),
	TP_ARGS(job, latency, done),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, latency)
		__field(u32, op)
		__field(u32, items)
		__field(u32, done)
		__field(u32, flags)
		__field(u32, pid)
		__field(u32, async)
	),
	TP_fast_assign(
		__entry->space = job->asker.space;
		__entry->latency = latency;
		__entry->op = job->op->nr;
		__entry->items = job->arg.count;
		__entry->done = done;
		__entry->flags = job->arg.flags;
		__entry->pid = job->asker.pid;
		__entry->async = job->async;
	),
	TP_printk("space=%llu op=%s items=%u done=%u flags=%#x pid=%u async=%u latency=%llu",
		  __entry->space, hawk_show_op(__entry->op), __entry->items, __entry->done,
		  __entry->flags, __entry->pid, __entry->async, __entry->latency)
);

DEFINE_EVENT(hawk_batch, hawk_batch_begin,
	TP_PROTO(const struct hawk_job *job, u64 latency, u32 done),
	TP_ARGS(job, latency, done));
DEFINE_EVENT(hawk_batch, hawk_batch_end,
	TP_PROTO(const struct hawk_job *job, u64 latency, u32 done),
	TP_ARGS(job, latency, done));

/* ---- sequences ---- */

TRACE_DEFINE_ENUM(HAWK_SEQ_NEW);
TRACE_DEFINE_ENUM(HAWK_SEQ_FORK);
TRACE_DEFINE_ENUM(HAWK_SEQ_APPEND);
TRACE_DEFINE_ENUM(HAWK_SEQ_RESERVE);
TRACE_DEFINE_ENUM(HAWK_SEQ_ADVANCE);
TRACE_DEFINE_ENUM(HAWK_SEQ_DROP);
TRACE_DEFINE_ENUM(HAWK_SEQ_REPOS);
TRACE_DEFINE_ENUM(HAWK_SEQ_TRUNCATE);
TRACE_DEFINE_ENUM(HAWK_SEQ_COMPOSE);
TRACE_DEFINE_ENUM(HAWK_SEQ_FREE);

#define hawk_show_seq(op) \
	__print_symbolic(op, { HAWK_SEQ_NEW, "new" }, { HAWK_SEQ_FORK, "fork" }, \
			 { HAWK_SEQ_APPEND, "append" }, { HAWK_SEQ_RESERVE, "reserve" }, \
			 { HAWK_SEQ_ADVANCE, "advance" }, { HAWK_SEQ_DROP, "drop" }, \
			 { HAWK_SEQ_REPOS, "repos" }, { HAWK_SEQ_TRUNCATE, "truncate" }, \
			 { HAWK_SEQ_COMPOSE, "compose" }, { HAWK_SEQ_FREE, "free" })

/*
 * An operation on a sequence, with its status.  src, start, end, shift: as asked for;
 * len: history afterwards, tokens; frames: blocks that it gave back.
 */
TRACE_EVENT(hawk_seq,
	TP_PROTO(u64 space, const struct hawk_seq_op *op),
	TP_ARGS(space, op),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u32, op)
		__field(u32, seq)
		__field(u32, src)
		__field(u32, start)
		__field(u32, end)
		__field(s32, shift)
		__field(u32, len)
		__field(u32, frames)
		__field(u32, pid)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->op = op->op;
		__entry->seq = op->seq;
		__entry->src = op->src;
		__entry->start = op->start;
		__entry->end = op->end;
		__entry->shift = op->shift;
		__entry->len = op->len;
		__entry->frames = op->frames;
		__entry->pid = current->tgid;
		__entry->ret = op->status;
	),
	TP_printk("space=%llu op=%s seq=%u src=%u start=%u end=%u shift=%d len=%u frames=%u pid=%u ret=%d",
		  __entry->space, hawk_show_seq(__entry->op), __entry->seq, __entry->src,
		  __entry->start, __entry->end, __entry->shift, __entry->len, __entry->frames,
		  __entry->pid, __entry->ret)
);

/*
 * A sequence has been compacted (ret 0), or not: -ESTALE: it was changed meanwhile,
 * -EAGAIN: a block is not in memory, or there was no room, -ECANCELED: switched off.
 * rows: blocks of one layer and head group in its new run; frames: blocks given back.
 */
TRACE_EVENT(hawk_seq_compact,
	TP_PROTO(u64 space, const struct hawk_compact *c, u32 frames, int ret),
	TP_ARGS(space, c, frames, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u32, seq)
		__field(u32, run)
		__field(u32, rows)
		__field(u32, copies)
		__field(u32, frames)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->seq = c->seq;
		__entry->run = c->run;
		__entry->rows = c->rows;
		__entry->copies = c->n;
		__entry->frames = frames;
		__entry->ret = ret;
	),
	TP_printk("space=%llu seq=%u run=%u rows=%u copies=%u frames=%u ret=%d", __entry->space,
		  __entry->seq, __entry->run, __entry->rows, __entry->copies, __entry->frames,
		  __entry->ret)
);

/* ---- gathers ---- */

/*
 * A gather has ended: its last transfer has, or it did not begin.  unique: blocks with a
 * place in the buffer; bytes: that came; ret: 0, why it did not begin, or the error of a
 * block that did not come.
 */
TRACE_EVENT(hawk_gather,
	TP_PROTO(const struct hawk_gather_call *c, u64 latency, int ret),
	TP_ARGS(c, latency, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, bytes)
		__field(u64, latency)
		__field(u32, lists)
		__field(u32, rows)
		__field(u32, unique)
		__field(u32, transfers)
		__field(u32, pid)
		__field(u32, async)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = c->as->id;
		__entry->bytes = (u64)atomic_read(&c->moved) * c->as->info.block_bytes;
		__entry->latency = latency;
		__entry->lists = c->lists;
		__entry->rows = c->set.rows;
		__entry->unique = c->set.n;
		__entry->transfers = c->nruns;
		__entry->pid = c->pid;
		__entry->async = c->async;
		__entry->ret = ret;
	),
	TP_printk("space=%llu lists=%u rows=%u unique=%u transfers=%u bytes=%llu pid=%u async=%u latency=%llu ret=%d",
		  __entry->space, __entry->lists, __entry->rows, __entry->unique,
		  __entry->transfers, __entry->bytes, __entry->pid, __entry->async,
		  __entry->latency, __entry->ret)
);

/* ---- deliveries ---- */

/*
 * A delivery begins: a gather, or the reloads that a batch starts together.  dram and
 * flash: bytes that it has to bring; link: through an accelerator's link.
 */
TRACE_EVENT(hawk_deliver_begin,
	TP_PROTO(const struct hawk_deliver *v),
	TP_ARGS(v),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, dram)
		__field(u64, flash)
		__field(u64, deadline)
		__field(u32, pid)
		__field(u32, link)
		__field(u32, urgent)
	),
	TP_fast_assign(
		__entry->space = v->space;
		__entry->dram = v->load.dram;
		__entry->flash = hawk_trace_flash(v);
		__entry->deadline = v->load.deadline;
		__entry->pid = v->pid;
		__entry->link = v->load.link;
		__entry->urgent = v->load.urgent;
	),
	TP_printk("space=%llu dram=%llu flash=%llu deadline=%llu pid=%u link=%u urgent=%u",
		  __entry->space, __entry->dram, __entry->flash, __entry->deadline, __entry->pid,
		  __entry->link, __entry->urgent)
);

/* A part of it has come, at a time that the pace counts it with. */
TRACE_EVENT(hawk_deliver_part,
	TP_PROTO(const struct hawk_deliver *v, u32 tier, u32 kind, u64 bytes, u64 at),
	TP_ARGS(v, tier, kind, bytes, at),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, bytes)
		__field(u64, at)
		__field(u32, tier)
		__field(u32, kind)
		__field(u32, pid)
		__field(u32, link)
	),
	TP_fast_assign(
		__entry->space = v->space;
		__entry->bytes = bytes;
		__entry->at = at;
		__entry->tier = tier;
		__entry->kind = kind;
		__entry->pid = v->pid;
		__entry->link = v->load.link;
	),
	TP_printk("space=%llu bytes=%llu at=%llu tier=%u kind=%s pid=%u link=%u",
		  __entry->space, __entry->bytes, __entry->at, __entry->tier,
		  hawk_show_kind(__entry->kind), __entry->pid, __entry->link)
);

/* It has waited for flash to keep up, or for room on the link. */
TRACE_EVENT(hawk_pace_wait,
	TP_PROTO(const struct hawk_deliver *v, u64 wait),
	TP_ARGS(v, wait),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, wait)
		__field(u32, pid)
		__field(u32, link)
	),
	TP_fast_assign(
		__entry->space = v->space;
		__entry->wait = wait;
		__entry->pid = v->pid;
		__entry->link = v->load.link;
	),
	TP_printk("space=%llu wait=%llu pid=%u link=%u", __entry->space, __entry->wait,
		  __entry->pid, __entry->link)
);

/*
 * It has ended.  dram_ns, flash_ns: from its begin to the last bytes of the kind, 0: none
 * came; wait: of that it waited for the pace; ret: 0 or why something did not come.
 */
TRACE_EVENT(hawk_deliver_end,
	TP_PROTO(const struct hawk_deliver *v),
	TP_ARGS(v),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, dram)
		__field(u64, flash)
		__field(u64, dram_ns)
		__field(u64, flash_ns)
		__field(u64, wait)
		__field(u32, pid)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = v->space;
		__entry->dram = v->load.dram;
		__entry->flash = hawk_trace_flash(v);
		__entry->dram_ns = hawk_trace_end(v, HAWK_PACE_DRAM);
		__entry->flash_ns = hawk_trace_end(v, HAWK_PACE_FLASH);
		__entry->wait = v->wait_ns;
		__entry->pid = v->pid;
		__entry->ret = v->error;
	),
	TP_printk("space=%llu dram=%llu flash=%llu dram_ns=%llu flash_ns=%llu wait=%llu pid=%u ret=%d",
		  __entry->space, __entry->dram, __entry->flash, __entry->dram_ns,
		  __entry->flash_ns, __entry->wait, __entry->pid, __entry->ret)
);

/* A step of lazy promotion: moves were begun, or ret tells why none was. */
TRACE_EVENT(hawk_promote,
	TP_PROTO(const struct hawk_as *as, u32 blocks, int ret),
	TP_ARGS(as, blocks, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, bytes)
		__field(u32, blocks)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = as->id;
		__entry->bytes = (u64)blocks * as->info.block_bytes;
		__entry->blocks = blocks;
		__entry->ret = min(ret, 0);
	),
	TP_printk("space=%llu blocks=%u bytes=%llu ret=%d", __entry->space, __entry->blocks,
		  __entry->bytes, __entry->ret)
);

/* ---- room ---- */

/*
 * Room was refused.  need, use and limit are bytes (lids: LIDs): use of limit is
 * taken, need did not fit, and nothing could be evicted for it.
 */
TRACE_EVENT(hawk_quota,
	TP_PROTO(const struct hawk_refusal *r),
	TP_ARGS(r),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(u64, need)
		__field(u64, use)
		__field(u64, limit)
		__field(u32, tier)
		__field(u32, reason)
		__field(u32, pid)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = r->space;
		__entry->lid = r->lid;
		__entry->need = r->need;
		__entry->use = r->use;
		__entry->limit = r->limit;
		__entry->tier = r->tier;
		__entry->reason = r->reason;
		__entry->pid = r->pid;
		__entry->ret = r->ret;
	),
	TP_printk("space=%llu lid=%#llx tier=%u reason=%s need=%llu use=%llu limit=%llu pid=%u ret=%d",
		  __entry->space, __entry->lid, __entry->tier, hawk_show_refusal(__entry->reason),
		  __entry->need, __entry->use, __entry->limit, __entry->pid, __entry->ret)
);

/*
 * A block loses its place in a tier.  space, lid, ...: the victim; by_space and
 * by_pid: who wanted room (by_space differs from space when a space is made to
 * give up memory for another one; by_pid 0: the device itself).
 */
TRACE_EVENT(hawk_evict,
	TP_PROTO(const struct hawk_as *as, const struct hawk_note *n, const struct hawk_asker *by,
		 u64 now),
	TP_ARGS(as, n, by, now),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(u64, age)
		__field(u64, by_space)
		__field(u32, by_pid)
		__field(u32, block)
		__field(u32, gen)
		__field(u32, tier)
		__field(u32, state)
		__field(u32, how)
	),
	TP_fast_assign(
		__entry->space = as->id;
		__entry->lid = n->lid;
		__entry->age = now > n->atime ? now - n->atime : 0;
		__entry->by_space = by->space;
		__entry->by_pid = by->pid;
		__entry->block = n->block;
		__entry->gen = n->gen;
		__entry->tier = n->tier;
		__entry->state = n->state;
		__entry->how = n->fate;
	),
	TP_printk("space=%llu lid=%#llx how=%s block=%u gen=%u tier=%u state=%s age=%llu by_space=%llu by_pid=%u",
		  __entry->space, __entry->lid, hawk_show_fate(__entry->how), __entry->block,
		  __entry->gen, __entry->tier, hawk_show_state(__entry->state), __entry->age,
		  __entry->by_space, __entry->by_pid)
);

/*
 * Does a block that leaves its host tier (or is written ahead) get a place on
 * flash?  decision clean: it has one; write, ahead: it gets one, on tier to;
 * drop: it does not, and reason tells why.  to is -1 where there is none.
 */
TRACE_EVENT(hawk_admit,
	TP_PROTO(const struct hawk_as *as, const struct hawk_note *n, u64 now),
	TP_ARGS(as, n, now),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(u64, age)
		__field(u32, block)
		__field(u32, tier)
		__field(s32, to)
		__field(u32, decision)
		__field(u32, reason)
		__field(u32, bytes)
	),
	TP_fast_assign(
		__entry->space = as->id;
		__entry->lid = n->lid;
		__entry->age = now > n->atime ? now - n->atime : 0;
		__entry->block = n->block;
		__entry->tier = n->tier;
		__entry->to = n->to;
		__entry->decision = n->fate;
		__entry->reason = n->reason;
		__entry->bytes = as->info.block_bytes;
	),
	TP_printk("space=%llu lid=%#llx decision=%s reason=%s block=%u tier=%u to=%d bytes=%u age=%llu",
		  __entry->space, __entry->lid, hawk_show_fate(__entry->decision),
		  hawk_show_reason(__entry->reason), __entry->block, __entry->tier, __entry->to,
		  __entry->bytes, __entry->age)
);

/* ---- moves ---- */

/* A move between tiers.  latency and ret are 0 at its start. */
DECLARE_EVENT_CLASS(hawk_move,
	TP_PROTO(u64 space, const struct hawk_move *mv, u64 latency),
	TP_ARGS(space, mv, latency),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, src_off)
		__field(u64, dst_off)
		__field(u64, latency)
		__field(u32, block)
		__field(u32, gen)
		__field(u32, src_tier)
		__field(u32, dst_tier)
		__field(u32, kind)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->src_off = mv->src_off;
		__entry->dst_off = mv->dst_off;
		__entry->latency = latency;
		__entry->block = mv->block;
		__entry->gen = mv->gen;
		__entry->src_tier = mv->src_tier;
		__entry->dst_tier = mv->dst_tier;
		__entry->kind = mv->kind;
		__entry->ret = latency ? mv->result : 0;
	),
	TP_printk("space=%llu %s block=%u gen=%u tier%u+%llu -> tier%u+%llu latency=%llu ret=%d",
		  __entry->space, hawk_show_move(__entry->kind), __entry->block, __entry->gen,
		  __entry->src_tier, __entry->src_off, __entry->dst_tier, __entry->dst_off,
		  __entry->latency, __entry->ret)
);

#define DEFINE_HAWK_MOVE_EVENT(name)						\
	DEFINE_EVENT(hawk_move, name,						\
		TP_PROTO(u64 space, const struct hawk_move *mv, u64 latency),	\
		TP_ARGS(space, mv, latency))

DEFINE_HAWK_MOVE_EVENT(hawk_move_start);
DEFINE_HAWK_MOVE_EVENT(hawk_move_done);

/* ---- locks ---- */

/*
 * A lock was not free.  wait is how long it took to get it; caller the code that
 * wanted it (print it with the kernel's symbols).
 */
TRACE_EVENT(hawk_lock_wait,
	TP_PROTO(u32 lock, u64 wait, unsigned long caller),
	TP_ARGS(lock, wait, caller),
	TP_STRUCT__entry(
		__field(u64, wait)
		__field(u64, caller)
		__field(u32, lock)
		__field(u32, pid)
	),
	TP_fast_assign(
		__entry->wait = wait;
		__entry->caller = caller;
		__entry->lock = lock;
		__entry->pid = current->flags & PF_KTHREAD ? 0 : current->tgid;
	),
	TP_printk("lock=%s wait=%llu pid=%u caller=%pS", hawk_show_lock(__entry->lock),
		  __entry->wait, __entry->pid, (void *)(unsigned long)__entry->caller)
);

/* ---- spaces ---- */

/* A space comes or goes. */
DECLARE_EVENT_CLASS(hawk_space,
	TP_PROTO(u64 space, const struct hawk_space_info *info),
	TP_ARGS(space, info),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u32, block_bytes)
		__field(u32, max_blocks)
		__array(char, name, HAWK_NAME_MAX)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->block_bytes = info->block_bytes;
		__entry->max_blocks = info->max_blocks;
		memcpy(__entry->name, info->name, HAWK_NAME_MAX);
	),
	TP_printk("space=%llu name=%s block_bytes=%u max_blocks=%u", __entry->space,
		  __entry->name, __entry->block_bytes, __entry->max_blocks)
);

DEFINE_EVENT(hawk_space, hawk_space_create,
	TP_PROTO(u64 space, const struct hawk_space_info *info),
	TP_ARGS(space, info));
DEFINE_EVENT(hawk_space, hawk_space_destroy,
	TP_PROTO(u64 space, const struct hawk_space_info *info),
	TP_ARGS(space, info));

#endif /* HAWK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
