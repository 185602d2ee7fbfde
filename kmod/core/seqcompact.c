// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seqcompact.c - segments that waste parts of their blocks are put together
 *
 * The host copies tokens into a fresh run while the sequence is used; then the segments
 * are said to lie there, for all sequences that show the same list.  Appends may come in
 * between, as they do not touch the segments of a plan: the last one is never part of
 * it.  Copied are whole segments that touch a block with tokens out of sight, and of
 * whose blocks no other list shows anything, or nothing would be won.
 */
#include "seqpriv.h"

#define PICK_SEQS	64	/* sequences looked at */
#define PICK_VISITS	16384	/* nodes looked at, about */

static u32 node_row(const struct hawk_seqs *q, const struct hawk_node *n)
{
	return n->seg.tok / q->block_tokens;
}

/* Tokens of row @row that a node shows. */
static u32 row_tokens(const struct hawk_seqs *q, const struct hawk_node *n, u32 run, u32 row)
{
	u32 from, to, first = row * q->block_tokens;

	if (n->seg.run != run || node_row(q, n) > row || hawk_seg_row_end(q, &n->seg) <= row)
		return 0;
	from = n->seg.tok > first ? n->seg.tok : first;
	to = n->seg.tok + n->seg.len;
	return (to - first < q->block_tokens ? to : first + q->block_tokens) - from;
}

/* Is a row that @n touches partly out of sight?  Its neighbours in the list count. */
static bool row_partial(const struct hawk_seqs *q, const struct hawk_node *n, u32 row)
{
	u32 nr, more, run = n->seg.run, sum = row_tokens(q, n, run, row);

	for (nr = n->prev; nr != HAWK_NONE && sum < q->block_tokens; nr = q->node[nr].prev) {
		more = row_tokens(q, &q->node[nr], run, row);
		if (!more)
			break;
		sum += more;
	}
	for (nr = n->next; nr != HAWK_NONE && sum < q->block_tokens; nr = q->node[nr].next) {
		more = row_tokens(q, &q->node[nr], run, row);
		if (!more)
			break;
		sum += more;
	}
	return sum < q->block_tokens;
}

/* Does another list show a row of @n, or this one a token of it twice? */
static bool rows_shared(struct hawk_space *s, const struct hawk_node *n, u32 *visits)
{
	const struct hawk_seqs *q = s->seqs;
	const struct hawk_run *r = hawk_node_run(s, n);
	u32 from = node_row(q, n) * q->block_tokens;
	u32 to = hawk_seg_row_end(q, &n->seg) * q->block_tokens;
	const struct hawk_node *o;

	if (hawk_tree_first(q, r->held, from, to))
		return true;
	for (o = hawk_tree_first(q, r->shown, from, to); o;
	     o = hawk_tree_next(q, o, from, to), ++*visits)
		if (o != n && (o->list != n->list || (o->seg.tok < n->seg.tok + n->seg.len &&
						      n->seg.tok < o->seg.tok + o->seg.len)))
			return true;
	return false;
}

/* More than 40 % of the rows partly out of sight?  The last one does not count. */
static bool list_wasteful(struct hawk_space *s, const struct hawk_list *l)
{
	struct hawk_seq_map map = { .count = 0 };

	hawk_list_map(s, l, &map, NULL);
	return map.rows && 5ull * map.partial > 2ull * (map.rows - 1);
}

/* What of a list to copy.  Return: whether blocks are won by that. */
static bool list_plan(struct hawk_space *s, const struct hawk_list *l, struct hawk_compact *c,
		      u32 *visits)
{
	const struct hawk_seqs *q = s->seqs;
	u32 nr, row, end, old = 0, last_run = 0, last_row = 0;
	const struct hawk_node *n;
	u64 tokens = 0;

	c->n = 0;
	for (nr = l->head; nr != l->tail && c->n < c->max && *visits < PICK_VISITS;
	     nr = n->next) {
		n = &q->node[nr];
		row = node_row(q, n);
		end = hawk_seg_row_end(q, &n->seg);
		if (hawk_seg_end(&n->seg) > l->len)
			break;
		if (!(row_partial(q, n, row) || row_partial(q, n, end - 1)) ||
		    rows_shared(s, n, visits))
			continue;
		c->src[c->n++] = n->seg;
		tokens += n->seg.len;
		old += end - row;
		old -= c->n > 1 && last_run == n->seg.run && last_row == row;
		last_run = n->seg.run;
		last_row = end - 1;
	}
	if (tokens + s->block_tokens > 0xffffffffu)
		return false;
	c->rows = ((u32)tokens + s->block_tokens - 1) / s->block_tokens;
	return c->rows < old;
}

