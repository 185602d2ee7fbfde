// SPDX-License-Identifier: GPL-2.0
/*
 * health.c - drives that fail, stall or go away
 *
 * core/health.h is told how transfers of flash tiers end, and decides what a drive still
 * gets.  Here is what only the host can see:
 *
 *	a stall		transfers are under way and none has ended from one look to the
 *			next, HAWK_STALL_LOOKS times: by looks, not by the clock, since a
 *			virtual machine may stand still itself.  Who waits with a deadline
 *			gives up then (job.c, gather_io.c); the transfers stay out, and so
 *			do their frames and buffers until they end
 *	a lost drive	a transfer failed and the kernel has given up the disk: the tier
 *			ends like any other whose memory is lost (hawk_mem_lost())
 *
 * A work looks once a second as long as transfers are under way.  It may sleep and take
 * hawk_device.lock, which those who end transfers may not.
 */
#include "hawk.h"
#include "core/health.h"
#include "pool.h"

#include <linux/blkdev.h>
#include <linux/ktime.h>

#define HAWK_WATCH_MS		1000
#define HAWK_STALL_LOOKS	2

/* The disk under a device or file; NULL: there are several, or none. */
static struct gendisk *hawk_health_disk(const struct hawk_mem *m)
{
	struct inode *inode = m->file->f_mapping->host;
	struct block_device *bdev = S_ISBLK(inode->i_mode) ? I_BDEV(inode) : inode->i_sb->s_bdev;

	return bdev ? bdev->bd_disk : NULL;
}

static const char *hawk_health_advice(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "its file system is full, make room there";
	case -EILSEQ:
		return "its blocks are damaged: see the drive's health, and that nobody else writes to it";
	case -ETIME:
		return "nothing comes back from it";
	default:
		return "see above for what the drive says";
	}
}

static void hawk_health_tell(struct hawk_mem *m, enum hawk_health_change change, int err)
{
	if (change == HAWK_HEALTH_FAILS)
		pr_warn("tier %u (%pD4) fails: %d, %s; no block is written to it but a trial now and then, what it holds is read as ever; it can be removed while it is used: hawkctl tier del %u --force\n",
			m->id, m->file, err, hawk_health_advice(err), m->id);
	else if (change == HAWK_HEALTH_WORKS)
		pr_info("tier %u (%pD4) takes blocks again\n", m->id, m->file);
}

/* Have transfers been under way for long, and none of them has ended? */
static bool hawk_health_stalls(struct hawk_watch *w)
{
	u64 since = READ_ONCE(w->since);

	w->looks = since == w->seen ? w->looks + 1 : 0;
	w->seen = since;
	return w->looks >= HAWK_STALL_LOOKS;
}

static void hawk_health_watch(struct work_struct *work)
{
	struct hawk_mem *m = container_of(to_delayed_work(work), struct hawk_mem, watch.work);

	if (READ_ONCE(m->watch.dead)) {
		hawk_mem_lost(m);
		return;
	}
	if (!atomic_read(&m->watch.out))
		return;
	if (hawk_health_stalls(&m->watch))
		hawk_health_tell(m, hawk_tier_fault(hawk_dev.engine, m->id, HAWK_FAULT_STALL,
						    ktime_get_ns()), -ETIME);
	queue_delayed_work(hawk_dev.own_wq, &m->watch.work, msecs_to_jiffies(HAWK_WATCH_MS));
}

void hawk_health_init(struct hawk_mem *m)
{
	INIT_DELAYED_WORK(&m->watch.work, hawk_health_watch);
}

/* No transfer is under way any more, and none will be. */
void hawk_health_stop(struct hawk_mem *m)
{
	cancel_delayed_work_sync(&m->watch.work);
}

/*
 * Module exit: no space is left, so the last transfers are those of the cleaners.  A drive
 * that is found lost after them asks for nobody's help any more.
 */
void hawk_health_exit(void)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_mem *m = hawk_mem_find(t);

		if (!m)
			continue;
		flush_delayed_work(&m->cleaner.work);
		hawk_health_stop(m);
		kobject_put(&m->kobj);
	}
}

/**
 * hawk_health_begin() - a transfer from or to flash begins
 * @m: the tier
 *
 * Context: any.
 */
void hawk_health_begin(struct hawk_mem *m)
{
	if (atomic_inc_return(&m->watch.out) > 1)
		return;
	WRITE_ONCE(m->watch.since, ktime_get_ns());
	queue_delayed_work(hawk_dev.own_wq, &m->watch.work, msecs_to_jiffies(HAWK_WATCH_MS));
}

/**
 * hawk_health_end() - a transfer has ended, whichever way
 * @m: the tier
 *
 * Context: any.
 */
void hawk_health_end(struct hawk_mem *m)
{
	WRITE_ONCE(m->watch.since, ktime_get_ns());
	atomic_dec(&m->watch.out);
}

/**
 * hawk_health_failed() - a transfer, or another write to flash, has failed
 * @m: memory of any kind
 * @write: it was a write
 * @err: negative errno
 *
 * Context: may sleep.
 */
void hawk_health_failed(struct hawk_mem *m, bool write, int err)
{
	struct gendisk *disk;

	/* short of memory is the host, which says nothing of the drive */
	if (m->kind != HAWK_TIER_BLK || READ_ONCE(m->lost) || err == -ENOMEM)
		return;
	if (err == -EILSEQ && hawk_pool_torn(m))
		return;
	disk = hawk_health_disk(m);
	if (disk && test_bit(GD_DEAD, &disk->state)) {
		WRITE_ONCE(m->watch.dead, true);
		mod_delayed_work(hawk_dev.own_wq, &m->watch.work, 0);
		return;
	}
	hawk_health_tell(m, hawk_tier_fault(hawk_dev.engine, m->id, write ? HAWK_FAULT_WRITE :
					    HAWK_FAULT_READ, ktime_get_ns()), err);
}

/**
 * hawk_health_works() - a transfer from or to flash came out well
 * @m: the tier
 * @write: it was a write
 *
 * Context: any.
 */
void hawk_health_works(struct hawk_mem *m, bool write)
{
	hawk_health_tell(m, hawk_tier_works(hawk_dev.engine, m->id, write, ktime_get_ns()), 0);
}
