// SPDX-License-Identifier: MIT
/*
 * layout.c - descriptions of layouts: checks, strides, names, words
 *
 * Offset of an element (e bytes) that is token u of frame b:
 *	l * S_l + k * S_k + b * S_b + h * S_h + (u / Ts) * S_t + (u % Ts) * S_r +
 *	(x / Td) * S_d + x % Td		with x = e * number of the element in the head
 * Ts = tile_rows and Td = tile_bytes; without tiles Ts is 1 and Td all of a head.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "crc32c.h"
#include "layout.h"

#define BYTES_MAX	(1ull << 62)

static const char letters[HAWK_AXES + 1] = "lkbhtdrc";

void hawk_text_add(struct hawk_text *t, const char *fmt, ...)
{
	size_t at = t->at < t->len ? t->at : t->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf ? t->buf + at : NULL, t->len - at, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->at += (size_t)n;
}

static uint32_t tile_rows(const struct hawk_layout *l)
{
	return l->tile_rows ? l->tile_rows : 1;
}

static uint32_t tile_bytes(const struct hawk_layout *l)
{
	return l->tile_rows ? l->tile_bytes : l->dim * l->elem_bytes;
}

/* How many indices an axis has. */
static uint64_t extent(const struct hawk_layout *l, enum hawk_axis axis)
{
	switch (axis) {
	case HAWK_AXIS_LAYER:
		return l->layers;
	case HAWK_AXIS_PLANE:
		return l->planes;
	case HAWK_AXIS_BLOCK:
		return l->blocks;
	case HAWK_AXIS_HEAD:
		return l->heads;
	case HAWK_AXIS_TILE_ROW:
		return ((uint64_t)l->block_tokens + tile_rows(l) - 1) / tile_rows(l);
	case HAWK_AXIS_TILE_COL:
		return l->dim * l->elem_bytes / tile_bytes(l);
	case HAWK_AXIS_ROW:
		return tile_rows(l);
	default:
		return tile_bytes(l);
	}
}

static int check_slice(const char *what, uint32_t all, uint32_t first, uint32_t *n)
{
	if (!all)
		return hawk_fail(-EINVAL, "layout: the model has no %s", what);
	if (!*n && !first)
		*n = all;
	if (!*n || first >= all || *n > all - first)
		return hawk_fail(-EINVAL, "layout: %u %s from number %u on of a model that has %u",
				 *n, what, first, all);
	return 0;
}

static int check_planes(struct hawk_layout *l)
{
	if (!l->planes && !l->plane_first)
		l->planes = 2;
	if (!l->planes || l->plane_first + (uint64_t)l->planes > 2)
		return hawk_fail(-EINVAL, "layout: %u planes from number %u on: 0 is keys, 1 values",
				 l->planes, l->plane_first);
	return 0;
}

static int check_tiles(const struct hawk_layout *l)
{
	uint64_t row = (uint64_t)l->dim * l->elem_bytes;

	if (!l->tile_rows != !l->tile_bytes)
		return hawk_fail(-EINVAL, "layout: tiles of %u rows of %u bytes", l->tile_rows,
				 l->tile_bytes);
	if (!l->tile_rows)
		return 0;
	if (l->tile_rows > 65536)
		return hawk_fail(-EINVAL, "layout: tiles of %u rows: at most 65536", l->tile_rows);
	if (l->tile_bytes % l->elem_bytes)
		return hawk_fail(-EINVAL, "layout: a tile's row of %u bytes is no whole number of elements of %u",
				 l->tile_bytes, l->elem_bytes);
	if (row % l->tile_bytes)
		return hawk_fail(-EINVAL, "layout: a head of %u elements of %u bytes is no whole number of tiles of %u bytes: pad the head, or choose another tile",
				 l->dim, l->elem_bytes, l->tile_bytes);
	return 0;
}

