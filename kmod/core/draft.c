// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * draft.c - rings of draft slots: how large one is, and what was accepted of one
 *
 * The memory is the host's, the counters in it are the client's, who may write
 * anything there: hosts use the layout from here and never one from that memory.
 *
 * A ring may be bound to a sequence.  Then what its head has grown by since it was
 * looked at last becomes visible, of the hidden tokens of the sequence, before
 * anything else is done with the sequence.  More than there are hidden is lost, and a
 * head that goes back says nothing: so its client can only choose when its own tokens,
 * reserved before, become visible, as HAWK_SEQ_ADVANCE lets it, too.
 */
#include "draft.h"
#include "seqpriv.h"

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

/* Before a sequence is used; @handle may be none's. */
void hawk_seq_fold(struct hawk_space *s, u32 handle)
{
	struct hawk_seq *sq = hawk_seq_find(s, handle);
	struct hawk_list *l;
	u64 head, n;

	if (!sq || !sq->draft)
		return;
	head = hawk_load_acquire(sq->draft);
	if (head <= sq->drafted)
		return;
	n = head - sq->drafted;
	sq->drafted = head;
	l = &s->seqs->list[sq->list];
	if (l->hidden)
		hawk_list_advance(s, l, n < l->hidden ? (u32)n : l->hidden);
}

/**
 * hawk_draft_bind() - a draft ring is a sequence's
 * @s: the space
 * @seq: the sequence
 * @head: the ring's head, which is 0; stays until hawk_draft_unbind()
 *
 * Return: 0; -ENOENT: no such sequence; -EBUSY: it has a ring; -EOPNOTSUPP: the space
 * was made without sequences.
 */
int hawk_draft_bind(struct hawk_space *s, u32 seq, const __u64 *head)
{
	struct hawk_seq *sq;
	int ret = 0;

	if (!s->seqs)
		return -EOPNOTSUPP;
	hawk_lock(&s->seqs->lock);
	sq = hawk_seq_find(s, seq);
	if (!sq) {
		ret = -ENOENT;
	} else if (sq->draft) {
		ret = -EBUSY;
	} else {
		sq->draft = head;
		sq->drafted = 0;
	}
	hawk_unlock(&s->seqs->lock);
	return ret;
}

/**
 * hawk_draft_unbind() - a draft ring ends
 * @s: the space
 * @seq: the sequence that it was bound to, may have ended
 * @head: the ring's head; not looked at any more after the call
 */
void hawk_draft_unbind(struct hawk_space *s, u32 seq, const __u64 *head)
{
	struct hawk_seq *sq;

	hawk_lock(&s->seqs->lock);
	sq = hawk_seq_find(s, seq);
	if (sq && sq->draft == head) {
		hawk_seq_fold(s, seq);
		sq->draft = NULL;
	}
	hawk_unlock(&s->seqs->lock);
}
