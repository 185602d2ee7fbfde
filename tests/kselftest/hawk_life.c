// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_life.c - spaces: names, permissions, isolation, ends
 */
#define _GNU_SOURCE
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "hawk_named.h"

#define NAME	"test-life"

TEST_F(hawk, named_space_survives)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	int a = dev_open(O_RDWR), b;

	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 0));
	ASSERT_EQ(0, put_block(a, self->host, 1));
	close(a);
	/* the creator is gone; its bytes are not */
	EXPECT_LT(tier_free_bytes(self->ctl, self->host), HOST_BYTES);
	b = dev_open(O_RDWR);
	ASSERT_EQ(0, space_attach(b, NAME));
	ASSERT_EQ(0, dev_call(b, HAWK_IOC_SPACE_INFO, &info));
	EXPECT_STREQ(NAME, (char *)info.name);
	EXPECT_EQ(BLOCK, info.block_bytes);
	EXPECT_TRUE(has_block(b, self->host, 1));
	/* the name goes at once, the bytes with the last file */
	ASSERT_EQ(0, space_destroy(self->ctl, NAME));
	EXPECT_TRUE(has_block(b, self->host, 1));
	close(b);
	a = dev_open(O_RDWR);
	EXPECT_EQ(-ENOENT, space_attach(a, NAME));
	close(a);
}

TEST_F(hawk, pins_end_with_their_file)
{
	struct hawk_item it = { .lid = LID(2) };
	int a = dev_open(O_RDWR), b = dev_open(O_RDWR);

	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 0));
	ASSERT_EQ(0, space_attach(b, NAME));
	ASSERT_EQ(0, space_destroy(self->ctl, NAME));
	ASSERT_EQ(0, put_block(a, self->host, 1));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_PIN, LID(1)));
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_PIN, LID(1)));
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_PIN, LID(1)));
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_UNPIN, LID(1)));
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_UNPIN, LID(1)));
	EXPECT_EQ(-ESTALE, lid_call(b, HAWK_IOC_UNPIN, LID(1))) TH_LOG("this one is a's");
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_PIN, LID(1)));
	/* b fills a block that nobody else may publish, and dies with it */
	ASSERT_EQ(0, one(b, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(-ESTALE, lid_call(a, HAWK_IOC_PUT, LID(2)));
	EXPECT_EQ(2, stat_pinned(a));
	close(b);
	EXPECT_EQ(1, stat_pinned(a));
	EXPECT_EQ(-ENOENT, lid_call(a, HAWK_IOC_TRANSLATE, LID(2)));
	EXPECT_EQ(-EBUSY, lid_call(a, HAWK_IOC_FREE, LID(1)));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_UNPIN, LID(1)));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_FREE, LID(1)));
	close(a);
}

