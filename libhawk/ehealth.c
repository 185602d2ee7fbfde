// SPDX-License-Identifier: MIT
/*
 * ehealth.c - flash that fails: counted, told to the engine, and to the person once
 *
 * kmod/core/health.c tells what the engine makes of it.
 */
#include <stdio.h>

#include "embed.h"

#define STALL_NS	2000000000ull	/* nothing has ended for so long */

static const char *advice(s32 err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "its file system is full: make room there, or give it a smaller file";
	case -ENODEV:
	case -ENXIO:
		return "the drive is gone: remove the tier with force";
	case -EROFS:
		return "its file system has become read-only: see the kernel log for the drive";
	case -EILSEQ:
		return "it returns other bytes than were written: see the drive's health, and "
		       "that nobody else writes to the file";
	case -ETIME:
		return "nothing comes back from it: see the kernel log for the drive";
	default:
		return "see the kernel log for the drive; a tier can be removed with force while "
		       "it is used";
	}
}

static u32 id_of(const struct etier *t)
{
	return (u32)(t - t->e->tier);
}

static void told(const struct etier *t, enum hawk_health_change change, s32 err)
{
	if (change == HAWK_HEALTH_FAILS)
		fprintf(stderr, "hawk: flash %s: %s; no block is written to it but a trial now and "
			"then, what it holds is read as ever: %s\n", t->name,
			err == -EILSEQ ? "blocks are damaged" : strerror(-err), advice(err));
	else if (change == HAWK_HEALTH_WORKS)
		fprintf(stderr, "hawk: flash %s: takes blocks again\n", t->name);
}

/**
 * flash_failed() - a transfer of a flash tier has failed
 * @t: the tier; what fails before it is one is told to who adds it
 * @err: negative errno
 */
void flash_failed(struct etier *t, bool write, s32 err)
{
	__atomic_fetch_add(&t->io_errors, 1, __ATOMIC_RELAXED);
	if (err == -EILSEQ && epool_torn(t))
		return;
	/* short of memory is the host, which says nothing of the drive */
	if (t->e && err != -ENOMEM)
		told(t, hawk_tier_fault(t->e->engine, id_of(t), write ? HAWK_FAULT_WRITE :
					HAWK_FAULT_READ, now_ns()), err);
}

/* flash_out() - a request to flash begins; who sees it under way sees since when */
void flash_out(struct etier *t)
{
	if (!hawk_load(&t->out))
		hawk_store(&t->out_since, now_ns());
	__atomic_fetch_add(&t->out, 1, __ATOMIC_RELEASE);
}

/* flash_back() - it has ended, whichever way */
void flash_back(struct etier *t)
{
	hawk_store(&t->out_since, now_ns());
	__atomic_fetch_sub(&t->out, 1, __ATOMIC_RELAXED);
}

/* flash_watch() - does a drive stall?  For those who wait for one. */
void flash_watch(struct embed *e)
{
	u64 now = now_ns(), since;
	struct etier *t;

	for (t = e->tier; t < e->tier + HAWK_TIERS_MAX; t++) {
		if (!hawk_load_acquire(&t->out))
			continue;
		since = hawk_load(&t->out_since);
		if (now > since && now - since > STALL_NS)
			told(t, hawk_tier_fault(e->engine, (u32)(t - e->tier), HAWK_FAULT_STALL,
						now), -ETIME);
	}
}

/* flash_works() - a transfer of @bytes came out well */
void flash_works(struct etier *t, bool write, u64 bytes)
{
	__atomic_fetch_add(write ? &t->write_bytes : &t->read_bytes, bytes, __ATOMIC_RELAXED);
	told(t, hawk_tier_works(t->e->engine, id_of(t), write, now_ns()), 0);
}
