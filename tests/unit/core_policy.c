// SPDX-License-Identifier: MIT
/*
 * core_policy.c - which block goes, who gets the memory, what it costs
 */
#include <math.h>

#include "core_host.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(1 + (n) / 4096, 0, 0, (n) % 4096 * 16)

/* 512 KiB blocks, four to a chunk. */
#define BLOCK	(512u << 10)
#define PER_CHUNK (HAWK_CHUNK_BYTES / BLOCK)

struct fix {
	struct host h;
	struct hawk_space *s;
	u64 now;
};

static void fix_init(struct fix *f, u32 host, u32 flash, u32 buckets, u32 max_blocks)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = max_blocks,
		.buckets = buckets,
	};

	memset(f, 0, sizeof(*f));
	host_init(&f->h, 7);
	p.quota_max[host_tier(&f->h, HAWK_TIER_HOST, host)] = host;
	if (flash)
		p.quota_max[host_tier(&f->h, HAWK_TIER_BLK, flash)] = flash;
	f->s = host_space(&f->h, &p);
}

static void fix_fini(struct fix *f)
{
	host_space_end(&f->h, f->s);
	host_fini(&f->h);
}

static void fill(struct fix *f, u32 n)
{
	f->now++;
	assert_int_equal(host_fill(&f->h, f->s, LID(n), NULL, n + 1, f->now), 0);
}

static void touch(struct fix *f, u32 n)
{
	assert_int_equal(host_block_reload(f->s, LID(n), 0, ++f->now, NULL), 0);
}

/* 'h' in the host tier, 'f' on flash, '-' gone */
static char where(struct fix *f, u32 n)
{
	struct hawk_ref ref;
	u64 vt;

	if (hawk_block_ref(f->s, LID(n), &vt, &ref))
		return '-';
	assert_int_equal(host_read(&f->h, f->s, vt), n + 1);
	return f->h.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST ? 'h' : 'f';
}

static void expect(struct fix *f, u32 first, const char *want)
{
	u32 i;

	for (i = 0; want[i]; i++)
		if (where(f, first + i) != want[i])
			fail_msg("block %u is %c, not %c", first + i, where(f, first + i), want[i]);
	host_check(f->s);
}

static struct hawk_stats stats(struct fix *f)
{
	struct hawk_stats st = { 0 };

	hawk_space_stats(f->s, &st);
	return st;
}

static struct hawk_ref pin(struct fix *f, u32 n)
{
	struct hawk_ref ref;
	u64 vt;

	assert_int_equal(hawk_block_pin(f->s, LID(n), ++f->now, &vt, &ref), 0);
	return ref;
}

/* ---- what goes first ---- */

static void least_recently_used_goes(void **state)
{
	struct fix f;
	struct hawk_ref ref;
	u32 i;

	(void)state;
	fix_init(&f, 1, 0, 1, 16);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	touch(&f, 0);
	fill(&f, 4);
	expect(&f, 0, "h-hhh");
	ref = pin(&f, 2);
	fill(&f, 5);
	fill(&f, 6);
	fill(&f, 7);
	expect(&f, 0, "--h--hhh");	/* pinned: passed over */
	hawk_block_unpin(f.s, ref);	/* and used until now */
	fill(&f, 8);
	expect(&f, 5, "-hhh");
	expect(&f, 2, "h");
	assert_int_equal(stats(&f).evict_drop, 5);
	fix_fini(&f);
}

/* To look a block up by key is to use it. */
static void found_is_used(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	struct fix f;
	u64 lid, vt;
	u32 i;

	(void)state;
	fix_init(&f, 1, 0, 1, 16);
	for (i = 0; i < 4; i++)
		assert_int_equal(host_fill(&f.h, f.s, LID(i), host_key(key, i), i + 1, ++f.now), 0);
	assert_int_equal(hawk_block_find(f.s, host_key(key, 0), false, ++f.now, &lid, &vt, &ref),
			 0);
	fill(&f, 4);
	expect(&f, 0, "h-hhh");
	fix_fini(&f);
}

