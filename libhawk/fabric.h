/* SPDX-License-Identifier: MIT */
/*
 * fabric.h - what the transport asks of a network
 *
 * A connection is reliable and in order: messages into slots that the other side has
 * posted, writes and reads of the other side's memory, write with a number (imm) that takes
 * a posted slot there.  Requests complete in the order in which they were posted.  The first
 * error ends the connection.
 *
 * fabric_rdma.c does that by verbs, fabric_loop.c within the process, with faults on order.
 * All calls for one connection are made by one thread at a time.
 */
#ifndef HAWK_FABRIC_H
#define HAWK_FABRIC_H

#include "priv.h"

#pragma GCC visibility push(default)
#include <hawk/peer.h>
#pragma GCC visibility pop

#define FAB_SLOTS	64u	/* messages that each side has posted */
#define FAB_MSG		512u	/* bytes of a message at most */
#define FAB_SGE_MAX	32u	/* pieces of a request at most */

enum fab_op { FAB_SEND, FAB_WRITE, FAB_READ };

struct fab;		/* a network device */
struct fab_conn;	/* a connection */

/**
 * struct fab_reg - registered memory
 * @base: address of its first byte, as the NIC has it
 * @lkey: for requests
 * @p: what was registered
 * @how: enum hawk_mem_how
 * @why: why not better
 * @priv: the fabric's
 */
struct fab_reg {
	uint64_t base;
	uint32_t lkey;
	struct hawk_mem_params p;
	uint32_t how;
	char why[192];
	void *priv;
};

/**
 * struct fab_window - bytes that the other side may use
 * @addr: address that he has to use
 * @bytes: how many
 * @rkey: the key
 * @priv: the fabric's
 */
struct fab_window {
	uint64_t addr;
	uint64_t bytes;
	uint32_t rkey;
	void *priv;
};

struct fab_sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/**
 * struct fab_wr - a request
 * @id: comes back with its completion
 * @op: what
 * @signaled: it has a completion; without, only an error gives one
 * @has_imm: FAB_WRITE: @imm is told the other side
 * @imm: number
 * @rkey: of the other side's window
 * @far: address there
 * @nsge: pieces here
 * @sge: they
 */
struct fab_wr {
	uint64_t id;
	enum fab_op op;
	bool signaled;
	bool has_imm;
	uint32_t imm;
	uint32_t rkey;
	uint64_t far;
	unsigned int nsge;
	const struct fab_sge *sge;
};

/**
 * struct fab_wc - something is complete
 * @id: of the request; of a slot: its number
 * @recv: a slot has been filled, or an imm has come in its place
 * @has_imm: @imm is there
 * @imm: number
 * @len: bytes of the message
 * @detail: the NIC's own number for @status
 * @status: 0; -EACCES (refused by the other side's NIC), -EPIPE (the other side is gone),
 *	-ECANCELED (an earlier one failed), -EIO
 */
struct fab_wc {
	uint64_t id;
	bool recv;
	bool has_imm;
	uint32_t imm;
	uint32_t len;
	uint32_t detail;
	int status;
};

/**
 * struct fab_ring - memory for messages
 * @reg: its registration: FAB_SLOTS slots of FAB_MSG bytes
 */
struct fab_ring {
	struct fab_reg *reg;
};

/**
 * struct fab_ops - a kind of network
 * @open: @where: what follows the colon of the URL
 * @reg: fills @reg but for @reg->p, which is set
 * @listen: once
 * @accept: the next connection; -ETIME.  Slots of @ring are posted before the other side can
 *	send
 * @connect: -EAGAIN: nobody listens, try again
 * @hangup: ends the connection: when it returns, neither the NIC nor the other side touches
 *	memory for it, and polling gives nothing any more
 * @free: after @hangup
 * @post_recv: post slot @slot again
 * @poll: up to @n completions; -EPIPE: the connection is gone and there are no more
 * @wait: sleep until there may be completions, or the time @deadline (CLOCK_MONOTONIC
 *	nanoseconds) has come
 * @grant: @w->addr and @w->bytes lie within @reg; sets @w->rkey, may change @w->addr.  The
 *	other side can use it when it gets a message that is sent after.  1: done; 0: a request
 *	@id was posted for it
 * @revoke: 1: done; 0: it is when request @id completes
 * @forget: end a window at once, and give back what it has: after @revoke, or before @hangup
 */
struct fab_ops {
	const char *name;
	int (*open)(const char *where, unsigned int depth, struct fab **f);
	void (*close)(struct fab *f);
	void (*info)(const struct fab *f, struct hawk_net_info *info);
	int (*reg)(struct fab *f, struct fab_reg *reg);
	void (*dereg)(struct fab *f, struct fab_reg *reg);
	int (*listen)(struct fab *f, const char *where);
	int (*accept)(struct fab *f, const struct fab_ring *ring, uint64_t deadline,
		      struct fab_conn **c);
	int (*connect)(struct fab *f, const char *where, const struct fab_ring *ring,
		       uint64_t deadline, struct fab_conn **c);
	void (*hangup)(struct fab_conn *c);
	void (*free)(struct fab_conn *c);
	int (*post)(struct fab_conn *c, const struct fab_wr *wr);
	int (*post_recv)(struct fab_conn *c, unsigned int slot);
	int (*poll)(struct fab_conn *c, struct fab_wc *wc, int n);
	void (*wait)(struct fab_conn *c, uint64_t deadline);
	int (*grant)(struct fab_conn *c, struct fab_reg *reg, uint32_t flags,
		     struct fab_window *w, uint64_t id);
	int (*revoke)(struct fab_conn *c, struct fab_window *w, uint64_t id);
	void (*forget)(struct fab_conn *c, struct fab_window *w);
};

extern const struct fab_ops hawk_fab_loop;
extern const struct fab_ops hawk_fab_rdma;

uint64_t hawk_mono_ns(void);

#endif /* HAWK_FABRIC_H */
