/* SPDX-License-Identifier: MIT */
/*
 * versions.h - blocks whose bytes tell whose they are: space, key and version
 */
#ifndef VERSIONS_H
#define VERSIONS_H

#include <hawk/hawk.h>

#define VERSIONS_BLOCK	65536u		/* bytes */

/* Make the space @name for such blocks, or attach it; its quota is all.  Return: 0 or -errno. */
int versions_space(struct hawk *h, const char *name, struct hawk_kv **kv);

/* Key @n gets the bytes of @version; what was there is freed.  Return: 0 or -errno. */
int versions_put(struct hawk_kv *kv, const char *name, uint32_t n, uint32_t version);

/*
 * Get @n by key.
 * Return: the version whose bytes it has, 0: a miss, -1: bytes that nobody put there.
 */
int64_t versions_get(struct hawk_kv *kv, const char *name, uint32_t n);

/* The key of @n, HAWK_KEY_BYTES bytes; and back, UINT32_MAX: none of these. */
void versions_key(uint8_t *key, uint32_t n);
uint32_t versions_n(const uint8_t *key);

/* The version of which a block of @n has the bytes, or -1. */
int64_t versions_of(const void *block, const char *name, uint32_t n);

#endif /* VERSIONS_H */
