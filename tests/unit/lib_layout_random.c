// SPDX-License-Identifier: MIT
/*
 * lib_layout_random.c - 10^5 pairs of layouts drawn by lot: every byte is where a formula
 * says, no other byte has changed, and the way back gives the source again
 *
 * $HAWK_OPS pairs from number $HAWK_SEED on; a failure prints the pair's number.
 */
#include <stdlib.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
