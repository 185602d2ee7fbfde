// SPDX-License-Identifier: MIT
/*
 * lib_blocks.c - blocks come and go, move between tiers and keep their bytes
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)

static void round_trip(void **state)
{
	struct hawk_stats st;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	fx_put(f.kv, 0, 100, 1);
	for (n = 0; n < 100; n++)
		assert_int_equal(fx_get(f.kv, n, 1), 0);
	assert_int_equal(fx_get(f.kv, 100, 1), -ENOENT);
	assert_int_equal(fx_get(f.kv, 0, 2), -ENOENT);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.blocks, 100);
	assert_int_equal(st.resident, 100);
	assert_int_equal(st.pinned, 0);
	assert_int_equal(st.allocs, 100);
	assert_int_equal(st.puts, 100);
	fx_close(&f);
}

/* Four times as many blocks as DRAM has frames: all are kept, on flash. */
static void oversubscribed(void **state)
{
	uint32_t frames = 2 * FX_CHUNK_FRAMES, n, i;
	struct hawk_tier_info flash;
	struct hawk_stats st;
	struct fx f;

	(void)state;
	fx_open(&f, 4 * MIB, 24 * MIB);
	fx_put(f.kv, 0, 4 * frames, 1);
	for (i = 0; i < 8 * frames; i++) {
		n = i * 2654435761u % (4 * frames);
		if (fx_get(f.kv, n, 1))
			fail_msg("block %u was lost", n);
	}
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.blocks, 4 * frames);
	assert_true(st.resident <= frames);
	assert_true(st.reloads >= 3 * frames);
	assert_int_equal(st.reload_errors, 0);
	assert_int_equal(st.evict_drop + st.flash_drop, 0);
	assert_ok(hawk_tier_stat(f.h, f.flash, &flash));
	assert_int_equal(flash.kind, HAWK_TIER_BLK);
	assert_int_equal(flash.read_bytes, st.reloads * FX_BLOCK);
	assert_int_equal(flash.write_bytes, st.evict_write * FX_BLOCK);
	assert_int_equal(flash.io_errors, 0);
	fx_close(&f);
}

/* A batch of reads fills all of DRAM with pinned blocks; one more is refused. */
static void get_batch(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, n;
	struct hawk_item *it;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * frames, 1);
	it = calloc(frames + 1, sizeof(*it));
	for (n = 0; n <= frames; n++) {
		it[n].flags = HAWK_ITEM_BY_KEY;
		fx_key(&it[n], n, 1);
	}
	assert_int_equal(hawk_get(f.kv, it, frames, NULL, NULL), frames);
	for (n = 0; n < frames; n++)
		assert_true(fx_is(hawk_addr(f.kv, it[n].vt), n, 1));
	assert_int_equal(hawk_get(f.kv, it + frames, 1, NULL, NULL), 0);
	assert_true(it[frames].status == -EDQUOT || it[frames].status == -ENOSPC);
	for (n = 0; n < frames; n++)
		it[n].flags = 0;
	assert_int_equal(hawk_unpin(f.kv, it, frames), frames);
	assert_int_equal(hawk_get(f.kv, it + frames, 1, NULL, NULL), 1);
	free(it);
	fx_close(&f);
}

static void reload_unpinned(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0) };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * FX_CHUNK_FRAMES, 1);
	assert_int_equal(hawk_pin(f.kv, &it, 1), 0);
	assert_int_equal(it.status, -EAGAIN);
	assert_null(hawk_addr(f.kv, hawk_translate_slow(f.kv, it.lid)));
	assert_int_equal(hawk_reload(f.kv, &it, 1, NULL), 1);
	assert_true(fx_is(hawk_addr(f.kv, hawk_translate(f.kv, it.lid)), 0, 1));
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	it = (struct hawk_item) { .lid = fx_lid(3000) };
	assert_int_equal(hawk_reload(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -ENOENT);
	fx_close(&f);
}

/* What is on flash takes I/O: not with NOWAIT, not after the deadline. */
static void nowait_and_deadline(void **state)
{
	struct hawk_opts nowait = { .flags = HAWK_BATCH_NOWAIT };
	struct hawk_opts late = { .deadline_ns = 1 };
	struct hawk_opts soon = { .deadline_ns = fx_now() + 60000000000u };
	uint32_t last = 2 * FX_CHUNK_FRAMES - 1;
	struct hawk_item it = { .lid = fx_lid(0) };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, last + 1, 1);
	assert_int_equal(hawk_get(f.kv, &it, 1, &nowait, NULL), 0);
	assert_int_equal(it.status, -EAGAIN);
	assert_int_equal(hawk_get(f.kv, &it, 1, &late, NULL), 0);
	assert_int_equal(it.status, -ETIME);
	assert_int_equal(it.vt, 0);
	assert_int_equal(hawk_get(f.kv, &it, 1, &soon, NULL), 1);
	assert_true(fx_is(hawk_addr(f.kv, it.vt), 0, 1));
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	/* what is in DRAM takes none */
	it.vt = 0;
	assert_int_equal(hawk_get(f.kv, &it, 1, &nowait, NULL), 1);
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	it.vt = 0;
	assert_int_equal(hawk_get(f.kv, &it, 1, &late, NULL), 1);
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	fx_close(&f);
}

