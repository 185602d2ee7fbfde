// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seq.c - operations on sequences (seqpriv.h tells of what they consist)
 *
 * Each operation looks whether it can be carried out before it changes anything.  What
 * it takes out of sight is freed by hawk_seq_reap() (seqrun.c).
 */
#include "seqpriv.h"

#define OWNER_BATCH	16	/* sequences freed at a time when their owner ends */
#define POS_MAX		(1ll << 31)	/* positions are below */

static u32 *owner_chain(struct hawk_seqs *q, u64 owner)
{
	return &q->owner[hawk_mix(owner) & (HAWK_OWNER_CHAINS - 1)];
}

/* ---- a space's tables ---- */

static void tables_link(struct hawk_seqs *q)
{
	u32 i;

	for (i = 0; i < q->max; i++) {
		q->seq[i].handle = 1u << 16 | i;
		q->seq[i].list = HAWK_NONE;
		q->seq[i].next = i + 1 < q->max ? i + 1 : HAWK_NONE;
		q->list[i].head = q->seq[i].next;
	}
	for (i = 0; i < q->nnodes; i++) {
		q->node[i].list = HAWK_NONE;
		q->node[i].next = i + 1 < q->nnodes ? i + 1 : HAWK_NONE;
	}
	for (i = 0; i < 2 * q->max; i++) {
		q->run[i].held = HAWK_NONE;
		q->run[i].shown = i + 1 < 2 * q->max ? i + 1 : HAWK_NONE;
	}
	for (i = 0; i < HAWK_RUN_QUEUES; i++)
		q->queue[i] = HAWK_NONE;
	q->wait = HAWK_RUN_WAIT;
	for (i = 0; i < HAWK_OWNER_CHAINS; i++)
		q->owner[i] = HAWK_NONE;
	q->nfree = q->nnodes;
}

int hawk_seqs_create(struct hawk_space *s, const struct hawk_space_params *p)
{
	struct hawk_seqs *q = hawk_table_alloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	s->seqs = q;
	hawk_lock_init(&q->lock);
	hawk_lock_name(&q->lock, HAWK_LOCK_SEQ);
	q->max = p->seqs;
	q->nnodes = p->segs ?: 8 * p->seqs;
	q->layers = p->layers;
	q->heads = p->head_groups / (p->tp_degree ?: 1);
	q->head_first = p->tp_rank * q->heads;
	q->block_tokens = p->block_tokens;
	q->row_max = 0xffffffffu / p->block_tokens;
	q->shift = p->shift;
	q->seq = hawk_table_alloc(q->max, sizeof(*q->seq));
	q->list = hawk_table_alloc(q->max, sizeof(*q->list));
	q->node = hawk_table_alloc(q->nnodes, sizeof(*q->node));
	q->run = hawk_table_alloc(2 * q->max, sizeof(*q->run));
	q->elastic = hawk_table_alloc(1, sizeof(*q->elastic));
	if (!q->seq || !q->list || !q->node || !q->run || !q->elastic)
		return -ENOMEM;
	hawk_elastic_init(q->elastic);
	tables_link(q);
	s->run_base = HAWK_LID_SEQ_MAX + 1 - 2 * q->max;
	return 0;
}

void hawk_seqs_destroy(struct hawk_space *s)
{
	struct hawk_seqs *q = s->seqs;

	if (!q)
		return;
	hawk_lock_fini(&q->lock);
	hawk_table_free(q->seq, q->max, sizeof(*q->seq));
	hawk_table_free(q->list, q->max, sizeof(*q->list));
	hawk_table_free(q->node, q->nnodes, sizeof(*q->node));
	hawk_table_free(q->run, 2 * q->max, sizeof(*q->run));
	hawk_table_free(q->elastic, 1, sizeof(*q->elastic));
	hawk_table_free(q, 1, sizeof(*q));
}

/* ---- what operations are made of ---- */

/* A pin, a lease or a read has ended, or what was in flight: what waits may go now. */
void hawk_seq_unbusy(struct hawk_space *s)
{
	if (s->seqs && unlikely(hawk_load(&s->seqs->waiting)))
		hawk_store(&s->seqs->again, 1);
}

struct hawk_seq *hawk_seq_find(struct hawk_space *s, u32 handle)
{
	hawk_assert_held(&s->seqs->lock);
	return hawk_seq_of(s, handle);
}

/* The list shows something else now. */
void hawk_list_changed(struct hawk_space *s, struct hawk_list *l, bool shape)
{
	l->gen = ++s->seqs->gen;
	if (shape)
		l->shape = l->gen;
}

