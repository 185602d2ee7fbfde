// SPDX-License-Identifier: MIT
/*
 * The network, phase by phase. All threads walk through the same phases; in
 * each they take units of work from a shared counter until none is left, then
 * meet at a barrier. Which thread computes a unit does not change its result.
 *
 * Units: a row (embedding, norms), a head (Q, K, V with rotation and the store
 * into the KV block), a tile of rows and one KV head (attention), a range of
 * outputs for all rows (the other matrices).
 */
#include "exec/exec_priv.h"
#include "exec/sparse.h"

#include <math.h>
#include <string.h>

static bool next_unit(struct exec *e, uint32_t counter, uint32_t n, uint32_t *u)
{
	*u = atomic_fetch_add_explicit(&e->counters[counter].next, 1, memory_order_relaxed);
	return *u < n;
}

static uint32_t unit_count(uint32_t n_out)
{
	return (n_out + EXEC_UNIT_OUTS - 1) / EXEC_UNIT_OUTS;
}

/* Outputs [*begin, *end) of unit @u. */
static void unit_range(uint32_t u, uint32_t n_out, uint32_t *begin, uint32_t *end)
{
	*begin = u * EXEC_UNIT_OUTS;
	*end = n_out - *begin < EXEC_UNIT_OUTS ? n_out : *begin + EXEC_UNIT_OUTS;
}

static void embed_row(struct exec *e, uint32_t r)
{
	const struct model_config *c = &e->m->cfg;
	const struct model_mat *w = &e->m->tok_embd;
	const struct exec_row *row = &e->rows[r];
	float *cs = e->rope + (size_t)r * c->rope_dim;
	uint32_t i;

	e->ops->unpack(e->x + r * e->ld_embd, w->type, w->data + row->token * w->row_bytes,
		       c->n_embd);
	for (i = 0; i < c->rope_dim / 2; i++) {
		double angle = row->pos * e->inv_freq[i];

		cs[2 * i] = (float)cos(angle);
		cs[2 * i + 1] = (float)sin(angle);
	}
}

/* Rotate one head of row @r. */
static void rotate(const struct exec *e, uint32_t r, float *v)
{
	const struct model_config *c = &e->m->cfg;
	const float *cs = e->rope + (size_t)r * c->rope_dim;
	const bool half = c->rope_pairs == MODEL_ROPE_HALVES;
	uint32_t i;

	for (i = 0; i < c->rope_dim / 2; i++) {
		float *x = &v[turn_index(half, c->rope_dim, i, 0)];
		float *y = &v[turn_index(half, c->rope_dim, i, 1)];
		float a = *x, b = *y;

		*x = a * cs[2 * i] - b * cs[2 * i + 1];
		*y = a * cs[2 * i + 1] + b * cs[2 * i];
	}
}

static void norm_rows(struct exec *e, uint32_t counter, const float *w)
{
	const struct model_config *c = &e->m->cfg;
	uint32_t r;

	while (next_unit(e, counter, e->n_rows, &r))
		e->ops->rmsnorm(e->xn + r * e->ld_embd, e->x + r * e->ld_embd, w, c->n_embd,
				c->rms_eps);
}

/* x += bias, if there is one */
static void add_bias(float *x, const float *bias, uint32_t n)
{
	uint32_t i;

	for (i = 0; bias && i < n; i++)
		x[i] += bias[i];
}

static void project_q(struct exec *e, uint32_t layer, uint32_t head, struct exec_scratch *s)
{
	const struct model_config *c = &e->m->cfg;
	const float scale = 1.0f / sqrtf((float)c->head_dim);
	const struct model_layer *l = &e->m->layers[layer];
	const uint32_t begin = head * c->head_dim;
	struct kern_mm mm = {
		.x = e->xn,
		.ldx = e->ld_embd,
		.y = e->q + begin,
		.ldy = e->ld_q,
		.n_rows = e->n_rows,
		.begin = begin,
		.end = begin + c->head_dim,
		.pack = s->pack,
	};
	uint32_t r, i;

	e->ops->matmul(&l->wq, &mm);
	for (r = 0; r < e->n_rows; r++) {
		float *q = e->q + r * e->ld_q + begin;

		add_bias(q, l->bq ? l->bq + begin : NULL, c->head_dim);
		rotate(e, r, q);
		for (i = 0; i < c->head_dim; i++)
			q[i] *= scale;
	}
}

