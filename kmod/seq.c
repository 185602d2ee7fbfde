// SPDX-License-Identifier: GPL-2.0
/*
 * seq.c - sequences: HAWK_IOC_SEQ, HAWK_IOC_SEQ_MAP, the end of their file
 *
 * The engine does the operations; here they are copied in once, done one by one and
 * copied out.  After each of them the blocks that nobody sees any more are given
 * back, so its answer tells how many that were.  Those that somebody has pinned or
 * leased are looked at again later (compact.c).
 */
#include "hawk.h"
#include "core/seq.h"
#include "trace.h"

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define HAWK_SEQ_TRIES	64	/* of an operation, if what is given back does not help */
#define HAWK_REAP_LIDS	256	/* LIDs looked at before others may run */
#define HAWK_CLOSE_LOOKS	256	/* of these by close(), which cannot be killed */

/**
 * hawk_seq_reap_some() - give back blocks that no sequence shows any more
 * @as: the space
 * @looks: how often to look for some, %HAWK_REAP_LIDS or one pass over all LIDs each
 * @frames: how many they were is added to it
 *
 * Context: may sleep.
 */
void hawk_seq_reap_some(struct hawk_as *as, u32 looks, u32 *frames)
{
	do {
		hawk_seq_reap(as->space, HAWK_REAP_LIDS, frames);
		cond_resched();
	} while (--looks && hawk_seq_dead(as->space));
}

/**
 * hawk_seq_reap_all() - give back all blocks that no sequence shows any more
 * @as: the space
 * @frames: how many they were is added to it
 *
 * But not those that are pinned or leased: whoever lets them go sees to them
 * (hawk_tidy_waiting()), and others may pin and unpin all the time.
 *
 * Context: may sleep.
 * Return: false: the caller is being killed, some are left.
 */
bool hawk_seq_reap_all(struct hawk_as *as, u32 *frames)
{
	do {
		hawk_seq_reap(as->space, HAWK_REAP_LIDS, frames);
		if (!hawk_seq_dead(as->space))
			return true;
		cond_resched();
	} while (!fatal_signal_pending(current));
	return false;
}

/* ---- HAWK_IOC_SEQ ---- */

/*
 * What only waits to be given back is no reason to refuse an operation: that is done
 * first, by us or by another thread that is at it, however long he takes.  Tries are
 * counted when neither is at it: pins that end all the time may be of no use to us.
 */
static void hawk_seq_try(struct hawk_file *f, struct hawk_seq_op *op)
{
	struct hawk_space *s = f->as->space;
	u32 tries = 0, frames = 0, before;

	while (hawk_seq_do(s, f->id, op) == -EAGAIN && tries < HAWK_SEQ_TRIES) {
		before = frames;
		if (!hawk_seq_reap_all(f->as, &frames))
			break;
		if (hawk_seq_reaping(s))
			schedule_timeout_killable(1);
		else if (frames == before)
			tries++;
	}
	if (op->status == -EAGAIN)
		op->status = -ENOSPC;
	op->frames = frames;
}

static void hawk_seq_one(struct hawk_file *f, struct hawk_seq_op *op, u32 *last)
{
	struct hawk_as *as = f->as;

	hawk_seq_resolve(op, *last);
	atomic_inc(&as->seq_ops);
	hawk_seq_try(f, op);
	*last = op->status && hawk_seq_makes(op) ? HAWK_SEQ_LAST : op->seq;
	if (!hawk_seq_reap_all(as, &op->frames) || (!op->status && hawk_seq_leaves(op)))
		hawk_tidy_soon(as);
	atomic_dec(&as->seq_ops);
	if (op->status)
		op->frames = 0;	/* they were others' */
	trace_hawk_seq(as->id, op);
}

/* Return: operations tried; the others have ECANCELED. */
static u32 hawk_seq_run(struct hawk_file *f, struct hawk_seq_op *ops, u32 count, u32 *done)
{
	u32 last = HAWK_SEQ_LAST, tried, i;

	*done = 0;
	for (tried = 0; tried < count && !signal_pending(current); tried++) {
		hawk_seq_one(f, &ops[tried], &last);
		*done += !ops[tried].status;
		cond_resched();
	}
	for (i = tried; i < count; i++)
		ops[i].status = -ECANCELED;
	return tried;
}

