// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl.c - the table of calls, and what is the same for all of them
 *
 * Every structure begins with its size and its flags.  A caller's structure may
 * be older (shorter, but not below the first version: EINVAL) or newer (longer:
 * its unknown tail must be zero, else E2BIG) than the kernel's.
 */
#include "hawk.h"
#include "job.h"
#include "pace.h"

#include <linux/capability.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

union hawk_ioctl_arg {
	struct {
		__u32 size;
		__u32 flags;
	} head;
	struct hawk_query query;
	struct hawk_tier_add tier_add;
	struct hawk_tier_remove tier_remove;
	struct hawk_tier_info tier_info;
	struct hawk_space_create space_create;
	struct hawk_space_attach space_attach;
	struct hawk_space_destroy space_destroy;
	struct hawk_space_info space_info;
	struct hawk_ring_setup ring_setup;
	struct hawk_stats stats;
	struct hawk_batch batch;
	struct hawk_lease_release lease_release;
	struct hawk_space_set space_set;
	struct hawk_pin_query pin_query;
	struct hawk_cancel cancel;
	struct hawk_export_call export;
	struct hawk_export_revoke export_revoke;
	struct hawk_frame_info frame_info;
	struct hawk_draft_open draft_open;
	struct hawk_draft_close draft_close;
	struct hawk_gather gather;
	struct hawk_seq_batch seq;
	struct hawk_seq_map seq_map;
	struct hawk_elastic elastic;
	struct hawk_tier_admit tier_admit;
	struct hawk_estimate estimate;
	struct hawk_phase phase;
};

#define HAWK_CALL_ADMIN		(1u << 0)	/* needs CAP_SYS_ADMIN */
#define HAWK_CALL_SPACE		(1u << 1)	/* the file must have a space */
#define HAWK_CALL_MORE		(1u << 2)	/* with E2BIG the answer tells how much there is */

/**
 * struct hawk_call - an ioctl
 * @cmd: its whole number
 * @size: of the structure this kernel knows, bytes
 * @min_size: of the first version's, bytes
 * @flags: flags of the structure that are known
 * @call: HAWK_CALL_*
 * @fn: does it; NULL for batches
 * @end: after @fn has succeeded: its answer has been copied to the caller, or not
 */
struct hawk_call {
	unsigned int cmd;
	u32 size;
	u32 min_size;
	u32 flags;
	u32 call;
	int (*fn)(struct hawk_file *f, void *arg);
	void (*end)(void *arg, bool copied);
};

static int hawk_ioc_space_create(struct hawk_file *f, void *arg)
{
	return hawk_as_create(f, arg);
}

static int hawk_ioc_space_attach(struct hawk_file *f, void *arg)
{
	return hawk_as_attach(f, arg);
}

static int hawk_ioc_space_set(struct hawk_file *f, void *arg)
{
	return hawk_as_set(arg);
}

static int hawk_ioc_space_destroy(struct hawk_file *f, void *arg)
{
	return hawk_as_unlink(arg);
}

static int hawk_ioc_space_info(struct hawk_file *f, void *arg)
{
	const struct hawk_as *as = hawk_file_as(f);
	struct hawk_space_info *info = arg;
	u32 size = info->size;

	*info = as->info;
	info->size = size;
	return 0;
}

static int hawk_ioc_ring_setup(struct hawk_file *f, void *arg)
{
	return hawk_cq_setup(f, arg);
}

static int hawk_ioc_stats(struct hawk_file *f, void *arg)
{
	struct hawk_as *as = hawk_file_as(f);

	hawk_space_stats(as->space, arg);
	hawk_stats_refresh(as);
	return 0;
}

static int hawk_ioc_lease_release(struct hawk_file *f, void *arg)
{
	const struct hawk_lease_release *rel = arg;

	return hawk_lease_release(f, rel->lease);
}

#define HAWK_CALL(_cmd, _type, _last, _flags, _call, _fn)		\
	[_IOC_NR(_cmd)] = {						\
		.cmd = _cmd,						\
		.size = sizeof(struct _type),				\
		.min_size = offsetofend(struct _type, _last),		\
		.flags = _flags,					\
		.call = _call,						\
		.fn = _fn,						\
	}
#define HAWK_CALL_BATCH(_cmd)						\
	HAWK_CALL(_cmd, hawk_batch, tier, ~0u, HAWK_CALL_SPACE, NULL)

