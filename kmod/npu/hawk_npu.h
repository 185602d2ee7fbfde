/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_npu.h - what the files of hawk_npu.ko share
 *
 *	pci.c		probe and remove: BARs, interrupts, who ends before whom
 *	queue.c		commands: submitted, completed, ended when the firmware is
 *	state.c		the firmware's life: booted, timed out, reset
 *	tier.c		the tier: bytes moved by the firmware or by the CPU
 *	char.c		/dev/hawk_npuN
 *	sysfs.c		looking at it; faults for tests
 *
 * The format of what lies in the NPU's memory is told in uapi/hawk_npu_fw.h.  Everything
 * that the firmware writes is read once and checked: the worst that mad firmware does is a
 * reset and blocks with wrong bytes, which is a miss where they have a checksum.
 *
 * Order of locks: hawk_npu.gone_lock > hawk_npu.lock, which interrupts take too.
 */
#ifndef HAWK_NPU_DRV_H
#define HAWK_NPU_DRV_H

#include <linux/completion.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../compat.h"
#include "../provider.h"
#include "../../uapi/hawk_npu_fw.h"

#define HAWK_NPU_ENGINES	4u	/* transfers of blocks at one time */

enum hawk_npu_state {
	HAWK_NPU_DOWN,		/* no firmware that takes commands */
	HAWK_NPU_READY,		/* commands are taken */
	HAWK_NPU_RESETTING,	/* the board has been asked to reset the firmware */
	HAWK_NPU_GONE,		/* the device has been removed */
};

/**
 * struct hawk_npu_cmd - a command on its way; on its caller's stack
 * @sqe: what is asked for; seq, boot and slot are filled in by hawk_npu_exec()
 * @list: the slot's list, HAWK_NPU_LIST_BYTES at most
 * @list_bytes: of @list
 * @in: for the scratch area, HAWK_NPU_SCRATCH_OUT bytes at most
 * @in_bytes: of @in
 * @out: takes what the firmware has left in the scratch area
 * @out_bytes: of @out
 * @result: of the completion
 * @ns: of the completion
 * @status: 0 or negative errno
 * @deadline: jiffies
 * @done: the command has ended
 */
struct hawk_npu_cmd {
	struct hawk_npu_sqe sqe;
	const void *list;
	size_t list_bytes;
	const void *in;
	size_t in_bytes;
	void *out;
	size_t out_bytes;
	u64 result;
	u64 ns;
	int status;
	unsigned long deadline;
	struct completion done;
};

/**
 * struct hawk_npu_engine - moves one transfer of blocks at a time
 * @npu: its device
 * @work: takes transfers from hawk_npu.xfers
 * @seg: the list of its command
 */
struct hawk_npu_engine {
	struct hawk_npu *npu;
	struct work_struct work;
	struct hawk_npu_seg *seg;
};

/**
 * struct hawk_npu - a device
 * @ref: held by the binding of the driver, the tier, open files and transfers of @engine
 * @pdev: the PCI device; used with @gone_lock held and @gone false, or by remove
 * @id: number in /dev/hawk_npuN
 * @regs: BAR 0
 * @ctl: the first HAWK_NPU_MEM_OFF bytes of BAR 2, uncached
 * @mem: the rest, write-combining
 * @mem_phys: where @mem begins
 * @mem_bytes: size of @mem
 * @gone_lock: read: the device is used, and cannot be taken away; write: it is
 * @gone: it has been; guarded by @gone_lock
 * @lock: guards everything down to @heartbeat_at; taken by interrupts
 * @state: enum hawk_npu_state
 * @boot: boot of the firmware that takes our commands
 * @features: HAWK_NPU_FEAT_* of the board
 * @mem_gen: hawk_npu_board.mem_gen that the tier was made with
 * @sq_tail: commands submitted in this boot
 * @cq_head: completions taken in this boot
 * @seq: of the last command
 * @slots: bit by slot: in use
 * @cmd: by slot: the command that is outstanding, or NULL
 * @mad: the firmware has broken the protocol: it needs a reset
 * @reset_req: resets asked for
 * @reset_by: when the present one must be acknowledged, or the next be tried, jiffies
 * @heartbeat: as last seen
 * @heartbeat_at: when it changed, jiffies
 * @wait: callers that need a slot
 * @watch: looks after the firmware (state.c)
 * @watch_wq: runs it, and nothing else, as transfers wait for it
 * @xfer_lock: guards @xfers; no other taken under it
 * @xfers: transfers that no engine has taken
 * @engine: the engines
 * @wq: runs them
 * @tier: tier id, -1: none
 * @tier_work: makes the tier anew when the memory has lost its content
 * @tier_again: it has
 * @name: "hawk_npuN"
 * @misc: /dev/hawk_npuN
 * @debugfs: the device's folder
 * @resets: resets acknowledged
 * @timeouts: commands that took too long
 * @crashes: times that firmware ended by itself
 * @protocol_errors: times that it broke the protocol
 * @ecc_errors: commands that met lost bytes
 * @moved_dma: bytes that the firmware has moved
 * @moved_cpu: bytes that the CPU has moved
 */
