/* SPDX-License-Identifier: MIT */
/*
 * peer.h - KV between hosts: connections, memory that a NIC may use, put and get
 *
 * An endpoint (struct hawk_net) has memory registered once and talks to any number of
 * peers.  A peer sees of that memory the grants that he has been given and nothing else;
 * he writes and reads there by himself, without a CPU of ours.
 *
 *	"rdma:ADDRESS"	the NIC that has this address, by librdmacm and libibverbs, which
 *			are loaded when they are asked for; "rdma:" is the first NIC
 *	"loop:"		peers within one process, for tests and examples
 *
 * Both sides know a key.  Each proves that it does before anything else is said, and the
 * messages after that carry codes made with a key of the connection.  Bytes of KV are
 * neither encrypted nor signed: that is the network's business.
 *
 * A peer is used by one thread at a time (calls wait for each other), different ones by
 * different threads.  There is no thread behind it: what the other side says is heard
 * within calls.  When a call that moves bytes has returned, no NIC touches the memory for it
 * any longer, whatever the call returned.
 */
#ifndef HAWK_PEER_H
#define HAWK_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <hawk/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hawk_net;	/* an endpoint */
struct hawk_mem;	/* memory registered with it */
struct hawk_peer;	/* a connection */

#define HAWK_NET_KEY_MIN	16u		/* bytes of a key */
#define HAWK_NET_KEY_MAX	1024u
#define HAWK_NOTE_MAX		256u		/* bytes of a note */
#define HAWK_GRANTS_MAX		256u		/* grants to a peer at a time */

/**
 * struct hawk_net_params - an endpoint
 * @key: the key that peers share; it is copied, and wiped by hawk_net_close()
 * @key_bytes: its bytes, HAWK_NET_KEY_MIN..HAWK_NET_KEY_MAX
 * @depth: requests of a peer under way at a time, 16..4096; 0: 256
 */
struct hawk_net_params {
	const uint8_t *key;
	uint32_t key_bytes;
	uint32_t depth;
};

/**
 * hawk_net_open() - an endpoint
 * @url: "rdma:ADDRESS", "rdma:" or "loop:"
 * @net: out
 *
 * Return: 0; -EINVAL; -EOPNOTSUPP: no librdmacm on this machine, or libhawk was built
 * without its headers; -ENODEV: no such NIC; -ENOMEM; what the driver said.
 */
int hawk_net_open(const char *url, const struct hawk_net_params *p, struct hawk_net **net);

/** hawk_net_close() - its peers and memory must have been closed; NULL is ignored */
void hawk_net_close(struct hawk_net *net);

#define HAWK_NET_WINDOWS	(1u << 0)	/* grants are memory windows; else registrations */
#define HAWK_NET_DMABUF		(1u << 1)	/* takes dma-bufs, as far as has been tried */

/**
 * struct hawk_net_info - what an endpoint can do
 * @device: the NIC
 * @flags: HAWK_NET_*
 * @mtu: bytes of a packet
 * @entries: pieces that a request gathers at most
 * @request_bytes: bytes of a request at most
 * @warning: in words, what makes it slower than it could be (a small MTU, a low limit of
 *	locked memory) with the remedy; empty: nothing
 */
struct hawk_net_info {
	char device[64];
	uint32_t flags;
	uint32_t mtu;
	uint32_t entries;
	uint32_t request_bytes;
	char warning[256];
};

void hawk_net_info(const struct hawk_net *net, struct hawk_net_info *info);

/* How memory is known to the NIC. */
enum hawk_mem_how {
	HAWK_MEM_PAGES = 1,	/* registration of a mapping of pages */
	HAWK_MEM_DMABUF,	/* a dma-buf: the NIC reaches the memory itself */
	HAWK_MEM_CLIENT,	/* a peer-memory client translates a mapping of a device */
	HAWK_MEM_DIRECT,	/* none: "loop:" */
	HAWK_MEM_BOUNCED,	/* not at all: HAWK_MEM_BOUNCE */
};

#define HAWK_MEM_DEVICE	(1u << 0)	/* @addr is memory of a device that no CPU should read */
/*
 * No NIC reaches @addr, but the CPU may write there (a PCI BAR, say): it is not registered, and
 * hawk_recv_open() receives into host memory of its own, verifies, and copies to @addr: one
 * hop.  It can neither be granted, nor put, got or sent from (EOPNOTSUPP).
 */
