// SPDX-License-Identifier: MIT
/*
 * Join neighbouring symbols, best priority first, leftmost among equals, until
 * no two join: n symbols in O(n log n) with a heap of candidate pairs.
 *
 * A candidate remembers how long its two symbols were. When one of them has
 * grown or gone since, the lengths differ and the candidate is skipped.
 */
#include "tok/tok_priv.h"

#include <errno.h>
#include <stdlib.h>

struct merge_cand {
	uint32_t prio;
	uint32_t left, right; /* symbols */
	uint32_t len_left, len_right;
	int32_t id; /* the joined token */
};

static bool cand_before(const struct merge_cand *a, const struct merge_cand *b)
{
	return a->prio != b->prio ? a->prio < b->prio : a->left < b->left;
}

static int heap_push(struct merge_state *m, struct merge_cand c)
{
	struct merge_cand *heap;
	uint32_t i, up, cap;

	if (m->n_heap == m->cap_heap) {
		cap = m->cap_heap ? m->cap_heap * 2 : 64;
		heap = realloc(m->heap, (size_t)cap * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		m->heap = heap;
		m->cap_heap = cap;
	}
	for (i = m->n_heap++; i; i = up) {
		up = (i - 1) / 2;
		if (!cand_before(&c, &m->heap[up]))
			break;
		m->heap[i] = m->heap[up];
	}
	m->heap[i] = c;
	return 0;
}

static struct merge_cand heap_pop(struct merge_state *m)
{
	struct merge_cand top = m->heap[0], last = m->heap[--m->n_heap];
	uint32_t i = 0, kid;

	while ((kid = 2 * i + 1) < m->n_heap) {
		if (kid + 1 < m->n_heap && cand_before(&m->heap[kid + 1], &m->heap[kid]))
			kid++;
		if (!cand_before(&m->heap[kid], &last))
			break;
		m->heap[i] = m->heap[kid];
		i = kid;
	}
	m->heap[i] = last;
	return top;
}

static int consider(struct merge_state *m, const struct tok *t, const char *text, merge_fn fn,
		    int32_t left, int32_t right)
{
	struct merge_cand c;

	if (left < 0 || right < 0)
		return 0;
	c.id = fn(t, text, &m->sym[left], &m->sym[right], &c.prio);
	if (c.id < 0)
		return 0;
	c.left = left;
	c.right = right;
	c.len_left = m->sym[left].len;
	c.len_right = m->sym[right].len;
	return heap_push(m, c);
}

int merge_add(struct merge_state *m, uint32_t start, uint32_t len, int32_t id)
{
	struct merge_sym *sym;
	uint32_t cap;

	if (m->n_sym == m->cap_sym) {
		cap = m->cap_sym ? m->cap_sym * 2 : 256;
		sym = realloc(m->sym, (size_t)cap * sizeof(*sym));
		if (!sym)
			return -ENOMEM;
		m->sym = sym;
		m->cap_sym = cap;
	}
	if (m->n_sym)
		m->sym[m->n_sym - 1].next = m->n_sym;
	m->sym[m->n_sym] = (struct merge_sym){ start, len, id, (int32_t)m->n_sym - 1, -1 };
	m->n_sym++;
	return 0;
}

int merge_run(struct merge_state *m, const struct tok *t, const char *text, merge_fn fn)
{
	struct merge_sym *l, *r;
	struct merge_cand c;
	uint32_t i;
	int ret = 0;

	m->n_heap = 0;
	for (i = 1; i < m->n_sym && !ret; i++)
		ret = consider(m, t, text, fn, i - 1, i);
	while (m->n_heap && !ret) {
		c = heap_pop(m);
		l = &m->sym[c.left];
		r = &m->sym[c.right];
		if (l->len != c.len_left || r->len != c.len_right)
			continue;
		l->len += r->len;
		l->id = c.id;
		l->next = r->next;
		r->len = 0;
		if (l->next >= 0)
			m->sym[l->next].prev = c.left;
		ret = consider(m, t, text, fn, l->prev, c.left);
		if (!ret)
			ret = consider(m, t, text, fn, c.left, l->next);
	}
	return ret;
}
