/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * flashfmt.h - what a persistent flash pool looks like on its device or file
 *
 * Everything is little-endian, at fixed offsets; what is not named is zero and is not looked
 * at.  A CRC is CRC32C of all bytes of the structure with its own four bytes taken as zero.
 *
 *	superblock 0	at 0, 4096 bytes
 *	superblock 1	at 65536, 4096 bytes
 *	records		one of 256 bytes per chunk, from 69632 on
 *	headers		one of 128 bytes per slot: chunk after chunk, CHUNK / slot_bytes each
 *	payload		chunks of 2 MiB, aligned to 2 MiB
 *	nothing		at least the last 4096 bytes of the pool
 *
 * Where superblock 1 is does not depend on the size: it is found when superblock 0 cannot be
 * read, whatever the pool's or the device's size, and making a pool overwrites it.  Areas
 * begin at multiples of 4096.  A slot is a block-sized place in a chunk, counted from the
 * chunk's start; blocks larger than slot_bytes use the first headers of their chunk only.
 * 4096 bytes of headers are a page: the unit in which they are written.
 *
 * Superblock
 *	  0  8	"HAWKPOOL"
 *	  8  4	format version, 2
 *	 12  4	CRC
 *	 16 16	uuid of the pool; its first 8 bytes, as a number, are the pool id
 *	 32  8	sequence: one more each time it is written for a new use
 *	 40  8	bytes of the pool
 *	 48  4	chunks
 *	 52  4	slot_bytes, 4096 to 65536, a power of two: the smallest block kept
 *	 56  8	offset of the records
 *	 64  8	offset of the headers
 *	 72  8	offset of the payload
 *	 80  8	rated endurance, bytes per day, 0: not told
 *	 88  8	bytes written to the pool in its life, as far as clean ends counted them
 *	 96  8	when it was formatted, seconds since 1970
 *	104  4	1: not in use, all headers are written; 0: in use
 *
 * Record
 *	  0  4	"HKCR"
 *	  4  4	CRC
 *	  8  8	pool id
 *	 16  8	epoch
 *	 24  4	number of the chunk
 *	 28  4	1: blocks here are kept for the space below; 0: nobody's, or of a space
 *		that ends with its process
 *	 32  4	uid of the space's owner
 *	 36  4	block bytes
 *	 40  4	tokens of a block
 *	 44  4	layers
 *	 48  4	head groups
 *	 52  4	layout
 *	 56  4	dtype
 *	 60  4	tensor-parallel rank
 *	 64  4	tensor-parallel degree
 *	 68  4	1: keys may be read shifted
 *	 72  8	model id
 *	 80 64	name, padded with zeroes
 *	144  4	bytes of a token in one plane
 *	148  4	planes
 *
 * Header
 *	  0  4	"HKSH"
 *	  4  4	CRC
 *	  8  8	pool id
 *	 16  8	epoch of the chunk's record
 *	 24  8	generation: larger is younger
 *	 32  8	hash of the space's identity
 *	 40  8	model id
 *	 48  4	first token that the block held under its LID
 *	 52  1	layer
 *	 53  1	head group
 *	 54  2	slot in its chunk
 *	 56  2	bytes of the block / 4096
 *	 58  1	hints of the caller: 1 parent known, 2 transient, 4 persist, 8 tail, 16 root
 *	 59  1	turn of the conversation, 0: not known, 255: or later
 *	 60  4	CRC32C of the payload
 *	 64 32	key
 *	 96 32	key of the block with the tokens before, zero: none, or not known
 *
 * Plain flash, of which nothing is kept, is payload from its first byte on: what its users
 * write there may look like a pool.  So its last whole page, which is no payload then, says
 * what it is, and where it does nothing else is looked at.  In a pool that page is the
 * last one, or behind the pool: no block gets there either.  hawk_plain_layout() has
 * where chunks and mark are; where the mark is not there yet it is durable before the first
 * block is written.
 *
 * Mark
 *	  0  8	"HAWKTEMP"
 *	 12  4	CRC, of 4096 bytes
 *
 * Why a block that is found is the block that was written:
 *
 * - An epoch is used once in the life of a pool, for one chunk and one owner: it is the
 *   number of use (sequence) << 40 plus a counter; when half of what a use has is used
 *   up, it goes on with the next one.  Each time a chunk gets an owner its
 *   record is written with a new one, and is durable before the first payload byte of that
 *   owner is.  So no header of a former owner, or of a former time, counts any more: the
 *   present owner's bytes are never read through it.  CRC32C alone would not do: whoever
 *   writes the bytes can make it come out as he likes.
 * - The two superblocks are written one after the other before anything else is, each
 *   durable before the next step: at least one is whole, and with it the sequence.
 * - Headers are written after a flush that follows the payloads that they name.  A header
 *   therefore never precedes its payload.
 * - A slot may be used again by the same owner before its old header is overwritten.  Then
 *   the old header names bytes with another CRC: a miss.
 * - Of two headers with one key the younger generation counts.  Generations are numbers
 *   from the same counter as epochs.
 * - A write that is torn between sectors leaves neighbours as they were, since a page is
 *   written with what is known of all its slots; one that is torn within a header or a
 *   record has a wrong CRC there, and so has a sector that reads as nonsense.  Neither
 *   structure straddles a sector of 512 bytes.
 * - A header names its slot and by its epoch its chunk, a record its chunk: what was
 *   written to, or read from, a wrong place is not taken for what should be there.
 */
