// SPDX-License-Identifier: MIT
/* Reading and checking the tokenizer part of a GGUF file. */
#include "tok/tok_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the tokens that end a turn in the common chat formats. */
static const char *const eog_names[] = {
	"<|endoftext|>", "<|end_of_text|>", "<|eot_id|>",    "<|eom_id|>",
	"<|im_end|>",	 "<|end|>",	    "<end_of_turn>", "</s>",
};

static int read_pieces(struct tok *t, const struct gguf *g, char *err)
{
	struct gguf_arr tokens;
	const uint8_t *pos;
	uint32_t i;

	if (gguf_get_arr(g, "tokenizer.ggml.tokens", &tokens) || tokens.type != GGUF_STR)
		return gguf_fail(
			err, -EINVAL,
			"the model file lacks the list 'tokenizer.ggml.tokens': convert the model again");
	if (tokens.n != t->n_vocab)
		return gguf_fail(
			err, -EINVAL,
			"the vocabulary has %llu tokens but the embedding matrix has %u rows: the file is corrupt",
			(unsigned long long)tokens.n, t->n_vocab);
	t->piece = calloc(t->n_vocab, sizeof(*t->piece));
	t->type = malloc(t->n_vocab);
	t->eog = calloc(t->n_vocab, sizeof(*t->eog));
	t->score = calloc(t->n_vocab, sizeof(*t->score));
	if (!t->piece || !t->type || !t->eog || !t->score || strmap_init(&t->map, t->n_vocab))
		return gguf_fail(err, -ENOMEM, "no memory for the tokenizer");
	memset(t->type, TOK_NORMAL, t->n_vocab);
	pos = tokens.p;
	for (i = 0; i < t->n_vocab; i++) {
		t->piece[i] = gguf_arr_next_str(&pos);
		if (t->piece[i].len > TOK_MAX_TEXT)
			return gguf_fail(err, -EINVAL,
					 "token %u is %zu bytes long: the file is corrupt", i,
					 t->piece[i].len);
		if (t->piece[i].len > t->max_piece)
			t->max_piece = t->piece[i].len;
		/* of equal pieces the first is the one to encode with */
		strmap_add(&t->map, t->piece[i], i);
	}
	return 0;
}

/* An optional array with one 4-byte element per token. */
static int read_per_token(const struct tok *t, const struct gguf *g, const char *key,
			  enum gguf_vtype type, struct gguf_arr *arr, char *err)
{
	int ret = gguf_get_arr(g, key, arr);

	if (ret == -ENOENT)
		return ret;
	if (ret || arr->type != type || arr->n != t->n_vocab)
		return gguf_fail(err, -EINVAL,
				 "'%s' does not hold one number per token: the file is corrupt",
				 key);
	return 0;
}

static bool is_byte_name(struct gguf_str p)
{
	const char *hex = "0123456789ABCDEF";

	return p.len == 6 && !memcmp(p.p, "<0x", 3) && p.p[5] == '>' && memchr(hex, p.p[3], 16) &&
	       memchr(hex, p.p[4], 16);
}

static int read_types(struct tok *t, const struct gguf *g, char *err)
{
	struct gguf_arr arr;
	int32_t type;
	uint32_t i;
	int ret;

	ret = read_per_token(t, g, "tokenizer.ggml.token_type", GGUF_I32, &arr, err);
	for (i = 0; !ret && i < t->n_vocab; i++) {
		memcpy(&type, arr.p + 4 * (size_t)i, sizeof(type));
		if (type < TOK_NORMAL || type > TOK_BYTE ||
		    (type == TOK_BYTE && !is_byte_name(t->piece[i])))
			return gguf_fail(
				err, -EINVAL,
				"token %u '%s' has impossible type %d: the file is corrupt", i,
				gguf_printable(t->piece[i]).s, type);
		t->type[i] = type;
	}
	return ret == -ENOENT ? 0 : ret;
}

