// SPDX-License-Identifier: MIT
/*
 * seq.c - the calls for sequences, but for hawk_seq_append(); elastic residency
 */
#include <errno.h>

#include "priv.h"

int hawk_seq_batch(struct hawk_kv *kv, struct hawk_seq_op *ops, unsigned int n)
{
	struct hawk_seq_batch b = { .size = sizeof(b), .count = n, .ops = (uintptr_t)ops };
	int ret = hawk_check_seq(&b);

	if (!ret)
		ret = kv->h->ops->seq(kv, &b);
	return ret ? ret : (int)b.done;
}

/* One operation.  Return: 0 or a negative errno. */
static int seq_one(struct hawk_kv *kv, struct hawk_seq_op *op, const char *what)
{
	int ret = hawk_seq_batch(kv, op, 1);

	if (ret < 0)
		return ret;
	return op->status ? hawk_fail(op->status, "%s sequence %u", what,
				      op->op == HAWK_SEQ_FORK ? op->src : op->seq) : 0;
}

int hawk_seq_new(struct hawk_kv *kv, uint32_t flags, uint32_t *seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW, .flags = flags };
	int ret = hawk_seq_batch(kv, &op, 1);

	if (ret < 0)
		return ret;
	*seq = op.seq;
	return op.status ? hawk_fail(op.status, "making a sequence") : 0;
}

int hawk_seq_fork(struct hawk_kv *kv, uint32_t src, uint32_t flags, uint32_t *seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FORK, .flags = flags, .src = src };
	int ret = seq_one(kv, &op, "forking");

	*seq = op.seq;
	return ret;
}

int hawk_seq_advance(struct hawk_kv *kv, uint32_t seq, uint32_t n)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_ADVANCE, .seq = seq, .len = n };

	return seq_one(kv, &op, "showing hidden tokens of");
}

int hawk_seq_drop(struct hawk_kv *kv, uint32_t seq, uint32_t start, uint32_t end)
{
	struct hawk_seq_op op = {
		.op = HAWK_SEQ_DROP, .seq = seq, .start = start, .end = end,
	};
	int ret = seq_one(kv, &op, "dropping tokens of");

	return ret ? ret : (int)op.frames;
}

int hawk_seq_repos(struct hawk_kv *kv, uint32_t seq, uint32_t start, uint32_t end,
		   int32_t shift)
{
	struct hawk_seq_op op = {
		.op = HAWK_SEQ_REPOS, .seq = seq, .start = start, .end = end, .shift = shift,
	};

	return seq_one(kv, &op, "shifting tokens of");
}

int hawk_seq_truncate(struct hawk_kv *kv, uint32_t seq, uint32_t len)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_TRUNCATE, .seq = seq, .len = len };
	int ret = seq_one(kv, &op, "cutting");

	return ret ? ret : (int)op.frames;
}

int hawk_seq_compose(struct hawk_kv *kv, uint32_t seq, uint32_t src, uint32_t start,
		     uint32_t end, int32_t shift)
{
	struct hawk_seq_op op = {
		.op = HAWK_SEQ_COMPOSE, .seq = seq, .src = src, .start = start, .end = end,
		.shift = shift,
	};

	return seq_one(kv, &op, "composing");
}

int hawk_seq_free(struct hawk_kv *kv, uint32_t seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FREE, .seq = seq };
	int ret = seq_one(kv, &op, "ending");

	return ret ? ret : (int)op.frames;
}

int hawk_seq_segs(struct hawk_kv *kv, uint32_t seq, struct hawk_seg *segs, unsigned int n,
		  struct hawk_seq_map *map)
{
	struct hawk_seq_map m = {
		.size = sizeof(m), .seq = seq, .count = n, .segs = (uintptr_t)segs,
	};
	int ret = kv->h->ops->seq_map(kv, &m);

	if (map)
		*map = m;
	return ret ? ret : (int)m.count;
}

static int elastic(struct hawk_kv *kv, uint32_t flags, struct hawk_elastic *e)
{
	e->size = sizeof(*e);
	e->flags = flags;
	e->reserved = 0;
	return kv->h->ops->elastic(kv, e);
}

int hawk_elastic_set(struct hawk_kv *kv, struct hawk_elastic *e)
{
	return elastic(kv, HAWK_ELASTIC_SET, e);
}

int hawk_elastic_get(struct hawk_kv *kv, struct hawk_elastic *e)
{
	return elastic(kv, 0, e);
}
