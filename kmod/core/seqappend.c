// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seqappend.c - where new tokens of a sequence go
 *
 * 1. They go on in the partly filled last row of the sequence, if it is the last row of
 *    its run and nobody else shows any of it.
 * 2. Else, into new rows of the sequence's own run, each row being handed out once.  If
 *    the last row is partly filled, they begin in the slot after it, and the sequence's
 *    last tokens in the old row, hidden ones too, are said to lie in the new one from now
 *    on: the client copies the block.  Until it has, the old row is kept (hawk_list.hold).
 *
 * A sequence gets a run of its own with its first tokens.  One that has none takes over
 * the run it ends in if nobody alive owns that.
 */
#include "seqpriv.h"

struct place {
	struct hawk_run *run;	/* NULL: a new one */
	u32 tok;
	u32 rows;		/* of the run, afterwards */
	u32 cow;		/* tokens of the last row to be copied */
	bool join;		/* no further node */
	bool here;		/* goes on in the last row */
};

static struct hawk_node *list_tail(struct hawk_space *s, const struct hawk_list *l)
{
	return l->tail == HAWK_NONE ? NULL : &s->seqs->node[l->tail];
}

/* Does nobody but the list show tokens of row @row, and it none behind @end? */
static bool row_is_ours(struct hawk_space *s, const struct hawk_list *l,
			const struct hawk_run *r, u32 row, u32 end)
{
	const struct hawk_seqs *q = s->seqs;
	u32 first = row * q->block_tokens, next = first + q->block_tokens;
	const struct hawk_node *n;

	if (hawk_tree_first(q, r->shown, end, next) || hawk_tree_first(q, r->held, end, next))
		return false;
	/* what is held is only read, and what we write lies behind it */
	for (n = hawk_tree_first(q, r->shown, first, next); n;
	     n = hawk_tree_next(q, n, first, next))
		if (&q->list[n->list] != l)
			return false;
	return true;
}

/* Rule 1. */
static bool place_here(struct hawk_space *s, const struct hawk_list *l, u32 len,
		       struct place *p)
{
	const struct hawk_node *tail = list_tail(s, l);
	u32 end = tail->seg.tok + tail->seg.len, bt = s->block_tokens;
	struct hawk_run *r = hawk_node_run(s, tail);
	u64 rows = ((u64)end + len - 1) / bt + 1;

	if (l->refs > 1 || end / bt + 1 != r->rows || rows > s->seqs->row_max ||
	    !row_is_ours(s, l, r, end / bt, end))
		return false;
	p->run = r;
	p->tok = end;
	p->rows = rows;
	p->here = true;
	return true;
}

/* Rule 2; @p->cow is set. */
static int place_fresh(struct hawk_space *s, const struct hawk_seq *sq,
		       const struct hawk_list *l, u32 len, struct place *p)
{
	const struct hawk_node *tail = list_tail(s, l);
	struct hawk_seqs *q = s->seqs;
	struct hawk_run *r = tail ? hawk_node_run(s, tail) : NULL;
	u64 rows = ((u64)p->cow + len - 1) / s->block_tokens + 1;
	u32 base = 0;

	if (rows > q->row_max)
		return -EOVERFLOW;
	if (sq->run != HAWK_NONE && q->run[sq->run].rows + rows <= q->row_max)
		p->run = &q->run[sq->run];
	else if (r && !r->seq && !r->kept && r->rows + rows <= q->row_max)
		p->run = r;
	else if (q->free_run == HAWK_NONE)
		return hawk_runs_due(s) ? -EAGAIN : -ENOSPC;
	if (p->run)
		base = p->run->rows;
	p->tok = base * s->block_tokens + p->cow;
	p->rows = base + rows;
	return 0;
}

static int place_find(struct hawk_space *s, const struct hawk_seq *sq,
		      const struct hawk_list *l, const struct hawk_seq_op *op, struct place *p)
{
	const struct hawk_node *tail = list_tail(s, l);
	u32 end = tail ? tail->seg.tok + tail->seg.len : 0;
	int ret;

	memset(p, 0, sizeof(*p));
	if (end % s->block_tokens == 0 || !place_here(s, l, op->len, p)) {
		p->cow = end % s->block_tokens;
		ret = place_fresh(s, sq, l, op->len, p);
		if (ret)
			return ret;
	}
	p->join = tail && hawk_seg_end(&tail->seg) == l->len + l->hidden &&
		  tail->seg.pos + tail->seg.len == op->pos && !tail->seg.shift &&
		  (p->cow || (p->run == hawk_node_run(s, tail) && p->tok == end));
	return 0;
}

/*
 * The first of the last segments of the list that lie one behind the other in row @row of
 * the run where it ends.
 */
static struct hawk_node *row_first(struct hawk_space *s, const struct hawk_list *l, u32 row)
{
	struct hawk_node *n = list_tail(s, l), *prev;

