// SPDX-License-Identifier: MIT
/*
 * layout_copy.c - a plan carried out by the CPU
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"

#define LINE	64u	/* bytes of a cache line: what is written past the cache at least */

struct copying {
	const struct hawk_copier *copier;
	const uint8_t *src;
	uint8_t *dst;
	bool stream;
};

static const struct hawk_copier *copier;
static uint64_t cache_bytes;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* An instruction set that this CPU lacks, or a name that is none, is as none at all. */
static void choose_copier(void)
{
	long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);

	copier = hawk_copier_get(getenv("HAWK_ISA"));
	if (!copier)
		copier = hawk_copier_get(NULL);
	cache_bytes = bytes > 0 ? (uint64_t)bytes : 32u << 20;
}

const char *hawk_layout_isa(void)
{
	pthread_once(&once, choose_copier);
	return copier->name;
}

static void zero_pieces(uint8_t *dst, const struct hawk_pieces *p)
{
	uint64_t i, k;

	for (i = 0; i < p->outer.n; i++)
		for (k = 0; k < p->inner.n; k++)
			memset(dst + i * p->outer.dst + k * p->inner.dst, 0, p->len);
}

/* Only whole lines, or what becomes whole lines, may go past the cache. */
static bool may_stream(const struct copying *c, const uint8_t *dst, const struct hawk_pieces *p)
{
	unsigned int mask = c->copier->stream_align - 1;

	if (!c->stream || ((uintptr_t)dst | p->len | p->inner.dst | p->outer.dst) & mask)
		return false;
	return p->len >= LINE || (p->inner.dst == p->len && p->inner.n * p->len >= LINE);
}

static int copy_place(void *ctx, const struct hawk_walk *w)
{
	const struct hawk_loop *l = w->run->loop + w->run->loops - 1;
	const struct copying *c = ctx;
	struct hawk_pieces p = {
		.len = w->run->len, .inner = { .n = 1 }, .outer = { .n = 1 },
		.ahead = c->src + w->next,
	};
	uint8_t *dst = c->dst + w->dst;

	if (w->inner)
		p.inner = *l;
	if (w->inner > 1)
		p.outer = l[-1];
	if (w->run->zero)
		zero_pieces(dst, &p);
	else if (may_stream(c, dst, &p))
		c->copier->stream(dst, c->src + w->src, &p);
	else
		c->copier->cached(dst, c->src + w->src, &p);
	return 0;
}

static unsigned int copy_inner(const void *ctx, const struct hawk_run *run)
{
	(void)ctx;
	return run->loops < 2 ? run->loops : 2;
}

static int check_copy(const struct hawk_layout_plan *plan, const struct hawk_copy *c)
{
	if (c->part >= (c->parts ? c->parts : 1))
		return hawk_fail(-EINVAL, "layout: part %u of %u", c->part, c->parts);
	if (c->flags & ~(HAWK_COPY_CACHED | HAWK_COPY_STREAM) ||
	    c->flags == (HAWK_COPY_CACHED | HAWK_COPY_STREAM))
		return hawk_fail(-EINVAL, "layout: copy flags %#x", c->flags);
	if (c->src_bytes < plan->src.bytes || c->dst_bytes < plan->dst.bytes)
		return hawk_fail(-ERANGE, "layout: %llu and %llu bytes of memory for layouts of %llu and %llu",
				 (unsigned long long)c->src_bytes, (unsigned long long)c->dst_bytes,
				 (unsigned long long)plan->src.bytes,
				 (unsigned long long)plan->dst.bytes);
	return hawk_walk_check(plan, c->blocks);
}

int hawk_layout_copy_by(const struct hawk_copier *k, const struct hawk_layout_plan *plan,
			const struct hawk_copy *c)
{
	struct copying ctx = { .copier = k, .src = c->src, .dst = c->dst };
	int ret;

	ret = check_copy(plan, c);
	if (ret)
		return ret;
	pthread_once(&once, choose_copier);
	ctx.stream = k->stream && !(c->flags & HAWK_COPY_CACHED) &&
		     (c->flags & HAWK_COPY_STREAM || plan->info.bytes > cache_bytes);
	hawk_walk(plan, c->blocks, copy_inner, c->part, c->parts ? c->parts : 1, copy_place, &ctx);
	if (ctx.stream)
		k->fence();
	return 0;
}

int hawk_layout_copy(const struct hawk_layout_plan *plan, const struct hawk_copy *c)
{
	pthread_once(&once, choose_copier);
	return hawk_layout_copy_by(copier, plan, c);
}
