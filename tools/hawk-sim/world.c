// SPDX-License-Identifier: MIT
/*
 * world.c - spaces and tiers come and go; what a host does between its clients' calls
 */
#include <stdlib.h>

#include "sim.h"
#include "../../kmod/core/elastic.h"
#include "../../kmod/core/promote.h"

/* ---- tiers ---- */

static u32 tiers_of(u32 kind)
{
	u32 t, n = 0;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		n += sim.tier[t].present && sim.tier[t].kind == kind;
	return n;
}

static void tier_add(u32 kind, u32 nomem)
{
	u32 chunks = 2 + sim_below(SIM_CHUNKS - 1), id = 0;
	int ret;

	sim_nomem_permille = nomem;
	ret = hawk_tier_add(sim.e, kind, chunks, &id);
	sim_nomem_permille = 0;
	CALLED(tier_add, ret);
	sim_note("tier_add", -1, -1, -1, kind, ret, id);
	if (ret) {
		EXPECT(ret == -ENOMEM && nomem);
		return;
	}
	EXPECT(!sim.tier[id].present);
	SAW(tier_added);
	/* all bytes of a new tier are zero */
	memset(&sim.tier[id], 0, sizeof(sim.tier[id]));
	sim.tier[id].present = true;
	sim.tier[id].kind = kind;
	sim.tier[id].chunks = chunks;
}

static bool tier_wanted(u32 t)
{
	u32 i;

	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s && sim.space[i].p.quota_max[t])
			return true;
	return false;
}

void tier_remove(u32 t)
{
	u32 dirty = 0;
	int ret;

	hawk_tier_usage(sim.e, t, NULL, NULL, &dirty);
	ret = hawk_tier_remove(sim.e, t);
	CALLED(tier_remove, ret);
	sim_note("tier_remove", -1, -1, -1, t, ret, dirty);
	if (!sim.tier[t].present) {
		EXPECT(ret == -ENOENT);
	} else if (tier_wanted(t) || dirty) {
		EXPECT(ret == -EBUSY);
		SAW(tier_busy);
	} else {
		EXPECT(!ret);
		sim.tier[t].present = false;
		SAW(tier_removed);
	}
}

static void tiers_step(void)
{
	u32 kind = sim_below(2) ? HAWK_TIER_HOST : HAWK_TIER_BLK, t = sim_below(HAWK_TIERS_MAX);

	if (tiers_of(kind) < 2)
		tier_add(kind, sim.weather.nomem_permille);
	else if (sim_below(6))
		tier_remove(t);
	else if (!sim.tier[t].leaving)
		tier_leave(t, true);
}

void world_mend(u32 tier)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if ((tier < HAWK_TIERS_MAX && t != tier) || !sim.tier[t].present ||
		    sim.tier[t].leaving)
			continue;
		EXPECT(!hawk_tier_leave(sim.e, t, false));
		EXPECT(hawk_tier_health(sim.e, t) == HAWK_HEALTH_OK);
	}
}

/* A chunk that left its owner is zeroed and may have another. */
bool world_clean(void)
{
	u32 t = sim_below(HAWK_TIERS_MAX), chunk;

	if (!sim.tier[t].present)
		return false;
	chunk = hawk_tier_next_dirty(sim.e, t, HAWK_NONE);
	if (chunk == HAWK_NONE)
		return false;
	EXPECT(chunk < sim.tier[t].chunks);
	memset(&sim.tier[t].cell[chunk * SIM_CELLS], 0, SIM_CELLS * sizeof(u64));
	hawk_tier_clean(sim.e, t, chunk);
	CALLED(clean, 0);
	SAW(chunk_cleaned);
	sim_note("clean", -1, -1, -1, t, 0, chunk);
	return true;
}

/* ---- spaces ---- */

static void params_draw(struct sim_space *sp, struct hawk_space_params *p)
{
	static const u32 tokens[] = { 1, 16, 256 };
	u32 t;

	memset(p, 0, sizeof(*p));
	p->note = model_told;
	p->owner = sp;
	p->block_bytes = SIM_GRAIN << sim_below(4);
	p->block_tokens = tokens[sim_below(ARRAY_SIZE(tokens))];
	p->max_blocks = 4 + sim_below(20);
	p->buckets = 1u << sim_below(4);
	if (!sim_below(3)) {
		p->seqs = 2 + sim_below(SIM_SEQS - 1);
		p->segs = sim_below(2) ? 0 : 4 * p->seqs;
		p->layers = 2;
		p->head_groups = 1;
		p->shift = true;
		p->block_tokens = 4;
		p->max_blocks = 8 + sim_below(80);
	}
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!sim.tier[t].present || !sim_below(4) || (sim.tier[t].leaving && sim_below(4)))
			continue;
		p->quota_max[t] = 1 + sim_below(sim.tier[t].chunks);
		p->quota_min[t] = sim_below(3) ? 0 : sim_below(p->quota_max[t] + 1);
	}
}

