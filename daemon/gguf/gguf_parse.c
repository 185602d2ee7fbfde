// SPDX-License-Identifier: MIT
/*
 * Parse and check a GGUF file. Layout (little endian):
 *
 *	"GGUF"  u32 version  u64 n_tensors  u64 n_kv
 *	n_kv      x { str key, u32 vtype, value }
 *	n_tensors x { str name, u32 n_dims, u64 ne[n_dims], u32 type, u64 offset }
 *	padding to general.alignment
 *	tensor data; offsets count from here
 *
 *	str   = u64 length, bytes
 *	array = u32 element vtype, u64 n, n values
 *
 * Every read goes through struct rd, which never moves past the end.
 */
#include "gguf/gguf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GGUF_MIN_KV_BYTES      13 /* empty key, type, one byte */
#define GGUF_MIN_TENSOR_BYTES  32 /* empty name, one dimension */
#define GGUF_DEFAULT_ALIGNMENT 32
#define GGUF_MAX_ALIGNMENT     (1u << 20)

struct rd {
	const uint8_t *base;
	size_t len;
	size_t pos; /* <= len */
	char *err;
};

static int rd_bytes(struct rd *r, void *dst, size_t n, const char *what)
{
	if (n > r->len - r->pos)
		return gguf_fail(
			r->err, -EINVAL,
			"the file ends inside %s (byte %zu of %zu): it is truncated or corrupt, fetch it again",
			what, r->pos, r->len);
	memcpy(dst, r->base + r->pos, n);
	r->pos += n;
	return 0;
}

static int rd_u32(struct rd *r, uint32_t *v, const char *what)
{
	*v = 0;
	return rd_bytes(r, v, sizeof(*v), what);
}

static int rd_u64(struct rd *r, uint64_t *v, const char *what)
{
	*v = 0;
	return rd_bytes(r, v, sizeof(*v), what);
}

static int rd_str(struct rd *r, struct gguf_str *s, uint64_t max, const char *what)
{
	uint64_t n;
	int ret;

	ret = rd_u64(r, &n, what);
	if (ret)
		return ret;
	if (n > max || n > r->len - r->pos)
		return gguf_fail(
			r->err, -EINVAL,
			"%s at byte %zu claims %llu bytes: the file is truncated or corrupt, fetch it again",
			what, r->pos - 8, (unsigned long long)n);
	s->p = (const char *)r->base + r->pos;
	s->len = n;
	r->pos += n;
	return 0;
}

static int rd_array(struct rd *r, struct gguf_kv *kv)
{
	struct gguf_str s;
	uint32_t type;
	uint64_t n = 0, i;
	size_t elem;
	int ret;

	ret = rd_u32(r, &type, "an array");
	if (!ret)
		ret = rd_u64(r, &n, "an array");
	if (ret)
		return ret;
	elem = gguf_scalar_bytes(type);
	if (!elem && type != GGUF_STR)
		return gguf_fail(
			r->err, -EOPNOTSUPP,
			"key '%s' is an array of type %u: nested arrays and unknown types are not supported",
			gguf_printable(kv->key).s, type);
	if (n > GGUF_MAX_ARRAY)
		return gguf_fail(
			r->err, -E2BIG,
			"key '%s' is an array of %llu elements, more than the %u Hawk accepts",
			gguf_printable(kv->key).s, (unsigned long long)n, GGUF_MAX_ARRAY);
	kv->arr = (struct gguf_arr){ type, n, r->base + r->pos };
	for (i = 0; type == GGUF_STR && i < n; i++) {
		ret = rd_str(r, &s, r->len, "a string of an array");
		if (ret)
			return ret;
	}
	if (n * elem > r->len - r->pos)
		return gguf_fail(
			r->err, -EINVAL,
			"the array of key '%s' runs past the end of the file: it is truncated or corrupt, fetch it again",
			gguf_printable(kv->key).s);
	r->pos += n * elem;
	return 0;
}

static int rd_value(struct rd *r, struct gguf_kv *kv)
{
	size_t bytes = gguf_scalar_bytes(kv->type);
	uint8_t tmp[8];
	int ret;

	if (kv->type == GGUF_STR)
		return rd_str(r, &kv->str, r->len, "a string value");
	if (kv->type == GGUF_ARR)
		return rd_array(r, kv);
	if (!bytes)
		return gguf_fail(
			r->err, -EINVAL,
			"key '%s' has unknown value type %u: the file is corrupt or newer than GGUF 3",
			gguf_printable(kv->key).s, (unsigned int)kv->type);
	kv->val = r->base + r->pos;
	ret = rd_bytes(r, tmp, bytes, "a value");
	if (ret)
		return ret;
	if (kv->type == GGUF_BOOL && tmp[0] > 1)
		return gguf_fail(r->err, -EINVAL,
				 "key '%s' is a boolean with value %u: the file is corrupt",
				 gguf_printable(kv->key).s, tmp[0]);
	return 0;
}

