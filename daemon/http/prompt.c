// SPDX-License-Identifier: MIT
/*
 * prompt.c - prompts and chat messages to tokens
 *
 * Text from the client is never encoded with TOK_PARSE_SPECIAL, so it cannot
 * produce a control token.  Control tokens of the chat template are put in by
 * id.
 *
 * Chat template, when the vocabulary has <|im_start|> and <|im_end|>:
 *
 *	[BOS] {<|im_start|> ROLE "\n" CONTENT <|im_end|> "\n"}* <|im_start|> "assistant\n"
 *
 * otherwise plain text:
 *
 *	[BOS] {ROLE ": " CONTENT "\n"}* "assistant:"
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/params.h"
#include "http/strbuf.h"

static int fail_encode(struct api_error *e, int ret, const char *param)
{
	if (ret == -E2BIG)
		return api_fail(e, 400, "string_above_max_length", param,
				"'%s' has more than %u bytes", param, TOK_MAX_TEXT);
	return api_fail(e, 500, "internal_error", param, "out of memory");
}

static struct params_prompt *new_prompt(struct params *p)
{
	return &p->prompt[p->n_prompts++];
}

static int add_text_prompt(const struct params_env *env, const json_t *v, struct params *p,
			   struct api_error *e)
{
	struct params_prompt *pr = new_prompt(p);
	int ret;

	ret = tok_encode(env->tok, json_string_value(v), json_string_length(v), TOK_ADD_SPECIAL,
			 &pr->ids, &pr->n);
	if (ret)
		return fail_encode(e, ret, "prompt");
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
	struct params_prompt *pr = new_prompt(p);
	size_t n = json_array_size(v), i;

	pr->ids = calloc(n, sizeof(*pr->ids));
	if (!pr->ids)
		return fail_encode(e, -ENOMEM, "prompt");
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

/* ---- chat ---- */

/**
 * struct chat - a prompt under construction
 * @im_start, @im_end: control tokens, or -1 for the plain form
 * @text: text not encoded yet; a run between control tokens is encoded as a whole
 */
struct chat {
	const struct params_env *env;
	int32_t im_start;
	int32_t im_end;
	struct strbuf text;
	struct strbuf ids;
};

static void chat_add_id(struct chat *c, int32_t id)
{
	strbuf_add(&c->ids, (const char *)&id, sizeof(id));
}

static int chat_encode(struct chat *c, struct api_error *e)
{
	unsigned int flags = c->ids.n ? 0 : TOK_ADD_SPECIAL;
	int32_t *ids;
	size_t n;
	int ret;

	ret = c->text.failed ? -ENOMEM :
			       tok_encode(c->env->tok, c->text.s ? c->text.s : "", c->text.n, flags,
					  &ids, &n);
	if (ret)
		return fail_encode(e, ret, "messages");
	strbuf_add(&c->ids, (const char *)ids, n * sizeof(*ids));
	free(ids);
	c->text.n = 0;
	return 0;
}

/* "content" is a string, null, or an array of {"type": "text", "text": "..."}. */
static int chat_add_content(struct chat *c, const json_t *v, struct api_error *e)
{
	size_t i;

	if (!v || json_is_null(v))
		return 0;
	if (json_is_string(v)) {
		strbuf_add(&c->text, json_string_value(v), json_string_length(v));
		return 0;
	}
	if (!json_is_array(v))
		return api_fail(e, 400, "invalid_type", "messages",
				"'content' must be a string or an array of text parts");
	for (i = 0; i < json_array_size(v); i++) {
		const json_t *part = json_array_get(v, i);
		const char *type = json_string_value(json_object_get(part, "type"));
		const json_t *text = json_object_get(part, "text");

		if (!type || strcmp(type, "text") || !json_is_string(text))
			return api_fail(e, 400, "unsupported_value", "messages",
					"content part %zu is not text; only text is supported", i);
		strbuf_add(&c->text, json_string_value(text), json_string_length(text));
	}
	return 0;
}

static const char *chat_role(const json_t *message)
{
	static const char *const roles[] = { "system", "user", "assistant", "tool" };
	const char *role = json_string_value(json_object_get(message, "role"));
	size_t i;

	if (!role)
		return NULL;
	if (!strcmp(role, "developer"))
		return "system";
	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(role, roles[i]))
			return roles[i];
	return NULL;
}

static int chat_add_message(struct chat *c, const json_t *message, size_t i, struct api_error *e)
{
	const char *role = chat_role(message);

	if (!role)
		return api_fail(
			e, 400, "invalid_value", "messages",
			"message %zu: 'role' must be system, developer, user, assistant or tool",
			i);
	if (c->im_start >= 0) {
		if (chat_encode(c, e))
			return -1;
		chat_add_id(c, c->im_start);
	}
	strbuf_adds(&c->text, role);
	strbuf_adds(&c->text, c->im_start >= 0 ? "\n" : ": ");
	if (chat_add_content(c, json_object_get(message, "content"), e))
		return -1;
	if (c->im_start >= 0) {
		if (chat_encode(c, e))
			return -1;
		chat_add_id(c, c->im_end);
	}
	strbuf_adds(&c->text, "\n");
	return 0;
}

static int chat_add_all(struct chat *c, const json_t *messages, struct api_error *e)
{
	size_t i;

	for (i = 0; i < json_array_size(messages); i++)
		if (chat_add_message(c, json_array_get(messages, i), i, e))
			return -1;
	if (c->im_start >= 0) {
		if (chat_encode(c, e))
			return -1;
		chat_add_id(c, c->im_start);
		strbuf_adds(&c->text, "assistant\n");
	} else {
		strbuf_adds(&c->text, "assistant:");
	}
	if (chat_encode(c, e))
		return -1;
	return c->ids.failed ? fail_encode(e, -ENOMEM, "messages") : 0;
}

int chat_parse(const struct params_env *env, const json_t *root, struct params *p,
	       struct api_error *e)
{
	const json_t *messages = json_object_get(root, "messages");
	struct chat c = { .env = env };
	struct params_prompt *pr;
	int ret;

	if (!json_is_array(messages) || json_array_size(messages) == 0)
		return api_fail(e, 400, messages ? "invalid_type" : "missing_required_parameter",
				"messages",
				"'messages' must be an array with at least one message");
	c.im_start = tok_find(env->tok, "<|im_start|>");
	c.im_end = tok_find(env->tok, "<|im_end|>");
	if (c.im_start < 0 || c.im_end < 0 || !tok_is_control(env->tok, c.im_start) ||
	    !tok_is_control(env->tok, c.im_end))
		c.im_start = c.im_end = -1;
	ret = chat_add_all(&c, messages, e);
	strbuf_free(&c.text);
	if (ret) {
		strbuf_free(&c.ids);
		return ret;
	}
	pr = new_prompt(p);
	pr->ids = (int32_t *)c.ids.s;
	pr->n = c.ids.n / sizeof(*pr->ids);
	return 0;
}
