/* SPDX-License-Identifier: MIT */
/*
 * hawk.h - libhawk, KV-cache memory for LLM inference
 *
 * One API over two backends: the kernel device (/dev/hawk) and the same engine
 * in this process.  A handle is a device with its tiers; a space holds the KV
 * blocks of one geometry.  Batch calls take arrays of struct hawk_item (see
 * <linux/hawk.h> for its members and item errors) and report per item.
 *
 * All functions are thread-safe unless told otherwise.  They return 0 or a
 * count on success and a negative errno on failure; errno itself is not used.
 * hawk_strerror_last() has the cause in words.
 */
#ifndef HAWK_HAWK_H
#define HAWK_HAWK_H

#include <stddef.h>
#include <stdint.h>
#include <linux/hawk.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAWK_VERSION_MAJOR	0
#define HAWK_VERSION_MINOR	1

struct hawk;		/* a device: kernel or embedded */
struct hawk_kv;		/* a space */

/**
 * hawk_open() - open a device
 * @url: "dev:" or "dev:/dev/hawk" (kernel), "embed:?dram=256M&flash=PATH&flash_size=1G"
 *	(in process), or NULL: $HAWK_URL if set, else the kernel device when it can be
 *	opened, else "embed:"
 * @hp: out, the handle
 *
 * Parameters of embed: dram=SIZE (default 256M), flash=PATH and flash_size=SIZE (the
 * file is created or grown; no flash tier without them), persist=1 (the flash file is a
 * pool, see hawk_tier_add_pool(); it is made if there is none). Sizes are bytes, with
 * K, M, G, T for powers of 1024. pace=0: gathers copy as fast as they can, not in step with
 * flash; link_mb_s=N: bandwidth of the link that they go through, 10^6 bytes per second, of
 * which all together use no more than cap=N percent (70) in any 10 ms.
 *
 * Return: 0; -EINVAL (malformed URL), -ENOENT, -EACCES, -EROFS, -ENOSPC (flash file),
 * -ENOMEM, -EPROTO (the kernel's ABI is not ours).
 */
int hawk_open(const char *url, struct hawk **hp);

/** hawk_close() - close a handle; its spaces have been closed before */
void hawk_close(struct hawk *h);

/** hawk_backend() - "dev" or "embed" */
const char *hawk_backend(const struct hawk *h);

/** hawk_strerror_last() - cause of this thread's last failure, in words, never NULL */
const char *hawk_strerror_last(void);

/** hawk_version() - "major.minor" of the library */
const char *hawk_version(void);

int hawk_device_query(struct hawk *h, struct hawk_query *q);

/**
 * hawk_tier_add_host() - add host memory; kernel backend: CAP_SYS_ADMIN
 * @node: NUMA node or -1; @bytes: whole chunks of it are used; @tier: out, tier id
 */
int hawk_tier_add_host(struct hawk *h, int node, uint64_t bytes, unsigned int *tier);

/**
 * hawk_tier_add_blk() - add a block device or file
 * @bytes: 0 for all of it
 */
int hawk_tier_add_blk(struct hawk *h, const char *path, uint64_t bytes, unsigned int *tier);

/**
 * hawk_tier_add_pool() - add a block device or file whose blocks outlive the device
 * @path: a pool that "hawkctl flash format" has made
 * @tier: out, tier id
 *
 * A named space that is made with the name, geometry and model of an earlier one finds that
 * one's blocks in the pool again, by key. See HAWK_TIER_PERSIST in &struct hawk_tier_add.
 */
int hawk_tier_add_pool(struct hawk *h, const char *path, unsigned int *tier);

/**
 * hawk_tier_add_dmabuf() - add the memory of another driver; kernel backend only
 * @fd: its dma-buf, may be closed afterwards; @bytes: 0 for all of it; @tier: out, tier id
 *
 * What is in it is overwritten.  See &struct hawk_tier_add.
 */
int hawk_tier_add_dmabuf(struct hawk *h, int fd, uint64_t bytes, unsigned int *tier);

/**
 * hawk_tier_add_gpu() - add memory of a GPU; embedded backend only
 * @gpu: "cuda:" and the GPU's number
 * @bytes: rounded down to whole chunks and whole pages of the GPU; it is taken at once and
 *	zeroed
 * @tier: out, tier id
 *
 * Blocks live in it as in host memory, but the CPU cannot reach them: kernels find a
 * pinned one by hawk_tier_device() and hawk_frame_where(), hawk_copy_in() and
 * hawk_copy_out() copy bytes.  Copy engines move blocks to flash and back.
 *
 * When the GPU fails the tier is lost (HAWK_HEALTH_LOST in hawk_tier_stat()): blocks in it
 * are misses, or come from flash if they are there, and the process goes on.
 * Return: 0; -ENODEV (no driver, no such GPU); -ENOSYS (its driver is too old); -ENOMEM
 * (so much is not free); -EINVAL; -EOPNOTSUPP (kernel backend, or the GPU cannot);
 * -EBUSY; -EPERM; -ENOSPC (no free tier id).
 */
int hawk_tier_add_gpu(struct hawk *h, const char *gpu, uint64_t bytes, unsigned int *tier);

#define HAWK_DEVICE_NAME	64

