// SPDX-License-Identifier: MIT
/*
 * lib_gather.c - blocks of several lists in one buffer, each moved once
 *
 * Every block's bytes tell its number and version, so that what lands at a place in the
 * buffer is known to be the row's block, in one piece, or not.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)
#define ROWS	HAWK_BATCH_MAX
#define FRAMES	FX_CHUNK_FRAMES

/* Lists of block numbers and where they went. */
struct lists {
	uint64_t lid[ROWS];
	uint32_t n[ROWS];
	uint32_t count[HAWK_GATHER_LISTS];
	uint32_t remap[ROWS];
	int32_t status[ROWS];
	uint32_t rows;
	uint8_t *buf;
	size_t bytes;
	struct hawk_gather_lists l;
	struct hawk_gather g;
};

static void lists_init(struct lists *x, unsigned int blocks)
{
	memset(x, 0, sizeof(*x));
	x->bytes = (size_t)(blocks + 1) * FX_BLOCK;
	x->buf = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(x->buf != MAP_FAILED);
	x->l = (struct hawk_gather_lists) {
		.lid = x->lid, .count = x->count, .remap = x->remap, .status = x->status,
		.buf = x->buf, .buf_bytes = (uint64_t)blocks * FX_BLOCK,
	};
}

static void lists_fini(struct lists *x)
{
	munmap(x->buf, x->bytes);	/* it may still be written to, see <linux/hawk.h> */
}

static void list_begin(struct lists *x)
{
	x->l.lists++;
}

static void list_add(struct lists *x, uint32_t n)
{
	x->n[x->rows] = n;
	x->lid[x->rows++] = fx_lid(n) + n % FX_TOKENS;	/* any token of the block */
	x->count[x->l.lists - 1]++;
}

static const uint8_t *place(const struct lists *x, uint32_t row)
{
	return x->buf + (size_t)x->remap[row] * FX_BLOCK;
}

static void assert_row(const struct lists *x, uint32_t row, uint32_t salt)
{
	if (x->status[row])
		fail_msg("row %u (block %u): status %d", row, x->n[row], x->status[row]);
	if (x->remap[row] >= x->g.unique)
		fail_msg("row %u: place %u of %u", row, x->remap[row], x->g.unique);
	if (!fx_is(place(x, row), x->n[row], salt))
		fail_msg("row %u does not have the bytes of block %u", row, x->n[row]);
}

/* Four lists of 64 rows, 60 % of which others name as well: as dhisparse.md has them. */
static void four_candidates(struct lists *x, uint32_t step)
{
	uint32_t c, i;

	for (c = 0; c < 4; c++) {
		list_begin(x);
		for (i = 0; i < 64; i++)
			list_add(x, (i < 51 ? i : 51 + c * 13 + i - 51) * step);
	}
}

/* DRAM and flash, neighbours and not: bytes moved are unique bytes, and nothing else. */
static void each_block_once(void **state)
{
	struct hawk_tier_info before, after;
	struct hawk_stats was, now;
	static struct lists x;
	uint32_t i, t, blocks = 0;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 3 * FRAMES, 1);		/* two of three are on flash only */
	lists_init(&x, 256);
	four_candidates(&x, 3);
	assert_ok(hawk_tier_stat(f.h, f.flash, &before));
	assert_ok(hawk_kv_stats(f.kv, &was));
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), 256);
	assert_ok(hawk_kv_stats(f.kv, &now));
	assert_ok(hawk_tier_stat(f.h, f.flash, &after));
	assert_int_equal(x.g.unique, 51 + 4 * 13);
	assert_int_equal(x.g.bytes, (51 + 4 * 13) * (uint64_t)FX_BLOCK);
	assert_int_equal(x.g.busy, 0);
	for (i = 0; i < x.rows; i++)
		assert_row(&x, i, 1);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		blocks += x.g.tier[t].blocks;
		assert_true(x.g.tier[t].transfers <= x.g.tier[t].blocks);
		assert_int_equal(!x.g.tier[t].blocks, !x.g.tier[t].ns);
	}
	assert_int_equal(blocks, x.g.unique);
	assert_true(x.g.tier[f.dram].blocks && x.g.tier[f.flash].blocks);
	assert_int_equal(after.read_bytes - before.read_bytes,
			 x.g.tier[f.flash].blocks * (uint64_t)FX_BLOCK);
	/* no eviction, no promotion */
	assert_int_equal(now.reloads, was.reloads);
	assert_int_equal(now.evict_clean, was.evict_clean);
	assert_int_equal(now.evict_drop, was.evict_drop);
	assert_int_equal(now.resident, was.resident);
	assert_int_equal(now.pinned, 0);
	lists_fini(&x);
	fx_close(&f);
}

