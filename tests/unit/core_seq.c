// SPDX-License-Identifier: MIT
/*
 * core_seq.c - each operation on sequences, step by step, and each refusal
 *
 * A block has 4 tokens, a row 2 blocks.  core_seq_random.c has all of it at random.
 */
#include "core_seq_host.h"
#include "../../kmod/core/draft.h"
#include "../../kmod/core/seqpriv.h"

#define MAP_MAX	64

static struct seqs x;
static struct hawk_seg seg[MAP_MAX];
static struct hawk_seq_map map;

static int setup(void **state)
{
	(void)state;
	seqs_init(&x, 8, 32, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (hawk_seq_end_owner(x.s, SEQ_OWNER))
		;
	seqs_do(&x, (struct hawk_seq_op){ .op = HAWK_SEQ_FREE });	/* reaps */
	assert_int_equal(seqs_lids(&x), 0);
	seqs_check(&x);
	seqs_fini(&x);
	return 0;
}

static u32 look(u32 seq)
{
	map = (struct hawk_seq_map){ .seq = seq, .count = MAP_MAX };
	assert_int_equal(hawk_seq_map(x.s, &map, seg), 0);
	seqs_check(&x);
	return map.count;
}

/* Segment @i of the last map; the ids of its tokens count from @id on. */
static void is_seg(u32 i, u32 first, u32 len, u32 pos, s32 shift, u32 id)
{
	u32 j;

	assert_true(i < map.count);
	assert_int_equal(seg[i].first, first);
	assert_int_equal(seg[i].len, len);
	assert_int_equal(seg[i].pos, pos);
	assert_int_equal(seg[i].shift, shift);
	for (j = 0; j < len; j++)
		assert_int_equal(seqs_id(&x, seg[i].run, seg[i].tok + j), id + j);
}

/* Of its first @len tokens. */
static void is_ids(u32 i, u32 len, u32 id)
{
	u32 j;

	assert_true(i < map.count && seg[i].len >= len);
	for (j = 0; j < len; j++)
		assert_int_equal(seqs_id(&x, seg[i].run, seg[i].tok + j), id + j);
}

static void append(u32 seq, u32 len, u32 pos)
{
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq, len, pos, NULL), 0);
}

static void reserve(u32 seq, u32 len, u32 pos)
{
	assert_int_equal(seqs_append(&x, HAWK_SEQ_RESERVE, seq, len, pos, NULL), 0);
}

static u32 with_tokens(u32 len)
{
	u32 seq = seqs_new(&x);

	assert_int_not_equal(seq, 0);
	append(seq, len, 0);
	return seq;
}

static void appends(void **state)
{
	u32 a = seqs_new(&x), run, gen;

	(void)state;
	assert_int_equal(look(a), 0);
	assert_int_equal(map.len + map.hidden + map.visible + map.rows + map.partial, 0);
	gen = map.gen;
	append(a, 6, 0);
	assert_int_equal(x.op.len, 6);
	assert_int_not_equal(x.op.gen, gen);
	assert_true(x.op.run >= HAWK_LID_SEQ_MAX + 1 - 16);
	assert_int_equal(x.op.tok, 0);
	run = x.op.run;
	append(a, 1, 6);
	assert_int_equal(x.op.tok, 6);
	assert_int_equal(x.op.cow_len, 0);
	assert_int_equal(look(a), 1);
	is_seg(0, 0, 7, 0, 0, 1);
	assert_int_equal(map.rows, 2);
	assert_int_equal(map.partial, 0);	/* the last one does not count */
	/* another position is another segment, in the same row */
	append(a, 3, 100);
	assert_int_equal(look(a), 2);
	is_seg(1, 7, 3, 100, 0, 8);
	assert_int_equal(seg[1].run, run);
	assert_int_equal(seg[1].tok, 7);
	assert_int_equal(map.rows, 3);
	assert_int_equal(map.visible, 10);
	/* a second sequence has a run of its own */
	with_tokens(1);
	assert_int_not_equal(x.op.run, run);
}

static void forks(void **state)
{
	u32 a = with_tokens(6), b, run = x.op.run, nfree = x.s->seqs->nfree, gen;

	(void)state;
	look(a);
	gen = map.gen;
	b = seqs_fork(&x, a);
	assert_int_equal(x.op.len, 6);
	assert_int_equal(nfree, x.s->seqs->nfree);	/* it costs nothing */
	look(a);
	assert_int_equal(map.gen, gen);
	look(b);
	is_seg(0, 0, 6, 0, 0, 1);
	/* its first tokens: a copy of the partly filled row, the others shared */
	append(b, 3, 6);
	assert_int_not_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 2);
	assert_int_equal(x.op.cow_run, run);
	assert_int_equal(x.op.cow_tok, 4);
	assert_int_equal(x.op.cow_len, 2);
	assert_int_equal(look(b), 2);
	is_seg(0, 0, 4, 0, 0, 1);
	is_seg(1, 4, 5, 4, 0, 5);
	assert_int_equal(seg[0].run, run);
	/* the original goes on where it is, although the copy may not have been made yet */
	append(a, 1, 6);
	assert_int_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 6);
	assert_int_equal(x.op.cow_len, 0);
	assert_int_equal(look(a), 1);
	is_ids(0, 6, 1);
	/* 2 rows of a, 1 of b */
	assert_int_equal(seqs_lids(&x), 4 * SEQ_LIDS);
	assert_int_equal(seqs_free(&x, a), 0);
	/* what is copied from goes with the next operation */
	assert_int_equal(x.op.frames, 0);
	append(b, 1, 9);
	assert_int_equal(x.op.frames, SEQ_LIDS);
	look(b);
	is_seg(0, 0, 4, 0, 0, 1);
	assert_int_equal(seqs_free(&x, b), 0);
	assert_int_equal(x.op.frames, 3 * SEQ_LIDS);
	assert_int_equal(seqs_lids(&x), 0);
}

