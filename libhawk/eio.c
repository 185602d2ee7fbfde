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
 * Where io_uring is not to be had (a container's system call filter) threads of each drive
 * make the requests (ework.c).
 *
 * Who waits with a deadline leaves when it has passed: what has not been sent is not made,
 * what has been is left to estray.c with the context.  The memory that it reads into or
 * writes from stays the transfer's until that has ended: the engine gives a frame with a
 * move to nobody.  So a kind that may be left owns all that its transfers refer to, and
 * gives it back in its over(); or its memory is somebody else's, who has been told not to use
 * it (eio_kind.lent).
 *
 * A request of neighbours that does not come out whole is made again one by one, so that a
 * bad block does not fail others; a transfer that stops half-way goes on from there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "eio.h"

#define EIO_JOIN_BYTES	(512u << 10)	/* of transfers that are joined */
#define EIO_JOIN_MAX	64		/* of them */
#define EIO_TRIES	16		/* of a transfer that is interrupted or stops half-way */
#define EIO_LOOK_NS	1000000000ull	/* so often who waits looks for a stall */

static void say_no_uring(int err)
{
	static int said;

	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "hawk: io_uring: %s; %u threads per drive read and write instead\n",
			strerror(-err), EWORK_THREADS);
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
	io->e = e;
	io->uring = !ret;
	if (ret)
		say_no_uring(ret);
	ework_init(io);
	return io;
}

/* It has no transfer any more. */
void eio_give(struct eio *io)
{
	struct embed *e = io->e;

	io->queued = 0;
	io->nreqs = 0;
	io->sent = 0;
	io->left = false;
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
		ework_fini(io);
		free(io);
	}
}

/* ---- a transfer that is made by its caller, as there is no context for it ---- */

static s32 transfer(const struct eio_place *p)
{
	u32 done = 0;
	ssize_t n;

	while (done < p->bytes) {
		if (p->write)
			n = pwrite(p->t->fd, p->mem + done, p->bytes - done,
				   (off_t)(p->off + done));
		else
			n = pread(p->t->fd, p->mem + done, p->bytes - done,
				  (off_t)(p->off + done));
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

/**
 * eio_queue() - note a transfer, or make it if there is no context or no room
 * @io: context or NULL
 * @kind: where @what lies, and who is told when it has ended
 * @what: the transfer
 */
void eio_queue(struct eio *io, const struct eio_kind *kind, void *what)
{
	struct eio_place p;

	kind->place(kind, what, &p);
	if (!io || io->queued == EMBED_PLAN_MAX)
		kind->done(kind, what, transfer(&p));
	else
		io->item[io->queued++] = (struct eio_item){ what, p, io->queued };
}

/* ---- requests ---- */

static int by_place(const void *va, const void *vb)
{
	const struct eio_item *a = va, *b = vb;

	if (a->p.t != b->p.t)
		return a->p.t < b->p.t ? -1 : 1;
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
	return a->t == b->t && a->write == b->write && a->off + a->bytes == b->off;
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
		*r = (struct eio_req){ .first = i, .n = joined(io, i), .seq = io->item[i].seq };
		for (k = i; k < i + r->n; k++) {
			const struct eio_item *it = &io->item[k];

			io->iov[k] = (struct iovec){ it->p.mem, it->p.bytes };
			if (it->seq < r->seq)
				r->seq = it->seq;
		}
	}
	qsort(io->req, io->nreqs, sizeof(*io->req), by_seq);
}

static void ring_send(struct eio *io, struct eio_req *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&io->ring);
	const struct eio_place *p = &io->item[r->first].p;

	hawk_assert(sqe);	/* there is one for each that may be under way */
	if (r->n > 1 && p->write)
		io_uring_prep_writev(sqe, p->t->fd, &io->iov[r->first], r->n, p->off);
	else if (r->n > 1)
		io_uring_prep_readv(sqe, p->t->fd, &io->iov[r->first], r->n, p->off);
	else if (p->write)
		io_uring_prep_write(sqe, p->t->fd, p->mem, p->bytes, p->off);
	else
		io_uring_prep_read(sqe, p->t->fd, p->mem, p->bytes, p->off);
	io_uring_sqe_set_data(sqe, r);
}

static void req_send(struct eio *io, struct eio_req *r)
{
	flash_out(io->item[r->first].p.t);
	io->flying++;
	if (io->uring)
		ring_send(io, r);
	else
		ework_send(io, r);
}

static void send_more(struct eio *io)
{
	if (!io->nreqs)
		form(io);
	while (io->sent < io->nreqs && io->flying < EIO_DEPTH)
		req_send(io, &io->req[io->sent++]);
}

/* ---- the end of a request ---- */

/* Room for all: each item is in one joined request and in one of its own at most. */
static void again(struct eio *io, u32 item)
{
	struct eio_item *it = &io->item[item];

	io->iov[item] = (struct iovec){ it->p.mem, it->p.bytes };
	io->req[io->nreqs++] = (struct eio_req){ .first = item, .n = 1 };
}

