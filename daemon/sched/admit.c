// SPDX-License-Identifier: MIT
/*
 * admit.c - the admission thread: first come, first served
 *
 * The request at the head waits until a slot is free and all its KV could be
 * reserved.  It is refused when there is no room although nothing else runs.
 */
#include "sched/sched_priv.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "log.h"

/* Next request together with a slot for it; NULL when the scheduler stops. */
static struct req *admit_next(struct sched *s, uint64_t *freed)
{
	struct req *r;

	pthread_mutex_lock(&s->lock);
	while (!(s->queue.head && (s->live < s->cfg.max_seqs || s->stop)) &&
	       !(s->stop && !s->queue.head))
		pthread_cond_wait(&s->admit_cv, &s->lock);
	r = sched_pop(&s->queue);
	if (r)
		s->live++;
	*freed = s->freed;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/*
 * Wait until a sequence gave its KV back after @freed was read.
 * Return: false if nothing else runs, so that waiting is useless.
 */
static bool admit_wait_room(struct sched *s, struct req *r, uint64_t *freed)
{
	bool again = true;

	pthread_mutex_lock(&s->lock);
	while (s->freed == *freed && !atomic_load(&r->cancel) && !s->stop) {
		if (s->live == 1) {
			again = false;
			break;
		}
		pthread_cond_wait(&s->admit_cv, &s->lock);
	}
	*freed = s->freed;
	pthread_mutex_unlock(&s->lock);
	return again;
}

static bool admit_cancelled(struct sched *s, struct req *r)
{
	bool stop;

	if (atomic_load(&r->cancel)) {
		sched_end_cancelled(s, r);
		return true;
	}
	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	if (stop)
		sched_fail(s, r, -ESHUTDOWN, "the server is shutting down");
	return stop;
}

/* Speculation is a help only: a request goes without rather than fail. */
static void admit_spec(struct sched *s, struct req *r)
{
	int ret = spec_open(&r->spec, &r->speculate, s->cfg.kv, &r->kv,
			    r->n_prompt + r->max_tokens);

	if (r->spec.ring) /* a long prompt would be felt in a step */
		ngram_learn(&r->spec.ngram, r->tokens, r->n_prompt);
	if (ret)
		log_warn("no speculation for a request: no ring for drafts of %u tokens: %s",
			 r->speculate.tokens, strerror(-ret));
}

static void admit_run(struct sched *s, struct req *r)
{
	uint32_t cached = kv_seq_cached(s->cfg.kv, &r->kv);

	admit_spec(s, r);
	r->admit_ns = clock_now_ns();
	r->pos = cached;
	r->tokens_dram = r->kv.tokens_dram;
	r->tokens_flash = r->kv.tokens_flash;
	r->tokens_skipped = r->kv.tokens_skipped;
	metrics_observe(s->cfg.metrics, H_QUEUE, r->admit_ns - r->arrival_ns);
	if (r->kv.reload.batches) {
		metrics_observe(s->cfg.metrics, H_RELOAD, r->kv.reload.ns);
		metrics_observe(s->cfg.metrics, H_RELOAD_ESTIMATE, r->kv.reload.estimate_ns);
	}
	metrics_add(s->cfg.metrics, M_PROMPT_DRAM, r->tokens_dram);
	metrics_add(s->cfg.metrics, M_PROMPT_FLASH, r->tokens_flash);
	metrics_add(s->cfg.metrics, M_PROMPT_SKIPPED, r->tokens_skipped);
	metrics_add(s->cfg.metrics, M_PROMPT_RECOMPUTED, r->n_prompt - cached);
	metrics_add(s->cfg.metrics, M_DROPPED, hist_dropped(r->ops, r->n_ops));
	metrics_add(s->cfg.metrics, M_SHIFTED, hist_shifted(r->ops, r->n_ops, r->n_prompt));
	atomic_store_explicit(&r->state, REQ_RUNNING, memory_order_release);

	pthread_mutex_lock(&s->lock);
	sched_push(&s->admitted, r);
	pthread_cond_signal(&s->step_cv);
	pthread_mutex_unlock(&s->lock);
}

/* Nothing else runs, so the executor waits for this request's blocks. */
static bool admit_alone(struct sched *s)
{
	bool alone;

	pthread_mutex_lock(&s->lock);
	alone = s->live == 1;
	pthread_mutex_unlock(&s->lock);
	return alone;
}

static void admit_one(struct sched *s, struct req *r, uint64_t freed)
{
	/* The last generated token is never fed back: it needs no KV. */
	struct kv_need need = {
		.tokens = r->tokens,
		.n_prompt = r->n_prompt,
		.n_total = r->n_prompt + r->max_tokens - 1,
		.ops = r->ops,
		.n_ops = r->n_ops,
		.root = r->root,
		.sparse = r->sparse.window ? &r->sparse : NULL,
	};
	char err[KV_ERR_LEN];
	int ret;

	atomic_store_explicit(&r->state, REQ_ADMITTING, memory_order_release);
	for (;;) {
		if (admit_cancelled(s, r))
			return;
		need.tokens_per_s = prefill_rate(&s->prefill);
		need.urgent = admit_alone(s);
		ret = kv_seq_open(s->cfg.kv, &r->kv, &need, err);
		if (ret != -ENOSPC)
			break;
		if (!admit_wait_room(s, r, &freed))
			break;
	}
	if (ret)
		sched_fail(s, r, ret, err);
	else
		admit_run(s, r);
}

void *sched_admit_main(void *arg)
{
	struct sched *s = arg;
	struct req *r;
	uint64_t freed;

	pthread_setname_np(pthread_self(), "hawkd-admit");
	while ((r = admit_next(s, &freed)))
		admit_one(s, r, freed);
	return NULL;
}
