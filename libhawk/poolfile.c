// SPDX-License-Identifier: MIT
/*
 * poolfile.c - see poolfile.h
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "poolfile.h"

#define ZERO_BYTES	(1u << 20)	/* written at a time where nothing faster is offered */

int poolfile_size(int fd, u64 *bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISBLK(st.st_mode))
		return ioctl(fd, BLKGETSIZE64, bytes) ? -errno : 0;
	*bytes = (u64)st.st_size;
	return 0;
}

int poolfile_read(int fd, u64 off, void *buf, size_t bytes)
{
	ssize_t n;

	while (bytes) {
		n = pread(fd, buf, bytes, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		off += (u64)n;
		buf = (u8 *)buf + n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* RWF_DSYNC is not everywhere: then the whole file is flushed. */
int poolfile_write(int fd, u64 off, const void *buf, size_t bytes, int flags)
{
	struct iovec iov;
	bool flush = false;
	ssize_t n;

	while (bytes) {
		iov = (struct iovec){ (void *)buf, bytes };
		n = pwritev2(fd, &iov, 1, (off_t)off, flags);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && flags && (errno == EOPNOTSUPP || errno == ENOSYS)) {
			flags = 0;
			flush = true;
			continue;
		}
		if (n <= 0)
			return n ? -errno : -EIO;
		off += (u64)n;
		buf = (const u8 *)buf + n;
		bytes -= (size_t)n;
	}
	return flush && fdatasync(fd) ? -errno : 0;
}

/* ---- room ---- */

bool poolfile_sparse(int fd, u64 bytes)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (u64)st.st_blocks * 512 < bytes;
}

void poolfile_discard(int fd, u64 off, u64 bytes, bool sparse)
{
	u64 range[2] = { off, bytes };
	int saved = errno;
	struct stat st;

	if (sparse)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
			  (off_t)bytes);
	else if (!fstat(fd, &st) && S_ISBLK(st.st_mode))
		ioctl(fd, BLKDISCARD, range);
	errno = saved;
}

/* ---- plain flash ---- */

static bool is_plain(int fd, u64 size, u8 *page)
{
	return size >= HAWK_POOL_PAGE &&
	       !poolfile_read(fd, hawk_plain_off(size), page, HAWK_POOL_PAGE) &&
	       hawk_plain_marked(page);
}

int poolfile_plain(int fd, u64 bytes, u32 *chunks)
{
	u8 *page = aligned_alloc(HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	struct stat st;
	u64 size, mark;
	int ret;

	if (!page)
		return -ENOMEM;
	ret = fstat(fd, &st) ? -errno : poolfile_size(fd, &size);
	if (ret)
		goto out_free;
	mark = hawk_plain_layout(size, bytes, S_ISREG(st.st_mode), chunks);
	if (*chunks && !is_plain(fd, size, page)) {
		hawk_plain_encode(page);
		ret = poolfile_write(fd, mark, page, HAWK_POOL_PAGE, RWF_DSYNC);
	}
out_free:
	free(page);
	return ret;
}

/* ---- superblocks ---- */

static int super_read(int fd, u64 off, u8 *page, struct hawk_super *s)
{
	int ret = poolfile_read(fd, off, page, HAWK_POOL_PAGE);

	return ret ? ret : hawk_super_decode(page, s);
}

void poolfile_supers(int fd, struct hawk_super s[2], int err[2])
{
	u8 *page = aligned_alloc(HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	int ret = page ? 0 : -ENOMEM;
	u64 bytes = 0;
	u32 i;

	if (!ret)
		ret = poolfile_size(fd, &bytes);
	if (!ret && (bytes < HAWK_SUPER_1_OFF + HAWK_POOL_PAGE || is_plain(fd, bytes, page)))
		ret = -ENOENT;
	for (i = 0; i < 2; i++)
		err[i] = ret ? ret : super_read(fd, hawk_super_copy_off(i), page, &s[i]);
	/* two halves of different pools: the one that says where the other is */
	if (!err[0] && !err[1] && memcmp(s[0].uuid, s[1].uuid, sizeof(s[0].uuid)))
		err[1] = -EUCLEAN;
	free(page);
}

int poolfile_write_supers(int fd, const struct hawk_super *s)
{
	u8 *page = aligned_alloc(HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	int ret = page ? 0 : -ENOMEM;
	u32 i;

	if (page)
		hawk_super_encode(s, page);
	for (i = 0; !ret && i < 2; i++) {
		ret = poolfile_write(fd, hawk_super_copy_off(i), page, HAWK_POOL_PAGE, 0);
		if (!ret && fdatasync(fd))
			ret = -errno;
	}
	free(page);
	return ret;
}

/* ---- making ---- */

static int zero_by_writing(int fd, u64 off, u64 bytes)
{
	u8 *zero = aligned_alloc(HAWK_POOL_PAGE, ZERO_BYTES);
	int ret = 0;
	u64 n;

	if (!zero)
		return -ENOMEM;
	memset(zero, 0, ZERO_BYTES);
	for (; !ret && bytes; off += n, bytes -= n) {
		n = bytes < ZERO_BYTES ? bytes : ZERO_BYTES;
		ret = poolfile_write(fd, off, zero, n, 0);
	}
	free(zero);
	return ret;
}

static int zero_range(int fd, u64 off, u64 bytes, bool blk)
{
	u64 range[2] = { off, bytes };

	if (blk ? !ioctl(fd, BLKZEROOUT, range) :
		  !fallocate(fd, FALLOC_FL_ZERO_RANGE, (off_t)off, (off_t)bytes))
		return 0;
	return zero_by_writing(fd, off, bytes);
}

static int set_length(int fd, const struct poolfile_params *p, u64 bytes)
{
	if (ftruncate(fd, (off_t)bytes))
		return -errno;
	return p->sparse ? 0 : -posix_fallocate(fd, 0, (off_t)bytes);
}

/* The old superblocks first: half of two pools, or a mark, must not look like this pool's. */
static int forget_old(int fd)
{
	u64 size;
	int ret = poolfile_size(fd, &size);

	ret = ret ? ret : zero_by_writing(fd, 0, HAWK_POOL_PAGE);
	ret = ret ? ret : zero_by_writing(fd, hawk_super_copy_off(1), HAWK_POOL_PAGE);
	ret = ret ? ret : zero_by_writing(fd, hawk_plain_off(size), HAWK_POOL_PAGE);
	return !ret && fdatasync(fd) ? -errno : ret;
}

int poolfile_make(int fd, const struct poolfile_params *p, struct hawk_super *s)
{
	struct stat st;
	int ret;

	memset(s, 0, sizeof(*s));
	s->bytes = p->bytes;
	s->slot_bytes = p->slot_bytes;
	s->rated = p->rated;
	s->created = (u64)time(NULL);
	s->clean = true;
	ret = hawk_super_layout(s);
	if (ret)
		return ret;
	if (fstat(fd, &st) || getrandom(s->uuid, sizeof(s->uuid), 0) != sizeof(s->uuid))
		return -errno;
	s->uuid[6] = (s->uuid[6] & 0x0f) | 0x40;	/* RFC 4122, random */
	s->uuid[8] = (s->uuid[8] & 0x3f) | 0x80;
	if (S_ISREG(st.st_mode))
		ret = set_length(fd, p, s->bytes);
	if (!ret)
		ret = forget_old(fd);
	if (!ret)
		ret = zero_range(fd, s->record_off, s->data_off - s->record_off,
				 S_ISBLK(st.st_mode));
	if (!ret && fdatasync(fd))
		ret = -errno;
	return ret ? ret : poolfile_write_supers(fd, s);
}
