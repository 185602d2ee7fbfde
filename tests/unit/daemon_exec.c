// SPDX-License-Identifier: MIT
/*
 * The executor on small random models: right against a plain double-precision
 * forward pass, and bitwise the same whatever shares a step, however a prompt
 * is cut, whatever the number of threads.
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

#include "daemon_net.h"
#include "exec/kern.h"
#include "exec/kern_half.h"
#include "exec/sample.h"

#define N_TOK 70 /* length of a test sequence */
#define N_REF 40 /* of which compared with the reference */

/*
 * Sizes that are not multiples of a vector, except for Q8_0; large enough that
 * even a step of one row runs on all threads.
 */
static const struct fx_model odd_model = {
	.n_vocab = 107,
	.n_ctx = 128,
	.n_embd = 172,
	.n_layer = 2,
	.n_head = 4,
	.n_head_kv = 2,
	.head_dim = 42,
	.n_ff = 301,
	.rope_dim = 38,
	.rope_factors = true,
	.seed = 11,
};

static const struct fx_model even_model = {
	.n_vocab = 100,
	.n_ctx = 128,
	.n_embd = 160,
	.n_layer = 2,
	.n_head = 4,
	.n_head_kv = 4,
	.head_dim = 64,
	.n_ff = 320,
	.rope_dim = 64,
	.tied = true,
	.seed = 12,
};

/* As Qwen 2: biases, halves rotate. */
static const struct fx_model qwen_model = {
	.n_vocab = 100,
	.n_ctx = 128,
	.n_embd = 160,
	.n_layer = 2,
	.n_head = 4,
	.n_head_kv = 2,
	.head_dim = 40,
	.n_ff = 320,
	.rope_dim = 40,
	.tied = true,
	.qwen2 = true,
	.seed = 13,
};

static uint32_t bt = 16; /* tokens per block */

static uint32_t n_blocks(void)
{
	return (N_TOK + bt - 1) / bt;
}

static const enum gguf_type types[] = {
	GGUF_T_F32,
	GGUF_T_F16,
	GGUF_T_BF16,
	GGUF_T_Q8_0,
};

/* TSan is slow, and races do not depend on the kernels: only the best there. */
#ifdef __SANITIZE_THREAD__
static const char *const isas[] = { NULL };
#else
static const char *const isas[] = { "c", "avx2", "avx512" };
#endif
#define N_ISAS (sizeof(isas) / sizeof(isas[0]))

/* NULL when this CPU lacks the instruction set. */
static struct exec *make_exec(const struct model *m, const char *isa, uint32_t threads,
			      enum exec_kv_type kv)
{
	return net_exec(m, isa, threads, kv, bt, 3 * N_TOK);
}

/* A sequence with its KV blocks, which start out as garbage. */
struct seq {
	int32_t ids[N_TOK];
	void *blocks[N_TOK];
	struct exec_seg seg; /* all of them */
	size_t block_bytes;
	float *logits; /* [N_TOK][n_vocab] */
};

static void seq_init(struct seq *s, const struct model *m, enum exec_kv_type kv, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < N_TOK; i++)
		s->ids[i] = fx_rand(&seed) % m->cfg.n_vocab;
	s->seg = (struct exec_seg){ .blocks = s->blocks, .len = N_TOK };
	s->block_bytes = exec_kv_block_bytes(&m->cfg, bt, kv);
	for (i = 0; i < n_blocks(); i++) {
		s->blocks[i] = malloc(s->block_bytes);
		assert_non_null(s->blocks[i]);
		memset(s->blocks[i], 0xff, s->block_bytes); /* NaNs */
	}
	s->logits = malloc(sizeof(float) * N_TOK * m->cfg.n_vocab);
	assert_non_null(s->logits);
}

static void seq_free(struct seq *s)
{
	uint32_t i;

	for (i = 0; i < n_blocks(); i++)
		free(s->blocks[i]);
	free(s->logits);
}

static void seq_rows(struct seq *s, struct exec_row *rows, uint32_t begin, uint32_t end)
{
	for (; begin < end; begin++)
		*rows++ = (struct exec_row){
			.token = s->ids[begin],
			.pos = begin,
			.at = begin,
			.segs = &s->seg,
			.n_segs = 1,
			.want_logits = true,
		};
}

