/* SPDX-License-Identifier: MIT */
/* kv_priv.h - shared by kv.c (device) and kv_seq.c (sequences) */
#ifndef HAWKD_KV_PRIV_H
#define HAWKD_KV_PRIV_H

#include <stdatomic.h>

#include "kv/kv.h"

/* Longest wait for eviction writes or reloads of one batch. */
#define KV_DEADLINE_NS 10000000000ull

/* Items of the batches that are built on the stack (4 KiB). */
#define KV_STACK_ITEMS 64u

enum kv_block_state { KV_NONE, KV_SHARED, KV_FILLING, KV_READY, KV_DUP };

/**
 * struct kv - the device and our space on it
 * @items: room for one batch, used by kv_seq_open() only
 * @from_flash: per item of a look-up: it was not in a host tier
 * @next_seq: sequence id of the next kv_seq_open(), 1..HAWK_LID_SEQ_MAX
 * @host_tiers: bit t set if tier t is a host tier
 * @root: first link of the key chains, before the tenant is mixed in
 */
struct kv {
	struct hawk *dev;
	struct hawk_kv *space;
	struct hawk_item *items;
	uint8_t *from_flash;
	uint32_t next_seq;
	uint32_t host_tiers;
	uint32_t block_bytes;
	uint32_t block_tokens;
	uint64_t capacity_blocks;
	bool no_cache;
	uint8_t root[KV_KEY_BYTES];
	_Atomic uint64_t reload_failed;
};

int kv_fail(char err[KV_ERR_LEN], int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
