// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_memcg.c - who pays for the memory of a space: the cgroup of its creator
 *
 * A child enters a memory cgroup and makes a space.  What the tier gives it shows
 * in memory.current; a limit keeps the space small instead of killing anybody.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "hawk_tenant.h"

#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/hawk-test"
#define SLACK		(3 * MIB / 2)	/* page tables, batches, the child itself */

/* A number of the cgroup, or the one after @key in a file of "key number" lines; -1: none. */
static int64_t cg_number(const char *name, const char *key)
{
	char path[128], buf[4096], *at = buf;

	snprintf(path, sizeof(path), CGROUP "/%s", name);
	if (read_file(path, buf, sizeof(buf)))
		return -1;
	if (key) {
		at = strstr(buf, key);
		at = at ? at + strlen(key) : NULL;
	}
	return at ? strtoll(at, NULL, 10) : -1;
}

static int cg_make(void)
{
	rmdir(CGROUP);
	write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	return mkdir(CGROUP, 0700) ? -errno : cg_number("memory.current", NULL) < 0 ? -ENOENT : 0;
}

/* The payer: makes the space, puts blocks, waits.  Exits with the step that failed. */
static void payer(struct tenant *t, uint32_t host, uint32_t blk, uint32_t chunks, int ready,
		  int go)
{
	char c;

	if (write_file(CGROUP "/cgroup.procs", "0") || tenant_start(t, host, 0, blk))
		_exit(1);
	if (tenant_put(t, 0, chunks * CHUNK_BLOCKS))
		_exit(2);
	if (tenant_lost(t, 0, chunks * CHUNK_BLOCKS))
		_exit(3);
	if (write(ready, "r", 1) != 1 || read(go, &c, 1) != 1)
		_exit(4);
	_exit(0);
}

/* Starts the payer and waits until it has what it wanted. */
static pid_t payer_start(struct tenant *t, uint32_t host, uint32_t blk, uint32_t chunks, int *go)
{
	int ready[2], gopipe[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) || pipe2(gopipe, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		payer(t, host, blk, chunks, ready[1], gopipe[0]);
	}
	close(ready[1]);
	close(gopipe[0]);
	*go = gopipe[1];
	/* or it has died, which its exit status tells */
	if (read(ready[0], &c, 1) < 0)
		return -1;
	close(ready[0]);
	return pid;
}

static int payer_end(pid_t pid, int go)
{
	int status = -1;

	if (write(go, "g", 1) != 1)
		perror("payer");
	close(go);
	waitpid(pid, &status, 0);
	return status;
}

TEST_F(reclaim, creator_pays)
{
	struct tenant t = { .fd = dev_open(O_RDWR) };
	int64_t now;
	pid_t pid;
	int go;

	if (cg_make())
		SKIP(return, "no memory cgroups: %s", strerror(errno));
	pid = payer_start(&t, self->host, self->blk, CHUNKS, &go);
	ASSERT_GT(pid, 0);
	now = cg_number("memory.current", NULL);
	EXPECT_GE(now, (int64_t)(CHUNKS * CHUNK)) TH_LOG("%lld", (long long)now);
	EXPECT_EQ(0, payer_end(pid, go));
	/* the payer is dead, its space and its bill are not */
	now = cg_number("memory.current", NULL);
	EXPECT_GE(now, (int64_t)(CHUNKS * CHUNK)) TH_LOG("%lld", (long long)now);
	EXPECT_EQ(CHUNKS, stats_of(t.fd).chunks[self->host]);
	close(t.fd);
	/* per-CPU stocks are given back late, so: nearly all; or the harness ends it */
	while (cg_number("memory.current", NULL) > (int64_t)(2 * CHUNK))
		poll(NULL, 0, 10);
	while (rmdir(CGROUP) && errno == EBUSY)
		poll(NULL, 0, 10);
}

