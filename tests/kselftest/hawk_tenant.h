/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_tenant.h - tenants of one host tier and one flash tier
 *
 * A tenant is a file with a private space; block n of it has LID(n), key n and a
 * pattern of its own, so that a foreign or lost byte shows.
 */
#ifndef HAWK_TENANT_H
#define HAWK_TENANT_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define CHUNK		((uint64_t)HAWK_CHUNK_BYTES)
#define CHUNKS		8u	/* of the host tier */
#define CHUNK_BLOCKS	((uint32_t)(CHUNK / BLOCK))
#define FLASH		(64 * MIB)

FIXTURE(reclaim) {
	int ctl;
	uint32_t host;
	uint32_t blk;
	char *path;
};

FIXTURE_SETUP(reclaim)
{
	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("reclaim", FLASH);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	ASSERT_GE(self->ctl, 0);
	ASSERT_EQ(0, host_add(self->ctl, CHUNKS * CHUNK, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH, &self->blk));
}

FIXTURE_TEARDOWN(reclaim)
{
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/*
 * struct tenant - a space, used by the process that has it
 * @fd: its file
 * @seed: pattern of block n is @seed + n
 * @win: windows by tier
 * @len: their bytes
 */
struct tenant {
	int fd;
	uint32_t seed;
	uint8_t *win[HAWK_TIERS_MAX];
	size_t len[HAWK_TIERS_MAX];
};

/* Maps the windows of its host tiers, again after a fork(). */
static inline void tenant_map(struct tenant *t)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	uint32_t i;

	dev_call(t->fd, HAWK_IOC_SPACE_INFO, &info);
	for (i = 0; i < HAWK_TIERS_MAX; i++) {
		t->len[i] = (size_t)info.frames[i] * BLOCK;
		t->win[i] = t->len[i] ? map_area(t->fd, HAWK_MMAP_TIER(i), t->len[i],
						 PROT_READ | PROT_WRITE) : NULL;
	}
}

/* Makes the space with a minimum in tier @host: 0 or a negative errno. */
static inline int tenant_start(struct tenant *t, uint32_t host, uint64_t min, uint32_t blk)
{
	struct hawk_space_create sc = space_args(4096);
	int ret;

	sc.quota[host].min_bytes = min;
	sc.quota[host].max_bytes = CHUNKS * CHUNK;
	sc.quota[blk].max_bytes = FLASH;
	ret = dev_call(t->fd, HAWK_IOC_SPACE_CREATE, &sc);
	if (!ret)
		tenant_map(t);
	return ret;
}

static inline void tenant_end(struct tenant *t)
{
	uint32_t i;

	for (i = 0; i < HAWK_TIERS_MAX; i++)
		if (t->win[i])
			munmap(t->win[i], t->len[i]);
	close(t->fd);
}

static inline uint8_t *tenant_frame(struct tenant *t, uint64_t vt)
{
	return frame_at(t->win[HAWK_VT_TIER(vt)], vt, BLOCK);
}

#define SEEDS		100000u		/* between two tenants */
#define FILL_INVERSE	244002641u	/* of fill()'s factor, modulo 2^32 */

/* A new frame must be zero or have bytes of the tenant's own. */
static inline bool tenant_own(const struct tenant *t, const uint8_t *frame)
{
	static const uint8_t zero[BLOCK];
	uint32_t first, seed;

	if (!memcmp(frame, zero, BLOCK))
		return true;
	memcpy(&first, frame, sizeof(first));
	seed = first * FILL_INVERSE;
	return seed - t->seed < SEEDS && filled(frame, BLOCK, seed);
}

/* Blocks from @from on: 0, a negative errno, or 1: a foreign byte. */
static inline int tenant_put(struct tenant *t, uint32_t from, uint32_t n)
{
	struct hawk_item it;
	uint32_t i;
	int ret;

	for (i = from; i < from + n; i++) {
		it = (struct hawk_item){ .lid = LID(i) };
		ret = one(t->fd, HAWK_IOC_ALLOC, 0, &it);
		if (ret)
			return ret;
		if (!tenant_own(t, tenant_frame(t, it.vt)))
			return 1;
		fill(tenant_frame(t, it.vt), BLOCK, t->seed + i);
		set_key(&it, i);
		ret = one(t->fd, HAWK_IOC_PUT, 0, &it);
		if (ret)
			return ret;
	}
	return 0;
}

/* Number of blocks that are not there; a negative errno; -EUCLEAN: a wrong byte. */
static inline int tenant_lost(struct tenant *t, uint32_t from, uint32_t n)
{
	struct hawk_item it;
	int ret, lost = 0;
	uint32_t i;

	for (i = from; i < from + n; i++) {
		it = key_item(i);
		ret = one(t->fd, HAWK_IOC_GET, 0, &it);
		if (ret == -ENOENT)
			lost++;
		else if (ret)
			return ret;
		if (ret)
			continue;
		if (!filled(tenant_frame(t, it.vt), BLOCK, t->seed + i))
			return -EUCLEAN;
		ret = lid_call(t->fd, HAWK_IOC_UNPIN, LID(i));
		if (ret)
			return ret;
	}
	return lost;
}

static inline struct hawk_tier_info tier_info(int fd, uint32_t tier)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = tier };

	if (dev_call(fd, HAWK_IOC_TIER_INFO, &info))
		memset(&info, 0xff, sizeof(info));
	return info;
}

static inline int tier_force(int fd, uint32_t tier)
{
	struct hawk_tier_remove rm = {
		.size = sizeof(rm), .flags = HAWK_TIER_FORCE, .tier = tier,
	};

	return dev_call(fd, HAWK_IOC_TIER_REMOVE, &rm);
}

#endif /* HAWK_TENANT_H */
