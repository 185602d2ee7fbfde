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

#include "peer_send.h"

#define AGAIN_MAX	16u		/* units that may be bad, of a session */
#define LISTEN_NS	2000000u	/* for answers, before looking for layers again */

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
			ret = sender_unit(s, unit);
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
	if (!p->mem->reg.p.addr || p->mem->reg.p.flags & (HAWK_MEM_DEVICE | HAWK_MEM_BOUNCE))
		return hawk_fail(-EOPNOTSUPP, "session: checksums need memory that the CPU can read, sending memory that a NIC reaches");
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
	ret = sender_agree(s, hawk_peer_deadline(timeout_ms));
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
