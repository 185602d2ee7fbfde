// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_import.c - a tier in the memory of another driver's dma-buf
 *
 * The driver is hawk_exporter.ko, which reads and writes its memory as a GPU would,
 * moves it and takes it away; memory that a buffer has left has bytes of its own, and
 * the driver counts the pages of it that somebody wrote to.  Buffers that never move
 * are those of /dev/udmabuf and of the system's dma-buf heap.
 */
#define _GNU_SOURCE
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "hawk_models.h"

#define BUF_MIB		4u
#define BUF_BYTES	(BUF_MIB * MIB)
#define HOST_BYTES	(2 * MIB)
#define FLASH_BYTES	(16 * MIB)
#define BUF_BLOCKS	((uint32_t)(BUF_BYTES / BLOCK))
#define MORE		64u	/* blocks beyond those that the buffer holds */
#define ROUNDS		600u	/* blocks read while something happens to the buffer */

/*
 * struct side - a space whose blocks are in a buffer
 * @fd: its file
 * @exp: the exporter's file, -1: @map
 * @map: the buffer
 * @host: tier id of a host tier in the space, or ~0
 * @win: its window
 */
struct side {
	int fd;
	int exp;
	uint8_t *map;
	uint32_t host;
	uint8_t *win;
};

static int exp_call(int exp, unsigned long cmd, unsigned long arg)
{
	return ioctl(exp, cmd, arg) ? -errno : 0;
}

/* A file of the exporter with a buffer, whose descriptor is @fd. */
static int exp_make(uint32_t mib, uint32_t flags, int *fd)
{
	struct hawk_exp_make mk = { .mib = mib, .flags = flags };
	int exp = open("/dev/hawk-exporter", O_RDWR | O_CLOEXEC), ret;

	if (exp < 0)
		return -errno;
	ret = dev_call(exp, HAWK_EXP_IOC_MAKE, &mk);
	if (ret) {
		close(exp);
		return ret;
	}
	*fd = mk.fd;
	return exp;
}

static struct hawk_exp_info exp_info(int exp)
{
	struct hawk_exp_info info = { .attachments = ~0u };

	dev_call(exp, HAWK_EXP_IOC_INFO, &info);
	return info;
}

/* Bytes of the buffer, by its device. */
static int buf_rw(const struct side *s, uint64_t off, void *buf, uint32_t len, bool write)
{
	struct hawk_imp_rw rw = {
		.offset = off, .buf = (uintptr_t)buf, .len = len,
		.flags = write ? HAWK_IMP_RW_WRITE : 0,
	};

	if (s->exp >= 0)
		return dev_call(s->exp, HAWK_EXP_IOC_RW, &rw);
	if (write)
		memcpy(s->map + off, buf, len);
	else
		memcpy(buf, s->map + off, len);
	return 0;
}

/* Has it these bytes only?  1, 0, or a negative errno. */
static int buf_is(const struct side *s, uint64_t from, uint64_t to, uint8_t byte)
{
	static uint8_t buf[HAWK_IMP_RW_MAX], want[HAWK_IMP_RW_MAX];
	int ret;

	memset(want, byte, sizeof(want));
	for (; from < to; from += sizeof(buf)) {
		ret = buf_rw(s, from, buf, sizeof(buf), false);
		if (ret || memcmp(buf, want, sizeof(buf)))
			return ret;
	}
	return 1;
}

static unsigned long spoilt(void)
{
	char buf[32] = "";
	int fd = open("/sys/module/hawk_exporter/parameters/spoilt", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) < 0)
		return ~0ul;
	close(fd);
	return strtoul(buf, NULL, 0);
}

static int import(int ctl, int fd, uint64_t bytes, uint32_t *tier)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .kind = HAWK_TIER_DMABUF, .node = -1, .bytes = bytes,
		.fd = fd,
	};
	int ret = dev_call(ctl, HAWK_IOC_TIER_ADD, &add);

	*tier = add.tier;
	return ret;
}

