// SPDX-License-Identifier: MIT
/*
 * lib_layout.c - layouts as they are described, and what the planner makes of costs
 *
 * The formulas are those of the layouts' authors, written out; lib_layout_random and
 * lib_layout_ways try what no example thinks of.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hawk/layout.h>

#include "libfixture.h"

#define LAYERS	3u
#define HEADS	4u
#define DIM	64u
#define BLOCKS	5u
#define TOKENS	32u

static struct hawk_layout model(uint32_t elem_bytes)
{
	return (struct hawk_layout){
		.elem_bytes = elem_bytes, .dim = DIM, .heads_all = HEADS, .layers_all = LAYERS,
		.block_tokens = TOKENS, .blocks = BLOCKS,
	};
}

static struct hawk_layout formed(unsigned int form, uint32_t elem_bytes)
{
	struct hawk_layout l = model(elem_bytes);

	assert_ok(hawk_layout_form(&l, form));
	return l;
}

/* Offset by the formula of @form, bytes. */
static uint64_t formula(unsigned int form, const struct hawk_place *p, uint64_t e)
{
	const uint64_t H = HEADS, S = TOKENS, D = DIM, s = p->token, d = p->elem, h = p->head;
	uint64_t b = ((uint64_t)p->layer * 2 + p->plane) * BLOCKS + p->frame;
	uint64_t Ts = form == HAWK_FORM_TILE32 ? 32 : 16;
	uint64_t Td = form == HAWK_FORM_NZ ? 32 / e : Ts;

	if (form & HAWK_FORM_CROSS_LAYER)
		b = ((uint64_t)p->frame * LAYERS + p->layer) * 2 + p->plane;
	switch (form & ~HAWK_FORM_CROSS_LAYER) {
	case HAWK_FORM_NHD:
		return (((b * S + s) * H + h) * D + d) * e;
	case HAWK_FORM_HND:
		return (((b * H + h) * S + s) * D + d) * e;
	case HAWK_FORM_NZ:	/* [blocks, kv_heads * dim * e / 32, block_tokens, 32 / e] */
		return ((b * (H * D / Td) + (h * D + d) / Td) * S + s) * 32 + d % Td * e;
	default:
		return (b * H + h) * S * D * e +
		       ((s / Ts * (D / Td) + d / Td) * (Ts * Td) + s % Ts * Td + d % Td) * e;
	}
}

static void formulas(void **state)
{
	static const unsigned int forms[] = {
		HAWK_FORM_NHD, HAWK_FORM_HND, HAWK_FORM_TILE16, HAWK_FORM_TILE32, HAWK_FORM_NZ,
		HAWK_FORM_NHD | HAWK_FORM_CROSS_LAYER, HAWK_FORM_TILE16 | HAWK_FORM_CROSS_LAYER,
	};
	struct hawk_layout l;
	struct hawk_place p;
	unsigned int i, e, n;

	(void)state;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		for (e = 1; e <= 4; e *= 2) {
			l = formed(forms[i], e);
			assert_int_equal(l.bytes, LAYERS * 2 * BLOCKS * HEADS * TOKENS * DIM * e);
			for (n = 0; n < LAYERS * 2 * BLOCKS * HEADS * TOKENS * DIM; n++) {
				p = (struct hawk_place){
					.elem = n % DIM, .token = n / DIM % TOKENS,
					.head = n / DIM / TOKENS % HEADS,
					.frame = n / DIM / TOKENS / HEADS % BLOCKS,
					.plane = n / DIM / TOKENS / HEADS / BLOCKS % 2,
					.layer = n / DIM / TOKENS / HEADS / BLOCKS / 2,
				};
				assert_int_equal(hawk_layout_offset(&l, &p), formula(forms[i], &p, e));
			}
		}
	p = (struct hawk_place){ .frame = BLOCKS };
	assert_int_equal(hawk_layout_offset(&l, &p), -ERANGE);
	p = (struct hawk_place){ .token = TOKENS };
	assert_int_equal(hawk_layout_offset(&l, &p), -ERANGE);
}

struct refusal {
	const char *why;	/* in the message */
	int err;
	struct hawk_layout l;
};

#define MODEL .elem_bytes = 2, .dim = 64, .heads_all = 8, .layers_all = 2, .block_tokens = 16, \
	.blocks = 4

