// SPDX-License-Identifier: MIT
/*
 * lib_peer_session.c - KV of a sequence to another host: every way gives the same bytes, what
 * arrives wrong is sent again, connections break and it goes on, receivers crash and another
 * one gets it
 *
 * Over "loop:", or over "rdma:" as lib_peer.c says.  Layouts are drawn by lot.
 */
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>

#include "fabric_loop.h"
#include "layout_gen.h"
#include "peer_session.h"

#define WAIT	30000	/* ms: far more than anything here takes */
#define PAIRS	60
#define TAG	5u

static const uint8_t key[32] = "of both";

static bool real(void)
{
	return getenv("HAWK_TEST_AT");
}

static const char *at(void)
{
	return real() ? getenv("HAWK_TEST_AT") : "decode";
}

/**
 * struct hosts - two hosts and a connection
 * @net: of sender and receiver
 * @p: their ends
 * @accepted: what accepting has given
 */
struct hosts {
	struct hawk_net *net[2];
	struct hawk_peer *p[2];
	int accepted;
};

static void *accepter(void *arg)
{
	struct hosts *h = arg;

	h->accepted = hawk_peer_accept(h->net[1], WAIT, &h->p[1]);
	return NULL;
}

static void join(struct hosts *h)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, accepter, h), 0);
	assert_ok(hawk_peer_connect(h->net[0], at(), WAIT, &h->p[0]));
	pthread_join(t, NULL);
	assert_ok(h->accepted);
}

static void hosts_open(struct hosts *h)
{
	const struct hawk_net_params p = { .key = key, .key_bytes = sizeof(key), .depth = 64 };
	char from[64] = "loop:", to[64] = "loop:";

	if (real()) {
		snprintf(from, sizeof(from), "rdma:%s", getenv("HAWK_TEST_FROM"));
		snprintf(to, sizeof(to), "rdma:%s", at());
		*strrchr(to, ':') = 0;
	}
	assert_ok(hawk_net_open(from, &p, &h->net[0]));
	assert_ok(hawk_net_open(to, &p, &h->net[1]));
	assert_ok(hawk_net_listen(h->net[1], at()));
	join(h);
}

static void part(struct hosts *h)
{
	hawk_peer_close(h->p[0]);
	hawk_peer_close(h->p[1]);
	h->p[0] = NULL;
	h->p[1] = NULL;
}

static void hosts_close(struct hosts *h)
{
	part(h);
	hawk_net_close(h->net[0]);
	hawk_net_close(h->net[1]);
}

/**
 * struct job - a sequence that goes from host 0 to host 1
 * @h: the hosts
 * @pair: layouts, bytes
 * @want: what must be at the receiver's in the end
 * @mem: registrations
 * @flags: of the receiver's, HAWK_MEM_*
 * @sp: the sender's parameters
 * @rp: the receiver's
 * @s: sender, once it is open
 * @r: receiver
 * @ret: what the receiver's thread has come to
 * @upto: layers that it waits for; 0: all
 * @resume: it goes on with what it has
 */
struct job {
	struct hosts *h;
	struct lg_pair pair;
	uint8_t *want;
	struct hawk_mem *mem[2];
	uint32_t flags;
	struct hawk_send_params sp;
	struct hawk_recv_params rp;
	struct hawk_send *s;
	struct hawk_recv *r;
	int ret;
	uint32_t upto;
	bool resume;
	pthread_t thread;
};

static struct hawk_mem *mem_add(struct hawk_net *net, void *p, uint64_t bytes, uint32_t flags)
{
	const struct hawk_mem_params m = { .addr = p, .bytes = bytes, .dmabuf = -1, .flags = flags };
	struct hawk_mem *mem;

	assert_ok(hawk_mem_add(net, &m, &mem));
	return mem;
}

