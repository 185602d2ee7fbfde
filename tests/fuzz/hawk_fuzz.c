// SPDX-License-Identifier: MIT
/*
 * hawk_fuzz.c - random and mutated calls of /dev/hawk from several processes
 *
 * Workers run programs (hawk_fuzz.h).  A program that reaches a place of the
 * module, or gets a result, that none did before is kept; most programs are
 * mutations of kept ones.  What is wrong shows as a warning of the kernel, as a
 * worker that hangs, as a space that fails the engine's check or a tier that
 * cannot be removed at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/dma-heap.h>
#include <linux/hawk.h>

#include "hawk_fuzz.h"

#define WORKERS_MAX	16u
#define FLASH_BYTES	(16u << 20)
#define BUF_BYTES	(4u << 20)
#define STUCK_S		300	/* no call ends for so long: it hangs */
#define KEPT		4u	/* latest programs that the log of a worker holds */
#define NOBODY		65534

static struct fuzz_shared *sh;
static struct fuzz_setup lab = { .dir = "/tmp" };
static uint64_t seed = 1;
static uint32_t workers = 4, instrumented;
static const char *log_dir;

static void usage(FILE *to)
{
	fprintf(to,
"Usage: hawk_fuzz [--calls N] [--seed S] [--workers N] [--dir DIR] [--log DIR] [--places N]\n"
"       hawk_fuzz --replay FILE [--dir DIR]\n"
"\n"
"Makes random calls of /dev/hawk, as root on a machine that nobody needs.\n"
"\n"
"  --calls N     calls to make (default 50000)\n"
"  --seed S      where chance starts (default 1)\n"
"  --workers N   processes, half of them without privileges (default 4)\n"
"  --dir DIR     on a file system with O_DIRECT, for the flash tier (default /tmp)\n"
"  --log DIR     write each program there before it is run: worker-N holds the last %u\n"
"  --places N    instrumented places in the module, for the report\n"
"  --replay FILE run the programs of such a log and show them\n", KEPT);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- the corpus ---- */

static void corpus_lock(void)
{
	while (__atomic_exchange_n(&sh->lock, 1, __ATOMIC_ACQUIRE))
		;
}

static void corpus_unlock(void)
{
	__atomic_store_n(&sh->lock, 0, __ATOMIC_RELEASE);
}

/* A full corpus gives up a random program. */
static void corpus_add(const struct fuzz_prog *p, uint64_t *state)
{
	corpus_lock();
	if (sh->ncorpus < FUZZ_CORPUS)
		sh->corpus[sh->ncorpus++] = *p;
	else
		sh->corpus[below(state, FUZZ_CORPUS)] = *p;
	corpus_unlock();
}

static bool corpus_pick(struct fuzz_prog *p, uint64_t *state)
{
	bool any;

	corpus_lock();
	any = sh->ncorpus;
	if (any)
		*p = sh->corpus[below(state, sh->ncorpus)];
	corpus_unlock();
	return any;
}

/* ---- a worker ---- */

static void log_prog(int fd, const struct fuzz_prog *p, uint64_t nr)
{
	if (fd >= 0 && pwrite(fd, p, sizeof(*p), nr % KEPT * sizeof(*p)) != sizeof(*p))
		perror("log");
}

static void worker(uint32_t id, int to_peer, int from_peer)
{
	uint64_t state = seed * 1000003 + id, nr = 0;
	struct fuzz_prog p, other;
	char path[256];
	int log = -1;

	lab.admin = id % 2 == 0;
	if (log_dir) {
		snprintf(path, sizeof(path), "%s/worker-%u", log_dir, id);
		log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	}
	cov_open();
	if (!lab.admin && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		_exit(98);
	exec_init(&lab, to_peer, from_peer);
	while (__atomic_load_n(&sh->calls, __ATOMIC_RELAXED) < sh->limit) {
		if (below(&state, 5) && corpus_pick(&p, &state) && corpus_pick(&other, &state))
			prog_mutate(&p, &state, lab.admin, &other);
		else
			prog_new(&p, &state, lab.admin);
		log_prog(log, &p, nr++);
		cov_start();
		if (exec_prog(&p, sh, NULL) | cov_stop(sh))
			corpus_add(&p, &state);
		__atomic_add_fetch(&sh->progs, 1, __ATOMIC_RELAXED);
	}
	_exit(0);
}

/* ---- the end ---- */

/* Every space sound; those that still have a name lose it. */
static int end_spaces(int fd)
{
	struct hawk_space_destroy de = { .size = sizeof(de) };
	FILE *in = fopen("/sys/kernel/debug/hawk/spaces", "re");
	char line[512], name[HAWK_NAME_MAX + 1];
	int wrong = 0;

	while (in && fgets(line, sizeof(line), in)) {
		if (!strstr(line, "check ok") && ++wrong)
			printf("# not sound: %s", line);
		if (sscanf(line, "space %*u name %64s", name) == 1 && strcmp(name, "-")) {
			memset(de.name, 0, sizeof(de.name));
			memcpy(de.name, name, strnlen(name, HAWK_NAME_MAX));
			fuzz_call(fd, HAWK_IOC_SPACE_DESTROY, &de);
		}
	}
	if (in)
		fclose(in);
	return wrong;
}

/* Every tier can be removed, once what is in flight has ended. */
static int end_tiers(int fd)
{
	struct hawk_query q = { .size = sizeof(q) };
	struct timespec pause = { .tv_nsec = 10000000 };
	double until = now_s() + STUCK_S;
	int wrong = 0, ret;
	uint32_t t;

	if (fuzz_call(fd, HAWK_IOC_QUERY, &q))
		return 1;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_tier_remove rm = { .size = sizeof(rm), .tier = t };

		if (!(q.tiers & 1u << t))
			continue;
		while ((ret = fuzz_call(fd, HAWK_IOC_TIER_REMOVE, &rm)) == -EBUSY &&
		       now_s() < until)
			nanosleep(&pause, NULL);
		if (ret && ++wrong)
			printf("# tier %u cannot be removed: %s\n", t, strerror(-ret));
	}
	return wrong;
}

static void report(double seconds)
{
	uint32_t nr;

	printf("# %llu calls in %llu programs, %.0f s, %.0f calls/s; %u programs kept\n",
	       (unsigned long long)sh->calls, (unsigned long long)sh->progs, seconds,
	       sh->calls / seconds, sh->ncorpus);
	printf("# successful of tried, by number:");
	for (nr = 0; nr < FUZZ_NR_MAX; nr++)
		if (sh->ok[nr])
			printf(" %#x %llu/%llu", nr, (unsigned long long)sh->ok[nr],
			       (unsigned long long)sh->tried[nr]);
	printf("\n");
	cov_report(sh, instrumented);
}

/* Return: 0, or 1 when a worker hangs or dies. */
static int watch(const pid_t *pid)
{
	double start = now_s(), told = start, moved = start;
	uint64_t last = 0;
	uint32_t left = workers, i;
	int status, bad = 0;

	while (left) {
		struct timespec pause = { .tv_nsec = 200000000 };
		pid_t who = waitpid(-1, &status, WNOHANG);
		double now = now_s();

		if (who > 0) {
			left--;
			if (status && ++bad)
				printf("# worker %d ends with status %#x\n", who, status);
			continue;
		}
		if (sh->calls != last)
			moved = now;
		last = sh->calls;
		if (now - told > 30) {
			printf("# %llu calls, %.0f/s\n", (unsigned long long)last,
			       last / (now - start));
			fflush(stdout);
			told = now;
		}
		if (now - moved > STUCK_S) {
			printf("# no call has ended for %d s\n", STUCK_S);
			for (i = 0; i < workers; i++)
				kill(pid[i], SIGKILL);
			return 1;
		}
		nanosleep(&pause, NULL);
	}
	return bad;
}

static int fuzz(void)
{
	pid_t pid[WORKERS_MAX];
	int to[WORKERS_MAX], from[WORKERS_MAX], pair[2], bad, fd;
	double start = now_s();
	uint32_t i;

	for (i = 0; i < workers; i++) {
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair)) {
			perror("socketpair");
			return 1;
		}
		to[i] = pair[0];
		from[(i + 1) % workers] = pair[1];
	}
	for (i = 0; i < workers; i++) {
		pid[i] = fork();
		if (!pid[i])
			worker(i, to[i], from[i]);
	}
	for (i = 0; i < workers; i++) {
		close(to[i]);
		close(from[i]);
	}
	bad = watch(pid);
	report(now_s() - start);
	fd = open("/dev/hawk", O_RDWR | O_CLOEXEC);
	bad += end_spaces(fd);
	bad += end_tiers(fd);
	close(fd);
	return bad;
}

