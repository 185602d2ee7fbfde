// SPDX-License-Identifier: MIT
/* call.c - a completion: submit its sequences, collect what they produce */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "http/http_priv.h"
#include "log.h"

#define PARSE_TOGETHER (64u << 10) /* bytes of a body that is parsed beside others */
#define PARSE_TRIM     (1u << 20)  /* and of one whose memory goes back to the system */

static int fail_internal(struct api_error *e, int ret)
{
	return api_fail(e, 500, "internal_error", NULL, "internal error: %s", strerror(-ret));
}

static int call_make_choice(struct call *c, uint32_t i, const uint8_t root[KV_KEY_BYTES])
{
	const struct tok *tok = c->h->cfg.env.tok;
	struct params_prompt *pr = &c->p.prompt[i];
	struct choice *ch = &c->choice[i];
	int ret;

	ret = req_create(pr->n, c->p.max_tokens, &ch->req);
	if (ret)
		return ret;
	memcpy(ch->req->tokens, pr->ids, pr->n * sizeof(*pr->ids));
	memcpy(ch->req->root, root, KV_KEY_BYTES);
	ch->req->ops = pr->ops;
	ch->req->n_ops = pr->n_ops;
	pr->ops = NULL;
	ch->req->speculate = c->p.speculate;
	ch->req->sparse = c->p.sparse;
	ch->req->stops = c->p.stops;
	ch->req->at_start = c->p.at_start;
	ch->req->arrival_ns = c->arrival_ns;
	ch->req->efd = fcntl(c->efd, F_DUPFD_CLOEXEC, 0);
	if (ch->req->efd < 0)
		return -errno;
	ret = req_prepare(ch->req, tok, &c->p.sample);
	if (ret)
		return ret;
	return text_init(&ch->text, tok, &ch->req->stops, c->p.at_start);
}

/* Sequences share KV only inside a tenant: same API key, same salt. */
static int call_root(struct call *c, uint8_t root[KV_KEY_BYTES])
{
	uint8_t tenant[AUTH_HASH_BYTES + PARAMS_SALT_MAX];

	memcpy(tenant, c->tenant, AUTH_HASH_BYTES);
	memcpy(tenant + AUTH_HASH_BYTES, c->p.salt, c->p.salt_len);
	return kv_root(c->h->cfg.kv, tenant, AUTH_HASH_BYTES + c->p.salt_len, root);
}

static int call_submit(struct call *c, struct api_error *e)
{
	struct req *reqs[PARAMS_PROMPTS_MAX];
	uint8_t root[KV_KEY_BYTES];
	uint32_t i;
	int ret;

	c->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->efd < 0)
		return fail_internal(e, -errno);
	c->choice = calloc(c->p.n_prompts, sizeof(*c->choice));
	if (!c->choice)
		return fail_internal(e, -ENOMEM);
	c->n = c->p.n_prompts;
	ret = call_root(c, root);
	if (ret)
		return fail_internal(e, ret);
	for (i = 0; i < c->n; i++) {
		ret = call_make_choice(c, i, root);
		if (ret)
			return fail_internal(e, ret);
		reqs[i] = c->choice[i].req;
	}
	ret = sched_submit(c->h->cfg.sched, reqs, c->n);
	if (ret == -EBUSY)
		api_fail(e, 503, "overloaded", NULL, "the queue is full, try again later");
	else if (ret)
		api_fail(e, 503, "shutting_down", NULL, "the server is shutting down");
	e->retry_after_s = 1;
	return ret ? -1 : 0;
}

static void call_cancel(struct call *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		if (c->choice[i].req)
			sched_cancel(c->h->cfg.sched, c->choice[i].req);
}