/* Blocks written one behind the other are one transfer, whatever the order of rows. */
static void neighbours_merge(void **state)
{
	static struct lists x;
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 8 * MIB, 0);
	fx_put(f.kv, 0, FRAMES, 1);
	lists_init(&x, FRAMES);
	list_begin(&x);
	for (i = 0; i < FRAMES; i++)
		list_add(&x, i * 37 % FRAMES);
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), FRAMES);
	assert_int_equal(x.g.tier[f.dram].blocks, FRAMES);
	assert_int_equal(x.g.tier[f.dram].transfers, 1);	/* all of a chunk */
	for (i = 0; i < x.rows; i++)
		assert_row(&x, i, 1);
	lists_fini(&x);
	fx_close(&f);
}

static void status_of_rows(void **state)
{
	struct hawk_item it, fork = { .lid = fx_lid(1), .arg = fx_lid(900) };
	static struct lists x;
	struct fx f;
	uint32_t i, short_of = 0;

	(void)state;
	fx_open(&f, 4 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 8, 1);
	it = (struct hawk_item) { .lid = fx_lid(500) };
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 1);	/* being filled, by us */
	assert_int_equal(hawk_fork(f.kv, &fork, 1), 1);
	lists_init(&x, 4);
	list_begin(&x);
	list_begin(&x);			/* an empty list may be */
	list_add(&x, 500);
	list_add(&x, 700);		/* there is none */
	list_add(&x, 1);
	list_begin(&x);
	list_add(&x, 900);		/* another LID of block 1 */
	for (i = 2; i < 7; i++)
		list_add(&x, i);
	x.n[3] = 1;
	/* the buffer is for four blocks, the rows name six, one of them twice */
	assert_in_range(hawk_gather(f.kv, &x.l, NULL, &x.g), 4, 5);
	assert_int_equal(x.g.unique, 4);
	assert_int_equal(x.status[0], -EAGAIN);
	assert_int_equal(x.status[1], -ENOENT);
	assert_int_equal(x.remap[0], HAWK_GATHER_NONE);
	assert_int_equal(x.remap[1], HAWK_GATHER_NONE);
	assert_int_equal(x.remap[2], x.remap[3]);
	for (i = 2; i < x.rows; i++) {
		if (!x.status[i]) {
			assert_row(&x, i, 1);
			continue;
		}
		assert_int_equal(x.status[i], -ENOSPC);
		assert_int_equal(x.remap[i], HAWK_GATHER_NONE);
		short_of++;
	}
	assert_int_equal(short_of, x.status[2] ? 3 : 2);
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	lists_fini(&x);
	fx_close(&f);
}

static void refusals(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_PREFIX };
	static struct lists x;
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	fx_put(f.kv, 0, 1, 1);
	lists_init(&x, 1);
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), -EINVAL);	/* no list */
	list_begin(&x);
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), -EINVAL);	/* no row */
	list_add(&x, 0);
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), -EOPNOTSUPP);
	o = (struct hawk_opts) { .flags = HAWK_BATCH_ASYNC };
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), -EINVAL);	/* no ring */
	o = (struct hawk_opts) { .deadline_ns = 1ull << 63 };
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), -EINVAL);
	x.l.buf = x.buf + 512;
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), -EINVAL);
	x.l.buf = x.buf;
	x.l.lists = HAWK_GATHER_LISTS + 1;
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), -E2BIG);
	x.l.lists = 1;
	x.count[0] = ROWS + 1;
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), -E2BIG);
	x.count[0] = 1;
	/* a deadline that has passed */
	o = (struct hawk_opts) { .deadline_ns = 1 };
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), 0);
	assert_int_equal(x.status[0], -ETIME);
	assert_int_equal(x.remap[0], HAWK_GATHER_NONE);
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), 1);
	assert_row(&x, 0, 1);
	/* as many rows and lists as there may be */
	memset(x.count, 0, sizeof(x.count));
	x.l.lists = HAWK_GATHER_LISTS;
	for (i = 0; i < ROWS; i++)
		x.lid[i] = fx_lid(0);
	for (i = 0; i < HAWK_GATHER_LISTS; i++)
		x.count[i] = ROWS / HAWK_GATHER_LISTS;
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), ROWS);
	assert_int_equal(x.g.unique, 1);
	lists_fini(&x);
	fx_close(&f);
}

