// SPDX-License-Identifier: MIT
/*
 * serve_spec.c - speculation (daemon/sched/spec.c, ngram.c): what is guessed, that
 * choices keep their distribution, and which KV stays
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "sched/spec.h"

/* ---- guesses ---- */

static void test_lookup(void **state)
{
	static const int32_t hist[] = { 1, 2, 3, 4, 5, 6, 9, 2, 3, 7, 8, 1, 2, 3 };
	const uint32_t n = sizeof(hist) / sizeof(hist[0]);
	struct ngram g;
	int32_t out[8];

	(void)state;
	assert_int_equal(ngram_init(&g, 2, 100), 0);
	assert_int_equal(ngram_draft(&g, hist, 2, out, 4), 0);
	assert_int_equal(ngram_draft(&g, hist, 6, out, 4), 0);
	/* [2 3] was at 1 and is at 7: 4 follows the first */
	assert_int_equal(ngram_draft(&g, hist, 9, out, 4), 4);
	assert_int_equal(out[0], 4);
	assert_int_equal(out[3], 9);
	/* at the end, 7 follows the latest */
	assert_int_equal(ngram_draft(&g, hist, n, out, 3), 3);
	assert_int_equal(out[0], 7);
	assert_int_equal(out[1], 8);
	assert_int_equal(out[2], 1);
	ngram_free(&g);
}

/* What is learned before is not gone through again, and gives the same guesses. */
static void test_learn(void **state)
{
	int32_t hist[300], a_out[8], b_out[8];
	struct ngram a, b;
	uint32_t i;

	(void)state;
	for (i = 0; i < 300; i++)
		hist[i] = i * i % 17;
	assert_int_equal(ngram_init(&a, 3, 300), 0);
	assert_int_equal(ngram_init(&b, 3, 300), 0);
	ngram_learn(&a, hist, 1); /* less than what is looked for */
	ngram_learn(&a, hist, 200);
	assert_int_equal(a.done, 200);
	for (i = 201; i < 300; i++) {
		assert_int_equal(ngram_draft(&a, hist, i, a_out, 8), 8);
		assert_int_equal(ngram_draft(&b, hist, i, b_out, 8), 8);
		assert_memory_equal(a_out, b_out, sizeof(a_out));
	}
	ngram_free(&a);
	ngram_free(&b);
}

