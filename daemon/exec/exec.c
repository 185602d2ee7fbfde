// SPDX-License-Identifier: MIT
/* Life cycle of an executor. */
#define _GNU_SOURCE
#include "exec/exec_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

size_t exec_kv_block_bytes(const struct model_config *cfg, uint32_t block_tokens,
			   enum exec_kv_type type)
{
	return (size_t)cfg->n_layer * 2 * cfg->n_head_kv * block_tokens * cfg->head_dim *
	       (type == EXEC_KV_F16 ? 2 : 4);
}

uint32_t exec_kv_planes(const struct model_config *cfg)
{
	return cfg->n_layer * 2 * cfg->n_head_kv;
}

/* Hands out pieces of the arena; with a NULL base it only adds up sizes. */
struct carver {
	uint8_t *base;
	size_t used;
};

static void *carve(struct carver *c, size_t n, size_t elem)
{
	void *p = c->base ? c->base + c->used : NULL;

	c->used += (n * elem + 63) & ~(size_t)63;
	return p;
}

static void carve_scratch(struct exec *e, struct carver *c, struct exec_scratch *s)
{
	const struct model_config *m = &e->m->cfg;
	const size_t n_q = exec_tile_rows(e) * exec_group(e);
	size_t widest = e->ld_embd;
	struct exec_scratch out;

	if (e->ld_q > widest)
		widest = e->ld_q;
	if (e->ld_ff > widest)
		widest = e->ld_ff;
	out.pack = carve(c, KERN_PACK_OUTS * widest, sizeof(float));
	out.unit = carve(c, e->cfg.max_rows * e->ld_unit, sizeof(float));
	out.q = carve(c, n_q * kern_pad(m->head_dim), sizeof(float));
	out.scores = carve(c, n_q * kern_pad(e->cfg.block_tokens), sizeof(float));
	out.state = carve(c, n_q * 2, sizeof(float));
	out.turn_mem = carve(c, turn_floats(m->rope_dim), sizeof(float));
	out.qs = carve(c, exec_group(e) * kern_pad(m->head_dim), sizeof(float));
	out.score = carve(c, e->cfg.sparse_blocks, sizeof(float));
	out.best = carve(c, e->cfg.sparse_blocks, sizeof(uint32_t));
	out.segs = carve(c, e->cfg.sparse_blocks, sizeof(struct exec_seg));
	out.planes = carve(c, 2 * (size_t)e->cfg.block_tokens * m->head_dim, sizeof(float));
	if (s)
		*s = out;
}

/* Lay out the arena; called once to measure and once to place. */
static void carve_all(struct exec *e, struct carver *c)
{
	const struct model_config *m = &e->m->cfg;
	const size_t rows = e->cfg.max_rows;
	uint32_t i;

	e->x = carve(c, rows * e->ld_embd, sizeof(float));
	e->xn = carve(c, rows * e->ld_embd, sizeof(float));
	e->q = carve(c, rows * e->ld_q, sizeof(float));
	e->att = carve(c, rows * e->ld_q, sizeof(float));
	e->ff = carve(c, rows * e->ld_ff, sizeof(float));
	e->rope = carve(c, rows * m->rope_dim, sizeof(float));
	e->logits = carve(c, e->cfg.max_logits * e->ld_vocab, sizeof(float));
	e->inv_freq = carve(c, m->rope_dim / 2, sizeof(double));
	if (e->cfg.sparse_blocks)
		e->scale = carve(c, m->n_layer * m->n_head_kv * kern_pad(m->head_dim),
				 sizeof(float));
	e->slot = carve(c, rows, sizeof(*e->slot));
	e->want = carve(c, e->cfg.max_logits, sizeof(*e->want));
	e->dst = carve(c, rows, sizeof(*e->dst));
	e->tiles = carve(c, rows, sizeof(*e->tiles));
	e->counters = carve(c, exec_counter_count(e), sizeof(*e->counters));
	e->scratch = carve(c, e->cfg.n_threads, sizeof(*e->scratch));
	for (i = 0; i < e->cfg.n_threads; i++)
		carve_scratch(e, c, e->scratch ? &e->scratch[i] : NULL);
}

