// SPDX-License-Identifier: MIT
/*
 * Turn a parsed GGUF file into the weights of a llama or qwen2 network.
 *
 * A tensor the network below does not use (other biases, experts, adapters) would
 * change the result if it were ignored, so its presence is an error.
 */
#include "model/model.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_ID_BYTES 16

/* A kind of network: its keys start with its name. */
struct arch {
	const char *name;
	enum model_rope rope_pairs;
	bool qkv_bias;
};

static const struct arch archs[] = {
	{ "llama", MODEL_ROPE_PAIRS, false },
	{ "qwen2", MODEL_ROPE_HALVES, true },
};
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

#define KEY_LEN 96

/* What one load needs to pass around. */
struct loader {
	struct model *m;
	const struct arch *arch;
	const struct gguf *g;
	uint32_t n_used; /* tensors claimed by the network */
	char *err;
};

/* The architecture's own key @name. */
static const char *arch_key(const struct loader *ld, const char *name, char key[KEY_LEN])
{
	snprintf(key, KEY_LEN, "%s.%s", ld->arch->name, name);
	return key;
}

/*
 * Read the architecture's key @name into *out, min..max. A missing key keeps the value already in *out,
 * or is an error where that is 0.
 */
static int conf_u32(struct loader *ld, const char *name, uint32_t min, uint32_t max, uint32_t *out)
{
	char key[KEY_LEN];
	int ret = gguf_get_u32(ld->g, arch_key(ld, name, key), out);

	if (ret == -ENOENT && !*out)
		return gguf_fail(ld->err, -EINVAL,
				 "the model file lacks key '%s': convert the model again", key);
	if (ret == -EINVAL)
		return gguf_fail(ld->err, -EINVAL, "key '%s' is not a single whole number", key);
	if (*out < min || *out > max)
		return gguf_fail(ld->err, -EINVAL, "key '%s' is %u, outside %u to %u", key, *out,
				 min, max);
	return 0;
}

static int conf_f32(struct loader *ld, const char *name, float min, float max, float *out)
{
	char key[KEY_LEN];
	int ret = gguf_get_f32(ld->g, arch_key(ld, name, key), out);

	if (ret == -ENOENT && *out == 0.0f)
		return gguf_fail(ld->err, -EINVAL,
				 "the model file lacks key '%s': convert the model again", key);
	if (ret == -EINVAL)
		return gguf_fail(ld->err, -EINVAL, "key '%s' is not a number", key);
	if (!(*out >= min && *out <= max))
		return gguf_fail(ld->err, -EINVAL, "key '%s' is %g, outside %g to %g", key,
				 (double)*out, (double)min, (double)max);
	return 0;
}

static int conf_arch(struct loader *ld)
{
	char key[KEY_LEN];
	struct gguf_str arch;
	uint32_t experts = 0;
	size_t i;

	if (gguf_get_str(ld->g, "general.architecture", &arch))
		return gguf_fail(ld->err, -EINVAL,
				 "the model file lacks key 'general.architecture'");
	for (i = 0; i < N_ARCHS; i++)
		if (gguf_str_eq(arch, archs[i].name))
			ld->arch = &archs[i];
	if (!ld->arch)
		return gguf_fail(ld->err, -EOPNOTSUPP,
				 "the model's architecture is '%s': Hawk runs 'llama' and 'qwen2'",
				 gguf_printable(arch).s);
	ld->m->cfg.rope_pairs = ld->arch->rope_pairs;
	if (!gguf_get_u32(ld->g, arch_key(ld, "expert_count", key), &experts) && experts)
		return gguf_fail(
			ld->err, -EOPNOTSUPP,
			"the model is a mixture of %u experts, which Hawk does not support",
			experts);
	return 0;
}