static void keep_logits(struct seq *s, const struct exec *e, const struct model *m, uint32_t row,
			uint32_t begin, uint32_t end)
{
	for (; begin < end; begin++, row++)
		memcpy(s->logits + (size_t)begin * m->cfg.n_vocab, exec_logits(e, row),
		       sizeof(float) * m->cfg.n_vocab);
}

static void seq_run(struct seq *s, struct exec *e, const struct model *m, uint32_t from,
		    uint32_t chunk)
{
	struct exec_row rows[N_TOK];
	uint32_t i, n;

	for (i = from; i < N_TOK; i += n) {
		n = N_TOK - i < chunk ? N_TOK - i : chunk;
		seq_rows(s, rows, i, i + n);
		assert_int_equal(exec_step(e, rows, n), 0);
		keep_logits(s, e, m, 0, i, i + n);
	}
}

/* Same logits, and the same bytes in every block? */
static void expect_same(const struct seq *a, const struct seq *b, const struct model *m,
			const char *what)
{
	uint32_t i;

	if (memcmp(a->logits, b->logits, sizeof(float) * N_TOK * m->cfg.n_vocab))
		fail_msg("logits differ: %s", what);
	for (i = 0; i < n_blocks(); i++)
		if (memcmp(a->blocks[i], b->blocks[i], a->block_bytes))
			fail_msg("KV block %u differs: %s", i, what);
}

/* Logits of @n tokens. */
static double *ref_forward(const struct model *m, const int32_t *ids, uint32_t n)
{
	double *logits = calloc((size_t)n * m->cfg.n_vocab, sizeof(double));
	struct ref *r = ref_create(m, n);
	uint32_t pos;

	assert_non_null(logits);
	for (pos = 0; pos < n; pos++)
		ref_row(r, ids[pos], pos, pos, logits + (size_t)pos * m->cfg.n_vocab);
	ref_free(r);
	return logits;
}

static void check_reference(const struct fx_model *shape, enum gguf_type type, const char *isa,
			    enum exec_kv_type kv)
{
	const double bar = kv == EXEC_KV_F32 ? 2e-5 : 1e-2;
	struct net l = net_make(shape, type);
	struct exec *e = make_exec(l.m, isa, 1, kv);
	double *want, worst = 0;
	struct seq s;
	size_t i;

	if (e) {
		seq_init(&s, l.m, kv, 5);
		seq_run(&s, e, l.m, 0, 64);
		want = ref_forward(l.m, s.ids, N_REF);
		for (i = 0; i < (size_t)N_REF * l.m->cfg.n_vocab; i++)
			worst = fmax(worst, fabs(s.logits[i] - want[i]));
		if (!(worst < bar))
			fail_msg("%s %s: off by %g", exec_isa_name(e), gguf_type_name(type), worst);
		free(want);
		seq_free(&s);
	}
	exec_destroy(e);
	net_free(&l);
}

static void test_against_reference(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < N_ISAS; i++) {
		for (j = 0; j < 4; j++)
			check_reference(&even_model, types[j], isas[i], EXEC_KV_F32);
		for (j = 0; j < 3; j++)
			check_reference(&odd_model, types[j], isas[i], EXEC_KV_F32);
		check_reference(&odd_model, GGUF_T_F32, isas[i], EXEC_KV_F16);
		check_reference(&qwen_model, GGUF_T_F16, isas[i], EXEC_KV_F32);
		check_reference(&qwen_model, GGUF_T_Q8_0, isas[i], EXEC_KV_F16);
	}
}

/* ---- bitwise invariance ---- */

static void check_chunks(const struct model *m, struct exec *e, const struct seq *base,
			 enum exec_kv_type kv)
{
	static const uint32_t chunks[] = { 1, 3, 7, 64 };
	struct seq s;
	size_t i;

	for (i = 0; i < 4; i++) {
		seq_init(&s, m, kv, 5);
		seq_run(&s, e, m, 0, chunks[i]);
		expect_same(base, &s, m, "prompt cut differently");
		seq_free(&s);
	}
}

/* The sequence among others, which are at other positions of theirs. */
static void check_batched(const struct model *m, struct exec *e, const struct seq *base,
			  enum exec_kv_type kv)
{
	struct exec_row rows[3 * N_TOK];
	struct seq s[3];
	uint32_t at[3] = { 0 }, n, i, k, row, rnd = 99;
	uint32_t begin[3], first[3];

