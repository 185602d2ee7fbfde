// SPDX-License-Identifier: MIT
/* params.c - check the members of a request body */
#include "http/params.h"

#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPERATURE_MAX		  2.0
#define COMPLETION_DEFAULT_TOKENS 16u /* OpenAI's */

/* What a client sent may be no UTF-8 or be cut within a character; JSON takes neither. */
static void make_utf8(char *s)
{
	json_t *v = json_string(s);

	for (; !v && *s; s++)
		if (*s & 0x80)
			*s = '?';
	json_decref(v);
}

int api_fail(struct api_error *e, int status, const char *code, const char *param, const char *fmt,
	     ...)
{
	va_list ap;

	memset(e, 0, sizeof(*e));
	e->status = status;
	e->type = status >= 500 ? "server_error" : "invalid_request_error";
	e->code = code;
	e->param = param;
	va_start(ap, fmt);
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	make_utf8(e->message);
	return -1;
}

/* A member that is present and not null. */
const json_t *params_member(const json_t *root, const char *name)
{
	const json_t *v = json_object_get(root, name);

	return json_is_null(v) ? NULL : v;
}

int params_known(const json_t *v, const char *const *names, const char *what, const char *param,
		 struct api_error *e)
{
	const char *const *name;
	const char *key;
	json_t *x;

	json_object_foreach((json_t *)v, key, x) {
		for (name = names; *name && strcmp(*name, key); name++)
			;
		if (!*name)
			return api_fail(e, 400, "unknown_parameter", param,
					"'%.40s' is no member of %s", key, what);
	}
	return 0;
}

int params_bool(const json_t *root, const char *name, bool *out, struct api_error *e)
{
	const json_t *v = params_member(root, name);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return api_fail(e, 400, "invalid_type", name, "'%s' must be true or false", name);
	*out = json_is_true(v);
	return 0;
}

static int get_float(const json_t *root, const char *name, double min, double max, float *out,
		     struct api_error *e)
{
	const json_t *v = params_member(root, name);
	double d;

	if (!v)
		return 0;
	if (!json_is_number(v))
		return api_fail(e, 400, "invalid_type", name, "'%s' must be a number", name);
	d = json_number_value(v);
	if (!isfinite(d) || d < min || d > max)
		return api_fail(e, 400, "invalid_value", name,
				"'%s' is %g, must be between %g and %g", name, d, min, max);
	*out = d;
	return 0;
}

int params_int(const json_t *root, const char *name, json_int_t min, json_int_t max,
	       json_int_t *out, struct api_error *e)
{
	const json_t *v = params_member(root, name);
	json_int_t i;

	if (!v)
		return 0;
	if (!json_is_integer(v))
		return api_fail(e, 400, "invalid_type", name, "'%s' must be an integer", name);
	i = json_integer_value(v);
	if (i < min || i > max)
		return api_fail(e, 400, "invalid_value", name,
				"'%s' is %lld, must be between %lld and %lld", name, (long long)i,
				(long long)min, (long long)max);
	*out = i;
	return 0;
}

static int get_stop(const json_t *v, struct text_stops *stops, struct api_error *e)
{
	size_t len = json_string_length(v);

	if (!json_is_string(v))
		return api_fail(e, 400, "invalid_type", "stop",
				"'stop' must be a string or an array of up to %u strings",
				TEXT_STOPS_MAX);
	if (len == 0 || len > TEXT_STOP_BYTES)
		return api_fail(e, 400, "invalid_value", "stop",
				"a stop string must have 1 to %u bytes", TEXT_STOP_BYTES);
	memcpy(stops->s[stops->n], json_string_value(v), len);
	stops->len[stops->n++] = len;
	return 0;
}

static int get_stops(const json_t *root, struct text_stops *stops, struct api_error *e)
{
	const json_t *v = params_member(root, "stop");
	size_t i;

	if (!v)
		return 0;
	if (!json_is_array(v))
		return get_stop(v, stops, e);
	if (json_array_size(v) > TEXT_STOPS_MAX)
		return api_fail(e, 400, "invalid_value", "stop", "at most %u stop strings",
				TEXT_STOPS_MAX);
	for (i = 0; i < json_array_size(v); i++)
		if (get_stop(json_array_get(v, i), stops, e))
			return -1;
	return 0;
}