static struct hawk_tier_info tier_info(int fd, uint32_t tier)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = tier };

	if (dev_call(fd, HAWK_IOC_TIER_INFO, &info))
		memset(&info, 0xff, sizeof(info));
	return info;
}

/* Until the tier is gone. */
static void wait_gone(int ctl, uint32_t tier)
{
	while (tier_info(ctl, tier).kind == HAWK_TIER_DMABUF)
		poll(NULL, 0, 10);
}

/* ---- blocks ---- */

/* The bytes of the pinned block in frame @vt. */
static int block_rw(const struct side *s, uint64_t vt, void *buf, bool write)
{
	struct hawk_frame_info fi = {
		.size = sizeof(fi), .tier = HAWK_VT_TIER(vt), .frame = HAWK_VT_FRAME(vt),
	};
	int ret;

	if (HAWK_VT_TIER(vt) == s->host) {
		if (write)
			memcpy(frame_at(s->win, vt, BLOCK), buf, BLOCK);
		else
			memcpy(buf, frame_at(s->win, vt, BLOCK), BLOCK);
		return 0;
	}
	ret = dev_call(s->fd, HAWK_IOC_FRAME_INFO, &fi);
	return ret ?: buf_rw(s, fi.offset, buf, BLOCK, write);
}

/* Blocks with pattern @seed + n under LID(n): 0 or a negative errno. */
static int make_blocks(const struct side *s, uint32_t first, uint32_t n, uint32_t seed)
{
	uint8_t buf[BLOCK];
	uint32_t i;

	for (i = first; i < first + n; i++) {
		struct hawk_item it = { .lid = LID(i) };
		int ret = one(s->fd, HAWK_IOC_ALLOC, 0, &it);

		if (ret)
			return ret;
		fill(buf, BLOCK, seed + i);
		ret = block_rw(s, it.vt, buf, true);
		if (ret)
			return ret;
		it.vt = 0;
		ret = one(s->fd, HAWK_IOC_PUT, 0, &it);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * GET, compare, UNPIN: 0, a negative errno, 1 if the bytes are wrong.  -ENODEV: they
 * were in the buffer, which is gone.
 */
static int check_block(const struct side *s, uint32_t n)
{
	struct hawk_item it = { .lid = LID(n) };
	uint8_t buf[BLOCK];
	int ret, err;

	ret = one(s->fd, HAWK_IOC_GET, 0, &it);
	if (ret)
		return ret;
	err = block_rw(s, it.vt, buf, false);
	if (!err)
		err = !filled(buf, BLOCK, n);
	ret = lid_call(s->fd, HAWK_IOC_UNPIN, LID(n));
	return ret ?: err;
}

static int space_make(struct side *s, uint32_t tier, uint32_t host, uint32_t blk)
{
	struct hawk_space_create sc = space_args(8 * BUF_BLOCKS);
	int ret;

	s->fd = dev_open(O_RDWR);
	s->host = host;
	s->win = NULL;
	sc.quota[tier].max_bytes = BUF_BYTES;
	sc.quota[blk].max_bytes = FLASH_BYTES;
	if (host != ~0u)
		sc.quota[host].max_bytes = HOST_BYTES;
	ret = dev_call(s->fd, HAWK_IOC_SPACE_CREATE, &sc);
	if (!ret && host != ~0u) {
		s->win = map_area(s->fd, HAWK_MMAP_TIER(host), HOST_BYTES,
				  PROT_READ | PROT_WRITE);
		ret = s->win ? 0 : -errno;
	}
	return ret;
}

/* ---- the tier, a host tier and flash; no space yet ---- */

FIXTURE(import) {
	int ctl;
	int buf;
	uint32_t tier, host, blk;
	char *path;
	unsigned long spoilt;
	struct side s;
};

FIXTURE_SETUP(import)
{
	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	if (model_load("exporter", ""))
		SKIP(return, "no hawk_exporter.ko in HAWK_TEST_MODELS");
	self->spoilt = spoilt();
	self->path = temp_file("import", FLASH_BYTES);
	ASSERT_NE(NULL, self->path);
	self->ctl = dev_open(O_RDWR);
	self->s.exp = exp_make(BUF_MIB, 0, &self->buf);
	ASSERT_GE(self->s.exp, 0);
	self->s.fd = -1;
	ASSERT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, HAWK_EXP_FILL));
	ASSERT_EQ(0, import(self->ctl, self->buf, 0, &self->tier));
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
}

