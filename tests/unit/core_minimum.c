// SPDX-License-Identifier: MIT
/*
 * core_minimum.c - a minimum is a promise: what others own above theirs is taken back
 */
#include "core_share.h"

static struct hawk_space_params min_of(u32 min, u32 max, u32 flash_min)
{
	return (struct hawk_space_params) {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 256, .buckets = 1,
		.quota_min = { min, flash_min }, .quota_max = { max, flash_min },
	};
}

/* What a host does for a space that insists: as fair(), but it must come to an end. */
static int repay(struct fix *f, struct hawk_space *s, u32 tier, struct hawk_space **donor, u32 n)
{
	u32 i, slot, busy;
	int lacks;

	for (;;) {
		host_clean(&f->h, ~0u);
		lacks = hawk_space_lacks(s, tier);
		host_check(s);
		if (lacks <= 0)
			return lacks;
		for (i = 0; i < n; i++) {
			if (hawk_space_excess(donor[i], tier) < 1)
				continue;
			slot = hawk_space_drain_pick(donor[i], tier, f->now);
			if (slot == HAWK_NONE || hawk_space_drain_start(donor[i], tier, slot))
				continue;
			if (!drain(f, donor[i], tier, 0, &busy))
				break;
			hawk_space_drain_cancel(donor[i], tier);
		}
		if (i == n)
			return -ENOSPC;
		hawk_space_drain_finish(donor[i], tier, NULL);
		assert_int_equal(hawk_space_lacks(s, tier), lacks);	/* until it is clean */
		host_check(donor[i]);
	}
}

static void fill_in(struct fix *f, struct hawk_space *s, u32 first, u32 n)
{
	u32 i;

	for (i = first; i < first + n; i++)
		assert_int_equal(host_fill(&f->h, s, LID(i), NULL, i + 1, ++f->now), 0);
}

/* All chunks are lent: the newcomer has its minimum all the same, and nobody else's. */
static void what_is_lent_comes_back(void **state)
{
	struct hawk_space_params p = min_of(3, 4, 0);
	struct hawk_space *poor;
	struct fix f;

	(void)state;
	fix_init(&f, 4, 0);
	poor = f.more[0] = space_of(&f, 1, 4, 0);
	fill_in(&f, poor, 0, PER_CHUNK);
	fill(&f, 0, 3 * PER_CHUNK);
	assert_int_equal(nfree(&f, HOST), 0);
	assert_int_equal(host_try_space(&f.h, &p, &f.more[1]), -EAGAIN);
	assert_int_equal(hawk_tier_minima(f.h.e, HOST), 1);
	p.insist = true;
	f.more[1] = host_space(&f.h, &p);
	host_check(f.more[1]);
	assert_int_equal(hawk_tier_minima(f.h.e, HOST), 4);
	assert_int_equal(hawk_space_lacks(f.more[1], HOST), 3);
	assert_int_equal(hawk_space_lacks(f.more[1], FLASH), 0);
	/* one has come back: who had it does not get it again, nor one above its minimum */
	take(&f, f.s, HOST, slot_of(&f, 0), NULL);
	host_clean(&f.h, ~0u);
	assert_int_equal(hawk_space_lacks(f.more[1], HOST), 2);
	fill(&f, 20, 2 * PER_CHUNK + 1);
	fill_in(&f, poor, 20, 2 * PER_CHUNK);
	assert_int_equal(stats(f.s).chunks[HOST], 2);
	assert_int_equal(stats(poor).chunks[HOST], 1);
	assert_int_equal(repay(&f, f.more[1], HOST, (struct hawk_space *[]){ poor, f.s }, 2), 0);
	assert_int_equal(stats(f.s).chunks[HOST], 0);
	assert_int_equal(stats(poor).chunks[HOST], 1);
	fill_in(&f, f.more[1], 0, 3 * PER_CHUNK);
	assert_int_equal(stats(f.more[1]).chunks[HOST], 3);
	assert_int_equal(stats(f.more[1]).evict_drop, 0);
	host_check(f.s);
	fix_fini(&f);
}

