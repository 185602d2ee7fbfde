// SPDX-License-Identifier: GPL-2.0
/*
 * firmware.c - the firmware: rings, heart, faults
 *
 * One thread takes commands one after the other, so completions come in the order of the
 * commands; another is the heart.  Indexes that the driver writes are believed only as
 * far as the rings go.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "npu.h"

#define HEART_MS	100
#define NS		1000000000ull

static bool frozen;	/* the heart has stopped; atomic */

static void *heart(void *arg)
{
	const struct npu *n = arg;

	while (!__atomic_load_n(&frozen, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&npu_fw(n)->heartbeat, 1, __ATOMIC_RELEASE);
		poll(NULL, 0, HEART_MS);
	}
	return NULL;
}

/* ---- faults ---- */

static void hang(void)
{
	for (;;)
		pause();
}

/* What does not return ends the process or the taking of commands. */
static uint32_t fault(struct npu *n, uint32_t kind, uint64_t addr)
{
	switch (kind) {
	case HAWK_NPU_FAULT_FREEZE:
		__atomic_store_n(&frozen, true, __ATOMIC_RELAXED);
		hang();
		return HAWK_NPU_OK;
	case HAWK_NPU_FAULT_HANG:
		hang();
		return HAWK_NPU_OK;
	case HAWK_NPU_FAULT_CRASH:
		_exit(EXIT_FAILURE);
	case HAWK_NPU_FAULT_DIE:
		_exit(NPU_EXIT_DIE);
	case HAWK_NPU_FAULT_AMNESIA:
		_exit(NPU_EXIT_AMNESIA);
	case HAWK_NPU_FAULT_PULL:
		_exit(NPU_EXIT_PULL);
	case HAWK_NPU_FAULT_ECC:
		if (!npu_in_memory(n, addr, 1))
			return HAWK_NPU_ERR_RANGE;
		npu_damage(n, addr);
		return HAWK_NPU_OK;
	case HAWK_NPU_FAULT_LIE:
		return HAWK_NPU_OK;	/* fault_lie() */
	default:
		return HAWK_NPU_ERR_OP;
	}
}

/* Firmware that has gone mad writes numbers of @seed into its rings and its page. */
static void fault_lie(struct npu *n, uint32_t seed)
{
	struct hawk_npu_cqe *cq = (struct hawk_npu_cqe *)(n->mem + HAWK_NPU_CQ_OFF);
	uint8_t *bytes = (uint8_t *)cq;
	unsigned int state = seed, i;

	for (i = 0; i < HAWK_NPU_SLOTS * sizeof(*cq); i++)
		bytes[i] = rand_r(&state);
	__atomic_store_n(&npu_fw(n)->cq_tail, seed & 1 ? npu_fw(n)->cq_tail + HAWK_NPU_SLOTS :
			 (uint32_t)rand_r(&state), __ATOMIC_RELEASE);
	npu_ring(n->irq[HAWK_NPU_IRQ_DONE]);
}

/* ---- commands ---- */

static uint32_t dispatch(struct npu *n, const struct hawk_npu_sqe *cmd, uint64_t *result)
{
	if (cmd->boot != npu_board(n)->boot || cmd->slot >= HAWK_NPU_SLOTS)
		return HAWK_NPU_ERR_RANGE;
	switch (cmd->op) {
	case HAWK_NPU_OP_NOP: return HAWK_NPU_OK;
	case HAWK_NPU_OP_READ:
	case HAWK_NPU_OP_WRITE: return npu_op_move(n, cmd);
	case HAWK_NPU_OP_COPY: return npu_op_copy(n, cmd);
	case HAWK_NPU_OP_FILL: return npu_op_fill(n, cmd);
	case HAWK_NPU_OP_CRC32C: return npu_op_crc32c(n, cmd, result);
	case HAWK_NPU_OP_TRANSFORM: return npu_op_transform(n, cmd);
	case HAWK_NPU_OP_ATTEND: return npu_op_attend(n, cmd);
	case HAWK_NPU_OP_FAULT:
		return n->features & HAWK_NPU_FEAT_FAULTS ? fault(n, cmd->arg[0], cmd->addr) :
							    HAWK_NPU_ERR_OP;
	default: return HAWK_NPU_ERR_OP;
	}
}

/* What a command takes by the model, and takes. */
static uint64_t spend(const struct npu *n, const struct hawk_npu_sqe *cmd)
{
	uint64_t bytes = (uint64_t)cmd->len * (cmd->op == HAWK_NPU_OP_ATTEND ? cmd->nlist : 1);
	uint64_t ns = n->latency_us * 1000ull;
	struct timespec ts;

	if (n->mb_per_s)
		ns += bytes * 1000 / n->mb_per_s;
	ts = (struct timespec){ .tv_sec = ns / NS, .tv_nsec = ns % NS };
	while (ns && nanosleep(&ts, &ts))
		;
	return ns;
}

