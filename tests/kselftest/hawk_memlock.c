// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_memlock.c - pinned blocks count against RLIMIT_MEMLOCK
 *
 * The tests run as nobody, who has no CAP_IPC_LOCK and nothing else locked; the
 * group of /dev/hawk lets it open the device.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "hawk_fixture.h"

static void as_nobody(void)
{
	if (setresuid(NOBODY, NOBODY, 0))
		abort();
}

static void as_root(void)
{
	if (setresuid(0, 0, 0))
		abort();
}

/* A limit of so many blocks. */
static int limit_blocks(uint32_t n)
{
	struct rlimit r = { .rlim_cur = n * BLOCK, .rlim_max = RLIM_INFINITY };

	return prlimit(0, RLIMIT_MEMLOCK, &r, NULL);
}

static int attach_fd(int fd, int other)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = other,
	};

	return dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at);
}

/* Another file on the fixture's space, opened by nobody. */
static int open_as_nobody(int space)
{
	int fd;

	as_nobody();
	fd = dev_open(O_RDWR);
	as_root();
	if (fd >= 0 && attach_fd(fd, space))
		return -1;
	return fd;
}

static struct hawk_pin_query query(int fd, uint32_t count, const uint64_t *lids)
{
	struct hawk_pin_query q = {
		.size = sizeof(q), .count = count, .lids = (uintptr_t)lids,
	};

	if (dev_call(fd, HAWK_IOC_PIN_QUERY, &q))
		memset(&q, 0xee, sizeof(q));
	return q;
}

/* Blocks charged to the user of a file. */
static uint64_t used_blocks(int fd)
{
	return query(fd, 1, NULL).used_bytes / BLOCK;
}

static int put_blocks(int fd, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (lid_call(fd, HAWK_IOC_ALLOC, LID(i)) || lid_call(fd, HAWK_IOC_PUT, LID(i)))
			return -1;
	return 0;
}

TEST_F(hawk, pin_query_rejects)
{
	struct hawk_pin_query ok = { .size = sizeof(ok), .count = 1 }, q;

	q = ok, q.count = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_PIN_QUERY, &q));
	q = ok, q.count = HAWK_BATCH_MAX + 1;
	EXPECT_EQ(-E2BIG, dev_call(self->fd, HAWK_IOC_PIN_QUERY, &q));
	q = ok, q.lids = 8;
	EXPECT_EQ(-EFAULT, dev_call(self->fd, HAWK_IOC_PIN_QUERY, &q));
	q = ok, q.count = HAWK_BATCH_MAX;
	EXPECT_EQ(0, dev_call(self->fd, HAWK_IOC_PIN_QUERY, &q));
	EXPECT_EQ(HAWK_BATCH_MAX * (uint64_t)BLOCK, q.need_bytes);
}

/* Once per block and file, back before the call returns that gives up the pin. */
TEST_F(hawk, charged_once_and_given_back)
{
	uint64_t lids[4] = { LID(0), LID(1), LID(2), LID(99) };
	int a, b;

	ASSERT_EQ(0, put_blocks(self->fd, 4));
	ASSERT_EQ(0, limit_blocks(100));
	a = open_as_nobody(self->fd);
	b = open_as_nobody(self->fd);
	ASSERT_GE(b, 0);
	EXPECT_EQ(0, used_blocks(a));
	EXPECT_EQ(4 * BLOCK, query(a, 4, lids).need_bytes);
	EXPECT_EQ(100 * BLOCK, query(a, 4, lids).limit_bytes);
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_GET, LID(0)));
	EXPECT_EQ(1, used_blocks(a)) TH_LOG("twice by one file");
	EXPECT_EQ(3 * BLOCK, query(a, 4, lids).need_bytes);
	EXPECT_EQ(4 * BLOCK, query(b, 4, lids).need_bytes);
	EXPECT_EQ(0, lid_call(b, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(2, used_blocks(a)) TH_LOG("by two files");
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_UNPIN, LID(0)));
	EXPECT_EQ(2, used_blocks(b)) TH_LOG("a has one more");
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_UNPIN, LID(0)));
	EXPECT_EQ(1, used_blocks(b));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_ALLOC, LID(5)));
	EXPECT_EQ(2, used_blocks(b));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_PUT, LID(5)));
	EXPECT_EQ(1, used_blocks(b));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_ALLOC, LID(6)));
	EXPECT_EQ(0, lid_call(a, HAWK_IOC_PIN, LID(1)));
	EXPECT_EQ(3, used_blocks(b));
	close(a);
	EXPECT_EQ(1, used_blocks(b)) TH_LOG("close gives back what was left");
	close(b);
	a = open_as_nobody(self->fd);
	EXPECT_EQ(0, used_blocks(a));
	close(a);
}