TEST_F(reclaim, limit_keeps_it_small)
{
	struct tenant t = { .fd = dev_open(O_RDWR) };
	char max[32];
	pid_t pid;
	int go;

	if (cg_make())
		SKIP(return, "no memory cgroups: %s", strerror(errno));
	/* room for the space's own tables and 3 of 8 chunks */
	snprintf(max, sizeof(max), "%llu", (unsigned long long)(3 * CHUNK + 2 * SLACK));
	ASSERT_EQ(0, write_file(CGROUP "/memory.max", max));
	pid = payer_start(&t, self->host, self->blk, CHUNKS, &go);
	ASSERT_GT(pid, 0);
	EXPECT_LE(1, stats_of(t.fd).chunks[self->host]);
	EXPECT_GE(4, stats_of(t.fd).chunks[self->host]);
	EXPECT_EQ(CHUNKS * CHUNK_BLOCKS, stats_of(t.fd).blocks) TH_LOG("the others are on flash");
	EXPECT_EQ(0, cg_number("memory.events", "oom_kill "));
	EXPECT_EQ(0, payer_end(pid, go)) TH_LOG("it was told of no error");
	/* with more to spend it grows, after a moment */
	ASSERT_EQ(0, write_file(CGROUP "/memory.max", "max"));
	tenant_map(&t);
	while (stats_of(t.fd).chunks[self->host] < CHUNKS)
		ASSERT_EQ(0, tenant_lost(&t, 0, CHUNKS * CHUNK_BLOCKS));
	tenant_end(&t);
	while (rmdir(CGROUP) && errno == EBUSY)
		poll(NULL, 0, 10);
}

#define RING	(8 * MIB)

/* Opens a ring of a space that is another's.  Exits with the step that failed. */
static void ring_opener(int space, int want, int ready, int go)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = space,
	};
	struct hawk_draft_open o = {
		.size = sizeof(o), .seq = HAWK_DRAFT_NO_SEQ,
		.slots = RING / (2 * BLOCK) * TOKENS,	/* two blocks in a row: space_args() */
	};
	int fd = dev_open(O_RDWR);
	char c;

	if (write_file(CGROUP "/cgroup.procs", "0") || dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at))
		_exit(1);
	if (dev_call(fd, HAWK_IOC_DRAFT_OPEN, &o) != want)
		_exit(2);
	if (write(ready, "r", 1) != 1 || read(go, &c, 1) != 1)
		_exit(3);
	_exit(0);
}

static pid_t ring_start(int space, int want, int *go)
{
	int ready[2], gopipe[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) || pipe2(gopipe, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		ring_opener(space, want, ready[1], gopipe[0]);
	}
	close(ready[1]);
	close(gopipe[0]);
	*go = gopipe[1];
	if (read(ready[0], &c, 1) < 0)
		return -1;
	close(ready[0]);
	return pid;
}

/* A ring is paid for by who opens it, not by the creator of the space. */
TEST_F(reclaim, ring_is_its_openers)
{
	struct tenant t = { .fd = dev_open(O_RDWR) };
	int64_t now, before;
	char max[32];
	pid_t pid;
	int go;

	if (cg_make())
		SKIP(return, "no memory cgroups: %s", strerror(errno));
	ASSERT_EQ(0, tenant_start(&t, self->host, 0, self->blk));
	before = cg_number("memory.current", NULL);
	pid = ring_start(t.fd, 0, &go);
	ASSERT_GT(pid, 0);
	now = cg_number("memory.current", NULL);
	EXPECT_GE(now - before, (int64_t)RING) TH_LOG("%lld", (long long)now);
	EXPECT_EQ(0, payer_end(pid, go));
	while (cg_number("memory.current", NULL) > (int64_t)(RING / 2))
		poll(NULL, 0, 10);
	/* with less than that he gets none, and nobody is killed for it */
	snprintf(max, sizeof(max), "%llu", (unsigned long long)(RING / 2));
	ASSERT_EQ(0, write_file(CGROUP "/memory.max", max));
	pid = ring_start(t.fd, -ENOMEM, &go);
	ASSERT_GT(pid, 0);
	EXPECT_EQ(0, cg_number("memory.events", "oom_kill "));
	EXPECT_EQ(0, payer_end(pid, go));
	tenant_end(&t);
	while (rmdir(CGROUP) && errno == EBUSY)
		poll(NULL, 0, 10);
}

TEST_HARNESS_MAIN
