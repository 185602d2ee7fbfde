// SPDX-License-Identifier: MIT
/*
 * seqs.c - clients of sequences
 *
 * Some spaces are for sequences alone.  A step of a client there is one operation on a
 * sequence of anybody's with the calls that follow it: blocks are put under the LIDs
 * that it got, or forked for a copy, as far as there is room; what nobody sees any more
 * is reaped.  Blocks are evicted, lost and drained as all are, and gathered (gathers.c).
 * The model knows the history of each sequence: which tokens are visible, and at what
 * position.  A block holds the tag of the LID under which it was made.
 */
#include "../../kmod/core/seqpriv.h"
#include "sim.h"

static u32 owner_of(const struct sim_client *c)
{
	return 1 + (c - sim.client);
}

static u64 tag_of(const struct sim_space *sp, u64 lid)
{
	return SIM_TAG(sp->life, (u32)hawk_mix(lid));
}

/* Is the row of a LID shown by a segment? */
static bool row_shown(const struct hawk_space *s, u64 lid)
{
	const struct hawk_seqs *q = s->seqs;
	u32 row = hawk_lid_tok(lid) / q->block_tokens;

	return hawk_run_rows_node(q, &q->run[hawk_lid_seq(lid) - s->run_base], row, row + 1);
}

/* Is it noted, to be looked at? */
static bool row_noted(const struct hawk_space *s, u64 lid)
{
	const struct hawk_run *r = &s->seqs->run[hawk_lid_seq(lid) - s->run_base];
	u32 i, row = hawk_lid_tok(lid) / s->block_tokens;

	for (i = 0; i < r->n; i++)
		if (r->range[i].row <= row && row < r->range[i].end)
			return true;
	return false;
}

/* LIDs under rows that somebody sees; others are to wait. */
static u32 lids_shown(const struct hawk_space *s)
{
	u32 i, m, n = 0;
	u64 lid;

	for (i = 0; i < s->max_blocks; i++) {
		if (s->block[i].state == HAWK_BLOCK_FREE || s->block[i].state == HAWK_BLOCK_DYING)
			continue;
		for (m = s->block[i].maps; m != HAWK_NONE; m = s->map[m].alias) {
			lid = s->map[m].lid;
			if (!hawk_lid_is_run(s, lid))
				continue;
			if (row_shown(s, lid))
				n++;
			else
				EXPECT(row_noted(s, lid));
		}
	}
	return n;
}

void seq_reap(struct sim_space *sp)
{
	u32 freed = 0, shown = lids_shown(sp->s);

	while (hawk_seq_reap(sp->s, 1 + sim_below(64), &freed))
		;
	EXPECT(lids_shown(sp->s) == shown);
	if (freed)
		SAW(seq_reaped);
	/* what is left waits for the end of a pin, or of a gather */
	if (sp->s->seqs->waiting)
		SAW(seq_waits);
}

/* ---- blocks ---- */

static void block_fork(struct sim_space *sp, u64 from, u64 to)
{
	struct sim_alias *a = &sp->alias[sp->naliases % SIM_ALIASES];
	struct hawk_ref ref;
	u64 vt;
	u32 i;

	/* the source was evicted or never put, or there is no LID slot */
	if (hawk_block_fork(sp->s, from, to))
		return;
	a->lid = to;
	a->tag = tag_of(sp, from);
	for (i = 0; i < SIM_ALIASES; i++)	/* a copy of a copy */
		if (sp->alias[i].lid == from && &sp->alias[i] != a)
			a->tag = sp->alias[i].tag;
	sp->naliases++;
	SAW(seq_forked);
	EXPECT(!hawk_block_ref(sp->s, to, &vt, &ref));
}

static void block_put(struct sim_space *sp, u64 lid)
{
	struct hawk_plan *plan = plan_draw();
	u64 vt;
	u32 i;
	int ret = hawk_block_alloc(sp->s, lid, NULL, HAWK_TIER_ANY, sim.now, plan, &vt);

	CALLED(alloc, ret);
	if (!ret) {
		EXPECT(!cells_foreign(sp, vt));
		cells_write(sp, vt, tag_of(sp, lid));
		for (i = 0; i < SIM_ALIASES; i++)
			if (sp->alias[i].lid == lid)
				sp->alias[i].lid = 0;
		EXPECT(!hawk_block_put(sp->s, lid, NULL, false, sim.now));
	} else if (ret != -EEXIST) {
		model_room(sp, plan, ret);
	}
	plan_submit(plan);
}

