// SPDX-License-Identifier: MIT
/*
 * lib_gpu.c - tiers in memory of a GPU: blocks live there, go to flash and come back, and
 * what becomes of them when it fails
 *
 * The tests run on a real GPU if there is one, and else, or with $HAWK_CUDA_MODEL set, on the
 * stand-in of firmware-models/cuda, which alone can be made to fail.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu.h"
#include "libfixture.h"

#define MIB	(1ull << 20)
#define FRAMES	FX_CHUNK_FRAMES

/* ---- which GPU ---- */

static struct {
	bool on;		/* it is the stand-in */
	int (*set)(const char *settings);
	uint64_t (*get)(const char *name);
	void (*revive)(void);
} model;

static bool real_gpu(void)
{
	void *lib = getenv("HAWK_CUDA_MODEL") ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned int) = NULL;

	if (lib)
		init = (CUresult (*)(unsigned int))dlsym(lib, "cuInit");
	return init && init(0) == CUDA_SUCCESS;
}

/* The stand-in is found by its soname from now on. */
static void load_model(void)
{
	char path[600];
	ssize_t n = readlink("/proc/self/exe", path, 500);
	void *lib;

	assert_true(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/'), "/../lib/cuda/libcuda.so.1");
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		fail_msg("%s", dlerror());
	model.set = (int (*)(const char *))dlsym(lib, "cuda_model_set");
	model.get = (uint64_t (*)(const char *))dlsym(lib, "cuda_model_get");
	model.revive = (void (*)(void))dlsym(lib, "cuda_model_revive");
	assert_true(model.set && model.get && model.revive);
	model.on = true;
}

static int choose(void **state)
{
	(void)state;
	if (!real_gpu())
		load_model();
	printf("# on %s\n", model.on ? "the stand-in for libcuda.so.1" : "a real GPU");
	return 0;
}

static void set(const char *settings)
{
	assert_int_equal(model.set(settings), 0);
}

/* ---- a device with DRAM, flash and a GPU ---- */

struct dev {
	char dir[256];
	char file[300];
	struct hawk *h;
	struct hawk_kv *kv;
	unsigned int gpu;
	uint64_t bytes;		/* of the GPU's tier */
};

#define FLASH	1

/* The space may have @dram bytes of DRAM, and all of flash and GPU. */
static void space(struct dev *d, uint64_t dram, struct hawk_kv **kv)
{
	struct hawk_kv_params p = fx_params(&(struct fx){ .h = d->h });

	p.quota_all = 0;
	p.quota[0].max_bytes = dram;
	p.quota[FLASH].max_bytes = 64 * MIB;
	p.quota[d->gpu].max_bytes = d->bytes;
	p.max_blocks = 8192;
	assert_ok(hawk_kv_create(d->h, &p, kv));
}

static void open_dev(struct dev *d, uint64_t bytes, uint64_t dram)
{
	struct hawk_device dev;
	char url[700];

	memset(d, 0, sizeof(*d));
	fx_dir_make(d->dir, sizeof(d->dir));
	snprintf(d->file, sizeof(d->file), "%s/flash", d->dir);
	snprintf(url, sizeof(url), "embed:?dram=32M&flash=%s&flash_size=64M&writeback=0&gpu=cuda:0:%llu",
		 d->file, (unsigned long long)bytes);
	assert_ok(hawk_open(url, &d->h));
	d->gpu = 2;
	assert_ok(hawk_tier_device(d->h, d->gpu, &dev));
	d->bytes = dev.bytes;
	space(d, dram, &d->kv);
}

static void close_dev(struct dev *d)
{
	hawk_kv_close(d->kv);
	hawk_close(d->h);
	fx_dir_remove(d->dir);
	if (!model.on)
		return;
	assert_int_equal(model.get("handles"), 0);
	assert_int_equal(model.get("streams"), 0);
	assert_int_equal(model.get("contexts"), 0);
	assert_int_equal(model.get("pageable"), 0);
	assert_true(model.get("flying_max") <= (GPU_AREAS + 1) * (uint64_t)GPU_AREA_BYTES);
	model.revive();
}

/* Blocks @from on, wherever room is; @salt tells versions apart.  Return: how many were put. */
static unsigned int put(struct hawk_kv *kv, uint32_t from, uint32_t count, uint32_t salt,
			uint32_t tier)
{
	struct hawk_opts o = { .tier = tier };
	static __thread _Alignas(8) uint8_t buf[FX_BLOCK];
	unsigned int done = 0;
	uint32_t n;

	for (n = from; n < from + count; n++) {
		struct hawk_item it = { .lid = fx_lid(n) };

		if (hawk_alloc(kv, &it, 1, &o) != 1)
			continue;
		fx_fill(buf, n, salt);
		if (hawk_copy_in(kv, it.vt, 0, buf, FX_BLOCK)) {
			hawk_unpin(kv, &it, 1);
			continue;
		}
		fx_key(&it, n, salt);
		assert_int_equal(hawk_put(kv, &it, 1, NULL), 1);
		done++;
	}
	return done;
}

/* Gets block @n by key, and compares its bytes.  Return: status; @tier: where it was. */
static int get(struct hawk_kv *kv, uint32_t n, uint32_t salt, unsigned int *tier)
{
	static __thread _Alignas(8) uint8_t buf[FX_BLOCK];
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	int ret;

	fx_key(&it, n, salt);
	assert_ok(hawk_get(kv, &it, 1, NULL, NULL));
	if (it.status)
		return it.status;
	if (tier)
		*tier = HAWK_VT_TIER(it.vt);
	ret = hawk_copy_out(kv, it.vt, 0, buf, FX_BLOCK);
	if (!ret && !fx_is(buf, n, salt))
		fail_msg("block %u has other bytes", n);
	it = (struct hawk_item){ .lid = it.lid, .vt = it.vt };
	assert_int_equal(hawk_unpin(kv, &it, 1), 1);
	return ret;
}

/* ---- tests ---- */

static void test_refusals(void **state)
{
	static const char * const bad[] = { "cuda", "cuda:", "cuda:0", "cuda:0:", "cuda::4M",
		"cuda:0:4X", "cuda:x:4M", "hip:0:4M", "cuda:123456789012:4M", "cuda:-1:4M", "" };
	struct hawk_device dev;
	unsigned int tier;
	char url[100];
	struct hawk *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(url, sizeof(url), "embed:?dram=2M&gpu=%s", bad[i]);
		assert_int_equal(hawk_open(url, &h), -EINVAL);
	}
	assert_int_equal(hawk_open("embed:?dram=2M&gpu=cuda:0:4M&gpu=cuda:0:4M", &h), -EINVAL);
	assert_int_equal(hawk_open("embed:?dram=2M&gpu=cuda:999:4M", &h), -ENODEV);
	assert_ok(hawk_open("embed:?dram=2M", &h));
	assert_int_equal(hawk_tier_add_gpu(h, "cuda:0", MIB, &tier), -EINVAL);
	assert_int_equal(hawk_tier_add_gpu(h, "nvidia0", 4 * MIB, &tier), -EINVAL);
	assert_int_equal(hawk_tier_add_gpu(h, NULL, 4 * MIB, &tier), -EINVAL);
	assert_int_equal(hawk_tier_add_gpu(h, "cuda:0", 1ull << 50, &tier), -ENOMEM);
	assert_non_null(strstr(hawk_strerror_last(), "cuda:0"));
	assert_int_equal(hawk_tier_device(h, 0, &dev), -EOPNOTSUPP);
	assert_int_equal(hawk_tier_device(h, 5, &dev), -ENOENT);
	assert_int_equal(hawk_tier_device(h, ~0u, &dev), -ENOENT);
	assert_int_equal(hawk_tier_dmabuf(h, 0), -EOPNOTSUPP);
	if (model.on) {
		set("vmm=0");
		assert_int_equal(hawk_tier_add_gpu(h, "cuda:0", 4 * MIB, &tier), -EOPNOTSUPP);
		set("vmm=1,fail=719");
		assert_int_equal(hawk_tier_add_gpu(h, "cuda:0", 4 * MIB, &tier), -EREMOTEIO);
		model.revive();
		set("gran=0x400000");
		assert_int_equal(hawk_tier_add_gpu(h, "cuda:0", 3 * MIB, &tier), -EINVAL);
		assert_ok(hawk_tier_add_gpu(h, "cuda:0", 7 * MIB, &tier));
		assert_ok(hawk_tier_device(h, tier, &dev));
		assert_int_equal(dev.bytes, 4 * MIB);
		assert_int_equal(dev.granularity, 4 * MIB);
		assert_ok(hawk_tier_del(h, tier));
		set("gran=0x200000");
		assert_int_equal(model.get("handles"), 0);
	}
	hawk_close(h);
}