static bool is_text_format(const json_t *v)
{
	const char *type = json_string_value(json_object_get(v, "type"));

	return type && !strcmp(type, "text");
}

/*
 * Parameters whose effect we do not have.  Refusing them is kinder than a
 * silently different result; values that mean "off" are fine.
 */
static int refuse_unsupported(const json_t *root, struct api_error *e)
{
	static const char *const names[] = { "logprobs",
					     "top_logprobs",
					     "echo",
					     "suffix",
					     "logit_bias",
					     "best_of",
					     "presence_penalty",
					     "frequency_penalty",
					     "tools",
					     "tool_choice",
					     "functions",
					     "function_call",
					     "response_format",
					     "audio",
					     "modalities",
					     "prediction" };
	json_int_t n = 1;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *v = params_member(root, names[i]);
		bool off = !v || json_is_false(v) ||
			   (json_is_number(v) && json_number_value(v) == 0) ||
			   ((json_is_array(v) || json_is_string(v)) && json_array_size(v) == 0 &&
			    json_string_length(v) == 0) ||
			   (json_is_object(v) && json_object_size(v) == 0);

		if (!strcmp(names[i], "best_of"))
			off = off || (json_is_integer(v) && json_integer_value(v) == 1);
		if (!strcmp(names[i], "response_format"))
			off = off || is_text_format(v);
		if (!off)
			return api_fail(e, 400, "unsupported_parameter", names[i],
					"'%s' is not supported", names[i]);
	}
	if (params_int(root, "n", 1, 128, &n, e))
		return -1;
	if (n != 1)
		return api_fail(e, 400, "unsupported_value", "n",
				"'n' is %lld, only 1 is supported", (long long)n);
	return 0;
}

static int get_model(const struct params_env *env, const json_t *root, struct api_error *e)
{
	const json_t *v = params_member(root, "model");
	const char *const *name;

	if (!v)
		return api_fail(e, 400, "missing_required_parameter", "model",
				"'model' is missing; this server has '%s'", env->model_names[0]);
	if (!json_is_string(v))
		return api_fail(e, 400, "invalid_type", "model", "'model' must be a string");
	for (name = env->model_names; *name; name++)
		if (!strcmp(*name, json_string_value(v)))
			return 0;
	return api_fail(e, 404, "model_not_found", "model",
			"the model '%.100s' does not exist; this server has '%s'",
			json_string_value(v), env->model_names[0]);
}

static int get_sampling(const json_t *root, struct params *p, struct api_error *e)
{
	json_int_t top_k = 0, seed = 0;

	p->sample.temperature = 1;
	p->sample.top_p = 1;
	if (get_float(root, "temperature", 0, TEMPERATURE_MAX, &p->sample.temperature, e) ||
	    get_float(root, "top_p", 0, 1, &p->sample.top_p, e) ||
	    params_int(root, "top_k", 0, INT32_MAX, &top_k, e) ||
	    params_int(root, "seed", INT64_MIN, INT64_MAX, &seed, e))
		return -1;
	if (p->sample.top_p <= 0) /* OpenAI takes 0 for "the likeliest only" */
		top_k = p->sample.top_p = 1;
	p->sample.top_k = top_k;
	p->sample.seed = seed;
	if (!params_member(root, "seed"))
		randombytes_buf(&p->sample.seed, sizeof(p->sample.seed));
	return 0;
}

static int get_salt(const json_t *root, struct params *p, struct api_error *e)
{
	const char *name = params_member(root, "cache_salt") ? "cache_salt" : "user";
	const json_t *v = params_member(root, name);

	if (!v)
		return 0;
	if (!json_is_string(v))
		return api_fail(e, 400, "invalid_type", name, "'%s' must be a string", name);
	p->salt_len = json_string_length(v);
	if (p->salt_len > sizeof(p->salt))
		return api_fail(e, 400, "invalid_value", name, "'%s' has %zu bytes, at most %zu",
				name, p->salt_len, sizeof(p->salt));
	memcpy(p->salt, json_string_value(v), p->salt_len);
	return 0;
}