static void store_kv(struct exec *e, const struct exec_dst *to, size_t plane, const float *v)
{
	const uint32_t hd = e->m->cfg.head_dim;
	uint8_t *dst = (uint8_t *)to->block + plane + (size_t)to->slot * hd * e->kv_elem;

	if (e->cfg.kv_type == EXEC_KV_F16)
		e->ops->to_f16((uint16_t *)dst, v, hd);
	else
		memcpy(dst, v, hd * sizeof(*v));
}

static void project_kv(struct exec *e, uint32_t layer, int which, uint32_t head,
		       struct exec_scratch *s)
{
	const struct model_config *c = &e->m->cfg;
	const struct model_layer *l = &e->m->layers[layer];
	const size_t plane = exec_plane_offset(e, layer, which, head);
	const float *bias = which ? l->bv : l->bk;
	struct kern_mm mm = {
		.x = e->xn,
		.ldx = e->ld_embd,
		.y = s->unit,
		.ldy = e->ld_unit,
		.n_rows = e->n_rows,
		.begin = head * c->head_dim,
		.end = (head + 1) * c->head_dim,
		.pack = s->pack,
	};
	uint32_t r;

	e->ops->matmul(which ? &l->wv : &l->wk, &mm);
	for (r = 0; r < e->n_rows; r++) {
		float *v = s->unit + r * e->ld_unit;

		add_bias(v, bias ? bias + mm.begin : NULL, c->head_dim);
		if (!which)
			rotate(e, r, v);
		store_kv(e, &e->dst[r], plane, v);
	}
}

static void project_qkv(struct exec *e, uint32_t counter, uint32_t layer, struct exec_scratch *s)
{
	const struct model_config *c = &e->m->cfg;
	uint32_t u;

	while (next_unit(e, counter, c->n_head + 2 * c->n_head_kv, &u)) {
		if (u < c->n_head)
			project_q(e, layer, u, s);
		else
			project_kv(e, layer, (u - c->n_head) / c->n_head_kv,
				   (u - c->n_head) % c->n_head_kv, s);
	}
}

static void attend_tile(struct exec *e, uint32_t layer, const struct exec_tile *tile,
			uint32_t kv_head, struct exec_scratch *s)
{
	const struct model_config *c = &e->m->cfg;
	const uint32_t group = exec_group(e);
	const size_t col = (size_t)kv_head * group * c->head_dim;
	const size_t ldq = kern_pad(c->head_dim);
	const struct exec_row *row = &e->rows[tile->first];
	struct kern_attn a = {
		.q = s->q,
		.ldq = ldq,
		.out = e->att + tile->first * e->ld_q + col,
		.ld_out = e->ld_q,
		.segs = row->segs,
		.k_off = exec_plane_offset(e, layer, 0, kv_head),
		.v_off = exec_plane_offset(e, layer, 1, kv_head),
		.n_rows = tile->n_rows,
		.group = group,
		.at = row->at,
		.head_dim = c->head_dim,
		.block_tokens = e->cfg.block_tokens,
		.kv_type = e->cfg.kv_type == EXEC_KV_F16 ? GGUF_T_F16 : GGUF_T_F32,
		.scores = s->scores,
		.state = s->state,
		.planes = s->planes,
		.turn = &s->turn,
	};
	uint32_t r, g;

	for (r = 0; r < tile->n_rows; r++)
		for (g = 0; g < group; g++)
			memcpy(s->q + (r * group + g) * ldq,
			       e->q + (tile->first + r) * e->ld_q + col + g * c->head_dim,
			       c->head_dim * sizeof(float));
	if (row->sparse) { /* has a tile of its own */
		a.at = sparse_select(e, layer, kv_head, row, s, &r) - 1;
		a.segs = s->segs;
	}
	e->ops->attend(&a);
}

static void attend(struct exec *e, uint32_t counter, uint32_t layer, struct exec_scratch *s)
{
	const uint32_t n_kv = e->m->cfg.n_head_kv;
	uint32_t u;

	while (next_unit(e, counter, e->n_tiles * n_kv, &u))
		attend_tile(e, layer, &e->tiles[u / n_kv], u % n_kv, s);
}

