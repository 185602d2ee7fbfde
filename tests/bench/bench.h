/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what the benchmark programs share
 *
 * A program measures Hawk and its peer in turns in one process and prints one
 * JSON line per measurement; bench.py pairs them up and compares.
 */
#ifndef HAWK_BENCH_H
#define HAWK_BENCH_H

#include <stdint.h>

enum bench_side { BENCH_OURS, BENCH_PEER };

/**
 * struct bench_opts - command line of every program
 * @runs: measurements of each side
 * @ms: length of one measurement, milliseconds (some programs do a fixed amount)
 * @block_bytes: bytes of a block
 * @mib: size of the flash tier, MiB
 * @file: model, drive or socket
 * @url: libhawk URL
 */
struct bench_opts {
	unsigned int runs;
	unsigned int ms;
	unsigned int block_bytes;
	unsigned int mib;
	const char *file;
	const char *url;
};

/** bench_args() - read -r RUNS -m MILLISECONDS -b BYTES -s MIB -f FILE -u URL */
void bench_args(struct bench_opts *o, int argc, char **argv);

/**
 * bench_emit() - print one measurement
 * @name: name of the figure
 * @unit: unit of @value; "ns", "us", "ms" and "s" are better when lower
 */
void bench_emit(const char *name, enum bench_side side, double value, const char *unit);

/** bench_die() - print the cause and exit with status 1 */
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/** bench_check() - exit unless @ret is 0 or more; @what says what was tried */
void bench_check(int ret, const char *what);

/** bench_now() - monotonic time, nanoseconds */
uint64_t bench_now(void);

/** bench_cpu() - CPU time of this thread, nanoseconds: what others take does not count */
uint64_t bench_cpu(void);

/** bench_table() - zeroed memory on huge pages where the kernel has them */
void *bench_table(uint64_t bytes);

/** bench_sum() - sum of all 64-bit words of @bytes (a multiple of 32) bytes */
uint64_t bench_sum(const void *p, uint64_t bytes);

/** bench_keep() - make the compiler believe that @v is used */
static inline void bench_keep(uint64_t v)
{
	__asm__ volatile("" : : "r"(v));
}

/** bench_rand() - xorshift64*; @state is not 0 */
static inline uint64_t bench_rand(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ull;
}

#endif /* HAWK_BENCH_H */
