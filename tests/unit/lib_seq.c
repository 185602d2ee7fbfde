// SPDX-License-Identifier: MIT
/*
 * lib_seq.c - sequences: what they show, what is given back, whose bytes are whose
 *
 * Every token that is written has a value of its own, stamped into each plane of each
 * of its blocks.  So what a sequence shows can be told from the bytes that its segments
 * lead to, whoever copied them there.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfixture.h"

#define MIB		(1ull << 20)
#define LAYERS		2u
#define HEADS		2u
#define ROW		(LAYERS * HEADS)	/* blocks of a row */
#define PLANES		2u
#define TOKEN_BYTES	(FX_BLOCK / PLANES / FX_TOKENS)
#define ITEMS		256u
#define SEGS		512u

static struct hawk_kv_params seq_params(const struct fx *f)
{
	struct hawk_kv_params p = fx_params(f);

	p.layers = LAYERS;
	p.head_groups = HEADS;
	p.max_blocks = 16384;
	p.seqs = 64;
	p.token_bytes = TOKEN_BYTES;
	p.planes = PLANES;
	p.shift = 1;
	return p;
}

/* A device, and a space with sequences instead of the usual one. */
static void seq_open(struct fx *f, uint64_t dram, uint64_t flash)
{
	struct hawk_kv_params p;

	fx_open(f, dram, flash);
	hawk_kv_close(f->kv);
	p = seq_params(f);
	assert_ok(hawk_kv_create(f->h, &p, &f->kv));
}

static struct hawk_stats stats(struct hawk_kv *kv)
{
	struct hawk_stats st = { 0 };

	assert_ok(hawk_kv_stats(kv, &st));
	return st;
}

/* The blocks that are there are @n, at once or as soon as the keeper has been at work. */
static void settles_at(struct hawk_kv *kv, uint64_t n)
{
	while (stats(kv).blocks != n)
		sched_yield();
}

static struct hawk_seq_map map_of(struct hawk_kv *kv, uint32_t seq)
{
	struct hawk_seg seg[SEGS];
	struct hawk_seq_map map;

	assert_ok(hawk_seq_segs(kv, seq, seg, SEGS, &map));
	return map;
}

/* The blocks that are there are those of one sequence; the keeper may compact it still. */
static void settles_as(struct hawk_kv *kv, uint32_t seq)
{
	while (stats(kv).blocks != (uint64_t)map_of(kv, seq).rows * ROW)
		sched_yield();
}

/* But for a moment, by the keeper. */
static void nothing_pinned(struct hawk_kv *kv)
{
	while (stats(kv).pinned)
		sched_yield();
}

/* ---- bytes ---- */

struct stamp {
	uint32_t value;
	uint32_t layer;
	uint32_t head;
	uint32_t plane;
};

static struct stamp *stamp_at(uint8_t *block, uint32_t plane, uint32_t slot, bool end)
{
	size_t off = (size_t)(plane * FX_TOKENS + slot) * TOKEN_BYTES;

	return (struct stamp *)(block + off + (end ? TOKEN_BYTES - sizeof(struct stamp) : 0));
}

static void write_token(uint8_t *block, uint64_t lid, uint32_t slot, uint32_t value)
{
	uint32_t p;

	for (p = 0; p < PLANES; p++) {
		struct stamp st = {
			.value = value, .layer = lid >> HAWK_LID_LAYER_SHIFT & HAWK_LID_LAYER_MAX,
			.head = lid >> HAWK_LID_HEAD_SHIFT & HAWK_LID_HEAD_MAX, .plane = p,
		};

		*stamp_at(block, p, slot, false) = st;
		*stamp_at(block, p, slot, true) = st;
	}
}

/* Is this token @value in all planes of block @lid? */
static bool is_token(uint8_t *block, uint64_t lid, uint32_t slot, uint32_t value)
{
	bool good = true;
	uint32_t p;

	for (p = 0; p < PLANES; p++) {
		struct stamp want = {
			.value = value, .layer = lid >> HAWK_LID_LAYER_SHIFT & HAWK_LID_LAYER_MAX,
			.head = lid >> HAWK_LID_HEAD_SHIFT & HAWK_LID_HEAD_MAX, .plane = p,
		};

		good &= !memcmp(stamp_at(block, p, slot, false), &want, sizeof(want)) &&
			!memcmp(stamp_at(block, p, slot, true), &want, sizeof(want));
	}
	return good;
}

