/* SPDX-License-Identifier: MIT */
/* sched_priv.h - shared by sched.c (queue), admit.c and step.c (threads) */
#ifndef HAWKD_SCHED_PRIV_H
#define HAWKD_SCHED_PRIV_H

#include <pthread.h>

#include "sched/gate.h"
#include "sched/prefill.h"
#include "sched/sched.h"

/* Singly linked list with a tail, first in first out. */
struct req_fifo {
	struct req *head;
	struct req **tail;
	uint32_t n;
};

/**
 * struct step_spec - speculation in one step
 * @spare: rows that may still be guesses
 * @gated: guesses of a sequence that leaves it to the gate
 * @fair: nothing but decoding, and nobody guesses who does not ask the gate
 * @done: for the gate
 */
struct step_spec {
	uint32_t spare;
	uint32_t gated;
	bool fair;
	struct gate_step done;
};

/**
 * struct sched - the scheduler
 * @lock: guards @queue, @admitted, @live, @freed, @draining, @stop
 * @admit_cv: the admission thread waits here for requests and room
 * @step_cv: the step thread waits here for admitted sequences
 * @idle_cv: sched_drain() waits here for the end of the last sequence
 * @queue: wait for admission, in order of arrival
 * @admitted: have their KV, wait for the step thread
 * @live: sequences in admission, admitted or running
 * @freed: times that a sequence gave its KV back
 * @draining: refuse new requests
 * @stop: threads end when nothing is left
 *
 * @seq: running sequences in order of admission; the step thread only
 * @n_seq: entries in @seq
 * @rows: the step; the step thread only
 * @prompt_rows: of @rows those of prompts; the step thread only
 * @prefill: how quickly prompts are computed; see there
 * @gate: is speculation a gain; the step thread only
 * @spec: of the step: what it may guess, what came of it; the step thread only
 */
struct sched {
	struct sched_config cfg;
	pthread_mutex_t lock;
	pthread_cond_t admit_cv;
	pthread_cond_t step_cv;
	pthread_cond_t idle_cv;
	struct req_fifo queue;
	struct req_fifo admitted;
	uint32_t live;
	uint64_t freed;
	bool draining;
	bool stop;
	pthread_t admit_thread;
	pthread_t step_thread;

	struct req **seq;
	uint32_t n_seq;
	struct exec_row *rows;
	uint32_t prompt_rows;
	struct prefill prefill;
	struct gate gate;
	struct step_spec spec;
};

void *sched_admit_main(void *arg);
void *sched_step_main(void *arg);

/* All three: @r leaves the scheduler, its reference is dropped. KV is closed before. */
void sched_finish(struct sched *s, struct req *r, enum req_finish why);
void sched_fail(struct sched *s, struct req *r, int error, const char *text);
void sched_end_cancelled(struct sched *s, struct req *r);

/* Caller holds @lock. */
void sched_push(struct req_fifo *q, struct req *r);
struct req *sched_pop(struct req_fifo *q);

#endif
