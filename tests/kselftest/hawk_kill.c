// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_kill.c - a writer dies at any instruction and leaves nothing
 *
 * A writer puts blocks by key, so others are evicted; it gets some back from flash,
 * at once or asynchronously, keeps pins and leases, exports blocks for good or until
 * they are wanted back, gathers, has draft rings mapped, edits sequences, and has them kept
 * short by elastic residency.  A reader gets blocks by key through its own mapping and
 * compares the bytes.  The writer is killed at a random moment, HAWK_KILL_N times
 * (default 1000); the seed is HAWK_KILL_SEED (printed).  After each death nothing is
 * pinned, exported or announced, every block is sound, every chunk is somebody's; in
 * the end the engine checks itself.
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
#include "hawk_models.h"

#define HOST_BYTES	(2 * MIB)
#define FLASH_BYTES	(4 * MIB)
#define KEYS		200u		/* more than the host tier holds */
#define BATCH		8u
#define NAME		"test-kill"
#define HELD		16u		/* pins that the writer keeps */
#define RING		32u
#define SEQS		8u
#define EXPORTS		6u		/* exports that the writer keeps */
#define EXPORT_MAX	4u		/* blocks of one */
#define EXPORT_TRIES	16u		/* not every block is there */
#define DRAFTS		3u		/* rings that the writer keeps */
#define DRAFT_SLOTS	20u

/* What the writer tells of itself, in memory that outlives it. */
struct life {
	uint32_t open;		/* exports that it has */
	uint64_t plain;		/* made in all lives */
	uint64_t revocable;
	uint64_t gathers;
	uint64_t gathers_left;	/* asynchronous, not waited for */
	uint64_t drafts;
	uint64_t elastics;
};

FIXTURE(kill) {
	int fd;
	uint32_t host;
	uint32_t blk;
	char *path;
	uint8_t *win;
	struct life *life;
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
	sc.seqs = SEQS;
	strcpy((char *)sc.name, NAME);
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	ASSERT_NE(NULL, self->win);
	self->life = mmap(NULL, sizeof(*self->life), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->life);
}

FIXTURE_TEARDOWN(kill)
{
	int ctl = dev_open(O_RDWR);

	space_destroy(ctl, NAME);
	munmap(self->life, sizeof(*self->life));
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

struct held_export {
	struct hawk_export x;
	uint32_t k, n;
	uint8_t *map;		/* of a plain one: its bytes stay what they are */
};

/* Ends an export that is held, in one of the ways there are. */
static void export_end(int fd, struct held_export *e, struct life *life, bool revoke)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; e->map && i < e->n; i++)
		if (!filled(e->map + i * BLOCK, BLOCK, e->k + i))
			_exit(9);
	if (revoke)
		ret = export_revoke(fd, e->x.export_id, 0);
	/* it may have given way before */
	if (ret && ret != -ENOENT)
		_exit(10);
	if (e->map)
		munmap(e->map, e->x.bytes);
	close(e->x.fd);
	e->n = 0;
	life->open--;
}

/* What drivers would hold: one export more, in the place of another. */
static void export_things(int fd, struct life *life, unsigned int *seed)
{
	static struct held_export held[EXPORTS];
	struct held_export *e = &held[rand_r(seed) % EXPORTS];
	bool revocable = rand_r(seed) % 2;
	int ret;

	if (e->n)
		export_end(fd, e, life, !e->map && rand_r(seed) % 2);
	e->k = rand_r(seed) % (KEYS - EXPORT_MAX);
	e->n = 1 + rand_r(seed) % EXPORT_MAX;
	ret = export_blocks(fd, e->k, e->n, revocable ? HAWK_EXPORT_REVOCABLE : 0, &e->x);
	if (ret) {
		/* not there, or on flash */
		if (ret != -ENOENT && ret != -EAGAIN)
			_exit(11);
		e->n = 0;
		return;
	}
	e->map = revocable ? NULL : map_area(e->x.fd, 0, e->x.bytes, PROT_READ);
	if (!e->map && !revocable)
		_exit(12);
	*(revocable ? &life->revocable : &life->plain) += 1;
	life->open++;
}

/* What attention would read: one gather is waited for, another is left under way. */
static void gather_things(int fd, struct life *life, unsigned int *seed)
{
	static uint8_t *buf;	/* two of BATCH blocks */
	uint32_t remap[BATCH], count = BATCH, k[BATCH], i;
	uint64_t lid[BATCH];
	int32_t status[BATCH];
	struct hawk_gather g = {
		.size = sizeof(g), .lists = 1, .rows = BATCH, .counts = (uintptr_t)&count,
		.lids = (uintptr_t)lid, .remap = (uintptr_t)remap, .status = (uintptr_t)status,
		.buf_bytes = BATCH * BLOCK,
	};
	int ret;

	if (!buf)
		buf = mmap(NULL, 2 * BATCH * BLOCK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < BATCH; i++) {
		k[i] = rand_r(seed) % KEYS;
		lid[i] = LID(k[i]);
	}
	g.buf = (uintptr_t)buf;
	if (dev_call(fd, HAWK_IOC_GATHER, &g))
		_exit(13);
	for (i = 0; i < BATCH; i++)
		if (!status[i] && !filled(buf + remap[i] * BLOCK, BLOCK, k[i]))
			_exit(14);
	life->gathers += g.done > 0;
	/* bytes that nobody looks at: several of them may come to the same place */
	g.buf += BATCH * BLOCK;
	g.flags = HAWK_BATCH_ASYNC;
	ret = dev_call(fd, HAWK_IOC_GATHER, &g);
	if (ret && ret != -EBUSY)
		_exit(15);	/* EBUSY: no room in the ring */
	life->gathers_left += !ret;
}

