// SPDX-License-Identifier: MIT
#include "daemon_net.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/kern.h"

struct net net_make(const struct fx_model *shape, enum gguf_type type)
{
	struct fx_model fm = *shape;
	struct fx_file f = { 0 };
	char err[GGUF_ERR_LEN];
	struct gguf *g;
	struct net l;
	size_t len;

	fm.type = type;
	fx_model_add(&f, &fm);
	l.bytes = fx_finish(&f, &len);
	fx_free(&f);
	if (gguf_parse(l.bytes, len, &g, err) || model_from_gguf(g, "test", &l.m, err))
		fail_msg("%s", err);
	return l;
}

void net_free(struct net *l)
{
	model_free(l->m);
	free(l->bytes);
}

struct exec *net_exec(const struct model *m, const char *isa, uint32_t threads,
		      enum exec_kv_type kv, uint32_t block_tokens, uint32_t max_rows)
{
	const struct exec_config cfg = {
		.n_threads = threads,
		.max_rows = max_rows,
		.block_tokens = block_tokens,
		.kv_type = kv,
		.isa = isa,
	};
	char err[GGUF_ERR_LEN];
	struct exec *e;
	int ret = exec_create(m, &cfg, &e, err);

	if (ret == -EOPNOTSUPP)
		return NULL;
	if (ret)
		fail_msg("%s", err);
	return e;
}

/* ---- the plain forward pass ---- */

struct ref {
	const struct model *m;
	uint32_t max_tokens, kvw;
	double *k, *v; /* [layer][max_tokens][n_head_kv * head_dim] */
	double *x, *n, *q, *a, *g, *u, *p;
	float *row;
	ref_watch_fn watch;
	void *arg;
};

static double *ref_array(size_t n)
{
	double *p = calloc(n, sizeof(*p));

	assert_non_null(p);
	return p;
}

struct ref *ref_create(const struct model *m, uint32_t max_tokens)
{
	const struct model_config *c = &m->cfg;
	const size_t q = c->n_head * c->head_dim, e = c->n_embd > q ? c->n_embd : q;
	struct ref *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->m = m;
	r->max_tokens = max_tokens;
	r->kvw = c->n_head_kv * c->head_dim;
	r->k = ref_array((size_t)c->n_layer * max_tokens * r->kvw);
	r->v = ref_array((size_t)c->n_layer * max_tokens * r->kvw);
	r->x = ref_array(e);
	r->n = ref_array(e);
	r->q = ref_array(q);
	r->a = ref_array(q);
	r->g = ref_array(c->n_ff);
	r->u = ref_array(c->n_ff);
	r->p = ref_array(max_tokens);
	r->row = calloc(e > c->n_ff ? e : c->n_ff, sizeof(float));
	assert_non_null(r->row);
	return r;
}

void ref_watch(struct ref *r, ref_watch_fn fn, void *arg)
{
	r->watch = fn;
	r->arg = arg;
}

void ref_free(struct ref *r)
{
	free(r->k);
	free(r->v);
	free(r->x);
	free(r->n);
	free(r->q);
	free(r->a);
	free(r->g);
	free(r->u);
	free(r->p);
	free(r->row);
	free(r);
}

static void ref_matvec(struct ref *r, const struct model_mat *w, const double *x, double *y)
{
	uint32_t o, i;

	for (o = 0; o < w->n_out; o++) {
		kern_ops_c.unpack(r->row, w->type, w->data + o * w->row_bytes, w->n_in);
		y[o] = 0;
		for (i = 0; i < w->n_in; i++)
			y[o] += r->row[i] * x[i];
	}
}

static void ref_norm(const double *x, const float *w, uint32_t n, float eps, double *out)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += x[i] * x[i];
	for (i = 0; i < n; i++)
		out[i] = x[i] / sqrt(sum / n + eps) * w[i];
}

void ref_rope(const struct model *m, double *v, int64_t pos)
{
	const struct model_config *c = &m->cfg;
	const uint32_t half = c->rope_dim / 2;
	uint32_t i;

	for (i = 0; i < half; i++) {
		double *x = c->rope_pairs == MODEL_ROPE_HALVES ? &v[i] : &v[2 * i];
		double *y = c->rope_pairs == MODEL_ROPE_HALVES ? &v[i + half] : &v[2 * i + 1];
		double f = c->rope_scale * pow(c->rope_base, -2.0 * i / c->rope_dim);
		double a = *x, b = *y, t;

		if (m->rope_factors)
			f /= m->rope_factors[i];
		t = f * pos;
		*x = a * cos(t) - b * sin(t);
		*y = a * sin(t) + b * cos(t);
	}
}

