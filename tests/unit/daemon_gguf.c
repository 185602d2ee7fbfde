// SPDX-License-Identifier: MIT
/*
 * Model files that are truncated, corrupt or hostile: each is refused with the
 * right errno and a message that names the cause, and none reads outside the
 * file (run under ASan to see that).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon_fixture.h"

static const struct fx_model tiny = {
	.n_vocab = 40,
	.n_ctx = 64,
	.n_embd = 32,
	.n_layer = 2,
	.n_head = 4,
	.n_head_kv = 2,
	.head_dim = 8,
	.n_ff = 64,
	.rope_dim = 8,
	.type = GGUF_T_Q8_0,
	.seed = 7,
};

/* Parse an exact-size copy, so that ASan sees any read beyond the end. */
static int try_parse(const uint8_t *p, size_t len, struct gguf **g, char *err)
{
	uint8_t *copy = malloc(len ? len : 1);
	int ret;

	assert_non_null(copy);
	memcpy(copy, p, len);
	err[0] = '\0';
	ret = gguf_parse(copy, len, g, err);
	if (ret)
		free(copy);
	return ret;
}

static void expect_refused(const uint8_t *p, size_t len, int code, const char *word)
{
	char err[GGUF_ERR_LEN];
	struct gguf *g;
	int ret = try_parse(p, len, &g, err);

	if (ret != code || !strstr(err, word))
		fail_msg("got %d '%s', wanted %d '%s'", ret, err, code, word);
}

static uint8_t *tiny_file(size_t *len)
{
	struct fx_file f = { 0 };
	uint8_t *p;

	fx_model_add(&f, &tiny);
	p = fx_finish(&f, len);
	fx_free(&f);
	return p;
}

static void test_good_file(void **state)
{
	const struct gguf_tensor *t;
	struct gguf_str s;
	char err[GGUF_ERR_LEN];
	struct gguf *g;
	uint32_t u;
	size_t len;
	uint8_t *p = tiny_file(&len);

	(void)state;
	assert_int_equal(gguf_parse(p, len, &g, err), 0);
	assert_int_equal(gguf_get_u32(g, "llama.block_count", &u), 0);
	assert_int_equal(u, 2);
	assert_int_equal(gguf_get_u32(g, "no.such.key", &u), -ENOENT);
	assert_int_equal(gguf_get_u32(g, "general.architecture", &u), -EINVAL);
	assert_int_equal(gguf_get_str(g, "general.architecture", &s), 0);
	assert_true(gguf_str_eq(s, "llama"));
	t = gguf_find_tensor(g, "blk.1.ffn_down.weight");
	assert_non_null(t);
	assert_int_equal(t->ne[0], 64);
	assert_int_equal(t->ne[1], 32);
	assert_int_equal(t->nbytes, 64 * 32 / 32 * 34);
	assert_null(gguf_find_tensor(g, "blk.2.ffn_down.weight"));
	gguf_close(g);
	free(p);
}

/* Every prefix of a file is refused. */
static void test_truncated(void **state)
{
	char err[GGUF_ERR_LEN];
	struct gguf *g;
	size_t len, n;
	uint8_t *p = tiny_file(&len);

	(void)state;
	for (n = 0; n < len; n += n < 4096 ? 1 : 997) {
		assert_int_equal(try_parse(p, n, &g, err), -EINVAL);
		assert_true(strlen(err) > 10);
	}
	free(p);
}

/* Any byte of the description may be wrong: refuse or accept, never crash. */
static void test_corrupt_bytes(void **state)
{
	const uint32_t seed = 20240611;
	uint32_t rnd = seed, i;
	char err[GGUF_ERR_LEN];
	struct gguf *g;
	size_t len, at;
	uint8_t *p = tiny_file(&len), *bad = malloc(len);

	(void)state;
	print_message("# seed %u\n", seed);
	assert_non_null(bad);
	for (i = 0; i < 20000; i++) {
		uint32_t n = 1 + fx_rand(&rnd) % 4;
		struct model *m;

		memcpy(bad, p, len);
		while (n--) {
			at = fx_rand(&rnd) % 2600;
			bad[at] = fx_rand(&rnd) % 3 ? fx_rand(&rnd) : 0xff;
		}
		if (gguf_parse(bad, len, &g, err))
			continue;
		if (model_from_gguf(g, "x", &m, err))
			gguf_close(g);
		else
			model_free(m);
	}
	free(bad);
	free(p);
}

