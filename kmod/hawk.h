/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk.h - what the files of hawk.ko share
 *
 * The engine (core/) knows names, places and recency.  The glue here gives it
 * memory (tiers), callers (files, batches), bytes moved (I/O) and an end.
 *
 *	hawk_dev	the device: tiers, spaces
 *	 hawk_mem	memory of one tier
 *	 hawk_as	an address space: the engine's space and its vTLB
 *	  hawk_file	an open file: its pins, leases, completion ring
 *	   hawk_job	a batch being worked on
 *	    hawk_io	one move of a block, from start to completion
 *
 * Each refers to the one above it, so nothing ends below something in use.
 * The order of locks is told in README.md.
 */
#ifndef HAWK_H
#define HAWK_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bvec.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
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
#include "health.h"
#include "provider.h"

#define HAWK_CHUNK_SHIFT	21
#define HAWK_CHUNK_ORDER	(HAWK_CHUNK_SHIFT - PAGE_SHIFT)
#define HAWK_CHUNK_PAGES	(1u << HAWK_CHUNK_ORDER)

struct hawk_mem;
struct hawk_import;
struct hawk_deliver;
struct hawk_pool_file;
struct hawk_submit_queue;
struct hawk_io;
struct io_uring_cmd;

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
 * @batch_wq: asynchronous batches, which wait for moves and for cleaning
 * @clean_wq: cleaning of chunks; nothing on it takes @lock, so it may be waited
 *	for with @lock held
 * @export_wq: ends of exports; waits for fences of importers
 * @reclaim_wq: @reclaim; nothing that memory has to wait for is waited for on it
 * @writeback: the periodic background writer
 * @tidy: looks after sequences (compact.c)
 * @seq_compact: it compacts them (sysfs)
 * @elastic: moves blocks of sequences out of host tiers, and back (elastic.c)
 * @pool_commit: writes the headers of blocks in pools (pool.c)
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
	struct workqueue_struct *clean_wq;
	struct workqueue_struct *export_wq;
	struct workqueue_struct *reclaim_wq;
	struct delayed_work writeback;
	struct delayed_work tidy;
	bool seq_compact;
	struct delayed_work elastic;
	struct delayed_work pool_commit;
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

/* ---- memory of a tier (tier.c, tier_host.c, tier_blk.c, tier_dmabuf.c) ---- */

/**
 * struct hawk_mem_ops - what a kind of memory does
 * @release: give the memory back; the tier is in no use
 * @populate: give chunk @chunk its memory, zeroed; 0 or -ENOMEM.  May sleep.  NULL:
 *	chunks always have it
 * @clean: chunk @chunk has left its owner: take its memory away or make it fit for
 *	another; false: not now, somebody outside still holds its pages.  May sleep.
 * @held: does somebody outside hold pages of chunk @chunk?  @mapped: page tables may
 *	lead to it, look only for what holds pages for long.  NULL for kinds without
 *	pages
 * @page: the page at byte offset @off; NULL for kinds without pages
 * @pfn: of a kind without pages whose memory the CPU can map: the page frame number at
 *	byte offset @off, to be mapped write-combining
 * @submit: start the I/O of a move from or to this tier; ends in
 *	hawk_io_end(), maybe before it returns.  May sleep.  NULL for host memory
 * @xfer: move a frame's bytes between offset @off and the pages of @io, into the
 *	memory or out of it; ends as @submit.  NULL: the CPU may do it by @page
 */
struct hawk_mem_ops {
	void (*release)(struct hawk_mem *m);
	int (*populate)(struct hawk_mem *m, u32 chunk);
	bool (*held)(struct hawk_mem *m, u32 chunk, bool mapped);
	bool (*clean)(struct hawk_mem *m, u32 chunk);
	struct page *(*page)(struct hawk_mem *m, u64 off);
	unsigned long (*pfn)(struct hawk_mem *m, u64 off);
	void (*submit)(struct hawk_mem *m, struct hawk_io *io);
	void (*xfer)(struct hawk_mem *m, struct hawk_io *io, u64 off, bool write);
};

/**
 * struct hawk_host_chunk - pages of one chunk of a host tier, none if it has no owner
 * @base: first page, if the chunk is physically contiguous
 * @table: else its HAWK_CHUNK_PAGES pages
 */
struct hawk_host_chunk {
	struct page *base;
	struct page **table;
};

