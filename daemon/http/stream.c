// SPDX-License-Identifier: MIT
/*
 * stream.c - server-sent events: "data: {json}\n\n" per piece, "data: [DONE]"
 * at the end.  Runs in the connection's thread, pulled by libmicrohttpd, so a
 * slow client slows only itself: tokens wait in the request's own array.
 */
#include <stdlib.h>
#include <string.h>

#include "http/http_priv.h"

#define STREAM_BLOCK (16u << 10) /* bytes asked for at a time */

static void stream_event(struct call *c, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(7));

	json_decref(o);
	if (!text) {
		c->chunk.failed = true;
		return;
	}
	strbuf_adds(&c->chunk, "data: ");
	strbuf_adds(&c->chunk, text);
	strbuf_adds(&c->chunk, "\n\n");
	free(text);
}

/* Events of one choice since the last call. */
static void stream_choice(struct call *c, uint32_t i)
{
	struct choice *ch = &c->choice[i];
	bool role = !c->started && c->p.chat;
	uint32_t first = ch->seen;

	if (ch->finish_sent)
		return;
	call_drain(ch);
	if (role || ch->out.n || ch->done || (c->p.return_token_ids && ch->seen > first))
		stream_event(c, body_chunk(c, i, first, role, ch->done));
	ch->out.n = 0;
	ch->finish_sent = ch->done;
}

static void stream_end(struct call *c)
{
	if (c->p.include_usage)
		stream_event(c, body_usage_chunk(c));
	strbuf_adds(&c->chunk, "data: [DONE]\n\n");
	c->finished = true;
}

/* Fill c->chunk; it stays empty when there is nothing new. */
static void stream_fill(struct call *c)
{
	struct api_error e;
	uint32_t i;

	if (call_failure(c, &e)) {
		stream_event(c, body_error(&e));
		strbuf_adds(&c->chunk, "data: [DONE]\n\n");
		c->finished = true;
		return;
	}
	for (i = 0; i < c->n; i++)
		stream_choice(c, i);
	c->started = true;
	if (call_all_done(c))
		stream_end(c);
}

static ssize_t stream_read(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct call *c = cls;
	size_t n;

	(void)pos;
	while (c->chunk_pos == c->chunk.n) {
		c->chunk_pos = c->chunk.n = 0;
		if (c->finished)
			return MHD_CONTENT_READER_END_OF_STREAM;
		stream_fill(c);
		if (c->chunk.failed || (c->chunk.n == 0 && call_wait(c)))
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	n = c->chunk.n - c->chunk_pos;
	if (n > max)
		n = max;
	memcpy(buf, c->chunk.s + c->chunk_pos, n);
	c->chunk_pos += n;
	return n;
}

enum MHD_Result stream_start(struct call *c)
{
	struct MHD_Response *r;
	enum MHD_Result ret;

	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, c, NULL);
	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", "text/event-stream; charset=utf-8");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	http_count_status(c, 200);
	ret = MHD_queue_response(c->conn, 200, r);
	MHD_destroy_response(r);
	return ret;
}
