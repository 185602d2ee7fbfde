/* SPDX-License-Identifier: MIT */
/*
 * npu_kv.h - KV and queries of a model, where they lie, and what attention to them is
 *
 * A few layers with the shapes of a 70B model: 64 query heads, 8 KV heads of 128 elements,
 * 16-bit floats.  A block has 16 tokens in all layers.  Nothing here uses libhawk's layouts:
 * places are worked out by formula, and the reference reads plain arrays of rows.
 */
#ifndef NPU_KV_H
#define NPU_KV_H

#include <stdbool.h>
#include <stdint.h>

#define LAYERS		4u
#define HEADS		64u
#define KV_HEADS	8u
#define DIM		128u
#define BLOCK_TOKENS	16u
#define TOKENS		150u	/* the last block has 6 */
#define BLOCKS		((TOKENS + BLOCK_TOKENS - 1) / BLOCK_TOKENS)

#define PLANE_BYTES	(KV_HEADS * BLOCK_TOKENS * DIM * 2)	/* keys or values of a layer */
#define LAYER_BYTES	(2 * PLANE_BYTES)
#define BLOCK_BYTES	(LAYERS * LAYER_BYTES)
#define QUERY_BYTES	(HEADS * DIM * 2)	/* of a layer */
#define OUT_BYTES	(HEADS * DIM * 4)
#define SCALE		0.25f	/* some tokens count more than others */
#define ERROR_MAX	1e-3f

/* Draws all numbers: small ones that 16 bits hold exactly; works the reference out. */
void kv_make(uint32_t seed);

/* Queries of a layer as 16-bit floats. */
void kv_query(uint32_t layer, uint16_t *out);

/* Block @b as prefill leaves it: rows of heads, or tiles of 16 x 16 from birth. */
void kv_block(uint32_t b, bool tiles, uint8_t *out);

/* Is @out, all heads of a layer, what attention to it is? The largest error of a head, relative
 * to its output. */
float kv_error(uint32_t layer, const float *out);

#endif /* NPU_KV_H */
