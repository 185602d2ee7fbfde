// SPDX-License-Identifier: GPL-2.0
/*
 * accel.c - hawk_accel.ko: an accelerator's memory as a tier
 *
 * Pages, and engines that copy from and to them as fast as the parameters say.  An
 * engine is a work item that takes transfers from one queue; it sleeps as long as a
 * real one would take.  Faults are parameters too (README.md).
 */
#include <linux/errno.h>
#include <linux/highmem.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../kmod/compat.h"
#include "../kmod/provider.h"

#define ACCEL_ENGINES_MAX	16u

static unsigned int size_mib = 16;
module_param(size_mib, uint, 0444);
MODULE_PARM_DESC(size_mib, "memory, MiB (default 16)");

static unsigned int engines = 2;
module_param(engines, uint, 0444);
MODULE_PARM_DESC(engines, "transfers at one time, 1..16 (default 2)");

static unsigned int bandwidth;
module_param(bandwidth, uint, 0644);
MODULE_PARM_DESC(bandwidth, "of an engine, MB/s; 0: no limit (default)");

static unsigned int latency_us;
module_param(latency_us, uint, 0644);
MODULE_PARM_DESC(latency_us, "of a transfer, microseconds (default 0)");

static long ecc_page = -1;
module_param(ecc_page, long, 0644);
MODULE_PARM_DESC(ecc_page, "device page of 4 KiB whose reads fail; -1: none (default)");

static ulong ecc_errors;
module_param(ecc_errors, ulong, 0444);
MODULE_PARM_DESC(ecc_errors, "reads that failed so");

static ulong transfers;
module_param(transfers, ulong, 0444);
MODULE_PARM_DESC(transfers, "transfers ended");

static u64 busy_ns;
module_param(busy_ns, ullong, 0444);
MODULE_PARM_DESC(busy_ns, "sum of what they took by latency and bandwidth, nanoseconds");

/**
 * struct hawk_accel - the device; there is one
 * @page: its memory
 * @npages: pages
 * @lock: guards @queue, @resets, @stuck, @gone and the counters
 * @queue: transfers that no engine has taken, hawk_provider_xfer.node
 * @resets: resets so far
 * @stuck: engines do not end what they have begun
 * @gone: the device has been removed by surprise
 * @wait: engines that sleep or are stuck
 * @wq: runs @engine
 * @engine: the engines
 */
struct hawk_accel {
	struct page **page;
	u32 npages;
	spinlock_t lock;
	struct list_head queue;
	u64 resets;
	bool stuck;
	bool gone;
	wait_queue_head_t wait;
	struct workqueue_struct *wq;
	struct work_struct engine[ACCEL_ENGINES_MAX];
};

static struct hawk_accel accel;

/* ---- transfers ---- */

static bool accel_hits_ecc(const struct hawk_provider_xfer *x)
{
	long bad = READ_ONCE(ecc_page), first = x->off >> PAGE_SHIFT;

	return !x->write && bad >= first && bad < first + (long)(x->len >> PAGE_SHIFT);
}

static void accel_copy(const struct hawk_provider_xfer *x)
{
	u32 page = x->off >> PAGE_SHIFT, i, off;

	for (i = 0; i < x->nbv; i++) {
		void *p = bvec_virt(&x->bv[i]);

		for (off = 0; off < x->bv[i].bv_len; off += PAGE_SIZE, page++) {
			void *dev = kmap_local_page(accel.page[page]);

			if (x->write)
				memcpy(dev, p + off, PAGE_SIZE);
			else
				memcpy(p + off, dev, PAGE_SIZE);
			kunmap_local(dev);
		}
	}
}

static u64 accel_time_ns(const struct hawk_provider_xfer *x)
{
	u32 mbps = READ_ONCE(bandwidth);
	u64 ns = (u64)READ_ONCE(latency_us) * NSEC_PER_USEC;

	return mbps ? ns + div_u64((u64)x->len * 1000, mbps) : ns;
}

static bool accel_was_reset(u64 resets)
{
	return READ_ONCE(accel.resets) != resets;
}

/* @ns: how long an engine had to do with it, on a clock that nothing else can delay */
static void accel_end(struct hawk_provider_xfer *x, int ret, u64 ns)
{
	spin_lock(&accel.lock);
	transfers++;
	busy_ns += ns;
	spin_unlock(&accel.lock);
	hawk_provider_done(x, ret);
}

/* @resets: as they were when the transfer was taken from the queue */
static void accel_serve(struct hawk_provider_xfer *x, u64 resets)
{
	u64 ns = accel_time_ns(x);
	int ret = 0;

	if (ns)
		wait_event_hrtimeout(accel.wait, accel_was_reset(resets), ns_to_ktime(ns));
	wait_event_idle(accel.wait, !READ_ONCE(accel.stuck) || accel_was_reset(resets));
	if (accel_was_reset(resets)) {
		ret = READ_ONCE(accel.gone) ? -ENODEV : -EIO;
		ns = 0;
	} else if (accel_hits_ecc(x)) {
		spin_lock(&accel.lock);
		ecc_errors++;
		spin_unlock(&accel.lock);
		ret = -EIO;
	} else {
		accel_copy(x);
	}
	accel_end(x, ret, ns);
}

static void accel_engine(struct work_struct *work)
{
	struct hawk_provider_xfer *x;
	u64 resets;

	for (;;) {
		spin_lock(&accel.lock);
		x = list_first_entry_or_null(&accel.queue, struct hawk_provider_xfer, node);
		if (x)
			list_del(&x->node);
		resets = accel.resets;
		spin_unlock(&accel.lock);
		if (!x)
			return;
		accel_serve(x, resets);
	}
}

