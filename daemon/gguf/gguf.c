// SPDX-License-Identifier: MIT
/* Opening a GGUF file and looking things up in it. */
#include "gguf/gguf_priv.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "GGUF values are read in place, as little endian");

int gguf_fail(char err[GGUF_ERR_LEN], int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, GGUF_ERR_LEN, fmt, ap);
	va_end(ap);
	return code;
}

struct gguf_printable gguf_printable(struct gguf_str str)
{
	struct gguf_printable out;
	size_t i;

	for (i = 0; i < str.len && i < sizeof(out.s) - 1; i++)
		out.s[i] = isprint((unsigned char)str.p[i]) ? str.p[i] : '?';
	out.s[i] = '\0';
	return out;
}

size_t gguf_scalar_bytes(uint32_t vtype)
{
	static const uint8_t bytes[GGUF_VTYPE_COUNT] = {
		[GGUF_U8] = 1,	[GGUF_I8] = 1,	[GGUF_U16] = 2, [GGUF_I16] = 2,
		[GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
		[GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
	};

	return vtype < GGUF_VTYPE_COUNT ? bytes[vtype] : 0;
}

const char *gguf_type_name(enum gguf_type type)
{
	switch (type) {
	case GGUF_T_F32: return "F32";
	case GGUF_T_F16: return "F16";
	case GGUF_T_BF16: return "BF16";
	case GGUF_T_Q8_0: return "Q8_0";
	}
	return NULL;
}

size_t gguf_row_bytes(enum gguf_type type, uint64_t n)
{
	switch (type) {
	case GGUF_T_F32: return n * 4;
	case GGUF_T_F16:
	case GGUF_T_BF16: return n * 2;
	case GGUF_T_Q8_0: return n / GGUF_Q8_0_ELEMS * GGUF_Q8_0_BYTES;
	}
	return 0;
}

static int gguf_build(struct gguf tmpl, struct gguf **out, char *err)
{
	struct gguf *g = malloc(sizeof(*g));
	int ret;

	if (!g) {
		if (tmpl.mapped)
			munmap((void *)tmpl.base, tmpl.len);
		return gguf_fail(err, -ENOMEM, "no memory to read the model");
	}
	*g = tmpl;
	ret = gguf_parse_all(g, err);
	if (ret) {
		gguf_close(g);
		return ret;
	}
	*out = g;
	return 0;
}

int gguf_parse(const void *data, size_t len, struct gguf **out, char err[GGUF_ERR_LEN])
{
	return gguf_build((struct gguf){ .base = data, .len = len }, out, err);
}

int gguf_open(const char *path, struct gguf **out, char err[GGUF_ERR_LEN])
{
	struct stat st;
	void *base;
	int fd, ret;

	/* O_NONBLOCK: a FIFO must not hang us before fstat() refuses it. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		ret = -errno;
		return gguf_fail(err, ret, "cannot open the model: %s: '%s'", strerror(-ret), path);
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		ret = gguf_fail(err, -EINVAL, "the model is not a regular file: '%s'", path);
		goto out_close;
	}
	if (!st.st_size) {
		ret = gguf_fail(err, -EINVAL, "the model file is empty: '%s'", path);
		goto out_close;
	}
	base = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		ret = -errno;
		gguf_fail(err, ret, "cannot map the model: %s: '%s'", strerror(-ret), path);
		goto out_close;
	}
	ret = gguf_build((struct gguf){ .base = base, .len = st.st_size, .mapped = true }, out,
			 err);
out_close:
	close(fd);
	return ret;
}

void gguf_close(struct gguf *g)
{
	if (!g)
		return;
	strmap_free(&g->kv_map);
	strmap_free(&g->tensor_map);
	free(g->kv);
	free(g->tensors);
	if (g->mapped)
		munmap((void *)g->base, g->len);
	free(g);
}

uint32_t gguf_tensor_count(const struct gguf *g)
{
	return g->n_tensors;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, uint32_t i)
{
	return &g->tensors[i];
}

static struct gguf_str gguf_cstr(const char *s)
{
	return (struct gguf_str){ s, strlen(s) };
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
	uint32_t i = strmap_get(&g->tensor_map, gguf_cstr(name));

	return i == STRMAP_NONE ? NULL : &g->tensors[i];
}

static const struct gguf_kv *gguf_find_kv(const struct gguf *g, const char *key)
{
	uint32_t i = strmap_get(&g->kv_map, gguf_cstr(key));

	return i == STRMAP_NONE ? NULL : &g->kv[i];
}

int gguf_get_u32(const struct gguf *g, const char *key, uint32_t *out)
{
	const struct gguf_kv *kv = gguf_find_kv(g, key);
	uint64_t v = 0;
	size_t bytes;

	if (!kv)
		return -ENOENT;
	if (kv->type == GGUF_F32 || kv->type == GGUF_F64 || kv->type == GGUF_BOOL)
		return -EINVAL;
	bytes = gguf_scalar_bytes(kv->type);
	if (!bytes)
		return -EINVAL;
	memcpy(&v, kv->val, bytes);
	if ((kv->type == GGUF_I8 || kv->type == GGUF_I16 || kv->type == GGUF_I32 ||
	     kv->type == GGUF_I64) &&
	    v >> (bytes * 8 - 1))
		return -EINVAL; /* negative */
	if (v > UINT32_MAX)
		return -EINVAL;
	*out = v;
	return 0;
}

int gguf_get_f32(const struct gguf *g, const char *key, float *out)
{
	const struct gguf_kv *kv = gguf_find_kv(g, key);
	double d;

	if (!kv)
		return -ENOENT;
	if (kv->type == GGUF_F64) {
		memcpy(&d, kv->val, sizeof(d));
		*out = (float)d;
		return 0;
	}
	if (kv->type != GGUF_F32)
		return -EINVAL;
	memcpy(out, kv->val, sizeof(*out));
	return 0;
}

int gguf_get_bool(const struct gguf *g, const char *key, bool *out)
{
	const struct gguf_kv *kv = gguf_find_kv(g, key);

	if (!kv)
		return -ENOENT;
	if (kv->type != GGUF_BOOL)
		return -EINVAL;
	*out = kv->val[0];
	return 0;
}

int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out)
{
	const struct gguf_kv *kv = gguf_find_kv(g, key);

	if (!kv)
		return -ENOENT;
	if (kv->type != GGUF_STR)
		return -EINVAL;
	*out = kv->str;
	return 0;
}

int gguf_get_arr(const struct gguf *g, const char *key, struct gguf_arr *out)
{
	const struct gguf_kv *kv = gguf_find_kv(g, key);

	if (!kv)
		return -ENOENT;
	if (kv->type != GGUF_ARR)
		return -EINVAL;
	*out = kv->arr;
	return 0;
}

struct gguf_str gguf_arr_next_str(const uint8_t **pos)
{
	struct gguf_str s;
	uint64_t n;

	memcpy(&n, *pos, sizeof(n));
	s.p = (const char *)*pos + sizeof(n);
	s.len = n;
	*pos += sizeof(n) + n;
	return s;
}

bool gguf_str_eq(struct gguf_str a, const char *b)
{
	return a.len == strlen(b) && !memcmp(a.p, b, a.len);
}
