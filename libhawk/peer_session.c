// SPDX-License-Identifier: MIT
/*
 * peer_session.c - what both sides of a session work out in the same way
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer_session.h"

/* A layout that has come over the network, or from a caller: checked, worked out. */
int session_layout(struct hawk_layout *l, const struct hawk_layout *from)
{
	*l = *from;
	if (l->order[sizeof(l->order) - 1] || l->reserved)
		return hawk_fail(-EINVAL, "session: a layout that makes no sense");
	return hawk_layout_init(l);
}

/* The layers that both sides have, of those wanted; chunks of them. */
int session_layers(struct session *s)
{
	uint32_t first = s->src.layer_first, end = first + s->src.layers, other;

	if (s->dst.layer_first > first)
		first = s->dst.layer_first;
	other = s->dst.layer_first + s->dst.layers;
	if (other < end)
		end = other;
	if (s->range.layers) {
		if (s->range.layers > UINT32_MAX - s->range.layer_first)
			return hawk_fail(-EINVAL, "session: layers from %u on", s->range.layer_first);
		other = s->range.layer_first + s->range.layers;
		if (s->range.layer_first > first)
			first = s->range.layer_first;
		if (other < end)
			end = other;
	}
	if (first >= end)
		return hawk_fail(-ENOENT, "session: the two sides have no layer in common");
	if (!s->range.tokens || s->range.tokens > UINT32_MAX - s->range.token_first)
		return hawk_fail(-EINVAL, "session: %u tokens from %u on", s->range.tokens,
				 s->range.token_first);
	s->range.layer_first = first;
	s->range.layers = end - first;
	if (!s->chunk_layers || s->chunk_layers > s->range.layers)
		s->chunk_layers = s->range.layers;
	s->chunks = (s->range.layers + s->chunk_layers - 1) / s->chunk_layers;
	return 0;
}

static uint64_t common_multiple(uint32_t a, uint32_t b)
{
	uint32_t x = a, y = b, t;

	for (; y; t = x % y, x = y, y = t)
		;
	return (uint64_t)a / x * b;
}

/* Tokens of a unit: whole blocks of both sides, so that nothing is padded in between. */
static int token_step(struct session *s, uint64_t frame_bytes)
{
	uint64_t blocks = common_multiple(s->src.block_tokens, s->dst.block_tokens);
	uint64_t token = (uint64_t)s->chunk_layers * s->src.planes * s->src.heads * s->src.dim *
			 s->src.elem_bytes;
	uint64_t step = frame_bytes / (token ? token : 1) / blocks * blocks;
	uint64_t first = s->range.token_first / blocks * blocks;
	uint64_t all = (uint64_t)s->range.token_first + s->range.tokens - first;

	if (step < blocks)
		step = blocks;
	if (step > all)
		step = (all + blocks - 1) / blocks * blocks;
	if (step > UINT32_MAX)
		return hawk_fail(-EINVAL, "session: blocks of %u and %u tokens", s->src.block_tokens,
				 s->dst.block_tokens);
	s->step = (uint32_t)step;
	s->pieces = (uint32_t)((all + step - 1) / step);
	return 0;
}

/* The largest staging frame: that of a unit with all tokens, or of the only one. */
static int stage_size(struct session *s)
{
	uint32_t u, tries = s->pieces < 3 ? s->pieces : 3;
	struct hawk_route rt;
	int ret;

	s->stage = 0;
	for (u = 0; u < tries; u++) {
		ret = session_route(s, u, &rt);
		if (ret)
			return ret;
		if ((rt.before || rt.after) && rt.stage.bytes > s->stage)
			s->stage = rt.stage.bytes;
		hawk_route_close(&rt);
	}
	s->stage = (s->stage + 4095) & ~(uint64_t)4095;
	return 0;
}

/* Cuts what is sent into units for a way; checks that it can be gone. */
int session_cut(struct session *s, unsigned int way, uint64_t frame_bytes)
{
	bool staged = way == HAWK_WAY_SENDER || way == HAWK_WAY_RECEIVER;
	int ret;

	if (way == HAWK_WAY_KEYS)
		return hawk_fail(-EOPNOTSUPP, "session: strided keys: of no NIC's driver that the library knows");
	s->way = way;
	s->step = 0;
	s->pieces = 1;
	ret = staged ? token_step(s, frame_bytes) : 0;
	if (ret)
		return ret;
	if (s->pieces > SESSION_UNITS / s->chunks)
		return hawk_fail(-E2BIG, "session: %u chunks of %u frames: larger frames would do",
				 s->chunks, s->pieces);
	s->units = s->chunks * s->pieces;
	return stage_size(s);
}

/* The layers and tokens of a unit. */
void session_range(const struct session *s, uint32_t unit, struct hawk_range *r)
{
	uint32_t chunk = unit / s->pieces, piece = unit % s->pieces;
	uint64_t blocks = common_multiple(s->src.block_tokens, s->dst.block_tokens);
	uint64_t end = (uint64_t)s->range.token_first + s->range.tokens;
	uint64_t from = s->range.token_first, to = end;

	*r = s->range;
	r->layer_first += chunk * s->chunk_layers;
	r->layers -= chunk * s->chunk_layers;
	if (r->layers > s->chunk_layers)
		r->layers = s->chunk_layers;
	if (s->step) {
		to = from / blocks * blocks + (uint64_t)(piece + 1) * s->step;
		if (piece)
			from = to - s->step;
		if (to > end)
			to = end;
	}
	r->token_first = (uint32_t)from;
	r->tokens = (uint32_t)(to - from);
}

/* The plans of a unit. */
int session_route(const struct session *s, uint32_t unit, struct hawk_route *rt)
{
	struct hawk_range r;

	session_range(s, unit, &r);
	return hawk_route_open(&s->src, &s->dst, &r, s->way, rt);
}

/* The next message of the other side's while a session is agreed on. */
int session_await(struct hawk_peer *p, enum peer_msg_type type, void *body, size_t len,
		  uint64_t deadline)
{
	int ret;

	while (!p->box.type) {
		ret = peer_wait(p, deadline);
		if (ret == -ETIME)
			return hawk_fail(ret, "session: the peer does not answer");
		if (ret)
			return ret;
	}
	if (p->box.type != type)
		return peer_break(p, -EPROTO, "message of type %u, %u was expected", p->box.type, type);
	memcpy(body, p->box.body, len);
	p->box.type = 0;
	return 0;
}

/* Memory of a session's own, registered. */
int session_room(struct hawk_net *net, uint64_t bytes, struct hawk_mem **mem)
{
	struct hawk_mem_params p = { .bytes = bytes, .dmabuf = -1 };
	int ret;

	if (bytes > SIZE_MAX / 2 || posix_memalign(&p.addr, 4096, (size_t)bytes))
		return hawk_fail(-ENOMEM, "session: %llu bytes", (unsigned long long)bytes);
	memset(p.addr, 0, (size_t)bytes);
	ret = hawk_mem_add(net, &p, mem);
	if (ret)
		free(p.addr);
	return ret;
}

void session_room_end(struct hawk_mem *mem)
{
	void *addr = mem ? mem->reg.p.addr : NULL;

	hawk_mem_del(mem);
	free(addr);
}
