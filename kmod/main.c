// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - module load and unload, the device node, HAWK_IOC_QUERY
 */
#include "hawk.h"
#include "move.h"
#include "pace.h"
#include "pm.h"
#include "pool.h"
#include "uring.h"

#include <linux/module.h>
#include <linux/wait_bit.h>

struct hawk_device hawk_dev;

#ifdef HAWK_URING
#define HAWK_FEAT_BUILT	HAWK_FEAT_URING_CMD
#else
#define HAWK_FEAT_BUILT	0
#endif

int hawk_ioc_query(struct hawk_file *f, void *arg)
{
	struct hawk_query *q = arg;
	u32 t;

	q->abi_version = HAWK_ABI_VERSION;
	q->batch_max = HAWK_BATCH_MAX;
	q->features = HAWK_FEAT_TIER_HOST | HAWK_FEAT_TIER_BLK | HAWK_FEAT_LEASE |
		      HAWK_FEAT_ASYNC | HAWK_FEAT_NAMED | HAWK_FEAT_CRC |
		      HAWK_FEAT_RECLAIM | HAWK_FEAT_TIER_FORCE | HAWK_FEAT_TIER_REOPEN |
		      HAWK_FEAT_ATTACH_FD | HAWK_FEAT_MEMLOCK | HAWK_FEAT_IDLE | HAWK_FEAT_CANCEL |
		      HAWK_FEAT_BUILT | HAWK_FEAT_EXPORT | HAWK_FEAT_TIER_MODEL |
		      HAWK_FEAT_STATS_PAGE | HAWK_FEAT_DRAFT | HAWK_FEAT_GATHER | HAWK_FEAT_SLICE |
		      HAWK_FEAT_TIER_DMABUF | HAWK_FEAT_SEQ | HAWK_FEAT_ELASTIC | HAWK_FEAT_HINT |
		      HAWK_FEAT_PERSIST | HAWK_FEAT_ADMIT | HAWK_FEAT_PACE |
		      HAWK_FEAT_PROMOTE | HAWK_FEAT_HEALTH | HAWK_FEAT_TIER_BAR;
	q->tiers = 0;
	hawk_dev_lock();
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (hawk_dev.mem[t])
			q->tiers |= 1u << t;
	mutex_unlock(&hawk_dev.lock);
	q->tiers_max = HAWK_TIERS_MAX;
	q->chunk_bytes = HAWK_CHUNK_BYTES;
	q->frame_align = HAWK_FRAME_ALIGN;
	return 0;
}

/*
 * The queues are apart: a queue full of batches that wait must not keep the moves
 * and the cleaning that they wait for from being done, nor a drive that stalls from being
 * noticed; and one full of gathers that sleep for the pace must not keep batches from
 * beginning.
 */
static int hawk_queues_create(void)
{
	hawk_dev.wq = alloc_workqueue("hawk", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!hawk_dev.wq)
		return -ENOMEM;
	hawk_dev.batch_wq = alloc_workqueue("hawk-batch", WQ_UNBOUND, 0);
	if (!hawk_dev.batch_wq)
		goto err_destroy_wq;
	hawk_dev.gather_wq = alloc_workqueue("hawk-gather", WQ_UNBOUND, 0);
	if (!hawk_dev.gather_wq)
		goto err_destroy_batch_wq;
	hawk_dev.own_wq = alloc_workqueue("hawk-own", WQ_UNBOUND, 0);
	if (!hawk_dev.own_wq)
		goto err_destroy_gather_wq;
	hawk_dev.clean_wq = alloc_workqueue("hawk-clean", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!hawk_dev.clean_wq)
		goto err_destroy_own_wq;
	if (hawk_export_init())
		goto err_destroy_clean_wq;
	if (hawk_import_init())
		goto err_exit_export;
	return 0;

err_exit_export:
	hawk_export_exit();
err_destroy_clean_wq:
	destroy_workqueue(hawk_dev.clean_wq);
err_destroy_own_wq:
	destroy_workqueue(hawk_dev.own_wq);
err_destroy_gather_wq:
	destroy_workqueue(hawk_dev.gather_wq);
err_destroy_batch_wq:
	destroy_workqueue(hawk_dev.batch_wq);
err_destroy_wq:
	destroy_workqueue(hawk_dev.wq);
	return -ENOMEM;
}

