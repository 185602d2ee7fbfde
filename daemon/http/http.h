/* SPDX-License-Identifier: MIT */
/* http.h - the OpenAI-compatible HTTP server */
#ifndef HAWKD_HTTP_H
#define HAWKD_HTTP_H

#include "http/auth.h"
#include "http/params.h"
#include "kv/kv.h"
#include "metrics/metrics.h"
#include "sched/sched.h"

#define HTTP_ERR_LEN 256

/**
 * struct http_config - what the server needs to know
 * @listen: "ADDRESS:PORT", "[IPv6]:PORT", or "unix:PATH"; port 0 lets the system choose
 * @model_name: name under which the model is served
 * @max_body: bytes of a request body at most
 * @env: what requests are checked against
 */
struct http_config {
	const char *listen;
	const char *model_name;
	size_t max_body;
	struct params_env env;
	struct auth auth;
	struct sched *sched;
	struct kv *kv;
	struct metrics *metrics;
};

struct http;

/**
 * http_start() - listen and serve
 * @err: on failure, one line naming the cause
 * Return: 0 or a negative errno.
 */
int http_start(const struct http_config *cfg, struct http **out, char err[HTTP_ERR_LEN]);

/** http_url() - where it listens, with the real port */
const char *http_url(const struct http *h);

/** http_quiesce() - accept no more connections; open ones go on */
void http_quiesce(struct http *h);

/**
 * http_drain() - wait until every request that has come in whole is answered to its end
 * @deadline_ns: CLOCK_MONOTONIC, nanoseconds
 *
 * The scheduler being done is not enough: what it has finished may not be sent yet.
 */
void http_drain(struct http *h, uint64_t deadline_ns);

/** http_stop() - end all connections and free; the scheduler has been stopped */
void http_stop(struct http *h);

#endif
