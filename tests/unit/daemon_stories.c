// SPDX-License-Identifier: MIT
/*
 * stories260K.gguf, looked for in $HAWK_SHARED/models (default ../shared/models):
 * the greedy texts of the llama2.c program, exactly, with every instruction set
 * this CPU has, both KV types, and several ways to cut the prompt.
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

#include "daemon_run.h"

static const struct {
	const char *prompt, *text;
} stories[] = {
	{ "", "Once upon a time, there was a little girl named Lily. She loved to "
	      "play outside in the park. One day, she saw a big, red ball. She "
	      "wanted to play with it, but it was too high.\n"
	      "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and "
	      "didn't know what to do. She said, \"I want to play with your ball, "
	      "but I can't find it.\"" },
	{ "One day, a cat named Tom",
	  "One day, a cat named Tom went to the park with his mom. They saw a "
	  "big box with a big box. Tom wanted to play with it, but he was too "
	  "small. He wanted to play with the box.\n"
	  "Tom said, \"Mom, can I play with your box?\" The boy said, \"Yes, I "
	  "can help you.\"" },
};

static char path[PATH_MAX];

static void check_story(const struct run_how *how, size_t i)
{
	int32_t ids[256], *prompt;
	struct run r;
	size_t n;
	char *text;

	if (run_open(&r, path, how)) {
		assert_int_equal(tok_encode(r.t, stories[i].prompt, strlen(stories[i].prompt),
					    TOK_ADD_SPECIAL, &prompt, &n),
				 0);
		memcpy(ids, prompt, n * sizeof(*ids));
		free(prompt);
		n = run_generate(&r, ids, n, 180, how->chunk);
		text = run_decode(&r, ids, n, true);
		if (strncmp(text, stories[i].text, strlen(stories[i].text)))
			fail_msg("%s, kv %d: '%s'", how->isa ? how->isa : "best", (int)how->kv, text);
		free(text);
	}
	run_close(&r);
}

static void test_stories(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < 2; i++)
		for (j = 0; j < RUN_HOWS; j++)
			check_story(&run_hows[j], i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stories),
	};
	const char *shared = getenv("HAWK_SHARED");

	snprintf(path, sizeof(path), "%s/models/stories260K.gguf", shared ? shared : "../shared");
	if (access(path, R_OK)) {
		printf("1..0 # SKIP no %s (set HAWK_SHARED)\n", path);
		return 0;
	}
	return cmocka_run_group_tests_name("daemon_stories", tests, NULL, NULL);
}
