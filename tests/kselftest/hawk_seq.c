// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_seq.c - sequences through /dev/hawk: who may do what, what is given back and
 * when, what a death leaves, two processes on one sequence
 *
 * What the operations do to bytes is tested by libhawk's lib_seq, also on this device.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define NAME		"test-seq"
#define HOST_BYTES	(16 * MIB)
#define LAYERS		2u		/* of space_args(); one head group */
#define SEQS		64u
#define TOKEN_BYTES	(BLOCK / 2 / TOKENS)
#define COMPACT		"/sys/class/misc/hawk/seq_compact"

/* @fd made the named space, @other has it attached, @foreign has a space of its own. */
FIXTURE(seq) {
	int fd;
	int other;
	int foreign;
	uint32_t host;
	uint8_t *win;
};

static struct hawk_space_create seq_args(uint32_t host)
{
	struct hawk_space_create sc = space_args(4096);

	sc.quota[host].max_bytes = HOST_BYTES;
	sc.flags = HAWK_SPACE_SHIFT;
	sc.seqs = SEQS;
	sc.token_bytes = TOKEN_BYTES;
	sc.planes = 2;
	return sc;
}

FIXTURE_SETUP(seq)
{
	struct hawk_space_create sc;

	self->fd = dev_open(O_RDWR);
	self->other = dev_open(O_RDWR);
	self->foreign = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, host_add(self->fd, 2 * HOST_BYTES, &self->host));
	sc = seq_args(self->host);
	ASSERT_EQ(0, dev_call(self->foreign, HAWK_IOC_SPACE_CREATE, &sc));
	sc.flags |= HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, NAME);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, space_attach(self->other, NAME));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
}

FIXTURE_TEARDOWN(seq)
{
	char line[512] = "";

	EXPECT_NE(0, space_check(NAME, line, sizeof(line))) TH_LOG("%s", line);
	EXPECT_EQ(0, space_destroy(self->fd, NAME));
	munmap(self->win, HOST_BYTES);
	close(self->foreign);
	close(self->other);
	close(self->fd);
	self->fd = dev_open(O_RDWR);
	EXPECT_EQ(0, tier_remove_idle(self->fd, self->host));
	close(self->fd);
}

/* ---- calls ---- */

static int seq_batch(int fd, struct hawk_seq_op *ops, uint32_t n, struct hawk_seq_batch *out)
{
	struct hawk_seq_batch b = { .size = sizeof(b), .count = n, .ops = (uintptr_t)ops };
	int ret = dev_call(fd, HAWK_IOC_SEQ, &b);

	if (out)
		*out = b;
	return ret;
}

static int seq_one(int fd, struct hawk_seq_op *op)
{
	return seq_batch(fd, op, 1, NULL) ?: op->status;
}

static int seq_new(int fd, uint32_t flags, uint32_t *seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW, .flags = flags };
	int ret = seq_one(fd, &op);

	*seq = op.seq;
	return ret;
}

/* Number of blocks given back, or a negative errno. */
static int seq_drop(int fd, uint32_t seq, uint32_t start, uint32_t end)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_DROP, .seq = seq, .start = start, .end = end };

	return seq_one(fd, &op) ?: (int)op.frames;
}

static int seq_free(int fd, uint32_t seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FREE, .seq = seq };

	return seq_one(fd, &op) ?: (int)op.frames;
}

static int seq_map(int fd, uint32_t seq, struct hawk_seg *segs, uint32_t n,
		   struct hawk_seq_map *out)
{
	struct hawk_seq_map m = {
		.size = sizeof(m), .seq = seq, .count = n, .segs = (uintptr_t)segs,
	};
	int ret = dev_call(fd, HAWK_IOC_SEQ_MAP, &m);

	if (out)
		*out = m;
	return ret;
}

static uint64_t lid_at(uint32_t run, uint32_t layer, uint32_t tok)
{
	return HAWK_LID(run, layer, 0, tok - tok % TOKENS);
}

