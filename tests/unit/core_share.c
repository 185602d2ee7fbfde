// SPDX-License-Identifier: MIT
/*
 * core_share.c - chunks come to a space, are taken from it, and who gets them
 *
 * What a host does with it, too: fair() is the policy that the hosts follow.
 */
#include "core_share.h"

/* ---- growing ---- */

/* A chunk of flash is on its way: no block is dropped for want of a frame there. */
static void flash_grows_before_a_block_goes(void **state)
{
	struct hawk_grant g;
	struct fix f;
	u64 vt;
	int ret;

	(void)state;
	fix_init(&f, 1, 1);
	fill(&f, 0, PER_CHUNK);
	ret = hawk_block_alloc(f.s, LID(PER_CHUNK), NULL, HAWK_TIER_ANY, ++f.now,
			       host_plan(&f.h, HOST_PLAN), &vt);
	assert_int_equal(ret, -ENOBUFS);
	assert_int_equal(hawk_space_grow(f.s, &g), 0);
	assert_int_equal(g.tier, FLASH);
	/* another one asks meanwhile */
	ret = hawk_block_alloc(f.s, LID(PER_CHUNK), NULL, HAWK_TIER_ANY, ++f.now,
			       host_plan(&f.h, HOST_PLAN), &vt);
	assert_int_equal(ret, -EAGAIN);
	assert_int_equal(f.h.plan.n, 0);
	expect(&f, 0, "hhhh");
	hawk_space_grown(f.s, &g, true);
	fill(&f, PER_CHUNK, PER_CHUNK);
	expect(&f, 0, "ffffhhhh");
	assert_int_equal(stats(f.s).evict_drop, 0);
	fix_fini(&f);
}

static void growth_is_the_hosts(void **state)
{
	struct hawk_grant g, g2;
	struct fix f;
	u64 vt;

	(void)state;
	fix_init(&f, 2, 0);
	assert_int_equal(hawk_space_grow(f.s, &g), -ENOENT);	/* nobody asked */
	assert_int_equal(hawk_block_alloc(f.s, LID(1), NULL, HOST, 1, NULL, &vt), -ENOBUFS);
	assert_int_equal(hawk_space_grow(f.s, &g), 0);
	assert_int_equal(g.tier, HOST);
	assert_int_equal(hawk_space_grow(f.s, &g2), -ENOENT);
	assert_int_equal(nfree(&f, HOST), 1);
	assert_true(hawk_frame_off(f.s, HOST, g.slot * PER_CHUNK) == ~0ull);
	host_check(f.s);
	/* another thread does not wait for it */
	assert_int_equal(hawk_block_alloc(f.s, LID(2), NULL, HOST, 1, NULL, &vt), -ENOBUFS);
	assert_int_equal(hawk_space_grow(f.s, &g2), 0);
	assert_int_not_equal(g.slot, g2.slot);
	assert_int_not_equal(g.chunk, g2.chunk);
	/* nothing is left to grow by, but room is on its way: that is no refusal */
	assert_int_equal(hawk_block_alloc(f.s, LID(3), NULL, HOST, 1, NULL, &vt), -EAGAIN);
	hawk_space_grown(f.s, &g2, true);
	assert_true(hawk_frame_off(f.s, HOST, g2.slot * PER_CHUNK) ==
		    (u64)g2.chunk * HAWK_CHUNK_BYTES);
	hawk_space_grown(f.s, &g, true);
	host_check(f.s);
	fill(&f, 0, 8);
	expect(&f, 0, "hhhhhhhh");
	fix_fini(&f);
}

