// SPDX-License-Identifier: MIT
/*
 * layout_simd.c - inner loops that copy pieces, for each instruction set
 *
 * A tile's row is as short as 16 bytes, so the size of a piece is a constant in the loops
 * that matter.  A copy that is larger than the cache is written past it, in whole lines: a
 * line that is only written need not be read first.  Sources are read with distances between
 * the pieces that no prefetcher follows across pages, so the next rows are asked for early.
 */
#include <stdlib.h>
#include <string.h>

#include "layout.h"

#define AHEAD	2048u	/* bytes that long pieces are read ahead */

/* For each piece of @p at (d, s) do @body. */
#define for_each_piece(p, d, s, body)							\
	do {										\
		uint64_t i_, k_;							\
		for (i_ = 0; i_ < (p)->outer.n; i_++)					\
			for (k_ = 0; k_ < (p)->inner.n; k_++) {				\
				uint8_t *d = dst + i_ * (p)->outer.dst + k_ * (p)->inner.dst; \
				const uint8_t *s = src + i_ * (p)->outer.src +		\
						   k_ * (p)->inner.src;			\
				body;							\
			}								\
	} while (0)

static void pieces_cached(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p)
{
	switch (p->len) {
	case 1:
		for_each_piece(p, d, s, *d = *s);
		break;
	case 2:
		for_each_piece(p, d, s, memcpy(d, s, 2));
		break;
	case 4:
		for_each_piece(p, d, s, memcpy(d, s, 4));
		break;
	case 8:
		for_each_piece(p, d, s, memcpy(d, s, 8));
		break;
	case 16:
		for_each_piece(p, d, s, memcpy(d, s, 16));
		break;
	case 32:
		for_each_piece(p, d, s, memcpy(d, s, 32));
		break;
	case 64:
		for_each_piece(p, d, s, memcpy(d, s, 64));
		break;
	default:
		for_each_piece(p, d, s, memcpy(d, s, p->len));
	}
}

static void no_fence(void)
{
}

static const struct hawk_copier copier_c = {
	.name = "c", .cached = pieces_cached, .fence = no_fence,
};

#ifdef __x86_64__
#include <immintrin.h>

static void fence(void)
{
	_mm_sfence();
}

static inline void stream16(uint8_t *d, const uint8_t *s)
{
	_mm_stream_si128((__m128i *)d, _mm_loadu_si128((const __m128i *)s));
}

__attribute__((target("avx2")))
static inline void stream32(uint8_t *d, const uint8_t *s)
{
	_mm256_stream_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
}

/* Pieces of a multiple of 16 bytes. */
static void stream_short(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p)
{
	uint64_t x;

	for_each_piece(p, d, s, for (x = 0; x < p->len; x += 16) stream16(d + x, s + x));
}

/* How far ahead of a long piece its successors are read, bytes. */
static uint64_t ahead_of(const struct hawk_pieces *p)
{
	uint64_t pieces = p->len < AHEAD ? AHEAD / p->len : 1;

	return p->inner.n > 1 && p->len <= AHEAD ? pieces * p->inner.src : AHEAD;
}

static bool aligned(const uint8_t *dst, const struct hawk_pieces *p, unsigned int align)
{
	return !(((uintptr_t)dst | p->len | p->inner.dst | p->outer.dst) & (align - 1));
}

__attribute__((target("avx2")))
static void stream_avx2(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p)
{
	uint64_t x, far = ahead_of(p);

	if (!aligned(dst, p, 32))
		stream_short(dst, src, p);
	else if (p->len == 32)
		for_each_piece(p, d, s, {
			_mm_prefetch(p->ahead + (s - src), _MM_HINT_T0);
			stream32(d, s);
		});
	else
		for_each_piece(p, d, s, for (x = 0; x < p->len; x += 32) {
			_mm_prefetch(s + far + x, _MM_HINT_T0);
			stream32(d + x, s + x);
		});
}

__attribute__((target("avx512f")))
static inline void stream64(uint8_t *d, const uint8_t *s)
{
	_mm512_stream_si512((__m512i *)d, _mm512_loadu_si512(s));
}

/* Two rows of 32 bytes are a line. */
__attribute__((target("avx512f")))
static inline void stream_pair(uint8_t *d, const uint8_t *s, uint64_t step)
{
	__m256i a = _mm256_loadu_si256((const __m256i *)s);
	__m256i b = _mm256_loadu_si256((const __m256i *)(s + step));

	_mm512_stream_si512((__m512i *)d, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}

__attribute__((target("avx512f")))
static void stream_pairs(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p)
{
	uint64_t i, k, step = p->inner.src;
	const uint8_t *ahead = p->ahead;

	for (i = 0; i < p->outer.n; i++) {
		for (k = 0; k < p->inner.n; k += 2) {
			_mm_prefetch(ahead + k * step, _MM_HINT_T0);
			_mm_prefetch(ahead + k * step + step, _MM_HINT_T0);
			stream_pair(dst + k * 32, src + k * step, step);
		}
		dst += p->outer.dst;
		src += p->outer.src;
		ahead += p->outer.src;
	}
}

__attribute__((target("avx512f")))
static void stream_avx512(uint8_t *dst, const uint8_t *src, const struct hawk_pieces *p)
{
	uint64_t x, far = ahead_of(p);

	if (p->len == 32 && p->inner.dst == 32 && !(p->inner.n & 1) &&
	    !(((uintptr_t)dst | p->outer.dst) & 63))
		stream_pairs(dst, src, p);
	else if (!aligned(dst, p, 64))
		stream_avx2(dst, src, p);
	else
		for_each_piece(p, d, s, for (x = 0; x < p->len; x += 64) {
			_mm_prefetch(s + far + x, _MM_HINT_T0);
			stream64(d + x, s + x);
		});
}

static const struct hawk_copier copier_avx2 = {
	.name = "avx2", .cached = pieces_cached, .stream = stream_avx2, .fence = fence,
	.stream_align = 16,
};

static const struct hawk_copier copier_avx512 = {
	.name = "avx512", .cached = pieces_cached, .stream = stream_avx512, .fence = fence,
	.stream_align = 16,
};

static bool usable(const struct hawk_copier *k)
{
	if (k == &copier_avx512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx2");
	return k == &copier_c || __builtin_cpu_supports("avx2");
}

/* Best first. */
static const struct hawk_copier *const copiers[] = { &copier_avx512, &copier_avx2, &copier_c };

#else

static bool usable(const struct hawk_copier *k)
{
	(void)k;
	return true;
}

static const struct hawk_copier *const copiers[] = { &copier_c };

#endif

/* The one of that name, NULL if this CPU has not got it; without a name the best one. */
const struct hawk_copier *hawk_copier_get(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(copiers) / sizeof(copiers[0]); i++)
		if ((!name || !strcmp(name, copiers[i]->name)) && usable(copiers[i]))
			return copiers[i];
	return NULL;
}
