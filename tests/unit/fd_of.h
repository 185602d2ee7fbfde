/* SPDX-License-Identifier: MIT */
/*
 * fd_of.h - the descriptor by which this process has a file open, for tests that put
 * something else in its place
 */
#ifndef FD_OF_H
#define FD_OF_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline int fd_of(const char *path)
{
	char name[64], link[512];
	ssize_t n;
	int fd;

	for (fd = 3; fd < 256; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		if (!strcmp(link, path))
			return fd;
	}
	fail_msg("%s is not open", path);
	return -1;
}

#endif /* FD_OF_H */
