// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seqtree.c - the segments of a run by where they lie: who shows these tokens?
 *
 * Interval trees, two for each run: of segments that lists show, and of those that they
 * hold.  A treap: in order of the first token, then of the node's number; a node's
 * priority, a hash of its number, is higher than its children's.  The hash has a seed of
 * the space, so no client can make a deep one.  @end is the greatest end below a node,
 * itself included, by which a search leaves out what ends too early.  So all here takes
 * time by the logarithm of the number of segments, and all of it has a lock held.
 */
#include "seqpriv.h"

static u64 prio(const struct hawk_space *s, u32 nr)
{
	return hawk_mix(nr ^ s->hash_seed);
}

static bool before(const struct hawk_seqs *q, u32 a, u32 b)
{
	u32 x = q->node[a].seg.tok, y = q->node[b].seg.tok;

	return x != y ? x < y : a < b;
}

static u32 *root_of(struct hawk_space *s, const struct hawk_node *n)
{
	struct hawk_run *r = hawk_node_run(s, n);

	return n->held ? &r->held : &r->shown;
}

/* What refers to @nr from above refers to @to now. */
static void replace(struct hawk_space *s, u32 *root, u32 nr, u32 to)
{
	struct hawk_node *node = s->seqs->node;
	u32 up = node[nr].up;

	if (up == HAWK_NONE)
		*root = to;
	else if (node[up].left == nr)
		node[up].left = to;
	else
		node[up].right = to;
	if (to != HAWK_NONE)
		node[to].up = up;
}

static void refit_one(struct hawk_seqs *q, struct hawk_node *n)
{
	u32 end = n->seg.tok + n->seg.len;

	if (n->left != HAWK_NONE && q->node[n->left].end > end)
		end = q->node[n->left].end;
	if (n->right != HAWK_NONE && q->node[n->right].end > end)
		end = q->node[n->right].end;
	n->end = end;
}

static void refit(struct hawk_seqs *q, u32 nr)
{
	for (; nr != HAWK_NONE; nr = q->node[nr].up)
		refit_one(q, &q->node[nr]);
}

/* A node takes its parent's place, which becomes its child. */
static void rotate(struct hawk_space *s, u32 *root, u32 nr)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_node *n = &q->node[nr], *up = &q->node[n->up];
	u32 top = n->up, child;

	replace(s, root, top, nr);
	if (up->left == nr) {
		child = n->right;
		up->left = child;
		n->right = top;
	} else {
		child = n->left;
		up->right = child;
		n->left = top;
	}
	if (child != HAWK_NONE)
		q->node[child].up = top;
	up->up = nr;
	refit_one(q, up);
	refit_one(q, n);
}

/* The length of a segment has changed. */
void hawk_tree_refit(struct hawk_space *s, const struct hawk_node *n)
{
	refit(s->seqs, n - s->seqs->node);
}

/* @n shows, or holds, a part of its run from now on. */
void hawk_tree_add(struct hawk_space *s, struct hawk_node *n)
{
	struct hawk_seqs *q = s->seqs;
	u32 nr = n - q->node, *root = root_of(s, n), *at = root;

	hawk_assert_held(&q->lock);
	n->up = HAWK_NONE;
	n->left = HAWK_NONE;
	n->right = HAWK_NONE;
	while (*at != HAWK_NONE) {
		n->up = *at;
		at = before(q, nr, *at) ? &q->node[*at].left : &q->node[*at].right;
	}
	*at = nr;
	refit(q, nr);
	while (n->up != HAWK_NONE && prio(s, n->up) < prio(s, nr))
		rotate(s, root, nr);
}

void hawk_tree_del(struct hawk_space *s, struct hawk_node *n)
{
	struct hawk_seqs *q = s->seqs;
	u32 nr = n - q->node, *root = root_of(s, n);
	u32 up;

	hawk_assert_held(&q->lock);
	while (n->left != HAWK_NONE && n->right != HAWK_NONE)
		rotate(s, root, prio(s, n->left) > prio(s, n->right) ? n->left : n->right);
	up = n->up;
	replace(s, root, nr, n->left != HAWK_NONE ? n->left : n->right);
	refit(q, up);
}

/* The first in the tree below @nr with tokens in [@from, @to), or NULL. */
struct hawk_node *hawk_tree_first(const struct hawk_seqs *q, u32 nr, u32 from, u32 to)
{
	struct hawk_node *n;

	if (nr == HAWK_NONE || q->node[nr].end <= from)
		return NULL;
	for (;;) {
		hawk_visit_counted(q);
		n = &q->node[nr];
		/* one of those ends behind @from: if it begins too late, so do all others */
		if (n->left != HAWK_NONE && q->node[n->left].end > from) {
			nr = n->left;
			continue;
		}
		if (n->seg.tok >= to)
			return NULL;
		if (n->seg.tok + n->seg.len > from)
			return n;
		if (n->right == HAWK_NONE || q->node[n->right].end <= from)
			return NULL;
		nr = n->right;
	}
}

/* The next one behind @n. */
struct hawk_node *hawk_tree_next(const struct hawk_seqs *q, const struct hawk_node *n,
				 u32 from, u32 to)
{
	u32 nr = n - q->node;

	for (;;) {
		if (n->right != HAWK_NONE && q->node[n->right].end > from)
			return hawk_tree_first(q, n->right, from, to);
		do {
			hawk_visit_counted(q);
			if (n->up == HAWK_NONE)
				return NULL;
			nr = n - q->node;
			n = &q->node[n->up];
		} while (n->right == nr);
		if (n->seg.tok >= to)
			return NULL;
		if (n->seg.tok + n->seg.len > from)
			return (struct hawk_node *)n;
	}
}

/* First token behind all that a run shows or holds; 0: nothing. */
u32 hawk_run_end(const struct hawk_seqs *q, const struct hawk_run *r)
{
	u32 shown = r->shown != HAWK_NONE ? q->node[r->shown].end : 0;
	u32 held = r->held != HAWK_NONE ? q->node[r->held].end : 0;

	return shown > held ? shown : held;
}

/* Some node with tokens in the rows [@row, @end) of a run, the first of its kind, or NULL. */
struct hawk_node *hawk_run_rows_node(const struct hawk_seqs *q, const struct hawk_run *r,
				     u32 row, u32 end)
{
	u32 bt = q->block_tokens;

	return hawk_tree_first(q, r->shown, row * bt, end * bt) ?:
	       hawk_tree_first(q, r->held, row * bt, end * bt);
}

/* Is a node where it belongs in its tree? */
bool hawk_tree_ok(const struct hawk_space *s, const struct hawk_node *n)
{
	const struct hawk_seqs *q = s->seqs;
	u32 nr = n - q->node, i, child, end = n->seg.tok + n->seg.len;

	for (i = 0; i < 2; i++) {
		child = i ? n->right : n->left;
		if (child == HAWK_NONE)
			continue;
		if (child >= q->nnodes || q->node[child].up != nr ||
		    before(q, child, nr) == i || prio(s, child) > prio(s, nr))
			return false;
		end = q->node[child].end > end ? q->node[child].end : end;
	}
	return n->end == end;
}
