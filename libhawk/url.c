// SPDX-License-Identifier: MIT
/*
 * url.c - where hawk_open() goes
 *
 *	dev:[PATH]
 *	embed:[?KEY=VALUE[&KEY=VALUE]...]
 *
 * Values may hold %XX for bytes that mean something here.  A key given twice (but flash,
 * which may be several drives), an unknown key or a size that does not fit is refused: a
 * misspelt option must not quietly give a different device.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "priv.h"

#define DEV_PATH	"/dev/hawk"
#define DRAM_DEFAULT	(256ull << 20)
#define WRITEBACK	128u	/* an eighth of the frames */

enum { GOT_DRAM = 1, GOT_FLASH = 2, GOT_FLASH_SIZE = 4, GOT_WRITEBACK = 8, GOT_COMPACT = 16,
       GOT_PERSIST = 32, GOT_BUDGET = 64, GOT_PACE = 128, GOT_LINK = 256, GOT_CAP = 512,
       GOT_GPU = 1024 };

/* "64M" -> bytes; K, M, G, T are powers of 1024. */
static int parse_size(const char *s, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *u;
	char *end;
	uint64_t v;
	int shift = 0;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return -EINVAL;
	if (*end) {
		u = strchr(units, toupper((unsigned char)*end));
		if (!u || end[1])
			return -EINVAL;
		shift = 10 * (int)(u - units + 1);
	}
	if (!v || v > (UINT64_MAX >> 1) >> shift)
		return -EINVAL;
	*bytes = v << shift;
	return 0;
}

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Copies the @len bytes at @s to @out with %XX replaced. */
static int decode(const char *s, size_t len, char *out, size_t room)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++, n++) {
		if (n + 1 >= room)
			return -EINVAL;
		if (s[i] != '%') {
			out[n] = s[i];
			continue;
		}
		if (len - i < 3 || !isxdigit((unsigned char)s[i + 1]) ||
		    !isxdigit((unsigned char)s[i + 2]))
			return -EINVAL;
		out[n] = (char)(hex(s[i + 1]) << 4 | hex(s[i + 2]));
		if (!out[n])
			return -EINVAL;
		i += 2;
	}
	out[n] = 0;
	return 0;
}

static int parse_number(const char *s, uint32_t max, uint32_t *v)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno || *end || n > max)
		return -EINVAL;
	*v = (uint32_t)n;
	return 0;
}

static int parse_switch(const char *s, bool *on)
{
	if ((*s != '0' && *s != '1') || s[1])
		return -EINVAL;
	*on = *s == '1';
	return 0;
}

/* "cuda:0:64G" -> the GPU and the size */
static int parse_gpu(const char *s, struct hawk_url *u)
{
	const char *size = strrchr(s, ':');

	if (strncmp(s, "cuda:", 5) || size < s + 6 || size - s >= (long)sizeof(u->gpu))
		return -EINVAL;
	memcpy(u->gpu, s, (size_t)(size - s));
	u->gpu[size - s] = 0;
	return parse_size(size + 1, &u->gpu_bytes);
}

/* A flash file more; given twice it would fail later, as in use by another device. */
static int add_drive(struct hawk_url *u, const char *path, unsigned int *got)
{
	uint32_t i;

	if (!*path)
		return hawk_fail(-EINVAL, "URL: flash without a path");
	if (u->drives == HAWK_TIERS_MAX - 1)
		return hawk_fail(-EINVAL, "URL: flash is given more than %u times",
				 HAWK_TIERS_MAX - 1);
	for (i = 0; i < u->drives; i++)
		if (!strcmp(u->drive[i], path))
			return hawk_fail(-EINVAL, "URL: flash=%s is given twice", path);
	if (strlen(path) >= sizeof(u->path) - u->used)
		return hawk_fail(-EINVAL, "URL: paths of more than %zu bytes", sizeof(u->path));
	u->drive[u->drives++] = strcpy(u->path + u->used, path);
	u->used += (uint32_t)strlen(path) + 1;
	*got |= GOT_FLASH;
	return 0;
}

