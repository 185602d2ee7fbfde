/* SPDX-License-Identifier: MIT */
/*
 * kv.h - the KV memory of sequences, in Hawk frames
 *
 * A sequence is a list of blocks of block_tokens tokens.  Full blocks have a
 * key that names the whole history up to their end (tokens and operations, see
 * hist.h), the model, the geometry, the instruction set and the tenant; a new
 * sequence takes the longest prefix of its prompt that is there already, wherever
 * it lies, and allocates the rest.  Blocks of that prefix that are dropped as a
 * whole are not needed: they are neither looked up nor reloaded nor pinned.
 *
 * Life of a block as this file sees it:
 *
 *	            GET by key
 *	  (cached) ------------> SHARED, RELOADED --> (cached)
 *	            ALLOC
 *	  (none) --------------> FILLING --> (none)
 *	                           | commit: PUT with key
 *	                           +--> READY --> (cached)
 *	                           +--> DUP (key taken) --> (none)
 *
 * All five states hold one pin, so addresses stay valid.  A sequence lets go of a
 * block, the arrows to the right, in kv_seq_close(), and in kv_seq_view() when an
 * operation has dropped all of the block.  READY blocks age in Hawk's LRU then and
 * go to flash from there.
 *
 * Threads: kv_seq_open() from one thread at a time; commit and close of a
 * sequence from the thread that owns it; the rest from any thread.
 */
#ifndef HAWKD_KV_H
#define HAWKD_KV_H

#include <hawk/hawk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/exec.h"
#include "kv/hist.h"

#define KV_ERR_LEN   256
#define KV_KEY_BYTES HAWK_KEY_BYTES
#define KV_READ_MORE 32u /* blocks that rows may see beside those of their sequence */

/**
 * struct kv_config - what kv_open() needs to know
 * @url: libhawk URL, NULL for the default
 * @block_payload: bytes that the executor uses of a block
 * @block_tokens: tokens of a block
 * @planes: planes of a block: its payload is so many times @block_tokens tokens
 * @model: id of the weights
 * @dtype_name: element type
 * @layout: how elements lie in a block, and what else their bits depend on
 * @dtype: tag of the element type for the space
 * @max_seqs: sequences that are open at one time at most
 * @no_cache: never look up or publish a block
 * @reload_always: take all that is cached, also where computing it would be quicker
 * @exec: makes centroids, for sparse sequences; NULL: there are none
 */
struct kv_config {
	const char *url;
	size_t block_payload;
	uint32_t block_tokens;
	uint32_t planes;
	const char *model;
	const char *dtype_name;
	const char *layout;
	uint32_t dtype;
	uint32_t max_seqs;
	bool no_cache;
	bool reload_always;
	const struct exec *exec;
};

struct kv;

/**
 * struct kv_reload - what taking the cached prefix of a sequence from flash was like
 * @tokens_per_s: at which prompts are computed, 0: not known
 * @urgent: before reloads of others
 * @estimate_ns: time that the device expected it to take, nanoseconds
 * @ns: time that it took, nanoseconds
 * @batches: times that blocks were asked for of which some were on flash
 */
struct kv_reload {
	uint32_t tokens_per_s;
	bool urgent;
	uint64_t estimate_ns;
	uint64_t ns;
	uint32_t batches;
};

/**
 * struct kv_seq - the blocks of one sequence
 * @addr: addresses for the executor, @n_blocks of them, NULL where none is needed
 * @lid: LIDs
 * @vt: translations, to undo the pins
 * @key: keys of the first @n_keys blocks
 * @state: enum kv_block_state
 * @seg: what tokens of the current view see, @n_segs of them, for the executor
 * @op: operations, @n_ops of them
 * @key_op: the same as keys have them, and sparse attention, @n_key_ops of them
 * @sparse: what its tokens attend to; a window of 0: to all
 * @centroid: by block, NULL where there is none yet; NULL if not sparse
 * @centroid_mem: where they lie
 * @read: for &struct exec_row, all 0; room for the blocks of all segments and
 *	KV_READ_MORE others; NULL if not sparse
 * @n_blocks: blocks of the history
 * @n_keys: blocks whose key is known
 * @n_done: leading blocks that are SHARED, READY or DUP
 * @n_centroids: leading blocks that have their centroids, or are not needed
 * @n_shared: leading blocks that need not be computed: SHARED, or dropped
 * @seq: the engine's sequence, if @has_seq
 * @error: why the view could not be changed, a negative errno
 * @n_view: operations that are in effect in the current view
 * @hidden: tokens that these have dropped
 * @moved: positions that these have closed
 * @tokens_dram: tokens of @n_shared that were in a host tier
 * @tokens_flash: tokens of @n_shared that were reloaded
 * @tokens_skipped: tokens of @n_shared that were not needed
 * @reload: how those of flash came
 * @root: what keys start from
 */
