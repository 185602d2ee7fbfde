/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk.h - what the files of hawk.ko share
 *
 * The engine (core/) knows names, places and recency.  The glue here gives it
 * memory (tiers), callers (files, batches), bytes moved (I/O) and an end.
 *
 *	hawk_dev	the device: tiers, spaces
 *	 hawk_mem	memory of one tier (mem.h)
 *	 hawk_as	an address space: the engine's space and its vTLB
 *	  hawk_file	an open file: its pins, leases, completion ring
 *	   hawk_job	a batch being worked on (job.h)
 *	    hawk_io	one move of a block, from start to completion (move.h)
 *
 * Each refers to the one above it, so nothing ends below something in use.
 * The order of locks is told in README.md.
 */
#ifndef HAWK_H
#define HAWK_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "compat.h"
#include "core/core.h"
#include "core/draft.h"
#include "core/gather.h"
#include "mem.h"

struct hawk_io;
struct hawk_job;

/* ---- device (main.c) ---- */

/**
 * struct hawk_device - the one device
 * @engine: the engine, from module load to unload
 * @lock: serialises the making and ending of tiers and spaces (the engine asks
 *	for it); guards @mem and @names
 * @mem: memory by tier id
 * @names: named spaces, hawk_as.name_node; each entry holds a reference
 * @spaces_lock: guards @spaces, and of every space @finding; taken under no other lock but @lock
 * @spaces: all spaces, hawk_as.node; entries hold no reference
 * @nspaces: spaces not quite gone; the module's exit waits for zero
 * @ends_wait: for a space to be gone
 * @wq: ends of moves and leases; nothing on it waits for a move
 * @batch_wq: asynchronous batches, which wait for moves and for cleaning; urgent gathers
 * @gather_wq: other asynchronous gathers, which sleep for the pace
 * @own_wq: the device's own work, each a few works whatever clients do
 * @clean_wq: cleaning of chunks; nothing on it takes @lock, so it may be waited
 *	for with @lock held
 * @export_wq: ends of exports; waits for fences of importers
 * @reclaim_wq: @reclaim; nothing that memory has to wait for is waited for on it
 * @writeback: the periodic background writer
 * @tidy: looks after sequences (compact.c)
 * @seq_compact: it compacts them (sysfs)
 * @elastic: moves blocks of sequences out of host tiers, and back (elastic.c)
 * @pool_ancestors: writes what comes before blocks in pools (pool.c)
 * @drain_lock: serialises the taking of chunks from spaces: at most one is drained;
 *	guards @drain_plan, @reclaim_pass, and of every space unclaim_at and refused.
 *	Held while moves are waited for, so nothing that ends them takes it; callers
 *	from user space take it by hawk_drain_lock()
 * @drain_wait: those callers, while another has it
 * @lent_lock: serialises the making of spaces by taking back from others (lent.c); taken
 *	before @drain_lock, by hawk_lent_lock()
 * @lent_wait: who waits for it
 * @min_percent: what the minima of one user may be of a tier if others use it (sysfs)
 * @drain_plan: moves of the drain under way
 * @reclaim_pass: number of the pass of @reclaim
 * @reclaim: moves chunks to where they are wanted (reclaim.c)
 * @shrinker: asks for chunks of host tiers when the system needs memory
 * @quiesced: the system is about to sleep: no round may begin (pm.c)
 * @pm_wait: rounds that wait for @quiesced to end
 * @misc: the character device
 * @debugfs: the device's debugfs folder
 */
struct hawk_device {
	struct hawk_engine *engine;
	struct mutex lock;
	struct hawk_mem *mem[HAWK_TIERS_MAX];
	struct list_head names;
	spinlock_t spaces_lock;
	struct list_head spaces;
	atomic_t nspaces;
	wait_queue_head_t ends_wait;
	struct workqueue_struct *wq;
	struct workqueue_struct *batch_wq;
	struct workqueue_struct *gather_wq;
	struct workqueue_struct *own_wq;
	struct workqueue_struct *clean_wq;
	struct workqueue_struct *export_wq;
	struct workqueue_struct *reclaim_wq;
	struct delayed_work writeback;
	struct delayed_work tidy;
	bool seq_compact;
	struct delayed_work elastic;
	struct delayed_work pool_ancestors;
	struct mutex drain_lock;
	wait_queue_head_t drain_wait;
	struct mutex lent_lock;
	wait_queue_head_t lent_wait;
	unsigned int min_percent;
	struct hawk_plan drain_plan;
	u64 reclaim_pass;
	struct delayed_work reclaim;
	struct shrinker *shrinker;
	bool quiesced;
	wait_queue_head_t pm_wait;
	struct miscdevice misc;
	struct dentry *debugfs;
};

