// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * reuse.c - which blocks come back after they left host memory
 *
 * Each block that leaves is of a class: what its maker said of it, how often it was used,
 * the turn that its conversation has reached, how deep in the prompt it lies.  The class
 * is written down beside the block if it went to flash, and in a table of ghosts if it was
 * forgotten.  It counts as come back when it is reloaded, or made and published anew.  So
 * the outcome is seen of those that were written and of those that were not, and what is
 * learnt does not depend on what was decided.
 *
 * A write pays for all reads that follow it.  So not only is learnt how many of a class come
 * back, but also how often in all: when a block leaves again, what its new class can expect is
 * added to its old one's account.  One return leads to the next without anybody counting them.
 *
 * What is a write worth?  With P the share that comes back, N how often in all, and a price
 * of c reads per write: writing now gains N - c; waiting for the first return gains
 * P * (N' - c), where N = P * (1 + N').  The first is better if c is below both N and
 * P / (1 - P); the lesser of the two is what the block is worth.
 *
 * How much has been seen of a class?  Not as much as blocks: those of a conversation leave, and
 * come back, together.  Blocks that were last used at the same time count as one case.  The
 * rate of a class is drawn towards that of the coarser one as if that had been seen in
 * HAWK_RATE_DRAW cases, so that one conversation that ended does not condemn a class.
 *
 * What has left a moment ago had no time to come back yet.  So those that may still do are
 * not counted among those that left: a class is not worth less because it is young.
 *
 * Before anything is known of a kind, what its maker said is taken for true.
 *
 *	all < kind, uses < kind, uses, turn < kind, uses, turn, depth
 *
 * The turn that a conversation has reached is, for a block used n times, that of its birth
 * plus n - 1.  A client that does not tell turns may tell parents: a block whose parent had
 * been used before is of the next turn, one whose parent is as new as itself of the same.
 *
 * A ghost is 64 bits: tag:24 | atime:20 | class:11 | uses:4 | turn:5, 0: none.  Sets of 8
 * are written round; there are as many ghosts as the space may have blocks.
 */
#include "priv.h"

#define HAWK_RATE_DRAW		16	/* cases */
#define HAWK_RATE_AGE		1024	/* cases after which all counts are halved */
#define HAWK_RATE_MEMBERS	(1u << 18)	/* the same of members, so that no count overflows */
#define HAWK_RATE_WORTHLESS	64	/* one of so many comes back: not worth a write */
#define HAWK_RATE_OUT		8	/* shift of hawk_rate.out and .more */
#define HAWK_RETURNS_MAX	(15 * HAWK_FX_ONE)
#define HAWK_MEAN_SHIFT		6	/* means follow with 1/64 */

#define GHOST_USES_MAX		15u
#define GHOST_TURN_MAX		31u
#define GHOST_TIME_SHIFT	28	/* units of atime, ns: a quarter of a second */
#define GHOST_TIME_BITS		20

/* ---- classes ---- */

enum kind { KIND_PLAIN, KIND_TRANSIENT, KIND_PERSIST, KIND_TAIL };

static enum kind kind_of(u32 hint)
{
	if (hint & HAWK_BH_TRANSIENT)
		return KIND_TRANSIENT;
	if (hint & HAWK_BH_PERSIST)
		return KIND_PERSIST;
	return hint & HAWK_BH_TAIL ? KIND_TAIL : KIND_PLAIN;
}

static u32 uses_bin(u32 uses)
{
	return uses < 3 ? uses - !!uses : uses < 8 ? 2 : 3;
}

/* 0 unknown, then 1 to 8 one by one, then wider. */
static u32 turn_bin(u32 turn)
{
	static const u8 from[7] = { 9, 11, 13, 16, 20, 25, 32 };
	u32 i;

	if (turn <= 8)
		return turn;
	for (i = 1; i < ARRAY_SIZE(from) && turn >= from[i]; i++)
		;
	return 8 + i;
}

/* Tokens before it: less than 1024, 2048, 4096, ... */
u32 hawk_depth_bin(u32 tok)
{
	u32 n = 64 - __builtin_clzll(tok >> 9 | 1);

	return n > 7 ? 7 : n - 1;
}

u32 hawk_class(u32 hint, u32 uses, u32 turn, u32 depth)
{
	if (turn)
		turn += uses - !!uses;
	return ((kind_of(hint) << 2 | uses_bin(uses)) << HAWK_CLASS_TURN_BITS | turn_bin(turn))
		       << HAWK_CLASS_DEPTH_BITS | depth;
}

