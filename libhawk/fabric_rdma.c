// SPDX-License-Identifier: MIT
/*
 * fabric_rdma.c - NICs by verbs: devices, memory, requests
 *
 * Memory is registered for local use and, where the NIC has memory windows of type 2, for
 * binding windows: a window belongs to one connection, and its key is worth nothing in
 * another.  Where it has none, a grant is a registration of its bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fabric_verbs.h"

#ifdef HAWK_HAVE_VERBS

#define REQUEST_MAX	(1u << 20)	/* bytes of a request: shorter ones end sooner */

/* ---- devices ---- */

/* The device: that of the address, or the first one. */
static int find_device(struct fab *f, const char *where)
{
	int n = 0;

	if (!*where) {
		f->list = rdma_lib.p_rdma_get_devices(&n);
		if (!f->list || !n)
			return hawk_fail(-ENODEV, "net: no RDMA device (soft RoCE: rdma link add rxe0 type rxe netdev ETH)");
		f->ctx = f->list[0];
		return 0;
	}
	n = fab_rdma_address(where, &f->addr);
	if (n)
		return n;
	f->bound_ch = rdma_lib.p_rdma_create_event_channel();
	if (!f->bound_ch)
		return hawk_fail(-errno, "net: /dev/infiniband/rdma_cm");
	if (rdma_lib.p_rdma_create_id(f->bound_ch, &f->bound, NULL, RDMA_PS_TCP))
		return hawk_fail(-errno, "net: a connection manager's id");
	if (rdma_lib.p_rdma_bind_addr(f->bound, (struct sockaddr *)&f->addr) || !f->bound->verbs)
		return hawk_fail(-ENODEV, "net: no RDMA device has the address %s", where);
	f->ctx = f->bound->verbs;
	return 0;
}

static void fab_rdma_close(struct fab *f)
{
	fab_rdma_unlisten(f);
	if (f->pd)
		rdma_lib.p_ibv_dealloc_pd(f->pd);
	if (f->bound)
		rdma_lib.p_rdma_destroy_id(f->bound);
	if (f->bound_ch)
		rdma_lib.p_rdma_destroy_event_channel(f->bound_ch);
	if (f->list)
		rdma_lib.p_rdma_free_devices(f->list);
	free(f);
}

static uint8_t port_of(const struct fab *f)
{
	return f->bound && f->bound->port_num ? f->bound->port_num : 1;
}

static bool has_windows(struct fab *f)
{
	struct ibv_mw *mw;

	if (!(f->attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					  IBV_DEVICE_MEM_WINDOW_TYPE_2B)))
		return false;
	mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
	if (mw)
		ibv_dealloc_mw(mw);
	return mw;
}

static int look_at(struct fab *f)
{
	struct ibv_port_attr port = { 0 };

	f->pd = rdma_lib.p_ibv_alloc_pd(f->ctx);
	if (!f->pd)
		return hawk_fail(-errno, "net: a protection domain");
	if (rdma_lib.p_ibv_query_device(f->ctx, &f->attr) ||
	    rdma_lib.p_ibv_query_port(f->ctx, port_of(f), (struct _compat_ibv_port_attr *)&port))
		return hawk_fail(-EIO, "net: the device does not tell what it can do");
	f->mtu = 128u << port.active_mtu;
	f->request = port.max_msg_sz && port.max_msg_sz < REQUEST_MAX ? port.max_msg_sz :
		     REQUEST_MAX;
	f->windows = has_windows(f);
	return 0;
}

static int fab_rdma_open(const char *where, unsigned int depth, struct fab **fp)
{
	struct fab *f;
	int ret = rdma_lib_load();

	if (ret)
		return ret;
	f = calloc(1, sizeof(*f));
	if (!f)
		return hawk_fail(-ENOMEM, "net: a device");
	f->depth = depth;
	ret = find_device(f, where);
	if (!ret)
		ret = look_at(f);
	if (ret) {
		fab_rdma_close(f);
		return ret;
	}
	*fp = f;
	return 0;
}

static void fab_rdma_info(const struct fab *f, struct hawk_net_info *info)
{
	struct rlimit lim = { 0 };

	*info = (struct hawk_net_info){
		.mtu = f->mtu, .entries = (uint32_t)f->attr.max_sge, .request_bytes = f->request,
		.flags = (f->windows ? HAWK_NET_WINDOWS : 0) | (f->dmabuf > 0 ? HAWK_NET_DMABUF : 0),
	};
	snprintf(info->device, sizeof(info->device), "%s",
		 rdma_lib.p_ibv_get_device_name(f->ctx->device));
	getrlimit(RLIMIT_MEMLOCK, &lim);
	if (geteuid() && lim.rlim_cur != RLIM_INFINITY && lim.rlim_cur < 1ull << 30)
		snprintf(info->warning, sizeof(info->warning), "only %llu KiB may be locked: raise it (ulimit -l unlimited)",
			 (unsigned long long)lim.rlim_cur >> 10);
	else if (f->mtu < 4096)
		snprintf(info->warning, sizeof(info->warning), "packets of %u bytes: set the MTU of the network device to 9000 (ip link set DEV mtu 9000), then they are 4096",
			 f->mtu);
}

