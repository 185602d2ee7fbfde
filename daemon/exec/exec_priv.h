/* SPDX-License-Identifier: MIT */
/* Shared by exec.c (life cycle), plan.c (checks) and forward.c (the computation). */
#ifndef HAWK_EXEC_PRIV_H
#define HAWK_EXEC_PRIV_H

#include <stdatomic.h>

#include "exec/exec.h"
#include "exec/kern.h"
#include "exec/pool.h"

#define EXEC_UNIT_OUTS	  32u /* outputs handed to a thread at a time */
#define EXEC_TILE_QUERIES 32u /* queries attending together */

/* Phases of a layer, separated by barriers. */
enum exec_phase {
	PH_ATTN_NORM,
	PH_QKV,
	PH_ATTEND,
	PH_ATTN_OUT,
	PH_FFN_NORM,
	PH_FFN_UP,
	PH_FFN_DOWN,
	PH_COUNT
};

/* Next unit of work of one phase; a cache line each. */
struct exec_counter {
	_Atomic uint32_t next;
} __attribute__((aligned(64)));

/* Where a row's keys and values go. */
struct exec_dst {
	void *block;
	uint32_t slot;
};

/* Adjacent rows of one sequence whose queries attend together. */
struct exec_tile {
	uint32_t first, n_rows;
};

/* Working memory of one thread. */
struct exec_scratch {
	float *pack; /* unpacked weights, see struct kern_mm */
	float *unit; /* [max_rows][ld_unit]: results of one unit */
	float *q;    /* the attention kernel's operands, see struct kern_attn */
	float *scores;
	float *state;
	float *planes;
	float *turn_mem;
	/* sparse rows, see sparse.h */
	float *qs;	       /* [group][kern_pad(head_dim)] queries times scales */
	float *score;	       /* [sparse_blocks] */
	uint32_t *best;	       /* [sparse_blocks] */
	struct exec_seg *segs; /* [sparse_blocks] what is read */
	struct turn_cache turn; /* on turn_mem */
};

struct exec {
	const struct model *m;
	const struct kern_ops *ops;
	struct exec_config cfg;
	struct pool *pool;

	size_t kv_elem;					/* bytes per K or V element */
	size_t ld_embd, ld_q, ld_ff, ld_unit, ld_vocab; /* floats per row */

	void *arena; /* one mapping, zeroed, holds all below */
	size_t arena_len;
	float *x;		       /* [max_rows][ld_embd] residual stream */
	float *xn;		       /* [max_rows][ld_embd] normalised */
	float *q;		       /* [max_rows][ld_q] */
	float *att;		       /* [max_rows][ld_q] attention output */
	float *ff;		       /* [max_rows][ld_ff] */
	float *rope;		       /* [max_rows][rope_dim] cos, sin pairs */
	float *logits;		       /* [max_logits][ld_vocab] */
	double *inv_freq;	       /* [rope_dim / 2] radians per position */
	float *scale;		       /* [layer][kv_head][kern_pad(head_dim)] of centroids */
	uint32_t *slot;		       /* [max_rows] logits index, or UINT32_MAX */
	uint32_t *want;		       /* [max_logits] rows that want logits */
	struct exec_dst *dst;	       /* [max_rows] */
	struct exec_tile *tiles;       /* [max_rows] */
	struct exec_scratch *scratch;  /* [n_threads] */
	struct exec_counter *counters; /* [1 + n_layer * PH_COUNT + 2] */

	/* the step being computed */
	const struct exec_row *rows;
	uint32_t n_rows, n_want, n_tiles;

	char err[GGUF_ERR_LEN]; /* why the last step was refused */
};

/* Check the rows of a step and note where they write; see exec_step(). */
int exec_plan(struct exec *e, const struct exec_row *rows, uint32_t n);

/* Is the planned step large enough for several threads? */
bool exec_worth_threads(const struct exec *e);

/* Body of a step, run by every thread. */
void exec_forward(void *arg, uint32_t tid);

/* Query heads that share a key/value head. */
static inline uint32_t exec_group(const struct exec *e)
{
	return e->m->cfg.n_head / e->m->cfg.n_head_kv;
}

/* Most rows of a sequence in one attention tile. */
static inline uint32_t exec_tile_rows(const struct exec *e)
{
	uint32_t rows = EXEC_TILE_QUERIES / exec_group(e);

	return rows ? rows : 1;
}

/* Byte offset in a block of one head's keys (which = 0) or values (1). */
static inline size_t exec_plane_offset(const struct exec *e, uint32_t layer, int which,
				       uint32_t head)
{
	const struct model_config *c = &e->m->cfg;
	size_t plane = ((size_t)layer * 2 + which) * c->n_head_kv + head;

	return plane * e->cfg.block_tokens * c->head_dim * e->kv_elem;
}

/* Scales of the centroids of one head, by channel. */
static inline float *exec_centroid_scale(const struct exec *e, uint32_t layer, uint32_t head)
{
	const struct model_config *c = &e->m->cfg;

	return e->scale + ((size_t)layer * c->n_head_kv + head) * kern_pad(c->head_dim);
}

/* Bytes of one centroid, see centroid.c. */
static inline size_t exec_centroid_stride(const struct exec *e)
{
	return sizeof(float) + kern_pad(e->m->cfg.head_dim);
}

/* Find the scales by running the model; -ENOMEM. */
int exec_centroid_calibrate(struct exec *e);

static inline uint32_t exec_counter_count(const struct exec *e)
{
	return 1 + e->m->cfg.n_layer * PH_COUNT + 2;
}

#endif