static int check_numbers(struct hawk_layout *l)
{
	int ret;

	if (l->elem_bytes != 1 && l->elem_bytes != 2 && l->elem_bytes != 4 && l->elem_bytes != 8)
		return hawk_fail(-EINVAL, "layout: elements of %u bytes: 1, 2, 4 or 8",
				 l->elem_bytes);
	if (!l->dim || l->dim > 1u << 20)
		return hawk_fail(-EINVAL, "layout: heads of %u elements: 1 to 2^20", l->dim);
	if (!l->block_tokens || !l->blocks)
		return hawk_fail(-EINVAL, "layout: %u blocks of %u tokens", l->blocks,
				 l->block_tokens);
	if (l->reserved)
		return hawk_fail(-EINVAL, "layout: reserved is not 0");
	if (((uint64_t)l->block_first + l->blocks) > UINT32_MAX / l->block_tokens)
		return hawk_fail(-EOVERFLOW, "layout: %u blocks of %u tokens from block %u on: sequences have less than 2^32 tokens",
				 l->blocks, l->block_tokens, l->block_first);
	ret = check_slice("heads", l->heads_all, l->head_first, &l->heads);
	if (!ret)
		ret = check_slice("layers", l->layers_all, l->layer_first, &l->layers);
	return ret ? ret : check_planes(l);
}

/* The axes of @l->order, all of them. */
static int read_order(const struct hawk_layout *l, enum hawk_axis axis[HAWK_AXES])
{
	size_t n = strnlen(l->order, sizeof(l->order)), i;
	unsigned int seen = 0;
	const char *at;

	if (n != HAWK_AXES && !(n == HAWK_AXES - 2 && !l->tile_rows))
		return hawk_fail(-EINVAL, "layout: order \"%.*s\" has not each of \"%s\" once",
				 (int)n, l->order, l->tile_rows ? letters : "lkbhtd");
	for (i = 0; i < HAWK_AXES; i++) {
		at = strchr(letters, i < n ? l->order[i] : letters[i]);
		if (!at || seen & 1u << (at - letters))
			return hawk_fail(-EINVAL, "layout: order \"%.*s\" has not each of \"%s\" once",
					 (int)n, l->order, l->tile_rows ? letters : "lkbhtd");
		axis[i] = (enum hawk_axis)(at - letters);
		seen |= 1u << axis[i];
	}
	if (axis[HAWK_AXES - 1] != HAWK_AXIS_COL || (n < HAWK_AXES && l->order[n - 1] != 'd'))
		return hawk_fail(-EINVAL, "layout: order \"%.*s\" does not end with the elements of a row",
				 (int)n, l->order);
	return 0;
}

/* From the innermost axis outwards: what lies within an index must fit into its step. */
static int set_strides(struct hawk_layout *l, const enum hawk_axis axis[HAWK_AXES])
{
	uint64_t inner = 1, n;
	int i;

	for (i = HAWK_AXES - 1; i >= 0; i--) {
		uint64_t *step = &l->stride[axis[i]];

		n = extent(l, axis[i]);
		if (!*step)
			*step = inner;
		if (axis[i] == HAWK_AXIS_COL && *step != 1)
			return hawk_fail(-EINVAL, "layout: the bytes of a row are not one behind the other");
		if (*step < inner)
			return hawk_fail(-EINVAL, "layout: stride %llu of axis '%c' is less than the %llu bytes within",
					 (unsigned long long)*step, letters[axis[i]],
					 (unsigned long long)inner);
		if (*step % l->elem_bytes && axis[i] != HAWK_AXIS_COL)
			return hawk_fail(-EINVAL, "layout: stride %llu of axis '%c' is no whole number of elements of %u bytes",
					 (unsigned long long)*step, letters[axis[i]], l->elem_bytes);
		/* behind the last index there is no gap */
		if (__builtin_mul_overflow(*step, n - 1, &l->bytes) ||
		    __builtin_add_overflow(l->bytes, inner, &l->bytes) || l->bytes > BYTES_MAX ||
		    *step > BYTES_MAX)
			return hawk_fail(-EOVERFLOW, "layout: more than 2^62 bytes at axis '%c'",
					 letters[axis[i]]);
		inner = n > 1 ? l->bytes : inner;
	}
	return 0;
}

