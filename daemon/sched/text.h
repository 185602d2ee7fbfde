/* SPDX-License-Identifier: MIT */
/*
 * text.h - tokens to text with stop strings
 *
 * Text that could be the start of a stop string is held back until it is known
 * not to be one.  The same tokens and stop strings always give the same text
 * and the same end, so the scheduler (which must know when to stop) and the
 * HTTP thread (which wants the text) each run one of their own.
 */
#ifndef HAWKD_TEXT_H
#define HAWKD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "tok/tok.h"

#define TEXT_STOPS_MAX	4u
#define TEXT_STOP_BYTES 256u /* longest stop string, bytes */

struct text_stops {
	unsigned int n;
	size_t len[TEXT_STOPS_MAX];
	char s[TEXT_STOPS_MAX][TEXT_STOP_BYTES];
};

/**
 * struct text - state of one sequence's text
 * @held: bytes not emitted yet, @n_held of them
 * @room: size of @held
 * @stopped: a stop string was found; nothing more comes
 */
struct text {
	const struct tok *tok;
	const struct text_stops *stops;
	struct tok_stream stream;
	char *held;
	size_t n_held;
	size_t room;
	bool stopped;
};

/**
 * text_init() - start a text
 * @stops: must outlive @t
 * @at_start: see tok_stream_init()
 * Return: 0 or -ENOMEM.
 */
int text_init(struct text *t, const struct tok *tok, const struct text_stops *stops, bool at_start);

void text_free(struct text *t);

/** text_push_max() - bytes that text_push() or text_flush() can emit at most */
size_t text_push_max(const struct text *t);

/**
 * text_push() - add a token
 * @out: room for text_push_max() bytes
 * Return: bytes written to @out.
 */
size_t text_push(struct text *t, int32_t token, char *out);

/** text_flush() - no more tokens: emit what was held back */
size_t text_flush(struct text *t, char *out);

#endif
