// SPDX-License-Identifier: GPL-2.0
/*
 * space.c - address spaces: made, named, attached, ended
 *
 * A space lives as long as a file, a move or its name refers to it.  Mappings
 * hold their file, so when a space ends nobody can reach its frames through a
 * page table any more.  Only its chunks remain then, dirty, for the cleaner.
 *
 * A new space has its minima before anybody can use it.  If others own too much above
 * theirs, its maker takes that back (reclaim.c) while the space is in the list already,
 * so that a tier which leaves meets it; its name is taken, but nobody attaches it and it is
 * in no file.  Before that its maker looks for its blocks in pools (pool_scan.c); for so
 * long it hides from walks, and whoever cannot go on without it has its maker stop.
 *
 * A name ends once: by destroy, by idleness or with the module.  Whoever takes it
 * out of hawk_device.names puts its reference.
 */
#include "hawk.h"
#include "pool.h"
#include "trace.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>

#define HAWK_MAY_READ	4
#define HAWK_MAY_WRITE	2
#define HAWK_MODE_BITS	0666u

static atomic64_t hawk_as_ids = ATOMIC64_INIT(0);

/* ---- the end ---- */

static void hawk_as_free(struct hawk_as *as)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (as->mem[t])
			kobject_put(&as->mem[t]->kobj);
	if (as->void_page)
		__free_page(as->void_page);
	xa_destroy(&as->exports);
	mem_cgroup_put(as->memcg);
	vfree(as->vtlb);
	kfree(as);
}

static void hawk_as_release(struct kref *ref)
{
	struct hawk_as *as = container_of(ref, struct hawk_as, ref);
	u32 t;

	trace_hawk_space_destroy(as->id, &as->info);
	hawk_stats_exit(as);

	hawk_pool_end(as);
	hawk_dev_lock();
	/* Not before: ends.c looks for those that still own something. */
	spin_lock(&hawk_dev.spaces_lock);
	list_del(&as->node);
	spin_unlock(&hawk_dev.spaces_lock);
	hawk_space_destroy(as->space);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!as->mem[t])
			continue;
		WRITE_ONCE(as->mem[t]->ended, as->mem[t]->ended + 1);
		hawk_mem_clean_soon(as->mem[t]);
	}
	mutex_unlock(&hawk_dev.lock);
	hawk_as_free(as);
	atomic_dec(&hawk_dev.nspaces);
	wake_up_all(&hawk_dev.ends_wait);
}

/* May end the space: takes hawk_device.lock and sleeps. */
void hawk_as_put(struct hawk_as *as)
{
	kref_put(&as->ref, hawk_as_release);
}

/* ---- idle named spaces ---- */

/* Nanoseconds until it has been idle for long enough; U64_MAX: it is in use. */
static u64 hawk_as_idle_left(const struct hawk_as *as)
{
	u64 idle;

	if (!hawk_as_named(as) || as->files || !as->idle_ns)
		return U64_MAX;
	idle = ktime_get_ns() - as->idle_since;
	return idle < as->idle_ns ? as->idle_ns - idle : 0;
}

/* Look again when its time may have come.  A work too many does no harm. */
static void hawk_as_idle_arm(struct hawk_as *as)
{
	u64 left = hawk_as_idle_left(as);

	if (left != U64_MAX)
		mod_delayed_work(hawk_dev.wq, &as->idle, hawk_delay(left));
}

static void hawk_as_idle_work(struct work_struct *work)
{
	struct hawk_as *as = container_of(to_delayed_work(work), struct hawk_as, idle);
	bool end;

	hawk_dev_lock();
	end = !hawk_as_idle_left(as);
	if (end)
		list_del_init(&as->name_node);
	else
		hawk_as_idle_arm(as);
	mutex_unlock(&hawk_dev.lock);
	if (end) {
		/* A file that left while this waited for the lock has armed it again. */
		cancel_delayed_work(&as->idle);
		hawk_as_put(as);
	}
}

