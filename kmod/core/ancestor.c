// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * ancestor.c - what comes before blocks that are kept on flash is kept there too
 *
 * A hot prefix may never leave host memory, and nobody who goes along the chain would find
 * what follows it after a restart.  So each block whose child is on persistent flash, and that
 * has no copy on flash itself, is written there; it stays where it is.
 *
 * Two bits per block tell which they are:
 *
 *	before	a block on persistent flash comes after it.  Stays set when that one has gone:
 *		then the block is written once for nothing.
 *	lacking	and it has no copy on flash, or had none a moment ago: to be written.
 *
 * Where a block becomes lacking it is noted, so no chain has to be walked and a hole high up
 * is as good as one at the end: its child is written; it loses its copy while it stays (a
 * chunk is drained, or another block needs the frame badly); or its write failed.  Whoever
 * is written sees to its own parent, up to the first block.  One whose parent is not there,
 * or is not put yet, has none to see to: what follows it may be out of reach after a restart
 * (restore.c).
 *
 * Whoever sets @before looks for the copy after that, whoever takes the copy away looks at
 * @before after that; both by a read and write of the same word, so one sees the other.
 */
#include "priv.h"

#define LOOK_BLOCKS	64	/* per call */
#define LOOK_WORDS	16384
#define REFUSALS	16	/* then there is no room, or no budget: the next time */

static u32 words_of(const struct hawk_space *s)
{
	return (s->max_blocks + 63) / 64;
}

int hawk_ancestor_create(struct hawk_space *s)
{
	if (s->before)
		return 0;
	s->before = hawk_table_alloc(words_of(s), sizeof(*s->before));
	s->lacking = hawk_table_alloc(words_of(s), sizeof(*s->lacking));
	return s->before && s->lacking ? 0 : -ENOMEM;
}

void hawk_ancestor_destroy(struct hawk_space *s)
{
	hawk_table_free(s->before, words_of(s), sizeof(*s->before));
	hawk_table_free(s->lacking, words_of(s), sizeof(*s->lacking));
}

/* ---- bits ---- */

/* Return: whether it was set. */
static bool bits_change(u64 *table, u32 nr, u64 and, u64 or)
{
	u64 old, bit = 1ull << nr % 64, *word = &table[nr / 64];

	do
		old = hawk_load(word);
	while (!hawk_cas64(word, old, (old & ~(bit & ~and)) | (bit & or)));
	return old & bit;
}

static void bit_set(u64 *table, u32 nr)
{
	bits_change(table, nr, ~0ull, ~0ull);
}

static bool bit_clear(u64 *table, u32 nr)
{
	return bits_change(table, nr, 0, 0);
}

/* With a write, see above. */
static bool bit_look(u64 *table, u32 nr)
{
	return bits_change(table, nr, ~0ull, 0);
}

static bool bit_peek(const u64 *table, u32 nr)
{
	return hawk_load(&table[nr / 64]) & 1ull << nr % 64;
}

static void lacks(struct hawk_space *s, u32 nr)
{
	bit_set(s->lacking, nr);
	hawk_store_release(&s->lacks, 1);
}

/* ---- what happens to blocks; their home is locked ---- */

/* Block @nr comes before one that is kept. */
void hawk_ancestor_set(struct hawk_space *s, u32 nr)
{
	bit_set(s->before, nr);
	/* its home is not locked: one that is being written sees to itself when that ends */
	if (!(hawk_load(&s->block[nr].hint) & HAWK_BH_COPY))
		lacks(s, nr);
}

/* The same for one that was found on flash itself: it lacks nothing. */
void hawk_ancestor_found(struct hawk_space *s, u32 nr)
{
	if (!bit_peek(s->before, nr))
		bit_set(s->before, nr);
}

/* @blk is on persistent flash, or on its way there. */
void hawk_ancestor_after(struct hawk_space *s, const struct hawk_block *blk)
{
	struct hawk_ghost g;
	u32 nr;

	if (!(blk->hint & HAWK_BH_PARENT))
		return;
	nr = hawk_index_about(s, s->life[hawk_block_nr(s, blk)].parent, blk->atime, &g);
	if (nr != HAWK_NONE)
		hawk_ancestor_set(s, nr);
}

