// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_mmap.c - mappings: who may map what, how they share, how they end
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "hawk_fixture.h"

static void read_byte(void *p)
{
	(void)*(volatile uint8_t *)p;
}

static void write_byte(void *p)
{
	*(volatile uint8_t *)p = 1;
}

/* A block with pattern @n under LID(@n) and key @n: where it is, or NULL. */
static uint8_t *make_block(int fd, uint8_t *win, uint32_t n)
{
	struct hawk_item it = { .lid = LID(n) };
	uint8_t *frame;

	if (one(fd, HAWK_IOC_ALLOC, 0, &it))
		return NULL;
	frame = frame_at(win, it.vt, BLOCK);
	fill(frame, BLOCK, n);
	set_key(&it, n);
	return one(fd, HAWK_IOC_PUT, 0, &it) ? NULL : frame;
}

TEST_F(hawk, vtlb_translates)
{
	uint64_t bytes = vtlb_bytes(self->fd);
	struct hawk_vtlb_entry *t = map_area(self->fd, HAWK_MMAP_VTLB, bytes, PROT_READ);
	struct hawk_item it;
	uint32_t n;

	ASSERT_NE(NULL, t);
	for (n = 0; n < 64; n++)
		ASSERT_NE(NULL, make_block(self->fd, self->win, n));
	for (n = 0; n < 64; n++) {
		it = (struct hawk_item){ .lid = LID(n) };
		ASSERT_EQ(0, one(self->fd, HAWK_IOC_TRANSLATE, 0, &it));
		EXPECT_EQ(it.vt, vtlb_lookup(t, bytes, LID(n)));
		EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, n));
	}
	EXPECT_EQ(0, vtlb_lookup(t, bytes, LID(64)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(5)));
	EXPECT_EQ(0, vtlb_lookup(t, bytes, LID(5)));
	munmap(t, bytes);
}

TEST_F(hawk, vtlb_is_read_only)
{
	uint64_t bytes = vtlb_bytes(self->fd);
	void *t;

	EXPECT_EQ(NULL, map_area(self->fd, HAWK_MMAP_VTLB, bytes, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	t = map_area(self->fd, HAWK_MMAP_VTLB, bytes, PROT_READ);
	ASSERT_NE(NULL, t);
	EXPECT_EQ(-1, mprotect(t, bytes, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(t, bytes, PROT_READ | PROT_EXEC));
	EXPECT_EQ(SIGSEGV, dies_with(write_byte, t));
	munmap(t, bytes);
}

TEST_F(hawk, map_rejects)
{
	uint64_t win = HAWK_MMAP_TIER(self->host);
	int empty = dev_open(O_RDWR);

	EXPECT_EQ(NULL, map_area(empty, win, 4096, PROT_READ));
	EXPECT_EQ(ENXIO, errno) TH_LOG("no space");
	EXPECT_EQ(NULL, map_area(self->fd, HAWK_MMAP_RING, 4096, PROT_READ));
	EXPECT_EQ(ENXIO, errno) TH_LOG("no ring");
	EXPECT_EQ(NULL, map_area(self->fd, HAWK_MMAP_TIER(HAWK_TIERS_MAX - 1), 4096, PROT_READ));
	EXPECT_EQ(ENXIO, errno) TH_LOG("no such tier");
	EXPECT_EQ(NULL, map_area(self->fd, 0, 4096, PROT_READ));
	EXPECT_EQ(ENXIO, errno) TH_LOG("no area");
	EXPECT_EQ(NULL, map_area(self->fd, HAWK_MMAP_TIER(15) + 4096, 4096, PROT_READ));
	/* mmap2() of 32-bit programs does not reach there: the C library refuses */
	EXPECT_EQ(sizeof(long) == 8 ? ENXIO : EINVAL, errno) TH_LOG("beyond the last tier");
	EXPECT_EQ(NULL, map_area(self->fd, win, HOST_BYTES + 4096, PROT_READ));
	EXPECT_EQ(EINVAL, errno) TH_LOG("too long");
	EXPECT_EQ(NULL, map_area(self->fd, win + HOST_BYTES, 4096, PROT_READ));
	EXPECT_EQ(EINVAL, errno) TH_LOG("behind the end");
	EXPECT_EQ(NULL, map_area(self->fd, win + 4096, HOST_BYTES, PROT_READ));
	EXPECT_EQ(EINVAL, errno) TH_LOG("over the end");
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, self->fd, win));
	EXPECT_EQ(EINVAL, errno) TH_LOG("private");
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, win + 512));
	EXPECT_EQ(EINVAL, errno) TH_LOG("unaligned");
	close(empty);
}