static void without_memory_it_evicts(void **state)
{
	struct hawk_grant g;
	struct fix f;
	u64 vt;

	(void)state;
	fix_init(&f, 4, 0);
	assert_int_equal(hawk_block_alloc(f.s, LID(0), NULL, HOST, 1, NULL, &vt), -ENOBUFS);
	assert_int_equal(hawk_space_grow(f.s, &g), 0);
	hawk_space_grown(f.s, &g, false);
	host_check(f.s);
	assert_int_equal(nfree(&f, HOST), 4);
	assert_int_equal(hawk_block_alloc(f.s, LID(0), NULL, HOST, 1, NULL, &vt), -ENOSPC);
	hawk_space_unstick(f.s);
	fill(&f, 0, 4);
	assert_int_equal(hawk_block_alloc(f.s, LID(4), NULL, HOST, 9, NULL, &vt), -ENOBUFS);
	assert_int_equal(hawk_space_grow(f.s, &g), 0);
	hawk_space_grown(f.s, &g, false);
	fill(&f, 4, 2);
	expect(&f, 0, "--hhhh");
	/* it lacks memory, not chunks: nobody else's would help */
	assert_false(hawk_space_starved(f.s, HOST));
	hawk_space_unstick(f.s);
	fill(&f, 6, 2);
	expect(&f, 2, "hhhhhh");
	fix_fini(&f);
}

/* ---- shrinking ---- */

static void blocks_move_to_flash(void **state)
{
	struct hawk_ref ref;
	struct fix f;
	u32 slot, busy, chunk;
	u64 vt;

	(void)state;
	fix_init(&f, 2, 2);
	fill(&f, 0, 8);
	slot = slot_of(&f, 0);
	assert_int_equal(hawk_space_drain_start(f.s, HOST, 2), -ENOENT);
	assert_int_equal(hawk_space_drain_start(f.s, 7, 0), -ENOENT);
	assert_int_equal(hawk_space_drain(f.s, HOST, 0, f.now, host_plan(&f.h, 1), &busy), -ENOENT);
	assert_int_equal(hawk_space_drain_start(f.s, HOST, slot), 0);
	assert_int_equal(hawk_space_drain_start(f.s, HOST, !slot), -EBUSY);
	assert_int_equal(drain(&f, f.s, HOST, 0, &busy), 0);
	/* empty, and nobody gets a frame of it: the next block takes another's */
	assert_int_equal(host_alloc(&f.h, f.s, LID(8), NULL, ++f.now, &vt), 0);
	assert_int_not_equal(HAWK_VT_FRAME(vt) / PER_CHUNK, slot);
	host_check(f.s);
	chunk = hawk_space_drain_finish(f.s, HOST, NULL);
	assert_int_equal(hawk_tier_next_dirty(f.h.e, HOST, HAWK_NONE), chunk);
	assert_true(hawk_frame_off(f.s, HOST, slot * PER_CHUNK) == ~0ull);
	assert_int_equal(stats(f.s).chunks[HOST], 1);
	assert_int_equal(stats(f.s).evict_drop + stats(f.s).flash_drop, 0);
	/* and it grows again into the same place, with a chunk that was cleaned */
	host_clean(&f.h, ~0u);
	assert_int_equal(hawk_block_ref(f.s, LID(8), &vt, &ref), 0);
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	for (busy = 0; busy < 8; busy++)
		assert_int_equal(host_reload(&f.h, f.s, LID(busy), ++f.now), 0);
	expect(&f, 0, "hhhhhhhh");
	fix_fini(&f);
}

/* Without flash what goes is lost, but not what somebody relies on. */
static void what_is_held_stays(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref lease, pin;
	u32 busy, slot;
	struct fix f;
	u64 lid, vt;

	(void)state;
	fix_init(&f, 1, 0);
	host_key(key, 1);
	assert_int_equal(host_fill(&f.h, f.s, LID(0), key, 1, ++f.now), 0);
	fill(&f, 1, 2);
	assert_int_equal(host_alloc(&f.h, f.s, LID(3), NULL, ++f.now, &vt), 0);	/* FILLING */
	slot = slot_of(&f, 0);
	assert_int_equal(hawk_block_find(f.s, key, true, ++f.now, &lid, &vt, &lease), 0);
	assert_int_equal(hawk_block_pin(f.s, LID(1), ++f.now, &vt, &pin), 0);
	assert_int_equal(hawk_space_drain_pick(f.s, HOST, f.now), HAWK_NONE);
	assert_int_equal(hawk_space_drain_start(f.s, HOST, slot), 0);
	assert_int_equal(drain(&f, f.s, HOST, 0, &busy), -EBUSY);
	assert_int_equal(busy, 3);
	host_check(f.s);
	assert_int_equal(hawk_block_ref(f.s, LID(2), &vt, &pin), -ENOENT);
	assert_int_equal(drain(&f, f.s, HOST, HAWK_DRAIN_DROP, &busy), -EBUSY);
	assert_int_equal(busy, 2);
	hawk_block_unlease(f.s, lease);	/* went with the block */
	assert_int_equal(hawk_block_ref(f.s, LID(1), &vt, &pin), 0);
	assert_int_equal(hawk_block_unpin(f.s, pin), 0);
	assert_int_equal(hawk_block_ref(f.s, LID(3), &vt, &pin), 0);
	assert_int_equal(hawk_block_unpin(f.s, pin), 0);
	assert_int_equal(drain(&f, f.s, HOST, 0, &busy), 0);
	assert_int_equal(stats(f.s).blocks, 0);
	hawk_space_drain_finish(f.s, HOST, NULL);
	fix_fini(&f);
}

