/* SPDX-License-Identifier: MIT */
/*
 * http_priv.h - shared inside daemon/http
 *
 * Each connection has a thread (libmicrohttpd), so handlers may block.  A
 * struct call lives from the first header of a request to its completion and
 * belongs to that thread.
 */
#ifndef HAWKD_HTTP_PRIV_H
#define HAWKD_HTTP_PRIV_H

#include <microhttpd.h>
#include <pthread.h>

#include "http/http.h"
#include "http/strbuf.h"

#define HTTP_CONNECTIONS_MAX 256u
#define HTTP_HEADER_BYTES    (64u << 10) /* request line and headers of a connection */
#define HTTP_IDLE_S	     30u	 /* silence that ends a connection, seconds */

struct http {
	struct http_config cfg;
	struct MHD_Daemon *mhd;
	int listen_fd;
	const char *unix_path; /* to unlink at the end, or NULL */
	char url[128];
	_Atomic uint64_t next_id;
	const char *model_names[2];
	pthread_mutex_t lock;	/* guards @answering */
	pthread_cond_t idle_cv; /* @answering has become 0 */
	unsigned int answering; /* calls from their whole request to the end of their answer */
	pthread_mutex_t parse_lock; /* held while a large body is JSON; guards memory, no data */
};

/**
 * struct choice - one sequence of a call
 * @text: turns tokens into text
 * @seen: tokens taken from @req
 * @out: text (all of it, or since the last chunk when streaming)
 * @done: @req has ended and all of it is in @out
 */
struct choice {
	struct req *req;
	struct text text;
	uint32_t seen;
	struct strbuf out;
	bool done;
	bool finish_sent;
};

/**
 * struct call - one HTTP request
 * @fd: the connection's socket, to notice that the client went away
 * @efd: eventfd that the scheduler signals
 * @chunk: SSE bytes to send; @chunk_pos of them are sent
 */
struct call {
	struct http *h;
	struct MHD_Connection *conn;
	int fd;
	uint64_t id;
	uint64_t arrival_ns;
	int64_t created; /* UNIX time, seconds */
	int status;
	const char *method;
	char url[192];

	struct strbuf body;
	uint64_t body_bytes; /* received, kept or not */

	struct params p;
	uint8_t tenant[AUTH_HASH_BYTES];
	int efd;
	uint32_t n;
	struct choice *choice;

	struct strbuf chunk;
	size_t chunk_pos;
	bool started;
	bool finished;
	bool answering; /* counted in http.answering */
};

/* server.c */

/**
 * http_reply() - answer with bytes
 * @body: malloc()ed, freed by the reply
 */
enum MHD_Result http_reply(struct call *c, int status, const char *type, char *body, size_t len);
enum MHD_Result http_reply_json(struct call *c, int status, json_t *o);
enum MHD_Result http_reply_error(struct call *c, const struct api_error *e);
void http_count_status(struct call *c, int status);

/* call.c: the life of a completion */
enum MHD_Result call_completion(struct call *c, bool chat);
void call_release(struct call *c);

/**
 * call_wait() - wait for news from the scheduler
 * Return: 0, or -1 when the client has gone: its sequences are cancelled.
 */
int call_wait(struct call *c);

/** call_drain() - take the tokens that a choice has produced since */
void call_drain(struct choice *ch);

/** call_all_done() - has every choice ended? */
bool call_all_done(const struct call *c);

/** call_failure() - did a choice fail? @e: the error to report */
bool call_failure(const struct call *c, struct api_error *e);

/* body.c: the JSON of answers */
json_t *body_error(const struct api_error *e);
json_t *body_completion(const struct call *c);
json_t *body_chunk(const struct call *c, uint32_t i, uint32_t first_token, bool role, bool last);
json_t *body_usage_chunk(const struct call *c);

/* stream.c */
enum MHD_Result stream_start(struct call *c);

/* status.c */
enum MHD_Result status_models(struct call *c);
enum MHD_Result status_model(struct call *c);
enum MHD_Result status_health(struct call *c);
enum MHD_Result status_metrics(struct call *c);

#endif
