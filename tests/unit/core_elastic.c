// SPDX-License-Identifier: MIT
/*
 * core_elastic.c - elastic residency: the numbers, no swinging, and what never goes
 *
 *	HAWK_SEED=n	seed of the random run, printed
 */
#include "core_seq_host.h"
#include "../../kmod/core/seqpriv.h"

#define ONE	65536u
#define SINKS	8
#define WINDOW	16
#define BASE	(SINKS + WINDOW)
#define FRAMES	128		/* of the host tier: 4 chunks */

/* ---- arithmetic ---- */

static void formula(void **state)
{
	struct hawk_elastic_params p = { .sinks = 64, .window = 1024 };
	u32 min = (15 * ONE + 50) / 100;

	(void)state;
	/* 80 GiB with 4 reserved, in GiB */
	assert_int_equal(hawk_elastic_alpha(0, 80, 4, min), ONE);
	assert_int_equal(hawk_elastic_alpha(19, 80, 4, min), ONE * 3 / 4);
	assert_int_equal(hawk_elastic_alpha(38, 80, 4, min), ONE / 2);
	assert_int_equal(hawk_elastic_alpha(76, 80, 4, min), min);
	assert_int_equal(hawk_elastic_alpha(80, 80, 4, min), min);
	assert_int_equal(hawk_elastic_alpha(0, 4, 4, min), min);
	assert_int_equal(hawk_elastic_alpha(0xfffffffe, 0xffffffff, 0, 0), 0);
	assert_int_equal(hawk_elastic_alpha(0x7fffffff, 0xfffffffe, 0, 0), ONE / 2);
	/* base + floor(alpha * (S - base)) */
	assert_int_equal(hawk_elastic_resident(&p, min, 1088), 1088);
	assert_int_equal(hawk_elastic_resident(&p, min, 500), 500);
	assert_int_equal(hawk_elastic_resident(&p, ONE / 2, 65536), 1088 + 32224);
	assert_int_equal(hawk_elastic_resident(&p, min, 131072), 1088 + 19496);
	assert_int_equal(hawk_elastic_resident(&p, ONE, 0xffffffff), 0xffffffff);
}

/* Memory in use follows alpha: what is fixed, and k times alpha, in frames of 1000. */
static u32 target_of(const struct hawk_elastic_state *el, u32 fixed, u32 k)
{
	return hawk_elastic_alpha(fixed + ((u64)el->alpha * k >> 16), 1000, 50, el->p.alpha_min);
}

/* Cycles until it rests; it must rest then. */
static u32 cycles(struct hawk_elastic_state *el, u32 fixed, u32 k)
{
	u32 i, last = 0, alpha, gap;

	for (i = 0; i < 400; i++) {
		alpha = el->alpha;
		hawk_elastic_settle(el, target_of(el, fixed, k));
		if (el->alpha != alpha)
			last = i + 1;
	}
	gap = el->target > el->alpha ? el->target - el->alpha : el->alpha - el->target;
	assert_in_range(gap, 0, ONE / 32);
	return last;
}

/*
 * Loads as they come and go, from a sequence that fits to twenty times what does: alpha
 * finds its place, where the formula agrees with it, and stays there.
 */
static void settles(void **state)
{
	static const u32 load[][2] = {
		{ 0, 100 }, { 100, 800 }, { 200, 3000 }, { 100, 20000 }, { 0, 950 },
		{ 900, 100 }, { 0, 0 }, { 500, 5000 }, { 0, 19000 }, { 300, 10 },
	};
	struct hawk_elastic_state el = { .alpha = 0 };
	u32 i, j, most = 0, n;

	(void)state;
	hawk_elastic_init(&el);
	for (j = 0; j < 3; j++)
		for (i = 0; i < ARRAY_SIZE(load); i++) {
			n = cycles(&el, load[i][0], load[i][1]);
			most = most > n ? most : n;
		}
	assert_in_range(most, 1, 120);
	/* nothing in use: it goes up as far as it makes a difference */
	cycles(&el, 0, 0);
	assert_in_range(el.alpha, ONE - ONE / 32, ONE);
	/* each value that the formula can have is within the band or reached */
	for (i = 0; i <= 950; i += 19)
		cycles(&el, i, 0);
	assert_in_range(el.alpha, el.p.alpha_min, el.p.alpha_min + ONE / 32);
}