#define HAWK_MEM_BOUNCE	(1u << 1)

/**
 * struct hawk_mem_params - memory to register
 * @addr: where it is in this process; it stays mapped until hawk_mem_del().  NULL with a
 *	dma-buf that this process does not map
 * @bytes: bytes, at least 1
 * @dmabuf: a dma-buf that has the same bytes, or -1; it may be closed after the call
 * @flags: HAWK_MEM_*
 * @dmabuf_off: where they start in the dma-buf
 */
struct hawk_mem_params {
	void *addr;
	uint64_t bytes;
	int dmabuf;
	uint32_t flags;
	uint64_t dmabuf_off;
};

/**
 * hawk_mem_add() - register memory, by the best way that works
 *
 * Tried in this order: the dma-buf, if there is one; the mapping, which a peer-memory
 * client has to translate if it is a device's.  Pages are locked in memory until
 * hawk_mem_del().
 *
 * Return: 0; -EINVAL; -EOPNOTSUPP: no way works, hawk_strerror_last() tells why each does
 * not; -ENOMEM, mostly a limit of locked memory (RLIMIT_MEMLOCK).
 */
int hawk_mem_add(struct hawk_net *net, const struct hawk_mem_params *p, struct hawk_mem **mem);

/**
 * hawk_mem_chunk() - register the chunk that a block of a space lies in
 * @kv: the space
 * @vt: translation of a block that is pinned; all frames of its chunk are registered
 * @mem: out
 * @off: out: where the block starts in @mem
 *
 * Blocks of one chunk share one registration: those of a tier whose frames, HAWK_VT_FRAME(), by
 * HAWK_CHUNK_BYTES / block_bytes give the same number lie in the same one.  It holds while one
 * of them stays pinned; a chunk that its space gives back meanwhile is not handed to anybody
 * before hawk_mem_del().
 *
 * Return: as hawk_mem_add(); -EINVAL: the block is not in a host tier.
 */
int hawk_mem_chunk(struct hawk_net *net, struct hawk_kv *kv, uint64_t vt, struct hawk_mem **mem,
		   uint64_t *off);

/** hawk_mem_del() - end it; nothing of it may be granted any more; NULL is ignored */
void hawk_mem_del(struct hawk_mem *mem);

/**
 * struct hawk_mem_info - how memory is registered
 * @bytes: bytes
 * @how: enum hawk_mem_how
 * @reserved: 0
 * @why: in words, why it is not a better way; empty: it is the best
 */
struct hawk_mem_info {
	uint64_t bytes;
	uint32_t how;
	uint32_t reserved;
	char why[192];
};

void hawk_mem_info(const struct hawk_mem *mem, struct hawk_mem_info *info);

/**
 * hawk_net_listen() - let peers connect
 * @where: "ADDRESS:PORT" or ":PORT"; a name with "loop:"
 *
 * Return: 0; -EBUSY: it listens already; -EADDRINUSE; -EINVAL.
 */
int hawk_net_listen(struct hawk_net *net, const char *where);

/**
 * hawk_peer_accept() - the next peer that connects and proves that he has the key
 * @timeout_ms: milliseconds to wait, -1: no limit
 *
 * Return: 0; -ETIME: nobody came; -EACCES: he has another key (he has been told so and is
 * gone); -EPROTO: he speaks no version of ours; -EPIPE: he left meanwhile.
 */
int hawk_peer_accept(struct hawk_net *net, int timeout_ms, struct hawk_peer **peer);

/**
 * hawk_peer_connect() - connect to a peer
 * @where: "ADDRESS:PORT", or a name with "loop:"
 * @timeout_ms: milliseconds for all of it; as long as nobody listens there it is tried
 *	again, so this is also how to reconnect.  Memory stays registered meanwhile
 *
 * Return: 0; -ETIME; -EACCES: the key is another; -EPROTO: no common version; -EINVAL;
 * -ENETUNREACH, -EHOSTUNREACH.
 */
int hawk_peer_connect(struct hawk_net *net, const char *where, int timeout_ms,
		      struct hawk_peer **peer);

