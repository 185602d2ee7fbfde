// SPDX-License-Identifier: MIT
/*
 * pressure.c - spaces grow and shrink while they are used, and tiers are taken away
 *
 * A host that has no memory for a chunk says so some events later.  Chunks are drained
 * because another space starves, because the host wants memory back, or because their
 * tier has to go: then leased blocks are dropped too, and at last clients are killed.
 */
#include "sim.h"

#define DRAIN_PATIENCE	60	/* looks at a chunk before the drain is given up */
#define LEAVE_PATIENCE	400	/* steps of a removal before clients die for it */

static struct sim_space *space_draw(void)
{
	struct sim_space *sp = &sim.space[sim_below(sim.spaces)];

	return sp->s && !sp->doomed && !sp->newborn ? sp : NULL;
}

/* A tier that is there. */
static u32 tier_draw(void)
{
	u32 i, t = sim_below(HAWK_TIERS_MAX);

	for (i = 0; i < HAWK_TIERS_MAX; i++, t = (t + 1) % HAWK_TIERS_MAX)
		if (sim.tier[t].present)
			return t;
	return HAWK_NONE;
}

/* ---- growing ---- */

/*
 * A call has said -ENOBUFS.  Saying so again and again with nothing to be had would
 * keep a host busy for ever.
 */
void space_grow(struct sim_space *sp)
{
	struct sim_grant *gr = &sim.grant[sim.ngrants];
	u32 i;
	int ret;

	if (sim.ngrants == SIM_GRANTS)
		return;
	sp->hungry = false;
	ret = hawk_space_grow(sp->s, &gr->g);
	CALLED(grow, ret);
	sim_note("grow", -1, sp - sim.space, -1, ret ? -1 : (int)gr->g.tier, ret,
		 ret ? 0 : (u64)gr->g.slot << 32 | gr->g.chunk);
	EXPECT(ret == 0 || ret == -ENOENT);
	if (ret) {
		SAW(grow_nothing);
		EXPECT(sim.ngrants || ++sp->vain < 100);
		return;
	}
	sp->vain = 0;
	EXPECT(!sim.tier[gr->g.tier].leaving && gr->g.chunk < sim.tier[gr->g.tier].chunks);
	/* whoever gets a chunk finds zeroes */
	for (i = 0; i < SIM_CELLS; i++)
		EXPECT(!sim.tier[gr->g.tier].cell[gr->g.chunk * SIM_CELLS + i]);
	/* beyond its minimum it gets nothing that is kept back for others' */
	EXPECT(sp->s->win[gr->g.tier].owned <= sp->p.quota_min[gr->g.tier] ||
	       sim.e->tier[gr->g.tier].nfree >= sim.e->tier[gr->g.tier].reserved);
	gr->space = sp - sim.space;
	sp->ngrants++;
	sim.ngrants++;
}

/* The memory of a chunk is there, or is not to be had. */
bool world_grown(void)
{
	struct sim_grant gr;
	struct sim_space *sp;
	bool ok = !sim_chance(sim.weather.grow_fail_permille);
	u32 i;

	if (!sim.ngrants)
		return false;
	i = sim_below(sim.ngrants);
	gr = sim.grant[i];
	sim.grant[i] = sim.grant[--sim.ngrants];
	sp = &sim.space[gr.space];
	sp->ngrants--;
	hawk_space_grown(sp->s, &gr.g, ok);
	CALLED(grown, ok ? 0 : -ENOMEM);
	sim_note("grown", -1, gr.space, -1, gr.g.tier, ok, gr.g.chunk);
	if (ok)
		SAW(grown);
	else
		SAW(grow_failed);
	sim.touched[gr.space] = true;
	return true;
}

/* ---- draining ---- */

static struct sim_drain *drain_of(const struct sim_space *sp, u32 tier)
{
	return &sim.drain[sp - sim.space][tier];
}

