// SPDX-License-Identifier: GPL-2.0
/*
 * char.c - /dev/hawk_npuN: commands on blocks (uapi/hawk_npu.h)
 *
 * A caller names blocks in a space of his (hawk_provider_hold()), and byte offsets in
 * them, which are checked here against the size of a block: the firmware knows of no
 * tenants.  What it puts into a scratch area is copied to the caller only for the call
 * that made it put it there.
 */
#include "hawk_npu.h"

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../uapi/hawk_npu.h"

#define HAWK_NPU_TILE	16u

static_assert(HAWK_NPU_BLOCKS_MAX == HAWK_NPU_BLOCKS);
static_assert(HAWK_NPU_QUERY_ELEMS == HAWK_NPU_QUERY_MAX);
static_assert(HAWK_NPU_QUERY_ELEMS * sizeof(u16) <= HAWK_NPU_SCRATCH_OUT);
static_assert(HAWK_NPU_QUERY_ELEMS * sizeof(u32) <=
	      HAWK_NPU_SCRATCH_BYTES - HAWK_NPU_SCRATCH_OUT);
static_assert(HAWK_NPU_LAYOUT_TILES == HAWK_NPU_TILES && HAWK_NPU_LAYOUT_NZ == HAWK_NPU_NZ);

union hawk_npu_arg {
	u32 size;
	struct hawk_npu_info info;
	struct hawk_npu_checksum checksum;
	struct hawk_npu_transform transform;
	struct hawk_npu_attention attention;
};

/* In the device, for one command. */
static int hawk_npu_run(struct hawk_npu *npu, struct hawk_npu_cmd *cmd)
{
	u32 gen = READ_ONCE(npu->mem_gen);
	int ret;

	if (!hawk_npu_enter(npu))
		return -ENODEV;
	ret = hawk_npu_exec(npu, cmd);
	if (!ret && hawk_npu_board_read(npu, mem_gen) != gen)
		ret = -ENODEV;	/* what was read is not what was written once */
	hawk_npu_leave(npu);
	return ret;
}

static struct hawk_provider_hold *hawk_npu_hold(struct hawk_npu *npu, int fd, u64 ulids, u32 n)
{
	struct hawk_provider_hold *h;
	u64 *lids;

	if (!n || n > HAWK_NPU_BLOCKS_MAX)
		return ERR_PTR(-EINVAL);
	lids = memdup_user(u64_to_user_ptr(ulids), array_size(n, sizeof(*lids)));
	if (IS_ERR(lids))
		return ERR_CAST(lids);
	h = hawk_provider_hold(fd, npu, lids, n, false);
	kfree(lids);
	return h;
}

/* ---- the calls ---- */

static int hawk_npu_ioc_info(struct hawk_npu *npu, union hawk_npu_arg *arg)
{
	struct hawk_npu_info *info = &arg->info;
	u32 size = info->size;

	if (info->flags || info->reserved)
		return -EOPNOTSUPP;
	*info = (struct hawk_npu_info){
		.size = size,
		.abi_version = HAWK_NPU_ABI_VERSION,
		.tier = READ_ONCE(npu->tier),
		.mem_bytes = npu->mem_bytes,
		.boot = READ_ONCE(npu->boot),
	};
	if (READ_ONCE(npu->state) == HAWK_NPU_READY)
		info->flags |= HAWK_NPU_INFO_READY;
	if (READ_ONCE(npu->features) & HAWK_NPU_FEAT_DMA)
		info->flags |= HAWK_NPU_INFO_DMA;
	if (IS_ENABLED(CONFIG_PCI_P2PDMA))
		info->flags |= HAWK_NPU_INFO_P2P;
	return 0;
}

static int hawk_npu_ioc_checksum(struct hawk_npu *npu, union hawk_npu_arg *arg)
{
	const struct hawk_npu_checksum *sum = &arg->checksum;
	u32 __user *out = u64_to_user_ptr(sum->sums);
	struct hawk_provider_hold *h;
	int ret = 0;
	u32 i;

	if (sum->flags)
		return -EOPNOTSUPP;
	h = hawk_npu_hold(npu, sum->fd, sum->lids, sum->count);
	if (IS_ERR(h))
		return PTR_ERR(h);
	for (i = 0; !ret && i < h->n; i++) {
		struct hawk_npu_cmd cmd = {
			.sqe.op = HAWK_NPU_OP_CRC32C,
			.sqe.addr = HAWK_NPU_MEM_OFF + h->at[i].off,
			.sqe.len = h->block_bytes,
		};

		ret = hawk_npu_run(npu, &cmd);
		if (!ret && put_user((u32)cmd.result, &out[i]))
			ret = -EFAULT;
	}
	hawk_provider_unhold(h);
	return ret;
}

