// SPDX-License-Identifier: MIT
/*
 * ops.c - the instructions of the clients' scripts: one call of the engine each, whose
 * answer is compared with what the model allows
 */
#include "sim.h"

#define LEASE_NS	200000	/* an event takes about 1000 */

static void note(const struct sim_client *c, const char *what, int arg, int ret, u64 vt)
{
	sim_note(what, c - sim.client, c->space, c->lid, arg, ret, vt);
}

static struct sim_hold *hold_free(struct sim_hold *h)
{
	u32 k;

	for (k = 0; k < SIM_HOLDS; k++)
		if (h[k].obj < 0)
			return &h[k];
	return NULL;
}

static void hold_set(struct sim_hold *h, const struct sim_space *sp, int o)
{
	h->obj = o;
	h->version = sp->obj[o].version;
	h->ref = sp->obj[o].ref;
}

/* The client's pin on the block of its LID, the first one if there are others. */
static struct sim_hold *pin_of(struct sim_client *c, const struct sim_space *sp)
{
	u32 k;

	for (k = 0; k < SIM_HOLDS; k++)
		if (c->pin[k].obj >= 0 && c->pin[k].obj == sp->lid[c->lid])
			return &c->pin[k];
	return NULL;
}

/*
 * What a client picks depends on the engine alone, not on how often the model is
 * compared with it: so a seed is the same run with any --check.
 */
static void lid_want(struct sim_client *c, struct sim_space *sp, bool used)
{
	u32 i;

	for (i = 0; i < SIM_LIDS && model_look(sp, c->lid) != used; i++)
		c->lid = (c->lid + 1) % SIM_LIDS;
}

/* Has the key a block?  Without a look-up of the key, which is a use of the block. */
static bool key_used(struct sim_space *sp, int k)
{
	u32 i;

	for (i = 0; i < SIM_LIDS; i++)
		if (sp->key[k] >= 0 && sp->lid[i] == sp->key[k])
			return model_look(sp, i);
	return false;
}

static void key_set(struct sim_space *sp, int o, int k)
{
	sp->obj[o].key = k;
	sp->key[k] = o;
}

/* Without room most clients give up. */
static enum verdict again(int ret)
{
	return (ret == -ENOSPC || ret == -EDQUOT) && sim_below(4) ? OP_QUIT : OP_AGAIN;
}

/* ---- a block comes ---- */

/* The new block has no other owner's bytes. */
static void alloc_done(struct sim_client *c, struct sim_space *sp, struct sim_hold *h, u64 vt)
{
	struct hawk_ref ref;
	u64 where;
	int o;

	EXPECT(sp->lid[c->lid] < 0);
	EXPECT(sim.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST);
	EXPECT(!cells_foreign(sp, vt));
	if (c->key >= 0 && sp->key[c->key] >= 0)
		obj_vanished(sp, sp->key[c->key]);	/* dropped by this very call */
	EXPECT(!hawk_block_ref(sp->s, sp->id[c->lid], &where, &ref) && where == vt);
	if (!hawk_vtlb_get(sp->s, sp->id[c->lid]))
		SAW(vt_table);
	o = obj_new(sp, c->lid, ref, vt);
	hold_set(h, sp, o);
	if (c->key >= 0)
		key_set(sp, o, c->key);
}

enum verdict op_alloc(struct sim_client *c, struct sim_space *sp)
{
	u32 tier = sim_below(4) ? HAWK_TIER_ANY : sim_below(HAWK_TIERS_MAX);
	struct sim_hold *h = hold_free(c->pin);
	struct hawk_plan *plan;
	u64 vt = 0;
	int ret;

	if (!h)
		return OP_QUIT;
	if (!c->tries && sim_below(8))
		lid_want(c, sp, false);
	model_look(sp, c->lid);
	if (c->key >= 0)
		model_look_key(sp, c->key);
	plan = plan_draw();
	ret = hawk_block_alloc(sp->s, lid_of(sp, c->lid), sim_key(c->key), tier, sim.now, plan,
			       &vt);
	CALLED(alloc, ret);
	note(c, "alloc", c->key, ret, vt);
	if (ret == -EEXIST) {
		EXPECT(sp->lid[c->lid] >= 0 || (c->key >= 0 && sp->key[c->key] >= 0));
		if (sp->lid[c->lid] < 0)
			SAW(key_race);
	} else if (ret) {
		EXPECT(sp->lid[c->lid] < 0);
		model_room(sp, plan, ret);
	} else {
		alloc_done(c, sp, h, vt);
	}
	plan_submit(plan);
	return !ret ? OP_NEXT : ret == -EEXIST ? OP_QUIT : again(ret);
}