/* Others show tokens of the last row, though fewer: it is not written to. */
static void fork_shorter(void **state)
{
	u32 a = with_tokens(7), b = seqs_fork(&x, a);

	(void)state;
	assert_int_equal(seqs_truncate(&x, b, 6), 0);
	append(a, 1, 7);
	assert_int_equal(x.op.cow_len, 3);
	assert_int_equal(x.op.tok % SEQ_BT, 3);
	look(b);
	is_seg(0, 0, 6, 0, 0, 1);
}

/* Forked at the end of a row: no copy, whoever comes first goes on in the run. */
static void fork_at_row(void **state)
{
	u32 a = with_tokens(8), run = x.op.run, b = seqs_fork(&x, a);

	(void)state;
	append(b, 4, 8);
	assert_int_not_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 0);
	assert_int_equal(x.op.cow_len, 0);
	append(a, 4, 8);
	assert_int_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 8);
	assert_int_equal(look(a), 1);
	assert_int_equal(look(b), 2);
	assert_int_equal(seqs_lids(&x), 4 * SEQ_LIDS);
	/* the owner of a run ends: one that is left with it takes it over */
	assert_int_equal(seqs_truncate(&x, b, 8), 0);
	assert_int_equal(seqs_free(&x, a), 0);
	append(b, 4, 8);
	assert_int_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 8);
	assert_int_equal(look(b), 1);
}

static void hidden(void **state)
{
	u32 a = with_tokens(3), b, gen;
	struct hawk_seq_op op = { .op = HAWK_SEQ_APPEND, .seq = a, .len = 1 };

	(void)state;
	reserve(a, 6, 3);
	assert_int_equal(x.op.len, 3);
	assert_int_equal(x.op.tok, 3);
	assert_int_equal(look(a), 1);
	is_seg(0, 0, 3, 0, 0, 1);
	assert_int_equal(map.hidden, 6);
	gen = map.gen;
	/* nothing can be put behind them but more of them */
	assert_int_equal(seqs_do(&x, op), -EINVAL);
	assert_int_equal(seqs_compose(&x, a, a, 0, 1, 0), -EINVAL);
	assert_int_equal(seqs_advance(&x, a, 7), -EINVAL);
	assert_int_equal(seqs_advance(&x, a, 0), -EINVAL);
	assert_int_equal(seqs_drop(&x, a, 0, 4), -EINVAL);
	look(a);
	assert_int_equal(map.gen, gen);
	/* a fork has none, and its tokens go elsewhere */
	b = seqs_fork(&x, a);
	look(b);
	assert_int_equal(map.hidden, 0);
	append(b, 1, 3);
	assert_int_equal(x.op.cow_len, 3);
	assert_int_equal(seqs_advance(&x, a, 2), 0);
	assert_int_equal(x.op.len, 5);
	look(a);
	is_seg(0, 0, 5, 0, 0, 1);
	reserve(a, 1, 9);
	assert_int_equal(x.op.tok, 9);
	assert_int_equal(seqs_advance(&x, a, 5), 0);
	map.count = 0;
	assert_int_equal(hawk_seq_map(x.s, &map, seg), -E2BIG);
	assert_int_equal(map.len, 10);
	assert_int_equal(map.count, 1);
	/* they go with TRUNCATE, also to the present length */
	reserve(a, 7, 10);
	assert_int_equal(seqs_truncate(&x, a, 10), 0);
	assert_int_equal(x.op.frames, 2 * SEQ_LIDS);
	look(a);
	assert_int_equal(map.hidden, 0);
	append(a, 1, 10);
	assert_int_equal(x.op.tok, 10);
}

/* What the head of a draft ring says has been accepted is visible at the next use. */
static void draft_ring(void **state)
{
	u32 a = with_tokens(3), b;
	__u64 head = 0, none = 0;

	(void)state;
	assert_int_equal(hawk_draft_bind(x.s, a + 1, &head), -ENOENT);
	assert_int_equal(hawk_draft_bind(x.s, a, &head), 0);
	assert_int_equal(hawk_draft_bind(x.s, a, &none), -EBUSY);
	reserve(a, 20, 3);
	look(a);
	assert_int_equal(map.len, 3);
	head = 4;
	look(a);
	is_seg(0, 0, 7, 0, 0, 1);
	assert_int_equal(map.hidden, 16);
	look(a);
	assert_int_equal(map.len, 7);
	/* before an operation, too, on it or with it as a source */
	head = 6;
	assert_int_equal(seqs_drop(&x, a, 7, 9), 0);
	assert_int_equal(x.op.len, 9);
	head = 7;
	b = seqs_fork(&x, a);
	look(b);
	assert_int_equal(map.len, 10);
	assert_int_equal(map.hidden, 0);
	head = 8;
	assert_int_equal(seqs_compose(&x, b, a, 10, 11, 0), 0);
	assert_int_equal(x.op.len, 11);
	/* a head that goes back says nothing, nor what it grows by up to there again */
	head = 2;
	look(a);
	assert_int_equal(map.len, 11);
	head = 8;
	look(a);
	assert_int_equal(map.len, 11);
	/* nonsense reveals what was reserved and nothing else */
	head = ~0ull;
	look(a);
	assert_int_equal(map.len, 23);
	assert_int_equal(map.hidden, 0);
	reserve(a, 5, 23);
	look(a);
	assert_int_equal(map.len, 23);
	/* another ring counts from 0; its end is a look at it */
	hawk_draft_unbind(x.s, a, &none);
	assert_int_equal(hawk_draft_bind(x.s, a, &none), -EBUSY);
	hawk_draft_unbind(x.s, a, &head);
	assert_int_equal(hawk_draft_bind(x.s, a, &none), 0);
	none = 2;
	hawk_draft_unbind(x.s, a, &none);
	none = 4;
	look(a);
	assert_int_equal(map.len, 25);
	/* with the sequence ends what bound the ring to it */
	assert_int_equal(hawk_draft_bind(x.s, b, &head), 0);
	assert_int_equal(seqs_free(&x, b), 0);
	hawk_draft_unbind(x.s, b, &head);
}

