// SPDX-License-Identifier: MIT
/*
 * Byte-level BPE: a word's bytes are the first symbols; the pair whose merge
 * rule comes first in the file is joined first. The vocabulary spells bytes
 * as printable characters: those of Latin-1 that print stand for themselves,
 * the other 68 for U+0100 onwards.
 */
#include "tok/tok_priv.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static bool byte_prints(unsigned int b)
{
	return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
}

/* Fill byte -> token and character -> byte. */
static int bpe_init_bytes(struct tok *t, char *err)
{
	unsigned int b, cp, extra = 0;
	size_t len;
	char s[2];

	memset(t->cp_byte, -1, sizeof(t->cp_byte));
	for (b = 0; b < 256; b++) {
		cp = byte_prints(b) ? b : 256 + extra++;
		t->cp_byte[cp] = b;
		len = cp < 0x80 ? 1 : 2;
		s[0] = len == 1 ? cp : 0xc0 | cp >> 6;
		s[1] = 0x80 | (cp & 0x3f);
		t->byte_id[b] = tok_text_id(t, s, len);
		if (t->byte_id[b] < 0)
			return gguf_fail(
				err, -EINVAL,
				"the vocabulary has no token for byte 0x%02x: it is not a byte-level BPE vocabulary",
				b);
	}
	return 0;
}

static struct tok_rule *rule_slot(const struct tok *t, uint64_t pair)
{
	uint64_t h = pair ^ t->rule_seed;
	size_t i;

	/* mix every input bit into the low ones */
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
	h ^= h >> 32;
	for (i = h & t->rule_mask; t->rules[i].pair != TOK_NO_PAIR; i = (i + 1) & t->rule_mask)
		if (t->rules[i].pair == pair)
			break;
	return &t->rules[i];
}

static uint64_t rule_pair(int32_t left, int32_t right)
{
	return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* One line of the merge list: "left right". */
static int bpe_add_rule(struct tok *t, struct gguf_str line, uint32_t rank, char *buf, char *err)
{
	const char *sp = line.len > 2 ? memchr(line.p + 1, ' ', line.len - 2) : NULL;
	int32_t left = -1, right = -1, id = -1;
	struct tok_rule *rule;
	size_t n;

	if (sp && line.len - 1 <= t->max_piece) {
		n = sp - line.p;
		left = tok_text_id(t, line.p, n);
		right = tok_text_id(t, sp + 1, line.len - n - 1);
		memcpy(buf, line.p, n);
		memcpy(buf + n, sp + 1, line.len - n - 1);
		id = tok_text_id(t, buf, line.len - 1);
	}
	if (left < 0 || right < 0 || id < 0)
		return gguf_fail(
			err, -EINVAL,
			"merge rule %u '%s' names pieces the vocabulary lacks: the file is corrupt",
			rank, gguf_printable(line).s);
	rule = rule_slot(t, rule_pair(left, right));
	if (rule->pair == TOK_NO_PAIR)
		*rule = (struct tok_rule){ rule_pair(left, right), rank, id };
	return 0;
}

static int bpe_init_rules(struct tok *t, const struct gguf *g, char *err)
{
	struct gguf_arr merges;
	const uint8_t *pos;
	size_t slots = 16, i;
	char *buf;
	int ret = 0;

	if (gguf_get_arr(g, "tokenizer.ggml.merges", &merges) || merges.type != GGUF_STR)
		return gguf_fail(
			err, -EINVAL,
			"the model file lacks the list 'tokenizer.ggml.merges': convert the model again");
	while (slots < merges.n * 2)
		slots *= 2;
	t->rules = malloc(slots * sizeof(*t->rules));
	buf = malloc(t->max_piece + 1);
	if (!t->rules || !buf) {
		free(buf);
		return gguf_fail(err, -ENOMEM, "no memory for the tokenizer");
	}
	t->rule_mask = slots - 1;
	for (i = 0; i < slots; i++)
		t->rules[i].pair = TOK_NO_PAIR;
	randombytes_buf(&t->rule_seed, sizeof(t->rule_seed));
	pos = merges.p;
	for (i = 0; i < merges.n && !ret; i++)
		ret = bpe_add_rule(t, gguf_arr_next_str(&pos), i, buf, err);
	free(buf);
	return ret;
}

int bpe_init(struct tok *t, const struct gguf *g, char err[GGUF_ERR_LEN])
{
	struct gguf_str pre = { "default", 7 };
	int ret;

	gguf_get_str(g, "tokenizer.ggml.pre", &pre);
	ret = pretok_init(t, pre, err);
	if (!ret)
		ret = bpe_init_bytes(t, err);
	if (!ret)
		ret = bpe_init_rules(t, g, err);
	return ret;
}

static int32_t bpe_join(const struct tok *t, const char *text, const struct merge_sym *left,
			const struct merge_sym *right, uint32_t *prio)
{
	const struct tok_rule *r = rule_slot(t, rule_pair(left->id, right->id));

	(void)text;
	if (r->pair == TOK_NO_PAIR)
		return -1;
	*prio = r->rank;
	return r->id;
}

/* The token that spells the whole word, or -1. */
static int32_t bpe_whole_word(const struct tok *t, const char *word, size_t len)
{
	char spelled[128] = { 0 };
	struct gguf_str p;
	size_t i, n = 0;

	if (len * 2 > sizeof(spelled))
		return -1;
	for (i = 0; i < len; i++) {
		p = t->piece[t->byte_id[(uint8_t)word[i]]];
		memcpy(spelled + n, p.p, p.len);
		n += p.len;
	}
	return tok_text_id(t, spelled, n);
}

struct bpe_call {
	const struct tok *t;
	struct tok_work *w;
};

static int bpe_word(void *arg, const char *word, size_t len)
{
	struct bpe_call *call = arg;
	const struct tok *t = call->t;
	struct merge_state *m = call->w->merge;
	int32_t id, s;
	size_t i;
	int ret = 0;

	if (t->whole_words) {
		id = bpe_whole_word(t, word, len);
		if (id >= 0)
			return tok_out_add(&call->w->out, id);
	}
	m->n_sym = 0;
	for (i = 0; i < len && !ret; i++)
		ret = merge_add(m, i, 1, t->byte_id[(uint8_t)word[i]]);
	if (!ret)
		ret = merge_run(m, t, word, bpe_join);
	for (s = 0; s >= 0 && !ret; s = m->sym[s].next)
		ret = tok_out_add(&call->w->out, m->sym[s].id);
	return ret;
}

int bpe_encode(const struct tok *t, struct tok_work *w, const char *text, size_t len)
{
	struct bpe_call call = { t, w };

	return pretok_split(t, w->match, text, len, bpe_word, &call);
}
