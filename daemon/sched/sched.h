/* SPDX-License-Identifier: MIT */
/*
 * sched.h - continuous batching over the executor
 *
 * Two threads.  The admission thread takes requests in order of arrival and
 * reserves all the KV a sequence may ever need (kv_seq_open(): reloads and
 * evictions happen there, beside running steps).  The step thread owns the
 * running sequences: each step computes one token of every decoding sequence,
 * with guesses behind it where that is a gain (spec.h), and, with what is left of
 * the token budget, one chunk of each prompt.
 *
 * KV is reserved up front, so a running sequence is never preempted and never
 * runs out; decode is never starved, because it is put into the step first and
 * max_seqs < batch_tokens leaves room for prefill too.
 */
#ifndef HAWKD_SCHED_H
#define HAWKD_SCHED_H

#include "exec/exec.h"
#include "kv/kv.h"
#include "metrics/metrics.h"
#include "sched/req.h"

/**
 * struct sched_config - limits
 * @max_seqs: sequences that run at once
 * @batch_tokens: tokens of one step, > @max_seqs
 * @chunk: tokens of one prompt in one step at most
 * @queue_max: requests that may wait
 * @spec_rows: rows of a step that may be guesses of speculation, in all; @max_seqs
 *	and these may want logits
 */
struct sched_config {
	uint32_t max_seqs;
	uint32_t batch_tokens;
	uint32_t chunk;
	uint32_t queue_max;
	uint32_t spec_rows;
	struct exec *exec;
	const struct tok *tok;
	struct kv *kv;
	struct metrics *metrics;
};

struct sched;

/** sched_create() - allocate all working memory and start the threads */
int sched_create(const struct sched_config *cfg, struct sched **out);

/** sched_stop() - end what is left with -ESHUTDOWN and stop the threads */
void sched_stop(struct sched *s);

/** sched_destroy() - free a stopped scheduler; NULL is ignored */
void sched_destroy(struct sched *s);

/**
 * sched_submit() - queue prepared requests, all or none
 *
 * Takes a reference of its own to each.
 * Return: 0; -EBUSY the queue is full; -ESHUTDOWN draining.
 */
int sched_submit(struct sched *s, struct req **reqs, unsigned int n);

/** sched_cancel() - stop a request at the next token; it still ends by state */
void sched_cancel(struct sched *s, struct req *r);

/**
 * sched_drain() - accept no more, wait for the accepted
 * @deadline_ns: CLOCK_MONOTONIC
 * Return: true if all ended by themselves.
 */
bool sched_drain(struct sched *s, uint64_t deadline_ns);

/**
 * struct sched_stat - for /metrics and /health
 * @queued: requests that wait for admission
 * @running: sequences admitted or being admitted
 * @prefill_rate: tokens of prompts computed per second, 0: not known yet
 * @draining: no requests are accepted
 */
struct sched_stat {
	uint32_t queued;
	uint32_t running;
	uint32_t queue_max;
	uint32_t max_seqs;
	uint32_t prefill_rate;
	bool draining;
};

void sched_get_stat(struct sched *s, struct sched_stat *st);

#endif