/**
 * enum hawk_device_peer - how a NIC or another driver reaches a GPU's memory
 * @HAWK_DEVICE_NO_PEER: not at all: bytes pass through host memory
 * @HAWK_DEVICE_DMABUF: by a dma-buf, hawk_tier_dmabuf()
 * @HAWK_DEVICE_PEERMEM: by its addresses, which nvidia-peermem tells RDMA drivers
 */
enum hawk_device_peer {
	HAWK_DEVICE_NO_PEER,
	HAWK_DEVICE_DMABUF,
	HAWK_DEVICE_PEERMEM,
};

/**
 * struct hawk_device - the GPU of a tier
 * @name: what its driver calls it
 * @pci: its PCI address
 * @address: device address of the tier's first byte, in the GPU's primary context
 * @bytes: of the tier
 * @granularity: of it, bytes
 * @version: of the driver's API: 1000 times the major number plus 10 times the minor one
 * @peer: enum hawk_device_peer
 * @error: 0, or the negative errno that the memory was lost with: -EIO (memory errors that
 *	cannot be corrected), -ETIMEDOUT (a kernel ran too long), -EREMOTEIO (any other
 *	failure of something that ran in the context)
 */
struct hawk_device {
	char name[HAWK_DEVICE_NAME];
	char pci[16];
	uint64_t address;
	uint64_t bytes;
	uint64_t granularity;
	uint32_t version;
	uint32_t peer;
	int32_t error;
};

/**
 * hawk_tier_device() - the GPU of a tier
 * Return: 0; -ENOENT (no such tier); -EOPNOTSUPP (it is no GPU's).
 */
int hawk_tier_device(struct hawk *h, unsigned int tier, struct hawk_device *d);

/**
 * hawk_tier_dmabuf() - all memory of a GPU's tier as a dma-buf
 *
 * Byte 0 is @address of &struct hawk_device.  It keeps the memory for whoever has it: close
 * it before the tier is removed.
 * Return: a descriptor that is the caller's; -ENOENT, -EOPNOTSUPP; the error of a lost tier.
 */
int hawk_tier_dmabuf(struct hawk *h, unsigned int tier);

int hawk_tier_del(struct hawk *h, unsigned int tier);

/**
 * hawk_tier_del_force() - remove a tier that spaces use
 *
 * Blocks move to other tiers as long as there is room and are dropped otherwise.
 * -EBUSY: some are pinned or being filled; no space gets memory of the tier any
 * more, call again.
 */
int hawk_tier_del_force(struct hawk *h, unsigned int tier);

/**
 * hawk_tier_reopen() - take a hawk_tier_del_force() that failed back
 *
 * Spaces that still have a quota in the tier get memory of it again, and so do new
 * ones; those that have left it stay out.  -ENOENT; -EIO: the memory is lost.
 */
int hawk_tier_reopen(struct hawk *h, unsigned int tier);
int hawk_tier_stat(struct hawk *h, unsigned int tier, struct hawk_tier_info *info);

/**
 * hawk_tier_admit_set() - how much may be written to a flash tier, and what
 * @tier: its id
 * @a: mode, budget, period and rated endurance as &struct hawk_tier_admit tells; size, flags,
 *	tier and reserved are the library's. Out: as from hawk_tier_admit_get()
 *
 * Kernel backend: CAP_SYS_ADMIN.
 * Return: 0; -ENOENT (no such tier); -EINVAL (not flash, or out of range); -EPERM.
 */
int hawk_tier_admit_set(struct hawk *h, unsigned int tier, struct hawk_tier_admit *a);

/** hawk_tier_admit_get() - the budget in force and what was written: 0, -ENOENT or -EINVAL */
int hawk_tier_admit_get(struct hawk *h, unsigned int tier, struct hawk_tier_admit *a);

/**
 * struct hawk_kv_params - geometry and limits of a space
 *
 * See &struct hawk_space_create for the members. @quota_all: if non-zero, @quota
 * is ignored and the space may own all of every tier. @idle_ns: kernel backend only.
 * @tp_rank, @tp_degree: the rank's head groups only, see there.
 * @shift: if non-zero, keys may be read shifted (HAWK_SPACE_SHIFT).
 */
struct hawk_kv_params {
	uint32_t block_bytes;
	uint32_t block_tokens;
	uint32_t layers;
	uint32_t head_groups;
	uint32_t layout;
	uint32_t dtype;
	uint64_t model_id;
	uint32_t max_blocks;
	uint32_t buckets;
	uint32_t mode;
	uint32_t quota_all;
	struct hawk_quota quota[HAWK_TIERS_MAX];
	const char *name;	/* NULL: private */
	uint64_t idle_ns;
	uint32_t tp_rank;
	uint32_t tp_degree;
	uint32_t seqs;
	uint32_t segs;
	uint32_t token_bytes;
	uint32_t planes;
	uint32_t shift;
};

int hawk_kv_create(struct hawk *h, const struct hawk_kv_params *p, struct hawk_kv **kv);
int hawk_kv_attach(struct hawk *h, const char *name, struct hawk_kv **kv);

