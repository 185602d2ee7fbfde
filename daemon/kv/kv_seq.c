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

	kv->next_seq = id == HAWK_LID_SEQ_MAX ? 1 : id + 1;
	return id;
}

static void kv_seq_take(struct kv *kv, struct kv_seq *s, uint32_t i, const struct hawk_item *it,
			enum kv_block_state state)
{
	s->lid[i] = it->lid;
	s->vt[i] = it->vt;
	s->addr[i] = hawk_addr(kv->space, it->vt);
	s->state[i] = state;
}

/* One allocation holds all arrays of a sequence. */
static int kv_seq_init(struct kv *kv, struct kv_seq *s, uint32_t n_total)
{
	size_t n = ((size_t)n_total + kv->block_tokens - 1) / kv->block_tokens;
	char *mem;

	memset(s, 0, sizeof(*s));
	mem = calloc(n, sizeof(*s->addr) + sizeof(*s->lid) + sizeof(*s->vt) + KV_KEY_BYTES + 1);
	if (!mem)
		return -ENOMEM;
	s->n_blocks = n;
	s->addr = (void **)mem;
	s->lid = (uint64_t *)(s->addr + n);
	s->vt = s->lid + n;
	s->key = (uint8_t(*)[KV_KEY_BYTES])(s->vt + n);
	s->state = (uint8_t *)(s->key + n);
	return 0;
}

static void kv_seq_make_keys(struct kv *kv, struct kv_seq *s, const int32_t *tokens,
			     uint32_t n_tokens)
{
	uint32_t full = n_tokens / kv->block_tokens;

	while (s->n_keys < full) {
		uint32_t i = s->n_keys;

		kv_key_next(i ? s->key[i - 1] : s->root, tokens + (size_t)i * kv->block_tokens,
			    kv->block_tokens, s->key[i]);
		s->n_keys++;
	}
}

static void kv_fill_keys(struct kv *kv, const struct kv_seq *s, uint32_t first, uint32_t n)
{
	uint32_t i;

	memset(kv->items, 0, n * sizeof(*kv->items));
	for (i = 0; i < n; i++) {
		kv->items[i].flags = HAWK_ITEM_BY_KEY;
		memcpy(kv->items[i].key, s->key[first + i], KV_KEY_BYTES);
	}
}

/*
 * Look up a batch, remember where each block lies, then get it.  The lease
 * closes the window in which a block that was found could be dropped.
 * Return: blocks taken, or a negative errno.
 */
static int kv_get_batch(struct kv *kv, struct kv_seq *s, uint32_t first, uint32_t n)
{
	struct hawk_opts look = { .flags = HAWK_BATCH_LEASE };
	struct hawk_opts get = { .flags = HAWK_BATCH_PREFIX };
	unsigned int prefix = 0;
	uint64_t lease = 0;
	uint32_t i;
	int found, ret, stop = 0;

	kv_fill_keys(kv, s, first, n);
	found = hawk_lookup(kv->space, kv->items, n, &look, &lease);
	if (found <= 0)
		return found;
	for (i = 0; i < (uint32_t)found; i++) {
		uint64_t vt = kv->items[i].vt;

		kv->from_flash[i] = !(vt & HAWK_VT_VALID) ||
				    !(kv->host_tiers & (1u << HAWK_VT_TIER(vt)));
	}
	kv_fill_keys(kv, s, first, found);
	get.deadline_ns = clock_now_ns() + KV_DEADLINE_NS;
	ret = hawk_get(kv->space, kv->items, found, &get, &prefix);
	if (lease)
		hawk_lease_end(kv->space, lease);
	if (ret < 0)
		return ret;
	for (i = 0; i < prefix; i++) {
		kv_seq_take(kv, s, first + i, &kv->items[i], KV_SHARED);
		if (kv->from_flash[i])
			s->tokens_flash += kv->block_tokens;
		else
			s->tokens_dram += kv->block_tokens;
	}
	if (prefix < (uint32_t)found)
		stop = kv->items[prefix].status;
	if (stop == -ENOSPC || stop == -EDQUOT)
		return stop;
	if (stop) {
		atomic_fetch_add_explicit(&kv->reload_failed, 1, memory_order_relaxed);
		log_warn("a cached KV block could not be read back (%s), recomputing from there",
			 strerror(-stop));
	}
	return prefix;
}

static int kv_seq_get_prefix(struct kv *kv, struct kv_seq *s, uint32_t n_max)
{
	while (s->n_shared < n_max) {
		uint32_t n = n_max - s->n_shared;
		int got;

		if (n > HAWK_BATCH_MAX)
			n = HAWK_BATCH_MAX;
		got = kv_get_batch(kv, s, s->n_shared, n);
		if (got < 0)
			return got;
		s->n_shared += got;
		if ((uint32_t)got < n)
			break;
	}
	s->n_done = s->n_shared;
	return 0;
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

int kv_seq_open(struct kv *kv, struct kv_seq *s, const int32_t *tokens, uint32_t n_prompt,
		uint32_t n_total, const uint8_t root[KV_KEY_BYTES], char err[KV_ERR_LEN])
{
	int ret;

	ret = kv_seq_init(kv, s, n_total);
	if (ret)
		return kv_fail(err, ret, "out of memory");
	memcpy(s->root, root, KV_KEY_BYTES);
	if (s->n_blocks > kv->capacity_blocks) {
		ret = kv_fail(
			err, -E2BIG,
			"%u tokens need %u KV blocks of %u bytes, the DRAM tier holds %llu: shorten the prompt or max_tokens, or give hawkd a larger tier",
			n_total, s->n_blocks, kv->block_bytes,
			(unsigned long long)kv->capacity_blocks);
		goto fail;
	}
	if (!kv->no_cache) {
		kv_seq_make_keys(kv, s, tokens, n_prompt);
		ret = kv_seq_get_prefix(kv, s, (n_prompt - 1) / kv->block_tokens);
	}
	if (!ret)
		ret = kv_seq_alloc_rest(kv, s);
	if (!ret)
		return 0;
	if (no_room(ret))
		ret = kv_fail(err, -ENOSPC, "no room for %u KV blocks of %u bytes: %s", s->n_blocks,
			      kv->block_bytes, strerror(-ret));
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
static uint32_t kv_seq_collect(const struct kv_seq *s, uint32_t *pos, bool dup,
			       struct hawk_item *it)
{
	uint32_t n = 0;

	for (; *pos < s->n_blocks && n < KV_STACK_ITEMS; (*pos)++) {
		if (s->state[*pos] == KV_NONE || (dup && s->state[*pos] != KV_DUP))
			continue;
		memset(&it[n], 0, sizeof(it[n]));
		it[n].lid = s->lid[*pos];
		it[n].vt = dup ? 0 : s->vt[*pos];
		n++;
	}
	return n;
}

void kv_seq_close(struct kv *kv, struct kv_seq *s)
{
	struct hawk_item it[KV_STACK_ITEMS];
	uint32_t pos = 0, n;
	int ret;

	while ((n = kv_seq_collect(s, &pos, false, it)) > 0) {
		ret = hawk_unpin(kv->space, it, n);
		if (ret != (int)n)
			log_err("%d of %u KV blocks could not be unpinned: %s",
				ret < 0 ? (int)n : (int)n - ret, n, hawk_strerror_last());
	}
	for (pos = 0; (n = kv_seq_collect(s, &pos, true, it)) > 0;)
		hawk_free(kv->space, it, n);
	free(s->addr);
	memset(s, 0, sizeof(*s));
}
