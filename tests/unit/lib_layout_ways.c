// SPDX-License-Identifier: MIT
/*
 * lib_layout_ways.c - every way gives the same bytes: layouts drawn by lot, a model of a NIC
 *
 * The NIC does what a real one does and no more: a request gathers its entries, in order,
 * into one contiguous range, cut into packets; a key shows the pieces of its strips in turns.
 * It refuses what is more than it can do or outside of what is registered.
 *
 * $HAWK_OPS pairs from number $HAWK_SEED on; a failure prints the pair's number.
 */
#include <stdlib.h>

#include "layout.h"
#include "layout_gen.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PAIRS	2000u
#else
#define PAIRS	10000u
#endif

/**
 * struct nic - both ends of a link
 * @local: what may be read, @local_bytes of it
 * @remote: what may be written, @remote_bytes of it
 * @entries: entries or strips of a request at most
 * @bytes: bytes of one at most
 * @mtu: bytes of a packet
 * @requests: how many were carried out
 */
struct nic {
	const uint8_t *local;
	uint64_t local_bytes;
	uint8_t *remote;
	uint64_t remote_bytes;
	uint32_t entries;
	uint64_t bytes;
	uint32_t mtu;
	uint64_t requests;
};

static const uint8_t zeroes[HAWK_ZEROES];

static const uint8_t *nic_read(const struct nic *n, uint64_t off, uint64_t len, bool zero)
{
	assert_true(len && off + len <= (zero ? sizeof(zeroes) : n->local_bytes));
	return (zero ? zeroes : n->local) + off;
}

/* One write: packets of at most @n->mtu bytes, one behind the other. */
static void nic_write(struct nic *n, uint64_t off, const uint8_t *p, uint64_t len)
{
	uint64_t part;

	assert_true(len <= n->bytes && off + len <= n->remote_bytes);
	for (; len; len -= part, p += part, off += part) {
		part = len < n->mtu ? len : n->mtu;
		memcpy(n->remote + off, p, part);
	}
	n->requests++;
}

static int nic_request(void *ctx, const struct hawk_request *r)
{
	struct nic *n = ctx;
	uint8_t *all = malloc(r->bytes);
	uint64_t at = 0;
	uint32_t i;

	assert_non_null(all);
	assert_true(r->entries && r->entries <= n->entries);
	for (i = 0; i < r->entries; i++) {
		assert_true(at + r->entry[i].len <= r->bytes);
		memcpy(all + at, nic_read(n, r->entry[i].off, r->entry[i].len, r->entry[i].zero),
		       r->entry[i].len);
		at += r->entry[i].len;
	}
	assert_int_equal(at, r->bytes);
	nic_write(n, r->off, all, at);
	free(all);
	return 0;
}

static int nic_key(void *ctx, const struct hawk_key_pattern *k)
{
	struct nic *n = ctx;
	uint8_t *all = malloc(k->bytes);
	const struct hawk_strip *s;
	uint64_t at = 0;
	uint32_t i, j;

	assert_non_null(all);
	assert_true(k->strips && k->strips <= n->entries && k->repeat);
	for (j = 0; j < k->repeat; j++)
		for (i = 0; i < k->strips; i++) {
			s = &k->strip[i];
			assert_true(at + s->bytes <= k->bytes);
			memcpy(all + at, nic_read(n, s->off + j * ((uint64_t)s->bytes + s->skip),
						  s->bytes, s->zero), s->bytes);
			at += s->bytes;
		}
	assert_int_equal(at, k->bytes);
	nic_write(n, k->off, all, at);
	free(all);
	return 0;
}

/* What differs from transfer to transfer. */
static struct nic nic_draw(struct lg_rng *g)
{
	static const uint32_t entries[] = { 1, 2, 3, 16, 30, 32, HAWK_ENTRIES_MAX };
	static const uint32_t mtus[] = { 256, 1024, 4096 };

	return (struct nic){
		.entries = entries[lg_rand(g, 7)], .mtu = mtus[lg_rand(g, 3)],
		.bytes = lg_rand(g, 2) ? 1u << 30 : HAWK_ZEROES + lg_rand(g, 3000),
	};
}

static void send(struct nic *n, const struct hawk_layout_plan *wire, const struct hawk_blocks *b,
		 unsigned int way)
{
	const struct hawk_requests q = {
		.blocks = b, .entries = n->entries, .bytes = (uint32_t)n->bytes,
		.post = nic_request, .ctx = n,
	};
	const struct hawk_key_patterns k = {
		.blocks = b, .strips = n->entries, .post = nic_key, .ctx = n,
	};

	if (way == HAWK_WAY_KEYS) {
		n->bytes = 1u << 30;
		assert_ok(hawk_layout_keys(wire, &k));
		assert_int_equal(n->requests, hawk_keys_count(wire, n->entries));
		return;
	}
	assert_ok(hawk_layout_requests(wire, &q));
	if (n->bytes == 1u << 30)
		assert_int_equal(n->requests, hawk_requests_count(wire, n->entries));
}

static void by_cpu(const struct hawk_layout_plan *plan, const uint8_t *src, uint64_t src_bytes,
		   uint8_t *dst, uint64_t dst_bytes, const struct hawk_blocks *b)
{
	const struct hawk_copy c = {
		.src = src, .src_bytes = src_bytes, .dst = dst, .dst_bytes = dst_bytes, .blocks = b,
	};

	assert_ok(hawk_layout_copy(plan, &c));
}

