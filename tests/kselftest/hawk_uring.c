// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_uring.c - batch calls through io_uring: the same as the ioctls, many at once,
 * and whatever way they end
 */
#define _GNU_SOURCE
#include <liburing.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "hawk_slow.h"
#include "hawk_models.h"

#define DEPTH	64u

static bool has_uring(int fd)
{
	struct hawk_query q = { .size = sizeof(q) };

	return !dev_call(fd, HAWK_IOC_QUERY, &q) && (q.features & HAWK_FEAT_URING_CMD);
}

#define NEEDS_URING()								\
	do {									\
		if (!has_uring(self->ctl))					\
			SKIP(return, "this kernel's io_uring takes no commands");	\
	} while (0)

static void put_sqe(struct io_uring *u, int fd, unsigned int cmd, const void *arg,
		    uint64_t reserved, uint64_t user_data)
{
	struct hawk_uring_cmd uc = { .batch = (uintptr_t)arg, .reserved = reserved };
	struct io_uring_sqe *sqe = io_uring_get_sqe(u);

	if (!sqe)
		abort();	/* no test fills its queue */
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = cmd;
	sqe->user_data = user_data;
	memcpy(sqe->cmd, &uc, sizeof(uc));
}

/* One command, submitted and waited for: the result of its completion. */
static int uring_call(struct io_uring *u, int fd, unsigned int cmd, const void *arg)
{
	struct io_uring_cqe *cqe;
	int res;

	put_sqe(u, fd, cmd, arg, 0, 1);
	if (io_uring_submit(u) != 1 || io_uring_wait_cqe(u, &cqe))
		return -1000;
	res = cqe->res;
	io_uring_cqe_seen(u, cqe);
	return res;
}

static int uring_batch(struct io_uring *u, int fd, unsigned int cmd, struct hawk_item *it,
		       uint32_t n, struct hawk_batch *out)
{
	struct hawk_batch b = slow_batch(it, n, 0);
	int ret = uring_call(u, fd, cmd, &b);

	if (out)
		*out = b;
	return ret;
}

/* Each batch call does through io_uring what it does as an ioctl. */
TEST_F(slow, every_call)
{
	struct hawk_item it = { .lid = LID(40) }, by;
	struct io_uring u;
	struct hawk_batch b;

	NEEDS_URING();
	ASSERT_EQ(0, io_uring_queue_init(8, &u, 0));
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_ALLOC, &it, 1, &b));
	EXPECT_EQ(0, it.status);
	EXPECT_EQ(1, b.done);
	EXPECT_EQ(1, b.prefix);
	fill(frame_at(self->win, it.vt, SLOW_BLOCK), SLOW_BLOCK, 40);
	set_key(&it, 40);
	it.vt = 0;
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_PUT, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	by = key_item(40);
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_LOOKUP, &by, 1, NULL));
	EXPECT_EQ(0, by.status);
	EXPECT_EQ(LID(40), by.lid);
	by = key_item(40);
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_GET, &by, 1, NULL));
	EXPECT_EQ(0, by.status);
	EXPECT_TRUE(filled(frame_at(self->win, by.vt, SLOW_BLOCK), SLOW_BLOCK, 40));
	it = (struct hawk_item){ .lid = LID(40), .arg = LID(41) };
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_FORK, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	it = (struct hawk_item){ .lid = LID(40) };
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_PIN, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_UNPIN, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	it.vt = 0;
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_UNSHARE, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	it.vt = 0;
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_PUT, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_RELOAD, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_TRANSLATE, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	ASSERT_EQ(0, uring_batch(&u, self->fd, HAWK_IOC_FREE, &it, 1, NULL));
	EXPECT_EQ(0, it.status);
	EXPECT_EQ(0, stat_pinned(self->fd));
	io_uring_queue_exit(&u);
}

