// SPDX-License-Identifier: MIT
/*
 * core_random.c - random operations on two spaces against a simple model
 *
 * The model knows what each LID must contain, which blocks may not vanish
 * (filling, pinned, leased) and where pinned ones must stay.  Moves are completed
 * late, in random order, some with an error.  Memory for growth comes late too, or
 * not at all; chunks are taken from the spaces again, and whole tiers leave and come
 * back.  After every operation both spaces
 * satisfy hawk_space_check(), every LID has the bytes last written or belongs to a
 * block that was free to vanish, and as many have vanished as the engine says it
 * dropped.
 *
 *	HAWK_SEED=n	the seed; printed, so that a failure can be repeated
 *	HAWK_OPS=n	operations (1000000, a tenth of that under a sanitizer)
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define SPACES		2
#define LIDS		96	/* LIDs in use per space */
#define KEYS		24
#define REFS		12	/* pins, and leases, held at a time per space */
#define OBJS		(LIDS + 1)
#define KEY_SWEEP	1000	/* operations between looks at all keys: a look-up is a use */
#define RENEW		20000	/* operations between ends of a space */
#define TIERS		3
#define GRANTS		4	/* grants on their way at a time */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPS_DEFAULT	100000
#else
#define OPS_DEFAULT	1000000
#endif

/* A block as the model sees it. */
struct obj {
	u64 tag;	/* its content; 0: not in use */
	u64 vt;		/* where it is while pinned */
	struct hawk_ref ref;
	u32 lids;
	u32 pins;
	u32 leases;
	bool filling;
	bool copying;	/* its content is on its way */
	bool lost;	/* it could not be read back: leases do not hold it */
	int key;	/* number of its key, -1: none */
};

/* A grant whose memory is on its way. */
struct late {
	struct hawk_space *s;
	struct hawk_grant g;
};

struct model {
	struct hawk_space *s;
	struct hawk_space_params p;
	u32 id;
	int lid[LIDS];	/* index of its obj, -1: free */
	int key[KEYS];
	struct obj obj[OBJS];
	int pin[REFS];	/* obj pinned, -1: free */
	int lease[REFS];
	u64 vanished;
};

static struct {
	struct host h;
	u64 rng;
	u64 now;
	u64 op;
	u64 seed;
	u64 next_tag;
	int leaving;	/* tier that leaves, -1: none */
	u32 nlate;
	struct late late[GRANTS];
	struct model m[SPACES];
	u64 drained;	/* chunks taken away */
	u64 left;	/* tiers that left */
} t;

static u32 below(u32 n)
{
	return host_below(&t.rng, n);
}

/* LIDs of several layers and sequences; some share a bucket, most do not. */
static u64 lid_of(u32 i)
{
	return HAWK_LID(1 + i / 16, i % 4, i / 32, i / 4 % 4 * 16);
}

static void key_of(u8 *key, int i)
{
	host_key(key, 1000 + i);
}