/* The caller has taken the name away and has its reference. */
static void hawk_as_put_name(struct hawk_as *as)
{
	cancel_delayed_work_sync(&as->idle);
	hawk_as_put(as);
}

/*
 * A file of the space has been closed: nobody can use it any more, though its batches keep
 * the space until they have ended.  Takes hawk_device.lock.
 */
void hawk_as_closed(struct hawk_as *as)
{
	hawk_dev_lock();
	if (!--as->files) {
		as->idle_since = ktime_get_ns();
		hawk_as_idle_arm(as);
	}
	mutex_unlock(&hawk_dev.lock);
}

/* ---- checks ---- */

/* A name is for people to read and for scripts to pass on. */
static int hawk_name_check(const u8 *name)
{
	size_t len = strnlen(name, HAWK_NAME_MAX), i;

	if (!len || len == HAWK_NAME_MAX || memchr_inv(name + len, 0, HAWK_NAME_MAX - len))
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!isascii(name[i]) || !isgraph(name[i]) || name[i] == '/')
			return -EINVAL;
	return 0;
}

/* What sequences need; a block's planes lie within it. */
static int hawk_as_seqs_check(const struct hawk_space_create *arg)
{
	u64 plane = (u64)arg->block_tokens * arg->token_bytes;

	if (arg->seqs > HAWK_SEQS_MAX || arg->segs > HAWK_SEGS_MAX || (arg->segs && !arg->seqs))
		return -EINVAL;
	if (!arg->planes != !arg->token_bytes || arg->planes > arg->block_bytes ||
	    plane > arg->block_bytes || plane * arg->planes > arg->block_bytes)
		return -EINVAL;
	return 0;
}

/* Permission bits and idle time are a named space's. */
static int hawk_as_named_check(const struct hawk_space_create *arg)
{
	if (!(arg->flags & HAWK_SPACE_NAMED))
		return arg->mode || arg->idle_ns ||
		       memchr_inv(arg->name, 0, HAWK_NAME_MAX) ? -EINVAL : 0;
	if (arg->mode & ~HAWK_MODE_BITS || arg->idle_ns > KTIME_MAX)
		return -EINVAL;
	return hawk_name_check(arg->name);
}

static int hawk_as_create_check(const struct hawk_space_create *arg)
{
	int ret;
	u32 t;

	if (arg->reserved)
		return -EOPNOTSUPP;
	if (!arg->block_bytes || arg->block_bytes > HAWK_CHUNK_BYTES ||
	    arg->block_bytes % HAWK_FRAME_ALIGN)
		return -EINVAL;
	if (!arg->block_tokens || arg->block_tokens > 65536 ||
	    !arg->layers || arg->layers > HAWK_LID_LAYER_MAX + 1 ||
	    !arg->head_groups || arg->head_groups > HAWK_LID_HEAD_MAX + 1)
		return -EINVAL;
	if (!arg->max_blocks || arg->max_blocks > HAWK_BLOCKS_MAX ||
	    !hawk_slice_fits(arg->tp_rank, arg->tp_degree, arg->head_groups))
		return -EINVAL;
	if (arg->buckets && (!is_power_of_2(arg->buckets) || arg->buckets > 512))
		return -EINVAL;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (arg->quota[t].min_bytes > arg->quota[t].max_bytes)
			return -EINVAL;
	ret = hawk_as_seqs_check(arg);
	return ret ?: hawk_as_named_check(arg);
}

/* Permission bits (HAWK_MAY_*) that the caller has on a named space. */
static u32 hawk_as_access(const struct hawk_as *as)
{
	u32 all = HAWK_MAY_READ | HAWK_MAY_WRITE, may = as->mode & all;

	lockdep_assert_held(&hawk_dev.lock);
	if (uid_eq(current_fsuid(), as->uid))
		may = as->mode >> 6 & all;
	else if (in_group_p(as->gid))
		may = as->mode >> 3 & all;
	return may != all && capable(CAP_DAC_OVERRIDE) ? all : may;
}

