// SPDX-License-Identifier: MIT
/*
 * core_pool.c - blocks outlive their device: who finds what again
 */
#include "core_pool_host.h"

#define N	(2 * PH_FPC)		/* blocks of two chunks */

static struct hawk_recovery found(struct hawk_space *s)
{
	struct hawk_recovery r;

	hawk_space_recovery(s, &r);
	return r;
}

static void put_all(struct pool_host *h, struct hawk_space *s, u32 from, u32 n, bool chain)
{
	u32 i;

	for (i = from; i < from + n; i++)
		assert_int_equal(ph_put(h, s, i, 1, chain && i > from ? i - 1 : i), 0);
	ph_write_all(h, s);
}

static u32 hits(struct pool_host *h, struct hawk_space *s, u32 from, u32 n)
{
	u32 i, hit = 0;

	for (i = from; i < from + n; i++)
		hit += ph_get(h, s, i) == 1;
	return hit;
}

static void restart(struct pool_host *h)
{
	ph_close(h, false);
	drive_power_cut(&h->d);
	assert_int_equal(ph_open(h, 1), 0);
}

/* A pool of @chunks chunks, and space "a" on it. */
static struct hawk_space *begin(struct pool_host *h, u32 chunks, u64 seed)
{
	ph_format(h, chunks, seed);
	assert_int_equal(ph_open(h, 1), 0);
	return ph_space(h, "a");
}

/* The space ends, and is found after a power cut. */
static struct hawk_space *again(struct pool_host *h, struct hawk_space *s)
{
	ph_space_end(h, s);
	restart(h);
	return ph_space(h, "a");
}

static void end(struct pool_host *h, struct hawk_space *s)
{
	ph_space_end(h, s);
	ph_close(h, true);
	ph_free(h);
}

/* All blocks whose headers were written are there, after a power cut too. */
static void found_again(void **state)
{
	struct pool_host h;
	struct hawk_space *s;
	u32 round;

	(void)state;
	s = begin(&h, 6, 1);
	assert_int_equal(found(s).chunks, 0);
	put_all(&h, s, 0, N, true);
	for (round = 0; round < 3; round++) {
		s = again(&h, s);
		assert_int_equal(found(s).blocks, N);
		assert_int_equal(found(s).corrupt + found(s).no_parent + found(s).stale, 0);
		assert_int_equal(hits(&h, s, 0, N), N);
	}
	end(&h, s);
}

/* A LID of sequence 0 is a name like others, and no block can be made under one. */
static void found_have_lids(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct pool_host h;
	struct hawk_space *s;
	struct hawk_ref ref;
	u64 lid, vt;
	u32 n;

	(void)state;
	s = begin(&h, 6, 2);
	put_all(&h, s, 0, 16, false);
	s = again(&h, s);
	for (n = 0; n < 16; n++) {
		ph_key(key, n);
		assert_int_equal(hawk_block_find(s, key, false, ++h.now, &lid, &vt, &ref), 0);
		assert_true(lid);
		assert_int_equal(hawk_lid_seq(lid), 0);
		assert_int_equal(hawk_lid_layer(lid), n % 4);
		assert_int_equal(hawk_lid_head(lid), n / 4 % 2);
		assert_int_equal(hawk_block_fork(s, lid, ph_lid(n, 7)), 0);
		assert_int_equal(hawk_block_free(s, lid), 0);
		assert_int_equal(ph_get(&h, s, n), 1);
	}
	assert_int_equal(hawk_block_alloc(s, lid, NULL, HAWK_TIER_ANY, ++h.now, &h.plan, &vt),
			 -EINVAL);
	assert_int_equal(hawk_block_fork(s, ph_lid(0, 7), HAWK_LID(0, 0, 0, 16)), -EINVAL);
	end(&h, s);
}