/* Draws a pair that can be planned at all; its memory over there has @flags (HAWK_MEM_*). */
static void job_make_with(struct job *j, struct hosts *h, uint64_t *seed, struct lg_rng *g,
			  uint32_t flags)
{
	struct hawk_layout_plan *plan;

	*j = (struct job){ .h = h, .flags = flags };
	for (;;) {
		lg_pair_make(&j->pair, (*seed)++);
		if (!hawk_layout_plan_open(&j->pair.src.l, &j->pair.dst.l, &j->pair.r, &plan))
			break;
		lg_pair_free(&j->pair);
	}
	hawk_layout_plan_close(plan);
	j->want = lg_expect(&j->pair);
	j->mem[0] = mem_add(h->net[0], j->pair.src.mem, j->pair.src.l.bytes, 0);
	j->mem[1] = mem_add(h->net[1], j->pair.dst.mem, j->pair.dst.l.bytes, flags);
	j->sp = (struct hawk_send_params){
		.mem = j->mem[0], .layout = &j->pair.src.l, .range = j->pair.r, .tag = TAG,
		.table = j->pair.src.table, .table_count = j->pair.src.count,
		.chunk_layers = 1 + (uint32_t)lg_rand(g, 3), .frame_bytes = 1 + lg_rand(g, 20000),
	};
	j->rp = (struct hawk_recv_params){
		.mem = j->mem[1], .layout = &j->pair.dst.l, .tag = TAG,
		.table = j->pair.dst.table, .table_count = j->pair.dst.count,
	};
}

static void job_make(struct job *j, struct hosts *h, uint64_t *seed, struct lg_rng *g)
{
	job_make_with(j, h, seed, g, 0);
}

static void job_end(struct job *j)
{
	hawk_send_close(j->s);
	hawk_recv_close(j->r);
	hawk_mem_del(j->mem[0]);
	hawk_mem_del(j->mem[1]);
	free(j->want);
	lg_pair_free(&j->pair);
}

static void *receiver(void *arg)
{
	struct job *j = arg;
	struct hawk_recv_info info;
	uint32_t n;

	j->ret = j->resume ? hawk_recv_resume(j->r, j->h->p[1], WAIT) :
		 hawk_recv_open(j->h->p[1], &j->rp, WAIT, &j->r);
	if (j->ret)
		return NULL;
	hawk_recv_info(j->r, &info);
	for (n = 1; n <= (j->upto ? j->upto : info.range.layers) && !j->ret; n++)
		j->ret = hawk_recv_wait(j->r, n, WAIT);
	return NULL;
}

static void receive(struct job *j)
{
	assert_int_equal(pthread_create(&j->thread, NULL, receiver, j), 0);
}

/* Announces layers one after the other, from the first on, and waits. */
static int compute(struct job *j)
{
	struct hawk_send_info info;
	uint32_t n = 0;
	int ret = 0;

	hawk_send_info(j->s, &info);
	while (!ret && n < info.layers)
		ret = hawk_send_layers(j->s, ++n);
	assert_ok(ret);
	return hawk_send_wait(j->s, WAIT);
}

static void arrived(struct job *j)
{
	if (!memcmp(j->want, j->pair.dst.mem, j->pair.dst.l.bytes))
		return;
	lg_pair_print(&j->pair);
	fail_msg("way %u, chunks of %u layers, frames of %llu bytes: other bytes", j->sp.way,
		 j->sp.chunk_layers, (unsigned long long)j->sp.frame_bytes);
}

/* What there is to send, pads included. */
static uint64_t bytes_of(const struct job *j)
{
	struct hawk_layout_plan *plan;
	struct hawk_plan_info info;

	assert_ok(hawk_layout_plan_open(&j->pair.src.l, &j->pair.dst.l, &j->pair.r, &plan));
	hawk_layout_plan_info(plan, &info);
	hawk_layout_plan_close(plan);
	return info.bytes + info.pad_bytes;
}