/* ---- the walk ---- */

static struct {
	struct seqs x;
	struct hawk_seg seg[256];
	struct hawk_seq_map map;
	u64 evictions;
	bool watch;
	u64 base[1024];		/* LIDs of blocks that must stay, layer 0 */
	u32 nbase;
} t;

static u64 block_of(const struct hawk_seg *g, u32 j)
{
	return hawk_lid_block(HAWK_LID(g->run, 0, 0, g->tok + j), SEQ_BT);
}

static void noted(void *owner, const struct hawk_note *note)
{
	u64 lid = hawk_lid_block(HAWK_LID(hawk_lid_seq(note->lid), 0, 0, hawk_lid_tok(note->lid)),
				 SEQ_BT);
	u32 i;

	(void)owner;
	if (note->fate == HAWK_FATE_AHEAD)
		return;
	t.evictions++;
	for (i = 0; t.watch && i < t.nbase; i++)
		if (t.base[i] == lid)
			fail_msg("LID %llx of sinks or window lost its place",
				 (unsigned long long)note->lid);
}

static int setup(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 64 << 10, .block_tokens = SEQ_BT, .max_blocks = 1024, .buckets = 4,
		.layers = SEQ_LAYERS, .head_groups = SEQ_HEADS, .seqs = 16, .segs = 256,
		.note = noted,
	};
	struct hawk_elastic_params e = {
		.on = true, .reserved = ONE / 16, .alpha_min = ONE / 8, .sinks = SINKS,
		.window = WINDOW,
	};

	(void)state;
	memset(&t, 0, sizeof(t));
	host_init(&t.x.h, 1);
	p.quota_max[host_tier(&t.x.h, HAWK_TIER_HOST, 4)] = 4;
	p.quota_max[host_tier(&t.x.h, HAWK_TIER_BLK, 32)] = 32;
	t.x.s = host_space(&t.x.h, &p);
	t.x.now = 1;
	assert_int_equal(hawk_space_elastic_set(t.x.s, &e), 0);
	return 0;
}

static int teardown(void **state)
{
	u32 freed;

	(void)state;
	t.watch = false;
	while (hawk_seq_end_owner(t.x.s, SEQ_OWNER))
		;
	while (hawk_seq_reap(t.x.s, 1000, &freed))
		;
	assert_int_equal(seqs_lids(&t.x), 0);
	seqs_fini(&t.x);
	return 0;
}

static void look(u32 seq)
{
	t.map = (struct hawk_seq_map){ .seq = seq, .count = ARRAY_SIZE(t.seg) };
	assert_int_equal(hawk_seq_map(t.x.s, &t.map, t.seg), 0);
}

/* One call of the walk, its moves carried out.  Return: how many. */
static u32 step(void)
{
	struct hawk_plan *plan = host_plan(&t.x.h, HOST_PLAN);
	int ret;

	do {
		ret = hawk_elastic_step(t.x.s, t.x.now, plan);
	} while (host_grew(t.x.s, ret));
	assert_true(ret >= 0);
	ret = plan->n;
	host_run(&t.x.h);
	return ret;
}

/* Until a whole cycle moves nothing and alpha rests.  Return: calls. */
static u32 rest(void)
{
	struct hawk_elastic_state *el = t.x.s->seqs->elastic;
	u32 i, quiet = 0, alpha, moves;

	for (i = 0; quiet < 3; i++) {
		u8 cycle = el->cycle;

		assert_true(i < 2000);
		alpha = el->alpha;
		moves = 0;
		do {
			moves += step();
		} while (el->cycle == cycle);
		quiet = !moves && alpha == el->alpha ? quiet + 1 : 0;
	}
	host_check(t.x.s);
	return i;
}

