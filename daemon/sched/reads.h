/* SPDX-License-Identifier: MIT */
/* reads.h - how much of what it sees a sparse sequence has read */
#ifndef HAWKD_READS_H
#define HAWKD_READS_H

#include <stdint.h>

#include "exec/exec.h"

/**
 * struct reads - over the steps in which a sequence chose tokens
 * @steps: so many
 * @read: blocks that were read, in any layer and head, by any of the rows whose
 *	logits were wanted
 * @visible: blocks that the last of these rows sees
 */
struct reads {
	uint64_t steps;
	uint64_t read;
	uint64_t visible;
};

/**
 * reads_count() - add a step
 * @row: the last row of the sequence in it, with @read; that is zeroed
 * @block_tokens: as the executor was created with
 *
 * Return: what was added.
 */
struct reads reads_count(struct reads *sum, const struct exec_row *row, uint32_t block_tokens);

#endif
