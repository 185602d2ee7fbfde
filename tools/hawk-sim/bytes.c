// SPDX-License-Identifier: MIT
/*
 * bytes.c - the bytes of the tiers, as tokens, and the devices that move them
 *
 * A move travels in two halves, each at the start, some time in between, or at the
 * end.  So a frame that the engine gives away too early, or lets change while it is
 * being read, ends up with a mixture.
 */
#include "sim.h"

/* ---- tokens ---- */

u64 *cells_at(struct sim_space *sp, u32 tier, u64 off)
{
	struct sim_tier *t = &sim.tier[tier];

	EXPECT(tier < HAWK_TIERS_MAX && t->present);
	EXPECT(off + sp->p.block_bytes <= (u64)t->chunks * HAWK_CHUNK_BYTES);
	EXPECT(off / HAWK_CHUNK_BYTES == (off + sp->p.block_bytes - 1) / HAWK_CHUNK_BYTES);
	return &t->cell[off / (SIM_GRAIN / 2)];
}

u64 *cells_of(struct sim_space *sp, u32 tier, u32 frame)
{
	return cells_at(sp, tier, hawk_frame_off(sp->s, tier, frame));
}

static u64 *cells_vt(struct sim_space *sp, u64 vt)
{
	EXPECT(vt & HAWK_VT_VALID);
	return cells_of(sp, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt));
}

/* Return: the tag of the block that is there, 0: zeroes, SIM_TORN: a mixture. */
u64 cells_read(struct sim_space *sp, u64 vt)
{
	u64 *cell = cells_vt(sp, vt), tag = cell[0];
	u32 k, n = cells_per_block(sp);

	for (k = 1; k < n; k++)
		if (cell[k] != (tag ? tag + k : 0))
			return SIM_TORN;
	return tag;
}

/* Are there bytes that another space has written? */
bool cells_foreign(struct sim_space *sp, u64 vt)
{
	u64 *cell = cells_vt(sp, vt);
	u32 k, n = cells_per_block(sp);

	for (k = 0; k < n; k++)
		if (cell[k] && SIM_TAG_LIFE(cell[k]) != sp->life)
			return true;
	return false;
}

static void chunk_written(struct sim_space *sp, u32 tier, const u64 *cell)
{
	u32 chunk = (cell - sim.tier[tier].cell) / SIM_CELLS;

	if (sim.tier[tier].had[chunk] != sp->life && sim.tier[tier].had[chunk])
		SAW(chunk_reused);
	sim.tier[tier].had[chunk] = sp->life;
}

void cells_write(struct sim_space *sp, u64 vt, u64 tag)
{
	u64 *cell = cells_vt(sp, vt);
	u32 k, n = cells_per_block(sp);

	for (k = 0; k < n; k++)
		cell[k] = tag + k;
	chunk_written(sp, HAWK_VT_TIER(vt), cell);
}

u64 cells_half(struct sim_space *sp, u64 *dst, const u64 *src, u32 h)
{
	u32 k, n = cells_per_block(sp) / 2;
	u64 sum = 0;

	for (k = h * n; k < (h + 1) * n; k++) {
		dst[k] = src[k];
		sum = hawk_mix(sum ^ src[k]);
	}
	return sum;
}

u32 cells_sum(const u64 half[2])
{
	return hawk_mix(half[0] + 3 * half[1]);
}

/* ---- moves ---- */

struct hawk_plan *plan_draw(void)
{
	if (sim.nmoves > SIM_MOVES - SIM_PLAN || sim_chance(sim.weather.no_plan_permille))
		return NULL;
	sim.plan.n = 0;
	sim.plan.max = 1 + sim_below(SIM_PLAN);
	sim.plan.move = sim.plan_move;
	return &sim.plan;
}

static u32 drive_of(const struct hawk_move *m)
{
	return m->kind == HAWK_MOVE_WRITE ? m->dst_tier : m->src_tier;
}

static int fate_draw(const struct hawk_move *m)
{
	static const int bad[] = { -EIO, -EIO, -ENODATA, -EILSEQ, -ECANCELED };
	u32 permille = drive_of(m) == sim.weather.sick_tier ? 700 : sim.weather.fail_permille;
	int fate;

	/* a copy in memory does not fail */
	if (m->kind == HAWK_MOVE_COPY || !sim_chance(permille))
		return 0;
	fate = bad[sim_below(ARRAY_SIZE(bad))];
	return fate == -EILSEQ && m->kind != HAWK_MOVE_READ ? -EIO : fate;
}