/* ---- flash that goes bad ---- */

/* Where block @n lies in the flash file, or -1. */
static off_t find_on_flash(struct fx *f, uint32_t n, uint32_t salt)
{
	static uint64_t want[FX_BLOCK / 8];
	uint8_t *block = NULL;
	off_t off, found = -1;
	int fd = open(f->file, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(posix_memalign((void **)&block, 4096, FX_BLOCK), 0);
	fx_fill(want, n, salt);
	for (off = 0; pread(fd, block, FX_BLOCK, off) == (ssize_t)FX_BLOCK; off += FX_BLOCK)
		if (!memcmp(block, want, FX_BLOCK))
			found = off;
	free(block);
	close(fd);
	return found;
}

static void spoil(struct fx *f, off_t off)
{
	int fd = open(f->file, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, off + 5000), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, off + 5000), 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* One bad block of a transfer of many is one: the others come, and it is a miss. */
static void bad_block_on_flash(void **state)
{
	struct hawk_stats st;
	static struct lists x;
	uint32_t i, bad = 10;
	struct fx f;
	off_t off;

	(void)state;
	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 3 * FRAMES, 1);
	off = find_on_flash(&f, bad, 1);
	assert_true(off >= 0);
	spoil(&f, off);
	lists_init(&x, FRAMES);
	list_begin(&x);
	for (i = 0; i < FRAMES; i++)
		list_add(&x, i);
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), FRAMES - 1);
	for (i = 0; i < FRAMES; i++) {
		if (i != bad) {
			assert_row(&x, i, 1);
			continue;
		}
		assert_int_equal(x.status[i], -EILSEQ);
		assert_int_equal(x.remap[i], HAWK_GATHER_NONE);
	}
	assert_true(x.g.tier[f.flash].transfers < x.g.tier[f.flash].blocks);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.reload_errors, 1);
	assert_int_equal(hawk_gather(f.kv, &x.l, NULL, &x.g), FRAMES - 1);
	assert_int_equal(x.status[bad], -ENOENT);
	assert_int_equal(fx_get(f.kv, bad, 1), -ENOENT);
	lists_fini(&x);
	fx_close(&f);
}

/* ---- asynchronous ---- */

/* Reaps until the gather's end; the number of blocks that came. Statuses by place. */
static unsigned int reap_gather(struct fx *f, const struct lists *x, uint64_t user_data,
				int32_t *came, struct hawk_cqe *end)
{
	struct pollfd p = { .fd = hawk_ring_fd(f->kv), .events = POLLIN };
	uint32_t items = 0, i;
	struct hawk_cqe cqe;

	for (;;) {
		assert_int_equal(poll(&p, 1, 30000), 1);
		if (hawk_reap(f->kv, &cqe, 1) != 1)
			continue;
		assert_int_equal(cqe.user_data, user_data);
		if (cqe.flags == HAWK_CQE_BATCH) {
			assert_int_equal(items, x->g.unique);
			*end = cqe;
			return cqe.index;
		}
		assert_int_equal(cqe.flags, HAWK_CQE_ITEM);
		assert_true(cqe.index < x->g.unique);
		for (i = 0; i < x->rows; i++)
			if (x->remap[i] == cqe.index)
				assert_int_equal(fx_lid(x->n[i]), cqe.lid);
		assert_int_equal(!cqe.vt, !!cqe.status);
		came[cqe.index] = cqe.status;
		items++;
	}
}

