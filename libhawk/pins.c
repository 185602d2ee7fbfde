// SPDX-License-Identifier: MIT
/*
 * pins.c - which blocks a handle has pinned
 *
 * The engine counts the pins of a block; here each handle keeps its share, so
 * that it can give up no more than it took and leaves nothing when it ends.  The
 * table block -> (generation, count) is open addressing in a few shards.  While
 * the count is not zero the block lives, so its generation stays.
 *
 * A pin is given up with the engine called under the shard's lock: else two
 * threads could give up the same pin twice, and the second one would be somebody
 * else's.
 */
#include <stdlib.h>

#include "embed.h"

#define MIN_ENTRIES	32u

static struct pin_shard *shard_of(struct ekv *kv, struct hawk_ref ref)
{
	return &kv->pins[ref.block & (EMBED_PIN_SHARDS - 1)];
}

static u32 slot_of(const struct pin_shard *s, u32 block)
{
	return (u32)hawk_mix(block) & (s->size - 1);
}

/* The entry of @block, or the free one where it would go; the shard has one. */
static struct epin *entry_of(struct pin_shard *s, u32 block)
{
	u32 i = slot_of(s, block);

	while (s->pin[i].count && s->pin[i].ref.block != block)
		i = (i + 1) & (s->size - 1);
	return &s->pin[i];
}

/* This handle's pins on @ref, NULL if it has none. */
static struct epin *held(struct pin_shard *s, struct hawk_ref ref)
{
	struct epin *p = s->size ? entry_of(s, ref.block) : NULL;

	return p && p->count && p->ref.gen == ref.gen ? p : NULL;
}

/* Room for one more at a load of at most 3/4. */
static int grow(struct pin_shard *s)
{
	struct pin_shard bigger = { .size = s->size ? 2 * s->size : MIN_ENTRIES };
	u32 i;

	if (4 * (s->used + 1) <= 3 * s->size)
		return 0;
	bigger.pin = calloc(bigger.size, sizeof(*bigger.pin));
	if (!bigger.pin)
		return -ENOMEM;
	for (i = 0; i < s->size; i++)
		if (s->pin[i].count)
			*entry_of(&bigger, s->pin[i].ref.block) = s->pin[i];
	free(s->pin);
	s->pin = bigger.pin;
	s->size = bigger.size;
	return 0;
}

/* Empties an entry and moves those behind it up, so that no run has a hole. */
static void erase(struct pin_shard *s, struct epin *p)
{
	u32 mask = s->size - 1, hole = (u32)(p - s->pin), i = hole, want;

	for (;;) {
		i = (i + 1) & mask;
		if (!s->pin[i].count)
			break;
		want = slot_of(s, s->pin[i].ref.block);
		if (((i - want) & mask) < ((i - hole) & mask))
			continue;	/* it would come before its own slot */
		s->pin[hole] = s->pin[i];
		hole = i;
	}
	s->pin[hole].count = 0;
	s->used--;
}

static void forget(struct pin_shard *s, struct epin *p)
{
	if (p->count > 1)
		p->count--;
	else
		erase(s, p);
}

/* Notes a pin that the engine has given to this handle: 0 or -ENOMEM. */
int pins_add(struct ekv *kv, struct hawk_ref ref)
{
	struct pin_shard *s = shard_of(kv, ref);
	struct epin *p;
	int ret = 0;

	hawk_lock(&s->lock);
	p = held(s, ref);
	if (p) {
		p->count++;
		goto out_unlock;
	}
	ret = grow(s);
	if (ret)
		goto out_unlock;
	p = entry_of(s, ref.block);
	hawk_assert(!p->count);
	p->ref = ref;
	p->count = 1;
	s->used++;
out_unlock:
	hawk_unlock(&s->lock);
	return ret;
}

/* The block of a LID, or with @lid 0 the one that lies at @vt: 0, -ENOENT, -ESTALE. */
static int find(struct hawk_space *space, u64 lid, u64 vt, u64 *now_vt, struct hawk_ref *ref)
{
	if (lid || !vt)
		return hawk_block_ref(space, lid, now_vt, ref);
	*now_vt = vt;
	return hawk_block_at(space, vt, ref);
}

