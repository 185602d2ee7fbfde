// SPDX-License-Identifier: MIT
/* kv_seq.c - the blocks of a sequence: take, publish, give back */
#include "kv/kv_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"

/* A LID that is taken by a cached block of a sequence long ago: try others. */
#define KV_LID_ROUNDS 16

static bool no_room(int status)
{
	return status == -ENOSPC || status == -EDQUOT || status == -ETIME || status == -EAGAIN;
}

static uint32_t kv_new_seq_id(struct kv *kv)
{
	uint32_t id = kv->next_seq;

	kv->next_seq = id == kv->last_seq ? 1 : id + 1;
	return id;
}

void kv_seq_take(struct kv *kv, struct kv_seq *s, uint32_t i, const struct hawk_item *it,
		 enum kv_block_state state)
{
	s->lid[i] = it->lid;
	s->vt[i] = it->vt;
	s->addr[i] = hawk_addr(kv->space, it->vt);
	s->state[i] = state;
}

/* Hands out the arrays of a sequence; with no memory it only adds up sizes. */
static void *kv_carve(char *mem, size_t *used, size_t n, size_t size)
{
	void *p = mem ? mem + *used : NULL;

	*used += (n * size + 15) & ~(size_t)15;
	return p;
}

static size_t kv_seq_layout(const struct kv *kv, struct kv_seq *s, char *mem)
{
	size_t used = 0, n = s->n_blocks;

	s->addr = kv_carve(mem, &used, n, sizeof(*s->addr));
	s->lid = kv_carve(mem, &used, n, sizeof(*s->lid));
	s->vt = kv_carve(mem, &used, n, sizeof(*s->vt));
	s->key = kv_carve(mem, &used, n, sizeof(*s->key));
	s->state = kv_carve(mem, &used, n, sizeof(*s->state));
	s->seg = kv_carve(mem, &used, HIST_SEGS(s->n_ops), sizeof(*s->seg));
	s->op = kv_carve(mem, &used, s->n_ops, sizeof(*s->op));
	s->key_op = kv_carve(mem, &used, 2 * s->n_ops + 1, sizeof(*s->key_op));
	if (!s->sparse.window)
		return used;
	s->centroid = kv_carve(mem, &used, n, sizeof(*s->centroid));
	s->centroid_mem = kv_carve(mem, &used, n, kv->centroid_bytes);
	/* segments are in order: a block is seen once, and again at each cut */
	s->read = kv_carve(mem, &used, n + HIST_SEGS(s->n_ops) + KV_READ_MORE, 1);
	return used;
}

/* One allocation holds all arrays of a sequence. */
static int kv_seq_init(struct kv *kv, struct kv_seq *s, const struct kv_need *need)
{
	char *mem;

	memset(s, 0, sizeof(*s));
	if (need->sparse && !kv->centroid_bytes)
		return -EOPNOTSUPP;
	if (need->sparse && need->sparse->window < kv->block_tokens)
		return -EINVAL;
	s->n_blocks = ((size_t)need->n_total + kv->block_tokens - 1) / kv->block_tokens;
	s->n_ops = need->n_ops;
	if (need->sparse)
		s->sparse = *need->sparse;
	mem = calloc(1, kv_seq_layout(kv, s, NULL));
	if (!mem) {
		memset(s, 0, sizeof(*s));
		return -ENOMEM;
	}
	kv_seq_layout(kv, s, mem);
	memcpy(s->root, need->root, KV_KEY_BYTES);
	s->reload.tokens_per_s = need->tokens_per_s;
	s->reload.urgent = need->urgent;
	if (s->n_ops)
		memcpy(s->op, need->ops, s->n_ops * sizeof(*s->op));
	s->n_key_ops = hist_key_ops(s->op, s->n_ops, s->key_op);
	kv_sparse_add_key_op(kv, s);
	return kv_view_open(kv, s);
}

