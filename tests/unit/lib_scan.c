// SPDX-License-Identifier: MIT
/*
 * lib_scan.c - as many threads as there are CPUs find the blocks of a pool
 *
 * The pool is made of headers, some of them damaged, in chunks with gaps between them, so that
 * the readers have many short runs or few long ones.  A process that may use one CPU reads
 * alone; what it finds is known beforehand, and several readers find the same.  Some blocks
 * have bytes, and these come under their keys.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crc32c.h"
#include "libfixture.h"
#include "poolfile.h"

#define MIB	(1ull << 20)
#define SAMPLE	101u		/* one block of so many has bytes */
#define NAME	"scan"

struct pool {
	uint32_t block;		/* bytes */
	uint32_t chunks;
	uint32_t gap;		/* one chunk of so many is nobody's */
	uint32_t per;		/* slots of a chunk */
	uint32_t whole;		/* headers */
	uint32_t damaged;
	struct hawk_super super;
};

static char dir[256], file[300];

static uint64_t next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void key_of(uint32_t n, uint8_t *key)
{
	uint64_t state = n + 1, word;
	uint32_t i;

	for (i = 0; i < HAWK_KEY_BYTES; i += sizeof(word)) {
		word = next(&state);
		memcpy(key + i, &word, sizeof(word));
	}
}

/* By a lot that depends on its number: so both runs have the same. */
static bool is_damaged(uint32_t n)
{
	uint64_t state = ~(uint64_t)n;

	return next(&state) % 50 == 0 || n / 32 % 61 == 7;
}

static bool has_bytes(uint32_t n)
{
	return n % SAMPLE == 0 && !is_damaged(n);
}

/* ---- the pool ---- */

static void block_fill(const struct pool *p, uint32_t n, uint8_t *buf)
{
	uint64_t state = n;
	uint32_t i;

	for (i = 0; i < p->block; i++)
		buf[i] = (uint8_t)(i % 64 ? buf[i - 1] + 1u : next(&state));
}

static void header_fill(struct pool *p, int fd, const struct hawk_record *r, uint32_t slot,
			uint8_t *to)
{
	static uint8_t bytes[65536] __attribute__((aligned(4096)));
	uint32_t n = r->chunk * p->per + slot;
	struct hawk_header h = {
		.bytes = p->block, .space = r->space, .epoch = r->epoch, .gen = n + 1,
		.slot = (uint16_t)slot,
	};

	key_of(n, h.key);
	if (slot % 16) {
		h.hints = 1;	/* it has a parent */
		key_of(n - 1, h.parent);
	}
	if (has_bytes(n)) {
		block_fill(p, n, bytes);
		h.crc = hawk_crc32c(bytes, p->block);
		assert_int_equal(poolfile_write(fd, p->super.data_off + r->chunk * 2 * MIB +
						(uint64_t)slot * p->block, bytes, p->block, 0), 0);
	}
	hawk_header_encode(&h, hawk_pool_id(&p->super), to);
	if (is_damaged(n))
		to[n % HAWK_HEADER_BYTES] ^= 0x40;
	p->damaged += is_damaged(n);
	p->whole += !is_damaged(n);
}

static void chunk_fill(struct pool *p, int fd, struct hawk_record *r)
{
	static uint8_t headers[512 * HAWK_HEADER_BYTES], record[HAWK_RECORD_BYTES];
	uint32_t i;

	r->epoch = r->chunk + 1;
	hawk_record_encode(r, hawk_pool_id(&p->super), record);
	assert_int_equal(pwrite(fd, record, sizeof(record),
				(off_t)hawk_record_off(&p->super, r->chunk)), sizeof(record));
	for (i = 0; i < p->per; i++)
		header_fill(p, fd, r, i, headers + (size_t)i * HAWK_HEADER_BYTES);
	assert_int_equal(poolfile_write(fd, hawk_header_off(&p->super, r->chunk), headers,
					p->per * HAWK_HEADER_BYTES, 0), 0);
}

