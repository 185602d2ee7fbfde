// SPDX-License-Identifier: MIT
/*
 * embed.c - the embedded backend: opening and closing the device
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "embed.h"

#define FEATURES	(HAWK_FEAT_TIER_HOST | HAWK_FEAT_TIER_BLK | HAWK_FEAT_LEASE | \
			 HAWK_FEAT_ASYNC | HAWK_FEAT_NAMED | HAWK_FEAT_CRC | \
			 HAWK_FEAT_RECLAIM | HAWK_FEAT_TIER_FORCE | HAWK_FEAT_TIER_REOPEN | \
			 HAWK_FEAT_CANCEL | HAWK_FEAT_DRAFT | HAWK_FEAT_GATHER | HAWK_FEAT_SLICE | \
			 HAWK_FEAT_SEQ | HAWK_FEAT_ELASTIC | HAWK_FEAT_HINT | \
			 HAWK_FEAT_ADMIT | HAWK_FEAT_PACE | HAWK_FEAT_PROMOTE | HAWK_FEAT_HEALTH | \
			 HAWK_FEAT_PERSIST | HAWK_FEAT_TIER_USER)

static int embed_query(struct hawk *h, struct hawk_query *q)
{
	struct embed *e = to_embed(h);
	unsigned int t;

	q->abi_version = HAWK_ABI_VERSION;
	q->batch_max = HAWK_BATCH_MAX;
	q->features = FEATURES;
	q->tiers_max = HAWK_TIERS_MAX;
	q->chunk_bytes = HAWK_CHUNK_BYTES;
	q->frame_align = HAWK_FRAME_ALIGN;
	pthread_mutex_lock(&e->admin);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (e->tier[t].kind)
			q->tiers |= 1u << t;
	pthread_mutex_unlock(&e->admin);
	return 0;
}

/*
 * Named spaces that nobody destroyed end with their device; what they keep on persistent
 * flash stays.
 */
static void end_named(struct embed *e)
{
	u8 name[HAWK_NAME_MAX];
	struct espace *sp;

	for (;;) {
		pthread_mutex_lock(&e->admin);
		for (sp = e->spaces; sp && !sp->named; sp = sp->next)
			;
		if (sp)
			memcpy(name, sp->geo.name, sizeof(name));
		pthread_mutex_unlock(&e->admin);
		if (!sp)
			return;
		espace_unname(e, name, false);
	}
}

/**
 * ethread_start() - a thread of ours
 *
 * Signals are the application's: none may come to a thread that it does not know of.
 * Return: 0 or a negative errno.
 */
int ethread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static void embed_free(struct embed *e)
{
	unsigned int t;

	estray_stop(e);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (e->tier[t].kind)
			embed_tier_free(&e->tier[t]);
		pthread_mutex_destroy(&e->tier[t].lock);
		pthread_mutex_destroy(&e->tier[t].commit_lock);
	}
	eio_free_all(e);	/* the drives' threads, which may just be letting go of one, are gone */
	hawk_engine_destroy(e->engine);
	wait_fini(e);
	pthread_mutex_destroy(&e->admin);
	pthread_cond_destroy(&e->walked);
	pthread_mutex_destroy(&e->io_lock);
	pthread_mutex_destroy(&e->stray_lock);
	pthread_cond_destroy(&e->stray_cond);
	pthread_mutex_destroy(&e->lease_lock);
	pthread_mutex_destroy(&e->job_lock);
	pthread_cond_destroy(&e->job_cond);
	pthread_cond_destroy(&e->job_done);
	free(e);
}

static void embed_close(struct hawk *h)
{
	struct embed *e = to_embed(h);

	movers_stop(e);
	keeper_stop(e);
	end_named(e);
	embed_free(e);
}

