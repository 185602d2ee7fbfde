// SPDX-License-Identifier: MIT
/*
 * cache.c - the engine as the cache of a replay
 *
 * Blocks are 2 MiB to the engine, whatever they are in the model, so that a tier has as
 * many frames as it has chunks.  Moves end at once; how long they take is replay.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "sim.h"

#define CACHE_BLOCK	HAWK_CHUNK_BYTES
#define CACHE_MOVES	64

struct cache {
	const struct load *l;
	struct run run;
	struct hawk_engine *e;
	struct hawk_space *s;
	struct hawk_vtlb_entry *vtlb;
	u32 tier[2];
	u32 request;		/* under way */
	u64 rng;
	u64 writes;
	struct hawk_plan plan;
	struct hawk_move move[CACHE_MOVES];
};

static struct cache *cache_now;	/* the one that the engine asks about */

static const u8 *key_of(u8 *key, u32 block)
{
	memset(key, 0, HAWK_KEY_BYTES);
	block++;
	memcpy(key, &block, sizeof(block));
	key[HAWK_KEY_BYTES - 1] = 1;
	return key;
}

static u64 lid_for(const struct cache *c, u32 block)
{
	const struct load_block *b = &c->l->block[block];

	return HAWK_LID(b->seq % 0xffffff + 1, 0, 0, b->tok);
}

/* Rules that only a simulator can have. */
static bool hook(struct hawk_space *s, struct hawk_block *blk)
{
	struct cache *c = cache_now;
	u32 block;

	if (c->run.policy == POLICY_RANDOM)
		return load_uniform(&c->rng) < c->run.share;
	memcpy(&block, hawk_block_key(s, blk), sizeof(block));
	return c->l->block[block - 1].last > c->request;
}

static void tiers_add(struct cache *c, struct hawk_space_params *p)
{
	struct hawk_tier_admit a = { .flags = HAWK_ADMIT_SET };
	const struct run *r = &c->run;

	EXPECT(!hawk_tier_add(c->e, HAWK_TIER_HOST, r->dram, &c->tier[0]));
	p->quota_max[c->tier[0]] = r->dram;
	p->max_blocks = r->dram;
	if (r->policy == POLICY_DRAM)
		return;
	EXPECT(!hawk_tier_add(c->e, HAWK_TIER_BLK, r->flash, &c->tier[1]));
	p->quota_max[c->tier[1]] = r->flash;
	p->max_blocks += r->flash;
	a.tier = c->tier[1];
	a.budget_bytes = r->budget * CACHE_BLOCK;
	a.period_ns = r->period;
	switch (r->policy) {
	case POLICY_ALL:
		a.mode = HAWK_ADMIT_ALL;
		break;
	case POLICY_SECOND:
	case POLICY_ORACLE:	/* a rule, so that the engine asks at all */
	case POLICY_RANDOM:
		a.mode = HAWK_ADMIT_SECOND;
		break;
	case POLICY_FORMULA:
		a.mode = HAWK_ADMIT_FORMULA;
		break;
	default:
		a.mode = HAWK_ADMIT_REUSE;
		break;
	}
	EXPECT(!hawk_tier_admit(c->e, &a, 0));
}

struct cache *cache_create(const struct load *l, const struct run *r)
{
	struct hawk_space_params p = {
		.block_bytes = CACHE_BLOCK, .block_tokens = l->block_tokens,
		.buckets = r->buckets,
	};
	struct cache *c = calloc(1, sizeof(*c));
	u64 bytes;

	EXPECT(c);
	c->l = l;
	c->run = *r;
	c->rng = 1;
	c->e = hawk_engine_create();
	c->plan = (struct hawk_plan) { .max = CACHE_MOVES, .move = c->move };
	tiers_add(c, &p);
	bytes = hawk_vtlb_bytes(p.max_blocks);
	c->vtlb = aligned_alloc(64, bytes);
	EXPECT(c->vtlb);
	memset(c->vtlb, 0, bytes);
	p.vtlb = c->vtlb;
	EXPECT(!hawk_space_create(c->e, &p, &c->s));
	cache_now = c;
	hawk_admit_hook = r->policy == POLICY_ORACLE || r->policy == POLICY_RANDOM ? hook : NULL;
	return c;
}

