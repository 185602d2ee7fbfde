// SPDX-License-Identifier: MIT
/*
 * peer_do.c - two hosts that try libhawk's transport out (tests/e2e/peer-vm.t)
 *
 *	peer_do serve ADDRESS PORT	a decode host, which does what notes of its peers say
 *	peer_do CASE ADDRESS HOST PORT	a prefill host; prints "ok CASE" or what went wrong
 *
 * Cases: putget, ways, crash, key, malice, lossy, quit.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "peer_host.h"

#define BYTES	(16u << 20)
#define LOSSY_BYTES	(2u << 20)		/* put and got over a wire that loses packets */
#define TAG	1u
#define LAYERS	4u
#define TOKENS	333u			/* 2 MiB of the 70B model's layers, and a padded tail */

/* The layers of a 70B model: 8 KV heads of 128 elements, fp16. */
static struct hawk_layout layout(unsigned int form, uint32_t block_tokens)
{
	struct hawk_layout l = {
		.elem_bytes = 2, .dim = 128, .heads_all = 8, .layers_all = LAYERS,
		.block_tokens = block_tokens, .blocks = (TOKENS + block_tokens - 1) / block_tokens,
	};

	if (hawk_layout_form(&l, form) || l.bytes > BYTES)
		die("layout");
	return l;
}

/* ---- decode ---- */

/* "recv", or "crash": dies when it has one layer. */
static int take_sequence(struct host *h, bool crash, char *answer)
{
	struct hawk_layout l = layout(HAWK_FORM_TILE16, 32);
	const struct hawk_recv_params p = { .mem = h->mem, .layout = &l, .tag = TAG };
	struct hawk_recv *r;
	int ret;

	memset(h->bytes, 0x11, BYTES);
	ret = hawk_recv_open(h->p, &p, WAIT, &r);
	if (ret)
		return ret;
	if (crash && !hawk_recv_wait(r, 1, WAIT))
		raise(SIGKILL);
	ret = hawk_recv_wait(r, LAYERS, WAIT);
	if (!ret)
		ret = hawk_recv_ack(r, WAIT);
	hawk_recv_close(r);
	snprintf(answer, HAWK_NOTE_MAX, "%08x", hawk_crc32c(h->bytes, l.bytes));
	return ret;
}

/* One note; what is answered. */
static int obey(struct host *h, const char *note, char *answer)
{
	static struct hawk_grant g;

	if (!strcmp(note, "grant")) {
		g = (struct hawk_grant){ .bytes = BYTES, .tag = TAG,
					 .flags = HAWK_GRANT_READ | HAWK_GRANT_WRITE };
		return hawk_peer_grant(h->p, h->mem, 0, &g, WAIT);
	}
	if (!strcmp(note, "revoke"))
		return hawk_peer_revoke(h->p, g.id, WAIT);
	if (!strcmp(note, "crc"))
		snprintf(answer, HAWK_NOTE_MAX, "%08x", hawk_crc32c(h->bytes, BYTES));
	if (!strcmp(note, "recv") || !strcmp(note, "crash"))
		return take_sequence(h, *note == 'c', answer);
	if (!strcmp(note, "lossy") && lose_packets())
		strcpy(answer, "no netem");
	if (!strcmp(note, "quit"))
		exit(0);
	return 0;
}

/* ---- prefill ---- */

static void scramble(uint8_t *p, size_t n, uint64_t seed)
{
	while (n--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		*p++ = (uint8_t)(seed >> 33);
	}
}

static struct hawk_grant granted(struct host *h)
{
	char answer[HAWK_NOTE_MAX];
	struct hawk_grant g;

	ask(h, "grant", answer);
	want(hawk_peer_granted(h->p, TAG, WAIT, &g), 0, "a grant");
	return g;
}

