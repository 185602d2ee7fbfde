// SPDX-License-Identifier: MIT
/*
 * lib_spaces.c - spaces, their names, leases and ends; what calls refuse
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)

/* Same LIDs, same keys, other bytes: neither sees the other's. */
static void two_spaces(void **state)
{
	struct hawk_kv_params p;
	struct hawk_kv *other;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, 8 * MIB, 16 * MIB);
	p = fx_params(&f);
	p.quota[f.dram].max_bytes = 2 * MIB;
	assert_ok(hawk_kv_create(f.h, &p, &other));
	fx_put(other, 0, 200, 2);
	assert_int_equal(fx_get(f.kv, 0, 2), -ENOENT);
	fx_put(f.kv, 0, 600, 1);
	for (n = 0; n < 200; n++) {
		assert_int_equal(fx_get(other, n, 2), 0);
		assert_int_equal(fx_get(f.kv, n, 1), 0);
		assert_int_equal(fx_get(other, n, 1), -ENOENT);
	}
	hawk_kv_close(other);
	fx_close(&f);
}

static void wait_free(struct fx *f)
{
	struct hawk_tier_info info;

	do {
		sched_yield();
		assert_ok(hawk_tier_stat(f->h, f->dram, &info));
	} while (info.free_bytes != info.bytes);
}

/* A frame is all zero when it comes from another space. */
static void memory_is_zeroed(void **state)
{
	struct hawk_kv_params p;
	struct hawk_item it;
	unsigned char *b;
	struct fx f;
	uint32_t n, i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	fx_put(f.kv, 0, 2 * FX_CHUNK_FRAMES, 7);
	hawk_kv_close(f.kv);
	wait_free(&f);
	p = fx_params(&f);
	assert_ok(hawk_kv_create(f.h, &p, &f.kv));
	for (n = 0; n < 2 * FX_CHUNK_FRAMES; n++) {
		it = (struct hawk_item) { .lid = fx_lid(n) };
		assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 1);
		b = hawk_addr(f.kv, it.vt);
		for (i = 0; i < FX_BLOCK; i++)
			if (b[i])
				fail_msg("byte %u of block %u is of the space before", i, n);
	}
	fx_close(&f);
}

/* Pins, leases and blocks under way end with their handle. */
static void close_with_pins(void **state)
{
	struct hawk_opts lease_opt = { .flags = HAWK_BATCH_LEASE };
	struct hawk_kv_params p;
	struct hawk_kv *a, *b;
	struct hawk_item it;
	struct hawk_stats st;
	uint64_t lease;
	char name[32];
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	snprintf(name, sizeof(name), "pins-%d", getpid());
	p = fx_params(&f);
	p.quota[f.dram].max_bytes = 2 * MIB;
	p.name = name;
	p.mode = 0600;
	assert_ok(hawk_kv_create(f.h, &p, &a));
	assert_ok(hawk_kv_attach(f.h, name, &b));
	fx_put(a, 0, 10, 1);
	for (n = 10; n < FX_CHUNK_FRAMES; n++) {
		it = (struct hawk_item) { .lid = fx_lid(n) };
		assert_int_equal(hawk_alloc(a, &it, 1, NULL), 1);
	}
	it = (struct hawk_item) { .lid = fx_lid(0) };
	assert_int_equal(hawk_pin(a, &it, 1), 1);
	assert_int_equal(hawk_pin(a, &it, 1), 1);
	fx_key(&it, 1, 1);
	it.vt = 0;
	assert_int_equal(hawk_lookup(a, &it, 1, &lease_opt, &lease), 1);
	assert_true(lease != 0);
	/* another handle may not end what is not its own */
	it = (struct hawk_item) { .lid = fx_lid(0) };
	assert_int_equal(hawk_unpin(b, &it, 1), 0);
	assert_int_equal(it.status, -ESTALE);
	assert_int_equal(hawk_lease_end(b, lease), -ENOENT);
	it = (struct hawk_item) { .lid = fx_lid(10) };
	assert_int_equal(hawk_put(b, &it, 1, NULL), 0);
	assert_int_equal(it.status, -ESTALE);

	hawk_kv_close(a);
	assert_ok(hawk_kv_stats(b, &st));
	assert_int_equal(st.pinned, 0);
	assert_int_equal(st.blocks, 10);	/* those being filled are gone */
	it = (struct hawk_item) { .lid = fx_lid(1) };
	assert_int_equal(hawk_free(b, &it, 1), 1);	/* its lease too */
	assert_int_equal(fx_get(b, 0, 1), 0);
	hawk_kv_close(b);
	assert_ok(hawk_kv_destroy(f.h, name));
	fx_close(&f);
}