	for (i = 0; i < 3; i++)
		seq_init(&s[i], m, kv, i == 1 ? 5 : 50 + i);
	while (at[0] + at[1] + at[2] < 3 * N_TOK) {
		row = 0;
		for (i = 0; i < 3; i++) {
			n = fx_rand(&rnd) % 9;
			if (n > N_TOK - at[i])
				n = N_TOK - at[i];
			begin[i] = at[i];
			first[i] = row;
			seq_rows(&s[i], rows + row, at[i], at[i] + n);
			at[i] += n;
			row += n;
		}
		if (!row)
			continue;
		assert_int_equal(exec_step(e, rows, row), 0);
		for (k = 0; k < 3; k++)
			keep_logits(&s[k], e, m, first[k], begin[k], at[k]);
	}
	expect_same(base, &s[1], m, "batched with others");
	for (i = 0; i < 3; i++)
		seq_free(&s[i]);
}

/* A prefix computed earlier, by another executor, and moved elsewhere. */
static void check_prefix(const struct model *m, struct exec *e, const struct seq *base,
			 enum exec_kv_type kv)
{
	const uint32_t n_blk = bt > N_TOK / 2 ? 0 : N_TOK / 2 / bt, n_tok = n_blk * bt;
	struct seq s;
	uint32_t i;

	seq_init(&s, m, kv, 5);
	for (i = 0; i < n_blk; i++)
		memcpy(s.blocks[i], base->blocks[i], base->block_bytes);
	memcpy(s.logits, base->logits, sizeof(float) * n_tok * m->cfg.n_vocab);
	seq_run(&s, e, m, n_tok, 64);
	expect_same(base, &s, m, "prefix taken from elsewhere");
	seq_free(&s);
}

static void check_invariance(const struct fx_model *shape, enum gguf_type type, const char *isa,
			     enum exec_kv_type kv)
{
	struct net l = net_make(shape, type);
	struct exec *one = make_exec(l.m, isa, 1, kv), *two;
	struct seq base;

	if (one) {
		two = make_exec(l.m, isa, 2, kv);
		seq_init(&base, l.m, kv, 5);
		seq_run(&base, one, l.m, 0, N_TOK);
		check_chunks(l.m, one, &base, kv);
		check_chunks(l.m, two, &base, kv);
		check_batched(l.m, one, &base, kv);
		check_batched(l.m, two, &base, kv);
		check_prefix(l.m, two, &base, kv);
		seq_free(&base);
		exec_destroy(two);
		exec_destroy(one);
	}
	net_free(&l);
}

static void test_invariance_f16(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < N_ISAS; i++) {
		for (j = 0; j < 4; j++)
			check_invariance(&even_model, types[j], isas[i], EXEC_KV_F16);
		check_invariance(&odd_model, GGUF_T_F16, isas[i], EXEC_KV_F16);
		check_invariance(&qwen_model, GGUF_T_F16, isas[i], EXEC_KV_F16);
	}
}

static void test_invariance_f32(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < N_ISAS; i++) {
		for (j = 0; j < 3; j++)
			check_invariance(&odd_model, types[j], isas[i], EXEC_KV_F32);
		check_invariance(&even_model, GGUF_T_Q8_0, isas[i], EXEC_KV_F32);
	}
}

/* Blocks of one token, of odd sizes, and longer than the sequence. */
static void test_block_sizes(void **state)
{
	static const uint32_t sizes[] = { 1, 5, 64, 100 };
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		bt = sizes[i];
		check_reference(&odd_model, GGUF_T_F16, NULL, EXEC_KV_F32);
		check_invariance(&odd_model, GGUF_T_F16, NULL, EXEC_KV_F16);
	}
	bt = 16;
}

/*
 * Steps of one row after steps of many: the former run on one thread here, and
 * must not begin before every thread has left the latter.
 */
