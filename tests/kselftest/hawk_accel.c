// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_accel.c - a tier in the memory of a device, with its faults
 *
 * The device is hawk_accel.ko.  A space has 4 MiB of it and a file as flash, so
 * blocks go through the device's engines both ways.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "hawk_blocks.h"
#include "hawk_models.h"

#define ACCEL_MIB	4u
#define ACCEL_BYTES	(ACCEL_MIB * MIB)
#define FLASH_BYTES	(16 * MIB)
#define ACCEL_BLOCKS	((uint32_t)(ACCEL_BYTES / BLOCK))
#define MORE		64u		/* blocks beyond those that the device holds */
#define LONG		(20 * 1000000000ull)
#define STUCK_NS	1000000000ull	/* until a call gives up: long enough for it to have begun */

#define PARAMS		"/sys/module/hawk_accel/parameters/"

static int param_set(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMS "%s", name);
	return write_file(path, value);
}

static unsigned long param_get(const char *name)
{
	char path[128], buf[32];

	snprintf(path, sizeof(path), PARAMS "%s", name);
	return read_file(path, buf, sizeof(buf)) ? ~0ul : strtoul(buf, NULL, 0);
}

/* A block is more than may pass in a window of 10 ms, so one does in each. */
static int link_slow(void)
{
	return pace_set("cap_percent", "1") ?: pace_set("link_mb_per_s", "1");
}

static int link_fast(void)
{
	return pace_set("link_mb_per_s", "0") ?: pace_set("cap_percent", "70");
}

/* The tier of a model, or -1. */
static int model_tier(int fd)
{
	uint32_t t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_tier_info info = { .size = sizeof(info), .tier = t };

		if (!dev_call(fd, HAWK_IOC_TIER_INFO, &info) && info.kind == HAWK_TIER_MODEL)
			return t;
	}
	return -1;
}

FIXTURE(accel) {
	int ctl;
	int fd;
	int tier;
	uint32_t blk;
	char *path;
	uint8_t *win;
};

FIXTURE_SETUP(accel)
{
	struct hawk_space_create sc = space_args(8 * ACCEL_BLOCKS);
	char params[64];

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	snprintf(params, sizeof(params), "size_mib=%u", ACCEL_MIB);
	if (model_load("accel", params))
		SKIP(return, "no hawk_accel.ko in HAWK_TEST_MODELS");
	self->path = temp_file("accel", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	self->tier = model_tier(self->ctl);
	ASSERT_GE(self->tier, 0);
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	self->fd = dev_open(O_RDWR);
	sc.quota[self->tier].max_bytes = ACCEL_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->tier), ACCEL_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
}

/* Whatever a test did to the device, its module goes. */
FIXTURE_TEARDOWN(accel)
{
	param_set("reset", "1");
	EXPECT_EQ(0, link_fast());
	munmap(self->win, ACCEL_BYTES);
	close(self->fd);
	if (self->tier >= 0)
		EXPECT_EQ(0, tier_remove_idle(self->ctl, self->tier));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
	while (model_unload("hawk_accel") == -EAGAIN)
		poll(NULL, 0, 10);
	unlink(self->path);
	free(self->path);
}

static uint64_t io_errors(int fd, uint32_t tier)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = tier };

	return dev_call(fd, HAWK_IOC_TIER_INFO, &info) ? ~0ull : info.io_errors;
}

/* ---- the bytes ---- */

TEST_F(accel, to_flash_and_back)
{
	uint32_t i, n = ACCEL_BLOCKS + MORE;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, check_block(self->fd, self->win, i)) TH_LOG("block %u", i);
	EXPECT_GE(param_get("transfers"), 2 * MORE);
	EXPECT_EQ(0, io_errors(self->ctl, self->tier));
	EXPECT_EQ(0, io_errors(self->ctl, self->blk));
}

