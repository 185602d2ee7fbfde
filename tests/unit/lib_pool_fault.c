// SPDX-License-Identifier: MIT
/*
 * lib_pool_fault.c - a pool with places that cannot be read or written
 *
 * pread() and pwritev2() of libhawk are the ones below.  Embedded backend only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libfixture.h"
#include "poolfile.h"

#define MIB	(1ull << 20)

static char dir[256], file[300];

/* ---- faults ---- */

static struct {
	uint64_t off, bytes;	/* what touches these fails */
	uint32_t hits;
} bad;

static bool touches(off_t off, size_t bytes)
{
	bool hit = bad.bytes && (uint64_t)off < bad.off + bad.bytes &&
		   (uint64_t)off + bytes > bad.off;

	if (hit)
		__atomic_fetch_add(&bad.hits, 1, __ATOMIC_RELAXED);
	return hit;
}

ssize_t pread(int fd, void *buf, size_t bytes, off_t off)
{
	if (touches(off, bytes)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, bytes, off);
}

static void heal(void)
{
	bad.bytes = 0;
	bad.hits = 0;
}

/* ---- helpers ---- */

static int try_pool(const char *more, struct hawk **h)
{
	char url[600];

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s%s", file, more);
	return hawk_open(url, h);
}

static void make_pool(uint64_t bytes, struct hawk_super *s)
{
	struct poolfile_params p = {
		.bytes = bytes, .slot_bytes = HAWK_SLOT_BYTES_DEFAULT, .sparse = true,
	};
	int fd;

	fx_dir_make(dir, sizeof(dir));
	snprintf(file, sizeof(file), "%s/pool", dir);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(poolfile_make(fd, &p, s), 0);
	close(fd);
}

/* ---- superblocks ---- */

/* Who cannot see whether there are blocks does not overwrite them. */
static void unreadable_is_not_overwritten(void **state)
{
	struct hawk_super s;
	struct hawk *h;

	(void)state;
	make_pool(16 * MIB, &s);
	bad.off = 0;
	bad.bytes = HAWK_SUPER_1_OFF + HAWK_POOL_PAGE;
	assert_int_equal(try_pool("&flash_size=16M", &h), -EIO);
	assert_true(bad.hits);
	bad.bytes = HAWK_POOL_PAGE;	/* superblock 1 tells */
	assert_int_equal(try_pool("&flash_size=16M", &h), -EEXIST);
	heal();
	assert_ok(try_pool("&persist=1", &h));
	hawk_close(h);
	fx_dir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreadable_is_not_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
