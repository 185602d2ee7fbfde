/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * hawk.h - the ABI of /dev/hawk, a KV-cache memory device
 *
 * One open file holds at most one space (HAWK_IOC_SPACE_CREATE or _ATTACH
 * binds it).  Control and batches are ioctls; KV bytes, translations and
 * completions are reached through mmap and cost no system call.
 *
 * Rules for every structure here
 * - the first member is its size in bytes, set by the caller; a larger one
 *   than the kernel knows is accepted if the unknown tail is zero (-E2BIG);
 * - unknown flags and non-zero reserved members are refused (-EOPNOTSUPP);
 * - all members are naturally aligned, so 32-bit callers use them unchanged;
 * - pointers travel as 64-bit integers.
 *
 * Errors common to all calls
 *	ENOTTY     unknown command
 *	E2BIG      non-zero bytes in a structure tail this kernel does not know,
 *	           or a count above its stated limit
 *	EOPNOTSUPP unknown flag, non-zero reserved member
 *	EINVAL     a known member has a value out of its range
 *	EFAULT     a pointer does not lead to accessible memory; if it is that of a
 *	           batch's items and they cannot be written back, the pins and the
 *	           lease that it took are given back, all else stays done;
 *	           so it does if the structure itself cannot be written back
 *	EPERM      the call needs CAP_SYS_ADMIN
 *	ENODEV     the device is going away
 *	ENXIO      the call needs a space and the file has none
 *	EACCES     the call would change the space; the file is open read-only, or
 *	           the space's mode gives it no write permission
 *	EINTR      a signal came before anything was done; once something was, the
 *	           items not reached have status ECANCELED and the call returns 0
 *
 * Errors of mmap(): ENXIO no such area; EINVAL not MAP_SHARED, or outside the
 * area; EACCES writing what is read-only.  Mappings are not inherited by fork().
 *
 * A frame that the space does not own - not yet, or not any more - reads as bytes
 * without meaning, and what is stored there is lost: a reader without a pin may
 * come too late, and learns that from the vTLB.  System calls and DMA (a pin of
 * its pages) cannot be given such a frame: EFAULT.  A frame whose memory has been
 * lost with its device gives SIGBUS as long as a block is pinned in it.
 */
#ifndef _UAPI_LINUX_HAWK_H
#define _UAPI_LINUX_HAWK_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HAWK_ABI_VERSION	1

/* Limits; HAWK_IOC_QUERY returns the ones in force. */
#define HAWK_TIERS_MAX		8		/* tiers of a device */
#define HAWK_BATCH_MAX		4096		/* items of one batch */
#define HAWK_NAME_MAX		64		/* bytes of a name, NUL included */
#define HAWK_KEY_BYTES		32
#define HAWK_PATH_MAX		4096		/* bytes of a tier's path, NUL included */
#define HAWK_CHUNK_BYTES	(2u << 20)	/* unit of ownership, bytes */
#define HAWK_FRAME_ALIGN	4096u		/* block bytes are a multiple of this */
#define HAWK_BLOCKS_MAX		(1u << 26)	/* blocks of one space */
#define HAWK_LEASE_DEFAULT_NS	30000000000ull	/* life of a lease, nanoseconds */
#define HAWK_LEASE_MAX_NS	3600000000000ull
#define HAWK_RING_MAX		65536u		/* entries of a completion ring */
#define HAWK_DRAFTS_MAX		4096u		/* draft rings of one file */
#define HAWK_DRAFT_BYTES_MAX	(64u << 20)	/* of a draft ring, its first page included */
#define HAWK_SEQS_MAX		65536u		/* sequences of one space */
#define HAWK_SEGS_MAX		(1u << 20)	/* segments of all sequences of a space */
#define HAWK_SEQ_SEGS_MAX	8192u		/* segments of one sequence */
#define HAWK_GATHER_LISTS	64		/* lists of one gather */

/*
 * LID, a block's logical id: seq:20 | layer:8 | head_group:4 | tok:32.
 * tok is the first token of the block.  A LID never changes while its data
 * moves between tiers.  seq 0 is the device's own: blocks that were found on persistent
 * flash have such LIDs, but 0 is never a block's.
 */
#define HAWK_LID_SEQ_SHIFT	44
#define HAWK_LID_LAYER_SHIFT	36
#define HAWK_LID_HEAD_SHIFT	32
#define HAWK_LID_SEQ_MAX	0xfffffu
#define HAWK_LID_LAYER_MAX	0xffu
#define HAWK_LID_HEAD_MAX	0xfu
#define HAWK_LID(seq, layer, head, tok)				\
	(((__u64)(seq) << HAWK_LID_SEQ_SHIFT) |			\
	 ((__u64)(layer) << HAWK_LID_LAYER_SHIFT) |		\
	 ((__u64)(head) << HAWK_LID_HEAD_SHIFT) | (__u64)(tok))

/*
 * Translation.  A space's vTLB is an array of lines of four entries, mapped
 * read-only at HAWK_MMAP_VTLB.  A LID lives in one of the HAWK_VT_PROBE lines
 * that start at hawk_mix(lid) & (lines - 1), modulo the number of lines; a LID
 * that found no room there is translated by HAWK_IOC_TRANSLATE.
 *
 * Reader: load val (acquire), compare lid, load val again; equal and with
 * HAWK_VT_VALID set means lid -> val.  After using the bytes, load val once
 * more (after a read barrier): unchanged means the bytes were this block's
 * throughout.  hawk_mix(x) is the finaliser x ^= x >> 33; x *= HAWK_MIX_A;
 * x ^= x >> 33; x *= HAWK_MIX_B; x ^= x >> 33.
 */
struct hawk_vtlb_entry {
	__aligned_u64 lid;
	__aligned_u64 val;
};

#define HAWK_VT_WAYS		4u		/* entries of a line (64 bytes) */
#define HAWK_VT_PROBE		4u		/* lines that may hold a LID */
#define HAWK_MIX_A		0xff51afd7ed558ccdull
#define HAWK_MIX_B		0xc4ceb9fe1a85ec53ull

/* val: valid:1 | busy:1 | reserved:2 | tier:4 | generation:24 | frame:32 */
#define HAWK_VT_VALID		(1ull << 63)
#define HAWK_VT_BUSY		(1ull << 62)	/* an insertion is under way */
#define HAWK_VT_TIER(v)		((unsigned int)((v) >> 56) & 0xf)
#define HAWK_VT_GEN(v)		((unsigned int)((v) >> 32) & 0xffffff)
#define HAWK_VT_FRAME(v)	((unsigned int)(v))

/*
 * mmap offsets, bytes.  Below 2^44, so that mmap2() of 32-bit callers reaches
 * them.  The window of tier t holds the space's own frames only: frame f is at
 * HAWK_MMAP_TIER(t) + f * block_bytes.  So frame numbers are usable unchanged
 * as page indices of paged-attention kernels.
 */
#define HAWK_MMAP_VTLB		(1ull << 40)	/* read-only */
#define HAWK_MMAP_RING		(2ull << 40)	/* read-write */
#define HAWK_MMAP_STATS		(3ull << 40)	/* read-only, struct hawk_stats_page */
#define HAWK_MMAP_DRAFT(id)	((4ull << 40) + (__u64)(id) * HAWK_DRAFT_BYTES_MAX) /* read-write */
#define HAWK_MMAP_TIER(t)	((8ull + (t)) << 40)	/* read-write, host tiers */

/* ---- device ---- */

#define HAWK_FEAT_TIER_HOST	(1ull << 0)	/* host memory tiers */
#define HAWK_FEAT_TIER_BLK	(1ull << 1)	/* block device or file tiers */
#define HAWK_FEAT_LEASE		(1ull << 2)
#define HAWK_FEAT_ASYNC		(1ull << 3)	/* HAWK_BATCH_ASYNC and the ring */
#define HAWK_FEAT_NAMED		(1ull << 4)	/* named spaces */
#define HAWK_FEAT_CRC		(1ull << 5)	/* CRC32C of blocks on flash */
#define HAWK_FEAT_RECLAIM	(1ull << 6)	/* chunks move between living spaces */
#define HAWK_FEAT_TIER_FORCE	(1ull << 7)	/* HAWK_TIER_FORCE */
#define HAWK_FEAT_ATTACH_FD	(1ull << 8)	/* HAWK_ATTACH_FD */
#define HAWK_FEAT_MEMLOCK	(1ull << 9)	/* RLIMIT_MEMLOCK, HAWK_IOC_PIN_QUERY */
#define HAWK_FEAT_IDLE		(1ull << 10)	/* idle_ns, HAWK_IOC_SPACE_SET */
#define HAWK_FEAT_CANCEL	(1ull << 11)	/* HAWK_IOC_CANCEL */
#define HAWK_FEAT_URING_CMD	(1ull << 12)	/* batches through io_uring */
#define HAWK_FEAT_EXPORT	(1ull << 13)	/* HAWK_IOC_EXPORT, _REVOKE, FRAME_INFO */
#define HAWK_FEAT_TIER_DMABUF	(1ull << 14)	/* imported dma-bufs */
#define HAWK_FEAT_TIER_MODEL	(1ull << 15)	/* tiers that other modules provide */
#define HAWK_FEAT_STATS_PAGE	(1ull << 16)	/* HAWK_MMAP_STATS */
#define HAWK_FEAT_SEQ		(1ull << 17)	/* HAWK_IOC_SEQ, HAWK_IOC_SEQ_MAP */
#define HAWK_FEAT_DRAFT		(1ull << 18)	/* HAWK_IOC_DRAFT_OPEN, _CLOSE */
#define HAWK_FEAT_GATHER	(1ull << 19)	/* HAWK_IOC_GATHER */
#define HAWK_FEAT_SLICE		(1ull << 20)	/* tp_rank, tp_degree */
#define HAWK_FEAT_ELASTIC	(1ull << 21)	/* HAWK_IOC_ELASTIC */
#define HAWK_FEAT_TIER_REOPEN	(1ull << 22)	/* HAWK_TIER_REOPEN */
#define HAWK_FEAT_HINT		(1ull << 23)	/* HAWK_ITEM_PARENT to HAWK_ITEM_TURN() */
#define HAWK_FEAT_PERSIST	(1ull << 24)	/* HAWK_TIER_PERSIST */
#define HAWK_FEAT_ADMIT		(1ull << 25)	/* HAWK_IOC_TIER_ADMIT */
#define HAWK_FEAT_PACE		(1ull << 26)	/* HAWK_BATCH_URGENT, _IN_TIME, HAWK_IOC_ESTIMATE */
#define HAWK_FEAT_PROMOTE	(1ull << 27)	/* HAWK_IOC_PHASE */
#define HAWK_FEAT_HEALTH	(1ull << 28)	/* hawk_tier_info.health, .out */
#define HAWK_FEAT_TIER_USER	(1ull << 29)	/* HAWK_TIER_USER */
#define HAWK_FEAT_TIER_BAR	(1ull << 30)	/* tiers in the memory of PCI devices */