static void every_way_with(uint32_t flags)
{
	struct hawk_send_info info;
	uint64_t seed = lg_seed(1), i, n = lg_ops(real() ? 6 : PAIRS), done[HAWK_WAYS] = { 0 };
	struct lg_rng g = { .state = seed };
	struct hosts h;
	struct job j;
	uint8_t *dst;
	int ret;

	hawk_loop_faults(&(struct loop_faults){ .seed = 1, .lag = 3 });
	hosts_open(&h);
	for (i = 0; i < n; i++) {
		job_make_with(&j, &h, &seed, &g, flags);
		dst = malloc(j.pair.dst.l.bytes);
		assert_non_null(dst);
		memcpy(dst, j.pair.dst.mem, j.pair.dst.l.bytes);
		for (j.sp.way = 0; j.sp.way < HAWK_WAYS; j.sp.way++) {
			memcpy(j.pair.dst.mem, dst, j.pair.dst.l.bytes);
			receive(&j);
			ret = hawk_send_open(h.p[0], &j.sp, WAIT, &j.s);
			if (ret == -EOPNOTSUPP) {
				assert_true(j.sp.way == HAWK_WAY_KEYS || j.sp.way == HAWK_WAY_BIRTH);
				pthread_join(j.thread, NULL);
				assert_int_equal(j.ret, -ECANCELED);
				continue;
			}
			assert_ok(ret);
			assert_ok(compute(&j));
			pthread_join(j.thread, NULL);
			assert_ok(j.ret);
			arrived(&j);
			hawk_send_info(j.s, &info);
			assert_int_equal(info.again, 0);
			if (j.sp.way == HAWK_WAY_ENTRIES)
				assert_int_equal(info.bytes, bytes_of(&j));
			done[j.sp.way]++;
			hawk_send_close(j.s);
			hawk_recv_close(j.r);
			j.s = NULL;
			j.r = NULL;
		}
		free(dst);
		job_end(&j);
	}
	assert_true(done[HAWK_WAY_ENTRIES] && done[HAWK_WAY_SENDER] && done[HAWK_WAY_RECEIVER] &&
		    !done[HAWK_WAY_KEYS]);
	hosts_close(&h);
}

static void every_way(void **state)
{
	(void)state;
	every_way_with(0);
}

/* To memory that no NIC reaches. */
static void every_way_bounced(void **state)
{
	(void)state;
	every_way_with(HAWK_MEM_DEVICE | HAWK_MEM_BOUNCE);
}

/* Starts a job with @j->flags whose sender and receiver have agreed; nothing has been sent yet. */
static void job_start(struct job *j, struct hosts *h, uint64_t *seed, struct lg_rng *g,
		      unsigned int way, uint32_t upto)
{
	const uint32_t flags = j->flags;

	do {
		if (j->want)
			job_end(j);
		job_make_with(j, h, seed, g, flags);
	} while (j->pair.src.l.layers < 3 || j->pair.dst.l.layers < 3 || j->pair.r.layers);
	j->sp.way = way;
	j->sp.chunk_layers = 1;
	j->upto = upto;
	receive(j);
	assert_ok(hawk_send_open(h->p[0], &j->sp, WAIT, &j->s));
}

static void wrong_bytes_are_sent_again(void **state)
{
	static const unsigned int ways[] = { HAWK_WAY_ENTRIES, HAWK_WAY_SENDER, HAWK_WAY_RECEIVER };
	struct lg_rng g = { .state = 7 };
	struct hawk_send_info si;
	struct hawk_recv_info ri;
	uint64_t seed = 100;
	struct hosts h;
	unsigned int i;

	(void)state;
	if (real())
		skip();
	hosts_open(&h);
	for (i = 0; i < 6; i++) {
		struct job j = { .flags = i / 3 ? HAWK_MEM_BOUNCE : 0 };

		job_start(&j, &h, &seed, &g, ways[i % 3], 0);
		/* the next write is of the first unit */
		hawk_loop_faults(&(struct loop_faults){ .flip = 1 });
		assert_ok(compute(&j));
		pthread_join(j.thread, NULL);
		hawk_loop_faults(NULL);
		assert_ok(j.ret);
		arrived(&j);
		hawk_send_info(j.s, &si);
		hawk_recv_info(j.r, &ri);
		assert_int_equal(si.again, 1);
		assert_int_equal(ri.bad, 1);
		assert_int_equal(si.done, si.units);
		job_end(&j);
	}
	hosts_close(&h);
}

