// SPDX-License-Identifier: MIT
/*
 * lib_layout_random.c - 10^5 pairs of layouts drawn by lot: every byte is where a formula
 * says, no other byte has changed, and the way back gives the source again; 10^5 that say
 * nonsense are refused with a reason, or are sound
 *
 * $HAWK_OPS pairs from number $HAWK_SEED on; a failure prints the pair's number.
 */
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "layout_gen.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PAIRS	20000u
#else
#define PAIRS	100000u
#endif

static const struct hawk_copier *copier_of(uint64_t n)
{
	static const char *const names[] = { "c", "avx2", "avx512" };
	const struct hawk_copier *k = hawk_copier_get(names[n % 3]);

	return k ? k : hawk_copier_get(NULL);
}

/* In one to four parts, backwards; sizes are too small for the library to stream itself. */
static void carry_out(const struct hawk_layout_plan *plan, const struct lg_side *from,
		      struct lg_side *to, uint64_t n)
{
	const struct hawk_blocks b = {
		.src = from->table, .src_count = from->count, .dst = to->table, .dst_count = to->count,
	};
	struct hawk_copy c = {
		.src = from->mem, .src_bytes = from->l.bytes, .dst = to->mem,
		.dst_bytes = to->l.bytes, .blocks = &b, .parts = 1 + n / 3 % 4,
		.flags = n / 12 % 2 ? HAWK_COPY_STREAM : HAWK_COPY_CACHED,
	};

	for (c.part = c.parts; c.part--;)
		assert_ok(hawk_layout_copy_by(copier_of(n), plan, &c));
}

/* What the pair has in common was copied; copied back it changes nothing but pads. */
static void there_and_back(struct lg_pair *p, struct hawk_layout_plan *plan)
{
	struct hawk_layout_plan *back;
	struct lg_pair turned = *p;
	uint8_t *want = lg_expect(p), *home, *first = malloc(p->src.l.bytes);

	assert_non_null(first);
	memcpy(first, p->src.mem, p->src.l.bytes);
	carry_out(plan, &p->src, &p->dst, p->seed);
	if (memcmp(want, p->dst.mem, p->dst.l.bytes)) {
		lg_pair_print(p);
		fail_msg("bytes differ");
	}
	free(want);
	turned.src = p->dst;
	turned.dst = p->src;
	assert_ok(hawk_layout_plan_open(&p->dst.l, &p->src.l, &p->r, &back));
	home = lg_expect(&turned);
	carry_out(back, &p->dst, &p->src, p->seed + 1);
	if (memcmp(home, p->src.mem, p->src.l.bytes)) {
		lg_pair_print(p);
		fail_msg("bytes differ on the way back");
	}
	/* without pads in the source the round trip ends where it began */
	assert_true(p->src.l.tile_rows || !memcmp(first, p->src.mem, p->src.l.bytes));
	free(first);
	free(home);
	hawk_layout_plan_close(back);
}

static bool meets(uint32_t a, uint32_t n, uint32_t b, uint32_t m)
{
	return a < b + m && b < a + n;
}

static bool have_common(const struct lg_pair *p)
{
	const struct hawk_layout *s = &p->src.l, *d = &p->dst.l;
	uint32_t a, n;

	a = s->layer_first > d->layer_first ? s->layer_first : d->layer_first;
	n = s->layer_first + s->layers < d->layer_first + d->layers ?
	    s->layer_first + s->layers : d->layer_first + d->layers;
	return a < n && (!p->r.layers || meets(a, n - a, p->r.layer_first, p->r.layers)) &&
	       meets(s->plane_first, s->planes, d->plane_first, d->planes) &&
	       meets(s->head_first, s->heads, d->head_first, d->heads);
}

static void every_byte(void **state)
{
	uint64_t first = lg_seed(1), n = lg_ops(PAIRS), i, moved = 0, pads = 0, done = 0;
	struct hawk_layout_plan *plan;
	struct hawk_plan_info info;
	struct lg_pair p;
	int ret;

	(void)state;
	for (i = 0; i < n; i++) {
		lg_progress(first, i, n);
		lg_pair_make(&p, first + i);
		ret = hawk_layout_plan_open(&p.src.l, &p.dst.l, &p.r, &plan);
		if (have_common(&p) != !ret || (ret && ret != -ENOENT)) {
			lg_pair_print(&p);
			fail_msg("%d: %s", ret, hawk_strerror_last());
		}
		if (!ret) {
			hawk_layout_plan_info(plan, &info);
			there_and_back(&p, plan);
			moved += info.bytes;
			pads += info.pad_bytes;
			done++;
			hawk_layout_plan_close(plan);
		}
		lg_pair_free(&p);
	}
	print_message("%llu pairs from number %llu on, %llu with something in common, %llu bytes, %llu of pads\n",
		      (unsigned long long)n, (unsigned long long)first, (unsigned long long)done,
		      (unsigned long long)moved, (unsigned long long)pads);
	assert_true(n < 100 || (done > n / 3 && pads));
}

