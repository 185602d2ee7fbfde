// SPDX-License-Identifier: MIT
/*
 * peer_recv.c - the receiver of a session
 *
 * Numbers of units that have arrived are noted as they come; the units are verified, and
 * copied into place if they came into a staging frame, by whoever waits for layers.  The
 * protocol is in peer_session.h.  Nothing that the sender says is believed: plans are made
 * from his layout, but what is read and written lies within the receiver's own layout and
 * frames.
 *
 * Where no NIC reaches the memory (HAWK_MEM_BOUNCE) the sender is told of a bounce buffer: the
 * same layout, packed, with blocks for the range.  A unit goes from there into place when it
 * has been verified.  If the sender wants staging frames here, it goes from those at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer_session.h"

#define FRAME_MAX	(64u << 20)	/* of a staging frame if nothing else is said */

/**
 * struct hawk_recv - a session's receiver
 * @p: the connection
 * @s: what was agreed on
 * @begun: there is something agreed on
 * @mem: where the KV is wanted
 * @off: byte 0 of the layout there
 * @dst: the layout; what the sender sees of it is @s.dst
 * @table: block table, copied; in registered memory behind the records
 * @table_count: entries
 * @tag: the sender's number for it
 * @frame_max: staging frames may have so many bytes
 * @room: records, block table
 * @stage: staging frames
 * @bounce: where the sender writes if no NIC reaches @mem, else NULL
 * @grant: of layout, records, table, staging frames; 0: none
 * @done: by unit: verified and in place
 * @first: the first unit that is not
 * @arrived: numbers that have come, in a ring
 * @head: the oldest
 * @count: how many
 * @bad: units without their checksum
 * @ignored: late or repeated ones
 */
struct hawk_recv {
	struct hawk_peer *p;
	struct session s;
	bool begun;
	struct hawk_mem *mem;
	uint64_t off;
	struct hawk_layout dst;
	uint32_t *table;
	uint32_t table_count;
	uint64_t tag;
	uint64_t frame_max;
	struct hawk_mem *room;
	struct hawk_mem *stage;
	struct hawk_mem *bounce;
	uint32_t grant[4];
	uint8_t *done;
	uint32_t first;
	uint32_t arrived[FAB_SLOTS];
	unsigned int head;
	unsigned int count;
	uint32_t bad;
	uint32_t ignored;
};

enum { GRANT_DATA, GRANT_RECORDS, GRANT_TABLE, GRANT_STAGE };

#define ROOM_TABLE	4096u	/* behind the records */

/* A number has come; the lock of @p is held. */
int peer_recv_imm(struct hawk_peer *p, uint32_t imm)
{
	struct hawk_recv *r = p->rx;

	if (!r)
		return 0;	/* of a session that has been closed here */
	if (imm >= r->s.units || r->count == FAB_SLOTS)
		return peer_break(p, -EPROTO, "unit %u of %u, %u not looked at yet", imm, r->s.units,
				  r->count);
	r->arrived[(r->head + r->count++) % FAB_SLOTS] = imm;
	return 0;
}

/* ---- verifying ---- */

struct reading {
	const uint8_t *base;
	uint64_t bytes;
	uint64_t sum;
	uint32_t crc;
};

static int read_request(void *ctx, const struct hawk_request *q)
{
	struct reading *g = ctx;

	if (q->off > g->bytes || q->bytes > g->bytes - q->off)
		return -ERANGE;
	g->crc = hawk_crc32c_more(g->crc, g->base + q->off, q->bytes);
	g->sum += q->bytes;
	return 0;
}

static uint8_t *data_of(const struct hawk_recv *r)
{
	return (uint8_t *)r->mem->reg.p.addr + r->off;
}

/* What has been verified goes into place. */
static int put_in_place(struct hawk_recv *r, const struct hawk_layout_plan *plan,
			const uint8_t *from, uint64_t bytes)
{
	const struct hawk_blocks b = { .dst = r->table, .dst_count = r->table_count };
	const struct hawk_copy c = {
		.src = from, .src_bytes = bytes, .dst = data_of(r),
		.dst_bytes = r->dst.bytes, .blocks = &b, .flags = HAWK_COPY_CACHED,
	};
	int ret = hawk_layout_copy(plan, &c);

	__sync_synchronize();	/* write-combining buffers: a device may be the next reader */
	return ret;
}

