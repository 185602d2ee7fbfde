// SPDX-License-Identifier: MIT
/*
 * reload.c - whole batches of blocks brought back from flash
 *
 * Fills a space with three quarters of a flash tier (-s MiB of -f FILE) and prints
 * "ready".  For each line on standard input it reloads every block once, in batches
 * of half the DRAM tier, which is a quarter of flash, and always in the same random
 * order, so that a block is long gone from DRAM when its turn comes, and prints the
 * rate and the CPU time.  bench.py runs fio on the same file in between.  Bytes count
 * as the tier counts them, so a block that was still in DRAM does not; checksums are
 * verified on the way, as always.
 *
 * CPU time is that of all threads of this process, those of the kernel that work for it
 * (io-wq) included; through a device (-u) the module's own threads work, too: there it
 * is all that the machine was not idle, so nothing else may run on it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "space.h"

struct reload {
	struct bench_space space;
	unsigned int flash;	/* tier id */
	uint32_t block_bytes;
	uint32_t blocks;
	uint32_t batch;		/* blocks reloaded by one call */
	uint32_t *order;
	bool whole;		/* CPU time of the whole machine */
	uint64_t ns;		/* spent in hawk_reload() */
	uint64_t cpu;		/* ns of CPU time meanwhile */
};

/* All that the machine was not idle since it was started, ns. */
static uint64_t machine_cpu(void)
{
	uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long long user, nice, system, idle, iowait, irq, soft, steal;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
			 &idle, &iowait, &irq, &soft, &steal) != 8)
		bench_die("/proc/stat: no line of CPU times");
	fclose(f);
	return (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * bench_now() - (idle + iowait) * tick;
}

static uint64_t process_cpu(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000;
}

static uint64_t cpu_now(const struct reload *r)
{
	return r->whole ? machine_cpu() : process_cpu();
}

static struct hawk_tier_info flash_info(struct reload *r)
{
	struct hawk_tier_info info = { 0 };

	bench_check(hawk_tier_stat(r->space.h, r->flash, &info), hawk_strerror_last());
	return info;
}

static void find_flash(struct reload *r)
{
	struct hawk_query q = { 0 };

	bench_check(hawk_device_query(r->space.h, &q), hawk_strerror_last());
	for (r->flash = 0; r->flash < HAWK_TIERS_MAX; r->flash++)
		if (q.tiers & (1u << r->flash) && flash_info(r).kind == HAWK_TIER_BLK)
			return;
	bench_die("the device has no flash tier");
}

static void shuffle(struct reload *r)
{
	uint64_t rng = 4711;
	uint32_t i, j, t;

	r->order = malloc(r->blocks * sizeof(*r->order));
	if (!r->order)
		bench_die("no memory");
	for (i = 0; i < r->blocks; i++)
		r->order[i] = i;
	for (i = r->blocks - 1; i; i--) {
		j = (uint32_t)(bench_rand(&rng) % (i + 1));
		t = r->order[i];
		r->order[i] = r->order[j];
		r->order[j] = t;
	}
}

/* A block of each batch is read through the mapping. */
static void look_at(struct reload *r, struct hawk_item *it, uint32_t n)
{
	void *p;

	if (hawk_pin(r->space.kv, it, 1) != 1)
		return;		/* evicted by the end of its own batch */
	p = hawk_addr(r->space.kv, it->vt);
	if (!p || bench_sum(p, r->block_bytes) != space_block_sum(n, r->block_bytes))
		bench_die("block %u came back with other bytes", n);
	hawk_unpin(r->space.kv, it, 1);
}

static void batch(struct reload *r, uint32_t first, uint32_t n)
{
	struct hawk_item *it = calloc(n, sizeof(*it));
	uint64_t t0, c0;
	uint32_t i;
	int ret;

	if (!it)
		bench_die("no memory");
	for (i = 0; i < n; i++)
		it[i].lid = space_lid(r->order[first + i]);
	c0 = cpu_now(r);
	t0 = bench_now();
	ret = hawk_reload(r->space.kv, it, n, NULL);
	r->ns += bench_now() - t0;
	r->cpu += cpu_now(r) - c0;
	for (i = 0; ret >= 0 && i < n; i++)
		bench_check(it[i].status, "reloading a block");
	bench_check(ret, hawk_strerror_last());
	look_at(r, &it[n - 1], r->order[first + n - 1]);
	free(it);
}

/* Every block once.  Return: bytes that came from flash. */
static double pass(struct reload *r)
{
	uint64_t before = flash_info(r).read_bytes, bytes;
	uint32_t i, n;

	r->ns = 0;
	r->cpu = 0;
	for (i = 0; i < r->blocks; i += n) {
		n = r->blocks - i < r->batch ? r->blocks - i : r->batch;
		batch(r, i, n);
	}
	bytes = flash_info(r).read_bytes - before;
	if (bytes < (uint64_t)r->blocks * r->block_bytes / 2)
		bench_die("only %llu of %llu MiB came from flash",
			  (unsigned long long)(bytes / SPACE_MIB),
			  (unsigned long long)r->blocks * r->block_bytes / SPACE_MIB);
	return (double)bytes;
}

static void measure(struct reload *r)
{
	double bytes = pass(r);

	bench_emit("rate", BENCH_OURS, bytes * 1e3 / (double)r->ns, "MB/s");
	bench_emit("cpu", BENCH_OURS, (double)r->cpu * 1e3 / bytes, "ms/GB");
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .block_bytes = 128 << 10, .mib = 1024 };
	struct reload r = { 0 };
	uint64_t flash, dram;
	char line[16], url[4096];

	bench_args(&o, argc, argv);
	if (!o.file)
		bench_die("-f FILE, the drive, is missing");
	r.whole = o.url;
	flash = o.mib * SPACE_MIB;
	dram = flash / 4;
	snprintf(url, sizeof(url), "embed:?dram=%llu&flash=%s&flash_size=%llu",
		 (unsigned long long)dram, o.file, (unsigned long long)flash);
	space_open(&r.space, o.url ? o.url : url, dram, o.file, flash);
	find_flash(&r);
	r.block_bytes = o.block_bytes;
	/* not all of it: moves under way have frames, too */
	r.blocks = (uint32_t)(flash / r.block_bytes / 4 * 3);
	r.batch = (uint32_t)(dram / 2 / r.block_bytes);
	space_create(&r.space, r.block_bytes, r.blocks, NULL);
	space_fill(&r.space, r.blocks, r.block_bytes);
	shuffle(&r);
	pass(&r);		/* leaves every block with a copy on flash */
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		measure(&r);
	free(r.order);
	space_close(&r.space);
	return 0;
}
