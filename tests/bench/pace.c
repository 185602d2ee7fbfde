// SPDX-License-Identifier: MIT
/*
 * pace.c - gathers of sessions that lie half in DRAM and half on flash
 *
 * Fills a space with three quarters of a flash tier (-s MiB of -f FILE), the last blocks of
 * which are in DRAM, too, and prints "ready".  For each line on standard input:
 *
 *	agents	SESSIONS sessions in turn take TURNS turns, with a pause of up to -m ms before
 *		each; the context grows by GROW blocks a turn, half of it on flash
 *	one	one session gathers LARGE blocks, TURNS times
 *	four	four such gathers are begun together, TURNS times
 *	a rate	as agents, but what is on flash is computed instead, so many tokens a second,
 *		by an accelerator that does that for one session at a time
 *
 * It prints a JSON line for each gather and "end".  pace.py sets the pace and compares.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "space.h"

#define SESSIONS	4u
#define TURNS		12u
#define FIRST		16u	/* blocks of a session's first turn */
#define GROW		8u
#define LARGE		96u	/* blocks of each that is not an agent's */
#define MOST		(FIRST + TURNS * GROW)

struct pace {
	struct bench_space space;
	uint32_t block;
	uint32_t on_flash;	/* blocks 0 to this one are on flash only */
	uint32_t dram_first;	/* blocks from this one on are in DRAM */
	uint32_t dram;
	uint32_t host;		/* tier ids */
	uint32_t blk;
	unsigned int pause_ms;
	bool agents;
	double prefill;		/* tokens per second, 0: nothing is computed */
	pthread_mutex_t accel;	/* who has it computes */
	pthread_barrier_t together;
};

struct session {
	struct pace *p;
	pthread_t thread;
	uint32_t id;
	uint64_t rng;
	uint8_t *buf;
};

static void find_tiers(struct pace *p)
{
	struct hawk_tier_info info;
	struct hawk_query q;
	uint32_t t;

	bench_check(hawk_device_query(p->space.h, &q), hawk_strerror_last());
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(q.tiers & 1u << t) || hawk_tier_stat(p->space.h, t, &info))
			continue;
		*(info.kind == HAWK_TIER_BLK ? &p->blk : &p->host) = t;
	}
}

static void say(const struct session *s, uint32_t turn, uint64_t ns, const struct hawk_gather *g)
{
	printf("{\"session\": %u, \"turn\": %u, \"ns\": %llu, \"flash\": %llu, \"dram\": %llu, "
	       "\"flash_ns\": %llu, \"dram_ns\": %llu}\n", s->id, turn, (unsigned long long)ns,
	       (unsigned long long)g->tier[s->p->blk].blocks * s->p->block,
	       (unsigned long long)g->tier[s->p->host].blocks * s->p->block,
	       (unsigned long long)g->tier[s->p->blk].ns,
	       (unsigned long long)g->tier[s->p->host].ns);
}

static void rest(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000 * 1000) };

	nanosleep(&t, NULL);
}

/* What is not in DRAM of @n blocks. */
static void compute(struct session *s, uint32_t nr, uint32_t n)
{
	struct hawk_gather none = { 0 };
	uint64_t t0 = bench_now();

	pthread_mutex_lock(&s->p->accel);
	rest((uint64_t)(n / 2 * SPACE_TOKENS * 1e6 / s->p->prefill));
	pthread_mutex_unlock(&s->p->accel);
	say(s, nr, bench_now() - t0, &none);
}

/* @n blocks, half of them from each of two runs of neighbours. */
static void turn(struct session *s, uint32_t nr, uint32_t n)
{
	struct pace *p = s->p;
	uint32_t at = (uint32_t)(bench_rand(&s->rng) % (p->on_flash - n / 2));
	uint32_t warm = p->dram_first + (uint32_t)(bench_rand(&s->rng) % (p->dram - n / 2));
	uint32_t remap[MOST], i;
	int32_t status[MOST];
	uint64_t lid[MOST], t0, ns;
	struct hawk_gather_lists l = {
		.lid = lid, .count = &n, .lists = 1, .remap = remap, .status = status,
		.buf = s->buf, .buf_bytes = (uint64_t)n * p->block,
	};
	struct hawk_gather g;

	for (i = 0; i < n; i++)
		lid[i] = space_lid(i < n / 2 ? at + i : warm + i - n / 2);
	t0 = bench_now();
	if (hawk_gather(p->space.kv, &l, NULL, &g) != (int)n)
		bench_die("gather: %s", hawk_strerror_last());
	ns = bench_now() - t0;
	if (bench_sum(s->buf + (uint64_t)remap[0] * p->block, p->block) !=
	    space_block_sum(at, p->block))
		bench_die("block %u came with other bytes", at);
	say(s, nr, ns, &g);
}

static void *session_run(void *arg)
{
	struct session *s = arg;
	struct pace *p = s->p;
	uint32_t i;

	for (i = 0; i < TURNS; i++) {
		uint64_t pause = bench_rand(&s->rng) % (1000ull * p->pause_ms);

		if (p->agents)
			rest(pause);
		else
			pthread_barrier_wait(&p->together);
		if (p->prefill > 0)
			compute(s, i, FIRST + i * GROW);
		else
			turn(s, i, p->agents ? FIRST + i * GROW : LARGE);
	}
	return NULL;
}

static void measure(struct pace *p, uint32_t sessions)
{
	struct session s[SESSIONS];
	uint32_t i;

	pthread_barrier_init(&p->together, NULL, sessions);
	for (i = 0; i < sessions; i++) {
		s[i] = (struct session){ .p = p, .id = i, .rng = 4711 + i };
		s[i].buf = bench_table((uint64_t)MOST * p->block);
		if (pthread_create(&s[i].thread, NULL, session_run, &s[i]))
			bench_die("no thread");
	}
	for (i = 0; i < sessions; i++) {
		pthread_join(s[i].thread, NULL);
		free(s[i].buf);
	}
	pthread_barrier_destroy(&p->together);
	puts("end");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .block_bytes = 64 << 10, .mib = 256, .ms = 2000 };
	struct pace p = { .accel = PTHREAD_MUTEX_INITIALIZER };
	uint64_t flash, dram;
	uint32_t blocks;
	char line[32], url[4096];

	bench_args(&o, argc, argv);
	if (!o.file)
		bench_die("-f FILE, the drive, is missing");
	flash = o.mib * SPACE_MIB;
	dram = flash / 4;
	snprintf(url, sizeof(url), "embed:?dram=%llu&flash=%s&flash_size=%llu",
		 (unsigned long long)dram, o.file, (unsigned long long)flash);
	space_open(&p.space, o.url ? o.url : url, dram, o.file, flash);
	find_tiers(&p);
	p.block = o.block_bytes;
	p.pause_ms = o.ms;
	blocks = (uint32_t)(flash / p.block / 4 * 3);
	p.dram = (uint32_t)(dram / p.block / 2);
	p.dram_first = blocks - p.dram;
	p.on_flash = blocks / 2;
	space_create(&p.space, p.block, blocks, NULL);
	space_fill(&p.space, blocks, p.block);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		p.prefill = atof(line);
		p.agents = p.prefill > 0 || !strcmp(line, "agents\n");
		measure(&p, !strcmp(line, "one\n") ? 1 : SESSIONS);
	}
	space_close(&p.space);
	return 0;
}
