// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_promote.c - lazy promotion: while prefill runs blocks come to memory, at no one's cost
 *
 * A space has more blocks than its host tier; then half of those in memory are freed, so
 * that there is room for what was read from flash.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "hawk_tiers.h"

#define COLD		(NBLOCKS - HOST_BLOCKS)	/* the first ones are on flash */
#define PHASE_NS	(30 * 1000000000ull)

static int phase(int fd, uint64_t ns, uint32_t *pending)
{
	struct hawk_phase p = {
		.size = sizeof(p), .flags = ns ? HAWK_PHASE_PREFILL : 0,
		.until_ns = ns ? now_ns() + ns : 0,
	};
	int ret = dev_call(fd, HAWK_IOC_PHASE, &p);

	if (pending)
		*pending = p.pending;
	return ret;
}

FIXTURE(promote) {
	int ctl;
	int fd;
	uint32_t host;
	uint32_t blk;
	char *path;
	uint8_t *win;
};

FIXTURE_SETUP(promote)
{
	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("promote", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	self->fd = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(promote)
{
	if (self->win)
		munmap(self->win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/* NBLOCKS blocks, each filled with its number; the last @gone are freed again. */
static int make_space(FIXTURE_DATA(promote) *self, uint32_t gone)
{
	struct hawk_space_create sc = space_args(4 * NBLOCKS);
	uint32_t i;
	int ret;

	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ret = dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc);
	if (ret)
		return ret;
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
			     PROT_READ | PROT_WRITE);
	for (i = 0; self->win && i < NBLOCKS; i++) {
		struct hawk_item it = { .lid = LID(i) };

		ret = one(self->fd, HAWK_IOC_ALLOC, 0, &it);
		if (ret)
			return ret;
		fill(frame_at(self->win, it.vt, BLOCK), BLOCK, i);
		it.vt = 0;
		ret = one(self->fd, HAWK_IOC_PUT, 0, &it);
		if (ret)
			return ret;
	}
	for (i = NBLOCKS - gone; i < NBLOCKS; i++) {
		ret = lid_call(self->fd, HAWK_IOC_FREE, LID(i));
		if (ret)
			return ret;
	}
	return self->win ? 0 : -ENOMEM;
}

/* Gathers the first @n blocks.  Return: how many came from flash, or a negative errno. */
static int gather(FIXTURE_DATA(promote) *self, uint32_t n)
{
	static uint64_t lid[NBLOCKS];
	static uint32_t remap[NBLOCKS];
	static int32_t status[NBLOCKS];
	void *buf = mmap(NULL, n * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct hawk_gather g = {
		.size = sizeof(g), .lists = 1, .rows = n, .counts = (uintptr_t)&n,
		.lids = (uintptr_t)lid, .remap = (uintptr_t)remap, .status = (uintptr_t)status,
		.buf = (uintptr_t)buf, .buf_bytes = n * BLOCK,
	};
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		lid[i] = LID(i);
	ret = dev_call(self->fd, HAWK_IOC_GATHER, &g);
	munmap(buf, n * BLOCK);
	return ret ? ret : (int)g.tier[self->blk].blocks;
}

/* Of the first @n blocks those that lie in memory. */
static uint32_t in_memory(FIXTURE_DATA(promote) *self, uint32_t n)
{
	uint32_t i, sum = 0;

	for (i = 0; i < n; i++) {
		struct hawk_item it = { .lid = LID(i) };

		sum += !one(self->fd, HAWK_IOC_TRANSLATE, 0, &it) &&
		       HAWK_VT_TIER(it.vt) == self->host;
	}
	return sum;
}

/* Until nothing waits to be promoted any more. */
static bool all_done(FIXTURE_DATA(promote) *self, uint64_t sum)
{
	uint32_t i;

	for (i = 0; i < 2000; i++) {
		struct hawk_stats st = stats_of(self->fd);

		if (st.promoted + st.promote_canceled >= sum)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

TEST_F(promote, comes_while_prefill_runs)
{
	struct hawk_tier_info before = { .size = sizeof(before) }, after = before;
	uint32_t pending, i;
	int cold;

	ASSERT_EQ(0, make_space(self, HOST_BLOCKS / 2));
	cold = gather(self, NBLOCKS - HOST_BLOCKS / 2);
	ASSERT_LT(0, cold);
	EXPECT_EQ(0, stats_of(self->fd).promoted) TH_LOG("nobody has said that prefill runs");
	ASSERT_EQ(0, phase(self->fd, PHASE_NS, &pending));
	EXPECT_EQ(cold, pending);
	ASSERT_TRUE(all_done(self, cold));
	EXPECT_LT(0, stats_of(self->fd).promoted);
	EXPECT_EQ(cold, stats_of(self->fd).promoted + stats_of(self->fd).promote_canceled);
	EXPECT_LE(stats_of(self->fd).promoted, in_memory(self, COLD));
	EXPECT_EQ(0, phase(self->fd, 0, &pending));
	EXPECT_EQ(0, pending);
	/* what came is what was written, and is read from there */
	before.tier = after.tier = self->blk;
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &before));
	for (i = 0; i < COLD; i++) {
		struct hawk_item it = { .lid = LID(i) };

		if (one(self->fd, HAWK_IOC_PIN, 0, &it))
			continue;	/* was not promoted */
		EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, i));
		EXPECT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &it));
	}
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &after));
	EXPECT_EQ(before.read_bytes, after.read_bytes);
}

