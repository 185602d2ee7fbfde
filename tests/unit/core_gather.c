// SPDX-License-Identifier: MIT
/*
 * core_gather.c - many rows, each block once: union, order, merge, remap; readers
 *
 * Lists drawn by lot are compared with a model that searches arrays.  A block that is
 * being read keeps its flash frame whatever becomes of it.
 */
#include "core_host.h"
#include "../../kmod/core/gather.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(1, 0, 0, (n) * 16)
#define BLOCK	(512u << 10)	/* four to a chunk */
#define ROWS	HAWK_BATCH_MAX

/* ---- union, runs ---- */

/* dhisparse.md: the rows of four candidates; 6 transfers instead of 12. */
static void spec_check(void **state)
{
	static const u32 rows[12] = { 14, 28, 92, 28, 92, 104, 14, 104, 210, 92, 210, 305 };
	static const u32 want[6] = { 14, 28, 92, 104, 210, 305 };
	struct hawk_gather_key k[12], place[6];
	u32 i, n, at, transfers = 0;

	(void)state;
	for (i = 0; i < 12; i++)
		k[i] = (struct hawk_gather_key){ .key = rows[i], .row = i };
	assert_int_equal(hawk_gather_union(k, 12), 6);
	for (i = 0; i < 12; i++) {
		assert_int_equal(want[k[i].at], rows[k[i].row]);	/* the remap table */
		place[k[i].at] = k[i];
	}
	for (i = 0; i < 6; i++)
		assert_int_equal(place[i].key, want[i]);
	for (at = 0; at < 6; at += n, transfers++)
		n = hawk_gather_run(place, at, 6, 1, ROWS);
	assert_int_equal(transfers, 6);
}

static void neighbours_merge(void **state)
{
	struct hawk_gather_key k[5] = {
		{ .key = 10 }, { .key = 14 }, { .key = 18 }, { .key = 26 }, { .key = 30 },
	};

	(void)state;
	assert_int_equal(hawk_gather_run(k, 0, 5, 4, ROWS), 3);
	assert_int_equal(hawk_gather_run(k, 1, 5, 4, ROWS), 2);
	assert_int_equal(hawk_gather_run(k, 3, 5, 4, ROWS), 2);
	assert_int_equal(hawk_gather_run(k, 0, 5, 4, 2), 2);
	assert_int_equal(hawk_gather_run(k, 0, 5, 2, ROWS), 1);
	assert_int_equal(hawk_gather_union(k, 0), 0);
}

/* The length to which lists of @len must be cut, by trying every one. */
static u32 naive_cap(const struct hawk_gather_key *k, u32 n, u32 longest, u32 max)
{
	u32 len, i, j, count;

	for (len = longest;; len--) {
		for (i = 0, count = 0; i < n; i++) {
			for (j = 0; k[i].row < len && j < i; j++)
				if (k[j].row < len && k[j].key == k[i].key)
					break;
			count += k[i].row < len && j == i;
		}
		if (count <= max)
			return len;
	}
}

static void random_lists(void **state)
{
	static struct hawk_gather_key k[ROWS], was[ROWS];
	u64 rng = 11;
	u32 round, i, j, n, lists, len, range, different, cap, max;

	(void)state;
	for (round = 0; round < 400; round++) {
		lists = 1 + host_below(&rng, 8);
		len = 1 + host_below(&rng, 30);
		range = 1 + host_below(&rng, 120);
		n = lists * len;
		for (i = 0; i < n; i++)
			was[i] = (struct hawk_gather_key) {
				.key = host_below(&rng, range) * 0x100000001ull, .row = i,
			};
		memcpy(k, was, sizeof(k));
		for (i = 0, different = 0; i < n; i++) {
			for (j = 0; j < i && was[j].key != was[i].key; j++)
				;
			different += j == i;
		}
		assert_int_equal(hawk_gather_union(k, n), different);
		for (i = 0; i < n; i++) {
			assert_true(k[i].key == was[k[i].row].key);
			assert_int_equal(k[i].at, i ? k[i - 1].at + (k[i].key != k[i - 1].key) : 0);
			assert_true(!i || k[i].key > k[i - 1].key ||
				    (k[i].key == k[i - 1].key && k[i].row > k[i - 1].row));
		}
		for (i = 0; i < n; i++)
			was[i].row = i % len;
		memcpy(k, was, sizeof(k));
		max = host_below(&rng, different + 2);
		cap = hawk_gather_cap(k, n, max);
		if (cap == HAWK_NONE)
			cap = len;
		if (cap != naive_cap(was, n, len, max))
			fail_msg("round %u: cut to %u, not to %u", round, cap,
				 naive_cap(was, n, len, max));
	}
}