extern struct hawk_device hawk_dev;

void hawk_dev_lock(void);

/* ---- statistics (stats.c) ---- */

#define HAWK_OPS	(_IOC_NR(HAWK_IOC_TRANSLATE) - _IOC_NR(HAWK_IOC_ALLOC) + 1)

/**
 * struct hawk_as_count - what a space did, of one CPU
 * @op: batch calls
 * @read: moves from flash by tier
 * @write: moves to flash by tier
 * @gather: gathers
 */
struct hawk_as_count {
	struct hawk_hist op[HAWK_OPS];
	struct hawk_hist read[HAWK_TIERS_MAX];
	struct hawk_hist write[HAWK_TIERS_MAX];
	struct hawk_hist gather;
};

/**
 * struct hawk_as_stats - statistics of a space
 * @cpu: counted here, per CPU
 * @lock: guards the writing of @page and its first allocation; sleeps
 * @page: shown to clients, NULL until somebody maps it; read without @lock
 *	(acquire)
 * @mapped: its mappings
 * @work: brings @page up to date while it is mapped
 */
struct hawk_as_stats {
	struct hawk_as_count __percpu *cpu;
	struct mutex lock;
	struct hawk_stats_page *page;
	atomic_t mapped;
	struct delayed_work work;
};

struct hawk_as;
struct hawk_gather_call;	/* gather.h */
struct seq_file;

int hawk_stats_init(struct hawk_as *as);
void hawk_stats_exit(struct hawk_as *as);
int hawk_stats_map(struct hawk_as *as);
void hawk_stats_unmap(struct hawk_as *as);
void hawk_stats_refresh(struct hawk_as *as);
void hawk_stats_batch(struct hawk_job *job);
void hawk_stats_gather(const struct hawk_gather_call *c);
void hawk_stats_move(const struct hawk_io *io, u64 latency);
void hawk_stats_show(struct seq_file *m);

/* ---- address spaces (space.c) ---- */

/**
 * struct hawk_as - an address space
 * @ref: held by files, moves, and the name of a named space
 * @space: the engine's side
 * @id: number of the space since module load, for traces and debugfs
 * @info: geometry and name as HAWK_IOC_SPACE_INFO tells them
 * @node: in hawk_device.spaces
 * @name_node: in hawk_device.names, empty if it has no (more) name
 * @uid: owner
 * @gid: group
 * @mode: permission bits of a named space; guarded by hawk_device.lock
 * @making: it has its name, but nobody attaches it yet; guarded by hawk_device.lock
 * @finding: its maker looks for its blocks in pools: no walk meets it; guarded by
 *	hawk_device.spaces_lock
 * @find_stop: he is to stop, as a tier has to go
 * @files: files that have it attached; guarded by hawk_device.lock
 * @idle_ns: it ends when it has been in no file for so long, 0: never; guarded by
 *	hawk_device.lock
 * @idle_since: when the last file left it; guarded by hawk_device.lock
 * @idle: ends it then; not pending without a name, whose reference it uses
 * @vtlb: its translations, mapped read-only into clients
 * @mem: memory of the tiers in which it was given a quota, referenced; set before the
 *	space is known to anybody.  A tier that is removed by force stays here as well
 * @min: its minima, chunks by tier
 * @memcg: memory cgroup of its creator, which pays for its memory
 * @map_lock: guards @mappers, @void_tiers and which slots of the windows hold a chunk:
 *	a fault holds it for reading from the look-up of a frame until the frame is
 *	mapped; who gives or takes a chunk holds it for writing.  Taken under
 *	mmap_lock by faults, so nothing that may fault is done under it
 * @mappers: files through which it may be mapped, hawk_file.node
 * @void_page: mapped by faults where the space owns no frame; its content means
 *	nothing.  Set once (cmpxchg), mapped without a reference: it can be neither
 *	pinned nor outlived by a mapping
 * @void_tiers: bit per tier in whose window @void_page may be mapped
 * @starved_tiers: bit per tier: it wanted a chunk and there was none; cleared when it
 *	has been looked for elsewhere, and @wait woken
 * @claims: chunks taken from others for it so far
 * @warned_tiers: bit per tier: the log tells that there was no memory
 * @stuck: it could not grow for want of memory
 * @unstick_at: when it may try again, jiffies; written before @stuck is set
 * @unclaim_at: by tier: when the chunks kept for it are given up, jiffies, or 0
 * @refused: pass in which it could give no chunk
 * @wait: woken when a move has ended or nothing is in flight any more
 * @events: moves and growths ended so far
 * @active: moves in flight plus rounds that may yet start some
 * @paused: of these, what is not under way while the system sleeps (pm.c)
 * @phase_until: its runtime says that prefill runs so long, nanoseconds; 0: it does not
 * @untidy: sequences have given something up: compact.c has to look
 * @seq_ops: operations on sequences under way, which give back what they have dropped
 * @stats: counters and histograms
 * @exports: its exports, id -> struct hawk_dmabuf (export.c), not referenced
 * @export_next: where the search for a free id goes on
 */
