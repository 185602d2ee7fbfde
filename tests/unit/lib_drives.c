// SPDX-License-Identifier: MIT
/*
 * lib_drives.c - the embedded backend on drives that have trouble: one that stalls, one that
 * is full, one of several that is missing; with io_uring and with threads
 *
 * A drive that stalls: while the descriptor of the flash file is that of a pipe, reads wait
 * until something is written there (io_uring), or the linker has put a preadv() of ours in
 * place of libc's (threads).
 */
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfixture.h"
#include "fd_of.h"

#define MIB	(1ull << 20)
#define MS	1000000ull
#define FRAMES	FX_CHUNK_FRAMES

/* ---- in place of what the library calls ---- */

static bool no_uring;		/* a system call filter forbids it */

int __real_io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags);
int __wrap_io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags);
int __wrap_io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags)
{
	return no_uring ? -EPERM : __real_io_uring_queue_init(entries, ring, flags);
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool on;		/* the next reads wait */
	uint32_t waiting;
	bool wrong;		/* what they read is damaged */
} stall = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

ssize_t __real_preadv(int fd, const struct iovec *iov, int n, off_t off);
ssize_t __wrap_preadv(int fd, const struct iovec *iov, int n, off_t off);
ssize_t __wrap_preadv(int fd, const struct iovec *iov, int n, off_t off)
{
	bool wrong = false;
	ssize_t ret;

	pthread_mutex_lock(&stall.lock);
	if (stall.on) {
		stall.waiting++;
		pthread_cond_broadcast(&stall.cond);
		while (stall.on)
			pthread_cond_wait(&stall.cond, &stall.lock);
		wrong = stall.wrong;
		stall.waiting--;
		pthread_cond_broadcast(&stall.cond);
	}
	pthread_mutex_unlock(&stall.lock);
	ret = __real_preadv(fd, iov, n, off);
	if (wrong && ret > 0)
		memset(iov[0].iov_base, 0x5a, iov[0].iov_len);
	return ret;
}

/* ---- a flash file that stalls ---- */

struct drive {
	struct fx f;
	int fd;			/* the library's */
	int real;
	int pipe[2];
};

/* What is in memory is on flash too, so that no write comes to the pipe. */
static void drive_open(struct drive *d)
{
	uint32_t n;

	fx_open(&d->f, 2 * MIB, 8 * MIB);
	fx_put(d->f.kv, 0, 2 * FRAMES, 1);
	for (n = 0; n < 2 * FRAMES; n++)
		assert_int_equal(fx_get(d->f.kv, n, 1), 0);
	d->fd = fd_of(d->f.file);
	d->real = dup(d->fd);
	assert_int_equal(pipe2(d->pipe, O_CLOEXEC), 0);
}

static void drive_close(struct drive *d)
{
	close(d->real);
	close(d->pipe[0]);
	close(d->pipe[1]);
	fx_close(&d->f);
}

static struct hawk_tier_info info(struct drive *d)
{
	struct hawk_tier_info ti;

	assert_ok(hawk_tier_stat(d->f.h, d->f.flash, &ti));
	return ti;
}

/* Reads that begin from now on wait; what is under way goes to the drive. */
static void stall_begin(struct drive *d)
{
	if (!no_uring) {
		assert_true(dup2(d->pipe[0], d->fd) == d->fd);
		return;
	}
	pthread_mutex_lock(&stall.lock);
	stall.on = true;
	pthread_mutex_unlock(&stall.lock);
}

/* Later ones do not. */
static void stall_no_more(struct drive *d)
{
	if (!no_uring)
		assert_true(dup2(d->real, d->fd) == d->fd);
}

/* The one that waits comes back, with the bytes of block @n or damaged. */
static void stall_end(struct drive *d, uint32_t n, bool wrong)
{
	uint8_t *block = aligned_alloc(4096, FX_BLOCK);

	if (!no_uring) {
		memset(block, 0x5a, FX_BLOCK);
		if (!wrong)
			fx_fill(block, n, 1);
		assert_int_equal(write(d->pipe[1], block, FX_BLOCK), FX_BLOCK);
	} else {
		pthread_mutex_lock(&stall.lock);
		stall.wrong = wrong;
		stall.on = false;
		pthread_cond_broadcast(&stall.cond);
		while (stall.waiting)
			pthread_cond_wait(&stall.cond, &stall.lock);
		pthread_mutex_unlock(&stall.lock);
	}
	free(block);
	while (info(d).out)
		sched_yield();
}

