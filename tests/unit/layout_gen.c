// SPDX-License-Identifier: MIT
/*
 * layout_gen.c - pairs of layouts drawn by lot
 *
 * Small, so that many are tried, and odd: heads of a few elements, sequences that end
 * anywhere, blocks whose sizes have no common divisor, tiles that do not fit them, gaps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout_gen.h"

#define BYTES_OF_SEQUENCE	6000u	/* about so much is moved at most */
#define LONG_RUN		10000u	/* pairs that somebody waits for */

uint64_t lg_rand(struct lg_rng *g, uint64_t n)
{
	g->state ^= g->state >> 12;
	g->state ^= g->state << 25;
	g->state ^= g->state >> 27;
	return (g->state * 2685821657736338717ull >> 16) % n;
}

void lg_bytes(struct lg_rng *g, uint8_t *p, uint64_t n)
{
	uint64_t word = lg_rand(g, 1ull << 48);

	for (; n; n -= n < 8 ? n : 8, p += 8) {
		word = word * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(p, &word, n < 8 ? n : 8);
	}
}

uint64_t lg_seed(uint64_t seed)
{
	const char *s = getenv("HAWK_SEED");

	return s ? strtoull(s, NULL, 0) : seed;
}

uint64_t lg_ops(uint64_t n)
{
	const char *s = getenv("HAWK_OPS");

	return s ? strtoull(s, NULL, 0) : n;
}

void lg_progress(uint64_t first, uint64_t i, uint64_t n)
{
	if (getenv("HAWK_OPS") && n >= LONG_RUN && i && i % (n / 10) == 0)
		fprintf(stderr, "# %llu of %llu, from number %llu on\n", (unsigned long long)i,
			(unsigned long long)n, (unsigned long long)first);
}

static uint32_t pick(struct lg_rng *g, const uint32_t *from, unsigned int n)
{
	return from[lg_rand(g, n)];
}