/* What is on flash only comes home if there is room, else it is lost. */
static void a_flash_chunk_goes(void **state)
{
	struct fix f;
	u32 i, slot;

	(void)state;
	fix_init(&f, 2, 2);
	fill(&f, 0, 12);	/* 0..3 are on flash, and in its first chunk */
	expect(&f, 0, "ffffhhhhhhhh");
	assert_int_equal(host_space_writeback(f.s, HOST, 512, host_plan(&f.h, 16)), 4);
	host_run(&f.h);
	slot = slot_of(&f, 0);
	/* two of the coldest leave two frames free */
	for (i = 4; i < 6; i++)
		assert_int_equal(hawk_block_free(f.s, LID(i)), 0);
	take(&f, f.s, FLASH, slot, NULL);
	assert_int_equal(stats(f.s).chunks[FLASH], 1);
	assert_int_equal(stats(f.s).flash_drop, 2);
	assert_int_equal(stats(f.s).reloads, 2);
	/* copies of resident blocks are no more than forgotten */
	expect(&f, 6, "hhhhhh");
	take(&f, f.s, FLASH, !slot, NULL);
	expect(&f, 6, "hhhhhh");
	assert_int_equal(stats(f.s).flash, 0);
	assert_int_equal(stats(f.s).resident, 8);
	assert_int_equal(stats(f.s).flash_drop, 2);
	fix_fini(&f);
}

/* What had to come home is as old as it was, and the next to go. */
static void no_younger_by_moving(void **state)
{
	struct fix f;

	(void)state;
	fix_init(&f, 1, 1);
	fill(&f, 0, 5);
	expect(&f, 0, "fhhhh");
	assert_int_equal(hawk_block_free(f.s, LID(4)), 0);
	take(&f, f.s, FLASH, 0, NULL);
	expect(&f, 0, "hhhh");
	host_clean(&f.h, ~0u);
	fill(&f, 5, 1);
	expect(&f, 0, "fhhh-h");
	fix_fini(&f);
}

/* A frame that another thread has just taken off a list is not parked yet. */
static void in_somebodys_hands(void **state)
{
	struct hawk_bucket *b;
	struct fix f;
	u32 busy, frame;

	(void)state;
	fix_init(&f, 1, 0);
	fill(&f, 0, 3);
	b = &f.s->bucket[0];
	hawk_lock(&b->lock);
	frame = hawk_res_pop(f.s, b, HOST);
	hawk_unlock(&b->lock);
	assert_int_equal(hawk_space_drain_start(f.s, HOST, 0), 0);
	assert_int_equal(hawk_space_drain(f.s, HOST, 0, f.now, host_plan(&f.h, 4), &busy), -EAGAIN);
	assert_int_equal(busy, 0);
	hawk_lock(&b->lock);
	hawk_res_push(f.s, b, HOST, frame);
	hawk_unlock(&b->lock);
	assert_int_equal(hawk_space_drain(f.s, HOST, 0, f.now, host_plan(&f.h, 4), &busy), 0);
	host_check(f.s);
	hawk_space_drain_finish(f.s, HOST, NULL);
	fix_fini(&f);
}

