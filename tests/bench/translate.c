// SPDX-License-Identifier: MIT
/*
 * translate.c - LID translation against a lock-free hash table, or the ioctl
 *
 * One million resident blocks (4,096 sequences of 256), looked up in random
 * order: a block table of 64 at a time with hawk_translate_batch(), as an engine
 * translates a sequence, and one by one with hawk_translate().  The peer is liburcu's cds_lfht, QSBR flavour (its fastest: read-side
 * sections cost nothing), with as many buckets as the vTLB has entries, the same
 * hash function, and its nodes in one table on huge pages.  Both sides draw the
 * LIDs from the same generator inside the measured loop.  One thread, so its CPU
 * time is measured: other load on the machine then matters less.
 *
 * With the device (-u dev:) the peer is HAWK_IOC_TRANSLATE, one LID per call and
 * 64 per call.
 */
#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/rculfhash.h>

#include "bench.h"
#include "space.h"

#define BLOCKS		(1u << 20)
#define DEV_BLOCKS	(1u << 16)	/* the lab's memory is small */
#define BLOCK_BYTES	4096u
#define LOOK		1024	/* look-ups between looks at the clock */

struct node {
	struct cds_lfht_node node;
	uint64_t lid;
	uint64_t val;
};

struct bench {
	struct bench_space space;
	uint32_t blocks;	/* a power of two */
	int fd;			/* the device, for the ioctl peer */
	unsigned int batch;
	struct cds_lfht *ht;
	struct node *node;
	uint64_t lookups;
};

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= HAWK_MIX_A;
	x ^= x >> 33;
	x *= HAWK_MIX_B;
	x ^= x >> 33;
	return x;
}

static void peer_fill(struct bench *b)
{
	uint32_t i;

	b->ht = cds_lfht_new_flavor(2 * b->blocks, 2 * b->blocks, 2 * b->blocks, 0,
				    &urcu_qsbr_flavor, NULL);
	if (!b->ht)
		bench_die("no memory for the hash table");
	b->node = bench_table((uint64_t)b->blocks * sizeof(*b->node));
	for (i = 0; i < b->blocks; i++) {
		b->node[i].lid = space_lid(i);
		b->node[i].val = hawk_translate_slow(b->space.kv, b->node[i].lid);
		cds_lfht_add(b->ht, mix(b->node[i].lid), &b->node[i].node);
	}
}

static int match(struct cds_lfht_node *n, const void *key)
{
	return caa_container_of(n, struct node, node)->lid == *(const uint64_t *)key;
}

static uint64_t look_ours(struct bench *b, uint64_t *rng)
{
	uint64_t sum = 0, lid, vt;
	int i;

	for (i = 0; i < LOOK; i++) {
		lid = space_lid(bench_rand(rng) >> 32 & (b->blocks - 1));
		vt = hawk_translate(b->space.kv, lid);
		if (!vt)	/* one of the few that found no room in the vTLB */
			vt = hawk_translate_slow(b->space.kv, lid);
		sum += vt;
	}
	return sum;
}

#define TABLE	64	/* LIDs of a block table */

static uint64_t look_batch(struct bench *b, uint64_t *rng)
{
	uint64_t sum = 0, lid[TABLE], vt[TABLE];
	int i, j;

	for (i = 0; i < LOOK; i += TABLE) {
		for (j = 0; j < TABLE; j++)
			lid[j] = space_lid(bench_rand(rng) >> 32 & (b->blocks - 1));
		hawk_translate_batch(b->space.kv, lid, vt, TABLE);
		for (j = 0; j < TABLE; j++)
			sum += vt[j] ?: hawk_translate_slow(b->space.kv, lid[j]);
	}
	return sum;
}

static uint64_t look_lfht(struct bench *b, uint64_t *rng)
{
	struct cds_lfht_iter it;
	uint64_t sum = 0, lid;
	int i;

	urcu_qsbr_read_lock();
	for (i = 0; i < LOOK; i++) {
		lid = space_lid(bench_rand(rng) >> 32 & (b->blocks - 1));
		cds_lfht_lookup(b->ht, mix(lid), match, &lid, &it);
		if (it.node)
			sum += caa_container_of(it.node, struct node, node)->val;
	}
	urcu_qsbr_read_unlock();
	urcu_qsbr_quiescent_state();
	return sum;
}

