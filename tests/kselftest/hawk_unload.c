// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_unload.c - the module is unloaded while moves of a dead client are in flight
 *
 * The client loads a tier's worth of blocks from flash, for which as many must be
 * written, and is killed with that under way; the module is removed at once.  It
 * must wait for the moves, whose pages and file it is about to give up.
 * The last test: there is no device after it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define LARGE		(256u << 10)	/* bytes of a block */
#define HOST_BYTES	(96 * MIB)	/* more than the drive lets through in a burst */
#define FLASH_BYTES	(256 * MIB)
#define HOST_BLOCKS	((uint32_t)(HOST_BYTES / LARGE))
#define TOO_FAST	99	/* the client's exit status when nothing is in flight any more */

/* Dies by SIGKILL with moves in flight; else the number of the step that failed. */
static int client(const char *path)
{
	struct hawk_ring_setup rs = {
		.size = sizeof(rs), .entries = 2048, .eventfd = -1,
	};
	struct hawk_space_create sc = space_args(2048);
	struct hawk_item *it = calloc(HOST_BLOCKS, sizeof(*it));
	struct hawk_batch b = {
		.size = sizeof(b), .flags = HAWK_BATCH_ASYNC, .count = HOST_BLOCKS,
		.items = (uintptr_t)it, .tier = HAWK_TIER_ANY,
	};
	uint32_t host, blk, round, i;
	int fd = dev_open(O_RDWR);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hawk_ring *ring;

	if (host_add(fd, HOST_BYTES, &host) || blk_add(fd, path, FLASH_BYTES, &blk))
		return 1;
	sc.block_bytes = LARGE;
	sc.quota[host].max_bytes = HOST_BYTES;
	sc.quota[blk].max_bytes = FLASH_BYTES;
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc) || dev_call(fd, HAWK_IOC_RING_SETUP, &rs))
		return 2;
	ring = map_area(fd, HAWK_MMAP_RING, rs.ring_bytes, PROT_READ | PROT_WRITE);
	if (!ring)
		return 3;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < HOST_BLOCKS; i++)
			it[i] = (struct hawk_item){ .lid = LID(round * HOST_BLOCKS + i) };
		if (batch(fd, HAWK_IOC_ALLOC, 0, it, HOST_BLOCKS, NULL) || it[0].status ||
		    batch(fd, HAWK_IOC_PUT, 0, it, HOST_BLOCKS, NULL) || it[0].status)
			return 4;
	}
	for (i = 0; i < HOST_BLOCKS; i++)
		it[i] = (struct hawk_item){ .lid = LID(i) };
	if (dev_call(fd, HAWK_IOC_RELOAD, &b))
		return 5;
	/* The work has begun when the first block is there; the batch's own entry ends it. */
	if (poll(&p, 1, 60000) != 1)
		return 6;
	if (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > HOST_BLOCKS)
		return TOO_FAST;
	raise(SIGKILL);
	return 7;
}

TEST(with_moves_in_flight)
{
	uint64_t start;
	int status = 0;
	char *path;
	pid_t pid;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("unload", FLASH_BYTES);
	ASSERT_NE(NULL, path);
	pid = fork();
	if (!pid)
		_exit(client(path));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == TOO_FAST)
		SKIP(return, "the drive ended all reads before the client could die");
	ASSERT_TRUE(WIFSIGNALED(status)) TH_LOG("client failed at step %d", WEXITSTATUS(status));
	ASSERT_EQ(SIGKILL, WTERMSIG(status));
	start = now_ns();
	EXPECT_EQ(0, syscall(SYS_delete_module, "hawk", O_NONBLOCK)) TH_LOG("%s", strerror(errno));
	TH_LOG("unloaded in %llu ms", (unsigned long long)(now_ns() - start) / 1000000);
	EXPECT_EQ(-1, access("/dev/hawk", F_OK));
	EXPECT_EQ(-1, access("/sys/module/hawk", F_OK));
	unlink(path);
	free(path);
}

TEST_HARNESS_MAIN
