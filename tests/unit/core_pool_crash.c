// SPDX-License-Identifier: MIT
/*
 * core_pool_crash.c - the power fails, or bytes change: what is served by key was put under it
 *
 * HAWK_SEED and HAWK_OPS (power cuts) as for core_random.
 */
#include "core_pool_host.h"

#define KEYS	300u
#define CHUNKS	4u
#define SPACES	2u

static u64 rng;

static u32 below(u32 n)
{
	return host_below(&rng, n);
}

static u64 from_env(const char *name, u64 def)
{
	const char *s = getenv(name);

	return s ? strtoull(s, NULL, 0) : def;
}

/* ---- power cuts ---- */

/* What may be served of a key: versions from @low to @high. */
struct expect {
	u32 low;		/* now */
	u32 high;
	u32 durable;		/* a header of this version is durable: no older one is served */
};

static struct world {
	struct pool_host h;
	struct hawk_space *s[SPACES];
	struct expect key[SPACES][KEYS];
	u32 version;
	u64 served, missed, refused, cuts, recovered, chunks_taken, drained;
} w;

static const char * const names[SPACES] = { "a", "b" };

static void look(u32 sp, u32 n)
{
	struct expect *e = &w.key[sp][n];
	u32 ver = ph_get(&w.h, w.s[sp], n);

	if (!ver) {
		w.missed++;
		return;
	}
	if (ver < e->low || ver > e->high)
		fail_msg("key %u of space %u has version %u, not %u to %u", n, sp, ver, e->low,
			 e->high);
	e->low = ver;
	e->high = ver;
	w.served++;
}

/* The key gets other bytes. */
static void put_new(u32 sp, u32 n)
{
	struct expect *e = &w.key[sp][n];
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	u64 lid, vt;
	int ret;

	ph_key(key, n);
	if (!hawk_block_find(w.s[sp], key, false, ++w.h.now, &lid, &vt, &ref))
		assert_int_equal(hawk_block_free(w.s[sp], lid), 0);
	ret = ph_put(&w.h, w.s[sp], n, ++w.version, below(8) || !n ? n : n - 1);
	if (ret == -ENOSPC) {
		w.refused++;	/* others have all of DRAM */
		return;
	}
	assert_int_equal(ret, 0);
	e->low = w.version;
	e->high = w.version;
}

static void write_some(u32 sp)
{
	int ret = hawk_space_writeback(w.s[sp], w.h.dram, below(1025), w.h.now, &w.h.plan);

	ph_run(&w.h);
	ph_grew(&w.h, w.s[sp], ret);
}

/* Everything that is on flash now is there after a power cut. */
static void sync_all(void)
{
	struct hawk_block *blk;
	u8 key[HAWK_KEY_BYTES];
	u32 sp, n;

	for (sp = 0; sp < SPACES; sp++)
		ph_commit(&w.h, w.s[sp]);
	drive_flush(&w.h.d);
	if (w.h.d.dead)
		return;
	for (sp = 0; sp < SPACES; sp++)
		for (n = 0; n < KEYS; n++) {
			ph_key(key, n);
			blk = hawk_index_peek(w.s[sp], key);
			if (!blk)
				continue;
			if (blk->flags & HAWK_BF_FLASH)
				w.key[sp][n].durable = w.key[sp][n].low;
			hawk_unlock(&w.s[sp]->bucket[blk->home].lock);
		}
}

static void drain_one(u32 sp)
{
	struct hawk_space *s = w.s[sp];
	u32 busy, n, slot = hawk_space_drain_pick(s, w.h.flash, ++w.h.now);
	int ret = -EBUSY;

	if (slot == HAWK_NONE || hawk_space_drain_start(s, w.h.flash, slot))
		return;
	for (n = 0; n < 100; n++) {
		ret = hawk_space_drain(s, w.h.flash, HAWK_DRAIN_DROP, w.h.now, &w.h.plan, &busy);
		ph_run(&w.h);
		if (!ph_grew(&w.h, s, ret) && ret != -EAGAIN)
			break;
	}
	if (ret) {
		hawk_space_drain_cancel(s, w.h.flash);
		return;
	}
	hawk_space_drain_finish(s, w.h.flash, NULL);
	ph_clean(&w.h);
	w.drained++;
}

