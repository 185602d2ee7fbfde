/* SPDX-License-Identifier: MIT */
/*
 * layout.h - layouts of KV caches, and how bytes get from one to another
 *
 * A layout says at which byte an element lies whose layer, plane (0 keys, 1 values),
 * head, token and number in the head are known.  A plan holds what has to be copied
 * from one layout to another.  All ways to do that start from the same plan: a NIC that
 * gathers pieces, a strided memory key, the CPU on either side.
 *
 * Elements are bits: nothing here converts or rounds.  Nothing here does I/O or takes a
 * lock; what is const may be used by several threads at once.
 */
#ifndef HAWK_LAYOUT_H
#define HAWK_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <hawk/hawk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Axes of a layout; the letter names it in &struct hawk_layout.order. */
enum hawk_axis {
	HAWK_AXIS_LAYER,	/* l */
	HAWK_AXIS_PLANE,	/* k: keys, then values */
	HAWK_AXIS_BLOCK,	/* b */
	HAWK_AXIS_HEAD,		/* h */
	HAWK_AXIS_TILE_ROW,	/* t: tiles along the tokens of a block */
	HAWK_AXIS_TILE_COL,	/* d: tiles along the elements of a head */
	HAWK_AXIS_ROW,		/* r: a token's row in its tile */
	HAWK_AXIS_COL,		/* c: a byte in such a row; always the last */
	HAWK_AXES
};

/**
 * struct hawk_layout - where the elements of a KV cache lie
 * @order: axes from the outermost to the innermost, each letter once: "lkbhtdrc" are
 *	tiles, row after row of them, head by head.  Without tiles "lkbthd" is enough
 *	(NHD), or "lkbhtd" (HND, the row-major layout)
 * @dtype: caller's tag for the element type, as in &struct hawk_kv_params; both sides of
 *	a plan have the same
 * @elem_bytes: bytes of an element: 1, 2, 4 or 8
 * @dim: elements of a token in one head
 * @heads_all: KV heads of the model
 * @head_first: the first head that is here
 * @heads: heads that are here: a tensor-parallel rank's slice
 * @layers_all: layers of the model
 * @layer_first: the first layer that is here
 * @layers: layers that are here
 * @plane_first: 0, or 1: only the values are here
 * @planes: 2, or 1: keys and values lie apart, or values do not exist
 * @block_tokens: tokens of a block
 * @block_first: number of the first block here, counted in blocks of the sequence
 * @blocks: blocks that there is room for
 * @tile_rows: tokens of a tile, 0 without tiles
 * @tile_bytes: bytes of a tile's row, 0 without tiles; a divisor of @dim * @elem_bytes
 * @stride: bytes from one index of an axis to the next, by enum hawk_axis; 0: packed.
 *	More than packed leaves gaps, less is refused.  Out: all of them
 * @bytes: out, bytes from the first to behind the last one
 *
 * A tile row past the last token of a block, and the rows behind the end of a sequence in
 * the tile row that has its last token, are pad: zero.  Gaps are nobody's.
 */
struct hawk_layout {
	char order[HAWK_AXES + 4];
	uint32_t dtype;
	uint32_t elem_bytes;
	uint32_t dim;
	uint32_t heads_all;
	uint32_t head_first;
	uint32_t heads;
	uint32_t layers_all;
	uint32_t layer_first;
	uint32_t layers;
	uint32_t plane_first;
	uint32_t planes;
	uint32_t block_tokens;
	uint32_t block_first;
	uint32_t blocks;
	uint32_t tile_rows;
	uint32_t tile_bytes;
	uint32_t reserved;
	uint64_t stride[HAWK_AXES];
	uint64_t bytes;
};

/* Layouts that have a name. */
enum hawk_form {
	HAWK_FORM_NHD,		/* [layer, plane, block, token, head, dim] */
	HAWK_FORM_HND,		/* [layer, plane, block, head, token, dim]: row major */
	HAWK_FORM_TILE16,	/* HND in tiles of 16 x 16 elements, row after row */
	HAWK_FORM_TILE32,	/* the same, 32 x 32 elements */
	HAWK_FORM_NZ,		/* tiles of 16 rows x 32 bytes, column after column */
};

#define HAWK_FORM_CROSS_LAYER	(1u << 8)	/* block outermost: all layers of a block together */