static void names(void **state)
{
	static const char *const bad[] = { "", "a b", "a/b", "\t", "\xc3\xa4" };
	struct hawk_kv_params p;
	struct hawk_space_info info;
	struct hawk_kv *a, *b;
	char name[HAWK_NAME_MAX + 1];
	struct fx f;
	size_t i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	p = fx_params(&f);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p.name = bad[i];
		assert_int_equal(hawk_kv_create(f.h, &p, &a), -EINVAL);
	}
	memset(name, 'n', sizeof(name));
	name[HAWK_NAME_MAX] = 0;
	p.name = name;
	assert_int_equal(hawk_kv_create(f.h, &p, &a), -EINVAL);
	snprintf(name, sizeof(name), "name-%d", getpid());
	p.mode = 01000;
	assert_int_equal(hawk_kv_create(f.h, &p, &a), -EINVAL);
	p.mode = 0600;
	assert_int_equal(hawk_kv_attach(f.h, name, &b), -ENOENT);
	assert_ok(hawk_kv_create(f.h, &p, &a));
	assert_int_equal(hawk_kv_create(f.h, &p, &b), -EEXIST);
	fx_put(a, 0, 3, 1);
	hawk_kv_close(a);			/* it survives its creator */
	assert_ok(hawk_kv_attach(f.h, name, &b));
	assert_int_equal(fx_get(b, 2, 1), 0);
	assert_ok(hawk_kv_info(b, &info));
	assert_string_equal((char *)info.name, name);
	assert_int_equal(info.block_bytes, FX_BLOCK);
	assert_int_equal(info.buckets, 1);
	assert_int_equal(info.layers, FX_LAYERS);
	assert_ok(hawk_kv_destroy(f.h, name));
	assert_int_equal(hawk_kv_destroy(f.h, name), -ENOENT);
	assert_int_equal(hawk_kv_attach(f.h, name, &a), -ENOENT);
	assert_int_equal(fx_get(b, 1, 1), 0);	/* until the last one has gone */
	hawk_kv_close(b);
	fx_close(&f);
}

/* Leased blocks stay when the rest is dropped for want of room. */
static void lease_keeps(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_LEASE };
	uint32_t frames = FX_CHUNK_FRAMES, n;
	struct hawk_item it[8] = { 0 };
	struct fx f;
	uint64_t lease;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, frames, 1);
	for (n = 0; n < 8; n++)
		fx_key(&it[n], n, 1);
	assert_int_equal(hawk_lookup(f.kv, it, 8, &o, NULL), -EINVAL);
	assert_int_equal(hawk_lookup(f.kv, it, 8, &o, &lease), 8);
	assert_true(lease != 0);
	it[0] = (struct hawk_item) { .lid = fx_lid(0) };
	assert_int_equal(hawk_free(f.kv, it, 1), 0);
	assert_int_equal(it[0].status, -EBUSY);
	fx_put(f.kv, frames, 3 * frames, 1);
	for (n = 0; n < 8; n++)
		assert_int_equal(fx_get(f.kv, n, 1), 0);
	assert_int_equal(fx_get(f.kv, 8, 1), -ENOENT);
	assert_ok(hawk_lease_end(f.kv, lease));
	assert_int_equal(hawk_lease_end(f.kv, lease), -ENOENT);
	fx_put(f.kv, 4 * frames, frames, 1);
	for (n = 0; n < 8; n++)
		assert_int_equal(fx_get(f.kv, n, 1), -ENOENT);
	fx_close(&f);
}