static void test_header(void **state)
{
	const uint64_t huge = UINT64_MAX, many = 60000;
	const uint32_t v1 = 1, v4 = 4, be = 3u << 24;
	size_t len;
	uint8_t *p = tiny_file(&len);

	(void)state;
	p[0] = 'X';
	expect_refused(p, len, -EINVAL, "not a GGUF file");
	p[0] = 'G';
	memcpy(p + 4, &v1, 4);
	expect_refused(p, len, -EOPNOTSUPP, "version 1");
	memcpy(p + 4, &v4, 4);
	expect_refused(p, len, -EOPNOTSUPP, "version 4");
	memcpy(p + 4, &be, 4);
	expect_refused(p, len, -EOPNOTSUPP, "big-endian");
	free(p);

	p = tiny_file(&len);
	memcpy(p + 8, &huge, 8);
	expect_refused(p, len, -E2BIG, "tensors");
	memcpy(p + 8, &many, 8);
	expect_refused(p, len, -EINVAL, "cannot fit");
	free(p);

	p = tiny_file(&len);
	memcpy(p + 16, &huge, 8);
	expect_refused(p, len, -E2BIG, "keys");
	free(p);
	expect_refused((const uint8_t *)"", 0, -EINVAL, "header");
}

/* One key-value pair of raw bytes after a good start. */
static void expect_kv(uint32_t type, const void *value, size_t n, int code, const char *word)
{
	struct fx_file f = { 0 };
	size_t len;
	uint8_t *p;

	fx_kv_str(&f, "general.architecture", "llama");
	fx_kv_raw(&f, "bad", type, value, n);
	p = fx_finish(&f, &len);
	expect_refused(p, len, code, word);
	free(p);
	fx_free(&f);
}

static void test_values(void **state)
{
	struct fx_buf b = { 0 };
	uint8_t two = 2;

	(void)state;
	expect_kv(13, "abcdefgh", 8, -EINVAL, "unknown value type 13");
	expect_kv(UINT32_MAX, "abcdefgh", 8, -EINVAL, "unknown value type");
	expect_kv(GGUF_BOOL, &two, 1, -EINVAL, "boolean");
	expect_kv(GGUF_U64, "abc", 3, -EINVAL, "ends inside");

	fx_put_u64(&b, UINT64_MAX); /* a string of 2^64-1 bytes */
	expect_kv(GGUF_STR, b.p, b.n, -EINVAL, "claims 18446744073709551615");
	b.n = 0;
	fx_put_u32(&b, GGUF_ARR); /* an array of arrays */
	fx_put_u64(&b, 1);
	expect_kv(GGUF_ARR, b.p, b.n, -EOPNOTSUPP, "nested");
	b.n = 0;
	fx_put_u32(&b, GGUF_U64); /* elements that overflow */
	fx_put_u64(&b, UINT64_MAX / 8 + 2);
	expect_kv(GGUF_ARR, b.p, b.n, -E2BIG, "array of");
	b.n = 0;
	fx_put_u32(&b, GGUF_U64); /* more than the file holds */
	fx_put_u64(&b, 1000000);
	expect_kv(GGUF_ARR, b.p, b.n, -EINVAL, "past the end");
	b.n = 0;
	fx_put_u32(&b, GGUF_STR);
	fx_put_u64(&b, 1000000);
	expect_kv(GGUF_ARR, b.p, b.n, -EINVAL, "ends inside");
	free(b.p);
}

static void test_keys(void **state)
{
	struct fx_file f = { 0 };
	char key[2000];
	size_t len;
	uint8_t *p;

	(void)state;
	fx_kv_u32(&f, "same", 1);
	fx_kv_u32(&f, "same", 2);
	p = fx_finish(&f, &len);
	expect_refused(p, len, -EINVAL, "key 'same' appears twice");
	free(p);
	fx_free(&f);

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	fx_kv_u32(&f, key, 1);
	p = fx_finish(&f, &len);
	expect_refused(p, len, -EINVAL, "metadata key");
	free(p);
	fx_free(&f);

	fx_kv_u32(&f, "general.alignment", 24);
	p = fx_finish(&f, &len);
	expect_refused(p, len, -EINVAL, "power of two");
	free(p);
	fx_free(&f);

	/* bytes of the file must not reach a terminal unchanged */
	fx_kv_u32(&f, "\033[2Jx", 1);
	fx_kv_u32(&f, "\033[2Jx", 1);
	p = fx_finish(&f, &len);
	expect_refused(p, len, -EINVAL, "key '?[2Jx'");
	free(p);
	fx_free(&f);
}

