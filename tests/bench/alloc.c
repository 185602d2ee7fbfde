// SPDX-License-Identifier: MIT
/*
 * alloc.c - allocate and evict in a full cache, by several threads
 *
 * Each operation is hawk_block_alloc() + hawk_block_put() of a block never seen
 * before, so each evicts the coldest block of its bucket.  There is no flash tier,
 * no bytes are touched and no library is above: what is measured is the engine.
 * The peer (lru.c) does the same two steps under its one mutex.  Threads fill
 * sequences of 256 blocks of their own, as decode streams do.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../kmod/core/core.h"
#include "bench.h"
#include "grow.h"
#include "lru.h"

#define FRAMES		65536u	/* 8 GiB of blocks of 128 KiB */
#define BLOCK_BYTES	(128u << 10)
#define BLOCK_TOKENS	16u
#define SEQ_BLOCKS	256u
#define THREADS_MAX	4
#define LOOK		64	/* operations between looks at the stop flag */

struct shared {
	struct hawk_engine *engine;
	struct hawk_space *space;
	struct hawk_vtlb_entry *vtlb;
	struct lru *lru;
	pthread_barrier_t start;
	bool stop;
};

struct worker {
	pthread_t thread;
	struct shared *sh;
	enum bench_side side;
	u64 n;		/* LIDs used so far by this thread, both runs and fill */
	u32 id;
	double rate;	/* operations per second */
} __attribute__((aligned(64)));

static u64 next_lid(struct worker *w)
{
	u64 seq = w->n / SEQ_BLOCKS * THREADS_MAX + w->id;
	u64 lid = HAWK_LID(1 + seq % HAWK_LID_SEQ_MAX, 0, 0,
			   w->n % SEQ_BLOCKS * BLOCK_TOKENS);

	w->n++;
	return lid;
}

static void one_ours(struct worker *w)
{
	struct hawk_space *s = w->sh->space;
	u64 vt, lid = next_lid(w);
	int ret;

	do {
		ret = hawk_block_alloc(s, lid, NULL, HAWK_TIER_ANY, w->n, NULL, &vt);
	} while (bench_grew(s, ret));
	bench_check(ret, "alloc");
	bench_check(hawk_block_put(s, lid, NULL, false, w->n), "put");
	bench_keep(vt);
}

static void one_peer(struct worker *w)
{
	u64 lid = next_lid(w);
	u32 frame;

	if (!lru_alloc(w->sh->lru, lid, &frame) || !lru_put(w->sh->lru, lid))
		bench_die("the peer lost a block");
	bench_keep(frame);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	u64 t0, ops;
	u32 i;

	pthread_barrier_wait(&w->sh->start);
	t0 = bench_now();
	for (ops = 0; !__atomic_load_n(&w->sh->stop, __ATOMIC_RELAXED); ops += LOOK)
		for (i = 0; i < LOOK; i++) {
			if (w->side == BENCH_OURS)
				one_ours(w);
			else
				one_peer(w);
		}
	w->rate = (double)ops * 1e9 / (double)(bench_now() - t0);
	return NULL;
}

/* Return: operations per second of @threads threads together. */
static double measure(struct shared *sh, struct worker *w, enum bench_side side, u32 threads,
		      u32 ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000l };
	double rate = 0;
	u32 i;

	sh->stop = false;
	pthread_barrier_init(&sh->start, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		w[i].side = side;
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			bench_die("cannot start a thread");
	}
	pthread_barrier_wait(&sh->start);
	nanosleep(&ts, NULL);
	__atomic_store_n(&sh->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		rate += w[i].rate;
	}
	pthread_barrier_destroy(&sh->start);
	return rate;
}

static void setup(struct shared *sh)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK_BYTES,
		.block_tokens = BLOCK_TOKENS,
		.max_blocks = FRAMES,
	};
	u32 tier;

	sh->engine = hawk_engine_create();
	p.quota_max[0] = FRAMES / (HAWK_CHUNK_BYTES / BLOCK_BYTES);
	bench_check(hawk_tier_add(sh->engine, HAWK_TIER_HOST, p.quota_max[0], &tier), "tier");
	sh->vtlb = bench_table(hawk_vtlb_bytes(FRAMES));
	p.vtlb = sh->vtlb;
	bench_check(hawk_space_create(sh->engine, &p, &sh->space), "space");
	sh->lru = lru_create(FRAMES);
}

static void teardown(struct shared *sh)
{
	hawk_space_destroy(sh->space);
	hawk_engine_destroy(sh->engine);
	free(sh->vtlb);
	lru_destroy(sh->lru);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 7, .ms = 700 };
	static const u32 threads[] = { 1, 2, THREADS_MAX };
	struct worker w[2][THREADS_MAX] = { 0 };
	struct shared sh;
	char name[64];
	u32 i, r, side;

	bench_args(&o, argc, argv);
	setup(&sh);
	for (i = 0; i < 2 * THREADS_MAX; i++) {
		w[i / THREADS_MAX][i % THREADS_MAX].sh = &sh;
		w[i / THREADS_MAX][i % THREADS_MAX].id = i % THREADS_MAX;
	}
	for (i = 0; i < 2 * FRAMES; i++) {	/* fill both: steady state from here on */
		one_ours(&w[BENCH_OURS][i % THREADS_MAX]);
		one_peer(&w[BENCH_PEER][i % THREADS_MAX]);
	}
	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		snprintf(name, sizeof(name), "alloc_evict_vs_global_lru_t%u", threads[i]);
		for (r = 0; r < o.runs; r++)
			for (side = BENCH_OURS; side <= BENCH_PEER; side++)
				bench_emit(name, side, measure(&sh, w[side], side, threads[i],
							       o.ms), "op/s");
	}
	teardown(&sh);
	return 0;
}
