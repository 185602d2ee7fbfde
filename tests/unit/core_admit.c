// SPDX-License-Identifier: MIT
/*
 * core_admit.c - fixed point, the write budget, and what is admitted to flash
 */
#include <math.h>

#include "core_host.h"
#include "../../kmod/core/admit.h"

#define LID(n)		HAWK_LID(1 + (n) / 4096, 0, 0, (n) % 4096 * 16)
#define BLOCK		HAWK_CHUNK_BYTES	/* one to a chunk */
#define SECOND		1000000000ull
#define FX(x)		((u64)((x) * 4294967296.0))

/* ---- fixed point ---- */

static void exponential(void **state)
{
	double worst = 0, want;
	u64 x;

	(void)state;
	for (x = 0; x < 12 * HAWK_FX_ONE; x += HAWK_FX_ONE / 1009) {
		want = exp(-(double)x / HAWK_FX_ONE);
		worst = fmax(worst, fabs(hawk_fx_exp_neg(x) / 4294967296.0 / want - 1));
	}
	if (worst > 0.001)
		fail_msg("off by %g", worst);
	assert_true(hawk_fx_exp_neg(0) == HAWK_FX_ONE);
	/* below it falls to 0, never rises, and is never off by more than the last bits */
	for (x = 12 * HAWK_FX_ONE; x < 30 * HAWK_FX_ONE; x += HAWK_FX_ONE / 101)
		assert_true(fabs(hawk_fx_exp_neg(x) - exp(-(double)x / HAWK_FX_ONE) * HAWK_FX_ONE) <
			    2);
	assert_true(!hawk_fx_exp_neg(HAWK_FX_MAX));
}

static void arithmetic(void **state)
{
	u64 rng = 5, a, b, v;
	double want;
	u32 i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		a = host_rand(&rng) >> host_below(&rng, 64);
		b = host_rand(&rng) >> host_below(&rng, 64);
		want = (double)a / 4294967296.0 * b;
		v = hawk_fx_mul(a, b);
		if (want < 0.99 * HAWK_FX_MAX)
			assert_true(fabs(v - want) <= 3 + want * 1e-9);
		else
			assert_true(v > 0.98 * HAWK_FX_MAX);
		if (!b)
			continue;
		want = (double)a / b * 4294967296.0;
		v = hawk_fx_ratio(a, b);
		if (want < 0.99 * HAWK_FX_MAX)
			assert_true(fabs(v - want) <= 5 + want * 1e-8);
		v = a >> 1 | 8;
		assert_true(hawk_fx_from8(hawk_fx_octave8(v)) <= v);
		assert_true(hawk_fx_from8(hawk_fx_octave8(v) + 1) > v);
	}
	assert_true(hawk_fx_ratio(1, 0) == HAWK_FX_MAX);
	assert_int_equal(hawk_fx_octave8(0), 0);
}

/* ---- the budget ---- */

#define DAY		(86400 * SECOND)
#define BYTES		1000000ull	/* of a block here */

struct day {
	struct hawk_budget b;
	u64 now, rng;
	u64 written, worth;	/* bytes, and sum of the scores admitted */
	u64 stamp[4096];	/* of the writes, for sums over a period */
	u64 nwrites;
};

static void day_begin(struct day *d, u64 blocks)
{
	memset(d, 0, sizeof(*d));
	hawk_lock_init(&d->b.lock);
	d->rng = 3;
	d->now = 7 * SECOND;
	hawk_budget_set(&d->b, blocks * BYTES, DAY, d->now);
}

/* One block wants to be written.  Return: it is. */
static bool want(struct day *d, u64 score)
{
	bool yes;

	hawk_budget_advance(&d->b, d->now);
	yes = score >= d->b.threshold && hawk_budget_fits(&d->b, BYTES);
	if (yes) {
		hawk_budget_spend(&d->b, BYTES);
		d->written += BYTES;
		d->worth += score >> 16;
		d->stamp[d->nwrites++ % 4096] = d->now;
	}
	hawk_budget_want(&d->b, score, BYTES, yes);
	return yes;
}