/**
 * hawk_layout_init() - check a layout and work out its strides
 * @l: all members but @l->bytes are set
 *
 * A member of @l->heads, @l->layers and @l->planes that is 0 becomes all of them (2
 * planes).
 *
 * Return: 0; -EINVAL (hawk_strerror_last() tells which member, and why: such as a head
 * that is not a whole number of tiles), -EOVERFLOW (more than 2^62 bytes).
 */
int hawk_layout_init(struct hawk_layout *l);

/**
 * hawk_layout_form() - the same for a layout that has a name
 * @form: enum hawk_form, maybe with HAWK_FORM_CROSS_LAYER
 * @l: in: all but order and tiles, which are set
 */
int hawk_layout_form(struct hawk_layout *l, unsigned int form);

/**
 * hawk_layout_slice() - the layout of one tensor-parallel rank
 * @l: as for hawk_layout_form(); its heads are set, then it is worked out
 * @form: enum hawk_form
 * @rank: the rank, less than @degree
 * @degree: ranks, a divisor of @l->heads_all
 */
int hawk_layout_slice(struct hawk_layout *l, unsigned int form, uint32_t rank, uint32_t degree);

/**
 * hawk_layout_space() - the layout of a space's frames in one of its windows
 * @l: @l->elem_bytes, @l->dim, @l->heads_all and @l->blocks (frames of the window) are set;
 *	the rest is
 * @form: enum hawk_form, of the bytes of a frame
 * @p: the space: geometry, dtype; its head groups are the model's heads in order
 * @layer: the layer of the LIDs
 * @group: their head group
 *
 * A frame holds the keys and the values of some heads in one layer, so a block table for
 * this layout has the frame numbers (HAWK_VT_FRAME()) of the blocks of one layer and head
 * group, and byte 0 is that of the address of frame 0.
 *
 * Return: 0 or as hawk_layout_init(); -EINVAL also if a frame is smaller.
 */
int hawk_layout_space(struct hawk_layout *l, unsigned int form, const struct hawk_kv_params *p,
		      uint32_t layer, uint32_t group);

/**
 * hawk_layout_tag() - a number for &struct hawk_kv_params.layout
 *
 * The same for layouts whose elements have the same place in a block, never 0.
 */
uint32_t hawk_layout_tag(const struct hawk_layout *l);

/**
 * struct hawk_place - an element
 * @layer: of the model
 * @plane: 0 keys, 1 values
 * @head: of the model
 * @frame: the block's number here, less than &struct hawk_layout.blocks
 * @token: in the block
 * @elem: in the head
 */
struct hawk_place {
	uint32_t layer;
	uint32_t plane;
	uint32_t head;
	uint32_t frame;
	uint32_t token;
	uint32_t elem;
};

/**
 * hawk_layout_offset() - the byte at which an element starts
 * Return: the offset, or -ERANGE: it is not here.
 */
int64_t hawk_layout_offset(const struct hawk_layout *l, const struct hawk_place *p);

#define HAWK_PRINT_JSON		(1u << 0)	/* an object, not a line */

/**
 * hawk_layout_print() - a layout in words
 * @buf: out, a string, cut to @len bytes
 * @flags: HAWK_PRINT_*
 * Return: length of the whole string, as of snprintf().
 */
int hawk_layout_print(const struct hawk_layout *l, char *buf, size_t len, unsigned int flags);

/* The rows behind the range in its last tile row are zero in the source already: the
 * source's sequence ends there too. */
#define HAWK_RANGE_PADDED	(1u << 0)

/**
 * struct hawk_range - what of a sequence is moved
 * @layer_first: the first layer
 * @layers: layers; 0: all that both sides have
 * @token_first: the first token of the sequence
 * @tokens: tokens, at least 1
 * @flags: HAWK_RANGE_*
 */
struct hawk_range {
	uint32_t layer_first;
	uint32_t layers;
	uint32_t token_first;
	uint32_t tokens;
	uint32_t flags;
};

struct hawk_layout_plan;	/* what is copied from one layout to another */

#define HAWK_PLAN_RUNS_MAX	(1u << 18)	/* runs of a plan */

