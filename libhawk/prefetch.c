// SPDX-License-Identifier: MIT
/*
 * prefetch.c - the next group of layers is fetched while this one computes
 *
 * Two buffers take turns.  A half goes
 *
 *	free -> issue -> under way -> complete -> ready -> release -> free
 *
 * and halves are issued, become ready and are released in the same order.  The caller
 * reaps completions, as the ring is his, and shows them here.  Not for several threads
 * at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "priv.h"
#include "../kmod/core/gather.h"

enum half_state {
	HALF_FREE,
	HALF_UNDER_WAY,
	HALF_READY,
};

struct half {
	enum half_state state;
	uint8_t *buf;
	struct hawk_prefetch_group group;
	uint32_t remap[HAWK_BATCH_MAX];
	int32_t status[HAWK_BATCH_MAX];
	int32_t came[HAWK_BATCH_MAX];	/* status by place */
};

struct hawk_prefetch {
	struct hawk_kv *kv;
	struct hawk_gather_budget budget;
	bool measured;
	unsigned int blocks;	/* that a half has room for */
	uint64_t bytes;		/* of a half */
	uint64_t user_data;
	unsigned int issue;	/* half to be issued next */
	unsigned int ready;	/* half that is ready next */
	uint64_t lid[HAWK_BATCH_MAX];
	struct hawk_gather_key key[HAWK_BATCH_MAX];
	struct half half[2];
};

static bool has_rate(const struct hawk_gather_budget *b)
{
	unsigned int t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (b->mb_per_s[t])
			return true;
	return false;
}

int hawk_prefetch_open(struct hawk_kv *kv, const struct hawk_gather_budget *b,
		       unsigned int blocks, uint64_t user_data, struct hawk_prefetch **pfp)
{
	struct hawk_prefetch *pf;
	void *p;

	*pfp = NULL;
	if (!kv->ring)
		return hawk_fail(-EINVAL, "fetching ahead needs a completion ring");
	if (!blocks || blocks > HAWK_BATCH_MAX || b->block_bytes != kv->block_bytes)
		return hawk_fail(-EINVAL, "fetching ahead: 1 to %u blocks of %u bytes",
				 HAWK_BATCH_MAX, kv->block_bytes);
	pf = calloc(1, sizeof(*pf));
	if (!pf)
		return hawk_fail(-ENOMEM, "fetching ahead");
	pf->kv = kv;
	pf->budget = *b;
	pf->blocks = blocks;
	pf->bytes = (uint64_t)blocks * kv->block_bytes;
	pf->user_data = user_data;
	p = mmap(NULL, 2 * pf->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		free(pf);
		return hawk_fail(-ENOMEM, "two buffers of %u blocks", blocks);
	}
	pf->half[0].buf = p;
	pf->half[1].buf = pf->half[0].buf + pf->bytes;
	*pfp = pf;
	return 0;
}

int hawk_prefetch_close(struct hawk_prefetch *pf)
{
	if (!pf)
		return 0;
	if (pf->half[0].state == HALF_UNDER_WAY || pf->half[1].state == HALF_UNDER_WAY)
		return hawk_fail(-EBUSY, "a group is still being fetched");
	munmap(pf->half[0].buf, 2 * pf->bytes);
	free(pf);
	return 0;
}

/* How many blocks come in time. */
static unsigned int blocks_in_time(const struct hawk_prefetch *pf)
{
	unsigned int group = pf->budget.group ? pf->budget.group : HAWK_GROUP_PCIE;

	return hawk_gather_rows_max(&pf->budget) * group;
}

/* The first @max rows of each list, to be looked at.  Return: how many they are. */
static unsigned int keys_fill(struct hawk_prefetch *pf, const uint64_t *lid,
			      const uint32_t *count, unsigned int n, uint32_t max)
{
	unsigned int i, r, rows = 0;

	for (i = 0; i < n; lid += count[i++])
		for (r = 0; r < count[i] && r < max; r++)
			pf->key[rows++] = (struct hawk_gather_key) {
				.key = hawk_lid_block(lid[r], pf->kv->block_tokens),
				.row = r,
			};
	return rows;
}

/* To which length must the lists be cut? */
static unsigned int cut_lists(struct hawk_prefetch *pf, const uint64_t *lid,
			      const uint32_t *count, unsigned int n)
{
	unsigned int rows, cut, max = blocks_in_time(pf);

	if (!has_rate(&pf->budget))
		return 1;	/* to measure with */
	rows = keys_fill(pf, lid, count, n, UINT32_MAX);
	cut = hawk_gather_cap(pf->key, rows, max < pf->blocks ? max : pf->blocks);
	return cut < HAWK_BATCH_MAX ? cut : HAWK_BATCH_MAX;
}

/*
 * Nothing comes: would it from a faster device?  Not if there is no room for one row of
 * each list, or if a gather of nothing takes too long.
 */