/* Any number, most of the time one that is near to what can be. */
static uint32_t any(struct lg_rng *g)
{
	switch (lg_rand(g, 40)) {
	case 0:
		return (uint32_t)lg_rand(g, 1ull << 32);
	case 1:
		return 1u << lg_rand(g, 32);
	case 2:
		return UINT32_MAX - (uint32_t)lg_rand(g, 3);
	default:
		return 1 + (uint32_t)lg_rand(g, 20);
	}
}

static void draw_nonsense(struct lg_rng *g, struct hawk_layout *l)
{
	static const char some[] = "lkbhtdrcx";
	uint32_t i;

	*l = (struct hawk_layout){
		.dtype = any(g), .elem_bytes = 1u << lg_rand(g, 5), .dim = any(g),
		.heads_all = any(g), .head_first = lg_rand(g, 4) ? 0 : any(g), .heads = lg_rand(g, 2) ? 0 : any(g),
		.layers_all = any(g), .layer_first = lg_rand(g, 4) ? 0 : any(g), .layers = lg_rand(g, 2) ? 0 : any(g),
		.plane_first = (uint32_t)lg_rand(g, 3), .planes = (uint32_t)lg_rand(g, 4),
		.block_tokens = any(g), .block_first = lg_rand(g, 2) ? 0 : any(g),
		.blocks = any(g), .tile_rows = lg_rand(g, 2) ? 0 : any(g),
		.order = "lkbhtdrc",
	};
	if (l->tile_rows)
		l->tile_bytes = lg_rand(g, 4) ? l->elem_bytes : any(g);
	if (!lg_rand(g, 8))
		l->stride[lg_rand(g, HAWK_AXES)] = (uint64_t)any(g) << lg_rand(g, 33);
	for (i = 0; !lg_rand(g, 4) && i < sizeof(l->order); i++)
		l->order[lg_rand(g, sizeof(l->order))] = some[lg_rand(g, sizeof(some))];
}

/* Whatever a layout says, it is refused with a reason, or all its elements are within it. */
static void refused_or_sound(void **state)
{
	uint64_t first = lg_seed(1), n = lg_ops(PAIRS), i, sound = 0;
	struct hawk_layout_plan *plan;
	struct hawk_layout l, m;
	struct hawk_range r;
	struct lg_rng g;
	int64_t off;
	int ret;

	(void)state;
	for (i = 0; i < n; i++) {
		lg_progress(first, i, n);
		g.state = (first + i) * 0x9e3779b97f4a7c15ull + 1;
		draw_nonsense(&g, &l);
		ret = hawk_layout_init(&l);
		if (ret) {
			assert_true(ret == -EINVAL || ret == -EOVERFLOW);
			assert_ptr_equal(strstr(hawk_strerror_last(), "layout: "),
					 hawk_strerror_last());
			continue;
		}
		sound++;
		off = hawk_layout_offset(&l, &(struct hawk_place){
			.layer = l.layer_first + l.layers - 1, .plane = l.plane_first + l.planes - 1,
			.head = l.head_first + l.heads - 1, .frame = l.blocks - 1,
			.token = l.block_tokens - 1, .elem = l.dim - 1 });
		if (off < 0 || (uint64_t)off + l.elem_bytes > l.bytes || l.bytes > 1ull << 62)
			fail_msg("HAWK_SEED=%llu HAWK_OPS=1: offset %lld of %llu bytes",
				 (unsigned long long)(first + i), (long long)off,
				 (unsigned long long)l.bytes);
		/* a plan of a huge one is made, or refused, soon */
		m = l;
		m.block_tokens = 1 + any(&g) % 100000;
		m.block_first = 0;
		m.blocks = UINT32_MAX / m.block_tokens;
		memset(m.stride, 0, sizeof(m.stride));
		r = (struct hawk_range){ .token_first = l.block_first * l.block_tokens,
					 .tokens = l.blocks * l.block_tokens };
		if (r.tokens < 1u << 20 && !hawk_layout_plan_open(&l, &m, &r, &plan))
			hawk_layout_plan_close(plan);
	}
	print_message("%llu of %llu layouts were sound\n", (unsigned long long)sound,
		      (unsigned long long)n);
	assert_true(n < 1000 || (sound > n / 100 && sound < n / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),
		cmocka_unit_test(refused_or_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
