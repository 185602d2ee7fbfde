// SPDX-License-Identifier: MIT
/*
 * translate.c - LID to frame to address, without a system call
 */
#include <stddef.h>

#include "priv.h"

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= HAWK_MIX_A;
	x ^= x >> 33;
	x *= HAWK_MIX_B;
	x ^= x >> 33;
	return x;
}

/* The LID of the block that holds token tok of @lid. */
static inline uint64_t block_lid(const struct hawk_kv *kv, uint64_t lid)
{
	uint32_t tok = (uint32_t)lid, n = kv->block_tokens;

	return lid - (n & (n - 1) ? tok % n : tok & (n - 1));
}

/*
 * The two acquire loads keep the order val, lid, val: a val that is the same
 * before and after belongs to the lid between (a writer changes val to invalid
 * first, and a generation goes with each life).
 */
static inline uint64_t entry_read(const struct hawk_vtlb_entry *e, uint64_t lid)
{
	uint64_t val = __atomic_load_n(&e->val, __ATOMIC_ACQUIRE);

	if (!(val & HAWK_VT_VALID) || __atomic_load_n(&e->lid, __ATOMIC_ACQUIRE) != lid)
		return 0;
	return __atomic_load_n(&e->val, __ATOMIC_RELAXED) == val ? val : 0;
}

uint64_t hawk_translate(struct hawk_kv *kv, uint64_t lid)
{
	const struct hawk_vtlb_entry *e;
	uint64_t mask = kv->vtlb_lines - 1, line, vt;
	unsigned int p, w;

	lid = block_lid(kv, lid);
	line = mix(lid) & mask;
	for (p = 0; p < HAWK_VT_PROBE; p++, line = (line + 1) & mask) {
		e = kv->vtlb + line * HAWK_VT_WAYS;
		for (w = 0; w < HAWK_VT_WAYS; w++) {
			vt = entry_read(e + w, lid);
			if (vt)
				return vt;
		}
	}
	return 0;
}

void *hawk_addr(struct hawk_kv *kv, uint64_t vt)
{
	unsigned int t = HAWK_VT_TIER(vt);
	uint32_t frame = HAWK_VT_FRAME(vt);

	if (!(vt & HAWK_VT_VALID) || t >= HAWK_TIERS_MAX || frame >= kv->frames[t])
		return NULL;
	return kv->window[t] + (uint64_t)frame * kv->block_bytes;
}
