// SPDX-License-Identifier: MIT
/*
 * main.c - seeds are shared out to processes, results come together
 */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "replay.h"
#include "sim.h"

#define VERSION		"0.1"
#define PER_SEED	1000000ull	/* events of one seed: a replay takes seconds */

static const char usage[] =
	"Usage: hawk-sim --torture [OPTION]...\n"
	"       hawk-sim --replay LOAD [OPTION]...   (LOAD help: what there is)\n"
	"Run Hawk's engine in a simulated world of clients, spaces, tiers and failing devices,\n"
	"and check every invariant after each event; or replay requests through it.\n"
	"\n"
	"  --torture        all of that at random, by these options:\n"
	"  --seed N         first seed (default 1)\n"
	"  --events N       events in all (default 1000000)\n"
	"  --per-seed N     events of one seed, then the next seed runs (default 1000000)\n"
	"  --spaces N       spaces at one time, 1 to 4 (default 3)\n"
	"  --check N        check all invariants after every N events, or \"always\" (default)\n"
	"  --jobs N         processes that run seeds side by side (default: one per CPU)\n"
	"  --stop-at EVENT  run the first seed up to this event, then stop\n"
	"  --trace          print the last events before the end, and the spaces then\n"
	"  --expect-all     fail if a situation or a transition was never met\n"
	"  --json           print JSON\n"
	"  --help, --version\n"
	"\n"
	"A seed is a run: the same options give the same digest. When something is wrong the\n"
	"seed, the event, the last events and a command that shows it again are printed and\n"
	"the status is 1. See hawk-sim(1).\n";

struct options {
	struct sim_run run;
	u64 events;
	u64 per_seed;
	u64 jobs;
	bool torture;
	bool expect_all;
	bool json;
};

/* What the processes write and their parent reads. */
struct shared {
	struct sim_tally sum;
	u64 digest[];	/* by seed */
};

static u64 parse_number(const char *option, const char *s)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || end == s || *end || s[0] == '-') {
		fprintf(stderr, "hawk-sim: --%s: \"%s\" is not a number\n", option, s);
		exit(2);
	}
	return v;
}

static u64 parse_positive(const char *option, const char *s)
{
	u64 v = parse_number(option, s);

	if (!v) {
		fprintf(stderr, "hawk-sim: --%s must be at least 1\n", option);
		exit(2);
	}
	return v;
}

static u32 parse_spaces(const char *s)
{
	u64 v = parse_positive("spaces", s);

	if (v > SIM_SPACES) {
		fprintf(stderr, "hawk-sim: --spaces must be at most %d\n", SIM_SPACES);
		exit(2);
	}
	return v;
}

enum { OPT_TORTURE = 1, OPT_SEED, OPT_EVENTS, OPT_PER_SEED, OPT_SPACES, OPT_CHECK, OPT_JOBS,
       OPT_STOP_AT, OPT_TRACE, OPT_EXPECT_ALL, OPT_JSON, OPT_HELP, OPT_VERSION };

