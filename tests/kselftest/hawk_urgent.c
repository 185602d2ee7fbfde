// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_urgent.c - reloads from a slow drive: urgent ones have it first, late ones are counted
 */
#include "hawk_slow.h"

/* Frames are free: what is reloaded needs no write. */
static int make_room(int fd)
{
	uint32_t i;
	int ret = 0;

	for (i = HOST_BLOCKS; !ret && i < 2 * HOST_BLOCKS; i++)
		ret = lid_call(fd, HAWK_IOC_FREE, LID(i));
	return ret;
}

static int reload(int fd, uint32_t n, uint32_t flags, uint64_t deadline, int *status)
{
	struct hawk_item it = key_item(n);
	struct hawk_batch b = slow_batch(&it, 1, 1);
	int ret;

	b.flags = flags;
	b.deadline_ns = deadline;
	ret = dev_call(fd, HAWK_IOC_RELOAD, &b);
	*status = it.status;
	return ret;
}

static int64_t deliveries(void)
{
	char buf[32] = "";
	int fd = open("/sys/class/misc/hawk/pace/deliveries", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	close(fd);
	return n > 0 ? strtoll(buf, NULL, 10) : -1;
}

/* Until its completions are there; they are not looked at. */
static bool reaped(int fd, struct hawk_ring *r)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool batch = false;

	while (!batch) {
		while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == r->head)
			if (poll(&p, 1, 60000) != 1)
				return false;
		batch = r->cqe[r->head & r->mask].flags == HAWK_CQE_BATCH;
		__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
	}
	return true;
}

static bool right(int fd, uint8_t *win, uint32_t n)
{
	struct hawk_item it = key_item(n);
	bool good;

	if (one(fd, HAWK_IOC_GET, 0, &it))
		return false;
	good = filled(frame_at(win, it.vt, SLOW_BLOCK), SLOW_BLOCK, n);
	it = (struct hawk_item){ .lid = it.lid, .vt = it.vt };
	return !one(fd, HAWK_IOC_UNPIN, 0, &it) && good;
}

/* Who comes while an urgent read is out does not begin one; both come. */
TEST_F(slow, urgent_first)
{
	uint32_t n;
	int status;

	ASSERT_EQ(0, make_room(self->fd));
	/* the machine may be so slow that the urgent one has come before the other asks */
	for (n = 0; n < HOST_BLOCKS && !stats_of(self->fd).paced_waits; n += 2) {
		ASSERT_EQ(0, reload(self->fd, n, HAWK_BATCH_URGENT | HAWK_BATCH_ASYNC, 0,
				    &status));
		while (!deliveries() && __atomic_load_n(&self->ring->tail, __ATOMIC_ACQUIRE) ==
		       self->ring->head)
			;
		ASSERT_EQ(0, reload(self->fd, n + 1, 0, 0, &status));
		EXPECT_EQ(0, status);
		ASSERT_TRUE(reaped(self->fd, self->ring));
		EXPECT_TRUE(right(self->fd, self->win, n)) TH_LOG("block %u", n);
		EXPECT_TRUE(right(self->fd, self->win, n + 1)) TH_LOG("block %u", n + 1);
	}
	EXPECT_LT(0, stats_of(self->fd).paced_waits);
	EXPECT_EQ(0, stats_of(self->fd).late);
}

/* A reload that comes after its deadline was late, also if nobody waited so long. */
TEST_F(slow, late)
{
	int status;

	ASSERT_EQ(0, make_room(self->fd));
	ASSERT_EQ(0, reload(self->fd, 0, 0, now_ns() + 20000000, &status));
	EXPECT_EQ(-ETIME, status);
	while (deliveries())
		poll(NULL, 0, 10);
	EXPECT_EQ(1, stats_of(self->fd).late);
	EXPECT_TRUE(right(self->fd, self->win, 0));
}

TEST_HARNESS_MAIN
