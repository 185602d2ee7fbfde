// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * note.c - tells the host what becomes of a block, for it to trace
 *
 * A note is sent where the counters of evictions are counted, before the block
 * changes: so notes and counters agree.
 */
#include "priv.h"

/* The bucket is locked and the block as it was. */
void hawk_note_send(struct hawk_space *s, const struct hawk_block *blk, enum hawk_fate fate,
		    enum hawk_reason reason, const struct hawk_plan *plan)
{
	bool flash = fate == HAWK_FATE_FLASH_DROP;
	struct hawk_note note = {
		.lid = blk->maps == HAWK_NONE ? 0 : s->map[blk->maps].lid,
		.atime = blk->atime,
		.caller = plan ? plan->caller : NULL,
		.block = hawk_block_nr(s, blk),
		.gen = blk->gen,
		.fate = fate,
		.reason = reason,
		.state = blk->state,
		.tier = flash ? blk->ftier : blk->htier,
		.to = blk->fframe == HAWK_NONE || flash ? HAWK_TIER_ANY : blk->ftier,
	};

	s->note(s->owner, &note);
}
