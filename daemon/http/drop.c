// SPDX-License-Identifier: MIT
/*
 * drop.c - the member "hawk" of a request: tokens dropped from the cache
 *
 *	"hawk": {
 *		"drop": [[START, END], [START, END, AT], ...],
 *		"at": N,		for spans without one of their own
 *		"repos": true,
 *		"drop_after_turns": N	chats only, also in a message (see chat.c)
 *		"speculate": {...}	see speculate.c
 *		"sparse": {...}		see sparse.c
 *	}
 *
 * START, END and AT are indices of tokens of the prompt: [START, END) is not seen by
 * the token AT and those behind it.  Without AT, and without "at", it is the end of
 * the last such span: what follows is then computed as if they had never been.
 *
 * Nothing else drops tokens: there is no policy of the server's own, by how much
 * attention blocks get, say.  A client can tell what its history is from its requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/params.h"

#define TURNS_MAX 1000

static int drop_parse_turns(const json_t *hawk, uint32_t *turns, struct api_error *e)
{
	json_int_t n = *turns;

	if (params_int(hawk, "drop_after_turns", 1, TURNS_MAX, &n, e))
		return -1;
	*turns = n;
	return 0;
}

int drop_parse(const json_t *root, struct params *p, struct api_error *e)
{
	static const char *const of_chat[] = { "drop", "at", "repos", "drop_after_turns",
					       "speculate", "sparse", NULL };
	static const char *const of_text[] = { "drop", "at", "repos", "speculate", "sparse", NULL };
	const json_t *hawk = params_member(root, "hawk");

	p->repos = true;
	if (!hawk)
		return 0;
	if (!json_is_object(hawk))
		return api_fail(e, 400, "invalid_type", "hawk", "'hawk' must be an object");
	if (params_known(hawk, p->chat ? of_chat : of_text, "'hawk'", "hawk", e) ||
	    params_bool(hawk, "repos", &p->repos, e))
		return -1;
	return drop_parse_turns(hawk, &p->drop_after_turns, e);
}

int drop_parse_message(const json_t *message, size_t i, uint32_t *turns, struct api_error *e)
{
	static const char *const names[] = { "drop_after_turns", NULL };
	const json_t *hawk = params_member(message, "hawk");

	if (!hawk)
		return 0;
	if (!json_is_object(hawk))
		return api_fail(e, 400, "invalid_type", "messages",
				"message %zu: 'hawk' must be an object", i);
	if (params_known(hawk, names, "'hawk' in a message", "hawk", e))
		return -1;
	return drop_parse_turns(hawk, turns, e);
}

int drop_add(const struct params *p, struct params_prompt *pr, uint32_t start, uint32_t end,
	     uint32_t at, struct api_error *e)
{
	if (!pr->ops)
		pr->ops = calloc(HIST_OPS_MAX, sizeof(*pr->ops));
	if (!pr->ops)
		return prompt_fail(e, -ENOMEM, "hawk");
	if (pr->n_ops == HIST_OPS_MAX)
		return api_fail(e, 400, "invalid_value", "hawk", "more than %u spans are dropped",
				HIST_OPS_MAX);
	pr->ops[pr->n_ops++] = (struct hist_op){
		.at = at,
		.start = start,
		.end = end,
		.repos = p->repos,
	};
	return 0;
}

/* A span as it stands there; @at is -1 if it has none. */
struct span {
	json_int_t start, end, at;
};

static int span_parse(const json_t *v, size_t i, size_t n_prompt, struct span *s,
		      struct api_error *e)
{
	json_int_t *const to[] = { &s->start, &s->end, &s->at };
	size_t n = json_array_size(v), k;

	if (!json_is_array(v) || n < 2 || n > 3)
		return api_fail(e, 400, "invalid_type", "hawk.drop",
				"span %zu must be [start, end] or [start, end, at]", i);
	s->at = -1;
	for (k = 0; k < n; k++) {
		const json_t *x = json_array_get(v, k);

		if (!json_is_integer(x))
			return api_fail(e, 400, "invalid_type", "hawk.drop",
					"span %zu: element %zu is not an integer", i, k);
		*to[k] = json_integer_value(x);
		if (*to[k] < 0 || *to[k] > (json_int_t)n_prompt)
			return api_fail(
				e, 400, "invalid_value", "hawk.drop",
				"span %zu: %lld is not a token of the prompt, which has %zu", i,
				(long long)*to[k], n_prompt);
	}
	return 0;
}

/* Where spans take effect that do not say it. */
static int span_default_at(const json_t *hawk, const json_t *drop, size_t n_prompt, json_int_t *at,
			   struct api_error *e)
{
	struct span s;
	size_t i;

	*at = 0;
	for (i = 0; i < json_array_size(drop); i++) {
		if (span_parse(json_array_get(drop, i), i, n_prompt, &s, e))
			return -1;
		if (s.at < 0 && s.end > *at)
			*at = s.end;
	}
	return params_int(hawk, "at", 1, n_prompt, at, e);
}

static int drop_parse_array(const json_t *hawk, const json_t *drop, struct params *p,
			    struct api_error *e)
{
	struct params_prompt *pr = &p->prompt[0];
	json_int_t at, last = 0;
	size_t i;

	if (span_default_at(hawk, drop, pr->n, &at, e))
		return -1;
	for (i = 0; i < json_array_size(drop); i++) {
		struct span s;

		if (span_parse(json_array_get(drop, i), i, pr->n, &s, e))
			return -1;
		if (s.start < last)
			return api_fail(
				e, 400, "invalid_value", "hawk.drop",
				"span %zu starts at %lld, before the end of the span before it, %lld: spans must be in order and not overlap",
				i, (long long)s.start, (long long)last);
		last = s.end;
		if (drop_add(p, pr, s.start, s.end, s.at < 0 ? at : s.at, e))
			return -1;
	}
	return 0;
}

int drop_parse_spans(const json_t *root, struct params *p, struct api_error *e)
{
	const json_t *hawk = params_member(root, "hawk");
	const json_t *drop = hawk ? params_member(hawk, "drop") : NULL;
	struct params_prompt *pr = &p->prompt[0];
	char err[HIST_ERR_LEN];

	if (hawk && !drop && params_member(hawk, "at"))
		return api_fail(e, 400, "invalid_value", "hawk.at", "'at' needs 'drop'");
	if (drop && !json_is_array(drop))
		return api_fail(
			e, 400, "invalid_type", "hawk.drop",
			"'drop' must be an array of spans [start, end] or [start, end, at]");
	if (drop && p->n_prompts != 1)
		return api_fail(e, 400, "invalid_value", "hawk.drop",
				"'drop' counts the tokens of one prompt, this request has %u",
				p->n_prompts);
	if (drop && drop_parse_array(hawk, drop, p, e))
		return -1;
	hist_sort(pr->ops, pr->n_ops);
	if (hist_check(pr->ops, pr->n_ops, pr->n, err))
		return api_fail(e, 400, "invalid_value", drop ? "hawk.drop" : "messages", "%s",
				err);
	return 0;
}
