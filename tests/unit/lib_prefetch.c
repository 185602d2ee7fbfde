// SPDX-License-Identifier: MIT
/*
 * lib_prefetch.c - groups of layers fetched ahead come in time, from a device that is as
 * fast as it was told to be
 *
 * The device is firmware-models/accel.c with one engine, over /dev/hawk: with HAWK_URL set it
 * must be there, on the embedded backend the tests of it skip.  Two clocks: the model's own (busy_ns), which counts what latency and
 * bandwidth say and nothing else, so what is asserted by it holds on a machine of any
 * speed; and the real one, by which a device is never faster than it was told to be.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfixture.h"

#define LAYERS		8u
#define CANDIDATES	2u
#define LISTS		(LAYERS * CANDIDATES)
#define ROWS		32u		/* that a candidate would like, per layer */
#define CHOICE		64u		/* rows of a layer that are drawn from */
#define TRIES		256u		/* blocks of a layer made for that */
#define GROUPS		8u
#define COMPUTE_NS	40000000ull	/* of a group of layers */

/* ---- the model ---- */

static void param_path(char *path, size_t len, const char *name)
{
	snprintf(path, len, "/sys/module/hawk_accel/parameters/%s", name);
}

static void param_set(const char *name, unsigned long v)
{
	char path[128];
	FILE *f;

	param_path(path, sizeof(path), name);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%lu\n", v);
	assert_int_equal(fclose(f), 0);
}

static uint64_t param_get(const char *name)
{
	unsigned long long v = 0;
	char path[128];
	FILE *f;

	param_path(path, sizeof(path), name);
	f = fopen(path, "r");
	if (!f)
		return 0;
	assert_int_equal(fscanf(f, "%llu", &v), 1);
	fclose(f);
	return v;
}

/* Blocks on the model, of each layer some that are no neighbours of each other. */
struct world {
	struct hawk *h;
	struct hawk_kv *kv;
	unsigned int tier;
	uint32_t tok[LAYERS][CHOICE];
	uint64_t rng;
	/* the lists of a group */
	uint64_t lid[LISTS * ROWS];
	uint32_t count[LISTS];
	uint64_t busy;		/* before it was issued */
};

static uint32_t below(struct world *w, uint32_t n)
{
	w->rng = w->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((w->rng >> 33) % n);
}

static bool find_model(struct hawk *h, unsigned int *tier)
{
	struct hawk_tier_info info;

	for (*tier = 0; *tier < HAWK_TIERS_MAX; ++*tier)
		if (!hawk_tier_stat(h, *tier, &info) && info.kind == HAWK_TIER_MODEL)
			return true;
	return false;
}

/* A block's first bytes tell which it is. */
static uint64_t mark(uint32_t layer, uint32_t tok)
{
	return HAWK_LID(1, layer, 0, tok);
}

/* Blocks whose frame is even never touch: each is a transfer of its own. */
static void make_blocks(struct world *w)
{
	uint32_t layer, i, n;

	for (layer = 0; layer < LAYERS; layer++) {
		for (i = 0, n = 0; n < CHOICE; i++) {
			struct hawk_item it = { .lid = mark(layer, i * FX_TOKENS) };

			assert_true(i < TRIES);
			assert_int_equal(hawk_alloc(w->kv, &it, 1, NULL), 1);
			memset(hawk_addr(w->kv, it.vt), 0, FX_BLOCK);
			memcpy(hawk_addr(w->kv, it.vt), &it.lid, sizeof(it.lid));
			if (HAWK_VT_FRAME(it.vt) % 2 == 0)
				w->tok[layer][n++] = i * FX_TOKENS;
			it.vt = 0;
			assert_int_equal(hawk_put(w->kv, &it, 1, NULL), 1);
		}
	}
}

static void world_open(struct world *w)
{
	struct hawk_kv_params p = {
		.block_bytes = FX_BLOCK, .block_tokens = FX_TOKENS, .layers = LAYERS,
		.head_groups = 1, .max_blocks = LAYERS * TRIES, .buckets = 1,
	};

	memset(w, 0, sizeof(*w));
	w->rng = 7;
	assert_ok(hawk_open(getenv("HAWK_URL") ? getenv("HAWK_URL") : "embed:?dram=2M", &w->h));
	if (!find_model(w->h, &w->tier)) {
		hawk_close(w->h);
		if (getenv("HAWK_URL"))
			fail_msg("%s has no tier of hawk_accel.ko", getenv("HAWK_URL"));
		skip();
	}
	param_set("bandwidth", 0);
	param_set("latency_us", 0);
	p.quota[w->tier].max_bytes = (uint64_t)LAYERS * TRIES * FX_BLOCK;
	assert_ok(hawk_kv_create(w->h, &p, &w->kv));
	assert_ok(hawk_ring_open(w->kv, 1024, -1));
	make_blocks(w);
}