/**
 * struct hawk_query - what this device offers (HAWK_IOC_QUERY)
 * @size: sizeof(struct hawk_query)
 * @flags: must be 0
 * @abi_version: out, HAWK_ABI_VERSION of the kernel
 * @batch_max: out, items of one batch
 * @features: out, HAWK_FEAT_*
 * @tiers: out, bit t set if tier t exists
 * @tiers_max: out, HAWK_TIERS_MAX of the kernel
 * @chunk_bytes: out, bytes of a chunk
 * @frame_align: out, block bytes must be a multiple of this, bytes
 */
struct hawk_query {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 batch_max;
	__aligned_u64 features;
	__u32 tiers;
	__u32 tiers_max;
	__u32 chunk_bytes;
	__u32 frame_align;
};

enum hawk_tier_kind {
	HAWK_TIER_HOST = 1,	/* kernel pages on a NUMA node */
	HAWK_TIER_BLK = 2,	/* block device or file, O_DIRECT */
	HAWK_TIER_DMABUF = 3,	/* memory of another driver, from its dma-buf */
	HAWK_TIER_MODEL = 4,	/* memory that another module provides */
	HAWK_TIER_USER = 5,	/* a GPU's, moved by its copy engines; libhawk's embedded device */
	HAWK_TIER_BAR = 6,	/* memory of a PCI BAR, as HAWK_TIER_MODEL; windows are write-combining */
};

/**
 * struct hawk_tier_add - add memory to the device (HAWK_IOC_TIER_ADD)
 * @size: sizeof(struct hawk_tier_add)
 * @flags: HAWK_TIER_PERSIST or 0
 * @kind: enum hawk_tier_kind
 * @node: NUMA node of a host tier, -1 for the caller's; -1 for other kinds
 * @bytes: capacity, bytes, rounded down to whole chunks; 0 means the whole device
 *	or the present size of the file (HAWK_TIER_BLK), the whole buffer
 *	(HAWK_TIER_DMABUF)
 * @path: pointer to a NUL-terminated path (HAWK_TIER_BLK), or the name of a GPU
 *	(HAWK_TIER_USER), else 0
 * @path_len: bytes at @path, NUL included, 2..HAWK_PATH_MAX
 * @tier: out, the id of the new tier
 * @fd: descriptor of a dma-buf (HAWK_TIER_DMABUF), may be closed afterwards; else 0
 * @reserved: must be 0
 *
 * A host tier takes no memory yet: a chunk's memory is taken from the node when a
 * space gets the chunk, charged to the memory cgroup of the space's creator, and
 * given back when the space has left it.  A space that cannot get memory evicts
 * within what it has.
 *
 * The buffer of a HAWK_TIER_DMABUF tier is overwritten with zeroes, by this call and,
 * chunk by chunk, whenever blocks of a space have been there: so also before its
 * exporter gets it back.  Blocks are used in it as in host memory, but there is no
 * window: who has the buffer itself mapped (a GPU, say) finds a pinned block by
 * HAWK_IOC_FRAME_INFO.  Between the buffer and flash the CPU copies.  The exporter may
 * move the buffer.  If it takes the buffer away, the tier is lost: its blocks become
 * misses, it is removed.  If the buffer was a tier that has just been removed, the call
 * waits until that has let it go.
 *
 * With HAWK_TIER_PERSIST (HAWK_TIER_BLK only) the device or file is a pool that
 * "hawkctl flash format" has made, see hawk-flash(5), and @bytes is 0: the blocks of named
 * spaces that are written there outlive the device.  A named space that is made with the
 * name, owner, geometry and model of an earlier one finds that one's blocks again, by key;
 * they have LIDs of sequence number 0 until they get others (FORK).  What an earlier space
 * has left is kept until its room is needed for others.  ENOENT: it is no pool; EILSEQ,
 * EUCLEAN: it was one and both superblocks are damaged; EPROTONOSUPPORT: of a later version;
 * EOPNOTSUPP: this device cannot (HAWK_FEAT_PERSIST).  Without the flag a pool is refused:
 * EEXIST.  Without it a file may become 4096 bytes longer, and of a device whose bytes are
 * whole chunks the last one is not used: what is plain flash is marked as such behind its
 * blocks, as those may look like a pool.
 *
 * Needs CAP_SYS_ADMIN.  ENOMEM: the node has not so much memory at all; ENOSPC: no
 * free tier id or the file or buffer is smaller than @bytes or than a chunk; EBUSY:
 * the block device is in use, the file locked by another (flock: a tier, maybe under
 * another name, or a process with the embedded backend), or the buffer a tier already;
 * EROFS, EACCES, ENOENT: from opening the path; ENOTBLK: neither block device nor regular
 * file.  For HAWK_TIER_DMABUF: EBADF: @fd is no descriptor; EINVAL: it is no dma-buf, or
 * one of HAWK_IOC_EXPORT; EOPNOTSUPP: the CPU cannot map it; ENODEV: its exporter has
 * taken it away; EINTR: killed while it was zeroed, or while an old tier let it go; others
 * are the exporter's.
 */
struct hawk_tier_add {
	__u32 size;
	__u32 flags;
	__u32 kind;
	__s32 node;
	__aligned_u64 bytes;
	__aligned_u64 path;
	__u32 path_len;
	__u32 tier;
	__s32 fd;
	__u32 reserved;
};

#define HAWK_TIER_PERSIST	(1u << 0)	/* of hawk_tier_add: a pool */

#define HAWK_TIER_FORCE		(1u << 0)	/* spaces must leave it */
#define HAWK_TIER_REOPEN	(1u << 1)	/* it stays after all */

/**
 * struct hawk_tier_remove - take memory away (HAWK_IOC_TIER_REMOVE)
 * @size: sizeof(struct hawk_tier_remove)
 * @flags: HAWK_TIER_FORCE, HAWK_TIER_REOPEN or 0
 * @tier: tier id
 * @reserved: must be 0
 *
 * Without HAWK_TIER_FORCE only a tier in which no space has a quota is removed.  For one
 * whose last file and export are closed, but which is still on its way out, the call
 * waits, 10 seconds at most.
 *
 * With HAWK_TIER_FORCE spaces leave the tier: their blocks are moved to flash, or from
 * flash into a host tier, as long as there is room, and dropped as misses otherwise.
 * Their quota there is 0 from then on.  The call waits for all that.
 *
 * Needs CAP_SYS_ADMIN.  ENOENT: no such tier; EBUSY: a space has a quota in it, or
 * its pages are still held by a NIC or another process; with HAWK_TIER_FORCE:
 * blocks in it are pinned, being filled or read by gathers, or its pages are held; the
 * kernel log tells by whose space.  The tier stays closed then, no space gets a chunk
 * of it; call again; EINTR: the caller was killed, likewise.
 *
 * HAWK_TIER_REOPEN removes nothing: it takes back a removal by force that failed.
 * Spaces that still have a quota in the tier, and new ones, get chunks of it again;
 * those that have left it stay out.  A flash tier that failed is healthy again for the
 * device.  0 also if it was not closed.  EINVAL: together
 * with HAWK_TIER_FORCE; EIO: its memory is lost, nobody can use it again.
 */
struct hawk_tier_remove {
	__u32 size;
	__u32 flags;
	__u32 tier;
	__u32 reserved;
};

enum hawk_admit_mode {
	HAWK_ADMIT_REUSE = 0,	/* what is likely to come back, as the budget tightens */
	HAWK_ADMIT_ALL = 1,	/* everything, as long as the budget is not overdrawn */
	HAWK_ADMIT_SECOND = 2,	/* what has been used twice; for comparison */
	HAWK_ADMIT_FORMULA = 3,	/* reuse per residency, faded, above a constant; likewise */
};

#define HAWK_ADMIT_SET		(1u << 0)	/* set @mode, @budget_bytes, @period_ns, @rated_bytes */
#define HAWK_DAY_NS		86400000000000ull
#define HAWK_ADMIT_PERIOD_MAX_NS (366 * HAWK_DAY_NS)

/**
 * struct hawk_tier_admit - what may be written to a flash tier (HAWK_IOC_TIER_ADMIT)
 * @size: sizeof(struct hawk_tier_admit)
 * @flags: HAWK_ADMIT_SET: set first (CAP_SYS_ADMIN), or 0
 * @tier: id of a HAWK_TIER_BLK tier
 * @mode: enum hawk_admit_mode
 * @budget_bytes: that may be written per period; 0 when set: three quarters of what
 *	@rated_bytes gives, none if that is 0 too; 0 when told: no limit
 * @period_ns: of the budget, 128 to HAWK_ADMIT_PERIOD_MAX_NS; 0 when set: a day
 * @rated_bytes: endurance that the drive is rated for, bytes per day (a data sheet's drive
 *	writes per day times its capacity); 0: not known
 * @spent_bytes: out, written in the last period
 * @credit_bytes: out, accrued and not yet written
 * @threshold: out, score from which on blocks are admitted, in units of 2^-32; 0: all are
 * @reserved: must be 0
 *
 * Setting begins a new budget; what was written before the call does not count.  Payloads
 * count, and the headers and records of a pool (HAWK_TIER_PERSIST), in whole pages.
 * ENOENT: no such tier; EINVAL: not a flash tier, or a value out of range.
 */
struct hawk_tier_admit {
	__u32 size;
	__u32 flags;
	__u32 tier;
	__u32 mode;
	__aligned_u64 budget_bytes;
	__aligned_u64 period_ns;
	__aligned_u64 rated_bytes;
	__aligned_u64 spent_bytes;
	__aligned_u64 credit_bytes;
	__aligned_u64 threshold;
	__u32 reserved[2];
};

enum hawk_tier_health {
	HAWK_HEALTH_OK = 0,
	HAWK_HEALTH_FAILING = 1,	/* takes no block but a trial now and then; is read as ever */
	HAWK_HEALTH_LOST = 2,		/* gone: its blocks are misses */
};