int hawk_layout_init(struct hawk_layout *l)
{
	enum hawk_axis axis[HAWK_AXES];
	int ret;

	ret = check_numbers(l);
	if (!ret)
		ret = check_tiles(l);
	if (!ret)
		ret = read_order(l, axis);
	if (!ret)
		ret = set_strides(l, axis);
	return ret;
}

int hawk_layout_form(struct hawk_layout *l, unsigned int form)
{
	static const char *const order[] = {
		[HAWK_FORM_NHD] = "lkbthd", [HAWK_FORM_HND] = "lkbhtd",
		[HAWK_FORM_TILE16] = "lkbhtdrc", [HAWK_FORM_TILE32] = "lkbhtdrc",
		[HAWK_FORM_NZ] = "lkbhdtrc",
	};
	unsigned int name = form & ~HAWK_FORM_CROSS_LAYER;

	if (name > HAWK_FORM_NZ)
		return hawk_fail(-EINVAL, "layout: there is no form %u", form);
	strcpy(l->order, order[name]);
	if (form & HAWK_FORM_CROSS_LAYER)
		memcpy(l->order, "blk", 3);
	l->tile_rows = name < HAWK_FORM_TILE16 ? 0 : name == HAWK_FORM_TILE32 ? 32 : 16;
	l->tile_bytes = name == HAWK_FORM_NZ ? 32 : l->tile_rows * l->elem_bytes;
	return hawk_layout_init(l);
}

int hawk_layout_slice(struct hawk_layout *l, unsigned int form, uint32_t rank, uint32_t degree)
{
	if (!degree || rank >= degree || l->heads_all % degree)
		return hawk_fail(-EINVAL, "layout: rank %u of %u with %u heads", rank, degree,
				 l->heads_all);
	l->heads = l->heads_all / degree;
	l->head_first = rank * l->heads;
	return hawk_layout_form(l, form);
}

int hawk_layout_space(struct hawk_layout *l, unsigned int form, const struct hawk_kv_params *p,
		      uint32_t layer, uint32_t group)
{
	uint64_t inner;
	int ret;

	if (layer >= p->layers || group >= p->head_groups)
		return hawk_fail(-EINVAL, "layout: layer %u, head group %u of a space with %u, %u",
				 layer, group, p->layers, p->head_groups);
	l->dtype = p->dtype;
	l->layers_all = p->layers;
	l->layer_first = layer;
	l->layers = 1;
	l->plane_first = 0;
	l->planes = p->planes ? p->planes : 2;
	l->block_tokens = p->block_tokens;
	memset(l->stride, 0, sizeof(l->stride));
	ret = hawk_layout_slice(l, form | HAWK_FORM_CROSS_LAYER, group, p->head_groups);
	if (ret)
		return ret;
	/* sequences are compacted token by token: a token's bytes in a plane lie together */
	if (p->token_bytes && (l->tile_rows || (form != HAWK_FORM_NHD && l->heads > 1) ||
			       p->token_bytes != (uint64_t)l->heads * l->dim * l->elem_bytes))
		return hawk_fail(-EINVAL, "layout: the space's tokens are rows of %u bytes; make it without token_bytes for this form",
				 p->token_bytes);
	inner = l->planes * l->stride[HAWK_AXIS_PLANE];
	if (inner > p->block_bytes)
		return hawk_fail(-EINVAL, "layout: a block takes %llu bytes, the space's have %u",
				 (unsigned long long)inner, p->block_bytes);
	memset(l->stride, 0, sizeof(l->stride));
	l->stride[HAWK_AXIS_BLOCK] = p->block_bytes;
	return hawk_layout_init(l);
}

