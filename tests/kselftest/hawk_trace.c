// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_trace.c - tracepoints: each event comes, with the right fields
 *
 * The trace is taken in an instance of its own, so that nobody else's tracing
 * is disturbed.
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "hawk_tiers.h"

#define TRACEFS		"/sys/kernel/tracing"
#define INSTANCE	TRACEFS "/instances/hawk-kselftest"
#define NAME		"test-trace"

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* The next line of event @name at or after *@pos; its fields, or NULL. */
static const char *next_event(const char **pos, const char *name)
{
	char tag[64];
	const char *p;

	snprintf(tag, sizeof(tag), " %s: ", name);
	p = strstr(*pos, tag);
	if (!p)
		return NULL;
	p += strlen(tag);
	*pos = p;
	return p;
}

struct item_event {
	unsigned long long space, lid, vt;
	int ret;
};

/* Finds an event about one item: that of @lid with status @ret in @space. */
static bool item_event(const char *trace, const char *name, unsigned long long space,
		       uint64_t lid, int ret, struct item_event *e)
{
	const char *p;

	while ((p = next_event(&trace, name)))
		if (sscanf(p, "space=%llu lid=%llx vt=%llx ret=%d", &e->space, &e->lid, &e->vt,
			   &e->ret) == 4 && e->space == space && e->lid == lid && e->ret == ret)
			return true;
	return false;
}

struct move_event {
	unsigned long long space, src_off, dst_off, latency;
	unsigned int block, gen, src, dst;
	int ret;
	char kind[16];
};

/* Events @name of moves of @kind between two tiers; the last one is in *@e. */
static uint32_t move_events(const char *trace, const char *name, unsigned long long space,
			    const char *kind, uint32_t src, uint32_t dst, struct move_event *e)
{
	struct move_event ev;
	uint32_t n = 0;
	const char *p;

	while ((p = next_event(&trace, name))) {
		if (sscanf(p, "space=%llu %15s block=%u gen=%u tier%u+%llu -> tier%u+%llu "
			   "latency=%llu ret=%d", &ev.space, ev.kind, &ev.block, &ev.gen, &ev.src,
			   &ev.src_off, &ev.dst, &ev.dst_off, &ev.latency, &ev.ret) != 10)
			continue;
		if (ev.space != space || strcmp(ev.kind, kind) || ev.src != src || ev.dst != dst ||
		    ev.src_off % BLOCK || ev.dst_off % BLOCK || ev.ret)
			continue;
		*e = ev;
		n++;
	}
	return n;
}

/*
 * Does to block 0, which is on flash, what has events, and wants one block more
 * than there are frames.
 * Return: 0, and in *@refused the item that found no room; or an error.
 */
static int work(int fd, struct hawk_item *refused)
{
	struct hawk_item by = key_item(0), it = { .lid = LID(0) };
	struct hawk_item *all;
	uint32_t i;
	int ret;

	ret = one(fd, HAWK_IOC_LOOKUP, 0, &by) ?: one(fd, HAWK_IOC_GET, 0, &it) ?:
	      one(fd, HAWK_IOC_UNPIN, 0, &it);
	it.vt = 0;
	ret = ret ?: one(fd, HAWK_IOC_PIN, 0, &it) ?: one(fd, HAWK_IOC_UNPIN, 0, &it) ?:
	      lid_call(fd, HAWK_IOC_RELOAD, LID(1)) ?: lid_call(fd, HAWK_IOC_FREE, LID(1));
	if (ret)
		return ret;
	/* ALLOC pins, so one finds every frame pinned; which one depends on the moves */
	all = calloc(HOST_BLOCKS + 1, sizeof(*all));
	for (i = 0; i <= HOST_BLOCKS; i++)
		all[i].lid = LID(2000 + i);
	ret = batch(fd, HAWK_IOC_ALLOC, 0, all, HOST_BLOCKS + 1, NULL);
	for (i = 0; i <= HOST_BLOCKS; i++)
		if (all[i].status)
			*refused = all[i];
	free(all);
	return ret;
}

static char *read_trace(void)
{
	size_t room = 4 << 20, n;
	char *buf = malloc(room);
	FILE *f = fopen(INSTANCE "/trace", "r");

	if (!f || !buf)
		return NULL;
	n = fread(buf, 1, room - 1, f);
	fclose(f);
	buf[n] = 0;
	return buf;
}

