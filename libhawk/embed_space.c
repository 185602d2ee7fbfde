// SPDX-License-Identifier: MIT
/*
 * embed_space.c - spaces of the embedded backend and handles on them
 *
 * Names are known within one handle of the device: another process cannot attach
 * to an embedded space.  A named space has a reference of its own for its name.
 * There is one user, and the space ends with the process at the latest: modes are
 * accepted and of no effect, idle times and descriptors to pass are not offered.
 */
#include <stdlib.h>
#include <unistd.h>

#include "embed.h"

static struct espace *find_named(struct embed *e, const u8 *name)
{
	struct espace *sp;

	for (sp = e->spaces; sp; sp = sp->next)
		if (sp->named && !strncmp((char *)sp->geo.name, (char *)name, HAWK_NAME_MAX))
			return sp;
	return NULL;
}

static void espace_free(struct espace *sp)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		window_close(sp, t);
	if (sp->space) {
		epool_end(sp);
		hawk_space_destroy(sp->space);
	}
	hawk_table_free(sp->vtlb, 1, sp->vtlb_bytes);
	hawk_table_free(sp->count, EMBED_STAT_SHARDS, sizeof(*sp->count));
	free(sp);
}

/*
 * Drops a reference; the caller holds embed.admin.  The last one ends the space,
 * once the keeper has left it.
 */
static bool put_locked(struct espace *sp)
{
	struct embed *e = sp->e;
	struct espace **pp;

	if (--sp->refs)
		return false;
	__atomic_store_n(&sp->ending, true, __ATOMIC_RELAXED);
	while (sp->walkers)
		pthread_cond_wait(&e->walked, &e->admin);
	estray_wait(sp);	/* nobody waits for those moves */
	for (pp = &e->spaces; *pp != sp; pp = &(*pp)->next)
		;
	*pp = sp->next;
	espace_free(sp);
	pthread_cond_broadcast(&e->walked);
	return true;
}

static void espace_put(struct espace *sp)
{
	struct embed *e = sp->e;
	bool ended;

	pthread_mutex_lock(&e->admin);
	ended = put_locked(sp);
	pthread_mutex_unlock(&e->admin);
	if (ended)
		embed_clean(e);
}

/**
 * espace_next() - walk all spaces
 * @sp: the last one, which is left, or NULL
 * Return: the next one, which stays until it is left, or NULL at the end.
 */
struct espace *espace_next(struct embed *e, struct espace *sp)
{
	struct espace *next;

	pthread_mutex_lock(&e->admin);
	for (next = sp ? sp->next : e->spaces; next && !next->refs; next = next->next)
		;
	if (next)
		next->walkers++;
	if (sp) {
		sp->walkers--;
		pthread_cond_broadcast(&e->walked);
	}
	pthread_mutex_unlock(&e->admin);
	return next;
}

/**
 * espace_grew() - give a space the chunk that a call of the engine wanted
 * @ret: what the call returned
 *
 * The memory of the embedded backend is there as soon as it is touched; a chunk of
 * persistent flash is used when it is noted there whose it is.
 * Return: true: it returned -ENOBUFS, call it again.
 */
bool espace_grew(struct espace *sp, int ret)
{
	struct hawk_grant g;

	if (ret != -ENOBUFS)
		return false;
	if (!hawk_space_grow(sp->space, &g)) {
		bool ok = epool_grant(sp, &g);

		hawk_space_grown(sp->space, &g, ok);
		if (!ok)
			keeper_kick_commit(sp->e);	/* it may grow again then */
		moved_note(sp->e);	/* others may wait for these frames */
	}
	return true;
}

/* ---- making one ---- */

static int quota_chunks(struct embed *e, const struct hawk_space_create *c,
			struct hawk_space_params *p)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (c->quota[t].max_bytes && !e->tier[t].kind)
			return hawk_fail(-ENOENT, "quota of tier %u: there is no such tier", t);
		p->quota_min[t] = hawk_chunks(c->quota[t].min_bytes);
		p->quota_max[t] = hawk_chunks(c->quota[t].max_bytes);
	}
	return 0;
}

