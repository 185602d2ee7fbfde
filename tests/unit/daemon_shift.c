// SPDX-License-Identifier: MIT
/*
 * Keys read shifted are the keys of the other position; random drops, moves,
 * compositions and appends give what a plain forward pass gives over the same
 * cached keys, turned one by one.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon_view.h"
#include "exec/kern.h"

#define TINY "tests/data/hawk-tiny.gguf"

/* ---- keys read at another position ---- */

static const double bar[2] = { [EXEC_KV_F16] = 2e-3, [EXEC_KV_F32] = 1e-5 };

/* |got - want| / |want| */
static double relative(const float *got, const double *want, uint32_t n)
{
	double diff = 0, norm = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		diff += (got[i] - want[i]) * (got[i] - want[i]);
		norm += want[i] * want[i];
	}
	return sqrt(diff / norm);
}

/* The keys of one token at @pos, all heads of the first layer: they depend on nothing else. */
static void first_keys(struct exec *e, const struct model *m, struct view_run *run, int32_t token,
		       uint32_t pos, enum exec_kv_type kv, float *out)
{
	const uint32_t hd = m->cfg.head_dim;
	struct view v = { 0 };
	struct exec_row row;
	uint32_t h;

	view_add(&v, run->blocks, 3, 1, 0);
	row = view_row(&v, token, pos, 0);
	if (exec_step(e, &row, 1))
		fail_msg("%s", exec_step_error(e));
	for (h = 0; h < m->cfg.n_head_kv; h++)
		kern_ops_c.unpack(out + h * hd, kv == EXEC_KV_F16 ? GGUF_T_F16 : GGUF_T_F32,
				  (const uint8_t *)run->blocks[0] +
					  (h * run->bt + 3) * run->block_bytes / run->bt /
						  (m->cfg.n_layer * 2 * m->cfg.n_head_kv),
				  hd);
}

static double check_turn(const struct model *m, const char *isa, enum exec_kv_type kv,
			 uint32_t seed)
{
	const uint32_t hd = m->cfg.head_dim, n_kv = m->cfg.n_head_kv;
	struct exec *e = net_exec(m, isa, 1, kv, 16, 1);
	struct view_run *run = calloc(1, sizeof(*run));
	double inv_freq[128], want[256], worst = 0, d;
	float moved[4 * 256], there[4 * 256];
	struct turn_cache turn;
	const struct kern_ops *ops;
	char err[GGUF_ERR_LEN];
	uint32_t i, j, h;
	float *mem;

	if (!e || kern_select(isa, &ops, err)) {
		exec_destroy(e);
		free(run);
		return 0;
	}
	assert_true(n_kv <= 4);
	mem = calloc(turn_floats(m->cfg.rope_dim), sizeof(float));
	view_run_init(run, m, 16, 16, kv);
	for (i = 0; i < m->cfg.rope_dim / 2; i++)
		inv_freq[i] = m->cfg.rope_scale *
			      pow(m->cfg.rope_base, -2.0 * i / m->cfg.rope_dim) /
			      (m->rope_factors ? m->rope_factors[i] : 1);
	turn_init(&turn, inv_freq, m->cfg.rope_dim, m->cfg.rope_pairs == MODEL_ROPE_HALVES, mem);
	for (i = 0; i < 60; i++) {
		const uint32_t span = i % 3 ? m->cfg.n_ctx < 100001 ? m->cfg.n_ctx : 100001 : 50;
		const uint32_t pos = fx_rand(&seed) % span, to = fx_rand(&seed) % span;
		const int32_t token = fx_rand(&seed) % m->cfg.n_vocab, shift = pos - to;

		if (!shift)
			continue;
		first_keys(e, m, run, token, pos, kv, moved);
		first_keys(e, m, run, token, to, kv, there);
		for (h = 0; h < n_kv; h++) {
			ops->turn_key(moved + h * hd, &turn, turn_get(&turn, shift));
			for (j = 0; j < hd; j++)
				want[j] = there[h * hd + j];
			d = relative(moved + h * hd, want, hd);
			if (!(d <= bar[kv]))
				fail_msg("%s kv %d: a key moved from %u to %u is off by %g",
					 exec_isa_name(e), kv, pos, to, d);
			worst = fmax(worst, d);
		}
	}
	view_run_free(run);
	free(run);
	free(mem);
	exec_destroy(e);
	return worst;
}