/* The number of the space called NAME; 0: no such event with our geometry. */
static unsigned long long space_event(const char *trace, const char *event)
{
	unsigned long long space;
	unsigned int block_bytes, max_blocks;
	const char *p;

	while ((p = next_event(&trace, event)))
		if (sscanf(p, "space=%llu name=" NAME " block_bytes=%u max_blocks=%u", &space,
			   &block_bytes, &max_blocks) == 3 && block_bytes == BLOCK &&
		    max_blocks == 1024)
			return space;
	return 0;
}

/* Is there an event of @refused with its status? */
static bool quota_event(const char *trace, unsigned long long space,
			const struct hawk_item *refused)
{
	unsigned long long of, lid;
	const char *p;
	int ret;

	while ((p = next_event(&trace, "hawk_quota")))
		if (sscanf(p, "space=%llu lid=%llx ret=%d", &of, &lid, &ret) == 3 &&
		    of == space && lid == refused->lid && ret == refused->status)
			return true;
	return false;
}

static void check(struct __test_metadata *_metadata, const char *trace, uint32_t host,
		  uint32_t blk, const struct hawk_item *refused)
{
	static const char of_block0[][16] = {
		"hawk_alloc", "hawk_put", "hawk_lookup", "hawk_get", "hawk_pin", "hawk_unpin",
	};
	unsigned long long space = space_event(trace, "hawk_space_create");
	struct item_event e;
	struct move_event m;
	uint32_t i, n;

	ASSERT_NE(0, space);
	EXPECT_EQ(space, space_event(trace, "hawk_space_destroy"));
	for (i = 0; i < sizeof(of_block0) / sizeof(of_block0[0]); i++)
		EXPECT_TRUE(item_event(trace, of_block0[i], space, LID(0), 0, &e))
			TH_LOG("no %s", of_block0[i]);
	EXPECT_TRUE(item_event(trace, "hawk_reload", space, LID(1), 0, &e));
	ASSERT_TRUE(item_event(trace, "hawk_get", space, LID(0), 0, &e));
	EXPECT_LT(HAWK_VT_FRAME(e.vt), HOST_BLOCKS) TH_LOG("vt %#llx", e.vt);

	n = move_events(trace, "hawk_evict", space, "write", host, blk, &m);
	EXPECT_GE(n, NBLOCKS - HOST_BLOCKS);
	EXPECT_EQ(n, move_events(trace, "hawk_move_start", space, "write", host, blk, &m));
	EXPECT_EQ(0, m.latency);
	EXPECT_EQ(n, move_events(trace, "hawk_move_done", space, "write", host, blk, &m));
	EXPECT_GT(m.latency, 0);
	EXPECT_EQ(2, move_events(trace, "hawk_move_start", space, "read", blk, host, &m));
	EXPECT_EQ(2, move_events(trace, "hawk_move_done", space, "read", blk, host, &m));
	EXPECT_GT(m.latency, 0);
	EXPECT_LT(m.src_off, FLASH_BYTES);
	EXPECT_LT(m.dst_off, HOST_BYTES);

	EXPECT_TRUE(quota_event(trace, space, refused));
}

TEST_F_TIMEOUT(tiers, events, 60)
{
	struct hawk_item refused = { .status = 0 };
	char *trace;
	int fd;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	rmdir(INSTANCE);	/* of a test that was killed */
	ASSERT_EQ(0, mkdir(INSTANCE, 0700)) TH_LOG("%s", strerror(errno));
	ASSERT_EQ(0, write_file(INSTANCE "/events/hawk/enable", "1"));
	fd = evicting_space(self->host, self->blk, NAME);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, work(fd, &refused));
	ASSERT_EQ(-EDQUOT, refused.status);
	close(fd);
	/* the space has ended when its tiers are in no use */
	while (tier_free_bytes(self->ctl, self->host) != HOST_BYTES)
		usleep(10000);
	EXPECT_EQ(0, write_file(INSTANCE "/events/hawk/enable", "0"));
	trace = read_trace();
	ASSERT_NE(NULL, trace);
	check(_metadata, trace, self->host, self->blk, &refused);
	free(trace);
	EXPECT_EQ(0, rmdir(INSTANCE));
}

TEST_HARNESS_MAIN
