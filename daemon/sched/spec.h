/* SPDX-License-Identifier: MIT */
/*
 * spec.h - speculative decoding by prompt lookup, over a draft ring
 *
 * A round: guess how the sequence goes on (ngram.h), compute the pending token and
 * the guess in one step, choose tokens from the logits as ever, and keep the rows
 * up to the first choice that was not the guess.
 *
 *	rows      t       g1      g2      g3	pending token, three guessed
 *	chosen    g1      g2      x		x is not g3: it is the next pending
 *	kept      t       g1      g2		token, and KV of g3 is dropped
 *
 * KV of the rows goes to the ring, which the executor reads as the last segment
 * (exec.h: bits do not depend on where tokens lie); what is kept is copied to the
 * sequence's blocks, what is dropped costs nothing.
 *
 * Exactness.  Algorithm 2 of speculative decoding accepts a guess x with probability
 * min(1, p(x)/q(x)) and otherwise draws from (p - q)+, normalised.  A guess by
 * look-up has q(x) = 1: accept with p(x), else draw from p without x.  To draw y from
 * p and to accept if y is x is the same: the event has probability p(x), and given
 * that it does not happen y has the distribution p without x.  So the plain sampler
 * decides, with the random number that it would have used without a guess: what
 * is generated is the same token for token, also sampled and whatever the gate does.
 */
#ifndef HAWKD_SPEC_H
#define HAWKD_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/exec.h"
#include "exec/sample.h"
#include "kv/kv.h"
#include "sched/ngram.h"

#define SPEC_TOKENS_MAX	   16u /* tokens guessed in a round */
#define SPEC_ROWS	   64u /* tokens guessed in a step, by all sequences */
#define SPEC_NGRAM_DEFAULT 3u

/**
 * struct spec_params - what a request asks for
 * @tokens: guessed in a round at most, 0: no speculation; up to SPEC_TOKENS_MAX
 * @ngram: tokens that are looked for, 1..NGRAM_MAX
 * @gate: only as long as it is a gain
 */
struct spec_params {
	uint32_t tokens;
	uint32_t ngram;
	bool gate;
};

/**
 * struct spec - speculation of one sequence
 * @p: what was asked for
 * @ring: the ring, NULL: there is no speculation
 * @ngram: what is known of the history
 * @row: the ring's blocks, twice, so that a run of slots may go round
 * @seg: what the rows of a round see
 * @n_segs: of @seg in this round
 * @guess: of this round
 * @n: tokens of @guess, 0: no round
 */
struct spec {
	struct spec_params p;
	struct hawk_drafts *ring;
	struct ngram ngram;
	void **row;
	struct exec_seg *seg;
	uint32_t n_segs;
	int32_t guess[SPEC_TOKENS_MAX];
	uint32_t n;
};

/**
 * spec_open() - get what a sequence needs for speculation
 * @p: what was asked for; nothing is done if @p->tokens is 0
 * @s: the sequence, open
 * @n_total: tokens of its history at most
 *
 * Return: 0 or a negative errno; there is no speculation then.
 */
int spec_open(struct spec *sp, const struct spec_params *p, struct kv *kv, const struct kv_seq *s,
	      uint32_t n_total);

/** spec_close() - give it back; the device is still open */
void spec_close(struct spec *sp);

/**
 * spec_begin() - begin a round
 * @s: the sequence, its view is that of token @pos and all to come
 * @tokens: its history, @pos + 1 tokens
 * @pos: index of the pending token
 * @max: tokens to guess at most
 *
 * Allocates nothing. The rows are those of tokens @pos to @pos + @sp->n; they see
 * @sp->seg.
 * Return: tokens guessed, 0: there is no round.
 */
uint32_t spec_begin(struct spec *sp, const struct kv_seq *s, const int32_t *tokens, uint32_t pos,
		    uint32_t max);

/**
 * spec_choose() - choose the next token where @guess was guessed
 * @accepted: out, the guess is what was chosen
 * Return: the token.
 */
int32_t spec_choose(struct sampler *sampler, const float *logits, int32_t guess, bool *accepted);

/**
 * spec_end() - end a round
 * @pos: index of its first token
 * @keep: rows whose KV stays, 1..@sp->n + 1
 *
 * Stores only.
 */
void spec_end(struct spec *sp, const struct kv_seq *s, uint32_t pos, uint32_t keep);

#endif