static int conf_heads(struct loader *ld)
{
	struct model_config *c = &ld->m->cfg;
	uint32_t v_len;
	int ret;

	ret = conf_u32(ld, "attention.head_count", 1, 65536, &c->n_head);
	if (ret)
		return ret;
	c->n_head_kv = c->n_head;
	ret = conf_u32(ld, "attention.head_count_kv", 1, c->n_head, &c->n_head_kv);
	if (ret)
		return ret;
	if (c->n_head % c->n_head_kv)
		return gguf_fail(ld->err, -EINVAL,
				 "%u query heads cannot share %u key/value heads evenly", c->n_head,
				 c->n_head_kv);
	c->head_dim = c->n_embd / c->n_head;
	ret = conf_u32(ld, "attention.key_length", 2, MODEL_MAX_HEAD_DIM, &c->head_dim);
	if (ret)
		return ret;
	v_len = c->head_dim;
	ret = conf_u32(ld, "attention.value_length", 2, MODEL_MAX_HEAD_DIM, &v_len);
	if (ret)
		return ret;
	if (v_len != c->head_dim || c->head_dim % 2)
		return gguf_fail(
			ld->err, -EOPNOTSUPP,
			"key length %u and value length %u: Hawk needs them equal and even",
			c->head_dim, v_len);
	return 0;
}

static int conf_rope(struct loader *ld)
{
	struct model_config *c = &ld->m->cfg;
	char key[KEY_LEN];
	struct gguf_str type;
	float factor = 1.0f;
	int ret;

	c->rope_dim = c->head_dim;
	ret = conf_u32(ld, "rope.dimension_count", 2, c->head_dim, &c->rope_dim);
	if (ret)
		return ret;
	if (c->rope_dim % 2)
		return gguf_fail(ld->err, -EINVAL, "%s.rope.dimension_count is %u, not even",
				 ld->arch->name, c->rope_dim);
	c->rope_base = 10000.0f;
	ret = conf_f32(ld, "rope.freq_base", 1.0f, 1e12f, &c->rope_base);
	if (ret)
		return ret;
	c->rope_scale = 1.0f;
	if (gguf_get_str(ld->g, arch_key(ld, "rope.scaling.type", key), &type) ||
	    gguf_str_eq(type, "none"))
		return 0;
	if (!gguf_str_eq(type, "linear"))
		return gguf_fail(
			ld->err, -EOPNOTSUPP,
			"the model scales its rotations by '%s': Hawk supports 'none', 'linear' and a rope_freqs tensor",
			gguf_printable(type).s);
	ret = conf_f32(ld, "rope.scaling.factor", 1e-3f, 1e6f, &factor);
	c->rope_scale = 1.0f / factor;
	return ret;
}

static int load_config(struct loader *ld)
{
	struct model_config *c = &ld->m->cfg;
	int ret;

	ret = conf_arch(ld);
	if (!ret)
		ret = conf_u32(ld, "context_length", 1, MODEL_MAX_CTX, &c->n_ctx);
	if (!ret)
		ret = conf_u32(ld, "embedding_length", 1, MODEL_MAX_EMBD, &c->n_embd);
	if (!ret)
		ret = conf_u32(ld, "block_count", 1, MODEL_MAX_LAYERS, &c->n_layer);
	if (!ret)
		ret = conf_u32(ld, "feed_forward_length", 1, MODEL_MAX_EMBD, &c->n_ff);
	if (!ret)
		ret = conf_f32(ld, "attention.layer_norm_rms_epsilon", 1e-12f, 1.0f, &c->rms_eps);
	if (!ret)
		ret = conf_heads(ld);
	if (!ret)
		ret = conf_rope(ld);
	return ret;
}

static const struct gguf_tensor *need_tensor(struct loader *ld, const char *name)
{
	const struct gguf_tensor *t = gguf_find_tensor(ld->g, name);

	if (!t)
		gguf_fail(
			ld->err, -EINVAL,
			"the model file lacks tensor '%s': it is incomplete, convert the model again",
			name);
	else
		ld->n_used++;
	return t;
}

/* A matrix n_in -> n_out; *n_out == 0 takes the size from the file. */
static int load_mat(struct loader *ld, const char *name, uint64_t n_in, uint64_t n_out,
		    struct model_mat *w)
{
	const struct gguf_tensor *t = need_tensor(ld, name);

	if (!t)
		return -EINVAL;
	if (!n_out && t->ne[1] <= INT32_MAX)
		n_out = t->ne[1];
	if (t->n_dims != 2 || t->ne[0] != n_in || t->ne[1] != n_out)
		return gguf_fail(
			ld->err, -EINVAL,
			"tensor '%s' is %llu x %llu but the metadata asks for %llu x %llu: the file is corrupt",
			name, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
			(unsigned long long)n_in, (unsigned long long)n_out);
	*w = (struct model_mat){
		.type = t->type,
		.n_out = n_out,
		.n_in = n_in,
		.row_bytes = gguf_row_bytes(t->type, n_in),
		.data = t->data,
	};
	ld->m->n_params += n_in * n_out;
	return 0;
}

