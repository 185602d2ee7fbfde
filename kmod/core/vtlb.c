// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * vtlb.c - the translation table that clients read without a lock
 *
 * The format is part of the ABI (uapi/hawk.h).  A LID's entry is written only
 * under the lock of its block's home bucket, so one writer at a time; different
 * LIDs contend for empty ways, which are claimed by compare-and-swap:
 *
 *	0 -> BUSY (claimed) -> VALID value (published) -> ... -> 0 (gone)
 *
 * A value is never repeated for another block: the frame's generation is in it.  A
 * LID keeps its way until it is gone, and knows it (hawk_map.way): only readers search.
 */
#include "priv.h"

u64 hawk_vtlb_bytes(u32 max_blocks)
{
	u64 n = 256;

	/* half full at most, as long as LIDs are not shared */
	while (n < 2ull * max_blocks)
		n <<= 1;
	return n * sizeof(struct hawk_vtlb_entry);
}

/* Line number @i (of HAWK_VT_PROBE) where a LID may live. */
static inline struct hawk_vtlb_entry *vtlb_line(const struct hawk_space *s, u64 hash, u32 i)
{
	return &s->vtlb[(((u32)hash + i) & s->vtlb_mask) * (size_t)HAWK_VT_WAYS];
}

static struct hawk_vtlb_entry *vtlb_find(const struct hawk_space *s, u64 lid)
{
	u64 hash = hawk_mix(lid);
	u32 i;

	for (i = 0; i < HAWK_VT_PROBE; i++) {
		struct hawk_vtlb_entry *e = vtlb_line(s, hash, i), *end = e + HAWK_VT_WAYS;

		for (; e < end; e++) {
			u64 val;

			if (hawk_load(&e->lid) != lid)
				continue;
			val = hawk_load_acquire(&e->val);
			if (!(val & HAWK_VT_VALID) || hawk_load(&e->lid) != lid)
				continue;
			/* the way may have changed hands between the two loads */
			hawk_rmb();
			if (hawk_load(&e->val) == val)
				return e;
		}
	}
	return NULL;
}

void hawk_vtlb_prefetch(struct hawk_space *s, u64 lid)
{
	hawk_prefetch(vtlb_line(s, hawk_mix(lid), 0));
}

/* Return: the entry that the LID has now, HAWK_NONE if there is no room. */
static u32 vtlb_add(struct hawk_space *s, u64 lid, u64 val)
{
	u64 hash = hawk_mix(lid);
	u32 i;

	for (i = 0; i < HAWK_VT_PROBE; i++) {
		struct hawk_vtlb_entry *e = vtlb_line(s, hash, i), *end = e + HAWK_VT_WAYS;

		for (; e < end; e++) {
			if (hawk_load(&e->val) || !hawk_cas64((u64 *)&e->val, 0, HAWK_VT_BUSY))
				continue;
			hawk_wmb();	/* who sees the LID sees that the old value is gone */
			hawk_store(&e->lid, lid);
			hawk_store_release(&e->val, val);
			return e - s->vtlb;
		}
	}
	return HAWK_NONE;	/* clients ask the device for this one */
}

/* @val is VALID: a way with 0 would be anybody's. */
void hawk_vtlb_set(struct hawk_space *s, struct hawk_map *m, u64 val)
{
	hawk_assert(val & HAWK_VT_VALID);
	if (m->way != HAWK_NONE)
		hawk_store_release(&s->vtlb[m->way].val, val);
	else
		m->way = vtlb_add(s, m->lid, val);
}

void hawk_vtlb_del(struct hawk_space *s, struct hawk_map *m)
{
	if (m->way == HAWK_NONE)
		return;
	hawk_store_release(&s->vtlb[m->way].val, 0);
	m->way = HAWK_NONE;
}

u64 hawk_vtlb_get(const struct hawk_space *s, u64 lid)
{
	struct hawk_vtlb_entry *e = vtlb_find(s, lid);

	return e ? hawk_load(&e->val) : 0;
}
