// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_batch.c - blocks through their life: memory, flash and back, shared, freed
 *
 * The host tier holds a quarter of what flash does, so blocks are evicted; each
 * is compared byte for byte with what was written, wherever it was meanwhile.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_BYTES	(4 * MIB)
#define FLASH_BYTES	(16 * MIB)
#define HOST_BLOCKS	((uint32_t)(HOST_BYTES / BLOCK))

FIXTURE(flash) {
	int fd;
	uint32_t host;
	uint32_t blk;
	uint8_t *win;
	char *path;
};

FIXTURE_VARIANT(flash) {
	bool device;
};

FIXTURE_VARIANT_ADD(flash, file) {
	.device = false,
};

FIXTURE_VARIANT_ADD(flash, device) {
	.device = true,
};

FIXTURE_SETUP(flash)
{
	struct hawk_space_create sc = space_args(2048);

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	if (variant->device && !test_blkdev())
		SKIP(return, "HAWK_TEST_BLKDEV is not set");
	self->path = variant->device ? strdup(test_blkdev()) : temp_file("flash", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->fd = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, host_add(self->fd, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->fd, self->path, FLASH_BYTES, &self->blk));
	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
}

FIXTURE_TEARDOWN(flash)
{
	int ctl = dev_open(O_RDWR);

	munmap(self->win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(ctl, self->blk));
	close(ctl);
	if (!variant->device)
		unlink(self->path);
	free(self->path);
}

/* Blocks @first .. @first + @n - 1, each with its number as pattern and key. */
static int write_blocks(int fd, uint8_t *win, uint32_t first, uint32_t n)
{
	struct hawk_item *it = calloc(n, sizeof(*it));
	struct hawk_batch b;
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		it[i].lid = LID(first + i);
		set_key(&it[i], first + i);
	}
	ret = batch(fd, HAWK_IOC_ALLOC, 0, it, n, &b);
	if (!ret && b.done != n)
		ret = -1000;
	for (i = 0; !ret && i < n; i++)
		fill(frame_at(win, it[i].vt, BLOCK), BLOCK, first + i);
	if (!ret)
		ret = batch(fd, HAWK_IOC_PUT, 0, it, n, &b);
	if (!ret && b.done != n)
		ret = -1001;
	free(it);
	return ret;
}

/* Get, compare, unpin; the number of blocks that were right. */
static int read_blocks(int fd, uint8_t *win, uint32_t first, uint32_t n)
{
	struct hawk_item *it = calloc(n, sizeof(*it));
	struct hawk_batch b;
	uint32_t i, good = 0;

	for (i = 0; i < n; i++)
		it[i] = key_item(first + i);
	if (batch(fd, HAWK_IOC_GET, 0, it, n, &b))
		goto out;
	for (i = 0; i < n; i++) {
		if (it[i].status || it[i].lid != LID(first + i))
			continue;
		good += filled(frame_at(win, it[i].vt, BLOCK), BLOCK, first + i);
		it[i].flags = 0;
		good -= one(fd, HAWK_IOC_UNPIN, 0, &it[i]) != 0;
	}
out:
	free(it);
	return good;
}

TEST_F(flash, evict_and_reload)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = self->blk };
	uint32_t n = 3 * HOST_BLOCKS, i;
	struct hawk_stats st;

	for (i = 0; i < n; i += 64)
		ASSERT_EQ(0, write_blocks(self->fd, self->win, i, 64)) TH_LOG("at %u", i);
	st = stats_of(self->fd);
	EXPECT_EQ(n, st.blocks);
	EXPECT_GE(st.evict_write, n - HOST_BLOCKS);
	EXPECT_EQ(0, st.evict_drop);
	EXPECT_EQ(0, st.pinned);
	for (i = 0; i < n; i += 64)
		ASSERT_EQ(64, read_blocks(self->fd, self->win, i, 64)) TH_LOG("at %u", i);
	st = stats_of(self->fd);
	EXPECT_EQ(0, st.reload_errors);
	EXPECT_GE(st.reloads, n - HOST_BLOCKS);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_TIER_INFO, &info));
	EXPECT_GE(info.write_bytes, st.evict_write * BLOCK);
	EXPECT_GE(info.read_bytes, st.reloads * BLOCK);
	EXPECT_EQ(0, info.io_errors);
}

