// SPDX-License-Identifier: MIT
/*
 * drives_do.c - one client of one device while its drives have trouble:
 * drives_do URL COMMAND...
 *
 *	put FIRST N [MS]	put blocks, each call with a deadline of so many ms
 *	get FIRST N [MS]	get them by key, all in one batch
 *	health TIER STATE	wait until it is "ok", "failing" or "lost", 30 s at most
 *	mend TIER		put blocks until it is "ok", 30 s at most
 *	idle TIER		wait until no transfer is under way, 30 s at most
 *	sh TEXT			run it
 *
 * Says how many blocks were right, missing (or damaged), and late.  One with the bytes of
 * another ends the program with 3.
 */
#include <errno.h>
#include <hawk/hawk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK	65536u
#define MAX	1024u
#define PATIENCE_S	30

static struct hawk *h;
static struct hawk_kv *kv;
static unsigned int next_block = 100000;	/* for mend */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t deadline(const char *ms)
{
	return ms ? now_ns() + strtoull(ms, NULL, 10) * 1000000 : 0;
}

static void key_of(struct hawk_item *it, unsigned int n)
{
	memset(it->key, 0, sizeof(it->key));
	memcpy(it->key, &(unsigned int) { n + 1 }, sizeof(n));
}

static uint64_t lid_of(unsigned int n)
{
	return HAWK_LID(1 + n, 0, 0, 0);
}

static uint64_t word(unsigned int n, unsigned int i)
{
	return ((uint64_t)n << 20 | i) * 0x9e3779b97f4a7c15ull;
}

static void look(const void *p, unsigned int n)
{
	const uint64_t *w = p;
	unsigned int i;

	for (i = 0; i < BLOCK / sizeof(*w); i++)
		if (w[i] != word(n, i)) {
			printf("block %u has other bytes than its own\n", n);
			exit(3);
		}
}

static struct {
	unsigned int right, missing, late;
} count;

static void tally(int status, const void *p, unsigned int n)
{
	if (!status) {
		look(p, n);
		count.right++;
	} else if (status == -ETIME || status == -EAGAIN) {
		count.late++;
	} else if (status == -ENOENT || status == -EIO || status == -EILSEQ ||
		   status == -ENODEV) {
		count.missing++;
	} else {
		printf("block %u: %s\n", n, strerror(-status));
		exit(4);
	}
}

static void tell(void)
{
	printf("right %u\nmissing %u\nlate %u\n", count.right, count.missing, count.late);
	fflush(stdout);
}

static int put(unsigned int n, const char *ms)
{
	struct hawk_opts o = { .deadline_ns = deadline(ms) };
	struct hawk_item it = { .lid = lid_of(n) };
	unsigned int i;
	uint64_t *w;

	if (hawk_alloc(kv, &it, 1, &o) != 1)
		return it.status;
	w = hawk_addr(kv, it.vt);
	for (i = 0; i < BLOCK / sizeof(*w); i++)
		w[i] = word(n, i);
	key_of(&it, n);
	return hawk_put(kv, &it, 1, NULL) == 1 ? 0 : it.status;
}

static void get(unsigned int first, unsigned int n, const char *ms)
{
	struct hawk_opts o = { .deadline_ns = deadline(ms) };
	static struct hawk_item it[MAX];
	unsigned int at, i, some;

	/* as many as memory can hold at one time */
	for (at = 0; at < n; at += some) {
		some = n - at < 16 ? n - at : 16;
		memset(it, 0, sizeof(it));
		for (i = 0; i < some; i++) {
			it[i].flags = HAWK_ITEM_BY_KEY;
			key_of(&it[i], first + at + i);
		}
		if (ms)
			o.deadline_ns = deadline(ms);
		hawk_get(kv, it, some, &o, NULL);
		for (i = 0; i < some; i++) {
			tally(it[i].status, it[i].status ? NULL : hawk_addr(kv, it[i].vt),
			      first + at + i);
			if (it[i].status)
				continue;
			it[i] = (struct hawk_item) { .lid = it[i].lid, .vt = it[i].vt };
			hawk_unpin(kv, &it[i], 1);
		}
	}
}

static const char *const states[] = { "ok", "failing", "lost" };

static struct hawk_tier_info stat_of(const char *tier)
{
	struct hawk_tier_info info = { 0 };

	if (hawk_tier_stat(h, (unsigned int)atoi(tier), &info))
		info.health = HAWK_HEALTH_LOST;	/* and removed by now */
	return info;
}

static int health_is(const char *tier, const char *state)
{
	return !strcmp(states[stat_of(tier).health], state);
}

static int late(uint64_t since)
{
	return now_ns() - since > PATIENCE_S * 1000000000ull;
}

static int wait_health(const char *tier, const char *state)
{
	static const struct timespec pause = { .tv_nsec = 20000000 };
	uint64_t since = now_ns();

	while (!health_is(tier, state)) {
		if (late(since))
			return 1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int mend(const char *tier)
{
	uint64_t since = now_ns();

	while (!health_is(tier, "ok")) {
		if (late(since))
			return 1;
		put(next_block++, "1000");
	}
	return 0;
}

static int idle(const char *tier)
{
	uint64_t since = now_ns();

	while (stat_of(tier).out)
		if (late(since))
			return 1;
	return 0;
}

static int command(char *text)
{
	char *w[4] = { NULL }, *save = NULL;
	unsigned int i, first, n;

	if (!strncmp(text, "sh ", 3))
		return system(text + 3) != 0;
	for (i = 0; i < 4; i++)
		w[i] = strtok_r(i ? NULL : text, " ", &save);
	if (!w[0] || !w[1])
		return 2;
	if (!strcmp(w[0], "mend"))
		return mend(w[1]);
	if (!strcmp(w[0], "idle"))
		return idle(w[1]);
	if (!w[2])
		return 2;
	if (!strcmp(w[0], "health"))
		return wait_health(w[1], w[2]);
	first = (unsigned int)atoi(w[1]);
	n = (unsigned int)atoi(w[2]);
	memset(&count, 0, sizeof(count));
	if (!strcmp(w[0], "put")) {
		for (i = 0; i < n; i++)
			if (put(first + i, w[3]))
				count.late++;
			else
				count.right++;
	} else if (!strcmp(w[0], "get")) {
		get(first, n, w[3]);
	} else {
		return 2;
	}
	tell();
	return 0;
}

int main(int argc, char **argv)
{
	struct hawk_kv_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.max_blocks = 8192, .buckets = 4, .quota_all = 1,
	};
	int i, ret;

	if (argc < 3)
		return 2;
	if (hawk_open(argv[1], &h) || hawk_kv_create(h, &p, &kv)) {
		printf("%s\n", hawk_strerror_last());
		return 1;
	}
	for (i = 2; i < argc; i++) {
		char *text = strdup(argv[i]);

		ret = command(text);
		free(text);
		if (ret) {
			printf("command %d, '%s': %d\n", i - 1, argv[i], ret);
			return ret;
		}
	}
	hawk_kv_close(kv);
	hawk_close(h);
	return 0;
}