TEST_F(accel, private_copy)
{
	struct hawk_item it = { .lid = LID(0), .arg = LID(1) };

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_FORK, 0, &it));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(1)));
	it = (struct hawk_item){ .lid = LID(1) };
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_UNSHARE, 0, &it));
	EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, 0));
	EXPECT_EQ(1, param_get("transfers") / 2) TH_LOG("out of one frame and into the other");
}

/* How long it takes is the device's: told, not tested. */
TEST_F(accel, slow_device)
{
	uint64_t start, fast, slow;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, ACCEL_BLOCKS));
	start = now_ns();
	ASSERT_EQ(0, make_blocks(self->fd, self->win, ACCEL_BLOCKS, MORE));
	fast = now_ns() - start;
	ASSERT_EQ(0, param_set("latency_us", "20000"));
	ASSERT_EQ(0, param_set("bandwidth", "1"));
	start = now_ns();
	ASSERT_EQ(0, make_blocks(self->fd, self->win, ACCEL_BLOCKS + MORE, MORE));
	slow = now_ns() - start;
	TH_LOG("%u evictions: %llu us, with 20 ms and 1 MB/s per engine: %llu us", MORE,
	       (unsigned long long)fast / 1000, (unsigned long long)slow / 1000);
	EXPECT_EQ(0, check_block(self->fd, self->win, 0));
}

/* ---- the link to it ---- */

static int reload(int fd, uint32_t n, uint64_t wait_ns, struct hawk_item *it, struct hawk_batch *b)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		it[i] = (struct hawk_item){ .lid = LID(i) };
	*b = (struct hawk_batch){
		.size = sizeof(*b), .flags = HAWK_BATCH_URGENT, .count = n, .items = (uintptr_t)it,
		.tier = HAWK_TIER_ANY, .deadline_ns = wait_ns ? now_ns() + wait_ns : 0,
	};
	return dev_call(fd, HAWK_IOC_RELOAD, b);
}

/* The first MORE blocks are on flash, and there are free frames for them. */
static int make_room(int fd, uint8_t *win)
{
	int ret = make_blocks(fd, win, 0, ACCEL_BLOCKS + MORE);
	uint32_t i;

	for (i = ACCEL_BLOCKS; !ret && i < ACCEL_BLOCKS + MORE; i++)
		ret = lid_call(fd, HAWK_IOC_FREE, LID(i));
	return ret;
}

/* Reloads into its memory wait for the link, and what did not begin stays on flash. */
TEST_F(accel, reloads_wait_for_the_link)
{
	struct hawk_item it[MORE / 2];
	struct hawk_batch b;
	uint32_t i, late = 0;

	ASSERT_EQ(0, make_room(self->fd, self->win));
	ASSERT_EQ(0, link_slow());
	EXPECT_EQ(0, reload(self->fd, MORE / 2, 100000000, it, &b));
	for (i = 0; i < MORE / 2; i++) {
		EXPECT_TRUE(!it[i].status || it[i].status == -ETIME) TH_LOG("%d", it[i].status);
		late += it[i].status == -ETIME;
	}
	EXPECT_EQ(MORE / 2, b.done + late);
	EXPECT_EQ(0, reload(self->fd, MORE / 2, 0, it, &b));
	EXPECT_EQ(MORE / 2, b.done);
	EXPECT_LT(0, stats_of(self->fd).link_waits);
	EXPECT_EQ(0, stats_of(self->fd).reload_errors);
	for (i = 0; i < MORE / 2; i++)
		EXPECT_EQ(0, check_block(self->fd, self->win, i)) TH_LOG("block %u", i);
}

static void nothing(int sig)
{
}

