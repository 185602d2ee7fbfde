// SPDX-License-Identifier: MIT
/*
 * port_user.c - user-space side of kmod/core/port.h
 *
 * The lock is a ticket lock whose waiters sleep.  @serving is the futex word; a
 * waiter sleeps with the bit (ticket mod 32) and the owner wakes the bit of the
 * ticket that is served next, so a release wakes one thread out of up to 32.
 *
 * No wake-up is lost: a waiter counts itself in @sleepers before it looks at
 * @serving for the last time, the owner advances @serving before it looks at
 * @sleepers, all sequentially consistent, so one of them sees the other; and the
 * kernel compares @serving once more before it puts the waiter to sleep.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kmod/core/port.h"

/* Looks at @serving before the next in line sleeps: some microseconds. */
#define SPINS		64
#define CACHE_LINE	64
#define HUGE_BYTES	(2ul << 20)

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static u32 ticket_bit(u32 ticket)
{
	return 1u << (ticket & 31);
}

static long futex(u32 *word, int op, u32 val, u32 bits)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, NULL, NULL, bits);
}

void hawk_lock_init(struct hawk_lock *x)
{
	memset(x, 0, sizeof(*x));
}

void hawk_lock_fini(struct hawk_lock *x)
{
	hawk_assert(x->serving == x->ticket && !x->sleepers);
}

void hawk_lock_slow(struct hawk_lock *x, u32 ticket)
{
	u32 now;
	int i;

	for (i = 0; i < SPINS; i++) {
		now = __atomic_load_n(&x->serving, __ATOMIC_ACQUIRE);
		if (now == ticket)
			return;
		if (now + 1 != ticket)	/* others come first */
			break;
		cpu_relax();
	}

	__atomic_fetch_add(&x->sleepers, 1, __ATOMIC_SEQ_CST);
	while ((now = __atomic_load_n(&x->serving, __ATOMIC_SEQ_CST)) != ticket)
		futex(&x->serving, FUTEX_WAIT_BITSET, now, ticket_bit(ticket));
	__atomic_fetch_sub(&x->sleepers, 1, __ATOMIC_RELAXED);
}

/*
 * If @serving has moved on since our release, its ticket holder was awake, and
 * whoever released after us wakes the next.
 */
void hawk_unlock_slow(struct hawk_lock *x)
{
	u32 next = __atomic_load_n(&x->serving, __ATOMIC_RELAXED);

	futex(&x->serving, FUTEX_WAKE_BITSET, INT_MAX, ticket_bit(next));
}

void hawk_assert_fail(const char *cond, const char *file, int line)
{
	fprintf(stderr, "hawk: %s:%d: broken invariant: %s\n", file, line, cond);
	abort();
}

/* The seed of a space's hashes: where the system gives none, at least not constant. */
u64 hawk_random(void)
{
	u64 x;

	if (getrandom(&x, sizeof(x), GRND_NONBLOCK) != sizeof(x))
		x = (uintptr_t)&x ^ (u64)getpid() << 32;
	return x;
}

/* Tables of half a huge page and more are made of whole ones. */
static bool table_is_huge(size_t len)
{
	return len >= HUGE_BYTES / 2;
}

static size_t round_up(size_t len, size_t to)
{
	return (len + to - 1) & ~(to - 1);
}

/* @len bytes of the kernel's zeroed pages, aligned so that huge ones fit. */
static void *map_huge(size_t len)
{
	char *p = mmap(NULL, len + HUGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t head;

	if (p == MAP_FAILED)
		return NULL;
	head = round_up((uintptr_t)p, HUGE_BYTES) - (uintptr_t)p;
	if (head)
		munmap(p, head);
	if (head < HUGE_BYTES)
		munmap(p + head + len, HUGE_BYTES - head);
	madvise(p + head, len, MADV_HUGEPAGE);	/* advice: refusing it costs speed only */
	return p + head;
}

/*
 * Zeroed and aligned to a cache line.  Huge pages spare large tables the TLB misses
 * of random look-ups.
 */
void *hawk_table_alloc(size_t n, size_t bytes)
{
	size_t len;
	void *p;

	if (check_mul_overflow(n, bytes, &len) || len > SIZE_MAX - 2 * HUGE_BYTES)
		return NULL;
	if (table_is_huge(len))
		return map_huge(round_up(len, HUGE_BYTES));
	len = round_up(len ? len : 1, CACHE_LINE);
	p = aligned_alloc(CACHE_LINE, len);
	return p ? memset(p, 0, len) : NULL;
}

void hawk_table_free(void *p, size_t n, size_t bytes)
{
	size_t len = n * bytes;

	if (p && table_is_huge(len))
		munmap(p, round_up(len, HUGE_BYTES));
	else
		free(p);
}
