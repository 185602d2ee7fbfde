// SPDX-License-Identifier: MIT
/*
 * lib_elastic.c - elastic residency: what leaves memory, what stays, what comes back
 *
 * Whole rows of blocks are appended; which bytes a block has follows from the number of
 * its sequence and its place there.  Nobody reads a block while residency is looked at, so
 * whatever comes back does so unasked.
 */
#include <sched.h>
#include <stdlib.h>

#include "libfixture.h"

#define MIB		(1ull << 20)
#define ONE		HAWK_ELASTIC_ONE
#define LAYERS		2u
#define HEADS		2u
#define ROW		(LAYERS * HEADS)	/* blocks of a row */
#define DRAM_ROWS	(2 * FX_CHUNK_FRAMES / ROW)
#define SINK_ROWS	1u
#define WINDOW_ROWS	2u
#define SEQS		8u
#define RUNS		8u			/* segments of a sequence, at most */
#define PACE		4u	/* rows, after which the background may follow: new ones are held */
#define PATIENCE_NS	100000000000ull		/* then the background is not at work */

static struct {
	struct fx f;
	uint32_t n;
	uint32_t seq[SEQS];
	uint32_t rows[SEQS];
} t;

static struct hawk_elastic elastic(void)
{
	struct hawk_elastic e;

	assert_ok(hawk_elastic_get(t.f.kv, &e));
	return e;
}

static void turn(uint32_t on, uint32_t alpha_min)
{
	struct hawk_elastic e = elastic();

	e.on = on;
	e.keep_free = ONE / 16;
	e.alpha_min = alpha_min;
	e.sinks = SINK_ROWS * FX_TOKENS;
	e.window = WINDOW_ROWS * FX_TOKENS;
	assert_ok(hawk_elastic_set(t.f.kv, &e));
	assert_int_equal(e.on, on);
	assert_int_equal(e.alpha, ONE);
}

static int setup(void **state)
{
	struct hawk_kv_params p;

	(void)state;
	memset(&t, 0, sizeof(t));
	fx_open(&t.f, 2 * HAWK_CHUNK_BYTES, 32 * MIB);
	hawk_kv_close(t.f.kv);
	p = fx_params(&t.f);
	p.layers = LAYERS;
	p.head_groups = HEADS;
	p.seqs = SEQS;
	p.buckets = 16;
	assert_ok(hawk_kv_create(t.f.h, &p, &t.f.kv));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&t.f);
	return 0;
}

/* ---- sequences ---- */

static void add_row(uint32_t i)
{
	struct hawk_item it[2 * ROW];
	struct hawk_append a = {
		.seq = t.seq[i], .len = FX_TOKENS, .pos = t.rows[i] * FX_TOKENS, .it = it,
		.max = 2 * ROW,
	};
	uint32_t k;

	assert_ok(hawk_seq_append(t.f.kv, &a));
	assert_int_equal(a.n, ROW);
	for (k = 0; k < ROW; k++)
		fx_fill(hawk_addr(t.f.kv, it[k].vt), t.rows[i] * ROW + k, t.seq[i]);
	assert_int_equal(hawk_put(t.f.kv, it, ROW, NULL), ROW);
	t.rows[i]++;
}

static uint32_t new_seq(void)
{
	assert_true(t.n < SEQS);
	assert_ok(hawk_seq_new(t.f.kv, 0, &t.seq[t.n]));
	return t.n++;
}

/* LIDs of all rows of a sequence, which shows all that it ever had. */
static void lids_of(uint32_t i, uint64_t *lid)
{
	struct hawk_seg seg[RUNS];
	struct hawk_seq_map map;
	uint32_t row = 0, j, k;
	int s, n = hawk_seq_segs(t.f.kv, t.seq[i], seg, RUNS, &map);

	assert_ok(n);
	assert_int_equal(map.rows, t.rows[i]);
	for (s = 0; s < n; s++)
		for (j = 0; j < seg[s].len; j += FX_TOKENS, row++)
			for (k = 0; k < ROW; k++)
				lid[row * ROW + k] = HAWK_LID(seg[s].run, k / HEADS, k % HEADS,
							      seg[s].tok + j);
}

/* Blocks of a row that are in memory. */
static uint32_t in_memory(const uint64_t *lid, uint32_t row)
{
	uint32_t k, n = 0;
	uint64_t vt;

	for (k = 0; k < ROW; k++) {
		vt = hawk_translate_slow(t.f.kv, lid[row * ROW + k]);
		assert_true(vt & HAWK_VT_VALID);
		n += HAWK_VT_TIER(vt) == t.f.dram;
	}
	return n;
}