static int get_by(struct drive *d, uint32_t n, uint64_t ns)
{
	struct hawk_opts o = { .deadline_ns = fx_now() + ns };
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };

	fx_key(&it, n, 1);
	assert_int_equal(hawk_get(d->f.kv, &it, 1, &o, NULL), 0);
	return it.status;
}

/* The first block on flash: by age, so the first of all. */
static void late(struct drive *d)
{
	stall_begin(d);
	assert_int_equal(get_by(d, 0, 50 * MS), -ETIME);
	stall_no_more(d);
	assert_int_equal(info(d).out, 1);
}

/* His deadline ends the wait; the block is there when the drive has answered. */
static void wait_ends(void **state)
{
	struct drive d;
	uint32_t n;

	(void)state;
	drive_open(&d);
	late(&d);
	for (n = 2 * FRAMES - 8; n < 2 * FRAMES; n++)
		assert_int_equal(fx_get(d.f.kv, n, 1), 0);	/* in memory */
	assert_int_equal(get_by(&d, 0, 50 * MS), -ETIME);	/* still under way */
	stall_end(&d, 0, false);
	assert_int_equal(info(&d).out, 0);
	assert_int_equal(fx_get(d.f.kv, 0, 1), 0);
	drive_close(&d);
}

/*
 * What comes late goes to no memory that is somebody's: all other frames are filled anew
 * meanwhile, and hold what was put there.  (Threads that stall would stall that, too.)
 */
static void frame_is_nobodys(void **state)
{
	struct drive d;
	uint32_t n;

	(void)state;
	drive_open(&d);
	late(&d);
	fx_put(d.f.kv, 2 * FRAMES, FRAMES, 1);
	stall_end(&d, 0, true);
	for (n = 2 * FRAMES; n < 3 * FRAMES; n++)
		assert_int_equal(fx_get(d.f.kv, n, 1), 0);
	assert_int_equal(fx_get(d.f.kv, 0, 1), -ENOENT);	/* damaged: a miss */
	for (n = 1; n < 2 * FRAMES; n++)
		assert_int_equal(fx_get(d.f.kv, n, 1), 0);
	drive_close(&d);
}

/* Nothing has come for two seconds: the drive fails, and works when something comes. */
static void drive_stalls(void **state)
{
	struct drive d;

	(void)state;
	drive_open(&d);
	late(&d);
	assert_int_equal(info(&d).health, HAWK_HEALTH_OK);
	while (info(&d).health == HAWK_HEALTH_OK)
		get_by(&d, 0, 200 * MS);
	stall_end(&d, 0, false);
	assert_int_equal(info(&d).health, HAWK_HEALTH_OK);
	assert_int_equal(fx_get(d.f.kv, 0, 1), 0);
	drive_close(&d);
}

/*
 * A gather leaves at its deadline with what is there.  Its buffer may go while the drive still
 * owes a block, and the block is lost to nobody.
 */