/* Not even blocks with the same keys: neither another name, nor another model, nor owner. */
static void others_find_nothing(void **state)
{
	struct hawk_identity id;
	struct hawk_space_params p;
	struct hawk_space *s, *other;
	struct hawk_record r;
	struct pool_host h;
	u32 i;

	(void)state;
	s = begin(&h, 6, 3);
	put_all(&h, s, 0, PH_FPC, false);
	ph_space_end(&h, s);
	restart(&h);
	for (i = 0; i < 4; i++) {
		p = ph_params(&h, i ? "a" : "b", &id);
		id.model_id += i == 1;
		id.uid += i == 2;
		if (i == 3)
			p.identity = NULL;
		assert_int_equal(ph_try_space(&h, &p, &other), 0);
		assert_int_equal(found(other).blocks, 0);
		assert_int_equal(hits(&h, other, 0, PH_FPC), 0);
		ph_space_end(&h, other);
		ph_clean(&h);
	}
	/* should the hash of two identities be the same */
	other = ph_space(&h, "b");
	for (i = 0; i < h.super.chunks; i++)
		if (!hawk_record_decode(h.d.now + hawk_record_off(&h.super, i),
					hawk_pool_id(&h.super), i, &r) && r.kept)
			assert_int_equal(hawk_space_adopt(other, h.flash, &r, NULL, 1), -ENOENT);
	ph_space_end(&h, other);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 1);
	s = ph_space(&h, "a");
	assert_int_equal(hits(&h, s, 0, PH_FPC), PH_FPC);
	end(&h, s);
}

/* What a space without an identity wrote is nobody's, and its chunks are free. */
static void private_leaves_nothing(void **state)
{
	struct hawk_identity id;
	struct hawk_space_params p;
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	ph_format(&h, 6, 4);
	assert_int_equal(ph_open(&h, 1), 0);
	p = ph_params(&h, "a", &id);
	p.identity = NULL;
	p.block_bytes = PH_BLOCK;
	assert_int_equal(ph_try_space(&h, &p, &s), 0);
	put_all(&h, s, 0, N, false);
	ph_space_kill(&h, s);
	ph_clean(&h);
	restart(&h);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 0);
	s = ph_space(&h, "a");
	assert_int_equal(hits(&h, s, 0, N), 0);
	end(&h, s);
}

/* Orphans are given away when nothing else is free, the oldest first. */
static void orphans_given_away(void **state)
{
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	ph_format(&h, 6, 5);
	assert_int_equal(ph_open(&h, 1), 0);
	s = ph_space(&h, "old");
	put_all(&h, s, 0, N, false);
	ph_space_end(&h, s);
	s = ph_space(&h, "young");
	put_all(&h, s, 0, N, false);
	ph_space_end(&h, s);
	restart(&h);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 4);
	s = ph_space(&h, "new");
	put_all(&h, s, 0, N, false);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 4);
	put_all(&h, s, N, N, false);	/* of DRAM there is room for both */
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 2);
	ph_space_end(&h, s);
	s = ph_space(&h, "old");
	assert_int_equal(found(s).chunks, 0);
	ph_space_end(&h, s);
	s = ph_space(&h, "young");
	assert_int_equal(hits(&h, s, 0, N), N);
	ph_space_end(&h, s);
	restart(&h);
	s = ph_space(&h, "new");
	assert_int_equal(hits(&h, s, 0, 2 * N), 2 * N);
	end(&h, s);
}

/* A chunk that was another's: its old headers count no more, whatever the bytes. */
static void former_owner_sees_nothing(void **state)
{
	struct hawk_space *s;
	struct pool_host h;
	u32 round;

	(void)state;
	s = begin(&h, 2, 6);
	put_all(&h, s, 0, N, false);
	ph_space_end(&h, s);
	s = ph_space(&h, "b");
	put_all(&h, s, 0, N, false);	/* the same bytes and keys, in the same slots */
	ph_space_kill(&h, s);		/* and no header of b is written */
	for (round = 0; round < 2; round++) {
		restart(&h);
		s = ph_space(&h, "a");
		assert_int_equal(found(s).blocks, 0);
		assert_int_equal(found(s).chunks, 0);
		ph_space_kill(&h, s);
	}
	s = ph_space(&h, "b");
	assert_int_equal(found(s).chunks, 2);
	assert_int_equal(found(s).blocks, 0);
	assert_int_equal(found(s).corrupt, 0);
	end(&h, s);
}

