/* SPDX-License-Identifier: MIT */
/*
 * kern_attend.h - attention over segments, written once over a vector type.
 * Part of kern_body.h.
 *
 * The visible tokens of a sequence, all its segments one behind the other, are
 * visited in spans of block_tokens. Per query and span: scores, then one step
 * of the online softmax
 *	m' = max(m, max s)   c = exp(m - m')   p = exp(s - m')
 *	l' = l c + sum p     acc' = acc c + sum p v
 * Scores use the matrix kernel with the keys as weights.
 *
 * Spans are cut by visible index, not by block, so the result does not depend
 * on where the tokens lie: copying or compacting them changes no bit. A span
 * that lies in one block (every span of a sequence that nothing was dropped
 * from) is read in place; the pieces of any other are put side by side first.
 * Keys of a shifted segment are rotated on that way, after they were unpacked.
 */

/* Fold one span's scores (n of them) into state {m, l}; s becomes p. Returns c. */
static float softmax_step(float *s, uint32_t n, float state[2])
{
	const uint32_t padded = kern_pad(n);
	vf vm = v_set1(-INFINITY), sum = v_set1(0.0f), p;
	float m, c;
	uint32_t t;

	for (t = n; t < padded; t++)
		s[t] = -INFINITY;
	for (t = 0; t < padded; t += VL)
		vm = v_max(vm, v_load(s + t));
	m = v_hmax(vm);
	m = m > state[0] ? m : state[0];
	for (t = 0; t < padded; t += VL) {
		p = v_exp(v_add(v_load(s + t), v_set1(-m)));
		v_store(s + t, p);
		sum = v_add(sum, p);
	}
	c = state[0] == -INFINITY ? 0.0f : expf(state[0] - m);
	state[0] = m;
	state[1] = state[1] * c + v_sum(sum);
	return c;
}

/* nv vectors of: acc = acc * c + sum over n tokens of p[t] * v[t], in order */
ALWAYS_INLINE void weigh_block(const enum gguf_type type, const int nv, float *acc, float c,
			       const float *p, const uint8_t *v, size_t row, uint32_t n, uint32_t d)
{
	vf sum[WEIGH_VECS], w;
	uint32_t t;
	int i;

#pragma GCC unroll 8
	for (i = 0; i < nv; i++)
		sum[i] = v_mul(v_load(acc + d + i * VL), v_set1(c));
	for (t = 0; t < n; t++) {
		w = v_set1(p[t]);
#pragma GCC unroll 8
		for (i = 0; i < nv; i++)
			sum[i] = v_fma(w, w_load(type, v + t * row, d + i * VL), sum[i]);
	}
#pragma GCC unroll 8
	for (i = 0; i < nv; i++)
		v_store(acc + d + i * VL, sum[i]);
}

/* The same for all elements of a head. */
ALWAYS_INLINE void weigh_values(const enum gguf_type type, float *acc, float c, const float *p,
				const uint8_t *v, uint32_t n, uint32_t head_dim)
{
	const size_t row = (size_t)head_dim * (type == GGUF_T_F32 ? 4 : 2);
	uint32_t d = 0, t, rest;
	vf sum;

	for (; d + WEIGH_VECS * VL <= head_dim; d += WEIGH_VECS * VL)
		weigh_block(type, WEIGH_VECS, acc, c, p, v, row, n, d);
	for (; d + VL <= head_dim; d += VL)
		weigh_block(type, 1, acc, c, p, v, row, n, d);
	rest = head_dim - d;
	if (!rest)
		return;
	sum = v_mul(v_load_part(acc + d, rest), v_set1(c));
	for (t = 0; t < n; t++)
		sum = v_fma(v_set1(p[t]), w_load_part(type, v + t * row, d, rest), sum);
	v_store_part(acc + d, sum, rest);
}

static void weigh(enum gguf_type type, float *acc, float c, const float *p, const void *v,
		  uint32_t n, uint32_t head_dim)
{
	if (type == GGUF_T_F32)
		weigh_values(GGUF_T_F32, acc, c, p, v, n, head_dim);
	else
		weigh_values(GGUF_T_F16, acc, c, p, v, n, head_dim);
}

/* Where the next visible token is: token @off of segment @seg. */
struct cursor {
	uint32_t seg, off;
};

/* Tokens side by side in one block and one segment. */
struct piece {
	const uint8_t *k, *v;
	uint32_t n;
	int32_t shift;
};

/* Keys and values of a span: either in place or in @planes. */
struct span {
	const uint8_t *k, *v;
	enum gguf_type k_type, v_type;
};

/* Take up to @max tokens at the cursor. */
static struct piece piece_next(const struct kern_attn *a, struct cursor *c, uint32_t max)
{
	const struct exec_seg *seg = &a->segs[c->seg];
	const uint32_t slot = seg->tok + c->off, in = slot % a->block_tokens;
	const uint8_t *block = seg->blocks[slot / a->block_tokens];
	const size_t at = in * gguf_row_bytes(a->kv_type, a->head_dim);
	struct piece p = {
		.k = block + a->k_off + at,
		.v = block + a->v_off + at,
		.n = a->block_tokens - in,
		.shift = seg->shift,
	};

	if (p.n > seg->len - c->off)
		p.n = seg->len - c->off;
	if (p.n > max)
		p.n = max;
	c->off += p.n;
	if (c->off == seg->len)
		*c = (struct cursor){ .seg = c->seg + 1 };
	return p;
}

