// SPDX-License-Identifier: MIT
/*
 * peer_conn.c - a connection's send queue and credits, what completes, how it ends
 *
 * Requests complete in order, so a counter tells which have: a completion retires its
 * request and all before it.  Memory of a request may be used again when it is retired or
 * when the connection has been hung up.
 */
#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer_session.h"

#define POLL	16			/* completions at a time */
#define QUIET_NS	1000000000u	/* nothing heard: is the other side still there? */

int peer_new(struct hawk_net *net, bool server, struct hawk_peer **peer)
{
	struct hawk_peer *p = calloc(1, sizeof(*p));
	unsigned int i;
	int ret;

	if (!p)
		return hawk_fail(-ENOMEM, "peer: a connection");
	p->net = net;
	p->server = server;
	p->next_id = 1;
	p->credits = FAB_SLOTS;
	p->st.version = 1;
	p->heard_ns = hawk_mono_ns();
	for (i = 0; i < FAB_SLOTS; i++)
		p->free_slots[p->nfree++] = (uint8_t)i;
	p->slot_of = malloc(net->depth);
	if (!p->slot_of || posix_memalign((void **)&p->mem, 4096, 2 * FAB_SLOTS * FAB_MSG)) {
		ret = hawk_fail(-ENOMEM, "peer: room for messages");
		goto free_peer;
	}
	memset(p->mem, 0, 2 * FAB_SLOTS * FAB_MSG);
	p->ring.p = (struct hawk_mem_params){
		.addr = p->mem, .bytes = 2 * FAB_SLOTS * FAB_MSG, .dmabuf = -1,
	};
	ret = net->ops->reg(net->fab, &p->ring);
	if (ret)
		goto free_mem;
	pthread_mutex_init(&p->lock, NULL);
	*peer = p;
	return 0;

free_mem:
	free(p->mem);
free_peer:
	free(p->slot_of);
	free(p);
	return ret;
}

/*
 * Windows end first: soft RoCE's hold on to their queue pair, whose end would wait for them
 * (50 s, then the kernel warns).
 */
static void hang_up(struct hawk_peer *p)
{
	peer_grants_forget(p);
	p->net->ops->hangup(p->c);
}

void peer_free(struct hawk_peer *p)
{
	const struct fab_ops *ops = p->net->ops;

	if (p->c) {
		hang_up(p);
		ops->free(p->c);
	}
	ops->dereg(p->net->fab, &p->ring);
	pthread_mutex_destroy(&p->lock);
	free(p->mem);
	free(p->slot_of);
	sodium_memzero(p->session, sizeof(p->session));
	free(p);
}

/* Ends the connection; the first cause is what is told from then on. */
int peer_break(struct hawk_peer *p, int err, const char *fmt, ...)
{
	va_list ap;

	if (p->st.broken)
		return p->st.broken;
	p->st.broken = err;
	va_start(ap, fmt);
	vsnprintf(p->st.why, sizeof(p->st.why), fmt, ap);
	va_end(ap);
	if (p->c)
		hang_up(p);
	return hawk_fail(err, "peer: %s", p->st.why);
}

/* 0, or what the connection has ended with. */
int peer_dead(struct hawk_peer *p)
{
	return p->st.broken ? hawk_fail(p->st.broken, "peer: %s", p->st.why) : 0;
}

static void retire(struct hawk_peer *p, uint64_t upto)
{
	unsigned int slot;

	for (; p->retired <= upto && p->retired < p->posted; p->retired++) {
		slot = p->slot_of[p->retired % p->net->depth];
		if (slot < FAB_SLOTS)
			p->free_slots[p->nfree++] = (uint8_t)slot;
	}
}

static int failed(struct hawk_peer *p, const struct fab_wc *wc)
{
	switch (wc->status) {
	case -EACCES:
		return peer_break(p, -EACCES, "the peer's NIC has refused a request: a key that is not or no longer valid, or an address outside the grant");
	case -EPIPE:
	case -ECANCELED:
		return peer_break(p, -EPIPE, "the peer is gone");
	default:
		return peer_break(p, wc->status, "request %llu has failed, status %u of the NIC",
				  (unsigned long long)wc->id, wc->detail);
	}
}

/* Slot @slot is free for the other side again. */
int peer_slot_again(struct hawk_peer *p, unsigned int slot)
{
	int ret = p->net->ops->post_recv(p->c, slot);

	if (ret)
		return peer_break(p, ret, "a slot for messages cannot be posted");
	p->owed++;
	return 0;
}