static void end_and_again(u32 sp)
{
	ph_space_end(&w.h, w.s[sp]);
	if (w.h.d.dead) {
		/* what was collected is lost, so it is not looked at any more */
		w.s[sp] = NULL;
		return;
	}
	w.s[sp] = ph_space(&w.h, names[sp]);
}

/* A space that takes what it can get, keeps nothing, and goes. */
static void guest(void)
{
	struct hawk_identity id;
	struct hawk_space_params p = ph_params(&w.h, "", &id);
	struct hawk_space *s;
	u32 i, n = below(2 * PH_FPC);

	p.identity = NULL;
	if (ph_try_space(&w.h, &p, &s))
		return;
	for (i = 0; i < n && !w.h.d.dead; i++)
		if (ph_put(&w.h, s, i, 1, i))
			break;
	w.chunks_taken += s->win[w.h.flash].owned;
	ph_space_kill(&w.h, s);
	ph_clean(&w.h);
}

static void one(void)
{
	u32 sp = below(SPACES), n = below(KEYS);

	switch (below(32)) {
	case 0:
		if (below(2))
			ph_ancestors(&w.h, w.s[sp]);
		ph_commit(&w.h, w.s[sp]);
		break;
	case 1:
		if (!below(16))
			drain_one(sp);
		break;
	case 2:
		if (!below(8))
			end_and_again(sp);
		break;
	case 3:
		if (!below(8))
			guest();
		break;
	case 4:
		if (!below(4))
			sync_all();
		break;
	case 5 ... 7:
		write_some(sp);
		break;
	case 8 ... 19:
		put_new(sp, n);
		break;
	default:
		look(sp, n);
	}
}

static void start(void)
{
	u32 sp;

	assert_int_equal(ph_open(&w.h, 2), 0);
	for (sp = 0; sp < SPACES; sp++) {
		w.s[sp] = ph_space(&w.h, names[sp]);
		w.recovered += w.s[sp]->found.blocks;
	}
}

/* Return: hits of what has a durable header. */
static void after_sync(void)
{
	u32 sp, n, durable[SPACES][KEYS];

	sync_all();
	if (w.h.d.dead)
		return;
	for (sp = 0; sp < SPACES; sp++)
		for (n = 0; n < KEYS; n++) {
			struct hawk_block *blk;
			u8 key[HAWK_KEY_BYTES];

			ph_key(key, n);
			blk = hawk_index_peek(w.s[sp], key);
			durable[sp][n] = blk && blk->flags & HAWK_BF_FLASH &&
					 !(blk->hint & HAWK_BH_PARENT);
			if (blk)
				hawk_unlock(&w.s[sp]->bucket[blk->home].lock);
		}
	for (sp = 0; sp < SPACES; sp++)
		ph_space_kill(&w.h, w.s[sp]);
	ph_close(&w.h, false);
	drive_power_cut(&w.h.d);
	w.cuts++;
	start();
	for (sp = 0; sp < SPACES; sp++)
		for (n = 0; n < KEYS; n++) {
			u8 key[HAWK_KEY_BYTES];
			struct hawk_block *blk;

			ph_key(key, n);
			blk = hawk_index_peek(w.s[sp], key);
			if (durable[sp][n] && !blk)
				fail_msg("key %u of space %u was on flash and is not found", n, sp);
			if (blk)
				hawk_unlock(&w.s[sp]->bucket[blk->home].lock);
		}
	for (n = 0; n < KEYS; n++)
		for (sp = 0; sp < SPACES; sp++)
			look(sp, n);
}

static void power_fails(void)
{
	u32 sp, n;

	w.h.d.writes_left = 1 + below(200);
	while (!w.h.d.dead)
		one();
	for (sp = 0; sp < SPACES; sp++)
		if (w.s[sp])
			ph_space_kill(&w.h, w.s[sp]);
	ph_close(&w.h, false);
	drive_power_cut(&w.h.d);
	w.cuts++;
	/* the last version may be there or not, and so may older ones that were not durable */
	for (sp = 0; sp < SPACES; sp++)
		for (n = 0; n < KEYS; n++)
			w.key[sp][n].low = w.key[sp][n].durable;
	start();
	for (n = 0; n < 40; n++)
		look(below(SPACES), below(KEYS));
}