/* The connection breaks at a request drawn by lot; both go on with another one. */
static void broken_and_resumed(void **state)
{
	struct lg_rng g = { .state = 9 };
	uint64_t seed = 200;
	unsigned int i, broken = 0, kept = 0;
	struct hawk_recv_info info;
	struct hosts h;

	(void)state;
	if (real())
		skip();
	hosts_open(&h);
	for (i = 0; i < 60; i++) {
		struct job j = { .flags = i % 3 ? 0 : HAWK_MEM_BOUNCE };
		int ret;

		job_start(&j, &h, &seed, &g, i % 2 ? HAWK_WAY_SENDER : HAWK_WAY_RECEIVER, 0);
		hawk_loop_faults(&(struct loop_faults){ .kill = 1 + lg_rand(&g, 40),
							.lost_ack = i & 4, .lag = 2, .seed = i });
		ret = compute(&j);
		pthread_join(j.thread, NULL);
		hawk_loop_faults(NULL);
		if (ret || j.ret) {
			struct hosts old = h;

			assert_true(!ret || ret == -EPIPE);
			assert_true(!j.ret || j.ret == -EPIPE);
			broken++;
			join(&h);
			hawk_recv_info(j.r, &info);
			kept += info.layers > 0;
			j.resume = true;
			receive(&j);
			ret = hawk_send_resume(j.s, h.p[0], WAIT);
			assert_ok(ret);
			part(&old);
			assert_ok(hawk_send_wait(j.s, WAIT));
			pthread_join(j.thread, NULL);
			assert_ok(j.ret);
		}
		arrived(&j);
		job_end(&j);
		part(&h);	/* the last answer may have broken it, and nobody misses that one */
		join(&h);
	}
	assert_true(broken > 20 && kept);
	hosts_close(&h);
}

/* The receiver dies when it has one layer; another one gets all, from the same copy. */
static void crashed_and_sent_elsewhere(void **state)
{
	struct lg_rng g = { .state = 11 };
	uint64_t seed = 300;
	struct job j = { 0 };
	struct hosts h, old;
	uint8_t *other;

	(void)state;
	hosts_open(&h);
	job_start(&j, &h, &seed, &g, HAWK_WAY_SENDER, 1);
	other = malloc(j.pair.dst.l.bytes);	/* the other host's memory, before */
	assert_non_null(other);
	memcpy(other, j.pair.dst.mem, j.pair.dst.l.bytes);
	assert_ok(hawk_send_layers(j.s, 1));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	peer_break(h.p[1], -EPIPE, "crashed");	/* as a kernel does for a dead process */
	assert_int_equal(compute(&j), -EPIPE);
	assert_int_equal(hawk_send_kept(j.s), -EPIPE);
	hawk_recv_close(j.r);
	memcpy(j.pair.dst.mem, other, j.pair.dst.l.bytes);
	free(other);

	old = h;
	join(&h);
	j.upto = 0;
	receive(&j);
	assert_ok(hawk_send_resume(j.s, h.p[0], WAIT));
	part(&old);
	assert_ok(hawk_send_wait(j.s, WAIT));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	arrived(&j);
	job_end(&j);
	hosts_close(&h);
}