/* Rotate one key, element i and its partner j: k[i] = k[i] * cc[i] + k[j] * ss[i]. */
static void op_turn_key(float *k, const struct turn_cache *t, const struct turn_table *tt)
{
	const uint32_t end = t->half ? t->dim / 2 : t->dim, half = t->dim / 2;
	uint32_t i, n;
	vf a, b;

	for (i = 0; i < end; i += VL) {
		n = end - i < VL ? end - i : VL;
		a = n < VL ? v_load_part(k + i, n) : v_load(k + i);
		if (t->half)
			b = n < VL ? v_load_part(k + half + i, n) : v_load(k + half + i);
		else
			b = v_swap_pairs(a);
		v_store_part(k + i, v_fma(b, v_load(tt->ss + i), v_mul(a, v_load(tt->cc + i))), n);
		if (t->half)
			v_store_part(k + half + i,
				     v_fma(a, v_load(tt->ss + half + i),
					   v_mul(b, v_load(tt->cc + half + i))),
				     n);
	}
}

/* Put @n elements at element @at of a plane. */
static void plane_put(uint8_t *plane, enum gguf_type to, size_t at, enum gguf_type from,
		      const uint8_t *src, size_t n)
{
	if (to == from)
		memcpy(plane + gguf_row_bytes(to, at), src, gguf_row_bytes(to, n));
	else
		op_unpack((float *)plane + at, from, src, n);
}

/* Is any of the next @n tokens shifted? */
static bool span_shifted(const struct kern_attn *a, struct cursor c, uint32_t n)
{
	while (n) {
		struct piece p = piece_next(a, &c, n);

		if (p.shift)
			return true;
		n -= p.n;
	}
	return false;
}

/* Make the next @n tokens readable as one array. */
static void span_load(const struct kern_attn *a, struct cursor *c, uint32_t n, struct span *s)
{
	/* with many queries it pays to unpack once */
	const bool unpack = a->kv_type == GGUF_T_F16 && a->n_rows * a->group > MK_ROWS;
	const bool shifted = span_shifted(a, *c, n);
	const size_t hd = a->head_dim;
	uint8_t *k = (uint8_t *)a->planes, *v = (uint8_t *)(a->planes + n * hd);
	struct piece p = piece_next(a, c, n);
	const bool whole = p.n == n && !unpack;
	uint32_t at = 0, t;

	s->v_type = unpack ? GGUF_T_F32 : a->kv_type;
	s->k_type = shifted ? GGUF_T_F32 : s->v_type;
	s->k = whole && !shifted ? p.k : k;
	s->v = whole ? p.v : v;
	for (;;) {
		if (s->k == k)
			plane_put(k, s->k_type, at * hd, a->kv_type, p.k, p.n * hd);
		if (s->v == v)
			plane_put(v, s->v_type, at * hd, a->kv_type, p.v, p.n * hd);
		for (t = 0; p.shift && t < p.n; t++)
			op_turn_key((float *)k + (at + t) * hd, a->turn,
				    turn_get(a->turn, p.shift));
		at += p.n;
		if (at == n)
			return;
		p = piece_next(a, c, n - at);
	}
}

/* All queries over the span whose first token has visible index @first. */
static void attend_span(const struct kern_attn *a, struct cursor *c, uint32_t first)
{
	const size_t lds = kern_pad(a->block_tokens);
	const uint32_t n_q = a->n_rows * a->group;
	struct kern_mm mm = { .x = a->q, .ldx = a->ldq, .y = a->scores, .ldy = lds, .n_rows = n_q };
	uint32_t n_tok = a->at + a->n_rows - first, i, n;
	struct span s;

	if (n_tok > a->block_tokens)
		n_tok = a->block_tokens;
	span_load(a, c, n_tok, &s);
	mm_direct(s.k_type, s.k, gguf_row_bytes(s.k_type, a->head_dim), a->head_dim, n_tok, &mm,
		  a->scores);
	for (i = 0; i < n_q; i++) {
		uint32_t at = a->at + i / a->group;
		float *p = a->scores + i * lds;
		float scale;

		if (at < first)
			continue;
		n = at - first + 1 < n_tok ? at - first + 1 : n_tok;
		scale = softmax_step(p, n, a->state + 2 * i);
		weigh(s.v_type, a->out + i / a->group * a->ld_out + i % a->group * a->head_dim,
		      scale, p, s.v, n, a->head_dim);
	}
}

static void op_attend(const struct kern_attn *a)
{
	const uint32_t n_q = a->n_rows * a->group;
	struct cursor c = { 0 };
	uint32_t i, d, first;

	for (i = 0; i < n_q; i++) {
		a->state[2 * i] = -INFINITY;
		a->state[2 * i + 1] = 0.0f;
		memset(a->out + i / a->group * a->ld_out + i % a->group * a->head_dim, 0,
		       a->head_dim * sizeof(float));
	}
	for (first = 0; first < a->at + a->n_rows; first += a->block_tokens)
		attend_span(a, &c, first);
	for (i = 0; i < n_q; i++) {
		float *out = a->out + i / a->group * a->ld_out + i % a->group * a->head_dim;
		float inv = 1.0f / a->state[2 * i + 1];

		for (d = 0; d < a->head_dim; d++)
			out[d] *= inv;
	}
}