/* ---- memory ---- */

static struct ibv_mr *reg_dmabuf(struct fab *f, const struct hawk_mem_params *p, uint64_t iova,
				 int access)
{
	struct ibv_mr *mr = rdma_lib.p_ibv_reg_dmabuf_mr(f->pd, p->dmabuf_off, p->bytes, iova,
							 p->dmabuf, access);

	if (mr)
		f->dmabuf = 1;
	else if (errno == EOPNOTSUPP || errno == EPROTONOSUPPORT || errno == ENOSYS)
		f->dmabuf = -1;
	return mr;
}

/* Pages behind a mapping; a peer-memory client of the RDMA stack may know a device's. */
static struct ibv_mr *reg_mapping(struct fab *f, const struct hawk_mem_params *p, int access)
{
	return rdma_lib.p_ibv_reg_mr(f->pd, p->addr, p->bytes, access);
}

static int no_way(const struct fab_reg *reg, int err)
{
	/* the kernel says EEXIST of what is mapped without pages, as a PCI BAR is */
	const char *why = !reg->p.addr ? "there is none" : err == EEXIST ? "it has no pages" :
			  strerror(err);

	if (err == ENOMEM)
		return hawk_fail(-ENOMEM, "memory: %llu bytes cannot be locked: raise the limit (ulimit -l), or the NIC has no room for more",
				 (unsigned long long)reg->p.bytes);
	return hawk_fail(-EOPNOTSUPP, "memory: %s%sthe mapping: %s%s", reg->why,
			 reg->why[0] ? "; " : "", why,
			 reg->p.flags & HAWK_MEM_DEVICE ?
			 " (memory of a device needs a dma-buf or a peer-memory client, such as nvidia-peermem)" : "");
}

/* As many bytes of @reg as @p says; sets how and why. */
static struct ibv_mr *reg_best(struct fab *f, struct fab_reg *reg,
			       const struct hawk_mem_params *p, int access)
{
	uint64_t iova = p->addr ? (uintptr_t)p->addr : p->dmabuf_off;
	struct ibv_mr *mr;

	if (p->dmabuf >= 0) {
		mr = reg_dmabuf(f, p, iova, access);
		if (mr) {
			reg->how = HAWK_MEM_DMABUF;
			return mr;
		}
		snprintf(reg->why, sizeof(reg->why), "the driver of %s does not take this dma-buf: %s",
			 rdma_lib.p_ibv_get_device_name(f->ctx->device), strerror(errno));
	} else if (!(p->flags & HAWK_MEM_DEVICE)) {
		snprintf(reg->why, sizeof(reg->why), "no dma-buf was given");
	}
	errno = EINVAL;
	reg->how = p->flags & HAWK_MEM_DEVICE ? HAWK_MEM_CLIENT : HAWK_MEM_PAGES;
	return p->addr ? reg_mapping(f, p, access) : NULL;
}

static int fab_rdma_reg(struct fab *f, struct fab_reg *reg)
{
	struct ibv_mr *mr;
	int fd = reg->p.dmabuf;

	mr = reg_best(f, reg, &reg->p, IBV_ACCESS_LOCAL_WRITE | (f->windows ? IBV_ACCESS_MW_BIND : 0));
	if (!mr)
		return no_way(reg, errno);
	/* grants without windows register parts of it again */
	reg->p.dmabuf = fd >= 0 && !f->windows ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	reg->base = reg->p.addr ? (uintptr_t)reg->p.addr : reg->p.dmabuf_off;
	reg->lkey = mr->lkey;
	reg->priv = mr;
	return 0;
}

static void fab_rdma_dereg(struct fab *f, struct fab_reg *reg)
{
	(void)f;
	rdma_lib.p_ibv_dereg_mr(reg->priv);
	if (reg->p.dmabuf >= 0)
		close(reg->p.dmabuf);
}

/* ---- requests ---- */

