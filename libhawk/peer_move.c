// SPDX-License-Identifier: MIT
/*
 * peer_move.c - put and get: lists of bytes become requests; what requests cost
 *
 * Bytes that follow each other on the other side go into one request, which gathers (or
 * scatters) as many pieces here as the NIC can.
 */
#include <errno.h>

#include "peer.h"

/**
 * struct moving - a request that is being put together
 * @p: the connection
 * @deadline: when to give up
 * @bytes: so far
 * @sge: the pieces here
 * @wr: the request
 */
struct moving {
	struct hawk_peer *p;
	uint64_t deadline;
	uint64_t bytes;
	struct fab_sge sge[FAB_SGE_MAX];
	struct fab_wr wr;
};

static int check(struct hawk_peer *p, const struct hawk_xfer *x, uint32_t right)
{
	struct grant_in *in = x->grant ? peer_grant_find(p, x->grant) : NULL;

	if (x->reserved || !x->bytes || x->mem->net != p->net)
		return hawk_fail(-EINVAL, "transfer: %llu bytes, reserved %u, or memory of another endpoint",
				 (unsigned long long)x->bytes, x->reserved);
	if (x->mem->reg.how == HAWK_MEM_BOUNCED)
		return hawk_fail(-EOPNOTSUPP, "transfer: no NIC reaches the memory (HAWK_MEM_BOUNCE)");
	if (!in)
		return hawk_fail(-ENOENT, "transfer: the peer has given no grant %u", x->grant);
	if (in->revoked)
		return hawk_fail(-ESTALE, "transfer: the peer has revoked grant %u", x->grant);
	if (!(in->g.flags & right))
		return hawk_fail(-EACCES, "transfer: grant %u is not for that", x->grant);
	if (x->far_off > in->g.bytes || x->bytes > in->g.bytes - x->far_off)
		return hawk_fail(-ERANGE, "transfer: %llu bytes from %llu on, grant %u has %llu",
				 (unsigned long long)x->bytes, (unsigned long long)x->far_off,
				 x->grant, (unsigned long long)in->g.bytes);
	if (x->off > x->mem->reg.p.bytes || x->bytes > x->mem->reg.p.bytes - x->off)
		return hawk_fail(-ERANGE, "transfer: %llu bytes from %llu on, the memory has %llu",
				 (unsigned long long)x->bytes, (unsigned long long)x->off,
				 (unsigned long long)x->mem->reg.p.bytes);
	return 0;
}

static int flush(struct moving *m, bool last)
{
	int ret = 0;

	if (m->wr.nsge) {
		m->wr.signaled = last;
		ret = peer_post(m->p, &m->wr, FAB_SLOTS, m->deadline);
	}
	m->wr.nsge = 0;
	m->bytes = 0;
	return ret;
}

/* Adds bytes that are at @far; posts the request before if it does not fit. */
static int add(struct moving *m, const struct fab_sge *sge, uint64_t far, uint32_t rkey)
{
	int ret;

	if (m->wr.nsge && (m->wr.rkey != rkey || m->wr.far + m->bytes != far ||
			   m->wr.nsge == m->p->net->info.entries ||
			   m->bytes + sge->len > m->p->net->info.request_bytes)) {
		ret = flush(m, false);
		if (ret)
			return ret;
	}
	if (!m->wr.nsge) {
		m->wr.far = far;
		m->wr.rkey = rkey;
	}
	m->sge[m->wr.nsge++] = *sge;
	m->bytes += sge->len;
	return 0;
}

static int add_xfer(struct moving *m, const struct hawk_xfer *x)
{
	struct grant_in *in;
	uint64_t done, max = m->p->net->info.request_bytes, n;
	struct fab_sge sge = { .lkey = x->mem->reg.lkey };
	int ret = 0;

	for (done = 0; done < x->bytes && !ret; done += n) {
		n = x->bytes - done < max ? x->bytes - done : max;
		/* while waiting the connection may have heard that it is revoked */
		in = peer_grant_find(m->p, x->grant);
		if (!in || in->revoked)
			return hawk_fail(-ESTALE, "transfer: the peer has revoked grant %u", x->grant);
		sge.addr = x->mem->reg.base + x->off + done;
		sge.len = (uint32_t)n;
		ret = add(m, &sge, in->addr + x->far_off + done, in->rkey);
	}
	return ret;
}

