// SPDX-License-Identifier: MIT
/*
 * peer_hello.c - connecting and accepting: versions, proof of the key
 *
 * The states and messages are in peer.h.  Who connects proves first, so a server says
 * nothing that depends on the key to somebody who does not have it.  Until the proof nothing
 * but HELLO is read from a client, and he has PEER_HELLO_MS.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "peer.h"

#define RETRY_NS	20000000u	/* nobody listens: try again after */

/* Waits for the first message; out: its head, in the ring. */
static int next_message(struct hawk_peer *p, uint64_t deadline, const struct peer_head **h,
			uint32_t *len)
{
	struct fab_wc wc;
	int n;

	for (;;) {
		n = p->net->ops->poll(p->c, &wc, 1);
		if (n < 0 || (n && wc.status))
			return peer_break(p, -EPIPE, "the peer left while connecting");
		if (n && wc.recv && !wc.has_imm && wc.id < FAB_SLOTS)
			break;
		if (n && wc.recv)
			return peer_break(p, -EPROTO, "the peer begins with a write");
		if (n) {
			for (; p->retired <= wc.id && p->retired < p->posted; p->retired++)
				p->free_slots[p->nfree++] = p->slot_of[p->retired % p->net->depth];
			continue;
		}
		if (hawk_mono_ns() >= deadline)
			return peer_break(p, -ETIME, "the peer has said nothing while connecting");
		p->net->ops->wait(p->c, deadline);
	}
	*h = (const void *)(p->mem + wc.id * FAB_MSG);
	*len = wc.len;
	return 0;
}

/* The message of @type that must come now, copied to @body. */
static int expect(struct hawk_peer *p, enum peer_msg_type type, void *body, uint64_t deadline)
{
	const struct peer_refuse *r;
	const struct peer_head *h;
	uint32_t len;
	int ret = next_message(p, deadline, &h, &len);

	if (ret)
		return ret;
	ret = peer_msg_open(p, h, len);
	if (ret == -EACCES)
		return peer_break(p, ret, "the peer does not have the key");
	if (ret)
		return ret;
	r = (const void *)(h + 1);
	if (h->type == MSG_REFUSE && r->status < 0 && r->status > -4096)
		return peer_break(p, r->status == -EPROTO ? -EPROTO : -EACCES,
				  "the peer has refused the connection (%s)",
				  r->status == -EPROTO ? "no common version" : "another key");
	if (h->type != type)
		return peer_break(p, -EPROTO, "message of type %u, %u was expected", h->type, type);
	memcpy(body, h + 1, h->len);
	ret = p->net->ops->post_recv(p->c, (unsigned int)(((const uint8_t *)h - p->mem) / FAB_MSG));
	p->owed++;
	return ret;
}

static int refuse(struct hawk_peer *p, int status, const char *why)
{
	const struct peer_refuse r = { .status = status };

	if (!peer_send(p, MSG_REFUSE, &r, sizeof(r), hawk_peer_deadline(PEER_HELLO_MS)))
		peer_drain(p, p->posted - 1, hawk_peer_deadline(PEER_HELLO_MS));
	return peer_break(p, status, "%s", why);
}

/* The server's half, on a new connection. */
static int challenge(struct hawk_peer *p)
{
	struct peer_challenge ch = { .version_min = 1, .version_max = PEER_VERSION };
	uint64_t deadline = hawk_peer_deadline(PEER_HELLO_MS);
	const struct peer_head *h;
	struct peer_hello hello;
	uint32_t len;
	int ret;

	randombytes_buf(ch.nonce, sizeof(ch.nonce));
	ret = peer_send(p, MSG_CHALLENGE, &ch, sizeof(ch), deadline);
	if (!ret)
		ret = next_message(p, deadline, &h, &len);
	if (ret)
		return ret;
	if (len != sizeof(*h) + sizeof(hello) || h->type != MSG_HELLO)
		return peer_break(p, -EPROTO, "who connects says something else than HELLO");
	memcpy(&hello, h + 1, sizeof(hello));
	if (hello.version < ch.version_min || hello.version > ch.version_max || hello.reserved)
		return refuse(p, -EPROTO, "who connects wants a version that we do not speak");
	peer_session_key(p, &ch, &hello);
	p->st.version = hello.version;
	ret = peer_msg_open(p, h, len);
	if (ret == -EACCES)
		return refuse(p, ret, "who connects does not have the key");
	if (ret)
		return ret;
	ret = peer_slot_again(p, (unsigned int)(((const uint8_t *)h - p->mem) / FAB_MSG));
	if (!ret)
		ret = peer_send(p, MSG_WELCOME, NULL, 0, deadline);
	p->ready = !ret;
	return ret;
}

/* The client's half. */
static int hello(struct hawk_peer *p, uint64_t deadline)
{
	struct peer_hello h = { .version = PEER_VERSION };
	struct peer_challenge ch;
	uint8_t none[PEER_BODY];
	int ret = expect(p, MSG_CHALLENGE, &ch, deadline);

	if (ret)
		return ret;
	if (ch.version_max < h.version)
		h.version = ch.version_max;
	if (h.version < ch.version_min || !h.version)
		return peer_break(p, -EPROTO, "the peer speaks versions %u to %u, we 1 to %u",
				  ch.version_min, ch.version_max, PEER_VERSION);
	randombytes_buf(h.nonce, sizeof(h.nonce));
	peer_session_key(p, &ch, &h);
	p->st.version = h.version;
	ret = peer_send(p, MSG_HELLO, &h, sizeof(h), deadline);
	if (!ret)
		ret = expect(p, MSG_WELCOME, none, deadline);
	p->ready = !ret;
	return ret;
}

int hawk_peer_accept(struct hawk_net *net, int timeout_ms, struct hawk_peer **peer)
{
	uint64_t deadline = hawk_peer_deadline(timeout_ms);
	struct fab_ring ring;
	struct hawk_peer *p;
	int ret = peer_new(net, true, &p);

	if (ret)
		return ret;
	ring.reg = &p->ring;
	ret = net->ops->accept(net->fab, &ring, deadline, &p->c);
	if (!ret)
		ret = challenge(p);
	if (ret)
		peer_free(p);
	else
		*peer = p;
	return ret;
}

int hawk_peer_connect(struct hawk_net *net, const char *where, int timeout_ms,
		      struct hawk_peer **peer)
{
	uint64_t deadline = hawk_peer_deadline(timeout_ms), again;
	struct fab_ring ring;
	struct hawk_peer *p;
	int ret = peer_new(net, false, &p);

	if (ret)
		return ret;
	ring.reg = &p->ring;
	for (;;) {
		again = hawk_mono_ns() + RETRY_NS;
		ret = net->ops->connect(net->fab, where, &ring, deadline, &p->c);
		if (ret != -EAGAIN)
			break;
		if (again >= deadline) {
			ret = hawk_fail(-ETIME, "peer: nobody listens at %s", where);
			break;
		}
		net->ops->wait(NULL, again);
	}
	if (!ret)
		ret = hello(p, deadline);
	if (ret)
		peer_free(p);
	else
		*peer = p;
	return ret;
}