static u64 any_score(struct day *d)
{
	return FX(0.01) + (host_rand(&d->rng) >> 32);
}

/* As long as all fits everything is admitted, whatever it is worth. */
static void room_is_used(void **state)
{
	struct day d;
	u32 i;

	(void)state;
	day_begin(&d, 1000);
	for (i = 0; i < 5000; i++) {
		d.now += DAY / 900;	/* 900 a day */
		if (!want(&d, FX(0.1) + any_score(&d) / (1 + i % 50)))
			fail_msg("block %u of few is refused", i);
	}
}

/* Good and bad blocks leave in turn, a conversation at a time: the good of all are written. */
static void clumps(void **state)
{
	u64 good = 0, bad = 0;
	struct day d;
	u32 i;
	bool is_good;

	(void)state;
	day_begin(&d, 5000);
	for (i = 0; i < 60000; i++) {		/* five days, 6000 good ones each */
		is_good = i / 1000 % 2;
		d.now += DAY / 12000;
		if (!want(&d, any_score(&d) + (is_good ? FX(2) : 0)) || i < 12000)
			continue;
		good += is_good;
		bad += !is_good;
	}
	if (good < 18000 || bad > good / 20)
		fail_msg("%llu good ones, %llu bad ones", (unsigned long long)good,
			 (unsigned long long)bad);
}

/* At ten times the budget: it is used, evenly, and for the best tenth. */
static void converges(void **state)
{
	u64 before = 0, low = ~0ull, high = 0, n, was = 0;
	struct day d;
	u32 i, day;

	(void)state;
	day_begin(&d, 1000);
	for (day = 0; day < 10; day++) {
		for (i = 0; i < 10000; i++) {
			d.now += DAY / 10000;
			want(&d, any_score(&d));
			if (day > 2 && !(i % 1000)) {	/* parts of a day, after it has settled */
				n = d.written - was;
				low = was && n < low ? n : low;
				high = was && n > high ? n : high;
				was = d.written;
			}
		}
		n = (d.written - before) / BYTES;
		before = d.written;
		if (n > 1008 || (day > 1 && n < 900))
			fail_msg("day %u: %llu of 1000 blocks", day, (unsigned long long)n);
	}
	/* 100 per tenth of a day, and chance: it does not swing */
	if (low < 50 * BYTES || high > 150 * BYTES)
		fail_msg("%llu to %llu bytes per tenth of a day", (unsigned long long)low,
			 (unsigned long long)high);
	/* uniform scores: the best tenth is worth 0.95 each, all of them 0.5 */
	assert_true((double)(d.worth << 16) / FX(1) / (d.written / BYTES) > 0.9);
}

/* Ten days, quiet nights, bursts of a hundred times the budget: never over it, in any period. */
static void bursts(void **state)
{
	u64 most = 0, tick = 0, n, oldest = 0;
	struct day d;
	u32 i;

	(void)state;
	day_begin(&d, 1000);
	for (i = 0; d.now < 11 * DAY; i++) {
		u64 day = d.now % DAY;

		/* half the day nothing, then 800 a day, for some minutes 100,000 a day */
		if (day < DAY / 2)
			d.now += DAY / 2 - day;
		d.now += host_below(&d.rng, 2000) || i % 20000 < 8000 ? DAY / 100000 : DAY / 800;
		want(&d, any_score(&d));
		assert_true(d.b.spent <= d.b.bytes);
		tick = d.b.tick[d.b.at] > tick ? d.b.tick[d.b.at] : tick;
		/* what was written in the period that ends now */
		for (; oldest < d.nwrites && d.stamp[oldest % 4096] + DAY <= d.now; oldest++)
			;
		n = d.nwrites - oldest;
		most = n > most ? n : most;
	}
	/* no more than the budget and what one control period can add */
	if (most > 1000 + tick / BYTES)
		fail_msg("%llu blocks in a day", (unsigned long long)most);
	if (d.nwrites < 11 * 800)
		fail_msg("%llu blocks in eleven days", (unsigned long long)d.nwrites);
}

