// SPDX-License-Identifier: MIT
/*
 * lib_flash.c - the embedded backend's flash file: what cannot be used, and bytes
 * that go bad
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)

/* hawk_open() on a flash file at @path. */
static int try_open(const char *path, const char *size)
{
	char url[600];
	struct hawk *h;
	int ret;

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s&flash_size=%s", path, size);
	ret = hawk_open(url, &h);
	if (!ret)
		hawk_close(h);
	else
		assert_non_null(strstr(hawk_strerror_last(), "flash"));
	return ret;
}

static void bad_paths(void **state)
{
	char dir[256], path[300];

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/flash", dir);
	assert_int_equal(try_open("/nonexistent/flash", "8M"), -ENOENT);
	assert_int_equal(try_open(dir, "8M"), -ENOTBLK);
	assert_int_equal(try_open("/dev/null", "8M"), -ENOTBLK);
	assert_int_equal(try_open(path, "1M"), -EINVAL);	/* no whole chunk */
	assert_int_equal(try_open(path, "2M"), 0);
	assert_int_equal(try_open(path, "4M"), 0);		/* grown */
	fx_dir_remove(dir);
}

/* As another user, for whom the permissions of the file count. */
static void not_writable(void **state)
{
	char dir[256], path[300];
	int fd, status;
	pid_t pid;

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/flash", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0444);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, 8 * MIB), 0);
	close(fd);
	pid = fork();
	if (!pid)
		_exit((!getuid() && setuid(65534)) || try_open(path, "8M") != -EACCES);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fx_dir_remove(dir);
}

/* In a mount namespace of its own: 0 as told, 77 if it may not mount, else 1. */
static int on_small_disk(const char *dir)
{
	char path[300];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, "size=4m"))
		return 77;
	snprintf(path, sizeof(path), "%s/flash", dir);
	if (try_open(path, "64M") != -ENOSPC || try_open(path, "2M"))
		return 1;
	if (mount("none", dir, NULL, MS_REMOUNT | MS_RDONLY, NULL))
		return 77;
	return try_open(path, "2M") != -EROFS;
}

static void disk_full_or_read_only(void **state)
{
	char dir[256];
	int status;
	pid_t pid;

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	pid = fork();
	if (!pid)
		_exit(on_small_disk(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fx_dir_remove(dir);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("SKIP disk_full_or_read_only: no right to mount a file system\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void two_devices_one_file(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	assert_int_equal(try_open(f.file, "8M"), -EBUSY);
	fx_close(&f);
}

static void add_blk(void **state)
{
	struct hawk_tier_info info;
	unsigned int tier;
	char path[320];
	struct fx f;
	int fd;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	snprintf(path, sizeof(path), "%s/other", f.dir);
	assert_int_equal(hawk_tier_add_blk(f.h, path, 0, &tier), -ENOENT);
	assert_int_equal(hawk_tier_add_blk(f.h, "", 0, &tier), -EINVAL);
	assert_int_equal(hawk_tier_add_dmabuf(f.h, 0, 0, &tier), -EOPNOTSUPP);
	assert_int_equal(hawk_tier_add_dmabuf(f.h, -1, 0, &tier), -EBADF);
	assert_int_equal(hawk_tier_add_dmabuf(f.h, 0, 1, &tier), -EINVAL);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 7 * MIB), 0);
	close(fd);
	assert_int_equal(hawk_tier_add_blk(f.h, path, 8 * MIB, &tier), -ENOSPC);
	assert_ok(hawk_tier_add_blk(f.h, path, 0, &tier));
	assert_ok(hawk_tier_stat(f.h, tier, &info));
	assert_int_equal(info.bytes, 6 * MIB);
	assert_int_equal(info.kind, HAWK_TIER_BLK);
	assert_ok(hawk_tier_del(f.h, tier));
	assert_int_equal(hawk_tier_stat(f.h, tier, &info), -ENOENT);
	fx_close(&f);
}

/* Overwrites a byte in every block of the flash file. */
static void corrupt(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned char byte;
	struct stat st;
	off_t off;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	for (off = 1234; off < st.st_size; off += FX_BLOCK) {
		assert_int_equal(pread(fd, &byte, 1, off), 1);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, off), 1);
	}
	close(fd);
}

/* A block that went bad on flash is EIO once, then a miss; never wrong bytes. */
static void bad_bytes(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, bad = 0, n, round;
	struct hawk_tier_info info;
	struct hawk_stats st;
	struct fx f;
	int ret;

	(void)state;
	fx_open(&f, 2 * MIB, 16 * MIB);
	fx_put(f.kv, 0, 3 * frames, 1);
	corrupt(f.file);
	for (n = 0; n < 3 * frames; n++) {
		ret = fx_get(f.kv, n, 1);
		if (!ret)
			continue;
		assert_int_equal(ret, -EIO);
		assert_int_equal(fx_get(f.kv, n, 1), -ENOENT);
		bad++;
	}
	assert_in_range(bad, 2 * frames, 3 * frames);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.reload_errors, bad);
	assert_ok(hawk_tier_stat(f.h, f.flash, &info));
	assert_int_equal(info.io_errors, bad);
	/* it would get no block for a while; but it was us, so it is all right */
	assert_int_equal(info.health, HAWK_HEALTH_FAILING);
	assert_ok(hawk_tier_reopen(f.h, f.flash));
	assert_ok(hawk_tier_stat(f.h, f.flash, &info));
	assert_int_equal(info.health, HAWK_HEALTH_OK);
	/*
	 * Their LIDs and keys are free for new blocks.  Blocks that were in DRAM too
	 * lose their bad copy in the second round.
	 */
	for (round = 0; round < 3; round++)
		for (n = 0, bad = 0; n < 3 * frames; n++) {
			if (!fx_get(f.kv, n, 1))
				continue;
			assert_int_equal(fx_get(f.kv, n, 1), -ENOENT);
			fx_put(f.kv, n, 1, 1);
			bad++;
			assert_ok(hawk_tier_reopen(f.h, f.flash));
		}
	assert_int_equal(bad, 0);
	fx_close(&f);
}

