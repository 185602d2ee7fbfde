/* SPDX-License-Identifier: MIT */
/*
 * peer_send.h - what the files of a session's sender share
 *
 * peer_send.c	the calls, the thread, answers
 * peer_agree.c	what is agreed on with the receiver
 * peer_unit.c	the requests of a unit
 */
#ifndef HAWK_PEER_SEND_H
#define HAWK_PEER_SEND_H

#include "peer_session.h"

enum unit_state { UNIT_UNSENT, UNIT_SENT, UNIT_DONE, UNIT_BAD };

/**
 * struct hawk_send - a session's sender
 * @p: the connection
 * @s: what was agreed on
 * @mem: where the KV is
 * @off: byte 0 of the layout there
 * @table: block table of ours, copied; NULL: none
 * @table_count: entries
 * @far_table: the receiver's
 * @far_count: entries
 * @want_way: what the caller wants, HAWK_WAYS: the best
 * @costs: for that
 * @frame_bytes: what the caller wants
 * @tag: number for the receiver
 * @room: records, zeroes, staging frames; @far_room: the receiver's table
 * @frame_seq: by frame: the last request that reads it, plus 1
 * @data: grant of the receiver's layout
 * @record: grant of his records
 * @stage: grant of his staging frames
 * @state: enum unit_state by unit, NULL: nothing was agreed on yet; guarded by @p->lock, like
 *	the next four
 * @first: the first unit that is not DONE
 * @next: the first unit that was never sent
 * @again: units sent again
 * @bytes: bytes sent
 * @acked: the first token has been decoded
 * @lock: guards what follows
 * @changed: told when it does
 * @layers: layers announced
 * @stop: the thread is to end
 * @over: it has: all is verified, or @err
 * @err: why it has ended early
 * @why: in words
 * @last_layer_ns: when the last layer was announced
 * @last_chunk_ns: when sending of the last chunk began
 * @over_ns: when all was verified
 * @thread: the thread
 * @running: there is one
 */
struct hawk_send {
	struct hawk_peer *p;
	struct session s;
	struct hawk_mem *mem;
	uint64_t off;
	uint32_t *table;
	uint32_t table_count;
	uint32_t *far_table;
	uint32_t far_count;
	uint32_t want_way;
	struct hawk_costs costs;
	uint64_t frame_bytes;
	uint64_t tag;
	struct hawk_mem *room;
	struct hawk_mem *far_room;
	uint64_t frame_seq[SESSION_FRAMES];
	uint32_t data;
	uint32_t record;
	uint32_t stage;
	uint8_t *state;
	uint32_t first;
	uint32_t next;
	uint32_t again;
	uint64_t bytes;
	bool acked;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t layers;
	bool stop;
	bool over;
	int err;
	char why[256];
	uint64_t last_layer_ns;
	uint64_t last_chunk_ns;
	uint64_t over_ns;
	pthread_t thread;
	bool running;
};

/* In @room: records, zeroes, frames. */
#define ROOM_ZEROES	(SESSION_RECORDS * sizeof(struct peer_record))
#define ROOM_FRAMES	8192u

/* peer_agree.c: OFFER to READY; the lock of the peer is held */
int sender_agree(struct hawk_send *s, uint64_t deadline);

/* peer_unit.c: has the NIC write a unit, its record and its number */
int sender_unit(struct hawk_send *s, uint32_t unit);

#endif /* HAWK_PEER_SEND_H */
