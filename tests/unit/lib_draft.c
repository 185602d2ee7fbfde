// SPDX-License-Identifier: MIT
/*
 * lib_draft.c - draft rings: what is accepted is what was drafted, and stays
 */
#include <pthread.h>
#include <stdlib.h>

#include "libfixture.h"

#define MIB		(1ull << 20)
#define TOKENS_MAX	640u
#define ROWS		(TOKENS_MAX / FX_TOKENS)
#define ROW_BLOCKS	(FX_LAYERS * 2)
#define PLANES		2u
#define TOKEN_BYTES	(FX_BLOCK / PLANES / FX_TOKENS)
#define SEED		20261130u

static const struct hawk_draft_params params = {
	.slots = 40, .planes = PLANES, .token_bytes = TOKEN_BYTES,
};

/* A sequence's blocks and, for each token, which of its versions is in them. */
struct seq {
	struct fx f;
	struct hawk_drafts *d;
	void *addr[ROWS * ROW_BLOCKS];
	uint32_t version[TOKENS_MAX];
	uint32_t n;
	uint64_t rng;
};

static uint32_t below(struct seq *s, uint32_t n)
{
	s->rng ^= s->rng >> 12;
	s->rng ^= s->rng << 25;
	s->rng ^= s->rng >> 27;
	return (uint32_t)((s->rng * 2685821657736338717ull >> 33) % n);
}