/* Attention of one head over keys and values of visible indices 0..at. */
static void ref_attend(struct ref *r, const double *q, const double *k, const double *v,
		       uint32_t at, double *out)
{
	const uint32_t hd = r->m->cfg.head_dim;
	double *p = r->p, sum = 0, max = -INFINITY;
	uint32_t t, d;

	for (t = 0; t <= at; t++) {
		p[t] = 0;
		for (d = 0; d < hd; d++)
			p[t] += q[d] * k[t * r->kvw + d];
		p[t] /= sqrt(hd);
		max = fmax(max, p[t]);
	}
	for (t = 0; t <= at; t++) {
		p[t] = exp(p[t] - max);
		sum += p[t];
	}
	for (d = 0; d < hd; d++) {
		out[d] = 0;
		for (t = 0; t <= at; t++)
			out[d] += p[t] / sum * v[t * r->kvw + d];
	}
}

static void ref_bias(double *x, const float *bias, uint32_t n)
{
	uint32_t i;

	for (i = 0; bias && i < n; i++)
		x[i] += bias[i];
}

static void ref_layer(struct ref *r, uint32_t layer, uint32_t pos, uint32_t at)
{
	const struct model_config *c = &r->m->cfg;
	const struct model_layer *l = &r->m->layers[layer];
	double *k = r->k + (size_t)layer * r->max_tokens * r->kvw;
	double *v = r->v + (size_t)layer * r->max_tokens * r->kvw;
	uint32_t h, i, kvh;

	ref_norm(r->x, l->attn_norm, c->n_embd, c->rms_eps, r->n);
	ref_matvec(r, &l->wq, r->n, r->q);
	ref_matvec(r, &l->wk, r->n, k + at * r->kvw);
	ref_matvec(r, &l->wv, r->n, v + at * r->kvw);
	ref_bias(r->q, l->bq, c->n_head * c->head_dim);
	ref_bias(k + at * r->kvw, l->bk, r->kvw);
	ref_bias(v + at * r->kvw, l->bv, r->kvw);
	for (h = 0; h < c->n_head_kv; h++)
		ref_rope(r->m, k + at * r->kvw + h * c->head_dim, pos);
	for (h = 0; h < c->n_head; h++)
		ref_rope(r->m, r->q + h * c->head_dim, pos);
	if (r->watch)
		r->watch(r->arg, layer, r->q, k);
	for (h = 0; h < c->n_head; h++) {
		kvh = h / (c->n_head / c->n_head_kv) * c->head_dim;
		ref_attend(r, r->q + h * c->head_dim, k + kvh, v + kvh, at, r->a + h * c->head_dim);
	}
	ref_matvec(r, &l->wo, r->a, r->n);
	for (i = 0; i < c->n_embd; i++)
		r->x[i] += r->n[i];
	ref_norm(r->x, l->ffn_norm, c->n_embd, c->rms_eps, r->n);
	ref_matvec(r, &l->gate, r->n, r->g);
	ref_matvec(r, &l->up, r->n, r->u);
	for (i = 0; i < c->n_ff; i++)
		r->g[i] = r->g[i] / (1 + exp(-r->g[i])) * r->u[i];
	ref_matvec(r, &l->down, r->g, r->n);
	for (i = 0; i < c->n_embd; i++)
		r->x[i] += r->n[i];
}

void ref_row(struct ref *r, int32_t token, uint32_t pos, uint32_t at, double *logits)
{
	const struct model *m = r->m;
	const struct model_config *c = &m->cfg;
	uint32_t i;

	assert_true(at < r->max_tokens);
	kern_ops_c.unpack(r->row, m->tok_embd.type,
			  m->tok_embd.data + token * m->tok_embd.row_bytes, c->n_embd);
	for (i = 0; i < c->n_embd; i++)
		r->x[i] = r->row[i];
	for (i = 0; i < c->n_layer; i++)
		ref_layer(r, i, pos, at);
	ref_norm(r->x, m->out_norm, c->n_embd, c->rms_eps, r->n);
	ref_matvec(r, &m->output, r->n, logits);
}

void ref_load(struct ref *r, uint32_t at, const void *block, uint32_t slot, uint32_t block_tokens,
	      enum exec_kv_type kv, int32_t shift)
{
	const struct model_config *c = &r->m->cfg;
	const size_t elem = kv == EXEC_KV_F16 ? 2 : 4;
	uint32_t layer, which, h, i;

	assert_true(at < r->max_tokens);
	for (layer = 0; layer < c->n_layer; layer++)
		for (which = 0; which < 2; which++)
			for (h = 0; h < c->n_head_kv; h++) {
				size_t plane = (layer * 2 + which) * c->n_head_kv + h;
				size_t from = (plane * block_tokens + slot) * c->head_dim * elem;
				double *to = (which ? r->v : r->k) +
					     ((size_t)layer * r->max_tokens + at) * r->kvw +
					     h * c->head_dim;

				kern_ops_c.unpack(r->row,
						  kv == EXEC_KV_F16 ? GGUF_T_F16 : GGUF_T_F32,
						  (const uint8_t *)block + from, c->head_dim);
				for (i = 0; i < c->head_dim; i++)
					to[i] = r->row[i];
				if (!which)
					ref_rope(r->m, to, -(int64_t)shift);
			}
}
