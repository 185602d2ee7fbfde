/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_fault.h - make the n-th allocation or user copy of this thread fail
 *
 * The kernel counts in /proc/thread-self/fail-nth: fault_arm(n) starts it,
 * fault_disarm() ends it and tells whether the n-th was reached.  Work that
 * other threads do for this one (work queues, interrupts) is not counted.
 */
#ifndef HAWK_FAULT_H
#define HAWK_FAULT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FAULT_DIR	"/sys/kernel/debug/"

static inline bool fault_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Return: whether the setting is there and could be made. */
static inline bool fault_set(const char *kind, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), FAULT_DIR "%s/%s", kind, name);
	return fault_write(path, value);
}

/* Whether the kernel was booted with slub_debug=A,CACHE: which cache may fail on its own. */
static inline bool fault_has_cache(const char *cache)
{
	char path[128], mark = '0';
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/failslab", cache);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, &mark, 1) != 1)
		mark = '0';
	if (fd >= 0)
		close(fd);
	return mark == '1';
}

/*
 * Every allocation of the calling process from such a cache fails, as long as it
 * is on: also the second attempt, which a single failure lets through.  The
 * filters hold whenever failures are likely: without them the whole machine fails.
 */
static inline bool fault_cache(bool on)
{
	return fault_set("failslab", "probability", "0") &&
	       fault_write("/proc/self/make-it-fail", on ? "1" : "0") &&
	       fault_set("failslab", "cache-filter", on ? "Y" : "N") &&
	       fault_set("failslab", "task-filter", on ? "Y" : "N") &&
	       fault_set("failslab", "times", on ? "-1" : "1") &&
	       (!on || fault_set("failslab", "probability", "100"));
}

/*
 * All kinds of failure, also of allocations that may sleep or be of high memory,
 * without a line in the log for each, and none by chance.
 * Return: NULL, or the kind that this kernel lacks.
 */
static inline const char *fault_setup(void)
{
	static const char * const kind[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	unsigned int i;

	for (i = 0; i < sizeof(kind) / sizeof(kind[0]); i++)
		if (!fault_set(kind[i], "probability", "0") || !fault_set(kind[i], "verbose", "0"))
			return kind[i];
	/* What a test that died may have left */
	if (!fault_set("failslab", "cache-filter", "N") ||
	    !fault_set("failslab", "task-filter", "N") ||
	    !fault_set("failslab", "ignore-gfp-wait", "N") ||
	    !fault_set("fail_page_alloc", "ignore-gfp-wait", "N") ||
	    !fault_set("fail_page_alloc", "ignore-gfp-highmem", "N") ||
	    !fault_set("fail_page_alloc", "min-order", "0"))
		return "a way to fail every allocation";
	return NULL;
}

/* Return: the calling thread's counter, or -1: this kernel has none. */
static inline int fault_open(void)
{
	return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
}

static inline bool fault_arm(int counter, unsigned int n)
{
	char buf[16];
	int len = snprintf(buf, sizeof(buf), "%u", n);

	return pwrite(counter, buf, len, 0) == len;
}

/*
 * Reading and writing the counter copy too, so the failure may strike here: then
 * the n-th was not reached before.  It strikes once, the next attempt succeeds.
 */
static inline bool fault_disarm(int counter)
{
	char buf[16] = "";
	bool reached = pread(counter, buf, sizeof(buf), 0) > 0 && buf[0] == '0';

	while (pwrite(counter, "0", 1, 0) != 1)
		;
	return reached;
}

#endif /* HAWK_FAULT_H */
