/* SPDX-License-Identifier: MIT */
/*
 * sparse.h - which blocks a sparse row reads (inside the executor).
 *
 * A candidate is a block as one segment passes through it. Read are, for each
 * row, layer and KV head by themselves: the candidates with a token among the
 * sinks or in the window, those without a centroid, and of the rest the r with
 * the highest score, ties going to the earlier one. The score of a candidate is
 * the greatest q . centroid of the query heads that share the KV head; it is
 * not summed over heads, rows or layers.
 */
#ifndef HAWK_SPARSE_H
#define HAWK_SPARSE_H

#include <stddef.h>
#include <stdint.h>

struct exec;
struct exec_row;
struct exec_scratch;

/**
 * sparse_top() - the @r best of @n scores
 * @score: scores; INFINITY: not to be counted
 * @best: room for @r indices, in no order
 *
 * Return: how many there are.
 */
uint32_t sparse_top(const float *score, uint32_t n, uint32_t r, uint32_t *best);

/**
 * sparse_query() - make the queries of a KV head ready for centroid_score()
 * @s: s->q holds them; the result goes to s->qs
 * @shift: of the segment: turning the query forward is turning the keys back
 */
void sparse_query(const struct exec *e, uint32_t layer, uint32_t kv_head, int32_t shift,
		  struct exec_scratch *s);

/** sparse_score() - score of a block by its centroid, after sparse_query() */
float sparse_score(const struct exec *e, uint32_t layer, uint32_t kv_head, const void *centroid,
		   const struct exec_scratch *s);

/**
 * sparse_select() - make the list of what a row reads in s->segs
 * @n_segs: its length
 *
 * Return: tokens in the list.
 */
uint32_t sparse_select(const struct exec *e, uint32_t layer, uint32_t kv_head,
		       const struct exec_row *row, struct exec_scratch *s, uint32_t *n_segs);

#endif
