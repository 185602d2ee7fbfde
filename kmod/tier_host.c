// SPDX-License-Identifier: GPL-2.0
/*
 * tier_host.c - kernel pages on a NUMA node
 *
 * A chunk has memory from when a space gets it until it has left the space and the
 * last page of it is let go: so who uses memory pays for it, and no space sees what
 * another has left.
 *
 * It is one order-9 allocation where the node has one, else the largest pieces it
 * has.  Pieces are split, so that each 4 KiB page has a reference count of its own:
 * pages are mapped and pinned one by one, and the count tells whether anybody
 * outside still holds a page.
 */
#include "hawk.h"

#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/slab.h>

static struct page *hawk_host_chunk_page(const struct hawk_host_chunk *c, u32 i)
{
	return c->base ? c->base + i : c->table[i];
}

static struct page *hawk_host_page(struct hawk_mem *m, u64 off)
{
	return hawk_host_chunk_page(&m->chunk[off >> HAWK_CHUNK_SHIFT],
				    (off & (HAWK_CHUNK_BYTES - 1)) >> PAGE_SHIFT);
}

static void hawk_host_free_pages(struct hawk_host_chunk *c, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		__free_page(hawk_host_chunk_page(c, i));
	kvfree(c->table);
	c->table = NULL;
	c->base = NULL;
}

/* No order-9 piece: as few smaller ones as it takes. */
static int hawk_host_alloc_pieces(struct hawk_host_chunk *c, int node, gfp_t zero)
{
	u32 order = HAWK_CHUNK_ORDER - 1, n = 0, i;

	/* The flag also keeps a cgroup at its limit from having a process killed for it. */
	c->table = kvmalloc_array(HAWK_CHUNK_PAGES, sizeof(*c->table),
				  GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	if (!c->table)
		return -ENOMEM;
	while (n < HAWK_CHUNK_PAGES) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_THISNODE | __GFP_NOWARN | zero;
		struct page *page;

		page = alloc_pages_node(node, order ? gfp | __GFP_NORETRY :
					gfp | __GFP_RETRY_MAYFAIL, order);
		if (!page) {
			if (!order--)
				goto err_free;
			continue;
		}
		split_page(page, order);
		for (i = 0; i < 1u << order; i++)
			c->table[n++] = page + i;
	}
	return 0;

err_free:
	hawk_host_free_pages(c, n);
	return -ENOMEM;
}

/* @zero: __GFP_ZERO or 0 */
static int hawk_host_alloc_chunk(struct hawk_host_chunk *c, int node, gfp_t zero)
{
	c->base = alloc_pages_node(node, GFP_KERNEL_ACCOUNT | __GFP_THISNODE | __GFP_NOWARN |
				   __GFP_NORETRY | zero, HAWK_CHUNK_ORDER);
	if (!c->base)
		return hawk_host_alloc_pieces(c, node, zero);
	split_page(c->base, HAWK_CHUNK_ORDER);
	return 0;
}

/*
 * As much again must be to be had: nobody may fill a cgroup or a node to the brim with
 * cache and have the next small allocation there kill a process.
 */
static int hawk_host_populate(struct hawk_mem *m, u32 chunk)
{
	struct hawk_host_chunk *c = &m->chunk[chunk], room = { };
	int ret = hawk_host_alloc_chunk(c, m->node, __GFP_ZERO);

	if (ret)
		return ret;
	ret = hawk_host_alloc_chunk(&room, m->node, 0);
	hawk_host_free_pages(ret ? c : &room, HAWK_CHUNK_PAGES);
	return ret;
}

static bool hawk_host_empty(const struct hawk_host_chunk *c)
{
	return !c->base && !c->table;
}

/* Chunks that are left are in quarantine: their pages go with the last reference. */
static void hawk_host_release(struct hawk_mem *m)
{
	u32 c;

	for (c = 0; m->chunk && c < m->chunks; c++) {
		if (!hawk_host_empty(&m->chunk[c]))
			hawk_host_free_pages(&m->chunk[c], HAWK_CHUNK_PAGES);
		cond_resched();
	}
	kvfree(m->chunk);
}

/*
 * Without a page table that leads to it, a page with more than our own reference is
 * held by somebody outside, and no new holder can come.  With one, the count says
 * nothing below what a pin for DMA adds.
 */
static bool hawk_host_held(struct hawk_mem *m, u32 chunk, bool mapped)
{
	const struct hawk_host_chunk *c = &m->chunk[chunk];
	u32 i, most = mapped ? GUP_PIN_COUNTING_BIAS : 1;

	for (i = 0; i < HAWK_CHUNK_PAGES; i++)
		if (page_ref_count(hawk_host_chunk_page(c, i)) > most)
			return true;
	return false;
}

static bool hawk_host_clean(struct hawk_mem *m, u32 chunk)
{
	struct hawk_host_chunk *c = &m->chunk[chunk];

	if (hawk_host_empty(c))
		return true;
	if (hawk_host_held(m, chunk, false))
		return false;
	hawk_host_free_pages(c, HAWK_CHUNK_PAGES);
	return true;
}

static const struct hawk_mem_ops hawk_host_ops = {
	.release = hawk_host_release,
	.populate = hawk_host_populate,
	.held = hawk_host_held,
	.clean = hawk_host_clean,
	.page = hawk_host_page,
};

/**
 * hawk_mem_create_host() - declare how much of a NUMA node's memory may be used
 * @arg: checked argument of the call
 *
 * Return: the memory or ERR_PTR(-ENOMEM): the node has not so much at all.
 */
struct hawk_mem *hawk_mem_create_host(const struct hawk_tier_add *arg)
{
	int node = arg->node < 0 ? numa_mem_id() : arg->node;
	u32 chunks = hawk_chunks(arg->bytes);
	struct hawk_mem *m;

	if (chunks > node_present_pages(node) >> HAWK_CHUNK_ORDER) {
		pr_err_ratelimited("host tier: %u MiB asked for, node %d has %lu MiB\n",
				   chunks << (HAWK_CHUNK_SHIFT - 20), node,
				   node_present_pages(node) >> (20 - PAGE_SHIFT));
		return ERR_PTR(-ENOMEM);
	}
	m = hawk_mem_alloc(&hawk_host_ops, HAWK_TIER_HOST, chunks);
	if (!m)
		return ERR_PTR(-ENOMEM);
	m->node = node;
	m->chunk = kvcalloc(chunks, sizeof(*m->chunk), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!m->chunk) {
		kobject_put(&m->kobj);
		return ERR_PTR(-ENOMEM);
	}
	return m;
}