/* Out of the bounce buffer. */
static int put_bounced(struct hawk_recv *r, uint32_t unit)
{
	struct hawk_layout_plan *plan;
	struct hawk_range range;
	int ret;

	session_range(&r->s, unit, &range);
	range.flags |= HAWK_RANGE_PADDED;
	ret = hawk_layout_plan_open(&r->s.dst, &r->dst, &range, &plan);
	if (ret)
		return ret;
	ret = put_in_place(r, plan, r->bounce->reg.p.addr, r->s.dst.bytes);
	hawk_layout_plan_close(plan);
	return ret;
}

/* 0: it is as it was sent, and in place; -EBADMSG: it is not. */
static int verify(struct hawk_recv *r, uint32_t unit, const struct peer_record *rec)
{
	const struct hawk_blocks b = { .dst = r->table, .dst_count = r->table_count };
	struct reading g = {
		.base = r->bounce ? r->bounce->reg.p.addr : data_of(r), .bytes = r->s.dst.bytes,
		.crc = ~0u,
	};
	struct hawk_requests q = { .entries = HAWK_ENTRIES_MAX, .post = read_request, .ctx = &g };
	struct hawk_route rt;
	int ret = session_route(&r->s, unit, &rt);

	if (ret)
		return ret;
	if (rt.after) {
		g.base = (uint8_t *)r->stage->reg.p.addr + unit % SESSION_FRAMES * r->s.stage;
		g.bytes = r->s.stage;
	} else if (!r->bounce) {
		q.blocks = &b;
	}
	if (rt.after && rt.stage.bytes > r->s.stage)
		ret = hawk_fail(-ERANGE, "session: a unit is larger than a staging frame");
	if (!ret)
		ret = hawk_layout_requests(rt.wire, &q);
	if (!ret && (g.sum != rec->bytes || ~g.crc != rec->crc))
		ret = -EBADMSG;
	if (!ret && rt.after)
		ret = put_in_place(r, rt.after, g.base, r->s.stage);
	else if (!ret && r->bounce)
		ret = put_bounced(r, unit);
	hawk_route_close(&rt);
	return ret;
}

/* Looks at one unit that has arrived and answers. */
static int take_unit(struct hawk_recv *r, uint32_t unit, uint64_t deadline)
{
	const struct peer_record *recs = r->room->reg.p.addr;
	struct peer_record rec = recs[unit % SESSION_RECORDS];
	struct peer_unit m = { .unit = unit };
	int ret;

	memcpy(m.id, r->s.id, SESSION_ID);
	if (r->done[unit] || memcmp(rec.id, r->s.id, SESSION_ID) || rec.unit != unit) {
		r->ignored++;
		return 0;
	}
	ret = verify(r, unit, &rec);
	if (ret && ret != -EBADMSG)
		return peer_break(r->p, ret, "unit %u cannot be verified: %s", unit,
				  hawk_strerror_last());
	m.status = ret;
	r->bad += ret != 0;
	r->done[unit] = !ret;
	while (r->first < r->s.units && r->done[r->first])
		r->first++;
	return peer_send(r->p, MSG_UNIT, &m, sizeof(m), deadline);
}

static uint32_t layers_in_place(const struct hawk_recv *r)
{
	uint32_t layers = r->begun ? r->first / r->s.pieces * r->s.chunk_layers : 0;

	return layers < r->s.range.layers ? layers : r->s.range.layers;
}

int hawk_recv_wait(struct hawk_recv *r, uint32_t layers, int timeout_ms)
{
	uint64_t deadline = hawk_peer_deadline(timeout_ms);
	uint32_t unit;
	int ret = 0;

	if (layers > r->s.range.layers)
		return hawk_fail(-EINVAL, "session: %u layers of %u", layers, r->s.range.layers);
	pthread_mutex_lock(&r->p->lock);
	while (!ret && layers_in_place(r) < layers) {
		if (!r->count) {
			ret = peer_wait(r->p, deadline);
			if (ret == -ETIME)
				hawk_fail(ret, "session: %u of %u layers are here", layers_in_place(r),
					  r->s.range.layers);
			continue;
		}
		unit = r->arrived[r->head];
		r->head = (r->head + 1) % FAB_SLOTS;
		r->count--;
		ret = take_unit(r, unit, deadline);
	}
	if (layers_in_place(r) >= layers)
		ret = 0;
	pthread_mutex_unlock(&r->p->lock);
	return ret;
}

