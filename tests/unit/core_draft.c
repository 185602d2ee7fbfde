// SPDX-License-Identifier: MIT
/*
 * core_draft.c - the size of a ring of draft slots
 */
#include "core_host.h"
#include "../../kmod/core/draft.h"

static struct hawk_draft_layout layout(u32 block_bytes, u32 layers, u32 heads, u32 slots)
{
	return (struct hawk_draft_layout) {
		.block_bytes = block_bytes, .block_tokens = 16, .layers = layers,
		.head_groups = heads, .slots = slots,
	};
}

static void slots_are_whole_blocks(void **state)
{
	struct hawk_draft_layout l;
	u32 n;

	(void)state;
	for (n = 1; n <= 64; n++) {
		l = layout(8192, 3, 2, n);
		assert_int_equal(hawk_draft_layout(&l), 0);
		assert_int_equal(l.slots, (n + 15) / 16 * 16);
		assert_int_equal(l.row_blocks, 6);
		assert_int_equal(l.bytes, 4096 + l.slots / 16 * 6 * 8192);
	}
}

/* One more row than fits, and sizes that wrap around in 32 or 64 bits. */
static void limits(void **state)
{
	struct hawk_draft_layout l = layout(4096, 1, 1, 0);

	(void)state;
	assert_int_equal(hawk_draft_layout(&l), -EINVAL);
	l = layout(4096, 1, 1, 16 * (HAWK_DRAFT_BYTES_MAX / 4096 - 1));
	assert_int_equal(hawk_draft_layout(&l), 0);
	assert_int_equal(l.bytes, HAWK_DRAFT_BYTES_MAX);
	l = layout(4096, 1, 1, 16 * (HAWK_DRAFT_BYTES_MAX / 4096 - 1) + 1);
	assert_int_equal(hawk_draft_layout(&l), -E2BIG);
	l = layout(4096, 1, 1, ~0u);
	assert_int_equal(hawk_draft_layout(&l), -E2BIG);
	l = layout(HAWK_CHUNK_BYTES, 256, 16, 1);	/* 8 GiB a row */
	assert_int_equal(hawk_draft_layout(&l), -E2BIG);
	l = layout(HAWK_CHUNK_BYTES, 256, 16, ~0u);
	assert_int_equal(hawk_draft_layout(&l), -E2BIG);
	l = layout(HAWK_CHUNK_BYTES, 31, 1, 16);
	assert_int_equal(hawk_draft_layout(&l), 0);
	l = layout(HAWK_CHUNK_BYTES, 32, 1, 16);	/* with the page of counters */
	assert_int_equal(hawk_draft_layout(&l), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_whole_blocks),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests_name("core_draft", tests, NULL, NULL);
}
