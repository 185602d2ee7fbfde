// SPDX-License-Identifier: GPL-2.0
/*
 * submit.c - transfers are given to a drive: here, or by its submission threads
 *
 * Who starts moves collects the transfers of flash tiers in a batch.  Here it is put in
 * the order of the drives and of the places on them, so that the block layer merges
 * neighbours to large requests, and each drive's part is submitted, all of it at once:
 *
 *	less than HAWK_SUBMIT_BYTES	here, under one plug
 *	more				one half each by two threads of the drive
 *	what an ended one goes on with	by one of them
 *
 * The threads are bound to the drive's NUMA node.  The core that handed a batch over is
 * most likely the one that feeds an accelerator: a thread that finds itself there leaves
 * it, and stays away until it is handed a batch by another one it happens to be on.  If
 * the node has only that core it stays.
 *
 * A drive whose queue is full blocks its threads, not who wants the blocks.  For so small
 * a batch waking a thread would take longer than to submit it.  Whoever ends transfers
 * submits none himself: he is there for all drives, and must not wait for the queue of
 * one.  The block cgroup that a
 * thread's I/O counts for is the root's, as with all work of the device in the background.
 */
#include "hawk.h"
#include "move.h"
#include "submit.h"

#include <linux/blkdev.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/list_sort.h>
#include <linux/slab.h>
#include <linux/topology.h>

#define HAWK_SUBMIT_BYTES	(1u << 20)	/* of a drive's part of a batch */
#define HAWK_SUBMITTERS		2		/* threads of a drive */

/**
 * struct hawk_submitter - one thread
 * @m: its drive; stops it before it goes
 * @task: the thread
 * @lock: guards @queue
 * @queue: hawk_io.node, in the order in which they are to be submitted
 * @dispatch: the CPU that added the last ones, -1: any will do
 * @mask: where it may run; the thread's own
 */
struct hawk_submitter {
	struct hawk_mem *m;
	struct task_struct *task;
	spinlock_t lock;
	struct list_head queue;
	int dispatch;
	struct cpumask mask;
};

/**
 * struct hawk_submit_queue - the threads of a drive
 * @node: its NUMA node or NUMA_NO_NODE
 * @s: the threads
 */
struct hawk_submit_queue {
	int node;
	struct hawk_submitter s[HAWK_SUBMITTERS];
};

/* ---- one after the other ---- */

static u64 hawk_submit_off(const struct hawk_io *io)
{
	return io->move.kind == HAWK_MOVE_WRITE ? io->move.dst_off : io->move.src_off;
}

/* All of @list, of one drive. */
static void hawk_submit_list(struct hawk_mem *m, struct list_head *list)
{
	struct hawk_cpu_time t = hawk_cpu_begin();
	struct hawk_io *io, *next;
	struct blk_plug plug;

	blk_start_plug(&plug);
	/* It may be over, and freed, as soon as it has been submitted. */
	list_for_each_entry_safe(io, next, list, node)
		m->ops->submit(m, io);
	blk_finish_plug(&plug);
	this_cpu_add(m->count->submit_ns, hawk_cpu_ns(&t));
}

/**
 * hawk_submit_add() - one more transfer of a batch
 * @batch: the batch
 * @m: the flash tier
 * @io: the transfer, ready but for its submission
 */
void hawk_submit_add(struct list_head *batch, struct hawk_mem *m, struct hawk_io *io)
{
	io->flash = m;
	list_add_tail(&io->node, batch);
}

/* ---- the threads ---- */

static const struct cpumask *hawk_submit_cpus(const struct hawk_mem *m)
{
	int node = m->submit->node;

	return node == NUMA_NO_NODE ? cpu_possible_mask : cpumask_of_node(node);
}

static void hawk_submitter_keep_away(struct hawk_submitter *s)
{
	int cpu = READ_ONCE(s->dispatch);

	if (raw_smp_processor_id() != cpu)
		return;
	cpumask_copy(&s->mask, hawk_submit_cpus(s->m));
	cpumask_clear_cpu(cpu, &s->mask);
	if (cpumask_intersects(&s->mask, cpu_online_mask))
		set_cpus_allowed_ptr(current, &s->mask);
}

static bool hawk_submitter_take(struct hawk_submitter *s, struct list_head *list)
{
	spin_lock(&s->lock);
	list_splice_init(&s->queue, list);
	spin_unlock(&s->lock);
	return !list_empty(list);
}

