// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_stats.c - the mapped page of statistics: who may map it, what it says
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

#include "hawk_tiers.h"

#define PAGE_BYTES	((sizeof(struct hawk_stats_page) + 4095) & ~4095ul)

static struct hawk_stats_page *map_page(int fd)
{
	return map_area(fd, HAWK_MMAP_STATS, PAGE_BYTES, PROT_READ);
}

/* A copy of the page of one moment, as <linux/hawk.h> tells readers to take it. */
static struct hawk_stats_page snapshot(const struct hawk_stats_page *p)
{
	struct hawk_stats_page copy;
	uint32_t seq;

	do {
		while ((seq = __atomic_load_n(&p->seq, __ATOMIC_ACQUIRE)) & 1)
			;
		memcpy(&copy, p, sizeof(copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&p->seq, __ATOMIC_RELAXED) != seq);
	return copy;
}

/* STATS brings the page up to date. */
static struct hawk_stats_page fresh(int fd, const struct hawk_stats_page *p)
{
	stats_of(fd);
	return snapshot(p);
}

static uint64_t sum(const struct hawk_hist *h)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < HAWK_STATS_BUCKETS; i++)
		n += h->bucket[i];
	return n;
}

static const struct hawk_hist *op(const struct hawk_stats_page *p, unsigned long cmd)
{
	return &p->op[HAWK_STATS_OP(cmd)];
}

/* The times of a histogram's buckets must be able to make up its sum. */
static bool times_fit(const struct hawk_hist *h)
{
	uint64_t low = 0, high = 0;
	int i;

	for (i = 0; i < HAWK_STATS_BUCKETS - 1; i++) {
		low += h->bucket[i] * (i ? 1ull << i : 0);
		high += h->bucket[i] * ((2ull << i) - 1);
	}
	return sum(h) == h->count && low <= h->ns && h->ns <= high &&
	       !h->bucket[HAWK_STATS_BUCKETS - 1];
}

TEST_F(tiers, counts)
{
	int fd = evicting_space(self->host, self->blk, "test-stats");
	struct hawk_item it = { .lid = LID(0) }, miss[3] = {
		key_item(100000), key_item(100001), key_item(NBLOCKS - 1),
	};
	struct hawk_stats_page *p, s;
	struct hawk_stats st;
	uint32_t i;

	ASSERT_GE(fd, 0);
	p = map_page(fd);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(0, one(fd, HAWK_IOC_GET, 0, &it));
	EXPECT_EQ(0, batch(fd, HAWK_IOC_LOOKUP, 0, miss, 3, NULL));
	s = fresh(fd, p);
	EXPECT_EQ(sizeof(s), s.size);
	EXPECT_EQ(HAWK_STATS_VERSION, s.version);
	EXPECT_EQ(100, s.period_ms);
	EXPECT_LT(now_ns() - s.time_ns, 60000000000ull);

	EXPECT_EQ(NBLOCKS / STEP, op(&s, HAWK_IOC_ALLOC)->count);
	EXPECT_EQ(NBLOCKS, op(&s, HAWK_IOC_ALLOC)->items);
	EXPECT_EQ(0, op(&s, HAWK_IOC_ALLOC)->failed);
	EXPECT_EQ(NBLOCKS / STEP, op(&s, HAWK_IOC_PUT)->count);
	EXPECT_EQ(1, op(&s, HAWK_IOC_GET)->count);
	EXPECT_EQ(1, op(&s, HAWK_IOC_LOOKUP)->count);
	EXPECT_EQ(3, op(&s, HAWK_IOC_LOOKUP)->items);
	EXPECT_EQ(2, op(&s, HAWK_IOC_LOOKUP)->failed);
	EXPECT_EQ(0, op(&s, HAWK_IOC_FREE)->count);
	for (i = 0; i < HAWK_STATS_OPS; i++)
		EXPECT_TRUE(times_fit(&s.op[i])) TH_LOG("op %u", i);

	st = stats_of(fd);
	EXPECT_EQ(0, memcmp(&st, s.stats, sizeof(st)));
	EXPECT_EQ(1, s.read[self->blk].count);
	EXPECT_EQ(BLOCK, s.read[self->blk].items);
	EXPECT_EQ(st.evict_write, s.write[self->blk].count);
	EXPECT_EQ(st.evict_write * BLOCK, s.write[self->blk].items);
	EXPECT_EQ(0, s.write[self->blk].failed);
	EXPECT_EQ(0, s.write[self->host].count);
	EXPECT_TRUE(times_fit(&s.read[self->blk]));
	EXPECT_TRUE(times_fit(&s.write[self->blk]));
	munmap(p, PAGE_BYTES);
	close(fd);
}

