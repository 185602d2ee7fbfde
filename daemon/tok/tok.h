/* SPDX-License-Identifier: MIT */
/*
 * tok.h - tokenizers read from a GGUF file: SentencePiece-style (SPM, model
 * "llama") and byte-level BPE (model "gpt2").
 *
 * A struct tok is immutable after tok_create(): any number of threads may
 * encode and decode with it at the same time.
 */
#ifndef HAWK_TOK_H
#define HAWK_TOK_H

#include "gguf/gguf.h"

/* Longest text tok_encode() takes, in bytes. */
#define TOK_MAX_TEXT (4u << 20)

/* Flags of tok_encode(). */
#define TOK_ADD_SPECIAL	  1u /* BOS/EOS as the file asks for them */
#define TOK_PARSE_SPECIAL 2u /* "<|im_end|>" etc. become control tokens */

struct tok;

/**
 * tok_create() - build the tokenizer described by a file's metadata
 * @g: the file; must outlive the tokenizer
 * @n_vocab: rows of the embedding matrix; the vocabulary must have as many
 * @out: set on success only
 * @err: on failure, one line naming the cause and what to do
 *
 * Return: 0; -EINVAL missing or inconsistent metadata; -EOPNOTSUPP a tokenizer
 * model or pre-tokenizer Hawk lacks; -ENOMEM.
 */
int tok_create(const struct gguf *g, uint32_t n_vocab, struct tok **out, char err[GGUF_ERR_LEN]);

/** tok_destroy() - free; NULL is ignored */
void tok_destroy(struct tok *t);

/**
 * tok_encode() - text to token ids
 * @text: bytes, meant to be UTF-8; other bytes are encoded too, none is lost
 * @len: bytes, at most TOK_MAX_TEXT
 * @flags: TOK_*. Without TOK_PARSE_SPECIAL the text cannot produce control
 *         tokens, so user text needs no escaping. To encode a chat prompt,
 *         encode template parts with the flag and user parts without it.
 * @ids: set to a malloc()ed array, to be free()d by the caller
 * @n: set to the number of ids
 *
 * Return: 0; -E2BIG text too long; -EINVAL unknown flags; -ENOMEM.
 */
int tok_encode(const struct tok *t, const char *text, size_t len, unsigned int flags, int32_t **ids,
	       size_t *n);

/**
 * struct tok_stream - incremental decoder of one token sequence
 *
 * Emits only whole UTF-8 characters: bytes of an unfinished one are held back
 * until the tokens that complete it arrive. Bytes that can never become valid
 * UTF-8 are replaced by U+FFFD. Plain data: copy or drop it freely.
 */
struct tok_stream {
	uint8_t held[4]; /* unfinished character */
	uint8_t n_held;
	bool strip_space; /* drop one leading space of the next text */
};

/**
 * tok_stream_init() - start decoding
 * @at_start: the first token decoded is the first of the whole text (follows
 *            BOS), so an SPM tokenizer's artificial leading space is removed.
 *            Pass false to decode a continuation of a prompt.
 */
void tok_stream_init(const struct tok *t, struct tok_stream *s, bool at_start);

/** tok_stream_max() - bytes that one push or flush can emit at most, plus NUL */
size_t tok_stream_max(const struct tok *t);

/**
 * tok_stream_push() - decode one token
 * @id: token; ids outside the vocabulary emit nothing
 * @special: also emit the text of control tokens such as "<|im_end|>"
 * @out: at least tok_stream_max() bytes; NUL-terminated
 *
 * Return: number of bytes written, without the NUL. The text may hold NUL
 * bytes of its own if the model emits them.
 */
size_t tok_stream_push(const struct tok *t, struct tok_stream *s, int32_t id, bool special,
		       char *out);

/** tok_stream_flush() - end of sequence: emit U+FFFD for what is held back */
size_t tok_stream_flush(const struct tok *t, struct tok_stream *s, char *out);

/* Special ids; -1 when the vocabulary has none. */
int32_t tok_bos(const struct tok *t);
int32_t tok_eos(const struct tok *t);

/** tok_is_eog() - does this token end a generation (EOS, EOT, EOM)? */
bool tok_is_eog(const struct tok *t, int32_t id);

/** tok_is_control() - is this a control token (never produced by user text)? */
bool tok_is_control(const struct tok *t, int32_t id);

/** tok_find() - id of a token by its exact text, such as "<|im_end|>"; or -1 */
int32_t tok_find(const struct tok *t, const char *text);

/** tok_piece() - text of a token as stored in the vocabulary */
struct gguf_str tok_piece(const struct tok *t, int32_t id);

/** tok_count() - size of the vocabulary */
uint32_t tok_count(const struct tok *t);

#endif