TEST_F(hawk, partial_maps)
{
	uint8_t *frame = make_block(self->fd, self->win, 1), *part;

	ASSERT_NE(NULL, frame);
	/* the second page of the frame, and nothing else */
	part = map_area(self->fd, HAWK_MMAP_TIER(self->host) + (frame - self->win) + 4096, 4096,
			PROT_READ);
	ASSERT_NE(NULL, part);
	EXPECT_EQ(0, memcmp(part, frame + 4096, 4096));
	munmap(part, 4096);
	/* holes and ends of a mapping do not disturb the rest of it */
	EXPECT_EQ(0, munmap(self->win + 4096, 4096));
	EXPECT_EQ(SIGSEGV, dies_with(read_byte, self->win + 4096));
	EXPECT_EQ(MAP_FAILED, mremap(self->win, 4096, 8192, 0)) TH_LOG("may not grow");
}

/* A window reaches over frames that the space has not got yet. */
TEST_F(hawk, frame_not_owned)
{
	struct hawk_space_create sc = space_args(HOST_BLOCKS);
	uint8_t *other;
	int fd = dev_open(O_RDWR);
	uint64_t off;

	EXPECT_EQ(0, stats_of(self->fd).chunks[self->host]);
	for (off = 0; off < HOST_BYTES; off += 4096)
		self->win[off] = 0xee;
	/* what is stored there reaches nobody else */
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	other = map_area(fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	ASSERT_NE(NULL, other);
	for (off = 0; off < 4096; off++)
		ASSERT_EQ(0, other[HOST_BYTES - 4096 + off]);
	munmap(other, HOST_BYTES);
	close(fd);
}

/* Nothing that outlasts the access, or that another does for the caller, is let in. */
TEST_F(hawk, frame_not_owned_cannot_be_pinned)
{
	struct iovec iov = { .iov_base = self->win, .iov_len = 4096 };
	int p[2];

	ASSERT_EQ(0, pipe(p));
	EXPECT_EQ(-1, vmsplice(p[1], &iov, 1, 0));
	EXPECT_EQ(EFAULT, errno) TH_LOG("never touched");
	EXPECT_EQ(-1, write(p[1], self->win, 4096));
	EXPECT_EQ(EFAULT, errno) TH_LOG("never touched");
	self->win[0] = 1;
	EXPECT_EQ(-1, vmsplice(p[1], &iov, 1, 0)) TH_LOG("touched");
	close(p[0]);
	close(p[1]);
}

/* The scratch page does not hide the frame that comes to its place. */
TEST_F(hawk, frame_comes_while_mapped)
{
	static const uint8_t zero[BLOCK];
	struct hawk_item it = { .lid = LID(1) };
	uint8_t *fresh;
	uint64_t off;

	for (off = 0; off < HOST_BYTES; off += 4096)
		self->win[off] = 0xee;
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(0, memcmp(frame_at(self->win, it.vt, BLOCK), zero, BLOCK));
	fill(frame_at(self->win, it.vt, BLOCK), BLOCK, 1);
	fresh = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	ASSERT_NE(NULL, fresh);
	EXPECT_TRUE(filled(frame_at(fresh, it.vt, BLOCK), BLOCK, 1));
	munmap(fresh, HOST_BYTES);
}

TEST_F(hawk, not_inherited_by_fork)
{
	uint8_t *frame = make_block(self->fd, self->win, 1);

	ASSERT_NE(NULL, frame);
	EXPECT_EQ(SIGSEGV, dies_with(read_byte, frame));
	EXPECT_TRUE(filled(frame, BLOCK, 1));
}

struct child {
	int fd;
	uint32_t host;
};

static void child_reads(void *arg)
{
	const struct child *c = arg;
	uint8_t *win = map_area(c->fd, HAWK_MMAP_TIER(c->host), HOST_BYTES,
				PROT_READ | PROT_WRITE);
	struct hawk_item it = key_item(7);

	if (!win || one(c->fd, HAWK_IOC_GET, 0, &it))
		kill(getpid(), SIGUSR1);
	if (!filled(frame_at(win, it.vt, BLOCK), BLOCK, 7))
		kill(getpid(), SIGUSR2);
	fill(frame_at(win, it.vt, BLOCK), BLOCK, 8);
}

/* Two processes see the same bytes, each through a mapping of its own. */
TEST_F(hawk, shared_between_processes)
{
	struct child c = { .fd = self->fd, .host = self->host };
	struct hawk_item it = { .lid = LID(7) };

	ASSERT_NE(NULL, make_block(self->fd, self->win, 7));
	EXPECT_EQ(0, dies_with(child_reads, &c));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_TRANSLATE, 0, &it));
	EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, 8));
	EXPECT_EQ(1, stat_pinned(self->fd)) TH_LOG("the file, not the process, has the pin");
}