/* @rows whole rows of blocks at the end of a sequence, filled: 0 or a negative errno. */
static int seq_rows(int fd, uint8_t *win, uint32_t seq, uint32_t rows, uint32_t pattern)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_APPEND, .seq = seq, .len = rows * TOKENS };
	struct hawk_item it;
	uint32_t i;
	int ret = seq_one(fd, &op);

	for (i = 0; !ret && i < rows * LAYERS; i++) {
		it = (struct hawk_item){
			.lid = lid_at(op.run, i % LAYERS, op.tok + i / LAYERS * TOKENS),
		};
		ret = one(fd, HAWK_IOC_ALLOC, 0, &it);
		if (ret)
			break;
		if (win)
			fill(frame_at(win, it.vt, BLOCK), BLOCK, pattern + i);
		it.vt = 0;
		ret = one(fd, HAWK_IOC_PUT, 0, &it);
	}
	return ret;
}

static void settle_at(int fd, uint64_t blocks)
{
	while (stats_of(fd).blocks != blocks)
		poll(NULL, 0, 1);
}

/* ---- what it is about ---- */

TEST_F(seq, dropped_blocks_go_at_once)
{
	struct hawk_seq_map map;
	struct hawk_seg seg[4];
	struct hawk_item it;
	uint32_t seq;

	ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
	ASSERT_EQ(0, seq_rows(self->fd, self->win, seq, 8, 0));
	EXPECT_EQ(8 * LAYERS, stats_of(self->fd).resident);
	EXPECT_EQ(3 * LAYERS, seq_drop(self->fd, seq, TOKENS, 4 * TOKENS + 3));
	EXPECT_EQ(5 * LAYERS, stats_of(self->fd).resident);
	ASSERT_EQ(0, seq_map(self->other, seq, seg, 4, &map));
	ASSERT_EQ(2, map.count);
	EXPECT_EQ(8 * TOKENS, map.len);
	EXPECT_EQ(5 * TOKENS - 3, map.visible);
	EXPECT_EQ(5, map.rows);
	EXPECT_EQ(1, map.partial);
	EXPECT_EQ(0, seg[0].first);
	EXPECT_EQ(TOKENS, seg[0].len);
	EXPECT_EQ(4 * TOKENS + 3, seg[1].first);
	/* the bytes of those that stay, through the window */
	it = (struct hawk_item){ .lid = lid_at(seg[1].run, 1, seg[1].tok) };
	ASSERT_EQ(0, one(self->other, HAWK_IOC_GET, 0, &it));
	EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, 4 * LAYERS + 1));

	/* one of its blocks is pinned: that goes when the pin does, whoever asks */
	EXPECT_EQ(5 * LAYERS - 1, seq_free(self->fd, seq));
	EXPECT_EQ(1, stats_of(self->fd).blocks);
	EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, 4 * LAYERS + 1));
	it.lid = 0;
	EXPECT_EQ(0, one(self->other, HAWK_IOC_UNPIN, 0, &it));
	settle_at(self->fd, 0);
}

/* A lease and an export keep a dropped block too, and no longer. */
TEST_F(seq, leased_blocks_go_later)
{
	struct hawk_lease_release rel = { .size = sizeof(rel) };
	struct hawk_item it = { 0 }, by;
	struct hawk_batch b;
	struct hawk_seg seg;
	uint32_t seq;

	ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
	ASSERT_EQ(0, seq_rows(self->fd, NULL, seq, 1, 0));
	ASSERT_EQ(0, seq_map(self->fd, seq, &seg, 1, NULL));
	/* a keyed block of it */
	it.lid = lid_at(seg.run, 0, seg.tok);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PIN, 0, &it));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_UNSHARE, 0, &it));
	it.vt = 0;
	set_key(&it, 7);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	by = key_item(7);
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, &by, 1, &b));
	EXPECT_EQ(LAYERS - 1, seq_free(self->fd, seq));
	EXPECT_EQ(1, stats_of(self->fd).blocks);
	rel.lease = b.lease;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_LEASE_RELEASE, &rel));
	settle_at(self->fd, 0);
}

static int elastic(int fd, uint32_t flags, struct hawk_elastic *e)
{
	e->size = sizeof(*e);
	e->flags = flags;
	return dev_call(fd, HAWK_IOC_ELASTIC, e);
}

