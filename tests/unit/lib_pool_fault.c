// SPDX-License-Identifier: MIT
/*
 * lib_pool_fault.c - a pool with places that cannot be read
 *
 * pread() of libhawk is the one below.  Embedded backend only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
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

/* ---- records ---- */

#define CHUNKS	48u

static struct hawk_kv *space(struct hawk *h, const char *name)
{
	struct hawk_kv_params p = {
		.block_bytes = FX_BLOCK, .block_tokens = FX_TOKENS, .layers = FX_LAYERS,
		.head_groups = 2, .max_blocks = (CHUNKS + 1) * FX_CHUNK_FRAMES, .buckets = 1,
		.quota_all = 1, .name = name,
	};
	struct hawk_kv *kv;

	assert_ok(hawk_kv_create(h, &p, &kv));
	return kv;
}

static void put_all(struct hawk_kv *kv, uint32_t from, uint32_t n)
{
	struct hawk_item it;
	uint32_t i;

	for (i = from; i < from + n; i++) {
		it = (struct hawk_item) { .lid = fx_lid(i) };
		assert_int_equal(hawk_alloc(kv, &it, 1, NULL), 1);
		fx_fill(hawk_addr(kv, it.vt), i, 1);
		fx_key(&it, i, 0);
		assert_int_equal(hawk_put(kv, &it, 1, NULL), 1);
	}
}

static struct hawk_stats stats(struct hawk_kv *kv)
{
	struct hawk_stats st;

	assert_ok(hawk_kv_stats(kv, &st));
	return st;
}

/* A page of records that cannot be read: its chunks are missed, the others are served. */
static void unreadable_records(void **state)
{
	struct hawk_super s;
	struct hawk_kv *kv;
	struct hawk *h;
	uint64_t all;

	(void)state;
	make_pool((CHUNKS + 1) * 2 * MIB + HAWK_POOL_PAGE, &s);
	assert_int_equal(s.chunks, CHUNKS);
	assert_ok(try_pool("&persist=1", &h));
	kv = space(h, "a");
	put_all(kv, 0, 40 * FX_CHUNK_FRAMES);
	hawk_kv_close(kv);
	hawk_close(h);
	assert_ok(try_pool("&persist=1", &h));
	kv = space(h, "a");
	all = stats(kv).recovered;
	assert_true(all >= 39 * FX_CHUNK_FRAMES);
	hawk_kv_close(kv);
	hawk_close(h);
	bad.off = s.record_off + HAWK_POOL_PAGE;
	bad.bytes = HAWK_POOL_PAGE;
	assert_ok(try_pool("&persist=1", &h));
	kv = space(h, "a");
	assert_int_equal(stats(kv).recovered, all - HAWK_PAGE_RECORDS * FX_CHUNK_FRAMES);
	hawk_kv_close(kv);
	hawk_close(h);
	heal();
	assert_ok(try_pool("&persist=1", &h));	/* they were only out of reach */
	kv = space(h, "a");
	assert_int_equal(stats(kv).recovered, all);
	hawk_kv_close(kv);
	hawk_close(h);
	fx_dir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreadable_is_not_overwritten),
		cmocka_unit_test(unreadable_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
