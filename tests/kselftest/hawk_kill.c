// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_kill.c - a writer dies at any instruction and leaves nothing
 *
 * A writer puts blocks by key, so others are evicted; it gets some back from flash,
 * at once or asynchronously, keeps pins and leases.  A reader gets blocks by key
 * through its own mapping and compares the bytes.  The writer is killed at a random
 * moment, HAWK_KILL_N times (default 1000); the seed is HAWK_KILL_SEED (printed).
 * After each death nothing is pinned, nothing is announced, every block is sound;
 * in the end every frame and every chunk is accounted for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define HOST_BYTES	(2 * MIB)
#define FLASH_BYTES	(4 * MIB)
#define KEYS		200u		/* more than the host tier holds */
#define BATCH		8u
#define NAME		"test-kill"
#define HELD		16u		/* pins that the writer keeps */
#define RING		32u

FIXTURE(kill) {
	int fd;
	uint32_t host;
	uint32_t blk;
	char *path;
	uint8_t *win;
};

FIXTURE_SETUP(kill)
{
	struct hawk_space_create sc = space_args(1024);

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("kill", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->fd = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, host_add(self->fd, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->fd, self->path, FLASH_BYTES, &self->blk));
	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	sc.buckets = 4;
	strcpy((char *)sc.name, NAME);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	ASSERT_NE(NULL, self->win);
}

FIXTURE_TEARDOWN(kill)
{
	int ctl = dev_open(O_RDWR);

	space_destroy(ctl, NAME);
	munmap(self->win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(ctl, self->blk));
	close(ctl);
	unlink(self->path);
	free(self->path);
}

static void random_keys(struct hawk_item *by, unsigned int *seed)
{
	uint32_t i, k = rand_r(seed) % (KEYS / BATCH) * BATCH;

	for (i = 0; i < BATCH; i++)
		by[i] = key_item(k + i);
}

/* What the dead leave behind: pins, a lease, reads in flight. */
static void hold_things(int fd, struct hawk_ring *ring, unsigned int *seed)
{
	static struct hawk_item held[HELD];
	struct hawk_item by[BATCH];
	struct hawk_item *it = &held[rand_r(seed) % HELD];

	if (it->vt && one(fd, HAWK_IOC_UNPIN, 0, it))
		_exit(7);
	*it = key_item(rand_r(seed) % KEYS);
	one(fd, HAWK_IOC_GET, 0, it);
	it->lid = 0;	/* given back by its place */
	it->flags = 0;

	random_keys(by, seed);
	if (batch(fd, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, by, BATCH, NULL))
		_exit(8);
	__atomic_store_n(&ring->head, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
	random_keys(by, seed);
	batch(fd, HAWK_IOC_RELOAD, HAWK_BATCH_ASYNC, by, BATCH, NULL);
}

/* Replaces random blocks until it is killed; exits only when something is wrong. */
static void writer(uint32_t host, unsigned int seed)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = RING, .eventfd = -1 };
	int fd = dev_open(O_RDWR);
	struct hawk_item it[BATCH], by[BATCH];
	struct hawk_ring *ring;
	uint32_t i, k;
	uint8_t *win;

	if (space_attach(fd, NAME) || dev_call(fd, HAWK_IOC_RING_SETUP, &rs))
		_exit(1);
	ring = map_area(fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ | PROT_WRITE);
	if (!win || !ring)
		_exit(2);
	for (;;) {
		hold_things(fd, ring, &seed);
		for (i = 0; i < BATCH; i++) {
			k = (rand_r(&seed) % (KEYS / BATCH)) * BATCH + i;
			by[i] = key_item(k);
			it[i] = (struct hawk_item){ .lid = LID(k) };
			set_key(&it[i], k);
		}
		/* blocks that the reader has pinned stay; the rest is written anew */
		if (batch(fd, HAWK_IOC_FREE, 0, it, BATCH, NULL) ||
		    batch(fd, HAWK_IOC_ALLOC, 0, it, BATCH, NULL))
			_exit(3);
		for (i = 0; i < BATCH; i++) {
			if (it[i].status)
				continue;
			memcpy(&k, it[i].key, sizeof(k));
			fill(frame_at(win, it[i].vt, BLOCK), BLOCK, k);
			it[i].vt = 0;
			if (one(fd, HAWK_IOC_PUT, 0, &it[i]))
				_exit(4);
		}
		if (batch(fd, HAWK_IOC_GET, 0, by, BATCH, NULL))
			_exit(5);
		for (i = 0; i < BATCH; i++) {
			by[i].flags = 0;
			if (!by[i].status && one(fd, HAWK_IOC_UNPIN, 0, &by[i]))
				_exit(6);
		}
	}
}

