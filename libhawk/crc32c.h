/* SPDX-License-Identifier: MIT */
#ifndef HAWK_CRC32C_H
#define HAWK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/** hawk_crc32c() - CRC32C (Castagnoli, RFC 3720) of @len bytes at @p */
uint32_t hawk_crc32c(const void *p, size_t len);

/** hawk_crc32c_more() - its state @crc after @len more bytes; ~0 to begin, inverted at the end */
uint32_t hawk_crc32c_more(uint32_t crc, const void *p, size_t len);

/** hawk_crc32c_table() - the same without CPU instructions for it */
uint32_t hawk_crc32c_table(const void *p, size_t len);

#endif /* HAWK_CRC32C_H */