/** hawk_peer_close() - end a connection and all grants in it; NULL is ignored */
void hawk_peer_close(struct hawk_peer *peer);

#define HAWK_GRANT_READ		(1u << 0)	/* the peer may get */
#define HAWK_GRANT_WRITE	(1u << 1)	/* the peer may put */

/**
 * struct hawk_grant - bytes of one side that the other one may use
 * @bytes: how many
 * @tag: the granter's number, for the other side to tell what it is
 * @id: number in this connection
 * @flags: HAWK_GRANT_*
 */
struct hawk_grant {
	uint64_t bytes;
	uint64_t tag;
	uint32_t id;
	uint32_t flags;
};

/**
 * hawk_peer_grant() - let a peer use some bytes of ours
 * @off: from the start of @mem, bytes
 * @g: bytes, tag and flags are set; out: id
 * @timeout_ms: milliseconds; it waits only if the peer does not listen
 *
 * Return: 0; -EINVAL, -ERANGE; -EOPNOTSUPP: @mem is HAWK_MEM_BOUNCED; -ENOSPC: HAWK_GRANTS_MAX
 * are given; -EPIPE, -ETIME.
 */
int hawk_peer_grant(struct hawk_peer *peer, struct hawk_mem *mem, uint64_t off,
		    struct hawk_grant *g, int timeout_ms);

/**
 * hawk_peer_revoke() - end a grant of ours
 *
 * Once it has returned, nothing of the peer's gets there, whatever it returned: what he
 * sends later ends the connection with an error on his side.
 *
 * Return: 0; -ENOENT; -EPIPE, -ETIME: the connection is gone, and all grants with it.
 */
int hawk_peer_revoke(struct hawk_peer *peer, uint32_t id, int timeout_ms);

/**
 * hawk_peer_granted() - wait for a grant of the peer's
 * @tag: his number for it
 * @g: out
 *
 * Return: 0; -ETIME, -EPIPE.
 */
int hawk_peer_granted(struct hawk_peer *peer, uint64_t tag, int timeout_ms, struct hawk_grant *g);

/**
 * struct hawk_xfer - bytes to put or to get
 * @mem: ours
 * @off: from the start of @mem
 * @bytes: how many
 * @far_off: from the start of the grant
 * @grant: the peer's grant, &struct hawk_grant.id
 * @reserved: 0
 */
struct hawk_xfer {
	struct hawk_mem *mem;
	uint64_t off;
	uint64_t bytes;
	uint64_t far_off;
	uint32_t grant;
	uint32_t reserved;
};

/**
 * hawk_peer_put() - write lists of bytes into grants of the peer's
 * @x: @n of them
 * @timeout_ms: milliseconds for all; -1: no limit
 *
 * All are checked before anything moves.  When it returns 0, all bytes are in the peer's
 * memory.
 *
 * Return: 0; -ENOENT: no such grant; -ESTALE: it has been revoked; -EACCES: it does not
 * allow that, or the peer's NIC has refused (then the connection is gone); -ERANGE: outside
 * the grant or the memory; -EINVAL; -EOPNOTSUPP: memory that is HAWK_MEM_BOUNCED; -EPIPE: the
 * peer is gone; -ETIME: the connection has
 * been ended, since otherwise the NIC would still be using the memory.
 */
int hawk_peer_put(struct hawk_peer *peer, const struct hawk_xfer *x, unsigned int n,
		  int timeout_ms);

/** hawk_peer_get() - read lists of bytes from grants of the peer's; as hawk_peer_put() */
int hawk_peer_get(struct hawk_peer *peer, const struct hawk_xfer *x, unsigned int n,
		  int timeout_ms);

/**
 * hawk_peer_tell() - send a note, which arrives after what was put before
 * @note: @bytes bytes, 1..HAWK_NOTE_MAX
 */
int hawk_peer_tell(struct hawk_peer *peer, const void *note, uint32_t bytes, int timeout_ms);

/**
 * hawk_peer_hear() - the next note of the peer's
 * @note: room for HAWK_NOTE_MAX bytes
 * Return: its bytes; -ETIME, -EPIPE.
 */
int hawk_peer_hear(struct hawk_peer *peer, void *note, int timeout_ms);