/* A plan without room gets no move, and nothing is started that needs one. */
static void full_plan(void **state)
{
	struct hawk_plan *full;
	struct hawk_ref ref;
	struct fix f;
	u32 i;
	u64 vt;

	(void)state;
	fix_init(&f, 1, 2, 1, 16);
	for (i = 0; i < 5; i++)
		fill(&f, i);
	expect(&f, 0, "fhhhh");
	assert_int_equal(hawk_block_free(f.s, LID(1)), 0);
	assert_int_equal(hawk_block_fork(f.s, LID(2), LID(9)), 0);
	ref = pin(&f, 2);
	full = host_plan(&f.h, 0);
	assert_int_equal(host_block_reload(f.s, LID(0), 0, ++f.now, full), -EAGAIN);
	assert_int_equal(host_block_unshare(f.s, LID(2), ++f.now, full, &vt, &ref), -EAGAIN);
	assert_int_equal(host_space_writeback(f.s, 0, 1024, full), 0);
	fill(&f, 5);
	full = host_plan(&f.h, 0);
	assert_int_equal(host_block_alloc(f.s, LID(6), NULL, 0, ++f.now, full, &vt), -EAGAIN);
	assert_int_equal(full->n, 0);
	expect(&f, 0, "f-hhhh");
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	fix_fini(&f);
}

static void flash_is_second_chance(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 1, 1, 32);
	for (i = 0; i < 8; i++)
		fill(&f, i);
	expect(&f, 0, "ffffhhhh");
	assert_int_equal(stats(&f).evict_write, 4);
	/* flash is full: the coldest that is on flash only goes */
	fill(&f, 8);
	expect(&f, 0, "-ffffhhhh");
	assert_int_equal(stats(&f).flash_drop, 1);
	/* reloaded, 1 is the warmest, and clean: to evict it costs no write */
	assert_int_equal(host_reload(&f.h, f.s, LID(1), ++f.now), 0);
	expect(&f, 1, "h");
	for (i = 9; i < 12; i++)
		fill(&f, i);
	expect(&f, 1, "h");
	i = stats(&f).evict_write;
	fill(&f, 12);
	expect(&f, 1, "f");
	assert_int_equal(stats(&f).evict_write, i);
	assert_true(stats(&f).evict_clean >= 1);
	fix_fini(&f);
}

/* Flash holds copies of resident blocks only: one of them gives way, no block is lost. */
static void copies_give_way_to_blocks(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 1, 1, 32);
	for (i = 0; i < 8; i++)
		fill(&f, i);
	assert_int_equal(host_space_writeback(f.s, 0, 512, host_plan(&f.h, 16)), 4);
	host_run(&f.h);
	expect(&f, 0, "hhhhhhhh");
	for (i = 0; i < 4; i++)
		touch(&f, i);
	fill(&f, 8);	/* 4 is the coldest, and dirty */
	expect(&f, 0, "hhhhfhhhh");
	assert_int_equal(stats(&f).evict_drop + stats(&f).flash_drop, 0);
	fix_fini(&f);
}

static void write_ahead_makes_eviction_free(void **state)
{
	struct fix f;
	u32 i;
	u64 vt;

	(void)state;
	fix_init(&f, 4, 8, 2, 64);
	for (i = 0; i < 16; i++)
		fill(&f, i);
	assert_int_equal(host_space_writeback(f.s, 0, 0, host_plan(&f.h, 16)), 0);
	/* half of it, the cold half */
	i = host_space_writeback(f.s, 0, 512, host_plan(&f.h, 16));
	assert_in_range(i, 8, 10);
	host_run(&f.h);
	host_check(f.s);
	/* that is enough */
	assert_int_equal(host_space_writeback(f.s, 0, 512, host_plan(&f.h, 16)), 0);
	expect(&f, 0, "hhhhhhhhhhhhhhhh");
	for (i = 16; i < 20; i++) {
		/* without a plan: nothing may be written */
		assert_int_equal(host_block_alloc(f.s, LID(i), NULL, 0, ++f.now, NULL, &vt), 0);
		host_write(&f.h, f.s, vt, i + 1);
		assert_int_equal(hawk_block_put(f.s, LID(i), NULL, false, f.now), 0);
	}
	assert_int_equal(stats(&f).evict_clean, 4);
	assert_int_equal(stats(&f).evict_drop, 0);
	for (i = 0; i < 16; i++)
		assert_int_not_equal(where(&f, i), '-');
	for (i = 10; i < 16; i++)
		assert_int_equal(where(&f, i), 'h');	/* the coldest went */
	fix_fini(&f);
}