/* Writes values from @value on into the slots of an append. */
static void write_tokens(struct hawk_kv *kv, const struct hawk_append *a, uint32_t value)
{
	uint32_t i, slot, tok;

	for (i = 0; i < a->n; i++) {
		uint32_t first = (uint32_t)a->it[i].lid;	/* token of its slot 0 */
		uint8_t *block = hawk_addr(kv, a->it[i].vt);

		assert_non_null(block);
		for (slot = 0; slot < FX_TOKENS; slot++) {
			tok = first + slot;
			if (tok >= a->tok && tok < a->tok + a->len)
				write_token(block, a->it[i].lid, slot, value + tok - a->tok);
		}
	}
}

static void put_all(struct hawk_kv *kv, struct hawk_item *it, uint32_t n)
{
	assert_int_equal(hawk_put(kv, it, n, NULL), n);
}

/* Appends @n tokens of the values from @value on: 0 or a negative errno. */
static int append(struct hawk_kv *kv, uint32_t seq, uint32_t n, uint32_t pos, uint32_t value)
{
	struct hawk_item it[ITEMS];
	struct hawk_append a = { .seq = seq, .len = n, .pos = pos, .it = it, .max = ITEMS };
	int ret = hawk_seq_append(kv, &a);

	if (ret < 0)
		return ret;
	write_tokens(kv, &a, value);
	put_all(kv, it, a.n);
	return 0;
}

/* ---- what a sequence should show ---- */

#define HISTORY	4096u

struct token {
	uint32_t value;
	uint32_t pos;
	int32_t shift;
	bool visible;
};

struct model {
	uint32_t len;
	struct token t[HISTORY];
};

static void model_append(struct model *m, uint32_t n, uint32_t pos, uint32_t value)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		m->t[m->len++] = (struct token) { value + i, pos + i, 0, true };
}

/* Has one block the tokens [@j, @end) of a segment? */
static bool block_check(struct hawk_kv *kv, const struct model *m, const struct hawk_seg *seg,
			uint64_t lid, uint32_t j, uint32_t end)
{
	struct hawk_item it = { .lid = lid };
	bool good = true;

	if (hawk_get(kv, &it, 1, NULL, NULL) != 1)
		return false;
	for (; good && j < end; j++)
		good = is_token(hawk_addr(kv, it.vt), lid, (seg->tok + j) % FX_TOKENS,
				m->t[seg->first + j].value);
	it = (struct hawk_item) { .vt = it.vt };
	assert_int_equal(hawk_unpin(kv, &it, 1), 1);
	return good;
}

/* Does a segment lead to the right bytes? */
static bool seg_check(struct hawk_kv *kv, const struct model *m, const struct hawk_seg *seg)
{
	uint32_t j, end, i;

	for (j = 0; j < seg->len; j = end) {
		end = j + FX_TOKENS - (seg->tok + j) % FX_TOKENS;
		end = end < seg->len ? end : seg->len;
		for (i = 0; i < ROW; i++)
			if (!block_check(kv, m, seg, HAWK_LID(seg->run, i / HEADS, i % HEADS,
							      (seg->tok + j) / FX_TOKENS * FX_TOKENS),
					 j, end))
				return false;
	}
	return true;
}

/* The segments, which are those of @map, and what they lead to; false: that is wrong. */
static bool segs_check(struct hawk_kv *kv, const struct model *m, const struct hawk_seq_map *map,
		       const struct hawk_seg *seg)
{
	uint32_t i = 0, k, j, visible = 0;

	assert_int_equal(map->len, m->len);
	for (k = 0; k < map->count; k++) {
		for (; i < seg[k].first; i++)
			assert_false(m->t[i].visible);
		for (j = 0; j < seg[k].len; j++, i++) {
			assert_true(i < m->len && m->t[i].visible);
			assert_int_equal(seg[k].pos + j, m->t[i].pos);
			assert_int_equal(seg[k].shift, m->t[i].shift);
			visible++;
		}
	}
	for (; i < m->len; i++)
		assert_false(m->t[i].visible);
	assert_int_equal(map->visible, visible);
	for (k = 0; k < map->count; k++)
		if (!seg_check(kv, m, &seg[k]))
			return false;
	return true;
}

/*
 * What a map says may be out of date a moment later, because the sequence is compacted:
 * then its blocks may be gone, or be somebody else's.  The generation tells.
 */
static void model_check(struct hawk_kv *kv, const struct model *m, uint32_t seq)
{
	struct hawk_seq_map map, again;
	struct hawk_seg seg[SEGS];

	for (;;) {
		assert_ok(hawk_seq_segs(kv, seq, seg, SEGS, &map));
		if (segs_check(kv, m, &map, seg))
			return;
		hawk_seq_segs(kv, seq, NULL, 0, &again);
		if (again.gen == map.gen)
			fail_msg("sequence %#x shows wrong bytes, or blocks that are not there", seq);
	}
}

