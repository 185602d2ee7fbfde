/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tokenizer's files:
 *	vocab.c		reading the vocabulary from the file
 *	encode.c	splitting at control tokens, BOS/EOS
 *	spm.c bpe.c	one piece of plain text to ids
 *	pretok.c	cutting text into words before BPE
 *	merge.c		merging symbols by priority, for both
 *	stream.c	ids to text
 */
#ifndef HAWK_TOK_PRIV_H
#define HAWK_TOK_PRIV_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "gguf/strmap.h"
#include "tok/tok.h"

/* Token types as stored in tokenizer.ggml.token_type. */
enum tok_type {
	TOK_NORMAL = 1,
	TOK_UNKNOWN,
	TOK_CONTROL,
	TOK_USER,
	TOK_UNUSED,
	TOK_BYTE,
};

enum tok_model { TOK_SPM, TOK_BPE };

#define TOK_MAX_PATTERNS 4

/* A merge rule: the pair of ids -> the id of the joined piece. */
struct tok_rule {
	uint64_t pair; /* left << 32 | right; TOK_NO_PAIR: empty slot */
	uint32_t rank; /* smaller merges first */
	int32_t id;
};

#define TOK_NO_PAIR UINT64_MAX

struct tok {
	enum tok_model model;
	uint32_t n_vocab;
	struct gguf_str *piece; /* [n_vocab] */
	uint8_t *type;		/* [n_vocab] enum tok_type */
	bool *eog;		/* [n_vocab] ends a generation */
	float *score;		/* [n_vocab], SPM only */
	struct strmap map;	/* piece -> id */
	size_t max_piece;	/* bytes of the longest piece */
	int32_t bos, eos, unk;	/* -1: none */
	bool add_bos, add_eos;
	bool add_space_prefix; /* SPM */
	int32_t byte_id[256];  /* token of each single byte */
	uint32_t *special_len; /* distinct lengths, longest first */
	uint32_t n_special_len;

	/* BPE */
	bool whole_words;	/* a word in the vocabulary is not cut */
	struct tok_rule *rules; /* open-addressed by pair */
	size_t rule_mask;
	uint64_t rule_seed;
	pcre2_code *pattern[TOK_MAX_PATTERNS];
	uint32_t n_patterns;
	int16_t cp_byte[512]; /* byte of a byte-level character, or -1 */
};

/* Growing array of ids, the output of an encoding. */
struct tok_out {
	int32_t *ids;
	size_t n, cap;
};

int tok_out_add(struct tok_out *out, int32_t id);

/* Working memory of one encoding. */
struct tok_work {
	struct tok_out out;
	struct merge_state *merge;
	pcre2_match_data *match;
};

/* One symbol of the text being merged: a range of its bytes. */
struct merge_sym {
	uint32_t start, len; /* len 0: merged into its left neighbour */
	int32_t id;	     /* token, or -1 */
	int32_t prev, next;  /* neighbours, -1 at the ends */
};

struct merge_state {
	struct merge_sym *sym;
	uint32_t n_sym, cap_sym;
	struct merge_cand *heap;
	uint32_t n_heap, cap_heap;
};

/*
 * Priority of joining two neighbours: smaller joins first. Returns the id of
 * the joined token, or -1 when they do not join.
 */
typedef int32_t (*merge_fn)(const struct tok *t, const char *text, const struct merge_sym *left,
			    const struct merge_sym *right, uint32_t *prio);

int merge_add(struct merge_state *m, uint32_t start, uint32_t len, int32_t id);
int merge_run(struct merge_state *m, const struct tok *t, const char *text, merge_fn fn);

/* Plain text to ids. */
int spm_encode(const struct tok *t, struct tok_work *w, const char *text, size_t len,
	       bool space_prefix);
int bpe_encode(const struct tok *t, struct tok_work *w, const char *text, size_t len);

/* BPE set-up. */
int bpe_init(struct tok *t, const struct gguf *g, char err[GGUF_ERR_LEN]);
int pretok_init(struct tok *t, struct gguf_str pre, char err[GGUF_ERR_LEN]);

/* Call fn for each word of the text, in order. */
int pretok_split(const struct tok *t, pcre2_match_data *match, const char *text, size_t len,
		 int (*fn)(void *arg, const char *word, size_t len), void *arg);

/* Id of a piece of ordinary text, or -1: never a control token. */
int32_t tok_text_id(const struct tok *t, const char *p, size_t len);

/* Length of a UTF-8 character from its first byte; 1 for a stray byte. */
static inline uint32_t utf8_len(uint8_t c)
{
	return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 1;
}

#endif