static void refusals(void **state)
{
	static const struct refusal wrong[] = {
		{ "no whole number of tiles", -EINVAL, { "lkbhtdrc", .elem_bytes = 2, .dim = 72,
			.heads_all = 8, .layers_all = 2, .block_tokens = 16, .blocks = 4,
			.tile_rows = 16, .tile_bytes = 32 } },
		{ "no whole number of elements", -EINVAL,
			{ "lkbhtdrc", MODEL, .tile_rows = 16, .tile_bytes = 1 } },
		{ "tiles of 16 rows of 0 bytes", -EINVAL, { "lkbhtdrc", MODEL, .tile_rows = 16 } },
		{ "tiles of 0 rows", -EINVAL, { "lkbhtdrc", MODEL, .tile_bytes = 32 } },
		{ "at most 65536", -EINVAL,
			{ "lkbhtdrc", MODEL, .tile_rows = 65537, .tile_bytes = 32 } },
		{ "order \"lkbht\"", -EINVAL, { "lkbht", MODEL } },
		{ "order \"lkbttd\"", -EINVAL, { "lkbttd", MODEL } },
		{ "order \"lkbxtd\"", -EINVAL, { "lkbxtd", MODEL } },
		{ "does not end with", -EINVAL, { "lkbhdt", MODEL } },
		{ "does not end with", -EINVAL,
			{ "lkbhtdcr", MODEL, .tile_rows = 16, .tile_bytes = 32 } },
		{ "order \"lkbthd\"", -EINVAL, { "lkbthd", MODEL, .tile_rows = 16, .tile_bytes = 32 } },
		{ "elements of 3 bytes", -EINVAL, { "lkbthd", .elem_bytes = 3, .dim = 64,
			.heads_all = 8, .layers_all = 2, .block_tokens = 16, .blocks = 4 } },
		{ "heads of 0 elements", -EINVAL, { "lkbthd", .elem_bytes = 2, .heads_all = 8,
			.layers_all = 2, .block_tokens = 16, .blocks = 4 } },
		{ "0 blocks of 16 tokens", -EINVAL, { "lkbthd", .elem_bytes = 2, .dim = 64,
			.heads_all = 8, .layers_all = 2, .block_tokens = 16 } },
		{ "the model has no layers", -EINVAL, { "lkbthd", .elem_bytes = 2, .dim = 64,
			.heads_all = 8, .block_tokens = 16, .blocks = 4 } },
		{ "4 heads from number 6", -EINVAL, { "lkbthd", MODEL, .head_first = 6, .heads = 4 } },
		{ "layers from number 2", -EINVAL, { "lkbthd", MODEL, .layer_first = 2, .layers = 1 } },
		{ "2 planes from number 1", -EINVAL, { "lkbthd", MODEL, .plane_first = 1, .planes = 2 } },
		{ "reserved", -EINVAL, { "lkbthd", MODEL, .reserved = 1 } },
		{ "stride 2046", -EINVAL, { "lkbhtd", MODEL, .stride[HAWK_AXIS_HEAD] = 2046 } },
		{ "whole number of elements", -EINVAL,
			{ "lkbhtd", MODEL, .stride[HAWK_AXIS_HEAD] = 2049 } },
		{ "one behind the other", -EINVAL,
			{ "lkbhtdrc", MODEL, .stride[HAWK_AXIS_COL] = 2 } },
		{ "2^62 bytes", -EOVERFLOW,
			{ "lkbhtd", MODEL, .stride[HAWK_AXIS_LAYER] = 1ull << 63 } },
		{ "2^62 bytes", -EOVERFLOW, { "lkbhtd", .elem_bytes = 8, .dim = 1 << 20,
			.heads_all = 1u << 31, .layers_all = 1u << 31, .block_tokens = 1, .blocks = 9 } },
		{ "less than 2^32 tokens", -EOVERFLOW, { "lkbhtd", .elem_bytes = 1, .dim = 1,
			.heads_all = 1, .layers_all = 1, .block_tokens = 1u << 31,
			.block_first = UINT32_MAX, .blocks = 1 } },
		{ "less than 2^32 tokens", -EOVERFLOW, { "lkbhtd", .elem_bytes = 2, .dim = 64,
			.heads_all = 8, .layers_all = 2, .block_tokens = 1u << 31, .blocks = 2 } },
	};
	struct hawk_layout l;
	unsigned int i;
	int ret;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		l = wrong[i].l;
		ret = hawk_layout_init(&l);
		if (ret != wrong[i].err || !strstr(hawk_strerror_last(), wrong[i].why))
			fail_msg("number %u: %d, %s", i, ret, hawk_strerror_last());
	}
	l = model(2);
	assert_int_equal(hawk_layout_form(&l, 5), -EINVAL);
	assert_int_equal(hawk_layout_slice(&l, HAWK_FORM_NHD, 0, 3), -EINVAL);
	assert_int_equal(hawk_layout_slice(&l, HAWK_FORM_NHD, 2, 2), -EINVAL);
}