/* A holder can give its pin back by place, whatever others have done with the LID. */
TEST_F(hawk, unpin_by_place)
{
	struct hawk_item share = { .lid = LID(1), .arg = LID(2) }, it, other, write;
	int a = dev_open(O_RDWR), b = dev_open(O_RDWR);

	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 0));
	ASSERT_EQ(0, space_attach(b, NAME));
	ASSERT_EQ(0, space_destroy(self->ctl, NAME));
	ASSERT_EQ(0, put_block(a, self->host, 1));
	ASSERT_EQ(0, one(a, HAWK_IOC_FORK, 0, &share));
	it = (struct hawk_item){ .lid = LID(1) };
	ASSERT_EQ(0, one(b, HAWK_IOC_PIN, 0, &it));
	ASSERT_EQ(0, one(b, HAWK_IOC_PIN, 0, &it));
	/* a writes under LID(1): the block that b has pinned loses it */
	write = (struct hawk_item){ .lid = LID(1) };
	ASSERT_EQ(0, one(a, HAWK_IOC_PIN, 0, &write));
	write.vt = 0;
	ASSERT_EQ(0, one(a, HAWK_IOC_UNSHARE, 0, &write));
	EXPECT_NE(it.vt, write.vt);
	EXPECT_EQ(-ESTALE, lid_call(b, HAWK_IOC_UNPIN, LID(1)));
	other = (struct hawk_item){ .vt = it.vt };
	EXPECT_EQ(0, one(b, HAWK_IOC_UNPIN, 0, &other));
	EXPECT_EQ(2, stat_pinned(a));
	EXPECT_EQ(0, one(b, HAWK_IOC_UNPIN, 0, &other));
	EXPECT_EQ(1, stat_pinned(a)) TH_LOG("a's, on its private block");
	EXPECT_EQ(-ESTALE, one(b, HAWK_IOC_UNPIN, 0, &other)) TH_LOG("no more pins");
	/* a place where nothing lies, another generation, none at all, a's pin */
	other.vt = it.vt + HOST_BLOCKS;
	EXPECT_EQ(-ESTALE, one(b, HAWK_IOC_UNPIN, 0, &other));
	other.vt = ~0ull;
	EXPECT_EQ(-ESTALE, one(b, HAWK_IOC_UNPIN, 0, &other));
	other.vt = write.vt ^ 1ull << 32;
	EXPECT_EQ(-ESTALE, one(a, HAWK_IOC_UNPIN, 0, &other));
	other.vt = write.vt;
	EXPECT_EQ(-ESTALE, one(b, HAWK_IOC_UNPIN, 0, &other));
	other.vt = write.vt;
	EXPECT_EQ(0, one(a, HAWK_IOC_UNPIN, 0, &other)) TH_LOG("gives the block up");
	other.vt = 0;
	EXPECT_EQ(-ENOENT, one(b, HAWK_IOC_UNPIN, 0, &other));
	EXPECT_EQ(0, stat_pinned(a));
	close(b);
	close(a);
}

TEST_F(hawk, leases_end_with_their_file_or_in_time)
{
	struct hawk_item by = key_item(1);
	struct hawk_batch b = {
		.size = sizeof(b), .flags = HAWK_BATCH_LEASE, .count = 1,
		.items = (uintptr_t)&by, .tier = HAWK_TIER_ANY,
	};
	int a = dev_open(O_RDWR), c = dev_open(O_RDWR), ret;
	uint64_t term = 50000000;

	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 0));
	ASSERT_EQ(0, space_attach(c, NAME));
	ASSERT_EQ(0, space_destroy(self->ctl, NAME));
	ASSERT_EQ(0, put_block(a, self->host, 1));
	ASSERT_EQ(0, dev_call(c, HAWK_IOC_LOOKUP, &b));
	ASSERT_NE(0, b.lease);
	EXPECT_EQ(-EBUSY, lid_call(a, HAWK_IOC_FREE, LID(1)));
	close(c);
	/* and one that is left to expire; a machine that stands still may miss all of it */
	do {
		term *= 2;
		b.deadline_ns = now_ns() + term;
		ret = dev_call(a, HAWK_IOC_LOOKUP, &b);
	} while (ret == -EINVAL && now_ns() > b.deadline_ns && term < 60000000000ull);
	ASSERT_EQ(0, ret);
	ASSERT_NE(0, b.lease);
	do {
		poll(NULL, 0, 10);
		ret = lid_call(a, HAWK_IOC_FREE, LID(1));
	} while (ret == -EBUSY);
	EXPECT_EQ(0, ret);
	EXPECT_GE(now_ns(), b.deadline_ns);
	close(a);
}

/* The child's view of the space as another user: bits 1 attach, 2 write, 4 destroy. */
static int access_as(int uid, int gid)
{
	struct hawk_item it = { .lid = LID(50) };
	int status = -1, fd = dev_open(O_RDWR), may;

	if (!fork()) {
		if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
			_exit(100);
		may = space_attach(fd, NAME) == 0;
		if (may && one(fd, HAWK_IOC_ALLOC, 0, &it) == 0)
			may |= 2;
		if (space_destroy(fd, NAME) == (may ? -EPERM : -ENOENT))
			may |= 4;
		_exit(may);
	}
	wait(&status);
	close(fd);
	return WEXITSTATUS(status);
}