void cache_destroy(struct cache *c, struct result *res)
{
	struct hawk_stats st = { .size = sizeof(st) };

	hawk_space_stats(c->s, &st);
	res->writes = c->writes;
	res->refused[0] = st.refused_score;
	res->refused[1] = st.refused_budget;
	res->refused[2] = st.refused_parent;
	res->refused[3] = st.refused_rule;
	res->refused[4] = st.refused_full;
	res->unread = c->writes - st.flash_read;
	hawk_space_destroy(c->s);
	hawk_engine_destroy(c->e);
	free(c->vtlb);
	free(c);
}

void cache_at(struct cache *c, u32 request)
{
	c->request = request;
}

u64 cache_writes(const struct cache *c)
{
	return c->writes;
}

static void moves_end(struct cache *c)
{
	u32 i;

	for (i = 0; i < c->plan.n; i++) {
		c->writes += c->move[i].kind == HAWK_MOVE_WRITE;
		c->move[i].result = 0;
		hawk_move_complete(&c->move[i]);
	}
	c->plan.n = 0;
}

/* Return: call again. */
static bool again(struct cache *c, int ret)
{
	struct hawk_grant g;

	if (ret == -ENOBUFS) {
		if (!hawk_space_grow(c->s, &g))
			hawk_space_grown(c->s, &g, true);
		return true;
	}
	EXPECT(!ret || ret == -EAGAIN || ret == -EINPROGRESS);
	EXPECT(!ret || c->plan.n);
	moves_end(c);
	return ret;
}

/* Where is it?  That counts as a use. */
enum place cache_look(struct cache *c, u32 block, u64 now)
{
	u8 key[HAWK_KEY_BYTES];
	struct hawk_ref ref;
	u64 lid, vt;

	if (hawk_block_find(c->s, key_of(key, block), false, now, &lid, &vt, &ref))
		return PLACE_NONE;
	return HAWK_VT_TIER(vt) == c->tier[0] ? PLACE_DRAM : PLACE_FLASH;
}

/* Bring it from flash, if it is there.  Return: whether it was. */
bool cache_fetch(struct cache *c, u32 block, u64 now)
{
	int ret, n = 0;

	do {
		ret = hawk_block_reload(c->s, lid_for(c, block), HAWK_TIER_ANY, now, &c->plan);
		if (ret == -ENOENT)
			return false;	/* its place was taken meanwhile */
		n += ret;
	} while (again(c, ret));
	return n;
}

/* It has been computed. */
void cache_fill(struct cache *c, u32 block, u64 now)
{
	const struct load_block *b = &c->l->block[block];
	u8 key[HAWK_KEY_BYTES], parent[HAWK_KEY_BYTES];
	u32 hints = b->marked ? HAWK_ITEM_TRANSIENT : 0;
	u64 lid = lid_for(c, block), vt;
	int ret;

	if (c->run.structure) {
		hints |= b->parent == LOAD_NONE ? HAWK_ITEM_ROOT : HAWK_ITEM_PARENT;
		hints |= HAWK_ITEM_TURN(b->turn) | (b->tail ? HAWK_ITEM_TAIL : 0);
	}
	do {
		ret = hawk_block_alloc(c->s, lid, NULL, HAWK_TIER_ANY, now, &c->plan, &vt);
		EXPECT(ret != -EEXIST);
	} while (again(c, ret));
	EXPECT(!hawk_block_hint(c->s, lid, hints, key_of(parent, b->parent)));
	EXPECT(!hawk_block_put(c->s, lid, key_of(key, block), false, now));
}