/*
 * Can the list, by its sequence alone, get @more nodes?  What it holds goes first
 * (hawk_list_unhold()), and a list that several sequences show holds nothing.
 */
bool hawk_nodes_enough(const struct hawk_space *s, const struct hawk_list *l, u32 more)
{
	u32 copy = l->refs > 1 ? l->n : 0, held = l->hold != HAWK_NONE;

	return l->n + more <= HAWK_SEQ_SEGS_MAX && copy + more <= s->seqs->nfree + held;
}

/* A list that only this sequence shows, so that it can be changed. */
struct hawk_list *hawk_seq_own(struct hawk_space *s, struct hawk_seq *sq)
{
	struct hawk_list *l = &s->seqs->list[sq->list], *copy;

	if (l->refs == 1)
		return l;
	copy = hawk_list_copy(s, l, HAWK_NONE);
	hawk_list_put(s, l);
	sq->list = copy - s->seqs->list;
	return copy;
}

/* ---- sequences come and go ---- */

static struct hawk_seq *seq_take(struct hawk_space *s, u64 owner)
{
	struct hawk_seqs *q = s->seqs;
	u32 nr = q->free_seq, *chain = owner_chain(q, owner);
	struct hawk_seq *sq = &q->seq[nr];

	q->free_seq = sq->next;
	sq->owner = owner;
	sq->run = HAWK_NONE;
	sq->prev = HAWK_NONE;
	sq->next = HAWK_NONE;
	if (owner) {
		sq->next = *chain;
		if (*chain != HAWK_NONE)
			q->seq[*chain].prev = nr;
		*chain = nr;
	}
	return sq;
}

static void seq_free(struct hawk_space *s, struct hawk_seq *sq)
{
	struct hawk_seqs *q = s->seqs;
	u32 gen = (sq->handle >> 16) + 1;

	if (sq->owner) {
		if (sq->prev == HAWK_NONE)
			*owner_chain(q, sq->owner) = sq->next;
		else
			q->seq[sq->prev].next = sq->next;
		if (sq->next != HAWK_NONE)
			q->seq[sq->next].prev = sq->prev;
	}
	if (sq->run != HAWK_NONE)
		q->run[sq->run].seq = 0;
	sq->draft = NULL;
	hawk_list_put(s, &q->list[sq->list]);
	sq->list = HAWK_NONE;
	sq->handle = (gen < 0xffff ? gen : 1) << 16 | (sq->handle & 0xffff);
	sq->next = q->free_seq;
	q->free_seq = sq - q->seq;
}

bool hawk_seq_end_owner(struct hawk_space *s, u64 owner)
{
	struct hawk_seqs *q = s->seqs;
	u32 nr, next, n = 0;

	if (!q || !owner)
		return false;
	hawk_lock(&q->lock);
	for (nr = *owner_chain(q, owner); nr != HAWK_NONE && n < OWNER_BATCH; nr = next) {
		next = q->seq[nr].next;
		if (q->seq[nr].owner != owner)
			continue;
		seq_free(s, &q->seq[nr]);
		n++;
	}
	hawk_unlock(&q->lock);
	return n == OWNER_BATCH;
}

static u64 op_owner(u64 owner, const struct hawk_seq_op *op)
{
	return op->flags & HAWK_SEQ_KEEP ? 0 : owner;
}

static int seq_new(struct hawk_space *s, u64 owner, struct hawk_seq_op *op)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_seq *sq;

	if (q->free_seq == HAWK_NONE)
		return -ENOSPC;
	sq = seq_take(s, op_owner(owner, op));
	sq->list = hawk_list_new(s) - q->list;
	op->seq = sq->handle;
	return 0;
}

static int seq_fork(struct hawk_space *s, u64 owner, struct hawk_seq_op *op)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_seq *src = hawk_seq_find(s, op->src), *sq;
	struct hawk_list *l;

	if (!src)
		return -ENOENT;
	l = &q->list[src->list];
	if (q->free_seq == HAWK_NONE ||
	    (l->hidden && hawk_list_count(s, l, 0, l->len) >
			  q->nfree + (l->hold != HAWK_NONE)))
		return -ENOSPC;
	hawk_list_unhold(s, l);
	sq = seq_take(s, op_owner(owner, op));
	if (l->hidden) {	/* they are for one to write */
		l = hawk_list_copy(s, l, l->len);
		sq->list = l - q->list;
	} else {
		l->refs++;
		sq->list = src->list;
	}
	op->seq = sq->handle;
	return 0;
}

/* ---- operations on one sequence ---- */

