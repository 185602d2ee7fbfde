// SPDX-License-Identifier: MIT
/*
 * eio.c - moves between memory and flash through io_uring
 *
 * A context is used by one thread at a time and takes all moves of a plan at
 * once, so that the drive sees the full depth.  Where io_uring is not to be had
 * (a container's system call filter) the moves are made one by one.
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

/* Where a move's bytes are in memory and on flash. */
struct place {
	int fd;
	u8 *mem;
	u64 off;
	bool write;
};

static struct place place_of(struct embed *e, const struct hawk_move *m)
{
	const struct etier *src = &e->tier[m->src_tier], *dst = &e->tier[m->dst_tier];

	if (m->kind == HAWK_MOVE_WRITE)
		return (struct place) { dst->fd, src->base + m->src_off, m->dst_off, true };
	return (struct place) { src->fd, dst->base + m->dst_off, m->src_off, false };
}

/* Makes the part of a move that is left after @done bytes, waiting for it. */
static s32 transfer_rest(const struct place *p, u32 done, u32 bytes)
{
	ssize_t n;

	while (done < bytes) {
		if (p->write)
			n = pwrite(p->fd, p->mem + done, bytes - done, (off_t)(p->off + done));
		else
			n = pread(p->fd, p->mem + done, bytes - done, (off_t)(p->off + done));
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

static void finish(struct embed *e, struct hawk_move *m, s32 res, u32 bytes, eio_done *done)
{
	struct place p = place_of(e, m);

	if (res >= 0 || res == -EINTR || res == -EAGAIN)
		res = transfer_rest(&p, res > 0 ? (u32)res : 0, bytes);
	m->result = res;
	done(e, m, bytes);
}

/**
 * eio_queue() - start a move (READ or WRITE), or make it if there is no ring
 * @io: context or NULL
 * @bytes: bytes of the move
 * @done: told when the move has ended, with its result set
 */
void eio_queue(struct embed *e, struct eio *io, struct hawk_move *m, u32 bytes, eio_done *done)
{
	struct io_uring_sqe *sqe = io && io->uring ? io_uring_get_sqe(&io->ring) : NULL;
	struct place p = place_of(e, m);

	if (!sqe) {
		finish(e, m, 0, bytes, done);
		return;
	}
	if (p.write)
		io_uring_prep_write(sqe, p.fd, p.mem, bytes, p.off);
	else
		io_uring_prep_read(sqe, p.fd, p.mem, bytes, p.off);
	io_uring_sqe_set_data(sqe, m);
	io->queued++;
}

/**
 * eio_finish() - wait for all moves that were queued, and give the context back
 *
 * The ring has twice as many completion entries as a plan has moves, so none is
 * dropped.
 */
void eio_finish(struct embed *e, struct eio *io, u32 bytes, eio_done *done)
{
	struct io_uring_cqe *cqe;
	struct hawk_move *m;
	s32 res;
	int ret;

	while (io && io->queued) {
		ret = io_uring_submit_and_wait(&io->ring, 1);
		hawk_assert(ret >= 0 || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY);
		while (io->queued && !io_uring_peek_cqe(&io->ring, &cqe)) {
			m = io_uring_cqe_get_data(cqe);
			res = cqe->res;
			io_uring_cqe_seen(&io->ring, cqe);
			io->queued--;
			finish(e, m, res, bytes, done);
		}
	}
	eio_give(e, io);
}
