// SPDX-License-Identifier: MIT
/*
 * core_flashfmt.c - the bytes of a persistent pool
 *
 * The bytes below were made by a program that knows flashfmt.h's table and not its code:
 * pools that people have must stay readable, so they must not change.  Then each bit of
 * each structure is flipped, and each thing that a structure is of is taken for another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../kmod/core/flashfmt.h"

static const char super_bytes[] =	/* the first 128, all others are zero */
	"4841574b504f4f4c0200000093dc695a101112131415161718191a1b1c1d1e1f"
	"07000000000000000000004000000000fa010000004000000010010000000000"
	"00100300000000000000a0000000000000005847f80d000079df0d8648700000"
	"20222c6900000000010000000000000000000000000000000000000000000000";
static const char plain_bytes[] =	/* likewise */
	"4841574b54454d5000000000153f9c47";
static const char record_bytes[] =
	"484b43525f805254101112131415161703000000000700000900000001000000"
	"e803000000000100100000002000000008000000030000000500000001000000"
	"020000000100000088776655443322116167656e747300000000000000000000"
	"0000000000000000000000000000000000000000000000000000000000000000"
	"0000000000000000000000000000000000100000020000000000000000000000"
	"0000000000000000000000000000000000000000000000000000000000000000"
	"0000000000000000000000000000000000000000000000000000000000000000"
	"0000000000000000000000000000000000000000000000000000000000000000";
static const char header_bytes[] =
	"484b5348c1982e37101112131415161703000000000700004d00000000070000"
	"ce67d53a40b5daf68877665544332211001000001f07050010002a0cefbeadde"
	"404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
	"606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f";

#define POOL	0x1716151413121110ull
#define EPOCH	((7ull << 40) + 3)

static u8 page[HAWK_POOL_PAGE], want[HAWK_POOL_PAGE];

static void from_hex(const char *hex, u8 *p)
{
	char two[3] = { 0 };

	for (; *hex; hex += 2, p++) {
		memcpy(two, hex, 2);
		*p = strtoul(two, NULL, 16);
	}
}

static struct hawk_super a_super(void)
{
	struct hawk_super s = {
		.seq = 7, .bytes = 1ull << 30, .slot_bytes = 16384, .clean = true,
		.rated = 15360000000000ull, .written = 123456789012345ull, .created = 1764500000,
	};
	u32 i;

	for (i = 0; i < sizeof(s.uuid); i++)
		s.uuid[i] = 0x10 + i;
	assert_int_equal(hawk_super_layout(&s), 0);
	return s;
}

static struct hawk_record a_record(void)
{
	return (struct hawk_record) {
		.epoch = EPOCH, .chunk = 9, .kept = true,
		.owner = {
			.name = "agents", .model_id = 0x1122334455667788ull, .uid = 1000,
			.block_bytes = 65536, .block_tokens = 16, .layers = 32,
			.head_groups = 8, .layout = 3, .dtype = 5, .tp_rank = 1,
			.tp_degree = 2, .shift = 1, .token_bytes = 4096, .planes = 2,
		},
	};
}

static struct hawk_header a_header(void)
{
	struct hawk_record r = a_record();
	struct hawk_header h = {
		.epoch = EPOCH, .gen = (7ull << 40) + 77, .model_id = r.owner.model_id,
		.space = hawk_identity_hash(&r.owner), .tok = 4096, .bytes = 65536,
		.crc = 0xdeadbeef, .slot = 5, .layer = 31, .head = 7, .hints = 0x2a, .turn = 12,
	};
	u32 i;

	for (i = 0; i < HAWK_KEY_BYTES; i++) {
		h.key[i] = 0x40 + i;
		h.parent[i] = 0x60 + i;
	}
	return h;
}

/* ---- golden bytes ---- */

static void superblock_is_these_bytes(void **state)
{
	struct hawk_super s = a_super(), got;

	(void)state;
	from_hex(super_bytes, want);
	hawk_super_encode(&s, page);
	assert_memory_equal(page, want, sizeof(page));
	assert_int_equal(hawk_super_decode(want, &got), 0);
	assert_memory_equal(got.uuid, s.uuid, sizeof(s.uuid));
	assert_int_equal(got.seq, 7);
	assert_int_equal(got.bytes, 1 << 30);
	assert_int_equal(got.chunks, 506);
	assert_int_equal(got.slot_bytes, 16384);
	assert_int_equal(got.record_off, 69632);
	assert_int_equal(got.header_off, 200704);
	assert_int_equal(got.data_off, 10485760);
	assert_int_equal(got.rated, s.rated);
	assert_int_equal(got.written, s.written);
	assert_int_equal(got.created, s.created);
	assert_true(got.clean);
	assert_int_equal(hawk_pool_id(&got), POOL);
}