static void drops(void **state)
{
	u32 a = with_tokens(16), b;

	(void)state;
	assert_int_equal(seqs_drop(&x, a, 2, 11), 0);
	assert_int_equal(x.op.frames, SEQ_LIDS);	/* tokens 4 to 7; others are seen */
	assert_int_equal(x.op.len, 16);
	assert_int_equal(look(a), 2);
	is_seg(0, 0, 2, 0, 0, 1);
	is_seg(1, 11, 5, 11, 0, 12);
	assert_int_equal(map.rows, 3);
	assert_int_equal(map.partial, 2);
	assert_int_equal(map.visible, 7);
	/* what was dropped can be dropped again */
	assert_int_equal(seqs_drop(&x, a, 0, 12), 0);
	assert_int_equal(x.op.frames, 2 * SEQ_LIDS);
	assert_int_equal(look(a), 1);
	is_seg(0, 12, 4, 12, 0, 13);
	assert_int_equal(map.partial, 0);
	/* shared: the other one keeps them */
	b = seqs_fork(&x, a);
	assert_int_equal(seqs_drop(&x, a, 12, 16), 0);
	assert_int_equal(x.op.frames, 0);
	assert_int_equal(look(a), 0);
	assert_int_equal(map.len, 16);
	look(b);
	is_seg(0, 12, 4, 12, 0, 13);
	assert_int_equal(seqs_free(&x, b), 0);
	assert_int_equal(x.op.frames, SEQ_LIDS);
	/* the history goes on */
	append(a, 2, 16);
	look(a);
	is_seg(0, 16, 2, 16, 0, 17);
}

static void reposes(void **state)
{
	u32 a = with_tokens(10), gen;

	(void)state;
	assert_int_equal(seqs_drop(&x, a, 2, 4), 0);
	assert_int_equal(seqs_repos(&x, a, 4, 10, 2), 0);
	assert_int_equal(look(a), 2);
	is_seg(1, 4, 6, 4, 2, 5);
	/* a part: it is split; shifts add up; split parts with the same shift join again */
	assert_int_equal(seqs_repos(&x, a, 6, 8, 1), 0);
	assert_int_equal(look(a), 4);
	is_seg(1, 4, 2, 4, 2, 5);
	is_seg(2, 6, 2, 6, 3, 7);
	is_seg(3, 8, 2, 8, 2, 9);
	assert_int_equal(map.rows, 3);
	assert_int_equal(map.partial, 1);	/* tokens 4 to 7 are all seen */
	assert_int_equal(seqs_repos(&x, a, 6, 8, -1), 0);
	assert_int_equal(look(a), 2);
	is_seg(1, 4, 6, 4, 2, 5);
	/* no position below 0 or from 2^31 on, and then nothing changes */
	gen = map.gen;
	assert_int_equal(seqs_repos(&x, a, 0, 10, 1), -EINVAL);
	assert_int_equal(seqs_repos(&x, a, 4, 10, 3), -EINVAL);
	assert_int_equal(seqs_repos(&x, a, 4, 10, -0x7fffffff), -EINVAL);
	assert_int_equal(seqs_repos(&x, a, 4, 4, 1), -EINVAL);
	look(a);
	assert_int_equal(map.gen, gen);
	assert_int_equal(seqs_repos(&x, a, 4, 10, 2), 0);
	assert_int_equal(seqs_repos(&x, a, 4, 10, -0x7ffffffa), 0);
	look(a);
	assert_int_equal(seg[1].pos + seg[1].len - 1 - (u32)seg[1].shift, 0x7fffffff);
	/* tokens with a shift are followed by ones without */
	append(a, 1, 10);
	assert_int_equal(look(a), 3);
}

static void truncates(void **state)
{
	u32 a = with_tokens(16), run = x.op.run, b;

	(void)state;
	assert_int_equal(seqs_truncate(&x, a, 17), -EINVAL);
	assert_int_equal(seqs_truncate(&x, a, 6), 0);
	assert_int_equal(x.op.len, 6);
	assert_int_equal(x.op.frames, 2 * SEQ_LIDS);
	look(a);
	is_seg(0, 0, 6, 0, 0, 1);
	/* nobody sees what was there: it is written over, also in the rows behind */
	append(a, 5, 6);
	assert_int_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 6);
	assert_int_equal(x.op.cow_len, 0);
	assert_int_equal(look(a), 1);
	is_ids(0, 6, 1);
	/* one of two: the other one's tokens stay */
	b = seqs_fork(&x, a);
	assert_int_equal(seqs_truncate(&x, b, 6), 0);
	assert_int_equal(x.op.frames, 0);
	append(b, 1, 6);
	assert_int_equal(x.op.cow_len, 2);
	assert_int_equal(x.op.tok, 2);
	look(a);
	assert_int_equal(map.visible, 11);
	/* the end of the history has been dropped */
	assert_int_equal(seqs_free(&x, b), 0);
	assert_int_equal(seqs_drop(&x, a, 9, 11), 0);
	append(a, 1, 11);
	assert_int_equal(x.op.tok, 9);
	assert_int_equal(look(a), 2);
	assert_int_equal(seg[1].first, 11);
	assert_int_equal(seqs_truncate(&x, a, 0), 0);
	assert_int_equal(look(a), 0);
	assert_int_equal(seqs_lids(&x), 0);
	append(a, 1, 0);
	look(a);
	assert_int_equal(map.len, 1);
}

