/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_npu.h - a space in the memory of an NPU, as the tests of hawk_npu.ko use it
 *
 * The device is that of hawk-lab --npu.  Each test loads the driver and unloads it; a space
 * has 4 MiB of the NPU and a file as flash.
 */
#ifndef HAWK_TEST_NPU_H
#define HAWK_TEST_NPU_H

#include <dirent.h>
#include <poll.h>
#include <sys/wait.h>

#include "../../uapi/hawk_npu_fw.h"
#include "hawk_blocks.h"
#include "hawk_models.h"

#define NPU_MIB		4u
#define NPU_BYTES	(NPU_MIB * MIB)
#define FLASH_BYTES	(16 * MIB)
#define NPU_BLOCKS	((uint32_t)(NPU_BYTES / BLOCK))
#define MORE		64u	/* blocks beyond those that the space has of the NPU */
#define DRIVER		"/sys/bus/pci/drivers/hawk_npu"
#define FAULT		"/sys/kernel/debug/hawk_npu/npu0/fault"

/* The first line, or "" */
static inline const char *file_read(const char *path)
{
	static char buf[64];

	if (read_file(path, buf, sizeof(buf)))
		buf[0] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return buf;
}

/* The first PCI device that the driver has, or "" */
static inline const char *npu_device(void)
{
	static char name[32];
	DIR *dir = opendir(DRIVER);
	struct dirent *e;

	name[0] = 0;
	while (dir && (e = readdir(dir)))
		if (strchr(e->d_name, ':'))
			snprintf(name, sizeof(name), "%.31s", e->d_name);
	if (dir)
		closedir(dir);
	return name;
}

static inline const char *npu_attr(const char *attr)
{
	char path[256];

	snprintf(path, sizeof(path), DRIVER "/%s/%s", npu_device(), attr);
	return file_read(path);
}

static inline unsigned long npu_count(const char *attr)
{
	return strtoul(npu_attr(attr), NULL, 10);
}

static inline int npu_param(const char *name, const char *value)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/module/hawk_npu/parameters/%s", name);
	return write_file(path, value);
}

static inline int npu_fault(unsigned int kind, unsigned long arg)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %lu", kind, arg);
	return write_file(FAULT, text);
}

static inline bool npu_is(const char *state)
{
	return !strcmp(npu_attr("state"), state);
}

/* Firmware takes commands, of a later boot than @boot. */
static inline void npu_wait_ready(unsigned long boot)
{
	while (!npu_is("ready") || npu_count("boot") <= boot)
		poll(NULL, 0, 10);
}

/* The tier of the NPU that is not lost, or -1. */
static inline int npu_tier(int fd)
{
	uint32_t t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_tier_info info = { .size = sizeof(info), .tier = t };

		if (!dev_call(fd, HAWK_IOC_TIER_INFO, &info) && info.kind == HAWK_TIER_BAR &&
		    info.health != HAWK_HEALTH_LOST)
			return t;
	}
	return -1;
}

static inline bool npu_there(void)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	struct dirent *e;
	bool found = false;

	while (dir && (e = readdir(dir))) {
		char path[300];

		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", e->d_name);
		found |= !strcmp(file_read(path), "0x1110");
	}
	if (dir)
		closedir(dir);
	return found;
}

FIXTURE(npu) {
	int ctl;
	int fd;
	int tier;
	uint32_t blk;
	char *path;
	uint8_t *win;
};

FIXTURE_SETUP(npu)
{
	struct hawk_space_create sc = space_args(8 * NPU_BLOCKS);

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	if (!npu_there())
		SKIP(return, "no ivshmem device (hawk-lab --npu)");
	if (model_load("npu", ""))
		SKIP(return, "no hawk_npu.ko in HAWK_TEST_MODELS");
	self->path = temp_file("npu", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	self->tier = npu_tier(self->ctl);
	ASSERT_GE(self->tier, 0);
	npu_wait_ready(0);
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
	self->fd = dev_open(O_RDWR);
	sc.quota[self->tier].max_bytes = NPU_BYTES;
	sc.quota[self->blk].max_bytes = FLASH_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->tier), NPU_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
}

/* Whatever a test did to the device, its module goes. */
FIXTURE_TEARDOWN(npu)
{
	int tier;

	munmap(self->win, NPU_BYTES);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	do {
		poll(NULL, 0, 10);
		tier = npu_tier(self->ctl);
		if (tier >= 0)
			tier_remove_idle(self->ctl, tier);
	} while (model_unload("hawk_npu") == -EAGAIN);
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/* Until the tier is lost; it may be gone by then. */
static inline void npu_wait_lost(int ctl, uint32_t tier)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = tier };

	while (!dev_call(ctl, HAWK_IOC_TIER_INFO, &info) && info.health != HAWK_HEALTH_LOST)
		poll(NULL, 0, 10);
}

/*
 * A client that brings blocks in and out until it is told to stop.  Exits with 0 if all
 * bytes were right, whatever else failed, and says so by a byte when it has begun.
 */
static inline pid_t load(int fd, uint32_t tier, uint32_t n, int *told)
{
	int stop[2], ready[2];
	uint8_t *win;
	uint32_t i = 0;
	pid_t pid;
	char c;

	if (pipe(stop) || pipe(ready))
		return -1;
	pid = fork();
	if (pid) {
		close(stop[0]);
		close(ready[1]);
		*told = stop[1];
		c = read(ready[0], &c, 1) == 1;
		close(ready[0]);
		return c ? pid : -1;
	}
	close(stop[1]);
	/* A child has no window of its parent's. */
	win = map_area(fd, HAWK_MMAP_TIER(tier), NPU_BYTES, PROT_READ | PROT_WRITE);
	for (;;) {
		struct pollfd p = { .fd = stop[0], .events = POLLIN };
		int ret = check_block(fd, win, i++ % n);

		if (ret > 0)
			_exit(1);
		if (i == n && write(ready[1], "", 1) != 1)
			_exit(2);
		if (i >= n && poll(&p, 1, 0) > 0)
			_exit(0);
	}
}

static inline int load_stop(pid_t pid, int told)
{
	int status;

	close(told);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif /* HAWK_TEST_NPU_H */
