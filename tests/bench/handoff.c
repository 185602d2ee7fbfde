// SPDX-License-Identifier: MIT
/*
 * handoff.c - a context of 64k tokens gets to another process on the same device
 *
 * Ours: hawk_seq_give() to a process that waits in hawk_seq_take(), until it has answered; what
 * is given is a fork, which is not counted.  Peer: memcpy() of the KV bytes out of the frames
 * into memory that is there already, as if the other process could read it there; no message,
 * no allocation.  2 layers of 1 KiB for each token.  Real time, since two processes have a part
 * in it.  Needs the device: -u dev:
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "space.h"

#define TOKENS		65536u
#define LAYERS		2u
#define BLOCK_BYTES	(SPACE_TOKENS << 10)
#define BLOCKS		(TOKENS / SPACE_TOKENS * LAYERS)
#define STEP		(HAWK_BATCH_MAX / LAYERS * SPACE_TOKENS)	/* tokens of an append */
#define ROUNDS		64u	/* hand-offs of a measurement */

struct context {
	struct hawk_kv *kv;
	uint32_t seq;
	void *block[BLOCKS];
	uint8_t *copy;
	int sock;
};

static void build(struct context *c)
{
	static struct hawk_item it[HAWK_BATCH_MAX];
	const struct hawk_opts keep = { .flags = HAWK_BATCH_KEEP_PIN };
	struct hawk_append a = { .len = STEP, .it = it, .max = HAWK_BATCH_MAX };
	uint32_t i, n = 0;

	bench_check(hawk_seq_new(c->kv, 0, &c->seq), hawk_strerror_last());
	a.seq = c->seq;
	for (a.pos = 0; a.pos < TOKENS; a.pos += STEP) {
		bench_check(hawk_seq_append(c->kv, &a), hawk_strerror_last());
		for (i = 0; i < a.n; i++, n++) {
			c->block[n] = hawk_addr(c->kv, it[i].vt);
			memset(c->block[n], (int)n, BLOCK_BYTES);
		}
		bench_check(hawk_put(c->kv, it, a.n, &keep), hawk_strerror_last());
	}
	if (n != BLOCKS)
		bench_die("%u blocks, not %u", n, BLOCKS);
}

/* Takes what comes until nothing comes any more. */
static void take_all(const char *url, int sock)
{
	struct hawk_kv *kv;
	struct hawk *h;
	uint32_t seq;
	int ret;

	bench_check(hawk_open(url, &h), hawk_strerror_last());
	bench_check(hawk_kv_take(h, sock, &kv), hawk_strerror_last());
	while (!(ret = hawk_seq_take(kv, sock, 0, &seq)))
		bench_check(hawk_seq_free(kv, seq), hawk_strerror_last());
	if (ret != -EPIPE)
		bench_die("%s", hawk_strerror_last());
	hawk_kv_close(kv);
	hawk_close(h);
	_exit(0);
}

static double measure_ours(struct context *c)
{
	uint64_t t, spent = 0;
	uint32_t i, fork;

	for (i = 0; i < ROUNDS; i++) {
		bench_check(hawk_seq_fork(c->kv, c->seq, 0, &fork), hawk_strerror_last());
		t = bench_now();
		bench_check(hawk_seq_give(c->kv, c->sock, fork, 0), hawk_strerror_last());
		spent += bench_now() - t;
	}
	return (double)spent / ROUNDS / 1e3;
}

static double measure_peer(struct context *c)
{
	uint64_t t = bench_now();
	uint32_t i;

	for (i = 0; i < BLOCKS; i++)
		memcpy(c->copy + (uint64_t)i * BLOCK_BYTES, c->block[i], BLOCK_BYTES);
	bench_keep(c->copy[BLOCK_BYTES]);
	return (double)(bench_now() - t) / 1e3;
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 7, .url = "dev:" };
	struct hawk_kv_params p = {
		.block_bytes = BLOCK_BYTES, .block_tokens = SPACE_TOKENS, .layers = LAYERS,
		.head_groups = 1, .max_blocks = 2 * BLOCKS, .quota_all = 1, .seqs = 256,
	};
	static struct context c;
	struct bench_space s;
	int sock[2], status;
	uint32_t r;
	pid_t pid;

	bench_args(&o, argc, argv);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock))
		bench_die("no socket");
	pid = fork();
	if (!pid) {
		close(sock[0]);
		take_all(o.url, sock[1]);
	}
	close(sock[1]);
	c.sock = sock[0];
	space_open(&s, o.url, 160 * SPACE_MIB, NULL, 0);
	bench_check(hawk_kv_create(s.h, &p, &s.kv), hawk_strerror_last());
	c.kv = s.kv;
	build(&c);
	c.copy = bench_table((uint64_t)BLOCKS * BLOCK_BYTES);
	bench_check(hawk_kv_give(c.kv, c.sock), hawk_strerror_last());
	measure_ours(&c);
	measure_peer(&c);
	for (r = 0; r < o.runs; r++) {
		bench_emit("handoff_same_host_vs_copy", BENCH_OURS, measure_ours(&c), "us");
		bench_emit("handoff_same_host_vs_copy", BENCH_PEER, measure_peer(&c), "us");
	}
	close(c.sock);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("the taker failed");
	free(c.copy);
	space_close(&s);
	return 0;
}