/**
 * hawk_layout_plan_open() - plan the copying of a range from one layout to another
 * @src: where it is
 * @dst: where it is wanted
 * @r: what; of it, layers, planes and heads that both sides have are copied
 * @plan: out, to be closed
 *
 * With different tensor-parallel degrees, a plan between each rank here and each rank there
 * that have a head in common moves all.  Blocks of both sides may have different sizes.
 *
 * Return: 0; -EINVAL (not the same model, dtype or element size), -ENOENT (they have no
 * layer, plane or head of it in common), -ERANGE (a side has not all the tokens), -E2BIG
 * (more than HAWK_PLAN_RUNS_MAX runs: take a shorter range), -ENOMEM.
 */
int hawk_layout_plan_open(const struct hawk_layout *src, const struct hawk_layout *dst,
			  const struct hawk_range *r, struct hawk_layout_plan **plan);

/** hawk_layout_plan_close() - NULL is ignored */
void hawk_layout_plan_close(struct hawk_layout_plan *plan);

/**
 * struct hawk_plan_info - what a plan does
 * @bytes: bytes that are copied
 * @pad_bytes: zeroes that are written
 * @pieces: contiguous pieces in the source, pads included
 * @stretches: contiguous pieces in the destination, as far as a run of the plan knows
 * @piece_min: bytes of the smallest piece
 * @piece_max: bytes of the largest one
 * @src_blocks: entries of the block table of the source that are looked at
 * @dst_blocks: and of the destination
 * @runs: runs of the plan
 * @reserved: 0
 */
struct hawk_plan_info {
	uint64_t bytes;
	uint64_t pad_bytes;
	uint64_t pieces;
	uint64_t stretches;
	uint64_t piece_min;
	uint64_t piece_max;
	uint32_t src_blocks;
	uint32_t dst_blocks;
	uint32_t runs;
	uint32_t reserved;
};

void hawk_layout_plan_info(const struct hawk_layout_plan *plan, struct hawk_plan_info *info);

/** hawk_layout_plan_print() - a plan in words, run by run; as hawk_layout_print() */
int hawk_layout_plan_print(const struct hawk_layout_plan *plan, char *buf, size_t len,
			   unsigned int flags);

/**
 * struct hawk_blocks - the block tables of a transfer
 * @src: by block of the source, from @src->block_first on: its number there; NULL: 0, 1, 2, ...
 * @dst: likewise
 * @src_count: entries of @src, at least &struct hawk_plan_info.src_blocks
 * @dst_count: entries of @dst
 */
struct hawk_blocks {
	const uint32_t *src;
	const uint32_t *dst;
	uint32_t src_count;
	uint32_t dst_count;
};

#define HAWK_COPY_CACHED	(1u << 0)	/* through the cache, whatever the size */
#define HAWK_COPY_STREAM	(1u << 1)	/* past the cache wherever possible */

/**
 * struct hawk_copy - a transfer by the CPU
 * @src: byte 0 of the source layout
 * @src_bytes: bytes there
 * @dst: byte 0 of the destination layout; it must not overlap the source
 * @dst_bytes: bytes there
 * @blocks: block tables, NULL for none
 * @part: this call's part, less than @parts
 * @parts: so many calls, by one or several threads, do all; 0 is 1
 * @flags: HAWK_COPY_*; 0: past the cache if the transfer is larger than it
 */
struct hawk_copy {
	const void *src;
	uint64_t src_bytes;
	void *dst;
	uint64_t dst_bytes;
	const struct hawk_blocks *blocks;
	uint32_t part;
	uint32_t parts;
	uint32_t flags;
};

/**
 * hawk_layout_copy() - carry a plan out, by the CPU
 *
 * Return: 0; -EINVAL, -ERANGE (a table is too short or names a block that is not there, or
 * there is less memory than the layout takes): nothing was copied.
 */
int hawk_layout_copy(const struct hawk_layout_plan *plan, const struct hawk_copy *c);

/** hawk_layout_isa() - instructions that hawk_layout_copy() uses: "avx512", "avx2" or "c";
 *	$HAWK_ISA chooses */
const char *hawk_layout_isa(void);

#define HAWK_ENTRIES_MAX	1024u		/* entries of a request */
#define HAWK_ZEROES		4096u		/* zero bytes that a NIC must have at hand */

/**
 * struct hawk_entry - bytes that a request gathers
 * @off: offset in the source, or in HAWK_ZEROES zero bytes
 * @len: bytes
 * @zero: 1: these are zeroes
 */
struct hawk_entry {
	uint64_t off;
	uint32_t len;
	uint32_t zero;
};

