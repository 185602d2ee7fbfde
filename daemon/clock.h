/* SPDX-License-Identifier: MIT */
/* clock.h - monotonic time in nanoseconds, the only clock of the daemon */
#ifndef HAWKD_CLOCK_H
#define HAWKD_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC  1000000000ull
#define NS_PER_MSEC 1000000ull

static inline uint64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

#endif
