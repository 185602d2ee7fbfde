// SPDX-License-Identifier: GPL-2.0
/*
 * state.c - the firmware's life: booted, timed out, reset
 *
 *	from		what is seen				then		to
 *	DOWN		a boot of ours to have			attach		READY
 *	DOWN		none until reset_by			ask for a reset	RESETTING
 *	READY		the board: another boot, or it ended	-ECONNRESET	DOWN
 *	READY		a command is overdue			-ETIMEDOUT *	RESETTING
 *	READY		no heartbeat, or "I stopped"		-ECONNRESET *	RESETTING
 *	READY		the protocol is broken			-EPROTO *	RESETTING
 *	RESETTING	the reset is acknowledged		end commands	DOWN
 *	RESETTING	not until reset_by			no bus master,	DOWN
 *							end commands
 *	any		the device is removed			-ENODEV		GONE
 *
 * * what outstanding commands will get.  They end only when the firmware can write to the
 * host's memory no more: the board has said so (another boot, the acknowledgement), or the
 * device is no bus master any more.
 *
 * One work item makes all transitions but the last.  It runs on every interrupt that tells
 * of the firmware, and every HAWK_NPU_WATCH_MS: interrupts may be lost.
 *
 * Memory outlives the firmware, so blocks stay what they are, and while there is none the
 * CPU moves them.  If the board says that the memory has lost its content (mem_gen), which
 * it does before it is lost, the tier is lost, its blocks are misses, and a new one is made.
 * Who has read from the tier looks at mem_gen afterwards.
 */
#include "hawk_npu.h"

#include <linux/iopoll.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#define HAWK_NPU_WATCH_MS	200
#define HAWK_NPU_RESET_MS	5000	/* for the board to acknowledge */
#define HAWK_NPU_RETRY_MS	2000	/* without firmware, until a reset is tried */

static unsigned int timeout_ms = 10000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "what a command may take before the firmware is reset, milliseconds, 100 or more (default 10000)");

static unsigned int heartbeat_ms = 10000;
module_param(heartbeat_ms, uint, 0644);
MODULE_PARM_DESC(heartbeat_ms, "silence of the firmware's heart before it is reset, milliseconds, 1000 or more (default 10000)");

/* What a command may take, jiffies. */
unsigned long hawk_npu_timeout(void)
{
	return msecs_to_jiffies(max(READ_ONCE(timeout_ms), 100u));
}

/* Context: any. */
void hawk_npu_watch_soon(struct hawk_npu *npu)
{
	mod_delayed_work(npu->watch_wq, &npu->watch, 0);
}

irqreturn_t hawk_npu_irq_state(int irq, void *data)
{
	struct hawk_npu *npu = data;

	if (READ_ONCE(npu->state) != HAWK_NPU_GONE)
		hawk_npu_watch_soon(npu);
	return IRQ_HANDLED;
}

/* ---- transitions, with the lock held ---- */

static void hawk_npu_reset(struct hawk_npu *npu, int err)
{
	u32 i;

	lockdep_assert_held(&npu->lock);
	for (i = 0; i < HAWK_NPU_SLOTS; i++)
		if (npu->cmd[i] && !npu->cmd[i]->status)
			npu->cmd[i]->status = err;
	npu->state = HAWK_NPU_RESETTING;
	npu->reset_by = jiffies + msecs_to_jiffies(HAWK_NPU_RESET_MS);
	hawk_npu_drv_write(npu, reset_req, ++npu->reset_req);
	hawk_npu_ring(npu, HAWK_NPU_BELL_RESET);
	wake_up_all(&npu->wait);
}

static void hawk_npu_down(struct hawk_npu *npu, int err)
{
	lockdep_assert_held(&npu->lock);
	npu->state = HAWK_NPU_DOWN;
	npu->reset_by = jiffies + msecs_to_jiffies(HAWK_NPU_RETRY_MS);
	hawk_npu_cancel(npu, err);
}

static bool hawk_npu_alive(struct hawk_npu *npu)
{
	u32 beat = hawk_npu_fw_read(npu, heartbeat);

	if (beat != npu->heartbeat) {
		npu->heartbeat = beat;
		npu->heartbeat_at = jiffies;
	}
	return time_before(jiffies, npu->heartbeat_at +
			   msecs_to_jiffies(max(READ_ONCE(heartbeat_ms), 1000u)));
}

/* Marks the commands that took too long; how many. */
static u32 hawk_npu_overdue(struct hawk_npu *npu)
{
	u32 i, n = 0;

	for (i = 0; i < HAWK_NPU_SLOTS; i++) {
		struct hawk_npu_cmd *cmd = npu->cmd[i];

		if (!cmd || time_before(jiffies, cmd->deadline))
			continue;
		cmd->status = -ETIMEDOUT;
		n++;
	}
	atomic64_add(n, &npu->timeouts);
	return n;
}

static void hawk_npu_watch_ready(struct hawk_npu *npu)
{
	u32 late;

	hawk_npu_drain(npu);
	late = hawk_npu_overdue(npu);
	if (hawk_npu_board_read(npu, boot) != npu->boot ||
	    hawk_npu_board_read(npu, state) != HAWK_NPU_FW_RUNNING) {
		atomic64_inc(&npu->crashes);
		dev_warn(&npu->pdev->dev, "the firmware has ended (boot %u)\n", npu->boot);
		hawk_npu_down(npu, -ECONNRESET);
	} else if (npu->mad) {
		dev_err(&npu->pdev->dev, "the firmware breaks the protocol: reset\n");
		hawk_npu_reset(npu, -EPROTO);
	} else if (late) {
		dev_err(&npu->pdev->dev, "%u commands took longer than %u ms: reset\n", late,
			jiffies_to_msecs(hawk_npu_timeout()));
		hawk_npu_reset(npu, -ECONNRESET);
	} else if (hawk_npu_fw_read(npu, state) != HAWK_NPU_FW_RUNNING || !hawk_npu_alive(npu)) {
		dev_err(&npu->pdev->dev, "the firmware has stopped: reset\n");
		hawk_npu_reset(npu, -ECONNRESET);
	}
}