/**
 * hawk_kv_fd() - the descriptor of a handle, to be passed to another process
 *
 * Kernel backend only. It stays the handle's: do not close it. Who receives a copy
 * may use that file, or bind its space to a file of its own (hawk_kv_attach_fd()).
 * Return: the descriptor or -EOPNOTSUPP.
 */
int hawk_kv_fd(struct hawk_kv *kv);

/**
 * hawk_kv_attach_fd() - a handle on the space of a descriptor that was received
 * @fd: of hawk_kv_fd() in another process; it may be closed afterwards
 *
 * Return: 0; -EOPNOTSUPP (embedded); -EBADF (not of this device), -ENXIO (it has no
 * space), -EACCES (not open for reading).
 */
int hawk_kv_attach_fd(struct hawk *h, int fd, struct hawk_kv **kv);

/**
 * hawk_kv_set() - change a named space
 * @mask: HAWK_SPACE_SET_*, what is changed; the other values must be 0
 * @mode: permission bits
 * @idle_ns: see &struct hawk_space_create; kernel backend only
 */
int hawk_kv_set(struct hawk *h, const char *name, uint32_t mask, uint32_t mode,
		uint64_t idle_ns);

/** hawk_kv_close() - unbind; a private space ends, its pins and leases too */
void hawk_kv_close(struct hawk_kv *kv);
int hawk_kv_destroy(struct hawk *h, const char *name);
int hawk_kv_info(struct hawk_kv *kv, struct hawk_space_info *info);

/**
 * hawk_kv_stats() - counters of a space
 * @st: out; as of all structures that the library fills, sizeof(*@st) in the header
 *	that it was built with is written, and @st->size is not looked at: if that grows,
 *	so does the number in the library's name
 */
int hawk_kv_stats(struct hawk_kv *kv, struct hawk_stats *st);

/**
 * hawk_kv_stats_page() - counters and histograms of a space, of one moment
 * @page: out; its size as for hawk_kv_stats()
 *
 * Kernel backend: a copy of the mapped page, which is at most @page->period_ms old;
 * only the first call on @kv makes a system call, and hawk_kv_stats() brings the
 * page up to date. Embedded: of now, without moves (all zero).
 *
 * Return: 0; -EOPNOTSUPP (the kernel has no such page); -ENOMEM.
 */
int hawk_kv_stats_page(struct hawk_kv *kv, struct hawk_stats_page *page);

/**
 * hawk_hist_quantile() - the time that @permille of 1000 stay below
 * @permille: 500 for the median, 990 for p99; at most 1000
 * Return: nanoseconds, exact to the factor 2 of a bucket; 0: nothing was counted.
 */
uint64_t hawk_hist_quantile(const struct hawk_hist *h, unsigned int permille);

/**
 * struct hawk_opts - options of a batch call; NULL means all zero
 * @flags: HAWK_BATCH_*
 * @tier: host tier to prefer plus one, 0 for any
 * @deadline_ns: absolute CLOCK_MONOTONIC, nanoseconds, 0 for none; for a lease
 *	its end
 * @user_data: echoed in completions
 */
struct hawk_opts {
	uint32_t flags;
	uint32_t tier;
	uint64_t deadline_ns;
	uint64_t user_data;
};

/*
 * Batches of up to HAWK_BATCH_MAX items.  Return the number of items with
 * status 0 or a negative errno when the batch as a whole was refused.
 */
int hawk_alloc(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o);
int hawk_put(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o);
int hawk_pin(struct hawk_kv *kv, struct hawk_item *it, unsigned int n);
int hawk_unpin(struct hawk_kv *kv, struct hawk_item *it, unsigned int n);
int hawk_reload(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o);
int hawk_fork(struct hawk_kv *kv, struct hawk_item *it, unsigned int n);
int hawk_unshare(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, const struct hawk_opts *o);
int hawk_free(struct hawk_kv *kv, struct hawk_item *it, unsigned int n);

/**
 * hawk_lookup() - which blocks of a key chain are there
 * @it: items with keys, in chain order
 * @lease: out, lease on the blocks of the prefix with HAWK_BATCH_LEASE; may be NULL
 * Return: length of the longest prefix present (items), or a negative errno.
 */
int hawk_lookup(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
		const struct hawk_opts *o, uint64_t *lease);
int hawk_lease_end(struct hawk_kv *kv, uint64_t lease);

/**
 * hawk_get() - reload where needed, pin and translate, by key or LID
 * @prefix: out, number of leading items with status 0; may be NULL
 * Return: number of items with status 0; with HAWK_BATCH_ASYNC 0: the results
 * come as completions; or a negative errno.
 */
int hawk_get(struct hawk_kv *kv, struct hawk_item *it, unsigned int n,
	     const struct hawk_opts *o, unsigned int *prefix);

/**
 * struct hawk_gather_lists - lists of blocks that are wanted in one buffer
 * @lid: LIDs of the first list, then of the second, ...
 * @count: rows of each list; HAWK_BATCH_MAX in all
 * @lists: lists, 1..HAWK_GATHER_LISTS
 * @remap: out, by row: its block is so many blocks from the start of the buffer on, or
 *	HAWK_GATHER_NONE
 * @status: out, by row: 0 or a negative errno; see &struct hawk_gather
 * @buf: the buffer, a multiple of 4096
 * @buf_bytes: its bytes
 */
