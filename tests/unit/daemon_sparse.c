// SPDX-License-Identifier: MIT
/*
 * Sparse rows: the best r are the best r; with room for all blocks the result is
 * the dense one; sinks and window are always read; INT8 centroids choose what
 * FP32 ones would.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon_view.h"
#include "exec/exec_priv.h"
#include "exec/sample.h"
#include "exec/sparse.h"

#define TINY "tests/data/hawk-tiny.gguf"
#define BT   16u
#define MAXB 128u /* blocks of a sequence */

static struct exec *sparse_exec(const struct model *m, const char *isa, enum exec_kv_type kv,
				uint32_t threads)
{
	const struct exec_config cfg = {
		.n_threads = threads,
		.max_rows = 64,
		.block_tokens = BT,
		.kv_type = kv,
		.sparse_blocks = MAXB,
		.isa = isa,
	};
	char err[GGUF_ERR_LEN];
	struct exec *e;
	int ret = exec_create(m, &cfg, &e, err);

	if (ret && ret != -EOPNOTSUPP)
		fail_msg("%s", err);
	return ret ? NULL : e;
}

/* ---- the best r ---- */

static void check_top(const float *score, uint32_t n, uint32_t r)
{
	uint32_t best[64], i, j, have = sparse_top(score, n, r, best), finite = 0, before;
	bool in;

	for (i = 0; i < n; i++)
		finite += score[i] != INFINITY;
	assert_int_equal(have, r < finite ? r : finite);
	for (i = 0; i < n; i++) {
		if (score[i] == INFINITY)
			continue;
		for (before = j = 0; j < n; j++)
			before += score[j] != INFINITY &&
				  (score[j] > score[i] || (score[j] == score[i] && j < i));
		for (in = false, j = 0; j < have; j++)
			in |= best[j] == i;
		if (in != (before < r))
			fail_msg("%u of %u: index %u, %u better ones", r, n, i, before);
	}
}

static void test_top(void **state)
{
	uint32_t i, j, n, rnd = 3;
	float score[64];

	(void)state;
	for (i = 0; i < 5000; i++) {
		n = fx_rand(&rnd) % 65;
		for (j = 0; j < n; j++) /* many ties */
			score[j] = fx_rand(&rnd) % 5 ? (float)(fx_rand(&rnd) % 9) - 4 : INFINITY;
		check_top(score, n, fx_rand(&rnd) % 65);
	}
}

/* ---- with room for all: dense ---- */

/* A sequence of full blocks with their centroids. */
struct seq {
	struct view_run run;
	const void *centroid[MAXB];
	uint8_t *mem;
};

static struct seq *seq_make(const struct model *m, enum exec_kv_type kv)
{
	struct seq *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	view_run_init(&s->run, m, BT, MAXB * BT, kv);
	return s;
}

static void seq_free(struct seq *s)
{
	view_run_free(&s->run);
	free(s->mem);
	free(s);
}

/* Centroids of the first @n blocks. */
static void seq_centroids(struct seq *s, const struct exec *e, uint32_t n)
{
	const size_t bytes = exec_centroid_bytes(e);
	uint32_t i;

	s->mem = malloc(n * bytes);
	assert_non_null(s->mem);
	for (i = 0; i < n; i++) {
		assert_int_equal(exec_centroid_make(e, s->run.blocks[i], s->mem + i * bytes), 0);
		s->centroid[i] = s->mem + i * bytes;
	}
}

/* 180 tokens from slot 0, seen with a gap and a moved end; room for @tail rows behind. */
static void seq_view(struct seq *s, struct view *v, uint32_t tail_slot, uint32_t tail)
{
	uint32_t i;

	*v = (struct view){ 0 };
	view_add(v, s->run.blocks, 0, 70, 0);
	view_add(v, s->run.blocks, 89, 40, 19);
	view_add(v, s->run.blocks, 129, 51, 25);
	view_add(v, s->run.blocks, tail_slot, tail, 0);
	for (i = 0; i < v->n_segs; i++)
		v->segs[i].centroids = s->centroid;
}