/* May the caller end or change a named space?  0, -EPERM or -ENOENT. */
static int hawk_as_own(const struct hawk_as *as)
{
	if (uid_eq(current_fsuid(), as->uid) || capable(CAP_SYS_ADMIN))
		return 0;
	return hawk_as_access(as) & HAWK_MAY_READ ? -EPERM : -ENOENT;
}

/* ---- the start ---- */

static int hawk_as_alloc_vtlb(struct hawk_as *as, u32 max_blocks)
{
	u64 bytes = hawk_vtlb_bytes(max_blocks);

	/* The engine's tables are larger still: do not take so much in vain. */
	if (bytes >> PAGE_SHIFT > totalram_pages() / 4)
		return -ENOMEM;
	as->info.vtlb_bytes = PAGE_ALIGN(bytes);
	as->vtlb = __vmalloc(as->info.vtlb_bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO |
			     __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	return as->vtlb ? 0 : -ENOMEM;
}

static struct hawk_as *hawk_as_alloc(const struct hawk_space_create *arg)
{
	struct hawk_as *as = kzalloc(sizeof(*as), GFP_KERNEL_ACCOUNT);

	if (!as)
		return NULL;
	if (hawk_stats_init(as))
		goto err_free;
	if (hawk_as_alloc_vtlb(as, arg->max_blocks))
		goto err_exit_stats;
	kref_init(&as->ref);
	as->id = atomic64_inc_return(&hawk_as_ids);
	as->info.block_bytes = arg->block_bytes;
	as->info.block_tokens = arg->block_tokens;
	as->info.layers = arg->layers;
	as->info.head_groups = arg->head_groups;
	as->info.layout = arg->layout;
	as->info.dtype = arg->dtype;
	as->info.model_id = arg->model_id;
	as->info.max_blocks = arg->max_blocks;
	as->info.tp_rank = arg->tp_rank;
	as->info.tp_degree = arg->tp_degree;
	as->info.seqs = arg->seqs;
	as->info.segs = arg->segs ?: 8 * arg->seqs;
	as->info.token_bytes = arg->token_bytes;
	as->info.planes = arg->planes;
	memcpy(as->info.name, arg->name, HAWK_NAME_MAX);
	INIT_LIST_HEAD(&as->node);
	INIT_LIST_HEAD(&as->name_node);
	as->uid = current_fsuid();
	as->gid = current_fsgid();
	as->mode = arg->mode;
	as->idle_ns = arg->idle_ns;
	as->files = 1;	/* its creator's */
	INIT_DELAYED_WORK(&as->idle, hawk_as_idle_work);
	as->memcg = get_mem_cgroup_from_mm(current->mm);
	init_rwsem(&as->map_lock);
	INIT_LIST_HEAD(&as->mappers);
	init_waitqueue_head(&as->wait);
	xa_init_flags(&as->exports, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	return as;

err_exit_stats:
	hawk_stats_exit(as);
err_free:
	kfree(as);
	return NULL;
}

static struct hawk_as *hawk_as_find(const u8 *name)
{
	struct hawk_as *as;

	lockdep_assert_held(&hawk_dev.lock);
	list_for_each_entry(as, &hawk_dev.names, name_node)
		if (!memcmp(as->info.name, name, HAWK_NAME_MAX))
			return as;
	return NULL;
}

static void hawk_as_set_mem(struct hawk_as *as, u32 tier, struct hawk_mem *m)
{
	lockdep_assert_held(&hawk_dev.lock);
	if (m)
		kobject_get(&m->kobj);
	if (as->mem[tier])
		kobject_put(&as->mem[tier]->kobj);	/* of an earlier try */
	as->mem[tier] = m;
}

/* Blocks that are kept have headers: those of the pool may be for larger ones only. */
static int hawk_as_check_slots(const struct hawk_space_create *arg)
{
	u32 t, slot;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		slot = hawk_chunks(arg->quota[t].max_bytes) ?
		       hawk_pool_slot_bytes(hawk_dev.engine, t) : 0;
		if (arg->block_bytes >= slot)
			continue;
		pr_err_ratelimited("space '%s': its blocks have %u bytes, tier %u keeps such of %u or more: format it with --slot-bytes\n",
				   arg->name, arg->block_bytes, t, slot);
		return -EINVAL;
	}
	return 0;
}

static bool hawk_as_name_taken(const struct hawk_space_create *arg)
{
	return arg->flags & HAWK_SPACE_NAMED && hawk_as_find(arg->name);
}

/* The name is free.  It is taken from now on; @as->making says whether anybody may attach. */
static void hawk_as_publish(struct hawk_as *as, const struct hawk_space_create *arg)
{
	lockdep_assert_held(&hawk_dev.lock);
	if (!(arg->flags & HAWK_SPACE_NAMED))
		return;
	hawk_as_get(as);
	list_add_tail(&as->name_node, &hawk_dev.names);
}

/*
 * May its maker have minima that others own?  Who may not is refused what is not free: or
 * anybody could have everybody's blocks evicted, by asking for all there is.
 */
static int hawk_as_may_take_back(const struct hawk_as *as)
{
	unsigned int percent = READ_ONCE(hawk_dev.min_percent);
	u32 t;

	lockdep_assert_held(&hawk_dev.lock);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		const struct hawk_mem *m = as->mem[t];

		if (!m || !as->min[t] ||
		    (hawk_as_minima(m, as->uid) + as->min[t]) * 100 <= (u64)m->chunks * percent)
			continue;
		if (capable(CAP_SYS_RESOURCE))
			return 0;
		pr_warn_ratelimited("space %llu is not made: of tier %u the minima of uid %u would be more than %u %%, which other spaces use; min_percent or CAP_SYS_RESOURCE lets it have them\n",
				    as->id, t, from_kuid(&init_user_ns, as->uid), percent);
		return -ENOSPC;
	}
	return 0;
}