#define EXPECT(cond)							\
	do {								\
		if (!(cond))						\
			fail_msg("op %llu, HAWK_SEED=%llu: %s",		\
				 (unsigned long long)t.op,		\
				 (unsigned long long)t.seed, #cond);	\
	} while (0)

/* ---- the model ---- */

static void obj_forget(struct model *m, int o)
{
	u32 i;

	for (i = 0; i < LIDS; i++)
		if (m->lid[i] == o)
			m->lid[i] = -1;
	for (i = 0; i < REFS; i++)
		if (m->lease[i] == o)
			m->lease[i] = -1;
	if (m->obj[o].key >= 0)
		m->key[m->obj[o].key] = -1;
	memset(&m->obj[o], 0, sizeof(m->obj[o]));
}

/* The engine says the block is gone: it may be, unless something holds it. */
static void obj_vanished(struct model *m, int o)
{
	EXPECT(!m->obj[o].pins && !m->obj[o].filling);
	EXPECT(!m->obj[o].leases || m->obj[o].lost);
	m->vanished++;
	obj_forget(m, o);
}

static int obj_new(struct model *m, u32 lid)
{
	int o;

	for (o = 0; m->obj[o].tag; o++)
		;
	EXPECT(o < OBJS);
	m->obj[o].tag = (u64)(m->id + 1) << 56 | ++t.next_tag;
	m->obj[o].lids = 1;
	m->obj[o].key = -1;
	m->lid[lid] = o;
	return o;
}

static bool held(const struct obj *o)
{
	return o->pins || o->filling || (o->leases && !o->lost);
}

/* The block of a LID according to the engine; its content must be the model's. */
static bool look(struct model *m, u32 lid)
{
	struct hawk_ref ref;
	struct obj *o;
	u64 vt;

	if (m->lid[lid] < 0) {
		EXPECT(hawk_block_ref(m->s, lid_of(lid), &vt, &ref) == -ENOENT);
		EXPECT(!hawk_space_translate(m->s, lid_of(lid)));
		return false;
	}
	o = &m->obj[m->lid[lid]];
	if (hawk_block_ref(m->s, lid_of(lid), &vt, &ref)) {
		obj_vanished(m, m->lid[lid]);
		return false;
	}
	EXPECT(ref.block == o->ref.block && ref.gen == o->ref.gen);
	EXPECT(hawk_space_translate(m->s, lid_of(lid) + below(16)) == vt);
	if (o->pins)
		EXPECT(vt == o->vt);
	if (!o->copying)
		EXPECT(host_read(&t.h, m->s, vt) == o->tag);
	return true;
}

static void look_key(struct model *m, int k)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	u64 lid, vt;
	int ret;

	key_of(key, k);
	ret = hawk_block_find(m->s, key, false, t.now, &lid, &vt, &ref);
	if (m->key[k] < 0) {
		EXPECT(ret == -ENOENT);
	} else if (ret == -ENOENT) {
		obj_vanished(m, m->key[k]);
	} else {
		struct obj *o = &m->obj[m->key[k]];

		EXPECT(ret == (o->filling ? -EAGAIN : 0));
		EXPECT(ret || (ref.block == o->ref.block && ref.gen == o->ref.gen));
		EXPECT(ret || host_read(&t.h, m->s, vt) == o->tag);
	}
}

static void move_done(void *arg, const struct hawk_move *mv)
{
	struct model *m;
	u32 i;

	(void)arg;
	m = mv->space == t.m[0].s ? &t.m[0] : &t.m[1];
	for (i = 0; i < OBJS; i++) {
		struct obj *o = &m->obj[i];

		if (!o->tag || o->ref.block != mv->block || o->ref.gen != mv->gen)
			continue;
		if (mv->kind == HAWK_MOVE_COPY)
			o->copying = false;
		if (mv->kind == HAWK_MOVE_READ && mv->result && mv->result != -ECANCELED)
			o->lost = true;
	}
}

/* ---- operations; each returns having told the model ---- */

static int slot_free(const int *slot)
{
	int i;

	for (i = 0; i < REFS; i++)
		if (slot[i] < 0)
			return i;
	return -1;
}

static int slot_used(const int *slot)
{
	u32 i, first = below(REFS);

	for (i = 0; i < REFS; i++)
		if (slot[(first + i) % REFS] >= 0)
			return (first + i) % REFS;
	return -1;
}

static void key_set(struct model *m, int o, int k)
{
	m->obj[o].key = k;
	m->key[k] = o;
}

static struct hawk_plan *plan_any(void)
{
	/* no plan at all: clean evictions only */
	return t.h.nmoves > HOST_MOVES - HOST_PLAN - 1 || !below(8) ?
		NULL : host_plan(&t.h, 1 + below(4));
}

static u32 spares(struct model *m, u32 res)
{
	u32 i, n = 0;

	for (i = 0; i < m->s->nbuckets; i++)
		n += m->s->bucket[i].fl[res].n;
	return n;
}

/* "No room" must not be said while memory is free or a block may be forgotten. */
static void really_full(struct model *m)
{
	struct hawk_ref ref;
	u32 i, tier;
	u64 vt;

	for (tier = 0; tier < 2; tier++)
		EXPECT(!spares(m, tier) || !spares(m, HAWK_RES_BLOCK) ||
		       !spares(m, HAWK_RES_MAP));
	for (i = 0; i < LIDS; i++)
		/* a lease that did not have to hold it (leases_void()) may still do so */
		if (m->lid[i] >= 0 && look(m, i) && !held(&m->obj[m->lid[i]]) &&
		    !m->obj[m->lid[i]].leases) {
			EXPECT(!hawk_block_ref(m->s, lid_of(i), &vt, &ref));
			EXPECT(t.h.tier[HAWK_VT_TIER(vt)].kind != HAWK_TIER_HOST);
		}
}

