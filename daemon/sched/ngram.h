/* SPDX-License-Identifier: MIT */
/*
 * ngram.h - drafts by prompt lookup: what came after the same tokens before
 *
 * The last tokens of a history are looked for earlier in it, and what followed
 * them there is the draft.  There is no draft model: text that quotes, repeats or
 * edits its prompt is drafted well, other text hardly ever.
 *
 * A table maps the hash of each run of @n tokens to where the latest one ends; what
 * it says is compared with the history, so a collision costs a draft and nothing
 * else.  Work is O(1) for each token of the history, once.
 */
#ifndef HAWKD_NGRAM_H
#define HAWKD_NGRAM_H

#include <stdint.h>

#define NGRAM_MAX 8u /* tokens that are looked for */

/**
 * struct ngram - what is known of a history
 * @n: tokens that are looked for, 1..NGRAM_MAX
 * @mask: entries of @last - 1
 * @done: runs that end before this index are in @last
 * @last: index of the token behind the latest run with a hash, 0: none
 */
struct ngram {
	uint32_t n;
	uint32_t mask;
	uint32_t done;
	uint32_t *last;
};

/**
 * ngram_init() - start with an empty history
 * @n: tokens to look for
 * @n_total: tokens that the history will have at most
 * Return: 0 or -ENOMEM.
 */
int ngram_init(struct ngram *g, uint32_t n, uint32_t n_total);

void ngram_free(struct ngram *g);

/**
 * ngram_learn() - take in a history, so that ngram_draft() need not
 * @hist: its tokens, @n_hist of them; those of earlier calls are unchanged
 */
void ngram_learn(struct ngram *g, const int32_t *hist, uint32_t n_hist);

/**
 * ngram_draft() - guess how a history goes on
 * @hist: its tokens, @n_hist of them; those of earlier calls are unchanged
 * @out: the guess, at most @max tokens. A guess that reaches the end of the history
 *	goes on with itself: a loop is drafted as a loop
 *
 * Allocates nothing.
 * Return: tokens guessed, 0 or @max.
 */
uint32_t ngram_draft(struct ngram *g, const int32_t *hist, uint32_t n_hist, int32_t *out,
		     uint32_t max);

#endif