/* What the ioctl refuses is refused, for the same reason. */
TEST_F(slow, same_refusals)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_batch ok = slow_batch(&it, 1, 0), bad[9], *b;
	unsigned int cmd, i, n = 0;
	int bare = dev_open(O_RDWR);
	struct io_uring u;

	NEEDS_URING();
	ASSERT_EQ(0, io_uring_queue_init(8, &u, 0));
	bad[n] = ok, bad[n++].size = 8;
	bad[n] = ok, bad[n++].size = 8192;
	bad[n] = ok, bad[n++].flags = 1u << 30;
	bad[n] = ok, bad[n++].count = 0;
	bad[n] = ok, bad[n++].count = HAWK_BATCH_MAX + 1;
	bad[n] = ok, bad[n++].items = 0;
	bad[n] = ok, bad[n++].tier = HAWK_TIERS_MAX;
	bad[n] = ok, bad[n++].deadline_ns = ~0ull;
	bad[n] = ok, bad[n++].flags = HAWK_BATCH_LEASE | HAWK_BATCH_NOWAIT;
	for (cmd = HAWK_IOC_ALLOC; cmd <= HAWK_IOC_TRANSLATE; cmd++) {
		for (b = bad; b < bad + n; b++) {
			int want = dev_call(self->fd, cmd, b);

			EXPECT_LT(want, 0);
			EXPECT_EQ(want, uring_call(&u, self->fd, cmd, b))
				TH_LOG("%#x, %u", cmd, (unsigned int)(b - bad));
		}
		EXPECT_EQ(-EFAULT, uring_call(&u, self->fd, cmd, NULL));
		EXPECT_EQ(-ENXIO, uring_call(&u, bare, cmd, &ok));
	}
	/* and what only io_uring can ask */
	for (i = 0; i < 256; i++) {
		cmd = _IO(HAWK_IOC_MAGIC, i);
		if (cmd < HAWK_IOC_ALLOC || cmd > HAWK_IOC_TRANSLATE)
			EXPECT_EQ(-ENOTTY, uring_call(&u, self->fd, cmd, &ok)) TH_LOG("%#x", cmd);
	}
	ok.flags = HAWK_BATCH_ASYNC;
	EXPECT_EQ(-EINVAL, uring_call(&u, self->fd, HAWK_IOC_GET, &ok));
	ok.flags = 0;
	for (cmd = HAWK_IOC_PIN; cmd <= HAWK_IOC_GET; cmd++) {
		struct io_uring_cqe *cqe;

		put_sqe(&u, self->fd, cmd, &ok, 1, 1);
		ASSERT_EQ(1, io_uring_submit(&u));
		ASSERT_EQ(0, io_uring_wait_cqe(&u, &cqe));
		EXPECT_EQ(-EOPNOTSUPP, cqe->res) TH_LOG("reserved");
		io_uring_cqe_seen(&u, cqe);
	}
	EXPECT_EQ(0, stat_pinned(self->fd));
	io_uring_queue_exit(&u);
	close(bare);
}

/* Many at once, reads and errors mixed: each comes once, with its own results. */
TEST_F(slow, many_in_flight)
{
	struct hawk_item it[DEPTH][2];
	struct hawk_batch b[DEPTH];
	uint32_t seen[DEPTH] = { 0 }, i;
	struct io_uring_cqe *cqe;
	struct io_uring u;

	NEEDS_URING();
	ASSERT_EQ(0, io_uring_queue_init(DEPTH, &u, 0));
	for (i = 0; i < DEPTH; i++) {
		it[i][0] = key_item(i % 4);
		it[i][1] = key_item(i % 3 ? 4 + i % 2 : 77777);
		b[i] = slow_batch(it[i], i % 7 ? 2 : 0, i);
		put_sqe(&u, self->fd, HAWK_IOC_GET, &b[i], 0, i);
	}
	ASSERT_EQ(DEPTH, io_uring_submit(&u));
	for (i = 0; i < DEPTH; i++) {
		uint32_t n;

		ASSERT_EQ(0, io_uring_wait_cqe(&u, &cqe));
		n = cqe->user_data;
		ASSERT_LT(n, DEPTH);
		seen[n]++;
		EXPECT_EQ(n % 7 ? 0 : -EINVAL, cqe->res);
		io_uring_cqe_seen(&u, cqe);
		if (!(n % 7))
			continue;
		EXPECT_EQ(0, it[n][0].status) TH_LOG("%u", n);
		EXPECT_EQ(n % 3 ? 0 : -ENOENT, it[n][1].status) TH_LOG("%u", n);
		EXPECT_EQ(n % 3 ? 2 : 1, b[n].done);
		EXPECT_TRUE(filled(frame_at(self->win, it[n][0].vt, SLOW_BLOCK), SLOW_BLOCK,
				   n % 4));
	}
	for (i = 0; i < DEPTH; i++)
		EXPECT_EQ(1, seen[i]) TH_LOG("%u", i);
	io_uring_queue_exit(&u);
}

/*
 * FREE of an exported block waits for an importer, at most a second: not the submitter,
 * who may be the one that the importer waits for.
 */
TEST_F(slow, free_of_an_export)
{
	struct hawk_item it = { .lid = LID(2 * HOST_BLOCKS - 1) }, by = it;
	struct hawk_batch b = slow_batch(&it, 1, 0);
	struct io_uring_cqe *cqe;
	int imp, status = -EBUSY, tries;
	struct hawk_export x;
	struct io_uring u;

	NEEDS_URING();
	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, io_uring_queue_init(8, &u, 0));
	/* a try that takes us longer than the second is none */
	for (tries = 0; status == -EBUSY && tries < 10; tries++) {
		ASSERT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &by));
		ASSERT_EQ(0, export_blocks(self->fd, 2 * HOST_BLOCKS - 1, 1,
					   HAWK_EXPORT_REVOCABLE, &x));
		ASSERT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &by));
		imp = imp_attach(x.fd, HAWK_IMP_DYNAMIC | HAWK_IMP_HOLD);
		ASSERT_GE(imp, 0);
		ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
		put_sqe(&u, self->fd, HAWK_IOC_FREE, &b, 0, 1);
		ASSERT_EQ(1, io_uring_submit(&u));
		close(imp);
		ASSERT_EQ(0, io_uring_wait_cqe(&u, &cqe));
		EXPECT_EQ(0, cqe->res);
		io_uring_cqe_seen(&u, cqe);
		close(x.fd);
		status = it.status;
	}
	EXPECT_EQ(0, status);
	io_uring_queue_exit(&u);
}

