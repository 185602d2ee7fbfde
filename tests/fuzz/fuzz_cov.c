// SPDX-License-Identifier: MIT
/*
 * fuzz_cov.c - which places of the module a thread has been at, by KCOV
 *
 * Only the module is built with KCOV, so what the kernel writes down are places
 * in it.  KCOV follows the calling thread: what the module does in work queues
 * stays unseen.  Without KCOV only the results of calls tell what is new.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kcov.h>

#include "hawk_fuzz.h"

#define COV_ENTRIES	(1u << 17)
#define FUNCS_MAX	4096

static uint64_t *cov;		/* number of places, then the places */
static uint64_t module_at;

struct func {
	uint64_t at;
	char name[96];
	uint32_t hits;
};

/* Return: whether coverage is seen.  Needs root; before the worker gives that up. */
bool cov_open(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, COV_ENTRIES))
		return false;
	cov = mmap(NULL, COV_ENTRIES * sizeof(*cov), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cov == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC)) {
		cov = NULL;
		return false;
	}
	return true;
}

void cov_start(void)
{
	if (cov)
		__atomic_store_n(&cov[0], 0, __ATOMIC_RELAXED);
}

static bool mark(uint8_t *seen, uint32_t i)
{
	bool fresh = !__atomic_load_n(&seen[i], __ATOMIC_RELAXED);

	if (fresh)
		__atomic_store_n(&seen[i], 1, __ATOMIC_RELAXED);
	return fresh;
}

/* Return: whether the calls since cov_start() went a new way. */
bool cov_stop(struct fuzz_shared *sh)
{
	uint64_t n = cov ? __atomic_load_n(&cov[0], __ATOMIC_RELAXED) : 0, i, at, last = 0;
	bool fresh = false;

	for (i = 1; i <= n && i < COV_ENTRIES; i++) {
		at = cov[i] - module_at;
		if (at >= FUZZ_TEXT)
			continue;
		mark(sh->pc, at);
		fresh |= mark(sh->edge, (at * 2654435761u ^ last) % FUZZ_EDGES);
		last = at;
	}
	return fresh;
}

/* Return: whether the call has given this result for the first time. */
bool cov_result(struct fuzz_shared *sh, uint32_t nr, int ret)
{
	return mark(sh->edge, (nr * 7919u + -ret * 104729u) % FUZZ_EDGES);
}

static int by_address(const void *a, const void *b)
{
	const struct func *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* The module's functions in the order of their addresses. */
static uint32_t functions(struct func *f)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	char line[256], type, module[64];
	unsigned long long at;
	uint32_t n = 0;

	while (in && n < FUNCS_MAX && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%llx %c %95s [%63[^]]", &at, &type, f[n].name, module) == 4 &&
		    (type == 't' || type == 'T') && !strcmp(module, "hawk"))
			f[n++].at = at;
	}
	if (in)
		fclose(in);
	qsort(f, n, sizeof(*f), by_address);
	return n;
}

static struct func *all;
static uint32_t nall;

/*
 * Code compiled apart from its function counts as its function; what constructors
 * and tracepoints bring along has no places of its own.
 */
static bool is_function(const struct func *f)
{
	return !strchr(f->name, '.') && strncmp(f->name, "__", 2) &&
	       strncmp(f->name, "_sub_", 5) && strncmp(f->name, "trace_event_", 12) &&
	       strncmp(f->name, "trace_raw_", 10) && strncmp(f->name, "perf_trace_", 11) &&
	       strncmp(f->name, "init_module", 11) && strncmp(f->name, "cleanup_module", 14);
}

/* Return: whether the module is loaded and its symbols can be read (root). */
bool cov_find_module(void)
{
	all = calloc(FUNCS_MAX, sizeof(*all));
	nall = all ? functions(all) : 0;
	if (!nall || !all[0].at)
		return false;
	module_at = all[0].at;
	return true;
}

static struct func *func_at(uint64_t at)
{
	uint32_t lo = 0, hi = nall;

	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (all[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	return &all[lo];
}

/* A part "name.cold" belongs to "name". */
static void add_parts(void)
{
	uint32_t i, k;

	for (i = 0; i < nall; i++) {
		char *dot = strchr(all[i].name, '.');

		for (k = 0; dot && all[i].hits && k < nall; k++)
			if (strlen(all[k].name) == (size_t)(dot - all[i].name) &&
			    !strncmp(all[k].name, all[i].name, dot - all[i].name))
				all[k].hits += all[i].hits;
	}
}

/* @instrumented: places in the module, 0: not known */
void cov_report(const struct fuzz_shared *sh, uint32_t instrumented)
{
	uint32_t pcs = 0, funcs = 0, covered = 0, i;

	for (i = 0; i < FUZZ_TEXT; i++) {
		if (!sh->pc[i])
			continue;
		pcs++;
		func_at(module_at + i)->hits++;
	}
	add_parts();
	for (i = 0; i < nall; i++) {
		if (!is_function(&all[i]))
			continue;
		funcs++;
		covered += all[i].hits > 0;
	}
	printf("# places: %u", pcs);
	if (instrumented)
		printf(" of %u (%.1f %%)", instrumented, 100.0 * pcs / instrumented);
	printf("; functions: %u of %u (%.1f %%)\n", covered, funcs,
	       funcs ? 100.0 * covered / funcs : 0);
	printf("# functions not seen:");
	for (i = 0; i < nall; i++)
		if (is_function(&all[i]) && !all[i].hits)
			printf(" %s", all[i].name);
	printf("\n");
}
