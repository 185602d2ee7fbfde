// SPDX-License-Identifier: MIT
/*
 * port.c - the simulator's side of kmod/core/port.h
 *
 * One thread: a lock that has to be waited for is a deadlock of the engine with
 * itself.  Tables can be refused, chance comes from the seed.
 */
#include <stdlib.h>

#include "sim.h"

u32 sim_nomem_permille;
static u64 tables;

void hawk_lock_init(struct hawk_lock *x)
{
	memset(x, 0, sizeof(*x));
}

void hawk_lock_fini(struct hawk_lock *x)
{
	EXPECT(x->serving == x->ticket);
}

void hawk_lock_slow(struct hawk_lock *x, u32 ticket)
{
	(void)x;
	(void)ticket;
	sim_fail(__FILE__, __LINE__, "the engine waits for a lock that it holds");
}

void hawk_unlock_slow(struct hawk_lock *x)
{
	(void)x;
	sim_fail(__FILE__, __LINE__, "a lock has sleepers, without another thread");
}

void hawk_assert_fail(const char *cond, const char *file, int line)
{
	sim_fail(file, line, "the engine's assertion: %s", cond);
}

u64 hawk_random(void)
{
	return sim_rand();
}

void *hawk_table_alloc(size_t n, size_t bytes)
{
	size_t len;
	void *p;

	if (check_mul_overflow(n, bytes, &len) || sim_chance(sim_nomem_permille))
		return NULL;
	len = (len + 64) & ~(size_t)63;	/* whole cache lines, at least one */
	p = aligned_alloc(64, len);
	EXPECT(p);
	tables++;
	return memset(p, 0, len);
}

void hawk_table_free(void *p, size_t n, size_t bytes)
{
	(void)n;
	(void)bytes;
	tables -= !!p;
	free(p);
}

u64 sim_tables(void)
{
	return tables;
}