/**
 * struct hawk_mem - memory of one tier
 * @kobj: its sysfs folder; owns this structure
 * @ops: what this kind does
 * @id: tier id
 * @kind: enum hawk_tier_kind
 * @node: NUMA node or NUMA_NO_NODE
 * @chunks: capacity in chunks
 * @chunk: pages by chunk (host)
 * @file: device or file (blk)
 * @pool: what makes it persistent, or NULL (blk)
 * @submit: its submission threads (blk)
 * @data_off: bytes in the file before the first chunk (blk)
 * @provider: the provider's own (model, bar)
 * @provider_ops: what it does (model, bar)
 * @import: the dma-buf (dmabuf)
 * @count: bytes read by reloads and written by evictions, and CPU time, per CPU
 * @io_errors: failed or corrupt transfers
 * @exported_bytes: pinned by exports
 * @reclaimed_bytes: taken from spaces that went on living
 * @shrink_pages: pages that the shrinker has asked for and not got yet
 * @ended: spaces with a part in it that are gone, ever; written under hawk_device.lock
 * @lost: the memory is gone by surprise: no transfer, no page of it any more
 * @gone: removed: its id may be another tier's.  Spaces that had a quota in it keep
 *	this structure
 * @released: @ops->release has been called
 * @writeback_permille: clean or free frames wanted per 1024 (sysfs, host)
 * @clean: takes care of chunks that left their owner
 * @unclean: this time it could not zero one; only @clean's
 * @clean_slower: pauses in a row after which that was so, 0: it could; only @clean's
 * @clean_at: when the present pause is over, jiffies, if @clean_slower; only @clean's
 * @watch: for drives that fail (blk)
 */
struct hawk_mem {
	struct kobject kobj;
	const struct hawk_mem_ops *ops;
	u32 id;
	u32 kind;
	s32 node;
	u32 chunks;
	struct hawk_host_chunk *chunk;
	struct file *file;
	struct hawk_pool_file *pool;
	struct hawk_submit_queue *submit;
	u64 data_off;
	void *provider;
	const struct hawk_provider_ops *provider_ops;
	struct hawk_import *import;
	struct hawk_mem_count __percpu *count;
	atomic64_t io_errors;
	atomic64_t exported_bytes;
	atomic64_t reclaimed_bytes;
	atomic_long_t shrink_pages;
	unsigned int ended;
	bool lost;
	bool gone;
	bool released;
	unsigned int writeback_permille;
	struct delayed_work clean;
	bool unclean;
	int clean_slower;
	unsigned long clean_at;
	struct hawk_watch watch;
};

void hawk_mem_clean_soon(struct hawk_mem *m);
void hawk_mem_unclean(struct hawk_mem *m, u32 chunk, int err);
void hawk_mem_remove_all(void);
struct hawk_mem *hawk_mem_find(u32 tier);
int hawk_mem_remove(struct hawk_mem *m);
void hawk_mem_release(struct hawk_mem *m);
struct hawk_mem *hawk_mem_create_host(const struct hawk_tier_add *arg);
struct hawk_mem *hawk_mem_create_blk(const struct hawk_tier_add *arg);
struct hawk_mem *hawk_mem_create_dmabuf(const struct hawk_tier_add *arg);
struct hawk_mem *hawk_mem_alloc(const struct hawk_mem_ops *ops, u32 kind, u32 chunks);
int hawk_mem_publish(struct hawk_mem *m);
int hawk_mem_usage(struct hawk_mem *m, u64 *free_bytes, u64 *quarantine_bytes);
int hawk_import_init(void);
void hawk_import_stop(void);
void hawk_import_exit(void);

struct hawk_mem_count hawk_mem_counted(const struct hawk_mem *m);

/* ---- statistics (stats.c) ---- */

#define HAWK_OPS	(_IOC_NR(HAWK_IOC_TRANSLATE) - _IOC_NR(HAWK_IOC_ALLOC) + 1)

/**
 * struct hawk_mem_count - bytes moved and the CPU time it took, of one CPU
 * @read: by reloads
 * @write: by evictions and writing ahead
 * @submit_ns: transfers given to the drive, nanoseconds
 * @complete_ns: ends of transfers but for @checksum_ns
 * @checksum_ns: checksums of blocks
 * @copy_ns: copies out of the tier to who asked for its blocks
 */
struct hawk_mem_count {
	u64 read;
	u64 write;
	u64 submit_ns;
	u64 complete_ns;
	u64 checksum_ns;
	u64 copy_ns;
};

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
struct hawk_job;
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
void hawk_as_detach(struct hawk_as *as);
struct hawk_as *hawk_as_next(struct hawk_as *prev);
bool hawk_as_wait_ends(const struct hawk_mem *m, unsigned int seen, unsigned long until);
int hawk_as_wait_dying(const struct hawk_mem *m);
void hawk_as_found(struct hawk_as *as);
int hawk_as_wait_finding(const struct hawk_mem *m);
u64 hawk_as_minima(const struct hawk_mem *m, kuid_t uid);
bool hawk_as_settle(struct hawk_as *as);

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

