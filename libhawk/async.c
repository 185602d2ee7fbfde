// SPDX-License-Identifier: MIT
/*
 * async.c - asynchronous batches: a queue and the movers that work it off
 *
 * A job is the caller's batch with a copy of its items, or a gather.  Room for all of
 * its completions is reserved before it is queued.  The end of a handle cancels jobs
 * not begun and waits for the one that a mover has.
 */
#include <stdlib.h>

#include "embed.h"

struct ejob {
	struct ejob *next;
	struct ekv *kv;
	unsigned int op;
	u64 start;
	bool stop;		/* canceled; atomic */
	struct egather *gather;	/* or NULL: a batch */
	u64 user_data;
	struct hawk_batch b;
	struct hawk_item item[];
};

static void enqueue(struct embed *e, struct ejob *job)
{
	pthread_mutex_lock(&e->job_lock);
	job->kv->jobs++;
	*(e->job_last ? &e->job_last->next : &e->job_first) = job;
	e->job_last = job;
	pthread_cond_signal(&e->job_cond);
	pthread_mutex_unlock(&e->job_lock);
}

/* The gather is the mover's from now on: it has its completions reserved.  0 or -ENOMEM. */
int async_gather(struct ekv *kv, struct egather *g)
{
	struct ejob *job = calloc(1, sizeof(*job));

	if (!job)
		return hawk_fail(-ENOMEM, "an asynchronous gather");
	job->kv = kv;
	job->gather = g;
	job->user_data = egather_user_data(g);
	enqueue(kv->sp->e, job);
	return 0;
}

int async_submit(struct ekv *kv, unsigned int op, struct hawk_batch *b)
{
	struct ejob *job;

	if (!kv->base.ring)
		return hawk_fail(-EINVAL, "an asynchronous batch needs a completion ring");
	job = malloc(sizeof(*job) + b->count * sizeof(job->item[0]));
	if (!job)
		return hawk_fail(-ENOMEM, "a batch of %u items", b->count);
	if (ering_reserve(kv, b->count + 1)) {
		free(job);
		return hawk_fail(-EBUSY, "the ring has no room for %u completions",
				 b->count + 1);
	}
	job->next = NULL;
	job->kv = kv;
	job->op = op;
	job->start = now_ns();
	job->stop = false;
	job->gather = NULL;
	job->user_data = b->user_data;
	job->b = *b;
	memcpy(job->item, (void *)(uintptr_t)b->items, b->count * sizeof(job->item[0]));
	job->b.items = (uintptr_t)job->item;
	enqueue(kv->sp->e, job);
	b->done = 0;
	b->prefix = 0;
	return 0;
}

static void post_item(struct run *r, u32 i)
{
	const struct hawk_item *it = &r->it[i];
	struct hawk_cqe cqe = {
		.user_data = r->b->user_data,
		.lid = it->lid,
		.vt = it->vt,
		.index = i,
		.status = it->status,
		.flags = HAWK_CQE_ITEM,
	};

	ering_post(r->kv, &cqe);
}

static void post_batch(struct ejob *job)
{
	struct hawk_cqe cqe = {
		.user_data = job->b.user_data,
		.index = job->b.done,
		.flags = HAWK_CQE_BATCH,
	};

	ering_post(job->kv, &cqe);
}

/* Nothing of it was done, for want of memory. */
static void refuse(struct ejob *job, int status)
{
	struct run r = { .kv = job->kv, .b = &job->b, .it = job->item };
	u32 i;

	for (i = 0; i < job->b.count; i++) {
		job->item[i].status = status;
		job->item[i].vt = 0;
		post_item(&r, i);
	}
	job->b.done = 0;
}

static u32 stop_jobs(struct ejob *job, struct ekv *kv, const struct hawk_cancel *c)
{
	u32 n = 0;

	for (; job; job = job->next) {
		if (job->kv != kv)
			continue;
		if (!(c->flags & HAWK_CANCEL_ALL) && job->user_data != c->user_data)
			continue;
		__atomic_store_n(&job->stop, true, __ATOMIC_RELAXED);
		n++;
	}
	return n;
}

