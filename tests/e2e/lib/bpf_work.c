// SPDX-License-Identifier: MIT
/*
 * bpf_work.c - does on /dev/hawk what the scripts of tools/bpf look at
 *
 *	bpf_work rooms DIR	evictions, reloads, refusals; prints what they must say
 *	bpf_work locks		evictions without flash; then threads at the same locks,
 *				until SIGTERM, in a space named bpf-vm
 *
 * DIR is on a file system with O_DIRECT.  Prints "NAME NUMBER" a line.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hawk/hawk.h>

#define BYTES	16384u
#define TOKENS	16u
#define HOST	(2u << 20)
#define FLASH	(4u << 20)
#define FRAMES	(HOST / BYTES)
#define STEP	16u
#define NAME	"bpf-vm"
#define HAMMERED	64u	/* the first block that is looked up without end */

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bpf_work: %s: %s\n", what, hawk_strerror_last());
	exit(1);
}

static uint64_t lid(unsigned int n)
{
	return HAWK_LID(1, 0, 0, n * TOKENS);
}

static void put_blocks(struct hawk_kv *kv, unsigned int from, unsigned int to)
{
	struct hawk_item it[STEP];
	unsigned int n, k;

	for (n = from; n < to; n += STEP) {
		memset(it, 0, sizeof(it));
		for (k = 0; k < STEP; k++) {
			it[k].lid = lid(n + k);
			memcpy(it[k].key, &(unsigned int){ n + k + 1 }, sizeof(n));
		}
		if (hawk_alloc(kv, it, STEP, NULL) != STEP || hawk_put(kv, it, STEP, NULL) != STEP)
			die("putting blocks");
	}
}

static void get_blocks(struct hawk_kv *kv, unsigned int from, unsigned int to)
{
	struct hawk_item it = { 0 };

	for (; from < to; from++) {
		it = (struct hawk_item){ .lid = lid(from) };
		if (hawk_get(kv, &it, 1, NULL, NULL) != 1 || hawk_unpin(kv, &it, 1) != 1)
			die("getting blocks");
	}
}

/* Pins every frame; returns the items that were refused with @status. */
static unsigned int pin_all(struct hawk_kv *kv, int status)
{
	struct hawk_item *it = calloc(FRAMES + 3, sizeof(*it));
	unsigned int n, refused = 0;

	for (n = 0; n < FRAMES + 3; n++)
		it[n].lid = lid(5000 + n);
	if (hawk_alloc(kv, it, FRAMES + 3, NULL) < 0)
		die("pinning all frames");
	for (n = 0; n < FRAMES + 3; n++)
		refused += it[n].status == status;
	free(it);
	return refused;
}

static struct hawk_kv *space(struct hawk *h, unsigned int host, unsigned int blk,
			     const char *name)
{
	struct hawk_kv_params p = {
		.block_bytes = BYTES, .block_tokens = TOKENS, .layers = 1, .head_groups = 1,
		.max_blocks = 1024, .buckets = 1, .name = name, .mode = name ? 0600 : 0,
	};
	struct hawk_kv *kv;

	p.quota[blk].max_bytes = FLASH;
	p.quota[host].max_bytes = HOST;
	if (hawk_kv_create(h, &p, &kv))
		die("making a space");
	return kv;
}

/* A space whose minimum is all that another one has pinned: whether it is refused for that. */
static bool lent(struct hawk *h, unsigned int host)
{
	struct hawk_kv_params p = {
		.block_bytes = BYTES, .block_tokens = TOKENS, .layers = 1, .head_groups = 1,
		.max_blocks = FRAMES,
	};
	struct hawk_kv *kv;
	int ret;

	p.quota[host].min_bytes = HOST;
	p.quota[host].max_bytes = HOST;
	ret = hawk_kv_create(h, &p, &kv);
	if (!ret)
		hawk_kv_close(kv);
	return ret == -ENOSPC;
}

static void print_stats(struct hawk_kv *kv)
{
	struct hawk_stats st;

	if (hawk_kv_stats(kv, &st))
		die("statistics");
	printf("evict_clean %llu\nevict_write %llu\nevict_drop %llu\nflash_drop %llu\nreloads %llu\n",
	       (unsigned long long)st.evict_clean, (unsigned long long)st.evict_write,
	       (unsigned long long)st.evict_drop, (unsigned long long)st.flash_drop,
	       (unsigned long long)st.reloads);
}

