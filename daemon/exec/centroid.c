// SPDX-License-Identifier: MIT
/*
 * Centroids: the mean of a block's keys, for each layer and KV head, in INT8.
 *
 *	[layer][kv_head]{ float factor; int8_t z[kern_pad(head_dim)]; }
 *
 * Element i stands for factor * scale[i] * z[i], zeros behind head_dim. The
 * scales of the channels hold for all blocks and are fixed when the executor is
 * created: the model writes a few short texts of its own, and a channel's scale
 * is the largest centroid seen in it. The elements of a rotary pair share one,
 * their common length being what rotation leaves alone. The factor fits the
 * scales to the block, so that nothing is clipped.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec_priv.h"
#include "exec/sample.h"

/* Texts that the scales come from. */
#define TEXTS	    16u
#define TEXT_TOKENS 32u

/* Mean of the keys of one head over the first @n tokens of a block. */
static void centroid_mean(const struct exec *e, const void *block, uint32_t layer, uint32_t head,
			  uint32_t n, float mean[MODEL_MAX_HEAD_DIM])
{
	const uint32_t hd = e->m->cfg.head_dim;
	const uint8_t *k = (const uint8_t *)block + exec_plane_offset(e, layer, 0, head);
	float key[MODEL_MAX_HEAD_DIM];
	uint32_t t, i;

	memset(mean, 0, hd * sizeof(*mean));
	for (t = 0; t < n; t++) {
		e->ops->unpack(key, e->kv_elem == 2 ? GGUF_T_F16 : GGUF_T_F32,
			       k + t * hd * e->kv_elem, hd);
		for (i = 0; i < hd; i++)
			mean[i] += key[i];
	}
	for (i = 0; i < hd; i++)
		mean[i] /= n;
}

size_t exec_centroid_bytes(const struct exec *e)
{
	const struct model_config *c = &e->m->cfg;

	return e->cfg.sparse_blocks ? c->n_layer * c->n_head_kv * exec_centroid_stride(e) : 0;
}

static void centroid_quantise(const float *mean, const float *scale, uint32_t n, uint8_t *out)
{
	int8_t *z = (int8_t *)out + sizeof(float);
	float factor = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		factor = fmaxf(factor, fabsf(mean[i]) / scale[i]);
	factor /= 127;
	memcpy(out, &factor, sizeof(factor));
	for (i = 0; factor > 0 && i < n; i++)
		z[i] = (int8_t)lrintf(fmaxf(-127, fminf(127, mean[i] / scale[i] / factor)));
}

int exec_centroid_make(const struct exec *e, const void *block, void *out)
{
	const struct model_config *c = &e->m->cfg;
	float mean[MODEL_MAX_HEAD_DIM];
	uint8_t *to = out;
	uint32_t l, h;

	if (!e->cfg.sparse_blocks)
		return -EOPNOTSUPP;
	memset(out, 0, exec_centroid_bytes(e));
	for (l = 0; l < c->n_layer; l++)
		for (h = 0; h < c->n_head_kv; h++, to += exec_centroid_stride(e)) {
			centroid_mean(e, block, l, h, e->cfg.block_tokens, mean);
			centroid_quantise(mean, exec_centroid_scale(e, l, h), c->head_dim, to);
		}
	return 0;
}

/* Raise the scales to the centroids of the first @n tokens of a block. */
static void scale_raise(struct exec *e, const void *block, uint32_t n)
{
	const struct model_config *c = &e->m->cfg;
	const bool half = c->rope_pairs == MODEL_ROPE_HALVES;
	float mean[MODEL_MAX_HEAD_DIM];
	uint32_t l, h, i;

	for (l = 0; l < c->n_layer; l++)
		for (h = 0; h < c->n_head_kv; h++) {
			float *scale = exec_centroid_scale(e, l, h);

			centroid_mean(e, block, l, h, n, mean);
			for (i = 0; i < c->rope_dim / 2; i++) {
				float *a = &mean[turn_index(half, c->rope_dim, i, 0)];
				float *b = &mean[turn_index(half, c->rope_dim, i, 1)];

				*a = *b = sqrtf(*a * *a + *b * *b);
			}
			for (i = 0; i < c->head_dim; i++)
				scale[i] = fmaxf(scale[i], fabsf(mean[i]));
		}
}

/* Let the model write @n texts of @len tokens side by side. */
static int write_texts(struct exec *e, const struct exec_seg *seg, uint32_t n, uint32_t len,
		       struct sampler *smp)
{
	struct exec_row rows[TEXTS];
	int32_t token[TEXTS];
	uint32_t i, t;
	int ret = 0;

	for (i = 0; i < n; i++) /* any start will do */
		token[i] = (int32_t)((i + 1) * 2654435761u % e->m->cfg.n_vocab);
	for (t = 0; t < len && !ret; t++) {
		for (i = 0; i < n; i++)
			rows[i] = (struct exec_row){
				.token = token[i],
				.pos = t,
				.at = t,
				.segs = &seg[i],
				.n_segs = 1,
				.want_logits = true,
			};
		ret = exec_step(e, rows, n);
		for (i = 0; i < n && !ret; i++)
			token[i] = sample_next(smp, exec_logits(e, i));
	}
	return ret;
}

/* Scales from texts whose K/V goes to @mem. */
static int calibrate_on(struct exec *e, uint8_t *mem, void **table, struct sampler *smp)
{
	const uint32_t bt = e->cfg.block_tokens, per_text = (TEXT_TOKENS + bt - 1) / bt;
	const uint32_t n_ctx = e->m->cfg.n_ctx, len = n_ctx < TEXT_TOKENS ? n_ctx : TEXT_TOKENS;
	const size_t bytes = exec_kv_block_bytes(&e->m->cfg, bt, e->cfg.kv_type);
	struct exec_seg seg[TEXTS];
	uint32_t i, b, n;
	int ret;

	for (i = 0; i < TEXTS * per_text; i++)
		table[i] = mem + i * bytes;
	for (i = 0; i < TEXTS; i++)
		seg[i] = (struct exec_seg){ .blocks = table + i * per_text, .len = len };
	for (i = 0; i < TEXTS; i += n) {
		n = TEXTS - i < e->cfg.max_logits ? TEXTS - i : e->cfg.max_logits;
		ret = write_texts(e, seg + i, n, len, smp);
		if (ret)
			return ret;
	}
	for (i = 0; i < TEXTS; i++)
		for (b = 0; b * bt < len; b++)
			scale_raise(e, seg[i].blocks[b], len - b * bt < bt ? len - b * bt : bt);
	return 0;
}

int exec_centroid_calibrate(struct exec *e)
{
	const struct model_config *c = &e->m->cfg;
	const uint32_t bt = e->cfg.block_tokens, blocks = TEXTS * ((TEXT_TOKENS + bt - 1) / bt);
	const struct sample_params p = { .temperature = 1, .top_p = 1, .seed = 1 };
	uint8_t *mem = calloc(blocks, exec_kv_block_bytes(c, bt, e->cfg.kv_type));
	void **table = calloc(blocks, sizeof(*table));
	struct sampler smp;
	size_t i;
	int ret = -ENOMEM;

	if (!mem || !table || sample_init(&smp, &p, c->n_vocab))
		goto out_free;
	ret = calibrate_on(e, mem, table, &smp);
	for (i = 0; i < c->n_layer * c->n_head_kv * kern_pad(c->head_dim); i++)
		if (!(e->scale[i] > 0))
			e->scale[i] = 1;
	e->n_rows = 0; /* no logits to be had */
	sample_free(&smp);
out_free:
	free(table);
	free(mem);
	return ret;
}
