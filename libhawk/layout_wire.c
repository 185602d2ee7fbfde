// SPDX-License-Identifier: MIT
/*
 * layout_wire.c - a plan as work requests and as strided keys
 *
 * Both write stretches: innermost loops of a run whose pieces follow each other in the
 * destination.  A request has a list of them; a key describes them by their distances.  A key
 * shows the first piece of all its strips, then the second of all: the innermost loop becomes
 * strips and the one around it the repetition, or, if the innermost has more pieces than a
 * key has strips, it is the repetition of one strip.
 */
#include <errno.h>
#include <stdlib.h>

#include "layout.h"

#define REQUEST_BYTES	(1u << 30)	/* of a request if nothing is said */

/* ---- requests ---- */

struct posting {
	const struct hawk_requests *q;
	struct hawk_entry *entry;
	struct hawk_request r;
	uint64_t at;		/* in the destination: where the next piece goes */
};

static int post_request(struct posting *p)
{
	int ret = 0;

	p->r.entry = p->entry;
	if (p->r.entries)
		ret = p->q->post(p->q->ctx, &p->r);
	p->r.off = p->at;
	p->r.bytes = 0;
	p->r.entries = 0;
	return ret;
}

/* One piece, in as many entries as it takes. */
static int post_piece(struct posting *p, uint64_t off, uint64_t len, bool zero)
{
	uint64_t max = p->q->bytes ? p->q->bytes : REQUEST_BYTES, n;
	int ret;

	for (; len; len -= n, off += n) {
		n = len < max - p->r.bytes ? len : max - p->r.bytes;
		if (zero && n > HAWK_ZEROES)
			n = HAWK_ZEROES;
		p->entry[p->r.entries++] = (struct hawk_entry){
			.off = zero ? 0 : off, .len = (uint32_t)n, .zero = zero,
		};
		p->r.bytes += n;
		p->at += n;
		if (p->r.entries < p->q->entries && p->r.bytes < max)
			continue;
		ret = post_request(p);
		if (ret)
			return ret;
	}
	return 0;
}

static int post_loops(struct posting *p, const struct hawk_run *run, unsigned int i, uint64_t src)
{
	const struct hawk_loop *l = &run->loop[i];
	uint64_t k;
	int ret = 0;

	if (i == run->loops)
		return post_piece(p, src, run->len, run->zero);
	for (k = 0; k < l->n && !ret; k++)
		ret = post_loops(p, run, i + 1, src + k * l->src);
	return ret;
}

static int request_place(void *ctx, const struct hawk_walk *w)
{
	struct posting *p = ctx;
	int ret;

	p->at = w->dst;
	p->r.off = w->dst;
	ret = post_loops(p, w->run, w->run->loops - w->inner, w->src);
	return ret ? ret : post_request(p);
}

static unsigned int stretch_inner(const void *ctx, const struct hawk_run *run)
{
	(void)ctx;
	return run->stretch;
}

int hawk_layout_requests(const struct hawk_layout_plan *plan, const struct hawk_requests *q)
{
	struct posting p = { .q = q };
	int ret;

	if (!q->entries || q->entries > HAWK_ENTRIES_MAX)
		return hawk_fail(-EINVAL, "layout: requests of %u entries: 1 to %u", q->entries,
				 HAWK_ENTRIES_MAX);
	if (q->bytes && q->bytes < HAWK_ZEROES)
		return hawk_fail(-EINVAL, "layout: requests of %u bytes: at least %u", q->bytes,
				 HAWK_ZEROES);
	ret = hawk_walk_check(plan, q->blocks);
	if (ret)
		return ret;
	p.entry = malloc(q->entries * sizeof(*p.entry));
	if (!p.entry)
		return hawk_fail(-ENOMEM, "layout: %u entries", q->entries);
	ret = hawk_walk(plan, q->blocks, stretch_inner, 0, 1, request_place, &p);
	free(p.entry);
	return ret;
}

static uint64_t entries_of(const struct hawk_run *run)
{
	uint64_t max = run->zero ? HAWK_ZEROES : REQUEST_BYTES;

	return (run->len + max - 1) / max;
}

uint64_t hawk_requests_count(const struct hawk_layout_plan *plan, uint32_t entries)
{
	const struct hawk_run *run;
	uint64_t n = 0, all, each, by_bytes;

	for (run = plan->run; run < plan->run + plan->runs; run++) {
		all = hawk_run_pieces(run, run->stretch);
		each = (all * entries_of(run) + entries - 1) / entries;
		by_bytes = (all * run->len + REQUEST_BYTES - 1) / REQUEST_BYTES;
		n += hawk_run_pieces(run, run->loops) / all * run->groups *
		     (each > by_bytes ? each : by_bytes);
	}
	return n;
}