/* Blocks of a sequence that are in memory.  Those of its sinks and window must be. */
static uint32_t resident(uint32_t i)
{
	uint64_t lid[1024];
	uint32_t row, n = 0, have;

	assert_true(t.rows[i] * ROW <= 1024);
	lids_of(i, lid);
	for (row = 0; row < t.rows[i]; row++) {
		have = in_memory(lid, row);
		if (have < ROW && (row < SINK_ROWS || row + WINDOW_ROWS >= t.rows[i]))
			fail_msg("row %u of the %u of sequence %u has left memory", row, t.rows[i], i);
		n += have;
	}
	return n;
}

static void bases_stay(void)
{
	uint32_t i;

	for (i = 0; i < t.n; i++)
		resident(i);
}

/* Reads all there is; this brings it back, so it is done last. */
static void bytes_right(uint32_t i)
{
	struct hawk_item it;
	uint64_t lid[1024];
	uint32_t b;

	lids_of(i, lid);
	for (b = 0; b < t.rows[i] * ROW; b++) {
		it = (struct hawk_item) { .lid = lid[b] };
		if (hawk_get(t.f.kv, &it, 1, NULL, NULL) != 1)
			fail_msg("block %u of sequence %u: %d", b, i, it.status);
		if (!fx_is(hawk_addr(t.f.kv, it.vt), b, t.seq[i]))
			fail_msg("block %u of sequence %u has the bytes of another", b, i);
		it = (struct hawk_item) { .vt = it.vt };
		assert_int_equal(hawk_unpin(t.f.kv, &it, 1), 1);
	}
}

/* ---- waiting ---- */

/* Until all sequences have been looked at @n times more. */
static struct hawk_elastic after_cycles(uint32_t n)
{
	uint64_t end = fx_now() + PATIENCE_NS, from = elastic().cycles;
	struct hawk_elastic e;

	while ((e = elastic()).cycles < from + n) {
		if (fx_now() > end)
			fail_msg("only %llu of %u looks at all sequences",
				 (unsigned long long)(e.cycles - from), n);
		sched_yield();
	}
	return e;
}

static bool same(const struct hawk_elastic *a, const struct hawk_elastic *b)
{
	return a->alpha == b->alpha && a->evicted == b->evicted && a->reloaded == b->reloaded &&
	       a->used_bytes == b->used_bytes;
}

/* Until nothing moves any more. */
static struct hawk_elastic rest(void)
{
	struct hawk_elastic e = elastic(), next;
	uint32_t i;

	for (i = 0; i < 500; i++) {
		next = after_cycles(4);
		bases_stay();
		if (same(&e, &next))
			return next;
		e = next;
	}
	fail_msg("it does not come to rest: alpha %u, target %u", e.alpha, e.target);
	return e;
}

static uint32_t gap(const struct hawk_elastic *e)
{
	return e->alpha > e->target ? e->alpha - e->target : e->target - e->alpha;
}

/* Blocks that should be in memory of a sequence of @rows rows. */
static uint32_t share(const struct hawk_elastic *e, uint32_t rows)
{
	uint32_t base = SINK_ROWS + WINDOW_ROWS;

	return rows <= base ? rows * ROW
			    : base * ROW + (uint32_t)((uint64_t)e->alpha * (rows - base) * ROW / ONE);
}

static void is_share(const struct hawk_elastic *e, uint32_t i)
{
	uint32_t want = share(e, t.rows[i]);

	assert_in_range(resident(i), want - 2 * ROW, want + 3 * ROW);
}

/* ---- tests ---- */

static struct hawk_item other(uint32_t n)
{
	return (struct hawk_item) { .lid = HAWK_LID(1, n % LAYERS, 0, n / LAYERS * FX_TOKENS) };
}

/* More blocks of no sequence than there is memory make room at the cost of others. */
static void crowd(void)
{
	uint32_t n, most = 2 * DRAM_ROWS * ROW;
	struct hawk_item it;

	for (n = 0; n < most; n++) {
		it = other(n);
		assert_int_equal(hawk_alloc(t.f.kv, &it, 1, NULL), 1);
		it = other(n);
		assert_int_equal(hawk_put(t.f.kv, &it, 1, NULL), 1);
		if (n % 8 == 0)
			bases_stay();
	}
	for (n = 0; n < most; n++) {
		it = other(n);
		assert_int_equal(hawk_free(t.f.kv, &it, 1), 1);
	}
}