static int parse_kv(struct gguf *g, struct rd *r)
{
	uint32_t i, type = 0;
	int ret;

	for (i = 0; i < g->n_kv; i++) {
		struct gguf_kv *kv = &g->kv[i];

		ret = rd_str(r, &kv->key, GGUF_MAX_KEY_LEN, "a metadata key");
		if (!ret)
			ret = rd_u32(r, &type, "a value type");
		if (ret)
			return ret;
		kv->type = type;
		ret = rd_value(r, kv);
		if (ret)
			return ret;
		if (strmap_add(&g->kv_map, kv->key, i) != STRMAP_NONE)
			return gguf_fail(r->err, -EINVAL,
					 "key '%s' appears twice: the file is corrupt",
					 gguf_printable(kv->key).s);
	}
	return 0;
}

/* Number of elements and bytes of a tensor, refusing what overflows. */
static int tensor_size(struct rd *r, struct gguf_tensor *t)
{
	struct gguf_printable name = gguf_printable(t->name);
	uint64_t n = 1;
	uint32_t d;

	for (d = 0; d < t->n_dims; d++) {
		if (!t->ne[d])
			return gguf_fail(
				r->err, -EINVAL,
				"tensor '%s' has dimension %u of size 0: the file is corrupt",
				name.s, d);
		/* 2^56 elements are beyond any file; products stay in 64 bits */
		if (__builtin_mul_overflow(n, t->ne[d], &n) || n >> 56)
			return gguf_fail(r->err, -EINVAL,
					 "the size of tensor '%s' overflows: the file is corrupt",
					 name.s);
	}
	if (t->type == GGUF_T_Q8_0 && t->ne[0] % GGUF_Q8_0_ELEMS)
		return gguf_fail(
			r->err, -EINVAL,
			"tensor '%s' is Q8_0 with rows of %llu elements, not a multiple of 32: the file is corrupt",
			name.s, (unsigned long long)t->ne[0]);
	t->nbytes = gguf_row_bytes(t->type, n);
	return 0;
}

static int rd_tensor(struct rd *r, struct gguf_tensor *t, uint64_t *offset)
{
	uint32_t d, type = 0;
	int ret;

	ret = rd_str(r, &t->name, GGUF_MAX_NAME_LEN, "a tensor name");
	if (!ret)
		ret = rd_u32(r, &t->n_dims, "a tensor description");
	if (ret)
		return ret;
	if (!t->n_dims || t->n_dims > GGUF_MAX_DIMS)
		return gguf_fail(
			r->err, -EINVAL,
			"tensor '%s' has %u dimensions (1 to 4 allowed): the file is corrupt",
			gguf_printable(t->name).s, t->n_dims);
	for (d = 0; d < GGUF_MAX_DIMS; d++)
		t->ne[d] = 1;
	for (d = 0; d < t->n_dims && !ret; d++)
		ret = rd_u64(r, &t->ne[d], "a tensor description");
	if (!ret)
		ret = rd_u32(r, &type, "a tensor description");
	if (!ret)
		ret = rd_u64(r, offset, "a tensor description");
	if (ret)
		return ret;
	t->type = type;
	if (!gguf_type_name(t->type))
		return gguf_fail(
			r->err, -EOPNOTSUPP,
			"tensor '%s' has type %u: Hawk computes F32, F16, BF16 and Q8_0, convert the model to one of them",
			gguf_printable(t->name).s, type);
	return tensor_size(r, t);
}

/*
 * The data section begins after the last description, so offsets are checked
 * in a second pass; until then t->data holds the offset.
 */
static int parse_tensors(struct gguf *g, struct rd *r)
{
	uint64_t offset = 0;
	uint32_t i;
	int ret;

	for (i = 0; i < g->n_tensors; i++) {
		struct gguf_tensor *t = &g->tensors[i];

		ret = rd_tensor(r, t, &offset);
		if (ret)
			return ret;
		if (offset % g->alignment)
			return gguf_fail(
				r->err, -EINVAL,
				"tensor '%s' starts at offset %llu, not a multiple of %u: the file is corrupt",
				gguf_printable(t->name).s, (unsigned long long)offset,
				g->alignment);
		t->data = (const void *)(uintptr_t)offset;
		if (strmap_add(&g->tensor_map, t->name, i) != STRMAP_NONE)
			return gguf_fail(r->err, -EINVAL,
					 "tensor '%s' appears twice: the file is corrupt",
					 gguf_printable(t->name).s);
	}
	return 0;
}

static int place_tensors(struct gguf *g, struct rd *r)
{
	size_t start, room, offset;
	uint32_t i;

	start = (r->pos + g->alignment - 1) & ~((size_t)g->alignment - 1);
	room = start < r->len ? r->len - start : 0;
	for (i = 0; i < g->n_tensors; i++) {
		struct gguf_tensor *t = &g->tensors[i];

		offset = (uintptr_t)t->data;
		if (offset > room || t->nbytes > room - offset)
			return gguf_fail(
				r->err, -EINVAL,
				"tensor '%s' needs %zu bytes at %zu but the data section has %zu: the file is truncated or corrupt, fetch it again",
				gguf_printable(t->name).s, t->nbytes, offset, room);
		t->data = g->base + start + offset;
	}
	return 0;
}