/* Rows that wait for the end of a pin are not handed out again: the block is copied. */
static void truncate_pinned(void **state)
{
	u32 a = with_tokens(12), run = x.op.run;
	struct hawk_ref ref;
	u64 vt;

	(void)state;
	assert_int_equal(hawk_block_pin(x.s, HAWK_LID(run, 0, 0, 8), 1, &vt, &ref), 0);
	assert_int_equal(seqs_truncate(&x, a, 6), 0);
	append(a, 4, 6);
	assert_int_equal(x.op.run, run);
	assert_int_equal(x.op.tok, 14);
	assert_int_equal(x.op.cow_tok, 4);
	assert_int_equal(x.op.cow_len, 2);
	assert_int_equal(look(a), 2);
	is_seg(0, 0, 4, 0, 0, 1);
	is_ids(1, 2, 5);
	assert_int_equal(hawk_block_unpin(x.s, ref), 0);
}

static void composes(void **state)
{
	u32 a = with_tokens(10), b = with_tokens(3), gen;

	(void)state;
	assert_int_equal(seqs_drop(&x, a, 4, 6), 0);
	assert_int_equal(seqs_compose(&x, b, a, 2, 9, -1), 0);
	assert_int_equal(x.op.len, 10);
	assert_int_equal(look(b), 3);
	is_seg(0, 0, 3, 0, 0, 11);
	is_seg(1, 3, 2, 2, -1, 3);
	is_seg(2, 7, 3, 6, -1, 7);	/* the hole came along */
	/* what follows what is there already joins it */
	assert_int_equal(seqs_compose(&x, b, a, 9, 10, -1), 0);
	assert_int_equal(look(b), 3);
	is_seg(2, 7, 4, 6, -1, 7);
	/* of itself, while it grows */
	assert_int_equal(seqs_compose(&x, b, b, 0, 11, 0), 0);
	assert_int_equal(look(b), 6);
	is_seg(3, 11, 3, 0, 0, 11);
	assert_int_equal(map.len, 22);
	/* its last row is seen twice, once beyond the end: it is not written over */
	assert_int_equal(seqs_compose(&x, b, b, 0, 2, 0), 0);
	append(b, 1, 2);
	assert_int_equal(x.op.cow_len, 2);
	gen = x.op.gen;
	assert_int_equal(seqs_compose(&x, b, a, 2, 11, 0), -EINVAL);
	assert_int_equal(seqs_compose(&x, b, a, 0, 2, 1), -EINVAL);
	assert_int_equal(seqs_compose(&x, b, 77, 0, 2, 0), -ENOENT);
	look(b);
	assert_int_equal(map.gen, gen);
	/* a ends, what b shows of it stays */
	assert_int_equal(seqs_free(&x, a), 0);
	assert_int_equal(look(b), 7);
	is_seg(2, 7, 4, 6, -1, 7);
	is_seg(5, 18, 4, 6, -1, 7);
}

static void members(void **state)
{
	u32 a = with_tokens(4), gen, i;
	struct hawk_seq_op bad[] = {
		{ .op = 0 },
		{ .op = 11 },
		{ .op = ~0u },
		{ .op = HAWK_SEQ_NEW, .flags = 2 },
		{ .op = HAWK_SEQ_NEW, .reserved = 1 },
		{ .op = HAWK_SEQ_NEW, .src = a },
		{ .op = HAWK_SEQ_FORK, .src = a, .len = 1 },
		{ .op = HAWK_SEQ_FORK, .src = a, .end = 1 },
		{ .op = HAWK_SEQ_APPEND, .seq = a },
		{ .op = HAWK_SEQ_APPEND, .seq = a, .len = 1, .flags = HAWK_SEQ_KEEP },
		{ .op = HAWK_SEQ_APPEND, .seq = a, .len = 1, .src = a },
		{ .op = HAWK_SEQ_APPEND, .seq = a, .len = 1, .start = 1 },
		{ .op = HAWK_SEQ_APPEND, .seq = a, .len = 1, .shift = 1 },
		{ .op = HAWK_SEQ_APPEND, .seq = a, .len = 1, .pos = 1u << 31 },
		{ .op = HAWK_SEQ_APPEND, .seq = a, .len = 2, .pos = 0x7fffffff },
		{ .op = HAWK_SEQ_RESERVE, .seq = a },
		{ .op = HAWK_SEQ_ADVANCE, .seq = a, .len = 1 },
		{ .op = HAWK_SEQ_ADVANCE, .seq = a, .len = 1, .pos = 1 },
		{ .op = HAWK_SEQ_DROP, .seq = a, .start = 1, .end = 1 },
		{ .op = HAWK_SEQ_DROP, .seq = a, .start = 1, .end = 5 },
		{ .op = HAWK_SEQ_DROP, .seq = a, .start = 2, .end = 1 },
		{ .op = HAWK_SEQ_DROP, .seq = a, .end = 1, .shift = 1 },
		{ .op = HAWK_SEQ_REPOS, .seq = a, .end = 5, .shift = -1 },
		{ .op = HAWK_SEQ_REPOS, .seq = a, .end = 1, .shift = -1, .len = 1 },
		{ .op = HAWK_SEQ_TRUNCATE, .seq = a, .len = 5 },
		{ .op = HAWK_SEQ_TRUNCATE, .seq = a, .start = 1 },
		{ .op = HAWK_SEQ_COMPOSE, .seq = a, .src = a, .start = 3, .end = 3 },
		{ .op = HAWK_SEQ_COMPOSE, .seq = a, .src = a, .end = 3, .pos = 1 },
		{ .op = HAWK_SEQ_FREE, .seq = a, .len = 1 },
	};

	(void)state;
	look(a);
	gen = map.gen;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(seqs_do(&x, bad[i]), -EINVAL);
	for (i = HAWK_SEQ_APPEND; i <= HAWK_SEQ_FREE; i++) {
		struct hawk_seq_op op = { .op = i, .seq = a + (1 << 16), .end = 1, .len = 1 };

		if (i < HAWK_SEQ_DROP || i == HAWK_SEQ_TRUNCATE || i == HAWK_SEQ_FREE)
			op.end = 0;
		if ((i >= HAWK_SEQ_DROP && i != HAWK_SEQ_TRUNCATE) || i == HAWK_SEQ_FREE)
			op.len = 0;
		assert_int_equal(seqs_do(&x, op), -ENOENT);
		op.seq = HAWK_SEQ_LAST;
		assert_int_equal(seqs_do(&x, op), -ENOENT);
	}
	assert_int_equal(seqs_fork(&x, 0), 0);
	assert_int_equal(x.op.status, -ENOENT);
	map = (struct hawk_seq_map){ .seq = a + 1 };
	assert_int_equal(hawk_seq_map(x.s, &map, seg), -ENOENT);
	look(a);
	assert_int_equal(map.gen, gen);
	is_seg(0, 0, 4, 0, 0, 1);
}