static void kv_seq_make_keys(struct kv *kv, struct kv_seq *s, const int32_t *tokens,
			     uint32_t n_tokens)
{
	uint32_t bt = kv->block_tokens, n_ops = 0;

	for (; s->n_keys < n_tokens / bt; s->n_keys++) {
		uint32_t i = s->n_keys;

		while (n_ops < s->n_key_ops && s->key_op[n_ops].at < (i + 1) * bt)
			n_ops++;
		hawk_key_next(s->root, i ? s->key[i - 1] : NULL, tokens + (size_t)i * bt, bt,
			      s->key_op, n_ops, s->key[i]);
	}
}

/* Allocate one batch of blocks that have none yet, in order from *pos. */
static int kv_alloc_batch(struct kv *kv, struct kv_seq *s, uint32_t seq_id, uint32_t *pos,
			  uint32_t *taken)
{
	struct hawk_opts o = { .deadline_ns = clock_now_ns() + KV_DEADLINE_NS };
	uint32_t first = *pos, n = 0, i, k;
	int ret, fail = 0;

	for (i = first; i < s->n_blocks && n < HAWK_BATCH_MAX; i++) {
		if (s->state[i] != KV_NONE)
			continue;
		memset(&kv->items[n], 0, sizeof(kv->items[n]));
		kv->items[n].lid = HAWK_LID(seq_id, 0, 0, (uint64_t)i * kv->block_tokens);
		n++;
	}
	*pos = i;
	if (n == 0)
		return 0;
	ret = hawk_alloc(kv->space, kv->items, n, &o);
	if (ret < 0)
		return ret;
	for (i = first, k = 0; k < n; i++) {
		if (s->state[i] != KV_NONE)
			continue;
		if (kv->items[k].status == 0)
			kv_seq_take(kv, s, i, &kv->items[k], KV_FILLING);
		else if (kv->items[k].status == -EEXIST)
			(*taken)++;
		else if (!fail)
			fail = kv->items[k].status;
		k++;
	}
	return fail;
}

static int kv_seq_alloc_rest(struct kv *kv, struct kv_seq *s)
{
	unsigned int round;

	for (round = 0; round < KV_LID_ROUNDS; round++) {
		uint32_t seq_id = kv_new_seq_id(kv);
		uint32_t pos = s->n_shared, taken = 0;

		while (pos < s->n_blocks) {
			int ret = kv_alloc_batch(kv, s, seq_id, &pos, &taken);

			if (ret)
				return ret;
		}
		if (taken == 0)
			return 0;
	}
	return -EEXIST;
}

/* Blocks that must be in memory at one time, if computing starts at block @start. */
static uint32_t kv_seq_need(const struct kv *kv, const struct kv_seq *s, uint32_t start)
{
	uint32_t i, n = s->n_blocks;

	for (i = 0; i < start; i++)
		n -= kv_seq_hides(kv, s, i, start);
	return n;
}

static int kv_seq_check_size(const struct kv *kv, const struct kv_seq *s, uint32_t start,
			     char err[KV_ERR_LEN])
{
	uint32_t n = kv_seq_need(kv, s, start);

	if (n <= kv->capacity_blocks)
		return 0;
	return kv_fail(
		err, -E2BIG,
		"%u tokens need %u KV blocks of %u bytes, the DRAM tier holds %llu: shorten the prompt or max_tokens, or give hawkd a larger tier",
		n * kv->block_tokens, n, kv->block_bytes, (unsigned long long)kv->capacity_blocks);
}

int kv_seq_open(struct kv *kv, struct kv_seq *s, const struct kv_need *need, char err[KV_ERR_LEN])
{
	uint32_t n_max = (need->n_prompt - 1) / kv->block_tokens;
	int ret;

	ret = kv_seq_init(kv, s, need);
	if (ret) {
		kv_fail(err, ret, "cannot start a sequence: %s", strerror(-ret));
		goto fail;
	}
	ret = kv_seq_check_size(kv, s, n_max, err);
	if (ret)
		goto fail;
	if (!kv->no_cache) {
		kv_seq_make_keys(kv, s, need->tokens, need->n_prompt);
		ret = kv_seq_get_cached(kv, s, n_max);
	}
	if (!ret && kv_seq_check_size(kv, s, s->n_shared, err)) {
		ret = -E2BIG;
		goto fail;
	}
	if (!ret)
		ret = kv_seq_alloc_rest(kv, s);
	if (!ret) {
		kv_sparse_advance(kv, s, kv_seq_cached(kv, s));
		return 0;
	}
	if (no_room(ret))
		ret = kv_fail(err, -ENOSPC, "no room for %u KV blocks of %u bytes: %s",
			      kv_seq_need(kv, s, s->n_shared), kv->block_bytes, strerror(-ret));
	else
		kv_fail(err, ret, "cannot reserve KV blocks: %s", strerror(-ret));
fail:
	kv_seq_close(kv, s);
	return ret;
}