/* A file with one tensor description of raw fields and @room bytes of data. */
static void expect_tensor(uint32_t n_dims, const uint64_t *ne, uint32_t type, uint64_t offset,
			  size_t room, int code, const char *word)
{
	struct fx_buf b = { 0 };
	uint32_t d;

	fx_put(&b, "GGUF", 4);
	fx_put_u32(&b, 3);
	fx_put_u64(&b, 1);
	fx_put_u64(&b, 0);
	fx_put_str(&b, "weight");
	fx_put_u32(&b, n_dims);
	for (d = 0; d < n_dims && d < 8; d++)
		fx_put_u64(&b, ne[d]);
	fx_put_u32(&b, type);
	fx_put_u64(&b, offset);
	while (b.n % 32)
		fx_put(&b, "", 1);
	while (room--)
		fx_put(&b, "", 1);
	expect_refused(b.p, b.n, code, word);
	free(b.p);
}

static void test_tensors(void **state)
{
	const uint64_t ok[] = { 32, 2, 1, 1, 1, 1, 1, 1 };
	const uint64_t zero[] = { 32, 0 };
	const uint64_t wrap[] = { 1ull << 32, 1ull << 32 };
	const uint64_t wrap4[] = { 65536, 65536, 65536, 65537 };
	const uint64_t odd[] = { 33, 2 };
	const uint64_t big[] = { 1ull << 55, 1 };

	(void)state;
	expect_tensor(0, ok, 0, 0, 4096, -EINVAL, "0 dimensions");
	expect_tensor(5, ok, 0, 0, 4096, -EINVAL, "5 dimensions");
	expect_tensor(UINT32_MAX, ok, 0, 0, 4096, -EINVAL, "dimensions");
	expect_tensor(2, zero, 0, 0, 4096, -EINVAL, "size 0");
	expect_tensor(2, wrap, 0, 0, 4096, -EINVAL, "overflows");
	expect_tensor(4, wrap4, 0, 0, 4096, -EINVAL, "overflows");
	expect_tensor(2, big, 0, 0, 4096, -EINVAL, "data section");
	expect_tensor(2, ok, 12, 0, 4096, -EOPNOTSUPP, "type 12");
	expect_tensor(2, ok, 4000000000u, 0, 4096, -EOPNOTSUPP, "type");
	expect_tensor(2, odd, GGUF_T_Q8_0, 0, 4096, -EINVAL, "multiple of 32");
	expect_tensor(2, ok, 0, 16, 4096, -EINVAL, "not a multiple");
	expect_tensor(2, ok, 0, 1ull << 40, 4096, -EINVAL, "data section");
	expect_tensor(2, ok, 0, UINT64_MAX - 31, 4096, -EINVAL, "data section");
	expect_tensor(2, ok, 0, 0, 128, -EINVAL, "data section");
}

static void test_tensor_pairs(void **state)
{
	const uint64_t ne[] = { 32, 2 };
	float v[64] = { 0 };
	struct fx_file f = { 0 };
	size_t len, at;
	uint8_t *p;

	(void)state;
	fx_tensor(&f, "a", GGUF_T_F32, 2, ne, v);
	fx_tensor(&f, "a", GGUF_T_F32, 2, ne, v);
	p = fx_finish(&f, &len);
	expect_refused(p, len, -EINVAL, "tensor 'a' appears twice");
	free(p);
	fx_free(&f);

	fx_tensor(&f, "a", GGUF_T_F32, 2, ne, v);
	fx_tensor(&f, "b", GGUF_T_F32, 2, ne, v);
	p = fx_finish(&f, &len);
	/* the offset of "b": last 8 bytes of the second description */
	at = 24 + 2 * (8 + 1 + 4 + 16 + 4 + 8) - 8;
	assert_int_equal(p[at], 0);
	assert_int_equal(p[at + 1], 1);
	p[at + 1] = 0;
	p[at] = 32;
	expect_refused(p, len, -EINVAL, "overlap");
	free(p);
	fx_free(&f);
}

