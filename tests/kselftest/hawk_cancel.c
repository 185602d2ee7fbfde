// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_cancel.c - batches that wait for a slow drive: canceled, out of time, killed
 *
 * Whether a transfer or the end of patience comes first is not for a test to say:
 * each item must end in one of the two ways, once, and leave what that way leaves.
 * What has to be seen at least once is tried again.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "hawk_slow.h"

#define TRIES	20

static int submit(int fd, struct hawk_item *it, uint32_t n, uint32_t flags, uint64_t user_data)
{
	struct hawk_batch b = slow_batch(it, n, user_data);

	b.flags = HAWK_BATCH_ASYNC | flags;
	return dev_call(fd, HAWK_IOC_GET, &b);
}

/**
 * struct seen - completions of one batch
 * @items: how often each item came
 * @good: with status 0 and the right bytes
 * @canceled: with ECANCELED
 * @other: neither
 * @batch: ends of the batch; @last: @good as that said
 */
struct seen {
	uint32_t items[HOST_BLOCKS];
	uint32_t good, canceled, other, batch, last;
};

static void see(uint8_t *win, const struct hawk_cqe *cqe, struct seen *s)
{
	uint32_t n;

	if (cqe->flags == HAWK_CQE_BATCH) {
		s->batch++;
		s->last = cqe->index;
		return;
	}
	s->items[cqe->index % HOST_BLOCKS]++;
	if (cqe->status == -ECANCELED) {
		s->canceled++;
		return;
	}
	n = (cqe->lid & 0xffffffff) / TOKENS;
	if (!cqe->status && filled(frame_at(win, cqe->vt, SLOW_BLOCK), SLOW_BLOCK, n))
		s->good++;
	else
		s->other++;
}

/* Takes completions until each of @n batches, user_data 1 and up, has ended. */
static bool reap(int fd, struct hawk_ring *r, uint8_t *win, struct seen *s, uint32_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint32_t ended = 0;

	memset(s, 0, n * sizeof(*s));
	while (ended < n) {
		while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == r->head)
			if (poll(&p, 1, 60000) != 1)
				return false;
		see(win, &r->cqe[r->head & r->mask], &s[r->cqe[r->head & r->mask].user_data - 1]);
		ended += r->cqe[r->head & r->mask].flags == HAWK_CQE_BATCH;
		__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
	}
	return true;
}

#define EXPECT_WHOLE(s, n)							\
	do {									\
		uint32_t _i;							\
										\
		EXPECT_EQ(1, (s)->batch);					\
		EXPECT_EQ((s)->last, (s)->good);				\
		EXPECT_EQ(0, (s)->other);					\
		EXPECT_EQ(n, (s)->good + (s)->canceled);			\
		for (_i = 0; _i < (n); _i++)					\
			EXPECT_EQ(1, (s)->items[_i]) TH_LOG("item %u", _i);	\
	} while (0)

/* Pins of @n blocks from @first on are given back, if they were taken. */
static void unpin(int fd, uint32_t first, uint32_t n)
{
	while (n--)
		lid_call(fd, HAWK_IOC_UNPIN, LID(first + n));
}

TEST_F(slow, cancel_rejects)
{
	EXPECT_EQ(-EINVAL, cancel(self->fd, HAWK_CANCEL_ALL, 1, NULL));
	EXPECT_EQ(-ENOENT, cancel(self->fd, HAWK_CANCEL_ALL, 0, NULL));
	EXPECT_EQ(-ENOENT, cancel(self->fd, 0, 0, NULL));
}

