/* SPDX-License-Identifier: MIT */
/*
 * model.h - the weights of a GGUF file of llama or qwen2 architecture, checked
 * and named.
 *
 * All weights stay in the mapped file, in their stored type.
 */
#ifndef HAWK_MODEL_H
#define HAWK_MODEL_H

#include "gguf/gguf.h"

/* Upper bounds that keep every later product inside 64 bits. */
#define MODEL_MAX_LAYERS   1024u
#define MODEL_MAX_EMBD	   (1u << 20)
#define MODEL_MAX_HEAD_DIM 256u
#define MODEL_MAX_CTX	   (16u << 20)

/* Which elements of a head rotate together, d the rotated ones. */
enum model_rope {
	MODEL_ROPE_PAIRS,  /* (2i, 2i + 1): llama */
	MODEL_ROPE_HALVES, /* (i, i + d / 2): qwen2; "neox" */
};

/**
 * struct model_config - shape of the network
 * @n_vocab: tokens in the vocabulary
 * @n_ctx: longest context the model was trained for, in tokens
 * @n_embd: width of the residual stream
 * @n_layer: transformer layers
 * @n_head: query heads
 * @n_head_kv: key/value heads; divides @n_head
 * @head_dim: elements per head (even, at most MODEL_MAX_HEAD_DIM)
 * @n_ff: width of the feed-forward layer
 * @rope_dim: leading elements of a head that are rotated (even)
 * @rope_pairs: which of them rotate together
 * @rope_base: base of the rotation frequencies
 * @rope_scale: positions are multiplied by this (1 / linear scaling factor)
 * @rms_eps: epsilon of the RMS norms
 */
struct model_config {
	uint32_t n_vocab;
	uint32_t n_ctx;
	uint32_t n_embd;
	uint32_t n_layer;
	uint32_t n_head;
	uint32_t n_head_kv;
	uint32_t head_dim;
	uint32_t n_ff;
	uint32_t rope_dim;
	enum model_rope rope_pairs;
	float rope_base;
	float rope_scale;
	float rms_eps;
};

/**
 * struct model_mat - a weight matrix in the mapped file
 * @type: stored element type
 * @n_out: rows (outputs)
 * @n_in: columns (inputs), contiguous
 * @row_bytes: bytes from one row to the next
 * @data: first row
 */
struct model_mat {
	enum gguf_type type;
	uint32_t n_out;
	uint32_t n_in;
	size_t row_bytes;
	const uint8_t *data;
};

struct model_layer {
	const float *attn_norm;	   /* [n_embd] */
	const float *ffn_norm;	   /* [n_embd] */
	struct model_mat wq;	   /* n_embd -> n_head * head_dim */
	struct model_mat wk, wv;   /* n_embd -> n_head_kv * head_dim */
	const float *bq, *bk, *bv; /* added to their results; NULL: none (llama) */
	struct model_mat wo;	   /* n_head * head_dim -> n_embd */
	struct model_mat gate, up; /* n_embd -> n_ff */
	struct model_mat down;	   /* n_ff -> n_embd */
};

/**
 * struct model - a loaded model; immutable, may be shared by threads
 * @cfg: shape
 * @gguf: the file, owned; use it for metadata such as tokenizer.chat_template
 * @name: general.name, or the file's base name
 * @tok_embd: token embeddings, n_out = n_vocab
 * @output: output projection; same data as @tok_embd when tied
 * @out_norm: [n_embd]
 * @rope_factors: [rope_dim / 2] divisors of the rotation frequencies
 *                (rope_freqs.weight, llama 3), or NULL
 * @layers: [cfg.n_layer]
 * @n_params: number of weights in all matrices
 * @id: 32 hex digits naming the weights: a hash over every tensor's name, type, shape
 *      and bytes and the metadata that changes the result. Equal files give
 *      equal ids, so it may seed KV keys.
 */
struct model {
	struct model_config cfg;
	struct gguf *gguf;
	char name[128];
	struct model_mat tok_embd;
	struct model_mat output;
	const float *out_norm;
	const float *rope_factors;
	struct model_layer *layers;
	uint64_t n_params;
	char id[33];
};

/**
 * model_load() - open a GGUF file and check that it is a model Hawk can run
 * @path: file name
 * @out: set on success only
 * @err: on failure, one line naming the cause and what to do
 *
 * Return: 0; the errors of gguf_open(); -EOPNOTSUPP other architecture or
 * features Hawk lacks; -EINVAL missing keys or tensors, shapes that disagree.
 */
int model_load(const char *path, struct model **out, char err[GGUF_ERR_LEN]);

/**
 * model_from_gguf() - the same for a file already parsed
 * @g: owned by the model on success, still by the caller on failure
 * @fallback_name: name used when the file has no general.name
 */
int model_from_gguf(struct gguf *g, const char *fallback_name, struct model **out,
		    char err[GGUF_ERR_LEN]);

/** model_free() - release everything; NULL is ignored */
void model_free(struct model *m);

#endif
