// SPDX-License-Identifier: MIT
/*
 * core_reads.c - a drive that does not answer holds no more than half of the host frames
 */
#include "core_host.h"

#define LID(n)	HAWK_LID(1, 0, 0, (n) * 16)
#define BLOCK	(64u << 10)
#define FRAMES	64u		/* of host memory: two chunks */

struct fix {
	struct host h;
	struct hawk_space *s;
	u64 now;
};

/* Twice as many blocks as frames: the older half is on flash only, the other one too. */
static void fix_init(struct fix *f)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 1024, .buckets = 4,
	};
	u32 n, idle;

	memset(f, 0, sizeof(*f));
	host_init(&f->h, 3);
	p.quota_max[host_tier(&f->h, HAWK_TIER_HOST, 2)] = 2;
	p.quota_max[host_tier(&f->h, HAWK_TIER_BLK, 16)] = 16;
	f->s = host_space(&f->h, &p);
	for (n = 0; n < 2 * FRAMES; n++)
		assert_int_equal(host_fill(&f->h, f->s, LID(n), NULL, n + 1, ++f->now), 0);
	for (idle = 0; idle < 8; idle++) {
		if (host_space_writeback(f->s, 0, 1024, host_plan(&f->h, HOST_PLAN)))
			idle = 0;
		host_run(&f->h);
	}
}

/* Starts to reload blocks that are on flash until none may begin.  Return: how many. */
static u32 reload_many(struct fix *f)
{
	u32 n, begun = 0;
	int ret;

	for (n = 0; n < 2 * FRAMES; n++) {
		ret = host_block_reload(f->s, LID(n), HAWK_TIER_ANY, ++f->now,
					host_plan(&f->h, HOST_PLAN));
		begun += f->h.plan.n;	/* none if it is on its way already */
		host_submit(&f->h);
		if (ret == -EAGAIN)
			break;
		assert_true(!ret || ret == -EINPROGRESS);
	}
	return begun;
}

static void half_is_left(void **state)
{
	struct fix f;
	u32 n;

	(void)state;
	fix_init(&f);
	assert_int_equal(reload_many(&f), FRAMES / 2);
	assert_int_equal(reload_many(&f), 0);
	/* what does not need the drive goes on */
	for (n = 0; n < FRAMES / 4; n++) {
		u64 vt;
		int ret = host_block_alloc(f.s, LID(1000 + n), NULL, HAWK_TIER_ANY, ++f.now,
					   host_plan(&f.h, HOST_PLAN), &vt);

		assert_int_equal(ret, 0);
		host_write(&f.h, f.s, vt, 1);
		assert_int_equal(hawk_block_put(f.s, LID(1000 + n), NULL, false, f.now), 0);
	}
	assert_true(host_step(&f.h));
	assert_int_equal(reload_many(&f), 1);
	host_drain(&f.h);
	assert_true(reload_many(&f) > 1);
	host_drain(&f.h);
	host_check(f.s);
	host_space_end(&f.h, f.s);
	host_fini(&f.h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
