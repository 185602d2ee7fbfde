/* SPDX-License-Identifier: MIT */
/*
 * epool.h - what epool.c and escan.c know of the pool of a tier
 */
#ifndef HAWK_EPOOL_H
#define HAWK_EPOOL_H

#include "embed.h"
#include "poolfile.h"

struct epool {
	struct hawk_super super;	/* constant while the tier is there, but @written, and
					 * @seq: etier.commit_lock
					 */
	u64 header_bytes;		/* headers and records written; atomic */
	u64 failed;			/* reads and writes of them that failed; atomic */
	pthread_mutex_t record_lock;	/* guards @page, and pages of records while they change */
	bool unflushed;			/* headers or records written since the last flush; atomic */
	bool torn;			/* epool_torn() */
	bool sparse;			/* poolfile_sparse(), when it was opened */
	u8 *buf;			/* pages of headers; etier.commit_lock */
	u8 *page;
	const char *path;
};

/* The first failure is told; how many there were is in the tier's errors. */
void epool_failed(struct etier *t, bool write, const char *what, int err);

#endif /* HAWK_EPOOL_H */
