// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * flashfmt.c - a persistent pool's structures, to and from bytes; flashfmt.h has the format
 *
 * What is decoded comes from a device that anybody may have written: each figure that
 * something is computed from is checked.
 */
#include "flashfmt.h"
#include "lid.h"

#define SUPER_MAGIC	0x4c4f4f504b574148ull	/* "HAWKPOOL" */
#define PLAIN_MAGIC	0x504d45544b574148ull	/* "HAWKTEMP" */
#define RECORD_MAGIC	0x52434b48u		/* "HKCR" */
#define HEADER_MAGIC	0x48534b48u		/* "HKSH" */

#define SUPER_CRC	12
#define SMALL_CRC	4			/* of records and headers */

/* ---- numbers ---- */

static void put16(u8 *p, u32 v)
{
	p[0] = v;
	p[1] = v >> 8;
}

static void put32(u8 *p, u32 v)
{
	put16(p, v);
	put16(p + 2, v >> 16);
}

static void put64(u8 *p, u64 v)
{
	put32(p, v);
	put32(p + 4, v >> 32);
}

static u32 get16(const u8 *p)
{
	return p[0] | (u32)p[1] << 8;
}

static u32 get32(const u8 *p)
{
	return get16(p) | get16(p + 2) << 16;
}

static u64 get64(const u8 *p)
{
	return get32(p) | (u64)get32(p + 4) << 32;
}

/* ---- checksums ---- */

static u32 crc_of(const u8 *p, u32 bytes, u32 at)
{
	u8 head[SUPER_CRC + 4] = { 0 };
	u32 crc;

	memcpy(head, p, at);	/* as if the checksum itself were 0 */
	crc = hawk_crc32c_more(~0u, head, at + 4);
	return ~hawk_crc32c_more(crc, p + at + 4, bytes - at - 4);
}

static void seal(u8 *p, u32 bytes, u32 at)
{
	put32(p + at, crc_of(p, bytes, at));
}

static bool whole(const u8 *p, u32 bytes, u32 at)
{
	return get32(p + at) == crc_of(p, bytes, at);
}

/* @bytes is a multiple of 8. */
static bool all_zero(const u8 *p, u32 bytes)
{
	u64 w;

	for (; bytes; p += sizeof(w), bytes -= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		if (w)
			return false;
	}
	return true;
}

/* ---- superblock ---- */

static u64 page_up(u64 bytes)
{
	return (bytes + HAWK_POOL_PAGE - 1) & ~(u64)(HAWK_POOL_PAGE - 1);
}

/* Place the areas for @chunks.  Return: the end of the last. */
static u64 place(struct hawk_super *s, u64 chunks)
{
	u64 slots = chunks * (HAWK_CHUNK_BYTES / s->slot_bytes);

	s->record_off = HAWK_SUPER_1_OFF + HAWK_POOL_PAGE;
	s->header_off = page_up(s->record_off + chunks * HAWK_RECORD_BYTES);
	s->data_off = s->header_off + slots * HAWK_HEADER_BYTES + HAWK_CHUNK_BYTES - 1;
	s->data_off &= ~(u64)(HAWK_CHUNK_BYTES - 1);
	return s->data_off + chunks * HAWK_CHUNK_BYTES;
}

int hawk_super_layout(struct hawk_super *s)
{
	u64 low = 0, high, mid;

	if (s->slot_bytes < HAWK_SLOT_BYTES_MIN || s->slot_bytes > HAWK_SLOT_BYTES_MAX ||
	    s->slot_bytes & (s->slot_bytes - 1))
		return -EINVAL;
	s->bytes &= ~(u64)(HAWK_POOL_PAGE - 1);
	high = s->bytes / HAWK_CHUNK_BYTES;
	if (high > 0x7fffffff)
		high = 0x7fffffff;
	while (low < high) {
		mid = (low + high + 1) / 2;
		if (place(s, mid) + HAWK_POOL_PAGE <= s->bytes)
			low = mid;
		else
			high = mid - 1;
	}
	if (!low)
		return -ENOSPC;
	s->chunks = low;
	place(s, low);
	return 0;
}

void hawk_super_encode(const struct hawk_super *s, u8 *p)
{
	memset(p, 0, HAWK_POOL_PAGE);
	put64(p, SUPER_MAGIC);
	put32(p + 8, HAWK_POOL_VERSION);
	memcpy(p + 16, s->uuid, sizeof(s->uuid));
	put64(p + 32, s->seq);
	put64(p + 40, s->bytes);
	put32(p + 48, s->chunks);
	put32(p + 52, s->slot_bytes);
	put64(p + 56, s->record_off);
	put64(p + 64, s->header_off);
	put64(p + 72, s->data_off);
	put64(p + 80, s->rated);
	put64(p + 88, s->written);
	put64(p + 96, s->created);
	put32(p + 104, s->clean);
	seal(p, HAWK_POOL_PAGE, SUPER_CRC);
}