static int set_option(struct hawk_url *u, const char *key, const char *value, unsigned int *got)
{
	unsigned int bit;
	int ret = 0;

	if (!strcmp(key, "dram")) {
		bit = GOT_DRAM;
		ret = parse_size(value, &u->dram);
	} else if (!strcmp(key, "flash")) {
		return add_drive(u, value, got);
	} else if (!strcmp(key, "flash_size")) {
		bit = GOT_FLASH_SIZE;
		ret = parse_size(value, &u->flash);
	} else if (!strcmp(key, "writeback")) {
		bit = GOT_WRITEBACK;
		ret = parse_number(value, 1024, &u->writeback);
	} else if (!strcmp(key, "flash_budget")) {
		bit = GOT_BUDGET;
		ret = parse_size(value, &u->budget);
	} else if (!strcmp(key, "persist")) {
		bit = GOT_PERSIST;
		ret = parse_switch(value, &u->persist);
	} else if (!strcmp(key, "pace")) {
		bit = GOT_PACE;
		ret = parse_switch(value, &u->pace);
	} else if (!strcmp(key, "link_mb_s")) {
		bit = GOT_LINK;
		ret = parse_number(value, UINT32_MAX, &u->link_mb);
	} else if (!strcmp(key, "cap")) {
		bit = GOT_CAP;
		ret = parse_number(value, 100, &u->cap);
		if (!u->cap)
			ret = -EINVAL;
	} else if (!strcmp(key, "gpu")) {
		bit = GOT_GPU;
		ret = parse_gpu(value, u);
	} else if (!strcmp(key, "compact")) {
		bit = GOT_COMPACT;
		ret = parse_switch(value, &u->compact);
	} else {
		return hawk_fail(-EINVAL, "URL: unknown option '%s'; known: dram, flash, "
				 "flash_size, flash_budget, persist, gpu, writeback, compact, "
				 "pace, link_mb_s, cap", key);
	}
	if (ret)
		return hawk_fail(-EINVAL, "URL: bad value '%s' of %s", value, key);
	if (*got & bit)
		return hawk_fail(-EINVAL, "URL: %s is given twice", key);
	*got |= bit;
	return 0;
}

static int parse_options(struct hawk_url *u, const char *s)
{
	char key[32], value[HAWK_PATH_MAX];
	unsigned int got = 0;
	size_t len, klen;
	int ret;

	for (; *s; s += len + (s[len] == '&')) {
		len = strcspn(s, "&");
		klen = strcspn(s, "=&");
		if (s[klen] != '=' || decode(s, klen, key, sizeof(key)) ||
		    decode(s + klen + 1, len - klen - 1, value, sizeof(value)))
			return hawk_fail(-EINVAL, "URL: cannot read the option '%.*s'",
					 (int)len, s);
		ret = set_option(u, key, value, &got);
		if (ret)
			return ret;
	}
	if (u->persist && !(got & GOT_FLASH))
		return hawk_fail(-EINVAL, "URL: persist needs flash");
	if (u->budget && !(got & GOT_FLASH))
		return hawk_fail(-EINVAL, "URL: flash_budget needs flash");
	if (!(got & GOT_FLASH) != !(got & GOT_FLASH_SIZE) && !u->persist)
		return hawk_fail(-EINVAL, "URL: flash and flash_size go together");
	return 0;
}

int hawk_url_parse(const char *url, struct hawk_url *u)
{
	memset(u, 0, sizeof(*u));
	if (!strncmp(url, "dev:", 4)) {
		u->dev = true;
		if (decode(url + 4, strlen(url + 4), u->path, sizeof(u->path)))
			return hawk_fail(-EINVAL, "URL: bad device path '%s'", url + 4);
		if (!u->path[0])
			strcpy(u->path, DEV_PATH);
		return 0;
	}
	if (strncmp(url, "embed:", 6))
		return hawk_fail(-EINVAL, "URL: '%s' starts with neither dev: nor embed:", url);
	u->dram = DRAM_DEFAULT;
	u->writeback = WRITEBACK;
	u->compact = true;
	u->pace = true;
	url += 6;
	if (!*url)
		return 0;
	if (*url != '?')
		return hawk_fail(-EINVAL, "URL: embed: takes options after '?', not '%s'", url);
	return parse_options(u, url + 1);
}
