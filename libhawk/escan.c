// SPDX-License-Identifier: MIT
/*
 * escan.c - a space that is being made finds its blocks on persistent flash again
 *
 * The thread that makes the space is one of several readers, as many as it has CPUs; where
 * there is little to read it does it alone.  A reader has two lanes: while it makes blocks of
 * what has come into one, the other is read, so the drive has work as long as there is any.
 * Whoever has a lane free takes the next chunks that nobody has taken.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "epool.h"

#define READERS		8u
#define LANE_BYTES	(2u << 20)	/* of headers */
#define LANE_RUNS	32u
#define READ_BYTES	(512u << 10)	/* of headers, by one transfer */
#define PROGRESS_NS	2000000000ull
/* Pages of records: those of a run begin and end within a page. */
#define LANE_RECORDS	(LANE_BYTES / HAWK_POOL_PAGE / HAWK_PAGE_RECORDS + 2 * LANE_RUNS)
#define LANE_MEM	(LANE_BYTES + LANE_RECORDS * HAWK_POOL_PAGE)

/* A transfer. */
struct scan_read {
	u64 off;
	u8 *mem;
	u32 bytes;
	s32 res;
};

/* Neighbouring chunks, from scan.chunk[@first] on. */
struct scan_run {
	u32 first;
	u32 n;
	struct scan_read headers;
	struct scan_read records;	/* whole pages */
};

struct scan_lane {
	struct eio *io;
	u8 *mem;		/* headers, then records */
	u32 nruns;		/* 0: there was nothing left to read */
	struct scan_run run[LANE_RUNS];
};

struct scan {
	struct eio_kind kind;
	struct espace *sp;
	struct etier *t;
	u32 tier;
	u32 *chunk;		/* orphans that may be the space's, rising */
	u32 n;
	pthread_mutex_t lock;	/* guards all below */
	u32 next;		/* the first one that nobody reads yet */
	u32 done;
	u64 told;		/* when progress was last told */
};

struct scan_reader {
	struct scan *sc;
	pthread_t thread;
	u8 *mem;
	struct scan_lane lane[2];
};

static u32 chunk_header_bytes(const struct scan *sc)
{
	return hawk_pool_slots(&sc->t->pool->super) * HAWK_HEADER_BYTES;
}

/* ---- reading ---- */

static void read_place(const struct eio_kind *k, void *what, struct eio_place *p)
{
	const struct scan *sc = (const struct scan *)k;
	const struct scan_read *r = what;

	*p = (struct eio_place){ .t = sc->t, .mem = r->mem, .off = r->off, .bytes = r->bytes };
}

static void read_done(const struct eio_kind *k, void *what, s32 res)
{
	struct scan_read *r = what;

	(void)k;
	r->res = res;
}

/* The page of records that a chunk's is in. */
static u64 record_page(const struct scan *sc, u32 chunk)
{
	return hawk_record_off(&sc->t->pool->super, chunk) & ~(u64)(HAWK_POOL_PAGE - 1);
}

/* Chunks for a lane: as many as it has memory for. */
static void lane_take(struct scan *sc, struct scan_lane *l)
{
	u32 size = chunk_header_bytes(sc), room = LANE_BYTES / size, per = READ_BYTES / size;
	u32 left = room, k;

	pthread_mutex_lock(&sc->lock);
	for (l->nruns = 0; sc->next < sc->n && left && l->nruns < LANE_RUNS; sc->next += k) {
		const u32 *c = &sc->chunk[sc->next];

		for (k = 1; sc->next + k < sc->n && k < left && k < per && c[k] == c[0] + k; k++)
			;
		l->run[l->nruns++] = (struct scan_run){
			.first = sc->next, .n = k,
			.headers = { .mem = l->mem + (size_t)(room - left) * size },
		};
		left -= k;
	}
	pthread_mutex_unlock(&sc->lock);
}

/* Begin to read what is next. */
static void lane_start(struct scan *sc, struct scan_lane *l)
{
	u8 *records = l->mem + LANE_BYTES;
	u32 i, chunk;

	lane_take(sc, l);
	l->io = l->nruns ? eio_take(sc->sp->e) : NULL;
	for (i = 0; i < l->nruns; i++) {
		struct scan_run *r = &l->run[i];

		chunk = sc->chunk[r->first];
		r->headers.off = hawk_header_off(&sc->t->pool->super, chunk);
		r->headers.bytes = r->n * chunk_header_bytes(sc);
		r->records.off = record_page(sc, chunk);
		r->records.bytes = (u32)(record_page(sc, chunk + r->n - 1) - r->records.off) +
				   HAWK_POOL_PAGE;
		r->records.mem = records;
		records += r->records.bytes;
		eio_queue(l->io, &sc->kind, &r->headers);
		eio_queue(l->io, &sc->kind, &r->records);
	}
	eio_start(l->io);
}

/* ---- headers become blocks ---- */