/* GET with PREFIX: nothing behind the first missing block is pinned. */
static void get_prefix(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_PREFIX };
	struct hawk_item it[10] = { 0 };
	unsigned int prefix, i;
	struct hawk_stats st;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * FX_CHUNK_FRAMES, 1);
	for (i = 0; i < 10; i++) {
		it[i].flags = HAWK_ITEM_BY_KEY;
		fx_key(&it[i], i, i == 5 ? 9 : 1);
	}
	assert_int_equal(hawk_get(f.kv, it, 10, &o, &prefix), 5);
	assert_int_equal(prefix, 5);
	for (i = 0; i < 5; i++)
		assert_true(fx_is(hawk_addr(f.kv, it[i].vt), i, 1));
	assert_int_equal(it[5].status, -ENOENT);
	for (i = 6; i < 10; i++)
		assert_int_equal(it[i].status, -ECANCELED);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.pinned, 5);
	fx_close(&f);
}

static void lookup_prefix(void **state)
{
	struct hawk_item it[10] = { 0 };
	struct hawk_item one = { .flags = HAWK_ITEM_BY_KEY };
	struct fx f;
	int i;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 9, 1);
	fx_key(&one, 5, 1);
	assert_int_equal(hawk_free(f.kv, &one, 1), 1);
	for (i = 0; i < 10; i++)
		fx_key(&it[i], (uint32_t)i, 1);
	/* block 9 is being filled: its key is announced */
	one = it[9];
	one.lid = fx_lid(9);
	assert_int_equal(hawk_alloc(f.kv, &one, 1, NULL), 1);

	assert_int_equal(hawk_lookup(f.kv, it, 10, NULL, NULL), 5);
	for (i = 0; i < 10; i++) {
		assert_int_equal(it[i].status, i == 5 ? -ENOENT : i == 9 ? -EAGAIN : 0);
		if (!it[i].status)
			assert_int_equal(it[i].lid, fx_lid((uint32_t)i));
	}
	/* without its key the block is still there under its LID */
	one = (struct hawk_item) { .lid = fx_lid(5) };
	assert_int_equal(hawk_get(f.kv, &one, 1, NULL, NULL), 1);
	fx_close(&f);
}

static void fork_and_unshare(void **state)
{
	struct hawk_item a = { .lid = fx_lid(0) }, b = { .lid = fx_lid(0), .arg = fx_lid(1) };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 1, 1);
	assert_int_equal(hawk_fork(f.kv, &b, 1), 1);
	assert_int_equal(hawk_fork(f.kv, &b, 1), 0);
	assert_int_equal(b.status, -EEXIST);
	b.arg = HAWK_LID(1, FX_LAYERS, 0, 0);	/* the model has no such layer */
	assert_int_equal(hawk_fork(f.kv, &b, 1), 0);
	assert_int_equal(b.status, -EINVAL);
	assert_int_equal(hawk_translate(f.kv, fx_lid(1)), hawk_translate(f.kv, fx_lid(0)));

	b = (struct hawk_item) { .lid = fx_lid(1) };
	assert_int_equal(hawk_unshare(f.kv, &b, 1, NULL), 0);
	assert_int_equal(b.status, -ESTALE);	/* not pinned */
	assert_int_equal(hawk_get(f.kv, &b, 1, NULL, NULL), 1);
	assert_int_equal(hawk_unshare(f.kv, &b, 1, NULL), 1);
	assert_true(b.vt != hawk_translate(f.kv, fx_lid(0)));
	assert_true(fx_is(hawk_addr(f.kv, b.vt), 0, 1));	/* copied */
	fx_fill(hawk_addr(f.kv, b.vt), 1, 2);
	b.vt = 0;
	fx_key(&b, 1, 2);
	assert_int_equal(hawk_put(f.kv, &b, 1, NULL), 1);
	assert_int_equal(fx_get(f.kv, 0, 1), 0);
	assert_int_equal(fx_get(f.kv, 1, 2), 0);

	assert_int_equal(hawk_free(f.kv, &a, 1), 1);
	assert_int_equal(fx_get(f.kv, 0, 1), -ENOENT);
	assert_int_equal(fx_get(f.kv, 1, 2), 0);
	fx_close(&f);
}