/* ---- tests ---- */

static void operations(void **state)
{
	struct model m = { 0 };
	struct hawk_seq_map map;
	struct hawk_seg seg[8];
	uint32_t seq, other, i;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &seq));
	assert_ok(append(f.kv, seq, 5 * FX_TOKENS + 3, 100, 1000));
	model_append(&m, 5 * FX_TOKENS + 3, 100, 1000);
	model_check(f.kv, &m, seq);
	assert_int_equal(stats(f.kv).blocks, 6 * ROW);
	nothing_pinned(f.kv);

	/* two of six rows go at once, the half ones stay */
	assert_int_equal(hawk_seq_drop(f.kv, seq, FX_TOKENS - 1, 3 * FX_TOKENS + 2), 2 * ROW);
	assert_int_equal(stats(f.kv).blocks, 4 * ROW);
	for (i = FX_TOKENS - 1; i < 3 * FX_TOKENS + 2; i++)
		m.t[i].visible = false;
	model_check(f.kv, &m, seq);

	assert_ok(hawk_seq_repos(f.kv, seq, 3 * FX_TOKENS + 2, m.len, 2 * FX_TOKENS));
	for (i = 3 * FX_TOKENS + 2; i < m.len; i++)
		m.t[i].shift = 2 * FX_TOKENS;
	model_check(f.kv, &m, seq);
	assert_int_equal(hawk_seq_repos(f.kv, seq, 0, 3, 200), -EINVAL);

	assert_ok(hawk_seq_fork(f.kv, seq, 0, &other));
	assert_int_equal(hawk_seq_free(f.kv, seq), 0);
	model_check(f.kv, &m, other);
	assert_int_equal(hawk_seq_segs(f.kv, seq, NULL, 0, NULL), -ENOENT);
	assert_int_equal(hawk_seq_segs(f.kv, other, seg, 1, &map), -E2BIG);
	assert_int_equal(map.count, 2);

	assert_int_equal(hawk_seq_truncate(f.kv, other, 4 * FX_TOKENS), 2 * ROW);
	m.len = 4 * FX_TOKENS;
	model_check(f.kv, &m, other);
	assert_int_equal(hawk_seq_free(f.kv, other), 2 * ROW);
	assert_int_equal(stats(f.kv).blocks, 0);
	fx_close(&f);
}

/* The last block, partly full, in two hands: who writes on gets a copy. */
static void copy_on_write(void **state)
{
	struct model a = { 0 }, b;
	uint32_t seq, fork;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &seq));
	assert_ok(append(f.kv, seq, FX_TOKENS + 5, 0, 1));
	model_append(&a, FX_TOKENS + 5, 0, 1);
	b = a;
	assert_ok(hawk_seq_fork(f.kv, seq, 0, &fork));
	assert_int_equal(stats(f.kv).blocks, 2 * ROW);

	assert_ok(append(f.kv, fork, 3, b.len, 500));
	model_append(&b, 3, b.len, 500);
	assert_int_equal(stats(f.kv).blocks, 3 * ROW);
	model_check(f.kv, &b, fork);
	model_check(f.kv, &a, seq);

	/* nobody else shows the old one any more: no further copy */
	assert_ok(append(f.kv, seq, 4, a.len, 900));
	model_append(&a, 4, a.len, 900);
	assert_int_equal(stats(f.kv).blocks, 3 * ROW);
	model_check(f.kv, &b, fork);
	model_check(f.kv, &a, seq);

	/* what was copied is kept for that until the copy's next operation */
	assert_int_equal(hawk_seq_free(f.kv, seq), 0);
	model_check(f.kv, &b, fork);
	assert_int_equal(hawk_seq_truncate(f.kv, fork, b.len), ROW);
	model_check(f.kv, &b, fork);
	assert_int_equal(hawk_seq_free(f.kv, fork), 2 * ROW);
	nothing_pinned(f.kv);
	fx_close(&f);
}