/* Blocks that are found one after the other, up to the first that is not. */
static u32 chain_hits(struct pool_host *h, struct hawk_space *s, u32 from, u32 n)
{
	u32 i;

	for (i = 0; i < n && ph_get(h, s, from + i) == 1; i++)
		;
	return i;
}

/*
 * A hole in a chain: what comes after it is out of reach.  It is the first to go when room
 * is needed, and not sooner: when the hole is filled all of it is there.
 */
static void children_without_parent(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	ph_format(&h, 6, 7);
	assert_int_equal(ph_open(&h, 2), 0);
	s = ph_space(&h, "a");
	put_all(&h, s, 0, 100, true);
	put_all(&h, s, 200, 10, false);
	assert_int_equal(ph_put(&h, s, 300, 1, 301), 0);	/* two that name each other */
	assert_int_equal(ph_put(&h, s, 301, 1, 300), 0);
	ph_write_all(&h, s);
	ph_key(key, 40);
	assert_int_equal(hawk_key_free(s, key), 0);
	s = again(&h, s);
	assert_int_equal(found(s).blocks, 50 + 59 + 2);
	assert_int_equal(found(s).no_parent, 59 + 2);
	assert_int_equal(chain_hits(&h, s, 0, 100), 40);
	s = again(&h, s);
	assert_int_equal(found(s).no_parent, 59 + 2);
	assert_int_equal(ph_put(&h, s, 40, 1, 39), 0);
	assert_int_equal(chain_hits(&h, s, 0, 100), 100);
	ph_write_all(&h, s);
	s = again(&h, s);
	assert_int_equal(found(s).no_parent, 2);
	/* all of the flash is wanted: of those found, the two go first */
	put_all(&h, s, 1000, 7 * PH_FPC - 110, false);
	assert_int_equal(hits(&h, s, 300, 2), 0);
	assert_true(hits(&h, s, 200, 10));
	end(&h, s);
}

/* A prefix so hot that it never left memory is written for what follows it. */
static void hot_prefix_is_kept(void **state)
{
	struct hawk_ref ref;
	struct hawk_space *s;
	struct pool_host h;
	u64 vt;
	u32 n;

	(void)state;
	s = begin(&h, 6, 14);
	for (n = 0; n < 40; n++)
		assert_int_equal(ph_put(&h, s, n, 1, n ? n - 1 : 0), 0);
	assert_int_equal(hawk_block_pin(s, ph_lid(20, 1), ++h.now, &vt, &ref), 0);
	for (n = 40; n < PH_FPC + 20; n++) {
		assert_int_equal(ph_put(&h, s, n, 1, n == 40 ? 39 : n), 0);
		/* all but the first 40 get cold */
		assert_int_equal(hits(&h, s, 0, 40), 40);
	}
	for (n = 0; n < 40; n++)
		assert_int_equal(HAWK_VT_TIER(hawk_space_translate(s, ph_lid(n, 1))), h.dram);
	assert_int_equal(HAWK_VT_TIER(hawk_space_translate(s, ph_lid(40, 1))), h.flash);
	ph_ancestors(&h, s);
	host_check(s);
	for (n = 0; n < 40; n++)
		assert_int_equal(HAWK_VT_TIER(hawk_space_translate(s, ph_lid(n, 1))), h.dram);
	hawk_block_unpin(s, ref);
	s = again(&h, s);
	assert_int_equal(found(s).no_parent, 0);
	assert_int_equal(hits(&h, s, 0, 41), 41);
	end(&h, s);
}

