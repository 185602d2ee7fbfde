// SPDX-License-Identifier: MIT
/*
 * core_threads.c - many threads on one space, and one that only reads the vTLB
 *
 * Workers allocate, publish, find, pin, reload, fork, make private and free blocks of
 * a common set of LIDs in a space that is too small for them, each carrying out the
 * moves that it was given.  LIDs come in groups, blocks are shared within a group only
 * and their bytes tell the group, so that everybody knows what must be found where.
 * The reader follows the protocol of uapi/hawk.h, takes no lock, and must never accept
 * the bytes of another block.  TSan watches (make SAN=thread).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "core_host.h"
#include "../../kmod/core/priv.h"

#define WORKERS		8
#define LIDS		192
#define GROUP		4	/* LIDs of a group */
#define KEYS		64

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS_DEFAULT	20000
#else
#define ROUNDS_DEFAULT	100000
#endif

static struct {
	struct host h;
	struct hawk_space *s;
	u64 now;
	u64 seed;
	u32 rounds;
	u32 running;
	u64 accepted;	/* reads whose generation held */
	/* blocks of a group that somebody began and ended to fill */
	u32 begun[LIDS / GROUP];
	u32 ended[LIDS / GROUP];
} t;

struct worker {
	pthread_t thread;
	u64 rng;
	struct hawk_plan plan;
	struct hawk_move move[4];
};

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "HAWK_SEED=%llu: line %d: %s\n",	\
				(unsigned long long)t.seed, __LINE__, #cond);	\
			abort();	/* other threads are running */	\
		}							\
	} while (0)

static u64 lid_of(u32 i)
{
	return HAWK_LID(1 + i / 64, i % 4, 0, i / 4 % 16 * 16);
}

/* ---- bytes: relaxed atomics, because the reader races with the writers by design ---- */

static u64 *bytes_at(u32 tier, u64 off)
{
	CHECK(off < (u64)t.h.tier[tier].chunks * HAWK_CHUNK_BYTES);
	return (u64 *)(t.h.tier[tier].mem + off);
}

static u64 *bytes_of(u64 vt)
{
	return bytes_at(HAWK_VT_TIER(vt), hawk_frame_off(t.s, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt)));
}

static void bytes_write(u64 vt, u64 tag)
{
	u64 *p = bytes_of(vt);
	u32 i;

	for (i = 0; i < 8; i++)
		hawk_store(&p[i], tag + i);
}

/* Return: the tag, or 0 if the bytes are not of one block. */
static u64 bytes_read(u64 vt)
{
	u64 *p = bytes_of(vt), tag = hawk_load(&p[0]);
	u32 i;

	for (i = 1; i < 8; i++)
		if (hawk_load(&p[i]) != tag + i)
			return 0;
	return tag;
}

static void move_run(struct worker *w, struct hawk_move *m)
{
	u64 *src = bytes_at(m->src_tier, m->src_off), *dst = bytes_at(m->dst_tier, m->dst_off);
	u32 i;

	/* no reload is lost, so no leased block may vanish */
	m->result = 0;
	if (m->kind != HAWK_MOVE_COPY && !host_below(&w->rng, 50))
		m->result = m->kind == HAWK_MOVE_READ || host_below(&w->rng, 2) ? -ECANCELED : -EIO;
	for (i = 0; i < 8; i++)
		hawk_store(&dst[i], hawk_load(&src[i]));
	hawk_move_complete(m);
}

static struct hawk_plan *plan(struct worker *w)
{
	w->plan = (struct hawk_plan){ .max = ARRAY_SIZE(w->move), .move = w->move };
	return &w->plan;
}

static void plan_run(struct worker *w)
{
	u32 i;

	for (i = 0; i < w->plan.n; i++) {
		if (!host_below(&w->rng, 4))
			sched_yield();
		move_run(w, &w->move[i]);
	}
	w->plan.n = 0;
}

/* ---- operations ---- */

/* The bytes of a group's blocks differ in the lower half of the tag. */
static u64 tag_new(struct worker *w, u32 nr)
{
	return (u64)(nr / GROUP + 1) << 32 | (host_rand(&w->rng) >> 36 << 4);
}

static bool tag_ok(u64 tag, u32 nr)
{
	return tag >> 32 == nr / GROUP + 1;
}

static void fill_begin(u32 nr)
{
	__atomic_fetch_add(&t.begun[nr / GROUP], 1, __ATOMIC_SEQ_CST);
}

static void fill_end(u32 nr)
{
	__atomic_fetch_add(&t.ended[nr / GROUP], 1, __ATOMIC_SEQ_CST);
}