static u64 *move_cells(const struct sim_move *mv, bool dst)
{
	struct sim_space *sp = &sim.space[mv->space];

	return cells_at(sp, dst ? mv->m.dst_tier : mv->m.src_tier,
			dst ? mv->m.dst_off : mv->m.src_off);
}

/* Half number @h travels. */
static void half_copy(struct sim_move *mv, u32 h)
{
	struct sim_space *sp = &sim.space[mv->space];
	u64 *dst = move_cells(mv, true);

	mv->half[h] = cells_half(sp, dst, move_cells(mv, false), h);
	mv->halves |= 1u << h;
	chunk_written(sp, mv->m.dst_tier, dst);
}

/* The source and destination are where the engine said they are. */
static void move_places(struct sim_space *sp, const struct hawk_move *m)
{
	EXPECT(m->space == sp->s);
	EXPECT(m->src_off == hawk_frame_off(sp->s, m->src_tier, m->src_frame));
	EXPECT(m->dst_off == hawk_frame_off(sp->s, m->dst_tier, m->dst_frame));
	EXPECT((sim.tier[m->src_tier].kind == HAWK_TIER_HOST) == (m->kind != HAWK_MOVE_READ));
	EXPECT((sim.tier[m->dst_tier].kind == HAWK_TIER_HOST) == (m->kind != HAWK_MOVE_WRITE));
}

static struct sim_space *space_of(const struct hawk_move *m)
{
	u32 i;

	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s == m->space)
			return &sim.space[i];
	sim_fail(__FILE__, __LINE__, "a move of no space");
}

/* A drive that fails gets no write, but one when a pause has passed. */
static void write_told(const struct sim_space *sp, const struct hawk_move *m)
{
	struct sim_tier *t = &sim.tier[m->dst_tier];
	u32 i, all = sp->s->flash_tiers;

	EXPECT(hawk_tier_health(sim.e, m->dst_tier) != HAWK_HEALTH_LOST);
	if (hawk_tier_health(sim.e, m->dst_tier) == HAWK_HEALTH_FAILING) {
		EXPECT(sim.now >= t->trial_at);
		t->trial_at = sim.now + 1000000000;
		SAW(drive_trial);
		return;
	}
	for (i = 0; all >> i; i++)
		if (all & 1u << i && hawk_tier_health(sim.e, i) != HAWK_HEALTH_OK)
			SAW(drives_differ);
}

static void drive_told(const struct hawk_move *m)
{
	bool write = m->kind == HAWK_MOVE_WRITE;
	enum hawk_health_change ret = HAWK_HEALTH_SAME;
	u32 drive = drive_of(m);

	if (m->kind == HAWK_MOVE_COPY || m->result == -ECANCELED || !sim.weather.health)
		return;
	if (m->result)
		ret = hawk_tier_fault(sim.e, drive, write ? HAWK_FAULT_WRITE : HAWK_FAULT_READ,
				      sim.now);
	else
		ret = hawk_tier_works(sim.e, drive, write, sim.now);
	if (ret == HAWK_HEALTH_FAILS) {
		sim.tier[drive].trial_at = sim.now + 1000000000;
		SAW(drive_fails);
	} else if (ret == HAWK_HEALTH_WORKS) {
		SAW(drive_works);
	}
}

/* Does the move wait because its drive stalls?  The host sees that and tells. */
static bool drive_stalls(const struct hawk_move *m)
{
	u32 drive = drive_of(m);

	if (m->kind == HAWK_MOVE_COPY || drive != sim.weather.stalled_tier || !sim.weather.health)
		return false;
	if (hawk_tier_fault(sim.e, drive, HAWK_FAULT_STALL, sim.now) == HAWK_HEALTH_FAILS) {
		sim.tier[drive].trial_at = sim.now + 1000000000;
		SAW(drive_stalls);
	}
	return true;
}

void plan_submit(struct hawk_plan *plan)
{
	u32 i, h;

	for (i = 0; plan && i < plan->n; i++) {
		struct hawk_move *m = &plan->move[i];
		struct sim_move *mv = &sim.move[sim.nmoves++];
		struct sim_space *sp = space_of(m);

		EXPECT(sim.nmoves <= SIM_MOVES && plan->n <= plan->max);
		move_places(sp, m);
		if (m->kind == HAWK_MOVE_WRITE)
			write_told(sp, m);
		*mv = (struct sim_move){
			.m = *m, .serial = sim.next_move++, .space = sp - sim.space,
			.fate = fate_draw(m),
		};
		sp->nmoves++;
		if (sim_chance(sim.weather.stuck_permille)) {
			mv->not_before = sim.event + 200 + sim_below(2000);
			SAW(move_stuck);
		}
		for (h = 0; h < 2; h++)
			if (mv->fate != -ECANCELED && sim_chance(sim.weather.eager_permille))
				half_copy(mv, h);
	}
}

