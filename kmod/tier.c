// SPDX-License-Identifier: GPL-2.0
/*
 * tier.c - tiers come and go
 *
 * The engine knows a tier as a number of chunks, hawk_mem is the memory behind it.
 */
#include "hawk.h"
#include "core/health.h"
#include "pace.h"
#include "pool.h"

#include <linux/ktime.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#define HAWK_ENDS_MS	10000	/* for a walk, a transfer, the end of an export */

/* A new memory without any; on failure to fill it, kobject_put() it. */
struct hawk_mem *hawk_mem_alloc(const struct hawk_mem_ops *ops, u32 kind, u32 chunks)
{
	struct hawk_mem *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return NULL;
	m->count = alloc_percpu_gfp(struct hawk_mem_count, GFP_KERNEL_ACCOUNT);
	if (!m->count) {
		kfree(m);
		return NULL;
	}
	m->ops = ops;
	m->kind = kind;
	m->node = NUMA_NO_NODE;
	m->chunks = chunks;
	hawk_clean_init(m);
	hawk_health_init(m);
	hawk_sysfs_init_mem(m);
	return m;
}

/* Return: 0, or -ENOENT if the engine does not know the tier any more. */
int hawk_mem_usage(struct hawk_mem *m, u64 *free_bytes, u64 *quarantine_bytes)
{
	u32 free, dirty;
	int ret = hawk_tier_usage(hawk_dev.engine, m->id, NULL, &free, &dirty);

	if (ret)
		return ret;
	*free_bytes = (u64)free << HAWK_CHUNK_SHIFT;
	*quarantine_bytes = (u64)dirty << HAWK_CHUNK_SHIFT;
	return 0;
}

/**
 * hawk_mem_release() - give the memory behind a tier back
 * @m: not, or no longer, a tier of the engine
 *
 * May be called more than once.
 */
void hawk_mem_release(struct hawk_mem *m)
{
	if (!xchg(&m->released, true))
		m->ops->release(m);
}

/* Return: a tier's memory, referenced, or NULL. */
struct hawk_mem *hawk_mem_find(u32 tier)
{
	struct hawk_mem *m;

	if (tier >= HAWK_TIERS_MAX)
		return NULL;
	tier = array_index_nospec(tier, HAWK_TIERS_MAX);
	hawk_dev_lock();
	m = hawk_dev.mem[tier];
	if (m)
		kobject_get(&m->kobj);
	mutex_unlock(&hawk_dev.lock);
	return m;
}

static int hawk_tier_add_check(const struct hawk_tier_add *arg)
{
	if (arg->reserved)
		return -EOPNOTSUPP;
	if (arg->fd && arg->kind != HAWK_TIER_DMABUF)
		return -EINVAL;
	if (arg->flags & HAWK_TIER_PERSIST && (arg->kind != HAWK_TIER_BLK || arg->bytes))
		return -EINVAL;
	switch (arg->kind) {
	case HAWK_TIER_HOST:
		if (arg->path || arg->path_len)
			return -EINVAL;
		if (arg->node < -1 || (arg->node >= 0 && (arg->node >= MAX_NUMNODES ||
							  !node_online(arg->node))))
			return -EINVAL;
		return hawk_chunks(arg->bytes) ? 0 : -EINVAL;
	case HAWK_TIER_BLK:
		if (arg->node != -1 || !arg->path || arg->path_len < 2 ||
		    arg->path_len > HAWK_PATH_MAX)
			return -EINVAL;
		return arg->bytes && !hawk_chunks(arg->bytes) ? -EINVAL : 0;
	case HAWK_TIER_DMABUF:
		/* Who does not know @fd has not given 0 as one. */
		if (arg->node != -1 || arg->path || arg->path_len ||
		    arg->size < offsetofend(struct hawk_tier_add, fd))
			return -EINVAL;
		return arg->bytes && !hawk_chunks(arg->bytes) ? -EINVAL : 0;
	default:
		return -EOPNOTSUPP;
	}
}

/*
 * Make the memory a tier of the engine and show it in sysfs.  No space can have a part in it
 * before it is in hawk_device.mem, so its pool is read without the lock.
 */