/**
 * struct hawk_request - a write of a NIC: local pieces to one contiguous range
 * @off: offset in the destination
 * @bytes: bytes of all entries
 * @entry: the entries, in order
 * @entries: how many
 */
struct hawk_request {
	uint64_t off;
	uint64_t bytes;
	const struct hawk_entry *entry;
	uint32_t entries;
};

/**
 * struct hawk_requests - what the requests of a plan may be like
 * @blocks: block tables, NULL for none
 * @entries: entries of one at most, 1..HAWK_ENTRIES_MAX (ibv_device_attr.max_sge)
 * @bytes: bytes of one at most, at least 4096; 0: 1 GiB
 * @post: called for each; not 0: stop
 * @ctx: its first argument
 */
struct hawk_requests {
	const struct hawk_blocks *blocks;
	uint32_t entries;
	uint32_t bytes;
	int (*post)(void *ctx, const struct hawk_request *r);
	void *ctx;
};

/**
 * hawk_layout_requests() - the work requests that carry a plan out
 *
 * A request gathers into one contiguous range only, so a tile of 16 x 16 elements of two
 * bytes takes 16 entries of 32 bytes, and 32 entries write two tiles that neighbour each
 * other.
 *
 * Return: 0; what @q->post returned; -EINVAL, -ERANGE, -ENOMEM.
 */
int hawk_layout_requests(const struct hawk_layout_plan *plan, const struct hawk_requests *q);

/**
 * struct hawk_strip - pieces at equal distances
 * @off: offset of the first in the source, or in zeroes
 * @bytes: bytes of each
 * @skip: bytes between the end of one and the start of the next
 * @zero: 1: these are zeroes
 */
struct hawk_strip {
	uint64_t off;
	uint32_t bytes;
	uint32_t skip;
	uint32_t zero;
	uint32_t reserved;
};

/**
 * struct hawk_key_pattern - a strided memory key and the write of all that it shows
 * @off: offset in the destination
 * @bytes: bytes that the key shows: @repeat times those of all strips
 * @repeat: the key shows the first piece of each strip, then the second of each, ...
 * @strips: how many
 * @strip: the strips (mlx5: the entries of an interleaved key)
 */
struct hawk_key_pattern {
	uint64_t off;
	uint64_t bytes;
	uint32_t repeat;
	uint32_t strips;
	const struct hawk_strip *strip;
};

/**
 * struct hawk_key_patterns - what the keys of a plan may be like
 * @blocks: block tables, NULL for none
 * @strips: strips of one at most, 1..HAWK_ENTRIES_MAX
 * @post: called for each; not 0: stop
 * @ctx: its first argument
 */
struct hawk_key_patterns {
	const struct hawk_blocks *blocks;
	uint32_t strips;
	int (*post)(void *ctx, const struct hawk_key_pattern *k);
	void *ctx;
};

/** hawk_layout_keys() - the strided keys that carry a plan out; as hawk_layout_requests() */
int hawk_layout_keys(const struct hawk_layout_plan *plan, const struct hawk_key_patterns *q);

/* Ways from one layout to another; all give the same bytes. */
enum hawk_way {
	HAWK_WAY_ENTRIES,	/* the NIC gathers entries */
	HAWK_WAY_KEYS,		/* the NIC reads through strided keys */
	HAWK_WAY_SENDER,	/* the sender's CPU into a staging frame, then large writes */
	HAWK_WAY_RECEIVER,	/* large writes into a staging frame, then the receiver's CPU */
	HAWK_WAY_BIRTH,		/* it is in the wanted layout from birth: large writes */
	HAWK_WAYS
};

/**
 * struct hawk_route - the steps of a way
 * @way: enum hawk_way
 * @reserved: 0
 * @stage: layout of the staging frame, if there is one; its block table is the identity
 * @before: the sender's CPU copies into the staging frame by it; or NULL
 * @wire: what is sent
 * @after: the receiver's CPU copies out of the staging frame by it; or NULL
 */
struct hawk_route {
	uint32_t way;
	uint32_t reserved;
	struct hawk_layout stage;
	struct hawk_layout_plan *before;
	struct hawk_layout_plan *wire;
	struct hawk_layout_plan *after;
};

/**
 * hawk_route_open() - the plans of a way
 * @way: enum hawk_way
 * @rt: out, to be closed
 *
 * Return: 0 or as hawk_layout_plan_open(); -EOPNOTSUPP: HAWK_WAY_BIRTH between layouts whose
 * blocks differ.
 */
