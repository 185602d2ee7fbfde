// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_gather.c - HAWK_IOC_GATHER: what it refuses, what it holds and gives back
 *
 * What blocks end up where is for tests/unit/lib_gather.c, which runs over the device
 * too.  Here: bad memory, limits, hostile and dying callers, files, slow and bad drives.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <linux/userfaultfd.h>

#include "hawk_blocks.h"
#include "hawk_slow.h"

#define ROWS	8u
#define KEEP	24u	/* blocks on the drive, of those that hawk_gather has */

struct call {
	uint64_t lid[ROWS];
	uint32_t count[2];
	uint32_t remap[ROWS];
	int32_t status[ROWS];
	struct hawk_gather g;
	uint8_t *buf;
	uint32_t block;
};

/* Rows of blocks @first .. @first + @n - 1 in two lists; a buffer of its own. */
static void call_init(struct call *c, uint32_t first, uint32_t n, uint32_t block)
{
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->block = block;
	c->buf = mmap(NULL, ROWS * block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	for (i = 0; i < n; i++)
		c->lid[i] = LID(first + i);
	c->count[0] = n / 2;
	c->count[1] = n - n / 2;
	c->g = (struct hawk_gather){
		.size = sizeof(c->g), .lists = 2, .rows = n, .counts = (uintptr_t)c->count,
		.lids = (uintptr_t)c->lid, .remap = (uintptr_t)c->remap,
		.status = (uintptr_t)c->status, .buf = (uintptr_t)c->buf,
		.buf_bytes = ROWS * block,
	};
}

static void call_fini(struct call *c)
{
	munmap(c->buf, ROWS * c->block);
}

static int gather(int fd, struct call *c)
{
	c->g.size = sizeof(c->g);
	c->g.busy = 0;
	return dev_call(fd, HAWK_IOC_GATHER, &c->g);
}

/* Rows whose block is where it should be. */
static uint32_t good_rows(const struct call *c)
{
	uint32_t i, n = 0;

	for (i = 0; i < c->g.rows; i++)
		n += !c->status[i] && c->remap[i] < c->g.unique &&
		     filled(c->buf + c->remap[i] * c->block, c->block,
			    (c->lid[i] & 0xffffffff) / TOKENS);
	return n;
}

/* ---- a file as flash: what is refused, what goes wrong ---- */

#define SMALL_HOST	(2 * MIB)
#define FRAMES		((uint32_t)(SMALL_HOST / BLOCK))

FIXTURE(gather) {
	int ctl;
	int fd;
	uint32_t host;
	uint32_t blk;
	char *path;
	uint8_t *win;
};

FIXTURE_SETUP(gather)
{
	struct hawk_space_create sc = space_args(8 * FRAMES);

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("gather", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	self->fd = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, host_add(self->ctl, SMALL_HOST, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0644;
	strcpy((char *)sc.name, "test-gather");
	sc.quota[self->host].max_bytes = SMALL_HOST;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), SMALL_HOST,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, FRAMES + KEEP));
}

