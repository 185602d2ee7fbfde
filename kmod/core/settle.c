// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * settle.c - which of the blocks found on flash are out of reach
 *
 * Runs when all chunks of a space have been adopted (restore.c), in one thread: nobody else
 * uses the space, so blocks hold still between two locked sections.
 */
#include "priv.h"

#define SETTLE_BATCH	16u	/* parents that are looked for together */

/* In the table of parents, beside numbers of blocks */
#define NO_PARENT	HAWK_NONE		/* it needs none */
#define MISSING		(HAWK_NONE - 1)		/* it is not there */
#define ON_WAY		(HAWK_NONE - 2)		/* the search for its end has come by */

/* Blocks that have parents, and the hashes of those. */
struct settle_batch {
	u32 n;
	u32 nr[SETTLE_BATCH];
	u64 hash[SETTLE_BATCH];
};

/* Those of the next SETTLE_BATCH blocks from @at on. */
static void batch_gather(struct hawk_space *s, struct settle_batch *b, u32 *up, u32 at)
{
	u32 end = at + SETTLE_BATCH;
	const struct hawk_block *blk;

	b->n = 0;
	for (; at < end && at < s->max_blocks; at++) {
		blk = &s->block[at];
		up[at] = NO_PARENT;
		if (blk->state != HAWK_BLOCK_FLASH || !(blk->hint & HAWK_BH_PARENT))
			continue;
		b->hash[b->n] = hawk_index_hash(s, s->life[at].parent);
		b->nr[b->n++] = at;
	}
	hawk_index_prefetch(s, b->hash, b->n);
}

static void batch_find(struct hawk_space *s, const struct settle_batch *b, u32 *up)
{
	u32 i, nr;

	for (i = 0; i < b->n; i++) {
		nr = hawk_index_find(s, s->life[b->nr[i]].parent, b->hash[i]);
		up[b->nr[i]] = nr == HAWK_NONE ? MISSING : nr;
		if (nr != HAWK_NONE)
			hawk_ancestor_found(s, nr);
	}
}

/* The parent of each block, in batches: see restore.c. */
static void parents_find(struct hawk_space *s, u32 *up)
{
	u32 i, n = (s->max_blocks + SETTLE_BATCH - 1) / SETTLE_BATCH;
	struct settle_batch batch[2] = { 0 };

	for (i = 0; i <= n; i++) {
		struct settle_batch *next = &batch[i % 2];

		batch_gather(s, next, up, i * SETTLE_BATCH);
		batch_find(s, &batch[(i + 1) % 2], up);
		hawk_index_prefetch_first(s, next->hash, next->n);
		hawk_relax();
	}
}

/*
 * Follow the chain from @nr to its end and note that for all on it.  A chain that comes
 * back to itself has no beginning that could be found either.
 */
static void resolve(u32 *up, u32 nr, u32 *path)
{
	u32 n = 0, next;

	while (up[nr] < ON_WAY) {
		next = up[nr];
		path[n++] = nr;
		up[nr] = ON_WAY;
		nr = next;
	}
	next = up[nr] == NO_PARENT ? NO_PARENT : MISSING;
	while (n)
		up[path[--n]] = next;
}

/*
 * The first to go when room is needed.  Not sooner: its parent may be in a chunk that could
 * not be read just now, in a pool that is not added yet or beyond the quota; and if it is
 * gone for good, whoever computes it again has all that follows.
 */
static void demote(struct hawk_space *s, u32 nr)
{
	struct hawk_block *blk = &s->block[nr];
	u32 home = blk->home;

	hawk_lock(&s->bucket[home].lock);
	hawk_lru_del(s, blk);
	hawk_store(&blk->atime, 0);
	hawk_lru_restore(s, blk);
	hawk_unlock(&s->bucket[home].lock);
	s->found.no_parent++;
}

int hawk_space_settle(struct hawk_space *s)
{
	u32 i, n = s->max_blocks, *up, *path;

	if (!s->found.blocks)
		return 0;
	up = hawk_table_alloc(n, sizeof(*up));
	path = hawk_table_alloc(n, sizeof(*path));
	if (up && path) {
		parents_find(s, up);
		for (i = 0; i < n; i++) {
			resolve(up, i, path);
			hawk_relax();
		}
		for (i = 0; i < n; i++) {
			if (up[i] == MISSING)
				demote(s, i);
			hawk_relax();
		}
	}
	i = up && path;
	hawk_table_free(up, n, sizeof(*up));
	hawk_table_free(path, n, sizeof(*path));
	return i ? 0 : -ENOMEM;
}