static void test_thread_changes(void **state)
{
	static const struct fx_model small = {
		.n_vocab = 40,
		.n_ctx = 128,
		.n_embd = 64,
		.n_layer = 2,
		.n_head = 4,
		.n_head_kv = 2,
		.head_dim = 16,
		.n_ff = 96,
		.rope_dim = 16,
		.seed = 13,
	};
	struct net l = net_make(&small, GGUF_T_Q8_0);
	struct exec *one = make_exec(l.m, NULL, 1, EXEC_KV_F16);
	struct exec *two = make_exec(l.m, NULL, 2, EXEC_KV_F16);
	struct exec_row rows[N_TOK];
	struct seq base, s;
	uint32_t i;

	(void)state;
	seq_init(&base, l.m, EXEC_KV_F16, 5);
	seq_run(&base, one, l.m, 0, N_TOK);
	seq_init(&s, l.m, EXEC_KV_F16, 5);
	for (i = 0; i < 200; i++) {
		seq_rows(&s, rows, 0, N_TOK);
		assert_int_equal(exec_step(two, rows, N_TOK), 0);
		keep_logits(&s, two, l.m, 0, 0, N_TOK);
		assert_int_equal(exec_step(two, rows, 1), 0);
		keep_logits(&s, two, l.m, 0, 0, 1);
		expect_same(&base, &s, l.m, "thread count changes");
	}
	seq_free(&s);
	seq_free(&base);
	exec_destroy(two);
	exec_destroy(one);
	net_free(&l);
}

/* Logits only where asked for, and the same ones. */
static void test_wanted_rows(void **state)
{
	struct net l = net_make(&even_model, GGUF_T_Q8_0);
	struct exec *e = make_exec(l.m, NULL, 2, EXEC_KV_F16);
	const size_t bytes = sizeof(float) * l.m->cfg.n_vocab;
	struct exec_row rows[N_TOK];
	struct seq a, b;
	uint32_t i;

	(void)state;
	seq_init(&a, l.m, EXEC_KV_F16, 5);
	seq_run(&a, e, l.m, 0, N_TOK);
	seq_init(&b, l.m, EXEC_KV_F16, 5);
	seq_rows(&b, rows, 0, N_TOK);
	for (i = 0; i < N_TOK; i++)
		rows[i].want_logits = i % 5 == 2;
	assert_int_equal(exec_step(e, rows, N_TOK), 0);
	for (i = 0; i < N_TOK; i++) {
		const float *got = exec_logits(e, i);

		assert_int_equal(got != NULL, i % 5 == 2);
		if (got)
			assert_memory_equal(got, a.logits + (size_t)i * l.m->cfg.n_vocab, bytes);
	}
	assert_null(exec_logits(e, N_TOK));
	seq_free(&a);
	seq_free(&b);
	exec_destroy(e);
	net_free(&l);
}

static void test_bad_steps(void **state)
{
	struct net l = net_make(&even_model, GGUF_T_Q8_0);
	const struct exec_config cfg = {
		.n_threads = 1,
		.max_rows = 4,
		.max_logits = 2,
		.block_tokens = bt,
	};
	char err[GGUF_ERR_LEN];
	struct exec_row rows[N_TOK], bad;
	struct exec *e;
	struct seq s;

	(void)state;
	assert_int_equal(exec_create(l.m, &cfg, &e, err), 0);
	seq_init(&s, l.m, EXEC_KV_F16, 5);
	seq_rows(&s, rows, 0, N_TOK);
	assert_int_equal(exec_step(e, rows, 0), -EINVAL);
	assert_int_equal(exec_step(e, rows, 5), -E2BIG);
	assert_int_equal(exec_step(e, rows, 3), -E2BIG);
	assert_int_equal(exec_step(e, rows, 2), 0);
	bad = rows[0];
	bad.token = -1;
	assert_int_equal(exec_step(e, &bad, 1), -EINVAL);
	bad.token = l.m->cfg.n_vocab;
	assert_int_equal(exec_step(e, &bad, 1), -EINVAL);
	bad = rows[0];
	bad.pos = l.m->cfg.n_ctx;
	assert_int_equal(exec_step(e, &bad, 1), -EINVAL);
	bad = rows[bt + 1];
	free(s.blocks[0]);
	s.blocks[0] = NULL;
	assert_int_equal(exec_step(e, &bad, 1), -EINVAL);
	seq_free(&s);
	exec_destroy(e);
	net_free(&l);
}

static void expect_config(const struct model *m, struct exec_config cfg, int code, const char *word)
{
	char err[GGUF_ERR_LEN] = "";
	struct exec *e;

	assert_int_equal(exec_create(m, &cfg, &e, err), code);
	if (!strstr(err, word))
		fail_msg("message '%s' lacks '%s'", err, word);
}