int hawk_mem_publish(struct hawk_mem *m)
{
	int ret;

	hawk_dev_lock();
	ret = hawk_pace_add_tier(m);
	mutex_unlock(&hawk_dev.lock);
	if (ret)
		return ret;
	ret = hawk_pool_start(m);
	hawk_dev_lock();
	ret = ret ?: hawk_sysfs_add(m);
	if (ret)
		hawk_tier_remove(hawk_dev.engine, m->id);
	else
		hawk_dev.mem[m->id] = m;
	mutex_unlock(&hawk_dev.lock);
	return ret;
}

static struct hawk_mem *hawk_mem_create(const struct hawk_tier_add *arg)
{
	switch (arg->kind) {
	case HAWK_TIER_HOST:
		return hawk_mem_create_host(arg);
	case HAWK_TIER_BLK:
		return hawk_mem_create_blk(arg);
	default:
		return hawk_mem_create_dmabuf(arg);
	}
}

int hawk_ioc_tier_add(struct hawk_file *f, void *data)
{
	struct hawk_tier_add *arg = data;
	struct hawk_mem *m;
	int ret = hawk_tier_add_check(arg);

	if (ret)
		return ret;
	m = hawk_mem_create(arg);
	if (IS_ERR(m))
		return PTR_ERR(m);
	ret = hawk_mem_publish(m);
	if (ret) {
		kobject_put(&m->kobj);
		return ret;
	}
	arg->tier = m->id;
	return 0;
}

/* Its name in sysfs must be free before another tier can get its id. */
static void hawk_mem_unpublish(struct hawk_mem *m)
{
	lockdep_assert_held(&hawk_dev.lock);
	hawk_dev.mem[m->id] = NULL;
	WRITE_ONCE(m->gone, true);
	hawk_clean_told(m);	/* nobody waits for the cleaner any more */
	kobject_del(&m->kobj);
}

/*
 * Remove the tier if nothing is in it; else see to it that it is cleaned.  Nothing is
 * cleaned any more once the engine has let go, so the wait for the cleaner is short.
 */
static int hawk_mem_remove_clean(struct hawk_mem *m)
{
	int ret = -ENOENT;

	hawk_dev_lock();
	if (hawk_dev.mem[m->id] != m)
		goto out;	/* another caller was faster */
	ret = hawk_tier_remove(hawk_dev.engine, m->id);
	if (ret) {
		hawk_mem_clean_soon(m);
		goto out;
	}
	cancel_delayed_work_sync(&m->cleaner.work);
	hawk_mem_unpublish(m);
	kobject_put(&m->kobj);
out:
	mutex_unlock(&hawk_dev.lock);
	return ret;
}

/**
 * hawk_mem_remove() - remove a tier in which no space has a part
 * @m: the tier, referenced by the caller
 *
 * Context: may sleep, takes hawk_device.lock.
 * Return: 0; -ENOENT: another caller was faster; -EBUSY; -EINTR: the caller is being killed.
 */
int hawk_mem_remove(struct hawk_mem *m)
{
	int ret = hawk_mem_remove_clean(m);

	if (ret == -EBUSY) {
		/*
		 * Chunks that only wait for the cleaner are no reason to refuse.  A large
		 * tier takes it seconds: not with the lock held.
		 */
		if (hawk_clean_wait(m))
			return -EINTR;
		ret = hawk_mem_remove_clean(m);
	}
	if (!ret)
		hawk_mem_release(m);
	return ret;
}

/* A caller who has just closed his files need not try again. */
static int hawk_mem_remove_unused(struct hawk_mem *m)
{
	unsigned long until = jiffies + msecs_to_jiffies(HAWK_ENDS_MS);
	unsigned int seen;
	int ret;

	do {
		seen = READ_ONCE(m->ended);
		ret = hawk_mem_remove(m);
	} while (ret == -EBUSY && hawk_as_wait_ends(m, seen, until));
	return ret;
}

static int hawk_mem_force_now(struct hawk_mem *m)
{
	int ret;

	hawk_export_revoke_mem(m, false, ktime_get_ns() + HAWK_YIELD_NS);
	ret = hawk_drain_lock();
	if (ret)
		return ret;
	ret = hawk_mem_force_out(m, true);
	hawk_drain_unlock();
	return ret;
}

