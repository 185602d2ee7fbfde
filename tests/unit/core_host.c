// SPDX-License-Identifier: MIT
/*
 * core_host.c - see core_host.h
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "core_host.h"
#include "../../kmod/core/promote.h"
#include "../../kmod/core/priv.h"

u64 host_rand(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

u32 host_below(u64 *state, u32 n)
{
	return (host_rand(state) >> 32) * n >> 32;
}

void host_init(struct host *h, u64 seed)
{
	memset(h, 0, sizeof(*h));
	h->e = hawk_engine_create();
	assert_non_null(h->e);
	h->rng = seed;
	h->plan.move = h->plan_move;
}

void host_fini(struct host *h)
{
	u32 t;

	assert_int_equal(h->nmoves, 0);
	host_clean(h, ~0u);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (h->tier[t].mem)
			host_tier_end(h, t);
	hawk_engine_destroy(h->e);
}

u32 host_tier(struct host *h, u32 kind, u32 chunks)
{
	u32 t;

	assert_int_equal(hawk_tier_add(h->e, kind, chunks, &t), 0);
	h->tier[t].kind = kind;
	h->tier[t].chunks = chunks;
	h->tier[t].mem = mmap(NULL, (size_t)chunks * HAWK_CHUNK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(h->tier[t].mem != MAP_FAILED);
	return t;
}

void host_tier_end(struct host *h, u32 tier)
{
	assert_int_equal(hawk_tier_remove(h->e, tier), 0);
	munmap(h->tier[tier].mem, (size_t)h->tier[tier].chunks * HAWK_CHUNK_BYTES);
	h->tier[tier].mem = NULL;
}

int host_try_space(struct host *h, struct hawk_space_params *p, struct hawk_space **s)
{
	u64 bytes = hawk_vtlb_bytes(p->max_blocks);
	int ret;

	p->vtlb = aligned_alloc(64, bytes);
	assert_non_null(p->vtlb);
	memset(p->vtlb, 0, bytes);
	ret = hawk_space_create(h->e, p, s);
	if (ret)
		free(p->vtlb);
	return ret;
}

struct hawk_space *host_space(struct host *h, struct hawk_space_params *p)
{
	struct hawk_space *s;

	assert_int_equal(host_try_space(h, p, &s), 0);
	return s;
}

void host_space_end(struct host *h, struct hawk_space *s)
{
	struct hawk_vtlb_entry *vtlb = s->vtlb;

	host_drain(h);
	host_check(s);
	hawk_space_destroy(s);
	free(vtlb);
}

static void grant_at_once(struct hawk_space *s, const struct hawk_grant *g)
{
	hawk_space_grown(s, g, true);
}

void (*host_grant)(struct hawk_space *s, const struct hawk_grant *g) = grant_at_once;

bool host_grew(struct hawk_space *s, int ret)
{
	struct hawk_grant g;

	if (ret != -ENOBUFS)
		return false;
	if (!hawk_space_grow(s, &g))
		host_grant(s, &g);
	return true;
}

int host_block_alloc(struct hawk_space *s, u64 lid, const u8 *key, u32 tier, u64 now,
		     struct hawk_plan *plan, u64 *vt)
{
	int ret;

	do {
		ret = hawk_block_alloc(s, lid, key, tier, now, plan, vt);
	} while (host_grew(s, ret));
	return ret;
}

int host_block_reload(struct hawk_space *s, u64 lid, u32 tier, u64 now, struct hawk_plan *plan)
{
	int ret;

	do {
		ret = hawk_block_reload(s, lid, tier, now, plan);
	} while (host_grew(s, ret));
	return ret;
}

int host_block_unshare(struct hawk_space *s, u64 lid, u64 now, struct hawk_plan *plan,
		       u64 *vt, struct hawk_ref *ref)
{
	int ret;

	do {
		ret = hawk_block_unshare(s, lid, now, plan, vt, ref);
	} while (host_grew(s, ret));
	return ret;
}

int host_space_writeback(struct hawk_space *s, u32 tier, u32 want, struct hawk_plan *plan)
{
	u32 first = plan->n;
	int ret;

	do {
		ret = hawk_space_writeback(s, tier, want, 0, plan);
	} while (host_grew(s, ret));
	return plan->n - first;
}

void host_clean(struct host *h, u32 max)
{
	u32 t, n, c;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		for (n = 0, c = HAWK_NONE; h->tier[t].mem && n < max; n++) {
			c = hawk_tier_next_dirty(h->e, t, c);
			if (c == HAWK_NONE)
				break;
			madvise(h->tier[t].mem + (size_t)c * HAWK_CHUNK_BYTES, HAWK_CHUNK_BYTES,
				MADV_DONTNEED);
			hawk_tier_clean(h->e, t, c);
		}
}

/* ---- moves ---- */

struct hawk_plan *host_plan(struct host *h, u32 max)
{
	h->plan.n = 0;
	h->plan.max = max < HOST_PLAN ? max : HOST_PLAN;
	return &h->plan;
}

static u64 *tag_at(struct host *h, u32 tier, u64 off)
{
	assert_true(off < (u64)h->tier[tier].chunks * HAWK_CHUNK_BYTES);
	return (u64 *)(h->tier[tier].mem + off);
}

