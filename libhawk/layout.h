/* SPDX-License-Identifier: MIT */
/*
 * layout.h - what the files of layouts share
 *
 * layout.c	descriptions: checks, strides, names, words
 * layout_plan.c	two descriptions become runs: nests of loops over one piece
 * layout_walk.c	runs become stretches of pieces, with block tables applied
 * layout_copy.c	stretches copied by the CPU; layout_simd.c has its inner loops
 * layout_wire.c	stretches as requests and strided keys of a NIC
 * layout_route.c	the plans of each way, what it costs, which is best
 * layout_costs.c	what copying and sending cost, measured
 */
#ifndef HAWK_LAYOUT_PRIV_H
#define HAWK_LAYOUT_PRIV_H

#include <stdbool.h>

#include "priv.h"

#pragma GCC visibility push(default)
#include <hawk/layout.h>
#pragma GCC visibility pop

#define PLAN_LOOPS	6	/* layers, planes, heads, tokens twice, elements */

/**
 * struct hawk_loop - a repetition
 * @n: how often
 * @src: bytes from one time to the next in the source
 * @dst: and in the destination
 */
struct hawk_loop {
	uint64_t n;
	uint64_t src;
	uint64_t dst;
};

/**
 * struct hawk_run - pieces of one size at equal distances, from one block to one block
 * @src: offset of the first piece, from the start of its block
 * @dst: likewise
 * @len: bytes of a piece
 * @src_block: index in the block table, of the first group
 * @dst_block: likewise
 * @src_step: blocks from one group to the next
 * @dst_step: likewise
 * @groups: how often all this is repeated, in other blocks
 * @loops: loops in use
 * @zero: pad: zeroes, there is no source
 * @loop: the outermost first; in the destination each step is larger than all within, if
 *	that is possible
 *
 * @stretch counts the innermost loops whose pieces follow each other in the destination
 * without a gap.
 */
struct hawk_run {
	uint64_t src;
	uint64_t dst;
	uint64_t len;
	uint32_t src_block;
	uint32_t dst_block;
	uint32_t src_step;
	uint32_t dst_step;
	uint32_t groups;
	uint8_t loops;
	uint8_t stretch;
	bool zero;
	struct hawk_loop loop[PLAN_LOOPS];
};

/**
 * struct hawk_layout_plan - runs
 * @src: layouts
 * @dst: likewise
 * @info: sums
 * @runs: runs in use
 * @room: runs that @run has room for
 * @run: the runs
 */
struct hawk_layout_plan {
	struct hawk_layout src;
	struct hawk_layout dst;
	struct hawk_plan_info info;
	uint32_t runs;
	uint32_t room;
	struct hawk_run *run;
};

/**
 * struct hawk_text - a string that is cut to its buffer
 * @buf: the buffer, @len bytes
 * @at: length of the whole string so far
 */
struct hawk_text {
	char *buf;
	size_t len;
	size_t at;
};

/* layout.c */
void hawk_text_add(struct hawk_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* layout_walk.c */

/**
 * struct hawk_walk - the innermost loops of a run, at one place
 * @run: the run
 * @src: offset of the first piece in the source
 * @dst: offset in the destination
 * @next: @src of the next place, if it is in the same group
 * @inner: loops from run->loop[run->loops - @inner] on are for whoever is called
 */
struct hawk_walk {
	const struct hawk_run *run;
	uint64_t src;
	uint64_t dst;
	uint64_t next;
	unsigned int inner;
};

/* What is called for each place; not 0 ends the walk. */
typedef int (*hawk_walk_fn)(void *ctx, const struct hawk_walk *w);

/* How many of a run's innermost loops are left to whoever is called. */
typedef unsigned int (*hawk_inner_fn)(const void *ctx, const struct hawk_run *run);

int hawk_walk_check(const struct hawk_layout_plan *plan, const struct hawk_blocks *b);
int hawk_walk(const struct hawk_layout_plan *plan, const struct hawk_blocks *b,
	      hawk_inner_fn inner, uint32_t part, uint32_t parts, hawk_walk_fn fn, void *ctx);

/* Pieces of the @n innermost loops of @run. */
static inline uint64_t hawk_run_pieces(const struct hawk_run *run, unsigned int n)
{
	uint64_t pieces = 1;
	unsigned int i;

	for (i = run->loops - n; i < run->loops; i++)
		pieces *= run->loop[i].n;
	return pieces;
}

/* layout_simd.c */

/**
 * struct hawk_pieces - pieces in two loops
 * @len: bytes of a piece
 * @inner: loop over pieces
 * @outer: loop over those
 * @ahead: first piece of what is copied next; maybe of this again
 */
struct hawk_pieces {
	uint64_t len;
	struct hawk_loop inner;
	struct hawk_loop outer;
	const uint8_t *ahead;
};

/**
 * struct hawk_copier - inner loops for one instruction set
 * @name: as $HAWK_ISA has it
 * @cached: copies pieces
 * @stream: the same past the cache; NULL: cannot.  @dst and its strides are multiples of
 *	@stream_align, and so are lengths
 * @fence: ends streaming
 */
struct hawk_copier {
	const char *name;
	void (*cached)(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p);
	void (*stream)(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p);
	void (*fence)(void);
	unsigned int stream_align;
};

const struct hawk_copier *hawk_copier_get(const char *name);

/* layout_copy.c: with the inner loops @k */
int hawk_layout_copy_by(const struct hawk_copier *k, const struct hawk_layout_plan *plan,
			const struct hawk_copy *c);

/* layout_route.c: of @l, what is moved */
int hawk_layout_stage(const struct hawk_layout *l, const struct hawk_layout *other,
		      const struct hawk_range *r, struct hawk_layout *stage);

/* layout_wire.c: requests of a plan that hawk_layout_requests() would make */
uint64_t hawk_requests_count(const struct hawk_layout_plan *plan, uint32_t entries);
uint64_t hawk_requests_entries(const struct hawk_layout_plan *plan);
uint64_t hawk_keys_count(const struct hawk_layout_plan *plan, uint32_t strips);

#endif /* HAWK_LAYOUT_PRIV_H */
