// SPDX-License-Identifier: GPL-2.0
/*
 * board.c - the board: starts, stops and restarts the firmware
 *
 *	OFF -> RUNNING		the model starts
 *	RUNNING -> RUNNING	the firmware has ended: crashed, or with another NPU_EXIT_*
 *	RUNNING -> OFF		it has ended with NPU_EXIT_DIE
 *	any -> RUNNING		the driver, or somebody at the control socket, wants a reset
 *
 * Each start counts hawk_npu_board.boot up.  A reset is acknowledged when the firmware's
 * process is gone, and with it all that it did in the host's memory.  The model ends when
 * QEMU has gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npu.h"

#define ASK_MAX		64u

int npu_board_init(struct npu *n, uint64_t bytes)
{
	size_t pages = (bytes - HAWK_NPU_MEM_OFF) / NPU_PAGE;
	int i;

	n->bytes = bytes;
	n->memfd = memfd_create("hawk-npu", MFD_CLOEXEC);
	if (n->memfd < 0 || ftruncate(n->memfd, bytes))
		goto err;
	n->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, n->memfd, 0);
	n->shared = mmap(NULL, sizeof(*n->shared) + pages, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n->mem == MAP_FAILED || n->shared == MAP_FAILED)
		goto err;
	for (i = 0; i < (int)HAWK_NPU_VECTORS; i++) {
		n->bell[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		n->irq[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (n->bell[i] < 0 || n->irq[i] < 0)
			goto err;
	}
	*npu_board(n) = (struct hawk_npu_board){
		.magic = HAWK_NPU_MAGIC,
		.version = HAWK_NPU_FW_VERSION,
		.mem_bytes = bytes - HAWK_NPU_MEM_OFF,
		.features = n->features,
		.mem_gen = 1,
	};
	return 0;

err:
	fprintf(stderr, "hawk-npu: %llu MiB of memory, doorbells: %s\n",
		(unsigned long long)bytes >> 20, strerror(errno));
	return -1;
}

/* ---- the firmware ---- */

static int boot(struct npu *n)
{
	sigset_t none;

	__atomic_store_n(&npu_board(n)->boot, npu_board(n)->boot + 1, __ATOMIC_RELEASE);
	n->child = fork();
	if (n->child < 0) {
		n->child = 0;
		fprintf(stderr, "hawk-npu: the firmware does not start: %s\n", strerror(errno));
		return -1;
	}
	if (!n->child) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		npu_fw_main(n);
	}
	__atomic_store_n(&npu_board(n)->state, HAWK_NPU_FW_RUNNING, __ATOMIC_RELEASE);
	return 0;
}

static void stop(struct npu *n)
{
	if (n->child) {
		kill(n->child, SIGKILL);
		waitpid(n->child, NULL, 0);
	}
	n->child = 0;
	__atomic_store_n(&npu_fw(n)->state, HAWK_NPU_FW_ENDED, __ATOMIC_RELEASE);
}

/* The driver may ask in any state, and again while this is done. */
static int reset(struct npu *n)
{
	struct hawk_npu_board *b = npu_board(n);
	uint32_t req = __atomic_load_n(&npu_drv(n)->reset_req, __ATOMIC_ACQUIRE);

	stop(n);
	__atomic_store_n(&b->reset_ack, req, __ATOMIC_RELEASE);
	return boot(n);
}

static void forget(struct npu *n)
{
	size_t bytes = n->bytes - HAWK_NPU_MEM_OFF;

	__atomic_add_fetch(&npu_board(n)->mem_gen, 1, __ATOMIC_SEQ_CST);
	memset(n->mem + HAWK_NPU_MEM_OFF, 0, bytes);
	memset(n->shared->bad, 0, bytes / NPU_PAGE);
	n->shared->damaged = 0;
}

/* Return: 0, or -1: the firmware cannot be started. */
static int ended(struct npu *n, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	n->child = 0;
	__atomic_store_n(&npu_fw(n)->state, HAWK_NPU_FW_ENDED, __ATOMIC_RELEASE);
	if (code == NPU_EXIT_AMNESIA)
		forget(n);
	if (code == NPU_EXIT_PULL && n->qmp >= 0 && npu_slot_pull(n->qmp))
		return -1;
	if (code != NPU_EXIT_DIE)
		return boot(n);
	__atomic_store_n(&npu_board(n)->state, HAWK_NPU_FW_ENDED, __ATOMIC_RELEASE);
	npu_ring(n->irq[HAWK_NPU_IRQ_STATE]);
	return 0;
}