static void repeated_units_are_ignored(void **state)
{
	struct fab_wr again = { .op = FAB_WRITE, .signaled = true, .has_imm = true };
	struct lg_rng g = { .state = 12 };
	struct hawk_recv_info info;
	uint64_t seed = 350;
	struct job j = { 0 };
	struct hosts h;

	(void)state;
	hosts_open(&h);
	job_start(&j, &h, &seed, &g, HAWK_WAY_ENTRIES, 1);
	assert_ok(hawk_send_layers(j.s, 1));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	pthread_mutex_lock(&h.p[0]->lock);
	again.imm = 0;		/* is there already */
	assert_ok(peer_credit(h.p[0], hawk_peer_deadline(WAIT)));
	assert_ok(peer_post(h.p[0], &again, FAB_SLOTS, hawk_peer_deadline(WAIT)));
	again.imm = 1;		/* its record has not come */
	assert_ok(peer_credit(h.p[0], hawk_peer_deadline(WAIT)));
	assert_ok(peer_post(h.p[0], &again, FAB_SLOTS, hawk_peer_deadline(WAIT)));
	pthread_mutex_unlock(&h.p[0]->lock);
	hawk_recv_info(j.r, &info);
	assert_ok(hawk_send_layers(j.s, info.range.layers));
	assert_ok(hawk_recv_wait(j.r, info.range.layers, WAIT));
	assert_ok(hawk_send_wait(j.s, WAIT));
	arrived(&j);
	hawk_recv_info(j.r, &info);
	assert_int_equal(info.ignored, 2);
	/* and a number that no unit has */
	again.imm = 1u << 30;
	assert_ok(peer_credit(h.p[0], hawk_peer_deadline(WAIT)));
	assert_ok(peer_post(h.p[0], &again, FAB_SLOTS, hawk_peer_deadline(WAIT)));
	assert_int_equal(hawk_peer_hear(h.p[1], j.want, WAIT), -EPROTO);
	job_end(&j);
	hosts_close(&h);
}

static void *opener(void *arg)
{
	struct job *j = arg;

	j->ret = j->resume ? hawk_recv_resume(j->r, j->h->p[1], WAIT) :
		 hawk_recv_open(j->h->p[1], &j->rp, WAIT, &j->r);
	return NULL;
}

/* Both agree; the receiver looks at nothing. */
static void agree(struct job *j)
{
	assert_int_equal(pthread_create(&j->thread, NULL, opener, j), 0);
	assert_ok(hawk_send_open(j->h->p[0], &j->sp, WAIT, &j->s));
	pthread_join(j->thread, NULL);
	assert_ok(j->ret);
}

/*
 * The receiver's host is gone without a word when all has been written: nothing is under way
 * that would fail, and who waits for what it thinks of it must not wait for ever.
 */
static void silence_is_noticed(void **state)
{
	struct lg_rng g = { .state = 21 };
	struct hawk_send_info si;
	uint64_t seed = 600;
	struct job j = { 0 };
	struct hosts h;

	(void)state;
	if (real())
		skip();
	hosts_open(&h);
	do {
		if (j.want)
			job_end(&j);
		job_make(&j, &h, &seed, &g);
	} while (bytes_of(&j) == 0);
	j.sp.way = HAWK_WAY_ENTRIES;
	agree(&j);
	hawk_send_info(j.s, &si);
	assert_ok(hawk_send_layers(j.s, si.layers));
	do
		hawk_send_info(j.s, &si);
	while (si.bytes < bytes_of(&j));
	hawk_loop_faults(&(struct loop_faults){ .kill = 1 });	/* whatever is asked of it now */
	assert_int_equal(hawk_send_wait(j.s, WAIT), -EPIPE);
	hawk_loop_faults(NULL);
	job_end(&j);
	hosts_close(&h);
}

/* A sender of our own: offers, and begins by @way.  Return: what the receiver makes of it. */
static int begin_by(struct job *j, uint32_t way)
{
	struct hawk_peer *p = j->h->p[0];
	struct peer_offer o = { .id = "of our own", .tag = TAG, .src = *j->sp.layout,
				.range = j->sp.range, .chunk_layers = 1 };
	struct session s = { .src = o.src, .range = o.range, .chunk_layers = 1 };
	struct peer_begin b = { .frame_bytes = j->sp.frame_bytes, .way = way };
	struct peer_accept a;
	struct peer_ready r;

	pthread_mutex_lock(&p->lock);
	assert_ok(peer_send(p, MSG_OFFER, &o, sizeof(o), UINT64_MAX));
	assert_ok(session_await(p, MSG_ACCEPT, &a, sizeof(a), hawk_peer_deadline(WAIT)));
	s.dst = a.dst;
	assert_ok(session_layout(&s.src, &o.src));
	assert_ok(session_layers(&s));
	assert_ok(session_cut(&s, HAWK_WAY_SENDER, b.frame_bytes));
	memcpy(b.id, o.id, sizeof(b.id));
	b.units = s.units;
	assert_ok(peer_send(p, MSG_BEGIN, &b, sizeof(b), UINT64_MAX));
	assert_ok(session_await(p, MSG_READY, &r, sizeof(r), hawk_peer_deadline(WAIT)));
	pthread_mutex_unlock(&p->lock);
	return r.status;
}