static void world_close(struct world *w)
{
	hawk_kv_close(w->kv);
	hawk_close(w->h);
}

/* ---- groups ---- */

/* Best rows first; every other row of the second candidate is the first one's too. */
static void lists_draw(struct world *w)
{
	uint32_t layer, i, k, swap, *tok, n = 0;

	for (layer = 0; layer < LAYERS; layer++) {
		tok = w->tok[layer];
		for (i = 0; i < CHOICE; i++) {
			k = i + below(w, CHOICE - i);
			swap = tok[i], tok[i] = tok[k], tok[k] = swap;
		}
		for (i = 0; i < ROWS; i++)
			w->lid[n++] = mark(layer, tok[i]);
		for (i = 0; i < ROWS; i++)
			w->lid[n++] = mark(layer, tok[i % 2 ? ROWS + i : i]);
		w->count[2 * layer] = ROWS;
		w->count[2 * layer + 1] = ROWS;
	}
}

static int issue(struct world *w, struct hawk_prefetch *pf)
{
	lists_draw(w);
	w->busy = param_get("busy_ns");
	return hawk_prefetch_issue(pf, w->lid, w->count, LISTS, NULL);
}

/* What the device has had to do since the group was issued. */
static uint64_t busy_since(const struct world *w)
{
	return param_get("busy_ns") - w->busy;
}

enum clock { MODEL, REAL };

static void reap_group(struct world *w, struct hawk_prefetch *pf, enum clock clock)
{
	struct pollfd p = { .fd = hawk_ring_fd(w->kv), .events = POLLIN };
	struct hawk_cqe cqe;
	int ret = 0;

	while (ret != 1) {
		while (hawk_reap(w->kv, &cqe, 1) != 1)
			assert_int_equal(poll(&p, 1, 60000), 1);
		if (cqe.flags == HAWK_CQE_BATCH && clock == MODEL)
			cqe.vt = busy_since(w);
		ret = hawk_prefetch_complete(pf, &cqe);
		assert_true(ret >= 0);
	}
}

/* The oldest group that has come: what attention would read is what its lists named. */
static void compute(const struct hawk_prefetch_group *g, const uint64_t *lid)
{
	unsigned int i;

	for (i = 0; i < g->rows; i++) {
		assert_int_equal(g->status[i], 0);
		assert_memory_equal((const uint8_t *)g->buf + g->remap[i] * (size_t)FX_BLOCK,
				    &lid[i / g->cut * ROWS + i % g->cut], sizeof(*lid));
	}
}

struct run {
	enum clock clock;
	bool cap;
	/* out, of the last group */
	unsigned int blocks;
	uint64_t busy;
	unsigned int late;	/* groups that took longer than the one before computes */
	unsigned int fetched;	/* groups that were fetched while another one computed */
};

/*
 * While group g computes, group g + 1 is fetched: the device has been busy with it for
 * so long.  The first group is fetched to measure with.
 */
static void run_groups(struct world *w, struct run *r)
{
	struct hawk_gather_budget b = {
		.block_bytes = FX_BLOCK, .group = LAYERS,
		.compute_ns = r->cap ? COMPUTE_NS : 1ull << 50,
	};
	uint64_t lid[LISTS * ROWS];
	struct hawk_prefetch_group g;
	struct hawk_prefetch *pf;
	uint32_t group;

	r->late = 0;
	r->fetched = 0;
	assert_ok(hawk_prefetch_open(w->kv, &b, LISTS * ROWS, 5, &pf));
	assert_true(issue(w, pf) > 0);
	reap_group(w, pf, r->clock);
	for (group = 0; group < GROUPS; group++) {
		assert_ok(hawk_prefetch_ready(pf, &g));
		memcpy(lid, w->lid, sizeof(lid));
		if (issue(w, pf) == 0) {	/* so slow is the machine */
			assert_int_equal(r->clock, REAL);
			hawk_prefetch_release(pf);
			r->blocks = 0;
			break;
		}
		compute(&g, lid);
		hawk_prefetch_release(pf);
		reap_group(w, pf, r->clock);
		assert_ok(hawk_prefetch_ready(pf, &g));
		r->busy = busy_since(w);
		r->blocks = g.blocks;
		r->late += r->busy > COMPUTE_NS;
		r->fetched++;
	}
	if (!hawk_prefetch_ready(pf, &g))
		hawk_prefetch_release(pf);
	assert_ok(hawk_prefetch_close(pf));
	print_message("# %lu MB/s, %lu us, %s clock, %s: %u blocks, %.1f ms of %.1f ms\n",
		      (unsigned long)param_get("bandwidth"),
		      (unsigned long)param_get("latency_us"), r->clock == MODEL ? "model" : "real",
		      r->cap ? "cap" : "no cap", r->blocks, (double)r->busy / 1e6,
		      COMPUTE_NS / 1e6);
}

