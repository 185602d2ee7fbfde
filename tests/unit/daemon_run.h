/* SPDX-License-Identifier: MIT */
/* Greedy generation with malloc()ed KV blocks, for tests on real models. */
#ifndef HAWK_TESTS_DAEMON_RUN_H
#define HAWK_TESTS_DAEMON_RUN_H

#include "exec/exec.h"
#include "tok/tok.h"

#define RUN_BT	       16 /* tokens per block */
#define RUN_CHUNK      64 /* most prompt tokens per step */
#define RUN_MAX_TOKENS 2048

struct run {
	struct model *m;
	struct tok *t;
	struct exec *e;
	void *blocks[RUN_MAX_TOKENS / RUN_BT];
	uint32_t n_blocks;
	struct exec_seg seg; /* all of them */
};

/* One way of running a model. */
struct run_how {
	const char *isa;
	enum exec_kv_type kv;
	uint32_t threads, chunk;
};

/* TSan is slow and looks for races: one way, with several threads, is enough for it. */
#ifdef __SANITIZE_THREAD__
#define RUN_HOWS 1
#else
#define RUN_HOWS 6
#endif
extern const struct run_how run_hows[RUN_HOWS];

/* False when this CPU lacks the instruction set; close it all the same. */
bool run_open(struct run *r, const char *path, const struct run_how *how);
void run_close(struct run *r);

/* Continue ids[0..n) greedily by up to @more tokens; returns the new count. */
size_t run_generate(struct run *r, int32_t *ids, size_t n, size_t more, uint32_t chunk);

/* Text of some ids, to be free()d. */
char *run_decode(const struct run *r, const int32_t *ids, size_t n, bool at_start);

#endif