static uint64_t look_ioctl(struct bench *b, uint64_t *rng)
{
	struct hawk_item item[64];
	struct hawk_batch batch = {
		.size = sizeof(batch),
		.count = b->batch,
		.items = (uintptr_t)item,
	};
	uint64_t sum = 0;
	unsigned int i, j;

	memset(item, 0, sizeof(item));
	for (i = 0; i < LOOK; i += b->batch) {
		for (j = 0; j < b->batch; j++)
			item[j].lid = space_lid(bench_rand(rng) >> 32 & (b->blocks - 1));
		if (ioctl(b->fd, HAWK_IOC_TRANSLATE, &batch) || batch.done != b->batch)
			bench_die("HAWK_IOC_TRANSLATE: %s", strerror(errno));
		for (j = 0; j < b->batch; j++)
			sum += item[j].vt;
	}
	return sum;
}

/* Return: CPU nanoseconds per look-up over about @ms milliseconds. */
static double measure(struct bench *b, uint64_t (*look)(struct bench *b, uint64_t *rng),
		      unsigned int ms)
{
	uint64_t rng = 0x1234567, t0, t, n = 0, sum = 0;

	t0 = bench_cpu();
	do {
		sum += look(b, &rng);
		n += LOOK;
		t = bench_cpu();
	} while (t - t0 < ms * 1000000ull);
	bench_keep(sum);
	return (double)(t - t0) / (double)n;
}

/* Both sides must agree on every LID before anything is timed. */
static void agree(struct bench *b, uint64_t (*ours)(struct bench *b, uint64_t *rng),
		  uint64_t (*peer)(struct bench *b, uint64_t *rng))
{
	uint64_t r0 = 99, r1 = 99;
	int i;

	for (i = 0; i < 64; i++)
		if (ours(b, &r0) != peer(b, &r1))
			bench_die("the two sides translate differently");
}

static void compare(struct bench *b, const char *name, const struct bench_opts *o,
		    uint64_t (*ours)(struct bench *b, uint64_t *rng),
		    uint64_t (*peer)(struct bench *b, uint64_t *rng))
{
	unsigned int r;

	agree(b, ours, peer);
	for (r = 0; r < o->runs; r++) {
		bench_emit(name, BENCH_OURS, measure(b, ours, o->ms), "ns");
		bench_emit(name, BENCH_PEER, measure(b, peer, o->ms), "ns");
	}
}

static void against_lfht(struct bench *b, const struct bench_opts *o)
{
	urcu_qsbr_register_thread();
	peer_fill(b);
	compare(b, "translate_vs_lfht", o, look_batch, look_lfht);
	compare(b, "translate_one_vs_lfht", o, look_ours, look_lfht);
	urcu_qsbr_unregister_thread();
}

/* The ioctl needs the file that the library has bound the space to: find it. */
static int space_fd(void)
{
	struct hawk_space_info info;
	int fd;

	for (fd = 3; fd < 64; fd++) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (!ioctl(fd, HAWK_IOC_SPACE_INFO, &info))
			return fd;
	}
	bench_die("the library holds no file with a space");
}

static void against_ioctl(struct bench *b, const struct bench_opts *o)
{
	b->fd = space_fd();
	b->batch = 1;
	compare(b, "translate_vs_ioctl", o, look_ours, look_ioctl);
	b->batch = 64;
	compare(b, "translate_vs_ioctl_64", o, look_ours, look_ioctl);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .runs = 7, .ms = 300, .url = "embed:?dram=4G" };
	struct bench b = { 0 };
	bool dev;

	bench_args(&o, argc, argv);
	space_open(&b.space, o.url, 2 * DEV_BLOCKS * BLOCK_BYTES, NULL, 0);
	dev = space_is_dev(&b.space);
	b.blocks = dev ? DEV_BLOCKS : BLOCKS;
	space_create(&b.space, BLOCK_BYTES, b.blocks, NULL);
	space_fill(&b.space, b.blocks, 0);
	if (dev)
		against_ioctl(&b, &o);
	else
		against_lfht(&b, &o);
	space_close(&b.space);
	return 0;
}