struct hawk_as {
	struct kref ref;
	struct hawk_space *space;
	u64 id;
	struct hawk_space_info info;
	struct list_head node;
	struct list_head name_node;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
	bool making;
	bool finding;
	bool find_stop;
	u32 files;
	u64 idle_ns;
	u64 idle_since;
	struct delayed_work idle;
	void *vtlb;
	struct hawk_mem *mem[HAWK_TIERS_MAX];
	u32 min[HAWK_TIERS_MAX];
	struct mem_cgroup *memcg;
	struct rw_semaphore map_lock;
	struct list_head mappers;
	struct page *void_page;
	unsigned long void_tiers;
	unsigned long starved_tiers;
	atomic64_t claims;
	unsigned long warned_tiers;
	bool stuck;
	unsigned long unstick_at;
	unsigned long unclaim_at[HAWK_TIERS_MAX];
	u64 refused;
	wait_queue_head_t wait;
	atomic64_t events;
	atomic_t active;
	atomic_t paused;
	u64 phase_until;
	bool untidy;
	atomic_t seq_ops;
	struct hawk_as_stats stats;
	struct xarray exports;
	u32 export_next;
};

struct hawk_file;

int hawk_as_create(struct hawk_file *f, struct hawk_space_create *arg);
int hawk_as_attach(struct hawk_file *f, const struct hawk_space_attach *arg);
int hawk_as_set(const struct hawk_space_set *arg);
int hawk_as_unlink(const struct hawk_space_destroy *arg);
void hawk_as_unlink_all(void);
void hawk_as_put(struct hawk_as *as);
void hawk_as_closed(struct hawk_as *as);
struct hawk_as *hawk_as_next(struct hawk_as *prev);
bool hawk_as_wait_ends(const struct hawk_mem *m, unsigned int seen, unsigned long until);
int hawk_as_wait_dying(const struct hawk_mem *m);
void hawk_as_found(struct hawk_as *as);
int hawk_as_wait_finding(const struct hawk_mem *m);
u64 hawk_as_minima(const struct hawk_mem *m, kuid_t uid);

/* Context: hawk_device.lock held. */
static inline bool hawk_as_named(const struct hawk_as *as)
{
	return !list_empty(&as->name_node);
}

static inline struct hawk_as *hawk_as_get(struct hawk_as *as)
{
	kref_get(&as->ref);
	return as;
}

/* ---- completion rings (complete.c) ---- */

/**
 * struct hawk_cq - completion ring of a file
 * @lock: guards @tail and @reserved
 * @ring: memory shared with user space; nothing in it is trusted
 * @entries: a power of two
 * @bytes: to map
 * @tail: the kernel's own copy of the next entry to write
 * @reserved: entries promised to batches under way
 * @eventfd: signalled for each completion, or NULL
 */
struct hawk_cq {
	spinlock_t lock;
	struct hawk_ring *ring;
	u32 entries;
	size_t bytes;
	u32 tail;
	u32 reserved;
	struct eventfd_ctx *eventfd;
};