/* ---- how many come in time ---- */

/* A device: a latency, then so many bytes per second, in exact fractions of a ns. */
static bool in_time(const struct hawk_gather_load *l, const u32 *blocks)
{
	__uint128_t have = (__uint128_t)(l->compute_ns - l->setup_ns), need = 0, all = 1;
	u32 t, u;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		all *= l->mb_per_s[t] ? l->mb_per_s[t] : 1;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		__uint128_t part = (__uint128_t)blocks[t] * l->block_bytes * 1000;

		for (u = 0; u < HAWK_TIERS_MAX; u++)
			if (u != t && l->mb_per_s[u])
				part *= l->mb_per_s[u];
		need += part;
	}
	return need <= have * all;
}

static void rows_come_in_time(void **state)
{
	u64 rng = 5;
	u32 round, rows, blocks[HAWK_TIERS_MAX], tight = 0;

	(void)state;
	for (round = 0; round < 20000; round++) {
		struct hawk_gather_load l = {
			.block_bytes = (1 + host_below(&rng, 64)) * 4096,
			.group = 1 + host_below(&rng, 16),
			.setup_ns = host_below(&rng, 50000),
			.mb_per_s = { [1] = 1 + host_below(&rng, 60000),
				      [3] = 1 + host_below(&rng, 6000) },
		};
		u32 slow = l.mb_per_s[1] < l.mb_per_s[3] ? 1 : 3;

		l.compute_ns = l.setup_ns + host_below(&rng, 20000000);
		if (round % 2) {	/* any mix is safe if none is known */
			rows = hawk_gather_rows(&l);
			memset(blocks, 0, sizeof(blocks));
			blocks[slow] = rows * l.group;
			if (!in_time(&l, blocks))
				fail_msg("round %u: %u rows are too many", round, rows);
			blocks[slow] += l.group;
			if (rows < ROWS / l.group)
				tight += !in_time(&l, blocks);
			else
				tight++;
			continue;
		}
		l.share[1] = 1 + host_below(&rng, 1023);
		l.share[3] = 1024 - l.share[1];
		rows = hawk_gather_rows(&l);
		memset(blocks, 0, sizeof(blocks));
		blocks[1] = rows * l.group * l.share[1] / 1024;
		blocks[3] = rows * l.group * l.share[3] / 1024;
		if (!in_time(&l, blocks))
			fail_msg("round %u: %u rows are too many", round, rows);
	}
	assert_true(tight > 9900);	/* and hardly ever would one more have done */
}

static void nothing_comes_in_time(void **state)
{
	struct hawk_gather_load l = { .block_bytes = 4096, .group = 8, .compute_ns = 1000000 };

	(void)state;
	assert_int_equal(hawk_gather_rows(&l), 0);	/* no tier is known */
	l.mb_per_s[0] = 1;
	assert_int_equal(hawk_gather_rows(&l), 0);	/* 4.1 ms a block */
	l.mb_per_s[0] = 4096000;
	assert_int_equal(hawk_gather_rows(&l), ROWS / 8);	/* a batch holds no more */
	l.setup_ns = l.compute_ns;
	assert_int_equal(hawk_gather_rows(&l), 0);
	l.setup_ns = 0;
	l.group = 0;
	assert_int_equal(hawk_gather_rows(&l), 0);
}

/* ---- blocks ---- */

struct fix {
	struct host h;
	struct hawk_space *s;
	u32 host, flash;
	u64 now;
	u64 lid[64];
	u32 remap[64];
	s32 status[64];
	struct hawk_gather_key key[64];
	struct hawk_gather_block blk[64];
	struct hawk_gather_set g;
};

static void fix_init(struct fix *f, u32 host, u32 flash, u32 buckets)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 256, .buckets = buckets,
	};

	memset(f, 0, sizeof(*f));
	host_init(&f->h, 3);
	f->host = host_tier(&f->h, HAWK_TIER_HOST, host);
	p.quota_max[f->host] = host;
	if (flash) {
		f->flash = host_tier(&f->h, HAWK_TIER_BLK, flash);
		p.quota_max[f->flash] = flash;
	}
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

/* Block @n on flash only. */
static void fill_flash(struct fix *f, u32 n)
{
	u32 i;

	fill(f, n);
	for (i = 0; HAWK_VT_TIER(hawk_space_translate(f->s, LID(n))) != f->flash; i++) {
		assert_true(i < 32);
		fill(f, 100 + i);
	}
}

