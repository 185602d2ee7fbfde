/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pace.h - tuning of the pace, as sysfs.c shows it (pace.c)
 */
#ifndef HAWK_PACE_H
#define HAWK_PACE_H

struct attribute_group;
struct hawk_mem;

extern const struct attribute_group hawk_pace_group;
u32 hawk_pace_flash(const struct hawk_mem *m);
ssize_t hawk_pace_set_flash(const struct hawk_mem *m, u32 mb_per_s, size_t len);

#endif /* HAWK_PACE_H */
