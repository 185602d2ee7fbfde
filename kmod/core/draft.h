/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * draft.h - rings of draft slots, as hosts make them and bind them to sequences
 */
#ifndef HAWK_CORE_DRAFT_H
#define HAWK_CORE_DRAFT_H

#include "core.h"

/**
 * struct hawk_draft_layout - a ring of draft slots
 * @block_bytes: bytes of a block
 * @block_tokens: tokens of a block
 * @layers: layers of the space
 * @head_groups: head groups that the space keeps
 * @slots: in, wanted slots; out, rounded up to whole blocks
 * @row_blocks: out, blocks that hold the same tokens
 * @bytes: out, page of counters and slots
 */
struct hawk_draft_layout {
	u32 block_bytes;
	u32 block_tokens;
	u32 layers;
	u32 head_groups;
	u32 slots;
	u32 row_blocks;
	u64 bytes;
};

int hawk_draft_layout(struct hawk_draft_layout *l);
int hawk_draft_bind(struct hawk_space *s, u32 seq, const __u64 *head);
void hawk_draft_unbind(struct hawk_space *s, u32 seq, const __u64 *head);

#endif /* HAWK_CORE_DRAFT_H */