/* Who may set it; it is the space's, nobody else's. */
TEST_F(seq, elastic)
{
	struct hawk_space_create sc = seq_args(self->host);
	int fd = dev_open(O_RDWR), ro = dev_open(O_RDONLY);
	struct hawk_elastic e = { }, bad;

	ASSERT_EQ(0, space_attach(ro, NAME));
	ASSERT_EQ(0, elastic(ro, 0, &e)) TH_LOG("looking is no writing");
	EXPECT_EQ(0, e.on);
	EXPECT_EQ(64, e.sinks);
	EXPECT_EQ(1024, e.window);
	EXPECT_EQ(HOST_BYTES, e.cap_bytes);
	e.on = 1;
	EXPECT_EQ(-EACCES, elastic(ro, HAWK_ELASTIC_SET, &e));
	bad = e, bad.on = 2;
	EXPECT_EQ(-EINVAL, elastic(self->fd, HAWK_ELASTIC_SET, &bad));
	bad = e, bad.keep_free = HAWK_ELASTIC_ONE;
	EXPECT_EQ(-EINVAL, elastic(self->fd, HAWK_ELASTIC_SET, &bad));
	bad = e, bad.alpha_min = HAWK_ELASTIC_ONE + 1;
	EXPECT_EQ(-EINVAL, elastic(self->fd, HAWK_ELASTIC_SET, &bad));
	ASSERT_EQ(0, elastic(self->other, 0, &e));
	EXPECT_EQ(0, e.on) TH_LOG("what is refused leaves no trace");

	e.on = 1;
	e.sinks = 7;
	ASSERT_EQ(0, elastic(self->fd, HAWK_ELASTIC_SET, &e));
	do {
		ASSERT_EQ(0, elastic(ro, 0, &e));
	} while (!e.cycles);
	EXPECT_EQ(7, e.sinks);
	ASSERT_EQ(0, elastic(self->foreign, 0, &e));
	EXPECT_EQ(0, e.on);
	EXPECT_EQ(64, e.sinks);
	EXPECT_EQ(0, e.cycles);

	sc.seqs = 0, sc.flags = 0;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-EOPNOTSUPP, elastic(fd, 0, &e));
	close(ro);
	close(fd);
}

TEST_F(seq, refusals)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW };
	struct hawk_space_create sc = seq_args(self->host), bad;
	int fd = dev_open(O_RDWR), ro = dev_open(O_RDONLY);
	struct hawk_space_info info = { .size = sizeof(info) };
	uint32_t seq, mine;

	EXPECT_EQ(-EINVAL, seq_batch(self->fd, &op, 0, NULL));
	EXPECT_EQ(-E2BIG, seq_batch(self->fd, &op, HAWK_BATCH_MAX + 1, NULL));
	EXPECT_EQ(-EFAULT, seq_batch(self->fd, NULL, 1, NULL));
	ASSERT_EQ(0, space_attach(ro, NAME));
	EXPECT_EQ(-EACCES, seq_batch(ro, &op, 1, NULL));
	ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
	EXPECT_EQ(0, seq_map(ro, seq, NULL, 0, NULL)) TH_LOG("looking is no writing");

	/* a sequence of one tenant is none of another's, whatever number he tries */
	ASSERT_EQ(0, seq_rows(self->fd, NULL, seq, 2, 0));
	EXPECT_EQ(-ENOENT, seq_map(self->foreign, seq, NULL, 0, NULL));
	EXPECT_EQ(-ENOENT, seq_free(self->foreign, seq));
	ASSERT_EQ(0, seq_new(self->foreign, 0, &mine));
	op = (struct hawk_seq_op){
		.op = HAWK_SEQ_COMPOSE, .seq = mine, .src = seq + (seq == mine), .end = 1,
	};
	EXPECT_EQ(-ENOENT, seq_one(self->foreign, &op));
	EXPECT_EQ(2 * LAYERS, stats_of(self->fd).blocks);
	EXPECT_EQ(-E2BIG, seq_map(self->fd, seq, NULL, 0, NULL));
	EXPECT_EQ(-EFAULT, seq_map(self->fd, seq, (void *)8, 1, NULL));

	bad = sc, bad.seqs = HAWK_SEQS_MAX + 1;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad));
	bad = sc, bad.segs = HAWK_SEGS_MAX + 1;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad));
	bad = sc, bad.seqs = 0, bad.segs = 1;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad));
	bad = sc, bad.planes = 0;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad));
	bad = sc, bad.planes = 3;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad)) TH_LOG("beyond the block");
	bad = sc, bad.planes = ~0u, bad.token_bytes = ~0u;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad));
	bad = sc, bad.seqs = 0, bad.flags = 0;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &bad));
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_NEW };
	EXPECT_EQ(-EOPNOTSUPP, seq_batch(fd, &op, 1, NULL));
	EXPECT_EQ(-EOPNOTSUPP, seq_map(fd, 1, NULL, 0, NULL));

	ASSERT_EQ(0, dev_call(self->other, HAWK_IOC_SPACE_INFO, &info));
	EXPECT_EQ(SEQS, info.seqs);
	EXPECT_EQ(8 * SEQS, info.segs);
	EXPECT_EQ(TOKEN_BYTES, info.token_bytes);
	EXPECT_EQ(2, info.planes);
	close(ro);
	close(fd);
}