static int replay(const char *path)
{
	FILE *in = fopen(path, "re");
	struct fuzz_prog p;

	if (!in) {
		perror(path);
		return 1;
	}
	lab.admin = true;
	exec_init(&lab, -1, -1);
	while (fread(&p, sizeof(p), 1, in) == 1) {
		if (p.n > FUZZ_CALLS_MAX || p.start >= START_COUNT)
			break;
		prog_print(stdout, &p);
		fflush(stdout);
		exec_prog(&p, sh, stdout);
	}
	fclose(in);
	return 0;
}

/* The flash tier's file, and the one that programs add.  They are left in place. */
static bool make_flash(void)
{
	static char flash[256], more[256];
	int a, b;

	snprintf(flash, sizeof(flash), "%s/fuzz-flash", lab.dir);
	snprintf(more, sizeof(more), "%s/fuzz-more", lab.dir);
	a = open(flash, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	b = open(more, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	lab.flash = flash;
	return a >= 0 && b >= 0 && !ftruncate(a, FLASH_BYTES) && !ftruncate(b, FLASH_BYTES) &&
	       !close(a) && !close(b);
}

/* Memory of another driver. */
static void make_buffer(void)
{
	struct dma_heap_allocation_data data = { .len = BUF_BYTES, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);

	lab.buf = heap < 0 || ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? -1 : (int)data.fd;
	if (heap >= 0)
		close(heap);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "calls", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "workers", required_argument, NULL, 'w' },
		{ "dir", required_argument, NULL, 'd' },
		{ "log", required_argument, NULL, 'l' },
		{ "places", required_argument, NULL, 'p' },
		{ "replay", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ },
	};
	const char *again = NULL;
	uint64_t calls = 50000;
	int opt, bad;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'c': calls = strtoull(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'w': workers = strtoul(optarg, NULL, 0); break;
		case 'd': lab.dir = optarg; break;
		case 'l': log_dir = optarg; break;
		case 'p': instrumented = strtoul(optarg, NULL, 0); break;
		case 'r': again = optarg; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	}
	if (optind < argc || !workers || workers > WORKERS_MAX) {
		usage(stderr);
		return 2;
	}
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED || !make_flash()) {
		perror("hawk_fuzz: cannot begin");
		return 1;
	}
	make_buffer();
	/* For the workers without privileges. */
	if (chmod("/dev/hawk", 0666) || !cov_find_module()) {
		fprintf(stderr, "hawk_fuzz: needs /dev/hawk, root and /proc/kallsyms\n");
		return 1;
	}
	sh->limit = calls;
	if (again)
		return replay(again);
	printf("# %llu calls from %u workers, seed %llu, coverage %s\n",
	       (unsigned long long)calls, workers, (unsigned long long)seed,
	       access("/sys/kernel/debug/kcov", F_OK) ? "not seen" : "by KCOV");
	fflush(stdout);
	bad = fuzz();
	printf("%s 1 - %llu calls of /dev/hawk, seed %llu\n", bad ? "not ok" : "ok",
	       (unsigned long long)sh->calls, (unsigned long long)seed);
	return bad ? 1 : 0;
}