FIXTURE_TEARDOWN(gather)
{
	char line[256];

	EXPECT_NE(0, space_check("test-gather", line, sizeof(line))) TH_LOG("%s", line);
	EXPECT_EQ(0, space_destroy(self->ctl, "test-gather"));
	munmap(self->win, SMALL_HOST);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

TEST_F(gather, refusals)
{
	static const struct { size_t at; int err; } pointer[] = {
		{ offsetof(struct hawk_gather, counts), -EFAULT },
		{ offsetof(struct hawk_gather, lids), -EFAULT },
		{ offsetof(struct hawk_gather, remap), -EFAULT },
		{ offsetof(struct hawk_gather, status), -EFAULT },
		{ offsetof(struct hawk_gather, buf), -EFAULT },
	};
	struct call c, ok;
	uint8_t *ro;
	uint32_t i;

	call_init(&ok, 0, 4, BLOCK);
	for (i = 0; i < 5; i++) {
		c = ok;
		*(uint64_t *)((uint8_t *)&c.g + pointer[i].at) = 4096;
		EXPECT_EQ(pointer[i].err, gather(self->fd, &c)) TH_LOG("pointer %u", i);
		*(uint64_t *)((uint8_t *)&c.g + pointer[i].at) = ~0ull & ~4095ull;
		EXPECT_EQ(pointer[i].err, gather(self->fd, &c)) TH_LOG("pointer %u", i);
	}
	EXPECT_EQ(0, stat_pinned(self->fd)) TH_LOG("what was found is let go");
	ro = mmap(NULL, ROWS * BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	c = ok, c.g.buf = (uintptr_t)ro;
	EXPECT_EQ(-EFAULT, gather(self->fd, &c)) TH_LOG("it may not be written");
	munmap(ro, ROWS * BLOCK);
	c = ok, c.g.buf += 512;
	EXPECT_EQ(-EINVAL, gather(self->fd, &c));
	c = ok, c.g.rows = 0;
	EXPECT_EQ(-EINVAL, gather(self->fd, &c));
	c = ok, c.g.lists = 0;
	EXPECT_EQ(-EINVAL, gather(self->fd, &c));
	c = ok, c.g.rows = HAWK_BATCH_MAX + 1;
	EXPECT_EQ(-E2BIG, gather(self->fd, &c));
	c = ok, c.g.lists = HAWK_GATHER_LISTS + 1;
	EXPECT_EQ(-E2BIG, gather(self->fd, &c));
	c = ok, c.g.rows = 3;
	EXPECT_EQ(-EINVAL, gather(self->fd, &c)) TH_LOG("the lists are longer");
	c = ok, c.g.deadline_ns = ~0ull;
	EXPECT_EQ(-EINVAL, gather(self->fd, &c));
	c = ok, c.g.flags = HAWK_BATCH_ASYNC;
	EXPECT_EQ(-EINVAL, gather(self->fd, &c)) TH_LOG("no ring");
	EXPECT_EQ(-ENXIO, gather(self->ctl, &ok)) TH_LOG("no space");
	EXPECT_EQ(0, gather(self->fd, &ok));
	call_fini(&ok);
}

/* No row can be written to: a buffer of nothing. */
TEST_F(gather, no_room)
{
	struct call c;

	call_init(&c, 0, 4, BLOCK);
	c.g.buf_bytes = BLOCK - 1;
	EXPECT_EQ(0, gather(self->fd, &c));
	EXPECT_EQ(0, c.g.unique);
	EXPECT_EQ(-ENOSPC, c.status[0]);
	EXPECT_EQ(HAWK_GATHER_NONE, c.remap[3]);
	call_fini(&c);
}

/* It changes nothing, so a file that may only read may do it. */
TEST_F(gather, read_only_file)
{
	int fd = dev_open(O_RDONLY);
	struct call c;

	ASSERT_EQ(0, space_attach(fd, "test-gather"));
	call_init(&c, 0, ROWS, BLOCK);
	EXPECT_EQ(0, gather(fd, &c));
	EXPECT_EQ(ROWS, c.g.done);
	EXPECT_EQ(ROWS, good_rows(&c));
	EXPECT_EQ(ROWS, c.g.tier[self->blk].blocks);
	call_fini(&c);
	close(fd);
}

/* Into a frame of the space itself, and from the same frame. */
TEST_F(gather, into_a_window)
{
	struct hawk_item it = { .lid = LID(FRAMES + KEEP - 1) };
	struct call c;

	ASSERT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &it));
	call_init(&c, FRAMES + KEEP - 1, 1, BLOCK);
	c.g.buf = (uintptr_t)frame_at(self->win, it.vt, BLOCK);
	c.g.buf_bytes = BLOCK;
	EXPECT_EQ(0, gather(self->fd, &c));
	EXPECT_EQ(0, c.status[0]);
	EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, FRAMES + KEEP - 1));
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &it));
	call_fini(&c);
}

static uint64_t memlock_used(int fd)
{
	struct hawk_pin_query q = { .size = sizeof(q), .count = 1 };

	return dev_call(fd, HAWK_IOC_PIN_QUERY, &q) ? ~0ull : q.used_bytes;
}

/* The buffer's pages are charged while it lasts, and given back before it returns. */
TEST_F(gather, counts_as_locked_memory)
{
	struct rlimit was, r = { .rlim_cur = (ROWS - 1) * BLOCK, .rlim_max = RLIM_INFINITY };
	struct call c;
	int fd;

	ASSERT_EQ(0, getrlimit(RLIMIT_MEMLOCK, &was));
	r.rlim_max = was.rlim_max;
	ASSERT_EQ(0, setresuid(NOBODY, NOBODY, 0));
	fd = dev_open(O_RDWR);
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, space_attach(fd, "test-gather"));
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &r));
	call_init(&c, 0, ROWS, BLOCK);
	EXPECT_EQ(-ENOMEM, gather(fd, &c));
	EXPECT_EQ(0, memlock_used(fd));
	EXPECT_EQ(0, stat_pinned(fd));
	c.g.buf_bytes = (ROWS - 1) * BLOCK;
	EXPECT_EQ(0, gather(fd, &c)) TH_LOG("as much as it may");
	EXPECT_EQ(ROWS - 1, good_rows(&c));
	EXPECT_EQ(0, memlock_used(fd));
	EXPECT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &was));
	call_fini(&c);
	close(fd);
}

static bool scribble_stop;	/* atomic */

