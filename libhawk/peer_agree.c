// SPDX-License-Identifier: MIT
/*
 * peer_agree.c - what a session's sender agrees on with the receiver: OFFER to READY
 *
 * What comes of it is worked out beside what there was before, and counts when it is whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer_send.h"

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

int sender_agree(struct hawk_send *s, uint64_t deadline)
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
