// SPDX-License-Identifier: MIT
/* server.c - libmicrohttpd: connections, bodies, routes, answers */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "http/http_priv.h"
#include "http/listen.h"
#include "log.h"

#define STATUS_CLIENT_GONE 499 /* for the log only */
#define BODY_PATIENCE	   4   /* bodies of so many times the limit are read */

static enum MHD_Result route_completions(struct call *c)
{
	return call_completion(c, false);
}

static enum MHD_Result route_chat(struct call *c)
{
	return call_completion(c, true);
}

/* @prefix: the rest of the path is an argument. @keyed: needs an API key. */
static const struct route {
	const char *method;
	const char *path;
	bool prefix;
	bool keyed;
	enum MHD_Result (*handle)(struct call *c);
} routes[] = {
	{ "POST", "/v1/completions", false, true, route_completions },
	{ "POST", "/v1/chat/completions", false, true, route_chat },
	{ "GET", "/v1/models", false, true, status_models },
	{ "GET", "/v1/models/", true, true, status_model },
	{ "GET", "/health", false, false, status_health },
	{ "GET", "/metrics", false, false, status_metrics },
};

void http_count_status(struct call *c, int status)
{
	enum metrics_counter m = status < 400 ? M_HTTP_2XX : status < 500 ? M_HTTP_4XX : M_HTTP_5XX;

	c->status = status;
	metrics_add(c->h->cfg.metrics, m, 1);
}

static enum MHD_Result http_queue(struct call *c, int status, const char *type, char *body,
				  size_t len, unsigned int retry_after_s, const char *allow)
{
	struct MHD_Response *r;
	enum MHD_Result ret;
	char text[16];

	r = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(body);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", type);
	if (allow)
		MHD_add_response_header(r, "Allow", allow);
	if (retry_after_s) {
		snprintf(text, sizeof(text), "%u", retry_after_s);
		MHD_add_response_header(r, "Retry-After", text);
	}
	if (status == 401)
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
	http_count_status(c, status);
	ret = MHD_queue_response(c->conn, status, r);
	MHD_destroy_response(r);
	return ret;
}

enum MHD_Result http_reply(struct call *c, int status, const char *type, char *body, size_t len)
{
	return http_queue(c, status, type, body, len, 0, NULL);
}

static enum MHD_Result queue_json(struct call *c, int status, json_t *o, unsigned int retry_after_s,
				  const char *allow)
{
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(7)) : NULL;

	json_decref(o);
	if (!text) {
		log_err("request %llx: out of memory for the answer", (unsigned long long)c->id);
		return MHD_NO;
	}
	return http_queue(c, status, "application/json", text, strlen(text), retry_after_s, allow);
}

enum MHD_Result http_reply_json(struct call *c, int status, json_t *o)
{
	return queue_json(c, status, o, 0, NULL);
}

enum MHD_Result http_reply_error(struct call *c, const struct api_error *e)
{
	if (e->status >= 500)
		log_warn("request %llx: %d %s: %s", (unsigned long long)c->id, e->status,
			 e->code ? e->code : "", e->message);
	return queue_json(c, e->status, body_error(e), e->retry_after_s, NULL);
}

static enum MHD_Result reply_wrong_method(struct call *c, const char *allow)
{
	struct api_error e;

	api_fail(&e, 405, "method_not_allowed", NULL, "%s is not allowed here, use %s", c->method,
		 allow);
	return queue_json(c, e.status, body_error(&e), 0, allow);
}

static enum MHD_Result reply_no_key(struct call *c)
{
	struct api_error e;

	api_fail(&e, 401, "invalid_api_key", NULL,
		 "a valid API key is needed: Authorization: Bearer KEY");
	e.type = "authentication_error";
	return http_reply_error(c, &e);
}

static bool method_fits(const struct route *r, const char *method)
{
	return !strcmp(r->method, method) || (!strcmp(r->method, "GET") && !strcmp(method, "HEAD"));
}

static enum MHD_Result dispatch(struct call *c)
{
	const struct route *r, *end = routes + sizeof(routes) / sizeof(routes[0]);
	struct api_error e;

	for (r = routes; r < end; r++)
		if (r->prefix ? !strncmp(c->url, r->path, strlen(r->path)) :
				!strcmp(c->url, r->path))
			break;
	if (r == end) {
		api_fail(&e, 404, "unknown_url", NULL, "there is nothing at %s", c->url);
		return http_reply_error(c, &e);
	}
	if (!method_fits(r, c->method))
		return reply_wrong_method(c, r->method);
	if (r->keyed &&
	    !auth_check(&c->h->cfg.auth,
			MHD_lookup_connection_value(c->conn, MHD_HEADER_KIND, "Authorization"),
			c->tenant))
		return reply_no_key(c);
	return r->handle(c);
}

static enum MHD_Result reply_too_large(struct call *c)
{
	struct api_error e;

	api_fail(&e, 413, "body_too_large", NULL, "the body has more than %zu bytes",
		 c->h->cfg.max_body);
	return http_reply_error(c, &e);
}

