// SPDX-License-Identifier: MIT
/*
 * crc32c.c - checksum of a block
 *
 * A block that the drive has just written is in no cache of this CPU, so how soon
 * its bytes come counts most: AHEAD bytes are asked for before they are needed, since
 * the CPU's own prefetcher ends with each page.
 *
 * The crc32 instruction has a latency of three cycles but starts every cycle, so
 * three runs side by side take the time of one.  Joining them needs "the CRC
 * state after n more zero bytes", which is linear in the state: a table of 4 x
 * 256 words per n gives it in four look-ups.
 *
 * Without that instruction eight tables take eight bytes at a time: table k has the state
 * after a byte and k zero bytes, and states add up.
 *
 * With VPCLMULQDQ the message is folded: 64 bits times x^n mod P, added to what lies
 * n bits further on, leave the remainder as it is.  FOLD bytes are left of it at last,
 * and the crc32 instruction takes those.  Bits are reflected: bit i of a product of two
 * stands one place higher than that of the operands, hence the odd exponents.
 */
#include <endian.h>
#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "crc32c.h"

#define POLY	0x82f63b78u	/* Castagnoli, bits reversed */
#define RUN	1344u		/* bytes of one of three runs: whole lines, three fit 4 KiB */
#define LINE	64u
#define AHEAD	4096u		/* bytes */
#define FOLD	256u		/* bytes: four registers */

static uint32_t byte_table[8][256];	/* state after a byte and so many zero bytes */
static uint32_t skip_table[4][256];	/* state after RUN zero bytes */
static uint64_t fold_low, fold_high;	/* x^(8 * FOLD + 31), x^(8 * FOLD - 33) mod P */
static enum hawk_crc32c_how best;	/* of this CPU */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t update_table(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t v;

	for (; len >= 8; p += 8, len -= 8) {
		v = le64toh(load64(p)) ^ crc;
		crc = byte_table[7][v & 0xff] ^ byte_table[6][v >> 8 & 0xff] ^
		      byte_table[5][v >> 16 & 0xff] ^ byte_table[4][v >> 24 & 0xff] ^
		      byte_table[3][v >> 32 & 0xff] ^ byte_table[2][v >> 40 & 0xff] ^
		      byte_table[1][v >> 48 & 0xff] ^ byte_table[0][v >> 56];
	}
	while (len--)
		crc = crc >> 8 ^ byte_table[0][(crc ^ *p++) & 0xff];
	return crc;
}

/* x^n mod P */
static uint32_t power(uint32_t n)
{
	uint32_t c = 1u << 31;

	while (n--)
		c = c >> 1 ^ (c & 1 ? POLY : 0);
	return c;
}

static void find_cpu(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		best = HAWK_CRC32C_RUNS;
	if (best && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
		best = HAWK_CRC32C_FOLD;
#endif
}

static void make_tables(void)
{
	static const uint8_t zeros[RUN];
	uint32_t i, k, c, bit, col[32];

	for (i = 0; i < 256; i++) {
		for (c = i, k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? POLY : 0);
		byte_table[0][i] = c;
	}
	for (k = 1; k < 8; k++)
		for (i = 0; i < 256; i++)
			byte_table[k][i] = byte_table[k - 1][i] >> 8 ^
					   byte_table[0][byte_table[k - 1][i] & 0xff];
	for (bit = 0; bit < 32; bit++)
		col[bit] = update_table(1u << bit, zeros, RUN);
	for (k = 0; k < 4; k++)
		for (i = 0; i < 256; i++)
			for (bit = 0; bit < 8; bit++)
				if (i & 1u << bit)
					skip_table[k][i] ^= col[8 * k + bit];
	fold_low = power(8 * FOLD + 31);
	fold_high = power(8 * FOLD - 33);
	find_cpu();
}

#ifdef __x86_64__

static uint32_t skip_run(uint32_t crc)
{
	return skip_table[0][crc & 0xff] ^ skip_table[1][crc >> 8 & 0xff] ^
	       skip_table[2][crc >> 16 & 0xff] ^ skip_table[3][crc >> 24];
}

static inline void fetch(const uint8_t *p)
{
	__builtin_prefetch(p + AHEAD);
}

__attribute__((target("sse4.2")))
static uint32_t update_runs(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t a, b, c;
	unsigned int i;

	for (; len >= 3 * RUN; p += 3 * RUN, len -= 3 * RUN) {
		a = crc;
		b = 0;
		c = 0;
		for (i = 0; i < RUN; i += 8) {
			if (i % LINE == 0) {
				fetch(p + i);
				fetch(p + RUN + i);
				fetch(p + 2 * RUN + i);
			}
			a = __builtin_ia32_crc32di(a, load64(p + i));
			b = __builtin_ia32_crc32di(b, load64(p + RUN + i));
			c = __builtin_ia32_crc32di(c, load64(p + 2 * RUN + i));
		}
		crc = skip_run(skip_run((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	for (; len >= 8; p += 8, len -= 8)
		crc = (uint32_t)__builtin_ia32_crc32di(crc, load64(p));
	for (; len; p++, len--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}

#define FOLD_TARGET	"avx512f,vpclmulqdq,sse4.2"

__attribute__((target(FOLD_TARGET)))
static inline __m512i fold(__m512i x, __m512i by, const uint8_t *p)
{
	fetch(p);
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00),
					 _mm512_clmulepi64_epi128(x, by, 0x11),
					 _mm512_loadu_si512(p), 0x96);	/* xor */
}

__attribute__((target(FOLD_TARGET)))
static uint32_t update_fold(uint32_t crc, const uint8_t *p, size_t len)
{
	const __m512i by = _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)fold_high,
								 (int64_t)fold_low));
	__m512i x[FOLD / LINE];
	uint8_t rest[FOLD];
	unsigned int i;

	if (len < 2 * FOLD)
		return update_runs(crc, p, len);
	for (i = 0; i < FOLD / LINE; i++)
		x[i] = _mm512_loadu_si512(p + i * LINE);
	x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	for (p += FOLD, len -= FOLD; len >= FOLD; p += FOLD, len -= FOLD)
		for (i = 0; i < FOLD / LINE; i++)
			x[i] = fold(x[i], by, p + i * LINE);
	memcpy(rest, x, FOLD);
	return update_runs(update_runs(0, rest, FOLD), p, len);
}

static uint32_t update(enum hawk_crc32c_how how, uint32_t crc, const uint8_t *p, size_t len)
{
	switch (how) {
	case HAWK_CRC32C_FOLD:
		return update_fold(crc, p, len);
	case HAWK_CRC32C_RUNS:
		return update_runs(crc, p, len);
	default:
		return update_table(crc, p, len);
	}
}

#else

static uint32_t update(enum hawk_crc32c_how how, uint32_t crc, const uint8_t *p, size_t len)
{
	(void)how;
	return update_table(crc, p, len);
}

#endif

bool hawk_crc32c_by(enum hawk_crc32c_how how, const void *p, size_t len, uint32_t *crc)
{
	pthread_once(&once, make_tables);
	if (how > best)
		return false;
	*crc = ~update(how, ~0u, p, len);
	return true;
}

uint32_t hawk_crc32c_more(uint32_t crc, const void *p, size_t len)
{
	pthread_once(&once, make_tables);
	return update(best, crc, p, len);
}

uint32_t hawk_crc32c(const void *p, size_t len)
{
	return ~hawk_crc32c_more(~0u, p, len);
}