/* A decoder keeps its last blocks open and asks for new ones only. */
static void open_block(void **state)
{
	struct hawk_item it[ROW], none;
	struct hawk_append a = { .len = 1, .it = it, .max = ROW };
	struct hawk_append cur = { 0 };
	struct model m = { 0 };
	uint32_t i;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &a.seq));
	for (i = 0; i < 3 * FX_TOKENS + 4; i++) {
		struct hawk_item next[ROW];

		a.pos = i;
		a.flags = HAWK_APPEND_OPEN;
		a.it = next;
		assert_int_equal(hawk_seq_append(f.kv, &a), i % FX_TOKENS ? 0 : ROW);
		if (a.n) {
			if (i)
				put_all(f.kv, it, ROW);
			memcpy(it, next, sizeof(it));
			cur = a;
			cur.it = it;
		}
		cur.tok = a.tok;
		write_tokens(f.kv, &cur, 70 + i);
		assert_int_equal(stats(f.kv).pinned, ROW);
	}
	/* what is being filled cannot be shared */
	assert_ok(hawk_seq_fork(f.kv, a.seq, 0, &i));
	a.flags = 0;
	a.it = &none;
	a.max = 0;
	assert_int_equal(hawk_seq_append(f.kv, &a), -E2BIG);
	assert_int_equal(a.n, ROW);
	a.it = it;
	{
		struct hawk_item more[ROW];

		a.it = more;
		a.max = ROW;
		assert_int_equal(hawk_seq_append(f.kv, &a), -EAGAIN);
	}
	put_all(f.kv, it, ROW);
	model_append(&m, 3 * FX_TOKENS + 4, 0, 70);
	model_check(f.kv, &m, a.seq);
	model_check(f.kv, &m, i);
	nothing_pinned(f.kv);
	fx_close(&f);
}

/* Pins, or unpins, the blocks of rows [@row, @end) of a run. */
static void pin_rows(struct hawk_kv *kv, uint32_t run, uint32_t row, uint32_t end, bool pin)
{
	struct hawk_item it[ITEMS];
	uint32_t i, n = (end - row) * ROW;

	for (i = 0; i < n; i++)
		it[i] = (struct hawk_item) {
			.lid = HAWK_LID(run, i % ROW / HEADS, i % HEADS,
					(row + i / ROW) * FX_TOKENS),
		};
	assert_int_equal(pin ? hawk_pin(kv, it, n) : hawk_unpin(kv, it, n), n);
}

/* An append that finds no room leaves everything as it was, whoever shows the last row. */
static void no_room(void **state)
{
	const uint32_t rows = FX_CHUNK_FRAMES / ROW - 1;	/* of the one chunk that there is */
	uint32_t fork, len = (rows - 1) * FX_TOKENS + 5;
	struct hawk_item it[ITEMS];
	struct hawk_append a = { .len = 4 * FX_TOKENS, .pos = len, .it = it, .max = ITEMS };
	struct model m = { 0 };
	struct hawk_seg seg;
	struct fx f;

	(void)state;
	seq_open(&f, 2 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &a.seq));
	assert_ok(append(f.kv, a.seq, len, 0, 1));
	model_append(&m, len, 0, 1);
	assert_int_equal(stats(f.kv).blocks, rows * ROW);
	assert_int_equal(hawk_seq_segs(f.kv, a.seq, &seg, 1, NULL), 1);

	/* what is pinned is not evicted, and the last row is the append's own */
	pin_rows(f.kv, seg.run, 0, rows - 1, true);
	assert_int_equal(hawk_seq_append(f.kv, &a), -ENOSPC);
	model_check(f.kv, &m, a.seq);
	assert_ok(hawk_seq_fork(f.kv, a.seq, 0, &fork));
	pin_rows(f.kv, seg.run, rows - 1, rows, true);
	assert_int_equal(hawk_seq_append(f.kv, &a), -ENOSPC);
	a.flags = HAWK_APPEND_HIDDEN;
	a.seq = fork;
	assert_int_equal(hawk_seq_append(f.kv, &a), -ENOSPC);
	pin_rows(f.kv, seg.run, 0, rows, false);
	nothing_pinned(f.kv);
	assert_int_equal(stats(f.kv).blocks, rows * ROW);
	model_check(f.kv, &m, a.seq);
	model_check(f.kv, &m, fork);
	fx_close(&f);
}

/* Hidden tokens: room now, visible later, or never. */
static void hidden(void **state)
{
	struct hawk_item it[ITEMS];
	struct hawk_append a = {
		.len = 20, .pos = 3, .flags = HAWK_APPEND_HIDDEN, .it = it, .max = ITEMS,
	};
	struct hawk_seq_map map;
	struct model m = { 0 };
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &a.seq));
	assert_ok(append(f.kv, a.seq, 3, 0, 1));
	model_append(&m, 3, 0, 1);
	assert_int_equal(hawk_seq_append(f.kv, &a), 2 * ROW);
	write_tokens(f.kv, &a, 40);
	put_all(f.kv, it, a.n);
	model_check(f.kv, &m, a.seq);
	assert_ok(hawk_seq_advance(f.kv, a.seq, 5));
	model_append(&m, 5, 3, 40);
	model_check(f.kv, &m, a.seq);
	assert_int_equal(hawk_seq_segs(f.kv, a.seq, NULL, 0, &map), -E2BIG);
	assert_int_equal(map.hidden, 15);
	assert_int_equal(hawk_seq_advance(f.kv, a.seq, 16), -EINVAL);
	assert_int_equal(hawk_seq_truncate(f.kv, a.seq, 8), ROW);
	model_check(f.kv, &m, a.seq);
	assert_int_equal(stats(f.kv).blocks, ROW);
	fx_close(&f);
}