/* Writing ahead does not change who is cold, even if a block is used meanwhile. */
static void write_ahead_keeps_the_order(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 2, 1, 32);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	assert_int_equal(host_space_writeback(f.s, 0, 1024, host_plan(&f.h, 16)), 4);
	touch(&f, 0);	/* while its write is in flight */
	host_run(&f.h);
	fill(&f, 4);
	expect(&f, 0, "hfhhh");
	fill(&f, 5);
	expect(&f, 0, "hffhhh");
	fill(&f, 6);
	expect(&f, 0, "hfffhhh");
	fix_fini(&f);
}

static void leased_blocks_survive(void **state)
{
	const u32 leased = 100, all = 120;
	struct hawk_ref ref[100], other;
	u8 key[HAWK_KEY_BYTES];
	struct fix f;
	u64 lid, vt;
	u32 i;

	(void)state;
	fix_init(&f, all / 4, 0, 1, 256);
	for (i = 0; i < all; i++) {
		f.now++;
		assert_int_equal(host_fill(&f.h, f.s, LID(i), host_key(key, i), i + 1, f.now), 0);
	}
	/* all colder than the rest, and none is a reason to refuse */
	for (i = 0; i < leased; i++)
		assert_int_equal(hawk_block_find(f.s, host_key(key, i), true, ++f.now, &lid, &vt,
						 &ref[i]), 0);
	for (i = leased; i < all; i++)
		touch(&f, i);
	for (i = all; i < all + 40; i++)
		fill(&f, i);
	for (i = 0; i < leased; i++)
		expect(&f, i, "h");
	for (i = leased; i < all + 20; i++)
		expect(&f, i, "-");
	/* nothing but leased blocks: no room */
	for (i = all + 20; i < all + 40; i++)
		pin(&f, i);
	assert_int_equal(host_fill(&f.h, f.s, LID(i), NULL, i + 1, ++f.now), -EDQUOT);
	for (i = 0; i < leased; i++) {
		assert_int_equal(hawk_block_free(f.s, LID(i)), -EBUSY);
		hawk_block_unlease(f.s, ref[i]);
	}
	fill(&f, all + 40);
	for (i = all + 20; i < all + 40; i++) {
		assert_int_equal(hawk_block_ref(f.s, LID(i), &vt, &other), 0);
		assert_int_equal(hawk_block_unpin(f.s, other), 0);
	}
	fix_fini(&f);
}

/* A drive that fails costs cached blocks, not the service; leased ones are kept. */
static void failing_drive(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	struct fix f;
	u64 lid, vt;
	u32 i;

	(void)state;
	fix_init(&f, 1, 1, 1, 32);
	assert_int_equal(host_fill(&f.h, f.s, LID(0), host_key(key, 1), 1, ++f.now), 0);
	assert_int_equal(hawk_block_find(f.s, key, true, ++f.now, &lid, &vt, &ref), 0);
	for (i = 1; i < 4; i++)
		fill(&f, i);
	for (i = 4; i < 20; i++) {
		u32 tries = 0;

		while (host_block_alloc(f.s, LID(i), NULL, 0, ++f.now, host_plan(&f.h, 1), &vt)) {
			assert_int_equal(f.h.plan.n, 1);
			f.h.plan_move[0].result = -EIO;
			hawk_move_complete(&f.h.plan_move[0]);
			assert_true(tries++ < 4);
		}
		host_write(&f.h, f.s, vt, i + 1);
		assert_int_equal(hawk_block_put(f.s, LID(i), NULL, false, f.now), 0);
		expect(&f, 0, "h");
	}
	assert_int_equal(stats(&f).evict_write, 0);
	assert_int_equal(stats(&f).flash, 0);
	hawk_block_unlease(f.s, ref);
	fix_fini(&f);
}

