// SPDX-License-Identifier: MIT
/*
 * lib_peer.c - peers: the key, grants, put and get, credits, and a connection that breaks at
 * any request
 *
 * Over the network within the process ("loop:"), which checks what a NIC checks, or over
 * "rdma:" from $HAWK_TEST_FROM to $HAWK_TEST_AT (two addresses of this host, the second with
 * a port): then what has to do with faults of the network is left out.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfixture.h"
#include "fabric_loop.h"
#include "peer.h"

#define BYTES	(1u << 20)
#define WAIT	30000	/* ms: far more than anything here takes */
#define TAG	77u

static const uint8_t key[32] = "of all peers but one";
static const uint8_t wrong_key[32] = "of this one";

static bool real(void)
{
	return getenv("HAWK_TEST_AT");
}

static const char *at(void)
{
	return real() ? getenv("HAWK_TEST_AT") : "there";
}

/* The endpoint of the server, or that of the client. */
static const char *url(bool server)
{
	static __thread char text[64];
	const char *from = getenv("HAWK_TEST_FROM");

	if (!real())
		return "loop:";
	snprintf(text, sizeof(text), "rdma:%s", server || !from ? at() : from);
	if (server || !from)
		*strrchr(text, ':') = 0;
	return text;
}

/**
 * struct server - the other side: grants all of its memory, answers each note with itself
 * @net: its endpoint
 * @mem: its memory
 * @bytes: where that is
 * @rights: of the grant
 * @revoke: a note that begins with 'r' ends the grant
 * @accepts: how many connections to take
 * @accepted: results of hawk_peer_accept(), the last ones
 * @ended: what each has ended with
 */
struct server {
	struct hawk_net *net;
	struct hawk_mem *mem;
	uint8_t *bytes;
	uint32_t rights;
	int accepts;
	int accepted;
	int ended;
	pthread_t thread;
};

static void serve_one(struct server *s, struct hawk_peer *p)
{
	struct hawk_grant g = { .bytes = BYTES, .tag = TAG, .flags = s->rights };
	uint8_t note[HAWK_NOTE_MAX];
	int n;

	s->ended = hawk_peer_grant(p, s->mem, 0, &g, WAIT);
	while (!s->ended) {
		n = hawk_peer_hear(p, note, WAIT);
		if (n > 0 && note[0] == 'r')
			s->ended = hawk_peer_revoke(p, g.id, WAIT);
		if (n > 0 && note[0] == 's')	/* does not listen for a while: the client says when */
			n = hawk_peer_granted(p, 1, WAIT, &g) ? -1 : n;
		s->ended = n < 0 ? n : s->ended ? s->ended :
			   hawk_peer_tell(p, note, (uint32_t)n, WAIT);
	}
	hawk_peer_close(p);
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct hawk_peer *p;
	int i;

	for (i = 0; i < s->accepts; i++) {
		s->accepted = hawk_peer_accept(s->net, WAIT, &p);
		if (!s->accepted)
			serve_one(s, p);
	}
	return NULL;
}

static struct hawk_net *net_open(const uint8_t *k, bool server)
{
	const struct hawk_net_params p = { .key = k, .key_bytes = sizeof(key), .depth = 32 };
	struct hawk_net *net;

	assert_ok(hawk_net_open(url(server), &p, &net));
	return net;
}

static struct hawk_mem *mem_add(struct hawk_net *net, uint8_t **bytes)
{
	struct hawk_mem_params p = { .bytes = BYTES, .dmabuf = -1 };
	struct hawk_mem *mem;

	assert_int_equal(posix_memalign(&p.addr, 4096, BYTES), 0);
	memset(p.addr, 0, BYTES);
	*bytes = p.addr;
	assert_ok(hawk_mem_add(net, &p, &mem));
	return mem;
}

static void server_start(struct server *s, int accepts, uint32_t rights)
{
	*s = (struct server){ .rights = rights, .accepts = accepts, .net = net_open(key, true) };
	s->mem = mem_add(s->net, &s->bytes);
	assert_ok(hawk_net_listen(s->net, at()));
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	pthread_join(s->thread, NULL);
	hawk_mem_del(s->mem);
	hawk_net_close(s->net);
	free(s->bytes);
}

/**
 * struct client - this side
 */
