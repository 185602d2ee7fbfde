// SPDX-License-Identifier: MIT
/*
 * estray.c - transfers whose callers have left at their deadline
 *
 * A drive that does not answer keeps the context, the memory of its transfers and what they
 * belong to: the space stays until they have ended, and they count as at work (wait.c).
 * A thread that is started with the first of them looks for stalls, and waits for those of
 * io_uring; threads of ework.c end their own.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "eio.h"

#define STRAY_MS	1000	/* how often the thread looks for a stall */
#define STRAYS_POLL	64	/* rings looked at together */

/* estray_over() - nothing of a context that was left is under way any more */
void estray_over(struct eio *io)
{
	const struct eio_kind *kind = io->kind;
	struct espace *sp = kind->sp;
	struct embed *e = io->e;

	eio_give(io);
	kind->over(kind);
	pthread_mutex_lock(&e->stray_lock);
	sp->strays--;
	hawk_store(&e->nstrays, e->nstrays - 1);
	pthread_cond_broadcast(&e->stray_cond);
	pthread_mutex_unlock(&e->stray_lock);
	planner_leave(e);
}

/* Those of the rings in @list that have ended go; the rest is returned. */
static struct eio *look(struct eio *list)
{
	struct eio *io, *left = NULL;

	while ((io = list)) {
		list = io->next;
		eio_reap(io);
		if (!io->flying) {
			estray_over(io);
			continue;
		}
		io->next = left;
		left = io;
	}
	return left;
}

static void doze(struct embed *e, struct eio *list)
{
	struct pollfd fd[STRAYS_POLL + 1] = { { .fd = e->stray_fd, .events = POLLIN } };
	nfds_t n = 1;
	u64 v;

	for (; list && n <= STRAYS_POLL; list = list->next)
		fd[n++] = (struct pollfd){ .fd = list->ring.ring_fd, .events = POLLIN };
	poll(fd, n, hawk_load(&e->nstrays) ? STRAY_MS : -1);
	if (fd[0].revents & POLLIN && read(e->stray_fd, &v, sizeof(v)) < 0)
		errno = 0;	/* another look does no harm */
}

static void *strays(void *arg)
{
	struct embed *e = arg;
	struct eio *list = NULL, *io;
	bool stop;

	do {
		doze(e, list);
		pthread_mutex_lock(&e->stray_lock);
		while ((io = e->strays)) {
			e->strays = io->next;
			io->next = list;
			list = io;
		}
		stop = e->stray_stop;
		pthread_mutex_unlock(&e->stray_lock);
		list = look(list);
		flash_watch(e);
	} while (list || !stop);
	return NULL;
}

static void kick(struct embed *e)
{
	u64 one = 1;

	if (write(e->stray_fd, &one, sizeof(one)) < 0)
		errno = 0;	/* it looks by itself after a while */
}

/* With the first stray; the caller holds stray_lock.  Return: is it there? */
static bool thread_start(struct embed *e)
{
	if (e->stray_run)
		return true;
	e->stray_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->stray_fd < 0)
		return false;
	e->stray_run = !ethread_start(&e->stray, strays, e);
	if (!e->stray_run)
		close(e->stray_fd);
	return e->stray_run;
}

/* estray_take() - a caller has left @io, of which something is under way */
void estray_take(struct eio *io)
{
	struct embed *e = io->e;
	bool started;

	planner_enter(e);
	pthread_mutex_lock(&e->stray_lock);
	io->kind->sp->strays++;
	hawk_store(&e->nstrays, e->nstrays + 1);
	started = thread_start(e);
	if (io->uring) {
		io->left = true;
		io->next = e->strays;
		if (started)
			e->strays = io;
	}
	if (started)
		kick(e);
	pthread_mutex_unlock(&e->stray_lock);
	if (!io->uring && ework_leave(io))
		estray_over(io);
	if (io->uring && !started) {	/* then it is ours after all */
		while (io->flying)
			if (io_uring_submit_and_wait(&io->ring, 1) >= 0)
				eio_reap(io);
		estray_over(io);
	}
}

/* estray_wait() - the space ends: until nothing that was left works for it any more */
void estray_wait(struct espace *sp)
{
	struct embed *e = sp->e;

	pthread_mutex_lock(&e->stray_lock);
	while (sp->strays)
		pthread_cond_wait(&e->stray_cond, &e->stray_lock);
	pthread_mutex_unlock(&e->stray_lock);
}

void estray_stop(struct embed *e)
{
	if (!e->stray_run)
		return;
	pthread_mutex_lock(&e->stray_lock);
	e->stray_stop = true;
	pthread_mutex_unlock(&e->stray_lock);
	kick(e);
	pthread_join(e->stray, NULL);
	close(e->stray_fd);
}
