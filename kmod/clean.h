/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clean.h - chunks that left their owner are made fit for another (clean.c)
 */
#ifndef HAWK_CLEAN_H
#define HAWK_CLEAN_H

#include <linux/atomic.h>
#include <linux/workqueue.h>

#include "core/core.h"

struct hawk_as;
struct hawk_mem;

/**
 * struct hawk_cleaner - takes care of the chunks of a tier that left their owner
 * @work: a pass over all of them
 * @asked: passes that were waited for, by number
 * @made: number of the last one when the last pass began that has ended
 * @unclean: this time it could not zero one; only @work's
 * @slower: pauses in a row after which that was so, 0: it could; only @work's
 * @at: when the present pause is over, jiffies, if @slower; only @work's
 */
struct hawk_cleaner {
	struct delayed_work work;
	atomic_t asked;
	int made;
	bool unclean;
	int slower;
	unsigned long at;
};

/**
 * struct hawk_settle - passes that a space waits for
 * @nr: their numbers by tier
 * @tiers: bit t: there is one in tier t
 */
struct hawk_settle {
	int nr[HAWK_TIERS_MAX];
	u32 tiers;
};

void hawk_clean_init(struct hawk_mem *m);
void hawk_clean_told(struct hawk_mem *m);
int hawk_clean_wait(struct hawk_mem *m);
void hawk_mem_clean_soon(struct hawk_mem *m);
void hawk_mem_unclean(struct hawk_mem *m, u32 chunk, int err);
bool hawk_settle_begin(struct hawk_as *as, struct hawk_settle *s);
bool hawk_settle_over(const struct hawk_as *as, const struct hawk_settle *s);
bool hawk_as_settle(struct hawk_as *as);

#endif /* HAWK_CLEAN_H */