static void lease_expires(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_LEASE };
	struct hawk_item it = { 0 }, block = { .lid = fx_lid(0) };
	uint64_t first, second;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 1, 1);
	fx_key(&it, 0, 1);
	o.deadline_ns = 1;			/* has passed */
	assert_int_equal(hawk_lookup(f.kv, &it, 1, &o, &first), -EINVAL);
	o.deadline_ns = fx_now() + HAWK_LEASE_MAX_NS + 1000000000u;
	assert_int_equal(hawk_lookup(f.kv, &it, 1, &o, &first), -EINVAL);
	o.deadline_ns = fx_now() + 60000000000u;
	assert_int_equal(hawk_lookup(f.kv, &it, 1, &o, &first), 1);
	o.deadline_ns = fx_now() + 50000000u;
	assert_int_equal(hawk_lookup(f.kv, &it, 1, &o, &second), 1);
	assert_ok(hawk_lease_end(f.kv, first));
	while (!hawk_free(f.kv, &block, 1)) {	/* nobody ends the second one */
		assert_int_equal(block.status, -EBUSY);
		sched_yield();
	}
	assert_true(fx_now() >= o.deadline_ns);
	assert_int_equal(hawk_lease_end(f.kv, second), -ENOENT);
	fx_close(&f);
}

/* What was left to the device is told as it is. */
static void default_buckets(void **state)
{
	struct hawk_kv_params p;
	struct hawk_space_info info;
	struct hawk_kv *kv;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	p = fx_params(&f);
	p.buckets = 0;
	assert_ok(hawk_kv_create(f.h, &p, &kv));
	assert_ok(hawk_kv_info(kv, &info));
	assert_int_equal(info.buckets, 64);
	hawk_kv_close(kv);
	fx_close(&f);
}

static void space_refusals(void **state)
{
	struct hawk_kv_params good, p;
	struct hawk_kv *kv;
	struct fx f;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	good = fx_params(&f);
#define REFUSED(member, value, err) do {				\
		p = good;						\
		p.member = (value);					\
		assert_int_equal(hawk_kv_create(f.h, &p, &kv), err);	\
		assert_null(kv);					\
	} while (0)
	REFUSED(block_bytes, 0, -EINVAL);
	REFUSED(block_bytes, 5000, -EINVAL);
	REFUSED(block_bytes, 4u << 20, -EINVAL);
	REFUSED(block_tokens, 0, -EINVAL);
	REFUSED(block_tokens, 65537, -EINVAL);
	REFUSED(layers, 0, -EINVAL);
	REFUSED(layers, 257, -EINVAL);
	REFUSED(head_groups, 0, -EINVAL);
	REFUSED(head_groups, 17, -EINVAL);
	REFUSED(max_blocks, 0, -EINVAL);
	REFUSED(max_blocks, HAWK_BLOCKS_MAX + 1, -EINVAL);
	REFUSED(buckets, 3, -EINVAL);
	REFUSED(buckets, 1024, -EINVAL);
	REFUSED(mode, 0600, -EINVAL);
	REFUSED(quota[f.dram].min_bytes, 2ull << 40, -EINVAL);
	REFUSED(quota[f.dram].min_bytes, 8 * MIB, -ENOSPC);
	REFUSED(quota[7].max_bytes, MIB, -ENOENT);
#undef REFUSED
	fx_close(&f);
}

static int one(int (*call)(struct hawk_kv *, struct hawk_item *, unsigned int), struct fx *f,
	       struct hawk_item it)
{
	assert_int_equal(call(f->kv, &it, 1), 0);
	return it.status;
}