TEST_F(hawk, permissions)
{
	static const struct {
		uint32_t mode;
		int group, other;
	} c[] = {
		{ 0600, 0, 0 }, { 0640, 1, 0 }, { 0660, 3, 0 }, { 0664, 3, 1 }, { 0666, 3, 3 },
		{ 0606, 0, 3 },	/* the group's bits count for the group */
	};
	unsigned int i;
	int fd;

	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		fd = dev_open(O_RDWR);
		ASSERT_EQ(0, named_create(fd, self->host, NAME, c[i].mode, 0));
		EXPECT_EQ(c[i].group | 4, access_as(NOBODY, 0)) TH_LOG("%o", c[i].mode);
		EXPECT_EQ(c[i].other | 4, access_as(NOBODY, NOBODY)) TH_LOG("%o", c[i].mode);
		close(fd);
		ASSERT_EQ(0, space_destroy(self->ctl, NAME));
	}
}

/* Two spaces with the same LIDs and keys know nothing of each other. */
TEST_F(hawk, isolation)
{
	struct hawk_space_create sc = space_args(64);
	struct hawk_item by = key_item(1);
	int b = dev_open(O_RDWR);

	sc.quota[self->host].max_bytes = 2 * MIB;
	ASSERT_EQ(0, put_block(self->fd, self->host, 1));
	ASSERT_EQ(0, dev_call(b, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-ENOENT, one(b, HAWK_IOC_LOOKUP, 0, &by));
	EXPECT_EQ(-ENOENT, one(b, HAWK_IOC_GET, 0, &by));
	EXPECT_EQ(-ENOENT, lid_call(b, HAWK_IOC_TRANSLATE, LID(1)));
	EXPECT_EQ(-ENOENT, lid_call(b, HAWK_IOC_FREE, LID(1)));
	EXPECT_EQ(0, stats_of(b).blocks);
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_ALLOC, LID(1)));
	EXPECT_TRUE(has_block(self->fd, self->host, 1));
	close(b);
}

/* The bytes of a space that has ended are not there for the next one. */
TEST_F(hawk, freed_frames_are_zero)
{
	struct hawk_space_create sc = space_args(HOST_BLOCKS);
	struct hawk_item *it = calloc(HOST_BLOCKS, sizeof(*it));
	static const uint8_t zero[BLOCK];
	struct hawk_batch b;
	int fd, round;
	uint8_t *win;
	uint32_t i;

	close(self->fd);
	munmap(self->win, HOST_BYTES);
	for (round = 0; round < 4; round++) {
		fd = dev_open(O_RDWR);
		/* a reserved quota is waited for at creation, another at ALLOC */
		sc.quota[self->host].min_bytes = round & 1 ? HOST_BYTES : 0;
		sc.quota[self->host].max_bytes = HOST_BYTES;
		/* the whole tier: what the last round used is part of it */
		ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc)) TH_LOG("%d", round);
		win = map_area(fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ | PROT_WRITE);
		ASSERT_NE(NULL, win);
		for (i = 0; i < HOST_BLOCKS; i++)
			it[i] = (struct hawk_item){ .lid = LID(i) };
		ASSERT_EQ(0, batch(fd, HAWK_IOC_ALLOC, 0, it, HOST_BLOCKS, &b));
		ASSERT_EQ(HOST_BLOCKS, b.done);
		for (i = 0; i < HOST_BLOCKS; i++) {
			uint8_t *frame = frame_at(win, it[i].vt, BLOCK);

			ASSERT_EQ(0, memcmp(frame, zero, BLOCK)) TH_LOG("%d: %u", round, i);
			memset(frame, 0xee, BLOCK);
		}
		munmap(win, HOST_BYTES);
		close(fd);
	}
	free(it);
	self->fd = dev_open(O_RDWR);
	self->win = mmap(NULL, HOST_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST_HARNESS_MAIN
