// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_fail_nth.c - failures of memory in calls for the device, for spaces, in mmap()
 */
#define _GNU_SOURCE
#include <poll.h>

#include "hawk_models.h"
#include "hawk_sweep.h"

/* ---- the device ---- */

static int other_open(env *e)
{
	e->other = dev_open(O_RDWR);
	return e->other < 0 ? -errno : 0;
}

static int other_close(env *e)
{
	if (e->other >= 0)
		close(e->other);
	e->other = -1;
	return 0;
}

SWEEP(open, .call = other_open, .undo = other_close)

static int query(env *e)
{
	struct hawk_query q = { .size = sizeof(q) };

	return dev_call(e->fd, HAWK_IOC_QUERY, &q);
}

SWEEP(query, .call = query)

static int tier_info(env *e)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = e->host };

	return dev_call(e->fd, HAWK_IOC_TIER_INFO, &info);
}

SWEEP(tier_info, .call = tier_info)

/* Removes all tiers but those of the fixture. */
static int tiers_undo(env *e)
{
	uint32_t more = tiers_of(e->ctl) & ~e->tiers, t;
	int ret = 0;

	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++)
		if (more & 1u << t)
			ret = tier_remove(e->ctl, t);
	return ret;
}

static int tier_add_host(env *e)
{
	uint32_t tier;

	return host_add(e->ctl, TIER_BYTES, &tier);
}

SWEEP(tier_add_host, .call = tier_add_host, .undo = tiers_undo)

static int tier_add_blk(env *e)
{
	uint32_t tier;

	return blk_add(e->ctl, e->path2, 0, &tier);
}

SWEEP(tier_add_blk, .call = tier_add_blk, .undo = tiers_undo)

static int tier_remove_new(env *e)
{
	uint32_t more = tiers_of(e->ctl) & ~e->tiers;

	return tier_remove(e->ctl, __builtin_ctz(more));
}

static int tier_import(env *e)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .kind = HAWK_TIER_DMABUF, .node = -1, .fd = e->other,
	};

	return dev_call(e->ctl, HAWK_IOC_TIER_ADD, &add);
}

/* The buffer stays with its descriptor: the exporter's file is not needed. */
static int buffer_make(env *e)
{
	struct hawk_exp_make mk = { .mib = TIER_BYTES >> 20 };
	int exp, ret = model_load("exporter", "");

	if (ret)
		return ret;
	exp = open("/dev/hawk-exporter", O_RDWR | O_CLOEXEC);
	ret = dev_call(exp, HAWK_EXP_IOC_MAKE, &mk);
	close(exp);
	e->other = mk.fd;
	return ret;
}

static int import_undo(env *e)
{
	int ret = tiers_undo(e);

	other_close(e);
	return ret;
}

SWEEP(tier_add_dmabuf, .prepare = buffer_make, .call = tier_import, .undo = import_undo)

static int buffer_import(env *e)
{
	return buffer_make(e) ?: tier_import(e);
}

SWEEP(tier_remove_dmabuf, .prepare = buffer_import, .call = tier_remove_new, .undo = import_undo)
SWEEP(tier_remove_host, .prepare = tier_add_host, .call = tier_remove_new, .undo = tiers_undo)
SWEEP(tier_remove_blk, .prepare = tier_add_blk, .call = tier_remove_new, .undo = tiers_undo)

/* ---- spaces ---- */

static int space_create(env *e)
{
	struct hawk_space_create sc = space_args(64);

	sc.quota[e->blk].max_bytes = FLASH_BYTES;
	return dev_call(e->other, HAWK_IOC_SPACE_CREATE, &sc);
}

SWEEP(space_create, .prepare = other_open, .call = space_create, .undo = other_close)

/* All of the host tier, which the fixture's space owns: that gives it back, with its blocks. */
static int lent_create(env *e)
{
	struct hawk_space_create sc = space_args(64);

	sc.quota[e->host].min_bytes = TIER_BYTES;
	sc.quota[e->host].max_bytes = TIER_BYTES;
	return dev_call(e->other, HAWK_IOC_SPACE_CREATE, &sc);
}

/* A space that has ended is cleaned up in the background: until then there is no room. */
static int lent_undo(env *e)
{
	uint32_t i;
	int ret = 0;

	other_close(e);
	for (i = 0; !ret && i < e->blocks; i++) {
		while ((ret = make_blocks(e->fd, i, i + 1)) == -ENOSPC)
			poll(NULL, 0, 1);
		if (ret == -EEXIST)
			ret = 0;
	}
	return ret;
}

