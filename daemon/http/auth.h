/* SPDX-License-Identifier: MIT */
/* auth.h - API keys. Only their hashes are kept; none is ever logged. */
#ifndef HAWKD_AUTH_H
#define HAWKD_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_KEYS_MAX	1024u
#define AUTH_HASH_BYTES 32u

struct auth {
	uint8_t (*hash)[AUTH_HASH_BYTES];
	size_t n;
};

/**
 * auth_load() - read keys from a file, one per line; blank lines and lines that
 *	start with # are skipped
 * @err: on failure, one line naming the cause
 * Return: 0 or a negative errno.
 */
int auth_load(struct auth *a, const char *path, char *err, size_t err_len);

void auth_free(struct auth *a);

/**
 * auth_check() - may this request pass?
 * @header: value of the Authorization header or NULL
 * @tenant: out, hash of the key used, zero when no keys are configured
 *
 * Takes the same time for every wrong key.
 */
bool auth_check(const struct auth *a, const char *header, uint8_t tenant[AUTH_HASH_BYTES]);

#endif
