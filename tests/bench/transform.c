// SPDX-License-Identifier: MIT
/*
 * transform.c - KV from one layout to another by the CPU, beside a plain copy
 *
 * Ours: hawk_layout_copy() by one thread.  Peer: memcpy() of as many bytes between the same
 * buffers.  fp16 with heads of 128 elements; the buffers are several times the last cache, and
 * their pages are there.  CPU time of the thread.
 *
 * tile16: row major in blocks of 64 tokens to tiles of 16 x 16.
 * reshard: the slices of 2 ranks to those of 4, both [token, head, dim].
 */
#include <string.h>

#include <hawk/layout.h>

#include "bench.h"

#define HEADS	8u
#define LAYERS	8u
#define TOKENS	64u	/* of a block */
#define DIM	128u

struct buffers {
	uint8_t *src;
	uint8_t *dst;
	uint64_t bytes;
	uint32_t blocks;
};

static struct hawk_layout model(const struct buffers *b)
{
	return (struct hawk_layout){
		.elem_bytes = 2, .dim = DIM, .heads_all = HEADS, .layers_all = LAYERS,
		.block_tokens = TOKENS, .blocks = b->blocks,
	};
}

static struct hawk_layout_plan *plan_open(const struct buffers *b, struct hawk_layout *from,
					  struct hawk_layout *to)
{
	const struct hawk_range r = { .tokens = b->blocks * TOKENS };
	struct hawk_layout_plan *plan;

	bench_check(hawk_layout_plan_open(from, to, &r, &plan), hawk_strerror_last());
	return plan;
}

static void copy(const struct hawk_layout_plan *plan, const struct hawk_layout *from,
		 const uint8_t *src, const struct hawk_layout *to, uint8_t *dst)
{
	const struct hawk_copy c = {
		.src = src, .src_bytes = from->bytes, .dst = dst, .dst_bytes = to->bytes,
		.flags = HAWK_COPY_STREAM,
	};

	bench_check(hawk_layout_copy(plan, &c), hawk_strerror_last());
}

static double rate(uint64_t bytes, uint64_t ns)
{
	return (double)bytes * 1e3 / (double)ns;
}

static double tile16(const struct buffers *b)
{
	struct hawk_layout from = model(b), to = model(b);
	struct hawk_layout_plan *plan;
	uint64_t t;

	bench_check(hawk_layout_form(&from, HAWK_FORM_HND), hawk_strerror_last());
	bench_check(hawk_layout_form(&to, HAWK_FORM_TILE16), hawk_strerror_last());
	plan = plan_open(b, &from, &to);
	t = bench_cpu();
	copy(plan, &from, b->src, &to, b->dst);
	t = bench_cpu() - t;
	hawk_layout_plan_close(plan);
	return rate(b->bytes, t);
}

/* Rank r of 4 gets its heads from rank r / 2 of 2. */
static double reshard(const struct buffers *b)
{
	struct hawk_layout from[4], to[4];
	struct hawk_layout_plan *plan[4];
	uint32_t r;
	uint64_t t;

	for (r = 0; r < 4; r++) {
		from[r] = model(b);
		to[r] = model(b);
		bench_check(hawk_layout_slice(&from[r], HAWK_FORM_NHD, r / 2, 2),
			    hawk_strerror_last());
		bench_check(hawk_layout_slice(&to[r], HAWK_FORM_NHD, r, 4), hawk_strerror_last());
		plan[r] = plan_open(b, &from[r], &to[r]);
	}
	t = bench_cpu();
	for (r = 0; r < 4; r++)
		copy(plan[r], &from[r], b->src + r / 2 * from[r].bytes, &to[r],
		     b->dst + r * to[r].bytes);
	t = bench_cpu() - t;
	for (r = 0; r < 4; r++)
		hawk_layout_plan_close(plan[r]);
	return rate(b->bytes, t);
}

static double plain(const struct buffers *b)
{
	uint64_t t = bench_cpu();

	memcpy(b->dst, b->src, b->bytes);
	t = bench_cpu() - t;
	bench_keep(b->dst[b->bytes / 2]);
	return rate(b->bytes, t);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double (*ours)(const struct buffers *b);
	} rows[] = {
		{ "transform_tile16_vs_memcpy", tile16 },
		{ "transform_reshard_vs_memcpy", reshard },
	};
	struct bench_opts o = { .runs = 7, .mib = 256 };
	struct buffers b = { 0 };
	unsigned int i, r;

	bench_args(&o, argc, argv);
	b.blocks = o.mib * (1u << 20) / (2 * LAYERS * HEADS * TOKENS * DIM * 2);
	b.bytes = (uint64_t)b.blocks * 2 * LAYERS * HEADS * TOKENS * DIM * 2;
	if (!b.blocks)
		bench_die("-s %u: at least 2", o.mib);
	b.src = bench_table(b.bytes);
	b.dst = bench_table(b.bytes);
	memset(b.src, 1, b.bytes);
	for (i = 0; i < 2; i++) {
		rows[i].ours(&b);
		plain(&b);
		for (r = 0; r < o.runs; r++) {
			bench_emit(rows[i].name, BENCH_OURS, rows[i].ours(&b), "MB/s");
			bench_emit(rows[i].name, BENCH_PEER, plain(&b), "MB/s");
		}
	}
	return 0;
}
