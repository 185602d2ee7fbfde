// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_rdma.c - a NIC registers frames and reads and writes them by itself
 *
 * Any RDMA device will do, soft RoCE in the lab; without one the test skips.  A
 * queue pair is connected to itself, so that frame A is written into frame B.
 */
#define _GNU_SOURCE
#include <string.h>
#include <infiniband/verbs.h>

#include "hawk_fixture.h"

struct rdma {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int gid_index;
};

static bool rdma_open(struct rdma *r)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	memset(r, 0, sizeof(*r));
	if (list && list[0])
		r->ctx = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	if (!r->ctx)
		return false;
	r->pd = ibv_alloc_pd(r->ctx);
	r->cq = ibv_create_cq(r->ctx, 4, NULL, NULL, 0);
	init.send_cq = r->cq;
	init.recv_cq = r->cq;
	r->qp = r->pd && r->cq ? ibv_create_qp(r->pd, &init) : NULL;
	return r->qp;
}

static void rdma_close(struct rdma *r)
{
	ibv_destroy_qp(r->qp);
	ibv_destroy_cq(r->cq);
	ibv_dealloc_pd(r->pd);
	ibv_close_device(r->ctx);
}

/* The last GID of the port: an IPv4 one where the port has an address. */
static int last_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
	static const union ibv_gid none;
	union ibv_gid g;
	int i, last = -1;

	for (i = 0; i < 16 && !ibv_query_gid(ctx, 1, i, &g); i++)
		if (memcmp(&g, &none, sizeof(g))) {
			last = i;
			*gid = g;
		}
	return last;
}

static int connect_to_itself(struct rdma *r)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	union ibv_gid gid;
	int index = last_gid(r->ctx, &gid);

	if (index < 0 || ibv_modify_qp(r->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return -1;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = r->qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = index, .hop_limit = 64 } },
	};
	if (ibv_modify_qp(r->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		return -2;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	return ibv_modify_qp(r->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) ? -3 : 0;
}

/* RDMA write of one block; the status of its completion, or a negative number. */
static int write_block(struct rdma *r, struct ibv_mr *mr, void *from, void *to)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from, .length = BLOCK, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to, .rkey = mr->rkey },
	};
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(r->qp, &wr, &bad))
		return -1;
	do {
		n = ibv_poll_cq(r->cq, 1, &wc);
	} while (!n);
	return n < 0 ? -2 : wc.status;
}

TEST_F(hawk, nic_writes_a_frame)
{
	struct hawk_item last = { .lid = LID(9) };
	struct hawk_item a = { .lid = LID(0) }, b = { .lid = LID(1) };
	struct ibv_mr *mr;
	struct rdma r;

	if (!rdma_open(&r))
		SKIP(return, "no RDMA device");
	ASSERT_EQ(0, connect_to_itself(&r));
	/*
	 * Soft RoCE of 6.1 looks one entry past its own table when a copy ends with
	 * the registration (KASAN: rxe_mr_copy), so the last frame is left alone.
	 */
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &last));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &a));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &b));
	/* what the space owns: its first chunk */
	mr = ibv_reg_mr(r.pd, self->win, 2 * MIB, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	ASSERT_NE(NULL, mr) TH_LOG("%s", strerror(errno));
	fill(frame_at(self->win, a.vt, BLOCK), BLOCK, 42);
	EXPECT_EQ(IBV_WC_SUCCESS, write_block(&r, mr, frame_at(self->win, a.vt, BLOCK),
					      frame_at(self->win, b.vt, BLOCK)));
	EXPECT_TRUE(filled(frame_at(self->win, b.vt, BLOCK), BLOCK, 42));
	ibv_dereg_mr(mr);
	rdma_close(&r);
}

/* The space ends while a NIC holds its pages: they wait, and are zeroed after. */
TEST_F(hawk, registered_pages_are_quarantined)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = self->host };
	struct ibv_mr *mr;
	struct rdma r;

	if (!rdma_open(&r))
		SKIP(return, "no RDMA device");
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_ALLOC, LID(0)));
	mr = ibv_reg_mr(r.pd, self->win, 2 * MIB, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr) TH_LOG("%s", strerror(errno));
	munmap(self->win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host));
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &info));
	EXPECT_EQ(2 * MIB, info.quarantine_bytes);
	EXPECT_EQ(HOST_BYTES - 2 * MIB, info.free_bytes);
	ibv_dereg_mr(mr);
	rdma_close(&r);
	self->fd = dev_open(O_RDWR);
	/* teardown: the tier can be removed now */
}

TEST_HARNESS_MAIN