/* The bytes of a token in plane @plane of block @index of its row. */
static void token_bytes(uint8_t *to, uint32_t tok, uint32_t version, uint32_t index,
			uint32_t plane)
{
	uint32_t x = (tok * 2654435761u) ^ (version * 40503u) ^ (index << 8 | plane), i;

	for (i = 0; i < TOKEN_BYTES; i++)
		to[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
}

static uint8_t *place(void *block, uint32_t slot, uint32_t plane)
{
	return (uint8_t *)block + (plane * FX_TOKENS + slot) * TOKEN_BYTES;
}

static void write_token(struct seq *s, void *const *row, uint32_t slot, uint32_t tok,
			uint32_t version)
{
	uint32_t i, p;

	(void)s;
	for (i = 0; i < ROW_BLOCKS; i++)
		for (p = 0; p < PLANES; p++)
			token_bytes(place(row[i], slot, p), tok, version, i, p);
}

static bool is_token(void *const *row, uint32_t slot, uint32_t tok, uint32_t version)
{
	uint8_t want[TOKEN_BYTES];
	uint32_t i, p;

	for (i = 0; i < ROW_BLOCKS; i++)
		for (p = 0; p < PLANES; p++) {
			token_bytes(want, tok, version, i, p);
			if (memcmp(place(row[i], slot, p), want, TOKEN_BYTES))
				return false;
		}
	return true;
}

static void ring_row(const struct seq *s, uint32_t slot, void **row)
{
	uint32_t i;

	for (i = 0; i < ROW_BLOCKS; i++)
		row[i] = hawk_draft_block(s->d, slot / FX_TOKENS, i);
}

static void seq_open(struct seq *s)
{
	struct hawk_item it;
	uint32_t r, i;

	memset(s, 0, sizeof(*s));
	s->rng = SEED;
	fx_open(&s->f, 32 * MIB, 0);
	for (r = 0; r < ROWS; r++)
		for (i = 0; i < ROW_BLOCKS; i++) {
			it = (struct hawk_item) {
				.lid = HAWK_LID(1, i / 2, i % 2, r * FX_TOKENS),
			};
			assert_int_equal(hawk_alloc(s->f.kv, &it, 1, NULL), 1);
			s->addr[r * ROW_BLOCKS + i] = hawk_addr(s->f.kv, it.vt);
		}
	assert_ok(hawk_draft_open(s->f.kv, &params, &s->d));
}

static void seq_close(struct seq *s)
{
	hawk_draft_close(s->d);
	fx_close(&s->f);
}

/* Drafts @n tokens of a version that no other draft has. */
static uint32_t draft(struct seq *s, uint32_t n, uint32_t version)
{
	void *row[ROW_BLOCKS];
	uint32_t i;
	int slot;

	for (i = 0; i < n && s->n + i < TOKENS_MAX; i++) {
		slot = hawk_draft_slot(s->d);
		assert_int_equal(slot, (s->n + i) % hawk_draft_slots(s->d));
		ring_row(s, (uint32_t)slot, row);
		write_token(s, row, (uint32_t)slot % FX_TOKENS, s->n + i, version);
	}
	return i;
}

static void accept(struct seq *s, uint32_t n, uint32_t version)
{
	uint32_t i;

	assert_int_equal(hawk_draft_accept(s->d, n, s->addr, s->n), 0);
	for (i = 0; i < n; i++)
		s->version[s->n + i] = version;
	s->n += n;
}

static void check_blocks(struct seq *s)
{
	uint32_t t;

	for (t = 0; t < s->n; t++)
		if (!is_token(s->addr + t / FX_TOKENS * ROW_BLOCKS, t % FX_TOKENS, t,
			      s->version[t]))
			fail_msg("token %u of %u is not the one accepted, seed %u", t, s->n, SEED);
}

static void accepted_is_what_was_drafted(void **state)
{
	struct seq *s = malloc(sizeof(*s));
	uint32_t round, drafted, n;

	(void)state;
	seq_open(s);
	for (round = 1; s->n < TOKENS_MAX; round++) {
		drafted = draft(s, 1 + below(s, below(s, 4) ? 5 : 48), round);
		n = below(s, drafted + 1);
		if (n)
			accept(s, n, round);
		else
			hawk_draft_reject(s->d);
		assert_int_equal(hawk_draft_head(s->d), s->n);
	}
	check_blocks(s);
	assert_true(round > 100);
	seq_close(s);
	free(s);
}

static void a_ring_has_its_slots(void **state)
{
	struct seq *s = malloc(sizeof(*s));

	(void)state;
	seq_open(s);
	assert_int_equal(hawk_draft_slots(s->d), 48);
	assert_int_equal(hawk_draft_accept(s->d, 1, s->addr, 0), -EINVAL);
	assert_int_equal(draft(s, 48, 1), 48);
	assert_int_equal(hawk_draft_slot(s->d), -ENOSPC);
	assert_int_equal(hawk_draft_accept(s->d, 49, s->addr, 0), -EINVAL);
	hawk_draft_reject(s->d);
	assert_int_equal(draft(s, 48, 2), 48);
	accept(s, 48, 2);
	check_blocks(s);
	assert_int_equal(draft(s, 3, 3), 3);
	accept(s, 2, 3);
	assert_int_equal(hawk_draft_accept(s->d, 1, s->addr, s->n), -EINVAL);
	check_blocks(s);
	seq_close(s);
	free(s);
}

static void wrong_arguments(void **state)
{
	static const struct hawk_draft_params bad[] = {
		{ .slots = 0, .planes = PLANES, .token_bytes = TOKEN_BYTES },
		{ .slots = 16, .planes = 0, .token_bytes = TOKEN_BYTES },
		{ .slots = 16, .planes = PLANES, .token_bytes = 0 },
		{ .slots = 16, .planes = PLANES + 1, .token_bytes = TOKEN_BYTES },
		{ .slots = 16, .planes = 1, .token_bytes = 1u << 28 },
		{ .slots = 16, .planes = 1u << 28, .token_bytes = TOKEN_BYTES },
		{ .slots = 16 },	/* the space knows of no planes */
	};
	struct hawk_draft_params p = params;
	struct hawk_drafts *d;
	struct fx f;
	size_t i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(hawk_draft_open(f.kv, &bad[i], &d), -EINVAL);
		assert_null(d);
	}
	p.slots = ~0u;
	assert_int_equal(hawk_draft_open(f.kv, &p, &d), -E2BIG);
	p = params;
	p.seq = 0x10000;	/* the space has none */
	assert_int_equal(hawk_draft_open(f.kv, &p, &d), -EOPNOTSUPP);
	hawk_draft_close(NULL);
	fx_close(&f);
}

