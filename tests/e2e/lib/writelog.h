/* SPDX-License-Identifier: MIT */
/*
 * writelog.h - a log of all that was written to a drive, in the format of the kernel's
 * dm-log-writes (Documentation/admin-guide/device-mapper/log-writes.rst), which QEMU's
 * blklogwrites writes too
 *
 * Little-endian: a superblock in the first sector (magic, version, entries, bytes of a
 * sector), then entries: a sector of sector, sectors, flags, bytes of a mark; and behind it
 * the data, which flushes and discards have none of.  Entries are in the order in which the
 * drive completed them.
 */
#ifndef WRITELOG_H
#define WRITELOG_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct wentry - an entry
 * @off: where, bytes
 * @bytes: how many; 0: a flush only
 * @data: what was written; NULL: discarded
 * @flush: all that was completed before is durable
 * @fua: so is this
 */
struct wentry {
	uint64_t off;
	uint64_t bytes;
	const uint8_t *data;
	int flush;
	int fua;
};

struct wlog {
	struct wentry *entry;
	size_t n;
};

/* Return: 0; or -errno with what is wrong on stderr. */
int wlog_open(struct wlog *l, const char *path);

#endif /* WRITELOG_H */
