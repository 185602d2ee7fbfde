// SPDX-License-Identifier: MIT
/*
 * append.c - hawk_seq_append(): tokens follow, and their blocks are there to be written
 *
 * The device names the place of the new tokens.  The blocks there are one of
 *
 *	new	nothing before: ALLOC
 *	ours	the last one, partly full, shown by this sequence only: GET, UNSHARE,
 *		which makes it writable where it is
 *	shared	the last one, partly full, shown by others too: FORK its block to the
 *		LID of ours, GET, UNSHARE, which copies it
 *
 * If one of them cannot be had, those had so far are given back (new and shared ones
 * end with their pin, ours are put again) and the sequence is cut to what it was.
 */
#include <errno.h>
#include <time.h>

#include "priv.h"

#define BUSY_NAP_NS	1000000	/* between two looks at a block that others have pinned */
#define BUSY_NAPS	1000	/* looks */

enum kind { NEW, OURS, SHARED };

typedef int batch_fn(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
		     const struct hawk_opts *o);

static int get(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
	       const struct hawk_opts *o)
{
	return hawk_get(kv, it, n, o, NULL);
}

static int fork_lids(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
		     const struct hawk_opts *o)
{
	(void)o;
	return hawk_fork(kv, it, n);
}

/*
 * Compaction pins what it copies, for a moment.  By a truncation such a block can have
 * become the last one of the sequence meanwhile, so it is worth while to wait.
 */
static int unshare(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
		   const struct hawk_opts *o)
{
	const struct timespec nap = { .tv_nsec = BUSY_NAP_NS };
	int ret = hawk_unshare(kv, it, n, o);
	unsigned int i, naps;

	for (i = 0; i < n && ret >= 0; i++) {
		for (naps = 0; it[i].status == -EBUSY && naps < BUSY_NAPS; naps++) {
			nanosleep(&nap, NULL);
			ret = hawk_unshare(kv, &it[i], 1, o);
			if (ret < 0)
				break;
		}
	}
	return ret;
}

/* All of @it, which may be more than a batch.  Return: 0 or the first failure. */
static int each(struct hawk_kv *kv, batch_fn *fn, struct hawk_item *it, unsigned int n)
{
	unsigned int some, i;
	int ret;

	for (; n; it += some, n -= some) {
		some = n < HAWK_BATCH_MAX ? n : HAWK_BATCH_MAX;
		ret = fn(kv, it, some, NULL);
		if (ret < 0)
			return ret;
		for (i = 0; i < some; i++)
			if (it[i].status)
				return it[i].status;
	}
	return 0;
}

/* The items of the blocks from token @tok on, @rows behind one another. */
static void name(const struct hawk_kv *kv, struct hawk_item *it, uint32_t run, uint32_t tok,
		 uint32_t rows)
{
	uint32_t row, l, g;

	for (row = 0; row < rows; row++)
		for (l = 0; l < kv->layers; l++)
			for (g = 0; g < kv->heads; g++)
				*it++ = (struct hawk_item) {
					.lid = HAWK_LID(run, l, kv->head_first + g,
							tok + row * kv->block_tokens),
					.status = -ECANCELED,
				};
}

/* Gives back those of @it that have a pin of ours: whose @vt is not 0. */
static void give_back(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, enum kind kind)
{
	struct hawk_item one;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!it[i].vt)
			continue;
		it[i].vt = 0;
		/* One of ours that is being filled has its bytes; PUT refuses what is not. */
		one = (struct hawk_item) { .lid = it[i].lid };
		if (kind == OURS && hawk_put(kv, &one, 1, NULL) == 1)
			continue;
		one = (struct hawk_item) { .lid = it[i].lid };
		hawk_unpin(kv, &one, 1);
	}
}

/* LIDs of ours for the shared blocks of @op.  Those that are not used go with the cut. */
static int fork_shared(struct hawk_kv *kv, const struct hawk_seq_op *op, struct hawk_item *it,
		       unsigned int n)
{
	uint32_t tok = op->tok - op->tok % kv->block_tokens;
	unsigned int i;
	int ret;

	name(kv, it, op->cow_run, op->cow_tok, 1);
	for (i = 0; i < n; i++)
		it[i].arg = HAWK_LID(op->run, i / kv->heads, kv->head_first + i % kv->heads,
				     tok);
	ret = each(kv, fork_lids, it, n);
	name(kv, it, op->run, tok, 1);
	return ret;
}