/* Planes that the space was made with need not be told again. */
static void layout_of_the_space(void **state)
{
	static uint8_t kept[ROW_BLOCKS][FX_BLOCK], want[FX_BLOCK];
	struct hawk_draft_params p = { .slots = FX_TOKENS };
	struct hawk_kv_params kp;
	void *addr[ROW_BLOCKS];
	struct hawk_drafts *d;
	struct hawk_kv *kv;
	uint32_t i, plane;
	struct fx f;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	kp = fx_params(&f);
	kp.quota[f.dram].max_bytes = 2 * MIB;
	kp.seqs = 1;
	kp.planes = PLANES;
	kp.token_bytes = TOKEN_BYTES / 2;	/* so blocks have something behind their planes */
	assert_ok(hawk_kv_create(f.h, &kp, &kv));
	assert_ok(hawk_draft_open(kv, &p, &d));
	memset(want, 0, sizeof(want));
	for (i = 0; i < ROW_BLOCKS; i++)
		addr[i] = memset(kept[i], 0, FX_BLOCK);
	for (i = 0; i < ROW_BLOCKS; i++)
		memset(hawk_draft_block(d, 0, i), 7, FX_BLOCK);
	assert_int_equal(hawk_draft_slot(d), 0);
	assert_ok(hawk_draft_accept(d, 1, addr, 0));
	for (plane = 0; plane < PLANES; plane++)
		memset(want + plane * FX_TOKENS * (TOKEN_BYTES / 2), 7, TOKEN_BYTES / 2);
	for (i = 0; i < ROW_BLOCKS; i++)
		assert_memory_equal(kept[i], want, FX_BLOCK);
	hawk_draft_close(d);
	hawk_kv_close(kv);
	fx_close(&f);
}

/* As many as a handle may have, small ones; the next is refused until one has ended. */
static void rings_are_counted(void **state)
{
	static struct hawk_drafts *d[HAWK_DRAFTS_MAX + 1];
	struct hawk_draft_params p = { .slots = 1, .planes = 1, .token_bytes = 256 };
	struct hawk_kv_params kp;
	struct hawk_kv *kv;
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	kp = fx_params(&f);
	kp.block_bytes = 4096;
	kp.layers = 1;
	kp.head_groups = 1;
	assert_ok(hawk_kv_create(f.h, &kp, &kv));
	for (i = 0; i < HAWK_DRAFTS_MAX; i++)
		assert_ok(hawk_draft_open(kv, &p, &d[i]));
	assert_int_equal(hawk_draft_open(kv, &p, &d[i]), -ENOSPC);
	hawk_draft_close(d[7]);
	assert_ok(hawk_draft_open(kv, &p, &d[7]));
	for (i = 0; i < HAWK_DRAFTS_MAX; i++)
		hawk_draft_close(d[i]);
	hawk_kv_close(kv);
	fx_close(&f);
}

/* A ring's memory comes zeroed, whatever the one before it held. */
static void memory_is_zeroed(void **state)
{
	static const uint8_t zero[FX_BLOCK];
	struct seq *s = malloc(sizeof(*s));
	struct hawk_drafts *d;
	uint32_t i;

	(void)state;
	seq_open(s);
	draft(s, 48, 1);
	hawk_draft_close(s->d);
	assert_ok(hawk_draft_open(s->f.kv, &params, &d));
	assert_int_equal(hawk_draft_head(d), 0);
	for (i = 0; i < 3 * ROW_BLOCKS; i++)
		assert_memory_equal(hawk_draft_block(d, i / ROW_BLOCKS, i % ROW_BLOCKS), zero,
				    FX_BLOCK);
	s->d = d;
	seq_close(s);
	free(s);
}