struct client {
	struct hawk_net *net;
	struct hawk_mem *mem;
	uint8_t *bytes;
	struct hawk_peer *p;
	struct hawk_grant g;
};

static void client_open(struct client *c)
{
	*c = (struct client){ .net = net_open(key, false) };
	c->mem = mem_add(c->net, &c->bytes);
}

static int client_connect(struct client *c)
{
	int ret = hawk_peer_connect(c->net, at(), WAIT, &c->p);

	if (ret)
		return ret;
	ret = hawk_peer_granted(c->p, TAG, WAIT, &c->g);
	if (ret) {
		hawk_peer_close(c->p);
		c->p = NULL;
	}
	return ret;
}

static void client_close(struct client *c)
{
	hawk_peer_close(c->p);
	hawk_mem_del(c->mem);
	hawk_net_close(c->net);
	free(c->bytes);
}

static uint64_t rng = 1;

static uint32_t draw(uint32_t n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rng >> 33) % n;
}

static void scramble(uint8_t *p, size_t n)
{
	while (n--)
		*p++ = (uint8_t)draw(256);
}

/* Lists of pieces of all sizes; the other side's bytes are what a memcpy() would have made. */
static void lists(struct client *c, struct server *s, int rounds)
{
	uint8_t *want = malloc(BYTES);
	struct hawk_xfer x[40];
	unsigned int n, i;

	assert_non_null(want);
	memcpy(want, s->bytes, BYTES);
	while (rounds--) {
		uint64_t far = 0;

		n = 1 + draw(40);
		scramble(c->bytes, BYTES);
		for (i = 0; i < n; i++) {
			x[i] = (struct hawk_xfer){ .mem = c->mem, .grant = c->g.id,
				.bytes = 1 + draw(draw(4) ? 600 : BYTES / 64) };
			x[i].off = draw((uint32_t)(BYTES - x[i].bytes));
			x[i].far_off = far + (draw(3) ? 0 : draw(1000));
			far = x[i].far_off + x[i].bytes;
			memcpy(want + x[i].far_off, c->bytes + x[i].off, x[i].bytes);
		}
		assert_true(far <= BYTES);
		assert_ok(hawk_peer_put(c->p, x, n, WAIT));
		assert_memory_equal(s->bytes, want, BYTES);
		memset(c->bytes, 0, BYTES);
		for (i = 0; i < n; i++)
			x[i].off = x[i].far_off;
		assert_ok(hawk_peer_get(c->p, x, n, WAIT));
		for (i = 0; i < n; i++)
			assert_memory_equal(c->bytes + x[i].off, want + x[i].far_off, x[i].bytes);
	}
	free(want);
}

static void moves_bytes(void **state)
{
	struct server s;
	struct client c;
	struct hawk_xfer all = { .bytes = BYTES };
	struct hawk_peer_stats st;

	(void)state;
	hawk_loop_faults(&(struct loop_faults){ .seed = 1, .lag = 3 });
	server_start(&s, 1, HAWK_GRANT_READ | HAWK_GRANT_WRITE);
	client_open(&c);
	assert_ok(client_connect(&c));
	lists(&c, &s, real() ? 20 : 100);
	scramble(c.bytes, BYTES);
	all.mem = c.mem;
	all.grant = c.g.id;
	assert_ok(hawk_peer_put(c.p, &all, 1, WAIT));
	assert_memory_equal(s.bytes, c.bytes, BYTES);
	hawk_peer_stats(c.p, &st);
	assert_int_equal(st.version, 1);
	assert_true(st.put_bytes >= BYTES && st.got_bytes && !st.broken);
	client_close(&c);
	server_stop(&s);
	assert_int_equal(s.ended, -EPIPE);	/* the client has left */
}

