// SPDX-License-Identifier: GPL-2.0
/*
 * move.c - moves of blocks: started at full depth, ended in a workqueue
 *
 *	hawk_plan_start()	takes the moves out of a plan
 *	 hawk_submit()		I/O of block tiers, or a copy in place, or a stage (stage.c)
 *	hawk_io_end()		I/O is over (any context): to the workqueue
 *	 hawk_io_ended_work()	all that a CPU has been told of meanwhile:
 *	 io->end		checksum, tell the engine, wake who waits
 *
 * A drive tells the CPU that submitted, and one worker for each CPU keeps up with it: a
 * work item for each block would wake as many workers as there are blocks, and they would
 * take the CPUs from each other.
 *
 * The checksum of a block is taken when it has been written and compared when it
 * has been read: a reload gives the bytes of the eviction, or fails.
 */
#include "hawk.h"
#include "deliver.h"
#include "pm.h"
#include "pool.h"
#include "submit.h"
#include "trace.h"

#include <linux/crc32c.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/mempool.h>
#include <linux/slab.h>

#define HAWK_IO_RESERVE	64	/* moves that can be made without free memory */

static struct kmem_cache *hawk_io_cache;
static mempool_t *hawk_io_pool;

/**
 * struct hawk_io_ended - moves whose I/O has ended, as a CPU was told
 * @list: hawk_io.ended, the latest first
 * @work: ends them
 */
struct hawk_io_ended {
	struct llist_head list;
	struct work_struct work;
};

static DEFINE_PER_CPU(struct hawk_io_ended, hawk_io_ended);

static void hawk_io_ended_work(struct work_struct *work);

int hawk_move_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hawk_io_ended *e = per_cpu_ptr(&hawk_io_ended, cpu);

		init_llist_head(&e->list);
		INIT_WORK(&e->work, hawk_io_ended_work);
	}
	hawk_io_cache = KMEM_CACHE(hawk_io, 0);
	if (!hawk_io_cache)
		return -ENOMEM;
	hawk_io_pool = mempool_create_slab_pool(HAWK_IO_RESERVE, hawk_io_cache);
	if (!hawk_io_pool) {
		kmem_cache_destroy(hawk_io_cache);
		return -ENOMEM;
	}
	return 0;
}

void hawk_move_exit(void)
{
	mempool_destroy(hawk_io_pool);
	kmem_cache_destroy(hawk_io_cache);
}

/* As hawk_round_begin(), but false where that would sleep. */
bool hawk_round_try(struct hawk_as *as)
{
	atomic_inc(&as->active);
	if (hawk_pm_enter())
		return true;
	hawk_round_end(as);
	return false;
}

/*
 * A round is a stretch in which the engine may be asked for moves.  Waiters that
 * see nothing active know that nothing will change by itself.  May sleep: no round
 * begins while the system is about to sleep.
 */
void hawk_round_begin(struct hawk_as *as)
{
	while (!hawk_round_try(as))
		hawk_pm_wait();
}

void hawk_round_end(struct hawk_as *as)
{
	int active = atomic_dec_return(&as->active);

	if (!active || hawk_pm_settled(as, active))
		wake_up_all(&as->wait);
}

/* ---- the end of a move ---- */

/* The flash tier of a move, of a copy the tier that it goes to. */
static struct hawk_mem *hawk_io_mem(const struct hawk_io *io)
{
	bool read = io->move.kind == HAWK_MOVE_READ;

	return io->as->mem[read ? io->move.src_tier : io->move.dst_tier];
}

static u32 hawk_io_crc(struct hawk_io *io)
{
	struct hawk_cpu_time t = hawk_cpu_begin();
	u32 crc = ~0u, i;

	for (i = 0; i < io->nbv; i++)
		crc = crc32c(crc, bvec_virt(&io->bv[i]), io->bv[i].bv_len);
	this_cpu_add(hawk_io_mem(io)->count->checksum_ns, hawk_cpu_ns(&t));
	return ~crc;
}

/*
 * The result of the transfer, 0 or a negative errno.  Where a reload was to go is no
 * more: that is no fault of the block, which stays on flash.
 */
static int hawk_io_result(struct hawk_io *io)
{
	if (io->ret == -ENODEV && io->stage == HAWK_STAGE_STORE &&
	    io->move.kind == HAWK_MOVE_READ)
		return -ECANCELED;
	if (io->ret < 0)
		return io->ret;
	if (io->ret != io->bytes)
		return -EIO;
	if (io->move.kind == HAWK_MOVE_WRITE && io->stage != HAWK_STAGE_FETCH)
		io->move.crc = hawk_io_crc(io);
	else if (io->move.kind == HAWK_MOVE_READ && io->stage != HAWK_STAGE_STORE &&
		 io->move.crc != hawk_io_crc(io))
		return -EILSEQ;
	return 0;
}