static void blocks_put(struct sim_space *sp, const struct hawk_seq_op *op)
{
	u32 bt = sp->p.block_tokens, layer, at;
	u64 lid;

	for (layer = 0; layer < sp->p.layers; layer++)
		for (at = op->tok - op->tok % bt; at < op->tok + op->len; at += bt) {
			lid = HAWK_LID(op->run, layer, 0, at);
			if (at < op->tok && op->cow_len)
				block_fork(sp, HAWK_LID(op->cow_run, layer, 0, op->cow_tok), lid);
			else if (at >= op->tok)
				block_put(sp, lid);
			if (sim.nmoves > SIM_MOVES - 2 * SIM_PLAN)
				return;
		}
}

bool seq_tag_fits(const struct sim_space *sp, u64 lid, u64 tag)
{
	u64 want = tag_of(sp, lid);
	u32 i;

	for (i = 0; i < SIM_ALIASES; i++)
		if (sp->alias[i].lid == lid)
			want = sp->alias[i].tag;
	return tag == want || sp->naliases > SIM_ALIASES;
}

/* A block of a row that a sequence shows, 0: it shows none. */
static u64 lid_shown(const struct sim_space *sp, const struct sim_seq *q)
{
	struct hawk_seg seg[SIM_TOKENS];
	struct hawk_seq_map map = { .seq = q->handle, .count = SIM_TOKENS };
	u32 i;

	EXPECT(!hawk_seq_map(sp->s, &map, seg));
	if (!map.count)
		return 0;
	i = sim_below(map.count);
	return hawk_lid_block(HAWK_LID(seg[i].run, sim_below(sp->p.layers), 0,
				       seg[i].tok + sim_below(seg[i].len)), sp->p.block_tokens);
}

/* Pin a block that a map names, read it, and keep the pin for a while. */
static void visit(struct sim_client *c, struct sim_space *sp, const struct sim_seq *q)
{
	struct sim_seq_pin *pin = &sp->seq_pin[c - sim.client];
	u64 lid, vt, tag;

	if (pin->held) {
		EXPECT(cells_read(sp, pin->vt) == pin->tag);
		EXPECT(!hawk_block_unpin(sp->s, pin->ref));
		pin->held = false;
		seq_reap(sp);
		return;
	}
	lid = lid_shown(sp, q);
	if (!lid)
		return;
	if (hawk_block_pin(sp->s, lid, sim.now, &vt, &pin->ref)) {
		struct hawk_plan *plan = plan_draw();

		hawk_block_reload(sp->s, lid, HAWK_TIER_ANY, sim.now, plan);
		plan_submit(plan);
		return;
	}
	tag = cells_read(sp, vt);
	EXPECT(seq_tag_fits(sp, lid, tag));
	pin->held = true;
	pin->vt = vt;
	pin->tag = tag;
}

/* ---- gathers ---- */

static struct sim_seq *any_seq(struct sim_space *sp)
{
	u32 i, from = sim_below(SIM_SEQS);

	for (i = 0; i < SIM_SEQS; i++)
		if (sp->seq[(from + i) % SIM_SEQS].handle)
			return &sp->seq[(from + i) % SIM_SEQS];
	return NULL;
}

u64 seq_lid_draw(struct sim_space *sp)
{
	const struct sim_seq *q = any_seq(sp);
	u64 lid = q ? lid_shown(sp, q) : 0;

	if (!lid)
		return HAWK_LID(1 + sim_below(4), 0, 0, sim_below(SIM_TOKENS));
	/* or a row near it, which may be anybody's or nobody's */
	if (!sim_below(8))
		lid ^= sim_below(8) * sp->p.block_tokens;
	return lid + sim_below(sp->p.block_tokens);
}

bool seq_block_waits(const struct sim_space *sp, u32 block)
{
	u32 m = sp->s->block[block].maps;

	for (; m != HAWK_NONE; m = sp->s->map[m].alias)
		if (hawk_lid_is_run(sp->s, sp->s->map[m].lid) &&
		    !row_shown(sp->s, sp->s->map[m].lid))
			return true;
	return false;
}

/* One begins now and then, and is looked at while others go on. Return: whether one was. */
static bool gather_some(struct sim_client *c, struct sim_space *sp)
{
	if (sim_below(c->gather ? 3 : 8))
		return false;
	if (c->gather)
		op_gathered(c, sp);
	else
		op_gather(c, sp);
	return true;
}

