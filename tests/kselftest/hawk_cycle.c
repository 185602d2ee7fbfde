// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_cycle.c - the module is loaded and unloaded HAWK_CYCLES times (40)
 *
 * In every tenth cycle the device is used and left as clients leave it: a named
 * space that nobody has attached, with blocks in a host tier.  While a file is open
 * the module stays.  Afterwards the kernel must have no more memory in use than
 * before.  HAWK_LAB_KO is the path of the module.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define WARM_UP		20u	/* cycles until caches have what they keep */
#define NOISE		(3 << 10)	/* of the rest of the system, KiB */

static int load(void)
{
	int fd = open(getenv("HAWK_LAB_KO"), O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "hawk", O_NONBLOCK) ? -errno : 0;
}

/* Memory of the kernel that does not go by itself, KiB. */
static long kernel_kib(void)
{
	static const char *const name[] = { "SUnreclaim:", "Percpu:", "VmallocUsed:" };
	char buf[8192], *at;
	long sum = 0;
	unsigned int i;
	ssize_t n;
	int fd;

	fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		at = strstr(buf, name[i]);
		sum += at ? strtol(at + strlen(name[i]), NULL, 10) : 0;
	}
	return sum;
}

/* 0, or the number of the step that failed. */
static int use(void)
{
	struct hawk_space_create sc = space_args(256);
	struct hawk_item it = { .lid = LID(1) };
	int fd = dev_open(O_RDWR), ret = 0;
	uint32_t host;
	uint8_t *win;

	if (fd < 0)
		return 1;
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, "test-cycle");
	if (host_add(fd, 4 * MIB, &host))
		return 2;
	sc.quota[host].max_bytes = 4 * MIB;
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc) || one(fd, HAWK_IOC_ALLOC, 0, &it))
		return 3;
	win = map_area(fd, HAWK_MMAP_TIER(host), 4 * MIB, PROT_READ | PROT_WRITE);
	if (!win)
		return 4;
	fill(frame_at(win, it.vt, BLOCK), BLOCK, 1);
	if (one(fd, HAWK_IOC_PUT, 0, &it))
		return 5;
	if (unload() != -EAGAIN)
		ret = 6;	/* a file is open */
	close(fd);
	if (!ret && unload() != -EAGAIN)
		ret = 7;	/* a mapping holds the file */
	munmap(win, 4 * MIB);
	return ret;
}

static int cycle(unsigned int i)
{
	int ret;

	if (i % 10 == 0) {
		ret = use();
		if (ret)
			return ret;
	}
	/* EAGAIN: the kernel itself may hold a reference for a moment (udev opens the node) */
	while ((ret = unload()) == -EAGAIN)
		poll(NULL, 0, 1);
	return ret ?: load();
}

FIXTURE(module) {
	int unused;
};

FIXTURE_SETUP(module)
{
}

FIXTURE_TEARDOWN(module)
{
}

/* As long as the longest run may take: the number of cycles is the caller's. */
TEST_F_TIMEOUT(module, load_and_unload, 3600)
{
	unsigned int n = atoi(getenv("HAWK_CYCLES") ?: "40"), i;
	long before = 0, after;
	uint64_t start;

	if (!getenv("HAWK_LAB_KO"))
		SKIP(return, "HAWK_LAB_KO is not set");
	for (i = 0; i < WARM_UP; i++)
		ASSERT_EQ(0, cycle(i)) TH_LOG("warming up, cycle %u", i);
	before = kernel_kib();
	start = now_ns();
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, cycle(i)) TH_LOG("cycle %u", i);
	TH_LOG("%u cycles, %llu ms each", n,
	       (unsigned long long)(now_ns() - start) / 1000000 / (n ?: 1));
	if (!access("/sys/kernel/debug/kmemleak", F_OK)) {
		TH_LOG("memory is not compared: KASAN keeps what is freed; kmemleak looks for leaks");
		return;
	}
	/* what is freed after a grace period, or by a worker, comes back; a leak does not */
	for (i = 0; i < 200; i++) {
		after = kernel_kib();
		if (after <= before + NOISE)
			break;
		poll(NULL, 0, 50);
	}
	EXPECT_LE(after, before + NOISE) TH_LOG("KiB of the kernel");
}

TEST_HARNESS_MAIN