struct kv_seq {
	void **addr;
	uint64_t *lid;
	uint64_t *vt;
	uint8_t (*key)[KV_KEY_BYTES];
	uint8_t *state;
	struct exec_seg *seg;
	struct hist_op *op;
	struct hawk_key_op *key_op;
	struct exec_sparse sparse;
	const void **centroid;
	uint8_t *centroid_mem;
	uint8_t *read;
	uint32_t n_segs;
	uint32_t n_ops;
	uint32_t n_key_ops;
	uint32_t n_blocks;
	uint32_t n_keys;
	uint32_t n_done;
	uint32_t n_centroids;
	uint32_t n_shared;
	uint32_t seq;
	bool has_seq;
	int error;
	uint32_t n_view;
	uint32_t hidden;
	uint32_t moved;
	uint32_t tokens_dram;
	uint32_t tokens_flash;
	uint32_t tokens_skipped;
	struct kv_reload reload;
	uint8_t root[KV_KEY_BYTES];
};

/**
 * kv_open() - open the device and make a private space on it
 * @err: on failure, one line naming the cause and what to do
 *
 * Return: 0 or a negative errno.
 */
int kv_open(const struct kv_config *cfg, struct kv **out, char err[KV_ERR_LEN]);

/** kv_close() - all sequences are closed; NULL is ignored */
void kv_close(struct kv *kv);

/**
 * kv_root() - what the keys of a tenant start from
 * @tenant: bytes that separate tenants; sequences with different tenants share
 *	no block. May be empty, at most HAWK_KEY_TEXT_MAX.
 *
 * Return: 0 or a negative errno.
 */
int kv_root(const struct kv *kv, const void *tenant, size_t len, uint8_t root[KV_KEY_BYTES]);

/**
 * struct kv_need - what a sequence asks for
 * @tokens: the prompt, @n_prompt of them, at least 1
 * @n_total: tokens whose KV will be stored at most, >= @n_prompt
 * @ops: operations that hist_check() accepts for @n_prompt, sorted, @n_ops of them
 * @root: from kv_root()
 * @sparse: what its tokens attend to, with a window of @block_tokens of &struct
 *	kv_config at least; NULL: to all
 * @tokens_per_s: at which prompts are computed now, 0: not known
 * @urgent: nothing else is to be computed meanwhile, so its reload goes first
 */
struct kv_need {
	const int32_t *tokens;
	uint32_t n_prompt;
	uint32_t n_total;
	const struct hist_op *ops;
	uint32_t n_ops;
	const uint8_t *root;
	const struct exec_sparse *sparse;
	uint32_t tokens_per_s;
	bool urgent;
};

/**
 * kv_seq_open() - reserve all KV of a sequence at once, or nothing
 * @need: not used after the call
 * @err: on failure, the cause in words
 *
 * Blocks of the longest cached prefix are reloaded where needed and pinned, as far as that
 * is quicker than to compute them (kv_reload.c); at least the last prompt token is left to
 * compute, because its logits are needed.  Waits for I/O, bounded by KV_DEADLINE_NS.
 *
 * Return: 0; -EOPNOTSUPP sparse, but there is nobody to make centroids; -EINVAL a
 * window shorter than a block; -E2BIG more
 * blocks than all host tiers hold; -ENOSPC no room now,
 * other sequences hold it; other negative errnos. Nothing is held on failure.
 */
int kv_seq_open(struct kv *kv, struct kv_seq *s, const struct kv_need *need, char err[KV_ERR_LEN]);

/** kv_seq_cached() - leading tokens of the prompt that need not be computed */
uint32_t kv_seq_cached(const struct kv *kv, const struct kv_seq *s);

