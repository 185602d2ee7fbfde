/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_named.h - named spaces in the tier of hawk_fixture.h, and blocks to find again
 */
#ifndef HAWK_NAMED_H
#define HAWK_NAMED_H

#include <string.h>

#include "hawk_fixture.h"

static inline int named_create(int fd, uint32_t host, const char *name, uint32_t mode,
			       uint64_t idle_ns)
{
	struct hawk_space_create sc = space_args(HOST_BLOCKS);

	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = mode;
	sc.idle_ns = idle_ns;
	strncpy((char *)sc.name, name, HAWK_NAME_MAX - 1);
	sc.quota[host].max_bytes = HOST_BYTES;
	return dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc);
}

/* A block with key and pattern @n; 0 or a negative errno. */
static inline int put_block(int fd, uint32_t host, uint32_t n)
{
	uint8_t *win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ | PROT_WRITE);
	struct hawk_item it = { .lid = LID(n) };
	int ret = one(fd, HAWK_IOC_ALLOC, 0, &it);

	if (!ret) {
		fill(frame_at(win, it.vt, BLOCK), BLOCK, n);
		set_key(&it, n);
		ret = one(fd, HAWK_IOC_PUT, 0, &it);
	}
	munmap(win, HOST_BYTES);
	return ret;
}

/* GETs it, so pins it through @fd. */
static inline bool has_block(int fd, uint32_t host, uint32_t n)
{
	uint8_t *win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ);
	struct hawk_item it = key_item(n);
	bool good = win && !one(fd, HAWK_IOC_GET, 0, &it) &&
		    filled(frame_at(win, it.vt, BLOCK), BLOCK, n);

	if (win)
		munmap(win, HOST_BYTES);
	return good;
}

#endif /* HAWK_NAMED_H */