/* A transfer has failed: the one who knows counts it and tells the log why. */
void hawk_io_failed(struct hawk_mem *m, bool write, u32 bytes, u64 off, int ret)
{
	atomic64_inc(&m->io_errors);
	pr_err_ratelimited("tier %u: %s of %u bytes at offset %llu failed: %d%s\n", m->id,
			   write ? "write" : "read", bytes, off, ret,
			   ret == -EILSEQ ? " (checksum)" : "");
	hawk_health_failed(m, write, ret);
}

static void hawk_io_account(struct hawk_io *io)
{
	const struct hawk_move *mv = &io->move;
	bool write = mv->kind == HAWK_MOVE_WRITE;
	struct hawk_mem *m;

	if (mv->result == -ECANCELED)
		return;
	/* A device's memory counts failures only: the bytes are those of the flash tier. */
	if (mv->result && io->stage)
		write = io->stage == HAWK_STAGE_STORE || (write && io->stage == HAWK_STAGE_FLASH);
	m = io->as->mem[write ? mv->dst_tier : mv->src_tier];
	if (!mv->result) {
		if (mv->kind == HAWK_MOVE_COPY)
			return;
		if (write && m->pool)
			hawk_pool_kick(m);
		if (write)
			this_cpu_add(m->count->write, io->as->info.block_bytes);
		else
			this_cpu_add(m->count->read, io->as->info.block_bytes);
		hawk_health_works(m, write);
		return;
	}
	hawk_io_failed(m, write, io->bytes, write ? mv->dst_off : mv->src_off, mv->result);
}

/* One move less for the item; the last one makes it ready for its next step. */
static void hawk_io_tell_job(struct hawk_io *io)
{
	struct hawk_item_state *st = &io->job->st[io->item];

	/* llist_add() orders it */
	if (io->move.kind != HAWK_MOVE_WRITE)
		st->read_error = io->move.result == -ECANCELED ? 0 : io->move.result;
	if (atomic_dec_and_test(&st->moves))
		llist_add(&st->ready, &io->job->ready);
}

static void hawk_io_delivered(struct hawk_io *io)
{
	if (!io->deliver)
		return;
	if (io->taken)
		hawk_deliver_done(io->deliver, hawk_io_mem(io), io->bytes);
	else
		hawk_deliver_skip(io->deliver, hawk_io_mem(io), io->bytes, io->move.result);
	hawk_deliver_put(io->deliver);
}

/* @t: when the CPU began to end it */
static void hawk_io_finish(struct hawk_io *io, const struct hawk_cpu_time *t)
{
	struct hawk_mem *m = hawk_io_mem(io);
	u64 latency = ktime_get_ns() - io->start;
	struct hawk_as *as = io->as;

	hawk_io_delivered(io);
	hawk_stats_move(io, latency);
	trace_hawk_move_done(as->id, &io->move, latency);
	hawk_move_complete(&io->move);
	if (io->job) {
		hawk_io_tell_job(io);
		hawk_job_put(io->job);
	}
	if (io->stage)
		hawk_stage_free(io);
	if (io->bv != &io->bv_one)
		kfree(io->bv);
	mempool_free(io, hawk_io_pool);
	atomic64_inc(&as->events);
	atomic_dec(&as->active);
	wake_up_all(&as->wait);
	this_cpu_add(m->count->complete_ns, hawk_cpu_ns(t));
	hawk_as_put(as);
}

static void hawk_move_end(struct hawk_io *io)
{
	struct hawk_cpu_time t;

	io->move.result = hawk_io_result(io);
	t = hawk_cpu_begin();
	if (io->stage && !io->move.result && hawk_stage_next(io))
		return;
	hawk_io_account(io);
	hawk_io_finish(io, &t);
}

static void hawk_io_ended_work(struct work_struct *work)
{
	struct hawk_io_ended *e = container_of(work, struct hawk_io_ended, work);
	struct llist_node *list = llist_reverse_order(llist_del_all(&e->list));
	struct hawk_io *io, *next;

	/* It may be freed, or under way again, as soon as it has been ended. */
	llist_for_each_entry_safe(io, next, list, ended) {
		io->end(io);
		cond_resched();
	}
}

/**
 * hawk_io_end() - the transfer of a move is over
 * @io: the move
 * @ret: bytes transferred or a negative errno
 *
 * Context: any.
 */
void hawk_io_end(struct hawk_io *io, long ret)
{
	struct hawk_io_ended *e = raw_cpu_ptr(&hawk_io_ended);	/* any will do */

	io->ret = ret;
	if (llist_add(&io->ended, &e->list))
		queue_work(hawk_dev.wq, &e->work);
}

/* ---- the start of a move ---- */

