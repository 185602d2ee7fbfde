// SPDX-License-Identifier: MIT
#include "daemon_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/kern_half.h"

void fx_put(struct fx_buf *b, const void *p, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = (b->n + n) * 2;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			abort();
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

void fx_put_u32(struct fx_buf *b, uint32_t v)
{
	fx_put(b, &v, sizeof(v));
}

void fx_put_u64(struct fx_buf *b, uint64_t v)
{
	fx_put(b, &v, sizeof(v));
}

void fx_put_str(struct fx_buf *b, const char *s)
{
	fx_put_u64(b, strlen(s));
	fx_put(b, s, strlen(s));
}

void fx_kv_raw(struct fx_file *f, const char *key, uint32_t type, const void *value, size_t n)
{
	fx_put_str(&f->kv, key);
	fx_put_u32(&f->kv, type);
	fx_put(&f->kv, value, n);
	f->n_kv++;
}

void fx_kv_u32(struct fx_file *f, const char *key, uint32_t v)
{
	fx_kv_raw(f, key, GGUF_U32, &v, sizeof(v));
}

void fx_kv_f32(struct fx_file *f, const char *key, float v)
{
	fx_kv_raw(f, key, GGUF_F32, &v, sizeof(v));
}

void fx_kv_bool(struct fx_file *f, const char *key, bool v)
{
	uint8_t b = v;

	fx_kv_raw(f, key, GGUF_BOOL, &b, 1);
}

void fx_kv_str(struct fx_file *f, const char *key, const char *v)
{
	fx_kv_raw(f, key, GGUF_STR, NULL, 0);
	fx_put_str(&f->kv, v);
}

static void fx_kv_arr(struct fx_file *f, const char *key, uint32_t type, size_t n)
{
	fx_kv_raw(f, key, GGUF_ARR, &type, sizeof(type));
	fx_put_u64(&f->kv, n);
}

void fx_kv_strs(struct fx_file *f, const char *key, const char *const *v, size_t n)
{
	size_t i;

	fx_kv_arr(f, key, GGUF_STR, n);
	for (i = 0; i < n; i++)
		fx_put_str(&f->kv, v[i]);
}

void fx_kv_i32s(struct fx_file *f, const char *key, const int32_t *v, size_t n)
{
	fx_kv_arr(f, key, GGUF_I32, n);
	fx_put(&f->kv, v, n * sizeof(*v));
}

void fx_kv_f32s(struct fx_file *f, const char *key, const float *v, size_t n)
{
	fx_kv_arr(f, key, GGUF_F32, n);
	fx_put(&f->kv, v, n * sizeof(*v));
}

static void quantise_q8_0(uint8_t *dst, const float *v)
{
	float max = 0, scale;
	uint16_t h;
	int i;

	for (i = 0; i < 32; i++)
		if (fabsf(v[i]) > max)
			max = fabsf(v[i]);
	h = f32_to_f16(max / 127);
	scale = f16_to_f32(h);
	memcpy(dst, &h, 2);
	for (i = 0; i < 32; i++) {
		float q = scale > 0 ? roundf(v[i] / scale) : 0;

		dst[2 + i] = (uint8_t)(int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
	}
}

void fx_tensor(struct fx_file *f, const char *name, enum gguf_type type, uint32_t n_dims,
	       const uint64_t *ne, const float *v)
{
	struct fx_tensor *t;
	size_t n = 1, i;
	uint32_t d;

	f->tensors = realloc(f->tensors, (f->n_tensors + 1) * sizeof(*f->tensors));
	if (!f->tensors)
		abort();
	t = &f->tensors[f->n_tensors++];
	*t = (struct fx_tensor){ .type = type, .n_dims = n_dims };
	snprintf(t->name, sizeof(t->name), "%s", name);
	for (d = 0; d < n_dims; d++)
		n *= t->ne[d] = ne[d];
	t->nbytes = gguf_row_bytes(type, n);
	t->data = malloc(t->nbytes);
	if (!t->data)
		abort();
	for (i = 0; i < n; i += type == GGUF_T_Q8_0 ? 32 : 1) {
		uint16_t h;

		if (type == GGUF_T_Q8_0) {
			quantise_q8_0(t->data + i / 32 * 34, v + i);
		} else if (type == GGUF_T_F32) {
			memcpy(t->data + 4 * i, v + i, 4);
		} else {
			h = type == GGUF_T_F16 ? f32_to_f16(v[i]) : float_to_bits(v[i]) >> 16;
			memcpy(t->data + 2 * i, &h, 2);
		}
	}
}

uint8_t *fx_finish(const struct fx_file *f, size_t *len)
{
	static const uint8_t zeros[32];
	struct fx_buf b = { 0 };
	uint64_t offset = 0;
	uint8_t *out;
	uint32_t i;

	fx_put(&b, "GGUF", 4);
	fx_put_u32(&b, 3);
	fx_put_u64(&b, f->n_tensors);
	fx_put_u64(&b, f->n_kv);
	fx_put(&b, f->kv.p, f->kv.n);
	for (i = 0; i < f->n_tensors; i++) {
		const struct fx_tensor *t = &f->tensors[i];

		fx_put_str(&b, t->name);
		fx_put_u32(&b, t->n_dims);
		fx_put(&b, t->ne, t->n_dims * 8);
		fx_put_u32(&b, t->type);
		fx_put_u64(&b, offset);
		offset += (t->nbytes + 31) & ~31ull;
	}
	for (i = 0; i < f->n_tensors; i++) {
		fx_put(&b, zeros, -b.n & 31);
		fx_put(&b, f->tensors[i].data, f->tensors[i].nbytes);
	}
	out = aligned_alloc(64, (b.n + 63) & ~63ull);
	if (!out)
		abort();
	memcpy(out, b.p, b.n);
	*len = b.n;
	free(b.p);
	return out;
}

void fx_free(struct fx_file *f)
{
	uint32_t i;

	for (i = 0; i < f->n_tensors; i++)
		free(f->tensors[i].data);
	free(f->tensors);
	free(f->kv.p);
	*f = (struct fx_file){ 0 };
}

uint32_t fx_rand(uint32_t *state)
{
	/* xorshift32 */
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

float fx_rand_normal(uint32_t *state)
{
	float sum = 0;
	int i;

	for (i = 0; i < 12; i++)
		sum += (float)(fx_rand(state) >> 8) * 0x1p-24f;
	return sum - 6;
}

static void add_random(struct fx_file *f, const char *name, enum gguf_type type, uint64_t n_in,
		       uint64_t n_out, uint32_t *seed)
{
	const uint64_t ne[2] = { n_in, n_out };
	size_t n = n_in * n_out, i;
	float *v = malloc(n * sizeof(*v));

	if (!v)
		abort();
	for (i = 0; i < n; i++)
		v[i] = fx_rand_normal(seed) / sqrtf((float)n_in);
	fx_tensor(f, name, type, 2, ne, v);
	free(v);
}

static void add_vector(struct fx_file *f, const char *name, uint64_t n, float from, uint32_t *seed)
{
	float *v = malloc(n * sizeof(*v));
	uint64_t i;

	if (!v)
		abort();
	for (i = 0; i < n; i++)
		v[i] = from + (float)(fx_rand(seed) >> 8) * 0x1p-24f;
	fx_tensor(f, name, GGUF_T_F32, 1, &n, v);
	free(v);
}

static void add_layer(struct fx_file *f, const struct fx_model *m, uint32_t i, uint32_t *seed)
{
	const uint32_t q = m->n_head * m->head_dim;
	const uint32_t kv = m->n_head_kv * m->head_dim;
	const struct {
		const char *name;
		uint32_t n_in, n_out;
	} mats[] = {
		{ "attn_q", m->n_embd, q },	    { "attn_k", m->n_embd, kv },
		{ "attn_v", m->n_embd, kv },	    { "attn_output", q, m->n_embd },
		{ "ffn_gate", m->n_embd, m->n_ff }, { "ffn_up", m->n_embd, m->n_ff },
		{ "ffn_down", m->n_ff, m->n_embd },
	};
	char name[64];
	size_t j;

	for (j = 0; j < sizeof(mats) / sizeof(mats[0]); j++) {
		snprintf(name, sizeof(name), "blk.%u.%s.weight", i, mats[j].name);
		add_random(f, name, m->type, mats[j].n_in, mats[j].n_out, seed);
	}
	snprintf(name, sizeof(name), "blk.%u.attn_norm.weight", i);
	add_vector(f, name, m->n_embd, 0.5f, seed);
	snprintf(name, sizeof(name), "blk.%u.ffn_norm.weight", i);
	add_vector(f, name, m->n_embd, 0.5f, seed);
	for (j = 0; m->qwen2 && j < 3; j++) {
		snprintf(name, sizeof(name), "blk.%u.%s.bias", i, mats[j].name);
		add_vector(f, name, mats[j].n_out, -0.5f, seed);
	}
}

static const char *arch(const struct fx_model *m)
{
	return m->qwen2 ? "qwen2" : "llama";
}

static void arch_u32(struct fx_file *f, const struct fx_model *m, const char *name, uint32_t v)
{
	char key[96];

	snprintf(key, sizeof(key), "%s.%s", arch(m), name);
	fx_kv_u32(f, key, v);
}

static void arch_f32(struct fx_file *f, const struct fx_model *m, const char *name, float v)
{
	char key[96];

	snprintf(key, sizeof(key), "%s.%s", arch(m), name);
	fx_kv_f32(f, key, v);
}

void fx_model_add(struct fx_file *f, const struct fx_model *m)
{
	uint32_t seed = m->seed, i;

	fx_kv_str(f, "general.architecture", arch(m));
	arch_u32(f, m, "context_length", m->n_ctx);
	arch_u32(f, m, "embedding_length", m->n_embd);
	arch_u32(f, m, "block_count", m->n_layer);
	arch_u32(f, m, "feed_forward_length", m->n_ff);
	arch_u32(f, m, "attention.head_count", m->n_head);
	arch_u32(f, m, "attention.head_count_kv", m->n_head_kv);
	arch_u32(f, m, "attention.key_length", m->head_dim);
	arch_u32(f, m, "attention.value_length", m->head_dim);
	arch_u32(f, m, "rope.dimension_count", m->rope_dim);
	arch_f32(f, m, "rope.freq_base", 1000.0f);
	arch_f32(f, m, "attention.layer_norm_rms_epsilon", 1e-5f);
	add_random(f, "token_embd.weight", m->type, m->n_embd, m->n_vocab, &seed);
	if (!m->tied)
		add_random(f, "output.weight", m->type, m->n_embd, m->n_vocab, &seed);
	add_vector(f, "output_norm.weight", m->n_embd, 0.5f, &seed);
	if (m->rope_factors)
		add_vector(f, "rope_freqs.weight", m->rope_dim / 2, 1.0f, &seed);
	for (i = 0; i < m->n_layer; i++)
		add_layer(f, m, i, &seed);
}
