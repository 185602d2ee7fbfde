/* SPDX-License-Identifier: MIT */
/* Sequences as lists of segments over runs of blocks, for tests of the executor. */
#ifndef HAWK_TESTS_DAEMON_VIEW_H
#define HAWK_TESTS_DAEMON_VIEW_H

#include "daemon_net.h"

#define MAX_TOK	   256	/* visible tokens of a sequence */
#define MAX_BLOCKS 4096 /* of a run */

/* Odd sizes, a part of the head rotated; all of the head rotated. */
extern const struct fx_model view_part, view_full;

/* TSan is slow, and races do not depend on the kernels: only the best there. */
#ifdef __SANITIZE_THREAD__
#define VIEW_ISAS 1
#else
#define VIEW_ISAS 3
#endif
extern const char *const view_isas[VIEW_ISAS];

/* Block memory of one run, garbage at first. */
struct view_run {
	uint32_t bt, n_blocks;
	size_t block_bytes;
	void *blocks[MAX_BLOCKS];
};

void view_run_init(struct view_run *run, const struct model *m, uint32_t bt, uint32_t slots,
		   enum exec_kv_type kv);
void view_run_free(struct view_run *run);

/* What a sequence sees. */
struct view {
	struct exec_seg segs[MAX_TOK];
	uint32_t n_segs, n;
};

void view_add(struct view *v, void *const *blocks, uint32_t tok, uint32_t len, int32_t shift);
struct exec_row view_row(const struct view *v, int32_t token, uint32_t pos, uint32_t at);

/* Copy the K/V of visible token @at, all planes. */
void view_read(const struct view *v, const struct model *m, const struct view_run *run, uint32_t at,
	       uint8_t *out);

/* Compute tokens [from, n) of a view, pos == at, in steps of random size. */
void view_compute(struct exec *e, const struct view *v, const int32_t *ids, uint32_t from,
		  uint32_t n, float *logits, uint32_t n_vocab, uint32_t *rnd);

#endif