/* One batch as large as the tier: all reads are in flight together. */
TEST_F(flash, reload_whole_tier)
{
	struct hawk_item *it = calloc(HOST_BLOCKS, sizeof(*it));
	struct hawk_batch b;
	uint32_t i;

	for (i = 0; i < 2 * HOST_BLOCKS; i += 64)
		ASSERT_EQ(0, write_blocks(self->fd, self->win, i, 64));
	for (i = 0; i < HOST_BLOCKS; i++)
		it[i].lid = LID(i);
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_GET, 0, it, HOST_BLOCKS, &b));
	EXPECT_EQ(HOST_BLOCKS, b.done);
	EXPECT_EQ(HOST_BLOCKS, b.prefix);
	for (i = 0; i < HOST_BLOCKS; i++)
		EXPECT_TRUE(filled(frame_at(self->win, it[i].vt, BLOCK), BLOCK, i));
	/* every frame is pinned now: there is no room for another block */
	EXPECT_EQ(-EDQUOT, lid_call(self->fd, HAWK_IOC_ALLOC, LID(5000)));
	EXPECT_EQ(-EDQUOT, lid_call(self->fd, HAWK_IOC_GET, LID(HOST_BLOCKS)));
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_UNPIN, 0, it, HOST_BLOCKS, &b));
	EXPECT_EQ(HOST_BLOCKS, b.done);
	EXPECT_EQ(0, stat_pinned(self->fd));
	free(it);
}

TEST_F(flash, nowait_does_no_io)
{
	struct hawk_stats before, after;
	struct hawk_item it;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 0, HOST_BLOCKS));
	before = stats_of(self->fd);
	it = (struct hawk_item){ .lid = LID(5000) };
	EXPECT_EQ(-EAGAIN, one(self->fd, HAWK_IOC_ALLOC, HAWK_BATCH_NOWAIT, &it));
	ASSERT_EQ(0, write_blocks(self->fd, self->win, HOST_BLOCKS, 64));
	before = stats_of(self->fd);
	it = key_item(0);
	EXPECT_EQ(-EAGAIN, one(self->fd, HAWK_IOC_GET, HAWK_BATCH_NOWAIT, &it));
	EXPECT_EQ(-EAGAIN, lid_call(self->fd, HAWK_IOC_PIN, LID(0))) TH_LOG("on flash");
	after = stats_of(self->fd);
	EXPECT_EQ(before.reloads, after.reloads);
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_RELOAD, LID(0)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(0)));
}

/* The bytes on flash change behind the device's back: an error, never data. */
TEST_F(flash, corruption_is_an_error)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = self->blk };
	uint32_t n = 2 * HOST_BLOCKS, i, good = 0, bad = 0;
	void *junk = aligned_alloc(4096, BLOCK);
	struct hawk_item it;
	uint64_t off;
	int f;

	for (i = 0; i < n; i += 64)
		ASSERT_EQ(0, write_blocks(self->fd, self->win, i, 64));
	f = open(self->path, O_WRONLY | O_DIRECT);
	ASSERT_GE(f, 0);
	memset(junk, 0x5a, BLOCK);
	for (off = 0; off < FLASH_BYTES; off += BLOCK)
		ASSERT_EQ(BLOCK, pwrite(f, junk, BLOCK, off));
	close(f);
	for (i = 0; i < n; i++) {
		it = key_item(i);
		switch (one(self->fd, HAWK_IOC_GET, 0, &it)) {
		case 0:
			EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, i));
			good++;
			break;
		case -EIO:
			EXPECT_EQ(0, it.vt);
			EXPECT_EQ(-ENOENT, one(self->fd, HAWK_IOC_LOOKUP, 0, &it));
			bad++;
			break;
		default:
			EXPECT_EQ(0, it.status) TH_LOG("block %u", i);
		}
	}
	EXPECT_EQ(n, good + bad);
	EXPECT_GE(bad, HOST_BLOCKS);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_TIER_INFO, &info));
	EXPECT_EQ(bad, info.io_errors);
	EXPECT_EQ(bad, stats_of(self->fd).reload_errors);
	free(junk);
}

