// SPDX-License-Identifier: MIT
/*
 * model.c - what the engine must say of each space
 *
 * The model knows the bytes of each block, who holds it, and so which may vanish.  It
 * learns of a block that vanished when it looks; that is right if nothing held it, and
 * in the end as many must have vanished as the engine says it dropped.
 */
#include "sim.h"

const u8 *sim_key(int k)
{
	static u8 key[HAWK_KEY_BYTES];
	u64 nr = 0x6b65790000ull + k;

	if (k < 0)
		return NULL;
	memcpy(key, &nr, sizeof(nr));
	memcpy(key + HAWK_KEY_BYTES - sizeof(nr), &nr, sizeof(nr));
	return key;
}

/* ---- blocks ---- */

bool obj_held(const struct sim_obj *o)
{
	return obj_pinned(o) || o->filling || (o->reads && !o->lost) ||
	       (o->leases && !o->lost && !o->waived);
}

int obj_new(struct sim_space *sp, u32 lid, struct hawk_ref ref, u64 vt)
{
	struct sim_obj *o;
	int i;

	for (i = 0; i < SIM_OBJS && sp->obj[i].tag; i++)
		;
	EXPECT(i < SIM_OBJS);
	o = &sp->obj[i];
	*o = (struct sim_obj){
		.tag = SIM_TAG(sp->life, ++sim.next_serial), .vt = vt, .ref = ref, .lids = 1,
		.pins = 1, .filling = true, .version = ++sim.next_version, .key = -1,
	};
	sp->lid[lid] = i;
	return i;
}

void obj_forget(struct sim_space *sp, int o)
{
	u32 i;

	for (i = 0; i < SIM_LIDS; i++)
		if (sp->lid[i] == o)
			sp->lid[i] = -1;
	if (sp->obj[o].key >= 0)
		sp->key[sp->obj[o].key] = -1;
	memset(&sp->obj[o], 0, sizeof(sp->obj[o]));
}

/* The engine says the block is gone: it may be, unless something holds it. */
void obj_vanished(struct sim_space *sp, int o)
{
	EXPECT(!obj_held(&sp->obj[o]));
	EXPECT(sp->obj[o].told || sp->obj[o].lost);
	if (sp->obj[o].leases)
		SAW(lease_lost);
	else
		SAW(vanished);
	sp->vanished++;
	obj_forget(sp, o);
}

int obj_of(struct sim_space *sp, struct hawk_ref ref)
{
	int i;

	for (i = 0; i < SIM_OBJS; i++)
		if (sp->obj[i].tag && sp->obj[i].ref.block == ref.block &&
		    sp->obj[i].ref.gen == ref.gen)
			return i;
	return -1;
}

int obj_of_version(struct sim_space *sp, u32 version)
{
	int i;

	for (i = 0; i < SIM_OBJS; i++)
		if (sp->obj[i].tag && sp->obj[i].version == version)
			return i;
	return -1;
}

/* Nobody is left to fill it: then it ends. */
void obj_unpinned(struct sim_space *sp, int o)
{
	struct sim_obj *obj = &sp->obj[o];

	if (obj->filling && !obj->pins && !obj->copies)
		obj_forget(sp, o);
}

/*
 * LIDs of several sequences and layers: some share a bucket, most do not.  In every
 * second space they crowd into a few vTLB lines, where not all find room.
 */
static void lids_draw(struct sim_space *sp)
{
	bool crowd = sp->life % 2;
	u32 i, tok = 0;

	for (i = 0; i < SIM_LIDS; i++, tok++) {
		u64 id = HAWK_LID(1 + i % 7, i % 3, i % 2, (u64)tok * sp->p.block_tokens);

		if (crowd && hawk_mix(id) & sp->s->vtlb_mask & ~1u)
			i--;
		else
			sp->id[i] = id;
	}
}

void model_reset(struct sim_space *sp)
{
	lids_draw(sp);
	memset(sp->obj, 0, sizeof(sp->obj));
	memset(sp->lid, -1, sizeof(sp->lid));
	memset(sp->key, -1, sizeof(sp->key));
	sp->vanished = 0;
	memset(sp->seq, 0, sizeof(sp->seq));
	memset(sp->seq_pin, 0, sizeof(sp->seq_pin));
	memset(sp->alias, 0, sizeof(sp->alias));
	sp->naliases = 0;
}