/* Chunks of all minima, as the spaces were made. */
static u32 minima_of(u32 tier)
{
	u32 i, sum = 0;

	for (i = 0; i < SIM_SPACES; i++)
		sum += sim.space[i].s ? sim.space[i].p.quota_min[tier] : 0;
	return sum;
}

/* The minimum that counts: no more than it can use. */
static u32 useful_min(const struct hawk_space_params *p, u32 tier)
{
	u32 fpc = HAWK_CHUNK_BYTES / p->block_bytes;
	u32 useful = (p->max_blocks + fpc - 1) / fpc + 1;

	return p->quota_min[tier] < useful ? p->quota_min[tier] : useful;
}

/* Was it right to refuse the minima?  @free: are they free, too? */
static bool minima_fit(const struct hawk_space_params *p, bool free)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		const struct hawk_tier *tier = &sim.e->tier[t];
		u32 min = useful_min(p, t);

		if (minima_of(t) + min > sim.tier[t].chunks)
			return false;
		if (free && min && tier->nfree < tier->reserved + tier->claimed + min)
			return false;
	}
	return true;
}

static void space_refused(const struct hawk_space_params *p, int ret)
{
	bool leaving = false;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		leaving |= p->quota_max[t] && sim.tier[t].leaving;
	if (ret == -ENOMEM) {
		EXPECT(sim.weather.nomem_permille);
		SAW(space_nomem);
	} else if (ret == -ENOENT) {
		EXPECT(leaving);
		SAW(space_leaving);
	} else if (ret == -EAGAIN) {
		EXPECT(!leaving && !p->insist && !minima_fit(p, true));
	} else {
		EXPECT(ret == -ENOSPC && !leaving && !minima_fit(p, false));
		SAW(space_minima);
	}
}

/* As a host does: one space at a time insists. */
static int space_try(struct sim_space *sp, struct hawk_space_params *p)
{
	int ret;

	sim_nomem_permille = sim.weather.nomem_permille;
	ret = hawk_space_create(sim.e, p, &sp->s);
	CALLED(space_create, ret);
	if (ret == -EAGAIN && !newborn()) {
		space_refused(p, ret);
		p->insist = true;
		ret = hawk_space_create(sim.e, p, &sp->s);
		CALLED(space_create, ret);
	}
	sim_nomem_permille = 0;
	return ret;
}

static void space_create(struct sim_space *sp)
{
	struct hawk_space_params p;
	u64 vtlb;
	u32 t;
	int ret;

	params_draw(sp, &p);
	vtlb = hawk_vtlb_bytes(p.max_blocks);
	p.vtlb = aligned_alloc(64, vtlb);
	EXPECT(p.vtlb);
	memset(p.vtlb, 0, vtlb);
	sp->s = NULL;
	ret = space_try(sp, &p);
	sim_note("create", -1, sp - sim.space, -1, p.max_blocks, ret, p.block_bytes);
	if (ret) {
		sp->s = NULL;
		space_refused(&p, ret);
		free(p.vtlb);
		return;
	}
	SAW(space_created);
	sp->newborn = p.insist;
	sp->patience = sim_below(400);
	if (p.insist)
		SAW(space_lent);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		p.quota_min[t] = sp->s->win[t].quota_min;	/* what of it is of use */
	sp->p = p;
	sp->life = ++sim.next_life & 0xffffff;
	sp->doomed = false;
	EXPECT(!sp->nmoves && !sp->ngrants && !sp->ngathers && !sp->nreads);
	sp->vain = 0;
	model_reset(sp);
	if (p.seqs && sim_below(2)) {
		struct hawk_elastic_params e = {
			.on = true, .reserved = sim_below(32768), .alpha_min = sim_below(32768),
			.sinks = sim_below(8), .window = sim_below(16),
		};

		EXPECT(!hawk_space_elastic_set(sp->s, &e));
	}
	sim.touched[sp - sim.space] = true;
}