static void power_cuts(void **state)
{
	u64 seed = from_env("HAWK_SEED", 1), n = from_env("HAWK_OPS", 1000);
	u32 sp;

	(void)state;
	print_message("seed %llu, %llu power cuts\n", (unsigned long long)seed,
		      (unsigned long long)n);
	rng = seed;
	ph_format(&w.h, CHUNKS, seed);
	start();
	while (w.cuts < n) {
		if (below(8))
			power_fails();
		else
			after_sync();
	}
	print_message("%llu served, %llu misses, %llu refused, %llu blocks recovered, %llu chunks taken by guests, %llu drained\n",
		      (unsigned long long)w.served, (unsigned long long)w.missed, (unsigned long long)w.refused,
		      (unsigned long long)w.recovered, (unsigned long long)w.chunks_taken,
		      (unsigned long long)w.drained);
	/* the test would prove nothing if nothing was found or lost */
	assert_true(w.served > n && w.missed > n && w.recovered > n && w.drained &&
		    w.chunks_taken);
	for (sp = 0; sp < SPACES; sp++)
		ph_space_end(&w.h, w.s[sp]);
	ph_close(&w.h, true);
	ph_free(&w.h);
}

/* ---- flips ---- */

#define FLIP_KEYS	64u

/* The power comes back, every key is looked at.  Return: misses. */
static u32 misses(struct pool_host *h, struct hawk_recovery *found)
{
	struct hawk_space *s;
	u32 n, ver, miss = 0;

	assert_int_equal(ph_open(h, 1), 0);
	s = ph_space(h, "a");
	hawk_space_recovery(s, found);
	for (n = 0; n < FLIP_KEYS; n++) {
		ver = ph_get(h, s, n);
		assert_true(ver <= 1);
		miss += !ver;
	}
	ph_space_kill(h, s);
	ph_close(h, false);
	return miss;
}

static void flip(struct pool_host *h, u64 off)
{
	h->d.now[off] ^= 1u << below(8);
}

static void flips(void **state)
{
	u64 seed = from_env("HAWK_SEED", 1);
	struct hawk_recovery found;
	u32 i, slot, n = from_env("HAWK_FLIPS", 10000), byte;
	struct pool_host h;
	struct hawk_space *s;
	u64 off;
	u8 was;

	(void)state;
	print_message("seed %llu, %u flips\n", (unsigned long long)seed, n);
	rng = seed;
	ph_format(&h, 1, seed);
	assert_int_equal(ph_open(&h, 1), 0);
	s = ph_space(&h, "a");
	for (i = 0; i < FLIP_KEYS; i++)
		assert_int_equal(ph_put(&h, s, i, 1, i), 0);
	ph_write_all(&h, s);
	ph_space_end(&h, s);
	ph_close(&h, true);
	assert_int_equal(misses(&h, &found), 0);
	for (i = 0; i < n; i++) {
		/* of a slot that is in use: its header says so */
		do
			slot = below(PH_FPC);
		while (!h.d.now[hawk_header_off(&h.super, 0) + slot * HAWK_HEADER_BYTES]);
		byte = below(HAWK_HEADER_BYTES);
		off = hawk_header_off(&h.super, 0) + slot * HAWK_HEADER_BYTES + byte;
		if (i % 2)
			off = h.super.data_off + slot * PH_BLOCK + below(PH_BLOCK);
		was = h.d.now[off];
		flip(&h, off);
		assert_int_equal(misses(&h, &found), 1);
		assert_int_equal(found.corrupt, !(i % 2));
		assert_int_equal(found.blocks, FLIP_KEYS - !(i % 2));
		h.d.now[off] = was;
	}
	/* a record: all of its chunk; a superblock: nothing */
	for (i = 0; i < n / 100; i++) {
		off = hawk_record_off(&h.super, 0) + below(HAWK_RECORD_BYTES);
		was = h.d.now[off];
		flip(&h, off);
		assert_int_equal(misses(&h, &found), FLIP_KEYS);
		h.d.now[off] = was;
		flip(&h, hawk_super_copy_off(below(2)) + below(HAWK_POOL_PAGE));
		assert_int_equal(misses(&h, &found), 0);
	}
	ph_free(&h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_cuts),
		cmocka_unit_test(flips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
