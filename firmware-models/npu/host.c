// SPDX-License-Identifier: GPL-2.0
/*
 * host.c - the way to the virtual machine
 *
 * QEMU's ivshmem-doorbell learns what it is connected to from a stream of 64-bit numbers,
 * some with a descriptor: version 0; its own number; -1 with the memory; then a peer's
 * number for each of the peer's doorbells, with their eventfds; its own last, for its
 * interrupts.
 *
 * The host's memory, which a device reaches by bus addresses, is mapped here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "npu.h"

#define PEER_NPU	0
#define PEER_HOST	1

static int send_number(int sock, int64_t number, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = { 0 };
	struct iovec iov = { .iov_base = &number, .iov_len = sizeof(number) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = ctl.bytes;
		msg.msg_controllen = sizeof(ctl.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == sizeof(number) ? 0 : -1;
}

int npu_host_greet(const struct npu *n, int sock)
{
	int ret, i;

	ret = send_number(sock, 0, -1) || send_number(sock, PEER_HOST, -1) ||
	      send_number(sock, -1, n->memfd);
	for (i = 0; !ret && i < (int)HAWK_NPU_VECTORS; i++)
		ret = send_number(sock, PEER_NPU, n->bell[i]);
	for (i = 0; !ret && i < (int)HAWK_NPU_VECTORS; i++)
		ret = send_number(sock, PEER_HOST, n->irq[i]);
	if (ret)
		fprintf(stderr, "hawk-npu: QEMU's socket: %s\n", strerror(errno));
	return ret ? -1 : 0;
}

/* A full counter rings as well as one more. */
void npu_ring(int eventfd)
{
	uint64_t one = 1;
	ssize_t ret = write(eventfd, &one, sizeof(one));

	(void)ret;
}

int npu_ram_add(struct npu *n, const char *text)
{
	struct npu_ram *r = &n->ram[n->nram];
	uint64_t off;
	int fd;

	if (n->nram == NPU_RAMS ||
	    sscanf(text, "%d:%" SCNi64 ":%" SCNi64 ":%" SCNi64, &fd, &off, &r->addr,
		   &r->bytes) != 4) {
		fprintf(stderr, "hawk-npu: --ram %s: FD:OFFSET:ADDRESS:BYTES, %d times at most\n",
			text, NPU_RAMS);
		return -1;
	}
	r->p = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);
	if (r->p == MAP_FAILED) {
		fprintf(stderr, "hawk-npu: --ram %s: %s\n", text, strerror(errno));
		return -1;
	}
	n->nram++;
	n->features |= HAWK_NPU_FEAT_DMA;
	return 0;
}

uint8_t *npu_ram_at(const struct npu *n, uint64_t addr, uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < n->nram; i++) {
		const struct npu_ram *r = &n->ram[i];

		if (addr >= r->addr && bytes <= r->bytes && addr - r->addr <= r->bytes - bytes)
			return r->p + (addr - r->addr);
	}
	return NULL;
}
