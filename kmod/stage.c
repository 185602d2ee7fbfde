// SPDX-License-Identifier: GPL-2.0
/*
 * stage.c - moves from and to memory that its driver copies: through staging pages
 *
 *	WRITE	FETCH the source frame, FLASH
 *	READ	FLASH, STORE into the destination frame
 *	COPY	FETCH the source frame, STORE into the destination frame
 *
 * Each stage ends in hawk_io_end(), and hawk_move_end() starts the next one.  The
 * checksum is that of the staging pages: what the driver has fetched, and what it is
 * given to store.
 */
#include "hawk.h"
#include "move.h"
#include "submit.h"

#include <linux/highmem.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

static struct hawk_mem *hawk_io_src(const struct hawk_io *io)
{
	return io->as->mem[io->move.src_tier];
}

static struct hawk_mem *hawk_io_dst(const struct hawk_io *io)
{
	return io->as->mem[io->move.dst_tier];
}

/* Does a driver have a part in the move? */
bool hawk_stage_wanted(const struct hawk_io *io)
{
	return hawk_io_src(io)->ops->xfer || hawk_io_dst(io)->ops->xfer;
}

/*
 * A move must not fail for want of memory.  The owner of the space pays: what is
 * staged counts in its memory cgroup, and what it may not have more of is growth.
 */
void hawk_stage_alloc(struct hawk_io *io)
{
	gfp_t gfp = GFP_NOIO | __GFP_NOFAIL | __GFP_ACCOUNT;
	u32 i, pages = io->as->info.block_bytes >> PAGE_SHIFT;
	struct mem_cgroup *old = set_active_memcg(io->as->memcg);

	io->bv = kmalloc_array(pages, sizeof(*io->bv), gfp);
	io->nbv = pages;
	for (i = 0; i < pages; i++)
		io->bv[i] = (struct bio_vec) {
			.bv_page = alloc_page(gfp),
			.bv_len = PAGE_SIZE,
		};
	set_active_memcg(old);
}

/* The staging pages; @io->bv itself is freed with the move. */
void hawk_stage_free(struct hawk_io *io)
{
	u32 i;

	for (i = 0; i < io->nbv; i++)
		__free_page(io->bv[i].bv_page);
}

/* Between the staging pages and a frame that the CPU can reach. */
static void hawk_stage_copy(struct hawk_io *io, struct hawk_mem *m, u64 off, bool write)
{
	u32 i;

	for (i = 0; i < io->nbv; i++) {
		struct page *page = m->ops->page(m, off + (u64)i * PAGE_SIZE);

		if (write)
			copy_highpage(page, io->bv[i].bv_page);
		else
			copy_highpage(io->bv[i].bv_page, page);
	}
	hawk_io_end(io, io->as->info.block_bytes);
}

static void hawk_stage_frame(struct hawk_io *io, bool write)
{
	struct hawk_mem *m = write ? hawk_io_dst(io) : hawk_io_src(io);
	u64 off = write ? io->move.dst_off : io->move.src_off;

	io->stage = write ? HAWK_STAGE_STORE : HAWK_STAGE_FETCH;
	if (m->ops->xfer)
		m->ops->xfer(m, io, off, write);
	else
		hawk_stage_copy(io, m, off, write);
}

static void hawk_stage_flash(struct hawk_io *io, struct hawk_mem *flash)
{
	io->stage = HAWK_STAGE_FLASH;
	hawk_submit_next(flash, io);
}

/* @batch: takes what is to be read from flash */
void hawk_stage_start(struct hawk_io *io, struct list_head *batch)
{
	hawk_stage_alloc(io);
	if (io->move.kind == HAWK_MOVE_READ) {
		io->stage = HAWK_STAGE_FLASH;
		hawk_submit_add(batch, hawk_io_src(io), io);
	} else {
		hawk_stage_frame(io, false);
	}
}

/**
 * hawk_stage_next() - a stage has ended well: start the next one
 * @io: the move
 *
 * Return: whether there was one to start; the move may be over by then.
 */
bool hawk_stage_next(struct hawk_io *io)
{
	if (io->stage == HAWK_STAGE_FETCH && io->move.kind == HAWK_MOVE_WRITE)
		hawk_stage_flash(io, hawk_io_dst(io));
	else if (io->stage == HAWK_STAGE_FETCH ||
		 (io->stage == HAWK_STAGE_FLASH && io->move.kind == HAWK_MOVE_READ))
		hawk_stage_frame(io, true);
	else
		return false;
	return true;
}