static void complete(struct npu *n, const struct hawk_npu_cqe *done)
{
	uint32_t tail = npu_fw(n)->cq_tail;

	memcpy(n->mem + HAWK_NPU_CQ_OFF + tail % HAWK_NPU_SLOTS * sizeof(*done), done, sizeof(*done));
	__atomic_store_n(&npu_fw(n)->cq_tail, tail + 1, __ATOMIC_RELEASE);
	npu_ring(n->irq[HAWK_NPU_IRQ_DONE]);
}

static void serve(struct npu *n, const struct hawk_npu_sqe *cmd)
{
	struct hawk_npu_cqe done = { .seq = cmd->seq, .boot = cmd->boot, .slot = cmd->slot };
	uint64_t result = 0;

	done.status = dispatch(n, cmd, &result);
	done.result = result;
	if (done.status == HAWK_NPU_OK)
		done.ns = spend(n, cmd);
	n->shared->commands++;
	n->shared->errors += done.status != HAWK_NPU_OK;
	n->shared->bytes += done.status == HAWK_NPU_OK ? cmd->len : 0;
	n->shared->busy_ns += done.ns;
	if (cmd->op == HAWK_NPU_OP_FAULT && cmd->arg[0] == HAWK_NPU_FAULT_LIE &&
	    done.status == HAWK_NPU_OK)
		fault_lie(n, cmd->arg[1]);
	else
		complete(n, &done);
}

enum npu_fw_next npu_fw_step(struct npu *n)
{
	const struct hawk_npu_drv *drv = npu_drv(n);
	struct hawk_npu_fw *fw = npu_fw(n);
	struct hawk_npu_sqe cmd;
	uint32_t waiting;

	if (__atomic_load_n(&drv->boot, __ATOMIC_ACQUIRE) != fw->boot)
		return NPU_FW_IDLE;
	waiting = __atomic_load_n(&drv->sq_tail, __ATOMIC_ACQUIRE) - fw->sq_head;
	if (waiting > HAWK_NPU_SLOTS)
		return NPU_FW_MAD;
	if (!waiting)
		return NPU_FW_IDLE;
	/* A driver that does not read its completions gets no more of them. */
	if (fw->cq_tail - __atomic_load_n(&drv->cq_head, __ATOMIC_ACQUIRE) >= HAWK_NPU_SLOTS)
		return NPU_FW_IDLE;
	memcpy(&cmd, n->mem + HAWK_NPU_SQ_OFF + fw->sq_head % HAWK_NPU_SLOTS * sizeof(cmd),
	       sizeof(cmd));
	__atomic_store_n(&fw->sq_head, fw->sq_head + 1, __ATOMIC_RELEASE);
	serve(n, &cmd);
	return NPU_FW_MORE;
}

void npu_fw_start(struct npu *n)
{
	struct hawk_npu_fw *fw = npu_fw(n);

	memset(fw, 0, sizeof(*fw));
	fw->version = HAWK_NPU_FW_VERSION;
	fw->boot = npu_board(n)->boot;
	__atomic_store_n(&fw->state, HAWK_NPU_FW_RUNNING, __ATOMIC_RELEASE);
}

void npu_fw_main(struct npu *n)
{
	struct pollfd bell = { .fd = n->bell[HAWK_NPU_BELL_WORK], .events = POLLIN };
	enum npu_fw_next next;
	pthread_t thread;
	uint64_t rings;

	npu_fw_start(n);
	if (pthread_create(&thread, NULL, heart, n))
		_exit(EXIT_FAILURE);
	npu_ring(n->irq[HAWK_NPU_IRQ_STATE]);
	for (;;) {
		if (poll(&bell, 1, HEART_MS) > 0 && read(bell.fd, &rings, sizeof(rings)) < 0)
			continue;
		fault(n, __atomic_exchange_n(&n->shared->fault, 0, __ATOMIC_ACQ_REL), 0);
		while ((next = npu_fw_step(n)) == NPU_FW_MORE)
			;
		if (next == NPU_FW_MAD) {
			__atomic_store_n(&npu_fw(n)->state, HAWK_NPU_FW_FAULT, __ATOMIC_RELEASE);
			npu_ring(n->irq[HAWK_NPU_IRQ_STATE]);
			hang();
		}
	}
}