/* ---- operations ---- */

/* In a range, may all visible tokens be read @shift earlier? */
static bool shift_fits(const struct sim_seq *q, const struct hawk_seq_op *op)
{
	u32 i;

	for (i = op->start; i < op->end; i++)
		if (q->tok[i].visible && q->tok[i].pos < op->shift)
			return false;
	return true;
}

/* An operation that can be carried out, if there is room for it. */
static bool op_draw(struct sim_space *sp, struct hawk_seq_op *op, const struct sim_seq *q,
		    const struct sim_seq *other)
{
	static const u8 codes[] = {
		HAWK_SEQ_NEW, HAWK_SEQ_FORK, HAWK_SEQ_APPEND, HAWK_SEQ_APPEND, HAWK_SEQ_APPEND,
		HAWK_SEQ_DROP, HAWK_SEQ_REPOS, HAWK_SEQ_TRUNCATE, HAWK_SEQ_COMPOSE,
		HAWK_SEQ_FREE,
	};
	const struct sim_seq *range = q;

	*op = (struct hawk_seq_op){ .op = q ? codes[sim_below(ARRAY_SIZE(codes))] : HAWK_SEQ_NEW };
	if (op->op == HAWK_SEQ_NEW)
		return true;
	if (op->op == HAWK_SEQ_FORK || op->op == HAWK_SEQ_COMPOSE) {
		op->src = other->handle;
		range = other;
	}
	op->seq = op->op == HAWK_SEQ_FORK ? 0 : q->handle;
	switch (op->op) {
	case HAWK_SEQ_APPEND:
		op->len = 1 + sim_below(2 * sp->p.block_tokens);
		op->pos = sim_below(100);
		return q->len + op->len <= SIM_TOKENS;
	case HAWK_SEQ_TRUNCATE:
		op->len = sim_below(q->len + 1);
		return true;
	case HAWK_SEQ_DROP:
	case HAWK_SEQ_REPOS:
	case HAWK_SEQ_COMPOSE:
		if (!range->len)
			return false;
		op->start = sim_below(range->len);
		op->end = op->start + 1 + sim_below(range->len - op->start);
		op->shift = op->op == HAWK_SEQ_DROP ? 0 : (s32)sim_below(9) - 4;
		return shift_fits(range, op) && (op->op != HAWK_SEQ_COMPOSE ||
						 q->len + op->end - op->start <= SIM_TOKENS);
	default:
		return true;
	}
}

/* The model follows an operation that was carried out; @in is what was asked. */
static void op_follow(struct sim_space *sp, u32 owner, struct sim_seq *q,
		      const struct sim_seq *other, const struct hawk_seq_op *in, u32 handle)
{
	struct sim_seq *new = sp->seq;
	u32 i;

	switch (in->op) {
	case HAWK_SEQ_NEW:
	case HAWK_SEQ_FORK:
		while (new->handle)
			new++;
		EXPECT(new < sp->seq + SIM_SEQS);
		if (in->op == HAWK_SEQ_FORK)
			*new = *other;
		else
			new->len = 0;
		new->handle = handle;
		new->owner = owner;
		break;
	case HAWK_SEQ_APPEND:
		for (i = 0; i < in->len; i++)
			q->tok[q->len++] = (struct sim_token){ in->pos + i, true };
		break;
	case HAWK_SEQ_DROP:
		for (i = in->start; i < in->end; i++)
			q->tok[i].visible = false;
		break;
	case HAWK_SEQ_REPOS:
		for (i = in->start; i < in->end; i++)
			q->tok[i].pos -= in->shift;
		break;
	case HAWK_SEQ_TRUNCATE:
		q->len = in->len;
		break;
	case HAWK_SEQ_COMPOSE:
		for (i = in->start; i < in->end; i++) {
			q->tok[q->len] = other->tok[i];
			q->tok[q->len++].pos -= in->shift;
		}
		break;
	case HAWK_SEQ_FREE:
		q->handle = 0;
		break;
	}
}

static bool slots_left(const struct sim_space *sp)
{
	u32 i, n = 0;

	for (i = 0; i < SIM_SEQS; i++)
		n += !!sp->seq[i].handle;
	return n < sp->p.seqs;
}