static void move_copy(struct host *h, struct host_move *hm)
{
	struct hawk_move *m = &hm->m;
	u64 last = m->space->block_bytes - sizeof(u64);
	u64 *src = tag_at(h, m->src_tier, m->src_off);
	u64 crc = *src ^ *src >> 32;

	*tag_at(h, m->dst_tier, m->dst_off) = *src;
	*tag_at(h, m->dst_tier, m->dst_off + last) = *tag_at(h, m->src_tier, m->src_off + last);
	if (m->kind == HAWK_MOVE_WRITE)
		m->crc = crc;
	else if (m->kind == HAWK_MOVE_READ)
		assert_int_equal(m->crc, (u32)crc);
	hm->copied = true;
}

void host_submit(struct host *h)
{
	u32 i;

	for (i = 0; i < h->plan.n; i++) {
		struct host_move *hm = &h->move[h->nmoves++];

		assert_true(h->nmoves < HOST_MOVES);
		hm->m = h->plan.move[i];
		hm->copied = false;
		/* some bytes travel early and some late: both frames must hold */
		if (host_below(&h->rng, 2))
			move_copy(h, hm);
	}
	h->plan.n = 0;
}

static int move_fate(struct host *h, struct hawk_move *m)
{
	if (m->kind == HAWK_MOVE_COPY || host_below(&h->rng, 1000) >= h->fail_permille)
		return 0;
	switch (host_below(&h->rng, 3)) {
	case 0:
		return -EIO;
	case 1:
		return -ECANCELED;
	default:
		return m->kind == HAWK_MOVE_READ ? -EILSEQ : -EIO;
	}
}

bool host_step(struct host *h)
{
	struct host_move hm;
	u32 i;

	if (!h->nmoves)
		return false;
	i = host_below(&h->rng, h->nmoves);
	hm = h->move[i];
	h->move[i] = h->move[--h->nmoves];
	hm.m.result = move_fate(h, &hm.m);
	if (!hm.m.result && !hm.copied)
		move_copy(h, &hm);
	hawk_move_complete(&hm.m);
	if (h->done)
		h->done(h->arg, &hm.m);
	return true;
}

void host_drain(struct host *h)
{
	while (host_step(h))
		;
}

void host_run(struct host *h)
{
	host_submit(h);
	host_drain(h);
}

/* ---- content ---- */

void host_write(struct host *h, struct hawk_space *s, u64 vt, u64 tag)
{
	u32 tier = HAWK_VT_TIER(vt);
	u64 off = hawk_frame_off(s, tier, HAWK_VT_FRAME(vt));

	*tag_at(h, tier, off) = tag;
	*tag_at(h, tier, off + s->block_bytes - sizeof(u64)) = ~tag;
}

u64 host_read(struct host *h, struct hawk_space *s, u64 vt)
{
	u32 tier = HAWK_VT_TIER(vt);
	u64 off = hawk_frame_off(s, tier, HAWK_VT_FRAME(vt));
	u64 tag;

	assert_true(vt & HAWK_VT_VALID);
	tag = *tag_at(h, tier, off);
	if (tag)
		assert_int_equal(*tag_at(h, tier, off + s->block_bytes - sizeof(u64)), ~tag);
	return tag;
}

void host_check(struct hawk_space *s)
{
	char why[64] = "";

	if (hawk_space_check(s, why, sizeof(why)))
		fail_msg("hawk_space_check: %s", why);
}

int host_alloc(struct host *h, struct hawk_space *s, u64 lid, const u8 *key, u64 now, u64 *vt)
{
	u32 tries = 0;
	int ret;

	for (;;) {
		ret = host_block_alloc(s, lid, key, HAWK_TIER_ANY, now, host_plan(h, HOST_PLAN),
				       vt);
		if (ret != -EAGAIN)
			return ret;
		assert_true(tries++ < 100);
		host_run(h);
	}
}

int host_fill(struct host *h, struct hawk_space *s, u64 lid, const u8 *key, u64 tag, u64 now)
{
	u64 vt;
	int ret = host_alloc(h, s, lid, key, now, &vt);

	if (ret)
		return ret;
	host_write(h, s, vt, tag);
	return hawk_block_put(s, lid, key, false, now);
}

int host_reload(struct host *h, struct hawk_space *s, u64 lid, u64 now)
{
	u32 tries = 0;
	int ret;

	for (;;) {
		ret = host_block_reload(s, lid, HAWK_TIER_ANY, now, host_plan(h, HOST_PLAN));
		if (ret != -EAGAIN && ret != -EINPROGRESS)
			return ret;
		assert_true(tries++ < 100);
		host_run(h);
	}
}

const u8 *host_key(u8 *key, u64 nr)
{
	u32 i;

	for (i = 0; i < HAWK_KEY_BYTES; i += sizeof(nr))
		memcpy(key + i, &nr, sizeof(nr));
	return key;
}

void host_promote(struct host *h, struct hawk_space *s, u64 lid, u64 now)
{
	struct hawk_phase ph = { .flags = HAWK_PHASE_PREFILL, .until_ns = now + 2 };
	struct hawk_read r;

	if (!hawk_block_read(s, lid, now, &r))
		hawk_block_read_end(s, &r, false);
	assert_int_equal(hawk_space_phase(s, &ph, now), 0);
	if (h->nmoves > HOST_MOVES - HOST_PLAN - 1 || host_below(&h->rng, 3))
		return;
	hawk_promote_next(s, host_plan(h, 1 + host_below(&h->rng, 4)), now);
	host_submit(h);
}
