// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_pace.c - deliveries: estimates, deadlines, the cap of the link, who gives up
 *
 * How fast anything is, is not for these tests to say: what the pace counts is taken from
 * the trace, with the times that it counts with.  On a link that lets one block pass in each
 * window a delivery lasts until somebody gives it up.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "hawk_tiers.h"

#define PACE		"/sys/class/misc/hawk/pace/"
#define TRACEFS		"/sys/kernel/tracing"
#define INSTANCE	TRACEFS "/instances/hawk-pace"
#define WINDOW_NS	10000000ull
#define TRACE_BYTES	(4 * MIB)
#define CALLERS		4u
#define LARGE_BLOCK	(256u << 10)	/* a few of these are not submitted by the caller */
#define LARGE		((uint32_t)(HOST_BYTES / LARGE_BLOCK))
#define SOON		(50 * 1000000ull)
#define LONG		(3600 * 1000000000ull)

static int64_t tuned(const char *name)
{
	char path[128], buf[64];

	snprintf(path, sizeof(path), PACE "%s", name);
	return read_file(path, buf, sizeof(buf)) ? -1 : strtoll(buf, NULL, 10);
}

static int tune_flash(uint32_t tier, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/misc/hawk/tier%u/flash_mb_per_s", tier);
	return write_file(path, value);
}

/* ---- gathers of all blocks of a space ---- */

struct call {
	uint64_t lid[NBLOCKS];
	uint32_t count;
	uint32_t remap[NBLOCKS];
	int32_t status[NBLOCKS];
	struct hawk_gather g;
	uint8_t *buf;
};

static struct call *call_new(uint32_t flags, uint64_t deadline)
{
	struct call *c = calloc(1, sizeof(*c));
	uint32_t i;

	c->buf = mmap(NULL, NBLOCKS * BLOCK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < NBLOCKS; i++)
		c->lid[i] = LID(i);
	c->count = NBLOCKS;
	c->g = (struct hawk_gather){
		.size = sizeof(c->g), .flags = flags, .lists = 1, .rows = NBLOCKS,
		.counts = (uintptr_t)&c->count, .lids = (uintptr_t)c->lid,
		.remap = (uintptr_t)c->remap, .status = (uintptr_t)c->status,
		.buf = (uintptr_t)c->buf, .buf_bytes = NBLOCKS * BLOCK,
		.deadline_ns = deadline, .user_data = 1,
	};
	return c;
}

static void call_free(struct call *c)
{
	munmap(c->buf, NBLOCKS * BLOCK);
	free(c);
}

/* Rows that came, with their bytes; ~0: one came with others. */
static uint32_t good_rows(const struct call *c)
{
	uint32_t i, n = 0;

	for (i = 0; i < NBLOCKS; i++) {
		if (c->status[i])
			continue;
		if (c->remap[i] >= c->g.unique || !filled(c->buf + c->remap[i] * BLOCK, BLOCK, i))
			return ~0u;
		n++;
	}
	return n;
}

static uint32_t rows_with(const struct call *c, int status)
{
	uint32_t i, n = 0;

	for (i = 0; i < NBLOCKS; i++)
		n += c->status[i] == status;
	return n;
}

/* Nothing is kept for anybody. */
static bool all_over(int fd)
{
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		if (!tuned("deliveries") && !stat_pinned(fd))
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

/* ---- the fixture ---- */

FIXTURE(pace) {
	int ctl;
	int fd;
	uint32_t host;
	uint32_t blk;
	char *path;
};

/* A private space with @n blocks, each filled with its number: its file, or less than 0. */
static int filled_space(uint32_t host, uint32_t blk, uint32_t n, uint32_t block)
{
	struct hawk_space_create sc = space_args(4 * n);
	int fd = dev_open(O_RDWR), ret;
	uint8_t *win;
	uint32_t i;

	sc.block_bytes = block;
	sc.quota[host].max_bytes = HOST_BYTES;
	sc.quota[blk].max_bytes = FLASH_BYTES;
	ret = dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc);
	if (ret)
		return ret;
	win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ | PROT_WRITE);
	if (!win)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct hawk_item it = { .lid = LID(i) };

		ret = one(fd, HAWK_IOC_ALLOC, 0, &it);
		if (ret)
			return ret;
		fill(frame_at(win, it.vt, block), block, i);
		set_key(&it, i);
		ret = one(fd, HAWK_IOC_PUT, 0, &it);
		if (ret)
			return ret;
	}
	munmap(win, HOST_BYTES);
	return fd;
}