/* ---- who gets the memory ---- */

/* @n blocks that are all at home in one bucket; return the number behind the last. */
static u32 fill_bucket(struct fix *f, u32 bucket, u32 first, u32 n)
{
	u32 i, done, end;
	u64 vt;

	/* none is published, so none can be evicted, before all are there */
	for (i = first, done = 0; done < n; i++)
		if (hawk_home(f->s, LID(i)) == bucket) {
			assert_int_equal(host_alloc(&f->h, f->s, LID(i), NULL, ++f->now, &vt), 0);
			host_write(&f->h, f->s, vt, i + 1);
			done++;
		}
	end = i;
	while (i-- > first)
		if (hawk_home(f->s, LID(i)) == bucket)
			assert_int_equal(hawk_block_put(f->s, LID(i), NULL, false, ++f->now), 0);
	return end;
}

/* One bucket can have the frames of all. */
static void dry_bucket_steals_first(void **state)
{
	struct fix f;

	(void)state;
	fix_init(&f, 4, 0, 16, 64);
	fill_bucket(&f, 3, 0, 16);
	assert_int_equal(stats(&f).evict_drop, 0);
	assert_int_equal(stats(&f).blocks, 16);
	assert_true(stats(&f).steals > 0);
	fix_fini(&f);
}

/* Every frame is a cached block of one bucket: the others may still allocate. */
static void dry_bucket_evicts_elsewhere(void **state)
{
	struct fix f;
	u32 i, n, tiers;

	(void)state;
	for (tiers = 0; tiers < 2; tiers++) {
		fix_init(&f, 4, tiers, 16, 64);
		i = fill_bucket(&f, 3, 0, 16);
		for (n = 0; n < 16; n++)
			i = fill_bucket(&f, (4 + n) % 16, i, 1);
		assert_int_equal(stats(&f).resident, 16);
		assert_int_equal(stats(&f).evict_drop + stats(&f).evict_write, 16);
		assert_int_equal(!stats(&f).evict_write, !tiers);
		host_check(f.s);
		fix_fini(&f);
	}
}

/* Block slots are fewer than frames: the coldest block on flash gives its own. */
static void few_block_slots(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 2, 1, 8);
	for (i = 0; i < 12; i++)
		fill(&f, i);
	expect(&f, 0, "----ffffhhhh");
	assert_int_equal(stats(&f).flash_drop, 4);
	/* one that has a second LID in another bucket, too */
	fix_fini(&f);
	fix_init(&f, 1, 2, 4, 8);
	for (i = 0; i < 8; i++)
		fill(&f, i);
	for (i = 0; i < 8; i++)
		assert_int_equal(hawk_block_fork(f.s, LID(i), LID(100 + i)), 0);
	for (i = 8; i < 16; i++)
		if (host_fill(&f.h, f.s, LID(i), NULL, i + 1, ++f.now))
			fail_msg("no slot for block %u", i);
	assert_int_equal(stats(&f).blocks, 8);
	host_check(f.s);
	fix_fini(&f);
}

/*
 * LIDs run out before blocks do, as forks have them: then blocks go for their LIDs, but
 * neither what is held nor what is being forked.
 */
