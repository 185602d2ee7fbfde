// SPDX-License-Identifier: MIT
/*
 * crc32c.c - checksum of a block
 *
 * The crc32 instruction has a latency of three cycles but starts every cycle, so
 * three runs side by side take the time of one.  Joining them needs "the CRC
 * state after n more zero bytes", which is linear in the state: a table of 4 x
 * 256 words per n gives it in four look-ups.
 */
#include <pthread.h>
#include <string.h>

#include "crc32c.h"

#define POLY	0x82f63b78u	/* Castagnoli, bits reversed */
#define RUN	1360u		/* bytes of one of three runs: 3 * 1360 fit 4 KiB */

static uint32_t byte_table[256];
static uint32_t skip_table[4][256];	/* state after RUN zero bytes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t update_table(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--)
		crc = crc >> 8 ^ byte_table[(crc ^ *p++) & 0xff];
	return crc;
}

static void make_tables(void)
{
	static const uint8_t zeros[RUN];
	uint32_t i, k, c, bit, col[32];

	for (i = 0; i < 256; i++) {
		for (c = i, k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? POLY : 0);
		byte_table[i] = c;
	}
	for (bit = 0; bit < 32; bit++)
		col[bit] = update_table(1u << bit, zeros, RUN);
	for (k = 0; k < 4; k++)
		for (i = 0; i < 256; i++)
			for (bit = 0; bit < 8; bit++)
				if (i & 1u << bit)
					skip_table[k][i] ^= col[8 * k + bit];
}

uint32_t hawk_crc32c_table(const void *p, size_t len)
{
	pthread_once(&once, make_tables);
	return ~update_table(~0u, p, len);
}

#ifdef __x86_64__

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t skip_run(uint32_t crc)
{
	return skip_table[0][crc & 0xff] ^ skip_table[1][crc >> 8 & 0xff] ^
	       skip_table[2][crc >> 16 & 0xff] ^ skip_table[3][crc >> 24];
}

__attribute__((target("sse4.2")))
static uint32_t update_sse42(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t a, b, c;
	unsigned int i;

	for (; len >= 3 * RUN; p += 3 * RUN, len -= 3 * RUN) {
		a = crc;
		b = 0;
		c = 0;
		for (i = 0; i < RUN; i += 8) {
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

uint32_t hawk_crc32c_more(uint32_t crc, const void *p, size_t len)
{
	pthread_once(&once, make_tables);
	return __builtin_cpu_supports("sse4.2") ? update_sse42(crc, p, len) :
						  update_table(crc, p, len);
}

#else

uint32_t hawk_crc32c_more(uint32_t crc, const void *p, size_t len)
{
	pthread_once(&once, make_tables);
	return update_table(crc, p, len);
}

#endif

uint32_t hawk_crc32c(const void *p, size_t len)
{
	return ~hawk_crc32c_more(~0u, p, len);
}
