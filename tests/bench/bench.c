// SPDX-License-Identifier: MIT
/*
 * bench.c - what the benchmark programs share
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static unsigned int number(const char *s, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);

	if (end == s || *end || !n || n > max)
		bench_die("'%s' is not a number from 1 to %u", s, max);
	return n;
}

void bench_args(struct bench_opts *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "r:m:b:s:f:u:")) != -1) {
		switch (c) {
		case 'r':
			o->runs = number(optarg, 1000);
			break;
		case 'm':
			o->ms = number(optarg, 600000);
			break;
		case 'b':
			o->block_bytes = number(optarg, 2 << 20);
			break;
		case 's':
			o->mib = number(optarg, 1 << 20);
			break;
		case 'f':
			o->file = optarg;
			break;
		case 'u':
			o->url = optarg;
			break;
		default:
			bench_die("usage: [-r RUNS] [-m MILLISECONDS] [-b BYTES] [-s MIB] [-f FILE] [-u URL]");
		}
	}
	if (optind != argc)
		bench_die("unexpected argument '%s'", argv[optind]);
}

void bench_emit(const char *name, enum bench_side side, double value, const char *unit)
{
	printf("{\"name\": \"%s\", \"side\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n",
	       name, side == BENCH_OURS ? "ours" : "peer", value, unit);
	fflush(stdout);
}

void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

void bench_check(int ret, const char *what)
{
	if (ret < 0)
		bench_die("%s: %s", what, strerror(-ret));
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t bench_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t bench_cpu(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void *bench_table(uint64_t bytes)
{
	const uint64_t huge = 2 << 20;
	void *p;

	bytes = (bytes + huge - 1) & ~(huge - 1);
	p = aligned_alloc(huge, bytes);
	if (!p)
		bench_die("no memory for %llu MiB", (unsigned long long)bytes >> 20);
	madvise(p, bytes, MADV_HUGEPAGE);
	return memset(p, 0, bytes);
}

uint64_t bench_sum(const void *p, uint64_t bytes)
{
	typedef uint64_t vec __attribute__((vector_size(16), aligned(8)));
	const vec *w = p;
	vec s0 = { 0 }, s1 = { 0 };
	uint64_t i;

	for (i = 0; i + 1 < bytes / sizeof(*w); i += 2) {
		s0 += w[i];
		s1 += w[i + 1];
	}
	s0 += s1;
	return s0[0] + s0[1];
}