/* One that is longer than what is written at a time, and longer than a page of headers. */
static void long_hot_prefix_is_kept(void **state)
{
	struct hawk_space *s;
	struct pool_host h;
	u32 n;

	(void)state;
	ph_format(&h, 6, 16);
	assert_int_equal(ph_open(&h, 3), 0);
	h.plan.max = 8;
	s = ph_space(&h, "a");
	for (n = 0; n < 200; n++)
		assert_int_equal(ph_put(&h, s, n, 1, n ? n - 1 : 0), 0);
	for (n = 200; n < 3 * PH_FPC + 20; n++) {
		assert_int_equal(ph_put(&h, s, n, 1, n == 200 ? 199 : n), 0);
		assert_int_equal(hits(&h, s, 0, 200), 200);
	}
	assert_int_equal(HAWK_VT_TIER(hawk_space_translate(s, ph_lid(200, 1))), h.flash);
	ph_ancestors(&h, s);
	assert_false(hawk_keep_lacks(s));
	host_check(s);
	s = again(&h, s);
	assert_int_equal(found(s).no_parent, 0);
	assert_int_equal(chain_hits(&h, s, 0, 201), 201);
	end(&h, s);
}

/* What stops it for a while does not stop it for good: a write fails, a space grows. */
static void hot_prefix_is_kept_later(void **state)
{
	struct hawk_space *s;
	struct pool_host h;
	u32 n, cursor = 0;

	(void)state;
	s = begin(&h, 6, 17);
	for (n = 0; n < 40; n++)
		assert_int_equal(ph_put(&h, s, n, 1, n ? n - 1 : 0), 0);
	for (n = 40; n < PH_FPC + 20; n++) {
		assert_int_equal(ph_put(&h, s, n, 1, n == 40 ? 39 : n), 0);
		assert_int_equal(hits(&h, s, 0, 40), 40);
	}
	assert_true(hawk_keep_ancestors(s, &cursor, ++h.now, &h.plan) > 0);
	for (n = 0; n < h.plan.n; n++) {
		h.plan.move[n].result = n % 3 ? 0 : -EIO;
		if (n % 3)
			h.plan.move[n].crc = 0;
		hawk_move_complete(&h.plan.move[n]);
	}
	h.plan.n = 0;
	assert_true(hawk_keep_lacks(s));
	s->win[h.flash].growing++;	/* as if another thread waited for a record */
	cursor = 0;
	hawk_keep_ancestors(s, &cursor, ++h.now, &h.plan);
	s->win[h.flash].growing--;
	ph_ancestors(&h, s);
	assert_false(hawk_keep_lacks(s));
	for (n = 0; n < 40; n++) {
		struct hawk_block *blk;
		u8 key[HAWK_KEY_BYTES];

		ph_key(key, n);
		blk = hawk_index_peek(s, key);
		assert_true(blk && blk->flags & HAWK_BF_FLASH);
		hawk_unlock(&s->bucket[blk->home].lock);
	}
	ph_space_kill(&h, s);
	ph_close(&h, false);
	ph_free(&h);
}

/*
 * Flash is full of leased blocks: a block that is evicted does not get the place of a hot
 * prefix's copy, without which what is there would be out of reach.
 */
static void hot_prefix_keeps_its_copies(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	struct hawk_space *s;
	struct pool_host h;
	u64 lid, vt;
	u32 n;

	(void)state;
	s = begin(&h, 1, 18);
	for (n = 0; n < 2 * PH_FPC - 40; n++) {
		assert_int_equal(ph_put(&h, s, n, 1, n == 40 ? 39 : n && n < 40 ? n - 1 : n), 0);
		hits(&h, s, 0, n < 40 ? n : 40);
	}
	ph_ancestors(&h, s);
	assert_false(hawk_keep_lacks(s));
	for (n = 40; n < 2 * PH_FPC; n++) {
		ph_key(key, n);
		if (HAWK_VT_TIER(hawk_space_translate(s, ph_lid(n, 1))) == h.flash)
			assert_int_equal(hawk_block_find(s, key, true, h.now, &lid, &vt, &ref), 0);
	}
	for (n = 1000; n < 1000 + 2 * PH_FPC; n++) {
		assert_int_equal(ph_put(&h, s, n, 1, n), 0);
		assert_int_equal(hits(&h, s, 0, 40), 40);
	}
	s = again(&h, s);
	assert_int_equal(found(s).no_parent, 0);
	assert_int_equal(chain_hits(&h, s, 0, 41), 41);
	end(&h, s);
}

