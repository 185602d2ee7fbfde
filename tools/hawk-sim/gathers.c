// SPDX-License-Identifier: MIT
/*
 * gathers.c - clients gather blocks, wherever they are, into buffers of their own
 *
 * Two instructions: op_gather() opens the gather and starts its transfers, op_gathered()
 * waits for them and compares what its rows say.  In between devices carry the transfers
 * out as they do moves: late, in any order, not always well; others free, reload and
 * evict the blocks.  A transfer that failed is made again, block by block, and what is
 * wrong then is the block's fault, as in kmod/gather_io.c.
 *
 * A gather whose client dies, or gives up, ends with its last transfer; until then its
 * space does not.  Rows are right bytes or an error: every block that came has the
 * bytes that it had when the gather was opened, and its checksum if it was on flash.
 */
#include "sim.h"

static void note(const struct sim_gather *g, const char *what, int arg, int ret, u64 v)
{
	sim_note(what, g->client ? g->client - sim.client : -1, g->space, -1, arg, ret, v);
}

static struct sim_gather *gather_free(void)
{
	u32 i;

	for (i = 0; i < SIM_GATHERS; i++)
		if (!sim.gather[i].used)
			return &sim.gather[i];
	return NULL;
}

/* ---- rows ---- */

/* The status of a row before anything is moved, if the buffer has room. */
static int row_status(const struct sim_space *sp, u32 lid)
{
	const struct sim_obj *o;

	if (sp->lid[lid] < 0)
		return -ENOENT;
	o = &sp->obj[sp->lid[lid]];
	if (o->filling || sp->s->block[o->ref.block].state == HAWK_BLOCK_RELOADING)
		return -EAGAIN;
	return 0;
}

/* A block of a sequence: the model knows what it holds, and where it is from the engine. */
static void row_of_seq(struct sim_gather *g, struct sim_space *sp, u32 i)
{
	struct hawk_ref ref;
	u64 vt;

	g->lid[i] = seq_lid_draw(sp);
	g->want[i] = hawk_block_ref(sp->s, g->lid[i], &vt, &ref);
	if (!g->want[i] && sp->s->block[ref.block].state == HAWK_BLOCK_RELOADING)
		g->want[i] = -EAGAIN;
	g->version[i] = g->want[i] ? 0 : ref.block + 1;
}

/* Most LIDs have a block, some are named twice. */
static void rows_draw(struct sim_gather *g, struct sim_space *sp)
{
	u32 i, k, lid;

	for (i = 0; i < g->set.rows; i++) {
		if (sp->p.seqs) {
			row_of_seq(g, sp, i);
			continue;
		}
		lid = sim_below(SIM_LIDS);
		for (k = 0; k < SIM_LIDS && !model_look(sp, lid) && sim_below(16); k++)
			lid = (lid + 1) % SIM_LIDS;
		g->lid[i] = lid_of(sp, lid);
		g->want[i] = row_status(sp, lid);
		g->version[i] = g->want[i] ? 0 : sp->obj[sp->lid[lid]].version;
		if (g->want[i] == -EAGAIN)
			SAW(gather_busy);
	}
}

static u32 blocks_of(const struct sim_gather *g)
{
	u32 i, k, n = 0;

	for (i = 0; i < g->set.rows; i++) {
		for (k = 0; k < i && g->version[k] != g->version[i]; k++)
			;
		n += g->version[i] && k == i;
	}
	return n;
}

/* ---- places ---- */

/* What the model knows of the block, and what holds it from now on. */
static void place_of_obj(struct sim_space *sp, struct sim_place *p, const struct hawk_read *r)
{
	int n = obj_of(sp, r->ref);
	struct sim_obj *o = &sp->obj[n];

	EXPECT(n >= 0 && !o->filling);
	p->version = o->version;
	p->tag = o->tag;
	if (r->flash) {
		o->reads++;
		return;
	}
	EXPECT(!obj_pinned(o) || o->vt == r->vt);
	o->vt = r->vt;
	o->gathers++;
}

static void place_of_seq(struct sim_space *sp, struct sim_place *p, const struct hawk_read *r,
			 u64 lid)
{
	p->version = r->ref.block + 1;
	p->tag = cells_read(sp, r->vt);
	EXPECT(seq_tag_fits(sp, hawk_lid_block(lid, sp->p.block_tokens), p->tag));
	SAW(gather_seq);
}

