// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_peer.c - windows of /dev/hawk registered with an RDMA stack that has peer memory
 * clients: hawk_peer.ko beside the lab's model of such a stack, hawk_peers.ko
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/wait.h>

#include "hawk_fixture.h"
#include "hawk_models.h"

/* The model first: it has the symbols of the client. */
#define NEED_PEER()							\
	do {								\
		if (model_load("peers", ""))				\
			SKIP(return, "no hawk_peers.ko in HAWK_TEST_MODELS"); \
		ASSERT_EQ(0, model_load("peer", ""));			\
	} while (0)

static int peers_open(void)
{
	return open("/dev/hawk-peers", O_RDWR | O_CLOEXEC);
}

static int reg(int nic, const void *addr, uint64_t size, uint32_t flags)
{
	struct hawk_peers_reg r = { .addr = (uintptr_t)addr, .size = size, .flags = flags };

	return dev_call(nic, HAWK_PEERS_IOC_REG, &r);
}

static int dereg(int nic)
{
	return ioctl(nic, HAWK_PEERS_IOC_DEREG) ? -errno : 0;
}

static int rw(int nic, uint64_t offset, void *buf, uint32_t len, bool write)
{
	struct hawk_imp_rw r = {
		.offset = offset, .buf = (uintptr_t)buf, .len = len,
		.flags = write ? HAWK_IMP_RW_WRITE : 0,
	};

	return dev_call(nic, HAWK_PEERS_IOC_RW, &r);
}

static struct hawk_peers_info info(int nic)
{
	struct hawk_peers_info i = { 0 };

	if (dev_call(nic, HAWK_PEERS_IOC_INFO, &i))
		i.asked = ~0u;
	return i;
}

static void wait_asked(int nic)
{
	while (!info(nic).asked)
		poll(NULL, 0, 1);
}

/* Blocks may come to frames in any order: those that are neighbours from frame 0 on. */
static int fill_chunk(int fd, uint8_t *win)
{
	uint32_t i, n = HAWK_CHUNK_BYTES / BLOCK;

	for (i = 0; i < n; i++) {
		struct hawk_item it = { .lid = LID(i) };
		int ret = one(fd, HAWK_IOC_ALLOC, 0, &it);

		if (ret)
			return ret;
		fill(frame_at(win, it.vt, BLOCK), BLOCK, HAWK_VT_FRAME(it.vt));
		if (HAWK_VT_FRAME(it.vt) >= n)
			return -EXDEV;
	}
	return 0;
}

/* The LID of the block in a frame, of those that fill_chunk() made. */
static uint64_t lid_in(int fd, uint32_t frame)
{
	uint32_t i;

	for (i = 0; i < HAWK_CHUNK_BYTES / BLOCK; i++) {
		struct hawk_item it = { .lid = LID(i) };

		if (!one(fd, HAWK_IOC_TRANSLATE, 0, &it) && HAWK_VT_FRAME(it.vt) == frame)
			return LID(i);
	}
	return 0;
}

TEST_F(hawk, nic_reads_and_writes)
{
	uint8_t buf[BLOCK];
	int nic;

	NEED_PEER();
	ASSERT_EQ(0, fill_chunk(self->fd, self->win));
	nic = peers_open();
	ASSERT_GE(nic, 0);
	EXPECT_EQ(-ENXIO, dereg(nic));
	ASSERT_EQ(0, reg(nic, self->win, 4 * BLOCK, HAWK_PEERS_WRITE));
	EXPECT_EQ(-EBUSY, reg(nic, self->win, 4 * BLOCK, 0));
	EXPECT_EQ(4 * BLOCK, info(nic).bytes);
	ASSERT_EQ(0, rw(nic, 2 * BLOCK, buf, BLOCK, false));
	EXPECT_TRUE(filled(buf, BLOCK, 2));
	fill(buf, BLOCK, 99);
	ASSERT_EQ(0, rw(nic, BLOCK, buf, BLOCK, true));
	EXPECT_TRUE(filled(self->win + BLOCK, BLOCK, 99));
	EXPECT_TRUE(filled(self->win, BLOCK, 0));
	EXPECT_TRUE(filled(self->win + 2 * BLOCK, BLOCK, 2));
	EXPECT_EQ(-EINVAL, rw(nic, 4 * BLOCK - 8, buf, 16, false)) TH_LOG("behind the end");
	EXPECT_EQ(0, dereg(nic));
	EXPECT_EQ(-ENXIO, rw(nic, 0, buf, 8, false));
	close(nic);
}