static bool slot_pinned(const struct sim_space *sp, u32 tier, u32 slot)
{
	const struct hawk_window *w = &sp->s->win[tier];
	u32 i, fpc = sp->s->frames_per_chunk;

	for (i = slot * fpc; i < (slot + 1) * fpc; i++)
		if (w->frame[i].block < sp->s->max_blocks && sp->s->block[w->frame[i].block].pins)
			return true;
	return false;
}

/* A chunk with pinned blocks is not the cheapest, unless all have some. */
static void picked(const struct sim_space *sp, u32 tier, u32 slot)
{
	const struct hawk_window *w = &sp->s->win[tier];
	u32 i;

	if (slot != HAWK_NONE)
		EXPECT(hawk_slot_chunk(w, slot) != HAWK_NONE && !slot_pinned(sp, tier, slot));
	for (i = 0; slot == HAWK_NONE && i < w->nslots; i++)
		EXPECT(hawk_slot_chunk(w, i) == HAWK_NONE || slot_pinned(sp, tier, i));
}

static void drain_begin(struct sim_space *sp, u32 tier, struct sim_space *claim, bool force)
{
	struct sim_drain *d = drain_of(sp, tier);
	u32 slot = hawk_space_drain_pick(sp->s, tier, sim.now);
	int ret;

	picked(sp, tier, slot);
	/* sometimes a chunk that is not the cheapest, and sometimes none at all */
	if (!sim_below(4))
		slot = sim_below(SIM_CHUNKS);
	ret = hawk_space_drain_start(sp->s, tier, slot);
	CALLED(drain_start, ret);
	sim_note("drain_start", -1, sp - sim.space, -1, tier, ret, slot);
	if (d->active) {
		EXPECT(ret == -EBUSY);
		return;
	}
	if (ret) {
		EXPECT(ret == -ENOENT && hawk_slot_chunk(&sp->s->win[tier], slot) == HAWK_NONE);
		return;
	}
	*d = (struct sim_drain){ .active = true, .slot = slot, .force = force,
				 .claim = claim ? claim->life : 0 };
}

void drain_cancel(struct sim_space *sp, u32 tier)
{
	hawk_space_drain_cancel(sp->s, tier);
	CALLED(drain_cancel, 0);
	sim_note("drain_cancel", -1, sp - sim.space, -1, tier, 0, 0);
	if (drain_of(sp, tier)->active)
		SAW(drain_canceled);
	drain_of(sp, tier)->active = false;
	sim.touched[sp - sim.space] = true;
}

static void drain_finish(struct sim_space *sp, u32 tier)
{
	struct sim_drain *d = drain_of(sp, tier);
	struct sim_space *claim = NULL;
	u32 i, chunk;

	for (i = 0; d->claim && i < SIM_SPACES; i++)
		if (sim.space[i].s && sim.space[i].life == d->claim && &sim.space[i] != sp)
			claim = &sim.space[i];
	chunk = hawk_slot_chunk(&sp->s->win[tier], d->slot);
	EXPECT(hawk_space_drain_finish(sp->s, tier, claim ? claim->s : NULL) == chunk);
	CALLED(drain_finish, 0);
	sim_note("drain_finish", -1, sp - sim.space, -1, tier, claim ? claim - sim.space : -1,
		 chunk);
	d->active = false;
	if (claim && claim->s->win[tier].claims)
		SAW(claimed);
	SAW(drained);
	if (sim.tier[tier].kind == HAWK_TIER_BLK)
		SAW(drained_flash);
}

/* Blocks of the chunk that the engine may not touch: does it tell the truth? */
static bool chunk_busy(const struct sim_space *sp, u32 tier, u32 slot)
{
	const struct hawk_window *w = &sp->s->win[tier];
	u32 i, nr, fpc = sp->s->frames_per_chunk;

	for (i = slot * fpc; i < (slot + 1) * fpc; i++) {
		nr = w->frame[i].block;
		if (nr < sp->s->max_blocks && (sp->s->block[nr].pins || sp->s->block[nr].leases))
			return true;
	}
	return false;
}