static int move(struct hawk_peer *p, const struct hawk_xfer *x, unsigned int n, enum fab_op op,
		uint64_t deadline)
{
	struct moving m = {
		.p = p, .deadline = deadline, .wr = { .op = op, .sge = m.sge },
	};
	uint64_t bytes = 0;
	unsigned int i;
	int ret = peer_dead(p), err;

	for (i = 0; i < n && !ret; i++)
		ret = check(p, &x[i], op == FAB_READ ? HAWK_GRANT_READ : HAWK_GRANT_WRITE);
	if (ret || !n)
		return ret;
	for (i = 0; i < n && !ret; i++) {
		ret = add_xfer(&m, &x[i]);
		bytes += x[i].bytes;
	}
	if (ret)
		m.wr.nsge = 0;	/* its grant may be the one that is over */
	err = flush(&m, true);
	if (!err)
		err = peer_drain(p, p->posted - 1, deadline);
	if (ret || err)
		return ret ? ret : err;
	*(op == FAB_READ ? &p->st.got_bytes : &p->st.put_bytes) += bytes;
	return 0;
}

int hawk_peer_put(struct hawk_peer *p, const struct hawk_xfer *x, unsigned int n, int timeout_ms)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = move(p, x, n, FAB_WRITE, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&p->lock);
	return ret;
}

int hawk_peer_get(struct hawk_peer *p, const struct hawk_xfer *x, unsigned int n, int timeout_ms)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = move(p, x, n, FAB_READ, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&p->lock);
	return ret;
}

/* ---- what it costs ---- */

struct probe {
	struct hawk_peer *p;
	const struct hawk_xfer *room;
};

/* One request of @entries pieces, in as many as the NIC takes. */
static int probe_once(struct moving *m, const struct hawk_xfer *room, uint32_t entries,
		      uint32_t bytes)
{
	struct grant_in *in = peer_grant_find(m->p, room->grant);
	struct fab_sge sge = { .lkey = room->mem->reg.lkey };
	uint64_t all = (uint64_t)entries * bytes, piece = entries > 1 ? bytes :
		       m->p->net->info.request_bytes, done;
	int ret = 0;

	if (!in || in->revoked)
		return hawk_fail(-ESTALE, "transfer: the peer has revoked grant %u", room->grant);
	for (done = 0; done < all && !ret; done += sge.len) {
		sge.len = (uint32_t)(all - done < piece ? all - done : piece);
		sge.addr = room->mem->reg.base + room->off + done % room->bytes;
		if (done % room->bytes + sge.len > room->bytes)
			sge.addr = room->mem->reg.base + room->off;
		ret = add(m, &sge, in->addr + room->far_off + (entries > 1 ? done : 0), in->rkey);
		if (!ret && entries == 1)
			ret = flush(m, false);
	}
	return ret ? ret : flush(m, false);
}

static int64_t probe(void *ctx, uint32_t count, uint32_t entries, uint32_t bytes)
{
	struct probe *pr = ctx;
	struct moving m = { .p = pr->p, .deadline = hawk_peer_deadline(60000),
			    .wr = { .op = FAB_WRITE, .sge = m.sge } };
	struct fab_sge last = { .addr = pr->room->mem->reg.base + pr->room->off, .len = 1,
				.lkey = pr->room->mem->reg.lkey };
	uint64_t t = hawk_mono_ns();
	uint32_t i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++)
		ret = probe_once(&m, pr->room, entries, bytes);
	if (!ret) {
		struct grant_in *in = peer_grant_find(pr->p, pr->room->grant);

		ret = in ? add(&m, &last, in->addr + pr->room->far_off, in->rkey) : -ESTALE;
	}
	if (!ret)
		ret = flush(&m, true);
	if (!ret)
		ret = peer_drain(pr->p, pr->p->posted - 1, m.deadline);
	return ret ? ret : (int64_t)(hawk_mono_ns() - t);
}

int hawk_peer_costs(struct hawk_peer *p, const struct hawk_xfer *room, struct hawk_costs *c)
{
	struct probe pr = { .p = p, .room = room };
	const struct hawk_nic_probe np = { .write = probe, .ctx = &pr,
					   .entries = p->net->info.entries };
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = peer_dead(p);
	if (!ret)
		ret = check(p, room, HAWK_GRANT_WRITE);
	if (!ret && room->bytes < p->net->info.request_bytes)
		ret = hawk_fail(-EINVAL, "transfer: %llu bytes to measure with, at least %u",
				(unsigned long long)room->bytes, p->net->info.request_bytes);
	if (!ret)
		ret = hawk_costs_nic(c, &np);
	pthread_mutex_unlock(&p->lock);
	return ret;
}