enum verdict op_fill(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = pin_of(c, sp);

	if (!h)
		return OP_QUIT;
	EXPECT(sp->obj[h->obj].filling);
	cells_write(sp, sp->obj[h->obj].vt, sp->obj[h->obj].tag);
	note(c, "fill", -1, 0, sp->obj[h->obj].tag);
	return OP_NEXT;
}

static enum verdict put(struct sim_client *c, struct sim_space *sp, bool keep)
{
	struct sim_hold *h = pin_of(c, sp);
	struct sim_obj *o;
	int ret, want = 0, key = c->key;

	if (!h)
		return OP_QUIT;
	o = &sp->obj[h->obj];
	/* now and then another key than was announced */
	if (!sim_below(8))
		key = (int)sim_below(SIM_KEYS + 1) - 1;
	if (key >= 0)
		model_look_key(sp, key);
	if (!o->filling || (o->key >= 0 && o->key != key))
		want = -EINVAL;
	else if (key >= 0 && sp->key[key] >= 0 && sp->key[key] != h->obj)
		want = -EEXIST;
	ret = hawk_block_put(sp->s, lid_of(sp, c->lid), sim_key(key), keep, sim.now);
	CALLED(put, ret);
	note(c, "put", key, ret, keep);
	EXPECT(ret == want);
	if (ret == -EINVAL)
		return OP_AGAIN;
	o->filling = false;
	if (ret)
		SAW(key_race);
	else if (key >= 0)
		key_set(sp, h->obj, key);
	if (!keep) {
		o->pins--;
		h->obj = -1;
	}
	return OP_NEXT;
}

enum verdict op_put(struct sim_client *c, struct sim_space *sp)
{
	return put(c, sp, false);
}

enum verdict op_put_keep(struct sim_client *c, struct sim_space *sp)
{
	return put(c, sp, true);
}

/* ---- a block is found ---- */

static enum verdict find(struct sim_client *c, struct sim_space *sp, bool lease)
{
	struct sim_hold *h = hold_free(c->lease);
	struct hawk_ref ref;
	u64 id, vt = 0;
	int ret, o, i;

	if (lease && !h)
		return OP_QUIT;
	c->key = c->key < 0 ? (int)sim_below(SIM_KEYS) : c->key;
	for (i = 0; i < SIM_KEYS && !key_used(sp, c->key) && sim_below(16); i++)
		c->key = (c->key + 1) % SIM_KEYS;
	o = sp->key[c->key];
	ret = hawk_block_find(sp->s, sim_key(c->key), lease, sim.now, &id, &vt, &ref);
	CALLED(find, ret);
	note(c, lease ? "lease" : "find", c->key, ret, vt);
	if (ret == -ENOENT) {
		if (o >= 0)
			obj_vanished(sp, o);
		return OP_QUIT;
	}
	EXPECT(o >= 0 && ret == (sp->obj[o].filling ? -EAGAIN : 0));
	if (ret) {
		SAW(key_announced);
		return OP_AGAIN;
	}
	EXPECT(ref.block == sp->obj[o].ref.block && ref.gen == sp->obj[o].ref.gen);
	EXPECT(cells_read(sp, vt) == sp->obj[o].tag);
	for (c->lid = 0; c->lid < SIM_LIDS && sp->id[c->lid] != id; c->lid++)
		;
	EXPECT(c->lid < SIM_LIDS && sp->lid[c->lid] == o);
	if (lease) {
		sp->obj[o].leases++;
		hold_set(h, sp, o);
		h->deadline = sim.now + sim_below(2 * LEASE_NS);
	}
	return OP_NEXT;
}

enum verdict op_find(struct sim_client *c, struct sim_space *sp)
{
	return find(c, sp, false);
}

enum verdict op_find_lease(struct sim_client *c, struct sim_space *sp)
{
	return find(c, sp, true);
}

enum verdict op_unlease(struct sim_client *c, struct sim_space *sp)
{
	u32 k;

	for (k = 0; k < SIM_HOLDS; k++)
		if (c->lease[k].obj >= 0) {
			client_unlease(c, sp, &c->lease[k]);
			return OP_NEXT;
		}
	SAW(lease_late);
	return OP_NEXT;
}

