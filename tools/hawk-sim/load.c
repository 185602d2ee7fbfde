// SPDX-License-Identifier: MIT
/*
 * load.c - a load is put together, or read from a public trace
 *
 * Mooncake: one JSON object per line with timestamp (ms) and hash_ids, one per block of 512
 * tokens.  Equal ids are equal prefixes, so the id before is the parent; the last id of a
 * prompt is its tail if the prompt does not fill it.
 *
 * Azure: arrival time, prompt tokens, generated tokens, and nothing else.  What the prompts
 * have in common is made up (load_azure()), so only lengths and times are those of the trace.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"

#define MS		1000000ull
#define MOONCAKE_TOKENS	512u
#define AZURE_SYSTEM	1024u	/* tokens that all prompts begin with */
#define AZURE_FILES	64u	/* documents in use at a time */
#define AZURE_AGAIN	0.7	/* share of requests about the same document as one before */

static void *grow(void *array, u32 n, u32 *room, size_t bytes)
{
	if (n < *room)
		return array;
	*room = *room ? 2 * *room : 4096;
	array = realloc(array, *room * bytes);
	if (!array) {
		perror("hawk-sim");
		exit(2);
	}
	return array;
}

void load_begin(struct load *l, const char *name, u32 block_tokens)
{
	memset(l, 0, sizeof(*l));
	l->name = name;
	l->block_tokens = block_tokens;
}

u32 load_block(struct load *l, struct load_block b)
{
	l->block = grow(l->block, l->nblocks, &l->room[0], sizeof(*l->block));
	l->block[l->nblocks] = b;
	return l->nblocks++;
}

struct load_request *load_request(struct load *l, u64 at, u32 turn)
{
	l->req = grow(l->req, l->nreq, &l->room[1], sizeof(*l->req));
	l->req[l->nreq] = (struct load_request) { .at = at, .first = l->nref, .turn = turn };
	return &l->req[l->nreq++];
}

/* One more block of the last request. */
void load_ref(struct load *l, u32 block)
{
	struct load_request *r = &l->req[l->nreq - 1];

	l->ref = grow(l->ref, l->nref, &l->room[2], sizeof(*l->ref));
	l->ref[l->nref++] = block;
	r->n++;
	r->tokens += l->block_tokens;
}

static int by_time(const void *a, const void *b)
{
	const struct load_request *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at ? 1 : x->first < y->first ? -1 : 1;
}

/* Requests in order of time; which is the last to have a block? */
void load_end(struct load *l)
{
	u32 i, k;

	qsort(l->req, l->nreq, sizeof(*l->req), by_time);
	for (i = 0; i < l->nreq; i++)
		for (k = 0; k < l->req[i].n; k++)
			l->block[l->ref[l->req[i].first + k]].last = i;
}

void load_free(struct load *l)
{
	free(l->block);
	free(l->req);
	free(l->ref);
}

u64 load_ns(const struct load *l)
{
	return l->nreq ? l->req[l->nreq - 1].at - l->req[0].at : 0;
}

/* ---- chance: splitmix64, and what is made of it ---- */

