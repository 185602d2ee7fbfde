// SPDX-License-Identifier: MIT
/*
 * core_check.c - hawk_space_check() sees what is broken
 *
 * All other tests of the engine lean on it, so each of its findings is provoked: one
 * value of a sound space is spoilt, the check must say what is wrong, and be content
 * again when the value is back.
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(1, 0, 0, (n) * 16)
#define HOST	0
#define FLASH	1

struct fix {
	struct host h;
	struct hawk_space *s;
	struct hawk_bucket *b;
	/* a block in every state, and one that is clean */
	struct hawk_block *free, *filling, *ready, *clean, *evicting, *flash, *reloading, *dying;
};

static struct hawk_block *block(struct fix *f, u32 n, u32 state)
{
	struct hawk_ref ref;
	u64 vt;

	assert_int_equal(hawk_block_ref(f->s, LID(n), &vt, &ref), 0);
	assert_int_equal(f->s->block[ref.block].state, state);
	return &f->s->block[ref.block];
}

static void write_ahead(struct fix *f, u32 n)
{
	assert_int_equal(host_space_writeback(f->s, HOST, 1024, host_plan(&f->h, n)), n);
	host_submit(&f->h);
}

static int setup(void **state)
{
	struct fix *f = test_calloc(1, sizeof(*f));
	struct hawk_space_params p = {
		.block_bytes = 256 << 10, .block_tokens = 16, .max_blocks = 16, .buckets = 1,
	};
	u8 key[HAWK_KEY_BYTES];
	u64 vt;
	u32 i;

	host_init(&f->h, 1);
	p.quota_max[host_tier(&f->h, HAWK_TIER_HOST, 1)] = 1;
	p.quota_max[host_tier(&f->h, HAWK_TIER_BLK, 1)] = 1;
	f->s = host_space(&f->h, &p);
	f->b = &f->s->bucket[0];
	for (i = 0; i < 8; i++)
		assert_int_equal(host_fill(&f->h, f->s, LID(i), host_key(key, i), i, i), 0);
	write_ahead(f, 3);
	host_drain(&f->h);
	/* 0 gives its frame to 8, 1 to the reload of 0 */
	assert_int_equal(host_block_alloc(f->s, LID(8), NULL, HOST, 9, NULL, &vt), 0);
	assert_int_equal(host_block_reload(f->s, LID(0), HOST, 10, host_plan(&f->h, 1)),
			 -EINPROGRESS);
	host_submit(&f->h);
	write_ahead(f, 2);
	f->reloading = block(f, 0, HAWK_BLOCK_RELOADING);
	f->flash = block(f, 1, HAWK_BLOCK_FLASH);
	f->clean = block(f, 2, HAWK_BLOCK_READY);
	f->evicting = block(f, 3, HAWK_BLOCK_EVICTING);
	f->dying = block(f, 4, HAWK_BLOCK_EVICTING);
	f->ready = block(f, 5, HAWK_BLOCK_READY);
	f->filling = block(f, 8, HAWK_BLOCK_FILLING);
	assert_int_equal(hawk_block_free(f->s, LID(4)), 0);
	assert_int_equal(f->dying->state, HAWK_BLOCK_DYING);
	f->free = &f->s->block[f->b->fl[HAWK_RES_BLOCK].head];
	host_check(f->s);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fix *f = *state;

	host_space_end(&f->h, f->s);
	host_fini(&f->h);
	test_free(f);
	return 0;
}

static void found(struct fix *f, const char *want)
{
	char why[80] = "", cut[8];

	assert_int_equal(hawk_space_check(f->s, why, sizeof(why)), -EUCLEAN);
	assert_string_equal(why, want);
	/* the text is cut to the room there is */
	assert_int_equal(hawk_space_check(f->s, cut, sizeof(cut)), -EUCLEAN);
	assert_memory_equal(cut, want, sizeof(cut) - 1);
	assert_int_equal(cut[sizeof(cut) - 1], 0);
	assert_int_equal(hawk_space_check(f->s, NULL, 0), -EUCLEAN);
}

#define SPOIL(lvalue, value, want)		\
	do {					\
		__typeof__(lvalue) old_ = (lvalue);	\
		(lvalue) = (value);		\
		found(f, want);			\
		(lvalue) = old_;		\
		host_check(f->s);		\
	} while (0)

