// SPDX-License-Identifier: MIT
/*
 * core_threads.c - many threads on one space, and one that only reads the vTLB; many
 * threads that need all of its frames
 *
 * Eight workers do everything that the engine offers, all at the same time: they
 * allocate, publish, find, pin, reload, fork, make private and free blocks of a common
 * set of LIDs in a space that is too small for them, let it grow, drain its chunks in
 * favour of a second space, zero them and ask for statistics.  A move is carried out by
 * the thread that was given it or by any other.  LIDs come in groups, blocks are shared
 * within a group only and their bytes tell the group, so that everybody knows what must
 * be found where.  The reader follows the protocol of uapi/hawk.h, takes no lock, and
 * must never accept the bytes of another block.  TSan watches (make SAN=thread).
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
#define POOL		64	/* moves that wait for any thread */
#define DRAIN_LOOKS	20

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS_DEFAULT	100000
#else
#define ROUNDS_DEFAULT	400000
#endif

struct worker;

/* A move, and who must know that it has ended. */
struct pooled {
	struct hawk_move m;
	struct worker *from;
};

static struct {
	struct host h;
	struct hawk_space *s;
	struct hawk_space *other;	/* competes for chunks */
	pthread_mutex_t pool_lock;	/* guards pool and npool */
	u32 npool;
	struct pooled pool[POOL];
	pthread_mutex_t drain_lock;	/* one drain, and one who zeroes, at a time */
	u64 grown, stuck, drained, busy, passed_on;
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
	u32 copies;	/* copies for this worker that have not ended */
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

static u64 *bytes_of(struct hawk_space *s, u64 vt)
{
	return bytes_at(HAWK_VT_TIER(vt), hawk_frame_off(s, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt)));
}

static void bytes_write(struct hawk_space *s, u64 vt, u64 tag)
{
	u64 *p = bytes_of(s, vt);
	u32 i;

	for (i = 0; i < 8; i++)
		hawk_store(&p[i], tag + i);
}

/* Return: the tag, or 0 if the bytes are not of one block. */
static u64 tag_at(u64 *p)
{
	u64 tag = hawk_load(&p[0]);
	u32 i;

	for (i = 1; i < 8; i++)
		if (hawk_load(&p[i]) != tag + i)
			return 0;
	return tag;
}

static u64 bytes_read(struct hawk_space *s, u64 vt)
{
	return tag_at(bytes_of(s, vt));
}

static void move_run(struct worker *w, struct pooled *p)
{
	struct hawk_move *m = &p->m;
	u64 *src = bytes_at(m->src_tier, m->src_off), *dst = bytes_at(m->dst_tier, m->dst_off);
	u32 i;

	/* no reload is lost, so no leased block may vanish */
	m->result = 0;
	if (m->kind != HAWK_MOVE_COPY && !host_below(&w->rng, 50))
		m->result = m->kind == HAWK_MOVE_READ || host_below(&w->rng, 2) ? -ECANCELED : -EIO;
	for (i = 0; i < 8; i++)
		hawk_store(&dst[i], hawk_load(&src[i]));
	hawk_move_complete(m);
	if (m->kind == HAWK_MOVE_COPY)
		__atomic_fetch_sub(&p->from->copies, 1, __ATOMIC_RELEASE);
}

/* Take a move of anybody's and carry it out.  Return: whether there was one. */
static bool pool_run(struct worker *w)
{
	struct pooled p;
	u32 i, n;

	pthread_mutex_lock(&t.pool_lock);
	n = t.npool;
	if (n) {
		i = host_below(&w->rng, n);
		p = t.pool[i];
		t.pool[i] = t.pool[--t.npool];
	}
	pthread_mutex_unlock(&t.pool_lock);
	if (n)
		move_run(w, &p);
	return n;
}

static struct hawk_plan *plan(struct worker *w)
{
	w->plan = (struct hawk_plan){ .max = ARRAY_SIZE(w->move), .move = w->move };
	return &w->plan;
}

/* Leave the move to whoever comes along.  Return: false if there are too many. */
static bool pool_add(struct pooled *p)
{
	bool room;

	pthread_mutex_lock(&t.pool_lock);
	room = t.npool < POOL;
	if (room) {
		t.pool[t.npool++] = *p;
		t.passed_on++;
	}
	pthread_mutex_unlock(&t.pool_lock);
	return room;
}