static bool resident(u64 lid)
{
	struct hawk_ref ref;
	u64 vt;

	return !hawk_block_ref(t.x.s, lid, &vt, &ref) && HAWK_VT_TIER(vt) == 0;
}

/* Tokens of a sequence whose blocks are all in a host tier. */
static u32 tokens_resident(u32 seq)
{
	u32 i, j, n = 0;
	u64 lid;

	look(seq);
	for (i = 0; i < t.map.count; i++)
		for (j = 0; j < t.seg[i].len; j++) {
			lid = block_of(&t.seg[i], j);
			n += resident(lid) && resident(lid | 1ull << HAWK_LID_LAYER_SHIFT);
		}
	return n;
}

static u32 with_tokens(u32 len)
{
	u32 seq = seqs_new(&t.x), i;

	for (i = 0; i < len; i += 20)
		assert_int_equal(seqs_append(&t.x, HAWK_SEQ_APPEND, seq, 20, i, NULL), 0);
	return seq;
}

/* The base of a sequence: is all of it there?  It is added to what must stay. */
static void base_of(u32 seq)
{
	u32 i, j, at = 0;

	look(seq);
	for (i = 0; i < t.map.count; at += t.seg[i++].len)
		for (j = 0; j < t.seg[i].len; j++) {
			if (at + j >= SINKS && at + j + WINDOW < t.map.visible)
				continue;
			assert_true(t.nbase < ARRAY_SIZE(t.base));
			t.base[t.nbase++] = block_of(&t.seg[i], j);
		}
}

static void base_there(void)
{
	u32 i;

	for (i = 0; i < t.nbase; i++) {
		assert_true(resident(t.base[i]));
		assert_true(resident(t.base[i] | 1ull << HAWK_LID_LAYER_SHIFT));
	}
}

static void contracts(void **state)
{
	struct hawk_elastic_params p;
	struct hawk_elastic_info info;
	u32 seq = with_tokens(200), want, have;
	struct hawk_ref ref;
	u64 vt, warm;

	(void)state;
	/* 100 blocks of 128 frames; some of the first are used later than the others */
	look(seq);
	t.x.now += 1ull << 30;
	for (have = 12; have < 32; have += 4) {
		warm = block_of(&t.seg[0], have);
		assert_int_equal(hawk_block_pin(t.x.s, warm, t.x.now, &vt, &ref), 0);
		assert_int_equal(hawk_block_unpin(t.x.s, ref), 0);
		warm |= 1ull << HAWK_LID_LAYER_SHIFT;
		assert_int_equal(hawk_block_pin(t.x.s, warm, t.x.now, &vt, &ref), 0);
		assert_int_equal(hawk_block_unpin(t.x.s, ref), 0);
	}
	rest();
	assert_int_equal(hawk_space_elastic_get(t.x.s, &p, &info), 0);
	assert_int_equal(info.cap, FRAMES);
	assert_in_range(info.alpha, ONE / 3, ONE * 2 / 3);
	want = hawk_elastic_resident(&p, info.alpha, 200);
	have = tokens_resident(seq);
	assert_in_range(have, want - SEQ_BT, want + 2 * SEQ_BT);
	assert_int_equal(info.used, have / SEQ_BT * SEQ_LIDS);
	assert_true(info.evicted >= (200 - have) / SEQ_BT * SEQ_LIDS);
	base_of(seq);
	base_there();
	/* the coldest went */
	for (have = 12; have < 32; have += 4)
		assert_true(resident(block_of(&t.seg[0], have)));
	/* it stays so */
	t.evictions = 0;
	for (have = 0; have < 100; have++)
		assert_int_equal(step(), 0);
	assert_int_equal(t.evictions, 0);
}

