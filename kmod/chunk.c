// SPDX-License-Identifier: GPL-2.0
/*
 * chunk.c - a chunk comes to a space, and is taken from it
 *
 * It comes when the engine asks for one (-ENOBUFS): its memory is made and charged
 * to the memory cgroup of the space's owner.  If there is none to be had the space
 * evicts within what it has, and is let try again later (reclaim.c).
 *
 *	hawk_as_grew()	engine picks a chunk -> memory -> mapped by faults
 *	hawk_as_take()	engine drains it -> unmapped -> nobody holds a page ->
 *			no longer the space's -> the cleaner frees its memory
 *
 * A page that somebody outside holds (an RDMA registration, a pipe) keeps its chunk
 * with the space: the holder means this space's bytes and would go on using a page
 * that is none of them.
 */
#include "hawk.h"
#include "move.h"
#include "pool.h"

#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#define HAWK_TAKE_SCAN	64	/* chunks tried when the best one cannot be had */

/* Frames of one slot of a window, a slot being the place of a chunk. */
static u32 hawk_as_slot_frames(const struct hawk_as *as)
{
	return HAWK_CHUNK_BYTES / as->info.block_bytes;
}

static u32 hawk_as_slots(const struct hawk_as *as, u32 tier)
{
	return as->info.frames[tier] / hawk_as_slot_frames(as);
}

/* ---- a chunk comes ---- */

/* Once per space and tier.  The chunk that it did not get is still counted as its own. */
static void hawk_as_warn_stuck(struct hawk_as *as, u32 tier)
{
	struct hawk_stats st = { .size = sizeof(st) };

	if (test_and_set_bit(tier, &as->warned_tiers))
		return;
	hawk_space_stats(as->space, &st);
	pr_warn_ratelimited("space %llu of uid %u: no memory for another chunk of tier %u: it has %u MiB and may have %u MiB, but node %d is full or the memory cgroup of its owner is at its limit; it evicts instead\n",
			    as->id, from_kuid(&init_user_ns, as->uid), tier,
			    (st.chunks[tier] - 1) << (HAWK_CHUNK_SHIFT - 20),
			    hawk_as_slots(as, tier) << (HAWK_CHUNK_SHIFT - 20),
			    as->mem[tier]->node);
}

static int hawk_as_populate(struct hawk_as *as, const struct hawk_grant *g)
{
	struct hawk_mem *m = as->mem[g->tier];
	struct mem_cgroup *old;
	int ret;

	if (!m->ops->populate)
		return 0;
	old = set_active_memcg(as->memcg);
	ret = m->ops->populate(m, g->chunk);
	set_active_memcg(old);
	return ret;
}

static void hawk_as_zap_slot(struct hawk_as *as, u32 tier, u32 slot)
{
	u64 bytes = (u64)hawk_as_slot_frames(as) * as->info.block_bytes;

	hawk_as_zap(as, tier, slot * bytes, bytes);
}

/**
 * hawk_as_grew() - give a space the chunk that a call of the engine wanted
 * @as: the space
 * @ret: what the call returned
 *
 * Context: may sleep, so no lock of the caller's is held.
 * Return: true: it returned -ENOBUFS, call it again.
 */
bool hawk_as_grew(struct hawk_as *as, int ret)
{
	struct hawk_grant g;
	bool ok;

	if (ret != -ENOBUFS)
		return false;
	if (hawk_space_grow(as->space, &g))
		return true;
	ok = !hawk_as_populate(as, &g);
	if (!ok)
		hawk_as_warn_stuck(as, g.tier);
	ok = ok && !hawk_pool_grant(as, &g);
	/* The void page must not hide the frames: no fault maps it between the two. */
	down_write(&as->map_lock);
	if (ok && test_bit(g.tier, &as->void_tiers))
		hawk_as_zap_slot(as, g.tier, g.slot);
	hawk_space_grown(as->space, &g, ok);
	up_write(&as->map_lock);
	if (!ok)
		hawk_reclaim_stuck(as);
	/* A drain that has to end the space's part in the tier waits for growth too. */
	atomic64_inc(&as->events);
	wake_up_all(&as->wait);
	return true;
}

