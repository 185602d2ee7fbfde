// SPDX-License-Identifier: MIT
/*
 * core_life.c - the life of a block, step by step
 */
#include "core_host.h"

#define LID(tok)	HAWK_LID(1, 0, 0, (tok) * 16)

struct life {
	struct host h;
	struct hawk_space *s;
	u32 host, flash;
};

/* 1 MiB blocks: two frames of a chunk; four host frames, eight on flash. */
static int setup(void **state)
{
	struct life *f = test_calloc(1, sizeof(*f));
	struct hawk_space_params p = {
		.block_bytes = 1 << 20, .block_tokens = 16, .max_blocks = 64, .buckets = 1,
	};

	host_init(&f->h, 1);
	f->host = host_tier(&f->h, HAWK_TIER_HOST, 2);
	f->flash = host_tier(&f->h, HAWK_TIER_BLK, 4);
	p.quota_max[f->host] = 2;
	p.quota_max[f->flash] = 4;
	f->s = host_space(&f->h, &p);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct life *f = *state;

	host_space_end(&f->h, f->s);
	host_fini(&f->h);
	test_free(f);
	return 0;
}

static void alloc_put_find(void **state)
{
	struct life *f = *state;
	u64 vt, lid, got;
	struct hawk_ref ref;
	u8 key[HAWK_KEY_BYTES];

	host_key(key, 7);
	assert_int_equal(hawk_block_find(f->s, key, false, 1, &lid, &got, &ref), -ENOENT);
	assert_int_equal(host_block_alloc(f->s, LID(1) + 5, key, HAWK_TIER_ANY, 1, NULL, &vt), 0);
	host_check(f->s);
	/* announced, not there yet */
	assert_int_equal(hawk_block_find(f->s, key, false, 1, &lid, &got, &ref), -EAGAIN);
	assert_int_equal(hawk_block_pin(f->s, LID(1), 1, &got, &ref), -EAGAIN);
	host_write(&f->h, f->s, vt, 77);
	assert_int_equal(hawk_block_put(f->s, LID(1), key, false, 2), 0);
	host_check(f->s);
	assert_int_equal(hawk_block_find(f->s, key, false, 3, &lid, &got, &ref), 0);
	assert_int_equal(lid, LID(1));
	assert_int_equal(got, vt);
	assert_int_equal(host_read(&f->h, f->s, got), 77);
	assert_int_equal(hawk_space_translate(f->s, LID(1) + 15), vt);
	assert_int_equal(hawk_space_translate(f->s, LID(2)), 0);
}

static void pin_unpin(void **state)
{
	struct life *f = *state;
	struct hawk_ref ref;
	u64 vt, at;

	assert_int_equal(host_fill(&f->h, f->s, LID(1), NULL, 1, 1), 0);
	assert_int_equal(hawk_block_pin(f->s, LID(1), 2, &vt, &ref), 0);
	assert_int_equal(hawk_block_free(f->s, LID(1)), -EBUSY);
	host_check(f->s);
	assert_int_equal(hawk_block_ref(f->s, LID(1), &at, &ref), 0);
	assert_int_equal(at, vt);
	assert_int_equal(hawk_block_unpin(f->s, ref), 0);
	assert_int_equal(hawk_block_unpin(f->s, ref), -ESTALE);
	assert_int_equal(hawk_block_free(f->s, LID(1)), 0);
	assert_int_equal(hawk_block_free(f->s, LID(1)), -ENOENT);
	assert_int_equal(hawk_block_unpin(f->s, ref), -ESTALE);
}

/* Frames and block slots come back, names of what was there before do not. */
static void old_names_stay_dead(void **state)
{
	struct life *f = *state;
	struct hawk_ref old, ref;
	u64 was, vt;

	assert_int_equal(host_fill(&f->h, f->s, LID(1), NULL, 1, 1), 0);
	assert_int_equal(hawk_block_ref(f->s, LID(1), &was, &old), 0);
	assert_int_equal(hawk_block_free(f->s, LID(1)), 0);
	assert_int_equal(host_block_alloc(f->s, LID(1), NULL, 0, 2, NULL, &vt), 0);
	assert_int_equal(hawk_block_ref(f->s, LID(1), &vt, &ref), 0);
	/* the last to go is the first to be used again */
	assert_int_equal(ref.block, old.block);
	assert_int_equal(HAWK_VT_FRAME(vt), HAWK_VT_FRAME(was));
	assert_int_not_equal(ref.gen, old.gen);
	assert_int_not_equal(HAWK_VT_GEN(vt), HAWK_VT_GEN(was));
	assert_int_equal(hawk_block_unpin(f->s, old), -ESTALE);
	assert_int_equal(host_block_unshare(f->s, LID(1), 3, NULL, &vt, &old), -ESTALE);
	old.block = 1u << 30;
	assert_int_equal(hawk_block_unpin(f->s, old), -ESTALE);
	assert_int_equal(hawk_block_unpin(f->s, ref), 0);
	assert_int_equal(hawk_block_ref(f->s, LID(1), &vt, &ref), -ENOENT);
}