/* The exporter gets its buffer back as it was: nobody uses it, nothing of ours is in it. */
FIXTURE_TEARDOWN(import)
{
	if (self->s.win)
		munmap(self->s.win, HOST_BYTES);
	if (self->s.fd >= 0)
		close(self->s.fd);
	if (tier_info(self->ctl, self->tier).kind == HAWK_TIER_DMABUF) {
		EXPECT_EQ(0, tier_remove_idle(self->ctl, self->tier));
		EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0));
	}
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->blk));
	EXPECT_EQ(0, exp_info(self->s.exp).attachments);
	EXPECT_EQ(0, exp_info(self->s.exp).mapped);
	close(self->buf);
	close(self->s.exp);
	EXPECT_EQ(self->spoilt, spoilt()) TH_LOG("memory was written to that was no more ours");
	close(self->ctl);
	unlink(self->path);
	free(self->path);
}

/* ---- the bytes ---- */

TEST_F(import, is_a_tier)
{
	struct hawk_tier_info info = tier_info(self->ctl, self->tier);
	struct hawk_query q = { .size = sizeof(q) };

	EXPECT_EQ(HAWK_TIER_DMABUF, info.kind);
	EXPECT_EQ(-1, info.node);
	EXPECT_EQ(BUF_BYTES, info.bytes);
	EXPECT_EQ(BUF_BYTES, info.free_bytes);
	EXPECT_EQ(1, exp_info(self->s.exp).attachments);
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_QUERY, &q));
	EXPECT_TRUE(q.features & HAWK_FEAT_TIER_DMABUF);
}

TEST_F(import, to_flash_and_back)
{
	uint32_t i, n = BUF_BLOCKS + MORE;

	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, n, 0));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, check_block(&self->s, i)) TH_LOG("block %u", i);
	EXPECT_EQ(0, tier_info(self->ctl, self->tier).io_errors);
	EXPECT_EQ(0, tier_info(self->ctl, self->blk).io_errors);
	EXPECT_GE(tier_info(self->ctl, self->blk).write_bytes, MORE * BLOCK);
}

TEST_F(import, private_copy)
{
	struct hawk_item it = { .lid = LID(0), .arg = LID(1) };
	uint8_t buf[BLOCK];

	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, 1, 0));
	ASSERT_EQ(0, one(self->s.fd, HAWK_IOC_FORK, 0, &it));
	ASSERT_EQ(0, lid_call(self->s.fd, HAWK_IOC_PIN, LID(1)));
	it = (struct hawk_item){ .lid = LID(1) };
	ASSERT_EQ(0, one(self->s.fd, HAWK_IOC_UNSHARE, 0, &it));
	ASSERT_EQ(0, block_rw(&self->s, it.vt, buf, false));
	EXPECT_TRUE(filled(buf, BLOCK, 0));
}

/* Only who has the buffer itself reaches its bytes. */
TEST_F(import, no_window_and_no_export)
{
	struct hawk_export x;

	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, 1, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, self->s.fd,
				   HAWK_MMAP_TIER(self->tier)));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(-EOPNOTSUPP, export_blocks(self->s.fd, 0, 1, 0, &x));
}

