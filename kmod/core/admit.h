/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * admit.h - which blocks are worth a write to flash
 */
#ifndef HAWK_CORE_ADMIT_H
#define HAWK_CORE_ADMIT_H

#include "priv.h"

u32 hawk_admit_ask(struct hawk_space *s, struct hawk_block *blk, struct hawk_want *w);
void hawk_admit_written(struct hawk_space *s, u32 tier, const struct hawk_want *w);
void hawk_admit_refused(struct hawk_space *s, struct hawk_block *blk,
			const struct hawk_want *w);
void hawk_admit_charge(struct hawk_tier *t, u64 bytes);
void hawk_admit_refund(struct hawk_tier *t, u64 bytes);
u64 hawk_flash_worth(struct hawk_space *s, const struct hawk_block *blk, u64 now);

#endif /* HAWK_CORE_ADMIT_H */
