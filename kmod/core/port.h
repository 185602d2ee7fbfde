/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * port.h - the little that the engine needs from its host
 *
 * The engine is the same source in the kernel and in user space.  Here is all
 * that differs: fixed-width types, a fair lock, three atomic accesses, memory
 * for tables (allocated when a tier or space is made, never on a hot path).
 */
#ifndef HAWK_CORE_PORT_H
#define HAWK_CORE_PORT_H

/* Kinds of locks, for those who look at waiting; DEVICE is a host's own. */
enum hawk_lock_kind {
	HAWK_LOCK_TIER,
	HAWK_LOCK_BUCKET,
	HAWK_LOCK_SHARD,
	HAWK_LOCK_DEVICE,
	HAWK_LOCK_SEQ,
	HAWK_LOCK_BUDGET,
	HAWK_LOCK_PACE,
	HAWK_LOCK_PROMOTE,
};

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/prefetch.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tracepoint-defs.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

/*
 * Queued and fair; preemption is off while it is held.
 *
 * Some functions of the engine return with the lock held only if they found what
 * they looked for.  sparse cannot follow that, so towards it each call is
 * balanced; lockdep watches these locks.
 *
 * While somebody traces hawk_lock_wait, whoever finds a lock taken is timed by the
 * host; else that costs nothing.
 */
struct hawk_lock {
	spinlock_t l;
	u32 kind;	/* enum hawk_lock_kind */
};

DECLARE_TRACEPOINT(hawk_lock_wait);
void hawk_lock_timed(struct hawk_lock *x, unsigned int subclass) __acquires(&x->l);

#define hawk_lock_init(x)	spin_lock_init(&(x)->l)
#define hawk_lock_fini(x)	do { } while (0)
#define hawk_lock_name(x, k)	((x)->kind = (k))

/* @subclass: SINGLE_DEPTH_NESTING for a second lock of the same kind, see README.md */
static inline void hawk_lock_class(struct hawk_lock *x, unsigned int subclass)
{
	if (tracepoint_enabled(hawk_lock_wait) && spin_is_locked(&x->l))
		hawk_lock_timed(x, subclass);
	else
		spin_lock_nested(&x->l, subclass);
	__release(&x->l);
}

#define hawk_lock(x)		hawk_lock_class(x, 0)
#define hawk_lock_nested(x)	hawk_lock_class(x, SINGLE_DEPTH_NESTING)

static inline void hawk_unlock(struct hawk_lock *x)
{
	__acquire(&x->l);
	spin_unlock(&x->l);
}

#define hawk_assert_held(x)	lockdep_assert_held(&(x)->l)
#define hawk_assert(cond)	WARN_ON_ONCE(!(cond))

#define hawk_prefetch(p)	prefetchw(p)

/* @i, of a client's, has been found to be below @n: not more when speculating either. */
#define hawk_nospec(i, n)	array_index_nospec(i, n)

#define hawk_load_acquire(p)	smp_load_acquire(p)
#define hawk_store_release(p, v) smp_store_release(p, v)
#define hawk_load(p)		READ_ONCE(*(p))
#define hawk_store(p, v)	WRITE_ONCE(*(p), v)
#define hawk_cas64(p, old, new)	(cmpxchg64(p, old, new) == (old))
#define hawk_mb()		smp_mb()
#define hawk_rmb()		smp_rmb()
#define hawk_wmb()		smp_wmb()
#define hawk_random()		get_random_u64()

/* State @crc of a CRC32C after @len more bytes; ~0 to begin, inverted at the end. */
#define hawk_crc32c_more(crc, p, len)	crc32c(crc, p, len)

/*
 * Sizes come from users: a table that does not fit is their -ENOMEM, no reason to
 * kill a process or to warn.  kvmalloc() itself refuses more than INT_MAX.
 */