/**
 * pins_lock() - lock the shard of the block that is @lid's, or at @vt, which this
 * handle must have pinned
 *
 * Return: 0 with the shard locked; -ENOENT; -ESTALE: no pin of this handle, or
 * @vt is not 0 and not the block's translation.
 */
static int pins_lock(struct ekv *kv, u64 lid, u64 vt, struct pin_shard **sp, struct epin **pp)
{
	struct hawk_space *space = kv->sp->space;
	struct hawk_ref ref, again;
	struct pin_shard *s;
	struct epin *p;
	u64 now_vt;
	int ret;

	for (;;) {
		ret = find(space, lid, vt, &now_vt, &ref);
		if (ret)
			return ret;
		s = shard_of(kv, ref);
		hawk_lock(&s->lock);
		if (!find(space, lid, vt, &now_vt, &again) &&
		    again.block == ref.block && again.gen == ref.gen)
			break;
		hawk_unlock(&s->lock);	/* the LID moved on meanwhile */
	}
	p = held(s, ref);
	if (!p || (vt && vt != now_vt)) {
		hawk_unlock(&s->lock);
		return -ESTALE;
	}
	*sp = s;
	*pp = p;
	return 0;
}

/* PUT: publish a block that this handle fills. */
int pins_put(struct ekv *kv, u64 lid, const u8 *key, u32 hints, const u8 *parent, bool keep,
	     u64 now)
{
	struct pin_shard *s;
	struct epin *p;
	int ret;

	ret = pins_lock(kv, lid, 0, &s, &p);
	if (ret)
		return ret;
	ret = hawk_block_hint(kv->sp->space, lid, hints, parent) ?:
	      hawk_block_put(kv->sp->space, lid, key, keep, now);
	if (!keep && (!ret || ret == -EEXIST))
		forget(s, p);
	hawk_unlock(&s->lock);
	return ret;
}

/* UNPIN; @vt: translation that the caller knows, or 0; @lid 0: by @vt alone. */
int pins_drop(struct ekv *kv, u64 lid, u64 vt)
{
	struct pin_shard *s;
	struct epin *p;
	int ret;

	ret = pins_lock(kv, lid, vt, &s, &p);
	if (ret)
		return ret;
	ret = hawk_block_unpin(kv->sp->space, p->ref);
	if (!ret)
		forget(s, p);
	hawk_unlock(&s->lock);
	return ret;
}

/* UNSHARE: this handle's pin moves to the block that @lid has afterwards. */
int pins_unshare(struct ekv *kv, u64 lid, u64 now, struct hawk_plan *plan, u64 *vt)
{
	struct hawk_ref old, ref;
	struct pin_shard *s;
	struct epin *p;
	int ret;

	ret = pins_lock(kv, lid, 0, &s, &p);
	if (ret)
		return ret;
	old = p->ref;
	ref = old;
	ret = hawk_block_unshare(kv->sp->space, lid, now, plan, vt, &ref);
	if (ret || (ref.block == old.block && ref.gen == old.gen)) {
		hawk_unlock(&s->lock);
		return ret;
	}
	forget(s, p);
	hawk_unlock(&s->lock);
	ret = pins_add(kv, ref);
	if (ret)
		hawk_block_unpin(kv->sp->space, ref);
	return ret;
}

/* The process's memory is its own: pins lock nothing that is not its already. */
int embed_pin_query(struct hawk_kv *kv, struct hawk_pin_query *q)
{
	(void)kv;
	q->need_bytes = 0;
	q->used_bytes = 0;
	q->limit_bytes = HAWK_NO_LIMIT;
	return 0;
}

/* The handle ends. */
void pins_drop_all(struct ekv *kv)
{
	struct pin_shard *s;
	u32 i, k;

	for (i = 0; i < EMBED_PIN_SHARDS; i++) {
		s = &kv->pins[i];
		for (k = 0; k < s->size; k++)
			for (; s->pin[k].count; s->pin[k].count--)
				hawk_block_unpin(kv->sp->space, s->pin[k].ref);
		free(s->pin);
		hawk_lock_fini(&s->lock);
	}
}
