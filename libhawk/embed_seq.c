// SPDX-License-Identifier: MIT
/*
 * embed_seq.c - sequences of the embedded backend
 *
 * The engine does the operations.  After each of them the blocks that nobody sees any
 * more are given back; those that somebody has pinned or leased, when that has ended:
 * the keeper looks again (embed_compact.c).
 */
#include <errno.h>
#include <time.h>

#include "../kmod/core/seq.h"
#include "embed.h"

#define TRIES		64	/* of an operation, if what is given back does not help */
#define LOOK_NS		1000000	/* between looks, while another thread gives back */
#define REAP_LIDS	1024	/* per call of the engine, which holds locks for so long */

/* Give back all blocks that no sequence shows any more; their number is added. */
void seqs_reap(struct espace *sp, u32 *frames)
{
	while (hawk_seq_reap(sp->space, REAP_LIDS, frames))
		;
}

/* Pins or leases have ended: something may wait for that. */
void seqs_waiting(struct espace *sp)
{
	if (hawk_seq_due(sp->space))
		keeper_kick_tidy(sp->e);
}

static void untidy(struct espace *sp)
{
	if (!__atomic_exchange_n(&sp->untidy, true, __ATOMIC_RELAXED))
		keeper_kick_tidy(sp->e);
}

/*
 * What only waits to be given back is no reason to refuse an operation: that is done
 * first, by us or by another thread that is at it, however long he takes.  Tries are
 * counted when neither is at it: pins that end all the time may be of no use to us.
 */
static void try(struct ekv *kv, struct hawk_seq_op *op)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct hawk_space *s = kv->sp->space;
	u32 tries = 0, frames = 0, before;

	while (hawk_seq_do(s, kv->id, op) == -EAGAIN && tries < TRIES) {
		before = frames;
		seqs_reap(kv->sp, &frames);
		if (hawk_seq_reaping(s))
			nanosleep(&pause, NULL);
		else if (frames == before)
			tries++;
	}
	if (op->status == -EAGAIN)
		op->status = -ENOSPC;
	op->frames = frames;
}

int embed_seq(struct hawk_kv *base, struct hawk_seq_batch *b)
{
	struct hawk_seq_op *op = (struct hawk_seq_op *)(uintptr_t)b->ops;
	struct ekv *kv = to_ekv(base);
	u32 last = HAWK_SEQ_LAST, i;

	if (!kv->sp->geo.seqs)
		return hawk_fail(-EOPNOTSUPP, "the space was made without sequences");
	b->done = 0;
	for (i = 0; i < b->count; i++, op++) {
		hawk_seq_resolve(op, last);
		try(kv, op);
		last = op->status && hawk_seq_makes(op) ? HAWK_SEQ_LAST : op->seq;
		seqs_reap(kv->sp, &op->frames);
		if (op->status)
			op->frames = 0;	/* they were others' */
		b->done += !op->status;
		if (!op->status && hawk_seq_leaves(op))
			untidy(kv->sp);
	}
	return 0;
}

int embed_seq_map(struct hawk_kv *base, struct hawk_seq_map *map)
{
	struct espace *sp = to_ekv(base)->sp;
	int ret;

	if (!sp->geo.seqs)
		return hawk_fail(-EOPNOTSUPP, "the space was made without sequences");
	ret = hawk_seq_map(sp->space, map, (struct hawk_seg *)(uintptr_t)map->segs);
	return ret ? hawk_fail(ret, "asking for sequence %u", map->seq) : 0;
}

/* A handle ends: so do the sequences that it has made. */
void seqs_end(struct ekv *kv)
{
	struct espace *sp = kv->sp;
	u32 frames = 0;
	bool more;

	if (!sp->geo.seqs)
		return;
	do {
		more = hawk_seq_end_owner(sp->space, kv->id);
		seqs_reap(sp, &frames);
	} while (more);
	seqs_waiting(sp);
}