/* One look at a random key: 1 hit with the right bytes, 0 miss, -1 wrong. */
static int read_one(int fd, const uint8_t *win, uint32_t k)
{
	struct hawk_item it = key_item(k);
	bool good;
	int ret = one(fd, HAWK_IOC_GET, 0, &it);

	if (ret == -ENOENT || ret == -EAGAIN)
		return 0;
	if (ret)
		return -1;
	good = filled(frame_at((void *)win, it.vt, BLOCK), BLOCK, k);
	it.flags = 0;
	return one(fd, HAWK_IOC_UNPIN, 0, &it) == 0 && good ? 1 : -1;
}

static unsigned long env_number(const char *name, unsigned long def)
{
	const char *v = getenv(name);

	return v ? strtoul(v, NULL, 0) : def;
}

TEST_F_TIMEOUT(kill, writer_dies, 7200)
{
	unsigned long n = env_number("HAWK_KILL_N", 1000), i, hits = 0;
	unsigned int seed = env_number("HAWK_KILL_SEED", 1), reads;
	struct hawk_stats st;
	char line[512] = "";
	uint32_t chunks = 0, k;
	int status, got;
	pid_t pid;

	TH_LOG("%lu deaths, seed %u", n, seed);
	for (i = 0; i < n; i++) {
		pid = fork();
		if (!pid)
			writer(self->host, seed + 1);
		ASSERT_GT(pid, 0);
		/* The first one lives until there is something to read. */
		while (!i && stats_of(self->fd).blocks < KEYS / 2) {
			ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
			poll(NULL, 0, 10);
		}
		for (reads = rand_r(&seed) % 24; reads; reads--) {
			got = read_one(self->fd, self->win, rand_r(&seed) % KEYS);
			ASSERT_GE(got, 0) TH_LOG("death %lu", i);
			hits += got;
		}
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status)) TH_LOG("writer failed at step %d",
							WEXITSTATUS(status));
		/* its batches in flight hold its file for a moment */
		do
			st = stats_of(self->fd);
		while (st.pinned && poll(NULL, 0, 1) == 0);
		if (i == n / 2)
			chunks = st.chunks[self->host];
		if (i % 100 == 99)
			TH_LOG("%lu deaths, %lu right reads, %llu blocks", i + 1, hits,
			       (unsigned long long)st.blocks);
	}
	EXPECT_GT(hits, n);
	EXPECT_EQ(chunks, st.chunks[self->host]);
	for (k = 0; k < KEYS; k++) {
		struct hawk_item by = key_item(k);

		got = one(self->fd, HAWK_IOC_LOOKUP, 0, &by);
		EXPECT_TRUE(got == 0 || got == -ENOENT) TH_LOG("key %u: %d", k, got);
		EXPECT_GE(read_one(self->fd, self->win, k), 0) TH_LOG("key %u", k);
		EXPECT_NE(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, LID(k))) TH_LOG("key %u", k);
	}
	/* every block has a LID that we know; those with a move in flight end with it */
	while (stats_of(self->fd).blocks)
		poll(NULL, 0, 1);
	st = stats_of(self->fd);
	EXPECT_EQ(0, st.resident);
	EXPECT_EQ(0, st.flash);
	EXPECT_NE(0, space_check(NAME, line, sizeof(line))) TH_LOG("%s", line);
	/* every chunk is the space's or free, and with the space's end all are free */
	for (k = 0; k < 2; k++)
		EXPECT_EQ(k ? FLASH_BYTES : HOST_BYTES,
			  tier_free_bytes(self->fd, k ? self->blk : self->host) +
			  st.chunks[k ? self->blk : self->host] * (uint64_t)HAWK_CHUNK_BYTES);
}

TEST_HARNESS_MAIN
