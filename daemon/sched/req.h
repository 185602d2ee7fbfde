/* SPDX-License-Identifier: MIT */
/*
 * req.h - one sequence to generate: what an HTTP thread asks for and what the
 * scheduler answers
 *
 * Ownership: an HTTP thread makes the request and fills the input; after
 * sched_submit() the input is constant and the "run" part belongs to the
 * scheduler's threads.  The output goes one way: the scheduler writes a token,
 * then stores n_out (release); it writes the result, then stores state
 * (release); then it signals the eventfd.  Two references, the last one frees.
 *
 *	QUEUED -> ADMITTING -> RUNNING -> DONE
 *	   \________\____________\______> FAILED, CANCELLED
 */
#ifndef HAWKD_REQ_H
#define HAWKD_REQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "exec/sample.h"
#include "kv/kv.h"
#include "sched/reads.h"
#include "sched/spec.h"
#include "sched/text.h"

enum req_state { REQ_QUEUED, REQ_ADMITTING, REQ_RUNNING, REQ_DONE, REQ_FAILED, REQ_CANCELLED };

enum req_finish { REQ_FINISH_STOP, REQ_FINISH_LENGTH };

/**
 * struct req - a request for one sequence
 * @tokens: the prompt, then room for the output
 * @n_prompt: tokens of the prompt, at least 1
 * @max_tokens: tokens to generate at most, at least 1
 * @ops: operations on the cache, malloc()ed, @n_ops of them, as kv_seq_open() wants them
 * @speculate: speculation that was asked for
 * @sparse: what tokens attend to; a window of 0: to all
 * @stops: stop strings
 * @root: what KV keys start from, from kv_root()
 * @at_start: the output starts the text (empty prompt)
 * @arrival_ns: when the request arrived
 * @efd: eventfd of the waiting HTTP thread, our own descriptor of it
 *
 * @cancel: set by the HTTP thread; honoured at the next token
 * @cancel_ns: when
 *
 * @n_out: tokens generated
 * @state: enum req_state
 * @finish: enum req_finish, valid when DONE
 * @error: negative errno, valid when FAILED: -ENOSPC no KV room, -ESHUTDOWN, ...
 * @error_text: its cause in words
 * @tokens_dram, @tokens_flash: prompt tokens found in cache, valid when RUNNING
 * @tokens_skipped: prompt tokens that were dropped and not needed, valid when RUNNING
 * @reads: what a sparse sequence has read, valid when DONE
 * @admit_ns, @first_ns, @last_ns: admission, first and latest token
 */
struct req {
	int32_t *tokens;
	uint32_t n_prompt;
	uint32_t max_tokens;
	struct hist_op *ops;
	uint32_t n_ops;
	struct spec_params speculate;
	struct exec_sparse sparse;
	struct text_stops stops;
	uint8_t root[KV_KEY_BYTES];
	bool at_start;
	uint64_t arrival_ns;
	int efd;

	atomic_bool cancel;
	_Atomic uint64_t cancel_ns;

	_Atomic uint32_t n_out;
	_Atomic int state;
	enum req_finish finish;
	int error;
	char error_text[KV_ERR_LEN];
	uint32_t tokens_dram;
	uint32_t tokens_flash;
	uint32_t tokens_skipped;
	struct reads reads;
	uint64_t admit_ns;
	uint64_t first_ns;
	uint64_t last_ns;

	/* run: the scheduler's threads only */
	struct req *next; /* queue or list of admitted */
	struct kv_seq kv;
	struct spec spec;
	struct sampler sampler;
	struct text text; /* only with stop strings */
	char *scratch;	  /* text thrown away */
	uint32_t pos;	  /* tokens whose KV is computed */
	uint32_t row;	  /* first row in this step */
	uint32_t n_rows;  /* rows in this step, 0 if none */

	atomic_uint refs;
};

/**
 * req_create() - make a request
 * @n_prompt: tokens of the prompt; the caller copies them to @tokens
 * @max_tokens: room for output
 * Return: 0 or -ENOMEM.
 */
int req_create(uint32_t n_prompt, uint32_t max_tokens, struct req **out);

/**
 * req_prepare() - allocate everything the scheduler needs for it
 * @p: sampling parameters
 * Return: 0; -EINVAL (parameters); -ENOMEM.
 */
int req_prepare(struct req *r, const struct tok *tok, const struct sample_params *p);

/** req_put() - drop a reference; NULL is ignored */
void req_put(struct req *r);

/** req_signal() - wake the HTTP thread */
void req_signal(struct req *r);

static inline int req_state(struct req *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

static inline bool req_ended(struct req *r)
{
	return req_state(r) >= REQ_DONE;
}

#endif
