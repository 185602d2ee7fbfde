// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_minimum.c - a space has its minimum when it is made, whoever owns the memory then
 *
 * Flash has room for all that is written, so nothing needs to be lost when it is taken
 * back from those who own more than their minima.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "hawk_tenant.h"
#include "hawk_slow.h"

#define ALL	(CHUNKS * CHUNK_BLOCKS)

/* A space with a minimum in the host tier and on flash: 0 or a negative errno. */
static int create(int fd, uint32_t host, uint64_t min, uint32_t blk, uint64_t blk_min,
		  const char *name)
{
	struct hawk_space_create sc = space_args(4096);

	sc.quota[host].min_bytes = min;
	sc.quota[host].max_bytes = CHUNKS * CHUNK;
	sc.quota[blk].min_bytes = blk_min;
	sc.quota[blk].max_bytes = FLASH;
	if (name) {
		sc.flags = HAWK_SPACE_NAMED;
		sc.mode = 0600;
		strncpy((char *)sc.name, name, HAWK_NAME_MAX - 1);
	}
	return dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc);
}

/* A tenant with all chunks of the host tier, above a minimum of 0. */
static int rich(struct tenant *t, uint32_t host, uint32_t blk)
{
	t->fd = dev_open(O_RDWR);
	return tenant_start(t, host, 0, blk) ?: tenant_put(t, 0, ALL);
}

TEST_F(reclaim, lent_minimum)
{
	struct tenant a = { .seed = SEEDS }, b = { .fd = dev_open(O_RDWR), .seed = 2 * SEEDS };
	struct hawk_stats st;

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	ASSERT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]);
	ASSERT_EQ(0, tenant_start(&b, self->host, (CHUNKS - 1) * CHUNK, self->blk));
	EXPECT_EQ(1, stats_of(a.fd).chunks[self->host]);
	/* the other is at work, and gets none of it back */
	EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
	EXPECT_EQ(1, stats_of(a.fd).chunks[self->host]);
	EXPECT_EQ(0, tenant_put(&b, 0, (CHUNKS - 1) * CHUNK_BLOCKS));
	st = stats_of(b.fd);
	EXPECT_EQ(CHUNKS - 1, st.chunks[self->host]);
	EXPECT_EQ((CHUNKS - 1) * CHUNK_BLOCKS, st.resident);
	EXPECT_EQ(0, tenant_lost(&b, 0, (CHUNKS - 1) * CHUNK_BLOCKS));
	tenant_end(&a);
	tenant_end(&b);
}

TEST_F(reclaim, lent_flash)
{
	struct tenant a = { .seed = SEEDS };
	uint64_t min = FLASH - 4 * CHUNK;
	int fd = dev_open(O_RDWR);

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	ASSERT_EQ(0, tenant_put(&a, ALL, 2 * ALL));
	EXPECT_LT(4, stats_of(a.fd).chunks[self->blk]);
	EXPECT_EQ(0, create(fd, self->host, 0, self->blk, min, NULL));
	EXPECT_GE(4, stats_of(a.fd).chunks[self->blk]);
	/* what found no other place is gone, the rest is right */
	EXPECT_LE(0, tenant_lost(&a, 0, 3 * ALL));
	tenant_end(&a);
	close(fd);
}