static void cancelled(void **state)
{
	struct hawk_ref ref;
	struct fix f;
	u32 busy;
	u64 vt;

	(void)state;
	fix_init(&f, 1, 0);
	hawk_space_drain_cancel(f.s, HOST);	/* there is none */
	fill(&f, 0, 4);
	assert_int_equal(hawk_block_pin(f.s, LID(3), ++f.now, &vt, &ref), 0);
	assert_int_equal(hawk_block_free(f.s, LID(0)), 0);
	assert_int_equal(hawk_space_drain_start(f.s, HOST, 0), 0);
	assert_int_equal(drain(&f, f.s, HOST, 0, &busy), -EBUSY);
	assert_int_equal(hawk_block_alloc(f.s, LID(9), NULL, HOST, 9, NULL, &vt), -EDQUOT);
	host_check(f.s);
	hawk_space_drain_cancel(f.s, HOST);
	host_check(f.s);
	fill(&f, 4, 3);
	expect(&f, 3, "hhhh");
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	fix_fini(&f);
}

static void cheapest_chunk(void **state)
{
	struct hawk_ref ref;
	struct fix f;
	u32 i;
	u64 vt;

	(void)state;
	fix_init(&f, 4, 4);
	f.now = 1u << 20;
	for (i = 0; i < 4; i++) {
		fill(&f, 4 * i, 4);
		f.now += 1u << 20;
	}
	/* all dirty: the coldest */
	assert_int_equal(hawk_space_drain_pick(f.s, HOST, f.now), slot_of(&f, 0));
	/* not if it is pinned */
	assert_int_equal(hawk_block_pin(f.s, LID(1), 0, &vt, &ref), 0);
	assert_int_equal(hawk_space_drain_pick(f.s, HOST, f.now), slot_of(&f, 4));
	/* rather than to write, take what is clean */
	for (i = 8; i < 12; i++)
		f.s->block[f.s->win[HOST].frame[slot_of(&f, 8) * PER_CHUNK + i - 8].block].flags |=
			HAWK_BF_FLASH;
	assert_int_equal(hawk_space_drain_pick(f.s, HOST, f.now), slot_of(&f, 8));
	for (i = 8; i < 12; i++)
		f.s->block[f.s->win[HOST].frame[slot_of(&f, 8) * PER_CHUNK + i - 8].block].flags &=
			~HAWK_BF_FLASH;
	/* and best what nobody uses */
	i = slot_of(&f, 12);
	assert_int_equal(hawk_block_free(f.s, LID(12)), 0);
	assert_int_equal(hawk_block_free(f.s, LID(13)), 0);
	assert_int_equal(hawk_space_drain_pick(f.s, HOST, f.now), i);
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	fix_fini(&f);
}

/* A leased block goes to flash; without that its chunk cannot be had, however cold. */
static void leased_chunk(u32 flash, bool taken)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref lease;
	u32 i, slot;
	struct fix f;
	u64 lid, vt;

	fix_init(&f, 2, flash);
	host_key(key, 1);
	assert_int_equal(host_fill(&f.h, f.s, LID(0), key, 1, ++f.now), 0);
	fill(&f, 1, 7);
	assert_int_equal(hawk_block_find(f.s, key, true, ++f.now, &lid, &vt, &lease), 0);
	slot = slot_of(&f, 0);
	for (i = 1; i < 8; i++)
		if (slot_of(&f, i) == slot)
			assert_int_equal(hawk_block_free(f.s, LID(i)), 0);
	assert_int_equal(hawk_space_drain_pick(f.s, HOST, ++f.now), taken ? slot : !slot);
	hawk_block_unlease(f.s, lease);
	fix_fini(&f);
}

static void leased_chunks(void **state)
{
	(void)state;
	leased_chunk(2, true);
	leased_chunk(0, false);
}

/* ---- shares ---- */

/* What a host does when @asker is starved: one chunk from who has most, if it is fair. */
static bool fair(struct fix *f, struct hawk_space **s, u32 n, struct hawk_space *asker)
{
	struct hawk_space *donor = NULL;
	s64 most = hawk_space_excess(asker, HOST) + 2;
	u32 i, slot;

	most = most > 0 ? most : 1;
	for (i = 0; i < n; i++)
		if (s[i] && hawk_space_excess(s[i], HOST) >= most) {
			most = hawk_space_excess(s[i], HOST);
			donor = s[i];
		}
	if (!donor)
		return false;
	slot = hawk_space_drain_pick(donor, HOST, f->now);
	if (slot == HAWK_NONE)
		return false;
	take(f, donor, HOST, slot, asker);
	host_clean(&f->h, ~0u);
	return true;
}