/* ---- agreeing ---- */

static int give(struct hawk_recv *r, unsigned int which, struct hawk_mem *mem, uint64_t off,
		uint64_t bytes, uint32_t flags, uint64_t deadline)
{
	struct hawk_grant g = { .bytes = bytes, .tag = SESSION_TAG, .flags = flags };
	int ret = peer_grant(r->p, mem, off, &g, deadline);

	r->grant[which] = ret ? 0 : g.id;
	return ret;
}

/* Chunks that are verified, of the same session. */
static uint32_t chunks_done(const struct hawk_recv *r)
{
	return r->begun ? r->first / r->s.pieces : 0;
}

/* What is offered: is it wanted, does it fit? */
static int look_at_offer(struct hawk_recv *r, const struct peer_offer *o, struct session *s)
{
	int ret;

	*s = (struct session){ .dst = r->dst, .range = o->range, .chunk_layers = o->chunk_layers };
	memcpy(s->id, o->id, SESSION_ID);
	if (o->tag != r->tag)
		return hawk_fail(-ENOENT, "session: tag %llu was offered, %llu is wanted",
				 (unsigned long long)o->tag, (unsigned long long)r->tag);
	ret = session_layout(&s->src, &o->src);
	return ret ? ret : session_layers(s);
}

/* The bounce buffer for what is offered, which the sender sees in place of the layout. */
static int make_bounce(struct hawk_recv *r, struct session *s)
{
	uint64_t first = (uint64_t)r->dst.block_first * r->dst.block_tokens;
	uint64_t end = first + (uint64_t)r->dst.blocks * r->dst.block_tokens;
	int ret;

	session_room_end(r->bounce);
	r->bounce = NULL;
	/* before memory is taken for what the sender says */
	if (s->range.token_first < first || (uint64_t)s->range.token_first + s->range.tokens > end)
		return hawk_fail(-ERANGE, "session: %u tokens from %u on were offered, there is room for %llu to %llu",
				 s->range.tokens, s->range.token_first, (unsigned long long)first,
				 (unsigned long long)end);
	ret = hawk_layout_stage(&r->dst, &s->src, &s->range, &s->dst);
	return ret ? ret : session_room(r->p->net, s->dst.bytes, &r->bounce);
}

/* Gives the sender what he needs to begin. */
static int give_all(struct hawk_recv *r, struct session *s, uint64_t deadline)
{
	bool bounced = r->mem->reg.how == HAWK_MEM_BOUNCED;
	int ret = bounced ? make_bounce(r, s) : 0;

	if (!ret)
		ret = give(r, GRANT_DATA, bounced ? r->bounce : r->mem, bounced ? 0 : r->off,
			   s->dst.bytes, HAWK_GRANT_WRITE, deadline);
	if (!ret)
		ret = give(r, GRANT_RECORDS, r->room, 0, SESSION_RECORDS * sizeof(struct peer_record),
			   HAWK_GRANT_WRITE, deadline);
	if (!ret && r->table && !bounced)
		ret = give(r, GRANT_TABLE, r->room, ROOM_TABLE, (uint64_t)r->table_count * 4,
			   HAWK_GRANT_READ, deadline);
	return ret;
}