static void gather(struct fix *f, const u32 *row, u32 n, u32 room)
{
	u32 i;

	for (i = 0; i < n; i++)
		f->lid[i] = LID(row[i]) + i % 16;	/* any token of the block */
	f->g = (struct hawk_gather_set) {
		.rows = n, .room = room, .lid = f->lid, .remap = f->remap, .status = f->status,
		.key = f->key, .blk = f->blk,
	};
	hawk_gather_open(f->s, &f->g, ++f->now);
	host_check(f->s);
}

static u64 tag_at(struct fix *f, u32 at)
{
	return host_read(&f->h, f->s, hawk_gather_at(&f->g, at)->read.vt);
}

static u32 gather_end(struct fix *f, s32 status, bool bad)
{
	u32 i, busy;

	for (i = 0; i < f->g.n; i++)
		hawk_gather_done(f->s, &f->g, i, status, bad);
	host_check(f->s);
	i = hawk_gather_results(&f->g, -ECANCELED, &busy);
	assert_int_equal(busy, 0);
	return i;
}

/* Rows of the same block share it, other LIDs of it too; each lies where it says. */
static void each_block_once(void **state)
{
	static const u32 row[10] = { 3, 1, 3, 77, 50, 1, 51, 2, 3, 0 };
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 4, 0, 4);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	assert_int_equal(hawk_block_fork(f.s, LID(2), LID(50)), 0);
	assert_int_equal(hawk_block_fork(f.s, LID(2), LID(51)), 0);
	gather(&f, row, 10, 64);
	assert_int_equal(f.g.n, 4);
	for (i = 1; i < 4; i++)
		assert_true(f.key[i].key > f.key[i - 1].key);
	assert_int_equal(gather_end(&f, 0, false), 9);
	for (i = 0; i < 10; i++) {
		u32 want = row[i] == 50 || row[i] == 51 ? 2 : row[i];

		if (row[i] == 77) {
			assert_int_equal(f.status[i], -ENOENT);
			assert_int_equal(f.remap[i], HAWK_NONE);
			continue;
		}
		assert_int_equal(f.status[i], 0);
		assert_int_equal(tag_at(&f, f.remap[i]), want + 1);
	}
	for (i = 0; i < 4; i++)	/* nothing is kept afterwards */
		assert_int_equal(hawk_block_free(f.s, LID(i)), 0);
	fix_fini(&f);
}

static void buffer_too_small(void **state)
{
	static const u32 row[6] = { 0, 1, 2, 3, 0, 1 };
	struct fix f;
	u32 i, none = 0;

	(void)state;
	fix_init(&f, 4, 0, 1);
	for (i = 0; i < 4; i++)
		fill(&f, i);
	gather(&f, row, 6, 3);
	assert_int_equal(f.g.n, 3);
	gather_end(&f, 0, false);
	for (i = 0; i < 6; i++) {
		none += f.status[i] == -ENOSPC;
		assert_int_equal(f.status[i] == -ENOSPC, f.remap[i] == HAWK_NONE);
	}
	assert_in_range(none, 1, 2);
	fix_fini(&f);
}

/* Being filled or reloaded: try again later. */
static void in_flight(void **state)
{
	static const u32 row[2] = { 0, 1 };
	struct hawk_ref ref;
	struct fix f;
	u64 vt;

	(void)state;
	fix_init(&f, 1, 4, 1);
	fill_flash(&f, 0);
	assert_int_equal(host_alloc(&f.h, f.s, LID(1), NULL, ++f.now, &vt), 0);
	while (host_block_reload(f.s, LID(0), HAWK_TIER_ANY, ++f.now, host_plan(&f.h, 1)) ==
	       -EAGAIN)
		host_run(&f.h);
	host_submit(&f.h);
	gather(&f, row, 2, 2);
	assert_int_equal(f.g.n, 0);
	gather_end(&f, 0, false);
	assert_int_equal(f.status[0], -EAGAIN);
	assert_int_equal(f.status[1], -EAGAIN);
	host_drain(&f.h);
	assert_int_equal(hawk_block_ref(f.s, LID(1), &vt, &ref), 0);
	hawk_block_unpin(f.s, ref);
	fix_fini(&f);
}

