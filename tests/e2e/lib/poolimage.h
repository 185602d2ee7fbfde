/* SPDX-License-Identifier: MIT */
/*
 * poolimage.h - what the bytes of a drive say of the pool on it, read a second time by the
 * words of hawk-flash(5) and without the engine; and whether writes came in the order that it
 * promises
 */
#ifndef POOLIMAGE_H
#define POOLIMAGE_H

#include <stdbool.h>

#include "../../../kmod/core/flashfmt.h"
#include "writelog.h"

#define POOLIMAGE_KEYS	512u	/* versions.h: most of a space */

/**
 * struct poolimage_block - what is to be found under a key
 * @gen: generation of the youngest header of it; 0: there is none
 * @version: whose bytes its slot has; 0: not those of which the header has the CRC
 */
struct poolimage_block {
	u64 gen;
	s64 version;
};

/* The superblock that counts.  Return: 0, or -1: there is none. */
int poolimage_super(const u8 *image, struct hawk_super *s);

/*
 * What space @name has, by number of key.
 * Return: -1: a header is whole, its CRC is that of its slot, and the bytes are another key's.
 */
int poolimage_find(const u8 *image, const struct hawk_super *s, const char *name,
		   struct poolimage_block *found);

/**
 * struct poolorder - follows the writes to a pool
 * @image: what readers of the drive see
 * @dirty: pages that were written since the last flush
 * @changed: chunks whose record was changed since then
 * @s: the pool's superblock
 * @broken: what was promised and was not so, or NULL
 * @headers: headers that were written, each with its payload durable before
 * @records: records that were changed, each durable before the next payload of its chunk
 */
struct poolorder {
	u8 *image;
	u8 *dirty;
	u8 *changed;
	struct hawk_super s;
	const char *broken;
	u64 headers;
	u64 records;
};

/* @image: of @bytes, with a pool; the caller's, and changed by poolorder_next() only. */
int poolorder_init(struct poolorder *o, u8 *image, u64 bytes);
void poolorder_fini(struct poolorder *o);

/* The next entry of the log.  Return: whether all is as promised. */
bool poolorder_next(struct poolorder *o, const struct wentry *w);

#endif /* POOLIMAGE_H */