static void plan_refused(struct hawk_layout a, struct hawk_layout b, struct hawk_range r, int err,
			 const char *why)
{
	struct hawk_layout_plan *plan = NULL;
	int ret = hawk_layout_plan_open(&a, &b, &r, &plan);

	if (ret != err || !strstr(hawk_strerror_last(), why))
		fail_msg("%d instead of %d: %s", ret, err, hawk_strerror_last());
	assert_null(plan);
}

static void plans_refused(void **state)
{
	const struct hawk_range all = { .tokens = 40 };
	struct hawk_layout a = formed(HAWK_FORM_NHD, 2), b = a;

	(void)state;
	plan_refused(a, formed(HAWK_FORM_NHD, 4), all, -EINVAL, "bits are copied");
	b.dtype = 1;
	plan_refused(a, b, all, -EINVAL, "dtype 1");
	b = model(2);
	b.dim = 32;
	assert_ok(hawk_layout_form(&b, HAWK_FORM_NHD));
	plan_refused(a, b, all, -EINVAL, "not the same model");
	plan_refused(a, a, (struct hawk_range){ 0 }, -EINVAL, "0 tokens");
	plan_refused(a, a, (struct hawk_range){ .tokens = 1, .flags = 2 }, -EINVAL, "flags 0x2");
	plan_refused(a, a, (struct hawk_range){ .tokens = BLOCKS * TOKENS + 1 }, -ERANGE, "source");
	b = model(2);
	b.blocks = 1;
	assert_ok(hawk_layout_form(&b, HAWK_FORM_NHD));
	plan_refused(a, b, all, -ERANGE, "the destination has 0 to 31");
	plan_refused(a, a, (struct hawk_range){ .tokens = 1, .layer_first = 3, .layers = 1 },
		     -ENOENT, "no layer");
	a = model(2);
	b = a;
	assert_ok(hawk_layout_slice(&a, HAWK_FORM_NHD, 0, 2));
	assert_ok(hawk_layout_slice(&b, HAWK_FORM_NHD, 1, 2));
	plan_refused(a, b, all, -ENOENT, "no head");
}

static void tables_refused(void **state)
{
	const struct hawk_range r = { .tokens = 40 };
	struct hawk_layout a = formed(HAWK_FORM_NHD, 2);
	uint32_t good[2] = { 4, 0 }, bad[2] = { 4, BLOCKS };
	struct hawk_blocks b = { .src = good, .src_count = 2, .dst = good, .dst_count = 1 };
	uint8_t *mem = calloc(2, a.bytes);
	struct hawk_copy c = {
		.src = mem, .src_bytes = a.bytes, .dst = mem + a.bytes, .dst_bytes = a.bytes,
		.blocks = &b,
	};
	struct hawk_layout_plan *plan;

	(void)state;
	assert_non_null(mem);
	assert_ok(hawk_layout_plan_open(&a, &a, &r, &plan));
	assert_int_equal(hawk_layout_copy(plan, &c), -ERANGE);
	assert_non_null(strstr(hawk_strerror_last(), "has 1 entries: 2 are needed"));
	b.dst_count = 2;
	b.dst = bad;
	assert_int_equal(hawk_layout_copy(plan, &c), -ERANGE);
	assert_non_null(strstr(hawk_strerror_last(), "entry 1 is 5"));
	b.dst = good;
	assert_int_equal(hawk_layout_copy(plan, &c), 0);
	c.dst_bytes--;
	assert_int_equal(hawk_layout_copy(plan, &c), -ERANGE);
	c.dst_bytes++;
	c.part = 1;
	assert_int_equal(hawk_layout_copy(plan, &c), -EINVAL);
	c.part = 0;
	c.flags = HAWK_COPY_CACHED | HAWK_COPY_STREAM;
	assert_int_equal(hawk_layout_copy(plan, &c), -EINVAL);
	hawk_layout_plan_close(plan);
	free(mem);
}