/* GET with PREFIX stops at the first block that is not there. */
TEST_F(flash, prefix)
{
	struct hawk_item it[8];
	struct hawk_batch b;
	uint32_t i;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 0, 8));
	for (i = 8; i < 2 * HOST_BLOCKS; i += 8)
		ASSERT_EQ(0, write_blocks(self->fd, self->win, i, 8));
	for (i = 0; i < 8; i++)
		it[i] = key_item(i == 5 ? 99999 : i);
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_GET, HAWK_BATCH_PREFIX, it, 8, &b));
	EXPECT_EQ(5, b.prefix);
	EXPECT_EQ(5, b.done);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(i < 5 ? 0 : i == 5 ? -ENOENT : -ECANCELED, it[i].status);
	EXPECT_EQ(5, stat_pinned(self->fd));
	/* without PREFIX all that is there is had */
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_GET, 0, it, 8, &b));
	EXPECT_EQ(5, b.prefix);
	EXPECT_EQ(7, b.done);
}

static int write_tunable(uint32_t tier, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/misc/hawk/tier%u/writeback_permille", tier);
	return write_file(path, value);
}

/* Cold blocks get their flash copy before anybody needs their frame. */
TEST_F(flash, writeback_ahead)
{
	struct hawk_stats st;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 0, 16));
	EXPECT_EQ(0, stats_of(self->fd).flash);
	EXPECT_EQ(-EINVAL, write_tunable(self->host, "1025"));
	EXPECT_EQ(-EINVAL, write_tunable(self->host, "x"));
	EXPECT_EQ(-EINVAL, write_tunable(self->blk, "1"));
	ASSERT_EQ(0, write_tunable(self->host, "1024"));
	while (stats_of(self->fd).flash < 16)
		poll(NULL, 0, 20);	/* the harness ends a test that waits in vain */
	ASSERT_EQ(0, write_tunable(self->host, "0"));
	st = stats_of(self->fd);
	EXPECT_EQ(16, st.resident) TH_LOG("they stay where they are");
	EXPECT_EQ(16, read_blocks(self->fd, self->win, 0, 16));
	EXPECT_EQ(0, stats_of(self->fd).reloads);
}

/* A deadline that has passed: nothing is waited for. */
TEST_F(flash, deadline)
{
	struct hawk_item it;
	struct hawk_batch b = {
		.size = sizeof(b), .count = 1, .items = (uintptr_t)&it, .deadline_ns = 1,
		.tier = HAWK_TIER_ANY,
	};

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 0, HOST_BLOCKS));
	ASSERT_EQ(0, write_blocks(self->fd, self->win, HOST_BLOCKS, 64));
	it = key_item(0);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GET, &b));
	EXPECT_EQ(-ETIME, it.status);
	EXPECT_EQ(0, b.done);
	EXPECT_EQ(0, stat_pinned(self->fd));
	/* its read goes on and ends; with time enough the block is had */
	b.deadline_ns = now_ns() + 60000000000ull;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GET, &b));
	EXPECT_EQ(0, it.status);
}

TEST_F(flash, fork_and_unshare)
{
	struct hawk_item a = { .lid = LID(0) }, fork_it = { .lid = LID(0), .arg = LID(100) };
	struct hawk_item b = { .lid = LID(100) };
	uint64_t shared;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_FORK, 0, &fork_it));
	EXPECT_EQ(-EEXIST, one(self->fd, HAWK_IOC_FORK, 0, &fork_it));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_TRANSLATE, 0, &a));
	shared = a.vt;
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &b));
	EXPECT_EQ(shared, b.vt);

	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_TRANSLATE, LID(0)));
	b.vt = 0;
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_UNSHARE, 0, &b));
	EXPECT_NE(shared, b.vt);
	EXPECT_TRUE(filled(frame_at(self->win, b.vt, BLOCK), BLOCK, 0)) TH_LOG("copied");
	fill(frame_at(self->win, b.vt, BLOCK), BLOCK, 77);
	EXPECT_TRUE(filled(frame_at(self->win, shared, BLOCK), BLOCK, 0)) TH_LOG("untouched");
	b.vt = 0;
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &b));
	EXPECT_EQ(0, stat_pinned(self->fd));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(100)));
	EXPECT_EQ(0, stats_of(self->fd).blocks);
}

