// SPDX-License-Identifier: MIT
/* Choosing the blocks of sparse rows, see sparse.h. */
#include "exec/sparse.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "exec/exec_priv.h"

/* Does candidate @a come behind @b? */
static bool worse(const float *score, uint32_t a, uint32_t b)
{
	return score[a] < score[b] || (score[a] == score[b] && a > b);
}

/* Let @i sink below better ones: the worst is at the top of the heap. */
static void heap_sink(const float *score, uint32_t *heap, uint32_t n, uint32_t at, uint32_t i)
{
	for (;;) {
		uint32_t c = 2 * at + 1;

		if (c + 1 < n && worse(score, heap[c + 1], heap[c]))
			c++;
		if (c >= n || !worse(score, heap[c], i))
			break;
		heap[at] = heap[c];
		at = c;
	}
	heap[at] = i;
}

static void heap_rise(const float *score, uint32_t *heap, uint32_t at, uint32_t i)
{
	while (at && worse(score, i, heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = i;
}

uint32_t sparse_top(const float *score, uint32_t n, uint32_t r, uint32_t *best)
{
	uint32_t i, have = 0;

	for (i = 0; i < n; i++) {
		if (score[i] == INFINITY)
			continue;
		if (have < r)
			heap_rise(score, best, have++, i);
		else if (r && worse(score, best[0], i))
			heap_sink(score, best, r, 0, i);
	}
	return have;
}

void sparse_query(const struct exec *e, uint32_t layer, uint32_t kv_head, int32_t shift,
		  struct exec_scratch *s)
{
	const uint32_t hd = e->m->cfg.head_dim, group = exec_group(e);
	const float *scale = exec_centroid_scale(e, layer, kv_head);
	const size_t ld = kern_pad(hd);
	uint32_t g, i;

	memcpy(s->qs, s->q, group * ld * sizeof(float));
	for (g = 0; g < group; g++) {
		float *q = s->qs + g * ld;

		/* 0u -: the opposite of INT32_MIN is itself, as wrong as any */
		if (shift)
			e->ops->turn_key(q, &s->turn, turn_get(&s->turn, (int32_t)(0u - shift)));
		for (i = 0; i < hd; i++)
			q[i] *= scale[i];
	}
}

float sparse_score(const struct exec *e, uint32_t layer, uint32_t kv_head, const void *centroid,
		   const struct exec_scratch *s)
{
	const size_t ld = kern_pad(e->m->cfg.head_dim);
	const uint8_t *c = (const uint8_t *)centroid +
			   (layer * e->m->cfg.n_head_kv + kv_head) * exec_centroid_stride(e);
	float best = -FLT_MAX, factor, score;
	uint32_t g;

	memcpy(&factor, c, sizeof(factor));

	for (g = 0; g < exec_group(e); g++) {
		score = factor *
			e->ops->dot_i8(s->qs + g * ld, (const int8_t *)c + sizeof(factor), ld);
		if (score > best)
			best = score;
	}
	return best < FLT_MAX ? best : FLT_MAX;
}

/* A candidate: tokens [tok, tok + n) of a segment, in one block. */
struct candidate {
	uint32_t block, n;
};

static struct candidate candidate_at(const struct exec *e, const struct exec_seg *seg, uint32_t off,
				     uint32_t used)
{
	const uint32_t bt = e->cfg.block_tokens, slot = seg->tok + off;
	const uint32_t n = bt - slot % bt;

	return (struct candidate){ slot / bt, n < used - off ? n : used - off };
}

/* Tokens of @seg up to visible index @at, the segment's first being @first. */
static uint32_t seg_used(const struct exec_seg *seg, uint32_t first, uint32_t at)
{
	return seg->len < at - first + 1 ? seg->len : at - first + 1;
}

/* Score all candidates in order; INFINITY for those that are read anyway. */
static uint32_t score_all(const struct exec *e, uint32_t layer, uint32_t kv_head,
			  const struct exec_row *row, struct exec_scratch *s)
{
	const struct exec_sparse *how = row->sparse;
	const struct exec_seg *seg = row->segs;
	uint32_t first, off, n = 0;

	for (first = 0; first <= row->at; first += seg++->len) {
		const uint32_t used = seg_used(seg, first, row->at);
		bool ready = false;
		struct candidate c;

		for (off = 0; off < used; off += c.n, n++) {
			const void *z;

			c = candidate_at(e, seg, off, used);
			z = seg->centroids ? seg->centroids[c.block] : NULL;
			s->score[n] = INFINITY;
			if (!z || first + off < how->sinks ||
			    (uint64_t)first + off + c.n + how->window > (uint64_t)row->at + 1)
				continue;
			if (!ready)
				sparse_query(e, layer, kv_head, seg->shift, s);
			ready = true;
			s->score[n] = sparse_score(e, layer, kv_head, z, s);
		}
		if (seg->len > row->at - first)
			break;
	}
	return n;
}

uint32_t sparse_select(const struct exec *e, uint32_t layer, uint32_t kv_head,
		       const struct exec_row *row, struct exec_scratch *s, uint32_t *n_segs)
{
	const uint32_t n_all = score_all(e, layer, kv_head, row, s);
	uint32_t n_best = sparse_top(s->score, n_all, row->sparse->blocks, s->best);
	const struct exec_seg *seg = row->segs;
	struct exec_seg *out = s->segs - 1;
	uint32_t first, off, n = 0, tokens = 0;

	while (n_best)
		s->score[s->best[--n_best]] = INFINITY;
	for (first = 0; n < n_all; first += seg++->len) {
		const uint32_t used = seg_used(seg, first, row->at);
		bool open = false; /* the candidate before was taken: go on with it */
		struct candidate c;

		for (off = 0; off < used; off += c.n, n++) {
			c = candidate_at(e, seg, off, used);
			if (s->score[n] != INFINITY) {
				open = false;
				continue;
			}
			if (row->read)
				__atomic_store_n(&row->read[n], 1, __ATOMIC_RELAXED);
			if (!open)
				*++out = (struct exec_seg){ seg->blocks, seg->tok + off, 0,
							    seg->shift, NULL };
			open = true;
			out->len += c.n;
			tokens += c.n;
		}
	}
	*n_segs = out + 1 - s->segs;
	return tokens;
}