/* An exporter that will not move what the CPU has mapped can, when the tier is idle. */
TEST_F(import, idle_tier_is_not_mapped)
{
	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, BUF_BLOCKS + MORE, 0));
	while (exp_info(self->s.exp).mapped)
		poll(NULL, 0, 50);
	EXPECT_EQ(0, check_block(&self->s, 0));
}

/* ---- isolation ---- */

static int frames_are_zero(const struct side *s, uint32_t n)
{
	static const uint8_t zero[BLOCK];
	uint8_t buf[BLOCK];
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		struct hawk_item it = { .lid = LID(i) };

		ret = one(s->fd, HAWK_IOC_ALLOC, 0, &it) ?: block_rw(s, it.vt, buf, false);
		if (ret || memcmp(buf, zero, BLOCK))
			return ret;
	}
	return 1;
}

TEST_F(import, second_tenant_sees_zeroes)
{
	struct side a = self->s, b = self->s;

	EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0)) TH_LOG("the exporter's own bytes");
	ASSERT_EQ(0, space_make(&a, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&a, 0, BUF_BLOCKS, 5000));
	EXPECT_EQ(0, buf_is(&self->s, 0, BUF_BYTES, 0));
	close(a.fd);
	ASSERT_EQ(0, space_make(&b, self->tier, ~0u, self->blk));
	EXPECT_EQ(1, frames_are_zero(&b, BUF_BLOCKS));
	close(b.fd);
	while (tier_free_bytes(self->ctl, self->tier) != BUF_BYTES)
		poll(NULL, 0, 10);
	EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0));
}

/* A chunk is free again when it is zero, and it is zeroed again if that failed. */
TEST_F(import, zeroing_is_tried_again)
{
	struct side a = self->s;

	ASSERT_EQ(0, space_make(&a, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&a, 0, BUF_BLOCKS, 5000));
	ASSERT_EQ(0, exp_call(a.exp, HAWK_EXP_IOC_FAIL, ENOMEM));
	close(a.fd);
	while (tier_free_bytes(self->ctl, self->tier) != BUF_BYTES)
		poll(NULL, 0, 10);
	EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0));
}

/* ---- what the exporter does meanwhile ---- */

/* struct load - shared with the child that reads blocks */
struct load {
	uint32_t stop;
	uint32_t rounds;	/* blocks read */
	int32_t ret;		/* what ended it, unless @stop did */
	uint32_t block;		/* with which block */
};

/*
 * A child that reads blocks 0 .. @n - 1, most of which have to come from flash first,
 * until it is told to stop or finds a wrong one.  @may_lose: a block may be a miss.
 */
static pid_t load_start(struct load *l, const struct side *s, uint32_t n, bool may_lose)
{
	struct side own = *s;
	pid_t pid = fork();
	uint32_t i = 0;
	int ret = 0;

	if (pid)
		return pid;
	if (s->win)	/* windows are not inherited */
		own.win = map_area(s->fd, HAWK_MMAP_TIER(s->host), HOST_BYTES, PROT_READ);
	while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
		i = (i + 97) % n;
		ret = check_block(&own, i);
		if (ret == -EAGAIN || (may_lose && ret < 0))
			ret = 0;
		if (ret)
			break;
		__atomic_add_fetch(&l->rounds, 1, __ATOMIC_RELAXED);
	}
	l->ret = ret;
	l->block = i;
	_exit(0);
}

static bool load_has_read(struct load *l, uint32_t rounds, pid_t pid)
{
	return __atomic_load_n(&l->rounds, __ATOMIC_RELAXED) >= rounds ||
	       waitpid(pid, NULL, WNOHANG);	/* it has died */
}

/* Return: what ended it: 0, a negative errno, 1: wrong bytes. */
static int load_end(struct load *l, pid_t pid)
{
	__atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
	waitpid(pid, NULL, 0);
	return l->ret;
}

