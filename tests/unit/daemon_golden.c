// SPDX-License-Identifier: MIT
/*
 * hawk-tiny.gguf against golden.json, which a separate implementation in Python
 * made: token ids of texts, and greedy continuations with every instruction
 * set this CPU has, both KV types, and several ways to cut the prompt.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon_run.h"

#define TINY   "tests/data/hawk-tiny.gguf"
#define GOLDEN "tests/data/golden.json"

static json_t *golden;

static size_t read_ids(const json_t *array, int32_t *ids, size_t max)
{
	size_t n = json_array_size(array), i;

	assert_true(n <= max);
	for (i = 0; i < n; i++)
		ids[i] = json_integer_value(json_array_get(array, i));
	return n;
}

static void expect_ids(const char *what, const int32_t *got, size_t n, const int32_t *want,
		       size_t n_want)
{
	size_t i;

	for (i = 0; i < n && i < n_want; i++)
		if (got[i] != want[i])
			break;
	if (n != n_want || i < n)
		fail_msg("%s: token %zu differs (%zu tokens, wanted %zu)", what, i, n, n_want);
}

static void check_text(const struct run *r, const json_t *c)
{
	const json_t *text = json_object_get(c, "text");
	const char *s = json_string_value(text);
	size_t len = json_string_length(text), n, n_want;
	int32_t want[512], *ids;
	char *back;

	n_want = read_ids(json_object_get(c, "tokens"), want, 512);
	assert_int_equal(tok_encode(r->t, s, len, 0, &ids, &n), 0);
	expect_ids(s, ids, n, want, n_want);
	back = run_decode(r, ids, n, true);
	assert_memory_equal(back, s, len);
	free(back);
	free(ids);
}

static void test_tokenizer(void **state)
{
	json_t *list, *c;
	struct run r;
	size_t i;

	(void)state;
	run_open(&r, TINY, &run_hows[0]);
	list = json_object_get(golden, "tokenizer");
	assert_true(json_array_size(list) > 0);
	json_array_foreach(list, i, c)
		check_text(&r, c);
	run_close(&r);
}

static void check_generation(struct run *r, const json_t *c, uint32_t chunk)
{
	const char *prompt = json_string_value(json_object_get(c, "prompt"));
	const char *kind = json_string_value(json_object_get(c, "kind"));
	const char *finish = json_string_value(json_object_get(c, "finish"));
	const bool stop = !strcmp(finish, "stop");
	int32_t ids[2048], want[512], *enc;
	size_t n, n_prompt, n_want;
	char *text;

	n_prompt = read_ids(json_object_get(c, "prompt_tokens"), ids, 1500);
	n_want = read_ids(json_object_get(c, "tokens"), want, 512);
	if (prompt) {
		assert_int_equal(
			tok_encode(r->t, prompt, strlen(prompt), TOK_ADD_SPECIAL, &enc, &n), 0);
		expect_ids(kind, enc, n, ids, n_prompt);
		free(enc);
	}
	n = run_generate(r, ids, n_prompt, n_want + stop, chunk);
	/* the token that ends a text is not in the list */
	if (stop)
		assert_true(tok_is_eog(r->t, ids[--n]));
	expect_ids(kind, ids + n_prompt, n - n_prompt, want, n_want);
	text = run_decode(r, ids + n_prompt, n_want, false);
	assert_string_equal(text, json_string_value(json_object_get(c, "text")));
	free(text);
}

static void test_generation(void **state)
{
	json_t *list, *c;
	struct run r;
	size_t i, j;

	(void)state;
	list = json_object_get(golden, "generation");
	assert_true(json_array_size(list) > 0);
	for (j = 0; j < RUN_HOWS; j++) {
		if (run_open(&r, TINY, &run_hows[j]))
			json_array_foreach(list, i, c)
				check_generation(&r, c, run_hows[j].chunk);
		run_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokenizer),
		cmocka_unit_test(test_generation),
	};
	json_error_t jerr;
	int ret;

	if (access(TINY, R_OK) || access(GOLDEN, R_OK)) {
		printf("1..0 # SKIP no %s and %s below the current directory\n", TINY, GOLDEN);
		return 0;
	}
	golden = json_load_file(GOLDEN, JSON_ALLOW_NUL, &jerr);
	if (!golden) {
		printf("Bail out! %s:%d: %s\n", GOLDEN, jerr.line, jerr.text);
		return 1;
	}
	ret = cmocka_run_group_tests_name("daemon_golden", tests, NULL, NULL);
	json_decref(golden);
	return ret;
}
