// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * draft.c - rings of draft slots: how large one is
 *
 * The memory is the host's, the counters in it are the client's, who may write
 * anything there: hosts use the layout from here and never one from that memory.
 */
#include "core.h"

/**
 * hawk_draft_layout() - size of a draft ring
 * @l: geometry and wanted slots in; out: slots in whole blocks, blocks of a row, bytes
 *
 * Context: any.
 * Return: 0; -EINVAL: no slots; -E2BIG: more than HAWK_DRAFT_BYTES_MAX.
 */
int hawk_draft_layout(struct hawk_draft_layout *l)
{
	u64 rows, row_bytes;

	if (!l->slots)
		return -EINVAL;
	rows = ((u64)l->slots + l->block_tokens - 1) / l->block_tokens;
	l->row_blocks = l->layers * l->head_groups;
	row_bytes = (u64)l->row_blocks * l->block_bytes;
	/* divided, not multiplied: rows * row_bytes may be more than 64 bits hold */
	if (rows > (HAWK_DRAFT_BYTES_MAX - HAWK_DRAFT_SLOTS_AT) / row_bytes)
		return -E2BIG;
	l->slots = rows * l->block_tokens;
	l->bytes = HAWK_DRAFT_SLOTS_AT + rows * row_bytes;
	return 0;
}