/* The next sequence that can be helped.  Return: its list, or NULL. */
static struct hawk_list *pick_next(struct hawk_space *s, struct hawk_compact *c)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_list *l;
	u32 i, visits = 0;

	for (i = 0; i < PICK_SEQS && i < q->max && visits < PICK_VISITS; i++) {
		const struct hawk_seq *sq = &q->seq[q->pick];

		q->pick = q->pick + 1 < q->max ? q->pick + 1 : 0;
		if (sq->list == HAWK_NONE)
			continue;
		l = &q->list[sq->list];
		visits += l->n;
		c->seq = sq->handle;
		if (list_wasteful(s, l) && list_plan(s, l, c, &visits))
			return l;
	}
	return NULL;
}

/*
 * Is there room for @n more blocks without one that is nowhere else being lost for it?
 * Only a hint, as no lock is held.
 */
static bool room_for(struct hawk_space *s, u64 n)
{
	u64 blocks = 0, lids = 0, frames = 0;
	const struct hawk_bucket *b;
	u32 i, t, owned, reach, tiers = hawk_load(&s->host_tiers);

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(tiers & 1u << t))
			continue;
		owned = hawk_load(&s->win[t].owned);
		reach = hawk_window_reach(s, t);
		frames += (u64)(reach > owned ? reach - owned : 0) * s->frames_per_chunk;
		for (i = 0; i < s->nbuckets; i++)
			frames += hawk_load(&s->bucket[i].fl[t].n);
	}
	for (i = 0; i < s->nbuckets; i++) {
		b = &s->bucket[i];
		blocks += hawk_load(&b->fl[HAWK_RES_BLOCK].n);
		lids += hawk_load(&b->fl[HAWK_RES_MAP].n);
	}
	/* with flash a frame is had from a block that has a copy there, or not at all */
	return n <= blocks && n <= lids && (n <= frames || hawk_load(&s->flash_tiers));
}

int hawk_seq_compact_pick(struct hawk_space *s, struct hawk_compact *c)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_list *l;
	struct hawk_run *r;
	int ret = -ENOENT;

	if (!q)
		return -ENOENT;
	hawk_lock(&q->lock);
	l = pick_next(s, c);
	if (!l)
		goto out_unlock;
	ret = -ENOSPC;
	/* the last one is left to those who append */
	if (q->free_run == HAWK_NONE || q->run[q->free_run].shown == HAWK_NONE ||
	    !room_for(s, (u64)c->rows * q->layers * q->heads))
		goto out_unlock;
	r = hawk_run_take(s, 0);
	r->kept = true;
	hawk_run_give(s, r, c->rows);
	c->run = s->run_base + hawk_run_nr(s, r);
	c->gen = l->shape;
	ret = 0;
out_unlock:
	hawk_unlock(&q->lock);
	return ret;
}

static bool segs_equal(const struct hawk_seg *a, const struct hawk_seg *b)
{
	return a->first == b->first && a->len == b->len && a->run == b->run && a->tok == b->tok;
}

/* The node of each segment of the plan, one after the other, from @nr on. */
static u32 plan_next(const struct hawk_seqs *q, u32 nr, const struct hawk_seg *src)
{
	while (nr != HAWK_NONE && q->node[nr].seg.first < src->first)
		nr = q->node[nr].next;
	return nr != HAWK_NONE && segs_equal(&q->node[nr].seg, src) ? nr : HAWK_NONE;
}

static bool plan_holds(const struct hawk_seqs *q, const struct hawk_list *l,
		       const struct hawk_compact *c)
{
	u32 i, nr = l->head;

	if (l->shape != c->gen)
		return false;
	for (i = 0; i < c->n; i++) {
		nr = plan_next(q, nr, &c->src[i]);
		if (nr == HAWK_NONE)
			return false;
	}
	return true;
}

int hawk_seq_compact_end(struct hawk_space *s, const struct hawk_compact *c, bool ok)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_run *r = &q->run[c->run - s->run_base];
	u32 i, nr, tok = 0;
	struct hawk_list *l;
	struct hawk_seq *sq;
	int ret = -ESTALE;

	hawk_lock(&q->lock);
	hawk_assert(r->kept);
	sq = hawk_seq_find(s, c->seq);
	l = sq ? &q->list[sq->list] : NULL;
	if (ok && l && plan_holds(q, l, c)) {
		for (i = 0, nr = l->head; i < c->n; i++) {
			nr = plan_next(q, nr, &c->src[i]);
			hawk_node_move(s, &q->node[nr], c->run, tok);
			tok += c->src[i].len;
		}
		hawk_list_merge(s, l, 0, l->len);
		hawk_list_changed(s, l, true);
		ret = 0;
	}
	r->kept = false;
	hawk_run_settle(s, r);
	hawk_unlock(&q->lock);
	return ret;
}