/**
 * struct hawk_tier_info - one tier (HAWK_IOC_TIER_INFO)
 * @size: sizeof(struct hawk_tier_info)
 * @flags: must be 0
 * @tier: in, tier id
 * @kind: out, enum hawk_tier_kind
 * @node: out, NUMA node or -1
 * @reserved: must be 0
 * @bytes: out, capacity, bytes
 * @free_bytes: out, bytes of chunks that no space owns
 * @quarantine_bytes: out, bytes of chunks that left their space and wait to be
 *	cleaned, for long only if a NIC or another process holds their pages, or the
 *	driver that the memory came from cannot zero it (the kernel log has why)
 * @read_bytes: out, bytes read from the tier by reloads, and from flash by gathers
 * @write_bytes: out, bytes written to the tier by evictions
 * @io_errors: out, failed or corrupt transfers
 * @reclaimed_bytes: out, bytes of chunks taken from spaces that went on living: for
 *	other spaces, for the system, or for the tier's removal
 * @orphan_bytes: out, of @free_bytes those of chunks that are kept for spaces which are
 *	not there (HAWK_TIER_PERSIST)
 * @header_bytes: out, bytes of headers and records written, beside @write_bytes
 * @health: out, enum hawk_tier_health of a flash tier
 * @out: out, transfers from and to flash that are under way; one that does not end keeps
 *	its memory until it does
 * @submit_cpu_ns: out, CPU time of giving transfers to the drive, nanoseconds; these four are
 *	0 where it is not counted (the embedded backend)
 * @complete_cpu_ns: out, of their ends but for @checksum_cpu_ns
 * @checksum_cpu_ns: out, of checksums of blocks
 * @copy_cpu_ns: out, of copies out of the tier to who asked for its blocks
 *
 * A flash tier fails when a write fails, when eight reads in a row do, or when nothing
 * that is under way has ended for two to three seconds. It gets no block then, but one as
 * a trial after a second, and after ever longer pauses; if that is written it takes blocks
 * again.
 * What it holds is read as ever: a block that cannot be read is a miss from then on.
 */
struct hawk_tier_info {
	__u32 size;
	__u32 flags;
	__u32 tier;
	__u32 kind;
	__s32 node;
	__u32 reserved;
	__aligned_u64 bytes;
	__aligned_u64 free_bytes;
	__aligned_u64 quarantine_bytes;
	__aligned_u64 read_bytes;
	__aligned_u64 write_bytes;
	__aligned_u64 io_errors;
	__aligned_u64 reclaimed_bytes;
	__aligned_u64 orphan_bytes;
	__aligned_u64 header_bytes;
	__u32 health;
	__u32 out;
	__aligned_u64 submit_cpu_ns;
	__aligned_u64 complete_cpu_ns;
	__aligned_u64 checksum_cpu_ns;
	__aligned_u64 copy_cpu_ns;
};

/* ---- spaces ---- */

/**
 * struct hawk_quota - a space's share of one tier
 * @min_bytes: bytes kept free for this space as long as it has not used them
 * @max_bytes: bytes it may own; 0 keeps the space out of this tier
 *
 * The minima of all spaces in a tier are at most its size, so all can be had at one time.
 * What a space owns above its own is lent, and may be taken back chunk by chunk: for a
 * new space whose minimum is not free; for a space that finds the tier full and has at
 * least two chunks less above its own minimum; and from host tiers when the system needs
 * memory.  Cold blocks go first; pinned and leased ones, and chunks with pages registered
 * for DMA, are not taken.
 */
struct hawk_quota {
	__aligned_u64 min_bytes;
	__aligned_u64 max_bytes;
};

#define HAWK_SPACE_NAMED	(1u << 0)	/* survives its creator, found by name */
#define HAWK_SPACE_SHIFT	(1u << 1)	/* keys may be read shifted: rotary, not quantised,
						 * no attention window
						 */

/**
 * struct hawk_space_create - make a space and bind it to this file
 * @size: sizeof(struct hawk_space_create)
 * @flags: HAWK_SPACE_*
 * @block_bytes: bytes of a block, a multiple of HAWK_FRAME_ALIGN, at most
 *	HAWK_CHUNK_BYTES
 * @block_tokens: tokens of a block, 1..65536
 * @layers: layers of the model, 1..256
 * @head_groups: head groups, 1..16
 * @layout: caller's tag for the layout inside a block; attach compares it
 * @dtype: caller's tag for the element type; attach compares it
 * @model_id: caller's tag for the model; attach compares it
 * @max_blocks: blocks that may exist at one time in all tiers together,
 *	1..HAWK_BLOCKS_MAX; the vTLB is sized for it
 * @buckets: PB-LRU buckets, a power of two 1..512, 0 for the default (64)
 * @mode: permission bits of a named space (owner, group, other: 4 attach and
 *	read, 2 write), else 0
 * @reserved: must be 0
 * @vtlb_bytes: out, bytes to map at HAWK_MMAP_VTLB
 * @quota: quota per tier id; tiers that do not exist must be zero
 * @name: name of a named space, NUL-terminated, else all zero
 * @idle_ns: a named space ends when no file has had it attached for so long,
 *	nanoseconds; 0: never.  0 for a private one
 * @seqs: sequences that may exist at one time, 0..HAWK_SEQS_MAX; 0: none.  They get
 *	LID sequence numbers of their own from the top of the range, as many as
 *	twice @seqs, which other LIDs must not use then
 * @segs: segments of all sequences together, 0..HAWK_SEGS_MAX; 0: eight times @seqs
 * @token_bytes: bytes of one token in one plane of a block; 0: the rows of a block
 *	cannot be copied one by one, so sequences are not compacted
 * @planes: planes of a block, one behind the other from its start, each of
 *	@block_tokens * @token_bytes bytes; they fit into @block_bytes
 * @tp_rank: tensor-parallel rank that the space is for, below @tp_degree
 * @tp_degree: ranks, a divisor of @head_groups; 0: the space is not sliced
 *
 * A sliced space keeps blocks of head groups @tp_rank * g to (@tp_rank + 1) * g - 1
 * only, g = @head_groups / @tp_degree.  All ranks use the same LIDs and need not talk to
 * each other: items of ALLOC and FORK that would make a LID of another rank's head group
 * get EREMOTE, and all that looks for one finds nothing (ENOENT).
 *
 * The call returns when the minima are free for the space.  If others own more than
 * theirs of what it needs, that is taken from them first, which may take as long as it
 * takes to write it to flash; nobody finds the space by its name meanwhile.
 *
 * EBUSY: the file has a space already, or a call is making one for it; EEXIST: the name
 * is taken; ENOENT: a quota names a tier that does not exist or is going; ENOSPC: a
 * minimum and those of all other spaces are more than the tier has, or others own it
 * above their minima and it cannot be taken back: it is pinned, leased, registered for
 * DMA, in use all the time or not zeroed yet, or the minima of the caller's spaces would
 * be more than min_percent of the tier and he lacks CAP_SYS_RESOURCE (the kernel log tells);
 * ENOMEM; EINTR: the caller is being killed.
 */
struct hawk_space_create {
	__u32 size;
	__u32 flags;
	__u32 block_bytes;
	__u32 block_tokens;
	__u32 layers;
	__u32 head_groups;
	__u32 layout;
	__u32 dtype;
	__aligned_u64 model_id;
	__u32 max_blocks;
	__u32 buckets;
	__u32 mode;
	__u32 reserved;
	__aligned_u64 vtlb_bytes;
	struct hawk_quota quota[HAWK_TIERS_MAX];
	__u8 name[HAWK_NAME_MAX];
	__aligned_u64 idle_ns;
	__u32 seqs;
	__u32 segs;
	__u32 token_bytes;
	__u32 planes;
	__u32 tp_rank;
	__u32 tp_degree;
};

#define HAWK_ATTACH_FD		(1u << 0)	/* the space of @fd, not one by name */

/**
 * struct hawk_space_attach - bind a space to this file
 * @size: sizeof(struct hawk_space_attach)
 * @flags: HAWK_ATTACH_*
 * @name: name of the space, NUL-terminated; all zero with HAWK_ATTACH_FD
 * @fd: an open file of this device, maybe received over a UNIX socket, whose
 *	space (also a private one) is bound to this file too; else 0
 * @reserved: must be 0
 *
 * Pins, leases and the ring stay each file's own.  By @fd the caller gets no
 * more than that file may: read-only if it is read-only.
 * ENOENT: no such space, or the caller may not know of it; EBUSY: the file has
 * a space already; EBADF: @fd is no open file of this device; ENXIO: it has no
 * space; EACCES: it is not open for reading.  HAWK_IOC_SPACE_INFO then tells the
 * geometry.
 */
struct hawk_space_attach {
	__u32 size;
	__u32 flags;
	__u8 name[HAWK_NAME_MAX];
	__s32 fd;
	__u32 reserved;
};

/**
 * struct hawk_space_destroy - end a named space
 * @size: sizeof(struct hawk_space_destroy)
 * @flags: must be 0
 * @name: name of the space, NUL-terminated
 *
 * The name is free at once; memory is given back when the last file that has
 * the space attached is closed and its mappings are gone.  EPERM: the caller is
 * neither the owner nor CAP_SYS_ADMIN; ENOENT.
 */
struct hawk_space_destroy {
	__u32 size;
	__u32 flags;
	__u8 name[HAWK_NAME_MAX];
};

#define HAWK_SPACE_SET_IDLE	(1u << 0)
#define HAWK_SPACE_SET_MODE	(1u << 1)

/**
 * struct hawk_space_set - change a named space (HAWK_IOC_SPACE_SET)
 * @size: sizeof(struct hawk_space_set)
 * @flags: must be 0
 * @mask: HAWK_SPACE_SET_*, what is changed; the other members must be 0
 * @mode: permission bits for later attaches, see &struct hawk_space_create
 * @idle_ns: see &struct hawk_space_create; counted from when the last file left
 * @name: name of the space, NUL-terminated
 *
 * EPERM: the caller is neither the owner nor CAP_SYS_ADMIN; ENOENT.
 */
struct hawk_space_set {
	__u32 size;
	__u32 flags;
	__u32 mask;
	__u32 mode;
	__aligned_u64 idle_ns;
	__u8 name[HAWK_NAME_MAX];
};

/**
 * struct hawk_space_info - the space bound to this file (HAWK_IOC_SPACE_INFO)
 * @size: sizeof(struct hawk_space_info)
 * @flags: must be 0
 * @block_bytes: out, see &struct hawk_space_create
 * @block_tokens: out
 * @layers: out
 * @head_groups: out
 * @layout: out
 * @dtype: out
 * @model_id: out
 * @max_blocks: out
 * @buckets: out
 * @vtlb_bytes: out, bytes to map at HAWK_MMAP_VTLB
 * @frames: out, frames of the window at HAWK_MMAP_TIER(t); its length is
 *	frames[t] * block_bytes
 * @name: out, the name of a named space, else empty
 * @seqs: out, see &struct hawk_space_create
 * @segs: out
 * @token_bytes: out
 * @planes: out
 * @tp_rank: out
 * @tp_degree: out
 */