_Static_assert(sizeof(struct fab_sge) == sizeof(struct ibv_sge) &&
	       offsetof(struct fab_sge, len) == offsetof(struct ibv_sge, length) &&
	       offsetof(struct fab_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "pieces are passed on as they are");

static int fab_rdma_post(struct fab_conn *c, const struct fab_wr *wr)
{
	struct ibv_send_wr *bad, w = {
		.wr_id = wr->id, .num_sge = (int)wr->nsge, .sg_list = (struct ibv_sge *)wr->sge,
		.send_flags = wr->signaled ? IBV_SEND_SIGNALED : 0,
		.opcode = wr->op == FAB_SEND ? IBV_WR_SEND :
			  wr->op == FAB_READ ? IBV_WR_RDMA_READ :
			  wr->has_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.imm_data = htonl(wr->imm),
		.wr.rdma = { .remote_addr = wr->far, .rkey = wr->rkey },
	};

	return -ibv_post_send(c->id->qp, &w, &bad);
}

int fab_rdma_post_recv(struct fab_conn *c, unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = c->reg->base + slot * FAB_MSG, .length = FAB_MSG, .lkey = c->reg->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	return -ibv_post_recv(c->id->qp, &wr, &bad);
}

static int status_of(enum ibv_wc_status s)
{
	switch (s) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_REM_ACCESS_ERR:
		return -EACCES;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return -EPIPE;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	default:
		return -EIO;
	}
}

static int fab_rdma_poll(struct fab_conn *c, struct fab_wc *wc, int n)
{
	struct ibv_wc w[16];
	int i, got;

	if (c->hung)
		return -EPIPE;
	got = ibv_poll_cq(c->cq, n < 16 ? n : 16, w);
	if (got < 0)
		return -EIO;
	for (i = 0; i < got; i++)
		wc[i] = (struct fab_wc){
			.id = w[i].wr_id, .status = status_of(w[i].status),
			.recv = !w[i].status && w[i].opcode & IBV_WC_RECV,
			.has_imm = !w[i].status && w[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM,
			.imm = ntohl(w[i].imm_data), .len = w[i].byte_len, .detail = w[i].status,
		};
	return got || !c->gone ? got : -EPIPE;
}

/* ---- grants ---- */

static int access_of(uint32_t flags)
{
	return (flags & HAWK_GRANT_READ ? IBV_ACCESS_REMOTE_READ : 0) |
	       (flags & HAWK_GRANT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* A registration of the bytes alone. */
static int grant_mr(struct fab *f, struct fab_reg *reg, uint32_t flags, struct fab_window *w)
{
	struct hawk_mem_params p = reg->p;
	struct fab_reg part = { .base = 0 };
	struct ibv_mr *mr;

	p.bytes = w->bytes;
	p.dmabuf_off += w->addr - reg->base;
	if (p.addr)
		p.addr = (uint8_t *)p.addr + (w->addr - reg->base);
	mr = reg_best(f, &part, &p, IBV_ACCESS_LOCAL_WRITE | access_of(flags));
	if (!mr)
		return hawk_fail(-errno, "grant: its bytes cannot be registered");
	w->rkey = mr->rkey;
	w->priv = mr;
	return 1;
}

static int fab_rdma_grant(struct fab_conn *c, struct fab_reg *reg, uint32_t flags,
			  struct fab_window *w, uint64_t id)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_mw *mw;
	int ret;

	if (!c->f->windows)
		return grant_mr(c->f, reg, flags, w);
	mw = ibv_alloc_mw(c->f->pd, IBV_MW_TYPE_2);
	if (!mw)
		return hawk_fail(-errno, "grant: a memory window");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = reg->priv, .addr = w->addr, .length = w->bytes,
		.mw_access_flags = (unsigned int)access_of(flags),
	};
	ret = ibv_post_send(c->id->qp, &wr, &bad);
	if (ret) {
		ibv_dealloc_mw(mw);
		return hawk_fail(-ret, "grant: binding a memory window");
	}
	w->rkey = wr.bind_mw.rkey;
	w->priv = mw;
	return 0;
}

static int fab_rdma_revoke(struct fab_conn *c, struct fab_window *w, uint64_t id)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = w->rkey,
	};
	int ret;

	if (!c->f->windows) {
		rdma_lib.p_ibv_dereg_mr(w->priv);
		w->priv = NULL;
		return 1;
	}
	ret = ibv_post_send(c->id->qp, &wr, &bad);
	return ret ? hawk_fail(-ret, "grant: invalidating a memory window") : 0;
}

static void fab_rdma_forget(struct fab_conn *c, struct fab_window *w)
{
	if (w->priv && c->f->windows)
		ibv_dealloc_mw(w->priv);
	else if (w->priv)
		rdma_lib.p_ibv_dereg_mr(w->priv);
	w->priv = NULL;
}

const struct fab_ops hawk_fab_rdma = {
	.name = "rdma",
	.open = fab_rdma_open, .close = fab_rdma_close, .info = fab_rdma_info,
	.reg = fab_rdma_reg, .dereg = fab_rdma_dereg,
	.listen = fab_rdma_listen, .accept = fab_rdma_accept, .connect = fab_rdma_connect,
	.hangup = fab_rdma_hangup, .free = fab_rdma_free,
	.post = fab_rdma_post, .post_recv = fab_rdma_post_recv, .poll = fab_rdma_poll,
	.wait = fab_rdma_wait,
	.grant = fab_rdma_grant, .revoke = fab_rdma_revoke, .forget = fab_rdma_forget,
};

#endif /* HAWK_HAVE_VERBS */