static struct load *load_alloc(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Nobody notices.  A move for each block: one after the other would leave no time to read. */
TEST_F(import, moved_under_load)
{
	uint32_t i, rounds, n = BUF_BLOCKS + MORE;
	struct load *l = load_alloc();
	pid_t pid;

	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, n, 0));
	pid = load_start(l, &self->s, n, false);
	for (rounds = 0; !load_has_read(l, ROUNDS, pid); rounds = l->rounds) {
		ASSERT_EQ(0, exp_call(self->s.exp, HAWK_EXP_IOC_MOVE, 0));
		while (!load_has_read(l, rounds + 1, pid))
			sched_yield();
	}
	EXPECT_EQ(0, load_end(l, pid)) TH_LOG("block %u", l->block);
	EXPECT_GT(exp_info(self->s.exp).moves, 1);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, check_block(&self->s, i)) TH_LOG("block %u", i);
	EXPECT_EQ(0, tier_info(self->ctl, self->tier).io_errors);
	TH_LOG("%u blocks read, %u moves", l->rounds, exp_info(self->s.exp).moves);
}

/* Lines of the kernel's log with @text, from where @kmsg is. */
static int log_lines(int kmsg, const char *text)
{
	char line[1024];
	ssize_t n;
	int lines = 0;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = 0;
		lines += strstr(line, text) != NULL;
	}
	return lines;
}

/* What was in the buffer only is a miss, the rest is there; the tier goes by itself. */
TEST_F(import, revoked_under_load)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), ret;
	uint32_t i, there = 0, n = BUF_BLOCKS + HOST_BYTES / BLOCK + 4 * MORE;
	struct load *l = load_alloc();
	char text[64];
	pid_t pid;

	ASSERT_LE(0, lseek(kmsg, 0, SEEK_END));
	ASSERT_EQ(0, space_make(&self->s, self->tier, self->host, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, n, 0));
	ASSERT_EQ(0, lid_call(self->s.fd, HAWK_IOC_PIN, LID(n - 1)));
	pid = load_start(l, &self->s, n - 1, true);
	while (!load_has_read(l, ROUNDS, pid))
		sched_yield();
	ASSERT_EQ(0, exp_call(self->s.exp, HAWK_EXP_IOC_REVOKE, 0));
	while (!load_has_read(l, 2 * ROUNDS, pid))
		sched_yield();
	EXPECT_EQ(0, load_end(l, pid)) TH_LOG("block %u", l->block);
	EXPECT_EQ(0, lid_call(self->s.fd, HAWK_IOC_UNPIN, LID(n - 1)));
	wait_gone(self->ctl, self->tier);
	for (i = 0; i < n; i++) {
		ret = check_block(&self->s, i);
		EXPECT_TRUE(!ret || ret == -ENOENT) TH_LOG("block %u: %d", i, ret);
		there += !ret;
	}
	EXPECT_GE(there, n - BUF_BLOCKS) TH_LOG("what was not in the buffer");
	EXPECT_EQ(0, make_blocks(&self->s, 2000, MORE, 0)) TH_LOG("the space goes on");
	snprintf(text, sizeof(text), "tier %u is lost", self->tier);
	EXPECT_EQ(1, log_lines(kmsg, text));
	close(kmsg);
	TH_LOG("%u of %u blocks are still there", there, n);
}