/* After years without a call nothing is out of order, and nothing takes long. */
static void long_silence(void **state)
{
	struct day d;

	(void)state;
	day_begin(&d, 10);
	while (want(&d, FX(0.5)))
		;
	assert_true(d.written <= 10 * BYTES && d.written >= 9 * BYTES);
	d.now += 5000 * DAY;
	assert_true(want(&d, FX(0.5)));
	assert_true(d.b.next > d.now && d.b.spent == BYTES);
	assert_true(d.b.credit <= (s64)d.b.bytes);
}

/* ---- what is admitted ---- */

struct fix {
	struct host h;
	struct hawk_space *s;
	u32 host, flash;
	u64 now;
};

static void fix_init(struct fix *f, u32 host, u32 flash)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = host + flash, .buckets = 1,
	};

	memset(f, 0, sizeof(*f));
	f->now = SECOND;
	host_init(&f->h, 7);
	f->host = host_tier(&f->h, HAWK_TIER_HOST, host);
	f->flash = host_tier(&f->h, HAWK_TIER_BLK, flash);
	p.quota_max[f->host] = host;
	p.quota_max[f->flash] = flash;
	f->s = host_space(&f->h, &p);
}

static void fix_fini(struct fix *f)
{
	host_space_end(&f->h, f->s);
	host_fini(&f->h);
}

static void budget(struct fix *f, u32 mode, u64 blocks)
{
	struct hawk_tier_admit a = {
		.flags = HAWK_ADMIT_SET, .tier = f->flash, .mode = mode,
		.budget_bytes = blocks * BLOCK,
	};

	assert_int_equal(hawk_tier_admit(f->h.e, &a, f->now), 0);
}

/* Block @n, with what is known of it; @parent < 0: none. */
static void put(struct fix *f, u32 n, u32 hints, int parent)
{
	u8 key[HAWK_KEY_BYTES], before[HAWK_KEY_BYTES];
	u64 vt;

	f->now += SECOND / 64;
	if (parent >= 0)
		hints |= HAWK_ITEM_PARENT;
	assert_int_equal(host_alloc(&f->h, f->s, LID(n), NULL, f->now, &vt), 0);
	assert_int_equal(hawk_block_hint(f->s, LID(n), hints, host_key(before, parent)), 0);
	host_write(&f->h, f->s, vt, n + 1);
	assert_int_equal(hawk_block_put(f->s, LID(n), host_key(key, n), false, f->now), 0);
}

/* Ask for it.  'h' in host memory, 'f' on flash, from where it comes; '-' gone */
static char get(struct fix *f, u32 n)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	u64 lid, vt;

	f->now += SECOND;
	if (hawk_block_find(f->s, host_key(key, n), false, f->now, &lid, &vt, &ref))
		return '-';
	assert_int_equal(host_read(&f->h, f->s, vt), n + 1);
	if (HAWK_VT_TIER(vt) == f->host)
		return 'h';
	assert_int_equal(host_reload(&f->h, f->s, lid, f->now), 0);
	return 'f';
}

static struct hawk_stats stats(struct fix *f)
{
	struct hawk_stats st = { 0 };

	hawk_space_stats(f->s, &st);
	host_check(f->s);
	return st;
}

/* Without a budget all is as before: nothing refused, nothing learnt. */
static void no_budget(void **state)
{
	struct hawk_tier_admit a = { 0 };
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 32);
	for (i = 0; i < 20; i++)
		put(&f, i, HAWK_ITEM_TRANSIENT, -1);
	st = stats(&f);
	assert_int_equal(st.evict_write, 16);
	assert_int_equal(st.evict_drop + st.refused_score + st.refused_budget, 0);
	a.tier = f.flash;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, f.now), 0);
	assert_true(!a.budget_bytes && !a.spent_bytes && a.mode == HAWK_ADMIT_REUSE);
	assert_false(hawk_learns(f.s));
	fix_fini(&f);
}

