/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_tiers.h - a host tier and a file as flash, for tests that look on
 *
 * evicting_space() makes a space in them in which something happens: it holds
 * more blocks than the host tier, so the first ones are on flash.
 */
#ifndef HAWK_TIERS_H
#define HAWK_TIERS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define HOST_BYTES	(2 * MIB)
#define FLASH_BYTES	(8 * MIB)
#define HOST_BLOCKS	((uint32_t)(HOST_BYTES / BLOCK))
#define STEP		16u
#define NBLOCKS		(HOST_BLOCKS + 2 * STEP)

FIXTURE(tiers) {
	int ctl;
	uint32_t host;
	uint32_t blk;
	char *path;
};

FIXTURE_SETUP(tiers)
{
	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	self->path = temp_file("tiers", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	ASSERT_GE(self->ctl, 0);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
}

FIXTURE_TEARDOWN(tiers)
{
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/*
 * A space named @name with NBLOCKS blocks, each with its number as key; the name
 * is gone at once, so the space ends with the file.
 * Return: its file or a negative number.
 */
static inline int evicting_space(uint32_t host, uint32_t blk, const char *name)
{
	struct hawk_space_create sc = space_args(1024);
	struct hawk_item it[STEP];
	int fd = dev_open(O_RDWR);
	struct hawk_batch b;
	uint32_t i, k;

	sc.quota[host].max_bytes = HOST_BYTES;
	sc.quota[blk].max_bytes = FLASH_BYTES;
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strncpy((char *)sc.name, name, HAWK_NAME_MAX - 1);
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc) || space_destroy(fd, name))
		return -1;
	for (i = 0; i < NBLOCKS; i += STEP) {
		for (k = 0; k < STEP; k++)
			it[k] = (struct hawk_item){ .lid = LID(i + k) };
		if (batch(fd, HAWK_IOC_ALLOC, 0, it, STEP, &b) || b.done != STEP)
			return -2;
		for (k = 0; k < STEP; k++)
			set_key(&it[k], i + k);
		if (batch(fd, HAWK_IOC_PUT, 0, it, STEP, &b) || b.done != STEP)
			return -3;
	}
	return fd;
}

#endif /* HAWK_TIERS_H */