/* Are its blocks large enough to have headers wherever they are kept? */
static int check_slots(struct embed *e, const struct hawk_space_create *c)
{
	u32 t, slot;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		slot = c->quota[t].max_bytes ? hawk_pool_slot_bytes(e->engine, t) : 0;
		if (c->block_bytes < slot)
			return hawk_fail(-EINVAL, "space '%s': its blocks have %u bytes, flash tier %u "
					 "keeps such of %u or more: format it with --slot-bytes",
					 (const char *)c->name, c->block_bytes, t, slot);
	}
	return 0;
}

static int open_windows(struct embed *e, struct espace *sp)
{
	int ret = 0;
	u32 t;

	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++)
		if (e->tier[t].kind == HAWK_TIER_HOST || e->tier[t].gpu)
			ret = window_open(sp, t);
	return ret;
}

static int espace_init(struct embed *e, struct espace *sp, bool insist)
{
	const struct hawk_space_create *c = &sp->geo;
	struct hawk_space_params p = {
		.block_bytes = c->block_bytes,
		.block_tokens = c->block_tokens,
		.max_blocks = c->max_blocks,
		.buckets = c->buckets,
		.layers = c->layers,
		.head_groups = c->head_groups,
		.tp_rank = c->tp_rank,
		.tp_degree = c->tp_degree,
		.seqs = c->seqs,
		.segs = c->segs,
		.shift = c->flags & HAWK_SPACE_SHIFT,
		.insist = insist,
		.due = keeper_due,
		.owner = e,
	};
	struct hawk_identity id;
	int ret;

	ret = quota_chunks(e, c, &p);
	if (!ret && c->flags & HAWK_SPACE_NAMED) {
		hawk_identity_of(c, geteuid(), &id);
		p.identity = &id;
		ret = check_slots(e, c);
	}
	if (ret)
		return ret;
	sp->frames_per_chunk = HAWK_CHUNK_BYTES / c->block_bytes;
	sp->vtlb_bytes = hawk_vtlb_bytes(c->max_blocks);
	sp->vtlb = hawk_table_alloc(1, sp->vtlb_bytes);
	if (!sp->vtlb)
		return hawk_fail(-ENOMEM, "space: its translation table");
	sp->count = hawk_table_alloc(EMBED_STAT_SHARDS, sizeof(*sp->count));
	if (!sp->count)
		return hawk_fail(-ENOMEM, "space: its statistics");
	p.vtlb = sp->vtlb;
	ret = hawk_space_create(e->engine, &p, &sp->space);
	if (!ret)
		ret = open_windows(e, sp);
	if (!ret)
		ret = epool_find(sp);
	if (!ret || ret == -EAGAIN)
		return ret;
	return hawk_fail(ret, ret == -ENOSPC ? "creating a space: its minima and those of other spaces are more than a tier has" :
			 "creating a space");
}

static int name_free(struct embed *e, const struct hawk_space_create *c)
{
	return c->flags & HAWK_SPACE_NAMED && find_named(e, c->name) ?
	       hawk_fail(-EEXIST, "space '%s'", (const char *)c->name) : 0;
}

/* Nobody knows it yet by its name.  The caller holds embed.admin. */
static int espace_new(struct embed *e, const struct hawk_space_create *c, bool insist,
		      struct espace **spp)
{
	struct espace *sp;
	int ret;

	ret = name_free(e, c);
	if (ret)
		return ret;
	sp = calloc(1, sizeof(*sp));
	if (!sp)
		return hawk_fail(-ENOMEM, "creating a space");
	sp->e = e;
	sp->geo = *c;
	ret = espace_init(e, sp, insist);
	if (ret) {
		espace_free(sp);
		return ret;
	}
	sp->next = e->spaces;
	e->spaces = sp;
	*spp = sp;
	return 0;
}