/* Blocks that a forced drain may drop though they are leased: those in the chunk. */
static void leases_waived(struct sim_space *sp, u32 tier, u32 slot, bool waive)
{
	u32 i, fpc = sp->s->frames_per_chunk;

	for (i = 0; i < SIM_OBJS; i++) {
		struct sim_obj *o = &sp->obj[i];
		struct hawk_block *blk = &sp->s->block[o->ref.block];

		if (!o->tag)
			continue;
		o->waived = waive && o->leases && blk->gen == o->ref.gen &&
			    ((blk->htier == tier && blk->hframe / fpc == slot) ||
			     (blk->ftier == tier && blk->fframe / fpc == slot));
	}
}

static void drain_step(struct sim_space *sp, u32 tier)
{
	struct sim_drain *d = drain_of(sp, tier);
	bool drop = d->force && d->looks > sim_below(8);
	struct hawk_plan *plan = plan_draw();
	u32 i, busy = 0;
	int ret;

	if (!plan)
		return;
	sim.touched[sp - sim.space] = true;
	if (drop)
		leases_waived(sp, tier, d->slot, true);
	ret = hawk_space_drain(sp->s, tier, drop ? HAWK_DRAIN_DROP : 0, sim.now, plan, &busy);
	CALLED(drain, ret);
	sim_note("drain", -1, sp - sim.space, -1, tier, ret, (u64)plan->n << 32 | busy);
	if (drop) {
		for (i = 0; i < SIM_LIDS; i++)
			model_look(sp, i);
		leases_waived(sp, tier, d->slot, false);
	}
	EXPECT(ret != -EBUSY || (busy && chunk_busy(sp, tier, d->slot)));
	EXPECT(ret != -EAGAIN || plan->n || sp->nmoves || sp->ngrants || sp->nreads);
	plan_submit(plan);
	if (ret == -ENOBUFS)
		space_grow(sp);
	else if (ret == -EBUSY)
		SAW(drain_busy);
	if (!ret && sim_below(16))
		drain_finish(sp, tier);
	else if (++d->looks > DRAIN_PATIENCE && !d->force)
		drain_cancel(sp, tier);
}

/* ---- who must give ---- */

/* A space starves: the one with the largest excess gives a chunk. */
static void share(u32 tier)
{
	struct sim_space *poor = space_draw(), *rich = NULL;
	s64 most = 0, excess;
	u32 i;

	if (!poor || !hawk_space_starved(poor->s, tier))
		return;
	SAW(starved);
	for (i = 0; i < SIM_SPACES; i++) {
		if (!sim.space[i].s || sim.space[i].doomed || &sim.space[i] == poor)
			continue;
		excess = hawk_space_excess(sim.space[i].s, tier);
		if (!rich || excess > most) {
			rich = &sim.space[i];
			most = excess;
		}
	}
	if (rich && most > 0 && most >= hawk_space_excess(poor->s, tier) + 2)
		drain_begin(rich, tier, poor, false);
}

struct sim_space *newborn(void)
{
	u32 i;

	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s && sim.space[i].newborn)
			return &sim.space[i];
	return NULL;
}

/* Who has most above its minimum gives a chunk back. */
static void repay(u32 tier)
{
	struct sim_space *rich = NULL;
	s64 most = 0;
	u32 i;

	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s)
			hawk_space_unclaim(sim.space[i].s, tier);
	for (i = 0; i < SIM_SPACES; i++) {
		struct sim_space *sp = &sim.space[i];

		if (!sp->s || sp->doomed || drain_of(sp, tier)->active ||
		    hawk_space_excess(sp->s, tier) <= most)
			continue;
		rich = sp;
		most = hawk_space_excess(sp->s, tier);
	}
	if (rich)
		drain_begin(rich, tier, NULL, false);
}

