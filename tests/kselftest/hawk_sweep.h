/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_sweep.h - a call meets every failure that it can meet
 *
 * A step is one system call that succeeds.  It is repeated with the first, the
 * second, ... allocation or user copy in it failing, until it runs through
 * without one.  After each failure nothing may have changed, the same call must
 * succeed, and what it did can be taken back; what leaks keeps a tier from being
 * removed or shows in kmemleak's scan.
 *
 * -EFAULT is the exception that the ABI makes: results that cannot be written
 * back may have been reached all the same.
 */
#ifndef HAWK_SWEEP_H
#define HAWK_SWEEP_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_fault.h"
#include "hawk_test.h"

#define TIER_BYTES	(2 * MIB)		/* of each host tier */
#define TIER_BLOCKS	((uint32_t)(TIER_BYTES / BLOCK))
#define FLASH_BYTES	(8 * MIB)
#define FEW		8u			/* blocks of a space that all stay in DRAM */
#define MANY		(TIER_BLOCKS + 64)	/* of one whose first are on flash */
#define SEQS		4u			/* fewer than a sweep has failures */
#define RING		16u			/* entries; fewer than there are failures */
#define NEW		1000u			/* number of a block that a step makes */
#define NAME		"test-fail-nth"
#define MAP_PLACE	((void *)(1ul << 45))	/* far from all: a touch needs page tables */
#define FAILURES_MAX	20000u			/* a sweep that never ends is none */

FIXTURE(nth) {
	int counter;		/* of failures */
	int ctl;		/* has no space */
	int fd;			/* has the space */
	int other;		/* a file that a step has opened, or -1 */
	int efd;
	uint32_t host, blk;
	uint32_t tiers;		/* those of the fixture, bit t for tier t */
	char *path, *path2;
	uint32_t blocks;	/* of the space */
	uint32_t at;		/* the block that the flash steps look at */
	struct hawk_ring *ring;
	size_t ring_bytes, vtlb_bytes;
	volatile uint8_t *map;	/* a mapping that a step has made */
	size_t map_bytes;
	uint64_t lease, lease_ends;
	uint64_t export_id;
	uint32_t seq;		/* a sequence that a step has made, or 0 */
	uint32_t frame;
	uint32_t batch;		/* number of the latest asynchronous batch */
	void *uring;		/* struct io_uring of the steps that use one */
};

typedef FIXTURE_DATA(nth) env;

/**
 * struct step - a system call and what belongs to it
 * @prepare: makes what the call needs, or NULL
 * @call: the call alone; 0 or a negative errno
 * @undo: back to before @prepare, whether the call was successful or not; or NULL
 * @blocks: blocks that the space has: FEW, or MANY
 * @moves: it evicts, so that what is where may change although it fails, and a
 *	transfer that fails costs the block
 * @again: want of memory may also show as -EAGAIN
 */
struct step {
	int (*prepare)(env *e);
	int (*call)(env *e);
	int (*undo)(env *e);
	uint32_t blocks;
	bool moves;
	bool again;
};

/* What a failed call must not change. */
struct look {
	uint64_t free[HAWK_TIERS_MAX];
	struct hawk_stats st;
	uint32_t tiers;
};

static inline uint32_t tiers_of(int fd)
{
	struct hawk_query q = { .size = sizeof(q) };

	return dev_call(fd, HAWK_IOC_QUERY, &q) ? ~0u : q.tiers;
}

static inline struct look look_at(env *e, bool moves)
{
	struct look l;
	uint32_t t;

	memset(&l, 0, sizeof(l));
	l.tiers = tiers_of(e->ctl);
	l.st = stats_of(e->fd);
	/* Those are states, as @chunks; the members from @allocs on only ever grow. */
	memset(&l.st.allocs, 0, offsetof(struct hawk_stats, chunks) -
	       offsetof(struct hawk_stats, allocs));
	memset(&l.st.recovered, 0, sizeof(l.st) - offsetof(struct hawk_stats, recovered));
	if (moves) {
		l.st.resident = 0;
		l.st.flash = 0;
		l.st.blocks = 0;
	}
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (l.tiers & e->tiers & 1u << t)
			l.free[t] = tier_free_bytes(e->ctl, t);
	return l;
}

/* Blocks @from .. @to - 1, each with its number as key. */
static inline int make_blocks(int fd, uint32_t from, uint32_t to)
{
	struct hawk_item it = { };
	int ret = 0;

	for (; !ret && from < to; from++) {
		it = (struct hawk_item){ .lid = LID(from) };
		ret = one(fd, HAWK_IOC_ALLOC, 0, &it);
		set_key(&it, from);
		it.vt = 0;
		if (!ret)
			ret = one(fd, HAWK_IOC_PUT, 0, &it);
	}
	return ret;
}

