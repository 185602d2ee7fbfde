/* SPDX-License-Identifier: MIT */
/*
 * hist.h - the history of a sequence: its tokens and the operations on its cache
 *
 * Tokens have an index in the order they came and keep it.  An operation drops the
 * tokens [start, end) from the cache: those from index @at on do not see them any
 * more.  Tokens before @at have been computed with them, and stay as they are.
 * With @repos the gap is closed: tokens behind it are read as if they stood
 * end - start positions earlier, and new ones are put right behind them.
 *
 *	index    0 ..... start ..... end ..... at .....
 *	         kept    dropped     kept      new
 *	shift    0                   end-start 0
 *
 * @at is exact, it is not rounded to a block: the key of a block carries the
 * operations with @at before the end of the block.  So blocks that were full at
 * @at are shared with sequences that dropped nothing, and the block that holds
 * @at, like all after it, only with those that dropped the same at the same place.
 *
 * What a token sees follows from the operations alone (not from the order in which
 * they were asked for, nor from what was cached), so it is computed, not stored.
 *
 * All functions are pure and take operations in the order of hist_sort().
 */
#ifndef HAWKD_HIST_H
#define HAWKD_HIST_H

#include <hawk/hawk.h>
#include <stdbool.h>
#include <stdint.h>

#define HIST_OPS_MAX 128u /* operations of a sequence */
#define HIST_ERR_LEN 256

/**
 * struct hist_op - tokens that are dropped
 * @at: index of the first token that does not see them
 * @start: first token dropped
 * @end: the token behind the last one, <= @at
 * @repos: the gap is closed
 */
struct hist_op {
	uint32_t at;
	uint32_t start;
	uint32_t end;
	bool repos;
};

/**
 * struct hist_seg - a run of tokens that are seen
 * @first: index of its first token
 * @len: tokens
 * @shift: positions that their keys are moved back by when they are read
 */
struct hist_seg {
	uint32_t first;
	uint32_t len;
	int32_t shift;
};

/* Segments of a history with @n operations at most. */
#define HIST_SEGS(n) (3u * (n) + 1)

/** hist_sort() - the order of all other functions: by @at, then by @start */
void hist_sort(struct hist_op *ops, uint32_t n);

/**
 * hist_check() - can these tokens be dropped?
 * @n_prompt: tokens of the prompt
 * @err: on failure, the cause in words
 *
 * Spans are not empty, do not overlap and end at or before their @at; the last
 * token of the prompt is computed after all operations; something is left to see.
 * Return: 0 or -EINVAL.
 */
int hist_check(const struct hist_op *ops, uint32_t n, uint32_t n_prompt, char err[HIST_ERR_LEN]);

/** hist_in_effect() - operations that token @i knows of: the first so many */
uint32_t hist_in_effect(const struct hist_op *ops, uint32_t n, uint32_t i);

/** hist_dropped() - tokens that the first @n operations drop */
uint32_t hist_dropped(const struct hist_op *ops, uint32_t n);

/** hist_moved() - positions that tokens computed after the first @n operations move back */
uint32_t hist_moved(const struct hist_op *ops, uint32_t n);

/** hist_hides() - have the first @n operations dropped all of tokens [@first, @first + @len)? */
bool hist_hides(const struct hist_op *ops, uint32_t n, uint32_t first, uint32_t len);

/**
 * hist_segs() - what a token computed after the first @n operations sees
 * @end: the token behind the last one
 * @seg: out, room for HIST_SEGS(@n)
 *
 * Neighbours that could be one are one. Return: segments.
 */
uint32_t hist_segs(const struct hist_op *ops, uint32_t n, uint32_t end, struct hist_seg *seg);

/** hist_shifted() - tokens before @end whose keys are read shifted after all operations */
uint32_t hist_shifted(const struct hist_op *ops, uint32_t n, uint32_t end);

/** hist_positions() - positions that the tokens of a sequence of @n_total take, the highest + 1 */
uint32_t hist_positions(const struct hist_op *ops, uint32_t n, uint32_t n_total);

/**
 * hist_key_ops() - the operations as keys have them
 * @out: room for 2 * @n
 *
 * Return: how many.
 */
uint32_t hist_key_ops(const struct hist_op *ops, uint32_t n, struct hawk_key_op *out);

#endif
