// SPDX-License-Identifier: MIT
#include "gguf/strmap.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static uint8_t strmap_key[crypto_shorthash_KEYBYTES];
static pthread_once_t strmap_once = PTHREAD_ONCE_INIT;

static void strmap_make_key(void)
{
	if (sodium_init() >= 0)
		crypto_shorthash_keygen(strmap_key);
}

int strmap_init(struct strmap *m, size_t n)
{
	size_t slots = 16, i;

	pthread_once(&strmap_once, strmap_make_key);
	while (slots < n * 2)
		slots *= 2;
	m->slots = malloc(slots * sizeof(*m->slots));
	if (!m->slots)
		return -ENOMEM;
	m->mask = slots - 1;
	for (i = 0; i < slots; i++)
		m->slots[i].value = STRMAP_NONE;
	return 0;
}

void strmap_free(struct strmap *m)
{
	free(m->slots);
	m->slots = NULL;
}

/* The slot that holds @key, or the empty one where it belongs. */
static struct strmap_slot *strmap_find(const struct strmap *m, struct gguf_str key)
{
	uint64_t h;
	size_t i;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)key.p, key.len, strmap_key);
	for (i = h & m->mask; m->slots[i].value != STRMAP_NONE; i = (i + 1) & m->mask) {
		if (m->slots[i].key.len == key.len && !memcmp(m->slots[i].key.p, key.p, key.len))
			break;
	}
	return &m->slots[i];
}

uint32_t strmap_add(struct strmap *m, struct gguf_str key, uint32_t value)
{
	struct strmap_slot *slot = strmap_find(m, key);

	if (slot->value != STRMAP_NONE)
		return slot->value;
	slot->key = key;
	slot->value = value;
	return STRMAP_NONE;
}

uint32_t strmap_get(const struct strmap *m, struct gguf_str key)
{
	return strmap_find(m, key)->value;
}