static void test_bad_configs(void **state)
{
	const struct exec_config ok = { .n_threads = 1, .max_rows = 4, .block_tokens = 16 };
	struct net l = net_make(&even_model, GGUF_T_Q8_0);
	struct exec_config c;

	(void)state;
	c = ok;
	c.max_rows = 0;
	expect_config(l.m, c, -EINVAL, "rows per step");
	c = ok;
	c.max_logits = 5;
	expect_config(l.m, c, -EINVAL, "no more logits than rows");
	c = ok;
	c.block_tokens = 0;
	expect_config(l.m, c, -EINVAL, "tokens per KV block");
	c = ok;
	c.n_threads = 1000;
	expect_config(l.m, c, -EINVAL, "threads");
	c = ok;
	c.kv_type = 7;
	expect_config(l.m, c, -EINVAL, "KV type");
	c = ok;
	c.isa = "sse9";
	expect_config(l.m, c, -EINVAL, "sse9");
	net_free(&l);
}

/* All 65,536 halves, and the rounding of floats between them. */
static void test_half(void **state)
{
	const struct kern_ops *ops[3] = { &kern_ops_c, &kern_ops_c, NULL };
	char err[GGUF_ERR_LEN];
	uint16_t h, back[3];
	uint32_t i, k, rnd = 3;
	float f[3];

	(void)state;
	kern_select(NULL, &ops[1], err);
	for (i = 0; i < 65536; i++) {
		h = i;
		for (k = 0; k < 2; k++) {
			ops[k]->unpack(&f[k], GGUF_T_F16, &h, 1);
			ops[k]->to_f16(&back[k], &f[k], 1);
		}
		assert_int_equal(float_to_bits(f[0]), float_to_bits(f[1]));
		assert_int_equal(back[0], back[1]);
		if (!isnan(f[0]))
			assert_int_equal(back[0], h);
	}
	for (i = 0; i < 500000; i++) {
		f[0] = bits_to_float(fx_rand(&rnd));
		for (k = 0; k < 2; k++)
			ops[k]->to_f16(&back[k], f, 1);
		if (back[0] != back[1])
			fail_msg("%a rounds to %04x and %04x", (double)f[0], back[0], back[1]);
	}
}

static void test_sampling(void **state)
{
	static const float logits[6] = { 0, 2, NAN, 2, 1, -INFINITY };
	struct sample_params p = { .temperature = 1, .top_p = 1, .seed = 42 };
	uint32_t count[6] = { 0 }, i, same = 0;
	struct sampler a, b;
	double sum = 0;

	(void)state;
	assert_int_equal(sample_greedy(logits, 6), 1);
	assert_int_equal(sample_init(&a, &p, 6), 0);
	assert_int_equal(sample_init(&b, &p, 6), 0);
	for (i = 0; i < 20000; i++) {
		int32_t id = sample_next(&a, logits);

		assert_in_range(id, 0, 5);
		count[id]++;
		same += id == sample_next(&b, logits);
	}
	assert_int_equal(same, 20000);
	assert_int_equal(count[2] + count[5], 0);
	sum = 1 + 2 * exp(2) + exp(1);
	assert_true(fabs(count[1] / 20000.0 - exp(2) / sum) < 0.015);
	assert_true(fabs(count[0] / 20000.0 - 1 / sum) < 0.015);
	sample_free(&a);
	sample_free(&b);

	p.top_k = 1;
	assert_int_equal(sample_init(&a, &p, 6), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(sample_next(&a, logits), 1);
	sample_free(&a);
	p.top_k = 0;
	p.top_p = 0.5f; /* ids 1 and 3 hold 80 % */
	assert_int_equal(sample_init(&a, &p, 6), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(sample_next(&a, logits) % 2, 1);
	sample_free(&a);
	p.top_p = 0;
	assert_int_equal(sample_init(&a, &p, 6), -EINVAL);
	p.top_p = 1;
	p.temperature = NAN;
	assert_int_equal(sample_init(&a, &p, 6), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half),	       cmocka_unit_test(test_against_reference),
		cmocka_unit_test(test_invariance_f16), cmocka_unit_test(test_invariance_f32),
		cmocka_unit_test(test_block_sizes),    cmocka_unit_test(test_thread_changes),
		cmocka_unit_test(test_wanted_rows),    cmocka_unit_test(test_bad_steps),
		cmocka_unit_test(test_bad_configs),    cmocka_unit_test(test_sampling),
	};

	return cmocka_run_group_tests_name("daemon_exec", tests, NULL, NULL);
}
