// SPDX-License-Identifier: MIT
/*
 * core_stripe.c - several drives at once: who takes the next block, and what becomes of one
 * that fails
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define BLOCK		(512u << 10)
#define PER_CHUNK	(HAWK_CHUNK_BYTES / BLOCK)
#define LID(n)		HAWK_LID(1 + (n) / 4096, 0, 0, (n) % 4096 * 16)
#define SEC		1000000000ull
#define LOG		512

struct fix {
	struct host h;
	struct hawk_space *s;
	u64 now;
	u32 n;			/* blocks put so far */
	u32 drive[3];		/* tier ids */
	u32 wrote[LOG];		/* drives written to, in order */
	u32 nwrote;
	u32 reads;
	u32 dropped[HAWK_WHY_WARMER + 1];
};

static void moved(void *arg, const struct hawk_move *m)
{
	struct fix *f = arg;

	if (m->kind == HAWK_MOVE_READ)
		f->reads++;
	else if (f->nwrote < LOG)
		f->wrote[f->nwrote++] = m->dst_tier;
}

static void told(void *owner, const struct hawk_note *note)
{
	struct fix *f = owner;

	if (note->fate == HAWK_FATE_DROP)
		f->dropped[note->reason]++;
}

/* Memory for a chunk of blocks and drives of so many chunks each. */
static void fix_init(struct fix *f, u32 buckets, u32 a, u32 b, u32 c)
{
	u32 chunks[3] = { a, b, c }, i;
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 512,
		.buckets = buckets, .note = told, .owner = f,
	};

	memset(f, 0, sizeof(*f));
	host_init(&f->h, 11);
	p.quota_max[host_tier(&f->h, HAWK_TIER_HOST, 1)] = 1;
	for (i = 0; i < 3 && chunks[i]; i++) {
		f->drive[i] = host_tier(&f->h, HAWK_TIER_BLK, chunks[i]);
		p.quota_max[f->drive[i]] = chunks[i];
	}
	f->s = host_space(&f->h, &p);
	f->h.done = moved;
	f->h.arg = f;
	f->now = SEC;
}

static void fix_fini(struct fix *f)
{
	host_space_end(&f->h, f->s);
	host_fini(&f->h);
}

/* Put @n more blocks; each one beyond the memory's writes the coldest. */
static void put(struct fix *f, u32 n)
{
	while (n--) {
		assert_int_equal(host_fill(&f->h, f->s, LID(f->n), NULL, f->n + 1, ++f->now), 0);
		f->n++;
	}
}

static u32 wrote_to(const struct fix *f, u32 from, u32 drive)
{
	u32 i, n = 0;

	for (i = from; i < f->nwrote; i++)
		n += f->wrote[i] == f->drive[drive];
	return n;
}

/* ---- turns ---- */

static void equal_drives_take_turns(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 4, 4, 4);
	put(&f, PER_CHUNK + 36);
	assert_int_equal(f.nwrote, 36);
	for (i = 0; i + 3 <= f.nwrote; i += 3)
		assert_int_equal(1u << f.wrote[i] | 1u << f.wrote[i + 1] | 1u << f.wrote[i + 2],
				 1u << f.drive[0] | 1u << f.drive[1] | 1u << f.drive[2]);
	host_check(f.s);
	/* full: what is displaced makes room on each in turn */
	put(&f, 96);
	for (i = 0; i < 3; i++)
		assert_in_range(wrote_to(&f, 48, i), 24, 32);
	fix_fini(&f);
}

static void shares_by_free_room(void **state)
{
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 12, 4, 0);
	put(&f, PER_CHUNK + 60);
	/* three to one from the first block on, so both are full at the same time */
	for (i = 0; i + 16 <= 60; i += 16)
		assert_in_range(wrote_to(&f, i, 1) - wrote_to(&f, i + 16, 1), 3, 5);
	put(&f, 64);
	assert_in_range(wrote_to(&f, 64, 1), 12, 20);
	fix_fini(&f);
}

/* A drive that had nothing to do for long does not make up for it. */
static void no_catching_up(void **state)
{
	struct fix f;
	u32 at;

	(void)state;
	fix_init(&f, 1, 64, 64, 0);
	assert_int_equal(hawk_tier_fault(f.h.e, f.drive[0], HAWK_FAULT_STALL, f.now),
			 HAWK_HEALTH_FAILS);
	put(&f, PER_CHUNK + 40);
	assert_int_equal(wrote_to(&f, 0, 0), 0);
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[0], false, f.now), HAWK_HEALTH_WORKS);
	at = f.nwrote;
	put(&f, 20);
	assert_in_range(wrote_to(&f, at, 0), 9, 13);
	fix_fini(&f);
}

