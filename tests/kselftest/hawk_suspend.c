// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_suspend.c - the system goes to sleep while blocks are being moved
 *
 * With pm_test set to "freezer" the kernel does what comes before the sleep proper
 * (notifiers, freezing) and then wakes up again.  The client must not notice.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

#include "hawk_tenant.h"

#define POWER		"/sys/power/"
#define ROUND		64u	/* blocks of a batch */

/*
 * Whether a child does something that it has begun after this call: it writes a byte for
 * each thing.  What it wrote before is taken away, and the first byte after that may be for
 * what it was about then.
 */
static bool goes_on(int ready)
{
	char buf[4096];
	int i;

	fcntl(ready, F_SETFL, O_NONBLOCK);
	while (read(ready, buf, sizeof(buf)) > 0)
		;
	fcntl(ready, F_SETFL, 0);
	for (i = 0; i < 2; i++)
		if (read(ready, buf, 1) != 1)
			return false;
	return true;
}

/* Reloads blocks until told to stop; exits with the step that failed. */
static void mover(struct tenant *t, uint32_t n, int ready, int stop)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct hawk_item it[ROUND];
	uint32_t i, k;

	for (i = 0; poll(&p, 1, 0) == 0; i = (i + ROUND) % n) {
		for (k = 0; k < ROUND; k++)
			it[k] = (struct hawk_item){ .lid = LID(i + k) };
		if (batch(t->fd, HAWK_IOC_RELOAD, 0, it, ROUND, NULL))
			_exit(1);
		for (k = 0; k < ROUND; k++)
			if (it[k].status)
				_exit(2);
		if (write(ready, "r", 1) != 1)
			_exit(3);
	}
	_exit(0);
}

TEST_F(reclaim, moves_go_on_after_resume)
{
	struct tenant t = { .fd = dev_open(O_RDWR) };
	uint32_t n = 2 * CHUNKS * CHUNK_BLOCKS;
	int ready[2], stop[2], status = -1;
	pid_t pid;
	char buf;

	if (write_file(POWER "pm_test", "freezer"))
		SKIP(return, "this kernel has no " POWER "pm_test");
	/* the test sleeps that long instead of the machine */
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(stop, O_CLOEXEC));
	ASSERT_EQ(0, tenant_start(&t, self->host, 0, self->blk));
	ASSERT_EQ(0, tenant_put(&t, 0, n));
	pid = fork();
	if (!pid) {
		close(stop[1]);
		close(ready[0]);
		mover(&t, n, ready[1], stop[0]);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &buf, 1));
	EXPECT_EQ(0, write_file(POWER "state", "freeze")) TH_LOG("%s", strerror(errno));
	EXPECT_TRUE(goes_on(ready[0]));
	close(stop[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("step %d", WEXITSTATUS(status));
	EXPECT_EQ(0, write_file(POWER "pm_test", "none"));
	EXPECT_EQ(0, tenant_lost(&t, 0, n));
	tenant_end(&t);
	close(ready[0]);
	close(stop[0]);
}

/* The state of a process, as /proc tells it; 0: it is gone. */
static char state_of(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state;
}

static pid_t remover(int fd, uint32_t tier)
{
	pid_t pid = fork();
	int ret;

	if (!pid) {
		ret = tier_force(fd, tier);
		_exit(ret ? -ret : 0);
	}
	return pid;
}

/* One who removes a tier stops half way, another waits for him: both can be frozen. */
TEST_F(reclaim, removal_goes_on_after_resume)
{
	struct tenant t = { .fd = dev_open(O_RDWR) };
	int status[2] = { -1, -1 }, i, failed = 0;
	char *slow = getenv("HAWK_TEST_SLOWDEV");
	pid_t pid[2];
	uint32_t blk;

	if (!slow)
		SKIP(return, "HAWK_TEST_SLOWDEV is not set");
	if (write_file(POWER "pm_test", "freezer"))
		SKIP(return, "this kernel has no " POWER "pm_test");
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	write_file(POWER "pm_freeze_timeout", "3000");	/* for those who cannot be frozen */
	ASSERT_EQ(0, blk_add(self->ctl, slow, FLASH, &blk));
	ASSERT_EQ(0, tenant_start(&t, self->host, 0, blk));
	ASSERT_EQ(0, tenant_put(&t, 0, CHUNKS * CHUNK_BLOCKS));
	pid[0] = remover(self->ctl, self->host);
	while (!tier_info(self->ctl, self->host).reclaimed_bytes)
		poll(NULL, 0, 1);
	pid[1] = remover(self->ctl, self->host);
	while (state_of(pid[1]) != 'D' && state_of(pid[1]) != 'Z')
		poll(NULL, 0, 1);
	EXPECT_EQ(0, write_file(POWER "state", "freeze")) TH_LOG("%s", strerror(errno));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status[i], 0));
		EXPECT_TRUE(!status[i] || WEXITSTATUS(status[i]) == ENOENT) TH_LOG("%d", status[i]);
		failed += !!status[i];
	}
	EXPECT_EQ(1, failed) TH_LOG("one of them has removed it");
	EXPECT_EQ(0, write_file(POWER "pm_test", "none"));
	write_file(POWER "pm_freeze_timeout", "20000");
	tenant_end(&t);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, blk));
	ASSERT_EQ(0, host_add(self->ctl, CHUNK, &self->host));
}