/* ---- a chunk is taken ---- */

/* Return: the chunk of a slot, or HAWK_NONE. */
static u32 hawk_as_slot_chunk(struct hawk_as *as, u32 tier, u32 slot)
{
	u64 off = hawk_frame_off(as->space, tier, slot * hawk_as_slot_frames(as));

	return off == ~0ull ? HAWK_NONE : off >> HAWK_CHUNK_SHIFT;
}

/* A cheap look before blocks are moved: a registration for DMA lasts. */
static bool hawk_as_slot_held(struct hawk_as *as, u32 tier, u32 slot)
{
	struct hawk_mem *m = as->mem[tier];
	u32 chunk = hawk_as_slot_chunk(as, tier, slot);

	return chunk != HAWK_NONE && m->ops->held && m->ops->held(m, chunk, true);
}

/* The chunk has been drained: nothing of the engine's points to it. */
static int hawk_as_take_finish(struct hawk_as *as, u32 tier, u32 slot, struct hawk_as *claim)
{
	struct hawk_mem *m = as->mem[tier];
	u32 chunk = hawk_as_slot_chunk(as, tier, slot);
	bool held;

	down_write(&as->map_lock);
	hawk_as_zap_slot(as, tier, slot);
	held = m->ops->held && m->ops->held(m, chunk, false);
	if (!held)
		hawk_space_drain_finish(as->space, tier, claim ? claim->space : NULL);
	up_write(&as->map_lock);
	if (held)
		return -EBUSY;
	atomic64_add(HAWK_CHUNK_BYTES, &m->reclaimed_bytes);
	hawk_mem_clean_soon(m);
	return 0;
}

/* One look at what is left; moves are waited for. */
static int hawk_as_drain_round(struct hawk_as *as, u32 tier, u32 flags, u32 *busy)
{
	struct hawk_plan *plan = &hawk_dev.drain_plan;
	s64 events = atomic64_read(&as->events);
	int ret;

	hawk_round_begin(as);
	do {
		ret = hawk_space_drain(as->space, tier, flags, ktime_get_ns(), plan, busy);
	} while (hawk_as_grew(as, ret));
	hawk_plan_start(as, NULL, plan, NULL);
	hawk_round_end(as);
	if (ret != -EAGAIN)
		return ret;
	/*
	 * What is in flight ends by itself; nothing in flight: look again at once.  Unless
	 * what is busy is not in flight: a gather that has found its blocks waits for its
	 * buffer first, as long as its client likes.  Nor does a paused delivery go on
	 * before the system has slept: UNSAFE as in hawk_pm_wait().
	 */
	if (wait_event_state(as->wait, atomic64_read(&as->events) != events ||
			     !atomic_read(&as->active),
			     (TASK_KILLABLE | TASK_FREEZABLE_UNSAFE)))
		return -EINTR;
	return *busy && atomic64_read(&as->events) == events ? -EBUSY : -EAGAIN;
}

/**
 * hawk_as_take() - take a chunk from a space that goes on living
 * @as: the space
 * @tier: tier
 * @slot: which of its chunks there
 * @flags: HAWK_DRAIN_*
 * @claim: keep the chunk for this space, or NULL
 * @busy: out: frames in the chunk that are pinned, being filled or read by gathers
 *
 * Context: hawk_device.drain_lock held; waits for moves.
 * Return: 0; -ENOENT: no chunk there; -EBUSY: @busy, or somebody outside holds pages
 * of it (@busy is 0 then); -EAGAIN: others use the space so much that it did not get
 * empty; -EINTR: the caller is being killed.
 */
