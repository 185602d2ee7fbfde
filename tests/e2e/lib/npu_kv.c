// SPDX-License-Identifier: MIT
/*
 * npu_kv.c - KV and queries of a model, and attention to rows of them (npu_kv.h)
 */
#include <math.h>
#include <string.h>

#include "npu_kv.h"

/* A number and its 16-bit float. */
struct number {
	float f;
	uint16_t half;
};

static struct number kv[LAYERS][2][KV_HEADS][TOKENS][DIM];
static struct number query[LAYERS][HEADS][DIM];
static float reference[LAYERS][HEADS][DIM];

/* Eighths from -1 to 1. */
static struct number draw(uint32_t *seed)
{
	struct number n = { 0 };
	int32_t eighths;
	uint32_t exp, mag;

	*seed = *seed * 1664525 + 1013904223;
	eighths = (int32_t)((*seed >> 16) % 17) - 8;
	if (!eighths)
		return n;
	mag = (uint32_t)(eighths < 0 ? -eighths : eighths);
	exp = 31 - (uint32_t)__builtin_clz(mag);
	n.f = (float)eighths / 8.0f;
	n.half = (uint16_t)((eighths < 0 ? 0x8000 : 0) | (exp + 15 - 3) << 10 |
			    ((mag << (10 - exp)) & 0x3ff));
	return n;
}

/* One query head: softmax of the scores, sums of 32-bit floats. */
static void attend(uint32_t layer, uint32_t head, float *out)
{
	const struct number (*k)[DIM] = kv[layer][0][head / (HEADS / KV_HEADS)];
	const struct number (*v)[DIM] = kv[layer][1][head / (HEADS / KV_HEADS)];
	float w[TOKENS], max = -INFINITY, sum = 0;
	uint32_t t, d;

	for (t = 0; t < TOKENS; t++) {
		w[t] = 0;
		for (d = 0; d < DIM; d++)
			w[t] += query[layer][head][d].f * k[t][d].f;
		w[t] *= SCALE;
		max = w[t] > max ? w[t] : max;
	}
	memset(out, 0, DIM * sizeof(*out));
	for (t = 0; t < TOKENS; t++) {
		w[t] = expf(w[t] - max);
		sum += w[t];
		for (d = 0; d < DIM; d++)
			out[d] += w[t] * v[t][d].f;
	}
	for (d = 0; d < DIM; d++)
		out[d] /= sum;
}

void kv_make(uint32_t seed)
{
	struct number *n = &kv[0][0][0][0][0];
	uint32_t i, h;

	for (i = 0; i < LAYERS * 2 * KV_HEADS * TOKENS * DIM; i++)
		n[i] = draw(&seed);
	n = &query[0][0][0];
	for (i = 0; i < LAYERS * HEADS * DIM; i++)
		n[i] = draw(&seed);
	for (i = 0; i < LAYERS; i++)
		for (h = 0; h < HEADS; h++)
			attend(i, h, reference[i][h]);
}

void kv_query(uint32_t layer, uint16_t *out)
{
	uint32_t h, d;

	for (h = 0; h < HEADS; h++)
		for (d = 0; d < DIM; d++)
			out[h * DIM + d] = query[layer][h][d].half;
}

/* The element at which a token's @d is, of a head in a block. */
static uint32_t place(bool tiles, uint32_t t, uint32_t d)
{
	return tiles ? ((t / 16 * (DIM / 16) + d / 16) * 16 + t % 16) * 16 + d % 16 : t * DIM + d;
}

static void head_of_block(uint32_t layer, uint32_t plane, uint32_t head, uint32_t b, bool tiles,
			  uint8_t *out)
{
	uint32_t t, d;

	for (t = 0; t < BLOCK_TOKENS && b * BLOCK_TOKENS + t < TOKENS; t++)
		for (d = 0; d < DIM; d++)
			memcpy(out + 2 * place(tiles, t, d),
			       &kv[layer][plane][head][b * BLOCK_TOKENS + t][d].half, 2);
}

void kv_block(uint32_t b, bool tiles, uint8_t *out)
{
	uint32_t layer, plane, head;

	memset(out, 0, BLOCK_BYTES);	/* also behind the last token */
	for (layer = 0; layer < LAYERS; layer++)
		for (plane = 0; plane < 2; plane++)
			for (head = 0; head < KV_HEADS; head++)
				head_of_block(layer, plane, head, b, tiles,
					      out + layer * LAYER_BYTES + plane * PLANE_BYTES +
					      head * (PLANE_BYTES / KV_HEADS));
}

float kv_error(uint32_t layer, const float *out)
{
	float worst = 0;
	uint32_t h, d;

	for (h = 0; h < HEADS; h++) {
		const float *want = reference[layer][h];
		float err = 0, norm = 0;

		for (d = 0; d < DIM; d++) {
			float diff = out[h * DIM + d] - want[d];

			err += diff * diff;
			norm += want[d] * want[d];
		}
		err = sqrtf(err / norm);
		if (!(err <= worst))	/* also what is no number */
			worst = err;
	}
	return worst;
}