static void space_kinds(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 4096, .block_tokens = SEQ_BT, .max_blocks = 64,
		.layers = 1, .head_groups = 1,
	};
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW };
	struct seqs y = { .s = NULL };
	u32 a, freed = 0;

	(void)state;
	host_init(&y.h, 1);
	p.quota_max[host_tier(&y.h, HAWK_TIER_HOST, 1)] = 1;
	y.s = host_space(&y.h, &p);
	assert_int_equal(seqs_do(&y, op), -EOPNOTSUPP);
	map.seq = 1;
	assert_int_equal(hawk_seq_map(y.s, &map, seg), -EOPNOTSUPP);
	assert_false(hawk_seq_end_owner(y.s, 1));
	assert_false(hawk_seq_due(y.s));
	assert_false(hawk_seq_reap(y.s, 1, &freed));
	/* all sequence numbers are its clients' */
	assert_int_equal(host_fill(&y.h, y.s, HAWK_LID(HAWK_LID_SEQ_MAX, 0, 0, 0), NULL, 1, 1), 0);
	host_space_end(&y.h, y.s);

	p.seqs = HAWK_SEQS_MAX + 1;
	assert_int_equal(host_try_space(&y.h, &p, &y.s), -EINVAL);
	p.seqs = 0;
	p.segs = 1;
	assert_int_equal(host_try_space(&y.h, &p, &y.s), -EINVAL);
	p.seqs = 1;
	p.segs = HAWK_SEGS_MAX + 1;
	assert_int_equal(host_try_space(&y.h, &p, &y.s), -EINVAL);
	p.segs = 0;
	p.layers = 0;
	assert_int_equal(host_try_space(&y.h, &p, &y.s), -EINVAL);
	p.layers = 1;
	p.head_groups = 17;
	assert_int_equal(host_try_space(&y.h, &p, &y.s), -EINVAL);
	p.head_groups = 1;
	/* keys that cannot be shifted */
	y.s = host_space(&y.h, &p);
	assert_int_equal(y.s->seqs->nnodes, 8);
	a = seqs_new(&y);
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_APPEND, .seq = a, .len = 4 };
	assert_int_equal(seqs_do(&y, op), 0);
	assert_int_equal(seqs_repos(&y, a, 0, 4, -1), -EOPNOTSUPP);
	assert_int_equal(seqs_compose(&y, a, a, 0, 4, -1), -EOPNOTSUPP);
	assert_int_equal(seqs_compose(&y, a, a, 0, 4, 0), 0);
	assert_int_equal(seqs_drop(&y, a, 0, 1), 0);
	host_space_end(&y.h, y.s);
	host_fini(&y.h);
}

static void exhausted(void **state)
{
	u32 seq[8], i, gen;

	(void)state;
	for (i = 0; i < 8; i++)
		seq[i] = with_tokens(9);
	assert_int_equal(seqs_new(&x), 0);
	assert_int_equal(x.op.status, -ENOSPC);
	assert_int_equal(seqs_fork(&x, seq[0]), 0);
	assert_int_equal(x.op.status, -ENOSPC);
	/* 32 segments: 7 are used */
	assert_int_equal(seqs_free(&x, seq[7]), 0);
	seq[7] = seqs_fork(&x, seq[0]);
	assert_int_not_equal(seq[7], 0);
	for (i = 0; x.s->seqs->nfree > 1; i++)
		append(seq[6], 1, 500 + 2 * i);
	assert_int_equal(i, 24);
	look(seq[7]);
	gen = map.gen;
	/* shared: a copy and one more */
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq[7], 1, 500, NULL), -ENOSPC);
	assert_int_equal(seqs_repos(&x, seq[7], 2, 3, -1), -ENOSPC);
	assert_int_equal(seqs_repos(&x, seq[1], 2, 3, -1), -ENOSPC);
	assert_int_equal(seqs_drop(&x, seq[7], 2, 3), -ENOSPC);
	assert_int_equal(seqs_compose(&x, seq[1], seq[6], 9, 20, 0), -ENOSPC);
	reserve(seq[6], 1, 900);
	assert_int_equal(seqs_truncate(&x, seq[7], 3), -ENOSPC);
	assert_int_equal(seqs_drop(&x, seq[1], 2, 3), -ENOSPC);
	assert_int_equal(seqs_free(&x, seq[5]), 0);
	assert_int_equal(seqs_fork(&x, seq[6]), 0);
	assert_int_equal(x.op.status, -ENOSPC);
	seq[5] = seqs_new(&x);
	look(seq[7]);
	assert_int_equal(map.gen, gen);
	is_seg(0, 0, 9, 0, 0, 1);
	/* what needs none goes on */
	append(seq[4], 3, 9);
	assert_int_equal(seqs_truncate(&x, seq[6], 3), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(seqs_free(&x, seq[i]), 0);
	assert_int_equal(x.s->seqs->nfree, 32);
}

