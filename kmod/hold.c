// SPDX-License-Identifier: GPL-2.0
/*
 * hold.c - a client's blocks for a command of the device whose memory they are in
 *
 * A provider's own interface to clients (an NPU's, say) takes names of blocks, never
 * places: what a name means is found out here, in the space of a file of /dev/hawk that
 * the caller has, so a client reaches the blocks of that space and no others.  Blocks are
 * pinned for the time of the command, so their frames are nobody else's meanwhile.
 */
#include "hawk.h"

#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

/* Return: 0, or what hawk_provider_hold() tells. */
static int hawk_hold_space(struct hawk_provider_hold *h, bool write)
{
	struct hawk_file *f;

	if (h->file->f_op != &hawk_fops)
		return -EBADF;
	if (!(h->file->f_mode & FMODE_READ))
		return -EACCES;
	f = h->file->private_data;
	if (!hawk_file_as(f))
		return -ENXIO;
	return write && !f->writable ? -EACCES : 0;
}

static int hawk_hold_one(struct hawk_provider_hold *h, const void *provider, u64 lid)
{
	struct hawk_file *f = h->file->private_data;
	struct hawk_as *as = f->as;
	struct hawk_ref ref;
	struct hawk_mem *m;
	u32 tier;
	u64 vt;
	int ret;

	ret = hawk_pin_extra(f, lid, ktime_get_ns(), &vt, &ref);
	if (ret)
		return ret;
	tier = HAWK_VT_TIER(vt);
	m = as->mem[tier];
	h->at[h->n++] = (struct hawk_provider_block){
		.off = hawk_frame_off(as->space, tier, HAWK_VT_FRAME(vt)),
		.block = ref.block,
		.gen = ref.gen,
	};
	if (m->provider != provider)
		return -EXDEV;
	return READ_ONCE(m->lost) ? -ENODEV : 0;
}

struct hawk_provider_hold *hawk_provider_hold(int fd, const void *provider, const u64 *lids,
					      u32 n, bool write)
{
	struct hawk_provider_hold *h = kvzalloc(struct_size(h, at, n), GFP_KERNEL_ACCOUNT);
	int ret = -EBADF;
	u32 i;

	if (!h)
		return ERR_PTR(-ENOMEM);
	h->file = fget(fd);
	if (!h->file)
		goto err_free;
	ret = hawk_hold_space(h, write);
	if (ret)
		goto err_put_file;
	h->block_bytes = hawk_file_as(h->file->private_data)->info.block_bytes;
	for (i = 0; !ret && i < n; i++)
		ret = hawk_hold_one(h, provider, lids[i]);
	if (!ret)
		return h;
	hawk_provider_unhold(h);
	return ERR_PTR(ret);

err_put_file:
	fput(h->file);
err_free:
	kvfree(h);
	return ERR_PTR(ret);
}
HAWK_EXPORT_SYMBOL(hawk_provider_hold);

void hawk_provider_unhold(struct hawk_provider_hold *h)
{
	const struct hawk_file *f = h->file->private_data;

	while (h->n) {
		const struct hawk_provider_block *b = &h->at[--h->n];

		hawk_block_unpin(f->as->space, (struct hawk_ref){ b->block, b->gen });
	}
	hawk_tidy_waiting(f->as);
	fput(h->file);
	kvfree(h);
}
HAWK_EXPORT_SYMBOL(hawk_provider_unhold);