/* Its areas are where they would be laid out, and fit. */
static bool super_sound(const struct hawk_super *s)
{
	struct hawk_super want = { .bytes = s->bytes, .slot_bytes = s->slot_bytes };

	return !hawk_super_layout(&want) && want.bytes == s->bytes &&
	       want.chunks == s->chunks && want.record_off == s->record_off &&
	       want.header_off == s->header_off && want.data_off == s->data_off &&
	       s->rated <= HAWK_RATED_MAX && s->seq <= HAWK_SEQ_MAX;
}

int hawk_super_decode(const u8 *p, struct hawk_super *s)
{
	memset(s, 0, sizeof(*s));
	if (get64(p) != SUPER_MAGIC)
		return -ENOENT;
	if (!whole(p, HAWK_POOL_PAGE, SUPER_CRC))
		return -EILSEQ;
	if (get32(p + 8) != HAWK_POOL_VERSION)
		return -EPROTONOSUPPORT;
	memcpy(s->uuid, p + 16, sizeof(s->uuid));
	s->seq = get64(p + 32);
	s->bytes = get64(p + 40);
	s->chunks = get32(p + 48);
	s->slot_bytes = get32(p + 52);
	s->record_off = get64(p + 56);
	s->header_off = get64(p + 64);
	s->data_off = get64(p + 72);
	s->rated = get64(p + 80);
	s->written = get64(p + 88);
	s->created = get64(p + 96);
	s->clean = get32(p + 104) == 1;
	return super_sound(s) ? 0 : -EUCLEAN;
}

int hawk_super_choose(const int err[2], const struct hawk_super s[2])
{
	if (!err[0] && !err[1])
		return s[1].seq > s[0].seq;
	if (!err[0] || !err[1])
		return !!err[0];
	return err[0] != -ENOENT ? err[0] : err[1];
}

u64 hawk_pool_id(const struct hawk_super *s)
{
	return get64(s->uuid);
}

/* ---- plain flash ---- */

u64 hawk_plain_layout(u64 size, u64 bytes, bool grows, u32 *chunks)
{
	u64 mark = hawk_plain_off(size), n = (bytes ? bytes : size) / HAWK_CHUNK_BYTES;

	if (n > 0x7fffffff)
		n = 0x7fffffff;
	if (n * HAWK_CHUNK_BYTES > mark) {
		if (grows)
			mark = n * HAWK_CHUNK_BYTES;
		else
			n = mark / HAWK_CHUNK_BYTES;
	}
	*chunks = n;
	return mark;
}

void hawk_plain_encode(u8 *p)
{
	memset(p, 0, HAWK_POOL_PAGE);
	put64(p, PLAIN_MAGIC);
	seal(p, HAWK_POOL_PAGE, SUPER_CRC);
}

bool hawk_plain_marked(const u8 *p)
{
	return get64(p) == PLAIN_MAGIC && whole(p, HAWK_POOL_PAGE, SUPER_CRC);
}

/* ---- record ---- */

void hawk_record_encode(const struct hawk_record *r, u64 pool, u8 *p)
{
	const struct hawk_identity *id = &r->owner;

	memset(p, 0, HAWK_RECORD_BYTES);
	put32(p, RECORD_MAGIC);
	put64(p + 8, pool);
	put64(p + 16, r->epoch);
	put32(p + 24, r->chunk);
	put32(p + 28, r->kept);
	if (r->kept) {
		put32(p + 32, id->uid);
		put32(p + 36, id->block_bytes);
		put32(p + 40, id->block_tokens);
		put32(p + 44, id->layers);
		put32(p + 48, id->head_groups);
		put32(p + 52, id->layout);
		put32(p + 56, id->dtype);
		put32(p + 60, id->tp_rank);
		put32(p + 64, id->tp_degree);
		put32(p + 68, id->shift);
		put64(p + 72, id->model_id);
		memcpy(p + 80, id->name, sizeof(id->name));
		put32(p + 144, id->token_bytes);
		put32(p + 148, id->planes);
	}
	seal(p, HAWK_RECORD_BYTES, SMALL_CRC);
}

int hawk_record_decode(const u8 *p, u64 pool, u32 chunk, struct hawk_record *r)
{
	struct hawk_identity *id = &r->owner;

	memset(r, 0, sizeof(*r));
	if (all_zero(p, HAWK_RECORD_BYTES))
		return -ENOENT;
	if (get32(p) != RECORD_MAGIC || !whole(p, HAWK_RECORD_BYTES, SMALL_CRC))
		return -EILSEQ;
	if (get64(p + 8) != pool)
		return -ENOENT;
	if (get32(p + 24) != chunk)
		return -EILSEQ;
	r->epoch = get64(p + 16);
	r->chunk = chunk;
	r->kept = get32(p + 28) & 1;
	id->uid = get32(p + 32);
	id->block_bytes = get32(p + 36);
	id->block_tokens = get32(p + 40);
	id->layers = get32(p + 44);
	id->head_groups = get32(p + 48);
	id->layout = get32(p + 52);
	id->dtype = get32(p + 56);
	id->tp_rank = get32(p + 60);
	id->tp_degree = get32(p + 64);
	id->shift = get32(p + 68);
	id->model_id = get64(p + 72);
	memcpy(id->name, p + 80, sizeof(id->name));
	id->token_bytes = get32(p + 144);
	id->planes = get32(p + 148);
	r->space = hawk_identity_hash(id);
	return 0;
}