static bool announces_too_much(const struct call *c)
{
	const char *len = MHD_lookup_connection_value(c->conn, MHD_HEADER_KIND, "Content-Length");

	return len && strtoull(len, NULL, 10) > c->h->cfg.max_body;
}

static struct call *call_new(struct http *h, struct MHD_Connection *conn, const char *url,
			     const char *method)
{
	const union MHD_ConnectionInfo *ci;
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	ci = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	c->h = h;
	c->conn = conn;
	c->fd = ci ? ci->connect_fd : -1;
	c->efd = -1;
	c->id = atomic_fetch_add(&h->next_id, 1);
	c->arrival_ns = clock_now_ns();
	c->created = time(NULL);
	c->status = STATUS_CLIENT_GONE;
	c->method = method;
	snprintf(c->url, sizeof(c->url), "%s", url);
	return c;
}

/* Past the limit read on, for the client to hear why, but keep nothing. */
static enum MHD_Result take_body(struct call *c, const char *data, size_t len)
{
	c->body_bytes += len;
	if (c->body_bytes <= c->h->cfg.max_body)
		strbuf_add(&c->body, data, len);
	else
		strbuf_free(&c->body);
	return c->body_bytes > BODY_PATIENCE * c->h->cfg.max_body ? MHD_NO : MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **ctx)
{
	struct http *h = cls;
	struct call *c = *ctx;

	(void)version;
	if (!c) {
		c = call_new(h, conn, url, method);
		*ctx = c;
		if (!c)
			return MHD_NO;
		return announces_too_much(c) ? reply_too_large(c) : MHD_YES;
	}
	if (*len) {
		size_t n = *len;

		*len = 0;
		return take_body(c, data, n);
	}
	if (c->body_bytes > h->cfg.max_body)
		return reply_too_large(c);
	if (c->body.failed)
		return MHD_NO;
	pthread_mutex_lock(&h->lock);
	h->answering++;
	pthread_mutex_unlock(&h->lock);
	c->answering = true;
	return dispatch(c);
}

static void answered(struct http *h)
{
	pthread_mutex_lock(&h->lock);
	if (!--h->answering)
		pthread_cond_broadcast(&h->idle_cv);
	pthread_mutex_unlock(&h->lock);
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **ctx,
			 enum MHD_RequestTerminationCode why)
{
	struct call *c = *ctx;
	bool answering = c && c->answering;

	(void)conn;
	(void)why;
	*ctx = NULL;
	if (c)
		call_release(c);
	if (answering)
		answered(cls);
}

static void on_log(void *cls, const char *fmt, va_list ap)
{
	char msg[256];
	size_t n;

	(void)cls;
	vsnprintf(msg, sizeof(msg), fmt, ap);
	n = strlen(msg);
	while (n && msg[n - 1] == '\n')
		msg[--n] = '\0';
	log_warn("http: %s", msg);
}

static void lock_init(struct http *h)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&h->lock, NULL);
	pthread_mutex_init(&h->parse_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->idle_cv, &attr);
	pthread_condattr_destroy(&attr);
}

int http_start(const struct http_config *cfg, struct http **out, char err[HTTP_ERR_LEN])
{
	struct http *h;
	int ret;

	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	h->model_names[0] = cfg->model_name;
	h->cfg.env.model_names = h->model_names;
	atomic_init(&h->next_id, clock_now_ns());
	lock_init(h);
	ret = listen_open(cfg->listen, h->url, sizeof(h->url), err, HTTP_ERR_LEN);
	if (ret < 0)
		goto free_http;
	h->listen_fd = ret;
	if (!strncmp(cfg->listen, "unix:", 5))
		h->unix_path = cfg->listen + 5;
	h->mhd = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
					  MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG,
				  0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log,
				  NULL, MHD_OPTION_LISTEN_SOCKET, h->listen_fd,
				  MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
				  MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER_BYTES,
				  MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_S, MHD_OPTION_END);
	if (!h->mhd) {
		snprintf(err, HTTP_ERR_LEN, "cannot start the HTTP server on %s", h->url);
		ret = -EIO;
		goto close_listen;
	}
	*out = h;
	return 0;
close_listen:
	close(h->listen_fd);
free_http:
	free(h);
	return ret;
}

const char *http_url(const struct http *h)
{
	return h->url;
}

void http_quiesce(struct http *h)
{
	MHD_socket fd = MHD_quiesce_daemon(h->mhd);

	if (fd != MHD_INVALID_SOCKET)
		close(fd);
	if (h->unix_path)
		unlink(h->unix_path);
}

void http_drain(struct http *h, uint64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = deadline_ns / NS_PER_SEC,
		.tv_nsec = deadline_ns % NS_PER_SEC,
	};

	pthread_mutex_lock(&h->lock);
	while (h->answering && !pthread_cond_timedwait(&h->idle_cv, &h->lock, &until))
		;
	pthread_mutex_unlock(&h->lock);
}

void http_stop(struct http *h)
{
	MHD_stop_daemon(h->mhd);
	pthread_cond_destroy(&h->idle_cv);
	pthread_mutex_destroy(&h->parse_lock);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