/* Items of one batch fail each for itself. */
static void bad_bytes_in_batch(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, n;
	struct hawk_item it[32] = { 0 };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * frames, 1);
	corrupt(f.file);
	for (n = 0; n < 32; n++)
		it[n].lid = fx_lid(n < 31 ? n : 2 * frames - 1);
	assert_int_equal(hawk_get(f.kv, it, 32, NULL, NULL), 1);
	for (n = 0; n < 31; n++) {
		assert_int_equal(it[n].status, -EIO);
		assert_int_equal(it[n].vt, 0);
	}
	assert_true(fx_is(hawk_addr(f.kv, it[31].vt), 2 * frames - 1, 1));
	fx_close(&f);
}

/* The file is cut short behind our back: reads fail, and that is all. */
static void truncated(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, n, lost = 0;
	struct fx f;
	int ret;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * frames, 1);
	assert_int_equal(truncate(f.file, 0), 0);
	for (n = 0; n < 2 * frames; n++) {
		ret = fx_get(f.kv, n, 1);
		assert_true(!ret || ret == -EIO);
		lost += ret == -EIO;
	}
	assert_true(lost >= frames / 2);
	fx_close(&f);
}

/* Where in the file the first of blocks 0 to @n - 1 is. */
static off_t first_of(const char *path, uint32_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char block[FX_BLOCK];
	uint32_t i;
	off_t off;

	assert_true(fd >= 0);
	for (off = 0; pread(fd, block, FX_BLOCK, off) == FX_BLOCK; off += FX_BLOCK)
		for (i = 0; i < n; i++)
			if (fx_is(block, i, 1)) {
				close(fd);
				return off;
			}
	fail_msg("none of %u blocks is in %s", n, path);
	return -1;
}

/*
 * Neighbours that one request reads fail each for itself: the file ends in the middle
 * of the tenth of them.  There is room in DRAM, so that no eviction makes it longer.
 */
static void truncated_in_batch(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, n, good = 0;
	struct hawk_item it[32] = { 0 }, warm[32] = { 0 };
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * frames, 1);
	for (n = 0; n < 32; n++)
		warm[n].lid = fx_lid(2 * frames - 1 - n);
	assert_int_equal(hawk_free(f.kv, warm, 32), 32);
	assert_int_equal(truncate(f.file, first_of(f.file, 32) + 9 * FX_BLOCK + FX_BLOCK / 2), 0);
	for (n = 0; n < 32; n++)
		it[n].lid = fx_lid(n);
	assert_int_equal(hawk_get(f.kv, it, 32, NULL, NULL), 9);
	for (n = 0; n < 32; n++) {
		if (it[n].status) {
			assert_int_equal(it[n].status, -EIO);
			continue;
		}
		assert_true(fx_is(hawk_addr(f.kv, it[n].vt), n, 1));
		good++;
	}
	assert_int_equal(good, 9);
	fx_close(&f);
}

/* No room on flash: the coldest blocks go, the warm ones stay whole. */
static void flash_overflows(void **state)
{
	uint32_t frames = FX_CHUNK_FRAMES, n, there = 0;
	struct hawk_stats st;
	struct fx f;
	int ret;

	(void)state;
	fx_open(&f, 2 * MIB, 4 * MIB);
	fx_put(f.kv, 0, 8 * frames, 1);
	for (n = 0; n < 8 * frames; n++) {
		ret = fx_get(f.kv, n, 1);
		assert_true(!ret || ret == -ENOENT);
		there += !ret;
	}
	assert_in_range(there, 2 * frames, 3 * frames);
	assert_int_equal(fx_get(f.kv, 8 * frames - 1, 1), 0);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.blocks, there);
	assert_int_equal(st.reload_errors, 0);
	fx_close(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_paths),
		cmocka_unit_test(not_writable),
		cmocka_unit_test(disk_full_or_read_only),
		cmocka_unit_test(two_devices_one_file),
		cmocka_unit_test(add_blk),
		cmocka_unit_test(bad_bytes),
		cmocka_unit_test(bad_bytes_in_batch),
		cmocka_unit_test(truncated),
		cmocka_unit_test(truncated_in_batch),
		cmocka_unit_test(flash_overflows),
	};

	unsetenv("HAWK_URL");	/* these are about the embedded backend's file */
	return cmocka_run_group_tests_name("lib_flash", tests, NULL, NULL);
}