/* The engine's side of a space, its memory, its place in the list of all. */
static int hawk_as_enter(struct hawk_as *as, const struct hawk_space_create *arg, bool insist)
{
	struct hawk_space_params p = {
		.block_bytes = arg->block_bytes,
		.block_tokens = arg->block_tokens,
		.max_blocks = arg->max_blocks,
		.buckets = arg->buckets,
		.layers = arg->layers,
		.head_groups = arg->head_groups,
		.tp_rank = arg->tp_rank,
		.tp_degree = arg->tp_degree,
		.seqs = arg->seqs,
		.segs = arg->segs,
		.shift = arg->flags & HAWK_SPACE_SHIFT,
		.insist = insist,
		.vtlb = as->vtlb,
		.note = hawk_trace_note,
		.due = hawk_pool_due,
		.owner = as,
	};
	struct hawk_identity id;
	u32 t;
	int ret;

	lockdep_assert_held(&hawk_dev.lock);
	if (hawk_as_name_taken(arg))
		return -EEXIST;
	if (arg->flags & HAWK_SPACE_NAMED) {
		hawk_identity_of(arg, from_kuid(&init_user_ns, as->uid), &id);
		p.identity = &id;
	}
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (arg->quota[t].max_bytes && !hawk_dev.mem[t])
			return -ENOENT;
		p.quota_min[t] = hawk_chunks(arg->quota[t].min_bytes);
		p.quota_max[t] = hawk_chunks(arg->quota[t].max_bytes);
		as->min[t] = min(p.quota_min[t], p.quota_max[t]);
		hawk_as_set_mem(as, t, p.quota_max[t] ? hawk_dev.mem[t] : NULL);
	}
	ret = arg->flags & HAWK_SPACE_NAMED ? hawk_as_check_slots(arg) : 0;
	if (!ret && insist)
		ret = hawk_as_may_take_back(as);
	if (!ret)
		ret = hawk_space_create(hawk_dev.engine, &p, &as->space);
	if (ret)
		return ret;
	as->info.buckets = hawk_space_buckets(as->space);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		as->info.frames[t] = hawk_space_frames(as->space, t);
	trace_hawk_space_create(as->id, &as->info);
	atomic_inc(&hawk_dev.nspaces);
	as->making = true;
	as->finding = true;
	hawk_as_publish(as, arg);
	spin_lock(&hawk_dev.spaces_lock);
	list_add_tail(&as->node, &hawk_dev.spaces);
	spin_unlock(&hawk_dev.spaces_lock);
	return 0;
}