FIXTURE_SETUP(pace)
{
	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("pace", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	ASSERT_GE(self->ctl, 0);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	self->fd = filled_space(self->host, self->blk, NBLOCKS, BLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(pace)
{
	EXPECT_EQ(0, pace_set("link_mb_per_s", "0"));
	EXPECT_EQ(0, pace_set("cap_percent", "70"));
	EXPECT_EQ(0, pace_set("mode", "on"));
	EXPECT_EQ(0, tune_flash(self->blk, "0"));
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/* ---- what the operator sets ---- */

TEST_F(pace, tunables)
{
	static const struct { const char *name, *bad, *low, *high; } t[] = {
		{ "epsilon_permille", "1001", "0", "1000" },
		{ "link_mb_per_s", "100000001", "0", "100000000" },
		{ "cap_percent", "101", "1", "100" },
		{ "quantum_bytes", "65535", "65536", "1073741824" },
		{ "dram_mb_per_s", "100000001", "0", "100000000" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char path[128], was[64];

		snprintf(path, sizeof(path), PACE "%s", t[i].name);
		ASSERT_EQ(0, read_file(path, was, sizeof(was)));
		EXPECT_EQ(0, pace_set(t[i].name, t[i].low)) TH_LOG("%s", t[i].name);
		EXPECT_EQ(0, pace_set(t[i].name, t[i].high)) TH_LOG("%s", t[i].name);
		EXPECT_EQ(-EINVAL, pace_set(t[i].name, t[i].bad)) TH_LOG("%s", t[i].name);
		EXPECT_EQ(-EINVAL, pace_set(t[i].name, "x")) TH_LOG("%s", t[i].name);
		EXPECT_EQ(strtoll(t[i].high, NULL, 10), tuned(t[i].name)) TH_LOG("%s", t[i].name);
		EXPECT_EQ(0, pace_set(t[i].name, strcmp(t[i].name, "dram_mb_per_s") ? was : "0"));
	}
	EXPECT_EQ(-EINVAL, pace_set("cap_percent", "0"));
	EXPECT_EQ(-EINVAL, pace_set("mode", "maybe"));
	EXPECT_EQ(0, pace_set("mode", "off"));
	EXPECT_EQ(0, tune_flash(self->blk, "123"));
	EXPECT_EQ(-EINVAL, tune_flash(self->host, "123")) TH_LOG("it is no flash");
}

/* What was set for a drive does not count for the next one under its id. */
TEST_F(pace, new_tier)
{
	char *file = temp_file("new", FLASH_BYTES), path[128], buf[64];
	uint32_t id, again;

	ASSERT_EQ(0, blk_add(self->ctl, file, FLASH_BYTES, &id));
	ASSERT_EQ(0, tune_flash(id, "123"));
	ASSERT_EQ(0, tier_remove_idle(self->ctl, id));
	ASSERT_EQ(0, blk_add(self->ctl, file, FLASH_BYTES, &again));
	EXPECT_EQ(id, again);
	unlink(file);
	free(file);
	snprintf(path, sizeof(path), "/sys/class/misc/hawk/tier%u/flash_mb_per_s", again);
	EXPECT_EQ(0, read_file(path, buf, sizeof(buf)));
	EXPECT_STREQ("0\n", buf);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, again));
}

/* ---- estimates and deadlines ---- */

TEST_F(pace, estimate)
{
	struct hawk_item it[NBLOCKS + 1] = { 0 };
	struct hawk_estimate e = {
		.size = sizeof(e), .flags = HAWK_ESTIMATE_GATHER, .count = NBLOCKS + 1,
		.items = (uintptr_t)it, .tokens_per_s = 1000,
	};
	uint32_t i;

	for (i = 0; i < NBLOCKS; i++)
		it[i] = i % 2 ? key_item(i) : (struct hawk_item){ .lid = LID(i) };
	it[NBLOCKS] = key_item(NBLOCKS + 7);	/* which nobody has */
	ASSERT_EQ(0, tune_flash(self->blk, "100"));
	ASSERT_EQ(0, pace_set("dram_mb_per_s", "1000"));
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_ESTIMATE, &e));
	EXPECT_EQ(NBLOCKS, e.dram + e.flash);
	EXPECT_LE(NBLOCKS - HOST_BLOCKS, e.flash);
	EXPECT_EQ(1, e.missing);
	EXPECT_EQ(NBLOCKS, e.prefix);
	EXPECT_EQ(NBLOCKS, e.split) TH_LOG("a thousand tokens take a second");
	EXPECT_EQ((uint64_t)e.flash * BLOCK, e.flash_bytes);
	EXPECT_LE(e.flash_bytes * 10, e.reload_ns) TH_LOG("100 MB/s is 10 ns for each byte");
	EXPECT_EQ((NBLOCKS + 1) * TOKENS * 1000000ull, e.recompute_ns);
	e.flags = 0;
	e.tokens_per_s = ~0u;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_ESTIMATE, &e));
	EXPECT_GT(NBLOCKS, e.split) TH_LOG("computing is faster than that drive");
	e.count = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_ESTIMATE, &e));
	e.count = HAWK_BATCH_MAX + 1;
	EXPECT_EQ(-E2BIG, dev_call(self->fd, HAWK_IOC_ESTIMATE, &e));
	e.count = 2;
	e.row = 3;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_ESTIMATE, &e));
	e.row = 0;
	e.items = 4096;
	EXPECT_EQ(-EFAULT, dev_call(self->fd, HAWK_IOC_ESTIMATE, &e));
	EXPECT_EQ(0, pace_set("dram_mb_per_s", "0"));
}

