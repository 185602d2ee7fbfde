// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_ring.c - asynchronous batches: the ring, eventfd, poll()
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define HOST_BYTES	(2 * MIB)
#define FLASH_BYTES	(8 * MIB)
#define HOST_BLOCKS	((uint32_t)(HOST_BYTES / BLOCK))
#define ENTRIES		64u

FIXTURE(ring) {
	int fd;
	int ctl;
	int efd;
	uint32_t host;
	uint32_t blk;
	uint8_t *win;
	char *path;
	struct hawk_ring *ring;
	size_t ring_bytes;
};

FIXTURE_SETUP(ring)
{
	struct hawk_space_create sc = space_args(1024);
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = ENTRIES };

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("ring", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	self->fd = dev_open(O_RDWR);
	self->efd = eventfd(0, EFD_NONBLOCK);
	ASSERT_GE(self->efd, 0);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	rs.eventfd = self->efd;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_RING_SETUP, &rs));
	self->ring_bytes = rs.ring_bytes;
	self->ring = map_area(self->fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->ring);
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
}

FIXTURE_TEARDOWN(ring)
{
	munmap(self->win, HOST_BYTES);
	munmap(self->ring, self->ring_bytes);
	close(self->fd);
	close(self->efd);
	EXPECT_EQ(0, tier_remove(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove(self->ctl, self->blk));
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/* Blocks 0 .. @n - 1 in batches of 32, so that the first are on flash. */
static int write_blocks(int fd, uint8_t *win, uint32_t n)
{
	struct hawk_item it[32];
	struct hawk_batch b;
	uint32_t i, k;

	for (i = 0; i < n; i += 32) {
		for (k = 0; k < 32; k++)
			it[k] = (struct hawk_item){ .lid = LID(i + k) };
		if (batch(fd, HAWK_IOC_ALLOC, 0, it, 32, &b) || b.done != 32)
			return -1;
		for (k = 0; k < 32; k++) {
			fill(frame_at(win, it[k].vt, BLOCK), BLOCK, i + k);
			set_key(&it[k], i + k);
		}
		if (batch(fd, HAWK_IOC_PUT, 0, it, 32, &b) || b.done != 32)
			return -1;
	}
	return 0;
}

static int submit(int fd, unsigned long cmd, uint32_t flags, struct hawk_item *it, uint32_t n,
		  uint64_t user_data)
{
	struct hawk_batch b = {
		.size = sizeof(b), .flags = flags | HAWK_BATCH_ASYNC, .count = n,
		.items = (uintptr_t)it, .user_data = user_data, .tier = HAWK_TIER_ANY,
	};

	return dev_call(fd, cmd, &b);
}

/* The next completion, waited for with poll(). */
static bool next_cqe(int fd, struct hawk_ring *r, struct hawk_cqe *cqe)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint32_t head = r->head;

	while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == head)
		if (poll(&p, 1, 60000) != 1 || p.revents != POLLIN)
			return false;
	*cqe = r->cqe[head & r->mask];
	__atomic_store_n(&r->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

TEST_F(ring, get_completes)
{
	struct hawk_item it[16];
	struct hawk_cqe cqe;
	uint64_t signals = 0;
	uint32_t i, seen = 0;

	ASSERT_EQ(ENTRIES - 1, self->ring->mask);
	ASSERT_EQ(0, write_blocks(self->fd, self->win, 2 * HOST_BLOCKS));
	for (i = 0; i < 16; i++)
		it[i] = key_item(i == 9 ? 99999 : i);
	ASSERT_EQ(0, submit(self->fd, HAWK_IOC_GET, 0, it, 16, 0xfeed));
	memset(it, 0xff, sizeof(it));	/* the device has its own copy */
	for (i = 0; i < 16; i++) {
		ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
		EXPECT_EQ(HAWK_CQE_ITEM, cqe.flags);
		EXPECT_EQ(0xfeed, cqe.user_data);
		ASSERT_LT(cqe.index, 16);
		seen |= 1u << cqe.index;
		EXPECT_EQ(cqe.index == 9 ? -ENOENT : 0, cqe.status);
		if (cqe.status)
			continue;
		EXPECT_EQ(LID(cqe.index), cqe.lid);
		EXPECT_TRUE(filled(frame_at(self->win, cqe.vt, BLOCK), BLOCK, cqe.index));
	}
	EXPECT_EQ(0xffff, seen);
	ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
	EXPECT_EQ(HAWK_CQE_BATCH, cqe.flags);
	EXPECT_EQ(0xfeed, cqe.user_data);
	EXPECT_EQ(15, cqe.index);
	EXPECT_EQ(15, stat_pinned(self->fd));
	EXPECT_EQ(8, read(self->efd, &signals, sizeof(signals)));
	EXPECT_EQ(17, signals);
}

TEST_F(ring, prefix_completes_in_order)
{
	struct hawk_item it[16];
	struct hawk_cqe cqe;
	uint32_t i;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 2 * HOST_BLOCKS));
	for (i = 0; i < 16; i++)
		it[i] = key_item(i == 9 ? 99999 : i);
	ASSERT_EQ(0, submit(self->fd, HAWK_IOC_GET, HAWK_BATCH_PREFIX, it, 16, 1));
	for (i = 0; i < 16; i++) {
		ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
		EXPECT_EQ(i, cqe.index);
		EXPECT_EQ(i < 9 ? 0 : i == 9 ? -ENOENT : -ECANCELED, cqe.status);
	}
	ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
	EXPECT_EQ(9, cqe.index);
	EXPECT_EQ(9, stat_pinned(self->fd));
}

