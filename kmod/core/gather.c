// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * gather.c - many rows, each block once: union, order, merge, remap
 *
 *	rows			LIDs as the lists name them, some more than once
 *	 sorted by LID		each LID is looked up once
 *	 sorted by block	other LIDs of the same block fall together
 *	 sorted by place	tier and byte offset: the order of the buffer; neighbours
 *				there are one transfer (hawk_gather_run())
 *
 * A row knows its LID's entry of hawk_gather_set.blk, that entry the first one of the
 * same block, and that one its place in the buffer.
 *
 * Sorting is by heap: in place, without recursion, and no order of keys that a client
 * could choose makes it slower.
 */
#include "gather.h"
#include "priv.h"

static bool less(const struct hawk_gather_key *a, const struct hawk_gather_key *b)
{
	return a->key < b->key || (a->key == b->key && a->row < b->row);
}

static void swap_keys(struct hawk_gather_key *a, struct hawk_gather_key *b)
{
	struct hawk_gather_key tmp = *a;

	*a = *b;
	*b = tmp;
}

/* Let entry @i of a heap of @n sink to where none below it is larger. */
static void sink(struct hawk_gather_key *k, u32 i, u32 n)
{
	u32 child;

	for (; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && less(&k[child], &k[child + 1]))
			child++;
		if (!less(&k[i], &k[child]))
			return;
		swap_keys(&k[i], &k[child]);
	}
}

static void sort_keys(struct hawk_gather_key *k, u32 n)
{
	u32 i;

	for (i = n / 2; i--;)
		sink(k, i, n);
	for (i = n; i > 1;) {
		swap_keys(&k[0], &k[--i]);
		sink(k, 0, i);
	}
}

u32 hawk_gather_union(struct hawk_gather_key *k, u32 n)
{
	u32 i, at = 0;

	sort_keys(k, n);
	for (i = 0; i < n; i++) {
		at += i && k[i].key != k[i - 1].key;
		k[i].at = at;
	}
	return n ? at + 1 : 0;
}

u32 hawk_gather_run(const struct hawk_gather_key *k, u32 at, u32 n, u32 step, u32 max)
{
	u32 i = at + 1;

	while (i < n && i - at < max && k[i].key == k[i - 1].key + step)
		i++;
	return i - at;
}

/* Each LID once.  remap[] of a row becomes its entry of blk[].  Return: LIDs. */
static u32 unite_lids(struct hawk_space *s, struct hawk_gather_set *g)
{
	u32 i, n;

	for (i = 0; i < g->rows; i++)
		g->key[i] = (struct hawk_gather_key) {
			.key = hawk_lid_block(g->lid[i], s->block_tokens),
			.row = i,
		};
	n = hawk_gather_union(g->key, g->rows);
	for (i = 0; i < g->rows; i++) {
		g->remap[g->key[i].row] = g->key[i].at;
		g->blk[g->key[i].at].lid = g->key[i].key;
	}
	return n;
}

/* Look each LID up.  key[] becomes those found, by block.  Return: how many. */
static u32 find_blocks(struct hawk_space *s, struct hawk_gather_set *g, u32 lids, u64 now)
{
	struct hawk_gather_block *b;
	u32 i, n = 0;

	for (i = 0; i < lids; i++) {
		b = &g->blk[i];
		b->same = i;
		b->at = HAWK_NONE;
		b->status = hawk_block_read(s, b->lid, now, &b->read);
		b->done = !!b->status;
		if (!b->status)
			g->key[n++] = (struct hawk_gather_key) {
				.key = b->read.ref.block,
				.row = i,
			};
		if (!(i % 64))
			hawk_relax();
	}
	return n;
}

/* Each block once.  key[] becomes their places.  Return: how many. */
static u32 unite_blocks(struct hawk_space *s, struct hawk_gather_set *g, u32 found)
{
	u32 i, row, first = HAWK_NONE, n = 0;
	struct hawk_gather_block *b;
	u64 tier;

	hawk_gather_union(g->key, found);
	for (i = 0; i < found; i++) {
		row = g->key[i].row;
		b = &g->blk[row];
		/* both are kept, so it is one life of the block */
		if (first != HAWK_NONE && g->blk[first].read.ref.block == b->read.ref.block) {
			b->same = first;
			hawk_block_read_end(s, &b->read, false);
			continue;
		}
		first = row;
		tier = HAWK_VT_TIER(b->read.vt);
		g->key[n++] = (struct hawk_gather_key) {
			.key = tier << HAWK_GATHER_TIER_SHIFT | b->read.off,
			.row = row,
		};
	}
	hawk_gather_union(g->key, n);
	return n;
}

void hawk_gather_open(struct hawk_space *s, struct hawk_gather_set *g, u64 now)
{
	struct hawk_gather_block *b;
	u32 i, n;

	n = find_blocks(s, g, unite_lids(s, g), now);
	n = unite_blocks(s, g, n);
	for (i = 0; i < n; i++) {
		b = hawk_gather_at(g, i);
		if (i < g->room) {
			b->at = i;
			continue;
		}
		hawk_block_read_end(s, &b->read, false);
		b->status = -ENOSPC;
		b->done = true;
	}
	g->n = n < g->room ? n : g->room;
}

void hawk_gather_done(struct hawk_space *s, struct hawk_gather_set *g, u32 at, s32 status,
		      bool bad)
{
	struct hawk_gather_block *b = hawk_gather_at(g, at);

	hawk_block_read_end(s, &b->read, bad);
	b->status = status;
	hawk_store_release(&b->done, 1);	/* pairs with row_status() */
}

static s32 row_status(const struct hawk_gather_block *b, s32 undone)
{
	return hawk_load_acquire(&b->done) ? b->status : undone;
}

u32 hawk_gather_results(struct hawk_gather_set *g, s32 undone, u32 *busy)
{
	const struct hawk_gather_block *b;
	u32 i, ok = 0;

	*busy = 0;
	for (i = 0; i < g->n; i++)
		*busy += !hawk_load_acquire(&hawk_gather_at(g, i)->done);
	for (i = 0; i < g->rows; i++) {
		b = &g->blk[g->remap[i]];
		b = &g->blk[b->same];
		g->status[i] = row_status(b, undone);
		ok += !g->status[i];
		g->remap[i] = !g->status[i] || g->status[i] == -EINPROGRESS ? b->at : HAWK_NONE;
	}
	return ok;
}