/* ---- header ---- */

void hawk_header_encode(const struct hawk_header *h, u64 pool, u8 *p)
{
	memset(p, 0, HAWK_HEADER_BYTES);
	put32(p, HEADER_MAGIC);
	put64(p + 8, pool);
	put64(p + 16, h->epoch);
	put64(p + 24, h->gen);
	put64(p + 32, h->space);
	put64(p + 40, h->model_id);
	put32(p + 48, h->tok);
	p[52] = h->layer;
	p[53] = h->head;
	put16(p + 54, h->slot);
	put16(p + 56, h->bytes / HAWK_FRAME_ALIGN);
	p[58] = h->hints;
	p[59] = h->turn;
	put32(p + 60, h->crc);
	memcpy(p + HAWK_HEADER_KEY, h->key, HAWK_KEY_BYTES);
	memcpy(p + 96, h->parent, HAWK_KEY_BYTES);
	seal(p, HAWK_HEADER_BYTES, SMALL_CRC);
}

void hawk_header_read(const u8 *p, struct hawk_header *h)
{
	h->epoch = get64(p + 16);
	h->gen = get64(p + 24);
	h->space = get64(p + 32);
	h->model_id = get64(p + 40);
	h->tok = get32(p + 48);
	h->layer = p[52];
	h->head = p[53];
	h->slot = get16(p + 54);
	h->bytes = get16(p + 56) * HAWK_FRAME_ALIGN;
	h->hints = p[58];
	h->turn = p[59];
	h->crc = get32(p + 60);
	memcpy(h->key, p + HAWK_HEADER_KEY, HAWK_KEY_BYTES);
	memcpy(h->parent, p + 96, HAWK_KEY_BYTES);
}

int hawk_header_decode(const u8 *p, u64 pool, const struct hawk_record *r, u32 slot,
		       struct hawk_header *h)
{
	if (all_zero(p, HAWK_HEADER_BYTES))
		return -ENOENT;
	if (get32(p) != HEADER_MAGIC || !whole(p, HAWK_HEADER_BYTES, SMALL_CRC))
		return -EILSEQ;
	hawk_header_read(p, h);
	if (get64(p + 8) != pool || h->epoch != r->epoch)
		return -ESTALE;
	if (!r->kept || h->slot != slot || h->bytes != r->owner.block_bytes ||
	    h->space != r->space || h->model_id != r->owner.model_id ||
	    h->layer >= r->owner.layers || h->head >= r->owner.head_groups ||
	    all_zero(h->key, HAWK_KEY_BYTES))
		return -EILSEQ;
	return 0;
}

/* ---- identity ---- */

void hawk_identity_of(const struct hawk_space_create *c, u32 uid, struct hawk_identity *id)
{
	u32 i;

	memset(id, 0, sizeof(*id));
	for (i = 0; i < sizeof(id->name) && c->name[i]; i++)
		id->name[i] = c->name[i];
	id->model_id = c->model_id;
	id->uid = uid;
	id->block_bytes = c->block_bytes;
	id->block_tokens = c->block_tokens;
	id->layers = c->layers;
	id->head_groups = c->head_groups;
	id->layout = c->layout;
	id->dtype = c->dtype;
	id->tp_rank = c->tp_rank;
	id->tp_degree = c->tp_degree;
	id->shift = !!(c->flags & HAWK_SPACE_SHIFT);
	id->token_bytes = c->token_bytes;
	id->planes = c->planes;
}

u64 hawk_identity_hash(const struct hawk_identity *id)
{
	const u32 pair[] = {
		id->uid, id->block_bytes, id->block_tokens, id->layers, id->head_groups,
		id->layout, id->dtype, id->tp_rank, id->tp_degree, id->shift,
		id->token_bytes, id->planes,
	};
	u64 hash = hawk_mix(id->model_id + 1);
	u32 i;

	for (i = 0; i < sizeof(id->name); i += 8)
		hash = hawk_mix(hash ^ get64(id->name + i)) + i;
	for (i = 0; i < ARRAY_SIZE(pair); i += 2)
		hash = hawk_mix(hash ^ ((u64)pair[i + 1] << 32 | pair[i])) + i;
	return hash;
}

bool hawk_identity_same(const struct hawk_identity *a, const struct hawk_identity *b)
{
	return !memcmp(a, b, sizeof(*a));
}
