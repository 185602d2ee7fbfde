// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_reclaim.c - chunks are taken from living spaces: for others, for the system,
 * and because their tier leaves
 *
 * The host tier has 8 chunks and flash has room for all that is written, so nothing
 * needs to be lost: every block must be there byte for byte wherever it went.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "hawk_tenant.h"

/* ---- between spaces ---- */

/* The tenant that comes late, as another user.  Exits with the step that failed. */
static void latecomer(struct tenant *t, uint32_t host, uint32_t blk)
{
	struct hawk_stats st;
	uint32_t n = 0;

	if (setgid(NOBODY) || setuid(NOBODY) || tenant_start(t, host, 0, blk))
		_exit(1);
	/* its share: as much as the other, less one */
	do {
		if (tenant_put(t, n, 64))
			_exit(2);
		n += 64;
		st = stats_of(t->fd);
	} while (st.chunks[host] < CHUNKS / 2 && n < 64 * CHUNK_BLOCKS);
	if (st.chunks[host] < CHUNKS / 2)
		_exit(3);
	_exit(tenant_lost(t, 0, n) ? 4 : 0);
}

TEST_F(reclaim, share_between_users)
{
	struct tenant a = { .fd = dev_open(O_RDWR) }, b = { .fd = dev_open(O_RDWR), .seed = SEEDS };
	struct hawk_tier_info info;
	int status = -1;
	pid_t pid;

	ASSERT_EQ(0, tenant_start(&a, self->host, 0, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, CHUNKS * CHUNK_BLOCKS));
	ASSERT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]);
	pid = fork();
	if (!pid)
		latecomer(&b, self->host, self->blk);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("step %d", WEXITSTATUS(status));
	/* each has its half, and nobody has lost or seen a byte */
	EXPECT_EQ(CHUNKS / 2, stats_of(a.fd).chunks[self->host]);
	EXPECT_EQ(CHUNKS / 2, stats_of(b.fd).chunks[self->host]);
	EXPECT_EQ(0, tenant_lost(&a, 0, CHUNKS * CHUNK_BLOCKS));
	info = tier_info(self->ctl, self->host);
	EXPECT_EQ(CHUNKS / 2 * CHUNK, info.reclaimed_bytes);
	tenant_end(&a);
	close(b.fd);
}