static void op_fill(struct worker *w, u32 nr, const u8 *key, u64 now)
{
	u64 lid = lid_of(nr), vt;
	struct hawk_ref ref;
	int ret;

	fill_begin(nr);
	ret = host_block_alloc(t.s, lid, key, HAWK_TIER_ANY, now, plan(w), &vt);
	plan_run(w);
	if (!ret) {
		bytes_write(vt, tag_new(w, nr));
		if (host_below(&w->rng, 8)) {
			ret = hawk_block_put(t.s, lid, key, false, now);
			CHECK(!ret || ret == -EEXIST);
		} else {
			CHECK(!hawk_block_ref(t.s, lid, &vt, &ref));
			CHECK(!hawk_block_unpin(t.s, ref));
		}
	}
	fill_end(nr);
}

/* The caller has @nr pinned. */
static void op_unshare(struct worker *w, u32 nr, u64 now, struct hawk_ref *ref)
{
	u64 vt;
	int ret;

	fill_begin(nr);
	ret = host_block_unshare(t.s, lid_of(nr), now, plan(w), &vt, ref);
	plan_run(w);
	if (!ret) {
		CHECK(tag_ok(bytes_read(vt), nr));
		bytes_write(vt, tag_new(w, nr));
		CHECK(!hawk_block_put(t.s, lid_of(nr), NULL, true, now));
	}
	fill_end(nr);
}

static void op_pin(struct worker *w, u32 nr, u64 now)
{
	struct hawk_ref ref;
	u64 vt, tag;
	int ret, i;

	ret = host_block_reload(t.s, lid_of(nr), HAWK_TIER_ANY, now, plan(w));
	plan_run(w);
	if (ret == -ENOENT || hawk_block_pin(t.s, lid_of(nr), now, &vt, &ref))
		return;
	/* pinned: it stays, and so do its bytes */
	tag = bytes_read(vt);
	CHECK(tag_ok(tag, nr));
	for (i = host_below(&w->rng, 3); i; i--)
		sched_yield();
	CHECK(bytes_read(vt) == tag);
	CHECK(hawk_load(&t.s->block[ref.block].gen) == ref.gen);
	if (!host_below(&w->rng, 4))
		op_unshare(w, nr, now, &ref);
	CHECK(!hawk_block_unpin(t.s, ref));
}

static void op_find(struct worker *w, const u8 *key, u64 now)
{
	struct hawk_ref ref;
	u64 lid, vt;
	u32 state;
	int i;

	if (hawk_block_find(t.s, key, true, now, &lid, &vt, &ref))
		return;
	/* leased: it may move, but its life goes on */
	for (i = host_below(&w->rng, 3); i; i--)
		sched_yield();
	state = hawk_load(&t.s->block[ref.block].state);
	CHECK(state != HAWK_BLOCK_FREE && state != HAWK_BLOCK_DYING);
	CHECK(hawk_load(&t.s->block[ref.block].gen) == ref.gen);
	hawk_block_unlease(t.s, ref);
}

