// SPDX-License-Identifier: GPL-2.0
/*
 * pace.c - what bringing blocks takes: HAWK_IOC_ESTIMATE, and how the pace is tuned
 *
 *	/sys/class/misc/hawk/pace/...
 *	/sys/class/misc/hawk/tierN/flash_mb_per_s
 *
 * Who writes a tunable reads all of them, changes one and sets all: two at once are kept
 * apart by hawk_tune_lock.
 */
#include "hawk.h"
#include "deliver.h"
#include "pace.h"

#include <linux/device.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

static DEFINE_MUTEX(hawk_tune_lock);	/* guards the tuning against lost changes */

/**
 * hawk_ioc_estimate() - HAWK_IOC_ESTIMATE
 * @f: caller's file, has a space
 * @data: struct hawk_estimate; the results are written into it
 *
 * Return: 0 or as &struct hawk_estimate tells; -E2BIG: too many items; -EFAULT; -ENOMEM.
 */
int hawk_ioc_estimate(struct hawk_file *f, void *data)
{
	struct hawk_estimate *arg = data;
	struct hawk_item *items;
	int ret;

	if (arg->reserved)
		return -EOPNOTSUPP;
	if (!arg->count)
		return -EINVAL;
	if (arg->count > HAWK_BATCH_MAX)
		return -E2BIG;
	items = vmemdup_user(u64_to_user_ptr(arg->items), array_size(arg->count, sizeof(*items)));
	if (IS_ERR(items))
		return PTR_ERR(items);
	ret = hawk_space_estimate(f->as->space, arg, items, ktime_get_ns());
	kvfree(items);
	return ret;
}

/* ---- sysfs ---- */

static void hawk_tuned(struct hawk_pace_tune *t, struct hawk_pace_measured *m)
{
	hawk_pace_tuned(hawk_deliver_pace(), t, m);
}

/* @set: where @val goes in all that is tuned.  Return: @len or a negative errno. */
static ssize_t hawk_tune(size_t set, u32 val, size_t len)
{
	struct hawk_pace_tune t;
	int ret;

	mutex_lock(&hawk_tune_lock);
	hawk_tuned(&t, NULL);
	*(u32 *)((u8 *)&t + set) = val;
	ret = hawk_pace_tune(hawk_deliver_pace(), &t);
	mutex_unlock(&hawk_tune_lock);
	return ret ?: len;
}

#define HAWK_TUNE_SHOW(_name)								\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{											\
	struct hawk_pace_tune t;							\
											\
	hawk_tuned(&t, NULL);								\
	return sysfs_emit(buf, "%u\n", t._name);					\
}

#define HAWK_TUNE_STORE(_name)								\
static ssize_t _name##_store(struct device *dev, struct device_attribute *attr,		\
			     const char *buf, size_t len)				\
{											\
	u32 val;									\
	int ret = kstrtou32(buf, 10, &val);						\
											\
	return ret ?: hawk_tune(offsetof(struct hawk_pace_tune, _name), val, len);	\
}											\
static DEVICE_ATTR_RW(_name)

HAWK_TUNE_SHOW(epsilon_permille);
HAWK_TUNE_STORE(epsilon_permille);
HAWK_TUNE_SHOW(link_mb_per_s);
HAWK_TUNE_STORE(link_mb_per_s);
HAWK_TUNE_SHOW(cap_percent);
HAWK_TUNE_STORE(cap_percent);
HAWK_TUNE_SHOW(quantum_bytes);
HAWK_TUNE_STORE(quantum_bytes);

static ssize_t dram_mb_per_s_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct hawk_pace_measured m;
	struct hawk_pace_tune t;

	hawk_tuned(&t, &m);
	return sysfs_emit(buf, "%u\n", t.dram_mb_per_s ?: m.dram_mb_per_s);
}
HAWK_TUNE_STORE(dram_mb_per_s);

static ssize_t mode_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct hawk_pace_tune t;

	hawk_tuned(&t, NULL);
	return sysfs_emit(buf, "%s\n", t.on ? "on" : "off");
}

static ssize_t mode_store(struct device *dev, struct device_attribute *attr, const char *buf,
			  size_t len)
{
	struct hawk_pace_tune t;
	bool on;
	int ret = kstrtobool(buf, &on);

	if (ret)
		return ret;
	mutex_lock(&hawk_tune_lock);
	hawk_tuned(&t, NULL);
	t.on = on;
	ret = hawk_pace_tune(hawk_deliver_pace(), &t);
	mutex_unlock(&hawk_tune_lock);
	return ret ?: len;
}
static DEVICE_ATTR_RW(mode);

static ssize_t deliveries_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct hawk_pace_measured m;
	struct hawk_pace_tune t;

	hawk_tuned(&t, &m);
	return sysfs_emit(buf, "%u\n", m.deliveries);
}
static DEVICE_ATTR_RO(deliveries);

static struct attribute *hawk_pace_attrs[] = {
	&dev_attr_mode.attr,
	&dev_attr_epsilon_permille.attr,
	&dev_attr_link_mb_per_s.attr,
	&dev_attr_cap_percent.attr,
	&dev_attr_quantum_bytes.attr,
	&dev_attr_dram_mb_per_s.attr,
	&dev_attr_deliveries.attr,
	NULL,
};

const struct attribute_group hawk_pace_group = {
	.name = "pace",
	.attrs = hawk_pace_attrs,
};

/**
 * hawk_pace_add_tier() - hawk_tier_add(), after which nothing is tuned for the new tier
 * @m: its memory; its id is set
 *
 * Context: hawk_device.lock held.
 * Return: as hawk_tier_add().
 */
int hawk_pace_add_tier(struct hawk_mem *m)
{
	int ret;

	lockdep_assert_held(&hawk_dev.lock);
	mutex_lock(&hawk_tune_lock);
	ret = hawk_tier_add(hawk_dev.engine, m->kind, m->chunks, &m->id);
	mutex_unlock(&hawk_tune_lock);
	return ret;
}

/* Bandwidth of a flash tier that is in force; 0: not known, or another kind. */
u32 hawk_pace_flash(const struct hawk_mem *m)
{
	struct hawk_pace_measured known;
	struct hawk_pace_tune t;

	if (m->kind != HAWK_TIER_BLK)
		return 0;
	hawk_tuned(&t, &known);
	return t.flash_mb_per_s[m->id] ?: known.flash_mb_per_s[m->id];
}

/* Return: @len or a negative errno. */
ssize_t hawk_pace_set_flash(const struct hawk_mem *m, u32 mb_per_s, size_t len)
{
	if (m->kind != HAWK_TIER_BLK)
		return -EINVAL;
	return hawk_tune(offsetof(struct hawk_pace_tune, flash_mb_per_s) + m->id * sizeof(u32),
			 mb_per_s, len);
}