#define PICK(g, ...) \
	pick(g, (const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

static void shuffle(struct lg_rng *g, char *s, size_t n)
{
	size_t i, k;
	char c;

	for (i = n; i > 1; i--) {
		k = lg_rand(g, i);
		c = s[i - 1];
		s[i - 1] = s[k];
		s[k] = c;
	}
}

/* A part of @n; most of the time all. */
static void slice(struct lg_rng *g, uint32_t n, uint32_t *first, uint32_t *count)
{
	*first = lg_rand(g, 2) ? 0 : (uint32_t)lg_rand(g, n);
	*count = lg_rand(g, 2) ? n - *first : 1 + (uint32_t)lg_rand(g, n - *first);
}

static uint32_t divisor(struct lg_rng *g, uint32_t n)
{
	uint32_t d;

	do
		d = 1 + (uint32_t)lg_rand(g, n);
	while (n % d);
	return d;
}

static void draw_order(struct lg_rng *g, struct hawk_layout *l)
{
	l->tile_rows = 0;
	l->tile_bytes = 0;
	if (lg_rand(g, 3)) {
		l->tile_rows = PICK(g, 1, 2, 3, 7, 16, 16, 32);
		l->tile_bytes = l->elem_bytes * divisor(g, l->dim);
		strcpy(l->order, lg_rand(g, 2) ? "lkbhtdrc" : "lkbhdtrc");
		if (!lg_rand(g, 3))
			shuffle(g, l->order, 7);
		return;
	}
	strcpy(l->order, lg_rand(g, 2) ? "lkbthd" : "lkbhtd");
	if (!lg_rand(g, 3))
		shuffle(g, l->order, 5);
	if (lg_rand(g, 2))
		strcat(l->order, "rc");
}

/* Bytes between two indices of each axis: what lies within it, or what is asked for. */
static void work_out_steps(struct lg_side *s)
{
	static const char names[] = "lkbhtdrc";
	const struct hawk_layout *l = &s->l;
	uint64_t rows = l->tile_rows ? l->tile_rows : 1, inner = 1, n;
	uint64_t bytes = l->tile_rows ? l->tile_bytes : l->dim * l->elem_bytes;
	char order[2 * HAWK_AXES];
	int i, axis;

	snprintf(order, sizeof(order), "%s%s", l->order,
		 strlen(l->order) < HAWK_AXES ? "rc" : "");
	for (i = HAWK_AXES - 1; i >= 0; i--) {
		axis = (int)(strchr(names, order[i]) - names);
		n = order[i] == 'l' ? l->layers : order[i] == 'k' ? l->planes :
		    order[i] == 'b' ? l->blocks : order[i] == 'h' ? l->heads :
		    order[i] == 't' ? (l->block_tokens + rows - 1) / rows :
		    order[i] == 'd' ? l->dim * l->elem_bytes / bytes :
		    order[i] == 'r' ? rows : bytes;
		s->step[axis] = l->stride[axis] ? l->stride[axis] : inner;
		inner += s->step[axis] * (n - 1);
	}
}

/* Gaps between the indices of an axis. */
static void draw_gap(struct lg_rng *g, struct lg_side *s)
{
	static const enum hawk_axis axes[] = { HAWK_AXIS_BLOCK, HAWK_AXIS_HEAD, HAWK_AXIS_PLANE,
					       HAWK_AXIS_TILE_ROW, HAWK_AXIS_ROW };
	enum hawk_axis axis = axes[lg_rand(g, 5)];

	work_out_steps(s);
	s->l.stride[axis] = s->step[axis] + s->l.elem_bytes * lg_rand(g, 40);
}

/* A layout of a model, with room for tokens up to @end. */
static void draw_side(struct lg_rng *g, struct lg_side *s, const struct hawk_layout *model,
		      uint32_t start, uint32_t end)
{
	struct hawk_layout *l = &s->l;
	uint32_t i, k, t;

	*l = *model;
	l->heads = l->heads_all;
	l->layers = l->layers_all;
	l->planes = 2;
	draw_order(g, l);
	if (!lg_rand(g, 4))
		slice(g, l->heads_all, &l->head_first, &l->heads);
	if (!lg_rand(g, 4))
		slice(g, l->layers_all, &l->layer_first, &l->layers);
	if (!lg_rand(g, 4))
		slice(g, 2, &l->plane_first, &l->planes);
	l->block_tokens = lg_rand(g, 2) ? PICK(g, 1, 8, 16, 32, 64) :
			  1 + (uint32_t)lg_rand(g, lg_rand(g, 4) ? 24 : 2 * end);
	if (l->tile_rows > 4 * l->block_tokens && lg_rand(g, 8))
		l->block_tokens = l->tile_rows / 2;	/* or it would be nearly all pad */
	l->block_tokens = l->block_tokens * 120 < end ? end : l->block_tokens;
	l->block_first = (uint32_t)lg_rand(g, start / l->block_tokens + 1);
	s->count = (end - 1) / l->block_tokens - l->block_first + 1;
	l->blocks = s->count + (uint32_t)lg_rand(g, 3);
	for (i = 0; i < l->blocks; i++)
		s->table[i] = i;
	for (i = l->blocks; i > 1; i--) {
		k = (uint32_t)lg_rand(g, i);
		t = s->table[i - 1];
		s->table[i - 1] = s->table[k];
		s->table[k] = t;
	}
	if (!lg_rand(g, 4))
		draw_gap(g, s);
	work_out_steps(s);
	assert_ok(hawk_layout_init(l));
	assert_memory_equal(l->stride, s->step, sizeof(s->step));
	/* lines, so that what is written past the cache is tried */
	assert_int_equal(posix_memalign((void **)&s->mem, 64, l->bytes), 0);
	lg_bytes(g, s->mem, l->bytes);
}

uint64_t lg_offset(const struct lg_side *s, uint32_t layer, uint32_t plane, uint32_t head,
		   uint32_t block, uint32_t row, uint32_t x)
{
	const struct hawk_layout *l = &s->l;
	uint32_t rows = l->tile_rows ? l->tile_rows : 1;
	uint32_t bytes = l->tile_rows ? l->tile_bytes : l->dim * l->elem_bytes;
	const uint64_t *step = s->step;

	return (layer - l->layer_first) * step[HAWK_AXIS_LAYER] +
	       (plane - l->plane_first) * step[HAWK_AXIS_PLANE] +
	       s->table[block - l->block_first] * step[HAWK_AXIS_BLOCK] +
	       (head - l->head_first) * step[HAWK_AXIS_HEAD] +
	       row / rows * step[HAWK_AXIS_TILE_ROW] + row % rows * step[HAWK_AXIS_ROW] +
	       x / bytes * step[HAWK_AXIS_TILE_COL] + x % bytes;
}

/* Rows behind the last token of each block are pad: zero in a source. */
static void zero_pads(struct lg_side *s)
{
	const struct hawk_layout *l = &s->l;
	uint32_t layer, plane, head, block, row, x;

	for (layer = l->layer_first; layer < l->layer_first + l->layers; layer++)
		for (plane = l->plane_first; plane < l->plane_first + l->planes; plane++)
			for (head = l->head_first; head < l->head_first + l->heads; head++)
				for (block = l->block_first; block < l->block_first + s->count; block++)
					for (row = l->block_tokens; row % l->tile_rows; row++)
						for (x = 0; x < l->dim * l->elem_bytes; x += l->tile_bytes)
							memset(s->mem + lg_offset(s, layer, plane, head,
										  block, row, x),
							       0, l->tile_bytes);
}

void lg_pair_make(struct lg_pair *p, uint64_t seed)
{
	struct lg_rng g = { .state = seed * 0x9e3779b97f4a7c15ull + 1 };
	struct hawk_layout model = { .dtype = 7 };
	uint32_t row, end;

	p->seed = seed;
	model.elem_bytes = PICK(&g, 1, 2, 2, 2, 4, 8);
	model.dim = lg_rand(&g, 3) ? PICK(&g, 16, 32, 64, 128) : 1 + (uint32_t)lg_rand(&g, 40);
	model.heads_all = PICK(&g, 1, 2, 3, 4, 8);
	model.layers_all = 1 + (uint32_t)lg_rand(&g, 3);
	row = model.elem_bytes * model.dim * model.heads_all * model.layers_all * 2;
	end = 1 + (uint32_t)lg_rand(&g, 1 + BYTES_OF_SEQUENCE / row);
	p->r = (struct hawk_range){ 0 };
	p->r.token_first = lg_rand(&g, 2) ? 0 : (uint32_t)lg_rand(&g, end);
	p->r.tokens = end - p->r.token_first;
	if (!lg_rand(&g, 4))
		slice(&g, model.layers_all, &p->r.layer_first, &p->r.layers);
	draw_side(&g, &p->src, &model, p->r.token_first, end);
	draw_side(&g, &p->dst, &model, p->r.token_first, end);
	if (p->src.l.tile_rows)
		zero_pads(&p->src);
}

void lg_pair_free(struct lg_pair *p)
{
	free(p->src.mem);
	free(p->dst.mem);
}

void lg_pair_print(const struct lg_pair *p)
{
	char buf[1024];

	hawk_layout_print(&p->src.l, buf, sizeof(buf), HAWK_PRINT_JSON);
	print_message("HAWK_SEED=%llu HAWK_OPS=1\nfrom %s\n", (unsigned long long)p->seed, buf);
	hawk_layout_print(&p->dst.l, buf, sizeof(buf), HAWK_PRINT_JSON);
	print_message("to %s\ntokens %u + %u, layers %u + %u\n", buf, p->r.token_first,
		      p->r.tokens, p->r.layer_first, p->r.layers);
}

static bool has(const struct hawk_layout *l, const struct hawk_range *r, uint32_t layer,
		uint32_t plane, uint32_t head)
{
	return layer >= l->layer_first && layer < l->layer_first + l->layers &&
	       plane >= l->plane_first && plane < l->plane_first + l->planes &&
	       head >= l->head_first && head < l->head_first + l->heads &&
	       (!r->layers || (layer >= r->layer_first && layer < r->layer_first + r->layers));
}

/* One head of one layer: its tokens, and the pads behind them. */
static void expect_head(const struct lg_pair *p, uint32_t layer, uint32_t plane, uint32_t head,
			uint8_t *out)
{
	const struct hawk_layout *s = &p->src.l, *d = &p->dst.l;
	uint32_t t, row, x, row_bytes = s->dim * s->elem_bytes, end = p->r.token_first + p->r.tokens;
	uint64_t from, to;

	for (t = p->r.token_first; t < end; t++) {
		/* elements are whole on both sides, so their first byte tells */
		for (x = 0; x < row_bytes; x += s->elem_bytes) {
			from = lg_offset(&p->src, layer, plane, head, t / s->block_tokens,
					 t % s->block_tokens, x);
			to = lg_offset(&p->dst, layer, plane, head, t / d->block_tokens,
				       t % d->block_tokens, x);
			memcpy(out + to, p->src.mem + from, s->elem_bytes);
		}
		if (!d->tile_rows || (t + 1 != end && (t + 1) % d->block_tokens))
			continue;
		for (row = t % d->block_tokens + 1; row % d->tile_rows; row++)
			for (x = 0; x < row_bytes; x += d->tile_bytes)
				memset(out + lg_offset(&p->dst, layer, plane, head,
						       t / d->block_tokens, row, x), 0,
				       d->tile_bytes);
	}
}

uint8_t *lg_expect(const struct lg_pair *p)
{
	const struct hawk_layout *s = &p->src.l, *d = &p->dst.l;
	uint8_t *out = malloc(d->bytes);
	uint32_t layer, plane, head;

	assert_non_null(out);
	memcpy(out, p->dst.mem, d->bytes);
	for (layer = 0; layer < s->layers_all; layer++)
		for (plane = 0; plane < 2; plane++)
			for (head = 0; head < s->heads_all; head++)
				if (has(s, &p->r, layer, plane, head) &&
				    has(d, &p->r, layer, plane, head))
					expect_head(p, layer, plane, head, out);
	return out;
}

struct hawk_blocks lg_blocks(const struct lg_pair *p)
{
	return (struct hawk_blocks){
		.src = p->src.table, .src_count = p->src.count,
		.dst = p->dst.table, .dst_count = p->dst.count,
	};
}