/* What a READ found must be what was written; if it is not, whose fault is it? */
static int move_result(struct sim_move *mv)
{
	struct hawk_move *m = &mv->m;

	if (m->kind == HAWK_MOVE_WRITE && !mv->fate)
		m->crc = cells_sum(mv->half);
	if (m->kind == HAWK_MOVE_READ && mv->halves == 3)
		EXPECT(m->crc == cells_sum(mv->half));
	switch (mv->fate) {
	case -EIO:
		SAW(move_io);
		break;
	case -ENODATA:
		SAW(move_short);
		break;
	case -EILSEQ:
		SAW(move_rot);
		move_cells(mv, true)[0] = SIM_TAG(sim.space[mv->space].life, 0) + 255;
		break;
	case -ECANCELED:
		SAW(move_canceled);
		break;
	}
	return mv->fate == -ENODATA ? -EIO : mv->fate;
}

/* Tell the model what the end of a move means for its block. */
static void move_told(struct sim_space *sp, const struct sim_move *mv)
{
	const struct hawk_move *m = &mv->m;
	struct hawk_ref ref = { m->block, m->gen };
	int o = obj_of(sp, ref), from;

	if (sp->p.seqs) {
		if (m->kind == HAWK_MOVE_READ && mv->fate && mv->fate != -ECANCELED)
			gather_lost(sp, m->block);
		return;
	}
	if (m->kind == HAWK_MOVE_COPY) {
		ref.block = sp->s->win[m->src_tier].frame[m->src_frame].block;
		ref.gen = sp->s->block[ref.block].gen;
		from = obj_of(sp, ref);
		EXPECT(o >= 0 && from >= 0 && sp->obj[o].copies && sp->obj[from].copies);
		sp->obj[from].copies--;
		obj_unpinned(sp, from);
		sp->obj[o].copies--;
		obj_unpinned(sp, o);
		return;
	}
	if (o < 0) {
		if (m->kind == HAWK_MOVE_WRITE)
			SAW(write_freed);
		else
			SAW(read_freed);
		return;
	}
	if (m->kind == HAWK_MOVE_WRITE) {
		if (sp->obj[o].pins)
			SAW(write_pinned);
		else if (mv->fate && mv->fate != -ECANCELED && sp->obj[o].leases)
			SAW(lease_kept);
		else if (!mv->fate && m->flags & HAWK_MF_KEEP)
			SAW(write_ahead);
	} else if (mv->fate && mv->fate != -ECANCELED) {
		sp->obj[o].lost = true;
	}
}

static void move_end(u32 i)
{
	struct sim_move mv = sim.move[i];
	struct sim_space *sp = &sim.space[mv.space];
	u32 k;

	for (k = 0; k < sim.nmoves; k++)
		if (sim.move[k].serial < mv.serial) {
			SAW(move_overtaken);
			break;
		}
	sim.move[i] = sim.move[--sim.nmoves];
	sp->nmoves--;
	mv.m.result = move_result(&mv);
	move_told(sp, &mv);
	sim.touched[mv.space] = true;
	drive_told(&mv.m);
	CALLED(complete, mv.m.result);
	sim_note(mv.m.kind == HAWK_MOVE_WRITE ? "written" : mv.m.kind == HAWK_MOVE_READ ?
		 "read" : "copied", -1, mv.space, -1, mv.m.block, mv.m.result,
		 (u64)mv.m.src_frame << 32 | mv.m.dst_frame);
	hawk_move_complete(&mv.m);
}

bool device_step(void)
{
	struct sim_move *mv;
	u32 i, left;

	if (!sim.nmoves && !sim.ntransfers)
		return false;
	i = sim_below(sim.nmoves + sim.ntransfers);
	if (i >= sim.nmoves)
		return gather_step(i - sim.nmoves);
	mv = &sim.move[i];
	if (!sim.space[mv->space].doomed &&
	    (mv->not_before > sim.event || drive_stalls(&mv->m)))
		return false;
	/* a move that fails at once or stops half-way copies less */
	left = mv->fate == -ECANCELED || mv->fate == -EIO ? 0 :
	       mv->fate == -ENODATA ? 1 & ~mv->halves : 3 & ~mv->halves;
	if (left) {
		half_copy(mv, left == 3 ? sim_below(2) : left >> 1);
		sim_note("half", -1, mv->space, -1, mv->m.block, mv->halves, mv->serial);
		return true;
	}
	move_end(i);
	return true;
}