struct hawk_gather_lists {
	const uint64_t *lid;
	const uint32_t *count;
	unsigned int lists;
	uint32_t *remap;
	int32_t *status;
	void *buf;
	uint64_t buf_bytes;
};

/**
 * hawk_gather() - copy blocks to one buffer, each once, wherever they lie
 * @o: flags: HAWK_BATCH_ASYNC; deadline, user_data; or NULL
 * @g: out, what was moved; may be NULL
 *
 * Blocks that neighbour each other in their tier are one transfer; those on flash are
 * read past any frame. &struct hawk_gather tells the rest, completions of an
 * asynchronous one included: then @remap is there on return and the buffer is the
 * device's until HAWK_CQE_BATCH.
 *
 * Return: rows with status 0, or a negative errno.
 */
int hawk_gather(struct hawk_kv *kv, const struct hawk_gather_lists *l, const struct hawk_opts *o,
		struct hawk_gather *g);

#define HAWK_GROUP_PCIE	8	/* layers fetched together over PCIe */
#define HAWK_GROUP_CXL	4	/* and over CXL */

/**
 * struct hawk_gather_budget - what may be fetched while a group of layers computes
 * @block_bytes: bytes of a block
 * @group: layers of a group, 0 for HAWK_GROUP_PCIE
 * @compute_ns: computing time of a group, nanoseconds
 * @setup_ns: time that a gather takes whatever its size, nanoseconds
 * @mb_per_s: by tier, 10^6 bytes per second, 0: nothing comes from there
 * @share: so many of 1024 blocks come from that tier; all 0: all from the slowest one
 */
struct hawk_gather_budget {
	uint32_t block_bytes;
	uint32_t group;
	uint64_t compute_ns;
	uint64_t setup_ns;
	uint32_t mb_per_s[HAWK_TIERS_MAX];
	uint32_t share[HAWK_TIERS_MAX];
};

/**
 * hawk_estimate() - what would bringing blocks take, and how many are better computed
 * @it: @n blocks of a prompt in its order, by key or LID; only read
 * @e: in: flags, row and tokens_per_s as &struct hawk_estimate tells; out: the rest
 *
 * Return: 0; -EINVAL (no item, or not whole rows), -E2BIG, -EOPNOTSUPP (a flag, or this
 * device cannot: HAWK_FEAT_PACE).
 */
int hawk_estimate(struct hawk_kv *kv, const struct hawk_item *it, unsigned int n,
		  struct hawk_estimate *e);

/**
 * hawk_phase() - prefill runs, or has ended
 * @until_ns: CLOCK_MONOTONIC time, ns, when it ends at the latest, no more than
 *	HAWK_PHASE_MAX_NS from now; 0: it has ended
 *
 * Meanwhile blocks that gathers have read from flash are copied to memory.
 * Return: how many wait for that, about; -EINVAL; -EOPNOTSUPP (HAWK_FEAT_PROMOTE).
 */
int hawk_phase(struct hawk_kv *kv, uint64_t until_ns);

/**
 * hawk_gather_rows_max() - different rows per layer that come while a group computes
 *
 * Tiers are taken to work one after the other, and every fraction is rounded to the
 * safe side.
 * Return: rows (blocks) for each layer of a group; 0: not one comes in time.
 */
unsigned int hawk_gather_rows_max(const struct hawk_gather_budget *b);

/**
 * hawk_gather_measure() - bandwidths and shares of tiers from a gather that has ended
 * @b: slower than it says is believed at once, faster by and by
 * @g: of a hawk_gather() without HAWK_BATCH_ASYNC
 */
void hawk_gather_measure(struct hawk_gather_budget *b, const struct hawk_gather *g);

struct hawk_prefetch;	/* groups of layers that are fetched ahead */

/**
 * hawk_prefetch_open() - prepare to fetch group g + 1 while group g computes
 * @kv: a space with a completion ring (hawk_ring_open())
 * @b: what may be fetched in time; without any @mb_per_s the first group is one row per
 *	list, and what follows is measured
 * @blocks: blocks of one group at most; two such buffers are made
 * @user_data: of the completions: this and the number behind it
 */
int hawk_prefetch_open(struct hawk_kv *kv, const struct hawk_gather_budget *b,
		       unsigned int blocks, uint64_t user_data, struct hawk_prefetch **pf);

/** hawk_prefetch_close() - -EBUSY: a group is still being fetched; else 0 */
int hawk_prefetch_close(struct hawk_prefetch *pf);

/**
 * hawk_prefetch_issue() - start to fetch a group's blocks
 * @lid: @n lists of LIDs, the most wanted rows of each first, one list per layer and
 *	candidate
 * @count: rows of each list
 * @cut: out, rows of each list that are being fetched; may be NULL
 *
 * All lists are cut to the same length so that the union comes in time.
 * Return: blocks under way; 0: none would come in time, or no list has a row, or the
 * buffer has no room for one row of each; nothing was started.  If it is the measured
 * rate that is too low, a little more is expected of the device the next time.
 * -EBUSY: both buffers are in use.
 */
int hawk_prefetch_issue(struct hawk_prefetch *pf, const uint64_t *lid, const uint32_t *count,
			unsigned int n, unsigned int *cut);

