/* SPDX-License-Identifier: MIT */
/*
 * peer_session.h - KV of a sequence goes to a peer, chunk after chunk
 *
 *	sender				receiver
 *	OFFER layout, range	->
 *				<-	ACCEPT layout, grants, chunks that he has
 *	reads his block table
 *	BEGIN way, frames	->
 *				<-	READY grant of staging frames
 *	for each unit:
 *	  writes of its bytes, of its record, with its number ->
 *				<-	UNIT verified, or: send it again
 *				<-	ACK first token decoded
 *
 * A chunk is some layers of all tokens.  Ways with a staging frame cut it into units of as
 * many tokens as a frame has room for, otherwise it is one unit.  Both sides work the units
 * and their plans out from what was agreed on, so a unit is named by its number.
 *
 * The record has the CRC32C of the unit's bytes in the order in which they are written; the
 * receiver reads them in the same order, from where they have come to.  The bytes of a unit,
 * its record and its number arrive in this order, since a connection keeps it.
 *
 * A unit is UNSENT, SENT, DONE, or BAD, which is like UNSENT but first.  Unit n is not sent before
 * unit n - window is DONE: so neither its record nor its staging frame has one that is still
 * needed.
 */
#ifndef HAWK_PEER_SESSION_H
#define HAWK_PEER_SESSION_H

#include "crc32c.h"
#include "layout.h"
#include "peer.h"

#define SESSION_ID	16u
#define SESSION_RECORDS	32u		/* records, and units under way at most */
#define SESSION_FRAMES	2u		/* staging frames */
#define SESSION_UNITS	(1u << 20)
#define SESSION_TABLE	(1u << 24)	/* entries of a block table */
#define SESSION_TAG	UINT64_MAX	/* of grants that belong to a session */

struct peer_offer {
	uint8_t id[SESSION_ID];
	uint64_t tag;
	struct hawk_layout src;
	struct hawk_range range;
	uint32_t chunk_layers;
};

struct peer_accept {
	uint8_t id[SESSION_ID];
	struct hawk_layout dst;
	int32_t status;
	uint32_t data_grant;
	uint32_t record_grant;
	uint32_t table_grant;
	uint32_t table_count;
	uint32_t chunks_done;
};

struct peer_begin {
	uint8_t id[SESSION_ID];
	uint64_t frame_bytes;
	uint32_t way;
	uint32_t units;
};

struct peer_ready {
	uint8_t id[SESSION_ID];
	int32_t status;
	uint32_t stage_grant;
};

struct peer_unit {
	uint8_t id[SESSION_ID];
	uint32_t unit;
	int32_t status;
};

struct peer_ack {
	uint8_t id[SESSION_ID];
};

/**
 * struct peer_record - what is written behind the bytes of a unit
 * @id: of the session
 * @unit: number
 * @crc: CRC32C of the bytes in the order of the plan
 * @bytes: how many
 */
struct peer_record {
	uint8_t id[SESSION_ID];
	uint32_t unit;
	uint32_t crc;
	uint64_t bytes;
};

/**
 * struct session - what both sides have agreed on
 * @id: number drawn by the sender
 * @src: the sender's layout
 * @dst: the receiver's
 * @range: what is sent; layers are those that both have
 * @chunk_layers: layers of a chunk
 * @chunks: how many
 * @way: enum hawk_way
 * @step: tokens of a unit
 * @pieces: units of a chunk
 * @units: of all chunks
 * @stage: bytes of a staging frame, 0: none
 */
struct session {
	uint8_t id[SESSION_ID];
	struct hawk_layout src;
	struct hawk_layout dst;
	struct hawk_range range;
	uint32_t chunk_layers;
	uint32_t chunks;
	uint32_t way;
	uint32_t step;
	uint32_t pieces;
	uint32_t units;
	uint64_t stage;
};

/* peer_session.c */
int session_layout(struct hawk_layout *l, const struct hawk_layout *from);
int session_layers(struct session *s);
int session_cut(struct session *s, unsigned int way, uint64_t frame_bytes);
void session_range(const struct session *s, uint32_t unit, struct hawk_range *r);
int session_route(const struct session *s, uint32_t unit, struct hawk_route *rt);
int session_await(struct hawk_peer *p, enum peer_msg_type type, void *body, size_t len,
		  uint64_t deadline);
int session_room(struct hawk_net *net, uint64_t bytes, struct hawk_mem **mem);
void session_room_end(struct hawk_mem *mem);
static inline uint32_t session_window(const struct session *s)
{
	return s->way == HAWK_WAY_RECEIVER ? SESSION_FRAMES : SESSION_RECORDS;
}

/* peer_send.c, peer_recv.c: what has come for them */
int peer_send_message(struct hawk_peer *p, const struct peer_head *h);
int peer_recv_imm(struct hawk_peer *p, uint32_t imm);

#endif /* HAWK_PEER_SESSION_H */