static void test_not_files(void **state)
{
	char err[GGUF_ERR_LEN], path[] = "/tmp/daemon-gguf-XXXXXX";
	struct gguf *g;
	int fd;

	(void)state;
	assert_int_equal(gguf_open("/nonexistent.gguf", &g, err), -ENOENT);
	assert_non_null(strstr(err, "No such file"));
	assert_int_equal(gguf_open("/dev/null", &g, err), -EINVAL);
	assert_non_null(strstr(err, "regular"));
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(gguf_open(path, &g, err), -EINVAL);
	assert_non_null(strstr(err, "empty"));
	close(fd);
	unlink(path);
}

/* Build a model file, let @edit change it, and see model_from_gguf() refuse. */
static void expect_model(void (*edit)(struct fx_file *f), int code, const char *word)
{
	struct fx_file f = { 0 };
	char err[GGUF_ERR_LEN] = "";
	struct model *m;
	struct gguf *g;
	size_t len;
	uint8_t *p;
	int ret;

	fx_model_add(&f, &tiny);
	edit(&f);
	p = fx_finish(&f, &len);
	assert_int_equal(gguf_parse(p, len, &g, err), 0);
	ret = model_from_gguf(g, "x", &m, err);
	if (ret != code || !strstr(err, word))
		fail_msg("got %d '%s', wanted %d '%s'", ret, err, code, word);
	gguf_close(g);
	free(p);
	fx_free(&f);
}

/* Rename a key or tensor in place to one of the same length. */
static void rename_in(uint8_t *p, size_t n, const char *from, const char *to)
{
	uint8_t *at = memmem(p, n, from, strlen(from));

	assert_non_null(at);
	memcpy(at, to, strlen(to));
}

static void edit_arch(struct fx_file *f)
{
	rename_in(f->kv.p, f->kv.n, "llama", "gemma");
}

static void edit_no_layers(struct fx_file *f)
{
	rename_in(f->kv.p, f->kv.n, "llama.block_count", "llama.block_cound");
}

/* Overwrite the u32 value of a key. */
static void set_u32(struct fx_file *f, const char *key, uint32_t v)
{
	uint8_t *at = memmem(f->kv.p, f->kv.n, key, strlen(key));

	assert_non_null(at);
	memcpy(at + strlen(key) + 4, &v, 4);
}

static void edit_zero_embd(struct fx_file *f)
{
	set_u32(f, "llama.embedding_length", 0);
}

static void edit_heads(struct fx_file *f)
{
	set_u32(f, "llama.attention.head_count_kv", 3);
}

static void edit_many_layers(struct fx_file *f)
{
	set_u32(f, "llama.block_count", UINT32_MAX);
}

static void edit_more_layers(struct fx_file *f)
{
	set_u32(f, "llama.block_count", 3);
}

static void edit_fewer_layers(struct fx_file *f)
{
	set_u32(f, "llama.block_count", 1);
}

static void edit_ff(struct fx_file *f)
{
	set_u32(f, "llama.feed_forward_length", 96);
}

static void edit_rope(struct fx_file *f)
{
	set_u32(f, "llama.rope.dimension_count", 10);
}

static void edit_eps_nan(struct fx_file *f)
{
	set_u32(f, "llama.attention.layer_norm_rms_epsilon", 0x7fc00000);
}

static void edit_key_type(struct fx_file *f)
{
	fx_kv_str(f, "llama.expert_used_count", "?");
	rename_in(f->kv.p, f->kv.n, "llama.block_count", "llama.block_cound");
	fx_kv_str(f, "llama.block_count", "two");
}

static void edit_experts(struct fx_file *f)
{
	fx_kv_u32(f, "llama.expert_count", 8);
}

static void edit_yarn(struct fx_file *f)
{
	fx_kv_str(f, "llama.rope.scaling.type", "yarn");
}

static void edit_bias(struct fx_file *f)
{
	const uint64_t ne = 32;
	float v[32] = { 0 };

	fx_tensor(f, "blk.0.attn_q.bias", GGUF_T_F32, 1, &ne, v);
}

static void edit_qwen2(struct fx_file *f)
{
	struct fx_model q = tiny;

	q.qwen2 = true;
	fx_free(f);
	fx_model_add(f, &q);
}