/* What is pinned is given back when the pin goes. */
static void pinned(void **state)
{
	struct hawk_item it = { 0 };
	struct hawk_seg seg;
	uint32_t seq;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &seq));
	assert_ok(append(f.kv, seq, 2 * FX_TOKENS, 0, 1));
	assert_int_equal(hawk_seq_segs(f.kv, seq, &seg, 1, NULL), 1);
	it.lid = HAWK_LID(seg.run, 1, 0, seg.tok);
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_int_equal(hawk_seq_free(f.kv, seq), 2 * ROW - 1);
	assert_int_equal(stats(f.kv).blocks, 1);
	assert_true(is_token(hawk_addr(f.kv, it.vt), it.lid, 0, 1));
	it.lid = 0;
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	settles_at(f.kv, 0);
	fx_close(&f);
}

/*
 * All LID sequence numbers are taken, by sequences that have ended with a block pinned:
 * once a pin has ended an append gets one, whether or not the keeper was there first.
 */
static void numbers_waiting(void **state)
{
	struct hawk_item it[128] = { 0 }, one;
	uint32_t seq, i, round;
	struct hawk_seg seg;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	for (i = 0; i < 128; i++) {
		assert_ok(hawk_seq_new(f.kv, 0, &seq));
		assert_ok(append(f.kv, seq, 1, 0, 1));
		assert_int_equal(hawk_seq_segs(f.kv, seq, &seg, 1, NULL), 1);
		it[i].lid = HAWK_LID(seg.run, 0, 0, 0);
		assert_int_equal(hawk_pin(f.kv, &it[i], 1), 1);
		assert_true(hawk_seq_free(f.kv, seq) >= 0);
	}
	assert_ok(hawk_seq_new(f.kv, 0, &seq));
	assert_int_equal(append(f.kv, seq, 1, 0, 1), -ENOSPC);
	assert_ok(hawk_seq_free(f.kv, seq));
	for (round = 0; round < 256; round++) {
		i = round % 128;
		one = (struct hawk_item) { .vt = it[i].vt };
		assert_ok(hawk_seq_new(f.kv, 0, &seq));
		assert_int_equal(hawk_unpin(f.kv, &one, 1), 1);
		assert_ok(append(f.kv, seq, 1, 0, 1));
		assert_int_equal(hawk_seq_segs(f.kv, seq, &seg, 1, NULL), 1);
		it[i] = (struct hawk_item) { .lid = HAWK_LID(seg.run, 0, 0, 0) };
		assert_int_equal(hawk_pin(f.kv, &it[i], 1), 1);
		assert_true(hawk_seq_free(f.kv, seq) >= 0);
	}
	for (i = 0; i < 128; i++)
		it[i].lid = 0;
	assert_int_equal(hawk_unpin(f.kv, it, 128), 128);
	settles_at(f.kv, 0);
	fx_close(&f);
}

/* Sequences end with the handle that made them, unless they are to be kept. */
static void owners(void **state)
{
	struct hawk_kv *one, *two;
	struct hawk_kv_params p;
	struct model m = { 0 };
	uint32_t mine, kept, other;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	p = seq_params(&f);
	p.name = "lib_seq";
	p.mode = 0600;
	assert_ok(hawk_kv_create(f.h, &p, &one));
	assert_ok(hawk_kv_attach(f.h, "lib_seq", &two));
	assert_ok(hawk_seq_new(one, 0, &mine));
	assert_ok(append(one, mine, 3 * FX_TOKENS, 0, 1));
	assert_ok(hawk_seq_fork(one, mine, HAWK_SEQ_KEEP, &kept));
	assert_int_equal(hawk_seq_truncate(one, kept, FX_TOKENS), 0);
	assert_ok(hawk_seq_new(two, 0, &other));
	assert_ok(append(two, other, FX_TOKENS, 0, 90));
	model_append(&m, FX_TOKENS, 0, 1);
	/* all handles of the space may use it */
	model_check(two, &m, kept);
	/* those of another space must not */
	assert_int_equal(hawk_seq_segs(f.kv, kept, NULL, 0, NULL), -ENOENT);
	assert_int_equal(hawk_seq_free(f.kv, kept), -ENOENT);
	hawk_kv_close(one);
	assert_int_equal(hawk_seq_segs(two, mine, NULL, 0, NULL), -ENOENT);
	assert_int_equal(stats(two).blocks, 2 * ROW);
	model_check(two, &m, kept);
	hawk_kv_close(two);
	assert_ok(hawk_kv_attach(f.h, "lib_seq", &one));
	assert_int_equal(stats(one).blocks, ROW);
	model_check(one, &m, kept);
	assert_int_equal(hawk_seq_free(one, kept), ROW);
	hawk_kv_close(one);
	assert_ok(hawk_kv_destroy(f.h, "lib_seq"));
	fx_close(&f);
}