/* ---- between the rounds of a batch ---- */

/* One batch, all of which stays pinned: exits with the first status that is not 0. */
static void taker(struct tenant *t, uint32_t n)
{
	struct hawk_item *it = calloc(n, sizeof(*it));
	struct hawk_batch b;
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		it[i].lid = LID(i);
	ret = batch(t->fd, HAWK_IOC_ALLOC, 0, it, n, &b);
	for (i = 0; !ret && i < n; i++)
		ret = it[i].status;
	_exit(ret ? -ret : 0);
}

/* It has got some of its room, and waits for chunks that another has to give back. */
TEST_F(reclaim, room_comes_after_resume)
{
	struct tenant a = { .fd = dev_open(O_RDWR) }, b = { .fd = dev_open(O_RDWR), .seed = SEEDS };
	char *slow = getenv("HAWK_TEST_SLOWDEV");
	int status = -1;
	uint32_t blk;
	pid_t pid;

	if (!slow)
		SKIP(return, "HAWK_TEST_SLOWDEV is not set");
	if (write_file(POWER "pm_test", "freezer"))
		SKIP(return, "this kernel has no " POWER "pm_test");
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	ASSERT_EQ(0, blk_add(self->ctl, slow, FLASH, &blk));
	ASSERT_EQ(0, tenant_start(&a, self->host, 0, blk));
	ASSERT_EQ(0, tenant_put(&a, 0, (CHUNKS - 1) * CHUNK_BLOCKS));
	ASSERT_EQ(0, tenant_start(&b, self->host, 0, blk));
	pid = fork();
	if (!pid)
		taker(&b, CHUNKS / 2 * CHUNK_BLOCKS);
	while (!tier_info(self->ctl, blk).out && state_of(pid) != 'Z')
		poll(NULL, 0, 1);
	EXPECT_EQ(0, write_file(POWER "state", "freeze")) TH_LOG("%s", strerror(errno));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("status %d", -WEXITSTATUS(status));
	EXPECT_EQ(0, write_file(POWER "pm_test", "none"));
	tenant_end(&b);
	tenant_end(&a);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, blk));
}

/* ---- workers of their own accord: elastic residency and compaction ---- */

#define SEQS		8u	/* at a time; more than memory holds */
#define ROWS		90u	/* of each */
#define LAYERS		2u	/* of space_args() */

static int seq_call(int fd, struct hawk_seq_op *op)
{
	struct hawk_seq_batch b = { .size = sizeof(b), .count = 1, .ops = (uintptr_t)op };

	return dev_call(fd, HAWK_IOC_SEQ, &b) ?: op->status;
}

/* A sequence of @rows rows of blocks, each of which lacks half of its tokens then. */
static int holey(int fd, uint32_t rows, uint32_t *seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW };
	struct hawk_item it;
	uint32_t i;
	int ret = seq_call(fd, &op);

	*seq = op.seq;
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_APPEND, .seq = *seq, .len = rows * TOKENS };
	ret = ret ?: seq_call(fd, &op);
	for (i = 0; !ret && i < rows * LAYERS; i++) {
		it = (struct hawk_item){
			.lid = HAWK_LID(op.run, i % LAYERS, 0, op.tok + i / LAYERS * TOKENS),
		};
		ret = one(fd, HAWK_IOC_ALLOC, 0, &it);
		it.vt = 0;
		ret = ret ?: one(fd, HAWK_IOC_PUT, 0, &it);
	}
	for (i = 0; !ret && i < rows; i++) {
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_DROP, .seq = *seq };
		op.start = i * TOKENS + TOKENS / 4;
		op.end = op.start + TOKENS / 2;
		ret = seq_call(fd, &op);
	}
	return ret;
}

