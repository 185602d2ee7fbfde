// SPDX-License-Identifier: MIT
/*
 * flash_format.c - hawkctl flash format: make a pool
 *
 * What is on the device is looked at by libblkid, which knows file systems, RAID members,
 * LVM and partition tables; a pool of ours by its superblocks.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../libhawk/poolfile.h"
#include "flash.h"
#include "print.h"

static int fail(const char *path, const char *what, int err)
{
	fprintf(stderr, "hawkctl: %s: %s: %s\n", path, what, strerror(-err));
	return 1;
}

/* Something that libblkid knows.  Return: 1 and its name; 0: nothing; -1: it cannot tell. */
static int foreign(int fd, char *name, size_t len)
{
	blkid_probe pr = blkid_new_probe();
	const char *type = NULL;
	int ret = -1;

	if (!pr)
		return -1;
	if (blkid_probe_set_device(pr, fd, 0, 0))
		goto out_free;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(pr, 1);
	ret = blkid_do_safeprobe(pr);
	if (ret == 1) {
		ret = 0;		/* nothing found */
	} else if (!ret || ret == -2) {	/* found, or more than one */
		if (ret || (blkid_probe_lookup_value(pr, "TYPE", &type, NULL) &&
			    blkid_probe_lookup_value(pr, "PTTYPE", &type, NULL)))
			type = "more than one thing";
		snprintf(name, len, "%s", type);
		ret = 1;
	}
out_free:
	blkid_free_probe(pr);
	return ret;
}

/* A file that has something in it is somebody's, whatever it is; devices are often not blank. */
static bool file_in_use(int fd)
{
	char *page = aligned_alloc(HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	struct stat st;
	bool in_use = false;
	size_t i;

	if (page && !fstat(fd, &st) && S_ISREG(st.st_mode) && pread(fd, page, HAWK_POOL_PAGE, 0) > 0)
		for (i = 0; i < HAWK_POOL_PAGE && i < (size_t)st.st_size; i++)
			in_use |= page[i] != 0;
	free(page);
	return in_use;
}

/* Return: 0: it may be overwritten. */
static int look(const char *path, int fd, uint64_t bytes)
{
	struct hawk_super s[2];
	char name[64] = "";
	int err[2], ret;

	if (!bytes)
		return 0;	/* a new file */
	poolfile_supers(fd, s, err);
	if (hawk_super_choose(err, s) != -ENOENT) {
		fprintf(stderr, "hawkctl: %s: there is a pool already; --force makes a new one, "
			"its blocks are lost\n", path);
		return 1;
	}
	ret = foreign(fd, name, sizeof(name));
	if (!ret && !file_in_use(fd))
		return 0;
	if (!ret) {
		snprintf(name, sizeof(name), "something");
		ret = 1;
	}
	if (ret < 0)
		fprintf(stderr, "hawkctl: %s: cannot tell what is on it; --force overwrites it\n",
			path);
	else
		fprintf(stderr, "hawkctl: %s: there is %s on it; --force overwrites it\n", path,
			name);
	return 1;
}

static int open_target(const char *path, uint64_t *have)
{
	struct stat st;
	int fd, ret;

	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		fail(path, "cannot open it for writing", -errno);
		return -1;
	}
	ret = fstat(fd, &st) ? -errno : 0;
	if (!ret && S_ISBLK(st.st_mode)) {
		/* not while it is mounted, or part of something */
		close(fd);
		fd = open(path, O_RDWR | O_EXCL | O_CLOEXEC);
		if (fd < 0) {
			fail(path, "cannot open it for us alone", -errno);
			return -1;
		}
	} else if (!ret && !S_ISREG(st.st_mode)) {
		ret = -ENOTBLK;
	}
	if (!ret && flock(fd, LOCK_EX | LOCK_NB))
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!ret)
		ret = poolfile_size(fd, have);
	if (ret) {
		fail(path, ret == -EBUSY ? "a Hawk device uses it" : "cannot use it", ret);
		close(fd);
		return -1;
	}
	return fd;
}

/* Of the options and the bytes of the pool.  Return: 0, or 2: an exit status. */
static int rated_bytes(const struct flash_opts *o, uint64_t bytes, uint64_t *rated)
{
	unsigned __int128 v = o->dwpd_milli ? (unsigned __int128)bytes * o->dwpd_milli / 1000 :
					      o->endurance;

	if (o->dwpd_milli && o->endurance)
		fprintf(stderr, "hawkctl: --dwpd or --endurance, not both\n");
	else if (v > HAWK_RATED_MAX)
		fprintf(stderr, "hawkctl: no drive is rated for so many bytes per day\n");
	else
		return *rated = (uint64_t)v, 0;
	return 2;
}

static void print_made(const char *path, const struct hawk_super *s, bool json)
{
	char uuid[37];

	print_uuid(uuid, s->uuid);
	if (json)
		print_json(json_pack("{s:s, s:s, s:I, s:i, s:i, s:I}", "path", path, "uuid", uuid,
				     "bytes", (json_int_t)s->bytes, "chunks", (int)s->chunks,
				     "slot_bytes", (int)s->slot_bytes, "rated_bytes_per_day",
				     (json_int_t)s->rated));
	else
		printf("%s: pool %s, %u chunks of 2 MiB for blocks of %u bytes or more\n", path,
		       uuid, s->chunks, s->slot_bytes);
}

int flash_format(const char *path, const struct flash_opts *o)
{
	struct poolfile_params p = {
		.slot_bytes = o->slot_bytes ? o->slot_bytes : HAWK_SLOT_BYTES_DEFAULT,
		.sparse = o->sparse,
	};
	struct hawk_super s;
	uint64_t have = 0;
	int ret, fd = open_target(path, &have);

	if (fd < 0)
		return 1;
	p.bytes = o->bytes ? o->bytes : have;
	if (rated_bytes(o, p.bytes, &p.rated)) {
		ret = 2;
	} else if (!p.bytes) {
		fprintf(stderr, "hawkctl: %s: a new file; --bytes says how large the pool is\n",
			path);
		ret = 2;
	} else if (!o->force && look(path, fd, have)) {
		ret = 1;
	} else {
		ret = poolfile_make(fd, &p, &s);
		if (ret == -EINVAL) {
			fprintf(stderr, "hawkctl: --slot-bytes: a power of two from %u to %u\n",
				HAWK_SLOT_BYTES_MIN, HAWK_SLOT_BYTES_MAX);
			ret = 2;
		} else if (ret) {
			ret = fail(path, ret == -ENOSPC ? "no room for a pool with a chunk" :
				   "cannot make the pool", ret);
		} else {
			print_made(path, &s, o->json);
		}
	}
	close(fd);
	return ret;
}
