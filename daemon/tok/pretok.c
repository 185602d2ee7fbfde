// SPDX-License-Identifier: MIT
/*
 * Cut text into words before BPE, with the patterns that each family of models
 * was trained with. Several patterns apply one after the other, each inside
 * the words left by the one before; what a pattern does not match is a word of
 * its own. Bytes that are not UTF-8 match nothing.
 */
#include "tok/tok_priv.h"

#include <errno.h>

/* White_Space of Unicode; \s of PCRE2 also takes U+180E. */
#define SPACE                                                \
	"\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}" \
	"\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define SPACES "[" SPACE "]+(?![^" SPACE "])"

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define GPT2_WORDS   CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE "\\p{L}\\p{N}]+|" SPACES
/* Llama 3 and Qwen 2 differ in how many digits make a word. */
#define LLAMA3_WORDS(digits)                                                        \
	"(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" SPACE \
	"\\p{L}\\p{N}]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|" SPACES "|[" SPACE "]+"

static const struct {
	const char *name; /* tokenizer.ggml.pre */
	bool whole_words;
	const char *pattern[TOK_MAX_PATTERNS];
} pretok_table[] = {
	{ "default", false, { "[\\p{P}$+<=>^~|]+", GPT2_WORDS, "\\p{N}+", "[0-9][0-9][0-9]" } },
	{ "gpt-2", false, { GPT2_WORDS } },
	{ "llama-bpe", true, { LLAMA3_WORDS("\\p{N}{1,3}") } },
	{ "llama3", true, { LLAMA3_WORDS("\\p{N}{1,3}") } },
	{ "qwen2", false, { LLAMA3_WORDS("\\p{N}") } },
};

int pretok_init(struct tok *t, struct gguf_str pre, char err[GGUF_ERR_LEN])
{
	const char *const *pattern;
	PCRE2_SIZE at;
	size_t i;
	int code;

	for (i = 0; i < sizeof(pretok_table) / sizeof(pretok_table[0]); i++)
		if (gguf_str_eq(pre, pretok_table[i].name))
			break;
	if (i == sizeof(pretok_table) / sizeof(pretok_table[0]))
		return gguf_fail(
			err, -EOPNOTSUPP,
			"the model cuts words as '%s' (tokenizer.ggml.pre): Hawk knows default, gpt-2, llama-bpe and qwen2",
			gguf_printable(pre).s);
	t->whole_words = pretok_table[i].whole_words;
	pattern = pretok_table[i].pattern;
	for (i = 0; i < TOK_MAX_PATTERNS && pattern[i]; i++) {
		t->pattern[i] = pcre2_compile((PCRE2_SPTR)pattern[i], PCRE2_ZERO_TERMINATED,
					      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF,
					      &code, &at, NULL);
		if (!t->pattern[i])
			return gguf_fail(err, -ENOMEM,
					 "cannot compile the word pattern: pcre2 error %d at %zu",
					 code, (size_t)at);
		t->n_patterns++;
		/* Optional: without JIT the interpreter gives the same. */
		pcre2_jit_compile(t->pattern[i], PCRE2_JIT_COMPLETE);
	}
	return 0;
}

static int split_with(const struct tok *t, uint32_t stage, pcre2_match_data *match,
		      const char *text, size_t len,
		      int (*fn)(void *arg, const char *word, size_t len), void *arg)
{
	size_t pos = 0, word, end;
	int ret = 0, rc;

	if (!len)
		return 0;
	if (stage == t->n_patterns)
		return fn(arg, text, len);
	while (pos < len && !ret) {
		rc = pcre2_match(t->pattern[stage], (PCRE2_SPTR)text, len, pos, 0, match, NULL);
		word = end = len;
		if (rc > 0) {
			word = pcre2_get_ovector_pointer(match)[0];
			end = pcre2_get_ovector_pointer(match)[1];
		} else if (rc != PCRE2_ERROR_NOMATCH) {
			return rc == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -EINVAL;
		}
		ret = split_with(t, stage + 1, match, text + pos, word - pos, fn, arg);
		if (!ret)
			ret = split_with(t, stage + 1, match, text + word, end - word, fn, arg);
		pos = end;
	}
	return ret;
}

int pretok_split(const struct tok *t, pcre2_match_data *match, const char *text, size_t len,
		 int (*fn)(void *arg, const char *word, size_t len), void *arg)
{
	return split_with(t, 0, match, text, len, fn, arg);
}