/* What making room may answer; the plan goes in flight. */
static void room_answer(struct model *m, struct hawk_plan *plan, int ret)
{
	EXPECT(ret == -EAGAIN || ret == -ENOSPC || ret == -EDQUOT);
	/* "wait" must not be said when no move is in flight and no chunk on its way */
	EXPECT(ret != -EAGAIN || !plan || plan->n || t.h.nmoves || t.nlate);
	if (ret != -EAGAIN && !t.h.nmoves)
		really_full(m);
}

/* A LID drawn by lot, more often than not one that is free. */
static u32 lid_draw(struct model *m)
{
	u32 lid = below(LIDS), i;

	if (below(8))
		for (i = 0; i < LIDS && m->lid[lid] >= 0; i++)
			lid = (lid + 1) % LIDS;
	return lid;
}

static void op_alloc(struct model *m)
{
	u32 lid = lid_draw(m);
	int k = below(3) ? -1 : (int)below(KEYS), pin = slot_free(m->pin), ret, o;
	struct hawk_plan *plan = plan_any();
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	u64 vt;

	if (pin < 0)
		return;
	look(m, lid);
	if (k >= 0) {
		key_of(key, k);
		look_key(m, k);
	}
	ret = host_block_alloc(m->s, lid_of(lid) + below(16), k < 0 ? NULL : key,
			       below(4) ? HAWK_TIER_ANY : below(3), ++t.now, plan, &vt);
	if (ret == -EEXIST) {
		/* the block of that key may have been dropped by this very call */
		EXPECT(m->lid[lid] >= 0 || (k >= 0 && m->key[k] >= 0));
	} else if (ret) {
		EXPECT(ret == -EAGAIN || m->lid[lid] < 0);
		room_answer(m, plan, ret);
	} else {
		EXPECT(m->lid[lid] < 0);
		if (k >= 0 && m->key[k] >= 0)
			obj_vanished(m, m->key[k]);
		/* no bytes of another owner */
		EXPECT(!host_read(&t.h, m->s, vt) ||
		       host_read(&t.h, m->s, vt) >> 56 == m->id + 1);
		EXPECT(!hawk_block_ref(m->s, lid_of(lid), &vt, &ref));
		o = obj_new(m, lid);
		m->obj[o].ref = ref;
		m->obj[o].vt = vt;
		m->obj[o].filling = true;
		m->obj[o].pins = 1;
		m->pin[pin] = o;
		if (k >= 0)
			key_set(m, o, k);
		host_write(&t.h, m->s, vt, m->obj[o].tag);
	}
	if (plan)
		host_submit(&t.h);
}

static int lid_any(struct model *m, int o)
{
	u32 i, first = below(LIDS);

	for (i = 0; i < LIDS; i++)
		if (m->lid[(first + i) % LIDS] == o)
			return (first + i) % LIDS;
	EXPECT(!"pinned block without LID");
	return -1;
}

/* What is known of a block, true or not: it changes what is kept, not what is right. */
static void op_hint(struct model *m, u64 lid, bool filling)
{
	u32 hints = HAWK_ITEM_TURN(below(300)) | below(2) * HAWK_ITEM_TAIL |
		    below(2) * HAWK_ITEM_TRANSIENT | below(2) * HAWK_ITEM_PARENT;
	u8 parent[HAWK_KEY_BYTES];

	key_of(parent, below(KEYS));
	EXPECT(hawk_block_hint(m->s, lid, hints | 1u << 31, parent) == (filling ? 0 : -EINVAL));
}

static void op_put(struct model *m)
{
	int pin = slot_used(m->pin), o = pin < 0 ? -1 : m->pin[pin], k, want, ret;
	u8 key[HAWK_KEY_BYTES];
	bool keep = below(2);

	if (o < 0 || m->obj[o].copying)
		return;
	k = m->obj[o].key >= 0 && below(8) ? m->obj[o].key : (int)below(2 * KEYS) - KEYS;
	if (k >= 0) {
		key_of(key, k);
		look_key(m, k);
	}
	want = 0;
	if (!m->obj[o].filling || (m->obj[o].key >= 0 && m->obj[o].key != k))
		want = -EINVAL;
	else if (k >= 0 && m->key[k] >= 0 && m->key[k] != o)
		want = -EEXIST;
	if (below(2))
		op_hint(m, lid_of(lid_any(m, o)), m->obj[o].filling);
	ret = hawk_block_put(m->s, lid_of(lid_any(m, o)), k < 0 ? NULL : key, keep, ++t.now);
	EXPECT(ret == want);
	if (ret == -EINVAL)
		return;
	m->obj[o].filling = false;
	if (!ret && k >= 0)
		key_set(m, o, k);
	if (!keep) {
		m->obj[o].pins--;
		m->pin[pin] = -1;
	}
}

