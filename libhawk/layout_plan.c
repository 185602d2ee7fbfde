// SPDX-License-Identifier: MIT
/*
 * layout_plan.c - two layouts become runs
 *
 * Layers, planes and heads are one stride on each side.  Tokens and elements are not:
 * blocks and tiles cut them, on each side elsewhere.  Both are walked once from cut to
 * cut (of either side), and pieces at equal distances become one loop.  Each stretch of
 * tokens with each stretch of elements is a run of up to six loops, sorted by their step in
 * the destination and merged where both sides are contiguous.
 *
 * Blocks come from tables, so a run stays within one block on each side.  After as many
 * tokens as both block sizes divide all repeats in other blocks: that is a group.  Only what
 * comes before the first and behind the last whole group has runs of its own.
 *
 * Pads are runs without a source.  Where both sides have them at the same places they are
 * copied like tokens: they are zero, and the copy stays contiguous.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

#define ELEM_CUTS_MAX	4096u	/* stretches of elements in a head */

/**
 * struct axis - tokens of one side
 * @tokens: of a block
 * @rows: of a tile
 * @even: tokens from cut to cut: a block's or a tile's
 * @step: bytes between two of them
 * @tile_step: bytes between tiles
 * @block_first: number of the first block
 */
struct axis {
	uint64_t tokens;
	uint64_t rows;
	uint64_t even;
	uint64_t step;
	uint64_t tile_step;
	uint64_t block_first;
};

/* Elements of a head, cut: @n pieces of @len bytes. */
struct elems {
	uint64_t src;
	uint64_t dst;
	uint64_t len;
	struct hawk_loop loop;
};

/* Tokens, cut: @loop.n times @rows of them. */
struct rows {
	uint64_t src;
	uint64_t dst;
	uint64_t rows;
	uint32_t src_block;
	uint32_t dst_block;
	bool zero;
	struct hawk_loop loop;
};

/**
 * struct compiler - what is known while a plan is made
 * @plan: it
 * @src: tokens of the source
 * @dst: and of the destination
 * @end: behind the last token of the range
 * @alike: pads are at the same places on both sides
 * @padded: HAWK_RANGE_PADDED
 * @base: layer, plane and head of a run
 * @outer: loops over them
 * @elem: stretches of elements, for tokens
 * @pad: likewise, for pads
 * @elems: how many
 * @pads: how many
 * @open: a stretch of tokens that may grow
 * @groups: of the section that is being made
 * @group: tokens of a group: both block sizes divide it
 */
struct compiler {
	struct hawk_layout_plan *plan;
	struct axis src;
	struct axis dst;
	uint64_t end;
	bool alike;
	bool padded;
	struct { uint64_t src, dst; } base;
	struct hawk_loop outer[3];
	struct elems *elem;
	struct elems *pad;
	unsigned int elems;
	unsigned int pads;
	struct rows open;
	uint32_t groups;
	uint64_t group;
};

static struct axis axis_of(const struct hawk_layout *l)
{
	struct axis a = {
		.tokens = l->block_tokens, .rows = l->tile_rows ? l->tile_rows : 1,
		.tile_step = l->stride[HAWK_AXIS_TILE_ROW], .block_first = l->block_first,
	};

	a.step = a.rows > 1 ? l->stride[HAWK_AXIS_ROW] : a.tile_step;
	a.even = a.rows == 1 || a.tile_step == a.rows * a.step || a.rows >= a.tokens ?
		 a.tokens : a.rows;
	return a;
}