void space_doom(struct sim_space *sp)
{
	u32 i;

	sim_note("doom", -1, sp - sim.space, -1, sp->nmoves, 0, 0);
	sp->doomed = true;
	sp->newborn = false;
	for (i = 0; i < SIM_CLIENTS; i++)
		if (sim.client[i].space == sp - sim.space)
			client_release(&sim.client[i], true);
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		if (sim.drain[sp - sim.space][i].active)
			drain_cancel(sp, i);
	if (sp->nmoves || sp->ngrants || sp->ngathers)
		SAW(space_waited);
}

/* May it have a host frame at all? */
static bool space_has_memory(const struct sim_space *sp)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if ((sp->s->host_tiers & 1u << t) &&
		    (sp->s->win[t].owned || hawk_window_has_room(sp->s, t)))
			return true;
	return false;
}

/* Nothing is held any more: then there is room for a block, after some moves. */
static void space_progress(struct sim_space *sp)
{
	u32 lid = 0, tries = 0;
	struct hawk_grant g;
	struct hawk_ref ref;
	u64 vt;
	int ret;

	while (lid < SIM_LIDS && model_look(sp, lid))
		lid++;
	if (lid == SIM_LIDS || !model_spares(sp, HAWK_RES_MAP) || !space_has_memory(sp))
		return;
	do {
		EXPECT(tries++ < 1000);
		sim.plan = (struct hawk_plan){ .max = SIM_PLAN, .move = sim.plan_move };
		ret = hawk_block_alloc(sp->s, sp->id[lid], NULL, HAWK_TIER_ANY, sim.now,
				       &sim.plan, &vt);
		plan_submit(&sim.plan);
		if (ret == -ENOBUFS && !hawk_space_grow(sp->s, &g))
			hawk_space_grown(sp->s, &g, true);
		while (sp->nmoves)
			device_step();
	} while (ret == -EAGAIN || ret == -ENOBUFS);
	sim_note("progress", -1, sp - sim.space, lid, tries, ret, vt);
	EXPECT(!ret && !hawk_block_ref(sp->s, sp->id[lid], &vt, &ref));
	EXPECT(!hawk_block_unpin(sp->s, ref));
	SAW(progress);
}

static void space_end(struct sim_space *sp)
{
	struct hawk_stats st = { 0 };

	/* room for the moves of the last call, too */
	if (sp->nmoves || sp->ngrants || sp->ngathers || sim.nmoves > SIM_MOVES - SIM_PLAN)
		return;
	model_check(sp);
	space_progress(sp);
	model_check(sp);
	hawk_space_stats(sp->s, &st);
	EXPECT(!st.pinned);
	if (st.blocks)
		SAW(space_ended);
	hawk_space_destroy(sp->s);
	CALLED(space_destroy, 0);
	sim_note("destroy", -1, sp - sim.space, -1, st.blocks, 0, 0);
	free(sp->p.vtlb);
	sp->s = NULL;
	sp->doomed = false;
}

void world_step(void)
{
	struct sim_space *sp = &sim.space[sim_below(sim.spaces)];

	if (!sim_below(4))
		tiers_step();
	else if (!sp->s)
		space_create(sp);
	else if (sp->doomed)
		space_end(sp);
	else if (!sim_below(8) || !sp->s->host_tiers)
		space_doom(sp);
}

/* Prefill runs for a while: what gathers have read comes to memory. */
static void promote(struct sim_space *sp, struct hawk_plan *plan)
{
	struct hawk_phase ph = { .flags = HAWK_PHASE_PREFILL, .until_ns = sim.now + 1 };
	int n;

	EXPECT(!hawk_space_phase(sp->s, &ph, sim.now));
	n = hawk_promote_next(sp->s, plan, sim.now);
	CALLED(promote, n < 0 ? n : 0);
	sim_note("promote", -1, sp - sim.space, -1, plan->n, n, ph.pending);
	EXPECT(n == (int)plan->n);
	if (n)
		SAW(promoted);
	plan_submit(plan);
}

