// SPDX-License-Identifier: GPL-2.0
/*
 * provider.c - tiers whose memory another module provides (provider.h)
 */
#include "move.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>

static void hawk_prov_release(struct hawk_mem *m)
{
	if (!m->provider_ops)
		return;
	m->provider_ops->release(m->provider);
	module_put(m->provider_ops->owner);
}

static struct page *hawk_prov_page(struct hawk_mem *m, u64 off)
{
	return m->provider_ops->page(m->provider, off);
}

/* As for host memory: what page tables hold is told from what pins for DMA do. */
static bool hawk_prov_held(struct hawk_mem *m, u32 chunk, bool mapped)
{
	u64 base = (u64)chunk << HAWK_CHUNK_SHIFT;
	u32 i, most = mapped ? GUP_PIN_COUNTING_BIAS : 1;

	for (i = 0; i < HAWK_CHUNK_PAGES; i++)
		if (page_ref_count(hawk_prov_page(m, base + i * PAGE_SIZE)) > most)
			return true;
	return false;
}

static bool hawk_prov_clean(struct hawk_mem *m, u32 chunk)
{
	u64 base = (u64)chunk << HAWK_CHUNK_SHIFT;
	u32 i;

	if (hawk_prov_held(m, chunk, false))
		return false;
	for (i = 0; i < HAWK_CHUNK_PAGES; i++)
		clear_highpage(hawk_prov_page(m, base + i * PAGE_SIZE));
	return true;
}

/* The transfer of a frame at byte offset @off from or to the pages of @io. */
struct hawk_provider_xfer *hawk_io_xfer(struct hawk_io *io, u64 off, bool write)
{
	io->xfer = (struct hawk_provider_xfer) {
		.off = off,
		.len = io->bytes,
		.write = write,
		.bv = io->bv,
		.nbv = io->nbv,
	};
	return &io->xfer;
}

static void hawk_prov_xfer(struct hawk_mem *m, struct hawk_io *io, u64 off, bool write)
{
	m->provider_ops->xfer(m->provider, hawk_io_xfer(io, off, write));
}

void hawk_provider_done(struct hawk_provider_xfer *x, int ret)
{
	struct hawk_io *io = container_of(x, struct hawk_io, xfer);

	hawk_io_end(io, ret ?: x->len);
}
HAWK_EXPORT_SYMBOL(hawk_provider_done);

static const struct hawk_mem_ops hawk_prov_ops = {
	.release = hawk_prov_release,
	.held = hawk_prov_held,
	.clean = hawk_prov_clean,
	.page = hawk_prov_page,
	.xfer = hawk_prov_xfer,
};

/* ---- without pages: a BAR ---- */

static unsigned long hawk_bar_pfn(struct hawk_mem *m, u64 off)
{
	return m->provider_ops->pfn(m->provider, off);
}

/* Only page tables lead to it, and they do so no more: nobody outside can hold it. */
static bool hawk_bar_clean(struct hawk_mem *m, u32 chunk)
{
	int ret;

	if (READ_ONCE(m->lost))
		return true;	/* its bytes are nobody's to reach */
	ret = m->provider_ops->zero(m->provider, (u64)chunk << HAWK_CHUNK_SHIFT,
				    HAWK_CHUNK_BYTES);
	if (ret)
		hawk_mem_unclean(m, chunk, ret);
	return !ret;
}

static const struct hawk_mem_ops hawk_bar_ops = {
	.release = hawk_prov_release,
	.clean = hawk_bar_clean,
	.pfn = hawk_bar_pfn,
	.xfer = hawk_prov_xfer,
};

int hawk_provider_add(const struct hawk_provider_ops *ops, void *provider, u64 bytes)
{
	struct hawk_mem *m;
	int ret;

	if (!hawk_chunks(bytes))
		return -EINVAL;
	if (!try_module_get(ops->owner))
		return -ENODEV;
	if (ops->page)
		m = hawk_mem_alloc(&hawk_prov_ops, HAWK_TIER_MODEL, hawk_chunks(bytes));
	else
		m = hawk_mem_alloc(&hawk_bar_ops, HAWK_TIER_BAR, hawk_chunks(bytes));
	if (!m) {
		module_put(ops->owner);
		return -ENOMEM;
	}
	m->provider = provider;
	m->provider_ops = ops;
	ret = hawk_mem_publish(m);
	if (ret) {
		m->provider_ops = NULL;	/* so that it is not released */
		module_put(ops->owner);
		kobject_put(&m->kobj);
		return ret;
	}
	return m->id;
}
HAWK_EXPORT_SYMBOL(hawk_provider_add);

/* Its tier, referenced, or NULL. */
static struct hawk_mem *hawk_prov_find(const void *provider)
{
	struct hawk_mem *m = NULL;
	u32 t;

	hawk_dev_lock();
	for (t = 0; t < HAWK_TIERS_MAX && !m; t++)
		if (hawk_dev.mem[t] && hawk_dev.mem[t]->provider_ops &&
		    hawk_dev.mem[t]->provider == provider)
			m = hawk_dev.mem[t];
	if (m)
		kobject_get(&m->kobj);
	mutex_unlock(&hawk_dev.lock);
	return m;
}

void hawk_provider_lost(const void *provider)
{
	struct hawk_mem *m = hawk_prov_find(provider);

	if (!m)
		return;
	hawk_mem_lost(m);
	kobject_put(&m->kobj);
}
HAWK_EXPORT_SYMBOL(hawk_provider_lost);
