// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * keep.c - headers of blocks that a space keeps on a persistent flash tier
 *
 * A frame that holds the good copy of a block with a key has a generation; its header is to
 * be on flash.  Whenever a frame comes to have one, or loses it, its page of headers is
 * marked.  hawk_keep_collect() makes the whole page anew from what the blocks are now: so
 * nothing is queued that could overflow, nothing has to be read back, and what changed many
 * times is written once.
 *
 * The mark is set after the change and cleared before the blocks are looked at, so a change
 * is either seen or marks the page again.  A block that is written into a frame after the
 * look is not in the page, and one in the page may have left its frame before the page is on
 * flash: flashfmt.h tells why neither does harm.
 */
#include "admit.h"

#define PAGE_WORDS(pages)	(((pages) + 63) / 64)

/* Hints are the same bits on flash. */
_Static_assert(HAWK_BH_PARENT == 1 && HAWK_BH_TRANSIENT == 2 && HAWK_BH_PERSIST == 4 &&
	       HAWK_BH_TAIL == 8 && HAWK_BH_ROOT == 16, "hints are part of the format");

static u32 pages_of(const struct hawk_space *s, u32 tier)
{
	return s->win[tier].nslots * s->win[tier].keep->chunk_pages;
}

int hawk_keep_create(struct hawk_space *s, u32 tier)
{
	struct hawk_window *w = &s->win[tier];
	struct hawk_keep *k = hawk_table_alloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	w->keep = k;
	k->space = hawk_identity_hash(s->identity);
	k->chunk_pages = (s->frames_per_chunk + HAWK_PAGE_HEADERS - 1) / HAWK_PAGE_HEADERS;
	k->gen = hawk_table_alloc((size_t)w->nslots * s->frames_per_chunk, sizeof(*k->gen));
	k->dirty = hawk_table_alloc(PAGE_WORDS(pages_of(s, tier)), sizeof(*k->dirty));
	return k->gen && k->dirty ? hawk_ancestor_create(s) : -ENOMEM;
}

void hawk_keep_destroy(struct hawk_space *s, u32 tier)
{
	struct hawk_window *w = &s->win[tier];
	struct hawk_keep *k = w->keep;

	if (!k)
		return;
	hawk_table_free(k->gen, (size_t)w->nslots * s->frames_per_chunk, sizeof(*k->gen));
	hawk_table_free(k->dirty, PAGE_WORDS(pages_of(s, tier)), sizeof(*k->dirty));
	hawk_table_free(k, 1, sizeof(*k));
	w->keep = NULL;
}

bool hawk_space_kept(const struct hawk_space *s, u32 tier)
{
	return tier < HAWK_TIERS_MAX && s->win[tier].keep;
}

void hawk_keep_forget(struct hawk_space *s)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (s->win[t].keep)
			s->win[t].keep->forget = true;
}

/* ---- marks ---- */

static void set_dirty(struct hawk_keep *k, u32 page)
{
	u64 old, bit = 1ull << page % 64, *word = &k->dirty[page / 64];

	do
		old = hawk_load(word);
	while (!(old & bit) && !hawk_cas64(word, old, old | bit));
}

/* Its host is told once, until the next collecting begins: see there. */
static void mark(struct hawk_space *s, struct hawk_keep *k, u32 page)
{
	set_dirty(k, page);
	hawk_mb();
	if (hawk_load(&k->due))
		return;
	hawk_store_release(&k->due, 1);
	if (s->due)
		s->due(s->owner);
}

static bool unmark(struct hawk_keep *k, u32 page)
{
	u64 old, bit = 1ull << page % 64, *word = &k->dirty[page / 64];

	do
		old = hawk_load(word);
	while (old & bit && !hawk_cas64(word, old, old & ~bit));
	return old & bit;
}

/* The header of a frame is not what it should be. */
void hawk_keep_touch(struct hawk_space *s, u32 tier, u32 frame)
{
	struct hawk_keep *k = s->win[tier].keep;
	u32 fpc = s->frames_per_chunk;

	mark(s, k, frame / fpc * k->chunk_pages + frame % fpc / HAWK_PAGE_HEADERS);
}

/* A block has been written to its flash frame; its home is locked. */
void hawk_keep_wrote(struct hawk_space *s, struct hawk_block *blk)
{
	struct hawk_keep *k = s->win[blk->ftier].keep;

	if (!k || !(blk->flags & HAWK_BF_KEY))
		return;
	k->gen[blk->fframe] = hawk_pool_tick(s->engine->tier[blk->ftier].pool);
	hawk_keep_touch(s, blk->ftier, blk->fframe);
	hawk_ancestor_after(s, blk);
}

/* It has no key any more, or will leave its flash frame; its home is locked. */
void hawk_keep_lost(struct hawk_space *s, const struct hawk_block *blk)
{
	struct hawk_keep *k = s->win[blk->ftier].keep;

	if (!k || !k->gen[blk->fframe])
		return;
	k->gen[blk->fframe] = 0;
	hawk_keep_touch(s, blk->ftier, blk->fframe);
}

bool hawk_keep_due(struct hawk_space *s, u32 tier)
{
	const struct hawk_keep *k = tier < HAWK_TIERS_MAX ? s->win[tier].keep : NULL;

	return k && (hawk_load_acquire(&k->due) || hawk_load_acquire(&k->again));
}

