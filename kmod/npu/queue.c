// SPDX-License-Identifier: GPL-2.0
/*
 * queue.c - commands: submitted, completed, ended when the firmware is
 *
 * A command is outstanding from its submission until it leaves hawk_npu.cmd, which happens
 * once: by its completion, or by hawk_npu_cancel() when the firmware can touch the host's
 * memory no more.  Its caller keeps the slot until then, and the pages that it moves.
 */
#include "hawk_npu.h"

#include <linux/bitops.h>
#include <linux/nospec.h>

#define HAWK_NPU_BELL		12	/* doorbell register in BAR 0 */
#define HAWK_NPU_BELL_PEER	16	/* shift of the peer in it */

static int hawk_npu_errno(u32 status)
{
	switch (status) {
	case HAWK_NPU_OK: return 0;
	case HAWK_NPU_ERR_OP: return -EOPNOTSUPP;
	case HAWK_NPU_ERR_RANGE: return -EINVAL;
	case HAWK_NPU_ERR_HOST: return -EFAULT;
	case HAWK_NPU_ERR_ECC: return -EBADMSG;
	default: return -EPROTO;
	}
}

/* Ring a doorbell of the NPU; what was written before is seen there. */
void hawk_npu_ring(struct hawk_npu *npu, u32 vector)
{
	u32 peer = hawk_npu_board_read(npu, peer);

	wmb();	/* bytes in write-combining buffers, and the rings */
	writel((peer & 0xffff) << HAWK_NPU_BELL_PEER | vector, npu->regs + HAWK_NPU_BELL);
}

/* ---- completion ---- */

static void hawk_npu_end(struct hawk_npu *npu, u32 slot, int status)
{
	struct hawk_npu_cmd *cmd = npu->cmd[slot];

	lockdep_assert_held(&npu->lock);
	npu->cmd[slot] = NULL;
	cmd->status = status;
	complete(&cmd->done);
}

/* Return: whether the completion is of something that is outstanding. */
static bool hawk_npu_take(struct hawk_npu *npu, const struct hawk_npu_cqe *cqe)
{
	struct hawk_npu_cmd *cmd;
	u32 slot = cqe->slot;

	if (cqe->boot != npu->boot || slot >= HAWK_NPU_SLOTS)
		return false;
	slot = array_index_nospec(slot, HAWK_NPU_SLOTS);
	cmd = npu->cmd[slot];
	if (!cmd || cmd->sqe.seq != cqe->seq)
		return false;
	cmd->result = cqe->result;
	cmd->ns = cqe->ns;
	if (cqe->status == HAWK_NPU_ERR_ECC)
		atomic64_inc(&npu->ecc_errors);
	hawk_npu_end(npu, slot, hawk_npu_errno(cqe->status));
	return true;
}

/**
 * hawk_npu_drain() - take the completions that are there
 * @npu: the device
 *
 * Firmware that breaks the protocol is marked, and looked after by hawk_npu_watch().
 * Context: hawk_npu.lock held, in any state.
 */
void hawk_npu_drain(struct hawk_npu *npu)
{
	struct hawk_npu_cqe cqe;
	u32 tail, at;

	lockdep_assert_held(&npu->lock);
	if (npu->state != HAWK_NPU_READY || npu->mad)
		return;
	tail = hawk_npu_fw_read(npu, cq_tail);
	rmb();	/* an index of the next boot is seen after the count of that boot */
	if (hawk_npu_board_read(npu, boot) != npu->boot)
		return;
	if (tail - npu->cq_head > HAWK_NPU_SLOTS)
		npu->mad = true;
	while (!npu->mad && npu->cq_head != tail) {
		at = npu->cq_head % HAWK_NPU_SLOTS * sizeof(cqe);
		memcpy_fromio(&cqe, npu->ctl + HAWK_NPU_CQ_OFF + at, sizeof(cqe));
		if (!hawk_npu_take(npu, &cqe))
			npu->mad = true;
		npu->cq_head++;
	}
	if (npu->mad) {
		atomic64_inc(&npu->protocol_errors);
		hawk_npu_watch_soon(npu);
	}
	hawk_npu_drv_write(npu, cq_head, npu->cq_head);
}

irqreturn_t hawk_npu_irq_done(int irq, void *data)
{
	struct hawk_npu *npu = data;
	unsigned long flags;

	spin_lock_irqsave(&npu->lock, flags);
	hawk_npu_drain(npu);
	spin_unlock_irqrestore(&npu->lock, flags);
	return IRQ_HANDLED;
}

/**
 * hawk_npu_cancel() - end all outstanding commands
 * @npu: the device; the firmware can touch the host's memory no more
 * @err: their status, unless they have one already
 *
 * Context: hawk_npu.lock held.
 */
