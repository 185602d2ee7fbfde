/* SPDX-License-Identifier: MIT */
/*
 * Models with random weights, executors for them, and the network once more:
 * plainly, in double precision, one row at a time.
 */
#ifndef HAWK_TESTS_DAEMON_NET_H
#define HAWK_TESTS_DAEMON_NET_H

#include "daemon_fixture.h"
#include "exec/exec.h"

struct net {
	uint8_t *bytes;
	struct model *m;
};

struct net net_make(const struct fx_model *shape, enum gguf_type type);
void net_free(struct net *l);

/* NULL when this CPU lacks the instruction set. */
struct exec *net_exec(const struct model *m, const char *isa, uint32_t threads,
		      enum exec_kv_type kv, uint32_t block_tokens, uint32_t max_rows);

/* The reference: its own keys and values, by visible index. */
struct ref;

struct ref *ref_create(const struct model *m, uint32_t max_tokens);
void ref_free(struct ref *r);

/* One row at rotary position @pos: writes visible index @at, attends to 0..at. */
void ref_row(struct ref *r, int32_t token, uint32_t pos, uint32_t at, double *logits);

/*
 * Be shown what each layer of ref_row() attends with: queries [n_head][head_dim]
 * and keys [at + 1][n_head_kv * head_dim], all turned.
 */
typedef void (*ref_watch_fn)(void *arg, uint32_t layer, const double *q, const double *k);
void ref_watch(struct ref *r, ref_watch_fn fn, void *arg);

/* Copy the K/V of slot @slot of an executor's block to visible index @at, keys turned by -shift. */
void ref_load(struct ref *r, uint32_t at, const void *block, uint32_t slot, uint32_t block_tokens,
	      enum exec_kv_type kv, int32_t shift);

/* Turn one head to position @pos (may be negative: back). */
void ref_rope(const struct model *m, double *v, int64_t pos);

#endif
