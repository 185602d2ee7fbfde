// SPDX-License-Identifier: MIT
/*
 * transport.c - KV to another host, translated on the way
 *
 * Two endpoints of one machine, one thread each, send the KV of a prompt, row major in blocks
 * of 16 tokens here, tiles of 16 x 16 there; 8 heads of 128 elements, fp16, as a layer of a
 * 70B model has them.  Each line on standard input says what is measured:
 *
 * session: by the way that the planner takes, by what was measured at start; until the
 *	receiver has verified all of it.
 * naive: the usual path: into a bounce buffer, over the wire into another one, out of that,
 *	and translated there.
 * overlap: a chunk alone; then all, with layers "computed" by a timer in 1.3 times what a
 *	chunk takes on the wire: how long the last chunk ends after the last layer.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hawk/peer.h>

#include "bench.h"

#define LAYERS	8u
#define CHUNK	2u		/* layers */
#define WAIT	60000
#define TAG	1u
#define BOUNCE	2u

static const uint8_t key[32] = "of both ends";

/**
 * struct end - one end
 * @ep: endpoint
 * @p: connection
 * @mem: KV, then a bounce buffer, @bytes each
 * @at: where it is
 */
struct end {
	struct hawk_net *ep;
	struct hawk_peer *p;
	struct hawk_mem *mem;
	uint8_t *at;
	uint64_t bytes;
};

static struct hawk_layout from, to;
static uint32_t tokens;
static struct hawk_costs costs;

static struct hawk_layout layout(unsigned int form, uint32_t blocks)
{
	struct hawk_layout l = { .elem_bytes = 2, .dim = 128, .heads_all = 8,
				 .layers_all = LAYERS, .block_tokens = 16, .blocks = blocks };

	bench_check(hawk_layout_form(&l, form), hawk_strerror_last());
	return l;
}

static void end_open(struct end *e, const char *url)
{
	const struct hawk_net_params p = { .key = key, .key_bytes = sizeof(key) };
	struct hawk_mem_params m = { .bytes = 2 * from.bytes, .dmabuf = -1 };

	e->bytes = from.bytes;
	if (posix_memalign(&m.addr, 4096, m.bytes))
		bench_die("%llu bytes", (unsigned long long)m.bytes);
	e->at = m.addr;
	memset(m.addr, 0, m.bytes);
	bench_check(hawk_net_open(url, &p, &e->ep), hawk_strerror_last());
	bench_check(hawk_mem_add(e->ep, &m, &e->mem), hawk_strerror_last());
}

static void translate(const uint8_t *src, uint8_t *dst)
{
	const struct hawk_range r = { .tokens = tokens };
	const struct hawk_copy c = { .src = src, .src_bytes = from.bytes, .dst = dst,
				     .dst_bytes = to.bytes };
	struct hawk_layout_plan *plan;

	bench_check(hawk_layout_plan_open(&from, &to, &r, &plan), hawk_strerror_last());
	bench_check(hawk_layout_copy(plan, &c), hawk_strerror_last());
	hawk_layout_plan_close(plan);
}

/* ---- the receiver, which does what notes say ---- */

static void take(struct end *e)
{
	const struct hawk_recv_params p = { .mem = e->mem, .layout = &to, .tag = TAG };
	struct hawk_recv_info info;
	struct hawk_recv *r;

	bench_check(hawk_recv_open(e->p, &p, WAIT, &r), hawk_strerror_last());
	hawk_recv_info(r, &info);
	bench_check(hawk_recv_wait(r, info.range.layers, WAIT), hawk_strerror_last());
	bench_check(hawk_recv_ack(r, WAIT), hawk_strerror_last());
	hawk_recv_close(r);
}

static void *serve(void *arg)
{
	struct end *e = arg;
	struct hawk_grant g = { .tag = BOUNCE, .flags = HAWK_GRANT_WRITE };
	char note[HAWK_NOTE_MAX];

	bench_check(hawk_peer_accept(e->ep, WAIT, &e->p), hawk_strerror_last());
	g.bytes = e->bytes;
	bench_check(hawk_peer_grant(e->p, e->mem, e->bytes, &g, WAIT), hawk_strerror_last());
	while (hawk_peer_hear(e->p, note, -1) > 0) {
		if (note[0] == 's') {
			take(e);
			continue;
		}
		/* naive: out of the bounce buffer, then translated; the row-major copy is where
		 * the accelerator's memory would be */
		memcpy(e->at, e->at + e->bytes, e->bytes);
		translate(e->at, e->at + e->bytes);
		bench_check(hawk_peer_tell(e->p, "done", 4, WAIT), hawk_strerror_last());
	}
	hawk_peer_close(e->p);
	return NULL;
}

/* ---- the sender ---- */

/* Sends the first @layers layers, each @ns after the one before. */
static struct hawk_send_info session(struct end *e, uint32_t layers, uint64_t ns)
{
	const struct hawk_send_params p = {
		.mem = e->mem, .layout = &from, .tag = TAG, .chunk_layers = CHUNK,
		.range = { .layers = layers, .tokens = tokens }, .way = HAWK_WAYS, .costs = &costs,
		.frame_bytes = 1 << 20,
	};
	const struct timespec ts = { .tv_nsec = (long)(ns % 1000000000u),
				     .tv_sec = (time_t)(ns / 1000000000u) };
	struct hawk_send_info info;
	struct hawk_send *s;
	uint32_t n;