static void lids_run_out(void **state)
{
	struct hawk_ref ref[2];
	struct fix f;
	u64 vt;
	u32 i;

	(void)state;
	fix_init(&f, 2, 0, 1, 8);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	ref[0] = pin(&f, 0);
	ref[1] = pin(&f, 1);
	for (i = 0; i < 12; i++)
		assert_int_equal(hawk_block_fork(f.s, LID(i < 6 ? 0 : 2), LID(100 + i)), 0);
	/* all 16 are in use: the coldest that nobody holds pays for the next one */
	touch(&f, 2);
	assert_int_equal(hawk_block_fork(f.s, LID(1), LID(200)), 0);
	expect(&f, 0, "hhh-");
	/* the source of a fork is not forgotten for its own LID */
	assert_int_equal(hawk_block_fork(f.s, LID(2), LID(201)), -ENOSPC);
	expect(&f, 0, "hhh-");
	/* for another block it is, and leaves all its LIDs */
	fill(&f, 4);
	expect(&f, 0, "hh--h");
	pin(&f, 4);
	for (i = 0; i < 6; i++)
		assert_int_equal(hawk_block_fork(f.s, LID(0), LID(300 + i)), 0);
	assert_int_equal(stats(&f).evict_drop, 2);
	/* nothing is left that may go */
	assert_int_equal(hawk_block_fork(f.s, LID(0), LID(400)), -ENOSPC);
	assert_int_equal(hawk_block_alloc(f.s, LID(5), NULL, 0, ++f.now, NULL, &vt), -ENOSPC);
	expect(&f, 0, "hh--h");
	for (i = 0; i < 2; i++)
		assert_int_equal(hawk_block_unpin(f.s, ref[i]), 0);
	fix_fini(&f);
}

/* The same, with LIDs and blocks to give them up in other buckets. */
static void lids_come_from_afar(void **state)
{
	struct hawk_ref ref;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 0, 8, 8);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	ref = pin(&f, 0);
	for (i = 0; i < 12; i++)
		assert_int_equal(hawk_block_fork(f.s, LID(i % 4), LID(100 + i)), 0);
	for (i = 0; i < 12; i++)
		assert_int_equal(hawk_block_fork(f.s, LID(0), LID(200 + i)), 0);
	expect(&f, 0, "h---");
	assert_int_equal(hawk_block_fork(f.s, LID(0), LID(300)), -ENOSPC);
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	for (i = 4; i < 16; i++)
		fill(&f, i);
	expect(&f, 0, "----");
	fix_fini(&f);
}

/* A block that may be forgotten for its LIDs is being written: worth waiting for. */
static void lids_wait_for_moves(void **state)
{
	struct hawk_ref ref;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 1, 1, 2);
	fill(&f, 0);
	fill(&f, 1);
	ref = pin(&f, 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(hawk_block_fork(f.s, LID(0), LID(100 + i)), 0);
	assert_int_equal(host_space_writeback(f.s, 0, 1024, host_plan(&f.h, 1)), 1);
	assert_int_equal(hawk_block_fork(f.s, LID(0), LID(102)), -EAGAIN);
	host_run(&f.h);
	assert_int_equal(hawk_block_fork(f.s, LID(0), LID(102)), 0);
	expect(&f, 0, "h-");
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	fix_fini(&f);
}