/* ---- comparing ---- */

bool model_look(struct sim_space *sp, u32 lid)
{
	u64 vt, id = sp->id[lid], tag;
	struct hawk_ref ref;
	struct sim_obj *o;

	if (sp->lid[lid] < 0) {
		EXPECT(hawk_block_ref(sp->s, id, &vt, &ref) == -ENOENT);
		EXPECT(!hawk_space_translate(sp->s, id));
		return false;
	}
	o = &sp->obj[sp->lid[lid]];
	if (hawk_block_ref(sp->s, id, &vt, &ref)) {
		obj_vanished(sp, sp->lid[lid]);
		return false;
	}
	EXPECT(ref.block == o->ref.block && ref.gen == o->ref.gen);
	EXPECT(hawk_space_translate(sp->s, id) == vt);
	if (obj_pinned(o))
		EXPECT(vt == o->vt);
	tag = cells_read(sp, vt);
	/* while it is being filled its bytes are its owner's business */
	if (!o->filling && tag != o->tag)
		sim_fail(__FILE__, __LINE__, "LID %u: bytes %#llx, must be %#llx", lid,
			 (unsigned long long)tag, (unsigned long long)o->tag);
	return true;
}

bool model_look_key(struct sim_space *sp, int k)
{
	struct hawk_ref ref;
	struct sim_obj *o;
	u64 lid, vt;
	int ret;

	ret = hawk_block_find(sp->s, sim_key(k), false, sim.now, &lid, &vt, &ref);
	CALLED(find, ret);
	if (sp->key[k] < 0) {
		EXPECT(ret == -ENOENT);
		return false;
	}
	o = &sp->obj[sp->key[k]];
	if (ret == -ENOENT) {
		obj_vanished(sp, sp->key[k]);
		return false;
	}
	EXPECT(ret == (o->filling ? -EAGAIN : 0));
	EXPECT(ret || (ref.block == o->ref.block && ref.gen == o->ref.gen));
	EXPECT(ret || cells_read(sp, vt) == o->tag);
	return true;
}

/* Free frames of a tier, or slots, in all buckets. */
u32 model_spares(const struct sim_space *sp, u32 res)
{
	u32 i, n = 0;

	for (i = 0; i < sp->s->nbuckets; i++)
		n += sp->s->bucket[i].fl[res].n;
	return n;
}

/* "No room" must not be said while memory is free or a block may be forgotten. */
static void really_full(struct sim_space *sp)
{
	struct hawk_ref ref;
	u32 i, t;
	u64 vt;

	if (!model_spares(sp, HAWK_RES_MAP))
		SAW(no_lid_slot);
	if (!model_spares(sp, HAWK_RES_BLOCK))
		SAW(no_block_slot);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (sp->s->host_tiers & (1u << t))
			EXPECT((!model_spares(sp, t) && !hawk_window_has_room(sp->s, t)) ||
			       !model_spares(sp, HAWK_RES_BLOCK) ||
			       !model_spares(sp, HAWK_RES_MAP));
	for (i = 0; i < SIM_LIDS; i++)
		if (sp->lid[i] >= 0 && model_look(sp, i) && !obj_held(&sp->obj[sp->lid[i]])) {
			EXPECT(!hawk_block_ref(sp->s, sp->id[i], &vt, &ref));
			EXPECT(sim.tier[HAWK_VT_TIER(vt)].kind != HAWK_TIER_HOST);
		}
}

/* A block is about to be forgotten: at this moment nothing may hold it. */
void model_told(void *owner, const struct hawk_note *note)
{
	struct sim_space *sp = owner;
	struct hawk_ref ref = { note->block, note->gen };
	int o = obj_of(sp, ref);

	EXPECT(note->tier < HAWK_TIERS_MAX && sim.tier[note->tier].present);
	EXPECT((sim.tier[note->tier].kind == HAWK_TIER_BLK) ==
	       (note->fate == HAWK_FATE_FLASH_DROP));
	if (sp->p.seqs) {
		EXPECT(!sp->s->block[note->block].pins);
		if (note->fate == HAWK_FATE_DROP || note->fate == HAWK_FATE_FLASH_DROP) {
			EXPECT(!sp->s->block[note->block].reads);
			sp->vanished++;
			SAW(seq_dropped);
		}
		return;
	}
	EXPECT(o >= 0 && !sp->obj[o].told);
	if (note->fate != HAWK_FATE_DROP && note->fate != HAWK_FATE_FLASH_DROP)
		return;
	EXPECT(!obj_held(&sp->obj[o]));
	if (sp->obj[o].leases)
		SAW(lease_dropped);
	sp->obj[o].told = true;
}

