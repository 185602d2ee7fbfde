/* SPDX-License-Identifier: MIT */
/* strbuf.h - a growing byte buffer; after a failed allocation it stays failed */
#ifndef HAWKD_STRBUF_H
#define HAWKD_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
	char *s;
	size_t n;
	size_t room;
	bool failed;
};

/** strbuf_reserve() - room for @n more bytes; NULL when out of memory */
char *strbuf_reserve(struct strbuf *b, size_t n);

/** strbuf_add() - append bytes */
void strbuf_add(struct strbuf *b, const char *s, size_t n);

/** strbuf_adds() - append a C string */
void strbuf_adds(struct strbuf *b, const char *s);

void strbuf_free(struct strbuf *b);

#endif
