// SPDX-License-Identifier: MIT
/*
 * core_lid.c - logical ids: fields, rounding, the bucket of a LID
 */
#include "core_host.h"

static void fields_hold_their_limits(void **state)
{
	u64 top = HAWK_LID(HAWK_LID_SEQ_MAX, HAWK_LID_LAYER_MAX, HAWK_LID_HEAD_MAX, ~0u);

	(void)state;
	assert_true(top == ~0ull);
	assert_int_equal(hawk_lid_seq(top), 1048575);
	assert_int_equal(hawk_lid_layer(top), 255);
	assert_int_equal(hawk_lid_head(top), 15);
	assert_int_equal(hawk_lid_tok(top), 4294967295u);
	assert_true(HAWK_LID(HAWK_LID_SEQ_MAX, 0, 0, 0) == 0xfffff00000000000ull);
	assert_true(HAWK_LID(0, HAWK_LID_LAYER_MAX, 0, 0) == 0x00000ff000000000ull);
	assert_true(HAWK_LID(0, 0, HAWK_LID_HEAD_MAX, 0) == 0x0000000f00000000ull);
	assert_true(HAWK_LID(0, 0, 0, ~0u) == 0x00000000ffffffffull);
}

static void fields_do_not_mix(void **state)
{
	u64 rng = 5;
	u32 i;

	(void)state;
	for (i = 0; i < 10000; i++) {
		u32 seq = host_below(&rng, HAWK_LID_SEQ_MAX + 1);
		u32 layer = host_below(&rng, HAWK_LID_LAYER_MAX + 1);
		u32 head = host_below(&rng, HAWK_LID_HEAD_MAX + 1);
		u32 tok = host_rand(&rng);
		u64 lid = HAWK_LID(seq, layer, head, tok);

		assert_int_equal(hawk_lid_seq(lid), seq);
		assert_int_equal(hawk_lid_layer(lid), layer);
		assert_int_equal(hawk_lid_head(lid), head);
		assert_int_equal(hawk_lid_tok(lid), tok);
	}
}

static void rounding_stays_in_the_sequence(void **state)
{
	(void)state;
	assert_true(hawk_lid_block(HAWK_LID(1, 2, 3, 47), 16) == HAWK_LID(1, 2, 3, 32));
	assert_true(hawk_lid_block(HAWK_LID(1, 2, 3, 48), 16) == HAWK_LID(1, 2, 3, 48));
	/* not a power of two */
	assert_true(hawk_lid_block(HAWK_LID(1, 2, 3, 47), 24) == HAWK_LID(1, 2, 3, 24));
	assert_true(hawk_lid_block(HAWK_LID(1, 2, 3, 15), 1) == HAWK_LID(1, 2, 3, 15));
	assert_true(hawk_lid_block(HAWK_LID(1, 0, 0, ~0u), 65536) == HAWK_LID(1, 0, 0, 0xffff0000));
	assert_true(hawk_lid_block(HAWK_LID(1, 0, 0, ~0u), 65535) == HAWK_LID(1, 0, 0, ~0u));
}

/* (lid * 11400714819323198485 mod 2^64) >> (64 - log2 B), computed with big integers */
static void bucket_check_values(void **state)
{
	static const struct {
		u64 lid;
		u16 b1, b2, b32, b64, b512;
	} v[] = {
		{ 0x0000100000000000ull, 0, 1, 20, 41, 335 },
		{ 0x0000100000000010ull, 0, 1, 17, 34, 278 },
		{ 0x0000101000000000ull, 0, 1, 19, 39, 312 },
		{ 0x0000200000000000ull, 0, 0, 9, 19, 159 },
		/* the product has its top bit clear, the factor has it set */
		{ 0xfffffffffffffff0ull, 0, 0, 3, 7, 57 },
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		assert_int_equal(hawk_lid_bucket(v[i].lid, 0), v[i].b1);
		assert_int_equal(hawk_lid_bucket(v[i].lid, 1), v[i].b2);
		assert_int_equal(hawk_lid_bucket(v[i].lid, 5), v[i].b32);
		assert_int_equal(hawk_lid_bucket(v[i].lid, 6), v[i].b64);
		assert_int_equal(hawk_lid_bucket(v[i].lid, 9), v[i].b512);
	}
}

/* What names a block: seq 0 never does, any token of the block does. */
static void names_of_a_block(void **state)
{
	struct hawk_space_params p = {
		.block_bytes = 4096, .block_tokens = 16, .max_blocks = 16,
	};
	struct hawk_space *s;
	struct host h;
	u64 vt;

	(void)state;
	host_init(&h, 1);
	p.quota_max[host_tier(&h, HAWK_TIER_HOST, 1)] = 1;
	s = host_space(&h, &p);
	assert_int_equal(host_alloc(&h, s, HAWK_LID(0, 1, 1, 16), NULL, 1, &vt), -EINVAL);
	assert_int_equal(hawk_block_put(s, HAWK_LID(0, 1, 1, 16), NULL, false, 1), -ENOENT);
	assert_int_equal(hawk_block_put(s, HAWK_LID(0, 0, 0, 15), NULL, false, 1), -EINVAL);
	assert_int_equal(hawk_block_free(s, 0), -EINVAL);
	assert_int_equal(host_fill(&h, s, ~0ull, NULL, 9, 1), 0);
	assert_int_equal(hawk_block_fork(s, ~0ull, HAWK_LID(0, 0, 0, 0)), -EINVAL);
	assert_true(hawk_space_translate(s, ~0ull));
	assert_true(hawk_space_translate(s, ~0ull) == hawk_space_translate(s, ~15ull));
	assert_false(hawk_space_translate(s, ~16ull));
	host_space_end(&h, s);
	host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_hold_their_limits),
		cmocka_unit_test(fields_do_not_mix),
		cmocka_unit_test(rounding_stays_in_the_sequence),
		cmocka_unit_test(bucket_check_values),
		cmocka_unit_test(names_of_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