/* What cannot be read is not adopted, and stays as it is. */
static void run_adopt(struct scan *sc, const struct scan_run *r)
{
	const struct hawk_super *s = &sc->t->pool->super;
	struct hawk_record rec;
	u32 i, chunk;

	if (r->headers.res)
		epool_failed(sc->t, false, "reading headers", r->headers.res);
	if (r->records.res)
		epool_failed(sc->t, false, "reading whose chunks are", r->records.res);
	if (r->headers.res || r->records.res)
		return;
	for (i = 0; i < r->n; i++) {
		chunk = sc->chunk[r->first + i];
		if (!hawk_record_decode(r->records.mem + (hawk_record_off(s, chunk) -
							  r->records.off),
					hawk_pool_id(s), chunk, &rec))
			hawk_space_adopt(sc->sp->space, sc->tier, &rec,
					 r->headers.mem + (size_t)i * chunk_header_bytes(sc),
					 now_ns());
	}
}

static void tell_progress(struct scan *sc, u32 more)
{
	u64 now = now_ns();
	bool tell;
	u32 done;

	pthread_mutex_lock(&sc->lock);
	sc->done += more;
	done = sc->done;
	tell = now - sc->told >= PROGRESS_NS;
	if (tell)
		sc->told = now;
	pthread_mutex_unlock(&sc->lock);
	if (tell)
		fprintf(stderr, "hawk: flash %s: space '%s': %u of %u chunks read\n",
			sc->t->pool->path, (const char *)sc->sp->geo.name, done, sc->n);
}

/* It has come. */
static void lane_end(struct scan *sc, struct scan_lane *l)
{
	u32 i, n = 0;

	eio_finish(l->io, &sc->kind, 0);
	for (i = 0; i < l->nruns; i++) {
		run_adopt(sc, &l->run[i]);
		n += l->run[i].n;
	}
	tell_progress(sc, n);
}

static void *reader(void *arg)
{
	struct scan_reader *rd = arg;
	u32 i;

	lane_start(rd->sc, &rd->lane[0]);
	for (i = 0; rd->lane[i].nruns; i = !i) {
		lane_start(rd->sc, &rd->lane[!i]);
		lane_end(rd->sc, &rd->lane[i]);
	}
	return NULL;
}

/* ---- readers ---- */

/* As many as there are CPUs, and enough to read for each. */
static u32 readers_wanted(const struct scan *sc)
{
	u64 n = (u64)sc->n * chunk_header_bytes(sc) / (2 * LANE_BYTES) + 1;
	cpu_set_t cpus;
	u32 ncpus = 1;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		ncpus = (u32)CPU_COUNT(&cpus);
	if (ncpus > READERS)
		ncpus = READERS;
	return n < ncpus ? (u32)n : ncpus;
}

static bool reader_init(struct scan *sc, struct scan_reader *rd)
{
	rd->sc = sc;
	rd->mem = aligned_alloc(HAWK_POOL_PAGE, 2 * LANE_MEM);
	rd->lane[0].mem = rd->mem;
	rd->lane[1].mem = rd->mem + LANE_MEM;
	return rd->mem;
}

/* Fewer readers than wanted will do, but for the first one. */
static int scan_all(struct scan *sc)
{
	u32 i, n = 0, want = readers_wanted(sc);
	struct scan_reader *rd = calloc(want, sizeof(*rd));
	int ret = 0;

	if (!rd || !reader_init(sc, &rd[0])) {
		ret = -ENOMEM;
		goto out_free;
	}
	for (n = 1; n < want; n++)
		if (!reader_init(sc, &rd[n]) || ethread_start(&rd[n].thread, reader, &rd[n]))
			break;
	reader(&rd[0]);
	for (i = 1; i < n; i++)
		pthread_join(rd[i].thread, NULL);

out_free:
	for (i = 0; rd && i < want; i++)
		free(rd[i].mem);
	free(rd);
	return ret;
}

static int scan_list(struct scan *sc)
{
	u32 c = HAWK_NONE, room = hawk_pool_orphans(sc->sp->e->engine, sc->tier);

	sc->chunk = calloc(room + 1, sizeof(*sc->chunk));
	if (!sc->chunk)
		return -ENOMEM;
	while (sc->n < room &&
	       (c = hawk_pool_next_orphan(sc->sp->space, sc->tier, c)) != HAWK_NONE)
		sc->chunk[sc->n++] = c;
	return 0;
}

static int adopt(struct espace *sp, u32 tier)
{
	struct scan sc = {
		.kind = { .place = read_place, .done = read_done }, .sp = sp, .tier = tier,
		.t = &sp->e->tier[tier], .told = now_ns(), .lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int ret = scan_list(&sc);

	if (!ret && sc.n)
		ret = scan_all(&sc);
	free(sc.chunk);
	return ret;
}

static void tell_damage(struct espace *sp)
{
	struct hawk_recovery r;

	hawk_space_recovery(sp->space, &r);
	if (r.corrupt || r.no_room)
		fprintf(stderr, "hawk: space '%s': %llu blocks found on flash, %llu headers damaged, "
			"no room for %llu\n", (const char *)sp->geo.name,
			(unsigned long long)r.blocks, (unsigned long long)r.corrupt,
			(unsigned long long)r.no_room);
}

/**
 * epool_find() - what a space that is being made has on persistent flash is its again
 *
 * Takes the time of reading its headers.
 */
int epool_find(struct espace *sp)
{
	int ret = 0;
	u32 t;

	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++)
		if (hawk_space_kept(sp->space, t))
			ret = adopt(sp, t);
	if (!ret)
		ret = hawk_space_settle(sp->space);
	tell_damage(sp);
	return ret;
}
