// SPDX-License-Identifier: MIT
/*
 * gather.c - rows of four candidates: one gather against a call per row and candidate
 *
 * Each candidate wants 64 rows of 32 KiB, 38 of which (60 %) all four want.  Ours is one
 * hawk_gather() of all lists; the peer calls it for each row of each candidate, so what
 * several want is moved several times.  Rows are drawn anew for each run from blocks on
 * flash (-f FILE), or from blocks in DRAM.  That ours moves unique bytes and no others is
 * checked each time against the tiers' own count, and every row's bytes on both sides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "space.h"

#define CANDS		4u
#define ROWS		64u
#define COMMON		38u	/* 60 % of ROWS */
#define ALL		(CANDS * ROWS)
#define DRAWS		8u		/* of rows, for one figure */
#define UNIQUE		(COMMON + CANDS * (ROWS - COMMON))
#define DRAM		(64 * SPACE_MIB)
#define FLASH		(512 * SPACE_MIB)

struct rows {
	uint32_t n[ALL];	/* block by row */
	uint64_t lid[ALL];
	uint32_t count[CANDS];
	uint32_t remap[ALL];
	int32_t status[ALL];
};

struct gather {
	struct bench_space s;
	uint32_t block;		/* bytes */
	uint8_t *buf;		/* of ALL blocks */
	uint64_t rng;
	struct rows r;
};

/* UNIQUE different blocks of @first .. @first + @range - 1. */
static void draw(struct gather *g, uint32_t first, uint32_t range)
{
	uint32_t *pool = malloc(range * sizeof(*pool)), i, j, c, t;

	if (!pool)
		bench_die("no memory");
	for (i = 0; i < range; i++)
		pool[i] = first + i;
	for (i = 0; i < UNIQUE; i++) {
		j = i + (uint32_t)(bench_rand(&g->rng) % (range - i));
		t = pool[i];
		pool[i] = pool[j];
		pool[j] = t;
	}
	for (c = 0; c < CANDS; c++) {
		g->r.count[c] = ROWS;
		for (i = 0; i < ROWS; i++) {
			t = i < COMMON ? i : COMMON + c * (ROWS - COMMON) + i - COMMON;
			g->r.n[c * ROWS + i] = pool[t];
			g->r.lid[c * ROWS + i] = space_lid(pool[t]);
		}
	}
	free(pool);
}

static void check(struct gather *g, uint32_t row, const uint8_t *p)
{
	bench_check(g->r.status[row], "gathering a row");
	if (bench_sum(p, g->block) != space_block_sum(g->r.n[row], g->block))
		bench_die("row %u has another block's bytes", row);
}

static uint64_t read_bytes(struct gather *g, uint32_t tier)
{
	struct hawk_tier_info info;

	bench_check(hawk_tier_stat(g->s.h, tier, &info), hawk_strerror_last());
	return info.read_bytes;
}

/* One call for all.  Return: microseconds. */
static double ours(struct gather *g, uint32_t tier, bool flash)
{
	struct hawk_gather_lists l = {
		.lid = g->r.lid, .count = g->r.count, .lists = CANDS, .remap = g->r.remap,
		.status = g->r.status, .buf = g->buf, .buf_bytes = (uint64_t)ALL * g->block,
	};
	uint64_t before = read_bytes(g, tier), t0, ns;
	struct hawk_gather got;
	uint32_t i;

	t0 = bench_now();
	if (hawk_gather(g->s.kv, &l, NULL, &got) != (int)ALL)
		bench_die("gather: %s", hawk_strerror_last());
	ns = bench_now() - t0;
	if (got.unique != UNIQUE || got.bytes != (uint64_t)UNIQUE * g->block ||
	    got.tier[tier].blocks != UNIQUE)
		bench_die("%u blocks and %llu bytes moved, %u of them from tier %u; unique are %u",
			  got.unique, (unsigned long long)got.bytes, got.tier[tier].blocks, tier,
			  UNIQUE);
	if (flash && read_bytes(g, tier) - before != got.bytes)
		bench_die("flash has read %llu bytes for %llu unique ones",
			  (unsigned long long)(read_bytes(g, tier) - before),
			  (unsigned long long)got.bytes);
	for (i = 0; i < ALL; i++)
		check(g, i, g->buf + (uint64_t)g->r.remap[i] * g->block);
	return (double)ns / 1e3;
}

