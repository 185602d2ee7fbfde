// SPDX-License-Identifier: MIT
/*
 * peer_send.c - the sender of a session
 *
 * A thread sends units as their layers are announced, so that the next layers can be computed
 * meanwhile; it copies into a staging frame while the NIC reads the other one.  The protocol is
 * in peer_session.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer_session.h"

#define AGAIN_MAX	16u		/* units that may be bad, of a session */
#define STALL_MS	30000		/* a receiver that does not listen */
#define LISTEN_NS	2000000u	/* for answers, before looking for layers again */

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

#define ROOM_ZEROES	(SESSION_RECORDS * sizeof(struct peer_record))
#define ROOM_FRAMES	8192u

/* ---- answers ---- */

/* UNIT or ACK has come; the lock of @p is held. */
int peer_send_message(struct hawk_peer *p, const struct peer_head *h)
{
	const struct peer_unit *m = (const void *)(h + 1);
	struct hawk_send *s = p->tx;

	if (!s || memcmp(m->id, s->s.id, SESSION_ID))
		return 0;	/* of a session that has been closed here */
	if (h->type == MSG_ACK) {
		s->acked = true;
		return 0;
	}
	if (m->unit >= s->s.units || s->state[m->unit] != UNIT_SENT)
		return peer_break(p, -EPROTO, "an answer to unit %u, which is not under way", m->unit);
	s->state[m->unit] = m->status ? UNIT_BAD : UNIT_DONE;
	while (s->first < s->s.units && s->state[s->first] == UNIT_DONE)
		s->first++;
	return 0;
}

/* ---- agreeing ---- */

/* The layers, which are the same as before if something was agreed on before; the way. */
static int choose(struct hawk_send *s, struct session *n)
{
	struct hawk_choice ch;
	int ret = session_layers(n);

	if (ret)
		return ret;
	if (s->state && (n->range.layer_first != s->s.range.layer_first ||
			 n->range.layers != s->s.range.layers))
		return hawk_fail(-EINVAL, "session: %u layers from %u on, %u from %u on were begun with: the receiver has others than the one before",
				 n->range.layers, n->range.layer_first, s->s.range.layers,
				 s->s.range.layer_first);
	if (s->want_way < HAWK_WAYS)
		return session_cut(n, s->want_way, s->frame_bytes);
	s->costs.frame_bytes = s->frame_bytes;
	s->costs.strips = 0;
	ret = hawk_layout_choose(&n->src, &n->dst, &n->range, &s->costs, &ch);
	return ret ? ret : session_cut(n, ch.way, s->frame_bytes);
}

/* The receiver's block table, out of his memory. */
static int read_table(struct hawk_send *s, const struct peer_accept *a, uint64_t deadline)
{
	struct grant_in *in = a->table_grant ? peer_grant_find(s->p, a->table_grant) : NULL;
	struct fab_sge sge;
	struct fab_wr wr = { .op = FAB_READ, .nsge = 1, .sge = &sge };
	uint64_t bytes = (uint64_t)a->table_count * 4, done;
	int ret;

	s->far_count = a->table_count;
	if (!a->table_count)
		return 0;
	if (a->table_count > SESSION_TABLE || !in || in->revoked || in->g.bytes < bytes)
		return peer_break(s->p, -EPROTO, "a block table of %u entries in grant %u",
				  a->table_count, a->table_grant);
	ret = session_room(s->p->net, bytes, &s->far_room);
	for (done = 0; !ret && done < bytes; done += sge.len) {
		sge = (struct fab_sge){ .addr = s->far_room->reg.base + done,
					.lkey = s->far_room->reg.lkey };
		sge.len = (uint32_t)(bytes - done < s->p->net->info.request_bytes ? bytes - done :
				     s->p->net->info.request_bytes);
		wr.far = in->addr + done;
		wr.rkey = in->rkey;
		wr.signaled = true;
		ret = peer_post(s->p, &wr, FAB_SLOTS, deadline);
	}
	if (!ret)
		ret = peer_drain(s->p, s->p->posted - 1, deadline);
	if (!ret)
		s->far_table = s->far_room->reg.p.addr;
	return ret;
}