/* A reader of a block on flash: nobody frees it, forgets it or takes its frame. */
static void reader_keeps_flash(void **state)
{
	struct hawk_read r;
	struct fix f;
	u32 i, busy;
	int ret;

	(void)state;
	fix_init(&f, 1, 2, 1);
	fill_flash(&f, 0);
	assert_int_equal(hawk_block_read(f.s, LID(0) + 3, ++f.now, &r), 0);
	assert_true(r.flash);
	assert_int_equal(HAWK_VT_TIER(r.vt), f.flash);
	host_check(f.s);
	assert_int_equal(hawk_block_free(f.s, LID(0)), -EBUSY);
	for (i = 0; i < 40; i++)	/* many times what flash holds */
		fill(&f, 10 + i);
	assert_int_equal(hawk_space_translate(f.s, LID(0)), r.vt);
	assert_int_equal(host_read(&f.h, f.s, r.vt), 1);
	/* its chunk waits for it, even by force */
	i = HAWK_VT_FRAME(r.vt) / (HAWK_CHUNK_BYTES / BLOCK);
	assert_int_equal(hawk_space_drain_start(f.s, f.flash, i), 0);
	for (i = 0; i < 20; i++) {
		ret = hawk_space_drain(f.s, f.flash, HAWK_DRAIN_DROP, f.now, host_plan(&f.h, HOST_PLAN),
				       &busy);
		assert_int_equal(ret, -EAGAIN);
		assert_int_equal(busy, 1);	/* the reader may not have begun */
		host_run(&f.h);
		host_check(f.s);
	}
	hawk_block_read_end(f.s, &r, false);
	while ((ret = hawk_space_drain(f.s, f.flash, HAWK_DRAIN_DROP,
				       f.now, host_plan(&f.h, HOST_PLAN), &busy)) == -EAGAIN)
		host_run(&f.h);
	assert_int_equal(ret, 0);
	hawk_space_drain_cancel(f.s, f.flash);
	host_check(f.s);
	fix_fini(&f);
}

/* Reloaded while it is read, it is READY and keeps its copy until it has been read. */
static void reloaded_meanwhile(void **state)
{
	struct hawk_ref ref;
	struct hawk_read r;
	struct fix f;
	u64 vt;

	(void)state;
	fix_init(&f, 1, 2, 1);
	fill_flash(&f, 0);
	assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &r), 0);
	assert_int_equal(host_reload(&f.h, f.s, LID(0), ++f.now), 0);
	assert_int_equal(hawk_block_pin(f.s, LID(0), ++f.now, &vt, &ref), 0);
	assert_int_equal(HAWK_VT_TIER(vt), f.host);
	/* whoever wants to write it waits for the reader */
	assert_int_equal(host_block_unshare(f.s, LID(0), ++f.now, host_plan(&f.h, 1), &vt, &ref),
			 -EBUSY);
	hawk_block_read_end(f.s, &r, true);	/* bad, but another has read it well */
	host_check(f.s);
	assert_int_equal(hawk_block_unpin(f.s, ref), 0);
	assert_int_equal(host_reload(&f.h, f.s, LID(0), ++f.now), 0);
	assert_int_equal(host_read(&f.h, f.s, hawk_space_translate(f.s, LID(0))), 1);
	fix_fini(&f);
}

/* What cannot be read back is a miss; its frame stays while another still reads it. */
static void bad_is_a_miss(void **state)
{
	struct hawk_stats st = { 0 };
	struct hawk_read a, b, c;
	struct fix f;

	(void)state;
	fix_init(&f, 1, 2, 2);
	fill_flash(&f, 0);
	assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &a), 0);
	assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &b), 0);
	hawk_block_read_end(f.s, &a, true);
	host_check(f.s);
	assert_int_equal(hawk_space_translate(f.s, LID(0)), 0);
	assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &c), -ENOENT);
	assert_int_equal(f.s->win[f.flash].frame[HAWK_VT_FRAME(b.vt)].block, b.ref.block);
	hawk_block_read_end(f.s, &b, true);
	host_check(f.s);
	assert_int_not_equal(f.s->win[f.flash].frame[HAWK_VT_FRAME(b.vt)].block, b.ref.block);
	hawk_space_stats(f.s, &st);
	assert_int_equal(st.reload_errors, 1);
	fill(&f, 0);	/* the LID is free again */
	fix_fini(&f);
}

