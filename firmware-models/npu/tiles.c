// SPDX-License-Identifier: GPL-2.0
/*
 * tiles.c - matrices from one layout to another
 *
 * A matrix has rows of dim elements.  In tiles it is padded to whole tiles of 16 rows;
 * element (r, d) lies at
 *
 *	ROWS	r * dim + d
 *	TILES	((r / 16 * (dim / 16) + d / 16) * 16 + r % 16) * 16 + d % 16
 *	NZ	((d / w * (rows / 16) + r / 16) * 16 + r % 16) * w + d % w,  w = 32 / elem
 *
 * (in elements).  Pad rows are zero.
 */
#include <stdlib.h>
#include <string.h>

#include "npu.h"

#define TILE	16u

static uint64_t padded(uint32_t rows)
{
	return ((uint64_t)rows + TILE - 1) / TILE * TILE;
}

/* The elements that lie side by side. */
static uint32_t run(const struct hawk_npu_shape *s, uint32_t layout)
{
	switch (layout) {
	case HAWK_NPU_TILES: return TILE;
	case HAWK_NPU_NZ: return 32u / s->elem;
	default: return s->dim;
	}
}

/* Where element (r, d) lies, in elements. */
static uint64_t place(const struct hawk_npu_shape *s, uint32_t layout, uint64_t r, uint32_t d)
{
	uint32_t w = run(s, layout);

	switch (layout) {
	case HAWK_NPU_TILES:
		return ((r / TILE * (s->dim / TILE) + d / TILE) * TILE + r % TILE) * TILE + d % TILE;
	case HAWK_NPU_NZ:
		return ((d / w * (padded(s->rows) / TILE) + r / TILE) * TILE + r % TILE) * w + d % w;
	default:
		return r * s->dim + d;
	}
}

static uint64_t matrix_bytes(const struct hawk_npu_shape *s, uint32_t layout)
{
	return (layout == HAWK_NPU_ROWS ? s->rows : padded(s->rows)) * s->dim * s->elem;
}

static bool is_good(const struct hawk_npu_shape *s)
{
	if (s->from > HAWK_NPU_NZ || s->to > HAWK_NPU_NZ || !s->heads || !s->rows || !s->dim)
		return false;
	if (s->elem != 1 && s->elem != 2 && s->elem != 4)
		return false;
	return s->dim % run(s, s->from) == 0 && s->dim % run(s, s->to) == 0;
}

static void transform(const struct hawk_npu_shape *s, uint8_t *to, const uint8_t *from)
{
	uint32_t step = run(s, s->from), d;
	uint64_t r;

	if (run(s, s->to) < step)
		step = run(s, s->to);
	memset(to, 0, matrix_bytes(s, s->to));
	for (r = 0; r < s->rows; r++)
		for (d = 0; d < s->dim; d += step)
			memcpy(to + place(s, s->to, r, d) * s->elem,
			       from + place(s, s->from, r, d) * s->elem, (size_t)step * s->elem);
}

/* The matrices may lie on top of each other: they are read before they are written. */
uint32_t npu_op_transform(struct npu *n, const struct hawk_npu_sqe *cmd)
{
	struct hawk_npu_shape s;
	uint64_t from, to;
	uint8_t *copy;
	uint32_t h;

	memcpy(&s, cmd->arg, sizeof(s));
	if (!is_good(&s))
		return HAWK_NPU_ERR_RANGE;
	from = matrix_bytes(&s, s.from);
	to = matrix_bytes(&s, s.to);
	if (from > cmd->len / s.heads || to > cmd->len / s.heads)
		return HAWK_NPU_ERR_RANGE;
	if (!npu_in_memory(n, cmd->addr, from * s.heads) ||
	    !npu_in_memory(n, cmd->addr2, to * s.heads))
		return HAWK_NPU_ERR_RANGE;
	if (npu_is_damaged(n, cmd->addr, from * s.heads))
		return HAWK_NPU_ERR_ECC;
	copy = malloc(from * s.heads);
	if (!copy)
		return HAWK_NPU_ERR_RANGE;
	memcpy(copy, n->mem + cmd->addr, from * s.heads);
	for (h = 0; h < s.heads; h++)
		transform(&s, n->mem + cmd->addr2 + h * to, copy + h * from);
	free(copy);
	npu_written(n, cmd->addr2, to * s.heads);
	return HAWK_NPU_OK;
}
