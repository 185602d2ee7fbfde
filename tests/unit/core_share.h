/* SPDX-License-Identifier: MIT */
/*
 * core_share.h - a fixture of core_share.c and core_minimum.c: spaces that share tiers,
 * and the draining of their chunks
 */
#ifndef CORE_SHARE_H
#define CORE_SHARE_H

#include "core_host.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(1 + (n) / 4096, 0, 0, (n) % 4096 * 16)

/* 512 KiB blocks, four to a chunk. */
#define BLOCK		(512u << 10)
#define PER_CHUNK	(HAWK_CHUNK_BYTES / BLOCK)
#define SPACES		3
#define HOST		0
#define FLASH		1

struct fix {
	struct host h;
	struct hawk_space *s;	/* the first one */
	struct hawk_space *more[SPACES];
	u32 buckets;	/* of spaces to come */
	u64 now;
};

static inline struct hawk_space *space_of(struct fix *f, u32 min, u32 max, u32 flash)
{
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = 256,
		.buckets = f->buckets,
		.quota_min = { min }, .quota_max = { max, flash },
	};

	return host_space(&f->h, &p);
}

static inline void fix_init(struct fix *f, u32 host, u32 flash)
{
	memset(f, 0, sizeof(*f));
	host_init(&f->h, 7);
	host_tier(&f->h, HAWK_TIER_HOST, host);
	if (flash)
		host_tier(&f->h, HAWK_TIER_BLK, flash);
	f->buckets = 1;
	f->s = space_of(f, 0, host, flash);
}

static inline void fix_fini(struct fix *f)
{
	u32 i;

	if (f->s)
		host_space_end(&f->h, f->s);
	for (i = 0; i < SPACES; i++)
		if (f->more[i])
			host_space_end(&f->h, f->more[i]);
	host_fini(&f->h);
}

static inline void fill(struct fix *f, u32 first, u32 n)
{
	u32 i;

	for (i = first; i < first + n; i++)
		assert_int_equal(host_fill(&f->h, f->s, LID(i), NULL, i + 1, ++f->now), 0);
}

/* 'h' in the host tier, 'f' on flash, '-' gone; what is there has the right bytes */
static inline char where(struct fix *f, u32 n)
{
	struct hawk_ref ref;
	u64 vt;

	if (hawk_block_ref(f->s, LID(n), &vt, &ref))
		return '-';
	assert_int_equal(host_read(&f->h, f->s, vt), n + 1);
	return f->h.tier[HAWK_VT_TIER(vt)].kind == HAWK_TIER_HOST ? 'h' : 'f';
}

static inline void expect(struct fix *f, u32 first, const char *want)
{
	u32 i;

	for (i = 0; want[i]; i++)
		if (where(f, first + i) != want[i])
			fail_msg("block %u is %c, not %c", first + i, where(f, first + i), want[i]);
	host_check(f->s);
}

static inline struct hawk_stats stats(struct hawk_space *s)
{
	struct hawk_stats st = { 0 };

	hawk_space_stats(s, &st);
	return st;
}

static inline u32 nfree(struct fix *f, u32 tier)
{
	u32 n;

	assert_int_equal(hawk_tier_usage(f->h.e, tier, NULL, &n, NULL), 0);
	return n;
}

static inline u32 slot_of(struct fix *f, u32 n)
{
	struct hawk_ref ref;
	u64 vt;

	assert_int_equal(hawk_block_ref(f->s, LID(n), &vt, &ref), 0);
	return HAWK_VT_FRAME(vt) / PER_CHUNK;
}

/* Drain to the end.  Return: of the last call. */
static inline int drain(struct fix *f, struct hawk_space *s, u32 tier, u32 flags, u32 *busy)
{
	u32 tries = 0;
	int ret;

	for (;;) {
		ret = hawk_space_drain(s, tier, flags, f->now, host_plan(&f->h, HOST_PLAN), busy);
		if (!host_grew(s, ret) && ret != -EAGAIN)
			return ret;
		assert_true(tries++ < 100);
		host_run(&f->h);
		host_check(s);
	}
}

/* Take the chunk of a slot away.  Return: its number. */
static inline u32 take(struct fix *f, struct hawk_space *s, u32 tier, u32 slot,
		struct hawk_space *claim)
{
	u32 busy, chunk;

	assert_int_equal(hawk_space_drain_start(s, tier, slot), 0);
	assert_int_equal(drain(f, s, tier, 0, &busy), 0);
	chunk = hawk_space_drain_finish(s, tier, claim);
	host_check(s);
	return chunk;
}

#endif /* CORE_SHARE_H */
