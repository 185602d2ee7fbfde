// SPDX-License-Identifier: MIT
/*
 * verbs.c - the batch calls of the embedded backend, except GET and RELOAD
 */
#include "embed.h"

static struct hawk_item *items_of(const struct hawk_batch *b)
{
	return (struct hawk_item *)(uintptr_t)b->items;
}

static u64 block_lid(const struct ekv *kv, u64 lid)
{
	return hawk_lid_block(lid, kv->sp->geo.block_tokens);
}

/* May the space make such a block?  0, -EINVAL or -EREMOTE. */
static int lid_check(const struct ekv *kv, u64 lid)
{
	const struct hawk_space_create *g = &kv->sp->geo;

	return hawk_lid_check(lid, g->layers, g->head_groups, g->tp_rank, g->tp_degree);
}

/* The key of an item, NULL for none. */
static const u8 *key_of(const struct hawk_item *it)
{
	return hawk_key_is_zero(it->key) ? NULL : it->key;
}

/* The hints of an item for the engine, and the key of its parent if it has one. */
static u32 hints_of(const struct hawk_item *it, const u8 **parent)
{
	u32 hints = it->flags & HAWK_ITEM_HINTS;

	*parent = hints & HAWK_ITEM_PARENT ? (const u8 *)(uintptr_t)it->arg : NULL;
	if (*parent && hawk_key_is_zero(*parent)) {
		*parent = NULL;
		hints &= ~HAWK_ITEM_PARENT;
	}
	return hints;
}

/* ---- ALLOC ---- */

static int alloc_one(struct run *r, struct hawk_item *it, u64 now)
{
	struct hawk_space *s = r->kv->sp->space;
	bool nowait = r->b->flags & HAWK_BATCH_NOWAIT;
	const u8 *parent;
	struct hawk_ref ref;
	u32 hints;
	u64 vt;
	int ret;

	do {
		ret = hawk_block_alloc(s, it->lid, key_of(it), r->b->tier, now,
				       nowait ? NULL : &r->plan, &vt);
	} while (espace_grew(r->kv->sp, ret));
	if (ret == -EAGAIN)
		return nowait ? -EAGAIN : RUN_PENDING;
	if (ret == -ENOSPC && !nowait && run_more(r))
		return RUN_PENDING;
	if (ret)
		return ret;
	it->lid = block_lid(r->kv, it->lid);
	hints = hints_of(it, &parent);
	hawk_block_hint(s, it->lid, hints, parent);
	ret = hawk_block_ref(s, it->lid, &vt, &ref);
	hawk_assert(!ret);	/* a block that is being filled keeps its LID */
	it->vt = vt;
	return run_pin(r->kv, vt, ref);
}

static bool alloc_pass(struct run *r)
{
	bool left = false;
	u64 now = now_ns();
	u32 i;

	run_pass(r);
	for (i = 0; i < r->b->count; i++) {
		struct hawk_item *it = &r->it[i];

		if (it->status != RUN_PENDING)
			continue;
		if (r->plan.n < r->plan.max)
			it->status = alloc_one(r, it, now);
		left |= it->status == RUN_PENDING;
	}
	return left;
}

static int verb_alloc(struct ekv *kv, struct hawk_batch *b)
{
	struct hawk_item *it = items_of(b);
	struct run r;
	int ret;
	u32 i;

	for (i = 0; i < b->count; i++) {
		ret = item_check(&it[i], HAWK_ITEM_HINTS);
		if (!ret)
			ret = lid_check(kv, it[i].lid);
		it[i].status = ret ? ret : RUN_PENDING;
	}
	run_start(&r, kv, b);
	while (alloc_pass(&r)) {
		ret = run_step(&r);
		for (i = 0; ret && i < b->count; i++)
			if (it[i].status == RUN_PENDING)
				it[i].status = ret;
	}
	run_end(&r);
	return 0;
}

/* ---- UNSHARE ---- */

