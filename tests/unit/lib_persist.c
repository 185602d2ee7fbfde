// SPDX-License-Identifier: MIT
/*
 * lib_persist.c - the embedded backend's flash outlives the process
 *
 * HAWK_KILL_N: writers that are killed (default 60); HAWK_SEED.  Embedded backend only.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfixture.h"
#include "poolfile.h"

#define MIB	(1ull << 20)
#define KEYS	600u

static char dir[256], file[300];

static struct hawk *open_pool(const char *more)
{
	struct hawk *h;
	char url[600];

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s&persist=1%s", file, more);
	assert_ok(hawk_open(url, &h));
	return h;
}

static struct hawk_kv *space(struct hawk *h, const char *name)
{
	struct hawk_kv_params p = {
		.block_bytes = FX_BLOCK, .block_tokens = FX_TOKENS, .layers = FX_LAYERS,
		.head_groups = 2, .max_blocks = 4096, .buckets = 1, .quota_all = 1, .name = name,
	};
	struct hawk_kv *kv;

	assert_ok(hawk_kv_create(h, &p, &kv));
	return kv;
}

static struct hawk_stats stats(struct hawk_kv *kv)
{
	struct hawk_stats st;

	assert_ok(hawk_kv_stats(kv, &st));
	return st;
}

static void setup_file(const char *size)
{
	struct hawk *h;
	char more[64];

	fx_dir_make(dir, sizeof(dir));
	snprintf(file, sizeof(file), "%s/pool", dir);
	snprintf(more, sizeof(more), "&flash_size=%s", size);
	h = open_pool(more);
	hawk_close(h);
}

/* Get by key, whatever LID it has.  Return: the version of its bytes, 0: a miss. */
static uint32_t version(struct hawk_kv *kv, uint32_t n, uint32_t max)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	uint32_t v;

	fx_key(&it, n, 0);
	if (hawk_get(kv, &it, 1, NULL, NULL) != 1) {
		assert_true(it.status == -ENOENT || it.status == -EIO);
		return 0;
	}
	for (v = 1; v <= max && !fx_is(hawk_addr(kv, it.vt), n, v); v++)
		;
	if (v > max)
		fail_msg("block %u has bytes that nobody put under its key", n);
	it = (struct hawk_item) { .lid = it.lid, .vt = it.vt };
	assert_int_equal(hawk_unpin(kv, &it, 1), 1);
	return v;
}

/* Block @n with version @v of its bytes, after block @parent (@n: it has none). */
static int put(struct hawk_kv *kv, uint32_t n, uint32_t v, uint32_t parent)
{
	struct hawk_item it = { .lid = fx_lid(n) | (uint64_t)v << (HAWK_LID_SEQ_SHIFT + 4) }, up;

	if (hawk_alloc(kv, &it, 1, NULL) != 1)
		return it.status;
	fx_fill(hawk_addr(kv, it.vt), n, v);
	fx_key(&it, n, 0);
	it.flags = parent == n ? HAWK_ITEM_ROOT : HAWK_ITEM_PARENT;
	fx_key(&up, parent, 0);
	it.arg = parent == n ? 0 : (uintptr_t)up.key;
	return hawk_put(kv, &it, 1, NULL) == 1 ? 0 : it.status;
}

/* 256 blocks in space "a": twice what fits into memory. */
static void fill_file(const char *more)
{
	struct hawk *h = open_pool(more);
	struct hawk_kv *kv = space(h, "a");
	uint32_t n;

	for (n = 0; n < 256; n++)
		assert_int_equal(put(kv, n, 1, n), 0);
	hawk_kv_close(kv);
	hawk_close(h);
}

static void forget(struct hawk_kv *kv, uint32_t n)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };

	fx_key(&it, n, 0);
	hawk_free(kv, &it, 1);
}

/* ---- a clean end ---- */