static void async(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC, .user_data = 0x77 };
	static struct lists x;
	int32_t came[256];
	struct hawk_cqe end;
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 3 * FRAMES, 1);
	lists_init(&x, 256);
	four_candidates(&x, 3);
	list_add(&x, 2000);	/* there is none */
	assert_ok(hawk_ring_open(f.kv, 64, -1));
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), -EBUSY);	/* ring too small */
	fx_close(&f);

	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 3 * FRAMES, 1);
	assert_ok(hawk_ring_open(f.kv, 512, -1));
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), 0);
	assert_int_equal(x.g.unique, 51 + 4 * 13);
	assert_int_equal(x.status[256], -ENOENT);
	assert_int_equal(x.remap[256], HAWK_GATHER_NONE);
	for (i = 0; i < 256; i++)
		assert_int_equal(x.status[i], -EINPROGRESS);
	memset(x.lid, 0, sizeof(x.lid));	/* the lists are the caller's again */
	assert_int_equal(reap_gather(&f, &x, o.user_data, came, &end), x.g.unique);
	assert_int_equal(end.lid, x.g.bytes);
	assert_true(end.vt > 0);
	for (i = 0; i < 256; i++) {
		x.status[i] = came[x.remap[i]];
		assert_row(&x, i, 1);
	}
	lists_fini(&x);
	fx_close(&f);
}

/* Every completion comes, of what was canceled, late or cut short too. */
static void async_ends_early(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC, .user_data = 3 };
	static struct lists x;
	uint32_t i, n, round;
	int32_t came[2 * FRAMES];
	struct hawk_cqe end;
	struct fx f;
	int ret;

	(void)state;
	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 3 * FRAMES, 1);
	lists_init(&x, 2 * FRAMES);
	list_begin(&x);
	for (i = 0; i < 2 * FRAMES; i++)
		list_add(&x, i);
	assert_ok(hawk_ring_open(f.kv, 1024, -1));
	for (round = 0; round < 20; round++) {
		o.deadline_ns = round % 3 == 2 ? 1 : 0;
		assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), 0);
		if (round % 3 == 1) {
			ret = hawk_cancel(f.kv, o.user_data, 0);
			assert_true(ret == 1 || ret == -ENOENT);	/* it may be over */
		}
		n = reap_gather(&f, &x, o.user_data, came, &end);
		for (i = 0; i < x.rows; i++) {
			if (came[x.remap[i]]) {
				assert_int_equal(came[x.remap[i]],
						 o.deadline_ns ? -ETIME : -ECANCELED);
				continue;
			}
			x.status[i] = 0;
			assert_row(&x, i, 1);
			n--;
		}
		assert_int_equal(n, 0);
		if (!(round % 3))
			assert_int_equal(end.index, x.g.unique);
		if (o.deadline_ns)
			assert_int_equal(end.index, 0);
	}
	/* the handle ends with gathers under way: nothing is kept of them */
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), 0);
	o.deadline_ns = 0;
	assert_int_equal(hawk_gather(f.kv, &x.l, &o, &x.g), 0);
	fx_close(&f);
	lists_fini(&x);
}

/* ---- races ---- */

#define RANGE	300u

static struct fx fx;
static bool stop;	/* atomic */

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33);
}

/* Frees blocks and publishes them anew, so that all others are evicted all the time. */
static void *churn(void *arg)
{
	uint64_t s = 100 + (uintptr_t)arg;
	uint32_t n, version = 1 + (uint32_t)(uintptr_t)arg;
	struct hawk_item it;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		n = rnd(&s) % RANGE;
		it = (struct hawk_item) { .lid = fx_lid(n) };
		hawk_free(fx.kv, &it, 1);	/* or it is being read, or not there */
		it = (struct hawk_item) { .lid = fx_lid(n) };
		if (hawk_alloc(fx.kv, &it, 1, NULL) != 1)
			continue;
		version += 2;
		fx_fill(hawk_addr(fx.kv, it.vt), n, version);
		assert_int_equal(hawk_put(fx.kv, &it, 1, NULL), 1);
		if (rnd(&s) % 4)
			continue;
		it = (struct hawk_item) { .lid = fx_lid(rnd(&s) % RANGE) };
		hawk_reload(fx.kv, &it, 1, NULL);
	}
	return NULL;
}