/* ---- health ---- */

static void failing_drive_gets_trials_only(void **state)
{
	struct fix f;
	u64 pause;
	u32 at, i;

	(void)state;
	fix_init(&f, 1, 32, 32, 0);
	put(&f, PER_CHUNK + 10);
	assert_int_equal(hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_WRITE, f.now),
			 HAWK_HEALTH_FAILS);
	assert_int_equal(hawk_tier_health(f.h.e, f.drive[1]), HAWK_HEALTH_FAILING);
	assert_int_equal(hawk_tier_health(f.h.e, f.drive[0]), HAWK_HEALTH_OK);
	/* those that were under way fail too: that is told once and changes nothing */
	assert_int_equal(hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_WRITE, f.now + 1),
			 HAWK_HEALTH_SAME);
	for (i = 0, pause = SEC; i < 9; i++, pause = pause < 64 * SEC ? 2 * pause : pause) {
		f.now += pause - 100;
		at = f.nwrote;
		put(&f, 5);
		assert_int_equal(wrote_to(&f, at, 1), 0);
		f.now += 200;
		put(&f, 5);
		assert_int_equal(wrote_to(&f, at, 1), 1);
		assert_int_equal(hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_WRITE, f.now),
				 HAWK_HEALTH_SAME);
	}
	/* a read that comes out well proves nothing about writing */
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[1], false, f.now), HAWK_HEALTH_SAME);
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[1], true, f.now), HAWK_HEALTH_WORKS);
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[1], true, f.now), HAWK_HEALTH_SAME);
	at = f.nwrote;
	put(&f, 20);
	assert_in_range(wrote_to(&f, at, 1), 8, 14);
	/* soon again: the pause is long at once */
	hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_WRITE, f.now);
	at = f.nwrote;
	f.now += 30 * SEC;
	put(&f, 5);
	assert_int_equal(wrote_to(&f, at, 1), 0);
	hawk_tier_works(f.h.e, f.drive[1], true, f.now);
	/* a day later it is as at first */
	f.now += 86400 * SEC;
	hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_WRITE, f.now);
	f.now += SEC;
	put(&f, 5);
	assert_int_equal(wrote_to(&f, at, 1), 1);
	fix_fini(&f);
}

static void bad_reads_in_a_row(void **state)
{
	struct fix f;
	u32 i, round;

	(void)state;
	fix_init(&f, 1, 4, 4, 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 7; i++)
			assert_int_equal(hawk_tier_fault(f.h.e, f.drive[0], HAWK_FAULT_READ,
							 f.now), HAWK_HEALTH_SAME);
		/* one good one between them: these are bad blocks, no bad drive */
		if (!round)
			hawk_tier_works(f.h.e, f.drive[0], false, f.now);
	}
	assert_int_equal(hawk_tier_fault(f.h.e, f.drive[0], HAWK_FAULT_READ, f.now),
			 HAWK_HEALTH_FAILS);
	put(&f, PER_CHUNK + 8);
	assert_int_equal(wrote_to(&f, 0, 0), 0);
	/* the operator says that it is fine */
	assert_int_equal(hawk_tier_leave(f.h.e, f.drive[0], false), 0);
	assert_int_equal(hawk_tier_health(f.h.e, f.drive[0]), HAWK_HEALTH_OK);
	put(&f, 4);
	assert_in_range(wrote_to(&f, 8, 0), 2, 4);
	fix_fini(&f);
}

/* A trial of a drive that stalls does not end: there are few, however long that lasts. */
static void stalled_drive_keeps_few_blocks(void **state)
{
	struct fix f;
	u32 at, i;

	(void)state;
	fix_init(&f, 1, 32, 32, 0);
	put(&f, PER_CHUNK + 10);
	at = f.nwrote;
	for (i = 0; i < 120; i++) {
		hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_STALL, f.now);
		put(&f, 1);
		f.now += SEC;
	}
	assert_in_range(wrote_to(&f, at, 1), 0, 7);
	/* a write has failed meanwhile: a read that comes out well is not enough any more */
	hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_WRITE, f.now);
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[1], false, f.now), HAWK_HEALTH_SAME);
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[1], true, f.now), HAWK_HEALTH_WORKS);
	/* and one that only stalls is */
	f.now += 200 * SEC;
	hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_STALL, f.now);
	assert_int_equal(hawk_tier_works(f.h.e, f.drive[1], false, f.now), HAWK_HEALTH_WORKS);
	fix_fini(&f);
}