/* Hints go with ALLOC and PUT, and not against each other. */
static void hints(void **state)
{
	uint8_t parent[HAWK_KEY_BYTES] = { 7 };
	struct hawk_item it = { .lid = fx_lid(0), .flags = HAWK_ITEM_PARENT };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	assert_int_equal(one(hawk_pin, &f, (struct hawk_item) { .flags = HAWK_ITEM_TAIL }),
			 -EOPNOTSUPP);
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -EINVAL);		/* where is it? */
	it.arg = (uintptr_t)parent;
	it.flags = HAWK_ITEM_PARENT | HAWK_ITEM_ROOT;
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -EINVAL);
	it.flags = HAWK_ITEM_PARENT | HAWK_ITEM_TAIL | HAWK_ITEM_TURN(65535);
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 1);
	it = (struct hawk_item) { .lid = fx_lid(0), .arg = (uintptr_t)parent };
	assert_int_equal(hawk_put(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -EINVAL);		/* what for? */
	it.arg = 0;
	it.flags = HAWK_ITEM_TRANSIENT | HAWK_ITEM_PERSIST;
	assert_int_equal(hawk_put(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -EINVAL);
	it.flags = HAWK_ITEM_ROOT | HAWK_ITEM_PERSIST | HAWK_ITEM_TURN(1);
	assert_int_equal(hawk_put(f.kv, &it, 1, NULL), 1);
	fx_close(&f);
}

static void batch_refusals(void **state)
{
	struct hawk_item *it = calloc(HAWK_BATCH_MAX + 1, sizeof(*it));
	struct hawk_opts o = { 0 };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	assert_int_equal(hawk_free(f.kv, it, 0), -EINVAL);
	assert_int_equal(hawk_free(f.kv, it, HAWK_BATCH_MAX + 1), -E2BIG);
	assert_int_equal(hawk_free(f.kv, NULL, 1), -EFAULT);
	o.flags = 1u << 31;
	assert_int_equal(hawk_alloc(f.kv, it, 1, &o), -EOPNOTSUPP);
	o.flags = HAWK_BATCH_KEEP_PIN;
	assert_int_equal(hawk_get(f.kv, it, 1, &o, NULL), -EOPNOTSUPP);
	o.flags = HAWK_BATCH_ASYNC;		/* no ring */
	assert_int_equal(hawk_get(f.kv, it, 1, &o, NULL), -EINVAL);
	assert_int_equal(hawk_put(f.kv, it, 1, &o), -EOPNOTSUPP);
	o = (struct hawk_opts) { .deadline_ns = 1 };
	assert_int_equal(hawk_put(f.kv, it, 1, &o), -EINVAL);
	o = (struct hawk_opts) { .deadline_ns = UINT64_MAX };
	assert_int_equal(hawk_alloc(f.kv, it, 1, &o), -EINVAL);
	o = (struct hawk_opts) { .tier = 8 };	/* tier 7 is not there */
	assert_int_equal(hawk_alloc(f.kv, it, 1, &o), -EINVAL);
	o.tier = 100;
	assert_int_equal(hawk_alloc(f.kv, it, 1, &o), -EINVAL);

	assert_int_equal(one(hawk_pin, &f, (struct hawk_item) { .lid = 1 }), -ENOENT);
	assert_int_equal(one(hawk_pin, &f, (struct hawk_item) { .arg = 1 }), -EINVAL);
	assert_int_equal(one(hawk_pin, &f, (struct hawk_item) { .flags = HAWK_ITEM_BY_KEY }),
			 -EOPNOTSUPP);
	assert_int_equal(one(hawk_free, &f, (struct hawk_item) { .flags = HAWK_ITEM_BY_KEY }),
			 -EINVAL);		/* no key */
	it[0] = (struct hawk_item) { .lid = HAWK_LID(0, 0, 0, 0) };
	it[1] = (struct hawk_item) { .lid = HAWK_LID(1, FX_LAYERS, 0, 0) };
	it[2] = (struct hawk_item) { .lid = HAWK_LID(1, 0, 2, 0) };
	it[3] = (struct hawk_item) { .lid = fx_lid(0), .arg = 1 };
	it[4] = (struct hawk_item) { .lid = fx_lid(1), .flags = 1u << 15 };
	it[5] = (struct hawk_item) { .lid = fx_lid(2) };
	assert_int_equal(hawk_alloc(f.kv, it, 6, NULL), 1);
	assert_int_equal(it[0].status, -EINVAL);
	assert_int_equal(it[1].status, -EINVAL);
	assert_int_equal(it[2].status, -EINVAL);
	assert_int_equal(it[3].status, -EINVAL);
	assert_int_equal(it[4].status, -EOPNOTSUPP);
	assert_int_equal(it[5].status, 0);
	free(it);
	fx_close(&f);
}

/* Memory that another space gave back takes reloaded blocks: they can be read there. */
static void reload_into_new_chunk(void **state)
{
	struct hawk_kv_params p;
	struct hawk_tier_info info;
	struct hawk_item it;
	struct hawk_kv *other;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, 4 * MIB, 8 * MIB);
	p = fx_params(&f);
	p.quota[f.dram].max_bytes = 2 * MIB;
	assert_ok(hawk_kv_create(f.h, &p, &other));
	fx_put(other, 0, 1, 2);
	fx_put(f.kv, 0, 2 * FX_CHUNK_FRAMES, 1);
	hawk_kv_close(other);
	do
		assert_ok(hawk_tier_stat(f.h, f.dram, &info));
	while (info.free_bytes != 2 * MIB);
	for (n = 0; n < FX_CHUNK_FRAMES; n++) {
		it = (struct hawk_item) { .lid = fx_lid(n) };
		assert_int_equal(hawk_reload(f.kv, &it, 1, NULL), 1);
		assert_true(fx_is(hawk_addr(f.kv, hawk_translate_slow(f.kv, it.lid)), n, 1));
	}
	fx_close(&f);
}