static void check_turns(struct model *m, const char *what)
{
	static const char *const names[] = { "pairs", "halves" };
	uint32_t i, kv, rope;
	double worst;

	for (rope = 0; rope < 2; rope++) {
		m->cfg.rope_pairs = rope;
		for (kv = 0; kv < 2; kv++) {
			worst = 0;
			for (i = 0; i < VIEW_ISAS; i++)
				worst = fmax(worst, check_turn(m, view_isas[i], kv, 77));
			printf("# moved keys, %s, %s, %s: off by at most %.2g\n", what, names[rope],
			       kv == EXEC_KV_F16 ? "f16" : "f32", worst);
		}
	}
	m->cfg.rope_pairs = MODEL_ROPE_PAIRS;
}

static void test_turn(void **state)
{
	struct net part = net_make(&view_part, GGUF_T_F32), full = net_make(&view_full, GGUF_T_F32);
	char err[GGUF_ERR_LEN];
	struct model *tiny;

	(void)state;
	check_turns(part.m, "38 of 42 elements rotated");
	check_turns(full.m, "64 of 64 elements rotated");
	net_free(&part);
	net_free(&full);
	if (model_load(TINY, &tiny, err))
		skip();
	check_turns(tiny, "hawk-tiny");
	model_free(tiny);
}

/*
 * The last @tail tokens of a sequence with shifted segments: one by one, and in
 * one step beside another sequence that shares them, on two threads.
 */
static void check_moved_batch(const struct model *m, const char *isa, enum exec_kv_type kv)
{
	enum { head = 75, tail = 20 };
	struct exec *one = net_exec(m, isa, 1, kv, 16, 64), *two = net_exec(m, isa, 2, kv, 16, 64);
	const uint32_t vocab = m->cfg.n_vocab;
	struct view_run *run = calloc(1, sizeof(*run));
	struct view flat = { 0 }, a = { 0 }, b[2] = { 0 };
	float *want = calloc((size_t)(head + tail) * vocab, sizeof(float));
	struct exec_row rows[2 * tail];
	int32_t ids[head + tail];
	uint32_t i, rnd = 9;

	assert_true(run && want);
	if (one) {
		view_run_init(run, m, 16, 400, kv);
		for (i = 0; i < head + tail; i++)
			ids[i] = fx_rand(&rnd) % vocab;
		view_add(&flat, run->blocks, 0, head, 0);
		view_compute(one, &flat, ids, 0, head, want, vocab, &rnd);
		view_add(&a, run->blocks, 0, 21, 0);
		view_add(&a, run->blocks, 25, 30, 4);
		view_add(&a, run->blocks, 60, head - 60, 9);
		b[0] = b[1] = a;
		view_add(&a, run->blocks, 100, tail, 0);
		view_add(&b[0], run->blocks, 200, tail, 0);
		view_add(&b[1], run->blocks, 300, tail, 0);
		for (i = 0; i < tail; i++) {
			rows[0] = view_row(&a, ids[head + i], 66 + i, a.n - tail + i);
			assert_int_equal(exec_step(one, rows, 1), 0);
			memcpy(want + (size_t)i * vocab, exec_logits(one, 0),
			       vocab * sizeof(float));
		}
		for (i = 0; i < 2 * tail; i++)
			rows[i] = view_row(&b[i / tail], ids[head + i % tail], 66 + i % tail,
					   a.n - tail + i % tail);
		assert_int_equal(exec_step(two, rows, 2 * tail), 0);
		for (i = 0; i < 2 * tail; i++)
			if (memcmp(exec_logits(two, i), want + (size_t)(i % tail) * vocab,
				   vocab * sizeof(float)))
				fail_msg("%s kv %d: row %u depends on the batch",
					 exec_isa_name(one), kv, i);
		view_run_free(run);
	}
	exec_destroy(one);
	exec_destroy(two);
	free(run);
	free(want);
}

