// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs.c - attributes, one value each
 *
 *	/sys/class/misc/hawk/abi_version
 *	/sys/class/misc/hawk/min_percent
 *	/sys/class/misc/hawk/seq_compact
 *	/sys/class/misc/hawk/pace/...		(pace.c)
 *	/sys/class/misc/hawk/tierN/...
 *
 * They are told in Documentation/ABI/testing/sysfs-hawk.  A tier's folder owns
 * its struct hawk_mem.
 */
#include "hawk.h"
#include "pace.h"
#include "pool.h"

#include <linux/device.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

static ssize_t abi_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", HAWK_ABI_VERSION);
}
static DEVICE_ATTR_RO(abi_version);

static ssize_t min_percent_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(hawk_dev.min_percent));
}

static ssize_t min_percent_store(struct device *dev, struct device_attribute *attr,
				 const char *buf, size_t len)
{
	unsigned int percent;
	int ret = kstrtouint(buf, 10, &percent);

	if (ret)
		return ret;
	if (percent > 100)
		return -EINVAL;
	WRITE_ONCE(hawk_dev.min_percent, percent);
	return len;
}
static DEVICE_ATTR_RW(min_percent);

static ssize_t seq_compact_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(hawk_dev.seq_compact));
}

static ssize_t seq_compact_store(struct device *dev, struct device_attribute *attr,
				 const char *buf, size_t len)
{
	bool on;
	int ret = kstrtobool(buf, &on);

	if (ret)
		return ret;
	WRITE_ONCE(hawk_dev.seq_compact, on);
	return len;
}
static DEVICE_ATTR_RW(seq_compact);

static struct attribute *hawk_dev_attrs[] = {
	&dev_attr_abi_version.attr,
	&dev_attr_min_percent.attr,
	&dev_attr_seq_compact.attr,
	NULL,
};
static const struct attribute_group hawk_dev_group = {
	.attrs = hawk_dev_attrs,
};

const struct attribute_group *hawk_dev_groups[] = {
	&hawk_dev_group,
	&hawk_pace_group,
	NULL,
};

static struct hawk_mem *to_hawk_mem(struct kobject *kobj)
{
	return container_of(kobj, struct hawk_mem, kobj);
}

static ssize_t kind_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	static const char * const name[] = {
		[HAWK_TIER_HOST] = "host",
		[HAWK_TIER_BLK] = "blk",
		[HAWK_TIER_DMABUF] = "dmabuf",
		[HAWK_TIER_MODEL] = "model",
		[HAWK_TIER_BAR] = "bar",
	};

	return sysfs_emit(buf, "%s\n", name[to_hawk_mem(kobj)->kind]);
}

static ssize_t node_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", to_hawk_mem(kobj)->node);
}

static ssize_t bytes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", (u64)to_hawk_mem(kobj)->chunks << HAWK_CHUNK_SHIFT);
}

static ssize_t free_bytes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 free, quarantine;
	int ret = hawk_mem_usage(to_hawk_mem(kobj), &free, &quarantine);

	return ret ?: sysfs_emit(buf, "%llu\n", free);
}

static ssize_t quarantine_bytes_show(struct kobject *kobj, struct kobj_attribute *attr,
				     char *buf)
{
	u64 free, quarantine;
	int ret = hawk_mem_usage(to_hawk_mem(kobj), &free, &quarantine);

	return ret ?: sysfs_emit(buf, "%llu\n", quarantine);
}

static ssize_t read_bytes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", hawk_mem_counted(to_hawk_mem(kobj)).read);
}

static ssize_t write_bytes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", hawk_mem_counted(to_hawk_mem(kobj)).write);
}

/* CPU time, nanoseconds. */
#define HAWK_CPU_ATTR(_name, _member)							\
static ssize_t _name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)	\
{											\
	return sysfs_emit(buf, "%llu\n", hawk_mem_counted(to_hawk_mem(kobj))._member);	\
}											\
static struct kobj_attribute _name##_attr = __ATTR_RO(_name)

HAWK_CPU_ATTR(submit_cpu_ns, submit_ns);
HAWK_CPU_ATTR(complete_cpu_ns, complete_ns);
HAWK_CPU_ATTR(checksum_cpu_ns, checksum_ns);
HAWK_CPU_ATTR(copy_cpu_ns, copy_ns);

static ssize_t io_errors_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_hawk_mem(kobj)->io_errors));
}

static ssize_t exported_bytes_show(struct kobject *kobj, struct kobj_attribute *attr,
				   char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_hawk_mem(kobj)->exported_bytes));
}

static ssize_t reclaimed_bytes_show(struct kobject *kobj, struct kobj_attribute *attr,
				    char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_hawk_mem(kobj)->reclaimed_bytes));
}

static ssize_t writeback_permille_show(struct kobject *kobj, struct kobj_attribute *attr,
				       char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_hawk_mem(kobj)->writeback_permille));
}

static ssize_t writeback_permille_store(struct kobject *kobj, struct kobj_attribute *attr,
					const char *buf, size_t len)
{
	struct hawk_mem *m = to_hawk_mem(kobj);
	unsigned int val;
	int ret = kstrtouint(buf, 0, &val);

	if (ret)
		return ret;
	if (val > 1024 || (val && m->kind == HAWK_TIER_BLK))
		return -EINVAL;
	WRITE_ONCE(m->writeback_permille, val);
	hawk_writeback_kick();
	return len;
}