/* What the device can bring while a group computes. */
static unsigned int blocks_in_time(unsigned long mb_per_s, unsigned long latency_us)
{
	return (unsigned int)(COMPUTE_NS / (FX_BLOCK * 1000ull / mb_per_s + latency_us * 1000));
}

/* Twice the bandwidth, twice the rows; what is fetched comes in time and fills the time. */
static void rows_follow_the_bandwidth(void **state)
{
	unsigned int mb, rows, was = 0;
	struct run r = { .cap = true };
	struct world w;

	(void)state;
	world_open(&w);
	for (mb = 32; mb <= 128; mb *= 2) {
		param_set("bandwidth", mb);
		run_groups(&w, &r);
		rows = r.blocks / LAYERS;
		assert_int_equal(r.late, 0);
		assert_int_equal(r.blocks % LAYERS, 0);
		/* a union grows by up to 2 rows per layer when its lists grow by one */
		assert_in_range(r.blocks, blocks_in_time(mb, 0) - 3 * LAYERS + 1,
				blocks_in_time(mb, 0));
		if (was)
			assert_in_range(rows, 2 * was - 2, 2 * was + 3);
		was = rows;
	}
	world_close(&w);
}

/* Where each transfer costs something by itself, that is part of the rate. */
static void latency_counts(void **state)
{
	struct run r = { .cap = true };
	struct world w;

	(void)state;
	world_open(&w);
	param_set("bandwidth", 64);
	param_set("latency_us", 256);	/* as long as the bytes */
	run_groups(&w, &r);
	assert_int_equal(r.late, 0);
	assert_in_range(r.blocks, blocks_in_time(64, 256) - 3 * LAYERS + 1,
			blocks_in_time(64, 256));
	world_close(&w);
}

/* All that the candidates would like is too much. */
static void too_late_without_a_cap(void **state)
{
	struct run r = { .cap = false };
	struct world w;

	(void)state;
	world_open(&w);
	param_set("bandwidth", 128);
	run_groups(&w, &r);
	assert_int_equal(r.blocks, LAYERS * (ROWS + ROWS / 2));
	assert_int_equal(r.late, GROUPS);
	world_close(&w);
}

/* By the real clock a slow machine makes the device slower: fewer rows, never late. */
static void by_the_real_clock(void **state)
{
	struct run r = { .clock = REAL, .cap = true };
	struct world w;

	(void)state;
	world_open(&w);
	param_set("bandwidth", 64);
	run_groups(&w, &r);
	assert_int_equal(r.late, 0);
	assert_true(r.blocks <= blocks_in_time(64, 0));
	world_close(&w);
	if (!r.fetched)
		skip();		/* not one group: that says nothing */
}

/* A test that fails must not leave the device so: the next one would wait without end. */
static int device_unstick(void **state)
{
	char path[128];

	(void)state;
	param_path(path, sizeof(path), "stuck");
	if (access(path, W_OK) == 0)
		param_set("stuck", 0);
	return 0;
}

/* A group is computed while not a byte of the next one moves, which is under way. */
static void fetched_while_computing(void **state)
{
	struct hawk_gather_budget b = {
		.block_bytes = FX_BLOCK, .group = LAYERS, .compute_ns = COMPUTE_NS,
	};
	uint64_t transfers, lid[LISTS * ROWS];
	struct hawk_prefetch_group g, next;
	struct hawk_prefetch *pf;
	struct world w;

	(void)state;
	world_open(&w);
	assert_ok(hawk_prefetch_open(w.kv, &b, LISTS * ROWS, 5, &pf));
	assert_true(issue(&w, pf) > 0);
	reap_group(&w, pf, MODEL);
	assert_ok(hawk_prefetch_ready(pf, &g));
	memcpy(lid, w.lid, sizeof(lid));
	param_set("stuck", 1);
	transfers = param_get("transfers");
	assert_true(issue(&w, pf) > 0);
	compute(&g, lid);
	assert_int_equal(hawk_prefetch_close(pf), -EBUSY);
	assert_int_equal(param_get("transfers"), transfers);
	hawk_prefetch_release(pf);
	assert_int_equal(hawk_prefetch_ready(pf, &next), -EAGAIN);
	param_set("stuck", 0);
	reap_group(&w, pf, MODEL);
	assert_ok(hawk_prefetch_ready(pf, &next));
	assert_true(next.buf != g.buf);
	compute(&next, w.lid);
	assert_true(param_get("transfers") >= transfers + next.blocks);
	hawk_prefetch_release(pf);
	assert_ok(hawk_prefetch_close(pf));
	world_close(&w);
}