TEST_F(hawk, read_only_file)
{
	struct hawk_space_create sc = space_args(64);
	struct hawk_item it = { .lid = LID(0) };
	int fd = dev_open(O_RDONLY);
	void *p;

	sc.quota[self->host].max_bytes = 2 * MIB;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(NULL, map_area(fd, HAWK_MMAP_TIER(self->host), 2 * MIB,
				 PROT_READ | PROT_WRITE));
	p = map_area(fd, HAWK_MMAP_TIER(self->host), 2 * MIB, PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, mprotect(p, 2 * MIB, PROT_READ | PROT_WRITE));
	EXPECT_EQ(-EACCES, one(fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(-ENOENT, one(fd, HAWK_IOC_GET, 0, &it)) TH_LOG("reading is allowed");
	munmap(p, 2 * MIB);
	close(fd);
}

/* The mapping keeps the space: its bytes stay until the last of both is gone. */
TEST_F(hawk, close_before_unmap)
{
	uint8_t *frame = make_block(self->fd, self->win, 3);

	ASSERT_NE(NULL, frame);
	close(self->fd);
	EXPECT_TRUE(filled(frame, BLOCK, 3));
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host));
	munmap(self->win, HOST_BYTES);
	self->fd = dev_open(O_RDWR);
}

TEST_F(hawk, unmap_before_close)
{
	uint8_t *frame = make_block(self->fd, self->win, 3);
	size_t off = frame - self->win;

	ASSERT_NE(NULL, frame);
	munmap(self->win, HOST_BYTES);
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	ASSERT_NE(NULL, self->win);
	EXPECT_TRUE(filled(self->win + off, BLOCK, 3));
}

/* Frames are pages that the kernel can pin: as a pipe's do without a copy. */
TEST_F(hawk, pages_can_be_pinned)
{
	struct iovec iov = { .iov_len = BLOCK };
	uint8_t buf[BLOCK];
	int p[2];

	iov.iov_base = make_block(self->fd, self->win, 3);
	ASSERT_NE(NULL, iov.iov_base);
	ASSERT_EQ(0, pipe(p));
	ASSERT_EQ(BLOCK, vmsplice(p[1], &iov, 1, 0));
	close(self->fd);
	munmap(self->win, HOST_BYTES);
	/* space and mapping are gone, the pipe still has the pages */
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host));
	ASSERT_EQ(BLOCK, read(p[0], buf, BLOCK));
	EXPECT_TRUE(filled(buf, BLOCK, 3)) TH_LOG("quarantined pages are not zeroed");
	close(p[0]);
	close(p[1]);
	self->fd = dev_open(O_RDWR);
}

TEST_HARNESS_MAIN