int hawk_as_take(struct hawk_as *as, u32 tier, u32 slot, u32 flags, struct hawk_as *claim,
		 u32 *busy)
{
	struct hawk_asker asker = { .space = claim ? claim->id : 0 };
	int ret, tries = HAWK_CHUNK_PAGES;

	lockdep_assert_held(&hawk_dev.drain_lock);
	*busy = 0;
	if (hawk_as_slot_held(as, tier, slot))
		return -EBUSY;
	ret = hawk_space_drain_start(as->space, tier, slot);
	if (ret)
		return ret;
	hawk_dev.drain_plan.caller = &asker;
	do {
		ret = hawk_as_drain_round(as, tier, flags, busy);
	} while (ret == -EAGAIN && --tries);
	if (ret == -EAGAIN && *busy)
		ret = -EBUSY;	/* they are read all the time */
	hawk_dev.drain_plan.caller = NULL;
	if (!ret)
		ret = hawk_as_take_finish(as, tier, slot, claim);
	if (ret)
		hawk_space_drain_cancel(as->space, tier);
	return ret;
}

/**
 * hawk_as_take_any() - take the chunk whose loss costs the space least
 * @as: the space
 * @tier: tier
 * @claim: keep it for this space, or NULL
 *
 * Context: as hawk_as_take().
 * Return: 0, or a negative errno: this space has none to give now.
 */
int hawk_as_take_any(struct hawk_as *as, u32 tier, struct hawk_as *claim)
{
	u32 slot = hawk_space_drain_pick(as->space, tier, ktime_get_ns());
	u32 nslots = hawk_as_slots(as, tier), busy, n, tried;
	int ret;

	if (slot == HAWK_NONE)
		return -EBUSY;
	ret = hawk_as_take(as, tier, slot, 0, claim, &busy);
	/* If that one is held or has just been pinned, one of the next will do. */
	for (n = tried = 1; ret == -EBUSY && n < nslots && tried < HAWK_TAKE_SCAN; n++) {
		if (hawk_as_slot_chunk(as, tier, (slot + n) % nslots) == HAWK_NONE)
			continue;
		ret = hawk_as_take(as, tier, (slot + n) % nslots, 0, claim, &busy);
		tried++;
	}
	return ret;
}

/**
 * hawk_as_leave() - take all chunks of a leaving tier from a space, and its part
 * @as: the space
 * @tier: tier, hawk_tier_leave() has been called
 * @tell: log why it cannot be done
 *
 * Context: as hawk_as_take().
 * Return: 0; -EBUSY: pinned frames or held pages remain; -EINTR.
 */
int hawk_as_leave(struct hawk_as *as, u32 tier, bool tell)
{
	u32 nslots = hawk_as_slots(as, tier);
	u32 slot, busy, frames, held;
	bool again;
	s64 events;
	int ret;

	for (;;) {
		events = atomic64_read(&as->events);
		again = false;
		for (slot = frames = held = 0; slot < nslots; slot++) {
			ret = hawk_as_take(as, tier, slot, HAWK_DRAIN_DROP, NULL, &busy);
			if (ret == -EINTR)
				return ret;
			frames += ret == -EBUSY ? busy : 0;
			held += ret == -EBUSY && !busy;
			again |= ret == -EAGAIN;
			cond_resched();
		}
		ret = hawk_space_leave(as->space, tier);
		if (ret != -EBUSY)
			return ret;
		if (frames || held)
			break;
		if (fatal_signal_pending(current))
			return -EINTR;
		/*
		 * It was growing: the chunk is there soon and is the next to go.  One that
		 * did not get empty is looked at again: that its users go on is no event.
		 */
		if (!again &&
		    wait_event_killable(as->wait, atomic64_read(&as->events) != events))
			return -EINTR;
	}
	if (tell)
		pr_warn_ratelimited("tier %u cannot leave: space %llu of uid %u has %u pinned or unfinished frames in it and %u chunks with pages that a device or a pipe holds\n",
				    tier, as->id, from_kuid(&init_user_ns, as->uid), frames,
				    held);
	return -EBUSY;
}
