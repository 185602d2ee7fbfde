// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_race.c - lookup, eviction and free meet on one space
 *
 * PROCS processes of THREADS threads do random things to the same blocks, more of
 * them than host memory holds.  Whatever the order:
 *	- a block that a lease was granted on is found until the lease is released;
 *	- bytes under a pin are of the block's key, whole, and do not change;
 *	- nothing fails with EIO or in a way that the header does not tell;
 *	- in the end nothing is pinned and the engine finds its tables sound.
 * HAWK_RACE_N operations per thread (default 1500), seed HAWK_RACE_SEED (printed).
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "hawk_tiers.h"

#define NAME	"test-race"
#define PROCS	3u
#define THREADS	2u
#define KEYS	192u		/* blocks of 16 KiB: 3 MiB over 2 MiB of memory */
#define RUN	4u		/* blocks of one lookup */

static unsigned long env_number(const char *name, unsigned long def)
{
	const char *v = getenv(name);

	return v ? strtoul(v, NULL, 0) : def;
}

struct racer {
	pthread_t thread;
	int fd;
	uint8_t *win;
	unsigned int seed;
	unsigned long ops;
	unsigned long leased, read, freed, written;
	char wrong[128];
};

static void say(struct racer *r, const char *what, uint32_t n, int ret)
{
	if (!r->wrong[0])
		snprintf(r->wrong, sizeof(r->wrong), "%s, block %u: %d", what, n, ret);
}

static int one_of(struct racer *r, uint32_t n)
{
	return rand_r(&r->seed) % n;
}

/* The pattern's seed: which block, and which writing of it.  fill() multiplies it. */
static uint32_t pattern(uint32_t n, uint32_t version)
{
	return n | version << 16;
}

/* Are these the bytes of some writing of block @n? */
static bool is_block(const uint8_t *p, uint32_t n)
{
	uint32_t seed = *(const uint32_t *)p * 244002641u;	/* 2654435761^-1 mod 2^32 */

	return (seed & 0xffff) == n && filled(p, BLOCK, seed);
}

/* Replaces a block, if nobody holds it: forget, allocate, write, publish. */
static void replace(struct racer *r)
{
	uint32_t n = one_of(r, KEYS);
	struct hawk_item it = { .lid = LID(n) };
	int ret = one(r->fd, HAWK_IOC_FREE, 0, &it);

	r->freed += !ret;
	if (ret && ret != -ENOENT && ret != -EBUSY)
		say(r, "FREE", n, ret);
	it = (struct hawk_item){ .lid = LID(n) };
	if (one_of(r, 2))
		set_key(&it, n);	/* announce it */
	ret = one(r->fd, HAWK_IOC_ALLOC, 0, &it);
	if (ret) {
		if (ret != -EEXIST && ret != -EAGAIN && ret != -ENOSPC && ret != -EDQUOT)
			say(r, "ALLOC", n, ret);
		return;
	}
	fill(frame_at(r->win, it.vt, BLOCK), BLOCK, pattern(n, one_of(r, 65536)));
	it.vt = 0;
	set_key(&it, n);
	ret = one(r->fd, HAWK_IOC_PUT, 0, &it);
	if (ret)
		say(r, "PUT", n, ret);
	r->written++;
}

/* Gets a block by key: its bytes stay as they are for as long as it is pinned. */
static void look(struct racer *r, uint32_t n, bool leased)
{
	struct hawk_item it = key_item(n);
	uint32_t before;
	int ret = one(r->fd, HAWK_IOC_GET, 0, &it);
	uint8_t *p;

	if (ret) {
		if (ret != -EAGAIN && ret != -ENOSPC && ret != -EDQUOT &&
		    (leased || ret != -ENOENT))
			say(r, leased ? "GET of a leased block" : "GET", n, ret);
		return;
	}
	p = frame_at(r->win, it.vt, BLOCK);
	before = *(uint32_t *)p;
	if (!is_block(p, n))
		say(r, "foreign bytes", n, *(uint32_t *)p);
	sched_yield();
	if (!is_block(p, n) || *(uint32_t *)p != before)
		say(r, "bytes changed under a pin", n, *(uint32_t *)p);
	it.lid = one_of(r, 2) ? it.lid : 0;	/* by LID, or by place */
	it.flags = 0;
	ret = one(r->fd, HAWK_IOC_UNPIN, 0, &it);
	if (ret)
		say(r, "UNPIN", n, ret);
	r->read++;
}