static void plan_run(struct worker *w)
{
	u32 i;

	for (i = 0; i < w->plan.n; i++) {
		struct pooled p = { .m = w->move[i], .from = w };

		if (p.m.kind == HAWK_MOVE_COPY)
			__atomic_fetch_add(&w->copies, 1, __ATOMIC_RELAXED);
		if (!host_below(&w->rng, 4))
			sched_yield();
		if (!host_below(&w->rng, 2) || !pool_add(&p))
			move_run(w, &p);
	}
	w->plan.n = 0;
	if (!host_below(&w->rng, 2))
		pool_run(w);
}

/* Its private copy is made, by whomever. */
static void copies_wait(struct worker *w)
{
	while (__atomic_load_n(&w->copies, __ATOMIC_ACQUIRE))
		if (!pool_run(w))
			sched_yield();
}

/* ---- growing and shrinking ---- */

/* A call said @ret.  Return: true: call again. */
static bool grew(struct worker *w, struct hawk_space *s, int ret)
{
	struct hawk_grant g;
	bool ok;

	if (ret != -ENOBUFS)
		return false;
	if (hawk_space_grow(s, &g))
		return true;
	if (!host_below(&w->rng, 2))
		sched_yield();
	ok = host_below(&w->rng, 4);
	hawk_space_grown(s, &g, ok);
	__atomic_fetch_add(ok ? &t.grown : &t.stuck, 1, __ATOMIC_RELAXED);
	return true;
}

/* A chunk of the first space is emptied for the second, or that is given up. */
static void op_drain(struct worker *w, u64 now)
{
	u32 tier = host_below(&w->rng, 2), looks, busy;
	int ret = -EBUSY;

	if (pthread_mutex_trylock(&t.drain_lock))
		return;
	host_clean(&t.h, 2);
	if (hawk_space_drain_start(t.s, tier, hawk_space_drain_pick(t.s, tier, now)))
		goto out_unlock;
	for (looks = 0; ret && looks < DRAIN_LOOKS; looks++) {
		do {
			ret = hawk_space_drain(t.s, tier, 0, 1, plan(w), &busy);
			plan_run(w);
		} while (grew(w, t.s, ret));
		CHECK(ret == 0 || ret == -EAGAIN || (ret == -EBUSY && busy));
		if (ret && !pool_run(w))
			sched_yield();
	}
	if (!ret) {
		hawk_space_drain_finish(t.s, tier, host_below(&w->rng, 2) ? t.other : NULL);
		t.drained++;
	} else {
		hawk_space_drain_cancel(t.s, tier);
		t.busy++;
	}
out_unlock:
	pthread_mutex_unlock(&t.drain_lock);
}

/* The second space lives by what it gets. */
static void op_other(struct worker *w, u32 nr, u64 now)
{
	u64 lid = HAWK_LID(9, 0, 0, nr * 16), vt, tag = (u64)(1000 + nr) << 32;
	int ret;

	do {
		ret = hawk_block_alloc(t.other, lid, NULL, HAWK_TIER_ANY, now, plan(w), &vt);
		plan_run(w);
	} while (grew(w, t.other, ret));
	if (ret)
		return;
	/* no bytes of the first space, whose tags are below */
	CHECK(!*bytes_of(t.other, vt) || *bytes_of(t.other, vt) >> 32 >= 1000);
	bytes_write(t.other, vt, tag);
	CHECK(!hawk_block_put(t.other, lid, NULL, false, now));
	if (!host_below(&w->rng, 2))
		hawk_block_free(t.other, lid);
}

