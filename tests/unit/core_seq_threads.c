// SPDX-License-Identifier: MIT
/*
 * core_seq_threads.c - threads on sequences that they share
 *
 * A few sequences are everybody's: threads append to them, fork, drop, compose, compact
 * and end them at the same time, and free what becomes free, while blocks are put under
 * the LIDs that they got and pinned under those of others.  Nobody is told what the
 * others do, so an operation may fail; but an invariant must not, no block may be left
 * when all sequences have ended, and the bytes of a block that can be pinned where a
 * map says it lies are those of its LID, unless the map has changed since.  TSan
 * watches (make SAN=thread).
 *
 *	HAWK_SEED=n	the seed; the interleaving is not repeated
 *	HAWK_OPS=n	operations of each thread
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "core_seq_host.h"

#define WORKERS		4
#define SHARED		12

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPS_DEFAULT	20000
#else
#define OPS_DEFAULT	100000
#endif

static struct {
	struct seqs x;
	u32 seq[SHARED];	/* handles, atomic; may have ended */
	u64 seed, ops;
	u64 ok[16], failed[16];
	u64 put, late, compacted;
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

static void reap(struct worker *w)
{
	u32 freed = 0;

	while (hawk_seq_reap(t.x.s, 1 + host_below(&w->rng, 8), &freed))
		;
}

static u64 *tag_of(u64 vt)
{
	u32 tier = HAWK_VT_TIER(vt);

	return (u64 *)(t.x.h.tier[tier].mem + hawk_frame_off(t.x.s, tier, HAWK_VT_FRAME(vt)));
}

/* Put blocks for [@tok, @tok + @len) of a run, where there are none. */
static void put(struct worker *w, u32 run, u32 tok, u32 len)
{
	u32 at, layer;
	u64 lid, vt;
	int ret;

	for (at = tok - tok % SEQ_BT; at < tok + len; at += SEQ_BT)
		for (layer = 0; layer < SEQ_LAYERS; layer++) {
			lid = HAWK_LID(run, layer, 0, at);
			w->plan.n = 0;
			do {
				ret = hawk_block_alloc(t.x.s, lid, NULL, HAWK_TIER_ANY, 1,
						       &w->plan, &vt);
			} while (host_grew(t.x.s, ret));
			if (ret == -EINVAL)	/* its sequence has ended meanwhile */
				__atomic_fetch_add(&t.late, 1, __ATOMIC_RELAXED);
			if (ret)
				continue;
			*tag_of(vt) = lid;
			CHECK(!hawk_block_put(t.x.s, lid, NULL, false, 1));
			__atomic_fetch_add(&t.put, 1, __ATOMIC_RELAXED);
		}
}

/* Where a map says that a token lies, there is its block, or none. */
static void visit(struct worker *w, u32 seq)
{
	struct hawk_seg seg[32];
	struct hawk_seq_map map = { .seq = seq, .count = 32 };
	struct hawk_ref ref;
	u64 lid, vt;
	u32 i;

	if (hawk_seq_map(t.x.s, &map, seg))
		return;
	for (i = 0; i < map.count; i++) {
		lid = hawk_lid_block(HAWK_LID(seg[i].run, host_below(&w->rng, SEQ_LAYERS), 0,
					      seg[i].tok), SEQ_BT);
		if (hawk_block_pin(t.x.s, lid, 1, &vt, &ref))
			continue;
		CHECK(*tag_of(vt) == lid);
		CHECK(!hawk_block_unpin(t.x.s, ref));
	}
	reap(w);
}

static void compact(struct worker *w)
{
	struct hawk_seg src[32];
	struct hawk_compact c = { .max = 32, .src = src };
	bool ok = host_below(&w->rng, 4);

	if (hawk_seq_compact_pick(t.x.s, &c))
		return;
	put(w, c.run, 0, c.rows * SEQ_BT);
	if (!hawk_seq_compact_end(t.x.s, &c, ok))
		__atomic_fetch_add(&t.compacted, 1, __ATOMIC_RELAXED);
	reap(w);
}

