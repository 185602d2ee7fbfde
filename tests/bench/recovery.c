// SPDX-License-Identifier: MIT
/*
 * recovery.c - how long a space takes to find a million blocks on flash
 *
 * Makes a sparse pool in -f FILE whose headers, but not their blocks, are there: chains of
 * 64, as prompts leave them.  Prints "ready OFFSET BYTES", where they are.  For each line on
 * standard input it opens the pool, makes the space, and prints how long that took, and at
 * what rate headers became blocks.  bench.py reads the same bytes with fio in between.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../libhawk/poolfile.h"
#include "bench.h"
#include "space.h"

#define SLOTS	1000000u
#define SLOT	16384u
#define PER	(HAWK_CHUNK_BYTES / SLOT)
#define CHAIN	64u
#define NAME	"recovery"

static void chunk_fill(const struct hawk_super *s, int fd, uint32_t chunk, uint64_t space)
{
	struct hawk_header h = { .bytes = SLOT, .space = space, .epoch = chunk + 1 };
	static uint8_t buf[PER * HAWK_HEADER_BYTES];
	uint32_t i, n;

	memset(buf, 0, sizeof(buf));
	for (i = 0; i < PER; i++) {
		n = chunk * PER + i;
		if (n >= SLOTS)
			break;
		h.slot = (uint16_t)i;
		h.gen = n + 1;
		space_key(n, h.key);
		h.hints = n % CHAIN ? 1 : 16;
		if (n % CHAIN)
			space_key(n - 1, h.parent);
		else
			memset(h.parent, 0, sizeof(h.parent));
		hawk_header_encode(&h, hawk_pool_id(s), buf + i * HAWK_HEADER_BYTES);
	}
	bench_check(poolfile_write(fd, hawk_header_off(s, chunk), buf, sizeof(buf), 0),
		    "writing headers");
}

static void records_fill(const struct hawk_super *s, int fd, struct hawk_record *r)
{
	uint32_t chunks = (SLOTS + PER - 1) / PER;
	uint8_t *buf = calloc(1, (size_t)chunks * HAWK_RECORD_BYTES);

	if (!buf)
		bench_die("no memory");
	for (r->chunk = 0; r->chunk < chunks; r->chunk++) {
		r->epoch = r->chunk + 1;
		hawk_record_encode(r, hawk_pool_id(s), buf + (size_t)r->chunk * HAWK_RECORD_BYTES);
		chunk_fill(s, fd, r->chunk, r->space);
	}
	bench_check(poolfile_write(fd, s->record_off, buf, (size_t)chunks * HAWK_RECORD_BYTES, 0),
		    "writing records");
	free(buf);
}

static void pool_fill(const char *path)
{
	struct poolfile_params pp = {
		.bytes = (SLOTS / PER + 64ull) * HAWK_CHUNK_BYTES + 256 * SPACE_MIB,
		.slot_bytes = SLOT, .sparse = true,
	};
	struct hawk_space_create c = {
		.block_bytes = SLOT, .block_tokens = SPACE_TOKENS, .layers = 1, .head_groups = 1,
		.name = NAME,
	};
	struct hawk_record r = { .kept = true };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct hawk_super s;

	if (fd < 0)
		bench_die("%s cannot be made", path);
	bench_check(poolfile_make(fd, &pp, &s), "making a pool");
	hawk_identity_of(&c, geteuid(), &r.owner);
	r.space = hawk_identity_hash(&r.owner);
	records_fill(&s, fd, &r);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	printf("ready %llu %llu\n", (unsigned long long)s.header_off,
	       (unsigned long long)SLOTS * HAWK_HEADER_BYTES);
	fflush(stdout);
}

static void recover(const char *url)
{
	struct bench_space s;
	struct hawk_stats st;
	uint64_t t0 = bench_now(), ns;

	space_open(&s, url, 0, NULL, 0);
	space_create(&s, SLOT, SLOTS + 4096, NAME);
	ns = bench_now() - t0;
	bench_check(hawk_kv_stats(s.kv, &st), hawk_strerror_last());
	if (st.recovered != SLOTS || st.recover_no_parent)
		bench_die("%llu of %u blocks were found", (unsigned long long)st.recovered, SLOTS);
	space_close(&s);
	bench_emit("recovery_1m_slots", BENCH_OURS, (double)ns / 1e9, "s");
	bench_emit("recovery_vs_read", BENCH_OURS, (double)SLOTS * HAWK_HEADER_BYTES * 1e3 /
		   (double)ns, "MB/s");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { 0 };
	char url[4200], line[16];

	bench_args(&o, argc, argv);
	if (!o.file)
		bench_die("-f FILE is needed");
	snprintf(url, sizeof(url), "embed:?dram=64M&flash=%s&persist=1", o.file);
	pool_fill(o.file);
	while (fgets(line, sizeof(line), stdin))
		recover(url);
	return 0;
}