static void *scribble(void *arg)
{
	uint8_t *p = arg;
	uint32_t i;

	while (!__atomic_load_n(&scribble_stop, __ATOMIC_RELAXED))
		for (i = 0; i < ROWS * BLOCK; i += 64)
			((volatile uint8_t *)p)[i]++;
	return NULL;
}

/* Who writes to his buffer meanwhile spoils what he reads, and nobody's block. */
TEST_F(gather, scribbling_caller)
{
	uint64_t errors = stats_of(self->fd).reload_errors;
	struct call c;
	pthread_t t;
	uint32_t i;

	call_init(&c, 0, ROWS, BLOCK);
	ASSERT_EQ(0, pthread_create(&t, NULL, scribble, c.buf));
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, gather(self->fd, &c));
		ASSERT_EQ(ROWS, c.g.done) TH_LOG("round %u", i);
	}
	__atomic_store_n(&scribble_stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	EXPECT_EQ(errors, stats_of(self->fd).reload_errors);
	EXPECT_EQ(0, gather(self->fd, &c));
	EXPECT_EQ(ROWS, good_rows(&c));
	call_fini(&c);
}

/* Memory whose pages come when somebody says so.  Return: who says so, or -1. */
static int late_pages(void *at, size_t n)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)at, .len = n },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg))
		return fd;
	return -1;
}

struct late {
	struct call c;
	int fd;
	int ret;
};

static void *gather_late(void *arg)
{
	struct late *l = arg;

	l->ret = gather(l->fd, &l->c);
	return NULL;
}

/*
 * Who has found blocks on a drive and then waits for his own buffer keeps them, but
 * nobody waits for him: removal of the tier gives up, and tells so.
 */
TEST_F(gather, buffer_that_does_not_come)
{
	struct hawk_tier_remove rm = {
		.size = sizeof(rm), .flags = HAWK_TIER_FORCE, .tier = self->blk,
	};
	struct late l = { .fd = self->fd };
	struct uffdio_range all;
	struct pollfd pfd;
	pthread_t t;

	call_init(&l.c, 0, ROWS, BLOCK);
	all = (struct uffdio_range){ .start = l.c.g.buf, .len = ROWS * BLOCK };
	pfd = (struct pollfd){ .fd = late_pages(l.c.buf, ROWS * BLOCK), .events = POLLIN };
	if (pfd.fd < 0)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, pthread_create(&t, NULL, gather_late, &l));
	ASSERT_EQ(1, poll(&pfd, 1, -1));
	ASSERT_EQ(POLLIN, pfd.revents) TH_LOG("it waits for a page");
	EXPECT_EQ(-EBUSY, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	rm.flags = HAWK_TIER_REOPEN;
	EXPECT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	ASSERT_EQ(0, ioctl(pfd.fd, UFFDIO_UNREGISTER, &all));
	pthread_join(t, NULL);
	close(pfd.fd);
	EXPECT_EQ(0, l.ret);
	EXPECT_EQ(ROWS, good_rows(&l.c));
	call_fini(&l.c);
}

/* The drive loses its end: what lay there is a miss, what did not is not. */
TEST_F(gather, flash_read_errors)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = self->blk };
	struct call c;
	uint32_t i, lost = 0;

	ASSERT_EQ(0, truncate(self->path, 3 * BLOCK));
	call_init(&c, 0, ROWS, BLOCK);
	ASSERT_EQ(0, gather(self->fd, &c));
	EXPECT_EQ(c.g.done, good_rows(&c));
	for (i = 0; i < ROWS; i++)
		lost += c.status[i] == -EIO;
	EXPECT_EQ(ROWS, lost + c.g.done);
	EXPECT_GE(lost, ROWS - 3);
	EXPECT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &info));
	EXPECT_EQ(lost, info.io_errors);
	ASSERT_EQ(0, gather(self->fd, &c));
	for (i = 0, lost = 0; i < ROWS; i++)
		lost += c.status[i] == -ENOENT;
	EXPECT_EQ(ROWS, lost + c.g.done);
	call_fini(&c);
}

/* ---- a slow drive: what ends early ---- */

/* The transfer goes on after the call; the block is kept for it, and then it is not. */
TEST_F(slow, deadline)
{
	uint32_t busy = 0, tries;
	struct call c;
	int ret;

	for (tries = 0; tries < 20 && !busy; tries++) {
		call_init(&c, 0, 4, SLOW_BLOCK);
		c.g.deadline_ns = now_ns() + 50000000;
		ASSERT_EQ(0, gather(self->fd, &c));
		EXPECT_EQ(4, c.g.unique);
		EXPECT_EQ(c.g.done, good_rows(&c));
		busy = c.g.busy;
		if (busy) {
			EXPECT_EQ(-ETIME, c.status[0]);
			EXPECT_EQ(HAWK_GATHER_NONE, c.remap[0]);
			EXPECT_EQ(0, c.g.tier[self->blk].ns);
			ret = lid_call(self->fd, HAWK_IOC_FREE, LID(0));
			EXPECT_TRUE(ret == -EBUSY || !ret) TH_LOG("%d", ret);
		}
		call_fini(&c);
	}
	EXPECT_NE(0, busy);
	while ((ret = lid_call(self->fd, HAWK_IOC_FREE, LID(1))) == -EBUSY)
		poll(NULL, 0, 10);
	EXPECT_EQ(0, ret);
}

