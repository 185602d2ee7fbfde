// SPDX-License-Identifier: MIT
/*
 * pool_fill.c - puts blocks into a space and says what it found:
 * pool_fill URL NAME BLOCKS [check|wait]
 *
 * With "check" it puts none but gets them by key and compares their bytes; with "wait" it
 * keeps the device open until its input ends.
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

/* Return: whether it is there; ends the program if it is with other bytes. */
static int check(struct hawk_kv *kv, unsigned int n)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	unsigned char *p;
	unsigned int i;

	memcpy(it.key, &(unsigned int) { n + 1 }, sizeof(n));
	if (hawk_get(kv, &it, 1, NULL, NULL) != 1)
		return 0;
	p = hawk_addr(kv, it.vt);
	for (i = 0; i < BLOCK; i++)
		if (p[i] != (unsigned char)n) {
			fprintf(stderr, "pool_fill: block %u has the bytes of another\n", n);
			exit(3);
		}
	it = (struct hawk_item) { .lid = it.lid, .vt = it.vt };
	hawk_unpin(kv, &it, 1);
	return 1;
}

int main(int argc, char **argv)
{
	struct hawk_kv_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.max_blocks = 4096, .quota_all = 1, .model_id = 77,
	};
	struct hawk_stats st;
	struct hawk_kv *kv;
	unsigned int n, blocks, right = 0;
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
	if (argc > 4 && !strcmp(argv[4], "check")) {
		for (n = 0; n < blocks; n++)
			right += check(kv, n);
		printf("right %u\n", right);
		blocks = 0;
	}
	for (n = 0; n < blocks; n++)
		if (fill(kv, n)) {
			fprintf(stderr, "pool_fill: %s\n", hawk_strerror_last());
			return 1;
		}
	if (argc > 4 && !strcmp(argv[4], "wait"))
		getchar();
	hawk_kv_close(kv);
	hawk_close(h);
	return 0;
}