/*
 * All LID sequence numbers are taken, by sequences that have ended with a block pinned.
 * Once a pin has ended there is one to be had, whether or not the worker was there first.
 */
TEST_F(seq, numbers_wait_for_pins)
{
	struct hawk_item it[2 * SEQS] = { 0 }, pin;
	uint32_t seq, i, round;
	struct hawk_seg seg;

	for (i = 0, round = 0; round < 6 * SEQS; round++, i = round % (2 * SEQS)) {
		ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
		if (round == 2 * SEQS)
			EXPECT_EQ(-ENOSPC, seq_rows(self->fd, NULL, seq, 1, 0));
		if (it[i].vt) {
			pin = (struct hawk_item){ .vt = it[i].vt };
			ASSERT_EQ(0, one(self->other, HAWK_IOC_UNPIN, 0, &pin));
		}
		ASSERT_EQ(0, seq_rows(self->fd, NULL, seq, 1, 0)) TH_LOG("round %u", round);
		ASSERT_EQ(0, seq_map(self->fd, seq, &seg, 1, NULL));
		it[i] = (struct hawk_item){ .lid = lid_at(seg.run, 0, seg.tok) };
		ASSERT_EQ(0, one(self->other, HAWK_IOC_PIN, 0, &it[i]));
		ASSERT_LE(0, seq_free(self->fd, seq));
	}
	for (i = 0; i < 2 * SEQS; i++) {
		pin = (struct hawk_item){ .vt = it[i].vt };
		EXPECT_EQ(0, one(self->other, HAWK_IOC_UNPIN, 0, &pin));
	}
	settle_at(self->fd, 0);
}

/* Results that cannot be handed back leave no sequence. */
TEST_F(seq, lost_answer)
{
	struct hawk_seq_op *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t seq[SEQS], i;

	ASSERT_NE(MAP_FAILED, page);
	for (i = 0; i < 4096 / sizeof(*page); i++)
		page[i] = (struct hawk_seq_op){ .op = i % 3 == 2 ? HAWK_SEQ_FREE : HAWK_SEQ_NEW,
						.seq = HAWK_SEQ_LAST };
	ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(-EFAULT, seq_batch(self->fd, page, 4096 / sizeof(*page), NULL));
	for (i = 0; i < SEQS; i++)
		EXPECT_EQ(0, seq_new(self->fd, 0, &seq[i])) TH_LOG("sequence %u", i);
	EXPECT_EQ(-ENOSPC, seq_new(self->fd, 0, &seq[0]));
	munmap(page, 4096);
}

/* ---- the end of an owner ---- */

/* Makes sequences, keeps pins, changes what is to be kept, until it is killed. */
static void victim(int ready)
{
	struct hawk_item it = { 0 };
	struct hawk_seg seg;
	uint32_t seq, keep;
	int fd = dev_open(O_RDWR);
	struct hawk_seq_op op;

	if (space_attach(fd, NAME) || seq_new(fd, HAWK_SEQ_KEEP, &keep) ||
	    seq_rows(fd, NULL, keep, 2, 0) || seq_new(fd, 0, &seq) ||
	    seq_rows(fd, NULL, seq, 4, 0) || seq_map(fd, seq, &seg, 1, NULL))
		_exit(1);
	it.lid = lid_at(seg.run, 0, seg.tok);
	if (one(fd, HAWK_IOC_PIN, 0, &it) || write(ready, &keep, sizeof(keep)) != sizeof(keep))
		_exit(2);
	for (;;) {
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_FORK, .src = seq };
		if (seq_one(fd, &op) || seq_drop(fd, op.seq, 5, 30) < 0 ||
		    seq_rows(fd, NULL, op.seq, 2, 0) || seq_free(fd, op.seq) < 0)
			_exit(3);
	}
}