struct hawk_space_info {
	__u32 size;
	__u32 flags;
	__u32 block_bytes;
	__u32 block_tokens;
	__u32 layers;
	__u32 head_groups;
	__u32 layout;
	__u32 dtype;
	__aligned_u64 model_id;
	__u32 max_blocks;
	__u32 buckets;
	__aligned_u64 vtlb_bytes;
	__u32 frames[HAWK_TIERS_MAX];
	__u8 name[HAWK_NAME_MAX];
	__u32 seqs;
	__u32 segs;
	__u32 token_bytes;
	__u32 planes;
	__u32 tp_rank;
	__u32 tp_degree;
};

/* ---- batches ---- */

/* item flags */
#define HAWK_ITEM_BY_KEY	(1u << 0)	/* name the block by key, not by LID */

/*
 * Hints of ALLOC and PUT: what the caller knows of a block that the device cannot.  They
 * decide whether it is worth a write to flash, never whether its bytes are right.  The
 * position in the prompt is tok of the LID.
 */
#define HAWK_ITEM_PARENT	(1u << 1)	/* arg points to the key of the block before */
#define HAWK_ITEM_TRANSIENT	(1u << 2)	/* will not be used again, as far as is known */
#define HAWK_ITEM_PERSIST	(1u << 3)	/* worth its write */
#define HAWK_ITEM_TAIL		(1u << 4)	/* last, maybe partial block of a prompt */
#define HAWK_ITEM_ROOT		(1u << 5)	/* the first of its chain, has no parent */
#define HAWK_ITEM_TURN_SHIFT	16
#define HAWK_ITEM_TURN(n)	((__u32)(n) << HAWK_ITEM_TURN_SHIFT) /* of a conversation, from 1 */
#define HAWK_ITEM_HINTS		(HAWK_ITEM_PARENT | HAWK_ITEM_TRANSIENT | HAWK_ITEM_PERSIST | \
				 HAWK_ITEM_TAIL | HAWK_ITEM_ROOT | HAWK_ITEM_TURN(0xffff))

/**
 * struct hawk_item - one block of a batch (64 bytes)
 * @lid: in, the block's LID unless HAWK_ITEM_BY_KEY; out, its LID
 * @vt: out, its translation (HAWK_VT_*)
 * @arg: FORK: in, the new LID; with HAWK_ITEM_PARENT: in, pointer to the key of the
 *	block that holds the tokens before; otherwise must be 0
 * @status: out, 0 or a negative errno
 * @flags: in, HAWK_ITEM_*
 * @key: in, the block's key; all zero is "no key"
 *
 * Hints go with ALLOC and PUT; those of PUT, if it has any, replace those of ALLOC.  EINVAL:
 * HAWK_ITEM_PARENT with ROOT, or TRANSIENT with PERSIST.  A parent key of all zero is none.
 *
 * @lid may name any token of a block; the device rounds tok down to a multiple
 * of block_tokens.  Item errors: ENOENT no such block; EEXIST the LID or key is
 * taken; EAGAIN in flight or not in a host tier, ask again or reload; ESTALE
 * generation changed, or the caller has no pin to give up; EBUSY pinned or
 * leased; ENOSPC no room and nothing may be evicted; EDQUOT the same within the
 * space's quota; EIO the tier failed, the block is gone; EINVAL; EOVERFLOW too
 * many pins; ENOMEM one pin more would exceed RLIMIT_MEMLOCK (&struct
 * hawk_pin_query), or the kernel has no memory to note it; ETIME the deadline
 * passed; ECANCELED not reached, or stopped by HAWK_IOC_CANCEL; EREMOTE the LID's head
 * group is another rank's (tp_rank of &struct hawk_space_create).
 */
struct hawk_item {
	__aligned_u64 lid;
	__aligned_u64 vt;
	__aligned_u64 arg;
	__s32 status;
	__u32 flags;
	__u8 key[HAWK_KEY_BYTES];
};

/* batch flags; each call names the ones that it knows */
#define HAWK_BATCH_ASYNC	(1u << 0)	/* GET, RELOAD: complete through the ring */
#define HAWK_BATCH_LEASE	(1u << 1)	/* LOOKUP: lease the blocks of the prefix */
#define HAWK_BATCH_KEEP_PIN	(1u << 2)	/* PUT: keep the pin that ALLOC took */
#define HAWK_BATCH_NOWAIT	(1u << 3)	/* ALLOC, GET: do no I/O, item EAGAIN instead */
#define HAWK_BATCH_PREFIX	(1u << 4)	/* GET: stop at the first missing block */
#define HAWK_BATCH_URGENT	(1u << 5)	/* GET, RELOAD, gather: before others */
#define HAWK_BATCH_IN_TIME	(1u << 6)	/* GET, RELOAD, gather: not at all if late */

/**
 * struct hawk_batch - argument of every batch call
 * @size: sizeof(struct hawk_batch)
 * @flags: HAWK_BATCH_* that the call knows
 * @count: items, 1..HAWK_BATCH_MAX
 * @done: out, items with status 0; the call returns 0 even if that is none
 * @items: pointer to &struct hawk_item [@count]
 * @deadline_ns: absolute CLOCK_MONOTONIC time, nanoseconds, when waiting ends
 *	(items not done by then: ETIME), 0 for none.  LOOKUP with
 *	HAWK_BATCH_LEASE: when the lease ends, 0 for HAWK_LEASE_DEFAULT_NS from
 *	now, at most HAWK_LEASE_MAX_NS from now
 * @user_data: echoed in the completion of an asynchronous batch
 * @lease: LOOKUP: out, id of the lease, 0 if none was taken
 * @prefix: LOOKUP, GET: out, number of leading items with status 0
 * @tier: ALLOC, GET, RELOAD: host tier to prefer, or HAWK_TIER_ANY
 *
 * With HAWK_BATCH_IN_TIME, which needs @deadline_ns (EINVAL), the call fails with ETIME before any
 * I/O if the device's estimate (&struct hawk_estimate) is that it would end later: so the
 * caller who sets it to now plus what recomputing takes does that instead.
 * HAWK_BATCH_URGENT lets it have the link to an accelerator and the drives before others
 * have, not all of them; so does a deadline that would be missed otherwise.
 *
 * ALLOC     new blocks (FILLING), one frame each, pinned for the caller; a key
 *           announces content under way: others' LOOKUP says EAGAIN for it
 * PUT       FILLING blocks become READY under their LID and, if given, key; the
 *           ALLOC pin is dropped.  EEXIST: another block has the key; the block
 *           is READY, without key
 * LOOKUP    by key: 0 present (maybe on flash), ENOENT absent, EAGAIN announced
 * PIN       keep blocks in their host frame for DMA; EAGAIN: not in a host tier
 * UNPIN     undo one PIN, GET or ALLOC, by LID (@vt, if not 0, must match:
 *           ESTALE), or with @lid 0 by @vt alone: where the pinned block lies,
 *           as the call that took the pin said.  By @vt a pin can always be given
 *           back, also when another has meanwhile freed the LID or unshared it
 * GET       by key or LID: reload if needed, pin, translate
 * RELOAD    by LID or key: bring into a host tier, do not pin
 * FORK      @arg becomes another LID of the block (shared, copy-on-write)
 * UNSHARE   the caller has @lid pinned and wants to write: if the block has other
 *           LIDs, @lid gets a private copy, to which the caller's pin moves; if not,
 *           the block loses its key (EBUSY: others have it pinned or leased).
 *           FILLING either way.  ENOMEM, EIO: the copy could not be handed over, or
 *           made, and is gone, and with it the pin and @lid; also if the copy had
 *           begun when the deadline passed, a signal came or the call was canceled
 * FREE      by LID: forget the LID, and the block with its last LID; by key:
 *           forget the key.  EBUSY: pinned by somebody, or leased
 * TRANSLATE @lid -> @vt, as the mapped vTLB would
 */
struct hawk_batch {
	__u32 size;
	__u32 flags;
	__u32 count;
	__u32 done;
	__aligned_u64 items;
	__aligned_u64 deadline_ns;
	__aligned_u64 user_data;
	__aligned_u64 lease;
	__u32 prefix;
	__u32 tier;
};

#define HAWK_TIER_ANY		0xffffffffu

/**
 * struct hawk_lease_release - end a lease early
 * @size: sizeof(struct hawk_lease_release)
 * @flags: must be 0
 * @lease: id from HAWK_IOC_LOOKUP on this file
 *
 * ENOENT: no such lease, or it has expired.
 */
struct hawk_lease_release {
	__u32 size;
	__u32 flags;
	__aligned_u64 lease;
};

/* ---- gather ---- */

#define HAWK_GATHER_NONE	0xffffffffu	/* the row has no place in the buffer */

/**
 * struct hawk_gather_tier - what a gather took from one tier
 * @blocks: blocks
 * @transfers: transfers, each of one or more blocks that are neighbours there
 * @ns: time from the start of the first to the end of the last, nanoseconds; 0 if
 *	that is not known when the call returns (HAWK_BATCH_ASYNC, @busy)
 */
struct hawk_gather_tier {
	__u32 blocks;
	__u32 transfers;
	__aligned_u64 ns;
};

