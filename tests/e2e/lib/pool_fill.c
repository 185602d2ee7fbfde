// SPDX-License-Identifier: MIT
/*
 * pool_fill.c - puts blocks into a space and says what it found: pool_fill URL NAME BLOCKS [wait]
 *
 * With "wait" it keeps the device open until its input ends.
 */
#include <hawk/hawk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK	65536u

static int fill(struct hawk_kv *kv, unsigned int n)
{
	struct hawk_item it = { .lid = HAWK_LID(1 + n, 0, 0, 0) };

	if (hawk_alloc(kv, &it, 1, NULL) != 1)
		return it.status;
	memset(hawk_addr(kv, it.vt), (int)n, BLOCK);
	memset(it.key, 0, sizeof(it.key));
	memcpy(it.key, &(unsigned int) { n + 1 }, sizeof(n));
	it.flags = HAWK_ITEM_ROOT | HAWK_ITEM_TURN(n);
	return hawk_put(kv, &it, 1, NULL) == 1 ? 0 : it.status;
}

int main(int argc, char **argv)
{
	struct hawk_kv_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.max_blocks = 4096, .quota_all = 1, .model_id = 77,
	};
	struct hawk_stats st;
	struct hawk_kv *kv;
	unsigned int n, blocks;
	struct hawk *h;

	if (argc < 4)
		return 2;
	p.name = argv[2];
	blocks = (unsigned int)atoi(argv[3]);
	if (hawk_open(argv[1], &h) || hawk_kv_create(h, &p, &kv) || hawk_kv_stats(kv, &st)) {
		fprintf(stderr, "pool_fill: %s\n", hawk_strerror_last());
		return 1;
	}
	printf("recovered %llu\n", (unsigned long long)st.recovered);
	fflush(stdout);
	for (n = 0; n < blocks; n++)
		if (fill(kv, n)) {
			fprintf(stderr, "pool_fill: %s\n", hawk_strerror_last());
			return 1;
		}
	if (argc > 4)
		getchar();
	hawk_kv_close(kv);
	hawk_close(h);
	return 0;
}