static int load_vec(struct loader *ld, const char *name, uint64_t n, const float **v)
{
	const struct gguf_tensor *t = need_tensor(ld, name);

	if (!t)
		return -EINVAL;
	if (t->n_dims != 1 || t->ne[0] != n)
		return gguf_fail(
			ld->err, -EINVAL,
			"tensor '%s' has %llu elements in its first of %u dimensions but the metadata asks for a vector of %llu",
			name, (unsigned long long)t->ne[0], t->n_dims, (unsigned long long)n);
	if (t->type != GGUF_T_F32)
		return gguf_fail(ld->err, -EOPNOTSUPP,
				 "tensor '%s' is %s: Hawk needs vectors in F32", name,
				 gguf_type_name(t->type));
	*v = t->data;
	return 0;
}

/* The biases of Q, K and V. */
static int load_biases(struct loader *ld, uint32_t i)
{
	const struct model_config *c = &ld->m->cfg;
	struct model_layer *l = &ld->m->layers[i];
	const struct {
		const char *name;
		uint64_t n;
		const float **v;
	} vecs[] = {
		{ "attn_q", (uint64_t)c->n_head * c->head_dim, &l->bq },
		{ "attn_k", (uint64_t)c->n_head_kv * c->head_dim, &l->bk },
		{ "attn_v", (uint64_t)c->n_head_kv * c->head_dim, &l->bv },
	};
	char name[64];
	size_t j;
	int ret = 0;

	for (j = 0; j < sizeof(vecs) / sizeof(vecs[0]) && !ret; j++) {
		snprintf(name, sizeof(name), "blk.%u.%s.bias", i, vecs[j].name);
		ret = load_vec(ld, name, vecs[j].n, vecs[j].v);
	}
	return ret;
}

static int load_layer(struct loader *ld, uint32_t i)
{
	const struct model_config *c = &ld->m->cfg;
	struct model_layer *l = &ld->m->layers[i];
	uint64_t q = (uint64_t)c->n_head * c->head_dim;
	uint64_t kv = (uint64_t)c->n_head_kv * c->head_dim;
	const struct {
		const char *name;
		uint64_t n_in, n_out;
		struct model_mat *w;
	} mats[] = {
		{ "attn_q", c->n_embd, q, &l->wq },
		{ "attn_k", c->n_embd, kv, &l->wk },
		{ "attn_v", c->n_embd, kv, &l->wv },
		{ "attn_output", q, c->n_embd, &l->wo },
		{ "ffn_gate", c->n_embd, c->n_ff, &l->gate },
		{ "ffn_up", c->n_embd, c->n_ff, &l->up },
		{ "ffn_down", c->n_ff, c->n_embd, &l->down },
	};
	char name[64];
	size_t j;
	int ret;

	for (j = 0; j < sizeof(mats) / sizeof(mats[0]); j++) {
		snprintf(name, sizeof(name), "blk.%u.%s.weight", i, mats[j].name);
		ret = load_mat(ld, name, mats[j].n_in, mats[j].n_out, mats[j].w);
		if (ret)
			return ret;
	}
	snprintf(name, sizeof(name), "blk.%u.attn_norm.weight", i);
	ret = load_vec(ld, name, c->n_embd, &l->attn_norm);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "blk.%u.ffn_norm.weight", i);
	ret = load_vec(ld, name, c->n_embd, &l->ffn_norm);
	if (!ret && ld->arch->qkv_bias)
		ret = load_biases(ld, i);
	return ret;
}

static int load_rope_factors(struct loader *ld)
{
	struct model *m = ld->m;
	uint32_t i;
	int ret;

	if (!gguf_find_tensor(ld->g, "rope_freqs.weight"))
		return 0;
	ret = load_vec(ld, "rope_freqs.weight", m->cfg.rope_dim / 2, &m->rope_factors);
	if (ret)
		return ret;
	for (i = 0; i < m->cfg.rope_dim / 2; i++) {
		if (!isfinite(m->rope_factors[i]) || m->rope_factors[i] <= 0)
			return gguf_fail(
				ld->err, -EINVAL,
				"tensor 'rope_freqs.weight' holds a value that is not a positive number: the file is corrupt");
	}
	return 0;
}

