// SPDX-License-Identifier: MIT
/*
 * fabric_cm.c - connections by librdmacm: reliable queue pairs
 *
 *	connect: ADDR_RESOLVED, ROUTE_RESOLVED, ESTABLISHED
 *	accept: CONNECT_REQUEST, ESTABLISHED
 *
 * Each connection has an event channel of its own, so that a call waits for its own events
 * only.  Hanging up destroys the queue pair: after that the NIC has nothing to do with the
 * memory of its requests.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric_verbs.h"

#ifdef HAWK_HAVE_VERBS

#define STEP_MS		2000	/* for resolving an address or a route */
#define READY_MS	15000	/* for who connects to say that he is ready: lost, it comes after 4.3 s */
#define ACK_TIMEOUT	16	/* 4.096 us * 2^16: 268 ms until a packet is sent again */
#define RETRIES		6	/* so often: 1.9 s.  Soft RoCE takes 7 for no limit */
#define RNR_RETRIES	7
#define NO_SUCH_SERVICE	8	/* why a request is rejected: nobody listens */

static int ms_left(uint64_t deadline)
{
	uint64_t now = hawk_mono_ns();

	if (deadline == UINT64_MAX)
		return -1;
	return now >= deadline ? 0 : (int)((deadline - now + 999999u) / 1000000u);
}

/* "ADDRESS", "ADDRESS:PORT", ":PORT", "[ADDRESS]:PORT" */
int fab_rdma_address(const char *where, struct sockaddr_storage *addr)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM }, *ai;
	char host[128], *port;
	size_t len = strlen(where);

	snprintf(host, sizeof(host), "%s", where);
	port = strrchr(host, ':');
	if (port && strchr(host, ':') != port && !strchr(host, ']'))
		port = NULL;	/* an IPv6 address alone */
	if (port)
		*port++ = 0;
	if (host[0] == '[' && strchr(host, ']')) {
		*strchr(host, ']') = 0;
		memmove(host, host + 1, strlen(host));
	}
	if (len >= sizeof(host) || getaddrinfo(host[0] ? host : NULL, port, &hints, &ai))
		return hawk_fail(-EINVAL, "net: \"%s\" is no address and port", where);
	memcpy(addr, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return 0;
}

/* The next event of a channel; -ETIME. */
static int next_event(struct rdma_event_channel *ch, uint64_t deadline, struct rdma_cm_event **ev)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	int n;

	do
		n = poll(&pfd, 1, ms_left(deadline));
	while (n < 0 && errno == EINTR);
	if (!n)
		return -ETIME;
	if (n < 0 || rdma_lib.p_rdma_get_cm_event(ch, ev))
		return -errno;
	return 0;
}

/* What an event that was not wanted means. */
static int error_of(const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_REJECTED:
		return ev->status == NO_SUCH_SERVICE ? -EAGAIN : -ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return -EAGAIN;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_DISCONNECTED:
		return -EPIPE;
	default:
		return -EPROTO;
	}
}

/* Waits for the event @want. */
static int expect(struct fab_conn *c, enum rdma_cm_event_type want, uint64_t deadline)
{
	struct rdma_cm_event *ev;
	int ret = next_event(c->ch, deadline, &ev);

	if (ret)
		return hawk_fail(ret, "peer: connecting: no %s", rdma_lib.p_rdma_event_str(want));
	ret = ev->event == want ? 0 : error_of(ev);
	if (ret)
		hawk_fail(ret, "peer: connecting: %s, status %d", rdma_lib.p_rdma_event_str(ev->event),
			  ev->status);
	rdma_lib.p_rdma_ack_cm_event(ev);
	return ret;
}

static int make_qp(struct fab_conn *c)
{
	struct fab *f = c->f;
	uint32_t sge = (uint32_t)f->attr.max_sge < FAB_SGE_MAX ? (uint32_t)f->attr.max_sge :
		       FAB_SGE_MAX;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = f->depth, .max_recv_wr = FAB_SLOTS, .max_send_sge = sge,
			 .max_recv_sge = 1 },
	};
	unsigned int i;
	int ret = 0;

	if (c->id->verbs != f->ctx)
		return hawk_fail(-EHOSTUNREACH, "peer: the way to it is through another NIC, %s",
				 c->id->verbs ? rdma_lib.p_ibv_get_device_name(c->id->verbs->device) :
				 "none");
	c->cc = rdma_lib.p_ibv_create_comp_channel(f->ctx);
	if (c->cc)
		c->cq = rdma_lib.p_ibv_create_cq(f->ctx, (int)(f->depth + FAB_SLOTS), NULL, c->cc, 0);
	attr.send_cq = c->cq;
	attr.recv_cq = c->cq;
	if (!c->cq || rdma_lib.p_rdma_create_qp(c->id, f->pd, &attr))
		return hawk_fail(-errno, "peer: a queue pair of %u requests of %u pieces",
				 f->depth, sge);
	for (i = 0; i < FAB_SLOTS && !ret; i++)
		ret = fab_rdma_post_recv(c, i);
	return ret ? hawk_fail(ret, "peer: posting slots for messages") : 0;
}

