// SPDX-License-Identifier: MIT
/*
 * decode.c - the executor's decode speed, KV in Hawk frames or in a private array
 *
 * One executor, one model (-f).  Both sides hold the KV of the same sequences: one
 * in pinned blocks of an embedded Hawk space, the other in one array from
 * aligned_alloc().  A measurement decodes token after token for all sequences of
 * the batch together, from the same context each time, so both sides do the same
 * arithmetic; their last logits must agree bit for bit.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "exec/exec.h"
#include "space.h"

#define BATCH_MAX	8u
#define TOKENS		16u	/* per block */
#define PREFILL_ROWS	64u
#define STEPS		64u	/* tokens decoded per sequence and measurement */

struct decode {
	struct model *model;
	struct exec *exec;
	struct bench_space space;
	uint32_t context;	/* tokens before the first decoded one */
	uint32_t seq_blocks;
	uint32_t block_bytes;
	void **block[2];	/* by side: BATCH_MAX * seq_blocks addresses */
	struct exec_seg seg[2][BATCH_MAX];
	void *private;
};

static int32_t token_at(const struct decode *d, uint32_t seq, uint32_t pos)
{
	uint64_t state = 1 + seq * 65536ull + pos;

	return (int32_t)(bench_rand(&state) >> 33) % (int32_t)d->model->cfg.n_vocab;
}

static void hawk_blocks(struct decode *d)
{
	uint32_t i, n = BATCH_MAX * d->seq_blocks;
	struct hawk_item *it = calloc(n, sizeof(*it));

	if (!it)
		bench_die("no memory");
	for (i = 0; i < n; i++)
		it[i].lid = space_lid(i);
	if (hawk_alloc(d->space.kv, it, n, NULL) != (int)n)
		bench_die("allocating %u blocks: %s", n, hawk_strerror_last());
	for (i = 0; i < n; i++)
		d->block[BENCH_OURS][i] = hawk_addr(d->space.kv, it[i].vt);
	free(it);
}

static void step(struct decode *d, const struct exec_row *row, uint32_t n)
{
	bench_check(exec_step(d->exec, row, n), "exec_step");
}

static void prefill(struct decode *d, enum bench_side side)
{
	struct exec_row row[PREFILL_ROWS];
	uint32_t seq, pos, i, n;

	for (seq = 0; seq < BATCH_MAX; seq++)
		for (pos = 0; pos < d->context; pos += n) {
			n = d->context - pos < PREFILL_ROWS ? d->context - pos : PREFILL_ROWS;
			for (i = 0; i < n; i++)
				row[i] = (struct exec_row) {
					.token = token_at(d, seq, pos + i),
					.pos = pos + i,
					.at = pos + i,
					.segs = &d->seg[side][seq],
					.n_segs = 1,
				};
			step(d, row, n);
		}
}

/* Return: tokens per second of @batch sequences together. */
static double measure(struct decode *d, enum bench_side side, uint32_t batch, unsigned int ms)
{
	struct exec_row row[BATCH_MAX];
	uint64_t t0 = bench_now(), t, tokens = 0;
	uint32_t seq, i;

	do {
		for (i = 0; i < STEPS; i++) {
			for (seq = 0; seq < batch; seq++)
				row[seq] = (struct exec_row) {
					.token = token_at(d, seq, d->context + i),
					.pos = d->context + i,
					.at = d->context + i,
					.segs = &d->seg[side][seq],
					.n_segs = 1,
					.want_logits = true,
				};
			step(d, row, batch);
		}
		tokens += STEPS * batch;
		t = bench_now();
	} while (t - t0 < ms * 1000000ull);
	return (double)tokens * 1e9 / (double)(t - t0);
}

static void compare(struct decode *d, const char *name, uint32_t batch,
		    const struct bench_opts *o)
{
	size_t bytes = d->model->cfg.n_vocab * sizeof(float);
	float *logits = malloc(bytes);
	unsigned int r;

	if (!logits)
		bench_die("no memory");
	measure(d, BENCH_PEER, batch, 1);
	memcpy(logits, exec_logits(d->exec, batch - 1), bytes);
	measure(d, BENCH_OURS, batch, 1);
	if (memcmp(logits, exec_logits(d->exec, batch - 1), bytes))
		bench_die("the two sides compute different logits");
	free(logits);
	for (r = 0; r < o->runs; r++) {
		bench_emit(name, BENCH_OURS, measure(d, BENCH_OURS, batch, o->ms), "tok/s");
		bench_emit(name, BENCH_PEER, measure(d, BENCH_PEER, batch, o->ms), "tok/s");
	}
}

static void setup(struct decode *d, const struct bench_opts *o)
{
	struct exec_config cfg = {
		.max_rows = PREFILL_ROWS,
		.max_logits = BATCH_MAX,
		.block_tokens = TOKENS,
		.kv_type = EXEC_KV_F16,
	};
	char err[GGUF_ERR_LEN];
	size_t payload;
	uint32_t i, n;

	bench_check(model_load(o->file, &d->model, err), err);
	bench_check(exec_create(d->model, &cfg, &d->exec, err), err);
	d->context = d->model->cfg.n_ctx / 2 < 1024 ? d->model->cfg.n_ctx / 2 : 1024;
	d->seq_blocks = (d->context + STEPS + TOKENS - 1) / TOKENS;
	n = BATCH_MAX * d->seq_blocks;
	payload = exec_kv_block_bytes(&d->model->cfg, TOKENS, cfg.kv_type);
	d->block_bytes = (uint32_t)((payload + HAWK_FRAME_ALIGN - 1) / HAWK_FRAME_ALIGN *
				    HAWK_FRAME_ALIGN);
	space_open(&d->space, o->url, 0, NULL, 0);
	space_create(&d->space, d->block_bytes, n, NULL);
	d->block[BENCH_OURS] = calloc(n, sizeof(void *));
	d->block[BENCH_PEER] = calloc(n, sizeof(void *));
	d->private = aligned_alloc(4096, (size_t)n * d->block_bytes);
	if (!d->block[BENCH_OURS] || !d->block[BENCH_PEER] || !d->private)
		bench_die("no memory");
	hawk_blocks(d);
	for (i = 0; i < n; i++)
		d->block[BENCH_PEER][i] = (char *)d->private + (size_t)i * payload;
	for (i = 0; i < 2 * BATCH_MAX; i++)
		d->seg[i / BATCH_MAX][i % BATCH_MAX] = (struct exec_seg) {
			.blocks = d->block[i / BATCH_MAX] + i % BATCH_MAX * d->seq_blocks,
			.len = d->context + STEPS,
		};
	prefill(d, BENCH_OURS);
	prefill(d, BENCH_PEER);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 7, .ms = 500, .url = "embed:?dram=1G" };
	struct decode d = { 0 };

	bench_args(&o, argc, argv);
	if (!o.file)
		bench_die("-f MODEL is missing");
	setup(&d, &o);
	compare(&d, "decode_hawk_vs_private_b1", 1, &o);
	compare(&d, "decode_hawk_vs_private_b8", BATCH_MAX, &o);
	exec_destroy(d.exec);
	model_free(d.model);
	free(d.private);
	free(d.block[BENCH_OURS]);
	free(d.block[BENCH_PEER]);
	space_close(&d.space);
	return 0;
}
