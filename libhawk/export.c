// SPDX-License-Identifier: MIT
/*
 * export.c - blocks for others: dma-bufs, places of frames, and copies of what the CPU
 * cannot reach
 *
 * A dma-buf of blocks is the kernel's: the embedded backend has none.
 */
#include <errno.h>
#include <string.h>

#include "priv.h"

static int no_dmabuf(void)
{
	return hawk_fail(-EOPNOTSUPP, "the embedded backend has no dma-buf; open dev:/dev/hawk");
}

int hawk_export_blocks(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, uint32_t flags,
		       struct hawk_export *x)
{
	*x = (struct hawk_export){
		.size = sizeof(*x), .flags = flags, .count = n, .items = (uintptr_t)it, .fd = -1,
	};
	if (!kv->h->ops->export_blocks)
		return no_dmabuf();
	if (!n)
		return hawk_fail(-EINVAL, "exporting no block");
	if (n > HAWK_BATCH_MAX)
		return hawk_fail(-E2BIG, "exporting %u blocks: at most %u", n, HAWK_BATCH_MAX);
	return kv->h->ops->export_blocks(kv, x);
}

int hawk_export_end(struct hawk_kv *kv, uint64_t export_id, uint64_t deadline_ns)
{
	struct hawk_export_revoke r = {
		.size = sizeof(r), .export_id = export_id, .deadline_ns = deadline_ns,
	};

	if (!kv->h->ops->export_end)
		return no_dmabuf();
	return kv->h->ops->export_end(kv, &r);
}

int hawk_frame_where(struct hawk_kv *kv, uint64_t vt, struct hawk_frame_info *info)
{
	*info = (struct hawk_frame_info){
		.size = sizeof(*info), .tier = HAWK_VT_TIER(vt), .frame = HAWK_VT_FRAME(vt),
	};
	if (!kv->h->ops->frame_info)
		return hawk_fail(-EOPNOTSUPP, "frames of the embedded backend are no device's");
	return kv->h->ops->frame_info(kv, info);
}

static int copy(struct hawk_kv *kv, uint64_t vt, uint32_t off, void *mem, uint32_t bytes, bool in)
{
	uint8_t *p = hawk_addr(kv, vt);

	if (!(vt & HAWK_VT_VALID) || !bytes || off >= kv->block_bytes ||
	    bytes > kv->block_bytes - off)
		return hawk_fail(-EINVAL, "copying %u bytes at %u of a block of %u", bytes, off,
				 kv->block_bytes);
	if (p) {
		memcpy(in ? p + off : mem, in ? mem : p + off, bytes);
		return 0;
	}
	if (!kv->h->ops->block_copy)
		return hawk_fail(-EOPNOTSUPP, "copying a block: tier %u is another driver's",
				 (unsigned int)HAWK_VT_TIER(vt));
	return kv->h->ops->block_copy(kv, vt, off, mem, bytes, in);
}

int hawk_copy_in(struct hawk_kv *kv, uint64_t vt, uint32_t off, const void *src, uint32_t bytes)
{
	return copy(kv, vt, off, (void *)(uintptr_t)src, bytes, true);
}

int hawk_copy_out(struct hawk_kv *kv, uint64_t vt, uint32_t off, void *dst, uint32_t bytes)
{
	return copy(kv, vt, off, dst, bytes, false);
}