static void pins(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, n;
	struct hawk_item it, full;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	for (n = 0; n < frames; n++) {
		it = (struct hawk_item) { .lid = fx_lid(n) };
		assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 1);
	}
	full = (struct hawk_item) { .lid = fx_lid(n) };
	assert_int_equal(hawk_alloc(f.kv, &full, 1, NULL), 0);
	assert_true(full.status == -EDQUOT || full.status == -ENOSPC);

	it.vt ^= 1ull << 32;	/* another generation */
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 0);
	assert_int_equal(it.status, -ESTALE);
	it = (struct hawk_item) { .lid = it.lid };
	assert_int_equal(hawk_free(f.kv, &it, 1), 0);
	assert_int_equal(it.status, -EBUSY);
	/* the only pin of a block that was never put: that is its end */
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 0);
	assert_int_equal(it.status, -ENOENT);
	full.status = 0;
	assert_int_equal(hawk_alloc(f.kv, &full, 1, NULL), 1);
	fx_close(&f);
}

static void put_rules(void **state)
{
	struct hawk_opts keep = { .flags = HAWK_BATCH_KEEP_PIN };
	struct hawk_item it = { .lid = fx_lid(0) };
	struct hawk_item two = { .lid = fx_lid(1) };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	assert_int_equal(hawk_put(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -ENOENT);
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 1);
	assert_int_equal(hawk_alloc(f.kv, &two, 1, NULL), 1);
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -EEXIST);

	fx_key(&it, 0, 1);
	assert_int_equal(hawk_put(f.kv, &it, 1, &keep), 1);
	assert_int_equal(hawk_put(f.kv, &it, 1, &keep), 0);
	assert_int_equal(it.status, -EINVAL);		/* it is READY */
	it = (struct hawk_item) { .lid = fx_lid(0) };
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);	/* the pin was kept */
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 0);
	assert_int_equal(it.status, -ESTALE);

	fx_key(&two, 0, 1);				/* somebody has the key */
	assert_int_equal(hawk_put(f.kv, &two, 1, NULL), 0);
	assert_int_equal(two.status, -EEXIST);
	two = (struct hawk_item) { .lid = fx_lid(1) };
	assert_int_equal(hawk_pin(f.kv, &two, 1), 1);	/* but it is READY */
	fx_close(&f);
}

static void translate(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0) + 3 };
	struct fx f;
	uint64_t vt;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	assert_int_equal(hawk_translate(f.kv, fx_lid(0)), 0);
	assert_int_equal(hawk_translate_slow(f.kv, fx_lid(0)), 0);
	assert_null(hawk_addr(f.kv, 0));
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 1);
	assert_int_equal(it.lid, fx_lid(0));		/* rounded to the block */
	vt = it.vt;
	assert_true(vt & HAWK_VT_VALID);
	assert_int_equal(HAWK_VT_TIER(vt), f.dram);
	assert_int_equal(hawk_translate(f.kv, fx_lid(0)), vt);
	assert_int_equal(hawk_translate(f.kv, fx_lid(0) + FX_TOKENS - 1), vt);
	assert_int_equal(hawk_translate(f.kv, fx_lid(0) + FX_TOKENS), 0);
	assert_null(hawk_addr(f.kv, vt | 0xffffffff));
	assert_int_equal(hawk_put(f.kv, &it, 1, NULL), 1);
	it = (struct hawk_item) { .lid = fx_lid(0) };
	assert_int_equal(hawk_free(f.kv, &it, 1), 1);
	assert_int_equal(hawk_translate(f.kv, fx_lid(0)), 0);
	fx_close(&f);
}

/* A block table of any length: each LID as if asked for alone, holes included. */
static void translate_batch(void **state)
{
	struct hawk_item it[40] = { 0 };
	uint64_t lid[80], vt[80];
	struct fx f;
	unsigned int i, n;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	for (i = 0; i < 40; i++)
		it[i].lid = fx_lid(2 * i);
	assert_int_equal(hawk_alloc(f.kv, it, 40, NULL), 40);
	for (i = 0; i < 80; i++)
		lid[i] = fx_lid(i) + i % FX_TOKENS;
	for (n = 0; n <= 80; n++) {
		memset(vt, 0xff, sizeof(vt));
		assert_int_equal(hawk_translate_batch(f.kv, lid, vt, n), (n + 1) / 2);
		for (i = 0; i < n; i++)
			assert_int_equal(vt[i], i % 2 ? 0 : it[i / 2].vt);
		assert_true(n == 80 || vt[n] == ~0ull);
	}
	fx_close(&f);
}