/* Who could compute it sooner is told so before anything is read. */
TEST_F(pace, in_time)
{
	struct hawk_item it[STEP] = { 0 };
	struct hawk_batch b = {
		.size = sizeof(b), .flags = HAWK_BATCH_IN_TIME, .count = STEP,
		.items = (uintptr_t)it, .tier = HAWK_TIER_ANY, .deadline_ns = now_ns() + SOON,
	};
	struct call *c = call_new(HAWK_BATCH_IN_TIME, 0);
	struct hawk_tier_info info = { .size = sizeof(info), .tier = self->blk }, after = info;
	uint32_t i;

	for (i = 0; i < STEP; i++)
		it[i].lid = LID(i);	/* on flash */
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &info));
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_GATHER, &c->g)) TH_LOG("no deadline");
	ASSERT_EQ(0, tune_flash(self->blk, "1"));	/* 16 ms for a block */
	EXPECT_EQ(-ETIME, dev_call(self->fd, HAWK_IOC_RELOAD, &b));
	c->g.deadline_ns = now_ns() + SOON;
	EXPECT_EQ(-ETIME, dev_call(self->fd, HAWK_IOC_GATHER, &c->g));
	EXPECT_EQ(2, stats_of(self->fd).refused_late);
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &after));
	EXPECT_EQ(info.read_bytes, after.read_bytes);
	EXPECT_EQ(0, stat_pinned(self->fd));
	c->g.deadline_ns = now_ns() + LONG;
	EXPECT_EQ(0, dev_call(self->fd, HAWK_IOC_GATHER, &c->g));
	EXPECT_EQ(NBLOCKS, good_rows(c));
	b.deadline_ns = now_ns() + LONG;
	EXPECT_EQ(0, dev_call(self->fd, HAWK_IOC_RELOAD, &b));
	EXPECT_EQ(STEP, b.done);
	call_free(c);
}

/* ---- the trace ---- */

static bool trace_start(void)
{
	if (access(TRACEFS "/events/hawk", F_OK))
		return false;
	rmdir(INSTANCE);	/* of a test that was killed */
	return !mkdir(INSTANCE, 0700) && !write_file(INSTANCE "/buffer_size_kb", "1024") &&
	       !write_file(INSTANCE "/events/hawk/hawk_deliver_begin/enable", "1") &&
	       !write_file(INSTANCE "/events/hawk/hawk_deliver_part/enable", "1") &&
	       !write_file(INSTANCE "/events/hawk/hawk_deliver_end/enable", "1");
}

/* What has been traced; to be freed. */
static char *trace_stop(void)
{
	char *buf = malloc(TRACE_BYTES);

	write_file(INSTANCE "/events/hawk/enable", "0");
	if (read_file(INSTANCE "/trace", buf, TRACE_BYTES))
		*buf = 0;
	rmdir(INSTANCE);
	return buf;
}

