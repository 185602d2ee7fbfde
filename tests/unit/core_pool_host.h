/* SPDX-License-Identifier: MIT */
/*
 * core_pool_host.h - a host with a persistent pool on a drive that loses its power
 *
 * The drive has a volatile cache: what was written and not flushed is there for readers,
 * and after a power cut each sector of 512 bytes is what it was or what was written, by lot.
 * Blocks have bytes that can be told from their key and a version.
 */
#ifndef CORE_POOL_HOST_H
#define CORE_POOL_HOST_H

#include "core_host.h"
#include "../../kmod/core/priv.h"

#define PH_BLOCK	16384u		/* bytes of a block */
#define PH_FPC		(HAWK_CHUNK_BYTES / PH_BLOCK)
#define PH_TOKENS	16u
#define PH_SECTOR	512u

struct drive {
	u8 *media;		/* what is durable */
	u8 *now;		/* what readers see */
	u64 bytes;
	u32 *dirty;		/* sectors that differ, maybe */
	u32 ndirty;
	u8 *listed;		/* by sector */
	u64 rng;
	u64 pages;		/* that were written, in whole or in part */
	s64 writes_left;	/* then the power fails; less than 0: never */
	bool dead;
};

struct pool_host {
	struct drive d;
	struct hawk_super super;
	struct hawk_engine *e;
	u32 dram, flash;	/* tier ids */
	u8 *mem;		/* the DRAM tier */
	u32 dram_chunks;
	u64 now;
	u32 unread;		/* the first records, which cannot be read */
	struct hawk_move move[64];
	struct hawk_plan plan;
};

void drive_init(struct drive *d, u64 bytes, u64 seed);
void drive_fini(struct drive *d);
void drive_write(struct drive *d, u64 off, const void *p, u32 bytes);
void drive_flush(struct drive *d);
void drive_power_cut(struct drive *d);

/* Make a pool of @chunks chunks. */
void ph_format(struct pool_host *h, u32 chunks, u64 seed);
/* Start an engine with @dram_chunks on it.  Return: 0 or why the pool is refused. */
int ph_open(struct pool_host *h, u32 dram_chunks);
/* The end of a run; @clean: all spaces have been ended by ph_space_end(). */
void ph_close(struct pool_host *h, bool clean);
void ph_free(struct pool_host *h);

/* Parameters and identity of a space named @name on all of both tiers. */
struct hawk_space_params ph_params(struct pool_host *h, const char *name,
				   struct hawk_identity *id);
/* A space with what is found of it. */
int ph_try_space(struct pool_host *h, struct hawk_space_params *p, struct hawk_space **s);
struct hawk_space *ph_space(struct pool_host *h, const char *name);
void ph_space_end(struct pool_host *h, struct hawk_space *s);
/* As a process that is killed: no header is written any more. */
void ph_space_kill(struct pool_host *h, struct hawk_space *s);

/* Write what comes before blocks on flash. */
void ph_ancestors(struct pool_host *h, struct hawk_space *s);
/* Collect, flush, write. */
void ph_commit(struct pool_host *h, struct hawk_space *s);
/* Chunks that left their owner. */
void ph_clean(struct pool_host *h);
/* Make the moves of the plan. */
void ph_run(struct pool_host *h);
bool ph_grew(struct pool_host *h, struct hawk_space *s, int ret);
/* Write all that has a place on flash. */
void ph_write_all(struct pool_host *h, struct hawk_space *s);

/* Put version @ver of block @n under its key, after block @parent (@n: it has none). */
int ph_put(struct pool_host *h, struct hawk_space *s, u32 n, u32 ver, u32 parent);
/*
 * Get a block by key.
 * Return: the version that it has, 0: a miss; fails the test for any other bytes.
 */
u32 ph_get(struct pool_host *h, struct hawk_space *s, u32 n);
void ph_key(u8 *key, u32 n);
u64 ph_lid(u32 n, u32 ver);

#endif /* CORE_POOL_HOST_H */
