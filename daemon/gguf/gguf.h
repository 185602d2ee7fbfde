/* SPDX-License-Identifier: MIT */
/*
 * gguf.h - read-only view of a GGUF v2/v3 model file.
 *
 * The file is not trusted. Everything is checked once, in gguf_open() or
 * gguf_parse(); after that every pointer handed out lies inside the mapping
 * and every length has been verified. Memory use is bounded by the number of
 * keys and tensors, which are bounded themselves (GGUF_MAX_*).
 *
 * Strings in the file are not NUL-terminated and may hold any byte: they are
 * passed as struct gguf_str.
 */
#ifndef HAWK_GGUF_H
#define HAWK_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size in bytes of every error buffer passed to the loaders. */
#define GGUF_ERR_LEN 256

#define GGUF_MAX_KV	  65536u
#define GGUF_MAX_TENSORS  65536u
#define GGUF_MAX_DIMS	  4u
#define GGUF_MAX_KEY_LEN  1024u
#define GGUF_MAX_NAME_LEN 127u
/* Elements of one metadata array; the largest real ones are vocabularies. */
#define GGUF_MAX_ARRAY	  (16u << 20)

/** enum gguf_vtype - type tag of a metadata value, as stored in the file */
enum gguf_vtype {
	GGUF_U8,
	GGUF_I8,
	GGUF_U16,
	GGUF_I16,
	GGUF_U32,
	GGUF_I32,
	GGUF_F32,
	GGUF_BOOL,
	GGUF_STR,
	GGUF_ARR,
	GGUF_U64,
	GGUF_I64,
	GGUF_F64,
	GGUF_VTYPE_COUNT
};

/** enum gguf_type - tensor element types that Hawk can compute with */
enum gguf_type {
	GGUF_T_F32 = 0,
	GGUF_T_F16 = 1,
	GGUF_T_Q8_0 = 8, /* blocks of 32: one f16 scale, 32 int8 */
	GGUF_T_BF16 = 30,
};

#define GGUF_Q8_0_ELEMS 32u /* elements per Q8_0 block */
#define GGUF_Q8_0_BYTES 34u /* bytes per Q8_0 block */

struct gguf_str {
	const char *p; /* not NUL-terminated */
	size_t len;    /* bytes */
};

/**
 * struct gguf_arr - one metadata array
 * @type: element type, never GGUF_ARR (nested arrays are refused)
 * @n: number of elements
 * @p: first element in the file, unaligned. Strings are stored as a
 *     little-endian u64 length followed by the bytes; walk them with
 *     gguf_arr_next_str().
 */
struct gguf_arr {
	enum gguf_vtype type;
	uint64_t n;
	const uint8_t *p;
};

/**
 * struct gguf_tensor - one tensor of the file
 * @name: unique within the file
 * @type: element type
 * @n_dims: 1..4
 * @ne: elements per dimension, fastest varying first; 1 beyond @n_dims
 * @data: first byte, inside the mapping, aligned to general.alignment (>= 8)
 * @nbytes: size of the data in bytes
 */
struct gguf_tensor {
	struct gguf_str name;
	enum gguf_type type;
	uint32_t n_dims;
	uint64_t ne[GGUF_MAX_DIMS];
	const void *data;
	size_t nbytes;
};

struct gguf;

/**
 * gguf_open() - map a model file read-only and check all of it
 * @path: file name; must be a regular file
 * @out: set on success only
 * @err: on failure, one line naming the cause and what to do
 *
 * The file must not be truncated while it is open: reading a vanished page of
 * a mapping raises SIGBUS.
 *
 * Return: 0; -ENOENT, -EACCES... from open(2); -EINVAL malformed file;
 * -EOPNOTSUPP valid GGUF that needs something Hawk lacks (version, type);
 * -E2BIG a count beyond the limits above; -ENOMEM.
 */
int gguf_open(const char *path, struct gguf **out, char err[GGUF_ERR_LEN]);

/**
 * gguf_parse() - gguf_open() for bytes already in memory
 * @data: the file's bytes, 8-byte aligned; must outlive the object
 * @len: number of bytes
 */
int gguf_parse(const void *data, size_t len, struct gguf **out, char err[GGUF_ERR_LEN]);

/** gguf_close() - unmap and free; NULL is ignored */
void gguf_close(struct gguf *g);

/** gguf_tensor_count() - number of tensors in the file */
uint32_t gguf_tensor_count(const struct gguf *g);

/** gguf_tensor_at() - tensor by position, @i < gguf_tensor_count() */
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, uint32_t i);

/** gguf_find_tensor() - tensor by name, NULL when absent */
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);

/*
 * Typed look-up of a metadata value.
 * Return: 0 with *out set; -ENOENT key absent; -EINVAL other type or the value
 * does not fit. *out is untouched on failure, so a default may be stored first.
 */
int gguf_get_u32(const struct gguf *g, const char *key, uint32_t *out);
int gguf_get_f32(const struct gguf *g, const char *key, float *out);
int gguf_get_bool(const struct gguf *g, const char *key, bool *out);
int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out);
int gguf_get_arr(const struct gguf *g, const char *key, struct gguf_arr *out);

/**
 * gguf_arr_next_str() - walk an array of strings
 * @pos: cursor, start with arr->p; advanced past the string returned
 *
 * Call at most arr->n times on an array whose type is GGUF_STR.
 */
struct gguf_str gguf_arr_next_str(const uint8_t **pos);

/** gguf_str_eq() - compare with a C string */
bool gguf_str_eq(struct gguf_str a, const char *b);

/** gguf_row_bytes() - bytes of @n consecutive elements of @type; for Q8_0 @n
 * must be a multiple of 32
 */
size_t gguf_row_bytes(enum gguf_type type, uint64_t n);

/** gguf_type_name() - "F32", "Q8_0", ... for messages; NULL for other types */
const char *gguf_type_name(enum gguf_type type);

/**
 * gguf_fail() - write a loader's error message
 * @err: buffer of GGUF_ERR_LEN bytes; a longer message is cut
 * @code: negative errno
 *
 * Return: @code, so that a caller can return it at once.
 */
int gguf_fail(char err[GGUF_ERR_LEN], int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** struct gguf_printable - start of a string from the file, safe to print */
struct gguf_printable {
	char s[72];
};

/** gguf_printable() - NUL-terminated copy; unprintable bytes become '?' */
struct gguf_printable gguf_printable(struct gguf_str str);

#endif