/* A call for each row of each candidate. */
static double peer(struct gather *g)
{
	static const uint32_t one = 1;
	uint64_t t0, ns;
	uint32_t i;

	t0 = bench_now();
	for (i = 0; i < ALL; i++) {
		struct hawk_gather_lists l = {
			.lid = &g->r.lid[i], .count = &one, .lists = 1, .remap = &g->r.remap[i],
			.status = &g->r.status[i], .buf = g->buf + (uint64_t)i * g->block,
			.buf_bytes = g->block,
		};

		if (hawk_gather(g->s.kv, &l, NULL, NULL) != 1)
			bench_die("gather of row %u: %s", i, hawk_strerror_last());
	}
	ns = bench_now() - t0;
	for (i = 0; i < ALL; i++)
		check(g, i, g->buf + (uint64_t)i * g->block);
	return (double)ns / 1e3;
}

static uint32_t find_tier(struct gather *g, uint32_t kind)
{
	struct hawk_tier_info info;
	struct hawk_query q;
	uint32_t t;

	bench_check(hawk_device_query(g->s.h, &q), hawk_strerror_last());
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (q.tiers & 1u << t && !hawk_tier_stat(g->s.h, t, &info) && info.kind == kind)
			return t;
	bench_die("the device has no tier of kind %u", kind);
}

static void pairs(struct gather *g, const char *name, uint32_t kind, uint32_t first,
		  uint32_t range, unsigned int runs)
{
	uint32_t tier = find_tier(g, kind), i, k;

	for (i = 0; i < runs + 1; i++) {
		double a = 0, b = 0;

		for (k = 0; k < DRAWS; k++) {
			draw(g, first, range);
			a += ours(g, tier, kind == HAWK_TIER_BLK);
			draw(g, first, range);
			b += peer(g);
		}
		if (!i)
			continue;	/* to warm up */
		bench_emit(name, BENCH_OURS, a / DRAWS, "us");
		bench_emit(name, BENCH_PEER, b / DRAWS, "us");
	}
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 7, .block_bytes = 32 << 10 };
	struct gather g = { .rng = 4711 };
	uint32_t blocks, host;
	char url[4096];
	void *p = NULL;

	bench_args(&o, argc, argv);
	if (!o.file)
		bench_die("-f FILE, the drive, is missing");
	g.block = o.block_bytes;
	if (posix_memalign(&p, 4096, (size_t)ALL * g.block))
		bench_die("no memory");
	g.buf = p;
	memset(g.buf, 0, (size_t)ALL * g.block);
	snprintf(url, sizeof(url), "embed:?dram=%llu&flash=%s&flash_size=%llu",
		 (unsigned long long)DRAM, o.file, (unsigned long long)FLASH);
	space_open(&g.s, o.url ? o.url : url, DRAM, o.file, FLASH);
	/* the last of them, which are in DRAM, half as many as it holds */
	host = (uint32_t)(DRAM / g.block / 2);
	blocks = (uint32_t)(FLASH / g.block / 4 * 3);
	space_create(&g.s, g.block, blocks, NULL);
	space_fill(&g.s, blocks, g.block);
	pairs(&g, "gather_vs_per_row", HAWK_TIER_BLK, 0, blocks / 2, o.runs);
	pairs(&g, "gather_vs_per_row_dram", HAWK_TIER_HOST, blocks - host, host, o.runs);
	space_close(&g.s);
	free(g.buf);
	return 0;
}
