// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seqlist.c - lists of segments
 *
 * Nodes are in the order of the history, disjoint there, and in trees of their runs.
 * Whoever changes a list has made sure that there are nodes enough (hawk_nodes_enough())
 * and settles what became of the runs by hawk_run_settle(), which here happens whenever
 * a node leaves a run.
 */
#include "seqpriv.h"

static struct hawk_node *node_new(struct hawk_space *s, struct hawk_list *l,
				  const struct hawk_seg *seg, bool held)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_node *n = &q->node[q->free_node];

	hawk_assert_held(&q->lock);
	hawk_assert(q->nfree);
	q->free_node = n->next;
	q->nfree--;
	n->seg = *seg;
	n->list = l - q->list;
	n->held = held;
	hawk_tree_add(s, n);
	return n;
}

static void node_free(struct hawk_space *s, struct hawk_node *n)
{
	struct hawk_seqs *q = s->seqs;

	hawk_tree_del(s, n);
	n->list = HAWK_NONE;
	n->next = q->free_node;
	q->free_node = n - q->node;
	q->nfree++;
}

/* A node goes, and nobody sees its tokens through it any more. */
static void node_drop(struct hawk_space *s, struct hawk_node *n)
{
	struct hawk_run *r = hawk_node_run(s, n);

	node_free(s, n);
	hawk_run_dirty(s, r, n->seg.tok, n->seg.len);
	hawk_run_settle(s, r);
}

/* Link @n behind @prev, HAWK_NONE: first. */
static void list_link(struct hawk_space *s, struct hawk_list *l, struct hawk_node *n, u32 prev)
{
	struct hawk_seqs *q = s->seqs;
	u32 nr = n - q->node;

	n->prev = prev;
	n->next = prev == HAWK_NONE ? l->head : q->node[prev].next;
	if (prev == HAWK_NONE)
		l->head = nr;
	else
		q->node[prev].next = nr;
	if (n->next == HAWK_NONE)
		l->tail = nr;
	else
		q->node[n->next].prev = nr;
	l->n++;
}

static void list_unlink(struct hawk_space *s, struct hawk_list *l, struct hawk_node *n)
{
	struct hawk_seqs *q = s->seqs;

	if (n->prev == HAWK_NONE)
		l->head = n->next;
	else
		q->node[n->prev].next = n->next;
	if (n->next == HAWK_NONE)
		l->tail = n->prev;
	else
		q->node[n->next].prev = n->prev;
	l->n--;
}

/* An empty list that one sequence shows; there is one for each sequence. */
struct hawk_list *hawk_list_new(struct hawk_space *s)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_list *l = &q->list[q->free_list];

	hawk_assert(q->free_list != HAWK_NONE);
	q->free_list = l->head;
	memset(l, 0, sizeof(*l));
	l->refs = 1;
	l->head = HAWK_NONE;
	l->tail = HAWK_NONE;
	l->hold = HAWK_NONE;
	hawk_list_changed(s, l, true);
	return l;
}

/* The part [@start, @end) of a segment, into @out.  Return: whether there is any. */
bool hawk_seg_clip(const struct hawk_seg *g, u32 start, u32 end, struct hawk_seg *out)
{
	u32 from = g->first > start ? g->first : start;
	u32 to = hawk_seg_end(g) < end ? hawk_seg_end(g) : end;

	if (from >= to)
		return false;
	*out = *g;
	out->first = from;
	out->len = to - from;
	out->tok += from - g->first;
	out->pos += from - g->first;
	return true;
}

/* Segments with tokens in [@start, @end). */
u32 hawk_list_count(const struct hawk_space *s, const struct hawk_list *l, u32 start, u32 end)
{
	const struct hawk_node *node = s->seqs->node;
	u32 nr, n = 0;

	for (nr = l->head; nr != HAWK_NONE && node[nr].seg.first < end; nr = node[nr].next)
		n += hawk_seg_end(&node[nr].seg) > start;
	return n;
}

/* A list with what @from shows of its tokens below @end. */
struct hawk_list *hawk_list_copy(struct hawk_space *s, const struct hawk_list *from, u32 end)
{
	struct hawk_list *l = hawk_list_new(s);
	const struct hawk_node *node = s->seqs->node;
	struct hawk_seg seg;
	u32 nr;

	for (nr = from->head; nr != HAWK_NONE; nr = node[nr].next) {
		if (!hawk_seg_clip(&node[nr].seg, 0, end, &seg))
			break;
		list_link(s, l, node_new(s, l, &seg, false), l->tail);
	}
	l->len = from->len < end ? from->len : end;
	l->shape = from->shape;
	return l;
}

/* One sequence less shows the list; the last one takes it away. */
void hawk_list_put(struct hawk_space *s, struct hawk_list *l)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_node *n;

	if (--l->refs)
		return;
	hawk_list_unhold(s, l);
	while (l->head != HAWK_NONE) {
		n = &q->node[l->head];
		list_unlink(s, l, n);
		node_drop(s, n);
	}
	l->head = q->free_list;
	q->free_list = l - q->list;
}