/* What cannot be zeroed for long is told once, waits, and is free when it can be. */
TEST_F(import, zeroing_fails_for_long)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct side a = self->s;
	char text[64];

	ASSERT_LE(0, lseek(kmsg, 0, SEEK_END));
	ASSERT_EQ(0, space_make(&a, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&a, 0, BUF_BLOCKS, 5000));
	ASSERT_EQ(0, exp_call(a.exp, HAWK_EXP_IOC_FAIL, ENOMEM | HAWK_EXP_FAIL_ALL));
	close(a.fd);
	/* three looks at all of them */
	while (exp_info(a.exp).fails < 3 * BUF_BYTES / HAWK_CHUNK_BYTES)
		poll(NULL, 0, 10);
	EXPECT_EQ(BUF_BYTES, tier_info(self->ctl, self->tier).quarantine_bytes);
	EXPECT_EQ(0, tier_free_bytes(self->ctl, self->tier));
	snprintf(text, sizeof(text), "tier %u: chunk", self->tier);
	EXPECT_EQ(1, log_lines(kmsg, text));
	ASSERT_EQ(0, exp_call(a.exp, HAWK_EXP_IOC_FAIL, 0));
	while (tier_free_bytes(self->ctl, self->tier) != BUF_BYTES)
		poll(NULL, 0, 10);
	EXPECT_EQ(0, tier_info(self->ctl, self->tier).quarantine_bytes);
	EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0));
	close(kmsg);
}

/* Without a transfer: the exporter's word is enough. */
TEST_F(import, revoked_when_idle)
{
	uint32_t tier;

	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, 8, 0));
	ASSERT_EQ(0, exp_call(self->s.exp, HAWK_EXP_IOC_REVOKE, 0));
	wait_gone(self->ctl, self->tier);
	EXPECT_EQ(-ENOENT, lid_call(self->s.fd, HAWK_IOC_TRANSLATE, LID(0)));
	EXPECT_EQ(-ENODEV, import(self->ctl, self->buf, 0, &tier));
}

/* One access fails: the exporter has no memory, say.  At most one block is lost. */
TEST_F(import, failed_access)
{
	uint32_t i, lost = 0, n = BUF_BLOCKS + MORE;
	int ret;

	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, BUF_BLOCKS, 0));
	ASSERT_EQ(0, exp_call(self->s.exp, HAWK_EXP_IOC_FAIL, ENOMEM));
	ASSERT_EQ(0, make_blocks(&self->s, BUF_BLOCKS, MORE, 0));
	EXPECT_EQ(1, tier_info(self->ctl, self->tier).io_errors);
	EXPECT_EQ(0, tier_info(self->ctl, self->blk).io_errors);
	for (i = 0; i < n; i++) {
		ret = check_block(&self->s, i);
		EXPECT_TRUE(!ret || ret == -ENOENT) TH_LOG("block %u: %d", i, ret);
		lost += ret == -ENOENT;
	}
	EXPECT_LE(lost, 1);
}

static int tier_force(int fd, uint32_t tier)
{
	struct hawk_tier_remove rm = {
		.size = sizeof(rm), .flags = HAWK_TIER_FORCE, .tier = tier,
	};

	return dev_call(fd, HAWK_IOC_TIER_REMOVE, &rm);
}

/* All blocks go to flash; the exporter gets back zeroes. */
TEST_F(import, removed_by_force_under_load)
{
	uint32_t i, n = BUF_BLOCKS + HOST_BYTES / BLOCK + MORE;
	struct load *l = load_alloc();
	pid_t pid;
	int ret;

	ASSERT_EQ(0, space_make(&self->s, self->tier, self->host, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, n, 0));
	pid = load_start(l, &self->s, n, false);
	while (!load_has_read(l, ROUNDS, pid))
		sched_yield();
	do
		ret = tier_force(self->ctl, self->tier);
	while (ret == -EBUSY);	/* a block is pinned at this moment */
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, exp_info(self->s.exp).attachments);
	EXPECT_EQ(0, exp_info(self->s.exp).mapped);
	EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0));
	EXPECT_EQ(0, load_end(l, pid)) TH_LOG("block %u", l->block);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, check_block(&self->s, i)) TH_LOG("block %u", i);
}

/* ---- the module goes with the tier in it ---- */

