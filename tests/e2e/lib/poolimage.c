// SPDX-License-Identifier: MIT
/*
 * poolimage.c - see poolimage.h
 */
#include <stdlib.h>
#include <string.h>

#include "../../../libhawk/crc32c.h"
#include "poolimage.h"
#include "versions.h"

int poolimage_super(const u8 *image, struct hawk_super *s)
{
	struct hawk_super both[2];
	int err[2], i;

	for (i = 0; i < 2; i++)
		err[i] = hawk_super_decode(image + hawk_super_copy_off((u32)i), &both[i]);
	i = hawk_super_choose(err, both);
	if (i < 0)
		return -1;
	*s = both[i];
	return 0;
}

static const u8 *header_at(const u8 *image, const struct hawk_super *s, u32 chunk, u32 slot)
{
	return image + hawk_header_off(s, chunk) + slot * HAWK_HEADER_BYTES;
}

static const u8 *payload_at(const u8 *image, const struct hawk_super *s, u32 chunk,
			    const struct hawk_header *h)
{
	return image + s->data_off + (u64)chunk * HAWK_CHUNK_BYTES + (u64)h->slot * h->bytes;
}

static int chunk_record(const u8 *image, const struct hawk_super *s, u32 chunk,
			struct hawk_record *r)
{
	return hawk_record_decode(image + hawk_record_off(s, chunk), hawk_pool_id(s), chunk, r);
}

/* Of the headers with one key the youngest counts. */
static int note(const u8 *image, const struct hawk_super *s, u32 chunk, const char *name,
		const struct hawk_header *h, struct poolimage_block *found)
{
	const u8 *payload = payload_at(image, s, chunk, h);
	struct poolimage_block *b;
	u32 n = versions_n(h->key);

	if (n >= POOLIMAGE_KEYS || h->bytes != VERSIONS_BLOCK)
		return -1;
	b = &found[n];
	if (h->gen < b->gen)
		return 0;
	b->gen = h->gen;
	b->version = 0;
	if (hawk_crc32c(payload, h->bytes) == h->crc)
		b->version = versions_of(payload, name, n);
	return b->version < 0 ? -1 : 0;
}

int poolimage_find(const u8 *image, const struct hawk_super *s, const char *name,
		   struct poolimage_block *found)
{
	struct hawk_record r;
	struct hawk_header h;
	u32 c, slot;
	int ret = 0;

	memset(found, 0, POOLIMAGE_KEYS * sizeof(*found));
	for (c = 0; c < s->chunks; c++) {
		if (chunk_record(image, s, c, &r) || !r.kept ||
		    strncmp((const char *)r.owner.name, name, sizeof(r.owner.name)))
			continue;
		for (slot = 0; slot < HAWK_CHUNK_BYTES / r.owner.block_bytes; slot++)
			if (!hawk_header_decode(header_at(image, s, c, slot), hawk_pool_id(s), &r,
						slot, &h))
				ret |= note(image, s, c, name, &h, found);
	}
	return ret;
}

/* ---- the order of writes ---- */

void poolorder_fini(struct poolorder *o)
{
	free(o->dirty);
	free(o->changed);
}

int poolorder_init(struct poolorder *o, u8 *image, u64 bytes)
{
	memset(o, 0, sizeof(*o));
	o->image = image;
	o->dirty = calloc(1, bytes / HAWK_POOL_PAGE + 1);
	o->changed = calloc(1, bytes / HAWK_CHUNK_BYTES + 1);
	return o->dirty && o->changed ? poolimage_super(image, &o->s) : -1;
}

static bool any_dirty(const struct poolorder *o, u64 off, u64 bytes)
{
	u64 page;

	for (page = off / HAWK_POOL_PAGE; page * HAWK_POOL_PAGE < off + bytes; page++)
		if (o->dirty[page])
			return true;
	return false;
}

/* Headers of a page that is about to be written, where they say something new. */
static void check_headers(struct poolorder *o, u64 off, const u8 *p)
{
	u32 per = hawk_pool_slots(&o->s), i, chunk, slot;
	struct hawk_header h, old;
	struct hawk_record r;
	const u8 *payload;

	for (i = 0; i < HAWK_PAGE_HEADERS; i++, p += HAWK_HEADER_BYTES) {
		slot = (u32)((off - o->s.header_off) / HAWK_HEADER_BYTES) + i;
		chunk = slot / per;
		slot %= per;
		if (chunk >= o->s.chunks || chunk_record(o->image, &o->s, chunk, &r) ||
		    hawk_header_decode(p, hawk_pool_id(&o->s), &r, slot, &h))
			continue;
		if (!hawk_header_decode(header_at(o->image, &o->s, chunk, slot),
					hawk_pool_id(&o->s), &r, slot, &old) && old.gen == h.gen)
			continue;
		o->headers++;
		payload = payload_at(o->image, &o->s, chunk, &h);
		/* a slot that has been used again meanwhile is another matter */
		if (hawk_crc32c(payload, h.bytes) == h.crc &&
		    any_dirty(o, (u64)(payload - o->image), h.bytes))
			o->broken = "a header was written before its payload was durable";
	}
}

/* A page of records that is about to be written: which ones change. */
static void note_records(struct poolorder *o, const struct wentry *w, u64 off)
{
	const u8 *p = w->data + (off - w->off);
	u32 i, first = (u32)((off - o->s.record_off) / HAWK_RECORD_BYTES);

	for (i = 0; i < HAWK_PAGE_RECORDS && first + i < o->s.chunks; i++) {
		u32 at = i * HAWK_RECORD_BYTES;

		if (!memcmp(p + at, o->image + off + at, HAWK_RECORD_BYTES))
			continue;
		o->changed[first + i] = !w->fua;
		o->records++;
	}
}

static void check_write(struct poolorder *o, const struct wentry *w)
{
	const struct hawk_super *s = &o->s;
	u64 off;
	u32 chunk;

	for (off = w->off; off < w->off + w->bytes; off += HAWK_POOL_PAGE) {
		if (off >= s->data_off + (u64)s->chunks * HAWK_CHUNK_BYTES)
			return;
		if (off >= s->data_off) {
			chunk = (u32)((off - s->data_off) / HAWK_CHUNK_BYTES);
			if (o->changed[chunk])
				o->broken = "a payload was written before the record of its chunk was durable";
		} else if (off >= s->header_off) {
			check_headers(o, off, w->data + (off - w->off));
		} else if (off >= s->record_off) {
			note_records(o, w, off);
		} else if (any_dirty(o, hawk_super_copy_off(!off), HAWK_POOL_PAGE)) {
			o->broken = "a superblock was written before the other one was durable";
		}
	}
}

bool poolorder_next(struct poolorder *o, const struct wentry *w)
{
	const struct hawk_super *s = &o->s;
	u64 off, pages = (s->bytes + HAWK_POOL_PAGE - 1) / HAWK_POOL_PAGE;

	if (w->flush) {
		memset(o->dirty, 0, pages);
		memset(o->changed, 0, s->chunks);
	}
	if (!w->data) {
		memset(o->image + w->off, 0, w->bytes);
		return true;	/* of chunks that are nobody's */
	}
	check_write(o, w);
	for (off = w->off; off < w->off + w->bytes && off < s->bytes; off += HAWK_POOL_PAGE)
		o->dirty[off / HAWK_POOL_PAGE] = !w->fua;
	memcpy(o->image + w->off, w->data, w->bytes);
	return !o->broken;
}
