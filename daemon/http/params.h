/* SPDX-License-Identifier: MIT */
/*
 * params.h - a request body, checked: JSON in, prompts as tokens and sampling
 * parameters out.  Everything wrong is answered with an error that names the
 * parameter.
 */
#ifndef HAWKD_PARAMS_H
#define HAWKD_PARAMS_H

#include <jansson.h>

#include "exec/sample.h"
#include "sched/text.h"

#define PARAMS_PROMPTS_MAX 32u
#define PARAMS_SALT_MAX	   256u

/**
 * struct api_error - an answer of OpenAI's error form
 * @status: HTTP status
 * @type: "invalid_request_error", "server_error", ...
 * @code: machine-readable cause, or NULL
 * @param: parameter at fault, or NULL
 * @retry_after_s: seconds for a Retry-After header, 0 for none
 */
struct api_error {
	int status;
	const char *type;
	const char *code;
	const char *param;
	unsigned int retry_after_s;
	char message[400];
};

/** api_fail() - fill an error; returns -1 so that callers can return it */
int api_fail(struct api_error *e, int status, const char *code, const char *param, const char *fmt,
	     ...) __attribute__((format(printf, 5, 6)));

struct params_prompt {
	int32_t *ids; /* malloc()ed */
	size_t n;
};

/**
 * struct params - what the client asked for
 * @n_prompts: prompts, each one sequence
 * @max_tokens: tokens to generate at most, per prompt; clamped to the context
 * @at_start: the prompt has no text, so the output starts one
 */
struct params {
	bool chat;
	bool stream;
	bool include_usage;
	bool return_token_ids;
	bool at_start;
	uint32_t n_prompts;
	struct params_prompt prompt[PARAMS_PROMPTS_MAX];
	uint32_t max_tokens;
	struct sample_params sample;
	struct text_stops stops;
	char salt[PARAMS_SALT_MAX];
	size_t salt_len;
};

/**
 * struct params_env - what requests are checked against
 * @model_names: names that "model" may have, NULL-terminated
 * @n_ctx: tokens of a sequence at most
 * @default_max_tokens: for chat requests without max_tokens
 */
struct params_env {
	const struct tok *tok;
	const char *const *model_names;
	uint32_t n_ctx;
	uint32_t default_max_tokens;
};

/**
 * params_parse() - check a body
 * @chat: /v1/chat/completions, otherwise /v1/completions
 * Return: 0, or -1 with @e filled. params_free() in both cases.
 */
int params_parse(const struct params_env *env, bool chat, const char *body, size_t len,
		 struct params *p, struct api_error *e);

void params_free(struct params *p);

/* prompt.c */
int prompt_parse(const struct params_env *env, const json_t *root, struct params *p,
		 struct api_error *e);
int chat_parse(const struct params_env *env, const json_t *root, struct params *p,
	       struct api_error *e);

#endif