uint32_t kv_seq_cached(const struct kv *kv, const struct kv_seq *s)
{
	return s->n_shared * kv->block_tokens;
}

void kv_seq_commit(struct kv *kv, struct kv_seq *s, const int32_t *tokens, uint32_t n_valid)
{
	struct hawk_opts keep = { .flags = HAWK_BATCH_KEEP_PIN };
	uint32_t full = n_valid / kv->block_tokens;

	kv_sparse_advance(kv, s, n_valid);
	if (kv->no_cache)
		return;
	while (s->n_done < full) {
		struct hawk_item it[KV_STACK_ITEMS];
		uint32_t n = full - s->n_done, i;
		int ret;

		if (n > KV_STACK_ITEMS)
			n = KV_STACK_ITEMS;
		kv_seq_make_keys(kv, s, tokens, (s->n_done + n) * kv->block_tokens);
		memset(it, 0, n * sizeof(it[0]));
		for (i = 0; i < n; i++) {
			it[i].lid = s->lid[s->n_done + i];
			memcpy(it[i].key, s->key[s->n_done + i], KV_KEY_BYTES);
		}
		ret = hawk_put(kv->space, it, n, &keep);
		for (i = 0; i < n; i++) {
			if (ret < 0)
				continue; /* stays FILLING, ends with the sequence */
			if (it[i].status == 0)
				s->state[s->n_done + i] = KV_READY;
			else if (it[i].status == -EEXIST)
				s->state[s->n_done + i] = KV_DUP;
		}
		if (ret < 0)
			log_err("cannot publish KV blocks: %s", hawk_strerror_last());
		s->n_done += n;
	}
}

/* Collect up to KV_STACK_ITEMS blocks from *pos; @dup: only those in state DUP. */
static uint32_t kv_seq_collect(const struct kv_seq *s, uint32_t *pos, uint32_t end, bool dup,
			       struct hawk_item *it)
{
	uint32_t n = 0;

	for (; *pos < end && n < KV_STACK_ITEMS; (*pos)++) {
		if (s->state[*pos] == KV_NONE || (dup && s->state[*pos] != KV_DUP))
			continue;
		memset(&it[n], 0, sizeof(it[n]));
		it[n].lid = s->lid[*pos];
		it[n].vt = dup ? 0 : s->vt[*pos];
		n++;
	}
	return n;
}

void kv_seq_let_go(struct kv *kv, struct kv_seq *s, uint32_t first, uint32_t end)
{
	struct hawk_item it[KV_STACK_ITEMS];
	uint32_t pos = first, n;
	int ret;

	while ((n = kv_seq_collect(s, &pos, end, false, it)) > 0) {
		ret = hawk_unpin(kv->space, it, n);
		if (ret != (int)n)
			log_err("%d of %u KV blocks could not be unpinned: %s",
				ret < 0 ? (int)n : (int)n - ret, n, hawk_strerror_last());
	}
	for (pos = first; (n = kv_seq_collect(s, &pos, end, true, it)) > 0;)
		hawk_free(kv->space, it, n);
	if (end > first) {
		memset(s->addr + first, 0, (end - first) * sizeof(*s->addr));
		memset(s->state + first, KV_NONE, end - first);
	}
}

void kv_seq_close(struct kv *kv, struct kv_seq *s)
{
	kv_view_close(kv, s);
	kv_seq_let_go(kv, s, 0, s->n_blocks);
	free(s->addr);
	memset(s, 0, sizeof(*s));
}
