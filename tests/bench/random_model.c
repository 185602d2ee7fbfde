// SPDX-License-Identifier: MIT
/*
 * random_model.c - write a small model with random weights and a long context
 *
 *	random_model FILE CONTEXT
 *
 * What it says means nothing; what it costs is that of a model of its size.  About
 * 0.5 MB whatever the context; the same bytes each time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "../unit/daemon_fixture.h"

#define VOCAB 512u
#define BYTES 256u	/* byte tokens, behind the unknown one */

enum { PIECE_NORMAL = 1, PIECE_UNKNOWN = 2, PIECE_BYTE = 6 };

static void add_vocabulary(struct fx_file *f)
{
	static char text[VOCAB][16];
	const char *piece[VOCAB];
	int32_t type[VOCAB];
	float score[VOCAB];
	uint32_t i;

	for (i = 0; i < VOCAB; i++) {
		if (i == 0)
			snprintf(text[i], sizeof(text[i]), "<unk>");
		else if (i <= BYTES)
			snprintf(text[i], sizeof(text[i]), "<0x%02X>", i - 1);
		else
			snprintf(text[i], sizeof(text[i]), "w%u", i);
		piece[i] = text[i];
		type[i] = i == 0 ? PIECE_UNKNOWN : i <= BYTES ? PIECE_BYTE : PIECE_NORMAL;
		score[i] = -(float)i;
	}
	fx_kv_str(f, "tokenizer.ggml.model", "llama");
	fx_kv_strs(f, "tokenizer.ggml.tokens", piece, VOCAB);
	fx_kv_i32s(f, "tokenizer.ggml.token_type", type, VOCAB);
	fx_kv_f32s(f, "tokenizer.ggml.scores", score, VOCAB);
	fx_kv_bool(f, "tokenizer.ggml.add_bos_token", false);
}

int main(int argc, char **argv)
{
	struct fx_model m = {
		.n_vocab = VOCAB, .n_embd = 128, .n_layer = 2, .n_head = 4, .n_head_kv = 2,
		.head_dim = 32, .n_ff = 256, .rope_dim = 32, .type = GGUF_T_Q8_0, .seed = 1,
	};
	struct fx_file f = { 0 };
	uint8_t *bytes;
	size_t len;
	FILE *out;

	if (argc != 3 || (m.n_ctx = strtoul(argv[2], NULL, 10)) == 0)
		bench_die("usage: random_model FILE CONTEXT");
	fx_model_add(&f, &m);
	add_vocabulary(&f);
	bytes = fx_finish(&f, &len);
	out = fopen(argv[1], "wb");
	if (!out || fwrite(bytes, 1, len, out) != len || fclose(out))
		bench_die("cannot write %s", argv[1]);
	free(bytes);
	fx_free(&f);
	return 0;
}
