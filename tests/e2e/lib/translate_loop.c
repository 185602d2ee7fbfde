// SPDX-License-Identifier: MIT
/*
 * translate_loop.c - translates and reads blocks between the marks of loop.h
 */
#include "loop.h"

#define BLOCKS	1000u
#define LOOKS	1000000u
#define BYTES	4096u
#define TABLE	50u	/* LIDs of a block table; divides LOOKS */

static uint64_t lid(unsigned int n)
{
	return HAWK_LID(1 + n / 100, n % 2, 0, 16 * (n % 100));
}

static int put_blocks(struct hawk_kv *kv)
{
	struct hawk_item it;
	unsigned int n;

	for (n = 0; n < BLOCKS; n++) {
		it = (struct hawk_item) { .lid = lid(n) };
		if (hawk_alloc(kv, &it, 1, NULL) != 1)
			return -1;
		memset(hawk_addr(kv, it.vt), (int)(n % 251), BYTES);
		if (hawk_put(kv, &it, 1, NULL) != 1)
			return -1;
	}
	return 0;
}

/* Looks that gave the right byte: every other table at once, the rest one by one. */
static unsigned int look(struct hawk_kv *kv)
{
	unsigned int i, j, n, good = 0;
	uint64_t l[TABLE], vt[TABLE];
	const unsigned char *p;

	for (i = 0; i < LOOKS; i += TABLE) {
		for (j = 0; j < TABLE; j++) {
			l[j] = lid((i + j) * 2654435761u % BLOCKS);
			vt[j] = i / TABLE % 2 ? 0 : hawk_translate(kv, l[j]);
		}
		if (i / TABLE % 2)
			hawk_translate_batch(kv, l, vt, TABLE);
		for (j = 0; j < TABLE; j++) {
			n = (i + j) * 2654435761u % BLOCKS;
			p = hawk_addr(kv, vt[j]);
			good += p && p[i % BYTES] == n % 251;
		}
	}
	return good;
}

static int use_space(struct hawk *h, unsigned int tier)
{
	struct hawk_kv_params p = {
		.block_bytes = BYTES,
		.block_tokens = 16,
		.layers = 2,
		.head_groups = 1,
		.max_blocks = 2 * BLOCKS,
	};
	struct hawk_kv *kv;
	unsigned int good;

	p.quota[tier].max_bytes = 16 << 20;
	if (hawk_kv_create(h, &p, &kv))
		return -1;
	if (put_blocks(kv)) {
		hawk_kv_close(kv);
		return -1;
	}
	mark("begin");
	good = look(kv);
	mark("end");
	hawk_kv_close(kv);
	printf("%s: %u of %u translated\n", hawk_backend(h), good, LOOKS);
	return good == LOOKS ? 0 : -1;
}

int main(void)
{
	return loop_main(use_space);
}