/* Carries the pair out by one way into @out. */
static void go(const struct lg_pair *p, const struct hawk_route *rt, struct nic *n, uint8_t *out)
{
	const struct hawk_blocks both = lg_blocks(p);
	const struct hawk_blocks in = { .src = both.src, .src_count = both.src_count };
	const struct hawk_blocks to = { .dst = both.dst, .dst_count = both.dst_count };
	const struct hawk_layout *s = &p->src.l, *d = &p->dst.l, *f = &rt->stage;
	uint8_t *frame = NULL;

	if (rt->before || rt->after) {
		frame = malloc(f->bytes);
		assert_non_null(frame);
		memset(frame, 0x5a, f->bytes);	/* nothing may rely on what is in it */
	}
	if (rt->before)
		by_cpu(rt->before, p->src.mem, s->bytes, frame, f->bytes, &in);
	n->local = rt->before ? frame : p->src.mem;
	n->local_bytes = rt->before ? f->bytes : s->bytes;
	n->remote = rt->after ? frame : out;
	n->remote_bytes = rt->after ? f->bytes : d->bytes;
	send(n, rt->wire, rt->before ? &to : rt->after ? &in : &both, rt->way);
	if (rt->after)
		by_cpu(rt->after, frame, f->bytes, out, d->bytes, &to);
	free(frame);
}

static void same(const struct lg_pair *p, const uint8_t *want, const uint8_t *got,
		 unsigned int way, const struct nic *n)
{
	if (!memcmp(want, got, p->dst.l.bytes))
		return;
	lg_pair_print(p);
	fail_msg("way %u differs, %u entries, %llu bytes", way, n->entries,
		 (unsigned long long)n->bytes);
}

/* A source that was filled in the wanted layout: large writes are all there is to do. */
static void born(const struct lg_pair *p, const struct hawk_route *sender, struct lg_rng *g,
		 const uint8_t *want, uint8_t *out)
{
	struct lg_pair b = *p;
	struct hawk_route rt;
	struct nic n = nic_draw(g);
	uint32_t i;

	b.src.l = sender->stage;
	b.src.mem = malloc(b.src.l.bytes);
	assert_non_null(b.src.mem);
	memset(b.src.mem, 0x5a, b.src.l.bytes);
	by_cpu(sender->before, p->src.mem, p->src.l.bytes, b.src.mem, b.src.l.bytes,
	       &(struct hawk_blocks){ .src = p->src.table, .src_count = p->src.count });
	b.src.count = b.src.l.blocks;
	for (i = 0; i < b.src.count; i++)
		b.src.table[i] = i;
	b.r.flags = HAWK_RANGE_PADDED;
	assert_ok(hawk_route_open(&b.src.l, &b.dst.l, &b.r, HAWK_WAY_BIRTH, &rt));
	go(&b, &rt, &n, out);
	same(p, want, out, HAWK_WAY_BIRTH, &n);
	hawk_route_close(&rt);
	free(b.src.mem);
}

static void all_ways(struct lg_pair *p, struct lg_rng *g, uint64_t done[HAWK_WAYS])
{
	uint8_t *want = lg_expect(p), *out = malloc(p->dst.l.bytes);
	struct hawk_route rt;
	struct nic n;
	unsigned int way;
	int ret;

	assert_non_null(out);
	for (way = 0; way < HAWK_WAYS; way++) {
		ret = hawk_route_open(&p->src.l, &p->dst.l, &p->r, way, &rt);
		if (way == HAWK_WAY_BIRTH && ret == -EOPNOTSUPP)
			continue;
		assert_ok(ret);
		n = nic_draw(g);
		memcpy(out, p->dst.mem, p->dst.l.bytes);
		go(p, &rt, &n, out);
		same(p, want, out, way, &n);
		done[way]++;
		if (way == HAWK_WAY_SENDER) {
			memcpy(out, p->dst.mem, p->dst.l.bytes);
			born(p, &rt, g, want, out);
			done[HAWK_WAY_BIRTH]++;
		}
		hawk_route_close(&rt);
	}
	free(out);
	free(want);
}

static void same_bytes(void **state)
{
	uint64_t first = lg_seed(1), n = lg_ops(PAIRS), done[HAWK_WAYS] = { 0 }, i;
	struct hawk_layout_plan *plan;
	struct lg_pair p;
	struct lg_rng g;

	(void)state;
	for (i = 0; i < n; i++) {
		lg_progress(first, i, n);
		lg_pair_make(&p, first + i);
		g.state = p.seed + 1;
		if (!hawk_layout_plan_open(&p.src.l, &p.dst.l, &p.r, &plan)) {
			hawk_layout_plan_close(plan);
			all_ways(&p, &g, done);
		}
		lg_pair_free(&p);
	}
	for (i = 0; i < HAWK_WAYS; i++)
		print_message("way %llu: %llu transfers\n", (unsigned long long)i,
			      (unsigned long long)done[i]);
	assert_true(n < 100 || done[HAWK_WAY_BIRTH] >= done[HAWK_WAY_SENDER]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