static void test_peer(void **state)
{
	char dir[256], path[600];

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	assert_int_equal(gpu_peer_way(1, 1, dir), HAWK_DEVICE_DMABUF);
	assert_int_equal(gpu_peer_way(0, 1, dir), HAWK_DEVICE_NO_PEER);
	snprintf(path, sizeof(path), "%s/module", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/module/nvidia_peermem", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(gpu_peer_way(0, 1, dir), HAWK_DEVICE_PEERMEM);
	assert_int_equal(gpu_peer_way(0, 0, dir), HAWK_DEVICE_NO_PEER);
	assert_int_equal(rmdir(path), 0);
	*strrchr(path, '/') = 0;
	assert_int_equal(rmdir(path), 0);
	fx_dir_remove(dir);
}

/* A block in the GPU: no address, its place, its bytes. */
static void test_block(void **state)
{
	struct hawk_item it = { .lid = fx_lid(1) };
	struct hawk_frame_info where;
	struct hawk_tier_info info;
	struct hawk_device dev;
	uint8_t a[100], b[100];
	struct dev d;

	(void)state;
	open_dev(&d, 4 * MIB, 0);
	assert_ok(hawk_tier_stat(d.h, d.gpu, &info));
	assert_int_equal(info.kind, HAWK_TIER_USER);
	assert_int_equal(info.bytes, d.bytes);
	assert_ok(hawk_tier_device(d.h, d.gpu, &dev));
	assert_int_equal(dev.error, 0);
	assert_true(dev.name[0] && dev.pci[0] && dev.address && dev.version >= 11070);
	printf("# %s at %s, CUDA %u.%u, peers reach it by %s\n", dev.name, dev.pci,
	       dev.version / 1000, dev.version % 1000 / 10, dev.peer == HAWK_DEVICE_DMABUF ?
	       "dma-buf" : dev.peer == HAWK_DEVICE_PEERMEM ? "nvidia-peermem" : "no way");

	assert_int_equal(hawk_alloc(d.kv, &it, 1, NULL), 1);
	assert_int_equal(HAWK_VT_TIER(it.vt), d.gpu);
	assert_null(hawk_addr(d.kv, it.vt));
	assert_ok(hawk_frame_where(d.kv, it.vt, &where));
	assert_true(where.offset + FX_BLOCK <= d.bytes && where.frames >= 1);
	memset(b, 1, sizeof(b));
	assert_ok(hawk_copy_out(d.kv, it.vt, FX_BLOCK - 100, b, 100));
	assert_int_equal(b[0] | b[99], 0);	/* as given */
	memset(a, 0x5a, sizeof(a));
	assert_ok(hawk_copy_in(d.kv, it.vt, 333, a, 100));
	assert_ok(hawk_copy_out(d.kv, it.vt, 333, b, 100));
	assert_memory_equal(a, b, 100);
	assert_int_equal(hawk_copy_in(d.kv, it.vt, 0, a, 0), -EINVAL);
	assert_int_equal(hawk_copy_in(d.kv, it.vt, FX_BLOCK - 99, a, 100), -EINVAL);
	assert_int_equal(hawk_copy_in(d.kv, it.vt, ~0u, a, 2), -EINVAL);
	assert_int_equal(hawk_copy_in(d.kv, 0, 0, a, 1), -EINVAL);
	assert_int_equal(hawk_unpin(d.kv, &it, 1), 1);
	close_dev(&d);
}

/* Who has the dma-buf finds a block's bytes at its place. */
static void test_dmabuf(void **state)
{
	struct hawk_item it = { .lid = fx_lid(7) };
	struct hawk_frame_info where;
	struct hawk_device dev;
	_Alignas(8) uint8_t buf[FX_BLOCK];
	uint8_t *p;
	struct dev d;
	int fd;

	(void)state;
	open_dev(&d, 4 * MIB, 0);
	assert_ok(hawk_tier_device(d.h, d.gpu, &dev));
	fd = hawk_tier_dmabuf(d.h, d.gpu);
	if (dev.peer != HAWK_DEVICE_DMABUF) {
		assert_int_equal(fd, -EOPNOTSUPP);
		close_dev(&d);
		skip();
	}
	assert_ok(fd);
	assert_int_equal(hawk_alloc(d.kv, &it, 1, NULL), 1);
	fx_fill(buf, 7, 1);
	assert_ok(hawk_copy_in(d.kv, it.vt, 0, buf, FX_BLOCK));
	assert_ok(hawk_frame_where(d.kv, it.vt, &where));
	p = mmap(NULL, d.bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED || !model.on);
	if (p != MAP_FAILED) {
		assert_true(fx_is(p + where.offset, 7, 1));
		munmap(p, d.bytes);
	}
	close(fd);
	close_dev(&d);
	if (!model.on)
		return;
	set("dmabuf=0");
	open_dev(&d, 4 * MIB, 0);
	assert_int_equal(hawk_tier_dmabuf(d.h, d.gpu), -EOPNOTSUPP);
	set("dmabuf=1");
	close_dev(&d);
}

/* More blocks than the GPU has room for go to flash and come back, none is mixed up. */
static void test_evict(void **state)
{
	uint32_t n, all = 6 * FRAMES;
	struct hawk_tier_info info;
	unsigned int tier;
	struct dev d;

	(void)state;
	open_dev(&d, 4 * MIB, 0);
	assert_int_equal(put(d.kv, 0, all, 1, 0), all);
	for (n = 0; n < all; n++) {
		assert_int_equal(get(d.kv, n, 1, &tier), 0);
		assert_int_equal(tier, d.gpu);
	}
	assert_ok(hawk_tier_stat(d.h, FLASH, &info));
	assert_int_equal(info.io_errors, 0);
	assert_true(info.write_bytes >= 4 * FRAMES * FX_BLOCK);
	assert_true(info.read_bytes >= 4 * FRAMES * FX_BLOCK);
	close_dev(&d);
}

/* One call that brings more than an area holds. */
static void test_batch(void **state)
{
	static struct hawk_item it[2 * FRAMES];
	uint32_t n, all = 4 * FRAMES;
	_Alignas(8) uint8_t buf[FX_BLOCK];
	struct dev d;

	(void)state;
	open_dev(&d, 4 * MIB, 0);
	assert_int_equal(put(d.kv, 0, all, 1, 0), all);
	memset(it, 0, sizeof(it));
	for (n = 0; n < 2 * FRAMES; n++)
		it[n].lid = fx_lid(n);
	if (model.on)
		set("latency_us=100");	/* what is not waited for is not there */
	assert_int_equal(hawk_get(d.kv, it, 2 * FRAMES, NULL, NULL), 2 * FRAMES);
	for (n = 0; n < 2 * FRAMES; n++) {
		assert_ok(hawk_copy_out(d.kv, it[n].vt, 0, buf, FX_BLOCK));
		assert_true(fx_is(buf, n, 1));
	}
	if (model.on)
		set("latency_us=0");
	assert_int_equal(hawk_unpin(d.kv, it, 2 * FRAMES), 2 * FRAMES);
	close_dev(&d);
}

/* Blocks in DRAM, in the GPU and on flash to one buffer. */
static void test_gather(void **state)
{
	uint32_t n, count = 3 * FRAMES, remap[3 * FRAMES];
	int32_t status[3 * FRAMES];
	uint64_t lid[3 * FRAMES];
	struct hawk_gather_lists l = {
		.lid = lid, .count = &count, .lists = 1, .remap = remap, .status = status,
		.buf_bytes = 3ull * FRAMES * FX_BLOCK,
	};
	struct dev d;

	(void)state;
	open_dev(&d, 2 * MIB, 2 * MIB);
	assert_int_equal(put(d.kv, 0, count, 1, 0), count);
	for (n = 0; n < count; n++)
		lid[n] = fx_lid(n);
	assert_int_equal(posix_memalign(&l.buf, 4096, l.buf_bytes), 0);
	assert_int_equal(hawk_gather(d.kv, &l, NULL, NULL), (int)count);
	for (n = 0; n < count; n++)
		assert_true(fx_is((uint8_t *)l.buf + (uint64_t)remap[n] * FX_BLOCK, n, 1));
	free(l.buf);
	close_dev(&d);
}

/* A shared block is copied for who wants to write, within the GPU or out of it. */
static void test_unshare(void **state)
{
	struct hawk_item fork, it;
	_Alignas(8) uint8_t buf[FX_BLOCK];
	struct dev d;
	uint32_t n;

	(void)state;
	open_dev(&d, 2 * MIB, 2 * MIB);
	for (n = 0; n < 2 * FRAMES - 2; n += 2) {
		assert_int_equal(put(d.kv, n, 1, 1, n % 4 ? 1 : d.gpu + 1), 1);
		fork = (struct hawk_item){ .lid = fx_lid(n), .arg = fx_lid(n + 1) };
		assert_int_equal(hawk_fork(d.kv, &fork, 1), 1);
		it = (struct hawk_item){ .lid = fx_lid(n + 1) };
		assert_int_equal(hawk_pin(d.kv, &it, 1), 1);
		assert_int_equal(hawk_unshare(d.kv, &it, 1, NULL), 1);
		assert_ok(hawk_copy_out(d.kv, it.vt, 0, buf, FX_BLOCK));
		assert_true(fx_is(buf, n, 1));
		assert_int_equal(hawk_put(d.kv, &it, 1, NULL), 1);
	}
	close_dev(&d);
}

/* Bytes on flash that are not what was written there do not come to the GPU. */
static void test_damaged(void **state)
{
	uint32_t n, all = 2 * FRAMES, bad = 0;
	static uint8_t noise[MIB];
	struct dev d;
	int fd, ret;

	(void)state;
	open_dev(&d, 2 * MIB, 0);
	assert_int_equal(put(d.kv, 0, all, 1, 0), all);
	memset(noise, 0x5a, sizeof(noise));
	fd = open(d.file, O_WRONLY);
	assert_true(fd >= 0);
	for (n = 0; n < 64; n++)
		assert_int_equal(pwrite(fd, noise, MIB, (off_t)(n * MIB)), MIB);
	close(fd);
	for (n = 0; n < all; n++) {
		ret = get(d.kv, n, 1, NULL);
		bad += ret != 0;
		if (ret && ret != -EILSEQ && ret != -EIO && ret != -ENOENT)
			fail_msg("block %u: %d", n, ret);
	}
	assert_true(bad >= FRAMES / 2);
	close_dev(&d);
}

/* What a new space finds in all of its blocks. */
static void all_zero(struct hawk_kv *kv)
{
	struct hawk_item it = { .lid = fx_lid(0) };
	_Alignas(8) uint8_t buf[FX_BLOCK];
	uint32_t n, i;

	for (n = 0; n < FRAMES; n++) {
		it.lid = fx_lid(n);
		assert_int_equal(hawk_alloc(kv, &it, 1, NULL), 1);
		assert_ok(hawk_copy_out(kv, it.vt, 0, buf, FX_BLOCK));
		for (i = 0; i < FX_BLOCK; i++)
			assert_int_equal(buf[i], 0);
	}
}

/* What one space had is not there for the next one. */
static void test_zeroed(void **state)
{
	struct dev d;

	(void)state;
	open_dev(&d, 2 * MIB, 0);
	assert_int_equal(put(d.kv, 0, FRAMES, 1, 0), FRAMES);
	hawk_kv_close(d.kv);
	space(&d, 0, &d.kv);
	all_zero(d.kv);
	close_dev(&d);
}

/* The driver lacks memory when a chunk is to be zeroed: nobody gets it as it is. */
static void test_not_zeroed(void **state)
{
	struct hawk_item it = { .lid = fx_lid(0) };
	struct dev d;

	(void)state;
	if (!model.on)
		skip();
	open_dev(&d, 2 * MIB, 0);
	assert_int_equal(put(d.kv, 0, FRAMES, 1, 0), FRAMES);
	set("fail=2");
	hawk_kv_close(d.kv);
	space(&d, 0, &d.kv);
	assert_int_equal(hawk_alloc(d.kv, &it, 1, NULL), 0);
	model.revive();
	all_zero(d.kv);
	close_dev(&d);
}

/* ---- the GPU fails ---- */

/* It dies of the copy: who wanted a block of his own is told. */
static void test_unshare_dies(void **state)
{
	struct hawk_item fork = { .lid = fx_lid(0), .arg = fx_lid(1) }, it = { .lid = fx_lid(1) };
	struct dev d;

	(void)state;
	if (!model.on)
		skip();
	open_dev(&d, 2 * MIB, 0);
	assert_int_equal(put(d.kv, 0, 1, 1, 0), 1);
	assert_int_equal(hawk_fork(d.kv, &fork, 1), 1);
	assert_int_equal(hawk_pin(d.kv, &it, 1), 1);
	set("fail=719");
	assert_int_equal(hawk_unshare(d.kv, &it, 1, NULL), 0);
	assert_int_equal(it.status, -EREMOTEIO);
	assert_int_equal(hawk_translate_slow(d.kv, fx_lid(1)), 0);
	close_dev(&d);
}

/* The keeper has taken the tier from the space. */
static void wait_dropped(struct dev *d)
{
	struct hawk_tier_info info;
	int ret;

	do {
		sched_yield();
		assert_ok(hawk_tier_stat(d->h, d->gpu, &info));
	} while (info.free_bytes + info.quarantine_bytes != info.bytes);
	assert_int_equal(info.health, HAWK_HEALTH_LOST);
	while ((ret = hawk_tier_del_force(d->h, d->gpu)) == -EBUSY)
		sched_yield();
	assert_ok(ret);
}

static void check_lost(struct dev *d, int error)
{
	struct hawk_device dev;

	assert_ok(hawk_tier_device(d->h, d->gpu, &dev));
	assert_int_equal(dev.error, error);
	assert_int_equal(hawk_tier_reopen(d->h, d->gpu), -EIO);
	assert_int_equal(hawk_tier_dmabuf(d->h, d->gpu), error);
}

/*
 * The context dies of somebody else's fault while blocks come and go: those on flash come
 * to DRAM, the others are misses, new ones find room, no byte is wrong.
 */
static void test_dies(void **state)
{
	uint32_t n, all = 4 * FRAMES, hits = 0;
	unsigned int tier;
	struct dev d;
	int ret;

	(void)state;
	if (!model.on)
		skip();
	open_dev(&d, 4 * MIB, 2 * MIB);
	assert_int_equal(put(d.kv, 0, all, 1, 0), all);
	set("fail=719,after=0");
	for (n = 0; n < all; n++) {
		ret = get(d.kv, n, 1, &tier);
		assert_true(!ret || ret == -ENOENT || ret == -EREMOTEIO);
		assert_true(ret || tier != d.gpu);
	}
	check_lost(&d, -EREMOTEIO);
	for (n = 0; n < all; n++) {
		ret = get(d.kv, n, 1, &tier);
		hits += !ret;
		assert_true(!ret || ret == -ENOENT || ret == -EREMOTEIO);
	}
	assert_true(hits >= FRAMES);	/* those on flash */
	wait_dropped(&d);
	assert_int_equal(put(d.kv, 1000, 2 * FRAMES, 2, 0), 2 * FRAMES);
	for (n = 1000; n < 1000 + 2 * FRAMES; n++)
		assert_int_equal(get(d.kv, n, 2, NULL), 0);
	close_dev(&d);
}

/* Bad memory under one block, which somebody has pinned meanwhile. */
static void test_ecc(void **state)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY }, again;
	struct hawk_frame_info where;
	char settings[64];
	uint8_t byte;
	struct dev d;

	(void)state;
	if (!model.on)
		skip();
	open_dev(&d, 4 * MIB, 2 * MIB);
	assert_int_equal(put(d.kv, 0, 4, 1, d.gpu + 1), 4);
	fx_key(&it, 2, 1);
	assert_int_equal(hawk_get(d.kv, &it, 1, NULL, NULL), 1);
	assert_int_equal(HAWK_VT_TIER(it.vt), d.gpu);
	it = (struct hawk_item){ .lid = it.lid, .vt = it.vt };
	assert_ok(hawk_frame_where(d.kv, it.vt, &where));
	snprintf(settings, sizeof(settings), "ecc=%llu", (unsigned long long)where.offset + 5);
	set(settings);
	assert_int_equal(get(d.kv, 1, 1, NULL), 0);
	assert_int_equal(hawk_copy_out(d.kv, it.vt, 0, &byte, 1), 0);
	assert_int_equal(hawk_copy_out(d.kv, it.vt, 5, &byte, 1), -EIO);
	check_lost(&d, -EIO);
	assert_int_equal(hawk_copy_out(d.kv, it.vt, 0, &byte, 1), -EIO);
	again = (struct hawk_item){ .lid = it.lid };
	assert_int_equal(hawk_get(d.kv, &again, 1, NULL, NULL), 0);
	assert_int_equal(again.status, -EIO);
	assert_int_equal(hawk_unpin(d.kv, &it, 1), 1);	/* it was there all the time */
	wait_dropped(&d);
	assert_int_equal(get(d.kv, 1, 1, NULL), -ENOENT);
	assert_int_equal(put(d.kv, 0, 4, 2, 0), 4);
	assert_int_equal(get(d.kv, 2, 2, NULL), 0);
	close_dev(&d);
}