/* ---- asynchronous work of a file (async.c) ---- */

/**
 * struct hawk_task - a batch or gather that runs on a work queue and can be canceled
 * @node: in hawk_file.jobs
 * @user_data: by which HAWK_IOC_CANCEL finds it
 * @canceled: told to stop
 */
struct hawk_task {
	struct list_head node;
	u64 user_data;
	bool canceled;
};

void hawk_task_begin(struct hawk_file *f, struct hawk_task *task, u64 user_data);
void hawk_task_end(struct hawk_file *f, struct hawk_task *task);

/* The caller does not want the rest of it any more. */
static inline bool hawk_task_stopped(const struct hawk_file *f, const struct hawk_task *task)
{
	return READ_ONCE(task->canceled) || READ_ONCE(f->closed);
}

/* ---- batches (batch.c, batch_ops.c, job.c, async.c, uring.c) ---- */

#define HAWK_PLAN_MOVES		64	/* moves gathered before they are started */
#define HAWK_STEP_WAIT		1	/* a step's answer: look again after a move */

struct hawk_job;

/**
 * struct hawk_batch_op - one of the batch calls
 * @nr: its ioctl's number
 * @flags: HAWK_BATCH_* that it knows
 * @item_flags: HAWK_ITEM_* that it knows
 * @writes: it changes the space: not for read-only files
 * @waits: it may need moves: it has a plan, a deadline and a tier
 * @yields: it needs none, but may wait for importers of revoked exports
 * @arg: items use @arg
 * @step: try item @i; 0, a negative errno (both final) or HAWK_STEP_WAIT
 * @undo: give back the pin of a finished item that its caller will not learn of,
 *	NULL if it takes none
 */
struct hawk_batch_op {
	u32 nr;
	u32 flags;
	u32 item_flags;
	bool writes;
	bool waits;
	bool yields;
	bool arg;
	int (*step)(struct hawk_job *job, u32 i);
	void (*undo)(struct hawk_job *job, u32 i);
};

/**
 * struct hawk_item_state - an item of a waiting batch between its steps
 * @node: in hawk_job.todo or .blocked
 * @ready: in hawk_job.ready when the last of its moves has ended
 * @moves: its moves in flight
 * @read_error: result of its own reload or copy if that failed, else 0
 * @ref: its block (lease of a GET by key)
 * @done: it has its final status
 * @leased: @ref is leased
 * @copied: UNSHARE has its new block and waits for the copy
 */
struct hawk_item_state {
	struct list_head node;
	struct llist_node ready;
	atomic_t moves;
	int read_error;
	struct hawk_ref ref;
	bool done;
	bool leased;
	bool copied;
};

/**
 * struct hawk_asker - on whose behalf the engine makes room, for traces
 * @space: number of the space
 * @pid: process, 0: the device itself
 */
struct hawk_asker {
	u64 space;
	u32 pid;
};

/**
 * struct hawk_job - a batch being worked on
 * @ref: its runner and the moves that it started
 * @op: what to do with each item
 * @f: caller; an asynchronous job holds a reference
 * @as: caller's space
 * @arg: the call's argument
 * @items: kernel's copy of the items
 * @parent: keys that items with HAWK_ITEM_PARENT point to, NULL if none does
 * @st: state per item, NULL if the call never waits
 * @plan: room for moves, NULL if the call never waits
 * @plan_item: item that each move of @plan is for
 * @asker: caller's space and process; the plan's caller
 * @start: when the call was made, nanoseconds
 * @memlock: RLIMIT_MEMLOCK of the caller, pages
 * @now: time of the present round, nanoseconds
 * @pending: items without final status
 * @limit: PREFIX: items from here on are cut off
 * @posted: asynchronous PREFIX: completions posted so far, in order
 * @todo: items to step, runner only
 * @blocked: items that wait for somebody else's move, runner only
 * @ready: items whose own moves have ended, filled by completions
 * @lease: lease of a LOOKUP under way
 * @settle: an item found no room; chunks on their way are to be waited for
 * @settled: they have been, and none has come since @claims was read: no room is final
 * @claims: hawk_as.claims when the present round began, before anything was looked at
 * @async: results go to the ring
 * @cut: reloads were not begun because of the deadline, a signal, a cancellation
 * @task: how it is told to stop
 * @done: of an asynchronous job: reports its end, called once
 * @uring: io_uring command that it answers, or NULL
 * @work: runs an asynchronous job
 */