/* Flash is full of blocks that must stay: then the prefix is not kept, and that is all. */
static void no_room_for_a_hot_prefix(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	struct hawk_space *s;
	struct pool_host h;
	u64 lid, vt;
	u32 n;

	(void)state;
	s = begin(&h, 1, 15);
	for (n = 0; n < 2 * PH_FPC; n++) {
		assert_int_equal(ph_put(&h, s, n, 1, n == 40 ? 39 : n), 0);
		hits(&h, s, 0, n < 40 ? n : 40);
	}
	for (n = 40; n < 2 * PH_FPC; n++) {
		ph_key(key, n);
		if (HAWK_VT_TIER(hawk_space_translate(s, ph_lid(n, 1))) == h.flash)
			assert_int_equal(hawk_block_find(s, key, true, h.now, &lid, &vt, &ref), 0);
	}
	assert_int_equal(HAWK_VT_TIER(hawk_space_translate(s, ph_lid(40, 1))), h.flash);
	ph_ancestors(&h, s);
	s = again(&h, s);
	assert_true(found(s).no_parent);
	end(&h, s);
}

/*
 * The power fails when the headers of younger blocks have been written and those of older
 * ones, which lie in the first chunk, have not.
 */
static void commit_but_first_chunk(struct pool_host *h, struct hawk_space *s)
{
	static u8 buf[64 * HAWK_POOL_PAGE];
	struct hawk_keep_page page[64];
	u32 cursor = 0, i, n, left = 0;

	n = hawk_keep_collect(s, h->flash, &cursor, buf, page, 64);
	drive_flush(&h->d);
	for (i = 0; i < n; i++)
		if (page[i].off >= hawk_header_off(&h->super, 1))
			drive_write(&h->d, page[i].off, buf + i * HAWK_POOL_PAGE, HAWK_POOL_PAGE);
		else
			left++;
	assert_true(left && left < n);
	drive_flush(&h->d);
}

/* A key that was forgotten and put again with other bytes: the younger ones. */
static void younger_version_counts(void **state)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_space *s;
	struct pool_host h;
	u32 n, ver;

	(void)state;
	s = begin(&h, 6, 8);
	put_all(&h, s, 0, PH_FPC, false);
	ph_commit(&h, s);
	for (ver = 2; ver < 4; ver++) {
		for (n = 0; n < PH_FPC; n++) {
			ph_key(key, n);
			assert_int_equal(hawk_key_free(s, key), 0);
			assert_int_equal(ph_put(&h, s, n, ver, n), 0);
		}
		ph_write_all(&h, s);
	}
	commit_but_first_chunk(&h, s);
	ph_space_kill(&h, s);
	restart(&h);
	s = ph_space(&h, "a");
	assert_int_equal(found(s).blocks, PH_FPC);
	assert_int_equal(found(s).stale, PH_FPC);
	for (n = 0; n < PH_FPC; n++)
		assert_int_equal(ph_get(&h, s, n), 3);
	s = again(&h, s);
	assert_int_equal(found(s).stale, 0);
	assert_int_equal(found(s).blocks, PH_FPC);
	end(&h, s);
}

/* The quota and the minima of others come first; the rest stays orphaned. */
static void no_more_than_the_quota(void **state)
{
	struct hawk_space *s, *other;
	struct hawk_identity id, id2;
	struct hawk_space_params p;
	struct pool_host h;

	(void)state;
	s = begin(&h, 4, 9);
	put_all(&h, s, 0, 4 * PH_FPC, false);
	ph_space_end(&h, s);
	restart(&h);
	p = ph_params(&h, "a", &id);
	p.quota_max[h.flash] = 3;
	assert_int_equal(ph_try_space(&h, &p, &s), 0);
	assert_int_equal(found(s).chunks, 3);
	assert_int_equal(hits(&h, s, 0, 4 * PH_FPC), 3 * PH_FPC);
	ph_space_end(&h, s);
	restart(&h);
	p = ph_params(&h, "other", &id2);
	p.quota_min[h.flash] = 2;
	assert_int_equal(ph_try_space(&h, &p, &other), 0);
	s = ph_space(&h, "a");
	assert_int_equal(found(s).chunks, 2);
	put_all(&h, other, 0, N, false);	/* it can have its minimum */
	assert_int_equal(hits(&h, other, 0, N), N);
	ph_space_end(&h, other);
	end(&h, s);
}