/* Every completion still comes, once; a block that was not fetched can be fetched. */
TEST_F(slow, canceled_batch_loses_nothing)
{
	struct hawk_item it[4], again;
	uint32_t canceled = 0, batches, i;
	struct seen s;
	int ret, t;

	for (t = 0; t < TRIES && !canceled; t++) {
		slow_items(it, t % 2 ? 0 : HOST_BLOCKS / 2, 4);
		ASSERT_EQ(0, submit(self->fd, it, 4, 0, 1));
		ret = cancel(self->fd, 0, 1, &batches);
		EXPECT_TRUE(ret == -ENOENT || (!ret && batches == 1)) TH_LOG("%d", ret);
		ASSERT_TRUE(reap(self->fd, self->ring, self->win, &s, 1));
		EXPECT_WHOLE(&s, 4);
		EXPECT_EQ(s.good, stat_pinned(self->fd));
		canceled += s.canceled;
		unpin(self->fd, t % 2 ? 0 : HOST_BLOCKS / 2, 4);
	}
	EXPECT_NE(0, canceled);
	EXPECT_EQ(0, stat_pinned(self->fd));
	for (i = 0; i < 4; i++) {
		again = key_item(i);
		EXPECT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &again)) TH_LOG("block %u", i);
		EXPECT_TRUE(filled(frame_at(self->win, again.vt, SLOW_BLOCK), SLOW_BLOCK, i));
		again.flags = 0;
		EXPECT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &again));
	}
}

/* Others go on. */
TEST_F(slow, cancel_is_by_user_data)
{
	struct hawk_item it[2][3];
	struct seen s[2];

	slow_items(it[0], 0, 3);
	slow_items(it[1], 3, 3);
	ASSERT_EQ(0, submit(self->fd, it[0], 3, 0, 1));
	ASSERT_EQ(0, submit(self->fd, it[1], 3, 0, 2));
	EXPECT_EQ(-ENOENT, cancel(self->fd, 0, 3, NULL));
	cancel(self->fd, 0, 1, NULL);
	ASSERT_TRUE(reap(self->fd, self->ring, self->win, s, 2));
	EXPECT_WHOLE(&s[0], 3);
	EXPECT_WHOLE(&s[1], 3);
	EXPECT_EQ(3, s[1].good) TH_LOG("it was not told to stop");
	EXPECT_EQ(s[0].good + 3, stat_pinned(self->fd));
}

TEST_F(slow, cancel_all_of_this_file)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = self->fd,
	};
	int other = dev_open(O_RDWR);
	struct hawk_item it[4][2];
	struct seen s[4];
	uint32_t i;

	ASSERT_EQ(0, dev_call(other, HAWK_IOC_SPACE_ATTACH, &at));
	for (i = 0; i < 4; i++) {
		slow_items(it[i], 2 * i, 2);
		ASSERT_EQ(0, submit(self->fd, it[i], 2, i & 1 ? HAWK_BATCH_PREFIX : 0, i + 1));
	}
	EXPECT_EQ(-ENOENT, cancel(other, HAWK_CANCEL_ALL, 0, NULL)) TH_LOG("not another's");
	cancel(self->fd, HAWK_CANCEL_ALL, 0, NULL);
	ASSERT_TRUE(reap(self->fd, self->ring, self->win, s, 4));
	for (i = 0; i < 4; i++)
		EXPECT_WHOLE(&s[i], 2);
	EXPECT_EQ(-ENOENT, cancel(self->fd, HAWK_CANCEL_ALL, 0, NULL));
	close(other);
}

/* ---- deadlines ---- */

/* A deadline in the past: what needs no transfer is had, the rest is not waited for. */
TEST_F(slow, past_deadline)
{
	struct hawk_item it[2] = { key_item(2 * HOST_BLOCKS - 1), key_item(0) };
	struct hawk_batch b = slow_batch(it, 2, 0);

	b.deadline_ns = 1;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GET, &b));
	EXPECT_EQ(0, it[0].status);
	EXPECT_EQ(-ETIME, it[1].status);
	EXPECT_EQ(1, b.done);
	EXPECT_EQ(1, stat_pinned(self->fd));
	it[0].flags = 0;
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &it[0]));
}