/* HAWK_SEQ_LAST, one failure among others, and words for all that is refused. */
static void batches(void **state)
{
	struct hawk_seq_op op[] = {
		{ .op = HAWK_SEQ_NEW },
		{ .op = HAWK_SEQ_APPEND, .seq = HAWK_SEQ_LAST, .len = 40 },
		{ .op = HAWK_SEQ_DROP, .seq = HAWK_SEQ_LAST, .start = 30, .end = 50 },
		{ .op = HAWK_SEQ_FORK, .src = HAWK_SEQ_LAST },
		{ .op = HAWK_SEQ_TRUNCATE, .seq = HAWK_SEQ_LAST, .len = 10 },
		{ .op = HAWK_SEQ_FORK, .src = 0x1234567 },
		{ .op = HAWK_SEQ_TRUNCATE, .seq = HAWK_SEQ_LAST },
	};
	struct hawk_kv_params p;
	struct hawk_append a = { .len = 1, .flags = 4 };
	struct hawk_kv *kv;
	uint32_t seq;
	struct fx f;

	(void)state;
	seq_open(&f, 8 * MIB, 0);
	assert_int_equal(hawk_seq_batch(f.kv, op, 7), 4);
	assert_int_equal(op[1].seq, op[0].seq);
	assert_int_equal(op[2].status, -EINVAL);
	assert_int_equal(op[3].status, 0);
	assert_int_not_equal(op[3].seq, op[0].seq);
	assert_int_equal(op[4].seq, op[3].seq);
	assert_int_equal(op[4].len, 10);
	assert_int_equal(op[5].status, -ENOENT);
	assert_int_equal(op[6].status, -ENOENT);

	assert_int_equal(hawk_seq_batch(f.kv, op, 0), -EINVAL);
	assert_int_equal(hawk_seq_batch(f.kv, op, HAWK_BATCH_MAX + 1), -E2BIG);
	assert_int_equal(hawk_seq_batch(f.kv, NULL, 1), -EFAULT);
	assert_int_equal(hawk_seq_append(f.kv, &a), -EOPNOTSUPP);
	a.flags = 0;
	a.max = 1;
	assert_int_equal(hawk_seq_append(f.kv, &a), -EFAULT);
	assert_int_equal(hawk_seq_new(f.kv, 2, &seq), -EINVAL);

	p = seq_params(&f);
	p.seqs = HAWK_SEQS_MAX + 1;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	assert_non_null(strstr(hawk_strerror_last(), "seqs"));
	p = seq_params(&f);
	p.seqs = 0;
	p.segs = 8;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	p = seq_params(&f);
	p.token_bytes++;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	assert_non_null(strstr(hawk_strerror_last(), "planes"));
	p.token_bytes = 0;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);

	p = seq_params(&f);
	p.seqs = 0;
	assert_ok(hawk_kv_create(f.h, &p, &kv));
	assert_int_equal(hawk_seq_new(kv, 0, &seq), -EOPNOTSUPP);
	assert_int_equal(hawk_seq_segs(kv, 1, NULL, 0, NULL), -EOPNOTSUPP);
	hawk_kv_close(kv);
	p = seq_params(&f);
	p.shift = 0;
	assert_ok(hawk_kv_create(f.h, &p, &kv));
	assert_ok(hawk_seq_new(kv, 0, &seq));
	assert_ok(append(kv, seq, 8, 100, 1));
	assert_int_equal(hawk_seq_repos(kv, seq, 0, 8, 1), -EOPNOTSUPP);
	hawk_kv_close(kv);
	fx_close(&f);
}

/* ---- compaction ---- */

#define SPARSE	40u	/* rows, of which a few tokens each stay */

/* All but the first @keep tokens of each of @rows rows. */
static void thin_out(struct hawk_kv *kv, struct model *m, uint32_t seq, uint32_t rows,
		     uint32_t keep)
{
	uint32_t r, i;

	for (r = 0; r < rows; r++) {
		assert_ok(hawk_seq_drop(kv, seq, r * FX_TOKENS + keep, (r + 1) * FX_TOKENS));
		for (i = keep; i < FX_TOKENS; i++)
			m->t[r * FX_TOKENS + i].visible = false;
	}
}

