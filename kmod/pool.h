/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pool.h - persistent flash (pool.c), for those who make and end tiers and spaces
 */
#ifndef HAWK_POOL_H
#define HAWK_POOL_H

#include "hawk.h"
#include "core/pool.h"

int hawk_pool_attach(struct hawk_mem *m, u64 size);
int hawk_pool_mark_plain(struct hawk_mem *m, u64 size, u64 off);
int hawk_pool_start(struct hawk_mem *m);
void hawk_pool_stop(struct hawk_mem *m);
void hawk_pool_file_free(struct hawk_mem *m);
u64 hawk_pool_header_bytes(const struct hawk_mem *m);
u32 hawk_pool_scan_left(const struct hawk_mem *m);
int hawk_pool_grant(struct hawk_as *as, const struct hawk_grant *g);
void hawk_pool_clean(struct hawk_mem *m, u32 chunk);
void hawk_pool_sync(struct hawk_mem *m);
void hawk_pool_end(struct hawk_as *as);
int hawk_pool_find(struct hawk_as *as);
bool hawk_pool_torn(const struct hawk_mem *m);
void hawk_pool_kick(struct hawk_mem *m);
void hawk_pool_due(void *owner);
void hawk_pool_init(void);
void hawk_pool_exit(void);

#endif /* HAWK_POOL_H */