static int handle(struct hawk_peer *p, unsigned int slot, uint32_t len)
{
	const struct peer_head *h = (const void *)(p->mem + slot * FAB_MSG);
	int ret = peer_msg_open(p, h, len);

	if (ret && ret != -EACCES)
		return ret;
	if (ret)
		return peer_break(p, -EACCES, "a message that was not made with the connection's key");
	if (h->credits > FAB_SLOTS || p->credits + h->credits > FAB_SLOTS)
		return peer_break(p, -EPROTO, "%u credits on top of %u", h->credits, p->credits);
	p->credits += h->credits;
	p->st.messages_in++;
	switch (h->type) {
	case MSG_GRANT:
	case MSG_REVOKE:
		ret = peer_grant_message(p, h);
		break;
	case MSG_NOTE:
		if (!h->len || h->len > HAWK_NOTE_MAX)
			return peer_break(p, -EPROTO, "a note of %u bytes", h->len);
		p->notes[p->nnotes++] = (uint8_t)slot;
		return 0;
	case MSG_CREDIT:
		break;
	case MSG_OFFER:
	case MSG_ACCEPT:
	case MSG_BEGIN:
	case MSG_READY:
		if (p->box.type)
			return peer_break(p, -EPROTO, "message of type %u on top of %u", h->type,
					  p->box.type);
		p->box.type = h->type;
		memcpy(p->box.body, h + 1, h->len);
		break;
	case MSG_UNIT:
	case MSG_ACK:
		ret = peer_send_message(p, h);
		break;
	case MSG_BYE:
		return peer_break(p, -EPIPE, "the peer has closed the connection");
	default:
		return peer_break(p, -EPROTO, "message of type %u at this point", h->type);
	}
	return ret ? ret : peer_slot_again(p, slot);
}

static int complete(struct hawk_peer *p, const struct fab_wc *wc)
{
	int ret;

	if (wc->status)
		return failed(p, wc);
	if (!wc->recv) {
		retire(p, wc->id);
		return 0;
	}
	if (wc->id >= FAB_SLOTS)
		return peer_break(p, -EIO, "slot %llu is none", (unsigned long long)wc->id);
	if (!p->ready)		/* being refused: what he says has no key that it is checked with */
		return 0;
	if (!wc->has_imm)
		return handle(p, (unsigned int)wc->id, wc->len);
	ret = peer_recv_imm(p, wc->imm);
	return ret ? ret : peer_slot_again(p, (unsigned int)wc->id);
}

/* Tells the other side of slots before it has none left. */
static int pay(struct hawk_peer *p)
{
	if (p->owed < FAB_SLOTS / 2 || !p->credits || !p->nfree ||
	    p->posted - p->retired >= p->net->depth)
		return 0;
	return peer_send(p, MSG_CREDIT, NULL, 0, 0);
}

/* Takes what has completed.  Return: how much; or what the connection has ended with. */
int peer_progress(struct hawk_peer *p)
{
	struct fab_wc wc[POLL];
	int i, n, ret;

	if (p->st.broken)
		return peer_dead(p);
	n = p->net->ops->poll(p->c, wc, POLL);
	if (n < 0)
		return peer_break(p, n, "the peer is gone");
	if (n)
		p->heard_ns = hawk_mono_ns();
	for (i = 0; i < n; i++) {
		ret = complete(p, &wc[i]);
		if (ret)
			return ret;
	}
	ret = p->ready ? pay(p) : 0;
	return ret ? ret : n;
}

/*
 * A message that says nothing: its NIC answers for a side that does not listen, too, as long as
 * it has slots, of which half are left alone.
 */
static int knock(struct hawk_peer *p)
{
	if (p->posted != p->retired || p->credits <= FAB_SLOTS / 2)
		return 0;
	return peer_send(p, MSG_CREDIT, NULL, 0, 0);
}

/*
 * The same, but if there is nothing it sleeps; -ETIME at @deadline.  Who waits in short turns
 * asks after QUIET_NS, too.
 */
int peer_wait(struct hawk_peer *p, uint64_t deadline)
{
	uint64_t now, quiet;
	int n = peer_progress(p);

	if (n)
		return n < 0 ? n : 0;
	now = hawk_mono_ns();
	if (now >= deadline)
		return -ETIME;
	quiet = p->heard_ns + QUIET_NS;
	if (now < quiet)
		p->net->ops->wait(p->c, deadline < quiet ? deadline : quiet);
	now = hawk_mono_ns();
	if (now < quiet)
		return 0;
	p->heard_ns = now;
	return p->ready ? knock(p) : 0;
}

/* Posts a request; @slot is what it sends, or FAB_SLOTS. */
int peer_post(struct hawk_peer *p, struct fab_wr *wr, unsigned int slot, uint64_t deadline)
{
	int ret;

	while (p->posted - p->retired >= p->net->depth) {
		ret = peer_wait(p, deadline);
		if (ret == -ETIME)
			return peer_break(p, ret, "requests are not carried out in time");
		if (ret)
			return ret;
	}
	if (p->st.broken)
		return peer_dead(p);
	wr->id = p->posted;
	if (p->posted % PEER_SIGNAL == PEER_SIGNAL - 1)
		wr->signaled = true;
	ret = p->net->ops->post(p->c, wr);
	if (ret)
		return peer_break(p, ret, "a request cannot be posted");
	p->slot_of[p->posted % p->net->depth] = (uint8_t)slot;
	p->posted++;
	p->tail = wr->signaled;
	p->st.requests++;
	return 0;
}