/**
 * struct hawk_peer_stats - what has been going on
 * @put_bytes: bytes put
 * @got_bytes: bytes got
 * @requests: requests to the NIC
 * @messages_out: messages sent
 * @messages_in: messages received
 * @credit_waits: times that a message waited for the peer to listen
 * @version: of the protocol
 * @broken: 0, or the negative errno that the connection has ended with
 * @why: and why, in words
 */
struct hawk_peer_stats {
	uint64_t put_bytes;
	uint64_t got_bytes;
	uint64_t requests;
	uint64_t messages_out;
	uint64_t messages_in;
	uint64_t credit_waits;
	uint32_t version;
	int32_t broken;
	char why[192];
};

void hawk_peer_stats(struct hawk_peer *peer, struct hawk_peer_stats *st);

/**
 * hawk_peer_costs() - measure what requests to a peer cost, for hawk_layout_choose()
 * @room: memory here and in a grant of his, which is overwritten; at least as much as a
 *	request has at most (&struct hawk_net_info.request_bytes)
 * @c: out: link_mb_per_s, entries, request_ps, entry_ps; the rest is left alone
 *
 * Return: 0 or as hawk_peer_put().
 */
int hawk_peer_costs(struct hawk_peer *peer, const struct hawk_xfer *room, struct hawk_costs *c);

struct hawk_send;	/* KV of a sequence on its way to a peer */
struct hawk_recv;	/* and on its way here */

/**
 * struct hawk_send_params - KV that is to be sent, layer after layer, as it is computed
 * @mem: where it is
 * @off: byte 0 of the layout in @mem
 * @layout: how it lies there
 * @table: its block table, @table_count entries (&struct hawk_blocks); NULL: 0, 1, 2, ...
 * @range: what of it is sent
 * @tag: number that the receiver knows it by
 * @chunk_layers: layers of a chunk; 0: 16
 * @way: enum hawk_way; HAWK_WAYS: the best one by @costs
 * @costs: what moving costs, for HAWK_WAYS
 * @frame_bytes: a staging frame's bytes, about; 0: 4 MiB
 * @table_count: entries of @table
 *
 * What is pointed to is copied; the memory stays as it is until hawk_send_kept() says so.
 */
struct hawk_send_params {
	struct hawk_mem *mem;
	uint64_t off;
	const struct hawk_layout *layout;
	const uint32_t *table;
	struct hawk_range range;
	uint32_t table_count;
	uint64_t tag;
	uint32_t chunk_layers;
	uint32_t way;
	const struct hawk_costs *costs;
	uint64_t frame_bytes;
};

/**
 * hawk_send_open() - offer KV to a peer, who calls hawk_recv_open()
 *
 * A thread of the library sends the chunks; it uses the peer meanwhile.  There is one such
 * sending for a peer at a time.
 *
 * Return: 0; -EINVAL, -ERANGE, -ENOENT (layouts, as of hawk_layout_plan_open(), on this side
 * or the other); -EOPNOTSUPP: HAWK_WAY_KEYS, for which no NIC's driver is known to the
 * library, HAWK_WAY_BIRTH between different layouts, memory that no CPU may read, or to
 * send from that no NIC reaches; -EBUSY; -ETIME: the peer does not take it; -EPIPE, -ENOMEM.
 */
int hawk_send_open(struct hawk_peer *peer, const struct hawk_send_params *p, int timeout_ms,
		   struct hawk_send **send);

/** hawk_send_layers() - the first @layers layers of the range are computed */
int hawk_send_layers(struct hawk_send *s, uint32_t layers);

/**
 * hawk_send_wait() - wait until all layers have been verified by the receiver
 * Return: 0; -ETIME; what has ended the connection.
 */
int hawk_send_wait(struct hawk_send *s, int timeout_ms);

#define HAWK_SEND_KEEP_MS	200u	/* the sender's copy is kept so long, at least */

/**
 * hawk_send_kept() - may the sender's copy be given up?
 *
 * When the receiver has decoded the first token (hawk_recv_ack()), but not before
 * HAWK_SEND_KEEP_MS after all was there.
 *
 * Return: 0: yes; -EAGAIN: not yet; what has ended the connection before that: send it
 * elsewhere (hawk_send_resume()).
 */
int hawk_send_kept(struct hawk_send *s);