/* Sequences come and go; what is in memory of each follows. */
static void contracts_and_grows(void **state)
{
	struct hawk_elastic one, four, again;
	uint32_t i, k, few;

	(void)state;
	turn(1, ONE / 8);
	new_seq();
	while (t.rows[0] < 50)
		add_row(0);
	one = rest();
	assert_int_equal(one.cap_bytes, 2 * HAWK_CHUNK_BYTES);
	assert_in_range(one.alpha, ONE / 4, ONE * 3 / 4);
	assert_in_range(gap(&one), 0, ONE / 32);
	assert_true(one.evicted > 0);
	assert_int_equal(one.used_bytes, resident(0) * FX_BLOCK);
	is_share(&one, 0);

	/* twice of what memory holds */
	for (k = 1; k < 4; k++) {
		i = new_seq();
		while (t.rows[i] < 25) {
			add_row(i);
			bases_stay();
			if (t.rows[i] % PACE == 0)
				after_cycles(3);
		}
	}
	four = rest();
	assert_true(four.alpha < one.alpha);
	assert_in_range(gap(&four), 0, ONE / 32);
	assert_true(four.evicted > one.evicted);
	for (i = 0; i < 4; i++)
		is_share(&four, i);
	few = resident(0);
	crowd();

	while (t.n > 1)
		assert_ok(hawk_seq_free(t.f.kv, t.seq[--t.n]));
	again = rest();
	assert_true(again.alpha > four.alpha);
	assert_true(again.reloaded > four.reloaded);
	assert_true(resident(0) > few);
	is_share(&again, 0);
	bytes_right(0);
}

/* With all of a sequence to stay it comes back, and then nothing moves. */
static void all_stays(void **state)
{
	struct hawk_tier_info before = { 0 }, after = { 0 };
	struct hawk_elastic e;

	(void)state;
	turn(1, ONE / 8);
	new_seq();
	while (t.rows[0] < 40)
		add_row(0);
	rest();
	assert_true(resident(0) < 40 * ROW);
	turn(1, ONE);
	e = rest();
	assert_int_equal(e.alpha, ONE);
	assert_int_equal(resident(0), 40 * ROW);
	assert_ok(hawk_tier_stat(t.f.h, t.f.flash, &before));
	after_cycles(10);
	assert_ok(hawk_tier_stat(t.f.h, t.f.flash, &after));
	assert_int_equal(after.read_bytes, before.read_bytes);
	assert_int_equal(after.write_bytes, before.write_bytes);
	bytes_right(0);
}

/* Off: nothing is held, the oldest goes first. */
static void off(void **state)
{
	struct hawk_elastic e;
	uint64_t lid[1024];

	(void)state;
	e = elastic();
	assert_int_equal(e.on, 0);
	assert_int_equal(e.sinks, 64);
	assert_int_equal(e.window, 1024);
	turn(1, ONE / 8);
	new_seq();
	while (t.rows[0] < 20)
		add_row(0);
	after_cycles(1);
	turn(0, ONE / 8);
	while (t.rows[0] < 2 * DRAM_ROWS)
		add_row(0);
	lids_of(0, lid);
	assert_int_equal(in_memory(lid, 0), 0);
	bytes_right(0);
}

/* The flash tier goes while blocks are on their way there: it is not kept waiting. */
static void flash_leaves(void **state)
{
	(void)state;
	turn(1, ONE / 8);
	new_seq();
	while (t.rows[0] < 50)
		add_row(0);
	while (!elastic().evicted)
		after_cycles(1);
	assert_ok(hawk_tier_del_force(t.f.h, t.f.flash));
	t.f.has_flash = false;
	after_cycles(3);
	assert_int_equal(elastic().on, 1);
}

static void refused(struct hawk_elastic e)
{
	assert_int_equal(hawk_elastic_set(t.f.kv, &e), -EINVAL);
}

static void refusals(void **state)
{
	struct hawk_elastic e = elastic(), bad;
	struct hawk_kv_params p = fx_params(&t.f);
	struct hawk_kv *plain;

	(void)state;
	bad = e, bad.on = 2, refused(bad);
	bad = e, bad.keep_free = ONE, refused(bad);
	bad = e, bad.alpha_min = ONE + 1, refused(bad);
	assert_int_equal(elastic().on, 0);
	assert_ok(hawk_kv_create(t.f.h, &p, &plain));
	assert_int_equal(hawk_elastic_get(plain, &e), -EOPNOTSUPP);
	assert_int_equal(hawk_elastic_set(plain, &e), -EOPNOTSUPP);
	hawk_kv_close(plain);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(contracts_and_grows), T(all_stays), T(off), T(flash_leaves), T(refusals),
	};

	return cmocka_run_group_tests_name("lib_elastic", tests, NULL, NULL);
}
