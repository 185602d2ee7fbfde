// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_test.c - what the tests of /dev/hawk share
 */
#define _GNU_SOURCE
#define HAWK_TEST_SHARED
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hawk_test.h"

const char *test_dir(void)
{
	return getenv("HAWK_TEST_DIR");
}

const char *test_blkdev(void)
{
	return getenv("HAWK_TEST_BLKDEV");
}

int dev_open(int flags)
{
	return open("/dev/hawk", flags | O_CLOEXEC);
}

int dev_call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

int host_add(int fd, uint64_t bytes, uint32_t *tier)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .kind = HAWK_TIER_HOST, .node = -1, .bytes = bytes,
	};
	int ret = dev_call(fd, HAWK_IOC_TIER_ADD, &add);

	*tier = add.tier;
	return ret;
}

int blk_add(int fd, const char *path, uint64_t bytes, uint32_t *tier)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .kind = HAWK_TIER_BLK, .node = -1, .bytes = bytes,
		.path = (uintptr_t)path, .path_len = strlen(path) + 1,
	};
	int ret = dev_call(fd, HAWK_IOC_TIER_ADD, &add);

	*tier = add.tier;
	return ret;
}

int tier_remove(int fd, uint32_t tier)
{
	struct hawk_tier_remove rm = { .size = sizeof(rm), .tier = tier };

	return dev_call(fd, HAWK_IOC_TIER_REMOVE, &rm);
}

/*
 * Moves in flight and the background writer hold a space for a moment after its
 * last file; the harness ends a test in which they never let go.
 */
int tier_remove_idle(int fd, uint32_t tier)
{
	int ret;

	while ((ret = tier_remove(fd, tier)) == -EBUSY)
		poll(NULL, 0, 10);
	return ret;
}

/* Bytes that no space owns; ~0 on error. */
uint64_t tier_free_bytes(int fd, uint32_t tier)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = tier };

	return dev_call(fd, HAWK_IOC_TIER_INFO, &info) ? ~0ull : info.free_bytes;
}

struct hawk_space_create space_args(uint32_t max_blocks)
{
	return (struct hawk_space_create) {
		.size = sizeof(struct hawk_space_create),
		.block_bytes = BLOCK, .block_tokens = TOKENS, .layers = 2, .head_groups = 1,
		.max_blocks = max_blocks, .buckets = 1,
	};
}

int space_attach(int fd, const char *name)
{
	struct hawk_space_attach at = { .size = sizeof(at) };

	strncpy((char *)at.name, name, HAWK_NAME_MAX - 1);
	return dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at);
}

int space_destroy(int fd, const char *name)
{
	struct hawk_space_destroy de = { .size = sizeof(de) };

	strncpy((char *)de.name, name, HAWK_NAME_MAX - 1);
	return dev_call(fd, HAWK_IOC_SPACE_DESTROY, &de);
}

int batch(int fd, unsigned long cmd, uint32_t flags, struct hawk_item *items, uint32_t n,
	  struct hawk_batch *out)
{
	struct hawk_batch b = {
		.size = sizeof(b), .flags = flags, .count = n, .items = (uintptr_t)items,
		.tier = HAWK_TIER_ANY,
	};
	int ret = dev_call(fd, cmd, &b);

	if (out)
		*out = b;
	return ret;
}

/* A batch of one: the call's error or the item's status. */
int one(int fd, unsigned long cmd, uint32_t flags, struct hawk_item *item)
{
	return batch(fd, cmd, flags, item, 1, NULL) ?: item->status;
}

int lid_call(int fd, unsigned long cmd, uint64_t lid)
{
	struct hawk_item it = { .lid = lid };

	return one(fd, cmd, 0, &it);
}

void set_key(struct hawk_item *it, uint32_t n)
{
	memset(it->key, 0xa5, sizeof(it->key));
	memcpy(it->key, &n, sizeof(n));
}

struct hawk_item key_item(uint32_t n)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };

	set_key(&it, n);
	return it;
}

struct hawk_stats stats_of(int fd)
{
	struct hawk_stats st = { .size = sizeof(st) };

	if (dev_call(fd, HAWK_IOC_STATS, &st))
		memset(&st, 0xff, sizeof(st));
	return st;
}

uint64_t stat_pinned(int fd)
{
	return stats_of(fd).pinned;
}

