// SPDX-License-Identifier: GPL-2.0
/*
 * peers.c - hawk_peers.ko: an RDMA stack with peer memory clients, without a NIC
 *
 * It has the interface of kmod/peer/peer_mem.h and calls a client as such a stack does when
 * memory is registered: /dev/hawk-peers makes one registration per open file, and moves
 * bytes by the DMA addresses that the client gave, as a NIC would.
 *
 * hawk_peers_lock guards all: the client, the table of registrations, each of them.  It is
 * held while a client is called; a client calls back from a context of its own.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "../kmod/compat.h"
#include "../kmod/peer/peer_mem.h"
#include "device.h"

/**
 * struct hawk_peers_mr - an open file: at most one registration
 * @client: whose memory it is, NULL: nothing is registered
 * @context: the client's
 * @ticket: number that the client knows it by
 * @sg: DMA addresses, if @mapped
 * @mapped: bytes can be moved
 * @write: to the memory too
 * @hold: keeps the mapping when it is asked back, until it is asked once more
 * @asked: how often it was asked back
 */
struct hawk_peers_mr {
	const struct peer_memory_client *client;
	void *context;
	u32 ticket;
	struct sg_table sg;
	bool mapped;
	bool write;
	bool hold;
	u32 asked;
};

static DEFINE_MUTEX(hawk_peers_lock);
static DEFINE_XARRAY_ALLOC1(hawk_peers_mrs);
static const struct peer_memory_client *hawk_peers_client;
static struct platform_device *hawk_peers_device;

/* ---- the interface ---- */

static void hawk_peers_unmap(struct hawk_peers_mr *mr)
{
	if (!mr->mapped)
		return;
	WARN_ON(mr->client->dma_unmap(&mr->sg, mr->context, &hawk_peers_device->dev));
	mr->client->put_pages(&mr->sg, mr->context);
	mr->mapped = false;
}