/* ---- requests and keys as the NIC sees them ---- */

struct seen {
	uint64_t requests;
	uint64_t bytes;
	uint32_t entries;
	uint32_t len;
	uint32_t repeat;
};

static int see_request(void *ctx, const struct hawk_request *r)
{
	struct seen *s = ctx;

	s->requests++;
	s->bytes = r->bytes;
	s->entries = r->entries;
	s->len = r->entry->len;
	return 0;
}

static int see_key(void *ctx, const struct hawk_key_pattern *k)
{
	struct seen *s = ctx;

	s->requests++;
	s->bytes = k->bytes;
	s->entries = k->strips;
	s->len = k->strip->bytes;
	s->repeat = k->repeat;
	return 0;
}

static int stop(void *ctx, const struct hawk_request *r)
{
	(void)r;
	return ++*(int *)ctx == 3 ? -ECANCELED : 0;
}

/* A tile of 16 x 16 elements of 2 bytes: 16 entries of 32 bytes, one write of 512. */
static void tile_requests(void **state)
{
	struct hawk_layout a = formed(HAWK_FORM_HND, 2), b = formed(HAWK_FORM_TILE16, 2);
	const struct hawk_range r = { .tokens = TOKENS };
	struct hawk_layout_plan *plan;
	struct hawk_requests q = { .entries = 16, .post = see_request };
	struct hawk_key_patterns k = { .strips = 16, .post = see_key };
	uint64_t tiles = LAYERS * 2 * HEADS * TOKENS / 16 * DIM / 16;
	struct seen s = { 0 };
	int calls = 0;

	(void)state;
	assert_ok(hawk_layout_plan_open(&a, &b, &r, &plan));
	q.ctx = &s;
	assert_ok(hawk_layout_requests(plan, &q));
	assert_int_equal(s.requests, tiles);
	assert_int_equal(s.bytes, 512);
	assert_int_equal(s.entries, 16);
	assert_int_equal(s.len, 32);
	/* two tiles that neighbour each other */
	q.entries = 32;
	s.requests = 0;
	assert_ok(hawk_layout_requests(plan, &q));
	assert_int_equal(s.requests, tiles / 2);
	assert_int_equal(s.bytes, 1024);
	/* a key shows a whole row of tiles: row by row, tile by tile */
	k.ctx = &s;
	s.requests = 0;
	assert_ok(hawk_layout_keys(plan, &k));
	assert_int_equal(s.requests, tiles / (DIM / 16));
	assert_int_equal(s.bytes, 16 * DIM * 2);
	assert_int_equal(s.entries, 16);
	assert_int_equal(s.repeat, DIM / 16);
	q.post = stop;
	q.ctx = &calls;
	assert_int_equal(hawk_layout_requests(plan, &q), -ECANCELED);
	assert_int_equal(calls, 3);
	q.entries = 0;
	assert_int_equal(hawk_layout_requests(plan, &q), -EINVAL);
	q.entries = HAWK_ENTRIES_MAX + 1;
	assert_int_equal(hawk_layout_requests(plan, &q), -EINVAL);
	q = (struct hawk_requests){ .entries = 1, .bytes = 4095, .post = see_request, .ctx = &s };
	assert_int_equal(hawk_layout_requests(plan, &q), -EINVAL);
	k.strips = 0;
	assert_int_equal(hawk_layout_keys(plan, &k), -EINVAL);
	hawk_layout_plan_close(plan);
}

/* Equal layouts are one piece per block; with all layers together in a block, even fewer. */
static void large_pieces(void **state)
{
	const struct hawk_range r = { .tokens = 40, .flags = HAWK_RANGE_PADDED };
	struct hawk_layout a = formed(HAWK_FORM_TILE16, 2);
	struct hawk_layout_plan *plan;
	struct hawk_plan_info info;

	(void)state;
	assert_ok(hawk_layout_plan_open(&a, &a, &r, &plan));
	hawk_layout_plan_info(plan, &info);
	/* the last block has 8 of its tokens in one of 2 tile rows of each head */
	assert_int_equal(info.pieces, LAYERS * 2 * (1 + HEADS));
	assert_int_equal(info.piece_max, HEADS * TOKENS * DIM * 2);
	hawk_layout_plan_close(plan);
	a = formed(HAWK_FORM_TILE16 | HAWK_FORM_CROSS_LAYER, 2);
	assert_ok(hawk_layout_plan_open(&a, &a, &(struct hawk_range){ .tokens = 64 }, &plan));
	hawk_layout_plan_info(plan, &info);
	assert_int_equal(info.pieces, 2);
	assert_int_equal(info.piece_max, LAYERS * 2 * HEADS * TOKENS * DIM * 2);
	assert_int_equal(info.src_blocks, 2);
	hawk_layout_plan_close(plan);
}