/* @blk has lost its flash copy, or did not get one. */
void hawk_ancestor_lost(struct hawk_space *s, const struct hawk_block *blk)
{
	u32 nr = hawk_block_nr(s, blk);

	if (s->before && blk->state != HAWK_BLOCK_DYING && bit_look(s->before, nr))
		lacks(s, nr);
}

/* Its number will be another block's. */
void hawk_ancestor_end(struct hawk_space *s, u32 nr)
{
	if (s->before && bit_peek(s->before, nr)) {
		bit_clear(s->before, nr);
		bit_clear(s->lacking, nr);
	}
}

/* A hint: would something out of reach follow, were its copy dropped? */
bool hawk_ancestor_is(const struct hawk_space *s, const struct hawk_block *blk)
{
	return s->before && bit_peek(s->before, hawk_block_nr(s, blk));
}

/* ---- writing them ---- */

/* Return: 0; -ENOENT: it needs no write; -EAGAIN, -EDQUOT, -ENOSPC, -ENOBUFS: not now. */
static int write_one(struct hawk_space *s, u32 nr, u64 now, struct hawk_plan *plan)
{
	struct hawk_want w = { .plan = plan, .now = now, .ancestor = true };
	struct hawk_block *blk = &s->block[nr];
	u32 home;
	int ret;

	for (;;) {
		home = hawk_load(&blk->home);
		hawk_lock(&s->bucket[home].lock);
		if (hawk_load(&blk->home) != home || blk->state != HAWK_BLOCK_READY ||
		    blk->flags & HAWK_BF_FLASH || !(blk->flags & HAWK_BF_KEY))
			ret = -ENOENT;
		else
			ret = hawk_write_start(s, blk, HAWK_MF_KEEP, &w);
		if (!ret)
			hawk_ancestor_after(s, blk);	/* so that a chain goes in one round */
		hawk_unlock(&s->bucket[home].lock);
		hawk_map_reap(s, home);
		if (ret != -ENOBUFS)
			return ret;
		ret = hawk_want_fetch(s, &w, home);
		if (ret)
			return ret;
	}
}

/* The blocks of one word.  Return: 0: go on; what write_one() said of the last one. */
static int write_word(struct hawk_space *s, u32 word, u64 now, struct hawk_plan *plan,
		      u32 *looked, u32 *refused)
{
	u64 bits = hawk_load(&s->lacking[word]);
	u32 nr;
	int ret;

	for (; bits; bits &= bits - 1) {
		nr = word * 64 + __builtin_ctzll(bits);
		if (!bit_clear(s->lacking, nr))
			continue;
		++*looked;
		ret = write_one(s, nr, now, plan);
		if (!ret || ret == -ENOENT)
			continue;
		lacks(s, nr);
		if (ret == -EAGAIN || ret == -ENOBUFS)
			return ret;
		if (++*refused == REFUSALS)
			return ret;
	}
	return 0;
}

bool hawk_keep_lacks(struct hawk_space *s)
{
	return s->before && (hawk_load_acquire(&s->lacks) || hawk_load(&s->lacking_round));
}

int hawk_keep_ancestors(struct hawk_space *s, u32 *cursor, u64 now, struct hawk_plan *plan)
{
	u32 first = plan->n, looked = 0, refused = 0, n, words = words_of(s);
	int ret = 0;

	if (!s->before)
		return -ENOENT;
	for (n = 0; !ret && *cursor < words && n < LOOK_WORDS && looked < LOOK_BLOCKS; n++) {
		if (!*cursor)
			hawk_store(&s->lacks, 0);
		ret = write_word(s, hawk_load(&s->lacking_at) % words, now, plan, &looked,
				 &refused);
		*cursor += !ret;
		if (!ret)
			hawk_store(&s->lacking_at, hawk_load(&s->lacking_at) + 1);
		hawk_relax();
	}
	if (ret && ret != -ENOBUFS && !hawk_plan_full(plan)) {
		/* not now: others first the next time */
		hawk_store(&s->lacking_at, hawk_load(&s->lacking_at) + 1);
		*cursor = words;
	} else if (plan->n > first) {
		*cursor = 0;	/* those before them, and what becomes of these */
	}
	hawk_store(&s->lacking_round, *cursor < words);
	if (ret == -ENOBUFS)
		return ret;
	return plan->n > first || *cursor < words ? (int)(plan->n - first) : -ENOENT;
}