/* x += w * in, for all rows */
static void project_add(struct exec *e, uint32_t counter, const struct model_mat *w,
			const float *in, size_t ld, struct exec_scratch *s)
{
	struct kern_mm mm = {
		.x = in,
		.ldx = ld,
		.ldy = e->ld_embd,
		.n_rows = e->n_rows,
		.add = true,
		.pack = s->pack,
	};
	uint32_t u;

	while (next_unit(e, counter, unit_count(w->n_out), &u)) {
		unit_range(u, w->n_out, &mm.begin, &mm.end);
		mm.y = e->x + mm.begin;
		e->ops->matmul(w, &mm);
	}
}

static void ffn_up(struct exec *e, uint32_t counter, uint32_t layer, struct exec_scratch *s)
{
	const struct model_layer *l = &e->m->layers[layer];
	struct kern_mm mm = {
		.x = e->xn,
		.ldx = e->ld_embd,
		.n_rows = e->n_rows,
		.pack = s->pack,
	};
	uint32_t u, r;

	while (next_unit(e, counter, unit_count(l->gate.n_out), &u)) {
		unit_range(u, l->gate.n_out, &mm.begin, &mm.end);
		mm.y = e->ff + mm.begin;
		mm.ldy = e->ld_ff;
		e->ops->matmul(&l->gate, &mm);
		mm.y = s->unit;
		mm.ldy = e->ld_unit;
		e->ops->matmul(&l->up, &mm);
		for (r = 0; r < e->n_rows; r++)
			e->ops->silu_mul(e->ff + r * e->ld_ff + mm.begin, s->unit + r * e->ld_unit,
					 mm.end - mm.begin);
	}
}

static void forward_layer(struct exec *e, uint32_t layer, uint32_t tid)
{
	const struct model_layer *l = &e->m->layers[layer];
	struct exec_scratch *s = &e->scratch[tid];
	const uint32_t c = 1 + layer * PH_COUNT;

	norm_rows(e, c + PH_ATTN_NORM, l->attn_norm);
	pool_barrier(e->pool);
	project_qkv(e, c + PH_QKV, layer, s);
	pool_barrier(e->pool);
	attend(e, c + PH_ATTEND, layer, s);
	pool_barrier(e->pool);
	project_add(e, c + PH_ATTN_OUT, &l->wo, e->att, e->ld_q, s);
	pool_barrier(e->pool);
	norm_rows(e, c + PH_FFN_NORM, l->ffn_norm);
	pool_barrier(e->pool);
	ffn_up(e, c + PH_FFN_UP, layer, s);
	pool_barrier(e->pool);
	project_add(e, c + PH_FFN_DOWN, &l->down, e->ff, e->ld_ff, s);
	pool_barrier(e->pool);
}

/* Logits of the rows that want them. */
static void forward_logits(struct exec *e, uint32_t tid)
{
	const struct model_config *c = &e->m->cfg;
	const struct model_mat *w = &e->m->output;
	const uint32_t counter = 1 + c->n_layer * PH_COUNT;
	struct kern_mm mm = {
		.x = e->xn,
		.ldx = e->ld_embd,
		.ldy = e->ld_vocab,
		.n_rows = e->n_want,
		.pack = e->scratch[tid].pack,
	};
	uint32_t u;

	while (next_unit(e, counter, e->n_want, &u))
		e->ops->rmsnorm(e->xn + u * e->ld_embd, e->x + e->want[u] * e->ld_embd,
				e->m->out_norm, c->n_embd, c->rms_eps);
	pool_barrier(e->pool);
	while (next_unit(e, counter + 1, unit_count(w->n_out), &u)) {
		unit_range(u, w->n_out, &mm.begin, &mm.end);
		mm.y = e->logits + mm.begin;
		e->ops->matmul(w, &mm);
	}
}

void exec_forward(void *arg, uint32_t tid)
{
	struct exec *e = arg;
	uint32_t r, layer;

	while (next_unit(e, 0, e->n_rows, &r))
		embed_row(e, r);
	pool_barrier(e->pool);
	for (layer = 0; layer < e->m->cfg.n_layer; layer++)
		forward_layer(e, layer, tid);
	if (e->n_want)
		forward_logits(e, tid);
}