static void draw_op(struct worker *w, struct hawk_seq_op *op)
{
	static const u32 codes[] = {
		HAWK_SEQ_FORK, HAWK_SEQ_APPEND, HAWK_SEQ_APPEND, HAWK_SEQ_APPEND,
		HAWK_SEQ_RESERVE, HAWK_SEQ_ADVANCE, HAWK_SEQ_DROP, HAWK_SEQ_DROP,
		HAWK_SEQ_REPOS, HAWK_SEQ_TRUNCATE, HAWK_SEQ_COMPOSE, HAWK_SEQ_FREE,
	};
	u32 other = hawk_load(&t.seq[host_below(&w->rng, SHARED)]);
	u32 at = host_below(&w->rng, 60), n = 1 + host_below(&w->rng, 12);

	*op = (struct hawk_seq_op){ .op = codes[host_below(&w->rng, ARRAY_SIZE(codes))] };
	op->seq = hawk_load(&t.seq[host_below(&w->rng, SHARED)]);
	switch (op->op) {
	case HAWK_SEQ_FORK:
		op->src = other;
		break;
	case HAWK_SEQ_TRUNCATE:
		op->len = at;
		break;
	case HAWK_SEQ_COMPOSE:
	case HAWK_SEQ_REPOS:
	case HAWK_SEQ_DROP:
		op->src = op->op == HAWK_SEQ_COMPOSE ? other : 0;
		op->shift = op->op == HAWK_SEQ_DROP ? 0 : -(s32)(n % 3);
		op->start = at;
		op->end = at + n;
		break;
	case HAWK_SEQ_FREE:
		break;
	default:
		op->len = n;
	}
}

static void one_op(struct worker *w)
{
	u32 slot = host_below(&w->rng, SHARED);
	struct hawk_seq_op op;

	draw_op(w, &op);
	hawk_seq_do(t.x.s, SEQ_OWNER + slot % 3, &op);
	__atomic_fetch_add(op.status ? &t.failed[op.op] : &t.ok[op.op], 1, __ATOMIC_RELAXED);
	if (!op.status && (op.op == HAWK_SEQ_APPEND || op.op == HAWK_SEQ_RESERVE))
		put(w, op.run, op.tok, op.len);
	if (op.status == -ENOENT)
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_NEW };
	if (op.op == HAWK_SEQ_NEW)
		hawk_seq_do(t.x.s, SEQ_OWNER + slot % 3, &op);
	if (!op.status && op.op <= HAWK_SEQ_FORK)
		hawk_store(&t.seq[slot], op.seq);
	reap(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	u64 i;

	w->plan.move = w->move;
	w->plan.max = ARRAY_SIZE(w->move);
	for (i = 0; i < t.ops; i++)
		switch (host_below(&w->rng, 16)) {
		case 0:
			visit(w, hawk_load(&t.seq[host_below(&w->rng, SHARED)]));
			break;
		case 1:
			compact(w);
			break;
		case 2:
			if (!host_below(&w->rng, 64))
				hawk_seq_end_owner(t.x.s, SEQ_OWNER + host_below(&w->rng, 3));
			break;
		default:
			one_op(w);
		}
	return NULL;
}

static void threads(void **state)
{
	static struct worker w[WORKERS];
	u32 i, freed = 0;

	(void)state;
	t.ops = getenv("HAWK_OPS") ? strtoull(getenv("HAWK_OPS"), NULL, 0) : OPS_DEFAULT;
	t.seed = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 20261130;
	fprintf(stderr, "# HAWK_SEED=%llu HAWK_OPS=%llu\n", (unsigned long long)t.seed,
		(unsigned long long)t.ops);
	seqs_init(&t.x, 64, 0, t.seed);
	for (i = 0; i < WORKERS; i++) {
		w[i].rng = t.seed + 1 + i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; i < WORKERS; i++)
		pthread_join(w[i].thread, NULL);
	while (hawk_seq_reap(t.x.s, 1000, &freed))
		;
	host_check(t.x.s);
	for (i = 0; i < 3; i++)
		while (hawk_seq_end_owner(t.x.s, SEQ_OWNER + i))
			;
	while (hawk_seq_reap(t.x.s, 1000, &freed))
		;
	/* nothing is left, also where one came too late */
	assert_int_equal(seqs_lids(&t.x), 0);
	seqs_check(&t.x);
	seqs_fini(&t.x);
	fprintf(stderr, "# %llu blocks put, %llu too late, %llu compacted\n",
		(unsigned long long)t.put, (unsigned long long)t.late,
		(unsigned long long)t.compacted);
	for (i = HAWK_SEQ_FORK; i <= HAWK_SEQ_FREE; i++)
		assert_true(t.ok[i] > t.ops / 10000);
	assert_true(t.put > t.ops / 100 && t.compacted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