/* Also of flash; blocks that find no other place there are forgotten. */
static void lent_flash_comes_back(void **state)
{
	struct hawk_space_params p = min_of(0, 1, 2);
	struct fix f;

	(void)state;
	fix_init(&f, 1, 2);
	fill(&f, 0, 3 * PER_CHUNK);
	assert_int_equal(nfree(&f, FLASH), 0);
	assert_int_equal(host_try_space(&f.h, &p, &f.more[0]), -EAGAIN);
	p.insist = true;
	f.more[0] = host_space(&f.h, &p);
	assert_int_equal(hawk_space_lacks(f.more[0], HOST), 0);	/* it has no minimum there */
	assert_int_equal(hawk_space_lacks(f.more[0], FLASH), 2);
	assert_int_equal(repay(&f, f.more[0], FLASH, &f.s, 1), 0);
	assert_int_equal(stats(f.s).chunks[FLASH], 0);
	expect(&f, 2 * PER_CHUNK, "hhhh");
	fix_fini(&f);
}

/* The sum of the minima decides, at once, and not what happens to be free. */
static void minima_add_up(void **state)
{
	struct hawk_space_params p = min_of(2, 4, 0), one = min_of(1, 4, 0);
	struct hawk_space *never;
	struct fix f;

	(void)state;
	fix_init(&f, 4, 0);
	f.more[0] = host_space(&f.h, &p);
	f.more[1] = host_space(&f.h, &p);
	assert_int_equal(nfree(&f, HOST), 4);
	assert_int_equal(host_try_space(&f.h, &one, &never), -ENOSPC);
	one.insist = true;
	assert_int_equal(host_try_space(&f.h, &one, &never), -ENOSPC);
	/* a minimum that is used counts as well */
	fill_in(&f, f.more[0], 0, 2 * PER_CHUNK);
	assert_int_equal(host_try_space(&f.h, &one, &never), -ENOSPC);
	one.quota_min[HOST] = 0;
	one.insist = false;
	f.more[2] = host_space(&f.h, &one);
	host_check(f.more[2]);
	/* what has ended needs no more than to be cleaned */
	host_space_end(&f.h, f.more[0]);
	f.more[0] = NULL;
	one.quota_min[HOST] = 1;
	assert_int_equal(hawk_tier_minima(f.h.e, HOST), 2);
	p.insist = true;
	host_space_end(&f.h, f.more[2]);
	f.more[2] = host_space(&f.h, &p);
	assert_int_equal(hawk_space_lacks(f.more[2], HOST), 2);
	host_clean(&f.h, 1);
	assert_int_equal(hawk_space_lacks(f.more[2], HOST), 1);
	host_clean(&f.h, 1);
	assert_int_equal(hawk_space_lacks(f.more[2], HOST), 0);
	fix_fini(&f);
}

/* What is pinned does not come: the newcomer is given up, and nothing is kept for it. */
static void what_is_pinned_is_not_repaid(void **state)
{
	struct hawk_space_params p = min_of(2, 2, 0);
	struct hawk_ref ref[2];
	struct hawk_space *never;
	struct fix f;
	u32 i;
	u64 vt;

	(void)state;
	fix_init(&f, 2, 0);
	fill(&f, 0, 2 * PER_CHUNK);
	for (i = 0; i < 2; i++)
		assert_int_equal(hawk_block_pin(f.s, LID(i * PER_CHUNK), ++f.now, &vt, &ref[i]), 0);
	p.insist = true;
	never = host_space(&f.h, &p);
	assert_int_equal(repay(&f, never, HOST, &f.s, 1), -ENOSPC);
	assert_int_equal(hawk_block_unpin(f.s, ref[0]), 0);
	/* half of it is no minimum */
	assert_int_equal(repay(&f, never, HOST, &f.s, 1), -ENOSPC);
	assert_int_equal(hawk_space_lacks(never, HOST), 1);
	host_space_end(&f.h, never);
	host_check(f.s);
	fill(&f, 20, PER_CHUNK);
	assert_int_equal(stats(f.s).chunks[HOST], 2);
	assert_int_equal(hawk_block_unpin(f.s, ref[1]), 0);
	f.more[0] = host_space(&f.h, &p);
	assert_int_equal(repay(&f, f.more[0], HOST, &f.s, 1), 0);
	fix_fini(&f);
}

