// SPDX-License-Identifier: MIT
/*
 * speculate.c - "speculate" of the member "hawk" of a request
 *
 *	"speculate": {
 *		"tokens": K,	guessed in a round at most, 0: no speculation
 *		"ngram": N,	tokens that are looked for
 *		"gate": true	only as long as it is a gain
 *	}
 *
 * It changes how fast an answer comes and never what it is.
 */
#include <string.h>

#include "http/params.h"

static int check_members(const json_t *v, struct api_error *e)
{
	const char *key;
	json_t *x;

	json_object_foreach((json_t *)v, key, x)
		if (strcmp(key, "tokens") && strcmp(key, "ngram") && strcmp(key, "gate"))
			return api_fail(e, 400, "unknown_parameter", "hawk.speculate",
					"'%.40s' is no member of 'speculate'", key);
	return 0;
}

int speculate_parse(const struct params_env *env, const json_t *root, struct params *p,
		    struct api_error *e)
{
	const json_t *hawk = params_member(root, "hawk");
	const json_t *v = hawk ? params_member(hawk, "speculate") : NULL;
	json_int_t tokens = env->speculate, ngram = SPEC_NGRAM_DEFAULT;

	p->speculate.gate = true;
	if (v && !json_is_object(v))
		return api_fail(e, 400, "invalid_type", "hawk.speculate",
				"'speculate' must be an object");
	if (v && (check_members(v, e) ||
		  params_int(v, "tokens", 0, SPEC_TOKENS_MAX, &tokens, e) ||
		  params_int(v, "ngram", 1, NGRAM_MAX, &ngram, e) ||
		  params_bool(v, "gate", &p->speculate.gate, e)))
		return -1;
	p->speculate.tokens = tokens;
	p->speculate.ngram = ngram;
	return 0;
}