static void on_alarm(int sig)
{
}

TEST_F(slow, interrupted)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct call c;
	int ret;

	sigaction(SIGALRM, &sa, NULL);
	call_init(&c, 0, 4, SLOW_BLOCK);
	setitimer(ITIMER_REAL, &soon, NULL);
	ret = gather(self->fd, &c);
	if (ret == -EINTR)
		TH_LOG("before it began");
	else
		EXPECT_EQ(c.g.done, good_rows(&c));
	call_fini(&c);
	/* and all of it later */
	call_init(&c, 0, 4, SLOW_BLOCK);
	ASSERT_EQ(0, gather(self->fd, &c));
	EXPECT_EQ(4, good_rows(&c));
	call_fini(&c);
}

static int submit(int fd, struct call *c, uint64_t user_data)
{
	c->g.flags = HAWK_BATCH_ASYNC;
	c->g.user_data = user_data;
	return gather(fd, c);
}

/* Takes completions until the gather's own. Return: its blocks that came, ~0 if none did. */
static uint32_t reap(int fd, struct hawk_ring *r, uint32_t *items)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hawk_cqe cqe;

	for (*items = 0;; ++*items) {
		while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == r->head)
			if (poll(&p, 1, 60000) != 1)
				return ~0u;
		cqe = r->cqe[r->head & r->mask];
		__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
		if (cqe.flags == HAWK_CQE_BATCH)
			return cqe.index;
	}
}

/* Canceled or not, each block completes once, and then the whole. */
TEST_F(slow, canceled)
{
	uint32_t items, came, t;
	struct call c;
	int ret;

	for (t = 0; t < 4; t++) {
		call_init(&c, 0, 4, SLOW_BLOCK);
		ASSERT_EQ(0, submit(self->fd, &c, 5));
		EXPECT_EQ(-EINPROGRESS, c.status[0]);
		ret = t % 2 ? cancel(self->fd, 0, 5, NULL) : 0;
		EXPECT_TRUE(!ret || ret == -ENOENT);
		came = reap(self->fd, self->ring, &items);
		EXPECT_EQ(4, items);
		EXPECT_LE(came, 4);
		if (!(t % 2))
			EXPECT_EQ(4, came);
		EXPECT_EQ(-ENOENT, cancel(self->fd, 0, 5, NULL));
		EXPECT_EQ(0, stat_pinned(self->fd));
		call_fini(&c);
	}
}

/* A process that dies with gathers under way, of both kinds, leaves nothing. */
TEST_F(slow, killed)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = self->fd,
	};
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = ENTRIES, .eventfd = -1 };
	int status, t, ret;
	struct call c;
	uint32_t i;
	pid_t pid;

	for (t = 0; t < 4; t++) {
		pid = fork();
		if (!pid) {
			int fd = dev_open(O_RDWR);

			if (dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at) ||
			    dev_call(fd, HAWK_IOC_RING_SETUP, &rs))
				_exit(1);
			call_init(&c, 0, 4, SLOW_BLOCK);
			submit(fd, &c, 1);
			if (t % 2)
				raise(SIGKILL);
			call_init(&c, 0, ROWS, SLOW_BLOCK);
			alarm(1);
			gather(fd, &c);
			raise(SIGKILL);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	for (i = 0; i < HOST_BLOCKS; i++) {
		while ((ret = lid_call(self->fd, HAWK_IOC_FREE, LID(i))) == -EBUSY)
			poll(NULL, 0, 10);
		EXPECT_EQ(0, ret) TH_LOG("block %u", i);
	}
	while (stat_pinned(self->fd))
		poll(NULL, 0, 10);
}

/* A file that is closed over its gathers, and the buffer that is unmapped under them. */
TEST_F(slow, closed_and_unmapped)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = self->fd,
	};
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = ENTRIES, .eventfd = -1 };
	int fd = dev_open(O_RDWR), ret;
	struct call c;

	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at));
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	call_init(&c, 0, 4, SLOW_BLOCK);
	ASSERT_EQ(0, submit(fd, &c, 1));
	call_fini(&c);
	close(fd);
	while ((ret = lid_call(self->fd, HAWK_IOC_FREE, LID(0))) == -EBUSY)
		poll(NULL, 0, 10);
	EXPECT_EQ(0, ret);
}

TEST_HARNESS_MAIN
