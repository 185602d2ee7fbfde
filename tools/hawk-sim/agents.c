// SPDX-License-Identifier: MIT
/*
 * agents.c - the agent workload, from a seed
 *
 * Sessions arrive as a Poisson process, in bursts more often.  The first prompt of one is
 * the system prompt, the tool schemas of its type, the map of its repository, its task.
 * Each later turn appends what the model did and what came of it, after a pause.  Some of
 * these observations are dropped before the second turn after them, without a trace in the
 * keys of what follows (akv.md).  A repository has one type, so that all of its sessions
 * begin alike.  Each part begins a block of its own.
 *
 * Times do not depend on how fast requests are answered, so that all policies see the same.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

#define NS	1e9

/* A part of a prompt. */
struct part {
	u32 first, n;		/* blocks, numbered one behind the other */
	u32 until;		/* last turn that has it */
	bool marked;
};

struct session {
	const struct agents *a;
	struct load *l;
	u64 rng;
	u32 seq;
	u32 tok;		/* tokens so far */
	struct part *part;
	u32 nparts, room;
};

/* Parts that sessions share, 0: not made yet */
struct shared {
	struct part system, *tools, *repo;
};

/* The block that the next one follows: the last that is not about to be dropped. */
static u32 parent_now(const struct session *s)
{
	u32 i;

	for (i = s->nparts; i-- > 0;)
		if (!s->part[i].marked && s->part[i].n)
			return s->part[i].first + s->part[i].n - 1;
	return LOAD_NONE;
}

static struct part part_make(struct session *s, u32 tokens, u32 turn, bool marked)
{
	u32 bt = s->a->block_tokens, i, parent = parent_now(s);
	struct part p = { .n = (tokens + bt - 1) / bt, .until = ~0u, .marked = marked };

	for (i = 0; i < p.n; i++) {
		parent = load_block(s->l, (struct load_block) {
			.parent = parent, .tok = s->tok + i * bt, .seq = s->seq, .turn = turn,
			.marked = marked,
		});
		if (!i)
			p.first = parent;
	}
	return p;
}

static void part_add(struct session *s, struct part p)
{
	if (s->nparts == s->room) {
		s->room += 64;
		s->part = realloc(s->part, s->room * sizeof(*s->part));
		if (!s->part)
			abort();
	}
	s->part[s->nparts++] = p;
	s->tok += p.n * s->a->block_tokens;
}

static void part_shared(struct session *s, struct part *p, u32 tokens)
{
	if (!p->n)
		*p = part_make(s, tokens, 1, false);
	part_add(s, *p);
}

/* What is left of the conversation in this turn. */
static void ask(struct session *s, u64 at, u32 turn)
{
	u32 i, k;

	load_request(s->l, at, turn);
	for (i = 0; i < s->nparts; i++)
		for (k = 0; k < s->part[i].n && turn <= s->part[i].until; k++)
			load_ref(s->l, s->part[i].first + k);
}

static void turn_add(struct session *s, u32 turn)
{
	const struct agents *a = s->a;
	double len = load_lognormal(&s->rng, a->action, a->action_sigma);
	bool drop, marked;
	struct part p;

	part_add(s, part_make(s, len < 1 ? 1 : len, turn, false));
	len = load_lognormal(&s->rng, a->observation, a->observation_sigma);
	len = len < 1 ? 1 : len > a->observation_max ? a->observation_max : len;
	drop = load_uniform(&s->rng) < a->transient;
	marked = load_uniform(&s->rng) < a->marked;
	p = part_make(s, len, turn, drop && marked);
	p.until = drop ? turn + 1 : ~0u;
	part_add(s, p);
	s->l->block[p.first + p.n - 1].tail = true;
}

static void session_run(struct load *l, const struct agents *a, struct shared *sh, u32 nr,
			u64 at, u64 seed)
{
	struct session s = { .a = a, .l = l, .rng = seed, .seq = nr + 1 };
	u32 repo = load_rand(&s.rng) % a->repos, turn, turns;

	turns = a->turns_min + load_rand(&s.rng) % (a->turns_max - a->turns_min + 1);
	part_shared(&s, &sh->system, a->system);
	part_shared(&s, &sh->tools[repo % a->types], a->tools);
	part_shared(&s, &sh->repo[repo], a->repo);
	part_add(&s, part_make(&s, a->task, 1, false));
	for (turn = 1; turn <= turns; turn++) {
		if (turn > 1)
			turn_add(&s, turn);
		ask(&s, at, turn);
		at += NS * load_lognormal(&s.rng, a->pause, a->pause_sigma);
	}
	free(s.part);
}

void load_agents(struct load *l, const struct agents *a)
{
	struct shared sh = {
		.tools = calloc(a->types, sizeof(*sh.tools)),
		.repo = calloc(a->repos, sizeof(*sh.repo)),
	};
	u64 rng = a->seed;
	double at = 0, rate;
	u32 i;

	load_begin(l, "agents", a->block_tokens);
	l->seed = a->seed;
	for (i = 0; i < a->sessions; i++) {
		session_run(l, a, &sh, i, at * NS, load_rand(&rng));
		rate = fmod(at, a->burst_every) < a->burst_for ? a->burst : 1;
		at -= log(1 - load_uniform(&rng)) * a->arrival / rate;
	}
	free(sh.tools);
	free(sh.repo);
	load_end(l);
}