/* Parts of blocks, across their borders, down to a byte. */
TEST_F(hawk, any_part)
{
	static const struct { uint64_t off, size; } part[] = {
		{ 4096, 4096 }, { BLOCK - 4096, 8192 }, { 100, 1 }, { BLOCK - 1, 2 },
		{ 3 * BLOCK + 8192, 2 * BLOCK }, { 0, HAWK_CHUNK_BYTES },
	};
	static uint8_t buf[HAWK_CHUNK_BYTES];
	unsigned int i;
	int nic;

	NEED_PEER();
	ASSERT_EQ(0, fill_chunk(self->fd, self->win));
	nic = peers_open();
	for (i = 0; i < sizeof(part) / sizeof(*part); i++) {
		uint64_t at, n;

		ASSERT_EQ(0, reg(nic, self->win + part[i].off, part[i].size, HAWK_PEERS_WRITE));
		EXPECT_EQ(part[i].size, info(nic).bytes);
		for (at = 0; at < part[i].size; at += n) {
			n = part[i].size - at < MIB ? part[i].size - at : MIB;
			ASSERT_EQ(0, rw(nic, at, buf + at, n, false));
		}
		EXPECT_EQ(0, memcmp(buf, self->win + part[i].off, part[i].size));
		EXPECT_EQ(-EINVAL, rw(nic, part[i].size, buf, 1, false));
		EXPECT_EQ(0, dereg(nic));
	}
	close(nic);
}

/* What is no block of ours that is pinned is not registered. */
TEST_F(hawk, refused)
{
	uint64_t size = HAWK_CHUNK_BYTES;
	struct hawk_vtlb_entry *vtlb;
	uint8_t *ro, *anon;
	int nic;

	NEED_PEER();
	ASSERT_EQ(0, fill_chunk(self->fd, self->win));
	nic = peers_open();
	anon = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-ENODEV, reg(nic, anon, size, 0)) TH_LOG("memory of somebody else");
	EXPECT_EQ(-ENODEV, reg(nic, NULL, size, 0));
	EXPECT_EQ(-ENODEV, reg(nic, self->win, 0, 0));
	EXPECT_EQ(-ENODEV, reg(nic, self->win, ~0ull, 0));
	EXPECT_EQ(-ENODEV, reg(nic, self->win, HOST_BYTES + 1, 0)) TH_LOG("behind the window");
	vtlb = map_area(self->fd, HAWK_MMAP_VTLB, vtlb_bytes(self->fd), PROT_READ);
	EXPECT_EQ(-ENODEV, reg(nic, vtlb, 4096, 0)) TH_LOG("the vTLB is no window");
	EXPECT_EQ(-EFAULT, reg(nic, self->win, size + 1, 0)) TH_LOG("a frame without a block");
	ro = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	EXPECT_EQ(-EACCES, reg(nic, ro, BLOCK, HAWK_PEERS_WRITE));
	ASSERT_EQ(0, reg(nic, ro, BLOCK, 0));
	EXPECT_EQ(-EACCES, rw(nic, 0, anon, 8, true));
	EXPECT_EQ(0, dereg(nic));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PUT, lid_in(self->fd, 3)));
	EXPECT_EQ(-EFAULT, reg(nic, self->win, 4 * BLOCK, 0)) TH_LOG("one is not pinned");
	EXPECT_EQ(0, reg(nic, self->win, 3 * BLOCK, 0));
	EXPECT_EQ((int)(HAWK_CHUNK_BYTES / BLOCK - 1), stat_pinned(self->fd));
	close(nic);
	munmap(ro, HOST_BYTES);
	munmap(anon, size);
	munmap(vtlb, vtlb_bytes(self->fd));
}

/* The registration's pins outlast the file's, and its mapping; who frees a block waits. */
TEST_F(hawk, stays_pinned)
{
	uint64_t lid;
	uint8_t buf[BLOCK];
	int nic;

	NEED_PEER();
	ASSERT_EQ(0, fill_chunk(self->fd, self->win));
	lid = lid_in(self->fd, 5);
	nic = peers_open();
	ASSERT_EQ(0, reg(nic, self->win + 5 * BLOCK, BLOCK, HAWK_PEERS_HOLD));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PUT, lid));
	munmap(self->win, HOST_BYTES);
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, lid));
	EXPECT_EQ(1, info(nic).asked);
	ASSERT_EQ(0, rw(nic, 0, buf, BLOCK, false));
	EXPECT_TRUE(filled(buf, BLOCK, 5)) TH_LOG("its bytes as long as the NIC may read them");
	EXPECT_EQ(0, dereg(nic));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, lid));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);

	lid = lid_in(self->fd, 6);
	ASSERT_EQ(0, reg(nic, self->win + 6 * BLOCK, BLOCK, 0));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PUT, lid));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, lid)) TH_LOG("a NIC that lets go");
	EXPECT_EQ(1, info(nic).asked);
	EXPECT_EQ(0, info(nic).mapped);
	EXPECT_EQ(-ENXIO, rw(nic, 0, buf, 8, false));
	close(nic);
}