/* Runs are seen by others long after their sequence has ended: they run out. */
static void runs_exhausted(void **state)
{
	u32 all = seqs_new(&x), a, i, gen;

	(void)state;
	for (i = 0; i < 16; i++) {
		a = with_tokens(4);
		assert_int_equal(seqs_compose(&x, all, a, 0, 4, 0), 0);
		assert_int_equal(seqs_free(&x, a), 0);
	}
	a = seqs_new(&x);
	gen = x.op.gen;
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, a, 1, 0, NULL), -ENOSPC);
	look(a);
	assert_int_equal(map.gen, gen);
	/* one that shows tokens finds room where it ends */
	append(all, 4, 0);
	assert_int_equal(seqs_drop(&x, all, 0, 4), 0);
	append(a, 1, 0);
}

/* The segment that keeps a row for copying is given back by the operation that needs one. */
static void held_segment(void **state)
{
	struct hawk_seq_map m = { .count = 4 };
	struct hawk_seg segs[4];
	struct seqs y;
	u32 a, b;

	(void)state;
	seqs_init(&y, 8, 4, 1);
	a = seqs_new(&y);
	assert_int_equal(seqs_append(&y, HAWK_SEQ_APPEND, a, 6, 0, NULL), 0);
	b = seqs_fork(&y, a);
	assert_int_equal(seqs_append(&y, HAWK_SEQ_APPEND, b, 1, 6, NULL), 0);
	assert_int_equal(y.s->seqs->nfree, 0);
	assert_int_equal(seqs_drop(&y, b, 1, 2), 0);
	m.seq = b;
	assert_int_equal(hawk_seq_map(y.s, &m, segs), 0);
	assert_int_equal(m.count, 3);
	assert_int_equal(m.visible, 6);
	assert_int_equal(seqs_drop(&y, b, 3, 4), -ENOSPC);
	seqs_fini(&y);
}

/* Runs that only wait to be given back: that is for the host to do, and then there is one. */
static void runs_waiting(void **state)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_APPEND, .len = 1 };
	struct hawk_ref pin[16];
	u32 a, i, frames = 0;
	u64 vt;

	(void)state;
	for (i = 0; i < 16; i++) {
		a = with_tokens(4);
		assert_int_equal(hawk_block_pin(x.s, HAWK_LID(x.op.run, 0, 0, 0), 1, &vt, &pin[i]),
				 0);
		assert_int_equal(seqs_free(&x, a), 0);
	}
	op.seq = seqs_new(&x);
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &op), -ENOSPC);
	assert_int_equal(hawk_block_unpin(x.s, pin[7]), 0);
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &op), -EAGAIN);
	look(op.seq);
	assert_int_equal(map.len, 0);
	while (hawk_seq_reap(x.s, 1, &frames))
		;
	assert_int_equal(frames, 1);
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &op), 0);
	a = op.seq;
	op.seq = seqs_new(&x);
	op.len = 1;
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &op), -ENOSPC);
	/* the same of one that nobody has looked at since its sequence ended */
	x.op = (struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = a };
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &x.op), 0);
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &op), -EAGAIN);
	while (hawk_seq_reap(x.s, 1, &frames))
		;
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &op), 0);
	for (i = 0; i < 16; i++)
		if (i != 7)
			assert_int_equal(hawk_block_unpin(x.s, pin[i]), 0);
	while (hawk_seq_reap(x.s, 100, &frames))
		;
}

/* As long as histories get, in a few operations; their blocks were never put. */
static void long_history(void **state)
{
	u32 a = seqs_new(&x), b;
	struct hawk_seq_op op = { .op = HAWK_SEQ_APPEND, .seq = a, .len = 1u << 31 };

	(void)state;
	assert_int_equal(seqs_do(&x, op), 0);
	op.len = 0x7ffffff0;
	assert_int_equal(seqs_do(&x, op), 0);
	assert_int_equal(x.op.len, 0xfffffff0);
	op.len = 0x10;
	assert_int_equal(seqs_do(&x, op), -EOVERFLOW);
	op.len = 0xf;
	assert_int_equal(seqs_do(&x, op), 0);	/* in another run */
	assert_int_equal(x.op.len, 0xffffffff);
	op.op = HAWK_SEQ_RESERVE;
	op.len = 1;
	assert_int_equal(seqs_do(&x, op), -EOVERFLOW);
	b = seqs_fork(&x, a);
	assert_int_equal(seqs_compose(&x, b, a, 0, 1, 0), -EOVERFLOW);
	assert_int_equal(seqs_drop(&x, b, 0x7ffffff0, 0xffffffff), 0);
	assert_int_equal(seqs_repos(&x, b, 0, 1, 0), 0);
	assert_int_equal(look(a), 3);
	assert_int_equal(map.visible, 0xffffffff);
	assert_int_equal(look(b), 1);
	assert_int_equal(seg[0].len, 0x7ffffff0);
	/* a few blocks among the many that could be: they are found */
	assert_int_equal(seqs_free(&x, b), 0);
	look(a);
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(seg[0].run, 1, 0, 0x12345678), NULL, 1, 1),
			 0);
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(seg[0].run, 0, 0, 0x82345678), NULL, 1, 1),
			 0);
	assert_int_equal(seqs_truncate(&x, a, 0x80000000), 0);
	assert_int_equal(x.op.frames, 1);
	assert_int_equal(seqs_free(&x, a), 0);
	assert_int_equal(x.op.frames, 1);
}