static unsigned long long number(const char *line, const char *name)
{
	const char *p = strstr(line, name), *end = line + strcspn(line, "\n");

	return p && p < end ? strtoull(p + strlen(name), NULL, 10) : ~0ull;
}

/* The next line with event @name from *@at on, or NULL. */
static const char *next(const char **at, const char *name)
{
	const char *p = strstr(*at, name);

	if (p)
		*at = p + strlen(name);
	return p;
}

/**
 * struct part - bytes that came
 * @at: when
 * @bytes: how many
 * @flash: from there
 */
struct part {
	uint64_t at;
	uint64_t bytes;
	bool flash;
};

static int earlier(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static uint32_t parts_of(const char *trace, struct part *p, uint32_t max)
{
	const char *line;
	uint32_t n = 0;

	while (n < max && (line = next(&trace, "hawk_deliver_part: ")))
		p[n++] = (struct part){
			.at = number(line, " at="), .bytes = number(line, " bytes="),
			.flash = strstr(line, "kind=flash") &&
				 strstr(line, "kind=flash") < line + strcspn(line, "\n"),
		};
	qsort(p, n, sizeof(*p), earlier);
	return n;
}

/* The most that came in any window. */
static uint64_t most_in_a_window(const struct part *p, uint32_t n)
{
	uint64_t sum = 0, most = 0;
	uint32_t i, first = 0;

	for (i = 0; i < n; i++) {
		sum += p[i].bytes;
		while (p[i].at - p[first].at >= WINDOW_NS)
			sum -= p[first++].bytes;
		most = sum > most ? sum : most;
	}
	return most;
}

static void *gather_all(void *arg)
{
	struct call *c = call_new(0, 0);
	uintptr_t good;

	good = !dev_call((intptr_t)arg, HAWK_IOC_GATHER, &c->g) && good_rows(c) == NBLOCKS;
	call_free(c);
	return (void *)good;
}

/* Four at once: all of them get all, and together never more than the cap. */
TEST_F(pace, cap_of_the_link)
{
	static struct part p[CALLERS * NBLOCKS];
	pthread_t t[CALLERS];
	uint64_t sum = 0;
	uint32_t i, n;
	void *good;
	char *trace;

	ASSERT_EQ(0, pace_set("link_mb_per_s", "100"));	/* 700,000 bytes in 10 ms */
	if (!trace_start())
		SKIP(return, "no tracefs");
	for (i = 0; i < CALLERS; i++)
		ASSERT_EQ(0, pthread_create(&t[i], NULL, gather_all, (void *)(intptr_t)self->fd));
	for (i = 0; i < CALLERS; i++) {
		pthread_join(t[i], &good);
		EXPECT_TRUE(good);
	}
	trace = trace_stop();
	n = parts_of(trace, p, CALLERS * NBLOCKS);
	for (i = 0; i < n; i++)
		sum += p[i].bytes;
	EXPECT_EQ((uint64_t)CALLERS * NBLOCKS * BLOCK, sum);
	EXPECT_GE(700000, most_in_a_window(p, n));
	EXPECT_LT(0, stats_of(self->fd).link_waits);
	EXPECT_LT(0, stats_of(self->fd).paced_wait_ns);
	EXPECT_TRUE(all_over(self->fd));
	free(trace);
}

/* Each delivery tells when its streams ended, and each byte is of one. */
TEST_F(pace, ends_of_both_streams)
{
	struct call *c = call_new(0, 0);
	const char *at, *line;
	char *trace;

	if (!trace_start())
		SKIP(return, "no tracefs");
	EXPECT_EQ(0, dev_call(self->fd, HAWK_IOC_GATHER, &c->g));
	trace = trace_stop();
	at = trace;
	line = next(&at, "hawk_deliver_begin: ");
	ASSERT_NE(NULL, line);
	EXPECT_EQ(NBLOCKS * BLOCK, number(line, " dram=") + number(line, " flash="));
	line = next(&at, "hawk_deliver_end: ");
	ASSERT_NE(NULL, line);
	EXPECT_EQ(c->g.tier[self->blk].blocks * BLOCK, number(line, " flash="));
	EXPECT_LT(0, number(line, " dram_ns="));
	EXPECT_LT(0, number(line, " flash_ns="));
	EXPECT_EQ(0, number(line, " ret="));
	EXPECT_GE(c->g.tier[self->blk].ns, number(line, " flash_ns=")) TH_LOG("told later");
	EXPECT_GE(c->g.tier[self->host].ns, number(line, " dram_ns="));
	free(trace);
	call_free(c);
}

/* ---- giving up ---- */

/* A block is more than may pass in a window, so one does in each: all take 1.6 s. */
static int slow_link(void)
{
	return pace_set("cap_percent", "1") ?: pace_set("link_mb_per_s", "1");
}

TEST_F(pace, deadline)
{
	struct call *c = call_new(HAWK_BATCH_URGENT, now_ns() + SOON);

	ASSERT_EQ(0, slow_link());
	EXPECT_EQ(0, dev_call(self->fd, HAWK_IOC_GATHER, &c->g));
	EXPECT_GT(NBLOCKS, c->g.done);
	EXPECT_EQ(c->g.done, good_rows(c));
	EXPECT_EQ(NBLOCKS - c->g.done, rows_with(c, -ETIME));
	EXPECT_TRUE(all_over(self->fd));
	EXPECT_EQ(1, stats_of(self->fd).late);
	call_free(c);
}

/* The delivery that was traced has ended with @ret. */
static bool ended_with(int ret)
{
	char *trace = trace_stop(), want[32];
	const char *at = trace, *line = next(&at, "hawk_deliver_end: ");
	bool found;

	snprintf(want, sizeof(want), " ret=%d\n", ret);
	found = line && strstr(line, want) == line + strcspn(line, "\n") - strlen(want) + 1;
	if (!found)
		fprintf(stderr, "# %.200s\n", line ? line : "no hawk_deliver_end");
	free(trace);
	return found;
}

static int cancel(int fd)
{
	struct hawk_cancel x = { .size = sizeof(x), .user_data = 1 };

	return dev_call(fd, HAWK_IOC_CANCEL, &x);
}

TEST_F(pace, canceled)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 512, .eventfd = -1 };
	struct call *c = call_new(HAWK_BATCH_ASYNC, 0);
	struct pollfd pfd = { .fd = self->fd, .events = POLLIN };

	ASSERT_EQ(0, slow_link());
	if (!trace_start())
		SKIP(return, "no tracefs");
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_RING_SETUP, &rs));
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GATHER, &c->g));
	EXPECT_EQ(0, cancel(self->fd));
	EXPECT_EQ(1, poll(&pfd, 1, 20000));
	EXPECT_TRUE(all_over(self->fd));
	EXPECT_TRUE(ended_with(-ECANCELED));
	EXPECT_EQ(-ENOENT, cancel(self->fd));
	call_free(c);
}