/* A loop of three is guessed as a loop, however far. */
static void test_loop(void **state)
{
	static const int32_t hist[] = { 8, 1, 2, 3, 1, 2, 3 };
	struct ngram g;
	int32_t out[8];
	int i;

	(void)state;
	assert_int_equal(ngram_init(&g, 3, 100), 0);
	assert_int_equal(ngram_draft(&g, hist, 7, out, 8), 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(out[i], i % 3 + 1);
	ngram_free(&g);
}

/* Against a search of the whole history, in a table too small for it. */
static void test_lookup_against_search(void **state)
{
	enum { N = 4000 };
	static int32_t hist[N];
	uint32_t x = 7, i, k, found = 0, missed = 0;
	struct ngram g;
	int32_t out[4];

	(void)state;
	for (i = 0; i < N; i++)
		hist[i] = (x = x * 1664525u + 1013904223u) >> 16 & 7;
	assert_int_equal(ngram_init(&g, 3, 256), 0);
	for (i = 4; i < N; i++) {
		uint32_t n = ngram_draft(&g, hist, i, out, 1);

		for (k = i - 1; k >= 3 && memcmp(hist + k - 3, hist + i - 3, 12); k--)
			;
		if (n) {
			assert_true(k >= 3);
			assert_int_equal(out[0], hist[k]);
		}
		found += n > 0;
		missed += !n && k >= 3;
	}
	assert_true(found > N / 4);
	assert_true(missed < N); /* collisions cost drafts only */
	ngram_free(&g);
}

/* ---- distribution ---- */

#define VOCAB 16
#define DRAWS 1000000u

static const float logits[VOCAB] = { 1.5f,  0.2f, -0.4f, 2.1f, 0.9f, -1.0f, 0.0f,  1.1f,
				     -2.0f, 0.6f, 1.9f,	 0.3f, -3.0f, 0.8f, -0.7f, 1.3f };
static const struct sample_params params = {
	.temperature = 0.8f, .top_p = 0.995f, .top_k = 14, .seed = 20261130,
};

static int by_logit(const void *a, const void *b)
{
	float x = logits[*(const int *)a], y = logits[*(const int *)b];

	return x > y ? -1 : x < y;
}

/* What the parameters make of the logits, worked out apart from the sampler. */
static void target(double p[VOCAB])
{
	int id[VOCAB], i, n;
	double sum = 0, kept = 0;

	for (i = 0; i < VOCAB; i++) {
		id[i] = i;
		p[i] = 0;
	}
	qsort(id, VOCAB, sizeof(id[0]), by_logit);
	for (i = 0; i < (int)params.top_k; i++)
		sum += exp(logits[id[i]] / (double)params.temperature);
	for (n = 0; n < (int)params.top_k && kept < params.top_p * sum; n++)
		kept += exp(logits[id[n]] / (double)params.temperature);
	for (i = 0; i < n; i++)
		p[id[i]] = exp(logits[id[i]] / (double)params.temperature) / kept;
}

/* Chi-square of counts against @p; what cannot be must not be. Return: five sigma off? */
static bool differs(const uint32_t *count, const double *p, uint32_t n)
{
	double chi = 0;
	int i, df = -1;

	for (i = 0; i < VOCAB; i++) {
		if (p[i] == 0) {
			assert_int_equal(count[i], 0);
			continue;
		}
		chi += (count[i] - n * p[i]) * (count[i] - n * p[i]) / (n * p[i]);
		df++;
	}
	return chi > df + 5 * sqrt(2.0 * df);
}

/* Chi-square of two counts of @n draws each. */
static bool differ(const uint32_t *a, const uint32_t *b)
{
	double chi = 0, d;
	int i, df = -1;

	for (i = 0; i < VOCAB; i++) {
		if (!(a[i] + b[i]))
			continue;
		d = (double)a[i] - b[i];
		chi += d * d / (a[i] + b[i]);
		df++;
	}
	return chi > df + 5 * sqrt(2.0 * df);
}

static void test_distribution(void **state)
{
	static const int32_t guess[] = { 3, 10, 6, 14, 12 }; /* likely to impossible */
	struct sampler s, plain;
	double p[VOCAB], rest[VOCAB], z;
	uint32_t i, g;

	(void)state;
	target(p);
	assert_true(p[12] == 0 && p[14] > 0 && p[14] < 0.02 && p[3] > 0.2);
	for (g = 0; g < sizeof(guess) / sizeof(guess[0]); g++) {
		uint32_t count[VOCAB] = { 0 }, refused[VOCAB] = { 0 }, other[VOCAB] = { 0 };
		struct sample_params q = params;
		uint32_t right = 0;
		double pg = p[guess[g]];
		bool accepted;

		q.seed += 1 + g;
		assert_int_equal(sample_init(&s, &params, VOCAB), 0);
		assert_int_equal(sample_init(&plain, &q, VOCAB), 0);
		for (i = 0; i < DRAWS; i++) {
			int32_t t = spec_choose(&s, logits, guess[g], &accepted);

			count[t]++;
			right += accepted;
			refused[t] += !accepted;
			other[sample_next(&plain, logits)]++;
		}
		assert_false(differs(count, p, DRAWS));
		assert_false(differ(count, other));
		assert_int_equal(refused[guess[g]], 0);
		z = (right - DRAWS * pg) / sqrt(DRAWS * pg * (1 - pg) + 1);
		assert_true(fabs(z) < 5);
		for (i = 0; i < VOCAB; i++)
			rest[i] = (int32_t)i == guess[g] ? 0 : p[i] / (1 - pg);
		assert_false(differs(refused, rest, DRAWS - right));
		sample_free(&s);
		sample_free(&plain);
	}
	/* and the test sees a rule that accepts what is likely */
	{
		uint32_t count[VOCAB] = { 0 };

		assert_int_equal(sample_init(&s, &params, VOCAB), 0);
		for (i = 0; i < DRAWS; i++)
			count[i % 50 ? sample_next(&s, logits) : 3]++;
		assert_true(differs(count, p, DRAWS));
		sample_free(&s);
	}
}

/* Greedy and sampled: the tokens are those of the same seed without guesses. */
static void test_same_tokens(void **state)
{
	struct sample_params q = params;
	struct sampler a, b;
	bool accepted;
	uint32_t i, k;

	(void)state;
	for (k = 0; k < 2; k++) {
		assert_int_equal(sample_init(&a, &q, VOCAB), 0);
		assert_int_equal(sample_init(&b, &q, VOCAB), 0);
		for (i = 0; i < 10000; i++)
			assert_int_equal(spec_choose(&a, logits, i % VOCAB, &accepted),
					 sample_next(&b, logits));
		sample_free(&a);
		sample_free(&b);
		q.temperature = 0;
	}
}

/* ---- rounds ---- */

#define B	    16u
#define PLANES	    4u
#define TOKEN_BYTES 64u
#define N_TOTAL	    400u

struct env {
	struct kv *kv;
	struct kv_seq s;
	struct spec sp;
	int32_t tok[N_TOTAL];
	uint32_t version[N_TOTAL];
};

static uint8_t *place(void *const *blocks, uint32_t slot, uint32_t plane)
{
	return (uint8_t *)blocks[slot / B] + (plane * B + slot % B) * TOKEN_BYTES;
}

/* "KV" of a token: which one, which computing of it, which plane. */
static void write_kv(void *const *blocks, uint32_t slot, uint32_t tok, uint32_t version)
{
	uint32_t p, i, v[4] = { tok, version };

	for (p = 0; p < PLANES; p++) {
		v[2] = p;
		for (i = 0; i < TOKEN_BYTES / sizeof(v); i++)
			memcpy(place(blocks, slot, p) + i * sizeof(v), v, sizeof(v));
	}
}

static bool is_kv(void *const *blocks, uint32_t slot, uint32_t tok, uint32_t version)
{
	uint32_t p, i, v[4] = { tok, version };

	for (p = 0; p < PLANES; p++) {
		v[2] = p;
		for (i = 0; i < TOKEN_BYTES / sizeof(v); i++)
			if (memcmp(place(blocks, slot, p) + i * sizeof(v), v, sizeof(v)))
				return false;
	}
	return true;
}

static void env_open(struct env *e, const struct hist_op *ops, uint32_t n_ops, uint32_t n_prompt)
{
	static const struct spec_params sp = { .tokens = 5, .ngram = 2 };
	struct kv_config cfg = {
		.url = "embed:?dram=8M",
		.block_payload = (size_t)PLANES * B * TOKEN_BYTES,
		.block_tokens = B,
		.planes = PLANES,
		.model = "test",
		.dtype_name = "f16",
		.layout = "any",
		.max_seqs = 1,
	};
	uint8_t root[KV_KEY_BYTES];
	struct kv_need need = { .tokens = e->tok, .n_prompt = n_prompt, .n_total = N_TOTAL,
				.ops = ops, .n_ops = n_ops, .root = root };
	char err[KV_ERR_LEN];
	uint32_t i;

	memset(e, 0, sizeof(*e));
	for (i = 0; i < n_prompt; i++)
		e->tok[i] = i % 20;
	if (kv_open(&cfg, &e->kv, err))
		fail_msg("%s", err);
	assert_int_equal(kv_root(e->kv, NULL, 0, root), 0);
	if (kv_seq_open(e->kv, &e->s, &need, err))
		fail_msg("%s", err);
	assert_int_equal(spec_open(&e->sp, &sp, e->kv, &e->s, N_TOTAL), 0);
}

static void env_close(struct env *e)
{
	spec_close(&e->sp);
	kv_seq_close(e->kv, &e->s);
	kv_close(e->kv);
}

/* The rows of a round see all tokens before them, in order, and then themselves. */
static void check_view(const struct env *e, const bool *hidden, uint32_t pos, uint32_t round)
{
	uint32_t i, j, t = 0;

	for (i = 0; i + 1 < e->sp.n_segs; i++)
		for (j = 0; j < e->sp.seg[i].len; j++, t++) {
			while (hidden[t])
				t++;
			assert_true(is_kv(e->sp.seg[i].blocks, e->sp.seg[i].tok + j, t,
					  e->version[t]));
		}
	assert_int_equal(t, pos);
	assert_int_equal(e->sp.seg[i].len, e->sp.n + 1);
	assert_int_equal(e->sp.seg[i].shift, 0);
	for (j = 0; j <= e->sp.n; j++)
		assert_true(is_kv(e->sp.seg[i].blocks, e->sp.seg[i].tok + j, pos + j, round));
}

/* Rounds until the end, some tokens kept of each: in the blocks is what was kept. */
static void rounds(const struct hist_op *ops, uint32_t n_ops)
{
	const uint32_t n_prompt = 60;
	struct env *e = malloc(sizeof(*e));
	bool hidden[N_TOTAL] = { false };
	uint32_t pos, t, round = 0, x = 99, i, j, keep, max;

	env_open(e, ops, n_ops, n_prompt);
	for (i = 0; i < n_ops; i++)
		for (t = ops[i].start; t < ops[i].end; t++)
			hidden[t] = true;
	for (t = 0; t < n_prompt; t++)
		write_kv(e->s.addr, t, t, 0);
	e->tok[n_prompt] = n_prompt % 20;
	for (pos = n_prompt; pos + 1 < N_TOTAL; pos += keep) {
		assert_true(kv_seq_view(e->kv, &e->s, pos) == UINT32_MAX);
		max = N_TOTAL - pos - 1 < 5 ? N_TOTAL - pos - 1 : 5;
		assert_int_equal(spec_begin(&e->sp, &e->s, e->tok, pos, max), max);
		round++;
		for (j = 0; j <= e->sp.n; j++) {
			const struct exec_seg *ring = &e->sp.seg[e->sp.n_segs - 1];

			write_kv(ring->blocks, ring->tok + j, pos + j, round);
		}
		check_view(e, hidden, pos, round);
		for (j = 0; j < e->sp.n; j++)
			assert_int_equal(e->sp.guess[j], (pos + 1 + j) % 20);
		keep = 1 + (x = x * 1664525u + 1013904223u) / 65536 % (e->sp.n + 1);
		for (j = 0; j < keep; j++) {
			e->version[pos + j] = round;
			e->tok[pos + j + 1] = (pos + j + 1) % 20;
		}
		spec_end(&e->sp, &e->s, pos, keep);
	}
	assert_true(round > 50);
	for (t = 0; t < pos; t++)
		if (!hidden[t])
			assert_true(is_kv(e->s.addr, t, t, e->version[t]));
	env_close(e);
	free(e);
}

static void test_rounds(void **state)
{
	(void)state;
	rounds(NULL, 0);
}

/* Behind dropped tokens, with the gap closed and open. */
static void test_rounds_after_drops(void **state)
{
	static const struct hist_op ops[] = {
		{ .at = 40, .start = 5, .end = 12, .repos = true },
		{ .at = 59, .start = 20, .end = 22 },
	};

	(void)state;
	rounds(ops, 2);
}

static void test_none(void **state)
{
	static const struct spec_params off = { .tokens = 0 };
	struct spec sp;

	(void)state;
	assert_int_equal(spec_open(&sp, &off, NULL, NULL, 10), 0);
	assert_null(sp.ring);
	spec_close(&sp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_lookup_against_search),
		cmocka_unit_test(test_distribution),
		cmocka_unit_test(test_same_tokens),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_rounds_after_drops),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("serve_spec", tests, NULL, NULL);
}