static void busy_rows(void **state)
{
	u32 a = with_tokens(12), run = x.op.run, frames = 0;
	struct hawk_ref pin, lease;
	u8 key[HAWK_KEY_BYTES];
	u64 vt, lid;

	(void)state;
	assert_int_equal(hawk_block_pin(x.s, HAWK_LID(run, 1, 0, 4), 1, &vt, &pin), 0);
	append(a, 1, 12);
	assert_int_equal(seqs_truncate(&x, a, 12), 0);
	append(a, 1, 12);
	assert_int_equal(seqs_do(&x, (struct hawk_seq_op){ .op = HAWK_SEQ_RESERVE, .seq = a,
							   .len = 4, .pos = 13 }), 0);
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(run, 0, 0, 16), host_key(key, 1), 1, 1), 0);
	assert_int_equal(hawk_block_find(x.s, key, true, 1, &lid, &vt, &lease), 0);
	assert_int_equal(lid, HAWK_LID(run, 0, 0, 16));
	x.op = (struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = a };
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER, &x.op), 0);
	assert_true(hawk_seq_dead(x.s));
	while (hawk_seq_reap(x.s, 1, &frames))
		;
	frames = 0;
	assert_false(hawk_seq_dead(x.s));
	/* all but one pinned and one leased */
	assert_int_equal(seqs_lids(&x), 2);
	assert_false(hawk_seq_due(x.s));
	assert_false(hawk_seq_reap(x.s, 1000, &frames));
	/* the run is at its end: nothing can be put there any more */
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(run, 0, 0, 0), NULL, 1, 1), -EINVAL);
	hawk_block_unlease(x.s, lease);
	assert_true(hawk_seq_due(x.s));
	assert_false(hawk_seq_dead(x.s));	/* a lease of any block may have ended */
	while (hawk_seq_reap(x.s, 1000, &frames))
		;
	assert_int_equal(frames, 1);
	assert_int_equal(hawk_block_unpin(x.s, pin), 0);
	assert_true(hawk_seq_due(x.s));
	assert_false(hawk_seq_dead(x.s));
	while (hawk_seq_reap(x.s, 1, &frames))
		;
	assert_int_equal(frames, 2);
	assert_false(hawk_seq_due(x.s));
	assert_int_equal(seqs_lids(&x), 0);
	seqs_check(&x);
}

/* A block on flash that is being read when its sequence ends goes when it has been read. */
static void read_rows(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 64 << 10, .block_tokens = SEQ_BT, .max_blocks = 256,
		.buckets = 4, .layers = SEQ_LAYERS, .head_groups = SEQ_HEADS, .seqs = 2,
	};
	u32 a, i, frames = 0;
	struct seqs y = { .s = NULL };
	struct hawk_read r;

	(void)state;
	host_init(&y.h, 1);
	p.quota_max[host_tier(&y.h, HAWK_TIER_HOST, 1)] = 1;
	p.quota_max[host_tier(&y.h, HAWK_TIER_BLK, 8)] = 8;
	y.s = host_space(&y.h, &p);
	a = seqs_new(&y);
	assert_int_equal(seqs_append(&y, HAWK_SEQ_APPEND, a, 4, 0, NULL), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(host_fill(&y.h, y.s, HAWK_LID(1, 0, 0, i * SEQ_BT), NULL, 1, 2), 0);
	assert_int_equal(hawk_block_read(y.s, HAWK_LID(y.op.run, 0, 0, 0), 3, &r), 0);
	assert_true(r.flash);
	assert_int_equal(seqs_free(&y, a), 0);
	assert_int_equal(seqs_lids(&y), 1);
	assert_false(hawk_seq_due(y.s));
	hawk_block_read_end(y.s, &r, false);
	assert_true(hawk_seq_due(y.s));
	while (hawk_seq_reap(y.s, 1, &frames))
		;
	assert_int_equal(frames, 1);
	assert_int_equal(seqs_lids(&y), 0);
	seqs_check(&y);
	seqs_fini(&y);
}

