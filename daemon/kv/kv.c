// SPDX-License-Identifier: MIT
/* kv.c - the device, our space on it, and what its keys start from */
#include "kv/kv_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kv_fail(char err[KV_ERR_LEN], int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, KV_ERR_LEN, fmt, ap);
	va_end(ap);
	return code;
}

int kv_root(const struct kv *kv, const void *tenant, size_t len, uint8_t root[KV_KEY_BYTES])
{
	struct hawk_key_params p = {
		.salt = tenant,
		.salt_len = len,
		.model = kv->model,
		.dtype = kv->dtype_name,
		.layout = kv->layout,
		.block_tokens = kv->block_tokens,
	};

	return hawk_key_root(&p, root);
}

static int kv_identity(struct kv *kv, const struct kv_config *cfg, char err[KV_ERR_LEN])
{
	uint8_t root[KV_KEY_BYTES], key[KV_KEY_BYTES];
	int ret;

	kv->model = strdup(cfg->model);
	kv->dtype_name = strdup(cfg->dtype_name);
	kv->layout = strdup(cfg->layout);
	if (!kv->model || !kv->dtype_name || !kv->layout)
		return kv_fail(err, -ENOMEM, "out of memory");
	ret = kv_root(kv, NULL, 0, root);
	if (ret)
		return kv_fail(err, ret, "cannot make keys: %s", hawk_strerror_last());
	hawk_key_next(root, NULL, NULL, 0, NULL, 0, key); /* a root is nobody's business */
	memcpy(&kv->model_id, key, sizeof(kv->model_id));
	return 0;
}

/* Frames are cut from chunks, a block never crosses a chunk. */
static uint64_t tier_blocks(const struct kv *kv, uint64_t tier_bytes)
{
	return tier_bytes / HAWK_CHUNK_BYTES * (HAWK_CHUNK_BYTES / kv->block_bytes);
}

/*
 * Few blocks per bucket make evictions unfair and allocations fail early, so a
 * small memory gets fewer buckets: at least 64 blocks each.
 */
static uint32_t pick_buckets(uint64_t host_blocks)
{
	uint32_t buckets = 1;

	while (buckets < 64 && host_blocks / (buckets * 2) >= 64)
		buckets *= 2;
	return buckets;
}

/* The space may have all of host memory and flash, whose blocks have addresses. */
static int kv_survey_tiers(struct kv *kv, struct hawk_kv_params *p, uint64_t *host,
			   uint64_t *all, char err[KV_ERR_LEN])
{
	struct hawk_query q = { .size = sizeof(q) };
	struct hawk_tier_info ti;
	unsigned int t;
	int ret;

	ret = hawk_device_query(kv->dev, &q);
	if (ret)
		return kv_fail(err, ret, "cannot query the KV device: %s", hawk_strerror_last());
	kv->features = q.features;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(q.tiers & (1u << t)))
			continue;
		memset(&ti, 0, sizeof(ti));
		ret = hawk_tier_stat(kv->dev, t, &ti);
		if (ret)
			return kv_fail(err, ret, "cannot read tier %u: %s", t,
				       hawk_strerror_last());
		if (ti.kind != HAWK_TIER_HOST && ti.kind != HAWK_TIER_BLK)
			continue;
		p->quota[t].max_bytes = ti.bytes;
		*all += tier_blocks(kv, ti.bytes);
		if (ti.kind == HAWK_TIER_HOST) {
			kv->host_tiers |= 1u << t;
			*host += tier_blocks(kv, ti.bytes);
		}
	}
	if (*host == 0)
		return kv_fail(err, -ENOSPC,
			       "the KV device has no host tier that holds a block of "
			       "%u bytes: add one (hawkctl tier add-host 1G)",
			       kv->block_bytes);
	return 0;
}

/* All sequences may have all the operations they can have, up to the engine's limit. */
static uint32_t kv_segs(uint32_t seqs)
{
	uint64_t n = (uint64_t)seqs * HIST_SEGS(HIST_OPS_MAX);

	return n < HAWK_SEGS_MAX ? n : HAWK_SEGS_MAX;
}

static int kv_make_space(struct kv *kv, const struct kv_config *cfg, char err[KV_ERR_LEN])
{
	struct hawk_space_info info = { .size = sizeof(info) };
	struct hawk_kv_params p = { 0 };
	uint64_t host = 0, all = 0;
	unsigned int t;
	int ret;

	ret = kv_survey_tiers(kv, &p, &host, &all, err);
	if (ret)
		return ret;
	p.block_bytes = kv->block_bytes;
	p.block_tokens = kv->block_tokens;
	p.layers = 1; /* a block holds all layers and heads of its tokens */
	p.head_groups = 1;
	p.dtype = cfg->dtype;
	p.model_id = kv->model_id;
	p.max_blocks = all < HAWK_BLOCKS_MAX ? all : HAWK_BLOCKS_MAX;
	p.buckets = pick_buckets(host);
	p.shift = 1; /* rotary keys, f16 or f32, no window */
	p.seqs = cfg->max_seqs;
	p.segs = kv_segs(cfg->max_seqs);
	ret = hawk_kv_create(kv->dev, &p, &kv->space);
	if (ret)
		return kv_fail(err, ret, "cannot create a KV space: %s", hawk_strerror_last());
	ret = hawk_kv_info(kv->space, &info);
	if (ret)
		return kv_fail(err, ret, "cannot read the KV space: %s", hawk_strerror_last());
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (kv->host_tiers & (1u << t))
			kv->capacity_blocks += info.frames[t];
	return 0;
}

