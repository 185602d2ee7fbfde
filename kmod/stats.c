// SPDX-License-Identifier: GPL-2.0
/*
 * stats.c - counters and latency histograms, and the page that shows a space its own
 *
 * Counting is done per CPU: no batch and no move writes to a cache line of another
 * one's.  What a space counted is summed into its page while somebody has the page
 * mapped, every HAWK_STATS_MS, when it is mapped and at HAWK_IOC_STATS; so a reader
 * makes no system call and sees what is at most that old.  The page is written
 * like a seqcount.  It shows nothing of other spaces.
 *
 * The device counts apart from that, over all spaces: for debugfs.
 */
#include "gather.h"
#include "trace.h"

#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

#define HAWK_STATS_MS	100	/* how old a mapped page may be */
#define HAWK_HIST_WORDS	(sizeof(struct hawk_hist) / sizeof(u64))
#define HAWK_OP_GATHER	HAWK_OPS	/* behind the batch calls */

/* Kinds of status of an item. */
enum hawk_class {
	HAWK_CLASS_OK,
	HAWK_CLASS_MISS,	/* no such block */
	HAWK_CLASS_BUSY,	/* in flight, pinned or leased: ask again */
	HAWK_CLASS_ROOM,	/* no room: tier, quota, memory */
	HAWK_CLASS_IO,		/* the tier failed */
	HAWK_CLASS_LATE,	/* deadline, signal, cut off */
	HAWK_CLASS_WRONG,	/* the caller's mistake */
	HAWK_CLASSES,
};

static const char * const hawk_class_name[HAWK_CLASSES] = {
	"ok", "miss", "busy", "room", "io", "late", "wrong",
};

static const char * const hawk_op_name[HAWK_OPS + 1] = {
	"alloc", "put", "lookup", "pin", "unpin", "get", "reload", "fork", "unshare", "free",
	"translate", "gather",
};

/* Of the device, of one CPU. */
struct hawk_dev_count {
	u64 calls[HAWK_OPS + 1];
	u64 items[HAWK_OPS + 1][HAWK_CLASSES];
};

static DEFINE_PER_CPU(struct hawk_dev_count, hawk_dev_count);

static enum hawk_class hawk_class_of(int status)
{
	switch (status) {
	case 0:
		return HAWK_CLASS_OK;
	case -ENOENT:
		return HAWK_CLASS_MISS;
	case -EAGAIN:
	case -EBUSY:
		return HAWK_CLASS_BUSY;
	case -ENOSPC:
	case -EDQUOT:
	case -ENOMEM:
		return HAWK_CLASS_ROOM;
	case -EIO:
		return HAWK_CLASS_IO;
	case -ETIME:
	case -ECANCELED:
		return HAWK_CLASS_LATE;
	default:
		return HAWK_CLASS_WRONG;
	}
}

/* ---- counting ---- */

static void hawk_hist_add(struct hawk_hist __percpu *h, u64 ns, u64 items, u64 failed)
{
	u32 b = ns ? min_t(u32, ilog2(ns), HAWK_STATS_BUCKETS - 1) : 0;

	this_cpu_inc(h->bucket[b]);
	this_cpu_add(h->ns, ns);
	this_cpu_add(h->items, items);
	if (failed)
		this_cpu_add(h->failed, failed);
	this_cpu_inc(h->count);
}

/* A call of the device: @n items by kind of status. */
static void hawk_dev_add(u32 op, const u32 *n)
{
	u32 i;

	this_cpu_inc(hawk_dev_count.calls[op]);
	for (i = 0; i < HAWK_CLASSES; i++)
		if (n[i])
			this_cpu_add(hawk_dev_count.items[op][i], n[i]);
}

/**
 * hawk_stats_batch() - every item of a batch has its status: count it
 * @job: the batch
 */
void hawk_stats_batch(struct hawk_job *job)
{
	u32 op = job->op->nr - _IOC_NR(HAWK_IOC_ALLOC), count = job->arg.count, i;
	u64 latency = ktime_get_ns() - job->start;
	u32 n[HAWK_CLASSES] = { 0 };

	for (i = 0; i < count; i++)
		n[hawk_class_of(job->items[i].status)]++;
	hawk_hist_add(&job->as->stats.cpu->op[op], latency, count, count - n[HAWK_CLASS_OK]);
	hawk_dev_add(op, n);
	trace_hawk_batch_end(job, latency, n[HAWK_CLASS_OK]);
}

