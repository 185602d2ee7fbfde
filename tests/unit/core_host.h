/* SPDX-License-Identifier: MIT */
/*
 * core_host.h - a small host for the engine: tiers are arrays, moves are memcpy
 *
 * Moves are carried out at once or kept in flight and completed in a seeded random
 * order, some of them with an error.  A block's content is a tag at its start and
 * one at its end, so that large blocks cost little.
 */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../kmod/core/core.h"

#define HOST_MOVES	256	/* moves in flight at most */
#define HOST_PLAN	16	/* moves of one plan */

struct host_tier {
	u8 *mem;
	u32 kind;
	u32 chunks;
};

/* What is known of a move in flight. */
struct host_move {
	struct hawk_move m;
	bool copied;
};

struct host {
	struct hawk_engine *e;
	struct host_tier tier[HAWK_TIERS_MAX];
	u64 rng;
	u32 fail_permille;	/* of moves that end with an error */
	u32 nmoves;
	struct host_move move[HOST_MOVES];
	/* told of each move after it was completed */
	void (*done)(void *arg, const struct hawk_move *m);
	void *arg;
	struct hawk_plan plan;
	struct hawk_move plan_move[HOST_PLAN];
};

/* splitmix64: the tests' only source of chance */
u64 host_rand(u64 *state);
u32 host_below(u64 *state, u32 n);

void host_init(struct host *h, u64 seed);
void host_fini(struct host *h);
u32 host_tier(struct host *h, u32 kind, u32 chunks);
void host_tier_end(struct host *h, u32 tier);

/* A space whose vTLB the host allocates; quotas are in chunks. */
struct hawk_space *host_space(struct host *h, struct hawk_space_params *p);
int host_try_space(struct host *h, struct hawk_space_params *p, struct hawk_space **s);
void host_space_end(struct host *h, struct hawk_space *s);

/* Zero chunks that left their owner, at most @max of each tier. */
void host_clean(struct host *h, u32 max);

/* An empty plan of room for @max moves. */
struct hawk_plan *host_plan(struct host *h, u32 max);
/* Put the moves of the plan in flight. */
void host_submit(struct host *h);
/* Complete one move, drawn by lot; false if there is none. */
bool host_step(struct host *h);
/* Complete all. */
void host_drain(struct host *h);
/* Submit the plan and complete all. */
void host_run(struct host *h);

/* A block's content. */
void host_write(struct host *h, struct hawk_space *s, u64 vt, u64 tag);
u64 host_read(struct host *h, struct hawk_space *s, u64 vt);

/*
 * Gives the space the chunk that a call wanted which returned @ret; true: it returned
 * -ENOBUFS, call it again.
 */
bool host_grew(struct hawk_space *s, int ret);

/* What becomes of a grant; hawk_space_grown() with true, unless a test sets another. */
extern void (*host_grant)(struct hawk_space *s, const struct hawk_grant *g);

/* The engine's calls, where growing is not what is tested. */
int host_block_alloc(struct hawk_space *s, u64 lid, const u8 *key, u32 tier, u64 now,
		     struct hawk_plan *plan, u64 *vt);
int host_block_reload(struct hawk_space *s, u64 lid, u32 tier, u64 now, struct hawk_plan *plan);
int host_block_unshare(struct hawk_space *s, u64 lid, u64 now, struct hawk_plan *plan,
		       u64 *vt, struct hawk_ref *ref);
int host_space_writeback(struct hawk_space *s, u32 tier, u32 want, struct hawk_plan *plan);

/* Fails the test with the broken invariant. */
void host_check(struct hawk_space *s);

/* alloc, write the tag, put; evictions are carried out. Return: of the last call. */
int host_fill(struct host *h, struct hawk_space *s, u64 lid, const u8 *key, u64 tag, u64 now);
int host_alloc(struct host *h, struct hawk_space *s, u64 lid, const u8 *key, u64 now, u64 *vt);
/* reload until it is there */
int host_reload(struct host *h, struct hawk_space *s, u64 lid, u64 now);

/* As a gather reads the block, and then prefill: its move and others' are put in flight. */
void host_promote(struct host *h, struct hawk_space *s, u64 lid, u64 now);

/* A key made from a number. */
const u8 *host_key(u8 *key, u64 nr);

#endif /* CORE_HOST_H */