/* Fewer blocks than were found. */
static void no_room_in_the_tables(void **state)
{
	struct hawk_identity id;
	struct hawk_space_params p;
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	s = begin(&h, 6, 10);
	put_all(&h, s, 0, N, false);
	ph_space_end(&h, s);
	restart(&h);
	p = ph_params(&h, "a", &id);
	p.max_blocks = 100;
	assert_int_equal(ph_try_space(&h, &p, &s), 0);
	assert_int_equal(found(s).blocks + found(s).no_room, found(s).chunks * PH_FPC);
	assert_int_equal(found(s).blocks, 100);
	end(&h, s);
}

/* The space grows by a chunk.  @ok: its record can be written.  Return: which one. */
static u32 grow(struct pool_host *h, struct hawk_space *s, bool ok)
{
	struct hawk_grant g;

	hawk_window_ask(s, h->flash, 0);
	assert_int_equal(hawk_space_grow(s, &g), 0);
	hawk_space_grown(s, &g, ok);
	if (!ok)
		hawk_space_unstick(s);
	host_check(s);
	return g.chunk;
}

/* A record that cannot be written, or read: its chunk is tried when there is nothing else. */
static void suspects_come_last(void **state)
{
	u32 i, bad, total, nfree, dirty;
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	ph_format(&h, 6, 19);
	assert_int_equal(ph_open(&h, 1), 0);
	s = ph_space(&h, "orphan");
	put_all(&h, s, 0, N, false);
	ph_space_end(&h, s);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 2);
	s = ph_space(&h, "a");
	bad = grow(&h, s, false);
	for (i = 0; i < 5; i++)		/* orphans, too */
		assert_int_not_equal(grow(&h, s, true), bad);
	assert_int_equal(grow(&h, s, false), bad);
	assert_int_equal(grow(&h, s, true), bad);
	ph_space_end(&h, s);
	ph_close(&h, true);
	/* not read: the same, and nobody's */
	h.unread = 4;
	assert_int_equal(ph_open(&h, 1), 0);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 0);
	assert_int_equal(hawk_tier_usage(h.e, h.flash, &total, &nfree, &dirty), 0);
	assert_int_equal(nfree, 6);
	s = ph_space(&h, "b");
	for (i = 0; i < 2; i++)
		assert_in_range(grow(&h, s, true), 4, 5);
	for (i = 0; i < 4; i++)
		assert_int_equal(grow(&h, s, true), i);
	end(&h, s);
}

static void forgotten_space(void **state)
{
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	s = begin(&h, 6, 11);
	put_all(&h, s, 0, N, false);
	ph_commit(&h, s);
	hawk_keep_forget(s);
	ph_space_end(&h, s);
	ph_clean(&h);
	drive_flush(&h.d);
	restart(&h);
	assert_int_equal(hawk_pool_orphans(h.e, h.flash), 0);
	s = ph_space(&h, "a");
	assert_int_equal(hits(&h, s, 0, N), 0);
	end(&h, s);
}

static void rated_endurance_is_a_budget(void **state)
{
	struct hawk_tier_admit a = { 0 };
	struct pool_host h;

	(void)state;
	ph_format(&h, 6, 12);
	h.super.rated = 1ull << 40;
	hawk_super_encode(&h.super, h.d.now);
	hawk_super_encode(&h.super, h.d.now + hawk_super_copy_off(1));
	assert_int_equal(ph_open(&h, 1), 0);
	a.tier = h.flash;
	assert_int_equal(hawk_tier_admit(h.e, &a, h.now), 0);
	assert_int_equal(a.rated_bytes, 1ull << 40);
	assert_int_equal(a.budget_bytes, 3ull << 38);
	assert_int_equal(a.period_ns, HAWK_DAY_NS);
	ph_close(&h, true);
	ph_free(&h);
}

