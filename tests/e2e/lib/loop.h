/* SPDX-License-Identifier: MIT */
/*
 * loop.h - a program that does something many times between two marks
 *
 * The marks are writes to a closed descriptor, easy to find in strace's output.
 * $HAWK_URL chooses the device; on the kernel's a host tier is added and removed.
 */
#ifndef LOOP_H
#define LOOP_H

#include <hawk/hawk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void mark(const char *text)
{
	if (write(-1, text, strlen(text)) >= 0)
		abort();
}

/* @use_space makes a space in host tier @tier and works in it; 0 or -1.  Return: for main(). */
static inline int loop_main(int (*use_space)(struct hawk *h, unsigned int tier))
{
	unsigned int tier = 0;
	struct hawk *h;
	int dev, ret;

	if (hawk_open(getenv("HAWK_URL") ? NULL : "embed:?dram=16M", &h)) {
		fprintf(stderr, "%s\n", hawk_strerror_last());
		return 1;
	}
	dev = !strcmp(hawk_backend(h), "dev");
	ret = dev ? hawk_tier_add_host(h, -1, 16 << 20, &tier) : 0;
	if (!ret) {
		ret = use_space(h, tier);
		if (dev)
			hawk_tier_del(h, tier);
	}
	if (ret)
		fprintf(stderr, "%s\n", hawk_strerror_last());
	hawk_close(h);
	return ret ? 1 : 0;
}

#endif /* LOOP_H */