/**
 * struct hawk_gather - blocks of several lists, each once, to one buffer
 *	(HAWK_IOC_GATHER)
 * @size: sizeof(struct hawk_gather)
 * @flags: HAWK_BATCH_ASYNC, HAWK_BATCH_URGENT, HAWK_BATCH_IN_TIME, the latter two as for
 *	batches
 * @lists: lists, such as one per candidate and layer, 1..HAWK_GATHER_LISTS
 * @rows: rows of all lists together, 1..HAWK_BATCH_MAX
 * @counts: pointer to __u32 [@lists], rows of each list, 0 or more; their sum is @rows
 * @lids: pointer to __u64 [@rows], the LIDs of the first list, then of the second, ...
 * @remap: pointer to __u32 [@rows]; out: the block of each row is that many blocks from
 *	the start of the buffer on; HAWK_GATHER_NONE: it has none
 * @status: pointer to __s32 [@rows]; out: 0 or a negative errno of each row
 * @buf: the buffer, a multiple of HAWK_FRAME_ALIGN
 * @buf_bytes: bytes of it
 * @deadline_ns: absolute CLOCK_MONOTONIC time, nanoseconds, when waiting ends (rows not
 *	done by then: ETIME), 0 for none
 * @user_data: echoed in the completions of an asynchronous gather
 * @bytes: out, bytes of the blocks that have a place in the buffer: what is moved
 * @unique: out, these blocks
 * @done: out, rows with status 0
 * @busy: out, blocks whose transfer was under way when the call returned
 * @reserved: must be 0
 * @tier: out, by tier
 *
 * Rows that name the same block, by whatever LID, share it: no block is moved twice.
 * The blocks lie in the buffer by tier and by their place in it; neighbours are one
 * transfer.  Nothing is evicted, reloaded or pinned for the caller: blocks on flash are
 * read into the buffer past any frame, and checked.
 *
 * Status of rows: ENOENT no such block; EAGAIN it is being filled or reloaded, or memory
 * to read it was short; ENOSPC the buffer ended before its place; EOVERFLOW too many pins
 * or readers; EIO, EILSEQ the tier failed, or the bytes on flash are not those that were
 * written: on flash it is a miss from now on; ENODEV its tier has gone; ETIME, ECANCELED as
 * for batches.
 *
 * While a block is being read it can be neither freed nor unshared (EBUSY).
 *
 * HAWK_BATCH_ASYNC: @remap, and @status of all rows without a place, are there when the
 * call returns; the others have status -EINPROGRESS.  Each block of the buffer completes
 * with a HAWK_CQE_ITEM, whose index is its place and whose status is that of its rows; the
 * buffer is free for other use when HAWK_CQE_BATCH has come.  The ring needs room for
 * @unique + 1.  The deadline and HAWK_IOC_CANCEL stop what has not begun.
 *
 * A call that ends early by its deadline or a signal may leave transfers under way
 * (@busy): the places of rows that are not done may still be written.  Then the buffer
 * can be unmapped, but not be used for anything else.
 *
 * The pages of the buffer are pinned meanwhile and count against RLIMIT_MEMLOCK.
 * E2BIG: more rows or lists than the limits; EINVAL: no row, or the sum of @counts is not
 * @rows, or the alignment; EFAULT; ENOMEM, also for RLIMIT_MEMLOCK; EBUSY: no room in the
 * ring; EINTR: nothing was done.
 */
struct hawk_gather {
	__u32 size;
	__u32 flags;
	__u32 lists;
	__u32 rows;
	__aligned_u64 counts;
	__aligned_u64 lids;
	__aligned_u64 remap;
	__aligned_u64 status;
	__aligned_u64 buf;
	__aligned_u64 buf_bytes;
	__aligned_u64 deadline_ns;
	__aligned_u64 user_data;
	__aligned_u64 bytes;
	__u32 unique;
	__u32 done;
	__u32 busy;
	__u32 reserved;
	struct hawk_gather_tier tier[HAWK_TIERS_MAX];
};

/* ---- reload or recompute, promotion ---- */

#define HAWK_ESTIMATE_GATHER	(1u << 0)	/* of a gather, not of a reload */

/**
 * struct hawk_estimate - what would bringing blocks take (HAWK_IOC_ESTIMATE)
 * @size: sizeof(struct hawk_estimate)
 * @flags: HAWK_ESTIMATE_GATHER or 0
 * @count: items, 1..HAWK_BATCH_MAX
 * @row: items that hold the same tokens, such as layers * head groups if @items has them
 *	all, side by side; 1..@count, a divisor of @count; 0: 1
 * @items: pointer to &struct hawk_item [@count]: blocks of a prompt in its order, by key or
 *	LID as for GET; only read
 * @tokens_per_s: that the caller computes (prefill), tokens per second; 0: not known, all
 *	that is there shall come
 * @dram: out, items in host tiers
 * @flash: out, items on flash only
 * @missing: out, the others, those that are being filled among them
 * @prefix: out, leading items that are there, whole rows
 * @split: out, items that are best brought, whole rows from the first on, at most @prefix;
 *	the rest is best computed
 * @reserved: must be 0
 * @dram_bytes: out, bytes of the blocks in host tiers
 * @flash_bytes: out, of those on flash only
 * @reload_ns: out, time until the last of the @prefix items would be there, nanoseconds
 * @recompute_ns: out, time to compute all tokens of @items; 0: @tokens_per_s is
 * @split_ns: out, time to bring @split items and compute the rest, one after the other
 *
 * A reload brings blocks from flash to host tiers, a gather also those of host tiers
 * through the link to an accelerator.  The times are by bandwidths measured on this device,
 * behind all that is under way; what has not been measured yet counts nothing.  No block is
 * moved, leased, nor counted as used or as a hit.
 */
struct hawk_estimate {
	__u32 size;
	__u32 flags;
	__u32 count;
	__u32 row;
	__aligned_u64 items;
	__u32 tokens_per_s;
	__u32 dram;
	__u32 flash;
	__u32 missing;
	__u32 prefix;
	__u32 split;
	__aligned_u64 reserved;
	__aligned_u64 dram_bytes;
	__aligned_u64 flash_bytes;
	__aligned_u64 reload_ns;
	__aligned_u64 recompute_ns;
	__aligned_u64 split_ns;
};

#define HAWK_PHASE_PREFILL	(1u << 0)	/* prefill runs until @until_ns */
#define HAWK_PHASE_MAX_NS	60000000000ull

/**
 * struct hawk_phase - what the runtime is at (HAWK_IOC_PHASE)
 * @size: sizeof(struct hawk_phase)
 * @flags: HAWK_PHASE_PREFILL, or 0: it has ended
 * @until_ns: with HAWK_PHASE_PREFILL: absolute CLOCK_MONOTONIC time, nanoseconds, when it
 *	ends at the latest, at most HAWK_PHASE_MAX_NS from now; else 0
 * @pending: out, blocks of the space that wait to be promoted, about
 * @reserved: must be 0
 *
 * While prefill runs nothing is reloaded, so blocks that gathers have read from flash are
 * copied to host tiers meanwhile: the next turn finds them there.  That is done in the
 * background, never when a delivery or reload waits for the drive, and given up whenever
 * somebody needs the room.  A runtime that dies stays in its phase until @until_ns.
 * It holds for the space, whoever said it last.  EINVAL: @until_ns is too far away, or
 * without HAWK_PHASE_PREFILL.
 */
struct hawk_phase {
	__u32 size;
	__u32 flags;
	__aligned_u64 until_ns;
	__u32 pending;
	__u32 reserved;
};

/* ---- export as dma-buf ---- */

#define HAWK_EXPORT_REVOCABLE	(1u << 0)	/* gives way: see below */
#define HAWK_EXPORT_READ_ONLY	(1u << 1)	/* importers may only read */

/**
 * struct hawk_export - blocks become one dma-buf (HAWK_IOC_EXPORT)
 * @size: sizeof(struct hawk_export)
 * @flags: HAWK_EXPORT_*
 * @count: blocks, 1..HAWK_BATCH_MAX
 * @fd: out, the dma-buf's descriptor, close-on-exec
 * @items: pointer to &struct hawk_item [@count]; only @lid is used, the rest must be
 *	0; out: @vt and @status of each
 * @export_id: out, for HAWK_IOC_EXPORT_REVOKE; an id of the space, not used again
 *	soon
 * @bytes: out, size of the dma-buf: @count * block_bytes; the blocks lie in it in
 *	the order of @items
 * @tier: out, the tier of the blocks
 * @reserved: must be 0
 *
 * All blocks must be in one tier that has pages (EXDEV) and be READY, or pinned by
 * this file (FILLING).  The export pins them until it ends: with the last
 * reference to the dma-buf, or when it is revoked.  All or nothing: on an error
 * nothing is exported, and the status of the items tells which failed.
 *
 * A file that may not write the space exports read-only: importers may map for
 * reading (DMA_TO_DEVICE) and map it into a process without PROT_WRITE.  An
 * importer that knows only fixed mappings asks for both directions and is refused.
 *
 * A plain export outlives its file: importers keep the memory, and the space, until
 * they let go.  FREE and UNSHARE of an exported block fail with EBUSY.
 *
 * A HAWK_EXPORT_REVOCABLE export gives way.  HAWK_IOC_EXPORT_REVOKE, the end of its
 * file, FREE and UNSHARE of one of its blocks, removal of the tier by force, and an
 * ALLOC, GET, RELOAD or UNSHARE that finds no other room revoke it: importers are
 * told (move_notify), mappings of processes are taken away (SIGBUS from then on)
 * and no new one can be made (ENODEV).  What an importer still has mapped stays
 * its own until it unmaps; only then are the blocks unpinned.  GET and RELOAD of a
 * file that may not write the space revoke that file's own exports only.
 *
 * Errors of items and of the call: ENOENT no such block; EAGAIN not in a tier with
 * pages, or FILLING for another file; EXDEV not in the tier of the first;
 * EOPNOTSUPP the tier cannot be exported; EOVERFLOW too many pins; ENOMEM, also for
 * RLIMIT_MEMLOCK, which an exported block counts against once per export; EMFILE;
 * ENFILE.
 */
struct hawk_export {
	__u32 size;
	__u32 flags;
	__u32 count;
	__s32 fd;
	__aligned_u64 items;
	__aligned_u64 export_id;
	__aligned_u64 bytes;
	__u32 tier;
	__u32 reserved;
};

/**
 * struct hawk_export_revoke - take a revocable export back
 * @size: sizeof(struct hawk_export_revoke)
 * @flags: must be 0
 * @export_id: from HAWK_IOC_EXPORT
 * @deadline_ns: absolute CLOCK_MONOTONIC time, nanoseconds, when waiting for
 *	importers ends; 0: no limit
 *
 * Returns when no importer has it mapped and the blocks are unpinned.  EBUSY: the
 * deadline passed; it is revoked, the blocks are unpinned when the last importer
 * unmaps.  EINTR: the same after a signal.  ENOENT: no such export, or it has ended.
 * EOPNOTSUPP: it is not revocable.  EACCES: another file's, and this one may not write.
 */
struct hawk_export_revoke {
	__u32 size;
	__u32 flags;
	__aligned_u64 export_id;
	__aligned_u64 deadline_ns;
};

