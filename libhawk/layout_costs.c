// SPDX-License-Identifier: MIT
/*
 * layout_costs.c - what copying and sending cost here, measured at start
 *
 * Everything is the least of some tries: what disturbs only makes it longer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layout.h"

#define TRIES		3u
#define CPU_BYTES	(32ull << 20)	/* of the source and of the destination */
#define NIC_BYTES	(1u << 20)	/* of a request that measures the link */
#define NIC_PIECE	64u		/* bytes of an entry that measures entries */
#define NIC_COUNT	64u		/* requests of a try, at most */
#define NIC_NS		20000000	/* a try that takes so long is long enough */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds to copy CPU_BYTES into @form, or a negative errno. */
static int64_t time_form(unsigned int form, const void *src, void *dst, uint64_t *pieces)
{
	/* 4096 tokens of 128 elements, 16 heads, keys and values: 32 MiB */
	struct hawk_layout from = {
		.elem_bytes = 2, .dim = 128, .heads_all = 16, .layers_all = 1,
		.block_tokens = 64, .blocks = 64,
	}, to = from;
	const struct hawk_range r = { .tokens = 4096 };
	const struct hawk_copy c = {
		.src = src, .src_bytes = CPU_BYTES, .dst = dst, .dst_bytes = CPU_BYTES,
		.flags = HAWK_COPY_STREAM,
	};
	struct hawk_layout_plan *plan;
	uint64_t t, best = ~0ull;
	unsigned int i;
	int ret;

	ret = hawk_layout_form(&from, HAWK_FORM_HND);
	if (!ret)
		ret = hawk_layout_form(&to, form);
	if (!ret)
		ret = hawk_layout_plan_open(&from, &to, &r, &plan);
	if (ret)
		return ret;
	*pieces = plan->info.pieces;
	for (i = 0; i < TRIES && !ret; i++) {
		t = now_ns();
		ret = hawk_layout_copy(plan, &c);
		t = now_ns() - t;
		best = t < best ? t : best;
	}
	hawk_layout_plan_close(plan);
	return ret ? ret : (int64_t)(best ? best : 1);
}

int hawk_costs_cpu(struct hawk_costs *c)
{
	uint8_t *mem = aligned_alloc(4096, 2 * CPU_BYTES);
	uint64_t few, many;
	int64_t large, small;

	if (!mem)
		return hawk_fail(-ENOMEM, "layout: %llu bytes to measure the CPU",
				 2 * CPU_BYTES);
	memset(mem, 1, 2 * CPU_BYTES);
	large = time_form(HAWK_FORM_HND, mem, mem + CPU_BYTES, &few);
	small = large < 0 ? large : time_form(HAWK_FORM_TILE16, mem, mem + CPU_BYTES, &many);
	free(mem);
	if (small < 0)
		return (int)small;
	c->copy_mb_per_s = CPU_BYTES * 1000 / (uint64_t)large;
	c->piece_ps = small > large ? (uint64_t)(small - large) * 1000 / (many - few) : 0;
	return 0;
}

/*
 * Picoseconds of a request: of as many in one try as need NIC_NS together, since those that
 * measure the link would keep a slow one busy for a minute.
 */
static int64_t time_write(const struct hawk_nic_probe *p, uint32_t entries, uint32_t bytes)
{
	int64_t t, best = INT64_MAX;
	unsigned int tries = 0;
	uint32_t count = 1;

	while (tries < TRIES) {
		t = p->write(p->ctx, count, entries, bytes);
		if (t < 0)
			return t;
		if (!tries && t < NIC_NS && count < NIC_COUNT) {
			count *= 2;
			continue;
		}
		best = t < best ? t : best;
		tries++;
	}
	return best ? best * 1000 / count : 1;
}

static uint64_t above(int64_t ps, uint64_t less)
{
	return ps > 0 && (uint64_t)ps > less ? (uint64_t)ps - less : 0;
}

int hawk_costs_nic(struct hawk_costs *c, const struct hawk_nic_probe *p)
{
	int64_t large, one, all;
	uint64_t piece;

	if (!p->write || !p->entries || p->entries > HAWK_ENTRIES_MAX || p->reserved)
		return hawk_fail(-EINVAL, "layout: probing a NIC with requests of %u entries",
				 p->entries);
	large = time_write(p, 1, NIC_BYTES);
	one = large < 0 ? large : time_write(p, 1, NIC_PIECE);
	all = one < 0 ? one : time_write(p, p->entries, NIC_PIECE);
	if (all < 0)
		return hawk_fail((int)all, "layout: probing a NIC");
	c->entries = p->entries;
	/* a large request is a request, too */
	c->link_mb_per_s = (NIC_BYTES - NIC_PIECE) * 1000000ull /
			   (large > one ? (uint64_t)(large - one) : 1);
	if (!c->link_mb_per_s)
		c->link_mb_per_s = 1;
	piece = NIC_PIECE * 1000000ull / c->link_mb_per_s;
	c->request_ps = above(one, piece);
	c->entry_ps = 0;
	if (p->entries > 1)
		c->entry_ps = above(all - one, (p->entries - 1) * piece) / (p->entries - 1);
	return 0;
}