static int hawk_as_enter_locked(struct hawk_as *as, const struct hawk_space_create *arg,
				bool insist)
{
	int ret;

	hawk_dev_lock();
	ret = hawk_as_enter(as, arg, insist);
	mutex_unlock(&hawk_dev.lock);
	return ret;
}

/* A space that has not been entered, or could not be. */
static void hawk_as_discard(struct hawk_as *as)
{
	hawk_stats_exit(as);
	hawk_as_free(as);
}

/* The last step but one: its blocks are its again; from here on walks meet it. */
static int hawk_as_find_blocks(struct hawk_as *as)
{
	int ret = hawk_pool_find(as);

	hawk_as_found(as);
	return ret;
}

/* The last step: it can be attached. */
static void hawk_as_made(struct hawk_as *as)
{
	hawk_dev_lock();
	WRITE_ONCE(as->making, false);
	mutex_unlock(&hawk_dev.lock);
	wake_up_all(&hawk_dev.ends_wait);
}

/* Nothing is kept back for it any more, also if somebody still looks at it. */
static void hawk_as_give_up(struct hawk_as *as)
{
	bool named;
	u32 t;

	hawk_dev_lock();
	as->files = 0;
	WRITE_ONCE(as->making, false);
	named = hawk_as_named(as);
	list_del_init(&as->name_node);
	mutex_unlock(&hawk_dev.lock);
	wake_up_all(&hawk_dev.ends_wait);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		hawk_space_leave(as->space, t);
	if (named)
		hawk_as_put_name(as);
	hawk_as_put(as);
}

/*
 * Others have its minima: they give them back, or there is no space.  One maker at a
 * time, so no two get half of what both need.  On failure @as is consumed.
 */
static int hawk_as_enter_insisting(struct hawk_as *as, const struct hawk_space_create *arg)
{
	int ret = hawk_lent_lock();

	if (ret)
		goto err_discard;
	ret = hawk_as_enter_locked(as, arg, true);
	if (ret)
		goto err_unlock;
	ret = hawk_as_find_blocks(as) ?: hawk_lent_take_back(as);
	if (ret)
		hawk_as_give_up(as);
	hawk_lent_unlock();
	return ret;

err_unlock:
	hawk_lent_unlock();
	if (ret == -ENOSPC)
		hawk_trace_refuse_min(as, arg);
err_discard:
	hawk_as_discard(as);
	return ret;
}

/* Its minima are free, or nothing has been done: then @as can be tried again. */
static int hawk_as_enter_now(struct hawk_as *as, const struct hawk_space_create *arg,
			     bool *consumed)
{
	int ret = hawk_as_enter_locked(as, arg, false);

	*consumed = false;
	if (ret)
		return ret;
	ret = hawk_as_find_blocks(as);
	if (ret) {
		hawk_as_give_up(as);
		*consumed = true;
	}
	return ret;
}

/* Return: the space with one reference, or an ERR_PTR. */
static struct hawk_as *hawk_as_make(const struct hawk_space_create *arg)
{
	struct hawk_as *as = hawk_as_alloc(arg);
	bool consumed;
	int ret;