static void op_unpin(struct model *m)
{
	int pin = slot_used(m->pin), o = pin < 0 ? -1 : m->pin[pin];

	if (o < 0)
		return;
	EXPECT(!hawk_block_unpin(m->s, m->obj[o].ref));
	m->pin[pin] = -1;
	if (!--m->obj[o].pins && m->obj[o].filling) {
		/* while a copy is in flight its pin keeps the block */
		if (m->obj[o].copying)
			host_drain(&t.h);
		obj_forget(m, o);
	}
}

static void op_find(struct model *m)
{
	int k = below(KEYS), lease = slot_free(m->lease), ret;
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	u64 lid, vt;

	if (lease < 0 || m->key[k] < 0) {
		look_key(m, k);
		return;
	}
	key_of(key, k);
	ret = hawk_block_find(m->s, key, true, ++t.now, &lid, &vt, &ref);
	if (ret == -ENOENT) {
		obj_vanished(m, m->key[k]);
	} else if (!ret) {
		m->lease[lease] = m->key[k];
		m->obj[m->key[k]].leases++;
		EXPECT(host_read(&t.h, m->s, vt) == m->obj[m->key[k]].tag);
	}
}

static void op_unlease(struct model *m)
{
	int lease = slot_used(m->lease), o = lease < 0 ? -1 : m->lease[lease];

	if (o < 0)
		return;
	hawk_block_unlease(m->s, m->obj[o].ref);
	m->lease[lease] = -1;
	m->obj[o].leases--;
}

static void op_pin(struct model *m)
{
	u32 lid = below(LIDS);
	int pin = slot_free(m->pin), ret, o;
	struct hawk_ref ref;
	u64 vt;

	if (pin < 0 || !look(m, lid))
		return;
	o = m->lid[lid];
	ret = hawk_block_pin(m->s, lid_of(lid), ++t.now, &vt, &ref);
	EXPECT(ret == 0 || ret == -EAGAIN);
	if (ret)
		return;
	EXPECT(!m->obj[o].filling && t.h.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST);
	m->obj[o].vt = vt;
	m->obj[o].pins++;
	m->pin[pin] = o;
}

static void op_reload(struct model *m)
{
	struct hawk_plan *plan = plan_any();
	u32 lid = below(LIDS);
	u64 vt;
	struct hawk_ref ref;
	int ret;

	if (!look(m, lid))
		return;
	ret = host_block_reload(m->s, lid_of(lid), HAWK_TIER_ANY, ++t.now, plan);
	if (!ret) {
		EXPECT(!hawk_block_ref(m->s, lid_of(lid), &vt, &ref));
		EXPECT(t.h.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST);
	} else if (ret == -EINPROGRESS) {
		EXPECT((plan && plan->n) || t.h.nmoves);
	} else {
		room_answer(m, plan, ret);
	}
	if (plan)
		host_submit(&t.h);
}

static void op_promote(struct model *m)
{
	host_promote(&t.h, m->s, lid_of(below(LIDS)), ++t.now);
}

static void op_fork(struct model *m)
{
	u32 from = below(LIDS), to = below(LIDS);
	int ret, o;

	if (!look(m, from))
		return;
	o = m->lid[from];
	look(m, to);
	ret = hawk_block_fork(m->s, lid_of(from), lid_of(to));
	if (m->lid[to] >= 0) {
		EXPECT(ret == -EEXIST);
	} else if (m->obj[o].filling) {
		EXPECT(ret == -EAGAIN);
	} else if (ret) {
		EXPECT(ret == -ENOSPC || (ret == -EAGAIN && t.h.nmoves));
	} else {
		m->lid[to] = o;
		m->obj[o].lids++;
	}
}

