// SPDX-License-Identifier: MIT
/*
 * peer_unit.c - the requests of a unit: its bytes, its record, its number
 */
#include <errno.h>
#include <string.h>

#include "peer_send.h"

#define STALL_MS	30000		/* a receiver that does not listen */

/**
 * struct sending - requests of a unit
 * @near: what offsets of the plan start from here
 * @mem: its registration
 * @far: and over there
 * @bytes: of that
 */
struct sending {
	struct hawk_send *s;
	const uint8_t *near;
	const struct fab_reg *reg;
	uint64_t base;
	uint64_t far;
	uint64_t far_bytes;
	uint32_t rkey;
	uint32_t crc;
	uint64_t bytes;
};

static int post_request(void *ctx, const struct hawk_request *r)
{
	struct sending *g = ctx;
	const struct fab_reg *zero = &g->s->room->reg;
	struct fab_sge sge[FAB_SGE_MAX];
	struct fab_wr wr = { .op = FAB_WRITE, .nsge = r->entries, .sge = sge, .rkey = g->rkey };
	const uint8_t *zeroes = (uint8_t *)zero->p.addr + ROOM_ZEROES;
	uint32_t i;

	if (r->off > g->far_bytes || r->bytes > g->far_bytes - r->off)
		return hawk_fail(-ERANGE, "session: byte %llu of the receiver's %llu",
				 (unsigned long long)r->off, (unsigned long long)g->far_bytes);
	for (i = 0; i < r->entries; i++) {
		const struct hawk_entry *e = &r->entry[i];

		g->crc = hawk_crc32c_more(g->crc, e->zero ? zeroes : g->near + e->off, e->len);
		sge[i] = (struct fab_sge){
			.addr = e->zero ? zero->base + ROOM_ZEROES : g->base + e->off,
			.len = e->len, .lkey = e->zero ? zero->lkey : g->reg->lkey,
		};
	}
	g->bytes += r->bytes;
	wr.far = g->far + r->off;
	return peer_post(g->s->p, &wr, FAB_SLOTS, UINT64_MAX);
}

/* The unit's record, and its number. */
static int post_record(struct hawk_send *s, uint32_t unit, const struct sending *g)
{
	struct peer_record *rec = s->room->reg.p.addr;
	struct grant_in *in = peer_grant_find(s->p, s->record);
	uint32_t i = unit % SESSION_RECORDS;
	struct fab_sge sge = { .addr = s->room->reg.base + i * sizeof(*rec), .len = sizeof(*rec),
			       .lkey = s->room->reg.lkey };
	struct fab_wr wr = { .op = FAB_WRITE, .nsge = 1, .sge = &sge, .signaled = true,
			     .has_imm = true, .imm = unit };
	int ret;

	if (!in || in->revoked)
		return hawk_fail(-ESTALE, "session: the receiver has ended it");
	rec[i] = (struct peer_record){ .unit = unit, .crc = ~g->crc, .bytes = g->bytes };
	memcpy(rec[i].id, s->s.id, SESSION_ID);
	wr.far = in->addr + i * sizeof(*rec);
	wr.rkey = in->rkey;
	ret = peer_credit(s->p, hawk_peer_deadline(STALL_MS));
	return ret ? ret : peer_post(s->p, &wr, FAB_SLOTS, UINT64_MAX);
}

/* Where the bytes of @unit go. */
static int far_place(struct hawk_send *s, uint32_t unit, struct sending *g)
{
	bool staged = s->s.way == HAWK_WAY_RECEIVER;
	uint32_t id = staged ? s->stage : s->data;
	struct grant_in *in = id ? peer_grant_find(s->p, id) : NULL;
	uint64_t off = staged ? unit % SESSION_FRAMES * s->s.stage : 0;

	if (!in || in->revoked)
		return hawk_fail(-ESTALE, "session: the receiver has ended it");
	g->far_bytes = staged ? s->s.stage : s->s.dst.bytes;
	if (off > in->g.bytes || g->far_bytes > in->g.bytes - off)
		return peer_break(s->p, -EPROTO, "a grant of %llu bytes is too small",
				  (unsigned long long)in->g.bytes);
	g->far = in->addr + off;
	g->rkey = in->rkey;
	return 0;
}

/* Copies the unit into a staging frame that no request reads any more. */
static int stage(struct hawk_send *s, uint32_t unit, const struct hawk_route *rt,
		 struct sending *g)
{
	uint32_t f = unit % SESSION_FRAMES;
	uint8_t *frame = (uint8_t *)s->room->reg.p.addr + ROOM_FRAMES + f * s->s.stage;
	const struct hawk_blocks b = { .src = s->table, .src_count = s->table_count };
	const struct hawk_copy c = {
		.src = (uint8_t *)s->mem->reg.p.addr + s->off, .src_bytes = s->s.src.bytes,
		.dst = frame, .dst_bytes = s->s.stage, .blocks = &b, .flags = HAWK_COPY_CACHED,
	};
	int ret = 0;

	if (s->frame_seq[f]) {
		pthread_mutex_lock(&s->p->lock);
		ret = peer_drain(s->p, s->frame_seq[f] - 1, UINT64_MAX);
		pthread_mutex_unlock(&s->p->lock);
	}
	if (!ret)
		ret = hawk_layout_copy(rt->before, &c);
	g->near = frame;
	g->reg = &s->room->reg;
	g->base = s->room->reg.base + ROOM_FRAMES + f * s->s.stage;
	return ret;
}

/* All requests of a unit; the lock of the peer is held. */
static int post_unit(struct hawk_send *s, uint32_t unit, const struct hawk_route *rt,
		     struct sending *g)
{
	const struct hawk_blocks b = {
		.src = rt->before ? NULL : s->table, .src_count = rt->before ? 0 : s->table_count,
		.dst = rt->after ? NULL : s->far_table, .dst_count = rt->after ? 0 : s->far_count,
	};
	const struct hawk_requests q = {
		.blocks = &b, .entries = s->p->net->info.entries,
		.bytes = s->p->net->info.request_bytes, .post = post_request, .ctx = g,
	};
	int ret = far_place(s, unit, g);

	if (!ret)
		ret = hawk_layout_requests(rt->wire, &q);
	if (!ret)
		ret = post_record(s, unit, g);
	if (ret)
		return ret;
	s->frame_seq[unit % SESSION_FRAMES] = s->p->posted;
	s->state[unit] = UNIT_SENT;
	s->next += unit == s->next;
	s->bytes += g->bytes;
	return 0;
}

int sender_unit(struct hawk_send *s, uint32_t unit)
{
	struct sending g = {
		.s = s, .crc = ~0u, .near = (uint8_t *)s->mem->reg.p.addr + s->off,
		.reg = &s->mem->reg, .base = s->mem->reg.base + s->off,
	};
	struct hawk_route rt;
	int ret = session_route(&s->s, unit, &rt);

	if (ret)
		return ret;
	if (rt.before)
		ret = stage(s, unit, &rt, &g);
	if (!ret) {
		pthread_mutex_lock(&s->p->lock);
		ret = post_unit(s, unit, &rt, &g);
		pthread_mutex_unlock(&s->p->lock);
	}
	hawk_route_close(&rt);
	return ret;
}