/* The coarser classes of a class, the coarsest first, and itself. */
static void classes_of(u32 class, u32 *c)
{
	c[0] = HAWK_CLASS_ANY;
	c[1] = HAWK_CLASS_NO_TURN + (class >> (HAWK_CLASS_TURN_BITS + HAWK_CLASS_DEPTH_BITS));
	c[2] = HAWK_CLASS_NO_DEPTH + (class >> HAWK_CLASS_DEPTH_BITS);
	c[3] = class;
}

/* Of those that left, how many may yet come back at @now, 1/256 */
static u32 rate_out(const struct hawk_reuse *r, const struct hawk_rate *k, u64 now)
{
	u64 at = hawk_load(&k->at), mean = hawk_reuse_mean(r);

	if (now <= at || !mean)
		return hawk_load(&k->out);
	return hawk_fx_mul(hawk_load(&k->out), hawk_fx_exp_neg(hawk_fx_ratio(now - at, mean)));
}

/* What is taken for true of a kind of blocks; @p: of all blocks */
static u64 prior(u32 class, u64 p)
{
	u32 kind = class >> (HAWK_CLASS_BITS - 2);

	if (kind == KIND_TRANSIENT)
		return HAWK_FX_ONE / HAWK_RATE_WORTHLESS;
	return kind == KIND_PERSIST ? HAWK_FX_ONE - HAWK_FX_ONE / HAWK_RATE_WORTHLESS : p;
}

/* A rate of a class: so many of @left, drawn towards @p, that of a coarser class. */
static u64 drawn(u64 part, u32 left, u32 draw, u64 p)
{
	return div_u64(part + draw * p, left + draw);
}

/* @returns: out, how often such blocks come back in all; returns: how many do at all */
static u64 class_rates(const struct hawk_reuse *r, u32 class, u64 now, u64 *returns)
{
	u64 p = HAWK_FX_ONE / 2, more = 0;
	u32 c[4], i, left, came, cases, out, draw;

	classes_of(class, c);
	for (i = 0; i < 4; i++) {
		const struct hawk_rate *k = &r->rate[c[i]];

		left = hawk_load(&k->left);
		cases = hawk_load(&k->cases);
		came = hawk_load(&k->came);
		draw = HAWK_RATE_DRAW * left / (cases ?: 1);
		draw = draw ?: HAWK_RATE_DRAW;
		out = rate_out(r, k, now) >> HAWK_RATE_OUT;
		left = left > out + came ? left - out : came;
		p = drawn((u64)came << 32, left, draw, i == 1 ? prior(class, p) : p);
		more = drawn((u64)hawk_load(&k->more) << (32 - HAWK_RATE_OUT), left, draw, more);
	}
	p = p < HAWK_FX_ONE - 1 ? p : HAWK_FX_ONE - 1;
	*returns = p + more < HAWK_RETURNS_MAX ? p + more : HAWK_RETURNS_MAX;
	return p;
}

/*
 * What it is worth to have such a block on flash, in reads per write, Q32.32: the price of a
 * write at which writing it, and waiting whether it comes back, are equally good.
 */
u64 hawk_class_worth(const struct hawk_reuse *r, u32 class, u64 now)
{
	u64 returns, p = class_rates(r, class, now, &returns);
	u64 odds = hawk_fx_ratio(p, HAWK_FX_ONE - p);

	return odds < returns ? odds : returns;
}

/* Is it known that hardly any block of such a class comes back? */
bool hawk_class_worthless(const struct hawk_reuse *r, u32 class, u64 now)
{
	u64 returns;

	return class_rates(r, class, now, &returns) < HAWK_FX_ONE / HAWK_RATE_WORTHLESS;
}

/* The counts of the past fade, once there is enough of it. */
static void rate_age(struct hawk_rate *k)
{
	if (hawk_load(&k->cases) < HAWK_RATE_AGE && hawk_load(&k->left) < HAWK_RATE_MEMBERS)
		return;
	hawk_store(&k->cases, (hawk_load(&k->cases) + 1) / 2);
	hawk_store(&k->left, hawk_load(&k->left) / 2);
	hawk_store(&k->out, hawk_load(&k->out) / 2);
	hawk_store(&k->came, hawk_load(&k->came) / 2);
	hawk_store(&k->more, hawk_load(&k->more) / 2);
}

/* A block of a class left, which was used last at @atime. */
void hawk_class_left(struct hawk_reuse *r, u32 class, u64 atime, u64 now)
{
	u32 used = (u32)(atime / HAWK_USE_GAP_NS) + 1, c[4], i;
	struct hawk_rate *k;

	classes_of(class, c);
	for (i = 0; i < 4; i++) {
		k = &r->rate[c[i]];
		/* they leave in order of their last use, more or less */
		if ((s32)(used - hawk_load(&k->used)) > 0) {
			hawk_store(&k->used, used);
			hawk_store(&k->cases, hawk_load(&k->cases) + 1);
		}
		hawk_store(&k->out, rate_out(r, k, now) + (1u << HAWK_RATE_OUT));
		if (now > hawk_load(&k->at))
			hawk_store(&k->at, now);
		hawk_store(&k->left, hawk_load(&k->left) + 1);
		rate_age(k);
	}
}

