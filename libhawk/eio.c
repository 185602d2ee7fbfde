// SPDX-License-Identifier: MIT
/*
 * eio.c - transfers between memory and flash through io_uring
 *
 * A context is used by one thread at a time and takes all moves of a plan, or
 * all that a gather reads, at once.  Neighbours on flash become one request, whatever
 * their places in memory.  EIO_DEPTH requests are under way together, first come first
 * served: enough for several drives, and not more than they have room for, or this
 * thread would wait for that instead of looking at what has come.
 *
 * Where io_uring is not to be had (a container's system call filter) transfers are made
 * one by one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "embed.h"

#define EIO_DEPTH	128
#define EIO_JOIN_BYTES	(512u << 10)	/* of transfers that are joined */
#define EIO_JOIN_MAX	64		/* of them */

/* A transfer; @seq: when it was queued. */
struct eio_item {
	void *what;
	struct eio_place p;
	u32 seq;
};

/* Items that are neighbours; @seq: when the first of them was queued. */
struct eio_req {
	u32 first;
	u32 n;
	u32 seq;
};

struct eio {
	struct eio *next;	/* embed.io_free */
	struct io_uring ring;
	bool uring;
	u32 queued;		/* items */
	u32 nreqs;		/* 0: not formed yet */
	u32 sent;		/* requests */
	u32 flying;		/* of them */
	struct eio_item item[EMBED_PLAN_MAX];
	struct eio_req req[EMBED_PLAN_MAX];
	struct iovec iov[EMBED_PLAN_MAX];
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
	/* This thread looks for completions itself and need not be interrupted (Linux 5.19). */
	ret = io_uring_queue_init(EIO_DEPTH, &io->ring, IORING_SETUP_COOP_TASKRUN);
	if (ret == -EINVAL)
		ret = io_uring_queue_init(EIO_DEPTH, &io->ring, 0);
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

static void finish(const struct eio_kind *kind, void *what, const struct eio_place *p, s32 res)
{
	if (res >= 0 || res == -EINTR || res == -EAGAIN)
		res = transfer_rest(p, res > 0 ? (u32)res : 0);
	kind->done(kind, what, res);
}

/**
 * eio_queue() - note a transfer, or make it if there is no ring or no room
 * @io: context or NULL
 * @kind: where @what lies, and who is told when it has ended
 * @what: the transfer
 */
void eio_queue(struct eio *io, const struct eio_kind *kind, void *what)
{
	struct eio_place p;

	kind->place(kind, what, &p);
	if (!io || !io->uring || io->queued == EMBED_PLAN_MAX)
		finish(kind, what, &p, 0);
	else
		io->item[io->queued++] = (struct eio_item){ what, p, io->queued };
}

/* ---- requests ---- */

static int by_place(const void *va, const void *vb)
{
	const struct eio_item *a = va, *b = vb;

	if (a->p.fd != b->p.fd)
		return a->p.fd < b->p.fd ? -1 : 1;
	if (a->p.off != b->p.off)
		return a->p.off < b->p.off ? -1 : 1;
	return 0;
}

static int by_seq(const void *va, const void *vb)
{
	const struct eio_req *a = va, *b = vb;

	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static bool neighbours(const struct eio_place *a, const struct eio_place *b)
{
	return a->fd == b->fd && a->write == b->write && a->off + a->bytes == b->off;
}

/* Items that can be joined to the one at @first, and itself. */
static u32 joined(const struct eio *io, u32 first)
{
	u64 bytes = io->item[first].p.bytes;
	u32 i;

	for (i = first + 1; i < io->queued && i - first < EIO_JOIN_MAX; i++) {
		bytes += io->item[i].p.bytes;
		if (bytes > EIO_JOIN_BYTES || !neighbours(&io->item[i - 1].p, &io->item[i].p))
			break;
	}
	return i - first;
}

static void form(struct eio *io)
{
	struct eio_req *r;
	u32 i, k;

	qsort(io->item, io->queued, sizeof(*io->item), by_place);
	for (i = 0; i < io->queued; i += r->n) {
		r = &io->req[io->nreqs++];
		*r = (struct eio_req){ i, joined(io, i), io->item[i].seq };
		for (k = i; k < i + r->n; k++) {
			const struct eio_item *it = &io->item[k];

			io->iov[k] = (struct iovec){ it->p.mem, it->p.bytes };
			if (it->seq < r->seq)
				r->seq = it->seq;
		}
	}
	qsort(io->req, io->nreqs, sizeof(*io->req), by_seq);
}

static void req_send(struct eio *io, struct eio_req *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&io->ring);
	const struct eio_place *p = &io->item[r->first].p;

	hawk_assert(sqe);	/* there is one for each that may be under way */
	if (r->n > 1 && p->write)
		io_uring_prep_writev(sqe, p->fd, &io->iov[r->first], r->n, p->off);
	else if (r->n > 1)
		io_uring_prep_readv(sqe, p->fd, &io->iov[r->first], r->n, p->off);
	else if (p->write)
		io_uring_prep_write(sqe, p->fd, p->mem, p->bytes, p->off);
	else
		io_uring_prep_read(sqe, p->fd, p->mem, p->bytes, p->off);
	io_uring_sqe_set_data(sqe, r);
	io->flying++;
}

static void send_more(struct eio *io)
{
	if (!io->nreqs)
		form(io);
	while (io->sent < io->nreqs && io->flying < EIO_DEPTH)
		req_send(io, &io->req[io->sent++]);
}

/* What came of a request is shared out; one bad block shall not fail its neighbours. */
static void req_done(struct eio *io, const struct eio_kind *kind, const struct eio_req *r, s32 res)
{
	u32 left = res > 0 ? (u32)res : 0, i, n;

	for (i = r->first; i < r->first + r->n; i++) {
		struct eio_item *it = &io->item[i];

		n = left < it->p.bytes ? left : it->p.bytes;
		left -= n;
		finish(kind, it->what, &it->p, res < 0 && r->n == 1 ? res : (s32)n);
	}
}

/* Start what was queued, without waiting: eio_finish() starts it at the latest. */
void eio_start(struct eio *io)
{
	if (!io || !io->queued)
		return;
	send_more(io);
	io_uring_submit(&io->ring);
}

/* Ends what has come. */
static void look(struct eio *io, const struct eio_kind *kind)
{
	struct io_uring_cqe *cqe;
	struct eio_req *r;
	s32 res;

	while (io->flying && !io_uring_peek_cqe(&io->ring, &cqe)) {
		r = io_uring_cqe_get_data(cqe);
		res = cqe->res;
		io_uring_cqe_seen(&io->ring, cqe);
		io->flying--;
		req_done(io, kind, r, res);
	}
}

/* Waits for some of what is under way, so that it need not wake for each, and ends it. */
static void reap(struct eio *io, const struct eio_kind *kind)
{
	u32 some = io->flying / 4;
	int ret;

	ret = io_uring_submit_and_wait(&io->ring, some < 1 ? 1 : some < 8 ? some : 8);
	hawk_assert(ret >= 0 || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY);
	look(io, kind);
}

/**
 * eio_wait() - end what has come, and start what can be
 * @io: context, started, or NULL
 * @kind: of all of it
 * @ns: wait no longer for the first of it, nanoseconds
 *
 * Return: whether there is more to come.
 */
bool eio_wait(struct eio *io, const struct eio_kind *kind, u64 ns)
{
	struct __kernel_timespec ts = { (s64)(ns / 1000000000), (s64)(ns % 1000000000) };
	struct io_uring_cqe *cqe;
	int ret;

	if (!io || (!io->flying && io->sent == io->nreqs))
		return false;
	send_more(io);
	io_uring_submit(&io->ring);
	ret = io_uring_wait_cqe_timeout(&io->ring, &cqe, &ts);
	hawk_assert(ret >= 0 || ret == -ETIME || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY);
	look(io, kind);
	return io->flying || io->sent < io->nreqs;
}

/**
 * eio_finish() - wait for all that was queued, and give the context back
 * @io: context or NULL
 * @kind: of all of it
 *
 * The ring has twice as many completion entries as requests are under way, so none is
 * dropped.
 */
void eio_finish(struct embed *e, struct eio *io, const struct eio_kind *kind)
{
	if (!io)
		return;
	while (io->queued && (!io->nreqs || io->flying || io->sent < io->nreqs)) {
		send_more(io);
		reap(io, kind);
	}
	io->queued = 0;
	io->nreqs = 0;
	io->sent = 0;
	eio_give(e, io);
}