static struct fab_conn *conn_new(struct fab *f, const struct fab_ring *ring)
{
	struct fab_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->f = f;
	c->reg = ring->reg;
	c->ch = rdma_lib.p_rdma_create_event_channel();
	if (!c->ch) {
		free(c);
		return NULL;
	}
	return c;
}

void fab_rdma_free(struct fab_conn *c)
{
	if (c->cq)
		rdma_lib.p_ibv_destroy_cq(c->cq);
	if (c->cc)
		rdma_lib.p_ibv_destroy_comp_channel(c->cc);
	if (c->id)
		rdma_lib.p_rdma_destroy_id(c->id);
	rdma_lib.p_rdma_destroy_event_channel(c->ch);
	free(c);
}

void fab_rdma_hangup(struct fab_conn *c)
{
	if (c->hung)
		return;
	c->hung = true;
	if (!c->id)
		return;
	rdma_lib.p_rdma_disconnect(c->id);
	if (c->id->qp)
		rdma_lib.p_rdma_destroy_qp(c->id);
}

static void conn_params(const struct fab *f, struct rdma_conn_param *cp)
{
	*cp = (struct rdma_conn_param){
		.responder_resources = 16, .initiator_depth = 16,
		.retry_count = RETRIES, .rnr_retry_count = RNR_RETRIES,
	};
	if (f->attr.max_qp_rd_atom < cp->responder_resources)
		cp->responder_resources = (uint8_t)f->attr.max_qp_rd_atom;
	if (f->attr.max_qp_init_rd_atom < cp->initiator_depth)
		cp->initiator_depth = (uint8_t)f->attr.max_qp_init_rd_atom;
}

static int connect_steps(struct fab_conn *c, struct sockaddr_storage *to, uint64_t deadline)
{
	struct sockaddr *from = c->f->addr.ss_family ? (struct sockaddr *)&c->f->addr : NULL;
	struct rdma_conn_param cp;
	uint8_t timeout = ACK_TIMEOUT;
	int ret;

	if (rdma_lib.p_rdma_create_id(c->ch, &c->id, NULL, RDMA_PS_TCP) ||
	    rdma_lib.p_rdma_resolve_addr(c->id, from, (struct sockaddr *)to, STEP_MS))
		return hawk_fail(errno == ENODEV ? -EHOSTUNREACH : -errno, "peer: finding the way to it");
	ret = expect(c, RDMA_CM_EVENT_ADDR_RESOLVED, deadline);
	if (ret)
		return ret;
	rdma_lib.p_rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				   sizeof(timeout));
	if (rdma_lib.p_rdma_resolve_route(c->id, STEP_MS))
		return hawk_fail(-errno, "peer: resolving the route");
	ret = expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED, deadline);
	if (!ret)
		ret = make_qp(c);
	if (ret)
		return ret;
	conn_params(c->f, &cp);
	if (rdma_lib.p_rdma_connect(c->id, &cp))
		return hawk_fail(-errno, "peer: connecting");
	return expect(c, RDMA_CM_EVENT_ESTABLISHED, deadline);
}

int fab_rdma_connect(struct fab *f, const char *where, const struct fab_ring *ring,
		     uint64_t deadline, struct fab_conn **cp)
{
	struct sockaddr_storage to;
	struct fab_conn *c;
	int ret = fab_rdma_address(where, &to);

	if (ret)
		return ret;
	c = conn_new(f, ring);
	if (!c)
		return hawk_fail(-ENOMEM, "peer: a connection");
	ret = connect_steps(c, &to, deadline);
	if (ret) {
		fab_rdma_hangup(c);
		fab_rdma_free(c);
		return ret;
	}
	*cp = c;
	return 0;
}

/* ---- accepting ---- */

