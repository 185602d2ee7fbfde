/* SPDX-License-Identifier: MIT */
/*
 * peer.h - what the files of the transport share
 *
 * peer_net.c	endpoints and registered memory
 * peer_msg.c	messages: sealed, opened, checked
 * peer_hello.c	connecting: versions, proof of the key
 * peer_conn.c	the send queue, credits, what completes, the end
 * peer_grant.c	grants given and received
 * peer_move.c	put and get
 * peer_session.h	KV of a sequence, chunk after chunk
 *
 * Life of a connection:
 *
 *	server			client
 *	CHALLENGE nonce, versions ->
 *		<- HELLO nonce, version		sealed: the client has the key
 *	WELCOME ->				sealed: the server has it too
 *	or REFUSE ->				and the connection ends
 *	any other message, both ways, sealed
 *
 * A message is sealed with an HMAC-SHA256 of the connection's key, which is one of the
 * shared key and both nonces; who sent it and its number are covered, so that none can be
 * repeated or sent back.  Both sides have the byte order of the magic number.
 *
 * Credits: a message or an imm takes one of FAB_SLOTS slots that the other side has posted.
 * Each message tells how many have been posted again; a side that owes half of them and has
 * nothing to say sends CREDIT, for which the last credit is kept.  A note that nobody has
 * heard keeps its slot, so a side that does not listen stops the other one, not its memory.
 *
 * All states end in "broken": the connection is hung up, calls return the cause.
 */
#ifndef HAWK_PEER_PRIV_H
#define HAWK_PEER_PRIV_H

#include <pthread.h>

#include "fabric.h"

#define PEER_MAGIC	0x6b776870u
#define PEER_VERSION	1u		/* the highest we speak; the lowest is 1 */
#define PEER_NONCE	32u
#define PEER_TAG	16u		/* bytes of a message's code */
#define PEER_SIGNAL	8u		/* one in so many requests has a completion */
#define PEER_HELLO_MS	5000		/* for the hello of who connects */

enum peer_msg_type {
	MSG_CHALLENGE = 1, MSG_HELLO, MSG_WELCOME, MSG_REFUSE, MSG_CREDIT, MSG_GRANT, MSG_REVOKE,
	MSG_NOTE, MSG_BYE,
	MSG_OFFER, MSG_ACCEPT, MSG_BEGIN, MSG_READY, MSG_UNIT, MSG_ACK,	/* peer_session.h */
	MSG_TYPES
};

/**
 * struct peer_head - start of each message
 * @magic: PEER_MAGIC
 * @version: of the protocol; in CHALLENGE and REFUSE any
 * @type: enum peer_msg_type
 * @len: bytes behind the head
 * @credits: slots posted again since the last message
 * @reserved: 0
 * @seq: number of the message, from 0
 * @tag: code, 0 in CHALLENGE and REFUSE
 */
struct peer_head {
	uint32_t magic;
	uint8_t version;
	uint8_t type;
	uint16_t len;
	uint32_t credits;
	uint32_t reserved;
	uint64_t seq;
	uint8_t tag[PEER_TAG];
};

#define PEER_BODY	(FAB_MSG - sizeof(struct peer_head))

struct peer_challenge {
	uint8_t nonce[PEER_NONCE];
	uint32_t version_min;
	uint32_t version_max;
};

struct peer_hello {
	uint8_t nonce[PEER_NONCE];
	uint32_t version;
	uint32_t reserved;
};

struct peer_refuse {
	int32_t status;
	uint32_t reserved;
};

struct peer_grant_msg {
	uint64_t addr;
	uint64_t bytes;
	uint64_t tag;
	uint32_t id;
	uint32_t rkey;
	uint32_t flags;
	uint32_t reserved;
};

struct peer_revoke_msg {
	uint32_t id;
	uint32_t reserved;
};

struct hawk_net {
	const struct fab_ops *ops;
	struct fab *fab;
	uint32_t depth;
	uint32_t key_bytes;
	uint8_t key[HAWK_NET_KEY_MAX];
	struct hawk_net_info info;
};

struct hawk_mem {
	struct hawk_net *net;
	struct fab_reg reg;
};

/**
 * struct grant_out - a grant of ours
 * @id: its number, 0: this entry is free
 * @w: what the NIC knows of it
 */
struct grant_out {
	uint32_t id;
	struct fab_window w;
};

/**
 * struct grant_in - a grant of the other side's
 * @g: what the user sees; id 0: this entry is free
 * @addr: address that requests use
 * @rkey: and the key
 * @revoked: it is over
 */
