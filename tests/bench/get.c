// SPDX-License-Identifier: MIT
/*
 * get.c - a second process gets blocks by key and reads them, against Redis
 *
 * The parent writes blocks into a named space of /dev/hawk; the child attaches to
 * it.  One get: hawk_get() by key (look-up, pin, translation), the sum of all bytes
 * through the child's own mapping, hawk_unpin().  The peer: GET of a Redis server
 * over a UNIX socket (-f), and the sum of the reply's bytes.  Both get the same keys
 * in the same order, one at a time, and both sums are checked.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "space.h"

#define SPACE_NAME	"bench-get"
#define DATA_BYTES	(64 * SPACE_MIB)

struct get {
	struct bench_space space;
	redisContext *redis;
	uint32_t block_bytes;
	uint32_t blocks;
};

static uint64_t get_ours(struct get *g, uint32_t n)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	uint64_t sum;
	void *p;

	space_key(n, it.key);
	if (hawk_get(g->space.kv, &it, 1, NULL, NULL) != 1)
		bench_die("get of block %u: %s", n, strerror(-it.status));
	p = hawk_addr(g->space.kv, it.vt);
	if (!p)
		bench_die("block %u has no address", n);
	sum = bench_sum(p, g->block_bytes);
	it.flags = 0;
	if (hawk_unpin(g->space.kv, &it, 1) != 1)
		bench_die("unpin of block %u: %s", n, strerror(-it.status));
	return sum;
}

static uint64_t get_redis(struct get *g, uint32_t n)
{
	uint8_t key[HAWK_KEY_BYTES];
	redisReply *r;
	uint64_t sum;

	space_key(n, key);
	r = redisCommand(g->redis, "GET %b", key, sizeof(key));
	if (!r || r->type != REDIS_REPLY_STRING || r->len != g->block_bytes)
		bench_die("Redis GET: %s", r && r->type == REDIS_REPLY_ERROR ? r->str :
			  g->redis->errstr);
	sum = bench_sum(r->str, r->len);
	freeReplyObject(r);
	return sum;
}

static void redis_fill(struct get *g, const char *path)
{
	uint64_t *buf = malloc(g->block_bytes);
	uint8_t key[HAWK_KEY_BYTES];
	redisReply *r;
	uint32_t n, i;

	g->redis = redisConnectUnix(path);
	if (!buf || !g->redis || g->redis->err)
		bench_die("connecting to Redis at %s: %s", path,
			  g->redis ? g->redis->errstr : "no memory");
	for (n = 0; n < g->blocks; n++) {
		for (i = 0; i < g->block_bytes / sizeof(*buf); i++)
			buf[i] = (uint64_t)n + i;
		space_key(n, key);
		r = redisCommand(g->redis, "SET %b %b", key, sizeof(key), buf,
				 (size_t)g->block_bytes);
		if (!r || r->type == REDIS_REPLY_ERROR)
			bench_die("Redis SET: %s", r ? r->str : g->redis->errstr);
		freeReplyObject(r);
	}
	free(buf);
}

/* Return: microseconds per get over at least @ms milliseconds. */
static double measure(struct get *g, uint64_t (*get)(struct get *g, uint32_t n), unsigned int ms)
{
	uint64_t rng = 31337, t0 = bench_now(), t, count = 0;
	uint32_t n;

	do {
		n = (uint32_t)(bench_rand(&rng) >> 32) % g->blocks;
		if (get(g, n) != space_block_sum(n, g->block_bytes))
			bench_die("block %u has other bytes", n);
		count++;
		t = bench_now();
	} while (t - t0 < ms * 1000000ull);
	return (double)(t - t0) * 1e-3 / (double)count;
}

static int reader(const struct bench_opts *o, uint32_t blocks)
{
	struct get g = { .block_bytes = o->block_bytes, .blocks = blocks };
	char name[64];
	unsigned int r;

	snprintf(name, sizeof(name), "get_vs_redis_%s", o->block_bytes == 1 << 20 ? "1m" : "128k");
	bench_check(hawk_open(o->url, &g.space.h), hawk_strerror_last());
	bench_check(hawk_kv_attach(g.space.h, SPACE_NAME, &g.space.kv), hawk_strerror_last());
	redis_fill(&g, o->file);
	measure(&g, get_ours, 50);	/* first faults, first replies */
	measure(&g, get_redis, 50);
	for (r = 0; r < o->runs; r++) {
		bench_emit(name, BENCH_OURS, measure(&g, get_ours, o->ms), "us");
		bench_emit(name, BENCH_PEER, measure(&g, get_redis, o->ms), "us");
	}
	redisFree(g.redis);
	space_close(&g.space);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 5, .ms = 1000, .block_bytes = 128 << 10, .url = "dev:" };
	struct bench_space s;
	uint32_t blocks;
	int status;
	pid_t pid;

	bench_args(&o, argc, argv);
	if (!o.file)
		bench_die("-f SOCKET is missing");
	blocks = (uint32_t)(DATA_BYTES / o.block_bytes);
	space_open(&s, o.url, 2 * DATA_BYTES, NULL, 0);
	space_create(&s, o.block_bytes, blocks, SPACE_NAME);
	space_fill(&s, blocks, o.block_bytes);
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(reader(&o, blocks));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		bench_die("starting the reader");
	hawk_kv_destroy(s.h, SPACE_NAME);
	space_close(&s);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
