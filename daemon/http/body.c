// SPDX-License-Identifier: MIT
/* body.c - the JSON of answers, in OpenAI's form */
#include <string.h>

#include "clock.h"
#include "http/http_priv.h"

json_t *body_error(const struct api_error *e)
{
	return json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", e->message, "type",
			 e->type, "param", e->param, "code", e->code);
}

/* The text is valid UTF-8 by construction (tok_stream). */
static json_t *body_text(const struct strbuf *b)
{
	return json_stringn(b->n ? b->s : "", b->n);
}

static json_t *body_ids(const int32_t *ids, uint32_t n)
{
	json_t *a = json_array();
	uint32_t i;

	for (i = 0; a && i < n; i++)
		json_array_append_new(a, json_integer(ids[i]));
	return a;
}

static json_t *body_finish(const struct req *r)
{
	return json_string(r->finish == REQ_FINISH_STOP ? "stop" : "length");
}

struct usage {
	uint32_t prompt;
	uint32_t dram;
	uint32_t flash;
	uint32_t skipped;
	uint32_t dropped;
	uint32_t shifted;
	uint32_t out;
	struct reads reads;
	uint64_t first_ns;
	uint64_t last_ns;
};

static struct usage usage_sum(const struct call *c)
{
	struct usage u = { .first_ns = UINT64_MAX };
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		const struct req *r = c->choice[i].req;

		u.prompt += r->n_prompt;
		u.dram += r->tokens_dram;
		u.flash += r->tokens_flash;
		u.skipped += r->tokens_skipped;
		u.dropped += hist_dropped(r->ops, r->n_ops);
		u.shifted += hist_shifted(r->ops, r->n_ops, r->n_prompt);
		u.out += c->choice[i].seen;
		u.reads.steps += r->reads.steps;
		u.reads.read += r->reads.read;
		u.reads.visible += r->reads.visible;
		if (r->first_ns < u.first_ns)
			u.first_ns = r->first_ns;
		if (r->last_ns > u.last_ns)
			u.last_ns = r->last_ns;
	}
	return u;
}

static json_t *body_usage(const struct call *c)
{
	struct usage u = usage_sum(c);

	return json_pack("{s:i, s:i, s:i, s:{s:i}}", "prompt_tokens", (int)u.prompt,
			 "completion_tokens", (int)u.out, "total_tokens", (int)(u.prompt + u.out),
			 "prompt_tokens_details", "cached_tokens", (int)(u.dram + u.flash));
}

/*
 * Our own figures: where the prompt's KV came from (skipped: dropped, and not even
 * looked for), what of the prompt the answer sees, milliseconds to the first token,
 * and tokens per second after it; of sparse requests, blocks of a step.
 */
static json_t *body_hawk(const struct call *c)
{
	struct usage u = usage_sum(c);
	uint64_t span = u.last_ns - u.first_ns;
	uint32_t later = u.out > c->n ? u.out - c->n : 0;

	double steps = u.reads.steps ? u.reads.steps : 1;
	json_t *o;

	o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f}", "tokens_dram", (int)u.dram,
		      "tokens_flash", (int)u.flash, "tokens_skipped", (int)u.skipped,
		      "tokens_recomputed", (int)(u.prompt - u.dram - u.flash - u.skipped),
		      "tokens_kept", (int)(u.prompt - u.dropped), "tokens_dropped", (int)u.dropped,
		      "tokens_shifted", (int)u.shifted, "ttft_ms",
		      (double)(u.first_ns - c->arrival_ns) / NS_PER_MSEC, "tokens_per_s",
		      span ? later * (double)NS_PER_SEC / span : 0.0);
	if (c->p.sparse.window)
		json_object_set_new(o, "sparse",
				    json_pack("{s:f, s:f}", "blocks_read", u.reads.read / steps,
					      "blocks_visible", u.reads.visible / steps));
	return o;
}

static json_t *body_head(const struct call *c, const char *object)
{
	char id[40];

	snprintf(id, sizeof(id), "%s-%016llx", c->p.chat ? "chatcmpl" : "cmpl",
		 (unsigned long long)c->id);
	return json_pack("{s:s, s:s, s:I, s:s}", "id", id, "object", object, "created",
			 (json_int_t)c->created, "model", c->h->cfg.model_name);
}

static void body_add_ids(const struct call *c, const struct choice *ch, uint32_t first, json_t *o)
{
	const struct req *r = ch->req;

	if (!c->p.return_token_ids)
		return;
	if (first == 0)
		json_object_set_new(o, "prompt_token_ids", body_ids(r->tokens, r->n_prompt));
	json_object_set_new(o, "token_ids",
			    body_ids(r->tokens + r->n_prompt + first, ch->seen - first));
}

static json_t *body_choice(const struct call *c, uint32_t i)
{
	const struct choice *ch = &c->choice[i];
	json_t *o = json_pack("{s:i, s:n, s:o}", "index", (int)i, "logprobs", "finish_reason",
			      body_finish(ch->req));

	if (c->p.chat)
		json_object_set_new(o, "message",
				    json_pack("{s:s, s:o}", "role", "assistant", "content",
					      body_text(&ch->out)));
	else
		json_object_set_new(o, "text", body_text(&ch->out));
	body_add_ids(c, ch, 0, o);
	return o;
}

json_t *body_completion(const struct call *c)
{
	json_t *o = body_head(c, c->p.chat ? "chat.completion" : "text_completion");
	json_t *choices = json_array();
	uint32_t i;

	for (i = 0; i < c->n; i++)
		json_array_append_new(choices, body_choice(c, i));
	json_object_set_new(o, "choices", choices);
	json_object_set_new(o, "usage", body_usage(c));
	json_object_set_new(o, "hawk", body_hawk(c));
	return o;
}

static json_t *body_delta(const struct choice *ch, bool role)
{
	json_t *d = json_object();

	if (role)
		json_object_set_new(d, "role", json_string("assistant"));
	if (role || ch->out.n)
		json_object_set_new(d, "content", body_text(&ch->out));
	return d;
}

json_t *body_chunk(const struct call *c, uint32_t i, uint32_t first_token, bool role, bool last)
{
	const struct choice *ch = &c->choice[i];
	json_t *o = body_head(c, c->p.chat ? "chat.completion.chunk" : "text_completion");
	json_t *co = json_pack("{s:i, s:n, s:o}", "index", (int)i, "logprobs", "finish_reason",
			       last ? body_finish(ch->req) : json_null());

	if (c->p.chat)
		json_object_set_new(co, "delta", body_delta(ch, role));
	else
		json_object_set_new(co, "text", body_text(&ch->out));
	body_add_ids(c, ch, first_token, co);
	json_object_set_new(o, "choices", json_pack("[o]", co));
	if (c->p.include_usage)
		json_object_set_new(o, "usage", json_null());
	return o;
}

json_t *body_usage_chunk(const struct call *c)
{
	json_t *o = body_head(c, c->p.chat ? "chat.completion.chunk" : "text_completion");

	json_object_set_new(o, "choices", json_array());
	json_object_set_new(o, "usage", body_usage(c));
	json_object_set_new(o, "hawk", body_hawk(c));
	return o;
}
