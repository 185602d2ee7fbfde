// SPDX-License-Identifier: MIT
/*
 * core_note.c - the host is told of each block that is evicted, dropped or written
 *
 * What is told must agree with the counters and with the state that follows.
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(1, 0, 0, (n) * 16)
#define BLOCK	(512u << 10)	/* four to a chunk */
#define NOTES	256

struct fix {
	struct host h;
	struct hawk_space *s;
	u64 now;
	u32 n;
	struct hawk_note note[NOTES];
};

static void take_note(void *owner, const struct hawk_note *note)
{
	struct fix *f = owner;

	assert_true(f->n < NOTES);
	f->note[f->n++] = *note;
}

static void fix_init(struct fix *f, u32 host, u32 flash, u32 max_blocks)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = max_blocks, .buckets = 1,
		.note = take_note, .owner = f,
	};

	memset(f, 0, sizeof(*f));
	host_init(&f->h, 7);
	f->h.plan.caller = f;
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
	assert_int_equal(host_fill(&f->h, f->s, LID(n), NULL, n + 1, ++f->now), 0);
}

static u32 count(const struct fix *f, u32 fate)
{
	u32 i, n = 0;

	for (i = 0; i < f->n; i++)
		n += f->note[i].fate == fate;
	return n;
}

static struct hawk_stats stats(struct fix *f)
{
	struct hawk_stats st = { 0 };

	hawk_space_stats(f->s, &st);
	return st;
}

/* The oldest of four blocks makes room for a fifth: who, whence, why, for whom. */
static void drop_tells_all(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 0, 16);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	assert_int_equal(f.n, 0);
	fill(&f, 4);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.note[0].lid, LID(0));
	assert_int_equal(f.note[0].fate, HAWK_FATE_DROP);
	assert_int_equal(f.note[0].reason, HAWK_WHY_NO_FLASH);
	assert_int_equal(f.note[0].state, HAWK_BLOCK_READY);
	assert_int_equal(f.note[0].tier, 0);
	assert_int_equal(f.note[0].to, HAWK_TIER_ANY);
	assert_true(f.note[0].atime >= 1 && f.note[0].atime < f.now);
	assert_ptr_equal(f.note[0].caller, &f);
	fix_fini(&f);
}

/* To flash, from there for good: each count of the statistics has its notes. */
static void counts_agree(void **state)
{
	struct hawk_stats st;
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 2, 64);
	for (i = 0; i < 40; i++)
		fill(&f, i);
	for (i = 35; i > 33; i--)
		assert_int_equal(host_reload(&f.h, f.s, LID(i), ++f.now), 0);
	for (i = 40; i < 44; i++)
		fill(&f, i);
	st = stats(&f);
	assert_true(st.evict_write && st.evict_clean && st.flash_drop);
	assert_int_equal(count(&f, HAWK_FATE_WRITE), st.evict_write);
	assert_int_equal(count(&f, HAWK_FATE_CLEAN), st.evict_clean);
	assert_int_equal(count(&f, HAWK_FATE_DROP), st.evict_drop);
	assert_int_equal(count(&f, HAWK_FATE_FLASH_DROP), st.flash_drop);
	for (i = 0; i < f.n; i++) {
		const struct hawk_note *n = &f.note[i];
		bool gone = n->fate == HAWK_FATE_FLASH_DROP;

		assert_int_equal(n->tier, gone ? 1 : 0);
		assert_int_equal(n->to, gone ? HAWK_TIER_ANY : 1);
		assert_int_equal(n->state, gone ? HAWK_BLOCK_FLASH : HAWK_BLOCK_READY);
		assert_int_equal(n->reason, gone ? HAWK_WHY_COLDER :
				 n->fate == HAWK_FATE_CLEAN ? HAWK_WHY_COPY : HAWK_WHY_ROOM);
	}
	fix_fini(&f);
}

/* Written ahead: it stays where it is, and its eviction is free. */
static void ahead_is_no_eviction(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 2, 64);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	assert_int_equal(host_space_writeback(f.s, 0, 1024, host_plan(&f.h, 4)), 4);
	host_run(&f.h);
	assert_int_equal(f.n, 4);
	assert_int_equal(count(&f, HAWK_FATE_AHEAD), 4);
	assert_int_equal(f.note[0].tier, 0);
	assert_int_equal(f.note[0].to, 1);
	fill(&f, 4);
	assert_int_equal(count(&f, HAWK_FATE_CLEAN), 1);
	assert_int_equal(f.n, 5);
	fix_fini(&f);
}

/* Slots run out before frames do. */
static void slot_is_a_reason(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 2, 0, 6);
	for (i = 0; i < 7; i++)
		fill(&f, i);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.note[0].fate, HAWK_FATE_DROP);
	assert_int_equal(f.note[0].reason, HAWK_WHY_SLOT);
	fix_fini(&f);
}

/* A drive that fails: the victim of the write is dropped in the end. */
static void failed_write_drops(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 2, 64);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	f.h.fail_permille = 1000;
	fill(&f, 4);
	for (i = 1; i < f.n && f.note[i].fate == HAWK_FATE_WRITE; i++)
		;	/* the host may also cancel a write; then another is tried */
	assert_true(i < f.n);
	assert_int_equal(f.note[i].fate, HAWK_FATE_DROP);
	assert_int_equal(f.note[i].reason, HAWK_WHY_FAILED);
	assert_int_equal(f.note[i].lid, f.note[i - 1].lid);
	assert_ptr_equal(f.note[i].caller, NULL);
	assert_int_equal(count(&f, HAWK_FATE_DROP), stats(&f).evict_drop);
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop_tells_all),
		cmocka_unit_test(counts_agree),
		cmocka_unit_test(ahead_is_no_eviction),
		cmocka_unit_test(slot_is_a_reason),
		cmocka_unit_test(failed_write_drops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