static void clean_end(void **state)
{
	struct hawk_tier_info info;
	struct hawk_kv *kv, *other;
	uint32_t n, hits = 0;
	struct hawk_stats st;
	struct hawk *h;

	(void)state;
	setup_file("16M");
	h = open_pool("");
	kv = space(h, "a");
	for (n = 0; n < 256; n++)
		assert_int_equal(put(kv, n, 1, n % 16 ? n - 1 : n), 0);
	st = stats(kv);
	assert_true(st.flash >= 128);
	hawk_kv_close(kv);
	hawk_close(h);

	h = open_pool("");
	assert_ok(hawk_tier_stat(h, 1, &info));
	assert_true(info.orphan_bytes >= (st.flash + 127) / 128 * 2 * MIB);
	other = space(h, "b");		/* another identity sees nothing */
	assert_int_equal(stats(other).recovered, 0);
	for (n = 0; n < 256; n++)
		assert_int_equal(version(other, n, 1), 0);
	kv = space(h, "a");
	st = stats(kv);
	assert_true(st.recovered >= 128);	/* DRAM has no room for more of them */
	assert_int_equal(st.recover_corrupt + st.recover_stale + st.recover_no_parent, 0);
	for (n = 0; n < 256; n++)
		hits += version(kv, n, 1);
	assert_int_equal(hits, st.recovered);
	assert_ok(hawk_tier_stat(h, 1, &info));
	assert_int_equal(info.orphan_bytes, 0);
	hawk_kv_close(kv);
	hawk_kv_close(other);
	/* destroyed: not to be found again */
	assert_ok(hawk_kv_destroy(h, "a"));
	kv = space(h, "a");
	assert_int_equal(stats(kv).recovered, 0);
	hawk_kv_close(kv);
	hawk_close(h);
	h = open_pool("");
	kv = space(h, "a");
	assert_int_equal(stats(kv).recovered, 0);
	hawk_kv_close(kv);
	hawk_close(h);
	fx_dir_remove(dir);
}

/* What is found can be used as any block: forked to a LID, pinned, gathered, freed. */
static void found_blocks_are_blocks(void **state)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY }, fork;
	struct hawk_gather_lists l = { 0 };
	static uint8_t buf[FX_BLOCK] __attribute__((aligned(4096)));
	uint32_t count = 1, remap;
	int32_t status;
	struct hawk_kv *kv;
	struct hawk *h;
	uint64_t lid;

	(void)state;
	setup_file("16M");
	fill_file("");
	h = open_pool("");
	kv = space(h, "a");
	fx_key(&it, 5, 0);
	assert_int_equal(hawk_lookup(kv, &it, 1, NULL, NULL), 1);
	lid = it.lid;
	assert_int_equal(lid >> HAWK_LID_SEQ_SHIFT, 0);
	assert_int_not_equal(lid, 0);
	l = (struct hawk_gather_lists) {
		.lid = &lid, .count = &count, .lists = 1, .remap = &remap, .status = &status,
		.buf = buf, .buf_bytes = sizeof(buf),
	};
	assert_int_equal(hawk_gather(kv, &l, NULL, NULL), 1);
	assert_true(fx_is(buf, 5, 1));
	fork = (struct hawk_item) { .lid = lid, .arg = HAWK_LID(9, 1, 0, 0) };
	assert_int_equal(hawk_fork(kv, &fork, 1), 1);
	it = (struct hawk_item) { .lid = lid };
	assert_int_equal(hawk_free(kv, &it, 1), 1);
	it = (struct hawk_item) { .lid = HAWK_LID(9, 1, 0, 0) };
	assert_int_equal(hawk_get(kv, &it, 1, NULL, NULL), 1);
	assert_true(fx_is(hawk_addr(kv, it.vt), 5, 1));
	assert_int_equal(hawk_unpin(kv, &it, 1), 1);
	hawk_kv_close(kv);
	hawk_close(h);
	fx_dir_remove(dir);
}

static uint64_t room(void)
{
	struct stat st;

	assert_false(stat(file, &st));
	return (uint64_t)st.st_blocks * 512;
}

/* A file whose room was reserved keeps it when chunks are given up; a sparse one gives it back. */
static void room_of_a_file(void **state)
{
	struct poolfile_params p = { .bytes = 16 * MIB, .slot_bytes = 16384 };
	struct hawk_super made;
	struct hawk_kv *kv;
	struct hawk *h;
	uint32_t i, n;
	int fd;

	(void)state;
	for (i = 0; i < 2; i++) {
		p.sparse = i;
		fx_dir_make(dir, sizeof(dir));
		snprintf(file, sizeof(file), "%s/pool", dir);
		fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(poolfile_make(fd, &p, &made), 0);
		close(fd);
		h = open_pool("");
		kv = space(h, "a");
		for (n = 0; n < 400; n++)
			assert_int_equal(put(kv, n, 1, n), 0);
		assert_true(room() > 3 * MIB);
		hawk_kv_close(kv);
		assert_ok(hawk_kv_destroy(h, "a"));
		hawk_close(h);
		assert_true(p.sparse ? room() < 2 * MIB : room() >= 16 * MIB);
		fx_dir_remove(dir);
	}
}

