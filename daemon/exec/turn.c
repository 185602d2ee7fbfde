// SPDX-License-Identifier: MIT
/* Tables of rotations, see turn.h. */
#include "exec/turn.h"

#include <math.h>

#include "exec/kern.h"

/* Kernels read full vectors from any element of a table. */
static size_t table_floats(uint32_t dim)
{
	return kern_pad(dim) + KERN_PAD;
}

size_t turn_floats(uint32_t dim)
{
	return TURN_TABLES * 2 * table_floats(dim);
}

void turn_init(struct turn_cache *t, const double *inv_freq, uint32_t dim, bool half, float *mem)
{
	const size_t n = table_floats(dim);
	uint32_t i;

	*t = (struct turn_cache){ .inv_freq = inv_freq, .dim = dim, .half = half };
	for (i = 0; i < TURN_TABLES; i++) {
		t->tables[i].cc = mem + 2 * i * n;
		t->tables[i].ss = mem + (2 * i + 1) * n;
	}
}

const struct turn_table *turn_get(struct turn_cache *t, int32_t shift)
{
	struct turn_table *tt = &t->tables[(uint32_t)shift % TURN_TABLES];
	uint32_t i;

	if (tt->shift == shift)
		return tt;
	for (i = 0; i < t->dim / 2; i++) {
		const uint32_t a = turn_index(t->half, t->dim, i, 0);
		const uint32_t b = turn_index(t->half, t->dim, i, 1);
		const double angle = shift * t->inv_freq[i];

		tt->cc[a] = tt->cc[b] = (float)cos(angle);
		tt->ss[a] = (float)sin(angle);
		tt->ss[b] = -tt->ss[a];
	}
	tt->shift = shift;
	return tt;
}
