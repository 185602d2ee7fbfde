// SPDX-License-Identifier: MIT
/*
 * kv_cached.c - which part of a prompt is there already
 *
 * Say that computing starts at block c.  Then all blocks before c must be there
 * but those that an operation with at <= the first token of c has dropped.  The
 * fewer blocks are there, the earlier computing starts, the fewer operations are in
 * effect there, and the more blocks are needed.  So: suppose that nothing has to be
 * computed, take the needed blocks in order up to the first that is not there, and
 * suppose next that computing starts at that one; until none is missing.
 */
#include "kv/kv_priv.h"

#include <errno.h>
#include <string.h>

#include "clock.h"

bool kv_seq_hides(const struct kv *kv, const struct kv_seq *s, uint32_t i, uint32_t start)
{
	uint32_t n = hist_in_effect(s->op, s->n_ops, start * kv->block_tokens);

	return n && hist_hides(s->op, n, i * kv->block_tokens, kv->block_tokens);
}

/**
 * struct kv_wanted - blocks that are asked for in one batch
 * @block: which, in order
 * @n: how many
 */
struct kv_wanted {
	uint32_t block[HAWK_BATCH_MAX];
	uint32_t n;
};

/* The next needed blocks before @start from *pos on that @s has not got. */
static void kv_want(const struct kv *kv, const struct kv_seq *s, uint32_t start, uint32_t *pos,
		    struct kv_wanted *w)
{
	w->n = 0;
	for (; *pos < start && w->n < HAWK_BATCH_MAX; (*pos)++)
		if (s->state[*pos] == KV_NONE && !kv_seq_hides(kv, s, *pos, start))
			w->block[w->n++] = *pos;
}

static void kv_fill_keys(struct kv *kv, const struct kv_seq *s, const struct kv_wanted *w,
			 uint32_t n)
{
	uint32_t i;

	memset(kv->items, 0, n * sizeof(*kv->items));
	for (i = 0; i < n; i++) {
		kv->items[i].flags = HAWK_ITEM_BY_KEY;
		memcpy(kv->items[i].key, s->key[w->block[i]], KV_KEY_BYTES);
	}
}

/*
 * Take the first @n of the blocks in @w that were found.
 * Return: blocks taken, or a negative errno.
 */
static int kv_take_found(struct kv *kv, struct kv_seq *s, const struct kv_wanted *w, uint32_t n,
			 struct hawk_opts *get)
{
	uint64_t since = clock_now_ns();
	unsigned int prefix = 0;
	int ret, stop = 0;
	uint32_t i;

	ret = hawk_get(kv->space, kv->items, n, get, &prefix);
	if (ret < 0)
		return ret;
	for (i = 0; i < prefix; i++)
		kv_seq_take(kv, s, w->block[i], &kv->items[i],
			    kv->from_flash[i] ? KV_RELOADED : KV_SHARED);
	if (prefix < n)
		stop = kv->items[prefix].status;
	kv_reload_done(kv, s, n, since, stop);
	return stop == -ENOSPC || stop == -EDQUOT ? stop : (int)prefix;
}

/*
 * Look up a batch, remember where each block lies, then get what is worth it.  The
 * lease closes the window in which a block that was found could be dropped.
 * Return: blocks taken, or a negative errno.
 */
static int kv_get_batch(struct kv *kv, struct kv_seq *s, const struct kv_wanted *w)
{
	struct hawk_opts look = { .flags = HAWK_BATCH_LEASE }, get = { 0 };
	uint64_t lease = 0;
	uint32_t i, n;
	int found, ret = 0;

	kv_fill_keys(kv, s, w, w->n);
	found = hawk_lookup(kv->space, kv->items, w->n, &look, &lease);
	if (found <= 0)
		return found;
	for (i = 0; i < (uint32_t)found; i++) {
		uint64_t vt = kv->items[i].vt;

		kv->from_flash[i] = !(vt & HAWK_VT_VALID) ||
				    !(kv->host_tiers & (1u << HAWK_VT_TIER(vt)));
	}
	kv_fill_keys(kv, s, w, found);
	n = kv_reload_plan(kv, s, found, &get);
	if (n)
		ret = kv_take_found(kv, s, w, n, &get);
	if (lease)
		hawk_lease_end(kv->space, lease);
	return ret;
}

/* @stop: the first block that is needed to start at @start and not there, or @start */
static int kv_get_needed(struct kv *kv, struct kv_seq *s, uint32_t start, uint32_t *stop)
{
	struct kv_wanted w;
	uint32_t pos = 0;

	for (;;) {
		int got;

		kv_want(kv, s, start, &pos, &w);
		if (w.n == 0)
			break;
		got = kv_get_batch(kv, s, &w);
		if (got < 0)
			return got;
		if ((uint32_t)got < w.n) {
			*stop = w.block[got];
			return 0;
		}
	}
	*stop = start;
	return 0;
}

static void kv_count_tokens(const struct kv *kv, struct kv_seq *s)
{
	uint32_t i;

	for (i = 0; i < s->n_shared; i++)
		switch (s->state[i]) {
		case KV_SHARED: s->tokens_dram += kv->block_tokens; break;
		case KV_RELOADED: s->tokens_flash += kv->block_tokens; break;
		default: s->tokens_skipped += kv->block_tokens;
		}
}

int kv_seq_get_cached(struct kv *kv, struct kv_seq *s, uint32_t n_max)
{
	uint32_t start = n_max, stop;

	for (;;) {
		int ret = kv_get_needed(kv, s, start, &stop);

		if (ret)
			return ret;
		if (stop == start)
			break;
		kv_seq_let_go(kv, s, stop, start);
		start = stop;
	}
	s->n_shared = s->n_done = start;
	kv_count_tokens(kv, s);
	return 0;
}