static void op_any(struct worker *w)
{
	u32 nr = host_below(&w->rng, LIDS);
	u64 now = __atomic_add_fetch(&t.now, 1, __ATOMIC_RELAXED);
	u8 key[HAWK_KEY_BYTES];

	host_key(key, host_below(&w->rng, KEYS));
	switch (host_below(&w->rng, 16)) {
	case 0 ... 4:
		op_fill(w, nr, host_below(&w->rng, 2) ? key : NULL, now);
		break;
	case 5 ... 8:
		op_pin(w, nr, now);
		break;
	case 9 ... 11:
		op_find(w, key, now);
		break;
	case 12:
		hawk_block_fork(t.s, lid_of(nr),
				lid_of(nr / GROUP * GROUP + host_below(&w->rng, GROUP)));
		break;
	case 13:
		hawk_block_free(t.s, lid_of(nr));
		break;
	case 14:
		host_space_writeback(t.s, 0, 512, plan(w));
		plan_run(w);
		break;
	default:
		hawk_space_translate(t.s, lid_of(nr));
		if (!host_below(&w->rng, 8))
			hawk_key_free(t.s, key);
		break;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	u32 i;

	for (i = 0; i < t.rounds; i++)
		op_any(w);
	__atomic_fetch_sub(&t.running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- the reader of uapi/hawk.h, on its own ---- */

static struct hawk_vtlb_entry *entry_find(u64 lid, u64 *val)
{
	u64 lines = hawk_vtlb_bytes(t.s->max_blocks) / 64, line;
	u32 i, way;

	for (i = 0; i < HAWK_VT_PROBE; i++) {
		line = (hawk_mix(lid) + i) & (lines - 1);
		for (way = 0; way < HAWK_VT_WAYS; way++) {
			struct hawk_vtlb_entry *e = &t.s->vtlb[line * HAWK_VT_WAYS + way];

			*val = hawk_load_acquire(&e->val);
			if (!(*val & HAWK_VT_VALID) || hawk_load(&e->lid) != lid)
				continue;
			hawk_rmb();
			if (hawk_load(&e->val) == *val)
				return e;
		}
	}
	return NULL;
}

static void *read_on(void *arg)
{
	struct hawk_vtlb_entry *e;
	u64 rng = t.seed, val, tag;
	u32 nr, begun;

	(void)arg;
	while (__atomic_load_n(&t.running, __ATOMIC_ACQUIRE)) {
		nr = host_below(&rng, LIDS);
		/* a block in the course of being filled holds anything */
		begun = __atomic_load_n(&t.ended[nr / GROUP], __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&t.begun[nr / GROUP], __ATOMIC_SEQ_CST) != begun)
			continue;
		e = entry_find(lid_of(nr), &val);
		if (!e)
			continue;
		tag = bytes_read(val);
		hawk_rmb();
		if (hawk_load(&e->val) != val ||
		    __atomic_load_n(&t.begun[nr / GROUP], __ATOMIC_SEQ_CST) != begun)
			continue;
		CHECK(tag_ok(tag, nr));
		t.accepted++;
	}
	return NULL;
}

static void threads(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 128 << 10, .block_tokens = 16, .max_blocks = 160, .buckets = 16,
	};
	struct worker w[WORKERS];
	pthread_t reader;
	struct hawk_stats st;
	u32 i;

	(void)state;
	t.seed = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 1;
	t.rounds = (getenv("HAWK_OPS") ? strtoul(getenv("HAWK_OPS"), NULL, 0) : ROUNDS_DEFAULT) /
		   WORKERS;
	host_init(&t.h, t.seed);
	p.quota_max[host_tier(&t.h, HAWK_TIER_HOST, 4)] = 4;
	p.quota_max[host_tier(&t.h, HAWK_TIER_BLK, 4)] = 4;
	t.s = host_space(&t.h, &p);
	t.running = WORKERS;
	for (i = 0; i < WORKERS; i++) {
		w[i].rng = t.seed * 1000 + i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	assert_int_equal(pthread_create(&reader, NULL, read_on, NULL), 0);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
	assert_int_equal(pthread_join(reader, NULL), 0);

	host_check(t.s);
	hawk_space_stats(t.s, &st);
	/* it was not idle, and nothing is left behind */
	assert_true(st.reloads && st.evict_write && st.steals && st.flash_drop && t.accepted);
	assert_int_equal(st.pinned, 0);
	for (i = 0; i < LIDS; i++)
		hawk_block_free(t.s, lid_of(i));
	hawk_space_stats(t.s, &st);
	assert_int_equal(st.blocks, 0);
	assert_int_equal(st.resident + st.flash, 0);
	host_space_end(&t.h, t.s);
	host_fini(&t.h);
}

/* ---- ways of one vTLB line ---- */

struct setter {
	pthread_t thread;
	struct hawk_space *s;
	u64 lid;
	u32 lost;
};

/* What a thread has set is there until it deletes it, whoever else wants the way. */
static void *set_and_del(void *arg)
{
	struct setter *w = arg;
	struct hawk_map m = { .lid = w->lid, .way = HAWK_NONE };
	u32 i;

	for (i = 0; i < 2 * ROUNDS_DEFAULT; i++) {
		u64 val = hawk_vt(0, i & 0xffffff, hawk_lid_tok(w->lid));

		hawk_vtlb_set(w->s, &m, val);
		w->lost += hawk_vtlb_get(w->s, w->lid) != val;
		hawk_vtlb_del(w->s, &m);
	}
	return NULL;
}

static void ways_have_one_owner(void **state)
{
	struct hawk_space s = { .vtlb_mask = 15 };
	struct setter w[WORKERS] = { 0 };
	u32 i, tok;

	(void)state;
	s.vtlb = aligned_alloc(64, 16 * 64);
	assert_non_null(s.vtlb);
	memset(s.vtlb, 0, 16 * 64);
	for (i = 0, tok = 0; i < WORKERS; tok++)
		if (!(hawk_mix(HAWK_LID(1, 0, 0, tok)) & s.vtlb_mask)) {
			w[i].s = &s;
			w[i++].lid = HAWK_LID(1, 0, 0, tok);
		}
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, set_and_del, &w[i]), 0);
	for (i = 0; i < WORKERS; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		assert_int_equal(w[i].lost, 0);
	}
	for (i = 0; i < 16 * HAWK_VT_WAYS; i++)
		assert_true(!s.vtlb[i].val);
	free(s.vtlb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads),
		cmocka_unit_test(ways_have_one_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
