/* SPDX-License-Identifier: MIT */
/* kv_priv.h - shared by kv.c (device), kv_seq.c (blocks of sequences),
 * kv_view.c (what they see), kv_sparse.c (what they attend to), kv_cached.c (reuse) and
 * kv_reload.c (what of it is worth reading from flash) */
#ifndef HAWKD_KV_PRIV_H
#define HAWKD_KV_PRIV_H

#include <stdatomic.h>

#include "kv/kv.h"

/* Longest wait for eviction writes or reloads of one batch. */
#define KV_DEADLINE_NS 10000000000ull

/* No reload has less: below that it is the system's scheduler that decides. */
#define KV_RELOAD_MIN_NS 100000000ull

/* Every so many reloads that would be too slow one is tried all the same. */
#define KV_TRIAL_EVERY 16u

/* Items of the batches that are built on the stack (4 KiB). */
#define KV_STACK_ITEMS 64u

enum kv_block_state { KV_NONE, KV_SHARED, KV_RELOADED, KV_FILLING, KV_READY, KV_DUP };

/**
 * struct kv - the device and our space on it
 * @items: room for one batch, used by kv_seq_open() only
 * @from_flash: per item of a look-up: it was not in a host tier
 * @next_seq: sequence id of the next kv_seq_open(), 1..@last_seq
 * @last_seq: ids above are the engine's
 * @planes, @token_bytes: layout of a block's payload
 * @host_tiers: bit t set if tier t is a host tier
 * @exec: makes centroids, or NULL
 * @centroid_bytes: of a block; 0: none can be made
 * @features: of the device, HAWK_FEAT_*
 * @reload_always: never ask whether computing is quicker
 * @slow: reloads in a row that were too slow; kv_seq_open() only
 * @model_id: of the space
 * @model, @dtype_name, @layout: what all keys cover, see &struct hawk_key_params
 */
struct kv {
	struct hawk *dev;
	struct hawk_kv *space;
	struct hawk_item *items;
	uint8_t *from_flash;
	uint32_t next_seq;
	uint32_t last_seq;
	uint32_t host_tiers;
	uint32_t block_bytes;
	uint32_t block_tokens;
	uint32_t planes;
	uint32_t token_bytes;
	uint64_t capacity_blocks;
	bool no_cache;
	const struct exec *exec;
	size_t centroid_bytes;
	uint64_t features;
	bool reload_always;
	uint32_t slow;
	uint64_t model_id;
	char *model;
	char *dtype_name;
	char *layout;
	_Atomic uint64_t reload_failed;
	_Atomic uint64_t reload[KV_CHOICES];
	_Atomic uint64_t reload_late;
	_Atomic uint64_t left_tokens;
	_Atomic uint64_t phases;
};

/**
 * kv_seq_get_cached() - take the longest prefix that is there already
 * @n_max: leading blocks that may be taken
 *
 * Sets n_shared and n_done.
 * Return: 0 or a negative errno.
 */
int kv_seq_get_cached(struct kv *kv, struct kv_seq *s, uint32_t n_max);

/* kv_count() - add to one of @kv's counters */
static inline void kv_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/**
 * kv_reload_plan() - how many of the blocks in @kv->items are worth taking
 * @n: cached blocks of a prompt in order, by key; @kv->from_flash tells where they lie
 * @get: flags and deadline are set
 *
 * Return: so many from the first on; the rest is quicker computed.
 */
uint32_t kv_reload_plan(struct kv *kv, struct kv_seq *s, uint32_t n, struct hawk_opts *get);

/**
 * kv_reload_done() - they were asked for
 * @n: how many
 * @since: when, clock_now_ns()
 * @status: why one did not come, or 0
 */
void kv_reload_done(struct kv *kv, struct kv_seq *s, uint32_t n, uint64_t since, int status);

/* kv_seq_let_go() - unpin blocks [@first, @end) of @s; those that are nobody's end */
void kv_seq_let_go(struct kv *kv, struct kv_seq *s, uint32_t first, uint32_t end);

/* kv_view.c: the engine's sequence behind @s; 0 or a negative errno */
int kv_view_open(struct kv *kv, struct kv_seq *s);
void kv_view_close(struct kv *kv, struct kv_seq *s);

/* kv_sparse.c: give the full blocks before token @n_valid of a sparse sequence centroids */
void kv_sparse_advance(struct kv *kv, struct kv_seq *s, uint32_t n_valid);

/* kv_sparse.c: keys tell of sparse attention, too; @s->key_op has room for one more */
void kv_sparse_add_key_op(const struct kv *kv, struct kv_seq *s);

/* kv_seq_take() - @s has the block of a successful item */
void kv_seq_take(struct kv *kv, struct kv_seq *s, uint32_t i, const struct hawk_item *it,
		 enum kv_block_state state);

/* kv_seq_hides() - is block @i dropped as a whole for tokens from block @start on? */
bool kv_seq_hides(const struct kv *kv, const struct kv_seq *s, uint32_t i, uint32_t start);

int kv_fail(char err[KV_ERR_LEN], int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