/* Pages that the tier's budget was charged for since @from pages had been written. */
static void charged(struct pool_host *h, u64 from)
{
	struct hawk_tier_admit a = { .tier = h->flash };

	assert_int_equal(hawk_tier_admit(h->e, &a, h->now), 0);
	assert_int_equal(a.spent_bytes, (h->d.pages - from) * HAWK_POOL_PAGE);
}

/* What the drive writes is what the budget is charged: headers and records too. */
static void all_writes_are_charged(void **state)
{
	struct hawk_tier_admit a = { .flags = HAWK_ADMIT_SET, .budget_bytes = 1ull << 40 };
	u8 buf[HAWK_POOL_PAGE];
	struct hawk_keep_page page;
	struct hawk_space *s;
	struct pool_host h;
	u32 cursor = 0;
	u64 from;

	(void)state;
	s = begin(&h, 6, 21);
	a.tier = h.flash;
	assert_int_equal(hawk_tier_admit(h.e, &a, h.now), 0);
	from = h.d.pages;
	put_all(&h, s, 0, 2 * PH_FPC, false);	/* records of two chunks */
	charged(&h, from);
	/* a page that could not be written is charged when it is */
	assert_int_equal(hawk_keep_collect(s, h.flash, &cursor, buf, &page, 1), 1);
	hawk_keep_again(s, h.flash, page.nr);
	charged(&h, from);
	ph_commit(&h, s);
	charged(&h, from);
	/* its chunks are nobody's any more, and their records say so */
	hawk_keep_forget(s);
	ph_space_end(&h, s);
	charged(&h, from);
	assert_true(hawk_tier_next_dirty(h.e, h.flash, HAWK_NONE) != HAWK_NONE);
	ph_clean(&h);
	charged(&h, from);
	ph_close(&h, true);
	ph_free(&h);
}

static void refusals(void **state)
{
	struct hawk_identity id;
	struct hawk_space_params p;
	struct hawk_record r = { .kept = true };
	struct hawk_super two;
	struct hawk_space *s;
	struct pool_host h;

	(void)state;
	ph_format(&h, 6, 12);
	assert_int_equal(ph_open(&h, 1), 0);
	two = h.super;
	assert_int_equal(hawk_pool_open(h.e, h.flash, &two, 1), -EINVAL);	/* is one */
	assert_int_equal(hawk_pool_open(h.e, h.dram, &two, 1), -EINVAL);
	assert_int_equal(hawk_pool_open(h.e, HAWK_TIERS_MAX, &two, 1), -ENOENT);
	assert_int_equal(hawk_pool_slot_bytes(h.e, h.dram), 0);
	assert_int_equal(hawk_pool_slot_bytes(h.e, h.flash), PH_BLOCK);
	p = ph_params(&h, "small", &id);
	p.block_bytes = id.block_bytes = 4096;
	assert_int_equal(ph_try_space(&h, &p, &s), -EINVAL);
	p.identity = NULL;	/* nothing is kept: no headers */
	assert_int_equal(ph_try_space(&h, &p, &s), 0);
	ph_space_kill(&h, s);
	ph_clean(&h);
	r.epoch = (h.super.seq + 1) << HAWK_EPOCH_SHIFT;
	assert_int_equal(hawk_pool_load(h.e, h.flash, &r), -EINVAL);
	r.epoch = 1;
	r.chunk = 6;
	assert_int_equal(hawk_pool_load(h.e, h.flash, &r), -EINVAL);
	s = ph_space(&h, "a");
	p = ph_params(&h, "b", &id);
	r.chunk = 0;
	r.owner = id;
	assert_int_equal(hawk_space_adopt(s, h.flash, &r, NULL, 1), -ENOENT);
	r.owner = *s->identity;
	assert_int_equal(hawk_space_adopt(s, h.flash, &r, NULL, 1), -ENOENT);	/* free */
	assert_int_equal(hawk_space_adopt(s, h.dram, &r, NULL, 1), -ENOENT);
	end(&h, s);
}