static bool done_or(const struct hawk_item *it, int status)
{
	return it->status == 0 || it->status == status;
}

/* HAWK_IOC_CANCEL reaches them too, and a deadline. */
TEST_F(slow, canceled_or_late)
{
	struct hawk_item it[2][2];
	struct hawk_batch b[2];
	struct io_uring_cqe *cqe;
	struct io_uring u;
	uint32_t i;

	NEEDS_URING();
	ASSERT_EQ(0, io_uring_queue_init(8, &u, 0));
	for (i = 0; i < 2; i++) {
		slow_items(it[i], 2 * i, 2);
		b[i] = slow_batch(it[i], 2, i + 1);
		b[i].deadline_ns = i ? now_ns() + 1000000 : 0;
		put_sqe(&u, self->fd, HAWK_IOC_GET, &b[i], 0, i);
	}
	ASSERT_EQ(2, io_uring_submit(&u));
	cancel(self->fd, 0, 1, NULL);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, io_uring_wait_cqe(&u, &cqe));
		EXPECT_EQ(0, cqe->res);
		io_uring_cqe_seen(&u, cqe);
	}
	EXPECT_TRUE(done_or(&it[0][0], -ECANCELED) && done_or(&it[0][1], -ECANCELED));
	EXPECT_TRUE(done_or(&it[1][0], -ETIME) && done_or(&it[1][1], -ETIME));
	EXPECT_EQ(b[0].done + b[1].done, stat_pinned(self->fd));
	io_uring_queue_exit(&u);
}

/* Results that cannot be handed back leave no pin. */
TEST_F(slow, results_have_nowhere_to_go)
{
	struct hawk_item *it = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hawk_batch b = slow_batch(it, 2, 0);
	struct io_uring_cqe *cqe;
	struct io_uring u;

	NEEDS_URING();
	ASSERT_NE(MAP_FAILED, it);
	ASSERT_EQ(0, io_uring_queue_init(8, &u, 0));
	slow_items(it, 0, 2);
	put_sqe(&u, self->fd, HAWK_IOC_GET, &b, 0, 1);
	ASSERT_EQ(1, io_uring_submit(&u));
	munmap(it, 4096);
	ASSERT_EQ(0, io_uring_wait_cqe(&u, &cqe));
	EXPECT_EQ(-EFAULT, cqe->res);
	io_uring_cqe_seen(&u, cqe);
	EXPECT_EQ(0, stat_pinned(self->fd));
	io_uring_queue_exit(&u);
}

/* The ring goes with reads in flight, which write their results later; the file is used on. */
TEST_F(slow, ring_closed_in_flight)
{
	static struct hawk_item it[4][2];
	static struct hawk_batch b[4];
	struct hawk_item by;
	struct io_uring u;
	uint32_t i;

	NEEDS_URING();
	ASSERT_EQ(0, io_uring_queue_init(8, &u, 0));
	for (i = 0; i < 4; i++) {
		slow_items(it[i], 2 * i, 2);
		b[i] = slow_batch(it[i], 2, i);
		put_sqe(&u, self->fd, HAWK_IOC_GET, &b[i], 0, i);
	}
	ASSERT_EQ(4, io_uring_submit(&u));
	io_uring_queue_exit(&u);
	by = key_item(2 * HOST_BLOCKS - 1);
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &by));
	/* the tiers can be removed in teardown only if all of it has ended */
}

/* The submitter is killed: nothing of it stays, whether io_uring cancels or waits. */
TEST_F(slow, killed_in_flight)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = self->fd,
	};
	int status, go[2], t;
	pid_t pid;
	char c;

	NEEDS_URING();
	for (t = 0; t < 4; t++) {
		ASSERT_EQ(0, pipe(go));
		pid = fork();
		if (!pid) {
			struct hawk_item it[4][2];
			int fd = dev_open(O_RDWR);
			struct hawk_batch b[4];
			struct io_uring u;
			uint32_t i;

			if (dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at) ||
			    io_uring_queue_init(8, &u, 0))
				_exit(1);
			for (i = 0; i < 4; i++) {
				slow_items(it[i], 2 * i, 2);
				b[i] = slow_batch(it[i], 2, i);
				put_sqe(&u, fd, HAWK_IOC_GET, &b[i], 0, i);
			}
			if (io_uring_submit(&u) != 4 || write(go[1], "g", 1) != 1)
				_exit(2);
			for (;;)
				pause();
		}
		ASSERT_EQ(1, read(go[0], &c, 1));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status)) TH_LOG("it failed: %d", WEXITSTATUS(status));
		while (stat_pinned(self->fd))
			poll(NULL, 0, 5);
		close(go[0]);
		close(go[1]);
	}
}

TEST_HARNESS_MAIN