/* Numbers are asked for while they change. */
static void op_watch(void)
{
	struct hawk_stats st = { 0 };
	u32 tier, total, nfree, ndirty, owned, max;

	hawk_space_stats(t.s, &st);
	CHECK(st.blocks <= t.s->max_blocks);
	for (tier = 0; tier < 2; tier++) {
		CHECK(!hawk_tier_usage(t.h.e, tier, &total, &nfree, &ndirty));
		CHECK(nfree + ndirty <= total);
		CHECK(hawk_space_excess(t.s, tier) <= (s64)total);
		hawk_space_quota(t.s, tier, &owned, &max);
		CHECK(owned <= max && max == 4);
		hawk_space_starved(t.other, tier);
		if (hawk_space_starved(t.s, tier))
			hawk_space_unclaim(t.other, tier);
	}
	hawk_space_unstick(t.s);
	hawk_space_unstick(t.other);
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
	do {
		ret = hawk_block_alloc(t.s, lid, key, HAWK_TIER_ANY, now, plan(w), &vt);
		plan_run(w);
	} while (grew(w, t.s, ret));
	if (!ret) {
		bytes_write(t.s, vt, tag_new(w, nr));
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
	do {
		ret = hawk_block_unshare(t.s, lid_of(nr), now, plan(w), &vt, ref);
		plan_run(w);
	} while (grew(w, t.s, ret));
	copies_wait(w);
	if (!ret) {
		CHECK(tag_ok(bytes_read(t.s, vt), nr));
		bytes_write(t.s, vt, tag_new(w, nr));
		CHECK(!hawk_block_put(t.s, lid_of(nr), NULL, true, now));
	}
	fill_end(nr);
}

static void op_pin(struct worker *w, u32 nr, u64 now)
{
	struct hawk_ref ref, at;
	u64 vt, tag;
	int ret, i;

	do {
		ret = hawk_block_reload(t.s, lid_of(nr), HAWK_TIER_ANY, now, plan(w));
		plan_run(w);
	} while (grew(w, t.s, ret));
	if (ret == -ENOENT || hawk_block_pin(t.s, lid_of(nr), now, &vt, &ref))
		return;
	/* pinned: it stays, is found by its place, and its bytes stay too */
	CHECK(!hawk_block_at(t.s, vt, &at) && at.block == ref.block && at.gen == ref.gen);
	tag = bytes_read(t.s, vt);
	CHECK(tag_ok(tag, nr));
	for (i = host_below(&w->rng, 3); i; i--)
		sched_yield();
	CHECK(bytes_read(t.s, vt) == tag);
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
	int ret;

	host_key(key, host_below(&w->rng, KEYS));
	switch (host_below(&w->rng, 20)) {
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
		do {
			ret = hawk_space_writeback(t.s, 0, 512, 1, plan(w));
			plan_run(w);
		} while (grew(w, t.s, ret));
		break;
	case 15:
		op_drain(w, now);
		break;
	case 16 ... 17:
		op_other(w, nr, now);
		break;
	case 18:
		op_watch();
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
	u64 rng = t.seed, val, tag, off;
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
		off = hawk_frame_off(t.s, HAWK_VT_TIER(val), HAWK_VT_FRAME(val));
		/* its chunk may have gone meanwhile: then the entry has changed */
		tag = off == ~0ull ? 0 : tag_at(bytes_at(HAWK_VT_TIER(val), off));
		hawk_rmb();
		if (hawk_load(&e->val) != val ||
		    __atomic_load_n(&t.begun[nr / GROUP], __ATOMIC_SEQ_CST) != begun)
			continue;
		CHECK(tag_ok(tag, nr));
		t.accepted++;
	}
	return NULL;
}

/* Two spaces want more chunks than there are. */
static void spaces_begin(void)
{
	struct hawk_space_params p = {
		.block_bytes = 128 << 10, .block_tokens = 16, .max_blocks = 160, .buckets = 16,
	};
	u32 tier;

	host_init(&t.h, t.seed);
	for (tier = 0; tier < 2; tier++) {
		host_tier(&t.h, tier ? HAWK_TIER_BLK : HAWK_TIER_HOST, 5);
		p.quota_max[tier] = 4;
		p.quota_min[tier] = 1;
	}
	/* so that it is learnt what comes back */
	assert_int_equal(hawk_tier_admit(t.h.e, &(struct hawk_tier_admit) {
				 .flags = HAWK_ADMIT_SET, .tier = 1, .budget_bytes = 1ull << 50,
			 }, 0), 0);
	t.s = host_space(&t.h, &p);
	t.other = host_space(&t.h, &p);
}

/* Nothing is left behind. */
static void spaces_end(struct worker *w)
{
	struct hawk_stats st;
	u32 i;

	while (pool_run(w))
		;
	host_check(t.s);
	host_check(t.other);
	hawk_space_stats(t.s, &st);
	/* it was not idle */
	assert_true(st.reloads && st.evict_write && st.steals && st.flash_drop && t.accepted);
	assert_true(t.grown && t.stuck && t.drained && t.passed_on);
	assert_int_equal(st.pinned, 0);
	for (i = 0; i < LIDS; i++)
		hawk_block_free(t.s, lid_of(i));
	hawk_space_stats(t.s, &st);
	assert_int_equal(st.blocks, 0);
	assert_int_equal(st.resident + st.flash, 0);
	host_space_end(&t.h, t.s);
	host_space_end(&t.h, t.other);
	host_fini(&t.h);
}

static void threads(void **state)
{
	struct worker w[WORKERS] = { 0 };
	pthread_t reader;
	u32 i;

	(void)state;
	t.seed = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 1;
	t.rounds = (getenv("HAWK_OPS") ? strtoul(getenv("HAWK_OPS"), NULL, 0) : ROUNDS_DEFAULT) /
		   WORKERS;
	pthread_mutex_init(&t.pool_lock, NULL);
	pthread_mutex_init(&t.drain_lock, NULL);
	spaces_begin();
	t.running = WORKERS;
	for (i = 0; i < WORKERS; i++) {
		w[i].rng = t.seed * 1000 + i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	assert_int_equal(pthread_create(&reader, NULL, read_on, NULL), 0);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
	assert_int_equal(pthread_join(reader, NULL), 0);
	fprintf(stderr, "# %llu chunks grown, %llu refused, %llu drained, %llu kept in use; "
		"%llu moves by any thread, %llu reads\n", (unsigned long long)t.grown,
		(unsigned long long)t.stuck, (unsigned long long)t.drained,
		(unsigned long long)t.busy, (unsigned long long)t.passed_on,
		(unsigned long long)t.accepted);
	spaces_end(&w[0]);
}

/* ---- few frames for many threads ---- */

#define TIGHT_FRAMES	16	/* in one chunk */
#define TIGHT_BUCKETS	8

static struct {
	struct host h;
	struct hawk_space *s;
	u64 now;
	u64 again;
} tight;

/* One block at a time: pinned, published, maybe freed. */
static void *one_block(void *arg)
{
	struct worker *w = arg;
	u32 i, nr = 0;
	u64 vt, lid;
	int ret;

	for (i = 0; i < t.rounds; i++) {
		u64 now = __atomic_add_fetch(&tight.now, 1, __ATOMIC_RELAXED);

		lid = HAWK_LID(1 + (w->rng & 15), nr % 4, 0, nr / 4 % 16 * 16);
		nr = host_below(&w->rng, 64);
		do {
			ret = hawk_block_alloc(tight.s, lid, NULL, HAWK_TIER_ANY, now, plan(w), &vt);
			CHECK(!w->plan.n);
			if (ret == -EAGAIN)
				__atomic_fetch_add(&tight.again, 1, __ATOMIC_RELAXED);
		} while (host_grew(tight.s, ret) || ret == -EAGAIN);
		/* there is a frame for each thread all the time */
		CHECK(!ret || ret == -EEXIST);
		if (ret)
			continue;
		if (!host_below(&w->rng, 4))
			sched_yield();
		CHECK(!hawk_block_put(tight.s, lid, NULL, false, now));
		if (!host_below(&w->rng, 2))
			hawk_block_free(tight.s, lid);
	}
	return NULL;
}

/* Half of the frames are pinned for good; each thread needs one of the others. */
static void room_is_found(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = HAWK_CHUNK_BYTES / TIGHT_FRAMES, .block_tokens = 16,
		.max_blocks = 64, .buckets = TIGHT_BUCKETS, .quota_max = { 1 },
	};
	struct worker w[WORKERS] = { 0 };
	u64 vt;
	u32 i;
	int ret;

	(void)state;
	t.seed = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 1;
	t.rounds = (getenv("HAWK_OPS") ? strtoul(getenv("HAWK_OPS"), NULL, 0) : ROUNDS_DEFAULT) /
		   WORKERS;
	host_init(&tight.h, t.seed);
	host_tier(&tight.h, HAWK_TIER_HOST, 1);
	tight.s = host_space(&tight.h, &p);
	for (i = 0; i < TIGHT_FRAMES - WORKERS; i++) {
		do {
			ret = hawk_block_alloc(tight.s, HAWK_LID(99, 0, 0, i * 16), NULL,
					       HAWK_TIER_ANY, 1, NULL, &vt);
		} while (host_grew(tight.s, ret));
		assert_int_equal(ret, 0);
	}
	for (i = 0; i < WORKERS; i++) {
		w[i].rng = t.seed * 1000 + i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, one_block, &w[i]), 0);
	}
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
	fprintf(stderr, "# told to ask again %llu times\n", (unsigned long long)tight.again);
	host_check(tight.s);
	host_space_end(&tight.h, tight.s);
	host_fini(&tight.h);
}

/* ---- ways of one vTLB line ---- */

#define SETS	100000	/* by each thread */

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

	for (i = 0; i < SETS; i++) {
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
		cmocka_unit_test(room_is_found),
		cmocka_unit_test(ways_have_one_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
