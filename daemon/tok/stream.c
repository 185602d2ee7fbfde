// SPDX-License-Identifier: MIT
/* Ids to text, one token at a time, whole UTF-8 characters only. */
#include "tok/tok_priv.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Where the text of one push goes. */
struct sink {
	char *out;
	size_t n;
};

void tok_stream_init(const struct tok *t, struct tok_stream *s, bool at_start)
{
	*s = (struct tok_stream){
		.strip_space = at_start && t->model == TOK_SPM && t->add_space_prefix,
	};
}

size_t tok_stream_max(const struct tok *t)
{
	/* every byte may become U+FFFD, and so may what was held back */
	return 3 * t->max_piece + 3 + 1;
}

static void emit(struct tok_stream *s, struct sink *o, const void *p, size_t n)
{
	if (s->strip_space) {
		s->strip_space = false;
		if (n == 1 && *(const char *)p == ' ')
			return;
	}
	memcpy(o->out + o->n, p, n);
	o->n += n;
}

/* May @b follow the @n bytes of the unfinished character @h? (RFC 3629) */
static bool continues(const uint8_t *h, uint8_t n, uint8_t b)
{
	uint8_t lo = 0x80, hi = 0xbf;

	if (n == 1) {
		if (h[0] == 0xe0)
			lo = 0xa0;
		if (h[0] == 0xed)
			hi = 0x9f;
		if (h[0] == 0xf0)
			lo = 0x90;
		if (h[0] == 0xf4)
			hi = 0x8f;
	}
	return b >= lo && b <= hi;
}

static void put_byte(struct tok_stream *s, struct sink *o, uint8_t b)
{
	if (s->n_held && !continues(s->held, s->n_held, b)) {
		emit(s, o, REPLACEMENT, 3);
		s->n_held = 0;
	}
	if (s->n_held) {
		s->held[s->n_held++] = b;
		if (s->n_held == utf8_len(s->held[0])) {
			emit(s, o, s->held, s->n_held);
			s->n_held = 0;
		}
	} else if (b < 0x80) {
		emit(s, o, &b, 1);
	} else if (b >= 0xc2 && b <= 0xf4) {
		s->held[s->n_held++] = b;
	} else {
		emit(s, o, REPLACEMENT, 3);
	}
}

static void put_bytes(struct tok_stream *s, struct sink *o, const char *p, size_t n)
{
	while (n--)
		put_byte(s, o, (uint8_t)*p++);
}

/* U+2581 back to spaces. */
static void put_spm(struct tok_stream *s, struct sink *o, struct gguf_str p)
{
	size_t i = 0;

	while (i < p.len) {
		if (p.len - i >= 3 && !memcmp(p.p + i, "\xe2\x96\x81", 3)) {
			put_byte(s, o, ' ');
			i += 3;
		} else {
			put_byte(s, o, (uint8_t)p.p[i++]);
		}
	}
}

/* Byte-level characters back to bytes; others are kept. */
static void put_bpe(const struct tok *t, struct tok_stream *s, struct sink *o, struct gguf_str p)
{
	unsigned int cp;
	size_t i, n;

	for (i = 0; i < p.len; i += n) {
		n = utf8_len((uint8_t)p.p[i]);
		if (n > p.len - i)
			n = p.len - i;
		cp = (uint8_t)p.p[i];
		if (n == 2)
			cp = (cp & 0x1f) << 6 | (p.p[i + 1] & 0x3f);
		if (n <= 2 && cp < 512 && t->cp_byte[cp] >= 0)
			put_byte(s, o, t->cp_byte[cp]);
		else
			put_bytes(s, o, p.p + i, n);
	}
}

/* "<0x0A>" to its byte, checked when the vocabulary was read. */
static uint8_t byte_value(struct gguf_str p)
{
	const char *hex = "0123456789ABCDEF";

	return (strchr(hex, p.p[3]) - hex) << 4 | (strchr(hex, p.p[4]) - hex);
}

size_t tok_stream_push(const struct tok *t, struct tok_stream *s, int32_t id, bool special,
		       char *out)
{
	struct sink o = { out, 0 };

	if (id >= 0 && (uint32_t)id < t->n_vocab) {
		struct gguf_str p = t->piece[id];

		switch (t->type[id]) {
		case TOK_UNKNOWN: put_bytes(s, &o, REPLACEMENT, p.len ? 3 : 0); break;
		case TOK_CONTROL:
			if (special)
				put_bytes(s, &o, p.p, p.len);
			break;
		case TOK_USER: put_bytes(s, &o, p.p, p.len); break;
		case TOK_BYTE: put_byte(s, &o, byte_value(p)); break;
		default:
			if (t->model == TOK_SPM)
				put_spm(s, &o, p);
			else
				put_bpe(t, s, &o, p);
		}
	}
	out[o.n] = '\0';
	return o.n;
}

size_t tok_stream_flush(const struct tok *t, struct tok_stream *s, char *out)
{
	struct sink o = { out, 0 };

	(void)t;
	if (s->n_held)
		emit(s, &o, REPLACEMENT, 3);
	s->n_held = 0;
	out[o.n] = '\0';
	return o.n;
}
