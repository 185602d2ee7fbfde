/* SPDX-License-Identifier: MIT */
/*
 * fabric_verbs.h - what the files of "rdma:" share
 *
 * fabric_verbs.c	librdmacm and libibverbs, loaded when somebody asks for "rdma:"
 * fabric_rdma.c	devices, memory, requests
 * fabric_cm.c		connections
 *
 * libhawk does not link the two libraries, so it runs where they are not installed; what
 * verbs.h has inline goes through the device's own table.  Without their headers only the
 * refusal in fabric_verbs.c is built.
 */
#ifndef HAWK_FABRIC_VERBS_H
#define HAWK_FABRIC_VERBS_H

#include "fabric.h"

#if __has_include(<rdma/rdma_cma.h>) && __has_include(<infiniband/verbs.h>)
#define HAWK_HAVE_VERBS	1

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#define RDMA_FUNCTIONS(F)						\
	F(rdma_create_event_channel) F(rdma_destroy_event_channel)	\
	F(rdma_create_id) F(rdma_destroy_id) F(rdma_bind_addr)		\
	F(rdma_resolve_addr) F(rdma_resolve_route) F(rdma_create_qp)	\
	F(rdma_destroy_qp) F(rdma_connect) F(rdma_listen) F(rdma_accept) \
	F(rdma_reject) F(rdma_disconnect) F(rdma_get_cm_event)		\
	F(rdma_ack_cm_event) F(rdma_migrate_id) F(rdma_set_option)	\
	F(rdma_get_devices) F(rdma_free_devices) F(rdma_event_str)
#define IBV_FUNCTIONS(F)						\
	F(ibv_alloc_pd) F(ibv_dealloc_pd) F(ibv_reg_mr) F(ibv_reg_dmabuf_mr) \
	F(ibv_dereg_mr) F(ibv_create_comp_channel) F(ibv_destroy_comp_channel) \
	F(ibv_create_cq) F(ibv_destroy_cq) F(ibv_query_device)		\
	F(ibv_query_port) F(ibv_get_device_name) F(ibv_get_cq_event)	\
	F(ibv_ack_cq_events)

/* The functions, by their names behind a "p_". */
struct rdma_lib {
#define MEMBER(f) __typeof__(&f) p_##f;
	RDMA_FUNCTIONS(MEMBER)
	IBV_FUNCTIONS(MEMBER)
#undef MEMBER
};

extern struct rdma_lib rdma_lib;

/**
 * struct fab - a NIC
 * @bound: holds the device, if it was chosen by an address
 * @bound_ch: its channel
 * @list: holds it, if it was the first one
 * @addr: the address, family 0: none
 * @ctx: the device
 * @pd: protection domain of all memory
 * @attr: what it can do
 * @mtu: bytes of a packet
 * @request: bytes of a request at most
 * @depth: requests under way
 * @windows: it has memory windows of type 2
 * @dmabuf: 1: it takes dma-bufs, -1: it does not, 0: not tried
 * @listener: accepts
 * @listen_ch: its channel
 */
struct fab {
	struct rdma_cm_id *bound;
	struct rdma_event_channel *bound_ch;
	struct ibv_context **list;
	struct sockaddr_storage addr;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	uint32_t mtu;
	uint32_t request;
	unsigned int depth;
	bool windows;
	int dmabuf;
	struct rdma_cm_id *listener;
	struct rdma_event_channel *listen_ch;
};

/**
 * struct fab_conn - a connection
 * @f: its device
 * @ch: events of its connection
 * @id: its connection manager's
 * @cc: tells of completions
 * @cq: completions of both kinds
 * @reg: slots
 * @armed: @cc will tell of the next one
 * @gone: the other side has ended it
 * @hung: we have
 */
struct fab_conn {
	struct fab *f;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *cc;
	struct ibv_cq *cq;
	struct fab_reg *reg;
	bool armed;
	bool gone;
	bool hung;
};

/* fabric_verbs.c: 0, or why they cannot be loaded */
int rdma_lib_load(void);

/* fabric_rdma.c */
int fab_rdma_post_recv(struct fab_conn *c, unsigned int slot);

/* fabric_cm.c */
int fab_rdma_address(const char *where, struct sockaddr_storage *addr);
int fab_rdma_listen(struct fab *f, const char *where);
void fab_rdma_unlisten(struct fab *f);
int fab_rdma_accept(struct fab *f, const struct fab_ring *ring, uint64_t deadline,
		    struct fab_conn **c);
int fab_rdma_connect(struct fab *f, const char *where, const struct fab_ring *ring,
		     uint64_t deadline, struct fab_conn **c);
void fab_rdma_hangup(struct fab_conn *c);
void fab_rdma_free(struct fab_conn *c);
void fab_rdma_wait(struct fab_conn *c, uint64_t deadline);

#endif /* __has_include */

#endif /* HAWK_FABRIC_VERBS_H */
