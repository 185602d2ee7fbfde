/* SPDX-License-Identifier: MIT */
/* Shared by gguf.c (file, look-up) and gguf_parse.c (checks). */
#ifndef HAWK_GGUF_PRIV_H
#define HAWK_GGUF_PRIV_H

#include "gguf/gguf.h"
#include "gguf/strmap.h"

struct gguf_kv {
	struct gguf_str key;
	enum gguf_vtype type;
	const uint8_t *val;  /* scalar: its bytes; string, array: see below */
	struct gguf_str str; /* GGUF_STR */
	struct gguf_arr arr; /* GGUF_ARR */
};

struct gguf {
	const uint8_t *base;
	size_t len;
	bool mapped; /* base is ours to unmap */
	uint32_t version;
	uint32_t n_kv;
	uint32_t n_tensors;
	uint32_t alignment;
	struct gguf_kv *kv;
	struct gguf_tensor *tensors;
	struct strmap kv_map;	  /* key -> index into kv */
	struct strmap tensor_map; /* name -> index into tensors */
};

/* Size in bytes of a scalar value; 0 for strings, arrays, unknown types. */
size_t gguf_scalar_bytes(uint32_t vtype);

/* Check the bytes at g->base and fill in the rest of *g. */
int gguf_parse_all(struct gguf *g, char err[GGUF_ERR_LEN]);

#endif