/* ---- kill ---- */

/* What the writer has done, seen by who looks after it was killed. */
struct shared {
	uint32_t high[KEYS];	/* latest version that may have been put */
	uint64_t puts;
	uint64_t header_bytes;		/* written by the present writer */
};

#define COMMITTED	(8 * 4096u)	/* more than the records of all chunks */

static uint64_t rng;

static uint32_t below(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((rng >> 33) % n);
}

/* A new version of some key, over and over. */
static void writer(struct shared *sh, uint32_t round)
{
	struct hawk *h = open_pool("&writeback=512");
	struct hawk_kv *kv = space(h, "a");
	struct hawk_tier_info info;
	uint32_t n;

	rng = round;
	for (;;) {
		n = below(KEYS);
		if (version(kv, n, sh->high[n]))
			forget(kv, n);
		__atomic_store_n(&sh->high[n], sh->high[n] + 1, __ATOMIC_SEQ_CST);
		if (put(kv, n, sh->high[n], n))
			_exit(3);
		if (hawk_tier_stat(h, 1, &info))
			_exit(4);
		__atomic_store_n(&sh->header_bytes, info.header_bytes, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&sh->puts, 1, __ATOMIC_SEQ_CST);
	}
}

/* The writer has done so much, and mostly some headers have been committed. */
static bool far_enough(struct shared *sh, uint64_t puts, uint32_t round)
{
	return __atomic_load_n(&sh->puts, __ATOMIC_SEQ_CST) >= puts &&
	       (round % 3 == 2 ||
		__atomic_load_n(&sh->header_bytes, __ATOMIC_SEQ_CST) >= COMMITTED);
}

static void killed_writers(void **state)
{
	const char *env = getenv("HAWK_KILL_N");
	uint32_t round, rounds = env ? (uint32_t)atoi(env) : 60, n, hits;
	uint64_t served = 0, until, recovered = 0;
	struct hawk_tier_info info;
	struct shared *sh;
	struct hawk_kv *kv;
	struct hawk *h;
	int status;
	pid_t pid;

	(void)state;
	setup_file("16M");
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(sh != MAP_FAILED);
	for (round = 1; round <= rounds; round++) {
		until = sh->puts + 1 + (round * 7919) % 2000;
		sh->header_bytes = 0;
		pid = fork();
		if (!pid)
			writer(sh, round);
		while (!far_enough(sh, until, round) && !waitpid(pid, &status, WNOHANG))
			sched_yield();
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		h = open_pool("");
		kv = space(h, "a");
		recovered += stats(kv).recovered;
		for (n = 0, hits = 0; n < KEYS; n++)
			hits += !!version(kv, n, sh->high[n]);
		served += hits;
		assert_true(hits <= stats(kv).recovered);
		/* what was torn by the end of the writer is no fault of the drive */
		assert_ok(hawk_tier_stat(h, 1, &info));
		assert_int_equal(info.health, HAWK_HEALTH_OK);
		hawk_kv_close(kv);
		hawk_close(h);
	}
	print_message("%u writers killed after %llu puts, %llu blocks found, %llu served\n", rounds,
		      (unsigned long long)sh->puts, (unsigned long long)recovered,
		      (unsigned long long)served);
	assert_true(rounds < 10 || served > rounds);
	munmap(sh, sizeof(*sh));
	fx_dir_remove(dir);
}

/* ---- what is forgotten ---- */

