// SPDX-License-Identifier: MIT
/*
 * dump.c - the state of a space, for a person who looks for what went wrong
 */
#include "dump.h"

static void dump_window(FILE *out, const struct sim_space *sp, u32 t)
{
	const struct hawk_window *w = &sp->s->win[t];
	u32 i;

	fprintf(out, "  tier %u %s: owns %u chunks, quota %u to %u, spare frames", t,
		sim.tier[t].kind == HAWK_TIER_HOST ? "host" : "flash", w->owned, w->quota_min,
		w->quota_max);
	for (i = 0; i < sp->s->nbuckets; i++)
		fprintf(out, " %u", sp->s->bucket[i].fl[t].n);
	fprintf(out, "\n");
}

static void dump_block(FILE *out, const struct sim_space *sp, u32 nr)
{
	const struct hawk_block *b = &sp->s->block[nr];

	fprintf(out, "  block %u gen %u %-9s bucket %u host %d:%d flash %d:%d pins %u leases %u"
		" LIDs %u%s%s%s%s\n", nr, b->gen, hawk_state_name(b->state), b->home,
		b->htier == HAWK_NO_TIER ? -1 : b->htier, (int)b->hframe,
		b->ftier == HAWK_NO_TIER ? -1 : b->ftier, (int)b->fframe, b->pins, b->leases,
		b->nmaps, b->flags & HAWK_BF_KEY ? " key" : "",
		b->flags & HAWK_BF_FLASH ? " clean" : "",
		b->flags & HAWK_BF_MOVING ? " moving" : "",
		b->flags & HAWK_BF_LRU ? " listed" : "");
}

void sim_dump(FILE *out, u32 space)
{
	const struct sim_space *sp = &sim.space[space];
	u32 i, blocks = 0, lids = 0;

	if (!sp->s)
		return;
	for (i = 0; i < sp->s->nbuckets; i++) {
		blocks += sp->s->bucket[i].fl[HAWK_RES_BLOCK].n;
		lids += sp->s->bucket[i].fl[HAWK_RES_MAP].n;
	}
	fprintf(out, "space %u: blocks of %u bytes, %u of %u slots free, %u LIDs free, %u moves\n",
		space, sp->s->block_bytes, blocks, sp->s->max_blocks, lids, sp->nmoves);
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		if (sp->s->win[i].frame)
			dump_window(out, sp, i);
	for (i = 0; i < sp->s->max_blocks; i++)
		if (sp->s->block[i].state != HAWK_BLOCK_FREE)
			dump_block(out, sp, i);
}