static void quotas(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 64, .buckets = 4,
	};
	struct hawk_space *greedy, *modest, *more;
	u32 tier, i, nfree;
	struct host h;
	u64 vt, tag;

	(void)state;
	host_init(&h, 1);
	tier = host_tier(&h, HAWK_TIER_HOST, 6);
	p.quota_max[tier] = 6;
	greedy = host_space(&h, &p);
	p.quota_min[tier] = 2;
	p.quota_max[tier] = 3;
	modest = host_space(&h, &p);
	/* minima are promises: there is room for four chunks more of them, not five */
	p.quota_min[tier] = 5;
	p.quota_max[tier] = 6;
	assert_int_equal(host_try_space(&h, &p, &more), -ENOSPC);
	p.quota_min[tier] = 7;
	assert_int_equal(host_try_space(&h, &p, &more), -EINVAL);
	p.quota_max[tier] = 8;
	assert_int_equal(host_try_space(&h, &p, &more), -ENOSPC);
	p.quota_max[tier + 1] = 1;
	p.quota_min[tier] = 0;
	assert_int_equal(host_try_space(&h, &p, &more), -ENOENT);

	/* the greedy one pins all it can get: what is kept for the other stays */
	for (i = 0; i < 4 * PER_CHUNK; i++)
		assert_int_equal(host_alloc(&h, greedy, LID(i), NULL, 1, &vt), 0);
	assert_int_equal(host_alloc(&h, greedy, LID(i), NULL, 1, &vt), -ENOSPC);
	assert_int_equal(hawk_tier_usage(h.e, tier, NULL, &nfree, NULL), 0);
	assert_int_equal(nfree, 2);
	for (i = 0; i < 2 * PER_CHUNK; i++) {
		assert_int_equal(host_alloc(&h, modest, LID(i), NULL, 1, &vt), 0);
		host_write(&h, modest, vt, 1000 + i);
	}
	/* below its maximum but the tier is full */
	assert_int_equal(host_alloc(&h, modest, LID(i), NULL, 1, &vt), -ENOSPC);
	/* what the greedy one leaves behind is cleaned before the modest one has it */
	host_space_end(&h, greedy);
	assert_int_equal(host_alloc(&h, modest, LID(i), NULL, 1, &vt), -ENOSPC);
	host_clean(&h, 1);
	for (; i < 3 * PER_CHUNK; i++) {
		assert_int_equal(host_alloc(&h, modest, LID(i), NULL, 1, &vt), 0);
		tag = host_read(&h, modest, vt);
		assert_int_equal(tag, 0);
	}
	/* at its maximum */
	host_clean(&h, ~0u);
	assert_int_equal(host_alloc(&h, modest, LID(i), NULL, 1, &vt), -EDQUOT);
	assert_int_equal(hawk_tier_remove(h.e, tier), -EBUSY);
	host_space_end(&h, modest);
	assert_int_equal(hawk_tier_remove(h.e, tier), -EBUSY);	/* still to be cleaned */
	host_fini(&h);
}

/* The preferred host tier first, the others when it is full. */
static void preferred_tier(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 64, .buckets = 1,
	};
	struct hawk_space *s;
	struct host h;
	u32 i, a, b;
	u64 vt;

	(void)state;
	host_init(&h, 1);
	a = host_tier(&h, HAWK_TIER_HOST, 1);
	b = host_tier(&h, HAWK_TIER_HOST, 1);
	p.quota_max[a] = 1;
	p.quota_max[b] = 1;
	s = host_space(&h, &p);
	for (i = 0; i < 2 * PER_CHUNK; i++) {
		assert_int_equal(host_block_alloc(s, LID(i), NULL, b, 1, NULL, &vt), 0);
		assert_int_equal(HAWK_VT_TIER(vt), i < PER_CHUNK ? b : a);
	}
	assert_int_equal(host_block_alloc(s, LID(i), NULL, 7, 1, NULL, &vt), -EDQUOT);
	host_space_end(&h, s);
	host_fini(&h);
}

/* ---- what bucketing costs ---- */

#define ITEMS	20000
#define FRAMES	4096
#define TRACE	400000

/* One LRU list over everything, by last use. */
struct lru_ref {
	u32 prev[ITEMS + 1], next[ITEMS + 1];	/* [ITEMS]: the list's head */
	bool in[ITEMS];
	u32 n;
};

static void ref_unlink(struct lru_ref *l, u32 i)
{
	l->next[l->prev[i]] = l->next[i];
	l->prev[l->next[i]] = l->prev[i];
	l->in[i] = false;
	l->n--;
}

static bool ref_access(struct lru_ref *l, u32 i)
{
	bool hit = l->in[i];

	if (hit)
		ref_unlink(l, i);
	else if (l->n == FRAMES)
		ref_unlink(l, l->prev[ITEMS]);
	l->next[i] = l->next[ITEMS];
	l->prev[i] = ITEMS;
	l->prev[l->next[ITEMS]] = i;
	l->next[ITEMS] = i;
	l->in[i] = true;
	l->n++;
	return hit;
}

