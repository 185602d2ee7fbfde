// SPDX-License-Identifier: MIT
/*
 * draft_loop.c - drafts, accepts and rejects between the marks of loop.h
 */
#include "loop.h"

#define BYTES	4096u
#define TOKENS	16u
#define TOKEN	(BYTES / 2 / TOKENS)	/* bytes of a token in each of two planes */
#define BLOCKS	64u
#define ROUNDS	100000u

static void write_token(struct hawk_drafts *d, int slot, uint32_t v)
{
	uint8_t *at = hawk_draft_block(d, (uint32_t)slot / TOKENS, 0);

	at += (uint32_t)slot % TOKENS * TOKEN;
	memcpy(at, &v, sizeof(v));
	memcpy(at + BYTES / 2, &v, sizeof(v));
}

/* Rounds of 1 to 8 drafted tokens. Return: whether every token that stayed is right. */
static int speculate(struct hawk_drafts *d, void *const *blocks)
{
	uint32_t r, i, k, kept = 0, good = 0, v;
	const uint8_t *p;

	for (r = 0; r < ROUNDS; r++) {
		k = 1 + r % 8;
		for (i = 0; i < k; i++)
			write_token(d, hawk_draft_slot(d), kept + i + (i < r % 3 ? 0 : 1u << 31));
		i = r % 3 < k ? r % 3 : k;	/* so many of them were right */
		if (!i) {
			hawk_draft_reject(d);
			continue;
		}
		if (kept % (BLOCKS * TOKENS) + i > BLOCKS * TOKENS)
			i = BLOCKS * TOKENS - kept % (BLOCKS * TOKENS);
		if (hawk_draft_accept(d, i, blocks, kept % (BLOCKS * TOKENS)))
			return 0;
		for (k = kept; k < kept + i; k++) {
			p = blocks[k % (BLOCKS * TOKENS) / TOKENS];
			memcpy(&v, p + k % TOKENS * TOKEN, sizeof(v));
			good += v == k;
		}
		kept += i;
	}
	return good == kept && kept > ROUNDS / 2;
}

static int use_space(struct hawk *h, unsigned int tier)
{
	struct hawk_draft_params dp = { .slots = 32, .planes = 2, .token_bytes = TOKEN };
	struct hawk_kv_params p = {
		.block_bytes = BYTES,
		.block_tokens = TOKENS,
		.layers = 1,
		.head_groups = 1,
		.max_blocks = 2 * BLOCKS,
	};
	void *blocks[BLOCKS];
	struct hawk_drafts *d;
	struct hawk_kv *kv;
	int good = 0;
	uint32_t i;

	p.quota[tier].max_bytes = 16 << 20;
	if (hawk_kv_create(h, &p, &kv))
		return -1;
	for (i = 0; i < BLOCKS; i++) {
		struct hawk_item it = { .lid = HAWK_LID(1, 0, 0, i * TOKENS) };

		if (hawk_alloc(kv, &it, 1, NULL) != 1)
			goto out_close;
		blocks[i] = hawk_addr(kv, it.vt);
		memset(blocks[i], 0xff, BYTES);
	}
	if (hawk_draft_open(kv, &dp, &d))
		goto out_close;
	mark("begin");
	good = speculate(d, blocks);
	mark("end");
	hawk_draft_close(d);
	printf("%s: %u rounds %s\n", hawk_backend(h), ROUNDS, good ? "right" : "wrong");
out_close:
	hawk_kv_close(kv);
	return good ? 0 : -1;
}

int main(void)
{
	return loop_main(use_space);
}