/* Not while somebody is emptying it: he would never come to an end. */
static int hawk_mem_reopen(struct hawk_mem *m)
{
	int ret = hawk_drain_lock();

	if (ret)
		return ret;
	hawk_dev_lock();
	if (hawk_dev.mem[m->id] != m)
		ret = -ENOENT;
	else if (READ_ONCE(m->lost))
		ret = -EIO;
	else
		ret = hawk_tier_leave(hawk_dev.engine, m->id, false);
	mutex_unlock(&hawk_dev.lock);
	hawk_drain_unlock();
	return ret;
}

int hawk_ioc_tier_remove(struct hawk_file *f, void *data)
{
	const struct hawk_tier_remove *arg = data;
	struct hawk_mem *m;
	int ret;

	if (arg->reserved)
		return -EOPNOTSUPP;
	if (arg->flags == (HAWK_TIER_FORCE | HAWK_TIER_REOPEN))
		return -EINVAL;
	m = hawk_mem_find(arg->tier);
	if (!m)
		return -ENOENT;
	if (arg->flags & HAWK_TIER_FORCE)
		ret = hawk_mem_force_now(m);
	else if (arg->flags & HAWK_TIER_REOPEN)
		ret = hawk_mem_reopen(m);
	else
		ret = hawk_mem_remove_unused(m);
	kobject_put(&m->kobj);
	return ret;
}

static void hawk_tier_info_counts(const struct hawk_mem *m, struct hawk_tier_info *arg)
{
	struct hawk_mem_count c = hawk_mem_counted(m);

	arg->read_bytes = c.read;
	arg->write_bytes = c.write;
	arg->submit_cpu_ns = c.submit_ns;
	arg->complete_cpu_ns = c.complete_ns;
	arg->checksum_cpu_ns = c.checksum_ns;
	arg->copy_cpu_ns = c.copy_ns;
}

int hawk_ioc_tier_info(struct hawk_file *f, void *data)
{
	struct hawk_tier_info *arg = data;
	struct hawk_mem *m;
	int ret = -ENOENT;

	if (arg->reserved)
		return -EOPNOTSUPP;
	if (arg->tier >= HAWK_TIERS_MAX)
		return -ENOENT;
	hawk_dev_lock();
	m = hawk_dev.mem[arg->tier];
	if (m)
		ret = hawk_mem_usage(m, &arg->free_bytes, &arg->quarantine_bytes);
	if (!ret) {
		arg->kind = m->kind;
		arg->node = m->node;
		arg->bytes = (u64)m->chunks << HAWK_CHUNK_SHIFT;
		hawk_tier_info_counts(m, arg);
		arg->io_errors = atomic64_read(&m->io_errors);
		arg->reclaimed_bytes = atomic64_read(&m->reclaimed_bytes);
		arg->orphan_bytes = (u64)hawk_pool_orphans(hawk_dev.engine, m->id) <<
				    HAWK_CHUNK_SHIFT;
		arg->header_bytes = hawk_pool_header_bytes(m);
		arg->health = hawk_tier_health(hawk_dev.engine, m->id);
		arg->out = atomic_read(&m->watch.out);
	}
	mutex_unlock(&hawk_dev.lock);
	return ret;
}

int hawk_ioc_tier_admit(struct hawk_file *f, void *data)
{
	struct hawk_tier_admit *arg = data;

	if (arg->reserved[0] || arg->reserved[1])
		return -EOPNOTSUPP;
	if ((arg->flags & HAWK_ADMIT_SET) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	return hawk_tier_admit(hawk_dev.engine, arg, ktime_get_ns());
}

/*
 * Module exit: no space is left, but chunks of theirs may not be clean: memory that
 * goes back to another driver must be.  A chunk may still be in quarantine then; its
 * pages have references of their own and go when the last holder lets go of them.
 */
void hawk_mem_remove_all(void)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_mem *m = hawk_dev.mem[t];

		if (!m)
			continue;
		flush_delayed_work(&m->cleaner.work);
		hawk_dev_lock();
		hawk_mem_unpublish(m);
		mutex_unlock(&hawk_dev.lock);
		cancel_delayed_work_sync(&m->cleaner.work);
		hawk_mem_release(m);
		kobject_put(&m->kobj);
	}
}