/* Leases a run of blocks: all that were found stay found, by key and by LID. */
static void lease(struct racer *r)
{
	struct hawk_lease_release rel = { .size = sizeof(rel) };
	uint32_t first = one_of(r, KEYS - RUN), i, tries;
	struct hawk_item it[RUN], again;
	struct hawk_batch b;
	int ret;

	for (i = 0; i < RUN; i++)
		it[i] = key_item(first + i);
	ret = batch(r->fd, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, it, RUN, &b);
	if (ret || !b.lease != !b.prefix)
		say(r, "LOOKUP", first, ret);
	if (ret || !b.lease)
		return;
	for (tries = 0; tries < 3; tries++) {
		for (i = 0; i < b.prefix; i++) {
			again = key_item(first + i);
			ret = one(r->fd, HAWK_IOC_LOOKUP, 0, &again);
			if (ret || again.lid != it[i].lid)
				say(r, "LOOKUP of a leased block", first + i, ret);
			ret = lid_call(r->fd, HAWK_IOC_TRANSLATE, it[i].lid);
			if (ret)
				say(r, "TRANSLATE of a leased block", first + i, ret);
			ret = lid_call(r->fd, HAWK_IOC_FREE, it[i].lid);
			if (ret != -EBUSY)
				say(r, "FREE of a leased block", first + i, ret);
		}
		look(r, first + one_of(r, b.prefix), true);
	}
	rel.lease = b.lease;
	ret = dev_call(r->fd, HAWK_IOC_LEASE_RELEASE, &rel);
	if (ret)
		say(r, "LEASE_RELEASE", first, ret);
	r->leased += b.prefix;
}

static void *race(void *arg)
{
	struct racer *r = arg;
	unsigned long i;

	for (i = 0; i < r->ops && !r->wrong[0]; i++) {
		switch (one_of(r, 4)) {
		case 0:
			replace(r);
			break;
		case 1:
			lease(r);
			break;
		default:
			look(r, one_of(r, KEYS), false);
		}
	}
	return NULL;
}

/* A process with a file of its own; tells what went wrong and exits with it. */
static void process(uint32_t host, uint32_t number, unsigned int seed, unsigned long ops)
{
	struct racer r[THREADS];
	unsigned long leased = 0, freed = 0, written = 0;
	int fd = dev_open(O_RDWR), wrong = 0;
	uint8_t *win;
	uint32_t i;

	if (space_attach(fd, NAME))
		_exit(2);
	win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ | PROT_WRITE);
	for (i = 0; i < THREADS; i++) {
		r[i] = (struct racer){
			.fd = fd, .win = win, .ops = ops, .seed = seed + number * THREADS + i,
		};
		if (pthread_create(&r[i].thread, NULL, race, &r[i]))
			_exit(3);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(r[i].thread, NULL);
		leased += r[i].leased;
		freed += r[i].freed;
		written += r[i].written;
		if (r[i].wrong[0])
			wrong = printf("# process %u: %s\n", number, r[i].wrong);
	}
	printf("# process %u: %lu blocks leased, %lu freed, %lu written\n", number, leased, freed,
	       written);
	fflush(stdout);
	_exit(wrong ? 1 : !leased || !freed || !written ? 4 : 0);
}

TEST_F_TIMEOUT(tiers, lookup_evict_free, 900)
{
	unsigned long ops = env_number("HAWK_RACE_N", 1500);
	unsigned int seed = env_number("HAWK_RACE_SEED", 1);
	struct hawk_space_create sc = space_args(1024);
	int fd = dev_open(O_RDWR), status;
	struct hawk_stats st;
	pid_t pid[PROCS];
	char line[512] = "";
	uint32_t i;

	TH_LOG("%lu operations of %u threads, seed %u", ops, PROCS * THREADS, seed);
	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	sc.buckets = 4;
	strcpy((char *)sc.name, NAME);
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	for (i = 0; i < PROCS; i++) {
		fflush(stdout);
		pid[i] = fork();
		if (!pid[i])
			process(self->host, i, seed, ops);
	}
	for (i = 0; i < PROCS; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status) TH_LOG("process %u", i);
	}
	st = stats_of(fd);
	EXPECT_EQ(0, st.pinned);
	EXPECT_EQ(0, st.reload_errors);
	EXPECT_LT(0, st.reloads) TH_LOG("nothing was evicted");
	for (i = 0; i < KEYS; i++) {
		int ret = lid_call(fd, HAWK_IOC_FREE, LID(i));

		EXPECT_TRUE(ret == 0 || ret == -ENOENT) TH_LOG("block %u: %d", i, ret);
	}
	while (stats_of(fd).blocks)
		poll(NULL, 0, 5);	/* those with a move in flight end with it */
	EXPECT_NE(0, space_check(NAME, line, sizeof(line))) TH_LOG("%s", line);
	EXPECT_EQ(0, space_destroy(fd, NAME));
	close(fd);
}

TEST_HARNESS_MAIN