static void gather_ends(void **state)
{
	uint64_t lid[2] = { fx_lid(0), fx_lid(2 * FRAMES - 1) };	/* on flash, in memory */
	struct hawk_opts o = { 0 };
	uint32_t count = 2, remap[2];
	struct hawk_gather g = { 0 };
	int32_t status[2];
	struct hawk_gather_lists l = {
		.lid = lid, .count = &count, .lists = 1, .remap = remap, .status = status,
		.buf_bytes = 2 * FX_BLOCK,
	};
	struct hawk_item it = { .lid = lid[0] };
	struct drive d;

	(void)state;
	drive_open(&d);
	l.buf = mmap(NULL, l.buf_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(l.buf != MAP_FAILED);
	stall_begin(&d);
	o.deadline_ns = fx_now() + 50 * MS;
	assert_int_equal(hawk_gather(d.f.kv, &l, &o, &g), 1);
	stall_no_more(&d);
	assert_int_equal(status[0], -ETIME);
	assert_int_equal(status[1], 0);
	assert_true(fx_is((uint8_t *)l.buf + (uint64_t)remap[1] * FX_BLOCK, 2 * FRAMES - 1, 1));
	assert_int_equal(g.busy, 1);
	assert_int_equal(info(&d).out, 1);
	assert_int_equal(munmap(l.buf, l.buf_bytes), 0);
	assert_int_equal(hawk_free(d.f.kv, &it, 1), 0);
	assert_int_equal(it.status, -EBUSY);		/* it is still being read */
	stall_end(&d, 0, false);
	assert_int_equal(fx_get(d.f.kv, 0, 1), 0);
	drive_close(&d);
}

struct reload {
	struct drive *d;
	uint32_t n;
	uint32_t flags;
	int ret;
	pthread_t thread;
};

static void *reload_one(void *arg)
{
	struct reload *r = arg;
	struct hawk_opts o = { .flags = r->flags };
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };

	fx_key(&it, r->n, 1);
	r->ret = hawk_reload(r->d->f.kv, &it, 1, &o);
	return NULL;
}

static uint64_t waits(struct drive *d)
{
	struct hawk_stats st = { 0 };

	assert_ok(hawk_kv_stats(d->f.kv, &st));
	return st.paced_waits;
}

/* While somebody urgent waits for the drive, others' reads do not begin, and nothing is lost. */
static void urgent_has_the_drive(void **state)
{
	struct drive d;
	struct reload urgent = { .d = &d, .n = 0, .flags = HAWK_BATCH_URGENT };
	struct reload other = { .d = &d, .n = 1 };

	(void)state;
	drive_open(&d);
	stall_begin(&d);
	assert_int_equal(pthread_create(&urgent.thread, NULL, reload_one, &urgent), 0);
	while (!info(&d).out)
		sched_yield();
	assert_int_equal(pthread_create(&other.thread, NULL, reload_one, &other), 0);
	while (!waits(&d) && info(&d).out == 1)
		sched_yield();
	assert_int_equal(info(&d).out, 1);
	stall_no_more(&d);
	stall_end(&d, 0, false);
	pthread_join(urgent.thread, NULL);
	pthread_join(other.thread, NULL);
	assert_int_equal(urgent.ret, 1);
	assert_int_equal(other.ret, 1);
	assert_int_equal(fx_get(d.f.kv, 0, 1), 0);
	assert_int_equal(fx_get(d.f.kv, 1, 1), 0);
	drive_close(&d);
}

static void *close_it(void *arg)
{
	drive_close(arg);
	return NULL;
}

/* The end of a device waits for what is under way. */
static void close_meanwhile(void **state)
{
	uint8_t block[FX_BLOCK];
	pthread_t thread;
	struct drive d;
	int wr;

	(void)state;
	drive_open(&d);
	late(&d);
	wr = dup(d.pipe[1]);
	assert_int_equal(pthread_create(&thread, NULL, close_it, &d), 0);
	fx_fill(block, 0, 1);
	if (no_uring) {
		pthread_mutex_lock(&stall.lock);
		stall.on = false;
		pthread_cond_broadcast(&stall.cond);
		pthread_mutex_unlock(&stall.lock);
	} else {
		assert_int_equal(write(wr, block, sizeof(block)), (ssize_t)sizeof(block));
	}
	pthread_join(thread, NULL);
	close(wr);
}

/* ---- two drives ---- */

struct two {
	struct hawk *h;
	struct hawk_kv *kv;
	unsigned int tier[2];
	char dir[256];
	char file[2][300];
};

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

