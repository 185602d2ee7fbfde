// SPDX-License-Identifier: MIT
/*
 * core_seq_compact.c - who is compacted, and what may happen while it is
 *
 * A block has 4 tokens.  core_seq_random.c has it among everything else.
 */
#include "core_seq_host.h"

static struct seqs x;
static struct hawk_seg seg[64], src[64];
static struct hawk_seq_map map;
static struct hawk_compact c;

static int setup(void **state)
{
	(void)state;
	seqs_init(&x, 8, 0, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (hawk_seq_end_owner(x.s, SEQ_OWNER))
		;
	seqs_free(&x, 0);	/* reaps */
	assert_int_equal(seqs_lids(&x), 0);
	seqs_check(&x);
	seqs_fini(&x);
	return 0;
}

static void look(u32 seq)
{
	map = (struct hawk_seq_map){ .seq = seq, .count = 64 };
	assert_int_equal(hawk_seq_map(x.s, &map, seg), 0);
	seqs_check(&x);
}

/* The visible tokens: their ids are those of @ids, up to a 0. */
static void shows(u32 seq, const u16 *ids)
{
	u32 i, j;

	look(seq);
	for (i = 0; i < map.count; i++)
		for (j = 0; j < seg[i].len; j++)
			assert_int_equal(seqs_id(&x, seg[i].run, seg[i].tok + j), *ids++);
	assert_int_equal(*ids, 0);
}

static int pick(void)
{
	c.max = 64;
	c.src = src;
	return hawk_seq_compact_pick(x.s, &c);
}

static int end(bool ok)
{
	int ret = hawk_seq_compact_end(x.s, &c, ok);

	seqs_free(&x, 0);	/* reaps */
	seqs_check(&x);
	return ret;
}

/* A sequence of @len tokens, of which of each 4 in @holes blocks the second half is dropped. */
static u32 with_holes(u32 len, u32 holes)
{
	u32 seq = seqs_new(&x), i;

	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq, len, 0, NULL), 0);
	for (i = 0; i < holes; i++)
		assert_int_equal(seqs_drop(&x, seq, 4 * i + 2, 4 * i + 4), 0);
	return seq;
}

static void rule(void **state)
{
	u32 seq = with_holes(24, 2);

	(void)state;
	/* 2 of 5 blocks, the last one not counted, are 40 % */
	look(seq);
	assert_int_equal(map.rows, 6);
	assert_int_equal(map.partial, 2);
	assert_int_equal(pick(), -ENOENT);
	assert_int_equal(seqs_drop(&x, seq, 10, 12), 0);
	assert_int_equal(pick(), 0);
	assert_int_equal(c.seq, seq);
	/* 2 + 2 + 2; the rest is the last segment */
	assert_int_equal(c.n, 3);
	assert_int_equal(c.rows, 2);
	assert_int_equal(end(false), -ESTALE);
	/* nothing to win: one block of each */
	assert_int_equal(seqs_drop(&x, seq, 0, 10), 0);
	look(seq);
	assert_int_equal(map.partial, 0);
	assert_int_equal(seqs_drop(&x, seq, 12, 14), 0);
	assert_int_equal(pick(), -ENOENT);
}

static void moves(void **state)
{
	static const u16 ids[] = { 1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 19, 20, 0 };
	static const u16 more[] = { 1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 19, 20, 21, 22, 23, 24,
				    25, 0 };
	u32 seq = with_holes(20, 4), gen, run;

	(void)state;
	assert_int_equal(seqs_repos(&x, seq, 4, 20, 2), 0);
	shows(seq, ids);
	gen = map.gen;
	run = seg[0].run;
	assert_int_equal(seqs_lids(&x), 5 * SEQ_LIDS);
	assert_int_equal(pick(), 0);
	seqs_compact_copy(&x, &c);
	shows(seq, ids);
	assert_int_equal(map.gen, gen);
	/* it goes on meanwhile */
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq, 3, 20, NULL), 0);
	assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq, 2, 23, NULL), 0);
	assert_int_equal(seqs_lids(&x), (7 + 2) * SEQ_LIDS);
	assert_int_equal(end(true), 0);
	shows(seq, more);
	assert_int_not_equal(map.gen, gen);
	assert_int_equal(map.partial, 0);
	assert_int_equal(map.rows, 5);
	assert_int_equal(seg[1].first, 4);
	assert_int_equal(seg[1].pos, 4);
	assert_int_equal(seg[1].shift, 2);
	assert_int_not_equal(seg[0].run, run);
	assert_int_equal(seg[4].run, run);
	assert_int_equal(seqs_lids(&x), 5 * SEQ_LIDS);
	assert_int_equal(pick(), -ENOENT);
}

/* What is not an append comes between. */
static void stale(void **state)
{
	static const u16 ids[] = { 1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 19, 20, 0 };
	u32 seq = with_holes(20, 4), lids = seqs_lids(&x), i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(pick(), 0);
		assert_int_equal(c.seq, seq);
		seqs_compact_copy(&x, &c);
		assert_int_equal(seqs_lids(&x), lids + 2 * SEQ_LIDS);
		if (i == 0)
			assert_int_equal(seqs_repos(&x, seq, 19, 20, 0), 0);
		else if (i == 1)
			assert_int_equal(seqs_drop(&x, seq, 2, 4), 0);	/* nothing there */
		else if (i == 2)
			assert_int_equal(seqs_append(&x, HAWK_SEQ_APPEND, seq, 1, 0, NULL), 0);
		if (i == 2)
			assert_int_equal(seqs_truncate(&x, seq, 20), 0);
		assert_int_equal(end(i != 3), -ESTALE);
		assert_int_equal(seqs_lids(&x), lids);
		shows(seq, ids);
	}
	/* the sequence ends */
	assert_int_equal(pick(), 0);
	seqs_compact_copy(&x, &c);
	assert_int_equal(seqs_free(&x, seq), 0);
	assert_int_equal(end(true), -ESTALE);
	assert_int_equal(seqs_lids(&x), 0);
}