	bench_check(hawk_peer_tell(e->p, "s", 1, WAIT), hawk_strerror_last());
	bench_check(hawk_send_open(e->p, &p, WAIT, &s), hawk_strerror_last());
	for (n = ns ? 1 : layers; n <= layers; n++) {
		if (ns)
			nanosleep(&ts, NULL);
		bench_check(hawk_send_layers(s, n), hawk_strerror_last());
	}
	bench_check(hawk_send_wait(s, WAIT), hawk_strerror_last());
	hawk_send_info(s, &info);
	hawk_send_close(s);
	return info;
}

static double naive(struct end *e, const struct hawk_grant *g)
{
	const struct hawk_xfer x = { .mem = e->mem, .off = e->bytes, .bytes = e->bytes,
				     .grant = g->id };
	uint64_t t = bench_now();
	char note[HAWK_NOTE_MAX];

	memcpy(e->at + e->bytes, e->at, e->bytes);
	bench_check(hawk_peer_put(e->p, &x, 1, WAIT), hawk_strerror_last());
	bench_check(hawk_peer_tell(e->p, "n", 1, WAIT), hawk_strerror_last());
	bench_check(hawk_peer_hear(e->p, note, WAIT), hawk_strerror_last());
	return (double)e->bytes * 1e3 / (double)(bench_now() - t);
}

/* Pages and caches get warm, and both ways have to bring what a plain translation gives. */
static void same_answers(struct end *here, const struct end *there, const struct hawk_grant *g)
{
	uint64_t i, seed = 1, *w = (uint64_t *)here->at;
	uint8_t *want = malloc(to.bytes);

	for (i = 0; i < from.bytes / sizeof(*w); i++)
		w[i] = bench_rand(&seed);
	if (!want)
		bench_die("no memory");
	translate(here->at, want);
	session(here, LAYERS, 0);
	if (memcmp(there->at, want, to.bytes))
		bench_die("the session has brought other bytes");
	naive(here, g);
	if (memcmp(there->at + there->bytes, want, to.bytes))
		bench_die("the naive path has brought other bytes");
	free(want);
}

static void overlap(struct end *e)
{
	struct hawk_send_info alone = session(e, CHUNK, 0);
	struct hawk_send_info all = session(e, LAYERS, alone.exposed_ns * 13 / 10 / CHUNK);

	bench_emit("overlap_exposed_vs_last_chunk", BENCH_OURS, (double)all.exposed_ns / 1e6, "ms");
	bench_emit("overlap_exposed_vs_last_chunk", BENCH_PEER, (double)alone.exposed_ns / 1e6, "ms");
}

static void measure(struct end *e, const struct hawk_grant *g, char what)
{
	struct hawk_send_info all;

	switch (what) {
	case 's':
		all = session(e, LAYERS, 0);
		bench_emit("transport_vs_ib_write_bw", BENCH_OURS,
			   (double)e->bytes * 1e3 / (double)all.exposed_ns, "MB/s");
		break;
	case 'n':
		bench_emit("transport_naive_vs_ib_write_bw", BENCH_OURS, naive(e, g), "MB/s");
		break;
	case 'o':
		overlap(e);
		break;
	default:
		bench_die("session, naive or overlap?");
	}
}

static void probe(struct end *e, const struct hawk_grant *g)
{
	const struct hawk_xfer room = { .mem = e->mem, .bytes = g->bytes, .grant = g->id };
	struct hawk_choice ch;
	const struct hawk_range r = { .tokens = tokens };
	char text[2048];

	bench_check(hawk_costs_cpu(&costs), hawk_strerror_last());
	bench_check(hawk_peer_costs(e->p, &room, &costs), hawk_strerror_last());
	costs.frame_bytes = 1 << 20;
	bench_check(hawk_layout_choose(&from, &to, &r, &costs, &ch), hawk_strerror_last());
	hawk_choice_print(&ch, &costs, text, sizeof(text), 0);
	fputs(text, stderr);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .mib = 32, .url = "rdma:10.77.0.1", .file = "10.77.0.2:7471" };
	struct end here = { 0 }, there = { 0 };
	struct hawk_grant g;
	char url[80], line[16];
	pthread_t thread;

	bench_args(&o, argc, argv);
	tokens = o.mib * (1u << 20) / (2 * 8 * 128 * 2 * LAYERS) / 16 * 16;
	from = layout(HAWK_FORM_HND, tokens / 16);
	to = layout(HAWK_FORM_TILE16, tokens / 16);
	snprintf(url, sizeof(url), "rdma:%s", o.file);
	*strrchr(url, ':') = 0;
	end_open(&here, o.url);
	end_open(&there, url);
	bench_check(hawk_net_listen(there.ep, o.file), hawk_strerror_last());
	if (pthread_create(&thread, NULL, serve, &there))
		bench_die("a thread");
	bench_check(hawk_peer_connect(here.ep, o.file, WAIT, &here.p), hawk_strerror_last());
	bench_check(hawk_peer_granted(here.p, BOUNCE, WAIT, &g), hawk_strerror_last());
	probe(&here, &g);
	same_answers(&here, &there, &g);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		measure(&here, &g, line[0]);
	hawk_peer_close(here.p);
	pthread_join(thread, NULL);
	hawk_mem_del(here.mem);
	hawk_mem_del(there.mem);
	hawk_net_close(here.ep);
	hawk_net_close(there.ep);
	return 0;
}