/* There are @len hidden tokens or more. */
void hawk_list_advance(struct hawk_space *s, struct hawk_list *l, u32 len)
{
	l->hidden -= len;
	l->len += len;
	hawk_list_unhold(s, l);
	hawk_list_changed(s, l, false);
}

static int seq_advance(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	struct hawk_list *l = &s->seqs->list[sq->list];

	if (!op->len || op->len > l->hidden)
		return -EINVAL;
	hawk_list_advance(s, l, op->len);
	return 0;
}

static bool range_ok(const struct hawk_list *l, const struct hawk_seq_op *op)
{
	return op->start < op->end && op->end <= l->len;
}

static int seq_drop(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	struct hawk_list *l = &s->seqs->list[sq->list];

	if (!range_ok(l, op))
		return -EINVAL;
	if (!hawk_nodes_enough(s, l, 1))
		return -ENOSPC;
	l = hawk_seq_own(s, sq);
	hawk_list_unhold(s, l);
	hawk_list_cut(s, l, op->start, op->end);
	hawk_list_changed(s, l, true);
	return 0;
}

/* Do all keys in [@start, @end) keep a position after one more shift? */
static bool shift_ok(const struct hawk_space *s, const struct hawk_list *l, u32 start, u32 end,
		     s32 shift)
{
	const struct hawk_node *node = s->seqs->node;
	const struct hawk_seg *g;
	s64 pos, from, to;
	u32 nr;

	for (nr = l->head; nr != HAWK_NONE && node[nr].seg.first < end; nr = node[nr].next) {
		g = &node[nr].seg;
		if (hawk_seg_end(g) <= start)
			continue;
		from = g->first > start ? g->first : start;
		to = hawk_seg_end(g) < end ? hawk_seg_end(g) : end;
		pos = (s64)g->pos - g->shift - shift - g->first;
		if (pos + from < 0 || pos + to > POS_MAX)
			return false;
	}
	return true;
}

/* See that a node begins at token @at, if any node lies on both sides of it. */
static void split_at(struct hawk_space *s, struct hawk_list *l, u32 at)
{
	struct hawk_node *node = s->seqs->node;
	u32 nr;

	for (nr = l->head; nr != HAWK_NONE && node[nr].seg.first < at; nr = node[nr].next)
		if (hawk_seg_end(&node[nr].seg) > at) {
			hawk_list_split(s, &node[nr], at);
			return;
		}
}

static int seq_repos(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	struct hawk_list *l = &s->seqs->list[sq->list];
	struct hawk_node *node = s->seqs->node;
	u32 nr;

	if (!range_ok(l, op) || !shift_ok(s, l, op->start, op->end, op->shift))
		return -EINVAL;
	if (!hawk_nodes_enough(s, l, 2))
		return -ENOSPC;
	l = hawk_seq_own(s, sq);
	hawk_list_unhold(s, l);
	split_at(s, l, op->start);
	split_at(s, l, op->end);
	for (nr = l->head; nr != HAWK_NONE && node[nr].seg.first < op->end; nr = node[nr].next)
		if (node[nr].seg.first >= op->start)
			node[nr].seg.shift += op->shift;
	hawk_list_merge(s, l, op->start, op->end);
	hawk_list_changed(s, l, true);
	return 0;
}

static int seq_truncate(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	struct hawk_list *l = &s->seqs->list[sq->list], *copy;
	bool shape = op->len < l->len;

	if (op->len > l->len)
		return -EINVAL;
	if (l->refs > 1) {
		if (hawk_list_count(s, l, 0, op->len) > s->seqs->nfree)
			return -ENOSPC;
		copy = hawk_list_copy(s, l, op->len);
		hawk_list_put(s, l);
		sq->list = copy - s->seqs->list;
		l = copy;
	} else {
		hawk_list_cut(s, l, op->len, HAWK_NONE);
		shape |= l->hold != HAWK_NONE;
		hawk_list_take_back(s, l, op->len);
		hawk_list_unhold(s, l);
	}
	l->len = op->len;
	l->hidden = 0;
	hawk_list_changed(s, l, shape);
	return 0;
}