SWEEP(space_create_lent, .prepare = other_open, .call = lent_create, .undo = lent_undo,
      .moves = true)

static int named_create(env *e)
{
	struct hawk_space_create sc = space_args(64);

	sc.quota[e->blk].max_bytes = FLASH_BYTES;
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, NAME);
	return dev_call(e->other, HAWK_IOC_SPACE_CREATE, &sc);
}

static int named_undo(env *e)
{
	int ret = space_destroy(e->ctl, NAME);

	other_close(e);
	return ret == -ENOENT ? 0 : ret;
}

SWEEP(space_create_named, .prepare = other_open, .call = named_create, .undo = named_undo)

/* A named space that nobody has attached, and a file for it. */
static int named_prepare(env *e)
{
	int ret = other_open(e) ?: named_create(e);

	other_close(e);
	return ret ?: other_open(e);
}

static int attach(env *e)
{
	return space_attach(e->other, NAME);
}

SWEEP(space_attach, .prepare = named_prepare, .call = attach, .undo = named_undo)

/* The private space of the fixture's file, by that file. */
static int attach_fd(env *e)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = e->fd,
	};

	return dev_call(e->other, HAWK_IOC_SPACE_ATTACH, &at);
}

SWEEP(space_attach_fd, .prepare = other_open, .call = attach_fd, .undo = other_close)

static int space_set(env *e)
{
	struct hawk_space_set set = {
		.size = sizeof(set), .mask = HAWK_SPACE_SET_IDLE | HAWK_SPACE_SET_MODE,
		.mode = 0644, .idle_ns = 3600000000000ull,
	};

	strcpy((char *)set.name, NAME);
	return dev_call(e->other, HAWK_IOC_SPACE_SET, &set);
}

SWEEP(space_set, .prepare = named_prepare, .call = space_set, .undo = named_undo)

static int destroy(env *e)
{
	return space_destroy(e->other, NAME);
}

SWEEP(space_destroy, .prepare = named_prepare, .call = destroy, .undo = named_undo)

static int space_info(env *e)
{
	struct hawk_space_info info = { .size = sizeof(info) };

	return dev_call(e->fd, HAWK_IOC_SPACE_INFO, &info);
}

SWEEP(space_info, .call = space_info)

static int stats(env *e)
{
	struct hawk_stats st = { .size = sizeof(st) };

	return dev_call(e->fd, HAWK_IOC_STATS, &st);
}

SWEEP(stats, .call = stats)

static int ring_setup(env *e)
{
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 256, .eventfd = e->efd };

	return dev_call(e->other, HAWK_IOC_RING_SETUP, &rs);
}

SWEEP(ring_setup, .prepare = other_open, .call = ring_setup, .undo = other_close)

/* ---- draft rings ---- */

static int draft_open(env *e)
{
	struct hawk_draft_open o = {
		.size = sizeof(o), .seq = HAWK_DRAFT_NO_SEQ, .slots = 40,
	};

	return dev_call(e->fd, HAWK_IOC_DRAFT_OPEN, &o);
}

/* Also a ring whose id could not be told: there is no other, so it has the first one. */
static int draft_close(env *e)
{
	struct hawk_draft_close c = { .size = sizeof(c) };
	int ret = dev_call(e->fd, HAWK_IOC_DRAFT_CLOSE, &c);

	return ret == -ENOENT ? 0 : ret;
}

SWEEP(draft_open, .call = draft_open, .undo = draft_close)
SWEEP(draft_close, .prepare = draft_open, .call = draft_close, .undo = draft_close)

/* ---- sequences ---- */

/* A sequence that is lost by each failure would be one too many soon. */
static int seq_make(env *e)
{
	struct hawk_seq_op op[] = {
		{ .op = HAWK_SEQ_NEW },
		{ .op = HAWK_SEQ_APPEND, .seq = HAWK_SEQ_LAST, .len = 40 },
		{ .op = HAWK_SEQ_DROP, .seq = HAWK_SEQ_LAST, .start = 3, .end = 30 },
		{ .op = HAWK_SEQ_FORK, .src = HAWK_SEQ_LAST },
		{ .op = HAWK_SEQ_FREE, .seq = HAWK_SEQ_LAST },
	};
	struct hawk_seq_batch b = { .size = sizeof(b), .count = 5, .ops = (uintptr_t)op };
	int ret = dev_call(e->fd, HAWK_IOC_SEQ, &b);

	if (ret)
		return ret;
	e->seq = op[0].seq;
	return b.done == 5 ? 0 : -EINVAL;
}

