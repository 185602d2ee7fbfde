// SPDX-License-Identifier: MIT
/*
 * libfixture.c - see libfixture.h
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libfixture.h"

uint64_t fx_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void fx_dir_make(char *dir, size_t len)
{
	const char *base = getenv("HAWK_TEST_DIR");

	snprintf(dir, len, "%s/hawk-test-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
}

void fx_dir_remove(const char *dir)
{
	struct dirent *de;
	DIR *d = opendir(dir);

	assert_non_null(d);
	while ((de = readdir(d)))
		unlinkat(dirfd(d), de->d_name, 0);
	closedir(d);
	assert_int_equal(rmdir(dir), 0);
}

static void open_dev(struct fx *f, const char *url, uint64_t dram, uint64_t flash)
{
	int fd, ret;

	f->dev = true;
	assert_ok(hawk_open(url, &f->h));
	assert_ok(hawk_tier_add_host(f->h, -1, dram, &f->dram));
	if (!flash)
		return;
	fd = open(f->file, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)flash), 0);
	close(fd);
	ret = hawk_tier_add_blk(f->h, f->file, flash, &f->flash);
	if (ret == -EINVAL)
		fail_msg("no O_DIRECT in %s: set HAWK_TEST_DIR", f->dir);
	assert_ok(ret);
}

static void open_embed(struct fx *f, uint64_t dram, uint64_t flash)
{
	char url[600];
	int n;

	n = snprintf(url, sizeof(url), "embed:?dram=%llu", (unsigned long long)dram);
	if (flash)
		snprintf(url + n, sizeof(url) - (size_t)n, "&flash=%s&flash_size=%llu",
			 f->file, (unsigned long long)flash);
	assert_ok(hawk_open(url, &f->h));
	f->dram = 0;
	f->flash = 1;
}

void fx_open(struct fx *f, uint64_t dram, uint64_t flash)
{
	fx_open_buckets(f, dram, flash, 1);
}

void fx_open_buckets(struct fx *f, uint64_t dram, uint64_t flash, uint32_t buckets)
{
	const char *url = getenv("HAWK_URL");
	struct hawk_kv_params p;

	memset(f, 0, sizeof(*f));
	f->has_flash = flash;
	fx_dir_make(f->dir, sizeof(f->dir));
	snprintf(f->file, sizeof(f->file), "%s/flash", f->dir);
	if (url && !strncmp(url, "dev:", 4))
		open_dev(f, url, dram, flash);
	else
		open_embed(f, dram, flash);
	p = fx_params(f);
	p.buckets = buckets;
	assert_ok(hawk_kv_create(f->h, &p, &f->kv));
}

/* A space whose handle was closed over batches ends with the last of these. */
static void tier_del(struct fx *f, unsigned int tier)
{
	int ret;

	while ((ret = hawk_tier_del(f->h, tier)) == -EBUSY)
		sched_yield();
	assert_ok(ret);
}

void fx_close(struct fx *f)
{
	hawk_kv_close(f->kv);
	if (f->dev) {
		tier_del(f, f->dram);
		if (f->has_flash)
			tier_del(f, f->flash);
	}
	hawk_close(f->h);
	fx_dir_remove(f->dir);
}

struct hawk_kv_params fx_params(const struct fx *f)
{
	struct hawk_kv_params p = {
		.block_bytes = FX_BLOCK,
		.block_tokens = FX_TOKENS,
		.layers = FX_LAYERS,
		.head_groups = 2,
		.max_blocks = 4096,
		.buckets = 1,
	};

	p.quota[f->dram].max_bytes = 1ull << 40;
	if (f->has_flash)
		p.quota[f->flash].max_bytes = 1ull << 40;
	return p;
}

uint64_t fx_lid(uint32_t n)
{
	return HAWK_LID(1 + n / 65536, n % FX_LAYERS, n / FX_LAYERS % 2,
			n % 65536 / (2 * FX_LAYERS) * FX_TOKENS);
}

void fx_key(struct hawk_item *it, uint32_t n, uint32_t salt)
{
	uint32_t words[HAWK_KEY_BYTES / 4];
	size_t i;

	for (i = 0; i < HAWK_KEY_BYTES / 4; i++)
		words[i] = (n + 1) * 2654435761u + salt * 40503u + (uint32_t)i;
	memcpy(it->key, words, sizeof(words));
}

static uint64_t word(uint32_t n, uint32_t salt, size_t i)
{
	return ((uint64_t)n << 32 | salt) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;
}

void fx_fill(void *block, uint32_t n, uint32_t salt)
{
	uint64_t *w = block;
	size_t i;

	for (i = 0; i < FX_BLOCK / 8; i++)
		w[i] = word(n, salt, i);
}

bool fx_is(const void *block, uint32_t n, uint32_t salt)
{
	const uint64_t *w = block;
	size_t i;

	for (i = 0; i < FX_BLOCK / 8; i++)
		if (w[i] != word(n, salt, i))
			return false;
	return true;
}

void fx_put(struct hawk_kv *kv, uint32_t from, uint32_t count, uint32_t salt)
{
	struct hawk_item it;
	uint32_t n;

	for (n = from; n < from + count; n++) {
		it = (struct hawk_item) { .lid = fx_lid(n) };
		if (hawk_alloc(kv, &it, 1, NULL) != 1)
			fail_msg("alloc of block %u: %d: %s", n, it.status, hawk_strerror_last());
		assert_non_null(hawk_addr(kv, it.vt));
		fx_fill(hawk_addr(kv, it.vt), n, salt);
		fx_key(&it, n, salt);
		if (hawk_put(kv, &it, 1, NULL) != 1)
			fail_msg("put of block %u: %d: %s", n, it.status, hawk_strerror_last());
	}
}

int fx_get(struct hawk_kv *kv, uint32_t n, uint32_t salt)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };

	fx_key(&it, n, salt);
	if (hawk_get(kv, &it, 1, NULL, NULL) != 1)
		return it.status;
	assert_int_equal(it.lid, fx_lid(n));
	if (!fx_is(hawk_addr(kv, it.vt), n, salt))
		fail_msg("block %u has the bytes of another", n);
	it = (struct hawk_item) { .lid = it.lid, .vt = it.vt };
	assert_int_equal(hawk_unpin(kv, &it, 1), 1);
	return 0;
}
