/* SPDX-License-Identifier: MIT */
/*
 * grow.h - the chunk that a call of the engine wants
 */
#ifndef HAWK_BENCH_GROW_H
#define HAWK_BENCH_GROW_H

#include "../../kmod/core/core.h"

/* Gives the space a chunk if @ret is -ENOBUFS; true: call again what returned it. */
static inline bool bench_grew(struct hawk_space *s, int ret)
{
	struct hawk_grant g;

	if (ret != -ENOBUFS)
		return false;
	if (!hawk_space_grow(s, &g))
		hawk_space_grown(s, &g, true);
	return true;
}

#endif /* HAWK_BENCH_GROW_H */
