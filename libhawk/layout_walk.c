// SPDX-License-Identifier: MIT
/*
 * layout_walk.c - runs become places in memory
 *
 * All ways to carry a plan out walk it: groups, runs, then the outer loops of a run. The
 * innermost loops are for whoever is called at each place.  In parts, the places are shared
 * out by their number, so that parts differ by one place at most in each run.
 */
#include <errno.h>

#include "layout.h"

static int check_table(const char *side, const struct hawk_layout *l, const uint32_t *table,
		       uint32_t count, uint32_t need)
{
	uint32_t i;

	if (!table)
		return 0;
	if (count < need)
		return hawk_fail(-ERANGE, "layout: the block table of the %s has %u entries: %u are needed",
				 side, count, need);
	for (i = 0; i < need; i++)
		if (table[i] >= l->blocks)
			return hawk_fail(-ERANGE, "layout: block table of the %s: entry %u is %u, there are %u blocks",
					 side, i, table[i], l->blocks);
	return 0;
}

int hawk_walk_check(const struct hawk_layout_plan *plan, const struct hawk_blocks *b)
{
	int ret;

	if (!b)
		return 0;
	ret = check_table("source", &plan->src, b->src, b->src_count, plan->info.src_blocks);
	if (!ret)
		ret = check_table("destination", &plan->dst, b->dst, b->dst_count,
				  plan->info.dst_blocks);
	return ret;
}

/* Where the outer loops of a run stand. */
struct place {
	uint64_t at[PLAN_LOOPS];
	uint64_t src;
	uint64_t dst;
};

static void place_set(struct place *p, const struct hawk_run *run, unsigned int loops, uint64_t n)
{
	p->src = 0;
	p->dst = 0;
	while (loops--) {
		p->at[loops] = n % run->loop[loops].n;
		n /= run->loop[loops].n;
		p->src += p->at[loops] * run->loop[loops].src;
		p->dst += p->at[loops] * run->loop[loops].dst;
	}
}

static void place_next(struct place *p, const struct hawk_run *run, unsigned int loops)
{
	while (loops--) {
		const struct hawk_loop *l = &run->loop[loops];

		p->src += l->src;
		p->dst += l->dst;
		if (++p->at[loops] < l->n)
			return;
		p->src -= l->n * l->src;
		p->dst -= l->n * l->dst;
		p->at[loops] = 0;
	}
}

/* Places [@from, @to) of one group of a run. */
static int walk_group(const struct hawk_layout_plan *plan, const struct hawk_blocks *b,
		      struct hawk_walk *w, uint32_t group, uint64_t from, uint64_t to,
		      hawk_walk_fn fn, void *ctx)
{
	const struct hawk_run *run = w->run;
	uint32_t sb = run->src_block + group * run->src_step;
	uint32_t db = run->dst_block + group * run->dst_step;
	unsigned int loops = run->loops - w->inner;
	uint64_t src, dst;
	struct place p;
	int ret = 0;

	if (!run->zero && b && b->src)
		sb = b->src[sb];
	if (b && b->dst)
		db = b->dst[db];
	src = run->src + (run->zero ? 0 : sb * plan->src.stride[HAWK_AXIS_BLOCK]);
	dst = run->dst + db * plan->dst.stride[HAWK_AXIS_BLOCK];
	place_set(&p, run, loops, from);
	for (; from < to && !ret; from++) {
		w->src = src + p.src;
		w->dst = dst + p.dst;
		place_next(&p, run, loops);
		w->next = src + p.src;
		ret = fn(ctx, w);
	}
	return ret;
}

int hawk_walk(const struct hawk_layout_plan *plan, const struct hawk_blocks *b,
	      hawk_inner_fn inner, uint32_t part, uint32_t parts, hawk_walk_fn fn, void *ctx)
{
	uint64_t places, from, to, first, last;
	struct hawk_walk w;
	uint32_t i, g;
	int ret = 0;

	for (i = 0; i < plan->runs && !ret; i++) {
		w.run = &plan->run[i];
		w.inner = inner(ctx, w.run);
		places = hawk_run_pieces(w.run, w.run->loops) / hawk_run_pieces(w.run, w.inner);
		first = places * w.run->groups / parts * part +
			places * w.run->groups % parts * part / parts;
		last = places * w.run->groups / parts * (part + 1) +
		       places * w.run->groups % parts * (part + 1) / parts;
		for (g = (uint32_t)(first / places); g < w.run->groups && !ret; g++) {
			if (g * places >= last)
				break;
			from = g * places > first ? 0 : first - g * places;
			to = last - g * places < places ? last - g * places : places;
			ret = walk_group(plan, b, &w, g, from, to, fn, ctx);
		}
	}
	return ret;
}