static int load_weights(struct loader *ld)
{
	struct model *m = ld->m;
	uint32_t i;
	int ret;

	ret = load_mat(ld, "token_embd.weight", m->cfg.n_embd, 0, &m->tok_embd);
	if (ret)
		return ret;
	m->cfg.n_vocab = m->tok_embd.n_out;
	m->output = m->tok_embd;
	if (gguf_find_tensor(ld->g, "output.weight"))
		ret = load_mat(ld, "output.weight", m->cfg.n_embd, m->cfg.n_vocab, &m->output);
	if (!ret)
		ret = load_vec(ld, "output_norm.weight", m->cfg.n_embd, &m->out_norm);
	if (!ret)
		ret = load_rope_factors(ld);
	for (i = 0; i < m->cfg.n_layer && !ret; i++)
		ret = load_layer(ld, i);
	if (ret)
		return ret;
	if (ld->n_used != gguf_tensor_count(ld->g))
		return gguf_fail(
			ld->err, -EOPNOTSUPP,
			"the model file holds %u tensors beyond the %u of a %s network (biases, experts or adapters?): Hawk does not support them",
			gguf_tensor_count(ld->g) - ld->n_used, ld->n_used, ld->arch->name);
	return 0;
}

static void set_name(struct model *m, const struct gguf *g, const char *fallback)
{
	struct gguf_str s;
	size_t i;

	if (gguf_get_str(g, "general.name", &s) || !s.len)
		s = (struct gguf_str){ fallback, strlen(fallback) };
	for (i = 0; i < s.len && i < sizeof(m->name) - 1; i++)
		m->name[i] = (unsigned char)s.p[i] < 0x20 ? '?' : s.p[i];
}

/* The id covers everything that decides the numbers in a KV block. */
static void set_id(struct model *m, const struct gguf *g)
{
	crypto_generichash_state h;
	uint8_t id[MODEL_ID_BYTES];
	uint32_t i;

	crypto_generichash_init(&h, NULL, 0, sizeof(id));
	crypto_generichash_update(&h, (const uint8_t *)&m->cfg, sizeof(m->cfg));
	for (i = 0; i < gguf_tensor_count(g); i++) {
		const struct gguf_tensor *t = gguf_tensor_at(g, i);
		uint32_t type = t->type;

		crypto_generichash_update(&h, (const uint8_t *)t->name.p, t->name.len);
		crypto_generichash_update(&h, (const uint8_t *)&type, sizeof(type));
		crypto_generichash_update(&h, (const uint8_t *)t->ne, sizeof(t->ne));
		crypto_generichash_update(&h, t->data, t->nbytes);
	}
	crypto_generichash_final(&h, id, sizeof(id));
	sodium_bin2hex(m->id, sizeof(m->id), id, sizeof(id));
}

int model_from_gguf(struct gguf *g, const char *fallback_name, struct model **out,
		    char err[GGUF_ERR_LEN])
{
	struct model *m = calloc(1, sizeof(*m));
	struct loader ld = { .m = m, .g = g, .err = err };
	int ret;

	if (!m || sodium_init() < 0) {
		ret = gguf_fail(err, -ENOMEM, "no memory to load the model");
		goto err_free;
	}
	ret = load_config(&ld);
	if (ret)
		goto err_free;
	m->layers = calloc(m->cfg.n_layer, sizeof(*m->layers));
	if (!m->layers) {
		ret = gguf_fail(err, -ENOMEM, "no memory to load the model");
		goto err_free;
	}
	ret = load_weights(&ld);
	if (ret)
		goto err_free;
	set_name(m, g, fallback_name);
	set_id(m, g);
	m->gguf = g;
	*out = m;
	return 0;

err_free:
	model_free(m);
	return ret;
}

int model_load(const char *path, struct model **out, char err[GGUF_ERR_LEN])
{
	const char *slash = strrchr(path, '/');
	struct gguf *g;
	int ret;

	ret = gguf_open(path, &g, err);
	if (ret)
		return ret;
	ret = model_from_gguf(g, slash ? slash + 1 : path, out, err);
	if (ret)
		gguf_close(g);
	return ret;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	gguf_close(m->gguf);
	free(m->layers);
	free(m);
}