static int seq_compose(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	struct hawk_seq *src = hawk_seq_find(s, op->src);
	const struct hawk_node *node = s->seqs->node;
	struct hawk_list *l = &s->seqs->list[sq->list], *from;
	struct hawk_seg seg;
	u32 nr, off;

	if (!src)
		return -ENOENT;
	from = &s->seqs->list[src->list];
	if (l->hidden || !range_ok(from, op) ||
	    !shift_ok(s, from, op->start, op->end, op->shift))
		return -EINVAL;
	if ((u64)l->len + (op->end - op->start) > 0xffffffffu)
		return -EOVERFLOW;
	if (!hawk_nodes_enough(s, l, hawk_list_count(s, from, op->start, op->end)))
		return -ENOSPC;
	l = hawk_seq_own(s, sq);
	from = &s->seqs->list[src->list];
	hawk_list_unhold(s, from);
	hawk_list_unhold(s, l);
	off = l->len - op->start;	/* modulo 2^32 */
	for (nr = from->head; nr != HAWK_NONE && node[nr].seg.first < op->end;
	     nr = node[nr].next) {
		if (!hawk_seg_clip(&node[nr].seg, op->start, op->end, &seg))
			continue;
		seg.first += off;
		seg.shift += op->shift;
		hawk_list_add(s, l, &seg);
	}
	l->len += op->end - op->start;
	hawk_list_changed(s, l, false);
	return 0;
}

static int seq_change(struct hawk_space *s, struct hawk_seq *sq, struct hawk_seq_op *op)
{
	switch (op->op) {
	case HAWK_SEQ_APPEND:
	case HAWK_SEQ_RESERVE:
		return hawk_seq_extend(s, sq, op);
	case HAWK_SEQ_ADVANCE:
		return seq_advance(s, sq, op);
	case HAWK_SEQ_DROP:
		return seq_drop(s, sq, op);
	case HAWK_SEQ_REPOS:
		return seq_repos(s, sq, op);
	case HAWK_SEQ_TRUNCATE:
		return seq_truncate(s, sq, op);
	case HAWK_SEQ_COMPOSE:
		return seq_compose(s, sq, op);
	default:
		return -EINVAL;
	}
}

/* Members that an operation does not use are 0. */
static int op_check(const struct hawk_space *s, const struct hawk_seq_op *op)
{
	enum { SRC = 1, RANGE = 2, SHIFT = 4, LEN = 8, POS = 16, KEEP = 32 };
	static const u8 uses[] = {
		[HAWK_SEQ_NEW] = KEEP,
		[HAWK_SEQ_FORK] = SRC | KEEP,
		[HAWK_SEQ_APPEND] = LEN | POS,
		[HAWK_SEQ_RESERVE] = LEN | POS,
		[HAWK_SEQ_ADVANCE] = LEN,
		[HAWK_SEQ_DROP] = RANGE,
		[HAWK_SEQ_REPOS] = RANGE | SHIFT,
		[HAWK_SEQ_TRUNCATE] = LEN,
		[HAWK_SEQ_COMPOSE] = SRC | RANGE | SHIFT,
		[HAWK_SEQ_FREE] = 0,
	};
	u32 u = op->op && op->op < ARRAY_SIZE(uses) ? uses[op->op] : 0;

	if (!op->op || op->op >= ARRAY_SIZE(uses) || op->reserved ||
	    (op->flags & ~(u & KEEP ? HAWK_SEQ_KEEP : 0u)) || (op->src && !(u & SRC)) ||
	    ((op->start || op->end) && !(u & RANGE)) || (op->shift && !(u & SHIFT)) ||
	    (op->len && !(u & LEN)) || (op->pos && !(u & POS)))
		return -EINVAL;
	if (!s->seqs || (op->shift && !s->seqs->shift))
		return -EOPNOTSUPP;
	return 0;
}

/* Where in its own run ends what the sequence shows?  For those who make room. */
static void seq_note_end(struct hawk_space *s, const struct hawk_seq *sq)
{
	const struct hawk_list *l = &s->seqs->list[sq->list];
	const struct hawk_node *tail;
	u32 end;

	if (sq->run == HAWK_NONE || l->tail == HAWK_NONE)
		return;
	tail = &s->seqs->node[l->tail];
	if (hawk_node_run(s, tail) != &s->seqs->run[sq->run])
		return;
	end = tail->seg.tok + tail->seg.len;	/* hidden ones are the last */
	hawk_store(&s->seqs->run[sq->run].end, end > l->hidden ? end - l->hidden : 0);
}

bool hawk_seq_makes(const struct hawk_seq_op *op)
{
	return op->op == HAWK_SEQ_NEW || op->op == HAWK_SEQ_FORK;
}

bool hawk_seq_leaves(const struct hawk_seq_op *op)
{
	return op->op == HAWK_SEQ_DROP || op->op == HAWK_SEQ_TRUNCATE ||
	       op->op == HAWK_SEQ_FREE;
}

