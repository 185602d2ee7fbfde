// SPDX-License-Identifier: MIT
/*
 * serve_step.c - how a step is put together (daemon/sched/step.c): chunked
 * prefill under a token budget, decode first, nobody starved; what happens when
 * tokens cannot be dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The functions under test are static: take the file in under another name. */
#define sched_step_main sched_step_main_under_test
void *sched_step_main_under_test(void *arg);
#include "sched/step.c"
#include "kv/kv_priv.h" /* its space, to use it up */

#define MAX_SEQS 32

struct env {
	struct sched s;
	struct exec_row rows[4096];
	struct req *seq[MAX_SEQS];
};

static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	e->s.rows = e->rows;
	e->s.seq = e->seq;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;
	uint32_t i;

	for (i = 0; i < e->s.n_seq; i++)
		req_put(e->seq[i]);
	free(e);
	return 0;
}

static struct req *add_req(struct env *e, uint32_t n_prompt, uint32_t pos, uint32_t n_out)
{
	struct req *r;
	uint32_t i;

	assert_int_equal(req_create(n_prompt, 100, &r), 0);
	for (i = 0; i < n_prompt + n_out; i++)
		r->tokens[i] = (int32_t)(1000 * e->s.n_seq + i);
	r->pos = pos;
	atomic_store(&r->n_out, n_out);
	e->seq[e->s.n_seq++] = r;
	return r;
}

/* What the executor demands of its rows, and what we promise about the budget. */
static void check_rows(struct env *e, uint32_t n)
{
	uint32_t i, k, sum = 0;

	assert_true(n <= e->s.cfg.batch_tokens);
	for (i = 0; i < e->s.n_seq; i++) {
		struct req *r = e->seq[i];

		sum += r->n_rows;
		assert_true(r->n_rows <= e->s.cfg.chunk);
		for (k = 0; k < r->n_rows; k++) {
			const struct exec_row *row = &e->rows[r->row + k];

			assert_int_equal(row->pos, r->pos + k - r->kv.moved);
			assert_int_equal(row->at, r->pos + k - r->kv.hidden);
			assert_int_equal(row->token, r->tokens[r->pos + k]);
			assert_ptr_equal(row->segs, r->kv.seg);
			assert_int_equal(row->n_segs, r->kv.n_segs);
			assert_int_equal(row->want_logits,
					 r->pos + k + 1 == r->n_prompt + req_n_out(r));
		}
	}
	assert_int_equal(sum, n);
}

/* Compute the step, without an executor. */
static uint32_t step(struct env *e)
{
	uint32_t n = step_build(&e->s), i;

	check_rows(e, n);
	for (i = 0; i < e->s.n_seq; i++) {
		struct req *r = e->seq[i];

		r->pos += r->n_rows;
		if (r->n_rows && req_decoding(r))
			atomic_fetch_add(&r->n_out, 1);
	}
	return n;
}

/* Budget 512, 30 decoding, chunk 256, prompts of 400 and 300 tokens. */
static void test_chunks(void **state)
{
	struct env *e = *state;
	struct req *a, *b;
	uint32_t i;

	e->s.cfg.batch_tokens = 512;
	e->s.cfg.chunk = 256;
	for (i = 0; i < 30; i++)
		add_req(e, 10, 10, 1);
	a = add_req(e, 400, 0, 0);
	b = add_req(e, 300, 0, 0);
	assert_int_equal(step(e), 512);
	assert_int_equal(a->n_rows, 256);
	assert_int_equal(b->n_rows, 226);
	assert_int_equal(step(e), 30 + 144 + 74);
	assert_int_equal(a->n_rows, 144);
	assert_int_equal(b->n_rows, 74);
	assert_true(req_decoding(a) && req_decoding(b));
	assert_int_equal(step(e), 32);
}

/* A long prompt takes ceil(P / chunk) steps, and decode gets a row in each. */
static void test_decode_not_starved(void **state)
{
	struct env *e = *state;
	struct req *d, *p;
	uint32_t steps = 0;

	e->s.cfg.batch_tokens = 64;
	e->s.cfg.chunk = 32;
	p = add_req(e, 1000, 0, 0);
	d = add_req(e, 10, 10, 1);
	while (!req_decoding(p)) {
		step(e);
		assert_int_equal(d->n_rows, 1);
		steps++;
	}
	assert_int_equal(steps, (1000 + 31) / 32);
}