static const struct hawk_call hawk_calls[] = {
	HAWK_CALL(HAWK_IOC_QUERY, hawk_query, frame_align, 0, 0, hawk_ioc_query),
	HAWK_CALL(HAWK_IOC_TIER_ADD, hawk_tier_add, tier, HAWK_TIER_PERSIST, HAWK_CALL_ADMIN,
		  hawk_ioc_tier_add),
	HAWK_CALL(HAWK_IOC_TIER_REMOVE, hawk_tier_remove, reserved,
		  HAWK_TIER_FORCE | HAWK_TIER_REOPEN, HAWK_CALL_ADMIN, hawk_ioc_tier_remove),
	HAWK_CALL(HAWK_IOC_TIER_INFO, hawk_tier_info, io_errors, 0, 0, hawk_ioc_tier_info),
	HAWK_CALL(HAWK_IOC_SPACE_CREATE, hawk_space_create, name,
		  HAWK_SPACE_NAMED | HAWK_SPACE_SHIFT, 0, hawk_ioc_space_create),
	HAWK_CALL(HAWK_IOC_SPACE_ATTACH, hawk_space_attach, name, HAWK_ATTACH_FD, 0,
		  hawk_ioc_space_attach),
	HAWK_CALL(HAWK_IOC_SPACE_DESTROY, hawk_space_destroy, name, 0, 0,
		  hawk_ioc_space_destroy),
	HAWK_CALL(HAWK_IOC_SPACE_INFO, hawk_space_info, name, 0, HAWK_CALL_SPACE,
		  hawk_ioc_space_info),
	HAWK_CALL(HAWK_IOC_RING_SETUP, hawk_ring_setup, ring_bytes, 0, 0,
		  hawk_ioc_ring_setup),
	HAWK_CALL(HAWK_IOC_STATS, hawk_stats, chunks, 0, HAWK_CALL_SPACE, hawk_ioc_stats),
	HAWK_CALL(HAWK_IOC_SPACE_SET, hawk_space_set, name, 0, 0, hawk_ioc_space_set),
	HAWK_CALL(HAWK_IOC_PIN_QUERY, hawk_pin_query, limit_bytes, 0, HAWK_CALL_SPACE,
		  hawk_ioc_pin_query),
	HAWK_CALL_BATCH(HAWK_IOC_ALLOC),
	HAWK_CALL_BATCH(HAWK_IOC_PUT),
	HAWK_CALL_BATCH(HAWK_IOC_LOOKUP),
	HAWK_CALL_BATCH(HAWK_IOC_PIN),
	HAWK_CALL_BATCH(HAWK_IOC_UNPIN),
	HAWK_CALL_BATCH(HAWK_IOC_GET),
	HAWK_CALL_BATCH(HAWK_IOC_RELOAD),
	HAWK_CALL_BATCH(HAWK_IOC_FORK),
	HAWK_CALL_BATCH(HAWK_IOC_UNSHARE),
	HAWK_CALL_BATCH(HAWK_IOC_FREE),
	HAWK_CALL_BATCH(HAWK_IOC_TRANSLATE),
	HAWK_CALL(HAWK_IOC_LEASE_RELEASE, hawk_lease_release, lease, 0, HAWK_CALL_SPACE,
		  hawk_ioc_lease_release),
	HAWK_CALL(HAWK_IOC_CANCEL, hawk_cancel, reserved, HAWK_CANCEL_ALL, HAWK_CALL_SPACE,
		  hawk_ioc_cancel),
	[_IOC_NR(HAWK_IOC_EXPORT)] = {
		.cmd = HAWK_IOC_EXPORT,
		.size = sizeof(struct hawk_export),
		.min_size = offsetofend(struct hawk_export, reserved),
		.flags = HAWK_EXPORT_REVOCABLE | HAWK_EXPORT_READ_ONLY,
		.call = HAWK_CALL_SPACE,
		.fn = hawk_ioc_export,
		.end = hawk_ioc_export_end,
	},
	HAWK_CALL(HAWK_IOC_EXPORT_REVOKE, hawk_export_revoke, deadline_ns, 0, HAWK_CALL_SPACE,
		  hawk_ioc_export_revoke),
	HAWK_CALL(HAWK_IOC_FRAME_INFO, hawk_frame_info, reserved, 0, HAWK_CALL_SPACE,
		  hawk_ioc_frame_info),
	HAWK_CALL(HAWK_IOC_DRAFT_OPEN, hawk_draft_open, bytes, 0, HAWK_CALL_SPACE,
		  hawk_ioc_draft_open),
	HAWK_CALL(HAWK_IOC_DRAFT_CLOSE, hawk_draft_close, head, 0, HAWK_CALL_SPACE,
		  hawk_ioc_draft_close),
	HAWK_CALL(HAWK_IOC_GATHER, hawk_gather, tier,
		  HAWK_BATCH_ASYNC | HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME, HAWK_CALL_SPACE,
		  hawk_ioc_gather),
	HAWK_CALL(HAWK_IOC_SEQ, hawk_seq_batch, ops, 0, HAWK_CALL_SPACE, hawk_ioc_seq),
	HAWK_CALL(HAWK_IOC_SEQ_MAP, hawk_seq_map, gen, 0,
		  HAWK_CALL_SPACE | HAWK_CALL_MORE, hawk_ioc_seq_map),
	HAWK_CALL(HAWK_IOC_TIER_ADMIT, hawk_tier_admit, reserved, HAWK_ADMIT_SET, 0,
		  hawk_ioc_tier_admit),
	HAWK_CALL(HAWK_IOC_ESTIMATE, hawk_estimate, split_ns, HAWK_ESTIMATE_GATHER,
		  HAWK_CALL_SPACE, hawk_ioc_estimate),
	HAWK_CALL(HAWK_IOC_PHASE, hawk_phase, reserved, HAWK_PHASE_PREFILL, HAWK_CALL_SPACE,
		  hawk_ioc_phase),
	HAWK_CALL(HAWK_IOC_ELASTIC, hawk_elastic, cycles, HAWK_ELASTIC_SET, HAWK_CALL_SPACE,
		  hawk_ioc_elastic),
};