/* The host frame's pages as few runs as they are. */
static void hawk_io_map(struct hawk_io *io, struct hawk_mem *m, u64 off)
{
	u32 pages = io->as->info.block_bytes >> PAGE_SHIFT, i;
	struct bio_vec *bv = &io->bv_one;

	io->bv = bv;
	if (!m->chunk[off >> HAWK_CHUNK_SHIFT].base)
		io->bv = bv = kmalloc_array(pages, sizeof(*bv), GFP_NOIO | __GFP_NOFAIL);
	io->nbv = 0;
	for (i = 0; i < pages; i++) {
		struct page *page = m->ops->page(m, off + ((u64)i << PAGE_SHIFT));

		if (i && page_to_pfn(page) == page_to_pfn(bv->bv_page) +
					      (bv->bv_len >> PAGE_SHIFT)) {
			bv->bv_len += PAGE_SIZE;
			continue;
		}
		bv = &io->bv[io->nbv++];
		*bv = (struct bio_vec){ .bv_page = page, .bv_len = PAGE_SIZE };
	}
}

/* Unshare: between two frames of host memory, at once. */
static void hawk_io_copy(struct hawk_io *io)
{
	const struct hawk_move *mv = &io->move;
	struct hawk_mem *src = io->as->mem[mv->src_tier];
	struct hawk_mem *dst = io->as->mem[mv->dst_tier];
	struct hawk_cpu_time t = hawk_cpu_begin();
	u64 off;

	for (off = 0; off < io->as->info.block_bytes; off += PAGE_SIZE)
		copy_highpage(dst->ops->page(dst, mv->dst_off + off),
			      src->ops->page(src, mv->src_off + off));
	this_cpu_add(src->count->copy_ns, hawk_cpu_ns(&t));
	io->move.result = 0;
	t = hawk_cpu_begin();
	hawk_io_finish(io, &t);
}

/* @batch: takes what is for a drive */
static void hawk_io_start(struct hawk_io *io, struct list_head *batch)
{
	struct hawk_move *mv = &io->move;
	struct hawk_mem *src = io->as->mem[mv->src_tier];
	struct hawk_mem *dst = io->as->mem[mv->dst_tier];

	trace_hawk_move_start(io->as->id, mv, 0);
	if (READ_ONCE(src->lost) || READ_ONCE(dst->lost)) {
		hawk_io_end(io, !READ_ONCE(src->lost) && mv->kind == HAWK_MOVE_READ ?
			    -ECANCELED : -ENODEV);
		return;
	}
	if (hawk_stage_wanted(io)) {
		hawk_stage_start(io, batch);
		return;
	}
	switch (mv->kind) {
	case HAWK_MOVE_WRITE:
		hawk_io_map(io, src, mv->src_off);
		hawk_submit_add(batch, dst, io);
		break;
	case HAWK_MOVE_READ:
		hawk_io_map(io, dst, mv->dst_off);
		hawk_submit_add(batch, src, io);
		break;
	default:
		hawk_io_copy(io);
	}
}

static struct hawk_io *hawk_io_create(struct hawk_as *as, struct hawk_job *job,
				      const struct hawk_move *move, struct list_head *batch)
{
	struct hawk_io *io = mempool_alloc(hawk_io_pool, GFP_NOWAIT);

	if (!io) {
		/* Who waits for the end of others must not keep any from it. */
		hawk_submit(batch);
		io = mempool_alloc(hawk_io_pool, GFP_NOIO);
	}
	io->move = *move;
	io->as = hawk_as_get(as);
	io->job = job;
	io->bytes = as->info.block_bytes;
	io->bv = &io->bv_one;
	io->deliver = NULL;
	io->taken = false;
	io->stage = HAWK_STAGE_NONE;
	io->start = ktime_get_ns();
	io->end = hawk_move_end;
	return io;
}

/**
 * hawk_plan_start() - start all moves of a plan and empty it
 * @as: the space
 * @job: batch that waits for them, or NULL
 * @plan: the moves
 * @item: item of @job per move
 *
 * Context: may sleep, for the pace as well; within a round.
 */
void hawk_plan_start(struct hawk_as *as, struct hawk_job *job, struct hawk_plan *plan,
		     const u32 *item)
{
	struct hawk_deliver *v = NULL;
	LIST_HEAD(batch);
	u32 i;

	if (!plan->n)
		return;
	if (job)
		v = hawk_deliver_plan(as, job, plan);
	/* All are counted before the first can end. */
	atomic_add(plan->n, &as->active);
	for (i = 0; job && i < plan->n; i++)
		atomic_inc(&job->st[item[i]].moves);
	for (i = 0; i < plan->n; i++) {
		struct hawk_io *io = hawk_io_create(as, job, &plan->move[i], &batch);

		if (job) {
			kref_get(&job->ref);
			io->item = item[i];
		}
		if (io->move.kind == HAWK_MOVE_READ)
			io->deliver = v;
		hawk_io_start(io, &batch);
	}
	hawk_deliver_submit(v, job, &batch);
	if (v)
		hawk_deliver_put(v);
	plan->n = 0;
}