/* Its file is closed, and nobody waits for it any more. */
TEST_F(pace, closed)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 512, .eventfd = -1 };
	struct call *c = call_new(HAWK_BATCH_ASYNC, 0);

	ASSERT_EQ(0, slow_link());
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_RING_SETUP, &rs));
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GATHER, &c->g));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	EXPECT_EQ(0, tuned("deliveries"));
	call_free(c);
}

static void nothing(int sig)
{
}

TEST_F(pace, signal)
{
	struct sigaction sa = { .sa_handler = nothing };
	struct call *c = call_new(0, 0);
	pid_t pid = getpid(), child;
	int ret;

	ASSERT_EQ(0, slow_link());
	sigaction(SIGUSR1, &sa, NULL);
	child = fork();
	if (!child) {
		for (;;) {	/* until it meets the call */
			kill(pid, SIGUSR1);
			poll(NULL, 0, 100);
		}
	}
	ret = dev_call(self->fd, HAWK_IOC_GATHER, &c->g);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_TRUE(!ret || ret == -EINTR);
	if (!ret)
		EXPECT_EQ(c->g.done, good_rows(c));
	EXPECT_TRUE(all_over(self->fd));
	call_free(c);
}

TEST_F(pace, killed)
{
	pid_t child;

	ASSERT_EQ(0, slow_link());
	if (!trace_start())
		SKIP(return, "no tracefs");
	child = fork();
	if (!child) {
		struct call *c = call_new(0, 0);

		dev_call(self->fd, HAWK_IOC_GATHER, &c->g);
		_exit(1);
	}
	while (tuned("deliveries") != 1)
		poll(NULL, 0, 1);
	kill(child, SIGKILL);
	EXPECT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_TRUE(all_over(self->fd));
	EXPECT_TRUE(ended_with(-ECANCELED));
}