struct grant_in {
	struct hawk_grant g;
	uint64_t addr;
	uint32_t rkey;
	bool revoked;
};

/**
 * struct peer_box - a message of a session that nobody has read
 * @type: enum peer_msg_type, 0: none
 * @body: its body
 */
struct peer_box {
	unsigned int type;
	_Alignas(8) uint8_t body[PEER_BODY];
};

/**
 * struct hawk_peer - a connection
 * @lock: guards everything here; held through each public call
 * @net: the endpoint
 * @c: the fabric's connection
 * @server: we accepted
 * @ready: the key has been proved both ways
 * @session: the connection's key
 * @seq_out: number of the next message to send
 * @seq_in: and to receive
 * @mem: FAB_SLOTS slots to receive into, then FAB_SLOTS to send from
 * @ring: their registration
 * @posted: requests posted so far
 * @retired: of them, complete; they complete in order
 * @tail: the last one has a completion
 * @heard_ns: when something has completed last, or the other side was asked whether it is there
 * @slot_of: by request % depth: the slot that it sends, or FAB_SLOTS
 * @free_slots: slots to send from that are free
 * @nfree: how many
 * @credits: messages that the other side has room for
 * @owed: slots posted again that it does not know of yet
 * @notes: slots with notes that nobody has heard, the oldest first
 * @nnotes: how many
 * @out: grants of ours
 * @in: grants of the other side's
 * @next_id: number of the next grant of ours
 * @box: what the other side says while a session is agreed on
 * @tx: what we are sending
 * @rx: what we are receiving
 * @st: counters; st.broken and st.why tell how it ended
 */
struct hawk_peer {
	pthread_mutex_t lock;
	struct hawk_net *net;
	struct fab_conn *c;
	bool server;
	bool ready;
	uint8_t session[32];
	uint64_t seq_out;
	uint64_t seq_in;
	uint8_t *mem;
	struct fab_reg ring;
	uint64_t posted;
	uint64_t retired;
	bool tail;
	uint64_t heard_ns;
	uint8_t *slot_of;
	uint8_t free_slots[FAB_SLOTS];
	unsigned int nfree;
	uint32_t credits;
	uint32_t owed;
	uint8_t notes[FAB_SLOTS];
	unsigned int nnotes;
	struct grant_out out[HAWK_GRANTS_MAX];
	struct grant_in in[HAWK_GRANTS_MAX];
	uint32_t next_id;
	struct peer_box box;
	struct hawk_send *tx;
	struct hawk_recv *rx;
	struct hawk_peer_stats st;
};

/* peer_net.c */
uint64_t hawk_peer_deadline(int timeout_ms);

/* peer_msg.c */
void peer_session_key(struct hawk_peer *p, const struct peer_challenge *ch,
		      const struct peer_hello *h);
void peer_msg_seal(struct hawk_peer *p, struct peer_head *h, const void *body);
int peer_msg_open(struct hawk_peer *p, const struct peer_head *h, uint32_t len);

/* peer_conn.c */
int peer_new(struct hawk_net *net, bool server, struct hawk_peer **peer);
void peer_free(struct hawk_peer *p);
int peer_break(struct hawk_peer *p, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int peer_dead(struct hawk_peer *p);
int peer_progress(struct hawk_peer *p);
int peer_wait(struct hawk_peer *p, uint64_t deadline);
int peer_post(struct hawk_peer *p, struct fab_wr *wr, unsigned int slot, uint64_t deadline);
int peer_drain(struct hawk_peer *p, uint64_t upto, uint64_t deadline);
int peer_send(struct hawk_peer *p, enum peer_msg_type type, const void *body, uint32_t len,
	      uint64_t deadline);
int peer_credit(struct hawk_peer *p, uint64_t deadline);
int peer_slot_again(struct hawk_peer *p, unsigned int slot);

/* peer_grant.c */
int peer_grant(struct hawk_peer *p, struct hawk_mem *mem, uint64_t off, struct hawk_grant *g,
	       uint64_t deadline);
int peer_revoke(struct hawk_peer *p, uint32_t id, uint64_t deadline);
int peer_grant_message(struct hawk_peer *p, const struct peer_head *h);
struct grant_in *peer_grant_find(struct hawk_peer *p, uint32_t id);
void peer_grants_forget(struct hawk_peer *p);

#endif /* HAWK_PEER_PRIV_H */
