// SPDX-License-Identifier: GPL-2.0
/*
 * batch_ops.c - what each batch call does with one item
 *
 * A step is tried again until it gives a final status, so it begins from where
 * the item stands (struct hawk_item_state) and changes nothing before it can
 * finish.
 */
#include "hawk.h"
#include "trace.h"

#include <linux/sched/signal.h>

#define HAWK_PIN_TRIES	4	/* a block may be evicted between reload and pin */

static int hawk_item_check(struct hawk_job *job, const struct hawk_item *it)
{
	if (it->flags & ~job->op->item_flags)
		return -EOPNOTSUPP;
	if (job->op->item_flags & HAWK_ITEM_PARENT ? !hawk_hints_ok(it->flags, it->arg) :
						     it->arg && !job->op->arg)
		return -EINVAL;
	if ((it->flags & HAWK_ITEM_BY_KEY) && !hawk_item_key(it))
		return -EINVAL;
	return 0;
}

/* A new LID must be one of the space's geometry, and of its slice. */
static int hawk_item_check_lid(struct hawk_job *job, u64 lid)
{
	const struct hawk_space_info *info = &job->as->info;

	return hawk_lid_check(lid, info->layers, info->head_groups, info->tp_rank,
			      info->tp_degree);
}

/* The key that HAWK_ITEM_PARENT gives, or NULL: there is none. */
static const u8 *hawk_item_parent(const struct hawk_job *job, u32 i)
{
	if (!(job->items[i].flags & HAWK_ITEM_PARENT))
		return NULL;
	return memchr_inv(job->parent[i], 0, HAWK_KEY_BYTES) ? job->parent[i] : NULL;
}

/* The hints of an item for the engine. */
static u32 hawk_item_hints(const struct hawk_job *job, u32 i)
{
	u32 hints = job->items[i].flags & HAWK_ITEM_HINTS;

	return hawk_item_parent(job, i) ? hints : hints & ~HAWK_ITEM_PARENT;
}

/* For the caller to see: the LID of the block, not of a token in it. */
static void hawk_item_round(struct hawk_job *job, struct hawk_item *it)
{
	it->lid = hawk_lid_block(it->lid, job->as->info.block_tokens);
}

/* The engine's answer where it needs moves or room: is it final? */
static int hawk_wait_or(struct hawk_job *job, int ret)
{
	if (ret == -ENOSPC && !job->settled) {
		job->settle = true;
		return HAWK_STEP_WAIT;
	}
	return ret == -EAGAIN || ret == -EINPROGRESS ? HAWK_STEP_WAIT : ret;
}

/* ---- calls that may wait ---- */

/* No room, nor will there be: a revocable export may give some. */
static bool hawk_job_relieve(struct hawk_job *job, int ret)
{
	if ((ret != -ENOSPC && ret != -EDQUOT) || signal_pending(current))
		return false;
	if (ret == -ENOSPC && !job->settled)
		return false;	/* chunks on their way first: hawk_wait_or() */
	return hawk_export_relieve(job->f, job->now + HAWK_YIELD_NS);
}

static int hawk_alloc_block(struct hawk_job *job, struct hawk_item *it)
{
	bool nowait = job->arg.flags & HAWK_BATCH_NOWAIT;
	int ret;

	do {
		ret = hawk_block_alloc(job->as->space, it->lid, hawk_item_key(it),
				       job->arg.tier, job->now, nowait ? NULL : &job->plan,
				       &it->vt);
	} while (hawk_as_grew(job->as, ret) || (!nowait && hawk_job_relieve(job, ret)));
	return nowait ? ret : hawk_wait_or(job, ret);
}

static int hawk_step_alloc(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	struct hawk_ref ref;
	int ret = hawk_item_check(job, it) ?: hawk_item_check_lid(job, it->lid);

	if (ret)
		return ret;
	hawk_item_round(job, it);
	ret = hawk_alloc_block(job, it);
	if (ret == HAWK_STEP_WAIT)
		return ret;
	if (ret)
		goto out;
	/* Our pin keeps it: nobody can end it before it is written down. */
	hawk_block_hint(job->as->space, it->lid, hawk_item_hints(job, i),
			hawk_item_parent(job, i));
	ret = hawk_block_ref(job->as->space, it->lid, &it->vt, &ref);
	if (!ret)
		ret = hawk_pin_add(job->f, ref, job->memlock);
out:
	trace_hawk_alloc(job, it, ret);
	return ret;
}

/* Find the block by key and lease it until the item is done. */
static int hawk_item_by_key(struct hawk_job *job, u32 i)
{
	struct hawk_item_state *st = &job->st[i];
	struct hawk_item *it = &job->items[i];
	int ret;

	if (st->leased || !(it->flags & HAWK_ITEM_BY_KEY))
		return 0;
	ret = hawk_block_find(job->as->space, it->key, true, job->now, &it->lid, &it->vt,
			      &st->ref);
	st->leased = !ret;
	return ret;
}