static void settings(void **state)
{
	struct hawk_tier_admit a = { .flags = HAWK_ADMIT_SET, .rated_bytes = 1000 };
	struct fix f;

	(void)state;
	fix_init(&f, 4, 8);
	a.tier = f.host;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -EINVAL);
	a.tier = 6;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -ENOENT);
	a.tier = HAWK_TIERS_MAX;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -ENOENT);
	a.tier = f.flash;
	a.mode = HAWK_ADMIT_FORMULA + 1;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -EINVAL);
	a.mode = HAWK_ADMIT_REUSE;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), 0);
	/* three quarters of what the drive is rated for, a day */
	assert_true(a.budget_bytes == 750 && a.period_ns == HAWK_DAY_NS);
	a.budget_bytes = 0;
	a.period_ns = 7 * HAWK_DAY_NS;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), 0);
	assert_true(a.budget_bytes == 7 * 750);
	a.period_ns = HAWK_ADMIT_PERIOD_MAX_NS + 1;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -EINVAL);
	a.period_ns = 1;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -EINVAL);
	a.period_ns = 0;
	a.budget_bytes = 1ull << 62;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, 1), -EINVAL);
	fix_fini(&f);
}

/* The budget is never exceeded, and what it refused is counted so. */
static void budget_holds(void **state)
{
	struct hawk_tier_admit a = { 0 };
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 200);
	budget(&f, HAWK_ADMIT_ALL, 64);
	for (i = 0; i < 180; i++)
		put(&f, i, 0, -1);
	st = stats(&f);
	assert_true(st.evict_write > 0 && st.evict_write <= 64);
	assert_int_equal(st.evict_write + st.refused_budget, 176);
	assert_int_equal(st.evict_drop, st.refused_budget);
	a.tier = f.flash;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, f.now), 0);
	assert_true(a.spent_bytes == st.evict_write * BLOCK);
	fix_fini(&f);
}

/* A write that was not made is not charged, whenever that turns out. */
static void cancelled_writes(void **state)
{
	struct hawk_tier_admit a = { 0 };
	struct fix f;
	u32 i, n;

	(void)state;
	fix_init(&f, 8, 64);
	budget(&f, HAWK_ADMIT_ALL, 64);
	for (i = 0; i < 8; i++)
		put(&f, i, 0, -1);
	n = host_space_writeback(f.s, f.host, 512, host_plan(&f.h, 64));
	assert_true(n > 1);
	a.tier = f.flash;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, f.now), 0);
	assert_int_equal(a.spent_bytes, n * BLOCK);
	for (i = 0; i < n; i++) {
		f.h.plan.move[i].result = i ? -ECANCELED : -EIO;
		hawk_move_complete(&f.h.plan.move[i]);
	}
	f.h.plan.n = 0;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, f.now), 0);
	assert_int_equal(a.spent_bytes, BLOCK);	/* who knows what a drive that failed wrote */
	stats(&f);
	fix_fini(&f);
}

/* What is taken back came from the control periods before, if need be, and is credit again. */
static void refunds(void **state)
{
	struct day d;
	s64 credit;

	(void)state;
	day_begin(&d, 1000);
	credit = d.b.credit;
	hawk_budget_spend(&d.b, 3 * BYTES);
	d.now += DAY / HAWK_BUDGET_TICKS;
	hawk_budget_advance(&d.b, d.now);
	credit += d.b.credit - (credit - (s64)(3 * BYTES));
	credit -= 3 * BYTES;
	hawk_budget_spend(&d.b, BYTES);
	hawk_budget_refund(&d.b, 2 * BYTES);
	assert_int_equal(d.b.spent, 2 * BYTES);
	assert_int_equal(d.b.tick[d.b.at], 0);
	assert_int_equal(d.b.credit, credit + (s64)BYTES);
	hawk_budget_refund(&d.b, 100 * BYTES);	/* never more than was spent */
	assert_int_equal(d.b.spent, 0);
}

