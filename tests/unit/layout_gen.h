/* SPDX-License-Identifier: MIT */
/*
 * layout_gen.h - pairs of layouts drawn by lot, and where their elements lie by formula
 *
 * Nothing here uses the code that is tested: offsets are worked out from the order of the
 * axes alone.
 */
#ifndef LAYOUT_GEN_H
#define LAYOUT_GEN_H

#include "libfixture.h"

#include <hawk/layout.h>

/**
 * struct lg_side - one side of a transfer
 * @l: its layout
 * @table: block table, by block from l.block_first on
 * @count: its entries
 * @step: bytes between two indices of an axis, by letter of "lkbhtdrc", worked out here
 * @mem: bytes of the layout
 */
struct lg_side {
	struct hawk_layout l;
	uint32_t table[128];
	uint32_t count;
	uint64_t step[HAWK_AXES];
	uint8_t *mem;
};

struct lg_pair {
	struct lg_side src;
	struct lg_side dst;
	struct hawk_range r;
	uint64_t seed;
};

struct lg_rng {
	uint64_t state;
};

uint64_t lg_rand(struct lg_rng *g, uint64_t n);
void lg_bytes(struct lg_rng *g, uint8_t *p, uint64_t n);

/* HAWK_SEED, or @seed; HAWK_OPS, or @n. */
uint64_t lg_seed(uint64_t seed);
uint64_t lg_ops(uint64_t n);

/* Before the @i-th of @n, from number @first on: a line now and then if many were asked for. */
void lg_progress(uint64_t first, uint64_t i, uint64_t n);

/* Two layouts of a model and what is moved between them; memory with bytes drawn by lot. */
void lg_pair_make(struct lg_pair *p, uint64_t seed);
void lg_pair_free(struct lg_pair *p);
void lg_pair_print(const struct lg_pair *p);

/* Byte @x of a head at row @row of its block (may be a pad's row). */
uint64_t lg_offset(const struct lg_side *s, uint32_t layer, uint32_t plane, uint32_t head,
		   uint32_t block, uint32_t row, uint32_t x);

/* What @p->dst.mem has to be, elements and pads written, the rest as it is now. */
uint8_t *lg_expect(const struct lg_pair *p);

struct hawk_blocks lg_blocks(const struct lg_pair *p);

#endif /* LAYOUT_GEN_H */