/* The first @bytes, blocks of 64 KiB, go there in another order, and come back. */
static void put_and_get(struct host *h, size_t bytes)
{
	const unsigned int n = (unsigned int)(bytes >> 16);
	struct hawk_xfer *x = calloc(n, sizeof(*x));
	uint8_t *copy = malloc(BYTES), *there = malloc(BYTES);
	char answer[HAWK_NOTE_MAX], crc[16];
	struct hawk_grant g;
	unsigned int i;
	int ret;

	scramble(h->bytes, BYTES, 1);
	memcpy(copy, h->bytes, BYTES);
	for (i = 0; i < n; i++) {
		x[i] = (struct hawk_xfer){ .mem = h->mem, .bytes = 1u << 16,
			.off = (uint64_t)i << 16, .far_off = (uint64_t)(i * 37 % n) << 16 };
		memcpy(there + x[i].far_off, copy + x[i].off, x[i].bytes);
	}
	for (;;) {
		g = granted(h);
		for (i = 0; i < n; i++)
			x[i].grant = g.id;
		ret = hawk_peer_put(h->p, x, n, WAIT);
		if (!ret)
			break;
		mend(h, ret, "put");
	}
	ask(h, "crc", answer);
	snprintf(crc, sizeof(crc), "%08x", hawk_crc32c(there, BYTES));
	if (bytes == BYTES)	/* otherwise nobody knows what else is there */
		want(strcmp(answer, crc), 0, "the bytes that were put");
	for (;;) {
		memset(h->bytes, 0, BYTES);
		ret = hawk_peer_get(h->p, x, n, WAIT);
		if (!ret)
			break;
		mend(h, ret, "get");
		g = granted(h);
		for (i = 0; i < n; i++)
			x[i].grant = g.id;
	}
	want(memcmp(copy, h->bytes, bytes), 0, "the bytes that were got");
	free(x);
	free(copy);
	free(there);
}

static void putget(struct host *h)
{
	put_and_get(h, BYTES);
}

/* What the decode host must have in the end. */
static void expected(const struct host *h, char crc[16])
{
	struct hawk_layout from = layout(HAWK_FORM_HND, 16), to = layout(HAWK_FORM_TILE16, 32);
	const struct hawk_range r = { .tokens = TOKENS };
	struct hawk_layout_plan *plan;
	struct hawk_copy c = { .src = h->bytes, .src_bytes = from.bytes, .dst_bytes = to.bytes };

	c.dst = malloc(to.bytes);
	memset(c.dst, 0x11, to.bytes);
	if (hawk_layout_plan_open(&from, &to, &r, &plan) || hawk_layout_copy(plan, &c))
		die("plan");
	snprintf(crc, 16, "%08x", hawk_crc32c(c.dst, to.bytes));
	hawk_layout_plan_close(plan);
	free(c.dst);
}

/* Tells the other side what to do with it, and offers. */
static int offer(struct host *h, const char *note, unsigned int way, struct hawk_send **s)
{
	const struct hawk_layout from = layout(HAWK_FORM_HND, 16);
	const struct hawk_send_params p = {
		.mem = h->mem, .layout = &from, .range = { .tokens = TOKENS }, .tag = TAG,
		.chunk_layers = 1, .way = way, .frame_bytes = 256 << 10,
	};

	int ret = hawk_peer_tell(h->p, note, (uint32_t)strlen(note) + 1, WAIT);

	return ret ? ret : hawk_send_open(h->p, &p, WAIT, s);
}

/* From the offer to the answer; the copy stays with us until it has been decoded. */
static int attempt(struct host *h, unsigned int way, char answer[HAWK_NOTE_MAX])
{
	struct hawk_send *s;
	uint32_t n;
	int ret = offer(h, "recv", way, &s);

	if (ret)
		return ret;
	for (n = 1; n <= LAYERS && !ret; n++)
		ret = hawk_send_layers(s, n);
	if (!ret)
		ret = hawk_send_wait(s, 4 * WAIT);
	if (!ret)
		do
			ret = hawk_send_kept(s);
		while (ret == -EAGAIN);
	hawk_send_close(s);
	if (!ret)
		ret = hawk_peer_hear(h->p, answer, WAIT);
	return ret < 0 ? ret : 0;
}

static void send_one(struct host *h, unsigned int way)
{
	char answer[HAWK_NOTE_MAX], crc[16];
	int ret;

	expected(h, crc);
	while ((ret = attempt(h, way, answer)))
		mend(h, ret, "sending");
	want(strcmp(answer, crc), 0, "the bytes over there");
}

static void ways(struct host *h)
{
	scramble(h->bytes, BYTES, 2);
	send_one(h, HAWK_WAY_ENTRIES);
	send_one(h, HAWK_WAY_SENDER);
	send_one(h, HAWK_WAY_RECEIVER);
}