static void frames(void **state)
{
	struct fix *f = *state;
	struct hawk_frame *host = f->s->win[HOST].frame, *flash = f->s->win[FLASH].frame;
	struct hawk_freelist *fl = &f->b->fl[FLASH];

	assert_in_range(fl->n, 2, 7);
	SPOIL(fl->head, 8, "free frame outside the owned chunks");
	SPOIL(flash[fl->head].block, 1, "free frame is not where it says");
	SPOIL(flash[fl->head].next, fl->head, "free frame is not where it says");
	SPOIL(flash[fl->head].prev, fl->head, "free frame is not where it says");
	SPOIL(fl->n, fl->n + 1, "free frames miscounted");
	SPOIL(host[f->ready->hframe].block, 16, "frame of no block");
	SPOIL(host[f->ready->hframe].block, f->clean - f->s->block,
	      "frame's block does not know it");
	SPOIL(f->ready->hframe, f->clean->hframe, "frame's block does not know it");
	SPOIL(host[f->ready->hframe].block, HAWK_NONE, "frames lost or listed twice");
}

/* Chunks and slots, and what is kept back. */
static void windows(void **state)
{
	struct fix *f = *state;
	struct hawk_window *w = &f->s->win[HOST];
	struct hawk_tier *t = &f->h.e->tier[HOST];
	struct hawk_freelist *fl = &f->b->fl[FLASH];
	struct hawk_frame *spare = &f->s->win[FLASH].frame[fl->head];

	SPOIL(w->owned, 0, "slots miscounted");
	SPOIL(w->slot[0], HAWK_SLOT_FREE | HAWK_SLOT_END, "slots miscounted");
	SPOIL(w->free_slot, 0, "list of free slots broken");
	SPOIL(w->drain, 1, "drain of a slot without a chunk");
	SPOIL(w->quota_min, 2, "minimum or claim not kept back");
	SPOIL(w->claims, 1, "minimum or claim not kept back");
	SPOIL(w->quota_max, 0, "part in a tier without a quota");
	SPOIL(t->chunk[w->slot[0]].state, HAWK_CHUNK_FREE, "chunk of a slot is not owned");
	/* a frame that nobody has and nobody lists */
	SPOIL(spare->next, HAWK_PARKED, "free frame outside the owned chunks");
	SPOIL(f->s->win[HOST].frame[f->ready->hframe].block, HAWK_FRAME_FREE,
	      "frames lost or listed twice");
}

/* A block that is not what its state says. */
static void places(void **state)
{
	struct fix *f = *state;

	SPOIL(f->free->hframe, 0, "free block holds something");
	SPOIL(f->free->flags, HAWK_BF_KEY, "free block holds something");
	SPOIL(f->free->state, HAWK_BLOCK_READY, "resident block without host frame");
	SPOIL(f->free->state, HAWK_BLOCK_FLASH,
	      "flash block without flash copy, or with a host frame");
	SPOIL(f->clean->state, HAWK_BLOCK_FLASH,
	      "flash block without flash copy, or with a host frame");
	SPOIL(f->reloading->flags, f->reloading->flags & ~HAWK_BF_MOVING,
	      "reloading block without frames or move");
	SPOIL(f->evicting->flags, f->evicting->flags & ~HAWK_BF_MOVING,
	      "evicting block without flash frame or move");
	SPOIL(f->ready->flags, f->ready->flags | HAWK_BF_FLASH, "flash copy without frame");
	SPOIL(f->flash->pins, 1, "pinned block is not in a host frame");
	SPOIL(f->filling->pins, 0, "filling block without owner");
	SPOIL(f->ready->flags, f->ready->flags & ~HAWK_BF_LRU,
	      "block on an LRU list that should not be, or missing");
	SPOIL(f->ready->pins, 1, "block on an LRU list that should not be, or missing");
	SPOIL(f->evicting->flags, f->evicting->flags | HAWK_BF_LRU,
	      "block on an LRU list that should not be, or missing");
}

static void two_claim_a_frame(void **state)
{
	struct fix *f = *state;

	f->free->htier = HOST;
	f->free->hframe = f->ready->hframe;
	f->free->state = HAWK_BLOCK_READY;
	found(f, "host frame is another's");
	f->free->hframe = HAWK_NONE;
	f->free->ftier = FLASH;
	f->free->fframe = f->flash->fframe;
	f->free->state = HAWK_BLOCK_FLASH;
	found(f, "flash frame is another's");
	f->free->fframe = HAWK_NONE;
	f->free->state = HAWK_BLOCK_FREE;
	host_check(f->s);
}