static void rooms(struct hawk *h, const char *dir)
{
	unsigned int host, blk;
	struct hawk_kv *kv, *other;
	struct hawk_item it = { .lid = lid(0) };
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/flash", dir);
	f = fopen(path, "w");
	if (!f || ftruncate(fileno(f), FLASH) || fclose(f))
		die(path);
	if (hawk_tier_add_host(h, -1, HOST, &host) || hawk_tier_add_blk(h, path, 0, &blk))
		die("adding tiers");
	kv = space(h, host, blk, NULL);
	put_blocks(kv, 0, 400);
	get_blocks(kv, 200, 240);
	put_blocks(kv, 400, 560);
	printf("pid %d\nhost %u\nflash %u\nblock_bytes %u\n", getpid(), host, blk, BYTES);
	printf("quota %u\n", pin_all(kv, -EDQUOT));
	other = space(h, host, blk, NULL);
	printf("tier %d\n", hawk_alloc(other, &it, 1, NULL) == 0 && it.status == -ENOSPC);
	printf("lent %d\n", lent(h, host));
	print_stats(kv);
	hawk_kv_close(other);
	hawk_kv_close(kv);
	while (hawk_tier_del(h, host) == -EBUSY || hawk_tier_del(h, blk) == -EBUSY)
		usleep(10000);
	unlink(path);
}

struct hammer {
	struct hawk *h;
	struct hawk_kv *kv;
	unsigned int host;
};

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

/* Look-ups take the buckets' locks, hawk_tier_stat() the device's. */
static void *hammer(void *arg)
{
	struct hammer *w = arg;
	struct hawk_tier_info info;
	struct hawk_item it[64];
	unsigned int i;

	while (!stop) {
		memset(it, 0, sizeof(it));
		for (i = 0; i < 64; i++)
			memcpy(it[i].key, &(unsigned int){ HAMMERED + i + 1 }, sizeof(i));
		if (hawk_lookup(w->kv, it, 64, NULL, NULL) != 64 ||
		    hawk_tier_stat(w->h, w->host, &info))
			die("hammering");
	}
	return NULL;
}

/* Holds the device's lock for long: the tables of a large space are made under it. */
static void *make_spaces(void *arg)
{
	struct hawk_kv_params p = {
		.block_bytes = BYTES, .block_tokens = TOKENS, .layers = 1, .head_groups = 1,
		.max_blocks = 1 << 17,
	};
	struct hammer *w = arg;
	struct hawk_kv *kv;

	p.quota[w->host].max_bytes = HOST;
	while (!stop) {
		if (hawk_kv_create(w->h, &p, &kv))
			die("making spaces");
		hawk_kv_close(kv);
	}
	return NULL;
}

/* Eight rows, the last of which is not there. */
static void gather(struct hawk_kv *kv)
{
	uint64_t rows[8];
	uint32_t remap[8], count = 8, i;
	int32_t status[8];
	struct hawk_gather_lists l = {
		.lid = rows, .count = &count, .lists = 1, .remap = remap, .status = status,
		.buf = aligned_alloc(HAWK_FRAME_ALIGN, 8 * BYTES), .buf_bytes = 8 * BYTES,
	};

	for (i = 0; i < 8; i++)
		rows[i] = lid(i < 7 ? HAMMERED + i : 9999);
	if (hawk_gather(kv, &l, NULL, NULL) != 7)
		die("gathering");
	free(l.buf);
}

static void locks(struct hawk *h)
{
	struct hammer w = { .h = h };
	pthread_t thread[3];
	int i;

	signal(SIGTERM, on_term);
	if (hawk_tier_add_host(h, -1, HOST, &w.host))
		die("adding a tier");
	w.kv = space(h, w.host, w.host, NAME);
	put_blocks(w.kv, 0, FRAMES + 32);	/* 32 are dropped: there is no flash */
	gather(w.kv);
	printf("pid %d\nhost %u\n", getpid(), w.host);
	print_stats(w.kv);
	fflush(stdout);
	for (i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, i ? hammer : make_spaces, &w))
			die("starting threads");
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	hawk_kv_close(w.kv);
	hawk_kv_destroy(h, NAME);
	while (hawk_tier_del(h, w.host) == -EBUSY)
		usleep(10000);
}

int main(int argc, char **argv)
{
	struct hawk *h;

	if (argc < 2 || hawk_open("dev:", &h))
		die("opening the device");
	if (argc == 3 && !strcmp(argv[1], "rooms"))
		rooms(h, argv[2]);
	else
		locks(h);
	hawk_close(h);
	return 0;
}
