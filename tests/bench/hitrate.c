// SPDX-License-Identifier: MIT
/*
 * hitrate.c - share of block accesses served, PB-LRU against one global LRU
 *
 * Standard input: one number per block access of the trace, in order; an empty
 * line ends a request.  Each request is a sequence of its own; a block that is not
 * there is allocated under the request's LID and published under its key, so a
 * block's bucket follows from the LID of who came first, as in a server.  The
 * peer is one LRU list over the same number of frames (lru.c).
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../kmod/core/core.h"
#include "bench.h"
#include "grow.h"
#include "lru.h"

#define BLOCK_TOKENS	512u
#define BLOCK_BYTES	HAWK_CHUNK_BYTES	/* one frame per chunk: any size fits */

struct access {
	u32 id;
	u32 seq;
	u32 pos;
};

static struct access *trace;
static size_t trace_len;

static void trace_read(void)
{
	struct access a = { .seq = 1 };
	size_t room = 0;
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] == '\n') {
			a.seq++;
			a.pos = 0;
			continue;
		}
		if (trace_len == room) {
			room = room ? 2 * room : 1 << 16;
			trace = realloc(trace, room * sizeof(*trace));
			if (!trace)
				bench_die("no memory for the trace");
		}
		a.id = strtoul(line, NULL, 10);
		trace[trace_len++] = a;
		a.pos++;
	}
	if (!trace_len)
		bench_die("no trace on standard input");
}

static u64 run_peer(u32 frames)
{
	struct lru *l = lru_create(frames);
	u64 hits = 0;
	size_t i;
	u32 f;

	for (i = 0; i < trace_len; i++) {
		if (lru_touch(l, trace[i].id))
			hits++;
		else if (!lru_alloc(l, trace[i].id, &f) || !lru_put(l, trace[i].id))
			bench_die("the peer has no frame");
	}
	lru_destroy(l);
	return hits;
}

static u64 run_space(struct hawk_space *s)
{
	u8 key[HAWK_KEY_BYTES] = { [31] = 1 };
	struct hawk_ref ref;
	u64 hits = 0, lid, vt;
	size_t i;
	int ret;

	for (i = 0; i < trace_len; i++) {
		memcpy(key, &trace[i].id, sizeof(trace[i].id));
		if (!hawk_block_find(s, key, false, i, &lid, &vt, &ref)) {
			hits++;
			continue;
		}
		lid = HAWK_LID(trace[i].seq, 0, 0, trace[i].pos * BLOCK_TOKENS);
		do {
			ret = hawk_block_alloc(s, lid, NULL, HAWK_TIER_ANY, i, NULL, &vt);
		} while (bench_grew(s, ret));
		bench_check(ret, "alloc");
		bench_check(hawk_block_put(s, lid, key, false, i), "put");
	}
	return hits;
}

static u64 run_ours(u32 frames)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK_BYTES,
		.block_tokens = BLOCK_TOKENS,
		.max_blocks = frames,
		.buckets = 64,
		.quota_max = { frames },
	};
	struct hawk_engine *e = hawk_engine_create();
	struct hawk_space *s;
	u64 hits;
	u32 tier;

	bench_check(hawk_tier_add(e, HAWK_TIER_HOST, frames, &tier), "tier");
	p.vtlb = bench_table(hawk_vtlb_bytes(frames));
	bench_check(hawk_space_create(e, &p, &s), "space");
	hits = run_space(s);
	hawk_space_destroy(s);
	hawk_engine_destroy(e);
	free(p.vtlb);
	return hits;
}

int main(int argc, char **argv)
{
	static const u32 sizes[] = { 1000, 5000, 10000, 30000 };
	struct bench_opts o = { 0 };
	char name[64];
	size_t i;

	bench_args(&o, argc, argv);
	trace_read();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] == 5000)
			snprintf(name, sizeof(name), "hitrate_vs_global_lru");
		else
			snprintf(name, sizeof(name), "hitrate_vs_global_lru_%uk", sizes[i] / 1000);
		bench_emit(name, BENCH_OURS, 100.0 * run_ours(sizes[i]) / trace_len, "%");
		bench_emit(name, BENCH_PEER, 100.0 * run_peer(sizes[i]) / trace_len, "%");
	}
	free(trace);
	return 0;
}