int hawk_route_open(const struct hawk_layout *src, const struct hawk_layout *dst,
		    const struct hawk_range *r, unsigned int way, struct hawk_route *rt);

/** hawk_route_close() - end its plans; may be called twice */
void hawk_route_close(struct hawk_route *rt);

/**
 * struct hawk_costs - what moving costs, as measured
 * @link_mb_per_s: the link, 10^6 bytes per second
 * @entries: entries of a request at most, 0: the NIC cannot gather
 * @strips: strips of a key at most, 0: no strided keys
 * @request_ps: a request more, picoseconds
 * @entry_ps: an entry more
 * @key_ps: a strided key more
 * @copy_mb_per_s: the sender's CPU copying large pieces, all threads together
 * @piece_ps: and for each piece
 * @far_copy_mb_per_s: the receiver's, 0: as the sender's
 * @far_piece_ps: likewise
 * @frame_bytes: bytes of a staging frame: so much must have been copied before the link can
 *	start, or is copied when it has ended
 * @born: 1: who fills the source can do it in the layout that is wanted
 * @reserved: 0
 */
struct hawk_costs {
	uint64_t link_mb_per_s;
	uint32_t entries;
	uint32_t strips;
	uint64_t request_ps;
	uint64_t entry_ps;
	uint64_t key_ps;
	uint64_t copy_mb_per_s;
	uint64_t piece_ps;
	uint64_t far_copy_mb_per_s;
	uint64_t far_piece_ps;
	uint64_t frame_bytes;
	uint32_t born;
	uint32_t reserved;
};

/**
 * hawk_costs_cpu() - measure the CPU's part, in some 0.1 s
 * @c: out: copy_mb_per_s, piece_ps of one thread; the rest is left alone
 * Return: 0 or -ENOMEM.
 */
int hawk_costs_cpu(struct hawk_costs *c);

/**
 * struct hawk_nic_probe - how hawk_costs_nic() gets at a NIC
 * @write: post @count requests of @entries entries of @bytes bytes each, and wait until they
 *	are complete; returns nanoseconds or a negative errno
 * @ctx: its first argument
 * @entries: entries of a request at most
 * @reserved: 0
 */
struct hawk_nic_probe {
	int64_t (*write)(void *ctx, uint32_t count, uint32_t entries, uint32_t bytes);
	void *ctx;
	uint32_t entries;
	uint32_t reserved;
};

/**
 * hawk_costs_nic() - measure a NIC's part
 * @c: out: link_mb_per_s, entries, request_ps, entry_ps
 *
 * Requests of 1 MiB, and of 64 bytes in one entry and in all: as many as take 20 ms, 64 at most,
 * three times.
 *
 * Return: 0; -EINVAL; what @p->write returned.
 */
int hawk_costs_nic(struct hawk_costs *c, const struct hawk_nic_probe *p);

/**
 * struct hawk_choice - what each way would cost
 * @way: the best one
 * @possible: bit per way
 * @ns: time of each, nanoseconds
 * @bytes: bytes that get to the destination, pads included
 * @pieces: pieces that the layouts have in common
 * @requests: requests of HAWK_WAY_ENTRIES
 * @keys: keys of HAWK_WAY_KEYS
 * @writes: large writes, by way; 0 for the first two
 */
struct hawk_choice {
	uint32_t way;
	uint32_t possible;
	uint64_t ns[HAWK_WAYS];
	uint64_t bytes;
	uint64_t pieces;
	uint64_t requests;
	uint64_t keys;
	uint64_t writes[HAWK_WAYS];
};

/**
 * hawk_layout_choose() - the way that takes the least time
 *
 * HAWK_WAY_BIRTH is possible where the layouts are the same, or @c->born.
 *
 * Return: 0 or as hawk_layout_plan_open(); -EINVAL: no bandwidth is known.
 */
int hawk_layout_choose(const struct hawk_layout *src, const struct hawk_layout *dst,
		       const struct hawk_range *r, const struct hawk_costs *c,
		       struct hawk_choice *out);

/** hawk_choice_print() - a choice and why, in words; as hawk_layout_print() */
int hawk_choice_print(const struct hawk_choice *ch, const struct hawk_costs *c, char *buf,
		      size_t len, unsigned int flags);

#ifdef __cplusplus
}
#endif

#endif /* HAWK_LAYOUT_H */