static void check_dense(struct model *m, const char *isa, enum exec_kv_type kv)
{
	enum { tail = 20 };
	struct exec *e = sparse_exec(m, isa, kv, 1), *two = sparse_exec(m, isa, kv, 2);
	struct exec_sparse all = { MAXB, 5, tail }, few = { 2, 5, tail };
	const size_t bytes = m->cfg.n_vocab * sizeof(float);
	struct seq *s = seq_make(m, kv);
	struct view flat = { 0 }, a, b, c;
	float *logits = calloc(200, bytes);
	struct exec_row rows[3 * tail], row;
	uint8_t read[MAXB] = { 0 };
	int32_t ids[200];
	uint32_t i, n, rnd = 4;

	assert_non_null(logits);
	if (!e)
		goto out;
	for (i = 0; i < 200; i++)
		ids[i] = fx_rand(&rnd) % m->cfg.n_vocab;
	view_add(&flat, s->run.blocks, 0, 180, 0);
	view_compute(e, &flat, ids, 0, 180, logits, m->cfg.n_vocab, &rnd);
	seq_centroids(s, e, 180 / BT);
	/* the same rows dense, with room for all, and with few blocks, in one step */
	seq_view(s, &a, 20 * BT, tail);
	seq_view(s, &b, 30 * BT, tail);
	seq_view(s, &c, 40 * BT, tail);
	for (i = 0; i < tail; i++) {
		rows[i] = view_row(&a, ids[180 + i], 155 + i, a.n - tail + i);
		rows[tail + i] = view_row(&b, ids[180 + i], 155 + i, a.n - tail + i);
		rows[tail + i].sparse = &all;
		rows[tail + i].read = read;
		rows[2 * tail + i] = view_row(&c, ids[180 + i], 155 + i, a.n - tail + i);
		rows[2 * tail + i].sparse = &few;
	}
	if (exec_step(two, rows, 3 * tail))
		fail_msg("%s", exec_step_error(two));
	for (n = i = 0; i < tail; i++) {
		if (memcmp(exec_logits(two, i), exec_logits(two, tail + i), bytes))
			fail_msg("%s kv %d: row %u with all blocks is not the dense one",
				 exec_isa_name(e), kv, i);
		n += !!memcmp(exec_logits(two, i), exec_logits(two, 2 * tail + i), bytes);
		memcpy(logits + i * m->cfg.n_vocab, exec_logits(two, 2 * tail + i), bytes);
	}
	assert_int_equal(n, tail);
	for (n = i = 0; i < a.n_segs; i++)
		n += exec_seg_blocks(&a.segs[i], BT);
	for (i = 0; i < MAXB; i++)
		assert_int_equal(read[i], i < n);
	/* batch invariance of the sparse ones */
	for (i = 0; i < tail; i++) {
		row = rows[2 * tail + i];
		assert_int_equal(exec_step(e, &row, 1), 0);
		if (memcmp(logits + i * m->cfg.n_vocab, exec_logits(e, 0), bytes))
			fail_msg("%s kv %d: sparse row %u depends on the batch", exec_isa_name(e),
				 kv, i);
	}
out:
	exec_destroy(e);
	exec_destroy(two);
	free(logits);
	seq_free(s);
}

static void test_dense(void **state)
{
	struct net part = net_make(&view_part, GGUF_T_F16),
		   full = net_make(&view_full, GGUF_T_Q8_0);
	uint32_t i, kv;

	(void)state;
	part.m->cfg.rope_pairs = MODEL_ROPE_HALVES;
	for (i = 0; i < VIEW_ISAS; i++)
		for (kv = 0; kv < 2; kv++) {
			check_dense(part.m, view_isas[i], kv);
			check_dense(full.m, view_isas[i], kv);
		}
	net_free(&part);
	net_free(&full);
}

/* ---- what is read ---- */

/* The plain choice of one head: FP32 centroids of the keys as they are read. */
struct choice {
	const struct view *v;
	struct exec_sparse how;
	uint32_t at, hd, n;
	double score[MAXB];
	bool always[MAXB];
};

static void choose(void *arg, uint32_t layer, const double *q, const double *k)
{
	struct choice *c = arg;
	uint32_t first = 0, s, off, len, t, i;

	(void)layer;
	c->n = 0;
	for (s = 0; s < c->v->n_segs && first <= c->at; first += c->v->segs[s++].len) {
		const struct exec_seg *seg = &c->v->segs[s];

		for (off = 0; off < seg->len && first + off <= c->at; off += len, c->n++) {
			len = BT - (seg->tok + off) % BT;
			len = len < seg->len - off ? len : seg->len - off;
			len = len < c->at + 1 - first - off ? len : c->at + 1 - first - off;
			c->always[c->n] = first + off < c->how.sinks ||
					  (uint64_t)first + off + len - 1 + c->how.window > c->at ||
					  !seg->centroids[(seg->tok + off) / BT];
			c->score[c->n] = 0;
			for (t = 0; t < len; t++)
				for (i = 0; i < c->hd; i++)
					c->score[c->n] +=
						q[i] * k[(first + off + t) * c->hd + i] / len;
		}
	}
}