/* A claim gives way to a minimum, but only when the host says so. */
static void claims_give_way(void **state)
{
	struct hawk_space_params p = min_of(2, 2, 0);
	struct hawk_space *late;
	struct fix f;

	(void)state;
	fix_init(&f, 2, 0);
	late = f.more[0] = space_of(&f, 0, 2, 0);
	fill(&f, 0, 2 * PER_CHUNK);
	take(&f, f.s, HOST, 0, late);
	host_clean(&f.h, ~0u);
	p.insist = true;
	f.more[1] = host_space(&f.h, &p);
	assert_int_equal(hawk_space_lacks(f.more[1], HOST), 2);
	hawk_space_unclaim(late, HOST);
	assert_int_equal(hawk_space_lacks(f.more[1], HOST), 1);
	assert_int_equal(repay(&f, f.more[1], HOST, (struct hawk_space *[]){ late, f.s }, 2), 0);
	fix_fini(&f);
}

/* Its tier leaves, or is lost, while it waits: it is told, and does not hold it up. */
static void a_tier_leaves_the_newcomer(void **state)
{
	struct hawk_space_params p = min_of(2, 2, 0);
	struct hawk_space *never;
	struct fix f;

	(void)state;
	fix_init(&f, 2, 1);
	fill(&f, 0, 2 * PER_CHUNK);
	p.insist = true;
	never = host_space(&f.h, &p);
	assert_int_equal(hawk_tier_leave(f.h.e, HOST, true), 0);
	assert_int_equal(hawk_space_lacks(never, HOST), -ENOENT);
	assert_int_equal(hawk_tier_leave(f.h.e, HOST, false), 0);
	assert_int_equal(hawk_space_lacks(never, HOST), 2);
	hawk_tier_lost(f.h.e, HOST);
	assert_int_equal(hawk_space_lacks(never, HOST), -ENOENT);
	assert_int_equal(hawk_space_leave(never, HOST), 0);
	assert_int_equal(hawk_tier_minima(f.h.e, HOST), 0);
	assert_int_equal(hawk_space_lacks(never, HOST), -ENOENT);
	host_check(never);
	host_space_end(&f.h, never);
	host_check(f.s);
	fix_fini(&f);
}

/* Between the asking and the granting the free chunk may be somebody else's. */
static void asked_too_early(void **state)
{
	struct hawk_space *late;
	struct hawk_grant g;
	struct fix f;
	u64 vt;

	(void)state;
	fix_init(&f, 3, 0);
	fill(&f, 0, 8);
	late = f.more[0] = space_of(&f, 0, 3, 0);
	assert_int_equal(hawk_block_alloc(f.s, LID(8), NULL, HOST, 1, NULL, &vt), -ENOBUFS);
	take(&f, f.s, HOST, 0, late);	/* claims the free one, until this is clean */
	assert_int_equal(hawk_space_grow(f.s, &g), -ENOENT);
	hawk_space_unclaim(late, HOST);
	assert_int_equal(hawk_block_alloc(f.s, LID(8), NULL, HOST, 1, NULL, &vt), -ENOBUFS);
	f.more[1] = space_of(&f, 1, 3, 0);
	assert_int_equal(hawk_space_grow(f.s, &g), -ENOENT);
	host_check(f.s);
	assert_int_equal(host_fill(&f.h, f.more[1], LID(0), NULL, 1, ++f.now), 0);
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lent_comes_back),
		cmocka_unit_test(lent_flash_comes_back),
		cmocka_unit_test(minima_add_up),
		cmocka_unit_test(what_is_pinned_is_not_repaid),
		cmocka_unit_test(claims_give_way),
		cmocka_unit_test(a_tier_leaves_the_newcomer),
		cmocka_unit_test(asked_too_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