/* Without a system call: the page moves on while it is mapped. */
TEST_F(tiers, kept_up_to_date)
{
	int fd = evicting_space(self->host, self->blk, "test-stats");
	struct hawk_stats_page *p;
	uint32_t seq;

	ASSERT_GE(fd, 0);
	p = map_page(fd);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_TRANSLATE, LID(0)));
	while (snapshot(p).op[HAWK_STATS_OP(HAWK_IOC_TRANSLATE)].count != 1)
		usleep(1000);
	for (seq = p->seq; __atomic_load_n(&p->seq, __ATOMIC_RELAXED) - seq < 6;)
		usleep(1000);
	munmap(p, PAGE_BYTES);
	close(fd);
}

/* Asynchronous calls are counted when they end. */
TEST_F(tiers, asynchronous)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 16, .eventfd = -1 };
	int fd = evicting_space(self->host, self->blk, "test-stats");
	struct hawk_stats_page *p, s;
	struct hawk_item it[4];
	uint32_t i;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	p = map_page(fd);
	ASSERT_NE(NULL, p);
	for (i = 0; i < 4; i++)
		it[i] = (struct hawk_item){ .lid = LID(i) };
	EXPECT_EQ(0, batch(fd, HAWK_IOC_RELOAD, HAWK_BATCH_ASYNC, it, 4, NULL));
	do {
		s = fresh(fd, p);
	} while (!op(&s, HAWK_IOC_RELOAD)->count);
	EXPECT_EQ(4, op(&s, HAWK_IOC_RELOAD)->items);
	EXPECT_EQ(0, op(&s, HAWK_IOC_RELOAD)->failed);
	EXPECT_EQ(4, s.read[self->blk].count);
	munmap(p, PAGE_BYTES);
	close(fd);
}

#define ROWS	4u

/* Blocks 0 to ROWS - 2, and one that is not there. */
static int gather_rows(int fd, void *buf, uint32_t flags, uint64_t deadline_ns)
{
	uint64_t lid[ROWS] = { LID(0), LID(1), LID(2), LID(100000) };
	uint32_t count = ROWS, remap[ROWS];
	int32_t status[ROWS];
	struct hawk_gather g = {
		.size = sizeof(g), .flags = flags, .lists = 1, .rows = ROWS,
		.counts = (uintptr_t)&count, .lids = (uintptr_t)lid, .remap = (uintptr_t)remap,
		.status = (uintptr_t)status, .buf = (uintptr_t)buf, .buf_bytes = ROWS * BLOCK,
		.deadline_ns = deadline_ns,
	};

	return dev_call(fd, HAWK_IOC_GATHER, &g);
}

/* Gathers by their rows, when all of these have their status; a refused one is none. */
TEST_F(tiers, gathers)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 16, .eventfd = -1 };
	int fd = evicting_space(self->host, self->blk, "test-stats");
	uint8_t *buf = mmap(NULL, ROWS * BLOCK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hawk_stats_page *p, s;
	struct hawk_ring *ring;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	ring = map_area(fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	p = map_page(fd);
	ASSERT_NE(NULL, ring);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(0, gather_rows(fd, buf, 0, 0));
	s = fresh(fd, p);
	EXPECT_EQ(1, s.gather.count);
	EXPECT_EQ(ROWS, s.gather.items);
	EXPECT_EQ(1, s.gather.failed);
	EXPECT_TRUE(times_fit(&s.gather));
	EXPECT_EQ(0, gather_rows(fd, buf, 0, 1)) TH_LOG("out of time before it begins");
	s = fresh(fd, p);
	EXPECT_EQ(2, s.gather.count);
	EXPECT_EQ(1 + ROWS, s.gather.failed);
	EXPECT_EQ(-EFAULT, gather_rows(fd, (void *)4096, 0, 0));
	EXPECT_EQ(0, gather_rows(fd, buf, HAWK_BATCH_ASYNC, 0));
	while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) < ROWS)	/* one per block, one */
		poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1000);
	s = fresh(fd, p);
	EXPECT_EQ(3, s.gather.count);
	EXPECT_EQ(3 * ROWS, s.gather.items);
	EXPECT_EQ(2 + ROWS, s.gather.failed);
	EXPECT_TRUE(times_fit(&s.gather));
	EXPECT_EQ(0, memcmp(&(struct hawk_hist){ .count = 0 }, op(&s, HAWK_IOC_GET),
			    sizeof(s.gather)));
	munmap(p, PAGE_BYTES);
	munmap(ring, rs.ring_bytes);
	munmap(buf, ROWS * BLOCK);
	close(fd);
}

