/* SPDX-License-Identifier: MIT */
/*
 * serve_kv.h - a small KV memory of sequences (daemon/kv) on the embedded backend
 */
#ifndef SERVE_KV_H
#define SERVE_KV_H

#include "kv/kv.h"

#define B	16u	/* tokens of a block */
#define PAYLOAD 65536u	/* bytes of a block: 32 in a chunk */

/* @cfg: its url, and what the test wants of it; the rest is set here. */
static inline void kv_fixture_open(struct kv **kv, struct kv_config cfg, uint8_t *root)
{
	char err[KV_ERR_LEN];

	cfg.block_payload = PAYLOAD;
	cfg.block_tokens = B;
	cfg.planes = 1;
	cfg.model = "test";
	cfg.dtype_name = "f16";
	cfg.layout = "any";
	cfg.max_seqs = 4;
	if (kv_open(&cfg, kv, err))
		fail_msg("kv_open: %s", err);
	assert_int_equal(kv_root(*kv, "", 0, root), 0);
}

/* A prompt of its own for each @seed. */
static inline void kv_fixture_tokens(int32_t *tok, int32_t seed, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		tok[i] = seed * 100000 + (int32_t)i;
}

#endif /* SERVE_KV_H */