/* With max_seqs < batch_tokens a prompt moves on however many decode. */
static void test_prefill_not_starved(void **state)
{
	struct env *e = *state;
	struct req *p;
	uint32_t i;

	e->s.cfg.batch_tokens = 32;
	e->s.cfg.chunk = 32;
	for (i = 0; i < 31; i++)
		add_req(e, 10, 10, 1);
	p = add_req(e, 40, 0, 0);
	for (i = 0; i < 40; i++) {
		assert_false(req_decoding(p));
		assert_int_equal(step(e), 32);
		assert_int_equal(p->n_rows, 1);
	}
	assert_true(req_decoding(p));
}

/* A window bounds the rows of a step: with blocks of 16 tokens it has 15 more than these. */
static void test_window(void **state)
{
	struct kv_config cfg = { .url = "embed:?dram=2M", .block_payload = 4096,
				 .block_tokens = 16, .planes = 1, .model = "m", .dtype_name = "f16",
				 .layout = "any", .max_seqs = 1 };
	struct env *e = *state;
	char err[KV_ERR_LEN];
	struct req *p;

	e->s.cfg.batch_tokens = 64;
	e->s.cfg.chunk = 32;
	assert_int_equal(kv_open(&cfg, &e->s.cfg.kv, err), 0);
	p = add_req(e, 100, 0, 0);
	p->kv.sparse = (struct exec_sparse){ .blocks = 1, .window = 20 };
	assert_int_equal(step(e), 5);
	assert_ptr_equal(e->rows[p->row].sparse, &p->kv.sparse);
	p->kv.sparse.window = 16;
	assert_int_equal(step(e), 1);
	p->kv.sparse.window = 1024;
	assert_int_equal(step(e), 32);
	p->kv.sparse.window = 0;
	assert_int_equal(step(e), 32);
	assert_null(e->rows[p->row].sparse);
	kv_close(e->s.cfg.kv);
}

/*
 * Tokens that see different things are of different steps: [8, 24) is dropped at 50
 * and the gap closed, [30, 33) at 70 and left open.
 */
static void test_operations(void **state)
{
	static const uint32_t rows[] = { 32, 18, 20, 30, 1 };
	static const uint32_t hidden[] = { 0, 0, 16, 19, 19 };
	static const uint32_t moved[] = { 0, 0, 16, 16, 16 };
	struct hist_op op[] = { { .at = 50, .start = 8, .end = 24, .repos = true },
				{ .at = 70, .start = 30, .end = 33 } };
	struct kv_config cfg = { .url = "embed:?dram=2M", .block_payload = 4096,
				 .block_tokens = 16, .planes = 1, .model = "m", .dtype_name = "f16",
				 .layout = "any", .max_seqs = 1 };
	uint8_t root[KV_KEY_BYTES];
	char err[KV_ERR_LEN];
	struct kv_need need;
	struct exec_seg *seg;
	struct env *e = *state;
	struct req *p;
	uint32_t i;

	e->s.cfg.batch_tokens = 64;
	e->s.cfg.chunk = 32;
	assert_int_equal(kv_open(&cfg, &e->s.cfg.kv, err), 0);
	assert_int_equal(kv_root(e->s.cfg.kv, NULL, 0, root), 0);
	p = add_req(e, 100, 0, 0);
	need = (struct kv_need){ .tokens = p->tokens, .n_prompt = 100, .n_total = 110, .ops = op,
				  .n_ops = 2, .root = root };
	assert_int_equal(kv_seq_open(e->s.cfg.kv, &p->kv, &need, err), 0);
	seg = p->kv.seg;
	for (i = 0; i < 5; i++) {
		assert_int_equal(step(e), rows[i]);
		assert_int_equal(p->kv.hidden, hidden[i]);
		assert_int_equal(p->kv.moved, moved[i]);
	}
	assert_true(req_decoding(p));
	assert_int_equal(p->kv.n_segs, 4);
	assert_int_equal(seg[0].len, 8);
	assert_int_equal(seg[1].tok, 24);
	assert_int_equal(seg[1].len, 6);
	assert_int_equal(seg[1].shift, 16);
	assert_int_equal(seg[2].tok, 33);
	assert_int_equal(seg[2].shift, 16);
	assert_int_equal(seg[3].tok, 50);
	assert_int_equal(seg[3].shift, 0);
	kv_seq_close(e->s.cfg.kv, &p->kv);
	kv_close(e->s.cfg.kv);
}