static int check_grants(struct hawk_send *s, const struct session *n, const struct peer_accept *a)
{
	struct grant_in *data = a->data_grant ? peer_grant_find(s->p, a->data_grant) : NULL;
	struct grant_in *rec = a->record_grant ? peer_grant_find(s->p, a->record_grant) : NULL;

	if (!data || !rec || data->g.bytes < n->dst.bytes ||
	    rec->g.bytes < SESSION_RECORDS * sizeof(struct peer_record))
		return peer_break(s->p, -EPROTO, "the grants of a session are not there, or too small");
	s->data = a->data_grant;
	s->record = a->record_grant;
	return 0;
}

/* From here on @n counts: nothing of it is sent yet but @chunks, which are done. */
static int take_over(struct hawk_send *s, const struct session *n, uint32_t chunks)
{
	uint32_t done = chunks * n->pieces;
	uint8_t *state;

	if (chunks > n->chunks)
		return peer_break(s->p, -EPROTO, "the peer has %u of %u chunks", chunks, n->chunks);
	state = calloc(n->units, 1);
	if (!state)
		return hawk_fail(-ENOMEM, "session: %u units", n->units);
	memset(state, UNIT_DONE, done);
	free(s->state);
	s->state = state;
	s->s = *n;
	s->first = done;
	s->next = done;
	return 0;
}

static int begin(struct hawk_send *s, const struct peer_accept *a, uint64_t deadline)
{
	struct peer_begin b = { .frame_bytes = s->frame_bytes };
	struct session n = s->s;
	struct peer_ready r;
	int ret = session_layout(&n.dst, &a->dst);

	if (!ret)
		ret = choose(s, &n);
	if (!ret)
		ret = check_grants(s, &n, a);
	if (!ret)
		ret = read_table(s, a, deadline);
	if (!ret)
		ret = take_over(s, &n, a->chunks_done);
	memcpy(b.id, n.id, SESSION_ID);
	b.way = ret ? HAWK_WAYS : n.way;	/* HAWK_WAYS: there is nothing to begin */
	b.units = n.units;
	if (ret) {
		char why[256];

		snprintf(why, sizeof(why), "%s", hawk_strerror_last());
		peer_send(s->p, MSG_BEGIN, &b, sizeof(b), deadline);
		return s->p->st.broken ? ret : hawk_fail_as(ret, why);
	}
	ret = peer_send(s->p, MSG_BEGIN, &b, sizeof(b), deadline);
	if (!ret)
		ret = session_await(s->p, MSG_READY, &r, sizeof(r), deadline);
	if (ret)
		return ret;
	if (r.status)
		return hawk_fail(r.status < 0 && r.status > -4096 ? r.status : -EPROTO,
				 "session: the peer cannot begin");
	s->stage = r.stage_grant;
	return 0;
}

/* OFFER to READY; the lock of the peer is held. */
static int agree(struct hawk_send *s, uint64_t deadline)
{
	struct peer_offer o = { .tag = s->tag, .src = s->s.src, .range = s->s.range,
				.chunk_layers = s->s.chunk_layers };
	struct peer_accept a;
	int ret;

	if (s->p->tx)
		return hawk_fail(-EBUSY, "session: the peer is being sent something else");
	memcpy(o.id, s->s.id, SESSION_ID);
	ret = peer_send(s->p, MSG_OFFER, &o, sizeof(o), deadline);
	if (!ret)
		ret = session_await(s->p, MSG_ACCEPT, &a, sizeof(a), deadline);
	if (!ret && memcmp(a.id, s->s.id, SESSION_ID))
		ret = peer_break(s->p, -EPROTO, "an answer to another offer");
	if (!ret && a.status)
		ret = hawk_fail(a.status < 0 && a.status > -4096 ? a.status : -EPROTO,
				"session: the peer does not take it");
	if (!ret)
		ret = begin(s, &a, deadline);
	if (!ret)
		s->p->tx = s;
	return ret;
}

