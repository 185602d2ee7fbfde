/* SPDX-License-Identifier: MIT */
/*
 * replay.h - requests are replayed through the engine on a virtual clock
 *
 * A load is a list of requests, each a list of blocks, in order of the prompt.  A block is
 * a number; what is the same number has the same key.
 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include <jansson.h>

#include "../../kmod/core/priv.h"

/* ---- loads (load.c, agents.c) ---- */

#define LOAD_NONE	0xffffffffu

struct load_block {
	u32 parent;		/* the block before it, LOAD_NONE: it is the first */
	u32 tok;		/* first token, counted over all that its session ever had */
	u32 seq;		/* session that made it */
	u32 last;		/* number of the last request that has it */
	u16 turn;		/* turn that made it, 0: not known */
	bool tail;		/* last block of its prompt, maybe partial */
	bool marked;		/* the client says that it will not be used again */
};

struct load_request {
	u64 at;			/* ns */
	u32 first;		/* in load.ref */
	u32 n;			/* blocks */
	u32 turn;		/* of its session, from 1; 0: not known */
	u32 tokens;		/* of the prompt */
};

struct load {
	const char *name;
	u64 seed;
	u32 block_tokens;
	struct load_block *block;
	u32 nblocks;
	struct load_request *req;
	u32 nreq;
	u32 *ref;		/* blocks of all requests */
	u32 nref;
	u32 room[3];		/* of the three arrays */
};

/* What may be asked of the agent workload; see hawk-sim(1). */
struct agents {
	u64 seed;
	u32 sessions;
	u32 turns_min, turns_max;
	u32 types, repos;
	u32 system, tools, repo, task;		/* tokens */
	u32 action, observation, observation_max;	/* tokens: means, and where it is cut */
	double action_sigma, observation_sigma;
	double transient;			/* share of observations */
	double marked;				/* of these, share that the client marks */
	double pause, pause_sigma;		/* s */
	double arrival;				/* mean time between sessions, s */
	double burst;				/* arrivals are so many times as frequent ... */
	double burst_every, burst_for;		/* ... every so many seconds, for so long */
	u32 block_tokens;
};

void load_begin(struct load *l, const char *name, u32 block_tokens);
u32 load_block(struct load *l, struct load_block b);
struct load_request *load_request(struct load *l, u64 at, u32 turn);
void load_ref(struct load *l, u32 block);
void load_end(struct load *l);
void load_free(struct load *l);
u64 load_ns(const struct load *l);
int load_mooncake(struct load *l, const char *path);
int load_azure(struct load *l, const char *path, u64 seed, u32 block_tokens);
void load_agents(struct load *l, const struct agents *a);
u64 load_rand(u64 *state);
double load_uniform(u64 *state);
double load_lognormal(u64 *state, double mean, double sigma);

/* ---- one run (cache.c, replay.c) ---- */

enum policy { POLICY_DRAM, POLICY_ALL, POLICY_SECOND, POLICY_FORMULA, POLICY_OURS,
	      POLICY_ORACLE, POLICY_RANDOM, POLICIES };

extern const char * const policy_name[POLICIES];

struct devices {
	double dram_bps;	/* host memory, bytes/s */
	double flash_bps;	/* flash, bytes/s */
	double link_bps;	/* what both together can bring to the accelerator, bytes/s */
	double others;		/* share of the link that other traffic takes */
	u32 cap_percent;	/* of the link that reloads may use, paced */
	bool paced;
	bool in_turn;		/* requests share the link in turn: they tell no deadlines */
	double prefill_tps;	/* tokens/s that are computed */
	u32 layers;		/* that are computed as they come; 1: when all is there */
	u64 block_bytes;	/* of one block in the real model */
	double drive_bytes;	/* of the drive whose writes per day are told */
};

struct run {
	enum policy policy;
	u32 dram;		/* blocks */
	u32 flash;		/* blocks; 0: as many as the load has */
	u64 budget;		/* blocks per period, 0: none */
	u64 period;		/* ns */
	double share;		/* POLICY_RANDOM: of evicted blocks that are written */
	u32 buckets;		/* 0: the engine's choice */
	bool in_order;		/* touch each block when its turn comes, not all first */
	bool structure;		/* tell turns, parents, tails */
	bool ttft;		/* reckon times to the first token */
	struct devices dev;
};

#define TTFT_STEPS	100	/* of the distribution of times */
#define TURN_ROWS	4	/* 1, 2, 3 to 15, later or unknown */

struct turn_row {
	u64 blocks, dram, flash;
};

struct result {
	struct run run;
	u64 accesses;
	u64 dram_hits, flash_hits;	/* blocks that were there */
	u64 dram_used, flash_used;	/* of these before the first one that was not */
	u64 writes;
	u64 refused[5];			/* HAWK_WHY_SCORE, BUDGET, PARENT, RULE, WARMER */
	u64 unread;			/* blocks written and never read */
	u64 peak;			/* most blocks written in a period, whenever it begins */
	u64 peak_control;		/* the same of a control period of the budget */
	double ttft_mean, ttft_p50, ttft_p99;	/* s */
	double ttft[TTFT_STEPS + 1];	/* s, percentiles 0 to 100 */
	double skew_p99;		/* of mixed reloads: share of it that one stream waits */
	double link_window;		/* most that passed in 10 ms, share of the link */
	u64 promoted;			/* blocks, while prefill was running */
	u64 recomputed;			/* blocks that were there: to compute was quicker */
	struct turn_row turn[TURN_ROWS];
};

struct cache;

enum place { PLACE_DRAM, PLACE_FLASH, PLACE_NONE };

struct cache *cache_create(const struct load *l, const struct run *r);
void cache_destroy(struct cache *c, struct result *res);
enum place cache_look(struct cache *c, u32 block, u64 now);
bool cache_fetch(struct cache *c, u32 block, u64 now);
void cache_fill(struct cache *c, u32 block, u64 now);
void cache_at(struct cache *c, u32 request);
u64 cache_writes(const struct cache *c);

/* Time to the first token (deliver.c). */
struct deliver;

struct deliver *deliver_create(const struct devices *dev, u32 requests);
void deliver_destroy(struct deliver *v, struct result *res);
void deliver_until(struct deliver *v, u64 ns);
void deliver_request(struct deliver *v, u64 dram, u64 flash, u64 tokens);
u64 deliver_estimate(struct deliver *v, u64 dram, u64 flash);
bool deliver_promote(struct deliver *v, u64 bytes);
void deliver_idle(struct deliver *v);

void replay(const struct load *l, const struct run *r, struct result *res);

/* ---- what is printed (report.c) ---- */

json_t *result_json(const struct load *l, const struct result *r);
void result_head(void);
void result_print(const struct load *l, const struct result *r);
void result_turns(const struct result *r);

/* main.c hands over to it when it finds --replay */
int replay_main(int argc, char **argv);

#endif /* SIM_REPLAY_H */