static int unshare_one(struct run *r, struct hawk_item *it)
{
	int ret = item_check(it, 0), step = 0;
	const struct hawk_move *copy;
	struct ekv *kv = r->kv;
	u64 vt;

	if (ret)
		return ret;
	it->lid = block_lid(kv, it->lid);
	do {
		run_pass(r);
		ret = pins_unshare(kv, it->lid, now_ns(), &r->plan, &vt);
		if (ret == -ENOSPC && run_more(r))
			ret = -EAGAIN;
		if (ret == -EAGAIN)
			step = run_step(r);
	} while ((ret == -EAGAIN && !step) || espace_grew(kv->sp, ret));
	if (ret == -EAGAIN)
		return step;
	copy = !ret && r->plan.n ? &r->plan.move[r->plan.n - 1] : NULL;
	plan_run(kv->sp, &r->plan, 0);	/* the copy, after what made room for it */
	if (ret)
		return ret;
	it->vt = vt;
	ret = window_map(kv->sp, HAWK_VT_TIER(vt), HAWK_VT_FRAME(vt));
	if (copy && copy->kind == HAWK_MOVE_COPY && copy->result)
		ret = copy->result;
	if (ret)
		pins_drop(kv, it->lid, vt);	/* ends it */
	return ret;
}

static int verb_unshare(struct ekv *kv, struct hawk_batch *b)
{
	struct hawk_item *it = items_of(b);
	struct run r;
	u32 i;

	run_start(&r, kv, b);
	for (i = 0; i < b->count; i++)
		it[i].status = unshare_one(&r, &it[i]);
	run_end(&r);
	return 0;
}

/* ---- PUT, PIN, UNPIN, FORK, FREE, TRANSLATE: one item, no move ---- */

/* An item of a call that does not wait; its flags and arg have been checked. */
typedef int verb_item(struct ekv *kv, const struct hawk_batch *b, struct hawk_item *it, u64 now);

static int put_one(struct ekv *kv, const struct hawk_batch *b, struct hawk_item *it, u64 now)
{
	const u8 *parent;
	u32 hints = hints_of(it, &parent);

	return pins_put(kv, it->lid, key_of(it), hints, parent, b->flags & HAWK_BATCH_KEEP_PIN,
			now);
}

static int pin_one(struct ekv *kv, const struct hawk_batch *b, struct hawk_item *it, u64 now)
{
	struct hawk_ref ref;
	u64 vt;
	int ret;

	(void)b;
	ret = hawk_block_pin(kv->sp->space, it->lid, now, &vt, &ref);
	if (ret)
		return ret;
	it->vt = vt;
	return run_pin(kv, vt, ref);
}

static int unpin_one(struct ekv *kv, const struct hawk_batch *b, struct hawk_item *it, u64 now)
{
	(void)b;
	(void)now;
	return pins_drop(kv, it->lid, it->vt);
}

static int free_one(struct ekv *kv, const struct hawk_batch *b, struct hawk_item *it, u64 now)
{
	(void)b;
	(void)now;
	it->vt = 0;
	if (it->flags & HAWK_ITEM_BY_KEY)
		return hawk_key_free(kv->sp->space, it->key);
	return hawk_block_free(kv->sp->space, it->lid);
}

static int translate_one(struct ekv *kv, const struct hawk_batch *b, struct hawk_item *it,
			 u64 now)
{
	(void)b;
	(void)now;
	it->vt = hawk_space_translate(kv->sp->space, it->lid);
	return it->vt ? 0 : -ENOENT;
}

static int each(struct ekv *kv, struct hawk_batch *b, u32 item_flags, verb_item *one)
{
	struct hawk_item *it = items_of(b);
	u64 now = now_ns();
	u32 i;
	int ret;

	for (i = 0; i < b->count; i++) {
		ret = item_check(&it[i], item_flags);
		if (!ret && !(it[i].flags & HAWK_ITEM_BY_KEY))
			it[i].lid = block_lid(kv, it[i].lid);
		it[i].status = ret ? ret : one(kv, b, &it[i], now);
	}
	return 0;
}

/* ---- FORK ---- */

static int fork_one(struct ekv *kv, struct hawk_item *it)
{
	int ret;

	if (it->flags)
		return -EOPNOTSUPP;
	ret = lid_check(kv, it->arg);
	if (ret)
		return ret;
	it->lid = block_lid(kv, it->lid);
	ret = hawk_block_fork(kv->sp->space, it->lid, it->arg);
	if (!ret)
		it->vt = hawk_space_translate(kv->sp->space, it->lid);
	return ret;
}

