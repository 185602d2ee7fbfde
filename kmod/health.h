/* SPDX-License-Identifier: GPL-2.0 */
/*
 * health.h - drives that fail, stall or go away (health.c)
 */
#ifndef HAWK_HEALTH_H
#define HAWK_HEALTH_H

#include <linux/atomic.h>
#include <linux/workqueue.h>

struct hawk_mem;

/**
 * struct hawk_watch - of a flash tier
 * @out: transfers under way
 * @since: when the last one ended, or the first of them began, nanoseconds
 * @seen: @since at the last look; the work's own
 * @looks: how many found it unchanged, in a row; the work's own
 * @dead: the kernel has given the disk up
 * @work: looks for stalls, and ends what is lost
 */
struct hawk_watch {
	atomic_t out;
	u64 since;
	u64 seen;
	u32 looks;
	bool dead;
	struct delayed_work work;
};

void hawk_health_init(struct hawk_mem *m);
void hawk_health_stop(struct hawk_mem *m);
void hawk_health_exit(void);
void hawk_health_begin(struct hawk_mem *m);
void hawk_health_end(struct hawk_mem *m);
void hawk_health_failed(struct hawk_mem *m, bool write, int err);
void hawk_health_works(struct hawk_mem *m, bool write);

#endif /* HAWK_HEALTH_H */