static const struct hawk_ops embed_ops = {
	.name = "embed",
	.close = embed_close,
	.query = embed_query,
	.tier_add = embed_tier_add,
	.tier_del = embed_tier_del,
	.tier_info = embed_tier_info,
	.tier_admit = embed_tier_admit,
	.kv_create = embed_kv_create,
	.kv_attach = embed_kv_attach,
	.kv_set = embed_kv_set,
	.kv_destroy = embed_kv_destroy,
	.kv_close = embed_kv_close,
	.kv_info = embed_kv_info,
	.kv_stats = embed_kv_stats,
	.kv_stats_page = embed_kv_stats_page,
	.kv_fd = embed_kv_fd,
	.batch = embed_batch,
	.gather = embed_gather,
	.lease_end = embed_lease_end,
	.ring_open = embed_ring_open,
	.cancel = embed_cancel,
	.pin_query = embed_pin_query,
	.frame_info = embed_frame_info,
	.device = embed_device,
	.device_dmabuf = embed_device_dmabuf,
	.block_copy = embed_block_copy,
	.draft_open = embed_draft_open,
	.draft_close = embed_draft_close,
	.seq = embed_seq,
	.seq_map = embed_seq_map,
	.elastic = embed_elastic,
	.estimate = embed_estimate,
	.phase = embed_phase,
};

static struct embed *embed_new(void)
{
	struct embed *e = calloc(1, sizeof(*e));
	unsigned int t;

	if (!e)
		return NULL;
	e->engine = hawk_engine_create();
	if (!e->engine || wait_init(e)) {
		hawk_engine_destroy(e->engine);
		free(e);
		return NULL;
	}
	e->base.ops = &embed_ops;
	pthread_mutex_init(&e->admin, NULL);
	pthread_cond_init(&e->walked, NULL);
	pthread_mutex_init(&e->io_lock, NULL);
	pthread_mutex_init(&e->stray_lock, NULL);
	pthread_cond_init(&e->stray_cond, NULL);
	pthread_mutex_init(&e->lease_lock, NULL);
	pthread_mutex_init(&e->job_lock, NULL);
	pthread_cond_init(&e->job_cond, NULL);
	pthread_cond_init(&e->job_done, NULL);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		pthread_mutex_init(&e->tier[t].lock, NULL);
		pthread_mutex_init(&e->tier[t].commit_lock, NULL);
	}
	return e;
}

/* Each drive has its part of what may be written. */
static int add_drive(struct embed *e, const struct hawk_url *u, const char *path)
{
	struct hawk_tier_admit a = { .budget_bytes = u->budget / u->drives };
	unsigned int tier;
	int ret = embed_flash_prepare(path, u->flash, u->persist);

	if (ret)
		return ret;
	ret = u->persist ? hawk_tier_add_pool(&e->base, path, &tier) :
			   hawk_tier_add_blk(&e->base, path, u->flash, &tier);
	if (ret || !u->budget)
		return ret;
	return hawk_tier_admit_set(&e->base, tier, &a);
}

/* Tier 0 is DRAM, the next ones flash if there is any, the last one a GPU's. */
static int add_tiers(struct embed *e, const struct hawk_url *u)
{
	unsigned int tier;
	uint32_t i;
	int ret = hawk_tier_add_host(&e->base, -1, u->dram, &tier);

	for (i = 0; !ret && i < u->drives; i++)
		ret = add_drive(e, u, u->drive[i]);
	if (!ret && u->gpu[0])
		ret = hawk_tier_add_gpu(&e->base, u->gpu, u->gpu_bytes, &tier);
	return ret;
}

int hawk_embed_open(const struct hawk_url *u, struct hawk **hp)
{
	struct embed *e = embed_new();
	int ret;

	if (!e)
		return hawk_fail(-ENOMEM, "opening the embedded device");
	e->writeback = u->writeback;
	e->compact = u->compact;
	ret = epace_tune(e, u) ?: add_tiers(e, u);
	if (!ret)
		ret = keeper_start(e);
	if (ret) {
		embed_free(e);
		return ret;
	}
	*hp = &e->base;
	return 0;
}