enum verdict op_reload(struct sim_client *c, struct sim_space *sp)
{
	struct hawk_plan *plan;
	struct hawk_ref ref;
	u64 vt;
	int ret;

	if (!c->tries && !c->pc)
		lid_want(c, sp, true);
	if (!model_look(sp, c->lid))
		return OP_QUIT;
	plan = plan_draw();
	ret = hawk_block_reload(sp->s, lid_of(sp, c->lid), HAWK_TIER_ANY, sim.now, plan);
	CALLED(reload, ret);
	note(c, "reload", -1, ret, plan ? plan->n : 0);
	if (!ret) {
		EXPECT(!hawk_block_ref(sp->s, sp->id[c->lid], &vt, &ref));
		EXPECT(sim.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST);
	} else if (ret == -EINPROGRESS) {
		EXPECT((plan && plan->n) || sp->nmoves);
	} else {
		model_room(sp, plan, ret);
	}
	plan_submit(plan);
	return ret ? again(ret) : OP_NEXT;
}

/* ---- pins ---- */

enum verdict op_pin(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = hold_free(c->pin);
	struct hawk_ref ref;
	u64 vt = 0;
	int ret, o;

	if (!h || !model_look(sp, c->lid))
		return OP_QUIT;
	o = sp->lid[c->lid];
	ret = hawk_block_pin(sp->s, lid_of(sp, c->lid), sim.now, &vt, &ref);
	CALLED(pin, ret);
	note(c, "pin", -1, ret, vt);
	EXPECT(ret == 0 || ret == -EAGAIN);
	if (ret)	/* on flash again, or being filled: back to the reload */
		return OP_QUIT;
	EXPECT(!sp->obj[o].filling && sim.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST);
	EXPECT(ref.block == sp->obj[o].ref.block && ref.gen == sp->obj[o].ref.gen);
	EXPECT(!obj_pinned(&sp->obj[o]) || sp->obj[o].vt == vt);
	sp->obj[o].vt = vt;
	sp->obj[o].pins++;
	hold_set(h, sp, o);
	return OP_NEXT;
}

/* Who has a pin may take another, also while the block is being filled. */
enum verdict op_repin(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = pin_of(c, sp), *more = hold_free(c->pin);
	int ret;

	if (!h || !more)
		return OP_QUIT;
	ret = hawk_block_repin(sp->s, h->ref);
	CALLED(repin, ret);
	note(c, "repin", -1, ret, sp->obj[h->obj].filling);
	EXPECT(!ret);
	if (sp->obj[h->obj].filling)
		SAW(repin_filling);
	sp->obj[h->obj].pins++;
	hold_set(more, sp, h->obj);
	return OP_NEXT;
}

enum verdict op_unpin(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = pin_of(c, sp);

	if (!h)
		return OP_QUIT;
	client_unpin(c, sp, h);
	return OP_NEXT;
}

/* Under a pin the bytes are where they were and what they were. */
enum verdict op_read(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = pin_of(c, sp);
	struct hawk_ref ref;

	if (!h)
		return OP_QUIT;
	EXPECT(!hawk_block_at(sp->s, sp->obj[h->obj].vt, &ref));
	EXPECT(ref.block == h->ref.block && ref.gen == h->ref.gen);
	if (!sp->obj[h->obj].filling)
		EXPECT(cells_read(sp, sp->obj[h->obj].vt) == sp->obj[h->obj].tag);
	note(c, "read", -1, 0, sp->obj[h->obj].tag);
	return OP_NEXT;
}

/* ---- sharing ---- */

/* "No LID" must not be said while one is free or a block may be forgotten. */
static void fork_full(struct sim_space *sp, int o)
{
	u32 i;

	SAW(no_lid_slot);
	EXPECT(!model_spares(sp, HAWK_RES_MAP));
	for (i = 0; i < SIM_LIDS; i++)
		if (sp->lid[i] >= 0 && sp->lid[i] != o && model_look(sp, i))
			EXPECT(obj_held(&sp->obj[sp->lid[i]]));
}

enum verdict op_fork(struct sim_client *c, struct sim_space *sp)
{
	int ret, o;