static void hit_rate_near_global_lru(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 4096, .block_tokens = 16, .max_blocks = 2 * FRAMES, .buckets = 64,
	};
	struct lru_ref *ref = test_calloc(1, sizeof(*ref));
	double *cdf = test_calloc(ITEMS, sizeof(*cdf)), x, ours, global;
	u32 i, k, lo, hi, hits = 0, ref_hits = 0;
	struct hawk_space *s;
	u64 rng = 42, lid;
	struct host h;

	(void)state;
	host_init(&h, 1);
	p.quota_max[host_tier(&h, HAWK_TIER_HOST, FRAMES / 512)] = FRAMES / 512;
	s = host_space(&h, &p);
	ref->prev[ITEMS] = ITEMS;
	ref->next[ITEMS] = ITEMS;
	for (i = 0; i < ITEMS; i++)
		cdf[i] = (i ? cdf[i - 1] : 0) + 1 / pow(i + 1, 0.9);
	for (k = 0; k < TRACE; k++) {
		x = (host_rand(&rng) >> 11) * 0x1p-53 * cdf[ITEMS - 1];
		for (lo = 0, hi = ITEMS - 1; lo < hi;)
			if (cdf[(lo + hi) / 2] < x)
				lo = (lo + hi) / 2 + 1;
			else
				hi = (lo + hi) / 2;
		lid = HAWK_LID(1 + lo / 64, lo % 4, 0, lo / 4 % 16 * 16);
		ref_hits += ref_access(ref, lo);
		if (host_block_reload(s, lid, 0, k, NULL) == 0)
			hits++;
		else
			assert_int_equal(host_fill(&h, s, lid, NULL, 1, k), 0);
	}
	host_check(s);
	ours = 100.0 * hits / TRACE;
	global = 100.0 * ref_hits / TRACE;
	fprintf(stderr, "# hit rate %.2f %%, one global LRU %.2f %%\n", ours, global);
	assert_true(fabs(ours - global) < 1.2);
	test_free(cdf);
	test_free(ref);
	host_space_end(&h, s);
	host_fini(&h);
}

/*
 * Nothing is forgotten while a frame is unused anywhere, however unevenly LIDs and
 * free frames fall on buckets; and what is freed once the memory was full is found.
 */
static void no_loss_while_there_is_room(void **state)
{
	const u32 n = 64 * PER_CHUNK;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 64, 0, 64, n);
	for (i = 0; i < n; i++)
		fill(&f, i);
	for (i = 0; i < n; i++)
		assert_int_equal(where(&f, i), 'h');
	fill(&f, n);			/* one must go: the tier is full */
	for (i = 0; i <= n; i++)
		if (where(&f, i) == 'h' && i % 2)
			assert_int_equal(hawk_block_free(f.s, LID(i)), 0);
	for (i = 0; i < n / 2 - 1; i++)
		fill(&f, 2 * n + i);
	for (i = 0; i < n / 2 - 1; i++)
		assert_int_equal(where(&f, 2 * n + i), 'h');
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_recently_used_goes),
		cmocka_unit_test(found_is_used),
		cmocka_unit_test(full_plan),
		cmocka_unit_test(flash_is_second_chance),
		cmocka_unit_test(copies_give_way_to_blocks),
		cmocka_unit_test(write_ahead_makes_eviction_free),
		cmocka_unit_test(write_ahead_keeps_the_order),
		cmocka_unit_test(leased_blocks_survive),
		cmocka_unit_test(failing_drive),
		cmocka_unit_test(dry_bucket_steals_first),
		cmocka_unit_test(dry_bucket_evicts_elsewhere),
		cmocka_unit_test(no_loss_while_there_is_room),
		cmocka_unit_test(few_block_slots),
		cmocka_unit_test(lids_run_out),
		cmocka_unit_test(lids_come_from_afar),
		cmocka_unit_test(lids_wait_for_moves),
		cmocka_unit_test(quotas),
		cmocka_unit_test(preferred_tier),
		cmocka_unit_test(hit_rate_near_global_lru),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