/* The block at place @at. */
static void place_begin(struct sim_gather *g, struct sim_space *sp, u32 at)
{
	const struct hawk_gather_block *b = hawk_gather_at(&g->set, at);
	const struct hawk_read *r = &b->read;
	struct sim_place *p = &g->place[at];

	EXPECT(r->flash == (sim.tier[HAWK_VT_TIER(r->vt)].kind != HAWK_TIER_HOST));
	EXPECT(hawk_gather_tier(&g->set, at) == HAWK_VT_TIER(r->vt));
	EXPECT(hawk_gather_off(&g->set, at) ==
	       hawk_frame_off(sp->s, HAWK_VT_TIER(r->vt), HAWK_VT_FRAME(r->vt)));
	*p = (struct sim_place){ .block = r->ref.block, .flash = r->flash };
	if (sp->p.seqs)
		place_of_seq(sp, p, r, b->lid);
	else
		place_of_obj(sp, p, r);
	if (r->flash) {
		sp->nreads++;
		SAW(gather_flash);
	} else if (sp->s->block[r->ref.block].state == HAWK_BLOCK_EVICTING) {
		SAW(gather_evicting);
	}
}

/* Each block has one place, all in order, and none is left out while there is room. */
static void places_check(const struct sim_gather *g)
{
	u32 i, k, n = blocks_of(g);

	EXPECT(g->set.n == (n < g->set.room ? n : g->set.room));
	if (g->set.n < n)
		SAW(gather_full);
	for (i = 1; i < g->set.n; i++) {
		EXPECT(g->key[i].key > g->key[i - 1].key);
		for (k = 0; k < i; k++)
			EXPECT(g->place[k].version != g->place[i].version);
	}
}

static void place_bytes(const struct sim_gather *g, const struct sim_space *sp, u32 at)
{
	const struct sim_place *p = &g->place[at];
	u32 k;

	EXPECT(p->halves == 3);
	if (p->flash)
		EXPECT(hawk_gather_at(&g->set, at)->read.crc == cells_sum(p->half));
	for (k = 0; k < cells_per_block(sp); k++)
		if (p->cell[k] != p->tag + k)
			sim_fail(__FILE__, __LINE__, "gathered %#llx, must be %#llx",
				 (unsigned long long)p->cell[k], (unsigned long long)p->tag + k);
}

u32 gather_reads(const struct sim_space *sp, bool flash)
{
	const struct sim_gather *g;
	const struct sim_place *p;
	u32 n = 0;

	for (g = sim.gather; g < sim.gather + SIM_GATHERS; g++)
		for (p = g->place; g->used && g->space == sp - sim.space &&
				   p < g->place + g->set.n; p++)
			if (!p->done && p->flash == flash) {
				EXPECT(p->lost || sp->s->block[p->block].state != HAWK_BLOCK_DYING);
				n++;
			}
	return n;
}

void gather_lost(const struct sim_space *sp, u32 block)
{
	struct sim_gather *g;
	u32 at;

	for (g = sim.gather; g < sim.gather + SIM_GATHERS; g++)
		for (at = 0; g->used && g->space == sp - sim.space && at < g->set.n; at++)
			g->place[at].lost |= g->place[at].flash && g->place[at].block == block;
}

/* The model's block may have ended meanwhile, if it could not be reloaded, or be rewritten. */
static void obj_let_go(struct sim_space *sp, const struct sim_place *p, bool lost)
{
	int o = obj_of_version(sp, p->version);

	if (!p->flash) {
		EXPECT(o >= 0 && sp->obj[o].gathers);
		sp->obj[o].gathers--;
		return;
	}
	if (o < 0)
		return;
	EXPECT(sp->obj[o].reads);
	sp->obj[o].reads--;
	if (lost)
		sp->obj[o].lost = true;
}

static void place_let_go(struct sim_space *sp, const struct sim_place *p, bool bad)
{
	const struct hawk_block *blk = &sp->s->block[p->block];
	bool lost = bad && p->flash && blk->state == HAWK_BLOCK_FLASH;

	sp->nreads -= p->flash;
	if (p->flash && blk->state == HAWK_BLOCK_DYING)
		SAW(gather_ended);
	if (p->flash && blk->htier != HAWK_NO_TIER)
		SAW(gather_reloaded);
	if (!sp->p.seqs)
		obj_let_go(sp, p, lost);
	else if (seq_block_waits(sp, p->block))
		SAW(gather_unseen);
	if (!lost)
		return;
	SAW(gather_bad);
	gather_lost(sp, p->block);
}