	if (!model_look(sp, c->lid))
		return OP_QUIT;
	o = sp->lid[c->lid];
	model_look(sp, c->other);
	ret = hawk_block_fork(sp->s, lid_of(sp, c->lid), lid_of(sp, c->other));
	CALLED(fork, ret);
	note(c, "fork", c->other, ret, 0);
	if (sp->lid[c->other] >= 0) {
		EXPECT(ret == -EEXIST);
		return OP_NEXT;
	}
	if (!ret) {
		EXPECT(!sp->obj[o].filling);
		sp->lid[c->other] = o;
		sp->obj[o].lids++;
		return OP_NEXT;
	}
	if (ret == -EAGAIN && !sp->obj[o].filling) {
		EXPECT(sp->nmoves || sp->nreads);
		SAW(lid_lingers);
		return OP_AGAIN;
	}
	EXPECT(ret == -ENOSPC || ret == -EAGAIN);
	if (ret == -ENOSPC && !sp->nmoves)
		fork_full(sp, o);
	return OP_QUIT;
}

/* @h moves from the shared block to a private copy. */
static void split_done(struct sim_client *c, struct sim_space *sp, struct sim_hold *h,
		       struct hawk_ref ref, u64 vt)
{
	int o = h->obj, n;

	EXPECT(vt != sp->obj[o].vt && !cells_foreign(sp, vt));
	sp->obj[o].lids--;
	sp->obj[o].pins--;	/* from here on it is the copy's */
	sp->obj[o].copies++;
	n = obj_new(sp, c->lid, ref, vt);
	sp->obj[n].was = sp->obj[o].tag;
	sp->obj[n].copies = 1;
	hold_set(h, sp, n);
	SAW(split);
}

/* Where it was; what was published of it is void. */
static void rewrite_done(struct sim_space *sp, struct sim_hold *h, u64 vt)
{
	struct sim_obj *o = &sp->obj[h->obj];

	EXPECT(vt == o->vt && o->pins == 1 && !o->leases && !o->copies);
	EXPECT(!o->gathers && !o->reads);
	o->filling = true;
	o->version = ++sim.next_version;
	h->version = o->version;
	o->was = o->tag;
	o->tag = SIM_TAG(sp->life, ++sim.next_serial);
	if (o->key >= 0)
		sp->key[o->key] = -1;
	o->key = -1;
	SAW(rewritten);
}

enum verdict op_unshare(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = pin_of(c, sp);
	struct hawk_plan *plan;
	struct hawk_ref ref;
	struct sim_obj *o;
	u64 vt = 0;
	int ret;

	if (!h)
		return OP_QUIT;
	o = &sp->obj[h->obj];
	ref = h->ref;
	plan = plan_draw();
	ret = hawk_block_unshare(sp->s, lid_of(sp, c->lid), sim.now, plan, &vt, &ref);
	CALLED(unshare, ret);
	note(c, "unshare", -1, ret, vt);
	if (ret == -EBUSY) {
		EXPECT(o->lids == 1 && (o->pins + o->copies + o->gathers > 1 || o->leases ||
					o->reads));
		SAW(unshare_busy);
	} else if (ret && o->lids == 1) {
		/* being filled by another, or written to flash */
		EXPECT(ret == -EAGAIN && (o->filling || sp->nmoves));
	} else if (ret) {
		/* a plan is needed, for the copy */
		if (plan)
			model_room(sp, plan, ret);
	} else if (o->lids == 1) {
		rewrite_done(sp, h, vt);
	} else {
		split_done(c, sp, h, ref, vt);
	}
	plan_submit(plan);
	return !ret ? OP_NEXT : ret == -EBUSY ? OP_QUIT : again(ret);
}

/* Wait until the private copy is made; then its bytes are those of the original. */
enum verdict op_copied(struct sim_client *c, struct sim_space *sp)
{
	struct sim_hold *h = pin_of(c, sp);

	if (!h)
		return OP_QUIT;
	if (sp->obj[h->obj].copies) {
		c->tries = 0;	/* a copy always ends */
		return OP_AGAIN;
	}
	EXPECT(cells_read(sp, sp->obj[h->obj].vt) == sp->obj[h->obj].was);
	return OP_NEXT;
}

/* ---- a block goes ---- */