/* No drive takes anything: blocks are forgotten rather than waited with. */
static void all_fail(void **state)
{
	struct fix f;

	(void)state;
	fix_init(&f, 2, 4, 4, 0);
	put(&f, PER_CHUNK);
	hawk_tier_fault(f.h.e, f.drive[0], HAWK_FAULT_WRITE, f.now);
	hawk_tier_fault(f.h.e, f.drive[1], HAWK_FAULT_STALL, f.now);
	put(&f, 8);
	assert_int_equal(f.nwrote, 0);
	assert_int_equal(f.dropped[HAWK_WHY_FAILED], 8);
	host_check(f.s);
	fix_fini(&f);
}

/* A host tier has no health, nor has one that is not there. */
static void only_flash(void **state)
{
	struct fix f;
	u32 t;

	(void)state;
	fix_init(&f, 1, 4, 0, 0);
	for (t = 0; t < 20; t++) {
		if (t == f.drive[0])
			continue;
		assert_int_equal(hawk_tier_fault(f.h.e, t, HAWK_FAULT_WRITE, 1), HAWK_HEALTH_SAME);
		assert_int_equal(hawk_tier_works(f.h.e, t, true, 1), HAWK_HEALTH_SAME);
		assert_int_equal(hawk_tier_health(f.h.e, t), HAWK_HEALTH_OK);
	}
	fix_fini(&f);
}

/* ---- a drive is gone ---- */

static void drain_all(struct fix *f, u32 tier)
{
	u32 slot, busy;
	int ret;

	while ((slot = hawk_space_drain_pick(f->s, tier, f->now)) != HAWK_NONE) {
		assert_int_equal(hawk_space_drain_start(f->s, tier, slot), 0);
		do {
			ret = hawk_space_drain(f->s, tier, HAWK_DRAIN_DROP,
					       f->now, host_plan(&f->h, HOST_PLAN), &busy);
			host_run(&f->h);
		} while (ret == -EAGAIN || host_grew(f->s, ret));
		assert_int_equal(ret, 0);
		hawk_space_drain_finish(f->s, tier, NULL);
	}
	assert_int_equal(hawk_space_leave(f->s, tier), 0);
}

/* Its blocks are misses without being read, those of the other drive are served. */
static void lost_drive(void **state)
{
	u32 i, there = 0, on[2];
	struct fix f;

	(void)state;
	fix_init(&f, 2, 8, 8, 0);
	put(&f, PER_CHUNK + 24);
	on[0] = wrote_to(&f, 0, 0);
	on[1] = wrote_to(&f, 0, 1);
	assert_int_equal(on[0] + on[1], 24);
	hawk_tier_lost(f.h.e, f.drive[0]);
	hawk_tier_leave(f.h.e, f.drive[0], true);
	assert_int_equal(hawk_tier_health(f.h.e, f.drive[0]), HAWK_HEALTH_LOST);
	drain_all(&f, f.drive[0]);
	assert_int_equal(f.reads, 0);
	for (i = 0; i < f.n; i++) {
		struct hawk_ref ref;
		u64 vt;

		if (hawk_block_ref(f.s, LID(i), &vt, &ref))
			continue;
		there++;
		assert_int_not_equal(HAWK_VT_TIER(vt), f.drive[0]);
		assert_int_equal(host_read(&f.h, f.s, vt), i + 1);
	}
	assert_int_equal(there, PER_CHUNK + on[1]);
	put(&f, 8);
	assert_int_equal(wrote_to(&f, 24, 1), 8);
	host_clean(&f.h, ~0u);
	host_tier_end(&f.h, f.drive[0]);
	fix_fini(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_drives_take_turns),
		cmocka_unit_test(shares_by_free_room),
		cmocka_unit_test(no_catching_up),
		cmocka_unit_test(failing_drive_gets_trials_only),
		cmocka_unit_test(bad_reads_in_a_row),
		cmocka_unit_test(stalled_drive_keeps_few_blocks),
		cmocka_unit_test(all_fail),
		cmocka_unit_test(only_flash),
		cmocka_unit_test(lost_drive),
	};

	return cmocka_run_group_tests_name("core_stripe", tests, NULL, NULL);
}