void hawk_keep_again(struct hawk_space *s, u32 tier, u32 nr)
{
	struct hawk_keep *k = s->win[tier].keep;

	set_dirty(k, nr);
	hawk_store_release(&k->again, 1);	/* with the next ones: the drive may fail for long */
	hawk_admit_refund(&s->engine->tier[tier], HAWK_POOL_PAGE);
}

/* ---- pages ---- */

static void header_fill(struct hawk_space *s, const struct hawk_block *blk, u64 gen,
			struct hawk_header *h)
{
	u64 lid = s->map[blk->maps].lid;

	h->gen = gen;
	h->space = s->win[blk->ftier].keep->space;
	h->model_id = s->identity->model_id;
	h->tok = hawk_lid_tok(lid);
	h->layer = hawk_lid_layer(lid);
	h->head = hawk_lid_head(lid);
	h->bytes = s->block_bytes;
	h->crc = blk->crc;
	h->hints = blk->hint & HAWK_BH_TOLD;
	h->turn = blk->turn;
	memcpy(h->key, hawk_block_key(s, blk), HAWK_KEY_BYTES);
	memset(h->parent, 0, HAWK_KEY_BYTES);
	if (blk->hint & HAWK_BH_PARENT)
		memcpy(h->parent, s->life[hawk_block_nr(s, blk)].parent, HAWK_KEY_BYTES);
}

/* What the header of a frame should say.  Return: false: nothing. */
static bool frame_header(struct hawk_space *s, u32 tier, u32 frame, struct hawk_header *h)
{
	struct hawk_frame *f = &s->win[tier].frame[frame];
	u32 nr = hawk_load_acquire(&f->block), home;	/* pairs with frame_take() */
	struct hawk_block *blk;
	bool ok;

	if (nr & HAWK_FRAME_FREE)
		return false;	/* or in somebody's hands, who marks it */
	blk = &s->block[nr];
	home = hawk_load(&blk->home);
	hawk_lock(&s->bucket[home].lock);
	ok = hawk_load(&f->block) == nr && hawk_load(&blk->home) == home &&
	     blk->ftier == tier && blk->fframe == frame && s->win[tier].keep->gen[frame] &&
	     (blk->flags & HAWK_BF_KEY) && (blk->flags & HAWK_BF_FLASH) &&
	     blk->maps != HAWK_NONE;
	if (ok)
		header_fill(s, blk, s->win[tier].keep->gen[frame], h);
	hawk_unlock(&s->bucket[home].lock);
	return ok;
}

/* Return: false: the slot of the page has no chunk. */
static bool page_make(struct hawk_space *s, u32 tier, u32 nr, u8 *buf, u64 *off)
{
	struct hawk_window *w = &s->win[tier];
	struct hawk_pool *p = s->engine->tier[tier].pool;
	u32 slot = nr / w->keep->chunk_pages, part = nr % w->keep->chunk_pages;
	u32 i, at, chunk = hawk_slot_chunk(w, slot);
	u64 epoch;

	if (chunk == HAWK_NONE)
		return false;
	epoch = hawk_load(&p->chunk[chunk].epoch);
	*off = p->header_off + (u64)part * HAWK_POOL_PAGE +
	       (u64)chunk * (HAWK_CHUNK_BYTES / p->slot_bytes) * HAWK_HEADER_BYTES;
	memset(buf, 0, HAWK_POOL_PAGE);
	for (i = 0; i < HAWK_PAGE_HEADERS; i++) {
		struct hawk_header h = { .epoch = epoch };

		at = part * HAWK_PAGE_HEADERS + i;
		h.slot = at;
		if (at < s->frames_per_chunk &&
		    frame_header(s, tier, slot * s->frames_per_chunk + at, &h))
			hawk_header_encode(&h, p->id, buf + i * HAWK_HEADER_BYTES);
	}
	/* if the chunk went and another came to the slot, some of it is of that one */
	hawk_rmb();
	if (hawk_slot_chunk(w, slot) == chunk && hawk_load(&p->chunk[chunk].epoch) == epoch)
		return true;
	mark(s, w->keep, nr);
	return false;
}

/* ---- collecting ---- */

u32 hawk_keep_collect(struct hawk_space *s, u32 tier, u32 *cursor, u8 *buf,
		      struct hawk_keep_page *page, u32 max)
{
	struct hawk_keep *k = tier < HAWK_TIERS_MAX ? s->win[tier].keep : NULL;
	u32 n = 0, nr, end;

	if (!k)
		return 0;
	if (!*cursor) {
		hawk_store(&k->due, 0);
		hawk_store(&k->again, 0);
		hawk_mb();	/* who marks a page that is not seen below sees that */
	}
	end = pages_of(s, tier);
	for (nr = *cursor; nr < end && n < max; nr++) {
		if (!hawk_load(&k->dirty[nr / 64])) {
			nr |= 63;
			continue;
		}
		if (!unmark(k, nr))
			continue;
		page[n].nr = nr;
		if (page_make(s, tier, nr, buf + (size_t)n * HAWK_POOL_PAGE, &page[n].off))
			n++;
		hawk_relax();
	}
	*cursor = nr;
	if (n)
		hawk_admit_charge(&s->engine->tier[tier], (u64)n * HAWK_POOL_PAGE);
	return n;
}
