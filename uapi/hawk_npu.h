/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * hawk_npu.h - /dev/hawk_npuN: an NPU computes on blocks that are in its memory
 *
 * The memory is a tier of kind HAWK_TIER_BAR of /dev/hawk (hawk.h).  A call names blocks
 * by a descriptor of /dev/hawk that has a space, and LIDs in it: so it reaches the blocks
 * of that space and no others.  They must be in the NPU's tier; the device keeps them
 * there for the time of the call.
 *
 * Structures begin with their size, as those of /dev/hawk do: a longer one is accepted if
 * what the kernel does not know is zero (else E2BIG), a shorter one than that of version 1
 * is EINVAL.  Flags and reserved members must be zero (EOPNOTSUPP).
 *
 * Who has written blocks through a window must have the write-combining buffers emptied
 * before the NPU reads them: an sfence, or a system call on the CPU that wrote.
 *
 * All calls, besides what they tell: EBADF: @fd is no file of /dev/hawk; ENXIO: it has no
 * space; EACCES: it was opened without the right; ENOENT: no such block; EAGAIN: a block is
 * not in memory, or another fills it: GET it first; EXDEV: it is not in this NPU's memory;
 * EHOSTDOWN: there is no firmware just now; ETIMEDOUT, ECONNRESET, EPROTO: the firmware took
 * too long, crashed or was reset, broke its protocol: what was to be written is undefined,
 * the call may be repeated; EBADMSG: bytes that were read are lost (ECC); ENODEV: the device
 * or its memory's content is gone; ENOMEM, EFAULT.
 */
#ifndef _LINUX_HAWK_NPU_H
#define _LINUX_HAWK_NPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HAWK_NPU_ABI_VERSION	1u
#define HAWK_NPU_BLOCKS_MAX	512u	/* blocks of one call */
#define HAWK_NPU_QUERY_ELEMS	8192u	/* heads x dim of hawk_npu_attention */

#define HAWK_NPU_INFO_READY	(1u << 0)	/* there is firmware that takes commands */
#define HAWK_NPU_INFO_DMA	(1u << 1)	/* it moves the bytes of blocks, not the CPU */
#define HAWK_NPU_INFO_P2P	(1u << 2)	/* the kernel has PCI_P2PDMA */

/**
 * struct hawk_npu_info - what it is (HAWK_NPU_IOC_INFO)
 * @size: sizeof(struct hawk_npu_info)
 * @flags: out, HAWK_NPU_INFO_*
 * @abi_version: out, HAWK_NPU_ABI_VERSION
 * @tier: out, id of its tier, ~0: none
 * @mem_bytes: out, size of the tier, bytes
 * @boot: out, starts of its firmware
 * @reserved: must be 0
 */
struct hawk_npu_info {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 tier;
	__aligned_u64 mem_bytes;
	__u32 boot;
	__u32 reserved;
};

/**
 * struct hawk_npu_checksum - checksums of blocks (HAWK_NPU_IOC_CHECKSUM)
 * @size: sizeof(struct hawk_npu_checksum)
 * @flags: must be 0
 * @fd: descriptor of /dev/hawk
 * @count: blocks, 1..HAWK_NPU_BLOCKS_MAX
 * @lids: pointer to @count LIDs, 64 bits each
 * @sums: pointer to @count CRC32C, 32 bits each, out; undefined after an error
 */
struct hawk_npu_checksum {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 count;
	__aligned_u64 lids;
	__aligned_u64 sums;
};

#define HAWK_NPU_LAYOUT_ROWS	0u	/* rows of @dim elements */
#define HAWK_NPU_LAYOUT_TILES	1u	/* tiles of 16 x 16 elements, row of tiles by row */
#define HAWK_NPU_LAYOUT_NZ	2u	/* tiles of 16 rows x 32 bytes, column by column */

/**
 * struct hawk_npu_transform - from one layout to another (HAWK_NPU_IOC_TRANSFORM)
 * @size: sizeof(struct hawk_npu_transform)
 * @flags: must be 0
 * @fd: descriptor of /dev/hawk, open for writing
 * @reserved: must be 0
 * @from: LID of the block that is read
 * @to: LID of the block that is written, maybe the same: another holder of it sees that
 * @from_off: byte offset of the first matrix in it
 * @to_off: byte offset in the other
 * @heads: matrices, one after the other
 * @rows: of each; in tiles they are padded with zeroes to a multiple of 16
 * @dim: elements of a row, whole tiles
 * @elem: bytes of an element: 1, 2 or 4
 * @from_layout: HAWK_NPU_LAYOUT_*
 * @to_layout: HAWK_NPU_LAYOUT_*
 *
 * EINVAL: a wrong shape, or matrices longer than what is left of a block.
 */
struct hawk_npu_transform {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
	__aligned_u64 from;
	__aligned_u64 to;
	__u32 from_off;
	__u32 to_off;
	__u32 heads;
	__u32 rows;
	__u32 dim;
	__u32 elem;
	__u32 from_layout;
	__u32 to_layout;
};

/**
 * struct hawk_npu_attention - one token attends to paged blocks (HAWK_NPU_IOC_ATTENTION)
 * @size: sizeof(struct hawk_npu_attention)
 * @flags: must be 0
 * @fd: descriptor of /dev/hawk
 * @count: blocks, 1..HAWK_NPU_BLOCKS_MAX
 * @lids: pointer to @count LIDs, 64 bits each, in the order of their tokens
 * @query: pointer to @heads x @dim 16-bit floats
 * @out: pointer to @heads x @dim 32-bit floats, out
 * @heads: query heads, a multiple of @kv_heads
 * @kv_heads: heads of the blocks
 * @dim: elements of a head, a multiple of 16; @heads x @dim is HAWK_NPU_QUERY_ELEMS at most
 * @block_tokens: tokens of a block, a multiple of 16
 * @tokens: that are visible: all of the blocks but the last, and some or all of that
 * @scale: of the scores, the bits of a 32-bit float
 * @k_off: byte offset of the keys in each block: @kv_heads matrices of 16-bit floats in
 *	HAWK_NPU_LAYOUT_TILES
 * @v_off: byte offset of the values, which are laid out in the same way
 *
 * Sums are 32-bit floats.  EINVAL: a wrong shape, or one that does not fit the blocks.
 */
struct hawk_npu_attention {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 count;
	__aligned_u64 lids;
	__aligned_u64 query;
	__aligned_u64 out;
	__u32 heads;
	__u32 kv_heads;
	__u32 dim;
	__u32 block_tokens;
	__u32 tokens;
	__u32 scale;
	__u32 k_off;
	__u32 v_off;
};

#define HAWK_NPU_IOC_MAGIC	0xef	/* that of /dev/hawk, other numbers */
#define HAWK_NPU_IOC_INFO	_IO(HAWK_NPU_IOC_MAGIC, 0xc0)
#define HAWK_NPU_IOC_CHECKSUM	_IO(HAWK_NPU_IOC_MAGIC, 0xc1)
#define HAWK_NPU_IOC_TRANSFORM	_IO(HAWK_NPU_IOC_MAGIC, 0xc2)
#define HAWK_NPU_IOC_ATTENTION	_IO(HAWK_NPU_IOC_MAGIC, 0xc3)

#endif /* _LINUX_HAWK_NPU_H */
