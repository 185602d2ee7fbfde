// SPDX-License-Identifier: MIT
/*
 * embed_tier.c - memory of the embedded backend
 *
 * A host tier is a memfd.  It is mapped once as a whole for the mover, and by
 * chunks into the windows of the spaces (window.c).  A flash tier is a file or
 * block device, opened O_DIRECT so that blocks go straight between the drive and
 * frames; a file system that cannot do that costs a copy through the page cache.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "embed.h"
#include "gpu.h"
#include "poolfile.h"

/* ---- host ---- */

static int bind_node(void *base, u64 bytes, int node)
{
	unsigned long mask[16] = { 0 };

	if (node < 0)
		return 0;
	if (node >= (int)(8 * sizeof(mask)) - 1)
		return hawk_fail(-EINVAL, "host tier: no NUMA node %d", node);
	mask[node / (8 * sizeof(long))] = 1ul << node % (8 * sizeof(long));
	if (syscall(SYS_mbind, base, bytes, MPOL_BIND, mask, 8 * sizeof(mask), 0))
		return hawk_fail(-errno, "host tier: memory of NUMA node %d", node);
	return 0;
}

static int host_open(struct etier *t, const struct hawk_tier_add *a)
{
	struct sysinfo si;
	int ret;

	t->bytes = (u64)hawk_chunks(a->bytes) * HAWK_CHUNK_BYTES;
	if (!sysinfo(&si) && t->bytes > (u64)si.totalram * si.mem_unit)
		return hawk_fail(-ENOMEM, "host tier: %llu MiB asked for, the machine has %llu",
				 (unsigned long long)t->bytes >> 20,
				 (unsigned long long)si.totalram * si.mem_unit >> 20);
	t->fd = memfd_create("hawk-host", MFD_CLOEXEC);
	if (t->fd < 0)
		return hawk_fail(-errno, "host tier: making its memory");
	if (ftruncate(t->fd, (off_t)t->bytes)) {
		ret = hawk_fail(-errno, "host tier: sizing its memory");
		goto err_close;
	}
	t->base = huge_map(t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd);
	if (t->base == MAP_FAILED) {
		ret = hawk_fail(-errno, "host tier: mapping its memory");
		goto err_close;
	}
	madvise(t->base, t->bytes, MADV_HUGEPAGE);	/* advice */
	ret = bind_node(t->base, t->bytes, a->node);
	if (ret)
		goto err_unmap;
	t->node = a->node;
	return 0;

err_unmap:
	munmap(t->base, t->bytes);
err_close:
	close(t->fd);
	return ret;
}

/* ---- flash ---- */

static int is_flash(const char *path, const struct stat *st)
{
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode))
		return 0;
	return hawk_fail(-ENOTBLK, "flash %s: neither a block device nor a regular file", path);
}

/* A new or empty file becomes a pool; anything else that is none is left alone. */
static int prepare_pool(const char *path, int fd, u64 bytes)
{
	struct poolfile_params p = { .bytes = bytes, .slot_bytes = HAWK_SLOT_BYTES_DEFAULT };
	struct hawk_super s;
	struct stat st;
	int ret;

	if (fstat(fd, &st) || st.st_size)
		return 0;	/* flash_open() tells what is wrong with it */
	if (!bytes)
		return hawk_fail(-EINVAL, "flash %s: there is none yet; give flash_size", path);
	ret = poolfile_make(fd, &p, &s);
	return ret ? hawk_fail(ret, "flash %s: making a pool of %llu MiB", path,
			       (unsigned long long)bytes >> 20) : 0;
}

/* Its blocks are allocated: a file system that is full says so now and not to an eviction. */
static int prepare_plain(const char *path, int fd, u64 bytes)
{
	int ret;

	ret = epool_check_none(fd, path);
	if (ret)
		return ret;
	ret = -posix_fallocate(fd, 0, (off_t)bytes);
	return ret ? hawk_fail(ret, "flash %s: room for %llu MiB", path,
			       (unsigned long long)bytes >> 20) : 0;
}

/**
 * embed_flash_prepare() - create or grow the flash file of a URL
 * @bytes: its size; @persist: 0 if it is there
 * @persist: it is a pool
 */
int embed_flash_prepare(const char *path, u64 bytes, bool persist)
{
	int fd, ret = 0;
	struct stat st;

	if (bytes < HAWK_CHUNK_BYTES && !(persist && !bytes))
		return hawk_fail(-EINVAL, "flash_size: at least %u bytes", HAWK_CHUNK_BYTES);
	if (!stat(path, &st)) {
		ret = is_flash(path, &st);
		if (ret || S_ISBLK(st.st_mode))
			return ret;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return hawk_fail(-errno, "flash %s: opening the file for writing", path);
	ret = persist ? prepare_pool(path, fd, bytes) : prepare_plain(path, fd, bytes);
	close(fd);
	return ret;
}

static int flash_open_fd(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC | flags);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	fd = open(path, O_RDWR | O_CLOEXEC | flags);
	if (fd >= 0)
		fprintf(stderr, "hawk: %s: its file system has no O_DIRECT, blocks go through "
			"the page cache\n", path);
	return fd;
}

