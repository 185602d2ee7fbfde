// SPDX-License-Identifier: MIT
/*
 * Sequences that are lists of segments: where the visible tokens lie changes no
 * bit, and wrong steps are refused with their cause.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon_view.h"

/* ---- where tokens lie changes nothing ---- */

/* A view of @n tokens in pieces that lie in @run in any order, with gaps, from slot *slot. */
static void view_scatter(struct view *v, const struct view_run *run, uint32_t n, uint32_t *slot,
			 uint32_t *rnd)
{
	uint32_t len[MAX_TOK], order[MAX_TOK], tok[MAX_TOK], n_piece = 0, i, j, t;

	for (i = 0; i < n; i += len[n_piece++]) {
		len[n_piece] = 1 + fx_rand(rnd) % (fx_rand(rnd) % 3 ? 6 : 40);
		if (len[n_piece] > n - i)
			len[n_piece] = n - i;
		order[n_piece] = n_piece;
	}
	for (i = n_piece - 1; i; i--) {
		j = fx_rand(rnd) % (i + 1);
		t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
	for (i = 0; i < n_piece; i++) {
		*slot += fx_rand(rnd) % 3 ? 0 : fx_rand(rnd) % 20;
		tok[order[i]] = *slot;
		*slot += len[order[i]];
	}
	assert_true(*slot <= run->n_blocks * run->bt);
	for (i = 0; i < n_piece; i++)
		view_add(v, run->blocks, tok[i], len[i], 0);
}

static void expect_same(const struct model *m, const struct view *a, const struct view_run *ra,
			const float *la, const struct view *b, const struct view_run *rb,
			const float *lb, uint32_t n, const char *what)
{
	const size_t bytes = ra->block_bytes / ra->bt, row = m->cfg.n_vocab;
	uint8_t *ka = malloc(bytes), *kb = malloc(bytes);
	uint32_t i;

	assert_true(ka && kb);
	for (i = 0; i < n; i++) {
		if (memcmp(la + i * row, lb + i * row, row * sizeof(float)))
			fail_msg("%s: logits of token %u differ", what, i);
		view_read(a, m, ra, i, ka);
		view_read(b, m, rb, i, kb);
		if (memcmp(ka, kb, bytes))
			fail_msg("%s: K/V of token %u differ", what, i);
	}
	free(ka);
	free(kb);
}

/*
 * Twice the same tokens in one run and in scattered pieces; then a second
 * sequence that shares the first one's pieces up to @shared and goes on with
 * other tokens, in the same steps.
 */
static void check_layout(const struct model *m, struct exec *e, enum exec_kv_type kv, uint32_t bt,
			 uint32_t seed)
{
	const uint32_t n = 100, shared = 53, vocab = m->cfg.n_vocab;
	struct view_run *flat = calloc(1, sizeof(*flat)), *run = calloc(1, sizeof(*run));
	struct view whole[2] = { 0 }, part[2] = { 0 };
	float *want[2], *got[2];
	int32_t ids[2][100];
	struct exec_row rows[2];
	uint32_t i, k, slot = 3, rnd = seed;

	view_run_init(flat, m, bt, 2 * n + bt, kv);
	view_run_init(run, m, bt, 12 * n, kv);
	for (i = 0; i < n; i++) {
		ids[0][i] = fx_rand(&rnd) % vocab;
		ids[1][i] = i < shared ? ids[0][i] : (int32_t)(fx_rand(&rnd) % vocab);
	}
	view_add(&whole[0], flat->blocks, 0, n, 0);
	view_add(&whole[1], flat->blocks + (n + bt - 1) / bt, 0, n, 0);
	view_scatter(&part[0], run, shared, &slot, &rnd);
	part[1] = part[0];
	for (k = 0; k < 2; k++) {
		view_scatter(&part[k], run, n - shared, &slot, &rnd);
		want[k] = calloc((size_t)n * vocab, sizeof(float));
		got[k] = calloc((size_t)n * vocab, sizeof(float));
		assert_true(want[k] && got[k]);
		view_compute(e, &whole[k], ids[k], 0, n, want[k], vocab, &rnd);
	}
	view_compute(e, &part[0], ids[0], 0, shared, got[0], vocab, &rnd);
	memcpy(got[1], got[0], (size_t)shared * vocab * sizeof(float));
	for (i = shared; i < n; i++) {
		for (k = 0; k < 2; k++)
			rows[k] = view_row(&part[k], ids[k][i], i, i);
		if (exec_step(e, rows, 2))
			fail_msg("%s", exec_step_error(e));
		for (k = 0; k < 2; k++)
			memcpy(got[k] + (size_t)i * vocab, exec_logits(e, k),
			       vocab * sizeof(float));
	}
	for (k = 0; k < 2; k++) {
		expect_same(m, &whole[k], flat, want[k], &part[k], run, got[k], n,
			    exec_isa_name(e));
		free(want[k]);
		free(got[k]);
	}
	view_run_free(flat);
	view_run_free(run);
	free(flat);
	free(run);
}

static void test_layout(void **state)
{
	static const uint32_t bts[] = { 16, 5, 1, 64 };
	struct net l = net_make(&view_part, GGUF_T_F16);
	uint32_t i, b, kv;

	(void)state;
	for (i = 0; i < VIEW_ISAS; i++)
		for (b = 0; b < 4; b++)
			for (kv = 0; kv < 2; kv++) {
				struct exec *e =
					net_exec(l.m, view_isas[i], 1 + kv, kv, bts[b], 64);

				if (e)
					check_layout(l.m, e, kv, bts[b], 31 + b);
				exec_destroy(e);
			}
	net_free(&l);
}

/* ---- steps that are refused, and why ---- */

static void expect_refused(struct exec *e, const struct exec_row *rows, uint32_t n, int code,
			   const char *words)
{
	assert_int_equal(exec_step(e, rows, n), code);
	if (!strstr(exec_step_error(e), words))
		fail_msg("'%s' does not say '%s'", exec_step_error(e), words);
}

static void expect_seg(struct exec *e, void *const *blocks, uint32_t tok, uint32_t len,
		       int32_t shift, uint32_t at, const char *words)
{
	const struct exec_seg seg = { .blocks = blocks, .tok = tok, .len = len, .shift = shift };
	const struct exec_row row = { .pos = 9, .at = at, .segs = &seg, .n_segs = 1 };

	expect_refused(e, &row, 1, -EINVAL, words);
}

static void test_refused(void **state)
{
	struct net l = net_make(&view_part, GGUF_T_F16);
	struct exec *e = net_exec(l.m, NULL, 1, EXEC_KV_F16, 16, 4);
	struct view_run *run = calloc(1, sizeof(*run));
	struct exec_row rows[5];
	struct view v = { 0 };
	void *holes[3];
	uint32_t i;

	(void)state;
	view_run_init(run, l.m, 16, 64, EXEC_KV_F16);
	view_add(&v, run->blocks, 5, 20, 0);
	for (i = 0; i < 5; i++)
		rows[i] = view_row(&v, 1, i, i);
	assert_string_equal(exec_step_error(e), "");
	expect_refused(e, rows, 0, -EINVAL, "without rows");
	expect_refused(e, rows, 5, -E2BIG, "5 rows: at most 4");
	rows[2].token = 107;
	expect_refused(e, rows, 3, -EINVAL, "row 2: token 107");
	rows[2] = view_row(&v, 1, 131072, 2);
	expect_refused(e, rows, 3, -EINVAL, "row 2: position 131072");
	rows[2] = view_row(&v, 1, 2, 20);
	expect_refused(e, rows, 3, -EINVAL, "row 2: visible index 20, the segments hold 20");
	rows[2].n_segs = 0;
	expect_refused(e, rows, 3, -EINVAL, "row 2: no segments");
	expect_seg(e, NULL, 0, 8, 0, 3, "segment 0 has no blocks");
	expect_seg(e, run->blocks, 7, 0, 0, 3, "0 tokens from slot 7");
	expect_seg(e, run->blocks, 9, UINT32_MAX - 8, 0, 3, "from slot 9");
	expect_seg(e, run->blocks, 9, 8, -2, 3, "read shifted");
	memcpy(holes, run->blocks, sizeof(holes));
	holes[1] = NULL;
	expect_seg(e, holes, 10, 24, 0, 9, "block 1 of segment 0 is missing");
	/* what no row needs may be missing, and rows may land behind a shifted segment */
	view_add(&v, run->blocks, 30, 4, 3);
	view_add(&v, holes, 3, 30, 0);
	v.segs[0].len = 10;
	rows[0] = view_row(&v, 1, 7, 14);
	rows[1] = view_row(&v, 1, 8, 15);
	assert_int_equal(exec_step(e, rows, 2), 0);
	rows[0].at = 13;
	rows[1].at = 14;
	expect_refused(e, rows, 2, -EINVAL, "row 0: its key would go to segment 1");
	view_run_free(run);
	free(run);
	exec_destroy(e);
	net_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("daemon_segments", tests, NULL, NULL);
}
