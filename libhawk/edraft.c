// SPDX-License-Identifier: MIT
/*
 * edraft.c - draft rings of the embedded backend: memory, as the kernel's
 */
#include <sys/mman.h>

#include "embed.h"

int embed_draft_open(struct hawk_kv *base, struct hawk_draft_open *o, void **mem)
{
	struct ekv *kv = to_ekv(base);
	const struct hawk_space_create *geo = &kv->sp->geo;
	struct hawk_draft_layout l = {
		.block_bytes = geo->block_bytes,
		.block_tokens = geo->block_tokens,
		.layers = geo->layers,
		.head_groups = kv->base.heads,
		.slots = o->slots,
	};
	struct hawk_draft *page;
	int ret = hawk_draft_layout(&l);

	if (ret)
		return hawk_fail(ret, "a draft ring of %u slots", o->slots);
	if (__atomic_add_fetch(&kv->drafts, 1, __ATOMIC_RELAXED) > HAWK_DRAFTS_MAX) {
		ret = hawk_fail(-ENOSPC, "more than %u draft rings", HAWK_DRAFTS_MAX);
		goto err_uncount;
	}
	page = mmap(NULL, l.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		ret = hawk_fail(-ENOMEM, "a draft ring of %u slots", l.slots);
		goto err_uncount;
	}
	if (o->seq != HAWK_DRAFT_NO_SEQ) {
		ret = hawk_draft_bind(kv->sp->space, o->seq, &page->head);
		if (ret) {
			hawk_fail(ret, "a draft ring of sequence %#x", o->seq);
			munmap(page, l.bytes);
			goto err_uncount;
		}
	}
	page->slots = l.slots;
	o->slots = l.slots;
	o->row_blocks = l.row_blocks;
	o->bytes = l.bytes;
	*mem = page;
	return 0;

err_uncount:
	__atomic_sub_fetch(&kv->drafts, 1, __ATOMIC_RELAXED);
	return ret;
}

void embed_draft_close(struct hawk_kv *base, const struct hawk_draft_open *o, void *mem)
{
	struct ekv *kv = to_ekv(base);
	struct hawk_draft *page = mem;

	if (o->seq != HAWK_DRAFT_NO_SEQ)
		hawk_draft_unbind(kv->sp->space, o->seq, &page->head);
	munmap(mem, o->bytes);
	__atomic_sub_fetch(&kv->drafts, 1, __ATOMIC_RELAXED);
}