int fab_rdma_listen(struct fab *f, const char *where)
{
	struct sockaddr_storage addr;
	int ret = fab_rdma_address(where, &addr);

	if (ret)
		return ret;
	if (f->listener)
		return hawk_fail(-EBUSY, "net: it listens already");
	f->listen_ch = rdma_lib.p_rdma_create_event_channel();
	if (!f->listen_ch)
		return hawk_fail(-errno, "net: /dev/infiniband/rdma_cm");
	if (rdma_lib.p_rdma_create_id(f->listen_ch, &f->listener, NULL, RDMA_PS_TCP) ||
	    rdma_lib.p_rdma_bind_addr(f->listener, (struct sockaddr *)&addr) ||
	    rdma_lib.p_rdma_listen(f->listener, 64)) {
		ret = -errno;
		fab_rdma_unlisten(f);
		return hawk_fail(ret, "net: listening at %s", where);
	}
	return 0;
}

void fab_rdma_unlisten(struct fab *f)
{
	if (f->listener)
		rdma_lib.p_rdma_destroy_id(f->listener);
	if (f->listen_ch)
		rdma_lib.p_rdma_destroy_event_channel(f->listen_ch);
	f->listener = NULL;
	f->listen_ch = NULL;
}

/* The next id that wants to connect. */
static int next_request(struct fab *f, uint64_t deadline, struct rdma_cm_id **id)
{
	struct rdma_cm_event *ev;
	bool request;
	int ret;

	if (!f->listener)
		return hawk_fail(-EINVAL, "net: it does not listen");
	do {
		ret = next_event(f->listen_ch, deadline, &ev);
		if (ret)
			return hawk_fail(ret, "peer: nobody has connected");
		request = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		*id = ev->id;
		rdma_lib.p_rdma_ack_cm_event(ev);
	} while (!request);
	return 0;
}

/* The kernel takes the id of a peer that has left again for no valid one. */
static int error_of_accept(void)
{
	return errno == EINVAL ? -EPIPE : -errno;
}

int fab_rdma_accept(struct fab *f, const struct fab_ring *ring, uint64_t deadline,
		    struct fab_conn **cp)
{
	uint64_t soon = hawk_mono_ns() + READY_MS * 1000000ull;
	struct rdma_conn_param param;
	struct rdma_cm_id *id = NULL;
	struct fab_conn *c;
	int ret = next_request(f, deadline, &id);

	if (ret)
		return ret;
	c = conn_new(f, ring);
	if (!c) {
		rdma_lib.p_rdma_reject(id, NULL, 0);
		rdma_lib.p_rdma_destroy_id(id);
		return hawk_fail(-ENOMEM, "peer: a connection");
	}
	c->id = id;
	ret = rdma_lib.p_rdma_migrate_id(id, c->ch) ? hawk_fail(error_of_accept(), "peer: its events") :
	      make_qp(c);
	if (ret) {
		rdma_lib.p_rdma_reject(id, NULL, 0);
		goto fail;
	}
	conn_params(f, &param);
	if (rdma_lib.p_rdma_accept(id, &param))
		ret = hawk_fail(error_of_accept(), "peer: accepting");
	else
		ret = expect(c, RDMA_CM_EVENT_ESTABLISHED, soon);
	if (ret) {
		ret = ret == -ETIME || ret == -EAGAIN ? -EPIPE : ret;
		goto fail;
	}
	*cp = c;
	return 0;

fail:
	fab_rdma_hangup(c);
	fab_rdma_free(c);
	return ret;
}

/* ---- waiting ---- */

static void take_event(struct fab_conn *c)
{
	struct rdma_cm_event *ev;

	if (next_event(c->ch, 0, &ev))
		return;
	switch (ev->event) {
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		c->gone = true;
		break;
	default:
		break;
	}
	rdma_lib.p_rdma_ack_cm_event(ev);
}

static void take_completion(struct fab_conn *c)
{
	struct ibv_cq *cq;
	void *ctx;

	if (rdma_lib.p_ibv_get_cq_event(c->cc, &cq, &ctx))
		return;
	rdma_lib.p_ibv_ack_cq_events(cq, 1);
	c->armed = false;
}

/*
 * Asks to be told of the next completion and returns, so that the caller polls once more;
 * sleeps when that has found nothing.
 */
void fab_rdma_wait(struct fab_conn *c, uint64_t deadline)
{
	struct pollfd pfd[2];

	if (!c) {
		poll(NULL, 0, ms_left(deadline));
		return;
	}
	if (!c->armed) {
		c->armed = !ibv_req_notify_cq(c->cq, 0);
		return;
	}
	pfd[0] = (struct pollfd){ .fd = c->cc->fd, .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = c->ch->fd, .events = POLLIN };
	if (poll(pfd, 2, ms_left(deadline)) <= 0)
		return;
	if (pfd[1].revents & POLLIN)
		take_event(c);
	if (pfd[0].revents & POLLIN)
		take_completion(c);
}

#endif /* HAWK_HAVE_VERBS */