TEST_F(ring, reload_then_pin)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_cqe cqe;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 2 * HOST_BLOCKS));
	EXPECT_EQ(-EAGAIN, lid_call(self->fd, HAWK_IOC_PIN, LID(0)));
	ASSERT_EQ(0, submit(self->fd, HAWK_IOC_RELOAD, 0, &it, 1, 5));
	ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
	EXPECT_EQ(0, cqe.status);
	ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
	EXPECT_EQ(HAWK_CQE_BATCH, cqe.flags);
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(0)));
}

/* A batch is refused rather than its completions lost. */
TEST_F(ring, no_room)
{
	struct hawk_item it[ENTRIES];
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	struct hawk_cqe cqe;
	uint32_t i, of_third = 0;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 64));
	for (i = 0; i < ENTRIES; i++)
		it[i] = key_item(i);
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(-EBUSY, submit(self->fd, HAWK_IOC_GET, 0, it, ENTRIES, 1));
	EXPECT_EQ(0, submit(self->fd, HAWK_IOC_GET, 0, it, ENTRIES - 1, 1));
	EXPECT_EQ(-EBUSY, submit(self->fd, HAWK_IOC_GET, 0, it, 1, 2));
	for (i = 0; i < ENTRIES - 2; i++)
		ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
	EXPECT_EQ(0, submit(self->fd, HAWK_IOC_GET, 0, it, 1, 3));
	/* two of the first batch and two of the third, in any order */
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
		of_third += cqe.user_data == 3;
	}
	EXPECT_EQ(2, of_third);
	EXPECT_EQ(0, poll(&p, 1, 0));
}

#define SUBMITTERS	4
#define PER_THREAD	300u

struct submitter {
	pthread_t thread;
	int fd;
	uint32_t number;
	uint32_t refused;
	int wrong;
};

/* Batches of 1 to 8 until PER_THREAD have been taken; a full ring is tried again. */
static void *submitter(void *arg)
{
	struct submitter *s = arg;
	struct hawk_item it[8];
	uint32_t i, k, n;
	int ret;

	for (i = 0; i < PER_THREAD && !s->wrong; i++) {
		n = 1 + i % 8;
		for (k = 0; k < n; k++)
			it[k] = key_item((s->number * 37 + i + k) % 64);
		for (;;) {
			ret = submit(s->fd, HAWK_IOC_RELOAD, 0, it, n, s->number << 16 | i);
			if (ret != -EBUSY)
				break;
			s->refused++;
			sched_yield();
		}
		s->wrong = ret;
	}
	return NULL;
}