static int seq_map(env *e)
{
	struct hawk_seg seg[SEQS * 8];
	struct hawk_seq_map m = {
		.size = sizeof(m), .seq = e->seq, .count = SEQS * 8, .segs = (uintptr_t)seg,
	};

	return dev_call(e->fd, HAWK_IOC_SEQ_MAP, &m) ?: m.count == 2 ? 0 : -EINVAL;
}

static int seq_undo(env *e)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FREE, .seq = e->seq };
	struct hawk_seq_batch b = { .size = sizeof(b), .count = 1, .ops = (uintptr_t)&op };
	int ret = e->seq ? dev_call(e->fd, HAWK_IOC_SEQ, &b) ?: op.status : 0;

	e->seq = 0;
	return ret;
}

SWEEP(seq, .call = seq_make, .undo = seq_undo)
SWEEP(seq_map, .prepare = seq_make, .call = seq_map, .undo = seq_undo)

static int elastic_set(env *e, uint32_t on)
{
	struct hawk_elastic a = {
		.size = sizeof(a), .flags = HAWK_ELASTIC_SET, .on = on, .window = 16,
	};

	return dev_call(e->fd, HAWK_IOC_ELASTIC, &a);
}

static int elastic_on(env *e)
{
	return elastic_set(e, 1);
}

static int elastic_off(env *e)
{
	return elastic_set(e, 0);
}

SWEEP(elastic, .prepare = seq_make, .call = elastic_on, .undo = elastic_off)

/* ---- what bringing blocks takes ---- */

static int estimate(env *e)
{
	struct hawk_item it[4] = { { .lid = LID(0) }, { .lid = LID(1) }, { .lid = LID(2) } };
	struct hawk_estimate a = {
		.size = sizeof(a), .count = 4, .items = (uintptr_t)it, .tokens_per_s = 1000,
	};

	return dev_call(e->fd, HAWK_IOC_ESTIMATE, &a);
}

SWEEP(estimate, .call = estimate)

/* ---- mappings ---- */

static int map_at(env *e, uint64_t offset, size_t bytes, int prot)
{
	void *p = mmap(MAP_PLACE, bytes, prot, MAP_SHARED | MAP_FIXED_NOREPLACE, e->fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	e->map = p;
	e->map_bytes = bytes;
	return 0;
}

static int unmap(env *e)
{
	if (e->map)
		munmap((void *)e->map, e->map_bytes);
	e->map = NULL;
	return 0;
}

static int map_vtlb(env *e)
{
	return map_at(e, HAWK_MMAP_VTLB, e->vtlb_bytes, PROT_READ);
}

static int map_ring(env *e)
{
	return map_at(e, HAWK_MMAP_RING, e->ring_bytes, PROT_READ | PROT_WRITE);
}

static int map_stats(env *e)
{
	return map_at(e, HAWK_MMAP_STATS, sizeof(struct hawk_stats_page), PROT_READ);
}

static int map_draft(env *e)
{
	return map_at(e, HAWK_MMAP_DRAFT(0), 8192, PROT_READ | PROT_WRITE);
}

static int map_draft_prepare(env *e)
{
	return draft_open(e) ?: map_draft(e);
}

static int map_draft_undo(env *e)
{
	return unmap(e) ?: draft_close(e);
}

static int map_window(env *e)
{
	return map_at(e, HAWK_MMAP_TIER(e->host), TIER_BYTES, PROT_READ | PROT_WRITE);
}

/* A fault that finds no memory is taken again: the reader notices nothing. */
static int touch_map(env *e)
{
	(void)*e->map;
	return 0;
}

SWEEP(mmap_vtlb, .call = map_vtlb, .undo = unmap)
SWEEP(mmap_ring, .call = map_ring, .undo = unmap)
SWEEP(mmap_stats, .call = map_stats, .undo = unmap)
SWEEP(mmap_draft, .prepare = draft_open, .call = map_draft, .undo = map_draft_undo)
SWEEP(mmap_window, .call = map_window, .undo = unmap)
SWEEP(fault_vtlb, .prepare = map_vtlb, .call = touch_map, .undo = unmap)
SWEEP(fault_ring, .prepare = map_ring, .call = touch_map, .undo = unmap)
SWEEP(fault_stats, .prepare = map_stats, .call = touch_map, .undo = unmap)
SWEEP(fault_draft, .prepare = map_draft_prepare, .call = touch_map, .undo = map_draft_undo)
SWEEP(fault_window, .prepare = map_window, .call = touch_map, .undo = unmap)

TEST_HARNESS_MAIN