struct held_draft {
	struct hawk_draft_open o;
	uint8_t *map;
	uint32_t n;		/* pattern of its slots */
};

/* One ring more, in the place of another, whose bytes have stayed what they were. */
static void draft_things(int fd, struct life *life, unsigned int *seed)
{
	static struct held_draft held[DRAFTS];
	struct held_draft *d = &held[rand_r(seed) % DRAFTS];
	struct hawk_draft_close c = { .size = sizeof(c), .id = d->o.id };
	uint32_t len = d->o.bytes - HAWK_DRAFT_SLOTS_AT;

	if (d->map) {
		if (!filled(d->map + HAWK_DRAFT_SLOTS_AT, len, d->n))
			_exit(16);
		munmap(d->map, d->o.bytes);
		if (dev_call(fd, HAWK_IOC_DRAFT_CLOSE, &c))
			_exit(17);
	}
	d->n = rand_r(seed);
	d->o = (struct hawk_draft_open){
		.size = sizeof(d->o), .seq = HAWK_DRAFT_NO_SEQ, .slots = DRAFT_SLOTS,
	};
	if (dev_call(fd, HAWK_IOC_DRAFT_OPEN, &d->o))
		_exit(18);
	d->map = map_area(fd, d->o.offset, d->o.bytes, PROT_READ | PROT_WRITE);
	if (!d->map)
		_exit(19);
	fill(d->map + HAWK_DRAFT_SLOTS_AT, d->o.bytes - HAWK_DRAFT_SLOTS_AT, d->n);
	life->drafts++;
}

/* From then on the worker moves what sequences show, also when the writer is dead. */
static void set_elastic(int fd, struct life *life, unsigned int *seed)
{
	struct hawk_elastic e = {
		.size = sizeof(e), .flags = HAWK_ELASTIC_SET, .on = rand_r(seed) % 4 > 0,
		.keep_free = HAWK_ELASTIC_ONE / 2, .alpha_min = HAWK_ELASTIC_ONE / 8,
		.window = TOKENS,
	};

	if (dev_call(fd, HAWK_IOC_ELASTIC, &e))
		_exit(20);
	life->elastics++;
}

/* A sequence with a block of its own, forked, edited; one more often than there is room. */
static void edit_sequences(int fd, unsigned int *seed)
{
	uint32_t a = rand_r(seed) % 40, len = a + 1 + rand_r(seed) % 30;
	struct hawk_seq_op op[] = {
		{ .op = HAWK_SEQ_NEW },
		{ .op = HAWK_SEQ_APPEND, .seq = HAWK_SEQ_LAST, .len = len },
		{ .op = HAWK_SEQ_FORK, .src = HAWK_SEQ_LAST },
		{ .op = HAWK_SEQ_DROP, .seq = HAWK_SEQ_LAST, .start = a, .end = len },
		{ .op = HAWK_SEQ_COMPOSE, .seq = HAWK_SEQ_LAST, .src = HAWK_SEQ_LAST, .end = 1 },
		{ .op = HAWK_SEQ_FREE },
	};
	struct hawk_seq_batch b = { .size = sizeof(b), .count = 5, .ops = (uintptr_t)op };
	uint64_t lid;

	if (dev_call(fd, HAWK_IOC_SEQ, &b))
		_exit(9);
	lid = HAWK_LID(op[1].run, 0, 0, op[1].tok);
	if (!op[1].status && !lid_call(fd, HAWK_IOC_ALLOC, lid))
		lid_call(fd, HAWK_IOC_PUT, lid);
	if (op[0].status || rand_r(seed) % 4)
		return;
	op[5].seq = op[0].seq;
	b.count = 1;
	b.ops = (uintptr_t)&op[5];
	if (dev_call(fd, HAWK_IOC_SEQ, &b) || op[5].status)
		_exit(10);
}

/* Replaces random blocks until it is killed; exits only when something is wrong. */
static void writer(uint32_t host, struct life *life, unsigned int seed)
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
		for (i = 0; !i || (!life->open && i < EXPORT_TRIES); i++)
			export_things(fd, life, &seed);
		hold_things(fd, ring, &seed);
		edit_sequences(fd, &seed);
		gather_things(fd, life, &seed);
		draft_things(fd, life, &seed);
		set_elastic(fd, life, &seed);
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