static int read_scores(struct tok *t, const struct gguf *g, char *err)
{
	struct gguf_arr arr;
	int ret;

	ret = read_per_token(t, g, "tokenizer.ggml.scores", GGUF_F32, &arr, err);
	if (!ret)
		memcpy(t->score, arr.p, (size_t)t->n_vocab * 4);
	else if (ret == -ENOENT)
		gguf_fail(
			err, -EINVAL,
			"the model file lacks the list 'tokenizer.ggml.scores': convert the model again");
	return ret ? -EINVAL : 0;
}

/* A token id from the metadata; keeps *id when the key is absent. */
static int read_id(const struct tok *t, const struct gguf *g, const char *key, int32_t *id,
		   char *err)
{
	uint32_t v;
	int ret = gguf_get_u32(g, key, &v);

	if (ret == -ENOENT)
		return 0;
	if (ret || v >= t->n_vocab)
		return gguf_fail(err, -EINVAL,
				 "key '%s' is not one of the %u tokens: the file is corrupt", key,
				 t->n_vocab);
	*id = v;
	return 0;
}

static void mark_control(struct tok *t, int32_t id, bool eog)
{
	if (id < 0)
		return;
	if (t->type[id] == TOK_NORMAL)
		t->type[id] = TOK_CONTROL;
	t->eog[id] = t->eog[id] || eog;
}

static int read_special_ids(struct tok *t, const struct gguf *g, char *err)
{
	int32_t eot = -1, eom = -1;
	size_t i;
	int ret;

	ret = read_id(t, g, "tokenizer.ggml.bos_token_id", &t->bos, err);
	if (!ret)
		ret = read_id(t, g, "tokenizer.ggml.eos_token_id", &t->eos, err);
	if (!ret)
		ret = read_id(t, g, "tokenizer.ggml.unknown_token_id", &t->unk, err);
	if (!ret)
		ret = read_id(t, g, "tokenizer.ggml.eot_token_id", &eot, err);
	if (!ret)
		ret = read_id(t, g, "tokenizer.ggml.eom_token_id", &eom, err);
	if (ret)
		return ret;
	mark_control(t, t->bos, false);
	mark_control(t, t->eos, true);
	mark_control(t, eot, true);
	mark_control(t, eom, true);
	for (i = 0; i < sizeof(eog_names) / sizeof(eog_names[0]); i++) {
		int32_t id = tok_find(t, eog_names[i]);

		if (id >= 0 && (t->type[id] == TOK_CONTROL || t->type[id] == TOK_USER))
			t->eog[id] = true;
	}
	gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &t->add_bos);
	gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &t->add_eos);
	return 0;
}

static int cmp_len_desc(const void *a, const void *b)
{
	uint32_t la = *(const uint32_t *)a, lb = *(const uint32_t *)b;

	return la < lb ? 1 : la > lb ? -1 : 0;
}

/* Distinct lengths of the tokens that TOK_PARSE_SPECIAL looks for. */
static int index_special(struct tok *t, char *err)
{
	uint32_t i, n = 0, kept = 0;

	t->special_len = malloc((size_t)t->n_vocab * sizeof(*t->special_len));
	if (!t->special_len)
		return gguf_fail(err, -ENOMEM, "no memory for the tokenizer");
	for (i = 0; i < t->n_vocab; i++)
		if ((t->type[i] == TOK_CONTROL || t->type[i] == TOK_USER) && t->piece[i].len)
			t->special_len[n++] = t->piece[i].len;
	qsort(t->special_len, n, sizeof(*t->special_len), cmp_len_desc);
	for (i = 0; i < n; i++)
		if (!kept || t->special_len[i] != t->special_len[kept - 1])
			t->special_len[kept++] = t->special_len[i];
	t->n_special_len = kept;
	return 0;
}

static int spm_init(struct tok *t, const struct gguf *g, char *err)
{
	char name[8];
	int32_t id;
	int ret, b;

	t->add_space_prefix = true;
	gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix);
	ret = read_scores(t, g, err);
	if (ret)
		return ret;
	for (b = 0; b < 256; b++) {
		snprintf(name, sizeof(name), "<0x%02X>", b);
		id = tok_find(t, name);
		if (id < 0)
			id = t->unk;
		else if (t->type[id] == TOK_NORMAL)
			t->type[id] = TOK_BYTE;
		if (id < 0)
			return gguf_fail(
				err, -EINVAL,
				"the vocabulary has neither token '%s' nor an unknown token: the file is corrupt",
				name);
		t->byte_id[b] = id;
	}
	return 0;
}

