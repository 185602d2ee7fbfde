// SPDX-License-Identifier: MIT
/*
 * ework.c - threads that read and write where io_uring is not to be had
 *
 * Each drive has its own, so that one that stalls holds up no other.  They are started with
 * the first request.  A request that has been made goes back to the thread that sent it, or
 * if that has left is ended here.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "eio.h"

struct ework {
	pthread_mutex_t lock;	/* guards all below */
	pthread_cond_t cond;
	struct eio_req *first, *last;
	bool stop;
	u32 nthreads;
	pthread_t thread[EWORK_THREADS];
};

void ework_init(struct eio *io)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->cond, &attr);
	pthread_condattr_destroy(&attr);
}

void ework_fini(struct eio *io)
{
	pthread_mutex_destroy(&io->lock);
	pthread_cond_destroy(&io->cond);
}

/* ---- the threads of a drive ---- */

static s32 make(const struct eio *io, const struct eio_req *r)
{
	const struct eio_place *p = &io->item[r->first].p;
	const struct iovec one = { p->mem, p->bytes };
	const struct iovec *iov = r->n > 1 ? &io->iov[r->first] : &one;
	ssize_t n;

	if (p->write)
		n = pwritev(p->t->fd, iov, (int)r->n, (off_t)p->off);
	else
		n = preadv(p->t->fd, iov, (int)r->n, (off_t)p->off);
	return n < 0 ? -errno : (s32)n;
}

/* To the one who waits for it; if he has left it ends here. */
static void made(struct eio *io, struct eio_req *r)
{
	bool over = false;

	pthread_mutex_lock(&io->lock);
	if (io->left) {
		eio_ended(io, r, r->res);
		over = !io->flying;
	} else {
		r->next = io->ended;
		io->ended = r;
		pthread_cond_signal(&io->cond);
	}
	pthread_mutex_unlock(&io->lock);
	if (over)
		estray_over(io);
}

static void *worker(void *arg)
{
	struct ework *w = arg;
	struct eio_req *r;

	pthread_mutex_lock(&w->lock);
	while (w->first || !w->stop) {
		r = w->first;
		if (!r) {
			pthread_cond_wait(&w->cond, &w->lock);
			continue;
		}
		w->first = r->next;
		if (!w->first)
			w->last = NULL;
		pthread_mutex_unlock(&w->lock);
		r->res = make(r->io, r);
		made(r->io, r);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static struct ework *ework_new(void)
{
	struct ework *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->cond, NULL);
	while (w->nthreads < EWORK_THREADS &&
	       !ethread_start(&w->thread[w->nthreads], worker, w))
		w->nthreads++;
	return w;
}

/* ework_stop() - the drive goes, no transfer of it is under way */
void ework_stop(struct ework *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
	while (w->nthreads)
		pthread_join(w->thread[--w->nthreads], NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->cond);
	free(w);
}

/* The drive's threads, or NULL: there are none to be had. */
static struct ework *ework_of(struct eio *io, struct etier *t)
{
	struct ework *w;

	pthread_mutex_lock(&io->e->io_lock);
	if (!t->work)
		t->work = ework_new();
	w = t->work;
	pthread_mutex_unlock(&io->e->io_lock);
	return w && w->nthreads ? w : NULL;
}

/* ---- their customers ---- */

/* ework_send() - have a request made, if need be by the caller */
void ework_send(struct eio *io, struct eio_req *r)
{
	struct ework *w = ework_of(io, io->item[r->first].p.t);

	r->io = io;
	r->next = NULL;
	if (!w) {
		r->res = make(io, r);
		made(io, r);
		return;
	}
	pthread_mutex_lock(&w->lock);
	*(w->last ? &w->last->next : &w->first) = r;
	w->last = r;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/* ework_wait() - end what has been made, after waiting for something */
void ework_wait(struct eio *io, u64 until)
{
	struct timespec ts = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
	struct eio_req *r, *next;
	int ret = 0;

	pthread_mutex_lock(&io->lock);
	while (!io->ended && !ret)
		ret = pthread_cond_timedwait(&io->cond, &io->lock, &ts);
	r = io->ended;
	io->ended = NULL;
	pthread_mutex_unlock(&io->lock);
	for (; r; r = next) {
		next = r->next;
		eio_ended(io, r, r->res);
	}
}

/**
 * ework_leave() - the caller leaves: who makes the last request ends the rest
 * Return: whether nothing was under way any more.
 */
bool ework_leave(struct eio *io)
{
	struct eio_req *r, *next;
	bool over;

	pthread_mutex_lock(&io->lock);
	io->left = true;
	for (r = io->ended; r; r = next) {
		next = r->next;
		eio_ended(io, r, r->res);
	}
	io->ended = NULL;
	over = !io->flying;
	pthread_mutex_unlock(&io->lock);
	return over;
}