static void op_unshare(struct model *m)
{
	int pin = slot_used(m->pin), o = pin < 0 ? -1 : m->pin[pin], lid, n, ret;
	struct hawk_plan *plan = plan_any();
	struct hawk_ref ref;
	u64 vt;

	if (o < 0 || m->obj[o].copying)
		return;
	lid = lid_any(m, o);
	ref = m->obj[o].ref;
	ret = host_block_unshare(m->s, lid_of(lid), ++t.now, plan, &vt, &ref);
	if (ret == -EBUSY) {
		EXPECT(m->obj[o].lids == 1 && (m->obj[o].pins > 1 || m->obj[o].leases ||
					       t.h.nmoves));
	} else if (ret && m->obj[o].filling) {
		EXPECT(ret == -EAGAIN);
	} else if (ret) {
		room_answer(m, plan, ret);
	} else if (m->obj[o].lids == 1) {
		/* where it was, and what was published of it is void */
		EXPECT(vt == m->obj[o].vt);
		m->obj[o].filling = true;
		if (m->obj[o].key >= 0)
			m->key[m->obj[o].key] = -1;
		m->obj[o].key = -1;
		m->obj[o].tag = (u64)(m->id + 1) << 56 | ++t.next_tag;
		host_write(&t.h, m->s, vt, m->obj[o].tag);
	} else {
		EXPECT(vt != m->obj[o].vt);
		m->obj[o].lids--;
		m->obj[o].pins--;	/* from here on it is the copy's */
		n = obj_new(m, lid);
		m->obj[n].tag = m->obj[o].tag;
		m->obj[n].ref = ref;
		m->obj[n].vt = vt;
		m->obj[n].filling = true;
		m->obj[n].copying = true;
		m->obj[n].pins = 1;
		m->pin[pin] = n;
	}
	if (plan)
		host_submit(&t.h);
}

static void op_free(struct model *m)
{
	u32 lid = below(LIDS);
	int ret, o;

	if (!look(m, lid)) {
		EXPECT(hawk_block_free(m->s, lid_of(lid)) == -ENOENT);
		return;
	}
	o = m->lid[lid];
	ret = hawk_block_free(m->s, lid_of(lid));
	if (m->obj[o].lids > 1) {
		EXPECT(!ret);
		m->lid[lid] = -1;
		m->obj[o].lids--;
	} else if (m->obj[o].pins || m->obj[o].leases) {
		EXPECT(ret == -EBUSY);
	} else if (ret) {
		EXPECT(ret == -EBUSY && t.h.nmoves);	/* pinned by a copy */
	} else {
		obj_forget(m, o);
	}
}

static void op_key_free(struct model *m)
{
	int k = below(KEYS), ret;
	u8 key[HAWK_KEY_BYTES];

	look_key(m, k);
	key_of(key, k);
	ret = hawk_key_free(m->s, key);
	EXPECT(ret == (m->key[k] < 0 ? -ENOENT : 0));
	if (!ret) {
		m->obj[m->key[k]].key = -1;
		m->key[k] = -1;
	}
}

static void op_writeback(struct model *m)
{
	if (t.h.nmoves > HOST_MOVES - HOST_PLAN - 1)
		return;
	host_space_writeback(m->s, below(2), below(1025), host_plan(&t.h, 1 + below(8)));
	host_submit(&t.h);
}

/* ---- chunks come and go ---- */

static void late_end(u32 i, bool ok)
{
	struct late l = t.late[i];

	t.late[i] = t.late[--t.nlate];
	hawk_space_grown(l.s, &l.g, ok);
}

static void grant_any(struct hawk_space *s, const struct hawk_grant *g)
{
	if (t.nlate < GRANTS && !below(4)) {
		EXPECT(hawk_frame_off(s, g->tier, g->slot * s->frames_per_chunk) == ~0ull);
		t.late[t.nlate].s = s;
		t.late[t.nlate++].g = *g;
		return;
	}
	hawk_space_grown(s, g, below(32));
}

static void op_late(struct model *m)
{
	(void)m;
	if (t.nlate)
		late_end(below(t.nlate), below(8));
}

static void op_unstick(struct model *m)
{
	hawk_space_unstick(m->s);
}