/* Two ranks become four, each pair that has a head in common; all bytes arrive. */
static void reshard(void **state)
{
	const struct hawk_range r = { .tokens = 77 };
	struct hawk_layout from[2], to[4];
	struct hawk_layout_plan *plan;
	uint8_t *src[2], *dst[4];
	struct hawk_place p = { 0 };
	uint16_t want, got;
	unsigned int i, k;
	uint64_t n = 0;

	(void)state;
	for (i = 0; i < 2; i++) {
		from[i] = model(2);
		assert_ok(hawk_layout_slice(&from[i], HAWK_FORM_NHD, i, 2));
		src[i] = malloc(from[i].bytes);
		for (n = 0; n < from[i].bytes / 2; n++)
			((uint16_t *)src[i])[n] = (uint16_t)(n * 2 + i);
	}
	for (k = 0; k < 4; k++) {
		to[k] = model(2);
		to[k].block_tokens = 16;
		to[k].blocks = 10;
		assert_ok(hawk_layout_slice(&to[k], HAWK_FORM_NZ, k, 4));
		dst[k] = calloc(1, to[k].bytes);
		for (i = 0, n = 0; i < 2; i++) {
			if (hawk_layout_plan_open(&from[i], &to[k], &r, &plan))
				continue;
			assert_ok(hawk_layout_copy(plan, &(struct hawk_copy){
				.src = src[i], .src_bytes = from[i].bytes, .dst = dst[k],
				.dst_bytes = to[k].bytes }));
			hawk_layout_plan_close(plan);
			n++;
		}
		assert_int_equal(n, 1);
	}
	for (n = 0; n < LAYERS * 2 * HEADS * 77 * DIM; n++) {
		p.elem = n % DIM;
		p.head = n / DIM % HEADS;
		p.plane = n / DIM / HEADS % 2;
		p.layer = n / DIM / HEADS / 2 % LAYERS;
		i = n / DIM / HEADS / 2 / LAYERS;
		p.frame = i / TOKENS;
		p.token = i % TOKENS;
		memcpy(&want, src[p.head / 2] + hawk_layout_offset(&from[p.head / 2], &p), 2);
		p.frame = i / 16;
		p.token = i % 16;
		memcpy(&got, dst[p.head] + hawk_layout_offset(&to[p.head], &p), 2);
		assert_int_equal(want, got);
	}
	for (i = 0; i < 2; i++)
		free(src[i]);
	for (k = 0; k < 4; k++)
		free(dst[k]);
}

/* Threads share a copy out; each byte is one thread's. */
struct share {
	const struct hawk_layout_plan *plan;
	struct hawk_copy c;
	int ret;
};

static void *do_share(void *arg)
{
	struct share *s = arg;

	s->ret = hawk_layout_copy(s->plan, &s->c);
	return NULL;
}

