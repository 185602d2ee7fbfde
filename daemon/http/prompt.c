// SPDX-License-Identifier: MIT
/*
 * prompt.c - prompts to tokens
 *
 * Text from the client is never encoded with TOK_PARSE_SPECIAL, so it cannot
 * produce a control token.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/params.h"

int prompt_fail(struct api_error *e, int ret, const char *param)
{
	if (ret == -E2BIG)
		return api_fail(e, 400, "string_above_max_length", param,
				"'%s' has more than %u bytes", param, TOK_MAX_TEXT);
	return api_fail(e, 500, "internal_error", param, "out of memory");
}

struct params_prompt *prompt_new(struct params *p)
{
	return &p->prompt[p->n_prompts++];
}

static int add_text_prompt(const struct params_env *env, const json_t *v, struct params *p,
			   struct api_error *e)
{
	struct params_prompt *pr = prompt_new(p);
	int ret;

	ret = tok_encode(env->tok, json_string_value(v), json_string_length(v), TOK_ADD_SPECIAL,
			 &pr->ids, &pr->n);
	if (ret)
		return prompt_fail(e, ret, "prompt");
	if (pr->n == 0)
		return api_fail(e, 400, "invalid_value", "prompt",
				"the prompt is empty and this model has no start token");
	if (json_string_length(v) == 0)
		p->at_start = true;
	return 0;
}

static int add_token_prompt(const struct params_env *env, const json_t *v, struct params *p,
			    struct api_error *e)
{
	struct params_prompt *pr = prompt_new(p);
	size_t n = json_array_size(v), i;

	pr->ids = calloc(n, sizeof(*pr->ids));
	if (!pr->ids)
		return prompt_fail(e, -ENOMEM, "prompt");
	pr->n = n;
	for (i = 0; i < n; i++) {
		const json_t *id = json_array_get(v, i);

		if (!json_is_integer(id))
			return api_fail(e, 400, "invalid_type", "prompt",
					"element %zu of the token array is not an integer", i);
		if (json_integer_value(id) < 0 || json_integer_value(id) >= tok_count(env->tok))
			return api_fail(
				e, 400, "invalid_value", "prompt",
				"token %lld at position %zu is not in the vocabulary of %u tokens",
				(long long)json_integer_value(id), i, tok_count(env->tok));
		pr->ids[i] = json_integer_value(id);
	}
	return 0;
}

static int add_prompt(const struct params_env *env, const json_t *v, struct params *p,
		      struct api_error *e)
{
	if (json_is_string(v))
		return add_text_prompt(env, v, p, e);
	if (json_is_array(v) && json_array_size(v) > 0)
		return add_token_prompt(env, v, p, e);
	return api_fail(e, 400, "invalid_type", "prompt",
			"'prompt' must be a string, an array of strings, or an array of tokens");
}

int prompt_parse(const struct params_env *env, const json_t *root, struct params *p,
		 struct api_error *e)
{
	const json_t *v = json_object_get(root, "prompt");
	size_t i;

	if (!v || json_is_null(v))
		return api_fail(e, 400, "missing_required_parameter", "prompt",
				"'prompt' is missing");
	if (!json_is_array(v) || json_is_integer(json_array_get(v, 0)))
		return add_prompt(env, v, p, e);
	if (json_array_size(v) == 0 || json_array_size(v) > PARAMS_PROMPTS_MAX)
		return api_fail(e, 400, "invalid_value", "prompt",
				"'prompt' has %zu elements, must have 1 to %u", json_array_size(v),
				PARAMS_PROMPTS_MAX);
	for (i = 0; i < json_array_size(v); i++)
		if (add_prompt(env, json_array_get(v, i), p, e))
			return -1;
	return 0;
}