/* Waits until request @upto and all before it are complete. */
int peer_drain(struct hawk_peer *p, uint64_t upto, uint64_t deadline)
{
	struct fab_wr last = { .op = FAB_WRITE, .signaled = true };
	int ret;

	if (p->retired <= upto && upto == p->posted - 1 && !p->tail) {
		ret = peer_post(p, &last, FAB_SLOTS, deadline);
		if (ret)
			return ret;
	}
	while (p->retired <= upto) {
		ret = peer_wait(p, deadline);
		if (ret == -ETIME)
			return peer_break(p, ret, "requests are not complete in time: the connection is ended, so that the NIC leaves the memory alone");
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Waits for a slot, a credit and room in the queue, so that a message is posted as soon as it
 * has its number; the last credit is for CREDIT.
 */
static int room(struct hawk_peer *p, uint32_t keep, uint64_t deadline)
{
	bool waited = false;
	int ret;

	while (!p->nfree || p->credits <= keep || p->posted - p->retired >= p->net->depth) {
		if (!waited)
			p->st.credit_waits++;
		waited = true;
		ret = peer_wait(p, deadline);
		if (ret == -ETIME)
			return hawk_fail(ret, "peer: it does not take messages: nobody hears its notes?");
		if (ret)
			return ret;
	}
	return 0;
}

/* A write with a number takes a slot over there, too. */
int peer_credit(struct hawk_peer *p, uint64_t deadline)
{
	int ret = peer_dead(p);

	if (!ret)
		ret = room(p, 1, deadline);
	if (!ret)
		p->credits--;
	return ret;
}

int peer_send(struct hawk_peer *p, enum peer_msg_type type, const void *body, uint32_t len,
	      uint64_t deadline)
{
	struct fab_sge sge;
	struct fab_wr wr = { .op = FAB_SEND, .signaled = true, .nsge = 1, .sge = &sge };
	struct peer_head *h;
	unsigned int slot;
	int ret = peer_dead(p);

	if (ret)
		return ret;
	ret = room(p, type != MSG_CREDIT, deadline);
	if (ret)
		return ret;
	slot = p->free_slots[--p->nfree];
	h = (void *)(p->mem + (FAB_SLOTS + slot) * FAB_MSG);
	*h = (struct peer_head){ .type = type, .len = (uint16_t)len, .credits = p->owed };
	if (len)
		memcpy(h + 1, body, len);
	peer_msg_seal(p, h, h + 1);
	sge = (struct fab_sge){
		.addr = p->ring.base + (FAB_SLOTS + slot) * FAB_MSG,
		.len = (uint32_t)sizeof(*h) + len, .lkey = p->ring.lkey,
	};
	p->owed = 0;
	p->credits--;
	p->st.messages_out++;
	return peer_post(p, &wr, slot, deadline);
}

void hawk_peer_close(struct hawk_peer *p)
{
	if (!p)
		return;
	if (!p->st.broken && p->ready && !peer_send(p, MSG_BYE, NULL, 0, hawk_peer_deadline(100)))
		peer_drain(p, p->posted - 1, hawk_peer_deadline(100));
	peer_free(p);
}

void hawk_peer_stats(struct hawk_peer *p, struct hawk_peer_stats *st)
{
	pthread_mutex_lock(&p->lock);
	*st = p->st;
	pthread_mutex_unlock(&p->lock);
}

/* ---- notes ---- */

int hawk_peer_tell(struct hawk_peer *p, const void *note, uint32_t bytes, int timeout_ms)
{
	int ret;

	if (!bytes || bytes > HAWK_NOTE_MAX)
		return hawk_fail(-EINVAL, "peer: a note of %u bytes: 1 to %u", bytes, HAWK_NOTE_MAX);
	pthread_mutex_lock(&p->lock);
	ret = peer_send(p, MSG_NOTE, note, bytes, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static int hear(struct hawk_peer *p, void *note, uint64_t deadline)
{
	const struct peer_head *h;
	unsigned int slot;
	int ret;

	while (!p->nnotes) {
		ret = peer_wait(p, deadline);
		if (ret == -ETIME)
			return hawk_fail(ret, "peer: no note has come");
		if (ret)
			return ret;
	}
	slot = p->notes[0];
	memmove(p->notes, p->notes + 1, --p->nnotes);
	h = (const void *)(p->mem + slot * FAB_MSG);
	ret = h->len;
	memcpy(note, h + 1, h->len);
	if (!p->st.broken)
		peer_slot_again(p, slot);
	return ret;
}

int hawk_peer_hear(struct hawk_peer *p, void *note, int timeout_ms)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = hear(p, note, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&p->lock);
	return ret;
}