/* Write cold blocks ahead and promote others, as a host's keeper does. */
void world_keep(void)
{
	struct sim_space *sp = &sim.space[sim_below(sim.spaces)];
	struct hawk_plan *plan;
	int n;

	if (!sp->s || sp->doomed)
		return;
	plan = plan_draw();
	if (!plan)
		return;
	sim.touched[sp - sim.space] = true;
	if (!sim_below(3)) {
		promote(sp, plan);
		return;
	}
	n = hawk_space_writeback(sp->s, sim_below(HAWK_TIERS_MAX), sim_below(1025), sim.now, plan);
	CALLED(writeback, n < 0 ? n : 0);
	sim_note("writeback", -1, sp - sim.space, -1, plan->n, n, 0);
	EXPECT(n == -ENOBUFS || n == (int)plan->n);
	plan_submit(plan);
	if (n < 0)
		space_grow(sp);
}

/* ---- all chunks are accounted for ---- */

/* The chunks of a space in a tier, none of which @seen may have. Return: how many. */
static u32 chunks_of(const struct sim_space *sp, u32 tier, u32 *seen)
{
	const struct hawk_window *w = &sp->s->win[tier];
	u32 slot, c, n = 0;

	for (slot = 0; slot < w->nslots; slot++) {
		c = hawk_slot_chunk(w, slot);
		if (c == HAWK_NONE)
			continue;
		EXPECT(c < sim.tier[tier].chunks && !(*seen & 1u << c));
		*seen |= 1u << c;
		n++;
	}
	return n;
}

/*
 * No chunk has two owners, quotas hold, all minima can be had, and what is kept back is
 * there or being zeroed, unless a new space still waits for what others have to repay.
 */
static void tier_check(u32 t)
{
	u32 i, total, nfree, ndirty, sum = 0, keep = 0, seen = 0, used = 0, claims = 0;

	EXPECT(!hawk_tier_usage(sim.e, t, &total, &nfree, &ndirty));
	EXPECT(total == sim.tier[t].chunks);
	for (i = 0; i < sim.ngrants; i++)
		if (sim.grant[i].g.tier == t) {
			EXPECT(!(seen & 1u << sim.grant[i].g.chunk));
			seen |= 1u << sim.grant[i].g.chunk;
			used++;
		}
	for (i = 0; i < SIM_SPACES; i++) {
		const struct sim_space *sp = &sim.space[i];
		const struct hawk_window *w = sp->s ? &sp->s->win[t] : NULL;

		if (!w || !w->frame)
			continue;
		EXPECT(w->owned <= sp->p.quota_max[t]);
		sum += w->owned;
		used += chunks_of(sp, t, &seen);
		claims += w->claims;
		if (w->owned < sp->p.quota_min[t])
			keep += sp->p.quota_min[t] - w->owned;
	}
	EXPECT(sum == used && sum + nfree + ndirty == total);
	EXPECT(sim.e->tier[t].reserved == keep && sim.e->tier[t].claimed == claims);
	EXPECT(sim.e->tier[t].minima == minima_of(t) && minima_of(t) <= total);
	EXPECT(sim.e->tier[t].insisting || nfree + ndirty >= keep + claims);
}

void world_check(void)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (sim.tier[t].present)
			tier_check(t);
		else
			EXPECT(hawk_tier_usage(sim.e, t, NULL, NULL, NULL) == -ENOENT);
	}
}

void world_begin(void)
{
	u32 i;

	sim.e = hawk_engine_create();
	EXPECT(sim.e);
	for (i = 0; i < SIM_CLIENTS; i++) {
		sim.client[i].space = -1;
		memset(sim.client[i].pin, -1, sizeof(sim.client[i].pin));
		memset(sim.client[i].lease, -1, sizeof(sim.client[i].lease));
	}
	tier_add(HAWK_TIER_HOST, 0);
	tier_add(HAWK_TIER_BLK, 0);
	tier_add(HAWK_TIER_HOST, 0);
	for (i = 0; i < sim.spaces; i++)
		space_create(&sim.space[i]);
}

/* Everybody goes home: nothing may be left. */
void world_end(void)
{
	u32 i, t;

	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s)
			space_doom(&sim.space[i]);
	do {
		device_step();
	} while (sim.nmoves || sim.ntransfers || world_grown());
	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s)
			space_end(&sim.space[i]);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (sim.tier[t].present) {
			u32 c = HAWK_NONE, total, nfree;

			while ((c = hawk_tier_next_dirty(sim.e, t, c)) != HAWK_NONE)
				hawk_tier_clean(sim.e, t, c);
			EXPECT(!hawk_tier_usage(sim.e, t, &total, &nfree, NULL) && total == nfree);
			EXPECT(!hawk_tier_remove(sim.e, t));
		}
	hawk_engine_destroy(sim.e);
	EXPECT(!sim_tables());
}