/**
 * struct hawk_frame_info - where a frame lies in its tier (HAWK_IOC_FRAME_INFO)
 * @size: sizeof(struct hawk_frame_info)
 * @flags: must be 0
 * @tier: in, tier id
 * @frame: in, frame number, as HAWK_VT_FRAME() tells it
 * @offset: out, byte offset of the frame in the tier; for HAWK_TIER_DMABUF that in
 *	the imported dma-buf
 * @frames: out, frames from this one on that lie one behind the other, 1 or more
 * @reserved: must be 0
 *
 * True as long as the block in the frame is pinned.  ENOENT: the space owns no such
 * frame.
 */
struct hawk_frame_info {
	__u32 size;
	__u32 flags;
	__u32 tier;
	__u32 frame;
	__aligned_u64 offset;
	__u32 frames;
	__u32 reserved;
};

/* ---- draft rings ---- */

#define HAWK_DRAFT_NO_SEQ	0xffffffffu	/* the ring belongs to no sequence */
#define HAWK_DRAFT_SLOTS_AT	4096u		/* offset of the slots in the mapping, bytes */

/**
 * struct hawk_draft - first page of a mapped draft ring
 * @head: tokens accepted since the ring was opened; user space adds to it (release)
 * @tail: tokens drafted; user space writes it; @head to @head + @slots
 * @slots: slots of the ring, as HAWK_IOC_DRAFT_OPEN told
 * @reserved: 0
 *
 * Token number i, counted since the ring was opened, has slot i % @slots. Slots lie in
 * rows of block_tokens; a row is, for each layer and within it for each head group, a
 * block of block_bytes laid out as any other, so that attention reads the drafted
 * tokens as the last blocks of their sequence. The block of row r, layer l and head
 * group h is at HAWK_DRAFT_SLOTS_AT + ((r * layers + l) * head_groups + h) * block_bytes.
 *
 * Draft: write the slots from @tail on, add to @tail. Accept n: copy the slots from
 * @head on to the blocks where the tokens are to stay, add n to @head, set @tail to
 * @head. Reject: set @tail to @head. All of that is stores: no system call, no lock.
 *
 * The kernel reads @head, and nothing else: what it has grown by becomes visible, of
 * the tokens reserved for the ring's sequence, when the sequence is used or mapped
 * next, and when the ring ends. Whatever a client stores here can harm its own tokens
 * only: more than was reserved, and a head that goes back, count for nothing.
 */
struct hawk_draft {
	__aligned_u64 head;
	__aligned_u64 tail;
	__u32 slots;
	__u32 reserved[11];
};

/**
 * struct hawk_draft_open - make a ring of draft slots (HAWK_IOC_DRAFT_OPEN)
 * @size: sizeof(struct hawk_draft_open)
 * @flags: must be 0
 * @seq: the sequence whose tokens are drafted, with room of HAWK_SEQ_RESERVE for those
 *	that stay, or HAWK_DRAFT_NO_SEQ
 * @slots: in, tokens that it shall hold, 1 or more; out, rounded up to whole blocks
 * @id: out, for HAWK_IOC_DRAFT_CLOSE
 * @row_blocks: out, blocks of a row: layers * head groups that the space keeps (head_groups /
 *	tp_degree of a rank's)
 * @offset: out, where to map it
 * @bytes: out, bytes to map
 *
 * Its memory is the kernel's: zeroed, of fixed size, charged to the caller's memory
 * cgroup and, as a pin, against RLIMIT_MEMLOCK. It ends with HAWK_IOC_DRAFT_CLOSE or
 * with the file.
 *
 * EACCES: the file may not write the space. E2BIG: more than HAWK_DRAFT_BYTES_MAX.
 * ENOENT: no such sequence. EBUSY: it has a ring. EOPNOTSUPP: a space without
 * sequences. ENOSPC: the file has HAWK_DRAFTS_MAX rings. ENOMEM, also for
 * RLIMIT_MEMLOCK.
 */
struct hawk_draft_open {
	__u32 size;
	__u32 flags;
	__u32 seq;
	__u32 slots;
	__u32 id;
	__u32 row_blocks;
	__aligned_u64 offset;
	__aligned_u64 bytes;
};

/**
 * struct hawk_draft_close - end a draft ring (HAWK_IOC_DRAFT_CLOSE)
 * @size: sizeof(struct hawk_draft_close)
 * @flags: must be 0
 * @id: from HAWK_IOC_DRAFT_OPEN on this file
 * @reserved: must be 0
 * @head: out, what the ring's head was at its end
 *
 * ENOENT: no such ring. EBUSY: it is mapped.
 */
struct hawk_draft_close {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
	__aligned_u64 head;
};

/* ---- sequences ---- */

/*
 * A sequence is what one stream of tokens may attend to: a list of segments.  Its
 * history is its tokens in the order they came, numbered from 0; the numbers never
 * change.  What is dropped leaves a hole in the list, not in the numbers.  Blocks are
 * put under the LIDs that HAWK_SEQ_APPEND names, by ALLOC or FORK as always; the device
 * forgets the LIDs of a block when no sequence shows any token of it any more.  Under
 * other LIDs with the sequence numbers of sequences nothing can be put (EINVAL).
 * Where token_bytes is set, blocks are rewritten into full ones in the background: a
 * block before the open end of its sequence is not to be written to any more.
 */

/**
 * struct hawk_seg - visible tokens of a sequence that lie one behind the other
 * @first: number of its first token in the history
 * @len: tokens, at least 1
 * @run: sequence part of the LIDs of its blocks
 * @tok: token part of its first token's LID; token j is slot (@tok + j) modulo
 *	block_tokens of the block HAWK_LID(@run, layer, head_group, @tok + j)
 * @pos: position with which the key of its first token was stored; that of token j
 *	is @pos + j
 * @shift: keys are to be read as if at their position minus @shift; the bytes stay
 */
struct hawk_seg {
	__u32 first;
	__u32 len;
	__u32 run;
	__u32 tok;
	__u32 pos;
	__s32 shift;
};

enum hawk_seq_code {
	HAWK_SEQ_NEW = 1,	/* an empty sequence */
	HAWK_SEQ_FORK = 2,	/* @seq becomes a second sequence with what @src shows */
	HAWK_SEQ_APPEND = 3,	/* @len tokens follow; @run, @tok tell where */
	HAWK_SEQ_RESERVE = 4,	/* as APPEND, but the tokens are hidden until ADVANCE */
	HAWK_SEQ_ADVANCE = 5,	/* the first @len hidden tokens are visible now */
	HAWK_SEQ_DROP = 6,	/* tokens [@start, @end) are visible no more */
	HAWK_SEQ_REPOS = 7,	/* [@start, @end) are read @shift positions earlier */
	HAWK_SEQ_TRUNCATE = 8,	/* the history ends after @len tokens, hidden ones go */
	HAWK_SEQ_COMPOSE = 9,	/* tokens [@start, @end) of @src, read @shift earlier, follow */
	HAWK_SEQ_FREE = 10,	/* the sequence ends */
};

#define HAWK_SEQ_LAST	0xffffffffu	/* @seq, @src: the one of the operation before */
#define HAWK_SEQ_KEEP	(1u << 0)	/* NEW, FORK: does not end with the file */

/**
 * struct hawk_seq_op - one operation on a sequence (72 bytes)
 * @op: enum hawk_seq_code
 * @flags: HAWK_SEQ_KEEP or 0
 * @status: out, 0 or a negative errno
 * @seq: the sequence; NEW, FORK: out
 * @src: FORK, COMPOSE: the source, else must be 0
 * @start: DROP, REPOS, COMPOSE: number of the first token, else must be 0
 * @end: likewise, one past the last; not beyond the history
 * @shift: REPOS, COMPOSE: positions, added to the shift that is in force; else 0
 * @len: APPEND, RESERVE, ADVANCE: tokens; TRUNCATE: new length; else 0.  Out: length
 *	of the history, hidden tokens not counted
 * @pos: APPEND, RESERVE: position of the first new token, below 2^31; else 0
 * @run: out, APPEND, RESERVE: see &struct hawk_seg
 * @tok: out, likewise
 * @cow_run: out, APPEND, RESERVE: run of the block to be copied first
 * @cow_tok: out, likewise: its first token
 * @cow_len: out: tokens of the block before @tok that lie in a block which other
 *	sequences show too: bring the bytes of LIDs (@cow_run, @cow_tok) under the LIDs
 *	of the block of @tok (FORK, then UNSHARE) before writing; 0: nothing to copy.
 *	They are kept until the next operation on the sequence, also if nobody else
 *	shows them; its tokens there, hidden ones too, count as being in the new block
 *	already, in the same slots.  If that operation is TRUNCATE and takes all of the
 *	new tokens away, they are in the old block as before
 * @gen: out, generation; another one whenever what HAWK_IOC_SEQ_MAP tells has changed
 * @frames: out, blocks that this operation gave back
 * @reserved: must be 0
 *
 * Operations take time by the number of segments, not of tokens.  A block is given
 * back at once when nobody sees any of its tokens; one that is pinned or leased, when
 * that ends.
 *
 * Errors: ENOENT no such sequence; EINVAL a range that is empty or goes beyond the
 * history, a member that must be 0, a position that would be negative or 2^31 or more,
 * APPEND or COMPOSE behind hidden tokens; EOPNOTSUPP a shift in a space without
 * HAWK_SPACE_SHIFT; ENOSPC out of sequences, segments (also HAWK_SEQ_SEGS_MAX of this
 * one) or LID sequence numbers; EOVERFLOW a history beyond 2^32 - 1 tokens.
 */
struct hawk_seq_op {
	__u32 op;
	__u32 flags;
	__s32 status;
	__u32 seq;
	__u32 src;
	__u32 start;
	__u32 end;
	__s32 shift;
	__u32 len;
	__u32 pos;
	__u32 run;
	__u32 tok;
	__u32 cow_run;
	__u32 cow_tok;
	__u32 cow_len;
	__u32 gen;
	__u32 frames;
	__u32 reserved;
};

/**
 * struct hawk_seq_batch - operations on sequences, in order (HAWK_IOC_SEQ)
 * @size: sizeof(struct hawk_seq_batch)
 * @flags: must be 0
 * @count: operations, 1..HAWK_BATCH_MAX
 * @done: out, operations with status 0; the others do not stop those behind them
 * @ops: pointer to &struct hawk_seq_op [@count]
 *
 * A sequence ends with the file that made it, unless HAWK_SEQ_KEEP was given.  All
 * files of the space may use it.  A signal ends the call behind an operation: the others
 * have ECANCELED then.  EOPNOTSUPP: the space was made without sequences; EACCES: the
 * file may not write; EINTR: a signal came before anything was done; EFAULT: sequences
 * that it made have been freed again.
 */
struct hawk_seq_batch {
	__u32 size;
	__u32 flags;
	__u32 count;
	__u32 done;
	__aligned_u64 ops;
};

