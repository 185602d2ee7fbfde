// SPDX-License-Identifier: MIT
/*
 * lib_share.c - spaces that want more than there is get equal shares, and each its minimum
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "libfixture.h"

#define MIB	(1ull << 20)
#define CHUNKS	4u		/* of DRAM */
#define FRAMES	(CHUNKS * FX_CHUNK_FRAMES)

static uint64_t chunks(struct hawk_kv *kv, unsigned int tier)
{
	struct hawk_stats st;

	assert_ok(hawk_kv_stats(kv, &st));
	return st.chunks[tier];
}

static bool all_zero(const unsigned char *b)
{
	uint32_t i;

	for (i = 0; i < FX_BLOCK; i++)
		if (b[i])
			return false;
	return true;
}

/* One more block; a frame that this space has never had before holds zeroes. */
static void put_new(struct hawk_kv *kv, uint32_t n, bool seen[FRAMES])
{
	struct hawk_item it = { .lid = fx_lid(n) };
	uint32_t frame;

	assert_int_equal(hawk_alloc(kv, &it, 1, NULL), 1);
	frame = HAWK_VT_FRAME(it.vt);
	assert_in_range(frame, 0, FRAMES - 1);
	if (!seen[frame])
		assert_true(all_zero(hawk_addr(kv, it.vt)));
	seen[frame] = true;
	fx_fill(hawk_addr(kv, it.vt), n, 2);
	fx_key(&it, n, 2);
	assert_int_equal(hawk_put(kv, &it, 1, NULL), 1);
}

/* All blocks of both have a place on flash: nothing is lost on the way. */
static void late_comer(void **state)
{
	bool seen[FRAMES] = { false };
	struct hawk_kv_params p;
	struct hawk_kv *late;
	uint32_t n, put = 0;
	struct fx f;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	fx_put(f.kv, 0, FRAMES, 1);
	assert_int_equal(chunks(f.kv, f.dram), CHUNKS);
	p = fx_params(&f);
	assert_ok(hawk_kv_create(f.h, &p, &late));
	while (chunks(late, f.dram) < CHUNKS / 2) {
		if (put < FRAMES)
			put_new(late, put++, seen);
		else
			assert_int_equal(fx_get(late, put++ % FRAMES, 2), 0);
		sched_yield();
	}
	assert_int_equal(chunks(f.kv, f.dram), CHUNKS / 2);
	for (n = put < FRAMES ? put : FRAMES; n < FRAMES; n++)
		put_new(late, n, seen);
	for (n = 0; n < FRAMES; n++) {
		assert_int_equal(fx_get(f.kv, n, 1), 0);
		assert_int_equal(fx_get(late, n, 2), 0);
	}
	assert_int_equal(chunks(f.kv, f.dram), CHUNKS / 2);
	hawk_kv_close(late);
	fx_close(&f);
}

/* Who has nothing at all gets a chunk at once, though nothing can be evicted for it. */
static void from_nothing(void **state)
{
	struct hawk_kv_params p;
	struct hawk_kv *late;
	struct hawk_item it = { .lid = fx_lid(0) };
	struct fx f;
	uint32_t n, left = 0;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 0);
	fx_put(f.kv, 0, FRAMES, 1);
	p = fx_params(&f);
	assert_ok(hawk_kv_create(f.h, &p, &late));
	assert_int_equal(hawk_alloc(late, &it, 1, NULL), 1);
	assert_true(all_zero(hawk_addr(late, it.vt)));
	/* a quarter of the other's blocks is lost, the rest is right */
	for (n = 0; n < FRAMES; n++)
		left += !fx_get(f.kv, n, 1);
	assert_int_equal(left, FRAMES - FX_CHUNK_FRAMES);
	hawk_kv_close(late);
	fx_close(&f);
}

/* All frames are in use, and a block of each chunk is pinned. */
static void pin_each_chunk(struct fx *f, struct hawk_item *it)
{
	uint32_t n;

	fx_put(f->kv, 0, FRAMES, 1);
	for (n = 0; n < CHUNKS; n++)
		it[n] = (struct hawk_item) { .lid = fx_lid(n * FX_CHUNK_FRAMES) };
	assert_int_equal(hawk_pin(f->kv, it, CHUNKS), CHUNKS);
}