/**
 * hawk_send_resume() - go on with another connection: to the same receiver, who keeps what
 *	he has verified, or to another one, who gets all again.  Nothing is computed again
 * @peer: the new connection; the old one may be closed after this
 *
 * Return: 0; as hawk_send_open(), which may be tried again; hawk_send_wait() gives it, too.
 * -EINVAL also if the receiver has other layers in common with us than the one before.
 */
int hawk_send_resume(struct hawk_send *s, struct hawk_peer *peer, int timeout_ms);

/** hawk_send_close() - end it, whatever its state; before its peer is closed */
void hawk_send_close(struct hawk_send *s);

/**
 * struct hawk_send_info - how sending goes
 * @way: enum hawk_way that is used
 * @units: units: chunks, or the frames that they are cut into
 * @done: units that the receiver has verified
 * @again: units that were sent again, since they did not arrive as they were sent
 * @layers: layers of the range
 * @reserved: 0
 * @bytes: bytes sent
 * @exposed_ns: from the last layer computed to all verified: what transfer adds to the
 *	time to the first token
 * @last_ns: from the start of the last chunk's transfer to all verified
 */
struct hawk_send_info {
	uint32_t way;
	uint32_t units;
	uint32_t done;
	uint32_t again;
	uint32_t layers;
	uint32_t reserved;
	uint64_t bytes;
	uint64_t exposed_ns;
	uint64_t last_ns;
};

void hawk_send_info(struct hawk_send *s, struct hawk_send_info *info);

/**
 * struct hawk_recv_params - where KV is wanted
 * @mem: the memory
 * @off: byte 0 of the layout in @mem
 * @layout: how it shall lie there
 * @table: its block table, @table_count entries; NULL: 0, 1, 2, ...
 * @tag: &struct hawk_send_params.tag
 * @table_count: entries of @table
 * @frame_max: bytes of staging frames that the sender may ask for; 0: 64 MiB
 *
 * With memory of HAWK_MEM_BOUNCE as much host memory as the range takes is registered until
 * hawk_recv_close(); by HAWK_WAY_RECEIVER bytes go from the staging frames to @mem at once.
 */
struct hawk_recv_params {
	struct hawk_mem *mem;
	uint64_t off;
	const struct hawk_layout *layout;
	const uint32_t *table;
	uint64_t tag;
	uint32_t table_count;
	uint32_t frame_max;
};

/**
 * hawk_recv_open() - take KV that a peer offers
 *
 * Return: 0; as hawk_send_open().
 */
int hawk_recv_open(struct hawk_peer *peer, const struct hawk_recv_params *p, int timeout_ms,
		   struct hawk_recv **recv);

/**
 * hawk_recv_wait() - wait for the first @layers layers, verified and in place
 *
 * Chunks are verified within this call.  One that does not have the checksum that it was sent
 * with is sent again; one that comes late or twice is ignored.
 *
 * Return: 0; -ETIME; what has ended the connection: hawk_recv_resume() goes on.
 */
int hawk_recv_wait(struct hawk_recv *r, uint32_t layers, int timeout_ms);

/** hawk_recv_ack() - tell the sender that the first token has been decoded */
int hawk_recv_ack(struct hawk_recv *r, int timeout_ms);

/** hawk_recv_resume() - go on with another connection, whose other side calls
 *	hawk_send_resume(); chunks that are verified are not sent again.  The old one may be
 *	closed after this */
int hawk_recv_resume(struct hawk_recv *r, struct hawk_peer *peer, int timeout_ms);

/** hawk_recv_close() - end it; nothing of the sender's gets there any more; before its peer is
 *	closed */
void hawk_recv_close(struct hawk_recv *r);

/**
 * struct hawk_recv_info - how receiving goes
 * @range: what is sent
 * @way: enum hawk_way
 * @layers: layers that are verified and in place, counted from the first without a gap
 * @bad: units that did not have their checksum
 * @ignored: units that were late, or there already
 */
struct hawk_recv_info {
	struct hawk_range range;
	uint32_t way;
	uint32_t layers;
	uint32_t bad;
	uint32_t ignored;
};

void hawk_recv_info(struct hawk_recv *r, struct hawk_recv_info *info);

#ifdef __cplusplus
}
#endif

#endif /* HAWK_PEER_H */
