/* SPDX-License-Identifier: MIT */
/*
 * turn.h - rotations of keys that are read at another position.
 *
 * A key stored for position p is read as at p - shift by turning each of its
 * rotary pairs by -shift * frequency. The sines and cosines of a shift are the
 * same for all keys, heads and layers; each thread keeps those of the last few
 * shifts it met. A table is a pure function of the shift and the model, so what
 * the cache holds never shows in a result.
 */
#ifndef HAWK_TURN_H
#define HAWK_TURN_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

#define TURN_TABLES 16u /* shifts a thread remembers; direct-mapped */

/**
 * struct turn_table - one rotation: k'[i] = k[i] * cc[i] + k[j] * ss[i], where
 * j is the other element of i's pair
 * @shift: positions to turn back by; 0 marks an empty entry
 * @cc: cosines by element, padded so that full vectors may be read
 * @ss: sines by element, signed
 */
struct turn_table {
	int32_t shift;
	float *cc, *ss;
};

/**
 * struct turn_cache - a thread's rotations
 * @inv_freq: radians per position of each pair, dim / 2 of them
 * @dim: leading elements of a head that are rotated
 * @half: pairs are (i, i + dim / 2), not (2i, 2i + 1)
 */
struct turn_cache {
	const double *inv_freq;
	uint32_t dim;
	bool half;
	struct turn_table tables[TURN_TABLES];
};

/** turn_floats() - floats of memory the tables of one cache need */
size_t turn_floats(uint32_t dim);

/** turn_init() - start an empty cache on @mem, turn_floats() floats */
void turn_init(struct turn_cache *t, const double *inv_freq, uint32_t dim, bool half, float *mem);

/** turn_get() - the rotation for @shift, not 0; valid until the next call */
const struct turn_table *turn_get(struct turn_cache *t, int32_t shift);

/** turn_index() - element of pair @i that is first (@which 0) or second (1) */
static inline uint32_t turn_index(bool half, uint32_t dim, uint32_t i, uint32_t which)
{
	return half ? i + which * (dim / 2) : 2 * i + which;
}

#endif