/* Some version of the row's block, all of it of the same one. */
static void assert_some_version(const struct lists *x, uint32_t row)
{
	static __thread uint64_t want[FX_BLOCK / 8];
	uint64_t first;
	uint32_t salt;

	memcpy(&first, place(x, row), 8);
	/* word 0 of a block is (n << 32 | salt) times an odd number: take it back */
	first *= 0xf1de83e19937733dull;
	salt = (uint32_t)first;
	if (first >> 32 != x->n[row])
		fail_msg("row of block %u has bytes of block %u", x->n[row],
			 (uint32_t)(first >> 32));
	fx_fill(want, x->n[row], salt);
	if (memcmp(want, place(x, row), FX_BLOCK))
		fail_msg("block %u is not of one piece", x->n[row]);
}

static void races(void **state)
{
	static struct lists x;
	pthread_t t[2];
	uint32_t round, i, good = 0, flash = 0;
	uint64_t s = 9;
	int ret;

	(void)state;
	fx_open_buckets(&fx, 2 * MIB, 8 * MIB, 4);
	fx_put(fx.kv, 0, RANGE, 1);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn, (void *)(uintptr_t)i), 0);
	lists_init(&x, 96);
	/* how often the others get in between is the scheduler's: until it is enough */
	for (round = 0; round < 400 || (round < 40000 && (good <= 1000 || flash <= 1000)); round++) {
		x.rows = 0;
		x.l.lists = 0;
		memset(x.count, 0, sizeof(x.count));
		list_begin(&x);
		for (i = 0; i < 96; i++)
			list_add(&x, rnd(&s) % RANGE);
		ret = hawk_gather(fx.kv, &x.l, NULL, &x.g);
		assert_true(ret >= 0);
		for (i = 0; i < x.rows; i++) {
			if (x.status[i]) {
				assert_true(x.status[i] == -ENOENT || x.status[i] == -EAGAIN);
				continue;
			}
			assert_some_version(&x, i);
			good++;
		}
		flash += x.g.tier[fx.flash].blocks;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_true(good > 1000 && flash > 1000);
	lists_fini(&x);
	fx_close(&fx);
}

/* ---- groups of layers, fetched ahead ---- */

static void budget(void **state)
{
	struct hawk_gather_budget b = {
		.block_bytes = 65536, .compute_ns = 1000000, .mb_per_s = { 24000, 3000 },
	};
	struct hawk_gather g = { .unique = 100, .tier = { { 75, 75, 0 }, { 25, 25, 0 } } };

	(void)state;
	/* all from the slow tier: 21.85 us each, 45 in a millisecond, 5 for each of 8 layers */
	assert_int_equal(hawk_gather_rows_max(&b), 5);
	b.group = HAWK_GROUP_CXL;
	assert_int_equal(hawk_gather_rows_max(&b), 11);
	b.share[0] = 768;
	b.share[1] = 256;	/* 7.51 us on average */
	assert_int_equal(hawk_gather_rows_max(&b), 33);
	/* measured: tier 0 half as fast, tier 1 four times as fast */
	g.tier[0].ns = 75 * 65536ull * 1000 / 12000;
	g.tier[1].ns = 25 * 65536ull * 1000 / 12000;
	hawk_gather_measure(&b, &g);
	assert_in_range(b.mb_per_s[0], 11990, 12010);	/* slower: at once */
	assert_in_range(b.mb_per_s[1], 5200, 5300);	/* faster: by and by */
	assert_int_equal(b.share[0], 768);
	assert_int_equal(b.share[1], 256);
}

static void issue_group(struct hawk_prefetch *pf, struct lists *x, uint32_t group, int want)
{
	uint32_t c, i;

	x->rows = 0;
	x->l.lists = 0;
	memset(x->count, 0, sizeof(x->count));
	for (c = 0; c < 4; c++) {
		list_begin(x);
		for (i = 0; i < 16; i++)
			list_add(x, group * 40 + (i < 8 ? i : 8 + c * 8 + i - 8));
	}
	if (want == -EBUSY)
		assert_int_equal(hawk_prefetch_issue(pf, x->lid, x->count, 4, NULL), want);
	else
		assert_true(hawk_prefetch_issue(pf, x->lid, x->count, 4, NULL) > 0);
}

