// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - the tracepoints themselves, and what is gathered only for them
 *
 * What costs something (the time, the quotas) is asked for only while somebody
 * listens.
 */
#include "hawk.h"

#include <linux/ktime.h>
#include <linux/sched/clock.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Who asks for room when no batch does: a process without a plan, or the device (0). */
static struct hawk_asker hawk_asker_current(const struct hawk_as *as)
{
	if (current->flags & PF_KTHREAD)
		return (struct hawk_asker){ .space = 0 };
	return (struct hawk_asker){ .space = as->id, .pid = current->tgid };
}

/* The engine's note of an eviction; a lock of the engine is held. */
void hawk_trace_note(void *owner, const struct hawk_note *note)
{
	const struct hawk_as *as = owner;
	struct hawk_asker by;
	u64 now;

	if (!trace_hawk_evict_enabled() && !trace_hawk_admit_enabled())
		return;
	now = ktime_get_ns();
	by = note->caller ? *(const struct hawk_asker *)note->caller : hawk_asker_current(as);
	if (note->fate != HAWK_FATE_AHEAD)
		trace_hawk_evict(as, note, &by, now);
	if (note->fate != HAWK_FATE_FLASH_DROP)
		trace_hawk_admit(as, note, now);
}

/*
 * The host tier that refused: the preferred one, or the first that @ret is true of.
 * Within their quota spaces are refused by the tier, at it by the quota.
 */
static void hawk_refusal_tier(struct hawk_refusal *r, const struct hawk_as *as, u32 prefer)
{
	u32 t, owned, max, total, free;

	r->tier = HAWK_TIER_ANY;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!as->mem[t] || as->mem[t]->kind == HAWK_TIER_BLK)
			continue;
		hawk_space_quota(as->space, t, &owned, &max);
		if (t != prefer && (r->tier != HAWK_TIER_ANY ||
				    (owned < max) != (r->ret == -ENOSPC)))
			continue;
		r->tier = t;
		r->reason = owned < max ? HAWK_REFUSE_TIER : HAWK_REFUSE_QUOTA;
		r->use = (u64)owned << HAWK_CHUNK_SHIFT;
		r->limit = (u64)max << HAWK_CHUNK_SHIFT;
		if (t == prefer)
			break;
	}
	if (r->reason == HAWK_REFUSE_TIER &&
	    !hawk_tier_usage(hawk_dev.engine, r->tier, &total, &free, NULL)) {
		r->use = (u64)(total - free) << HAWK_CHUNK_SHIFT;
		r->limit = (u64)total << HAWK_CHUNK_SHIFT;
	}
}

/**
 * hawk_trace_refusal() - an item got -ENOSPC or -EDQUOT
 * @job: its batch
 * @it: the item
 * @ret: its status
 */
void hawk_trace_refusal(const struct hawk_job *job, const struct hawk_item *it, int ret)
{
	struct hawk_refusal r = {
		.space = job->asker.space,
		.lid = it->lid,
		.need = job->as->info.block_bytes,
		.pid = job->asker.pid,
		.ret = ret,
	};

	if (!trace_hawk_quota_enabled())
		return;
	if (job->op->nr == _IOC_NR(HAWK_IOC_FORK)) {
		r.tier = HAWK_TIER_ANY;
		r.reason = HAWK_REFUSE_LIDS;
		r.need = 1;
		r.limit = 2ull * job->as->info.max_blocks;
		r.use = r.limit;
	} else {
		hawk_refusal_tier(&r, job->as, job->arg.tier);
	}
	trace_hawk_quota(&r);
}

/* A space was not made: its minimum of a tier does not fit beside those of others. */
void hawk_trace_refuse_min(const struct hawk_as *as, const struct hawk_space_create *arg)
{
	struct hawk_refusal r = {
		.space = as->id,
		.reason = HAWK_REFUSE_MIN,
		.pid = current->tgid,
		.ret = -ENOSPC,
	};
	u32 t, total;

	if (!trace_hawk_quota_enabled())
		return;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		r.need = arg->quota[t].min_bytes;
		if (!r.need || hawk_tier_usage(hawk_dev.engine, t, &total, NULL, NULL))
			continue;
		r.tier = t;
		r.use = (u64)hawk_tier_minima(hawk_dev.engine, t) << HAWK_CHUNK_SHIFT;
		r.limit = (u64)total << HAWK_CHUNK_SHIFT;
		if (r.need > r.limit - r.use)
			break;
	}
	trace_hawk_quota(&r);
}

/* A space was not made: @lacks chunks of its minimum are others', and do not come back. */
void hawk_trace_refuse_lent(const struct hawk_as *as, u32 tier, u32 lacks)
{
	struct hawk_refusal r = {
		.space = as->id,
		.need = (u64)lacks << HAWK_CHUNK_SHIFT,
		.tier = tier,
		.reason = HAWK_REFUSE_LENT,
		.pid = current->tgid,
		.ret = -ENOSPC,
	};
	u32 total, free;

	if (!trace_hawk_quota_enabled() ||
	    hawk_tier_usage(hawk_dev.engine, tier, &total, &free, NULL))
		return;
	r.use = (u64)(total - free) << HAWK_CHUNK_SHIFT;
	r.limit = (u64)total << HAWK_CHUNK_SHIFT;
	trace_hawk_quota(&r);
}

/* @pages more may not be locked: @f's user has @used pages, of @limit. */
void hawk_trace_refuse_memlock(const struct hawk_file *f, unsigned long pages,
			       unsigned long limit, unsigned long used)
{
	struct hawk_refusal r = {
		.space = f->as->id,
		.need = (u64)pages << PAGE_SHIFT,
		.use = (u64)used << PAGE_SHIFT,
		.limit = (u64)limit << PAGE_SHIFT,
		.tier = HAWK_TIER_ANY,
		.reason = HAWK_REFUSE_MEMLOCK,
		.pid = hawk_asker_current(f->as).pid,
		.ret = -ENOMEM,
	};

	trace_hawk_quota(&r);
}

/* ---- waiting for locks ---- */

/* port.h calls it for a lock that is not free, while somebody listens. */
void hawk_lock_timed(struct hawk_lock *x, unsigned int subclass) __acquires(&x->l)
{
	u64 start = local_clock();

	spin_lock_nested(&x->l, subclass);
	trace_hawk_lock_wait(x->kind, local_clock() - start, _RET_IP_);
}

/* Take hawk_device.lock; waiting for it can be traced. */
void hawk_dev_lock(void)
{
	u64 start;

	if (!trace_hawk_lock_wait_enabled() || !mutex_is_locked(&hawk_dev.lock)) {
		mutex_lock(&hawk_dev.lock);
		return;
	}
	start = ktime_get_ns();
	mutex_lock(&hawk_dev.lock);
	trace_hawk_lock_wait(HAWK_LOCK_DEVICE, ktime_get_ns() - start, _RET_IP_);
}
