/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * fixed.h - numbers that are not whole: unsigned Q32.32
 *
 * The kernel has no floating point.  A value v stands for v / 2^32; results that do not
 * fit stop at HAWK_FX_MAX.
 */
#ifndef HAWK_CORE_FIXED_H
#define HAWK_CORE_FIXED_H

#include "port.h"

#define HAWK_FX_ONE	(1ull << 32)
#define HAWK_FX_MAX	(~0ull)

/* @a * @b, rounded down. */
static inline u64 hawk_fx_mul(u64 a, u64 b)
{
	u64 ah = a >> 32, al = a & 0xffffffffu, bh = b >> 32, bl = b & 0xffffffffu, sum;

	if (ah * bh >> 32)
		return HAWK_FX_MAX;
	if (check_add_overflow(ah * bh << 32, ah * bl, &sum) ||
	    check_add_overflow(sum, al * bh, &sum) ||
	    check_add_overflow(sum, al * bl >> 32, &sum))
		return HAWK_FX_MAX;
	return sum;
}

/* @a / @b of whole numbers as Q32.32; of @b the upper 31 bits count. */
static inline u64 hawk_fx_ratio(u64 a, u64 b)
{
	u32 shift;
	u64 whole;

	if (!b)
		return HAWK_FX_MAX;
	shift = 63 - __builtin_clzll(b);
	shift = shift > 30 ? shift - 30 : 0;
	a >>= shift;
	b >>= shift;
	if (a < HAWK_FX_ONE)
		return div_u64(a << 32, b);
	whole = div_u64(a, b);
	return whole < HAWK_FX_ONE ? (whole << 32) + div_u64((a - whole * b) << 32, b) :
				     HAWK_FX_MAX;
}

/*
 * e^-@x.  A power of two by shifting, what is left of the exponent by a table of 2^(-i / 32)
 * with straight lines between: off by less than 1/10000 as long as the result has the bits,
 * which it has up to @x = 12; 0 from 22.2 on.
 */
static inline u64 hawk_fx_exp_neg(u64 x)
{
	static const u64 pow2[33] = {
	0x100000000ull, 0x0fa83b2dbull, 0x0f5257d15ull, 0x0efe4b99cull,
	0x0eac0c6e8ull, 0x0e5b906e7ull, 0x0e0ccdeecull, 0x0dbfbb798ull,
	0x0d744fccbull, 0x0d2a81d92ull, 0x0ce248c15ull, 0x0c9b9bd86ull,
	0x0c5672a11ull, 0x0c12c4ccaull, 0x0bd08a39full, 0x0b8fbaf47ull,
	0x0b504f334ull, 0x0b123f582ull, 0x0ad583eeaull, 0x0a9a15ab5ull,
	0x0a5fed6aaull, 0x0a2704303ull, 0x09ef53261ull, 0x09b8d39baull,
	0x09837f052ull, 0x094f4efa9ull, 0x091c3d374ull, 0x08ea4398bull,
	0x08b95c1e4ull, 0x088980e81ull, 0x085aac368ull, 0x082cd8699ull,
	0x080000000ull,
	};
	u64 e = hawk_fx_mul(x, 0x171547653ull), step, left;	/* x * log2(e) */
	u32 i;

	if (e >> 32 >= 32)
		return 0;
	i = (u32)e >> 27;
	left = e & ((1u << 27) - 1);
	step = pow2[i] - pow2[i + 1];
	return (pow2[i] - (step * left >> 27)) >> (e >> 32);
}

/* Which eighth of which octave: grows with @v; 0 for 0 and 1. */
static inline u32 hawk_fx_octave8(u64 v)
{
	u32 n = 63 - __builtin_clzll(v | 1);

	return n * 8 + (u32)(n >= 3 ? v >> (n - 3) : v << (3 - n)) % 8;
}

/* The least value of an eighth of an octave. */
static inline u64 hawk_fx_from8(u32 octave8)
{
	u32 n = octave8 / 8;
	u64 m = 8 + octave8 % 8;

	return n >= 3 ? m << (n - 3) : m >> (3 - n);
}

#endif /* HAWK_CORE_FIXED_H */