/* Blocks of a space, by LID: there and back, chunk by chunk, into other blocks. */
static void blocks_of_a_space(void **state)
{
	enum { N = 192, HALF = N / 2, ROOM = BYTES / FX_BLOCK };	/* more than a chunk */
	struct hawk_item it[N] = { 0 };
	struct hawk_mem *chunk[N] = { 0 };	/* by number of the chunk */
	struct hawk_xfer x[N];
	struct server s;
	struct client c;
	struct fx f;
	uint64_t off;
	uint32_t k;
	int i;

	(void)state;
	fx_open(&f, 8 << 20, 0);
	server_start(&s, 1, HAWK_GRANT_READ | HAWK_GRANT_WRITE);
	client_open(&c);
	assert_ok(client_connect(&c));
	for (i = 0; i < N; i++)
		it[i].lid = fx_lid((uint32_t)i);
	assert_int_equal(hawk_alloc(f.kv, it, N, NULL), N);
	for (i = 0; i < N; i++) {
		k = HAWK_VT_FRAME(it[i].vt) / FX_CHUNK_FRAMES;
		assert_true(k < N);
		off = HAWK_VT_FRAME(it[i].vt) % FX_CHUNK_FRAMES * FX_BLOCK;
		if (!chunk[k])
			assert_ok(hawk_mem_chunk(c.p->net, f.kv, it[i].vt, &chunk[k], &off));
		x[i] = (struct hawk_xfer){ .mem = chunk[k], .off = off, .bytes = FX_BLOCK,
			.grant = c.g.id, .far_off = (uint64_t)(i * 5 % ROOM) * FX_BLOCK };
		fx_fill(hawk_addr(f.kv, it[i].vt), (uint32_t)i, 1);
	}
	assert_ok(hawk_peer_put(c.p, x, ROOM, WAIT));
	for (i = 0; i < ROOM; i++)
		x[HALF + i].far_off = x[i].far_off;
	assert_ok(hawk_peer_get(c.p, x + HALF, ROOM, WAIT));
	for (i = 0; i < ROOM; i++)
		assert_true(fx_is(hawk_addr(f.kv, it[HALF + i].vt), (uint32_t)i, 1));
	for (i = 0; i < N; i++)
		hawk_mem_del(chunk[i]);
	client_close(&c);
	server_stop(&s);
	fx_close(&f);
}

static void wrong_key_is_refused(void **state)
{
	struct server s;
	struct client c;
	struct hawk_net *bad;
	struct hawk_peer *p;

	(void)state;
	server_start(&s, 2, HAWK_GRANT_READ);
	bad = net_open(wrong_key, false);
	assert_int_equal(hawk_peer_connect(bad, at(), WAIT, &p), -EACCES);
	assert_null(strstr(hawk_strerror_last(), (const char *)key));
	hawk_net_close(bad);
	client_open(&c);
	assert_ok(client_connect(&c));		/* the server goes on */
	client_close(&c);
	server_stop(&s);
}

static void outside_the_grant(void **state)
{
	struct server s;
	struct client c;
	struct hawk_xfer x = { .bytes = 100 };
	uint8_t note[HAWK_NOTE_MAX];

	(void)state;
	server_start(&s, 1, HAWK_GRANT_WRITE);
	client_open(&c);
	assert_ok(client_connect(&c));
	x.mem = c.mem;
	x.grant = c.g.id;
	x.far_off = BYTES - 99;
	assert_int_equal(hawk_peer_put(c.p, &x, 1, WAIT), -ERANGE);
	x.far_off = UINT64_MAX - 10;
	assert_int_equal(hawk_peer_put(c.p, &x, 1, WAIT), -ERANGE);
	x.far_off = 0;
	x.off = BYTES - 99;
	assert_int_equal(hawk_peer_put(c.p, &x, 1, WAIT), -ERANGE);
	x.off = 0;
	assert_int_equal(hawk_peer_get(c.p, &x, 1, WAIT), -EACCES);
	x.grant += 1;
	assert_int_equal(hawk_peer_put(c.p, &x, 1, WAIT), -ENOENT);
	x.grant -= 1;
	x.bytes = 0;
	assert_int_equal(hawk_peer_put(c.p, &x, 1, WAIT), -EINVAL);
	x.bytes = 100;
	assert_ok(hawk_peer_put(c.p, &x, 1, WAIT));	/* none of that has broken anything */
	assert_ok(hawk_peer_tell(c.p, "r", 1, WAIT));
	assert_int_equal(hawk_peer_hear(c.p, note, WAIT), 1);
	assert_int_equal(hawk_peer_put(c.p, &x, 1, WAIT), -ESTALE);
	client_close(&c);
	server_stop(&s);
}

