// SPDX-License-Identifier: MIT
/*
 * translate.c - LID to frame to address, without a system call
 */
#include <stddef.h>

#include "../kmod/core/lid.h"
#include "priv.h"

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

/*
 * The way of line @e that holds @lid, if one does; its lid may be a stale one.  No
 * branch depends on which way it is: that cannot be predicted, and a wrong guess
 * would undo the overlap of this look-up's cache miss with the next one's.
 */
static inline unsigned int line_way(const struct hawk_vtlb_entry *e, uint64_t lid)
{
	_Static_assert(HAWK_VT_WAYS == 4, "written out below, or compilers make it a loop");
	unsigned int w1 = __atomic_load_n(&e[1].lid, __ATOMIC_RELAXED) == lid;
	unsigned int w2 = __atomic_load_n(&e[2].lid, __ATOMIC_RELAXED) == lid;
	unsigned int w3 = __atomic_load_n(&e[3].lid, __ATOMIC_RELAXED) == lid;

	return w1 | 2 * w2 | 3 * w3;
}

/*
 * Every way that may hold @lid, one by one: it is not in its first line, or behind
 * a stale double there, or absent.  Out of line, to keep the usual case short: the
 * fewer instructions a look-up takes, the more cache misses are under way at once.
 */
static __attribute__((noinline)) uint64_t translate_scan(const struct hawk_kv *kv, uint64_t lid,
							 uint64_t line)
{
	uint64_t vt, mask = kv->vtlb_lines - 1;
	unsigned int i;

	for (i = 0; i < HAWK_VT_PROBE * HAWK_VT_WAYS; i++) {
		vt = entry_read(kv->vtlb + ((line + i / HAWK_VT_WAYS) & mask) * HAWK_VT_WAYS +
				i % HAWK_VT_WAYS, lid);
		if (vt)
			return vt;
	}
	return 0;
}

static inline uint64_t first_line(const struct hawk_kv *kv, uint64_t lid)
{
	return hawk_mix(lid) & (kv->vtlb_lines - 1);
}

/* @lid is that of a block, @line its first line. */
static inline uint64_t translate_at(const struct hawk_kv *kv, uint64_t lid, uint64_t line)
{
	const struct hawk_vtlb_entry *e = kv->vtlb + line * HAWK_VT_WAYS;
	uint64_t vt = entry_read(e + line_way(e, lid), lid);

	if (__builtin_expect(vt != 0, 1))
		return vt;
	return translate_scan(kv, lid, line);
}

uint64_t hawk_translate(struct hawk_kv *kv, uint64_t lid)
{
	lid = block_lid(kv, lid);
	return translate_at(kv, lid, first_line(kv, lid));
}

/* Cache lines asked for before the first one is used: as many as a core waits for. */
#define TRANSLATE_AHEAD	16

unsigned int hawk_translate_batch(struct hawk_kv *kv, const uint64_t *lid, uint64_t *vt,
				  unsigned int n)
{
	uint64_t block[TRANSLATE_AHEAD], line[TRANSLATE_AHEAD];
	unsigned int i, k, found = 0;

	for (; n; n -= k, lid += k, vt += k) {
		k = n < TRANSLATE_AHEAD ? n : TRANSLATE_AHEAD;
		for (i = 0; i < k; i++) {
			block[i] = block_lid(kv, lid[i]);
			line[i] = first_line(kv, block[i]);
			__builtin_prefetch(kv->vtlb + line[i] * HAWK_VT_WAYS);
		}
		for (i = 0; i < k; i++) {
			vt[i] = translate_at(kv, block[i], line[i]);
			found += vt[i] != 0;
		}
	}
	return found;
}

void *hawk_addr(struct hawk_kv *kv, uint64_t vt)
{
	unsigned int t = HAWK_VT_TIER(vt);
	uint32_t frame = HAWK_VT_FRAME(vt);

	if (!(vt & HAWK_VT_VALID) || t >= HAWK_TIERS_MAX || frame >= kv->frames[t])
		return NULL;
	return kv->window[t] + (uint64_t)frame * kv->block_bytes;
}