int hawk_cq_setup(struct hawk_file *f, struct hawk_ring_setup *arg);
void hawk_cq_destroy(struct hawk_cq *cq);
int hawk_cq_reserve(struct hawk_cq *cq, u32 n);
void hawk_cq_post(struct hawk_file *f, const struct hawk_cqe *cqe);
bool hawk_cq_readable(struct hawk_cq *cq);

/* ---- open files (file.c, pin.c, memlock.c, lease.c) ---- */

/**
 * struct hawk_file - an open file
 * @ref: the file itself, its leases and its asynchronous batches
 * @lock: serialises the binding of a space and of a ring; guards the start of a
 *	lease against its release.  Taken before hawk_device.lock
 * @inode: whose address_space its mappings are found through
 * @as: its space; set once (release), read without a lock (acquire)
 * @binding: a call makes a space for it, and @lock is not held meanwhile
 * @node: in hawk_as.mappers
 * @cq: its completion ring; set once (release), read without a lock (acquire)
 * @writable: it may change the space: open for writing, and permitted by the
 *	space's mode; final before @as is set
 * @closed: the last descriptor is gone: batches end early
 * @id: number of the file since module load: it owns the sequences that it makes
 * @pins: this file's pins, block number -> generation and count (pin.c);
 *	its xa_lock is held over the engine's call when a pin is given up
 * @leases: this file's leases, id -> struct hawk_lease (lease.c)
 * @lease_next: where the search for a free lease id goes on
 * @drafts: this file's draft rings, id -> struct hawk_draft_mem (draft.c); its
 *	xa_lock decides between a ring's mapping and its end
 * @jobs_lock: guards @jobs; taken with no other held
 * @jobs: asynchronous batches and gathers under way, hawk_task.node
 * @user: who opened it and is charged for what it pins
 * @memlock_exempt: opened with CAP_IPC_LOCK: nothing is charged
 * @memlock_told: it has met the limit, and the log says so
 * @wait: poll()ers
 */
struct hawk_file {
	struct kref ref;
	struct mutex lock;
	struct inode *inode;
	struct hawk_as *as;
	bool binding;
	struct list_head node;
	struct hawk_cq *cq;
	bool writable;
	bool closed;
	u64 id;
	struct xarray pins;
	struct xarray leases;
	u32 lease_next;
	struct xarray drafts;
	spinlock_t jobs_lock;
	struct list_head jobs;
	struct user_struct *user;
	bool memlock_exempt;
	bool memlock_told;
	wait_queue_head_t wait;
};

extern const struct file_operations hawk_fops;

void hawk_file_put(struct hawk_file *f);

/* A delay, in jiffies, that does not end before @ns nanoseconds have passed. */
static inline unsigned long hawk_delay(u64 ns)
{
	/* rounded up, and one more: the present jiffy may be about to end */
	u64 j = nsecs_to_jiffies64(ns) + 2;

	return min_t(u64, j, MAX_JIFFY_OFFSET);
}

static inline struct hawk_as *hawk_file_as(struct hawk_file *f)
{
	return smp_load_acquire(&f->as);
}

static inline struct hawk_cq *hawk_file_cq(struct hawk_file *f)
{
	return smp_load_acquire(&f->cq);
}

int hawk_pin_add(struct hawk_file *f, struct hawk_ref ref, unsigned long limit);
bool hawk_pin_has(struct hawk_file *f, u64 lid);
int hawk_pin_put(struct hawk_file *f, u64 lid, const u8 *key, u32 hints, const u8 *parent,
		 bool keep, u64 now);
int hawk_pin_drop(struct hawk_file *f, u64 lid, u64 vt);
int hawk_pin_unshare(struct hawk_file *f, u64 lid, u64 now, unsigned long limit,
		     struct hawk_plan *plan, u64 *vt);
int hawk_pin_extra(struct hawk_file *f, u64 lid, u64 now, u64 *vt, struct hawk_ref *ref);
void hawk_pin_drop_all(struct hawk_file *f);

