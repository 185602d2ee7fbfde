/* SPDX-License-Identifier: MIT */
/* GGUF files made in memory, for the daemon's unit tests. */
#ifndef HAWK_TESTS_DAEMON_FIXTURE_H
#define HAWK_TESTS_DAEMON_FIXTURE_H

#include "gguf/gguf.h"
#include "model/model.h"

/* Growing buffer of bytes. */
struct fx_buf {
	uint8_t *p;
	size_t n, cap;
};

void fx_put(struct fx_buf *b, const void *p, size_t n);
void fx_put_u32(struct fx_buf *b, uint32_t v);
void fx_put_u64(struct fx_buf *b, uint64_t v);
void fx_put_str(struct fx_buf *b, const char *s);

struct fx_tensor {
	char name[64];
	uint32_t type, n_dims;
	uint64_t ne[4];
	uint8_t *data;
	size_t nbytes;
};

/* A file being put together. Zero it to start; fx_free() at the end. */
struct fx_file {
	uint32_t n_kv;
	struct fx_buf kv;
	uint32_t n_tensors;
	struct fx_tensor *tensors;
};

void fx_kv_raw(struct fx_file *f, const char *key, uint32_t type, const void *value, size_t n);
void fx_kv_u32(struct fx_file *f, const char *key, uint32_t v);
void fx_kv_f32(struct fx_file *f, const char *key, float v);
void fx_kv_bool(struct fx_file *f, const char *key, bool v);
void fx_kv_str(struct fx_file *f, const char *key, const char *v);
void fx_kv_strs(struct fx_file *f, const char *key, const char *const *v, size_t n);
void fx_kv_i32s(struct fx_file *f, const char *key, const int32_t *v, size_t n);
void fx_kv_f32s(struct fx_file *f, const char *key, const float *v, size_t n);

/* Add a tensor with a copy of @n elements quantised to @type. */
void fx_tensor(struct fx_file *f, const char *name, enum gguf_type type, uint32_t n_dims,
	       const uint64_t *ne, const float *v);

/* The bytes of the file (version 3), 64-byte aligned, to be free()d. */
uint8_t *fx_finish(const struct fx_file *f, size_t *len);
void fx_free(struct fx_file *f);

/* A llama or qwen2 model with random weights. */
struct fx_model {
	uint32_t n_vocab, n_ctx, n_embd, n_layer, n_head, n_head_kv, head_dim;
	uint32_t n_ff, rope_dim;
	enum gguf_type type; /* of the matrices */
	bool tied;	     /* no output.weight */
	bool rope_factors;
	bool qwen2;
	uint32_t seed;
};

void fx_model_add(struct fx_file *f, const struct fx_model *m);

/* Deterministic numbers for tests: state is the seed. */
uint32_t fx_rand(uint32_t *state);
float fx_rand_normal(uint32_t *state);

#endif
