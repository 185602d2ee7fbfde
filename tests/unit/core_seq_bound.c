// SPDX-License-Identifier: MIT
/*
 * core_seq_bound.c - work under the lock of sequences does not grow with their number
 *
 * The engine counts how many nodes of its trees it looks at (HAWK_COUNT_EVENTS).  Of a run
 * that very many segments show, no operation and no reaping may look at more than a few.
 */
#include "core_seq_host.h"

#define FORKS		20000u
#define ROWS		4000u
#define TOKENS		(ROWS * SEQ_BT)
#define FEW		400u	/* a path in a tree of so many is some 30 long */
#define PER_HOLD	(256u * 100u)	/* 256 segments passed, see seqrun.c */

static struct seqs x;
u64 hawk_event_count[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];
u64 hawk_visit_count;

/* An operation; nodes that it looks at, and at most in one call to reap after it. */
static u64 visits(struct hawk_seq_op op, u64 *reap)
{
	u64 before = hawk_visit_count, op_visits;
	u32 frames = 0;

	x.op = op;
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &x.op), 0);
	op_visits = hawk_visit_count - before;
	do {
		before = hawk_visit_count;
		if (hawk_seq_due(x.s))
			hawk_seq_reap(x.s, 1, &frames);
		if (reap && hawk_visit_count - before > *reap)
			*reap = hawk_visit_count - before;
	} while (hawk_seq_due(x.s));
	return op_visits;
}

static u32 new_seq(void)
{
	assert_int_not_equal(seqs_new(&x), 0);
	return x.op.seq;
}

/* A sequence with one block: a run without any is not looked at. */
static u32 with_tokens(void)
{
	u32 a = new_seq();

	visits((struct hawk_seq_op){ .op = HAWK_SEQ_APPEND, .seq = a, .len = TOKENS }, NULL);
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(x.op.run, 0, 0, 0), NULL, 1, 1), 0);
	return a;
}

/* A sequence, and very many forks of it, each of which lacks other tokens. */
static u32 crowd(void)
{
	u32 a = with_tokens(), i;
	struct hawk_seq_op op;

	for (i = 0; i < FORKS; i++) {
		visits((struct hawk_seq_op){ .op = HAWK_SEQ_FORK, .src = a }, NULL);
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_DROP, .seq = x.op.seq };
		op.start = 1 + i * 7 % (TOKENS - 8);
		op.end = op.start + 1 + i % 6;
		visits(op, NULL);
	}
	return a;
}

static void crowded(void **state)
{
	struct hawk_seq_op op = { 0 };
	u64 most = 0, reap = 0, n;
	u32 a, i;

	(void)state;
	seqs_init(&x, FORKS + 8, 3 * FORKS, 1);
	a = crowd();
	for (i = 0; i < 300; i++) {
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_APPEND, .seq = a, .len = 1 + i % 7 };
		if (i % 6 == 5)
			op = (struct hawk_seq_op){ .op = HAWK_SEQ_TRUNCATE, .seq = a,
						   .len = TOKENS };
		n = visits(op, &reap);
		most = n > most ? n : most;
	}
	host_check(x.s);
	if (most > FEW || reap > FEW)
		fail_msg("an operation looked at %llu, reaping at %llu",
			 (unsigned long long)most, (unsigned long long)reap);
	seqs_fini(&x);
}

/* Rows that are passed one by one, as another sequence shows some of each. */
static void many_rows(void **state)
{
	struct hawk_seq_op op;
	u64 reap = 0;
	u32 a, i;

	(void)state;
	seqs_init(&x, 8, 3 * ROWS, 1);
	a = with_tokens();
	visits((struct hawk_seq_op){ .op = HAWK_SEQ_FORK, .src = a }, NULL);
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_DROP, .seq = x.op.seq };
	for (i = 0; i < ROWS; i++) {
		op.start = i * SEQ_BT + 1;
		op.end = op.start + 1;
		visits(op, NULL);
	}
	visits((struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = a }, &reap);
	if (reap > PER_HOLD)
		fail_msg("reaping looked at %llu at a time", (unsigned long long)reap);
	host_check(x.s);
	seqs_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crowded), cmocka_unit_test(many_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