/* Operations of which two of three are not told the time. */
static void no_time_with(u32 mode, u32 blocks)
{
	struct hawk_tier_admit a = { 0 };
	u64 told, at = 0;
	struct fix f;
	u32 i;

	fix_init(&f, 4, 200);
	budget(&f, mode, blocks);
	for (i = 0; i < 180; i++) {
		told = f.now;
		if (i % 3)
			f.now = -(SECOND / 64);	/* put() will not tell it */
		put(&f, i, HAWK_ITEM_TURN(1), -1);
		f.now = told + SECOND;
		/* it never goes back */
		assert_true(f.s->reuse->rate[HAWK_CLASS_ANY].at >= at);
		at = f.s->reuse->rate[HAWK_CLASS_ANY].at;
	}
	assert_true(at > 100 * SECOND);
	assert_true(f.s->reuse->rate[HAWK_CLASS_ANY].left >= 170);
	a.tier = f.flash;
	assert_int_equal(hawk_tier_admit(f.h.e, &a, f.now), 0);
	if (blocks)
		assert_true(a.spent_bytes > 8 * BLOCK && a.spent_bytes <= blocks * BLOCK);
	assert_int_equal(stats(&f).evict_write * BLOCK, blocks ? a.spent_bytes : 0);
	fix_fini(&f);
}

/* They learn, and hold the budget, all the same. */
static void no_time(void **state)
{
	(void)state;
	no_time_with(HAWK_ADMIT_REUSE, 64);
	no_time_with(HAWK_ADMIT_SECOND, 0);	/* without a budget, and so without its clock */
}

/* Second access: what was used once is dropped; what came back is remembered and written. */
static void second_access(void **state)
{
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 32);
	budget(&f, HAWK_ADMIT_SECOND, 0);
	for (i = 0; i < 8; i++)
		put(&f, i, 0, -1);
	st = stats(&f);
	assert_true(st.refused_rule == 4 && !st.evict_write);
	assert_int_equal(get(&f, 0), '-');
	put(&f, 0, 0, -1);	/* back again */
	for (i = 8; i < 12; i++)
		put(&f, i, 0, -1);
	assert_int_equal(get(&f, 0), 'f');
	st = stats(&f);
	assert_int_equal(st.evict_write, 1);
	assert_int_equal(st.flash_read, 1);
	fix_fini(&f);
}

/* The authors' formula admits nothing that was used once: it has no prior. */
static void formula(void **state)
{
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 32);
	budget(&f, HAWK_ADMIT_FORMULA, 0);
	for (i = 0; i < 24; i++)
		put(&f, i, 0, -1);
	st = stats(&f);
	assert_true(!st.evict_write && st.refused_rule == 20);
	fix_fini(&f);
}

/*
 * Blocks of two kinds, of which one always comes back and the other never does, at a budget
 * for half of them.  @f: after that long enough.  Return: written of each kind in the end.
 */
static void two_kinds(struct fix *f, u32 rounds, u32 *good, u32 *bad)
{
	u32 r, i, first = 0;
	char from;

	*good = 0;
	*bad = 0;
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < 8; i++)
			put(f, first + i, i % 2 ? HAWK_ITEM_TURN(1) : HAWK_ITEM_TRANSIENT, -1);
		for (i = 0; i < 8; i++)	/* they leave */
			put(f, 100000 + first + i, HAWK_ITEM_TAIL, -1);
		for (i = 0; i < 8; i++) {
			struct hawk_ref ref;
			u64 vt;

			if (i % 2) {
				from = get(f, first + i);
				*good += r > rounds / 2 && from == 'f';
				if (from == '-')
					put(f, first + i, HAWK_ITEM_TURN(1), -1);
			} else {
				*bad += r > rounds / 2 && !hawk_block_ref(f->s, LID(first + i), &vt, &ref);
			}
		}
		first += 8;
	}
}