static int check_version(struct rd *r, uint32_t *version)
{
	char magic[4];
	int ret;

	ret = rd_bytes(r, magic, sizeof(magic), "the header");
	if (ret)
		return ret;
	if (memcmp(magic, "GGUF", 4))
		return gguf_fail(r->err, -EINVAL,
				 "not a GGUF file: it does not begin with \"GGUF\"");
	ret = rd_u32(r, version, "the header");
	if (ret)
		return ret;
	if (*version && !(*version & 0xffff))
		return gguf_fail(
			r->err, -EOPNOTSUPP,
			"big-endian GGUF is not supported: convert the file to little endian");
	if (*version != 2 && *version != 3)
		return gguf_fail(
			r->err, -EOPNOTSUPP,
			"GGUF version %u is not supported (2 and 3 are): convert the model again",
			*version);
	return 0;
}

static int parse_header(struct gguf *g, struct rd *r)
{
	uint64_t n_tensors = 0, n_kv = 0;
	int ret;

	ret = check_version(r, &g->version);
	if (!ret)
		ret = rd_u64(r, &n_tensors, "the header");
	if (!ret)
		ret = rd_u64(r, &n_kv, "the header");
	if (ret)
		return ret;
	if (n_kv > GGUF_MAX_KV || n_tensors > GGUF_MAX_TENSORS)
		return gguf_fail(
			r->err, -E2BIG,
			"the header claims %llu keys and %llu tensors (at most %u and %u): the file is corrupt",
			(unsigned long long)n_kv, (unsigned long long)n_tensors, GGUF_MAX_KV,
			GGUF_MAX_TENSORS);
	if (n_kv * GGUF_MIN_KV_BYTES + n_tensors * GGUF_MIN_TENSOR_BYTES > r->len - r->pos)
		return gguf_fail(
			r->err, -EINVAL,
			"the header claims %llu keys and %llu tensors, which cannot fit in %zu bytes: the file is truncated or corrupt, fetch it again",
			(unsigned long long)n_kv, (unsigned long long)n_tensors, r->len);
	g->n_kv = n_kv;
	g->n_tensors = n_tensors;
	return 0;
}

static int read_alignment(struct gguf *g, char *err)
{
	int ret;

	g->alignment = GGUF_DEFAULT_ALIGNMENT;
	ret = gguf_get_u32(g, "general.alignment", &g->alignment);
	if (ret == -EINVAL || g->alignment < 8 || g->alignment > GGUF_MAX_ALIGNMENT ||
	    (g->alignment & (g->alignment - 1)))
		return gguf_fail(
			err, -EINVAL,
			"general.alignment must be a power of two from 8 to %u: the file is corrupt",
			GGUF_MAX_ALIGNMENT);
	return 0;
}

static int cmp_tensor_data(const void *a, const void *b)
{
	const uint8_t *pa = (*(const struct gguf_tensor *const *)a)->data;
	const uint8_t *pb = (*(const struct gguf_tensor *const *)b)->data;

	return pa < pb ? -1 : pa > pb;
}

/*
 * Tensors that share bytes would let a small file describe a model of any
 * size, so that later work is no longer bounded by the size of the file.
 */
static int check_overlap(const struct gguf *g, char *err)
{
	const struct gguf_tensor **order, *a, *b;
	uint32_t i;
	int ret = 0;

	order = malloc((g->n_tensors + 1) * sizeof(*order));
	if (!order)
		return gguf_fail(err, -ENOMEM, "no memory to read the model");
	for (i = 0; i < g->n_tensors; i++)
		order[i] = &g->tensors[i];
	qsort(order, g->n_tensors, sizeof(*order), cmp_tensor_data);
	for (i = 1; i < g->n_tensors && !ret; i++) {
		a = order[i - 1];
		b = order[i];
		if ((const uint8_t *)a->data + a->nbytes > (const uint8_t *)b->data)
			ret = gguf_fail(err, -EINVAL,
					"tensors '%s' and '%s' overlap: the file is corrupt",
					gguf_printable(a->name).s, gguf_printable(b->name).s);
	}
	free(order);
	return ret;
}

int gguf_parse_all(struct gguf *g, char err[GGUF_ERR_LEN])
{
	struct rd r = { .base = g->base, .len = g->len, .err = err };
	int ret;

	ret = parse_header(g, &r);
	if (ret)
		return ret;
	g->kv = calloc(g->n_kv + 1, sizeof(*g->kv));
	g->tensors = calloc(g->n_tensors + 1, sizeof(*g->tensors));
	if (!g->kv || !g->tensors || strmap_init(&g->kv_map, g->n_kv) ||
	    strmap_init(&g->tensor_map, g->n_tensors))
		return gguf_fail(err, -ENOMEM, "no memory to read the model");
	ret = parse_kv(g, &r);
	if (!ret)
		ret = read_alignment(g, err);
	if (!ret)
		ret = parse_tensors(g, &r);
	if (!ret)
		ret = place_tensors(g, &r);
	if (!ret)
		ret = check_overlap(g, err);
	return ret;
}
