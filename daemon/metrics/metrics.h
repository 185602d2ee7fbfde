/* SPDX-License-Identifier: MIT */
/*
 * metrics.h - counters and latency histograms, written by any thread without a
 * lock, read as Prometheus text.
 */
#ifndef HAWKD_METRICS_H
#define HAWKD_METRICS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum metrics_counter {
	M_REQ_OK,	 /* sequences that ended by stop or length */
	M_REQ_CANCELLED, /* client went away */
	M_REQ_FAILED,	 /* internal error */
	M_REQ_REJECTED,	 /* no KV room, queue full, shutting down */
	M_PROMPT_DRAM,	 /* prompt tokens whose KV was in a host tier */
	M_PROMPT_FLASH,	 /* reloaded from flash */
	M_PROMPT_SKIPPED, /* dropped, and not needed any more */
	M_PROMPT_RECOMPUTED,
	M_DROPPED, /* prompt tokens that the answer does not see */
	M_SHIFTED, /* prompt tokens whose keys are read at another position */
	M_TOKENS_OUT,
	M_STEPS, /* executor steps */
	M_ROWS,	 /* tokens computed in them */
	M_SPEC_ROUNDS,	 /* steps of a sequence with guessed tokens */
	M_SPEC_DRAFTED,	 /* tokens guessed in them */
	M_SPEC_ACCEPTED, /* of these, right */
	M_SPARSE_STEPS,	 /* steps in which a sparse sequence chose tokens */
	M_SPARSE_VISIBLE, /* blocks that it saw in them */
	M_SPARSE_READ,	 /* of these, read */
	M_HTTP_2XX,
	M_HTTP_4XX,
	M_HTTP_5XX,
	M_COUNTERS
};

enum metrics_hist {
	H_QUEUE,  /* arrival to admission */
	H_TTFT,	  /* arrival to first token */
	H_TPOT,	  /* mean gap between tokens of a request */
	H_ITL,	  /* each gap */
	H_STEP,	  /* one executor step */
	H_RELOAD, /* cached blocks of a request came from flash */
	H_RELOAD_ESTIMATE, /* what the device said that would take */
	H_CANCEL, /* cancellation to KV released */
	H_COUNT
};

#define METRICS_BUCKETS 16

struct metrics {
	_Atomic uint64_t counter[M_COUNTERS];
	struct {
		_Atomic uint64_t bucket[METRICS_BUCKETS + 1]; /* last: above all */
		_Atomic uint64_t sum_ns;
	} hist[H_COUNT];
};

static inline void metrics_add(struct metrics *m, enum metrics_counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&m->counter[c], n, memory_order_relaxed);
}

static inline uint64_t metrics_read(struct metrics *m, enum metrics_counter c)
{
	return atomic_load_explicit(&m->counter[c], memory_order_relaxed);
}

/** metrics_observe() - record a duration in nanoseconds */
void metrics_observe(struct metrics *m, enum metrics_hist h, uint64_t ns);

/** metrics_print() - all of the above as Prometheus text (version 0.0.4) */
void metrics_print(struct metrics *m, FILE *f);

/** metrics_head() - "# HELP" and "# TYPE" lines of a metric */
void metrics_head(FILE *f, const char *name, const char *type, const char *help);

#endif
