/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pm.h - suspend (pm.c), for those who start moves
 */
#ifndef HAWK_PM_H
#define HAWK_PM_H

#include <linux/types.h>

int hawk_pm_init(void);
void hawk_pm_exit(void);
bool hawk_pm_enter(void);
void hawk_pm_wait(void);
bool hawk_pm_thawed(void);

#endif /* HAWK_PM_H */
