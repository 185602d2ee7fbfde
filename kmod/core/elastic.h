/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * elastic.h - elastic residency of sequences: what hosts call (elastic.c)
 */
#ifndef HAWK_CORE_ELASTIC_H
#define HAWK_CORE_ELASTIC_H

#include "core.h"

/**
 * struct hawk_elastic_params - how much of a sequence stays in host tiers
 * @on: false: all that fits; nothing is held
 * @reserved: share of the space's frames to be kept free, per 65536, less than that
 * @alpha_min: least share of a sequence that stays, per 65536
 * @sinks: first tokens of a sequence that stay
 * @window: last tokens of a sequence that stay
 *
 * After creation: off, 1/20, 0.15, 64, 1024.
 */
struct hawk_elastic_params {
	bool on;
	u32 reserved;
	u32 alpha_min;
	u32 sinks;
	u32 window;
};

/**
 * struct hawk_elastic_info - what elastic residency does
 * @alpha: share in force, per 65536
 * @target: share that the formula gave last
 * @cap: frames of host tiers that the space has or could have now: what others own is not
 *	among them
 * @used: of these, in use
 * @evicted: blocks evicted by hawk_elastic_step()
 * @reloaded: blocks reloaded by it
 * @cycles: walks over all sequences that have ended
 */
struct hawk_elastic_info {
	u32 alpha;
	u32 target;
	u32 cap;
	u32 used;
	u64 evicted;
	u64 reloaded;
	u64 cycles;
};

/**
 * hawk_elastic_alpha() - the share that memory has room for
 * @alloc: memory in use
 * @cap: all there is, the same unit
 * @reserved: of it, to be kept free
 * @min: least result, per 65536
 *
 * Return: 1 - @alloc / (@cap - @reserved), @min to 1, per 65536, rounded down.
 */
u32 hawk_elastic_alpha(u32 alloc, u32 cap, u32 reserved, u32 min);

/** hawk_elastic_resident() - tokens of @tokens that stay, with share @alpha per 65536 */
u32 hawk_elastic_resident(const struct hawk_elastic_params *p, u32 alpha, u32 tokens);

/**
 * hawk_space_elastic_set() - set the parameters; alpha begins at 1 again
 * @s: the space
 * @p: the parameters
 *
 * Return: 0; -EINVAL; -EOPNOTSUPP (a space without sequences).
 */
int hawk_space_elastic_set(struct hawk_space *s, const struct hawk_elastic_params *p);

/** hawk_space_elastic_get() - the parameters and what is done with them: 0 or -EOPNOTSUPP */
int hawk_space_elastic_get(struct hawk_space *s, struct hawk_elastic_params *p,
		     struct hawk_elastic_info *info);

/**
 * hawk_space_elastic() - what HAWK_IOC_ELASTIC does: set if that is wanted, tell
 * @s: the space
 * @arg: as &struct hawk_elastic says
 *
 * Who may set is for the host to know.
 * Return: 0; -EINVAL; -EOPNOTSUPP.
 */
int hawk_space_elastic(struct hawk_space *s, struct hawk_elastic *arg);

/** hawk_space_elastic_on() - is hawk_elastic_step() to be called? */
bool hawk_space_elastic_on(struct hawk_space *s);

/**
 * hawk_elastic_step() - a bounded step of the walk that evicts and reloads
 * @s: the space
 * @now: present time, nanoseconds
 * @plan: receives the moves
 *
 * To be called in the background, by one thread at a time per space, a few times a
 * second, more often while it adds moves.
 * Return: number of moves added; -ENOBUFS: as for alloc, the plan may have moves.
 */
int hawk_elastic_step(struct hawk_space *s, u64 now, struct hawk_plan *plan);

#endif /* HAWK_CORE_ELASTIC_H */