/* Looks at all spaces until it is killed. */
static pid_t spectator(void)
{
	pid_t pid = fork();
	char buf[4096];
	int fd;

	while (!pid) {
		fd = open("/sys/kernel/debug/hawk/spaces", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			_exit(1);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
	return pid;
}

/* Whoever looks at a space when its last file is closed is not in the way. */
TEST_F(reclaim, tier_is_free_when_files_are_closed)
{
	pid_t pid = spectator();
	uint32_t round, host;
	struct tenant t;

	for (round = 0; round < 200; round++) {
		t = (struct tenant){ .fd = dev_open(O_RDWR) };
		ASSERT_EQ(0, host_add(self->ctl, 2 * CHUNK, &host));
		ASSERT_EQ(0, tenant_start(&t, host, 0, self->blk));
		tenant_end(&t);
		ASSERT_EQ(0, tier_remove(self->ctl, host)) TH_LOG("round %u", round);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Reads without a lock or pin, as uapi/hawk.h tells; exits with the result. */
static void optimist(struct tenant *t, uint32_t n, int stop)
{
	uint64_t bytes = vtlb_bytes(t->fd), vt, good = 0;
	struct hawk_vtlb_entry *vtlb = map_area(t->fd, HAWK_MMAP_VTLB, bytes, PROT_READ);
	struct pollfd p = { .fd = stop, .events = POLLIN };
	static uint8_t copy[BLOCK];
	uint32_t i;

	tenant_map(t);
	if (!vtlb)
		_exit(1);
	for (i = 0; poll(&p, 1, 0) == 0; i = (i + 1) % n) {
		vt = vtlb_lookup(vtlb, bytes, LID(i));
		if (!vt || !t->win[HAWK_VT_TIER(vt)])
			continue;
		memcpy(copy, tenant_frame(t, vt), BLOCK);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (vtlb_lookup(vtlb, bytes, LID(i)) != vt)
			continue;
		if (!filled(copy, BLOCK, t->seed + i))
			_exit(2);
		good++;
	}
	_exit(good ? 0 : 3);
}

/* Chunks come and go under a reader: it sees right bytes or learns that it came late. */
TEST_F(reclaim, reader_without_pin)
{
	struct tenant a = { .fd = dev_open(O_RDWR), .seed = 3 * SEEDS }, b;
	uint32_t n = CHUNKS * CHUNK_BLOCKS, round;
	int stop[2], status = -1;
	pid_t pid;

	ASSERT_EQ(0, pipe(stop));
	ASSERT_EQ(0, tenant_start(&a, self->host, 0, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, n));
	pid = fork();
	if (!pid) {
		close(stop[1]);
		optimist(&a, n, stop[0]);
	}
	for (round = 0; round < 4; round++) {
		b = (struct tenant){ .fd = dev_open(O_RDWR), .seed = SEEDS };
		ASSERT_EQ(0, tenant_start(&b, self->host, 0, self->blk));
		ASSERT_EQ(0, tenant_put(&b, 0, 4 * CHUNK_BLOCKS));
		EXPECT_LT(stats_of(a.fd).chunks[self->host], CHUNKS);
		tenant_end(&b);
		/* and a gets them back */
		EXPECT_EQ(0, tenant_lost(&a, 0, n));
	}
	close(stop[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("signal %d, exit %d", WTERMSIG(status), WEXITSTATUS(status));
	tenant_end(&a);
	close(stop[0]);
}

/* Pins a block in each chunk; @lid: out, by chunk.  0 or a negative errno. */
static int pin_one_per_chunk(struct tenant *t, uint32_t host, uint64_t *lid)
{
	uint32_t i, chunk, chunks = 0;
	struct hawk_item it;
	int ret;

	memset(lid, 0, CHUNKS * sizeof(*lid));
	for (i = 0; chunks < CHUNKS; i = (i + 1) % (CHUNKS * CHUNK_BLOCKS)) {
		it = (struct hawk_item){ .lid = LID(i) };
		ret = one(t->fd, HAWK_IOC_GET, 0, &it);
		if (ret)
			return ret;
		chunk = HAWK_VT_FRAME(it.vt) / CHUNK_BLOCKS;
		if (HAWK_VT_TIER(it.vt) == host && !lid[chunk]) {
			lid[chunk] = LID(i);
			chunks++;
		} else if (one(t->fd, HAWK_IOC_UNPIN, 0, &it)) {
			return -EUCLEAN;
		}
	}
	return 0;
}

/* Minima stay, and what is pinned or held from outside. */
TEST_F(reclaim, what_is_not_taken)
{
	struct tenant a = { .fd = dev_open(O_RDWR) }, b = { .fd = dev_open(O_RDWR), .seed = SEEDS };
	struct iovec iov = { .iov_len = 4096 };
	uint64_t pinned[CHUNKS];
	uint8_t page[4096];
	uint32_t i;
	int p[2];

	ASSERT_EQ(0, pipe(p));
	ASSERT_EQ(0, tenant_start(&a, self->host, (CHUNKS - 2) * CHUNK, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, CHUNKS * CHUNK_BLOCKS));
	ASSERT_EQ(0, tenant_start(&b, self->host, 0, self->blk));
	/* a page of each chunk lies in a pipe */
	for (i = 0; i < CHUNKS; i++) {
		iov.iov_base = a.win[self->host] + i * CHUNK;
		ASSERT_EQ(4096, vmsplice(p[1], &iov, 1, 0));
	}
	EXPECT_EQ(-ENOSPC, tenant_put(&b, 0, 1));
	EXPECT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]);
	/* pinned before the pipe lets go: b may still be waiting for its turn */
	ASSERT_EQ(0, pin_one_per_chunk(&a, self->host, pinned));
	for (i = 0; i < CHUNKS; i++) {
		ASSERT_EQ(4096, read(p[0], page, 4096));
		EXPECT_EQ(0, memcmp(page, a.win[self->host] + i * CHUNK, 4096)) TH_LOG("the same bytes");
	}
	EXPECT_EQ(-ENOSPC, tenant_put(&b, 0, 1));
	for (i = 0; i < CHUNKS; i++)
		ASSERT_EQ(0, lid_call(a.fd, HAWK_IOC_UNPIN, pinned[i]));
	/* now it gets one chunk: with two it would have as much above its minimum */
	EXPECT_EQ(0, tenant_put(&b, 0, 2 * CHUNK_BLOCKS));
	EXPECT_EQ(1, stats_of(b.fd).chunks[self->host]);
	EXPECT_EQ(CHUNKS - 1, stats_of(a.fd).chunks[self->host]);
	EXPECT_EQ(0, tenant_lost(&a, 0, CHUNKS * CHUNK_BLOCKS));
	EXPECT_EQ(0, tenant_lost(&b, 0, 2 * CHUNK_BLOCKS));
	tenant_end(&a);
	tenant_end(&b);
	close(p[0]);
	close(p[1]);
}

/* ---- to the system ---- */

TEST_F(reclaim, memory_pressure)
{
	struct tenant a = { .fd = dev_open(O_RDWR) };
	int drop = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (drop < 0)
		SKIP(return, "cannot write /proc/sys/vm/drop_caches: %s", strerror(errno));
	ASSERT_EQ(0, tenant_start(&a, self->host, 2 * CHUNK, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, CHUNKS * CHUNK_BLOCKS));
	ASSERT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]);
	/* it works behind our back; the harness ends a test in which it does not */
	do {
		ASSERT_EQ(1, pwrite(drop, "2", 1, 0));
		poll(NULL, 0, 10);
	} while (stats_of(a.fd).chunks[self->host] > 2);
	ASSERT_EQ(1, pwrite(drop, "2", 1, 0));
	EXPECT_EQ(2, stats_of(a.fd).chunks[self->host]) TH_LOG("the minimum stays");
	EXPECT_LE((CHUNKS - 2) * CHUNK, tier_info(self->ctl, self->host).reclaimed_bytes);
	EXPECT_EQ(0, tenant_lost(&a, 0, CHUNKS * CHUNK_BLOCKS));
	EXPECT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]) TH_LOG("it grows again");
	tenant_end(&a);
	close(drop);
}