void hawk_memlock_open(struct hawk_file *f);
void hawk_memlock_close(struct hawk_file *f);
unsigned long hawk_memlock_limit(void);
int hawk_memlock_charge_pages(struct hawk_file *f, unsigned long pages, unsigned long limit);
void hawk_memlock_uncharge_pages(struct hawk_file *f, unsigned long pages);
int hawk_memlock_charge(struct hawk_file *f, unsigned long blocks, unsigned long limit);
void hawk_memlock_uncharge(struct hawk_file *f, unsigned long blocks);

/**
 * struct hawk_lease - blocks that one LOOKUP found and keeps from being dropped
 * @f: its file
 * @id: in hawk_file.leases
 * @expire: ends it at its deadline
 * @deadline_ns: CLOCK_MONOTONIC, nanoseconds
 * @n: blocks
 * @ref: the blocks
 */
struct hawk_lease {
	struct hawk_file *f;
	u32 id;
	struct delayed_work expire;
	u64 deadline_ns;
	u32 n;
	struct hawk_ref ref[];
};

struct hawk_lease *hawk_lease_alloc(struct hawk_file *f, u32 max);
int hawk_lease_start(struct hawk_lease *l, u64 deadline_ns);
void hawk_lease_end(struct hawk_lease *l);
int hawk_lease_release(struct hawk_file *f, u64 id);
void hawk_lease_release_all(struct hawk_file *f);

/* ---- draft rings of a file (draft.c) ---- */

int hawk_ioc_draft_open(struct hawk_file *f, void *data);
int hawk_ioc_draft_close(struct hawk_file *f, void *data);
void hawk_draft_close_all(struct hawk_file *f);
int hawk_draft_mmap(struct hawk_file *f, struct vm_area_struct *vma, u64 off);

/* ---- address_space of a file (inode.c) ---- */

int hawk_inode_init(void);
void hawk_inode_exit(void);
int hawk_inode_attach(struct hawk_file *f, struct file *file);
void hawk_file_link(struct hawk_file *f, struct hawk_as *as);
void hawk_file_unlink(struct hawk_file *f);
void hawk_as_zap(struct hawk_as *as, u32 tier, u64 off, u64 bytes);

/* ---- entry points ---- */

long hawk_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int hawk_batch_arg_get(struct hawk_file *f, unsigned int cmd, struct hawk_batch *arg,
		       void __user *uarg, u32 *usize);
int hawk_batch_arg_put(const struct hawk_batch *arg, void __user *uarg, u32 usize);
int hawk_mmap(struct file *file, struct vm_area_struct *vma);
int hawk_ioc_query(struct hawk_file *f, void *arg);
int hawk_ioc_tier_add(struct hawk_file *f, void *arg);
int hawk_ioc_tier_remove(struct hawk_file *f, void *arg);
int hawk_ioc_tier_info(struct hawk_file *f, void *arg);
int hawk_ioc_tier_admit(struct hawk_file *f, void *arg);
int hawk_ioc_pin_query(struct hawk_file *f, void *arg);
int hawk_ioc_cancel(struct hawk_file *f, void *arg);
int hawk_ioc_gather(struct hawk_file *f, void *data);

/* ---- traces (trace.c) ---- */

/* Why there was no room. */
enum hawk_refuse {
	HAWK_REFUSE_QUOTA,	/* the space owns all that it may of the tier */
	HAWK_REFUSE_TIER,	/* the tier has no free chunk */
	HAWK_REFUSE_LIDS,	/* the space has no LID left for FORK */
	HAWK_REFUSE_MIN,	/* a new space's minimum and all others are more than the tier */
	HAWK_REFUSE_MEMLOCK,	/* more would be pinned than RLIMIT_MEMLOCK allows */
	HAWK_REFUSE_LENT,	/* others have a minimum above theirs, and cannot give it back */
};

/**
 * struct hawk_refusal - room that was refused
 * @space: number of the space
 * @lid: of the block, 0: of none
 * @need: what was wanted, bytes (LIDs for %HAWK_REFUSE_LIDS)
 * @use: what is taken of @limit
 * @limit: quota of the space or size of the tier
 * @tier: tier id, HAWK_TIER_ANY if it is no matter of a tier
 * @reason: enum hawk_refuse
 * @pid: process
 * @ret: errno
 */