/* No more than 40 % of its blocks are partly empty, the last one not counted. */
static bool is_dense(struct hawk_kv *kv, uint32_t seq)
{
	struct hawk_seq_map map = map_of(kv, seq);

	return 5 * map.partial <= 2 * (map.rows - 1);
}

/* A sparse sequence gets full blocks while it grows. */
static void compacted(void **state)
{
	static struct model m;
	uint32_t seq, pos;
	struct fx f;

	(void)state;
	memset(&m, 0, sizeof(m));
	seq_open(&f, 16 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &seq));
	assert_ok(append(f.kv, seq, SPARSE * FX_TOKENS, 0, 1));
	model_append(&m, SPARSE * FX_TOKENS, 0, 1);
	thin_out(f.kv, &m, seq, SPARSE, 5);
	for (pos = SPARSE * FX_TOKENS; !is_dense(f.kv, seq);) {
		if (m.len < (SPARSE + 12) * FX_TOKENS) {
			assert_ok(append(f.kv, seq, 3, pos, 7000 + m.len));
			model_append(&m, 3, pos, 7000 + m.len);
			pos += 3;
		}
		model_check(f.kv, &m, seq);
	}
	model_check(f.kv, &m, seq);
	settles_as(f.kv, seq);
	model_check(f.kv, &m, seq);
	nothing_pinned(f.kv);
	assert_ok(hawk_seq_free(f.kv, seq));
	settles_at(f.kv, 0);
	fx_close(&f);
}

/* Two that show the same get the same full blocks, and go on apart. */
static void compacted_together(void **state)
{
	static struct model m, b;
	uint32_t seq, fork;
	struct fx f;

	(void)state;
	memset(&m, 0, sizeof(m));
	seq_open(&f, 16 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &seq));
	assert_ok(append(f.kv, seq, SPARSE * FX_TOKENS + 9, 0, 1));
	model_append(&m, SPARSE * FX_TOKENS + 9, 0, 1);
	thin_out(f.kv, &m, seq, SPARSE, 6);
	assert_ok(hawk_seq_fork(f.kv, seq, 0, &fork));
	while (!is_dense(f.kv, fork))
		sched_yield();
	settles_as(f.kv, seq);
	b = m;
	assert_ok(append(f.kv, fork, 2, 700, 9000));
	model_append(&b, 2, 700, 9000);
	model_check(f.kv, &m, seq);
	model_check(f.kv, &b, fork);
	fx_close(&f);
}

/* ---- chance ---- */

#define MANY	12u
#define LONG	512u		/* tokens of a history, so that nothing has to be forgotten */

static unsigned int env_number(const char *name, unsigned int def)
{
	const char *v = getenv(name);

	return v ? (unsigned int)strtoul(v, NULL, 0) : def;
}

struct world {
	struct hawk_kv *kv;
	unsigned int rnd;
	uint32_t value;
	uint32_t refused;
	bool there[MANY];
	uint32_t seq[MANY];
	struct model *m;
};

static uint32_t chance(struct world *w, uint32_t n)
{
	return (uint32_t)rand_r(&w->rnd) % n;
}

/* No room of some kind: then nothing has changed, which the next look shows. */
static bool done(struct world *w, int ret)
{
	if (ret >= 0)
		return true;
	if (ret != -ENOSPC && ret != -EDQUOT)
		fail_msg("%d: %s", ret, hawk_strerror_last());
	w->refused++;
	return false;
}

static void do_append(struct world *w, uint32_t i)
{
	struct model *m = &w->m[i];
	uint32_t n = 1 + chance(w, 3 * FX_TOKENS), pos = chance(w, 1000);

	if (m->len + n > LONG)
		return;
	if (done(w, append(w->kv, w->seq[i], n, pos, w->value)))
		model_append(m, n, pos, w->value);
	w->value += n;
}

static void do_range(struct world *w, uint32_t i)
{
	struct model *m = &w->m[i], *o;
	uint32_t start, end, k, j = chance(w, MANY);
	int32_t shift = (int32_t)chance(w, 20) - 19;	/* never below position 0 */

	if (!m->len)
		return;
	start = chance(w, m->len);
	end = start + 1 + chance(w, m->len - start);
	switch (chance(w, 4)) {
	case 0:
	case 1:
		end = start + 1 + (end - start) / 4;
		if (!done(w, hawk_seq_drop(w->kv, w->seq[i], start, end)))
			break;
		for (k = start; k < end; k++)
			m->t[k].visible = false;
		break;
	case 2:
		if (!done(w, hawk_seq_repos(w->kv, w->seq[i], start, end, shift)))
			break;
		for (k = start; k < end; k++)
			m->t[k].shift += shift;
		break;
	default:
		o = &w->m[j];
		if (!w->there[j] || o->len + end - start > LONG ||
		    !done(w, hawk_seq_compose(w->kv, w->seq[j], w->seq[i], start, end, shift)))
			break;
		for (k = start; k < end; k++) {
			o->t[o->len] = m->t[k];
			o->t[o->len++].shift += shift;
		}
	}
}

