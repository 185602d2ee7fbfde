// SPDX-License-Identifier: MIT
/*
 * chat.c - chat messages to tokens
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
 *
 * Observations: when the request says after how many turns, what stands between
 * <ephemeral_observation> and </ephemeral_observation> in a message is dropped from
 * the cache.  The tags themselves are no text.  An observation of n turns is seen by
 * n answers: it is dropped where the message behind the n-th assistant message
 * after it begins.  That place follows from the messages alone, so each later
 * request of the conversation, which has the same messages again, drops it at the
 * same place and finds the blocks of the one before.  Text is cut into tokens at
 * both tags, and in the plain form at each message.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/params.h"
#include "http/strbuf.h"

#define TAG_OPEN  "<ephemeral_observation>"
#define TAG_CLOSE "</ephemeral_observation>"

/**
 * struct observation - a span that will be dropped
 * @start, @end: its tokens
 * @turns: answers that are still to see it
 * @at: where it is dropped, 0: not yet
 */
struct observation {
	uint32_t start;
	uint32_t end;
	uint32_t turns;
	uint32_t at;
};

/**
 * struct chat - a prompt under construction
 * @im_start, @im_end: control tokens, or -1 for the plain form
 * @text: text not encoded yet; a run between control tokens is encoded as a whole
 * @turns: answers that see an observation of this message, 0: tags are text
 * @cut: some message has observations: cut the text at each message
 * @obs: observations so far, @n_obs of them
 */
struct chat {
	const struct params_env *env;
	int32_t im_start;
	int32_t im_end;
	struct strbuf text;
	struct strbuf ids;
	uint32_t turns;
	bool cut;
	struct observation obs[HIST_OPS_MAX];
	uint32_t n_obs;
};

static uint32_t chat_n_ids(const struct chat *c)
{
	return c->ids.n / sizeof(int32_t);
}

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
		return prompt_fail(e, ret, "messages");
	strbuf_add(&c->ids, (const char *)ids, n * sizeof(*ids));
	free(ids);
	c->text.n = 0;
	return 0;
}

static int chat_observe(struct chat *c, const char *s, size_t len, size_t i, struct api_error *e)
{
	struct observation *o = &c->obs[c->n_obs];

	if (c->n_obs == HIST_OPS_MAX)
		return api_fail(e, 400, "invalid_value", "messages",
				"message %zu: more than %u observations in the conversation", i,
				HIST_OPS_MAX);
	if (chat_encode(c, e))
		return -1;
	*o = (struct observation){ .start = chat_n_ids(c), .turns = c->turns };
	strbuf_add(&c->text, s, len);
	if (chat_encode(c, e))
		return -1;
	o->end = chat_n_ids(c);
	c->n_obs += o->end > o->start;
	return 0;
}

static int chat_add_text(struct chat *c, const char *s, size_t len, size_t i, struct api_error *e)
{
	const char *end = s + len;

	while (c->turns && s < end) {
		const char *open = memmem(s, end - s, TAG_OPEN, strlen(TAG_OPEN));
		const char *shut = memmem(s, end - s, TAG_CLOSE, strlen(TAG_CLOSE));
		const char *in = open ? open + strlen(TAG_OPEN) : NULL;

		if (!open && !shut)
			break;
		if (!open || !shut || shut < open)
			return api_fail(e, 400, "invalid_value", "messages",
					"message %zu: %s without %s", i,
					!shut || (open && open < shut) ? TAG_OPEN : TAG_CLOSE,
					!shut || (open && open < shut) ? TAG_CLOSE : TAG_OPEN);
		if (memmem(in, shut - in, TAG_OPEN, strlen(TAG_OPEN)))
			return api_fail(e, 400, "invalid_value", "messages",
					"message %zu: %s inside another one", i, TAG_OPEN);
		strbuf_add(&c->text, s, open - s);
		if (chat_observe(c, in, shut - in, i, e))
			return -1;
		s = shut + strlen(TAG_CLOSE);
	}
	strbuf_add(&c->text, s, end - s);
	return 0;
}