void hawk_seq_resolve(struct hawk_seq_op *op, u32 last)
{
	if (op->seq == HAWK_SEQ_LAST && !hawk_seq_makes(op))
		op->seq = last;
	if (op->src == HAWK_SEQ_LAST && (op->op == HAWK_SEQ_FORK || op->op == HAWK_SEQ_COMPOSE))
		op->src = last;
}

int hawk_seq_do(struct hawk_space *s, u64 owner, struct hawk_seq_op *op)
{
	struct hawk_seq *sq;
	int ret;

	op->frames = 0;
	ret = op_check(s, op);
	if (ret) {
		op->status = ret;
		return ret;
	}
	op->run = 0;
	op->tok = 0;
	op->cow_run = 0;
	op->cow_tok = 0;
	op->cow_len = 0;
	hawk_lock(&s->seqs->lock);
	if (op->op > HAWK_SEQ_FORK)
		hawk_seq_fold(s, op->seq);
	if (op->op == HAWK_SEQ_FORK || op->op == HAWK_SEQ_COMPOSE)
		hawk_seq_fold(s, op->src);
	if (op->op == HAWK_SEQ_NEW)
		ret = seq_new(s, owner, op);
	else if (op->op == HAWK_SEQ_FORK)
		ret = seq_fork(s, owner, op);
	sq = ret ? NULL : hawk_seq_find(s, op->seq);
	if (!sq)
		ret = ret ?: -ENOENT;
	else if (op->op == HAWK_SEQ_FREE)
		seq_free(s, sq);
	else if (op->op > HAWK_SEQ_FORK)
		ret = seq_change(s, sq, op);
	if (!ret) {
		op->len = sq->list == HAWK_NONE ? 0 : s->seqs->list[sq->list].len;
		op->gen = sq->list == HAWK_NONE ? 0 : s->seqs->list[sq->list].gen;
		if (sq->list != HAWK_NONE)
			seq_note_end(s, sq);
	}
	hawk_unlock(&s->seqs->lock);
	op->status = ret;
	return ret;
}

/* ---- what a sequence shows ---- */

/* Blocks of one layer and head group, in the order in which the segments touch them. */
struct rows {
	u32 run;
	u32 row;
	u32 fill;	/* tokens of it that have been met */
};

static void row_leave(const struct hawk_space *s, const struct rows *r,
		      struct hawk_seq_map *map)
{
	map->rows += !!r->fill;
	map->partial += r->fill && r->fill < s->block_tokens;
}

static void rows_count(const struct hawk_space *s, const struct hawk_seg *g, struct rows *r,
		       struct hawk_seq_map *map)
{
	u32 bt = s->block_tokens, row = g->tok / bt, last = hawk_seg_row_end(s->seqs, g) - 1;
	u32 left = bt - g->tok % bt;

	if (r->run != g->run || r->row != row || !r->fill) {
		row_leave(s, r, map);
		r->fill = 0;
	}
	r->run = g->run;
	r->row = last;
	if (row == last) {
		r->fill += g->len;
		return;
	}
	r->fill += left;
	row_leave(s, r, map);
	map->rows += last - row - 1;
	r->fill = (g->tok + g->len - 1) % bt + 1;
}

int hawk_list_map(struct hawk_space *s, const struct hawk_list *l, struct hawk_seq_map *map,
		  struct hawk_seg *segs)
{
	const struct hawk_node *node = s->seqs->node;
	u32 nr, n = 0, room = map->count;
	struct rows rows = { 0 };
	struct hawk_seg seg;

	map->visible = 0;
	map->rows = 0;
	map->partial = 0;
	map->len = l->len;
	map->hidden = l->hidden;
	map->gen = l->gen;
	for (nr = l->head; nr != HAWK_NONE; nr = node[nr].next, n++) {
		if (!hawk_seg_clip(&node[nr].seg, 0, l->len, &seg))
			break;
		map->visible += seg.len;
		rows_count(s, &seg, &rows, map);
		if (n < room)
			segs[n] = seg;
	}
	map->rows += !!rows.fill;	/* the last one may be partly filled */
	map->count = n;
	return n > room ? -E2BIG : 0;
}

int hawk_seq_map(struct hawk_space *s, struct hawk_seq_map *map, struct hawk_seg *segs)
{
	struct hawk_seq *sq;
	int ret = -ENOENT;

	if (!s->seqs)
		return -EOPNOTSUPP;
	hawk_lock(&s->seqs->lock);
	hawk_seq_fold(s, map->seq);
	sq = hawk_seq_find(s, map->seq);
	if (sq)
		ret = hawk_list_map(s, &s->seqs->list[sq->list], map, segs);
	hawk_unlock(&s->seqs->lock);
	return ret;
}
