// SPDX-License-Identifier: MIT
/*
 * core_promote.c - blocks read from flash come to memory during prefill, at nobody's cost
 */
#include "core_host.h"
#include "../../kmod/core/pace.h"
#include "../../kmod/core/promote.h"

#define LID(n)		HAWK_LID(1, 0, 0, (n) * 16)
#define BLOCK		(512u << 10)	/* four to a chunk */
#define SECOND		1000000000ull

struct fix {
	struct host h;
	struct hawk_space *s;
	u32 host, flash;
	u64 now;
};

/* @host chunks of four frames; blocks 0 to @n - 1 are filled, the first ones end on flash. */
static void fix_init(struct fix *f, u32 host, u32 n)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 256, .buckets = 1,
	};
	u32 i;

	memset(f, 0, sizeof(*f));
	host_init(&f->h, 3);
	f->host = host_tier(&f->h, HAWK_TIER_HOST, host);
	f->flash = host_tier(&f->h, HAWK_TIER_BLK, 16);
	p.quota_max[f->host] = host;
	p.quota_max[f->flash] = 16;
	f->s = host_space(&f->h, &p);
	for (i = 0; i < n; i++)
		assert_int_equal(host_fill(&f->h, f->s, LID(i), NULL, i + 1, ++f->now), 0);
}

static void fix_fini(struct fix *f)
{
	host_check(f->s);
	host_space_end(&f->h, f->s);
	host_fini(&f->h);
}

static struct hawk_stats stats(struct fix *f)
{
	struct hawk_stats st = { 0 };

	hawk_space_stats(f->s, &st);
	return st;
}

static bool in_memory(struct fix *f, u32 n)
{
	return HAWK_VT_TIER(hawk_space_translate(f->s, LID(n))) == f->host;
}

/* As a gather does. */
static void read_block(struct fix *f, u32 n)
{
	struct hawk_read r;

	assert_int_equal(hawk_block_read(f->s, LID(n), ++f->now, &r), 0);
	assert_int_equal(host_read(&f->h, f->s, r.vt), n + 1);
	hawk_block_read_end(f->s, &r, false);
}

static u32 phase(struct fix *f, u64 until)
{
	struct hawk_phase ph = { .flags = until ? HAWK_PHASE_PREFILL : 0, .until_ns = until };

	assert_int_equal(hawk_space_phase(f->s, &ph, f->now), 0);
	return ph.pending;
}

static int next(struct fix *f, u32 max)
{
	return hawk_promote_next(f->s, host_plan(&f->h, max), ++f->now);
}

/* @want of 1024 blocks in memory have a copy. */
static void write_ahead(struct fix *f, u32 want)
{
	while (host_space_writeback(f->s, f->host, want, host_plan(&f->h, HOST_PLAN)) ||
	       f->h.plan.n)
		host_run(&f->h);
}

static void during_prefill(void **state)
{
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 12);
	write_ahead(&f, 512);
	for (i = 0; i < 2; i++) {
		assert_false(in_memory(&f, i));
		read_block(&f, i);
	}
	read_block(&f, 0);	/* it is noted once */
	host_check(f.s);
	assert_int_equal(next(&f, 8), 0);	/* nobody has said that prefill runs */
	assert_int_equal(phase(&f, f.now + SECOND), 2);
	assert_true(hawk_promote_due(f.s, f.now));
	assert_int_equal(next(&f, 1), 1);
	host_run(&f.h);
	assert_true(in_memory(&f, 0));
	assert_false(in_memory(&f, 1));
	/* it has ended, by itself or because the runtime says so */
	assert_int_equal(hawk_promote_next(f.s, host_plan(&f.h, 8), f.now + SECOND), 0);
	assert_int_equal(phase(&f, 0), 1);
	assert_int_equal(next(&f, 8), 0);
	phase(&f, f.now + SECOND);
	assert_int_equal(next(&f, 8), 1);
	host_run(&f.h);
	assert_true(in_memory(&f, 1));
	assert_false(hawk_promote_due(f.s, f.now));
	st = stats(&f);
	assert_int_equal(st.promoted, 2);
	assert_int_equal(st.reloads, 0);
	assert_int_equal(st.promote_canceled, 0);
	for (i = 0; i < 12; i++)
		read_block(&f, i);	/* and all bytes are right */
	fix_fini(&f);
}

static void bounds_of_a_phase(void **state)
{
	struct hawk_phase ph = { .flags = HAWK_PHASE_PREFILL };
	struct fix f;

	(void)state;
	fix_init(&f, 1, 1);
	ph.until_ns = f.now + HAWK_PHASE_MAX_NS + 1;
	assert_int_equal(hawk_space_phase(f.s, &ph, f.now), -EINVAL);
	ph.until_ns--;
	assert_int_equal(hawk_space_phase(f.s, &ph, f.now), 0);
	ph.flags = 0;
	assert_int_equal(hawk_space_phase(f.s, &ph, f.now), -EINVAL);
	ph.until_ns = 0;
	assert_int_equal(hawk_space_phase(f.s, &ph, f.now), 0);
	fix_fini(&f);
}