/* A peer that does not check: what the NIC of the other side does. */
static int raw_write(struct client *c, uint64_t far, uint32_t rkey, uint32_t len)
{
	struct fab_sge sge = { .addr = c->mem->reg.base, .len = len, .lkey = c->mem->reg.lkey };
	struct fab_wr wr = { .op = FAB_WRITE, .signaled = true, .nsge = 1, .sge = &sge,
			     .far = far, .rkey = rkey };
	int ret = peer_post(c->p, &wr, FAB_SLOTS, hawk_peer_deadline(WAIT));

	return ret ? ret : peer_drain(c->p, c->p->posted - 1, hawk_peer_deadline(WAIT));
}

static void malice_is_refused_by_the_nic(void **state)
{
	struct server s;
	struct client c;
	struct grant_in in;
	uint8_t note[HAWK_NOTE_MAX];
	unsigned int what, i;
	uint8_t any;

	(void)state;
	server_start(&s, 6, HAWK_GRANT_WRITE);
	client_open(&c);
	for (what = 0; what < 5; what++) {
		assert_ok(client_connect(&c));
		in = *peer_grant_find(c.p, c.g.id);
		memset(c.bytes, 0xee, BYTES);
		switch (what) {
		case 0:		/* beyond the end */
			assert_int_equal(raw_write(&c, in.addr + BYTES - 99, in.rkey, 100), -EACCES);
			break;
		case 1:		/* before the start */
			assert_int_equal(raw_write(&c, in.addr - 1, in.rkey, 100), -EACCES);
			break;
		case 2:		/* a key that somebody has guessed */
			assert_int_equal(raw_write(&c, in.addr, in.rkey ^ 0x40, 100), -EACCES);
			break;
		case 3:		/* a key that is over */
			assert_ok(hawk_peer_tell(c.p, "r", 1, WAIT));
			assert_int_equal(hawk_peer_hear(c.p, note, WAIT), 1);
			assert_int_equal(raw_write(&c, in.addr, in.rkey, 100), -EACCES);
			break;
		default:	/* the key of an earlier connection */
			hawk_peer_close(c.p);
			assert_ok(client_connect(&c));
			assert_int_equal(raw_write(&c, in.addr, in.rkey, 100), -EACCES);
			break;
		}
		assert_int_equal(hawk_peer_tell(c.p, "x", 1, WAIT), -EACCES);	/* it is over */
		hawk_peer_close(c.p);
		c.p = NULL;
		for (any = 0, i = 0; i < BYTES; i++)
			any |= s.bytes[i];
		assert_int_equal(any, 0);
	}
	client_close(&c);
	server_stop(&s);
}

/* A message of the client's, once more. */
static void repeated(struct client *c, struct fab_sge *sge)
{
	const struct peer_head *h;
	uint8_t note[HAWK_NOTE_MAX];

	assert_ok(hawk_peer_tell(c->p, "n", 1, WAIT));
	h = (const void *)(c->p->mem + (FAB_SLOTS + c->p->free_slots[c->p->nfree]) * FAB_MSG);
	assert_int_equal(h->type, MSG_NOTE);
	memcpy(c->bytes, h, FAB_MSG);
	sge->len = sizeof(*h) + h->len;
	assert_int_equal(hawk_peer_hear(c->p, note, WAIT), 1);
}

/* Bytes that are no messages, or not the one that comes now. */
static void noise_is_no_message(void **state)
{
	struct peer_head h;
	struct server s;
	struct client c;
	struct fab_sge sge;
	struct fab_wr wr = { .op = FAB_SEND, .signaled = true, .nsge = 1, .sge = &sge };
	unsigned int round, rounds = real() ? 4 : 200;

	(void)state;
	rng = 5;
	server_start(&s, (int)rounds, HAWK_GRANT_WRITE);
	client_open(&c);
	for (round = 0; round < rounds; round++) {
		assert_ok(client_connect(&c));
		scramble(c.bytes, FAB_MSG);
		h = (struct peer_head){ .magic = PEER_MAGIC, .version = 1, .seq = c.p->seq_out,
					.type = (uint8_t)(1 + draw(MSG_TYPES)), };
		sge = (struct fab_sge){ .addr = c.mem->reg.base, .lkey = c.mem->reg.lkey,
					.len = 1 + draw(FAB_MSG) };
		h.len = sge.len < sizeof(h) ? 0 : (uint16_t)(sge.len - sizeof(h));
		if (draw(4))
			memcpy(c.bytes, &h, sizeof(h));
		if (round % 3 == 0)
			repeated(&c, &sge);
		assert_ok(peer_post(c.p, &wr, FAB_SLOTS, hawk_peer_deadline(WAIT)));
		assert_int_equal(hawk_peer_hear(c.p, c.bytes, WAIT), -EPIPE);
		hawk_peer_close(c.p);
		c.p = NULL;
	}
	client_close(&c);
	server_stop(&s);
	assert_true(s.ended == -EPROTO || s.ended == -EACCES);
}