/**
 * struct hawk_seq_map - what a sequence shows (HAWK_IOC_SEQ_MAP)
 * @size: sizeof(struct hawk_seq_map)
 * @flags: must be 0
 * @seq: the sequence
 * @count: in, room at @segs; out, segments of the sequence
 * @segs: pointer to &struct hawk_seg [@count]
 * @len: out, length of the history, tokens
 * @hidden: out, tokens reserved behind it
 * @visible: out, tokens of all segments
 * @rows: out, blocks (of one layer and head group) that the segments touch
 * @partial: out, of these blocks with tokens that the sequence does not show, the last
 *	one not counted
 * @gen: out, generation
 *
 * Compaction may put other blocks in the place of these at any time: pin them, ask again,
 * and if @gen is the same they are the right ones, and stay so while they are pinned.
 *
 * E2BIG: there are more segments than room, @count tells how many; ENOENT; EOPNOTSUPP:
 * the space was made without sequences.
 */
struct hawk_seq_map {
	__u32 size;
	__u32 flags;
	__u32 seq;
	__u32 count;
	__aligned_u64 segs;
	__u32 len;
	__u32 hidden;
	__u32 visible;
	__u32 rows;
	__u32 partial;
	__u32 gen;
};

/* ---- elastic residency ---- */

#define HAWK_ELASTIC_SET	(1u << 0)	/* the parameters come into force */
#define HAWK_ELASTIC_ONE	65536u		/* a share of 1 */

/**
 * struct hawk_elastic - how much of each sequence stays in host tiers (HAWK_IOC_ELASTIC)
 * @size: sizeof(struct hawk_elastic)
 * @flags: HAWK_ELASTIC_SET, or 0: tell only
 * @on: 1, or 0: all that fits, as is the case after the making of the space
 * @keep_free: share of the space's frames in host tiers to be kept free, per
 *	HAWK_ELASTIC_ONE, less than that; 1/20 at first
 * @alpha_min: least share of a sequence that stays, per HAWK_ELASTIC_ONE, at most that;
 *	0.15 at first
 * @sinks: first tokens of a sequence that stay; 64 at first
 * @window: last tokens of a sequence that stay; 1024 at first
 * @alpha: out, share in force, per HAWK_ELASTIC_ONE
 * @target: out, share for which memory has room, as found last, likewise
 * @reserved: must be 0
 * @cap_bytes: out, bytes of blocks that the space has or could have now in its host tiers: what
 *	other spaces own is not among them
 * @used_bytes: out, of these in use
 * @evicted: out, blocks that have left host tiers for this, since the space was made
 * @reloaded: out, blocks that were brought back for this, likewise
 * @cycles: out, looks at all sequences that have come to an end, likewise
 *
 * Without HAWK_ELASTIC_SET the parameters are out, too.  With it they are taken as they
 * are, @alpha begins at 1 again.
 *
 * Of a sequence that shows S tokens, base = @sinks + @window and @alpha of the other
 * S - base stay, rounded to blocks; the rest is moved to flash in the background, what
 * was used least recently first, and comes back when there is room, before it is asked
 * for.  @alpha follows 1 - used / (cap - kept free), but changes slowly, and not at all
 * while it is within 1/32 of that.  Blocks of sinks and window are evicted only when
 * nothing else can be, pinned ones never.
 *
 * EACCES: HAWK_ELASTIC_SET through a file that may only read; EOPNOTSUPP: the space was
 * made without sequences.
 */
struct hawk_elastic {
	__u32 size;
	__u32 flags;
	__u32 on;
	__u32 keep_free;
	__u32 alpha_min;
	__u32 sinks;
	__u32 window;
	__u32 alpha;
	__u32 target;
	__u32 reserved;
	__aligned_u64 cap_bytes;
	__aligned_u64 used_bytes;
	__aligned_u64 evicted;
	__aligned_u64 reloaded;
	__aligned_u64 cycles;
};

/* ---- completions ---- */

#define HAWK_CQE_ITEM		(1u << 0)	/* one item is done */
#define HAWK_CQE_BATCH		(1u << 1)	/* the last of the batch is done */

/**
 * struct hawk_cqe - a completion
 * @user_data: of the batch
 * @lid: the item's LID (HAWK_CQE_ITEM); HAWK_CQE_BATCH of a gather: bytes moved
 * @vt: the item's translation, 0 if it failed; HAWK_CQE_BATCH of a gather: time from
 *	the start of the first transfer to the end of the last, nanoseconds
 * @index: the item's index in its batch; HAWK_CQE_BATCH: number of items with
 *	status 0
 * @status: the item's status; HAWK_CQE_BATCH: 0
 * @flags: HAWK_CQE_*
 * @reserved: 0
 */
struct hawk_cqe {
	__aligned_u64 user_data;
	__aligned_u64 lid;
	__aligned_u64 vt;
	__u32 index;
	__s32 status;
	__u32 flags;
	__u32 reserved;
};

/**
 * struct hawk_ring - head of the page(s) mapped at HAWK_MMAP_RING
 * @head: next entry to read, written by user space (release)
 * @reserved0: 0
 * @tail: next entry to write, written by the kernel (release)
 * @mask: entries - 1
 * @reserved: 0
 * @cqe: entries; number i is cqe[i & mask]
 *
 * A batch is refused (-EBUSY) rather than its completions lost: room for all of
 * them is reserved when it is submitted.
 */
struct hawk_ring {
	__u32 head;
	__u32 reserved0[15];
	__u32 tail;
	__u32 mask;
	__u32 reserved[14];
	struct hawk_cqe cqe[];
};

/**
 * struct hawk_ring_setup - make this file's completion ring
 * @size: sizeof(struct hawk_ring_setup)
 * @flags: must be 0
 * @entries: a power of two, 1..HAWK_RING_MAX
 * @eventfd: eventfd to signal for each completion, or -1; poll() on the file
 *	works either way
 * @ring_bytes: out, bytes to map at HAWK_MMAP_RING
 *
 * EBUSY: the file has a ring already; EBADF: not an eventfd.
 */
struct hawk_ring_setup {
	__u32 size;
	__u32 flags;
	__u32 entries;
	__s32 eventfd;
	__aligned_u64 ring_bytes;
};

#define HAWK_CANCEL_ALL		(1u << 0)	/* every batch, whatever its user_data */

/**
 * struct hawk_cancel - stop asynchronous batches of this file (HAWK_IOC_CANCEL)
 * @size: sizeof(struct hawk_cancel)
 * @flags: HAWK_CANCEL_*
 * @user_data: of the batches to stop; 0 with HAWK_CANCEL_ALL
 * @batches: out, batches that were told to stop
 * @reserved: must be 0
 *
 * Batches and gathers submitted with HAWK_BATCH_ASYNC, or through io_uring.  Their items that
 * are not done get ECANCELED; all completions still come, maybe after this call.
 * Transfers under way are finished.  ENOENT: no such batch is under way.
 */
struct hawk_cancel {
	__u32 size;
	__u32 flags;
	__aligned_u64 user_data;
	__u32 batches;
	__u32 reserved;
};

/*
 * io_uring: a batch call is submitted as IORING_OP_URING_CMD on this file with
 * HAWK_IOC_* as cmd_op and this in sqe->cmd.  &struct hawk_batch and its items are
 * read at submission and written, in the submitter's context, before the completion
 * is posted, whose res is what the ioctl would return (0 or a negative errno).
 */

/**
 * struct hawk_uring_cmd - what sqe->cmd holds
 * @batch: pointer to &struct hawk_batch, valid until the completion
 * @reserved: must be 0
 *
 * ENOTTY: cmd_op is no batch call; EINVAL: HAWK_BATCH_ASYNC, which has a ring of
 * its own; ECANCELED: the submitter was gone when the batch ended.
 */
struct hawk_uring_cmd {
	__aligned_u64 batch;
	__aligned_u64 reserved;
};

/* ---- pinned memory ---- */

#define HAWK_NO_LIMIT		(~0ull)

/**
 * struct hawk_pin_query - how much would pinning charge (HAWK_IOC_PIN_QUERY)
 * @size: sizeof(struct hawk_pin_query)
 * @flags: must be 0
 * @count: blocks, 1..HAWK_BATCH_MAX
 * @reserved: must be 0
 * @lids: pointer to __u64 [@count], the LIDs of the blocks; 0: new ones
 * @need_bytes: out, bytes that pinning them through this file would add
 * @used_bytes: out, bytes charged to the file's user now, by all of its files
 *	and by other users of RLIMIT_MEMLOCK such as io_uring
 * @limit_bytes: out, the caller's RLIMIT_MEMLOCK; HAWK_NO_LIMIT: none
 *
 * A block is charged once per file, however often that has pinned it, to the
 * user who opened the file; not at all if it had CAP_IPC_LOCK then.  LIDs of one
 * block are counted one by one.
 */
struct hawk_pin_query {
	__u32 size;
	__u32 flags;
	__u32 count;
	__u32 reserved;
	__aligned_u64 lids;
	__aligned_u64 need_bytes;
	__aligned_u64 used_bytes;
	__aligned_u64 limit_bytes;
};

/* ---- statistics ---- */

/**
 * struct hawk_stats - counters of the space bound to this file
 * @size: sizeof(struct hawk_stats)
 * @flags: must be 0
 * @blocks: blocks that exist now
 * @resident: of these in a host tier now
 * @flash: of these with a copy on flash now
 * @pinned: of these pinned now
 * @allocs: blocks allocated
 * @puts: blocks published
 * @hits: keys found by LOOKUP or GET
 * @misses: keys not found
 * @inflight: keys answered "in flight"
 * @evict_clean: host frames taken from blocks that had a flash copy
 * @evict_write: blocks written to flash
 * @evict_drop: blocks dropped because there was no room on flash
 * @flash_drop: blocks dropped from flash
 * @reloads: blocks reloaded
 * @reload_errors: reloads that failed; their blocks are gone
 * @steals: frames taken from a neighbour bucket
 * @nospace: allocations refused for want of room
 * @quota: allocations refused by the space's quota
 * @chunks: chunks owned per tier
 * @recovered: blocks found on persistent flash when the space was made
 * @recover_corrupt: headers found that were not whole; their blocks are misses
 * @recover_stale: blocks found of which a younger one has the key
 * @recover_no_parent: of the recovered, those whose block before was not there: they are the
 *	first to be forgotten
 * @recover_no_room: blocks not used because the space has no room for them
 * @refused_score: blocks dropped rather than written to flash: others are more likely to
 *	be used again, and the budget (&struct hawk_tier_admit) is tight
 * @refused_budget: likewise: what may be written in the period has been
 * @refused_parent: likewise: the block before it was dropped, or would be
 * @refused_rule: likewise: the rule that the operator chose
 * @refused_full: likewise: flash is full of blocks more likely to be used again
 * @flash_read: blocks written to flash that have been read from it, each counted once
 * @flash_unread: blocks gone from flash without ever having been read
 * @paced_waits: times that a delivery had to wait, for flash to keep up or for the link
 * @paced_wait_ns: how long they did, nanoseconds
 * @link_waits: of @paced_waits those for the link's cap
 * @late: deliveries that ended after their deadline
 * @refused_late: deliveries refused by HAWK_BATCH_IN_TIME
 * @promoted: blocks copied to host tiers because they had been read from flash
 * @promote_canceled: of those that were to be: not copied, for want of room or because
 *	others waited
 */
