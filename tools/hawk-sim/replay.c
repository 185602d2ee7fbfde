// SPDX-License-Identifier: MIT
/*
 * replay.c - one run of a load: requests in order, model devices, a virtual clock
 *
 * A request looks all its blocks up, reads those on flash, and computes the others.  What
 * lies behind the first missing block is of no use to today's engines, which compute from
 * there on: times are reckoned so, and hits are counted both ways.
 *
 * Devices are queues: flash and the link from host memory work side by side, then the
 * accelerator computes what is missing, at least one block.  The time to the first token is
 * when that has ended, from when the request came.
 */
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "sim.h"

const char * const policy_name[POLICIES] = {
	"dram", "all", "second", "formula", "ours", "oracle", "random",
};

struct clock {
	double flash, link, accel;	/* free from then on, s */
	double *ttft;
	u32 n;
};

static u32 turn_row(u32 turn)
{
	return turn == 1 ? 0 : turn == 2 ? 1 : turn >= 3 && turn <= 15 ? 2 : 3;
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* A request with so many blocks in reach, the rest computed. */
static void answer(struct clock *k, const struct devices *d, double at, u32 tokens, u32 bt,
		   u32 dram, u32 flash)
{
	u64 have = (u64)(dram + flash) * bt;
	u64 compute = have + bt > tokens ? bt : tokens - have;
	double ready = at;

	if (flash) {
		k->flash = later(k->flash, at) + (double)flash * d->block_bytes / d->flash_bps;
		ready = k->flash;
	}
	if (dram) {
		k->link = later(k->link, at) + (double)dram * d->block_bytes / d->dram_bps;
		ready = later(ready, k->link);
	}
	k->accel = later(k->accel, ready) + compute / d->prefill_tps;
	k->ttft[k->n++] = k->accel - at;
}

static void count(struct result *res, const struct load_request *q, const u8 *place)
{
	struct turn_row *row = &res->turn[turn_row(q->turn)];
	bool reach = true;
	u32 i;

	for (i = 0; i < q->n; i++) {
		bool dram = place[i] == PLACE_DRAM, flash = place[i] == PLACE_FLASH;

		reach &= dram || flash;
		res->accesses++;
		row->blocks++;
		res->dram_hits += dram;
		res->flash_hits += flash;
		res->dram_used += dram && reach;
		res->flash_used += flash && reach;
		row->dram += dram;
		row->flash += flash;
	}
}

static void request(struct cache *c, const struct load *l, const struct run *r,
		    const struct load_request *q, u8 *place, struct result *res,
		    struct clock *k)
{
	const u32 *ref = l->ref + q->first;
	u64 used[2] = { res->dram_used, res->flash_used };
	u32 i;

	for (i = 0; i < q->n && !r->in_order; i++)
		place[i] = cache_look(c, ref[i], q->at);
	for (i = 0; i < q->n; i++) {
		if (r->in_order)
			place[i] = cache_look(c, ref[i], q->at);
		if (place[i] == PLACE_FLASH)
			cache_fetch(c, ref[i], q->at);
		else if (place[i] == PLACE_NONE)
			cache_fill(c, ref[i], q->at);
	}
	count(res, q, place);
	answer(k, &r->dev, q->at / 1e9, q->tokens, l->block_tokens, res->dram_used - used[0],
	       res->flash_used - used[1]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void times(struct result *res, struct clock *k)
{
	double sum = 0;
	u32 i;

	for (i = 0; i < k->n; i++)
		sum += k->ttft[i];
	qsort(k->ttft, k->n, sizeof(*k->ttft), by_value);
	res->ttft_mean = sum / k->n;
	res->ttft_p50 = k->ttft[k->n / 2];
	res->ttft_p99 = k->ttft[(u32)(k->n * 0.99)];
}

/* Most that was written within any @ns.  @sum: writes up to and with each request */
static u64 peak(const struct load *l, const u64 *sum, u64 ns)
{
	u64 most = 0, n;
	u32 i, from = 0;

	for (i = 0; i < l->nreq; i++) {
		while (l->req[from].at + ns <= l->req[i].at)
			from++;
		n = sum[i] - (from ? sum[from - 1] : 0);
		most = n > most ? n : most;
	}
	return most;
}

void replay(const struct load *l, const struct run *r, struct result *res)
{
	struct clock k = { .ttft = calloc(l->nreq, sizeof(double)) };
	u64 period = r->period ?: HAWK_DAY_NS, *sum = calloc(l->nreq, sizeof(*sum));
	struct cache *c;
	u32 i, most = 0;
	u8 *place;

	memset(res, 0, sizeof(*res));
	res->run = *r;
	if (!res->run.flash)
		res->run.flash = l->nblocks + 1;
	for (i = 0; i < l->nreq; i++)
		most = l->req[i].n > most ? l->req[i].n : most;
	place = calloc(most + 1, 1);
	EXPECT(k.ttft && place && sum);
	c = cache_create(l, &res->run);
	for (i = 0; i < l->nreq; i++) {
		cache_at(c, i);
		request(c, l, r, &l->req[i], place, res, &k);
		sum[i] = cache_writes(c);
	}
	res->peak = peak(l, sum, period);
	res->peak_control = peak(l, sum, period / HAWK_BUDGET_TICKS);
	times(res, &k);
	cache_destroy(c, res);
	free(sum);
	free(place);
	free(k.ttft);
}
