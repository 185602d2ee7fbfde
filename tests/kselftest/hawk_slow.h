/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_slow.h - a space whose flash is a slow drive, for what happens meanwhile
 *
 * HAWK_TEST_SLOWDEV is a block device that takes a good part of a second for each
 * transfer.  The host tier holds half of the blocks, so the first half is on it.
 */
#ifndef HAWK_SLOW_H
#define HAWK_SLOW_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define SLOW_BLOCK	(256u << 10)
#define HOST_BYTES	(2 * MIB)
#define HOST_BLOCKS	((uint32_t)(HOST_BYTES / SLOW_BLOCK))
#define FLASH_BYTES	(16 * MIB)
#define ENTRIES		64u

FIXTURE(slow) {
	int ctl;
	int fd;
	uint32_t host;
	uint32_t blk;
	uint8_t *win;
	struct hawk_ring *ring;
	size_t ring_bytes;
};

/* Blocks @first .. with their number as key and pattern; all fit the host tier. */
static inline int slow_write(int fd, uint8_t *win, uint32_t first)
{
	struct hawk_item it[HOST_BLOCKS];
	struct hawk_batch b;
	uint32_t i;

	for (i = 0; i < HOST_BLOCKS; i++)
		it[i] = (struct hawk_item){ .lid = LID(first + i) };
	if (batch(fd, HAWK_IOC_ALLOC, 0, it, HOST_BLOCKS, &b) || b.done != HOST_BLOCKS)
		return -1;
	for (i = 0; i < HOST_BLOCKS; i++) {
		fill(frame_at(win, it[i].vt, SLOW_BLOCK), SLOW_BLOCK, first + i);
		set_key(&it[i], first + i);
	}
	return batch(fd, HAWK_IOC_PUT, 0, it, HOST_BLOCKS, &b) || b.done != HOST_BLOCKS ? -2 : 0;
}

FIXTURE_SETUP(slow)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = ENTRIES, .eventfd = -1 };
	struct hawk_space_create sc = space_args(256);

	if (!getenv("HAWK_TEST_SLOWDEV"))
		SKIP(return, "HAWK_TEST_SLOWDEV is not set");
	self->ctl = dev_open(O_RDWR);
	self->fd = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, getenv("HAWK_TEST_SLOWDEV"), FLASH_BYTES, &self->blk));
	sc.block_bytes = SLOW_BLOCK;
	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_RING_SETUP, &rs));
	self->ring_bytes = rs.ring_bytes;
	self->ring = map_area(self->fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->ring);
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
	ASSERT_EQ(0, slow_write(self->fd, self->win, 0));
	ASSERT_EQ(0, slow_write(self->fd, self->win, HOST_BLOCKS));
}

FIXTURE_TEARDOWN(slow)
{
	munmap(self->win, HOST_BYTES);
	munmap(self->ring, self->ring_bytes);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
}

/* @n blocks from @first on, by key. */
static inline void slow_items(struct hawk_item *it, uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		it[i] = key_item(first + i);
}

static inline struct hawk_batch slow_batch(struct hawk_item *it, uint32_t n, uint64_t user_data)
{
	return (struct hawk_batch) {
		.size = sizeof(struct hawk_batch), .count = n, .items = (uintptr_t)it,
		.user_data = user_data, .tier = HAWK_TIER_ANY,
	};
}

static inline int cancel(int fd, uint32_t flags, uint64_t user_data, uint32_t *batches)
{
	struct hawk_cancel c = { .size = sizeof(c), .flags = flags, .user_data = user_data };
	int ret = dev_call(fd, HAWK_IOC_CANCEL, &c);

	if (batches)
		*batches = c.batches;
	return ret;
}

#endif /* HAWK_SLOW_H */