	while (n->seg.tok > row && n->prev != HAWK_NONE) {
		prev = &s->seqs->node[n->prev];
		if (prev->seg.run != n->seg.run || prev->seg.tok + prev->seg.len <= row ||
		    prev->seg.tok + prev->seg.len > n->seg.tok)
			break;
		n = prev;
	}
	return n;
}

/* The sequence's last tokens in its last row are in the row of @p now. */
static void tail_move(struct hawk_space *s, struct hawk_list *l, const struct place *p,
		      struct hawk_seq_op *op)
{
	struct hawk_node *n = list_tail(s, l);
	u32 row = n->seg.tok + n->seg.len - p->cow, nr;
	struct hawk_seg hold = {
		.first = l->len + l->hidden, .len = p->cow, .run = n->seg.run, .tok = row,
	};

	op->cow_run = hold.run;
	op->cow_tok = hold.tok;
	op->cow_len = hold.len;
	hawk_list_hold(s, l, &hold);
	l->held_run = s->run_base + hawk_run_nr(s, p->run);
	l->held_tok = p->tok - p->cow;
	n = row_first(s, l, row);
	if (n->seg.tok < row)
		n = hawk_list_split(s, n, n->seg.first + (row - n->seg.tok));
	for (nr = n - s->seqs->node; nr != HAWK_NONE; nr = n->next) {
		n = &s->seqs->node[nr];
		hawk_node_move(s, n, l->held_run, l->held_tok + (n->seg.tok - row));
	}
}

/*
 * The list has been cut to @len tokens.  If none that came with the held ones is left,
 * those are where they were before, whether the client has copied them or not.
 */
void hawk_list_take_back(struct hawk_space *s, struct hawk_list *l, u32 len)
{
	struct hawk_node *n = list_tail(s, l);
	const struct hawk_seg *hold;
	u32 first = len;

	if (l->hold == HAWK_NONE || len > s->seqs->node[l->hold].seg.first)
		return;
	hold = &s->seqs->node[l->hold].seg;
	while (n && n->seg.run == l->held_run &&
	       n->seg.tok / s->block_tokens == l->held_tok / s->block_tokens) {
		hawk_node_move(s, n, hold->run, hold->tok + (n->seg.tok - l->held_tok));
		first = n->seg.first;
		n = n->prev == HAWK_NONE ? NULL : &s->seqs->node[n->prev];
	}
	hawk_list_merge(s, l, first, len);
}

static void run_own(struct hawk_space *s, struct hawk_seq *sq, struct hawk_run *r)
{
	if (sq->run != HAWK_NONE)
		s->seqs->run[sq->run].seq = 0;
	sq->run = hawk_run_nr(s, r);
	r->seq = sq->handle;
}

static int append_check(const struct hawk_list *l, const struct hawk_seq_op *op)
{
	if (!op->len || op->pos >= 1u << 31 || op->len > (1u << 31) - op->pos)
		return -EINVAL;
	if (op->op == HAWK_SEQ_APPEND && l->hidden)
		return -EINVAL;
	if ((u64)l->len + l->hidden + op->len > 0xffffffffu)
		return -EOVERFLOW;
	return 0;
}

/* APPEND and RESERVE. */
int hawk_seq_extend(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	struct hawk_list *l = &s->seqs->list[sq->list];
	const struct hawk_node *tail = list_tail(s, l);
	struct hawk_seg seg;
	struct place p;
	u32 more, row;
	int ret;

	ret = append_check(l, op) ?: place_find(s, sq, l, op, &p);
	if (ret)
		return ret;
	more = !p.join;
	if (p.cow) {	/* to hold the old row, and what is before it stays a node */
		row = tail->seg.tok + tail->seg.len - p.cow;
		more += 1 + (row_first(s, l, row)->seg.tok < row);
	}
	if (!hawk_nodes_enough(s, l, more))
		return -ENOSPC;

	l = hawk_seq_own(s, sq);
	if (!p.run) {
		p.run = hawk_run_take(s, sq->handle);
		hawk_store(&p.run->base, l->len + l->hidden - p.cow);
	}
	if (!p.here)
		run_own(s, sq, p.run);
	hawk_run_give(s, p.run, p.rows);
	hawk_list_unhold(s, l);
	if (p.cow)
		tail_move(s, l, &p, op);
	op->run = s->run_base + hawk_run_nr(s, p.run);
	op->tok = p.tok;
	seg.first = l->len + l->hidden;
	seg.len = op->len;
	seg.run = op->run;
	seg.tok = op->tok;
	seg.pos = op->pos;
	seg.shift = 0;
	hawk_list_add(s, l, &seg);
	if (op->op == HAWK_SEQ_APPEND)
		l->len += op->len;
	else
		l->hidden += op->len;
	hawk_list_changed(s, l, false);
	return 0;
}