/* One's own space and nothing else. */
TEST_F(tiers, isolation)
{
	int fd = evicting_space(self->host, self->blk, "test-stats"), other = dev_open(O_RDWR);
	struct hawk_space_create sc = space_args(64);
	struct hawk_hist none = { .count = 0 };
	struct hawk_stats_page *p, s;
	struct hawk_stats st;
	uint32_t i;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(NULL, map_page(other));
	EXPECT_EQ(ENXIO, errno);
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(other, HAWK_IOC_SPACE_CREATE, &sc));
	p = map_page(other);
	ASSERT_NE(NULL, p);
	s = fresh(other, p);
	for (i = 0; i < HAWK_STATS_OPS; i++)
		EXPECT_EQ(0, memcmp(&none, &s.op[i], sizeof(none)));
	EXPECT_EQ(0, memcmp(&none, &s.gather, sizeof(none)));
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		EXPECT_EQ(0, memcmp(&none, &s.read[i], sizeof(none)) |
			     memcmp(&none, &s.write[i], sizeof(none)));
	st = (struct hawk_stats){ .size = sizeof(st) };
	EXPECT_EQ(0, memcmp(&st, s.stats, sizeof(st)));
	/* what lies behind the structure is no old memory */
	for (i = sizeof(s); i < PAGE_BYTES; i++)
		ASSERT_EQ(0, ((char *)p)[i]);
	munmap(p, PAGE_BYTES);
	close(other);
	close(fd);
}

TEST_F(tiers, mapping)
{
	int fd = evicting_space(self->host, self->blk, "test-stats");
	struct hawk_query q = { .size = sizeof(q) };
	struct hawk_stats_page *p, *again;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_QUERY, &q));
	EXPECT_NE(0, q.features & HAWK_FEAT_STATS_PAGE);
	EXPECT_EQ(NULL, map_area(fd, HAWK_MMAP_STATS, PAGE_BYTES, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(NULL, map_area(fd, HAWK_MMAP_STATS, PAGE_BYTES + 4096, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, HAWK_MMAP_STATS));
	EXPECT_EQ(EINVAL, errno);
	p = map_page(fd);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, mprotect(p, PAGE_BYTES, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	/* in two parts: the one that is left is kept up to date; also without the file */
	EXPECT_EQ(0, munmap((char *)p + 4096, PAGE_BYTES - 4096));
	again = map_page(fd);
	ASSERT_NE(NULL, again);
	EXPECT_EQ(0, munmap(again, PAGE_BYTES));
	close(fd);
	for (uint32_t seq = p->seq; __atomic_load_n(&p->seq, __ATOMIC_RELAXED) - seq < 4;)
		usleep(1000);
	EXPECT_EQ(0, munmap(p, 4096));
}

static uint64_t hits(const struct hawk_stats_page *p)
{
	struct hawk_stats st;

	memcpy(&st, p->stats, sizeof(st));
	return st.hits;
}

struct reader {
	const struct hawk_stats_page *page;
	bool stop;
	uint64_t bad;
};

/* In a copy of one moment no count is less than in an earlier one. */
static void *watch(void *arg)
{
	struct reader *r = arg;
	struct hawk_stats_page a = snapshot(r->page), b;
	int i;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		b = snapshot(r->page);
		r->bad += b.time_ns < a.time_ns || hits(&b) < hits(&a);
		for (i = 0; i < HAWK_STATS_OPS; i++)
			r->bad += b.op[i].count < a.op[i].count || sum(&b.op[i]) < sum(&a.op[i]);
		a = b;
	}
	return NULL;
}

/* Two readers, and one who makes the page be written all the time. */
TEST_F(tiers, readers)
{
	int fd = evicting_space(self->host, self->blk, "test-stats"), i;
	struct hawk_item by = key_item(NBLOCKS - 1);
	struct reader r = { .stop = false };
	struct hawk_stats_page s;
	pthread_t thread[2];

	ASSERT_GE(fd, 0);
	r.page = map_page(fd);
	ASSERT_NE(NULL, r.page);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, watch, &r));
	for (i = 0; i < 500; i++) {
		EXPECT_EQ(0, one(fd, HAWK_IOC_LOOKUP, 0, &by));
		s = fresh(fd, r.page);
		ASSERT_EQ(i + 1, op(&s, HAWK_IOC_LOOKUP)->count);
		ASSERT_TRUE(times_fit(op(&s, HAWK_IOC_LOOKUP)));
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, r.bad);
	munmap((void *)r.page, PAGE_BYTES);
	close(fd);
}

TEST_HARNESS_MAIN
