// SPDX-License-Identifier: MIT
/*
 * core_found.c - what hawk-sim found, each as short as it could be made
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define BUCKETS	8

/* The next LID that is at home in bucket @home. */
static u64 lid_in(u32 home)
{
	static u32 tok;
	u64 lid;

	do {
		lid = HAWK_LID(1, 0, 0, tok++ * 16);
	} while (hawk_lid_bucket(lid, 3) != home);
	return lid;
}

/*
 * All block slots are in use and the only block that may be forgotten has just been
 * handed out to be written: there will be a slot when that has ended.  (It was said
 * that the quota is exhausted.)
 */
static void slot_after_a_write(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = HAWK_CHUNK_BYTES, .block_tokens = 16, .max_blocks = 2,
		.buckets = BUCKETS,
	};
	u64 far = lid_in(4), pinned = lid_in(1), cold = lid_in(2), fresh = lid_in(0), vt;
	struct hawk_space *s;
	struct hawk_ref ref;
	struct host h;
	u32 near_tier, far_tier;

	(void)state;
	host_init(&h, 11);
	near_tier = host_tier(&h, HAWK_TIER_HOST, 2);
	far_tier = host_tier(&h, HAWK_TIER_HOST, 1);
	p.quota_max[near_tier] = 2;
	p.quota_max[far_tier] = 1;
	p.quota_max[host_tier(&h, HAWK_TIER_BLK, 1)] = 1;
	s = host_space(&h, &p);

	/* a spare frame of the second tier, too far away to be found at once */
	assert_int_equal(host_block_alloc(s, far, NULL, far_tier, 1, NULL, &vt), 0);
	assert_int_equal(HAWK_VT_TIER(vt), far_tier);
	assert_int_equal(hawk_block_put(s, far, NULL, false, 1), 0);
	assert_int_equal(hawk_block_free(s, far), 0);
	/* the first tier is full: one block is pinned, one is cold and dirty */
	assert_int_equal(host_fill(&h, s, cold, NULL, 1, 2), 0);
	assert_int_equal(host_fill(&h, s, pinned, NULL, 2, 3), 0);
	assert_int_equal(hawk_block_pin(s, pinned, 4, &vt, &ref), 0);

	assert_int_equal(host_block_alloc(s, fresh, NULL, HAWK_TIER_ANY, 5, host_plan(&h, 4), &vt),
			 -EAGAIN);
	assert_int_equal(h.plan.n, 1);
	host_run(&h);
	assert_int_equal(host_block_alloc(s, fresh, NULL, HAWK_TIER_ANY, 6, NULL, &vt), 0);

	assert_int_equal(hawk_block_put(s, fresh, NULL, false, 7), 0);
	assert_int_equal(hawk_block_unpin(s, ref), 0);
	host_space_end(&h, s);
	host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slot_after_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
