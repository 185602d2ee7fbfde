// SPDX-License-Identifier: MIT
/*
 * key.c - content keys: what a block's bytes depend on, in 32 bytes
 *
 * A key must name everything that the bytes of a block depend on, or one session
 * is served what another one computed differently.  hawk_key_root() takes what is
 * the same for all blocks of a model and a tenant, hawk_key_next() the history:
 * the key of the block before, the tokens, the operations so far.  The bytes that
 * are hashed are written down in hawk_key(3); every field has a fixed width or
 * its length in front, so two different inputs never give the same bytes.
 *
 * No process seed, no clock, no address goes in: a key is the same in every
 * process and after every restart.  The seed of the engine's hash table
 * (hash_seed) is another thing and never seen here.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "priv.h"

#define KEY_TAG_SALT	"HAWKKEY1SALT"
#define KEY_TAG_ROOT	"HAWKKEY1ROOT"
#define KEY_TAG_BLOCK	"HAWKKEY1BLCK"
#define KEY_TAG_BYTES	12u
#define KEY_TOKENS	256u	/* tokens that are encoded at a time */

_Static_assert(HAWK_KEY_BYTES == crypto_generichash_BYTES, "a key is a BLAKE2b-256 hash");
_Static_assert(HAWK_KEY_BYTES == crypto_generichash_KEYBYTES, "and may key the next one");
_Static_assert(sizeof(KEY_TAG_SALT) == KEY_TAG_BYTES + 1, "tags have one length");

static void key_start(crypto_generichash_state *st, const uint8_t *key, const char *tag)
{
	crypto_generichash_init(st, key, key ? HAWK_KEY_BYTES : 0, HAWK_KEY_BYTES);
	crypto_generichash_update(st, (const uint8_t *)tag, KEY_TAG_BYTES);
}

static uint8_t *key_put(uint8_t *p, uint32_t v)
{
	p[0] = v;
	p[1] = v >> 8;
	p[2] = v >> 16;
	p[3] = v >> 24;
	return p + 4;
}

static void key_add(crypto_generichash_state *st, uint32_t v)
{
	uint8_t b[4];

	key_put(b, v);
	crypto_generichash_update(st, b, sizeof(b));
}

static void key_add_bytes(crypto_generichash_state *st, const void *p, uint32_t len)
{
	key_add(st, len);
	if (len)
		crypto_generichash_update(st, p, len);
}

static void key_add_string(crypto_generichash_state *st, const char *s)
{
	key_add_bytes(st, s, s ? strlen(s) : 0);
}

static int key_check_root(const struct hawk_key_params *p)
{
	const char *const text[] = { p->model, p->revision, p->dtype, p->layout, p->adapter };
	unsigned int i;

	if (!p->salt && p->salt_len)
		return hawk_fail(-EINVAL, "a salt of %zu bytes at NULL", p->salt_len);
	if (p->salt_len > HAWK_KEY_TEXT_MAX)
		return hawk_fail(-E2BIG, "a salt of %zu bytes: at most %u", p->salt_len,
				 HAWK_KEY_TEXT_MAX);
	if (!p->model || !p->model[0])
		return hawk_fail(-EINVAL, "a key without the id of a model");
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		if (text[i] && strnlen(text[i], HAWK_KEY_TEXT_MAX + 1) > HAWK_KEY_TEXT_MAX)
			return hawk_fail(-E2BIG, "a name of a key has more than %u bytes",
					 HAWK_KEY_TEXT_MAX);
	if (!p->block_tokens)
		return hawk_fail(-EINVAL, "keys of blocks of no tokens");
	if (p->shard_count ? p->shard >= p->shard_count : p->shard != 0)
		return hawk_fail(-EINVAL, "shard %u of %u", p->shard, p->shard_count);
	if (sodium_init() < 0)
		return hawk_fail(-EIO, "libsodium cannot be initialised");
	return 0;
}

int hawk_key_root(const struct hawk_key_params *p, uint8_t root[HAWK_KEY_BYTES])
{
	uint8_t salt[HAWK_KEY_BYTES];
	crypto_generichash_state st;
	int ret = key_check_root(p);

	if (ret)
		return ret;
	key_start(&st, NULL, KEY_TAG_SALT);
	key_add_bytes(&st, p->salt, p->salt_len);
	crypto_generichash_final(&st, salt, sizeof(salt));

	key_start(&st, salt, KEY_TAG_ROOT);
	key_add_string(&st, p->model);
	key_add_string(&st, p->revision);
	key_add_string(&st, p->dtype);
	key_add_string(&st, p->layout);
	key_add_string(&st, p->adapter);
	key_add(&st, p->block_tokens);
	key_add(&st, p->shard);
	key_add(&st, p->shard_count);
	crypto_generichash_final(&st, root, HAWK_KEY_BYTES);
	sodium_memzero(salt, sizeof(salt));
	sodium_memzero(&st, sizeof(st));
	return 0;
}

static void key_add_tokens(crypto_generichash_state *st, const int32_t *tokens, uint32_t n)
{
	uint8_t buf[KEY_TOKENS * 4], *p = buf;
	uint32_t i;

	key_add(st, n);
	for (i = 0; i < n; i++) {
		p = key_put(p, tokens[i]);
		if (p == buf + sizeof(buf) || i + 1 == n) {
			crypto_generichash_update(st, buf, p - buf);
			p = buf;
		}
	}
}

void hawk_key_next(const uint8_t root[HAWK_KEY_BYTES], const uint8_t *parent,
		   const int32_t *tokens, uint32_t n, const struct hawk_key_op *ops, uint32_t n_ops,
		   uint8_t key[HAWK_KEY_BYTES])
{
	crypto_generichash_state st;
	uint32_t i;

	key_start(&st, root, KEY_TAG_BLOCK);
	key_add_bytes(&st, parent, parent ? HAWK_KEY_BYTES : 0);
	key_add_tokens(&st, tokens, n);
	key_add(&st, n_ops);
	for (i = 0; i < n_ops; i++) {
		key_add(&st, ops[i].kind);
		key_add(&st, ops[i].at);
		key_add(&st, ops[i].start);
		key_add(&st, ops[i].end);
		key_add(&st, ops[i].shift);
	}
	crypto_generichash_final(&st, key, HAWK_KEY_BYTES);
	sodium_memzero(&st, sizeof(st));	/* keyed with the root */
}