/* What comes back is learnt from both, and the budget goes to the kind that does. */
static void learns(void **state)
{
	u32 good, bad, rounds = 120;
	struct fix f;

	(void)state;
	fix_init(&f, 6, 3000);
	{
		struct hawk_tier_admit a = {
			.flags = HAWK_ADMIT_SET, .tier = f.flash,
			.budget_bytes = (u64)rounds * 6 * BLOCK, .period_ns = rounds * 4 * SECOND,
		};

		assert_int_equal(hawk_tier_admit(f.h.e, &a, f.now), 0);
	}
	two_kinds(&f, rounds, &good, &bad);
	if (good < 150 || bad > good / 4)
		fail_msg("%u of what comes back are on flash, %u of what does not", good, bad);
	assert_true(hawk_class_worth(f.s->reuse, hawk_class(0, 1, 1, 0), f.now) >
		    4 * hawk_class_worth(f.s->reuse, hawk_class(HAWK_BH_TRANSIENT, 1, 0, 0),
					 f.now));
	stats(&f);
	fix_fini(&f);
}

/* None came back: that tells something only when it is time that they had. */
static void worthless(void **state)
{
	u32 c = hawk_class(0, 2, 0, 0), i;
	struct hawk_reuse *r;
	struct fix f;

	(void)state;
	fix_init(&f, 4, 64);
	budget(&f, HAWK_ADMIT_REUSE, 1000);
	r = f.s->reuse;
	r->stay_ns = 10 * SECOND;
	r->away_ns = 100 * SECOND;
	for (i = 0; i < 4000; i++)
		hawk_class_left(r, c, 900 * SECOND + i % 64 * SECOND, 1000 * SECOND);
	assert_false(hawk_class_worthless(r, c, 1001 * SECOND));
	assert_true(hawk_class_worthless(r, c, 2000 * SECOND));
	/* of others nothing is known */
	assert_false(hawk_class_worthless(r, hawk_class(HAWK_BH_TAIL, 1, 0, 0), 2000 * SECOND));
	hawk_class_came(r, c, 1000, 0);
	assert_false(hawk_class_worthless(r, c, 2000 * SECOND));
	fix_fini(&f);
}

/* Thousands of blocks that were used together are one case, and prove nothing. */
static void one_case(void **state)
{
	u32 c = hawk_class(0, 9, 9, 3), i;
	struct hawk_reuse *r;
	struct fix f;
	u64 before;

	(void)state;
	fix_init(&f, 4, 64);
	budget(&f, HAWK_ADMIT_REUSE, 1000);
	r = f.s->reuse;
	r->away_ns = 10 * SECOND;
	before = hawk_class_worth(r, c, SECOND);
	for (i = 0; i < 20000; i++)
		hawk_class_left(r, c, 900 * SECOND, 1000 * SECOND);
	assert_int_equal(r->rate[c].cases, 1);
	assert_false(hawk_class_worthless(r, c, 5000 * SECOND));
	assert_true(hawk_class_worth(r, c, 5000 * SECOND) < before);
	for (i = 0; i < 20000; i++)
		hawk_class_left(r, c, 900 * SECOND + i / 400 * SECOND, 1000 * SECOND);
	assert_true(hawk_class_worthless(r, c, 5000 * SECOND));
	fix_fini(&f);
}

/* Before anything is known the client's word counts: not to the end of time. */
static void hints_are_priors(void **state)
{
	u32 plain = hawk_class(0, 1, 0, 0), transient = hawk_class(HAWK_BH_TRANSIENT, 1, 0, 0);
	u32 persist = hawk_class(HAWK_BH_PERSIST, 1, 0, 0), i;
	struct hawk_reuse *r;
	struct fix f;

	(void)state;
	fix_init(&f, 4, 64);
	budget(&f, HAWK_ADMIT_REUSE, 1000);
	r = f.s->reuse;
	assert_true(hawk_class_worth(r, transient, 0) < hawk_class_worth(r, plain, 0) / 4);
	assert_true(hawk_class_worth(r, persist, 0) > hawk_class_worth(r, plain, 0));
	assert_false(hawk_class_worthless(r, transient, 0));
	for (i = 0; i < 128; i++) {
		hawk_class_left(r, transient, i * SECOND, i * SECOND);
		hawk_class_left(r, persist, i * SECOND, i * SECOND);
		hawk_class_came(r, transient, 1, 0);
	}
	assert_true(hawk_class_worth(r, transient, 0) > hawk_class_worth(r, persist, 0));
	fix_fini(&f);
}