static bool any_held(struct model *m)
{
	u32 i;

	for (i = 0; i < OBJS; i++)
		if (m->obj[i].tag && (held(&m->obj[i]) || m->obj[i].leases || m->obj[i].copying))
			return true;
	return false;
}

static void drain_begin(struct model *m, u32 tier)
{
	struct hawk_window *w = &m->s->win[tier];
	u32 slot = hawk_space_drain_pick(m->s, tier, t.now), i;

	if (slot == HAWK_NONE) {
		for (i = 0; i < w->nslots; i++)
			EXPECT(hawk_slot_chunk(w, i) == HAWK_NONE || any_held(m));
		return;
	}
	if (!below(4))
		slot = below(w->nslots);
	if (hawk_slot_chunk(w, slot) == HAWK_NONE) {
		EXPECT(hawk_space_drain_start(m->s, tier, slot) == -ENOENT);
		return;
	}
	EXPECT(!hawk_space_drain_start(m->s, tier, slot));
	EXPECT(hawk_space_drain_start(m->s, tier, slot) == -EBUSY);
}

static void drain_end(struct model *m, u32 tier)
{
	struct hawk_window *w = &m->s->win[tier];
	u32 slot = w->drain, chunk = hawk_slot_chunk(w, slot), i;
	struct hawk_space *claim = below(2) ? t.m[below(SPACES)].s : NULL;

	for (i = 0; i < m->s->frames_per_chunk; i++)
		EXPECT(w->frame[slot * m->s->frames_per_chunk + i].block == HAWK_NONE);
	EXPECT(hawk_space_drain_finish(m->s, tier, claim) == chunk);
	EXPECT(hawk_slot_chunk(w, slot) == HAWK_NONE);
	t.drained++;
}

/* Leased blocks may go too now. */
static void leases_void(struct model *m)
{
	u32 i;

	for (i = 0; i < OBJS; i++)
		m->obj[i].lost |= m->obj[i].leases > 0;
}

static void op_shrink(struct model *m)
{
	u32 tier = t.leaving >= 0 && below(2) ? (u32)t.leaving : below(TIERS), busy;
	u32 flags = below(16) ? 0 : HAWK_DRAIN_DROP;
	struct hawk_plan *plan = plan_any();
	int ret;

	if (m->s->win[tier].drain == HAWK_NONE) {
		drain_begin(m, tier);
		return;
	}
	if (!below(16)) {
		hawk_space_drain_cancel(m->s, tier);
		return;
	}
	if (!plan)
		return;
	if (flags)
		leases_void(m);
	do {
		ret = hawk_space_drain(m->s, tier, flags, t.now, plan, &busy);
	} while (host_grew(m->s, ret));
	if (!ret) {
		EXPECT(!busy);
		drain_end(m, tier);
	} else if (ret == -EAGAIN) {
		EXPECT(plan->n || t.h.nmoves || t.nlate);
	} else {
		EXPECT(ret == -EBUSY && busy && busy <= m->s->frames_per_chunk && !plan->n);
		EXPECT(any_held(m) || t.h.nmoves);
	}
	host_submit(&t.h);
}

static void op_unclaim(struct model *m)
{
	u32 tier = below(TIERS);
	s64 excess = hawk_space_excess(m->s, tier), claims = m->s->win[tier].claims;

	EXPECT(excess == (s64)m->s->win[tier].owned + claims - m->p.quota_min[tier]);
	hawk_space_unclaim(m->s, tier);
	EXPECT(hawk_space_excess(m->s, tier) == excess - claims);
	if (hawk_space_starved(m->s, tier))
		EXPECT(!hawk_space_starved(m->s, tier));
}

/* A tier leaves when no space owns a chunk of it any more, and comes back empty. */
static void op_leave(struct model *m)
{
	u32 tier = t.leaving, i, chunks;

	(void)m;
	if (t.leaving < 0) {
		if (!below(64)) {
			t.leaving = below(TIERS);
			EXPECT(!hawk_tier_leave(t.h.e, t.leaving, true));
		}
		return;
	}
	if (!below(32)) {
		EXPECT(!hawk_tier_leave(t.h.e, tier, false));
		t.leaving = -1;
		return;
	}
	for (i = 0; i < SPACES; i++)
		if (t.m[i].s->win[tier].owned) {
			EXPECT(hawk_space_leave(t.m[i].s, tier) == -EBUSY);
			return;
		}
	for (i = 0; i < SPACES; i++) {
		EXPECT(!hawk_space_leave(t.m[i].s, tier));
		EXPECT(!hawk_space_leave(t.m[i].s, tier));
		t.m[i].p.quota_min[tier] = 0;
		t.m[i].p.quota_max[tier] = 0;
	}
	host_clean(&t.h, ~0u);
	chunks = t.h.tier[tier].chunks;
	host_tier_end(&t.h, tier);
	EXPECT(host_tier(&t.h, tier < 2 ? HAWK_TIER_HOST : HAWK_TIER_BLK, chunks) == tier);
	t.leaving = -1;
	t.left++;
}