uint64_t hawk_requests_entries(const struct hawk_layout_plan *plan)
{
	const struct hawk_run *run;
	uint64_t n = 0;

	for (run = plan->run; run < plan->run + plan->runs; run++)
		n += hawk_run_pieces(run, run->loops) * run->groups * entries_of(run);
	return n;
}

/* ---- strided keys ---- */

/**
 * struct shape - the pattern of a run's keys
 * @strips: strips of a key
 * @repeat: pieces of each
 * @inner: innermost loops that a key covers
 * @next: bytes from strip to strip in the source
 * @step: and from piece to piece of a strip
 */
struct shape {
	uint64_t strips;
	uint64_t repeat;
	unsigned int inner;
	uint64_t next;
	uint64_t step;
};

/* Distances of a key are 32 bits and never negative. */
static bool fits(const struct hawk_run *run, uint64_t step)
{
	return step >= run->len && step - run->len <= UINT32_MAX;
}

static struct shape shape_of(const struct hawk_run *run, uint32_t max)
{
	const struct hawk_loop *l = run->loop + run->loops - 1;
	struct shape one = { .strips = 1, .repeat = 1, .step = run->len };

	if (run->zero || run->len > UINT32_MAX || !run->stretch)
		return one;
	if (run->stretch > 1 && l->n <= max && l[-1].n <= UINT32_MAX && fits(run, l[-1].src))
		return (struct shape){ l->n, l[-1].n, 2, l->src, l[-1].src };
	if (l->n <= UINT32_MAX && fits(run, l->src))
		return (struct shape){ 1, l->n, 1, 0, l->src };
	if (l->n <= max)
		return (struct shape){ l->n, 1, 1, l->src, run->len };
	return one;
}

struct keying {
	const struct hawk_key_patterns *q;
	struct hawk_strip *strip;
};

static int key_piece(struct keying *k, uint64_t off, uint64_t src, uint64_t len, bool zero)
{
	uint64_t max = zero ? HAWK_ZEROES : REQUEST_BYTES, n;
	int ret = 0;

	for (; len && !ret; len -= n, off += n, src += n) {
		n = len < max ? len : max;
		k->strip[0] = (struct hawk_strip){
			.off = zero ? 0 : src, .bytes = (uint32_t)n, .zero = zero,
		};
		ret = k->q->post(k->q->ctx, &(struct hawk_key_pattern){
			.off = off, .bytes = n, .repeat = 1, .strips = 1, .strip = k->strip });
	}
	return ret;
}

static int key_place(void *ctx, const struct hawk_walk *w)
{
	struct keying *k = ctx;
	const struct hawk_run *run = w->run;
	struct shape s = shape_of(run, k->q->strips);
	uint64_t i;

	if (s.strips * s.repeat == 1)
		return key_piece(k, w->dst, w->src, run->len, run->zero);
	for (i = 0; i < s.strips; i++)
		k->strip[i] = (struct hawk_strip){
			.off = w->src + i * s.next, .bytes = (uint32_t)run->len,
			.skip = (uint32_t)(s.step - run->len),
		};
	return k->q->post(k->q->ctx, &(struct hawk_key_pattern){
		.off = w->dst, .bytes = s.strips * s.repeat * run->len,
		.repeat = (uint32_t)s.repeat, .strips = (uint32_t)s.strips, .strip = k->strip });
}

static unsigned int key_inner(const void *ctx, const struct hawk_run *run)
{
	const struct keying *k = ctx;

	return shape_of(run, k->q->strips).inner;
}

int hawk_layout_keys(const struct hawk_layout_plan *plan, const struct hawk_key_patterns *q)
{
	struct keying k = { .q = q };
	int ret;

	if (!q->strips || q->strips > HAWK_ENTRIES_MAX)
		return hawk_fail(-EINVAL, "layout: keys of %u strips: 1 to %u", q->strips,
				 HAWK_ENTRIES_MAX);
	ret = hawk_walk_check(plan, q->blocks);
	if (ret)
		return ret;
	k.strip = malloc(q->strips * sizeof(*k.strip));
	if (!k.strip)
		return hawk_fail(-ENOMEM, "layout: %u strips", q->strips);
	ret = hawk_walk(plan, q->blocks, key_inner, 0, 1, key_place, &k);
	free(k.strip);
	return ret;
}

uint64_t hawk_keys_count(const struct hawk_layout_plan *plan, uint32_t strips)
{
	const struct hawk_run *run;
	uint64_t n = 0;

	for (run = plan->run; run < plan->run + plan->runs; run++)
		n += hawk_run_pieces(run, run->loops) /
		     hawk_run_pieces(run, shape_of(run, strips).inner) * run->groups *
		     (shape_of(run, strips).inner ? 1 : entries_of(run));
	return n;
}