/*
 * A sequence of the device: what is accepted in its ring is visible when it is asked for,
 * with the bytes that were drafted, and not before; what is rejected never is.
 */
static void accepted_becomes_visible(void **state)
{
	struct seq *s = malloc(sizeof(*s));
	struct hawk_item it[(TOKENS_MAX / FX_TOKENS + 2) * ROW_BLOCKS];
	struct hawk_append room = { .len = 60, .flags = HAWK_APPEND_HIDDEN, .it = it,
				    .max = sizeof(it) / sizeof(it[0]) };
	struct hawk_draft_params p = params;
	struct hawk_kv_params kp;
	struct hawk_seq_map map;
	struct hawk_drafts *other;
	struct hawk_seg seg;
	uint32_t i, n = 0;

	(void)state;
	memset(s, 0, sizeof(*s));
	s->rng = SEED;
	fx_open(&s->f, 32 * MIB, 0);
	hawk_kv_close(s->f.kv);
	kp = fx_params(&s->f);
	kp.seqs = 4;
	kp.planes = PLANES;
	kp.token_bytes = TOKEN_BYTES;
	assert_ok(hawk_kv_create(s->f.h, &kp, &s->f.kv));
	assert_ok(hawk_seq_new(s->f.kv, 0, &room.seq));
	assert_ok(hawk_seq_append(s->f.kv, &room));
	for (i = 0; i < room.n; i++)
		s->addr[i] = hawk_addr(s->f.kv, it[i].vt);
	p.seq = room.seq + 1;
	assert_int_equal(hawk_draft_open(s->f.kv, &p, &s->d), -ENOENT);
	p.seq = room.seq;
	assert_ok(hawk_draft_open(s->f.kv, &p, &s->d));
	assert_int_equal(hawk_draft_open(s->f.kv, &p, &other), -EBUSY);
	while (s->n < 50) {
		assert_int_equal(draft(s, 7, ++n), 7);
		i = below(s, 8);
		if (i)
			accept(s, i, n);
		else
			hawk_draft_reject(s->d);
		assert_int_equal(hawk_seq_segs(s->f.kv, room.seq, &seg, 1, &map), s->n ? 1 : 0);
		assert_int_equal(map.len, s->n);
		assert_int_equal(map.hidden, 60 - s->n);
		assert_true(!s->n || (seg.len == s->n && seg.tok == room.tok));
	}
	check_blocks(s);
	hawk_draft_close(s->d);
	assert_int_equal(hawk_seq_truncate(s->f.kv, room.seq, s->n) >= 0, 1);
	assert_ok(hawk_draft_open(s->f.kv, &p, &s->d));
	seq_close(s);
	free(s);
}

static void *open_and_close(void *arg)
{
	struct hawk_drafts *d;
	int i;

	for (i = 0; i < 200; i++) {
		assert_ok(hawk_draft_open(arg, &params, &d));
		assert_true(hawk_draft_slot(d) == 0);
		hawk_draft_close(d);
	}
	return NULL;
}

static void rings_of_threads(void **state)
{
	pthread_t th[4];
	struct fx f;
	int i;

	(void)state;
	fx_open(&f, 4 * MIB, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&th[i], NULL, open_and_close, f.kv), 0);
	for (i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted_is_what_was_drafted),
		cmocka_unit_test(a_ring_has_its_slots),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(layout_of_the_space),
		cmocka_unit_test(rings_are_counted),
		cmocka_unit_test(memory_is_zeroed),
		cmocka_unit_test(accepted_becomes_visible),
		cmocka_unit_test(rings_of_threads),
	};

	return cmocka_run_group_tests_name("lib_draft", tests, NULL, NULL);
}
