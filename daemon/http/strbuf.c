// SPDX-License-Identifier: MIT
/* strbuf.c - see strbuf.h */
#include "http/strbuf.h"

#include <stdlib.h>
#include <string.h>

char *strbuf_reserve(struct strbuf *b, size_t n)
{
	size_t room = b->room ? b->room : 256;
	char *s;

	if (b->failed)
		return NULL;
	if (b->s && n <= b->room - b->n)
		return b->s + b->n;
	while (room - b->n < n)
		room *= 2;
	s = realloc(b->s, room);
	if (!s) {
		b->failed = true;
		return NULL;
	}
	b->s = s;
	b->room = room;
	return b->s + b->n;
}

void strbuf_add(struct strbuf *b, const char *s, size_t n)
{
	char *to = strbuf_reserve(b, n);

	if (!to)
		return;
	memcpy(to, s, n);
	b->n += n;
}

void strbuf_adds(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_free(struct strbuf *b)
{
	free(b->s);
	memset(b, 0, sizeof(*b));
}