/* The decode host is killed when it has a layer; its successor gets the same copy. */
static void crash(struct host *h)
{
	char answer[HAWK_NOTE_MAX], crc[16];
	struct hawk_peer *dead = h->p;
	struct hawk_send *s;

	scramble(h->bytes, BYTES, 3);
	expected(h, crc);
	want(offer(h, "crash", HAWK_WAY_SENDER, &s), 0, "offering a sequence");
	want(hawk_send_layers(s, LAYERS), 0, "layers");
	want(hawk_send_wait(s, WAIT), -EPIPE, "sending to a host that dies");
	want(hawk_send_kept(s), -EPIPE, "the copy");
	again(h);
	tell(h, "recv");
	want(hawk_send_resume(s, h->p, WAIT), 0, "resume");
	hawk_peer_close(dead);
	want(hawk_send_wait(s, WAIT), 0, "sending again");
	hawk_send_close(s);
	if (hawk_peer_hear(h->p, answer, WAIT) < 0)
		die("the answer");
	want(strcmp(answer, crc), 0, "the bytes at the successor's");
}

static void wrong_key(struct host *h)
{
	struct hawk_peer *p;
	char answer[HAWK_NOTE_MAX];

	hawk_peer_close(h->p);
	h->ep->key[0] ^= 1;
	want(hawk_peer_connect(h->ep, h->where, WAIT, &p), -EACCES, "another key");
	h->ep->key[0] ^= 1;
	again(h);
	ask(h, "crc", answer);
}

/* Requests that hawk_peer_put() would refuse go to the NIC as they are. */
static int raw(struct host *h, uint64_t far, uint32_t rkey)
{
	struct fab_sge sge = { .addr = h->mem->reg.base, .len = 4096, .lkey = h->mem->reg.lkey };
	struct fab_wr wr = { .op = FAB_WRITE, .signaled = true, .nsge = 1, .sge = &sge,
			     .far = far, .rkey = rkey };
	int ret = peer_post(h->p, &wr, FAB_SLOTS, hawk_peer_deadline(WAIT));

	return ret ? ret : peer_drain(h->p, h->p->posted - 1, hawk_peer_deadline(WAIT));
}

static void malice(struct host *h)
{
	char before[HAWK_NOTE_MAX], after[HAWK_NOTE_MAX], answer[HAWK_NOTE_MAX];
	struct grant_in in;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		in = *peer_grant_find(h->p, granted(h).id);
		ask(h, "crc", before);
		if (i == 0)
			want(raw(h, in.addr + BYTES, in.rkey), -EACCES, "outside the grant");
		if (i == 1)
			want(raw(h, in.addr, in.rkey + 1), -EACCES, "a guessed key");
		if (i == 2) {
			ask(h, "revoke", answer);
			want(raw(h, in.addr, in.rkey), -EACCES, "a key that is over");
		}
		hawk_peer_close(h->p);
		again(h);
		ask(h, "crc", after);
		want(strcmp(before, after), 0, "the other side's bytes");
	}
}

static void lossy(struct host *h)
{
	char answer[HAWK_NOTE_MAX];

	h->tries = 10;
	ask(h, "lossy", answer);
	want(strcmp(answer, "done"), 0, "netem over there");
	want(lose_packets(), 0, "netem");
	put_and_get(h, LOSSY_BYTES);
	ways(h);
}

/* Until he has gone: a wire that loses packets may lose the note, if nobody is left to repeat it. */
static void quit(struct host *h)
{
	char answer[HAWK_NOTE_MAX];

	tell(h, "quit");
	hawk_peer_hear(h->p, answer, WAIT);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct host *h);
	} cases[] = {
		{ "putget", putget }, { "ways", ways }, { "crash", crash }, { "key", wrong_key },
		{ "malice", malice }, { "lossy", lossy }, { "quit", quit },
	};
	struct host h;
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && !strcmp(argv[1], "serve")) {
		host_open(&h, argv[2], BYTES);
		serve(&h, argv[2], argv[3], obey);
	}
	for (i = 0; argc == 5 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		host_open(&h, argv[2], BYTES);
		meet(&h, argv[3], argv[4]);
		cases[i].run(&h);
		printf("ok %s\n", argv[1]);
		host_close(&h);
		return 0;
	}
	fprintf(stderr, "usage: peer_do serve ADDRESS PORT | CASE ADDRESS HOST PORT\n");
	return 2;
}