/* Sequences come and go until told to stop; exits with the step that failed. */
static void churner(int fd, int ready, int stop)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	uint32_t seq[SEQS] = { 0 }, i;

	for (i = 0; poll(&p, 1, 0) == 0; i = (i + 1) % SEQS) {
		struct hawk_seq_op op = { .op = HAWK_SEQ_FREE, .seq = seq[i] };

		if (seq[i] && seq_call(fd, &op))
			_exit(1);
		if (holey(fd, ROWS, &seq[i]))
			_exit(2);
		if (write(ready, "r", 1) != 1)
			_exit(3);
	}
	_exit(0);
}

static struct hawk_elastic elastic(int fd, uint32_t flags)
{
	struct hawk_elastic e = {
		.size = sizeof(e), .flags = flags, .on = flags, .keep_free = HAWK_ELASTIC_ONE / 2,
		.alpha_min = HAWK_ELASTIC_ONE / 8, .sinks = TOKENS, .window = 4 * TOKENS,
	};

	if (dev_call(fd, HAWK_IOC_ELASTIC, &e))
		e.cycles = 0, e.evicted = 0;
	return e;
}

/*
 * Waits until the worker has begun and ended a walk, and evicted something, for which the
 * churner must live.  Return: whether it does; its death ends the other side of @ready.
 */
static bool elastic_works(int fd, int ready)
{
	struct hawk_elastic was = elastic(fd, 0), e;
	struct pollfd p = { .fd = ready };

	do {
		poll(&p, 1, 0);
		if (p.revents & POLLHUP)
			return false;
		poll(NULL, 0, 5);
		e = elastic(fd, 0);
	} while (e.cycles < was.cycles + 2 || e.evicted == was.evicted);
	return true;
}

/* Waits until a new sequence has been compacted. */
static int compaction_works(int fd)
{
	struct hawk_seq_map m = { .size = sizeof(m) };
	struct hawk_seq_op op = { .op = HAWK_SEQ_FREE };
	int ret = holey(fd, 5, &op.seq);

	m.seq = op.seq;
	do {
		poll(NULL, 0, 5);
		m.count = 0;
		if (!ret && dev_call(fd, HAWK_IOC_SEQ_MAP, &m) && errno != E2BIG)
			ret = -errno;
	} while (!ret && m.rows == 5);
	return ret ?: seq_call(fd, &op);
}

TEST_F(reclaim, workers_go_on_after_resume)
{
	struct hawk_space_create sc = space_args(8192);
	int fd = dev_open(O_RDWR), ready[2], stop[2], status = -1, i;
	bool alive;
	pid_t pid;

	if (write_file(POWER "pm_test", "freezer"))
		SKIP(return, "this kernel has no " POWER "pm_test");
	write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
	sc.quota[self->host].max_bytes = CHUNKS * CHUNK;
	sc.quota[self->blk].max_bytes = FLASH;
	sc.seqs = 2 * SEQS;
	sc.segs = 4096;
	sc.planes = 2;
	sc.token_bytes = BLOCK / 2 / TOKENS;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(1, elastic(fd, HAWK_ELASTIC_SET).on);
	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(stop, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		close(stop[1]);
		close(ready[0]);
		churner(fd, ready[1], stop[0]);
	}
	close(ready[1]);
	alive = elastic_works(fd, ready[0]);
	for (i = 0; alive && i < 2; i++) {
		EXPECT_EQ(0, write_file(POWER "state", "freeze")) TH_LOG("%s", strerror(errno));
		alive = elastic_works(fd, ready[0]) && goes_on(ready[0]);
		EXPECT_EQ(0, compaction_works(fd));
	}
	EXPECT_TRUE(alive);
	close(stop[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("step %d", WEXITSTATUS(status));
	EXPECT_EQ(0, write_file(POWER "pm_test", "none"));
	close(fd);
	close(ready[0]);
	close(stop[0]);
}

TEST_HARNESS_MAIN