TEST_F(seq, killed_owner)
{
	struct hawk_seq_map map;
	struct hawk_seg seg;
	uint32_t keep, i;
	int pipefd[2], status;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		if (!pid)
			victim(pipefd[1]);
		ASSERT_EQ(sizeof(keep), read(pipefd[0], &keep, sizeof(keep)));
		poll(NULL, 0, i % 5);	/* anywhere in what it does */
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status)) TH_LOG("it failed at step %d", WEXITSTATUS(status));
		close(pipefd[0]);
		close(pipefd[1]);
		/* its own are gone, what is to be kept is there */
		settle_at(self->fd, 2 * LAYERS);
		EXPECT_EQ(0, stat_pinned(self->fd));
		ASSERT_EQ(0, seq_map(self->fd, keep, &seg, 1, &map));
		EXPECT_EQ(2 * TOKENS, map.visible);
		EXPECT_EQ(2 * LAYERS, seq_free(self->other, keep));
	}
	EXPECT_EQ(0, stats_of(self->fd).blocks);
}

/* ---- from hand to hand ---- */

#define HANDED_ROWS	4u
#define HANDED		(HANDED_ROWS * LAYERS)	/* blocks */

/* Pins, compares bytes and frames with those of @before, unpins: 0 or the number of a block. */
static uint32_t compare(int fd, uint8_t *win, const struct hawk_item *before)
{
	struct hawk_item it;
	uint32_t i;

	for (i = 0; i < HANDED; i++) {
		it = (struct hawk_item){ .lid = before[i].lid };
		if (one(fd, HAWK_IOC_PIN, 0, &it) ||
		    HAWK_VT_FRAME(it.vt) != HAWK_VT_FRAME(before[i].vt) ||
		    !filled(frame_at(win, it.vt, BLOCK), BLOCK, 40 + i))
			return i + 1;
		it.vt = 0;
		if (one(fd, HAWK_IOC_UNPIN, 0, &it))
			return i + 1;
	}
	return 0;
}