/* It dies at copy 0, 1, 2, ... of an exchange with flash. */
static void test_dies_anywhere(void **state)
{
	uint32_t after, n, all = 2 * FRAMES;
	char settings[64];
	struct dev d;
	int ret;

	(void)state;
	if (!model.on)
		skip();
	for (after = 0; after < 300; after += 13) {
		open_dev(&d, 2 * MIB, 0);
		model.revive();
		snprintf(settings, sizeof(settings), "fail=702,after=%u", after);
		set(settings);
		put(d.kv, 0, all, 1, 0);
		for (n = 0; n < all; n++) {
			ret = get(d.kv, n, 1, NULL);
			if (ret && ret != -ENOENT && ret != -ETIMEDOUT && ret != -ENOSPC &&
			    ret != -EDQUOT)
				fail_msg("block %u: %d", n, ret);
		}
		close_dev(&d);
	}
}

/* ---- many at once ---- */

struct worker {
	pthread_t thread;
	struct hawk_kv *kv;
	uint32_t first;
	uint32_t misses;
};

#define OWN	200u	/* blocks of a worker */

static void *work(void *arg)
{
	struct worker *w = arg;
	uint32_t round, n;

	for (round = 1; round < 4; round++) {
		put(w->kv, w->first + round * OWN, OWN, round, 0);
		for (n = 0; n < OWN; n++)
			w->misses += get(w->kv, w->first + round * OWN + n, round, NULL) != 0;
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct worker w[4];
	struct dev d;
	uint32_t i;

	(void)state;
	open_dev(&d, 4 * MIB, 2 * MIB);
	for (i = 0; i < 4; i++) {
		w[i] = (struct worker){ .kv = d.kv, .first = i * 4 * OWN };
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].misses, 0);
	}
	close_dev(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_peer),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_dmabuf),
		cmocka_unit_test(test_evict),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_unshare),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_zeroed),
		cmocka_unit_test(test_not_zeroed),
		cmocka_unit_test(test_unshare_dies),
		cmocka_unit_test(test_dies),
		cmocka_unit_test(test_ecc),
		cmocka_unit_test(test_dies_anywhere),
		cmocka_unit_test(test_threads),
	};

	unsetenv("HAWK_URL");	/* these are about the embedded backend */
	return cmocka_run_group_tests(tests, choose, NULL);
}