static const struct option longs[] = {
	{ "torture", no_argument, NULL, OPT_TORTURE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "events", required_argument, NULL, OPT_EVENTS },
	{ "per-seed", required_argument, NULL, OPT_PER_SEED },
	{ "spaces", required_argument, NULL, OPT_SPACES },
	{ "check", required_argument, NULL, OPT_CHECK },
	{ "jobs", required_argument, NULL, OPT_JOBS },
	{ "stop-at", required_argument, NULL, OPT_STOP_AT },
	{ "trace", no_argument, NULL, OPT_TRACE },
	{ "expect-all", no_argument, NULL, OPT_EXPECT_ALL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void option_take(struct options *o, int opt, const char *name)
{
	switch (opt) {
	case OPT_TORTURE:
		o->torture = true;
		break;
	case OPT_SEED:
		o->run.seed = parse_number(name, optarg);
		break;
	case OPT_EVENTS:
		o->events = parse_positive(name, optarg);
		break;
	case OPT_PER_SEED:
		o->per_seed = parse_positive(name, optarg);
		break;
	case OPT_SPACES:
		o->run.spaces = parse_spaces(optarg);
		break;
	case OPT_CHECK:
		o->run.check = strcmp(optarg, "always") ? parse_positive(name, optarg) : 1;
		break;
	case OPT_JOBS:
		o->jobs = parse_positive(name, optarg);
		break;
	case OPT_STOP_AT:
		o->run.stop_at = parse_positive(name, optarg);
		break;
	case OPT_TRACE:
		o->run.trace = true;
		break;
	case OPT_EXPECT_ALL:
		o->expect_all = true;
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_HELP:
		fputs(usage, stdout);
		exit(0);
	case OPT_VERSION:
		puts("hawk-sim " VERSION);
		exit(0);
	default:
		fputs("Try 'hawk-sim --help'.\n", stderr);
		exit(2);
	}
}

static void options_parse(struct options *o, int argc, char **argv)
{
	int opt, index = 0;

	while ((opt = getopt_long(argc, argv, "", longs, &index)) != -1)
		option_take(o, opt, opt == '?' ? "" : longs[index].name);
	if (!o->torture || optind < argc) {
		fputs(optind < argc ? "hawk-sim: no argument is taken\n" :
		      "hawk-sim: say --torture, or --replay LOAD\n", stderr);
		fputs("Try 'hawk-sim --help'.\n", stderr);
		exit(2);
	}
	if (o->run.stop_at) {
		/* a replay: one seed, and the end is that event */
		o->per_seed = o->events = o->run.stop_at + 1;
		o->jobs = 1;
	}
}

static u64 seeds_of(const struct options *o)
{
	return (o->events + o->per_seed - 1) / o->per_seed;
}

/* Process number @nr takes every jobs-th seed. */
static void seeds_run(const struct options *o, struct shared *sh, u64 nr)
{
	u64 i, done;

	for (i = nr; i < seeds_of(o); i += o->jobs) {
		struct sim_run run = o->run;

		done = i * o->per_seed;
		run.seed = o->run.seed + i;
		run.events = o->events - done < o->per_seed ? o->events - done : o->per_seed;
		sh->digest[i] = sim_run(&run);
	}
	tally_take_transitions();
}

/* Return: how many of the processes failed. */
static u64 jobs_run(const struct options *o, struct shared *sh, struct sim_tally *per_job)
{
	u64 i, bad = 0;
	int status;
	pid_t pid;

	for (i = 0; i < o->jobs; i++) {
		pid = fork();
		if (pid < 0) {
			perror("hawk-sim: fork");
			exit(2);
		}
		if (!pid) {
			seeds_run(o, sh, i);
			per_job[i] = tally;
			fflush(stdout);
			_exit(0);
		}
	}
	for (i = 0; i < o->jobs; i++)
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			bad++;
	for (i = 0; i < o->jobs; i++)
		tally_add(&sh->sum, &per_job[i]);
	return bad;
}

static void *share(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("hawk-sim: mmap");
		exit(2);
	}
	return p;
}

static void report(const struct options *o, const struct shared *sh, u64 digest, double seconds)
{
	json_t *all;

	if (o->json) {
		char hex[17];

		snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)digest);
		all = tally_json(&sh->sum);
		json_object_set_new(all, "first_seed", json_integer(o->run.seed));
		json_object_set_new(all, "digest", json_string(hex));
		json_object_set_new(all, "seconds", json_real(seconds));
		json_dumpf(all, stdout, JSON_INDENT(2));
		printf("\n");
		json_decref(all);
		return;
	}
	tally_print(&sh->sum);
	printf("\n%llu events, %llu full checks, %llu seeds from %llu, %.1f s, %.0f events/s\n"
	       "digest %016llx\n", (unsigned long long)sh->sum.events,
	       (unsigned long long)sh->sum.checks, (unsigned long long)sh->sum.seeds,
	       (unsigned long long)o->run.seed, seconds, sh->sum.events / seconds,
	       (unsigned long long)digest);
}

int main(int argc, char **argv)
{
	struct options o = {
		.run = { .seed = 1, .check = 1, .spaces = 3 },
		.events = PER_SEED, .per_seed = PER_SEED,
		.jobs = sysconf(_SC_NPROCESSORS_ONLN),
	};
	struct timespec from, to;
	struct sim_tally *per_job;
	struct shared *sh;
	u64 i, bad, digest = 0;

	if (argc > 1 && !strcmp(argv[1], "--replay"))
		return replay_main(argc, argv);
	options_parse(&o, argc, argv);
	if (o.jobs > seeds_of(&o))
		o.jobs = seeds_of(&o);
	sh = share(sizeof(*sh) + seeds_of(&o) * sizeof(sh->digest[0]));
	per_job = share(o.jobs * sizeof(*per_job));
	clock_gettime(CLOCK_MONOTONIC, &from);
	bad = jobs_run(&o, sh, per_job);
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (bad)
		return 1;
	for (i = 0; i < seeds_of(&o); i++)
		digest = hawk_mix(digest ^ sh->digest[i]);
	report(&o, sh, digest, to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9);
	if (o.expect_all && tally_missing(&sh->sum)) {
		fprintf(stderr, "hawk-sim: %u situations or transitions were never met\n",
			tally_missing(&sh->sum));
		return 1;
	}
	return 0;
}