static int accept_offer(struct hawk_recv *r, struct session *s, uint64_t deadline)
{
	struct peer_accept a = { .status = 0 };
	struct peer_offer o;
	int ret = session_await(r->p, MSG_OFFER, &o, sizeof(o), deadline), err;

	if (ret)
		return ret;
	ret = look_at_offer(r, &o, s);
	if (!ret && r->begun &&
	    (memcmp(s->id, r->s.id, SESSION_ID) || s->chunk_layers != r->s.chunk_layers ||
	     memcmp(&s->range, &r->s.range, sizeof(s->range)))) {
		r->begun = false;	/* it begins from the start */
		r->first = 0;
	}
	if (!ret)
		ret = give_all(r, s, deadline);
	memcpy(a.id, o.id, SESSION_ID);
	a.dst = s->dst;
	a.status = ret;
	a.data_grant = r->grant[GRANT_DATA];
	a.record_grant = r->grant[GRANT_RECORDS];
	a.table_grant = r->grant[GRANT_TABLE];
	a.table_count = a.table_grant ? r->table_count : 0;
	a.chunks_done = chunks_done(r);
	err = r->p->st.broken ? 0 : peer_send(r->p, MSG_ACCEPT, &a, sizeof(a), deadline);
	return ret ? ret : err;
}

/* From here on @s counts; marks what is done already in the units that it is cut into. */
static int take_over(struct hawk_recv *r, const struct session *s, uint32_t chunks)
{
	uint8_t *done = calloc(s->units, 1);

	if (!done)
		return hawk_fail(-ENOMEM, "session: %u units", s->units);
	memset(done, 1, (size_t)chunks * s->pieces);
	free(r->done);
	r->done = done;
	r->s = *s;
	r->first = chunks * s->pieces;
	r->head = 0;
	r->count = 0;
	r->begun = true;
	return 0;
}

/* What the sender begins with is cut as he says; nothing is changed here if that does not do. */
static int prepare(struct hawk_recv *r, struct session *s, const struct peer_begin *b,
		   uint64_t deadline)
{
	uint32_t chunks = chunks_done(r);
	int ret;

	if (b->way >= HAWK_WAYS)
		return hawk_fail(-ECANCELED, "session: the sender does not begin");
	ret = session_cut(s, b->way, b->frame_bytes);
	if (b->way == HAWK_WAY_RECEIVER)
		s->dst = r->dst;	/* out of its frames units go to where they are wanted */
	if (!ret && s->units != b->units)
		ret = hawk_fail(-EPROTO, "session: %u units here, %u there", s->units, b->units);
	if (!ret && b->way == HAWK_WAY_RECEIVER && s->stage > r->frame_max)
		ret = hawk_fail(-E2BIG, "session: staging frames of %llu bytes, %llu are allowed",
				(unsigned long long)s->stage, (unsigned long long)r->frame_max);
	session_room_end(r->stage);
	r->stage = NULL;
	if (!ret && b->way == HAWK_WAY_RECEIVER)
		ret = session_room(r->p->net, SESSION_FRAMES * s->stage, &r->stage);
	if (!ret && r->stage)
		ret = give(r, GRANT_STAGE, r->stage, 0, SESSION_FRAMES * s->stage,
			   HAWK_GRANT_WRITE, deadline);
	return ret ? ret : take_over(r, s, chunks);
}

/* OFFER to READY; the lock of the peer is held. */
static int agree(struct hawk_recv *r, uint64_t deadline)
{
	struct peer_ready m = { .status = 0 };
	struct peer_begin b;
	struct session s;
	int ret, err;

	if (r->p->rx)
		return hawk_fail(-EBUSY, "session: something else comes from the peer");
	ret = accept_offer(r, &s, deadline);
	if (!ret)
		ret = session_await(r->p, MSG_BEGIN, &b, sizeof(b), deadline);
	if (ret)
		return ret;
	if (memcmp(b.id, s.id, SESSION_ID))
		return peer_break(r->p, -EPROTO, "another session begins");
	ret = prepare(r, &s, &b, deadline);
	if (ret == -ECANCELED)
		return ret;
	memcpy(m.id, s.id, SESSION_ID);
	m.status = ret;
	m.stage_grant = r->grant[GRANT_STAGE];
	if (!ret)
		r->p->rx = r;
	err = r->p->st.broken ? 0 : peer_send(r->p, MSG_READY, &m, sizeof(m), deadline);
	return ret ? ret : err;
}

/*
 * Takes back what the sender was given, and forgets what of him has not been looked at: the
 * records behind it are not his any more.  The lock of the peer is held.
 */