/* ---- to nobody ---- */

TEST_F(reclaim, host_tier_leaves)
{
	struct tenant a = { .fd = dev_open(O_RDWR) };
	struct hawk_space_create sc = space_args(64);
	struct hawk_item it = { .lid = LID(3) };
	uint32_t n = CHUNKS * CHUNK_BLOCKS, host = self->host;
	int fd = dev_open(O_RDWR);

	ASSERT_EQ(0, tenant_start(&a, host, CHUNK, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, n));
	ASSERT_EQ(0, one(a.fd, HAWK_IOC_GET, 0, &it));
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, host)) TH_LOG("without force");
	EXPECT_EQ(CHUNKS, stats_of(a.fd).chunks[host]);
	EXPECT_EQ(-EBUSY, tier_force(self->ctl, host)) TH_LOG("a block is pinned");
	EXPECT_EQ(1, stats_of(a.fd).chunks[host]) TH_LOG("its chunk stays, no other");
	EXPECT_TRUE(filled(tenant_frame(&a, it.vt), BLOCK, 3));
	/* it is closed for all */
	sc.quota[host].max_bytes = CHUNK;
	EXPECT_EQ(-ENOENT, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(0, tenant_put(&a, n, 2 * CHUNK_BLOCKS)) TH_LOG("in what is left");
	EXPECT_EQ(1, stats_of(a.fd).chunks[host]);
	ASSERT_EQ(0, one(a.fd, HAWK_IOC_UNPIN, 0, &it));
	EXPECT_EQ(0, tier_force(self->ctl, host));
	EXPECT_EQ(-ENOENT, tier_force(self->ctl, host));
	EXPECT_EQ(-ENOENT, tier_remove(self->ctl, host));
	/* the space lives, with its blocks on flash and no memory to read them into */
	EXPECT_EQ(0, stats_of(a.fd).chunks[host]);
	it = key_item(3);
	EXPECT_EQ(0, one(a.fd, HAWK_IOC_LOOKUP, 0, &it));
	EXPECT_EQ(-ENOSPC, one(a.fd, HAWK_IOC_GET, 0, &it));
	a.win[host][0] = 1;	/* no frame: no harm */
	/* another tier with the same id is none of its business */
	ASSERT_EQ(0, host_add(self->ctl, CHUNK, &self->host));
	EXPECT_EQ(host, self->host);
	sc.quota[self->host].max_bytes = CHUNK;
	EXPECT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_ALLOC, LID(1)));
	EXPECT_EQ(-ENOSPC, one(a.fd, HAWK_IOC_GET, 0, &it));
	tenant_end(&a);
	close(fd);
}