static void hawk_npu_watch_resetting(struct hawk_npu *npu)
{
	if (hawk_npu_board_read(npu, reset_ack) == npu->reset_req) {
		atomic64_inc(&npu->resets);
		hawk_npu_down(npu, -ECONNRESET);
	} else if (time_after_eq(jiffies, npu->reset_by)) {
		dev_err(&npu->pdev->dev, "the board does not answer: no bus master any more\n");
		pci_clear_master(npu->pdev);
		hawk_npu_down(npu, -ECONNRESET);
	}
}

/* Firmware of our version, all of whose words are of the boot that the board tells of. */
static bool hawk_npu_booted(struct hawk_npu *npu, u32 boot)
{
	return hawk_npu_board_read(npu, magic) == HAWK_NPU_MAGIC &&
	       hawk_npu_board_read(npu, state) == HAWK_NPU_FW_RUNNING &&
	       hawk_npu_fw_read(npu, state) == HAWK_NPU_FW_RUNNING &&
	       hawk_npu_fw_read(npu, version) == HAWK_NPU_FW_VERSION &&
	       hawk_npu_fw_read(npu, boot) == boot;
}

static void hawk_npu_attach(struct hawk_npu *npu, u32 boot)
{
	npu->boot = boot;
	npu->features = hawk_npu_board_read(npu, features);
	npu->sq_tail = 0;
	npu->cq_head = 0;
	npu->mad = false;
	npu->heartbeat_at = jiffies;
	hawk_npu_drv_write(npu, version, HAWK_NPU_FW_VERSION);
	hawk_npu_drv_write(npu, sq_tail, 0);
	hawk_npu_drv_write(npu, cq_head, 0);
	wmb();	/* indexes before the count that makes them valid */
	hawk_npu_drv_write(npu, boot, boot);
	pci_set_master(npu->pdev);
	npu->state = HAWK_NPU_READY;
	wake_up_all(&npu->wait);
	hawk_npu_ring(npu, HAWK_NPU_BELL_WORK);
	dev_info(&npu->pdev->dev, "firmware is ready (boot %u)\n", boot);
}

/*
 * Firmware of a boot that we have used already is not ours to use again: its indexes are
 * not ours.
 */
static void hawk_npu_watch_down(struct hawk_npu *npu)
{
	u32 boot = hawk_npu_board_read(npu, boot);

	if (boot != npu->boot && hawk_npu_booted(npu, boot))
		hawk_npu_attach(npu, boot);
	else if (time_after_eq(jiffies, npu->reset_by))
		hawk_npu_reset(npu, -ECONNRESET);
}

/* Nobody reads from the tier of an earlier content once this has returned. */
static void hawk_npu_check_memory(struct hawk_npu *npu)
{
	u32 gen = hawk_npu_board_read(npu, mem_gen);

	if (gen == npu->mem_gen || hawk_npu_board_read(npu, magic) != HAWK_NPU_MAGIC)
		return;
	dev_err(&npu->pdev->dev, "the memory has lost its content\n");
	WRITE_ONCE(npu->mem_gen, gen);
	hawk_npu_tier_lost(npu);
}

/* Looks after the firmware; see the table above. */
void hawk_npu_watch(struct work_struct *work)
{
	struct hawk_npu *npu = container_of(to_delayed_work(work), struct hawk_npu, watch);

	if (READ_ONCE(npu->state) != HAWK_NPU_GONE)
		hawk_npu_check_memory(npu);
	spin_lock_irq(&npu->lock);
	if (npu->state == HAWK_NPU_READY)
		hawk_npu_watch_ready(npu);
	if (npu->state == HAWK_NPU_RESETTING)
		hawk_npu_watch_resetting(npu);
	if (npu->state == HAWK_NPU_DOWN)
		hawk_npu_watch_down(npu);
	if (npu->state != HAWK_NPU_GONE)
		queue_delayed_work(npu->watch_wq, &npu->watch,
				   msecs_to_jiffies(HAWK_NPU_WATCH_MS));
	spin_unlock_irq(&npu->lock);
}

/**
 * hawk_npu_stop() - no command any more
 * @npu: the device
 *
 * The firmware is reset, so that the next driver finds it fresh, and the host's memory is
 * let alone.  Outstanding commands end with -ENODEV.
 * Context: may sleep.
 */
void hawk_npu_stop(struct hawk_npu *npu)
{
	u32 req, ack;

	spin_lock_irq(&npu->lock);
	hawk_npu_reset(npu, -ENODEV);
	npu->state = HAWK_NPU_GONE;
	req = npu->reset_req;
	spin_unlock_irq(&npu->lock);
	if (read_poll_timeout(hawk_npu_board_read, ack, ack == req || ack == ~0u, 1000,
			      HAWK_NPU_RESET_MS * USEC_PER_MSEC, false, npu, reset_ack))
		dev_err(&npu->pdev->dev, "the board does not answer\n");
	pci_clear_master(npu->pdev);
	spin_lock_irq(&npu->lock);
	hawk_npu_cancel(npu, -ENODEV);
	spin_unlock_irq(&npu->lock);
}