/* It can be found.  The caller holds embed.admin. */
static void espace_publish(struct espace *sp)
{
	sp->named = sp->geo.flags & HAWK_SPACE_NAMED;
	sp->refs += sp->named;
}

/* ---- handles ---- */

/* The caller holds embed.admin. */
static void kv_bind(struct ekv *kv, struct espace *sp)
{
	u32 t;

	kv->sp = sp;
	kv->id = ++sp->e->kv_id;
	sp->refs++;
	kv->base.vtlb = sp->vtlb;
	kv->base.vtlb_lines = sp->vtlb_bytes / (HAWK_VT_WAYS * sizeof(*sp->vtlb));
	kv->base.block_bytes = sp->geo.block_bytes;
	kv->base.block_tokens = sp->geo.block_tokens;
	kv->base.layers = sp->geo.layers;
	hawk_kv_heads(&kv->base, sp->geo.head_groups, sp->geo.tp_rank, sp->geo.tp_degree);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		kv->base.window[t] = sp->win[t].base;
		kv->base.frames[t] = sp->win[t].base ? sp->win[t].frames : 0;
	}
}

static struct ekv *ekv_new(struct hawk *h)
{
	struct ekv *kv = calloc(1, sizeof(*kv));
	u32 i;

	if (!kv)
		return NULL;
	kv->base.h = h;
	kv->base.ring_fd = -1;
	kv->user_efd = -1;
	hawk_lock_init(&kv->ring_lock);
	for (i = 0; i < EMBED_PIN_SHARDS; i++)
		hawk_lock_init(&kv->pins[i].lock);
	return kv;
}

static int no_idle(u64 idle_ns)
{
	return idle_ns ? hawk_fail(-EOPNOTSUPP, "an embedded space has no idle time") : 0;
}

/* What its minima lack is free, or all is as it was. */
static int create_now(struct embed *e, const struct hawk_space_create *c, struct ekv *kv)
{
	struct espace *sp;
	int ret;

	pthread_mutex_lock(&e->admin);
	ret = espace_new(e, c, false, &sp);
	if (!ret) {
		kv_bind(kv, sp);
		espace_publish(sp);
	}
	pthread_mutex_unlock(&e->admin);
	return ret;
}

/*
 * Others have its minima: they give them back, or there is no space.  It has its handle
 * meanwhile and no name; one space at a time is made so.
 */
static int create_insisting(struct embed *e, const struct hawk_space_create *c, struct ekv *kv)
{
	struct espace *sp;
	bool ended = false;
	int ret;

	drain_begin(e);
	pthread_mutex_lock(&e->admin);
	ret = espace_new(e, c, true, &sp);
	if (!ret)
		kv_bind(kv, sp);
	pthread_mutex_unlock(&e->admin);
	if (ret)
		goto out_end;
	ret = share_repay(sp);
	pthread_mutex_lock(&e->admin);
	if (!ret)
		ret = name_free(e, c);	/* somebody may have been faster */
	if (ret)
		ended = put_locked(sp);
	else
		espace_publish(sp);
	pthread_mutex_unlock(&e->admin);
	if (ended)
		embed_clean(e);
out_end:
	drain_end(e);
	return ret;
}

int embed_kv_create(struct hawk *h, struct hawk_space_create *c, struct hawk_kv **kvp)
{
	struct embed *e = to_embed(h);
	struct ekv *kv;
	int ret;

	ret = no_idle(c->idle_ns);
	if (ret)
		return ret;
	kv = ekv_new(h);
	if (!kv)
		return hawk_fail(-ENOMEM, "creating a space");
	ret = create_now(e, c, kv);
	if (ret == -EAGAIN)
		ret = create_insisting(e, c, kv);
	if (ret) {
		free(kv);
		return ret;
	}
	*kvp = &kv->base;
	return 0;
}