static int kv_set_geometry(struct kv *kv, const struct kv_config *cfg, char err[KV_ERR_LEN])
{
	size_t bytes =
		(cfg->block_payload + HAWK_FRAME_ALIGN - 1) / HAWK_FRAME_ALIGN * HAWK_FRAME_ALIGN;

	if (bytes == 0 || bytes > HAWK_CHUNK_BYTES)
		return kv_fail(
			err, -EINVAL,
			"a KV block of %u tokens takes %zu bytes, more than %u: use a smaller --block-tokens",
			cfg->block_tokens, cfg->block_payload, HAWK_CHUNK_BYTES);
	kv->block_bytes = bytes;
	kv->block_tokens = cfg->block_tokens;
	kv->planes = cfg->planes;
	kv->token_bytes = cfg->block_payload / cfg->planes / cfg->block_tokens;
	kv->no_cache = cfg->no_cache;
	kv->reload_always = cfg->reload_always;
	kv->exec = cfg->exec;
	kv->centroid_bytes = cfg->exec ? exec_centroid_bytes(cfg->exec) : 0;
	kv->next_seq = 1;
	/* the engine's runs are at the top, see &struct hawk_space_create */
	kv->last_seq = HAWK_LID_SEQ_MAX - 2 * cfg->max_seqs;
	return 0;
}

int kv_open(const struct kv_config *cfg, struct kv **out, char err[KV_ERR_LEN])
{
	struct kv *kv;
	int ret;

	kv = calloc(1, sizeof(*kv));
	if (!kv)
		return kv_fail(err, -ENOMEM, "out of memory");
	ret = kv_set_geometry(kv, cfg, err);
	if (!ret)
		ret = kv_identity(kv, cfg, err);
	if (ret)
		goto fail;
	kv->items = calloc(HAWK_BATCH_MAX, sizeof(*kv->items));
	kv->from_flash = calloc(HAWK_BATCH_MAX, sizeof(*kv->from_flash));
	if (!kv->items || !kv->from_flash) {
		ret = kv_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}
	ret = hawk_open(cfg->url, &kv->dev);
	if (ret) {
		kv_fail(err, ret, "cannot open KV memory \"%s\": %s",
			cfg->url ? cfg->url : "(default)", hawk_strerror_last());
		goto fail;
	}
	ret = kv_make_space(kv, cfg, err);
	if (ret)
		goto fail;
	*out = kv;
	return 0;
fail:
	kv_close(kv);
	return ret;
}

void kv_close(struct kv *kv)
{
	if (!kv)
		return;
	if (kv->space)
		hawk_kv_close(kv->space);
	if (kv->dev)
		hawk_close(kv->dev);
	free(kv->from_flash);
	free(kv->items);
	free(kv->layout);
	free(kv->dtype_name);
	free(kv->model);
	free(kv);
}

int kv_draft_open(struct kv *kv, uint32_t slots, struct hawk_drafts **d)
{
	struct hawk_draft_params p = {
		.slots = slots,
		.planes = kv->planes,
		.token_bytes = kv->token_bytes,
	};

	return hawk_draft_open(kv->space, &p, d);
}

static uint64_t kv_counted(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void kv_get_reload_stat(const struct kv *kv, struct kv_stat *st)
{
	unsigned int i;

	st->reload_failed = kv_counted(&kv->reload_failed);
	st->reload_late = kv_counted(&kv->reload_late);
	st->left_tokens = kv_counted(&kv->left_tokens);
	st->phases = kv_counted(&kv->phases);
	for (i = 0; i < KV_CHOICES; i++)
		st->reload[i] = kv_counted(&kv->reload[i]);
}

int kv_get_stat(struct kv *kv, struct kv_stat *st)
{
	struct hawk_query q = { .size = sizeof(q) };
	unsigned int t;
	int ret;

	memset(st, 0, sizeof(*st));
	st->block_bytes = kv->block_bytes;
	st->block_tokens = kv->block_tokens;
	st->capacity_blocks = kv->capacity_blocks;
	kv_get_reload_stat(kv, st);
	st->space.size = sizeof(st->space);
	ret = hawk_kv_stats(kv->space, &st->space);
	if (ret)
		return ret;
	ret = hawk_device_query(kv->dev, &q);
	if (ret)
		return ret;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		struct hawk_tier_info *ti = &st->tier[st->n_tiers];

		if (!(q.tiers & (1u << t)))
			continue;
		ti->size = sizeof(*ti);
		if (hawk_tier_stat(kv->dev, t, ti))
			continue;
		ti->tier = t;
		st->n_tiers++;
	}
	return 0;
}

const char *kv_backend(const struct kv *kv)
{
	return hawk_backend(kv->dev);
}

uint32_t kv_block_bytes(const struct kv *kv)
{
	return kv->block_bytes;
}

uint32_t kv_block_tokens(const struct kv *kv)
{
	return kv->block_tokens;
}

uint64_t kv_capacity_blocks(const struct kv *kv)
{
	return kv->capacity_blocks;
}