TEST_F(promote, not_without_a_phase)
{
	uint32_t pending;
	int cold;

	ASSERT_EQ(0, make_space(self, HOST_BLOCKS / 2));
	ASSERT_EQ(0, phase(self->fd, PHASE_NS, NULL));
	ASSERT_EQ(0, phase(self->fd, 0, NULL));
	cold = gather(self, COLD);
	ASSERT_LT(0, cold);
	/* a phase that has ended by itself is none */
	ASSERT_EQ(0, phase(self->fd, 1, NULL));
	poll(NULL, 0, 100);
	ASSERT_EQ(0, phase(self->fd, 0, &pending));
	EXPECT_EQ(cold, pending);
	EXPECT_EQ(0, stats_of(self->fd).promoted);
}

/* All frames are pinned: it is given up, and who needs one is not told to wait. */
TEST_F(promote, no_room)
{
	struct hawk_item it = { .lid = LID(NBLOCKS) };
	uint32_t i;
	int cold;

	ASSERT_EQ(0, make_space(self, 0));
	for (i = COLD; i < NBLOCKS; i++) {
		struct hawk_item pin = { .lid = LID(i) };

		ASSERT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &pin));
	}
	cold = gather(self, COLD);
	ASSERT_LT(0, cold);
	ASSERT_EQ(0, phase(self->fd, PHASE_NS, NULL));
	ASSERT_TRUE(all_done(self, cold));
	EXPECT_EQ(0, stats_of(self->fd).promoted);
	EXPECT_EQ(cold, stats_of(self->fd).promote_canceled);
	EXPECT_EQ(-EDQUOT, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
}

TEST_F(promote, refusals)
{
	struct hawk_phase p = { .size = sizeof(p), .until_ns = now_ns() + 1000000000 };

	ASSERT_EQ(0, make_space(self, 0));
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_PHASE, &p)) TH_LOG("a time, no phase");
	EXPECT_EQ(-EINVAL, phase(self->fd, 2 * HAWK_PHASE_MAX_NS, NULL));
	EXPECT_EQ(-ENXIO, phase(self->ctl, PHASE_NS, NULL));
	EXPECT_EQ(0, phase(self->fd, HAWK_PHASE_MAX_NS / 2, NULL));
}

/* Its runtime dies in the middle of it, and its space with it. */
TEST_F(promote, killed)
{
	int go[2];
	pid_t child;
	char c;

	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		close(self->ctl);
		if (make_space(self, HOST_BLOCKS / 2) || gather(self, COLD) <= 0 ||
		    phase(self->fd, PHASE_NS, NULL))
			_exit(1);
		if (write(go[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(go[1]);
	close(self->fd);	/* the child's is the last */
	EXPECT_EQ(1, read(go[0], &c, 1));
	kill(child, SIGKILL);
	EXPECT_EQ(child, waitpid(child, NULL, 0));
	close(go[0]);
	self->fd = dev_open(O_RDWR);
}

TEST_HARNESS_MAIN