static void do_one(struct world *w)
{
	uint32_t i = chance(w, MANY), j = chance(w, MANY), len;
	struct model *m = &w->m[i];

	if (!w->there[i]) {
		m->len = 0;
		if (w->there[j] && chance(w, 4)) {
			w->there[i] = done(w, hawk_seq_fork(w->kv, w->seq[j], 0, &w->seq[i]));
			*m = w->m[j];
		} else {
			w->there[i] = done(w, hawk_seq_new(w->kv, 0, &w->seq[i]));
		}
		return;
	}
	switch (chance(w, 10)) {
	case 0:
		assert_ok(hawk_seq_free(w->kv, w->seq[i]));
		w->there[i] = false;
		break;
	case 1:
		len = m->len - chance(w, m->len / 4 + 1);
		if (done(w, hawk_seq_truncate(w->kv, w->seq[i], len)))
			m->len = len;
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		do_append(w, i);
		break;
	default:
		do_range(w, i);
	}
}

static void world_check(struct world *w)
{
	uint32_t i;

	for (i = 0; i < MANY; i++)
		if (w->there[i])
			model_check(w->kv, &w->m[i], w->seq[i]);
}

static void world_end(struct world *w)
{
	uint32_t i;

	for (i = 0; i < MANY; i++)
		if (w->there[i])
			assert_ok(hawk_seq_free(w->kv, w->seq[i]));
	free(w->m);
}

static void at_random(void **state)
{
	struct world w = { .rnd = env_number("HAWK_SEQ_SEED", 1), .value = 1 };
	unsigned int n = env_number("HAWK_SEQ_N", 3000), i;
	struct fx f;

	(void)state;
	print_message("# %u operations, seed %u\n", n, w.rnd);
	seq_open(&f, 8 * MIB, 48 * MIB);
	w.kv = f.kv;
	w.m = calloc(MANY, sizeof(*w.m));
	assert_non_null(w.m);
	for (i = 0; i < n; i++) {
		do_one(&w);
		if (i % 100 == 99)
			world_check(&w);
	}
	world_check(&w);
	print_message("# %u refused for want of room\n", w.refused);
	nothing_pinned(f.kv);
	world_end(&w);
	settles_at(f.kv, 0);
	fx_close(&f);
}

/* ---- threads ---- */

#define THREADS	3u

static void *world_run(void *arg)
{
	struct world *w = arg;
	unsigned int i;

	for (i = 0; i < 300; i++) {
		do_one(w);
		if (i % 50 == 49)
			world_check(w);
	}
	world_end(w);
	return NULL;
}

/* Each with sequences of its own that begin as forks of one, which ends meanwhile. */
static void threads(void **state)
{
	struct world w[THREADS];
	pthread_t thread[THREADS];
	uint32_t base, t;
	struct fx f;

	(void)state;
	seq_open(&f, 96 * MIB, 0);
	assert_ok(hawk_seq_new(f.kv, 0, &base));
	assert_ok(append(f.kv, base, 10 * FX_TOKENS + 7, 0, 1));
	for (t = 0; t < THREADS; t++) {
		w[t] = (struct world) { .kv = f.kv, .rnd = t + 1, .value = (t + 1) << 24 };
		w[t].m = calloc(MANY, sizeof(*w[t].m));
		assert_non_null(w[t].m);
		w[t].there[0] = true;
		model_append(&w[t].m[0], 10 * FX_TOKENS + 7, 0, 1);
		assert_ok(hawk_seq_fork(f.kv, base, 0, &w[t].seq[0]));
	}
	for (t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, world_run, &w[t]), 0);
	assert_ok(hawk_seq_free(f.kv, base));
	for (t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	settles_at(f.kv, 0);
	nothing_pinned(f.kv);
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations),
		cmocka_unit_test(copy_on_write),
		cmocka_unit_test(open_block),
		cmocka_unit_test(no_room),
		cmocka_unit_test(hidden),
		cmocka_unit_test(pinned),
		cmocka_unit_test(numbers_waiting),
		cmocka_unit_test(owners),
		cmocka_unit_test(batches),
		cmocka_unit_test(compacted),
		cmocka_unit_test(compacted_together),
		cmocka_unit_test(at_random),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests_name("lib_seq", tests, NULL, NULL);
}