static int hawk_peers_invalidate(void *reg_handle, u64 core_context)
{
	struct hawk_peers_mr *mr;

	mutex_lock(&hawk_peers_lock);
	WARN_ON(reg_handle != (void *)hawk_peers_client);
	mr = xa_load(&hawk_peers_mrs, core_context);
	if (mr) {
		mr->asked++;
		if (!mr->hold)
			hawk_peers_unmap(mr);
	}
	mutex_unlock(&hawk_peers_lock);
	return 0;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate_callback)
{
	void *handle = NULL;

	mutex_lock(&hawk_peers_lock);
	if (!hawk_peers_client) {
		hawk_peers_client = client;
		handle = (void *)client;
		*invalidate_callback = hawk_peers_invalidate;
	}
	mutex_unlock(&hawk_peers_lock);
	return handle;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *reg_handle)
{
	mutex_lock(&hawk_peers_lock);
	WARN_ON(reg_handle != (void *)hawk_peers_client || !xa_empty(&hawk_peers_mrs));
	hawk_peers_client = NULL;
	mutex_unlock(&hawk_peers_lock);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

/* ---- registrations ---- */

static int hawk_peers_map(struct hawk_peers_mr *mr, const struct hawk_peers_reg *reg)
{
	const struct peer_memory_client *c = mr->client;
	int ret, n = 0;

	ret = c->get_pages(reg->addr, reg->size, mr->write, 0, &mr->sg, mr->context, mr->ticket);
	if (ret)
		return ret;
	ret = c->get_page_size(mr->context) < PAGE_SIZE ? -EINVAL :
	      c->dma_map(&mr->sg, mr->context, &hawk_peers_device->dev, 0, &n);
	if (ret)
		c->put_pages(&mr->sg, mr->context);
	mr->mapped = !ret;
	return ret;
}

static int hawk_peers_reg(struct hawk_peers_mr *mr, void __user *uarg)
{
	struct hawk_peers_reg reg;
	int ret;

	if (copy_from_user(&reg, uarg, sizeof(reg)))
		return -EFAULT;
	if (reg.flags & ~(HAWK_PEERS_WRITE | HAWK_PEERS_HOLD))
		return -EINVAL;
	if (mr->client)
		return -EBUSY;
	if (!hawk_peers_client ||
	    !hawk_peers_client->acquire(reg.addr, reg.size, NULL, NULL, &mr->context))
		return -ENODEV;
	mr->client = hawk_peers_client;
	mr->write = reg.flags & HAWK_PEERS_WRITE;
	mr->hold = reg.flags & HAWK_PEERS_HOLD;
	mr->asked = 0;
	ret = xa_alloc(&hawk_peers_mrs, &mr->ticket, mr, xa_limit_31b, GFP_KERNEL);
	if (ret)
		goto err_release;
	ret = hawk_peers_map(mr, &reg);
	if (!ret)
		return 0;
	xa_erase(&hawk_peers_mrs, mr->ticket);
err_release:
	mr->client->release(mr->context);
	mr->client = NULL;
	return ret;
}

static int hawk_peers_dereg(struct hawk_peers_mr *mr)
{
	if (!mr->client)
		return -ENXIO;
	hawk_peers_unmap(mr);
	xa_erase(&hawk_peers_mrs, mr->ticket);
	mr->client->release(mr->context);
	mr->client = NULL;
	return 0;
}

static int hawk_peers_move(void *who, const struct hawk_imp_rw *rw, void *buf)
{
	struct hawk_peers_mr *mr = who;
	bool write = rw->flags & HAWK_IMP_RW_WRITE;

	if (!mr->mapped)
		return -ENXIO;
	if (write && !mr->write)
		return -EACCES;
	return hawk_model_dma(&hawk_peers_device->dev, &mr->sg, rw->offset, buf, rw->len, write);
}

static int hawk_peers_info(struct hawk_peers_mr *mr, void __user *uarg)
{
	struct hawk_peers_info info = {
		.registered = mr->client != NULL, .mapped = mr->mapped, .asked = mr->asked,
	};
	struct scatterlist *sg;
	int i;

	if (mr->mapped)
		for_each_sgtable_dma_sg(&mr->sg, sg, i)
			info.bytes += sg_dma_len(sg);
	return copy_to_user(uarg, &info, sizeof(info)) ? -EFAULT : 0;
}

/* ---- the file ---- */

static int hawk_peers_open(struct inode *inode, struct file *file)
{
	file->private_data = kzalloc(sizeof(struct hawk_peers_mr), GFP_KERNEL);
	return file->private_data ? nonseekable_open(inode, file) : -ENOMEM;
}

static int hawk_peers_release(struct inode *inode, struct file *file)
{
	mutex_lock(&hawk_peers_lock);
	hawk_peers_dereg(file->private_data);
	mutex_unlock(&hawk_peers_lock);
	kfree(file->private_data);
	return 0;
}

static long hawk_peers_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *uarg = (void __user *)arg;
	struct hawk_peers_mr *mr = file->private_data;
	int ret = -ENOTTY;

	mutex_lock(&hawk_peers_lock);
	if (cmd == HAWK_PEERS_IOC_REG)
		ret = hawk_peers_reg(mr, uarg);
	else if (cmd == HAWK_PEERS_IOC_DEREG)
		ret = hawk_peers_dereg(mr);
	else if (cmd == HAWK_PEERS_IOC_RW)
		ret = hawk_model_rw(uarg, HAWK_IMP_RW_WRITE, hawk_peers_move, mr);
	else if (cmd == HAWK_PEERS_IOC_INFO)
		ret = hawk_peers_info(mr, uarg);
	mutex_unlock(&hawk_peers_lock);
	return ret;
}

static const struct file_operations hawk_peers_fops = {
	.owner = THIS_MODULE,
	.open = hawk_peers_open,
	.release = hawk_peers_release,
	.unlocked_ioctl = hawk_peers_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice hawk_peers_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "hawk-peers",
	.mode = 0600,
	.fops = &hawk_peers_fops,
};

static int __init hawk_peers_init(void)
{
	return hawk_model_start(&hawk_peers_misc, &hawk_peers_device);
}

static void __exit hawk_peers_exit(void)
{
	hawk_model_stop(&hawk_peers_misc, hawk_peers_device);
}

module_init(hawk_peers_init);
module_exit(hawk_peers_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("Lab model: an RDMA stack with peer memory clients");
MODULE_LICENSE("GPL");
MODULE_INFO(test, "Y");