/* @n ends before @at now; the rest becomes a node of its own, behind it. */
struct hawk_node *hawk_list_split(struct hawk_space *s, struct hawk_node *n, u32 at)
{
	struct hawk_list *l = &s->seqs->list[n->list];
	struct hawk_node *rest;
	struct hawk_seg seg;

	hawk_seg_clip(&n->seg, at, hawk_seg_end(&n->seg), &seg);
	rest = node_new(s, l, &seg, false);
	n->seg.len = at - n->seg.first;
	hawk_tree_refit(s, n);
	list_link(s, l, rest, n - s->seqs->node);
	return rest;
}

/* Tokens [@start, @end), hidden ones too, are no more.  May take one node. */
void hawk_list_cut(struct hawk_space *s, struct hawk_list *l, u32 start, u32 end)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_seg cut;
	struct hawk_node *n;
	struct hawk_run *r;
	u32 nr, next;

	for (nr = l->head; nr != HAWK_NONE && q->node[nr].seg.first < end; nr = next) {
		n = &q->node[nr];
		next = n->next;
		if (!hawk_seg_clip(&n->seg, start, end, &cut))
			continue;
		if (cut.len == n->seg.len) {
			list_unlink(s, l, n);
			node_drop(s, n);
			continue;
		}
		if (cut.first == n->seg.first) {
			hawk_tree_del(s, n);
			n->seg.first += cut.len;
			n->seg.tok += cut.len;
			n->seg.pos += cut.len;
			n->seg.len -= cut.len;
			hawk_tree_add(s, n);
		} else {
			if (hawk_seg_end(&cut) < hawk_seg_end(&n->seg))
				hawk_list_split(s, n, hawk_seg_end(&cut));
			n->seg.len -= cut.len;
			hawk_tree_refit(s, n);
		}
		r = hawk_node_run(s, n);
		hawk_run_dirty(s, r, cut.tok, cut.len);
		hawk_run_settle(s, r);
	}
}

static bool segs_join(const struct hawk_seg *a, const struct hawk_seg *b)
{
	return hawk_seg_end(a) == b->first && a->run == b->run && a->tok + a->len == b->tok &&
	       a->pos + a->len == b->pos && a->shift == b->shift;
}

/* Would @seg continue the last segment? */
bool hawk_list_joins(const struct hawk_space *s, const struct hawk_list *l,
		     const struct hawk_seg *seg)
{
	return l->tail != HAWK_NONE && segs_join(&s->seqs->node[l->tail].seg, seg);
}

/* Add a segment at the end.  Takes a node unless it joins. */
void hawk_list_add(struct hawk_space *s, struct hawk_list *l, const struct hawk_seg *seg)
{
	struct hawk_node *tail;

	if (!hawk_list_joins(s, l, seg)) {
		list_link(s, l, node_new(s, l, seg, false), l->tail);
		return;
	}
	tail = &s->seqs->node[l->tail];
	tail->seg.len += seg->len;
	hawk_tree_refit(s, tail);
}

/* Join neighbours of which one has tokens in [@start, @end]. */
void hawk_list_merge(struct hawk_space *s, struct hawk_list *l, u32 start, u32 end)
{
	struct hawk_node *node = s->seqs->node, *n, *next;
	u32 nr;

	for (nr = l->head; nr != HAWK_NONE && node[nr].seg.first <= end;) {
		n = &node[nr];
		next = n->next == HAWK_NONE ? NULL : &node[n->next];
		if (next && next->seg.first >= start && segs_join(&n->seg, &next->seg)) {
			n->seg.len += next->seg.len;
			hawk_tree_refit(s, n);
			list_unlink(s, l, next);
			node_free(s, next);
		} else {
			nr = n->next;
		}
	}
}

/* Keep the blocks of @seg alive on behalf of the list. */
void hawk_list_hold(struct hawk_space *s, struct hawk_list *l, const struct hawk_seg *seg)
{
	hawk_list_unhold(s, l);
	l->hold = node_new(s, l, seg, true) - s->seqs->node;
}

void hawk_list_unhold(struct hawk_space *s, struct hawk_list *l)
{
	if (l->hold == HAWK_NONE)
		return;
	node_drop(s, &s->seqs->node[l->hold]);
	l->hold = HAWK_NONE;
}

/* The tokens of a node lie elsewhere from now on. */
void hawk_node_move(struct hawk_space *s, struct hawk_node *n, u32 run, u32 tok)
{
	struct hawk_run *r = hawk_node_run(s, n);
	u32 old = n->seg.tok;

	hawk_tree_del(s, n);
	n->seg.run = run;
	n->seg.tok = tok;
	hawk_tree_add(s, n);
	hawk_run_dirty(s, r, old, n->seg.len);
	hawk_run_settle(s, r);
}
