/* SPDX-License-Identifier: GPL-2.0 */
/*
 * npu.h - what the parts of the NPU's model share
 *
 *	main.c		options, asking a running model
 *	board.c		the board: starts, stops and restarts the firmware; control socket
 *	slot.c		the device is pulled
 *	host.c		the way to the virtual machine: its socket, its memory
 *	firmware.c	the firmware: rings, heart, faults
 *	ops.c		commands that move and sum bytes
 *	tiles.c		layouts
 *	attend.c	attention
 *
 * The board is a process and the firmware its child: it can crash, hang and be killed as
 * real firmware can, and what outlives it is what outlives it on a real device: the
 * memory, the doorbells, the board.
 */
#ifndef NPU_H
#define NPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../uapi/hawk_npu_fw.h"

#define NPU_RAMS	4
#define NPU_PAGE	4096u

/* Exit status of a firmware that ends on purpose. */
#define NPU_EXIT_DIE		3	/* not to be started by itself */
#define NPU_EXIT_AMNESIA	4	/* the memory loses its content */
#define NPU_EXIT_PULL		5	/* the device is pulled */

/*
 * struct npu_ram - memory of the host that the NPU reaches
 * @addr: bus address
 * @bytes: size
 * @p: where it is mapped here
 */
struct npu_ram {
	uint64_t addr;
	uint64_t bytes;
	uint8_t *p;
};

/*
 * struct npu_shared - what the board and the firmwares of all boots share
 * @fault: HAWK_NPU_FAULT_* from the control socket, for the firmware to take; 0: none
 * @commands: commands completed
 * @errors: of them those that failed
 * @bytes: bytes moved
 * @busy_ns: what they took by the model of time, nanoseconds
 * @damaged: pages of the memory whose bytes are lost
 * @bad: by page, from HAWK_NPU_MEM_OFF on
 */
struct npu_shared {
	uint32_t fault;
	uint64_t commands;
	uint64_t errors;
	uint64_t bytes;
	uint64_t busy_ns;
	uint64_t damaged;
	uint8_t bad[];
};

/*
 * struct npu - the device
 * @mem: BAR 2
 * @bytes: of BAR 2, a power of two
 * @memfd: its file
 * @ram: the host's memory
 * @nram: entries of @ram
 * @bell: eventfd by doorbell of the NPU
 * @irq: eventfd by interrupt of the host
 * @features: HAWK_NPU_FEAT_*
 * @latency_us: what every command takes, microseconds
 * @mb_per_s: and its bytes, 0: nothing
 * @shared: see there
 * @child: the firmware's process, 0: none
 * @qmp: QEMU's monitor, -1: none
 */
struct npu {
	uint8_t *mem;
	uint64_t bytes;
	int memfd;
	struct npu_ram ram[NPU_RAMS];
	unsigned int nram;
	int bell[HAWK_NPU_VECTORS];
	int irq[HAWK_NPU_VECTORS];
	uint32_t features;
	uint32_t latency_us;
	uint32_t mb_per_s;
	struct npu_shared *shared;
	int child;
	int qmp;
};

static inline struct hawk_npu_board *npu_board(const struct npu *n)
{
	return (struct hawk_npu_board *)(n->mem + HAWK_NPU_BOARD_OFF);
}

static inline struct hawk_npu_fw *npu_fw(const struct npu *n)
{
	return (struct hawk_npu_fw *)(n->mem + HAWK_NPU_FW_OFF);
}

static inline struct hawk_npu_drv *npu_drv(const struct npu *n)
{
	return (struct hawk_npu_drv *)(n->mem + HAWK_NPU_DRV_OFF);
}

/* ---- board.c ---- */

/* Memory, doorbells and the board's page; 0 or -1 with a message. */
int npu_board_init(struct npu *n, uint64_t bytes);
/* Until the virtual machine is gone; the exit status.  -1: no @control, no @qmp */
int npu_board_run(struct npu *n, int qemu, int qmp, int control);

/* ---- slot.c ---- */

int npu_slot_pull(int qmp);
int npu_slot_hear(int qmp);

/* ---- host.c ---- */

/* "FD:OFFSET:ADDRESS:BYTES", a piece of a file that is the host's memory; 0 or -1. */
int npu_ram_add(struct npu *n, const char *text);
/* Where the host's memory is here, NULL: the NPU cannot reach all of it. */
uint8_t *npu_ram_at(const struct npu *n, uint64_t addr, uint64_t bytes);
/* Introduces the NPU to QEMU (ivshmem); 0 or -1. */
int npu_host_greet(const struct npu *n, int sock);
void npu_ring(int eventfd);

/* ---- firmware.c ---- */

/* The firmware's process. */
void npu_fw_main(struct npu *n) __attribute__((noreturn));
void npu_fw_start(struct npu *n);

enum npu_fw_next {
	NPU_FW_IDLE,		/* nothing more to be done */
	NPU_FW_MORE,		/* a command was done */
	NPU_FW_MAD,		/* the driver has gone mad */
};

/* Takes one command. */
enum npu_fw_next npu_fw_step(struct npu *n);

/* ---- ops.c, tiles.c, attend.c: HAWK_NPU_OK or HAWK_NPU_ERR_* ---- */

/* Does a range lie in the memory for blocks? */
bool npu_in_memory(const struct npu *n, uint64_t addr, uint64_t bytes);
/* Has a range bytes that are lost? */
bool npu_is_damaged(const struct npu *n, uint64_t addr, uint64_t bytes);
/* A range has been overwritten. */
void npu_written(struct npu *n, uint64_t addr, uint64_t bytes);
void npu_damage(struct npu *n, uint64_t addr);

uint32_t npu_crc32c(uint32_t crc, const void *p, size_t len);
uint32_t npu_op_move(struct npu *n, const struct hawk_npu_sqe *cmd);
uint32_t npu_op_copy(struct npu *n, const struct hawk_npu_sqe *cmd);
uint32_t npu_op_fill(struct npu *n, const struct hawk_npu_sqe *cmd);
uint32_t npu_op_crc32c(struct npu *n, const struct hawk_npu_sqe *cmd, uint64_t *result);
uint32_t npu_op_transform(struct npu *n, const struct hawk_npu_sqe *cmd);
uint32_t npu_op_attend(struct npu *n, const struct hawk_npu_sqe *cmd);

#endif /* NPU_H */