static struct hawk_super super(void)
{
	struct hawk_super s[2];
	int err[2], fd = open(file, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	poolfile_supers(fd, s, err);
	close(fd);
	assert_int_equal(err[0], 0);
	return s[0];
}

/* Headers in the file that would be found again. */
static uint32_t headers(const struct hawk_super *s)
{
	static uint8_t page[HAWK_POOL_PAGE * 4];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint32_t c, i, found = 0;
	struct hawk_header hd;
	struct hawk_record r;

	assert_true(fd >= 0);
	for (c = 0; c < s->chunks; c++) {
		assert_int_equal(poolfile_read(fd, hawk_record_off(s, c), page,
					       HAWK_RECORD_BYTES), 0);
		if (hawk_record_decode(page, hawk_pool_id(s), c, &r) || !r.kept)
			continue;
		assert_int_equal(poolfile_read(fd, hawk_header_off(s, c), page, sizeof(page)), 0);
		for (i = 0; i < sizeof(page) / HAWK_HEADER_BYTES; i++)
			found += !hawk_header_decode(page + i * HAWK_HEADER_BYTES,
						     hawk_pool_id(s), &r, i, &hd);
	}
	close(fd);
	return found;
}

/* Frees all blocks, or destroys the space, and does nothing more. */
static void forgetter(bool destroy)
{
	struct hawk *h = open_pool("");
	struct hawk_kv *kv = space(h, "a");
	uint32_t n;

	for (n = 0; !destroy && n < 256; n++)
		forget(kv, n);
	if (destroy) {
		hawk_kv_close(kv);
		if (hawk_kv_destroy(h, "a"))
			_exit(3);
	}
	for (;;)
		pause();
}

/* It is on flash soon, although nothing else is written; and lost power brings nothing back. */
static void forgotten_soon(void **state)
{
	struct hawk_super s;
	struct hawk_kv *kv;
	uint64_t until;
	uint32_t i;
	struct hawk *h;
	int status;
	pid_t pid;

	(void)state;
	for (i = 0; i < 2; i++) {
		setup_file("16M");
		fill_file("");
		s = super();
		assert_in_range(headers(&s), 128, 256);
		pid = fork();
		if (!pid)
			forgetter(i);
		until = fx_now() + 60000000000ull;
		while (headers(&s) && !waitpid(pid, &status, WNOHANG)) {
			if (fx_now() > until)
				fail_msg("%u headers are still there", headers(&s));
			sched_yield();
		}
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		h = open_pool("");
		kv = space(h, "a");
		assert_int_equal(stats(kv).recovered, 0);
		hawk_kv_close(kv);
		hawk_close(h);
		fx_dir_remove(dir);
	}
}

/* ---- damage ---- */

static void edit(uint64_t off)
{
	int fd = open(file, O_RDWR | O_CLOEXEC);
	uint8_t b;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &b, 1, (off_t)off), 1);
	b ^= 0x10;
	assert_int_equal(pwrite(fd, &b, 1, (off_t)off), 1);
	close(fd);
}

/* The first slot of chunk 0 from @slot on that has a header. */
static uint32_t slot_in_use(const struct hawk_super *s, uint32_t slot)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint8_t b = 0;

	assert_true(fd >= 0);
	for (; !b && slot < FX_CHUNK_FRAMES; slot++)
		assert_int_equal(pread(fd, &b, 1, (off_t)(hawk_header_off(s, 0) +
							  slot * HAWK_HEADER_BYTES)), 1);
	close(fd);
	assert_true(b);
	return slot - 1;
}

static void damage(void **state)
{
	struct hawk_tier_info info;
	uint32_t n, miss = 0;
	struct hawk_super s;
	struct hawk_kv *kv;
	struct hawk *h;

	(void)state;
	setup_file("16M");
	fill_file("&writeback=1024");
	s = super();
	assert_true(s.clean);
	n = slot_in_use(&s, 3);
	edit(hawk_header_off(&s, 0) + n * HAWK_HEADER_BYTES + 70);	/* a key */
	edit(s.data_off + slot_in_use(&s, n + 1) * FX_BLOCK + 5000);	/* bytes */
	edit(100);						/* superblock 0 */
	h = open_pool("");
	kv = space(h, "a");
	assert_int_equal(stats(kv).recover_corrupt, 1);
	for (n = 0; n < 256; n++)
		miss += !version(kv, n, 1);
	assert_int_equal(miss, 256 - (stats(kv).recovered - 1));
	assert_int_equal(stats(kv).reload_errors, 1);
	assert_ok(hawk_tier_stat(h, 1, &info));
	assert_int_equal(info.io_errors, 1);
	hawk_kv_close(kv);
	hawk_close(h);
	/* the superblock has come back, the header has gone */
	s = super();
	h = open_pool("");
	kv = space(h, "a");
	assert_int_equal(stats(kv).recover_corrupt, 0);
	hawk_kv_close(kv);
	hawk_close(h);
	edit(50);
	edit(hawk_super_copy_off(1) + 96);
	{
		char url[600];

		snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s&persist=1", file);
		assert_int_equal(hawk_open(url, &h), -EILSEQ);
		assert_non_null(strstr(hawk_strerror_last(), "hawkctl"));
	}
	fx_dir_remove(dir);
}

