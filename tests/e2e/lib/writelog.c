// SPDX-License-Identifier: MIT
/*
 * writelog.c - see writelog.h
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writelog.h"

#define MAGIC		0x6a736677736872ull
#define VERSION		1
#define FLUSH		1
#define FUA		2
#define DISCARD		4
#define KNOWN		(FLUSH | FUA | DISCARD)

struct super {
	uint64_t magic;
	uint64_t version;
	uint64_t entries;
	uint32_t sector_bytes;
};

struct entry {
	uint64_t sector;
	uint64_t sectors;
	uint64_t flags;
	uint64_t data_len;
};

static int bad(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	return -EINVAL;
}

static int parse(struct wlog *l, const char *path, const uint8_t *p, size_t size)
{
	struct super s;
	struct entry e;
	size_t at, n, i;
	uint64_t flags;

	memcpy(&s, p, sizeof(s));
	if (le64toh(s.magic) != MAGIC || le64toh(s.version) != VERSION)
		return bad(path, "no log of writes");
	n = le64toh(s.entries);
	at = le32toh(s.sector_bytes);
	if (at < 512 || at > 65536 || n > size / at)
		return bad(path, "its superblock makes no sense");
	l->entry = calloc(n + 1, sizeof(*l->entry));
	if (!l->entry)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct wentry *w = &l->entry[i];

		if (at > size || size - at < sizeof(e))
			return bad(path, "it ends before its last entry");
		memcpy(&e, p + at, sizeof(e));
		at += le32toh(s.sector_bytes);
		flags = le64toh(e.flags);
		if (flags & ~(uint64_t)KNOWN || le64toh(e.sectors) > size)
			return bad(path, "an entry of an unknown kind");
		w->off = le64toh(e.sector) * le32toh(s.sector_bytes);
		w->bytes = le64toh(e.sectors) * le32toh(s.sector_bytes);
		w->flush = !!(flags & FLUSH);
		w->fua = !!(flags & FUA);
		if (flags & DISCARD)
			continue;
		if (at > size || size - at < w->bytes)
			return bad(path, "it ends before its last entry");
		w->data = p + at;
		at += w->bytes;
	}
	l->n = n;
	return 0;
}

int wlog_open(struct wlog *l, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	memset(l, 0, sizeof(*l));
	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		return -errno;
	}
	if ((size_t)st.st_size < sizeof(struct super))
		return bad(path, "no log of writes");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	return parse(l, path, p, (size_t)st.st_size);
}