struct hawk_refusal {
	u64 space;
	u64 lid;
	u64 need;
	u64 use;
	u64 limit;
	u32 tier;
	u32 reason;
	u32 pid;
	int ret;
};

void hawk_trace_note(void *owner, const struct hawk_note *note);
void hawk_trace_refusal(const struct hawk_job *job, const struct hawk_item *it, int ret);
void hawk_trace_refuse_min(const struct hawk_as *as, const struct hawk_space_create *arg);
void hawk_trace_refuse_lent(const struct hawk_as *as, u32 tier, u32 lacks);
void hawk_trace_refuse_memlock(const struct hawk_file *f, unsigned long pages,
			       unsigned long limit, unsigned long used);

/* ---- chunks come and go (chunk.c, reclaim.c) ---- */

bool hawk_as_grew(struct hawk_as *as, int ret);
int hawk_as_take(struct hawk_as *as, u32 tier, u32 slot, u32 flags, struct hawk_as *claim,
		 u32 *busy);
int hawk_as_take_any(struct hawk_as *as, u32 tier, struct hawk_as *claim);
int hawk_as_leave(struct hawk_as *as, u32 tier, bool tell);

int hawk_reclaim_init(void);
void hawk_reclaim_exit(void);
void hawk_reclaim_starved(struct hawk_as *as);
void hawk_reclaim_want(struct hawk_as *as);
void hawk_reclaim_stuck(struct hawk_as *as);
bool hawk_reclaim_one(struct hawk_mem *m, s64 least, struct hawk_as *claim);
int hawk_lent_lock(void);
void hawk_lent_unlock(void);
int hawk_lent_take_back(struct hawk_as *as);
int hawk_mutex_wait(struct mutex *lock, wait_queue_head_t *wait);
int hawk_mem_force_out(struct hawk_mem *m, bool tell);
int hawk_drain_lock(void);
void hawk_drain_unlock(void);
void hawk_mem_lost(struct hawk_mem *m);

/* ---- exports (export.c, dmabuf.c) ---- */

#define HAWK_YIELD_NS	(1000 * NSEC_PER_MSEC)	/* wait for importers of what gives way */

/* Argument of HAWK_IOC_EXPORT and what lies behind it, which is not copied out. */
struct hawk_export_call {
	struct hawk_export arg;
	struct dma_buf *buf;
};

int hawk_export_init(void);
void hawk_export_exit(void);
int hawk_ioc_export(struct hawk_file *f, void *data);
void hawk_ioc_export_end(void *data, bool copied);
int hawk_ioc_export_revoke(struct hawk_file *f, void *arg);
int hawk_ioc_frame_info(struct hawk_file *f, void *arg);
bool hawk_export_yield(struct hawk_as *as, u64 lid, u64 deadline_ns);
bool hawk_export_relieve(struct hawk_file *f, u64 deadline_ns);
void hawk_export_revoke_mem(struct hawk_mem *m, bool all, u64 deadline_ns);
void hawk_export_close(struct hawk_file *f);
bool hawk_export_lasts(struct hawk_as *as);

/* ---- sequences (seq.c, compact.c, elastic.c) ---- */

int hawk_ioc_seq(struct hawk_file *f, void *arg);
int hawk_ioc_seq_map(struct hawk_file *f, void *arg);
void hawk_seq_reap_some(struct hawk_as *as, u32 looks, u32 *frames);
bool hawk_seq_reap_all(struct hawk_as *as, u32 *frames);
void hawk_seq_close(struct hawk_file *f);

void hawk_tidy_init(void);
void hawk_tidy_exit(void);
void hawk_tidy_soon(struct hawk_as *as);
void hawk_tidy_waiting(struct hawk_as *as);
int hawk_ioc_elastic(struct hawk_file *f, void *arg);
void hawk_elastic_work_init(void);
void hawk_elastic_work_exit(void);

/* ---- the rest ---- */

void hawk_writeback_init(void);
void hawk_writeback_kick(void);
void hawk_writeback_exit(void);

extern const struct attribute_group *hawk_dev_groups[];
int hawk_sysfs_add(struct hawk_mem *m);
void hawk_sysfs_init_mem(struct hawk_mem *m);

void hawk_debugfs_init(void);
void hawk_debugfs_exit(void);

#endif /* HAWK_H */