/* What it insists on is taken back from others; if that fails it ends. */
static void newborn_step(struct sim_space *sp)
{
	u32 t, lacking = 0;
	int n;

	sim.touched[sp - sim.space] = true;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		const struct hawk_tier *tier = &sim.e->tier[t];

		n = hawk_space_lacks(sp->s, t);
		CALLED(lacks, n < 0 ? n : n > 0);
		if (n < 0) {
			EXPECT(n == -ENOENT && sp->s->win[t].nslots &&
			       (sim.tier[t].leaving || !sp->p.quota_max[t]));
			SAW(space_orphan);
			space_doom(sp);
			return;
		}
		EXPECT(!n || n == (int)(tier->reserved + tier->claimed - tier->nfree));
		lacking += n;
		if (n)
			repay(t);
	}
	sim_note("newborn", -1, sp - sim.space, -1, lacking, 0, sp->patience);
	if (!lacking) {
		sp->newborn = false;
		SAW(space_repaid);
	} else if (!sp->patience--) {
		SAW(space_unpaid);
		space_doom(sp);
	}
}

/* A tier has to go: step by step nobody uses it any more. */
static bool leave_step(u32 tier)
{
	struct sim_tier *t = &sim.tier[tier];
	bool left = true;
	u32 i, c;
	int ret;

	t->leaving++;
	for (i = 0; i < SIM_SPACES; i++) {
		struct sim_space *sp = &sim.space[i];

		if (!sp->s || sp->doomed) {
			left &= !sp->s;
			continue;
		}
		sim.touched[i] = true;
		ret = hawk_space_leave(sp->s, tier);
		CALLED(leave, ret);
		sim_note("leave", -1, i, -1, tier, ret, 0);
		EXPECT(ret == (sp->s->win[tier].owned ? -EBUSY : 0));
		if (!ret) {
			sp->p.quota_min[tier] = sp->p.quota_max[tier] = 0;
			SAW(space_left);
			continue;
		}
		left = false;
		if (!drain_of(sp, tier)->active)
			drain_begin(sp, tier, NULL, true);
		drain_of(sp, tier)->force = true;
		for (c = 0; t->leaving > LEAVE_PATIENCE && c < SIM_CLIENTS; c++)
			if (sim.client[c].space == (int)i)
				client_release(&sim.client[c], true);
	}
	return left;
}

void tier_leave(u32 tier, bool leaving)
{
	int ret = hawk_tier_leave(sim.e, tier, leaving);

	CALLED(tier_leave, ret);
	sim_note("tier_leave", -1, -1, -1, tier, ret, leaving);
	EXPECT(ret == (sim.tier[tier].present ? 0 : -ENOENT));
	if (ret)
		return;
	sim.tier[tier].leaving = leaving;
	if (!leaving)
		SAW(tier_stayed);
}

/* Return: whether there was something to do. */
bool world_pressure(void)
{
	struct sim_space *sp = space_draw();
	u32 t = tier_draw(), i;

	if (t == HAWK_NONE)
		return false;
	if (newborn() && !sim_below(3)) {
		newborn_step(newborn());
		return true;
	}
	for (i = 0; i < SIM_SPACES; i++)
		if (sim.drain[i][t].active && sim_below(4)) {
			drain_step(&sim.space[i], t);
			return true;
		}
	if (sim.tier[t].leaving) {
		if (leave_step(t))
			tier_remove(t);
		else if (!sim_below(40))
			tier_leave(t, false);
		return true;
	}
	switch (sim_below(8)) {
	case 0:
		if (sp && sim_chance(sim.weather.reclaim_permille))
			drain_begin(sp, t, NULL, !sim_below(4));
		break;
	case 1:
		if (sp)
			hawk_space_unstick(sp->s);
		break;
	case 2:
		if (sp && !sim_below(8))
			hawk_space_unclaim(sp->s, t);
		break;
	case 3:
		if (sp && !sim_below(8))
			drain_cancel(sp, t);
		break;
	case 4:
	case 5:
		/* late: another may have had the chunk meanwhile */
		if (sp && sp->hungry)
			space_grow(sp);
		break;
	default:
		share(t);
	}
	return true;
}