/* Three spaces that all want everything; the third one starts when all is taken. */
static void equal_shares(void **state)
{
	struct hawk_space *s[SPACES];
	u32 i, round, chunks, min[SPACES] = { 0, 4, 2 };
	struct fix f;

	(void)state;
	fix_init(&f, 32, 0);
	host_space_end(&f.h, f.s);
	f.s = NULL;
	f.buckets = 4;
	for (i = 0; i < SPACES; i++)
		s[i] = f.more[i] = space_of(&f, min[i], 32, 0);
	for (round = 0; round < 3000; round++) {
		i = round < 200 ? round % 2 : round % 3;
		assert_int_equal(host_fill(&f.h, s[i], LID(round), NULL, round + 1, ++f.now), 0);
		if (hawk_space_starved(s[i], HOST))
			fair(&f, s, SPACES, s[i]);
		if (round == 199)
			assert_int_equal(stats(s[0]).chunks[0] + stats(s[1]).chunks[0], 30);
	}
	for (i = 0, chunks = 0; i < SPACES; i++) {
		/* 32 - 6 chunks above the minima, for three: 8 or 9 each */
		assert_in_range(hawk_space_excess(s[i], HOST), 8, 9);
		chunks += stats(s[i]).chunks[HOST];
		host_check(s[i]);
	}
	assert_int_equal(chunks, 32);
	/* and it is at rest */
	for (i = 0; i < SPACES; i++)
		assert_false(fair(&f, s, SPACES, s[i]));
	fix_fini(&f);
}

/* A chunk taken for one space is not had by another, though it is free. */
static void a_claim_is_kept(void **state)
{
	struct hawk_space *late;
	struct hawk_grant g;
	struct fix f;
	u32 chunk;
	u64 vt;

	(void)state;
	fix_init(&f, 3, 0);
	late = f.more[0] = space_of(&f, 0, 3, 0);
	fill(&f, 0, 12);
	assert_int_equal(hawk_block_alloc(late, LID(0), NULL, HOST, 1, NULL, &vt), -ENOSPC);
	assert_true(hawk_space_starved(late, HOST));
	assert_false(hawk_space_starved(late, HOST));
	assert_false(hawk_space_starved(f.s, HOST));	/* at its quota */
	chunk = take(&f, f.s, HOST, 0, late);
	assert_int_equal(hawk_space_excess(late, HOST), 1);
	host_clean(&f.h, ~0u);
	assert_int_equal(nfree(&f, HOST), 1);
	/* the one that lost it evicts */
	fill(&f, 12, 4);
	assert_int_equal(stats(f.s).chunks[HOST], 2);
	assert_true(hawk_space_starved(f.s, HOST));
	host_check(late);
	assert_int_equal(hawk_block_alloc(late, LID(0), NULL, HOST, 1, NULL, &vt), -ENOBUFS);
	assert_int_equal(hawk_space_grow(late, &g), 0);
	assert_int_equal(g.chunk, chunk);
	hawk_space_grown(late, &g, true);
	assert_int_equal(hawk_space_excess(late, HOST), 1);

	/* given up, or with its owner gone, it is everybody's */
	take(&f, f.s, HOST, f.s->win[HOST].slot[0] & HAWK_SLOT_FREE ? 1 : 0, late);
	host_clean(&f.h, ~0u);
	hawk_space_unclaim(late, HOST);
	fill(&f, 20, 8);
	assert_int_equal(stats(f.s).chunks[HOST], 2);
	take(&f, f.s, HOST, 1, late);
	host_space_end(&f.h, late);
	f.more[0] = NULL;
	host_clean(&f.h, ~0u);
	fill(&f, 30, 12);
	assert_int_equal(stats(f.s).chunks[HOST], 3);
	fix_fini(&f);
}