static inline void *hawk_table_alloc(size_t n, size_t bytes)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	size_t size = array_size(n, bytes);

	return size > INT_MAX ? __vmalloc(size, gfp) : kvmalloc(size, gfp);
}

static inline void hawk_table_free(void *p, size_t n, size_t bytes)
{
	kvfree(p);
}

static inline void hawk_relax(void)
{
	cond_resched();
}

#else /* user space */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif
#define div_u64(a, b)	((u64)(a) / (u32)(b))
#define check_add_overflow(a, b, d)	__builtin_add_overflow(a, b, d)
#define check_mul_overflow(a, b, d)	__builtin_mul_overflow(a, b, d)
#define U8_MAX		((u8)~0)
#define S64_MAX		((s64)(~0ull >> 1))
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

/*
 * Fair: a ticket is served in order.  Whoever is next spins for a moment; the
 * others sleep, because a waiter that burns the core on which the owner should
 * run makes everybody slower (port_user.c).
 */
struct hawk_lock {
	u32 ticket;	/* next ticket to hand out */
	u32 serving;	/* ticket that holds the lock */
	u32 sleepers;	/* waiters in futex_wait */
};

void hawk_lock_init(struct hawk_lock *x);
void hawk_lock_fini(struct hawk_lock *x);
void hawk_lock_slow(struct hawk_lock *x, u32 ticket);
void hawk_unlock_slow(struct hawk_lock *x);
void hawk_assert_fail(const char *cond, const char *file, int line);

static inline void hawk_lock(struct hawk_lock *x)
{
	u32 t = __atomic_fetch_add(&x->ticket, 1, __ATOMIC_RELAXED);

	if (unlikely(__atomic_load_n(&x->serving, __ATOMIC_ACQUIRE) != t))
		hawk_lock_slow(x, t);
}

#define hawk_lock_nested(x)	hawk_lock(x)
#define hawk_lock_name(x, k)	((void)(x))

static inline void hawk_unlock(struct hawk_lock *x)
{
	u32 next = __atomic_load_n(&x->serving, __ATOMIC_RELAXED) + 1;

	/* seq_cst pairs with the sleeper's count-then-recheck in hawk_lock_slow() */
	__atomic_store_n(&x->serving, next, __ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&x->sleepers, __ATOMIC_SEQ_CST)))
		hawk_unlock_slow(x);
}

#define hawk_assert(cond) \
	do { if (unlikely(!(cond))) hawk_assert_fail(#cond, __FILE__, __LINE__); } while (0)
/* As lockdep in the kernel: checked where other debugging is on as well. */
#if defined(HAWK_DEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define hawk_assert_held(x)	\
	hawk_assert(__atomic_load_n(&(x)->serving, __ATOMIC_RELAXED) != \
		    __atomic_load_n(&(x)->ticket, __ATOMIC_RELAXED))
#else
#define hawk_assert_held(x)	((void)(x))
#endif

static inline void hawk_prefetch(const void *p)
{
	__builtin_prefetch(p, 1);
	/* gcc takes a function that only prefetches for pure, and drops calls of it */
	__asm__ volatile("");
}

#define hawk_nospec(i, n)	(i)	/* the tables are the caller's own */

#define hawk_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define hawk_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define hawk_load(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define hawk_store(p, v)	__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define hawk_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define hawk_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define hawk_wmb()		__atomic_thread_fence(__ATOMIC_RELEASE)

static inline bool hawk_cas64(u64 *p, u64 old, u64 new)
{
	return __atomic_compare_exchange_n(p, &old, new, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

u64 hawk_random(void);
u32 hawk_crc32c_more(u32 crc, const void *p, size_t len);
void *hawk_table_alloc(size_t n, size_t bytes);
void hawk_table_free(void *p, size_t n, size_t bytes);

static inline void hawk_relax(void)
{
}

#endif /* __KERNEL__ */

/* Ends of index lists and "no frame, no block". */
#define HAWK_NONE	0xffffffffu

#endif /* HAWK_CORE_PORT_H */