static int hawk_reload_block(struct hawk_job *job, const struct hawk_item *it)
{
	int ret;

	do {
		ret = hawk_block_reload(job->as->space, it->lid, job->arg.tier, job->now,
					&job->plan);
	} while (hawk_as_grew(job->as, ret) || hawk_job_relieve(job, ret));
	return ret;
}

/* A LID may have been given to another block since the key was looked up. */
static int hawk_get_pin(struct hawk_job *job, u32 i)
{
	struct hawk_item_state *st = &job->st[i];
	struct hawk_item *it = &job->items[i];
	struct hawk_ref ref;
	int ret = hawk_block_pin(job->as->space, it->lid, job->now, &it->vt, &ref);

	if (ret)
		return ret;
	if (st->leased && (ref.block != st->ref.block || ref.gen != st->ref.gen)) {
		hawk_block_unpin(job->as->space, ref);
		return -ENOENT;
	}
	return hawk_pin_add(job->f, ref, job->memlock);
}

static int hawk_step_get(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	int ret = hawk_item_check(job, it), tries;

	if (ret)
		return ret;
	ret = hawk_item_by_key(job, i);
	if (ret)
		goto out;
	hawk_item_round(job, it);
	for (tries = 0; tries < HAWK_PIN_TRIES; tries++) {
		ret = hawk_get_pin(job, i);
		if (ret != -EAGAIN || (job->arg.flags & HAWK_BATCH_NOWAIT))
			break;
		ret = hawk_reload_block(job, it);
		if (ret) {
			ret = hawk_wait_or(job, ret);
			break;
		}
		ret = -EAGAIN;	/* in a host tier but not to be pinned: FILLING */
	}
	if (ret == -ENOENT && job->st[i].read_error)
		ret = -EIO;
out:
	if (ret != HAWK_STEP_WAIT)
		trace_hawk_get(job, it, ret);
	return ret;
}

static void hawk_undo_pin(struct hawk_job *job, u32 i)
{
	hawk_pin_drop(job->f, 0, job->items[i].vt);
}

static int hawk_step_reload(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	struct hawk_ref ref;
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	ret = hawk_item_by_key(job, i);
	if (ret)
		goto out;
	hawk_item_round(job, it);
	ret = hawk_reload_block(job, it);
	if (ret == -ENOENT && job->st[i].read_error)
		ret = -EIO;
	else if (ret)
		ret = hawk_wait_or(job, ret);
	else
		ret = hawk_block_ref(job->as->space, it->lid, &it->vt, &ref);
out:
	if (ret != HAWK_STEP_WAIT)
		trace_hawk_reload(job, it, ret);
	return ret;
}

/* A pinned block: is it pinned by exports that give way? */
static bool hawk_job_yield(struct hawk_job *job, u64 lid)
{
	return hawk_export_yield(job->as, lid, job->now + HAWK_YIELD_NS);
}

static int hawk_item_unshare(struct hawk_job *job, struct hawk_item *it)
{
	int ret;

	do {
		ret = hawk_pin_unshare(job->f, it->lid, job->now, job->memlock, &job->plan,
				       &it->vt);
	} while (hawk_as_grew(job->as, ret) || hawk_job_relieve(job, ret));
	return ret;
}

static int hawk_step_unshare(struct hawk_job *job, u32 i)
{
	struct hawk_item_state *st = &job->st[i];
	struct hawk_item *it = &job->items[i];
	u32 before = job->plan.n;
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	if (st->copied && st->read_error) {
		/* The memory of the source is gone, and what was copied is nothing. */
		hawk_pin_drop(job->f, it->lid, it->vt);
		return -EIO;
	}
	if (st->copied)
		return 0;
	hawk_item_round(job, it);
	ret = hawk_item_unshare(job, it);
	if (ret == -EBUSY && hawk_job_yield(job, it->lid))
		ret = hawk_item_unshare(job, it);
	ret = hawk_wait_or(job, ret);
	if (ret != HAWK_STEP_WAIT)
		trace_hawk_unshare(job, it, ret);
	if (ret)
		return ret;
	/* Not before its copy has been made. */
	st->copied = true;
	return job->plan.n > before ? HAWK_STEP_WAIT : 0;
}

/* ---- calls that never wait ---- */

static int hawk_step_put(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	hawk_item_round(job, it);
	ret = hawk_pin_put(job->f, it->lid, hawk_item_key(it), hawk_item_hints(job, i),
			   hawk_item_parent(job, i), job->arg.flags & HAWK_BATCH_KEEP_PIN,
			   job->now);
	it->vt = hawk_space_translate(job->as->space, it->lid);
	trace_hawk_put(job, it, ret);
	return ret;
}