/* A signal ends the wait, and a batch that had begun tells what it did. */
TEST_F(accel, signal_while_it_waits)
{
	struct sigaction sa = { .sa_handler = nothing };
	struct hawk_item it[MORE / 2];
	pid_t pid = getpid(), child;
	struct hawk_batch b;
	uint32_t i;
	int ret;

	ASSERT_EQ(0, make_room(self->fd, self->win));
	ASSERT_EQ(0, link_slow());
	sigaction(SIGUSR1, &sa, NULL);
	child = fork();
	if (!child) {
		for (;;) {	/* until it meets the call */
			kill(pid, SIGUSR1);
			poll(NULL, 0, 100);
		}
	}
	ret = reload(self->fd, MORE / 2, 0, it, &b);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_TRUE(!ret || ret == -EINTR);
	for (i = 0; !ret && i < MORE / 2; i++)
		EXPECT_TRUE(!it[i].status || it[i].status == -ECANCELED);
	ASSERT_EQ(0, link_fast());
	EXPECT_EQ(0, reload(self->fd, MORE / 2, 0, it, &b));
	EXPECT_EQ(MORE / 2, b.done);
}

TEST_F(accel, export_to_another_device)
{
	struct hawk_export x;
	uint8_t buf[BLOCK];
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 2));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 2, 0, &x));
	EXPECT_EQ(self->tier, x.tier);
	imp = imp_attach(x.fd, HAWK_IMP_DYNAMIC);
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	ASSERT_EQ(0, imp_rw(imp, BLOCK, buf, BLOCK, 0));
	EXPECT_TRUE(filled(buf, BLOCK, 1));
	close(imp);
	close(x.fd);
}

TEST_F(accel, module_stays_as_long_as_its_tier)
{
	EXPECT_EQ(-EAGAIN, model_unload("hawk_accel"));
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->tier));
	EXPECT_EQ(-EAGAIN, model_unload("hawk"));
}

/* ---- faults ---- */

/* The block is a miss, counted; nobody else's is touched. */
TEST_F(accel, ecc_error)
{
	struct hawk_item it = { .lid = LID(3) };
	struct hawk_frame_info fi = { .size = sizeof(fi), .tier = self->tier };
	uint32_t i, n = ACCEL_BLOCKS + MORE;
	char page[32];
	int ret;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, ACCEL_BLOCKS));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_TRANSLATE, 0, &it));
	fi.frame = HAWK_VT_FRAME(it.vt);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &fi));
	snprintf(page, sizeof(page), "%llu", (unsigned long long)(fi.offset / 4096 + 1));
	ASSERT_EQ(0, param_set("ecc_page", page));
	ASSERT_EQ(0, make_blocks(self->fd, self->win, ACCEL_BLOCKS, MORE));
	ASSERT_EQ(0, param_set("ecc_page", "-1"));
	EXPECT_GE(param_get("ecc_errors"), 1);
	EXPECT_EQ(param_get("ecc_errors"), io_errors(self->ctl, self->tier));
	EXPECT_EQ(0, io_errors(self->ctl, self->blk)) TH_LOG("it is not the drive's fault");
	EXPECT_EQ(-ENOENT, check_block(self->fd, self->win, 3));
	for (i = 0; i < n; i++) {
		ret = check_block(self->fd, self->win, i);
		EXPECT_TRUE(!ret || ret == -ENOENT) TH_LOG("block %u: %d", i, ret);
	}
}

/* The batch ends by its deadline, the transfer by a reset. */
TEST_F(accel, stuck_engine)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_batch b = {
		.size = sizeof(b), .count = 1, .items = (uintptr_t)&it, .tier = HAWK_TIER_ANY,
	};
	int ret;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, ACCEL_BLOCKS + MORE));
	ASSERT_EQ(0, param_set("stuck", "Y"));
	b.deadline_ns = now_ns() + STUCK_NS;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GET, &b));
	EXPECT_EQ(-ETIME, it.status);
	ASSERT_EQ(0, param_set("reset", "1"));
	ret = check_block(self->fd, self->win, 0);
	EXPECT_TRUE(!ret || ret == -ENOENT || ret == -EIO) TH_LOG("%d", ret);
	/* it works again: a block may be lost, none is wrong */
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 2000, MORE));
	EXPECT_EQ(0, check_block(self->fd, self->win, 2000 + MORE - 1));
}