TEST_F(hawk, refused_at_the_limit)
{
	struct hawk_item it[6];
	struct hawk_batch b;
	uint32_t i;
	int fd;

	ASSERT_EQ(0, limit_blocks(4));
	fd = open_as_nobody(self->fd);
	for (i = 0; i < 6; i++)
		it[i] = (struct hawk_item){ .lid = LID(i) };
	ASSERT_EQ(0, batch(fd, HAWK_IOC_ALLOC, 0, it, 6, &b));
	EXPECT_EQ(4, b.done);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(i < 4 ? 0 : -ENOMEM, it[i].status) TH_LOG("%u", i);
	EXPECT_EQ(4, stats_of(fd).blocks) TH_LOG("the refused ones are not there");
	EXPECT_EQ(4, used_blocks(fd));
	for (i = 0; i < 4; i++)
		it[i].vt = 0;
	ASSERT_EQ(0, batch(fd, HAWK_IOC_PUT, HAWK_BATCH_KEEP_PIN, it, 4, &b));
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_PIN, LID(0))) TH_LOG("no new block");
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_ALLOC, LID(8)));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PUT, LID(8))) TH_LOG("root's file is exempt");
	EXPECT_EQ(-ENOMEM, lid_call(fd, HAWK_IOC_PIN, LID(8)));
	EXPECT_EQ(-ENOMEM, lid_call(fd, HAWK_IOC_GET, LID(8)));
	EXPECT_EQ(4, stat_pinned(fd));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(8))) TH_LOG("no pin is left");
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_UNPIN, LID(3)));
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_ALLOC, LID(9)));
	EXPECT_EQ(-ENOMEM, lid_call(fd, HAWK_IOC_PIN, LID(3)));
	/* a higher limit counts at once */
	ASSERT_EQ(0, limit_blocks(5));
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_PIN, LID(3)));
	EXPECT_EQ(-ENOMEM, lid_call(fd, HAWK_IOC_ALLOC, LID(10)));
	close(fd);
}

/* UNSHARE moves the pin with its charge; only a pin that stays behind costs one more. */
TEST_F(hawk, unshare_at_the_limit)
{
	struct hawk_item it = { .lid = LID(0), .arg = LID(50) };
	int fd;

	ASSERT_EQ(0, put_blocks(self->fd, 1));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_FORK, 0, &it));
	ASSERT_EQ(0, limit_blocks(1));
	fd = open_as_nobody(self->fd);
	ASSERT_EQ(0, lid_call(fd, HAWK_IOC_PIN, LID(0)));
	ASSERT_EQ(0, lid_call(fd, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(-ENOMEM, lid_call(fd, HAWK_IOC_UNSHARE, LID(0))) TH_LOG("the other stays");
	EXPECT_EQ(1, used_blocks(fd));
	EXPECT_EQ(1, stats_of(fd).blocks) TH_LOG("nothing was done");
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_UNPIN, LID(0)));
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_UNSHARE, LID(0)));
	EXPECT_EQ(1, used_blocks(fd));
	EXPECT_EQ(2, stats_of(fd).blocks);
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_PUT, LID(0)));
	EXPECT_EQ(0, used_blocks(fd));
	close(fd);
}

/* What counts is who opened the file, not who uses it. */
TEST_F(hawk, charged_to_the_opener)
{
	int fd;

	ASSERT_EQ(0, put_blocks(self->fd, 2));
	ASSERT_EQ(0, limit_blocks(1));
	fd = open_as_nobody(self->fd);
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(-ENOMEM, lid_call(fd, HAWK_IOC_PIN, LID(1))) TH_LOG("we are root now");
	EXPECT_EQ(1, used_blocks(fd));
	as_nobody();
	EXPECT_EQ(HAWK_NO_LIMIT, query(self->fd, 1, NULL).limit_bytes);
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(1))) TH_LOG("root opened it");
	EXPECT_EQ(1, used_blocks(fd));
	as_root();
	close(fd);
}

