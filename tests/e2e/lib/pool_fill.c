// SPDX-License-Identifier: MIT
/*
 * pool_fill.c - puts blocks into a space and says what it found:
 * pool_fill URL NAME BLOCKS [check|wait|churn|verify]
 *
 * With "check" it puts none but gets them by key and compares their bytes; with "wait" it
 * keeps the device open until its input ends; with "churn" it puts one of them with other
 * bytes, over and over, until it is killed; with "verify" it says how many of them are
 * there, with bytes that "churn" has put under their keys.
 */
#include <hawk/hawk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* ---- blocks with versions ---- */

static uint64_t word(unsigned int n, unsigned int version, unsigned int i)
{
	uint64_t id = (uint64_t)n << 32 | version;

	return i ? id * 0x9e3779b97f4a7c15ull + i : id;	/* the first one tells */
}

static void churn_one(struct hawk_kv *kv, unsigned int n, unsigned int version)
{
	struct hawk_item it = { .lid = HAWK_LID(1 + version % 0xfffff, 0, 0, 16 * n) };
	struct hawk_item old = { .flags = HAWK_ITEM_BY_KEY };
	uint64_t *w;
	unsigned int i;

	memcpy(old.key, &(unsigned int) { n + 1 }, sizeof(n));
	if (hawk_lookup(kv, &old, 1, NULL, NULL) == 1) {
		old.flags = 0;
		memset(old.key, 0, sizeof(old.key));
		hawk_free(kv, &old, 1);
	}
	if (hawk_alloc(kv, &it, 1, NULL) != 1)
		return;
	w = hawk_addr(kv, it.vt);
	for (i = 0; i < BLOCK / sizeof(*w); i++)
		w[i] = word(n, version, i);
	memcpy(it.key, &(unsigned int) { n + 1 }, sizeof(n));
	hawk_put(kv, &it, 1, NULL);
}

static void churn(struct hawk_kv *kv, unsigned int blocks, unsigned int seed)
{
	unsigned int version, n;

	for (version = 1;; version++) {
		seed = seed * 1103515245 + 12345;
		n = (seed >> 8) % blocks;
		churn_one(kv, n, version);
		if (version % 50)
			continue;
		printf("puts %u\n", version);
		fflush(stdout);
	}
}

static int verify(struct hawk_kv *kv, unsigned int n)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	const uint64_t *w;
	unsigned int i;

	memcpy(it.key, &(unsigned int) { n + 1 }, sizeof(n));
	if (hawk_get(kv, &it, 1, NULL, NULL) != 1)
		return 0;
	w = hawk_addr(kv, it.vt);
	for (i = 0; i < BLOCK / sizeof(*w); i++)
		if (w[i] != word(n, (unsigned int)w[0], i)) {
			fprintf(stderr, "pool_fill: block %u has bytes that nobody put there\n", n);
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
	if (argc > 4 && !strcmp(argv[4], "churn"))
		churn(kv, blocks, (unsigned int)time(NULL));
	if (argc > 4 && (!strcmp(argv[4], "check") || !strcmp(argv[4], "verify"))) {
		for (n = 0; n < blocks; n++)
			right += (unsigned int)(*argv[4] == 'c' ? check(kv, n) : verify(kv, n));
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