/* A closed space holds no memory, whatever was being written ahead for it. */
static void tier_goes_after_space(void **state)
{
	struct hawk_kv_params p;
	unsigned int tier;
	struct fx f;
	int round;

	(void)state;
	fx_open(&f, 4 * MIB, 16 * MIB);
	for (round = 0; round < 20; round++) {
		hawk_kv_close(f.kv);
		assert_ok(hawk_tier_add_host(f.h, -1, 4 * MIB, &tier));
		p = fx_params(&f);
		p.quota[f.dram].max_bytes = 0;
		p.quota[tier].max_bytes = 4 * MIB;
		assert_ok(hawk_kv_create(f.h, &p, &f.kv));
		fx_put(f.kv, 0, 4 * FX_CHUNK_FRAMES, 1);
		assert_int_equal(hawk_tier_del(f.h, tier), -EBUSY);
		hawk_kv_close(f.kv);
		assert_ok(hawk_tier_del(f.h, tier));
		p = fx_params(&f);
		assert_ok(hawk_kv_create(f.h, &p, &f.kv));
	}
	fx_close(&f);
}

static void device_queries(void **state)
{
	struct hawk_tier_info info;
	struct hawk_query q;
	struct fx f;

	(void)state;
	fx_open(&f, 5 * MIB, 0);
	assert_ok(hawk_device_query(f.h, &q));
	assert_int_equal(q.abi_version, HAWK_ABI_VERSION);
	assert_int_equal(q.batch_max, HAWK_BATCH_MAX);
	assert_int_equal(q.chunk_bytes, HAWK_CHUNK_BYTES);
	assert_true(q.tiers & 1u << f.dram);
	assert_ok(hawk_tier_stat(f.h, f.dram, &info));
	assert_int_equal(info.bytes, 4 * MIB);	/* whole chunks */
	assert_int_equal(info.kind, HAWK_TIER_HOST);
	assert_int_equal(hawk_tier_stat(f.h, 7, &info), -ENOENT);
	assert_int_equal(hawk_tier_del(f.h, 7), -ENOENT);
	fx_put(f.kv, 0, 1, 1);
	assert_int_equal(hawk_tier_del(f.h, f.dram), -EBUSY);
	fx_close(&f);
}