	if (!as)
		return ERR_PTR(-ENOMEM);
	ret = hawk_as_enter_now(as, arg, &consumed);
	/* The room may just be that of a space that has ended a moment ago. */
	if (ret == -EAGAIN && !consumed && hawk_as_settle(as))
		ret = hawk_as_enter_now(as, arg, &consumed);
	if (ret == -EAGAIN && !consumed) {
		ret = hawk_as_enter_insisting(as, arg);
		consumed = true;
	}
	if (!ret) {
		hawk_as_made(as);
		return as;
	}
	if (!consumed) {
		if (ret == -ENOSPC)
			hawk_trace_refuse_min(as, arg);
		hawk_as_discard(as);
	}
	return ERR_PTR(ret);
}

/* Consumes the caller's reference to @as.  @f->lock is held. */
static void hawk_file_bind(struct hawk_file *f, struct hawk_as *as, bool writable)
{
	lockdep_assert_held(&f->lock);
	f->writable &= writable;
	hawk_file_link(f, as);
	smp_store_release(&f->as, as);
}

int hawk_as_create(struct hawk_file *f, struct hawk_space_create *arg)
{
	int ret = hawk_as_create_check(arg);
	struct hawk_as *as;

	if (ret)
		return ret;
	mutex_lock(&f->lock);
	ret = f->as || f->binding ? -EBUSY : 0;
	if (!ret)
		f->binding = true;
	mutex_unlock(&f->lock);
	if (ret)
		return ret;
	/* May take long, and who waits for a mutex can neither be killed nor frozen. */
	as = hawk_as_make(arg);
	mutex_lock(&f->lock);
	f->binding = false;
	if (!IS_ERR(as)) {
		arg->vtlb_bytes = as->info.vtlb_bytes;
		hawk_file_bind(f, as, true);
	}
	mutex_unlock(&f->lock);
	return PTR_ERR_OR_ZERO(as);
}

static struct hawk_as *hawk_as_get_named(const u8 *name, bool *writable)
{
	struct hawk_as *as;
	u32 may;

	lockdep_assert_held(&hawk_dev.lock);
	as = hawk_as_find(name);
	may = as ? hawk_as_access(as) : 0;
	if (!(may & HAWK_MAY_READ))
		return ERR_PTR(-ENOENT);
	if (as->making)
		return ERR_PTR(-EAGAIN);
	*writable = may & HAWK_MAY_WRITE;
	return hawk_as_get(as);
}

/* The space of an open file: who was given that may use it as that may. */
static struct hawk_as *hawk_as_get_fd(int fd, bool *writable)
{
	struct file *file = fget(fd);
	struct hawk_as *as = ERR_PTR(-EBADF);
	struct hawk_file *other;

	if (!file)
		return as;
	if (file->f_op != &hawk_fops)
		goto out_fput;
	as = ERR_PTR(-EACCES);
	if (!(file->f_mode & FMODE_READ))
		goto out_fput;
	other = file->private_data;
	as = hawk_file_as(other) ?: ERR_PTR(-ENXIO);
	if (IS_ERR(as))
		goto out_fput;
	*writable = other->writable;
	hawk_as_get(as);
out_fput:
	fput(file);
	return as;
}

static int hawk_as_attach_check(const struct hawk_space_attach *arg)
{
	if (arg->reserved)
		return -EOPNOTSUPP;
	if (arg->flags & HAWK_ATTACH_FD)
		return memchr_inv(arg->name, 0, HAWK_NAME_MAX) ? -EINVAL : 0;
	return arg->fd ? -EINVAL : hawk_name_check(arg->name);
}

/* A named space whose maker is not done is waited for.  Return: 0 or -EINTR. */
static int hawk_as_wait_made(const u8 *name)
{
	struct hawk_as *as;
	int ret;

	hawk_dev_lock();
	as = hawk_as_find(name);
	as = as ? hawk_as_get(as) : NULL;
	mutex_unlock(&hawk_dev.lock);
	if (!as)
		return 0;
	ret = wait_event_killable(hawk_dev.ends_wait, !READ_ONCE(as->making));
	hawk_as_put(as);
	return ret ? -EINTR : 0;
}