static int hawk_submitter_run(void *data)
{
	struct hawk_submitter *s = data;
	LIST_HEAD(list);

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!hawk_submitter_take(s, &list)) {
			if (!kthread_should_stop())
				schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		hawk_submitter_keep_away(s);
		hawk_submit_list(s->m, &list);
		INIT_LIST_HEAD(&list);
		cond_resched();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/*
 * Cuts the first @n of @list off for a thread.  It is woken before it can have them: when
 * they have ended the drive may go, and the thread with it.
 * @cpu: that it is to keep off, or -1
 */
static void hawk_submitter_add(struct hawk_submitter *s, struct list_head *list, u32 n, int cpu)
{
	struct list_head *last = list;
	LIST_HEAD(part);

	while (n--)
		last = last->next;
	list_cut_position(&part, list, last);
	WRITE_ONCE(s->dispatch, cpu);
	spin_lock(&s->lock);
	list_splice_tail(&part, &s->queue);
	wake_up_process(s->task);
	spin_unlock(&s->lock);
}

/**
 * hawk_submit_next() - a transfer goes on with another step
 * @m: the flash tier
 * @io: the transfer
 *
 * Context: in hawk_io.end; @io may be over, and freed, when this returns.
 */
void hawk_submit_next(struct hawk_mem *m, struct hawk_io *io)
{
	struct hawk_submitter *s = &m->submit->s[raw_smp_processor_id() % HAWK_SUBMITTERS];
	LIST_HEAD(list);

	hawk_submit_add(&list, m, io);
	hawk_submitter_add(s, &list, 1, -1);
}

/**
 * hawk_submit_start() - make the submission threads of a drive
 * @m: its tier, not published yet
 * @node: its NUMA node or NUMA_NO_NODE
 *
 * Return: 0 or -ENOMEM.
 */
int hawk_submit_start(struct hawk_mem *m, int node)
{
	u32 i;

	m->submit = kzalloc(sizeof(*m->submit), GFP_KERNEL_ACCOUNT);
	if (!m->submit)
		return -ENOMEM;
	m->submit->node = node;
	for (i = 0; i < HAWK_SUBMITTERS; i++) {
		struct hawk_submitter *s = &m->submit->s[i];
		struct task_struct *task;

		s->m = m;
		spin_lock_init(&s->lock);
		INIT_LIST_HEAD(&s->queue);
		s->dispatch = -1;
		task = kthread_create_on_node(hawk_submitter_run, s, node, "hawk-submit/%u", i);
		if (IS_ERR(task))
			return -ENOMEM;	/* a signal, too: the caller tries again */
		s->task = task;
		set_cpus_allowed_ptr(task, hawk_submit_cpus(m));
		wake_up_process(task);
	}
	return 0;
}

/**
 * hawk_submit_stop() - end the submission threads
 * @m: the tier; nothing is submitted to it any more
 *
 * Context: may sleep; not on the threads.
 */
void hawk_submit_stop(struct hawk_mem *m)
{
	u32 i;

	if (!m->submit)
		return;
	for (i = 0; i < HAWK_SUBMITTERS; i++)
		if (m->submit->s[i].task)
			kthread_stop(m->submit->s[i].task);
	kfree(m->submit);
	m->submit = NULL;
}

/* ---- batches ---- */

static int hawk_submit_cmp(void *unused, const struct list_head *a, const struct list_head *b)
{
	const struct hawk_io *x = list_entry(a, struct hawk_io, node);
	const struct hawk_io *y = list_entry(b, struct hawk_io, node);
	u64 p, q;

	if (x->flash != y->flash)
		return x->flash->id > y->flash->id ? 1 : -1;
	if (x->move.kind != y->move.kind)
		return x->move.kind > y->move.kind ? 1 : -1;
	p = hawk_submit_off(x);
	q = hawk_submit_off(y);
	return p > q ? 1 : p < q ? -1 : 0;
}

/* Cuts the part of the first one's drive off @batch. */
static void hawk_submit_drive(struct list_head *batch)
{
	struct hawk_mem *m = list_first_entry(batch, struct hawk_io, node)->flash;
	struct hawk_submitter *s = m->submit->s;
	struct list_head *last = batch;
	struct hawk_io *io;
	u64 bytes = 0;
	u32 n = 0, i;
	LIST_HEAD(part);

	list_for_each_entry(io, batch, node) {
		if (io->flash != m)
			break;
		bytes += io->bytes;
		last = &io->node;
		n++;
	}
	list_cut_position(&part, batch, last);
	if (n < HAWK_SUBMITTERS || bytes < HAWK_SUBMIT_BYTES) {
		hawk_submit_list(m, &part);
		return;
	}
	for (i = HAWK_SUBMITTERS; i; n -= n / i, i--, s++)
		hawk_submitter_add(s, &part, n / i, raw_smp_processor_id());
}

/**
 * hawk_submit() - submit a batch, at full depth
 * @batch: the transfers; empty afterwards
 *
 * Context: may sleep.
 */
void hawk_submit(struct list_head *batch)
{
	if (list_empty(batch))
		return;
	list_sort(NULL, batch, hawk_submit_cmp);
	while (!list_empty(batch))
		hawk_submit_drive(batch);
}