static bool too_slow(struct hawk_prefetch *pf, const uint64_t *lid, const uint32_t *count,
		     unsigned int n)
{
	unsigned int rows = keys_fill(pf, lid, count, n, 1);

	return pf->budget.setup_ns < pf->budget.compute_ns &&
	       hawk_gather_cap(pf->key, rows, pf->blocks) == HAWK_GATHER_NONE;
}

/*
 * Nothing is fetched, so nothing would be measured any more: a device that was slow once
 * would be slow for ever.  Each group that goes without raises what is expected of it.
 */
static void try_again(struct hawk_gather_budget *b)
{
	unsigned int t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (b->mb_per_s[t] && b->mb_per_s[t] < UINT32_MAX / 2)
			b->mb_per_s[t] += b->mb_per_s[t] / 4 + 1;
}

static int check_count(const uint32_t *count, unsigned int n)
{
	uint64_t rows = 0;
	unsigned int i;

	if (!n || n > HAWK_GATHER_LISTS)
		return hawk_fail(n ? -E2BIG : -EINVAL, "%u lists: 1 to %u", n, HAWK_GATHER_LISTS);
	for (i = 0; i < n; i++)
		rows += count[i];
	return rows > HAWK_BATCH_MAX ? hawk_fail(-E2BIG, "more than %u rows", HAWK_BATCH_MAX) : 0;
}

int hawk_prefetch_issue(struct hawk_prefetch *pf, const uint64_t *lid, const uint32_t *count,
			unsigned int n, unsigned int *cutp)
{
	struct half *h = &pf->half[pf->issue];
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC, .user_data = pf->user_data + pf->issue };
	uint32_t len[HAWK_GATHER_LISTS];
	struct hawk_gather_lists l = {
		.lid = pf->lid, .count = len, .lists = n, .remap = h->remap,
		.status = h->status, .buf = h->buf, .buf_bytes = pf->bytes,
	};
	unsigned int i, cut, rows = 0, from = 0;
	struct hawk_gather g;
	int ret = check_count(count, n);

	if (ret)
		return ret;
	if (h->state != HALF_FREE)
		return hawk_fail(-EBUSY, "both buffers are in use");
	cut = cut_lists(pf, lid, count, n);
	for (i = 0; i < n; from += count[i++]) {
		len[i] = count[i] < cut ? count[i] : cut;
		memcpy(pf->lid + rows, lid + from, len[i] * sizeof(*lid));
		rows += len[i];
	}
	if (cutp)
		*cutp = cut;
	if (!cut && pf->measured && too_slow(pf, lid, count, n))
		try_again(&pf->budget);
	if (!rows)
		return 0;
	ret = hawk_gather(pf->kv, &l, &o, &g);
	if (ret < 0)
		return ret;
	h->state = HALF_UNDER_WAY;
	h->group = (struct hawk_prefetch_group) {
		.buf = h->buf, .remap = h->remap, .status = h->status, .cut = cut,
		.rows = rows, .blocks = g.unique,
	};
	pf->issue ^= 1;
	return (int)g.unique;
}

/* What a whole gather brought in which time: from whatever tiers its blocks came. */
static void measure(struct hawk_prefetch *pf, const struct hawk_cqe *cqe)
{
	struct hawk_gather_budget *b = &pf->budget;
	struct hawk_gather g = { .unique = cqe->index };

	if (!cqe->index || !cqe->vt)
		return;
	if (!pf->measured) {
		memset(b->mb_per_s, 0, sizeof(b->mb_per_s));
		pf->measured = true;
	}
	g.tier[0].blocks = cqe->index;
	g.tier[0].ns = cqe->vt;
	hawk_gather_measure(b, &g);
}

/* All blocks have come or failed.  A row whose block has not come has no place. */
static void set_status(struct half *h)
{
	unsigned int i;

	for (i = 0; i < h->group.rows; i++) {
		if (h->status[i] != -EINPROGRESS)
			continue;
		h->status[i] = h->came[h->remap[i]];
		if (h->status[i])
			h->remap[i] = HAWK_GATHER_NONE;
	}
}

int hawk_prefetch_complete(struct hawk_prefetch *pf, const struct hawk_cqe *cqe)
{
	uint64_t nr = cqe->user_data - pf->user_data;
	struct half *h = &pf->half[nr & 1];

	if (nr > 1 || h->state != HALF_UNDER_WAY)
		return -ENOENT;
	if (cqe->flags & HAWK_CQE_ITEM) {
		if (cqe->index < h->group.blocks)
			h->came[cqe->index] = cqe->status;
		return 0;
	}
	set_status(h);
	measure(pf, cqe);
	h->group.ns = cqe->vt;
	h->state = HALF_READY;
	return 1;
}

int hawk_prefetch_ready(struct hawk_prefetch *pf, struct hawk_prefetch_group *group)
{
	const struct half *h = &pf->half[pf->ready];

	if (h->state != HALF_READY)
		return -EAGAIN;
	*group = h->group;
	return 0;
}

void hawk_prefetch_release(struct hawk_prefetch *pf)
{
	struct half *h = &pf->half[pf->ready];

	if (h->state != HALF_READY)
		return;
	h->state = HALF_FREE;
	pf->ready ^= 1;
}
