// SPDX-License-Identifier: MIT
/*
 * options.c - hawk-sim --replay: which load, which runs
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "sim.h"

#define LIST_MAX	32

static const char usage[] =
	"Usage: hawk-sim --replay LOAD [OPTION]...\n"
	"Replay requests through Hawk's engine against model devices.\n"
	"\n"
	"LOAD is agents (made from a seed), mooncake:FILE or azure:FILE.\n"
	"\n"
	"  --policy LIST     of dram, all, second, formula, ours, oracle, random (default: all\n"
	"                    but random)\n"
	"  --budget LIST     percent of what \"all\" writes; 0: none (default 0)\n"
	"  --period S        of the budget, seconds (default: as long as the load takes)\n"
	"  --dram N[%]       blocks, or percent of all blocks (default 10%)\n"
	"  --flash N         blocks (default: as many as there are)\n"
	"  --share LIST      of random: percent of the blocks that are written\n"
	"  --buckets N       of PB-LRU, 1 is one global LRU (default: the engine's)\n"
	"  --in-order        look each block up when the one before has been served\n"
	"  --no-structure    tell the engine no turns, parents, tails\n"
	"  --dram-bw, --flash-bw, --link-bw GB/S, --prefill TOKENS/S, --token-bytes N\n"
	"                    the devices\n"
	"  --layers N        of the model; each is computed when its blocks are there (default 1:\n"
	"                    when all are)\n"
	"  --drive TB        size of the drive whose writes per day are told (default 15.36)\n"
	"  --delivery LIST   of unpaced, paced (default: unpaced)\n"
	"  --in-turn         paced requests share the link in turn: they tell no deadlines\n"
	"  --cap PERCENT     of the link that paced reloads may use (default 70)\n"
	"  --others PERCENT  of the link that other traffic takes (default 30)\n"
	"  --no-ttft         reckon no times to the first token\n"
	"  --json            print JSON\n"
	"\n"
	"The agent workload:\n"
	"  --seed N, --sessions N, --turns MIN-MAX, --types N, --repos N, --system, --tools,\n"
	"  --repo, --task, --action, --observation, --observation-max TOKENS,\n"
	"  --action-sigma, --observation-sigma, --pause-sigma X, --transient, --hints PERCENT,\n"
	"  --pause, --arrival S, --burst X --burst-every S --burst-for S, --block-tokens N\n";

struct choice {
	const char *load;
	struct agents agents;
	enum policy policy[LIST_MAX];
	double budget[LIST_MAX], share[LIST_MAX];
	u32 npolicies, nbudgets, nshares, ndeliveries;
	bool paced[2];
	double period;
	double dram, dram_percent;
	double token_bytes;
	struct run run;
	bool json;
};

static void bad(const char *what, const char *value)
{
	fprintf(stderr, "hawk-sim: --%s: cannot make sense of \"%s\"\n"
		"Try 'hawk-sim --replay help'.\n", what, value);
	exit(2);
}

static double number(const char *what, const char *s, char **end)
{
	char *e;
	double v = strtod(s, &e);

	if (e == s || v < 0 || (!end && *e))
		bad(what, s);
	if (end)
		*end = e;
	return v;
}

static u32 list(const char *what, char *s, double *v)
{
	u32 n = 0;
	char *one;

	for (one = strtok(s, ","); one && n < LIST_MAX; one = strtok(NULL, ","))
		v[n++] = number(what, one, NULL);
	if (!n || one)
		bad(what, s);
	return n;
}

static void policies(struct choice *c, char *s)
{
	char *one;
	u32 i;

	c->npolicies = 0;
	for (one = strtok(s, ","); one; one = strtok(NULL, ",")) {
		for (i = 0; i < POLICIES && strcmp(one, policy_name[i]); i++)
			;
		if (i == POLICIES || c->npolicies == LIST_MAX)
			bad("policy", one);
		c->policy[c->npolicies++] = i;
	}
}

static void deliveries(struct choice *c, char *s)
{
	char *one;

	c->ndeliveries = 0;
	for (one = strtok(s, ","); one; one = strtok(NULL, ",")) {
		if (c->ndeliveries == ARRAY_SIZE(c->paced) ||
		    (strcmp(one, "paced") && strcmp(one, "unpaced")))
			bad("delivery", one);
		c->paced[c->ndeliveries++] = !strcmp(one, "paced");
	}
}

/* Options that are one number. */
static bool plain(struct choice *c, const char *name, const char *value)
{
	struct agents *a = &c->agents;
	const struct {
		const char *name;
		double *real;
		u32 *whole;
		double scale;
	} o[] = {
#define REAL(name, p, scale)	{ name, p, NULL, scale }
#define WHOLE(name, p)		{ name, NULL, p, 1 }
		REAL("period", &c->period, 1), REAL("token-bytes", &c->token_bytes, 1),
		REAL("dram-bw", &c->run.dev.dram_bps, 1e9),
		REAL("flash-bw", &c->run.dev.flash_bps, 1e9),
		REAL("link-bw", &c->run.dev.link_bps, 1e9),
		WHOLE("cap", &c->run.dev.cap_percent), WHOLE("layers", &c->run.dev.layers),
		REAL("others", &c->run.dev.others, 0.01),
		REAL("prefill", &c->run.dev.prefill_tps, 1),
		REAL("drive", &c->run.dev.drive_bytes, 1e12),
		WHOLE("flash", &c->run.flash), WHOLE("buckets", &c->run.buckets),
		WHOLE("sessions", &a->sessions), WHOLE("types", &a->types),
		WHOLE("repos", &a->repos), WHOLE("system", &a->system),
		WHOLE("tools", &a->tools), WHOLE("repo", &a->repo), WHOLE("task", &a->task),
		WHOLE("action", &a->action), WHOLE("observation", &a->observation),
		WHOLE("observation-max", &a->observation_max),
		WHOLE("block-tokens", &a->block_tokens),
		REAL("action-sigma", &a->action_sigma, 1),
		REAL("observation-sigma", &a->observation_sigma, 1),
		REAL("pause-sigma", &a->pause_sigma, 1),
		REAL("transient", &a->transient, 0.01), REAL("hints", &a->marked, 0.01),
		REAL("pause", &a->pause, 1), REAL("arrival", &a->arrival, 1),
		REAL("burst", &a->burst, 1), REAL("burst-every", &a->burst_every, 1),
		REAL("burst-for", &a->burst_for, 1),
	};
	double v;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(o); i++) {
		if (strcmp(name, o[i].name))
			continue;
		v = number(name, value, NULL);
		if (o[i].whole)
			*o[i].whole = v;
		else
			*o[i].real = v * o[i].scale;
		return true;
	}
	return false;
}