/**
 * hawk_stats_gather() - every row of a gather has its status: count it
 * @c: the gather
 */
void hawk_stats_gather(const struct hawk_gather_call *c)
{
	u64 latency = ktime_get_ns() - c->called;
	u32 n[HAWK_CLASSES] = { 0 }, rows = c->set.rows, i;

	for (i = 0; i < rows; i++)
		n[hawk_class_of(hawk_gather_row(&c->set, i))]++;
	hawk_hist_add(&c->as->stats.cpu->gather, latency, rows, rows - n[HAWK_CLASS_OK]);
	hawk_dev_add(HAWK_OP_GATHER, n);
}

/**
 * hawk_stats_move() - a move has ended
 * @io: the move, with its result
 * @latency: how long it took, nanoseconds
 */
void hawk_stats_move(const struct hawk_io *io, u64 latency)
{
	const struct hawk_move *mv = &io->move;
	struct hawk_as_count __percpu *c = io->as->stats.cpu;
	u64 bytes = mv->result ? 0 : io->as->info.block_bytes;

	if (mv->kind == HAWK_MOVE_READ)
		hawk_hist_add(&c->read[mv->src_tier], latency, bytes, mv->result ? 1 : 0);
	else if (mv->kind == HAWK_MOVE_WRITE)
		hawk_hist_add(&c->write[mv->dst_tier], latency, bytes, mv->result ? 1 : 0);
}

/* What all CPUs have counted for a tier. */
struct hawk_mem_count hawk_mem_counted(const struct hawk_mem *m)
{
	struct hawk_mem_count sum = { 0 };
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct hawk_mem_count *c = per_cpu_ptr(m->count, cpu);

		sum.read += READ_ONCE(c->read);
		sum.write += READ_ONCE(c->write);
		sum.submit_ns += READ_ONCE(c->submit_ns);
		sum.complete_ns += READ_ONCE(c->complete_ns);
		sum.checksum_ns += READ_ONCE(c->checksum_ns);
		sum.copy_ns += READ_ONCE(c->copy_ns);
	}
	return sum;
}

/* ---- the page of a space ---- */

/* @n words at @word of every CPU, summed into the page. */
static void hawk_stats_sum(u64 *to, u64 __percpu *word, size_t n)
{
	size_t i;
	int cpu;

	for (i = 0; i < n; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu_ptr(word, cpu)[i]);
		WRITE_ONCE(to[i], sum);
	}
}

static void hawk_stats_write(struct hawk_as *as)
{
	struct hawk_stats st = { .size = sizeof(st) };
	struct hawk_as_count __percpu *c = as->stats.cpu;
	struct hawk_stats_page *p = as->stats.page;

	BUILD_BUG_ON(sizeof(st) > sizeof(p->stats));
	BUILD_BUG_ON(HAWK_STATS_OP(HAWK_IOC_TRANSLATE) >= HAWK_STATS_OPS);
	BUILD_BUG_ON(PAGE_ALIGN(sizeof(*p)) != 4 * PAGE_SIZE);	/* what clients map */
	lockdep_assert_held(&as->stats.lock);
	hawk_space_stats(as->space, &st);
	WRITE_ONCE(p->seq, p->seq + 1);
	smp_wmb();	/* odd before anything changes; pairs with the reader's acquire */
	hawk_stats_sum(&p->op[0].count, &c->op[0].count, HAWK_OPS * HAWK_HIST_WORDS);
	hawk_stats_sum(&p->read[0].count, &c->read[0].count, HAWK_TIERS_MAX * HAWK_HIST_WORDS);
	hawk_stats_sum(&p->write[0].count, &c->write[0].count, HAWK_TIERS_MAX * HAWK_HIST_WORDS);
	hawk_stats_sum(&p->gather.count, &c->gather.count, HAWK_HIST_WORDS);
	memcpy(p->stats, &st, sizeof(st));
	p->time_ns = ktime_get_ns();
	smp_wmb();	/* all of it before it is even; pairs with the reader's barrier */
	WRITE_ONCE(p->seq, p->seq + 1);
}