void hawk_npu_cancel(struct hawk_npu *npu, int err)
{
	u32 i;

	lockdep_assert_held(&npu->lock);
	for (i = 0; i < HAWK_NPU_SLOTS; i++)
		if (npu->cmd[i])
			hawk_npu_end(npu, i, npu->cmd[i]->status ?: err);
	wake_up_all(&npu->wait);
}

/* ---- submission ---- */

/* Return: a slot, -EAGAIN: none is free, -EHOSTDOWN, -ENODEV. */
static int hawk_npu_slot_get(struct hawk_npu *npu)
{
	unsigned long flags;
	int slot = -EAGAIN;

	spin_lock_irqsave(&npu->lock, flags);
	if (npu->state == HAWK_NPU_GONE)
		slot = -ENODEV;
	else if (npu->state != HAWK_NPU_READY)
		slot = -EHOSTDOWN;
	else if (npu->slots != GENMASK(HAWK_NPU_SLOTS - 1, 0))
		slot = ffz(npu->slots);
	if (slot >= 0)
		__set_bit(slot, &npu->slots);
	spin_unlock_irqrestore(&npu->lock, flags);
	return slot;
}

static void hawk_npu_slot_put(struct hawk_npu *npu, u32 slot)
{
	unsigned long flags;

	spin_lock_irqsave(&npu->lock, flags);
	__clear_bit(slot, &npu->slots);
	spin_unlock_irqrestore(&npu->lock, flags);
	wake_up(&npu->wait);
}

static void __iomem *hawk_npu_scratch(struct hawk_npu *npu, u32 slot)
{
	return npu->ctl + HAWK_NPU_SCRATCH_OFF + slot * HAWK_NPU_SCRATCH_BYTES;
}

/* Return: 0, -EHOSTDOWN or -ENODEV. */
static int hawk_npu_submit(struct hawk_npu *npu, struct hawk_npu_cmd *cmd, u32 slot)
{
	unsigned long flags;
	int ret = 0;
	u32 at;

	spin_lock_irqsave(&npu->lock, flags);
	if (npu->state != HAWK_NPU_READY) {
		ret = npu->state == HAWK_NPU_GONE ? -ENODEV : -EHOSTDOWN;
		goto out;
	}
	cmd->sqe.seq = ++npu->seq;
	cmd->sqe.boot = npu->boot;
	cmd->sqe.slot = slot;
	cmd->deadline = jiffies + hawk_npu_timeout();
	npu->cmd[slot] = cmd;
	/* As many entries as slots: there is room. */
	at = npu->sq_tail % HAWK_NPU_SLOTS * sizeof(cmd->sqe);
	memcpy_toio(npu->ctl + HAWK_NPU_SQ_OFF + at, &cmd->sqe, sizeof(cmd->sqe));
	wmb();	/* the index after the entry that it leads to */
	hawk_npu_drv_write(npu, sq_tail, ++npu->sq_tail);
	hawk_npu_ring(npu, HAWK_NPU_BELL_WORK);
out:
	spin_unlock_irqrestore(&npu->lock, flags);
	return ret;
}

/**
 * hawk_npu_exec() - have the firmware execute a command
 * @npu: the device, entered (hawk_npu_enter())
 * @cmd: the command
 *
 * Context: may sleep, as long as a command may take and a reset after it.
 * Return: 0; -EHOSTDOWN: there is no firmware just now; -ETIMEDOUT: it took too long;
 * -ECONNRESET: the firmware crashed, or was reset because of another command; -EPROTO: it
 * broke the protocol; -EBADMSG: bytes that it read are lost (ECC); -EFAULT: it cannot
 * reach the host's memory; -EINVAL, -EOPNOTSUPP: it refuses the command; -ENODEV: the
 * device goes.
 */
int hawk_npu_exec(struct hawk_npu *npu, struct hawk_npu_cmd *cmd)
{
	int slot, ret;

	might_sleep();
	init_completion(&cmd->done);
	cmd->status = 0;
	wait_event(npu->wait, (slot = hawk_npu_slot_get(npu)) != -EAGAIN);
	if (slot < 0)
		return slot;
	if (cmd->list_bytes)
		memcpy_toio(npu->ctl + HAWK_NPU_LIST_OFF + slot * HAWK_NPU_LIST_BYTES, cmd->list,
			    cmd->list_bytes);
	if (cmd->in_bytes)
		memcpy_toio(hawk_npu_scratch(npu, slot), cmd->in, cmd->in_bytes);
	ret = hawk_npu_submit(npu, cmd, slot);
	if (!ret) {
		wait_for_completion(&cmd->done);
		ret = cmd->status;
	}
	if (!ret && cmd->out_bytes)
		memcpy_fromio(cmd->out, hawk_npu_scratch(npu, slot) + HAWK_NPU_SCRATCH_OUT,
			      cmd->out_bytes);
	hawk_npu_slot_put(npu, slot);
	return ret;
}
