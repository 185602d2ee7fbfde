// SPDX-License-Identifier: MIT
/*
 * client.c - clients: short scripts of calls, and death at any instruction
 */
#include "sim.h"

#define SCRIPT_MAX	10
#define PATIENCE	40	/* times that an instruction is tried in vain */

struct sim_script {
	const char *name;
	u32 weight;
	sim_op op[SCRIPT_MAX];
};

static const struct sim_script scripts[] = {
	{ "store", 28, { op_alloc, op_fill, op_put } },
	{ "store-keep", 8, { op_alloc, op_fill, op_put_keep, op_read, op_unpin } },
	{ "give-up", 3, { op_alloc, op_unpin } },
	{ "get", 20, { op_find_lease, op_reload, op_pin, op_read, op_read, op_unpin, op_unlease } },
	{ "get-lid", 10, { op_reload, op_pin, op_read, op_unpin } },
	{ "find", 3, { op_find } },
	{ "pin-long", 3, { op_reload, op_pin, op_read, op_read, op_read, op_read, op_read } },
	{ "export", 4, { op_reload, op_pin, op_repin, op_unpin, op_read, op_read, op_unpin } },
	{ "export-new", 2, { op_alloc, op_repin, op_fill, op_put, op_read, op_unpin } },
	{ "fork", 6, { op_reload, op_fork, op_pin, op_read, op_unpin } },
	{ "diverge", 8, { op_reload, op_fork, op_pin, op_unshare, op_copied, op_fill, op_put_keep,
			  op_read, op_unpin, op_free_other } },
	{ "rewrite", 6, { op_reload, op_pin, op_unshare, op_copied, op_fill, op_put } },
	{ "free", 8, { op_free } },
	{ "free-key", 2, { op_key_free } },
	{ "peek", 20, { op_vt_load, op_vt_read, op_vt_check } },
	{ "gather", 14, { op_gather, op_gathered } },
	{ "stats", 1, { op_stats } },
};

/* Weight: sim_weather.lease. */
static const struct sim_script leaser = { "lease", 0, { op_find_lease } };

static const struct sim_script *script_draw(void)
{
	u32 i, sum = sim.weather.lease, pick;

	for (i = 0; i < ARRAY_SIZE(scripts); i++)
		sum += scripts[i].weight;
	pick = sim_below(sum);
	if (pick < sim.weather.lease)
		return &leaser;
	pick -= sim.weather.lease;
	for (i = 0; pick >= scripts[i].weight; i++)
		pick -= scripts[i].weight;
	return &scripts[i];
}

static int client_nr(const struct sim_client *c)
{
	return c - sim.client;
}

void client_unpin(struct sim_client *c, struct sim_space *sp, struct sim_hold *h)
{
	int o = h->obj, ret = hawk_block_unpin(sp->s, h->ref);

	CALLED(unpin, ret);
	sim_note("unpin", client_nr(c), c->space, -1, h->ref.block, ret, 0);
	EXPECT(!ret);
	h->obj = -1;
	sp->obj[o].pins--;
	if (sp->obj[o].filling && sp->obj[o].copies)
		SAW(copying_died);
	obj_unpinned(sp, o);
}

void client_unlease(struct sim_client *c, struct sim_space *sp, struct sim_hold *h)
{
	hawk_block_unlease(sp->s, h->ref);
	CALLED(unlease, 0);
	sim_note("unlease", client_nr(c), c->space, -1, h->ref.block, 0, 0);
	if (sp->obj[h->obj].tag && sp->obj[h->obj].version == h->version)
		sp->obj[h->obj].leases--;
	h->obj = -1;
}

void client_release(struct sim_client *c, bool died)
{
	struct sim_space *sp = c->space < 0 ? NULL : &sim.space[c->space];
	u32 k;

	for (k = 0; sp && k < SIM_HOLDS; k++) {
		if (c->pin[k].obj >= 0) {
			if (died && sp->obj[c->pin[k].obj].filling)
				SAW(filling_died);
			else if (died)
				SAW(pinned_died);
			client_unpin(c, sp, &c->pin[k]);
		}
		if (c->lease[k].obj >= 0 && died) {
			SAW(leased_died);
			client_unlease(c, sp, &c->lease[k]);
		}
	}
	if (c->gather && died)
		SAW(gather_died);
	gather_leave(c);
	if (sp)
		sim.touched[c->space] = true;
	if (sp && sp->p.seqs && died)
		seq_died(c, sp);
	c->script = NULL;
	if (died)
		c->space = -1;
}

/* Another process takes the place of one that is gone. */
static void client_arrive(struct sim_client *c)
{
	u32 i = sim_below(sim.spaces);

	if (!sim.space[i].s || sim.space[i].doomed || sim.space[i].newborn)
		return;
	c->space = i;
	sim_note("arrive", client_nr(c), i, -1, -1, 0, 0);
}

static void script_begin(struct sim_client *c)
{
	c->script = script_draw();
	c->pc = 0;
	c->tries = 0;
	c->lid = sim_below(SIM_LIDS);
	c->other = sim_below(SIM_LIDS);
	c->key = sim_below(3) ? (int)sim_below(SIM_KEYS) : -1;
	c->entry = NULL;
}

void client_step(struct sim_client *c)
{
	enum verdict v;

	if (c->space < 0) {
		client_arrive(c);
		return;
	}
	if (sim.space[c->space].p.seqs) {
		seq_step(c, &sim.space[c->space]);
		return;
	}
	if (!c->script)
		script_begin(c);
	sim.touched[c->space] = true;
	v = c->script->op[c->pc](c, &sim.space[c->space]);
	if (v == OP_AGAIN && ++c->tries < PATIENCE)
		return;
	if (v != OP_NEXT) {
		client_release(c, false);
		return;
	}
	c->tries = 0;
	if (++c->pc == SCRIPT_MAX || !c->script->op[c->pc])
		client_release(c, false);
}

bool lease_expire(void)
{
	u32 i, k;

	for (i = 0; i < SIM_CLIENTS; i++)
		for (k = 0; k < SIM_HOLDS; k++) {
			struct sim_client *c = &sim.client[i];

			if (c->lease[k].obj < 0 || c->lease[k].deadline > sim.now)
				continue;
			SAW(lease_expired);
			sim.touched[c->space] = true;
			client_unlease(c, &sim.space[c->space], &c->lease[k]);
			return true;
		}
	return false;
}
