/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_fixture.h - a host tier and a private space in it
 *
 * @ctl is a file for control, @fd has the space.  Teardown proves that the test
 * left nothing: the tier can be removed only when nobody holds a page of it.  An
 * asynchronous batch that has just been reported may hold it for a moment.
 */
#ifndef HAWK_FIXTURE_H
#define HAWK_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hawk_test.h"

#define HOST_BYTES	(8 * MIB)
#define HOST_BLOCKS	((uint32_t)(HOST_BYTES / BLOCK))

FIXTURE(hawk) {
	int ctl;
	int fd;
	uint32_t host;
	uint8_t *win;
};

FIXTURE_SETUP(hawk)
{
	struct hawk_space_create sc = space_args(4 * HOST_BLOCKS);

	self->ctl = dev_open(O_RDWR);
	ASSERT_GE(self->ctl, 0) TH_LOG("no /dev/hawk: %s", strerror(errno));
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	self->fd = dev_open(O_RDWR);
	ASSERT_GE(self->fd, 0);
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	self->win = map_area(self->fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
			     PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->win);
}

FIXTURE_TEARDOWN(hawk)
{
	munmap(self->win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	close(self->ctl);
}

#endif /* HAWK_FIXTURE_H */