/* The file is closed, the process dies: the memory is asked back. */
TEST_F(hawk, file_goes)
{
	uint8_t buf[8];
	pid_t child;
	int nic, status;

	NEED_PEER();
	nic = peers_open();
	child = fork();
	if (!child) {
		int fd = dev_open(O_RDWR);
		struct hawk_space_create sc = space_args(512);
		uint8_t *win;

		sc.quota[self->host].max_bytes = 2 * MIB;
		if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc))
			_exit(1);
		win = map_area(fd, HAWK_MMAP_TIER(self->host), 2 * MIB, PROT_READ | PROT_WRITE);
		_exit(!win || fill_chunk(fd, win) ||
		      reg(nic, win, HAWK_CHUNK_BYTES, HAWK_PEERS_WRITE) || info(nic).asked);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	wait_asked(nic);
	EXPECT_EQ(-ENXIO, rw(nic, 0, buf, 8, false));
	EXPECT_EQ(0, info(nic).mapped);
	EXPECT_EQ(0, dereg(nic));
	close(nic);
}

/* A tier is removed: its registrations are asked back, and only then is it gone. */
TEST_F(hawk, tier_goes)
{
	struct hawk_tier_remove rm = { .size = sizeof(rm), .flags = HAWK_TIER_FORCE };
	struct hawk_space_create sc = space_args(512);
	uint32_t tier, i, n = HAWK_CHUNK_BYTES / BLOCK;
	int nic, slow, fd = dev_open(O_RDWR);
	uint8_t buf[8], *win;

	NEED_PEER();
	ASSERT_EQ(0, host_add(self->ctl, 2 * MIB, &tier));
	sc.quota[tier].max_bytes = 2 * MIB;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	win = map_area(fd, HAWK_MMAP_TIER(tier), 2 * MIB, PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, fill_chunk(fd, win));
	nic = peers_open();
	slow = peers_open();
	ASSERT_EQ(0, reg(nic, win, HAWK_CHUNK_BYTES, HAWK_PEERS_WRITE));
	ASSERT_EQ(0, reg(slow, win, 2 * BLOCK, HAWK_PEERS_HOLD));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, lid_call(fd, HAWK_IOC_PUT, LID(i)));
	rm.tier = tier;
	EXPECT_EQ(-EBUSY, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm)) TH_LOG("a NIC that holds on");
	wait_asked(nic);
	EXPECT_EQ(0, info(nic).mapped);
	EXPECT_EQ(-ENXIO, rw(nic, 0, buf, 8, false));
	EXPECT_EQ(1, info(slow).mapped);
	EXPECT_EQ(0, rw(slow, 0, buf, 8, false)) TH_LOG("its memory is still the block's");
	EXPECT_EQ(0, dereg(slow));
	EXPECT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	EXPECT_EQ(0, dereg(nic));
	close(nic);
	close(slow);
	munmap(win, 2 * MIB);
	close(fd);
}

/* Registered and asked back at the same time, again and again. */
TEST_F(hawk, races)
{
	struct hawk_space_create sc = space_args(512);
	unsigned int round;
	int nic;

	NEED_PEER();
	nic = peers_open();
	sc.quota[self->host].max_bytes = 2 * MIB;
	for (round = 0; round < 40; round++) {
		int fd = dev_open(O_RDWR), ret;
		uint8_t *win;
		pid_t child;

		ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
		win = map_area(fd, HAWK_MMAP_TIER(self->host), 2 * MIB, PROT_READ | PROT_WRITE);
		ASSERT_EQ(0, fill_chunk(fd, win));
		ASSERT_EQ(0, reg(nic, win, HAWK_CHUNK_BYTES, HAWK_PEERS_WRITE));
		child = fork();
		if (!child) {
			ret = dereg(nic);
			_exit(ret != 0);
		}
		munmap(win, 2 * MIB);
		close(fd);
		ASSERT_EQ(child, waitpid(child, &ret, 0));
		ASSERT_EQ(0, ret);
	}
	close(nic);
}

/* The module stays as long as something is registered. */
TEST_F(hawk, module_goes)
{
	int nic;

	NEED_PEER();
	ASSERT_EQ(0, fill_chunk(self->fd, self->win));
	nic = peers_open();
	ASSERT_EQ(0, reg(nic, self->win, BLOCK, 0));
	EXPECT_EQ(-EAGAIN, model_unload("hawk_peer"));
	EXPECT_EQ(0, dereg(nic));
	EXPECT_EQ(0, model_unload("hawk_peer"));
	EXPECT_EQ(-ENODEV, reg(nic, self->win, BLOCK, 0)) TH_LOG("no client");
	close(nic);
	EXPECT_EQ(0, model_unload("hawk_peers"));
}

TEST_HARNESS_MAIN