static void pool_make(struct pool *p)
{
	struct poolfile_params pp = {
		.bytes = (p->chunks + 8) * 2 * MIB, .slot_bytes = p->block, .sparse = true,
	};
	struct hawk_space_create c = {
		.block_bytes = p->block, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.name = NAME,
	};
	struct hawk_record r = { .kept = true };
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(poolfile_make(fd, &pp, &p->super), 0);
	assert_true(p->super.chunks >= p->chunks);
	p->per = (uint32_t)(2 * MIB) / p->block;
	p->whole = 0;
	p->damaged = 0;
	hawk_identity_of(&c, geteuid(), &r.owner);
	r.space = hawk_identity_hash(&r.owner);
	for (r.chunk = 0; r.chunk < p->chunks; r.chunk++)
		if (r.chunk % p->gap)
			chunk_fill(p, fd, &r);
	close(fd);
}

/* ---- what is found ---- */

static uint32_t right(struct hawk_kv *kv, const struct pool *p)
{
	static uint8_t want[65536];
	struct hawk_item it;
	uint32_t n, count = 0;

	for (n = 0; n < p->chunks * p->per; n++) {
		if (!has_bytes(n) || n / p->per % p->gap == 0)
			continue;
		it = (struct hawk_item) { .flags = HAWK_ITEM_BY_KEY };
		key_of(n, it.key);
		assert_int_equal(hawk_get(kv, &it, 1, NULL, NULL), 1);
		block_fill(p, n, want);
		assert_memory_equal(hawk_addr(kv, it.vt), want, p->block);
		it = (struct hawk_item) { .lid = it.lid, .vt = it.vt };
		assert_int_equal(hawk_unpin(kv, &it, 1), 1);
		count++;
	}
	return count;
}

static struct hawk_stats find(struct pool *p)
{
	struct hawk_kv_params kp = {
		.block_bytes = p->block, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.quota_all = 1, .name = NAME,
	};
	struct hawk_stats st;
	struct hawk_kv *kv;
	struct hawk *h;
	char url[400];

	pool_make(p);
	kp.max_blocks = p->chunks * p->per;
	snprintf(url, sizeof(url), "embed:?dram=4M&flash=%s&persist=1", file);
	assert_ok(hawk_open(url, &h));
	assert_ok(hawk_kv_create(h, &kp, &kv));
	assert_ok(hawk_kv_stats(kv, &st));
	assert_int_equal(st.recovered, p->whole);
	assert_int_equal(st.recover_corrupt, p->damaged);
	assert_true(right(kv, p) > p->chunks * p->per / SAMPLE / 2);
	hawk_kv_close(kv);
	hawk_close(h);
	return st;
}

static void found_by(struct pool *p)
{
	struct hawk_stats one, all;
	cpu_set_t cpus, first;
	uint32_t i;

	fx_dir_make(dir, sizeof(dir));
	snprintf(file, sizeof(file), "%s/pool", dir);
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (i = 0; !CPU_ISSET(i, &cpus); i++)
		;
	CPU_ZERO(&first);
	CPU_SET(i, &first);
	assert_int_equal(sched_setaffinity(0, sizeof(first), &first), 0);
	one = find(p);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	all = find(p);
	assert_true(one.recover_no_parent);
	assert_int_equal(all.recover_no_parent, one.recover_no_parent);
	fx_dir_remove(dir);
}

/* 4 KiB of headers each: 32 runs of neighbours fill no lane. */
static void short_runs(void **state)
{
	struct pool p = { .block = 65536, .chunks = 1500, .gap = 6 };

	(void)state;
	found_by(&p);
}

/* 64 KiB of headers each: longer runs than a transfer takes. */
static void long_runs(void **state)
{
	struct pool p = { .block = 4096, .chunks = 100, .gap = 23 };

	(void)state;
	found_by(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_runs),
		cmocka_unit_test(long_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