/* An asynchronous batch is held to its submitter's limit, not to a kernel thread's. */
TEST_F(hawk, asynchronous_batch)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 8, .eventfd = -1 };
	struct hawk_item it[2] = { { .lid = LID(0) }, { .lid = LID(1) } };
	struct hawk_ring *ring;
	int fd, refused = 0;
	uint32_t i;

	ASSERT_EQ(0, put_blocks(self->fd, 2));
	ASSERT_EQ(0, limit_blocks(1));
	fd = open_as_nobody(self->fd);
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	ring = map_area(fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, ring);
	ASSERT_EQ(0, batch(fd, HAWK_IOC_GET, HAWK_BATCH_ASYNC, it, 2, NULL));
	while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) != 3) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		ASSERT_EQ(1, poll(&p, 1, 60000));
		sched_yield();
	}
	for (i = 0; i < 2; i++)
		refused += ring->cqe[i].status == -ENOMEM;
	EXPECT_EQ(1, refused);
	EXPECT_EQ(1, used_blocks(fd));
	munmap(ring, rs.ring_bytes);
	close(fd);
}

/* Lines of the kernel's log that speak of the limit, from where @kmsg is. */
static int limit_lines(int kmsg, char *last, size_t size)
{
	char line[1024];
	int found = 0;
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0) {
		line[n] = 0;
		if (!strstr(line, "RLIMIT_MEMLOCK"))
			continue;
		snprintf(last, size, "%s", line);
		found++;
	}
	return found;
}

TEST_F(hawk, one_line_in_the_log_per_file)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), fd, i;
	char line[1024] = "", want[64];

	ASSERT_GE(kmsg, 0);
	ASSERT_LE(0, lseek(kmsg, 0, SEEK_END));
	ASSERT_EQ(0, limit_blocks(2));
	fd = open_as_nobody(self->fd);
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_ALLOC, LID(0)));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(i ? -ENOMEM : 0, lid_call(fd, HAWK_IOC_ALLOC, LID(1 + i)));
	EXPECT_EQ(1, limit_lines(kmsg, line, sizeof(line)));
	snprintf(want, sizeof(want), "needs %u KiB", BLOCK / 1024);
	EXPECT_NE(NULL, strstr(line, want)) TH_LOG("%s", line);
	snprintf(want, sizeof(want), "is %u KiB", 2 * BLOCK / 1024);
	EXPECT_NE(NULL, strstr(line, want)) TH_LOG("%s", line);
	snprintf(want, sizeof(want), "user %u has %u KiB", NOBODY, 2 * BLOCK / 1024);
	EXPECT_NE(NULL, strstr(line, want)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "ulimit -l")) TH_LOG("%s", line);
	close(fd);
	close(kmsg);
}

#define RACERS	4
#define RACED	16u

struct racer {
	pthread_t thread;
	int fd;
	unsigned int seed;
	uint64_t refused;
	int wrong;
};

static void *race(void *arg)
{
	struct racer *r = arg;
	uint32_t held = 0, n;
	int i, ret;

	for (i = 0; i < 4000 && !r->wrong; i++) {
		n = rand_r(&r->seed) % RACED;
		if (held & 1u << n) {
			r->wrong = lid_call(r->fd, HAWK_IOC_UNPIN, LID(n));
			held &= ~(1u << n);
			continue;
		}
		ret = lid_call(r->fd, HAWK_IOC_PIN, LID(n));
		r->refused += ret == -ENOMEM;
		if (!ret)
			held |= 1u << n;
		else if (ret != -ENOMEM)
			r->wrong = ret;
		if (used_blocks(r->fd) > RACED)
			r->wrong = 1;
	}
	return NULL;
}

/* Threads at the limit: never beyond it, and nothing is left of it. */
TEST_F(hawk, race_for_the_limit)
{
	struct racer r[RACERS];
	uint64_t refused = 0;
	int i, fd;

	ASSERT_EQ(0, put_blocks(self->fd, RACED));
	ASSERT_EQ(0, limit_blocks(RACED));
	for (i = 0; i < RACERS; i++) {
		r[i] = (struct racer){ .fd = open_as_nobody(self->fd), .seed = 5 + i };
		ASSERT_GE(r[i].fd, 0);
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL, race, &r[i]));
	}
	for (i = 0; i < RACERS; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_EQ(0, r[i].wrong) TH_LOG("racer %d", i);
		refused += r[i].refused;
		close(r[i].fd);
	}
	EXPECT_LT(0, refused) TH_LOG("the limit was not met");
	fd = open_as_nobody(self->fd);
	EXPECT_EQ(0, used_blocks(fd));
	close(fd);
}

TEST_HARNESS_MAIN