/* ---- any device, its completions told as they might be ---- */

static void complete(struct fx *f, struct hawk_prefetch *pf, uint64_t ns)
{
	struct pollfd p = { .fd = hawk_ring_fd(f->kv), .events = POLLIN };
	struct hawk_prefetch_group g;
	struct hawk_cqe cqe;

	while (hawk_prefetch_ready(pf, &g)) {
		while (hawk_reap(f->kv, &cqe, 1) != 1)
			assert_int_equal(poll(&p, 1, 60000), 1);
		if (cqe.flags == HAWK_CQE_BATCH)
			cqe.vt = ns;
		assert_true(hawk_prefetch_complete(pf, &cqe) >= 0);
	}
	hawk_prefetch_release(pf);
}

/* Once so slow that nothing comes in time: it is not given up, and not believed at once. */
static void slow_once(void **state)
{
	struct hawk_gather_budget b = {
		.block_bytes = FX_BLOCK, .group = 1, .compute_ns = 1000000,
	};
	uint32_t count = 8, none = 0, without = 0;
	struct hawk_prefetch *pf;
	uint64_t lid[8];
	struct fx f;
	int ret;

	(void)state;
	fx_open(&f, 2 * HAWK_CHUNK_BYTES, 0);
	fx_put(f.kv, 0, 8, 1);
	for (ret = 0; ret < 8; ret++)
		lid[ret] = fx_lid(ret);
	assert_ok(hawk_ring_open(f.kv, 64, -1));
	assert_ok(hawk_prefetch_open(f.kv, &b, 8, 5, &pf));
	assert_int_equal(hawk_prefetch_issue(pf, lid, &count, 1, NULL), 1);
	complete(&f, pf, b.compute_ns / 8);
	assert_int_equal(hawk_prefetch_issue(pf, lid, &count, 1, NULL), 7);
	complete(&f, pf, 7 * 3 * b.compute_ns);		/* each 3 times too slow */
	/* a group that wants nothing tells nothing of the device */
	for (ret = 0; ret < 20; ret++)
		assert_int_equal(hawk_prefetch_issue(pf, lid, &none, 1, NULL), 0);
	while (!(ret = hawk_prefetch_issue(pf, lid, &count, 1, NULL)))
		assert_true(++without < 20);
	assert_in_range(without, 4, 6);		/* 1.25^5 is 3 */
	assert_int_equal(ret, 1);
	complete(&f, pf, b.compute_ns / 8);
	assert_in_range(hawk_prefetch_issue(pf, lid, &count, 1, NULL), 2, 4);
	complete(&f, pf, 1);
	assert_ok(hawk_prefetch_close(pf));
	fx_close(&f);
}

/* That nothing comes for want of room is not the device's fault. */
static void no_room(void **state)
{
	struct hawk_gather_budget b = {
		.block_bytes = FX_BLOCK, .group = 1, .compute_ns = 1000000,
	};
	uint32_t count = 8, one[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	struct hawk_prefetch *pf;
	uint64_t lid[8];
	unsigned int cut;
	struct fx f;
	int i;

	(void)state;
	fx_open(&f, 2 * HAWK_CHUNK_BYTES, 0);
	fx_put(f.kv, 0, 8, 1);
	for (i = 0; i < 8; i++)
		lid[i] = fx_lid(i);
	assert_ok(hawk_ring_open(f.kv, 64, -1));
	assert_ok(hawk_prefetch_open(f.kv, &b, 4, 5, &pf));
	assert_int_equal(hawk_prefetch_issue(pf, lid, &count, 1, NULL), 1);
	complete(&f, pf, b.compute_ns * 2 / 5);
	for (i = 0; i < 20; i++)
		assert_int_equal(hawk_prefetch_issue(pf, lid, one, 8, &cut), 0);
	assert_int_equal(cut, 0);
	/* 2 come in time, as before */
	assert_int_equal(hawk_prefetch_issue(pf, lid, &count, 1, NULL), 2);
	complete(&f, pf, b.compute_ns);
	assert_ok(hawk_prefetch_close(pf));
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_once),
		cmocka_unit_test(no_room),
		cmocka_unit_test(rows_follow_the_bandwidth),
		cmocka_unit_test(latency_counts),
		cmocka_unit_test(too_late_without_a_cap),
		cmocka_unit_test(by_the_real_clock),
		cmocka_unit_test_teardown(fetched_while_computing, device_unstick),
	};

	return cmocka_run_group_tests_name("lib_prefetch", tests, NULL, NULL);
}
