/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_blocks.h - blocks of one window whose number tells their bytes
 *
 * Block n has LID(n) and pattern n.  Calls give 0 or a negative errno.
 */
#ifndef HAWK_BLOCKS_H
#define HAWK_BLOCKS_H

#include "hawk_test.h"

/* @n READY blocks from @first on. */
static inline int make_blocks(int fd, uint8_t *win, uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = first; i < first + n; i++) {
		struct hawk_item it = { .lid = LID(i) };
		int ret = one(fd, HAWK_IOC_ALLOC, 0, &it);

		if (ret)
			return ret;
		fill(frame_at(win, it.vt, BLOCK), BLOCK, i);
		it.vt = 0;
		ret = one(fd, HAWK_IOC_PUT, 0, &it);
		if (ret)
			return ret;
	}
	return 0;
}

/* GET, compare, UNPIN; 1: the bytes are wrong. */
static inline int check_block(int fd, uint8_t *win, uint32_t n)
{
	struct hawk_item it = { .lid = LID(n) };
	bool good;
	int ret;

	ret = one(fd, HAWK_IOC_GET, 0, &it);
	if (ret)
		return ret;
	good = filled(frame_at(win, it.vt, BLOCK), BLOCK, n);
	ret = one(fd, HAWK_IOC_UNPIN, 0, &it);
	return ret ?: !good;
}

#endif /* HAWK_BLOCKS_H */