#ifndef HAWK_CORE_FLASHFMT_H
#define HAWK_CORE_FLASHFMT_H

#include "port.h"
#include "../../uapi/hawk.h"

#define HAWK_POOL_VERSION	2
#define HAWK_POOL_PAGE		4096u	/* bytes of a superblock, and of a page of headers */
#define HAWK_SUPER_1_OFF	65536u
#define HAWK_RECORD_BYTES	256u
#define HAWK_HEADER_BYTES	128u
#define HAWK_HEADER_KEY		64u	/* where its key is */
#define HAWK_PAGE_HEADERS	(HAWK_POOL_PAGE / HAWK_HEADER_BYTES)
#define HAWK_PAGE_RECORDS	(HAWK_POOL_PAGE / HAWK_RECORD_BYTES)
#define HAWK_SLOT_BYTES_MIN	4096u
#define HAWK_SLOT_BYTES_MAX	65536u	/* so that no page has headers of two chunks */
#define HAWK_SLOT_BYTES_DEFAULT	16384u
#define HAWK_RATED_MAX		(1ull << 61)	/* bytes per day; no drive stands so much */
#define HAWK_EPOCH_SHIFT	40	/* uses of a pool above, a counter below */
#define HAWK_SEQ_MAX		((1ull << (64 - HAWK_EPOCH_SHIFT)) - 1)

/**
 * struct hawk_super - a superblock
 * @uuid: of the pool
 * @seq: number of its use
 * @bytes: of the pool
 * @record_off: offset of the records, bytes
 * @header_off: offset of the headers, bytes
 * @data_off: offset of the payload, bytes
 * @rated: rated endurance, bytes per day, HAWK_RATED_MAX at most; 0: not told
 * @written: bytes written in its life, as far as they were counted
 * @created: when it was formatted, seconds since 1970
 * @chunks: chunks of payload
 * @slot_bytes: smallest block that has a header
 * @clean: not in use, all headers are written
 */
struct hawk_super {
	u8 uuid[16];
	u64 seq;
	u64 bytes;
	u64 record_off;
	u64 header_off;
	u64 data_off;
	u64 rated;
	u64 written;
	u64 created;
	u32 chunks;
	u32 slot_bytes;
	bool clean;
};

