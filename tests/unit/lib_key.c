// SPDX-License-Identifier: MIT
/*
 * lib_key.c - keys of blocks: the test vector of hawk_key(3), and every field counts
 *
 * The vector was computed by another implementation of BLAKE2b (Python's hashlib)
 * from the table of the manual page; tests/e2e/keys.t does it again.
 */
#include <errno.h>
#include <stdio.h>

#include "libfixture.h"

static const char root_hex[] = "49e36c3fe81a369716274976c7cff6dcd85d72252972a9a62e9afb84595cc97a";
static const char key0_hex[] = "74056ab6eecac0a42d4c024ea60911fbfe088c53ffc2c53acd0b19982d1575cd";
static const char key1_hex[] = "415f8fd2cc28c45acb981eb68a6a552433faf97921bc12027e6d29900e37f75b";
static const char sparse_hex[] = "321761cc2f61a1920d472b060cd4d78aa71d0dda493751d21e4e7ad53c603784";

static const int32_t tokens[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const struct hawk_key_op ops[] = {
	{ .kind = HAWK_KEY_DROP, .at = 6, .start = 1, .end = 3 },
	{ .kind = HAWK_KEY_REPOS, .at = 6, .start = 3, .end = 6, .shift = 2 },
};
static const struct hawk_key_op sparse = {
	.kind = HAWK_KEY_SPARSE, .at = 4, .start = 2, .end = 3, .shift = 16,
};

static struct hawk_key_params params(void)
{
	return (struct hawk_key_params){
		.salt = "tenant 7", .salt_len = 8, .model = "llama-1b", .revision = "1",
		.dtype = "f16", .layout = "lhtd avx2", .block_tokens = 4,
	};
}

static void same_hex(const uint8_t key[HAWK_KEY_BYTES], const char *hex)
{
	char got[2 * HAWK_KEY_BYTES + 1];
	unsigned int i;

	for (i = 0; i < HAWK_KEY_BYTES; i++)
		snprintf(got + 2 * i, 3, "%02x", key[i]);
	assert_string_equal(got, hex);
}

static void vector(void **state)
{
	struct hawk_key_params p = params();
	uint8_t root[HAWK_KEY_BYTES], first[HAWK_KEY_BYTES], key[HAWK_KEY_BYTES];

	(void)state;
	assert_int_equal(hawk_key_root(&p, root), 0);
	same_hex(root, root_hex);
	hawk_key_next(root, NULL, tokens, 4, NULL, 0, first);
	same_hex(first, key0_hex);
	hawk_key_next(root, first, tokens + 4, 4, ops, 2, key);
	same_hex(key, key1_hex);
	hawk_key_next(root, first, tokens + 4, 4, &sparse, 1, key);
	same_hex(key, sparse_hex);
}

#define N_KEYS 64u

struct keys {
	uint8_t key[N_KEYS][HAWK_KEY_BYTES];
	unsigned int n;
};

/* A key that was seen before means that two different inputs are taken for one. */
static void add_new(struct keys *k, const uint8_t key[HAWK_KEY_BYTES])
{
	unsigned int i;

	for (i = 0; i < k->n; i++)
		if (!memcmp(k->key[i], key, HAWK_KEY_BYTES))
			fail_msg("keys %u and %u are the same", i, k->n);
	assert_true(k->n < N_KEYS);
	memcpy(k->key[k->n++], key, HAWK_KEY_BYTES);
}

static void add_root(struct keys *k, const struct hawk_key_params *p)
{
	uint8_t root[HAWK_KEY_BYTES];

	assert_int_equal(hawk_key_root(p, root), 0);
	add_new(k, root);
}

/* Neighbours that a sloppy encoding would take for each other are among them. */
static void fields_of_root(void **state)
{
	static char long_salt[HAWK_KEY_TEXT_MAX];
	struct keys k = { .n = 0 };
	struct hawk_key_params p = params();

	(void)state;
	add_root(&k, &p);
	p.salt_len = 7, add_root(&k, &p);
	p.salt_len = 0, add_root(&k, &p);
	p.salt = "\0", p.salt_len = 1, add_root(&k, &p);
	p.salt = long_salt, p.salt_len = sizeof(long_salt), add_root(&k, &p);
	p = params(), p.model = "llama-1b1", p.revision = "", add_root(&k, &p);
	p = params(), p.model = "llama-1", p.revision = "b1", add_root(&k, &p);
	p = params(), p.revision = NULL, add_root(&k, &p);
	p = params(), p.dtype = "f32", add_root(&k, &p);
	p = params(), p.layout = "lhtd avx512", add_root(&k, &p);
	p = params(), p.layout = "", p.adapter = "lhtd avx2", add_root(&k, &p);
	p = params(), p.adapter = "a", add_root(&k, &p);
	p = params(), p.block_tokens = 8, add_root(&k, &p);
	p = params(), p.shard_count = 1, add_root(&k, &p);
	p = params(), p.shard_count = 2, add_root(&k, &p);
	p.shard = 1, add_root(&k, &p);
	assert_int_equal(k.n, 16);
}

static void fields_of_block(void **state)
{
	struct hawk_key_params p = params();
	uint8_t root[HAWK_KEY_BYTES], other[HAWK_KEY_BYTES], key[HAWK_KEY_BYTES];
	const uint8_t zero[HAWK_KEY_BYTES] = { 0 };
	struct hawk_key_op o[2];
	struct keys k = { .n = 0 };
	unsigned int i;

#define ADD(root, parent, tok, n, op, n_op)                             \
	do {                                                            \
		hawk_key_next(root, parent, tok, n, op, n_op, key);     \
		add_new(&k, key);                                       \
	} while (0)

	(void)state;
	assert_int_equal(hawk_key_root(&p, root), 0);
	p.salt_len--;
	assert_int_equal(hawk_key_root(&p, other), 0);
	ADD(root, NULL, tokens, 4, NULL, 0);
	ADD(other, NULL, tokens, 4, NULL, 0);
	ADD(root, zero, tokens, 4, NULL, 0);
	ADD(root, root, tokens, 4, NULL, 0);
	ADD(root, NULL, tokens + 1, 4, NULL, 0);
	ADD(root, NULL, tokens, 3, NULL, 0);
	ADD(root, NULL, tokens, 4, ops, 1);
	ADD(root, NULL, tokens, 4, ops, 2);
	for (i = 0; i < 10; i++) {
		memcpy(o, ops, sizeof(o));
		((uint32_t *)o)[i]++;
		ADD(root, NULL, tokens, 4, o, 2);
	}
	o[0] = ops[1];
	o[1] = ops[0];
	ADD(root, NULL, tokens, 4, o, 2); /* order counts */
#undef ADD
	assert_int_equal(k.n, 19);
}

/* Long blocks are encoded in pieces: the cut must not show. */
static void many_tokens(void **state)
{
	static int32_t t[1024];
	struct hawk_key_params p = params();
	uint8_t root[HAWK_KEY_BYTES], key[HAWK_KEY_BYTES];
	struct keys k = { .n = 0 };
	unsigned int n;

	(void)state;
	assert_int_equal(hawk_key_root(&p, root), 0);
	for (n = 254; n < 260; n++) {
		hawk_key_next(root, NULL, t, n, NULL, 0, key);
		add_new(&k, key);
	}
	t[1023] = -1;
	hawk_key_next(root, NULL, t, 1024, NULL, 0, key);
	add_new(&k, key);
}

static void refused(void **state)
{
	static char text[HAWK_KEY_TEXT_MAX + 2];
	struct hawk_key_params p = params();
	uint8_t root[HAWK_KEY_BYTES];

	(void)state;
	p.model = NULL;
	assert_int_equal(hawk_key_root(&p, root), -EINVAL);
	p.model = "";
	assert_int_equal(hawk_key_root(&p, root), -EINVAL);
	p = params(), p.block_tokens = 0;
	assert_int_equal(hawk_key_root(&p, root), -EINVAL);
	p = params(), p.shard = 1;
	assert_int_equal(hawk_key_root(&p, root), -EINVAL);
	p.shard_count = 1;
	assert_int_equal(hawk_key_root(&p, root), -EINVAL);
	p = params(), p.salt = NULL;
	assert_int_equal(hawk_key_root(&p, root), -EINVAL);
	p = params(), p.salt_len = HAWK_KEY_TEXT_MAX + 1;
	assert_int_equal(hawk_key_root(&p, root), -E2BIG);
	memset(text, 'x', HAWK_KEY_TEXT_MAX + 1);
	p = params(), p.adapter = text;
	assert_int_equal(hawk_key_root(&p, root), -E2BIG);
	text[HAWK_KEY_TEXT_MAX] = 0;
	assert_int_equal(hawk_key_root(&p, root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector),
		cmocka_unit_test(fields_of_root),
		cmocka_unit_test(fields_of_block),
		cmocka_unit_test(many_tokens),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests_name("lib_key", tests, NULL, NULL);
}
