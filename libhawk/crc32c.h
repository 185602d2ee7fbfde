/* SPDX-License-Identifier: MIT */
#ifndef HAWK_CRC32C_H
#define HAWK_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** hawk_crc32c() - CRC32C (Castagnoli, RFC 3720) of @len bytes at @p */
uint32_t hawk_crc32c(const void *p, size_t len);

/** hawk_crc32c_more() - its state @crc after @len more bytes; ~0 to begin, inverted at the end */
uint32_t hawk_crc32c_more(uint32_t crc, const void *p, size_t len);

enum hawk_crc32c_how {
	HAWK_CRC32C_TABLE,	/* any CPU */
	HAWK_CRC32C_RUNS,	/* SSE4.2: three runs side by side */
	HAWK_CRC32C_FOLD,	/* AVX-512 and VPCLMULQDQ */
};

/** hawk_crc32c_by() - the same in a given way, for tests; false: the CPU does not know it */
bool hawk_crc32c_by(enum hawk_crc32c_how how, const void *p, size_t len, uint32_t *crc);

#endif /* HAWK_CRC32C_H */