/**
 * kv_seq_view() - bring the operations that token @pos knows of into effect
 * @pos: index of the next token to compute; does not go back, full blocks before it
 *	are committed
 *
 * @s->seg, @s->hidden and @s->moved tell then what tokens see from @pos on. Lets go
 * of blocks that are dropped as a whole. Allocates nothing and does no I/O.
 *
 * Return: the first token that sees something else, UINT32_MAX: none will; @pos: the
 * operations could not be done, @s->error tells why, and the sequence must end.
 */
uint32_t kv_seq_view(struct kv *kv, struct kv_seq *s, uint32_t pos);

/**
 * kv_seq_commit() - publish blocks that became full
 * @tokens: tokens of the sequence, @n_valid of them, whose KV is in the blocks
 *
 * Allocates nothing and does no I/O.
 */
void kv_seq_commit(struct kv *kv, struct kv_seq *s, const int32_t *tokens, uint32_t n_valid);

/** kv_seq_sparse() - @sparse of the sequence's rows, see &struct exec_row */
const struct exec_sparse *kv_seq_sparse(const struct kv_seq *s);

/**
 * kv_seq_step_rows() - most rows of the sequence in a step
 *
 * So that what a sparse sequence reads does not depend on how it is cut into steps,
 * see kv_sparse.c. Return: 1 at least, UINT32_MAX if it is dense.
 */
uint32_t kv_seq_step_rows(const struct kv *kv, const struct kv_seq *s);

/**
 * kv_sparse_from() - the first token that sparse attention may change
 * @block_tokens: tokens of a block
 * @ops: operations of the history, sorted, @n_ops of them
 *
 * Exact without operations; with them not behind the first one's @at.
 */
uint32_t kv_sparse_from(const struct exec_sparse *sparse, uint32_t block_tokens,
			const struct hist_op *ops, uint32_t n_ops);

/** kv_seq_close() - give everything back; published blocks stay as cache */
void kv_seq_close(struct kv *kv, struct kv_seq *s);

/**
 * kv_draft_open() - a ring for drafted tokens; hawk_draft_close() ends it
 * @slots: tokens that it shall hold
 *
 * Return: 0 or a negative errno, hawk_strerror_last() has the cause.
 */
int kv_draft_open(struct kv *kv, uint32_t slots, struct hawk_drafts **d);

/* What was done about cached blocks of which some were on flash. */
enum kv_choice {
	KV_RELOAD,    /* all were brought */
	KV_RECOMPUTE, /* some are computed, that is quicker */
	KV_TRIAL,     /* all were brought although it seemed slower, to know whether it is */
	KV_CHOICES
};

/**
 * kv_phase() - prompts are being computed, or no more
 * @until_ns: CLOCK_MONOTONIC, ns, when that ends at the latest; 0: it has ended
 *
 * Meanwhile the device copies blocks to DRAM that were read from flash (hawk_phase(3)).
 * Does no I/O.
 */
void kv_phase(struct kv *kv, uint64_t until_ns);

/**
 * struct kv_stat - for /metrics and /health
 * @block_bytes: bytes of a block
 * @block_tokens: tokens of a block
 * @capacity_blocks: blocks that all host tiers hold
 * @space: counters of the space
 * @n_tiers: entries in @tier
 * @tier: tiers of the device
 * @reload_failed: cached blocks that could not be read back
 * @reload: batches of blocks of which some were on flash, by enum kv_choice
 * @reload_late: of these that did not come in time, so that the rest was computed
 * @left_tokens: prompt tokens on flash that were computed because that was quicker
 * @phases: times that the device was told that prefill runs
 */
struct kv_stat {
	uint32_t block_bytes;
	uint32_t block_tokens;
	uint64_t capacity_blocks;
	struct hawk_stats space;
	uint32_t n_tiers;
	struct hawk_tier_info tier[HAWK_TIERS_MAX];
	uint64_t reload_failed;
	uint64_t reload[KV_CHOICES];
	uint64_t reload_late;
	uint64_t left_tokens;
	uint64_t phases;
};

int kv_get_stat(struct kv *kv, struct kv_stat *st);

/** kv_backend() - "dev" or "embed" */
const char *kv_backend(const struct kv *kv);

/** kv_block_bytes() - bytes of a block in Hawk, padding included */
uint32_t kv_block_bytes(const struct kv *kv);

/** kv_block_tokens() - tokens of a block */
uint32_t kv_block_tokens(const struct kv *kv);

/** kv_capacity_blocks() - blocks that all host tiers hold */
uint64_t kv_capacity_blocks(const struct kv *kv);

#endif