static struct hawk_vtlb_entry *entry(struct fix *f, u64 lid)
{
	u32 i;

	for (i = 0; i <= f->s->vtlb_mask * HAWK_VT_WAYS; i++)
		if (f->s->vtlb[i].lid == lid)
			return &f->s->vtlb[i];
	fail_msg("LID is not in the vTLB");
	return NULL;
}

static void names(void **state)
{
	struct fix *f = *state;
	struct hawk_map *m = &f->s->map[f->ready->maps];
	u32 *head = f->s->key_head, *lids = f->s->head;

	SPOIL(m->block, 0, "LID of another block");
	SPOIL(entry(f, LID(5))->val, entry(f, LID(6))->val, "vTLB disagrees with the block");
	SPOIL(entry(f, LID(4))->val, entry(f, LID(6))->val, "vTLB disagrees with the block");
	SPOIL(f->ready->nmaps, 2, "LIDs miscounted");
	SPOIL(f->ready->maps, HAWK_NONE, "LIDs miscounted");
	SPOIL(m->way, m->way ^ 1, "vTLB disagrees with the block");
	SPOIL(m->way, HAWK_NONE, "vTLB disagrees with the block");
	SPOIL(m->next, f->ready->maps, "LID chain broken");
	SPOIL(m->prev, f->ready->maps, "LID chain broken");
	SPOIL(m->chain, m->chain ^ 1, "LID chain broken");
	SPOIL(f->ready->flags, f->ready->flags & ~HAWK_BF_KEY, "key chain broken");
	SPOIL(f->ready->key_next, f->ready - f->s->block, "key chain broken");
	while (*lids == HAWK_NONE)
		lids++;
	SPOIL(*lids, HAWK_NONE, "LIDs or keys miscounted");
	while (*head == HAWK_NONE)
		head++;
	SPOIL(*head, HAWK_NONE, "LIDs or keys miscounted");
}

static void slots(void **state)
{
	struct fix *f = *state;
	struct hawk_freelist *blocks = &f->b->fl[HAWK_RES_BLOCK], *maps = &f->b->fl[HAWK_RES_MAP];
	u32 nr;

	SPOIL(blocks->head, f->ready - f->s->block, "free block slots broken");
	SPOIL(blocks->n, blocks->n - 1, "free block slots miscounted");
	SPOIL(f->s->map[maps->head].next, maps->head, "loop in free LID slots");
	SPOIL(maps->n, maps->n + 1, "free LID slots miscounted");
	SPOIL(f->b->moving[HOST], f->b->moving[HOST] - 1, "moves in flight miscounted");
	hawk_lock(&f->b->lock);
	nr = hawk_res_pop(f->s, f->b, HAWK_RES_BLOCK);
	found(f, "block or LID slots lost");
	hawk_res_push(f->s, f->b, HAWK_RES_BLOCK, nr);
	nr = hawk_res_pop(f->s, f->b, HAWK_RES_MAP);
	found(f, "block or LID slots lost");
	hawk_res_push(f->s, f->b, HAWK_RES_MAP, nr);
	hawk_unlock(&f->b->lock);
}

static void lists_and_gauges(void **state)
{
	struct fix *f = *state;
	struct hawk_lru *l = &f->b->lru[HOST];
	u32 i;

	SPOIL(f->ready->lru_prev, f->ready - f->s->block, "LRU list broken");
	SPOIL(f->ready->lru_next, f->ready - f->s->block, "LRU list broken");
	SPOIL(l->mru, f->flash - f->s->block, "LRU list broken");
	SPOIL(l->n, l->n + 1, "LRU list miscounted");
	SPOIL(l->lru, HAWK_NONE, "LRU list miscounted");
	SPOIL(f->b->clean[HOST], 0, "LRU list miscounted");
	for (i = 0; i <= HAWK_N_PINNED; i++)
		SPOIL(f->b->count[i], f->b->count[i] + 1, "gauges do not add up");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames, setup, teardown),
		cmocka_unit_test_setup_teardown(windows, setup, teardown),
		cmocka_unit_test_setup_teardown(places, setup, teardown),
		cmocka_unit_test_setup_teardown(two_claim_a_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(slots, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_and_gauges, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
