// SPDX-License-Identifier: MIT
/* Text to ids: control tokens, BOS and EOS around the plain encoders. */
#include "tok/tok_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tok_out_add(struct tok_out *out, int32_t id)
{
	size_t cap;
	int32_t *ids;

	if (out->n == out->cap) {
		cap = out->cap ? out->cap * 2 : 64;
		ids = realloc(out->ids, cap * sizeof(*ids));
		if (!ids)
			return -ENOMEM;
		out->ids = ids;
		out->cap = cap;
	}
	out->ids[out->n++] = id;
	return 0;
}

static int encode_plain(const struct tok *t, struct tok_work *w, const char *text, size_t len,
			bool after_special)
{
	if (t->model == TOK_SPM)
		return spm_encode(t, w, text, len, t->add_space_prefix && after_special);
	return bpe_encode(t, w, text, len);
}

/* The longest special token that @text begins with, or -1. */
static int32_t special_at(const struct tok *t, const char *text, size_t len)
{
	uint32_t i, id;

	for (i = 0; i < t->n_special_len; i++) {
		if (t->special_len[i] > len)
			continue;
		id = strmap_get(&t->map, (struct gguf_str){ text, t->special_len[i] });
		if (id != STRMAP_NONE && (t->type[id] == TOK_CONTROL || t->type[id] == TOK_USER))
			return id;
	}
	return -1;
}

static int encode_special(const struct tok *t, struct tok_work *w, const char *text, size_t len)
{
	bool after_special = true;
	size_t begin = 0, i = 0;
	int32_t id;
	int ret;

	while (i < len) {
		id = special_at(t, text + i, len - i);
		if (id < 0) {
			i++;
			continue;
		}
		ret = encode_plain(t, w, text + begin, i - begin, after_special);
		if (!ret)
			ret = tok_out_add(&w->out, id);
		if (ret)
			return ret;
		after_special = true;
		i += t->piece[id].len;
		begin = i;
	}
	return encode_plain(t, w, text + begin, len - begin, after_special);
}

static int encode_all(const struct tok *t, struct tok_work *w, const char *text, size_t len,
		      unsigned int flags)
{
	int ret = 0;

	if ((flags & TOK_ADD_SPECIAL) && t->add_bos && t->bos >= 0)
		ret = tok_out_add(&w->out, t->bos);
	if (!ret && (flags & TOK_PARSE_SPECIAL))
		ret = encode_special(t, w, text, len);
	else if (!ret)
		ret = encode_plain(t, w, text, len, true);
	if (!ret && (flags & TOK_ADD_SPECIAL) && t->add_eos && t->eos >= 0)
		ret = tok_out_add(&w->out, t->eos);
	return ret;
}

int tok_encode(const struct tok *t, const char *text, size_t len, unsigned int flags, int32_t **ids,
	       size_t *n)
{
	struct merge_state merge = { 0 };
	struct tok_work w = { .merge = &merge };
	int ret = 0;

	if (flags & ~(TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL))
		return -EINVAL;
	if (len > TOK_MAX_TEXT)
		return -E2BIG;
	if (t->model == TOK_BPE)
		w.match = pcre2_match_data_create(1, NULL);
	w.out.ids = malloc(64 * sizeof(*w.out.ids));
	w.out.cap = 64;
	if (!w.out.ids || (t->model == TOK_BPE && !w.match))
		ret = -ENOMEM;
	if (!ret)
		ret = encode_all(t, &w, text, len, flags);
	pcre2_match_data_free(w.match);
	free(merge.sym);
	free(merge.heap);
	if (ret) {
		free(w.out.ids);
		return ret;
	}
	*ids = w.out.ids;
	*n = w.out.n;
	return 0;
}