static void notes_wait_for_who_hears(void **state)
{
	struct server s;
	struct client c;
	struct hawk_peer_stats st;
	uint8_t note[HAWK_NOTE_MAX] = { 'n' };
	unsigned int sent = 0, heard = 0;
	int ret;

	(void)state;
	server_start(&s, 1, HAWK_GRANT_WRITE);
	client_open(&c);
	assert_ok(client_connect(&c));
	/* the server's answers fill the slots here, then it stops, and then we have to */
	do {
		memcpy(note + 1, &sent, sizeof(sent));
		ret = hawk_peer_tell(c.p, note, sizeof(note), 50);
		sent += !ret;
	} while (!ret && sent < 1000);
	assert_int_equal(ret, -ETIME);
	assert_true(sent >= FAB_SLOTS - 2);
	while (heard < sent) {
		assert_int_equal(hawk_peer_hear(c.p, note, WAIT), sizeof(note));
		assert_memory_equal(note + 1, &heard, sizeof(heard));
		heard++;
	}
	assert_ok(hawk_peer_tell(c.p, note, 1, WAIT));
	assert_int_equal(hawk_peer_hear(c.p, note, WAIT), 1);
	hawk_peer_stats(c.p, &st);
	assert_true(st.credit_waits);
	client_close(&c);
	server_stop(&s);
}

/* Two ends within this thread: the other one listens only when it is asked to. */
struct other {
	struct hawk_net *endpoint;
	struct hawk_peer *p;
	int accepted;
};

static void *accept_quietly(void *arg)
{
	struct other *o = arg;

	o->accepted = hawk_peer_accept(o->endpoint, WAIT, &o->p);
	return NULL;
}

static void join(struct client *c, struct other *o)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, accept_quietly, o), 0);
	assert_ok(hawk_peer_connect(c->net, at(), WAIT, &c->p));
	pthread_join(t, NULL);
	assert_ok(o->accepted);
}

/* Grants to who does not listen: what he was not told of is not granted, and no entry is lost. */
static void grants_not_told_of_are_none(void **state)
{
	struct hawk_grant g = { .bytes = 4096, .flags = HAWK_GRANT_READ }, got;
	struct hawk_peer_stats st;
	struct other to = { 0 };
	struct client c;
	unsigned int n = 0;
	int ret, round;

	(void)state;
	if (real())
		skip();		/* a request may take longer than no time */
	hawk_loop_faults(NULL);
	to.endpoint = net_open(key, true);
	assert_ok(hawk_net_listen(to.endpoint, at()));
	client_open(&c);
	join(&c, &to);
	for (round = 0; round < 8; round++) {
		do {
			g.tag = n;
			ret = hawk_peer_grant(c.p, c.mem, 0, &g, 0);
			n += !ret;
		} while (!ret);
		assert_int_equal(ret, n == HAWK_GRANTS_MAX ? -ENOSPC : -ETIME);
		assert_ok(hawk_peer_granted(to.p, n - 1, WAIT, &got));
		assert_int_equal(hawk_peer_granted(to.p, n, 0, &got), -ETIME);
		assert_ok(hawk_peer_tell(to.p, "n", 1, WAIT));
		assert_int_equal(hawk_peer_hear(c.p, c.bytes, WAIT), 1);
	}
	assert_int_equal(n, HAWK_GRANTS_MAX);
	/* who cannot be told that one is over is cut off, as the manual says */
	while (!hawk_peer_tell(c.p, "n", 1, 0))
		;
	assert_int_equal(hawk_peer_revoke(c.p, g.id, 0), -ETIME);
	hawk_peer_stats(c.p, &st);
	assert_int_equal(st.broken, -ETIME);
	hawk_peer_close(to.p);
	client_close(&c);
	hawk_net_close(to.endpoint);
}

