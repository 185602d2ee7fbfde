// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_npu.c - a tier in the memory of an NPU, with the faults of its firmware
 *
 * The device is hawk_npu.ko's, with firmware-models/npu behind it.  Blocks go through the
 * firmware to flash and back.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "hawk_npu.h"

/* ---- the bytes ---- */

TEST_F(npu, to_flash_and_back)
{
	uint32_t i, n = NPU_BLOCKS + MORE;

	EXPECT_STREQ("firmware", npu_attr("mover"));
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, check_block(self->fd, self->win, i)) TH_LOG("block %u", i);
	EXPECT_LE(2 * MORE * BLOCK, npu_count("moved_dma"));
	EXPECT_EQ(0, npu_count("moved_cpu"));
	EXPECT_EQ(0, npu_count("timeouts") + npu_count("protocol_errors"));
}

/* All blocks, or misses; never other bytes.  How many are there, or -1. */
static int check_all(int fd, uint8_t *win, uint32_t n)
{
	uint32_t i, there = 0;

	for (i = 0; i < n; i++) {
		int ret = check_block(fd, win, i);

		if (ret > 0)
			return -1;
		there += !ret;
	}
	return there;
}

/* Without firmware the CPU moves blocks; nobody notices. */
TEST_F(npu, without_firmware)
{
	uint32_t i, n = NPU_BLOCKS + MORE;
	unsigned long boot = 0;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	while (!npu_count("moved_cpu")) {
		int ret;

		npu_wait_ready(boot);
		boot = npu_count("boot");	/* the next one may come during the checks */
		ret = npu_fault(HAWK_NPU_FAULT_DIE, 0);
		ASSERT_TRUE(ret == -ECONNRESET || ret == -EHOSTDOWN) TH_LOG("%d", ret);
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, check_block(self->fd, self->win, i)) TH_LOG("block %u", i);
	}
	npu_wait_ready(boot);
	EXPECT_LE(1, npu_count("resets"));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, check_block(self->fd, self->win, i)) TH_LOG("block %u", i);
}

/* ---- faults: what each ends with, and that bytes stay what they are ---- */


/* The firmware ends a command by its fault @kind, and comes back with all blocks. */
static int fault_and_back(int fd, uint8_t *win, unsigned int kind, uint32_t n)
{
	unsigned long boot = npu_count("boot");
	int ret = npu_fault(kind, 0);

	npu_wait_ready(boot);
	return check_all(fd, win, n) == (int)n ? ret : -EILSEQ;
}

TEST_F(npu, crash)
{
	uint32_t n = NPU_BLOCKS + MORE;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	EXPECT_EQ(-ECONNRESET, fault_and_back(self->fd, self->win, HAWK_NPU_FAULT_CRASH, n));
	EXPECT_LE(1, npu_count("crashes"));
	EXPECT_EQ(0, npu_count("timeouts") + npu_count("protocol_errors"));
}

TEST_F(npu, hang)
{
	uint32_t n = NPU_BLOCKS + MORE;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	ASSERT_EQ(0, npu_param("timeout_ms", "1000"));
	EXPECT_EQ(-ETIMEDOUT, fault_and_back(self->fd, self->win, HAWK_NPU_FAULT_HANG, n));
	EXPECT_LE(1, npu_count("timeouts"));
	EXPECT_LE(2, npu_count("resets")) TH_LOG("one when the driver came");
}

/* The heart stops: noticed before any command is late. */
TEST_F(npu, freeze)
{
	uint32_t n = NPU_BLOCKS + MORE;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	ASSERT_EQ(0, npu_param("timeout_ms", "600000"));
	ASSERT_EQ(0, npu_param("heartbeat_ms", "1000"));
	EXPECT_EQ(-ECONNRESET, fault_and_back(self->fd, self->win, HAWK_NPU_FAULT_FREEZE, n));
	EXPECT_EQ(0, npu_count("timeouts"));
}

/* Rings full of nonsense cost a reset. */
TEST_F(npu, mad_firmware)
{
	uint32_t n = NPU_BLOCKS + MORE, seed;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	for (seed = 1; seed <= 8; seed++) {
		unsigned long boot = npu_count("boot");

		EXPECT_EQ(-EPROTO, npu_fault(HAWK_NPU_FAULT_LIE, seed)) TH_LOG("seed %u", seed);
		npu_wait_ready(boot);
	}
	EXPECT_LE(8, npu_count("protocol_errors"));
	EXPECT_EQ(n, check_all(self->fd, self->win, n));
}