/* The sum of the minima decides, at once, and not what is free. */
TEST_F(reclaim, minima_add_up)
{
	int a = dev_open(O_RDWR), b = dev_open(O_RDWR);

	ASSERT_EQ(0, create(a, self->host, (CHUNKS - 2) * CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(-ENOSPC, create(b, self->host, 3 * CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(0, create(b, self->host, 2 * CHUNK, self->blk, 0, NULL));
	close(a);
	a = dev_open(O_RDWR);
	EXPECT_EQ(0, create(a, self->host, (CHUNKS - 2) * CHUNK, self->blk, 0, NULL))
		TH_LOG("what has ended counts no more");
	close(a);
	close(b);
}

/* Who is nobody may not have all others' memory by asking for it. */
TEST_F(reclaim, a_user_takes_back_so_much)
{
	struct tenant a = { .seed = SEEDS };
	int fd = dev_open(O_RDWR), more = dev_open(O_RDWR);

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	ASSERT_EQ(0, setegid(NOBODY));
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_EQ(-ENOSPC, create(fd, self->host, (CHUNKS / 2 + 1) * CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]) TH_LOG("nothing has been taken");
	EXPECT_EQ(0, create(fd, self->host, CHUNKS / 2 * CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(CHUNKS / 2, stats_of(a.fd).chunks[self->host]);
	EXPECT_EQ(-ENOSPC, create(more, self->host, CHUNK, self->blk, 0, NULL))
		TH_LOG("all spaces of a user count");
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, setegid(0));
	EXPECT_EQ(0, create(more, self->host, CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
	tenant_end(&a);
	close(fd);
	close(more);
}

/* Makes and closes spaces until it is killed. */
static void churner(uint32_t host, uint32_t blk)
{
	int fd;

	for (;;) {
		fd = dev_open(O_RDWR);
		if (fd < 0 || create(fd, host, 0, blk, 0, NULL))
			_exit(1);
		close(fd);
	}
}

/* Spaces that come and go keep nobody waiting: neither a maker nor a remover. */
TEST_F(reclaim, among_spaces_that_come_and_go)
{
	struct tenant a = { .seed = SEEDS };
	int fd = dev_open(O_RDWR), i;
	pid_t pid[4];

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	for (i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i])
			churner(self->host, self->blk);
	}
	EXPECT_EQ(0, create(fd, self->host, 4 * CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host));
	EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
	for (i = 0; i < 4; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	tenant_end(&a);
	close(fd);
}

/* What is pinned, or held from outside, is not taken: no space, and all is as it was. */
TEST_F(reclaim, minimum_that_is_held)
{
	struct iovec iov = { .iov_len = 4096 };
	struct tenant a = { .seed = SEEDS };
	int fd = dev_open(O_RDWR), p[2];
	struct hawk_item it[CHUNKS];
	uint32_t i, seen = 0;
	uint8_t page[4096];
	struct hawk_batch b;

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	for (i = 0; i < CHUNKS; i++)
		it[i] = (struct hawk_item){ .lid = LID(i * CHUNK_BLOCKS) };
	ASSERT_EQ(0, batch(a.fd, HAWK_IOC_PIN, 0, it, CHUNKS, &b));
	ASSERT_EQ(CHUNKS, b.done);
	for (i = 0; i < CHUNKS; i++)
		seen |= 1u << HAWK_VT_FRAME(it[i].vt) / CHUNK_BLOCKS;
	ASSERT_EQ((1u << CHUNKS) - 1, seen) TH_LOG("one in each chunk");
	EXPECT_EQ(-ENOSPC, create(fd, self->host, CHUNK, self->blk, 0, "held"));
	EXPECT_EQ(-ENOENT, space_attach(fd, "held"));
	EXPECT_EQ(CHUNKS, stats_of(a.fd).chunks[self->host]);
	EXPECT_EQ(0, lid_call(a.fd, HAWK_IOC_UNPIN, it[3].lid));
	EXPECT_EQ(-ENOSPC, create(fd, self->host, 2 * CHUNK, self->blk, 0, NULL))
		TH_LOG("half of it is not enough");
	ASSERT_EQ(0, pipe(p));
	iov.iov_base = a.win[self->host] + HAWK_VT_FRAME(it[3].vt) / CHUNK_BLOCKS * CHUNK;
	for (i = 0; i < CHUNKS; i++)
		if (i != 3)
			EXPECT_EQ(0, lid_call(a.fd, HAWK_IOC_UNPIN, it[i].lid));
	/* half of it is others' again: a has grown back, or can */
	EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
	ASSERT_EQ(4096, vmsplice(p[1], &iov, 1, 0));
	EXPECT_EQ(-ENOSPC, create(fd, self->host, CHUNKS * CHUNK, self->blk, 0, NULL))
		TH_LOG("a page lies in a pipe");
	ASSERT_EQ(4096, read(p[0], page, 4096));
	EXPECT_EQ(0, create(fd, self->host, CHUNKS * CHUNK, self->blk, 0, NULL));
	EXPECT_EQ(0, stats_of(a.fd).chunks[self->host]);
	tenant_end(&a);
	close(fd);
	close(p[0]);
	close(p[1]);
}

/* ---- at the same time ---- */

struct creator {
	pthread_t thread;
	int fd, ret;
	uint32_t host, blk;
	uint64_t min;
	const char *name;
};

static void *creates(void *arg)
{
	struct creator *c = arg;

	c->ret = create(c->fd, c->host, c->min, c->blk, 0, c->name);
	return NULL;
}

/* Two at once: how many succeed; negative: one fails in another way than told. */
static int create_two(uint32_t host, uint32_t blk, uint64_t min, const char *name, int refusal)
{
	struct creator c[2];
	int i, made = 0;

	for (i = 0; i < 2; i++) {
		c[i] = (struct creator){ .fd = dev_open(O_RDWR), .host = host, .blk = blk,
					 .min = min, .name = name };
		if (pthread_create(&c[i].thread, NULL, creates, &c[i]))
			return -EAGAIN;
	}
	for (i = 0; i < 2; i++)
		pthread_join(c[i].thread, NULL);
	for (i = 0; i < 2; i++) {
		if (c[i].ret && c[i].ret != refusal)
			return c[i].ret;
		made += !c[i].ret;
		close(c[i].fd);
	}
	return made;
}

/* Each has all of its minimum or nothing, and not both half of it. */
TEST_F(reclaim, two_creators)
{
	struct tenant a = { .seed = SEEDS };
	int round;

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	for (round = 0; round < 4; round++) {
		EXPECT_EQ(2, create_two(self->host, self->blk, CHUNKS / 2 * CHUNK, NULL, 0));
		EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
		EXPECT_EQ(1, create_two(self->host, self->blk, (CHUNKS - 1) * CHUNK, NULL, -ENOSPC));
		EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
		EXPECT_EQ(1, create_two(self->host, self->blk, CHUNKS / 2 * CHUNK, "twin", -EEXIST));
		EXPECT_EQ(0, space_destroy(self->ctl, "twin"));
		EXPECT_EQ(0, tenant_lost(&a, 0, ALL));
	}
	tenant_end(&a);
}

/* Two calls for one file: one of them makes its space. */
TEST_F(reclaim, one_file_twice)
{
	struct creator c[2];
	struct tenant a = { .seed = SEEDS };
	int i, fd = dev_open(O_RDWR);

	EXPECT_EQ(0, rich(&a, self->host, self->blk));
	for (i = 0; i < 2; i++) {
		c[i] = (struct creator){ .fd = fd, .host = self->host, .blk = self->blk,
					 .min = (i + 1) * CHUNK };
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, creates, &c[i]));
	}
	for (i = 0; i < 2; i++)
		pthread_join(c[i].thread, NULL);
	EXPECT_TRUE((!c[0].ret && c[1].ret == -EBUSY) || (c[0].ret == -EBUSY && !c[1].ret))
		TH_LOG("%d and %d", c[0].ret, c[1].ret);
	tenant_end(&a);
	close(fd);
}

/* The one that has it may end, and its tier may go. */
TEST_F(reclaim, donor_ends)
{
	struct tenant a = { .seed = SEEDS };
	struct creator c;
	int round;

	for (round = 0; round < 6; round++) {
		EXPECT_EQ(0, rich(&a, self->host, self->blk));
		c = (struct creator){ .fd = dev_open(O_RDWR), .host = self->host, .blk = self->blk,
				      .min = CHUNKS * CHUNK };
		ASSERT_EQ(0, pthread_create(&c.thread, NULL, creates, &c));
		tenant_end(&a);
		pthread_join(c.thread, NULL);
		EXPECT_EQ(0, c.ret) TH_LOG("%d", round);
		close(c.fd);
	}
}

TEST_F(reclaim, tier_goes)
{
	struct tenant a = { .seed = SEEDS };
	struct creator c;
	int round;

	for (round = 0; round < 4; round++) {
		EXPECT_EQ(0, rich(&a, self->host, self->blk));
		c = (struct creator){ .fd = dev_open(O_RDWR), .host = self->host, .blk = self->blk,
				      .min = CHUNKS / 2 * CHUNK };
		ASSERT_EQ(0, pthread_create(&c.thread, NULL, creates, &c));
		EXPECT_EQ(0, tier_force(self->ctl, self->host)) TH_LOG("%d", round);
		pthread_join(c.thread, NULL);
		EXPECT_TRUE(!c.ret || c.ret == -ENOENT) TH_LOG("%d", c.ret);
		tenant_end(&a);
		close(c.fd);
		ASSERT_EQ(0, host_add(self->ctl, CHUNKS * CHUNK, &self->host));
	}
}

/* ---- it takes long ---- */

/* Who has ordered it is killed: nothing is kept for it, and what was moved is there. */
TEST_F(slow, creator_is_killed)
{
	struct hawk_space_create sc = space_args(256);
	struct hawk_item it[HOST_BLOCKS];
	int status = -1, fd;
	struct hawk_batch b;
	uint32_t round, i;
	uint64_t before;
	pid_t pid;

	sc.block_bytes = SLOW_BLOCK;
	sc.quota[self->host].min_bytes = HOST_BYTES;
	sc.quota[self->host].max_bytes = HOST_BYTES;
	for (round = 0; round < 2; round++) {
		before = stats_of(self->fd).flash;
		pid = fork();
		if (!pid) {
			fd = dev_open(O_RDWR);
			dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc);
			pause();
			_exit(0);
		}
		/* its first writes are under way, or it has them all */
		while (stats_of(self->fd).flash == before && stats_of(self->fd).chunks[self->host])
			poll(NULL, 0, 1);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		slow_items(it, HOST_BLOCKS, HOST_BLOCKS);
		ASSERT_EQ(0, batch(self->fd, HAWK_IOC_GET, 0, it, HOST_BLOCKS, &b));
		EXPECT_EQ(HOST_BLOCKS, b.done);
		for (i = 0; i < HOST_BLOCKS; i++)
			EXPECT_TRUE(filled(frame_at(self->win, it[i].vt, SLOW_BLOCK), SLOW_BLOCK,
					   HOST_BLOCKS + i));
		fd = dev_open(O_RDWR);
		EXPECT_EQ(-ENOSPC, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc)) TH_LOG("pinned");
		for (i = 0; i < HOST_BLOCKS; i++)
			EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(HOST_BLOCKS + i)));
		EXPECT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
		EXPECT_EQ(0, stats_of(self->fd).chunks[self->host]);
		close(fd);
		/* as at the start: memory is full of blocks that are on it only */
		EXPECT_EQ(0, slow_write(self->fd, self->win, (2 + round) * HOST_BLOCKS));
	}
}

TEST_HARNESS_MAIN
