// SPDX-License-Identifier: MIT
/*
 * versions.c - see versions.h
 */
#include <errno.h>
#include <string.h>

#include "versions.h"

int versions_space(struct hawk *h, const char *name, struct hawk_kv **kv)
{
	struct hawk_kv_params p = {
		.block_bytes = VERSIONS_BLOCK, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.max_blocks = 4096, .quota_all = 1, .model_id = 77, .name = name,
	};

	int ret = hawk_kv_create(h, &p, kv);

	return ret == -EEXIST ? hawk_kv_attach(h, name, kv) : ret;
}

void versions_key(uint8_t *key, uint32_t n)
{
	memset(key, 0, HAWK_KEY_BYTES);
	memcpy(key, &(uint32_t){ n + 1 }, sizeof(n));
}

uint32_t versions_n(const uint8_t *key)
{
	uint8_t same[HAWK_KEY_BYTES];
	uint32_t n;

	memcpy(&n, key, sizeof(n));
	versions_key(same, n - 1);
	return memcmp(same, key, HAWK_KEY_BYTES) ? UINT32_MAX : n - 1;
}

/* The first word tells the version. */
static uint64_t word(const char *name, uint32_t n, uint32_t version, uint32_t i)
{
	uint64_t id = (uint64_t)(uint8_t)*name << 56 | (uint64_t)n << 32 | version;

	return i ? id * 0x9e3779b97f4a7c15ull + i : id;
}

static void fill(uint64_t *w, const char *name, uint32_t n, uint32_t version)
{
	uint32_t i;

	for (i = 0; i < VERSIONS_BLOCK / sizeof(*w); i++)
		w[i] = word(name, n, version, i);
}

int64_t versions_of(const void *block, const char *name, uint32_t n)
{
	const uint64_t *w = block;
	uint32_t i, version = (uint32_t)w[0];

	for (i = 0; i < VERSIONS_BLOCK / sizeof(*w); i++)
		if (w[i] != word(name, n, version, i))
			return -1;
	return version;
}

int versions_put(struct hawk_kv *kv, const char *name, uint32_t n, uint32_t version)
{
	struct hawk_item it = { .lid = HAWK_LID(1 + version % 0xfffff, 0, 0, 16 * n) };
	struct hawk_item old = { .flags = HAWK_ITEM_BY_KEY };

	versions_key(old.key, n);
	if (hawk_lookup(kv, &old, 1, NULL, NULL) == 1) {
		old.flags = 0;
		memset(old.key, 0, sizeof(old.key));
		hawk_free(kv, &old, 1);
	}
	if (hawk_alloc(kv, &it, 1, NULL) != 1)
		return it.status;
	fill(hawk_addr(kv, it.vt), name, n, version);
	versions_key(it.key, n);
	it.flags = HAWK_ITEM_ROOT;
	return hawk_put(kv, &it, 1, NULL) == 1 ? 0 : it.status;
}

int64_t versions_get(struct hawk_kv *kv, const char *name, uint32_t n)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	int64_t version;

	versions_key(it.key, n);
	if (hawk_get(kv, &it, 1, NULL, NULL) != 1)
		return 0;
	version = versions_of(hawk_addr(kv, it.vt), name, n);
	it = (struct hawk_item) { .lid = it.lid, .vt = it.vt };
	hawk_unpin(kv, &it, 1);
	return version;
}