/* A private copy that is not made in time, or not at all: nobody can take it for good. */
TEST_F(accel, stuck_copy)
{
	struct hawk_item it = { .lid = LID(0), .arg = LID(1) };
	struct hawk_batch b = {
		.size = sizeof(b), .count = 1, .items = (uintptr_t)&it, .tier = HAWK_TIER_ANY,
	};

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_FORK, 0, &it));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(1)));
	ASSERT_EQ(0, param_set("stuck", "Y"));
	it = (struct hawk_item){ .lid = LID(1) };
	b.deadline_ns = now_ns() + STUCK_NS;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_UNSHARE, &b));
	EXPECT_EQ(-ETIME, it.status);
	EXPECT_NE(0, lid_call(self->fd, HAWK_IOC_PUT, LID(1))) TH_LOG("its pin went with it");
	ASSERT_EQ(0, param_set("reset", "1"));
	while (lid_call(self->fd, HAWK_IOC_TRANSLATE, LID(1)) != -ENOENT)
		poll(NULL, 0, 10);
	EXPECT_EQ(-ENOENT, lid_call(self->fd, HAWK_IOC_UNPIN, LID(1)));
	EXPECT_EQ(0, check_block(self->fd, self->win, 0)) TH_LOG("the other LID's is as it was");
}

/* ---- gathered ---- */

#define ROWS	8u

/* Blocks 0 .. ROWS - 1 to @buf; @c: results */
static int gather(int fd, uint8_t *buf, uint64_t deadline_ns, struct hawk_gather *g,
		  uint32_t *remap, int32_t *status)
{
	static const uint32_t count = ROWS;
	uint64_t lid[ROWS];
	uint32_t i;

	for (i = 0; i < ROWS; i++)
		lid[i] = LID(i);
	*g = (struct hawk_gather){
		.size = sizeof(*g), .lists = 1, .rows = ROWS, .counts = (uintptr_t)&count,
		.lids = (uintptr_t)lid, .remap = (uintptr_t)remap,
		.status = (uintptr_t)status, .buf = (uintptr_t)buf,
		.buf_bytes = ROWS * BLOCK, .deadline_ns = deadline_ns,
	};
	return dev_call(fd, HAWK_IOC_GATHER, g);
}

/* By the device's engines, neighbours at once; a bad page costs its own row only. */
TEST_F(accel, gathered)
{
	struct hawk_frame_info fi = { .size = sizeof(fi), .tier = self->tier };
	unsigned long before = param_get("transfers");
	struct hawk_item it = { .lid = LID(3) };
	uint32_t remap[ROWS], i;
	int32_t status[ROWS];
	struct hawk_gather g;
	uint8_t *buf = mmap(NULL, ROWS * BLOCK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char page[32];

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, ROWS));
	ASSERT_EQ(0, gather(self->fd, buf, 0, &g, remap, status));
	EXPECT_EQ(ROWS, g.done);
	EXPECT_EQ(ROWS, g.tier[self->tier].blocks);
	EXPECT_EQ(g.tier[self->tier].transfers, param_get("transfers") - before);
	for (i = 0; i < ROWS; i++)
		EXPECT_TRUE(filled(buf + remap[i] * BLOCK, BLOCK, i)) TH_LOG("row %u", i);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_TRANSLATE, 0, &it));
	fi.frame = HAWK_VT_FRAME(it.vt);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &fi));
	snprintf(page, sizeof(page), "%llu", (unsigned long long)(fi.offset / 4096 + 1));
	ASSERT_EQ(0, param_set("ecc_page", page));
	memset(buf, 0, ROWS * BLOCK);
	ASSERT_EQ(0, gather(self->fd, buf, 0, &g, remap, status));
	ASSERT_EQ(0, param_set("ecc_page", "-1"));
	EXPECT_EQ(ROWS - 1, g.done);
	EXPECT_EQ(-EIO, status[3]);
	EXPECT_EQ(HAWK_GATHER_NONE, remap[3]);
	EXPECT_EQ(1, io_errors(self->ctl, self->tier));
	for (i = 0; i < ROWS; i++)
		EXPECT_TRUE(i == 3 || filled(buf + remap[i] * BLOCK, BLOCK, i));
	munmap(buf, ROWS * BLOCK);
}

