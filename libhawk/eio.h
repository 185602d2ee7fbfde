/* SPDX-License-Identifier: MIT */
/*
 * eio.h - what eio.c, ework.c and estray.c share
 */
#ifndef HAWK_EIO_H
#define HAWK_EIO_H

#include <sys/uio.h>

#include "embed.h"

#define EIO_DEPTH	128	/* requests of a context under way together */
#define EWORK_THREADS	8u	/* of a drive */

/* A transfer; @seq: when it was queued. */
struct eio_item {
	void *what;
	struct eio_place p;	/* of what is left of it */
	u32 seq;
};

/* Items that are neighbours; @seq: when the first of them was queued. */
struct eio_req {
	u32 first;
	u32 n;
	u32 seq;
	u32 tries;
	struct eio *io;		/* below: of ework.c */
	struct eio_req *next;
	s32 res;
};

struct eio {
	struct eio *next;	/* embed.io_free, embed.strays */
	struct embed *e;
	const struct eio_kind *kind;
	struct io_uring ring;
	bool uring;
	bool left;		/* by its caller; set with @lock held if there is no ring */
	u32 queued;		/* items */
	u32 nreqs;		/* 0: not formed yet */
	u32 sent;		/* requests */
	u32 flying;		/* of them */
	pthread_mutex_t lock;	/* without a ring: guards @ended, and @flying of one left */
	pthread_cond_t cond;
	struct eio_req *ended;	/* requests that threads have made */
	struct eio_item item[EMBED_PLAN_MAX];
	struct eio_req req[2 * EMBED_PLAN_MAX];
	struct iovec iov[EMBED_PLAN_MAX];
};

/* eio.c */
void eio_give(struct eio *io);
void eio_ended(struct eio *io, struct eio_req *r, s32 res);
void eio_reap(struct eio *io);

/* ework.c */
void ework_init(struct eio *io);
void ework_fini(struct eio *io);
void ework_send(struct eio *io, struct eio_req *r);
void ework_wait(struct eio *io, u64 until);
bool ework_leave(struct eio *io);

/* estray.c */
void estray_take(struct eio *io);
void estray_over(struct eio *io);

#endif /* HAWK_EIO_H */