/* Takes sequence @seq of @giver's space over and tells its own; looks at it when asked to. */
static void taker(int giver, uint32_t seq, uint32_t host, const struct hawk_item *before, int told,
		  int asked)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = giver,
	};
	struct hawk_seq_op op = { .op = HAWK_SEQ_FORK, .src = seq };
	int fd = dev_open(O_RDWR);
	uint8_t *win;
	char c;

	if (dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at))
		_exit(1);
	win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ);
	if (!win || seq_one(fd, &op) || write(told, &op.seq, 4) != 4)
		_exit(2);
	while (read(asked, &c, 1) == 1) {
		c = (char)compare(fd, win, before);
		if (write(told, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static void translations(int fd, uint32_t seq, struct hawk_item *it)
{
	struct hawk_seg seg;
	uint32_t i;

	if (seq_map(fd, seq, &seg, 1, NULL))
		return;
	for (i = 0; i < HANDED; i++) {
		it[i] = (struct hawk_item){
			.lid = lid_at(seg.run, i % LAYERS, seg.tok + i / LAYERS * TOKENS),
		};
		one(fd, HAWK_IOC_TRANSLATE, 0, &it[i]);
	}
}

/*
 * Another process takes a sequence over: the same frames, nothing is copied, and it is his
 * alone when the giver has ended his own.  If he dies it ends; if he dies before, it has
 * always been the giver's.
 */
TEST_F(seq, handed_over)
{
	struct hawk_item before[HANDED];
	struct hawk_stats st;
	uint32_t seq, his, i;
	int told[2], asked[2], status;
	char c = 0;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
		ASSERT_EQ(0, seq_rows(self->fd, self->win, seq, HANDED_ROWS, 40));
		translations(self->fd, seq, before);
		st = stats_of(self->fd);
		ASSERT_EQ(0, pipe(told));
		ASSERT_EQ(0, pipe(asked));
		pid = fork();
		if (!pid) {
			close(told[0]);
			close(asked[1]);
			taker(self->fd, seq, self->host, before, told[1], asked[0]);
		}
		close(told[1]);
		close(asked[0]);
		if (i % 2) {
			/* dead somewhere in the middle of it */
			poll(NULL, 0, i % 5);
			kill(pid, SIGKILL);
			ASSERT_EQ(pid, waitpid(pid, &status, 0));
			EXPECT_EQ(0, compare(self->fd, self->win, before));
			EXPECT_GE(seq_free(self->fd, seq), 0);
		} else {
			ASSERT_EQ(4, read(told[0], &his, 4));
			EXPECT_EQ(0, seq_free(self->fd, seq)) TH_LOG("no block may go");
			ASSERT_EQ(1, write(asked[1], &c, 1));
			ASSERT_EQ(1, read(told[0], &c, 1));
			EXPECT_EQ(0, c) TH_LOG("block %d", c - 1);
			EXPECT_EQ(HANDED, stats_of(self->fd).blocks);
			EXPECT_EQ(st.allocs, stats_of(self->fd).allocs);
			kill(pid, SIGKILL);
			ASSERT_EQ(pid, waitpid(pid, &status, 0));
		}
		settle_at(self->fd, 0);
		close(told[0]);
		close(asked[1]);
	}
}

/* ---- races ---- */

/* @n random operations on sequence @seq: exits with 0, or the number of what was wrong. */
static void rival(uint32_t seq, unsigned int seed, uint32_t n)
{
	int fd = dev_open(O_RDWR), ret;
	struct hawk_seq_op op;
	struct hawk_seq_map map;
	uint32_t fork = 0, i;

	if (space_attach(fd, NAME))
		_exit(1);
	for (i = 0; i < n; i++) {
		ret = seq_map(fd, seq, NULL, 0, &map);
		if (ret && ret != -E2BIG)
			_exit(2);
		op = (struct hawk_seq_op){ .seq = seq, .op = HAWK_SEQ_DROP };
		switch (rand_r(&seed) % 6) {
		case 0:
			if (!fork) {
				op = (struct hawk_seq_op){ .op = HAWK_SEQ_FORK, .src = seq };
				if (seq_one(fd, &op))
					_exit(3);
				fork = op.seq;
			} else {
				if (seq_free(fd, fork) < 0)
					_exit(4);
				fork = 0;
			}
			break;
		case 1:
			op.op = HAWK_SEQ_TRUNCATE;
			op.len = map.len / 2;
			ret = seq_one(fd, &op);
			if (ret && ret != -EINVAL)	/* the other one has cut it shorter */
				_exit(5);
			break;
		case 2:
		case 3:
			if (map.len > 200)
				break;
			op.op = HAWK_SEQ_APPEND;
			op.len = 1 + rand_r(&seed) % 40;
			ret = seq_one(fd, &op);
			if (ret)
				_exit(6);
			/* its blocks may be nobody's any more before they are there */
			ret = lid_call(fd, HAWK_IOC_ALLOC, lid_at(op.run, 0, op.tok));
			if (!ret)
				lid_call(fd, HAWK_IOC_PUT, lid_at(op.run, 0, op.tok));
			else if (ret != -EINVAL && ret != -EEXIST)
				_exit(7);
			break;
		default:
			op.start = rand_r(&seed) % (map.len + 1);
			op.end = op.start + 1 + rand_r(&seed) % 30;
			ret = seq_one(fd, &op);
			if (ret && ret != -EINVAL)
				_exit(8);
		}
	}
	_exit(0);
}

TEST_F(seq, two_processes_on_one)
{
	int status;
	uint32_t seq, i;
	pid_t pid[2];

	ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
	for (i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i])
			rival(seq, i + 1, 1500);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		ASSERT_TRUE(WIFEXITED(status));
		EXPECT_EQ(0, WEXITSTATUS(status)) TH_LOG("rival %u", i);
	}
	EXPECT_GE(seq_free(self->fd, seq), 0);
	settle_at(self->fd, 0);
}

/* ---- signals ---- */

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms++;
}