/* Keys that differ in one bit, anywhere, are different keys. */
static void keys_count_whole(void **state)
{
	struct life *f = *state;
	u8 key[HAWK_KEY_BYTES] = { 1 };
	struct hawk_ref ref;
	u64 lid, vt;
	u32 i;

	assert_int_equal(host_fill(&f->h, f->s, LID(1), key, 1, 1), 0);
	for (i = 0; i < 8 * HAWK_KEY_BYTES; i++) {
		key[i / 8] ^= 1 << i % 8;
		assert_int_equal(hawk_block_find(f->s, key, false, 2, &lid, &vt, &ref), -ENOENT);
		assert_int_equal(host_fill(&f->h, f->s, LID(2), key, 2, 3), 0);
		assert_int_equal(hawk_block_find(f->s, key, false, 4, &lid, &vt, &ref), 0);
		assert_int_equal(lid, LID(2));
		assert_int_equal(hawk_key_free(f->s, key), 0);
		assert_int_equal(hawk_key_free(f->s, key), -ENOENT);
		assert_int_equal(hawk_block_free(f->s, LID(2)), 0);
		key[i / 8] ^= 1 << i % 8;
		assert_int_equal(hawk_block_find(f->s, key, false, 5, &lid, &vt, &ref), 0);
		assert_int_equal(lid, LID(1));
	}
	host_check(f->s);
}

/* Six blocks through four host frames: the coldest two go to flash and come back. */
static void evict_and_reload(void **state)
{
	struct life *f = *state;
	struct hawk_stats st;
	struct hawk_ref ref;
	u64 vt;
	u32 i;

	for (i = 1; i <= 6; i++) {
		assert_int_equal(host_fill(&f->h, f->s, LID(i), NULL, 100 + i, i), 0);
		host_check(f->s);
	}
	for (i = 1; i <= 6; i++) {
		assert_int_equal(hawk_block_ref(f->s, LID(i), &vt, &ref), 0);
		assert_int_equal(HAWK_VT_TIER(vt), i <= 2 ? f->flash : f->host);
		assert_int_equal(host_read(&f->h, f->s, vt), 100 + i);
		assert_int_equal(hawk_space_translate(f->s, LID(i)), vt);
	}
	assert_int_equal(hawk_block_pin(f->s, LID(1), 7, &vt, &ref), -EAGAIN);
	assert_int_equal(host_reload(&f->h, f->s, LID(1), 8), 0);
	assert_int_equal(hawk_block_pin(f->s, LID(1), 9, &vt, &ref), 0);
	assert_int_equal(HAWK_VT_TIER(vt), f->host);
	assert_int_equal(host_read(&f->h, f->s, vt), 101);
	hawk_block_unpin(f->s, ref);
	hawk_space_stats(f->s, &st);
	assert_int_equal(st.blocks, 6);
	assert_int_equal(st.reloads, 1);
	assert_int_equal(st.evict_write, 3);
	assert_int_equal(st.evict_drop + st.flash_drop, 0);
}

static void fork_and_unshare(void **state)
{
	struct life *f = *state;
	struct hawk_ref ref, old;
	u64 a, b;

	assert_int_equal(host_fill(&f->h, f->s, LID(1), NULL, 11, 1), 0);
	assert_int_equal(hawk_block_fork(f->s, LID(1), LID(2)), 0);
	assert_int_equal(hawk_block_fork(f->s, LID(1), LID(2)), -EEXIST);
	assert_int_equal(hawk_space_translate(f->s, LID(1)), hawk_space_translate(f->s, LID(2)));
	assert_int_equal(hawk_block_pin(f->s, LID(2), 2, &a, &ref), 0);
	old = ref;
	assert_int_equal(host_block_unshare(f->s, LID(2), 3, host_plan(&f->h, 4), &b, &ref), 0);
	assert_int_equal(f->h.plan.n, 1);
	host_run(&f->h);
	host_check(f->s);
	assert_int_not_equal(a, b);
	assert_int_not_equal(old.block, ref.block);
	assert_int_equal(host_read(&f->h, f->s, b), 11);
	host_write(&f->h, f->s, b, 22);
	assert_int_equal(hawk_block_put(f->s, LID(2), NULL, false, 4), 0);
	host_check(f->s);
	assert_int_equal(host_read(&f->h, f->s, hawk_space_translate(f->s, LID(1))), 11);
	assert_int_equal(host_read(&f->h, f->s, hawk_space_translate(f->s, LID(2))), 22);

	/* now private: unshare changes it in place */
	assert_int_equal(hawk_block_pin(f->s, LID(2), 5, &a, &ref), 0);
	assert_int_equal(host_block_unshare(f->s, LID(2), 6, host_plan(&f->h, 4), &b, &ref), 0);
	assert_int_equal(f->h.plan.n, 0);
	assert_int_equal(a, b);
	assert_int_equal(hawk_block_put(f->s, LID(2), NULL, false, 7), 0);
	assert_int_equal(hawk_block_free(f->s, LID(1)), 0);
	assert_int_equal(hawk_block_free(f->s, LID(2)), 0);
}

static void owner_dies(void **state)
{
	struct life *f = *state;
	struct hawk_ref ref;
	struct hawk_stats st;
	u64 vt;

	assert_int_equal(host_block_alloc(f->s, LID(1), NULL, 0, 1, NULL, &vt), 0);
	assert_int_equal(hawk_block_ref(f->s, LID(1), &vt, &ref), 0);
	assert_int_equal(hawk_block_unpin(f->s, ref), 0);
	assert_int_equal(hawk_block_ref(f->s, LID(1), &vt, &ref), -ENOENT);
	hawk_space_stats(f->s, &st);
	assert_int_equal(st.blocks, 0);
	assert_int_equal(st.resident, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(alloc_put_find, setup, teardown),
		cmocka_unit_test_setup_teardown(pin_unpin, setup, teardown),
		cmocka_unit_test_setup_teardown(old_names_stay_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_count_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(evict_and_reload, setup, teardown),
		cmocka_unit_test_setup_teardown(fork_and_unshare, setup, teardown),
		cmocka_unit_test_setup_teardown(owner_dies, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
