// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs.c - looking at the device; faults for tests (debugfs)
 */
#include "hawk_npu.h"

#include <linux/debugfs.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

static struct hawk_npu *to_hawk_npu(struct device *dev)
{
	return dev_get_drvdata(dev);
}

static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	static const char * const name[] = {
		[HAWK_NPU_DOWN] = "down",
		[HAWK_NPU_READY] = "ready",
		[HAWK_NPU_RESETTING] = "resetting",
		[HAWK_NPU_GONE] = "gone",
	};

	return sysfs_emit(buf, "%s\n", name[READ_ONCE(to_hawk_npu(dev)->state)]);
}
static DEVICE_ATTR_RO(state);

static ssize_t boot_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_hawk_npu(dev)->boot));
}
static DEVICE_ATTR_RO(boot);

static ssize_t tier_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(to_hawk_npu(dev)->tier));
}
static DEVICE_ATTR_RO(tier);

/* Who moves the bytes of blocks as long as there is firmware. */
static ssize_t mover_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(to_hawk_npu(dev)->features) & HAWK_NPU_FEAT_DMA ?
			  "firmware" : "cpu");
}
static DEVICE_ATTR_RO(mover);

#define HAWK_NPU_COUNTER(name)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf) \
{										\
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_hawk_npu(dev)->name)); \
}										\
static DEVICE_ATTR_RO(name)

HAWK_NPU_COUNTER(resets);
HAWK_NPU_COUNTER(timeouts);
HAWK_NPU_COUNTER(crashes);
HAWK_NPU_COUNTER(protocol_errors);
HAWK_NPU_COUNTER(ecc_errors);
HAWK_NPU_COUNTER(moved_dma);
HAWK_NPU_COUNTER(moved_cpu);

static struct attribute *hawk_npu_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_boot.attr,
	&dev_attr_tier.attr,
	&dev_attr_mover.attr,
	&dev_attr_resets.attr,
	&dev_attr_timeouts.attr,
	&dev_attr_crashes.attr,
	&dev_attr_protocol_errors.attr,
	&dev_attr_ecc_errors.attr,
	&dev_attr_moved_dma.attr,
	&dev_attr_moved_cpu.attr,
	NULL
};

static const struct attribute_group hawk_npu_group = {
	.attrs = hawk_npu_attrs,
};

const struct attribute_group *hawk_npu_groups[] = {
	&hawk_npu_group,
	NULL
};

/* ---- faults ---- */

static struct dentry *hawk_npu_debugfs;

/* "KIND [NUMBER]": HAWK_NPU_FAULT_*, and the offset in the tier or the seed that it needs. */
static ssize_t hawk_npu_fault_write(struct file *file, const char __user *ubuf, size_t len,
				    loff_t *pos)
{
	struct hawk_npu *npu = file->private_data;
	struct hawk_npu_cmd cmd = { .sqe.op = HAWK_NPU_OP_FAULT };
	char buf[48] = "";
	u32 kind;
	u64 arg = 0;
	int ret;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, len))
		return -EFAULT;
	if (sscanf(buf, "%u %llu", &kind, &arg) < 1)
		return -EINVAL;
	cmd.sqe.addr = HAWK_NPU_MEM_OFF + arg;
	cmd.sqe.arg[0] = kind;
	cmd.sqe.arg[1] = arg;
	if (!hawk_npu_enter(npu))
		return -ENODEV;
	ret = hawk_npu_exec(npu, &cmd);
	hawk_npu_leave(npu);
	return ret ?: len;
}

static const struct file_operations hawk_npu_fault_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = hawk_npu_fault_write,
};

void hawk_npu_debugfs_add(struct hawk_npu *npu)
{
	char name[16];

	snprintf(name, sizeof(name), "npu%d", npu->id);
	npu->debugfs = debugfs_create_dir(name, hawk_npu_debugfs);
	debugfs_create_file("fault", 0200, npu->debugfs, npu, &hawk_npu_fault_fops);
}

void hawk_npu_debugfs_remove(struct hawk_npu *npu)
{
	debugfs_remove_recursive(npu->debugfs);
}

void hawk_npu_debugfs_init(void)
{
	hawk_npu_debugfs = debugfs_create_dir("hawk_npu", NULL);
}

void hawk_npu_debugfs_exit(void)
{
	debugfs_remove_recursive(hawk_npu_debugfs);
}
