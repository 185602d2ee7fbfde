// SPDX-License-Identifier: MIT
/*
 * check.c - arguments that every backend refuses, for the reasons of <linux/hawk.h>
 */
#include <errno.h>
#include <string.h>

#include "priv.h"

bool hawk_key_is_zero(const uint8_t *key)
{
	uint64_t w[HAWK_KEY_BYTES / 8];

	memcpy(w, key, sizeof(w));
	return !(w[0] | w[1] | w[2] | w[3]);
}

int hawk_check_name(const char *name)
{
	size_t len = name ? strlen(name) : 0, i;

	if (!len || len >= HAWK_NAME_MAX)
		return hawk_fail(-EINVAL, "space name: 1 to %d bytes", HAWK_NAME_MAX - 1);
	for (i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return hawk_fail(-EINVAL, "space name: printable ASCII, no space, no '/'");
	return 0;
}

static int check_quota(const struct hawk_quota *quota)
{
	unsigned int t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (quota[t].min_bytes > quota[t].max_bytes)
			return hawk_fail(-EINVAL, "quota of tier %u: minimum above maximum", t);
	return 0;
}

static int check_seqs(const struct hawk_space_create *c)
{
	uint64_t plane = (uint64_t)c->block_tokens * c->token_bytes;

	if (c->seqs > HAWK_SEQS_MAX)
		return hawk_fail(-EINVAL, "seqs %u: 0 to %u", c->seqs, HAWK_SEQS_MAX);
	if (c->segs > HAWK_SEGS_MAX || (c->segs && !c->seqs))
		return hawk_fail(-EINVAL, "segs %u: 0 to %u, of a space with sequences only",
				 c->segs, HAWK_SEGS_MAX);
	if (!c->planes != !c->token_bytes || c->planes > c->block_bytes ||
	    plane > c->block_bytes || plane * c->planes > c->block_bytes)
		return hawk_fail(-EINVAL,
				 "%u planes of %u tokens of %u bytes: they must fit into %u bytes",
				 c->planes, c->block_tokens, c->token_bytes, c->block_bytes);
	return 0;
}

int hawk_check_space(const struct hawk_space_create *c)
{
	if (!c->block_bytes || c->block_bytes % HAWK_FRAME_ALIGN ||
	    c->block_bytes > HAWK_CHUNK_BYTES)
		return hawk_fail(-EINVAL, "block_bytes %u: a multiple of %u up to %u bytes",
				 c->block_bytes, HAWK_FRAME_ALIGN, HAWK_CHUNK_BYTES);
	if (!c->block_tokens || c->block_tokens > 65536)
		return hawk_fail(-EINVAL, "block_tokens %u: 1 to 65536", c->block_tokens);
	if (!c->layers || c->layers > HAWK_LID_LAYER_MAX + 1)
		return hawk_fail(-EINVAL, "layers %u: 1 to %u", c->layers,
				 HAWK_LID_LAYER_MAX + 1);
	if (!c->head_groups || c->head_groups > HAWK_LID_HEAD_MAX + 1)
		return hawk_fail(-EINVAL, "head_groups %u: 1 to %u", c->head_groups,
				 HAWK_LID_HEAD_MAX + 1);
	if (!c->max_blocks || c->max_blocks > HAWK_BLOCKS_MAX)
		return hawk_fail(-EINVAL, "max_blocks %u: 1 to %u", c->max_blocks,
				 HAWK_BLOCKS_MAX);
	if (c->tp_degree ? c->tp_rank >= c->tp_degree || c->head_groups % c->tp_degree :
			   c->tp_rank != 0)
		return hawk_fail(-EINVAL, "rank %u of %u ranks with %u head groups in all",
				 c->tp_rank, c->tp_degree, c->head_groups);
	if (c->buckets > 512 || (c->buckets & (c->buckets - 1)))
		return hawk_fail(-EINVAL, "buckets %u: 0 or a power of two up to 512",
				 c->buckets);
	if (c->mode & ~0666u || (c->mode && !(c->flags & HAWK_SPACE_NAMED)))
		return hawk_fail(-EINVAL, "mode 0%o: permission bits, of a named space only",
				 c->mode);
	if (c->idle_ns > INT64_MAX || (c->idle_ns && !(c->flags & HAWK_SPACE_NAMED)))
		return hawk_fail(-EINVAL, "idle time of %llu ns: of a named space only",
				 (unsigned long long)c->idle_ns);
	if (check_quota(c->quota))
		return -EINVAL;
	return check_seqs(c);
}

int hawk_check_set(const struct hawk_space_set *s)
{
	uint32_t known = HAWK_SPACE_SET_IDLE | HAWK_SPACE_SET_MODE;

	if (s->mask & ~known)
		return hawk_fail(-EOPNOTSUPP, "unknown bits 0x%x of what to change",
				 s->mask & ~known);
	if (!s->mask)
		return hawk_fail(-EINVAL, "nothing to change");
	if (s->mode & ~0666u || (s->mode && !(s->mask & HAWK_SPACE_SET_MODE)))
		return hawk_fail(-EINVAL, "mode 0%o: permission bits, with HAWK_SPACE_SET_MODE",
				 s->mode);
	if (s->idle_ns > INT64_MAX || (s->idle_ns && !(s->mask & HAWK_SPACE_SET_IDLE)))
		return hawk_fail(-EINVAL, "idle time of %llu ns, with HAWK_SPACE_SET_IDLE",
				 (unsigned long long)s->idle_ns);
	return 0;
}

/* Calls that may wait for moves: they have a deadline and a preferred tier. */
static bool op_waits(unsigned int op)
{
	return op == HAWK_IOC_ALLOC || op == HAWK_IOC_GET || op == HAWK_IOC_RELOAD ||
	       op == HAWK_IOC_UNSHARE;
}

static uint32_t batch_flags(unsigned int op)
{
	switch (op) {
	case HAWK_IOC_ALLOC:
		return HAWK_BATCH_NOWAIT;
	case HAWK_IOC_PUT:
		return HAWK_BATCH_KEEP_PIN;
	case HAWK_IOC_LOOKUP:
		return HAWK_BATCH_LEASE;
	case HAWK_IOC_GET:
		return HAWK_BATCH_ASYNC | HAWK_BATCH_NOWAIT | HAWK_BATCH_PREFIX |
		       HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME;
	case HAWK_IOC_RELOAD:
		return HAWK_BATCH_ASYNC | HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME;
	default:
		return 0;
	}
}

int hawk_check_batch(unsigned int op, const struct hawk_batch *b)
{
	uint32_t unknown = b->flags & ~batch_flags(op);

	if (unknown)
		return hawk_fail(-EOPNOTSUPP, "batch flags 0x%x do not go with this call",
				 unknown);
	if (!b->count)
		return hawk_fail(-EINVAL, "a batch of no items");
	if (b->count > HAWK_BATCH_MAX)
		return hawk_fail(-E2BIG, "a batch of %u items, at most %u", b->count,
				 HAWK_BATCH_MAX);
	if (!b->items)
		return hawk_fail(-EFAULT, "a batch without an array of items");
	if (b->tier != HAWK_TIER_ANY && (b->tier >= HAWK_TIERS_MAX || !op_waits(op)))
		return hawk_fail(-EINVAL, "this call cannot prefer tier %u", b->tier);
	if (b->deadline_ns && !op_waits(op) && !(b->flags & HAWK_BATCH_LEASE))
		return hawk_fail(-EINVAL, "this call does not wait and takes no deadline");
	if (b->flags & HAWK_BATCH_IN_TIME && !b->deadline_ns)
		return hawk_fail(-EINVAL, "in time for what? HAWK_BATCH_IN_TIME needs a deadline");
	if (b->deadline_ns > INT64_MAX)
		return hawk_fail(-EINVAL, "deadline %llu is beyond the end of time",
				 (unsigned long long)b->deadline_ns);
	return 0;
}

int hawk_check_seq(const struct hawk_seq_batch *b)
{
	if (!b->count)
		return hawk_fail(-EINVAL, "a batch of no operations");
	if (b->count > HAWK_BATCH_MAX)
		return hawk_fail(-E2BIG, "a batch of %u operations, at most %u", b->count,
				 HAWK_BATCH_MAX);
	if (!b->ops)
		return hawk_fail(-EFAULT, "a batch without an array of operations");
	return 0;
}