static void mark_is_these_bytes(void **state)
{
	u32 i;

	(void)state;
	memset(want, 0, sizeof(want));
	from_hex(plain_bytes, want);
	hawk_plain_encode(page);
	assert_memory_equal(page, want, sizeof(page));
	assert_true(hawk_plain_marked(want));
	for (i = 0; i < 8 * HAWK_POOL_PAGE; i++) {
		page[i / 8] ^= 1u << i % 8;
		assert_false(hawk_plain_marked(page));
		page[i / 8] ^= 1u << i % 8;
	}
}

/* Payload and mark never meet, and the next one who looks finds the mark. */
static void mark_is_no_payload(void **state)
{
	static const u64 size[] = {
		0, 4095, 4096, 8192, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, (2 << 20) + 4096,
		(4 << 20) - 4096, 4 << 20, (4 << 20) + 100, (5 << 20) + 100, 1ull << 40,
		(1ull << 40) + 4096,
	};
	u64 mark, after, bytes;
	u32 i, file, chunks;

	(void)state;
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		for (file = 0; file < 2; file++)
			for (bytes = 0; bytes <= size[i] && bytes <= 6 << 20; bytes += 2 << 20) {
				mark = hawk_plain_layout(size[i], bytes, file, &chunks);
				if (!chunks)
					continue;
				after = mark + HAWK_POOL_PAGE > size[i] ? mark + HAWK_POOL_PAGE : size[i];
				assert_true((u64)chunks << 21 <= mark);
				assert_true(file || after == size[i]);
				assert_int_equal(hawk_plain_off(after), mark);
				/* a file has as many chunks as it always had */
				assert_true(!file || chunks == (bytes ? bytes : size[i]) >> 21);
				assert_true(file || chunks + 1 >= (bytes ? bytes : size[i]) >> 21);
			}
	hawk_plain_layout(2 << 20, 0, true, &chunks);
	assert_int_equal(chunks, 1);
	hawk_plain_layout(64 << 20, 0, false, &chunks);
	assert_int_equal(chunks, 31);
	hawk_plain_layout((64 << 20) + 4096, 0, false, &chunks);
	assert_int_equal(chunks, 32);
}

static void record_is_these_bytes(void **state)
{
	struct hawk_record r = a_record(), got;

	(void)state;
	from_hex(record_bytes, want);
	hawk_record_encode(&r, POOL, page);
	assert_memory_equal(page, want, HAWK_RECORD_BYTES);
	assert_int_equal(hawk_record_decode(want, POOL, 9, &got), 0);
	assert_true(hawk_identity_same(&got.owner, &r.owner));
	assert_int_equal(got.epoch, r.epoch);
	assert_int_equal(got.chunk, 9);
	assert_true(got.kept);
	assert_int_equal(got.space, hawk_identity_hash(&r.owner));
}

static void header_is_these_bytes(void **state)
{
	struct hawk_header h = a_header(), got;
	struct hawk_record r;

	(void)state;
	from_hex(record_bytes, page);
	assert_int_equal(hawk_record_decode(page, POOL, 9, &r), 0);
	from_hex(header_bytes, want);
	hawk_header_encode(&h, POOL, page);
	assert_memory_equal(page, want, HAWK_HEADER_BYTES);
	assert_int_equal(hawk_header_decode(want, POOL, &r, 5, &got), 0);
	assert_memory_equal(got.key, h.key, HAWK_KEY_BYTES);
	assert_memory_equal(got.parent, h.parent, HAWK_KEY_BYTES);
	assert_int_equal(got.gen, h.gen);
	assert_int_equal(got.crc, h.crc);
	assert_int_equal(got.tok, h.tok);
	assert_int_equal(got.layer, 31);
	assert_int_equal(got.head, 7);
	assert_int_equal(got.hints, 0x2a);
	assert_int_equal(got.turn, 12);
}

/* ---- flips ---- */