static void shared(void **state)
{
	static const u16 ids[] = { 1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 19, 20, 0 };
	u32 a = with_holes(20, 4), b = seqs_fork(&x, a), run;

	(void)state;
	/* all of it: both show the new blocks then */
	assert_int_equal(pick(), 0);
	seqs_compact_copy(&x, &c);
	assert_int_equal(end(true), 0);
	assert_int_equal(seqs_lids(&x), 3 * SEQ_LIDS);
	shows(a, ids);
	run = seg[0].run;
	shows(b, ids);
	assert_int_equal(seg[0].run, run);
	/* parts of it: a copy would take more, not less */
	assert_int_equal(seqs_drop(&x, a, 4, 6), 0);
	assert_int_equal(seqs_drop(&x, a, 12, 14), 0);
	look(a);
	assert_true(5 * map.partial > 2 * (map.rows - 1));
	assert_int_equal(pick(), -ENOENT);
	assert_int_equal(seqs_free(&x, b), 0);
	assert_int_equal(pick(), 0);
	assert_int_equal(c.rows, 1);
	assert_int_equal(end(false), -ESTALE);
	/* each its half of every block */
	b = with_holes(20, 0);
	c.seq = seqs_fork(&x, b);
	for (run = 0; run < 4; run++) {
		assert_int_equal(seqs_drop(&x, b, 4 * run, 4 * run + 2), 0);
		assert_int_equal(seqs_drop(&x, c.seq, 4 * run + 2, 4 * run + 4), 0);
	}
	for (run = 0; run < 4 && !pick(); run++) {
		assert_int_equal(c.seq, a);
		assert_int_equal(end(false), -ESTALE);
	}
	/* what the sequence shows twice */
	assert_int_equal(seqs_compose(&x, a, a, 0, 20, 0), 0);
	assert_int_equal(pick(), -ENOENT);
}

static void limits(void **state)
{
	u32 seq = with_holes(40, 9), all, i, a;

	(void)state;
	/* what the host has no room for comes the next time */
	c.max = 3;
	c.src = src;
	assert_int_equal(hawk_seq_compact_pick(x.s, &c), 0);
	assert_int_equal(c.n, 3);
	seqs_compact_copy(&x, &c);
	assert_int_equal(end(true), 0);
	assert_int_equal(pick(), 0);
	assert_int_equal(c.src[0].first, 8);	/* its block is not full */
	seqs_compact_copy(&x, &c);
	assert_int_equal(end(true), 0);
	look(seq);
	assert_int_equal(map.partial, 1);	/* 18 tokens, and then the last segment */
	assert_int_equal(map.rows, 6);
	assert_int_equal(seqs_lids(&x), map.rows * SEQ_LIDS);

	/* no run, or the last one */
	assert_int_equal(seqs_free(&x, seq), 0);
	with_holes(20, 4);
	all = seqs_new(&x);
	for (i = 0; i < 15; i++) {
		a = with_holes(1, 0);
		assert_int_equal(seqs_compose(&x, all, a, 0, 1, 0), 0);
		assert_int_equal(seqs_free(&x, a), 0);
	}
	assert_int_equal(pick(), -ENOSPC);
	assert_int_equal(seqs_drop(&x, all, 0, 1), 0);
	assert_int_equal(pick(), -ENOSPC);
	assert_int_equal(seqs_drop(&x, all, 1, 2), 0);
	assert_int_equal(pick(), 0);
	assert_int_equal(end(false), -ESTALE);
}

/* Hidden tokens stay, and so does what they fill a block with. */
static void hidden(void **state)
{
	u32 seq = with_holes(16, 4);

	(void)state;
	assert_int_equal(seqs_append(&x, HAWK_SEQ_RESERVE, seq, 6, 16, NULL), 0);
	assert_int_equal(pick(), 0);
	assert_int_equal(c.n, 3);
	seqs_compact_copy(&x, &c);
	assert_int_equal(seqs_advance(&x, seq, 3), 0);
	assert_int_equal(end(true), 0);
	look(seq);
	assert_int_equal(map.visible, 11);
	assert_int_equal(map.hidden, 3);
	assert_int_equal(map.partial, 1);
}

/* It is to save room: no block is forgotten for it. */
static void no_loss(void **state)
{
	u32 seq = with_holes(20, 4), i, n = x.s->max_blocks - seqs_lids(&x);
	u64 lost = 0;

	(void)state;
	for (i = 0; i < n; i++)
		assert_int_equal(host_fill(&x.h, x.s, HAWK_LID(1, 0, 0, i * SEQ_BT), NULL, 1, 1), 0);
	assert_int_equal(pick(), -ENOSPC);
	for (i = 0; i < 2 * SEQ_LIDS; i++)
		assert_int_equal(hawk_block_free(x.s, HAWK_LID(1, 0, 0, i * SEQ_BT)), 0);
	assert_int_equal(pick(), 0);
	assert_int_equal(c.seq, seq);
	assert_int_equal(c.rows, 2);
	seqs_compact_copy(&x, &c);
	assert_int_equal(end(true), 0);
	for (i = 0; i < x.s->nbuckets; i++)
		lost += x.s->bucket[i].count[HAWK_N_EVICT_DROP];
	assert_int_equal(lost, 0);
	for (i = 2 * SEQ_LIDS; i < n; i++)
		assert_int_equal(hawk_block_free(x.s, HAWK_LID(1, 0, 0, i * SEQ_BT)), 0);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(rule), T(moves), T(stale), T(shared), T(limits), T(hidden), T(no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
