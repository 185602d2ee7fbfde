// SPDX-License-Identifier: MIT
/*
 * deliver.c - what a request waits for: its blocks on their way to the accelerator, then prefill
 *
 * Devices are queues, first come first served: host memory and flash, each with a bandwidth,
 * and the accelerator's link, through which all passes.  Offered more than it takes, the
 * link takes from both in proportion to what they offer.  Others' traffic comes first.  A
 * request's prefill begins when all its blocks have come and the accelerator is free; those
 * who are ready first come first.  A runtime that asks for its blocks layer by layer may
 * begin with the first one's, and has the last one to compute when all have come.
 *
 * Unpaced, everything is asked for when the request comes.  Paced, it is asked for as the
 * engine's hawk_pace_take() grants it (kmod/core/pace.c), on the virtual clock, which goes in
 * steps of STEP while something is under way.  Each request is urgent, with the time as its
 * deadline at which it would have all if it were alone: so one that is small overtakes one
 * that has just come, and no two wait for each other.  In turn, they tell no deadlines.
 */
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "sim.h"

#define STEP		100000u		/* ns */
#define UNIT		65536u		/* bytes, of a transfer */
#define WINDOW_STEPS	(HAWK_PACE_WINDOW_NS / STEP)
#define FLASH_TIER	1

/* A request whose blocks are on their way. */
struct job {
	struct job *next;
	struct hawk_delivery d;
	u64 at, tokens;
	u64 left[HAWK_PACE_KINDS];	/* bytes not asked for yet */
	u64 open[HAWK_PACE_KINDS];	/* not there yet */
	u64 ask[HAWK_PACE_KINDS];	/* when to ask again */
	u64 end[HAWK_PACE_KINDS];
	u64 bytes;			/* in all */
	u64 begun;			/* when its first layer was there */
	bool mixed;			/* a twentieth of it at least is from either */
};

struct piece {
	struct piece *next;
	struct job *job;
	u64 bytes;
};

struct queue {
	struct piece *first, **last;
	double bps, credit;	/* bytes that the rest of a step would have taken */
};

struct deliver {
	struct devices dev;
	struct hawk_pace p;
	struct queue q[HAWK_PACE_KINDS];
	struct job *job;		/* the oldest first */
	u64 now;
	double accel;			/* busy until then, ns */
	double spare;			/* bytes that flash could have read for promotion */
	u64 passed[WINDOW_STEPS];	/* bytes over the link, of the last steps */
	u64 window, window_most;	/* their sum, and the most of it */
	u64 step;
	double *ttft, *skew;		/* ns; share of the whole by which two streams are apart */
	u32 nttft, nskew, room;
};

struct deliver *deliver_create(const struct devices *dev, u32 requests)
{
	struct deliver *v = calloc(1, sizeof(*v));
	struct hawk_pace_tune t;
	u32 k;

	EXPECT(v);
	v->dev = *dev;
	v->room = requests;
	v->ttft = calloc(requests, sizeof(double));
	v->skew = calloc(requests, sizeof(double));
	EXPECT(v->ttft && v->skew);
	hawk_pace_init(&v->p);
	hawk_pace_tuned(&v->p, &t, NULL);
	t.link_mb_per_s = dev->link_bps / 1e6;
	t.cap_percent = dev->cap_percent;
	EXPECT(!hawk_pace_tune(&v->p, &t));
	for (k = 0; k < HAWK_PACE_KINDS; k++)
		v->q[k].last = &v->q[k].first;
	v->q[HAWK_PACE_FLASH].bps = dev->flash_bps;
	v->q[HAWK_PACE_DRAM].bps = dev->dram_bps;
	return v;
}

static void queue_add(struct queue *q, struct job *j, u64 bytes)
{
	struct piece *p = calloc(1, sizeof(*p));

	EXPECT(p);
	*p = (struct piece) { .job = j, .bytes = bytes };
	*q->last = p;
	q->last = &p->next;
}