/* Superblock 1 is found without superblock 0, also when the file has become longer. */
static void enlarged_file(void **state)
{
	struct hawk_kv *kv;
	struct hawk *h;

	(void)state;
	setup_file("16M");
	fill_file("");
	assert_int_equal(truncate(file, 64 * MIB), 0);
	edit(100);
	h = open_pool("");
	kv = space(h, "a");
	assert_true(stats(kv).recovered >= 128);
	hawk_kv_close(kv);
	hawk_close(h);
	assert_int_equal(super().bytes, 16 * MIB);
	fx_dir_remove(dir);
}

/* ---- forgery ---- */

static void put_page(uint64_t off, const uint8_t *page)
{
	int fd = open(file, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, page, HAWK_POOL_PAGE, (off_t)off), HAWK_POOL_PAGE);
	close(fd);
}

static int open_as(const char *more, uint64_t *size)
{
	struct stat st;
	struct hawk *h;
	char url[600];
	int ret;

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s%s", file, more);
	ret = hawk_open(url, &h);
	if (!ret)
		hawk_close(h);
	assert_int_equal(stat(file, &st), 0);
	*size = (uint64_t)st.st_size;
	return ret;
}

/*
 * Who fills plain flash chooses all bytes of its payload, also those of a pool: superblocks,
 * records, headers.  Nobody takes it for one, with or without its flag.
 */
static void forged_pool(void **state)
{
	struct hawk_super s = { .bytes = 16 * MIB, .slot_bytes = 16384, .seq = 9 };
	static uint8_t page[HAWK_POOL_PAGE];
	uint64_t size;
	int fd;

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	snprintf(file, sizeof(file), "%s/plain", dir);
	assert_ok(open_as("&flash_size=16M", &size));
	assert_int_equal(size, 16 * MIB + HAWK_POOL_PAGE);	/* nothing of it is payload less */
	assert_int_equal(hawk_super_layout(&s), 0);
	hawk_super_encode(&s, page);
	put_page(0, page);
	put_page(HAWK_SUPER_1_OFF, page);
	assert_ok(open_as("&flash_size=16M", &size));
	assert_int_equal(open_as("&persist=1", &size), -ENOENT);
	assert_int_equal(size, 16 * MIB + HAWK_POOL_PAGE);
	/* without the mark it would have been one */
	assert_int_equal(truncate(file, 16 * MIB), 0);
	assert_int_equal(open_as("&flash_size=16M", &size), -EEXIST);
	assert_ok(open_as("&persist=1", &size));
	/* and whoever makes it a pool takes the mark away */
	assert_int_equal(unlink(file), 0);
	assert_ok(open_as("&flash_size=16M", &size));
	fd = open(file, O_RDWR | O_CLOEXEC);
	assert_int_equal(poolfile_make(fd, &(struct poolfile_params) {
				 .bytes = 16 * MIB + HAWK_POOL_PAGE, .slot_bytes = 16384 }, &s), 0);
	close(fd);
	assert_ok(open_as("&persist=1", &size));
	assert_int_equal(open_as("&flash_size=16M", &size), -EEXIST);
	fx_dir_remove(dir);
}

/* ---- refusals ---- */

static int try_url(const char *more)
{
	struct hawk *h;
	char url[700];
	int ret;

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s%s", file, more);
	ret = hawk_open(url, &h);
	if (!ret)
		hawk_close(h);
	return ret;
}

static void refusals(void **state)
{
	struct hawk_kv_params p = {
		.block_bytes = 4096, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.max_blocks = 64, .quota_all = 1, .name = "small",
	};
	struct hawk_kv *kv;
	unsigned int tier;
	struct hawk *h;
	int fd;

	(void)state;
	setup_file("16M");
	assert_int_equal(try_url("&flash_size=16M"), -EEXIST);	/* a pool, without persist */
	assert_non_null(strstr(hawk_strerror_last(), "persist=1"));
	h = open_pool("");
	assert_int_equal(try_url("&persist=1"), -EBUSY);
	assert_int_equal(hawk_tier_add_pool(h, file, &tier), -EBUSY);
	assert_int_equal(hawk_tier_add_pool(h, "", &tier), -EINVAL);
	assert_int_equal(hawk_kv_create(h, &p, &kv), -EINVAL);
	assert_non_null(strstr(hawk_strerror_last(), "--slot-bytes"));
	p.name = NULL;		/* nothing of it is kept */
	assert_ok(hawk_kv_create(h, &p, &kv));
	hawk_kv_close(kv);
	hawk_close(h);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(try_url("&persist=1"), -EINVAL);	/* of which size? */
	assert_int_equal(unlink(file), 0);
	assert_int_equal(try_url("&persist=1&flash_size=3M"), -ENOSPC);	/* no chunk fits */
	assert_int_equal(try_url("&persist=2&flash_size=8M"), -EINVAL);
	/* something else's file is left alone */
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(fd, "precious", 8, 0), 8);
	assert_int_equal(ftruncate(fd, 8 << 20), 0);
	assert_int_equal(try_url("&persist=1&flash_size=8M"), -ENOENT);
	assert_int_equal(try_url("&flash_size=8M"), 0);
	close(fd);
	fx_dir_remove(dir);
}

