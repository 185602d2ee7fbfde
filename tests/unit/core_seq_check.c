// SPDX-License-Identifier: MIT
/*
 * core_seq_check.c - hawk_space_check() sees what is broken in sequences
 *
 * As in core_check.c: one value of a sound space is spoilt, the check must say what is
 * wrong, and be content again when the value is back.
 */
#include "core_seq_host.h"

static struct seqs x;
static struct hawk_seqs *q;
static struct hawk_seq *a, *b, *c;
static struct hawk_list *list, *other;
static struct hawk_node *first, *last, *root;
static struct hawk_run *run, *waits, *unused;

static struct hawk_run *run_of(struct hawk_node *n)
{
	return &q->run[n->seg.run - x.s->run_base];
}

static int setup(void **state)
{
	u32 seq[4], i;
	struct hawk_ref ref;
	u64 vt;

	(void)state;
	seqs_init(&x, 8, 32, 1);
	q = x.s->seqs;
	for (i = 0; i < 3; i++)
		seq[i] = seqs_new(&x);
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq[0], 10, 0, NULL), 0);
	assert_int_equal(seqs_drop(&x, seq[0], 4, 6), 0);
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq[1], 6, 0, NULL), 0);
	assert_int_equal(hawk_block_pin(x.s, HAWK_LID(x.op.run, 0, 0, 0), 1, &vt, &ref), 0);
	waits = &q->run[x.op.run - x.s->run_base];
	assert_int_equal(seqs_truncate(&x, seq[1], 0), 0);
	seq[3] = seqs_fork(&x, seq[0]);
	a = &q->seq[seq[0] & 0xffff];
	b = &q->seq[seq[1] & 0xffff];
	c = &q->seq[seq[3] & 0xffff];
	list = &q->list[a->list];
	other = &q->list[b->list];
	first = &q->node[list->head];
	last = &q->node[list->tail];
	run = run_of(first);
	root = &q->node[run->shown];
	unused = &q->run[q->free_run];
	host_check(x.s);
	return 0;
}

static int teardown(void **state)
{
	struct hawk_ref ref;
	u64 vt;

	(void)state;
	assert_int_equal(hawk_block_ref(x.s, HAWK_LID(waits - q->run + x.s->run_base, 0, 0, 0),
					&vt, &ref), 0);
	assert_int_equal(hawk_block_unpin(x.s, ref), 0);
	seqs_fini(&x);
	return 0;
}

static void found(const char *want)
{
	char why[80] = "";

	assert_int_equal(hawk_space_check(x.s, why, sizeof(why)), -EUCLEAN);
	assert_string_equal(why, want);
}

#define SPOIL(lvalue, value, want)		\
	do {					\
		__typeof__(lvalue) old_ = (lvalue);	\
		(lvalue) = (value);		\
		found(want);			\
		(lvalue) = old_;		\
		host_check(x.s);		\
	} while (0)

static void sequences(void **state)
{
	(void)state;
	SPOIL(a->handle, a->handle + 1, "handle of a sequence broken");
	SPOIL(a->handle, a->handle & 0xffff, "handle of a sequence broken");
	SPOIL(a->list, q->free_list, "sequence without a list");
	SPOIL(list->refs, 3, "sequences of lists miscounted");
	SPOIL(q->run[a->run].seq, c->handle, "sequence's run does not know it");
	SPOIL(q->free_seq, HAWK_NONE, "sequences lost");
	SPOIL(q->free_seq, a - q->seq, "free sequences broken");
	SPOIL(a->owner, 0, "owner's sequences broken");
	SPOIL(c->next, a->next, "owner's sequences miscounted");
}

static void lists(void **state)
{
	u32 hold = q->free_node;

	(void)state;
	SPOIL(list->hidden, 1, "hidden or held tokens are shared");
	SPOIL(list->hold, hold, "hidden or held tokens are shared");
	SPOIL(last->prev, HAWK_NONE, "list of segments broken");
	SPOIL(last->list, other - q->list, "segment of another list");
	SPOIL(last->seg.run, x.s->run_base - 1, "segment of no run");
	SPOIL(last->seg.len, 0, "segment outside the rows of its run");
	SPOIL(last->seg.len, 7, "segment outside the rows of its run");
	SPOIL(last->seg.shift, last->seg.pos + 1, "position out of range");
	SPOIL(last->seg.pos, 0x7fffffff, "position out of range");
	SPOIL(last->seg.first, 3, "segments overlap");
	SPOIL(list->n, 3, "segments miscounted");
	SPOIL(list->tail, list->head, "segments miscounted");
	SPOIL(list->len, 9, "segment behind the end");
	SPOIL(q->list[q->free_list].head, HAWK_NONE, "lists lost");
	SPOIL(q->free_list, a->list, "free lists broken");
	SPOIL(q->free_node, list->head, "free segments broken");
	SPOIL(q->nfree, q->nfree - 1, "segments lost");
	SPOIL(q->node[q->free_node].next, HAWK_NONE, "segments lost");
}

static void runs(void **state)
{
	u32 *below = root->left != HAWK_NONE ? &root->left : &root->right;
	u32 nr, end = root->end;

	(void)state;
	SPOIL(unused->lids, 1, "free runs broken");
	SPOIL(q->free_run, unused->shown, "runs lost");
	SPOIL(waits->range[0].end, 0, "empty range");
	SPOIL(waits->queue, HAWK_RUN_DEAD, "run in the wrong queue");
	SPOIL(waits->range[0].busy, false, "run in the wrong queue");
	SPOIL(run->reapers, 1, "run is being reaped");
	SPOIL(waits->seq, b->handle + (1 << 16), "run of no sequence");
	SPOIL(waits->limit, 1, "run open without a segment, or closed with one");
	SPOIL(run->rows, 4, "run open without a segment, or closed with one");
	SPOIL(last->end, last->end + 1, "tree of a run broken");
	SPOIL(last->held, true, "tree of a run broken");
	SPOIL(root->up, first - q->node, "tree of a run broken");
	SPOIL(run->shown, *below, "tree of a run broken");
	nr = *below;
	*below = HAWK_NONE;
	root->end = root->seg.tok + root->seg.len;
	found("segment in no tree of its run");
	*below = nr;
	root->end = end;
	SPOIL(run->lids, run->lids + 1, "LIDs of runs miscounted");
	SPOIL(waits->lids, 0, "LID of a run that has none");
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(sequences), T(lists), T(runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
