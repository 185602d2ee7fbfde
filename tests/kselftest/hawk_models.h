/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_models.h - the lab's models, as the tests of dma-buf and of tiers use them
 *
 * Their modules are in the folder HAWK_TEST_MODELS; without it what needs them
 * skips.  Calls give 0 or a negative errno.
 */
#ifndef HAWK_TEST_MODELS_H
#define HAWK_TEST_MODELS_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../firmware-models/models.h"
#include "hawk_test.h"

/* Loads hawk_@name.ko; one that is loaded already is as good. */
static inline int model_load(const char *name, const char *params)
{
	const char *dir = getenv("HAWK_TEST_MODELS");
	char path[4096];
	int fd, ret;

	if (!dir)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/hawk_%s.ko", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, params, 0) && errno != EEXIST ? -errno : 0;
	close(fd);
	return ret;
}

static inline int model_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

/* ---- exports ---- */

/* Exports @n blocks; @lid names the first, the others follow. */
static inline int export_blocks(int fd, uint32_t first, uint32_t n, uint32_t flags,
				struct hawk_export *x)
{
	struct hawk_item *it = calloc(n, sizeof(*it));
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		it[i].lid = LID(first + i);
	*x = (struct hawk_export){
		.size = sizeof(*x), .flags = flags, .count = n, .items = (uintptr_t)it,
	};
	ret = dev_call(fd, HAWK_IOC_EXPORT, x);
	free(it);
	return ret;
}

static inline int export_revoke(int fd, uint64_t id, uint64_t wait_ns)
{
	struct hawk_export_revoke r = {
		.size = sizeof(r), .export_id = id, .deadline_ns = wait_ns ? now_ns() + wait_ns : 0,
	};

	return dev_call(fd, HAWK_IOC_EXPORT_REVOKE, &r);
}

/* ---- an importer ---- */

static inline int imp_call(int imp, unsigned long cmd, unsigned long arg)
{
	return ioctl(imp, cmd, arg) ? -errno : 0;
}

/* An importer attached to @fd; negative errno. */
static inline int imp_attach(int fd, uint32_t flags)
{
	struct hawk_imp_attach at = { .fd = fd, .flags = flags };
	int imp = open("/dev/hawk-importer", O_RDWR | O_CLOEXEC), ret;

	if (imp < 0)
		return -errno;
	ret = dev_call(imp, HAWK_IMP_IOC_ATTACH, &at);
	if (!ret)
		return imp;
	close(imp);
	return ret;
}

static inline int imp_rw(int imp, uint64_t offset, void *buf, uint32_t len, uint32_t flags)
{
	struct hawk_imp_rw rw = {
		.offset = offset, .buf = (uintptr_t)buf, .len = len, .flags = flags,
	};

	return dev_call(imp, HAWK_IMP_IOC_RW, &rw);
}

static inline struct hawk_imp_info imp_info(int imp)
{
	struct hawk_imp_info info = { 0 };

	if (ioctl(imp, HAWK_IMP_IOC_INFO, &info))
		info.notifies = ~0u;
	return info;
}

/* ---- memory that may not be there ---- */

static sigjmp_buf bus_jump;

static inline void bus_handler(int sig)
{
	siglongjmp(bus_jump, sig);
}

/* The signal that reading the byte raises, or 0. */
static inline int touch(const void *p)
{
	struct sigaction sa = { .sa_handler = bus_handler }, bus, segv;
	int sig;

	sigaction(SIGBUS, &sa, &bus);
	sigaction(SIGSEGV, &sa, &segv);
	sig = sigsetjmp(bus_jump, 1);
	if (!sig)
		(void)*(const volatile uint8_t *)p;
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}

#endif /* HAWK_TEST_MODELS_H */