/* ---- a million slots ---- */

#define MILLION	1000000u

static double cpu_s(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
	       (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

/* MILLION blocks of the space, each after the one before, in as many chunks as that takes. */
static void write_slots(int fd, const struct hawk_super *s, const struct hawk_space_create *c)
{
	struct hawk_record r = { .kept = true };
	struct hawk_header hd = { .bytes = 16384, .hints = 1 };
	uint64_t pool = hawk_pool_id(s);
	uint32_t n, chunk, i;
	uint8_t *buf;

	hawk_identity_of(c, geteuid(), &r.owner);
	r.space = hawk_identity_hash(&r.owner);
	hd.space = r.space;
	buf = calloc(1, 128 * HAWK_HEADER_BYTES);
	for (n = 0, chunk = 0; n < MILLION; chunk++) {
		r.chunk = chunk;
		r.epoch = hd.epoch = chunk + 1;
		hawk_record_encode(&r, pool, buf);
		assert_int_equal(pwrite(fd, buf, HAWK_RECORD_BYTES,
					(off_t)hawk_record_off(s, chunk)), HAWK_RECORD_BYTES);
		memset(buf, 0, 128 * HAWK_HEADER_BYTES);
		for (i = 0; i < 128 && n < MILLION; i++, n++) {
			hd.slot = (uint16_t)i;
			hd.gen = n + 1;
			hd.layer = n % 4;
			memcpy(hd.parent, hd.key, sizeof(hd.key));
			hd.hints = !!n;
			memcpy(hd.key, &(uint32_t) { n + 1 }, 4);
			hawk_header_encode(&hd, pool, buf + i * HAWK_HEADER_BYTES);
		}
		assert_int_equal(pwrite(fd, buf, 128 * HAWK_HEADER_BYTES,
					(off_t)hawk_header_off(s, chunk)), 128 * HAWK_HEADER_BYTES);
	}
	free(buf);
}

/* A sparse pool whose headers, but not their blocks, are there. */
static void many_slots(void **state)
{
	struct poolfile_params pp = { .slot_bytes = 16384, .sparse = true };
	struct hawk_kv_params p = {
		.block_bytes = 16384, .block_tokens = 16, .layers = 4, .head_groups = 2,
		.max_blocks = MILLION + 4096, .quota_all = 1, .name = "million",
	};
	struct hawk_space_create c = {
		.block_bytes = 16384, .block_tokens = 16, .layers = 4, .head_groups = 2,
		.name = "million",
	};
	struct rusage before, after;
	struct hawk_super s;
	struct hawk_kv *kv;
	uint64_t start;
	struct hawk *h;
	int fd;

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	snprintf(file, sizeof(file), "%s/pool", dir);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	pp.bytes = (MILLION / 128 + 64ull) * 2 * MIB + 256 * MIB;
	assert_int_equal(poolfile_make(fd, &pp, &s), 0);
	write_slots(fd, &s, &c);
	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	getrusage(RUSAGE_SELF, &before);
	start = fx_now();
	h = open_pool("");
	assert_ok(hawk_kv_create(h, &p, &kv));
	start = fx_now() - start;
	getrusage(RUSAGE_SELF, &after);
	print_message("%u slots recovered in %.2f s, %.2f s of CPU time\n", MILLION,
		      (double)start / 1e9, cpu_s(&after) - cpu_s(&before));
	assert_int_equal(stats(kv).recovered, MILLION);
	assert_int_equal(stats(kv).recover_no_parent, 0);
	hawk_kv_close(kv);
	hawk_close(h);
	fx_dir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_end),
		cmocka_unit_test(found_blocks_are_blocks),
		cmocka_unit_test(room_of_a_file),
		cmocka_unit_test(forgotten_soon),
		cmocka_unit_test(damage),
		cmocka_unit_test(enlarged_file),
		cmocka_unit_test(forged_pool),
		cmocka_unit_test(refusals),
		cmocka_unit_test(killed_writers),
		cmocka_unit_test(many_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
