// SPDX-License-Identifier: MIT
/*
 * rollback.c - a wrong draft of 8 tokens is taken back, of a model of 32 layers
 *
 * Ours: the 8 slots are taken and rejected in a draft ring.  Peer: the same device
 * without one: the draft's blocks, one for each layer, are given back through the
 * allocator (hawk_unpin() of blocks being filled ends them); taking them is not
 * counted.  CPU time of one thread, bytes are not touched.
 */
#include "bench.h"
#include "space.h"

#define LAYERS		32u
#define DRAFT		8u	/* tokens */
#define ROUNDS		1000u	/* between looks at the clock, ours */
#define BLOCK_BYTES	4096u

static double measure_ours(struct hawk_drafts *d, uint64_t ns)
{
	uint64_t t0 = bench_cpu(), n = 0, i, k;
	int slot = 0;

	do {
		for (i = 0; i < ROUNDS; i++, n++) {
			for (k = 0; k < DRAFT; k++)
				slot |= hawk_draft_slot(d);
			hawk_draft_reject(d);
		}
	} while (bench_cpu() - t0 < ns);
	if (slot < 0)
		bench_die("a slot was refused");
	return (double)(bench_cpu() - t0) / (double)n;
}

static void take_blocks(struct hawk_kv *kv, struct hawk_item *it)
{
	uint32_t i;

	for (i = 0; i < LAYERS; i++)
		it[i] = (struct hawk_item){ .lid = HAWK_LID(1, i, 0, 0) };
	if (hawk_alloc(kv, it, LAYERS, NULL) != (int)LAYERS)
		bench_die("alloc: %s", hawk_strerror_last());
}

static double measure_peer(struct hawk_kv *kv, uint64_t ns)
{
	uint64_t t0, spent = 0, n = 0;
	struct hawk_item it[LAYERS];

	while (spent < ns) {
		take_blocks(kv, it);
		t0 = bench_cpu();
		if (hawk_unpin(kv, it, LAYERS) != (int)LAYERS)
			bench_die("unpin: %s", hawk_strerror_last());
		spent += bench_cpu() - t0;
		n++;
	}
	return (double)spent / (double)n;
}

int main(int argc, char **argv)
{
	struct hawk_draft_params dp = { .slots = 32, .planes = 2, .token_bytes = 128 };
	struct bench_opts o = { .runs = 7, .ms = 200, .url = "embed:?dram=64M" };
	struct hawk_kv_params p = {
		.block_bytes = BLOCK_BYTES, .block_tokens = SPACE_TOKENS, .layers = LAYERS,
		.head_groups = 1, .max_blocks = 4096, .quota_all = 1,
	};
	struct bench_space s;
	struct hawk_drafts *d;
	uint64_t ns;
	uint32_t r;

	bench_args(&o, argc, argv);
	ns = o.ms * 1000000ull;
	space_open(&s, o.url, 64 * SPACE_MIB, NULL, 0);
	bench_check(hawk_kv_create(s.h, &p, &s.kv), hawk_strerror_last());
	bench_check(hawk_draft_open(s.kv, &dp, &d), hawk_strerror_last());
	measure_ours(d, ns / 10);
	measure_peer(s.kv, ns / 10);
	for (r = 0; r < o.runs; r++) {
		bench_emit("rollback_vs_block_free", BENCH_OURS, measure_ours(d, ns), "ns");
		bench_emit("rollback_vs_block_free", BENCH_PEER, measure_peer(s.kv, ns), "ns");
	}
	hawk_draft_close(d);
	space_close(&s);
	return 0;
}
