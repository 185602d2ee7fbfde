// SPDX-License-Identifier: MIT
/*
 * draft.c - rings of draft slots: accept and reject without a system call
 *
 * Counters lie in the mapped page, where the kernel can see head; all else that is
 * used here lies in the handle.  Token number i has slot i % slots; slots are whole
 * rows of block_tokens, so a run of tokens is copied in pieces that end where a
 * block of either side ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "priv.h"

/**
 * struct hawk_drafts - an open ring
 * @kv: its space
 * @page: the mapped memory, counters first
 * @rows: the slots' blocks
 * @o: as it was opened
 * @slots: of the ring
 * @block_tokens: tokens of a block
 * @block_bytes: bytes of a block
 * @row_blocks: blocks that hold the same tokens
 * @planes: planes of a block
 * @token_bytes: bytes of a token in one plane
 */
struct hawk_drafts {
	struct hawk_kv *kv;
	struct hawk_draft *page;
	uint8_t *rows;
	struct hawk_draft_open o;
	uint32_t slots;
	uint32_t block_tokens;
	uint32_t block_bytes;
	uint32_t row_blocks;
	uint32_t planes;
	uint32_t token_bytes;
};

/* The layout of a block is the space's if the caller leaves it out. */
static int take_layout(struct hawk_kv *kv, struct hawk_draft_params *p)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	int ret;

	if (p->planes || p->token_bytes)
		return 0;
	ret = kv->h->ops->kv_info(kv, &info);
	p->planes = info.planes;
	p->token_bytes = info.token_bytes;
	return ret;
}

static int check_params(struct hawk_kv *kv, struct hawk_draft_params *p)
{
	int ret = take_layout(kv, p);
	uint64_t row;

	if (ret)
		return ret;
	if (!p->planes && !p->token_bytes)
		return hawk_fail(-EINVAL, "draft ring: the space was made without planes and token_bytes");
	if (!p->slots || !p->planes || !p->token_bytes)
		return hawk_fail(-EINVAL, "draft ring: slots, planes and token_bytes are 1 or more");
	row = (uint64_t)kv->block_tokens * p->token_bytes;
	if (row > kv->block_bytes || p->planes > kv->block_bytes / row)
		return hawk_fail(-EINVAL, "draft ring: %u planes of %u tokens of %u bytes are more than a block of %u bytes",
				 p->planes, kv->block_tokens, p->token_bytes, kv->block_bytes);
	return 0;
}

int hawk_draft_open(struct hawk_kv *kv, const struct hawk_draft_params *p,
		    struct hawk_drafts **dp)
{
	struct hawk_draft_open o = {
		.size = sizeof(o), .seq = p->seq ? p->seq : HAWK_DRAFT_NO_SEQ, .slots = p->slots,
	};
	struct hawk_draft_params layout = *p;
	struct hawk_drafts *d;
	void *mem;
	int ret;

	*dp = NULL;
	ret = check_params(kv, &layout);
	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));
	if (!d)
		return hawk_fail(-ENOMEM, "draft ring");
	ret = kv->h->ops->draft_open(kv, &o, &mem);
	if (ret) {
		free(d);
		return ret;
	}
	*d = (struct hawk_drafts) {
		.kv = kv,
		.page = mem,
		.rows = (uint8_t *)mem + HAWK_DRAFT_SLOTS_AT,
		.o = o,
		.slots = o.slots,
		.block_tokens = kv->block_tokens,
		.block_bytes = kv->block_bytes,
		.row_blocks = o.row_blocks,
		.planes = layout.planes,
		.token_bytes = layout.token_bytes,
	};
	*dp = d;
	return 0;
}

void hawk_draft_close(struct hawk_drafts *d)
{
	if (!d)
		return;
	d->kv->h->ops->draft_close(d->kv, &d->o, d->page);
	free(d);
}

uint32_t hawk_draft_slots(const struct hawk_drafts *d)
{
	return d->slots;
}

void *hawk_draft_block(const struct hawk_drafts *d, uint32_t row, uint32_t index)
{
	return d->rows + ((uint64_t)row * d->row_blocks + index) * d->block_bytes;
}

uint64_t hawk_draft_head(const struct hawk_drafts *d)
{
	return __atomic_load_n(&d->page->head, __ATOMIC_RELAXED);
}

static uint64_t tail(const struct hawk_drafts *d)
{
	return __atomic_load_n(&d->page->tail, __ATOMIC_RELAXED);
}

static void set_tail(struct hawk_drafts *d, uint64_t to)
{
	__atomic_store_n(&d->page->tail, to, __ATOMIC_RELAXED);
}

int hawk_draft_slot(struct hawk_drafts *d)
{
	uint64_t t = tail(d);

	if (t - hawk_draft_head(d) >= d->slots)
		return -ENOSPC;
	set_tail(d, t + 1);
	return (int)(t % d->slots);
}

/* @n tokens of one block: from slot @a of the ring's to token @b of the other. */
static void copy_block(const struct hawk_drafts *d, const uint8_t *ring, uint32_t a,
		       uint8_t *block, uint32_t b, uint32_t n)
{
	size_t plane = (size_t)d->block_tokens * d->token_bytes, i;

	ring += (size_t)a * d->token_bytes;
	block += (size_t)b * d->token_bytes;
	for (i = 0; i < d->planes; i++, ring += plane, block += plane)
		memcpy(block, ring, (size_t)n * d->token_bytes);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* @n tokens, from slot @slot on to token @tok of @blocks and on. */
static void copy_tokens(const struct hawk_drafts *d, uint32_t slot, void *const *blocks,
			uint64_t tok, uint32_t n)
{
	uint32_t bt = d->block_tokens, m, i;

	for (; n; n -= m, tok += m, slot = (slot + m) % d->slots) {
		m = least(n, least(bt - slot % bt, bt - (uint32_t)(tok % bt)));
		for (i = 0; i < d->row_blocks; i++)
			copy_block(d, hawk_draft_block(d, slot / bt, i), slot % bt,
				   blocks[tok / bt * d->row_blocks + i], (uint32_t)(tok % bt), m);
	}
}

int hawk_draft_accept(struct hawk_drafts *d, uint32_t n, void *const *blocks, uint32_t tok)
{
	uint64_t head = hawk_draft_head(d);

	if (n > d->slots || n > tail(d) - head)
		return -EINVAL;
	copy_tokens(d, (uint32_t)(head % d->slots), blocks, tok, n);
	/* they are where they are to stay, for whoever sees this */
	__atomic_store_n(&d->page->head, head + n, __ATOMIC_RELEASE);
	set_tail(d, head + n);
	return 0;
}

void hawk_draft_reject(struct hawk_drafts *d)
{
	set_tail(d, hawk_draft_head(d));
}