/*
 * What the engine finds of a quiet space (debugfs): 1 sound, 0 not, or not there;
 * -1 there is no debugfs.  @line: what it says.
 */
int space_check(const char *name, char *line, int size)
{
	FILE *f = fopen("/sys/kernel/debug/hawk/spaces", "re");
	char want[80];
	int ret = 0;

	if (!f)
		return -1;
	snprintf(want, sizeof(want), "name %s ", name);
	while (!ret && fgets(line, size, f))
		ret = strstr(line, want) && strstr(line, "check ok");
	fclose(f);
	return ret;
}

void *map_area(int fd, uint64_t offset, size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_SHARED, fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

/* Bytes that depend on the seed and on their place. */
void fill(void *p, size_t len, uint32_t seed)
{
	uint32_t *w = p;
	size_t i;

	for (i = 0; i < len / sizeof(*w); i++)
		w[i] = seed * 2654435761u + i;
}

bool filled(const void *p, size_t len, uint32_t seed)
{
	const uint32_t *w = p;
	size_t i;

	for (i = 0; i < len / sizeof(*w); i++)
		if (w[i] != seed * 2654435761u + (uint32_t)i)
			return false;
	return true;
}

uint8_t *frame_at(void *window, uint64_t vt, uint32_t block_bytes)
{
	return (uint8_t *)window + (uint64_t)HAWK_VT_FRAME(vt) * block_bytes;
}

/* Bytes to map at HAWK_MMAP_VTLB; 0 on error. */
uint64_t vtlb_bytes(int fd)
{
	struct hawk_space_info info = { .size = sizeof(info) };

	return dev_call(fd, HAWK_IOC_SPACE_INFO, &info) ? 0 : info.vtlb_bytes;
}

/* The reader's side of the translation protocol of uapi/hawk.h. */
uint64_t vtlb_lookup(const struct hawk_vtlb_entry *t, uint64_t bytes, uint64_t lid)
{
	uint64_t lines = bytes / sizeof(*t) / HAWK_VT_WAYS, h = lid, val;
	unsigned int i;

	h = (h ^ h >> 33) * HAWK_MIX_A;
	h = (h ^ h >> 33) * HAWK_MIX_B;
	h ^= h >> 33;
	for (i = 0; i < HAWK_VT_PROBE * HAWK_VT_WAYS; i++) {
		const struct hawk_vtlb_entry *e =
			&t[((h + i / HAWK_VT_WAYS) & (lines - 1)) * HAWK_VT_WAYS +
			   i % HAWK_VT_WAYS];

		val = __atomic_load_n(&e->val, __ATOMIC_ACQUIRE);
		if ((val & HAWK_VT_VALID) && e->lid == lid &&
		    val == __atomic_load_n(&e->val, __ATOMIC_ACQUIRE))
			return val;
	}
	return 0;
}

/* A file of so many (unwritten) bytes in test_dir(); the caller frees the path. */
char *temp_file(const char *name, uint64_t bytes)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s.%d", test_dir(), name, getpid()) < 0)
		return NULL;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, bytes)) {
		perror(path);
		free(path);
		path = NULL;
	}
	if (fd >= 0)
		close(fd);
	return path;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* The signal that a child dies of when it calls @fn; 0: it does not. */
int dies_with(void (*fn)(void *), void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		fn(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* As a shell writes it: 0 or a negative errno. */
int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

/* All of it, as far as there is room, and a NUL: 0 or a negative errno. */
int read_file(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while (n < len - 1 && (got = read(fd, buf + n, len - 1 - n)) > 0)
		n += got;
	close(fd);
	buf[n] = 0;
	return 0;
}

/* A tunable of the pace (sysfs). */
int pace_set(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/misc/hawk/pace/%s", name);
	return write_file(path, value);
}

/* A document of HAWK_TEST_ABI, in a buffer that the next call reuses; NULL: not to be had. */
char *abi_doc(const char *name)
{
	const char *dir = getenv("HAWK_TEST_ABI");
	static char doc[65536];
	char path[512];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "", name);
	f = dir ? fopen(path, "r") : NULL;
	if (!f)
		return NULL;
	n = fread(doc, 1, sizeof(doc) - 1, f);
	fclose(f);
	doc[n] = 0;
	return doc;
}