static void place_end(struct sim_gather *g, u32 at, int status, bool bad)
{
	struct sim_space *sp = &sim.space[g->space];
	struct sim_place *p = &g->place[at];

	EXPECT(!p->done);
	if (!status)
		place_bytes(g, sp, at);
	place_let_go(sp, p, bad);
	p->done = true;
	p->status = status;
	note(g, "gather_end", at, status, p->tag);
	hawk_gather_done(sp->s, &g->set, at, status, bad);
	CALLED(gather, status);
}

/* ---- transfers ---- */

static int fate_draw(void)
{
	static const int bad[] = { -EIO, -ENODATA, -EILSEQ, -ECANCELED };

	return sim_chance(sim.weather.fail_permille) ? bad[sim_below(ARRAY_SIZE(bad))] : 0;
}

static void half_gather(struct sim_gather *g, u32 at)
{
	struct sim_space *sp = &sim.space[g->space];
	struct sim_place *p = &g->place[at];
	u32 h = p->halves ? !(p->halves >> 1) : sim_below(2);

	p->half[h] = cells_half(sp, p->cell, cells_at(sp, hawk_gather_tier(&g->set, at),
						      hawk_gather_off(&g->set, at)), h);
	p->halves |= 1u << h;
	note(g, "gather_half", at, p->halves, 0);
}

/* A place of the transfer that lacks a half, HAWK_NONE: none does. */
static u32 place_missing(const struct sim_gather *g, const struct sim_transfer *t)
{
	u32 i, at, first = sim_below(t->n);

	if (t->again != HAWK_NONE)
		return g->place[t->again].halves == 3 ? HAWK_NONE : t->again;
	for (i = 0; i < t->n; i++) {
		at = t->at + (first + i) % t->n;
		if (g->place[at].halves != 3)
			return at;
	}
	return HAWK_NONE;
}

static void transfers_begin(struct sim_gather *g, struct sim_space *sp)
{
	u32 at, n, k;

	for (at = 0; at < g->set.n; at += n) {
		struct sim_transfer *t = &g->transfer[g->ntransfers++];

		n = hawk_gather_run(g->key, at, g->set.n, sp->p.block_bytes, SIM_RUN);
		*t = (struct sim_transfer){ .at = at, .n = n, .again = HAWK_NONE,
					    .fate = fate_draw() };
		if (n > 1)
			SAW(gather_merged);
		if (sim_chance(sim.weather.stuck_permille))
			t->not_before = sim.event + 200 + sim_below(2000);
		for (k = 0; k < 2 * n; k++)
			if (t->fate != -ECANCELED && sim_chance(sim.weather.eager_permille) &&
			    g->place[at + k / 2].halves != 3)
				half_gather(g, at + k / 2);
	}
	sim.ntransfers += g->ntransfers;
}

/* A place that has been read again. */
static void again_end(struct sim_gather *g, u32 at, int fate)
{
	if (fate == -ECANCELED) {
		place_end(g, at, -EAGAIN, false);	/* no memory for it */
	} else if (fate) {
		place_end(g, at, fate == -ENODATA ? -EIO : fate, true);
	} else {
		SAW(gather_again);
		place_end(g, at, 0, false);
	}
}

/* A transfer of several blocks: those that came are done. */
static void first_end(struct sim_gather *g, struct sim_transfer *t)
{
	u32 i, rotten = t->fate == -EILSEQ ? t->at + sim_below(t->n) : HAWK_NONE;

	for (i = t->at; i < t->at + t->n; i++)
		if (t->fate == -ECANCELED)
			place_end(g, i, -ECANCELED, false);
		else if ((!t->fate || t->fate == -EILSEQ) && i != rotten)
			place_end(g, i, 0, false);
}

/* Return: false: there is a place that has to be read again. */
static bool transfer_end(struct sim_gather *g, struct sim_transfer *t)
{
	u32 at;

	if (t->again != HAWK_NONE)
		again_end(g, t->again, t->fate);
	else
		first_end(g, t);
	for (at = t->at; at < t->at + t->n; at++)
		if (!g->place[at].done) {
			t->again = at;
			t->fate = fate_draw();
			g->place[at].halves = 0;
			return false;
		}
	return true;
}

/* Nobody waits for it and nothing of it is under way. */
static void gather_over(struct sim_gather *g)
{
	sim.space[g->space].ngathers--;
	g->used = false;
}

