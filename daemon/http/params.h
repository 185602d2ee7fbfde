/* SPDX-License-Identifier: MIT */
/*
 * params.h - a request body, checked: JSON in, prompts as tokens and sampling
 * parameters out.  Everything wrong is answered with an error that names the
 * parameter.
 */
#ifndef HAWKD_PARAMS_H
#define HAWKD_PARAMS_H

#include <jansson.h>

#include "exec/exec.h"
#include "exec/sample.h"
#include "sched/spec.h"
#include "kv/hist.h"
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

/**
 * struct params_prompt - a prompt
 * @ids: its tokens, malloc()ed, @n of them
 * @ops: what is dropped from the cache, malloc()ed, @n_ops of them, in hist_sort()'s order
 */
struct params_prompt {
	int32_t *ids;
	size_t n;
	struct hist_op *ops;
	uint32_t n_ops;
};

/**
 * struct params - what the client asked for
 * @n_prompts: prompts, each one sequence
 * @max_tokens: tokens to generate at most, per prompt; clamped to the context
 * @at_start: the prompt has no text, so the output starts one
 * @repos: gaps of dropped tokens are closed
 * @drop_after_turns: answers that see an observation, 0: there are no observations
 * @sparse: what tokens attend to; a window of 0: to all
 */
struct params {
	bool chat;
	bool stream;
	bool include_usage;
	bool return_token_ids;
	bool at_start;
	bool repos;
	uint32_t drop_after_turns;
	uint32_t n_prompts;
	struct params_prompt prompt[PARAMS_PROMPTS_MAX];
	uint32_t max_tokens;
	struct sample_params sample;
	struct spec_params speculate;
	struct exec_sparse sparse;
	struct text_stops stops;
	char salt[PARAMS_SALT_MAX];
	size_t salt_len;
};

/**
 * struct params_env - what requests are checked against
 * @model_names: names that "model" may have, NULL-terminated
 * @n_ctx: tokens of a sequence at most
 * @default_max_tokens: for chat requests without max_tokens
 * @speculate: tokens to guess for requests that do not say
 * @block_tokens: tokens of a block
 * @sparse: requests may ask for sparse attention
 */
struct params_env {
	const struct tok *tok;
	const char *const *model_names;
	uint32_t n_ctx;
	uint32_t default_max_tokens;
	uint32_t speculate;
	uint32_t block_tokens;
	bool sparse;
};

/**
 * params_parse() - check a body
 * @chat: /v1/chat/completions, otherwise /v1/completions
 * Return: 0, or -1 with @e filled. params_free() in both cases.
 */
int params_parse(const struct params_env *env, bool chat, const char *body, size_t len,
		 struct params *p, struct api_error *e);

void params_free(struct params *p);

/* params.c: members of an object; 0, or -1 with @e filled. Absent or null: *out stays. */
const json_t *params_member(const json_t *root, const char *name);
/**
 * params_known() - refuse members that an object does not have
 * @names: those that it may have, NULL at the end
 * @what: the object in words, for the message
 * @param: the parameter at fault
 *
 * Misspelt members would otherwise be ignored, and the wrong thing be done.
 */
int params_known(const json_t *v, const char *const *names, const char *what, const char *param,
		 struct api_error *e);
int params_bool(const json_t *root, const char *name, bool *out, struct api_error *e);
int params_int(const json_t *root, const char *name, json_int_t min, json_int_t max,
	       json_int_t *out, struct api_error *e);

/* prompt.c */
int prompt_parse(const struct params_env *env, const json_t *root, struct params *p,
		 struct api_error *e);
struct params_prompt *prompt_new(struct params *p);
int prompt_fail(struct api_error *e, int ret, const char *param);

/* chat.c */
int chat_parse(const struct params_env *env, const json_t *root, struct params *p,
	       struct api_error *e);

/* drop.c: the member "hawk", before and after the prompts are known */
int drop_parse(const json_t *root, struct params *p, struct api_error *e);
int drop_parse_spans(const json_t *root, struct params *p, struct api_error *e);

/* speculate.c: "speculate" of the member "hawk" */
int speculate_parse(const struct params_env *env, const json_t *root, struct params *p,
		    struct api_error *e);

/* sparse.c: "sparse" of the member "hawk" */
int sparse_parse(const struct params_env *env, const json_t *root, struct params *p,
		 struct api_error *e);

/** drop_parse_message() - "hawk" of message @i: the answers that see its observations */
int drop_parse_message(const json_t *message, size_t i, uint32_t *turns, struct api_error *e);

/** drop_add() - tokens [@start, @end) of a prompt are dropped at token @at */
int drop_add(const struct params *p, struct params_prompt *pr, uint32_t start, uint32_t end,
	     uint32_t at, struct api_error *e);

#endif