/* What is pinned is not taken, and who cannot get anything is told so. */
static void pinned(void **state)
{
	struct hawk_item it[CHUNKS], one = { .lid = fx_lid(0) };
	struct hawk_kv_params p;
	struct hawk_kv *late;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 0);
	pin_each_chunk(&f, it);
	p = fx_params(&f);
	assert_ok(hawk_kv_create(f.h, &p, &late));
	assert_int_equal(hawk_alloc(late, &one, 1, NULL), 0);
	assert_int_equal(one.status, -ENOSPC);
	for (n = 0; n < CHUNKS; n++)
		assert_true(fx_is(hawk_addr(f.kv, it[n].vt), n * FX_CHUNK_FRAMES, 1));
	assert_int_equal(hawk_unpin(f.kv, it, CHUNKS), CHUNKS);
	assert_int_equal(hawk_alloc(late, &one, 1, NULL), 1);
	hawk_kv_close(late);
	fx_close(&f);
}

/* ---- a minimum is a promise, whoever has the memory now ---- */

/* Like the fixture's space, with so many chunks of DRAM as its minimum. */
static struct hawk_kv_params with_min(const struct fx *f, uint32_t min)
{
	struct hawk_kv_params p = fx_params(f);

	p.quota_all = false;
	p.quota[f->dram].min_bytes = min * 2 * MIB;
	p.quota[f->dram].max_bytes = CHUNKS * 2 * MIB;
	if (f->has_flash)
		p.quota[f->flash].max_bytes = 32 * MIB;
	return p;
}

/* All memory is lent to another: creation takes it back, and nothing is lost by that. */
static void lent_minimum(void **state)
{
	bool seen[FRAMES] = { false };
	struct hawk_kv_params p;
	struct hawk_stats st;
	struct hawk_kv *late;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	fx_put(f.kv, 0, FRAMES, 1);
	p = with_min(&f, CHUNKS - 1);
	assert_ok(hawk_kv_create(f.h, &p, &late));
	assert_int_equal(chunks(f.kv, f.dram), 1);
	/* the other is busy, and gets none of it */
	for (n = 0; n < FRAMES; n++)
		assert_int_equal(fx_get(f.kv, n, 1), 0);
	assert_int_equal(chunks(f.kv, f.dram), 1);
	for (n = 0; n < (CHUNKS - 1) * FX_CHUNK_FRAMES; n++)
		put_new(late, n, seen);
	assert_ok(hawk_kv_stats(late, &st));
	assert_int_equal(st.chunks[f.dram], CHUNKS - 1);
	assert_int_equal(st.resident, n);
	hawk_kv_close(late);
	fx_close(&f);
}

/* The minima of all decide, at once, and not what is free. */
static void minima_add_up(void **state)
{
	struct hawk_kv_params p;
	struct hawk_kv *kv[2];
	struct fx f;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 0);
	p = with_min(&f, CHUNKS - 1);
	assert_ok(hawk_kv_create(f.h, &p, &kv[0]));
	p = with_min(&f, 2);
	assert_int_equal(hawk_kv_create(f.h, &p, &kv[1]), -ENOSPC);
	assert_non_null(strstr(hawk_strerror_last(), "minima"));
	p = with_min(&f, 1);
	assert_ok(hawk_kv_create(f.h, &p, &kv[1]));
	hawk_kv_close(kv[1]);
	hawk_kv_close(kv[0]);
	p = with_min(&f, CHUNKS);
	assert_ok(hawk_kv_create(f.h, &p, &kv[0]));
	hawk_kv_close(kv[0]);
	fx_close(&f);
}

/* Who has it pinned keeps it; nothing is left of the space that was not made. */
static void pinned_minimum(void **state)
{
	struct hawk_item it[CHUNKS];
	struct hawk_kv_params p;
	struct hawk_kv *late;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 0);
	pin_each_chunk(&f, it);
	p = with_min(&f, 1);
	p.name = "late";
	assert_int_equal(hawk_kv_create(f.h, &p, &late), -ENOSPC);
	assert_non_null(strstr(hawk_strerror_last(), "2 MiB"));
	assert_int_equal(hawk_kv_attach(f.h, "late", &late), -ENOENT);
	for (n = 0; n < FRAMES; n++)
		assert_int_equal(fx_get(f.kv, n, 1), 0);
	assert_int_equal(chunks(f.kv, f.dram), CHUNKS);
	/* one of them is enough */
	assert_int_equal(hawk_unpin(f.kv, it, 1), 1);
	assert_ok(hawk_kv_create(f.h, &p, &late));
	assert_int_equal(chunks(f.kv, f.dram), CHUNKS - 1);
	hawk_kv_close(late);
	assert_ok(hawk_kv_destroy(f.h, "late"));
	assert_int_equal(hawk_unpin(f.kv, it + 1, CHUNKS - 1), CHUNKS - 1);
	fx_close(&f);
}

/*
 * Many chunks, of which all but the last have a leased block: that one is taken, though
 * it has more blocks and warmer ones.
 */