/* A space that keeps the second half of the head groups only. */
static void slice(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 64 << 10, .block_tokens = SEQ_BT, .max_blocks = 64, .buckets = 4,
		.layers = 2, .head_groups = 4, .tp_rank = 1, .tp_degree = 2, .seqs = 2,
	};
	struct hawk_elastic_params e = { .on = true };
	struct seqs y = { .s = NULL };
	struct hawk_plan *plan;
	u32 a, i, row;

	(void)state;
	host_init(&y.h, 1);
	p.quota_max[host_tier(&y.h, HAWK_TIER_HOST, 2)] = 2;
	p.quota_max[host_tier(&y.h, HAWK_TIER_BLK, 2)] = 2;
	p.tp_rank = 2;
	assert_int_equal(host_try_space(&y.h, &p, &y.s), -EINVAL);
	p.tp_rank = 1;
	y.s = host_space(&y.h, &p);
	a = seqs_new(&y);
	assert_int_equal(seqs_do(&y, (struct hawk_seq_op){ .op = HAWK_SEQ_APPEND, .seq = a,
							   .len = 4 * SEQ_BT }), 0);
	for (row = 0; row < 4; row++)
		for (i = 0; i < 4; i++)
			assert_int_equal(host_fill(&y.h, y.s, HAWK_LID(y.op.run, i / 2, 2 + i % 2,
								       row * SEQ_BT),
						   NULL, 1, 1), 0);
	/* each row is looked at by a block that the space keeps: half of them is too much */
	assert_int_equal(hawk_space_elastic_set(y.s, &e), 0);
	y.s->seqs->elastic->alpha = 1 << 15;
	plan = host_plan(&y.h, HOST_PLAN);
	while (host_grew(y.s, hawk_elastic_step(y.s, 1, plan)))
		;
	assert_int_equal(y.s->seqs->elastic->evicted, 8);
	host_run(&y.h);
	assert_int_equal(seqs_lids(&y), 16);
	assert_int_equal(seqs_free(&y, a), 0);
	assert_int_equal(y.op.frames, 16);
	assert_int_equal(seqs_lids(&y), 0);
	seqs_fini(&y);
}

/* So many segments show a run that looking at all of them is more than one piece of work. */
static void crowded_run(void **state)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FREE };
	u32 a, b, i, n, frames = 0;
	struct seqs y;

	(void)state;
	seqs_init(&y, 16, 10 * HAWK_SEQ_SEGS_MAX, 1);
	a = seqs_new(&y);
	assert_int_equal(seqs_append(&y, HAWK_SEQ_APPEND, a, 3 * SEQ_BT, 0, NULL), 0);
	op.seq = seqs_fork(&y, a);
	assert_int_equal(seqs_truncate(&y, a, 2), 0);
	for (n = 2; n <= HAWK_SEQ_SEGS_MAX; n *= 2)
		assert_int_equal(seqs_compose(&y, a, a, 0, n, 0), 0);
	for (i = 0; i < 8; i++) {
		b = seqs_new(&y);
		assert_int_equal(seqs_compose(&y, b, a, 0, n, 0), 0);
	}
	assert_int_equal(seqs_lids(&y), 3 * SEQ_LIDS);
	assert_int_equal(hawk_seq_do(y.s, SEQ_OWNER, &op), 0);
	for (i = 0; i < 100 && hawk_seq_reap(y.s, 10, &frames); i++)
		;
	assert_int_equal(frames, 2 * SEQ_LIDS);
	assert_false(hawk_seq_due(y.s));
	while (hawk_seq_end_owner(y.s, SEQ_OWNER))
		;
	while (hawk_seq_reap(y.s, 10, &frames))
		;
	assert_int_equal(seqs_lids(&y), 0);
	seqs_fini(&y);
}

/* LIDs of sequences are the engine's: what can be put where. */
static void lids(void **state)
{
	u32 a = with_tokens(6), run = x.op.run, base = HAWK_LID_SEQ_MAX + 1 - 16, i;
	u64 own = HAWK_LID(base - 1, 0, 0, 0);

	(void)state;
	assert_int_equal(host_fill(&x.h, x.s, own, NULL, 1, 1), 0);
	for (i = 0; i < 16; i++) {
		if (base + i == run)
			continue;
		assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(base + i, 0, 0, 0), NULL, 1, 1),
				 -EINVAL);
		assert_int_equal(hawk_block_fork(x.s, own, HAWK_LID(base + i, 0, 0, 0)), -EINVAL);
	}
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(run, 0, 0, 8), NULL, 1, 1), -EINVAL);
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(run, 0, 0, 7), NULL, 1, 1), -EEXIST);
	/* put where a token was dropped: it goes with the run at the latest */
	assert_int_equal(seqs_drop(&x, a, 0, 4), 0);
	assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(run, 0, 0, 0), NULL, 1, 1), 0);
	assert_int_equal(seqs_free(&x, a), 0);
	assert_int_equal(seqs_lids(&x), 0);
	assert_int_equal(hawk_block_free(x.s, own), 0);
}

static void owners(void **state)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW, .flags = HAWK_SEQ_KEEP };
	u32 kept, other, a = with_tokens(4);

	(void)state;
	assert_int_equal(seqs_do(&x, op), 0);
	kept = x.op.seq;
	append(kept, 4, 0);
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_NEW };
	assert_int_equal(hawk_seq_do(x.s, SEQ_OWNER + 1, &op), 0);
	other = op.seq;
	assert_int_not_equal(seqs_fork(&x, a), 0);
	assert_false(hawk_seq_end_owner(x.s, 0));
	assert_false(hawk_seq_end_owner(x.s, SEQ_OWNER));
	assert_int_equal(seqs_free(&x, a), -ENOENT);
	assert_int_equal(seqs_lids(&x), SEQ_LIDS);
	look(kept);
	look(other);
	assert_int_equal(seqs_free(&x, kept), 0);
	assert_int_equal(seqs_free(&x, other), 0);
	/* a handle is not given again soon */
	assert_int_not_equal(seqs_new(&x), other);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(appends), T(forks), T(fork_shorter), T(fork_at_row), T(hidden), T(draft_ring),
		T(drops), T(reposes),
		T(truncates), T(truncate_pinned), T(composes), T(members),
		T(exhausted), T(runs_exhausted), T(runs_waiting), T(long_history), T(busy_rows), T(lids),
		T(owners), cmocka_unit_test(space_kinds), cmocka_unit_test(read_rows),
		cmocka_unit_test(crowded_run), cmocka_unit_test(slice), cmocka_unit_test(held_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