struct hawk_npu {
	struct kref ref;
	struct pci_dev *pdev;
	int id;
	void __iomem *regs;
	void __iomem *ctl;
	void __iomem *mem;
	phys_addr_t mem_phys;
	u64 mem_bytes;
	struct rw_semaphore gone_lock;
	bool gone;

	spinlock_t lock;
	enum hawk_npu_state state;
	u32 boot;
	u32 features;
	u32 mem_gen;
	u32 sq_tail;
	u32 cq_head;
	u64 seq;
	unsigned long slots;
	struct hawk_npu_cmd *cmd[HAWK_NPU_SLOTS];
	bool mad;
	u32 reset_req;
	unsigned long reset_by;
	u32 heartbeat;
	unsigned long heartbeat_at;

	wait_queue_head_t wait;
	struct delayed_work watch;
	struct workqueue_struct *watch_wq;

	spinlock_t xfer_lock;
	struct list_head xfers;
	struct hawk_npu_engine engine[HAWK_NPU_ENGINES];
	struct workqueue_struct *wq;
	int tier;
	struct work_struct tier_work;
	bool tier_again;

	char name[16];
	struct miscdevice misc;
	struct dentry *debugfs;
	atomic64_t resets;
	atomic64_t timeouts;
	atomic64_t crashes;
	atomic64_t protocol_errors;
	atomic64_t ecc_errors;
	atomic64_t moved_dma;
	atomic64_t moved_cpu;
};

/* The pages that the three parties write. */
#define hawk_npu_board_read(npu, member) \
	readl((npu)->ctl + HAWK_NPU_BOARD_OFF + offsetof(struct hawk_npu_board, member))
#define hawk_npu_fw_read(npu, member) \
	readl((npu)->ctl + HAWK_NPU_FW_OFF + offsetof(struct hawk_npu_fw, member))
#define hawk_npu_drv_write(npu, member, value) \
	writel(value, (npu)->ctl + HAWK_NPU_DRV_OFF + offsetof(struct hawk_npu_drv, member))

/* pci.c */
void hawk_npu_put(struct hawk_npu *npu);
bool hawk_npu_enter(struct hawk_npu *npu);
void hawk_npu_leave(struct hawk_npu *npu);

/* queue.c */
void hawk_npu_ring(struct hawk_npu *npu, u32 vector);
int hawk_npu_exec(struct hawk_npu *npu, struct hawk_npu_cmd *cmd);
irqreturn_t hawk_npu_irq_done(int irq, void *data);
void hawk_npu_drain(struct hawk_npu *npu);
void hawk_npu_cancel(struct hawk_npu *npu, int err);

/* state.c */
irqreturn_t hawk_npu_irq_state(int irq, void *data);
void hawk_npu_watch(struct work_struct *work);
void hawk_npu_watch_soon(struct hawk_npu *npu);
void hawk_npu_stop(struct hawk_npu *npu);
unsigned long hawk_npu_timeout(void);

/* tier.c */
int hawk_npu_tier_init(struct hawk_npu *npu);
void hawk_npu_tier_exit(struct hawk_npu *npu);
int hawk_npu_tier_add(struct hawk_npu *npu);
void hawk_npu_tier_lost(struct hawk_npu *npu);

/* char.c */
int hawk_npu_char_add(struct hawk_npu *npu);
void hawk_npu_char_remove(struct hawk_npu *npu);

/* sysfs.c */
extern const struct attribute_group *hawk_npu_groups[];
void hawk_npu_debugfs_add(struct hawk_npu *npu);
void hawk_npu_debugfs_remove(struct hawk_npu *npu);
void hawk_npu_debugfs_init(void);
void hawk_npu_debugfs_exit(void);

#endif /* HAWK_NPU_DRV_H */
