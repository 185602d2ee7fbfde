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
#include "http/params.h"

int speculate_parse(const struct params_env *env, const json_t *root, struct params *p,
		    struct api_error *e)
{
	static const char *const members[] = { "tokens", "ngram", "gate", NULL };
	const json_t *hawk = params_member(root, "hawk");
	const json_t *v = hawk ? params_member(hawk, "speculate") : NULL;
	json_int_t tokens = env->speculate, ngram = SPEC_NGRAM_DEFAULT;

	p->speculate.gate = true;
	if (v && !json_is_object(v))
		return api_fail(e, 400, "invalid_type", "hawk.speculate",
				"'speculate' must be an object");
	if (v && (params_known(v, members, "'speculate'", "hawk.speculate", e) ||
		  params_int(v, "tokens", 0, SPEC_TOKENS_MAX, &tokens, e) ||
		  params_int(v, "ngram", 1, NGRAM_MAX, &ngram, e) ||
		  params_bool(v, "gate", &p->speculate.gate, e)))
		return -1;
	p->speculate.tokens = tokens;
	p->speculate.ngram = ngram;
	return 0;
}