static void test_moved_batch(void **state)
{
	struct net part = net_make(&view_part, GGUF_T_F16);
	struct net full = net_make(&view_full, GGUF_T_Q8_0);
	uint32_t i, kv, rope;

	(void)state;
	for (rope = 0; rope < 2; rope++)
		for (i = 0; i < VIEW_ISAS; i++)
			for (kv = 0; kv < 2; kv++) {
				part.m->cfg.rope_pairs = full.m->cfg.rope_pairs = rope;
				check_moved_batch(part.m, view_isas[i], kv);
				check_moved_batch(full.m, view_isas[i], kv);
			}
	net_free(&part);
	net_free(&full);
}

/* ---- random histories ---- */

/*
 * The plain reference keeps every visible token by itself: its slot in the run
 * and its shift. @pos is the rotary position it was stored with.
 */
struct tok {
	uint32_t slot, pos;
	int32_t shift;
};

struct history {
	const struct model *m;
	struct exec *e;
	enum exec_kv_type kv;
	struct view_run run;
	struct tok tok[MAX_TOK];
	uint32_t n, next_slot;
	uint32_t rnd;
	double worst;
};

static void hist_view(const struct history *h, struct view *v)
{
	uint32_t i;

	*v = (struct view){ 0 };
	for (i = 0; i < h->n; i++) {
		const struct tok *t = &h->tok[i];

		if (i && t->slot == t[-1].slot + 1 && t->shift == t[-1].shift) {
			v->segs[v->n_segs - 1].len++;
			v->n++;
		} else {
			view_add(v, h->run.blocks, t->slot, 1, t->shift);
		}
	}
}

/* What the last @c tokens must have given: every cached key turned one by one. */
static void hist_expect(struct history *h, const int32_t *ids, uint32_t c)
{
	struct ref *r = ref_create(h->m, h->n);
	double *want = calloc(h->m->cfg.n_vocab, sizeof(double)), d;
	uint32_t i, first = h->n - c;

	assert_non_null(want);
	for (i = 0; i < first; i++)
		ref_load(r, i, h->run.blocks[h->tok[i].slot / h->run.bt],
			 h->tok[i].slot % h->run.bt, h->run.bt, h->kv, h->tok[i].shift);
	for (i = 0; i < c; i++) {
		ref_row(r, ids[i], h->tok[first + i].pos, first + i, want);
		d = relative(exec_logits(h->e, i), want, h->m->cfg.n_vocab);
		if (!(d <= bar[h->kv]))
			fail_msg("%s kv %d: token %u is off by %g", exec_isa_name(h->e), h->kv,
				 first + i, d);
		h->worst = fmax(h->worst, d);
	}
	free(want);
	ref_free(r);
}

static void hist_append(struct history *h, uint32_t c)
{
	const struct tok *last = h->n ? &h->tok[h->n - 1] : NULL;
	struct exec_row rows[24];
	int64_t pos = last ? (int64_t)last->pos - last->shift + 1 :
			     fx_rand(&h->rnd) % h->m->cfg.n_ctx;
	int32_t ids[24];
	struct view v;
	uint32_t i;

	if (pos < 0 || pos + c > h->m->cfg.n_ctx)
		pos = h->m->cfg.n_ctx / 2;
	if (fx_rand(&h->rnd) % 3 == 0)
		h->next_slot += fx_rand(&h->rnd) % 20;
	assert_true(h->next_slot + c <= h->run.n_blocks * h->run.bt);
	for (i = 0; i < c; i++) {
		ids[i] = fx_rand(&h->rnd) % h->m->cfg.n_vocab;
		h->tok[h->n++] = (struct tok){ .slot = h->next_slot++, .pos = pos + i };
	}
	hist_view(h, &v);
	for (i = 0; i < c; i++)
		rows[i] = view_row(&v, ids[i], pos + i, h->n - c + i);
	if (exec_step(h->e, rows, c))
		fail_msg("%s", exec_step_error(h->e));
	hist_expect(h, ids, c);
}

