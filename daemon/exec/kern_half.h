/* SPDX-License-Identifier: MIT */
/* Half-precision conversions in portable C, bit for bit as F16C does them. */
#ifndef HAWK_KERN_HALF_H
#define HAWK_KERN_HALF_H

#include <stdint.h>
#include <string.h>

static inline float bits_to_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint32_t float_to_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static inline float f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t mag = h & 0x7fff;

	if (mag >= 0x7c00) /* infinity, NaN (made quiet) */
		return bits_to_float(sign | 0x7f800000 | (mag & 0x3ff) << 13 |
				     (mag > 0x7c00 ? 0x400000 : 0));
	if (mag < 0x0400) /* subnormal: mag * 2^-24, exact */
		return bits_to_float(sign | float_to_bits(mag * 0x1p-24f));
	return bits_to_float(sign | ((mag << 13) + ((127 - 15) << 23)));
}

static inline uint16_t f32_to_f16(float f)
{
	uint32_t u = float_to_bits(f);
	uint16_t sign = (u >> 16) & 0x8000;
	uint32_t mag = u & 0x7fffffff;

	if (mag > 0x7f800000) /* NaN */
		return sign | 0x7e00 | ((mag >> 13) & 0x3ff);
	if (mag >= 0x477ff000) /* rounds beyond 65504 */
		return sign | 0x7c00;
	if (mag < 0x38800000) { /* subnormal result */
		/* adding 0.5 leaves the rounded value in the low bits */
		float r = bits_to_float(mag) + 0.5f;

		return sign | (float_to_bits(r) - 0x3f000000);
	}
	mag += 0xfff + ((mag >> 13) & 1); /* round to nearest even */
	return sign | ((mag - ((127 - 15) << 23)) >> 13);
}

#endif