static void file_make(const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

/* Gets a block by its key, under whatever LID, and compares its bytes. */
static int look(struct hawk_kv *kv, uint32_t n, uint32_t salt)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };

	fx_key(&it, n, salt);
	if (hawk_get(kv, &it, 1, NULL, NULL) != 1)
		return it.status;
	assert_true(fx_is(hawk_addr(kv, it.vt), n, salt));
	it = (struct hawk_item){ .lid = it.lid, .vt = it.vt };
	assert_int_equal(hawk_unpin(kv, &it, 1), 1);
	return 0;
}

static uint32_t right(struct hawk_kv *kv, uint32_t from, uint32_t n, uint32_t salt)
{
	uint32_t i, there = 0;
	int ret;

	for (i = from; i < from + n; i++) {
		ret = look(kv, i, salt);
		assert_true(!ret || ret == -ENOENT || ret == -EIO);
		there += !ret;
	}
	return there;
}

static uint32_t health(struct hawk *h, unsigned int tier)
{
	struct hawk_tier_info ti;

	assert_ok(hawk_tier_stat(h, tier, &ti));
	return ti.health;
}

/* One of them is cut short: its blocks are misses, and new ones go to the other. */
static void one_of_two_is_cut(void **state)
{
	struct two t = { 0 };
	uint32_t i, n;

	(void)state;
	fx_dir_make(t.dir, sizeof(t.dir));
	assert_ok(hawk_open("embed:?dram=2M&writeback=0", &t.h));
	for (i = 0; i < 2; i++) {
		snprintf(t.file[i], sizeof(t.file[i]), "%s/%u", t.dir, i);
		file_make(t.file[i], 16 * MIB);
		assert_ok(hawk_tier_add_blk(t.h, t.file[i], 0, &t.tier[i]));
	}
	t.kv = space(t.h, NULL);
	fx_put(t.kv, 0, 5 * FRAMES, 1);
	assert_int_equal(truncate(t.file[1], 0), 0);
	n = right(t.kv, 0, 5 * FRAMES, 1);
	assert_in_range(n, 2 * FRAMES, 3 * FRAMES + FRAMES / 2);
	assert_int_equal(health(t.h, t.tier[0]), HAWK_HEALTH_OK);
	assert_int_equal(health(t.h, t.tier[1]), HAWK_HEALTH_FAILING);
	fx_put(t.kv, 5 * FRAMES, 3 * FRAMES, 1);
	/* but for a trial, if it takes that long */
	assert_in_range(right(t.kv, 5 * FRAMES, 3 * FRAMES, 1), 3 * FRAMES - 4, 3 * FRAMES);
	hawk_kv_close(t.kv);
	hawk_close(t.h);
	fx_dir_remove(t.dir);
}

/* In a mount namespace of its own: 0 as told, 77 if it may not mount, else 1. */
static int on_small_disk(const char *dir)
{
	struct two t = { 0 };
	char path[280];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 77;
	snprintf(path, sizeof(path), "%s/small", dir);
	if (mkdir(path, 0700) || mount("none", path, "tmpfs", 0, "size=1m"))
		return 77;
	snprintf(t.file[0], sizeof(t.file[0]), "%s/good", dir);
	snprintf(t.file[1], sizeof(t.file[1]), "%s/sparse", path);
	if (hawk_open("embed:?dram=2M&writeback=0", &t.h))
		return 1;
	file_make(t.file[0], 16 * MIB);
	file_make(t.file[1], 16 * MIB);
	if (hawk_tier_add_blk(t.h, t.file[0], 0, &t.tier[0]) ||
	    hawk_tier_add_blk(t.h, t.file[1], 0, &t.tier[1]))
		return 1;
	t.kv = space(t.h, NULL);
	fx_put(t.kv, 0, 3 * FRAMES, 1);
	if (health(t.h, t.tier[1]) != HAWK_HEALTH_FAILING)
		return 1;
	fx_put(t.kv, 3 * FRAMES, 3 * FRAMES, 1);
	if (right(t.kv, 3 * FRAMES, 3 * FRAMES, 1) < 3 * FRAMES - 4)
		return 1;
	hawk_kv_close(t.kv);
	hawk_close(t.h);
	return 0;
}

