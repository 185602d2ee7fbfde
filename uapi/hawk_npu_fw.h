/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * hawk_npu_fw.h - what lies in an NPU's memory between its driver and its firmware
 *
 * The device is a PCI function with its memory in BAR 2 and a doorbell register in BAR 0
 * (QEMU's ivshmem-doorbell: a write of "peer << 16 | vector" at byte 12).  Three parties
 * share the first 2 MiB of the memory; each page has one writer:
 *
 *	bytes		what				written by
 *	0		struct hawk_npu_board		the board: what resets the firmware
 *	0x1000		struct hawk_npu_fw		the firmware
 *	0x2000		struct hawk_npu_drv		the driver
 *	0x4000		submission ring			the driver
 *	0x6000		completion ring			the firmware
 *	0x10000		HAWK_NPU_SLOTS lists, 4 KiB each	the driver
 *	0x80000		HAWK_NPU_SLOTS scratch areas, 48 KiB each	16 KiB the driver, then
 *							32 KiB the firmware
 *	0x200000	the memory for blocks		both, as commands say
 *
 * All numbers are little-endian.  Addresses of the NPU are byte offsets in BAR 2.
 *
 * Doorbells: of the NPU, HAWK_NPU_BELL_WORK: there are commands, HAWK_NPU_BELL_RESET: see
 * reset_req; of the host, HAWK_NPU_IRQ_DONE: there are completions, HAWK_NPU_IRQ_STATE:
 * the firmware has started or ended, or a reset is acknowledged.
 *
 * A boot.  The board counts boot up and starts the firmware, which zeroes its own page,
 * enters the count and sets state to HAWK_NPU_FW_RUNNING.  The driver sees
 * a boot that it does not know, zeroes sq_tail and cq_head, enters the count in its page,
 * and rings HAWK_NPU_BELL_WORK.  The firmware takes commands only of a driver that has
 * entered its own count, so nothing of an earlier boot is ever taken for a command.
 *
 * A reset.  The driver counts reset_req up and rings HAWK_NPU_BELL_RESET.  The board stops
 * the firmware, and with it every access to the host's memory, then copies reset_req to
 * reset_ack and boots the firmware again.
 *
 * A command is an entry of the submission ring at sq_tail modulo HAWK_NPU_SLOTS; sq_tail
 * and the other indexes count up without end.  The driver chooses a slot that no
 * outstanding command has; the command may use the list and the scratch area of its slot.
 * Its completion carries seq and slot.  Neither side has to believe the other: the
 * firmware checks every offset, and a driver must take indexes that lead beyond the ring,
 * or completions of what is not outstanding, for a firmware that has gone mad.
 *
 * Memory from 0x200000 on outlives the firmware.  If it does not, mem_gen changes before
 * the content does.
 */
#ifndef _LINUX_HAWK_NPU_FW_H
#define _LINUX_HAWK_NPU_FW_H

#include <linux/types.h>

#define HAWK_NPU_MAGIC		0x4e4b5748u	/* "HWKN" */
#define HAWK_NPU_FW_VERSION	1u

#define HAWK_NPU_SLOTS		32u		/* entries of each ring; commands outstanding */
#define HAWK_NPU_BOARD_OFF	0x0u
#define HAWK_NPU_FW_OFF		0x1000u
#define HAWK_NPU_DRV_OFF	0x2000u
#define HAWK_NPU_SQ_OFF		0x4000u
#define HAWK_NPU_CQ_OFF		0x6000u
#define HAWK_NPU_LIST_OFF	0x10000u
#define HAWK_NPU_LIST_BYTES	0x1000u
#define HAWK_NPU_SCRATCH_OFF	0x80000u
#define HAWK_NPU_SCRATCH_BYTES	0xc000u
#define HAWK_NPU_SCRATCH_OUT	0x4000u		/* in a scratch area: what the firmware writes */
#define HAWK_NPU_MEM_OFF	0x200000u

#define HAWK_NPU_BELL_WORK	0u
#define HAWK_NPU_BELL_RESET	1u
#define HAWK_NPU_IRQ_DONE	0u
#define HAWK_NPU_IRQ_STATE	1u
#define HAWK_NPU_VECTORS	2u

#define HAWK_NPU_FEAT_DMA	(1u << 0)	/* it reaches the host's memory */
#define HAWK_NPU_FEAT_FAULTS	(1u << 1)	/* HAWK_NPU_OP_FAULT: for tests */

/* States of the firmware; of the board only OFF and RUNNING (it has started it). */
#define HAWK_NPU_FW_ENDED	0u
#define HAWK_NPU_FW_RUNNING	1u
#define HAWK_NPU_FW_FAULT	2u		/* it has stopped: the driver has gone mad */

/*
 * struct hawk_npu_board - the board's page
 * @magic: HAWK_NPU_MAGIC
 * @version: HAWK_NPU_FW_VERSION
 * @mem_bytes: bytes from HAWK_NPU_MEM_OFF on
 * @peer: the NPU's number for doorbells
 * @features: HAWK_NPU_FEAT_*
 * @mem_gen: counts how often the memory has lost its content
 * @boot: counts starts of the firmware, from 1
 * @state: HAWK_NPU_FW_ENDED: it has ended and will not be started by itself, or
 *	not yet
 * @reset_ack: reset_req of the last reset that has been made
 */
struct hawk_npu_board {
	__u32 magic;
	__u32 version;
	__aligned_u64 mem_bytes;
	__u32 peer;
	__u32 features;
	__u32 mem_gen;
	__u32 boot;
	__u32 state;
	__u32 reset_ack;
};

/*
 * struct hawk_npu_fw - the firmware's page
 * @version: HAWK_NPU_FW_VERSION
 * @boot: hawk_npu_board.boot of this boot; written before @state
 * @state: HAWK_NPU_FW_*
 * @sq_head: commands taken
 * @cq_tail: completions written; written after them
 * @heartbeat: counts up, at least 5 times a second, as long as it is alive
 */
struct hawk_npu_fw {
	__u32 version;
	__u32 boot;
	__u32 state;
	__u32 sq_head;
	__u32 cq_tail;
	__u32 heartbeat;
};

/*
 * struct hawk_npu_drv - the driver's page
 * @version: HAWK_NPU_FW_VERSION
 * @boot: the boot that it has seen, 0: none
 * @peer: the host's number for doorbells
 * @sq_tail: commands written; written after them
 * @cq_head: completions read
 * @reset_req: resets asked for
 */
struct hawk_npu_drv {
	__u32 version;
	__u32 boot;
	__u32 peer;
	__u32 sq_tail;
	__u32 cq_head;
	__u32 reset_req;
};

#define HAWK_NPU_OP_NOP		0u
#define HAWK_NPU_OP_READ	1u	/* bytes of the NPU to the host's memory */
#define HAWK_NPU_OP_WRITE	2u	/* bytes of the host's memory to the NPU */
#define HAWK_NPU_OP_COPY	3u	/* from addr to addr2 */
#define HAWK_NPU_OP_FILL	4u	/* with arg[0], a byte */
#define HAWK_NPU_OP_CRC32C	5u	/* result: the checksum */
#define HAWK_NPU_OP_TRANSFORM	6u	/* struct hawk_npu_shape, from addr to addr2 */
#define HAWK_NPU_OP_ATTEND	7u	/* struct hawk_npu_attend */
#define HAWK_NPU_OP_FAULT	8u	/* arg[0]: HAWK_NPU_FAULT_* */

/*
 * struct hawk_npu_sqe - a command
 * @seq: counts up with each command of a boot, from 1
 * @boot: the boot that it is for
 * @op: HAWK_NPU_OP_*
 * @slot: its slot
 * @addr: byte offset in BAR 2, from HAWK_NPU_MEM_OFF on
 * @addr2: where to (COPY, TRANSFORM), else 0
 * @len: bytes
 * @nlist: entries of the slot's list: struct hawk_npu_seg (READ, WRITE; their bytes are
 *	@len together), or byte offsets of blocks, 64 bits each (ATTEND)
 * @arg: by @op, else 0
 */
struct hawk_npu_sqe {
	__aligned_u64 seq;
	__u32 boot;
	__u16 op;
	__u16 slot;
	__aligned_u64 addr;
	__aligned_u64 addr2;
	__u32 len;
	__u32 nlist;
	__u32 arg[6];
};

/* A piece of the host's memory, by its bus address. */
struct hawk_npu_seg {
	__aligned_u64 addr;
	__u32 len;
	__u32 reserved;
};

#define HAWK_NPU_SEGS		(HAWK_NPU_LIST_BYTES / 16)
#define HAWK_NPU_BLOCKS		(HAWK_NPU_LIST_BYTES / 8)

/* Layouts of TRANSFORM. */
#define HAWK_NPU_ROWS		0u	/* heads of rows of dim elements */
#define HAWK_NPU_TILES		1u	/* heads of tiles of 16 rows and 16 elements */
#define HAWK_NPU_NZ		2u	/* one strip of 16 x 32 bytes tiles after the other */

/*
 * struct hawk_npu_shape - arg of TRANSFORM: @heads matrices of @rows x @dim elements, one
 * after the other; @len of the command is what they take, padded, bytes
 * @rows: tokens; in tiles padded with zeroes to whole tiles of 16
 * @heads: 1 or more
 * @dim: whole tiles
 * @elem: bytes of an element, 1, 2 or 4
 * @from: layout at addr
 * @to: layout at addr2
 * @reserved: 0
 */
struct hawk_npu_shape {
	__u32 rows;
	__u16 heads;
	__u16 dim;
	__u16 elem;
	__u16 from;
	__u16 to;
	__u16 reserved[5];
};

#define HAWK_NPU_QUERY_MAX	8192u	/* heads x dim */

/*
 * struct hawk_npu_attend - arg of ATTEND: one token's attention to blocks
 * @heads: query heads, a multiple of @kv_heads
 * @kv_heads: heads of the blocks
 * @dim: elements of a head, whole tiles; @heads x @dim is HAWK_NPU_QUERY_MAX at most
 * @block_tokens: tokens of a block, whole tiles
 * @tokens: that are visible; they fill the blocks of the list but the last
 * @scale: of the scores, the bits of a 32-bit float
 * @k_off: byte offset of the keys in a block: @kv_heads matrices in HAWK_NPU_TILES
 * @v_off: of the values
 *
 * Queries, keys and values have 16-bit floats; the queries lie in the scratch area, a
 * head after the other, and the sums, 32-bit floats, come to HAWK_NPU_SCRATCH_OUT of it
 * in the same order.  @len of the command is the bytes of a block.
 */
struct hawk_npu_attend {
	__u16 heads;
	__u16 kv_heads;
	__u16 dim;
	__u16 block_tokens;
	__u32 tokens;
	__u32 scale;
	__u32 k_off;
	__u32 v_off;
};

#define HAWK_NPU_OK		0u
#define HAWK_NPU_ERR_OP		1u	/* it does not know the command */
#define HAWK_NPU_ERR_RANGE	2u	/* an offset, a length or a shape is wrong */
#define HAWK_NPU_ERR_HOST	3u	/* the host's memory cannot be reached there */
#define HAWK_NPU_ERR_ECC	4u	/* bytes that were read are lost */

/*
 * struct hawk_npu_cqe - a completion
 * @seq: of its command
 * @boot: of its command
 * @slot: of its command
 * @status: HAWK_NPU_OK or HAWK_NPU_ERR_*
 * @result: by the command
 * @ns: how long it took on the NPU by its model of time, nanoseconds
 */
struct hawk_npu_cqe {
	__aligned_u64 seq;
	__u32 boot;
	__u16 slot;
	__u16 status;
	__aligned_u64 result;
	__aligned_u64 ns;
};

#define HAWK_NPU_FAULT_HANG	1u	/* takes no more commands; the heart beats */
#define HAWK_NPU_FAULT_FREEZE	2u	/* the heart stops as well */
#define HAWK_NPU_FAULT_CRASH	3u	/* the firmware ends, and starts by itself */
#define HAWK_NPU_FAULT_DIE	4u	/* it ends, and starts at a reset only */
#define HAWK_NPU_FAULT_ECC	5u	/* the page of addr is damaged until it is overwritten */
#define HAWK_NPU_FAULT_AMNESIA	6u	/* as CRASH, and the memory loses its content */
#define HAWK_NPU_FAULT_PULL	8u	/* the device is pulled out of its slot */
#define HAWK_NPU_FAULT_LIE	7u	/* completes with numbers that are arg[1]'s own */

#endif /* _LINUX_HAWK_NPU_FW_H */