/**
 * hawk_prefetch_complete() - look at a completion that the caller has reaped
 * Return: 1: a group is there; 0: not yet; -ENOENT: the completion is somebody else's.
 */
int hawk_prefetch_complete(struct hawk_prefetch *pf, const struct hawk_cqe *cqe);

/**
 * struct hawk_prefetch_group - a group that has come
 * @buf: its blocks
 * @remap: by row, list by list, of those not cut off: see &struct hawk_gather_lists
 * @status: by row, likewise
 * @cut: rows of a list at most
 * @rows: rows of all lists
 * @blocks: blocks in @buf
 * @ns: time that it took, nanoseconds
 */
struct hawk_prefetch_group {
	const void *buf;
	const uint32_t *remap;
	const int32_t *status;
	unsigned int cut;
	unsigned int rows;
	unsigned int blocks;
	uint64_t ns;
};

/** hawk_prefetch_ready() - the oldest group that has come: 0, or -EAGAIN: none */
int hawk_prefetch_ready(struct hawk_prefetch *pf, struct hawk_prefetch_group *group);

/** hawk_prefetch_release() - that group has been computed: its buffer may be used again */
void hawk_prefetch_release(struct hawk_prefetch *pf);

/**
 * hawk_pin_cost() - how much would pinning blocks count against RLIMIT_MEMLOCK
 * @lid: LIDs of @n blocks, or NULL for new ones
 * @q: out, need, use and limit in bytes; the embedded backend charges nothing
 */
int hawk_pin_cost(struct hawk_kv *kv, const uint64_t *lid, unsigned int n,
		  struct hawk_pin_query *q);

/* ---- sequences; see &struct hawk_seq_op for what each operation does ---- */

/**
 * hawk_seq_batch() - operations on sequences, in order
 * @ops: 1..HAWK_BATCH_MAX of them; out: status and answer of each
 *
 * An operation that fails does not stop those behind it.
 * Return: number of operations with status 0, or a negative errno: nothing was done;
 * -EOPNOTSUPP: the space was made without sequences.
 */
int hawk_seq_batch(struct hawk_kv *kv, struct hawk_seq_op *ops, unsigned int n);

/**
 * hawk_seq_new() - an empty sequence; it ends with @kv
 * @flags: HAWK_SEQ_KEEP or 0
 * @seq: out, its number
 */
int hawk_seq_new(struct hawk_kv *kv, uint32_t flags, uint32_t *seq);

/** hawk_seq_fork() - a second sequence with all that @src has; no byte is copied */
int hawk_seq_fork(struct hawk_kv *kv, uint32_t src, uint32_t flags, uint32_t *seq);

/** hawk_seq_advance() - the first @n hidden tokens become visible */
int hawk_seq_advance(struct hawk_kv *kv, uint32_t seq, uint32_t n);

/**
 * hawk_seq_drop() - tokens [@start, @end) of the history are visible no more
 * Return: number of blocks given back, or a negative errno.
 */
int hawk_seq_drop(struct hawk_kv *kv, uint32_t seq, uint32_t start, uint32_t end);

/** hawk_seq_repos() - keys of [@start, @end) are read @shift positions earlier */
int hawk_seq_repos(struct hawk_kv *kv, uint32_t seq, uint32_t start, uint32_t end,
		   int32_t shift);

/**
 * hawk_seq_truncate() - the history ends after @len tokens
 * Return: number of blocks given back, or a negative errno.
 */
int hawk_seq_truncate(struct hawk_kv *kv, uint32_t seq, uint32_t len);

/** hawk_seq_compose() - tokens [@start, @end) of @src, read @shift earlier, follow in @seq */
int hawk_seq_compose(struct hawk_kv *kv, uint32_t seq, uint32_t src, uint32_t start,
		     uint32_t end, int32_t shift);

/**
 * hawk_seq_free() - end a sequence
 * Return: number of blocks given back, or a negative errno.
 */
int hawk_seq_free(struct hawk_kv *kv, uint32_t seq);

/**
 * hawk_seq_segs() - what a sequence shows
 * @segs: room for @n segments, or NULL if @n is 0
 * @map: out, see &struct hawk_seq_map; may be NULL
 * Return: number of segments; -E2BIG: more than @n, @map->count tells how many.
 */
int hawk_seq_segs(struct hawk_kv *kv, uint32_t seq, struct hawk_seg *segs, unsigned int n,
		  struct hawk_seq_map *map);

/**
 * hawk_kv_give() - let a process on the other end of a socket use a space; kernel backend only
 * @sock: a connected UNIX socket, blocking; SO_RCVTIMEO limits how long an answer is awaited
 *
 * He may do with it what this handle may, see hawk_kv_attach_fd().
 * Return: 0: hawk_kv_take() has attached to it; what that has returned; -EOPNOTSUPP
 * (embedded); -EPIPE (he is gone), -ETIME (no answer), -EPROTO (an answer of somebody else).
 */
int hawk_kv_give(struct hawk_kv *kv, int sock);

/**
 * hawk_kv_take() - attach to the space that comes through a socket
 * @sock: likewise
 * Return: 0 or as hawk_kv_attach_fd(); -EPIPE, -ETIME, -EPROTO.
 */