struct hawk_job {
	struct kref ref;
	const struct hawk_batch_op *op;
	struct hawk_file *f;
	struct hawk_as *as;
	struct hawk_batch arg;
	struct hawk_item *items;
	u8 (*parent)[HAWK_KEY_BYTES];
	struct hawk_item_state *st;
	struct hawk_plan plan;
	u32 *plan_item;
	struct hawk_asker asker;
	u64 start;
	unsigned long memlock;
	u64 now;
	u32 pending;
	u32 limit;
	u32 posted;
	struct list_head todo;
	struct list_head blocked;
	struct llist_head ready;
	struct hawk_lease *lease;
	bool settle;
	bool settled;
	s64 claims;
	bool async;
	bool cut;
	struct hawk_task task;
	void (*done)(struct hawk_job *job);
	struct io_uring_cmd *uring;
	struct work_struct work;
};

/* An all-zero key is no key. */
static inline const u8 *hawk_item_key(const struct hawk_item *it)
{
	return memchr_inv(it->key, 0, HAWK_KEY_BYTES) ? it->key : NULL;
}

int hawk_batch(struct hawk_file *f, unsigned int nr, struct hawk_batch *arg);
struct hawk_job *hawk_batch_prepare(struct hawk_file *f, unsigned int nr,
				    struct hawk_batch *arg);
int hawk_batch_finish(struct hawk_job *job, struct hawk_batch *arg);
void hawk_batch_undo(struct hawk_job *job);
const struct hawk_batch_op *hawk_batch_op(unsigned int nr);

int hawk_job_run(struct hawk_job *job);
void hawk_job_put(struct hawk_job *job);

void hawk_async_start(struct hawk_job *job, void (*done)(struct hawk_job *job));
void hawk_async_end(struct hawk_job *job);
void hawk_async_cancel(struct hawk_job *job);
int hawk_async_ring(struct hawk_job *job, struct hawk_batch *arg);

/* Its caller does not want the rest of it any more. */
static inline bool hawk_job_stopped(const struct hawk_job *job)
{
	return hawk_task_stopped(job->f, &job->task);
}

/* ---- moves (move.c) ---- */

/* What a move through staging pages is doing (stage.c). */
enum hawk_stage {
	HAWK_STAGE_NONE,	/* it needs none */
	HAWK_STAGE_FETCH,	/* out of the source frame */
	HAWK_STAGE_FLASH,	/* from or to flash */
	HAWK_STAGE_STORE,	/* into the destination frame */
};

/**
 * struct hawk_io - one move
 * @move: what the engine asked for
 * @as: its space, referenced
 * @job: the batch that waits for it, referenced, or NULL
 * @item: of @job
 * @bytes: to be moved: those of a block, or of several by a gather
 * @ret: bytes moved or a negative errno, set by the one who ends the I/O
 * @start: when it began, nanoseconds
 * @ended: in the list of those whose I/O is over
 * @end: ends it where sleeping is allowed
 * @iocb: of the block tier
 * @node: in a batch of transfers to be submitted
 * @flash: to this tier
 * @deliver: the delivery that it is part of, or NULL
 * @taken: it has begun, as @deliver counts
 * @stage: enum hawk_stage
 * @xfer: what a provider, or the importer of a dma-buf, is asked for
 * @bv: pages of the host frame, or staging pages
 * @nbv: entries of @bv
 * @bv_one: @bv of a contiguous frame
 */
struct hawk_io {
	struct hawk_move move;
	struct hawk_as *as;
	struct hawk_job *job;
	u32 item;
	u32 bytes;
	long ret;
	u64 start;
	struct llist_node ended;
	void (*end)(struct hawk_io *io);
	struct kiocb iocb;
	struct list_head node;
	struct hawk_mem *flash;
	struct hawk_deliver *deliver;
	bool taken;
	u32 stage;
	struct hawk_provider_xfer xfer;
	struct bio_vec *bv;
	u32 nbv;
	struct bio_vec bv_one;
};

int hawk_move_init(void);
void hawk_move_exit(void);
void hawk_round_begin(struct hawk_as *as);
void hawk_round_end(struct hawk_as *as);
void hawk_plan_start(struct hawk_as *as, struct hawk_job *job, struct hawk_plan *plan,
		     const u32 *item);
void hawk_io_end(struct hawk_io *io, long ret);
bool hawk_stage_wanted(const struct hawk_io *io);
void hawk_stage_start(struct hawk_io *io, struct list_head *batch);
bool hawk_stage_next(struct hawk_io *io);
void hawk_stage_alloc(struct hawk_io *io);
void hawk_stage_free(struct hawk_io *io);
struct hawk_provider_xfer *hawk_io_xfer(struct hawk_io *io, u64 off, bool write);
void hawk_io_failed(struct hawk_mem *m, bool write, u32 bytes, u64 off, int ret);

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