/* The block is a miss, counted; nobody else's is touched. */
TEST_F(npu, ecc_error)
{
	struct hawk_frame_info fi = { .size = sizeof(fi), .tier = self->tier };
	struct hawk_item it = { .lid = LID(3) };
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, NPU_BLOCKS));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_TRANSLATE, 0, &it));
	fi.frame = HAWK_VT_FRAME(it.vt);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &fi));
	ASSERT_EQ(0, npu_fault(HAWK_NPU_FAULT_ECC, fi.offset + 4096));
	ASSERT_EQ(0, make_blocks(self->fd, self->win, NPU_BLOCKS, MORE));
	EXPECT_LE(1, npu_count("ecc_errors"));
	EXPECT_EQ(-ENOENT, check_block(self->fd, self->win, 3));
	/* Who gets the frame after it may lose a block, too: the CPU's writes mend nothing. */
	EXPECT_LT(NPU_BLOCKS, check_all(self->fd, self->win, NPU_BLOCKS + MORE));
}

/* Can a new space have a block in the NPU? */
static bool npu_works(int ctl)
{
	struct hawk_space_create sc = space_args(64);
	struct hawk_item it = { .lid = LID(0) };
	int fd = dev_open(O_RDWR), tier = npu_tier(ctl);
	bool works;

	if (tier >= 0)
		sc.quota[tier].max_bytes = 2 * MIB;
	works = tier >= 0 && !dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc) &&
		!one(fd, HAWK_IOC_ALLOC, 0, &it);
	close(fd);
	return works;
}

/* What was in the memory is a miss; a new tier comes by itself; flash is not touched. */
TEST_F(npu, amnesia)
{
	uint32_t i, n = NPU_BLOCKS + MORE, good = 0;
	int ret;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	ret = npu_fault(HAWK_NPU_FAULT_AMNESIA, 0);
	EXPECT_TRUE(ret == -ECONNRESET || ret == -ENODEV) TH_LOG("%d", ret);
	npu_wait_lost(self->ctl, self->tier);
	for (i = 0; i < n; i++) {
		struct hawk_item it = { .lid = LID(i) };

		ret = one(self->fd, HAWK_IOC_GET, HAWK_BATCH_NOWAIT, &it);
		good += ret == -EAGAIN;
		if (ret)
			continue;
		/* Not dropped yet: it can be held, not read. */
		EXPECT_EQ(SIGBUS, touch(frame_at(self->win, it.vt, BLOCK)));
		EXPECT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &it));
	}
	TH_LOG("%u blocks are on flash", good);
	while (!npu_works(self->ctl))
		poll(NULL, 0, 10);
}

/* ---- under load ---- */

TEST_F(npu, crashes_under_load)
{
	uint32_t n = NPU_BLOCKS + MORE, i;
	pid_t pid;
	int told;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	pid = load(self->fd, self->tier, n, &told);
	ASSERT_LT(0, pid);
	for (i = 0; i < 8; i++) {
		unsigned long boot = npu_count("boot");
		int ret = npu_fault(i % 2 ? HAWK_NPU_FAULT_CRASH : HAWK_NPU_FAULT_DIE, 0);

		EXPECT_TRUE(ret == -ECONNRESET || ret == -EHOSTDOWN) TH_LOG("%d", ret);
		npu_wait_ready(boot);
	}
	EXPECT_EQ(0, load_stop(pid, told)) TH_LOG("1: a block had other bytes");
	EXPECT_EQ(n, check_all(self->fd, self->win, n));
}

/* The driver loses its device while blocks move, and gets a new one. */
TEST_F(npu, pulled_under_load)
{
	uint32_t n = NPU_BLOCKS + MORE;
	char path[300];
	pid_t pid;
	int told;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, n));
	pid = load(self->fd, self->tier, n, &told);
	ASSERT_LT(0, pid);
	snprintf(path, sizeof(path), DRIVER "/%s/remove", npu_device());
	EXPECT_EQ(0, write_file(path, "1"));
	EXPECT_STREQ("", npu_device());
	load_stop(pid, told);	/* it may have met SIGBUS */
	npu_wait_lost(self->ctl, self->tier);
	EXPECT_EQ(0, write_file("/sys/bus/pci/rescan", "1"));
	npu_wait_ready(0);
	while (!npu_works(self->ctl))
		poll(NULL, 0, 10);
}

TEST_HARNESS_MAIN