/* Several submit, the ring is too small for all: some are refused, none is lost. */
TEST_F(ring, several_submitters)
{
	static uint8_t items[SUBMITTERS][PER_THREAD], ends[SUBMITTERS][PER_THREAD];
	struct submitter s[SUBMITTERS];
	uint32_t i, k, ended = 0, refused = 0;
	struct hawk_cqe cqe;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 64));
	for (i = 0; i < SUBMITTERS; i++) {
		s[i] = (struct submitter){ .fd = self->fd, .number = i };
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, submitter, &s[i]));
	}
	while (ended < SUBMITTERS * PER_THREAD) {
		ASSERT_TRUE(next_cqe(self->fd, self->ring, &cqe));
		i = cqe.user_data >> 16;
		k = cqe.user_data & 0xffff;
		ASSERT_TRUE(i < SUBMITTERS && k < PER_THREAD);
		if (cqe.flags == HAWK_CQE_ITEM) {
			EXPECT_EQ(0, cqe.status);
			EXPECT_EQ(0, ends[i][k]) TH_LOG("after the batch's end");
			items[i][k]++;
			continue;
		}
		EXPECT_EQ(HAWK_CQE_BATCH, cqe.flags);
		EXPECT_EQ(1 + k % 8, cqe.index);
		ends[i][k]++;
		ended++;
	}
	for (i = 0; i < SUBMITTERS; i++) {
		pthread_join(s[i].thread, NULL);
		EXPECT_EQ(0, s[i].wrong);
		refused += s[i].refused;
	}
	for (i = 0; i < SUBMITTERS * PER_THREAD; i++) {
		k = i % PER_THREAD;
		ASSERT_EQ(1, ends[i / PER_THREAD][k]) TH_LOG("%u", i);
		ASSERT_EQ(1 + k % 8, items[i / PER_THREAD][k]) TH_LOG("%u", i);
	}
	EXPECT_EQ(self->ring->head, self->ring->tail);
	EXPECT_LT(0, refused) TH_LOG("the ring was never full");
}

/* Nonsense in the ring hurts nobody but the one who wrote it. */
TEST_F(ring, ring_is_not_trusted)
{
	struct hawk_item it = key_item(0);
	uint64_t signals = 0, n;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 32));
	self->ring->head = 0x80000000;
	EXPECT_EQ(-EBUSY, submit(self->fd, HAWK_IOC_GET, 0, &it, 1, 1));
	self->ring->head = 0;
	self->ring->mask = ~0u;
	self->ring->tail = 12345;
	EXPECT_EQ(0, submit(self->fd, HAWK_IOC_GET, 0, &it, 1, 1));
	while (signals < 2) {
		struct pollfd p = { .fd = self->efd, .events = POLLIN };

		ASSERT_EQ(1, poll(&p, 1, 60000));
		ASSERT_EQ(8, read(self->efd, &n, sizeof(n)));
		signals += n;
	}
	/* the kernel goes by its own tail and mask */
	EXPECT_EQ(2, self->ring->tail);
	EXPECT_EQ(HAWK_CQE_ITEM, self->ring->cqe[0].flags);
	EXPECT_EQ(HAWK_CQE_BATCH, self->ring->cqe[1].flags);
	EXPECT_EQ(1, self->ring->cqe[1].index);
}

/* The file is closed with reads in flight: they end, and nothing of it stays. */
TEST_F(ring, close_in_flight)
{
	struct hawk_item it[32];
	uint32_t i;

	ASSERT_EQ(0, write_blocks(self->fd, self->win, 2 * HOST_BLOCKS));
	for (i = 0; i < 32; i++)
		it[i] = key_item(i);
	ASSERT_EQ(0, submit(self->fd, HAWK_IOC_GET, 0, it, 32, 1));
	/* teardown closes the file at once, and the tiers can go then: nobody has to try again */
}

TEST_HARNESS_MAIN