int hawk_kv_take(struct hawk *h, int sock, struct hawk_kv **kv);

#define HAWK_GIVE_SHARE	(1u << 0)	/* hawk_seq_give(): it stays the giver's, too */

/**
 * hawk_seq_give() - hand a sequence to a process that has the same space; no byte is copied
 * @sock: as for hawk_kv_give(); the other end calls hawk_seq_take()
 * @seq: without hidden tokens; blocks that are being filled are put before
 * @flags: HAWK_GIVE_*
 *
 * It is ended here only after it is the taker's, and it is his until his handle is closed.
 * If either dies before, the kernel gives back what the dead one had, and the other keeps
 * his.
 *
 * Return: 0; any error: it is still this handle's.  -ENOENT (no such sequence), -EBUSY (hidden
 * tokens), what hawk_seq_take() has returned, -EPIPE (he is gone), -ETIME (no answer: he may
 * take it later, then both have it), -EPROTO.
 */
int hawk_seq_give(struct hawk_kv *kv, int sock, uint32_t seq, uint32_t flags);

/**
 * hawk_seq_take() - take the sequence that hawk_seq_give() offers
 * @kv: the same space, as from hawk_kv_take() or by name
 * @flags: HAWK_SEQ_KEEP or 0
 * @seq: out, a sequence of this handle: LIDs and blocks are the giver's
 *
 * Return: 0; -ENOENT (the giver has ended it meanwhile, or is dead), -ESTALE (not the
 * sequence that was offered: another space, or changed since), as hawk_seq_fork(), -EPIPE,
 * -ETIME, -EPROTO.
 */
int hawk_seq_take(struct hawk_kv *kv, int sock, uint32_t flags, uint32_t *seq);

/**
 * hawk_elastic_set() - how much of each sequence stays in host tiers
 * @e: the parameters, as hawk_elastic_get() gives them and &struct hawk_elastic tells;
 *	size, flags and reserved are the library's. Out: as from hawk_elastic_get()
 *
 * Return: 0; -EINVAL; -EOPNOTSUPP (a space without sequences); -EACCES (it may only be
 * read).
 */
int hawk_elastic_set(struct hawk_kv *kv, struct hawk_elastic *e);

/** hawk_elastic_get() - the parameters, the share in force, what was moved: 0 or -EOPNOTSUPP */
int hawk_elastic_get(struct hawk_kv *kv, struct hawk_elastic *e);

#define HAWK_APPEND_HIDDEN	(1u << 0)	/* not visible before hawk_seq_advance() */
#define HAWK_APPEND_OPEN	(1u << 1)	/* the caller is filling the last block already */

/**
 * struct hawk_append - tokens that follow in a sequence, and blocks for them
 * @seq: the sequence
 * @len: tokens, at least 1
 * @pos: position of the first one
 * @flags: HAWK_APPEND_*
 * @it: room for items
 * @max: how many; (@len / block_tokens + 2) * layers * head_groups always suffice
 *	(of a slice: its own head groups)
 * @n: out, items used: block by block in the order of tokens, in each of these layer by
 *	layer, in each of these head group by head group
 * @run: out, sequence part of the LIDs
 * @tok: out, token part of the first one's: it is slot @tok % block_tokens of @it[0]
 * @history: out, length of the history, tokens
 */
struct hawk_append {
	uint32_t seq;
	uint32_t len;
	uint32_t pos;
	uint32_t flags;
	struct hawk_item *it;
	uint32_t max;
	uint32_t n;
	uint32_t run;
	uint32_t tok;
	uint32_t history;
};

/**
 * hawk_seq_append() - append tokens and get their blocks, ready to be written
 * @a: what and where
 *
 * Each item has LID and translation of a block that is being filled and pinned once by
 * @kv, as after hawk_alloc(); hawk_put() publishes it.  A last block that is only
 * partly full is made writable with the bytes that it has; if other sequences show it,
 * a copy of it is.  With HAWK_APPEND_OPEN the caller, who got that block from an
 * earlier call and has not put it, gets those behind it only, maybe none.
 *
 * One thread at a time may append to a sequence.
 * Return: @a->n; or a negative errno, then the sequence and the blocks are as before,
 * but hidden tokens are gone: -E2BIG (@a->n tells how many items), -EAGAIN (a last block
 * that is shared is still being filled: put it first), -EBUSY (somebody has it pinned),
 * -ENOENT (its bytes are gone), -ENOSPC, -EDQUOT, -ENOMEM.
 */
int hawk_seq_append(struct hawk_kv *kv, struct hawk_append *a);

/**
 * hawk_export_blocks() - blocks as one dma-buf; kernel backend only
 * @it: @n items, by LID; out: translation and status of each
 * @flags: HAWK_EXPORT_*
 * @x: out: descriptor, id, size; see &struct hawk_export
 *
 * Return: 0 or a negative errno, nothing is exported then; -EOPNOTSUPP (embedded).
 */
int hawk_export_blocks(struct hawk_kv *kv, struct hawk_item *it, unsigned int n, uint32_t flags,
		       struct hawk_export *x);

