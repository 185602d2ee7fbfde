// SPDX-License-Identifier: MIT
/* sched.c - queue, start, stop, and the end of a request */
#include "sched/sched_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

void sched_push(struct req_fifo *q, struct req *r)
{
	r->next = NULL;
	if (!q->head)
		q->tail = &q->head;
	*q->tail = r;
	q->tail = &r->next;
	q->n++;
}

struct req *sched_pop(struct req_fifo *q)
{
	struct req *r = q->head;

	if (r) {
		q->head = r->next;
		q->n--;
	}
	return r;
}

/* Tell the HTTP thread, then forget the request. */
static void sched_end(struct sched *s, struct req *r, enum req_state state)
{
	spec_close(&r->spec);
	atomic_store_explicit(&r->state, state, memory_order_release);
	req_signal(r);
	req_put(r);

	pthread_mutex_lock(&s->lock);
	s->live--;
	s->freed++;
	pthread_cond_signal(&s->admit_cv);
	if (s->live == 0 && s->queue.n == 0)
		pthread_cond_broadcast(&s->idle_cv);
	if (s->stop)
		pthread_cond_signal(&s->step_cv);
	pthread_mutex_unlock(&s->lock);
}

void sched_finish(struct sched *s, struct req *r, enum req_finish why)
{
	uint32_t n = atomic_load_explicit(&r->n_out, memory_order_relaxed);

	if (n > 1)
		metrics_observe(s->cfg.metrics, H_TPOT, (r->last_ns - r->first_ns) / (n - 1));
	metrics_add(s->cfg.metrics, M_REQ_OK, 1);
	r->finish = why;
	sched_end(s, r, REQ_DONE);
}

void sched_fail(struct sched *s, struct req *r, int error, const char *text)
{
	bool rejected = error == -ENOSPC || error == -E2BIG || error == -ESHUTDOWN;

	metrics_add(s->cfg.metrics, rejected ? M_REQ_REJECTED : M_REQ_FAILED, 1);
	r->error = error;
	snprintf(r->error_text, sizeof(r->error_text), "%s", text);
	sched_end(s, r, REQ_FAILED);
}

void sched_end_cancelled(struct sched *s, struct req *r)
{
	uint64_t since = atomic_load_explicit(&r->cancel_ns, memory_order_relaxed);

	metrics_observe(s->cfg.metrics, H_CANCEL, clock_now_ns() - since);
	metrics_add(s->cfg.metrics, M_REQ_CANCELLED, 1);
	sched_end(s, r, REQ_CANCELLED);
}

int sched_submit(struct sched *s, struct req **reqs, unsigned int n)
{
	unsigned int i;
	int ret = 0;

	pthread_mutex_lock(&s->lock);
	if (s->draining)
		ret = -ESHUTDOWN;
	else if (n > s->cfg.queue_max - s->queue.n)
		ret = -EBUSY;
	for (i = 0; !ret && i < n; i++) {
		atomic_fetch_add_explicit(&reqs[i]->refs, 1, memory_order_relaxed);
		sched_push(&s->queue, reqs[i]);
	}
	pthread_cond_signal(&s->admit_cv);
	pthread_mutex_unlock(&s->lock);
	if (ret)
		metrics_add(s->cfg.metrics, M_REQ_REJECTED, n);
	return ret;
}

void sched_cancel(struct sched *s, struct req *r)
{
	if (req_ended(r) || atomic_load(&r->cancel))
		return;
	atomic_store_explicit(&r->cancel_ns, clock_now_ns(), memory_order_relaxed);
	atomic_store(&r->cancel, true);
	/* It may be the one that the admission thread waits to find room for. */
	pthread_mutex_lock(&s->lock);
	pthread_cond_signal(&s->admit_cv);
	pthread_mutex_unlock(&s->lock);
}

bool sched_drain(struct sched *s, uint64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = deadline_ns / NS_PER_SEC,
		.tv_nsec = deadline_ns % NS_PER_SEC,
	};
	int ret = 0;
	bool clean;

	pthread_mutex_lock(&s->lock);
	s->draining = true;
	while ((s->live || s->queue.n) && ret == 0)
		ret = pthread_cond_timedwait(&s->idle_cv, &s->lock, &until);
	clean = s->live == 0 && s->queue.n == 0;
	pthread_mutex_unlock(&s->lock);
	return clean;
}

void sched_get_stat(struct sched *s, struct sched_stat *st)
{
	pthread_mutex_lock(&s->lock);
	st->queued = s->queue.n;
	st->running = s->live;
	st->draining = s->draining;
	pthread_mutex_unlock(&s->lock);
	st->queue_max = s->cfg.queue_max;
	st->max_seqs = s->cfg.max_seqs;
	st->prefill_rate = prefill_rate(&s->prefill);
}

static int sched_start(struct sched *s)
{
	int ret;

	ret = pthread_create(&s->admit_thread, NULL, sched_admit_main, s);
	if (ret)
		return -ret;
	ret = pthread_create(&s->step_thread, NULL, sched_step_main, s);
	if (ret) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_signal(&s->admit_cv);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->admit_thread, NULL);
	}
	return -ret;
}

static void sched_free(struct sched *s)
{
	pthread_cond_destroy(&s->idle_cv);
	pthread_cond_destroy(&s->step_cv);
	pthread_cond_destroy(&s->admit_cv);
	pthread_mutex_destroy(&s->lock);
	free(s->rows);
	free(s->seq);
	free(s);
}

int sched_create(const struct sched_config *cfg, struct sched **out)
{
	pthread_condattr_t attr;
	struct sched *s;
	int ret;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->seq = calloc(cfg->max_seqs, sizeof(*s->seq));
	s->rows = calloc(cfg->batch_tokens, sizeof(*s->rows));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->admit_cv, NULL);
	pthread_cond_init(&s->step_cv, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->idle_cv, &attr);
	pthread_condattr_destroy(&attr);
	ret = s->seq && s->rows ? sched_start(s) : -ENOMEM;
	if (ret) {
		sched_free(s);
		return ret;
	}
	*out = s;
	return 0;
}

void sched_stop(struct sched *s)
{
	pthread_mutex_lock(&s->lock);
	s->draining = true;
	s->stop = true;
	pthread_cond_broadcast(&s->admit_cv);
	pthread_cond_broadcast(&s->step_cv);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->admit_thread, NULL);
	pthread_join(s->step_thread, NULL);
}

void sched_destroy(struct sched *s)
{
	if (s)
		sched_free(s);
}