/* So many of a class have come back, or were worth @more, 1/256, when they left again. */
void hawk_class_came(struct hawk_reuse *r, u32 class, u32 came, u32 more)
{
	struct hawk_rate *k;
	u32 c[4], i;

	classes_of(class, c);
	for (i = 0; i < 4; i++) {
		k = &r->rate[c[i]];
		hawk_store(&k->came, hawk_load(&k->came) + came);
		hawk_store(&k->more, hawk_load(&k->more) + more);
	}
}

/* A block of class @was came back and leaves as @is. */
static void class_next(struct hawk_reuse *r, u32 was, u32 is, u64 now)
{
	u64 returns;

	class_rates(r, is, now, &returns);
	hawk_class_came(r, was, 0, returns >> (32 - HAWK_RATE_OUT));
}

static void mean_move(u64 *mean, u64 sample)
{
	u64 m = hawk_load(mean);

	m = m ? m - (m >> HAWK_MEAN_SHIFT) + (sample >> HAWK_MEAN_SHIFT) : sample;
	hawk_store(mean, m);
}

/* ---- what happens to blocks; their homes are locked ---- */

/* It is used at @now; hits come here, and touch the block's line only. */
void hawk_block_used(struct hawk_block *blk, u64 now)
{
	if (now - blk->atime >= HAWK_USE_GAP_NS && now > blk->atime && blk->uses < U8_MAX)
		hawk_store(&blk->uses, blk->uses + 1);
	hawk_store(&blk->atime, now);
}

/*
 * It is being made, and its hints are known.  Behind a parent as new as itself it belongs to
 * the same segment; else it begins one, and in a conversation the next turn.
 */
void hawk_reuse_born(struct hawk_space *s, struct hawk_block *blk)
{
	u32 nr = hawk_block_nr(s, blk), parent = HAWK_NONE, turn = 1, lid_tok;
	struct hawk_life *life = &s->life[nr];
	struct hawk_ghost g;

	if (blk->hint & HAWK_BH_PARENT)
		parent = hawk_index_about(s, life->parent, blk->atime, &g);
	/* its home is not locked: a racing look will do */
	if (parent != HAWK_NONE) {
		turn = hawk_load(&s->block[parent].turn);
		if (hawk_load(&s->block[parent].uses) == blk->uses) {
			hawk_store(&life->lot, hawk_load(&s->life[parent].lot));
			hawk_store(&life->depth, hawk_load(&s->life[parent].depth));
		} else {
			turn += !!turn;
			parent = HAWK_NONE;
		}
	} else if (!(blk->hint & HAWK_BH_ROOT)) {
		turn = 0;
	}
	if (parent == HAWK_NONE) {
		lid_tok = blk->maps == HAWK_NONE ? 0 : hawk_lid_tok(s->map[blk->maps].lid);
		hawk_store(&life->lot, hawk_mix(blk->atime ^ s->hash_seed ^ (u64)nr << 32) >> 32);
		hawk_store(&life->depth, hawk_depth_bin(lid_tok));
	}
	if (!blk->turn)
		hawk_store(&blk->turn, turn < U8_MAX ? turn : U8_MAX);
}

/* It leaves host memory, for flash or for good. */
void hawk_reuse_leave(struct hawk_space *s, struct hawk_block *blk, u64 now)
{
	struct hawk_life *life;
	u32 class;

	if (!hawk_learns(s))
		return;
	life = &s->life[hawk_block_nr(s, blk)];
	class = hawk_class_of(s, blk);
	if (life->came)
		class_next(s->reuse, life->class, class, now);
	life->class = class;
	life->away = true;
	life->came = false;
	hawk_class_left(s->reuse, class, blk->atime, now);
	if (now > life->since)
		mean_move(&s->reuse->stay_ns, now - life->since);
	life->since = blk->atime;
}

/* Somebody wants it that is on flash. */
void hawk_reuse_back(struct hawk_space *s, struct hawk_block *blk, u64 now)
{
	struct hawk_life *life;

	if (!(blk->hint & HAWK_BH_READ)) {
		hawk_store(&blk->hint, blk->hint | HAWK_BH_READ);
		hawk_bucket_of(s, blk)->count[HAWK_N_FLASH_READ]++;
	}
	if (!s->life)
		return;
	life = &s->life[hawk_block_nr(s, blk)];
	if (life->away) {
		hawk_class_came(s->reuse, life->class, 1, 0);
		life->came = true;
		if (now > life->since)
			mean_move(&s->reuse->away_ns, now - life->since);
	}
	life->away = false;
	life->since = now;
}