static void take(struct choice *c, const char *name, char *value)
{
	char *end;

	if (!strcmp(name, "replay")) {
		c->load = value;
	} else if (!strcmp(name, "policy")) {
		policies(c, value);
	} else if (!strcmp(name, "budget")) {
		c->nbudgets = list(name, value, c->budget);
	} else if (!strcmp(name, "share")) {
		c->nshares = list(name, value, c->share);
	} else if (!strcmp(name, "delivery")) {
		deliveries(c, value);
	} else if (!strcmp(name, "in-turn")) {
		c->run.dev.in_turn = true;
	} else if (!strcmp(name, "no-ttft")) {
		c->run.ttft = false;
	} else if (!strcmp(name, "seed")) {
		c->agents.seed = strtoull(value, NULL, 0);
	} else if (!strcmp(name, "dram")) {
		c->dram = number(name, value, &end);
		c->dram_percent = *end == '%' ? c->dram : 0;
		if (*end && strcmp(end, "%"))
			bad(name, value);
	} else if (!strcmp(name, "turns")) {
		c->agents.turns_min = number(name, value, &end);
		c->agents.turns_max = *end == '-' ? number(name, end + 1, NULL) :
						    c->agents.turns_min;
		if (c->agents.turns_max < c->agents.turns_min || !c->agents.turns_min)
			bad(name, value);
	} else if (!strcmp(name, "json")) {
		c->json = true;
	} else if (!strcmp(name, "in-order")) {
		c->run.in_order = true;
	} else if (!strcmp(name, "no-structure")) {
		c->run.structure = false;
	} else if (!plain(c, name, value)) {
		bad(name, value);
	}
}

static void parse(struct choice *c, int argc, char **argv)
{
	static const char * const flags = " json in-order in-turn no-structure no-ttft ";
	static const char * const known =
		" replay policy budget share seed dram turns period token-bytes dram-bw flash-bw "
		"prefill drive layers link-bw cap others delivery flash buckets sessions types repos system tools repo task action "
		"observation observation-max action-sigma observation-sigma pause-sigma transient "
		"hints pause arrival burst burst-every burst-for block-tokens ";
	char word[64];
	int i;

	for (i = 1; i < argc; i++) {
		const char *name = argv[i] + 2;

		snprintf(word, sizeof(word), " %s ", name);
		if (strncmp(argv[i], "--", 2) || (!strstr(flags, word) && !strstr(known, word)))
			bad("replay", argv[i]);
		if (strstr(flags, word))
			take(c, name, NULL);
		else if (i + 1 < argc)
			take(c, name, argv[++i]);
		else
			bad(name, "");
	}
	if (!c->run.dev.layers)
		bad("layers", "0");
}