/* What the device could bring in this step. */
static double queue_offers(const struct queue *q)
{
	double max = q->bps * STEP / 1e9 + q->credit, sum = 0;
	const struct piece *p;

	for (p = q->first; p && sum < max; p = p->next)
		sum += p->bytes;
	return sum < max ? sum : max;
}

/* @bytes of a kind have come. */
static void arrived(struct deliver *v, struct job *j, u32 k, u64 bytes)
{
	j->open[k] -= bytes;
	if (!j->open[k])
		j->end[k] = v->now;
	if (!j->begun && j->open[0] + j->open[1] <= j->bytes - j->bytes / v->dev.layers)
		j->begun = v->now;
	if (v->dev.paced)
		hawk_pace_done(&v->p, &j->d, k, FLASH_TIER, bytes, v->now);
	v->passed[v->step % WINDOW_STEPS] += bytes;
	v->window += bytes;
}

static void queue_serve(struct deliver *v, u32 k, double bytes)
{
	struct queue *q = &v->q[k];
	struct piece *p;
	u64 n;

	while ((p = q->first) && bytes >= 1) {
		n = p->bytes < bytes ? p->bytes : bytes;
		p->bytes -= n;
		bytes -= n;
		arrived(v, p->job, k, n);
		if (p->bytes)
			break;
		q->first = p->next;
		if (!q->first)
			q->last = &q->first;
		free(p);
	}
	q->credit = q->first ? bytes : 0;
}

/* It asks for what it may have now. */
static void ask(struct deliver *v, struct job *j, u32 k)
{
	u64 got, wait;

	while (j->left[k] && v->now >= j->ask[k]) {
		got = j->left[k];
		if (v->dev.paced)
			got = hawk_pace_take(&v->p, &j->d, k, FLASH_TIER, UNIT, got, v->now, &wait);
		if (!got) {
			j->ask[k] = v->now + wait;
			return;
		}
		j->left[k] -= got;
		queue_add(&v->q[k], j, got);
	}
}

/* All has come: it is the accelerator's turn. */
static void ready(struct deliver *v, struct job *j)
{
	double from = v->accel > j->begun ? v->accel : j->begun;
	double work = j->tokens * 1e9 / v->dev.prefill_tps, last = v->now + work / v->dev.layers;
	u64 first = j->end[0] < j->end[1] ? j->end[0] : j->end[1], whole = v->now - j->at;

	v->accel = from + work > last ? from + work : last;
	v->ttft[v->nttft++] = v->accel - j->at;
	if (j->mixed && whole)
		v->skew[v->nskew++] = (double)(v->now - first) / whole;
}

static void jobs_end(struct deliver *v)
{
	struct job **p = &v->job, *j;

	while ((j = *p)) {
		if (j->open[HAWK_PACE_FLASH] || j->open[HAWK_PACE_DRAM]) {
			p = &j->next;
			continue;
		}
		*p = j->next;
		if (v->dev.paced)
			hawk_pace_end(&v->p, &j->d, v->now);
		ready(v, j);
		free(j);
	}
}

static void step(struct deliver *v)
{
	double offer[HAWK_PACE_KINDS], sum = 0, part;
	double link = v->dev.link_bps * (1 - v->dev.others) * STEP / 1e9;
	struct job *j;
	u32 k;

	for (j = v->job; j; j = j->next)
		for (k = 0; k < HAWK_PACE_KINDS; k++)	/* flash first */
			ask(v, j, k);
	if (!v->q[HAWK_PACE_FLASH].first && v->accel > v->now)
		v->spare += v->dev.flash_bps * STEP / 1e9;
	v->now += STEP;
	v->step++;
	v->window -= v->passed[v->step % WINDOW_STEPS];
	v->passed[v->step % WINDOW_STEPS] = 0;
	for (k = 0; k < HAWK_PACE_KINDS; k++)
		sum += offer[k] = queue_offers(&v->q[k]);
	part = sum > link ? link / sum : 1;
	for (k = 0; k < HAWK_PACE_KINDS; k++)
		queue_serve(v, k, offer[k] * part);
	v->window_most = v->window > v->window_most ? v->window : v->window_most;
	jobs_end(v);
}

