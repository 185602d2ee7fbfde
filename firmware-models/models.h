/* SPDX-License-Identifier: GPL-2.0 */
/*
 * models.h - ioctls of the lab's models, for their tests
 *
 * No ABI: modules and tests are of the same tree.
 */
#ifndef HAWK_MODELS_H
#define HAWK_MODELS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* ---- /dev/hawk-importer: a device driver that imports one dma-buf per open file ---- */

#define HAWK_IMP_DYNAMIC	(1u << 0)	/* takes move_notify; else a fixed mapping */
#define HAWK_IMP_HOLD		(1u << 1)	/* keeps its mapping at move_notify */

/**
 * struct hawk_imp_attach - attach to a dma-buf
 * @fd: the dma-buf
 * @flags: HAWK_IMP_*
 */
struct hawk_imp_attach {
	__s32 fd;
	__u32 flags;
};

#define HAWK_IMP_READ		0u	/* the device reads: DMA_TO_DEVICE */
#define HAWK_IMP_BOTH		1u	/* DMA_BIDIRECTIONAL */

/**
 * struct hawk_imp_rw - the device reads or writes bytes through its mapping
 * @offset: in the dma-buf
 * @buf: user memory
 * @len: at most HAWK_IMP_RW_MAX
 * @flags: HAWK_IMP_RW_*
 */
struct hawk_imp_rw {
	__aligned_u64 offset;
	__aligned_u64 buf;
	__u32 len;
	__u32 flags;
};

#define HAWK_IMP_RW_WRITE	(1u << 0)
#define HAWK_IMP_RW_VMAP	(1u << 1)	/* by a kernel mapping, not by DMA addresses */
#define HAWK_IMP_RW_BARE	(1u << 2)	/* only with VMAP: does not say that it begins */
#define HAWK_IMP_RW_MAX		(1u << 20)

/**
 * struct hawk_imp_info - the importer's state
 * @notifies: move_notify calls since it was opened
 * @mapped: it has an sg table
 * @pinned: pins that it took
 * @move_notify: the kernel sends move_notify instead of pinning
 *	(CONFIG_DMABUF_MOVE_NOTIFY)
 */
struct hawk_imp_info {
	__u32 notifies;
	__u32 mapped;
	__u32 pinned;
	__u32 move_notify;
};

#define HAWK_IMP_IOC_ATTACH	_IOW('h', 0x00, struct hawk_imp_attach)
#define HAWK_IMP_IOC_DETACH	_IO('h', 0x01)
#define HAWK_IMP_IOC_MAP	_IO('h', 0x02)		/* HAWK_IMP_READ or _BOTH */
#define HAWK_IMP_IOC_UNMAP	_IO('h', 0x03)
#define HAWK_IMP_IOC_PIN	_IO('h', 0x04)
#define HAWK_IMP_IOC_UNPIN	_IO('h', 0x05)
#define HAWK_IMP_IOC_RW		_IOW('h', 0x06, struct hawk_imp_rw)
#define HAWK_IMP_IOC_INFO	_IOR('h', 0x07, struct hawk_imp_info)
#define HAWK_IMP_IOC_FENCE	_IO('h', 0x08)		/* 1: its DMA runs; 0: it is done */

/* ---- /dev/hawk-exporter: a device driver that exports one buffer per open file ---- */

#define HAWK_EXP_NO_CPU		(1u << 0)	/* the CPU cannot map it */
#define HAWK_EXP_MIB_MAX	256u
#define HAWK_EXP_FILL		0xeeu		/* the bytes of a new buffer */
#define HAWK_EXP_OTHER		0xddu		/* those of memory that it has left */

/**
 * struct hawk_exp_make - make the buffer
 * @mib: its size, MiB
 * @flags: HAWK_EXP_*
 * @fd: out, its dma-buf
 * @pad: 0
 */
struct hawk_exp_make {
	__u32 mib;
	__u32 flags;
	__s32 fd;
	__u32 pad;
};

/**
 * struct hawk_exp_info - the buffer's state
 * @attachments: importers attached to it
 * @mapped: there is a kernel mapping of it
 * @moves: how often it was moved
 * @fails: CPU accesses that failed
 */
struct hawk_exp_info {
	__u32 attachments;
	__u32 mapped;
	__u32 moves;
	__u32 fails;
};

#define HAWK_EXP_IOC_MAKE	_IOWR('h', 0x20, struct hawk_exp_make)
#define HAWK_EXP_IOC_MOVE	_IO('h', 0x21)		/* to other memory */
#define HAWK_EXP_IOC_REVOKE	_IO('h', 0x22)		/* nobody may use it any more */
#define HAWK_EXP_IOC_FAIL	_IO('h', 0x23)		/* the next CPU access, with this errno */
#define HAWK_EXP_FAIL_ALL	(1u << 16)		/* and it: each one until 0 is set */
#define HAWK_EXP_IOC_RW		_IOW('h', 0x24, struct hawk_imp_rw)	/* by the device */
#define HAWK_EXP_IOC_INFO	_IOR('h', 0x25, struct hawk_exp_info)

/* ---- /dev/hawk-peers: an RDMA stack with peer memory clients, a registration per file ---- */

#define HAWK_PEERS_WRITE	(1u << 0)	/* the NIC writes too */
#define HAWK_PEERS_HOLD		(1u << 1)	/* keeps the memory when it is asked back */

/**
 * struct hawk_peers_reg - register memory of a client
 * @addr: first address, of the caller
 * @size: bytes
 * @flags: HAWK_PEERS_*
 * @pad: 0
 */
struct hawk_peers_reg {
	__aligned_u64 addr;
	__aligned_u64 size;
	__u32 flags;
	__u32 pad;
};

/**
 * struct hawk_peers_info - the registration's state
 * @registered: there is one
 * @mapped: the NIC can reach the memory
 * @asked: how often the client wanted it back
 * @pad: 0
 * @bytes: that the NIC can reach
 */
struct hawk_peers_info {
	__u32 registered;
	__u32 mapped;
	__u32 asked;
	__u32 pad;
	__aligned_u64 bytes;
};

#define HAWK_PEERS_IOC_REG	_IOW('h', 0x40, struct hawk_peers_reg)
#define HAWK_PEERS_IOC_DEREG	_IO('h', 0x41)
#define HAWK_PEERS_IOC_RW	_IOW('h', 0x42, struct hawk_imp_rw)	/* by the NIC */
#define HAWK_PEERS_IOC_INFO	_IOR('h', 0x43, struct hawk_peers_info)

#endif /* HAWK_MODELS_H */
