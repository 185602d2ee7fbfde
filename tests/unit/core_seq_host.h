/* SPDX-License-Identifier: MIT */
/*
 * core_seq_host.h - a client of sequences: makes the blocks that its operations ask for
 *
 * Every token has an id, a number from 1 to ID_MAX; the slot of a token in each of its
 * blocks holds it, mixed with layer and head group.  So what a map says can be followed
 * to the bytes.
 */
#ifndef CORE_SEQ_HOST_H
#define CORE_SEQ_HOST_H

#include "core_host.h"
#include "../../kmod/core/seqpriv.h"

#define SEQ_BT		4	/* tokens of a block: 16 bits each make up its tag */
#define SEQ_LAYERS	2
#define SEQ_HEADS	1
#define SEQ_LIDS	(SEQ_LAYERS * SEQ_HEADS)
#define ID_MAX		0x3fffu
#define SEQ_OWNER	7

struct seqs {
	struct host h;
	struct hawk_space *s;
	struct hawk_seq_op op;	/* the last one */
	u32 ids;		/* last id given */
	u64 now;
};

void seqs_init(struct seqs *x, u32 seqs, u32 segs, u64 seed);
void seqs_fini(struct seqs *x);

/* Carry out @op and what becomes free by it.  Return: status. */
int seqs_do(struct seqs *x, struct hawk_seq_op op);
/* The same, one by one; a handle or 0. */
u32 seqs_new(struct seqs *x);
u32 seqs_fork(struct seqs *x, u32 src);
int seqs_free(struct seqs *x, u32 seq);
/* APPEND or RESERVE, and the bytes; @ids: of the tokens, NULL: the next ones. */
int seqs_append(struct seqs *x, u32 code, u32 seq, u32 len, u32 pos, const u16 *ids);
int seqs_drop(struct seqs *x, u32 seq, u32 start, u32 end);
int seqs_repos(struct seqs *x, u32 seq, u32 start, u32 end, s32 shift);
int seqs_truncate(struct seqs *x, u32 seq, u32 len);
int seqs_advance(struct seqs *x, u32 seq, u32 len);
int seqs_compose(struct seqs *x, u32 seq, u32 src, u32 start, u32 end, s32 shift);

/* The ids that all blocks of a token hold; fails if they differ.  0: no block. */
u16 seqs_id(struct seqs *x, u32 run, u32 tok);
/* All there is of a row. */
void seqs_rows(struct seqs *x, u32 run, u32 tok, u32 len, const u16 *ids, bool copy,
	       u32 from_run, u32 from_tok);

/* Copy what a compaction wants copied. */
void seqs_compact_copy(struct seqs *x, const struct hawk_compact *c);

/* LIDs of runs that exist. */
u32 seqs_lids(struct seqs *x);
/* hawk_space_check(), and each LID of a run is under rows that somebody shows or that wait. */
void seqs_check(struct seqs *x);

#endif /* CORE_SEQ_HOST_H */