/* The time spent waiting for the scheduler is not the client's silence. */
static void call_set_timeout(struct call *c, unsigned int seconds)
{
	MHD_set_connection_option(c->conn, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

int call_wait(struct call *c)
{
	struct pollfd fds[2] = {
		{ .fd = c->efd, .events = POLLIN },
		{ .fd = c->fd, .events = POLLRDHUP },
	};
	uint64_t count;

	call_set_timeout(c, 0);
	while (poll(fds, 2, -1) < 0) {
		if (errno == EINTR)
			continue;
		log_err("poll: %s", strerror(errno));
		call_cancel(c);
		return -1;
	}
	call_set_timeout(c, HTTP_IDLE_S);
	if (fds[1].revents) {
		call_cancel(c);
		return -1;
	}
	if (fds[0].revents && read(c->efd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_err("eventfd: %s", strerror(errno));
	return 0;
}

void call_drain(struct choice *ch)
{
	/* State first: when it says "ended", n_out is final. */
	bool ended = req_ended(ch->req);
	uint32_t n = atomic_load_explicit(&ch->req->n_out, memory_order_acquire);

	while (ch->seen < n) {
		char *to = strbuf_reserve(&ch->out, text_push_max(&ch->text));
		int32_t token = ch->req->tokens[ch->req->n_prompt + ch->seen++];

		if (to)
			ch->out.n += text_push(&ch->text, token, to);
	}
	if (ended && !ch->done) {
		char *to = strbuf_reserve(&ch->out, text_push_max(&ch->text));

		if (to)
			ch->out.n += text_flush(&ch->text, to);
		ch->done = true;
	}
}

bool call_all_done(const struct call *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		if (!c->choice[i].done)
			return false;
	return true;
}

static void failure_of(const struct req *r, struct api_error *e)
{
	switch (r->error) {
	case -ENOSPC:
		api_fail(e, 503, "kv_no_room", NULL, "%s; try again later", r->error_text);
		e->retry_after_s = 1;
		break;
	case -E2BIG: api_fail(e, 503, "kv_too_small", NULL, "%s", r->error_text); break;
	case -ESHUTDOWN:
		api_fail(e, 503, "shutting_down", NULL, "%s", r->error_text);
		e->retry_after_s = 1;
		break;
	default: api_fail(e, 500, "internal_error", NULL, "%s", r->error_text);
	}
}

bool call_failure(const struct call *c, struct api_error *e)
{
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		struct req *r = c->choice[i].req;

		if (req_state(r) == REQ_FAILED) {
			failure_of(r, e);
			return true;
		}
		if (c->choice[i].out.failed) {
			fail_internal(e, -ENOMEM);
			return true;
		}
	}
	return false;
}

static bool call_any_news(struct call *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		struct choice *ch = &c->choice[i];

		if (req_ended(ch->req) || atomic_load(&ch->req->n_out) > 0)
			return true;
	}
	return false;
}

static enum MHD_Result call_collect(struct call *c)
{
	struct api_error e;
	uint32_t i;

	for (;;) {
		for (i = 0; i < c->n; i++)
			call_drain(&c->choice[i]);
		if (call_failure(c, &e)) {
			call_cancel(c);
			return http_reply_error(c, &e);
		}
		if (call_all_done(c))
			break;
		if (call_wait(c))
			return MHD_NO;
	}
	return http_reply_json(c, 200, body_completion(c));
}

/* The status goes out with the first byte, so wait until admission is decided. */
static enum MHD_Result call_stream(struct call *c)
{
	struct api_error e;

	while (!call_any_news(c))
		if (call_wait(c))
			return MHD_NO;
	if (call_failure(c, &e)) {
		call_cancel(c);
		return http_reply_error(c, &e);
	}
	return stream_start(c);
}

/*
 * As JSON a body takes up to 80 times its size (an array of empty objects), so large ones
 * are taken one at a time.
 */
static int call_parse(struct call *c, bool chat, struct api_error *e)
{
	bool large = c->body.n > PARSE_TOGETHER;
	int ret;

	if (large)
		pthread_mutex_lock(&c->h->parse_lock);
	ret = params_parse(&c->h->cfg.env, chat, c->body.s ? c->body.s : "", c->body.n, &c->p, e);
	if (c->body.n > PARSE_TRIM) /* or each thread's arena might keep as much */
		malloc_trim(0);
	if (large)
		pthread_mutex_unlock(&c->h->parse_lock);
	return ret;
}

enum MHD_Result call_completion(struct call *c, bool chat)
{
	struct api_error e;

	if (call_parse(c, chat, &e))
		return http_reply_error(c, &e);
	strbuf_free(&c->body);
	if (call_submit(c, &e))
		return http_reply_error(c, &e);
	return c->p.stream ? call_stream(c) : call_collect(c);
}

static void call_log(const struct call *c)
{
	uint32_t prompt = 0, dram = 0, flash = 0, out = 0, i;

	if (c->n == 0)
		return;
	for (i = 0; i < c->n; i++) {
		struct req *r = c->choice[i].req;

		if (!r || req_state(r) < REQ_RUNNING)
			continue;
		prompt += r->n_prompt;
		dram += r->tokens_dram;
		flash += r->tokens_flash;
		out += c->choice[i].seen;
	}
	log_info(
		"request %llx %s: status %d, prompt %u tokens (%u from DRAM, %u from flash), %u generated, %.1f ms",
		(unsigned long long)c->id, c->url, c->status, prompt, dram, flash, out,
		(double)(clock_now_ns() - c->arrival_ns) / NS_PER_MSEC);
}

void call_release(struct call *c)
{
	uint32_t i;

	call_cancel(c);
	call_log(c);
	for (i = 0; i < c->n; i++) {
		req_put(c->choice[i].req);
		text_free(&c->choice[i].text);
		strbuf_free(&c->choice[i].out);
	}
	free(c->choice);
	if (c->efd >= 0)
		close(c->efd);
	params_free(&c->p);
	strbuf_free(&c->chunk);
	strbuf_free(&c->body);
	free(c);
}