bool gather_step(u32 nr)
{
	struct sim_gather *g = sim.gather;
	struct sim_transfer *t;
	u32 at;

	for (; !g->used || nr >= g->ntransfers; g++)
		nr -= g->used ? g->ntransfers : 0;
	t = &g->transfer[nr];
	if (t->not_before > sim.event && !sim.space[g->space].doomed)
		return false;
	sim.touched[g->space] = true;
	at = place_missing(g, t);
	/* one that fails copies less */
	if (at != HAWK_NONE && t->fate != -EIO && t->fate != -ECANCELED &&
	    (t->fate != -ENODATA || sim_below(4))) {
		half_gather(g, at);
		return true;
	}
	if (!transfer_end(g, t))
		return true;
	*t = g->transfer[--g->ntransfers];
	sim.ntransfers--;
	if (!g->ntransfers && sim.space[g->space].p.seqs)
		seq_reap(&sim.space[g->space]);
	if (!g->ntransfers && !g->client)
		gather_over(g);
	return true;
}

/* ---- what the rows say ---- */

static void row_check(const struct sim_gather *g, u32 i, int undone)
{
	const struct sim_place *p = g->place;
	u32 at = 0;

	while (at < g->set.n && p[at].version != g->version[i])
		at++;
	if (g->want[i]) {
		EXPECT(g->status[i] == g->want[i]);
	} else if (at == g->set.n) {
		EXPECT(g->status[i] == -ENOSPC && g->set.n == g->set.room);
	} else {
		EXPECT(g->status[i] == (p[at].done ? p[at].status : undone));
		if (!g->status[i] || g->status[i] == -EINPROGRESS) {
			EXPECT(g->remap[i] == at);
			return;
		}
	}
	EXPECT(g->remap[i] == HAWK_NONE);
}

/* Do two rows name the same block by LIDs that differ in more than the token? */
static bool rows_share(const struct sim_gather *g, u32 i, u32 k)
{
	u32 tokens = sim.space[g->space].p.block_tokens;

	return g->remap[i] == g->remap[k] && g->remap[i] != HAWK_NONE &&
	       hawk_lid_block(g->lid[i], tokens) != hawk_lid_block(g->lid[k], tokens);
}

static void rows_check(struct sim_gather *g, int undone)
{
	u32 i, k, busy, left = 0, ok = hawk_gather_results(&g->set, undone, &busy);

	for (i = 0; i < g->set.rows; i++) {
		row_check(g, i, undone);
		ok -= !g->status[i];
		for (k = 0; k < i; k++)
			if (rows_share(g, i, k))
				SAW(gather_shared);
	}
	for (i = 0; i < g->set.n; i++)
		left += !g->place[i].done;
	EXPECT(!ok && busy == left);
}

/* ---- the instructions ---- */

enum verdict op_gather(struct sim_client *c, struct sim_space *sp)
{
	struct sim_gather *g = gather_free();
	u32 at;

	if (!g)
		return OP_QUIT;
	*g = (struct sim_gather){ .used = true, .client = c, .space = sp - sim.space,
				  .async = sim_below(2) };
	g->set = (struct hawk_gather_set){
		.rows = 1 + sim_below(SIM_ROWS), .room = sim_below(8) ? SIM_ROWS : sim_below(4),
		.lid = g->lid, .remap = g->remap, .status = g->status, .key = g->key,
		.blk = g->blk,
	};
	rows_draw(g, sp);
	hawk_gather_open(sp->s, &g->set, sim.now);
	for (at = 0; at < g->set.n; at++)
		place_begin(g, sp, at);
	places_check(g);
	note(g, "gather", g->set.rows, g->set.n, 0);
	sp->ngathers++;
	c->gather = g;
	if (g->async)
		rows_check(g, -EINPROGRESS);
	transfers_begin(g, sp);
	return OP_NEXT;
}

/* An asynchronous one has its rows already, and then the blocks one by one. */
enum verdict op_gathered(struct sim_client *c, struct sim_space *sp)
{
	struct sim_gather *g = c->gather;

	(void)sp;
	if (g->ntransfers && sim_below(64))
		return OP_AGAIN;
	if (g->ntransfers)
		SAW(gather_late);
	if (!g->async)
		rows_check(g, -ETIME);
	gather_leave(c);
	return OP_NEXT;
}

void gather_leave(struct sim_client *c)
{
	struct sim_gather *g = c->gather;

	if (!g)
		return;
	c->gather = NULL;
	g->client = NULL;
	if (!g->ntransfers)
		gather_over(g);
}