static int hawk_step_lookup(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	struct hawk_lease *l = job->lease;
	struct hawk_ref ref;
	int ret = hawk_item_check(job, it);
	bool lease;

	if (ret)
		return ret;
	if (!hawk_item_key(it))
		return -EINVAL;
	lease = l && l->n == i;	/* everything before it was there and is leased */
	ret = hawk_block_find(job->as->space, it->key, lease, job->now, &it->lid, &it->vt,
			      &ref);
	if (!ret && lease)
		l->ref[l->n++] = ref;
	trace_hawk_lookup(job, it, ret);
	return ret;
}

static int hawk_step_pin(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	struct hawk_ref ref;
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	hawk_item_round(job, it);
	ret = hawk_block_pin(job->as->space, it->lid, job->now, &it->vt, &ref);
	if (!ret)
		ret = hawk_pin_add(job->f, ref, job->memlock);
	trace_hawk_pin(job, it, ret);
	return ret;
}

static int hawk_step_unpin(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	if (it->lid)
		hawk_item_round(job, it);
	ret = hawk_pin_drop(job->f, it->lid, it->vt);
	trace_hawk_unpin(job, it, ret);
	return ret;
}

static int hawk_step_fork(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	int ret = hawk_item_check(job, it) ?: hawk_item_check_lid(job, it->arg);

	if (ret)
		return ret;
	hawk_item_round(job, it);
	ret = hawk_block_fork(job->as->space, it->lid, it->arg);
	it->vt = hawk_space_translate(job->as->space, it->lid);
	trace_hawk_fork(job, it, ret);
	return ret;
}

static int hawk_step_free(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	it->vt = 0;
	if (it->flags & HAWK_ITEM_BY_KEY) {
		ret = hawk_key_free(job->as->space, it->key);
	} else {
		hawk_item_round(job, it);
		ret = hawk_block_free(job->as->space, it->lid);
		if (ret == -EBUSY && hawk_job_yield(job, it->lid))
			ret = hawk_block_free(job->as->space, it->lid);
	}
	trace_hawk_free(job, it, ret);
	return ret;
}

static int hawk_step_translate(struct hawk_job *job, u32 i)
{
	struct hawk_item *it = &job->items[i];
	int ret = hawk_item_check(job, it);

	if (ret)
		return ret;
	hawk_item_round(job, it);
	it->vt = hawk_space_translate(job->as->space, it->lid);
	return it->vt ? 0 : -ENOENT;
}

#define HAWK_OP(_cmd, ...)					\
	[_IOC_NR(_cmd) - _IOC_NR(HAWK_IOC_ALLOC)] = { .nr = _IOC_NR(_cmd), __VA_ARGS__ }

static const struct hawk_batch_op hawk_batch_ops[] = {
	HAWK_OP(HAWK_IOC_ALLOC, .flags = HAWK_BATCH_NOWAIT, .item_flags = HAWK_ITEM_HINTS,
		.writes = true, .waits = true, .step = hawk_step_alloc, .undo = hawk_undo_pin),
	HAWK_OP(HAWK_IOC_PUT, .flags = HAWK_BATCH_KEEP_PIN, .item_flags = HAWK_ITEM_HINTS,
		.writes = true, .step = hawk_step_put),
	HAWK_OP(HAWK_IOC_LOOKUP, .flags = HAWK_BATCH_LEASE, .item_flags = HAWK_ITEM_BY_KEY,
		.step = hawk_step_lookup),
	HAWK_OP(HAWK_IOC_PIN, .step = hawk_step_pin, .undo = hawk_undo_pin),
	HAWK_OP(HAWK_IOC_UNPIN, .step = hawk_step_unpin),
	HAWK_OP(HAWK_IOC_GET,
		.flags = HAWK_BATCH_ASYNC | HAWK_BATCH_NOWAIT | HAWK_BATCH_PREFIX |
			 HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME,
		.item_flags = HAWK_ITEM_BY_KEY, .waits = true,
		.step = hawk_step_get, .undo = hawk_undo_pin),
	HAWK_OP(HAWK_IOC_RELOAD,
		.flags = HAWK_BATCH_ASYNC | HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME,
		.item_flags = HAWK_ITEM_BY_KEY, .waits = true, .step = hawk_step_reload),
	HAWK_OP(HAWK_IOC_FORK, .writes = true, .arg = true, .step = hawk_step_fork),
	HAWK_OP(HAWK_IOC_UNSHARE, .writes = true, .waits = true, .step = hawk_step_unshare),
	HAWK_OP(HAWK_IOC_FREE, .item_flags = HAWK_ITEM_BY_KEY, .writes = true, .yields = true,
		.step = hawk_step_free),
	HAWK_OP(HAWK_IOC_TRANSLATE, .step = hawk_step_translate),
};

/* @nr: number of one of the batch calls */
const struct hawk_batch_op *hawk_batch_op(unsigned int nr)
{
	return &hawk_batch_ops[nr - _IOC_NR(HAWK_IOC_ALLOC)];
}
