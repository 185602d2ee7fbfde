// SPDX-License-Identifier: MIT
/*
 * pool_fill.c - puts blocks into a space and says what it found:
 * pool_fill URL NAME BLOCKS [check|wait|once|churn|verify [FIRST [PUTS [destroy]]]]
 *
 * With "check" it puts none but gets them by key and compares their bytes; with "wait" it
 * keeps the device open until its input ends; with "once" it puts each of them once, with
 * "churn" one of them with other bytes, over and over, PUTS times or until it is killed,
 * the versions being FIRST + 1 and so on; with "verify" it says how many of them are there,
 * with bytes that "once" or "churn" has put under their keys.  With "destroy" the space is
 * destroyed in the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "versions.h"

#define BLOCK	VERSIONS_BLOCK

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

static void put(struct hawk_kv *kv, const char *name, uint32_t n, uint32_t version)
{
	versions_put(kv, name, n, version);	/* what is refused is missed, that is all */
	if (version % 50)
		return;
	printf("puts %u\n", version);
	fflush(stdout);
}

static void churn(struct hawk_kv *kv, const char *name, uint32_t blocks, uint32_t first,
		  uint32_t puts)
{
	uint32_t i, seed = first ? first : (uint32_t)time(NULL);

	for (i = 0; !puts || i < puts; i++) {
		seed = seed * 1103515245 + 12345;
		put(kv, name, (seed >> 8) % blocks, first + 1 + i);
	}
}

static uint32_t verify(struct hawk_kv *kv, const char *name, uint32_t blocks)
{
	uint32_t n, right = 0;
	int64_t version;

	for (n = 0; n < blocks; n++) {
		version = versions_get(kv, name, n);
		if (version < 0) {
			fprintf(stderr, "pool_fill: block %u has bytes that nobody put there\n", n);
			exit(3);
		}
		right += !!version;
	}
	return right;
}

/* What to do with a space.  Return: whether @what is one of these. */
static int versions(struct hawk_kv *kv, const char *name, uint32_t blocks, const char *what,
		    uint32_t first, uint32_t puts)
{
	uint32_t n;

	if (!strcmp(what, "churn"))
		churn(kv, name, blocks, first, puts);
	else if (!strcmp(what, "verify"))
		printf("right %u\n", verify(kv, name, blocks));
	else if (!strcmp(what, "once"))
		for (n = 0; n < blocks; n++)
			put(kv, name, n, first + 1 + n);
	else
		return 0;
	return 1;
}

/* ---- the program ---- */

static int plain(struct hawk_kv *kv, uint32_t blocks, const char *what)
{
	uint32_t n, right = 0;

	if (!strcmp(what, "check")) {
		for (n = 0; n < blocks; n++)
			right += (uint32_t)check(kv, n);
		printf("right %u\n", right);
		return 0;
	}
	for (n = 0; n < blocks; n++)
		if (fill(kv, n))
			return 1;
	if (!strcmp(what, "wait"))
		getchar();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 4 ? argv[4] : "";
	struct hawk_stats st;
	struct hawk_kv *kv;
	uint32_t blocks;
	struct hawk *h;

	if (argc < 4)
		return 2;
	blocks = (uint32_t)atoi(argv[3]);
	if (hawk_open(argv[1], &h) || versions_space(h, argv[2], &kv) || hawk_kv_stats(kv, &st))
		goto err;
	printf("recovered %llu\n", (unsigned long long)st.recovered);
	fflush(stdout);
	if (!versions(kv, argv[2], blocks, what, argc > 5 ? (uint32_t)atoi(argv[5]) : 0,
		      argc > 6 ? (uint32_t)atoi(argv[6]) : 0) && plain(kv, blocks, what))
		goto err;
	hawk_kv_close(kv);
	if (argc > 7 && !strcmp(argv[7], "destroy") && hawk_kv_destroy(h, argv[2]))
		goto err;
	hawk_close(h);
	return 0;

err:
	fprintf(stderr, "pool_fill: %s\n", hawk_strerror_last());
	return 1;
}