/* The operator changes what may be written to flash. */
static void op_budget(struct model *m)
{
	struct hawk_tier_admit a = {
		.flags = HAWK_ADMIT_SET, .tier = 2, .mode = below(HAWK_ADMIT_FORMULA + 1),
		.budget_bytes = below(3) ? (u64)below(64) << 17 : 1ull << 40,
		.period_ns = 128 + below(100000),
	};
	int ret = hawk_tier_admit(t.h.e, &a, t.now);

	(void)m;
	EXPECT(!ret || ret == -ENOENT);
}

static void op_step(struct model *m)
{
	u32 n = 1 + below(4);

	(void)m;
	while (n-- && host_step(&t.h))
		;
}

static void op_drain(struct model *m)
{
	(void)m;
	host_drain(&t.h);
}

static const struct {
	void (*run)(struct model *m);
	u32 weight;
} ops[] = {
	{ op_alloc, 24 }, { op_put, 24 }, { op_unpin, 12 }, { op_find, 8 }, { op_unlease, 8 },
	{ op_pin, 10 }, { op_reload, 10 }, { op_fork, 5 }, { op_unshare, 5 }, { op_free, 12 },
	{ op_key_free, 1 }, { op_writeback, 2 }, { op_step, 24 }, { op_drain, 1 },
	{ op_late, 4 }, { op_unstick, 1 }, { op_shrink, 6 }, { op_unclaim, 1 }, { op_leave, 1 },
	{ op_budget, 1 }, { op_promote, 6 },
};

/* ---- checks ---- */

/* No chunk has two owners, and quotas hold. */
static void check_chunks(void)
{
	u8 owner[16];
	u32 i, tier, slot, total, nfree, ndirty, sum, keep, claims;

	for (tier = 0; tier < HAWK_TIERS_MAX; tier++) {
		if (hawk_tier_usage(t.h.e, tier, &total, &nfree, &ndirty))
			continue;
		memset(owner, 0, sizeof(owner));
		sum = 0;
		keep = 0;
		claims = 0;
		for (i = 0; i < SPACES; i++) {
			struct hawk_window *w = &t.m[i].s->win[tier];

			EXPECT(w->owned <= t.m[i].p.quota_max[tier]);
			sum += w->owned;
			if (w->owned < t.m[i].p.quota_min[tier])
				keep += t.m[i].p.quota_min[tier] - w->owned;
			claims += w->claims;
			for (slot = 0; slot < w->nslots; slot++) {
				u32 c = hawk_slot_chunk(w, slot);

				EXPECT(c == HAWK_NONE || (c < total && !owner[c]));
				if (c != HAWK_NONE)
					owner[c] = 1;
			}
		}
		for (i = 0; i < t.nlate; i++)
			if (t.late[i].g.tier == tier) {
				EXPECT(!owner[t.late[i].g.chunk]);
				owner[t.late[i].g.chunk] = 1;
			}
		EXPECT(sum + nfree + ndirty == total);
		EXPECT(nfree + ndirty >= keep + claims);
		EXPECT(t.h.e->tier[tier].reserved == keep);
		EXPECT(t.h.e->tier[tier].claimed == claims);
	}
}

static void check_held(struct model *m)
{
	char why[64];
	u32 i;

	if (hawk_space_check(m->s, why, sizeof(why)))
		fail_msg("op %llu, HAWK_SEED=%llu: %s", (unsigned long long)t.op,
			 (unsigned long long)t.seed, why);
	for (i = 0; i < LIDS; i++)
		if (m->lid[i] >= 0 && held(&m->obj[m->lid[i]]))
			EXPECT(look(m, i));
}

