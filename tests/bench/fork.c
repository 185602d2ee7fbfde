// SPDX-License-Identifier: MIT
/*
 * fork.c - a second sequence with a context of 64k tokens
 *
 * Ours: hawk_seq_fork(); the end of the fork is not counted.  Peer: its own copy of the
 * KV bytes, by memcpy() into memory that is there already, so the peer neither allocates
 * nor looks anything up.  1 KiB for each token in each of 2 layers, which is little: the
 * copy grows with the model, the fork does not.  CPU time of one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "space.h"

#define TOKENS		65536u
#define LAYERS		2u
#define BLOCK_BYTES	(SPACE_TOKENS << 10)
#define BLOCKS		(TOKENS / SPACE_TOKENS * LAYERS)
#define STEP		(HAWK_BATCH_MAX / LAYERS * SPACE_TOKENS)	/* tokens of an append */
#define ROUNDS		64u	/* forks between looks at the clock */

struct context {
	struct hawk_kv *kv;
	uint32_t seq;
	void *block[BLOCKS];
	uint8_t *copy;
};

/* The blocks stay where they are: the handle keeps its pins. */
static void build(struct context *c)
{
	static struct hawk_item it[HAWK_BATCH_MAX];
	const struct hawk_opts keep = { .flags = HAWK_BATCH_KEEP_PIN };
	struct hawk_append a = { .seq = c->seq, .len = STEP, .it = it, .max = HAWK_BATCH_MAX };
	uint32_t i, n = 0;

	for (a.pos = 0; a.pos < TOKENS; a.pos += STEP) {
		bench_check(hawk_seq_append(c->kv, &a), hawk_strerror_last());
		for (i = 0; i < a.n; i++, n++) {
			c->block[n] = hawk_addr(c->kv, it[i].vt);
			memset(c->block[n], (int)n, BLOCK_BYTES);
		}
		bench_check(hawk_put(c->kv, it, a.n, &keep), hawk_strerror_last());
	}
	if (n != BLOCKS)
		bench_die("%u blocks, not %u", n, BLOCKS);
}

static double measure_ours(struct context *c, uint64_t ns)
{
	uint32_t fork[ROUNDS], i;
	uint64_t t0, spent = 0, n = 0;

	for (; spent < ns; n += ROUNDS) {
		t0 = bench_cpu();
		for (i = 0; i < ROUNDS; i++)
			bench_check(hawk_seq_fork(c->kv, c->seq, 0, &fork[i]),
				    hawk_strerror_last());
		spent += bench_cpu() - t0;
		for (i = 0; i < ROUNDS; i++)
			bench_check(hawk_seq_free(c->kv, fork[i]), hawk_strerror_last());
	}
	return (double)spent / (double)n / 1e3;
}

static double measure_peer(struct context *c, uint64_t ns)
{
	uint64_t t0 = bench_cpu(), n = 0;
	uint32_t i;

	do {
		for (i = 0; i < BLOCKS; i++)
			memcpy(c->copy + (uint64_t)i * BLOCK_BYTES, c->block[i], BLOCK_BYTES);
		n++;
	} while (bench_cpu() - t0 < ns);
	bench_keep(c->copy[n]);
	return (double)(bench_cpu() - t0) / (double)n / 1e3;
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 7, .ms = 200, .url = "embed:?dram=160M" };
	struct hawk_kv_params p = {
		.block_bytes = BLOCK_BYTES, .block_tokens = SPACE_TOKENS, .layers = LAYERS,
		.head_groups = 1, .max_blocks = 2 * BLOCKS, .quota_all = 1, .seqs = 2 * ROUNDS,
	};
	static struct context c;
	struct bench_space s;
	uint64_t ns;
	uint32_t r;

	bench_args(&o, argc, argv);
	ns = o.ms * 1000000ull;
	space_open(&s, o.url, 160 * SPACE_MIB, NULL, 0);
	bench_check(hawk_kv_create(s.h, &p, &s.kv), hawk_strerror_last());
	c.kv = s.kv;
	bench_check(hawk_seq_new(c.kv, 0, &c.seq), hawk_strerror_last());
	build(&c);
	c.copy = bench_table((uint64_t)BLOCKS * BLOCK_BYTES);
	measure_ours(&c, ns / 10);
	measure_peer(&c, ns / 10);
	for (r = 0; r < o.runs; r++) {
		bench_emit("fork_vs_copy", BENCH_OURS, measure_ours(&c, ns), "us");
		bench_emit("fork_vs_copy", BENCH_PEER, measure_peer(&c, ns), "us");
	}
	free(c.copy);
	space_close(&s);
	return 0;
}