static void load_get(struct choice *c, struct load *l)
{
	int ret = 0;

	if (!strcmp(c->load, "agents"))
		load_agents(l, &c->agents);
	else if (!strncmp(c->load, "mooncake:", 9))
		ret = load_mooncake(l, c->load + 9);
	else if (!strncmp(c->load, "azure:", 6))
		ret = load_azure(l, c->load + 6, c->agents.seed, c->agents.block_tokens);
	else
		bad("replay", c->load);
	if (ret) {
		fprintf(stderr, "hawk-sim: %s: %s\n", c->load, strerror(-ret));
		exit(2);
	}
}

static void show(struct choice *c, const struct load *l, const struct result *r, json_t *all)
{
	if (c->json) {
		json_array_append_new(all, result_json(l, r));
		return;
	}
	result_print(l, r);
	if (c->nbudgets == 1 && c->npolicies > 1)
		result_turns(r);
}

/* One policy: for each of its budgets or shares. */
static void runs(struct choice *c, const struct load *l, enum policy p, u64 most, json_t *all)
{
	bool shares = p == POLICY_RANDOM;
	bool once = p == POLICY_DRAM || p == POLICY_ORACLE;
	u32 i, k, n = shares ? c->nshares : once ? 1 : c->nbudgets;
	struct result res;

	for (i = 0; i < n; i++) {
		c->run.policy = p;
		c->run.share = shares ? c->share[i] / 100 : 0;
		c->run.budget = shares || once ? 0 : most * c->budget[i] / 100;
		for (k = 0; k < c->ndeliveries; k++) {
			c->run.dev.paced = c->paced[k];
			replay(l, &c->run, &res);
			show(c, l, &res, all);
		}
	}
}

int replay_main(int argc, char **argv)
{
	struct choice c = {
		.load = "agents",
		.agents = {
			.seed = 1, .sessions = 32, .turns_min = 8, .turns_max = 24, .types = 4,
			.repos = 8, .system = 2048, .tools = 2048, .repo = 8192, .task = 512,
			.action = 256, .action_sigma = 1, .observation = 3000,
			.observation_sigma = 1, .observation_max = 16000, .transient = 0.55,
			.marked = 1, .pause = 30, .pause_sigma = 1, .arrival = 15, .burst = 1,
			.burst_every = 3600, .burst_for = 600, .block_tokens = 16,
		},
		.policy = { POLICY_DRAM, POLICY_ALL, POLICY_SECOND, POLICY_FORMULA, POLICY_OURS,
			    POLICY_ORACLE },
		.npolicies = 6, .nbudgets = 1, .nshares = 1, .ndeliveries = 1, .share = { 50 },
		.dram_percent = 10, .token_bytes = 327680,
		.run = { .structure = true, .ttft = true,
			 .dev = { .dram_bps = 300e9, .flash_bps = 28e9, .link_bps = 64e9,
				  .cap_percent = 70, .others = 0.3, .prefill_tps = 20000, .layers = 1,
				  .drive_bytes = 15.36e12 } },
	};
	json_t *all = json_array();
	struct load l;
	struct result top = { 0 };
	u32 i;

	parse(&c, argc, argv);
	if (!strcmp(c.load, "help")) {
		fputs(usage, stdout);
		return 0;
	}
	load_get(&c, &l);
	c.run.dram = c.dram_percent ? l.nblocks * c.dram_percent / 100 : c.dram;
	c.run.dev.block_bytes = c.token_bytes * l.block_tokens;
	c.run.period = c.period ? c.period * 1e9 : load_ns(&l) + 1;
	if (!c.json) {
		printf("%s, seed %llu: %u requests, %u accesses, %u blocks, %.0f s; DRAM %u blocks\n",
		       l.name, (unsigned long long)l.seed, l.nreq, l.nref, l.nblocks,
		       load_ns(&l) / 1e9, c.run.dram);
		result_head();
	}
	if (c.nbudgets > 1 || c.budget[0] > 0) {
		struct run r = c.run;

		r.policy = POLICY_ALL;
		r.ttft = false;
		replay(&l, &r, &top);
	}
	for (i = 0; i < c.npolicies; i++)
		runs(&c, &l, c.policy[i], top.writes, all);
	if (c.json) {
		json_dumpf(all, stdout, JSON_INDENT(1));
		printf("\n");
	}
	json_decref(all);
	load_free(&l);
	return 0;
}