/* A sequence in pieces that takes all segments that are left. Return: its handle. */
static uint32_t take_segments(struct hawk_kv *space)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_APPEND, .len = 1u << 20 };
	uint32_t i = 1;
	int ret;

	assert_int_equal(hawk_seq_new(space, 0, &op.seq), 0);
	assert_int_equal(hawk_seq_batch(space, &op, 1), 1);
	while ((ret = hawk_seq_drop(space, op.seq, i, i + 1)) >= 0)
		i += 2;
	assert_int_equal(ret, -ENOSPC);
	return op.seq;
}

/* There are two sequences in all, and both can drop. */
static void drop_in_two(struct kv *kv, const struct kv_need *need)
{
	struct kv_seq s[2];
	char err[KV_ERR_LEN];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(kv_seq_open(kv, &s[i], need, err), 0);
		assert_int_equal(kv_seq_view(kv, &s[i], 50), UINT32_MAX);
		assert_int_equal(s[i].hidden, 16);
	}
	for (i = 0; i < 2; i++)
		kv_seq_close(kv, &s[i]);
}

/*
 * The engine refuses a drop in the middle of a prompt: that request fails and gives all
 * back, the one beside it goes on, and later ones can drop.
 */
static void test_refused(void **state)
{
	struct hist_op op = { .at = 50, .start = 8, .end = 24, .repos = true };
	struct kv_config cfg = { .url = "embed:?dram=2M", .block_payload = 4096,
				 .block_tokens = 16, .planes = 1, .model = "m", .dtype_name = "f16",
				 .layout = "any", .max_seqs = 2 };
	static struct metrics metrics;
	uint8_t root[KV_KEY_BYTES];
	char err[KV_ERR_LEN];
	struct env *e = *state;
	struct kv_need need;
	struct kv_stat st;
	struct req *p, *other;
	uint32_t taken;
	struct kv *kv;

	assert_int_equal(kv_open(&cfg, &kv, err), 0);
	assert_int_equal(kv_root(kv, NULL, 0, root), 0);
	e->s.cfg = (struct sched_config){
		.batch_tokens = 64, .chunk = 64, .kv = kv, .metrics = &metrics
	};
	e->s.live = 2;
	other = add_req(e, 10, 10, 1);
	p = add_req(e, 100, 0, 0);
	atomic_fetch_add(&p->refs, 1); /* ours, to look at it when it has ended */
	need = (struct kv_need){ .tokens = p->tokens, .n_prompt = 100, .n_total = 110, .ops = &op,
				  .n_ops = 1, .root = root };
	assert_int_equal(kv_seq_open(kv, &p->kv, &need, err), 0);
	assert_int_equal(step(e), 1 + 50);
	taken = take_segments(kv->space);

	assert_int_equal(step(e), 1);
	assert_int_equal(other->n_rows, 1);
	step_drop_cancelled(&e->s, false);
	assert_int_equal(e->s.n_seq, 1);
	assert_ptr_equal(e->seq[0], other);
	assert_int_equal(step(e), 1);
	assert_int_equal(req_state(p), REQ_FAILED);
	assert_int_equal(p->error, -ENOSPC);
	assert_non_null(strstr(p->error_text, strerror(ENOSPC)));
	assert_int_equal(kv_get_stat(kv, &st), 0);
	assert_int_equal(st.space.pinned, 0);

	assert_true(hawk_seq_free(kv->space, taken) >= 0);
	drop_in_two(kv, &need);
	req_put(p);
	kv_close(kv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_decode_not_starved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prefill_not_starved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_operations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_window, setup, teardown),
	};

	return cmocka_run_group_tests_name("serve_step", tests, NULL, NULL);
}
