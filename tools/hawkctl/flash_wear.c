// SPDX-License-Identifier: MIT
/*
 * flash_wear.c - hawkctl flash wear: what a drive stands, and what it has had to
 *
 * What the data sheet says is in the pool (flash format --dwpd, --endurance); what was
 * written through the pool, too.  What the drive itself has counted, of all that was ever
 * written to it, is in its SMART log, which an NVMe drive gives to Get Log Page.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../libhawk/poolfile.h"
#include "flash.h"
#include "print.h"

#define GET_LOG_PAGE	0x02
#define SMART_LOG	0x02
#define SMART_BYTES	512u
#define DATA_UNIT	512000u		/* "thousands of 512-byte data units" */

/* Of the SMART / health log, offsets from the NVMe base specification */
#define SMART_WARNING		0
#define SMART_SPARE		3	/* percent */
#define SMART_USED		5	/* percent of the rated life, may exceed 100 */
#define SMART_UNITS_READ	32	/* 16 bytes */
#define SMART_UNITS_WRITTEN	48

struct wear {
	char disk[NAME_MAX + 1];	/* name of the whole drive, "" if it has none */
	bool known;
	uint8_t warning, spare, used;
	uint64_t read_bytes, written_bytes;	/* saturating */
};

/* The drive that a device, partition or file is on. */
static int disk_of(int fd, char *name, size_t len)
{
	char link[64], path[PATH_MAX], *base;
	struct stat st;
	dev_t dev;

	if (fstat(fd, &st))
		return -errno;
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (!realpath(link, path))
		return -ENODEV;		/* tmpfs, a network, a file system over several drives */
	strncat(path, "/partition", sizeof(path) - strlen(path) - 1);
	base = strrchr(path, '/');
	if (!access(path, F_OK)) {
		*base = 0;		/* .../nvme0n1/nvme0n1p1: the folder above */
		base = strrchr(path, '/');
	}
	*base = 0;
	base = strrchr(path, '/');
	snprintf(name, len, "%s", base ? base + 1 : path);
	return 0;
}

static uint64_t units(const uint8_t *p)
{
	uint64_t v = 0;
	int i;

	for (i = 15; i >= 0; i--) {
		if (v > UINT64_MAX >> 8)
			return UINT64_MAX;
		v = v << 8 | p[i];
	}
	return v > UINT64_MAX / DATA_UNIT ? UINT64_MAX : v * DATA_UNIT;
}

static int smart_read(struct wear *w)
{
	static uint8_t log[SMART_BYTES] __attribute__((aligned(4096)));
	struct nvme_admin_cmd cmd = {
		.opcode = GET_LOG_PAGE, .nsid = 0xffffffff, .addr = (uintptr_t)log,
		.data_len = sizeof(log), .cdw10 = (SMART_BYTES / 4 - 1) << 16 | SMART_LOG,
	};
	char dev[NAME_MAX + 8];
	int fd, ret;

	snprintf(dev, sizeof(dev), "/dev/%s", w->disk);
	fd = open(dev, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &cmd);
	ret = ret < 0 ? -errno : ret ? -EIO : 0;
	close(fd);
	if (ret)
		return ret;
	w->warning = log[SMART_WARNING];
	w->spare = log[SMART_SPARE];
	w->used = log[SMART_USED];
	w->read_bytes = units(log + SMART_UNITS_READ);
	w->written_bytes = units(log + SMART_UNITS_WRITTEN);
	w->known = true;
	return 0;
}

static void drive_ask(const char *path, int fd, struct wear *w)
{
	int ret = disk_of(fd, w->disk, sizeof(w->disk));

	if (ret || strncmp(w->disk, "nvme", 4)) {
		fprintf(stderr, "hawkctl: %s: on %s%s, which is no NVMe drive: what it has had to stand is not known\n",
			path, ret ? "no drive of this machine" : "/dev/", ret ? "" : w->disk);
		return;
	}
	ret = smart_read(w);
	if (ret)
		fprintf(stderr, "hawkctl: /dev/%s: reading its SMART log: %s\n", w->disk,
			ret == -EACCES ? "needs CAP_SYS_ADMIN" : strerror(-ret));
}

static void wear_text(const struct hawk_super *s, const struct wear *w)
{
	if (s) {
		if (s->rated)
			printf("rated             %llu bytes per day, of which %llu are the write budget\n",
			       (unsigned long long)s->rated, (unsigned long long)s->rated / 4 * 3);
		else
			printf("rated             not told; see flash format --dwpd, --endurance\n");
		printf("written           %llu bytes to the pool, as clean ends counted them\n",
		       (unsigned long long)s->written);
	}
	if (!w->known)
		return;
	printf("drive             /dev/%s\n"
	       "percentage used   %u %% of its rated life\n"
	       "data written      %llu bytes in its life, %llu read\n"
	       "available spare   %u %%\ncritical warning  %#x\n", w->disk, w->used,
	       (unsigned long long)w->written_bytes, (unsigned long long)w->read_bytes, w->spare,
	       w->warning);
}

static void wear_json(const struct hawk_super *s, const struct wear *w)
{
	json_t *o = json_object();

	if (s)
		json_object_set_new(o, "pool", json_pack("{s:I, s:I, s:I}", "rated_bytes_per_day",
							 (json_int_t)s->rated, "budget_bytes_per_day",
							 (json_int_t)(s->rated / 4 * 3),
							 "written_bytes", (json_int_t)s->written));
	if (w->known)
		json_object_set_new(o, "drive", json_pack(
			"{s:s, s:i, s:I, s:I, s:i, s:i}", "name", w->disk, "percentage_used",
			(int)w->used, "written_bytes", (json_int_t)w->written_bytes, "read_bytes",
			(json_int_t)w->read_bytes, "available_spare_percent", (int)w->spare,
			"critical_warning", (int)w->warning));
	print_json(o);
}

int flash_wear(const char *path, const struct flash_opts *o)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err[2], n;
	struct hawk_super s[2], *pool;
	struct wear w = { 0 };

	if (fd < 0) {
		fprintf(stderr, "hawkctl: %s: cannot open it: %s\n", path, strerror(errno));
		return 1;
	}
	poolfile_supers(fd, s, err);
	n = hawk_super_choose(err, s);
	pool = n < 0 ? NULL : &s[n];
	drive_ask(path, fd, &w);
	close(fd);
	if (o->json)
		wear_json(pool, &w);
	else
		wear_text(pool, &w);
	return w.known ? 0 : 1;
}