/* Elastic residency, as a host's keeper does it. */
static void keep(struct sim_space *sp)
{
	struct hawk_plan *plan = plan_draw();
	int n;

	if (!plan)
		return;
	n = hawk_elastic_step(sp->s, sim.now, plan);
	sim_note("elastic", -1, sp - sim.space, -1, plan->n, n, 0);
	EXPECT(n == -ENOBUFS || n == (int)plan->n);
	if (plan->n)
		SAW(seq_elastic);
	plan_submit(plan);
	if (n < 0)
		space_grow(sp);
}

void seq_step(struct sim_client *c, struct sim_space *sp)
{
	struct sim_seq *q = any_seq(sp), *other = any_seq(sp);
	struct hawk_seq_op op, in;
	int ret;

	sim.touched[c->space] = true;
	if (gather_some(c, sp))
		return;
	/* room for the moves of an operation */
	if (sim.nmoves > SIM_MOVES - 2 * SIM_PLAN)
		return;
	if (q && !sim_below(3)) {
		visit(c, sp, q);
		return;
	}
	if (!sim_below(6)) {
		keep(sp);
		return;
	}
	if (!op_draw(sp, &op, q, other))
		return;
	in = op;
	ret = hawk_seq_do(sp->s, owner_of(c), &op);
	if (ret == -EAGAIN) {	/* as hosts do it */
		seq_reap(sp);
		ret = hawk_seq_do(sp->s, owner_of(c), &op);
	}
	CALLED(seq, ret);
	sim_note("seq", c - sim.client, c->space, -1, in.op, ret, op.seq);
	if (ret) {
		EXPECT(ret == -ENOSPC);
		EXPECT(in.op > HAWK_SEQ_FORK || !slots_left(sp));
		SAW(seq_nospace);
		return;
	}
	op_follow(sp, owner_of(c), q, other, &in, op.seq);
	seq_reap(sp);
	if (in.op == HAWK_SEQ_APPEND) {
		if (op.cow_len)
			SAW(seq_cow);
		op.len = in.len;
		blocks_put(sp, &op);
	}
}

/* A client has died: its sequences end, and its pin. */
void seq_died(struct sim_client *c, struct sim_space *sp)
{
	struct sim_seq_pin *pin = &sp->seq_pin[c - sim.client];
	u32 i;

	if (pin->held)
		EXPECT(!hawk_block_unpin(sp->s, pin->ref));
	pin->held = false;
	while (hawk_seq_end_owner(sp->s, owner_of(c)))
		;
	for (i = 0; i < SIM_SEQS; i++)
		if (sp->seq[i].handle && sp->seq[i].owner == owner_of(c)) {
			sp->seq[i].handle = 0;
			SAW(seq_died);
		}
	seq_reap(sp);
}

/* ---- checks ---- */

static void map_check(struct sim_space *sp, const struct sim_seq *q)
{
	struct hawk_seg seg[SIM_TOKENS];
	struct hawk_seq_map map = { .seq = q->handle, .count = SIM_TOKENS };
	u32 i, j, visible = 0;

	EXPECT(!hawk_seq_map(sp->s, &map, seg));
	EXPECT(map.len == q->len && !map.hidden);
	for (i = 0; i < map.count; i++)
		for (j = 0; j < seg[i].len; j++) {
			const struct sim_token *k = &q->tok[seg[i].first + j];

			EXPECT(seg[i].first + j < q->len && k->visible);
			EXPECT((s64)seg[i].pos + j - seg[i].shift == k->pos);
		}
	for (i = 0; i < q->len; i++)
		visible += q->tok[i].visible;
	EXPECT(visible == map.visible);
}

/* Pins are those of clients and gathers, blocks read on flash are those of gathers. */
static void holds_check(struct sim_space *sp)
{
	u32 i, pins = 0, reads = 0, held = 0;

	for (i = 0; i < sp->s->max_blocks; i++)
		if (sp->s->block[i].state != HAWK_BLOCK_FREE) {
			pins += sp->s->block[i].pins;
			reads += sp->s->block[i].reads;
		}
	for (i = 0; i < SIM_CLIENTS; i++)
		held += sp->seq_pin[i].held;
	EXPECT(pins == held + gather_reads(sp, false));
	EXPECT(reads == gather_reads(sp, true) && reads == sp->nreads);
}

void seq_check(struct sim_space *sp)
{
	u32 i;

	holds_check(sp);
	for (i = 0; i < SIM_SEQS; i++)
		if (sp->seq[i].handle)
			map_check(sp, &sp->seq[i]);
	lids_shown(sp->s);
}