static void one_of_many(void **state)
{
	const uint32_t n_chunks = 100;
	struct hawk_opts o = { .flags = HAWK_BATCH_LEASE, .deadline_ns = fx_now() + 600000000000ull };
	struct hawk_item it, chain[100] = { 0 };
	struct hawk_kv_params p;
	uint32_t i, leased = 0;
	struct hawk_kv *kv, *late;
	uint64_t lease;
	struct fx f;

	(void)state;
	fx_open(&f, n_chunks * 2 * MIB, 0);
	p = fx_params(&f);
	p.block_bytes = MIB;
	p.max_blocks = 2 * n_chunks;
	assert_ok(hawk_kv_create(f.h, &p, &kv));
	for (i = 0; i < 2 * n_chunks; i++) {
		it = (struct hawk_item) { .lid = fx_lid(i) };
		assert_int_equal(hawk_alloc(kv, &it, 1, NULL), 1);
		fx_key(&it, i, 1);
		if (HAWK_VT_FRAME(it.vt) % 2 && HAWK_VT_FRAME(it.vt) / 2 < n_chunks - 1)
			memcpy(chain[leased++].key, it.key, sizeof(it.key));
		assert_int_equal(hawk_put(kv, &it, 1, NULL), 1);
	}
	assert_int_equal(leased, n_chunks - 1);
	assert_int_equal(hawk_lookup(kv, chain, leased, &o, &lease), leased);
	for (i = 0; i < 2 * n_chunks; i++) {
		it = (struct hawk_item) { .lid = fx_lid(i) };
		assert_int_equal(hawk_pin(kv, &it, 1), 1);
		assert_int_equal(hawk_unpin(kv, &it, 1), 1);
		if (HAWK_VT_FRAME(it.vt) % 2 == 0 && HAWK_VT_FRAME(it.vt) / 2 < n_chunks - 1)
			assert_int_equal(hawk_free(kv, &it, 1), 1);
	}
	p = with_min(&f, 1);
	assert_ok(hawk_kv_create(f.h, &p, &late));
	assert_int_equal(chunks(kv, f.dram), n_chunks - 1);
	assert_int_equal(hawk_lookup(kv, chain, leased, NULL, NULL), leased);
	assert_ok(hawk_lease_end(kv, lease));
	hawk_kv_close(late);
	hawk_kv_close(kv);
	fx_close(&f);
}

struct creator {
	pthread_t thread;
	struct fx *f;
	struct hawk_kv_params p;
	struct hawk_kv *kv;
	int ret;
};

static void *create(void *arg)
{
	struct creator *c = arg;

	c->ret = hawk_kv_create(c->f->h, &c->p, &c->kv);
	return NULL;
}

/* Two at once, of all that is lent: return how many were made, and close them. */
static uint32_t create_two(struct fx *f, uint32_t min, const char *name, int refusal)
{
	struct creator c[2];
	uint32_t i, made = 0;

	for (i = 0; i < 2; i++) {
		c[i] = (struct creator) { .f = f, .p = with_min(f, min) };
		c[i].p.name = name;
		assert_int_equal(pthread_create(&c[i].thread, NULL, create, &c[i]), 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_join(c[i].thread, NULL), 0);
	for (i = 0; i < 2; i++) {
		assert_true(!c[i].ret || c[i].ret == refusal);
		made += !c[i].ret;
	}
	for (i = 0; i < 2; i++)
		if (!c[i].ret) {
			fx_put(c[i].kv, 0, min * FX_CHUNK_FRAMES, 5);
			hawk_kv_close(c[i].kv);
		}
	if (name)
		assert_ok(hawk_kv_destroy(f->h, name));
	return made;
}

/* Each has all of its minimum or nothing, and not both half of it. */
static void two_creators(void **state)
{
	uint32_t round, n;
	struct fx f;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	for (round = 0; round < 10; round++) {
		fx_put(f.kv, 0, FRAMES, 1);
		assert_int_equal(create_two(&f, CHUNKS / 2, NULL, 0), 2);
		assert_int_equal(create_two(&f, CHUNKS - 1, NULL, -ENOSPC), 1);
		assert_int_equal(create_two(&f, CHUNKS / 2, "twin", -EEXIST), 1);
		for (n = 0; n < FRAMES; n++) {
			struct hawk_item it = { .lid = fx_lid(n) };

			assert_int_equal(fx_get(f.kv, n, 1), 0);
			assert_int_equal(hawk_free(f.kv, &it, 1), 1);
		}
	}
	fx_close(&f);
}

struct comer {
	pthread_t thread;
	struct fx *f;
	bool stop;	/* atomic */
};

/* Makes and ends spaces whose minimum is lent. */
static void *come(void *arg)
{
	struct comer *c = arg;
	struct hawk_kv_params p = with_min(c->f, 1);
	struct hawk_kv *kv;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		assert_ok(hawk_kv_create(c->f->h, &p, &kv));
		hawk_kv_close(kv);
	}
	return NULL;
}