/* "content" is a string, null, or an array of {"type": "text", "text": "..."}. */
static int chat_add_content(struct chat *c, const json_t *v, size_t msg, struct api_error *e)
{
	size_t i;

	if (!v || json_is_null(v))
		return 0;
	if (json_is_string(v))
		return chat_add_text(c, json_string_value(v), json_string_length(v), msg, e);
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
		if (chat_add_text(c, json_string_value(text), json_string_length(text), msg, e))
			return -1;
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

/*
 * A message begins: what has been seen by enough answers is dropped here.  The text
 * before must end in a token of its own then, or there is no such place.
 */
static int chat_begin_message(struct chat *c, struct api_error *e)
{
	uint32_t i;

	if ((c->im_start >= 0 || c->cut) && chat_encode(c, e))
		return -1;
	for (i = 0; i < c->n_obs; i++)
		if (!c->obs[i].turns && !c->obs[i].at)
			c->obs[i].at = chat_n_ids(c);
	if (c->im_start >= 0)
		chat_add_id(c, c->im_start);
	return 0;
}

/* An answer ends that has seen the first @n observations. */
static void chat_count_turn(struct chat *c, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (c->obs[i].turns)
			c->obs[i].turns--;
}

static int chat_add_message(struct chat *c, const struct params *p, const json_t *message, size_t i,
			    struct api_error *e)
{
	const char *role = chat_role(message);
	uint32_t seen = c->n_obs;

	if (!role)
		return api_fail(
			e, 400, "invalid_value", "messages",
			"message %zu: 'role' must be system, developer, user, assistant or tool",
			i);
	c->turns = p->drop_after_turns;
	if (drop_parse_message(message, i, &c->turns, e) || chat_begin_message(c, e))
		return -1;
	strbuf_adds(&c->text, role);
	strbuf_adds(&c->text, c->im_start >= 0 ? "\n" : ": ");
	if (chat_add_content(c, json_object_get(message, "content"), i, e))
		return -1;
	if (c->im_start >= 0) {
		if (chat_encode(c, e))
			return -1;
		chat_add_id(c, c->im_end);
	}
	strbuf_adds(&c->text, "\n");
	if (!strcmp(role, "assistant"))
		chat_count_turn(c, seen);
	return 0;
}

static int chat_add_all(struct chat *c, const struct params *p, const json_t *messages,
			struct api_error *e)
{
	size_t i;

	for (i = 0; i < json_array_size(messages); i++)
		c->cut |= p->drop_after_turns ||
			  json_object_get(json_array_get(messages, i), "hawk");
	for (i = 0; i < json_array_size(messages); i++)
		if (chat_add_message(c, p, json_array_get(messages, i), i, e))
			return -1;
	if (chat_begin_message(c, e))
		return -1;
	strbuf_adds(&c->text, c->im_start >= 0 ? "assistant\n" : "assistant:");
	if (chat_encode(c, e))
		return -1;
	return c->ids.failed ? prompt_fail(e, -ENOMEM, "messages") : 0;
}

/* Observations that have been seen often enough become operations. */
static int chat_drop(const struct chat *c, struct params *p, struct params_prompt *pr,
		     struct api_error *e)
{
	uint32_t i;

	for (i = 0; i < c->n_obs; i++) {
		const struct observation *o = &c->obs[i];

		if (o->at && drop_add(p, pr, o->start, o->end, o->at, e))
			return -1;
	}
	return 0;
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
	ret = chat_add_all(&c, p, messages, e);
	strbuf_free(&c.text);
	if (ret) {
		strbuf_free(&c.ids);
		return ret;
	}
	pr = prompt_new(p);
	pr->ids = (int32_t *)c.ids.s;
	pr->n = c.ids.n / sizeof(*pr->ids);
	return chat_drop(&c, p, pr, e);
}
