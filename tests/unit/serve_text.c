// SPDX-License-Identifier: MIT
/*
 * serve_text.c - tokens to text with stop strings (daemon/sched/text.c): however
 * the text is cut into tokens, it ends before the first stop string and no byte
 * of one is emitted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon_fixture.h"
#include "sched/text.h"

/* A SentencePiece vocabulary of these; the last one is the control token. */
static const char *const pieces[] = {
	"a", "b", "c", "ab", "abc", "X", "XY", "XYZ", "YZ", "Z", "zzzz", "<end>",
};

#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

struct env {
	struct fx_file file;
	uint8_t *bytes;
	struct gguf *gguf;
	struct tok *tok;
};

static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));
	int32_t types[N_PIECES];
	float scores[N_PIECES] = { 0 };
	char err[GGUF_ERR_LEN];
	size_t i, len;

	for (i = 0; i < N_PIECES; i++)
		types[i] = i == N_PIECES - 1 ? 3 : 1;
	fx_kv_str(&e->file, "general.architecture", "llama");
	fx_kv_str(&e->file, "tokenizer.ggml.model", "llama");
	fx_kv_strs(&e->file, "tokenizer.ggml.tokens", pieces, N_PIECES);
	fx_kv_i32s(&e->file, "tokenizer.ggml.token_type", types, N_PIECES);
	fx_kv_f32s(&e->file, "tokenizer.ggml.scores", scores, N_PIECES);
	fx_kv_u32(&e->file, "tokenizer.ggml.bos_token_id", N_PIECES - 1);
	fx_kv_u32(&e->file, "tokenizer.ggml.eos_token_id", N_PIECES - 1);
	fx_kv_u32(&e->file, "tokenizer.ggml.unknown_token_id", N_PIECES - 1);
	e->bytes = fx_finish(&e->file, &len);
	if (gguf_parse(e->bytes, len, &e->gguf, err) || tok_create(e->gguf, N_PIECES, &e->tok, err))
		fail_msg("%s", err);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	tok_destroy(e->tok);
	gguf_close(e->gguf);
	free(e->bytes);
	fx_free(&e->file);
	free(e);
	return 0;
}

static void add_stop(struct text_stops *s, const char *str)
{
	s->len[s->n] = strlen(str);
	memcpy(s->s[s->n++], str, strlen(str));
}

/* The text of some tokens; *stopped as text.c says. */
static void decode(struct env *e, const struct text_stops *stops, const int32_t *ids, size_t n,
		   char *out, bool *stopped)
{
	struct text t;
	char *piece;
	size_t i, len = 0, got;

	assert_int_equal(text_init(&t, e->tok, stops, false), 0);
	piece = malloc(text_push_max(&t));
	for (i = 0; i <= n; i++) {
		got = i < n ? text_push(&t, ids[i], piece) : text_flush(&t, piece);
		assert_true(got <= text_push_max(&t));
		memcpy(out + len, piece, got);
		len += got;
	}
	out[len] = '\0';
	*stopped = t.stopped;
	free(piece);
	text_free(&t);
}

static void test_random(void **state)
{
	struct env *e = *state;
	uint32_t seed = 20261130, round;

	for (round = 0; round < 20000; round++) {
		struct text_stops stops = { 0 };
		int32_t ids[12];
		char all[128] = "", got[128];
		const char *end = NULL, *p;
		bool stopped;
		size_t i;

		if (fx_rand(&seed) & 1)
			add_stop(&stops, "XYZ");
		if (fx_rand(&seed) & 1)
			add_stop(&stops, "abca");
		if (fx_rand(&seed) & 1)
			add_stop(&stops, "YZ");
		if (fx_rand(&seed) & 1)
			add_stop(&stops, "zzz");
		for (i = 0; i < 12; i++) {
			ids[i] = fx_rand(&seed) % (N_PIECES - 1);
			strcat(all, pieces[ids[i]]);
			/* The first token that completes a stop string ends the text. */
			if (end)
				continue;
			for (unsigned int k = 0; k < stops.n; k++) {
				char stop[8] = "";

				memcpy(stop, stops.s[k], stops.len[k]);
				p = strstr(all, stop);
				if (p && (!end || p < end))
					end = p;
			}
		}
		decode(e, &stops, ids, 12, got, &stopped);
		if (end)
			all[end - all] = '\0';
		if (stopped != (end != NULL) || strcmp(got, all))
			fail_msg("round %u: got \"%s\"%s, wanted \"%s\"", round, got,
				 stopped ? " stopped" : "", all);
	}
}

static void test_held_back(void **state)
{
	struct env *e = *state;
	struct text_stops stops = { 0 };
	struct text t;
	char *out;

	add_stop(&stops, "XYZ");
	assert_int_equal(text_init(&t, e->tok, &stops, false), 0);
	out = malloc(text_push_max(&t));
	assert_int_equal(text_push(&t, 6, out), 0); /* "XY" could be a stop */
	assert_int_equal(text_push(&t, 0, out), 3); /* "a": it was not */
	assert_memory_equal(out, "XYa", 3);
	assert_int_equal(text_push(&t, 5, out), 0); /* "X" */
	assert_int_equal(text_flush(&t, out), 1);
	free(out);
	text_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held_back, setup, teardown),
	};

	return cmocka_run_group_tests_name("serve_text", tests, NULL, NULL);
}