/* A block whose parent was dropped is not written; one used long after its parent is. */
static void closure(void **state)
{
	struct hawk_stats st;
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ghost g = { 0 };
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 64);
	budget(&f, HAWK_ADMIT_SECOND, 0);	/* drops what was used once */
	put(&f, 0, HAWK_ITEM_ROOT, -1);
	put(&f, 1, 0, 0);
	put(&f, 2, 0, 1);
	for (i = 10; i < 11; i++)
		put(&f, i, HAWK_ITEM_ROOT, -1);
	put(&f, 11, HAWK_ITEM_ROOT, -1);	/* 0 goes */
	assert_int_equal(stats(&f).refused_rule, 1);
	assert_int_equal(hawk_index_about(f.s, host_key(key, 0), f.now, &g), HAWK_NONE);
	assert_true(g.uses == 1 && g.atime <= f.now);
	budget(&f, HAWK_ADMIT_REUSE, 1000);	/* there is room for everything */
	put(&f, 12, HAWK_ITEM_ROOT, -1);	/* 1 goes, its parent is gone */
	put(&f, 13, HAWK_ITEM_ROOT, -1);	/* 2 goes likewise */
	st = stats(&f);
	assert_int_equal(st.refused_parent, 2);
	assert_int_equal(st.evict_write, 0);

	/* the same, but 22 is used long after 21 was dropped */
	budget(&f, HAWK_ADMIT_SECOND, 0);
	put(&f, 21, HAWK_ITEM_ROOT, -1);
	put(&f, 22, 0, 21);
	for (i = 30; i < 33; i++)
		put(&f, i, HAWK_ITEM_ROOT, -1);	/* 21 goes */
	f.now += 3600 * SECOND;
	assert_int_equal(get(&f, 22), 'h');
	budget(&f, HAWK_ADMIT_REUSE, 1000);
	for (i = 40; i < 44; i++)
		put(&f, i, HAWK_ITEM_ROOT, -1);
	assert_int_equal(get(&f, 22), 'f');
	fix_fini(&f);
}

/* Flash is full: what is worth least goes, not what is oldest; never read is counted. */
static void full_flash(void **state)
{
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 4);
	budget(&f, HAWK_ADMIT_REUSE, 1000);
	put(&f, 0, HAWK_ITEM_TURN(1), -1);
	for (i = 1; i < 3; i++)
		put(&f, i, HAWK_ITEM_TAIL, -1);
	for (i = 0; i < 12; i++) {	/* 0 comes back time and again */
		put(&f, 50 + i, HAWK_ITEM_TAIL, -1);
		put(&f, 70 + i, HAWK_ITEM_TAIL, -1);
		if (get(&f, 0) == '-')
			fail_msg("the block that comes back is dropped in round %u", i);
	}
	st = stats(&f);
	assert_true(st.flash_drop > 10 && st.flash_unread > 10);
	assert_int_equal(st.flash_read, 1);
	assert_int_equal(st.evict_write, st.flash_read + st.flash_unread + st.flash - 1);
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exponential),
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(room_is_used),
		cmocka_unit_test(clumps),
		cmocka_unit_test(converges),
		cmocka_unit_test(bursts),
		cmocka_unit_test(long_silence),
		cmocka_unit_test(no_budget),
		cmocka_unit_test(settings),
		cmocka_unit_test(budget_holds),
		cmocka_unit_test(cancelled_writes),
		cmocka_unit_test(refunds),
		cmocka_unit_test(no_time),
		cmocka_unit_test(second_access),
		cmocka_unit_test(formula),
		cmocka_unit_test(learns),
		cmocka_unit_test(worthless),
		cmocka_unit_test(one_case),
		cmocka_unit_test(hints_are_priors),
		cmocka_unit_test(closure),
		cmocka_unit_test(full_flash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