/* They are told to stop; their completions come from where they always do. */
int embed_cancel(struct hawk_kv *base, struct hawk_cancel *c)
{
	struct ekv *kv = to_ekv(base);
	struct embed *e = kv->sp->e;

	pthread_mutex_lock(&e->job_lock);
	c->batches = stop_jobs(e->job_first, kv, c) + stop_jobs(e->job_busy, kv, c);
	pthread_mutex_unlock(&e->job_lock);
	return c->batches ? 0 : hawk_fail(-ENOENT, "no such batch is under way");
}

static void get(struct ejob *job)
{
	int ret = embed_get(job->kv, job->op, &job->b, post_item, &job->stop);

	if (ret)
		refuse(job, ret);
	seqs_waiting(job->kv->sp);	/* what was leased meanwhile may have been dropped */
	estats_batch(job->kv->sp, job->op, &job->b, job->start);
}

/* The mover has taken @job off the queue. */
static void work(struct embed *e, struct ejob *job)
{
	struct ekv *kv = job->kv;
	struct ejob **pp;

	if (job->gather)
		egather_run(job->gather, &job->stop);
	else
		get(job);
	pthread_mutex_lock(&e->job_lock);
	for (pp = &e->job_busy; *pp != job; pp = &(*pp)->next)
		;
	*pp = job->next;
	pthread_mutex_unlock(&e->job_lock);
	if (job->gather)
		egather_end(job->gather);
	else
		post_batch(job);
	free(job);
	pthread_mutex_lock(&e->job_lock);
	kv->jobs--;
	pthread_cond_broadcast(&e->job_done);
	pthread_mutex_unlock(&e->job_lock);
}

static void *mover(void *arg)
{
	struct embed *e = arg;
	struct ejob *job;

	pthread_mutex_lock(&e->job_lock);
	while (!e->job_stop) {
		job = e->job_first;
		if (!job) {
			pthread_cond_wait(&e->job_cond, &e->job_lock);
			continue;
		}
		e->job_first = job->next;
		if (!e->job_first)
			e->job_last = NULL;
		job->next = e->job_busy;
		e->job_busy = job;
		pthread_mutex_unlock(&e->job_lock);
		work(e, job);
		pthread_mutex_lock(&e->job_lock);
	}
	pthread_mutex_unlock(&e->job_lock);
	return NULL;
}

/* The handle ends. */
void async_drain(struct ekv *kv)
{
	struct embed *e = kv->sp->e;
	struct ejob **pp, *job, *last = NULL, *dropped = NULL;

	pthread_mutex_lock(&e->job_lock);
	for (pp = &e->job_first; (job = *pp);) {
		if (job->kv == kv) {
			*pp = job->next;
			job->next = dropped;
			dropped = job;
			kv->jobs--;
		} else {
			last = job;
			pp = &job->next;
		}
	}
	e->job_last = last;
	while (kv->jobs)
		pthread_cond_wait(&e->job_done, &e->job_lock);
	pthread_mutex_unlock(&e->job_lock);
	while ((job = dropped)) {
		dropped = job->next;
		if (job->gather)
			egather_abandon(job->gather);
		free(job);
	}
}

/* With the first ring; the caller holds embed.admin. */
int movers_start(struct embed *e)
{
	int ret;

	while (e->nmovers < EMBED_MOVERS) {
		ret = ethread_start(&e->mover[e->nmovers], mover, e);
		if (ret)
			return hawk_fail(ret, "starting a thread for asynchronous batches");
		e->nmovers++;
	}
	return 0;
}

void movers_stop(struct embed *e)
{
	pthread_mutex_lock(&e->job_lock);
	e->job_stop = true;
	pthread_cond_broadcast(&e->job_cond);
	pthread_mutex_unlock(&e->job_lock);
	while (e->nmovers)
		pthread_join(e->mover[--e->nmovers], NULL);
}