int embed_kv_attach(struct hawk *h, const struct hawk_space_attach *a, struct hawk_kv **kvp)
{
	struct embed *e = to_embed(h);
	struct espace *sp;
	struct ekv *kv;

	if (a->flags & HAWK_ATTACH_FD)
		return hawk_fail(-EOPNOTSUPP, "an embedded space has no descriptor");
	kv = ekv_new(h);
	if (!kv)
		return hawk_fail(-ENOMEM, "attaching to a space");
	pthread_mutex_lock(&e->admin);
	sp = find_named(e, a->name);
	if (sp)
		kv_bind(kv, sp);
	pthread_mutex_unlock(&e->admin);
	if (!sp) {
		free(kv);
		return hawk_fail(-ENOENT, "space '%s'", (const char *)a->name);
	}
	*kvp = &kv->base;
	return 0;
}

int embed_kv_set(struct hawk *h, const struct hawk_space_set *s)
{
	struct embed *e = to_embed(h);
	struct espace *sp;
	int ret = no_idle(s->idle_ns);

	if (ret)
		return ret;
	pthread_mutex_lock(&e->admin);
	sp = find_named(e, s->name);
	pthread_mutex_unlock(&e->admin);
	return sp ? 0 : hawk_fail(-ENOENT, "space '%s'", (const char *)s->name);
}

int embed_kv_fd(struct hawk_kv *kv)
{
	(void)kv;
	return hawk_fail(-EOPNOTSUPP, "an embedded space has no descriptor");
}

/**
 * espace_unname() - take a space's name away
 * @forget: nor shall it be found again on persistent flash
 */
int espace_unname(struct embed *e, const u8 *name, bool forget)
{
	struct espace *sp;
	bool ended = false;

	pthread_mutex_lock(&e->admin);
	sp = find_named(e, name);
	if (sp) {
		if (forget)
			hawk_keep_forget(sp->space);
		sp->named = false;
		ended = put_locked(sp);
	}
	pthread_mutex_unlock(&e->admin);
	if (ended)
		embed_clean(e);
	return sp ? 0 : hawk_fail(-ENOENT, "space '%s'", (const char *)name);
}

int embed_kv_destroy(struct hawk *h, const struct hawk_space_destroy *d)
{
	return espace_unname(to_embed(h), d->name, true);
}

void embed_kv_close(struct hawk_kv *base)
{
	struct ekv *kv = to_ekv(base);

	async_drain(kv);
	leases_drop(kv);
	pins_drop_all(kv);
	seqs_end(kv);
	espace_put(kv->sp);
	embed_ring_close(kv);
	free(kv);
}

int embed_kv_info(struct hawk_kv *kv, struct hawk_space_info *info)
{
	const struct espace *sp = to_ekv(kv)->sp;
	const struct hawk_space_create *g = &sp->geo;
	u32 t;

	info->block_bytes = g->block_bytes;
	info->block_tokens = g->block_tokens;
	info->layers = g->layers;
	info->head_groups = g->head_groups;
	info->layout = g->layout;
	info->dtype = g->dtype;
	info->model_id = g->model_id;
	info->max_blocks = g->max_blocks;
	info->tp_rank = g->tp_rank;
	info->tp_degree = g->tp_degree;
	info->buckets = hawk_space_buckets(sp->space);
	info->vtlb_bytes = sp->vtlb_bytes;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		info->frames[t] = hawk_space_frames(sp->space, t);
	memcpy(info->name, g->name, sizeof(info->name));
	info->seqs = g->seqs;
	info->segs = g->segs ? g->segs : 8 * g->seqs;
	info->token_bytes = g->token_bytes;
	info->planes = g->planes;
	return 0;
}

int embed_kv_stats(struct hawk_kv *kv, struct hawk_stats *st)
{
	hawk_space_stats(to_ekv(kv)->sp->space, st);
	return 0;
}