/* A signal ends a batch behind an operation: what is done is done, the rest is told. */
TEST_F(seq, signals)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval timer = { .it_value = { .tv_usec = 200 } };
	struct hawk_seq_op *op = calloc(HAWK_BATCH_MAX, sizeof(*op));
	uint32_t seq, i, k, cut = 0;
	struct hawk_seq_batch b;
	int ret;

	ASSERT_NE(NULL, op);
	ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
	ASSERT_EQ(0, sigaction(SIGALRM, &sa, NULL));
	for (i = 0; i < 2000 && !cut; i++) {
		for (k = 0; k < HAWK_BATCH_MAX; k++)
			op[k] = (struct hawk_seq_op){
				.op = k % 2 ? HAWK_SEQ_TRUNCATE : HAWK_SEQ_APPEND, .seq = seq,
				.len = k % 2 ? 0 : 1,
			};
		timer.it_value.tv_usec = 50 + i * 7 % 5000;
		setitimer(ITIMER_REAL, &timer, NULL);
		ret = seq_batch(self->fd, op, HAWK_BATCH_MAX, &b);
		if (ret == -EINTR)
			continue;
		ASSERT_EQ(0, ret);
		for (k = 0; k < HAWK_BATCH_MAX && !op[k].status; k++)
			;
		EXPECT_EQ(k, b.done);
		cut = k < HAWK_BATCH_MAX;
		for (; k < HAWK_BATCH_MAX; k++)
			ASSERT_EQ(-ECANCELED, op[k].status) TH_LOG("operation %u", k);
	}
	timer.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
	EXPECT_TRUE(cut) TH_LOG("%d alarms, and none met a batch", (int)alarms);
	EXPECT_GE(seq_free(self->fd, seq), 0);
	free(op);
}

/* ---- compaction ---- */

/* Half-empty rows become full ones when that is switched on; the switch says so. */
TEST_F(seq, compaction_switch)
{
	struct hawk_seq_map map;
	struct hawk_seg seg[64];
	uint32_t seq, i;
	char on = 0;
	int fd;

	EXPECT_EQ(-EINVAL, write_file(COMPACT, "x"));
	ASSERT_EQ(0, write_file(COMPACT, "0"));
	fd = open(COMPACT, O_RDONLY | O_CLOEXEC);
	EXPECT_EQ(1, read(fd, &on, 1));
	EXPECT_EQ('0', on);
	close(fd);
	ASSERT_EQ(0, seq_new(self->fd, 0, &seq));
	ASSERT_EQ(0, seq_rows(self->fd, self->win, seq, 20, 0));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, seq_drop(self->fd, seq, i * TOKENS, i * TOKENS + TOKENS / 2));
	/* the worker has looked when a block that waited for its pin is gone */
	{
		struct hawk_item it = { 0 };
		uint32_t other;

		ASSERT_EQ(0, seq_new(self->fd, 0, &other));
		ASSERT_EQ(0, seq_rows(self->fd, NULL, other, 1, 0));
		ASSERT_EQ(0, seq_map(self->fd, other, seg, 64, NULL));
		it.lid = lid_at(seg[0].run, 0, seg[0].tok);
		ASSERT_EQ(0, one(self->fd, HAWK_IOC_PIN, 0, &it));
		EXPECT_EQ(LAYERS - 1, seq_free(self->fd, other));
		it.lid = 0;
		ASSERT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &it));
		settle_at(self->fd, 20 * LAYERS);
	}
	ASSERT_EQ(0, seq_map(self->fd, seq, seg, 64, &map));
	EXPECT_EQ(20, map.rows);

	ASSERT_EQ(0, write_file(COMPACT, "1"));
	/* with what makes the worker look again */
	ASSERT_EQ(0, seq_drop(self->fd, seq, TOKENS / 2, TOKENS / 2 + 1));
	do {
		poll(NULL, 0, 1);
		ASSERT_EQ(0, seq_map(self->fd, seq, seg, 64, &map));
	} while (map.rows > 12);
	EXPECT_EQ(20 * TOKENS / 2 - 1, map.visible);
	settle_at(self->fd, map.rows * LAYERS);
	EXPECT_EQ(map.rows * LAYERS, seq_free(self->fd, seq));
}

TEST_HARNESS_MAIN
