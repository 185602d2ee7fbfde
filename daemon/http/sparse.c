// SPDX-License-Identifier: MIT
/*
 * sparse.c - "sparse" of the member "hawk" of a request
 *
 *	"sparse": {
 *		"blocks": R,	blocks chosen by their centroids
 *		"sinks": N,	first tokens that are always read
 *		"window": N	last tokens that are always read
 *	}
 *
 * Tokens of the prompt and of the answer attend to no more than that, in every layer
 * and KV head to blocks of its own choice.  Without it they attend to all.
 */
#include "http/params.h"

int sparse_parse(const struct params_env *env, const json_t *root, struct params *p,
		 struct api_error *e)
{
	static const char *const members[] = { "blocks", "sinks", "window", NULL };
	const json_t *hawk = params_member(root, "hawk");
	const json_t *v = hawk ? params_member(hawk, "sparse") : NULL;
	json_int_t blocks = 0, sinks = EXEC_SPARSE_SINKS, window = EXEC_SPARSE_WINDOW;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return api_fail(e, 400, "invalid_type", "hawk.sparse",
				"'sparse' must be an object");
	if (!env->sparse)
		return api_fail(
			e, 400, "unsupported_parameter", "hawk.sparse",
			"'sparse' is switched off on this server: it was started with --no-sparse");
	if (!params_member(v, "blocks"))
		return api_fail(e, 400, "missing_required_parameter", "hawk.sparse",
				"'sparse' needs 'blocks', how many blocks are chosen");
	if (params_known(v, members, "'sparse'", "hawk.sparse", e) ||
	    params_int(v, "blocks", 0, MODEL_MAX_CTX, &blocks, e) ||
	    params_int(v, "sinks", 0, MODEL_MAX_CTX, &sinks, e) ||
	    params_int(v, "window", env->block_tokens, MODEL_MAX_CTX, &window, e))
		return -1;
	p->sparse = (struct exec_sparse){ blocks, sinks, window };
	return 0;
}