/* A receiver who is to go on with something that he cannot do stays as he was. */
static void nonsense_changes_no_receiver(void **state)
{
	static const uint32_t nonsense[] = { HAWK_WAY_KEYS, HAWK_WAY_ENTRIES };
	struct lg_rng g = { .state = 22 };
	struct hawk_recv_info before, after;
	uint64_t seed = 700;
	struct job j = { 0 };
	struct hosts h;
	unsigned int i;

	(void)state;
	hosts_open(&h);
	do {
		if (j.want)
			job_end(&j);
		job_make(&j, &h, &seed, &g);
		j.sp.frame_bytes = 1;
		j.sp.range = j.pair.r;
	} while (j.pair.r.tokens < 3 * (j.pair.src.l.block_tokens + j.pair.dst.l.block_tokens));
	assert_int_equal(pthread_create(&j.thread, NULL, opener, &j), 0);
	assert_ok(begin_by(&j, HAWK_WAY_SENDER));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	hawk_recv_info(j.r, &before);
	j.resume = true;
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&j.thread, NULL, opener, &j), 0);
		assert_true(begin_by(&j, nonsense[i]));
		pthread_join(j.thread, NULL);
		assert_int_equal(j.ret, i ? -EPROTO : -EOPNOTSUPP);
		hawk_recv_info(j.r, &after);
		assert_memory_equal(&after, &before, sizeof(before));
		assert_int_equal(hawk_recv_wait(j.r, 1, 0), -ETIME);
	}
	job_end(&j);
	hosts_close(&h);
}

/* Resuming fails: all that was sent before is not with the new receiver, and nobody says so. */
static void failed_resumes(void **state)
{
	struct lg_rng g = { .state = 23 };
	uint64_t seed = 800;
	struct job j = { 0 };
	struct hosts h, old;
	struct hawk_layout fewer;
	struct hawk_send_info si;

	(void)state;
	hosts_open(&h);
	job_start(&j, &h, &seed, &g, HAWK_WAY_ENTRIES, 0);
	assert_ok(compute(&j));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	hawk_recv_close(j.r);
	j.r = NULL;
	old = h;
	join(&h);
	j.rp.tag++;
	assert_int_equal(pthread_create(&j.thread, NULL, opener, &j), 0);
	assert_int_equal(hawk_send_resume(j.s, h.p[0], WAIT), -ENOENT);
	part(&old);
	pthread_join(j.thread, NULL);
	assert_int_equal(hawk_send_wait(j.s, 0), -ENOENT);
	j.rp.tag--;
	/* layers count from the first one that both have: with another first one they are others */
	fewer = j.pair.dst.l;
	memset(fewer.stride, 0, sizeof(fewer.stride));
	fewer.layers = 1;
	hawk_send_info(j.s, &si);
	fewer.layer_first = fewer.layer_first > j.pair.src.l.layer_first ? fewer.layer_first :
			    j.pair.src.l.layer_first;
	fewer.layer_first += si.layers - 1;
	assert_true(si.layers > 1);
	assert_ok(hawk_layout_init(&fewer));
	j.rp.layout = &fewer;
	assert_int_equal(pthread_create(&j.thread, NULL, opener, &j), 0);
	assert_int_equal(hawk_send_resume(j.s, h.p[0], WAIT), -EINVAL);
	pthread_join(j.thread, NULL);
	assert_int_equal(j.ret, -ECANCELED);
	assert_int_equal(hawk_send_wait(j.s, 0), -EINVAL);
	assert_non_null(strstr(hawk_strerror_last(), "the receiver has others"));
	hawk_send_info(j.s, &si);
	assert_int_equal(si.done, si.units);	/* of the receiver before */
	j.rp.layout = &j.pair.dst.l;
	receive(&j);
	assert_ok(hawk_send_resume(j.s, h.p[0], WAIT));
	assert_ok(hawk_send_wait(j.s, WAIT));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	arrived(&j);
	job_end(&j);
	hosts_close(&h);
}