static void hawk_queues_destroy(void)
{
	hawk_import_exit();
	hawk_export_exit();
	destroy_workqueue(hawk_dev.own_wq);
	destroy_workqueue(hawk_dev.gather_wq);
	destroy_workqueue(hawk_dev.batch_wq);
	destroy_workqueue(hawk_dev.clean_wq);
	destroy_workqueue(hawk_dev.wq);
}

/* What has no end of its own. */
static void __init hawk_dev_init(void)
{
	mutex_init(&hawk_dev.lock);
	spin_lock_init(&hawk_dev.spaces_lock);
	init_waitqueue_head(&hawk_dev.ends_wait);
	mutex_init(&hawk_dev.lent_lock);
	init_waitqueue_head(&hawk_dev.lent_wait);
	hawk_dev.min_percent = 50;
	INIT_LIST_HEAD(&hawk_dev.names);
	INIT_LIST_HEAD(&hawk_dev.spaces);
	hawk_dev.misc = (struct miscdevice) {
		.minor = MISC_DYNAMIC_MINOR,
		.name = "hawk",
		.nodename = "hawk",
		.mode = 0660,
		.fops = &hawk_fops,
		.groups = hawk_dev_groups,
	};
}

static int __init hawk_init(void)
{
	int ret;

	BUILD_BUG_ON(BITS_PER_LONG != 64);	/* pins are packed into xarray values */
	BUILD_BUG_ON(PAGE_SIZE != HAWK_FRAME_ALIGN);
	hawk_dev_init();
	hawk_dev.engine = hawk_engine_create();
	if (!hawk_dev.engine)
		return -ENOMEM;
	ret = hawk_move_init();
	if (ret)
		goto err_destroy_engine;
	ret = hawk_inode_init();
	if (ret)
		goto err_exit_move;
	ret = hawk_queues_create();
	if (ret)
		goto err_exit_inode;
	ret = hawk_reclaim_init();
	if (ret)
		goto err_destroy_queues;
	ret = hawk_pm_init();
	if (ret)
		goto err_exit_reclaim;
	hawk_writeback_init();
	hawk_tidy_init();
	hawk_elastic_work_init();
	hawk_pool_init();
	hawk_debugfs_init();
	ret = misc_register(&hawk_dev.misc);
	if (ret) {
		pr_err("cannot register the device node: %d\n", ret);
		goto err_exit_debugfs;
	}
	return 0;

err_exit_debugfs:
	hawk_debugfs_exit();
	hawk_pool_exit();
	hawk_promote_exit();
	hawk_elastic_work_exit();
	hawk_tidy_exit();
	hawk_writeback_exit();
	hawk_pm_exit();
err_exit_reclaim:
	hawk_reclaim_exit();
err_destroy_queues:
	hawk_queues_destroy();
err_exit_inode:
	hawk_inode_exit();
err_exit_move:
	hawk_move_exit();
err_destroy_engine:
	hawk_engine_destroy(hawk_dev.engine);
	return ret;
}

/*
 * No file is open: they hold the module.  What may be left are named spaces that
 * nobody has attached, moves and leases that are just ending, and tiers.
 */
static void __exit hawk_exit(void)
{
	hawk_pm_exit();
	hawk_debugfs_exit();
	hawk_pool_exit();
	hawk_promote_exit();
	hawk_elastic_work_exit();
	hawk_tidy_exit();
	hawk_writeback_exit();
	flush_workqueue(hawk_dev.gather_wq);
	flush_workqueue(hawk_dev.batch_wq);
	hawk_as_unlink_all();
	/* A move in flight holds its space, and its I/O the memory of the tiers. */
	wait_event(hawk_dev.ends_wait, !atomic_read(&hawk_dev.nspaces));
	flush_workqueue(hawk_dev.wq);
	hawk_import_stop();
	hawk_health_exit();
	hawk_reclaim_exit();
	hawk_mem_remove_all();
	/* A tunable may have been written since, a file may have ended late; now all are gone. */
	hawk_pool_exit();
	hawk_tidy_exit();
	hawk_writeback_exit();
	misc_deregister(&hawk_dev.misc);
	hawk_queues_destroy();
	hawk_inode_exit();
	hawk_move_exit();
	hawk_engine_destroy(hawk_dev.engine);
}

module_init(hawk_init);
module_exit(hawk_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("KV-cache memory for LLM inference over DRAM and NVMe");
MODULE_LICENSE("GPL");