static void wait_group(struct fx *f, struct hawk_prefetch *pf, struct hawk_prefetch_group *g)
{
	struct pollfd p = { .fd = hawk_ring_fd(f->kv), .events = POLLIN };
	struct hawk_cqe cqe, other = { .user_data = 999, .flags = HAWK_CQE_BATCH };

	assert_int_equal(hawk_prefetch_complete(pf, &other), -ENOENT);
	while (hawk_prefetch_ready(pf, g) == -EAGAIN) {
		assert_int_equal(poll(&p, 1, 30000), 1);
		if (hawk_reap(f->kv, &cqe, 1) == 1)
			assert_true(hawk_prefetch_complete(pf, &cqe) >= 0);
	}
}

/* While a group is looked at the next one is on its way; no block is read twice. */
static void prefetch(void **state)
{
	struct hawk_gather_budget b = {
		.block_bytes = FX_BLOCK, .group = 2, .compute_ns = 1ull << 40, .mb_per_s = { 1 },
	};
	struct hawk_tier_info before, after;
	struct hawk_prefetch_group g;
	static struct lists x[2];
	struct hawk_prefetch *pf;
	uint32_t group, i, blocks = 0;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 4 * FRAMES, 1);		/* the first 256 are on flash */
	assert_int_equal(hawk_prefetch_open(f.kv, &b, 64, 5, &pf), -EINVAL);	/* no ring */
	assert_ok(hawk_ring_open(f.kv, 512, -1));
	assert_int_equal(hawk_prefetch_open(f.kv, &b, 0, 5, &pf), -EINVAL);
	assert_ok(hawk_prefetch_open(f.kv, &b, 64, 5, &pf));
	lists_init(&x[0], 1);
	lists_init(&x[1], 1);
	assert_ok(hawk_tier_stat(f.h, f.flash, &before));
	assert_int_equal(hawk_prefetch_ready(pf, &g), -EAGAIN);
	issue_group(pf, &x[0], 0, 0);
	assert_int_equal(hawk_prefetch_close(pf), -EBUSY);
	for (group = 0; group < 6; group++) {
		if (group < 5)
			issue_group(pf, &x[(group + 1) % 2], group + 1, 0);
		wait_group(&f, pf, &g);
		if (!group)
			issue_group(pf, &(struct lists){ .buf = NULL }, 0, -EBUSY);
		assert_int_equal(g.blocks, 40);
		assert_int_equal(g.rows, 64);
		blocks += g.blocks;
		for (i = 0; i < g.rows; i++) {
			assert_int_equal(g.status[i], 0);
			assert_true(fx_is((const uint8_t *)g.buf + g.remap[i] * (size_t)FX_BLOCK,
					  x[group % 2].n[i], 1));
		}
		hawk_prefetch_release(pf);
	}
	assert_ok(hawk_tier_stat(f.h, f.flash, &after));
	assert_int_equal(after.read_bytes - before.read_bytes, blocks * (uint64_t)FX_BLOCK);
	assert_ok(hawk_prefetch_close(pf));
	/* of what does not come in time nothing is fetched */
	b.compute_ns = 1;
	assert_ok(hawk_prefetch_open(f.kv, &b, 64, 5, &pf));
	assert_int_equal(hawk_prefetch_issue(pf, x[0].lid, x[0].count, 4, NULL), 0);
	assert_ok(hawk_prefetch_close(pf));
	/* 20 blocks in time: 8 that all lists name and 3 of each, not 4 */
	b.compute_ns = 20 * (FX_BLOCK * 1000ull + 1);
	assert_ok(hawk_prefetch_open(f.kv, &b, 64, 5, &pf));
	assert_int_equal(hawk_prefetch_issue(pf, x[0].lid, x[0].count, 4, &i), 20);
	assert_int_equal(i, 11);
	wait_group(&f, pf, &g);
	assert_int_equal(g.rows, 44);
	assert_int_equal(g.blocks, 20);
	assert_ok(hawk_prefetch_close(pf));
	lists_fini(&x[0]);
	lists_fini(&x[1]);
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_block_once),
		cmocka_unit_test(neighbours_merge),
		cmocka_unit_test(status_of_rows),
		cmocka_unit_test(refusals),
		cmocka_unit_test(bad_block_on_flash),
		cmocka_unit_test(async),
		cmocka_unit_test(async_ends_early),
		cmocka_unit_test(races),
		cmocka_unit_test(budget),
		cmocka_unit_test(prefetch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