static int reap(struct npu *n, int sigfd)
{
	struct signalfd_siginfo info;
	int status;

	if (read(sigfd, &info, sizeof(info)) < 0)
		return 0;
	if (n->child && waitpid(n->child, &status, WNOHANG) == n->child)
		return ended(n, status);
	return 0;
}

/* ---- the control socket ---- */

static int status_json(const struct npu *n, char *buf, size_t size)
{
	const struct hawk_npu_board *b = npu_board(n);
	const struct npu_shared *s = n->shared;

	return snprintf(buf, size,
			"{\"bytes\": %llu, \"boot\": %u, \"mem_gen\": %u, \"running\": %s, "
			"\"dma\": %s, \"commands\": %llu, \"errors\": %llu, \"bytes_moved\": %llu, "
			"\"busy_ns\": %llu, \"damaged_pages\": %llu}\n",
			(unsigned long long)n->bytes, b->boot, b->mem_gen,
			n->child ? "true" : "false",
			n->features & HAWK_NPU_FEAT_DMA ? "true" : "false",
			(unsigned long long)s->commands, (unsigned long long)s->errors,
			(unsigned long long)s->bytes, (unsigned long long)s->busy_ns,
			(unsigned long long)s->damaged);
}

static uint32_t fault_of(const char *word)
{
	static const char * const name[] = {
		[HAWK_NPU_FAULT_HANG] = "hang",	  [HAWK_NPU_FAULT_FREEZE] = "freeze",
		[HAWK_NPU_FAULT_CRASH] = "crash", [HAWK_NPU_FAULT_DIE] = "die",
		[HAWK_NPU_FAULT_AMNESIA] = "amnesia",
	};
	uint32_t i;

	for (i = 1; i < sizeof(name) / sizeof(name[0]); i++)
		if (name[i] && !strcmp(word, name[i]))
			return i;
	return 0;
}

/* One line in, one line out. */
static void answer(struct npu *n, int fd)
{
	char ask[ASK_MAX + 1] = "", say[512];
	ssize_t len = read(fd, ask, ASK_MAX), done;
	unsigned long long addr;
	int out;

	ask[strcspn(ask, "\n")] = 0;
	out = snprintf(say, sizeof(say), "ok\n");
	if (len <= 0)
		return;
	if (!strcmp(ask, "status"))
		out = status_json(n, say, sizeof(say));
	else if (!strcmp(ask, "reset"))
		reset(n);
	else if (sscanf(ask, "ecc %llu", &addr) == 1 && npu_in_memory(n, addr, 1))
		npu_damage(n, addr);
	else if (fault_of(ask))
		__atomic_store_n(&n->shared->fault, fault_of(ask), __ATOMIC_RELEASE);
	else
		out = snprintf(say, sizeof(say), "error: it knows status, reset, hang, freeze, "
			       "crash, die, amnesia, ecc OFFSET\n");
	done = write(fd, say, out);
	(void)done;
}

static void serve_control(struct npu *n, int control)
{
	int fd = accept(control, NULL, NULL);

	if (fd < 0)
		return;
	answer(n, fd);
	close(fd);
}

/* ---- all of it ---- */

enum { POLL_QEMU, POLL_QMP, POLL_RESET, POLL_CHILD, POLL_CONTROL, POLLS };

static int child_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int npu_board_run(struct npu *n, int qemu, int qmp, int control)
{
	struct pollfd p[POLLS] = {
		[POLL_QEMU] = { .fd = qemu, .events = POLLIN },
		[POLL_QMP] = { .fd = qmp, .events = POLLIN },
		[POLL_RESET] = { .fd = n->bell[HAWK_NPU_BELL_RESET], .events = POLLIN },
		[POLL_CHILD] = { .fd = child_signals(), .events = POLLIN },
		[POLL_CONTROL] = { .fd = control, .events = POLLIN },
	};
	uint64_t rings;
	char byte;
	int ret;

	n->qmp = qmp;
	ret = npu_host_greet(n, qemu) ?: boot(n);
	while (!ret) {
		if (poll(p, POLLS, -1) < 0)
			continue;
		if (p[POLL_QEMU].revents && read(qemu, &byte, 1) <= 0)
			break;
		if (p[POLL_QMP].revents)
			ret = npu_slot_hear(qmp);
		if (!ret && p[POLL_RESET].revents && read(p[POLL_RESET].fd, &rings, sizeof(rings)) > 0)
			ret = reset(n);
		if (!ret && p[POLL_CHILD].revents)
			ret = reap(n, p[POLL_CHILD].fd);
		if (!ret && p[POLL_CONTROL].revents)
			serve_control(n, control);
	}
	stop(n);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