static void threads(void **state)
{
	struct hawk_layout a = formed(HAWK_FORM_NHD, 2), b = formed(HAWK_FORM_TILE16, 2);
	const struct hawk_range r = { .tokens = BLOCKS * TOKENS - 3 };
	uint8_t *src = malloc(a.bytes), *one = calloc(1, b.bytes), *many = calloc(1, b.bytes);
	struct hawk_layout_plan *plan;
	struct share s[4];
	pthread_t t[4];
	uint64_t i;

	(void)state;
	assert_true(src && one && many);
	for (i = 0; i < a.bytes; i++)
		src[i] = (uint8_t)(i * 131 >> 3);
	assert_ok(hawk_layout_plan_open(&a, &b, &r, &plan));
	for (i = 0; i < 4; i++) {
		s[i] = (struct share){ .plan = plan, .c = {
			.src = src, .src_bytes = a.bytes, .dst = many, .dst_bytes = b.bytes,
			.part = (uint32_t)i, .parts = 4, .flags = HAWK_COPY_STREAM } };
		assert_int_equal(pthread_create(&t[i], NULL, do_share, &s[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_int_equal(s[i].ret, 0);
	}
	s[0].c.dst = one;
	s[0].c.parts = 0;
	assert_ok(hawk_layout_copy(plan, &s[0].c));
	assert_memory_equal(one, many, b.bytes);
	hawk_layout_plan_close(plan);
	free(src);
	free(one);
	free(many);
}

/* ---- frames of a space ---- */

/* Fills a block of each of two spaces' layers; the second has the first's KV in tiles. */
static void space_frames(void **state)
{
	struct hawk_kv_params p = {
		.block_bytes = 2 * 2 * DIM * 16 * 2, .block_tokens = 16, .layers = 1,
		.head_groups = 2, .max_blocks = 64, .quota_all = 1, .dtype = 3,
	};
	struct hawk_layout a = { .elem_bytes = 2, .dim = DIM, .heads_all = 4, .blocks = 256 }, b = a;
	struct hawk_item it[2] = { { .lid = HAWK_LID(1, 0, 1, 0) }, { .lid = HAWK_LID(1, 0, 1, 0) } };
	const struct hawk_range r = { .tokens = 16 };
	struct hawk_layout_plan *plan;
	struct hawk_kv *kv[2];
	struct hawk_place at;
	struct hawk *h;
	uint32_t frame[2], i, k;
	uint16_t v;
	uint8_t *base[2];

	(void)state;
	assert_ok(hawk_open("embed:?dram=8M", &h));
	for (i = 0; i < 2; i++) {
		assert_ok(hawk_layout_space(i ? &b : &a, i ? HAWK_FORM_TILE16 : HAWK_FORM_NHD, &p,
					    0, 1));
		p.layout = hawk_layout_tag(i ? &b : &a);
		assert_ok(hawk_kv_create(h, &p, &kv[i]));
		assert_int_equal(hawk_alloc(kv[i], &it[i], 1, NULL), 1);
		frame[i] = HAWK_VT_FRAME(it[i].vt);
		base[i] = (uint8_t *)hawk_addr(kv[i], it[i].vt) - (uint64_t)frame[i] * p.block_bytes;
	}
	for (i = 0; i < p.block_bytes / 2; i++)
		((uint16_t *)hawk_addr(kv[0], it[0].vt))[i] = (uint16_t)(i * 7);
	assert_ok(hawk_layout_plan_open(&a, &b, &r, &plan));
	assert_ok(hawk_layout_copy(plan, &(struct hawk_copy){
		.src = base[0], .src_bytes = a.bytes, .dst = base[1], .dst_bytes = b.bytes,
		.blocks = &(struct hawk_blocks){ &frame[0], &frame[1], 1, 1 } }));
	for (i = 0; i < 2 * 2 * 16 * DIM; i++) {
		/* [plane, token, head, dim] in the frame */
		at = (struct hawk_place){ .elem = i % DIM, .head = 2 + i / DIM % 2,
					  .token = i / DIM / 2 % 16, .plane = i / DIM / 2 / 16,
					  .frame = frame[1] };
		memcpy(&v, base[1] + hawk_layout_offset(&b, &at), 2);
		assert_int_equal(v, (uint16_t)(i * 7));
	}
	hawk_layout_plan_close(plan);
	for (k = 0; k < 2; k++)
		hawk_kv_close(kv[k]);
	hawk_close(h);
	assert_int_equal(hawk_layout_space(&a, HAWK_FORM_NHD, &p, 1, 0), -EINVAL);
	p.block_bytes -= 4096;
	assert_int_equal(hawk_layout_space(&a, HAWK_FORM_NHD, &p, 0, 0), -EINVAL);
	assert_non_null(strstr(hawk_strerror_last(), "a block takes"));
	p.block_bytes += 4096;
	p.token_bytes = 2 * DIM * 2;
	assert_ok(hawk_layout_space(&a, HAWK_FORM_NHD, &p, 0, 0));
	assert_int_equal(hawk_layout_space(&a, HAWK_FORM_TILE16, &p, 0, 0), -EINVAL);
}

/* A model of 70B, a prompt of 32k tokens: the figures that everybody calculates with. */
static void large_model(void **state)
{
	struct hawk_layout a = {
		.elem_bytes = 2, .dim = 128, .heads_all = 8, .layers_all = 80,
		.block_tokens = 32768, .blocks = 1,
	}, b = a;
	const struct hawk_range r = { .tokens = 32768 };
	struct hawk_costs c = { .link_mb_per_s = 50000, .copy_mb_per_s = 50000, .entries = 32 };
	struct hawk_choice ch;

	(void)state;
	b.block_tokens = 16;
	b.blocks = 2048;
	assert_ok(hawk_layout_form(&a, HAWK_FORM_HND));
	assert_ok(hawk_layout_form(&b, HAWK_FORM_TILE16));
	assert_ok(hawk_layout_choose(&a, &b, &r, &c, &ch));
	assert_int_equal(ch.bytes, 10737418240ull);
	assert_int_equal(ch.pieces, 335544320);	/* of 32 bytes */
	assert_int_equal(ch.requests, ch.pieces / 32);
	assert_int_equal(ch.ns[HAWK_WAY_ENTRIES] / 1000, 214748);
	/* a block is one write in each layer and plane; with all layers together, one at all */
	assert_int_equal(ch.writes[HAWK_WAY_SENDER], 2048 * 80 * 2);
	memset(b.stride, 0, sizeof(b.stride));
	assert_ok(hawk_layout_form(&b, HAWK_FORM_TILE16 | HAWK_FORM_CROSS_LAYER));
	assert_ok(hawk_layout_choose(&a, &b, &r, &c, &ch));
	assert_int_equal(ch.writes[HAWK_WAY_SENDER], 2048);
}

/* ---- words ---- */

static void words(void **state)
{
	const struct hawk_range r = { .tokens = 33 };
	struct hawk_layout a = formed(HAWK_FORM_NHD, 2), b = formed(HAWK_FORM_TILE16, 2);
	struct hawk_layout_plan *plan;
	char buf[8192], cut[20];
	int n;

	(void)state;
	n = hawk_layout_print(&b, buf, sizeof(buf), 0);
	assert_string_equal(buf, "lkbhtdrc, tiles of 16 rows x 32 bytes, 5 blocks of 32 tokens, "
			    "layers 0-2 of 3, keys and values, heads 0-3 of 4, 64 elements of 2 bytes, "
			    "491520 bytes");
	assert_int_equal(n, strlen(buf));
	assert_int_equal(hawk_layout_print(&b, cut, sizeof(cut), 0), n);
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_int_equal(hawk_layout_print(&b, NULL, 0, 0), n);
	assert_int_not_equal(hawk_layout_tag(&a), hawk_layout_tag(&b));
	assert_ok(hawk_layout_plan_open(&a, &b, &r, &plan));
	n = hawk_layout_plan_print(plan, buf, sizeof(buf), 0);
	assert_true(n < (int)sizeof(buf));
	assert_non_null(strstr(buf, "101376 bytes and 46080 of pads in"));
	assert_non_null(strstr(buf, "of zeroes"));
	hawk_layout_plan_print(plan, buf, sizeof(buf), HAWK_PRINT_JSON);
	assert_int_equal(buf[0], '{');
	hawk_layout_plan_close(plan);
}

/* ---- the planner ---- */

static struct hawk_costs costs(void)
{
	return (struct hawk_costs){
		.link_mb_per_s = 1000, .entries = 32, .request_ps = 500000, .entry_ps = 20000,
		.copy_mb_per_s = 10000, .piece_ps = 1000, .frame_bytes = 65536,
	};
}

static unsigned int choice_of(const struct hawk_layout *a, const struct hawk_layout *b,
			      const struct hawk_costs *c, struct hawk_choice *ch)
{
	const struct hawk_range r = { .tokens = BLOCKS * TOKENS };

	assert_ok(hawk_layout_choose(a, b, &r, c, ch));
	assert_true(ch->possible & 1u << ch->way);
	return ch->way;
}

static void planner(void **state)
{
	struct hawk_layout a = formed(HAWK_FORM_HND, 2), b = formed(HAWK_FORM_TILE16, 2);
	struct hawk_costs c = costs();
	struct hawk_choice ch;
	char buf[2048];

	(void)state;
	/* a fast CPU hides behind the link */
	assert_int_equal(choice_of(&a, &b, &c, &ch), HAWK_WAY_SENDER);
	assert_int_equal(ch.pieces, a.bytes / 32);
	assert_int_equal(ch.requests, a.bytes / 1024);
	hawk_choice_print(&ch, &c, buf, sizeof(buf), 0);
	assert_non_null(strstr(buf, "sender is fastest"));
	assert_non_null(strstr(buf, "* sender"));
	assert_non_null(strstr(buf, "the NIC has no strided keys"));
	hawk_choice_print(&ch, &c, buf, sizeof(buf), HAWK_PRINT_JSON);
	assert_non_null(strstr(buf, "{\"way\": \"sender\""));
	/* the tail too is large writes: its pads are zero in the frame already */
	assert_ok(hawk_layout_choose(&a, &b, &(struct hawk_range){ .tokens = 40 }, &c, &ch));
	assert_int_equal(ch.writes[HAWK_WAY_SENDER], LAYERS * 2 * (1 + HEADS));
	/* a slow one does not; the receiver's may be faster */
	c.copy_mb_per_s = 200;
	c.far_copy_mb_per_s = 5000;
	c.far_piece_ps = 1000;
	assert_int_equal(choice_of(&a, &b, &c, &ch), HAWK_WAY_RECEIVER);
	/* both slow, and a NIC that gathers at nearly no cost */
	c.far_copy_mb_per_s = 0;
	c.far_piece_ps = 0;
	c.entry_ps = 100;
	c.request_ps = 1000;
	assert_int_equal(choice_of(&a, &b, &c, &ch), HAWK_WAY_ENTRIES);
	/* dear entries, cheap keys */
	c.entry_ps = 1000000;
	c.strips = 16;
	c.key_ps = 1000;
	assert_int_equal(choice_of(&a, &b, &c, &ch), HAWK_WAY_KEYS);
	/* nothing beats what need not be done */
	c.born = 1;
	assert_int_equal(choice_of(&a, &b, &c, &ch), HAWK_WAY_BIRTH);
	c = costs();
	assert_int_equal(choice_of(&b, &b, &c, &ch), HAWK_WAY_BIRTH);
	c.link_mb_per_s = 0;
	assert_int_equal(hawk_layout_choose(&a, &b, &(struct hawk_range){ .tokens = 1 }, &c, &ch),
			 -EINVAL);
}

/* A NIC with 2 GB/s, 700 ns a request and 30 ns an entry. */
static int64_t timed_write(void *ctx, uint32_t count, uint32_t entries, uint32_t bytes)
{
	(void)ctx;
	return count * (700 + 30ll * (entries - 1) + (int64_t)entries * bytes / 2);
}

static int64_t broken_write(void *ctx, uint32_t count, uint32_t entries, uint32_t bytes)
{
	(void)ctx;
	(void)count;
	(void)bytes;
	return entries > 1 ? -EIO : 1000;
}

/* One with 4 MB/s, whose requests of many entries seem to take less than those of one. */
static int64_t slow_write(void *ctx, uint32_t count, uint32_t entries, uint32_t bytes)
{
	uint64_t *written = ctx;

	*written += (uint64_t)count * entries * bytes;
	return count * (250ll * bytes + (entries > 1 ? 500 : 1000));
}

static void measured(void **state)
{
	struct hawk_nic_probe p = { .write = timed_write, .entries = 32 };
	struct hawk_costs c = { 0 };
	uint64_t written = 0;

	(void)state;
	assert_ok(hawk_costs_nic(&c, &p));
	assert_in_range(c.link_mb_per_s, 1995, 2005);
	assert_in_range(c.request_ps, 690000, 710000);
	assert_in_range(c.entry_ps, 29000, 31000);
	assert_int_equal(c.entries, 32);
	p.write = slow_write;
	p.ctx = &written;
	assert_ok(hawk_costs_nic(&c, &p));
	assert_in_range(c.link_mb_per_s, 3, 4);
	assert_int_equal(c.entry_ps, 0);
	/* a measurement takes no minutes */
	assert_true(written < 8 << 20);
	p.write = broken_write;
	assert_int_equal(hawk_costs_nic(&c, &p), -EIO);
	p.entries = 0;
	assert_int_equal(hawk_costs_nic(&c, &p), -EINVAL);
	/* figures depend on the machine; that there are some does not */
	assert_ok(hawk_costs_cpu(&c));
	assert_true(c.copy_mb_per_s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formulas),
		cmocka_unit_test(refusals),
		cmocka_unit_test(plans_refused),
		cmocka_unit_test(tables_refused),
		cmocka_unit_test(tile_requests),
		cmocka_unit_test(large_pieces),
		cmocka_unit_test(reshard),
		cmocka_unit_test(large_model),
		cmocka_unit_test(threads),
		cmocka_unit_test(space_frames),
		cmocka_unit_test(words),
		cmocka_unit_test(planner),
		cmocka_unit_test(measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