#define LOCK_TRIES	200	/* 10 ms apart */

/* The kernel gives the files of a process that was killed back a moment after its end. */
static int flash_lock(int fd)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	u32 i;

	for (i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (i == LOCK_TRIES)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* A flash tier that is empty after every open: all of the file is payload. */
static int plain_open(struct etier *t, const struct hawk_tier_add *a, const char *path)
{
	u32 chunks = 0;
	u64 have;
	int ret = poolfile_size(t->fd, &have);

	if (ret)
		return hawk_fail(ret, "flash %s: asking for its size", path);
	ret = epool_check_none(t->fd, path);
	if (ret)
		return ret;
	if (a->bytes <= have)
		ret = poolfile_plain(t->fd, a->bytes, &chunks);
	if (ret)
		return hawk_fail(ret, "flash %s: marking it as such", path);
	t->bytes = (u64)chunks * HAWK_CHUNK_BYTES;
	if (t->bytes)
		return 0;
	return hawk_fail(-ENOSPC, "flash %s: it has %llu bytes, at least %llu are needed", path,
			 (unsigned long long)have,
			 (unsigned long long)(a->bytes ? a->bytes : HAWK_CHUNK_BYTES));
}

static int flash_open(struct etier *t, const struct hawk_tier_add *a)
{
	const char *path = (const char *)(uintptr_t)a->path;
	struct stat st;
	int ret;

	if (stat(path, &st))
		return hawk_fail(-errno, "flash %s", path);
	ret = is_flash(path, &st);
	if (ret)
		return ret;
	t->name = strdup(path);
	if (!t->name)
		return hawk_fail(-ENOMEM, "flash %s: opening it", path);
	t->fd = flash_open_fd(path, S_ISBLK(st.st_mode) ? O_EXCL : 0);
	if (t->fd < 0) {
		ret = hawk_fail(-errno, "flash %s: opening it for writing", path);
		goto err_free;
	}
	ret = flash_lock(t->fd);
	if (ret) {
		hawk_fail(ret, "flash %s: locking it, is it another device's flash?", path);
		goto err_close;
	}
	ret = a->flags & HAWK_TIER_PERSIST ? epool_open(t, path) : plain_open(t, a, path);
	if (ret)
		goto err_close;
	t->node = -1;
	return 0;

err_close:
	close(t->fd);
err_free:
	free(t->name);
	return ret;
}

/* ---- both ---- */

void embed_tier_free(struct etier *t)
{
	if (t->base)
		munmap(t->base, t->bytes);
	if (t->gpu)
		gpu_close(t->gpu);
	if (t->pool)
		epool_close(t);
	if (t->fd >= 0)
		close(t->fd);
	ework_stop(t->work);
	t->work = NULL;
	free(t->user);
	free(t->name);
	t->name = NULL;
	t->e = NULL;
	t->base = NULL;
	t->gpu = NULL;
	t->user = NULL;
	t->data_off = 0;
	t->kind = 0;
}

static int tier_register(struct embed *e, struct etier *new, u32 kind, u32 *id)
{
	u32 chunks = hawk_chunks(new->bytes);
	struct etier *t;
	int ret;

	new->user = calloc(chunks, sizeof(*new->user));
	if (!new->user)
		return hawk_fail(-ENOMEM, "adding a tier");
	ret = hawk_tier_add(e->engine, kind, chunks, id);
	if (ret)
		return hawk_fail(ret, "adding a tier");
	ret = new->pool ? epool_load(e, *id, new) : 0;
	if (ret) {
		hawk_tier_remove(e->engine, *id);
		return hawk_fail(ret, "adding a tier: reading the records of its pool");
	}
	t = &e->tier[*id];
	pthread_mutex_lock(&t->lock);	/* clean_tier() may look */
	t->fd = new->fd;
	t->base = new->base;
	t->gpu = new->gpu;
	t->bytes = new->bytes;
	t->data_off = new->data_off;
	t->pool = new->pool;
	t->node = new->node;
	t->user = new->user;
	t->read_bytes = 0;
	t->write_bytes = 0;
	t->io_errors = 0;
	t->name = new->name;
	t->out = 0;
	t->dropped = false;
	t->e = e;
	t->kind = kind;
	if (t->gpu)
		egpu_register(t);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

int embed_tier_add(struct hawk *h, struct hawk_tier_add *a)
{
	struct embed *e = to_embed(h);
	struct etier new = { .commit_lock = PTHREAD_MUTEX_INITIALIZER };
	int ret;

	if (a->flags & ~HAWK_TIER_PERSIST || (a->flags && (a->kind != HAWK_TIER_BLK || a->bytes)))
		return hawk_fail(a->flags & ~HAWK_TIER_PERSIST ? -EOPNOTSUPP : -EINVAL,
				 "adding a tier: flags 0x%x", a->flags);
	if (a->kind == HAWK_TIER_HOST)
		ret = host_open(&new, a);
	else if (a->kind == HAWK_TIER_BLK)
		ret = flash_open(&new, a);
	else if (a->kind == HAWK_TIER_USER)
		ret = egpu_open(&new, a);
	else
		ret = hawk_fail(-EOPNOTSUPP, "adding a tier: this kind needs the kernel's device");
	if (ret)
		return ret;
	pthread_mutex_lock(&e->admin);
	ret = tier_register(e, &new, a->kind, &a->tier);
	pthread_mutex_unlock(&e->admin);
	if (ret)
		embed_tier_free(&new);
	return ret;
}

int embed_tier_del(struct hawk *h, unsigned int tier, unsigned int flags)
{
	struct embed *e = to_embed(h);
	int ret;

	if (flags & HAWK_TIER_REOPEN) {
		ret = egpu_tier_lost(e, tier) ? -EIO : embed_tier_reopen(e, tier);
		return ret ? hawk_fail(ret, "reopening tier %u", tier) : 0;
	}
	ret = flags & HAWK_TIER_FORCE ? embed_tier_empty(e, tier) : 0;
	if (ret)
		return hawk_fail(ret, "removing tier %u: %s", tier, ret == -EBUSY ?
				 "blocks in it are pinned or being filled" : "no such tier");
	embed_clean(e);
	pthread_mutex_lock(&e->admin);
	ret = hawk_tier_remove(e->engine, tier);
	if (!ret) {
		pthread_mutex_lock(&e->tier[tier].lock);
		embed_tier_free(&e->tier[tier]);
		pthread_mutex_unlock(&e->tier[tier].lock);
	}
	pthread_mutex_unlock(&e->admin);
	return ret ? hawk_fail(ret, "removing tier %u", tier) : 0;
}

int embed_tier_admit(struct hawk *h, struct hawk_tier_admit *a)
{
	int ret = hawk_tier_admit(to_embed(h)->engine, a, now_ns());

	return ret ? hawk_fail(ret, ret == -ENOENT ? "no tier %u" :
			       "tier %u: not flash, or a mode, budget or period out of range",
			       a->tier) : 0;
}

int embed_tier_info(struct hawk *h, struct hawk_tier_info *info)
{
	struct embed *e = to_embed(h);
	u32 total, nfree, dirty;
	struct etier *t;
	int ret;

	pthread_mutex_lock(&e->admin);
	ret = hawk_tier_usage(e->engine, info->tier, &total, &nfree, &dirty);
	if (ret) {
		pthread_mutex_unlock(&e->admin);
		return hawk_fail(ret, "tier %u", info->tier);
	}
	t = &e->tier[info->tier];
	info->kind = t->kind;
	info->node = t->node;
	info->bytes = (u64)total * HAWK_CHUNK_BYTES;
	info->free_bytes = (u64)nfree * HAWK_CHUNK_BYTES;
	info->quarantine_bytes = (u64)dirty * HAWK_CHUNK_BYTES;
	info->read_bytes = hawk_load(&t->read_bytes);
	info->write_bytes = hawk_load(&t->write_bytes);
	info->io_errors = hawk_load(&t->io_errors);
	info->orphan_bytes = (u64)hawk_pool_orphans(e->engine, info->tier) * HAWK_CHUNK_BYTES;
	info->header_bytes = epool_header_bytes(t);
	info->out = hawk_load(&t->out);
	info->health = hawk_tier_health(e->engine, info->tier);
	pthread_mutex_unlock(&e->admin);
	return 0;
}

/* ---- chunks that left their owner ---- */

/* Return: whether nobody will find in it what was there. */
static bool zero_chunk(struct etier *t, u32 chunk)
{
	u64 off = (u64)chunk * HAWK_CHUNK_BYTES;

	if (t->gpu)	/* what is lost nobody finds; the driver may also lack memory, for now */
		return !gpu_zero(t->gpu, off, HAWK_CHUNK_BYTES) || gpu_lost(t->gpu);
	if (fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
		      HAWK_CHUNK_BYTES))
		memset(t->base + off, 0, HAWK_CHUNK_BYTES);
	return true;
}

/*
 * Flash chunks are not zeroed: a space reads a flash frame only after it has
 * written it, and checks its CRC.
 */
static bool clean_tier(struct embed *e, u32 tier)
{
	struct etier *t = &e->tier[tier];
	u32 c = HAWK_NONE;
	bool any = false;

	pthread_mutex_lock(&t->lock);
	while (t->kind && (c = hawk_tier_next_dirty(e->engine, tier, c)) != HAWK_NONE) {
		if (t->kind == HAWK_TIER_HOST || t->gpu) {
			window_forget(t, tier, c);
			if (!zero_chunk(t, c))
				continue;	/* stays nobody's, until the next time */
		} else if (t->pool) {
			epool_release(e, tier, c);
		}
		hawk_tier_clean(e->engine, tier, c);
		any = true;
	}
	if (any && t->pool)
		epool_sync(t);
	pthread_mutex_unlock(&t->lock);
	return any;
}

/**
 * embed_clean() - make chunks that left their owner free again
 * Return: whether there was one.
 */
bool embed_clean(struct embed *e)
{
	bool any = false;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		any |= clean_tier(e, t);
	if (any)
		moved_note(e);	/* who waits for room may look again */
	return any;
}
