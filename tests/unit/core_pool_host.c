// SPDX-License-Identifier: MIT
/*
 * core_pool_host.c - see core_pool_host.h
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "core_pool_host.h"
#include "../../libhawk/crc32c.h"

/* ---- the drive ---- */

static void *map(u64 bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

void drive_init(struct drive *d, u64 bytes, u64 seed)
{
	memset(d, 0, sizeof(*d));
	d->bytes = bytes;
	d->media = map(bytes);
	d->now = map(bytes);
	d->dirty = map(bytes / PH_SECTOR * sizeof(*d->dirty));
	d->listed = map(bytes / PH_SECTOR);
	d->rng = seed;
	d->writes_left = -1;
}

void drive_fini(struct drive *d)
{
	munmap(d->media, d->bytes);
	munmap(d->now, d->bytes);
	munmap(d->dirty, d->bytes / PH_SECTOR * sizeof(*d->dirty));
	munmap(d->listed, d->bytes / PH_SECTOR);
}

static void copy_sector(u8 *to, const u8 *from, u32 sector)
{
	memcpy(to + (u64)sector * PH_SECTOR, from + (u64)sector * PH_SECTOR, PH_SECTOR);
}

void drive_write(struct drive *d, u64 off, const void *p, u32 bytes)
{
	u32 s;

	assert_true(!(off % PH_SECTOR) && !(bytes % PH_SECTOR) && off + bytes <= d->bytes);
	if (!d->writes_left)
		d->dead = true;
	if (d->dead)
		return;
	d->writes_left -= d->writes_left > 0;
	d->pages += (bytes + HAWK_POOL_PAGE - 1) / HAWK_POOL_PAGE;
	memcpy(d->now + off, p, bytes);
	for (s = off / PH_SECTOR; s < (off + bytes) / PH_SECTOR; s++)
		if (!d->listed[s]) {
			d->listed[s] = 1;
			d->dirty[d->ndirty++] = s;
		}
}

static void settle(struct drive *d, bool lose)
{
	u32 i, s;

	for (i = 0; i < d->ndirty; i++) {
		s = d->dirty[i];
		d->listed[s] = 0;
		if (lose && host_below(&d->rng, 2))
			copy_sector(d->now, d->media, s);
		else
			copy_sector(d->media, d->now, s);
	}
	d->ndirty = 0;
}

void drive_flush(struct drive *d)
{
	if (!d->dead)
		settle(d, false);
}

void drive_power_cut(struct drive *d)
{
	settle(d, true);
	d->dead = false;
	d->writes_left = -1;
}

/* ---- the pool ---- */

static void super_write(struct pool_host *h, u32 copy)
{
	u8 page[HAWK_POOL_PAGE];

	hawk_super_encode(&h->super, page);
	drive_write(&h->d, hawk_super_copy_off(copy), page, sizeof(page));
	drive_flush(&h->d);
}

void ph_format(struct pool_host *h, u32 chunks, u64 seed)
{
	u32 i;

	memset(h, 0, sizeof(*h));
	h->super.slot_bytes = PH_BLOCK;
	/* all else fits into one, but for the last page */
	h->super.bytes = (chunks + 1ull) * HAWK_CHUNK_BYTES + HAWK_POOL_PAGE;
	for (i = 0; i < sizeof(h->super.uuid); i++)
		h->super.uuid[i] = host_rand(&seed);
	assert_int_equal(hawk_super_layout(&h->super), 0);
	assert_int_equal(h->super.chunks, chunks);
	drive_init(&h->d, h->super.bytes, seed);
	super_write(h, 0);
	super_write(h, 1);
	h->plan.move = h->move;
	h->plan.max = ARRAY_SIZE(h->move);
}

static int super_read(struct pool_host *h)
{
	struct hawk_super s[2];
	int err[2], ret;
	u32 i;

	for (i = 0; i < 2; i++)
		err[i] = hawk_super_decode(h->d.now + hawk_super_copy_off(i), &s[i]);
	ret = hawk_super_choose(err, s);
	if (ret >= 0)
		h->super = s[ret];
	return ret < 0 ? ret : 0;
}

static void records_load(struct pool_host *h)
{
	struct hawk_record r;
	u32 c;

	hawk_pool_unread(h->e, h->flash, 0, h->unread);
	for (c = h->unread; c < h->super.chunks; c++)
		if (!hawk_record_decode(h->d.now + hawk_record_off(&h->super, c),
					hawk_pool_id(&h->super), c, &r))
			assert_int_equal(hawk_pool_load(h->e, h->flash, &r), 0);
	hawk_pool_loaded(h->e, h->flash);
}

int ph_open(struct pool_host *h, u32 dram_chunks)
{
	int ret = super_read(h);

	if (ret)
		return ret;
	h->super.seq++;
	h->super.clean = false;
	super_write(h, 0);
	super_write(h, 1);
	h->e = hawk_engine_create();
	assert_non_null(h->e);
	h->dram_chunks = dram_chunks;
	h->mem = map((u64)dram_chunks * HAWK_CHUNK_BYTES);
	assert_int_equal(hawk_tier_add(h->e, HAWK_TIER_HOST, dram_chunks, &h->dram), 0);
	assert_int_equal(hawk_tier_add(h->e, HAWK_TIER_BLK, h->super.chunks, &h->flash), 0);
	assert_int_equal(hawk_pool_open(h->e, h->flash, &h->super, h->now), 0);
	records_load(h);
	return 0;
}

void ph_close(struct pool_host *h, bool clean)
{
	if (clean) {
		ph_clean(h);
		drive_flush(&h->d);
		h->super.clean = true;
		super_write(h, 0);
		super_write(h, 1);
		assert_int_equal(hawk_tier_remove(h->e, h->dram), 0);
		assert_int_equal(hawk_tier_remove(h->e, h->flash), 0);
	}
	hawk_engine_destroy(h->e);
	munmap(h->mem, (u64)h->dram_chunks * HAWK_CHUNK_BYTES);
	h->e = NULL;
}

void ph_free(struct pool_host *h)
{
	drive_fini(&h->d);
}

/* ---- records ---- */

static void record_write(struct pool_host *h, const struct hawk_record *r)
{
	u64 off = hawk_record_off(&h->super, r->chunk);
	u64 first = off - off % PH_SECTOR;
	u8 sector[PH_SECTOR];

	memcpy(sector, h->d.now + first, sizeof(sector));
	hawk_record_encode(r, hawk_pool_id(&h->super), sector + off % PH_SECTOR);
	drive_write(&h->d, first, sector, sizeof(sector));
}

bool ph_grew(struct pool_host *h, struct hawk_space *s, int ret)
{
	struct hawk_record r;
	struct hawk_grant g;

	if (ret != -ENOBUFS)
		return false;
	if (hawk_space_grow(s, &g))
		return true;
	if (hawk_grant_record(s, &g, &r)) {
		record_write(h, &r);
		drive_flush(&h->d);
	}
	hawk_space_grown(s, &g, true);
	return true;
}

static void clean_dram(struct pool_host *h)
{
	u32 c = HAWK_NONE;

	while ((c = hawk_tier_next_dirty(h->e, h->dram, c)) != HAWK_NONE)
		hawk_tier_clean(h->e, h->dram, c);
}

void ph_clean(struct pool_host *h)
{
	struct hawk_record r = { 0 };
	u32 c = HAWK_NONE;

	clean_dram(h);
	while ((c = hawk_tier_next_dirty(h->e, h->flash, c)) != HAWK_NONE) {
		r.chunk = c;
		if (hawk_pool_chunk_kept(h->e, h->flash, c))
			record_write(h, &r);
		hawk_tier_clean(h->e, h->flash, c);
	}
}

/* ---- spaces ---- */

struct hawk_space_params ph_params(struct pool_host *h, const char *name,
				   struct hawk_identity *id)
{
	struct hawk_space_params p = {
		.block_bytes = PH_BLOCK, .block_tokens = PH_TOKENS, .buckets = 1,
		.max_blocks = 1024, .identity = id,
	};

	memset(id, 0, sizeof(*id));
	memcpy(id->name, name, strlen(name));
	id->block_bytes = PH_BLOCK;
	id->block_tokens = PH_TOKENS;
	id->layers = 4;
	id->head_groups = 2;
	p.quota_max[h->dram] = h->dram_chunks;
	p.quota_max[h->flash] = h->super.chunks;
	return p;
}

static void adopt(struct pool_host *h, struct hawk_space *s)
{
	struct hawk_record r;
	u32 c = HAWK_NONE;

	while ((c = hawk_pool_next_orphan(s, h->flash, c)) != HAWK_NONE) {
		assert_int_equal(hawk_record_decode(h->d.now + hawk_record_off(&h->super, c),
						    hawk_pool_id(&h->super), c, &r), 0);
		hawk_space_adopt(s, h->flash, &r, h->d.now + hawk_header_off(&h->super, c),
				 ++h->now);
	}
	assert_int_equal(hawk_space_settle(s), 0);
	host_check(s);
}

int ph_try_space(struct pool_host *h, struct hawk_space_params *p, struct hawk_space **s)
{
	u64 bytes = hawk_vtlb_bytes(p->max_blocks);
	int ret;

	p->vtlb = aligned_alloc(64, bytes);
	assert_non_null(p->vtlb);
	memset(p->vtlb, 0, bytes);
	ret = hawk_space_create(h->e, p, s);
	if (ret)
		free(p->vtlb);
	else
		adopt(h, *s);
	return ret;
}

struct hawk_space *ph_space(struct pool_host *h, const char *name)
{
	struct hawk_identity id;
	struct hawk_space_params p = ph_params(h, name, &id);
	struct hawk_space *s;

	assert_int_equal(ph_try_space(h, &p, &s), 0);
	return s;
}

void ph_space_kill(struct pool_host *h, struct hawk_space *s)
{
	struct hawk_vtlb_entry *vtlb = s->vtlb;

	host_check(s);
	hawk_space_destroy(s);
	free(vtlb);
	clean_dram(h);
}

void ph_space_end(struct pool_host *h, struct hawk_space *s)
{
	ph_commit(h, s);
	drive_flush(&h->d);
	ph_space_kill(h, s);
}

void ph_ancestors(struct pool_host *h, struct hawk_space *s)
{
	u32 cursor = 0, rounds = 0;
	int ret;

	do {
		ret = hawk_keep_ancestors(s, &cursor, ++h->now, &h->plan);
		ph_run(h);
		assert_true(rounds++ < 1000);
	} while (ph_grew(h, s, ret) || ret >= 0);
}

void ph_commit(struct pool_host *h, struct hawk_space *s)
{
	static u8 buf[8 * HAWK_POOL_PAGE];
	struct hawk_keep_page page[8];
	u32 cursor = 0, n, i;

	do {
		n = hawk_keep_collect(s, h->flash, &cursor, buf, page, 8);
		drive_flush(&h->d);
		for (i = 0; i < n; i++)
			drive_write(&h->d, page[i].off, buf + i * HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	} while (n == 8);
}

/* ---- moves ---- */

static void move_make(struct pool_host *h, struct hawk_move *m)
{
	u8 *flash = h->d.now + h->super.data_off;

	m->result = 0;
	switch (m->kind) {
	case HAWK_MOVE_WRITE:
		m->crc = hawk_crc32c(h->mem + m->src_off, PH_BLOCK);
		drive_write(&h->d, h->super.data_off + m->dst_off, h->mem + m->src_off, PH_BLOCK);
		break;
	case HAWK_MOVE_READ:
		memcpy(h->mem + m->dst_off, flash + m->src_off, PH_BLOCK);
		if (hawk_crc32c(h->mem + m->dst_off, PH_BLOCK) != m->crc)
			m->result = -EILSEQ;
		break;
	default:
		memcpy(h->mem + m->dst_off, h->mem + m->src_off, PH_BLOCK);
	}
	hawk_move_complete(m);
}

void ph_run(struct pool_host *h)
{
	u32 i;

	for (i = 0; i < h->plan.n; i++)
		move_make(h, &h->plan.move[i]);
	h->plan.n = 0;
}

void ph_write_all(struct pool_host *h, struct hawk_space *s)
{
	int ret, idle = 0;

	while (idle < 4) {
		ret = hawk_space_writeback(s, h->dram, 1024, h->now, &h->plan);
		idle = ret || h->plan.n ? 0 : idle + 1;
		ph_run(h);
		ph_grew(h, s, ret);
	}
}

/* ---- blocks ---- */

void ph_key(u8 *key, u32 n)
{
	host_key(key, 0x100000000ull + n);
}

/* A long run has more versions than there are numbers of sequences, and 0 is nobody's. */
u64 ph_lid(u32 n, u32 ver)
{
	return HAWK_LID((ver - 1) % HAWK_LID_SEQ_MAX + 1, n % 4, n / 4 % 2, n / 8 * PH_TOKENS);
}

/* The first one tells the version. */
static u64 word(u32 n, u32 ver, u32 i)
{
	u64 id = (u64)n << 32 | ver;

	return i ? id * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull : id;
}

static u8 *bytes_at(struct pool_host *h, struct hawk_space *s, u64 vt)
{
	assert_int_equal(HAWK_VT_TIER(vt), h->dram);
	return h->mem + hawk_frame_off(s, h->dram, HAWK_VT_FRAME(vt));
}

int ph_put(struct pool_host *h, struct hawk_space *s, u32 n, u32 ver, u32 parent)
{
	u8 key[HAWK_KEY_BYTES], up[HAWK_KEY_BYTES];
	u32 i, tries = 0;
	u64 vt, *w;
	int ret;

	do {
		ph_run(h);
		ret = hawk_block_alloc(s, ph_lid(n, ver), NULL, HAWK_TIER_ANY, ++h->now, &h->plan,
				       &vt);
		assert_true(tries++ < 1000);
	} while (ph_grew(h, s, ret) || ret == -EAGAIN);
	if (ret)
		return ret;
	w = (u64 *)bytes_at(h, s, vt);
	for (i = 0; i < PH_BLOCK / 8; i++)
		w[i] = word(n, ver, i);
	ph_key(key, n);
	ph_key(up, parent);
	ret = hawk_block_hint(s, ph_lid(n, ver), parent == n ? HAWK_ITEM_ROOT : HAWK_ITEM_PARENT |
			      HAWK_ITEM_TURN(n), up);
	assert_int_equal(ret, 0);
	return hawk_block_put(s, ph_lid(n, ver), key, false, ++h->now);
}

/* The version whose bytes these are. */
static u32 version_of(const u64 *w, u32 n)
{
	u32 i, ver = (u32)w[0];

	for (i = 0; i < PH_BLOCK / 8; i++)
		if (w[i] != word(n, ver, i))
			fail_msg("block %u has bytes that nobody put under its key", n);
	return ver;
}

u32 ph_get(struct pool_host *h, struct hawk_space *s, u32 n)
{
	struct hawk_ref ref;
	u8 key[HAWK_KEY_BYTES];
	u32 ver, tries = 0;
	u64 lid, vt;
	int ret;

	ph_key(key, n);
	if (hawk_block_find(s, key, false, ++h->now, &lid, &vt, &ref))
		return 0;
	do {
		ph_run(h);
		ret = hawk_block_reload(s, lid, HAWK_TIER_ANY, h->now, &h->plan);
		assert_true(tries++ < 1000);
	} while (ph_grew(h, s, ret) || ret == -EAGAIN || ret == -EINPROGRESS);
	if (ret)
		return 0;
	assert_int_equal(hawk_block_pin(s, lid, h->now, &vt, &ref), 0);
	ver = version_of((const u64 *)bytes_at(h, s, vt), n);
	hawk_block_unpin(s, ref);
	return ver;
}