/* What the sender's thread has met is told to who waits. */
static void causes_are_told(void **state)
{
	struct lg_rng g = { .state = 24 };
	struct hawk_send_info si;
	uint64_t seed = 900;
	struct job j = { 0 };
	struct hosts h;
	uint32_t *table;

	(void)state;
	hosts_open(&h);
	do {
		if (j.want)
			job_end(&j);
		job_make(&j, &h, &seed, &g);
	} while (!j.sp.table);
	table = calloc(j.sp.table_count, sizeof(*table));
	assert_non_null(table);
	memset(table, 0x7f, j.sp.table_count * sizeof(*table));
	j.sp.table = table;
	j.sp.way = HAWK_WAY_ENTRIES;
	agree(&j);
	hawk_send_info(j.s, &si);
	assert_ok(hawk_send_layers(j.s, si.layers));
	assert_int_equal(hawk_send_wait(j.s, WAIT), -ERANGE);
	assert_non_null(strstr(hawk_strerror_last(), "block table of the source"));
	free(table);
	job_end(&j);
	hosts_close(&h);
}

static void kept_until_decoded(void **state)
{
	struct lg_rng g = { .state = 13 };
	struct hawk_send_info si;
	uint64_t seed = 400, before;
	struct job j = { 0 };
	struct hosts h;
	int ret;

	(void)state;
	hosts_open(&h);
	job_start(&j, &h, &seed, &g, HAWK_WAY_SENDER, 0);
	assert_int_equal(hawk_send_kept(j.s), -EAGAIN);
	before = hawk_mono_ns();
	assert_ok(compute(&j));
	pthread_join(j.thread, NULL);
	assert_ok(j.ret);
	do	/* the time alone is not enough */
		assert_int_equal(hawk_send_kept(j.s), -EAGAIN);
	while (hawk_mono_ns() - before < (HAWK_SEND_KEEP_MS + 20) * 1000000ull);
	assert_ok(hawk_recv_ack(j.r, WAIT));
	do
		ret = hawk_send_kept(j.s);
	while (ret == -EAGAIN && hawk_mono_ns() - before < WAIT * 1000000ull);
	assert_ok(ret);
	hawk_send_info(j.s, &si);
	assert_true(si.exposed_ns && si.last_ns && si.done == si.units);
	job_end(&j);
	hosts_close(&h);
}

static void kept_for_some_time(void **state)
{
	struct lg_rng g = { .state = 15 };
	uint64_t seed = 450, before;
	struct job j = { 0 };
	struct hosts h;

	(void)state;
	hosts_open(&h);
	job_start(&j, &h, &seed, &g, HAWK_WAY_SENDER, 0);
	before = hawk_mono_ns();
	assert_ok(compute(&j));
	pthread_join(j.thread, NULL);
	assert_ok(hawk_recv_ack(j.r, WAIT));
	while (hawk_send_kept(j.s) == -EAGAIN)
		;
	assert_true(hawk_mono_ns() - before >= HAWK_SEND_KEEP_MS * 1000000ull);
	job_end(&j);
	hosts_close(&h);
}