/* One superblock is enough, and comes back; without both nothing is opened. */
static void superblocks(void **state)
{
	struct pool_host h;
	u8 junk[4096];
	u32 i;

	(void)state;
	memset(junk, 0x5a, sizeof(junk));
	ph_format(&h, 6, 13);
	for (i = 0; i < 2; i++) {
		drive_write(&h.d, hawk_super_copy_off(i), junk, sizeof(junk));
		assert_int_equal(ph_open(&h, 1), 0);
		assert_int_equal(h.super.seq, i + 1);
		ph_close(&h, true);
	}
	drive_write(&h.d, hawk_super_copy_off(0), junk, sizeof(junk));
	h.d.now[hawk_super_copy_off(1) + 50] ^= 1;
	assert_int_equal(ph_open(&h, 1), -EILSEQ);
	drive_write(&h.d, hawk_super_copy_off(1), junk, sizeof(junk));
	assert_int_equal(ph_open(&h, 1), -ENOENT);
	ph_free(&h);
}

/* A use that runs out of numbers goes on with those of the next one, none twice. */
static void numbers_run_out(void **state)
{
	struct hawk_recovery found;
	struct hawk_pool *p;
	struct pool_host h;
	struct hawk_space *s;
	u32 i;

	(void)state;
	ph_format(&h, 2, 5);
	assert_int_equal(ph_open(&h, 1), 0);
	p = h.e->tier[h.flash].pool;
	p->clock += (1ull << (HAWK_EPOCH_SHIFT - 1)) - 20;
	s = ph_space(&h, "a");
	for (i = 0; i < 10; i++)
		assert_int_equal(ph_put(&h, s, i, 1, i), 0);
	ph_write_all(&h, s);
	assert_false(hawk_pool_worn(h.e, h.flash));
	for (; i < 40; i++)
		assert_int_equal(ph_put(&h, s, i, 1, i), 0);
	ph_write_all(&h, s);
	assert_true(hawk_pool_worn(h.e, h.flash));
	h.super.seq++;
	hawk_pool_renew(h.e, h.flash, &h.super);
	assert_false(hawk_pool_worn(h.e, h.flash));
	assert_int_equal(p->clock, h.super.seq << HAWK_EPOCH_SHIFT);
	hawk_pool_renew(h.e, h.flash, &h.super);	/* never back */
	for (; i < 50; i++)
		assert_int_equal(ph_put(&h, s, i, 1, i), 0);
	ph_write_all(&h, s);
	assert_true(p->clock > h.super.seq << HAWK_EPOCH_SHIFT);
	ph_space_end(&h, s);
	ph_close(&h, true);
	/* of both uses */
	assert_int_equal(ph_open(&h, 1), 0);
	s = ph_space(&h, "a");
	hawk_space_recovery(s, &found);
	assert_int_equal(found.blocks, 50);
	assert_int_equal(found.corrupt, 0);
	for (i = 0; i < 50; i++)
		assert_int_equal(ph_get(&h, s, i), 1);
	end(&h, s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_again),
		cmocka_unit_test(found_have_lids),
		cmocka_unit_test(others_find_nothing),
		cmocka_unit_test(private_leaves_nothing),
		cmocka_unit_test(orphans_given_away),
		cmocka_unit_test(former_owner_sees_nothing),
		cmocka_unit_test(children_without_parent),
		cmocka_unit_test(hot_prefix_is_kept),
		cmocka_unit_test(long_hot_prefix_is_kept),
		cmocka_unit_test(hot_prefix_is_kept_later),
		cmocka_unit_test(hot_prefix_keeps_its_copies),
		cmocka_unit_test(no_room_for_a_hot_prefix),
		cmocka_unit_test(younger_version_counts),
		cmocka_unit_test(no_more_than_the_quota),
		cmocka_unit_test(no_room_in_the_tables),
		cmocka_unit_test(suspects_come_last),
		cmocka_unit_test(forgotten_space),
		cmocka_unit_test(rated_endurance_is_a_budget),
		cmocka_unit_test(all_writes_are_charged),
		cmocka_unit_test(refusals),
		cmocka_unit_test(superblocks),
		cmocka_unit_test(numbers_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