/* Bytes of a row of tiles' worth of rows, or of rows; 0: a wrong shape. */
static u64 hawk_npu_matrices(const struct hawk_npu_transform *t, u32 layout)
{
	u64 rows = layout == HAWK_NPU_LAYOUT_ROWS ? t->rows : round_up((u64)t->rows, HAWK_NPU_TILE);
	u64 bytes;

	if (layout > HAWK_NPU_LAYOUT_NZ)
		return 0;
	if (check_mul_overflow(rows, (u64)t->dim * t->elem, &bytes) ||
	    check_mul_overflow(bytes, (u64)t->heads, &bytes))
		return 0;
	return bytes;
}

static bool hawk_npu_fits(u64 off, u64 bytes, u32 block_bytes)
{
	return bytes && off <= block_bytes && bytes <= block_bytes - off;
}

static bool hawk_npu_transform_good(const struct hawk_npu_transform *t, u32 block_bytes)
{
	if (t->heads > U16_MAX || t->dim > U16_MAX ||
	    (t->elem != 1 && t->elem != 2 && t->elem != 4))
		return false;
	return hawk_npu_fits(t->from_off, hawk_npu_matrices(t, t->from_layout), block_bytes) &&
	       hawk_npu_fits(t->to_off, hawk_npu_matrices(t, t->to_layout), block_bytes);
}

static int hawk_npu_transform(struct hawk_npu *npu, const struct hawk_npu_transform *t,
			      const struct hawk_provider_hold *h)
{
	struct hawk_npu_cmd cmd = {
		.sqe.op = HAWK_NPU_OP_TRANSFORM,
		.sqe.addr = HAWK_NPU_MEM_OFF + h->at[0].off + t->from_off,
		.sqe.addr2 = HAWK_NPU_MEM_OFF + h->at[1].off + t->to_off,
	};
	struct hawk_npu_shape shape = {
		.rows = t->rows, .heads = t->heads, .dim = t->dim, .elem = t->elem,
		.from = t->from_layout, .to = t->to_layout,
	};

	if (!hawk_npu_transform_good(t, h->block_bytes))
		return -EINVAL;
	cmd.sqe.len = max(hawk_npu_matrices(t, t->from_layout),
			  hawk_npu_matrices(t, t->to_layout));
	memcpy(cmd.sqe.arg, &shape, sizeof(shape));
	return hawk_npu_run(npu, &cmd);
}

static int hawk_npu_ioc_transform(struct hawk_npu *npu, union hawk_npu_arg *arg)
{
	const struct hawk_npu_transform *t = &arg->transform;
	u64 lids[] = { t->from, t->to };
	struct hawk_provider_hold *h;
	int ret;

	if (t->flags || t->reserved)
		return -EOPNOTSUPP;
	h = hawk_provider_hold(t->fd, npu, lids, ARRAY_SIZE(lids), true);
	if (IS_ERR(h))
		return PTR_ERR(h);
	ret = hawk_npu_transform(npu, t, h);
	hawk_provider_unhold(h);
	return ret;
}

static bool hawk_npu_attention_good(const struct hawk_npu_attention *a, u32 block_bytes)
{
	u64 matrices;

	if (!a->heads || !a->kv_heads || !a->dim || a->heads > U16_MAX || a->dim > U16_MAX ||
	    a->heads * a->dim > HAWK_NPU_QUERY_ELEMS || a->heads % a->kv_heads)
		return false;
	if (!a->block_tokens || a->block_tokens > U16_MAX || a->block_tokens % HAWK_NPU_TILE ||
	    a->dim % HAWK_NPU_TILE)
		return false;
	if (!a->tokens || (a->tokens - 1) / a->block_tokens != a->count - 1)
		return false;
	matrices = (u64)a->kv_heads * a->block_tokens * a->dim * sizeof(u16);
	return hawk_npu_fits(a->k_off, matrices, block_bytes) &&
	       hawk_npu_fits(a->v_off, matrices, block_bytes);
}

static int hawk_npu_attention(struct hawk_npu *npu, const struct hawk_npu_attention *a,
			      const struct hawk_provider_hold *h, void *query, void *out,
			      u64 *list)
{
	struct hawk_npu_attend shape = {
		.heads = a->heads, .kv_heads = a->kv_heads, .dim = a->dim,
		.block_tokens = a->block_tokens, .tokens = a->tokens, .scale = a->scale,
		.k_off = a->k_off, .v_off = a->v_off,
	};
	struct hawk_npu_cmd cmd = {
		.sqe.op = HAWK_NPU_OP_ATTEND,
		.sqe.len = h->block_bytes,
		.sqe.nlist = h->n,
		.list = list, .list_bytes = h->n * sizeof(*list),
		.in = query, .in_bytes = a->heads * a->dim * sizeof(u16),
		.out = out, .out_bytes = a->heads * a->dim * sizeof(u32),
	};
	u32 i;
	int ret;

	for (i = 0; i < h->n; i++)
		list[i] = HAWK_NPU_MEM_OFF + h->at[i].off;
	memcpy(cmd.sqe.arg, &shape, sizeof(shape));
	if (copy_from_user(query, u64_to_user_ptr(a->query), cmd.in_bytes))
		return -EFAULT;
	ret = hawk_npu_run(npu, &cmd);
	if (!ret && copy_to_user(u64_to_user_ptr(a->out), out, cmd.out_bytes))
		ret = -EFAULT;
	return ret;
}