/* Which tokenizer, and what it assumes where the file says nothing. */
static int read_model(struct tok *t, const struct gguf *g, char *err)
{
	struct gguf_str model, pre;

	if (gguf_get_str(g, "tokenizer.ggml.model", &model))
		return gguf_fail(
			err, -EINVAL,
			"the model file lacks key 'tokenizer.ggml.model': convert the model again, with its tokenizer");
	if (gguf_str_eq(model, "llama")) {
		t->model = TOK_SPM;
		t->add_bos = true;
		t->unk = 0;
		t->bos = t->n_vocab > 2 ? 1 : -1;
		t->eos = t->n_vocab > 2 ? 2 : -1;
	} else if (gguf_str_eq(model, "gpt2")) {
		t->model = TOK_BPE;
		t->add_bos = !gguf_get_str(g, "tokenizer.ggml.pre", &pre) &&
			     (gguf_str_eq(pre, "llama-bpe") || gguf_str_eq(pre, "llama3"));
	} else {
		return gguf_fail(
			err, -EOPNOTSUPP,
			"the model's tokenizer is '%s': Hawk knows 'llama' (SPM) and 'gpt2' (byte-level BPE)",
			gguf_printable(model).s);
	}
	return 0;
}

int tok_create(const struct gguf *g, uint32_t n_vocab, struct tok **out, char err[GGUF_ERR_LEN])
{
	struct tok *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return gguf_fail(err, -ENOMEM, "no memory for the tokenizer");
	t->n_vocab = n_vocab;
	t->bos = t->eos = t->unk = -1;
	ret = read_model(t, g, err);
	if (!ret)
		ret = read_pieces(t, g, err);
	if (!ret)
		ret = read_types(t, g, err);
	if (!ret)
		ret = read_special_ids(t, g, err);
	if (!ret)
		ret = index_special(t, err);
	if (!ret)
		ret = t->model == TOK_SPM ? spm_init(t, g, err) : bpe_init(t, g, err);
	if (ret) {
		tok_destroy(t);
		return ret;
	}
	*out = t;
	return 0;
}

void tok_destroy(struct tok *t)
{
	uint32_t i;

	if (!t)
		return;
	for (i = 0; i < t->n_patterns; i++)
		pcre2_code_free(t->pattern[i]);
	strmap_free(&t->map);
	free(t->rules);
	free(t->special_len);
	free(t->piece);
	free(t->type);
	free(t->eog);
	free(t->score);
	free(t);
}

int32_t tok_text_id(const struct tok *t, const char *p, size_t len)
{
	uint32_t id;

	if (len > t->max_piece)
		return -1;
	id = strmap_get(&t->map, (struct gguf_str){ p, len });
	if (id == STRMAP_NONE || t->type[id] != TOK_NORMAL)
		return -1;
	return id;
}

int32_t tok_find(const struct tok *t, const char *text)
{
	uint32_t id = strmap_get(&t->map, (struct gguf_str){ text, strlen(text) });

	return id == STRMAP_NONE ? -1 : (int32_t)id;
}

int32_t tok_bos(const struct tok *t)
{
	return t->bos;
}

int32_t tok_eos(const struct tok *t)
{
	return t->eos;
}

bool tok_is_eog(const struct tok *t, int32_t id)
{
	return id >= 0 && (uint32_t)id < t->n_vocab && t->eog[id];
}

bool tok_is_control(const struct tok *t, int32_t id)
{
	return id >= 0 && (uint32_t)id < t->n_vocab && t->type[id] == TOK_CONTROL;
}

struct gguf_str tok_piece(const struct tok *t, int32_t id)
{
	if (id < 0 || (uint32_t)id >= t->n_vocab)
		return (struct gguf_str){ "", 0 };
	return t->piece[id];
}

uint32_t tok_count(const struct tok *t)
{
	return t->n_vocab;
}