void model_room(struct sim_space *sp, const struct hawk_plan *plan, int ret)
{
	u32 t;

	EXPECT(ret == -EAGAIN || ret == -ENOBUFS || ret == -ENOSPC || ret == -EDQUOT);
	if (ret == -ENOBUFS) {
		sp->hungry = true;
		if (sim_below(4))
			space_grow(sp);
		return;
	}
	sp->vain = 0;
	if (ret == -ENOSPC)
		SAW(no_room);
	if (ret == -EDQUOT)
		SAW(no_quota);
	/* "wait for moves in flight" must not be said when there is none */
	EXPECT(ret != -EAGAIN || !plan || plan->n || sp->nmoves || sp->ngrants || sp->nreads);
	/* frames of a chunk that is drained are nobody's */
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (sp->s->win[t].frame && sp->s->win[t].drain != HAWK_NONE)
			return;
	if (ret != -EAGAIN && !sp->nmoves && !sp->ngrants)
		really_full(sp);
}

/* ---- everything ---- */

/* Pins and leases are those of clients and copies, to the last one. */
static void check_holds(struct sim_space *sp)
{
	u32 pins[SIM_OBJS] = { 0 }, leases[SIM_OBJS] = { 0 }, i, k;
	int o;

	for (i = 0; i < SIM_CLIENTS; i++) {
		struct sim_client *c = &sim.client[i];

		for (k = 0; c->space == sp - sim.space && k < SIM_HOLDS; k++) {
			if (c->pin[k].obj >= 0)
				pins[c->pin[k].obj]++;
			o = c->lease[k].obj;
			if (o >= 0 && sp->obj[o].version == c->lease[k].version)
				leases[o]++;
		}
	}
	for (i = 0; i < SIM_OBJS; i++) {
		struct sim_obj *obj = &sp->obj[i];
		struct hawk_block *blk = &sp->s->block[obj->ref.block];

		if (!obj->tag)
			continue;
		EXPECT(obj->pins == pins[i] && obj->leases == leases[i]);
		EXPECT(blk->gen == obj->ref.gen);
		EXPECT(blk->pins == (u32)obj->pins + obj->copies + obj->gathers);
		EXPECT(blk->leases == obj->leases && blk->reads == obj->reads);
		EXPECT((blk->state == HAWK_BLOCK_FILLING) == obj->filling);
		EXPECT(blk->nmaps == obj->lids);
	}
}

void model_check(struct sim_space *sp)
{
	struct hawk_space *s = sp->s;
	char why[64] = "";
	u64 blocks = 0, dropped = 0;
	u32 i, live = 0;

	if (hawk_space_check(s, why, sizeof(why)))
		sim_fail(__FILE__, __LINE__, "space %d: %s", (int)(sp - sim.space), why);
	if (sp->p.seqs) {
		seq_check(sp);
		return;
	}
	for (i = 0; i < SIM_LIDS; i++)
		model_look(sp, i);
	check_holds(sp);
	for (i = 0; i < SIM_OBJS; i++)
		live += !!sp->obj[i].tag;
	for (i = 0; i < s->nbuckets; i++) {
		const u64 *count = s->bucket[i].count;

		blocks += count[HAWK_N_BLOCKS];
		dropped += count[HAWK_N_EVICT_DROP] + count[HAWK_N_FLASH_DROP] +
			   count[HAWK_N_RELOAD_ERRORS];
	}
	EXPECT(sp->vanished == dropped);
	/* ended blocks with a move in flight, or a reader, still count */
	EXPECT(blocks >= live && blocks <= live + sp->nmoves + sp->nreads);
}
