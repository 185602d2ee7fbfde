// SPDX-License-Identifier: MIT
/* reads.c - see reads.h */
#include "sched/reads.h"

#include <string.h>

/* Blocks as the executor numbers them, up to the one that the row itself is in. */
static uint32_t blocks_visible(const struct exec_row *row, uint32_t block_tokens)
{
	uint32_t left = row->at + 1, n = 0, i;

	for (i = 0; left; i++) {
		struct exec_seg seg = row->segs[i];

		if (seg.len > left)
			seg.len = left;
		n += exec_seg_blocks(&seg, block_tokens);
		left -= seg.len;
	}
	return n;
}

struct reads reads_count(struct reads *sum, const struct exec_row *row, uint32_t block_tokens)
{
	struct reads step = { .steps = 1, .visible = blocks_visible(row, block_tokens) };
	uint32_t i;

	for (i = 0; i < step.visible; i++)
		step.read += row->read[i];
	memset(row->read, 0, step.visible);
	sum->steps += step.steps;
	sum->read += step.read;
	sum->visible += step.visible;
	return step;
}