static void every_bit_of_a_superblock_counts(void **state)
{
	struct hawk_super s = a_super(), got;
	u32 bit;

	(void)state;
	hawk_super_encode(&s, page);
	for (bit = 0; bit < 8 * sizeof(page); bit++) {
		page[bit / 8] ^= 1u << bit % 8;
		/* without its first 8 bytes it is none at all */
		assert_int_equal(hawk_super_decode(page, &got), bit < 64 ? -ENOENT : -EILSEQ);
		page[bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(hawk_super_decode(page, &got), 0);
}

static void every_bit_of_a_record_counts(void **state)
{
	struct hawk_record r = a_record(), got;
	u32 bit;

	(void)state;
	hawk_record_encode(&r, POOL, page);
	for (bit = 0; bit < 8 * HAWK_RECORD_BYTES; bit++) {
		page[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(hawk_record_decode(page, POOL, 9, &got), -EILSEQ);
		page[bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(hawk_record_decode(page, POOL, 9, &got), 0);
	assert_int_equal(hawk_record_decode(page, POOL, 8, &got), -EILSEQ);
	assert_int_equal(hawk_record_decode(page, POOL + 1, 9, &got), -ENOENT);
	memset(page, 0, HAWK_RECORD_BYTES);
	assert_int_equal(hawk_record_decode(page, POOL, 9, &got), -ENOENT);
}

static struct hawk_record decoded(const struct hawk_record *r)
{
	u8 p[HAWK_RECORD_BYTES];
	struct hawk_record got;

	hawk_record_encode(r, POOL, p);
	assert_int_equal(hawk_record_decode(p, POOL, r->chunk, &got), 0);
	return got;
}

static void every_bit_of_a_header_counts(void **state)
{
	struct hawk_record r = a_record();
	struct hawk_header h = a_header(), got;
	u32 bit;

	(void)state;
	r = decoded(&r);
	hawk_header_encode(&h, POOL, page);
	for (bit = 0; bit < 8 * HAWK_HEADER_BYTES; bit++) {
		page[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(hawk_header_decode(page, POOL, &r, 5, &got), -EILSEQ);
		page[bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(hawk_header_decode(page, POOL, &r, 5, &got), 0);
}

/* A whole header that is not of this slot, time, pool or space. */
static void header_of_another_is_refused(void **state)
{
	struct hawk_record r = a_record(), other = r;
	struct hawk_header h = a_header(), got;

	(void)state;
	r = decoded(&r);
	hawk_header_encode(&h, POOL, page);
	assert_int_equal(hawk_header_decode(page, POOL, &r, 4, &got), -EILSEQ);
	assert_int_equal(hawk_header_decode(page, POOL + 1, &r, 5, &got), -ESTALE);
	other.epoch++;
	other = decoded(&other);
	assert_int_equal(hawk_header_decode(page, POOL, &other, 5, &got), -ESTALE);
	other = a_record();
	other.owner.uid++;
	other = decoded(&other);
	assert_int_equal(hawk_header_decode(page, POOL, &other, 5, &got), -EILSEQ);
	other = a_record();
	other.kept = false;
	other = decoded(&other);
	assert_int_equal(hawk_header_decode(page, POOL, &other, 5, &got), -EILSEQ);
	h.bytes -= 4096;
	hawk_header_encode(&h, POOL, page);
	assert_int_equal(hawk_header_decode(page, POOL, &r, 5, &got), -EILSEQ);
	h = a_header();
	h.layer = 32;
	hawk_header_encode(&h, POOL, page);
	assert_int_equal(hawk_header_decode(page, POOL, &r, 5, &got), -EILSEQ);
	h = a_header();
	memset(h.key, 0, sizeof(h.key));
	hawk_header_encode(&h, POOL, page);
	assert_int_equal(hawk_header_decode(page, POOL, &r, 5, &got), -EILSEQ);
	memset(page, 0, HAWK_HEADER_BYTES);
	assert_int_equal(hawk_header_decode(page, POOL, &r, 5, &got), -ENOENT);
}

/* Each member of an identity makes another space, and another hash. */
static void identity_is_all_of_its_members(void **state)
{
	struct hawk_identity id = a_record().owner, other;
	u8 *p = (u8 *)&other;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(id); i++) {
		other = id;
		p[i] ^= 0x80;
		assert_false(hawk_identity_same(&id, &other));
		assert_true(hawk_identity_hash(&id) != hawk_identity_hash(&other));
	}
	assert_true(hawk_identity_same(&id, &id));
}

/* What lies where in a block is part of it. */
static void identity_has_the_rows(void **state)
{
	struct hawk_space_create c = { .block_bytes = 65536, .token_bytes = 128, .planes = 1 };
	struct hawk_identity a, b;

	(void)state;
	hawk_identity_of(&c, 0, &a);
	c.token_bytes = 64;
	hawk_identity_of(&c, 0, &b);
	assert_false(hawk_identity_same(&a, &b));
	c.token_bytes = 128;
	c.planes = 2;
	hawk_identity_of(&c, 0, &b);
	assert_false(hawk_identity_same(&a, &b));
}

/* ---- superblocks ---- */

/* A sealed superblock whose figures make no pool. */
static void areas_that_are_elsewhere_are_refused(void **state)
{
	struct hawk_super good = a_super(), s, got;
	u32 i;

	(void)state;
	for (i = 0; i < 6; i++) {
		s = good;
		switch (i) {
		case 0: s.chunks++; break;
		case 1: s.record_off += 4096; break;
		case 2: s.header_off -= 4096; break;
		case 3: s.data_off -= HAWK_CHUNK_BYTES; break;
		case 4: s.slot_bytes = 12288; break;
		default: s.bytes -= 1; break;
		}
		hawk_super_encode(&s, page);
		assert_int_equal(hawk_super_decode(page, &got), -EUCLEAN);
	}
}

static void later_versions_are_refused(void **state)
{
	struct hawk_super s = a_super(), got;
	u32 crc;

	(void)state;
	hawk_super_encode(&s, page);
	page[8] = HAWK_POOL_VERSION + 1;
	memset(page + 12, 0, 4);
	crc = ~hawk_crc32c_more(~0u, page, sizeof(page));
	memcpy(page + 12, &crc, 4);
	assert_int_equal(hawk_super_decode(page, &got), -EPROTONOSUPPORT);
}

static void newer_whole_superblock_counts(void **state)
{
	struct hawk_super s[2] = { a_super(), a_super() };

	(void)state;
	s[1].seq++;
	assert_int_equal(hawk_super_choose((int[]){ 0, 0 }, s), 1);
	assert_int_equal(hawk_super_choose((int[]){ 0, -EILSEQ }, s), 0);
	assert_int_equal(hawk_super_choose((int[]){ -EILSEQ, 0 }, s), 1);
	assert_int_equal(hawk_super_choose((int[]){ -ENOENT, 0 }, s), 1);
	assert_int_equal(hawk_super_choose((int[]){ -ENOENT, -EILSEQ }, s), -EILSEQ);
	assert_int_equal(hawk_super_choose((int[]){ -ENOENT, -ENOENT }, s), -ENOENT);
	s[1].seq = s[0].seq;
	assert_int_equal(hawk_super_choose((int[]){ 0, 0 }, s), 0);
}

/* Areas do not overlap, end with the pool, and one chunk more would not fit. */
static void layout_fits(void **state)
{
	static const u64 sizes[] = {
		5ull << 20, 6ull << 20, (64ull << 20) + 4095, 1ull << 30, 15360000000000ull,
		1ull << 50,
	};
	struct hawk_super s;
	u32 i, slot;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		for (slot = 4096; slot <= 65536; slot *= 2) {
			s = (struct hawk_super){ .bytes = sizes[i], .slot_bytes = slot };
			assert_int_equal(hawk_super_layout(&s), 0);
			assert_true(s.chunks >= 1);
			assert_int_equal(s.bytes % 4096, 0);
			assert_true(hawk_super_copy_off(1) + HAWK_POOL_PAGE <= s.record_off);
			assert_true(hawk_record_off(&s, s.chunks) <= s.header_off);
			assert_true(hawk_header_off(&s, s.chunks) <= s.data_off);
			assert_int_equal(s.header_off % 4096, 0);
			assert_int_equal(s.data_off % HAWK_CHUNK_BYTES, 0);
			/* its last page is no block's: hawk_plain_off() */
			assert_true(s.data_off + (u64)s.chunks * HAWK_CHUNK_BYTES <=
				    hawk_plain_off(s.bytes));
			assert_true(s.chunks == 0x7fffffff || s.bytes <
				    s.data_off + (s.chunks + 2ull) * HAWK_CHUNK_BYTES + 4096);
		}
	s = (struct hawk_super){ .bytes = 4 << 20, .slot_bytes = 16384 };
	assert_int_equal(hawk_super_layout(&s), -ENOSPC);
	s = (struct hawk_super){ .bytes = 1 << 30, .slot_bytes = 2048 };
	assert_int_equal(hawk_super_layout(&s), -EINVAL);
	s = (struct hawk_super){ .bytes = 1 << 30, .slot_bytes = 131072 };
	assert_int_equal(hawk_super_layout(&s), -EINVAL);
	s = (struct hawk_super){ .bytes = 1 << 30, .slot_bytes = 20480 };
	assert_int_equal(hawk_super_layout(&s), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(superblock_is_these_bytes),
		cmocka_unit_test(mark_is_these_bytes),
		cmocka_unit_test(mark_is_no_payload),
		cmocka_unit_test(record_is_these_bytes),
		cmocka_unit_test(header_is_these_bytes),
		cmocka_unit_test(every_bit_of_a_superblock_counts),
		cmocka_unit_test(every_bit_of_a_record_counts),
		cmocka_unit_test(every_bit_of_a_header_counts),
		cmocka_unit_test(header_of_another_is_refused),
		cmocka_unit_test(identity_is_all_of_its_members),
		cmocka_unit_test(identity_has_the_rows),
		cmocka_unit_test(areas_that_are_elsewhere_are_refused),
		cmocka_unit_test(later_versions_are_refused),
		cmocka_unit_test(newer_whole_superblock_counts),
		cmocka_unit_test(layout_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