/* Nothing is written for it, no warmer block gives way, and one frame is left for others. */
static void costs_nobody(void **state)
{
	struct hawk_stats before, after;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 12);
	before = stats(&f);
	read_block(&f, 0);
	phase(&f, f.now + SECOND);
	assert_int_equal(next(&f, 8), 0);	/* all blocks in memory are dirty */
	after = stats(&f);
	assert_int_equal(after.promote_canceled, 1);
	assert_int_equal(after.evict_write, before.evict_write);
	write_ahead(&f, 128);
	read_block(&f, 0);
	assert_int_equal(next(&f, 8), 0);	/* one is not */
	assert_int_equal(stats(&f).promote_canceled, 2);
	write_ahead(&f, 512);
	read_block(&f, 0);
	for (i = 0; i < 8; i++)	/* all are warmer now, and those with copies the warmest */
		read_block(&f, 4 + (i + 4) % 8);
	assert_int_equal(next(&f, 8), 0);
	for (i = 0; i < 4; i++)
		read_block(&f, i);
	assert_true(next(&f, 8) > 0);
	host_run(&f.h);
	/* there is room at once, without a move: promoted blocks have a copy */
	after = stats(&f);
	for (i = 0; i < 2; i++) {
		u64 vt;

		assert_int_equal(host_block_alloc(f.s, LID(100 + i), NULL, HAWK_TIER_ANY, ++f.now,
						  NULL, &vt), 0);
	}
	assert_int_equal(stats(&f).evict_write, after.evict_write);
	for (i = 0; i < 12; i++)
		read_block(&f, i);
	fix_fini(&f);
}

static void never_in_the_way(void **state)
{
	struct hawk_pace_load load = { 0 };
	struct hawk_delivery d;
	struct hawk_pace *p;
	struct fix f;
	u64 wait;

	(void)state;
	fix_init(&f, 2, 12);
	write_ahead(&f, 512);
	read_block(&f, 0);
	phase(&f, f.now + SECOND);
	p = hawk_engine_pace(f.h.e);
	load.flash[f.flash] = BLOCK;
	hawk_pace_begin(p, &d, &load, NULL, f.now);
	assert_int_equal(next(&f, 8), -EBUSY);
	assert_int_equal(hawk_pace_take(p, &d, HAWK_PACE_FLASH, f.flash, BLOCK, BLOCK, f.now, &wait),
			 BLOCK);
	assert_int_equal(next(&f, 8), -EBUSY);
	hawk_pace_done(p, &d, HAWK_PACE_FLASH, f.flash, BLOCK, ++f.now);
	assert_int_equal(next(&f, 8), 1);
	hawk_pace_end(p, &d, f.now);
	/* the host thinks better of it */
	f.h.plan.move[0].result = -ECANCELED;
	hawk_move_complete(&f.h.plan.move[0]);
	assert_int_equal(stats(&f).promote_canceled, 1);
	assert_int_equal(stats(&f).promoted, 0);
	assert_false(in_memory(&f, 0));
	read_block(&f, 0);
	fix_fini(&f);
}

/* What was noted may be gone, come back another way, or be another block by now. */
static void stale_notes(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 12);
	write_ahead(&f, 512);
	for (i = 0; i < 3; i++)
		read_block(&f, i);
	assert_int_equal(hawk_block_free(f.s, LID(0)), 0);
	assert_int_equal(host_reload(&f.h, f.s, LID(1), ++f.now), 0);
	assert_int_equal(host_fill(&f.h, f.s, LID(50), NULL, 51, ++f.now), 0);
	host_check(f.s);
	phase(&f, f.now + SECOND);
	assert_int_equal(next(&f, 8), 1);
	host_run(&f.h);
	assert_true(in_memory(&f, 2));
	assert_int_equal(stats(&f).promoted, 1);
	fix_fini(&f);
}

static void work_is_bounded(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 60);
	for (i = 0; i < 50; i++)
		read_block(&f, i);
	assert_int_equal(phase(&f, f.now + SECOND), 50);
	assert_true(next(&f, 2) <= 2);
	assert_true(f.h.plan.n <= 2);
	host_run(&f.h);
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(during_prefill),
		cmocka_unit_test(bounds_of_a_phase),
		cmocka_unit_test(costs_nobody),
		cmocka_unit_test(never_in_the_way),
		cmocka_unit_test(stale_notes),
		cmocka_unit_test(work_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