u64 load_rand(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* From 0 to less than 1. */
double load_uniform(u64 *state)
{
	return (load_rand(state) >> 11) * 0x1p-53;
}

double load_lognormal(u64 *state, double mean, double sigma)
{
	double u = 1 - load_uniform(state), v = load_uniform(state);
	double z = sqrt(-2 * log(u)) * cos(2 * M_PI * v);

	return exp(log(mean) - sigma * sigma / 2 + sigma * z);
}

/* ---- traces ---- */

static int mooncake_line(struct load *l, const char *line, u32 **id, u32 *ids)
{
	json_t *o = json_loads(line, 0, NULL), *list = json_object_get(o, "hash_ids");
	json_int_t at = json_integer_value(json_object_get(o, "timestamp"));
	json_int_t len = json_integer_value(json_object_get(o, "input_length"));
	u32 parent = LOAD_NONE, i, n = json_array_size(list), seq = l->nreq;
	struct load_request *r;

	if (!json_is_array(list)) {
		json_decref(o);
		return -EINVAL;
	}
	load_request(l, at * MS, 0);
	for (i = 0; i < n; i++) {
		json_int_t hash = json_integer_value(json_array_get(list, i));

		while (hash >= *ids) {
			u32 had = *ids;

			*id = grow(*id, *ids, ids, sizeof(**id));
			memset(*id + had, 0xff, (*ids - had) * sizeof(**id));
		}
		if ((*id)[hash] == LOAD_NONE)
			(*id)[hash] = load_block(l, (struct load_block) {
				.parent = parent, .tok = i * MOONCAKE_TOKENS, .seq = seq,
				.tail = i + 1 == n && len % MOONCAKE_TOKENS,
			});
		parent = (*id)[hash];
		load_ref(l, parent);
	}
	r = &l->req[l->nreq - 1];
	r->tokens = len;
	json_decref(o);
	return 0;
}

int load_mooncake(struct load *l, const char *path)
{
	FILE *f = fopen(path, "r");
	u32 *id = NULL, ids = 0;
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	if (!f)
		return -errno;
	load_begin(l, "mooncake", MOONCAKE_TOKENS);
	while (!ret && getline(&line, &room, f) > 0)
		ret = mooncake_line(l, line, &id, &ids);
	free(id);
	free(line);
	fclose(f);
	load_end(l);
	return ret ? ret : l->nreq ? 0 : -EINVAL;
}

/* A document: its blocks as far as they have been asked about. */
struct document {
	u32 seq;
	u32 n;
	u32 *block;
	u32 room;
};

/*
 * One request: with probability AZURE_AGAIN about one of AZURE_FILES documents in use, else
 * about a new one that takes the place of one of them.  A prompt is the system prompt and
 * then as much of the document as its length says.
 */
static void azure_request(struct load *l, struct document *doc, u64 at, u32 tokens, u64 *rng)
{
	struct document *d = &doc[1 + load_rand(rng) % AZURE_FILES];
	u32 bt = l->block_tokens, i, n = (tokens + bt - 1) / bt, shared = AZURE_SYSTEM / bt;
	u32 parent = LOAD_NONE;

	if (load_uniform(rng) > AZURE_AGAIN || !d->seq) {
		d->n = 0;
		d->seq = l->nreq + 1;
	}
	load_request(l, at, 0);
	for (i = 0; i < n; i++) {
		struct document *from = i < shared ? doc : d;
		u32 k = i < shared ? i : i - shared;

		if (k == from->n) {
			from->block = grow(from->block, k, &from->room, sizeof(*from->block));
			from->block[from->n++] = load_block(l, (struct load_block) {
				.parent = parent, .tok = i * bt, .seq = from->seq,
				.tail = i + 1 == n && tokens % bt,
			});
		}
		parent = from->block[k];
		load_ref(l, parent);
	}
	l->req[l->nreq - 1].tokens = tokens;
}

int load_azure(struct load *l, const char *path, u64 seed, u32 block_tokens)
{
	struct document doc[1 + AZURE_FILES] = { 0 };
	FILE *f = fopen(path, "r");
	u32 prompt, made, i;
	u64 first = 0, at;
	double s;
	struct tm tm;
	char line[256];

	if (!f)
		return -errno;
	load_begin(l, "azure", block_tokens);
	l->seed = seed;
	while (fgets(line, sizeof(line), f)) {
		memset(&tm, 0, sizeof(tm));
		if (sscanf(line, "%d-%d-%d %d:%d:%lf,%u,%u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			   &tm.tm_hour, &tm.tm_min, &s, &prompt, &made) != 8)
			continue;	/* the head */
		tm.tm_year -= 1900;
		tm.tm_mon--;
		at = (u64)timegm(&tm) * 1000 * MS + (u64)(s * 1e9);
		first = first ? first : at;
		azure_request(l, doc, at - first, prompt, &seed);
	}
	fclose(f);
	for (i = 0; i <= AZURE_FILES; i++)
		free(doc[i].block);
	load_end(l);
	return l->nreq ? 0 : -EINVAL;
}