/*
 * A space without chunks asks for one while new spaces get theirs: there is one for it,
 * of which it waits its turn.
 */
static void from_nothing_in_turn(void **state)
{
	struct hawk_item it;
	struct hawk_kv_params p;
	struct comer c[2];
	struct hawk_kv *late;
	uint32_t round, n, i;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * CHUNKS * 2 * MIB, 32 * MIB);
	fx_put(f.kv, 0, 2 * FRAMES, 1);
	for (i = 0; i < 2; i++) {
		c[i] = (struct comer) { .f = &f };
		assert_int_equal(pthread_create(&c[i].thread, NULL, come, &c[i]), 0);
	}
	p = fx_params(&f);
	for (round = 0; round < 50; round++) {
		assert_ok(hawk_kv_create(f.h, &p, &late));
		it = (struct hawk_item) { .lid = fx_lid(0) };
		if (hawk_alloc(late, &it, 1, NULL) != 1)
			fail_msg("round %u: %d", round, it.status);
		hawk_kv_close(late);
		/* all memory is lent again */
		for (n = 0; n < 2 * FRAMES; n++)
			assert_int_equal(fx_get(f.kv, n, 1), 0);
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&c[i].stop, true, __ATOMIC_RELAXED);
		assert_int_equal(pthread_join(c[i].thread, NULL), 0);
	}
	fx_close(&f);
}

/* Who has what is taken back may end just then. */
static void donor_ends(void **state)
{
	struct hawk_kv_params p;
	struct hawk_kv *donor;
	struct creator c;
	struct fx f;
	uint32_t round;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	for (round = 0; round < 20; round++) {
		p = with_min(&f, 0);
		assert_ok(hawk_kv_create(f.h, &p, &donor));
		fx_put(donor, 0, FRAMES, 1);
		c = (struct creator) { .f = &f, .p = with_min(&f, CHUNKS) };
		assert_int_equal(pthread_create(&c.thread, NULL, create, &c), 0);
		if (round % 2)
			sched_yield();
		hawk_kv_close(donor);
		assert_int_equal(pthread_join(c.thread, NULL), 0);
		assert_int_equal(c.ret, 0);
		fx_put(c.kv, 0, FRAMES, 2);
		hawk_kv_close(c.kv);
	}
	fx_close(&f);
}

/* ---- tiers that go ---- */

static void host_tier_goes(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0) };
	struct hawk_tier_info info;
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	fx_put(f.kv, 0, FRAMES, 1);
	assert_int_equal(hawk_tier_del(f.h, f.dram), -EBUSY);
	assert_int_equal(hawk_tier_del_force(f.h, 7), -ENOENT);
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_int_equal(hawk_tier_del_force(f.h, f.dram), -EBUSY);
	assert_true(fx_is(hawk_addr(f.kv, it.vt), 0, 1));
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	assert_ok(hawk_tier_del_force(f.h, f.dram));
	assert_int_equal(hawk_tier_stat(f.h, f.dram, &info), -ENOENT);
	/* all of it is on flash, where nobody can use it */
	for (n = 0; n < FRAMES; n++)
		assert_int_equal(fx_get(f.kv, n, 1), -ENOSPC);
	it = (struct hawk_item) { .lid = fx_lid(FRAMES) };
	assert_int_equal(hawk_alloc(f.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -ENOSPC);
	/* new memory is for new spaces */
	hawk_kv_close(f.kv);
	assert_ok(hawk_tier_add_host(f.h, -1, CHUNKS * 2 * MIB, &f.dram));
	{
		struct hawk_kv_params p = fx_params(&f);

		assert_ok(hawk_kv_create(f.h, &p, &f.kv));
	}
	fx_put(f.kv, 0, FRAMES, 2);
	assert_int_equal(fx_get(f.kv, 0, 2), 0);
	fx_close(&f);
}