static int alloc_arena(struct exec *e, char *err)
{
	const struct model_config *m = &e->m->cfg;
	struct carver c = { 0 };
	void *p;

	e->ld_embd = kern_pad(m->n_embd);
	e->ld_q = kern_pad((size_t)m->n_head * m->head_dim);
	e->ld_ff = kern_pad(m->n_ff);
	e->ld_unit = kern_pad(m->head_dim > EXEC_UNIT_OUTS ? m->head_dim : EXEC_UNIT_OUTS);
	e->ld_vocab = kern_pad(m->n_vocab);
	carve_all(e, &c);
	p = mmap(NULL, c.used, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return gguf_fail(err, -ENOMEM,
				 "no memory for %zu MiB of working space: lower the rows per step",
				 c.used >> 20);
	madvise(p, c.used, MADV_HUGEPAGE);
	e->arena = p;
	e->arena_len = c.used;
	c = (struct carver){ .base = p };
	carve_all(e, &c);
	return 0;
}

static void init_rope(struct exec *e)
{
	const struct model_config *m = &e->m->cfg;
	uint32_t i;

	for (i = 0; i < m->rope_dim / 2; i++) {
		e->inv_freq[i] = m->rope_scale * pow(m->rope_base, -2.0 * i / m->rope_dim);
		if (e->m->rope_factors)
			e->inv_freq[i] /= e->m->rope_factors[i];
	}
	for (i = 0; i < e->cfg.n_threads; i++)
		turn_init(&e->scratch[i].turn, e->inv_freq, m->rope_dim,
			  m->rope_pairs == MODEL_ROPE_HALVES, e->scratch[i].turn_mem);
}

static int check_config(struct exec_config *c, char *err)
{
	if (!c->n_threads)
		c->n_threads = pool_cpus();
	if (!c->max_logits)
		c->max_logits = c->max_rows;
	if (c->n_threads > EXEC_MAX_THREADS)
		return gguf_fail(err, -EINVAL, "%u threads: at most %u", c->n_threads,
				 EXEC_MAX_THREADS);
	if (!c->max_rows || c->max_rows > EXEC_MAX_ROWS || c->max_logits > c->max_rows)
		return gguf_fail(
			err, -EINVAL,
			"%u rows per step with %u logits: 1 to %u rows, no more logits than rows",
			c->max_rows, c->max_logits, EXEC_MAX_ROWS);
	if (!c->block_tokens || c->block_tokens > EXEC_MAX_BLOCK_TOKENS)
		return gguf_fail(err, -EINVAL, "%u tokens per KV block: 1 to %u", c->block_tokens,
				 EXEC_MAX_BLOCK_TOKENS);
	if (c->kv_type != EXEC_KV_F16 && c->kv_type != EXEC_KV_F32)
		return gguf_fail(err, -EINVAL, "unknown KV type %d", (int)c->kv_type);
	return 0;
}

int exec_create(const struct model *m, const struct exec_config *cfg, struct exec **out,
		char err[GGUF_ERR_LEN])
{
	struct exec *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return gguf_fail(err, -ENOMEM, "no memory for the executor");
	e->m = m;
	e->cfg = *cfg;
	e->kv_elem = cfg->kv_type == EXEC_KV_F16 ? 2 : 4;
	ret = check_config(&e->cfg, err);
	if (!ret)
		ret = kern_select(cfg->isa, &e->ops, err);
	if (!ret)
		ret = alloc_arena(e, err);
	if (ret)
		goto err_destroy;
	init_rope(e);
	ret = pool_create(e->cfg.n_threads, cfg->pin, &e->pool);
	if (ret) {
		gguf_fail(err, ret, "cannot start %u threads: %s", e->cfg.n_threads,
			  strerror(-ret));
		goto err_destroy;
	}
	if (e->cfg.sparse_blocks) {
		ret = exec_centroid_calibrate(e);
		if (ret) {
			gguf_fail(err, ret, "no memory to calibrate the centroids");
			goto err_destroy;
		}
	}
	*out = e;
	return 0;

err_destroy:
	exec_destroy(e);
	return ret;
}

void exec_destroy(struct exec *e)
{
	if (!e)
		return;
	pool_destroy(e->pool);
	if (e->arena)
		munmap(e->arena, e->arena_len);
	free(e);
}

int exec_step(struct exec *e, const struct exec_row *rows, uint32_t n_rows)
{
	int ret = exec_plan(e, rows, n_rows);

	if (ret)
		return ret;
	pool_run(e->pool, exec_worth_threads(e), exec_forward, e);
	return 0;
}

const char *exec_step_error(const struct exec *e)
{
	return e->err;
}

const float *exec_logits(const struct exec *e, uint32_t row)
{
	if (row >= e->n_rows || e->slot[row] == UINT32_MAX)
		return NULL;
	return e->logits + (size_t)e->slot[row] * e->ld_vocab;
}

const char *exec_isa_name(const struct exec *e)
{
	return e->ops->name;
}

uint32_t exec_thread_count(const struct exec *e)
{
	return e->cfg.n_threads;
}