uint32_t hawk_layout_tag(const struct hawk_layout *l)
{
	struct hawk_text t;
	char buf[160];
	const char *o;
	uint32_t crc;

	/* what is within a block, not which layers, heads and blocks there are */
	t = (struct hawk_text){ .buf = buf, .len = sizeof(buf) };
	for (o = l->order; *o; o++)
		if (*o != 'b' && *o != 'l')
			hawk_text_add(&t, "%c", *o);
	hawk_text_add(&t, " %u %u %u %u", l->elem_bytes, l->dim, l->tile_rows, l->tile_bytes);
	crc = hawk_crc32c(buf, t.at);
	return crc ? crc : 1;
}

int64_t hawk_layout_offset(const struct hawk_layout *l, const struct hawk_place *p)
{
	uint64_t x = (uint64_t)p->elem * l->elem_bytes;

	if (p->layer - l->layer_first >= l->layers || p->plane - l->plane_first >= l->planes ||
	    p->head - l->head_first >= l->heads || p->frame >= l->blocks ||
	    p->token >= l->block_tokens || p->elem >= l->dim)
		return -ERANGE;
	return (int64_t)((p->layer - l->layer_first) * l->stride[HAWK_AXIS_LAYER] +
			 (p->plane - l->plane_first) * l->stride[HAWK_AXIS_PLANE] +
			 p->frame * l->stride[HAWK_AXIS_BLOCK] +
			 (p->head - l->head_first) * l->stride[HAWK_AXIS_HEAD] +
			 p->token / tile_rows(l) * l->stride[HAWK_AXIS_TILE_ROW] +
			 p->token % tile_rows(l) * l->stride[HAWK_AXIS_ROW] +
			 x / tile_bytes(l) * l->stride[HAWK_AXIS_TILE_COL] + x % tile_bytes(l));
}

static void print_json(const struct hawk_layout *l, struct hawk_text *t)
{
	unsigned int i;

	hawk_text_add(t, "{\"order\": \"%.*s\", \"dtype\": %u, \"elem_bytes\": %u, \"dim\": %u, ",
		      (int)sizeof(l->order), l->order, l->dtype, l->elem_bytes, l->dim);
	hawk_text_add(t, "\"heads\": [%u, %u, %u], \"layers\": [%u, %u, %u], \"planes\": [%u, %u], ",
		      l->head_first, l->heads, l->heads_all, l->layer_first, l->layers,
		      l->layers_all, l->plane_first, l->planes);
	hawk_text_add(t, "\"block_tokens\": %u, \"block_first\": %u, \"blocks\": %u, ",
		      l->block_tokens, l->block_first, l->blocks);
	hawk_text_add(t, "\"tile_rows\": %u, \"tile_bytes\": %u, \"stride\": {", l->tile_rows,
		      l->tile_bytes);
	for (i = 0; i < HAWK_AXES; i++)
		hawk_text_add(t, "%s\"%c\": %llu", i ? ", " : "", letters[i],
			      (unsigned long long)l->stride[i]);
	hawk_text_add(t, "}, \"bytes\": %llu}", (unsigned long long)l->bytes);
}

int hawk_layout_print(const struct hawk_layout *l, char *buf, size_t len, unsigned int flags)
{
	struct hawk_text t = { .buf = buf, .len = len };

	if (flags & HAWK_PRINT_JSON) {
		print_json(l, &t);
		return (int)t.at;
	}
	hawk_text_add(&t, "%.*s, ", (int)sizeof(l->order), l->order);
	if (l->tile_rows)
		hawk_text_add(&t, "tiles of %u rows x %u bytes, ", l->tile_rows, l->tile_bytes);
	hawk_text_add(&t, "%u blocks of %u tokens", l->blocks, l->block_tokens);
	if (l->block_first)
		hawk_text_add(&t, " from block %u on", l->block_first);
	hawk_text_add(&t, ", layers %u-%u of %u, %s, heads %u-%u of %u, %u elements of %u bytes, %llu bytes",
		      l->layer_first, l->layer_first + l->layers - 1, l->layers_all,
		      l->planes == 2 ? "keys and values" : l->plane_first ? "values" : "keys",
		      l->head_first, l->head_first + l->heads - 1, l->heads_all, l->dim,
		      l->elem_bytes, (unsigned long long)l->bytes);
	return (int)t.at;
}