/* Has an operation behind number @i ended its sequence? */
static bool hawk_seq_ended(const struct hawk_seq_op *ops, u32 count, u32 i)
{
	u32 seq = ops[i].seq;

	while (++i < count)
		if (ops[i].op == HAWK_SEQ_FREE && !ops[i].status && ops[i].seq == seq)
			return true;
	return false;
}

/* The caller will not learn of the sequences that he has made. */
static void hawk_seq_undo(struct hawk_file *f, const struct hawk_seq_op *ops, u32 count)
{
	struct hawk_seq_op op;
	u32 i;

	for (i = 0; i < count; i++) {
		if (ops[i].status || !hawk_seq_makes(&ops[i]) || hawk_seq_ended(ops, count, i))
			continue;
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = ops[i].seq };
		hawk_seq_do(f->as->space, f->id, &op);
		hawk_seq_reap_all(f->as, &op.frames);
		cond_resched();
	}
}

static int hawk_seq_batch_check(struct hawk_file *f, const struct hawk_seq_batch *b)
{
	if (!b->count)
		return -EINVAL;
	if (b->count > HAWK_BATCH_MAX)
		return -E2BIG;
	if (!f->writable)
		return -EACCES;
	return f->as->info.seqs ? 0 : -EOPNOTSUPP;
}

/**
 * hawk_ioc_seq() - HAWK_IOC_SEQ
 * @f: caller's file, has a space
 * @arg: &struct hawk_seq_batch
 *
 * Return: 0; -EINVAL, -E2BIG: the argument; -EACCES: the file may not write;
 * -EOPNOTSUPP: a space without sequences; -EFAULT: what it made has been taken back;
 * -ENOMEM; -ERESTARTSYS: a signal came before anything was done.
 */
int hawk_ioc_seq(struct hawk_file *f, void *arg)
{
	struct hawk_seq_batch *b = arg;
	size_t bytes = array_size(b->count, sizeof(struct hawk_seq_op));
	int ret = hawk_seq_batch_check(f, b);
	struct hawk_seq_op *ops;
	u32 tried;

	if (ret)
		return ret;
	ops = kvmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!ops)
		return -ENOMEM;
	ret = -EFAULT;
	if (copy_from_user(ops, u64_to_user_ptr(b->ops), bytes))
		goto out_free;
	tried = hawk_seq_run(f, ops, b->count, &b->done);
	ret = tried ? 0 : -ERESTARTSYS;
	if (tried && copy_to_user(u64_to_user_ptr(b->ops), ops, bytes)) {
		hawk_seq_undo(f, ops, b->count);
		ret = -EFAULT;
	}
out_free:
	kvfree(ops);
	return ret;
}

/* ---- HAWK_IOC_SEQ_MAP ---- */

/**
 * hawk_ioc_seq_map() - HAWK_IOC_SEQ_MAP
 * @f: caller's file, has a space
 * @arg: &struct hawk_seq_map
 *
 * Return: 0; -EOPNOTSUPP: a space without sequences; -ENOENT; -E2BIG: too little room,
 * the argument tells how much is needed; -EFAULT; -ENOMEM.
 */
int hawk_ioc_seq_map(struct hawk_file *f, void *arg)
{
	struct hawk_seq_map *map = arg;
	const struct hawk_as *as = f->as;
	struct hawk_seg *segs = NULL;
	int ret;

	if (!as->info.seqs)
		return -EOPNOTSUPP;
	map->count = min3(map->count, as->info.segs, HAWK_SEQ_SEGS_MAX);
	if (map->count) {
		segs = kvmalloc_array(map->count, sizeof(*segs),
				      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!segs)
			return -ENOMEM;
	}
	ret = hawk_seq_map(as->space, map, segs);
	if (!ret && copy_to_user(u64_to_user_ptr(map->segs), segs,
				 array_size(map->count, sizeof(*segs))))
		ret = -EFAULT;
	kvfree(segs);
	return ret;
}

/* ---- the end of a file ---- */

/**
 * hawk_seq_close() - a file is at its end: so are the sequences that it owns
 * @f: the file, has a space; its pins have been dropped
 *
 * If their blocks are very many, the rest of them is given back later (compact.c).
 *
 * Context: may sleep.
 */
void hawk_seq_close(struct hawk_file *f)
{
	struct hawk_as *as = f->as;
	u32 frames = 0;

	if (!as->info.seqs)
		return;
	while (hawk_seq_end_owner(as->space, f->id))
		cond_resched();
	hawk_seq_reap_some(as, HAWK_CLOSE_LOOKS, &frames);
	hawk_tidy_waiting(as);
}