/* ---- units ---- */

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

static int send_unit(struct hawk_send *s, uint32_t unit)
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

/* ---- the thread ---- */

static bool announced(struct hawk_send *s, uint32_t unit)
{
	uint32_t chunk = unit / s->s.pieces, need = (chunk + 1) * s->s.chunk_layers;
	bool yes;

	if (need > s->s.range.layers)
		need = s->s.range.layers;
	pthread_mutex_lock(&s->lock);
	yes = s->layers >= need;
	if (yes && chunk == s->s.chunks - 1 && !s->last_chunk_ns)
		s->last_chunk_ns = hawk_mono_ns();
	pthread_mutex_unlock(&s->lock);
	return yes;
}

/* The unit to send now, or UINT32_MAX; takes what has come. */
static int pick(struct hawk_send *s, uint32_t *unit, bool *answers, bool *all)
{
	uint32_t u;
	int ret;

	*unit = UINT32_MAX;
	pthread_mutex_lock(&s->p->lock);
	ret = peer_progress(s->p);
	for (u = s->first; u < s->next && ret >= 0 && s->state[u] != UNIT_BAD; u++)
		;
	if (ret >= 0 && u < s->next) {
		*unit = u;
		ret = ++s->again > AGAIN_MAX ?
		      hawk_fail(-EIO, "session: %u units have not arrived as they were sent", s->again) : 0;
	} else if (s->next < s->s.units && s->next < s->first + session_window(&s->s)) {
		*unit = s->next;
	}
	*answers = s->first < s->next;
	*all = s->first == s->s.units;
	pthread_mutex_unlock(&s->p->lock);
	return ret < 0 ? ret : 0;
}

