/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pace.h - estimates and tuning of the pace (pace.c), lazy promotion (promote.c)
 */
#ifndef HAWK_PACE_H
#define HAWK_PACE_H

struct attribute_group;
struct hawk_file;
struct hawk_mem;

extern const struct attribute_group hawk_pace_group;
u32 hawk_pace_flash(const struct hawk_mem *m);
ssize_t hawk_pace_set_flash(const struct hawk_mem *m, u32 mb_per_s, size_t len);
int hawk_pace_add_tier(struct hawk_mem *m);
int hawk_ioc_estimate(struct hawk_file *f, void *data);

int hawk_ioc_phase(struct hawk_file *f, void *data);
void hawk_promote_exit(void);

#endif /* HAWK_PACE_H */