/* A minimum is there, whatever others claim or have drained. */
static void minima_hold(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 256, .buckets = 4,
		.quota_min = { 1 }, .quota_max = { 4 },
	};
	struct hawk_space *sure, *late, *never;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 0);
	sure = f.more[0] = space_of(&f, 2, 4, 0);
	late = f.more[1] = space_of(&f, 0, 4, 0);
	fill(&f, 0, 16);
	assert_int_equal(stats(f.s).chunks[HOST], 2);	/* two are kept back */
	take(&f, f.s, HOST, 0, late);
	/* what is dirty or claimed is no minimum for a newcomer that does not insist */
	assert_int_equal(host_try_space(&f.h, &p, &never), -EAGAIN);
	host_clean(&f.h, ~0u);
	assert_int_equal(host_try_space(&f.h, &p, &never), -EAGAIN);
	for (i = 0; i < 8; i++)
		assert_int_equal(host_fill(&f.h, sure, LID(i), NULL, i + 1, ++f.now), 0);
	assert_int_equal(stats(sure).chunks[HOST], 2);
	assert_int_equal(stats(sure).evict_drop, 0);
	/* drained below its minimum, the chunk is kept back for it and not claimed */
	take(&f, sure, HOST, 0, late);
	assert_int_equal(hawk_space_excess(late, HOST), 1);
	assert_int_equal(hawk_space_excess(sure, HOST), -1);
	host_clean(&f.h, ~0u);
	for (i = 0; i < 8; i++)
		assert_int_equal(host_fill(&f.h, late, LID(i), NULL, i + 1, ++f.now), 0);
	assert_int_equal(stats(late).chunks[HOST], 1);
	for (i = 10; i < 14; i++)
		assert_int_equal(host_fill(&f.h, sure, LID(i), NULL, i + 1, ++f.now), 0);
	assert_int_equal(stats(sure).chunks[HOST], 2);
	fix_fini(&f);
}

/* ---- a tier leaves ---- */

static void a_tier_leaves(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 16, .quota_max = { 1 },
	};
	struct hawk_space *never;
	struct fix f;
	u32 i;
	u64 vt;

	(void)state;
	fix_init(&f, 2, 2);
	assert_int_equal(hawk_tier_leave(f.h.e, 5, true), -ENOENT);
	assert_int_equal(hawk_tier_leave(f.h.e, HAWK_TIERS_MAX, true), -ENOENT);
	fill(&f, 0, 10);
	expect(&f, 0, "ffhhhhhhhh");
	assert_int_equal(hawk_tier_leave(f.h.e, HOST, true), 0);
	assert_int_equal(host_try_space(&f.h, &p, &never), -ENOENT);
	assert_int_equal(hawk_space_leave(f.s, HOST), -EBUSY);
	assert_int_equal(hawk_tier_remove(f.h.e, HOST), -EBUSY);
	for (i = 0; i < 2; i++)
		take(&f, f.s, HOST, hawk_space_drain_pick(f.s, HOST, f.now), NULL);
	/* its free chunks are not for growth; flash took eight of the ten blocks */
	host_clean(&f.h, ~0u);
	assert_int_equal(hawk_block_alloc(f.s, LID(20), NULL, HOST, 1, NULL, &vt), -ENOSPC);
	assert_int_equal(hawk_space_leave(f.s, HOST), 0);
	assert_int_equal(hawk_space_leave(f.s, HOST), 0);
	assert_int_equal(hawk_space_leave(f.s, 6), 0);
	host_tier_end(&f.h, HOST);
	expect(&f, 2, "ffffffff");
	assert_int_equal(hawk_block_alloc(f.s, LID(20), NULL, HOST, 1, NULL, &vt), -ENOSPC);
	assert_int_equal(host_reload(&f.h, f.s, LID(2), 1), -ENOSPC);
	/* another tier in its place is not this space's */
	assert_int_equal(host_tier(&f.h, HAWK_TIER_HOST, 1), HOST);
	assert_int_equal(hawk_block_alloc(f.s, LID(20), NULL, HOST, 1, NULL, &vt), -ENOSPC);
	assert_int_equal(stats(f.s).chunks[HOST], 0);
	host_check(f.s);

	/* and it may be thought better of */
	assert_int_equal(hawk_tier_leave(f.h.e, HOST, true), 0);
	assert_int_equal(hawk_tier_leave(f.h.e, HOST, false), 0);
	f.more[0] = space_of(&f, 1, 1, 0);
	assert_int_equal(host_fill(&f.h, f.more[0], LID(0), NULL, 1, 1), 0);
	fix_fini(&f);
}

