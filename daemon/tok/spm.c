// SPDX-License-Identifier: MIT
/*
 * SentencePiece-style encoding: spaces become U+2581, the text is cut into
 * characters, and the neighbours whose joined piece scores highest are joined
 * first. A character without a token becomes one byte token per byte.
 */
#include "tok/tok_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPM_SPACE "\xe2\x96\x81" /* U+2581 */

/* Order-preserving map of a float to unsigned, reversed: best score first. */
static uint32_t score_prio(float score)
{
	uint32_t u;

	memcpy(&u, &score, sizeof(u));
	u = u >> 31 ? ~u : u | 0x80000000u;
	return ~u;
}

static int32_t spm_join(const struct tok *t, const char *text, const struct merge_sym *left,
			const struct merge_sym *right, uint32_t *prio)
{
	int32_t id = tok_text_id(t, text + left->start, left->len + right->len);

	if (id >= 0)
		*prio = score_prio(t->score[id]);
	return id;
}

/* Escaped copy of the text; *n gets its length. */
static char *spm_escape(const char *text, size_t len, bool space_prefix, size_t *n)
{
	size_t i, o = 0, spaces = space_prefix;
	char *buf;

	for (i = 0; i < len; i++)
		spaces += text[i] == ' ';
	buf = malloc(len + 3 * spaces + 1);
	if (!buf)
		return NULL;
	if (space_prefix) {
		memcpy(buf, SPM_SPACE, 3);
		o = 3;
	}
	for (i = 0; i < len; i++) {
		if (text[i] == ' ') {
			memcpy(buf + o, SPM_SPACE, 3);
			o += 3;
		} else {
			buf[o++] = text[i];
		}
	}
	*n = o;
	return buf;
}

static int spm_emit(const struct tok *t, struct tok_out *out, const char *text,
		    const struct merge_sym *s)
{
	uint32_t i;
	int ret = 0;

	if (s->id >= 0)
		return tok_out_add(out, s->id);
	for (i = 0; i < s->len && !ret; i++)
		ret = tok_out_add(out, t->byte_id[(uint8_t)text[s->start + i]]);
	return ret;
}

int spm_encode(const struct tok *t, struct tok_work *w, const char *text, size_t len,
	       bool space_prefix)
{
	struct merge_state *m = w->merge;
	size_t n, i, c;
	char *buf;
	int32_t s;
	int ret = 0;

	if (!len)
		return 0;
	buf = spm_escape(text, len, space_prefix, &n);
	if (!buf)
		return -ENOMEM;
	m->n_sym = 0;
	for (i = 0; i < n && !ret; i += c) {
		c = utf8_len((uint8_t)buf[i]);
		if (c > n - i)
			c = n - i;
		ret = merge_add(m, i, c, tok_text_id(t, buf + i, c));
	}
	if (!ret)
		ret = merge_run(m, t, buf, spm_join);
	for (s = 0; s >= 0 && !ret; s = m->sym[s].next)
		ret = spm_emit(t, &w->out, buf, &m->sym[s]);
	free(buf);
	return ret;
}