/* A life of a connection. */
static int life(struct client *c)
{
	struct hawk_xfer x[3];
	uint8_t note[HAWK_NOTE_MAX];
	int i, ret = client_connect(c);

	if (ret)
		return ret;
	for (i = 0; i < 3; i++)
		x[i] = (struct hawk_xfer){ .mem = c->mem, .grant = c->g.id, .bytes = 100000,
					   .off = (uint64_t)i * 200000, .far_off = (uint64_t)i * 200000 };
	ret = hawk_peer_put(c->p, x, 3, WAIT);
	if (!ret)
		ret = hawk_peer_get(c->p, x, 3, WAIT);
	if (!ret)
		ret = hawk_peer_tell(c->p, "r", 1, WAIT);
	if (!ret)
		ret = hawk_peer_hear(c->p, note, WAIT);
	hawk_peer_close(c->p);
	c->p = NULL;
	return ret < 0 ? ret : 0;
}

static void breaks_at_any_request(void **state)
{
	struct server s;
	struct client c;
	uint64_t n, k;
	int ret, lost;

	(void)state;
	if (real())
		skip();
	hawk_loop_faults(NULL);
	server_start(&s, 1, HAWK_GRANT_READ | HAWK_GRANT_WRITE);
	client_open(&c);
	assert_ok(life(&c));
	server_stop(&s);
	n = hawk_loop_requests();
	assert_true(n > 8 && n < 200);
	for (lost = 0; lost < 2; lost++)
		for (k = 1; k <= n; k++) {
			server_start(&s, 2, HAWK_GRANT_READ | HAWK_GRANT_WRITE);
			hawk_loop_faults(&(struct loop_faults){ .kill = k, .lost_ack = lost,
								.seed = k, .lag = 2 });
			ret = life(&c);
			if (ret && ret != -EPIPE)
				fail_msg("request %d, ack lost %d: %d: %s", (int)k, lost, ret,
					 hawk_strerror_last());
			ret = life(&c);		/* and again */
			if (ret)
				fail_msg("after request %d, ack lost %d: %d: %s", (int)k, lost, ret,
					 hawk_strerror_last());
			server_stop(&s);
		}
	hawk_loop_faults(NULL);
	client_close(&c);
}

static void odd_arguments(void **state)
{
	struct hawk_net_params p = { .key = key, .key_bytes = 15 };
	struct hawk_mem_params m = { .dmabuf = -1, .addr = &p };
	struct hawk_peer *peer;
	struct hawk_net *net;
	struct hawk_mem *mem;

	(void)state;
	assert_int_equal(hawk_net_open(url(true), &p, &net), -EINVAL);
	p.key_bytes = 32;
	p.depth = 4097;
	assert_int_equal(hawk_net_open(url(true), &p, &net), -EINVAL);
	p.depth = 0;
	assert_int_equal(hawk_net_open("tcp:", &p, &net), -EINVAL);
	assert_ok(hawk_net_open(url(true), &p, &net));
	assert_int_equal(hawk_mem_add(net, &m, &mem), -EINVAL);
	m.bytes = UINT64_MAX;
	assert_int_equal(hawk_mem_add(net, &m, &mem), -EINVAL);
	assert_int_equal(hawk_peer_accept(net, 0, &peer), -EINVAL);
	assert_ok(hawk_net_listen(net, at()));
	assert_int_equal(hawk_net_listen(net, at()), -EBUSY);
	assert_int_equal(hawk_peer_accept(net, 1, &peer), -ETIME);
	hawk_net_close(net);
	/* Behind that: a request that comes late finds nobody who listens. */
	assert_ok(hawk_net_open(url(true), &p, &net));
	assert_int_equal(hawk_peer_connect(net, at(), 30, &peer), -ETIME);
	hawk_net_close(net);
	hawk_net_close(NULL);
	hawk_mem_del(NULL);
	hawk_peer_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_bytes),
		cmocka_unit_test(blocks_of_a_space),
		cmocka_unit_test(wrong_key_is_refused),
		cmocka_unit_test(outside_the_grant),
		cmocka_unit_test(malice_is_refused_by_the_nic),
		cmocka_unit_test(noise_is_no_message),
		cmocka_unit_test(notes_wait_for_who_hears),
		cmocka_unit_test(grants_not_told_of_are_none),
		cmocka_unit_test(breaks_at_any_request),
		cmocka_unit_test(odd_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
