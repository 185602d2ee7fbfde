// SPDX-License-Identifier: MIT
/* auth.c - see auth.h */
#include "http/auth.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char bearer[] = "Bearer ";

static void auth_hash(const char *key, size_t len, uint8_t hash[AUTH_HASH_BYTES])
{
	crypto_generichash(hash, AUTH_HASH_BYTES, (const unsigned char *)key, len, NULL, 0);
}

static int auth_read(struct auth *a, FILE *f, const char *path, char *err, size_t err_len)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int ret = 0;

	while (!ret && (len = getline(&line, &room, f)) >= 0) {
		while (len > 0 && strchr(" \t\r\n", line[len - 1]))
			len--;
		if (len == 0 || line[0] == '#')
			continue;
		if (a->n == AUTH_KEYS_MAX) {
			snprintf(err, err_len, "%s: more than %u API keys", path, AUTH_KEYS_MAX);
			ret = -E2BIG;
			break;
		}
		auth_hash(line, len, a->hash[a->n++]);
	}
	if (line)
		sodium_memzero(line, room);
	free(line);
	if (!ret && a->n == 0) {
		snprintf(err, err_len, "%s: no API key in the file", path);
		ret = -EINVAL;
	}
	return ret;
}

int auth_load(struct auth *a, const char *path, char *err, size_t err_len)
{
	FILE *f;
	int ret;

	f = fopen(path, "re");
	if (!f) {
		ret = -errno;
		snprintf(err, err_len, "cannot read API keys from %s: %s", path, strerror(-ret));
		return ret;
	}
	a->hash = calloc(AUTH_KEYS_MAX, sizeof(*a->hash));
	if (a->hash) {
		ret = auth_read(a, f, path, err, err_len);
	} else {
		snprintf(err, err_len, "out of memory");
		ret = -ENOMEM;
	}
	fclose(f);
	return ret;
}

void auth_free(struct auth *a)
{
	free(a->hash);
	memset(a, 0, sizeof(*a));
}

bool auth_check(const struct auth *a, const char *header, uint8_t tenant[AUTH_HASH_BYTES])
{
	bool ok = false;
	size_t i;

	memset(tenant, 0, AUTH_HASH_BYTES);
	if (a->n == 0)
		return true;
	if (!header || strncasecmp(header, bearer, sizeof(bearer) - 1))
		return false;
	header += sizeof(bearer) - 1;
	auth_hash(header, strlen(header), tenant);
	for (i = 0; i < a->n; i++)
		ok |= sodium_memcmp(tenant, a->hash[i], AUTH_HASH_BYTES) == 0;
	return ok;
}