/* Return: 0; -EAGAIN: its maker is not done; others. */
static int hawk_as_attach_now(struct hawk_file *f, const struct hawk_space_attach *arg)
{
	struct hawk_as *as;
	bool writable;
	int ret = 0;

	mutex_lock(&f->lock);
	if (f->as || f->binding) {
		ret = -EBUSY;
		goto out_unlock;
	}
	hawk_dev_lock();
	if (arg->flags & HAWK_ATTACH_FD)
		as = hawk_as_get_fd(arg->fd, &writable);
	else
		as = hawk_as_get_named(arg->name, &writable);
	if (IS_ERR(as)) {
		ret = PTR_ERR(as);
	} else {
		as->files++;
		hawk_file_bind(f, as, writable);
	}
	mutex_unlock(&hawk_dev.lock);
out_unlock:
	mutex_unlock(&f->lock);
	return ret;
}

int hawk_as_attach(struct hawk_file *f, const struct hawk_space_attach *arg)
{
	int ret = hawk_as_attach_check(arg);

	if (ret)
		return ret;
	while ((ret = hawk_as_attach_now(f, arg)) == -EAGAIN) {
		ret = hawk_as_wait_made(arg->name);
		if (ret)
			return ret;
	}
	return ret;
}

/* ---- changing and ending a named one ---- */

int hawk_as_set(const struct hawk_space_set *arg)
{
	int ret = hawk_name_check(arg->name);
	struct hawk_as *as;

	if (arg->mask & ~(HAWK_SPACE_SET_IDLE | HAWK_SPACE_SET_MODE))
		return -EOPNOTSUPP;
	if (ret || !arg->mask || arg->mode & ~HAWK_MODE_BITS || arg->idle_ns > KTIME_MAX)
		return -EINVAL;
	if ((arg->mode && !(arg->mask & HAWK_SPACE_SET_MODE)) ||
	    (arg->idle_ns && !(arg->mask & HAWK_SPACE_SET_IDLE)))
		return -EINVAL;
	hawk_dev_lock();
	as = hawk_as_find(arg->name);
	ret = as ? hawk_as_own(as) : -ENOENT;
	if (!ret && (arg->mask & HAWK_SPACE_SET_MODE))
		as->mode = arg->mode;
	if (!ret && (arg->mask & HAWK_SPACE_SET_IDLE)) {
		as->idle_ns = arg->idle_ns;
		hawk_as_idle_arm(as);
	}
	mutex_unlock(&hawk_dev.lock);
	return ret;
}

/* Destroy by name: the name goes now, the space with its last user. */
int hawk_as_unlink(const struct hawk_space_destroy *arg)
{
	int ret = hawk_name_check(arg->name);
	struct hawk_as *as;

	if (ret)
		return ret;
	hawk_dev_lock();
	as = hawk_as_find(arg->name);
	ret = as ? hawk_as_own(as) : -ENOENT;
	if (!ret) {
		hawk_keep_forget(as->space);	/* nor is it found again in a pool */
		list_del_init(&as->name_node);
	}
	mutex_unlock(&hawk_dev.lock);
	if (!ret)
		hawk_as_put_name(as);
	return ret;
}

/* Module exit: named spaces that nobody has attached. */
void hawk_as_unlink_all(void)
{
	struct hawk_as *as;

	for (;;) {
		hawk_dev_lock();
		as = list_first_entry_or_null(&hawk_dev.names, struct hawk_as, name_node);
		if (as)
			list_del_init(&as->name_node);
		mutex_unlock(&hawk_dev.lock);
		if (!as)
			return;
		hawk_as_put_name(as);
	}
}