/* Tiers other than flash have none: 0. */
static int hawk_mem_admit(struct kobject *kobj, struct hawk_tier_admit *a)
{
	struct hawk_mem *m = to_hawk_mem(kobj);

	a->tier = m->id;
	return m->kind == HAWK_TIER_BLK ? hawk_tier_admit(hawk_dev.engine, a, ktime_get_ns()) : 0;
}

static ssize_t write_budget_bytes_show(struct kobject *kobj, struct kobj_attribute *attr,
				       char *buf)
{
	struct hawk_tier_admit a = { 0 };
	int ret = hawk_mem_admit(kobj, &a);

	return ret ?: sysfs_emit(buf, "%llu\n", (u64)a.budget_bytes);
}

static ssize_t write_budget_bytes_store(struct kobject *kobj, struct kobj_attribute *attr,
					const char *buf, size_t len)
{
	struct hawk_tier_admit a = { 0 };
	u64 bytes;
	int ret = kstrtou64(buf, 0, &bytes) ?: hawk_mem_admit(kobj, &a);

	if (ret)
		return ret;
	if (to_hawk_mem(kobj)->kind != HAWK_TIER_BLK)
		return -EINVAL;
	a.flags = HAWK_ADMIT_SET;
	a.budget_bytes = bytes;
	a.period_ns = 0;
	a.rated_bytes = bytes ? a.rated_bytes : 0;
	return hawk_mem_admit(kobj, &a) ?: len;
}

static ssize_t flash_mb_per_s_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", hawk_pace_flash(to_hawk_mem(kobj)));
}

static ssize_t flash_mb_per_s_store(struct kobject *kobj, struct kobj_attribute *attr,
				    const char *buf, size_t len)
{
	u32 val;
	int ret = kstrtou32(buf, 10, &val);

	return ret ?: hawk_pace_set_flash(to_hawk_mem(kobj), val, len);
}

static ssize_t written_budget_bytes_show(struct kobject *kobj, struct kobj_attribute *attr,
					 char *buf)
{
	struct hawk_tier_admit a = { 0 };
	int ret = hawk_mem_admit(kobj, &a);

	return ret ?: sysfs_emit(buf, "%llu\n", (u64)a.spent_bytes);
}

static ssize_t scan_chunks_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", hawk_pool_scan_left(to_hawk_mem(kobj)));
}

static struct kobj_attribute kind_attr = __ATTR_RO(kind);
static struct kobj_attribute node_attr = __ATTR_RO(node);
static struct kobj_attribute bytes_attr = __ATTR_RO(bytes);
static struct kobj_attribute free_bytes_attr = __ATTR_RO(free_bytes);
static struct kobj_attribute quarantine_bytes_attr = __ATTR_RO(quarantine_bytes);
static struct kobj_attribute read_bytes_attr = __ATTR_RO(read_bytes);
static struct kobj_attribute write_bytes_attr = __ATTR_RO(write_bytes);
static struct kobj_attribute io_errors_attr = __ATTR_RO(io_errors);
static struct kobj_attribute exported_bytes_attr = __ATTR_RO(exported_bytes);
static struct kobj_attribute reclaimed_bytes_attr = __ATTR_RO(reclaimed_bytes);
static struct kobj_attribute writeback_permille_attr = __ATTR_RW(writeback_permille);
static struct kobj_attribute write_budget_bytes_attr = __ATTR_RW(write_budget_bytes);
static struct kobj_attribute flash_mb_per_s_attr = __ATTR_RW(flash_mb_per_s);
static struct kobj_attribute written_budget_bytes_attr = __ATTR_RO(written_budget_bytes);
static struct kobj_attribute scan_chunks_attr = __ATTR_RO(scan_chunks);

static struct attribute *hawk_mem_attrs[] = {
	&kind_attr.attr,
	&node_attr.attr,
	&bytes_attr.attr,
	&free_bytes_attr.attr,
	&quarantine_bytes_attr.attr,
	&read_bytes_attr.attr,
	&write_bytes_attr.attr,
	&submit_cpu_ns_attr.attr,
	&complete_cpu_ns_attr.attr,
	&checksum_cpu_ns_attr.attr,
	&copy_cpu_ns_attr.attr,
	&io_errors_attr.attr,
	&exported_bytes_attr.attr,
	&reclaimed_bytes_attr.attr,
	&writeback_permille_attr.attr,
	&write_budget_bytes_attr.attr,
	&written_budget_bytes_attr.attr,
	&flash_mb_per_s_attr.attr,
	&scan_chunks_attr.attr,
	NULL,
};
ATTRIBUTE_GROUPS(hawk_mem);

static void hawk_mem_free(struct kobject *kobj)
{
	struct hawk_mem *m = to_hawk_mem(kobj);

	/* A space that ends late may have called for the cleaner once more. */
	cancel_delayed_work_sync(&m->cleaner.work);
	hawk_mem_release(m);
	hawk_pool_file_free(m);
	free_percpu(m->count);
	kfree(m);
}

static const struct kobj_type hawk_mem_ktype = {
	.release = hawk_mem_free,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = hawk_mem_groups,
};

void hawk_sysfs_init_mem(struct hawk_mem *m)
{
	kobject_init(&m->kobj, &hawk_mem_ktype);
}

/* Shows the tier; it has its id. */
int hawk_sysfs_add(struct hawk_mem *m)
{
	return kobject_add(&m->kobj, &hawk_dev.misc.this_device->kobj, "tier%u", m->id);
}
