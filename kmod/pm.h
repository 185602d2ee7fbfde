/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pm.h - suspend (pm.c), for those who start moves
 */
#ifndef HAWK_PM_H
#define HAWK_PM_H

#include "hawk.h"

int hawk_pm_init(void);
void hawk_pm_exit(void);
bool hawk_pm_enter(void);
void hawk_pm_wait(void);
void hawk_pm_pause(struct hawk_as *as, int n);
bool hawk_pm_thawed(void);

/* Is the system about to sleep?  Who waits for the pace is woken when it is. */
static inline bool hawk_pm_soon(void)
{
	return READ_ONCE(hawk_dev.quiesced);
}

/* Is nothing of the space under way, if so much is active? */
static inline bool hawk_pm_settled(const struct hawk_as *as, int active)
{
	return active == atomic_read(&as->paused);
}

#endif /* HAWK_PM_H */
