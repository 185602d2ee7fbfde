// SPDX-License-Identifier: MIT
/*
 * eio.c - transfers between memory and flash through io_uring
 *
 * A context is used by one thread at a time and takes all moves of a plan, or
 * all that a gather reads, at once, so that the drive sees the full depth.  Where
 * io_uring is not to be had (a container's system call filter) they are made one
 * by one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "embed.h"

struct eio {
	struct eio *next;	/* embed.io_free */
	struct io_uring ring;
	bool uring;
	u32 queued;
};

static void say_no_uring(int err)
{
	static int said;

	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "hawk: io_uring: %s; flash is read and written block by block\n",
			strerror(-err));
}

/* NULL: no memory, the moves then go one by one. */
struct eio *eio_take(struct embed *e)
{
	struct eio *io;
	int ret;

	pthread_mutex_lock(&e->io_lock);
	io = e->io_free;
	if (io)
		e->io_free = io->next;
	pthread_mutex_unlock(&e->io_lock);
	if (io)
		return io;
	io = calloc(1, sizeof(*io));
	if (!io)
		return NULL;
	ret = io_uring_queue_init(EMBED_PLAN_MAX, &io->ring, 0);
	io->uring = !ret;
	if (ret)
		say_no_uring(ret);
	return io;
}

static void eio_give(struct embed *e, struct eio *io)
{
	if (!io)
		return;
	pthread_mutex_lock(&e->io_lock);
	io->next = e->io_free;
	e->io_free = io;
	pthread_mutex_unlock(&e->io_lock);
}

void eio_free_all(struct embed *e)
{
	struct eio *io;

	while ((io = e->io_free)) {
		e->io_free = io->next;
		if (io->uring)
			io_uring_queue_exit(&io->ring);
		free(io);
	}
}

/* Makes the part of a transfer that is left after @done bytes, waiting for it. */
static s32 transfer_rest(const struct eio_place *p, u32 done)
{
	ssize_t n;

	while (done < p->bytes) {
		if (p->write)
			n = pwrite(p->fd, p->mem + done, p->bytes - done,
				   (off_t)(p->off + done));
		else
			n = pread(p->fd, p->mem + done, p->bytes - done, (off_t)(p->off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;	/* the file was cut short */
		done += (u32)n;
	}
	return 0;
}

static void finish(const struct eio_kind *kind, void *what, s32 res)
{
	struct eio_place p;

	kind->place(kind, what, &p);
	if (res >= 0 || res == -EINTR || res == -EAGAIN)
		res = transfer_rest(&p, res > 0 ? (u32)res : 0);
	kind->done(kind, what, res);
}

/**
 * eio_queue() - prepare a transfer, or make it if there is no ring or no room in it
 * @io: context or NULL
 * @kind: where @what lies, and who is told when it has ended
 * @what: the transfer
 */
void eio_queue(struct eio *io, const struct eio_kind *kind, void *what)
{
	struct io_uring_sqe *sqe = io && io->uring && io->queued < EMBED_PLAN_MAX ?
				   io_uring_get_sqe(&io->ring) : NULL;
	struct eio_place p;

	if (!sqe) {
		finish(kind, what, 0);
		return;
	}
	kind->place(kind, what, &p);
	if (p.write)
		io_uring_prep_write(sqe, p.fd, p.mem, p.bytes, p.off);
	else
		io_uring_prep_read(sqe, p.fd, p.mem, p.bytes, p.off);
	io_uring_sqe_set_data(sqe, what);
	io->queued++;
}

/* Start what was queued, without waiting: eio_finish() starts it at the latest. */
void eio_start(struct eio *io)
{
	if (io && io->queued)
		io_uring_submit(&io->ring);
}

/**
 * eio_finish() - wait for all that was queued, and give the context back
 * @io: context or NULL
 * @kind: of all of it
 *
 * The ring has twice as many completion entries as transfers are queued, so none is
 * dropped.
 */
void eio_finish(struct embed *e, struct eio *io, const struct eio_kind *kind)
{
	struct io_uring_cqe *cqe;
	void *what;
	s32 res;
	int ret;

	while (io && io->queued) {
		ret = io_uring_submit_and_wait(&io->ring, 1);
		hawk_assert(ret >= 0 || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY);
		while (io->queued && !io_uring_peek_cqe(&io->ring, &cqe)) {
			what = io_uring_cqe_get_data(cqe);
			res = cqe->res;
			io_uring_cqe_seen(&io->ring, cqe);
			io->queued--;
			finish(kind, what, res);
		}
	}
	eio_give(e, io);
}