/* Drop, move or compose: copy tokens to the end, as another sequence's would be. */
static void hist_edit(struct history *h)
{
	uint32_t s = fx_rand(&h->rnd) % h->n, len = 1 + fx_rand(&h->rnd) % (h->n - s), i;
	int32_t shift = (int32_t)(fx_rand(&h->rnd) % 2001) - 1000;

	if (fx_rand(&h->rnd) % 4 == 0)
		shift *= 90; /* up to 1e5 */
	switch (fx_rand(&h->rnd) % 4) {
	case 0:
		if (len == h->n)
			len--;
		memmove(h->tok + s, h->tok + s + len, (h->n - s - len) * sizeof(*h->tok));
		h->n -= len;
		break;
	case 1: /* close a gap: all that follows moves */ len = h->n - s; /* fall through */
	case 2:
		for (i = s; i < s + len; i++)
			h->tok[i].shift += shift;
		break;
	case 3:
		for (i = s; i < s + len && h->n + 24 < MAX_TOK; i++) {
			h->tok[h->n] = h->tok[i];
			h->tok[h->n++].shift += shift;
		}
	}
}

static double check_history(const struct model *m, const char *isa, enum exec_kv_type kv,
			    uint32_t bt, uint32_t rounds, uint32_t seed)
{
	struct history *h = calloc(1, sizeof(*h));
	double worst;
	uint32_t i;

	h->m = m;
	h->kv = kv;
	h->rnd = seed;
	h->e = net_exec(m, isa, 2, kv, bt, 24);
	if (h->e) {
		view_run_init(&h->run, m, bt, 24 + rounds * 44, kv);
		hist_append(h, 24);
		for (i = 0; i < rounds; i++) {
			hist_edit(h);
			if (fx_rand(&h->rnd) % 2 == 0)
				continue;
			if (h->n + 24 > MAX_TOK) {
				memmove(h->tok, h->tok + 100, (h->n - 100) * sizeof(*h->tok));
				h->n -= 100;
			}
			hist_append(h, fx_rand(&h->rnd) % 3 ? 1 : 1 + fx_rand(&h->rnd) % 24);
		}
		view_run_free(&h->run);
	}
	worst = h->worst;
	exec_destroy(h->e);
	free(h);
	return worst;
}

static void check_histories(struct model *m, const char *what, uint32_t rounds)
{
	uint32_t i, kv, rope;
	double worst;

	for (rope = 0; rope < 2; rope++)
		for (kv = 0; kv < 2; kv++) {
			m->cfg.rope_pairs = rope;
			worst = 0;
			for (i = 0; i < VIEW_ISAS; i++) {
				worst = fmax(worst,
					     check_history(m, view_isas[i], kv, 16, rounds, 5));
				worst = fmax(worst,
					     check_history(m, view_isas[i], kv, 7, rounds, 6));
			}
			printf("# random histories, %s, %s, %s: off by at most %.2g\n", what,
			       rope ? "halves" : "pairs", kv == EXEC_KV_F16 ? "f16" : "f32", worst);
		}
	m->cfg.rope_pairs = MODEL_ROPE_PAIRS;
}

static void test_history(void **state)
{
	struct net part = net_make(&view_part, GGUF_T_F32), full = net_make(&view_full, GGUF_T_F32);

	(void)state;
	check_histories(part.m, "38 of 42 elements rotated", 24);
	check_histories(full.m, "64 of 64 elements rotated", 24);
	net_free(&part);
	net_free(&full);
}

static void test_history_tiny(void **state)
{
	char err[GGUF_ERR_LEN];
	struct model *tiny;

	(void)state;
	if (model_load(TINY, &tiny, err))
		skip();
	check_histories(tiny, "hawk-tiny", 10);
	model_free(tiny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_moved_batch),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_history_tiny),
	};

	return cmocka_run_group_tests_name("daemon_shift", tests, NULL, NULL);
}