/**
 * hawk_export_end() - take a revocable export back; kernel backend only
 * @deadline_ns: CLOCK_MONOTONIC, nanoseconds; how long to wait for importers, 0: no limit
 *
 * Return: 0; -EBUSY: revoked, but an importer still has it mapped; see
 * &struct hawk_export_revoke.
 */
int hawk_export_end(struct hawk_kv *kv, uint64_t export_id, uint64_t deadline_ns);

/**
 * hawk_frame_where() - the place of a frame in its tier, bytes
 * @vt: translation of a pinned block; embedded backend: in a GPU's tier
 * @info: out, see &struct hawk_frame_info
 */
int hawk_frame_where(struct hawk_kv *kv, uint64_t vt, struct hawk_frame_info *info);

/**
 * hawk_copy_in() - write bytes of a block, wherever it lies
 * @vt: translation of a block that the caller has pinned or is filling
 * @off: first byte in the block
 * @bytes: at least 1, within the block
 *
 * Return: 0; -EINVAL; -EOPNOTSUPP (a dma-buf tier of the kernel backend); the error of a
 * GPU's tier that is lost.
 */
int hawk_copy_in(struct hawk_kv *kv, uint64_t vt, uint32_t off, const void *src, uint32_t bytes);

/** hawk_copy_out() - read bytes of a block, wherever it lies; as hawk_copy_in() */
int hawk_copy_out(struct hawk_kv *kv, uint64_t vt, uint32_t off, void *dst, uint32_t bytes);

/**
 * hawk_translate() - LID to translation, no system call
 * Return: HAWK_VT_* value, 0 if the LID is not in the vTLB.
 */
uint64_t hawk_translate(struct hawk_kv *kv, uint64_t lid);

/**
 * hawk_translate_batch() - many LIDs at once, no system call
 * @lid: @n LIDs, such as a sequence's block table
 * @vt: out, @n translations as hawk_translate() gives them
 *
 * Cache misses overlap, so each LID costs a fraction of a hawk_translate().
 * Return: number of LIDs that have a translation.
 */
unsigned int hawk_translate_batch(struct hawk_kv *kv, const uint64_t *lid, uint64_t *vt,
				  unsigned int n);

/**
 * hawk_translate_slow() - the same, asking the device when the vTLB has no entry
 */
uint64_t hawk_translate_slow(struct hawk_kv *kv, uint64_t lid);

/**
 * hawk_addr() - address of a translated block in this process
 * Return: its first byte, or NULL if @vt is not valid or not in a host tier.
 */
void *hawk_addr(struct hawk_kv *kv, uint64_t vt);

/**
 * hawk_ring_open() - make the completion ring
 * @entries: power of two
 * @efd: eventfd to signal or -1
 */
int hawk_ring_open(struct hawk_kv *kv, unsigned int entries, int efd);

/** hawk_ring_fd() - a descriptor to poll for completions */
int hawk_ring_fd(struct hawk_kv *kv);

/**
 * hawk_cancel() - stop asynchronous batches of this handle
 * @flags: 0: those with @user_data; HAWK_CANCEL_ALL: all, @user_data is 0
 *
 * Their items that are not done get -ECANCELED; all completions still come.
 * Return: number of batches told to stop, or -ENOENT.
 */
int hawk_cancel(struct hawk_kv *kv, uint64_t user_data, uint32_t flags);

/**
 * struct hawk_draft_params - a ring of draft slots
 * @seq: the sequence whose tokens are drafted, 0: none that the device knows of. What is
 *	accepted becomes visible, of the tokens reserved for it, when it is used next
 * @slots: tokens that it shall hold; rounded up to whole blocks
 * @planes: planes of a block, such as 2 for keys and values of one head: a block is
 *	@planes times block_tokens times @token_bytes, from its start
 * @token_bytes: bytes of a token in one plane
 *
 * @planes and @token_bytes both 0: as the space was made with
 * (&struct hawk_kv_params).
 */
struct hawk_draft_params {
	uint32_t seq;
	uint32_t slots;
	uint32_t planes;
	uint32_t token_bytes;
};

struct hawk_drafts;	/* a ring of draft slots */

/**
 * hawk_draft_open() - make a ring for the drafted tokens of a sequence
 * @d: out; used by one thread at a time
 *
 * Its slots are memory in the layout of blocks, so that attention reads drafted
 * tokens as the last blocks of their sequence. Tokens are numbered from 0 as they go
 * through the ring; number i has slot i modulo hawk_draft_slots(). The functions
 * below, but for hawk_draft_close(), make no system call, take no lock and
 * allocate nothing.
 *
 * Return: 0; -EINVAL; -E2BIG (more than HAWK_DRAFT_BYTES_MAX); -ENOSPC (more rings
 * than HAWK_DRAFTS_MAX); -ENOENT, -EBUSY, -EOPNOTSUPP (no such sequence, it has a ring,
 * no sequences in the space); -EACCES (the space may only be read); -ENOMEM, also for
 * RLIMIT_MEMLOCK.
 */
int hawk_draft_open(struct hawk_kv *kv, const struct hawk_draft_params *p,
		    struct hawk_drafts **d);

/** hawk_draft_close() - end a ring, before its space is closed; NULL is ignored */
void hawk_draft_close(struct hawk_drafts *d);