/* The clock goes on to @ns, if it is not there yet. */
void deliver_until(struct deliver *v, u64 ns)
{
	double busy;

	while (v->job && v->now < ns)
		step(v);
	if (v->now >= ns)
		return;
	busy = v->accel < ns ? v->accel : ns;
	if (busy > v->now)
		v->spare += (busy - v->now) * v->dev.flash_bps / 1e9;
	memset(v->passed, 0, sizeof(v->passed));
	v->window = 0;
	v->now = ns;
}

/* May @bytes be promoted?  Flash was idle for so long while prefill was running. */
bool deliver_promote(struct deliver *v, u64 bytes)
{
	if (v->spare < bytes)
		return false;
	v->spare -= bytes;
	return true;
}

/* Nothing waits to be promoted: what is idle now is of no use later. */
void deliver_idle(struct deliver *v)
{
	v->spare = 0;
}

/* Nanoseconds until a reload of that size would have come, as far as the engine knows. */
u64 deliver_estimate(struct deliver *v, u64 dram, u64 flash)
{
	struct hawk_pace_load load = { .dram = dram, .flash[FLASH_TIER] = flash, .link = true };

	return hawk_pace_estimate(&v->p, &load, v->now);
}

/* Nanoseconds that a reload takes with all of the link that reloads may use, at least 1. */
static u64 alone(const struct deliver *v, u64 bytes)
{
	return 1 + bytes * 1e9 / (v->dev.link_bps * v->dev.cap_percent / 100);
}

/* A request comes: bytes from host memory and flash, then so many tokens are computed. */
void deliver_request(struct deliver *v, u64 dram, u64 flash, u64 tokens)
{
	struct hawk_pace_load load = { .dram = dram, .flash[FLASH_TIER] = flash, .link = true };
	struct job *j = calloc(1, sizeof(*j)), **p;

	EXPECT(j && v->nttft < v->room);
	j->at = v->now;
	j->tokens = tokens;
	j->bytes = dram + flash;
	j->begun = j->bytes ? 0 : v->now;
	j->mixed = dram >= flash / 20 + 1 && flash >= dram / 20 + 1;
	j->left[HAWK_PACE_DRAM] = dram;
	j->left[HAWK_PACE_FLASH] = flash;
	j->open[HAWK_PACE_DRAM] = dram;
	j->open[HAWK_PACE_FLASH] = flash;
	if (!v->dev.in_turn) {
		load.urgent = true;
		load.deadline = v->now + alone(v, dram + flash);
	}
	if (v->dev.paced)
		hawk_pace_begin(&v->p, &j->d, &load, NULL, v->now);
	for (p = &v->job; *p; p = &(*p)->next)
		;
	*p = j;
	jobs_end(v);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* @v: sorted */
static double percentile(const double *v, u32 n, double share)
{
	return n ? v[(u32)((n - 1) * share)] : 0;
}

/* All comes to its end. */
void deliver_destroy(struct deliver *v, struct result *res)
{
	double sum = 0;
	u32 i;

	while (v->job)
		step(v);
	for (i = 0; i < v->nttft; i++)
		sum += v->ttft[i];
	qsort(v->ttft, v->nttft, sizeof(*v->ttft), by_value);
	qsort(v->skew, v->nskew, sizeof(*v->skew), by_value);
	res->ttft_mean = sum / v->nttft / 1e9;
	for (i = 0; i <= TTFT_STEPS; i++)
		res->ttft[i] = percentile(v->ttft, v->nttft, (double)i / TTFT_STEPS) / 1e9;
	res->ttft_p50 = res->ttft[50 * TTFT_STEPS / 100];
	res->ttft_p99 = res->ttft[99 * TTFT_STEPS / 100];
	res->skew_p99 = percentile(v->skew, v->nskew, 0.99);
	res->link_window = v->window_most / (v->dev.link_bps * HAWK_PACE_WINDOW_NS / 1e9);
	hawk_pace_fini(&v->p);
	free(v->ttft);
	free(v->skew);
	free(v);
}