/* A removal that was refused is taken back. */
static void host_tier_stays(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0) };
	struct fx f;
	uint32_t n;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	fx_put(f.kv, 0, FRAMES, 1);
	assert_int_equal(hawk_tier_reopen(f.h, 7), -ENOENT);
	assert_ok(hawk_tier_reopen(f.h, f.dram));
	assert_int_equal(hawk_pin(f.kv, &it, 1), 1);
	assert_int_equal(hawk_tier_del_force(f.h, f.dram), -EBUSY);
	fx_put(f.kv, FRAMES, FX_CHUNK_FRAMES, 1);
	assert_int_equal(chunks(f.kv, f.dram), 1);
	assert_ok(hawk_tier_reopen(f.h, f.dram));
	for (n = 0; n < FRAMES; n++)
		assert_int_equal(fx_get(f.kv, n, 1), 0);
	assert_int_equal(chunks(f.kv, f.dram), CHUNKS);
	assert_int_equal(hawk_unpin(f.kv, &it, 1), 1);
	fx_close(&f);
}

static void flash_goes(void **state)
{
	uint32_t n, left = 0;
	struct fx f;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 32 * MIB);
	fx_put(f.kv, 0, FRAMES + 8, 1);
	for (n = FRAMES; n < FRAMES + 4; n++) {
		struct hawk_item it = { .lid = fx_lid(n) };

		assert_int_equal(hawk_free(f.kv, &it, 1), 1);
	}
	assert_ok(hawk_tier_del_force(f.h, f.flash));
	f.has_flash = false;
	/* some 8 were on flash only, for 4 of them there was a place */
	for (n = 0; n < FRAMES + 8; n++)
		left += !fx_get(f.kv, n, 1);
	assert_int_equal(left, FRAMES);
	fx_close(&f);
}

/* ---- several spaces, one of which comes and goes ---- */

#define USERS	3
#define ROUNDS	20

struct user {
	pthread_t thread;
	struct fx *f;
	uint32_t salt;
};

/* Others may have all memory pinned, or on its way. */
static void put_patiently(struct hawk_kv *kv, uint32_t n, uint32_t salt)
{
	struct hawk_item it;

	for (;;) {
		it = (struct hawk_item) { .lid = fx_lid(n) };
		if (hawk_alloc(kv, &it, 1, NULL) == 1)
			break;
		assert_true(it.status == -ENOSPC || it.status == -EAGAIN);
		sched_yield();
	}
	fx_fill(hawk_addr(kv, it.vt), n, salt);
	fx_key(&it, n, salt);
	assert_int_equal(hawk_put(kv, &it, 1, NULL), 1);
}

/* Puts more than fits and reads it back: right, or gone. */
static void round_of(struct hawk_kv *kv, uint32_t salt)
{
	uint32_t n;
	int ret;

	for (n = 0; n < FRAMES / 2; n++)
		put_patiently(kv, n, salt);
	for (n = 0; n < FRAMES / 2; n++) {
		struct hawk_item it = { .lid = fx_lid(n) };

		ret = fx_get(kv, n, salt);
		assert_true(!ret || ret == -ENOENT);
		hawk_free(kv, &it, 1);
	}
}

static void *use(void *arg)
{
	struct user *u = arg;
	struct hawk_kv_params p = fx_params(u->f);
	uint32_t round, lives = u->salt == 1 ? ROUNDS : 1, life;
	struct hawk_kv *kv;

	if (u->salt == 1)	/* its minimum is lent each time that it comes */
		p = with_min(u->f, 1);

	for (life = 0; life < lives; life++) {
		assert_ok(hawk_kv_create(u->f->h, &p, &kv));
		for (round = 0; round < ROUNDS / lives; round++)
			round_of(kv, u->salt + 16 * round);
		hawk_kv_close(kv);
	}
	return NULL;
}

static void come_and_go(void **state)
{
	struct user u[USERS];
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, CHUNKS * 2 * MIB, 4 * MIB);
	for (i = 0; i < USERS; i++) {
		u[i].f = &f;
		u[i].salt = 1 + i;
		assert_int_equal(pthread_create(&u[i].thread, NULL, use, &u[i]), 0);
	}
	for (i = 0; i < USERS; i++)
		assert_int_equal(pthread_join(u[i].thread, NULL), 0);
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_comer),
		cmocka_unit_test(from_nothing),
		cmocka_unit_test(pinned),
		cmocka_unit_test(lent_minimum),
		cmocka_unit_test(minima_add_up),
		cmocka_unit_test(pinned_minimum),
		cmocka_unit_test(one_of_many),
		cmocka_unit_test(two_creators),
		cmocka_unit_test(from_nothing_in_turn),
		cmocka_unit_test(donor_ends),
		cmocka_unit_test(host_tier_goes),
		cmocka_unit_test(host_tier_stays),
		cmocka_unit_test(flash_goes),
		cmocka_unit_test(come_and_go),
	};

	return cmocka_run_group_tests_name("lib_share", tests, NULL, NULL);
}