static void free_lid(struct sim_client *c, struct sim_space *sp, u32 lid)
{
	int ret, o;

	if (!model_look(sp, lid)) {
		ret = hawk_block_free(sp->s, lid_of(sp, lid));
		CALLED(free, ret);
		EXPECT(ret == -ENOENT);
		return;
	}
	o = sp->lid[lid];
	ret = hawk_block_free(sp->s, lid_of(sp, lid));
	CALLED(free, ret);
	note(c, "free", lid, ret, 0);
	if (sp->obj[o].lids > 1) {
		EXPECT(!ret);
		sp->lid[lid] = -1;
		sp->obj[o].lids--;
		SAW(alias_freed);
	} else if (obj_pinned(&sp->obj[o]) || sp->obj[o].leases || sp->obj[o].reads) {
		EXPECT(ret == -EBUSY);
		SAW(free_busy);
	} else {
		EXPECT(!ret);
		obj_forget(sp, o);
	}
}

enum verdict op_free(struct sim_client *c, struct sim_space *sp)
{
	lid_want(c, sp, true);
	free_lid(c, sp, c->lid);
	return OP_NEXT;
}

enum verdict op_free_other(struct sim_client *c, struct sim_space *sp)
{
	free_lid(c, sp, c->other);
	return OP_NEXT;
}

enum verdict op_key_free(struct sim_client *c, struct sim_space *sp)
{
	int ret, k = sim_below(SIM_KEYS);

	model_look_key(sp, k);
	ret = hawk_key_free(sp->s, sim_key(k));
	CALLED(key_free, ret);
	note(c, "key_free", k, ret, 0);
	EXPECT(ret == (sp->key[k] < 0 ? -ENOENT : 0));
	if (!ret) {
		sp->obj[sp->key[k]].key = -1;
		sp->key[k] = -1;
	}
	return OP_NEXT;
}

/* ---- the reader of uapi/hawk.h: no lock, no pin ---- */

static struct hawk_vtlb_entry *entry_of(struct sim_space *sp, u64 lid)
{
	u64 lines = hawk_vtlb_bytes(sp->p.max_blocks) / 64;
	u32 i;

	for (i = 0; i < HAWK_VT_PROBE * HAWK_VT_WAYS; i++) {
		u64 line = (hawk_mix(lid) + i / HAWK_VT_WAYS) & (lines - 1);
		struct hawk_vtlb_entry *e = &sp->p.vtlb[line * HAWK_VT_WAYS + i % HAWK_VT_WAYS];

		if (e->lid == lid && (e->val & HAWK_VT_VALID))
			return e;
	}
	return NULL;
}

enum verdict op_vt_load(struct sim_client *c, struct sim_space *sp)
{
	lid_want(c, sp, true);
	if (!model_look(sp, c->lid) || sp->obj[sp->lid[c->lid]].filling)
		return OP_QUIT;
	c->entry = entry_of(sp, sp->id[c->lid]);
	if (!c->entry)
		return OP_QUIT;
	c->vt = c->entry->val;
	c->version = sp->obj[sp->lid[c->lid]].version;
	note(c, "vt_load", -1, 0, c->vt);
	return OP_NEXT;
}

enum verdict op_vt_read(struct sim_client *c, struct sim_space *sp)
{
	/* the space may have given the frame's chunk back: then there is nothing to read */
	if (hawk_frame_off(sp->s, HAWK_VT_TIER(c->vt), HAWK_VT_FRAME(c->vt)) == ~0ull)
		return OP_QUIT;
	c->seen = cells_read(sp, c->vt);
	note(c, "vt_read", -1, 0, c->seen);
	return OP_NEXT;
}

/* The translation has not changed: then the bytes were this block's. */
enum verdict op_vt_check(struct sim_client *c, struct sim_space *sp)
{
	int o = obj_of_version(sp, c->version);

	note(c, "vt_check", -1, c->entry->val == c->vt, c->seen);
	if (c->entry->val != c->vt) {
		SAW(vt_moved);
	} else if (o >= 0) {
		/* a rewrite in place is for the owners to announce: another version */
		EXPECT(c->seen == sp->obj[o].tag);
		SAW(vt_held);
	}
	return OP_NEXT;
}

enum verdict op_stats(struct sim_client *c, struct sim_space *sp)
{
	struct hawk_stats st = { 0 };
	u32 t;

	hawk_space_stats(sp->s, &st);
	note(c, "stats", -1, 0, st.blocks);
	EXPECT(st.blocks <= sp->p.max_blocks && st.resident <= st.blocks);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		EXPECT(st.chunks[t] <= sp->p.quota_max[t]);
	return OP_NEXT;
}