TEST_F(import, module_unloaded)
{
	const char *ko = getenv("HAWK_LAB_KO");
	int fd;

	if (!ko)
		SKIP(return, "HAWK_LAB_KO is not set");
	ASSERT_EQ(0, space_make(&self->s, self->tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&self->s, 0, BUF_BLOCKS + MORE, 5000));
	close(self->s.fd);
	close(self->ctl);
	while (model_unload("hawk") == -EAGAIN)
		poll(NULL, 0, 10);
	EXPECT_EQ(0, exp_info(self->s.exp).attachments);
	EXPECT_EQ(0, exp_info(self->s.exp).mapped);
	EXPECT_EQ(1, buf_is(&self->s, 0, BUF_BYTES, 0));
	fd = open(ko, O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, syscall(SYS_finit_module, fd, "", 0));
	close(fd);
	/* what the teardown removes */
	self->s.fd = -1;
	self->ctl = dev_open(O_RDWR);
	ASSERT_EQ(0, import(self->ctl, self->buf, 0, &self->tier));
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	ASSERT_EQ(0, blk_add(self->ctl, self->path, FLASH_BYTES, &self->blk));
}

/* ---- what is refused ---- */

TEST_F(import, what_is_no_tier)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .kind = HAWK_TIER_DMABUF, .node = -1, .fd = self->buf,
	}, bad;
	int exp, buf;
	uint32_t tier;

	EXPECT_EQ(-EBADF, import(self->ctl, -1, 0, &tier));
	EXPECT_EQ(-EBADF, import(self->ctl, 1000000, 0, &tier));
	EXPECT_EQ(-EINVAL, import(self->ctl, self->ctl, 0, &tier)) TH_LOG("no dma-buf");
	EXPECT_EQ(-EBUSY, import(self->ctl, self->buf, 0, &tier)) TH_LOG("a tier already");
	EXPECT_EQ(-ENOSPC, import(self->ctl, self->buf, BUF_BYTES + 1, &tier));
	EXPECT_EQ(-EINVAL, import(self->ctl, self->buf, HAWK_CHUNK_BYTES - 1, &tier));
	bad = add;
	bad.node = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &bad));
	bad = add;
	bad.path = (uintptr_t)self->path;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &bad));
	bad = add;
	bad.reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &bad));
	bad = add;
	bad.size = offsetof(struct hawk_tier_add, fd);
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &bad)) TH_LOG("it has no fd");
	bad = (struct hawk_tier_add){
		.size = sizeof(bad), .kind = HAWK_TIER_HOST, .node = -1, .bytes = 2 * MIB,
		.fd = self->buf,
	};
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &bad)) TH_LOG("of no use");
	bad.fd = 0;
	bad.size = offsetof(struct hawk_tier_add, fd);
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &bad)) TH_LOG("as it was before");
	EXPECT_EQ(0, tier_remove(self->ctl, bad.tier));

	exp = exp_make(BUF_MIB, HAWK_EXP_NO_CPU, &buf);
	EXPECT_EQ(-EOPNOTSUPP, import(self->ctl, buf, 0, &tier)) TH_LOG("for devices only");
	EXPECT_EQ(0, exp_info(exp).attachments);
	close(buf);
	close(exp);
	exp = exp_make(1, 0, &buf);
	EXPECT_EQ(-ENOSPC, import(self->ctl, buf, 0, &tier)) TH_LOG("less than a chunk");
	EXPECT_EQ(0, exp_info(exp).attachments);
	close(buf);
	close(exp);
}

TEST_F(import, no_tier_in_a_tier)
{
	struct hawk_export x;
	uint32_t tier;

	ASSERT_EQ(0, space_make(&self->s, self->host, ~0u, self->blk));
	ASSERT_EQ(0, one(self->s.fd, HAWK_IOC_ALLOC, 0, &(struct hawk_item){ .lid = LID(0) }));
	ASSERT_EQ(0, lid_call(self->s.fd, HAWK_IOC_PUT, LID(0)));
	ASSERT_EQ(0, export_blocks(self->s.fd, 0, 1, 0, &x));
	EXPECT_EQ(-EINVAL, import(self->ctl, x.fd, 0, &tier));
	close(x.fd);
}