static void grows(void **state)
{
	u32 a = with_tokens(120), b = with_tokens(120), few, freed = 0;
	struct hawk_elastic_params p;
	struct hawk_elastic_info info;

	(void)state;
	rest();
	few = tokens_resident(a);
	assert_in_range(few, BASE, 100);
	assert_int_equal(hawk_space_elastic_get(t.x.s, &p, &info), 0);
	assert_int_equal(seqs_free(&t.x, b), 0);
	rest();
	/* there is room: it comes back, up to what alpha says, without pushing anybody out */
	assert_int_equal(hawk_space_elastic_get(t.x.s, &p, &info), 0);
	assert_true(info.reloaded > 0);
	assert_true(tokens_resident(a) > few);
	assert_in_range(tokens_resident(a),
			hawk_elastic_resident(&p, info.alpha, 120) - 2 * SEQ_BT,
			hawk_elastic_resident(&p, info.alpha, 120) + 2 * SEQ_BT);
	/* all of it: then there is no traffic at all */
	p.alpha_min = ONE;
	assert_int_equal(hawk_space_elastic_set(t.x.s, &p), 0);
	rest();
	assert_int_equal(tokens_resident(a), 120);
	t.evictions = 0;
	for (freed = 0; freed < 50; freed++)
		assert_int_equal(step(), 0);
	assert_int_equal(t.evictions, 0);
}

static void parameters(void **state)
{
	struct hawk_elastic_params p, q;
	struct hawk_elastic_info info;

	(void)state;
	assert_int_equal(hawk_space_elastic_get(t.x.s, &p, &info), 0);
	q = p;
	q.reserved = ONE;
	assert_int_equal(hawk_space_elastic_set(t.x.s, &q), -EINVAL);
	q = p;
	q.alpha_min = ONE + 1;
	assert_int_equal(hawk_space_elastic_set(t.x.s, &q), -EINVAL);
	/* off: nothing is done, nothing is held */
	with_tokens(200);
	p.on = false;
	assert_int_equal(hawk_space_elastic_set(t.x.s, &p), 0);
	t.x.now += 1ull << 40;
	assert_int_equal(step(), 0);
	assert_int_equal(step(), 0);
	assert_int_equal(t.evictions, 0);
	with_tokens(200);
	assert_true(t.evictions > 50);
	assert_false(resident(block_of(&t.seg[0], 0)));
}

/* What others own is not counted on: the rest is shared out, and nothing moves to and fro. */
static void with_others(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 64 << 10, .block_tokens = SEQ_BT, .max_blocks = 1024, .buckets = 4,
	};
	struct hawk_elastic_params e;
	struct hawk_elastic_info info;
	struct hawk_space *other;
	u64 evictions;
	u32 i;

	(void)state;
	p.quota_max[0] = 3;
	other = host_space(&t.x.h, &p);
	for (i = 0; i < 96; i++)
		assert_int_equal(host_fill(&t.x.h, other, HAWK_LID(1, 0, 0, i * SEQ_BT), NULL, 1,
					   1), 0);
	with_tokens(200);
	t.x.now += 1ull << 30;
	assert_int_equal(hawk_space_elastic_get(t.x.s, &e, &info), 0);
	assert_int_equal(info.cap, FRAMES / 4);
	rest();
	assert_int_equal(hawk_space_elastic_get(t.x.s, &e, &info), 0);
	assert_in_range(info.alpha, ONE / 8, ONE / 2);
	evictions = t.evictions;
	for (i = 0; i < 50; i++)
		assert_int_equal(step(), 0);
	assert_int_equal(t.evictions, evictions);
	/* it would have more */
	assert_true(hawk_space_starved(t.x.s, 0));
	host_space_end(&t.x.h, other);
}

/* A step is bounded, also if no sequence has a token. */
static void empty_ones(void **state)
{
	struct hawk_elastic_params p = { .on = true };
	struct hawk_elastic_state *el;
	struct seqs y;
	u32 i, n = 8192;

	(void)state;
	seqs_init(&y, n, n, 1);
	for (i = 0; i < n; i++)
		assert_int_not_equal(seqs_new(&y), 0);
	assert_int_equal(hawk_space_elastic_set(y.s, &p), 0);
	el = y.s->seqs->elastic;
	assert_int_equal(hawk_elastic_step(y.s, 1, host_plan(&y.h, HOST_PLAN)), 0);
	assert_in_range(el->seq, 100, n - 1);
	for (i = 0; i < 10 && !el->cycle; i++)
		hawk_elastic_step(y.s, 1, host_plan(&y.h, HOST_PLAN));
	assert_int_equal(el->cycle, 1);
	seqs_fini(&y);
}