static void wait_for_layers(struct hawk_send *s, uint32_t had)
{
	pthread_mutex_lock(&s->lock);
	while (s->layers == had && !s->stop)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static bool stopped(struct hawk_send *s, uint32_t *layers)
{
	bool yes;

	pthread_mutex_lock(&s->lock);
	yes = s->stop;
	*layers = s->layers;
	pthread_mutex_unlock(&s->lock);
	return yes;
}

static int send_all(struct hawk_send *s)
{
	uint32_t unit, had;
	bool answers, all;
	int ret;

	for (;;) {
		if (stopped(s, &had))
			return hawk_fail(-ECANCELED, "session: it was ended here");
		ret = pick(s, &unit, &answers, &all);
		if (ret || all)
			return ret;
		if (unit != UINT32_MAX && announced(s, unit)) {
			ret = send_unit(s, unit);
			if (ret)
				return ret;
		} else if (answers) {
			pthread_mutex_lock(&s->p->lock);
			ret = peer_wait(s->p, hawk_mono_ns() + LISTEN_NS);
			pthread_mutex_unlock(&s->p->lock);
			if (ret && ret != -ETIME)
				return ret;
		} else {
			wait_for_layers(s, had);
		}
	}
}

/* It has ended, and if with an error, the calling thread knows the cause. */
static void set_over(struct hawk_send *s, int err)
{
	pthread_mutex_lock(&s->lock);
	s->err = err;
	if (err)
		snprintf(s->why, sizeof(s->why), "%s", hawk_strerror_last());
	s->over = true;
	s->over_ns = hawk_mono_ns();
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void *sender(void *arg)
{
	struct hawk_send *s = arg;

	set_over(s, send_all(s));
	return NULL;
}

static int start(struct hawk_send *s)
{
	int ret;

	s->stop = false;
	s->over = false;
	s->err = 0;
	s->last_chunk_ns = 0;
	memset(s->frame_seq, 0, sizeof(s->frame_seq));
	ret = pthread_create(&s->thread, NULL, sender, s);
	s->running = !ret;
	return ret ? hawk_fail(-ret, "session: a thread") : 0;
}

/* Ends the thread and whatever the NIC still does for it. */
static void halt(struct hawk_send *s)
{
	if (s->running) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	s->running = false;
	pthread_mutex_lock(&s->p->lock);
	if (!s->p->st.broken && s->p->posted)
		peer_drain(s->p, s->p->posted - 1, hawk_peer_deadline(PEER_HELLO_MS));
	if (s->p->tx == s)
		s->p->tx = NULL;
	pthread_mutex_unlock(&s->p->lock);
}

/* ---- calls ---- */

static int check_params(const struct hawk_peer *peer, const struct hawk_send_params *p)
{
	if (p->mem->net != peer->net || p->way > HAWK_WAYS || (p->way == HAWK_WAYS && !p->costs) ||
	    (!p->table && p->table_count) || p->table_count > SESSION_TABLE)
		return hawk_fail(-EINVAL, "session: way %u, %u blocks, or memory of another endpoint",
				 p->way, p->table_count);
	if (!p->mem->reg.p.addr || p->mem->reg.p.flags & HAWK_MEM_DEVICE)
		return hawk_fail(-EOPNOTSUPP, "session: checksums need memory that the CPU can read");
	return 0;
}

static int copy_params(struct hawk_send *s, const struct hawk_send_params *p)
{
	int ret = session_layout(&s->s.src, p->layout);

	if (ret)
		return ret;
	if (p->off > p->mem->reg.p.bytes || s->s.src.bytes > p->mem->reg.p.bytes - p->off)
		return hawk_fail(-ERANGE, "session: the layout takes %llu bytes from %llu on, the memory has %llu",
				 (unsigned long long)s->s.src.bytes, (unsigned long long)p->off,
				 (unsigned long long)p->mem->reg.p.bytes);
	s->mem = p->mem;
	s->off = p->off;
	s->tag = p->tag;
	s->want_way = p->way;
	if (p->costs)
		s->costs = *p->costs;
	s->frame_bytes = p->frame_bytes ? p->frame_bytes : 4u << 20;
	s->s.range = p->range;
	s->s.chunk_layers = p->chunk_layers ? p->chunk_layers : 16;
	randombytes_buf(s->s.id, sizeof(s->s.id));
	if (!p->table)
		return 0;
	s->table = malloc((size_t)p->table_count * 4 + 4);
	if (!s->table)
		return hawk_fail(-ENOMEM, "session: a block table");
	memcpy(s->table, p->table, (size_t)p->table_count * 4);
	s->table_count = p->table_count;
	return 0;
}

static void send_free(struct hawk_send *s)
{
	session_room_end(s->room);
	session_room_end(s->far_room);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->state);
	free(s->table);
	free(s);
}

/* Agrees with the peer, takes memory for frames, starts. */
static int set_out(struct hawk_send *s, int timeout_ms)
{
	int ret;

	session_room_end(s->far_room);
	s->far_room = NULL;
	s->far_table = NULL;
	session_room_end(s->room);
	s->room = NULL;
	pthread_mutex_lock(&s->p->lock);
	ret = agree(s, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&s->p->lock);
	if (!ret)
		ret = session_room(s->p->net, ROOM_FRAMES + (s->s.way == HAWK_WAY_SENDER ?
				   SESSION_FRAMES * s->s.stage : 0), &s->room);
	return ret ? ret : start(s);
}

int hawk_send_open(struct hawk_peer *peer, const struct hawk_send_params *p, int timeout_ms,
		   struct hawk_send **send)
{
	pthread_condattr_t attr;
	struct hawk_send *s;
	int ret = check_params(peer, p);

	if (ret)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return hawk_fail(-ENOMEM, "session: a sender");
	s->p = peer;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	ret = copy_params(s, p);
	if (!ret)
		ret = set_out(s, timeout_ms);
	if (ret) {
		halt(s);
		send_free(s);
		return ret;
	}
	*send = s;
	return 0;
}

int hawk_send_resume(struct hawk_send *s, struct hawk_peer *peer, int timeout_ms)
{
	int ret;

	if (s->mem->net != peer->net)
		return hawk_fail(-EINVAL, "session: a peer of another endpoint, which does not know the memory");
	halt(s);
	s->p = peer;
	s->acked = false;
	ret = set_out(s, timeout_ms);
	if (ret)
		set_over(s, ret);
	return ret;
}

int hawk_send_layers(struct hawk_send *s, uint32_t layers)
{
	int ret = 0;

	pthread_mutex_lock(&s->lock);
	if (layers > s->s.range.layers || layers < s->layers)
		ret = hawk_fail(-EINVAL, "session: %u layers of %u, after %u", layers,
				s->s.range.layers, s->layers);
	else
		s->layers = layers;
	if (s->layers == s->s.range.layers && !s->last_layer_ns)
		s->last_layer_ns = hawk_mono_ns();
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

int hawk_send_wait(struct hawk_send *s, int timeout_ms)
{
	uint64_t deadline = hawk_peer_deadline(timeout_ms);
	struct timespec ts = {
		.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u),
	};
	char why[sizeof(s->why)];
	int ret = 0;
	bool over;

	pthread_mutex_lock(&s->lock);
	while (!s->over && !ret)
		ret = timeout_ms < 0 ? pthread_cond_wait(&s->changed, &s->lock) :
				       pthread_cond_timedwait(&s->changed, &s->lock, &ts);
	over = s->over;
	ret = s->err;
	memcpy(why, s->why, sizeof(why));
	pthread_mutex_unlock(&s->lock);
	if (!over)
		return hawk_fail(-ETIME, "session: the receiver has not verified all yet");
	return ret ? hawk_fail_as(ret, why) : 0;
}

int hawk_send_kept(struct hawk_send *s)
{
	uint64_t over_ns;
	bool over;
	int ret = 0, err;

	pthread_mutex_lock(&s->lock);
	over = s->over && !s->err;
	err = s->over ? s->err : 0;
	over_ns = s->over_ns;
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&s->p->lock);
	while (over && !s->acked && ret >= 0) {
		ret = peer_progress(s->p);
		if (!ret)
			break;
	}
	if (s->acked && over)
		ret = hawk_mono_ns() - over_ns < HAWK_SEND_KEEP_MS * 1000000ull ? -EAGAIN : 0;
	else if (ret >= 0)
		ret = err ? err : -EAGAIN;
	pthread_mutex_unlock(&s->p->lock);
	return ret ? hawk_fail(ret, ret == -EAGAIN ? "session: the receiver may still need the copy" :
			       "session: the receiver is gone and has not decoded") : 0;
}

void hawk_send_info(struct hawk_send *s, struct hawk_send_info *info)
{
	uint32_t u;

	pthread_mutex_lock(&s->p->lock);
	*info = (struct hawk_send_info){
		.way = s->s.way, .units = s->s.units, .again = s->again, .bytes = s->bytes,
		.layers = s->s.range.layers,
	};
	for (u = 0; u < s->s.units; u++)
		info->done += s->state[u] == UNIT_DONE;
	pthread_mutex_unlock(&s->p->lock);
	pthread_mutex_lock(&s->lock);
	if (s->over && !s->err && s->over_ns > s->last_layer_ns)
		info->exposed_ns = s->over_ns - s->last_layer_ns;
	if (s->over && !s->err && s->last_chunk_ns)
		info->last_ns = s->over_ns - s->last_chunk_ns;
	pthread_mutex_unlock(&s->lock);
}

void hawk_send_close(struct hawk_send *s)
{
	if (!s)
		return;
	halt(s);
	send_free(s);
}