/** hawk_draft_slots() - slots of the ring, a multiple of block_tokens */
uint32_t hawk_draft_slots(const struct hawk_drafts *d);

/**
 * hawk_draft_block() - memory of some slots
 * @row: slot / block_tokens
 * @index: layer * head groups + head group, of those that the space keeps
 * Return: address of the block that holds slots @row * block_tokens and on.
 */
void *hawk_draft_block(const struct hawk_drafts *d, uint32_t row, uint32_t index);

/** hawk_draft_head() - tokens accepted so far: the number of the next one */
uint64_t hawk_draft_head(const struct hawk_drafts *d);

/** hawk_draft_slot() - draft one more token: its slot, or -ENOSPC */
int hawk_draft_slot(struct hawk_drafts *d);

/**
 * hawk_draft_accept() - the first @n drafted tokens stay, the others are dropped
 * @blocks: addresses of pinned blocks, those of a row (layers * head_groups) one
 *	behind the other
 * @tok: where the first goes: token @tok % block_tokens of row @tok / block_tokens
 * Return: 0; -EINVAL: @n tokens have not been drafted.
 */
int hawk_draft_accept(struct hawk_drafts *d, uint32_t n, void *const *blocks, uint32_t tok);

/** hawk_draft_reject() - no drafted token stays */
void hawk_draft_reject(struct hawk_drafts *d);

/**
 * hawk_reap() - take up to @n completions; one thread at a time
 * Return: number taken, 0 if none is ready.
 */
int hawk_reap(struct hawk_kv *kv, struct hawk_cqe *cqe, unsigned int n);

/* Bytes of a salt or of a name in &struct hawk_key_params at most. */
#define HAWK_KEY_TEXT_MAX	4096u

/**
 * struct hawk_key_params - what all blocks of a model and a tenant have in common
 * @salt: the tenant's secret, @salt_len bytes of it, may be empty: tenants with
 *	different salts have no key in common and cannot guess each other's
 * @model: id of the weights, not empty; a hash over them is best
 * @revision: of the weights or of the code, if it changes the bytes of a block
 * @dtype: element type, "f16"
 * @layout: how elements lie in a block, and what else their bits depend on, as the
 *	instruction set that computed them
 * @adapter: id of the adapter (LoRA), NULL for none
 * @block_tokens: tokens of a block, at least 1
 * @shard: which part of the heads or layers the block holds, less than @shard_count
 * @shard_count: parts, 0 for not split (@shard is 0 then)
 *
 * NULL for a name is the empty name; names have up to HAWK_KEY_TEXT_MAX bytes.
 */
struct hawk_key_params {
	const void *salt;
	size_t salt_len;
	const char *model;
	const char *revision;
	const char *dtype;
	const char *layout;
	const char *adapter;
	uint32_t block_tokens;
	uint32_t shard;
	uint32_t shard_count;
};

/* Kinds of &struct hawk_key_op; they are hashed, so they never change. */
#define HAWK_KEY_DROP	1u	/* tokens [start, end) became invisible */
#define HAWK_KEY_REPOS	2u	/* keys of tokens [start, end) are read as at position - shift */
#define HAWK_KEY_SPARSE	3u	/* tokens attend to some blocks only */

/**
 * struct hawk_key_op - an operation on the cache of a sequence
 * @kind: HAWK_KEY_DROP, HAWK_KEY_REPOS or HAWK_KEY_SPARSE
 * @at: index of the first token of the history that was computed after it
 * @start: first token of the history that it concerns; HAWK_KEY_SPARSE: tokens at the
 *	start that are always read
 * @end: the token behind the last one; HAWK_KEY_SPARSE: last tokens that are always read
 * @shift: positions; 0 for HAWK_KEY_DROP; HAWK_KEY_SPARSE: blocks that are chosen
 */
struct hawk_key_op {
	uint32_t kind;
	uint32_t at;
	uint32_t start;
	uint32_t end;
	int32_t shift;
};

/**
 * hawk_key_root() - the secret that keys of a model and a tenant start from
 * @root: out; not a key of a block, and to be kept from other tenants
 *
 * The same parameters give the same root in every process, always.
 *
 * Return: 0; -EINVAL (no model, no block_tokens, shard out of range, salt at NULL),
 * -E2BIG (a name or the salt is too long), -EIO (no random source for libsodium).
 */
int hawk_key_root(const struct hawk_key_params *p, uint8_t root[HAWK_KEY_BYTES]);

/**
 * hawk_key_next() - the key of a block
 * @root: of hawk_key_root()
 * @parent: key of the block before it, NULL for the first one
 * @tokens: the block's tokens, @n of them
 * @ops: all operations with @at before the end of this block, in order, @n_ops of them
 * @key: out; may be @parent
 *
 * Two histories that differ in a token or an operation up to the end of the block
 * have different keys. Allocates nothing.
 */
void hawk_key_next(const uint8_t root[HAWK_KEY_BYTES], const uint8_t *parent,
		   const int32_t *tokens, uint32_t n, const struct hawk_key_op *ops, uint32_t n_ops,
		   uint8_t key[HAWK_KEY_BYTES]);

#ifdef __cplusplus
}
#endif

#endif /* HAWK_HAWK_H */