/* More is held than there is: it is taken, so that nobody waits for it. */
static void all_held(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 15; i++)
		with_tokens(20);
	assert_true(t.evictions > 0);
	host_check(t.x.s);
}

/*
 * Sequences come, grow, are forked and end, in less memory than they need, and other
 * blocks come and go; sinks and window of none of them ever lose their place.
 */
static void random_run(void **state)
{
	u64 rng = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 6;
	u32 seq[6] = { 0 }, len[6] = { 0 }, i, op, k, seqs = ARRAY_SIZE(seq), others = 0;

	(void)state;
	fprintf(stderr, "# HAWK_SEED=%llu\n", (unsigned long long)rng);
	t.watch = true;
	for (op = 0; op < 6000; op++) {
		t.x.now += 1 + host_below(&rng, 1 << 24);
		i = host_below(&rng, seqs);
		switch (host_below(&rng, 8)) {
		case 0:
			if (seq[i])
				assert_int_equal(seqs_free(&t.x, seq[i]), 0);
			k = host_below(&rng, seqs);
			seq[i] = len[i] = 0;
			if (host_below(&rng, 2) && seq[k])
				seq[i] = seqs_fork(&t.x, seq[k]), len[i] = len[k];
			else
				seq[i] = seqs_new(&t.x);
			assert_int_not_equal(seq[i], 0);
			break;
		case 1:
		case 2:
		case 3:
			k = 1 + host_below(&rng, 12);
			if (!seq[i] || len[i] + k > 200)
				break;
			assert_int_equal(seqs_append(&t.x, HAWK_SEQ_APPEND, seq[i], k, len[i],
						     NULL), 0);
			len[i] += k;
			break;
		case 4:	/* blocks outside of sequences */
			assert_int_equal(host_fill(&t.x.h, t.x.s,
						   HAWK_LID(1, 0, 0, SEQ_BT * (others++ % 200)),
						   NULL, 1, t.x.now) & ~-EEXIST, 0);
			break;
		default:
			step();
		}
		t.nbase = 0;
		for (k = 0; k < seqs; k++)
			if (seq[k])
				base_of(seq[k]);
		base_there();
	}
	fprintf(stderr, "# %llu evictions\n", (unsigned long long)t.evictions);
	assert_true(t.evictions > 1000);
	host_check(t.x.s);
}

/*
 * Sequences grow to many times what memory holds, and no walk comes round: what is new is
 * held, all of it, but sinks and window stay.
 */
static void no_walk(void **state)
{
	u32 seq[3], len[3] = { 0 }, i, k, op;
	u64 rng = 7;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(seq); i++)
		seq[i] = seqs_new(&t.x);
	for (op = 0; op < 400; op++) {
		t.x.now += 1 + host_below(&rng, 1 << 24);
		i = host_below(&rng, ARRAY_SIZE(seq));
		k = 1 + host_below(&rng, 12);
		/* each third one comes through a reservation */
		if (op % 3) {
			assert_int_equal(seqs_append(&t.x, HAWK_SEQ_APPEND, seq[i], k, len[i],
						     NULL), 0);
		} else {
			assert_int_equal(seqs_append(&t.x, HAWK_SEQ_RESERVE, seq[i], k, len[i],
						     NULL), 0);
			assert_int_equal(seqs_advance(&t.x, seq[i], k), 0);
		}
		len[i] += k;
		t.nbase = 0;
		for (k = 0; k < ARRAY_SIZE(seq); k++)
			base_of(seq[k]);
		base_there();
	}
	assert_true(t.evictions > 500);
	host_check(t.x.s);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formula), cmocka_unit_test(settles),
		T(contracts), T(grows), T(parameters), T(all_held), T(with_others),
		T(random_run), T(no_walk),
		cmocka_unit_test(empty_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
