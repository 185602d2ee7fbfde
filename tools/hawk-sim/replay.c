// SPDX-License-Identifier: MIT
/*
 * replay.c - one run of a load: requests in order, the engine as the cache, a virtual clock
 *
 * A request looks all its blocks up, has those in memory and on flash brought to the
 * accelerator, and computes the others.  What lies behind the first missing block is of no
 * use to today's engines, which compute from there on: times are reckoned so (deliver.c), and
 * hits are counted both ways.
 *
 * Unpaced, what is on flash is reloaded to memory on its way, when the request comes.  Paced,
 * it stays where it is, and is promoted when flash is idle while a prefill is running; and
 * of what is there only so much is reloaded as is quicker than to compute it.
 */
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "sim.h"

#define SPLITS	16	/* parts of a prompt at which reloading may end */

const char * const policy_name[POLICIES] = {
	"dram", "all", "second", "formula", "ours", "oracle", "random",
};

/* One run, and blocks that were served from flash: the oldest first. */
struct run_state {
	const struct load *l;
	const struct run *r;
	struct cache *c;
	struct deliver *v;
	struct result *res;
	u8 *place;
	u32 *pending;
	u32 npending, first, room;
};

static u32 turn_row(u32 turn)
{
	return turn == 1 ? 0 : turn == 2 ? 1 : turn >= 3 && turn <= 15 ? 2 : 3;
}

static void pending_add(struct run_state *s, u32 block)
{
	if (s->npending == s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->pending = realloc(s->pending, s->room * sizeof(*s->pending));
		EXPECT(s->pending);
	}
	s->pending[s->npending++] = block;
}

/* What the time since the last request sufficed for. */
static void promote(struct run_state *s, u64 now)
{
	u32 block;

	while (s->first < s->npending) {
		block = s->pending[s->first];
		if (!deliver_promote(s->v, s->r->dev.block_bytes))
			return;
		s->first++;
		s->res->promoted += cache_fetch(s->c, block, now);
	}
	deliver_idle(s->v);
	s->first = 0;
	s->npending = 0;
}

/* Of @n blocks that are there, how many are better reloaded than computed? */
static u32 split(struct run_state *s, u32 n)
{
	const struct devices *d = &s->r->dev;
	double best = 0, cost, token = 1e9 / d->prefill_tps;
	u64 dram = 0, flash = 0;
	u32 i, at = 0;

	for (i = 0; i <= n; i++) {
		if (!i || i == n || !(i % (n / SPLITS + 1))) {
			cost = deliver_estimate(s->v, dram * d->block_bytes, flash * d->block_bytes) +
			       (n - i) * token * s->l->block_tokens;
			if (!i || cost < best) {
				best = cost;
				at = i;
			}
		}
		if (i < n) {
			dram += s->place[i] == PLACE_DRAM;
			flash += s->place[i] == PLACE_FLASH;
		}
	}
	return at;
}

/* The request's blocks are known: it waits for them, and for what must be computed. */
static void answer(struct run_state *s, const struct load_request *q)
{
	u64 dram = 0, flash = 0, have, bytes = s->r->dev.block_bytes, bt = s->l->block_tokens;
	u32 i, n = 0;

	while (n < q->n && s->place[n] != PLACE_NONE)
		n++;
	if (s->r->dev.paced) {
		s->res->recomputed += n;
		n = split(s, n);
		s->res->recomputed -= n;
	}
	for (i = 0; i < n; i++) {
		dram += s->place[i] == PLACE_DRAM;
		flash += s->place[i] == PLACE_FLASH;
	}
	have = n * bt;
	deliver_request(s->v, dram * bytes, flash * bytes,
			have + bt > q->tokens ? bt : q->tokens - have);
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

static void request(struct run_state *s, const struct load_request *q)
{
	const u32 *ref = s->l->ref + q->first;
	struct cache *c = s->c;
	u32 i;

	if (s->v) {
		deliver_until(s->v, q->at);
		promote(s, q->at);
	}
	for (i = 0; i < q->n && !s->r->in_order; i++)
		s->place[i] = cache_look(c, ref[i], q->at);
	for (i = 0; i < q->n; i++) {
		if (s->r->in_order)
			s->place[i] = cache_look(c, ref[i], q->at);
		if (s->place[i] == PLACE_NONE)
			cache_fill(c, ref[i], q->at);
		else if (s->place[i] == PLACE_FLASH && s->v && s->r->dev.paced)
			pending_add(s, ref[i]);
		else if (s->place[i] == PLACE_FLASH)
			cache_fetch(c, ref[i], q->at);
	}
	count(s->res, q, s->place);
	if (s->v)
		answer(s, q);
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
	u64 period = r->period ?: HAWK_DAY_NS, *sum = calloc(l->nreq, sizeof(*sum));
	struct run_state s = { .l = l, .r = r, .res = res };
	u32 i, most = 0;

	memset(res, 0, sizeof(*res));
	res->run = *r;
	if (!res->run.flash)
		res->run.flash = l->nblocks + 1;
	for (i = 0; i < l->nreq; i++)
		most = l->req[i].n > most ? l->req[i].n : most;
	s.place = calloc(most + 1, 1);
	EXPECT(s.place && sum);
	s.c = cache_create(l, &res->run);
	s.v = r->ttft ? deliver_create(&r->dev, l->nreq) : NULL;
	for (i = 0; i < l->nreq; i++) {
		cache_at(s.c, i);
		request(&s, &l->req[i]);
		sum[i] = cache_writes(s.c);
	}
	res->peak = peak(l, sum, period);
	res->peak_control = peak(l, sum, period / HAWK_BUDGET_TICKS);
	if (s.v)
		deliver_destroy(s.v, res);
	cache_destroy(s.c, res);
	free(s.pending);
	free(s.place);
	free(sum);
}
