/* SPDX-License-Identifier: MIT */
/* kv_priv.h - shared by kv.c (device), kv_seq.c (blocks of sequences),
 * kv_view.c (what they see), kv_sparse.c (what they attend to) and kv_cached.c (reuse) */
#ifndef HAWKD_KV_PRIV_H
#define HAWKD_KV_PRIV_H

#include <stdatomic.h>

#include "kv/kv.h"

/* Longest wait for eviction writes or reloads of one batch. */
#define KV_DEADLINE_NS 10000000000ull

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
	uint64_t model_id;
	char *model;
	char *dtype_name;
	char *layout;
	_Atomic uint64_t reload_failed;
};

/**
 * kv_seq_get_cached() - take the longest prefix that is there already
 * @n_max: leading blocks that may be taken
 *
 * Sets n_shared and n_done.
 * Return: 0 or a negative errno.
 */
int kv_seq_get_cached(struct kv *kv, struct kv_seq *s, uint32_t n_max);

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