/* A part of the buffer: the rest is not touched. */
TEST_F(import, part_of_a_buffer)
{
	struct side s = { .host = ~0u };
	uint32_t tier;
	int buf;

	s.exp = exp_make(8, 0, &buf);
	ASSERT_GE(s.exp, 0);
	ASSERT_EQ(0, import(self->ctl, buf, 5 * MIB, &tier));
	EXPECT_EQ(4 * MIB, tier_info(self->ctl, tier).bytes);
	close(buf);
	ASSERT_EQ(0, space_make(&s, tier, ~0u, self->blk));
	ASSERT_EQ(0, make_blocks(&s, 0, BUF_BLOCKS + MORE, 0));
	EXPECT_EQ(0, check_block(&s, 0));
	close(s.fd);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, tier));
	EXPECT_EQ(1, buf_is(&s, 0, 4 * MIB, 0));
	EXPECT_EQ(1, buf_is(&s, 4 * MIB, 8 * MIB, HAWK_EXP_FILL));
	close(s.exp);
}

/* ---- exporters of the kernel, which never move a buffer ---- */

/* Return: 0, a negative errno of the import, or the number of the step that failed. */
static int static_round_trip(int buf, uint8_t *map)
{
	struct side s = { .exp = -1, .map = map };
	char *path = temp_file("import-static", FLASH_BYTES);
	int ctl = dev_open(O_RDWR), ret;
	uint32_t tier, blk, i, n = BUF_BLOCKS + MORE;

	ret = import(ctl, buf, 0, &tier);
	if (ret)
		goto out_unlink;
	ret = blk_add(ctl, path, FLASH_BYTES, &blk) || space_make(&s, tier, ~0u, blk) ||
	      make_blocks(&s, 0, n, 0) ? 1 : 0;
	for (i = 0; !ret && i < n; i++)
		ret = check_block(&s, i) ? 2 : 0;
	close(s.fd);
	if (tier_remove_idle(ctl, tier) || tier_remove_idle(ctl, blk))
		ret = 3;
	if (!ret && buf_is(&s, 0, BUF_BYTES, 0) != 1)
		ret = 4;
out_unlink:
	close(ctl);
	unlink(path);
	free(path);
	return ret;
}

TEST(dma_buf_heap)
{
	struct dma_heap_allocation_data data = { .len = BUF_BYTES, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
	uint8_t *map;

	if (heap < 0 || !test_dir())
		SKIP(return, "no /dev/dma_heap/system, or HAWK_TEST_DIR is not set");
	ASSERT_EQ(0, dev_call(heap, DMA_HEAP_IOCTL_ALLOC, &data));
	map = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, data.fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	memset(map, 0xee, BUF_BYTES);
	EXPECT_EQ(0, static_round_trip(data.fd, map));
	munmap(map, BUF_BYTES);
	close(data.fd);
	close(heap);
}

TEST(udmabuf)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = BUF_BYTES };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), buf, ret;
	uint8_t *map;

	if (dev < 0 || !test_dir())
		SKIP(return, "no /dev/udmabuf, or HAWK_TEST_DIR is not set");
	create.memfd = memfd_create("hawk-import", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ASSERT_EQ(0, ftruncate(create.memfd, BUF_BYTES));
	ASSERT_EQ(0, fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	map = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, create.memfd, 0);
	ASSERT_NE(MAP_FAILED, map);
	memset(map, 0xee, BUF_BYTES);
	buf = ioctl(dev, UDMABUF_CREATE, &create);
	ASSERT_GE(buf, 0);
	ret = static_round_trip(buf, map);
	if (ret == -EOPNOTSUPP)
		TH_LOG("the udmabuf of this kernel cannot be mapped by it");
	else
		EXPECT_EQ(0, ret);
	munmap(map, BUF_BYTES);
	close(buf);
	close(create.memfd);
	close(dev);
}

TEST_HARNESS_MAIN