/* A removal that was refused is taken back: the tier is as good as before. */
TEST_F(reclaim, host_tier_stays_after_all)
{
	struct tenant a = { .fd = dev_open(O_RDWR) }, b = { .fd = dev_open(O_RDWR), .seed = SEEDS };
	struct hawk_tier_remove rm = {
		.size = sizeof(rm), .flags = HAWK_TIER_REOPEN, .tier = self->host,
	};
	struct hawk_item it = { .lid = LID(3) };
	uint32_t n = CHUNKS * CHUNK_BLOCKS;

	EXPECT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm)) TH_LOG("it is open");
	ASSERT_EQ(0, tenant_start(&a, self->host, CHUNK, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, n));
	ASSERT_EQ(0, one(a.fd, HAWK_IOC_GET, 0, &it));
	EXPECT_EQ(-EBUSY, tier_force(self->ctl, self->host));
	EXPECT_EQ(1, stats_of(a.fd).chunks[self->host]);
	EXPECT_EQ(-ENOENT, tenant_start(&b, self->host, 0, self->blk));
	rm.flags |= HAWK_TIER_FORCE;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	rm.flags = HAWK_TIER_REOPEN;
	EXPECT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	/* its chunks come back to it, and a new space may have some */
	EXPECT_EQ(0, tenant_lost(&a, 0, n));
	EXPECT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]);
	ASSERT_EQ(0, tenant_start(&b, self->host, 0, self->blk));
	EXPECT_EQ(0, tenant_put(&b, 0, CHUNK_BLOCKS));
	ASSERT_EQ(0, one(a.fd, HAWK_IOC_UNPIN, 0, &it));
	tenant_end(&a);
	tenant_end(&b);
	rm.tier = HAWK_TIERS_MAX - 1;
	EXPECT_EQ(-ENOENT, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
}

/* With a second host tier the blocks go on living there. */
TEST_F(reclaim, host_tier_leaves_another)
{
	struct hawk_space_create sc = space_args(4096);
	struct tenant a = { .fd = dev_open(O_RDWR) };
	uint32_t n = CHUNKS * CHUNK_BLOCKS, other;

	ASSERT_EQ(0, host_add(self->ctl, 2 * CHUNK, &other));
	sc.quota[self->host].max_bytes = CHUNKS * CHUNK;
	sc.quota[other].max_bytes = 2 * CHUNK;
	sc.quota[self->blk].max_bytes = FLASH;
	ASSERT_EQ(0, dev_call(a.fd, HAWK_IOC_SPACE_CREATE, &sc));
	tenant_map(&a);
	ASSERT_EQ(0, tenant_put(&a, 0, n));
	EXPECT_EQ(0, tier_force(self->ctl, self->host));
	EXPECT_EQ(0, tenant_lost(&a, 0, n));
	EXPECT_EQ(2, stats_of(a.fd).chunks[other]);
	tenant_end(&a);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, other));
	ASSERT_EQ(0, host_add(self->ctl, CHUNK, &self->host));
}

/* Blocks that are on flash only come in as far as there is room; the rest are misses. */
TEST_F(reclaim, flash_tier_leaves)
{
	struct tenant a = { .fd = dev_open(O_RDWR) };
	uint32_t n = (CHUNKS + 2) * CHUNK_BLOCKS, lost;
	struct hawk_stats st;

	ASSERT_EQ(0, tenant_start(&a, self->host, 0, self->blk));
	ASSERT_EQ(0, tenant_put(&a, 0, n));
	st = stats_of(a.fd);
	EXPECT_EQ(n, st.blocks);
	EXPECT_LT(st.resident, n);
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->blk));
	EXPECT_EQ(0, tier_force(self->ctl, self->blk));
	st = stats_of(a.fd);
	EXPECT_EQ(0, st.flash);
	EXPECT_EQ(st.blocks, st.resident);
	lost = tenant_lost(&a, 0, n);
	EXPECT_EQ(n - st.blocks, lost);
	EXPECT_LE(lost, 2 * CHUNK_BLOCKS) TH_LOG("no more than had no room");
	tenant_end(&a);
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH, &self->blk));
}

TEST_HARNESS_MAIN