static void change(void **state)
{
	struct hawk_kv_params p;
	struct hawk_kv *kv;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	p = fx_params(&f);
	p.idle_ns = 1;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);	/* no name */
	p.name = "change";
	p.mode = 0600;
	p.idle_ns = 3600000000000;
	if (!f.dev) {
		assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EOPNOTSUPP);
		p.idle_ns = 0;
	}
	assert_ok(hawk_kv_create(f.h, &p, &kv));
	assert_int_equal(hawk_kv_set(f.h, "change", 0, 0, 0), -EINVAL);
	assert_int_equal(hawk_kv_set(f.h, "change", 1u << 9, 0, 0), -EOPNOTSUPP);
	assert_int_equal(hawk_kv_set(f.h, "change", HAWK_SPACE_SET_IDLE, 0600, 0), -EINVAL);
	assert_int_equal(hawk_kv_set(f.h, "change", HAWK_SPACE_SET_MODE, 0700, 0), -EINVAL);
	assert_int_equal(hawk_kv_set(f.h, "change", HAWK_SPACE_SET_MODE, 0600, 1), -EINVAL);
	assert_int_equal(hawk_kv_set(f.h, "no-such", HAWK_SPACE_SET_MODE, 0600, 0), -ENOENT);
	assert_ok(hawk_kv_set(f.h, "change", HAWK_SPACE_SET_MODE, 0666, 0));
	assert_int_equal(hawk_kv_set(f.h, "change", HAWK_SPACE_SET_IDLE, 0, 1),
			 f.dev ? 0 : -EOPNOTSUPP);
	hawk_kv_close(kv);
	if (!f.dev)
		assert_ok(hawk_kv_destroy(f.h, "change"));
	else	/* its idle time is over at once: it goes by itself */
		while (hawk_kv_set(f.h, "change", HAWK_SPACE_SET_MODE, 0600, 0) != -ENOENT)
			;
	fx_close(&f);
}

/* A private space through a second descriptor, with pins of its own. */
static void attach_by_descriptor(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0) };
	struct hawk_stats st;
	struct hawk_kv *kv;
	struct fx f;
	int fd;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fd = hawk_kv_fd(f.kv);
	assert_int_equal(hawk_kv_attach_fd(f.h, -1, &kv), -EBADF);
	if (!f.dev) {
		assert_int_equal(fd, -EOPNOTSUPP);
		assert_int_equal(hawk_kv_attach_fd(f.h, 0, &kv), -EOPNOTSUPP);
		fx_close(&f);
		return;
	}
	assert_int_equal(hawk_kv_attach_fd(f.h, 1, &kv), -EBADF);
	fx_put(f.kv, 0, 1, 1);
	assert_ok(hawk_kv_attach_fd(f.h, fd, &kv));
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_int_equal(fx_get(kv, 0, 1), 0);
	it.vt = 0;
	assert_int_equal(hawk_unpin(kv, &it, 1), 0);
	assert_int_equal(it.status, -ESTALE);
	hawk_kv_close(f.kv);
	assert_ok(hawk_kv_stats(kv, &st));
	assert_int_equal(st.pinned, 0);
	assert_int_equal(fx_get(kv, 0, 1), 0);
	f.kv = kv;
	fx_close(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints),
		cmocka_unit_test(two_spaces),
		cmocka_unit_test(memory_is_zeroed),
		cmocka_unit_test(close_with_pins),
		cmocka_unit_test(names),
		cmocka_unit_test(lease_keeps),
		cmocka_unit_test(lease_expires),
		cmocka_unit_test(default_buckets),
		cmocka_unit_test(space_refusals),
		cmocka_unit_test(batch_refusals),
		cmocka_unit_test(reload_into_new_chunk),
		cmocka_unit_test(tier_goes_after_space),
		cmocka_unit_test(device_queries),
		cmocka_unit_test(change),
		cmocka_unit_test(attach_by_descriptor),
	};

	return cmocka_run_group_tests_name("lib_spaces", tests, NULL, NULL);
}