/* It can be received into, and nothing else. */
static void only_received_into(void **state)
{
	struct hawk_grant g = { .bytes = 64, .flags = HAWK_GRANT_READ }, theirs;
	const struct hawk_mem_params none = { .bytes = 64, .dmabuf = 0, .flags = HAWK_MEM_BOUNCE };
	struct lg_rng rng = { .state = 16 };
	struct hawk_xfer x = { .bytes = 64 };
	struct hawk_mem_info info;
	struct hawk_mem *mem, *other;
	uint64_t seed = 550;
	struct hosts h;
	struct job j;

	(void)state;
	hosts_open(&h);
	job_make_with(&j, &h, &seed, &rng, HAWK_MEM_BOUNCE);
	mem = j.mem[1];
	hawk_mem_info(mem, &info);
	assert_int_equal(info.how, HAWK_MEM_BOUNCED);
	assert_int_equal(hawk_peer_grant(h.p[1], mem, 0, &g, WAIT), -EOPNOTSUPP);
	assert_ok(hawk_peer_grant(h.p[0], j.mem[0], 0, &g, WAIT));
	assert_ok(hawk_peer_granted(h.p[1], 0, WAIT, &theirs));
	x.mem = mem;
	x.grant = theirs.id;
	assert_int_equal(hawk_peer_get(h.p[1], &x, 1, WAIT), -EOPNOTSUPP);
	j.sp.mem = mem;
	j.sp.layout = &j.pair.dst.l;
	j.sp.way = HAWK_WAY_SENDER;
	assert_int_equal(hawk_send_open(h.p[1], &j.sp, WAIT, &j.s), -EOPNOTSUPP);
	assert_int_equal(hawk_mem_add(mem->net, &none, &other), -EINVAL);
	/* More than there is room for: refused before memory is taken for it. */
	j.sp.mem = j.mem[0];
	j.sp.layout = &j.pair.src.l;
	j.sp.range.token_first = 0;
	j.sp.range.tokens = UINT32_MAX;
	receive(&j);
	assert_int_equal(hawk_send_open(h.p[0], &j.sp, WAIT, &j.s), -ERANGE);
	pthread_join(j.thread, NULL);
	assert_int_equal(j.ret, -ERANGE);
	job_end(&j);
	hosts_close(&h);
}

static void odd_arguments(void **state)
{
	struct lg_rng g = { .state = 14 };
	uint64_t seed = 500;
	struct hawk_send *s;
	struct job j;
	struct hosts h;

	(void)state;
	hosts_open(&h);
	job_make(&j, &h, &seed, &g);
	j.sp.way = HAWK_WAYS;
	assert_int_equal(hawk_send_open(h.p[0], &j.sp, WAIT, &s), -EINVAL);	/* no costs */
	j.sp.way = HAWK_WAY_SENDER;
	assert_int_equal(hawk_send_open(h.p[1], &j.sp, WAIT, &s), -EINVAL);	/* of host 0 */
	j.sp.off = 1;
	assert_int_equal(hawk_send_open(h.p[0], &j.sp, WAIT, &s), -ERANGE);
	j.sp.off = 0;
	j.sp.tag = TAG + 1;
	receive(&j);
	assert_int_equal(hawk_send_open(h.p[0], &j.sp, WAIT, &s), -ENOENT);
	pthread_join(j.thread, NULL);
	assert_int_equal(j.ret, -ENOENT);
	assert_int_equal(hawk_send_open(h.p[0], &j.sp, 50, &s), -ETIME);	/* nobody takes it */
	job_end(&j);
	hosts_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way),
		cmocka_unit_test(every_way_bounced),
		cmocka_unit_test(wrong_bytes_are_sent_again),
		cmocka_unit_test(broken_and_resumed),
		cmocka_unit_test(crashed_and_sent_elsewhere),
		cmocka_unit_test(repeated_units_are_ignored),
		cmocka_unit_test(silence_is_noticed),
		cmocka_unit_test(nonsense_changes_no_receiver),
		cmocka_unit_test(failed_resumes),
		cmocka_unit_test(causes_are_told),
		cmocka_unit_test(kept_until_decoded),
		cmocka_unit_test(kept_for_some_time),
		cmocka_unit_test(only_received_into),
		cmocka_unit_test(odd_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