/* A reload that fails ends the block under its reader; who comes last buries it. */
static void reload_fails_meanwhile(void **state)
{
	struct hawk_read r;
	struct fix f;
	u32 i, busy, slot, parts[2];

	(void)state;
	fix_init(&f, 1, 2, 1);
	fill_flash(&f, 0);
	assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &r), 0);
	f.h.fail_permille = 1000;
	for (i = 0; i < 64 && hawk_space_translate(f.s, LID(0)); i++)
		host_reload(&f.h, f.s, LID(0), ++f.now);
	f.h.fail_permille = 0;
	assert_int_equal(hawk_space_translate(f.s, LID(0)), 0);
	host_check(f.s);
	/* neither of its frames can be taken away yet */
	parts[0] = f.flash;
	parts[1] = f.host;
	for (i = 0; i < 2; i++) {
		slot = i ? 0 : HAWK_VT_FRAME(r.vt) / (HAWK_CHUNK_BYTES / BLOCK);
		assert_int_equal(hawk_space_drain_start(f.s, parts[i], slot), 0);
		assert_int_equal(hawk_space_drain(f.s, parts[i], HAWK_DRAIN_DROP,
						  f.now, host_plan(&f.h, HOST_PLAN), &busy), -EAGAIN);
		host_run(&f.h);
		assert_int_equal(hawk_space_drain(f.s, parts[i], HAWK_DRAIN_DROP,
						  f.now, host_plan(&f.h, HOST_PLAN), &busy), -EAGAIN);
		assert_int_equal(busy, 1);
		host_run(&f.h);
		hawk_space_drain_cancel(f.s, parts[i]);
		host_check(f.s);
	}
	hawk_block_read_end(f.s, &r, true);
	host_check(f.s);
	fix_fini(&f);
}

/* As many readers as can be counted, and one more. */
static void readers_overflow(void **state)
{
	static struct hawk_read r[HAWK_READS_MAX + 1];
	struct fix f;
	u32 i;

	(void)state;
	fix_init(&f, 1, 2, 1);
	fill_flash(&f, 0);
	for (i = 0; i < HAWK_READS_MAX; i++)
		assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &r[i]), 0);
	assert_int_equal(hawk_block_read(f.s, LID(0), ++f.now, &r[i]), -EOVERFLOW);
	while (i--)
		hawk_block_read_end(f.s, &r[i], false);
	host_check(f.s);
	assert_int_equal(hawk_block_free(f.s, LID(0)), 0);
	fix_fini(&f);
}

/* ---- by lot, against a model ---- */

/*
 * Blocks come and go and move between tiers; gathers open and end among that, one at a
 * time.  What is read at a place is the block that the row named when it was opened.
 */
static void random_gathers(void **state)
{
	u32 i, k, n, round, row[48], seq, places = 0, flash = 0;
	struct fix f;
	u64 vt;

	(void)state;
	fix_init(&f, 2, 3, 4);
	for (round = 0; round < 3000; round++) {
		n = 1 + host_below(&f.h.rng, 48);
		for (i = 0; i < n; i++)
			row[i] = host_below(&f.h.rng, 40);
		gather(&f, row, n, 48);
		for (k = host_below(&f.h.rng, 6); k; k--) {
			seq = host_below(&f.h.rng, 40);
			switch (host_below(&f.h.rng, 4)) {
			case 0:
				hawk_block_free(f.s, LID(seq));
				break;
			case 1:
				host_reload(&f.h, f.s, LID(seq), ++f.now);
				break;
			default:
				host_fill(&f.h, f.s, LID(seq), NULL, seq + 1, ++f.now);
			}
			host_check(f.s);
		}
		for (i = 0; i < f.g.n; i++) {
			vt = hawk_gather_at(&f.g, i)->read.vt;
			assert_int_equal(tag_at(&f, i),
					 hawk_lid_tok(hawk_gather_at(&f.g, i)->lid) / 16 + 1);
			flash += HAWK_VT_TIER(vt) == f.flash;
			places++;
		}
		gather_end(&f, 0, false);
		for (i = 0; i < n; i++)
			if (!f.status[i] && tag_at(&f, f.remap[i]) != row[i] + 1)
				fail_msg("round %u: row %u has another's block", round, i);
		for (i = 0; i < n; i++)	/* the same row is the same place */
			for (k = 0; k < i; k++)
				assert_true((f.remap[i] == f.remap[k]) ==
					    (row[i] == row[k] ||
					     (f.remap[i] == HAWK_NONE && f.remap[k] == HAWK_NONE)));
	}
	assert_true(flash > 1000 && places - flash > 1000);
	fix_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spec_check),
		cmocka_unit_test(neighbours_merge),
		cmocka_unit_test(random_lists),
		cmocka_unit_test(rows_come_in_time),
		cmocka_unit_test(nothing_comes_in_time),
		cmocka_unit_test(each_block_once),
		cmocka_unit_test(buffer_too_small),
		cmocka_unit_test(in_flight),
		cmocka_unit_test(reader_keeps_flash),
		cmocka_unit_test(reloaded_meanwhile),
		cmocka_unit_test(bad_is_a_miss),
		cmocka_unit_test(reload_fails_meanwhile),
		cmocka_unit_test(readers_overflow),
		cmocka_unit_test(random_gathers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