static void take_back(struct hawk_recv *r)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		if (r->grant[i] && !r->p->st.broken)
			peer_revoke(r->p, r->grant[i], hawk_peer_deadline(PEER_HELLO_MS));
		r->grant[i] = 0;
	}
	if (r->p->rx == r)
		r->p->rx = NULL;
	r->count = 0;
}

/* ---- calls ---- */

static int set_up(struct hawk_recv *r, const struct hawk_recv_params *p)
{
	int ret = session_layout(&r->dst, p->layout);

	if (ret)
		return ret;
	if (p->mem->net != r->p->net || (!p->table && p->table_count) ||
	    p->table_count > SESSION_TABLE)
		return hawk_fail(-EINVAL, "session: %u blocks, or memory of another endpoint",
				 p->table_count);
	if (!p->mem->reg.p.addr ||
	    (p->mem->reg.p.flags & (HAWK_MEM_DEVICE | HAWK_MEM_BOUNCE)) == HAWK_MEM_DEVICE)
		return hawk_fail(-EOPNOTSUPP, "session: checksums need memory that the CPU can read");
	if (p->off > p->mem->reg.p.bytes || r->dst.bytes > p->mem->reg.p.bytes - p->off)
		return hawk_fail(-ERANGE, "session: the layout takes %llu bytes from %llu on, the memory has %llu",
				 (unsigned long long)r->dst.bytes, (unsigned long long)p->off,
				 (unsigned long long)p->mem->reg.p.bytes);
	ret = session_room(r->p->net, ROOM_TABLE + (uint64_t)p->table_count * 4 + 4, &r->room);
	if (ret)
		return ret;
	r->mem = p->mem;
	r->off = p->off;
	r->tag = p->tag;
	r->frame_max = p->frame_max ? p->frame_max : FRAME_MAX;
	if (p->table) {
		r->table = (uint32_t *)((uint8_t *)r->room->reg.p.addr + ROOM_TABLE);
		r->table_count = p->table_count;
		memcpy(r->table, p->table, (size_t)p->table_count * 4);
	}
	return 0;
}

void hawk_recv_close(struct hawk_recv *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->p->lock);
	take_back(r);
	pthread_mutex_unlock(&r->p->lock);
	session_room_end(r->room);
	session_room_end(r->stage);
	session_room_end(r->bounce);
	free(r->done);
	free(r);
}

int hawk_recv_open(struct hawk_peer *peer, const struct hawk_recv_params *p, int timeout_ms,
		   struct hawk_recv **recv)
{
	struct hawk_recv *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return hawk_fail(-ENOMEM, "session: a receiver");
	r->p = peer;
	ret = set_up(r, p);
	if (!ret) {
		pthread_mutex_lock(&peer->lock);
		ret = agree(r, hawk_peer_deadline(timeout_ms));
		pthread_mutex_unlock(&peer->lock);
	}
	if (ret) {
		hawk_recv_close(r);
		return ret;
	}
	*recv = r;
	return 0;
}

int hawk_recv_resume(struct hawk_recv *r, struct hawk_peer *peer, int timeout_ms)
{
	int ret;

	if (peer->net != r->mem->net)
		return hawk_fail(-EINVAL, "session: a peer of another endpoint, which does not know the memory");
	pthread_mutex_lock(&r->p->lock);
	take_back(r);
	pthread_mutex_unlock(&r->p->lock);
	r->p = peer;
	pthread_mutex_lock(&peer->lock);
	ret = agree(r, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&peer->lock);
	return ret;
}

int hawk_recv_ack(struct hawk_recv *r, int timeout_ms)
{
	struct peer_ack m;
	int ret;

	memcpy(m.id, r->s.id, SESSION_ID);
	pthread_mutex_lock(&r->p->lock);
	ret = peer_send(r->p, MSG_ACK, &m, sizeof(m), hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&r->p->lock);
	return ret;
}

void hawk_recv_info(struct hawk_recv *r, struct hawk_recv_info *info)
{
	pthread_mutex_lock(&r->p->lock);
	*info = (struct hawk_recv_info){
		.range = r->s.range, .way = r->s.way, .layers = layers_in_place(r), .bad = r->bad,
		.ignored = r->ignored,
	};
	pthread_mutex_unlock(&r->p->lock);
}