/**
 * struct hawk_identity - which space a chunk is kept for; compared as a whole
 * @name: its name, padded with zeroes
 * @model_id: as &struct hawk_space_create has it, and so on
 * @uid: of its owner
 * @block_bytes: bytes of a block
 * @block_tokens: tokens of a block
 * @layers: layers of the model
 * @head_groups: head groups
 * @layout: layout inside a block
 * @dtype: element type
 * @tp_rank: tensor-parallel rank
 * @tp_degree: tensor-parallel degree
 * @shift: 1: keys may be read shifted
 * @token_bytes: bytes of a token in one plane
 * @planes: planes of a block
 */
struct hawk_identity {
	u8 name[HAWK_NAME_MAX];
	u64 model_id;
	u32 uid;
	u32 block_bytes;
	u32 block_tokens;
	u32 layers;
	u32 head_groups;
	u32 layout;
	u32 dtype;
	u32 tp_rank;
	u32 tp_degree;
	u32 shift;
	u32 token_bytes;
	u32 planes;
};

/**
 * struct hawk_record - a chunk and whose it is
 * @epoch: of this owner's time
 * @space: hawk_identity_hash() of @owner; set by hawk_record_decode()
 * @chunk: number of the chunk
 * @kept: blocks are kept for @owner; else @owner is zero
 * @owner: the space
 */
struct hawk_record {
	u64 epoch;
	u64 space;
	u32 chunk;
	bool kept;
	struct hawk_identity owner;
};

/**
 * struct hawk_header - a block in its slot
 * @epoch: of the chunk's record
 * @gen: generation
 * @space: hawk_identity_hash() of the owner
 * @model_id: of the space
 * @key: of the block
 * @parent: key of the block before, or zero
 * @tok: first token under its LID
 * @bytes: of the block
 * @crc: CRC32C of the payload
 * @slot: in the chunk
 * @layer: of its LID
 * @head: head group of its LID
 * @hints: what the caller said of the block; for admission
 * @turn: of the conversation; likewise
 */
struct hawk_header {
	u64 epoch;
	u64 gen;
	u64 space;
	u64 model_id;
	u8 key[HAWK_KEY_BYTES];
	u8 parent[HAWK_KEY_BYTES];
	u32 tok;
	u32 bytes;
	u32 crc;
	u16 slot;
	u8 layer;
	u8 head;
	u8 hints;
	u8 turn;
};

/**
 * hawk_super_layout() - work out the areas of a pool
 * @s: @bytes and @slot_bytes in; @bytes rounded down to pages, @chunks and offsets out
 *
 * Return: 0; -EINVAL: @slot_bytes; -ENOSPC: @bytes has no room for a chunk.
 */
int hawk_super_layout(struct hawk_super *s);

/**
 * hawk_super_encode() - write a superblock
 * @s: superblock, laid out
 * @p: out, HAWK_POOL_PAGE bytes
 */
void hawk_super_encode(const struct hawk_super *s, u8 *p);

/**
 * hawk_super_decode() - read a superblock
 * @p: HAWK_POOL_PAGE bytes
 * @s: out
 *
 * Return: 0; -ENOENT: no pool; -EILSEQ: the CRC is wrong; -EPROTONOSUPPORT: its version is
 * not known; -EUCLEAN: its CRC is right and its figures make no pool.
 */
int hawk_super_decode(const u8 *p, struct hawk_super *s);

/**
 * hawk_super_choose() - which of the two counts
 * @err: what hawk_super_decode() said of each
 * @s: both
 *
 * Return: 0 or 1: that one; else the errno of the first one that looks like a pool:
 * -ENOENT if none does.
 */
int hawk_super_choose(const int err[2], const struct hawk_super s[2]);

/**
 * hawk_plain_layout() - where chunks and mark of plain flash are
 * @size: of the device or file, bytes
 * @bytes: wanted, 0: all
 * @grows: it is a file, which gets a page more if there is none behind its chunks
 * @chunks: out, from its start on; 0: it is too small
 *
 * Return: offset of the mark, bytes; a file that ends before ends with it then.
 */
u64 hawk_plain_layout(u64 size, u64 bytes, bool grows, u32 *chunks);