static u64 bytes_of(const struct eio *io, const struct eio_req *r)
{
	u64 bytes = 0;
	u32 i;

	for (i = r->first; i < r->first + r->n; i++)
		bytes += io->item[i].p.bytes;
	return bytes;
}

/* Nobody waits for it: as if it had not been tried, unless it is whole. */
static void req_ends(struct eio *io, const struct eio_req *r, s32 res)
{
	u32 i;

	for (i = r->first; i < r->first + r->n; i++)
		io->kind->done(io->kind, io->item[i].what, res);
}

/* One transfer, not whole. */
static void item_goes_on(struct eio *io, struct eio_req *r, s32 res)
{
	struct eio_item *it = &io->item[r->first];

	if (res == -EINTR || res == -EAGAIN)
		res = 0;
	else if (!res)
		res = -EIO;	/* the file was cut short */
	if (res < 0 || ++r->tries > EIO_TRIES) {
		req_ends(io, r, res < 0 ? res : -EIO);
		return;
	}
	it->p.mem += res;
	it->p.off += (u32)res;
	it->p.bytes -= (u32)res;
	req_send(io, r);
}

/* eio_ended() - what came of a request; the caller has taken it off those under way */
void eio_ended(struct eio *io, struct eio_req *r, s32 res)
{
	bool whole = res >= 0 && (u64)res == bytes_of(io, r) && !(io->left && io->kind->lent);
	struct etier *t = io->item[r->first].p.t;
	u32 i;

	io->flying--;
	if (whole)
		req_ends(io, r, 0);
	else if (io->left)
		req_ends(io, r, -ECANCELED);
	else if (r->n == 1)
		item_goes_on(io, r, res);
	else
		for (i = r->first; i < r->first + r->n; i++)
			again(io, i);
	flash_back(t);	/* who sees that nothing is under way sees what came of it */
}

/* Start what was queued, without waiting: eio_finish() starts it at the latest. */
void eio_start(struct eio *io)
{
	if (!io || !io->queued)
		return;
	send_more(io);
	if (io->uring)
		io_uring_submit(&io->ring);
}

/* eio_reap() - end what has come of the ring */
void eio_reap(struct eio *io)
{
	struct io_uring_cqe *cqe;
	struct eio_req *r;
	s32 res;

	while (io->flying && !io_uring_peek_cqe(&io->ring, &cqe)) {
		r = io_uring_cqe_get_data(cqe);
		res = cqe->res;
		io_uring_cqe_seen(&io->ring, cqe);
		eio_ended(io, r, res);
	}
}

/* Ends what has come, after waiting for @some of it. */
static void ring_wait(struct eio *io, u32 some, u64 ns)
{
	struct __kernel_timespec ts = { (s64)(ns / 1000000000), (s64)(ns % 1000000000) };
	struct io_uring_cqe *cqe;
	int ret;

	ret = io_uring_submit_and_wait_timeout(&io->ring, &cqe, some, &ts, NULL);
	hawk_assert(ret >= 0 || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY ||
		    ret == -ETIME);
	eio_reap(io);
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
	if (!io || (!io->flying && io->sent == io->nreqs))
		return false;
	io->kind = kind;
	send_more(io);
	if (io->uring)
		ring_wait(io, 1, ns);
	else
		ework_wait(io, now_ns() + ns);
	return io->flying || io->sent < io->nreqs;
}

/* So many that this thread need not wake for each. */
static u32 some_of(const struct eio *io)
{
	u32 some = io->flying / 4;

	return some < 1 ? 1 : some < 8 ? some : 8;
}

/* What has not been sent is not made; what has been goes on without us. */
static void leave(struct eio *io)
{
	struct eio_req *r;

	while (io->sent < io->nreqs) {
		r = &io->req[io->sent++];
		req_ends(io, r, -ECANCELED);
	}
	estray_take(io);
}

/**
 * eio_finish() - wait for all that was queued, and give the context back
 * @io: context or NULL
 * @kind: of all of it
 * @deadline: when to leave, CLOCK_MONOTONIC ns; 0, or a kind without over(): never
 *
 * The ring has twice as many completion entries as requests are under way, so none is
 * dropped.
 * Return: 0, or -ETIME: the kind is over()'s from now on.
 */
int eio_finish(struct eio *io, const struct eio_kind *kind, u64 deadline)
{
	u64 now, until;

	if (!io)
		return 0;
	io->kind = kind;
	if (io->queued)
		send_more(io);
	while (io->flying || io->sent < io->nreqs) {
		now = now_ns();
		if (deadline && kind->over && now >= deadline) {
			leave(io);
			return -ETIME;
		}
		until = deadline && kind->over && deadline < now + EIO_LOOK_NS ? deadline :
			now + EIO_LOOK_NS;
		if (io->uring)
			ring_wait(io, some_of(io), until - now);
		else
			ework_wait(io, until);
		flash_watch(io->e);
		send_more(io);
	}
	eio_give(io);
	return 0;
}
