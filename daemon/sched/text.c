// SPDX-License-Identifier: MIT
/* text.c - see text.h */
#include "sched/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int text_init(struct text *t, const struct tok *tok, const struct text_stops *stops, bool at_start)
{
	memset(t, 0, sizeof(*t));
	t->tok = tok;
	t->stops = stops;
	t->room = tok_stream_max(tok) + TEXT_STOP_BYTES;
	t->held = malloc(t->room);
	if (!t->held)
		return -ENOMEM;
	tok_stream_init(tok, &t->stream, at_start);
	return 0;
}

void text_free(struct text *t)
{
	free(t->held);
	t->held = NULL;
}

size_t text_push_max(const struct text *t)
{
	return t->room;
}

/* First position where a whole stop string stands, or n_held. */
static size_t text_find_stop(const struct text *t)
{
	size_t best = t->n_held;
	unsigned int i;

	for (i = 0; i < t->stops->n; i++) {
		const char *p = memmem(
			t->held,
			best + t->stops->len[i] < t->n_held ? best + t->stops->len[i] : t->n_held,
			t->stops->s[i], t->stops->len[i]);

		if (p && (size_t)(p - t->held) < best)
			best = p - t->held;
	}
	return best;
}

/* Bytes at the end that could be the start of a stop string. */
static size_t text_tail(const struct text *t)
{
	size_t best = 0;
	unsigned int i;

	for (i = 0; i < t->stops->n; i++) {
		size_t n = t->stops->len[i] - 1;

		if (n > t->n_held)
			n = t->n_held;
		for (; n > best; n--)
			if (!memcmp(t->held + t->n_held - n, t->stops->s[i], n))
				best = n;
	}
	return best;
}

static size_t text_emit(struct text *t, size_t n, char *out)
{
	memcpy(out, t->held, n);
	memmove(t->held, t->held + n, t->n_held - n);
	t->n_held -= n;
	return n;
}

static size_t text_step(struct text *t, char *out)
{
	size_t stop = text_find_stop(t);

	if (stop < t->n_held) {
		t->stopped = true;
		stop = text_emit(t, stop, out);
		t->n_held = 0;
		return stop;
	}
	return text_emit(t, t->n_held - text_tail(t), out);
}

/* At most TEXT_STOP_BYTES - 1 bytes are held between calls, so there is room. */
size_t text_push(struct text *t, int32_t token, char *out)
{
	if (t->stopped)
		return 0;
	t->n_held += tok_stream_push(t->tok, &t->stream, token, false, t->held + t->n_held);
	return text_step(t, out);
}

size_t text_flush(struct text *t, char *out)
{
	size_t n;

	if (t->stopped)
		return 0;
	t->n_held += tok_stream_flush(t->tok, &t->stream, t->held + t->n_held);
	n = text_step(t, out);
	if (!t->stopped)
		n += text_emit(t, t->n_held, out + n);
	return n;
}