static void one_of_two_is_full(void **state)
{
	char dir[256], small[280];
	int status;
	pid_t pid;

	(void)state;
	fx_dir_make(dir, sizeof(dir));
	pid = fork();
	if (!pid)
		_exit(on_small_disk(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(small, sizeof(small), "%s/small", dir);
	rmdir(small);
	fx_dir_remove(dir);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("SKIP one_of_two_is_full: no right to mount a file system\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* ---- pools on two drives ---- */

static void pool_make(const char *path)
{
	struct hawk *h;
	char url[600];

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s&flash_size=16M&persist=1", path);
	assert_ok(hawk_open(url, &h));
	hawk_close(h);
}

static void pools_open(struct two *t, bool first, bool second)
{
	assert_ok(hawk_open("embed:?dram=2M&writeback=0", &t->h));
	if (first)
		assert_ok(hawk_tier_add_pool(t->h, t->file[0], &t->tier[0]));
	if (second)
		assert_ok(hawk_tier_add_pool(t->h, t->file[1], &t->tier[1]));
	t->kv = space(t->h, "agents");
}

static void pools_close(struct two *t)
{
	hawk_kv_close(t->kv);
	hawk_close(t->h);
}

static void pools_init(struct two *t)
{
	uint32_t i;

	fx_dir_make(t->dir, sizeof(t->dir));
	for (i = 0; i < 2; i++) {
		snprintf(t->file[i], sizeof(t->file[i]), "%s/%u", t->dir, i);
		pool_make(t->file[i]);
	}
}

static uint64_t recovered(struct hawk_kv *kv)
{
	struct hawk_stats st;

	assert_ok(hawk_kv_stats(kv, &st));
	return st.recovered;
}

/* A space finds its blocks in both, and those of one of them if the other is missing. */
static void pools_together_and_alone(void **state)
{
	struct two t = { 0 };
	uint64_t both, one;

	(void)state;
	pools_init(&t);
	pools_open(&t, true, true);
	fx_put(t.kv, 0, 5 * FRAMES, 1);
	pools_close(&t);

	pools_open(&t, true, true);
	both = recovered(t.kv);
	assert_in_range(both, 4 * FRAMES, 5 * FRAMES);
	assert_int_equal(right(t.kv, 0, 5 * FRAMES, 1), both);
	pools_close(&t);

	pools_open(&t, false, true);
	one = recovered(t.kv);
	assert_in_range(one, 2 * FRAMES - 8, 3 * FRAMES);
	assert_int_equal(right(t.kv, 0, 5 * FRAMES, 1), one);
	pools_close(&t);

	/* and the missing one stands for itself */
	pools_open(&t, true, false);
	assert_in_range(recovered(t.kv), 2 * FRAMES - 8, 3 * FRAMES);
	assert_in_range(right(t.kv, 0, 5 * FRAMES, 1), 2 * FRAMES - 8, 3 * FRAMES);
	pools_close(&t);
	fx_dir_remove(t.dir);
}

/* A URL names both: blocks and the write budget are spread over them. */
static void two_in_the_url(void **state)
{
	struct hawk_tier_admit a = { 0 };
	struct hawk_tier_info ti;
	struct two t = { 0 };
	char url[800];
	uint32_t i;

	(void)state;
	fx_dir_make(t.dir, sizeof(t.dir));
	for (i = 0; i < 2; i++)
		snprintf(t.file[i], sizeof(t.file[i]), "%s/%u", t.dir, i);
	snprintf(url, sizeof(url), "embed:?dram=2M&writeback=0&flash=%s&flash=%s&flash_size=16M&"
		 "persist=1", t.file[0], t.file[1]);
	assert_ok(hawk_open(url, &t.h));
	t.kv = space(t.h, "agents");
	fx_put(t.kv, 0, 5 * FRAMES, 1);
	for (i = 1; i <= 2; i++) {
		assert_ok(hawk_tier_stat(t.h, i, &ti));
		assert_in_range(ti.write_bytes, FRAMES * FX_BLOCK, 3 * FRAMES * FX_BLOCK);
	}
	pools_close(&t);
	strcat(url, "&flash_budget=2G");
	assert_ok(hawk_open(url, &t.h));
	for (i = 1; i <= 2; i++) {
		assert_ok(hawk_tier_admit_get(t.h, i, &a));
		assert_int_equal(a.budget_bytes, 1 << 30);
	}
	t.kv = space(t.h, "agents");
	assert_in_range(recovered(t.kv), 4 * FRAMES, 5 * FRAMES);
	assert_int_equal(right(t.kv, 0, 5 * FRAMES, 1), recovered(t.kv));
	pools_close(&t);
	/* one that cannot be had is named */
	snprintf(url, sizeof(url), "embed:?flash=%s&flash=%s/none/x&persist=1", t.file[0], t.dir);
	assert_int_equal(hawk_open(url, &t.h), -ENOENT);
	assert_non_null(strstr(hawk_strerror_last(), "/none/x"));
	fx_dir_remove(t.dir);
}

/* Keys that were put into each while the other was away: with other bytes, nobody's. */
static void pools_differ(void **state)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	struct two t = { 0 };
	uint32_t i;

	(void)state;
	pools_init(&t);
	for (i = 0; i < 2; i++) {
		pools_open(&t, !i, i);
		fx_put(t.kv, 0, FRAMES, 1);		/* the same in both */
		fx_put(t.kv, FRAMES + i * 8, 8, 1);	/* in one */
		/* key of one block, bytes of another */
		it = (struct hawk_item){ .lid = fx_lid(4000 + i) };
		assert_int_equal(hawk_alloc(t.kv, &it, 1, NULL), 1);
		fx_fill(hawk_addr(t.kv, it.vt), 4000 + i, 1);
		fx_key(&it, 4000, 1);
		assert_int_equal(hawk_put(t.kv, &it, 1, NULL), 1);
		fx_put(t.kv, 1000 + i * 1000, FRAMES, 1);	/* all that is evicted */
		pools_close(&t);
	}
	pools_open(&t, true, true);
	assert_int_equal(right(t.kv, 0, FRAMES + 16, 1), FRAMES + 16);
	it = (struct hawk_item){ .flags = HAWK_ITEM_BY_KEY };
	fx_key(&it, 4000, 1);
	assert_int_equal(hawk_get(t.kv, &it, 1, NULL, NULL), 0);
	assert_int_equal(it.status, -ENOENT);
	pools_close(&t);
	fx_dir_remove(t.dir);
}

static int with_ring(void **state)
{
	(void)state;
	no_uring = false;
	return 0;
}

static int with_threads(void **state)
{
	(void)state;
	no_uring = true;
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wait_ends, with_ring),
		cmocka_unit_test_setup(frame_is_nobodys, with_ring),
		cmocka_unit_test_setup(drive_stalls, with_ring),
		cmocka_unit_test_setup(gather_ends, with_ring),
		cmocka_unit_test_setup(urgent_has_the_drive, with_ring),
		cmocka_unit_test_setup(close_meanwhile, with_ring),
		cmocka_unit_test_setup(one_of_two_is_cut, with_ring),
		cmocka_unit_test_setup(one_of_two_is_full, with_ring),
		cmocka_unit_test_setup(pools_together_and_alone, with_ring),
		cmocka_unit_test_setup(pools_differ, with_ring),
		cmocka_unit_test_setup(two_in_the_url, with_ring),
		cmocka_unit_test_setup(wait_ends, with_threads),
		cmocka_unit_test_setup(drive_stalls, with_threads),
		cmocka_unit_test_setup(gather_ends, with_threads),
		cmocka_unit_test_setup(urgent_has_the_drive, with_threads),
		cmocka_unit_test_setup(close_meanwhile, with_threads),
		cmocka_unit_test_setup(one_of_two_is_cut, with_threads),
		cmocka_unit_test_setup(one_of_two_is_full, with_threads),
		cmocka_unit_test_setup(pools_together_and_alone, with_threads),
		cmocka_unit_test_setup(pools_differ, with_threads),
	};

	unsetenv("HAWK_URL");	/* these are about the embedded backend's files */
	return cmocka_run_group_tests_name("lib_drives", tests, NULL, NULL);
}