/* Fills the space and is killed; the name keeps it. */
static void die_filling(const char *name, uint32_t host, uint32_t blk)
{
	struct hawk_space_create sc = space_args(2048);
	int fd = dev_open(O_RDWR);
	uint8_t *win;

	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, name);
	sc.quota[host].max_bytes = HOST_BYTES;
	sc.quota[blk].max_bytes = FLASH_BYTES;
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc))
		_exit(1);
	win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ | PROT_WRITE);
	if (write_blocks(fd, win, 0, HOST_BLOCKS / 2) ||
	    write_blocks(fd, win, HOST_BLOCKS / 2, HOST_BLOCKS / 2) ||
	    write_blocks(fd, win, HOST_BLOCKS, HOST_BLOCKS / 2))
		_exit(2);
	/* pins, a lease, blocks half made: all of this dies with it */
	if (lid_call(fd, HAWK_IOC_GET, LID(0)) || lid_call(fd, HAWK_IOC_ALLOC, LID(5000)))
		_exit(3);
	raise(SIGKILL);
}

TEST_F(flash, creator_killed)
{
	uint32_t n = 3 * HOST_BLOCKS / 2;
	int fd = dev_open(O_RDWR), status;
	struct hawk_stats st;
	uint8_t *win;
	pid_t pid;

	pid = fork();
	if (!pid)
		die_filling("test-batch", self->host, self->blk);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status)) TH_LOG("it failed at %d", WEXITSTATUS(status));
	ASSERT_EQ(0, space_attach(fd, "test-batch"));
	st = stats_of(fd);
	EXPECT_EQ(0, st.pinned);
	EXPECT_EQ(n, st.blocks);
	EXPECT_LT(0, st.flash);
	win = map_area(fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	EXPECT_EQ(HOST_BLOCKS / 2, read_blocks(fd, win, 0, HOST_BLOCKS / 2));
	EXPECT_EQ(HOST_BLOCKS / 2, read_blocks(fd, win, HOST_BLOCKS / 2, HOST_BLOCKS / 2));
	EXPECT_EQ(HOST_BLOCKS / 2, read_blocks(fd, win, HOST_BLOCKS, HOST_BLOCKS / 2));
	EXPECT_LT(0, stats_of(fd).reloads);
	EXPECT_EQ(0, space_destroy(fd, "test-batch"));
	munmap(win, HOST_BYTES);
	close(fd);
}

/* A second copy of a key is refused, and no pin is left of what failed. */
TEST_F(flash, whole_batches)
{
	struct hawk_item it[64];
	struct hawk_batch b;
	uint32_t i;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 0, 64));
	for (i = 0; i < 64; i++)
		it[i] = (struct hawk_item){ .lid = LID(32 + i) };
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_ALLOC, 0, it, 64, &b));
	EXPECT_EQ(32, b.done);
	EXPECT_EQ(32, stat_pinned(self->fd));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(i < 32 ? -EEXIST : 0, it[i].status);
	/* unpinning a FILLING block gives it up */
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_UNPIN, 0, it + 32, 32, &b));
	EXPECT_EQ(32, b.done);
	EXPECT_EQ(64, stats_of(self->fd).blocks);
	for (i = 0; i < 64; i++)
		it[i] = (struct hawk_item){ .lid = LID(i) };
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_FREE, 0, it, 64, &b));
	EXPECT_EQ(64, b.done);
	EXPECT_EQ(0, stats_of(self->fd).blocks);
}

TEST_HARNESS_MAIN