/* Memory of devices serves as the machine's own does. */
static void kinds(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 16, .buckets = 1,
		.quota_max = { 1, 1, 1 },
	};
	struct fix f;
	u32 t, i;
	u64 vt;

	(void)state;
	memset(&f, 0, sizeof(f));
	host_init(&f.h, 1);
	assert_int_equal(hawk_tier_add(f.h.e, 0, 1, &t), -EINVAL);
	assert_int_equal(hawk_tier_add(f.h.e, HAWK_TIER_BAR + 1, 1, &t), -EINVAL);
	host_tier(&f.h, HAWK_TIER_DMABUF, 1);
	host_tier(&f.h, HAWK_TIER_MODEL, 1);
	host_tier(&f.h, HAWK_TIER_BLK, 1);
	f.s = host_space(&f.h, &p);
	for (i = 0; i < 8; i++) {
		assert_int_equal(host_alloc(&f.h, f.s, LID(i), NULL, i, &vt), 0);
		assert_in_range(HAWK_VT_TIER(vt), 0, 1);
		assert_int_equal(hawk_block_put(f.s, LID(i), NULL, false, i), 0);
	}
	assert_int_equal(host_alloc(&f.h, f.s, LID(8), NULL, 9, &vt), 0);
	assert_int_equal(hawk_block_put(f.s, LID(8), NULL, false, 9), 0);
	assert_int_equal(stats(f.s).evict_write, 1);
	fix_fini(&f);
}

/* No block comes to memory that is gone, and none on flash is forgotten for it. */
static void lost_memory(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 16, .buckets = 1,
		.quota_max = { 1, 1, 4 },
	};
	u32 i, reloads = 0;
	struct hawk_ref ref;
	struct fix f;
	u64 vt;

	(void)state;
	memset(&f, 0, sizeof(f));
	host_init(&f.h, 1);
	host_tier(&f.h, HAWK_TIER_DMABUF, 1);
	host_tier(&f.h, HAWK_TIER_HOST, 1);
	host_tier(&f.h, HAWK_TIER_BLK, 4);
	f.s = host_space(&f.h, &p);
	fill(&f, 0, 8);
	hawk_tier_lost(f.h.e, 0);
	hawk_tier_lost(f.h.e, 5);
	hawk_tier_lost(f.h.e, HAWK_TIERS_MAX);
	for (i = 8; i < 10; i++) {
		assert_int_equal(host_alloc(&f.h, f.s, LID(i), NULL, ++f.now, &vt), 0);
		assert_int_equal(HAWK_VT_TIER(vt), 1);
		assert_int_equal(hawk_block_put(f.s, LID(i), NULL, false, ++f.now), 0);
	}
	assert_int_equal(stats(f.s).evict_write, 2);
	for (i = 0; i < 10; i++) {
		assert_int_equal(hawk_block_ref(f.s, LID(i), &vt, &ref), 0);
		if (HAWK_VT_TIER(vt) != 2)
			continue;
		assert_int_equal(host_reload(&f.h, f.s, LID(i), ++f.now), 0);
		assert_int_equal(hawk_block_ref(f.s, LID(i), &vt, &ref), 0);
		assert_int_equal(HAWK_VT_TIER(vt), 1);
		reloads++;
	}
	assert_true(reloads);
	hawk_tier_lost(f.h.e, 1);
	assert_int_equal(hawk_block_alloc(f.s, LID(20), NULL, 1, ++f.now, NULL, &vt), -EDQUOT);
	host_check(f.s);
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_is_the_hosts),
		cmocka_unit_test(flash_grows_before_a_block_goes),
		cmocka_unit_test(without_memory_it_evicts),
		cmocka_unit_test(blocks_move_to_flash),
		cmocka_unit_test(what_is_held_stays),
		cmocka_unit_test(a_flash_chunk_goes),
		cmocka_unit_test(no_younger_by_moving),
		cmocka_unit_test(in_somebodys_hands),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(cheapest_chunk),
		cmocka_unit_test(leased_chunks),
		cmocka_unit_test(equal_shares),
		cmocka_unit_test(a_claim_is_kept),
		cmocka_unit_test(minima_hold),
		cmocka_unit_test(a_tier_leaves),
		cmocka_unit_test(kinds),
		cmocka_unit_test(lost_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