static uint64_t token_offset(const struct axis *a, uint64_t token)
{
	return a->rows == 1 ? token * a->tile_step :
	       token / a->rows * a->tile_step + token % a->rows * a->step;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- runs ---- */

static struct hawk_run *new_run(struct hawk_layout_plan *plan, int *err)
{
	struct hawk_run *run;
	uint32_t room;

	if (plan->runs == plan->room) {
		room = plan->room ? 2 * plan->room : 16;
		if (plan->room >= HAWK_PLAN_RUNS_MAX) {
			*err = hawk_fail(-E2BIG, "layout: more than %u runs: take fewer tokens, or block sizes with a smaller common multiple than that of %u and %u",
					 HAWK_PLAN_RUNS_MAX, plan->src.block_tokens,
					 plan->dst.block_tokens);
			return NULL;
		}
		run = realloc(plan->run, room * sizeof(*run));
		if (!run) {
			*err = hawk_fail(-ENOMEM, "layout: a plan of %u runs", room);
			return NULL;
		}
		plan->run = run;
		plan->room = room;
	}
	return &plan->run[plan->runs++];
}

/* The largest steps in the destination outside; pieces that touch become one. */
static void tidy_run(struct hawk_run *run)
{
	struct hawk_loop *l = run->loop, t;
	unsigned int i, k, n = 0;
	uint64_t reach;

	for (i = 0; i < run->loops; i++)
		if (l[i].n > 1)
			l[n++] = l[i];
	for (i = 1; i < n; i++)
		for (k = i; k && l[k - 1].dst < l[k].dst; k--) {
			t = l[k];
			l[k] = l[k - 1];
			l[k - 1] = t;
		}
	for (; n && l[n - 1].dst == run->len && (run->zero || l[n - 1].src == run->len); n--)
		run->len *= l[n - 1].n;
	for (i = n; i-- > 1;) {
		if (l[i - 1].dst != l[i].n * l[i].dst ||
		    (!run->zero && l[i - 1].src != l[i].n * l[i].src))
			continue;
		l[i].n *= l[i - 1].n;
		memmove(&l[i - 1], &l[i], (n - i) * sizeof(*l));
		n--;
	}
	run->loops = (uint8_t)n;
	reach = run->len;
	for (run->stretch = 0; run->stretch < n; run->stretch++) {
		t = l[n - 1 - run->stretch];
		if (t.dst != reach)
			break;
		reach *= t.n;
	}
}

static void count_run(struct hawk_plan_info *info, const struct hawk_run *run)
{
	uint64_t pieces = run->groups * hawk_run_pieces(run, run->loops);

	info->pieces += pieces;
	info->stretches += pieces / hawk_run_pieces(run, run->stretch);
	if (run->zero) {
		info->pad_bytes += pieces * run->len;
		return;
	}
	info->bytes += pieces * run->len;
	if (!info->piece_min || run->len < info->piece_min)
		info->piece_min = run->len;
	if (run->len > info->piece_max)
		info->piece_max = run->len;
}

static int add_run(struct compiler *c, const struct rows *r, const struct elems *e)
{
	int err = 0;
	struct hawk_run *run = new_run(c->plan, &err);
	const struct axis *src = &c->src, *dst = &c->dst;

	if (!run)
		return err;
	*run = (struct hawk_run){
		.src = r->zero ? 0 : c->base.src + r->src + e->src,
		.dst = c->base.dst + r->dst + e->dst,
		.len = e->len, .zero = r->zero, .groups = c->groups, .loops = PLAN_LOOPS,
		.src_block = r->src_block, .dst_block = r->dst_block,
		.loop = { c->outer[0], c->outer[1], c->outer[2], r->loop,
			  { r->rows, src->step, dst->step }, e->loop },
	};
	if (c->groups > 1) {
		run->src_step = (uint32_t)(c->group / src->tokens);
		run->dst_step = (uint32_t)(c->group / dst->tokens);
	}
	tidy_run(run);
	count_run(&c->plan->info, run);
	return 0;
}

/* ---- tokens ---- */

static int flush_rows(struct compiler *c)
{
	const struct elems *e = c->open.zero ? c->pad : c->elem;
	unsigned int n = c->open.zero ? c->pads : c->elems, i;
	int ret = 0;

	for (i = 0; c->open.loop.n && i < n && !ret; i++)
		ret = add_run(c, &c->open, &e[i]);
	c->open.loop.n = 0;
	return ret;
}

/* One more piece: it continues the open stretch, or starts another. */
static int add_rows(struct compiler *c, const struct rows *r)
{
	struct rows *o = &c->open;
	uint64_t n = o->loop.n, src, dst;
	int ret;

	if (n && o->rows == r->rows && o->zero == r->zero && o->src_block == r->src_block &&
	    o->dst_block == r->dst_block) {
		src = r->src - o->src;
		dst = r->dst - o->dst;
		if (n == 1 && dst > o->loop.dst)
			o->loop = (struct hawk_loop){ 1, src, dst };
		if (src == n * o->loop.src && dst == n * o->loop.dst) {
			o->loop.n++;
			return 0;
		}
	}
	ret = flush_rows(c);
	*o = *r;
	o->loop = (struct hawk_loop){ .n = 1 };
	return ret;
}

/* Tokens [@pos, @end) from cut to cut. */
static int cut_tokens(struct compiler *c, uint64_t pos, uint64_t end)
{
	const struct axis *s = &c->src, *d = &c->dst;
	uint64_t n, us, ud, pad;
	struct rows r;
	int ret = 0;

	for (; pos < end && !ret; pos += n) {
		us = pos % s->tokens;
		ud = pos % d->tokens;
		n = min_of(end - pos, min_of(s->tokens - us, d->tokens - ud));
		n = min_of(n, min_of(s->even - us % s->even, d->even - ud % d->even));
		r = (struct rows){
			.src = token_offset(s, us), .dst = token_offset(d, ud), .rows = n,
			.src_block = (uint32_t)(pos / s->tokens - s->block_first),
			.dst_block = (uint32_t)(pos / d->tokens - d->block_first),
		};
		ud += n;
		pad = ud == d->tokens || pos + n == c->end ? (d->rows - ud % d->rows) % d->rows : 0;
		if (pad && c->alike && (ud == d->tokens || c->padded)) {
			r.rows += pad;
			pad = 0;
		}
		ret = add_rows(c, &r);
		if (!pad || ret)
			continue;
		r.zero = true;
		r.src = 0;
		r.dst = token_offset(d, ud);
		r.rows = pad;
		ret = add_rows(c, &r);
	}
	return ret ? ret : flush_rows(c);
}

/* The least; block sizes have 32 bits. */
static uint64_t common_multiple(uint64_t a, uint64_t b)
{
	uint64_t x = a, y = b, rest;

	for (; y; x = y, y = rest)
		rest = x % y;
	return a / x * b;
}

/* What is before the first group, the groups, what is behind them. */
static int cut_range(struct compiler *c, uint64_t start)
{
	uint64_t group = common_multiple(c->src.tokens, c->dst.tokens), first, groups = 0;
	int ret = 0;

	c->group = group;
	first = (start + group - 1) / group * group;
	if (first < c->end)
		groups = (c->end - first) / group;
	c->groups = 1;
	if (groups < 2)
		return cut_tokens(c, start, c->end);
	if (start < first)
		ret = cut_tokens(c, start, first);
	c->groups = (uint32_t)groups;
	if (!ret)
		ret = cut_tokens(c, first, first + group);
	c->groups = 1;
	if (!ret)
		ret = cut_tokens(c, first + groups * group, c->end);
	return ret;
}

/* ---- elements ---- */

static uint64_t elem_offset(const struct hawk_layout *l, uint64_t x)
{
	return l->tile_rows ? x / l->tile_bytes * l->stride[HAWK_AXIS_TILE_COL] +
			      x % l->tile_bytes : x;
}

/* Bytes from @x to the next cut. */
static uint64_t elem_cut(const struct hawk_layout *l, uint64_t x)
{
	uint64_t all = (uint64_t)l->dim * l->elem_bytes;

	if (!l->tile_rows || l->stride[HAWK_AXIS_TILE_COL] == l->tile_bytes)
		return all - x;
	return l->tile_bytes - x % l->tile_bytes;
}

/* Most heads have one or two stretches, and each unit of a session has plans: no more is taken. */
static bool more_elems(struct elems **e, unsigned int *room)
{
	unsigned int n = *room ? 2 * *room : 8;
	struct elems *more = realloc(*e, n * sizeof(*more));

	if (more) {
		*e = more;
		*room = n;
	}
	return more;
}

/* The elements of a head from cut to cut; with @src NULL those of a pad. */
static int cut_elems(const struct hawk_layout *src, const struct hawk_layout *dst,
		     struct elems **out, unsigned int *count)
{
	uint64_t x, n, s, d, all = (uint64_t)dst->dim * dst->elem_bytes;
	unsigned int cuts = 0, room = 0;
	struct elems *o = NULL;

	for (x = 0; x < all; x += n) {
		n = src ? min_of(elem_cut(src, x), elem_cut(dst, x)) : elem_cut(dst, x);
		s = src ? elem_offset(src, x) : 0;
		d = elem_offset(dst, x);
		if (cuts && o->len == n) {
			if (o->loop.n == 1)
				o->loop = (struct hawk_loop){ 1, s - o->src, d - o->dst };
			if (s - o->src == o->loop.n * o->loop.src &&
			    d - o->dst == o->loop.n * o->loop.dst) {
				o->loop.n++;
				continue;
			}
		}
		if (cuts == ELEM_CUTS_MAX)
			return hawk_fail(-E2BIG, "layout: tiles of %u and %u bytes cut a head of %llu bytes into more than %u pieces",
					 src ? src->tile_bytes : 0, dst->tile_bytes,
					 (unsigned long long)all, ELEM_CUTS_MAX);
		if (cuts == room && !more_elems(out, &room))
			return hawk_fail(-ENOMEM, "layout: cutting a head");
		o = &(*out)[cuts++];
		*o = (struct elems){ .src = s, .dst = d, .len = n, .loop = { .n = 1 } };
	}
	*count = cuts;
	return 0;
}

/* ---- what both sides have ---- */

static int check_same(const struct hawk_layout *s, const struct hawk_layout *d)
{
	if (s->elem_bytes != d->elem_bytes || s->dtype != d->dtype)
		return hawk_fail(-EINVAL, "layout: elements of %u bytes (dtype %u) do not become elements of %u bytes (dtype %u): bits are copied",
				 s->elem_bytes, s->dtype, d->elem_bytes, d->dtype);
	if (s->dim != d->dim || s->heads_all != d->heads_all || s->layers_all != d->layers_all)
		return hawk_fail(-EINVAL, "layout: not the same model: %u layers, %u heads, %u elements and %u, %u, %u",
				 s->layers_all, s->heads_all, s->dim, d->layers_all, d->heads_all,
				 d->dim);
	return 0;
}

/* The indices of an axis that both sides (and the range, if it is said) have. */
static int meet(struct compiler *c, unsigned int i, const char *what, enum hawk_axis axis,
		const uint32_t first[3], const uint32_t count[3])
{
	const struct hawk_layout *s = &c->plan->src, *d = &c->plan->dst;
	uint64_t from = 0, to = ~0ull;
	unsigned int k;

	for (k = 0; k < 3; k++) {
		if (k == 2 && !count[k])
			break;
		if (first[k] > from)
			from = first[k];
		to = min_of(to, (uint64_t)first[k] + count[k]);
	}
	if (from >= to)
		return hawk_fail(-ENOENT, "layout: the two sides have no %s in common", what);
	c->outer[i] = (struct hawk_loop){ to - from, s->stride[axis], d->stride[axis] };
	c->base.src += (from - first[0]) * s->stride[axis];
	c->base.dst += (from - first[1]) * d->stride[axis];
	return 0;
}

static int check_tokens(const char *side, const struct hawk_layout *l, uint64_t first,
			uint64_t end, uint32_t *blocks)
{
	uint64_t from = (uint64_t)l->block_first * l->block_tokens;
	uint64_t to = from + (uint64_t)l->blocks * l->block_tokens;

	if (first < from || end > to)
		return hawk_fail(-ERANGE, "layout: tokens %llu to %llu, the %s has %llu to %llu",
				 (unsigned long long)first, (unsigned long long)end - 1, side,
				 (unsigned long long)from, (unsigned long long)to - 1);
	*blocks = (uint32_t)((end - 1) / l->block_tokens - l->block_first + 1);
	return 0;
}

static int meet_all(struct compiler *c, const struct hawk_range *r)
{
	const struct hawk_layout *s = &c->plan->src, *d = &c->plan->dst;
	int ret;

	if (!r->tokens || r->flags & ~HAWK_RANGE_PADDED)
		return hawk_fail(-EINVAL, "layout: a range of %u tokens, flags %#x", r->tokens,
				 r->flags);
	c->end = (uint64_t)r->token_first + r->tokens;
	ret = check_same(s, d);
	if (!ret)
		ret = meet(c, 0, "layer", HAWK_AXIS_LAYER,
			   (uint32_t[]){ s->layer_first, d->layer_first, r->layer_first },
			   (uint32_t[]){ s->layers, d->layers, r->layers });
	if (!ret)
		ret = meet(c, 1, "plane", HAWK_AXIS_PLANE,
			   (uint32_t[]){ s->plane_first, d->plane_first, 0 },
			   (uint32_t[]){ s->planes, d->planes, 0 });
	if (!ret)
		ret = meet(c, 2, "head", HAWK_AXIS_HEAD,
			   (uint32_t[]){ s->head_first, d->head_first, 0 },
			   (uint32_t[]){ s->heads, d->heads, 0 });
	if (!ret)
		ret = check_tokens("source", s, r->token_first, c->end, &c->plan->info.src_blocks);
	if (!ret)
		ret = check_tokens("destination", d, r->token_first, c->end,
				   &c->plan->info.dst_blocks);
	return ret;
}

static int compile(struct compiler *c, const struct hawk_range *r)
{
	struct hawk_layout_plan *plan = c->plan;
	int ret;

	ret = meet_all(c, r);
	if (ret)
		return ret;
	c->src = axis_of(&plan->src);
	c->dst = axis_of(&plan->dst);
	c->alike = c->src.tokens == c->dst.tokens && c->src.rows == c->dst.rows;
	c->padded = r->flags & HAWK_RANGE_PADDED;
	ret = cut_elems(&plan->src, &plan->dst, &c->elem, &c->elems);
	if (!ret)
		ret = cut_elems(NULL, &plan->dst, &c->pad, &c->pads);
	if (!ret)
		ret = cut_range(c, r->token_first);
	plan->info.runs = plan->runs;
	return ret;
}

int hawk_layout_plan_open(const struct hawk_layout *src, const struct hawk_layout *dst,
			  const struct hawk_range *r, struct hawk_layout_plan **out)
{
	struct compiler c = { 0 };
	int ret;

	c.plan = calloc(1, sizeof(*c.plan));
	if (!c.plan)
		return hawk_fail(-ENOMEM, "layout: a plan");
	c.plan->src = *src;
	c.plan->dst = *dst;
	ret = hawk_layout_init(&c.plan->src);
	if (!ret)
		ret = hawk_layout_init(&c.plan->dst);
	if (!ret)
		ret = compile(&c, r);
	free(c.elem);
	free(c.pad);
	if (ret) {
		hawk_layout_plan_close(c.plan);
		return ret;
	}
	*out = c.plan;
	return 0;
}

void hawk_layout_plan_close(struct hawk_layout_plan *plan)
{
	if (plan)
		free(plan->run);
	free(plan);
}

void hawk_layout_plan_info(const struct hawk_layout_plan *plan, struct hawk_plan_info *info)
{
	*info = plan->info;
}

/* ---- words ---- */

static void print_run(const struct hawk_run *run, bool json, struct hawk_text *t)
{
	unsigned int i;

	hawk_text_add(t, json ? "{\"bytes\": %llu, \"pad\": %s, " : "%llu bytes%s",
		      (unsigned long long)run->len,
		      json ? run->zero ? "true" : "false" : run->zero ? " of zeroes" : "");
	hawk_text_add(t, json ? "\"src\": [%u, %llu], \"dst\": [%u, %llu], " :
		      " from block %u + %llu to block %u + %llu", run->src_block,
		      (unsigned long long)run->src, run->dst_block, (unsigned long long)run->dst);
	hawk_text_add(t, json ? "\"groups\": [%u, %u, %u], \"loops\": [" :
		      ", %u times every %u and %u blocks", run->groups, run->src_step,
		      run->dst_step);
	for (i = 0; i < run->loops; i++)
		hawk_text_add(t, json ? "%s[%llu, %llu, %llu]" : "%s%llu x (%llu, %llu)",
			      json ? i ? ", " : "" : ", ", (unsigned long long)run->loop[i].n,
			      (unsigned long long)run->loop[i].src,
			      (unsigned long long)run->loop[i].dst);
	hawk_text_add(t, json ? "]}" : "\n");
}

int hawk_layout_plan_print(const struct hawk_layout_plan *plan, char *buf, size_t len,
			   unsigned int flags)
{
	struct hawk_text t = { .buf = buf, .len = len };
	const struct hawk_plan_info *p = &plan->info;
	bool json = flags & HAWK_PRINT_JSON;
	uint32_t i;

	hawk_text_add(&t, json ? "{\"bytes\": %llu, \"pad_bytes\": %llu, \"pieces\": %llu, " :
		      "%llu bytes and %llu of pads in %llu pieces",
		      (unsigned long long)p->bytes, (unsigned long long)p->pad_bytes,
		      (unsigned long long)p->pieces);
	hawk_text_add(&t, json ? "\"piece_min\": %llu, \"piece_max\": %llu, " :
		      " of %llu to %llu bytes", (unsigned long long)p->piece_min,
		      (unsigned long long)p->piece_max);
	hawk_text_add(&t, json ? "\"stretches\": %llu, \"runs\": [" :
		      ", contiguous in the destination: %llu\n", (unsigned long long)p->stretches);
	for (i = 0; i < plan->runs; i++) {
		if (json && i)
			hawk_text_add(&t, ", ");
		print_run(&plan->run[i], json, &t);
	}
	if (json)
		hawk_text_add(&t, "]}");
	return (int)t.at;
}