static const struct hawk_call *hawk_call_find(unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd);

	if (nr >= ARRAY_SIZE(hawk_calls))
		return NULL;
	nr = array_index_nospec(nr, ARRAY_SIZE(hawk_calls));
	return hawk_calls[nr].cmd == cmd ? &hawk_calls[nr] : NULL;
}

/* @usize: the caller's structure, bytes */
static int hawk_arg_get(union hawk_ioctl_arg *a, const struct hawk_call *call,
			void __user *uarg, u32 *usize)
{
	int ret;

	if (get_user(*usize, (u32 __user *)uarg))
		return -EFAULT;
	if (*usize < call->min_size)
		return -EINVAL;
	if (*usize > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(a, call->size, uarg, *usize);
	if (ret)
		return ret;
	a->head.size = *usize;	/* it may have been changed between the two reads */
	return a->head.flags & ~call->flags ? -EOPNOTSUPP : 0;
}

/* What is the same for all calls, however they were submitted. */
static int hawk_call_begin(struct hawk_file *f, const struct hawk_call *call,
			   union hawk_ioctl_arg *a, void __user *uarg, u32 *usize)
{
	int ret;

	if ((call->call & HAWK_CALL_ADMIN) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	ret = hawk_arg_get(a, call, uarg, usize);
	if (ret)
		return ret;
	return (call->call & HAWK_CALL_SPACE) && !hawk_file_as(f) ? -ENXIO : 0;
}

/**
 * hawk_batch_arg_get() - check and copy in the argument of a batch call
 * @f: caller's file
 * @cmd: number of the call
 * @arg: out, its argument
 * @uarg: where it lies
 * @usize: out, bytes of it that the caller knows
 *
 * Return: 0; -ENOTTY: @cmd is no batch call; else as the ioctl.
 */
int hawk_batch_arg_get(struct hawk_file *f, unsigned int cmd, struct hawk_batch *arg,
		       void __user *uarg, u32 *usize)
{
	const struct hawk_call *call = hawk_call_find(cmd);
	union hawk_ioctl_arg a;
	int ret;

	if (!call || call->fn)
		return -ENOTTY;
	ret = hawk_call_begin(f, call, &a, uarg, usize);
	if (!ret)
		*arg = a.batch;
	return ret;
}

/* Return: 0 or -EFAULT. */
int hawk_batch_arg_put(const struct hawk_batch *arg, void __user *uarg, u32 usize)
{
	return copy_to_user(uarg, arg, min_t(u32, usize, sizeof(*arg))) ? -EFAULT : 0;
}

long hawk_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct hawk_call *call = hawk_call_find(cmd);
	struct hawk_file *f = file->private_data;
	void __user *uarg = (void __user *)arg;
	union hawk_ioctl_arg a;
	u32 usize;
	int ret;

	if (!call)
		return -ENOTTY;
	ret = hawk_call_begin(f, call, &a, uarg, &usize);
	if (ret)
		return ret;
	ret = call->fn ? call->fn(f, &a) : hawk_batch(f, _IOC_NR(cmd), &a.batch);
	if (ret && !(ret == -E2BIG && (call->call & HAWK_CALL_MORE)))
		return ret;
	if (copy_to_user(uarg, &a, min(usize, call->size)))
		ret = -EFAULT;
	if (call->end)
		call->end(&a, !ret);
	return ret;
}
