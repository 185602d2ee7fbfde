// SPDX-License-Identifier: MIT
/*
 * libFuzzer target: any bytes as a model file, through everything that reads
 * them (parser, network, tokenizer), then a short text through the tokenizer.
 *
 *	make fuzz-gguf && build/fuzz/fuzz_gguf -max_len=65536 CORPUS_DIR
 */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tok/tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_tokenizer(const struct tok *t)
{
	static const char text[] = "a<s> \xff"
				   "12\n</s>";
	char *out = malloc(tok_stream_max(t));
	struct tok_stream s;
	int32_t *ids;
	size_t n, i;

	tok_stream_init(t, &s, true);
	if (out &&
	    !tok_encode(t, text, sizeof(text) - 1, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, &ids, &n)) {
		for (i = 0; i < n; i++)
			tok_stream_push(t, &s, ids[i], true, out);
		tok_stream_flush(t, &s, out);
		free(ids);
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[GGUF_ERR_LEN];
	struct gguf_arr tokens;
	struct model *m;
	struct gguf *g;
	struct tok *t;
	uint8_t *copy = malloc(size ? size : 1); /* aligned */

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (!gguf_parse(copy, size, &g, err)) {
		if (!gguf_get_arr(g, "tokenizer.ggml.tokens", &tokens) &&
		    !tok_create(g, tokens.n, &t, err)) {
			use_tokenizer(t);
			tok_destroy(t);
		}
		if (model_from_gguf(g, "fuzz", &m, err))
			gguf_close(g);
		else
			model_free(m);
	}
	free(copy);
	return 0;
}