/* Every LID; then what vanished is what the engine says it dropped. */
static void sweep(struct model *m)
{
	struct hawk_stats st;
	u64 blocks = 0;
	u32 i;

	for (i = 0; i < LIDS; i++)
		look(m, i);
	for (i = 0; t.op % KEY_SWEEP == 0 && i < KEYS; i++)
		look_key(m, i);
	for (i = 0; i < OBJS; i++)
		blocks += !!m->obj[i].tag;
	hawk_space_stats(m->s, &st);
	EXPECT(m->vanished == st.evict_drop + st.flash_drop + st.reload_errors);
	/* ended blocks with a move in flight still count */
	EXPECT(st.blocks >= blocks && st.blocks <= blocks + t.h.nmoves);
	EXPECT(st.resident <= hawk_space_frames(m->s, 0) + hawk_space_frames(m->s, 1));
}

static void space_begin(struct model *m)
{
	u32 i, tier;

	memset(&m->p, 0, sizeof(m->p));
	m->p.block_bytes = 256 << 10;
	m->p.block_tokens = 16;
	m->p.max_blocks = 16 + below(64);
	m->p.buckets = 1u << below(5);
	for (tier = 0; tier < TIERS; tier++) {
		if ((int)tier == t.leaving)
			continue;
		m->p.quota_max[tier] = !tier + below(t.h.tier[tier].chunks + 1);
		m->p.quota_min[tier] = below(2) && m->p.quota_max[tier];
	}
	while (host_try_space(&t.h, &m->p, &m->s)) {
		/* minima do not fit while the other space has it all */
		memset(m->p.quota_min, 0, sizeof(m->p.quota_min));
		host_clean(&t.h, ~0u);
	}
	for (tier = 0; tier < TIERS; tier++)
		m->p.quota_min[tier] = m->s->win[tier].quota_min;
	m->vanished = 0;
	memset(m->obj, 0, sizeof(m->obj));
	for (i = 0; i < LIDS; i++)
		m->lid[i] = -1;
	for (i = 0; i < KEYS; i++)
		m->key[i] = -1;
	for (i = 0; i < REFS; i++) {
		m->pin[i] = -1;
		m->lease[i] = -1;
	}
}

static void space_end(struct model *m)
{
	u32 i;

	for (i = t.nlate; i-- > 0;)
		if (t.late[i].s == m->s)
			late_end(i, below(2));
	host_space_end(&t.h, m->s);
}

static void random_ops(void **state)
{
	u64 n = getenv("HAWK_OPS") ? strtoull(getenv("HAWK_OPS"), NULL, 0) : OPS_DEFAULT;
	u32 i, pick, sum = 0;

	(void)state;
	t.seed = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 20240607;
	fprintf(stderr, "# HAWK_SEED=%llu HAWK_OPS=%llu\n", (unsigned long long)t.seed,
		(unsigned long long)n);
	t.rng = t.seed;
	host_init(&t.h, t.seed + 1);
	t.h.done = move_done;
	t.h.fail_permille = 20;
	t.leaving = -1;
	host_grant = grant_any;
	host_tier(&t.h, HAWK_TIER_HOST, 4);
	host_tier(&t.h, HAWK_TIER_HOST, 2);
	host_tier(&t.h, HAWK_TIER_BLK, 6);
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		sum += ops[i].weight;
	for (i = 0; i < SPACES; i++) {
		t.m[i].id = i;
		space_begin(&t.m[i]);
	}
	for (t.op = 1; t.op <= n; t.op++) {
		pick = below(sum);
		for (i = 0; pick >= ops[i].weight; i++)
			pick -= ops[i].weight;
		ops[i].run(&t.m[below(SPACES)]);
		if (!below(50))
			host_clean(&t.h, 1);
		check_chunks();
		for (i = 0; i < SPACES; i++) {
			check_held(&t.m[i]);
			sweep(&t.m[i]);
		}
		if (t.op % RENEW == 0) {
			struct model *m = &t.m[below(SPACES)];

			space_end(m);
			space_begin(m);
		}
	}
	for (i = 0; i < SPACES; i++)
		space_end(&t.m[i]);
	host_fini(&t.h);
	fprintf(stderr, "# %llu chunks taken away, %llu tiers left\n",
		(unsigned long long)t.drained, (unsigned long long)t.left);
	assert_true(n < 10000 || (t.drained && t.left));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_ops) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
