// SPDX-License-Identifier: MIT
/*
 * serve_alloc.c - the step thread allocates nothing: what it calls for a sequence
 * (views, blocks, guesses, choices), with the allocator counted
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kv/kv.h"
#include "sched/spec.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0 /* a sanitizer has an allocator of its own */
#else
#define COUNTED 1
#endif

#define B	 16u
#define N_PROMPT 200u
#define N_TOTAL	 400u
#define VOCAB	 1000u /* enough for qsort(3) to allocate */

static _Thread_local volatile uint32_t allocations; /* the compiler knows malloc() otherwise */

#if COUNTED
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	allocations++;
	return __libc_realloc(p, n);
}
#endif

static void test_counted(void **state)
{
	void *volatile p;

	(void)state;
	allocations = 0;
	p = malloc(1);
	free(p);
	assert_int_equal(allocations, COUNTED);
}

static void test_choose(void **state)
{
	static const struct sample_params p = { .temperature = 1, .top_p = 0.9f, .seed = 1 };
	static float logits[VOCAB];
	struct sampler s;
	uint32_t i;

	(void)state;
	for (i = 0; i < VOCAB; i++)
		logits[i] = (float)(i * 2654435761u % 1000) / 200;
	assert_int_equal(sample_init(&s, &p, VOCAB), 0);
	allocations = 0;
	for (i = 0; i < 100; i++)
		sample_next(&s, logits);
	assert_int_equal(allocations, 0);
	sample_free(&s);
}

/* A prompt in whose course tokens are dropped, then guesses to the end. */
static void test_sequence(void **state)
{
	static const struct hist_op op = { .at = 150, .start = 20, .end = 100, .repos = true };
	static const struct spec_params sp = { .tokens = 5, .ngram = 2 };
	const struct kv_config cfg = {
		.url = "embed:?dram=8M",
		.block_payload = 4096,
		.block_tokens = B,
		.planes = 1,
		.model = "test",
		.dtype_name = "f16",
		.layout = "any",
		.max_seqs = 1,
	};
	static int32_t tok[N_TOTAL];
	uint8_t root[KV_KEY_BYTES];
	const struct kv_need need = { .tokens = tok, .n_prompt = N_PROMPT, .n_total = N_TOTAL,
				      .ops = &op, .n_ops = 1, .root = root };
	char err[KV_ERR_LEN];
	struct kv_seq s;
	struct spec spec;
	struct kv *kv;
	uint32_t pos, until;

	(void)state;
	for (pos = 0; pos < N_TOTAL; pos++)
		tok[pos] = pos % 20;
	if (kv_open(&cfg, &kv, err))
		fail_msg("%s", err);
	assert_int_equal(kv_root(kv, NULL, 0, root), 0);
	assert_int_equal(kv_seq_open(kv, &s, &need, err), 0);
	assert_int_equal(spec_open(&spec, &sp, kv, &s, N_TOTAL), 0);

	allocations = 0;
	for (pos = 0; pos < N_PROMPT; pos = until < N_PROMPT ? until : N_PROMPT) {
		until = kv_seq_view(kv, &s, pos);
		kv_seq_commit(kv, &s, tok, until < N_PROMPT ? until : N_PROMPT);
	}
	assert_int_equal(s.hidden, 80);
	assert_null(s.addr[2]); /* given back when it was dropped */
	for (; pos + 6 < N_TOTAL; pos += 3) {
		assert_int_equal(spec_begin(&spec, &s, tok, pos, 5), 5);
		spec_end(&spec, &s, pos, 3);
		kv_seq_commit(kv, &s, tok, pos + 3);
	}
	assert_int_equal(allocations, 0);

	spec_close(&spec);
	kv_seq_close(kv, &s);
	kv_close(kv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_sequence),
	};

	return cmocka_run_group_tests_name("serve_alloc", tests, NULL, NULL);
}