/*
 * Engines that are stuck or gone: the call ends, rows say why, nothing is kept.  A machine
 * that was too slow to begin with all rows by the deadline gets twice the time.
 */
TEST_F(accel, gathered_from_a_stuck_device)
{
	uint64_t ns = STUCK_NS / 16;
	uint32_t remap[ROWS];
	int32_t status[ROWS];
	struct hawk_gather g;
	uint8_t *buf = mmap(NULL, ROWS * BLOCK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, ROWS));
	for (;; ns *= 2) {
		ASSERT_EQ(0, param_set("stuck", "Y"));
		ASSERT_EQ(0, gather(self->fd, buf, now_ns() + ns, &g, remap, status));
		EXPECT_EQ(-ETIME, status[0]);
		EXPECT_EQ(0, g.done);
		if (g.busy == ROWS)
			break;
		ASSERT_LT(ns, LONG) TH_LOG("%u of %u rows are under way", g.busy, ROWS);
		ASSERT_EQ(0, param_set("reset", "1"));
		while (stat_pinned(self->fd))
			poll(NULL, 0, 10);
	}
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
	munmap(buf, ROWS * BLOCK);
	ASSERT_EQ(0, param_set("reset", "1"));
	while (lid_call(self->fd, HAWK_IOC_FREE, LID(0)) == -EBUSY)
		poll(NULL, 0, 10);
	EXPECT_EQ(0, check_block(self->fd, self->win, 1));
	EXPECT_EQ(0, stat_pinned(self->fd));
}

TEST_F(accel, gathered_from_a_lost_device)
{
	uint32_t remap[ROWS];
	int32_t status[ROWS];
	struct hawk_gather g;
	uint8_t *buf = mmap(NULL, ROWS * BLOCK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, ROWS));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(1)));
	ASSERT_EQ(0, param_set("remove", "1"));
	ASSERT_EQ(0, gather(self->fd, buf, 0, &g, remap, status));
	EXPECT_EQ(-ENODEV, status[1]) TH_LOG("pinned, so it is still known");
	EXPECT_EQ(0, g.done);
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(1)));
	munmap(buf, ROWS * BLOCK);
	while (model_tier(self->ctl) >= 0)
		poll(NULL, 0, 10);
	self->tier = -1;
}

/* Live and pinned blocks, and an importer that holds one. */
TEST_F(accel, surprise_removal)
{
	struct hawk_export x;
	uint8_t buf[BLOCK];
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 8));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(1)));
	ASSERT_EQ(0, export_blocks(self->fd, 2, 1, 0, &x));
	imp = imp_attach(x.fd, 0);
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	ASSERT_EQ(0, param_set("remove", "1"));
	EXPECT_EQ(SIGBUS, touch(self->win)) TH_LOG("the window leads to nothing");
	ASSERT_EQ(0, imp_rw(imp, 0, buf, BLOCK, 0));
	EXPECT_TRUE(filled(buf, BLOCK, 2)) TH_LOG("what was mapped stays memory");
	EXPECT_EQ(-ENODEV, imp_attach(x.fd, 0)) TH_LOG("also a plain export is revoked");
	/* unpinned blocks go now, pinned ones with their pins */
	while (lid_call(self->fd, HAWK_IOC_TRANSLATE, LID(0)) != -ENOENT)
		poll(NULL, 0, 10);
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(1)));
	close(imp);
	close(x.fd);
	while (model_tier(self->ctl) >= 0)
		poll(NULL, 0, 10);
	self->tier = -1;
}

TEST_HARNESS_MAIN