static void hawk_stats_work(struct work_struct *work)
{
	struct hawk_as *as = container_of(to_delayed_work(work), struct hawk_as, stats.work);

	hawk_stats_refresh(as);
	if (atomic_read(&as->stats.mapped))
		queue_delayed_work(hawk_dev.wq, &as->stats.work, msecs_to_jiffies(HAWK_STATS_MS));
}

/* Return: 0 or -ENOMEM. */
int hawk_stats_init(struct hawk_as *as)
{
	as->stats.cpu = alloc_percpu_gfp(struct hawk_as_count, GFP_KERNEL_ACCOUNT);
	if (!as->stats.cpu)
		return -ENOMEM;
	mutex_init(&as->stats.lock);
	INIT_DELAYED_WORK(&as->stats.work, hawk_stats_work);
	return 0;
}

/* Nobody has the page mapped, but @work may still be writing: the space is there. */
void hawk_stats_exit(struct hawk_as *as)
{
	cancel_delayed_work_sync(&as->stats.work);
	vfree(as->stats.page);
	free_percpu(as->stats.cpu);
}

static int hawk_stats_alloc_page(struct hawk_as *as)
{
	struct hawk_stats_page *p;

	lockdep_assert_held(&as->stats.lock);
	if (as->stats.page)
		return 0;
	/* the cgroup of who maps it pays; at its limit that is an error, no reason to kill */
	p = __vmalloc(PAGE_ALIGN(sizeof(*p)), GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
					      __GFP_RETRY_MAYFAIL);
	if (!p)
		return -ENOMEM;
	p->size = sizeof(*p);
	p->version = HAWK_STATS_VERSION;
	p->period_ms = HAWK_STATS_MS;
	smp_store_release(&as->stats.page, p);
	return 0;
}

/**
 * hawk_stats_map() - a mapping of the page is made: fill it and keep it up to date
 * @as: the space
 *
 * Context: may sleep; under mmap_lock.
 * Return: 0 or -ENOMEM.
 */
int hawk_stats_map(struct hawk_as *as)
{
	int ret;

	mutex_lock(&as->stats.lock);
	ret = hawk_stats_alloc_page(as);
	if (!ret) {
		atomic_inc(&as->stats.mapped);
		hawk_stats_write(as);
	}
	mutex_unlock(&as->stats.lock);
	if (!ret)
		queue_delayed_work(hawk_dev.wq, &as->stats.work, msecs_to_jiffies(HAWK_STATS_MS));
	return ret;
}

/* A mapping is gone; with the last one the work ends by itself. */
void hawk_stats_unmap(struct hawk_as *as)
{
	atomic_dec(&as->stats.mapped);
}

/* Bring the page up to date, if anybody looks at it. */
void hawk_stats_refresh(struct hawk_as *as)
{
	if (!atomic_read(&as->stats.mapped))
		return;
	mutex_lock(&as->stats.lock);
	hawk_stats_write(as);
	mutex_unlock(&as->stats.lock);
}

/* ---- the device, for debugfs ---- */

static void hawk_stats_show_op(struct seq_file *m, u32 op)
{
	u64 calls = 0, items[HAWK_CLASSES] = { 0 };
	u32 c;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct hawk_dev_count *d = per_cpu_ptr(&hawk_dev_count, cpu);

		calls += READ_ONCE(d->calls[op]);
		for (c = 0; c < HAWK_CLASSES; c++)
			items[c] += READ_ONCE(d->items[op][c]);
	}
	seq_printf(m, "%-10s %12llu", hawk_op_name[op], calls);
	for (c = 0; c < HAWK_CLASSES; c++)
		seq_printf(m, " %12llu", items[c]);
	seq_putc(m, '\n');
}

/* A line per batch call and for gathers: its calls, its items by kind of status. */
void hawk_stats_show(struct seq_file *m)
{
	u32 op, c;

	seq_printf(m, "%-10s %12s", "op", "calls");
	for (c = 0; c < HAWK_CLASSES; c++)
		seq_printf(m, " %12s", hawk_class_name[c]);
	seq_putc(m, '\n');
	for (op = 0; op < HAWK_OPS + 1; op++)
		hawk_stats_show_op(m, op);
}