static void edit_qwen2_bias(struct fx_file *f)
{
	uint32_t i;

	edit_qwen2(f);
	for (i = 0; strcmp(f->tensors[i].name, "blk.1.attn_k.bias"); i++)
		;
	f->tensors[i].name[0] = 'x';
}

static void edit_norm_type(struct fx_file *f)
{
	struct fx_tensor *t = &f->tensors[2];

	assert_string_equal(t->name, "output_norm.weight");
	t->type = GGUF_T_F16;
	t->nbytes = 64;
}

static void test_models(void **state)
{
	(void)state;
	expect_model(edit_arch, -EOPNOTSUPP, "architecture is 'gemma'");
	expect_model(edit_no_layers, -EINVAL, "lacks key 'llama.block_count'");
	expect_model(edit_zero_embd, -EINVAL, "embedding_length");
	expect_model(edit_heads, -EINVAL, "share 3 key/value heads");
	expect_model(edit_many_layers, -EINVAL, "outside 1 to 1024");
	expect_model(edit_more_layers, -EINVAL, "lacks tensor 'blk.2.");
	expect_model(edit_fewer_layers, -EOPNOTSUPP, "9 tensors beyond");
	expect_model(edit_ff, -EINVAL, "32 x 64 but the metadata asks for 32 x 96");
	expect_model(edit_rope, -EINVAL, "rope.dimension_count");
	expect_model(edit_eps_nan, -EINVAL, "epsilon");
	expect_model(edit_key_type, -EINVAL, "not a single whole number");
	expect_model(edit_experts, -EOPNOTSUPP, "mixture of 8 experts");
	expect_model(edit_yarn, -EOPNOTSUPP, "'yarn'");
	expect_model(edit_bias, -EOPNOTSUPP, "1 tensors beyond");
	expect_model(edit_qwen2_bias, -EINVAL, "lacks tensor 'blk.1.attn_k.bias'");
	expect_model(edit_norm_type, -EOPNOTSUPP, "vectors in F32");
}

/* What the architecture decides. */
static void test_archs(void **state)
{
	char err[GGUF_ERR_LEN];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct fx_file f = { 0 };
		struct model *m;
		struct gguf *g;
		size_t len;
		uint8_t *p;

		fx_model_add(&f, &tiny);
		if (i)
			edit_qwen2(&f);
		p = fx_finish(&f, &len);
		assert_int_equal(gguf_parse(p, len, &g, err), 0);
		assert_int_equal(model_from_gguf(g, "x", &m, err), 0);
		assert_int_equal(m->cfg.rope_pairs, i ? MODEL_ROPE_HALVES : MODEL_ROPE_PAIRS);
		assert_int_equal(m->layers[1].bq && m->layers[1].bk && m->layers[1].bv, i);
		model_free(m);
		free(p);
		fx_free(&f);
	}
}

/* The id must tell apart models whose KV must not be mixed up. */
static void test_model_id(void **state)
{
	char err[GGUF_ERR_LEN], first[33] = "";
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct fx_file f = { 0 };
		struct model *m;
		struct gguf *g;
		size_t len;
		uint8_t *p;

		fx_model_add(&f, &tiny);
		if (i == 2)
			f.tensors[f.n_tensors - 1].data[5] ^= 1;
		p = fx_finish(&f, &len);
		assert_int_equal(gguf_parse(p, len, &g, err), 0);
		assert_int_equal(model_from_gguf(g, "x", &m, err), 0);
		assert_int_equal(strlen(m->id), 32);
		if (i == 0)
			strcpy(first, m->id);
		assert_int_equal(strcmp(first, m->id) == 0, i < 2);
		model_free(m);
		free(p);
		fx_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_file),     cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_corrupt_bytes), cmocka_unit_test(test_header),
		cmocka_unit_test(test_values),	      cmocka_unit_test(test_keys),
		cmocka_unit_test(test_tensors),	      cmocka_unit_test(test_tensor_pairs),
		cmocka_unit_test(test_not_files),     cmocka_unit_test(test_models),
		cmocka_unit_test(test_archs),
		cmocka_unit_test(test_model_id),
	};

	return cmocka_run_group_tests_name("daemon_gguf", tests, NULL, NULL);
}