/* ---- ghosts; the shard of the key is locked ---- */

/* The low bits choose the shard too (index.c): a set is of one shard. */
static u64 *ghost_set(struct hawk_reuse *r, u64 hash)
{
	return r->ghost + (size_t)(hash & r->ghost_mask) * HAWK_GHOST_WAYS;
}

static u32 ghost_tag(u64 hash)
{
	return (u32)(hash >> 40) | 1;	/* never 0 */
}

static u64 *ghost_find(struct hawk_reuse *r, u64 hash)
{
	u64 *set = ghost_set(r, hash);
	u32 i;

	for (i = 0; i < HAWK_GHOST_WAYS; i++)
		if (set[i] >> 40 == ghost_tag(hash))
			return &set[i];
	return NULL;
}

/* The last use before @now that a ghost's bits mean. */
static u64 ghost_time(u64 bits, u64 now)
{
	u64 wrap = 1ull << GHOST_TIME_BITS, t = now >> GHOST_TIME_SHIFT;

	t = (t & ~(wrap - 1)) | bits;
	if (t > now >> GHOST_TIME_SHIFT)
		t = t >= wrap ? t - wrap : 0;
	return t << GHOST_TIME_SHIFT;
}

bool hawk_ghost_get(struct hawk_reuse *r, u64 hash, u64 now, struct hawk_ghost *g)
{
	u64 *p = ghost_find(r, hash), v;

	if (!p)
		return false;
	v = *p;
	g->turn = v & GHOST_TURN_MAX;
	g->uses = v >> 5 & GHOST_USES_MAX;
	g->class = v >> 9 & (HAWK_CLASSES - 1);
	g->atime = ghost_time(v >> 20 & ((1u << GHOST_TIME_BITS) - 1), now);
	return true;
}

/* A block is about to be forgotten. */
void hawk_ghost_put(struct hawk_space *s, const struct hawk_block *blk, u64 hash)
{
	struct hawk_life *life = &s->life[hawk_block_nr(s, blk)];
	u64 *set = ghost_set(s->reuse, hash), *p = ghost_find(s->reuse, hash);
	u32 turn = blk->turn < GHOST_TURN_MAX ? blk->turn : GHOST_TURN_MAX;
	u32 uses = blk->uses < GHOST_USES_MAX ? blk->uses : GHOST_USES_MAX;

	if (!p) {
		memmove(set + 1, set, (HAWK_GHOST_WAYS - 1) * sizeof(*set));
		p = set;
	}
	*p = (u64)ghost_tag(hash) << 40 |
	     (blk->atime >> GHOST_TIME_SHIFT & ((1u << GHOST_TIME_BITS) - 1)) << 20 |
	     (u64)life->class << 9 | uses << 5 | turn;
}

/* A block with this key is made again: it came back. */
void hawk_ghost_back(struct hawk_space *s, struct hawk_block *blk, u64 hash)
{
	struct hawk_life *life = &s->life[hawk_block_nr(s, blk)];
	u64 *p = ghost_find(s->reuse, hash);
	struct hawk_ghost g;

	if (!p)
		return;
	hawk_ghost_get(s->reuse, hash, blk->atime, &g);
	*p = 0;
	hawk_class_came(s->reuse, g.class, 1, 0);
	life->class = g.class;
	life->came = true;
	hawk_store(&blk->uses, g.uses + 1);
	if (!blk->turn)
		hawk_store(&blk->turn, g.turn);
}

/* ---- the table ---- */

static u32 ghost_sets(u32 max_blocks)
{
	u32 n = 1;

	/* at least as many as there are shards, each set must lie in one */
	while (n < HAWK_INDEX_SHARDS || (u64)n * HAWK_GHOST_WAYS < max_blocks)
		n *= 2;
	return n;
}

int hawk_reuse_create(struct hawk_space *s)
{
	u32 sets = ghost_sets(s->max_blocks);

	s->reuse = hawk_table_alloc(1, sizeof(*s->reuse));
	if (!s->reuse)
		return -ENOMEM;
	s->reuse->ghost_mask = sets - 1;
	s->reuse->ghost = hawk_table_alloc((size_t)sets * HAWK_GHOST_WAYS, sizeof(u64));
	return s->reuse->ghost ? 0 : -ENOMEM;
}

void hawk_reuse_destroy(struct hawk_space *s)
{
	if (!s->reuse)
		return;
	hawk_table_free(s->reuse->ghost,
			(size_t)(s->reuse->ghost_mask + 1) * HAWK_GHOST_WAYS, sizeof(u64));
	hawk_table_free(s->reuse, 1, sizeof(*s->reuse));
}