static int hawk_npu_ioc_attention(struct hawk_npu *npu, union hawk_npu_arg *arg)
{
	const struct hawk_npu_attention *a = &arg->attention;
	struct hawk_provider_hold *h;
	u8 *buf;
	int ret;

	if (a->flags)
		return -EOPNOTSUPP;
	h = hawk_npu_hold(npu, a->fd, a->lids, a->count);
	if (IS_ERR(h))
		return PTR_ERR(h);
	ret = -EINVAL;
	if (!hawk_npu_attention_good(a, h->block_bytes))
		goto out_unhold;
	ret = -ENOMEM;
	buf = kvmalloc(HAWK_NPU_SCRATCH_BYTES + HAWK_NPU_LIST_BYTES, GFP_KERNEL_ACCOUNT);
	if (!buf)
		goto out_unhold;
	ret = hawk_npu_attention(npu, a, h, buf, buf + HAWK_NPU_SCRATCH_OUT,
				 (u64 *)(buf + HAWK_NPU_SCRATCH_BYTES));
	kvfree(buf);
out_unhold:
	hawk_provider_unhold(h);
	return ret;
}

/* ---- the device ---- */

/**
 * struct hawk_npu_call - a call
 * @run: makes it; its argument has been copied in
 * @size: of the argument of version 1
 * @out: the argument is copied out
 */
struct hawk_npu_call {
	int (*run)(struct hawk_npu *npu, union hawk_npu_arg *arg);
	u32 size;
	bool out;
};

static const struct hawk_npu_call hawk_npu_calls[] = {
	{ hawk_npu_ioc_info, sizeof(struct hawk_npu_info), true },
	{ hawk_npu_ioc_checksum, sizeof(struct hawk_npu_checksum) },
	{ hawk_npu_ioc_transform, sizeof(struct hawk_npu_transform) },
	{ hawk_npu_ioc_attention, sizeof(struct hawk_npu_attention) },
};

static long hawk_npu_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	u32 nr = _IOC_NR(cmd) - _IOC_NR(HAWK_NPU_IOC_INFO), size;
	struct hawk_npu *npu = file->private_data;
	void __user *uptr = (void __user *)uarg;
	const struct hawk_npu_call *call;
	union hawk_npu_arg arg = { };
	int ret;

	if (cmd != _IO(HAWK_NPU_IOC_MAGIC, _IOC_NR(cmd)) || nr >= ARRAY_SIZE(hawk_npu_calls))
		return -ENOTTY;
	call = &hawk_npu_calls[array_index_nospec(nr, ARRAY_SIZE(hawk_npu_calls))];
	if (get_user(size, (u32 __user *)uptr))
		return -EFAULT;
	if (size < call->size)
		return -EINVAL;
	ret = copy_struct_from_user(&arg, call->size, uptr, size);
	if (ret)
		return ret;
	arg.size = size;	/* what it was when it was looked at */
	ret = call->run(npu, &arg);
	if (!ret && call->out && copy_to_user(uptr, &arg, call->size))
		ret = -EFAULT;
	return ret;
}

/* It cannot go while it is opened: misc_deregister() waits for that. */
static int hawk_npu_open(struct inode *inode, struct file *file)
{
	struct hawk_npu *npu = container_of(file->private_data, struct hawk_npu, misc);

	kref_get(&npu->ref);
	file->private_data = npu;
	return 0;
}

static int hawk_npu_file_release(struct inode *inode, struct file *file)
{
	hawk_npu_put(file->private_data);
	return 0;
}

static const struct file_operations hawk_npu_fops = {
	.owner = THIS_MODULE,
	.open = hawk_npu_open,
	.release = hawk_npu_file_release,
	.unlocked_ioctl = hawk_npu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/**
 * hawk_npu_char_add() - make /dev/hawk_npuN
 * @npu: the device
 *
 * Return: 0 or a negative errno.
 */
int hawk_npu_char_add(struct hawk_npu *npu)
{
	snprintf(npu->name, sizeof(npu->name), "hawk_npu%d", npu->id);
	npu->misc = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR,
		.name = npu->name,
		.fops = &hawk_npu_fops,
		.parent = &npu->pdev->dev,
		.mode = 0660,
	};
	return misc_register(&npu->misc);
}

/* Open files stay, and find the device gone. */
void hawk_npu_char_remove(struct hawk_npu *npu)
{
	misc_deregister(&npu->misc);
}