/* ---- suspend ---- */

#define SMALL_BLOCK	4096u
#define MANY		1200u	/* on the slow link more than suspend waits for */

/* All of a space of so many blocks: exits with 0 if they came. */
static void gather_many(int fd)
{
	static uint32_t count = MANY, remap[MANY], i;
	static uint8_t *buf;
	static uint64_t lid[MANY];
	static int32_t status[MANY];
	struct hawk_gather g = {
		.size = sizeof(g), .lists = 1, .rows = MANY, .counts = (uintptr_t)&count,
		.lids = (uintptr_t)lid, .remap = (uintptr_t)remap, .status = (uintptr_t)status,
		.buf_bytes = MANY * SMALL_BLOCK,
	};

	buf = mmap(NULL, g.buf_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	g.buf = (uintptr_t)buf;
	for (i = 0; i < MANY; i++)
		lid[i] = LID(i);
	if (dev_call(fd, HAWK_IOC_GATHER, &g))
		_exit(1);
	for (i = 0; i < MANY; i++)
		if (status[i] || !filled(buf + remap[i] * SMALL_BLOCK, SMALL_BLOCK, i))
			_exit(2);
	_exit(0);
}

/* A delivery that waits for the pace keeps nobody awake, and goes on after resume. */
TEST_F(pace, sleeps_meanwhile)
{
	int status = -1;
	pid_t child;

	if (write_file("/sys/power/pm_test", "freezer"))
		SKIP(return, "this kernel has no /sys/power/pm_test");
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	close(self->fd);
	self->fd = filled_space(self->host, self->blk, MANY, SMALL_BLOCK);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, slow_link());
	child = fork();
	if (!child)
		gather_many(self->fd);
	while (tuned("deliveries") != 1 && !waitpid(child, &status, WNOHANG))
		poll(NULL, 0, 1);
	EXPECT_EQ(0, write_file("/sys/power/state", "freeze"));
	EXPECT_EQ(1, tuned("deliveries"));
	EXPECT_EQ(0, pace_set("link_mb_per_s", "0"));
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("step %d", WEXITSTATUS(status));
	EXPECT_EQ(0, write_file("/sys/power/pm_test", "none"));
}

/* ---- submission threads ---- */

/* Their ids, at most @max; the number of them. */
static uint32_t submitters(char path[][64], uint32_t max)
{
	DIR *d = opendir("/proc");
	char comm[64], file[300];
	struct dirent *e;
	uint32_t n = 0;

	while (d && n < max && (e = readdir(d))) {
		snprintf(file, sizeof(file), "/proc/%.20s/comm", e->d_name);
		if (read_file(file, comm, sizeof(comm)) || strncmp(comm, "hawk-submit/", 12))
			continue;
		snprintf(path[n++], 64, "/proc/%.20s/stat", e->d_name);
	}
	if (d)
		closedir(d);
	return n;
}

/* The CPU on which a thread ran last. */
static int cpu_of(const char *path)
{
	char buf[1024], *p;
	int i;

	if (read_file(path, buf, sizeof(buf)))
		return -1;
	p = strrchr(buf, ')');
	for (i = 0; p && i < 37; i++)
		p = strchr(p + 1, ' ');
	return p ? atoi(p) : -1;
}

/* A large batch is submitted by the drive's threads, which keep off the caller's CPU. */
TEST_F(pace, submitters_keep_away)
{
	struct hawk_item it[LARGE] = { 0 };
	uint32_t i, n, round;
	struct hawk_batch b;
	char path[8][64];
	cpu_set_t set;

	n = submitters(path, 8);
	EXPECT_EQ(2, n);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU");
	close(self->fd);
	self->fd = filled_space(self->host, self->blk, 2 * LARGE, LARGE_BLOCK);
	ASSERT_GE(self->fd, 0);
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	for (round = 0; round < 8; round++) {
		for (i = 0; i < LARGE; i++)
			it[i] = (struct hawk_item){ .lid = LID(i + round % 2 * LARGE) };
		ASSERT_EQ(0, batch(self->fd, HAWK_IOC_RELOAD, 0, it, LARGE, &b));
		ASSERT_EQ(LARGE, b.done);
	}
	for (i = 0; i < n; i++)
		EXPECT_NE(1, cpu_of(path[i]));
}

TEST_HARNESS_MAIN
