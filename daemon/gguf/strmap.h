/* SPDX-License-Identifier: MIT */
/*
 * strmap.h - hash table from strings inside a model file to 32-bit numbers.
 *
 * Insert-only, sized once. The hash is keyed with a random key per process, so
 * a crafted file cannot make every string collide.
 */
#ifndef HAWK_STRMAP_H
#define HAWK_STRMAP_H

#include "gguf/gguf.h"

#define STRMAP_NONE UINT32_MAX

struct strmap_slot {
	struct gguf_str key; /* points into the file */
	uint32_t value;	     /* STRMAP_NONE: empty slot */
};

struct strmap {
	struct strmap_slot *slots;
	size_t mask; /* number of slots - 1, a power of two - 1 */
};

/** strmap_init() - room for @n keys; 0 or -ENOMEM */
int strmap_init(struct strmap *m, size_t n);

/** strmap_free() - release the table, not the strings */
void strmap_free(struct strmap *m);

/**
 * strmap_add() - add a key, at most as many times as strmap_init() was told
 * Return: STRMAP_NONE when added, else the value already stored for that key
 * (which stays).
 */
uint32_t strmap_add(struct strmap *m, struct gguf_str key, uint32_t value);

/** strmap_get() - value of a key, or STRMAP_NONE */
uint32_t strmap_get(const struct strmap *m, struct gguf_str key);

#endif