/*
 * One layer and head: what was read is the sinks, the window, what has no
 * centroid and the r best. Near ties may go either way: those read must score
 * within @slack of those not read, or better.
 */
static void check_choice(const struct choice *c, const uint8_t *read, uint32_t r, const char *isa)
{
	double least = INFINITY, most = -INFINITY, slack = 0;
	uint32_t i, n = 0;

	for (i = 0; i < c->n; i++) {
		if (c->always[i]) {
			if (!read[i])
				fail_msg("block %u must always be read", i);
			continue;
		}
		slack = fmax(slack, fabs(c->score[i]) * 0.02);
		n += read[i];
		if (read[i])
			least = fmin(least, c->score[i]);
		else
			most = fmax(most, c->score[i]);
	}
	if (n > r)
		fail_msg("%u blocks chosen, %u allowed", n, r);
	assert_true(n == r || most == -INFINITY);
	if (most > least + slack)
		fail_msg("%s r %u: a block that scores %g was left out for one with %g",
			 isa, r, most, least);
	for (; i < MAXB; i++)
		assert_false(read[i]);
}

static void check_read(struct model *m, const char *isa, uint32_t r, uint32_t sinks,
		       uint32_t window)
{
	struct choice c = { .how = { r, sinks, window }, .hd = m->cfg.head_dim };
	struct exec *e = sparse_exec(m, isa, EXEC_KV_F32, 1);
	double *out = calloc(m->cfg.n_vocab, sizeof(double));
	struct seq *s = seq_make(m, EXEC_KV_F32);
	float *logits = calloc(400 * (size_t)m->cfg.n_vocab, sizeof(float));
	struct view flat = { 0 }, v = { 0 };
	uint8_t read[MAXB] = { 0 };
	struct ref *ref;
	struct exec_row row;
	int32_t ids[201];
	uint32_t i, rnd = 8 + r;

	if (!e)
		goto out;
	for (i = 0; i < 201; i++)
		ids[i] = fx_rand(&rnd) % m->cfg.n_vocab;
	view_add(&flat, s->run.blocks, 0, 200, 0);
	view_compute(e, &flat, ids, 0, 200, logits, m->cfg.n_vocab, &rnd);
	seq_centroids(s, e, 200 / BT);
	s->centroid[5] = NULL;
	/* whole blocks, so that the centroid is that of what is seen */
	view_add(&v, s->run.blocks, 0, 3 * BT, 0);
	view_add(&v, s->run.blocks, 4 * BT, 200 - 4 * BT, BT);
	view_add(&v, s->run.blocks, 208, 1, 0);
	for (i = 0; i < v.n_segs; i++)
		v.segs[i].centroids = s->centroid;
	c.v = &v;
	c.at = v.n - 1;
	ref = ref_create(m, v.n);
	for (i = 0; i < c.at; i++) {
		uint32_t slot = i < 3 * BT ? i : i + BT;

		ref_load(ref, i, s->run.blocks[slot / BT], slot % BT, BT, EXEC_KV_F32,
			 i < 3 * BT ? 0 : BT);
	}
	ref_watch(ref, choose, &c);
	ref_row(ref, ids[200], 200 - BT, c.at, out);
	ref_free(ref);
	row = view_row(&v, ids[200], 200 - BT, c.at);
	row.sparse = &c.how;
	row.read = read;
	if (exec_step(e, &row, 1))
		fail_msg("%s", exec_step_error(e));
	check_choice(&c, read, r, exec_isa_name(e));
out:
	exec_destroy(e);
	seq_free(s);
	free(out);
	free(logits);
}

static void test_read(void **state)
{
	struct fx_model one = view_full;
	struct net l;
	uint32_t i, r;

	(void)state;
	one.n_layer = 1;
	one.n_head = 1;
	l = net_make(&one, GGUF_T_F32);
	for (i = 0; i < VIEW_ISAS; i++)
		for (r = 0; r < 9; r += 2) {
			check_read(l.m, view_isas[i], r, 20, 40);
			check_read(l.m, view_isas[i], r, 0, 1);
			check_read(l.m, view_isas[i], r, 500, 1);
			check_read(l.m, view_isas[i], r, 0, UINT32_MAX);
		}
	net_free(&l);
}

