// SPDX-License-Identifier: MIT
/*
 * kv_view.c - what a sequence sees, kept by the engine
 *
 * Each sequence has one in the engine (hawk_seq(3)) that grows with its history: it
 * is appended up to the next operation, then the operation is done to it, then it
 * goes on.  Its segments are what the executor is given.
 *
 * The blocks stay under LIDs of our own, not those of the engine's runs: published
 * blocks outlive the sequence as cache, and the blocks of a prefix that was found
 * lie under the LIDs of whoever computed them.  They are in the order of the
 * history, so of a segment we use the index of its first token, its length and its
 * shift, and not where the engine would put it.
 */
#include "kv/kv_priv.h"

#include <errno.h>
#include <string.h>

#include "log.h"

/**
 * struct kv_script - operations on the engine's sequence, in order
 * @op: an append, and for each operation a drop, a shift and an append at most
 */
struct kv_script {
	struct hawk_seq_op op[3 * HIST_OPS_MAX + 2];
	uint32_t n;
};

static void script_add(struct kv_script *c, struct hawk_seq_op op)
{
	c->op[c->n++] = op;
}

/* Behind the first @n operations the history grows to the next one, or to its end. */
static void script_append(const struct kv *kv, const struct kv_seq *s, uint32_t seq, uint32_t n,
			  struct kv_script *c)
{
	uint32_t from = n ? s->op[n - 1].at : 0;
	uint32_t to = n < s->n_ops ? s->op[n].at : s->n_blocks * kv->block_tokens;

	if (to > from)
		script_add(c, (struct hawk_seq_op){
				      .op = HAWK_SEQ_APPEND,
				      .seq = seq,
				      .len = to - from,
				      .pos = from - hist_moved(s->op, n),
			      });
}

static void script_operation(const struct kv_seq *s, const struct hist_op *o, struct kv_script *c)
{
	script_add(c, (struct hawk_seq_op){
			      .op = HAWK_SEQ_DROP,
			      .seq = s->seq,
			      .start = o->start,
			      .end = o->end,
		      });
	if (o->repos && o->at > o->end)
		script_add(c, (struct hawk_seq_op){
				      .op = HAWK_SEQ_REPOS,
				      .seq = s->seq,
				      .start = o->end,
				      .end = o->at,
				      .shift = o->end - o->start,
			      });
}

static int script_run(struct kv *kv, struct kv_script *c)
{
	uint32_t i;
	int ret = hawk_seq_batch(kv->space, c->op, c->n);

	for (i = 0; i < c->n && ret >= 0; i++)
		if (c->op[i].status)
			ret = c->op[i].status;
	return ret < 0 ? ret : 0;
}

/* The engine's segments as the executor takes them. */
static int kv_view_read(struct kv *kv, struct kv_seq *s)
{
	struct hawk_seg seg[HIST_SEGS(HIST_OPS_MAX)];
	int i, n = hawk_seq_segs(kv->space, s->seq, seg, HIST_SEGS(s->n_ops), NULL);

	for (i = 0; i < n; i++)
		s->seg[i] = (struct exec_seg){
			.blocks = s->addr,
			.tok = seg[i].first,
			.len = seg[i].len,
			.shift = seg[i].shift,
			.centroids = s->centroid,
		};
	s->n_segs = n < 0 ? 0 : n;
	s->hidden = hist_dropped(s->op, s->n_view);
	s->moved = hist_moved(s->op, s->n_view);
	return n < 0 ? n : 0;
}

int kv_view_open(struct kv *kv, struct kv_seq *s)
{
	struct kv_script c = { .n = 0 };
	int ret;

	script_add(&c, (struct hawk_seq_op){ .op = HAWK_SEQ_NEW, .status = -EIO });
	script_append(kv, s, HAWK_SEQ_LAST, 0, &c);
	ret = script_run(kv, &c);
	s->has_seq = c.op[0].status == 0; /* not touched if all was refused */
	s->seq = c.op[0].seq;
	return ret ? ret : kv_view_read(kv, s);
}

void kv_view_close(struct kv *kv, struct kv_seq *s)
{
	if (s->has_seq && hawk_seq_free(kv->space, s->seq) < 0)
		log_err("cannot end a sequence: %s", hawk_strerror_last());
	s->has_seq = false;
}

/*
 * What was computed for nobody to come is given back at once.  A block is hidden by the
 * last operation that touches it, so operation @k can only have hidden those of its span.
 */
static void kv_let_go_hidden(struct kv *kv, struct kv_seq *s, uint32_t k)
{
	uint32_t bt = kv->block_tokens, i = s->op[k].start / bt, first;
	uint32_t end = (s->op[k].end - 1) / bt + 1;

	if (end > s->n_done)
		end = s->n_done;
	for (; i < end; i = first + 1) {
		for (first = i; i < end && s->state[i] != KV_NONE &&
				hist_hides(s->op, s->n_view, i * bt, bt);)
			i++;
		kv_seq_let_go(kv, s, first, i);
		first = i;
	}
}

static int kv_view_advance(struct kv *kv, struct kv_seq *s, uint32_t n)
{
	struct kv_script c = { .n = 0 };
	uint32_t k = s->n_view;
	int ret;

	while (s->n_view < n) {
		script_operation(s, &s->op[s->n_view++], &c);
		script_append(kv, s, s->seq, s->n_view, &c);
	}
	ret = script_run(kv, &c);
	if (!ret)
		ret = kv_view_read(kv, s);
	if (ret)
		log_err("cannot drop tokens of a sequence: %s", strerror(-ret));
	for (; k < n && !ret; k++)
		kv_let_go_hidden(kv, s, k);
	return ret;
}

uint32_t kv_seq_view(struct kv *kv, struct kv_seq *s, uint32_t pos)
{
	uint32_t n = hist_in_effect(s->op, s->n_ops, pos);

	if (n != s->n_view && !s->error)
		s->error = kv_view_advance(kv, s, n);
	if (s->error)
		return pos;
	return n < s->n_ops ? s->op[n].at : UINT32_MAX;
}