struct hawk_stats {
	__u32 size;
	__u32 flags;
	__aligned_u64 blocks;
	__aligned_u64 resident;
	__aligned_u64 flash;
	__aligned_u64 pinned;
	__aligned_u64 allocs;
	__aligned_u64 puts;
	__aligned_u64 hits;
	__aligned_u64 misses;
	__aligned_u64 inflight;
	__aligned_u64 evict_clean;
	__aligned_u64 evict_write;
	__aligned_u64 evict_drop;
	__aligned_u64 flash_drop;
	__aligned_u64 reloads;
	__aligned_u64 reload_errors;
	__aligned_u64 steals;
	__aligned_u64 nospace;
	__aligned_u64 quota;
	__u32 chunks[HAWK_TIERS_MAX];
	__aligned_u64 recovered;
	__aligned_u64 recover_corrupt;
	__aligned_u64 recover_stale;
	__aligned_u64 recover_no_parent;
	__aligned_u64 recover_no_room;
	__aligned_u64 refused_score;
	__aligned_u64 refused_budget;
	__aligned_u64 refused_parent;
	__aligned_u64 refused_rule;
	__aligned_u64 refused_full;
	__aligned_u64 flash_read;
	__aligned_u64 flash_unread;
	__aligned_u64 paced_waits;
	__aligned_u64 paced_wait_ns;
	__aligned_u64 link_waits;
	__aligned_u64 late;
	__aligned_u64 refused_late;
	__aligned_u64 promoted;
	__aligned_u64 promote_canceled;
};

#define HAWK_STATS_VERSION	2		/* 2: gather */
#define HAWK_STATS_OPS		16		/* room for batch calls */
#define HAWK_STATS_BUCKETS	44		/* buckets of a histogram */
#define HAWK_STATS_ROOM		512		/* room for struct hawk_stats, bytes */

/* The place of a batch call, such as HAWK_IOC_ALLOC, in hawk_stats_page.op */
#define HAWK_STATS_OP(cmd)	((cmd) - HAWK_IOC_ALLOC)

/**
 * struct hawk_hist - how often, how much, how long (384 bytes)
 * @count: calls, or moves of one block each
 * @items: items of the calls; of moves: bytes moved
 * @failed: items whose status was not 0; of moves: those that failed
 * @ns: sum of the times, nanoseconds
 * @bucket: @count by time: number i counts those of at least 2^i and less than
 *	2^(i+1) nanoseconds, the first also shorter, the last also longer ones
 *
 * A call's time begins when it is made and ends when its last item has its status,
 * an asynchronous one's too. A move's is that of its I/O and checksum.
 */
struct hawk_hist {
	__aligned_u64 count;
	__aligned_u64 items;
	__aligned_u64 failed;
	__aligned_u64 ns;
	__aligned_u64 bucket[HAWK_STATS_BUCKETS];
};

/**
 * struct hawk_stats_page - statistics of the file's space, mapped at HAWK_MMAP_STATS
 * @size: bytes of this structure in this kernel
 * @version: HAWK_STATS_VERSION of this kernel; grows when something is added
 * @seq: odd while the page is being written; see below
 * @period_ms: as long as somebody has the page mapped it is brought up to date so
 *	often, milliseconds
 * @time_ns: when it was last, CLOCK_MONOTONIC, nanoseconds
 * @reserved: 0
 * @op: batch calls, by HAWK_STATS_OP()
 * @read: moves from flash, reloads, by tier
 * @write: moves to flash, by tier
 * @stats: what HAWK_IOC_STATS gives: a struct hawk_stats, of as many bytes as its
 *	size says, to be copied out
 * @gather: HAWK_IOC_GATHER, its rows are the items; where @size reaches so far
 *
 * Everything counts from the making of the space, by all who have it attached, and
 * nothing else. Mapping the page and HAWK_IOC_STATS bring it up to date at once.
 *
 * Reader: load seq (acquire) until it is even, copy what is wanted, then (after a
 * read barrier) load seq again: unchanged means that the copy is of one moment.
 * Counts of calls that are just ending may be a few ahead of their histogram.
 */
struct hawk_stats_page {
	__u32 size;
	__u32 version;
	__u32 seq;
	__u32 period_ms;
	__aligned_u64 time_ns;
	__aligned_u64 reserved[5];
	struct hawk_hist op[HAWK_STATS_OPS];
	struct hawk_hist read[HAWK_TIERS_MAX];
	struct hawk_hist write[HAWK_TIERS_MAX];
	__u8 stats[HAWK_STATS_ROOM];
	struct hawk_hist gather;
};

/* ---- ioctl numbers; _IO, so that a structure may grow ---- */

#define HAWK_IOC_MAGIC		0xEF
#define HAWK_IOC_QUERY		_IO(HAWK_IOC_MAGIC, 0x00)	/* struct hawk_query */
#define HAWK_IOC_TIER_ADD	_IO(HAWK_IOC_MAGIC, 0x01)	/* struct hawk_tier_add */
#define HAWK_IOC_TIER_REMOVE	_IO(HAWK_IOC_MAGIC, 0x02)	/* struct hawk_tier_remove */
#define HAWK_IOC_TIER_INFO	_IO(HAWK_IOC_MAGIC, 0x03)	/* struct hawk_tier_info */
#define HAWK_IOC_SPACE_CREATE	_IO(HAWK_IOC_MAGIC, 0x08)	/* struct hawk_space_create */
#define HAWK_IOC_SPACE_ATTACH	_IO(HAWK_IOC_MAGIC, 0x09)	/* struct hawk_space_attach */
#define HAWK_IOC_SPACE_DESTROY	_IO(HAWK_IOC_MAGIC, 0x0a)	/* struct hawk_space_destroy */
#define HAWK_IOC_SPACE_INFO	_IO(HAWK_IOC_MAGIC, 0x0b)	/* struct hawk_space_info */
#define HAWK_IOC_RING_SETUP	_IO(HAWK_IOC_MAGIC, 0x0c)	/* struct hawk_ring_setup */
#define HAWK_IOC_STATS		_IO(HAWK_IOC_MAGIC, 0x0d)	/* struct hawk_stats */
#define HAWK_IOC_SPACE_SET	_IO(HAWK_IOC_MAGIC, 0x0e)	/* struct hawk_space_set */
#define HAWK_IOC_PIN_QUERY	_IO(HAWK_IOC_MAGIC, 0x0f)	/* struct hawk_pin_query */
#define HAWK_IOC_ALLOC		_IO(HAWK_IOC_MAGIC, 0x10)	/* struct hawk_batch, to 0x1a */
#define HAWK_IOC_PUT		_IO(HAWK_IOC_MAGIC, 0x11)
#define HAWK_IOC_LOOKUP		_IO(HAWK_IOC_MAGIC, 0x12)
#define HAWK_IOC_PIN		_IO(HAWK_IOC_MAGIC, 0x13)
#define HAWK_IOC_UNPIN		_IO(HAWK_IOC_MAGIC, 0x14)
#define HAWK_IOC_GET		_IO(HAWK_IOC_MAGIC, 0x15)
#define HAWK_IOC_RELOAD		_IO(HAWK_IOC_MAGIC, 0x16)
#define HAWK_IOC_FORK		_IO(HAWK_IOC_MAGIC, 0x17)
#define HAWK_IOC_UNSHARE	_IO(HAWK_IOC_MAGIC, 0x18)
#define HAWK_IOC_FREE		_IO(HAWK_IOC_MAGIC, 0x19)
#define HAWK_IOC_TRANSLATE	_IO(HAWK_IOC_MAGIC, 0x1a)
#define HAWK_IOC_LEASE_RELEASE	_IO(HAWK_IOC_MAGIC, 0x1b)	/* struct hawk_lease_release */
#define HAWK_IOC_CANCEL		_IO(HAWK_IOC_MAGIC, 0x1c)	/* struct hawk_cancel */
#define HAWK_IOC_EXPORT		_IO(HAWK_IOC_MAGIC, 0x1d)	/* struct hawk_export */
#define HAWK_IOC_EXPORT_REVOKE	_IO(HAWK_IOC_MAGIC, 0x1e)	/* struct hawk_export_revoke */
#define HAWK_IOC_FRAME_INFO	_IO(HAWK_IOC_MAGIC, 0x1f)	/* struct hawk_frame_info */
#define HAWK_IOC_SEQ		_IO(HAWK_IOC_MAGIC, 0x20)	/* struct hawk_seq_batch */
#define HAWK_IOC_SEQ_MAP	_IO(HAWK_IOC_MAGIC, 0x21)	/* struct hawk_seq_map */
#define HAWK_IOC_DRAFT_OPEN	_IO(HAWK_IOC_MAGIC, 0x22)	/* struct hawk_draft_open */
#define HAWK_IOC_DRAFT_CLOSE	_IO(HAWK_IOC_MAGIC, 0x23)	/* struct hawk_draft_close */
#define HAWK_IOC_GATHER		_IO(HAWK_IOC_MAGIC, 0x24)	/* struct hawk_gather */
#define HAWK_IOC_ELASTIC	_IO(HAWK_IOC_MAGIC, 0x25)	/* struct hawk_elastic */

#define HAWK_IOC_TIER_ADMIT	_IO(HAWK_IOC_MAGIC, 0x26)	/* struct hawk_tier_admit */
#define HAWK_IOC_ESTIMATE	_IO(HAWK_IOC_MAGIC, 0x27)	/* struct hawk_estimate */
#define HAWK_IOC_PHASE		_IO(HAWK_IOC_MAGIC, 0x28)	/* struct hawk_phase */

#endif /* _UAPI_LINUX_HAWK_H */