static int get_stream(const json_t *root, struct params *p, struct api_error *e)
{
	const json_t *opt = params_member(root, "stream_options");

	if (params_bool(root, "stream", &p->stream, e))
		return -1;
	if (!opt)
		return 0;
	if (!json_is_object(opt))
		return api_fail(e, 400, "invalid_type", "stream_options",
				"'stream_options' must be an object");
	if (!p->stream)
		return api_fail(e, 400, "invalid_value", "stream_options",
				"'stream_options' needs 'stream': true");
	return params_bool(opt, "include_usage", &p->include_usage, e);
}

/*
 * The positions of prompt and output of each sequence must fit the context.  Tokens
 * that were dropped with their gap closed take none.
 */
static int check_context(const struct params_env *env, struct params *p, bool explicit_max,
			 struct api_error *e)
{
	uint32_t most = 0, room, out = explicit_max ? p->max_tokens : 1, i;
	uint64_t need = 0;

	for (i = 0; i < p->n_prompts; i++) {
		const struct params_prompt *pr = &p->prompt[i];
		uint32_t next = pr->n - hist_moved(pr->ops, pr->n_ops);
		uint32_t top = hist_positions(pr->ops, pr->n_ops, pr->n);

		if (top > env->n_ctx && top > next + (uint64_t)out)
			return api_fail(
				e, 400, "context_length_exceeded",
				p->chat ? "messages" : "hawk.drop",
				"this model's context is %u tokens, the prompt reaches %u before some are dropped: drop them at an earlier token",
				env->n_ctx, top);
		if (next + (uint64_t)out > need)
			need = next + (uint64_t)out;
		if (next > most)
			most = next;
	}
	if (need > env->n_ctx)
		return api_fail(
			e, 400, "context_length_exceeded", p->chat ? "messages" : "prompt",
			"this model's context is %u tokens, the request needs %llu (%u in the prompt, %u for the completion): shorten the prompt or max_tokens",
			env->n_ctx, (unsigned long long)need, most, out);
	room = env->n_ctx - most;
	if (p->max_tokens > room)
		p->max_tokens = room;
	return 0;
}

static int parse_root(const struct params_env *env, const json_t *root, struct params *p,
		      struct api_error *e)
{
	json_int_t max_tokens = p->chat ? env->default_max_tokens : COMPLETION_DEFAULT_TOKENS;
	const char *max_name = params_member(root, "max_completion_tokens") ? "max_completion_tokens" :
								       "max_tokens";

	if (!json_is_object(root))
		return api_fail(e, 400, "invalid_type", NULL, "the body must be a JSON object");
	if (get_model(env, root, e) || refuse_unsupported(root, e) ||
	    params_int(root, max_name, 1, INT32_MAX, &max_tokens, e) || get_sampling(root, p, e) ||
	    get_stops(root, &p->stops, e) || get_salt(root, p, e) || get_stream(root, p, e) ||
	    params_bool(root, "return_token_ids", &p->return_token_ids, e) ||
	    drop_parse(root, p, e) || speculate_parse(env, root, p, e) ||
	    sparse_parse(env, root, p, e))
		return -1;
	p->max_tokens = max_tokens;
	if (p->chat ? chat_parse(env, root, p, e) : prompt_parse(env, root, p, e))
		return -1;
	if (drop_parse_spans(root, p, e))
		return -1;
	return check_context(env, p, params_member(root, max_name) != NULL, e);
}

int params_parse(const struct params_env *env, bool chat, const char *body, size_t len,
		 struct params *p, struct api_error *e)
{
	json_error_t je;
	json_t *root;
	int ret;

	memset(p, 0, sizeof(*p));
	p->chat = chat;
	root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &je);
	if (!root)
		return api_fail(e, 400, "invalid_json", NULL,
				"the body is not valid JSON: %s (line %d, column %d)", je.text,
				je.line, je.column);
	ret = parse_root(env, root, p, e);
	json_decref(root);
	return ret;
}

void params_free(struct params *p)
{
	uint32_t i;

	for (i = 0; i < p->n_prompts; i++) {
		free(p->prompt[i].ids);
		free(p->prompt[i].ops);
	}
	p->n_prompts = 0;
}