/* Bytes of a tier that are free, owned or wait for the cleaner: always all of it. */
static uint64_t tier_bytes(int fd, uint32_t tier, const struct hawk_stats *st)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = tier };

	return dev_call(fd, HAWK_IOC_TIER_INFO, &info) ? 0 :
	       info.free_bytes + info.quarantine_bytes +
	       st->chunks[tier] * (uint64_t)HAWK_CHUNK_BYTES;
}

/* /sys/class/misc/hawk/tier<N>/exported_bytes; -1: not to be read. */
static long long exported_bytes(uint32_t tier)
{
	long long n = -1;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/misc/hawk/tier%u/exported_bytes", tier);
	f = fopen(path, "r");
	if (f && fscanf(f, "%lld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static unsigned long env_number(const char *name, unsigned long def)
{
	const char *v = getenv(name);

	return v ? strtoul(v, NULL, 0) : def;
}

static void tell(const struct life *l, unsigned long deaths, unsigned long exporting,
		 unsigned long hits, uint64_t blocks)
{
	fprintf(stderr, "# %lu deaths (%lu exporting), %lu right reads, %llu blocks\n", deaths,
		exporting, hits, (unsigned long long)blocks);
	fprintf(stderr, "# exports: %llu plain, %llu revocable; gathers: %llu, %llu left under way\n",
		(unsigned long long)l->plain, (unsigned long long)l->revocable,
		(unsigned long long)l->gathers, (unsigned long long)l->gathers_left);
	fprintf(stderr, "# draft rings: %llu; elastic residency set %llu times\n",
		(unsigned long long)l->drafts, (unsigned long long)l->elastics);
}

TEST_F_TIMEOUT(kill, writer_dies, 7200)
{
	unsigned long n = env_number("HAWK_KILL_N", 1000), i, hits = 0;
	unsigned long exporting = 0;
	unsigned int seed = env_number("HAWK_KILL_SEED", 1), reads;
	struct hawk_stats st;
	char line[512] = "";
	uint32_t chunks = 0, k, tries = 60000;
	int status, got;
	pid_t pid;

	TH_LOG("%lu deaths, seed %u", n, seed);
	for (i = 0; i < n; i++) {
		self->life->open = 0;
		pid = fork();
		if (!pid)
			writer(self->host, self->life, seed + 1);
		ASSERT_GT(pid, 0);
		/* The first one lives until there is something to read. */
		while (!i && stats_of(self->fd).blocks < KEYS / 2) {
			ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
			poll(NULL, 0, 10);
		}
		/* Many die young; some live until they have exported something. */
		while (i % 4 == 0 && !__atomic_load_n(&self->life->open, __ATOMIC_RELAXED)) {
			ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
			poll(NULL, 0, 1);
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
		ASSERT_EQ(SIGKILL, WTERMSIG(status));
		exporting += !!self->life->open;
		/* its batches in flight hold its file for a moment */
		do
			st = stats_of(self->fd);
		while ((st.pinned || exported_bytes(self->host)) && poll(NULL, 0, 1) == 0);
		ASSERT_EQ(HOST_BYTES, tier_bytes(self->fd, self->host, &st));
		ASSERT_EQ(FLASH_BYTES, tier_bytes(self->fd, self->blk, &st));
		if (i == n / 2)
			chunks = st.chunks[self->host];
		if (i % 100 == 99)
			tell(self->life, i + 1, exporting, hits, st.blocks);
	}
	EXPECT_LT(0, self->life->gathers);
	EXPECT_LT(0, self->life->gathers_left);
	EXPECT_LT(0, self->life->drafts);
	EXPECT_LT(0, self->life->elastics);
	EXPECT_GT(hits, n);
	EXPECT_GT(exporting, n / 20);
	EXPECT_EQ(chunks, st.chunks[self->host]);
	for (k = 0; k < KEYS; k++) {
		struct hawk_item by = key_item(k);

		got = one(self->fd, HAWK_IOC_LOOKUP, 0, &by);
		EXPECT_TRUE(got == 0 || got == -ENOENT) TH_LOG("key %u: %d", k, got);
		EXPECT_GE(read_one(self->fd, self->win, k), 0) TH_LOG("key %u", k);
		/* a gather of the dead may read it for a moment */
		while ((got = lid_call(self->fd, HAWK_IOC_FREE, LID(k))) == -EBUSY && tries--)
			poll(NULL, 0, 1);
		EXPECT_NE(-EBUSY, got) TH_LOG("key %u", k);
	}
	/* every block has a LID that we know; those with a move in flight end with it */
	while (stats_of(self->fd).blocks)
		poll(NULL, 0, 1);
	st = stats_of(self->fd);
	EXPECT_EQ(0, st.resident);
	EXPECT_EQ(0, st.flash);
	EXPECT_NE(0, space_check(NAME, line, sizeof(line))) TH_LOG("%s", line);
	/* every chunk is the space's or free; the tiers can only be removed when all are */
	for (k = 0; k < 2; k++)
		EXPECT_EQ(k ? FLASH_BYTES : HOST_BYTES,
			  tier_free_bytes(self->fd, k ? self->blk : self->host) +
			  st.chunks[k ? self->blk : self->host] * (uint64_t)HAWK_CHUNK_BYTES);
}

TEST_HARNESS_MAIN