static int verb_fork(struct ekv *kv, struct hawk_batch *b)
{
	struct hawk_item *it = items_of(b);
	u32 i;

	for (i = 0; i < b->count; i++)
		it[i].status = fork_one(kv, &it[i]);
	return 0;
}

/* ---- LOOKUP ---- */

/* When the lease of a look-up ends. */
static int lease_end_time(const struct hawk_batch *b, u64 now, u64 *ends)
{
	*ends = b->deadline_ns ? b->deadline_ns : now + HAWK_LEASE_DEFAULT_NS;
	if (*ends > now && *ends - now <= HAWK_LEASE_MAX_NS)
		return 0;
	return hawk_fail(-EINVAL, "a lease ends after now and within %llu seconds",
			 HAWK_LEASE_MAX_NS / 1000000000);
}

static int lookup_one(struct ekv *kv, struct hawk_item *it, struct elease *l, u64 now)
{
	struct hawk_ref ref;
	int ret = item_check(it, HAWK_ITEM_BY_KEY);
	u64 lid, vt;

	if (ret)
		return ret;
	if (!key_of(it))
		return -EINVAL;
	ret = hawk_block_find(kv->sp->space, it->key, l != NULL, now, &lid, &vt, &ref);
	if (ret)
		return ret;
	it->lid = lid;
	it->vt = vt;
	if (l)
		l->ref[l->n++] = ref;
	return 0;
}

static int verb_lookup(struct ekv *kv, struct hawk_batch *b)
{
	struct hawk_item *it = items_of(b);
	u64 now = now_ns(), ends = 0;
	struct elease *l = NULL;
	bool prefix = true;
	u32 i;

	if (b->flags & HAWK_BATCH_LEASE) {
		if (lease_end_time(b, now, &ends))
			return -EINVAL;
		l = lease_new(kv, b->count);
		if (!l)
			return hawk_fail(-ENOMEM, "a lease on %u blocks", b->count);
	}
	for (i = 0; i < b->count; i++) {
		it[i].status = lookup_one(kv, &it[i], prefix ? l : NULL, now);
		prefix &= !it[i].status;
	}
	b->lease = 0;
	if (l && l->n)
		b->lease = lease_start(l, ends);
	else if (l)
		lease_cancel(l);
	return 0;
}

static int check_tier(struct ekv *kv, const struct hawk_batch *b)
{
	if (b->tier == HAWK_TIER_ANY || kv->sp->win[b->tier].frames)
		return 0;
	return hawk_fail(-EINVAL, "tier %u is no host tier of the space", b->tier);
}

static int dispatch(struct ekv *kv, unsigned int op, struct hawk_batch *b)
{
	switch (op) {
	case HAWK_IOC_ALLOC:
		return verb_alloc(kv, b);
	case HAWK_IOC_PUT:
		keeper_kick(kv->sp->e, true);
		return each(kv, b, HAWK_ITEM_HINTS, put_one);
	case HAWK_IOC_LOOKUP:
		return verb_lookup(kv, b);
	case HAWK_IOC_PIN:
		return each(kv, b, 0, pin_one);
	case HAWK_IOC_UNPIN:
		return each(kv, b, 0, unpin_one);
	case HAWK_IOC_GET:
	case HAWK_IOC_RELOAD:
		return embed_get(kv, op, b, NULL, NULL);
	case HAWK_IOC_FORK:
		return verb_fork(kv, b);
	case HAWK_IOC_UNSHARE:
		return verb_unshare(kv, b);
	case HAWK_IOC_FREE:
		return each(kv, b, HAWK_ITEM_BY_KEY, free_one);
	default:
		return each(kv, b, 0, translate_one);
	}
}

int embed_batch(struct hawk_kv *base, unsigned int op, struct hawk_batch *b)
{
	struct ekv *kv = to_ekv(base);
	u64 start = now_ns();
	int ret;

	ret = check_tier(kv, b);
	if (ret)
		return ret;
	if (b->flags & HAWK_BATCH_ASYNC)
		return async_submit(kv, op, b);
	ret = dispatch(kv, op, b);
	if (ret)
		return ret;
	batch_finish(b);
	seqs_waiting(kv->sp);	/* what has been unpinned may have been dropped */
	estats_batch(kv->sp, op, b, start);
	return 0;
}