/* Equal blocks: the earlier one is read. */
static void test_ties(void **state)
{
	const struct exec_sparse how = { 2, 0, 1 };
	struct net l = net_make(&view_full, GGUF_T_F32);
	struct exec *e = sparse_exec(l.m, NULL, EXEC_KV_F16, 1);
	struct seq *s = seq_make(l.m, EXEC_KV_F16);
	float *logits = calloc(100 * (size_t)l.m->cfg.n_vocab, sizeof(float));
	struct view flat = { 0 }, v = { 0 };
	struct exec_row row;
	uint8_t read[MAXB] = { 0 };
	int32_t ids[16] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint32_t i, rnd = 1;

	(void)state;
	view_add(&flat, s->run.blocks, 0, BT, 0);
	view_compute(e, &flat, ids, 0, BT, logits, l.m->cfg.n_vocab, &rnd);
	seq_centroids(s, e, 1);
	for (i = 0; i < 6; i++)
		view_add(&v, s->run.blocks, 0, BT, 0);
	view_add(&v, s->run.blocks, 5 * BT, 1, 0);
	for (i = 0; i < v.n_segs; i++)
		v.segs[i].centroids = s->centroid;
	row = view_row(&v, 9, 50, v.n - 1);
	row.sparse = &how;
	row.read = read;
	assert_int_equal(exec_step(e, &row, 1), 0);
	for (i = 0; i < MAXB; i++)
		assert_int_equal(read[i], i < 2 || i == 6);
	free(logits);
	seq_free(s);
	exec_destroy(e);
	net_free(&l);
}

static void test_refused(void **state)
{
	struct net l = net_make(&view_full, GGUF_T_F32);
	struct exec *e = sparse_exec(l.m, NULL, EXEC_KV_F16, 1);
	struct exec *none = net_exec(l.m, NULL, 1, EXEC_KV_F16, BT, 4);
	struct seq *s = seq_make(l.m, EXEC_KV_F16);
	struct exec_sparse how = { 2, 0, 2 };
	struct exec_row rows[3];
	struct view v = { 0 };
	uint8_t out[1];
	uint32_t i;

	(void)state;
	view_add(&v, s->run.blocks, 0, BT, 0);
	for (i = 0; i < 3; i++) {
		rows[i] = view_row(&v, 1, i, i);
		rows[i].sparse = &how;
	}
	assert_int_equal(exec_step(none, rows, 3), -EOPNOTSUPP);
	assert_non_null(strstr(exec_step_error(none), "sparse_blocks"));
	assert_int_equal(exec_centroid_bytes(none), 0);
	assert_int_equal(exec_centroid_make(none, s->run.blocks[0], out), -EOPNOTSUPP);
	assert_int_equal(exec_step(e, rows, 3), -EINVAL);
	assert_non_null(strstr(exec_step_error(e), "row 2: a window of 2 tokens"));
	assert_int_equal(exec_step(e, rows, 2), 0);
	for (i = 0; i < MAXB; i++) /* one-token segments at the seam of two blocks */
		view_add(&v, s->run.blocks, BT - 1, 1, 0);
	rows[0].at = v.n - 1;
	rows[0].n_segs = v.n_segs;
	assert_int_equal(exec_step(e, rows, 1), -E2BIG);
	assert_non_null(strstr(exec_step_error(e), "129 blocks"));
	rows[0].n_segs--;
	rows[0].at--;
	assert_int_equal(exec_step(e, rows, 1), 0);
	seq_free(s);
	exec_destroy(none);
	exec_destroy(e);
	net_free(&l);
}

/* ---- INT8 against FP32 on the real model ---- */

#ifndef __SANITIZE_THREAD__

#define N_TEXT 1536u

struct overlap {
	struct exec *e;
	struct seq *s;
	uint32_t at;
	uint32_t same[3], all[3];
};

static const uint32_t overlap_r[3] = { 8, 16, 32 };