/** hawk_plain_off() - where to look for the mark: the last whole page of @size bytes */
static inline u64 hawk_plain_off(u64 size)
{
	return size < HAWK_POOL_PAGE ? 0 : (size & ~(u64)(HAWK_POOL_PAGE - 1)) - HAWK_POOL_PAGE;
}

/** hawk_plain_encode() - write the mark to HAWK_POOL_PAGE bytes */
void hawk_plain_encode(u8 *p);

/** hawk_plain_marked() - are these HAWK_POOL_PAGE bytes the mark? */
bool hawk_plain_marked(const u8 *p);

/** hawk_super_copy_off() - where superblock @copy lies, bytes */
static inline u64 hawk_super_copy_off(u32 copy)
{
	return copy ? HAWK_SUPER_1_OFF : 0;
}

/** hawk_pool_id() - the pool id in records and headers */
u64 hawk_pool_id(const struct hawk_super *s);

/** hawk_pool_slots() - headers of a chunk */
static inline u32 hawk_pool_slots(const struct hawk_super *s)
{
	return HAWK_CHUNK_BYTES / s->slot_bytes;
}

/** hawk_record_off() - offset of the record of @chunk, bytes */
static inline u64 hawk_record_off(const struct hawk_super *s, u32 chunk)
{
	return s->record_off + (u64)chunk * HAWK_RECORD_BYTES;
}

/** hawk_header_off() - offset of the first header of @chunk, bytes */
static inline u64 hawk_header_off(const struct hawk_super *s, u32 chunk)
{
	return s->header_off + (u64)chunk * hawk_pool_slots(s) * HAWK_HEADER_BYTES;
}

/**
 * hawk_record_encode() - write the record of a chunk
 * @r: record
 * @pool: pool id
 * @p: out, HAWK_RECORD_BYTES bytes
 */
void hawk_record_encode(const struct hawk_record *r, u64 pool, u8 *p);

/**
 * hawk_record_decode() - read the record of a chunk
 * @p: HAWK_RECORD_BYTES bytes
 * @pool: pool id
 * @chunk: number of the chunk
 * @r: out
 *
 * Return: 0; -ENOENT: none was ever written in this pool; -EILSEQ: it is not whole, or of
 * another chunk.
 */
int hawk_record_decode(const u8 *p, u64 pool, u32 chunk, struct hawk_record *r);

/**
 * hawk_header_encode() - write the header of a slot
 * @h: header
 * @pool: pool id
 * @p: out, HAWK_HEADER_BYTES bytes
 */
void hawk_header_encode(const struct hawk_header *h, u64 pool, u8 *p);

/**
 * hawk_header_decode() - read the header of a slot
 * @p: HAWK_HEADER_BYTES bytes
 * @pool: pool id
 * @r: record of its chunk
 * @slot: slot in the chunk
 * @h: out
 *
 * Return: 0; -ENOENT: the slot is empty; -ESTALE: it is whole and of a former time of the
 * chunk, or of another pool; -EILSEQ: it is not whole, or not of this slot or space.
 */
int hawk_header_decode(const u8 *p, u64 pool, const struct hawk_record *r, u32 slot,
		       struct hawk_header *h);

/**
 * hawk_header_read() - the fields of a header that hawk_header_decode() has found good
 * @p: HAWK_HEADER_BYTES bytes
 * @h: out
 */
void hawk_header_read(const u8 *p, struct hawk_header *h);

/**
 * hawk_identity_of() - the identity of a space that is being made
 * @c: the space
 * @uid: user id of its owner
 * @id: out
 */
void hawk_identity_of(const struct hawk_space_create *c, u32 uid, struct hawk_identity *id);

/** hawk_identity_hash() - of all of @id, the same everywhere; no proof of identity */
u64 hawk_identity_hash(const struct hawk_identity *id);

/** hawk_identity_same() - do both name the same space? */
bool hawk_identity_same(const struct hawk_identity *a, const struct hawk_identity *b);

#endif /* HAWK_CORE_FLASHFMT_H */