/* Blocks of the last row, which has bytes: pinned and writable. */
static int take_last(struct hawk_kv *kv, const struct hawk_seq_op *op, struct hawk_item *it,
		     unsigned int n)
{
	enum kind kind = op->cow_len ? SHARED : OURS;
	unsigned int i;
	int ret = 0;

	if (kind == SHARED)
		ret = fork_shared(kv, op, it, n);
	if (!ret)
		ret = each(kv, get, it, n);
	if (ret) {
		give_back(kv, it, n, kind);
		return ret;
	}
	ret = each(kv, unshare, it, n);
	if (!ret)
		return 0;
	for (i = 0; i < n; i++)
		it[i].vt = HAWK_VT_VALID;	/* all are pinned, whether they failed or not */
	give_back(kv, it, n, kind);
	return ret;
}

/* The blocks of the tokens of @op into @a->it.  Return: 0 or a negative errno. */
static int take_blocks(struct hawk_kv *kv, struct hawk_append *a, const struct hawk_seq_op *op)
{
	uint32_t bt = kv->block_tokens, slot = op->tok % bt, row = kv->layers * kv->heads;
	bool open = a->flags & HAWK_APPEND_OPEN && slot && !op->cow_len;
	uint64_t rows = ((uint64_t)slot + a->len + bt - 1) / bt - open;
	uint32_t last = slot && !open ? row : 0;	/* items of a row that has bytes */
	int ret;

	if (rows * row > a->max) {
		a->n = rows * row > UINT32_MAX ? UINT32_MAX : (uint32_t)(rows * row);
		return hawk_fail(-E2BIG, "%u tokens of sequence %u: room for %u items, %llu needed",
				 a->len, a->seq, a->max, (unsigned long long)rows * row);
	}
	a->n = (uint32_t)rows * row;
	name(kv, a->it, op->run, op->tok - slot + (open ? bt : 0), (uint32_t)rows);
	ret = last ? take_last(kv, op, a->it, row) : 0;
	if (ret)
		return hawk_fail(ret, "the last block of sequence %u", a->seq);
	ret = each(kv, hawk_alloc, a->it + last, a->n - last);
	if (!ret)
		return 0;
	give_back(kv, a->it + last, a->n - last, NEW);
	give_back(kv, a->it, last, op->cow_len ? SHARED : OURS);
	return hawk_fail(ret, "blocks for %u tokens of sequence %u", a->len, a->seq);
}

static void cut(struct hawk_kv *kv, const struct hawk_append *a, const struct hawk_seq_op *op)
{
	struct hawk_seq_op back = {
		.op = HAWK_SEQ_TRUNCATE, .seq = a->seq,
		.len = op->len - (a->flags & HAWK_APPEND_HIDDEN ? 0 : a->len),
	};

	hawk_seq_batch(kv, &back, 1);
}

int hawk_seq_append(struct hawk_kv *kv, struct hawk_append *a)
{
	struct hawk_seq_op op = {
		.op = a->flags & HAWK_APPEND_HIDDEN ? HAWK_SEQ_RESERVE : HAWK_SEQ_APPEND,
		.seq = a->seq, .len = a->len, .pos = a->pos,
	};
	int ret;

	a->n = 0;
	if (a->flags & ~(HAWK_APPEND_HIDDEN | HAWK_APPEND_OPEN))
		return hawk_fail(-EOPNOTSUPP, "unknown flags 0x%x of an append", a->flags);
	if (a->max && !a->it)
		return hawk_fail(-EFAULT, "an append without an array of items");
	ret = hawk_seq_batch(kv, &op, 1);
	if (ret < 0)
		return ret;
	if (op.status)
		return hawk_fail(op.status, "appending %u tokens to sequence %u", a->len, a->seq);
	ret = take_blocks(kv, a, &op);
	if (ret) {
		cut(kv, a, &op);
		return ret;
	}
	a->run = op.run;
	a->tok = op.tok;
	a->history = op.len;
	return (int)a->n;
}