/* The space that steps work in: in DRAM alone, or with most of it on flash. */
static inline int make_space(env *e, uint32_t blocks)
{
	struct hawk_space_create sc = space_args(1024);
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = RING, .eventfd = e->efd };
	int ret;

	sc.quota[e->host].max_bytes = TIER_BYTES;
	sc.seqs = SEQS;
	if (blocks == MANY)
		sc.quota[e->blk].max_bytes = FLASH_BYTES;
	e->blocks = blocks;
	ret = dev_call(e->fd, HAWK_IOC_SPACE_CREATE, &sc);
	if (!ret)
		ret = dev_call(e->fd, HAWK_IOC_RING_SETUP, &rs);
	e->vtlb_bytes = sc.vtlb_bytes;
	e->ring_bytes = rs.ring_bytes;
	if (!ret)
		e->ring = map_area(e->fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	return ret ?: make_blocks(e->fd, 0, blocks);
}

/* The harness goes on to the test when a setup returns; this is how a test says "skipped". */
#define SKIP_IN_SETUP	_exit(255)

FIXTURE_SETUP(nth)
{
	const char *lacks = fault_setup();

	self->counter = fault_open();
	if (lacks || self->counter < 0)
		SKIP(SKIP_IN_SETUP, "this kernel cannot inject failures (%s)",
		     lacks ?: "fail-nth");
	if (!test_dir())
		SKIP(SKIP_IN_SETUP, "HAWK_TEST_DIR is not set");
	self->path = temp_file("fail", FLASH_BYTES);
	self->path2 = temp_file("fail2", FLASH_BYTES);
	ASSERT_TRUE(self->path && self->path2);
	self->ctl = dev_open(O_RDWR);
	self->fd = dev_open(O_RDWR);
	self->efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ASSERT_TRUE(self->ctl >= 0 && self->fd >= 0 && self->efd >= 0);
	ASSERT_EQ(0, host_add(self->ctl, TIER_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	self->tiers = tiers_of(self->ctl);
	self->other = -1;
}

FIXTURE_TEARDOWN(nth)
{
	munmap(self->ring, self->ring_bytes);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	EXPECT_EQ(0, tiers_of(self->ctl) & self->tiers);
	close(self->ctl);
	close(self->efd);
	close(self->counter);
	unlink(self->path);
	unlink(self->path2);
	free(self->path);
	free(self->path2);
}

/* Memory is short, a pointer is bad, or (a transfer that found no memory) it failed. */
static inline bool may_fail_so(const struct step *s, int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || (s->moves && ret == -EIO) ||
	       (s->again && ret == -EAGAIN);
}

/* One failure: the @n-th. Return: whether there was one. */
static inline bool fail_once(struct __test_metadata *_metadata, env *e, const struct step *s,
		      unsigned int n, unsigned int *errors)
{
	struct look before, after;
	bool failed;
	int ret;

	if (s->prepare)
		ASSERT_EQ(0, s->prepare(e)) TH_LOG("before failure %u", n);
	before = look_at(e, s->moves);
	ASSERT_TRUE(fault_arm(e->counter, n));
	ret = s->call(e);
	failed = fault_disarm(e->counter);
	if (!failed || !ret) {
		ASSERT_EQ(0, ret) TH_LOG("failure %u: not injected, and yet it failed", n);
		return failed;
	}
	++*errors;
	ASSERT_TRUE(may_fail_so(s, ret)) TH_LOG("failure %u gives %d", n, ret);
	if (ret != -EFAULT && ret != -EIO) {
		after = look_at(e, s->moves);
		ASSERT_EQ(0, memcmp(&before, &after, sizeof(after)))
			TH_LOG("failure %u (%d) has changed something", n, ret);
		ASSERT_EQ(0, s->call(e)) TH_LOG("failure %u (%d): not repeatable", n, ret);
	}
	return true;
}

static inline void sweep(struct __test_metadata *_metadata, env *e, const struct step *s)
{
	unsigned int n = 0, errors = 0;
	struct look first, last;
	bool more;

	ASSERT_EQ(0, make_space(e, s->blocks ?: FEW));
	first = look_at(e, s->moves);
	do {
		ASSERT_LT(++n, FAILURES_MAX);
		more = fail_once(_metadata, e, s, n, &errors);
		if (s->undo)
			ASSERT_EQ(0, s->undo(e)) TH_LOG("after failure %u", n);
	} while (more);
	last = look_at(e, s->moves);
	EXPECT_EQ(0, memcmp(&first, &last, sizeof(last))) TH_LOG("the sweep has left something");
	EXPECT_GT(n, 1) TH_LOG("nothing failed: there is no call without copy or allocation");
	TH_LOG("%u failures, %u of them seen by the caller", n - 1, errors);
}

#define SWEEP(_name, ...)						\
	TEST_F_TIMEOUT(nth, _name, 600)				\
	{								\
		static const struct step step = { __VA_ARGS__ };	\
									\
		sweep(_metadata, self, &step);				\
	}

#endif /* HAWK_SWEEP_H */