/* It passes while the drive works; the transfer ends by itself and is of use later. */
TEST_F(slow, deadline_during_a_transfer)
{
	struct hawk_item it[2];
	struct hawk_batch b;
	uint32_t late = 0;
	int t;

	for (t = 0; t < TRIES && !late; t++) {
		slow_items(it, t % 2 ? 0 : 4, 2);
		b = slow_batch(it, 2, 0);
		b.deadline_ns = now_ns() + 1000000;
		ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GET, &b));
		late += (it[0].status == -ETIME) + (it[1].status == -ETIME);
		EXPECT_EQ(b.done, stat_pinned(self->fd));
		unpin(self->fd, t % 2 ? 0 : 4, 2);
	}
	EXPECT_NE(0, late);
	slow_items(it, 0, 2);
	b = slow_batch(it, 2, 0);
	b.deadline_ns = now_ns() + 120000000000ull;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_GET, &b));
	EXPECT_EQ(2, b.done);
	EXPECT_TRUE(filled(frame_at(self->win, it[1].vt, SLOW_BLOCK), SLOW_BLOCK, 1));
	unpin(self->fd, 0, 2);
}

/* ---- signals and death ---- */

static void nothing(int sig)
{
}

TEST_F(slow, signal_ends_the_wait)
{
	struct sigaction sa = { .sa_handler = nothing };	/* no SA_RESTART */
	struct hawk_item it[4];
	struct hawk_batch b;
	bool interrupted = false;
	int t, ret;
	pid_t pid;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	for (t = 0; t < TRIES && !interrupted; t++) {
		pid = fork();
		if (!pid)
			for (;;)	/* until it is killed */
				kill(getppid(), SIGUSR1);
		slow_items(it, t % 2 ? 0 : 4, 4);
		b = slow_batch(it, 4, 0);
		ret = dev_call(self->fd, HAWK_IOC_GET, &b);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		EXPECT_TRUE(ret == 0 || ret == -EINTR) TH_LOG("%d", ret);
		interrupted = ret == -EINTR;
		unpin(self->fd, t % 2 ? 0 : 4, 4);
	}
	EXPECT_TRUE(interrupted);
	EXPECT_EQ(0, stat_pinned(self->fd));
}

/* Killed while it waits: its file ends, the transfers too, the space is as before. */
TEST_F(slow, killed_while_waiting)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = self->fd,
	};
	struct hawk_item it[HOST_BLOCKS];
	int status, go[2], async;
	pid_t pid;
	char c;

	for (async = 0; async < 2; async++) {
		ASSERT_EQ(0, pipe(go));
		pid = fork();
		if (!pid) {
			struct hawk_ring_setup rs = {
				.size = sizeof(rs), .entries = ENTRIES, .eventfd = -1,
			};
			struct hawk_batch b = slow_batch(it, HOST_BLOCKS, 1);
			int fd = dev_open(O_RDWR);

			b.flags = async ? HAWK_BATCH_ASYNC : 0;
			slow_items(it, 0, HOST_BLOCKS);
			if (dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at) ||
			    dev_call(fd, HAWK_IOC_RING_SETUP, &rs) || write(go[1], "g", 1) != 1)
				_exit(1);
			dev_call(fd, HAWK_IOC_GET, &b);
			for (;;)
				pause();
		}
		ASSERT_EQ(1, read(go[0], &c, 1));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		/* what its batch holds is given back when that has given up */
		while (stat_pinned(self->fd))
			poll(NULL, 0, 5);
		close(go[0]);
		close(go[1]);
	}
	slow_items(it, 0, 4);
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_GET, 0, it, 4, NULL));
	EXPECT_EQ(0, it[3].status);
	EXPECT_TRUE(filled(frame_at(self->win, it[3].vt, SLOW_BLOCK), SLOW_BLOCK, 3));
	unpin(self->fd, 0, 4);
}

TEST_HARNESS_MAIN