static void accel_xfer(void *provider, struct hawk_provider_xfer *x)
{
	bool gone;
	u32 i;

	spin_lock(&accel.lock);
	gone = accel.gone;
	if (!gone)
		list_add_tail(&x->node, &accel.queue);
	spin_unlock(&accel.lock);
	if (gone) {
		accel_end(x, -ENODEV, 0);
		return;
	}
	for (i = 0; i < engines; i++)
		queue_work(accel.wq, &accel.engine[i]);
}

/* What is queued and what engines have taken fails. */
static void accel_reset(bool gone)
{
	struct hawk_provider_xfer *x, *next;
	LIST_HEAD(failed);

	spin_lock(&accel.lock);
	accel.gone |= gone;
	accel.stuck = false;
	WRITE_ONCE(accel.resets, accel.resets + 1);
	list_splice_init(&accel.queue, &failed);
	spin_unlock(&accel.lock);
	wake_up_all(&accel.wait);
	list_for_each_entry_safe(x, next, &failed, node)
		accel_end(x, gone ? -ENODEV : -EIO, 0);
}

/* ---- the tier ---- */

static struct page *accel_page(void *provider, u64 off)
{
	return accel.page[off >> PAGE_SHIFT];
}

static void accel_free(void)
{
	u32 i;

	for (i = 0; i < accel.npages; i++)
		put_page(accel.page[i]);
	accel.npages = 0;
	vfree(accel.page);
	accel.page = NULL;
}

static void accel_release(void *provider)
{
	accel_free();
}

static const struct hawk_provider_ops accel_ops = {
	.owner = THIS_MODULE,
	.xfer = accel_xfer,
	.page = accel_page,
	.release = accel_release,
};

/* ---- faults ---- */

static int accel_set_stuck(const char *val, const struct kernel_param *kp)
{
	bool stuck;
	int ret = kstrtobool(val, &stuck);

	if (ret)
		return ret;
	WRITE_ONCE(accel.stuck, stuck);
	if (accel.wq)	/* not so when insmod sets it */
		wake_up_all(&accel.wait);
	return 0;
}

static int accel_get_stuck(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%c\n", READ_ONCE(accel.stuck) ? 'Y' : 'N');
}

static const struct kernel_param_ops accel_stuck_ops = {
	.set = accel_set_stuck,
	.get = accel_get_stuck,
};
module_param_cb(stuck, &accel_stuck_ops, NULL, 0644);
MODULE_PARM_DESC(stuck, "transfers do not end (until reset, or until it is set to N)");

/* Faults are for a device that is there: not for the command line of insmod. */
static int accel_set_reset(const char *val, const struct kernel_param *kp)
{
	if (!accel.wq)
		return -EINVAL;
	accel_reset(false);
	return 0;
}

static const struct kernel_param_ops accel_reset_ops = {
	.set = accel_set_reset,
};
module_param_cb(reset, &accel_reset_ops, NULL, 0200);
MODULE_PARM_DESC(reset, "write anything: transfers under way fail with EIO, engines go on");

static int accel_set_remove(const char *val, const struct kernel_param *kp)
{
	if (!accel.wq)
		return -EINVAL;
	accel_reset(true);
	hawk_provider_lost(&accel);
	return 0;
}

static const struct kernel_param_ops accel_remove_ops = {
	.set = accel_set_remove,
};
module_param_cb(remove, &accel_remove_ops, NULL, 0200);
MODULE_PARM_DESC(remove, "write anything: the device disappears");

/* ---- load, unload ---- */

static int __init accel_alloc(void)
{
	u32 n = size_mib << (20 - PAGE_SHIFT);

	accel.page = vzalloc(array_size(n, sizeof(*accel.page)));
	if (!accel.page)
		return -ENOMEM;
	for (; accel.npages < n; accel.npages++) {
		accel.page[accel.npages] = alloc_page(GFP_KERNEL | __GFP_ZERO | __GFP_NORETRY);
		if (!accel.page[accel.npages]) {
			accel_free();
			return -ENOMEM;
		}
	}
	return 0;
}

static int __init accel_init(void)
{
	int ret;
	u32 i;

	if (!engines || engines > ACCEL_ENGINES_MAX || size_mib < 2 || size_mib > 4096)
		return -EINVAL;
	spin_lock_init(&accel.lock);
	INIT_LIST_HEAD(&accel.queue);
	init_waitqueue_head(&accel.wait);
	for (i = 0; i < engines; i++)
		INIT_WORK(&accel.engine[i], accel_engine);
	ret = accel_alloc();
	if (ret)
		return ret;
	accel.wq = alloc_workqueue("hawk-accel", WQ_UNBOUND | WQ_MEM_RECLAIM, ACCEL_ENGINES_MAX);
	if (!accel.wq) {
		ret = -ENOMEM;
		goto err_free;
	}
	ret = hawk_provider_add(&accel_ops, &accel, (u64)size_mib << 20);
	if (ret < 0)
		goto err_destroy_wq;
	pr_info("hawk_accel: tier %d, %u MiB, %u engines\n", ret, size_mib, engines);
	return 0;

err_destroy_wq:
	destroy_workqueue(accel.wq);
err_free:
	accel_free();
	return ret;
}

/* The tier is gone: it holds the module. */
static void __exit accel_exit(void)
{
	destroy_workqueue(accel.wq);
}

module_init(accel_init);
module_exit(accel_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("Lab model: an accelerator's memory as a tier of hawk");
MODULE_LICENSE("GPL");
MODULE_INFO(test, "Y");
HAWK_IMPORT_NS(HAWK);