/* A pin is given back by place, also when the LID is another block's by now. */
static void unpin_by_place(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0), .arg = fx_lid(9) }, at;
	struct hawk_stats st;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 1, 1);
	assert_int_equal(hawk_fork(f.kv, &it, 1), 1);
	it = (struct hawk_item){ .lid = fx_lid(0) };
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	at = (struct hawk_item){ .vt = it.vt };
	it.vt = 0;
	assert_int_equal(hawk_unshare(f.kv, &it, 1, NULL), 1);
	assert_int_not_equal(it.vt, at.vt);
	assert_int_equal(hawk_unpin(f.kv, &at, 1), 1);
	assert_int_equal(hawk_unpin(f.kv, &at, 1), 0);
	assert_int_equal(at.status, -ESTALE);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.pinned, 1);
	at = (struct hawk_item){ .vt = ~0ull };
	assert_int_equal(hawk_unpin(f.kv, &at, 1), 0);
	assert_int_equal(at.status, -ESTALE);
	at = (struct hawk_item){ 0 };
	assert_int_equal(hawk_unpin(f.kv, &at, 1), 0);
	assert_int_equal(at.status, -ENOENT);
	at = (struct hawk_item){ .vt = it.vt };
	assert_int_equal(hawk_unpin(f.kv, &at, 1), 1);
	fx_close(&f);
}

static void pin_cost(void **state)
{
	uint64_t lid[2] = { fx_lid(0), fx_lid(1) };
	struct hawk_item it = { .lid = fx_lid(0) };
	struct hawk_pin_query q;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 2, 1);
	assert_int_equal(hawk_pin_cost(f.kv, NULL, 0, &q), -EINVAL);
	assert_int_equal(hawk_pin_cost(f.kv, NULL, HAWK_BATCH_MAX + 1, &q), -E2BIG);
	assert_ok(hawk_pin_cost(f.kv, NULL, 3, &q));
	assert_int_equal(q.need_bytes, f.dev ? 3 * FX_BLOCK : 0);
	assert_int_equal(q.limit_bytes, HAWK_NO_LIMIT);	/* the tests run as root */
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_ok(hawk_pin_cost(f.kv, lid, 2, &q));
	assert_int_equal(q.need_bytes, f.dev ? FX_BLOCK : 0);
	fx_close(&f);
}

static void export_blocks(void **state)
{
	struct hawk_item it[2] = { { .lid = fx_lid(1) }, { .lid = fx_lid(0) } };
	struct hawk_frame_info info;
	struct hawk_export x;
	struct fx f;
	void *p;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 2, 1);
	if (!f.dev) {
		assert_int_equal(hawk_export_blocks(f.kv, it, 2, 0, &x), -EOPNOTSUPP);
		assert_int_equal(x.fd, -1);
		assert_int_equal(hawk_export_end(f.kv, 1, 0), -EOPNOTSUPP);
		assert_int_equal(hawk_frame_where(f.kv, 0, &info), -EOPNOTSUPP);
		fx_close(&f);
		return;
	}
	assert_int_equal(hawk_export_blocks(f.kv, it, 0, 0, &x), -EINVAL);
	assert_int_equal(hawk_export_blocks(f.kv, it, HAWK_BATCH_MAX + 1, 0, &x), -E2BIG);
	assert_ok(hawk_export_blocks(f.kv, it, 2, HAWK_EXPORT_REVOCABLE, &x));
	assert_int_equal(x.bytes, 2 * FX_BLOCK);
	p = mmap(NULL, x.bytes, PROT_READ, MAP_SHARED, x.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(fx_is(p, 1, 1));
	assert_ok(hawk_frame_where(f.kv, it[0].vt, &info));
	assert_true(info.frames >= 1);
	assert_ok(hawk_export_end(f.kv, x.export_id, 0));
	assert_int_equal(hawk_export_end(f.kv, x.export_id, 0), -ENOENT);
	munmap(p, x.bytes);
	close(x.fd);
	fx_close(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(oversubscribed),
		cmocka_unit_test(get_batch),
		cmocka_unit_test(reload_unpinned),
		cmocka_unit_test(nowait_and_deadline),
		cmocka_unit_test(get_prefix),
		cmocka_unit_test(lookup_prefix),
		cmocka_unit_test(fork_and_unshare),
		cmocka_unit_test(pins),
		cmocka_unit_test(put_rules),
		cmocka_unit_test(translate),
		cmocka_unit_test(translate_batch),
		cmocka_unit_test(unpin_by_place),
		cmocka_unit_test(pin_cost),
		cmocka_unit_test(export_blocks),
	};

	return cmocka_run_group_tests_name("lib_blocks", tests, NULL, NULL);
}