static void overlap_head(struct overlap *o, uint32_t layer, uint32_t head, const double *q,
			 const double *k)
{
	const struct model_config *c = &o->e->m->cfg;
	const uint32_t n = o->at / BT, group = c->n_head / c->n_head_kv, hd = c->head_dim;
	struct exec_scratch *s = &o->e->scratch[0];
	float f32[MAXB], i8[MAXB];
	uint32_t b, g, t, i, j, best[2][MAXB];

	for (g = 0; g < group; g++)
		for (i = 0; i < hd; i++)
			s->q[g * kern_pad(hd) + i] = (float)q[(head * group + g) * hd + i];
	sparse_query(o->e, layer, head, 0, s);
	for (b = 0; b < n; b++) {
		f32[b] = -INFINITY;
		for (g = 0; g < group; g++) {
			double sum = 0;

			for (t = 0; t < BT; t++)
				for (i = 0; i < hd; i++)
					sum += q[(head * group + g) * hd + i] *
					       k[((b * BT + t) * c->n_head_kv + head) * hd + i] /
					       BT;
			f32[b] = fmaxf(f32[b], (float)sum);
		}
		i8[b] = sparse_score(o->e, layer, head, o->s->centroid[b], s);
	}
	for (t = 0; t < 3; t++) {
		uint32_t r = overlap_r[t];

		sparse_top(f32, n, r, best[0]);
		sparse_top(i8, n, r, best[1]);
		o->all[t] += r;
		for (i = 0; i < r; i++)
			for (j = 0; j < r; j++)
				o->same[t] += best[0][i] == best[1][j];
	}
}

static void overlap_layer(void *arg, uint32_t layer, const double *q, const double *k)
{
	struct overlap *o = arg;
	uint32_t h;

	for (h = 0; h < o->e->m->cfg.n_head_kv; h++)
		overlap_head(o, layer, h, q, k);
}

/* Text that the model writes itself. */
static void write_text(struct exec *e, struct seq *s, int32_t *ids)
{
	const struct sample_params p = { .temperature = 0.8f, .top_p = 0.95f, .seed = 11 };
	struct view v = { 0 };
	struct sampler smp;
	struct exec_row row;
	uint32_t i;

	assert_int_equal(sample_init(&smp, &p, e->m->cfg.n_vocab), 0);
	view_add(&v, s->run.blocks, 0, N_TEXT, 0);
	ids[0] = 0;
	for (i = 0; i < N_TEXT; i++) {
		row = view_row(&v, ids[i], i, i);
		assert_int_equal(exec_step(e, &row, 1), 0);
		ids[i + 1] = sample_next(&smp, exec_logits(e, 0));
	}
	sample_free(&smp);
}

static void test_overlap(void **state)
{
	struct overlap o = { 0 };
	char err[GGUF_ERR_LEN];
	int32_t ids[N_TEXT + 1];
	struct model *m;
	struct ref *ref;
	double *out, same;
	uint32_t i;

	(void)state;
	if (model_load(TINY, &m, err))
		skip();
	/* the text, and so the figures, must not depend on the CPU */
	o.e = sparse_exec(m, "c", EXEC_KV_F16, 1);
	o.s = seq_make(m, EXEC_KV_F16);
	out = calloc(m->cfg.n_vocab, sizeof(double));
	write_text(o.e, o.s, ids);
	seq_centroids(o.s, o.e, N_TEXT / BT);
	ref = ref_create(m, N_TEXT + 1);
	for (i = 0; i < N_TEXT; i++)
		ref_load(ref, i, o.s->run.blocks[i / BT], i % BT, BT, EXEC_KV_F16, 0);
	ref_watch(ref, overlap_layer, &o);
	for (i = 0; i < 120; i++) {
		/* recomputes a token that is there: the same but for rounding */
		o.at = N_TEXT - 1 - i * 9;
		ref_row(ref, ids[o.at], o.at, o.at, out);
	}
	for (i = 0; i < 3; i++)
		printf("# %u of up to %u blocks: INT8 chooses %.2f %% of those FP32 does\n",
		       overlap_r[i], N_TEXT / BT, 100.0 * o.same[i] / o.all[i]);
	same = 100.0 * (o.same[0] + o.same[1] + o.same[2]) / (o.all[0] + o.all[1] + o.all[2]);
	printf("# together %.2f %%, %zu bytes of centroids for a block of %zu\n", same,
	       exec_centroid_bytes(o.e), o.s->run.block_bytes);
	assert_true(same >= 99.4);
	ref_free(ref);
	free(out);
	seq_free(o.s);
	exec_destroy(o.e);
	model_free(m);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_dense),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_refused),
#ifndef __SANITIZE_THREAD__ /* one thread, and minutes there */
		cmocka_unit_test(test_overlap),
#endif
	};

	return cmocka_run_group_tests_name("daemon_sparse", tests, NULL, NULL);
}
